/* run.c - reading and changing a run.
 *
 * dp_run_create -> (run_build.c and run_merge.c fill it) -> dp_run_search, dp_run_owners, dp_run_slot -> dp_run_free.
 * What is read of a mapped run is checked before it is used as a place, so that no file can lead out of its sections.
 * Numbers and owners never change; times and dead bits do, in place, by one writer while others read. */
#include "hamming/run.h"

#include <stdlib.h>

dp_run *dp_run_create(int bits) {
    dp_run *run = calloc(1, sizeof *run);
    if (run)
        run->bits = bits;
    return run;
}

void dp_run_free(dp_run *run) {
    if (!run)
        return;
    for (int i = 0; i < DP_RUN_BLOCKS; i++)
        dp_memory_free(&run->block[i]);
    for (int i = 0; i <= DP_MAX_BITS; i++)
        free(atomic_load_explicit(&run->schedule[i], memory_order_relaxed));
    free(atomic_load_explicit(&run->dead, memory_order_relaxed));
    free(run->expires_memory);
    if (run->backing)
        run->backing->release(run->backing);
    free(run);
}

void dp_run_set_layout(dp_run *run, const dp_layout *layout) {
    run->layout = *layout;
    for (int t = 0; t < layout->tables; t++) {
        dp_run_table *table = &run->table[t];
        table->key_bits = layout->table[t].key_bits;
        table->rest_bits = dp_rest_bits(run->bits, table->key_bits);
        table->rest_bytes = (table->rest_bits + 7) / 8;
    }
}

/* ---- numbers ---- */

/* Those at places from .. to - 1 of a bucket. */
static void read_values(const dp_run *run, uint64_t key, uint64_t from, uint64_t to, uint64_t *values) {
    const dp_run_table *table = &run->table[0];
    if (run->bits > 64) {
        for (uint64_t place = from; place < to; place++, values += 2)
            dp_bits_store(dp_run_arranged(run, table, key, place), values);
        return;
    }
    const uint32_t *filter = table->filter;
    uint64_t top = table->key_bits ? key << (run->bits - table->key_bits) : 0;
    if (!table->rest_bits) {
        for (uint64_t place = from; place < to; place++)
            *values++ = top | filter[place];
        return;
    }
    uint64_t mask = UINT64_MAX >> (64 - table->rest_bits);
    const uint8_t *rest = table->rest + from * (uint64_t)table->rest_bytes;
    for (uint64_t place = from; place < to; place++, rest += table->rest_bytes)
        *values++ = top | (dp_load64(rest) & mask) << 32 | filter[place];
}

/* Moves *bucket of table 0 on to the one a position lies in. */
static doppel_status find_bucket(const dp_run *run, uint64_t position, uint64_t *bucket) {
    const dp_run_table *table = &run->table[0];
    uint64_t buckets = (uint64_t)1 << table->key_bits;
    for (; *bucket < buckets; ++*bucket) {
        DP_TRY(dp_run_touch(run, table->directory + *bucket + 1, sizeof(uint32_t)));
        if (table->directory[*bucket + 1] > position)
            return DOPPEL_OK;
    }
    return DOPPEL_ERROR_STORE;
}

/* Has places of a table checked. */
static doppel_status run_touch_places(const dp_run *run, const dp_run_table *table, uint64_t from, uint64_t count) {
    size_t size = dp_filter_size(run);
    DP_TRY(dp_run_touch(run, (const char *)table->filter + from * size, count * size));
    if (!table->rest_bits)
        return DOPPEL_OK;
    return dp_run_touch(run, table->rest + from * (uint64_t)table->rest_bytes, count * (size_t)table->rest_bytes);
}

doppel_status dp_run_values(const dp_run *run, uint64_t from, uint64_t count, uint64_t *bucket, uint64_t *values) {
    size_t words = run->bits > 64 ? 2 : 1;
    if (run->values) {
        memcpy(values, run->values + from * words, count * words * sizeof *values);
        return DOPPEL_OK;
    }
    doppel_status status = run_touch_places(run, &run->table[0], from, count);
    for (uint64_t end = from + count; from < end && status == DOPPEL_OK;) {
        if ((status = find_bucket(run, from, bucket)) != DOPPEL_OK)
            break;
        uint64_t stop = run->table[0].directory[*bucket + 1];
        stop = stop < end ? stop : end;
        read_values(run, *bucket, from, stop, values);
        values += (stop - from) * words;
        from = stop;
    }
    return status;
}

/* ---- places ---- */

