/* run_merge.c - one run without tables of the live entries of several.
 *
 * Each run is read by a run_cursor, a stretch of numbers at a time. The run_cursor with the smallest number gives all
 * it has below the smallest of the others; where nothing of that has lists, times or dead owners, it is copied as it
 * stands, else position by position. A number that several runs have gets the owners of all. */
#include "hamming/run.h"

#include <stdlib.h>

typedef struct owner_time {
    uint64_t owner, expires;
} owner_time;

typedef struct merged_run {
    int words; /* of a number */
    dp_run *run;
    uint64_t *values, *ids, *shared;
    uint64_t shared_words;
    uint64_t *times;   /* by position; NULL: nothing expires */
    dp_buffer lists;   /* uint64_t */
    dp_buffer listed;  /* the times of what is in lists, when there are times */
    owner_time *owner; /* of the current number */
    size_t owners, owner_room;
} merged_run;

/* ---- writing the merged run: numbers, owners, lists of owners, times ---- */

/* For at most `most` numbers, `timed` when some expire. False when out of memory, here and below. */
static bool merged_init(merged_run *m, dp_run *run, uint64_t most, bool timed) {
    *m = (merged_run){.words = run->bits > 64 ? 2 : 1, .run = run, .shared_words = (most + 63) / 64};
    if (!dp_memory_alloc(&run->block[DP_RUN_VALUES], most * (size_t)m->words * 8) ||
        !dp_memory_alloc(&run->block[DP_RUN_IDS], most * 8))
        return false;
    m->values = run->block[DP_RUN_VALUES].data;
    m->ids = run->block[DP_RUN_IDS].data;
    return !timed || (m->times = malloc(most * 8 + 8));
}

/* Frees all but the run. */
static void merged_free(merged_run *m) {
    free(m->owner);
    free(m->times);
    dp_buffer_free(&m->lists);
    dp_buffer_free(&m->listed);
}

/* ---- owners of one number ---- */

/* Adds those of a number's owners, ascending, that are alive to those gathered so far; owners of the number before are
 * forgotten by owners = 0. Each dead bit is read once: the writer may change it concurrently. What is alive is first
 * appended, then merged from the end: there is room for it twice. */
static bool merged_gather(merged_run *m, const dp_run *run, const dp_owners *owners) {
    if (!dp_reserve(&m->owner, &m->owner_room, m->owners + 2 * owners->count, sizeof *m->owner))
        return false;
    size_t old = m->owners, alive = 0;
    owner_time *added = m->owner + old + owners->count;
    for (uint64_t i = 0; i < owners->count; i++)
        if (!dp_run_is_dead(run, owners->slot + i))
            added[alive++] = (owner_time){owners->owner[i], dp_run_expires(run, owners->slot + i)};
    size_t to = m->owners = old + alive;
    while (alive) {
        while (old && m->owner[old - 1].owner > added[alive - 1].owner)
            m->owner[--to] = m->owner[--old];
        m->owner[--to] = added[--alive];
    }
    return true;
}

static bool add_number(dp_buffer *buffer, uint64_t number) {
    return dp_buffer_add(buffer, &number, sizeof number);
}

static bool get_shared(merged_run *m) {
    if (m->shared)
        return true;
    if (!dp_memory_alloc(&m->run->block[DP_RUN_SHARED], m->shared_words * 8))
        return false;
    m->shared = m->run->block[DP_RUN_SHARED].data;
    memset(m->shared, 0, m->shared_words * 8);
    return true;
}

static bool give_list(merged_run *m, uint64_t position) {
    if (!get_shared(m) || !add_number(&m->lists, m->owners))
        return false;
    m->ids[position] = m->lists.size / 8 - 1;
    m->shared[position / 64] |= (uint64_t)1 << (position % 64);
    bool good = !m->times || add_number(&m->listed, 0);
    for (size_t i = 0; i < m->owners && good; i++) {
        good = add_number(&m->lists, m->owner[i].owner);
        if (m->times && good)
            good = add_number(&m->listed, m->owner[i].expires);
    }
    return good;
}

