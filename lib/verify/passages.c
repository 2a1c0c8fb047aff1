/* passages.c - the matching passages of two texts, for showing: common runs of words, the longest first.
 *
 * Of all common runs (runs.c) the longest is taken, of equal ones the first in A and then in B; its words are spent. A
 * run that has lost words to an earlier one falls into the parts that are left, which queue up again by their length
 * (greedy string tiling). So every passage is the longest one there was at its turn. */
#include "sketch/sketch.h"
#include "verify/marks.h"
#include "verify/runs.h"
#include "verify/verify.h"

#include <stdlib.h>

/* The words of one text: which are spent, and which are not. */
struct side {
    dp_marks spent, left;
};

struct tiling {
    const dp_word_ids *ids;
    size_t min_words, budget;
    struct side a, b;
    dp_common_runs found; /* by runs.c */
    uint64_t *order;      /* of those found: length, longest first, and place */
    dp_common_runs queue; /* of parts: a heap, the longest on top */
    dp_common_runs taken;
};

/* ---- the queue ---- */

static bool goes_first(const dp_common_run *x, const dp_common_run *y) {
    if (x->length != y->length)
        return x->length > y->length;
    return x->a != y->a ? x->a < y->a : x->b < y->b;
}

static void sift_down(dp_common_runs *queue, size_t at) {
    for (;;) {
        size_t best = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < queue->count; i++)
            if (goes_first(&queue->runs[i], &queue->runs[best]))
                best = i;
        if (best == at)
            return;
        dp_common_run swap = queue->runs[at];
        queue->runs[at] = queue->runs[best];
        queue->runs[best] = swap;
        at = best;
    }
}

static dp_common_run pop(dp_common_runs *queue) {
    dp_common_run top = queue->runs[0];
    queue->runs[0] = queue->runs[--queue->count];
    sift_down(queue, 0);
    return top;
}

static bool append(dp_common_runs *runs, dp_common_run run) {
    if (!dp_reserve(&runs->runs, &runs->capacity, runs->count + 1, sizeof *runs->runs))
        return false;
    runs->runs[runs->count++] = run;
    return true;
}

static bool push(dp_common_runs *queue, dp_common_run run) {
    if (!append(queue, run))
        return false;
    for (size_t at = queue->count - 1; at;) {
        size_t parent = (at - 1) / 2;
        if (!goes_first(&queue->runs[at], &queue->runs[parent]))
            break;
        dp_common_run swap = queue->runs[at];
        queue->runs[at] = queue->runs[parent];
        queue->runs[parent] = swap;
        at = parent;
    }
    return true;
}

/* ---- taking runs ---- */

/* The next part of a run, from its word *at on, that is left on both sides. False when there is none. */
static bool next_part(const struct tiling *tiling, dp_common_run run, size_t *at, dp_common_run *part) {
    size_t begin = *at, end;
    for (size_t from = SIZE_MAX; from != begin && begin < run.length;) {
        from = begin;
        begin = dp_marks_next(&tiling->a.left, run.a + begin) - run.a;
        begin = begin < run.length ? dp_marks_next(&tiling->b.left, run.b + begin) - run.b : begin;
    }
    if (begin >= run.length)
        return false;
    size_t end_a = dp_marks_next(&tiling->a.spent, run.a + begin) - run.a;
    size_t end_b = dp_marks_next(&tiling->b.spent, run.b + begin) - run.b;
    end = end_a < end_b ? end_a : end_b;
    end = end < run.length ? end : run.length;
    *part = (dp_common_run){(uint32_t)(end - begin), run.a + (uint32_t)begin, run.b + (uint32_t)begin};
    *at = end;
    return true;
}

static void spend(struct side *side, size_t start, size_t count) {
    for (size_t i = start; i < start + count; i++) {
        dp_marks_add(&side->spent, i);
        dp_marks_remove(&side->left, i);
    }
}

/* The hashes said the words are the same; here they are compared. */
static uint32_t really_common(const dp_word_ids *ids, dp_common_run run) {
    uint32_t same = 0;
    while (same < run.length && ids->a[run.a + same] == ids->b[run.b + same])
        same++;
    return same;
}

static bool take(struct tiling *tiling, dp_common_run run) {
    uint32_t same = really_common(tiling->ids, run);
    if (same < run.length) {
        run.length = same;
        return same < tiling->min_words || push(&tiling->queue, run);
    }
    spend(&tiling->a, run.a, run.length);
    spend(&tiling->b, run.b, run.length);
    return append(&tiling->taken, run);
}

/* Takes the run if it is whole, else queues its parts. Parts are looked for within a budget of steps, which only texts
 * made for it use up; then runs that are not whole are dropped. */
static bool take_or_split(struct tiling *tiling, dp_common_run run) {
    size_t at = 0;
    dp_common_run part;
    while (next_part(tiling, run, &at, &part)) {
        if (part.length == run.length)
            return take(tiling, run);
        if (!tiling->budget)
            return true;
        tiling->budget--;
        if (part.length >= tiling->min_words && !push(&tiling->queue, part))
            return false;
    }
    return true;
}

