/* trim.h - text that documents repeat from each other, and the documents without it: trim.c (options, readings, stages)
 * -> units.c (text to units and their hashes) -> windows.c (which windows may repeat? their hashes, sorted) ->
 * repeats.c (which of them are cut, and of what they are copies: spans) -> write.c (documents out). work.c keeps what
 * was found.
 *
 * A document is identified by its number in the order of reading, those of `against` first. Its place in keep order is
 * its rank. Units of a text are known by their number; a place is a document (or its rank) and a unit. docs/FORMAT.md
 * section 15 defines what is cut. */
#ifndef DP_TRIM_H
#define DP_TRIM_H

#include "batch/batch.h"

/* ---- settings: trim.c ---- */

typedef struct dp_trim_settings {
    doppel_trim_options options; /* defaults filled in */
    doppel_input_options input, against_input;
    const doppel_recipe *recipe;
    size_t threads;
    uint64_t memory;
    size_t n;    /* units of a window */
    size_t gram; /* of passages: the words of a gram, and the grams in a row of which one is chosen */
    size_t window;
    dp_keep_policy keep;
    dp_fields fields;
    dp_scope_rule scope;
    bool by_document; /* the scope is the document itself */
    bool passages;
    uint64_t secret[24]; /* of hashes, random: collisions cannot be constructed. XXH3 takes 136 bytes and more; a seed
                            would cost it 192 bytes of arithmetic for each text over 240 bytes */
} dp_trim_settings;

/* Whether repeats count only within one scope, or only across. */
static inline bool dp_trim_within(const dp_trim_settings *s) {
    return s->options.within != NULL;
}

/* ---- text to units: units.c ---- */

/* A line, sentence or paragraph of a text. */
typedef struct dp_trim_unit {
    uint64_t start; /* byte of the text */
    uint64_t words;
} dp_trim_unit;

/* A hash of 128 bits. */
void dp_trim_hash(const dp_trim_settings *settings, const void *bytes, size_t length, uint64_t hash[2]);

/* What one thread reads texts with, and what the last one has. */
typedef struct dp_trim_text {
    const dp_trim_settings *settings;
    doppel_page_reader *pages;
    dp_words *words, *ranged; /* ranged: for the bounds of words; NULL without passages */
    uint64_t count;           /* units */
    uint64_t word_count;      /* words of all of them */
    /* Lines, sentences, paragraphs, and the hashes of their words: */
    dp_trim_unit *unit;
    uint64_t (*hash)[2];
    size_t unit_count, unit_room, unit_hash_room;
    bool bounds_only; /* hashes are not needed */
    /* Passages: the normalised text, where each word starts in it (count + 1), and the hashes of the words. */
    dp_buffer text;
    uint32_t *starts;
    uint64_t *hashes;
    size_t start_room, hash_room;
    /* By dp_trim_text_bounds: where each unit starts in the text as it was given, and at the end its length. */
    uint64_t *bounds;
    size_t bound_room;
} dp_trim_text;

/* Free it in any case. */
doppel_status dp_trim_text_init(dp_trim_text *text, const dp_trim_settings *settings);
void dp_trim_text_free(dp_trim_text *text);
/* The text of a document; *is_page: it was made of a page. */
doppel_status dp_trim_text_of(dp_trim_text *text, const doppel_document *document, doppel_page *page, bool *is_page);
/* Reads a text: its units with their hashes or, for passages, its words. */
doppel_status dp_trim_text_read(dp_trim_text *text, doppel_slice bytes, bool is_page);
/* A checksum of a text. */
uint32_t dp_trim_text_check(doppel_slice bytes);
/* The bounds of all units. Reads lines, sentences and paragraphs as well. */
doppel_status dp_trim_text_bounds(dp_trim_text *text, doppel_slice bytes, bool is_page);
/* The words of the units from `from` to before `to`. */
uint64_t dp_trim_text_words(const dp_trim_text *text, uint64_t from, uint64_t to);

/* ---- numbers sorted in parts: parts.c ----
 *
 * Records of 64-bit numbers, divided into parts by the upper half of their first number, so that threads can add to and
 * go through different parts at the same time: records of one document are in one part. Each part is a dp_sorter. They
 * share memory: when it is used up, the largest part is written to its file, so that a part with most of the records,
 * those of one frequent value, has most of the memory, too. */

enum { DP_TRIM_PARTS = 64 };

typedef struct dp_trim_part {
    pthread_mutex_t lock;
    dp_sorter sorter;
    atomic_ullong held; /* records in memory */
} dp_trim_part;

/* The bytes of temporary files, now and at most. */
typedef struct dp_trim_disk {
    atomic_ullong now, most;
} dp_trim_disk;

typedef struct dp_trim_parts {
    dp_trim_part part[DP_TRIM_PARTS];
    dp_trim_disk *disk;
    size_t words;
    atomic_ullong held; /* records in memory, of all parts, */
    uint64_t most;      /* and how many may be */
    double scale;       /* parts by the upper half of the first number */
    bool open;
} dp_trim_parts;

