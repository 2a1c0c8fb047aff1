/* batch.h - the batch line, documents by the million: read.c (text to sketches, on threads), documents.c (columns in
 * memory) and journal.c (ids, titles and what is kept of a run, in a file) -> candidates.c and bands.c (which may be
 * near which?), with prefix_filter.c in large buckets -> verify.c (how near are they?), by the sets that sets.c makes
 * of those documents -> group.c (which one is kept?) or pairs.c (every pair) -> write.c (documents) and output_files.c
 * (rows, and an output for each input); counts.c counts what is in groups. records.c reads records again by their
 * positions. batch.c has the settings and the public calls, in this order, and leaves out boilerplate; limits.c warns
 * of inputs that are too large; against.c asks index folders, spill.c sorts what does not fit into memory.
 *
 * A document is known by its number, in the order of reading. Documents with the same words, or without words and with
 * the same bytes, are twins: the first of them represents them all, and only firsts are looked for by content. A
 * document that an index folder has (against.c) is not compared at all.
 *
 * Each stage has its own part of the batch, a struct below. lib/overlap and lib/mirrors use spill.h, the text sketcher
 * and the calls that recognise what a path is. */
#ifndef DP_BATCH_H
#define DP_BATCH_H

#include "base/base.h"
#include "batch/spill.h"
#include "decide/decide.h"
#include "input/input.h"
#include "sketch/sketch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define DP_NO_DOCUMENT UINT32_MAX

/* ---- settings: batch.c ---- */

typedef enum dp_scope_kind { DP_SCOPE_NONE, DP_SCOPE_HOST, DP_SCOPE_DOMAIN, DP_SCOPE_FIELD } dp_scope_kind;

/* The scope that `within` and `across` compare. */
typedef struct dp_scope_rule {
    dp_scope_kind kind;
    size_t field;         /* of dp_fields */
    unsigned url_without; /* rules that are not applied to URLs */
} dp_scope_rule;

/* Reads "host", "domain" or the name of a field, which is added to the fields. Errors: DOPPEL_ERROR_USAGE. */
doppel_status dp_scope_parse(const char *name, dp_scope_rule *rule, dp_fields *fields, doppel_error *error);
/* The hash of a document's scope, by its URL as it was given; 0: it has none. `url` is memory to work in. read.c */
doppel_status dp_scope_find(const dp_scope_rule *rule, const doppel_document *document, dp_buffer *url,
                            uint64_t *scope);

/* A bucket of more documents is large: its documents are not compared each with each, but found by prefix_filter.c.
 * From some 60 on, comparing each with each takes longer. */
enum { DP_LARGE_BUCKET = 256 };

typedef struct dp_batch_settings {
    doppel_batch_options options; /* defaults filled in */
    doppel_input_options input, known_input;
    const doppel_recipe *recipe;
    size_t threads;
    int bits;
    int distance; /* the actual distance: 0 is 0 */
    unsigned by;
    dp_keep_policy keep;
    dp_fields fields; /* that `keep`, `within` and `across` need */
    dp_scope_rule scope;
    bool has_sets;           /* similarity is verified on sets of features */
    int bands, rows;         /* of signatures; 0: there are no sets */
    size_t large_bucket;     /* DP_LARGE_BUCKET, but in tests */
    uint64_t most_documents; /* DP_NO_DOCUMENT - 1, but in tests */
} dp_batch_settings;

/* For dp_decide. */
dp_rules dp_settings_rules(const dp_batch_settings *settings);

static inline uint64_t dp_settings_memory(const dp_batch_settings *settings) {
    return settings->options.memory ? settings->options.memory : dp_memory_default();
}

/* Reports the progress of a stage to the caller. */
static inline void dp_report_progress(const dp_batch_settings *settings, const char *stage, uint64_t done,
                                      uint64_t total) {
    if (settings->options.progress)
        settings->options.progress(stage, done, total, settings->options.user);
}

/* ---- limits: limits.c ---- */

/* The number of threads that fit into the memory limit; 0 is no limit. */
size_t dp_threads_within(size_t threads, uint64_t memory);
/* The memory that the columns of documents leave, or a sixteenth of all if they leave less. */
uint64_t dp_memory_left(const doppel_batch *batch);

/* Options of a reading that warns when its first records show that it will exceed a limit. */
typedef struct dp_limit_watch {
    const doppel_batch *batch;
    const doppel_input_options *given;
    uint64_t before; /* documents of earlier readings */
    bool warned;
} dp_limit_watch;
doppel_input_options dp_limit_watch_begin(dp_limit_watch *watch, const doppel_batch *batch,
                                          const doppel_input_options *given);
