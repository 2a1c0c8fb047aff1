/* run_build.c - makes a run: from items, and its tables.
 *
 * dp_items_sort -> dp_run_from_items -> dp_run_build. A table is made by counting: how many numbers have each key,
 * where each bucket begins, then every number to the next place of its bucket; or, when the run was merged from others,
 * by copying buckets of their tables. Table 0 comes last: it has the order of the numbers, and its filter is written
 * over the numbers it is made from, which are twice as wide, so that no memory is needed for both. */
#include "hamming/run.h"

#include <stdlib.h>

/* The number of fingerprints that are arranged at a time: two arrays of them fit the L1 cache. */
enum { BATCH = 512 };

/* Bytes beyond the end of a column that can be read and written: buckets are copied by whole cache lines. */
enum { COLUMN_SLACK = 64 };

typedef struct table_filling {
    const dp_run *run;
    int number; /* of the table */
    const dp_table_layout *layout;
    const dp_run_table *table;
    uint32_t *directory;
    uint8_t *filter, *rest;
} table_filling;

/* The key of an arranged number. A key has at most 30 bits, so that of 128-bit numbers lies in the high word. */
static inline uint64_t fill_key(const table_filling *filling, const uint64_t *arranged) {
    int bits = filling->run->bits, key_bits = filling->table->key_bits;
    if (!key_bits)
        return 0;
    return bits > 64 ? arranged[1] >> (64 - key_bits) : arranged[0] >> (bits - key_bits);
}

/* Writes an arranged number, without its key, to a place. */
static inline void fill_place(const table_filling *filling, const uint64_t *arranged, uint64_t place) {
    bool wide = filling->run->bits > 64;
    uint64_t above = wide ? arranged[1] : arranged[0] >> 32;
    uint32_t low = (uint32_t)arranged[0];
    if (wide)
        memcpy(filling->filter + place * 8, arranged, 8);
    else
        memcpy(filling->filter + place * 4, &low, 4);
    if (!filling->table->rest_bits)
        return;
    above &= UINT64_MAX >> (64 - filling->table->rest_bits);
    int bytes = filling->table->rest_bytes;
    uint8_t *to = filling->rest + place * (uint64_t)bytes;
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(above >> (8 * i));
}

/* ---- items: entries in any order become a run without tables ----
 *
 * The sort is by radix from the top, stable, between two arrays: the value's bits first, then the owner's. A step
 * takes the bits that leave about eight items in a part; small parts are sorted by insertion. */

/* Digits of 8 to 11 bits: 2048 write positions still fit the L2 cache. */
enum { DIGIT_LEAST = 8, DIGIT_MOST = 11, SMALL_PART = 24, WORDS_MOST = 4 };

typedef struct sorter {
    int value_bits;
    int key_words; /* of an item: the value and the owner */
} sorter;

