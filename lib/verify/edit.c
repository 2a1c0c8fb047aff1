/* edit.c - edit distances and the similarity 1 - d / max(length), on code points: of two texts (doppel_levenshtein,
 * doppel_indel, doppel_edit_similarity), and of one text with many (doppel_titles_add keeps texts ready,
 * doppel_titles_find compares one with all).
 *
 * Equal beginnings and ends cost nothing and are cut off first. A low cut-off uses a band around the diagonal, which
 * stops early if two texts are different; strips of the whole table do the rest. */
#include "kernel/kernel.h"
#include "verify/verify.h"

#include <stdlib.h>

/* ---- code points ---- */

#define REPLACEMENT 0xFFFD

size_t dp_points_decode(const char *text, size_t length, uint32_t *points) {
    const uint8_t *bytes = (const uint8_t *)text;
    size_t at = 0, count = 0;
    while (at < length) {
        while (length - at >= 8 && !(dp_load64(bytes + at) & 0x8080808080808080u))
            for (int i = 0; i < 8; i++)
                points[count++] = bytes[at++];
        if (at == length)
            break;
        int32_t point;
        at += dp_utf8_decode(bytes + at, bytes + length, &point);
        points[count++] = point < 0 ? REPLACEMENT : (uint32_t)point;
    }
    return count;
}

/* ---- symbols: the distinct code points of a text, numbered from 1, so that tables about them can be plain arrays
 * ---- */

/* Code points below this have a table of their own; most texts need nothing else. */
#define LOW_POINTS 256

typedef struct symbols {
    uint32_t low[LOW_POINTS];
    dp_hashmap high; /* of the others */
    uint32_t count;  /* of distinct code points */
} symbols;

/* In order of appearance; false when out of memory. */
static bool symbols_init(symbols *all, dp_points text) {
    memset(all, 0, sizeof *all);
    for (size_t i = 0; i < text.count; i++) {
        uint32_t point = text.data[i];
        if (point < LOW_POINTS) {
            if (!all->low[point])
                all->low[point] = ++all->count;
            continue;
        }
        uint64_t *number = dp_hashmap_add(&all->high, point);
        if (!number)
            return false;
        if (!*number)
            *number = ++all->count;
    }
    return true;
}

static void symbols_free(symbols *all) {
    dp_hashmap_free(&all->high);
}

/* The number of a code point; 0 when the text does not have it. */
static inline uint32_t symbols_find(const symbols *all, uint32_t point) {
    return point < LOW_POINTS ? all->low[point] : (uint32_t)dp_hashmap_find(&all->high, point);
}

/* ---- strips: an edit distance of two texts of any length in O(rows * columns / 64), less when it is known to be
 * small.
 *
 * The table has a row for each code point of the one text and a column for each of the other. It is computed in
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

typedef enum edit_kind { ALL_EDITS, INSERT_DELETE } edit_kind;

struct table {
    edit_kind edits;
    dp_points rows, columns;
    size_t max, slack;
    uint32_t *row_ids, *column_ids; /* numbers of the code points; 0: not among the rows */
    uint16_t *slot_of;              /* where the masks of each number begin, in the current strip; 0: not in it */
    uint16_t *slots;                /* the same for each column */
    uint64_t *masks;
    int8_t *steps; /* along the row above the current strip */
};