/* Whether one more document can be taken. Errors: DOPPEL_ERROR_INPUT (there are too many), DOPPEL_ERROR_MEMORY (more
 * than fit into the memory limit), with a message that says what to do. */
doppel_status dp_limits_check(const doppel_batch *batch, doppel_error *error);

/* ---- documents: documents.c ---- */

typedef struct dp_doc {
    uint8_t digest[16]; /* half of SHA-256 of its words or, if it has none, of its bytes */
    uint64_t fingerprint[2];
    uint64_t id_at;  /* in the journal's file */
    uint64_t set_at; /* what its set is made of: a dp_set_kind in the top bits, and a position (sets.c) */
    uint32_t id_length;
    uint32_t set_count; /* 0: it has none: a twin, too few words, or a method that needs none. DP_SET_UNKNOWN: it was
                           not made yet */
    uint32_t twin;      /* the first document with the same words (and scope, with `within`); itself: it is the first */
    uint32_t words;     /* at most UINT32_MAX */
    uint32_t record_length; /* with DP_SET_OF_RECORD and DP_SET_OF_MEMORY */
} dp_doc;

/* A title, in the journal's file. */
typedef struct dp_title {
    uint64_t at;
    uint32_t length;
} dp_title;

/* The columns, by document. */
typedef struct dp_documents {
    dp_doc *doc;
    size_t count, known; /* known documents come first */
    uint64_t *scope;     /* NULL: not used */
    uint64_t (*url)[2];  /* hashes of canonical URLs, 0: none; NULL: not used */
    double *ranks;       /* keep.count of them a document; NULL: the order of reading */
    dp_title *title;     /* where normalised titles stand; NULL: not used */
    uint64_t *id_hash;   /* of each id, while documents are read */
    size_t doc_room, scope_room, url_room, rank_room, title_room, id_hash_room;
    /* Number + 1 of the first document of each digest, 0: free; while documents are read. With 4 bytes a place, a
     * quarter of what a dp_hashmap would take of each document. */
    uint32_t *firsts;
    size_t first_count, first_places; /* a power of two of places, at most two in three taken */
} dp_documents;

static inline bool dp_doc_has_words(const dp_doc *doc) {
    return doc->words > 0;
}

/* Whether there is a digest to find twins by. Files of sketches that were made by earlier versions have nothing for
 * documents without words. */
static inline bool dp_doc_has_digest(const dp_doc *doc) {
    static const uint8_t none[16];
    return memcmp(doc->digest, none, sizeof none) != 0;
}

static inline int dp_documents_distance(const dp_documents *documents, uint32_t a, uint32_t b) {
    const uint64_t *x = documents->doc[a].fingerprint, *y = documents->doc[b].fingerprint;
    return __builtin_popcountll(x[0] ^ y[0]) + __builtin_popcountll(x[1] ^ y[1]);
}

/* Takes a document's entry, `length` bytes. `at` is its offset in the journal if that is being read back. */
doppel_status dp_documents_take(doppel_batch *batch, const char *entry, size_t length, uint64_t at);
/* Prefetches what taking the next entries will need: they come from the cache of another processor, and their twins may
 * be anywhere. Gives the bytes of the entries that were prefetched. */
size_t dp_documents_fetch(const doppel_batch *batch, const char *bytes, size_t length);

/* ---- documents that an index folder has: against.c ----
 *
 * Such a document is out of the batch: nothing is compared with it. Its original is not of the batch either; originals
 * are numbered in the order in which they are found, after all documents of the batch. */

/* The answer of an index for a document. */
typedef struct dp_index_match {
    uint32_t id_length; /* of the original; 0: the index does not have the document */
    uint32_t original;  /* its number; without meaning in the journal */
    float similarity;   /* negative: not known */
    int16_t distance;   /* -1: not known */
    uint8_t kind;       /* why, as files number it: dp_match_kind */
    uint8_t verified;   /* false: the index keeps no features, and the words are not the same */
} dp_index_match;

/* The journal distinguishes the same words (2) from near content (3), which have one reason. */
enum { DP_MATCH_KINDS = 5 };
static inline uint8_t dp_match_kind(doppel_reason reason, bool same_digest) {
    return (uint8_t)(reason + (reason == DOPPEL_REASON_TITLE || (reason == DOPPEL_REASON_CONTENT && !same_digest)));
}
/* And back. */
static inline doppel_reason dp_match_reason(uint8_t kind) {
    return (doppel_reason)(kind > DOPPEL_REASON_CONTENT ? kind - 1 : kind);
}

