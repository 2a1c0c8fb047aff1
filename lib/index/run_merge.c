/* run_merge.c - one run without tables of what is alive in several.
 *
 * Each run is read by a cursor, a stretch of numbers at a time. The cursor with the smallest number gives all it has
 * below the smallest of the others; where nothing of that has lists, times or dead owners, it is copied as it stands,
 * else position by position. A number that several runs have gets the owners of all. merged.c writes what comes out. */
#include "index/merged.h"

#include <stdlib.h>

enum { STRETCH = 512 };

typedef struct cursor {
    const dp_run *run;
    dp_buffer *gone;
    bool plain;      /* no lists, no times, nothing dead */
    uint64_t at;     /* position of the next number */
    uint64_t loaded; /* positions below it have been read */
    uint64_t bucket;
    dp_bits last;         /* the number before `loaded` */
    const uint64_t *next; /* the number at `at` */
    uint64_t numbers[2 * STRETCH];
} cursor;

typedef struct merger {
    int words; /* of a number */
    int cursors;
    cursor *cursor;
    dp_merged merged;
} merger;

/* ---- cursors ---- */

static inline dp_bits number_at(const uint64_t *number, int words) {
    return words > 1 ? (dp_bits)number[1] << 64 | number[0] : number[0];
}

static inline bool at_end(const cursor *c) {
    return c->at == c->run->count;
}

/* Whether the numbers just loaded go on ascending within their width. Tables are made on that, and a file may have been
 * made to deceive. */
static bool ascends(cursor *c) {
    int bits = c->run->bits, words = bits > 64 ? 2 : 1;
    for (uint64_t i = c->at; i < c->loaded; i++) {
        dp_bits number = number_at(c->numbers + (i - c->at) * (uint64_t)words, words);
        if (i && number <= c->last)
            return false;
        c->last = number;
    }
    return bits > 64 || !(c->last >> bits);
}

static doppel_status load_more(cursor *c) {
    uint64_t left = c->run->count - c->at, count = left < STRETCH ? left : STRETCH;
    c->next = c->numbers;
    c->loaded = c->at + count;
    if (!count)
        return DOPPEL_OK;
    doppel_status status = dp_run_values(c->run, c->at, count, &c->bucket, c->numbers);
    if (status == DOPPEL_OK && c->run->backing && !ascends(c))
        status = DOPPEL_ERROR_STORE;
    return status;
}

static inline doppel_status advance(cursor *c, uint64_t count, int words) {
    c->at += count;
    c->next += count * (uint64_t)words;
    return c->at == c->loaded ? load_more(c) : DOPPEL_OK;
}

/* ---- the merge ---- */

