/* index.h - the internals of an index: what is published to readers, and what only the writer uses.
 *
 * An index publishes one version at a time: an immutable list of runs, largest first, a growing level, and a head. A
 * reader pins the version it reads by writing its address into a slot of `pin`, so that it is not freed; versions in no
 * slot are freed when the next one is published. One thread writes; another, the index's own, merges large runs. */
#ifndef DP_HAMMING_INDEX_H
#define DP_HAMMING_INDEX_H

#include "hamming/growing.h"
#include "hamming/run.h"

#include <pthread.h>

/* Scanning a full head reads 4 bytes x 4096, which fits the L1 cache; there is one merge per 4096 inserts. */
enum { DP_HEAD_ROOM = 4096, DP_PINS = 128, DP_MAX_RUNS = 64 };

/* Bytes per entry unless the caller says otherwise. */
#define DP_BYTES_PER_ENTRY 40.0

/* ---- the head ---- */

/* Entries in the order in which they came, DP_HEAD_ROOM at most. One thread adds while others read. */
typedef struct dp_head {
    _Atomic uint64_t count; /* entries that can be read */
    int bits;
    uint64_t versions; /* how many versions hold it; under the lock */
    _Atomic uint64_t expires[DP_HEAD_ROOM];
    _Atomic uint8_t dead[DP_HEAD_ROOM];
    uint64_t owners[DP_HEAD_ROOM];
    _Alignas(64) uint32_t filter[DP_HEAD_ROOM]; /* the low 32 bits of each value */
    uint64_t values[];                          /* one or two words each */
} dp_head;

/* With the values. */
static inline size_t dp_head_bytes(int bits) {
    return (sizeof(dp_head) + DP_HEAD_ROOM * (bits > 64 ? 16U : 8U) + 63) / 64 * 64;
}

static inline dp_bits dp_head_value(const dp_head *head, uint64_t i) {
    return dp_bits_load(head->values + (head->bits > 64 ? 2 * i : i), head->bits);
}

/* Where the writer finds an entry of the head: numbers from 1 by hash, 0 is free. Twice the number of entries. */
enum { DP_PLACES = 2 * DP_HEAD_ROOM };
typedef struct dp_places {
    uint16_t place[DP_PLACES];
} dp_places;

/* A run without tables of what is alive; NULL in *run when nothing is. Any thread, while entries are added. */
doppel_status dp_head_run(const dp_head *head, dp_run **run);

/* ---- versions ---- */

typedef struct dp_version {
    int runs;
    dp_run *run[DP_MAX_RUNS];
    dp_growing *growing; /* where new entries go; NULL: into the head */
    dp_growing *full;    /* the one before, while it waits to be merged; NULL: none */
    dp_head *head;
    struct dp_version *next; /* in the list of retired versions */
} dp_version;

typedef struct dp_pin {
    _Alignas(64) _Atomic(dp_version *) version;
} dp_pin;

/* ---- merges in the background: index.c ---- */

/* A change of an entry in a run that is being merged, to be made in the merged run too; or an expiry of all. */
typedef struct dp_merge_note {
    dp_bits value;
    uint64_t owner, expires; /* expiry: all that expire at or before it are dead */
    bool dead, expiry;
} dp_merge_note;

/* The thread that merges, and what it shares with the writer under the lock. */
typedef struct dp_merger {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* some of what follows has changed */
    pthread_t thread;
    bool started;         /* the writer's */
    bool stop;            /* the thread is to end */
    bool busy;            /* it merges */
    bool failed;          /* its last merge did; the next flush merges by itself */
    _Atomic bool cancel;  /* what it merges is no longer wanted */
    uint64_t writer_most; /* entries that the writer merges at once */
    uint64_t growing_from, growing_least,
        growing_most;         /* index size from which it has a growing level; bounds of its size */
    dp_run *unused;           /* runs to be freed */
    dp_growing *unused_level; /* levels to be freed */
    dp_merge_note *note;      /* changes since the merge began */
    size_t notes, note_room;
} dp_merger;

