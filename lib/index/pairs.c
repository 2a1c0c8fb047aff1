/* pairs.c - the sink for pairs: buffers that grow and spill, runs that are merged. */
#include "index/pairs.h"

#include <stdlib.h>

/* The first buffer of a thread, 48 KiB: a join that finds nothing pays nothing. */
#define FIRST_CAPACITY 4096
/* Offsets inside a buffer are 32 bits wide when it is sorted. */
#define MOST_SHARE ((size_t)1 << 31)
#define BATCH 4096

/* ---- init, add ---- */

doppel_status dp_pairs_init(dp_pairs *pairs, const dp_pairs_options *options, doppel_error *error) {
    *pairs = (dp_pairs){.options = *options};
    /* A buffer that is full stands twice in memory while it is sorted. */
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

/* Notes the first failure; gives false. */
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
    dp_pairs_sort(buffer->records, buffer->count, buffer->scratch);
    return true;
}

/* A place in the file for a run of so many; under the lock. */
static doppel_status place_run(dp_pairs *pairs, size_t count, dp_pair_run *run, doppel_error *error) {
    if (!pairs->file.open) {
        doppel_status status = dp_scratch_open(&pairs->file, pairs->options.tmp, error);
        if (status != DOPPEL_OK)
            return status;
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
    if (status == DOPPEL_OK)
        status = dp_scratch_write(&pairs->file, buffer->records, run.count * sizeof(dp_pair), run.at, &error);
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

/* ---- merging ---- */

/* Where the merge stands in a run: what of it is in memory, and what is still in the file. */
typedef struct cursor {
    const dp_pair *at, *end;
    dp_pair *room; /* NULL: the run is in memory as a whole */
    dp_pair_run left;
} cursor;

typedef struct merge {
    dp_pairs *pairs;
    cursor *cursors;
    size_t count;
    cursor **heap; /* those that are not at their end, the smallest first */
    size_t live;
    dp_pair *rooms; /* of all cursors */
    size_t room;    /* pairs a cursor has room for */
} merge;

static uint64_t head(const cursor *c) {
    return (uint64_t)c->at->a << 32 | c->at->b;
}

/* Moves the cursor at `place` down to where it belongs. */
static void sink(const merge *m, size_t place) {
    cursor *moving = m->heap[place];
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
static doppel_status refill(const merge *m, cursor *c, doppel_error *error) {
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
    cursor *c = m->heap[0];
    if (c->at == c->end) {
        doppel_status status = refill(m, c, error);
        if (status != DOPPEL_OK)
            return status;
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
        cursor *c = &m->cursors[i];
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

/* ---- finish ---- */

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
        cursor *c = m->heap[0];
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

static void settle_buffer(void *user, size_t thread) {
    dp_pairs *pairs = user;
    dp_pair_buffer *buffer = &pairs->buffers[thread];
    if (!pairs->file.open)
        sort_buffer(buffer);
    else if (spill(buffer))
        free_buffer(buffer);
}

static doppel_status merge_all(dp_pairs *pairs, giving *g, doppel_error *error) {
    merge m = {.pairs = pairs};
    doppel_status status = open_merge(&m) ? give_all(&m, g, error) : dp_no_memory(error);
    close_merge(&m);
    return status;
}

doppel_status dp_pairs_finish(dp_pairs *pairs, doppel_status (*batch)(const doppel_pair *, size_t, void *), void *user,
                              uint64_t *given, doppel_error *error) {
    *given = 0;
    if (pairs->status == DOPPEL_OK)
        dp_run_threads(pairs->options.threads, settle_buffer, pairs);
    if (pairs->status != DOPPEL_OK) {
        if (error)
            *error = pairs->error;
        return pairs->status;
    }
    giving *g = calloc(1, sizeof *g);
    if (!g)
        return dp_no_memory(error);
    g->batch = batch;
    g->user = user;
    doppel_status status = merge_all(pairs, g, error);
    *given = g->given;
    free(g);
    return status;
}
