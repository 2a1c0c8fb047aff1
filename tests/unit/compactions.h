/* compactions.h - what tests of compaction share: a history of writes, each of which follows from its place in it, so
 * that another store can be given the same, and compared. */
#ifndef TESTS_COMPACTIONS_H
#define TESTS_COMPACTIONS_H

#include "stores.h"

typedef enum step_kind { ADD, ADD_COPY, REMOVE, EXPIRE, COUNT } step_kind;

/* Step i gives the number i, if it gives any. `of`: the earlier number that it is about. */
typedef struct history_step {
    step_kind kind;
    uint64_t of;
    size_t size;
} history_step;

static inline step_kind step_kind_of(uint64_t i) {
    static const step_kind kinds[] = {ADD, ADD, ADD, ADD_COPY, ADD_COPY, REMOVE, EXPIRE, COUNT, COUNT};
    uint64_t state = i;
    return i < 10 ? ADD : kinds[random_next(&state) % (sizeof kinds / sizeof *kinds)];
}

static inline history_step step_at(uint64_t i, size_t most) {
    uint64_t state = i * 31;
    history_step step = {.kind = step_kind_of(i), .size = (size_t)(random_next(&state) % most)};
    for (bool found = false; step.kind != ADD && !found;) {
        step.of = 1 + random_next(&state) % (i - 1);
        step_kind kind = step_kind_of(step.of);
        found = kind == ADD || kind == ADD_COPY;
    }
    return step;
}

/* Step i, in a store; sets have up to `most` hashes. */
static inline doppel_status write_step(dp_store *store, uint64_t i, size_t most, doppel_error *error) {
    history_step step = step_at(i, most);
    parts p = {0};
    if (step.kind == ADD || step.kind == ADD_COPY)
        p = make_parts(i, step.of, step.size);
    else if (step.kind == REMOVE)
        p = make_removal(i, step.of);
    else if (step.kind == EXPIRE)
        p.change.remove = step.of;
    else
        p.change = (dp_change){.count = step.of, .count_at = i, .count_reason = (uint8_t)(1 + i % 3)};
    doppel_status status = dp_store_write(store, &p.change, 1, AT(i), error);
    free_parts(&p);
    return status;
}

static inline void write_steps(dp_store *store, uint64_t from, uint64_t to, size_t most) {
    for (uint64_t i = from; i <= to; i++)
        OK(write_step(store, i, most, error));
}

/* ---- comparing ---- */

static inline bool same_parts(dp_view *a, dp_view *b, uint64_t number) {
    for (int part = 0; part < DP_PARTS; part++) {
        doppel_slice x, y;
        OK(dp_view_get(a, (dp_part)part, number, &x, error));
        OK(dp_view_get(b, (dp_part)part, number, &y, error));
        if (!x.data != !y.data || x.length != y.length || (x.length && memcmp(x.data, y.data, x.length)))
            return false;
    }
    return true;
}

static inline bool same_rest(dp_view *a, dp_view *b, uint64_t number) {
    enum { MANY = 512 };
    uint64_t x[MANY], y[MANY];
    size_t found_x, found_y;
    dp_counts counts_x, counts_y;
    OK(dp_view_links(a, number, x, MANY, &found_x, error));
    OK(dp_view_links(b, number, y, MANY, &found_y, error));
    OK(dp_view_counts(a, number, &counts_x, error));
    OK(dp_view_counts(b, number, &counts_y, error));
    assert_true(found_x <= MANY);
    return found_x == found_y && !memcmp(x, y, found_x * sizeof *x) && !memcmp(&counts_x, &counts_y, sizeof counts_x);
}

/* Whether two stores have the same of the numbers up to `last`, and in all; the first may lack traces of removals. 0:
 * they have; else the first number that differs, or UINT64_MAX. */
static inline uint64_t first_difference(dp_store *compacted, dp_store *plain, uint64_t last) {
    dp_view *a = open_view(compacted), *b = open_view(plain);
    dp_store_info x, y;
    uint64_t differs = 0;
    OK(dp_view_begin(a, error));
    OK(dp_view_begin(b, error));
    dp_view_info(a, &x);
    dp_view_info(b, &y);
    for (uint64_t number = 1; number <= last && !differs; number++)
        if (!same_rest(a, b, number) || (step_kind_of(number) != REMOVE && !same_parts(a, b, number)))
            differs = number;
    bool same = x.last == y.last && x.clock.time == y.clock.time && !memcmp(&x.total, &y.total, sizeof x.total) &&
                x.entries[DP_PART_RECORD] == y.entries[DP_PART_RECORD];
    dp_view_end(a);
    dp_view_end(b);
    dp_view_free(a);
    dp_view_free(b);
    return differs ? differs : same ? 0 : UINT64_MAX;
}

#endif
