/* bands.c - documents with the same key in some band (lib/sketch/minhash.c) are in one bucket.
 *
 * Near copies share most of their bands, so the same documents meet in many buckets: a bucket with the same members as
 * another one is dropped; a 64-bit hash of the members' numbers identifies it.
 *
 * Threads take a band each, or a slice of one, which is all keys with the same first bits; its rows are placed by the
 * next bits of their keys into parts that fit into a cache, and in each part those whose key no other row has are
 * dropped before the rest is sorted. So a thread needs 8 bytes a row of its slice. What they find is put in order at
 * the end, by first document, size and hash: buckets are numbered alike whatever the number of threads. */
#include "batch/batch.h"

#include <pthread.h>
#include <stdlib.h>

/* Rows of a part, about: 16 KiB. At most this many parts: with more, the positions they are written at do not fit in
 * the cache. */
enum { PART_ROWS = 2048, MOST_PART_BITS = 12 };
/* Slices of a band at most: each reads the whole band. */
enum { MOST_SLICE_BITS = 8 };
/* Cells that keys of a part are hashed into; one in eight of PART_ROWS unique keys is not recognised as unique. */
enum { CELL_BITS = 14, CELLS = 1 << CELL_BITS };
/* Hashes of buckets are kept in this many tables, each with a lock of its own. */
enum { TABLES = 256 };
/* Buckets are put in order in this many ranges of first documents. */
enum { RANGES = 512 };

/* A bucket that was found: `place` is where it begins among the members that a thread has collected, and which. */
typedef struct found_bucket {
    uint64_t hash, place;
    uint32_t first, count;
} found_bucket;

enum { FINDER_BITS = 16 };
_Static_assert(DP_MAX_THREADS <= 1 << FINDER_BITS, "threads have numbers of 16 bits");

/* What one thread works with, and what it has found. */
typedef struct bucket_finder {
    uint64_t *entry, *scratch; /* key << 32 | row */
    uint32_t *column;          /* keys of a block of rows */
    size_t entry_room, scratch_room;
    uint32_t place[(1 << MOST_PART_BITS) + 1]; /* where each part ends */
    uint64_t seen[CELLS / 64], shared[CELLS / 64];
    found_bucket *bucket;
    uint32_t *member;
    size_t count, room, member_count, member_room;
    size_t place_of_range[RANGES];
} bucket_finder;

typedef struct hash_table {
    _Alignas(64) pthread_mutex_t lock;
    dp_hashmap seen;
} hash_table;

typedef struct band_join {
    const dp_batch_settings *settings;
    const dp_key_rows *rows;
    size_t documents, threads;
    uint64_t memory; /* what the documents leave free */
    int slice_bits, part_bits;
    atomic_size_t next; /* slice */
    hash_table *table;
    bucket_finder **finder; /* by thread */
    pthread_mutex_t lock;   /* of what follows */
    size_t done;
    doppel_status status;
    doppel_error *error;
    /* Once all are found: */
    found_bucket *all;
    size_t bucket_start[RANGES + 1];
    uint64_t member_start[RANGES + 1];
    dp_candidates *candidates;
} band_join;

static void fail(band_join *j, doppel_status status, const doppel_error *error) {
    pthread_mutex_lock(&j->lock);
    if (j->status == DOPPEL_OK) {
        j->status = status;
        if (j->error)
            *j->error = *error;
    }
    pthread_mutex_unlock(&j->lock);
}

/* ---- one slice ---- */

/* Which rows are wanted: those of a band whose keys begin with some bits. */
typedef struct slice {
    size_t band;
    uint64_t bits;
} slice;

static bool is_of_slice(const band_join *j, const slice *s, uint32_t key) {
    return (uint64_t)key >> (32 - j->slice_bits) == s->bits;
}

static size_t part_of(const band_join *j, uint32_t key) {
    return (size_t)((uint64_t)(uint32_t)(key << j->slice_bits) >> (32 - j->part_bits));
}

/* Reads the keys of a block of rows into f->column; gives how many they are. */
static doppel_status read_block(const band_join *j, bucket_finder *f, size_t band, size_t from, size_t *count,
                                doppel_error *error) {
    size_t bands = (size_t)j->settings->bands, left = j->rows->count - from;
    *count = left < DP_ROW_BLOCK ? left : DP_ROW_BLOCK;
    uint64_t at = ((uint64_t)from * bands + band * *count) * sizeof *f->column;
    return dp_append_file_read(&j->rows->keys, at, f->column, *count * sizeof *f->column, error);
}