typedef struct dp_matched_document {
    uint32_t document;
    dp_index_match match;
} dp_matched_document;

typedef struct dp_matched_original {
    uint64_t hash[2]; /* of its id */
    uint64_t id_at;   /* in the journal's file */
    uint32_t id_length;
} dp_matched_original;

typedef struct dp_index_matches {
    dp_matched_document *document; /* ascending */
    size_t count, room;
    dp_matched_original *original;
    size_t original_count, original_room;
    dp_hashmap numbers; /* of originals, + 1, by the hash of their id */
    uint64_t key[2];    /* of the hashes, random: an attacker cannot choose ids that collide */
} dp_index_matches;

/* An index's answer for a document; NULL: none. */
const dp_index_match *dp_matches_get(const dp_index_matches *matches, uint32_t document);

/* Index folders that are open. */
typedef struct dp_against dp_against;

/* Opens the index folders among the known paths of all readings so far, those that are not open yet. Errors:
 * DOPPEL_ERROR_USAGE and DOPPEL_ERROR_STORE with a message that says which setting of the index is incompatible with
 * the batch. */
doppel_status dp_against_open(doppel_batch *batch, doppel_error *error);
/* Frees the matches as well. */
void dp_against_close(doppel_batch *batch);

/* A query for a document; slices may be empty, `sketch` is NULL where content does not count. */
typedef struct dp_asked {
    doppel_slice url;   /* canonical */
    doppel_slice title; /* normalised */
    const doppel_sketch *sketch;
} dp_asked;

/* Looks for a document in all folders; from any thread. match->id_length is 0 when none has it, else
 * verdict->original_id is the original's id. An error is kept for dp_against_end. */
doppel_status dp_against_find(const doppel_batch *batch, const dp_asked *asked, doppel_verdict *verdict,
                              dp_index_match *match);

/* After reading, which ended with `status`: reports what the indexes logged and, if it was one of them that failed,
 * why. */
void dp_against_end(const doppel_batch *batch, doppel_status status, doppel_error *error);

/* ---- the journal: journal.c ----
 *
 * Everything computed for each document, in the order of reading, in one file: `sketches` in the folder of `work`,
 * or nameless in `tmp` when it will be saved. It is written once and read back where something of it is needed; read
 * from its beginning, it gives the batch again. A header, then entries (docs/FORMAT.md).
 *
 * When nothing is to be kept, there are no entries: a nameless file has ids and titles alone, and the sets of documents
 * that have no position (records.c). */

typedef struct dp_journal {
    dp_append_file file;
    bool kept;       /* it has entries */
    bool replaying;  /* its entries are being read back: they are not to be added again */
    dp_buffer entry; /* memory to pack one in */
} dp_journal;

typedef enum dp_entry_kind { DP_ENTRY_READING = 1, DP_ENTRY_FILE, DP_ENTRY_DOCUMENT, DP_ENTRY_END } dp_entry_kind;

/* What an entry begins with; then come its head and its rest. */
typedef struct dp_entry_prefix {
    uint64_t size;  /* of the whole entry, this included */
    uint64_t check; /* XXH3 of what follows, seeded by its kind */
    uint64_t kind;
} dp_entry_prefix;

/* The head of a document. The rest is its id, its title, the id of its original in an index, the keys of its bands and
 * its set. The position of the record is passed from the threads that read to the one that takes entries in order, and
 * is 0 in a file. */
typedef struct dp_document_head {
    uint8_t digest[16];
    uint64_t fingerprint[2];
    uint64_t record_at, in_memory; /* in_memory: record_at is the address of the text; 0 in a file */
    uint32_t id_length;
    uint32_t set_count;     /* DP_SET_UNKNOWN: the set is not here, and will be made of the record */
    uint32_t record_length; /* 0: the record has no position and no address */
    uint32_t words;
    uint64_t scope, url[2];
    double rank[DP_KEEP_RULES];
    uint64_t line;
    uint32_t keys, title_length;
    dp_index_match match; /* in an index; id_length 0: there is none */
} dp_document_head;

/* The head of a file that is being read: its state at that time. The rest is its name. */
typedef struct dp_file_state {
    uint64_t bytes;
    int64_t changed; /* nanoseconds since 1970; 0: it does not exist */
} dp_file_state;

