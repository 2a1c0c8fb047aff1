/* diff.h - which words two texts have in common, in order, and which only one of them has. */
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include "doppel.h"

/* A text in words: the place of each, and the hash of its normalised form. */
typedef struct diff_text {
    const char *text;
    size_t length;
    doppel_ranges ranges; /* of the words */
    uint64_t *hash;
    size_t words;
} diff_text;

typedef enum diff_kind { DIFF_SAME, DIFF_REMOVED, DIFF_ADDED } diff_kind;

/* A run of words: of A (same, removed) or of B (added). */
typedef struct diff_run {
    diff_kind kind;
    size_t first, count;
} diff_run;

typedef struct diff {
    diff_run *run;
    size_t count;
    bool unaligned; /* too much differs: everything between the common ends counts as replaced */
} diff;

/* Splits a text, which is borrowed. Errors: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT. */
doppel_status diff_split(diff_text *split, const char *text, size_t length);
void diff_text_free(diff_text *split);

/* The shortest edit of A into B. Of two runs at one place, the removed one comes first. */
doppel_status diff_words(const diff_text *a, const diff_text *b, diff *out);
void diff_free(diff *d);

#endif
