/* batch.h - the batch line: documents -> read.c (with sketch.c: sketches) -> documents.c (columns), journal.c ->
 * candidates.c (who may be near?) -> prefix_filter.c (who in crowded buckets?) -> verify.c (how near, really?) ->
 * group.c (which one stays?) or pairs.c (all of them) -> write.c (documents).
 *
 * A document is known by its number, in the order of reading. Those with the same words, or without words and the same
 * bytes, are twins: the first of them stands for all, and only firsts are looked for in bands. What an index folder has
 * (against.c) is not compared at all. Documents that may be near stand together in a bucket; buckets that hold the same
 * documents are one. */
#ifndef DP_BATCH_H
#define DP_BATCH_H

#include "base/base.h"
#include "batch/spill.h"
#include "decide/decide.h"
#include "sketch/sketch.h"

#define DP_NO_DOCUMENT UINT32_MAX

/* ---- what is known of a document ---- */

typedef struct dp_doc {
    uint8_t digest[16]; /* half of SHA-256 of its words or, if it has none, of its bytes as they stand */
    uint64_t fingerprint[2];
    uint64_t id_at, set_at; /* in the journal */
    uint32_t id_length;
    uint32_t set_count; /* 0: no set is kept: a twin, too few words, or a method that needs none */
    uint32_t twin;      /* the first document with the same words (and scope, with `within`); itself: it is the first */
    uint32_t words;     /* at most UINT32_MAX */
} dp_doc;

/* ---- documents that an index folder has: against.c ----
 *
 * Such a document is out of the batch: nothing is compared with it. Its original is not of the batch either; originals
 * are numbered in the order in which they come up, and stand behind all documents of the batch. */

/* What an index said of a document. */
typedef struct dp_found {
    uint32_t id_length; /* of the original; 0: the index does not have the document */
    uint32_t original;  /* its number; without meaning in the journal */
    float similarity;   /* negative: not known */
    int16_t distance;   /* -1: not known */
    uint8_t kind;       /* why, as files number it: dp_found_kind */
    uint8_t verified;   /* false: the index keeps no features, and the words are not the same */
} dp_found;

/* Files tell the same words from near content, which have one reason. */
enum { DP_FOUND_KINDS = 5 };
uint8_t dp_found_kind(doppel_reason reason, bool same_digest);
/* And back, for a kind below DP_FOUND_KINDS. */
doppel_reason dp_found_reason(uint8_t kind);

typedef struct dp_found_document {
    uint32_t document;
    dp_found found;
} dp_found_document;

typedef struct dp_found_original {
    uint64_t hash[2]; /* of its id */
    uint64_t id_at;   /* in the journal */
    uint32_t id_length;
} dp_found_original;

typedef struct dp_finds {
    dp_found_document *document; /* ascending */
    size_t count, room;
    dp_found_original *original;
    size_t original_count, original_room;
    uint32_t *table; /* numbers + 1 of originals by hash; 0: free */
    size_t table_room;
    uint64_t key[2]; /* of the hashes, by chance: nobody can choose ids that meet */
} dp_finds;

void dp_finds_free(dp_finds *finds);
/* Notes a document, which comes after all before it; `id` is that of its original, as it stands at `id_at` in the
 * journal. False: no memory. */
bool dp_finds_add(dp_finds *finds, const dp_found_document *document, doppel_slice id, uint64_t id_at);
/* What was found of a document; NULL: nothing. */
const dp_found *dp_finds_get(const dp_finds *finds, uint32_t document);

/* Index folders that are open. */
typedef struct dp_against dp_against;

/* What of a document is asked for; slices may be empty, `sketch` is NULL where content does not count. */
typedef struct dp_asked {
    doppel_slice url;   /* canonical */
    doppel_slice title; /* normalised */
    const doppel_sketch *sketch;
} dp_asked;

/* ---- the journal: journal.c ----
 *
 * All that was found out about each document, in the order of reading, in one file: nameless in `tmp`, or `sketches` in
 * the folder of `work`. It is written once and read back where something of it is needed; read from its beginning, it
 * gives the batch again. A header, then entries (docs/FORMAT.md). */

typedef enum dp_entry_kind { DP_ENTRY_READING = 1, DP_ENTRY_FILE, DP_ENTRY_DOCUMENT, DP_ENTRY_END } dp_entry_kind;

typedef struct dp_entry {
    uint64_t size;  /* of the whole entry, this included */
    uint64_t check; /* XXH3 of what follows, seeded by its kind */
    uint64_t kind;
} dp_entry;