/* Numbers both texts by the code points of the rows. */
static bool number_texts(struct table *table, symbols *all) {
    size_t rows = table->rows.count, columns = table->columns.count;
    size_t strip = rows < DP_STRIP_ROWS ? rows : DP_STRIP_ROWS;
    table->row_ids = malloc(rows * sizeof *table->row_ids);
    table->column_ids = malloc(columns * sizeof *table->column_ids);
    table->slot_of = calloc((size_t)all->count + 1, sizeof *table->slot_of);
    table->slots = malloc(columns * sizeof *table->slots);
    table->masks = malloc((strip + 1) * DP_STRIP_WORDS * sizeof *table->masks);
    table->steps = malloc(columns);
    if (!table->row_ids || !table->column_ids || !table->slot_of || !table->slots || !table->masks || !table->steps)
        return false;
    for (size_t i = 0; i < rows; i++)
        table->row_ids[i] = symbols_find(all, table->rows.data[i]);
    for (size_t i = 0; i < columns; i++)
        table->column_ids[i] = symbols_find(all, table->columns.data[i]);
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
    symbols all;
    bool done = symbols_init(&all, table->rows) && number_texts(table, &all);
    symbols_free(&all);
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
    memset(strip->plus, table->edits == ALL_EDITS ? 0xFF : 0, sizeof strip->plus);
    memset(strip->minus, 0, sizeof strip->minus);
    if (table->edits == ALL_EDITS)
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

/* Whether a path through the row below a strip can still end within max: the cost there plus the edits that the lengths
 * alone still require. */
static bool can_end(const struct table *table, size_t row, size_t start, size_t end, int64_t value) {
    int64_t left = (int64_t)(table->rows.count - row), max = (int64_t)table->max;
    for (size_t c = start;; c++) {
        int64_t cost = table->edits == ALL_EDITS ? value : (int64_t)(row + c) - 2 * value;
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
    memset(table->steps, table->edits == ALL_EDITS, columns);
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
            return table->edits == ALL_EDITS ? (size_t)value : rows + columns - 2 * (size_t)value;
        }
        value += table->edits == ALL_EDITS ? (int64_t)high : 0;
        if (table->max < columns && !can_end(table, row + high, start, end, value))
            return table->max + 1;
    }
}

/* Bands are widened by this factor: a failed try costs a fraction of the next one. */
#define WIDEN 4

/* The distance, or any number above `max` when it is above that. `rows` is not empty and not longer than `columns`, and
 * `max` is at least the difference of the two lengths, at most their sum. */
static doppel_status strips_distance(edit_kind edits, dp_points rows, dp_points columns, size_t max, size_t *distance) {
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

/* ---- similarity ---- */

double dp_edit_similarity(size_t distance, size_t length) {
    return length ? 1 - (double)distance / (double)length : 1;
}

/* Division and subtraction round monotonically, so that the similarity never grows with the distance; the first guess
 * is off by rounding only. */
bool dp_edit_allowed(size_t length, double min, size_t *distance) {
    if (!(dp_edit_similarity(0, length) >= min))
        return false;
    double guess = (1 - min) * (double)length;
    size_t allowed = guess < (double)length ? (size_t)guess : length;
    while (allowed < length && dp_edit_similarity(allowed + 1, length) >= min)
        allowed++;
    while (allowed && dp_edit_similarity(allowed, length) < min)
        allowed--;
    *distance = allowed;
    return true;
}

/* ---- the band: Levenshtein of one prepared text with others that are near or soon found to be far.
 *
 * Texts of bytes go through the banded_edits kernel, eight at a time; kernel/edit.c says how it works. Others take the
 * same way here, one by one, and texts that are too long or may differ too much for a band of one word use strips. */

/* Longer texts use strips: their strings of bits grow with the square of the length. */
#define MOST_POINTS 4096

/* Code points of 1, 2 or 4 bytes each. */
typedef struct packed_text {
    const char *data;
    size_t count;
    unsigned width;
} packed_text;

/* Lengths up to this many above the prepared text's have their allowed distance in a table. */
#define ALLOWED_AHEAD 64

typedef struct banded_text {
    dp_points text; /* borrowed */
    double min;
    size_t allowed[ALLOWED_AHEAD]; /* at each length from text.count on */
    symbols symbols;
    uint8_t *strings; /* of bits, for each symbol: its positions in the text (kernel.h); NULL: the text is too long */
    size_t stride;    /* bytes from one string to the next */
    uint32_t string_of[LOW_POINTS];
    uint32_t *room;
    size_t room_capacity;
} banded_text;

/* Whether distances up to k of a text fit a band. */
static bool banded_suits(dp_points rows, size_t k) {
    return k <= DP_BAND_LIMIT && rows.count <= MOST_POINTS;
}

static bool make_strings(banded_text *banded) {
    size_t count = banded->text.count;
    if (!symbols_init(&banded->symbols, banded->text))
        return false;
    banded->stride = (DP_BAND_AHEAD + count + DP_BAND_BEHIND) / 8 + 8;
    banded->strings = calloc((size_t)banded->symbols.count + 1, banded->stride);
    if (!banded->strings)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t number = symbols_find(&banded->symbols, banded->text.data[i]), bit = DP_BAND_AHEAD + i;
        banded->strings[number * banded->stride + bit / 8] |= (uint8_t)(1u << bit % 8);
    }
    return true;
}

