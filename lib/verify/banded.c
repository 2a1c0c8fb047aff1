/* banded.c - Levenshtein of one prepared text with others that are near or soon found to be far.
 *
 * Texts of bytes go through the walks kernel, eight at a time; walks.c says how it works. Others take the same walk
 * here, one by one, and texts that are too long or may differ too much for a band of one word go to strips.c. */
#include "verify/banded.h"

#include <stdlib.h>

/* Longer texts are left to strips.c: their strings of bits grow with the square of the length. */
#define MOST_POINTS 4096

static bool make_strings(dp_banded *banded) {
    size_t count = banded->text.count;
    if (!dp_symbols_init(&banded->symbols, banded->text))
        return false;
    banded->stride = (DP_WALK_AHEAD + count + DP_WALK_BEHIND) / 8 + 8;
    banded->strings = calloc((size_t)banded->symbols.count + 1, banded->stride);
    if (!banded->strings)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t number = dp_symbols_find(&banded->symbols, banded->text.data[i]), bit = DP_WALK_AHEAD + i;
        banded->strings[number * banded->stride + bit / 8] |= (uint8_t)(1u << bit % 8);
    }
    return true;
}

doppel_status dp_banded_init(dp_banded *banded, dp_points text, double min) {
    memset(banded, 0, sizeof *banded);
    banded->text = text;
    banded->min = min;
    for (size_t i = 0; i < DP_BANDED_AHEAD; i++)
        dp_edit_allowed(text.count + i, min, &banded->allowed[i]);
    if (!dp_banded_suits(text, 0))
        return DOPPEL_OK;
    if (!make_strings(banded))
        return DOPPEL_ERROR_MEMORY;
    for (size_t point = 0; point < DP_SYMBOLS_LOW; point++)
        banded->string_of[point] = (uint32_t)(banded->symbols.low[point] * banded->stride);
    return DOPPEL_OK;
}

void dp_banded_free(dp_banded *banded) {
    dp_symbols_free(&banded->symbols);
    free(banded->strings);
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

/* ---- walks ---- */

/* The band for at most k edits: strips.c says why it is this one. */
static dp_walk plan_walk(size_t rows, dp_packed text, size_t k) {
    size_t columns = text.count, apart = rows > columns ? rows - columns : columns - rows;
    size_t slack = (k - apart) / 2, high = slack + (columns > rows ? apart : 0);
    return (dp_walk){.text = (const uint8_t *)text.data,
                     .columns = columns,
                     .high = high,
                     .last = high + rows - columns,
                     .limit = k,
                     .distance = rows > columns ? apart : 0};
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

/* The walk of the kernel, for code points of any width. Gives the distance, or more than k. */
static size_t walk_wide(const dp_banded *banded, dp_packed text, size_t k) {
    dp_walk walk = plan_walk(banded->text.count, text, k);
    uint64_t plus = ~(uint64_t)0 << walk.high, minus = 0;
    for (size_t j = 0; j < walk.columns && walk.distance <= k; j++) {
        const uint8_t *string = banded->strings + dp_symbols_find(&banded->symbols, point_at(text, j)) * banded->stride;
        size_t bit = DP_WALK_AHEAD + j - walk.high;
        uint64_t equal = dp_load64(string + bit / 8) >> bit % 8;
        uint64_t zero = (((equal & plus) + plus) ^ plus) | equal | minus;
        walk.distance += ~zero >> walk.last & 1;
        uint64_t right_plus = minus | ~(zero | plus), right_minus = zero & plus;
        plus = right_minus | ~(zero >> 1 | right_plus);
        minus = zero >> 1 & right_plus;
    }
    return walk.distance;
}

bool dp_banded_suits(dp_points rows, size_t k) {
    return k <= DP_WALK_LIMIT && rows.count <= MOST_POINTS;
}

doppel_status dp_banded_pair(dp_points rows, dp_points columns, size_t k, size_t *distance) {
    dp_banded banded = {.text = rows};
    bool made = make_strings(&banded);
    if (made)
        *distance = walk_wide(&banded, (dp_packed){(const char *)columns.data, columns.count, 4}, k);
    dp_banded_free(&banded);
    return made ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* ---- measuring ---- */

static double similarity_of(const dp_banded *banded, size_t length, size_t distance) {
    size_t longer = length > banded->text.count ? length : banded->text.count;
    return distance <= allowed_at(banded, length) ? dp_edit_similarity(distance, longer) : -1;
}

static doppel_status measure_one(dp_banded *banded, dp_packed text, double *similarity) {
    size_t k = allowed_at(banded, text.count), distance;
    doppel_status status = DOPPEL_OK;
    if (banded->strings && k <= DP_WALK_LIMIT) {
        distance = walk_wide(banded, text, k);
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
static bool can_walk(const dp_banded *banded, const dp_packed *texts, size_t count) {
    bool can = banded->strings != NULL;
    for (size_t i = 0; i < count; i++)
        can &= texts[i].width == 1 && allowed_at(banded, texts[i].count) <= DP_WALK_LIMIT;
    return can;
}

doppel_status dp_banded_measure(dp_banded *banded, const dp_packed *texts, size_t count, double *similarities) {
    doppel_status status = DOPPEL_OK;
    if (!can_walk(banded, texts, count) || count < DP_WALKS) {
        for (size_t i = 0; i < count && !status; i++)
            status = measure_one(banded, texts[i], &similarities[i]);
        return status;
    }
    dp_walks walks = {.strings = banded->strings, .string_of = banded->string_of};
    for (size_t i = 0; i < count; i++)
        walks.walks[i] = plan_walk(banded->text.count, texts[i], allowed_at(banded, texts[i].count));
    dp_walks_kernel()(&walks);
    for (size_t i = 0; i < count; i++)
        similarities[i] = similarity_of(banded, texts[i].count, walks.walks[i].distance);
    return DOPPEL_OK;
}