/* Begins the journal, or the file used without one, or reads back the one of `work`. */
doppel_status dp_journal_open(doppel_batch *batch, doppel_error *error);
/* Appends a whole entry to a buffer: its head, and the parts of its rest; with its check if it goes to a journal.
 * False: no memory. */
bool dp_entry_pack(dp_buffer *to, dp_entry_kind kind, doppel_slice head, const doppel_slice *rest, size_t parts,
                   bool check);
/* Appends an entry to the journal. */
doppel_status dp_journal_add(dp_journal *journal, dp_entry_kind kind, doppel_slice head, doppel_slice rest,
                             doppel_error *error);
/* Whether there is a document's entry, whole and unaltered, at the beginning of some bytes; then *length is its own. */
bool dp_entry_is_document(doppel_slice bytes, size_t *length);
/* Takes the documents of another batch's journal, a saved file, as known ones. */
doppel_status dp_journal_import(doppel_batch *batch, const char *path, doppel_error *error);
/* ---- what a path is ---- */

/* The folder of an index: against.c. */
bool dp_is_index(const char *path);
/* A file of sketches, which is a journal: journal.c. */
bool dp_is_journal(const char *path);
/* The `work` folder of a run; then `file`, of 4096 bytes, is the path of its journal. */
bool dp_is_work(const char *path, char *file);

/* ---- readings: read.c ---- */

#define DP_NO_LINE UINT64_MAX

/* A plain file of records, which can be read again anywhere. */
typedef struct dp_record_file {
    char *path;
    uint64_t base; /* the position of its first byte; those of different files do not overlap */
    dp_file_state state;
    bool known;     /* it is of a known reading */
    _Atomic int fd; /* + 1; 0: it is not open */
} dp_record_file;

/* In the order of reading, and so ascending by base. */
typedef struct dp_record_files {
    dp_record_file *file;
    size_t count, room;
    uint64_t end; /* the position after all records so far, and after the files as they were */
    atomic_int open;
} dp_record_files;

/* The inputs of one call of doppel_batch_read. */
typedef struct dp_reading {
    char **paths;
    size_t count;
    bool known;
    uint64_t indexes; /* how many of the paths are index folders, of a known reading */
    bool complete;    /* it was read to its end */
    doppel_input_counts counts;
    /* For a second pass: those of the paths that were read as inputs, how they were cut, and the number in the batch of
     * their first document. */
    const char **inputs;
    size_t input_count;
    dp_input_units units;
    uint64_t first;
    /* For a run that is resumed: the files that were begun, of which all but the last are done. */
    char **seen;
    size_t seen_count, seen_room;
    uint64_t last_line; /* of the last document, in the last file; DP_NO_LINE: there is none yet */
    /* Of the run that was stopped: */
    size_t resumed;        /* how many of the files it had begun, */
    dp_hashmap by_name;    /* their numbers + 1 by the hash of the name, */
    uint64_t resumed_line; /* and the line it came to in the last of them */
} dp_reading;

typedef struct dp_readings {
    dp_reading *reading;
    size_t count, room;
    size_t at; /* the one that is asked for next */
    bool limit_reached;
    bool foreign_open; /* a file of sketches that is being taken has a reading without an end */
    dp_stdin_copy stdin_copy;
    doppel_error *error; /* of a callback */
    dp_record_files files;
} dp_readings;

/* Begins a reading, or finds it in the journal; and reads what is left of it. */
doppel_status dp_readings_read(doppel_batch *batch, const char *const *paths, size_t count, bool known,
                               doppel_error *error);
/* Takes whole entries, one after the other, from threads or (then `at` is where the first stands) from the journal. */
doppel_status dp_readings_take(doppel_batch *batch, const char *bytes, size_t length, uint64_t at);
/* Reads the inputs of a reading once more, where the numbers of documents are those in the reading. Errors:
 * DOPPEL_ERROR_INPUT when they have changed, and those of doppel_input_run. */
doppel_status dp_readings_run_again(doppel_batch *batch, const dp_reading *reading, const dp_input_numbered *numbered,
                                    const doppel_work *work, doppel_error *error);
/* Makes stdin readable from its beginning, if the reading has it. */
doppel_status dp_readings_rewind(doppel_batch *batch, const dp_reading *reading, doppel_error *error);

/* Refuses paths that others are to be compared with, once they were read, if there was nothing in them: a folder
 * without files, inputs that cannot be opened or (unless `others` were found there) hold no document. An empty file is
 * accepted. */
