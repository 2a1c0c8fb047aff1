/* near.c - candidates by fingerprints: documents with one fingerprint stand in one bucket, and look at it and at those
 * of fingerprints within the distance. */
#include "batch/batch.h"

#include <stdlib.h>

/* Two rows, each the first with its fingerprint. */
typedef struct row_pair {
    uint32_t a, b;
} row_pair;

typedef struct joining {
    doppel_batch *batch;
    uint32_t *first; /* of each row: the first row with its fingerprint */
    row_pair *pairs;
    size_t count, room;
} joining;

/* doppel_join_options.pairs */
static doppel_status take_pairs(const doppel_pair *pairs, size_t count, void *user) {
    joining *j = user;
    for (size_t i = 0; i < count; i++) {
        if (!pairs[i].distance) {
            j->first[pairs[i].b] = (uint32_t)pairs[i].a;
            continue;
        }
        if (!dp_reserve(&j->pairs, &j->room, j->count + 1, sizeof *j->pairs))
            return DOPPEL_ERROR_MEMORY;
        j->pairs[j->count++] = (row_pair){(uint32_t)pairs[i].a, (uint32_t)pairs[i].b};
    }
    return DOPPEL_OK;
}

/* The fingerprints of all rows, one or two words each; NULL: no memory. */
static uint64_t *gather(const doppel_batch *batch) {
    size_t words = batch->bits > 64 ? 2 : 1;
    uint64_t *array = malloc((batch->row_count + 1) * words * sizeof *array);
    for (size_t i = 0; array && i < batch->row_count; i++)
        memcpy(array + i * words, batch->docs[batch->rows[i]].fingerprint, words * sizeof *array);
    return array;
}

static void on_progress(uint64_t done, uint64_t total, void *user) {
    dp_batch_tell(((joining *)user)->batch, "candidates", done, total);
}

static doppel_status join(joining *j, doppel_error *error) {
    doppel_batch *batch = j->batch;
    uint64_t *array = gather(batch);
    doppel_source source = {.size = sizeof source, .array = array, .count = batch->row_count};
    doppel_join_options options = {.size = sizeof options,
                                   .bits = batch->bits,
                                   .threads = (int)batch->threads,
                                   .memory = batch->options.memory,
                                   .tmp = batch->options.tmp,
                                   .pairs = take_pairs,
                                   .progress = on_progress,
                                   .user = j,
                                   .stop = batch->input.stop};
    doppel_join_counts counts = {0};
    doppel_status status =
        array ? doppel_join(&source, batch->distance, &options, &counts, error) : dp_no_memory(error);
    batch->stats.spilled_bytes += counts.spilled_bytes;
    batch->stats.candidates = counts.candidates;
    free(array);
    return status;
}

/* A bucket for each fingerprint that several documents have or that another is near: which[first row] is its number. */
static bool make_buckets(joining *j, dp_buckets *buckets, uint32_t *which) {
    const doppel_batch *batch = j->batch;
    size_t rows = batch->row_count;
    uint32_t *size = calloc(rows + 1, sizeof *size);
    if (!size)
        return false;
    for (size_t i = 0; i < j->count; i++)
        size[j->pairs[i].a] = size[j->pairs[i].b] = 1;
    for (size_t i = 0; i < rows; i++)
        if (j->first[i] != i)
            size[j->first[i]] = size[j->first[i]] ? size[j->first[i]] + 1 : 2;
    bool made = true;
    buckets->own_first = true;
    made = dp_reserve(&buckets->start, &buckets->start_room, 1, sizeof *buckets->start);
    for (size_t i = 0; i < rows && made; i++) {
        which[i] = DP_NO_DOCUMENT;
        if (!size[i])
            continue;
        made = dp_reserve(&buckets->start, &buckets->start_room, buckets->count + 2, sizeof *buckets->start);
        if (made) {
            which[i] = (uint32_t)buckets->count;
            buckets->start[buckets->count++] = buckets->member_count;
            buckets->member_count += size[i];
        }
    }
    if (made)
        buckets->start[buckets->count] = buckets->member_count;
    free(size);
    return made;
}