/* Counts the rows of each part, and makes the counts the places where the parts begin. Gives the sum. */
static doppel_status count_rows(const band_join *j, bucket_finder *f, const slice *s, size_t *sum,
                                doppel_error *error) {
    size_t parts = (size_t)1 << j->part_bits;
    memset(f->place, 0, (parts + 1) * sizeof *f->place);
    for (size_t from = 0, count; from < j->rows->count; from += count) {
        DP_TRY(read_block(j, f, s->band, from, &count, error));
        for (size_t i = 0; i < count; i++)
            f->place[part_of(j, f->column[i])] += is_of_slice(j, s, f->column[i]);
    }
    *sum = 0;
    for (size_t part = 0; part < parts; part++) {
        size_t here = f->place[part];
        f->place[part] = (uint32_t)*sum;
        *sum += here;
    }
    return DOPPEL_OK;
}

/* Room for numbers, the old ones of which are not needed. */
static bool make_room(uint64_t **numbers, size_t *room, size_t need) {
    if (*numbers && need <= *room)
        return true;
    free(*numbers);
    *room = need + need / 8 + 1;
    return (*numbers = dp_big_alloc(*room * sizeof **numbers));
}

/* Places the rows in their parts; then f->place is where each part ends. */
static doppel_status place_rows(const band_join *j, bucket_finder *f, const slice *s, doppel_error *error) {
    for (size_t from = 0, count; from < j->rows->count; from += count) {
        DP_TRY(read_block(j, f, s->band, from, &count, error));
        for (size_t i = 0; i < count; i++)
            if (is_of_slice(j, s, f->column[i]))
                f->entry[f->place[part_of(j, f->column[i])]++] = (uint64_t)f->column[i] << 32 | (from + i);
    }
    return DOPPEL_OK;
}

/* The bits of a key after those that all of a part have in common. */
static size_t cell_of(const band_join *j, uint64_t entry) {
    return (uint32_t)(entry >> 32) << (j->slice_bits + j->part_bits) >> (32 - CELL_BITS);
}

/* Drops entries of a part that have a cell to themselves, so that no other row has their key. Gives how many are left.
 */
static size_t drop_lone(const band_join *j, bucket_finder *f, uint64_t *entry, size_t count) {
    size_t kept = 0;
    memset(f->seen, 0, sizeof f->seen);
    memset(f->shared, 0, sizeof f->shared);
    for (size_t i = 0; i < count; i++) {
        size_t cell = cell_of(j, entry[i]);
        uint64_t bit = (uint64_t)1 << (cell & 63);
        f->shared[cell >> 6] |= f->seen[cell >> 6] & bit;
        f->seen[cell >> 6] |= bit;
    }
    for (size_t i = 0; i < count; i++) {
        size_t cell = cell_of(j, entry[i]);
        uint64_t is_shared = f->shared[cell >> 6] >> (cell & 63) & 1;
        entry[kept] = entry[i];
        kept += is_shared;
    }
    return kept;
}

/* ---- buckets ---- */

static uint64_t hash_members(const uint32_t *members, size_t count) {
    uint64_t hash = count * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ members[i]) * 0xBF58476D1CE4E5B9u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Notes a bucket's hash; *is_new: no thread has found it before. */