doppel_status dp_check_compared(const char *const *paths, size_t path_count, const doppel_input_counts *counts,
                                bool others, doppel_error *error);

/* ---- records by their positions: records.c ----
 *
 * Files must not change until a batch is done with them: their size and time are compared when they are opened again.
 * A difference ends the run with DOPPEL_ERROR_INPUT, "the inputs have changed since they were read: start again".
 */

#define DP_MOST_POSITION ((uint64_t)1 << 62)

/* The state of a file; all zero: it does not exist. "-" is stdin. */
dp_file_state dp_file_state_get(const char *name);
bool dp_file_is_regular(const char *name);

/* Begins a file, of which the next records are; false: no memory. */
bool dp_record_files_add(dp_record_files *files, const char *path, const dp_file_state *state, bool known);
/* The position of a record of the last file. */
uint64_t dp_record_files_position(dp_record_files *files, uint64_t record_at, uint32_t length);
/* The file that a position is of. */
const dp_record_file *dp_record_files_find(const dp_record_files *files, uint64_t position);
/* Reads bytes of one file, from any thread. */
doppel_status dp_record_files_read(dp_record_files *files, uint64_t position, void *bytes, size_t length,
                                   doppel_error *error);
/* Whether all files are unchanged. */
doppel_status dp_record_files_check(const dp_record_files *files, doppel_error *error);
doppel_status dp_inputs_changed(doppel_error *error);
void dp_record_files_free(dp_record_files *files);

/* ---- text to sketch: read.c ---- */

/* What one thread makes sketches with. */
typedef struct dp_text_sketcher {
    doppel_sketcher *sketcher;
    doppel_page_reader *pages;
    doppel_content content;
} dp_text_sketcher;

/* Free it in any case. */
doppel_status dp_text_sketcher_init(dp_text_sketcher *text, const doppel_recipe *recipe, unsigned wants,
                                    doppel_content content);
void dp_text_sketcher_free(dp_text_sketcher *text);
/* The text of a document, and its sketch. */
doppel_status dp_text_sketcher_run(const dp_text_sketcher *text, const doppel_document *document, doppel_page *page,
                                   doppel_sketch *sketch);

/* ---- candidates: candidates.c ---- */

/* Documents that are looked for by content, and with bands, the keys of each: in blocks of DP_ROW_BLOCK rows, band
 * after band, so that a band can be read by itself. */
enum { DP_ROW_BLOCK = 1 << 16 };
typedef struct dp_key_rows {
    uint32_t *document; /* ascending */
    size_t count, room;
    uint32_t *block; /* keys of the last rows */
    dp_append_file keys;
} dp_key_rows;

/* Adds a document; `bands` may be 0. */
doppel_status dp_key_rows_add(dp_key_rows *rows, uint32_t document, const uint32_t *keys, int bands,
                              doppel_error *error);
/* Ends the last block. */
doppel_status dp_key_rows_flush(dp_key_rows *rows, int bands, doppel_error *error);

/* Documents of one title are of one class; classes from start[c] on to start[c + 1] are near class c. */
typedef struct dp_titles {
    uint32_t *of; /* by document; DP_NO_DOCUMENT: none. NULL: titles do not count */
    size_t count;
    uint32_t *first; /* by class, its first document */
    uint64_t *start; /* count + 1 */
    uint32_t *near;
    double *similarity; /* of the two titles */
    size_t near_count, first_room, start_room, near_room, similarity_room;
} dp_titles;

/* Which documents may be near each other. By content: documents that may be near each other are in one bucket, and a
 * document is compared with the members of the buckets it looks at. By URL and by title: classes. */
typedef struct dp_candidates {
    uint32_t *member; /* of all buckets, one after the other, ascending in each */
    size_t member_count, member_room;
    uint64_t *start; /* count + 1, where each bucket begins */
    size_t count, start_room;
    bool own_first; /* a document looks at all its buckets, but is a member of the first only */
    /* The buckets that a document looks at are looked[looked_start[d]] ... looked[looked_start[d + 1] - 1], ascending
     * but with own_first, where d = looked_of[document]; looked_of NULL: d is the document. */
    uint64_t *looked_start;
    uint32_t *looked, *looked_of;
    uint32_t *url_class; /* the first document with its URL (and scope, with `within`); DP_NO_DOCUMENT: it has none.
                            NULL: URLs do not count */
    dp_titles titles;
} dp_candidates;