/* A part of the array to sort, and as much of the other. */
typedef struct item_part {
    uint64_t *here, *other;
    size_t count;
    int done;     /* bits of the key that all items share */
    bool to_here; /* where the sorted items are wanted */
} item_part;

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
static digit next_digit(const sorter *s, const item_part *p) {
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

static inline __attribute__((always_inline)) void insertion(const sorter *s, const item_part *p, int words) {
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
static inline __attribute__((always_inline)) bool scatter(const item_part *p, digit d, uint32_t *ends, int words) {
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
static inline __attribute__((always_inline)) bool sort_step(const sorter *s, item_part *p, digit d, uint32_t *ends,
                                                            int words) {
    if (p->count <= SMALL_PART || p->done >= s->value_bits + 64) {
        insertion(s, p, words);
        return false;
    }
    return scatter(p, d, ends, words);
}

static bool sort_step_words(const sorter *s, item_part *p, digit d, uint32_t *ends, int words) {
    switch (words) {
    case 2: return sort_step(s, p, d, ends, 2);
    case 3: return sort_step(s, p, d, ends, 3);
    default: return sort_step(s, p, d, ends, 4);
    }
}

/* A part is halved at least 8 bits a level, so this nests at most (128 + 64) / 8 deep. */
static void sort_part(const sorter *s, item_part p, int words) {
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
                      (item_part){p.other + start * (size_t)words, p.here + start * (size_t)words, ends[i] - start,
                                  p.done, !p.to_here},
                      words);
}

/* Of equal items the last is kept. */
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
    sort_part(&s, (item_part){items->item, scratch, items->count, 0, true}, (int)dp_item_words(items));
    keep_last(items, &s);
}

/* ---- from items to a run ---- */

void dp_items_drop_times(dp_items *items) {
    size_t words = dp_item_words(items);
    for (uint64_t i = 1; i < items->count; i++)
        memmove(items->item + i * (words - 1), items->item + i * words, (words - 1) * 8);
    items->timed = false;
}

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
typedef struct run_arrays {
    uint64_t *values, *ids, *lists, *shared, *expires;
    uint64_t position, listed;
} run_arrays;

static bool get_memory(dp_run *run, const dp_items *items, run_arrays *to) {
    size_t words = run->bits > 64 ? 2 : 1;
    if (!dp_memory_alloc(&run->block[DP_RUN_VALUES], run->count * words * 8) ||
        !dp_memory_alloc(&run->block[DP_RUN_IDS], run->count * 8))
        return false;
    *to = (run_arrays){.values = run->block[DP_RUN_VALUES].data, .ids = run->block[DP_RUN_IDS].data};
    if (run->list_count) {
        if (!dp_memory_alloc(&run->block[DP_RUN_LISTS], run->list_count * 8) ||
            !dp_memory_alloc(&run->block[DP_RUN_SHARED], dp_shared_bytes(run)))
            return false;
        to->lists = run->block[DP_RUN_LISTS].data;
        to->shared = run->block[DP_RUN_SHARED].data;
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

static void fill_group(const dp_items *items, const dp_run *run, uint64_t i, uint64_t end, run_arrays *to) {
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
    run_arrays to;
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

/* ---- arranging ---- */

static void arrange64(const dp_table_layout *layout, int bits, const uint64_t *from, size_t count, uint64_t *to) {
    memset(to, 0, count * sizeof *to);
    int shift = bits;
    for (int c = 0; c < layout->cuts; c++) {
        int down = layout->cut[c].from;
        shift -= layout->cut[c].width;
        uint64_t mask = UINT64_MAX >> (64 - layout->cut[c].width);
        for (size_t i = 0; i < count; i++)
            to[i] |= (from[i] >> down & mask) << shift;
    }
}

/* Brings numbers (one or two words each) into the table's order. */
static void fill_arrange(const table_filling *f, const uint64_t *from, size_t count, uint64_t *to) {
    if (f->run->bits <= 64) {
        arrange64(f->layout, f->run->bits, from, count, to);
        return;
    }
    for (size_t i = 0; i < count; i++)
        dp_bits_store(dp_layout_arrange(f->layout, dp_bits_load(from + 2 * i, 128)), to + 2 * i);
}

/* ---- counting and placing ---- */

/* While a table is filled, directory[k + 1] is how many numbers bucket k has, and then its next place. */
static void count_keys(const table_filling *f, const uint64_t *arranged, size_t count) {
    size_t words = f->run->bits > 64 ? 2 : 1;
    for (size_t i = 0; i < count; i++)
        f->directory[fill_key(f, arranged + i * words) + 1]++;
}

static void place_keys(const table_filling *f, const uint64_t *arranged, size_t count) {
    size_t words = f->run->bits > 64 ? 2 : 1;
    for (size_t i = 0; i < count; i++, arranged += words)
        fill_place(f, arranged, f->directory[fill_key(f, arranged) + 1]++);
}

/* Turns counts per bucket into start positions. */
static void begin_buckets(const table_filling *f) {
    uint32_t start = 0;
    uint32_t *directory = f->directory;
    for (size_t key = 0; key < (size_t)1 << f->table->key_bits; key++) {
        uint32_t count = directory[key + 1];
        directory[key + 1] = start;
        start += count;
    }
}

static void for_batches(const table_filling *f, void (*each)(const table_filling *, const uint64_t *, size_t)) {
    uint64_t arranged[2 * BATCH];
    size_t words = f->run->bits > 64 ? 2 : 1;
    for (uint64_t i = 0; i < f->run->count; i += BATCH) {
        size_t count = f->run->count - i < BATCH ? (size_t)(f->run->count - i) : BATCH;
        fill_arrange(f, f->run->values + i * words, count, arranged);
        each(f, arranged, count);
    }
}

static void fill_by_counting(const table_filling *f) {
    memset(f->directory, 0, dp_directory_bytes(f->table));
    for_batches(f, count_keys);
    begin_buckets(f);
    for_batches(f, place_keys);
}

/* Numbers of table 0 go to their own positions. Up to 64 bits, and always with a constant number of bytes, so that they
 * are written by plain stores. */
static inline __attribute__((always_inline)) void place_in_order(const table_filling *f, uint64_t from, uint64_t to,
                                                                 int rest_bytes) {
    uint64_t mask = f->table->rest_bits ? UINT64_MAX >> (64 - f->table->rest_bits) : 0;
    for (uint64_t i = from; i < to; i++) {
        uint64_t number = f->run->values[i];
        uint32_t low = (uint32_t)number, rest = (uint32_t)(number >> 32 & mask);
        memcpy(f->filter + i * 4, &low, 4);
        for (int byte = 0; byte < rest_bytes; byte++)
            f->rest[i * (uint64_t)rest_bytes + (uint64_t)byte] = (uint8_t)(rest >> (8 * byte));
    }
}

static void place_all_in_order(const table_filling *f) {
    uint64_t count = f->run->count;
    switch (f->run->bits > 64 ? -1 : f->table->rest_bytes) {
    case 0: place_in_order(f, 0, count, 0); return;
    case 1: place_in_order(f, 0, count, 1); return;
    case 2: place_in_order(f, 0, count, 2); return;
    case 3: place_in_order(f, 0, count, 3); return;
    case 4: place_in_order(f, 0, count, 4); return;
    default: break;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number[2] = {f->run->values[2 * i], f->run->values[2 * i + 1]};
        fill_place(f, number, i);
    }
}

/* Table 0: position p goes to place p. */
static void fill_in_order(const table_filling *f) {
    uint64_t key = 0;
    size_t words = f->run->bits > 64 ? 2 : 1;
    f->directory[0] = 0;
    for (uint64_t i = 0; i < f->run->count; i++)
        for (uint64_t own = fill_key(f, f->run->values + i * words); key < own;)
            f->directory[++key] = (uint32_t)i;
    while (key < (uint64_t)1 << f->table->key_bits)
        f->directory[++key] = (uint32_t)f->run->count;
    place_all_in_order(f);
}

/* ---- tables by copying: from the same tables of the runs that were merged ----
 *
 * Inside a bucket any order will do, so a bucket of the merged run is the same bucket of one run, then of the next, and
 * so on: plain copies, written from the first to the last. Numbers that are gone are left out. The numbers of runs that
 * have no such table (the head) are arranged, sorted by key, and follow in each bucket. */

/* Arranged numbers by key, and how far they were read. */
typedef struct keyed {
    uint64_t *number; /* one or two words each */
    uint64_t count, next;
} keyed;

/* A run whose table is copied. */
typedef struct source {
    const dp_run_table *table;
    keyed gone;
} source;

typedef struct copying {
    const table_filling *f;
    size_t words, filter_size, rest_bytes;
    uint64_t place; /* that is written next */
    int sources;
    source source[DP_MERGE_MOST];
    keyed fresh; /* of runs that have no such table */
} copying;

/* ---- numbers by key ---- */

/* By key alone, the lowest 11 bits first: one or two passes and for the widest keys a third. */
static void sort_by_key(const table_filling *f, uint64_t *numbers, uint64_t *scratch, uint64_t count) {
    enum { STEP = 11 };
    size_t words = f->run->bits > 64 ? 2 : 1;
    uint64_t *from = numbers, *to = scratch;
    for (int done = 0; done < f->table->key_bits; done += STEP) {
        uint32_t starts[(1 << STEP) + 1] = {0};
        uint64_t mask = (1 << STEP) - 1;
        for (uint64_t i = 0; i < count; i++)
            starts[(fill_key(f, from + i * words) >> done & mask) + 1]++;
        for (size_t i = 0; i < 1 << STEP; i++)
            starts[i + 1] += starts[i];
        for (uint64_t i = 0; i < count; i++) {
            uint32_t at = starts[fill_key(f, from + i * words) >> done & mask]++;
            memcpy(to + at * words, from + i * words, words * 8);
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != numbers)
        memcpy(numbers, from, count * words * 8);
}

static bool make_keyed(const copying *c, keyed *k, uint64_t count) {
    *k = (keyed){0};
    return !count || (k->number = malloc(2 * count * c->words * 8));
}

/* Arranges and appends numbers, for which there is room. */
static void append(const copying *c, keyed *k, const uint64_t *numbers, uint64_t count) {
    if (count)
        fill_arrange(c->f, numbers, count, k->number + k->count * c->words);
    k->count += count;
}

static void sort_keyed(const copying *c, keyed *k) {
    if (k->count)
        sort_by_key(c->f, k->number, k->number + k->count * c->words, k->count);
}

/* ---- what is copied, and what is not ---- */

static uint64_t gone_count(const copying *c, const dp_merging *merging, int i) {
    return merging->gone[i].size / (8 * c->words);
}

static bool same_layout(const dp_table_layout *a, const dp_table_layout *b) {
    return a->key_bits == b->key_bits && a->cuts == b->cuts &&
           memcmp(a->cut, b->cut, (size_t)a->cuts * sizeof *a->cut) == 0;
}

/* Whether the table of a run can be copied: it has the same one, few of its numbers are gone, and it is not mapped (a
 * file can have tables that hold other numbers than table 0). */
static bool can_copy(const copying *c, const dp_merging *merging, int i) {
    const dp_run *run = merging->run[i];
    int t = c->f->number;
    return !run->values && !run->backing && t < run->layout.tables &&
           same_layout(&run->layout.table[t], c->f->layout) && gone_count(c, merging, i) <= run->count / 8;
}

/* The numbers of a run that are not gone; both ascend. */
static doppel_status add_fresh(copying *c, const dp_run *run, const dp_buffer *gone) {
    uint64_t numbers[2 * BATCH], bucket = 0;
    const char *next = gone->data, *end = gone->size ? next + gone->size : next; /* no sum with NULL */
    size_t bytes = c->words * 8;
    for (uint64_t from = 0; from < run->count; from += BATCH) {
        uint64_t count = run->count - from < BATCH ? run->count - from : BATCH, kept = 0;
        DP_TRY(dp_run_values(run, from, count, &bucket, numbers));
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t *number = numbers + i * c->words;
            if (next < end && memcmp(number, next, bytes) == 0)
                next += bytes;
            else
                memmove(numbers + kept++ * c->words, number, bytes);
        }
        append(c, &c->fresh, numbers, kept);
    }
    return DOPPEL_OK;
}

static doppel_status open_source(copying *c, const dp_merging *merging, int i) {
    source *s = &c->source[c->sources++];
    uint64_t count = gone_count(c, merging, i);
    s->table = &merging->run[i]->table[c->f->number];
    if (!make_keyed(c, &s->gone, count))
        return DOPPEL_ERROR_MEMORY;
    append(c, &s->gone, (const uint64_t *)(const void *)merging->gone[i].data, count);
    sort_keyed(c, &s->gone);
    return DOPPEL_OK;
}

/* *worth is false if most would have to be rearranged. */
static doppel_status open_all(copying *c, const dp_merging *merging, bool *worth) {
    uint64_t fresh = 0;
    for (int i = 0; i < merging->count; i++)
        fresh += can_copy(c, merging, i) ? 0 : merging->run[i]->count;
    *worth = fresh <= c->f->run->count / 4;
    if (!*worth)
        return DOPPEL_OK;
    if (!make_keyed(c, &c->fresh, fresh))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < merging->count && status == DOPPEL_OK; i++)
        status =
            can_copy(c, merging, i) ? open_source(c, merging, i) : add_fresh(c, merging->run[i], &merging->gone[i]);
    sort_keyed(c, &c->fresh);
    return status;
}

/* ---- copying ---- */

/* Short pieces by a whole cache line: the excess is overwritten by what follows. */
static inline void copy_piece(uint8_t *to, const uint8_t *from, size_t size) {
    if (size <= COLUMN_SLACK)
        memcpy(to, from, COLUMN_SLACK);
    else
        memcpy(to, from, size);
}

static inline void copy_places(copying *c, const source *s, uint64_t from, uint64_t count) {
    copy_piece(c->f->filter + c->place * c->filter_size, (const uint8_t *)s->table->filter + from * c->filter_size,
               count * c->filter_size);
    if (c->rest_bytes)
        copy_piece(c->f->rest + c->place * c->rest_bytes, s->table->rest + from * c->rest_bytes, count * c->rest_bytes);
    c->place += count;
}

/* Whether a place of a bucket holds a number that is gone. */
static bool is_gone(const copying *c, const source *s, uint64_t key, uint64_t place) {
    uint64_t number[2];
    dp_bits_store(dp_run_arranged(c->f->run, s->table, key, place), number);
    for (uint64_t i = s->gone.next; i < s->gone.count; i++) {
        const uint64_t *gone = s->gone.number + i * c->words;
        if (memcmp(gone, number, c->words * 8) == 0)
            return true;
        if (fill_key(c->f, gone) != key)
            break;
    }
    return false;
}

/* A bucket in which something is gone. */
static void copy_some(copying *c, source *s, uint64_t key) {
    for (uint64_t place = s->table->directory[key]; place < s->table->directory[key + 1]; place++)
        if (!is_gone(c, s, key, place))
            copy_places(c, s, place, 1);
    while (s->gone.next < s->gone.count && fill_key(c->f, s->gone.number + s->gone.next * c->words) == key)
        s->gone.next++;
}

static void copy_bucket(copying *c, uint64_t key) {
    for (int i = 0; i < c->sources; i++) {
        source *s = &c->source[i];
        uint64_t from = s->table->directory[key], count = s->table->directory[key + 1] - from;
        if (s->gone.next < s->gone.count && fill_key(c->f, s->gone.number + s->gone.next * c->words) == key)
            copy_some(c, s, key);
        else if (count)
            copy_places(c, s, from, count);
    }
    keyed *fresh = &c->fresh;
    for (; fresh->next < fresh->count; fresh->next++) {
        const uint64_t *number = fresh->number + fresh->next * c->words;
        if (fill_key(c->f, number) != key)
            break;
        fill_place(c->f, number, c->place++);
    }
}

/* Fills a table of a merged run bucket by bucket from the same tables of the runs it was merged from.
 * *done is false when too little can be copied: then the table is to be filled from the numbers. */
static doppel_status fill_by_copy(const table_filling *filling, const dp_merging *merging, bool *done) {
    copying *c = calloc(1, sizeof *c);
    if (!c)
        return DOPPEL_ERROR_MEMORY;
    c->f = filling;
    c->words = filling->run->bits > 64 ? 2 : 1;
    c->filter_size = dp_filter_size(filling->run);
    c->rest_bytes = (size_t)filling->table->rest_bytes;
    doppel_status status = open_all(c, merging, done);
    uint64_t buckets = (uint64_t)1 << filling->table->key_bits;
    for (uint64_t key = 0; key < buckets && *done && status == DOPPEL_OK; key++) {
        filling->directory[key] = (uint32_t)c->place;
        copy_bucket(c, key);
    }
    filling->directory[buckets] = (uint32_t)c->place;
    for (int i = 0; i < c->sources; i++)
        free(c->source[i].gone.number);
    free(c->fresh.number);
    free(c);
    return status;
}

static doppel_status fill_table(const table_filling *f, const dp_merging *merging) {
    if (f->number == 0) {
        fill_in_order(f);
        return DOPPEL_OK;
    }
    bool done = false;
    doppel_status status = merging ? fill_by_copy(f, merging, &done) : DOPPEL_OK;
    if (status == DOPPEL_OK && !done)
        fill_by_counting(f);
    return status;
}

/* ---- memory ---- */

/* A section of a block; sections begin at cache lines. */
static size_t take(size_t *used, size_t size) {
    size_t at = *used;
    *used = (at + size + COLUMN_SLACK + 63) / 64 * 64;
    return at;
}

/* Where the sections of a table begin in the block of tables. The filter of table 0 has a block of its own. */
typedef struct places {
    size_t directory, filter, rest;
} places;

static size_t lay_out(const dp_run *run, places *at) {
    size_t used = 0;
    for (int t = 0; t < run->layout.tables; t++) {
        at[t].directory = take(&used, dp_directory_bytes(&run->table[t]));
        at[t].filter = t ? take(&used, dp_filter_bytes(run)) : 0;
        at[t].rest = take(&used, dp_rest_bytes(run, &run->table[t]));
    }
    return used;
}

static table_filling begin_table(dp_run *run, int t, const places *at) {
    uint8_t *memory = run->block[DP_RUN_TABLES].data;
    table_filling f = {.run = run, .number = t, .layout = &run->layout.table[t], .table = &run->table[t]};
    f.directory = (uint32_t *)(void *)(memory + at->directory);
    f.filter = t ? memory + at->filter : run->block[DP_RUN_VALUES].data;
    f.rest = memory + at->rest;
    run->table[t].directory = f.directory;
    run->table[t].filter = f.filter;
    run->table[t].rest = f.rest;
    return f;
}

doppel_status dp_run_build(dp_run *run, const dp_layout *layout, const dp_merging *merging) {
    places at[DP_MAX_TABLES];
    dp_run_set_layout(run, layout);
    if (!dp_memory_alloc(&run->block[DP_RUN_TABLES], lay_out(run, at)))
        return DOPPEL_ERROR_MEMORY;
    for (int t = layout->tables - 1; t >= 0; t--) {
        table_filling f = begin_table(run, t, &at[t]);
        if (dp_merging_is_cancelled(merging))
            return DOPPEL_ERROR_INTERRUPTED;
        DP_TRY(fill_table(&f, merging));
        memset(f.rest + run->count * (size_t)f.table->rest_bytes, 0, DP_REST_PADDING);
    }
    dp_memory_trim(&run->block[DP_RUN_VALUES], dp_filter_bytes(run));
    run->values = NULL;
    return DOPPEL_OK;
}
