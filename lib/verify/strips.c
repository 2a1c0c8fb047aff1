/* strips.c - an edit distance of two texts of any length in O(rows * columns / 64), less when it is known to be small.
 *
 * The table has a row for each code point of the one text and a column for each of the other. It is worked out in
 * strips of 512 rows from left to right by a kernel (kernel.h), which reads the row above the strip as steps between
 * neighbours and leaves the row below it the same way. Masks are made for a strip at a time, so that they stay in the
 * first-level cache and memory is linear.
 *
 * The band: a way through the table with at most `max` edits, ins insertions and del deletions among them, has ins -
 * del = columns - rows and ins + del <= max, so that del <= slack = (max - (columns - rows)) / 2. It stays between the
 * diagonals column - row = -slack and columns - rows + slack, and a strip needs only the columns between them. Where it
 * begins or ends, the neighbouring values that were left out are replaced by what stepping straight down or straight
 * right costs. These are costs of real ways, so that no value comes out too small, and those on ways inside the band
 * come out exact.
 *
 * Subsequences: the kernel gives the length l of the longest common one at a cell; the distance is row + column - 2 l.
 * Leaving out ways makes l too small, that is the distance too large, as above. */
#include "verify/strips.h"
#include "kernel/kernel.h"
#include "verify/symbols.h"

#include <stdlib.h>

struct table {
    dp_edits edits;
    dp_points rows, columns;
    size_t max, slack;
    uint32_t *row_ids, *column_ids; /* numbers of the code points; 0: not among the rows */
    uint16_t *slot_of;              /* where the masks of each number begin, in the strip at hand; 0: not in it */
    uint16_t *slots;                /* the same for each column */
    uint64_t *masks;
    int8_t *steps; /* along the row above the strip at hand */
};

/* Numbers both texts by the code points of the rows. */
static bool number_texts(struct table *table, dp_symbols *symbols) {
    size_t rows = table->rows.count, columns = table->columns.count;
    size_t strip = rows < DP_STRIP_ROWS ? rows : DP_STRIP_ROWS;
    table->row_ids = malloc(rows * sizeof *table->row_ids);
    table->column_ids = malloc(columns * sizeof *table->column_ids);
    table->slot_of = calloc((size_t)symbols->count + 1, sizeof *table->slot_of);
    table->slots = malloc(columns * sizeof *table->slots);
    table->masks = malloc((strip + 1) * DP_STRIP_WORDS * sizeof *table->masks);
    table->steps = malloc(columns);
    if (!table->row_ids || !table->column_ids || !table->slot_of || !table->slots || !table->masks || !table->steps)
        return false;
    for (size_t i = 0; i < rows; i++)
        table->row_ids[i] = dp_symbols_find(symbols, table->rows.data[i]);
    for (size_t i = 0; i < columns; i++)
        table->column_ids[i] = dp_symbols_find(symbols, table->columns.data[i]);
    return true;
}

static void table_free(struct table *table) {
    free(table->row_ids);
    free(table->column_ids);
    free(table->slot_of);
    free(table->slots);
    free(table->masks);
    free(table->steps);
}

static bool table_init(struct table *table) {
    dp_symbols symbols;
    bool done = dp_symbols_init(&symbols, table->rows) && number_texts(table, &symbols);
    dp_symbols_free(&symbols);
    return done;
}

/* The rows from `top` on: a mask for each distinct code point among them. */
static void fill_masks(struct table *table, size_t top, size_t rows) {
    uint16_t used = 0;
    memset(table->masks, 0, DP_STRIP_WORDS * sizeof *table->masks);
    for (size_t r = 0; r < rows; r++) {
        uint16_t *slot = &table->slot_of[table->row_ids[top + r]];
        if (!*slot) {
            *slot = used = (uint16_t)(used + DP_STRIP_WORDS);
            memset(table->masks + *slot, 0, DP_STRIP_WORDS * sizeof *table->masks);
        }
        table->masks[*slot + r / 64] |= (uint64_t)1 << r % 64;
    }
}

static void clear_slots(struct table *table, size_t top, size_t rows) {
    for (size_t r = 0; r < rows; r++)
        table->slot_of[table->row_ids[top + r]] = 0;
}

