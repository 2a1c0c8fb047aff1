/* diff.c - the shortest edit of one text into another, word by word.
 *
 * Common ends are skipped. For the middle, Myers' greedy search: reach[k] is how far into A the search gets on the
 * diagonal k = (place in A) - (place in B) with d changes; d grows until both ends are reached. The reach of each d is
 * kept, and walked back. Time and memory grow with d squared, so d is bounded. */
#include "diff.h"

#include <stdlib.h>
#include <string.h>

/* 4 million numbers, 16 MB, at worst. */
#define MOST_CHANGES 2000

/* ---- words ---- */

doppel_status diff_split(diff_text *split, const char *text, size_t length) {
    doppel_recipe *recipe = NULL;
    doppel_sketcher *sketcher = NULL;
    doppel_sketch sketch;
    *split = (diff_text){.text = text, .length = length};
    doppel_status status = doppel_recipe_parse("simhash64:words=1", NULL, &recipe, NULL);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_create(recipe, DOPPEL_WANT_FEATURES, &sketcher, NULL);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_run(sketcher, (doppel_slice){text, length}, &sketch);
    if (status == DOPPEL_OK)
        status = doppel_ranges_find(recipe, (doppel_slice){text, length}, &split->ranges);
    if (status == DOPPEL_OK) {
        split->words = sketch.features < split->ranges.count ? (size_t)sketch.features : split->ranges.count;
        split->hash = malloc(split->words * sizeof *split->hash + 1);
        if (!split->hash)
            status = DOPPEL_ERROR_MEMORY;
        else if (split->words)
            memcpy(split->hash, sketch.feature_hashes, split->words * sizeof *split->hash);
    }
    doppel_sketcher_free(sketcher);
    doppel_recipe_free(recipe);
    return status;
}

void diff_text_free(diff_text *split) {
    doppel_ranges_free(&split->ranges);
    free(split->hash);
}

void diff_free(diff *d) {
    free(d->run);
}

/* ---- runs ---- */

/* Runs are made from the end of the texts to their beginning, and reversed at the end. */
typedef struct making {
    diff *out;
    size_t room;
    bool failed;
} making;

static void add_run(making *m, diff_kind kind, size_t first, size_t count) {
    diff *out = m->out;
    diff_run *last = out->count ? &out->run[out->count - 1] : NULL;
    if (!count)
        return;
    if (last && last->kind == kind && last->first == first + count) {
        last->first = first;
        last->count += count;
        return;
    }
    if (out->count == m->room) {
        size_t room = m->room ? 2 * m->room : 64;
        diff_run *more = realloc(out->run, room * sizeof *more);
        m->failed = m->failed || !more;
        if (!more)
            return;
        out->run = more;
        m->room = room;
    }
    out->run[out->count++] = (diff_run){kind, first, count};
}

/* ---- the search ---- */

/* The middle of both texts, and what was reached: for d changes, the diagonals -d, -d + 2, ..., d at d * (d + 1) / 2.
 */
typedef struct search {
    const uint64_t *a, *b;
    size_t a_count, b_count;
    uint32_t *reach;
    size_t room;
    size_t changes;
} search;

static uint32_t *reach_of(const search *s, size_t d) {
    return s->reach + d * (d + 1) / 2;
}

static bool make_room(search *s, size_t d) {
    size_t need = (d + 1) * (d + 2) / 2;
    if (need <= s->room)
        return true;
    size_t room = 2 * need + 256;
    uint32_t *more = realloc(s->reach, room * sizeof *more);
    if (!more)
        return false;
    s->reach = more;
    s->room = room;
    return true;
}

/* Whether step i of d changes (diagonal 2i - d) comes from the diagonal above it, by a word of B; else by one of A. */
static bool comes_by_new(const uint32_t *before, size_t d, size_t i) {
    return i == 0 || (i != d && before[i - 1] < before[i]);
}

