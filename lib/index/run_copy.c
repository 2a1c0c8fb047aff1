/* run_copy.c - a table of a merged run, from the same tables of the runs it was merged from.
 *
 * Inside a bucket any order will do, so a bucket of the merged run is the same bucket of one run, then of the next, and
 * so on: plain copies, written from the first to the last. Numbers that are gone are left out. The numbers of runs that
 * have no such table (the head) are arranged, sorted by key, and follow in each bucket. */
#include "index/run_build.h"

#include <stdlib.h>

/* Arranged numbers by key, and how far they were read. */
typedef struct keyed {
    uint64_t *number; /* one or two words each */
    uint64_t count, next;
} keyed;

/* A run whose table is copied. */
typedef struct source {
    const dp_table *table;
    keyed gone;
} source;

typedef struct copying {
    const dp_filling *f;
    size_t words, filter_size, rest_bytes;
    uint64_t place; /* that is written next */
    int sources;
    source source[DP_MERGE_MOST];
    keyed fresh; /* of runs that have no such table */
} copying;

/* ---- numbers by key ---- */

/* By key alone, the lowest 11 bits first: one or two passes and for the widest keys a third. */
static void sort_by_key(const dp_filling *f, uint64_t *numbers, uint64_t *scratch, uint64_t count) {
    enum { STEP = 11 };
    size_t words = f->run->bits > 64 ? 2 : 1;
    uint64_t *from = numbers, *to = scratch;
    for (int done = 0; done < f->table->key_bits; done += STEP) {
        uint32_t starts[(1 << STEP) + 1] = {0};
        uint64_t mask = (1 << STEP) - 1;
        for (uint64_t i = 0; i < count; i++)
            starts[(dp_fill_key(f, from + i * words) >> done & mask) + 1]++;
        for (size_t i = 0; i < 1 << STEP; i++)
            starts[i + 1] += starts[i];
        for (uint64_t i = 0; i < count; i++) {
            uint32_t at = starts[dp_fill_key(f, from + i * words) >> done & mask]++;
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
        dp_fill_arrange(c->f, numbers, count, k->number + k->count * c->words);
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
    uint64_t numbers[2 * DP_BATCH], bucket = 0;
    const char *next = gone->data, *end = gone->size ? next + gone->size : next; /* no sum with NULL */
    size_t bytes = c->words * 8;
    for (uint64_t from = 0; from < run->count; from += DP_BATCH) {
        uint64_t count = run->count - from < DP_BATCH ? run->count - from : DP_BATCH, kept = 0;
        doppel_status status = dp_run_values(run, from, count, &bucket, numbers);
        if (status != DOPPEL_OK)
            return status;
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

/* *worth is false when most would have to be arranged anew. */
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

/* Short pieces by a whole cache line: what is too much is written over by what follows. */
static inline void copy_piece(uint8_t *to, const uint8_t *from, size_t size) {
    if (size <= DP_COLUMN_SLACK)
        memcpy(to, from, DP_COLUMN_SLACK);
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
        if (dp_fill_key(c->f, gone) != key)
            break;
    }
    return false;
}

/* A bucket in which something is gone. */
static void copy_some(copying *c, source *s, uint64_t key) {
    for (uint64_t place = s->table->directory[key]; place < s->table->directory[key + 1]; place++)
        if (!is_gone(c, s, key, place))
            copy_places(c, s, place, 1);
    while (s->gone.next < s->gone.count && dp_fill_key(c->f, s->gone.number + s->gone.next * c->words) == key)
        s->gone.next++;
}

static void copy_bucket(copying *c, uint64_t key) {
    for (int i = 0; i < c->sources; i++) {
        source *s = &c->source[i];
        uint64_t from = s->table->directory[key], count = s->table->directory[key + 1] - from;
        if (s->gone.next < s->gone.count && dp_fill_key(c->f, s->gone.number + s->gone.next * c->words) == key)
            copy_some(c, s, key);
        else if (count)
            copy_places(c, s, from, count);
    }
    keyed *fresh = &c->fresh;
    for (; fresh->next < fresh->count; fresh->next++) {
        const uint64_t *number = fresh->number + fresh->next * c->words;
        if (dp_fill_key(c->f, number) != key)
            break;
        dp_fill_place(c->f, number, c->place++);
    }
}

doppel_status dp_fill_by_copy(const dp_filling *filling, const dp_merging *merging, bool *done) {
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
