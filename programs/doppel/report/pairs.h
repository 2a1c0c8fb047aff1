/* pairs.h - two documents that share text, for people: a ranking of pairs in lines, and a page with the shared passages
 * side by side. Both are by shares of words, which a reader can count: of the words of a document, those in passages
 * that the other one has, too. */
#ifndef REPORT_PAIRS_H
#define REPORT_PAIRS_H

#include "report/report.h"

typedef struct shared_side {
    const char *id, *text; /* text NULL: lines need none */
    size_t id_length, length;
    uint64_t words; /* of the whole text */
    bool cut;       /* only the beginning of the text is there */
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

/* A share in per cent: whole ones, but never 0 or 100 for what is not. */
void pair_percent(char text[16], double share);

/* The share of the words of a side, 0 or 1, that are in passages. */
double pair_share(const shared_pair *pair, size_t side);

/* Of the first `common` bytes of a name, those that are folders both documents are in, too. */
size_t pair_same_folder(const shared_pair *pair, const char *name, size_t common);
/* Takes that many bytes off both names. */
void pair_shorten_names(shared_pair *pair, size_t folder);

/* Two or three lines on a pair; `rank` from 1 on, `width` columns wide. */
void pair_lines(text_buffer *out, const shared_pair *pair, size_t rank, size_t width);

/* The page: its beginning, up to the line below its title (html_corpus, html_result); what a pair shares, in a
 * sentence; a section for each pair; how to read it, and its end. The first pairs are open. `rank` from 1 on; 0: there
 * is no other. */
void pair_page_begin(html *page);
void pair_page_sentence(html *page, const shared_pair *pair);
void pair_page_pair(html *page, const shared_pair *pair, size_t rank);
void pair_page_end(html *page, bool ranked);

#endif