/* Sorts the runs that were found by length, equal ones as they were found. */
static bool order_runs(struct tiling *tiling) {
    size_t count = tiling->found.count;
    uint64_t *scratch = malloc((count + 1) * sizeof *scratch);
    tiling->order = malloc((count + 1) * sizeof *tiling->order);
    bool done = scratch && tiling->order && count <= UINT32_MAX;
    if (done) {
        for (size_t i = 0; i < count; i++)
            tiling->order[i] = (uint64_t)(UINT32_MAX - tiling->found.runs[i].length) << 32 | i;
        dp_sort64(tiling->order, count, scratch);
    }
    free(scratch);
    return done;
}

static bool tile(struct tiling *tiling) {
    size_t a_count = tiling->ids->a_count, b_count = tiling->ids->b_count, next = 0;
    if (!dp_common_runs_find(tiling->ids, tiling->min_words, &tiling->found) || !order_runs(tiling) ||
        !dp_marks_init(&tiling->a.spent, a_count, false) || !dp_marks_init(&tiling->a.left, a_count, true) ||
        !dp_marks_init(&tiling->b.spent, b_count, false) || !dp_marks_init(&tiling->b.left, b_count, true))
        return false;
    tiling->budget = 16 * (a_count + b_count);
    while (next < tiling->found.count || tiling->queue.count) {
        const dp_common_run *run = NULL, *part = tiling->queue.count ? tiling->queue.runs : NULL;
        if (next < tiling->found.count)
            run = &tiling->found.runs[(uint32_t)tiling->order[next]];
        bool take_part = !run || (part && goes_first(part, run));
        next += !take_part;
        if (!take_or_split(tiling, take_part ? pop(&tiling->queue) : *run))
            return false;
    }
    return true;
}

static void tiling_free(struct tiling *tiling) {
    dp_marks_free(&tiling->a.spent);
    dp_marks_free(&tiling->a.left);
    dp_marks_free(&tiling->b.spent);
    dp_marks_free(&tiling->b.left);
    free(tiling->found.runs);
    free(tiling->order);
    free(tiling->queue.runs);
    free(tiling->taken.runs);
}

/* ---- back to bytes ---- */

static int by_place_in_a(const void *x, const void *y) {
    const doppel_passage *a = x, *b = y;
    return a->a_start < b->a_start ? -1 : a->a_start > b->a_start;
}

static doppel_status give(const struct tiling *tiling, const uint64_t *ranges_a, const uint64_t *ranges_b,
                          doppel_passage **passages, size_t *count) {
    size_t taken = tiling->taken.count;
    if (!taken)
        return DOPPEL_OK;
    doppel_passage *list = malloc(taken * sizeof *list);
    if (!list)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < taken; i++) {
        dp_common_run run = tiling->taken.runs[i];
        size_t last_a = (size_t)run.a + run.length - 1, last_b = (size_t)run.b + run.length - 1;
        list[i] = (doppel_passage){.a_start = ranges_a[2 * (size_t)run.a],
                                   .a_end = ranges_a[2 * last_a + 1],
                                   .b_start = ranges_b[2 * (size_t)run.b],
                                   .b_end = ranges_b[2 * last_b + 1],
                                   .words = run.length};
    }
    qsort(list, taken, sizeof *list, by_place_in_a);
    *passages = list;
    *count = taken;
    return DOPPEL_OK;
}

static doppel_status match(const dp_word_list *a, const dp_word_list *b, size_t min_words, doppel_passage **passages,
                           size_t *count) {
    dp_word_ids ids;
    struct tiling tiling = {.ids = &ids, .min_words = min_words};
    doppel_status status = DOPPEL_ERROR_MEMORY;
    if (dp_word_ids_init(&ids, a, b) && tile(&tiling))
        status = give(&tiling, a->ranges, b->ranges, passages, count);
    tiling_free(&tiling);
    dp_word_ids_free(&ids);
    return status;
}

doppel_status doppel_passages(const doppel_recipe *recipe, const char *a, size_t a_length, const char *b,
                              size_t b_length, size_t min_words, doppel_passage **passages, size_t *count) {
    *passages = NULL;
    *count = 0;
    if (!min_words)
        return DOPPEL_ERROR_USAGE;
    /* Words, even where the recipe's features are code points: such is a list. */
    const dp_words_options *options = &(recipe ? recipe : dp_recipe_default())->text;
    dp_word_list words_a = {0}, words_b = {0};
    doppel_status status = dp_word_list_make(options, a, a_length, &words_a);
    if (!status)
        status = dp_word_list_make(options, b, b_length, &words_b);
    if (!status)
        status = match(&words_a, &words_b, min_words, passages, count);
    dp_word_list_free(&words_a);
    dp_word_list_free(&words_b);
    return status;
}
