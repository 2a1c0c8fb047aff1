/* validate.c - doppel_index_validate: everything that can be wrong with an index, in memory or in a file.
 *
 * What must hold:
 *   1. Every block of the file has its checksum, and the directories of tables ascend from 0 to the count (file.c).
 *   2. Every number in a table has the key of its bucket and no bit beyond the width; table 0 ascends, without repeats.
 *   3. All tables of a run hold the same numbers. Sums of mixed numbers are compared, which two sets share by chance
 *      only.
 *   4. Lists of owners stand one after the other in the order of positions, fill their section, and have two owners at
 *      least, ascending.
 *   5. Dead bits stand at owners only, and are counted right; so are the entries.
 *   6. No entry is alive at two places.
 *   7. All tables of a growing level hold the same numbers, the first each as often as it has owners. */
#include "hamming/index.h"
#include "kernel/kernel.h"

#include <inttypes.h>
#include <stdlib.h>

/* What is being checked; every function below returns DOPPEL_OK, or fails with a reason. */
typedef struct check {
    const doppel_index *index;
    const dp_version *version;
    const dp_run *run;
    int number; /* of the run */
    uint64_t alive;
    doppel_error *error;
} check;

#define WRONG(c, format, ...) \
    dp_fail((c)->error, DOPPEL_ERROR_STORE, "run %d of %d: " format, (c)->number + 1, (c)->version->runs, __VA_ARGS__)

static doppel_status cannot_read(const check *c, doppel_status status) {
    return dp_version_explain(c->version, status, c->error);
}

/* ---- tables ---- */

static uint64_t mixed(dp_bits value) {
    return dp_hash_mix((uint64_t)value ^ dp_hash_mix((uint64_t)(value >> 64) + 1));
}

/* Whether the unused bits of the rest are 0. */
static bool rest_is_clean(const dp_run_table *table, uint64_t place) {
    if (table->rest_bits == 8 * table->rest_bytes)
        return true;
    uint64_t rest = dp_load64(table->rest + place * (uint64_t)table->rest_bytes);
    return !(rest >> table->rest_bits & ((1U << (8 * table->rest_bytes - table->rest_bits)) - 1));
}

/* Numbers of one bucket; `last` is the one before, of table 0. */
static doppel_status check_bucket(const check *c, int t, uint64_t key, dp_bits *last, uint64_t *sum) {
    const dp_run *run = c->run;
    const dp_run_table *table = &run->table[t];
    int below = run->bits - table->key_bits;
    dp_range range;
    doppel_status status = dp_run_bucket(run, table, key, &range);
    if (status)
        return cannot_read(c, status);
    for (uint64_t place = range.from; place < range.to; place++) {
        dp_bits arranged = dp_run_arranged(run, table, key, place);
        if ((below < DP_MAX_BITS && arranged >> below != key) || !rest_is_clean(table, place))
            return WRONG(c, "table %d: the number at %" PRIu64 " is in the wrong bucket, %" PRIu64, t + 1, place, key);
        if (!t && place && arranged <= *last)
            return WRONG(c, "table 1: not in order at %" PRIu64, place);
        *last = arranged;
        *sum += mixed(dp_layout_restore(&run->layout.table[t], arranged));
    }
    return DOPPEL_OK;
}

static doppel_status check_tables(const check *c) {
    uint64_t first_sum = 0;
    for (int t = 0; t < c->run->layout.tables; t++) {
        const dp_run_table *table = &c->run->table[t];
        uint64_t sum = 0, buckets = (uint64_t)1 << table->key_bits;
        dp_bits last = 0;
        for (uint64_t key = 0; key < buckets; key++) {
            if (table->directory[key + 1] == table->directory[key])
                continue;
            DP_TRY(check_bucket(c, t, key, &last, &sum));
        }
        first_sum = t ? first_sum : sum;
        if (sum != first_sum)
            return WRONG(c, "table %d holds other numbers than the first", t + 1);
    }
    return DOPPEL_OK;
}

static doppel_status check_directories(const check *c) {
    for (int t = 0; t < c->run->layout.tables; t++) {
        const dp_run_table *table = &c->run->table[t];
        uint64_t buckets = (uint64_t)1 << table->key_bits;
        bool right = table->directory[0] == 0 && table->directory[buckets] == c->run->count;
        for (uint64_t key = 0; key < buckets; key++)
            right &= table->directory[key] <= table->directory[key + 1];
        if (!right)
            return WRONG(c, "table %d: its directory does not ascend to the count", t + 1);
    }
    return DOPPEL_OK;
}

/* ---- owners ---- */

