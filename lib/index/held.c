/* held.c - builds the held side of a join: read, sort, list the positions of each fingerprint, plan the tables. */
#include "index/held.h"

#include <stdlib.h>

/* Positions and ids are 32 bits wide. */
#define MOST_HELD (((uint64_t)1 << 32) - 2)

static size_t item_size(const dp_held *held) {
    return held->words * sizeof(uint64_t);
}

/* ---- reading ---- */

doppel_status dp_held_too_little(uint64_t count, uint64_t bytes, doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_USAGE,
                   "too little memory: %llu fingerprints to hold need at least %llu MiB; hold the smaller side",
                   (unsigned long long)count, (unsigned long long)(bytes >> 20) + 1);
}

/* Building takes three copies of the fingerprints, and two numbers each. */
static doppel_status check_memory(const dp_held *held, uint64_t count, const dp_held_options *options,
                                  doppel_error *error) {
    uint64_t need = count * (3 * item_size(held) + 8);
    if (count > MOST_HELD)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%llu fingerprints to hold are too many; the most is %llu",
                       (unsigned long long)count, (unsigned long long)MOST_HELD);
    return need <= options->memory ? DOPPEL_OK : dp_held_too_little(count, need, error);
}

/* Reads all into *raw, in secret order. */
static doppel_status read_all(dp_held *held, dp_feed *feed, const dp_held_options *options, uint64_t **raw,
                              doppel_error *error) {
    size_t capacity = 0, count = 1;
    uint64_t *room = malloc(DP_FEED_BATCH * item_size(held));
    doppel_status status = room ? DOPPEL_OK : dp_no_memory(error);
    if (status == DOPPEL_OK && feed->settled && (status = check_memory(held, feed->count, options, error)) == DOPPEL_OK)
        status = dp_reserve(raw, &capacity, feed->count, item_size(held)) ? DOPPEL_OK : dp_no_memory(error);
    while (status == DOPPEL_OK && count) {
        const uint64_t *got;
        count = DP_FEED_BATCH;
        if (dp_stopped(options->stop))
            status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        else
            status = dp_feed_next(feed, room, &count, &got, error);
        if (status == DOPPEL_OK)
            status = check_memory(held, held->count + count, options, error);
        if (status == DOPPEL_OK && !dp_reserve(raw, &capacity, held->count + count, item_size(held)))
            status = dp_no_memory(error);
        if (status == DOPPEL_OK && count) {
            dp_order_apply_many(&held->order, got, count, *raw + held->count * held->words);
            held->count += count;
        }
    }
    free(room);
    return status;
}

/* ---- distinct fingerprints, ascending ---- */

static bool less(const uint64_t *left, const uint64_t *right, size_t words) {
    return words == 2 && left[1] != right[1] ? left[1] < right[1] : left[0] < right[0];
}