static doppel_status note_hash(const band_join *j, uint64_t hash, bool *is_new) {
    hash_table *table = &j->table[hash % TABLES];
    pthread_mutex_lock(&table->lock);
    uint64_t *known = dp_hashmap_add(&table->seen, hash);
    *is_new = known && !*known;
    if (known)
        *known = 1;
    pthread_mutex_unlock(&table->lock);
    return known ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* Adds a bucket of rows, which are ascending, unless there is one with the same rows. */
static doppel_status add_bucket(const band_join *j, bucket_finder *f, size_t finder, const uint64_t *entry,
                                size_t count) {
    bool is_new;
    if (!dp_reserve(&f->member, &f->member_room, f->member_count + count, sizeof *f->member) ||
        !dp_reserve(&f->bucket, &f->room, f->count + 1, sizeof *f->bucket))
        return DOPPEL_ERROR_MEMORY;
    uint32_t *member = f->member + f->member_count;
    for (size_t i = 0; i < count; i++)
        member[i] = j->rows->document[(uint32_t)entry[i]];
    uint64_t hash = hash_members(member, count);
    DP_TRY(note_hash(j, hash, &is_new));
    if (!is_new)
        return DOPPEL_OK;
    f->bucket[f->count++] =
        (found_bucket){hash, (uint64_t)f->member_count << FINDER_BITS | finder, *member, (uint32_t)count};
    f->member_count += count;
    return DOPPEL_OK;
}

/* The buckets of a part: stretches of equal keys. */
static doppel_status add_part(const band_join *j, bucket_finder *f, size_t finder, uint64_t *entry, size_t count) {
    count = drop_lone(j, f, entry, count);
    if (!make_room(&f->scratch, &f->scratch_room, count))
        return DOPPEL_ERROR_MEMORY;
    dp_sort64(entry, count, f->scratch);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && entry[to] >> 32 == entry[from] >> 32;)
            to++;
        if (to - from > 1)
            DP_TRY(add_bucket(j, f, finder, entry + from, to - from));
    }
    return DOPPEL_OK;
}

static doppel_status find_in_slice(const band_join *j, size_t finder, const slice *s, doppel_error *error) {
    bucket_finder *f = j->finder[finder];
    size_t count;
    doppel_status status = DOPPEL_OK;
    DP_TRY(count_rows(j, f, s, &count, error));
    if (!make_room(&f->entry, &f->entry_room, count))
        return dp_no_memory(error);
    DP_TRY(place_rows(j, f, s, error));
    for (size_t part = 0, from = 0; part < (size_t)1 << j->part_bits && status == DOPPEL_OK; part++) {
        status = add_part(j, f, finder, f->entry + from, f->place[part] - from);
        from = f->place[part];
    }
    return status == DOPPEL_OK ? status : dp_fail(error, status, "%s", doppel_status_name(status));
}

/* ---- all slices, on threads ---- */

static void free_work(bucket_finder *f) {
    free(f->entry);
    free(f->scratch);
    free(f->column);
    f->entry = f->scratch = NULL;
    f->column = NULL;
}

static void free_finder(bucket_finder *f) {
    if (!f)
        return;
    free_work(f);
    free(f->bucket);
    free(f->member);
    free(f);
}

static bool make_finder(bucket_finder **made) {
    bucket_finder *f = *made = calloc(1, sizeof *f);
    return f && (f->column = malloc(DP_ROW_BLOCK * sizeof *f->column));
}

static size_t slice_count(const band_join *j) {
    return (size_t)j->settings->bands << j->slice_bits;
}

static void find_in_slices(void *user, size_t thread) {
    band_join *j = user;
    doppel_error error = {0};
    doppel_status status = make_finder(&j->finder[thread]) ? DOPPEL_OK : dp_no_memory(&error);
    for (size_t next; status == DOPPEL_OK && (next = atomic_fetch_add(&j->next, 1)) < slice_count(j);) {
        const slice s = {next >> j->slice_bits, next & (((uint64_t)1 << j->slice_bits) - 1)};
        if (dp_stopped(j->settings->input.stop))
            break;
        status = find_in_slice(j, thread, &s, &error);
        pthread_mutex_lock(&j->lock);
        dp_report_progress(j->settings, "candidates", ++j->done, slice_count(j));
        pthread_mutex_unlock(&j->lock);
    }
    if (status != DOPPEL_OK)
        fail(j, status, &error);
    if (j->finder[thread])
        free_work(j->finder[thread]);
}

/* Whether threads that take slices in turn would be idle for more than an eighth of the time at the end. */
static bool is_uneven(size_t slices, size_t threads) {
    size_t rounds = (slices + threads - 1) / threads;
    return rounds * threads * 8 > slices * 9;
}

/* Cuts bands into slices: enough that sorting one fits into a quarter of the memory, and that all threads are busy to
 * the end. */
static void plan(band_join *j) {
    uint64_t rows = j->rows->count, bytes = rows * sizeof(uint64_t), most = j->memory / 4;
    size_t bands = (size_t)j->settings->bands;
    j->threads = j->settings->threads;
    while (j->slice_bits < MOST_SLICE_BITS && j->threads * bytes >> j->slice_bits > most)
        j->slice_bits++;
    while (j->threads > 1 && j->threads * bytes >> j->slice_bits > most)
        j->threads--;
    while (j->slice_bits < 3 && rows > PART_ROWS && is_uneven(bands << j->slice_bits, j->threads))
        j->slice_bits++;
    if (j->threads > slice_count(j))
        j->threads = slice_count(j);
    while (j->part_bits < MOST_PART_BITS && rows >> (j->slice_bits + j->part_bits) > PART_ROWS)
        j->part_bits++;
}