/* Writes a number with the owners that were gathered, at least one. */
static bool merged_give(merged_run *m, const uint64_t *number) {
    uint64_t position = m->run->count;
    memcpy(m->values + position * (uint64_t)m->words, number, (size_t)m->words * 8);
    m->run->count++;
    if (m->owners > 1) {
        if (m->times)
            m->times[position] = 0;
        return give_list(m, position);
    }
    m->ids[position] = m->owner[0].owner;
    if (m->times)
        m->times[position] = m->owner[0].expires;
    return true;
}

/* ---- unchanged ---- */

/* Writes numbers with one owner each, who never expires. */
static void merged_give_stretch(merged_run *m, const uint64_t *numbers, const uint64_t *owners, uint64_t count) {
    uint64_t position = m->run->count;
    memcpy(m->values + position * (uint64_t)m->words, numbers, count * (size_t)m->words * 8);
    memcpy(m->ids + position, owners, count * 8);
    if (m->times)
        memset(m->times + position, 0, count * 8);
    m->run->count += count;
}

/* ---- the end ---- */

/* Times by position and times of lists become one column. */
static bool join_times(merged_run *m) {
    dp_run *run = m->run;
    uint64_t *times = realloc(m->times, dp_run_slots(run) * 8 + 8);
    if (!times)
        return false;
    m->times = NULL;
    if (m->listed.size)
        memcpy(times + run->count, m->listed.data, m->listed.size);
    run->expires_memory = times;
    atomic_init(&run->expires, (_Atomic uint64_t *)(void *)times);
    return true;
}

/* Gives the run all that was written. */
static bool merged_finish(merged_run *m) {
    dp_run *run = m->run;
    run->list_count = m->lists.size / 8;
    if (m->times && !join_times(m))
        return false;
    dp_memory_trim(&run->block[DP_RUN_VALUES], run->count * (size_t)m->words * 8);
    dp_memory_trim(&run->block[DP_RUN_IDS], run->count * 8);
    run->block[DP_RUN_LISTS] = (dp_memory){m->lists.data, m->lists.size, 0};
    m->lists = (dp_buffer){0};
    run->values = m->values;
    run->ids = m->ids;
    run->lists = run->block[DP_RUN_LISTS].data;
    run->shared = m->shared;
    return true;
}

enum { STRETCH = 512 };

typedef struct run_cursor {
    const dp_run *run;
    dp_buffer *gone;
    bool plain;      /* no lists, no times, nothing dead */
    uint64_t at;     /* position of the next number */
    uint64_t loaded; /* positions below it have been read */
    uint64_t bucket;
    dp_bits last;         /* the number before `loaded` */
    const uint64_t *next; /* the number at `at` */
    uint64_t numbers[2 * STRETCH];
} run_cursor;

typedef struct merger {
    const dp_merging *merging;
    int words; /* of a number */
    int cursors;
    run_cursor *run_cursor;
    merged_run merged;
} merger;

/* ---- cursors ---- */

static inline dp_bits number_at(const uint64_t *number, int words) {
    return words > 1 ? (dp_bits)number[1] << 64 | number[0] : number[0];
}

static inline bool at_end(const run_cursor *c) {
    return c->at == c->run->count;
}

/* Whether the numbers just loaded keep ascending within their width. Tables rely on that, and a file may be forged. */
static bool ascends(run_cursor *c) {
    int bits = c->run->bits, words = bits > 64 ? 2 : 1;
    for (uint64_t i = c->at; i < c->loaded; i++) {
        dp_bits number = number_at(c->numbers + (i - c->at) * (uint64_t)words, words);
        if (i && number <= c->last)
            return false;
        c->last = number;
    }
    return bits > 64 || !(c->last >> bits);
}