doppel_status dp_run_mapped_bucket(const dp_run *run, const dp_run_table *table, uint64_t key, dp_range *range) {
    DP_TRY(dp_run_touch(run, table->directory + key, 2 * sizeof(uint32_t)));
    *range = (dp_range){table->directory[key], table->directory[key + 1]};
    if (range->from > range->to || range->to > run->count)
        return DOPPEL_ERROR_STORE;
    return run_touch_places(run, table, range->from, range->to - range->from);
}

/* A number as table 0 holds it. */
typedef struct sought {
    const dp_run *run;
    uint64_t rest, filter;
} sought;

static inline uint64_t rest_at(const dp_run_table *table, uint64_t place) {
    if (!table->rest_bits)
        return 0;
    return dp_load64(table->rest + place * (uint64_t)table->rest_bytes) & (UINT64_MAX >> (64 - table->rest_bits));
}

static inline uint64_t filter_at(const dp_run *run, const dp_run_table *table, uint64_t place) {
    return run->bits > 64 ? ((const uint64_t *)table->filter)[place] : ((const uint32_t *)table->filter)[place];
}

/* Whether the number at a place is below. The filter is read only if the rest is equal. */
static inline bool is_below(const sought *s, uint64_t place) {
    const dp_run_table *table = &s->run->table[0];
    uint64_t rest = rest_at(table, place);
    return rest != s->rest ? rest < s->rest : filter_at(s->run, table, place) < s->filter;
}

/* The first place of a bucket that is not below. Interpolation first, as numbers are nearly uniform; from there it
 * probes places 1, 2, 4, ... away, then bisects. */
static uint64_t lower_place(const sought *s, dp_range range) {
    int rest_bits = s->run->table[0].rest_bits;
    uint64_t from = range.from, to = range.to;
    uint64_t guess = from + (uint64_t)((dp_bits)s->rest * (to - from) >> rest_bits);
    if (guess >= to)
        return to;
    if (is_below(s, guess)) {
        from = guess + 1;
        for (uint64_t step = 1; to - from > step; from += step, step *= 2)
            if (!is_below(s, from + step - 1)) {
                to = from + step - 1;
                break;
            }
    } else {
        to = guess;
        for (uint64_t step = 1; to - from > step; to -= step, step *= 2)
            if (is_below(s, to - step)) {
                from = to - step + 1;
                break;
            }
    }
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        if (is_below(s, middle))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

doppel_status dp_run_search(const dp_run *run, dp_bits value, bool *found, uint64_t *position) {
    const dp_run_table *table = &run->table[0];
    uint64_t key = table->key_bits ? (uint64_t)(value >> (run->bits - table->key_bits)) : 0;
    dp_range range;
    doppel_status status = dp_run_bucket(run, table, key, &range);
    *found = false;
    if (status != DOPPEL_OK || range.from == range.to)
        return status;
    int filter_bits = dp_filter_bits(run->bits);
    sought s = {run, (uint64_t)(value >> filter_bits), (uint64_t)value};
    s.rest = table->rest_bits ? s.rest & (UINT64_MAX >> (64 - table->rest_bits)) : 0;
    s.filter = filter_bits == 32 ? (uint32_t)s.filter : s.filter;
    uint64_t place = lower_place(&s, range);
    *found = place < range.to && rest_at(table, place) == s.rest && filter_at(run, table, place) == s.filter;
    *position = place;
    return DOPPEL_OK;
}

/* ---- owners ---- */

static doppel_status list_owners(const dp_run *run, uint64_t start, dp_owners *owners) {
    if (start >= run->list_count)
        return DOPPEL_ERROR_STORE;
    DP_TRY(dp_run_touch(run, run->lists + start, sizeof(uint64_t)));
    uint64_t count = run->lists[start];
    if (count > run->list_count - start - 1)
        return DOPPEL_ERROR_STORE;
    *owners = (dp_owners){run->lists + start + 1, count, run->count + start + 1};
    return dp_run_touch(run, owners->owner, count * sizeof(uint64_t));
}

/* Times are read by slot once the owners are known; a column made in memory since needs no check, which touch knows. */
static doppel_status touch_times(const dp_run *run, const dp_owners *owners) {
    _Atomic uint64_t *expires = atomic_load_explicit(&run->expires, memory_order_acquire);
    if (!expires || !run->backing)
        return DOPPEL_OK;
    return dp_run_touch(run, (const void *)(expires + owners->slot), owners->count * sizeof(uint64_t));
}

doppel_status dp_run_owners(const dp_run *run, uint64_t position, dp_owners *owners) {
    DP_TRY(dp_run_touch(run, run->ids + position, sizeof(uint64_t)));
    if (run->shared)
        DP_TRY(dp_run_touch(run, run->shared + position / 64, sizeof(uint64_t)));
    *owners = (dp_owners){run->ids + position, 1, position};
    if (dp_run_is_shared(run, position))
        DP_TRY(list_owners(run, run->ids[position], owners));
    return touch_times(run, owners);
}

doppel_status dp_run_slot(const dp_run *run, dp_bits value, uint64_t owner, bool *found, uint64_t *slot) {
    uint64_t position;
    dp_owners owners;
    doppel_status status = dp_run_search(run, value, found, &position);
    if (status != DOPPEL_OK || !*found)
        return status;
    *found = false;
    DP_TRY(dp_run_owners(run, position, &owners));
    uint64_t from = 0, to = owners.count;
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        if (owners.owner[middle] < owner)
            from = middle + 1;
        else
            to = middle;
    }
    *found = from < owners.count && owners.owner[from] == owner;
    *slot = owners.slot + from;
    return DOPPEL_OK;
}