/* A document, followed by its id, its title, the id of its original in an index, the keys of its bands and its set. */
typedef struct dp_sketched {
    dp_doc doc;
    uint64_t scope, url[2];
    double rank[DP_KEEP_RULES];
    uint64_t line;
    uint32_t keys, title_length;
    dp_found found; /* in an index; id_length 0: it was not */
} dp_sketched;

/* Where reading is: a file, and what it was like; followed by its name. */
typedef struct dp_seen_file {
    uint64_t bytes;
    int64_t changed; /* nanoseconds since 1970 */
} dp_seen_file;

/* ---- the batch ---- */

typedef enum dp_scope_kind { DP_SCOPE_NONE, DP_SCOPE_HOST, DP_SCOPE_DOMAIN, DP_SCOPE_FIELD } dp_scope_kind;

#define DP_NO_LINE UINT64_MAX

/* Inputs that were read, to be read again. */
typedef struct dp_reading {
    char **paths;
    size_t count;
    bool known;
    uint64_t indexes; /* so many of the paths are index folders, of a known reading */
    bool complete;    /* it was read to its end */
    doppel_input_counts counts;
    /* Of a run that is gone on with: the files that were seen, of which all but the last are done. */
    char **seen;
    size_t seen_count, seen_room;
    uint64_t last_line; /* of the last document, in the last file; DP_NO_LINE: it has none yet */
    size_t resumed;     /* how many of the files a stopped run had seen, */
    uint32_t *by_name;  /* their numbers + 1 by hash of the name; 0: free */
    size_t name_room;
    uint64_t resumed_line; /* and the line it came to in the last of them */
} dp_reading;

/* A title, in the journal. */
typedef struct dp_title {
    uint64_t at;
    uint32_t length;
} dp_title;

/* Documents that may be near each other. */
typedef struct dp_buckets {
    uint32_t *member; /* of all buckets, one after the other */
    size_t member_count, member_room;
    uint64_t *start; /* count + 1, where each begins */
    size_t count, start_room;
    uint64_t *seen; /* hashes of what buckets hold, to tell repeats; 0: free */
    size_t seen_room, seen_count;
    bool own_first; /* a document looks at all its buckets, but stands only in the first of them */
} dp_buckets;

/* Which buckets a document looks at: bucket[start[d]] ... bucket[start[d + 1] - 1], with d = dp_looks_of(document). */
typedef struct dp_looks {
    uint64_t *start;
    uint32_t *bucket;
    uint32_t *of; /* whose looks a document has, when it has no list of its own; NULL: all have */
} dp_looks;

static inline uint32_t dp_looks_of(const dp_looks *looks, uint32_t document) {
    return looks->of ? looks->of[document] : document;
}

struct doppel_batch {
    doppel_batch_options options;
    doppel_input_options input, known_input;
    doppel_error *last_error;
    doppel_recipe *own_recipe; /* of a batch that was opened, with the text that its options borrow from */
    dp_buffer own_text;
    size_t threads;
    int bits;
    int distance; /* as meant: 0 is 0 */
    unsigned by;
    dp_keep_policy keep;
    dp_fields fields;
    dp_scope_kind scope_kind;
    size_t scope_field;
    bool has_sets; /* similarity is verified */
    size_t crowd;  /* a bucket of more documents is not compared each with each, see prefix_filter.c */
    bool ended;    /* reading has: what was pending is written */

    dp_doc *docs;
    size_t count, room, known;
    uint64_t *scope;    /* by document; NULL: not used */
    uint64_t (*url)[2]; /* hashes of canonical URLs, 0: none; NULL: not used */
    double *ranks;      /* keep.count of them a document; NULL: the order of reading */
    dp_title *title;    /* where normalised titles stand; NULL: not used */
    size_t scope_room, url_room, rank_room, title_room;
    uint32_t *firsts; /* numbers + 1 of documents by digest, a hash table; 0: free */
    size_t firsts_room, firsts_count;

    uint64_t *id_hash; /* of each id, while documents are read */
    size_t id_hash_room;

    uint32_t *rows; /* documents that are looked for by content, in order */
    size_t row_count, row_room;
    uint32_t *block; /* keys of the last rows, band after band */
    dp_spill journal, keys;
    uint64_t header; /* its bytes ahead of the first entry */
    bool replaying;  /* what is noted stands in the journal already */
    dp_reading *readings;
    size_t reading_count, reading_room;
    size_t reading_at; /* that is asked for next */
    bool limit_reached;
    bool foreign_open; /* a file of sketches that is taken has a reading without an end */
    bool stdin_kept;   /* stdin can be read again, from stdin_start on */
    int64_t stdin_start;

