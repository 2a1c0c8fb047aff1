/* mirrors.h - hosts and prefixes that mirror each other: doppel_mirrors_find() is
 * pages -> mirrors.c (a table of pages, sorted by address) -> compare.c (which prefixes have a page in common? which
 * paths do they share, and which match? how long is the prefix?).
 *
 * An address is a host and the segments of its path, each as a hash of 64 bits; the query belongs to the last one.
 * Pages below a prefix stand together in the table. */
#ifndef DP_MIRRORS_H
#define DP_MIRRORS_H

#include "batch/batch.h"

enum {
    DP_MIRROR_SEGMENTS = 12, /* of longer paths the last one stands for all that are left */
    DP_MIRROR_SLOTS = 64,    /* of a signature, 8 bits each: two that differ are the same by chance once in 256 */
    /* Pages meet that have the same slots in one band: at similarity s, 1 - (1 - s^6)^10 of them: 0.95 at 0.8. */
    DP_MIRROR_BANDS = 10,
    DP_MIRROR_ROWS = 6,
    DP_MIRROR_CROWD = 64 /* pages that all meet each other, at most */
};

/* A line of the table. */
typedef struct dp_mirror_page {
    uint64_t host;                        /* a hash */
    uint64_t segment[DP_MIRROR_SEGMENTS]; /* hashes, none of them 0; 0 behind the last */
    uint64_t depth;                       /* segments */
    uint64_t url_at, url_length;          /* in work->urls */
    uint64_t digest;
    uint8_t slot[DP_MIRROR_SLOTS];
} dp_mirror_page;

/* What pages are sorted by. */
enum { DP_MIRROR_KEYS = 1 + DP_MIRROR_SEGMENTS };

/* Two prefixes: the first `depth` segments of a page each. */
typedef struct dp_mirror_pair {
    uint64_t a, b; /* pages, by their number in the table */
    unsigned a_depth, b_depth;
    uint64_t shared, matching;
} dp_mirror_pair;

typedef struct dp_mirrors_work {
    doppel_mirrors_options options;
    doppel_input_options input;
    const doppel_recipe *recipe;
    uint64_t memory;
    dp_mirror_page page;  /* where options.page is */
    unsigned least_slots; /* equal slots of near-identical pages */
    dp_spill urls;
    dp_sorter pages; /* dp_mirror_page */
    dp_spill file;   /* the table */
    const dp_mirror_page *table;
    size_t count;
    dp_sorter hits; /* prefix, prefix, page << 4 | depth of each */
    dp_mirror_pair *pairs;
    size_t pair_count, pair_room;
    doppel_mirrors_counts counts;
    doppel_error error; /* of a callback */
} dp_mirrors_work;

/* ---- pages ---- */

/* Whether two pages are near-identical. */
static inline bool dp_mirror_near(const dp_mirrors_work *work, const dp_mirror_page *a, const dp_mirror_page *b) {
    unsigned equal = 0;
    for (size_t i = 0; i < DP_MIRROR_SLOTS; i++)
        equal += a->slot[i] == b->slot[i];
    return a->digest == b->digest || equal >= work->least_slots;
}

/* Which of two pages comes first by what follows their prefixes: below 0, 0 or above. */
static inline int dp_mirror_order(const dp_mirror_page *a, size_t a_depth, const dp_mirror_page *b, size_t b_depth) {
    for (; a_depth < DP_MIRROR_SEGMENTS || b_depth < DP_MIRROR_SEGMENTS; a_depth++, b_depth++) {
        uint64_t x = a_depth < DP_MIRROR_SEGMENTS ? a->segment[a_depth] : 0;
        uint64_t y = b_depth < DP_MIRROR_SEGMENTS ? b->segment[b_depth] : 0;
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

/* ---- the stages ---- */

/* Fills work->hits, ready to be read. */
doppel_status dp_mirrors_meet(dp_mirrors_work *work, doppel_error *error);

/* Fills work->pairs. */
doppel_status dp_mirrors_compare(dp_mirrors_work *work, doppel_error *error);

/* The pages below a prefix: from `start` to before `end` in the table. */
typedef struct dp_mirror_range {
    size_t start, end;
} dp_mirror_range;
dp_mirror_range dp_mirror_below(const dp_mirrors_work *work, const dp_mirror_page *page, unsigned depth);

/* The place in a range of the first page whose path behind `depth` is not before that of `page` behind page_depth. */
size_t dp_mirror_seek(const dp_mirrors_work *work, dp_mirror_range range, unsigned depth, const dp_mirror_page *page,
                      unsigned page_depth);

#endif
