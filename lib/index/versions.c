/* versions.c - what readers see of an index, and when it is freed.
 *
 * A reader announces the version it is going to read in a free slot, then looks whether it is still the published one:
 * if so, the writer, which publishes first and looks at the slots after, sees the announcement and keeps it. Both sides
 * use sequentially consistent operations, so one of the two always sees the other. A run or a head is freed with the
 * last version that holds it. */
#include "index/versions.h"

#include <sched.h>
#include <stdlib.h>

/* ---- readers ---- */

/* Where this thread found a free slot last: it is free most likely, and its line is in this core's cache. */
static _Thread_local unsigned own_slot = UINT32_MAX;

static unsigned first_slot(void) {
    static _Atomic unsigned next;
    if (own_slot == UINT32_MAX)
        own_slot = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % DP_PINS;
    return own_slot;
}

dp_pinned dp_index_pin(const doppel_index *index) {
    doppel_index *shared = (doppel_index *)index; /* the slots are the readers' to write */
    for (unsigned slot = first_slot(), tried = 1;; slot = (slot + 1) % DP_PINS, tried++) {
        dp_version *version = atomic_load(&shared->current), *none = NULL;
        dp_pin *pin = &shared->pin[slot];
        if (atomic_compare_exchange_strong(&pin->version, &none, version)) {
            if (atomic_load(&shared->current) == version) {
                own_slot = slot;
                return (dp_pinned){version, pin};
            }
            atomic_store(&pin->version, NULL);
        }
        if (tried % DP_PINS == 0)
            sched_yield(); /* more readers at once than slots */
    }
}

void dp_index_unpin(dp_pinned pinned) {
    atomic_store_explicit(&pinned.pin->version, NULL, memory_order_release);
}

/* ---- the writer ---- */

static void let_go(dp_version *version) {
    for (int i = 0; i < version->runs; i++)
        if (--version->run[i]->versions == 0)
            dp_run_free(version->run[i]);
    if (version->head && --version->head->versions == 0)
        free(version->head);
    free(version);
}

static bool is_pinned(const doppel_index *index, const dp_version *version) {
    for (int i = 0; i < DP_PINS; i++)
        if (atomic_load(&index->pin[i].version) == version)
            return true;
    return false;
}

/* Frees the versions of the list that nobody reads. */
static void free_retired(doppel_index *index) {
    for (dp_version **link = &index->retired; *link;) {
        dp_version *version = *link;
        if (is_pinned(index, version)) {
            link = &version->next;
        } else {
            *link = version->next;
            let_go(version);
        }
    }
}

bool dp_index_publish(doppel_index *index, dp_run *const *runs, int count, dp_head *head) {
    dp_version *version = calloc(1, sizeof *version),
               *before = atomic_load_explicit(&index->current, memory_order_relaxed);
    if (!version)
        return false;
    version->runs = count;
    for (int i = 0; i < count; i++) {
        version->run[i] = runs[i];
        runs[i]->versions++;
    }
    version->head = head;
    head->versions++;
    atomic_store(&index->current, version);
    if (before) {
        before->next = index->retired;
        index->retired = before;
    }
    free_retired(index);
    return true;
}

doppel_status dp_index_create(const doppel_index_options *options, dp_run **runs, int count, doppel_index **created) {
    doppel_index *index = aligned_alloc(64, (sizeof *index + 63) / 64 * 64);
    if (!index)
        return DOPPEL_ERROR_MEMORY;
    memset(index, 0, sizeof *index);
    index->bits = options->bits ? options->bits : 64;
    index->distance = options->distance ? options->distance : 3;
    index->bytes_per_entry = DP_BYTES_PER_ENTRY;
    if (options->count && options->memory)
        index->bytes_per_entry = (double)options->memory / (double)options->count;
    if (options->layout)
        strncpy(index->layout_name, options->layout, sizeof index->layout_name - 1);
    index->secret = options->secret;
    dp_order_init(&index->order, index->bits, index->secret);
    dp_head *head = dp_head_create(index->bits);
    if (!head || !dp_index_publish(index, runs, count, head)) {
        free(head);
        free(index);
        return DOPPEL_ERROR_MEMORY;
    }
    uint64_t entries = 0;
    for (int i = 0; i < count; i++)
        entries += dp_run_entries(runs[i]);
    atomic_init(&index->entries, entries);
    *created = index;
    return DOPPEL_OK;
}

void doppel_index_free(doppel_index *index) {
    if (!index)
        return;
    while (index->retired) {
        dp_version *version = index->retired;
        index->retired = version->next;
        let_go(version);
    }
    let_go(atomic_load_explicit(&index->current, memory_order_relaxed));
    dp_pool_free(&index->pool);
    free(index);
}
