/* index_read.c - reading an index as a whole: is an entry there, all entries, numbers about it. */
#include "index/versions.h"
#include "kernel/kernel.h"

/* Numbers of a run are read so many at a time. */
enum { STRETCH = 512 };

/* ---- one entry ---- */

/* The newest entries are looked through: a reader has no hash of them. */
static bool head_contains(const dp_head *head, dp_bits value, uint64_t owner) {
    uint32_t hits[STRETCH + 16];
    uint64_t all = atomic_load_explicit(&head->count, memory_order_acquire);
    for (uint64_t from = 0; from < all; from += STRETCH) {
        size_t count = all - from < STRETCH ? (size_t)(all - from) : STRETCH;
        size_t found = dp_near32_kernel()(head->filter + from, count, (uint32_t)value, 0, hits);
        for (size_t i = 0; i < found; i++) {
            uint64_t at = from + hits[i];
            if (head->owners[at] == owner && dp_head_value(head, at) == value)
                return !atomic_load_explicit(&head->dead[at], memory_order_acquire);
        }
    }
    return false;
}

doppel_status doppel_index_contains(const doppel_index *index, const uint64_t *fingerprint, uint64_t owner,
                                    bool *contains) {
    *contains = false;
    if (!dp_index_has_width(index, fingerprint))
        return DOPPEL_ERROR_USAGE;
    dp_bits value = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits));
    dp_pinned pinned = dp_index_pin(index);
    const dp_version *version = pinned.version;
    doppel_status status = DOPPEL_OK;
    *contains = head_contains(version->head, value, owner);
    for (int i = 0; i < version->runs && !*contains && status == DOPPEL_OK; i++) {
        bool found;
        uint64_t slot;
        status = dp_run_slot(version->run[i], value, owner, &found, &slot);
        if (status == DOPPEL_OK && found) {
            *contains = !dp_run_is_dead(version->run[i], slot);
            break;
        }
    }
    dp_index_unpin(pinned);
    return status;
}

/* ---- all entries ---- */

typedef struct reading {
    const dp_order *order;
    bool (*entry)(const doppel_match *entry, void *user);
    void *user;
} reading;

static doppel_status give(const reading *r, dp_bits value, uint64_t owner, uint64_t expires) {
    doppel_match match = {.owner = owner, .expires = expires};
    dp_bits_store(dp_order_undo(r->order, value), match.fingerprint);
    return r->entry(&match, r->user) ? DOPPEL_OK : DOPPEL_ERROR_INTERRUPTED;
}

static doppel_status give_head(const reading *r, const dp_head *head) {
    uint64_t count = atomic_load_explicit(&head->count, memory_order_acquire);
    doppel_status status = DOPPEL_OK;
    for (uint64_t i = 0; i < count && status == DOPPEL_OK; i++)
        if (!atomic_load_explicit(&head->dead[i], memory_order_acquire))
            status = give(r, dp_head_value(head, i), head->owners[i],
                          atomic_load_explicit(&head->expires[i], memory_order_relaxed));
    return status;
}

static doppel_status give_position(const reading *r, const dp_run *run, uint64_t position, dp_bits value) {
    dp_owners owners;
    doppel_status status = dp_run_owners(run, position, &owners);
    for (uint64_t i = 0; status == DOPPEL_OK && i < owners.count; i++)
        if (!dp_run_is_dead(run, owners.slot + i))
            status = give(r, value, owners.owner[i], dp_run_expires(run, owners.slot + i));
    return status;
}

static doppel_status give_run(const reading *r, const dp_run *run) {
    uint64_t values[2 * STRETCH], bucket = 0;
    size_t words = run->bits > 64 ? 2 : 1;
    for (uint64_t from = 0; from < run->count; from += STRETCH) {
        uint64_t count = run->count - from < STRETCH ? run->count - from : STRETCH;
        doppel_status status = dp_run_values(run, from, count, &bucket, values);
        for (uint64_t i = 0; i < count && status == DOPPEL_OK; i++)
            status = give_position(r, run, from + i, dp_bits_load(values + i * words, run->bits));
        if (status != DOPPEL_OK)
            return status;
    }
    return DOPPEL_OK;
}

doppel_status doppel_index_each(const doppel_index *index, bool (*entry)(const doppel_match *entry, void *user),
                                void *user) {
    reading r = {&index->order, entry, user};
    dp_pinned pinned = dp_index_pin(index);
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < pinned.version->runs && status == DOPPEL_OK; i++)
        status = give_run(&r, pinned.version->run[i]);
    if (status == DOPPEL_OK)
        status = give_head(&r, pinned.version->head);
    dp_index_unpin(pinned);
    return status;
}

/* ---- numbers ---- */

static uint64_t run_bytes(const dp_run *run) {
    uint64_t bytes = sizeof *run + run->count * 8 + run->list_count * 8;
    for (int t = 0; t < run->layout.tables; t++)
        bytes += dp_directory_bytes(&run->table[t]) + dp_filter_bytes(run) + dp_rest_bytes(run, &run->table[t]);
    bytes += run->shared ? dp_shared_bytes(run) : 0;
    bytes += atomic_load_explicit(&run->expires, memory_order_relaxed) ? dp_run_slots(run) * 8 : 0;
    bytes += atomic_load_explicit(&run->dead, memory_order_relaxed) ? dp_run_slots(run) / 8 : 0;
    return bytes;
}

void doppel_index_get_stats(const doppel_index *index, doppel_index_stats *stats) {
    dp_pinned pinned = dp_index_pin(index);
    const dp_version *version = pinned.version;
    *stats = (doppel_index_stats){.entries = atomic_load_explicit(&index->entries, memory_order_relaxed),
                                  .fingerprints = atomic_load_explicit(&version->head->count, memory_order_relaxed),
                                  .bytes = sizeof *index + dp_head_bytes(index->bits),
                                  .runs = version->runs,
                                  .bits = index->bits,
                                  .distance = index->distance};
    for (int i = 0; i < version->runs; i++) {
        stats->fingerprints += version->run[i]->count;
        stats->bytes += run_bytes(version->run[i]);
    }
    if (version->runs)
        memcpy(stats->layout, version->run[0]->layout.name, sizeof stats->layout);
    else
        memcpy(stats->layout, index->layout_name, sizeof stats->layout);
    dp_index_unpin(pinned);
}
