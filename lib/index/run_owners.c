/* run_owners.c - whose the numbers of a run are, until when, and which of them are dead. Owners never change; times and
 * dead bits do, in place, by one writer while others read. */
#include "index/run.h"

#include <stdlib.h>

/* ---- owners ---- */

static doppel_status list_owners(const dp_run *run, uint64_t start, dp_owners *owners) {
    if (start >= run->list_count)
        return DOPPEL_ERROR_STORE;
    doppel_status status = dp_run_touch(run, run->lists + start, sizeof(uint64_t));
    if (status != DOPPEL_OK)
        return status;
    uint64_t count = run->lists[start];
    if (count > run->list_count - start - 1)
        return DOPPEL_ERROR_STORE;
    *owners = (dp_owners){run->lists + start + 1, count, run->count + start + 1};
    return dp_run_touch(run, owners->owner, count * sizeof(uint64_t));
}

/* Times are read by slot once the owners are known; those made since in memory need no check, which touch knows. */
static doppel_status touch_times(const dp_run *run, const dp_owners *owners) {
    _Atomic uint64_t *expires = atomic_load_explicit(&run->expires, memory_order_acquire);
    if (!expires || !run->backing)
        return DOPPEL_OK;
    return dp_run_touch(run, (const void *)(expires + owners->slot), owners->count * sizeof(uint64_t));
}

doppel_status dp_run_owners(const dp_run *run, uint64_t position, dp_owners *owners) {
    doppel_status status = dp_run_touch(run, run->ids + position, sizeof(uint64_t));
    if (status == DOPPEL_OK && run->shared)
        status = dp_run_touch(run, run->shared + position / 64, sizeof(uint64_t));
    if (status != DOPPEL_OK)
        return status;
    *owners = (dp_owners){run->ids + position, 1, position};
    if (dp_run_is_shared(run, position))
        status = list_owners(run, run->ids[position], owners);
    return status == DOPPEL_OK ? touch_times(run, owners) : status;
}

doppel_status dp_run_slot(const dp_run *run, dp_bits value, uint64_t owner, bool *found, uint64_t *slot) {
    uint64_t position;
    dp_owners owners;
    doppel_status status = dp_run_search(run, value, found, &position);
    if (status != DOPPEL_OK || !*found)
        return status;
    *found = false;
    if ((status = dp_run_owners(run, position, &owners)) != DOPPEL_OK)
        return status;
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

/* Slots, without the dead ones, and for each list without its position's slot and its number of owners. */
uint64_t dp_run_entries(const dp_run *run) {
    uint64_t lists = 0, words = run->shared ? dp_shared_bytes(run) / 8 : 0;
    if (words && dp_run_touch(run, run->shared, words * 8) != DOPPEL_OK)
        return 0;
    for (uint64_t i = 0; i < words; i++)
        lists += (uint64_t)__builtin_popcountll(run->shared[i]);
    return dp_run_slots(run) - 2 * lists - atomic_load_explicit(&run->dead_count, memory_order_relaxed);
}

/* ---- changes ---- */

doppel_status dp_run_prepare_expires(dp_run *run) {
    _Atomic uint64_t *there = atomic_load_explicit(&run->expires, memory_order_relaxed);
    if (there && (!run->backing || (void *)there == run->expires_memory))
        return DOPPEL_OK;
    uint64_t slots = dp_run_slots(run);
    /* What a file holds was written as plain numbers, and has been checked before it is copied. */
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

doppel_status dp_run_prepare_dead(dp_run *run) {
    if (atomic_load_explicit(&run->dead, memory_order_relaxed))
        return DOPPEL_OK;
    _Atomic uint64_t *dead = calloc(dp_run_slots(run) / 64 + 1, sizeof *dead);
    if (!dead)
        return DOPPEL_ERROR_MEMORY;
    atomic_store_explicit(&run->dead, dead, memory_order_release);
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
    /* There is one writer, so reading and storing need not be one step. Release: whoever sees an entry alive again sees
     * its new time. */
    atomic_store_explicit(&words[slot / 64], word ^ bit, memory_order_release);
    uint64_t count = atomic_load_explicit(&run->dead_count, memory_order_relaxed);
    atomic_store_explicit(&run->dead_count, dead ? count + 1 : count - 1, memory_order_relaxed);
}
