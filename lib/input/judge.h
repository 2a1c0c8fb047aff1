/* judge.h - whether inputs could be read, all in all: doppel_input_options.refuse_bad.
 *
 * Each unit of work counts, file by file, what it read and what it left out (dp_tally); whoever emits units gives the
 * counts to the judge, in input order. A file of records of which no document could be read, or more than half of
 * whose records are bad, is refused, and so are all inputs together. A file that is one document by itself counts only
 * among all: a picture among texts is no reason to stop. */
#ifndef DP_JUDGE_H
#define DP_JUDGE_H

#include "base/base.h"

/* What is wrong with the bad records of a file, for the message. */
typedef struct dp_hint {
    doppel_error first; /* the first of them */
    uint64_t lacking;   /* how many have neither a text nor a page */
    uint64_t listed;    /* of these, how many gave their fields to `fields` */
    char fields[200];   /* names, separated by commas */
    char key[64];       /* the field with the longest string, which may be the text */
    size_t longest;
} dp_hint;

typedef struct dp_tally {
    uint64_t file; /* its number, in input order */
    uint64_t documents, bad;
    bool records;  /* it is a file of records */
    dp_hint *hint; /* NULL: nothing is bad */
} dp_tally;

/* Notes what is bad with a record; no memory for it is no failure. */
void dp_tally_bad(dp_tally *tally, const doppel_error *why);

/* Notes the fields of a record, a JSON object that was read, which has neither a text nor a page. */
void dp_tally_lacks_text(dp_tally *tally, const char *record, size_t length);

/* How the first records of a unit went: bit i is set when record i is bad. */
enum { DP_FIRST = 1024 };
typedef struct dp_first {
    size_t count;
    uint64_t bad[DP_FIRST / 64];
} dp_first;

static inline void dp_first_add(dp_first *first, bool bad) {
    if (first->count == DP_FIRST)
        return;
    if (first->count % 64 == 0)
        first->bad[first->count / 64] = 0;
    first->bad[first->count / 64] |= (uint64_t)bad << first->count % 64;
    first->count++;
}

typedef struct dp_judge {
    const doppel_input_options *options;
    dp_tally file, all;
    uint64_t first_documents, first_bad; /* of the first records */
    uint64_t refused;                    /* files */
    bool first;                          /* the first records were judged */
    bool against;                        /* it has refused the inputs: `error` says why */
    doppel_error error;
} dp_judge;

/* Takes the counts of a unit; of its tallies the last is left, empty. */
void dp_judge_take(dp_judge *judge, dp_tally *tallies, size_t *count, dp_first *first);

/* Whether as many records were read as are judged before anything is done with them; so too when `bytes` wait. */
bool dp_judge_ready(const dp_judge *judge, size_t bytes);

/* What was read so far: DOPPEL_OK, or DOPPEL_ERROR_INPUT and judge->error. */
doppel_status dp_judge_first(dp_judge *judge);
doppel_status dp_judge_end(dp_judge *judge);
void dp_judge_free(dp_judge *judge);

#endif