/* Runs the kernel on one strip, columns from `start` to `end`. The strip keeps the last column. */
static void run_strip(struct table *table, dp_strip *strip, size_t top, size_t rows, size_t start) {
    fill_masks(table, top, rows);
    for (size_t c = start; c < start + strip->columns; c++)
        table->slots[c] = table->slot_of[table->column_ids[c]];
    strip->masks = table->masks;
    strip->slots = table->slots + start;
    strip->steps = table->steps + start;
    strip->words = (rows + 63) / 64;
    memset(strip->plus, table->edits == DP_EDITS_ALL ? 0xFF : 0, sizeof strip->plus);
    memset(strip->minus, 0, sizeof strip->minus);
    if (table->edits == DP_EDITS_ALL)
        dp_levenshtein_kernel()(strip);
    else
        dp_subsequence_kernel()(strip);
    clear_slots(table, top, rows);
}

static int64_t sum_steps(const int8_t *steps, size_t count) {
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += steps[i];
    return sum;
}

/* What the last column of a strip adds from the row above it to its row `rows`. */
static int64_t sum_column(const dp_strip *strip, size_t rows) {
    int64_t sum = 0;
    for (size_t w = 0; w < strip->words; w++) {
        size_t left = rows - 64 * w;
        uint64_t here = left < 64 ? ((uint64_t)1 << left) - 1 : ~(uint64_t)0;
        sum += __builtin_popcountll(strip->plus[w] & here) - __builtin_popcountll(strip->minus[w] & here);
    }
    return sum;
}

/* Whether a way through the row below a strip can still end within max: the cost there and the edits that the lengths
 * alone still ask for. */
static bool can_end(const struct table *table, size_t row, size_t start, size_t end, int64_t value) {
    int64_t left = (int64_t)(table->rows.count - row), max = (int64_t)table->max;
    for (size_t c = start;; c++) {
        int64_t cost = table->edits == DP_EDITS_ALL ? value : (int64_t)(row + c) - 2 * value;
        int64_t shift = (int64_t)(table->columns.count - c) - left;
        if (cost + (shift < 0 ? -shift : shift) <= max)
            return true;
        if (c == end)
            return false;
        value += table->steps[c];
    }
}

static size_t run_table(struct table *table) {
    size_t rows = table->rows.count, columns = table->columns.count, start = 0;
    int64_t value = 0; /* at (row, start) */
    memset(table->steps, table->edits == DP_EDITS_ALL, columns);
    for (size_t row = 0;; row += DP_STRIP_ROWS) {
        bool last = rows - row <= DP_STRIP_ROWS;
        size_t high = last ? rows - row : DP_STRIP_ROWS;
        size_t begin = row > table->slack ? row - table->slack : 0;
        size_t reach = row + high + (columns - rows) + table->slack;
        size_t end = last || reach > columns ? columns : reach;
        value += sum_steps(table->steps + start, begin - start);
        start = begin;
        int64_t above = last ? sum_steps(table->steps + start, end - start) : 0;
        dp_strip strip = {.columns = end - start};
        run_strip(table, &strip, row, high, start);
        if (last) {
            value += above + sum_column(&strip, high);
            return table->edits == DP_EDITS_ALL ? (size_t)value : rows + columns - 2 * (size_t)value;
        }
        value += table->edits == DP_EDITS_ALL ? (int64_t)high : 0;
        if (table->max < columns && !can_end(table, row + high, start, end, value))
            return table->max + 1;
    }
}

/* Bands are tried in steps of this factor: a try that fails has cost a fraction of the next one. */
#define WIDEN 4

doppel_status dp_strips_distance(dp_edits edits, dp_points rows, dp_points columns, size_t max, size_t *distance) {
    struct table table = {.edits = edits, .rows = rows, .columns = columns};
    if (!table_init(&table)) {
        table_free(&table);
        return DOPPEL_ERROR_MEMORY;
    }
    size_t shift = columns.count - rows.count, wide = shift + DP_STRIP_ROWS;
    for (;; wide *= WIDEN) {
        /* Nearly the whole table: straight to the end. */
        bool narrow = wide < max && wide < columns.count / WIDEN;
        table.max = narrow ? wide : max;
        table.slack = (table.max - shift) / 2;
        *distance = run_table(&table);
        if (*distance <= table.max || !narrow)
            break;
    }
    table_free(&table);
    return DOPPEL_OK;
}