/* The number at the front of `lead` and of every cursor that has the same. */
static doppel_status give_front(merger *m, cursor *lead) {
    dp_bits number = number_at(lead->next, m->words);
    uint64_t copy[2];
    dp_bits_store(number, copy);
    m->merged.owners = 0;
    bool first = true;
    for (int i = 0; i < m->cursors; i++) {
        cursor *c = &m->cursor[i];
        if (at_end(c) || number_at(c->next, m->words) != number)
            continue;
        dp_owners owners;
        doppel_status status = dp_run_owners(c->run, c->at, &owners);
        if (status != DOPPEL_OK)
            return status;
        if (!dp_merged_gather(&m->merged, c->run, &owners) ||
            (!first && !dp_buffer_add(c->gone, copy, (size_t)m->words * 8)))
            return DOPPEL_ERROR_MEMORY;
        if (first)
            lead = c;
        first = false;
        if ((status = advance(c, 1, m->words)) != DOPPEL_OK)
            return status;
    }
    bool good =
        m->merged.owners ? dp_merged_give(&m->merged, copy) : dp_buffer_add(lead->gone, copy, (size_t)m->words * 8);
    return good ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* `count` numbers of a cursor, as they stand. */
static doppel_status give_stretch(merger *m, cursor *c, uint64_t count) {
    doppel_status status = dp_run_touch(c->run, c->run->ids + c->at, count * 8);
    if (status != DOPPEL_OK)
        return status;
    dp_merged_give_stretch(&m->merged, c->next, c->run->ids + c->at, count);
    return advance(c, count, m->words);
}

/* How many numbers at the front of a cursor are below the limit, of those that are loaded. */
static inline __attribute__((always_inline)) uint64_t count_below(const cursor *c, dp_bits limit, int words) {
    uint64_t count = 0, most = c->loaded - c->at;
    if (limit > number_at(c->next + (most - 1) * (uint64_t)words, words))
        return most;
    while (number_at(c->next + count * (uint64_t)words, words) < limit)
        count++;
    return count;
}

/* The cursor with the smallest number, and in *limit the smallest of the others; NULL at the end of all. */
static cursor *find_lead(merger *m, dp_bits *limit, bool *limited) {
    cursor *lead = NULL;
    dp_bits least = 0;
    *limited = false;
    for (int i = 0; i < m->cursors; i++) {
        cursor *c = &m->cursor[i];
        if (at_end(c))
            continue;
        dp_bits number = number_at(c->next, m->words);
        if (!lead || number < least) {
            if (lead) {
                *limit = least;
                *limited = true;
            }
            lead = c;
            least = number;
        } else if (!*limited || number < *limit) {
            *limit = number;
            *limited = true;
        }
    }
    return lead;
}

static doppel_status merge_all(merger *m) {
    for (;;) {
        dp_bits limit = 0;
        bool limited;
        cursor *lead = find_lead(m, &limit, &limited);
        if (!lead)
            return DOPPEL_OK;
        uint64_t count = lead->loaded - lead->at;
        if (limited)
            count = m->words > 1 ? count_below(lead, limit, 2) : count_below(lead, limit, 1);
        doppel_status status = DOPPEL_OK;
        if (count && lead->plain)
            status = give_stretch(m, lead, count);
        else
            for (uint64_t i = 0; i < (count ? count : 1) && status == DOPPEL_OK; i++)
                status = give_front(m, lead);
        if (status != DOPPEL_OK)
            return status;
    }
}

/* ---- beginning and end ---- */

static doppel_status open_cursors(merger *m, dp_merging *merging, bool *timed) {
    *timed = false;
    if (!(m->cursor = malloc((size_t)merging->count * sizeof *m->cursor)))
        return DOPPEL_ERROR_MEMORY;
    for (int i = 0; i < merging->count; i++) {
        const dp_run *run = merging->run[i];
        cursor *c = &m->cursor[m->cursors++];
        bool expires = atomic_load_explicit(&run->expires, memory_order_relaxed);
        bool dead = atomic_load_explicit(&run->dead_count, memory_order_relaxed) > 0;
        c->run = run;
        c->gone = &merging->gone[i];
        c->plain = !expires && !dead && !run->shared;
        c->at = c->bucket = 0;
        c->last = 0;
        *timed = *timed || expires;
        doppel_status status = load_more(c);
        if (status == DOPPEL_OK && expires) {
            const void *column = (const void *)atomic_load_explicit(&run->expires, memory_order_relaxed);
            if (column != run->expires_memory)
                status = dp_run_touch(run, column, dp_run_slots(run) * 8);
        }
        if (status != DOPPEL_OK)
            return status;
    }
    return DOPPEL_OK;
}

static doppel_status merge_into(merger *m, dp_merging *merging, dp_run *run) {
    bool timed;
    uint64_t most = 0;
    doppel_status status = open_cursors(m, merging, &timed);
    if (status != DOPPEL_OK)
        return status;
    for (int i = 0; i < merging->count; i++)
        most += merging->run[i]->count;
    if (!dp_merged_init(&m->merged, run, most, timed))
        return DOPPEL_ERROR_MEMORY;
    status = merge_all(m);
    return status == DOPPEL_OK && !dp_merged_finish(&m->merged) ? DOPPEL_ERROR_MEMORY : status;
}

doppel_status dp_run_merge(dp_merging *merging, dp_run **merged) {
    int bits = merging->run[0]->bits;
    merger m = {.words = bits > 64 ? 2 : 1};
    dp_run *run = dp_run_create(bits);
    if (!run)
        return DOPPEL_ERROR_MEMORY;
    run->pool = merging->pool;
    doppel_status status = merge_into(&m, merging, run);
    free(m.cursor);
    dp_merged_free(&m.merged);
    if (status == DOPPEL_OK)
        *merged = run;
    else
        dp_run_free(run);
    return status;
}

void dp_merging_free(dp_merging *merging) {
    for (int i = 0; i < merging->count; i++)
        dp_buffer_free(&merging->gone[i]);
}