/* `min` is at most 1. Errors: DOPPEL_ERROR_MEMORY (free it even then). */
static doppel_status banded_init(banded_text *banded, dp_points text, double min) {
    memset(banded, 0, sizeof *banded);
    banded->text = text;
    banded->min = min;
    for (size_t i = 0; i < ALLOWED_AHEAD; i++)
        dp_edit_allowed(text.count + i, min, &banded->allowed[i]);
    if (!banded_suits(text, 0))
        return DOPPEL_OK;
    if (!make_strings(banded))
        return DOPPEL_ERROR_MEMORY;
    for (size_t point = 0; point < LOW_POINTS; point++)
        banded->string_of[point] = (uint32_t)(banded->symbols.low[point] * banded->stride);
    return DOPPEL_OK;
}

static void banded_free(banded_text *banded) {
    symbols_free(&banded->symbols);
    free(banded->strings);
    free(banded->room);
}

/* The largest distance to a text of this length that is similar enough. */
static size_t allowed_at(const banded_text *banded, size_t length) {
    size_t more = length > banded->text.count ? length - banded->text.count : 0, allowed = 0;
    if (more < ALLOWED_AHEAD)
        return banded->allowed[more];
    dp_edit_allowed(length, banded->min, &allowed);
    return allowed;
}

/* Whether a text of this length can be similar enough. */
static bool banded_fits(const banded_text *banded, size_t length) {
    size_t count = banded->text.count, apart = length > count ? length - count : count - length;
    return apart <= allowed_at(banded, length);
}

/* The band for at most k edits: see the strips for why it is this one. */
static dp_banded_edit plan_edit(size_t rows, packed_text text, size_t k) {
    size_t columns = text.count, apart = rows > columns ? rows - columns : columns - rows;
    size_t slack = (k - apart) / 2, high = slack + (columns > rows ? apart : 0);
    return (dp_banded_edit){.text = (const uint8_t *)text.data,
                            .columns = columns,
                            .high = high,
                            .last = high + rows - columns,
                            .limit = k,
                            .distance = rows > columns ? apart : 0};
}

static inline uint32_t point_at(packed_text text, size_t i) {
    uint16_t half;
    uint32_t whole;
    if (text.width == 1)
        return (uint8_t)text.data[i];
    if (text.width == 2)
        return memcpy(&half, text.data + 2 * i, 2), half;
    return memcpy(&whole, text.data + 4 * i, 4), whole;
}

/* What the kernel does, for code points of any width. Gives the distance, or more than k. */
static size_t measure_wide(const banded_text *banded, packed_text text, size_t k) {
    dp_banded_edit edit = plan_edit(banded->text.count, text, k);
    uint64_t plus = ~(uint64_t)0 << edit.high, minus = 0;
    for (size_t j = 0; j < edit.columns && edit.distance <= k; j++) {
        const uint8_t *string = banded->strings + symbols_find(&banded->symbols, point_at(text, j)) * banded->stride;
        size_t bit = DP_BAND_AHEAD + j - edit.high;
        uint64_t equal = dp_load64(string + bit / 8) >> bit % 8;
        uint64_t zero = (((equal & plus) + plus) ^ plus) | equal | minus;
        edit.distance += ~zero >> edit.last & 1;
        uint64_t right_plus = minus | ~(zero | plus), right_minus = zero & plus;
        plus = right_minus | ~(zero >> 1 | right_plus);
        minus = zero >> 1 & right_plus;
    }
    return edit.distance;
}