    dp_against *against; /* index folders; NULL: none */
    dp_finds finds;      /* what they have */

    doppel_df *frequent; /* features that are left out; NULL: none */
    uint32_t *left;      /* by document, the size of its set without them */

    uint32_t *original; /* once decided */
    float *similarity;  /* of it; negative: not known */
    uint8_t *reason;    /* a doppel_reason */
    bool decided;
    doppel_batch_stats stats;
};

enum { DP_BAND_BLOCK = 1 << 16 };

static inline bool dp_doc_has_words(const dp_doc *doc) {
    return doc->words > 0;
}

/* Whether there is something to tell twins by. Files of sketches that were made earlier have nothing for documents
 * without words. */
static inline bool dp_doc_has_digest(const dp_doc *doc) {
    static const uint8_t none[16];
    return memcmp(doc->digest, none, sizeof none) != 0;
}

/* Whether two documents may be near at all, by `within` and `across`. */
static inline bool dp_batch_allows(const doppel_batch *batch, uint32_t a, uint32_t b) {
    if (!batch->scope)
        return true;
    return (batch->scope[a] == batch->scope[b]) == (batch->options.within != NULL);
}

static inline int dp_batch_distance(const doppel_batch *batch, uint32_t a, uint32_t b) {
    const uint64_t *x = batch->docs[a].fingerprint, *y = batch->docs[b].fingerprint;
    return __builtin_popcountll(x[0] ^ y[0]) + __builtin_popcountll(x[1] ^ y[1]);
}

/* Tells how far a stage is. */
static inline void dp_batch_tell(const doppel_batch *batch, const char *stage, uint64_t done, uint64_t total) {
    if (batch->options.progress)
        batch->options.progress(stage, done, total, batch->options.user);
}

/* What the options come to for dp_decide. */
dp_rules dp_batch_rules(const doppel_batch *batch);

/* ---- candidates ---- */

/* documents.c adds a row of keys; dp_bands_flush ends the last block. */
doppel_status dp_bands_add(doppel_batch *batch, uint32_t document, const uint32_t *keys, doppel_error *error);
doppel_status dp_bands_flush(doppel_batch *batch, doppel_error *error);
doppel_status dp_bands_buckets(doppel_batch *batch, dp_buckets *buckets, doppel_error *error);

/* The same from fingerprints within the distance. Fills the looks too. */
doppel_status dp_near_buckets(doppel_batch *batch, dp_buckets *buckets, dp_looks *looks, doppel_error *error);

void dp_buckets_free(dp_buckets *buckets);
/* Adds a bucket of ascending documents, unless there is one of the same. False: no memory. */
bool dp_buckets_add(dp_buckets *buckets, const uint32_t *members, size_t count);
/* Who looks where. */
bool dp_looks_make(dp_looks *looks, const dp_buckets *buckets, size_t documents);
void dp_looks_free(dp_looks *looks);

/* group.c: the first half of a decision with boilerplate: who stays when nothing is left out. */
doppel_status dp_batch_prepare(doppel_batch *batch, doppel_error *error);

/* What the content says: buckets and looks, for `decide` and `pairs`. */
doppel_status dp_batch_candidates(doppel_batch *batch, dp_buckets *buckets, dp_looks *looks, doppel_error *error);

/* ---- verification: verify.c ---- */

/* Sets of feature hashes as one thread reads them back. */
typedef struct dp_verifier dp_verifier;
dp_verifier *dp_verifier_create(const doppel_batch *batch);
void dp_verifier_free(dp_verifier *verifier);

/* What dp_decide needs to know of the contents of two documents that stand in a bucket together. A similarity that
 * cannot reach the threshold is not measured. Errors: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_IO. */
doppel_status dp_verify(dp_verifier *verifier, uint32_t a, uint32_t b, dp_candidate *candidate);
/* The same of any two documents, and the similarity however small it is. */
doppel_status dp_verify_similarity(dp_verifier *verifier, uint32_t a, uint32_t b, dp_candidate *candidate);
uint64_t dp_verifier_count(const dp_verifier *verifier);
/* The set of a document that is the first of its twins, dp_set_size() features ascending; valid until the next call. */
doppel_status dp_verifier_get(dp_verifier *verifier, uint32_t document, const uint64_t **set);

