/* pairs.c - pairs are added in any order from several threads, and given out in order of (a, b).
 *
 * dp_pairs_init -> dp_pairs_add ... -> dp_pairs_finish -> dp_pairs_free. Buffers grow, and spill as sorted runs, which
 * are merged at the end. */
#include "join/join.h"

#include <stdlib.h>

/* ---- sorting by (a, b) ----
 *
 * Two steps, so that most of the work stays in the cache: the pairs are distributed into parts by the top bits of a,
 * and each part is sorted by the remaining digits, the least significant first. */

/* A part of 4096 pairs and its copy are 96 KiB: half of it in the first-level cache, all in the second. */
#define PART 4096
/* More parts than 4096 would need more open cache lines than the first-level cache has. */
#define MOST_PART_BITS 12
#define SMALL 32
#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)

static uint64_t key_of(dp_pair pair) {
    return (uint64_t)pair.a << 32 | pair.b;
}

static void insertion_sort(dp_pair *records, size_t count) {
    for (size_t i = 1; i < count; i++) {
        dp_pair record = records[i];
        uint64_t key = key_of(record);
        size_t at = i;
        for (; at && key_of(records[at - 1]) > key; at--)
            records[at] = records[at - 1];
        records[at] = record;
    }
}

/* Turns counts into start positions. */
static void sum_up(uint32_t *places, size_t count) {
    uint32_t next = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t here = places[i];
        places[i] = next;
        next += here;
    }
}

