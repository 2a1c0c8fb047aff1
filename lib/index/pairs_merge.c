/* pairs_merge.c - merges sorted runs of pairs, those of a file or what the threads have in memory, and gives them out.
 */
#include "index/pairs.h"

#include <stdlib.h>

/* Pairs that are given at once. */
#define BATCH 4096

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

doppel_status dp_pairs_merge(dp_pairs *pairs, doppel_status (*batch)(const doppel_pair *, size_t, void *), void *user,
                             uint64_t *given, doppel_error *error) {
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
