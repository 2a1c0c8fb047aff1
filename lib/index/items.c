/* items.c - entries in any order become a run without tables: dp_items_sort, then dp_run_from_items.
 *
 * The sort is by radix from the top, stable, between two arrays: the value's bits first, then the owner's, so many a
 * step that about eight items are left in a part; small parts are sorted by insertion. */
#include "index/run.h"

#include <stdlib.h>

/* Digits of 8 to 11 bits: 2048 write positions still fit the second cache. */
enum { DIGIT_LEAST = 8, DIGIT_MOST = 11, SMALL_PART = 24, WORDS_MOST = 4 };

typedef struct sorter {
    int value_bits;
    int key_words; /* of an item: the value and the owner */
} sorter;

/* A part of the array to sort, and as much of the other. */
typedef struct part {
    uint64_t *here, *other;
    size_t count;
    int done;     /* bits of the key that all items share */
    bool to_here; /* where the sorted items are wanted */
} part;

typedef struct digit {
    int word, shift, width;
} digit;

/* ---- the order of items ---- */

/* Value, high word first, then owner. */
static inline int compare_items(const uint64_t *a, const uint64_t *b, int key_words) {
    if (key_words == 3 && a[1] != b[1])
        return a[1] < b[1] ? -1 : 1;
    if (a[0] != b[0])
        return a[0] < b[0] ? -1 : 1;
    uint64_t x = a[key_words - 1], y = b[key_words - 1];
    return x < y ? -1 : x > y;
}

/* The next digit of a part's keys. It lies in one word. */
static digit next_digit(const sorter *s, const part *p) {
    int width = 63 - __builtin_clzll(p->count) - 3;
    width = width < DIGIT_LEAST ? DIGIT_LEAST : width > DIGIT_MOST ? DIGIT_MOST : width;
    int word, left; /* bits of the word that are not done */
    if (p->done >= s->value_bits) {
        word = s->key_words - 1;
        left = s->value_bits + 64 - p->done;
    } else {
        word = s->value_bits - p->done > 64;
        left = s->value_bits - p->done - 64 * word;
    }
    width = width < left ? width : left;
    return (digit){word, left - width, width};
}

static inline __attribute__((always_inline)) void insertion(const sorter *s, const part *p, int words) {
    uint64_t *items = p->here;
    for (size_t i = 1; i < p->count; i++) {
        uint64_t item[WORDS_MOST];
        memcpy(item, items + i * (size_t)words, (size_t)words * 8);
        size_t at = i;
        for (; at && compare_items(items + (at - 1) * (size_t)words, item, s->key_words) > 0; at--)
            memcpy(items + at * (size_t)words, items + (at - 1) * (size_t)words, (size_t)words * 8);
        memcpy(items + at * (size_t)words, item, (size_t)words * 8);
    }
    if (!p->to_here)
        memcpy(p->other, p->here, p->count * (size_t)words * 8);
}

/* Moves the items to the other array by a digit; ends[d] is then where digit d ends. False: all have the same digit,
 * and nothing was moved. */
static inline __attribute__((always_inline)) bool scatter(const part *p, digit d, uint32_t *ends, int words) {
    size_t size = (size_t)1 << d.width, step = (size_t)words;
    uint64_t mask = size - 1;
    memset(ends, 0, size * sizeof *ends);
    for (size_t i = 0; i < p->count; i++)
        ends[p->here[i * step + (size_t)d.word] >> d.shift & mask]++;
    if (ends[p->here[d.word] >> d.shift & mask] == p->count)
        return false;
    uint32_t start = 0;
    for (size_t i = 0; i < size; i++) {
        uint32_t count = ends[i];
        ends[i] = start;
        start += count;
    }
    for (size_t i = 0; i < p->count; i++) {
        const uint64_t *item = p->here + i * step;
        memcpy(p->other + ends[item[d.word] >> d.shift & mask]++ * step, item, step * 8);
    }
    return true;
}

/* Always with a constant number of words, so that items are moved by plain loads and stores. */
static inline __attribute__((always_inline)) bool sort_step(const sorter *s, part *p, digit d, uint32_t *ends,
                                                            int words) {
    if (p->count <= SMALL_PART || p->done >= s->value_bits + 64) {
        insertion(s, p, words);
        return false;
    }
    return scatter(p, d, ends, words);
}

static bool sort_step_words(const sorter *s, part *p, digit d, uint32_t *ends, int words) {
    switch (words) {
    case 2: return sort_step(s, p, d, ends, 2);
    case 3: return sort_step(s, p, d, ends, 3);
    default: return sort_step(s, p, d, ends, 4);
    }
}