/* ---- all buckets, in order ---- */

static size_t range_of(const band_join *j, const found_bucket *bucket) {
    return (size_t)((uint64_t)bucket->first * RANGES / j->documents);
}

static void count_ranges(void *user, size_t from, size_t to) {
    const band_join *j = user;
    for (size_t i = from; i < to; i++)
        for (size_t b = 0; b < j->finder[i]->count; b++)
            j->finder[i]->place_of_range[range_of(j, &j->finder[i]->bucket[b])]++;
}

/* Places for the buckets of each range, finder after finder. */
static void set_ranges(band_join *j) {
    size_t next = 0;
    for (size_t range = 0; range < RANGES; range++) {
        j->bucket_start[range] = next;
        for (size_t i = 0; i < j->threads; i++) {
            size_t here = j->finder[i]->place_of_range[range];
            j->finder[i]->place_of_range[range] = next;
            next += here;
        }
    }
    j->bucket_start[RANGES] = next;
}

static void gather_ranges(void *user, size_t from, size_t to) {
    const band_join *j = user;
    for (size_t i = from; i < to; i++) {
        bucket_finder *f = j->finder[i];
        for (size_t b = 0; b < f->count; b++)
            j->all[f->place_of_range[range_of(j, &f->bucket[b])]++] = f->bucket[b];
        free(f->bucket);
        f->bucket = NULL;
    }
}

static int compare_found(const void *x, const void *y) {
    const found_bucket *a = x, *b = y;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return a->hash < b->hash ? -1 : a->hash > b->hash;
}

static void sort_ranges(void *user, size_t from, size_t to) {
    band_join *j = user;
    for (size_t range = from; range < to; range++) {
        size_t start = j->bucket_start[range], end = j->bucket_start[range + 1];
        uint64_t members = 0;
        if (end - start > 1)
            qsort(j->all + start, end - start, sizeof *j->all, compare_found);
        for (size_t i = start; i < end; i++)
            members += j->all[i].count;
        j->member_start[range + 1] = members;
    }
}

static void copy_ranges(void *user, size_t from, size_t to) {
    const band_join *j = user;
    dp_candidates *c = j->candidates;
    for (size_t range = from; range < to; range++) {
        uint64_t at = j->member_start[range];
        for (size_t i = j->bucket_start[range]; i < j->bucket_start[range + 1]; i++) {
            const found_bucket *b = &j->all[i];
            const bucket_finder *f = j->finder[b->place & ((1 << FINDER_BITS) - 1)];
            c->start[i] = at;
            memcpy(c->member + at, f->member + (b->place >> FINDER_BITS), b->count * sizeof *c->member);
            at += b->count;
        }
    }
}

static doppel_status gather(band_join *j) {
    dp_candidates *c = j->candidates;
    dp_run_pieces(j->threads, j->threads, 1, count_ranges, j);
    set_ranges(j);
    c->count = j->bucket_start[RANGES];
    if (c->count >= DP_NO_DOCUMENT)
        return dp_fail(j->error, DOPPEL_ERROR_INPUT,
                       "more than 2^32 - 2 sets of documents that share a band: split the input");
    if (!(j->all = malloc((c->count + 1) * sizeof *j->all)) || !(c->start = malloc((c->count + 1) * sizeof *c->start)))
        return dp_no_memory(j->error);
    dp_run_pieces(j->threads, j->threads, 1, gather_ranges, j);
    dp_run_pieces(j->threads, RANGES, 1, sort_ranges, j);
    for (size_t range = 0; range < RANGES; range++)
        j->member_start[range + 1] += j->member_start[range];
    c->start[c->count] = c->member_count = j->member_start[RANGES];
    if (!(c->member = malloc((c->member_count + 1) * sizeof *c->member)))
        return dp_no_memory(j->error);
    dp_run_pieces(j->threads, RANGES, 1, copy_ranges, j);
    return DOPPEL_OK;
}

/* ---- which document looks at which buckets ---- */

typedef struct looks {
    const dp_candidates *candidates;
    _Atomic uint64_t *next; /* by document */
} looks;