/* ---- changes ---- */

doppel_status dp_run_prepare_dead(dp_run *run) {
    if (atomic_load_explicit(&run->dead, memory_order_relaxed))
        return DOPPEL_OK;
    _Atomic uint64_t *dead = calloc(dp_run_slots(run) / 64 + 1, sizeof *dead);
    if (!dead)
        return DOPPEL_ERROR_MEMORY;
    atomic_store_explicit(&run->dead, dead, memory_order_release);
    return DOPPEL_OK;
}

doppel_status dp_run_prepare_expires(dp_run *run) {
    _Atomic uint64_t *there = atomic_load_explicit(&run->expires, memory_order_relaxed);
    if (there && (!run->backing || (void *)there == run->expires_memory))
        return DOPPEL_OK;
    uint64_t slots = dp_run_slots(run);
    /* The column of a file is plain numbers, and is checked before it is copied. */
    doppel_status status = there ? dp_run_touch(run, (const void *)there, slots * sizeof(uint64_t)) : DOPPEL_OK;
    if (status != DOPPEL_OK)
        return status;
    _Atomic uint64_t *column = calloc(slots ? slots : 1, sizeof *column);
    if (!column)
        return DOPPEL_ERROR_MEMORY;
    for (uint64_t i = 0; there && i < slots; i++)
        atomic_init(&column[i], atomic_load_explicit(&there[i], memory_order_relaxed));
    run->expires_memory = column;
    atomic_store_explicit(&run->expires, column, memory_order_release);
    return DOPPEL_OK;
}

void dp_run_set_expires(dp_run *run, uint64_t slot, uint64_t expires) {
    _Atomic uint64_t *column = atomic_load_explicit(&run->expires, memory_order_relaxed);
    atomic_store_explicit(&column[slot], expires, memory_order_relaxed);
}

void dp_run_set_dead(dp_run *run, uint64_t slot, bool dead) {
    _Atomic uint64_t *words = atomic_load_explicit(&run->dead, memory_order_relaxed);
    uint64_t bit = (uint64_t)1 << (slot % 64), word = atomic_load_explicit(&words[slot / 64], memory_order_relaxed);
    if (!(word & bit) == !dead)
        return;
    /* There is one writer, so reading and storing need not be one step. Release: a reader that sees an entry alive
     * again sees its new time. */
    atomic_store_explicit(&words[slot / 64], word ^ bit, memory_order_release);
    uint64_t count = atomic_load_explicit(&run->dead_count, memory_order_relaxed);
    atomic_store_explicit(&run->dead_count, dead ? count + 1 : count - 1, memory_order_relaxed);
}

/* Slots that hold no entry, but where a list begins or how long it is, have no time. */
doppel_status dp_run_expire(dp_run *run, uint64_t now, uint64_t *expired) {
    const void *column = (const void *)atomic_load_explicit(&run->expires, memory_order_relaxed);
    uint64_t slots = dp_run_slots(run);
    if (!column)
        return DOPPEL_OK;
    DP_TRY(dp_run_touch(run, column, slots * sizeof(uint64_t)));
    DP_TRY(dp_run_prepare_dead(run));
    for (uint64_t slot = 0; slot < slots; slot++) {
        uint64_t expires = dp_run_expires(run, slot);
        if (!expires || expires > now || dp_run_is_dead(run, slot))
            continue;
        dp_run_set_dead(run, slot, true);
        ++*expired;
    }
    return DOPPEL_OK;
}
