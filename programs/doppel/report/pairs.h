/* pairs.h - two documents that share text, for people: a ranking of pairs in lines, and a page with the shared passages
 * side by side. */
#ifndef REPORT_PAIRS_H
#define REPORT_PAIRS_H

#include "report/report.h"

typedef struct shared_side {
    const char *id, *text; /* text NULL: lines need none */
    size_t id_length, length;
    double share; /* of its shingles that are in the other one */
    bool cut;     /* only the beginning of the text is there */
} shared_side;

/* All of it is borrowed. */
typedef struct shared_pair {
    shared_side side[2];
    const doppel_passage *passages; /* in the order of the first text */
    size_t count;
    uint64_t words;     /* of all passages */
    uint64_t longest;   /* words of the longest, */
    doppel_slice quote; /* and how it begins; data NULL: not shown */
    bool quote_cut;     /* there is more of it */
} shared_pair;

/* Sets `words` by the passages. Returns the longest of them; the first of several. */
size_t pair_sum(shared_pair *pair);

/* Two or three lines on a pair; `rank` from 1 on, `width` columns wide. */
void pair_lines(text_buffer *out, const shared_pair *pair, size_t rank, size_t width);

/* The page: its beginning, a section for each pair, its end. The first pairs are open. `rank` from 1 on; 0: there is no
 * other. */
void pair_page_begin(html *page);
void pair_page_pair(html *page, const shared_pair *pair, size_t rank);

#endif