struct doppel_index {
    int bits, distance;
    double bytes_per_entry;
    char layout_name[64]; /* forced; empty: the cheapest for each size */
    uint64_t secret;      /* what the order was made from */
    dp_order order;

    _Atomic(dp_version *) current;
    _Atomic uint64_t entries;
    dp_merger merger;
    dp_version *retired; /* versions that some reader may still hold; under the lock */
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

/* Whether a fingerprint has no bits beyond the width. */
static inline bool dp_index_has_width(const doppel_index *index, const uint64_t *fingerprint) {
    return index->bits >= 64 || fingerprint[0] >> index->bits == 0;
}

/* Builds the tables of a run for the index. */
doppel_status dp_index_build(const doppel_index *index, dp_run *run, const dp_merging *merging);

/* ---- the file of an index (docs/FORMAT.md): file.c ----
 *
 * A header, a directory, the data. The directory says for every run what it is and where its sections lie, and has the
 * checksum of each block of the data. Every byte of the file is under a checksum: the header's own, that of the
 * directory, which the header holds, or that of a block. */

/* Sections and the data begin at multiples of a cache line. A block is small enough to be checked within some
 * microseconds, and large enough that its 8 bytes of checksum are negligible. */
enum { DP_FILE_ALIGN = 64, DP_FILE_BLOCK = 1 << 16 };

typedef struct dp_file_header {
    char magic[8];
    uint32_t version;
    uint32_t bits, distance;  /* as doppel_index_options has them */
    uint32_t runs;            /* in the directory */
    uint64_t secret;          /* what the order of bits was made from */
    double bytes_per_entry;   /* what runs are planned for */
    char layout[64];          /* forced for all runs; empty: none; padded with zeros */
    uint64_t directory_size;  /* bytes, after the header; a multiple of DP_FILE_ALIGN */
    uint64_t data_size;       /* bytes, after the directory */
    uint64_t directory_check; /* XXH3 of the directory */
    char reserved[56];        /* zeros */
    uint64_t header_check;    /* XXH3 of the header before it */
} dp_file_header;

_Static_assert(sizeof(dp_file_header) == 3 * DP_FILE_ALIGN, "without gaps");

/* Bytes from `offset` in the data; nothing: 0 and 0. */
typedef struct dp_file_section {
    uint64_t offset, length;
} dp_file_section;

/* The sections of a run: three for each table, then these. */
enum { DP_FILE_TABLE_SECTIONS = 3, DP_FILE_OTHER_SECTIONS = 5 };
enum { DP_FILE_IDS, DP_FILE_LISTS, DP_FILE_SHARED, DP_FILE_EXPIRES, DP_FILE_DEAD };
enum { DP_FILE_MAX_SECTIONS = DP_FILE_TABLE_SECTIONS * DP_MAX_TABLES + DP_FILE_OTHER_SECTIONS };

/* A run in the directory; its sections follow. After the last run come the checksums, one a block. */
typedef struct dp_file_run {
    char layout[64]; /* padded with zeros */
    uint64_t count, list_count;
    uint64_t lists; /* positions with several owners */
    uint64_t sections;
} dp_file_run;

_Static_assert(sizeof(dp_file_run) == 96, "without gaps");

/* How many blocks data have. */
static inline uint64_t dp_file_blocks(uint64_t data_size) {
    return (data_size + DP_FILE_BLOCK - 1) / DP_FILE_BLOCK;
}

/* Checks every block of the file that a run lies in: DOPPEL_OK (in memory, too) or DOPPEL_ERROR_STORE. */
doppel_status dp_run_check_file(const dp_run *run);

/* Returns `status` and sets its message: for DOPPEL_ERROR_STORE, which block of which file is damaged. */
doppel_status dp_version_explain(const dp_version *version, doppel_status status, doppel_error *error);
static inline doppel_status dp_index_explain(const doppel_index *index, doppel_status status, doppel_error *error) {
    if (status == DOPPEL_OK)
        return status;
    dp_pinned pinned = dp_index_pin(index);
    dp_version_explain(pinned.version, status, error);
    dp_index_unpin(pinned);
    return status;
}

#endif
