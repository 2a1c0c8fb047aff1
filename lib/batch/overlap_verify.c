/* overlap_verify.c - candidates are compared on their texts, and those that are pairs are given in order.
 *
 * Hits come sorted, so that those of one pair stand together. A pair that only shares keys is a candidate when one side
 * shares as many as containment C lets expect, less four standard deviations: of x keys C * x, deviation
 * sqrt(C (1 - C) x). Keys that are so frequent that they do not hit all pairs count as shared. A batch of candidates is
 * compared by all threads, then given by this one. */
#include "batch/overlap.h"
#include "batch/overlap_pair.h"

#include <math.h>
#include <stdlib.h>

/* One pair of 30,000 at the very threshold is farther off. */
#define DEVIATIONS 4

/* Candidates a thread takes at a time: neighbours have the same A, which is then read once. */
#define CHUNK 8
/* Of so many a batch is made, a thread: enough that the threads end together. */
#define BATCH 64

typedef struct verification {
    dp_overlap_work *work;
    dp_overlap_pair *pairs;
    size_t count, room;
    atomic_size_t next;
    dp_overlap_comparer *comparers; /* one a thread */
    const uint64_t *hit;            /* that comes next; NULL: none is left */
} verification;

/* ---- candidates ---- */

/* The keys of one side that the other has. */
typedef struct shared_keys {
    uint64_t a, b;
} shared_keys;

/* Whether so many shared keys of a document may be containment enough. */
static bool may_contain(const dp_overlap_work *work, uint32_t document, uint64_t shared) {
    double c = work->plan.containment, frequent = work->frequent[document], x = work->live[document] + frequent;
    return shared && (double)shared + frequent >= c * x - DEVIATIONS * sqrt(c * (1 - c) * x);
}

/* The next candidate; *found is false when there is none. */
static doppel_status next_candidate(verification *v, dp_overlap_pair *pair, bool *found, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    *found = false;
    while (v->hit && !*found && status == DOPPEL_OK) {
        uint64_t both = *v->hit >> 2;
        shared_keys shared = {0, 0};
        while (v->hit && *v->hit >> 2 == both && status == DOPPEL_OK) {
            *found |= (*v->hit & 3) == DP_OVERLAP_SURE;
            shared.a += (*v->hit & DP_OVERLAP_KEY_A) != 0;
            shared.b += (*v->hit & DP_OVERLAP_KEY_B) != 0;
            status = dp_sorter_next(&v->work->hits, &v->hit, error);
        }
        *pair = (dp_overlap_pair){.a = (uint32_t)(both >> 31), .b = (uint32_t)(both & DP_OVERLAP_MOST_DOCUMENTS)};
        *found = *found || may_contain(v->work, pair->a, shared.a) || may_contain(v->work, pair->b, shared.b);
    }
    return status;
}

/* ---- comparing ---- */

static void compare(void *user, size_t thread) {
    verification *v = user;
    dp_overlap_comparer *comparer = &v->comparers[thread];
    for (size_t from; comparer->status == DOPPEL_OK && (from = atomic_fetch_add(&v->next, CHUNK)) < v->count;)
        for (size_t i = from; i < from + CHUNK && i < v->count && comparer->status == DOPPEL_OK; i++)
            comparer->status = dp_stopped(v->work->input.stop)
                                   ? dp_fail(&comparer->error, DOPPEL_ERROR_INTERRUPTED, "interrupted")
                                   : dp_overlap_compare(comparer, &v->pairs[i]);
}

static doppel_status give_pairs(verification *v, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < v->count && status == DOPPEL_OK; i++)
        if (v->pairs[i].found) {
            v->work->counts.pairs++;
            status = dp_overlap_pair_give(&v->pairs[i], &v->work->options);
            if (status != DOPPEL_OK)
                dp_fail(error, status, "%s", doppel_status_name(status));
        }
    return status;
}

static doppel_status run_batch(verification *v, doppel_error *error) {
    size_t threads =
        (v->count + CHUNK - 1) / CHUNK < v->work->threads ? (v->count + CHUNK - 1) / CHUNK : v->work->threads;
    v->next = 0;
    v->work->counts.candidates += v->count;
    dp_run_threads(threads, compare, v);
    for (size_t i = 0; i < threads; i++)
        if (v->comparers[i].status != DOPPEL_OK) {
            if (error)
                *error = v->comparers[i].error;
            return v->comparers[i].status;
        }
    return give_pairs(v, error);
}

static void free_pairs(verification *v) {
    for (size_t i = 0; i < v->count; i++)
        dp_overlap_pair_free(&v->pairs[i]);
    v->count = 0;
}

static doppel_status run_all(verification *v, doppel_error *error) {
    bool found = true;
    doppel_status status = dp_sorter_next(&v->work->hits, &v->hit, error);
    while (status == DOPPEL_OK && found) {
        while (v->count < v->room && found && status == DOPPEL_OK) {
            status = next_candidate(v, &v->pairs[v->count], &found, error);
            v->count += status == DOPPEL_OK && found;
        }
        if (status == DOPPEL_OK && v->count)
            status = run_batch(v, error);
        free_pairs(v);
    }
    return status;
}

doppel_status dp_overlap_verify(dp_overlap_work *work, doppel_error *error) {
    verification v = {.work = work, .room = BATCH * work->threads};
    doppel_status status = dp_spill_flush(&work->texts, error);
    v.pairs = malloc(v.room * sizeof *v.pairs);
    v.comparers = calloc(work->threads, sizeof *v.comparers);
    if (status == DOPPEL_OK && (!v.pairs || !v.comparers))
        status = dp_no_memory(error);
    for (size_t i = 0; i < work->threads && status == DOPPEL_OK; i++)
        status = dp_overlap_comparer_init(&v.comparers[i], work, error);
    if (status == DOPPEL_OK)
        status = run_all(&v, error);
    for (size_t i = 0; v.comparers && i < work->threads; i++)
        dp_overlap_comparer_free(&v.comparers[i]);
    work->counts.spilled_bytes += dp_sorter_spilled(&work->hits) + dp_spill_size(&work->texts);
    free(v.comparers);
    free(v.pairs);
    return status;
}
