/* overlap_pair.h - one candidate, compared on its texts. Inside lib/batch only. */
#ifndef DP_BATCH_OVERLAP_PAIR_H
#define DP_BATCH_OVERLAP_PAIR_H

#include "batch/overlap.h"

typedef struct dp_overlap_pair {
    uint32_t a, b;
    bool found; /* it is a pair; only then there is the rest */
    double containment_ab, containment_ba;
    doppel_passage *passages;
    doppel_slice *begins; /* lengths; where they are is known when they are given */
    size_t passage_count;
    size_t a_id_length, b_id_length;
    dp_buffer bytes; /* both ids, and how each passage begins */
} dp_overlap_pair;

void dp_overlap_pair_free(dp_overlap_pair *pair);

/* Where the words of a text begin and end, and how many there are. */
typedef struct dp_overlap_whole {
    uint64_t start, end, words;
} dp_overlap_whole;

/* What one thread compares with. */
typedef struct dp_overlap_comparer {
    const dp_overlap_work *work;
    doppel_sketcher *sketcher;
    void *unpacker;
    dp_overlap_text a, b;
    size_t a_number; /* the document that `a` and `a_set` are of; SIZE_MAX: none */
    uint64_t *a_set;
    size_t a_count, a_room;
    dp_overlap_whole a_whole; /* of `a`; words 0: not known */
    doppel_status status;
    doppel_error error;
} dp_overlap_comparer;

doppel_status dp_overlap_comparer_init(dp_overlap_comparer *comparer, const dp_overlap_work *work, doppel_error *error);
void dp_overlap_comparer_free(dp_overlap_comparer *comparer);

/* Compares: pair->a and pair->b are given, the rest is filled. What went wrong is in comparer->error. */
doppel_status dp_overlap_compare(dp_overlap_comparer *comparer, dp_overlap_pair *pair);

/* Gives a pair to options->pair. */
doppel_status dp_overlap_pair_give(dp_overlap_pair *pair, const doppel_overlap_options *options);

#endif