/* `bytes` of memory for the parts together; first numbers are below `limit`. */
void dp_trim_parts_open(dp_trim_parts *parts, doppel_trim *trim, size_t words, double limit, uint64_t bytes);
void dp_trim_parts_close(dp_trim_parts *parts);

/* What one thread is about to add: a few records for each part. */
typedef struct dp_trim_adder {
    dp_trim_parts *parts;
    uint64_t *records;
    uint32_t count[DP_TRIM_PARTS];
    doppel_error *error; /* of what fails; may be NULL */
} dp_trim_adder;

/* False: no memory. */
bool dp_trim_adder_init(dp_trim_adder *adder, dp_trim_parts *parts);
doppel_status dp_trim_adder_add(dp_trim_adder *adder, const uint64_t *record);
/* Adds what is left. */
doppel_status dp_trim_adder_flush(dp_trim_adder *adder);
void dp_trim_adder_free(dp_trim_adder *adder);

/* Sorts each part and goes through it, on all threads; then closes them. The error is that of the trim. */
typedef doppel_status (*dp_trim_part_work)(void *user, dp_sorter *sorter, doppel_error *error);
doppel_status dp_trim_parts_run(doppel_trim *trim, dp_trim_parts *parts, const char *stage, dp_trim_part_work work,
                                void *user);

/* ---- documents and stages: trim.c ---- */

/* Columns, by document. */
typedef struct dp_trim_documents {
    uint64_t count, against;
    uint64_t *scope;   /* NULL: not used */
    double *ranks;     /* keep.count of them a document, until `rank` is made; NULL: the order of reading */
    uint32_t *rank;    /* in the order of keeping; NULL: the order of reading */
    uint32_t *by_rank; /* and back */
    uint32_t *words;   /* at most UINT32_MAX */
    uint32_t *check;   /* of its text: it must be the same when it is cut */
    uint64_t *cuts_at; /* the position of its spans in the file of spans, + 1; 0: it has none */
    size_t scope_room, rank_room;
} dp_trim_documents;

typedef struct dp_trim_reading {
    char **paths;
    size_t count;
    const doppel_input_options *input;
    doppel_input_counts counts;
    dp_input_units units;
    uint64_t first; /* the number of its first document */
} dp_trim_reading;

/* Samples that may repeat: a set that may hold others as well (a Bloom filter of words of 64 bits). */
typedef struct dp_sample_filter {
    _Atomic uint64_t *word;
    uint64_t mask; /* words - 1 */
} dp_sample_filter;

/* A text of `against` that has fewer words than a window. */
typedef struct dp_short_text {
    uint64_t head;    /* hash of its first min_words words */
    uint64_t hash[2]; /* of all its words */
    uint32_t document, words;
    uint32_t end; /* where those with the same head and number of words end */
} dp_short_text;

/* Those texts, by head, number of words, and hash. */
typedef struct dp_short_texts {
    dp_short_text *text;
    size_t count, room;
    dp_hashmap first;       /* by head, the first text that has it, + 1 */
    dp_sample_filter heads; /* which heads there may be */
} dp_short_texts;

/* A value, its number of occurrences, and the place where it occurs first. */
typedef struct dp_trim_top {
    uint64_t count, place;
} dp_trim_top;

/* As many as the windows of some long passages, which all occur equally often. */
enum { DP_TRIM_TOPS = 32768 };
typedef struct dp_trim_tops {
    dp_trim_top top[DP_TRIM_TOPS]; /* a heap, that with the least count (then the last place) on top */
    size_t count, limit;           /* limit: 0 is DP_TRIM_TOPS */
} dp_trim_tops;

/* What was looked up for the originals of spans: write.c */
typedef struct dp_trim_originals {
    bool made;
    dp_append_file file; /* of each document: the length of its id, the number of its units, its id, then pairs of
                            unit and start, ascending */
    uint64_t *at;        /* by document, + 1 */
} dp_trim_originals;

struct doppel_trim {
    dp_trim_settings settings;
    doppel_recipe *own_recipe;  /* of a trim that was opened */
    dp_buffer own_text;         /* and the texts that its options borrow from */
    dp_trim_reading reading[2]; /* those of `against`, and the others */
    dp_stdin_copy stdin_copy;
    dp_trim_documents documents;
    dp_short_texts shorts;
    dp_sample_filter filter, shared;   /* shared: while the inputs are read first, with `against` */
    uint64_t samples, sampled_windows; /* chosen grams, and the windows that chose them */
    uint64_t repeated_samples;         /* chosen grams that occur in several places */
    uint64_t repeated_windows;         /* with `against`: windows of the inputs whose grams are in the filter */
    uint64_t *hot;                     /* the most frequent samples, ascending */
    size_t hot_count, hot_room;
    dp_trim_parts
        marks; /* two numbers: document << 32 | unit that begins a window that is cut, the same of its original */
    dp_append_file spans;
    dp_trim_tops tops;
    doppel_repeat *repeats; /* of those, what is given; NULL: they were not looked up */
    size_t repeat_count;
    dp_trim_originals originals;
    doppel_trim_stats stats;
    dp_trim_disk disk;
    pthread_mutex_t lock; /* protects stats, tops, shorts, spans and failure while threads work */
    doppel_error failure; /* the first of the threads */
};

