/* runs.h - common runs of two sequences of numbered words. Inside lib/verify only. */
#ifndef DP_RUNS_H
#define DP_RUNS_H

#include "text/text.h"

/* Two texts as numbers: equal words, equal numbers. */
typedef struct dp_word_ids {
    uint32_t *a, *b;
    size_t a_count, b_count;
} dp_word_ids;

bool dp_word_ids_init(dp_word_ids *ids, const dp_word_list *a, const dp_word_list *b);
void dp_word_ids_free(dp_word_ids *ids);

/* `length` words that are the same from word a of the one text and word b of the other on. */
typedef struct dp_common_run {
    uint32_t length, a, b;
} dp_common_run;

typedef struct dp_common_runs {
    dp_common_run *runs;
    size_t count, capacity;
} dp_common_runs;

/* The common runs of at least `min_words` words (1 or more), none of which can be made longer, in order of a and then b
 * (or nearly so, where texts repeat themselves); of those that begin at one word, the longest few. Whether runs longer
 * than a few words are the same is told by their hash: compare before use. False when there is no memory. */
bool dp_common_runs_find(const dp_word_ids *ids, size_t min_words, dp_common_runs *runs);

#endif
