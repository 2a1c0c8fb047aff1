/* report.h - the parts of doppel report, in the order of the work: gather.c (figures, which groups to show, their texts
 * and hosts), page.c and the sections (the page). A report of a trim (trim.h) is made of the same pieces. */
#ifndef REPORT_H
#define REPORT_H

#include "common/args.h"
#include "report/diff.h"
#include "shared/outputs.h"

/* ---- writing a page: markup, and text from documents, which is escaped ---- */

/* The first failure stays in `status`; calls after it do nothing. */
typedef struct html {
    writer *out;
    doppel_status status;
    uint64_t written; /* bytes */
    bool full;        /* some text was left out, because the page is large */
} html;

/* A page stays small enough to be sent by mail and opened on a phone: once it has MOST_FOLDED bytes, long texts are no
 * longer there to be unfolded, and once it has MOST_PAGE, the texts of the rest are left out. html_page_end says so. */
#define MOST_FOLDED ((uint64_t)8 << 20)
#define MOST_PAGE ((uint64_t)16 << 20)

/* Markup. html_format is for numbers and fixed words: what comes from documents goes through html_text. */
void html_put(html *page, const char *markup);
void html_format(html *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text for the content of any element (not for attributes): < > & and quotes are escaped, invalid UTF-8 becomes U+FFFD,
 * and control characters (C0, C1, those that change the direction of writing) become visible: [U+202E]. */
void html_text(html *page, const char *text, size_t length);
void html_string(html *page, const char *text);
/* An address: a link if it is one of the web (http, https), else as text. */
void html_link(html *page, const char *url, size_t length);

/* 1234567 as 1,234,567. */
void html_number(html *page, uint64_t number);
/* Bytes in the unit that suits: 3.4 MB. */
void html_bytes(html *page, uint64_t bytes);
/* A number and its noun: 1 group, 2,000 groups. */
void html_count(html *page, uint64_t number, const char *one, const char *many);

/* The page (page.c), with rules added to its style: everything up to the line below its title; in that line, the first
 * of the paths that were read, how many more there are, and the day; the end of that line and the start of the sentence
 * that gives the result; its end, with links to the sections, if there are any, which end the head; and from the end of
 * the sections on. */
typedef struct contents {
    const char *id, *name;
    bool there;
} contents;
void html_page_begin(html *page, const char *style, const char *title);
void html_corpus(html *page, const char *path, size_t path_count);
void html_result(html *page);
void html_contents(html *page, const contents *entry, size_t count);
void html_page_end(html *page);

static inline double percent_of(uint64_t part, uint64_t whole) {
    return whole ? 100 * (double)part / (double)whole : 0;
}

/* A table of two columns, and a row of it: its head, (the cell's content,) its end. Captions and heads are markup. */
void html_table_begin(html *page, const char *caption);
void html_table_end(html *page);
void html_row_begin(html *page, const char *name);
void html_row_end(html *page);
/* Whole rows; none for a text that is NULL and a count of 0. */
void html_row_text(html *page, const char *name, const char *text);
void html_row_count(html *page, const char *name, uint64_t count);
void html_row_bytes(html *page, const char *name, uint64_t bytes);

/* A table of timings. */
typedef struct timing {
    const char *name;
    double seconds;
} timing;
void html_timings(html *page, const timing *part, size_t count);

/* A table of what was read: the first paths, of which there may be more, and counts. */
enum { SHOWN_PATHS = 12 };
void html_reading(html *page, const char *caption, const char *const *paths, size_t path_count,
                  const doppel_input_counts *counts);

/* A tile with a number, (what it counts,) its end; a figure, (its picture,) its caption. */
void html_tile_begin(html *page, uint64_t number);
void html_tile_end(html *page);
void html_figure_begin(html *page, const char *title);
void html_figure_end(html *page, const char *caption);

/* An id, of which only the beginning is shown if it is longer than `most` bytes. */
enum { LONG_ID = 400, SHORT_ID = 80 };
void html_id(html *page, const char *id, size_t length, size_t most);

/* The words [first, end) of a text between two tags, with what is between and after them, up to the next word; white
 * space goes after the closing tag. Of words that have thousands of letters, only the first letters are unfolded. */
void html_words(html *page, const diff_text *text, size_t first, size_t end, const char *const tags[2]);

/* What is folded: a note of how much there is, [... 41 words ...], which unfolds it. Folds of class "cut" are unfolded
 * on paper, of class "cut same" they are not. */
typedef struct fold {
    const char *class, *one, *many;
} fold;

/* Begins a fold of this many bytes. False: the page has no room for them, and has only the note; else the content
 * follows, and html_fold_end. */
bool html_fold_begin(html *page, const fold *kind, uint64_t number, uint64_t bytes);
void html_fold_end(html *page);
/* The words [first, end) of a text, folded. */
void html_fold_words(html *page, const diff_text *text, size_t first, size_t end, const char *const tags[2],
                     const fold *kind);

/* What is left out of a text: [... 3 more cuts ...]. */
void html_skip(html *page, uint64_t number, const char *one, const char *many);

/* ---- what is shown of a document ---- */

/* At most this much of a text is read: about 40,000 words of English. */
#define MOST_TEXT ((size_t)256 << 10)

/* The first bytes of a text, at most `most`, that end between characters. */
size_t whole_characters(const char *text, size_t length, size_t most);

/* A copy of the beginning of a text, at most `most` bytes, which ends between characters. False: no memory. */
bool copy_text(const char *text, size_t length, size_t most, char **to, size_t *copied);

typedef struct shown_document {
    doppel_near near; /* near.b is the document */
    bool found;       /* its record was read; known ones have none */
    char *text, *title, *url;
    size_t text_length, title_length, url_length;
    bool text_cut, title_cut; /* only its beginning is there */
} shown_document;

/* Copies of a group that are shown with their differences, and ids of those that have none. */
enum { SHOWN_COPIES = 4, SHOWN_IDS = 8 };

typedef struct shown_group {
    uint64_t original, size;
    uint64_t identical; /* copies with similarity 1 */
    double least, most; /* similarity of the others, 1 and 0 where there is none */
    shown_document kept;
    shown_document copy[SHOWN_COPIES]; /* the least similar first */
    size_t copies;
    uint64_t same[SHOWN_IDS];
    size_t same_count;
} shown_group;

/* ---- figures ---- */

/* Similarities are counted in steps of 0.01, those of 1 apart. */
enum { SIMILARITY_STEPS = 100, DISTANCES = 129 };

typedef struct report_figures {
    uint64_t documents, known, kept, removed, groups, largest;
    uint64_t identical, near, by_url, by_title; /* removed documents */
    uint64_t bytes_in, bytes_out;               /* of records */
    uint64_t similarity[SIMILARITY_STEPS];      /* of removed documents with less than 1 */
    uint64_t distance[DISTANCES];
    uint64_t measured; /* removed documents whose similarity is known */
} report_figures;

/* ---- hosts ---- */

typedef struct host_pair {
    uint32_t kept, copy; /* hosts, by number */
    uint64_t copies;
} host_pair;

/* Names are numbered in order of appearance; of[document] is 0 where there is none, else the number + 1. */
typedef struct report_hosts {
    char **name;
    size_t count, room;
    uint32_t *table; /* numbers + 1 by hash; 0: free */
    size_t table_room;
    uint32_t *of;
    host_pair *pair; /* once counted: most copies first */
    size_t pairs;
    uint64_t between, inside; /* copies on another host than the kept one, and on the same */
} report_hosts;

bool hosts_begin(report_hosts *hosts, uint64_t documents);
/* Records the host of a document's URL, if it has one. False: no memory. */
bool hosts_add(report_hosts *hosts, uint64_t document, const char *url, size_t length);
/* Counts pairs of hosts once all are there. False: no memory. */
bool hosts_count(report_hosts *hosts, const doppel_batch *batch);
void hosts_free(report_hosts *hosts);

/* ---- the whole ---- */

typedef struct report {
    const cli_args *args;
    doppel_input_options input;
    doppel_batch *batch;
    const doppel_batch_options *options;
    doppel_batch_stats stats;
    report_figures figures;
    uint32_t *size; /* by document: the size of the group whose kept document it is */
    shown_group *group;
    size_t groups, wanted;
    report_hosts hosts;
    double seconds_open, seconds_texts;
    char *id;
    size_t id_room;
} report;

/* gather.c: from what was decided, and from the inputs. */
doppel_status report_gather(report *r);
doppel_status report_read_texts(report *r, doppel_error *error);
/* A document's id, borrowed until the next call; NULL: no memory. */
const char *report_id(report *r, uint64_t document, size_t *length);
void report_free(report *r);

/* page.c: everything; the sections are in their own files. */
void report_write(report *r, html *page);
void report_write_counts(const report *r, html *page);     /* figures.c: what came in and went out */
void report_write_histograms(const report *r, html *page); /* figures.c */
void report_write_groups(report *r, html *page);           /* groups.c */
void report_write_hosts(const report *r, html *page);      /* hosts.c */
void report_write_inputs(const report *r, html *page);     /* figures.c */
void report_write_plan(const report *r, html *page);       /* figures.c: the plan and its timings */

/* ---- pictures (pictures.c): SVG as wide as its container, with text of a fixed size ---- */

/* This many bars have room for their counts and labels on a phone. */
enum { MOST_BARS = 12 };

typedef struct bar {
    char label[48]; /* below it */
    char title[80]; /* the tooltip */
    uint64_t count;
    bool apart; /* it is of another kind than the others */
} bar;

/* A row of bars, each with its count above. `name` says what the picture shows. */
void picture_bars(html *page, const char *name, const bar *bars, size_t count);

/* The share of pairs that bands find, by similarity, with the threshold. */
void picture_curve(html *page, int bands, int rows, double threshold);

/* One bar cut into parts, each with a class of the style sheet, in order: part0, part1, ... */
void picture_parts(html *page, const char *name, const uint64_t *part, size_t count);

/* What they are, each with its name (for one, for several), its count and its share of the whole. */
void picture_legend(html *page, const char *const names[][2], const uint64_t *part, size_t count, uint64_t whole);

/* A bar that fills this share of its width. */
void picture_share(html *page, double share);

#endif