doppel_status dp_candidates_find(doppel_batch *batch, dp_candidates *candidates, doppel_error *error);
void dp_candidates_free(dp_candidates *candidates);
/* Its part that is done by bands.c: the buckets of the rows' keys, and that each document looks at those it is in. */
doppel_status dp_candidates_by_bands(const doppel_batch *batch, dp_candidates *candidates, doppel_error *error);

/* The bucket that has a place among all members. */
static inline size_t dp_bucket_at(const dp_candidates *candidates, uint64_t place) {
    size_t low = 0, high = candidates->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (candidates->start[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

typedef struct dp_bucket_list {
    const uint32_t *bucket;
    size_t count;
} dp_bucket_list;

/* The buckets that the first of some twins looks at. */
static inline dp_bucket_list dp_buckets_of(const dp_candidates *candidates, uint32_t first) {
    uint32_t d = candidates->looked_of ? candidates->looked_of[first] : first;
    uint64_t start = candidates->looked_start[d];
    return (dp_bucket_list){candidates->looked + start, (size_t)(candidates->looked_start[d + 1] - start)};
}

/* ---- sets of feature hashes: sets.c ---- */

#define DP_SET_UNKNOWN UINT32_MAX

/* What a set is made of, in the top two bits of dp_doc.set_at. */
typedef enum dp_set_kind {
    DP_SET_STORED,    /* it stands in the journal's file */
    DP_SET_OF_RECORD, /* a record, of dp_doc.record_length bytes at this position (records.c) */
    DP_SET_OF_TEXT,   /* a text, at this position of the file of texts; 0: it has not been read again */
    DP_SET_OF_MEMORY  /* a text in the caller's memory, of dp_doc.record_length bytes at this address */
} dp_set_kind;

static inline dp_set_kind dp_doc_set_kind(const dp_doc *doc) {
    return (dp_set_kind)(doc->set_at >> 62);
}

/* Whether the record can be read again by dp_doc_position. */
static inline bool dp_doc_has_position(const dp_doc *doc) {
    return dp_doc_set_kind(doc) == DP_SET_OF_RECORD;
}

static inline uint64_t dp_doc_position(const dp_doc *doc) {
    return doc->set_at & (DP_MOST_POSITION - 1);
}

/* Sets that were made more than once, as the threads share them. */
typedef struct dp_sets {
    pthread_mutex_t lock; /* of all below */
    dp_scratch file;
    dp_hashmap at; /* by document, where its set stands in the file, + 1 */
    uint64_t size, most;
    dp_append_file texts; /* of documents that are compared and have no position: the length of each, then its bytes */
    doppel_error failure; /* the first; threads pass on a status alone */
} dp_sets;

/* Begins to make sets, once all documents have been read. */
doppel_status dp_sets_begin(doppel_batch *batch, doppel_error *error);
/* Reads the texts of candidates that have no position, in a second pass over the inputs that have some. */
doppel_status dp_sets_read_texts(doppel_batch *batch, const dp_candidates *candidates, doppel_error *error);
void dp_sets_free(dp_sets *sets);
/* Gives the status that work with sets ended with, and says why in `error` if it was a set that could not be made. */
doppel_status dp_sets_status(const dp_sets *sets, doppel_status status, doppel_error *error);

/* A set in memory of the caller, which grows. */
typedef struct dp_set_buffer {
    uint64_t *hash;
    size_t room, count;
} dp_set_buffer;

/* What one thread makes sets with. */
typedef struct dp_set_maker dp_set_maker;
dp_set_maker *dp_set_maker_create(doppel_batch *batch);
void dp_set_maker_free(dp_set_maker *maker);
/* The set of a document that is the first of its twins, ascending, without what is left out as boilerplate. Then its
 * size is known. Errors: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_IO, DOPPEL_ERROR_INPUT. */
doppel_status dp_set_make(dp_set_maker *maker, uint32_t document, dp_set_buffer *set);

/* ---- verification: verify.c ---- */

/* Sets of feature hashes as one thread has them. */
typedef struct dp_verifier dp_verifier;
dp_verifier *dp_verifier_create(doppel_batch *batch);
void dp_verifier_free(dp_verifier *verifier);
uint64_t dp_verifier_count(const dp_verifier *verifier);

/* What dp_decide needs to know of the contents of two documents. A similarity that cannot reach the threshold is not
 * measured, unless `any` is wanted. With only_contained, the containment of b in a is measured with it. Errors: those
 * of dp_set_make. */
doppel_status dp_verify(dp_verifier *verifier, uint32_t a, uint32_t b, bool any, dp_candidate *candidate);
/* The set of a document that is the first of its twins, ascending; valid until the next call. Then dp_set_size() is how
 * many features it has. */
doppel_status dp_verifier_get(dp_verifier *verifier, uint32_t document, const uint64_t **set);

/* ---- boilerplate: batch.c ---- */

typedef struct dp_boilerplate {
    doppel_df *frequent; /* features that are left out; NULL: none */
    uint32_t *left;      /* by document, the size of its set without them; NULL: all is left */
} dp_boilerplate;

/* ---- large buckets: prefix_filter.c ---- */

/* What one thread searches with. Zeroed but for the first three, which are its caller's. */
typedef struct dp_prefix_search {
    dp_verifier *verifier;
    uint32_t *stamp;  /* by document: who looked at it last, + 1 */
    uint64_t memory;  /* of a filter that is made by this thread, at most */
    uint64_t *prefix; /* of the document at hand, in order */
    uint8_t *level;
    size_t prefix_count, short_count, prefix_room, level_room;
    uint32_t *found;
    size_t found_count, found_room;
} dp_prefix_search;
void dp_prefix_search_free(dp_prefix_search *search);

typedef struct dp_prefix_filter dp_prefix_filter;

/* A filter for those of some documents that look at large buckets; none is listed yet. Errors: DOPPEL_ERROR_MEMORY,
 * DOPPEL_ERROR_IO, DOPPEL_ERROR_INTERRUPTED. */
doppel_status dp_prefix_filter_create(const doppel_batch *batch, const dp_candidates *candidates,
                                      dp_prefix_search *search, const uint32_t *documents, size_t count,
                                      dp_prefix_filter **made);
void dp_prefix_filter_free(dp_prefix_filter *filter);

/* Lists a document, if it looks at a large bucket. */
doppel_status dp_prefix_filter_add(dp_prefix_filter *filter, dp_prefix_search *search, uint32_t document);

/* Fills search->found with the listed documents that share a large bucket with the document and may be near it, except
 * those that it stamped before; every document it encounters is stamped. *found is false, and nothing is done, when
 * going through its large buckets, which list `members` documents together, costs less. Any number of threads may
 * search at a time. */
doppel_status dp_prefix_filter_find(const dp_prefix_filter *filter, dp_prefix_search *search, uint32_t document,
                                    uint64_t members, bool *found);

/* ---- the outcome: group.c and pairs.c ---- */

/* By document, once decided. */
typedef struct dp_decisions {
    uint32_t *original;
    float *similarity; /* of it; negative: not known */
    uint8_t *reason;   /* a doppel_reason, and DP_EXTRA_COPY: a copy that is kept (keep_copies) */
    bool made;
} dp_decisions;
#define DP_EXTRA_COPY 128

/* Which documents are kept. The buckets of the candidates are overwritten. */
doppel_status dp_group(doppel_batch *batch, dp_candidates *candidates, doppel_error *error);

/* Every pair, in order. */
typedef struct dp_pairs_wanted {
    bool collapse;
    doppel_status (*pairs)(const doppel_near *pairs, size_t count, void *user);
    void *user;
} dp_pairs_wanted;
doppel_status dp_pairs(doppel_batch *batch, const dp_candidates *candidates, const dp_pairs_wanted *wanted,
                       doppel_error *error);

/* ---- the sizes of groups, and the values of a field in them: counts.c ---- */

typedef struct dp_value_count {
    uint32_t value; /* its number, in the order in which values were found */
    uint32_t count;
} dp_value_count;

typedef struct dp_group_counts {
    uint32_t *size; /* by original; those in an index come after all documents. NULL: not counted */
    /* With count_by: the counts of group g are count[start[g]] ... count[start[g + 1] - 1]. */
    uint64_t *start;
    dp_value_count *count;
    dp_buffer values; /* all of them, one after the other */
    uint64_t *at;     /* by value, where it begins; one more where the last ends */
    size_t value_count, at_room;
} dp_group_counts;
static inline void dp_group_counts_free(dp_group_counts *counts) {
    free(counts->size);
    free(counts->start);
    free(counts->count);
    free(counts->at);
    dp_buffer_free(&counts->values);
    *counts = (dp_group_counts){0};
}

/* ---- documents out: write.c ---- */

/* A document that is written. */
typedef struct dp_written_document {
    uint64_t position, file; /* file: its number in the order of reading */
    doppel_slice record;     /* or row, if that is wanted */
    doppel_slice header;     /* of rows, with the first document of each file at least */
} dp_written_document;

/* Reads the inputs once more, those not known, and gives every document in order; as rows, where they have one,
 * unchanged from the file. */
doppel_status dp_write_again(doppel_batch *batch, bool rows,
                             doppel_status (*take)(const dp_written_document *document, void *user), void *user,
                             doppel_error *error);

/* Appends a record of a document that does not come as one. False: no memory. */
bool dp_record_make(const doppel_document *document, doppel_slice title, doppel_slice text, dp_buffer *to);

/* ---- documents to files: output_files.c ---- */

typedef struct dp_output_file {
    char *input, *name; /* name: below the folder */
    const char *format; /* NULL: records, or not known */
    dp_buffer header;   /* of rows */
    bool absent;        /* the input does not exist, and so has no output */
} dp_output_file;

typedef struct dp_output_files {
    dp_output_file *file; /* in the order of reading */
    size_t count, room;
    char *folder; /* NULL: all rows go to one file */
    bool rows;    /* rows are written, not records */
} dp_output_files;
static inline void dp_output_files_free(dp_output_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        free(files->file[i].input);
        free(files->file[i].name);
        dp_buffer_free(&files->file[i].header);
    }
    free(files->file);
    free(files->folder);
    *files = (dp_output_files){0};
}

/* ---- records that are copied: copy.c ---- */

/* Writes the kept ones, or the removed ones (`removed`); all documents but known ones have positions. */
doppel_status dp_copy_records(doppel_batch *batch, bool removed, doppel_writer *writer, doppel_error *error);

/* Room for the output, allocated by a thread while documents are decided. */
typedef struct dp_output_room {
    doppel_writer *writer; /* NULL: the output is not known yet */
    pthread_t thread;
    bool begun;
    atomic_bool ended;
    uint64_t wanted, allocated; /* bytes */
} dp_output_room;

/* Once candidates are known, documents without candidates are certain to be kept. */
void dp_output_room_begin(doppel_batch *batch, const dp_candidates *candidates);
void dp_output_room_end(dp_output_room *room);

/* ---- the batch ---- */

struct doppel_batch {
    dp_batch_settings settings;
    doppel_recipe *own_recipe; /* of a batch that was opened, with the text that its options borrow from */
    dp_buffer own_text;
    dp_readings readings;
    dp_journal journal;
    dp_documents documents;
    bool ended;          /* all documents have been read */
    dp_against *against; /* index folders; NULL: none */
    dp_index_matches matches;
    dp_key_rows rows;
    dp_sets sets;
    dp_boilerplate boilerplate;
    dp_decisions decisions;
    dp_group_counts counts;
    dp_output_files files;
    dp_output_room room;
    doppel_batch_stats stats;
};

/* Whether the position of every document is known but for known ones: then they can be copied. */
static inline bool dp_has_positions(const doppel_batch *batch) {
    for (size_t d = batch->documents.known; d < batch->documents.count; d++)
        if (!dp_doc_has_position(&batch->documents.doc[d]))
            return false;
    return true;
}

/* Whether two documents may be near at all, by `within` and `across`. */
static inline bool dp_batch_allows(const doppel_batch *batch, uint32_t a, uint32_t b) {
    const uint64_t *scope = batch->documents.scope;
    return !scope || (scope[a] == scope[b]) == (batch->settings.options.within != NULL);
}

/* The features of a document's set; DP_SET_UNKNOWN: it was not made yet. Threads that make it set it. */
static inline uint32_t dp_set_count(const dp_doc *doc) {
    return __atomic_load_n(&doc->set_count, __ATOMIC_RELAXED);
}

/* The size of the set that counts; of one that was not made yet (dp_set_is_known), a bound: no document has more
 * features than words. */
static inline uint32_t dp_set_size(const doppel_batch *batch, uint32_t document) {
    const uint32_t *left = batch->boilerplate.left;
    const dp_doc *doc = &batch->documents.doc[document];
    uint32_t count = left ? left[document] : dp_set_count(doc);
    return count == DP_SET_UNKNOWN ? doc->words : count;
}

static inline bool dp_set_is_known(const doppel_batch *batch, uint32_t document) {
    return batch->boilerplate.left || dp_set_count(&batch->documents.doc[document]) != DP_SET_UNKNOWN;
}

static inline bool dp_bucket_is_large(const doppel_batch *batch, const dp_candidates *candidates, uint32_t bucket) {
    return candidates->start[bucket + 1] - candidates->start[bucket] > batch->settings.large_bucket;
}

#endif
