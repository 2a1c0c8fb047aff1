/* versions.h - the inside of an index: what is published to readers, and what only the writer knows.
 *
 * An index publishes one version at a time: an immutable list of runs, largest first, and a head that grows. A reader
 * pins the version it reads by writing its address into a slot of `pin`, so that the writer does not free it; the
 * writer frees what no slot holds whenever it publishes the next one, and never waits. */
#ifndef DP_VERSIONS_H
#define DP_VERSIONS_H

#include "index/run.h"

/* A full head takes 4 bytes x 4096 to look through, which fits the first cache, and one merge in 4096 inserts. */
enum { DP_HEAD_ROOM = 4096, DP_PINS = 128, DP_MAX_RUNS = 64 };

/* What an entry may take when the caller has not said. */
#define DP_BYTES_PER_ENTRY 40.0

/* ---- the head: head.c ---- */

/* Entries in the order in which they came, DP_HEAD_ROOM at most. One thread adds while others read. */
typedef struct dp_head {
    _Atomic uint64_t count; /* entries that can be read */
    int bits;
    uint64_t versions; /* how many versions hold it; the writer's */
    _Atomic uint64_t expires[DP_HEAD_ROOM];
    _Atomic uint8_t dead[DP_HEAD_ROOM];
    uint64_t owners[DP_HEAD_ROOM];
    _Alignas(64) uint32_t filter[DP_HEAD_ROOM]; /* the low 32 bits of each value */
    uint64_t values[];                          /* one or two words each */
} dp_head;

dp_head *dp_head_create(int bits);
size_t dp_head_bytes(int bits);

static inline dp_bits dp_head_value(const dp_head *head, uint64_t i) {
    return dp_bits_load(head->values + (head->bits > 64 ? 2 * i : i), head->bits);
}

/* Where the writer finds an entry of the head: numbers from 1 by hash, 0 is free. Twice as many as entries. */
enum { DP_PLACES = 2 * DP_HEAD_ROOM };
typedef struct dp_places {
    uint16_t place[DP_PLACES];
} dp_places;

/* The number of an entry, dead or not, or DP_HEAD_ROOM. */
uint64_t dp_head_search(const dp_head *head, const dp_places *places, dp_bits value, uint64_t owner);
/* Adds an entry that is not there, to a head that has room. */
void dp_head_add(dp_head *head, dp_places *places, dp_bits value, uint64_t owner, uint64_t expires);
/* A run without tables of what is alive; NULL in *run when nothing is. Any thread, while entries are added. */
doppel_status dp_head_run(const dp_head *head, dp_run **run);

/* ---- versions: versions.c ---- */

typedef struct dp_version {
    int runs;
    dp_run *run[DP_MAX_RUNS];
    dp_head *head;
    struct dp_version *next; /* in the list of those that are published no more */
} dp_version;

typedef struct dp_pin {
    _Alignas(64) _Atomic(dp_version *) version;
} dp_pin;

struct doppel_index {
    int bits, distance;
    double bytes_per_entry;
    char layout_name[64]; /* forced; empty: the cheapest for each size */
    uint64_t secret;      /* what the order was made from */
    dp_order order;

    _Atomic(dp_version *) current;
    _Atomic uint64_t entries;
    dp_version *retired; /* versions that some reader may still hold; the writer's */
    dp_pool pool;        /* of areas; the writer's */
    dp_places places;    /* of the head's entries; the writer's */
    dp_pin pin[DP_PINS];
};

/* An index with an empty head and `count` runs (at most DP_MAX_RUNS), which it takes over when it succeeds. `options`
 * are read but not checked; its secret must not be 0. */
doppel_status dp_index_create(const doppel_index_options *options, dp_run **runs, int count, doppel_index **index);

/* Keeps the published version from being freed until it is released. Any thread. */
typedef struct dp_pinned {
    const dp_version *version;
    dp_pin *pin;
} dp_pinned;
dp_pinned dp_index_pin(const doppel_index *index);
void dp_index_unpin(dp_pinned pinned);

/* Publishes the runs (largest first) and a head, and frees what no reader holds any more. Takes over the runs that the
 * version before does not hold. False when there is no memory: nothing has changed, and the runs stay the caller's. */
bool dp_index_publish(doppel_index *index, dp_run *const *runs, int count, dp_head *head);

/* Whether a fingerprint has no bits beyond the width. */
static inline bool dp_index_has_width(const doppel_index *index, const uint64_t *fingerprint) {
    return index->bits >= 64 || fingerprint[0] >> index->bits == 0;
}

/* ---- changes: levels.c, index.c ---- */

/* Puts what stands in the head, in `more` (may be NULL; a run without tables, taken over in any case) and in runs that
 * are not much larger into one run; with `all`, all runs. */
doppel_status dp_index_flush(doppel_index *index, dp_run *more, bool all);

/* Gives a run without tables those that the index asks for. */
doppel_status dp_index_build(const doppel_index *index, dp_run *run, const dp_merging *merging);

/* Whether a run has so many dead that it is to be made anew: dp_index_flush does. */
bool dp_index_is_untidy(const doppel_index *index);

/* Where an entry stands, for the writer: in the head or in a run; with neither, nowhere. */
typedef struct dp_place {
    dp_head *head;
    dp_run *run;
    uint64_t slot;
} dp_place;
doppel_status dp_index_locate(const doppel_index *index, dp_bits value, uint64_t owner, dp_place *place);

typedef struct dp_state {
    uint64_t expires;
    bool dead;
} dp_state;
dp_state dp_place_state(const dp_place *place);
/* Makes sure that a state can be set: DOPPEL_OK, DOPPEL_ERROR_MEMORY, or DOPPEL_ERROR_STORE for a damaged file. */
doppel_status dp_place_prepare(const dp_place *place, dp_state state);
/* Sets a state that was prepared, and counts the entry. */
void dp_place_set(doppel_index *index, const dp_place *place, dp_state state);

/* So many entries more, or fewer. */
void dp_index_count(doppel_index *index, int64_t more);

#endif
