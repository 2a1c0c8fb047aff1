/* known_parts.h - what the engine's memory is made of; inside known*.c. */
#ifndef DP_KNOWN_PARTS_H
#define DP_KNOWN_PARTS_H

#include "engine/alive.h"
#include "engine/keys.h"
#include "engine/lock.h"

/* ---- titles: known_titles.c ---- */

/* How often a title was seen without being added. */
typedef struct dp_seen_title {
    uint64_t hash; /* 0: an empty slot */
    uint64_t times;
} dp_seen_title;

typedef struct dp_known_titles {
    pthread_rwlock_t lock; /* of all of it; writers go first */
    dp_titles_index *index;
    dp_seen_title *seen; /* by hash, a power of two */
    size_t seen_room, seen_count;
    uint64_t seen_times; /* of all titles */
} dp_known_titles;

doppel_status dp_known_titles_create(double similarity, dp_known_titles **titles);
void dp_known_titles_free(dp_known_titles *titles);
doppel_status dp_known_titles_add(dp_known_titles *titles, doppel_slice title, uint64_t number);
void dp_known_titles_remove(dp_known_titles *titles, doppel_slice title, uint64_t number);
void dp_known_titles_stats(dp_known_titles *titles, dp_known_stats *stats);

/* ---- all ---- */

struct dp_known {
    dp_known_options options;
    dp_keys *keys;           /* ids, URLs, digests */
    dp_keys *bands;          /* NULL: by distance */
    doppel_index *near;      /* NULL: by similarity */
    dp_known_titles *titles; /* NULL: none */
    dp_alive alive;
    _Atomic uint64_t documents, copies;
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

/* Whether a trace can be taken in at all. */
doppel_status dp_known_check(const dp_trace *trace);

#endif