/* ---- prefix_filter.c: who may be near in crowded buckets, without comparing each with each: create, add ..., find
 * ..., free.
 *
 * Put the features of all sets in one order. If A and B are near, at similarity t or more, they share at least
 * t / (1 + t) * (|A| + |B|) features; so the first feature that they share stands at i in A and at j in B where neither
 * |A| - i nor |B| - j is less. It follows that
 *   - it is among the first (1 - t) |A| + 1 features of A, its leads, and likewise of B;
 *   - in one of the two it is even among the first (1 - t) / (1 + t) |A| + 1, the early leads.
 * So documents are listed by their leads, early ones apart, and who has no early lead in common with a lead of the
 * other is not compared. That holds for every order; with the rare features in front, lists are short: what a crowd has
 * in common comes last. A lead that nobody else has (or all have late) is not listed, told by two bits a lead.
 *
 * Nothing is missed and nothing is added: candidates are those of the crowded buckets, less some that are not near. */

/* More documents in a bucket than that are a crowd: from some 60 on, comparing each with each takes longer. */
enum { DP_CROWD = 256 };

/* Where the documents stand. */
typedef struct dp_crowd_place {
    const doppel_batch *batch;
    const dp_buckets *buckets;
    const dp_looks *looks;
} dp_crowd_place;

static inline bool dp_crowded(const dp_crowd_place *place, uint32_t bucket) {
    return place->buckets->start[bucket + 1] - place->buckets->start[bucket] > place->batch->crowd;
}

/* Whether a document looks at a crowded bucket. */
bool dp_in_crowd(const dp_crowd_place *place, uint32_t document);

/* What one thread looks with. Zeroed but for the first two, which are its caller's. */
typedef struct dp_crowd_finder {
    dp_verifier *verifier;
    uint32_t *stamp; /* by document: who looked at it last, + 1 */
    uint64_t *lead;  /* the leads of the document at hand, in order */
    uint8_t *level;
    size_t lead_count, early_count, lead_room, level_room;
    uint32_t *found;
    size_t found_count, found_room;
} dp_crowd_finder;
void dp_crowd_finder_free(dp_crowd_finder *finder);

typedef struct dp_crowd dp_crowd;

/* A crowd of the documents that look at crowded buckets, of those given; none is listed yet. */
doppel_status dp_crowd_create(const dp_crowd_place *place, dp_crowd_finder *finder, const uint32_t *documents,
                              size_t count, dp_crowd **made);
void dp_crowd_free(dp_crowd *crowd);

/* Lists a document. */
doppel_status dp_crowd_add(dp_crowd *crowd, dp_crowd_finder *finder, uint32_t document);

/* Fills finder->found with those listed that share a crowded bucket with the document and may be near it, but for those
 * that it stamped before; what it meets beside them is stamped. *found is false, and nothing is done, when a look
 * through its crowded buckets, which list `members` together, costs less. Any number of threads may look at a
 * time. */
doppel_status dp_crowd_find(const dp_crowd *crowd, dp_crowd_finder *finder, uint32_t document, uint64_t members,
                            bool *found);

/* ---- frames: boilerplate.c ---- */

/* Finds the frequent features of the documents that stay, and makes bands without them. */
doppel_status dp_boilerplate_leave_out(doppel_batch *batch, doppel_error *error);
/* Takes them out of a set; gives how many numbers are left. */
size_t dp_boilerplate_drop(const doppel_batch *batch, uint64_t *set, size_t count);

/* The size of the set that counts. */
static inline uint32_t dp_set_size(const doppel_batch *batch, uint32_t document) {
    return batch->left ? batch->left[document] : batch->docs[document].set_count;
}

/* ---- order and classes: classes.c ---- */

/* In which order documents are asked whether they stay. Both NULL: by number. */
typedef struct dp_keep_order {
    uint32_t *document; /* by rank */
    uint32_t *rank;     /* by document */
} dp_keep_order;
bool dp_keep_order_make(const doppel_batch *batch, dp_keep_order *order);
void dp_keep_order_free(dp_keep_order *order);
static inline uint32_t dp_rank(const dp_keep_order *order, uint32_t document) {
    return order->rank ? order->rank[document] : document;
}

/* of[d]: the first document with d's URL (and scope, with `within`); DP_NO_DOCUMENT: it has none. */
bool dp_url_classes(const doppel_batch *batch, uint32_t **of);

