/* banded.c - Levenshtein of one prepared text with others that are near or soon found to be far.
 *
 * With at most k edits a way through the table of distances keeps to k + 1 diagonals (strips.c says why). Up to 57 of
 * them fit a word that moves down one row with every column (Hyyro 2003): bit b of column j is row j - high + b, so
 * that a bit is a diagonal. As there, a column is the bits `plus` and `minus`, the differences to the row above; `zero`
 * marks cells that are equal to their upper left neighbour. Outside the band nothing is looked at, which can only make
 * values larger. Rows above the first match nothing and start at 0, which makes row 0 come out as it should: cell (0,
 * j) is j diagonal steps of one from a 0.
 *
 * Values never fall along a diagonal. So the walk down the one that ends in the last cell stops as soon as it has
 * passed k: after a few columns, when two texts have nothing in common. */
#include "verify/banded.h"

#include <stdlib.h>

/* 64 bits are read from a string at a byte's border and shifted by up to 7: 57 remain, k = 56 needs them all. */
#define MOST_EDITS 56

/* The strings have a zero for the rows before the first and after the last that a word can reach: 64 ahead; behind, the
 * other text can be MOST_EDITS longer, and a read takes 64. */
#define AHEAD 64
#define BEHIND (MOST_EDITS + 64)

/* Longer texts are left to strips.c: their strings of bits grow with the square of the length. */
#define MOST_POINTS 4096

static bool make_rows(dp_banded *banded) {
    size_t count = banded->text.count;
    if (!dp_symbols_init(&banded->symbols, banded->text))
        return false;
    banded->stride = (AHEAD + count + BEHIND) / 8 + 8;
    banded->rows = calloc((size_t)banded->symbols.count + 1, banded->stride);
    if (!banded->rows)
        return false;
    for (size_t i = 0; i < count; i++) {
        uint8_t *row = banded->rows + dp_symbols_find(&banded->symbols, banded->text.data[i]) * banded->stride;
        row[(AHEAD + i) / 8] |= (uint8_t)(1u << (AHEAD + i) % 8);
    }
    return true;
}

doppel_status dp_banded_init(dp_banded *banded, dp_points text, double min) {
    memset(banded, 0, sizeof *banded);
    banded->text = text;
    banded->min = min;
    for (size_t i = 0; i < DP_BANDED_AHEAD; i++)
        dp_edit_allowed(text.count + i, min, &banded->allowed[i]);
    return !dp_banded_suits(text, 0) || make_rows(banded) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

void dp_banded_free(dp_banded *banded) {
    dp_symbols_free(&banded->symbols);
    free(banded->rows);
    free(banded->room);
}

/* The largest distance to a text of this length that is similar enough. */
static size_t allowed_at(const dp_banded *banded, size_t length) {
    size_t more = length > banded->text.count ? length - banded->text.count : 0, allowed = 0;
    if (more < DP_BANDED_AHEAD)
        return banded->allowed[more];
    dp_edit_allowed(length, banded->min, &allowed);
    return allowed;
}

bool dp_banded_fits(const dp_banded *banded, size_t length) {
    size_t count = banded->text.count, apart = length > count ? length - count : count - length;
    return apart <= allowed_at(banded, length);
}

static inline uint32_t point_at(dp_packed text, size_t i) {
    uint16_t half;
    uint32_t whole;
    if (text.width == 1)
        return (uint8_t)text.data[i];
    if (text.width == 2)
        return memcpy(&half, text.data + 2 * i, 2), half;
    return memcpy(&whole, text.data + 4 * i, 4), whole;
}

/* The distance, or k + 1 when it is above k; k is at most MOST_EDITS and at least the difference of the lengths. */
static inline __attribute__((always_inline)) size_t walk(const dp_banded *banded, dp_packed text, size_t k) {
    size_t rows = banded->text.count, columns = text.count, distance = rows > columns ? rows - columns : 0;
    size_t slack = (k - (rows > columns ? rows - columns : columns - rows)) / 2;
    size_t high = slack + (columns > rows ? columns - rows : 0);
    size_t last = high + rows - columns; /* the bit of the diagonal that ends in the last cell */
    uint64_t plus = ~(uint64_t)0 << high, minus = 0;
    for (size_t j = 0; j < columns; j++) {
        const uint8_t *row = banded->rows + dp_symbols_find(&banded->symbols, point_at(text, j)) * banded->stride;
        size_t bit = AHEAD + j - high;
        uint64_t equal = dp_load64(row + bit / 8) >> bit % 8;
        uint64_t zero = (((equal & plus) + plus) ^ plus) | equal | minus;
        distance += ~zero >> last & 1;
        if (distance > k)
            break;
        uint64_t right_plus = minus | ~(zero | plus), right_minus = zero & plus;
        plus = right_minus | ~(zero >> 1 | right_plus);
        minus = zero >> 1 & right_plus;
    }
    return distance;
}

bool dp_banded_suits(dp_points rows, size_t k) {
    return k <= MOST_EDITS && rows.count <= MOST_POINTS;
}

doppel_status dp_banded_pair(dp_points rows, dp_points columns, size_t k, size_t *distance) {
    dp_banded banded = {.text = rows};
    bool made = make_rows(&banded);
    if (made)
        *distance = walk(&banded, (dp_packed){(const char *)columns.data, columns.count, sizeof *columns.data}, k);
    dp_banded_free(&banded);
    return made ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* Too long or too many edits for a word. */
static doppel_status measure_wide(dp_banded *banded, dp_packed text, size_t k, size_t *distance) {
    if (!dp_reserve(&banded->room, &banded->room_capacity, text.count + 1, sizeof *banded->room))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < text.count; i++)
        banded->room[i] = point_at(text, i);
    return dp_levenshtein(banded->text, (dp_points){banded->room, text.count}, k, distance);
}

doppel_status dp_banded_measure(dp_banded *banded, dp_packed text, double *similarity) {
    size_t k = allowed_at(banded, text.count), distance;
    doppel_status status = DOPPEL_OK;
    if (!banded->rows || k > MOST_EDITS)
        status = measure_wide(banded, text, k, &distance);
    else if (text.width == 1)
        distance = walk(banded, (dp_packed){text.data, text.count, 1}, k);
    else
        distance = walk(banded, text, k);
    if (status)
        return status;
    size_t longer = text.count > banded->text.count ? text.count : banded->text.count;
    *similarity = distance <= k ? dp_edit_similarity(distance, longer) : -1;
    return DOPPEL_OK;
}