static void count_looks(void *user, size_t from, size_t to) {
    const looks *l = user;
    for (size_t i = from; i < to; i++)
        atomic_fetch_add_explicit(&l->next[l->candidates->member[i] + 2], 1, memory_order_relaxed);
}

static void place_looks(void *user, size_t from, size_t to) {
    const looks *l = user;
    const dp_candidates *c = l->candidates;
    for (size_t b = dp_bucket_at(c, from), i = from; i < to; i++) {
        b += c->start[b + 1] == i;
        c->looked[atomic_fetch_add_explicit(&l->next[c->member[i] + 1], 1, memory_order_relaxed)] = (uint32_t)b;
    }
}

/* A document has few buckets. */
static void sort_looks(void *user, size_t from, size_t to) {
    const dp_candidates *c = ((const looks *)user)->candidates;
    for (size_t d = from; d < to; d++) {
        uint32_t *list = c->looked + c->looked_start[d];
        size_t count = (size_t)(c->looked_start[d + 1] - c->looked_start[d]);
        for (size_t i = 1; i < count; i++) {
            uint32_t bucket = list[i];
            size_t at = i;
            for (; at && list[at - 1] > bucket; at--)
                list[at] = list[at - 1];
            list[at] = bucket;
        }
    }
}

/* Each document looks at the buckets that it is in. They are counted two places ahead: once they are placed,
 * start[d + 1] has moved to where those of d end. */
static doppel_status look_at_own(band_join *j) {
    dp_candidates *c = j->candidates;
    size_t threads = j->settings->threads;
    _Static_assert(sizeof(_Atomic uint64_t) == sizeof(uint64_t), "counts in place");
    c->looked_start = calloc(j->documents + 2, sizeof *c->looked_start);
    c->looked = malloc((c->member_count + 1) * sizeof *c->looked);
    if (!c->looked_start || !c->looked)
        return dp_no_memory(j->error);
    looks l = {c, (_Atomic uint64_t *)c->looked_start};
    dp_run_pieces(threads, c->member_count, DP_PIECE, count_looks, &l);
    dp_add_up(threads, c->looked_start, j->documents + 2);
    dp_run_pieces(threads, c->member_count, DP_PIECE, place_looks, &l);
    dp_run_pieces(threads, j->documents, DP_PIECE, sort_looks, &l);
    return DOPPEL_OK;
}

/* ---- the whole ---- */

static bool init(band_join *j) {
    plan(j);
    j->finder = calloc(j->threads, sizeof *j->finder);
    j->table = dp_big_alloc(TABLES * sizeof *j->table);
    for (size_t i = 0; j->table && i < TABLES; i++) {
        pthread_mutex_init(&j->table[i].lock, NULL);
        j->table[i].seen = (dp_hashmap){0};
    }
    pthread_mutex_init(&j->lock, NULL);
    return j->finder && j->table;
}

static void free_tables(band_join *j) {
    for (size_t i = 0; j->table && i < TABLES; i++) {
        pthread_mutex_destroy(&j->table[i].lock);
        dp_hashmap_free(&j->table[i].seen);
    }
    free(j->table);
    j->table = NULL;
}

static void end(band_join *j) {
    for (size_t i = 0; j->finder && i < j->threads; i++)
        free_finder(j->finder[i]);
    free(j->finder);
    free(j->all);
    free_tables(j);
    pthread_mutex_destroy(&j->lock);
}

static doppel_status find_buckets(band_join *j) {
    bool ready = init(j);
    if (ready)
        dp_run_threads(j->threads, find_in_slices, j);
    free_tables(j);
    if (!ready)
        j->status = dp_no_memory(j->error);
    else if (j->status == DOPPEL_OK && dp_stopped(j->settings->input.stop))
        j->status = dp_fail(j->error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    DP_THEN(j->status, gather(j));
    end(j);
    return j->status;
}

doppel_status dp_candidates_by_bands(const doppel_batch *batch, dp_candidates *candidates, doppel_error *error) {
    band_join j = {.settings = &batch->settings,
                   .rows = &batch->rows,
                   .documents = batch->documents.count,
                   .memory = dp_memory_left(batch),
                   .candidates = candidates,
                   .error = error};
    if (batch->rows.count)
        DP_TRY(find_buckets(&j));
    else if (dp_stopped(batch->settings.input.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    return look_at_own(&j);
}