/* Documents of one title are of one class; classes from start[c] on to start[c + 1] are near class c. */
typedef struct dp_titles {
    uint32_t *of; /* by document; DP_NO_DOCUMENT: none */
    size_t count;
    uint32_t *first; /* by class, its first document */
    uint64_t *start; /* count + 1 */
    uint32_t *near;
    double *similarity; /* of the two titles */
    size_t near_count, first_room, start_room, near_room, similarity_room;
} dp_titles;
doppel_status dp_titles_find(const doppel_batch *batch, dp_titles *titles, doppel_error *error);
void dp_titles_free(dp_titles *titles);
/* How similar the titles of two documents are; NaN: they are not, or one has none that counts. */
double dp_titles_similarity(const dp_titles *titles, uint32_t a, uint32_t b);

/* Sets that grow together: parent[d], a document of the same set; itself: the set is known by it. */
static inline uint32_t dp_root(uint32_t *parent, uint32_t d) {
    while (parent[d] != d)
        d = parent[d] = parent[parent[d]];
    return d;
}
static inline void dp_unite(uint32_t *parent, uint32_t a, uint32_t b) {
    a = dp_root(parent, a);
    b = dp_root(parent, b);
    parent[a < b ? b : a] = a < b ? a : b;
}

/* ---- index folders: against.c ---- */

/* Whether a path is an index folder. */
bool dp_is_index(const char *path);

/* Opens the index folders among the known paths of all readings so far, those that are not open yet. Errors:
 * DOPPEL_ERROR_USAGE and DOPPEL_ERROR_STORE with a message that says what of the index does not go with the batch. */
doppel_status dp_against_open(doppel_batch *batch, doppel_error *error);
void dp_against_close(dp_against *against);

/* Looks for a document in all folders; from any thread. found->id_length is 0 when none has it, else
 * verdict->original_id is the original's id. What went wrong is kept for dp_against_end. */
doppel_status dp_against_find(const doppel_batch *batch, const dp_asked *asked, doppel_verdict *verdict,
                              dp_found *found);

/* After reading, which ended with `status`: says what the indexes complained about, and if it was one of them that made
 * it fail, why. */
void dp_against_end(const doppel_batch *batch, doppel_status status, doppel_error *error);

/* ---- reading: read.c, sketch.c, documents.c ---- */

/* read.c: the number of a file that a stopped run had seen; SIZE_MAX: it had not. */
size_t dp_reading_find(const dp_reading *reading, const char *name);

/* read.c: makes stdin readable from its beginning, if the reading has it. */
doppel_status dp_stdin_rewind(doppel_batch *batch, const dp_reading *reading, doppel_error *error);

/* sketch.c: makes entries of documents. */
doppel_work dp_sketch_work(doppel_batch *batch);
/* What a file is like now; zeros when it is not there. */
void dp_seen_file_get(const char *name, dp_seen_file *seen);

/* documents.c: takes entries, whole ones, one after the other; `at` is where the first stands in the journal, when that
 * is read back. */
doppel_status dp_note_entries(doppel_batch *batch, const char *bytes, size_t length, uint64_t at);
doppel_status dp_batch_end_reading(doppel_batch *batch, doppel_error *error);

/* journal.c: begins the journal, or reads back the one of `work`. */
doppel_status dp_journal_open(doppel_batch *batch, doppel_error *error);
/* Appends an entry of some parts. */
doppel_status dp_journal_add(doppel_batch *batch, dp_entry_kind kind, const doppel_slice *part, size_t parts);
uint64_t dp_entry_check(dp_entry_kind kind, const char *head, size_t head_length, const char *rest, size_t rest_length);
/* Takes the documents of another batch's journal, a saved file, as known ones. */
bool dp_is_journal(const char *path);
/* Whether it is the `work` folder of a run; then `file`, of 4096 bytes, is its journal. */
bool dp_is_work(const char *path, char *file);
doppel_status dp_journal_take(doppel_batch *batch, const char *path, doppel_error *error);

/* options.c: the options as text, those that shape sketches first, then (*shaping bytes on) the others; and back. */
bool dp_options_print(const doppel_batch *batch, dp_buffer *text, size_t *shaping);
/* Options from such a text, which they borrow from and which is changed. Gives whether known documents are read in a
 * way of their own. */
bool dp_options_parse(char *text, doppel_batch_options *options, const char **recipe, doppel_input_options *input,
                      doppel_input_options *known);
/* The text of a journal in a folder. */
doppel_status dp_journal_options(const char *work, dp_buffer *text, doppel_error *error);

#endif