/* One byte of numbers of 128 bits: from -> to. False, and nothing is done, when all have the same. */
static bool sort_byte(const uint64_t *from, size_t count, uint64_t *to, int byte) {
    size_t places[256] = {0}, next = 0;
    int word = byte / 8, shift = byte % 8 * 8;
    for (size_t i = 0; i < count; i++)
        places[from[2 * i + (size_t)word] >> shift & 255]++;
    if (places[from[word] >> shift & 255] == count)
        return false;
    for (int value = 0; value < 256; value++) {
        size_t here = places[value];
        places[value] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(to + 2 * places[from[2 * i + (size_t)word] >> shift & 255]++, from + 2 * i, 16);
    return true;
}

static void sort128(uint64_t *numbers, size_t count, uint64_t *scratch) {
    uint64_t *from = numbers, *to = scratch;
    for (int byte = 0; byte < 16; byte++)
        if (sort_byte(from, count, to, byte)) {
            uint64_t *swapped = from;
            from = to;
            to = swapped;
        }
    if (from != numbers)
        memcpy(numbers, from, count * 16);
}

static bool sort_values(dp_held *held, const uint64_t *raw) {
    size_t count = (size_t)held->count, kept = 0;
    uint64_t *scratch = dp_big_alloc(count * item_size(held));
    held->values = dp_big_alloc((count + 8) * item_size(held));
    if (!scratch || !held->values) {
        free(scratch);
        return false;
    }
    if (count)
        memcpy(held->values, raw, count * item_size(held));
    if (count && held->words == 1)
        dp_sort64(held->values, count, scratch);
    else if (count)
        sort128(held->values, count, scratch);
    free(scratch);
    for (size_t i = 0; i < count; i++) {
        uint64_t *value = held->values + i * held->words;
        if (!kept || less(value - held->words, value, held->words))
            memmove(held->values + kept++ * held->words, value, item_size(held));
    }
    held->distinct = (uint32_t)kept;
    return true;
}

/* ---- positions of each ---- */

/* A way into the values by their top bits. */
typedef struct entrance {
    uint32_t *begins;
    int shift, word;
} entrance;

/* About one value each: as many top bits as the count has, at most 26. */
static bool build_entrance(const dp_held *held, entrance *e) {
    int bits = 1, width = held->bits > 64 ? 64 : held->bits;
    while (bits < 26 && bits < width && held->distinct >> bits)
        bits++;
    e->shift = width - bits;
    e->word = (int)held->words - 1;
    size_t count = ((size_t)1 << bits) + 1;
    e->begins = calloc(count + 1, sizeof *e->begins);
    if (!e->begins)
        return false;
    for (size_t i = 0; i < held->distinct; i++)
        e->begins[(held->values[i * held->words + (size_t)e->word] >> e->shift) + 1]++;
    for (size_t i = 1; i <= count; i++)
        e->begins[i] += e->begins[i - 1];
    return true;
}

/* The id of a value that is there. */
static uint32_t id_of(const dp_held *held, const entrance *e, const uint64_t *value) {
    uint64_t top = value[e->word] >> e->shift;
    uint32_t low = e->begins[top], high = e->begins[top + 1];
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (less(value, held->values + (size_t)middle * held->words, held->words))
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* Counts of id stand at id + 2, their sums say at id + 1 where id begins, and are moved on from there to where it ends,
 * which is where the next begins. */
static void fill_positions(dp_held *held, const uint32_t *ids) {
    uint32_t *starts = held->starts;
    for (size_t i = 0; i < held->count; i++)
        starts[ids[i] + 2]++;
    for (size_t i = 1; i < (size_t)held->distinct + 2; i++)
        starts[i] += starts[i - 1];
    for (size_t i = 0; i < held->count; i++)
        held->positions[starts[ids[i] + 1]++] = (uint32_t)i;
}

static bool list_positions(dp_held *held, const uint64_t *raw) {
    entrance e = {0};
    size_t count = (size_t)held->count;
    held->starts = calloc((size_t)held->distinct + 2, sizeof *held->starts);
    held->positions = dp_big_alloc((count + 1) * sizeof *held->positions);
    uint32_t *ids = dp_big_alloc((count + 1) * sizeof *ids);
    bool made = held->starts && held->positions && ids && build_entrance(held, &e);
    for (size_t i = 0; made && i < count; i++)
        ids[i] = id_of(held, &e, raw + i * held->words);
    if (made)
        fill_positions(held, ids);
    free(e.begins);
    free(ids);
    return made;
}

/* ---- all of it ---- */

static doppel_status build(dp_held *held, dp_feed *feed, const dp_held_options *options, doppel_error *error) {
    uint64_t *raw = NULL;
    doppel_status status = read_all(held, feed, options, &raw, error);
    if (status == DOPPEL_OK && !(sort_values(held, raw) && list_positions(held, raw)))
        status = dp_no_memory(error);
    free(raw);
    return status == DOPPEL_OK ? dp_held_plan_tables(held, options, error) : status;
}

doppel_status dp_held_build(dp_held *held, dp_feed *feed, const dp_held_options *options, doppel_error *error) {
    memset(held, 0, sizeof *held);
    held->bits = feed->bits;
    held->words = feed->words;
    held->distance = options->distance;
    dp_order_init(&held->order, held->bits, options->secret);
    doppel_status status = build(held, feed, options, error);
    if (status != DOPPEL_OK)
        dp_held_free(held);
    return status;
}

void dp_held_free(dp_held *held) {
    for (int t = 0; t < held->tables; t++) {
        free(held->table[t].flips);
        free(held->table[t].directory);
        free(held->table[t].column);
        free(held->table[t].filter);
        free(held->table[t].ids);
    }
    free(held->values);
    free(held->starts);
    free(held->positions);
    memset(held, 0, sizeof *held);
}
