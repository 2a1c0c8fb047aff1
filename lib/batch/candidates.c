/* candidates.c - who may be near whom: documents that may be near stand together in a bucket, and look at buckets.
 *
 * By bands of signatures (lib/sketch/minhash.c), documents with the same key in some band stand in one bucket; by
 * fingerprints, those with one fingerprint do, and look at the buckets of fingerprints within the distance as well. */
#include "batch/batch.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- documents that may be near, in buckets, and who looks at which.
 *
 * Near copies share most of their bands, and so the same documents come together again and again: a bucket that holds
 * just what another one holds is not kept. It is told by a hash of 64 bits of its numbers. */

void dp_buckets_free(dp_buckets *buckets) {
    free(buckets->member);
    free(buckets->start);
    free(buckets->seen);
    *buckets = (dp_buckets){0};
}

static uint64_t hash_members(const uint32_t *members, size_t count) {
    uint64_t hash = count * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ members[i]) * 0xBF58476D1CE4E5B9u;
        hash ^= hash >> 29;
    }
    return hash ? hash : 1;
}

static void put_hash(uint64_t *table, size_t room, uint64_t hash) {
    size_t at = (hash * 0x94D049BB133111EBu) >> 20 & (room - 1);
    while (table[at])
        at = (at + 1) & (room - 1);
    table[at] = hash;
}

static bool grow_seen(dp_buckets *buckets) {
    size_t room = buckets->seen_room ? 2 * buckets->seen_room : 1024;
    uint64_t *table = calloc(room, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < buckets->seen_room; i++)
        if (buckets->seen[i])
            put_hash(table, room, buckets->seen[i]);
    free(buckets->seen);
    buckets->seen = table;
    buckets->seen_room = room;
    return true;
}

static bool was_seen(const dp_buckets *buckets, uint64_t hash) {
    size_t at = (hash * 0x94D049BB133111EBu) >> 20 & (buckets->seen_room - 1);
    for (; buckets->seen[at]; at = (at + 1) & (buckets->seen_room - 1))
        if (buckets->seen[at] == hash)
            return true;
    return false;
}

bool dp_buckets_add(dp_buckets *buckets, const uint32_t *members, size_t count) {
    uint64_t hash = hash_members(members, count);
    if (2 * buckets->seen_count >= buckets->seen_room && !grow_seen(buckets))
        return false;
    if (was_seen(buckets, hash))
        return true;
    if (!dp_reserve(&buckets->member, &buckets->member_room, buckets->member_count + count, sizeof *buckets->member) ||
        !dp_reserve(&buckets->start, &buckets->start_room, buckets->count + 2, sizeof *buckets->start))
        return false;
    put_hash(buckets->seen, buckets->seen_room, hash);
    buckets->seen_count++;
    buckets->start[buckets->count++] = buckets->member_count;
    memcpy(buckets->member + buckets->member_count, members, count * sizeof *members);
    buckets->member_count += count;
    buckets->start[buckets->count] = buckets->member_count;
    return true;
}

bool dp_looks_make(dp_looks *looks, const dp_buckets *buckets, size_t documents) {
    looks->start = calloc(documents + 2, sizeof *looks->start);
    looks->bucket = malloc((buckets->member_count + 1) * sizeof *looks->bucket);
    if (!looks->start || !looks->bucket)
        return false;
    /* Two ahead: once the buckets are placed, start[d + 1] has moved to where those of d end. */
    for (size_t i = 0; i < buckets->member_count; i++)
        looks->start[buckets->member[i] + 2]++;
    for (size_t d = 2; d < documents + 2; d++)
        looks->start[d] += looks->start[d - 1];
    for (size_t b = 0; b < buckets->count; b++)
        for (uint64_t i = buckets->start[b]; i < buckets->start[b + 1]; i++)
            looks->bucket[looks->start[buckets->member[i] + 1]++] = (uint32_t)b;
    return true;
}

void dp_looks_free(dp_looks *looks) {
    free(looks->start);
    free(looks->bucket);
    free(looks->of);
    *looks = (dp_looks){0};
}

/* ---- candidates by bands of signatures (lib/sketch/minhash.c): documents with the same key in some band stand in
 * one bucket.
 *
 * Keys are kept in blocks of DP_BAND_BLOCK rows, band after band, so that a band can be read by itself. Each band is
 * sorted by key on its own, on as many threads as there are: 16 bytes a row and thread. */

/* What a thread sorts a band with, a row: entry, scratch and member. */
#define ROW_BYTES 20

/* ---- keys in blocks ---- */

/* The last block may have fewer rows: then its bands move together. */
static doppel_status write_block(doppel_batch *batch, size_t count, doppel_error *error) {
    size_t bands = (size_t)batch->stats.bands;
    for (size_t b = 1; b < bands && count < DP_BAND_BLOCK; b++)
        memmove(batch->block + b * count, batch->block + b * DP_BAND_BLOCK, count * sizeof *batch->block);
    return dp_spill_add(&batch->keys, batch->block, bands * count * sizeof *batch->block, error);
}