/* One digit: from -> to. False, and nothing is done, when all have the same. */
static bool sort_digit(const dp_pair *from, size_t count, dp_pair *to, int shift) {
    uint32_t places[DIGITS] = {0};
    for (size_t i = 0; i < count; i++)
        places[key_of(from[i]) >> shift & (DIGITS - 1)]++;
    if (places[key_of(from[0]) >> shift & (DIGITS - 1)] == count)
        return false;
    sum_up(places, DIGITS);
    for (size_t i = 0; i < count; i++)
        to[places[key_of(from[i]) >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

/* Sorts one part that stands in `from`, and leaves it in `to`. */
static void sort_part(dp_pair *from, size_t count, dp_pair *to) {
    dp_pair *here = from, *there = to;
    uint64_t differ = 0;
    if (count > SMALL) {
        for (size_t i = 1; i < count; i++)
            differ |= key_of(from[i]) ^ key_of(from[0]);
        for (int shift = 0; shift < 64; shift += DIGIT_BITS)
            if ((differ >> shift & (DIGITS - 1)) && sort_digit(here, count, there, shift)) {
                dp_pair *swapped = here;
                here = there;
                there = swapped;
            }
    }
    if (here != to)
        memcpy(to, here, count * sizeof *to);
    if (count <= SMALL)
        insertion_sort(to, count);
}

static bool is_sorted(const dp_pair *records, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (key_of(records[i - 1]) > key_of(records[i]))
            return false;
    return true;
}

/* How many top bits of a, which are below 2^a_bits, deal `count` pairs into parts of about PART. */
static int part_bits(size_t count, int a_bits) {
    int bits = 0;
    while (bits < MOST_PART_BITS && bits < a_bits && count >> bits > PART)
        bits++;
    return bits;
}

/* Sorts by (a, b), in linear time; `scratch` has room for all of them. */
static void pairs_sort(dp_pair *records, size_t count, dp_pair *scratch) {
    if (is_sorted(records, count))
        return;
    uint32_t any = 0, places[(1 << MOST_PART_BITS) + 1] = {0};
    for (size_t i = 0; i < count; i++)
        any |= records[i].a;
    int a_bits = any ? 32 - __builtin_clz(any) : 0, bits = part_bits(count, a_bits), shift = a_bits - bits;
    for (size_t i = 0; i < count; i++)
        places[(uint64_t)records[i].a >> shift]++;
    sum_up(places, (size_t)1 << bits);
    for (size_t i = 0; i < count; i++)
        scratch[places[(uint64_t)records[i].a >> shift]++] = records[i];
    for (size_t part = 0, start = 0; part < (size_t)1 << bits; start = places[part++])
        if (places[part] > start)
            sort_part(scratch + start, places[part] - start, records + start);
}

/* ---- merging sorted runs, those of a file or what the threads have in memory ---- */

/* Pairs that are given at once. */
#define BATCH 4096

/* The merge position in a run: the part in memory, and the part still in the file. */
typedef struct cursor {
    const dp_pair *at, *end;
    dp_pair *room; /* NULL: the run is in memory as a whole */
    dp_pair_run left;
} pair_cursor;

typedef struct merge {
    dp_pairs *pairs;
    pair_cursor *cursors;
    size_t count;
    pair_cursor **heap; /* those that are not at their end, the smallest first */
    size_t live;
    dp_pair *rooms; /* of all cursors */
    size_t room;    /* pairs a cursor has room for */
} merge;

static uint64_t head(const pair_cursor *c) {
    return (uint64_t)c->at->a << 32 | c->at->b;
}

/* Moves the cursor at `place` down to where it belongs. */
static void sink(const merge *m, size_t place) {
    pair_cursor *moving = m->heap[place];
    uint64_t key = head(moving);
    for (size_t child; (child = 2 * place + 1) < m->live; place = child) {
        if (child + 1 < m->live && head(m->heap[child + 1]) < head(m->heap[child]))
            child++;
        if (key <= head(m->heap[child]))
            break;
        m->heap[place] = m->heap[child];
    }
    m->heap[place] = moving;
}

/* Reads on; at the end of the run at == end. */
static doppel_status refill(const merge *m, pair_cursor *c, doppel_error *error) {
    size_t count = c->left.count < m->room ? (size_t)c->left.count : m->room;
    if (!c->room || !count)
        return DOPPEL_OK;
    doppel_status status = dp_scratch_read(&m->pairs->file, c->room, count * sizeof(dp_pair), c->left.at, error);
    c->at = c->room;
    c->end = c->room + count;
    c->left.at += count * sizeof(dp_pair);
    c->left.count -= count;
    return status;
}

/* The smallest cursor has moved on by one. */
static doppel_status advance(merge *m, doppel_error *error) {
    pair_cursor *c = m->heap[0];
    if (c->at == c->end) {
        DP_TRY(refill(m, c, error));
        if (c->at == c->end)
            m->heap[0] = m->heap[--m->live];
    }
    if (m->live > 1)
        sink(m, 0);
    return DOPPEL_OK;
}

static doppel_status open_cursors(merge *m, doppel_error *error) {
    dp_pairs *pairs = m->pairs;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < m->count && status == DOPPEL_OK; i++) {
        pair_cursor *c = &m->cursors[i];
        if (m->rooms) {
            c->room = m->rooms + i * m->room;
            c->left = pairs->runs[i];
            status = refill(m, c, error);
        } else if (pairs->buffers[i].count) {
            c->at = pairs->buffers[i].records;
            c->end = c->at + pairs->buffers[i].count;
        }
        if (c->at != c->end)
            m->heap[m->live++] = c;
    }
    for (size_t i = m->live / 2; i--;)
        sink(m, i);
    return status;
}

/* Shares the memory among the runs of the file; each gets at least a few KiB. */
static bool open_merge(merge *m) {
    dp_pairs *pairs = m->pairs;
    m->count = pairs->run_count ? pairs->run_count : pairs->options.threads;
    m->cursors = calloc(m->count, sizeof *m->cursors);
    m->heap = calloc(m->count, sizeof *m->heap);
    if (pairs->run_count) {
        uint64_t room = pairs->options.memory / pairs->run_count / sizeof(dp_pair);
        m->room = room < 256 ? 256 : room > (1 << 20) ? 1 << 20 : (size_t)room;
        m->rooms = dp_big_alloc(m->count * m->room * sizeof *m->rooms);
    }
    return m->cursors && m->heap && (m->rooms || !pairs->run_count);
}

static void close_merge(merge *m) {
    free(m->cursors);
    free(m->heap);
    free(m->rooms);
}

/* ---- giving ---- */

typedef struct giving {
    doppel_status (*batch)(const doppel_pair *, size_t, void *);
    void *user;
    doppel_pair pairs[BATCH];
    size_t count;
    uint64_t given;
} giving;

static doppel_status give(giving *g, const volatile int *stop, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (dp_stopped(stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    if (g->batch && g->count)
        status = g->batch(g->pairs, g->count, g->user);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "the callback that takes pairs says: %s", doppel_status_name(status));
    g->given += g->count;
    g->count = 0;
    return DOPPEL_OK;
}

static doppel_status give_all(merge *m, giving *g, doppel_error *error) {
    const dp_pairs_options *options = &m->pairs->options;
    doppel_status status = open_cursors(m, error);
    uint64_t last = 0;
    bool first = true;
    while (status == DOPPEL_OK && m->live) {
        pair_cursor *c = m->heap[0];
        uint64_t key = head(c);
        if (first || !options->unique || key != last) {
            if (g->count == BATCH && (status = give(g, options->stop, error)) != DOPPEL_OK)
                break;
            g->pairs[g->count++] = (doppel_pair){c->at->a, c->at->b, (int)c->at->distance};
        }
        last = key;
        first = false;
        c->at++;
        status = advance(m, error);
    }
    return status == DOPPEL_OK ? give(g, options->stop, error) : status;
}

/* What finish does once every buffer is sorted, or all are written to the file. */
static doppel_status pairs_merge(dp_pairs *pairs, doppel_status (*batch)(const doppel_pair *, size_t, void *),
                                 void *user, uint64_t *given, doppel_error *error) {
    merge m = {.pairs = pairs};
    giving *g = calloc(1, sizeof *g);
    if (!g)
        return dp_no_memory(error);
    g->batch = batch;
    g->user = user;
    doppel_status status = open_merge(&m) ? give_all(&m, g, error) : dp_no_memory(error);
    close_merge(&m);
    *given = g->given;
    free(g);
    return status;
}

/* The first buffer of a thread, 48 KiB: a join that finds nothing pays nothing. */
#define FIRST_CAPACITY 4096
/* Offsets inside a buffer are 32 bits wide when it is sorted. */
#define MOST_SHARE ((size_t)1 << 31)

/* ---- init, add ---- */

doppel_status dp_pairs_init(dp_pairs *pairs, const dp_pairs_options *options, doppel_error *error) {
    *pairs = (dp_pairs){.options = *options};
    /* A full buffer is in memory twice while it is sorted. */
    uint64_t share = options->memory / options->threads / (2 * sizeof(dp_pair));
    pairs->share = share < FIRST_CAPACITY ? FIRST_CAPACITY : share > MOST_SHARE ? MOST_SHARE : (size_t)share;
    pairs->buffers = calloc(options->threads, sizeof *pairs->buffers);
    if (!pairs->buffers) {
        pairs->options.threads = 0; /* a free does no harm */
        return dp_no_memory(error);
    }
    for (size_t i = 0; i < options->threads; i++)
        pairs->buffers[i].pairs = pairs;
    pthread_mutex_init(&pairs->lock, NULL);
    return DOPPEL_OK;
}

static void free_buffer(dp_pair_buffer *buffer) {
    free(buffer->records);
    free(buffer->scratch);
    buffer->records = buffer->scratch = NULL;
    buffer->count = buffer->capacity = 0;
}

void dp_pairs_free(dp_pairs *pairs) {
    for (size_t i = 0; i < pairs->options.threads; i++)
        free_buffer(&pairs->buffers[i]);
    free(pairs->buffers);
    free(pairs->runs);
    dp_scratch_close(&pairs->file);
    pthread_mutex_destroy(&pairs->lock);
}

/* Records the first failure; returns false. */
static bool fail(dp_pairs *pairs, const doppel_error *error) {
    pthread_mutex_lock(&pairs->lock);
    if (pairs->status == DOPPEL_OK) {
        pairs->status = error->code;
        pairs->error = *error;
    }
    pthread_mutex_unlock(&pairs->lock);
    return false;
}

static bool fail_memory(dp_pairs *pairs) {
    doppel_error error;
    dp_no_memory(&error);
    return fail(pairs, &error);
}

/* The scratch is made once: a buffer is sorted when it has reached its share, and at last with what is left, which is
 * less or all there ever was. */
static bool sort_buffer(dp_pair_buffer *buffer) {
    if (buffer->count < 2)
        return true;
    if (!buffer->scratch)
        buffer->scratch = dp_big_alloc(buffer->count * sizeof *buffer->scratch);
    if (!buffer->scratch)
        return fail_memory(buffer->pairs);
    pairs_sort(buffer->records, buffer->count, buffer->scratch);
    return true;
}

/* A place in the file for a run of `count` pairs; under the lock. */
static doppel_status place_run(dp_pairs *pairs, size_t count, dp_pair_run *run, doppel_error *error) {
    if (!pairs->file.open) {
        DP_TRY(dp_scratch_open(&pairs->file, pairs->options.tmp, error));
    }
    if (!dp_reserve(&pairs->runs, &pairs->run_capacity, pairs->run_count + 1, sizeof *pairs->runs))
        return dp_no_memory(error);
    *run = (dp_pair_run){pairs->file.size, count};
    pairs->runs[pairs->run_count++] = *run;
    pairs->file.size += count * sizeof(dp_pair);
    return DOPPEL_OK;
}

static bool spill(dp_pair_buffer *buffer) {
    dp_pairs *pairs = buffer->pairs;
    doppel_error error;
    dp_pair_run run;
    if (!buffer->count)
        return true;
    if (dp_stopped(pairs->options.stop)) {
        dp_fail(&error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        return fail(pairs, &error);
    }
    if (!sort_buffer(buffer))
        return false;
    pthread_mutex_lock(&pairs->lock);
    doppel_status status = pairs->status == DOPPEL_OK ? place_run(pairs, buffer->count, &run, &error) : pairs->status;
    pthread_mutex_unlock(&pairs->lock);
    DP_THEN(status, dp_scratch_write(&pairs->file, buffer->records, run.count * sizeof(dp_pair), run.at, &error));
    if (status != DOPPEL_OK)
        return fail(pairs, &error);
    buffer->count = 0;
    return true;
}

bool dp_pairs_make_room(dp_pair_buffer *buffer) {
    dp_pairs *pairs = buffer->pairs;
    if (buffer->capacity >= pairs->share)
        return spill(buffer);
    size_t more = buffer->capacity ? 2 * buffer->capacity : FIRST_CAPACITY;
    if (more > pairs->share)
        more = pairs->share;
    dp_pair *moved = realloc(buffer->records, more * sizeof *moved);
    if (!moved)
        return fail_memory(pairs);
    buffer->records = moved;
    buffer->capacity = more;
    return true;
}

/* ---- finish ---- */

static void settle_buffer(void *user, size_t thread) {
    dp_pairs *pairs = user;
    dp_pair_buffer *buffer = &pairs->buffers[thread];
    if (!pairs->file.open)
        sort_buffer(buffer);
    else if (spill(buffer))
        free_buffer(buffer);
}

doppel_status dp_pairs_finish(dp_pairs *pairs, doppel_status (*batch)(const doppel_pair *, size_t, void *), void *user,
                              uint64_t *given, doppel_error *error) {
    *given = 0;
    if (pairs->status == DOPPEL_OK)
        dp_run_threads(pairs->options.threads, settle_buffer, pairs);
    if (pairs->status == DOPPEL_OK)
        return pairs_merge(pairs, batch, user, given, error);
    if (error)
        *error = pairs->error;
    return pairs->status;
}