static inline void dp_trim_progress(const doppel_trim *trim, const char *stage, uint64_t done, uint64_t total) {
    const doppel_trim_options *o = &trim->settings.options;
    if (o->progress)
        o->progress(stage, done, total, o->user);
}

/* The first number of a mark is below this. */
static inline double dp_trim_marks_limit(const doppel_trim *trim) {
    return (double)(trim->documents.count + 1) * 0x1p32;
}

/* The scope of a document; only with within or across. */
static inline uint64_t dp_trim_scope(const doppel_trim *trim, uint32_t document) {
    return trim->settings.by_document ? document : trim->documents.scope[document];
}

/* Keeps the first failure of the threads, if `status` is one; its error may be empty. */
void dp_trim_fail(doppel_trim *trim, doppel_status status, const doppel_error *error);
bool dp_trim_failed(doppel_trim *trim);

/* The error of a text that dp_trim_text_of refuses. */
void dp_trim_too_long(const doppel_document *document, doppel_error *error);

/* Does what doppel_trim_find does. */
doppel_status dp_trim_start(doppel_trim *trim, const char *const *paths, size_t path_count,
                            const doppel_trim_options *options, doppel_error *error);

/* Reads a reading again, with the documents' numbers in it. */
doppel_status dp_trim_read_again(doppel_trim *trim, const dp_trim_reading *reading, const dp_input_numbered *numbered,
                                 const doppel_work *work, doppel_error *error);

/* ---- windows: windows.c ---- */

/* For passages, while documents are read first: what one thread samples with. */
typedef struct dp_sampler {
    dp_trim_text *text;
    dp_trim_adder adder;
    uint64_t *grams;
    dp_winnowed *chosen;
    size_t gram_room, chosen_room;
    uint64_t samples, windows, repeated; /* repeated: by dp_sampler_share */
} dp_sampler;

bool dp_sampler_init(dp_sampler *sampler, dp_trim_text *text, dp_trim_parts *samples);
void dp_sampler_free(dp_sampler *sampler);
/* Adds the samples of the text that was read last. */
doppel_status dp_sampler_add(dp_sampler *sampler);
/* Adds those of its samples that are in the filter to `shared`, and counts their windows. */
doppel_status dp_sampler_share(dp_sampler *sampler, const dp_sample_filter *filter, dp_sample_filter *shared);

/* Fills the filter: with the samples that occur in several places or, with `against`, with all. */
doppel_status dp_filter_make(doppel_trim *trim, dp_trim_parts *samples, doppel_error *error);

/* With `against`, while the inputs are read first: begins the filter of the samples that they share with `against`,
 * which replaces the other. */
doppel_status dp_filter_begin_shared(doppel_trim *trim, doppel_error *error);
void dp_filter_end_shared(doppel_trim *trim);

void dp_short_texts_free(dp_short_texts *shorts);

/* Reads all documents again, finds the windows that may repeat, and which of them are cut: fills trim->marks. */
doppel_status dp_windows_find(doppel_trim *trim, doppel_error *error);

/* ---- what is cut: repeats.c ---- */

/* Goes through sorted windows (hash, hash, rank << 32 | unit) and adds to `marks` those that are cut. */
doppel_status dp_repeats_mark(doppel_trim *trim, dp_trim_parts *windows, dp_trim_parts *marks);
/* Moves marks to those of the trim, dropping unneeded neighbours within a copy. */
doppel_status dp_repeats_thin(doppel_trim *trim, dp_trim_parts *marks);
/* Makes spans of the marks. */
doppel_status dp_repeats_join(doppel_trim *trim);

/* A span in units, as the file of spans has it. The spans of a document are preceded by their number, a uint64_t. */
typedef struct dp_trim_span {
    uint32_t first, end;     /* units */
    uint32_t document, unit; /* where the original is */
} dp_trim_span;

/* The spans of one document, and what was read of the file beyond them: those of the next ones. */
typedef struct dp_span_list {
    dp_trim_span *span;
    size_t count, room;
    char *ahead;
    size_t ahead_room;
    uint64_t ahead_at, ahead_size; /* where in the file that is */
} dp_span_list;

/* ---- the most repeated windows: tops.c ---- */

void dp_tops_push(dp_trim_tops *tops, dp_trim_top top);
/* Frees what was given. */
void dp_tops_free(doppel_trim *trim);

/* ---- originals and documents out: write.c ---- */

void dp_trim_originals_free(dp_trim_originals *originals);

/* ---- what is kept of a run: work.c ---- */

/* Opens the file of spans, in the work folder if there is one. *found: the folder has a run that found everything. */
doppel_status dp_trim_work_open(doppel_trim *trim, bool *found, doppel_error *error);
/* Takes what that run has found, once the documents have been counted. */
doppel_status dp_trim_work_load(doppel_trim *trim, doppel_error *error);
/* Keeps what was found, if there is a work folder. */
doppel_status dp_trim_work_save(doppel_trim *trim, doppel_error *error);

#endif