/* A part is halved at least 8 bits a level, so this nests at most (128 + 64) / 8 deep. */
static void sort_part(const sorter *s, part p, int words) {
    uint32_t ends[1 << DIGIT_MOST];
    digit d;
    for (;;) {
        bool last = p.count <= SMALL_PART || p.done >= s->value_bits + 64;
        d = last ? (digit){0} : next_digit(s, &p);
        bool moved = sort_step_words(s, &p, d, ends, words);
        if (last)
            return;
        p.done += d.width;
        if (moved)
            break;
    }
    uint32_t start = 0;
    for (size_t i = 0; i < (size_t)1 << d.width; start = ends[i++])
        if (ends[i] > start)
            sort_part(s,
                      (part){p.other + start * (size_t)words, p.here + start * (size_t)words, ends[i] - start, p.done,
                             !p.to_here},
                      words);
}

/* Of items alike the last stays. */
static void keep_last(dp_items *items, const sorter *s) {
    size_t words = dp_item_words(items), kept = 0;
    for (size_t i = 0; i < items->count; i++) {
        const uint64_t *item = items->item + i * words;
        if (i + 1 < items->count && compare_items(item, item + words, s->key_words) == 0)
            continue;
        memmove(items->item + kept++ * words, item, words * 8);
    }
    items->count = kept;
}

void dp_items_sort(dp_items *items, uint64_t *scratch) {
    sorter s = {items->bits, items->bits > 64 ? 3 : 2};
    sort_part(&s, (part){items->item, scratch, items->count, 0, true}, (int)dp_item_words(items));
    keep_last(items, &s);
}

/* ---- from items to a run ---- */

/* Where the next distinct value begins after item i. */
static uint64_t end_of_group(const dp_items *items, uint64_t i) {
    size_t words = dp_item_words(items), value_words = items->bits > 64 ? 2 : 1;
    const uint64_t *first = items->item + i * words;
    do
        i++;
    while (i < items->count && memcmp(first, items->item + i * words, value_words * 8) == 0);
    return i;
}

static void count_groups(const dp_items *items, dp_run *run) {
    for (uint64_t i = 0, end; i < items->count; i = end) {
        end = end_of_group(items, i);
        run->count++;
        run->list_count += end - i > 1 ? end - i + 1 : 0;
    }
}

/* The arrays of a run that is being filled. */
typedef struct filling {
    uint64_t *values, *ids, *lists, *shared, *expires;
    uint64_t position, listed;
} filling;

static bool get_memory(dp_run *run, const dp_items *items, filling *to) {
    size_t words = run->bits > 64 ? 2 : 1;
    if (!dp_area_get(&run->area[DP_AREA_VALUES], run->count * words * 8) ||
        !dp_area_get(&run->area[DP_AREA_IDS], run->count * 8))
        return false;
    *to = (filling){.values = run->area[DP_AREA_VALUES].data, .ids = run->area[DP_AREA_IDS].data};
    if (run->list_count) {
        if (!dp_area_get(&run->area[DP_AREA_LISTS], run->list_count * 8) ||
            !dp_area_get(&run->area[DP_AREA_SHARED], dp_shared_bytes(run)))
            return false;
        to->lists = run->area[DP_AREA_LISTS].data;
        to->shared = run->area[DP_AREA_SHARED].data;
        memset(to->shared, 0, dp_shared_bytes(run));
    }
    if (items->timed) {
        to->expires = run->expires_memory = calloc(dp_run_slots(run) + 1, sizeof(uint64_t));
        atomic_init(&run->expires, (_Atomic uint64_t *)run->expires_memory);
    }
    run->values = to->values;
    run->ids = to->ids;
    run->lists = to->lists;
    run->shared = to->shared;
    return !items->timed || to->expires;
}

static void fill_group(const dp_items *items, const dp_run *run, uint64_t i, uint64_t end, filling *to) {
    size_t words = dp_item_words(items), value_words = items->bits > 64 ? 2 : 1;
    const uint64_t *item = items->item + i * words;
    memcpy(to->values + to->position * value_words, item, value_words * 8);
    if (end - i == 1) {
        to->ids[to->position] = item[value_words];
        if (to->expires)
            to->expires[to->position] = item[value_words + 1];
        to->position++;
        return;
    }
    to->ids[to->position] = to->listed;
    to->shared[to->position / 64] |= (uint64_t)1 << (to->position % 64);
    to->position++;
    to->lists[to->listed++] = end - i;
    for (; i < end; i++, item += words, to->listed++) {
        to->lists[to->listed] = item[value_words];
        if (to->expires)
            to->expires[run->count + to->listed] = item[value_words + 1];
    }
}

doppel_status dp_run_from_items(const dp_items *items, dp_run **made) {
    dp_run *run = dp_run_create(items->bits);
    filling to;
    if (!run)
        return DOPPEL_ERROR_MEMORY;
    count_groups(items, run);
    if (!get_memory(run, items, &to)) {
        dp_run_free(run);
        return DOPPEL_ERROR_MEMORY;
    }
    for (uint64_t i = 0, end; i < items->count; i = end) {
        end = end_of_group(items, i);
        fill_group(items, run, i, end, &to);
    }
    *made = run;
    return DOPPEL_OK;
}