doppel_status dp_bands_add(doppel_batch *batch, uint32_t document, const uint32_t *keys, doppel_error *error) {
    size_t bands = (size_t)batch->stats.bands, at = batch->row_count % DP_BAND_BLOCK;
    if (!batch->block && !(batch->block = malloc(bands * DP_BAND_BLOCK * sizeof *batch->block)))
        return dp_no_memory(error);
    if (!dp_reserve(&batch->rows, &batch->row_room, batch->row_count + 1, sizeof *batch->rows))
        return dp_no_memory(error);
    for (size_t b = 0; b < bands; b++)
        batch->block[b * DP_BAND_BLOCK + at] = keys[b];
    batch->rows[batch->row_count++] = document;
    return at == DP_BAND_BLOCK - 1 ? write_block(batch, DP_BAND_BLOCK, error) : DOPPEL_OK;
}

doppel_status dp_bands_flush(doppel_batch *batch, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (batch->row_count % DP_BAND_BLOCK)
        status = write_block(batch, batch->row_count % DP_BAND_BLOCK, error);
    return status == DOPPEL_OK ? dp_spill_flush(&batch->keys, error) : status;
}

/* ---- buckets ---- */

typedef struct banding {
    doppel_batch *batch;
    dp_buckets *buckets;
    atomic_int next;
    pthread_mutex_t lock; /* of all below, and of the buckets */
    int done;
    doppel_status status;
    doppel_error *error;
} banding;

/* What a thread sorts with. */
typedef struct sorting {
    uint64_t *entry, *scratch; /* key << 32 | row */
    uint32_t *column, *member;
} sorting;

static void fail(banding *b, doppel_status status, const doppel_error *error) {
    pthread_mutex_lock(&b->lock);
    if (b->status == DOPPEL_OK) {
        b->status = status;
        if (b->error)
            *b->error = *error;
    }
    pthread_mutex_unlock(&b->lock);
}

static doppel_status load_band(const doppel_batch *batch, size_t band, sorting *s, doppel_error *error) {
    size_t bands = (size_t)batch->stats.bands;
    for (size_t from = 0; from < batch->row_count; from += DP_BAND_BLOCK) {
        size_t count = batch->row_count - from < DP_BAND_BLOCK ? batch->row_count - from : DP_BAND_BLOCK;
        uint64_t at = (from * bands + band * count) * sizeof *s->column;
        doppel_status status = dp_spill_read(&batch->keys, at, s->column, count * sizeof *s->column, error);
        if (status != DOPPEL_OK)
            return status;
        for (size_t i = 0; i < count; i++)
            s->entry[from + i] = (uint64_t)s->column[i] << 32 | (from + i);
    }
    return DOPPEL_OK;
}

/* Adds the stretches of equal keys, under the lock. */
static bool add_stretches(banding *b, const sorting *s) {
    const doppel_batch *batch = b->batch;
    size_t count = batch->row_count;
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && s->entry[to] >> 32 == s->entry[from] >> 32;)
            to++;
        if (to - from < 2)
            continue;
        for (size_t i = from; i < to; i++)
            s->member[i - from] = batch->rows[(uint32_t)s->entry[i]];
        if (!dp_buckets_add(b->buckets, s->member, to - from))
            return false;
    }
    return true;
}

static bool sort_band(banding *b, size_t band, sorting *s) {
    doppel_error error = {0};
    doppel_status status = load_band(b->batch, band, s, &error);
    if (status == DOPPEL_OK) {
        dp_sort64(s->entry, b->batch->row_count, s->scratch);
        pthread_mutex_lock(&b->lock);
        bool added = add_stretches(b, s);
        dp_batch_tell(b->batch, "candidates", (uint64_t)++b->done, (uint64_t)b->batch->stats.bands);
        pthread_mutex_unlock(&b->lock);
        if (!added)
            status = dp_no_memory(&error);
    }
    if (status != DOPPEL_OK)
        fail(b, status, &error);
    return status == DOPPEL_OK;
}

static void run(void *user, size_t thread) {
    banding *b = user;
    size_t rows = b->batch->row_count;
    (void)thread;
    sorting s = {dp_big_alloc(rows * 8 + 8), dp_big_alloc(rows * 8 + 8), malloc(DP_BAND_BLOCK * 4),
                 malloc(rows * 4 + 4)};
    if (!s.entry || !s.scratch || !s.column || !s.member) {
        doppel_error error = {0};
        fail(b, dp_no_memory(&error), &error);
    } else {
        for (int band; (band = atomic_fetch_add(&b->next, 1)) < b->batch->stats.bands;)
            if (dp_stopped(b->batch->input.stop) || !sort_band(b, (size_t)band, &s))
                break;
    }
    free(s.entry);
    free(s.scratch);
    free(s.column);
    free(s.member);
}

/* As many threads as there are bands, and as the memory that is allowed has room for. */
static size_t thread_count(const doppel_batch *batch) {
    uint64_t memory = batch->options.memory ? batch->options.memory : dp_memory_default();
    uint64_t room = memory / (batch->row_count * ROW_BYTES + 1) + 1;
    size_t threads = batch->threads, bands = (size_t)batch->stats.bands;
    threads = threads < bands ? threads : bands;
    return threads < room ? threads : (size_t)room;
}

doppel_status dp_bands_buckets(doppel_batch *batch, dp_buckets *buckets, doppel_error *error) {
    banding b = {.batch = batch, .buckets = buckets, .error = error};
    pthread_mutex_init(&b.lock, NULL);
    if (batch->row_count)
        dp_run_threads(thread_count(batch), run, &b);
    pthread_mutex_destroy(&b.lock);
    if (b.status == DOPPEL_OK && dp_stopped(batch->input.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    return b.status;
}

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