/* Follows the diagonals as far as d changes go; true when the end is reached. */
static bool extend(search *s, size_t d) {
    uint32_t *now = reach_of(s, d);
    const uint32_t *before = d ? reach_of(s, d - 1) : NULL;
    for (size_t i = 0; i <= d; i++) {
        size_t x = !d ? 0 : comes_by_new(before, d, i) ? before[i] : before[i - 1] + 1U;
        size_t y = x + d - 2 * i;
        while (x < s->a_count && y < s->b_count && s->a[x] == s->b[y]) {
            x++;
            y++;
        }
        now[i] = (uint32_t)x;
        if (x == s->a_count && y == s->b_count)
            return true;
    }
    return false;
}

/* DOPPEL_OK and s->changes, or MOST_CHANGES + 1 of them. */
static doppel_status find(search *s) {
    for (size_t d = 0; d <= MOST_CHANGES; d++) {
        if (!make_room(s, d))
            return DOPPEL_ERROR_MEMORY;
        s->changes = d;
        if (extend(s, d))
            return DOPPEL_OK;
    }
    s->changes = MOST_CHANGES + 1;
    return DOPPEL_OK;
}

/* Makes runs of the way back from the end of the middle; `offset` words come before it in both texts. */
static void walk_back(const search *s, size_t offset, making *m) {
    size_t x = s->a_count, i = (s->a_count + s->changes - s->b_count) / 2;
    for (size_t d = s->changes; d; d--) {
        const uint32_t *before = reach_of(s, d - 1);
        bool new = comes_by_new(before, d, i);
        size_t from = new ? before[i] : before[i - 1];
        size_t start = new ? from : from + 1;
        add_run(m, DIFF_SAME, offset + start, x - start);
        if (new)
            add_run(m, DIFF_ADDED, offset + from + d - 1 - 2 * i, 1);
        else
            add_run(m, DIFF_REMOVED, offset + from, 1);
        x = from;
        i -= !new;
    }
    add_run(m, DIFF_SAME, offset, x);
}

/* ---- all of it ---- */

/* Reverses the runs, and merges those between common runs into at most one removed and one added run. */
static void put_in_order(diff *out) {
    size_t used = 0;
    for (size_t i = 0, j = out->count; i + 1 < j; i++) {
        diff_run run = out->run[i];
        out->run[i] = out->run[--j];
        out->run[j] = run;
    }
    for (size_t i = 0; i < out->count;) {
        diff_run gone = {DIFF_REMOVED, 0, 0}, new = {DIFF_ADDED, 0, 0}, same = {DIFF_SAME, 0, 0};
        for (; i < out->count && out->run[i].kind != DIFF_SAME; i++) {
            diff_run *sum = out->run[i].kind == DIFF_REMOVED ? &gone : &new;
            sum->first = sum->count ? sum->first : out->run[i].first;
            sum->count += out->run[i].count;
        }
        if (i < out->count)
            same = out->run[i++];
        if (gone.count)
            out->run[used++] = gone;
        if (new.count)
            out->run[used++] = new;
        if (same.count)
            out->run[used++] = same;
    }
    out->count = used;
}

doppel_status diff_words(const diff_text *a, const diff_text *b, diff *out) {
    size_t less = a->words < b->words ? a->words : b->words, head = 0, tail = 0;
    making m = {.out = out};
    *out = (diff){0};
    while (head < less && a->hash[head] == b->hash[head])
        head++;
    while (tail < less - head && a->hash[a->words - 1 - tail] == b->hash[b->words - 1 - tail])
        tail++;
    search s = {.a = a->hash + head, .b = b->hash + head};
    s.a_count = a->words - head - tail;
    s.b_count = b->words - head - tail;
    doppel_status status = find(&s);
    if (status != DOPPEL_OK) {
        free(s.reach);
        return status;
    }
    add_run(&m, DIFF_SAME, a->words - tail, tail);
    out->unaligned = s.changes > MOST_CHANGES;
    if (out->unaligned) {
        add_run(&m, DIFF_ADDED, head, s.b_count);
        add_run(&m, DIFF_REMOVED, head, s.a_count);
    } else {
        walk_back(&s, head, &m);
    }
    add_run(&m, DIFF_SAME, 0, head);
    free(s.reach);
    if (m.failed) {
        diff_free(out);
        return DOPPEL_ERROR_MEMORY;
    }
    put_in_order(out);
    return DOPPEL_OK;
}
