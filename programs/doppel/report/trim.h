/* trim.h - the report of a trim: trim_gather.c (figures, repeats, which documents to show), trim_page.c (the page). */
#ifndef REPORT_TRIM_H
#define REPORT_TRIM_H

#include "report/report.h"

/* Documents by the share of their words that is cut: none, more than 0 %, 10 %, ... 90 % on, all. */
enum { CUT_NONE, CUT_SOME, CUT_ALL = CUT_SOME + 10, CUT_STEPS };

/* Of the cuts of a document the first ones are shown, and of the documents that it repeats those with the longest
 * spans. */
enum { SHOWN_CUTS = 12, SHOWN_ORIGINALS = 3 };

typedef struct shown_original {
    uint64_t document, words; /* of its longest span */
    char *id;
    size_t id_length;
} shown_original;

/* A document before and after. */
typedef struct shown_trimmed {
    uint64_t key; /* of those of a kind, the ones with the least are shown */
    uint64_t words, words_cut, line;
    doppel_dropped dropped;
    char *id, *url, *file, *text;
    size_t id_length, url_length, text_length;
    bool text_begins, text_ends;  /* the text is there from its beginning, up to its end */
    doppel_range cut[SHOWN_CUTS]; /* in bytes of `text` */
    size_t cuts, cuts_in_all;
    shown_original original[SHOWN_ORIGINALS]; /* that with the longest span first */
    size_t originals;
} shown_trimmed;

/* Which documents are shown: some that lost most of their words but not all, some that lost less, some that lost
 * little.
 */
enum { LOST_MOST, LOST_SOME, LOST_LITTLE, LOST_KINDS, SHOWN_OF_KIND = 4 };

typedef struct shown_kind {
    shown_trimmed document[SHOWN_OF_KIND]; /* while gathered, by key; then by the share that was cut */
    size_t count;
} shown_kind;

/* A document that was dropped or has no words left. */
enum { SHOWN_LOST = 50 };
typedef struct lost_document {
    uint64_t words, words_cut;
    doppel_dropped dropped;
    char *id, *url;
    size_t id_length, url_length;
} lost_document;

typedef struct trim_report {
    const cli_args *args;
    doppel_trim *trim;
    const doppel_trim_options *options;
    doppel_trim_stats stats;
    const doppel_repeat *repeat;
    size_t repeats, wanted; /* wanted: at most this many are shown */
    uint64_t documents[CUT_STEPS], words_cut[CUT_STEPS];
    uint64_t cuts;
    shown_kind kind[LOST_KINDS];
    lost_document lost[SHOWN_LOST];
    size_t lost_count;
    char *file[SHOWN_PATHS], *last_file; /* the first files with documents, and that of the last document */
    size_t files;
    bool refused; /* the page would overwrite an input, which was reported */
    double seconds_open, seconds_texts;
} trim_report;

/* trim_gather.c: from a trim that was opened, and its inputs. */
doppel_status trim_report_read(trim_report *r, doppel_error *error);
void trim_report_free(trim_report *r);

/* trim_page.c */
void trim_report_write(trim_report *r, html *page);

#endif
