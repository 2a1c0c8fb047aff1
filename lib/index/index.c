/* index.c - the calls that change an index one entry at a time, or as a whole.
 *
 * doppel_index_create -> doppel_index_insert, doppel_index_remove, doppel_index_purge, doppel_index_compact ->
 * doppel_index_free (versions.c). An entry stands in one place at most, dead or alive, in the head or in a run: what is
 * inserted again is revived where it stands. insert_many.c adds many, matches.c finds, index_read.c reads all. */
#include "index/file.h"

#include <stdlib.h>

/* ---- creating ---- */

static doppel_status check_layout(const doppel_index_options *options, doppel_error *error) {
    dp_layout layout;
    if (options->layout && strlen(options->layout) >= sizeof(((doppel_index *)0)->layout_name))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a layout's name has at most 63 characters");
    return options->layout ? dp_layout_parse(options->layout, options->bits, &layout, error) : DOPPEL_OK;
}

static doppel_status check_memory(const doppel_index_options *options, doppel_error *error) {
    doppel_plan_options wanted = {.size = sizeof wanted,
                                  .purpose = DOPPEL_FOR_FIND,
                                  .bits = options->bits,
                                  .memory = options->memory,
                                  .layout = options->layout};
    doppel_plan plan;
    size_t found;
    if (!options->memory || !options->count)
        return DOPPEL_OK;
    doppel_status status = doppel_plan_list(options->count, options->distance, &wanted, &plan, 1, &found, error);
    if (status == DOPPEL_OK && !plan.fits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%llu entries need at least %.0f bytes (layout %s), %llu are allowed",
                       (unsigned long long)options->count, plan.memory, plan.layout,
                       (unsigned long long)options->memory);
    return status;
}

static doppel_status check_options(const doppel_index_options *options, doppel_error *error) {
    if ((options->bits < 1 || options->bits > 64) && options->bits != 128)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%d bits: 1 to 64 or 128 are possible", options->bits);
    if (options->distance < 0 || options->distance > options->bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "distance %d: 0 to %d is possible with %d bits", options->distance,
                       options->bits, options->bits);
    doppel_status status = check_layout(options, error);
    return status == DOPPEL_OK ? check_memory(options, error) : status;
}

doppel_status doppel_index_create(const doppel_index_options *given, doppel_index **index, doppel_error *error) {
    doppel_index_options options = {0};
    if (given)
        dp_copy_options(&options, given, sizeof options);
    options.bits = options.bits ? options.bits : 64;
    /* The default distance is 3, as far as there are bits for it. */
    if (!options.distance)
        options.distance = options.bits < 3 ? options.bits : 3;
    *index = NULL;
    doppel_status status = check_options(&options, error);
    if (status != DOPPEL_OK)
        return status;
    options.secret = options.secret ? options.secret : dp_order_random();
    status = dp_index_create(&options, NULL, 0, index);
    return status == DOPPEL_OK ? DOPPEL_OK : dp_no_memory(error);
}

/* ---- where an entry stands ---- */

doppel_status dp_index_locate(const doppel_index *index, dp_bits value, uint64_t owner, dp_place *place) {
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    *place = (dp_place){0};
    dp_run_expect((const dp_run *const *)version->run, version->runs, value);
    uint64_t i = dp_head_search(version->head, &index->places, value, owner);
    if (i < DP_HEAD_ROOM) {
        *place = (dp_place){.head = version->head, .slot = i};
        return DOPPEL_OK;
    }
    for (int r = 0; r < version->runs; r++) {
        bool found;
        uint64_t slot;
        doppel_status status = dp_run_slot(version->run[r], value, owner, &found, &slot);
        if (status != DOPPEL_OK)
            return status;
        if (found) {
            *place = (dp_place){.run = version->run[r], .slot = slot};
            return DOPPEL_OK;
        }
    }
    return DOPPEL_OK;
}

dp_state dp_place_state(const dp_place *place) {
    if (place->head)
        return (dp_state){atomic_load_explicit(&place->head->expires[place->slot], memory_order_relaxed),
                          atomic_load_explicit(&place->head->dead[place->slot], memory_order_relaxed)};
    return (dp_state){dp_run_expires(place->run, place->slot), dp_run_is_dead(place->run, place->slot)};
}

doppel_status dp_place_prepare(const dp_place *place, dp_state state) {
    if (place->head)
        return DOPPEL_OK;
    dp_state now = dp_place_state(place);
    doppel_status status = state.expires != now.expires ? dp_run_prepare_expires(place->run) : DOPPEL_OK;
    return status == DOPPEL_OK && state.dead != now.dead ? dp_run_prepare_dead(place->run) : status;
}