static doppel_status check_owners_at(check *c, uint64_t position, uint64_t *listed) {
    const dp_run *run = c->run;
    dp_owners owners;
    bool shared = dp_run_is_shared(run, position);
    if (shared && (run->ids[position] != *listed || dp_run_is_dead(run, position) ||
                   (*listed < run->list_count && dp_run_is_dead(run, run->count + *listed))))
        return WRONG(c, "the list of owners of number %" PRIu64 " is out of place", position);
    doppel_status status = dp_run_owners(run, position, &owners);
    if (status)
        return WRONG(c, "the list of owners of number %" PRIu64 " leaves its section", position);
    bool ascend = !shared || owners.count > 1;
    for (uint64_t i = 0; i < owners.count; i++) {
        ascend &= !i || owners.owner[i] > owners.owner[i - 1];
        c->alive += !dp_run_is_dead(run, owners.slot + i);
    }
    *listed += shared ? owners.count + 1 : 0;
    return ascend ? DOPPEL_OK : WRONG(c, "the owners of number %" PRIu64 " are not in order", position);
}

static doppel_status check_dead(const check *c, uint64_t slots) {
    _Atomic uint64_t *dead = atomic_load_explicit(&c->run->dead, memory_order_acquire);
    uint64_t words = (slots + 63) / 64, count = 0;
    for (uint64_t i = 0; dead && i < words; i++)
        count += (uint64_t)__builtin_popcountll(atomic_load_explicit(&dead[i], memory_order_relaxed));
    bool beyond = dead && slots % 64 && dead[words - 1] >> slots % 64;
    if (beyond || count != atomic_load(&c->run->dead_count))
        return WRONG(c, "%" PRIu64 " dead bits, not %" PRIu64, count, (uint64_t)c->run->dead_count);
    return DOPPEL_OK;
}

static doppel_status check_owners(check *c) {
    const dp_run *run = c->run;
    uint64_t listed = 0, count = run->count;
    if (run->shared && count % 64 && run->shared[count / 64] >> count % 64)
        return WRONG(c, "numbers beyond the last, %" PRIu64 ", have lists of owners", count);
    doppel_status status = check_dead(c, dp_run_slots(run));
    for (uint64_t position = 0; position < count && !status; position++)
        status = check_owners_at(c, position, &listed);
    if (status)
        return status;
    if (listed != run->list_count)
        return WRONG(c, "%" PRIu64 " numbers in lists of owners, not %" PRIu64, run->list_count, listed);
    return DOPPEL_OK;
}

/* ---- entries at two places ---- */

/* Whether one of the first `runs` runs has this entry, alive. */
static doppel_status look_before(const check *c, int runs, dp_bits value, uint64_t owner) {
    for (int i = 0; i < runs; i++) {
        const dp_run *run = c->version->run[i];
        bool found;
        uint64_t slot;
        doppel_status status = dp_run_slot(run, value, owner, &found, &slot);
        if (status)
            return cannot_read(c, status);
        if (found && !dp_run_is_dead(run, slot))
            return dp_fail(c->error, DOPPEL_ERROR_STORE, "an entry of owner %" PRIu64 " is there twice", owner);
    }
    return DOPPEL_OK;
}

static doppel_status look_before_run(const check *c) {
    enum { STRETCH = 256 };
    const dp_run *run = c->run;
    uint64_t values[2 * STRETCH], bucket = 0, words = run->bits > 64 ? 2 : 1;
    for (uint64_t from = 0; from < run->count; from += STRETCH) {
        uint64_t left = run->count - from, count = left < STRETCH ? left : STRETCH;
        doppel_status status = dp_run_values(run, from, count, &bucket, values);
        if (status)
            return cannot_read(c, status);
        for (uint64_t i = 0; i < count; i++) {
            dp_owners owners;
            if ((status = dp_run_owners(run, from + i, &owners)))
                return cannot_read(c, status);
            for (uint64_t o = 0; o < owners.count && !status; o++)
                if (!dp_run_is_dead(run, owners.slot + o))
                    status = look_before(c, c->number, dp_bits_load(values + i * words, run->bits), owners.owner[o]);
            if (status)
                return status;
        }
    }
    return DOPPEL_OK;
}

/* ---- the head ---- */