static doppel_status load_more(run_cursor *c) {
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

static inline doppel_status advance(run_cursor *c, uint64_t count, int words) {
    c->at += count;
    c->next += count * (uint64_t)words;
    return c->at == c->loaded ? load_more(c) : DOPPEL_OK;
}

/* ---- the merge ---- */

/* The number at the front of `lead` and of every run_cursor that has the same. */
static doppel_status give_front(merger *m, run_cursor *lead) {
    dp_bits number = number_at(lead->next, m->words);
    uint64_t copy[2];
    dp_bits_store(number, copy);
    m->merged.owners = 0;
    bool first = true;
    for (int i = 0; i < m->cursors; i++) {
        run_cursor *c = &m->run_cursor[i];
        if (at_end(c) || number_at(c->next, m->words) != number)
            continue;
        dp_owners owners;
        doppel_status status = dp_run_owners(c->run, c->at, &owners);
        if (status != DOPPEL_OK)
            return status;
        if (!merged_gather(&m->merged, c->run, &owners) ||
            (!first && !dp_buffer_add(c->gone, copy, (size_t)m->words * 8)))
            return DOPPEL_ERROR_MEMORY;
        if (first)
            lead = c;
        first = false;
        DP_TRY(advance(c, 1, m->words));
    }
    bool good =
        m->merged.owners ? merged_give(&m->merged, copy) : dp_buffer_add(lead->gone, copy, (size_t)m->words * 8);
    return good ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* Copies `count` numbers of a run_cursor unchanged. */
static doppel_status give_stretch(merger *m, run_cursor *c, uint64_t count) {
    DP_TRY(dp_run_touch(c->run, c->run->ids + c->at, count * 8));
    merged_give_stretch(&m->merged, c->next, c->run->ids + c->at, count);
    return advance(c, count, m->words);
}

/* How many numbers at the front of a run_cursor are below the limit, of those that are loaded. */
static inline __attribute__((always_inline)) uint64_t count_below(const run_cursor *c, dp_bits limit, int words) {
    uint64_t count = 0, most = c->loaded - c->at;
    if (limit > number_at(c->next + (most - 1) * (uint64_t)words, words))
        return most;
    while (number_at(c->next + count * (uint64_t)words, words) < limit)
        count++;
    return count;
}

/* The run_cursor with the smallest number, and in *limit the smallest of the others; NULL at the end of all. */
static run_cursor *find_lead(merger *m, dp_bits *limit, bool *limited) {
    run_cursor *lead = NULL;
    dp_bits least = 0;
    *limited = false;
    for (int i = 0; i < m->cursors; i++) {
        run_cursor *c = &m->run_cursor[i];
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
        run_cursor *lead = find_lead(m, &limit, &limited);
        if (!lead)
            return DOPPEL_OK;
        if (dp_merging_is_cancelled(m->merging))
            return DOPPEL_ERROR_INTERRUPTED;
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
    if (!(m->run_cursor = malloc((size_t)merging->count * sizeof *m->run_cursor)))
        return DOPPEL_ERROR_MEMORY;
    for (int i = 0; i < merging->count; i++) {
        const dp_run *run = merging->run[i];
        run_cursor *c = &m->run_cursor[m->cursors++];
        bool expires = atomic_load_explicit(&run->expires, memory_order_relaxed);
        bool dead = atomic_load_explicit(&run->dead_count, memory_order_relaxed) > 0;
        c->run = run;
        c->gone = &merging->gone[i];
        c->plain = !expires && !dead && !run->shared;
        c->at = c->bucket = 0;
        c->last = 0;
        *timed = *timed || expires;
        doppel_status status = load_more(c);
        const void *column = (const void *)atomic_load_explicit(&run->expires, memory_order_acquire);
        if (expires)
            DP_THEN(status, dp_run_touch(run, column, dp_run_slots(run) * 8));
        if (status != DOPPEL_OK)
            return status;
    }
    return DOPPEL_OK;
}

static doppel_status merge_into(merger *m, dp_merging *merging, dp_run *run) {
    bool timed;
    uint64_t most = 0;
    DP_TRY(open_cursors(m, merging, &timed));
    for (int i = 0; i < merging->count; i++)
        most += merging->run[i]->count;
    if (!merged_init(&m->merged, run, most, timed))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = merge_all(m);
    return status == DOPPEL_OK && !merged_finish(&m->merged) ? DOPPEL_ERROR_MEMORY : status;
}

doppel_status dp_run_merge(dp_merging *merging, dp_run **merged) {
    int bits = merging->run[0]->bits;
    merger m = {.merging = merging, .words = bits > 64 ? 2 : 1};
    dp_run *run = dp_run_create(bits);
    if (!run)
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = merge_into(&m, merging, run);
    free(m.run_cursor);
    merged_free(&m.merged);
    if (status == DOPPEL_OK)
        *merged = run;
    else
        dp_run_free(run);
    return status;
}