void dp_place_set(doppel_index *index, const dp_place *place, dp_state state) {
    dp_state now = dp_place_state(place);
    if (place->head) {
        atomic_store_explicit(&place->head->expires[place->slot], state.expires, memory_order_relaxed);
        atomic_store_explicit(&place->head->dead[place->slot], state.dead, memory_order_release);
    } else {
        if (state.expires != now.expires)
            dp_run_set_expires(place->run, place->slot, state.expires);
        if (state.dead != now.dead)
            dp_run_set_dead(place->run, place->slot, state.dead);
    }
    dp_index_count(index, (int64_t)now.dead - (int64_t)state.dead);
}

void dp_index_count(doppel_index *index, int64_t more) {
    uint64_t entries = atomic_load_explicit(&index->entries, memory_order_relaxed);
    atomic_store_explicit(&index->entries, entries + (uint64_t)more, memory_order_relaxed);
}

/* ---- one entry ---- */

doppel_status doppel_index_insert(doppel_index *index, const uint64_t *fingerprint, uint64_t owner, uint64_t expires) {
    if (!dp_index_has_width(index, fingerprint))
        return DOPPEL_ERROR_USAGE;
    dp_bits value = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits));
    dp_place place;
    doppel_status status = dp_index_locate(index, value, owner, &place);
    if (status != DOPPEL_OK)
        return status;
    if (place.head || place.run) {
        dp_state state = {expires, false};
        if ((status = dp_place_prepare(&place, state)) == DOPPEL_OK)
            dp_place_set(index, &place, state);
        return status;
    }
    dp_head *head = atomic_load_explicit(&index->current, memory_order_relaxed)->head;
    if (atomic_load_explicit(&head->count, memory_order_relaxed) == DP_HEAD_ROOM) {
        if ((status = dp_index_flush(index, NULL, false)) != DOPPEL_OK)
            return status;
        head = atomic_load_explicit(&index->current, memory_order_relaxed)->head;
    }
    dp_head_add(head, &index->places, value, owner, expires);
    dp_index_count(index, 1);
    return DOPPEL_OK;
}

/* Rewrites runs of which most is dead. When there is no memory for it now, a later change will do it. */
static void tidy(doppel_index *index) {
    if (dp_index_is_untidy(index))
        (void)dp_index_flush(index, NULL, false);
}

doppel_status doppel_index_remove(doppel_index *index, const uint64_t *fingerprint, uint64_t owner, bool *removed) {
    if (removed)
        *removed = false;
    if (!dp_index_has_width(index, fingerprint))
        return DOPPEL_ERROR_USAGE;
    dp_bits value = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits));
    dp_place place;
    doppel_status status = dp_index_locate(index, value, owner, &place);
    if (status != DOPPEL_OK || (!place.head && !place.run))
        return status;
    dp_state state = dp_place_state(&place);
    if (state.dead)
        return DOPPEL_OK;
    state.dead = true;
    if ((status = dp_place_prepare(&place, state)) != DOPPEL_OK)
        return status;
    dp_place_set(index, &place, state);
    if (removed)
        *removed = true;
    tidy(index);
    return DOPPEL_OK;
}

/* ---- the whole index ---- */

static uint64_t purge_head(doppel_index *index, dp_head *head, uint64_t now) {
    uint64_t count = atomic_load_explicit(&head->count, memory_order_relaxed), purged = 0;
    for (uint64_t i = 0; i < count; i++) {
        dp_place place = {.head = head, .slot = i};
        dp_state state = dp_place_state(&place);
        if (state.dead || !state.expires || state.expires > now)
            continue;
        dp_place_set(index, &place, (dp_state){state.expires, true});
        purged++;
    }
    return purged;
}

static doppel_status purge_run(doppel_index *index, dp_run *run, uint64_t now, uint64_t *purged) {
    const void *column = (const void *)atomic_load_explicit(&run->expires, memory_order_relaxed);
    uint64_t slots = dp_run_slots(run);
    if (!column)
        return DOPPEL_OK;
    doppel_status status = column == run->expires_memory ? DOPPEL_OK : dp_run_touch(run, column, slots * 8);
    if (status != DOPPEL_OK)
        return status;
    if ((status = dp_run_prepare_dead(run)) != DOPPEL_OK)
        return status;
    /* Slots that hold no entry, but where a list begins or how long it is, have no time. */
    for (uint64_t slot = 0; slot < slots; slot++) {
        uint64_t expires = dp_run_expires(run, slot);
        if (!expires || expires > now || dp_run_is_dead(run, slot))
            continue;
        dp_run_set_dead(run, slot, true);
        dp_index_count(index, -1);
        ++*purged;
    }
    return DOPPEL_OK;
}

doppel_status doppel_index_purge(doppel_index *index, uint64_t now, uint64_t *purged) {
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    uint64_t count = purge_head(index, version->head, now);
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < version->runs && status == DOPPEL_OK; i++)
        status = purge_run(index, version->run[i], now, &count);
    if (purged)
        *purged = count;
    tidy(index);
    return status;
}

doppel_status doppel_index_compact(doppel_index *index, doppel_error *error) {
    doppel_status status = dp_index_flush(index, NULL, true);
    return status == DOPPEL_OK ? status : dp_index_explain(index, status, error);
}