/* The distance of two texts that suit, or k + 1 when it is above k, which is at least the difference of the lengths. */
static doppel_status banded_pair(dp_points rows, dp_points columns, size_t k, size_t *distance) {
    banded_text banded = {.text = rows};
    bool made = make_strings(&banded);
    if (made)
        *distance = measure_wide(&banded, (packed_text){(const char *)columns.data, columns.count, 4}, k);
    banded_free(&banded);
    return made ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static double similarity_of(const banded_text *banded, size_t length, size_t distance) {
    size_t longer = length > banded->text.count ? length : banded->text.count;
    return distance <= allowed_at(banded, length) ? dp_edit_similarity(distance, longer) : -1;
}

static doppel_status measure_one(banded_text *banded, packed_text text, double *similarity) {
    size_t k = allowed_at(banded, text.count), distance;
    doppel_status status = DOPPEL_OK;
    if (banded->strings && k <= DP_BAND_LIMIT) {
        distance = measure_wide(banded, text, k);
    } else {
        if (!dp_reserve(&banded->room, &banded->room_capacity, text.count + 1, sizeof *banded->room))
            return DOPPEL_ERROR_MEMORY;
        for (size_t i = 0; i < text.count; i++)
            banded->room[i] = point_at(text, i);
        status = dp_levenshtein(banded->text, (dp_points){banded->room, text.count}, k, &distance);
    }
    if (!status)
        *similarity = similarity_of(banded, text.count, distance);
    return status;
}

/* Whether the kernel can take them all. */
static bool can_measure_together(const banded_text *banded, const packed_text *texts, size_t count) {
    bool can = banded->strings != NULL;
    for (size_t i = 0; i < count; i++)
        can &= texts[i].width == 1 && allowed_at(banded, texts[i].count) <= DP_BAND_LIMIT;
    return can;
}

/* The similarity to each of up to DP_BANDED_EDITS texts, whose lengths fit; -1 when it is below min.
 * Errors: DOPPEL_ERROR_MEMORY. */
static doppel_status banded_measure(banded_text *banded, const packed_text *texts, size_t count, double *similarities) {
    doppel_status status = DOPPEL_OK;
    if (!can_measure_together(banded, texts, count) || count < DP_BANDED_EDITS) {
        for (size_t i = 0; i < count && !status; i++)
            status = measure_one(banded, texts[i], &similarities[i]);
        return status;
    }
    dp_banded_edits edits = {.strings = banded->strings, .string_of = banded->string_of};
    for (size_t i = 0; i < count; i++)
        edits.edits[i] = plan_edit(banded->text.count, texts[i], allowed_at(banded, texts[i].count));
    dp_banded_edits_kernel()(&edits);
    for (size_t i = 0; i < count; i++)
        similarities[i] = similarity_of(banded, texts[i].count, edits.edits[i].distance);
    return DOPPEL_OK;
}

/* ---- two texts ---- */

/* Cuts off what both texts begin and end with, and puts the shorter one first. */
static void trim(dp_points *a, dp_points *b) {
    if (a->count > b->count) {
        dp_points swap = *a;
        *a = *b;
        *b = swap;
    }
    size_t same = 0;
    while (same < a->count && a->data[same] == b->data[same])
        same++;
    *a = (dp_points){a->data + same, a->count - same};
    *b = (dp_points){b->data + same, b->count - same};
    while (a->count && a->data[a->count - 1] == b->data[b->count - 1]) {
        a->count--;
        b->count--;
    }
}

static doppel_status measure(edit_kind edits, dp_points a, dp_points b, size_t max, size_t *distance) {
    trim(&a, &b);
    /* No distance is larger than this; it also keeps max + 1 from wrapping around. */
    size_t most = edits == ALL_EDITS ? b.count : a.count + b.count;
    size_t limit = max < most ? max : most, found = b.count;
    if (b.count - a.count > limit) {
        *distance = limit + 1;
        return DOPPEL_OK;
    }
    doppel_status status = DOPPEL_OK;
    if (a.count && edits == ALL_EDITS && banded_suits(a, limit))
        status = banded_pair(a, b, limit, &found);
    else if (a.count)
        status = strips_distance(edits, a, b, limit, &found);
    if (status == DOPPEL_OK)
        *distance = found <= limit ? found : limit + 1;
    return status;
}

doppel_status dp_levenshtein(dp_points a, dp_points b, size_t max, size_t *distance) {
    return measure(ALL_EDITS, a, b, max, distance);
}

doppel_status dp_indel(dp_points a, dp_points b, size_t max, size_t *distance) {
    return measure(INSERT_DELETE, a, b, max, distance);
}

/* Two decoded texts. Short ones need no allocation. */
struct decoded_pair {
    dp_points a, b;
    uint32_t *room, here[512];
};

static bool pair_init(struct decoded_pair *pair, doppel_slice a, doppel_slice b) {
    size_t need = a.length + b.length;
    pair->room = pair->here;
    if (need > sizeof pair->here / sizeof *pair->here)
        pair->room = need < a.length || need > SIZE_MAX / sizeof *pair->room ? NULL : malloc(need * sizeof *pair->room);
    if (!pair->room)
        return false;
    pair->a = (dp_points){pair->room, dp_points_decode(a.data, a.length, pair->room)};
    uint32_t *rest = pair->room + pair->a.count;
    pair->b = (dp_points){rest, dp_points_decode(b.data, b.length, rest)};
    return true;
}

static void pair_free(struct decoded_pair *pair) {
    if (pair->room != pair->here)
        free(pair->room);
}

static doppel_status measure_utf8(edit_kind edits, doppel_slice a, doppel_slice b, size_t max, size_t *distance) {
    struct decoded_pair pair;
    if (!pair_init(&pair, a, b))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = measure(edits, pair.a, pair.b, max, distance);
    pair_free(&pair);
    return status;
}

doppel_status doppel_levenshtein(doppel_slice a, doppel_slice b, size_t max, size_t *distance) {
    return measure_utf8(ALL_EDITS, a, b, max, distance);
}

doppel_status doppel_indel(doppel_slice a, doppel_slice b, size_t max, size_t *distance) {
    return measure_utf8(INSERT_DELETE, a, b, max, distance);
}

doppel_status doppel_edit_similarity(doppel_slice a, doppel_slice b, double min, double *similarity) {
    struct decoded_pair pair;
    if (!pair_init(&pair, a, b))
        return DOPPEL_ERROR_MEMORY;
    size_t length = pair.a.count > pair.b.count ? pair.a.count : pair.b.count, allowed, distance;
    doppel_status status = DOPPEL_OK;
    if (!dp_edit_allowed(length, min, &allowed))
        *similarity = 0;
    else if (!(status = dp_levenshtein(pair.a, pair.b, allowed, &distance)))
        *similarity = distance <= allowed ? dp_edit_similarity(distance, length) : 0;
    pair_free(&pair);
    return status;
}

/* ---- one text against many: doppel_titles_add keeps texts ready, doppel_titles_find compares one with all.
 *
 * Two filters precede the edit distance d. Both are lower bounds of it, so that no text is lost:
 * - lengths: d is at least their difference;
 * - letter counts (kernel.h): 31 counters of code points by class, and the length as the 32nd. A substitution changes
 * two of the 31 by one, an insertion or deletion one of them and the length, and cutting a counter off at 255 can only
 *   bring two of them nearer to each other. So the sum of absolute differences is at most 2 d.
 * What passes is measured by the band.
 *
 * Texts are kept in chunks, each with the letter counts in groups of eight as the kernel reads them; their code points
 * stand in one array, each in 1, 2 or 4 bytes as the largest of the text needs. */

/* 4096 texts: letter counts of 128 KiB, which with their masks stay in the second-level cache between filter and
 * measure. */
enum { CHUNK = 4096, CHUNK_GROUPS = CHUNK / DP_LETTER_GROUP };

struct chunk {
    uint8_t letters[CHUNK_GROUPS][DP_LETTER_COUNTS / 8][DP_LETTER_GROUP][8];
    struct title {
        uint64_t start; /* in bytes of doppel_titles.points */
        uint64_t length : 61, width : 3;
    } titles[CHUNK];
};

struct doppel_titles {
    struct chunk **chunks;
    size_t chunk_capacity, count;
    dp_buffer points;
    uint32_t *room; /* for decoding */
    size_t room_capacity;
};

doppel_status doppel_titles_create(doppel_titles **titles) {
    *titles = calloc(1, sizeof **titles);
    return *titles ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

void doppel_titles_free(doppel_titles *titles) {
    if (!titles)
        return;
    for (size_t i = 0; i * CHUNK < titles->count; i++)
        free(titles->chunks[i]);
    free(titles->chunks);
    dp_buffer_free(&titles->points);
    free(titles->room);
    free(titles);
}

size_t doppel_titles_count(const doppel_titles *titles) {
    return titles->count;
}

/* Latin letters get a counter each, small and capital together; other ASCII shares five; the rest is spread over all by
 * the high bits of a product with 2^32 divided by the golden ratio. */
static unsigned counter_of(uint32_t point) {
    if (point >= 128)
        return (unsigned)((uint64_t)(point * 0x9E3779B1u) * 31 >> 32);
    uint32_t letter = (point | 32) - 'a';
    return letter < 26 ? letter : 26 + point % 5;
}

void dp_title_letters(dp_points text, uint8_t letters[32]) {
    memset(letters, 0, 32);
    for (size_t i = 0; i < text.count; i++) {
        uint8_t *counter = &letters[counter_of(text.data[i])];
        *counter = (uint8_t)(*counter + (*counter < 255));
    }
    letters[31] = (uint8_t)(text.count < 255 ? text.count : 255);
}

static unsigned width_of(dp_points text) {
    uint32_t all = 0;
    for (size_t i = 0; i < text.count; i++)
        all |= text.data[i];
    return all < 256 ? 1 : all < 65536 ? 2 : 4;
}

/* Makes room for the points of a text, aligned to their width; a chunk for it if the last one is full. */
static bool make_room(doppel_titles *titles, size_t bytes) {
    dp_buffer *points = &titles->points;
    if (!dp_reserve(&points->data, &points->capacity, points->size + bytes + 4, 1))
        return false;
    if (titles->count % CHUNK)
        return true;
    size_t at = titles->count / CHUNK;
    if (!dp_reserve(&titles->chunks, &titles->chunk_capacity, at + 1, sizeof *titles->chunks))
        return false;
    titles->chunks[at] = aligned_alloc(64, (sizeof(struct chunk) + 63) / 64 * 64);
    return titles->chunks[at] != NULL;
}

static void put_points(char *at, dp_points text, unsigned width) {
    for (size_t i = 0; i < text.count; i++) {
        uint16_t half = (uint16_t)text.data[i];
        if (width == 1)
            at[i] = (char)text.data[i];
        else if (width == 2)
            memcpy(at + 2 * i, &half, 2);
        else
            memcpy(at + 4 * i, &text.data[i], 4);
    }
}

static doppel_status add_points(doppel_titles *titles, dp_points text) {
    unsigned width = width_of(text);
    if (!make_room(titles, text.count * width))
        return DOPPEL_ERROR_MEMORY;
    struct chunk *chunk = titles->chunks[titles->count / CHUNK];
    size_t at = titles->count % CHUNK, start = (titles->points.size + width - 1) / width * width;
    put_points(titles->points.data + start, text, width);
    titles->points.size = start + text.count * width;
    chunk->titles[at] = (struct title){.start = start, .length = text.count & (UINT64_MAX >> 3), .width = width & 7};
    uint8_t letters[DP_LETTER_COUNTS];
    dp_title_letters(text, letters);
    for (size_t row = 0; row < DP_LETTER_COUNTS / 8; row++)
        memcpy(chunk->letters[at / DP_LETTER_GROUP][row][at % DP_LETTER_GROUP], letters + 8 * row, 8);
    titles->count++;
    return DOPPEL_OK;
}

doppel_status doppel_titles_add(doppel_titles *titles, doppel_slice text) {
    if (!dp_reserve(&titles->room, &titles->room_capacity, text.length, sizeof *titles->room))
        return DOPPEL_ERROR_MEMORY;
    return add_points(titles, (dp_points){titles->room, dp_points_decode(text.data, text.length, titles->room)});
}

typedef bool (*found_function)(size_t number, double similarity, void *user);

struct scan {
    const doppel_titles *titles;
    banded_text banded;
    uint8_t letters[DP_LETTER_COUNTS];
    unsigned letter_limit;
    found_function found;
    void *user;
};

/* The largest sum of differences of letter counts that a text similar enough can have: 2 d for the largest d that any
 * length allows. The similarity 1 - d / length grows with the length, which is at most count + d, and at that length it
 * does not grow with d, so the first d that fails is the end. */
static unsigned find_letter_limit(size_t count, double min) {
    size_t most = DP_LETTER_COUNTS * 255 / 2, distance = 0;
    while (distance < most && dp_edit_similarity(distance + 1, count + distance + 1) >= min)
        distance++;
    return (unsigned)(2 * distance);
}

/* Measures up to DP_BANDED_EDITS texts and reports those that are similar enough. */
static doppel_status measure_picked(struct scan *scan, size_t first, const uint16_t *picked, size_t count) {
    const struct title *titles = scan->titles->chunks[first / CHUNK]->titles;
    packed_text texts[DP_BANDED_EDITS];
    double similarities[DP_BANDED_EDITS];
    for (size_t i = 0; i < count; i++) {
        const struct title *title = &titles[picked[i]];
        texts[i] = (packed_text){scan->titles->points.data + title->start, title->length, title->width};
    }
    doppel_status status = banded_measure(&scan->banded, texts, count, similarities);
    for (size_t i = 0; i < count && !status; i++)
        if (similarities[i] >= 0 && !scan->found(first + picked[i], similarities[i], scan->user))
            status = DOPPEL_ERROR_INTERRUPTED;
    return status;
}

/* The numbers, inside the chunk, of the texts that pass the filters. */
static size_t pick(const struct scan *scan, const struct chunk *chunk, size_t texts, uint16_t *picked) {
    uint8_t near[CHUNK_GROUPS + 8] = {0};
    dp_letter_counts_kernel()(&chunk->letters[0][0][0][0], (texts + DP_LETTER_GROUP - 1) / DP_LETTER_GROUP,
                              scan->letters, scan->letter_limit, near);
    /* Unused places have arbitrary counts. */
    if (texts % DP_LETTER_GROUP)
        near[texts / DP_LETTER_GROUP] &= (uint8_t)((1u << texts % DP_LETTER_GROUP) - 1);
    size_t count = 0;
    for (size_t eight = 0; eight * 64 < texts; eight++) {
        for (uint64_t hits = dp_load64(near + 8 * eight); hits; hits &= hits - 1) {
            size_t at = eight * 64 + (size_t)__builtin_ctzll(hits);
            if (!banded_fits(&scan->banded, chunk->titles[at].length))
                continue;
            __builtin_prefetch(scan->titles->points.data + chunk->titles[at].start);
            picked[count++] = (uint16_t)at;
        }
    }
    return count;
}

static doppel_status scan_all(struct scan *scan) {
    uint16_t picked[CHUNK];
    for (size_t first = 0; first < scan->titles->count; first += CHUNK) {
        size_t texts = scan->titles->count - first;
        size_t count = pick(scan, scan->titles->chunks[first / CHUNK], texts < CHUNK ? texts : CHUNK, picked);
        for (size_t i = 0; i < count; i += DP_BANDED_EDITS) {
            size_t left = count - i;
            DP_TRY(measure_picked(scan, first, picked + i, left < DP_BANDED_EDITS ? left : DP_BANDED_EDITS));
        }
    }
    return DOPPEL_OK;
}

doppel_status doppel_titles_find(const doppel_titles *titles, doppel_slice text, double min, found_function found,
                                 void *user) {
    /* Even an equal text is not similar enough (or min is not a number). */
    if (!(1 >= min))
        return DOPPEL_OK;
    uint32_t *points = text.length < SIZE_MAX / sizeof *points ? malloc((text.length + 1) * sizeof *points) : NULL;
    if (!points)
        return DOPPEL_ERROR_MEMORY;
    size_t count = dp_points_decode(text.data, text.length, points);
    struct scan scan = {.titles = titles, .letter_limit = find_letter_limit(count, min), .found = found, .user = user};
    dp_title_letters((dp_points){points, count}, scan.letters);
    doppel_status status = banded_init(&scan.banded, (dp_points){points, count}, min);
    DP_THEN(status, scan_all(&scan));
    banded_free(&scan.banded);
    free(points);
    return status;
}