static doppel_status check_head_entry(const check *c, const dp_head *head, uint64_t at) {
    uint64_t words = head->bits > 64 ? 2 : 1;
    dp_bits value = dp_bits_load(head->values + at * words, head->bits);
    if (head->bits < DP_MAX_BITS && value >> head->bits)
        return dp_fail(c->error, DOPPEL_ERROR_STORE, "entry %" PRIu64 " of the head is too wide", at);
    for (uint64_t i = 0; i < at; i++)
        if (head->owners[i] == head->owners[at] && !head->dead[i] &&
            dp_bits_load(head->values + i * words, head->bits) == value)
            return dp_fail(c->error, DOPPEL_ERROR_STORE, "an entry of owner %" PRIu64 " is there twice",
                           head->owners[at]);
    return look_before(c, c->version->runs, value, head->owners[at]);
}

static doppel_status check_head(check *c) {
    const dp_head *head = c->version->head;
    uint64_t count = atomic_load_explicit(&head->count, memory_order_acquire);
    doppel_status status = count <= DP_HEAD_ROOM ? DOPPEL_OK : DOPPEL_ERROR_STORE;
    for (uint64_t i = 0; i < count && !status; i++) {
        if (atomic_load_explicit(&head->dead[i], memory_order_acquire))
            continue;
        status = check_head_entry(c, head, i);
        c->alive++;
    }
    return status;
}

/* ---- levels ---- */

/* The sum of the numbers of a table; of table 0, each once: a number counts at its first place. */
static uint64_t sum_table(const dp_growing *level, int t) {
    uint64_t sum = 0;
    for (uint64_t key = 0; key < (uint64_t)1 << level->table[t].key_bits; key++) {
        dp_chunk chunk = dp_growing_chunk(level, t, key);
        for (uint64_t i = 0; i < chunk.count; i++) {
            dp_bits value = dp_layout_restore(&level->layout.table[t], dp_growing_arranged(level, t, key, &chunk, i));
            dp_growing_places places = {.place = {(uint32_t)i}};
            if (!t)
                dp_growing_search(level, value, &places);
            sum += places.place[0] == i ? mixed(value) : 0;
        }
    }
    return sum;
}

static doppel_status check_level_entry(const check *c, const dp_growing *level, dp_bits value, uint64_t owner) {
    dp_growing_places places;
    int found = 0;
    dp_growing_search(level, value, &places);
    for (int i = 0; i < places.count; i++)
        found += *dp_growing_place(level, &places.chunk, places.place[i]).owner == owner;
    if (found != 1)
        return dp_fail(c->error, DOPPEL_ERROR_STORE, "an entry of owner %" PRIu64 " is there %d times", owner, found);
    return look_before(c, c->version->runs, value, owner);
}

static doppel_status check_level(check *c, const dp_growing *level) {
    for (int t = 1; level && t < level->layout.tables; t++)
        if (sum_table(level, t) != sum_table(level, 0))
            return dp_fail(c->error, DOPPEL_ERROR_STORE, "table %d of a level holds other numbers than the first",
                           t + 1);
    for (uint64_t key = 0; level && key < (uint64_t)1 << level->table[0].key_bits; key++) {
        dp_chunk chunk = dp_growing_chunk(level, 0, key);
        for (uint64_t i = 0; i < chunk.count; i++) {
            dp_growing_entry entry = dp_growing_place(level, &chunk, i);
            if (atomic_load_explicit(entry.dead, memory_order_acquire))
                continue;
            DP_TRY(check_level_entry(c, level, dp_growing_arranged(level, 0, key, &chunk, i), *entry.owner));
            c->alive++;
        }
    }
    return DOPPEL_OK;
}

/* ---- the public call ---- */

static doppel_status check_run(check *c) {
    doppel_status status = dp_run_check_file(c->run);
    if (status)
        return cannot_read(c, status);
    if (!(status = check_directories(c)) && !(status = check_tables(c)) && !(status = check_owners(c)))
        status = look_before_run(c);
    return status;
}

static doppel_status check_version(check *c) {
    doppel_status status = DOPPEL_OK;
    for (; c->number < c->version->runs && !status; c->number++) {
        c->run = c->version->run[c->number];
        status = check_run(c);
    }
    DP_THEN(status, check_level(c, c->version->full));
    DP_THEN(status, check_level(c, c->version->growing));
    DP_THEN(status, check_head(c));
    uint64_t entries = atomic_load(&c->index->entries);
    if (!status && c->alive != entries)
        return dp_fail(c->error, DOPPEL_ERROR_STORE, "%" PRIu64 " entries, not %" PRIu64, c->alive, entries);
    return status;
}

doppel_status doppel_index_validate(const doppel_index *index, doppel_error *reason) {
    dp_pinned pinned = dp_index_pin(index);
    check c = {.index = index, .version = pinned.version, .error = reason};
    doppel_status status = check_version(&c);
    dp_index_unpin(pinned);
    return status;
}