/* Places the rows in their buckets, in order. */
static bool fill_buckets(joining *j, dp_buckets *buckets, const uint32_t *which) {
    const doppel_batch *batch = j->batch;
    uint64_t *next = malloc((buckets->count + 1) * sizeof *next);
    buckets->member = malloc((buckets->member_count + 1) * sizeof *buckets->member);
    buckets->member_room = buckets->member_count + 1;
    if (next && buckets->member) {
        memcpy(next, buckets->start, buckets->count * sizeof *next);
        for (size_t i = 0; i < batch->row_count; i++)
            if (which[j->first[i]] != DP_NO_DOCUMENT)
                buckets->member[next[which[j->first[i]]]++] = batch->rows[i];
    }
    free(next);
    return next && buckets->member;
}

/* Counts the looks of each first row, its own bucket and those of pairs, two ahead as dp_looks_make does; gives all. */
static uint64_t count_looks(const joining *j, const uint32_t *which, uint64_t *start) {
    const doppel_batch *batch = j->batch;
    for (size_t i = 0; i < batch->row_count; i++)
        start[batch->rows[i] + 2] += j->first[i] == i && which[i] != DP_NO_DOCUMENT;
    for (size_t i = 0; i < j->count; i++) {
        start[batch->rows[j->pairs[i].a] + 2]++;
        start[batch->rows[j->pairs[i].b] + 2]++;
    }
    for (size_t d = 2; d < batch->count + 2; d++)
        start[d] += start[d - 1];
    return start[batch->count + 1];
}

/* The buckets that a fingerprint is near: its own, then those of pairs. The first row with it has the list. */
static bool fill_looks(const joining *j, const uint32_t *which, dp_looks *looks) {
    const doppel_batch *batch = j->batch;
    looks->start = calloc(batch->count + 2, sizeof *looks->start);
    looks->of = malloc((batch->count + 1) * sizeof *looks->of);
    if (!looks->start || !looks->of ||
        !(looks->bucket = malloc((count_looks(j, which, looks->start) + 1) * sizeof *looks->bucket)))
        return false;
    for (size_t d = 0; d < batch->count; d++)
        looks->of[d] = (uint32_t)d;
    for (size_t i = 0; i < batch->row_count; i++) {
        looks->of[batch->rows[i]] = batch->rows[j->first[i]];
        if (j->first[i] == i && which[i] != DP_NO_DOCUMENT)
            looks->bucket[looks->start[batch->rows[i] + 1]++] = which[i];
    }
    for (size_t i = 0; i < j->count; i++) {
        uint32_t a = j->pairs[i].a, b = j->pairs[i].b;
        looks->bucket[looks->start[batch->rows[a] + 1]++] = which[b];
        looks->bucket[looks->start[batch->rows[b] + 1]++] = which[a];
    }
    return true;
}

doppel_status dp_near_buckets(doppel_batch *batch, dp_buckets *buckets, dp_looks *looks, doppel_error *error) {
    joining j = {.batch = batch, .first = malloc((batch->row_count + 1) * sizeof *j.first)};
    uint32_t *which = malloc((batch->row_count + 1) * sizeof *which);
    doppel_status status = j.first && which ? DOPPEL_OK : dp_no_memory(error);
    for (size_t i = 0; i < batch->row_count && status == DOPPEL_OK; i++)
        j.first[i] = (uint32_t)i;
    if (status == DOPPEL_OK)
        status = join(&j, error);
    if (status == DOPPEL_OK &&
        (!make_buckets(&j, buckets, which) || !fill_buckets(&j, buckets, which) || !fill_looks(&j, which, looks)))
        status = dp_no_memory(error);
    free(j.first);
    free(j.pairs);
    free(which);
    return status;
}
