/* versions.h - the inside of an index: what is published to readers, and what only the writer knows.
 *
 * An index publishes one version at a time: an immutable list of runs, largest first, and a head that grows. A reader
 * pins the version it reads by writing its address into a slot of `pin`, so that the writer does not free it; the
 * writer frees what no slot holds whenever it publishes the next one, and never waits. */
#ifndef DP_VERSIONS_H
#define DP_VERSIONS_H

#include "index/run.h"

/* A full head takes 8 bytes x 4096 to look through, which fits the first cache, and one merge in 4096 inserts. */
enum { DP_HEAD_ROOM = 4096, DP_PINS = 128, DP_MAX_RUNS = 64 };

/* Entries in the order in which they came: only the newest versions' head grows. */
typedef struct dp_head {
    _Atomic uint64_t count; /* entries that can be read */
    int bits;
    uint64_t *values; /* one or two words each */
    uint64_t *owners;
    _Atomic uint64_t *expires;
    _Atomic uint8_t *dead;
    uint64_t dead_count; /* the writer's */
    uint64_t versions;   /* how many versions hold it; the writer's */
} dp_head;

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
    dp_version *retired;
    uint16_t *head_places; /* of the head's entries, by hash; the writer's */
    dp_pin *pin;           /* DP_PINS */
};

/* ---- versions.c ---- */

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

#endif
