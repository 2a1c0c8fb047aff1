/* known_parts.h - what the engine's memory is made of; inside known*.c. */
#ifndef DP_KNOWN_PARTS_H
#define DP_KNOWN_PARTS_H

#include "engine/alive.h"
#include "engine/keys.h"
#include "engine/lock.h"
#include "engine/parity.h"

/* ---- titles: known_titles.c ---- */

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

typedef struct dp_known_titles {
    double similarity; /* the least that is found */
    dp_title_shard shard[DP_TITLE_SHARDS];
    dp_seen_titles seen;
} dp_known_titles;

doppel_status dp_known_titles_create(double similarity, dp_known_titles **titles);
void dp_known_titles_free(dp_known_titles *titles);
size_t dp_known_titles_shard(doppel_slice title);
doppel_status dp_known_titles_add(dp_known_titles *titles, doppel_slice title, uint64_t number);
void dp_known_titles_remove(dp_known_titles *titles, doppel_slice title, uint64_t number);
void dp_known_titles_stats(dp_known_titles *titles, dp_known_stats *stats);

/* known_seen.c: how often a title was seen, by its hash. */
bool dp_seen_add(dp_seen_titles *seen, uint64_t hash, uint64_t times);
uint64_t dp_seen_times(dp_seen_titles *seen, uint64_t hash);

/* ---- titles that wait to be loaded: known_piles.c ---- */

/* Titles of numbers that stand together. */
typedef struct dp_title_stretch {
    uint64_t number; /* of the first */
    size_t start, end;
    const char *titles; /* what both count in */
} dp_title_stretch;

typedef struct dp_title_pile {
    dp_buffer titles; /* each: number, length, bytes */
    dp_title_stretch *stretch;
    size_t count, room;
} dp_title_pile;

void dp_title_pile_free(dp_title_pile *pile);
bool dp_title_pile_add(dp_title_pile *pile, doppel_slice title, uint64_t number);
/* Adds all titles of some piles, as far as possible in the order of their numbers. */
doppel_status dp_title_piles_load(dp_titles_index *index, dp_title_pile *const *piles, size_t count);

/* ---- all ---- */

struct dp_known {
    dp_known_options options;
    dp_keys *keys;           /* ids, URLs, digests */
    dp_keys *bands;          /* NULL: by distance */
    dp_parities *parities;   /* of documents in crowded bands; NULL: by distance */
    doppel_index *near;      /* NULL: by similarity */
    dp_known_titles *titles; /* NULL: none */
    dp_alive alive;
    _Atomic uint64_t documents, copies;
    _Atomic uint64_t highest; /* number that was ever added */
};

/* The hashes under which a trace stands among the keys; gives how many. */
enum { DP_KEY_KINDS = 3 };
size_t dp_known_keys(const dp_trace *trace, uint64_t hashes[DP_KEY_KINDS]);
/* And among the bands. */
size_t dp_known_bands(const dp_known *known, const dp_trace *trace, uint64_t hashes[DP_MOST_BANDS]);

/* Whether a trace has a fingerprint to find, and a title. */
static inline bool dp_known_near(const dp_known *known, const dp_trace *trace) {
    return known->near && trace->kind == DP_TRACE_DOCUMENT && trace->content;
}
static inline bool dp_known_titled(const dp_known *known, const dp_trace *trace) {
    return known->titles && trace->kind == DP_TRACE_DOCUMENT && trace->title.length;
}

/* A number is going to be added. */
void dp_known_raise(dp_known *known, uint64_t number);

/* Whether a trace can be taken in at all. */
doppel_status dp_known_check(const dp_trace *trace);

#endif
