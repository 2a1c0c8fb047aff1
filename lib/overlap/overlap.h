/* overlap.h - documents that contain much of one another: doppel_overlap_find() is documents -> overlap.c (texts to a
 * file, hashes by samples.c; which pairs share hashes?) -> compare.c (what do they share?).
 *
 * A document is identified by its number in the order of reading; those of `against` come first. */
#ifndef DP_OVERLAP_H
#define DP_OVERLAP_H

#include "batch/batch.h"

/* What a hit counts for: two numbers of documents and this are 64 bits. */
enum { DP_OVERLAP_SURE = 0, DP_OVERLAP_KEY_A = 1, DP_OVERLAP_KEY_B = 2 };

/* So that a number is 31 bits. */
#define DP_OVERLAP_MOST_DOCUMENTS (((uint64_t)1 << 31) - 1)

/* What is looked for, and by which hashes. */
typedef struct dp_overlap_plan {
    double containment; /* 0: not by it */
    uint64_t sample;    /* features that are 0 mod it estimate containment; 0: none */
    size_t keys;        /* how many of these are counted, the least of a document */
    size_t words;       /* the length of runs; 0: none */
    size_t gram;        /* features of a gram, the unit of runs */
    size_t window;      /* grams in a row of which one is looked up */
    size_t passage;     /* words of a passage, at least */
} dp_overlap_plan;

/* ---- samples.c ---- */

doppel_status dp_overlap_plan_make(const doppel_overlap_options *options, const doppel_recipe *recipe,
                                   dp_overlap_plan *plan, doppel_error *error);

/* Distinct hashes, ascending; those of runs are odd, those for containment even. */
typedef struct dp_overlap_samples {
    uint64_t *hash;
    size_t count, room;
    dp_winnowed *chosen; /* memory to work in */
    size_t chosen_room;
} dp_overlap_samples;

static inline bool dp_overlap_of_run(uint64_t hash) {
    return hash & 1;
}

/* The hashes by which a document is looked up, from its features in order. False: no memory. */
bool dp_overlap_sample(const dp_overlap_plan *plan, const uint64_t *features, size_t count,
                       dp_overlap_samples *samples);

/* ---- the work ---- */

typedef struct dp_overlap_seen {
    uint64_t digest[2];
} dp_overlap_seen;

typedef struct dp_overlap_work {
    doppel_overlap_options options;
    doppel_input_options input;
    const doppel_recipe *recipe;
    dp_overlap_plan plan;
    size_t threads;
    uint64_t memory;
    dp_append_file texts; /* of each document: dp_overlap_head, its id, its text packed */
    uint64_t *at;         /* where each begins */
    size_t count, room;
    size_t against;        /* documents of `against` */
    dp_overlap_seen *seen; /* digests of earlier documents, some of them: to leave out the hashes of copies early */
    dp_sorter digests;     /* digest (2 words), document */
    dp_sorter samples;     /* hash, document << 1 | whether it is one of the document's keys */
    dp_sorter hits;        /* a << 33 | b << 2 | what it counts for */
    uint32_t *first;       /* the first document with the same words, of those that are not paired by hashes */
    uint32_t *live;        /* keys of each document that hit all their pairs, */
    uint32_t *frequent;    /* and those that do not */
    doppel_overlap_counts counts;
    doppel_error error; /* of a callback */
} dp_overlap_work;

typedef struct dp_overlap_head {
    uint64_t id_length, text_length, packed_length, sample_count;
    uint64_t digest[2]; /* both 0: no words */
} dp_overlap_head;

/* compare.c: compares the candidates among the hits, and gives those that are pairs. */
doppel_status dp_overlap_compare(dp_overlap_work *work, doppel_error *error);

#endif
