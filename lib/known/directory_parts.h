/* directory_parts.h - what the engine's memory is made of; inside directory*.c. */
#ifndef DP_DIRECTORY_PARTS_H
#define DP_DIRECTORY_PARTS_H

#include "known/alive.h"
#include "known/keys.h"
#include "known/lock.h"
#include "known/parity.h"

/* ---- titles: directory_titles.c ---- */

/* Titles are dealt out by their length, so that several threads can load them, and only a part of them waits for a
 * change: lengths of one eighth after the other to the next shard. */
enum { DP_TITLE_SHARDS = 16, DP_TITLE_LENGTHS = 8 };
typedef struct dp_title_shard {
    pthread_rwlock_t lock; /* writers go first */
    bool has_lock;
    dp_titles_index *index;
} dp_title_shard;

/* How often a title was seen without being added. */
typedef struct dp_seen_title {
    uint64_t hash; /* 0: an empty slot */
    uint64_t times;
} dp_seen_title;

typedef struct dp_seen_titles {
    pthread_rwlock_t lock;
    bool has_lock;
    dp_seen_title *slot; /* by hash, a power of two */
    size_t room, count;
    _Atomic uint64_t times; /* of all titles */
} dp_seen_titles;

typedef struct dp_directory_titles {
    double similarity; /* the least that is found */
    dp_title_shard shard[DP_TITLE_SHARDS];
    dp_seen_titles seen;
} dp_directory_titles;

doppel_status dp_directory_titles_create(double similarity, dp_directory_titles **titles);
void dp_directory_titles_free(dp_directory_titles *titles);
size_t dp_directory_titles_shard(doppel_slice title);
doppel_status dp_directory_titles_add(dp_directory_titles *titles, doppel_slice title, uint64_t number);
void dp_directory_titles_remove(dp_directory_titles *titles, doppel_slice title, uint64_t number);
void dp_directory_titles_stats(dp_directory_titles *titles, dp_directory_stats *stats);

/* ---- all ---- */

struct dp_directory {
    dp_directory_options options;
    dp_keys *keys;               /* ids, URLs, digests */
    dp_keys *bands;              /* NULL: by distance */
    dp_parities *parities;       /* of documents in crowded bands; NULL: by distance */
    doppel_index *near;          /* NULL: by similarity */
    dp_directory_titles *titles; /* NULL: none */
    dp_alive alive;
    _Atomic uint64_t documents, copies;
    _Atomic uint64_t highest; /* number that was ever added */
};

/* The hashes under which a trace stands among the keys; gives how many. */
enum { DP_KEY_KINDS = 3 };
size_t dp_directory_keys(const dp_trace *trace, uint64_t hashes[DP_KEY_KINDS]);
/* And among the bands. */
size_t dp_directory_bands(const dp_directory *directory, const dp_trace *trace, uint64_t hashes[DP_MOST_BANDS]);

/* Whether a trace has a fingerprint to find, and a title. */
static inline bool dp_directory_near(const dp_directory *directory, const dp_trace *trace) {
    return directory->near && trace->kind == DP_TRACE_DOCUMENT && trace->content;
}
static inline bool dp_directory_titled(const dp_directory *directory, const dp_trace *trace) {
    return directory->titles && trace->kind == DP_TRACE_DOCUMENT && trace->title.length;
}

/* A number is going to be added. */
void dp_directory_raise(dp_directory *directory, uint64_t number);

/* Whether a trace can be taken in at all. */
doppel_status dp_directory_check(const dp_trace *trace);

#endif
