/* title.h - the title index: every title that is similar enough to a given one, without comparing all of them.
 *
 * create; add and remove (title, owner) pairs; find. Titles are normalised before they come here; similarity is
 * 1 - d / max(length), d being the Levenshtein distance on code points. Exact: no title at or above the threshold is
 * missed, none below is given. Equal titles are one entry with many owners.
 *
 * Memory, for titles of 80 letters: about 300 bytes a distinct title, and 8 to 16 bytes an owner from the second on.
 * Threads: one at a time may change an index, and none may find (or begin or step) at that time; any number may find at
 * once, each with its own matches. */
#ifndef DP_TITLE_H
#define DP_TITLE_H

#include "base/base.h"

typedef struct dp_titles_index dp_titles_index;

/* `min` is the least similarity that is found, 0 to 1. Errors: DOPPEL_ERROR_USAGE, DOPPEL_ERROR_MEMORY. */
doppel_status dp_titles_index_create(double min, dp_titles_index **index);
void dp_titles_index_free(dp_titles_index *index);

/* Adds an owner of a title, in UTF-8 (invalid sequences count a code point U+FFFD each); an existing one stays. Owners
 * of one title are best added in ascending order: otherwise others are moved. Errors: DOPPEL_ERROR_MEMORY,
 * DOPPEL_ERROR_INPUT for a title of over 2 GiB or more than 2^31 titles; then nothing has changed. */
doppel_status dp_titles_index_add(dp_titles_index *index, const char *title, size_t length, uint64_t owner);

/* Removes an owner of a title; *removed (may be NULL) says whether it was there. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_titles_index_remove(dp_titles_index *index, const char *title, size_t length, uint64_t owner,
                                     bool *removed);

/* One title that was found, and its owners, ascending: borrowed from the index until it changes. */
typedef struct dp_title_match {
    double similarity;
    const uint64_t *owners;
    size_t owner_count;
    uint32_t entry; /* the index's own number of the title */
} dp_title_match;

/* The result of a find, and memory it reuses. Zero is empty. */
typedef struct dp_title_matches {
    dp_title_match *match; /* the most similar first, then by first owner */
    size_t count, capacity;
    uint64_t candidates, measured; /* titles that were looked at, and whose distance was computed */
    struct dp_titles_work *work;
} dp_title_matches;
void dp_title_matches_free(dp_title_matches *matches);

/* Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_titles_index_find(const dp_titles_index *index, const char *title, size_t length,
                                   dp_title_matches *matches);

/* What was found among the titles at some time, so that a later find only has to search those added since. Zero is
 * nothing. */
typedef struct dp_titles_ahead {
    uint64_t version; /* of the index; 0: nothing was looked up */
    uint32_t entries; /* number of titles at that time */
    uint32_t count;
    struct dp_titles_near *near;
} dp_titles_ahead;
void dp_titles_ahead_free(dp_titles_ahead *ahead);

/* Looks ahead: begin, step until there is no more, end, with memory that no other call uses in between. The index may
 * change between the calls, so that a writer waits for one step at most. A failure leaves *ahead empty. Errors of
 * begin: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT for a title of over 2 GiB. */
doppel_status dp_titles_ahead_begin(const dp_titles_index *index, const char *title, size_t length,
                                    dp_title_matches *matches, dp_titles_ahead *ahead);
bool dp_titles_ahead_step(const dp_titles_index *index, dp_title_matches *matches, dp_titles_ahead *ahead);
void dp_titles_ahead_end(dp_title_matches *matches, dp_titles_ahead *ahead);
/* As dp_titles_index_find, with the same result. */
doppel_status dp_titles_index_find_after(const dp_titles_index *index, const char *title, size_t length,
                                         const dp_titles_ahead *ahead, dp_title_matches *matches);

typedef struct dp_titles_stats {
    uint64_t titles, owners; /* distinct titles */
    uint64_t bytes;
} dp_titles_stats;
void dp_titles_index_get_stats(const dp_titles_index *index, dp_titles_stats *stats);

/* How many segments a title of a length is cut into, so that any other with similarity of at least `min` shares one of
 * them; 0: it is not cut, as the segments would be too many or too short. */
size_t dp_title_segments(size_t length, double min);

#endif
