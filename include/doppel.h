/* doppel.h - find the documents you have already seen.
 *
 * Read from the top: one call turns a text into a fingerprint, one compares two texts. Then come the parts those calls
 * are made of: recipes, sketchers, the caller's own features, document-frequency tables, measures, documents from
 * files; then finding near fingerprints: the index, joins, and the plans of both; last, what uses all of these: batches
 * of documents, and the engine that remembers them.
 *
 * Ownership, for all of this header: the caller owns what a `create`, `parse` or `open` returns, and any result struct
 * that the caller declares and a call fills (zero is empty; the next call that fills it reuses its memory). Release
 * both with the `free` or `close` of the same noun, which accept NULL and empty ones. Everything else a call returns is
 * borrowed from the object it came from, and is valid until the next call that changes that object.
 *
 * Text is a doppel_slice: UTF-8 and its length. It needs no terminating NUL and may hold any bytes. A missing
 * doppel_slice has data NULL. Names and paths are C strings.
 *
 * Options are structs that begin with their own size; a pointer to options may be NULL. Zero always means the default;
 * where zero is also a useful value, a separate flag selects it. "No limit" has a named value (DOPPEL_NEVER).
 *
 * Threads: read-only objects (recipes, opened frequency tables) may be shared; anything written to (sketchers, inputs)
 * belongs to one thread at a time, except an index, which one thread may write while many read, and an engine, which
 * any number of threads may use. The only global state is the CPU level, chosen once.
 *
 * Pointers may be NULL only where stated.
 *
 * Errors: a call that can fail returns a doppel_status. A doppel_error argument may be NULL; otherwise it is filled on
 * failure with a message that says what was wrong, where, and what to do. */
#ifndef DOPPEL_H
#define DOPPEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOPPEL_API __attribute__((visibility("default")))

#define DOPPEL_VERSION "0.1.0"

/* Pinned values. 2 to 5 are also exit codes of the command, which exits with 3 or 4 for the others. */
typedef enum doppel_status {
    DOPPEL_OK = 0,
    DOPPEL_ERROR_USAGE = 2,       /* an invalid argument, option or recipe */
    DOPPEL_ERROR_INPUT = 3,       /* a file or record that is not valid in its format */
    DOPPEL_ERROR_STORE = 4,       /* a table or index that cannot be read or written */
    DOPPEL_ERROR_INTERRUPTED = 5, /* a callback asked to stop */
    DOPPEL_ERROR_MEMORY = 6,      /* out of memory */
    DOPPEL_ERROR_IO = 7,          /* the system refused a read, write or open */
    DOPPEL_ERROR_AWAY = 8         /* a remote index does not answer, or accepts no writes now: try again later */
} doppel_status;

/* What went wrong. `file` is empty, `line` and `position` are 0, where they do not apply. Lines and positions count
 * from 1. Of a path too long for `file` only the end is given, after "...". */
typedef struct doppel_error {
    doppel_status code;
    uint64_t line;
    uint64_t position;
    char file[256];
    char message[512];
} doppel_error;

/* Some bytes. */
typedef struct doppel_slice {
    const char *data;
    size_t length;
} doppel_slice;

/* The bytes of a C string; for NULL, an empty slice with data NULL. */
static inline doppel_slice doppel_slice_of(const char *string) {
    doppel_slice slice = {string, string ? __builtin_strlen(string) : 0};
    return slice;
}

/* The version of the library that is running, e.g. "0.1.0". */
DOPPEL_API const char *doppel_version(void);

/* The fixed English name of a status, e.g. "bad input". */
DOPPEL_API const char *doppel_status_name(doppel_status status);

/* The CPU level the kernels run at: "portable", "avx2", "avx512" or "neon". The environment variable DOPPEL_CPU lowers
 * it (never raises it); it is read by the first call that needs a kernel. */
DOPPEL_API const char *doppel_cpu_level(void);

/* ---- 1. Simple ---- */

/* The 64-bit fingerprint of a text by the default recipe, `page`. A text without words has fingerprint 0.
 * Errors: DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_fingerprint(doppel_slice text, uint64_t *fingerprint);

/* How many of the 64 bits differ. */
DOPPEL_API int doppel_distance(uint64_t a, uint64_t b);

/* Every measure on two texts. A measure that has no value is NaN (signature_similarity when a side has no words, the
 * containment of a side without words, edit_similarity of long texts that are too different) or -1 (distance when a
 * side has no words, edit distances of long texts that are too different). */
typedef struct doppel_comparison {
    uint64_t fingerprint_a[2], fingerprint_b[2]; /* low 64 bits, high 64 bits (0 up to 64 bits) */
    int bits;                                    /* width of the fingerprints */
    int distance;                                /* differing bits; -1 when a side has no words */
    uint64_t words_a, words_b;
    uint64_t shingles_a, shingles_b; /* distinct features */
    uint64_t shingles_shared;
    double similarity;                     /* Jaccard of the shingle sets; 1 for two texts without words */
    double containment_ab, containment_ba; /* share of A's shingles that are in B, and the other way round */
    double signature_similarity;           /* Jaccard as estimated from two signatures of 128 slots */
    double cosine, angle;                  /* of the word-count vectors; the angle in degrees, 0 to 90 */
    double euclidean;                      /* distance of the word-count vectors */
    int64_t edit_distance;                 /* Levenshtein on code points of the normalised texts; or -1 */
    int64_t indel_distance;                /* the same with insertions and deletions only */
    double edit_similarity;                /* 1 - edit_distance / the longer length */
    bool same_digest;                      /* the normalised words are the same */
    uint8_t digest_a[32], digest_b[32];    /* SHA-256 of the normalised words; all 0 when there are none */
} doppel_comparison;

typedef struct doppel_recipe doppel_recipe;

/* Compares two texts by a recipe (NULL: `page`). Edit distances are computed only if the product of both lengths in
 * code points, without the common prefix and suffix, is at most 2^36, which takes a few seconds at worst. Errors:
 * DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT for a word (or a shingle) of over 2 GiB. */
DOPPEL_API doppel_status doppel_compare(const doppel_recipe *recipe, doppel_slice a, doppel_slice b,
                                        doppel_comparison *out);

/* A run of words that two texts share, as byte ranges of the texts as they were given. */
typedef struct doppel_passage {
    uint64_t a_start, a_end;
    uint64_t b_start, b_end;
    uint64_t words;
} doppel_passage;

/* Shared passages, in the order of A. Zero is empty. */
typedef struct doppel_passages {
    doppel_passage *passage;
    size_t count;
} doppel_passages;
DOPPEL_API void doppel_passages_free(doppel_passages *passages);

/* The longest common runs of at least `min_words` words, in the order of A, none overlapping another in A or in B.
 * Where texts repeat themselves (a run of words that occurs in B more than 16 times), only some of the occurrences are
 * tried: every reported passage is shared, but a longer run may be reported in parts. Words are as `recipe` normalises
 * them (NULL: `page`). Errors: DOPPEL_ERROR_USAGE when min_words is 0, DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT for a
 * text with more than 2 GiB of words. */
DOPPEL_API doppel_status doppel_passages_find(const doppel_recipe *recipe, doppel_slice a, doppel_slice b,
                                              size_t min_words, doppel_passages *passages);

/* ---- 2. Recipes: exactly how text becomes sketches ---- */

typedef struct doppel_df doppel_df;

/* What a recipe refers to but does not hold. Zero means none. The table must outlive the recipe. */
typedef struct doppel_recipe_parts {
    size_t size;             /* sizeof(doppel_recipe_parts) */
    doppel_slice stop_words; /* white-space separated; copied */
    const doppel_df *df;     /* for weight=tfidf; borrowed */
} doppel_recipe_parts;

/* Parses the text form, e.g. "simhash64:words=5:hash=fast:weight=tf", or a name: page, article, literal. docs/FORMAT.md
 * lists every part. `parts` may be NULL. Errors: DOPPEL_ERROR_USAGE with a message that names the part and lists what
 * is allowed (error->position is its position in the text), DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_recipe_parse(const char *text, const doppel_recipe_parts *parts, doppel_recipe **recipe,
                                             doppel_error *error);
DOPPEL_API void doppel_recipe_free(doppel_recipe *recipe);

/* The canonical text form: equal recipes have equal text, and parsing it gives the same recipe. */
DOPPEL_API const char *doppel_recipe_text(const doppel_recipe *recipe);

/* Bits of the fingerprint, 1 to 64 or 128. */
DOPPEL_API int doppel_recipe_bits(const doppel_recipe *recipe);

/* The Unicode version this library normalises with, e.g. "15.0.0". */
DOPPEL_API const char *doppel_unicode_version(void);

/* A message when the recipe was written for another Unicode version (`unicode=`), else NULL. */
DOPPEL_API const char *doppel_recipe_warning(const doppel_recipe *recipe);

/* ---- 3. Sketchers: text in, fingerprint, signature, sample and digest out ---- */

/* What to compute besides the fingerprint; combine with |. */
enum {
    DOPPEL_WANT_DIGEST = 1,   /* SHA-256 of the normalised words */
    DOPPEL_WANT_FEATURES = 2, /* the hash of each feature, in order, repeats kept */
    DOPPEL_WANT_SET = 4,      /* the distinct feature hashes, ascending */
    DOPPEL_WANT_TEXT = 8      /* the normalised words, separated by one space */
};

typedef struct doppel_sketch {
    uint64_t fingerprint[2];   /* low 64 bits, high 64 bits (0 up to 64 bits) */
    uint64_t words;            /* without stop words; for chars=, code points */
    uint64_t features;         /* repeats counted */
    uint8_t digest[32];        /* WANT_DIGEST; all 0 when there are no words */
    const uint32_t *signature; /* `slots` of them, with minhash= in the recipe; NULL when there are no words */
    size_t slots;
    const uint64_t *sample; /* distinct feature hashes that are 0 mod p, ascending, with sample= in the recipe */
    size_t sample_count;
    const uint64_t *feature_hashes; /* WANT_FEATURES: `features` of them */
    const uint64_t *set;            /* WANT_SET */
    size_t set_count;
    doppel_slice text; /* WANT_TEXT */
} doppel_sketch;

typedef struct doppel_sketcher doppel_sketcher;

/* A sketcher for one thread. The recipe must outlive it. Memory: for weight=tf alone, a fixed buffer (and the longest
 * shingle); for other weights, signatures, samples and sets, 8 bytes per feature of the current document. Errors:
 * DOPPEL_ERROR_USAGE, DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_sketcher_create(const doppel_recipe *recipe, unsigned wants, doppel_sketcher **sketcher,
                                                doppel_error *error);
DOPPEL_API void doppel_sketcher_free(doppel_sketcher *sketcher);

/* One document in one call. Pointers in `out` are borrowed until the next call on this sketcher.
 * Errors, here and below: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT for a word (or a shingle) of over 2 GiB. */
DOPPEL_API doppel_status doppel_sketcher_run(doppel_sketcher *sketcher, doppel_slice text, doppel_sketch *out);

/* One document in pieces, cut anywhere: reset, add ..., finish. Gives what `run` gives on the whole. */
DOPPEL_API void doppel_sketcher_reset(doppel_sketcher *sketcher);
DOPPEL_API doppel_status doppel_sketcher_add(doppel_sketcher *sketcher, doppel_slice piece);
DOPPEL_API doppel_status doppel_sketcher_finish(doppel_sketcher *sketcher, doppel_sketch *out);

/* Where doppel_sketch_batch writes: the caller's arrays, with one element per text. NULL: not wanted. */
typedef struct doppel_sketch_arrays {
    size_t size;            /* sizeof(doppel_sketch_arrays) */
    uint64_t *fingerprints; /* one number per text; two, low half first, for 128 bits */
    uint8_t *digests;       /* 32 bytes per text; all 0 when it has no words */
    uint32_t *signatures;   /* as many slots per text as minhash= in the recipe; UINT32_MAX when it has no words */
    uint64_t *words;
    doppel_status *statuses; /* of each text; NULL: the first failure ends the call with its status */
} doppel_sketch_arrays;

/* Sketches many texts, on `threads` threads (0: one for each CPU this process may use); `recipe` may be NULL: `page`.
 * The results are those of doppel_sketcher_run. Errors: DOPPEL_ERROR_USAGE for signatures when the recipe has none,
 * DOPPEL_ERROR_MEMORY, and as doppel_sketcher_run. */
DOPPEL_API doppel_status doppel_sketch_batch(const doppel_recipe *recipe, const doppel_slice *texts, size_t count,
                                             int threads, const doppel_sketch_arrays *to, doppel_error *error);

/* Byte ranges [start, end) of a text. Zero is empty. */
typedef struct doppel_range {
    uint64_t start, end;
} doppel_range;
typedef struct doppel_ranges {
    doppel_range *range;
    size_t count;
} doppel_ranges;
DOPPEL_API void doppel_ranges_free(doppel_ranges *ranges);

/* The byte range in the given text of each of its normalised words (for showing where they came from). With chars= the
 * words are the runs between spaces. Errors: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT for more than 2 GiB of words. */
DOPPEL_API doppel_status doppel_ranges_find(const doppel_recipe *recipe, doppel_slice text, doppel_ranges *ranges);

/* ---- 4. The caller's own features, weights and hashes ---- */

/* A named hash of any bytes: fast, xxh3, murmur3, jenkins, djb2, md5, sha1, sha256, or any digest libcrypto offers by
 * name. docs/FORMAT.md gives the arithmetic. Errors: DOPPEL_ERROR_USAGE when there is no such hash,
 * DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_hash(const char *name, doppel_slice bytes, uint64_t seed, uint64_t *hash);

/* One feature. It counts `weight`, rounded to 1/65536; weights may be negative. */
typedef struct doppel_feature {
    doppel_slice bytes;
    double weight;
} doppel_feature;

/* The caller's own hash: seed is 0, and 1 for the high half of 128 bits. */
typedef uint64_t (*doppel_hash_function)(doppel_slice bytes, uint64_t seed, void *user);

typedef struct doppel_simhash_options {
    size_t size;                   /* sizeof(doppel_simhash_options) */
    int bits;                      /* 1..64 or 128; 0: 64 */
    const char *hash;              /* a named hash; NULL: fast */
    doppel_hash_function function; /* instead of a named hash */
    void *user;
    int64_t *sums; /* if set, receives the `bits` weighted sums of +-1, bit 0 first, in units of 1/65536 */
} doppel_simhash_options;

/* SimHash of weighted features: bit i is 1 when the weighted sum of +-1 is above 0. `options` may be NULL. Errors:
 * DOPPEL_ERROR_USAGE (bits, hash, a weight that is not finite or above 2^31, a total that overflows 64 bits),
 * DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_simhash(const doppel_feature *features, size_t count,
                                        const doppel_simhash_options *options, uint64_t fingerprint[2],
                                        doppel_error *error);

/* MinHash signature of a set of 64-bit hashes (repeats are harmless; count 0 leaves the slots at UINT32_MAX). The
 * hashes must be well mixed, like those of doppel_hash. Errors: DOPPEL_ERROR_USAGE when slots is 0 or above 65536,
 * DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_minhash(const uint64_t *hashes, size_t count, size_t slots, uint32_t *signature);

/* Keeps the hashes that are 0 mod p, in order, in place; returns how many are kept. p = 0 keeps none. */
DOPPEL_API size_t doppel_sample(uint64_t *hashes, size_t count, uint64_t p);

/* ---- 5. Document-frequency tables, for weight=tfidf ---- */

/* In how many of N documents a feature occurs; idf = ln(N / (df + 1)), at least 0, rounded to 1/65536. */

typedef struct doppel_df_builder doppel_df_builder;

/* Counts the features that `recipe` produces (its weight does not matter). Beyond `memory` bytes (0: 1 GiB) runs are
 * spilled to files in `tmp` (NULL: the environment's TMPDIR, else /tmp). Not thread-safe. */
DOPPEL_API doppel_status doppel_df_builder_create(const doppel_recipe *recipe, size_t memory, const char *tmp,
                                                  doppel_df_builder **builder, doppel_error *error);
DOPPEL_API void doppel_df_builder_free(doppel_df_builder *builder);

/* Counts one document, given its distinct feature hashes (DOPPEL_WANT_SET). */
DOPPEL_API doppel_status doppel_df_builder_add(doppel_df_builder *builder, const uint64_t *set, size_t count,
                                               doppel_error *error);

/* Writes the table to a temporary file beside `path` and renames it into place, so it is complete or absent. Features
 * found in fewer than `min_df` documents are left out (0 or 1: none). */
DOPPEL_API doppel_status doppel_df_builder_save(doppel_df_builder *builder, const char *path, uint32_t min_df,
                                                doppel_error *error);

/* Maps a table. The header and the checksum of the whole file are verified. Errors: DOPPEL_ERROR_IO, DOPPEL_ERROR_STORE
 * when it is not a table, is truncated or was altered. */
DOPPEL_API doppel_status doppel_df_open(const char *path, doppel_df **df, doppel_error *error);
DOPPEL_API void doppel_df_close(doppel_df *df);

/* Sums tables of the same recipe into a new one at `path`. Errors: as open and save, DOPPEL_ERROR_USAGE if the recipes
 * differ. */
DOPPEL_API doppel_status doppel_df_merge(const char *const *paths, size_t count, const char *path, doppel_error *error);

DOPPEL_API uint64_t doppel_df_documents(const doppel_df *df);
DOPPEL_API uint64_t doppel_df_features(const doppel_df *df);
DOPPEL_API uint64_t doppel_df_get(const doppel_df *df, uint64_t feature_hash);
DOPPEL_API double doppel_df_idf(const doppel_df *df, uint64_t feature_hash);
/* The feature part of the recipe it was made with, and its digest in hex, 16 digits: what `df=` in a recipe names. */
DOPPEL_API const char *doppel_df_recipe(const doppel_df *df);
DOPPEL_API const char *doppel_df_digest(const doppel_df *df);

/* ---- 6. Measures ---- */

/* Sets are ascending arrays of distinct numbers, as DOPPEL_WANT_SET gives them (not DOPPEL_WANT_FEATURES, which keeps
 * order and repeats). */
DOPPEL_API size_t doppel_set_shared(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count);
/* |A and B| / |A or B|; 1 for two empty sets. */
DOPPEL_API double doppel_jaccard(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count);
/* |A and B| / |A|; 1 for an empty A. */
DOPPEL_API double doppel_containment(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count);
/* The share of equal slots, an estimate of Jaccard with standard deviation sqrt(J(1-J)/slots); 1 for no slots. */
DOPPEL_API double doppel_signature_jaccard(const uint32_t *a, const uint32_t *b, size_t slots);
/* Containment of A in B as estimated from signatures and the two set sizes. */
DOPPEL_API double doppel_signature_containment(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count,
                                               size_t slots);

/* A term vector: ascending distinct terms and their weights. */
typedef struct doppel_term {
    uint64_t term;
    double weight;
} doppel_term;

/* Cosine of the angle between two vectors; 1 for two empty ones, 0 when one is empty (or all zero). */
DOPPEL_API double doppel_cosine(const doppel_term *a, size_t a_count, const doppel_term *b, size_t b_count);
/* That angle in degrees, a metric where cosine is not. */
DOPPEL_API double doppel_angle(const doppel_term *a, size_t a_count, const doppel_term *b, size_t b_count);
DOPPEL_API double doppel_euclidean(const doppel_term *a, size_t a_count, const doppel_term *b, size_t b_count);
/* Counts equal word hashes and sorts them: `terms` has space for `count`; returns how many were filled. */
DOPPEL_API size_t doppel_terms(const uint64_t *hashes, size_t count, doppel_term *terms);

DOPPEL_API int doppel_distance128(const uint64_t a[2], const uint64_t b[2]);

/* Edit distances on code points. Each invalid UTF-8 sequence counts as one code point, U+FFFD. A result above `max` is
 * given as max + 1, as soon as it is certain (max = SIZE_MAX: never). *distance is untouched on failure. Errors:
 *
 * DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_levenshtein(doppel_slice a, doppel_slice b, size_t max, size_t *distance);
/* Insertions and deletions only: a substitution costs 2. */
DOPPEL_API doppel_status doppel_indel(doppel_slice a, doppel_slice b, size_t max, size_t *distance);
/* 1 - d / max(length in code points); 1 for two empty texts; below `min`, 0 as soon as that is certain. */
DOPPEL_API doppel_status doppel_edit_similarity(doppel_slice a, doppel_slice b, double min, double *similarity);

/* One text against many: prepared once, then each comparison that fails costs a few nanoseconds. */
typedef struct doppel_titles doppel_titles;
DOPPEL_API doppel_status doppel_titles_create(doppel_titles **titles);
DOPPEL_API void doppel_titles_free(doppel_titles *titles);
/* Appends a text; its number is the count before the call. */
DOPPEL_API doppel_status doppel_titles_add(doppel_titles *titles, doppel_slice text);
DOPPEL_API size_t doppel_titles_count(const doppel_titles *titles);
/* Calls `found` for every text with similarity to `text` of at least `min`, in order of number. A scan: every text is
 * compared. Returns DOPPEL_ERROR_INTERRUPTED when `found` returns false. */
DOPPEL_API doppel_status doppel_titles_find(const doppel_titles *titles, doppel_slice text, double min,
                                            bool (*found)(size_t number, double similarity, void *user), void *user);

/* ---- 7. Documents from files ---- */

/* Stands for "no position". */
#define DOPPEL_NO_POSITION UINT64_MAX

/* A document as it was read; everything is borrowed for the duration of the callback that receives it. */
typedef struct doppel_document {
    doppel_slice id;   /* the record's; else FILE:LINE; for a plain file its path as given. A path that is not UTF-8 has
                          each % and each byte that is not part of UTF-8 as %HH */
    doppel_slice text; /* UTF-8 */
    doppel_slice url, title; /* data NULL: the record has none */
    doppel_slice record; /* JSONL and JSON: the whole record as it is in the file, without its line end; one byte after
                            it may be read (JSON: rewritten on one line); CSV and TSV with row_records: the row as such
                            a record; else data is NULL */
    const char *file;    /* as given, or a path below a given folder */
    uint64_t line;       /* its first line, from 1; 0 for a file that is one document; WARC: the record's number */
    /* A page: its raw bytes, for doppel_page_read, which extracts text (and a title). Then `text` is empty, unless the
     * record has both. Data NULL: not a page. */
    doppel_slice html;
    const char *charset; /* the charset given by the page's container, e.g. "windows-1252" (JSONL and CSV: "utf-8",
                            whatever the page itself declares); NULL: none */
    doppel_slice alias;  /* the target of a redirect, unchanged: the document is another name for it, and has no text;
                            else data is NULL */
    const doppel_slice *extra; /* the values of `extra_keys`, in that order; data NULL: the record has none */
    uint64_t record_at; /* JSONL, and JSON on one line, in a regular uncompressed file: the record is the record.length
                           bytes at this offset of `file`; else DOPPEL_NO_POSITION */
    uint64_t file_number; /* the number of `file`, from 0 in input order: the same in every run over the same files */
    /* With record_at: the size and modification time (nanoseconds since 1970) of the file when it was opened. If both
     * still hold, the record is still there. */
    uint64_t file_bytes;
    int64_t file_changed;
    bool stays;              /* `text` stays valid after the call (doppel_table.in_memory) */
    bool from_table;         /* a row of a table: `line` is its number, from 1 */
    doppel_slice text_value; /* the raw value of the text's key in `record`, a string with its quotes; data NULL: there
                                is none, it was joined from several, or the record had invalid UTF-8 */
    /* CSV, TSV and lines: the row or line as it is in the file, up to its final \n; `header` (CSV and TSV): the row
     * that names the columns, likewise; else data is NULL. */
    doppel_slice row, header;
} doppel_document;

typedef struct doppel_input_options {
    size_t size;       /* sizeof(doppel_input_options) */
    int threads;       /* 0: one for each CPU this process may use */
    size_t max_record; /* 0: 64 MiB; longer records are bad */
    bool strict;       /* stop at the first bad record */
    /* NULL: id, url, title, text. A key is looked up as a field name; else as a path (meta.text); else as several keys
     * separated by commas, whose values are joined by line ends (question,answer). CSV and tables have no paths. */
    const char *id_key, *url_key, *title_key, *text_key;
    /* Called for a record that was left out (or, with code DOPPEL_OK, repaired), in input order, from one thread at a
     * time. May be NULL. */
    void (*bad)(const doppel_error *what, void *user);
    /* Called now and then with the bytes read so far, the total (0: unknown) and the documents so far. May be NULL. */
    void (*progress)(uint64_t bytes, uint64_t total, uint64_t documents, void *user);
    void *user;
    const volatile int *stop; /* may be NULL; once it is nonzero, the run ends with DOPPEL_ERROR_INTERRUPTED */
    const char *html_key;     /* NULL: html */
    /* More fields wanted of each record, strings or numbers, given in doppel_document.extra. */
    const char *const *extra_keys;
    size_t extra_count; /* at most 32 */
    bool no_made_ids;   /* a record without an id keeps an empty one instead of FILE:LINE, and so does plain text from
                           stdin instead of - */
    /* Refuses input that is mostly unreadable: if no document of a non-empty file of records could be read, or more
     * than half of its records are bad, or the same holds for all inputs together, the run ends with
     * DOPPEL_ERROR_INPUT, and the error names the input, the fields that its records have and the options that would
     * read it. */
    bool refuse_bad;
    uint64_t judge_first;      /* with refuse_bad: the first N records, at most 1024, are also judged by themselves */
    bool judge_holds;          /* emit nothing before that */
    const char *option_prefix; /* prefix of option names in messages, e.g. "against-"; may be NULL */
    /* Called after the last record for each key of this struct or of extra_keys that no record has; by a batch also for
     * its fields (within, keep, count_by). May be NULL. */
    void (*unseen)(const char *key, void *user);
    const struct doppel_tables *tables; /* reads tables (below); must outlive the run; NULL: no tables are read */
    /* The format of all files, whatever their names and contents: jsonl, json, csv, tsv, warc, mbox, html, text or
     * lines. Then no path is a table. NULL: detected per file. */
    const char *format;
    /* Run programs to read what the library cannot: pdftotext for PDF, without a shell, at most a minute per file.
     * false: such files are left out and reported. */
    bool run_programs;
    /* Rows of CSV and TSV come with a record: doppel_document.record is an object with the cells of all columns as
     * strings, in their order, by their names in the header (docs/FORMAT.md, section 16). */
    bool row_records;
    /* With refuse_bad: also refuses a path that was given by itself, and stdin, if it is one plain text although a key
     * of this struct is set, which has no effect on it. */
    bool refuse_plain;
    /* A record of JSON without a text and a page is a document, too, if it has a URL or a title, and no other string in
     * it (extra_keys aside) is longer than these, which might be its text under another name. Rows of CSV and TSV
     * likewise, if all columns are fields of this struct or of extra_keys. */
    bool text_optional;
} doppel_input_options;

typedef struct doppel_input_counts {
    uint64_t documents, bytes; /* bytes: after decompression */
    uint64_t bad;              /* records left out */
    uint64_t repaired; /* records with invalid UTF-8 or lone surrogates, which became U+FFFD; plain files with invalid
                          UTF-8, which are given as they are; mail and archived texts in a charset that is not known or
                          does not fit, and archived bodies that break off, of which what could be read is given */
    uint64_t unopened; /* files that could not be opened or read to the end */
} doppel_input_counts;

/* What one thread writes for the documents it got; emitted in input order. */
typedef struct doppel_output doppel_output;
DOPPEL_API doppel_status doppel_output_write(doppel_output *output, doppel_slice bytes);
/* Writes a string as a JSON string, quotes included; invalid UTF-8 becomes U+FFFD. */
DOPPEL_API doppel_status doppel_output_json(doppel_output *output, doppel_slice bytes);

/* The same string, written to `to`, at most `room` bytes including the terminating NUL; returns its full length without
 * the NUL, which may exceed `room`. Data NULL gives null, without quotes. */
DOPPEL_API size_t doppel_json_string(doppel_slice bytes, char *to, size_t room);

/* What to do with documents. `begin` creates a thread's state, `document` uses it, `end` frees it; `emit` gets the
 * written bytes, of whole documents, in input order, from one thread at a time. `begin`, `end` and `emit` may be NULL.
 * A status other than DOPPEL_OK from any of them ends the run with it. */
typedef struct doppel_work {
    void *user;
    doppel_status (*begin)(void *user, void **state);
    doppel_status (*document)(void *state, const doppel_document *document, doppel_output *output);
    void (*end)(void *user, void *state);
    doppel_status (*emit)(void *user, doppel_slice bytes);
} doppel_work;

/* Reads every document of the paths in order, and does `work` on `threads` threads. A path is a file, a folder (walked
 * in byte order of names), a pattern with *, ? or [ that is not itself a file (the matching files, in byte order) or
 * "-" for stdin. The format is detected by the file's name, else by its first bytes: JSONL (.jsonl, .ndjson, .json, or
 * a first byte `{`), JSON, one array of objects (.json or no known extension, and a first byte `[`; messages and
 * generated ids use the element's number, from 1, as the line), CSV and TSV (.csv, .tsv, .tab), WARC and WET (.warc,
 * .wet), ARC (.arc), mail (.mbox, .mbx), HTML (.html, .htm, .xhtml), Word documents (.docx), PDF (.pdf, or leading
 * `%PDF-`; with options.run_programs), and plain text, which is everything else; .gz, .zst, .bz2 and .xz by content.
 * A name that says nothing and a first line with all columns that a given text_key or html_key names mean CSV, too.
 * Only options.format selects "lines": each non-blank line is a document. A path that options.tables claims is read as
 * a table, each row a document: messages and generated ids use the row's number, from 1, as the line, and a row without
 * text and page (both null) is bad. In a folder that has tables, files whose names begin with "_" or "." are left out.
 * In web archives, pages and texts with status 200 are documents, and redirects and revisits are aliases; everything
 * else is left out. The emitted bytes do not depend on the number of threads. A bad record or file is reported and left
 * out, and the call still returns DOPPEL_OK (see counts); with `strict` the first one ends the run with
 * DOPPEL_ERROR_INPUT. `counts` and `error` may be NULL. */
DOPPEL_API doppel_status doppel_input_run(const char *const *paths, size_t path_count,
                                          const doppel_input_options *options, const doppel_work *work,
                                          doppel_input_counts *counts, doppel_error *error);

/* Tables: documents in columns, by the Arrow C data interface. doppel_column reads one column of an array;
 * doppel_tables lets doppel_input_run read tables, such as Parquet files, with the caller's own library. */

/* The structures of the Arrow C data and stream interfaces, the same in every Arrow library. The Arrow specification,
 * "The Arrow C data interface", describes their fields. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};
struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

/* A column whose rows are read as text. Strings and binary data, with 32-bit or 64-bit offsets or as views, are read in
 * place; numbers, bools, dates (ISO 8601) and timestamps are formatted; dictionaries of these are read too. Offsets of
 * slices, validity bitmaps and the validity of enclosing structs are respected. The members are private. */
#define DOPPEL_COLUMN_DEPTH 16
typedef struct doppel_column {
    const struct ArrowArray *parents[DOPPEL_COLUMN_DEPTH]; /* the structs it is in, the outermost first */
    const struct ArrowArray *array;                        /* the column */
    const struct ArrowArray *values;                       /* its dictionary, or the column itself */
    int depth;                                             /* the number of parents */
    int index, kind;                                       /* how an index and a value are stored */
    int unit;                                              /* of timestamps */
    bool zoned, binary; /* a timestamp is in UTC; the values are bytes, not strings */
} doppel_column;

/* The most bytes a formatted non-string value needs. */
#define DOPPEL_COLUMN_ROOM 48

/* The column `name` of an array of structs or, if name is NULL, the array itself. If no column has this name, it is a
 * path: the name up to its first dot is that of a struct, in which the rest is looked up in the same way (at most
 * DOPPEL_COLUMN_DEPTH structs, including the array). *found: whether the column exists; with found NULL a missing one
 * is an error. Errors: DOPPEL_ERROR_INPUT for a type that cannot be read as text or a malformed array; the message does
 * not name the column ("is of the Arrow type ..."). The schema is borrowed until this returns, the array as long as the
 * column is used. */
DOPPEL_API doppel_status doppel_column_init(doppel_column *column, const struct ArrowSchema *schema,
                                            const struct ArrowArray *array, const char *name, bool *found,
                                            doppel_error *error);

/* Row `row` of the column, from 0; it must be less than the length of the array. Strings are borrowed from the array;
 * other values are written to `room`, which has DOPPEL_COLUMN_ROOM bytes. Data NULL: the value is null. Any number of
 * threads may read a column. */
DOPPEL_API doppel_slice doppel_column_get(const doppel_column *column, uint64_t row, char *room);

/* An open table. `open` fills it; what it points to belongs to the reader and must stay valid until `close`. */
typedef struct doppel_table {
    size_t size;           /* sizeof(doppel_table) */
    void *handle;          /* for the reader */
    uint64_t parts;        /* number of parts that can be read independently, such as row groups */
    const uint64_t *rows;  /* of each part */
    const uint64_t *bytes; /* of each part in memory, roughly; NULL: not known */
    const char *columns;   /* the names of all columns, separated by commas, for messages; NULL: not known */
    bool in_memory;        /* its arrays stay valid at the same address even after `close` */
} doppel_table;

/* A reader of tables for doppel_input_run, such as a library for Parquet. Its functions are called from any thread,
 * several at a time. A run opens each table once, and closes it when all its parts are read. With in_memory, the
 * table's arrays must stay in memory as long as the object that was given the options (a doppel_batch) is used. Of the
 * errors of open and read, DOPPEL_ERROR_MEMORY and DOPPEL_ERROR_INTERRUPTED end the run; others end the table only, and
 * the documents read before them count. */
typedef struct doppel_tables {
    size_t size; /* sizeof(doppel_tables) */
    void *user;
    /* Whether a path is a table, by its name alone: it may be a file name without its folder. Called before a path is
     * opened, possibly more than once. */
    bool (*claims)(const char *path, void *user);
    /* For a path that contains "://": calls `found` for each table that it expands to (a folder, a pattern), in name
     * order. If there are none, or this fails, the path itself is opened. NULL: URLs are not
     * expanded. */
    doppel_status (*list)(const char *path, doppel_status (*found)(const char *path, void *to), void *to, void *user,
                          doppel_error *error);
    /* Opens a table to read the named columns, as far as it has them. The first are the keys of the options (id, url,
     * title, text and html, then extra_keys); then, for keys that are paths or several, the names of their parts and of
     * the structs they lead into. */
    doppel_status (*open)(const char *path, const char *const *columns, size_t column_count, doppel_table *table,
                          void *user, doppel_error *error);
    /* Gives one part as a stream of structs with the wanted columns; the library releases it. Batches of about a
     * megabyte are best: the batches of a part of more than 64 MiB are shared out among the threads. */
    doppel_status (*read)(const doppel_table *table, uint64_t part, struct ArrowArrayStream *stream, void *user,
                          doppel_error *error);
    void (*close)(doppel_table *table, void *user);
} doppel_tables;

/* The format that doppel_input_run infers from a file's name alone, whether it exists or not, ignoring .gz, .zst, .bz2
 * and .xz: "JSONL" (also of .json), "CSV", "TSV", "WARC", "ARC", "mbox", "HTML" or "Parquet" (.parquet, which only
 * options.tables can read), as static strings; NULL: the content decides. */
DOPPEL_API const char *doppel_input_format(const char *path);

/* The delimiter of a CSV file whose first row is `header`: of tab, comma, semicolon and |, the first that it has
 * outside of quotes; a comma if it has none. TSV files are separated by tabs, whatever their header has. */
DOPPEL_API char doppel_csv_delimiter(doppel_slice header);

/* An output file, compressed by its name: .gz with gzip, .zst with zstd, else plain. It appears under its name only
 * when complete; if that fails it never appears. A pipe or device is written directly. Compressed files are made of
 * parts, by several threads; their bytes depend neither on the number of threads nor on how the output was cut into
 * calls. */
typedef struct doppel_writer doppel_writer;

/* `path` is copied; NULL or "-" is stdout, which is not compressed. threads: how many compress, or put pieces, at the
 * same time; 1: the caller's alone; 0: one for each CPU this process may use. Memory: 2 MiB per thread, and 8 MiB more
 * if it compresses. */
DOPPEL_API doppel_status doppel_writer_open(doppel_writer **writer, const char *path, int threads, doppel_error *error);

/* One thread at a time. After a failure only finish may be called. Errors: DOPPEL_ERROR_IO; DOPPEL_ERROR_INTERRUPTED
 * when stdout is a pipe whose reader has gone away; DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_writer_write(doppel_writer *writer, doppel_slice bytes, doppel_error *error);

/* The same for many threads at a time: `bytes` is one piece of the output, and pieces are numbered from 0. Each is put
 * once (empty ones too), by any thread in any order, and the file is as if they had been written in the order of their
 * numbers. The threads that put pieces share the compressing and the writing. A piece put before its predecessors is
 * copied; the caller must bound how many there are. A call waits only for calls in progress, never for a piece not yet
 * put. About a megabyte is a good size. Errors: as above, for all calls after the first failure. Not together with
 * doppel_writer_write. */
DOPPEL_API doppel_status doppel_writer_put(doppel_writer *writer, uint64_t number, doppel_slice bytes,
                                           doppel_error *error);

/* Ends the file and frees the writer (NULL is fine); no other call may be in progress. With `ok` the file is moved into
 * place if all of it could be written; without, it is removed and *error is unchanged. Errors: as above, and
 * DOPPEL_ERROR_USAGE when a piece before one that was put is missing. */
DOPPEL_API doppel_status doppel_writer_finish(doppel_writer *writer, bool ok, doppel_error *error);

/* A document from one record, a JSON object in memory, by the keys of `options` (NULL: the defaults), read like a line
 * of JSONL: invalid UTF-8 becomes U+FFFD. A field that is missing or not a string (an id may be a number) is NULL; `id`
 * and `text` are then empty. Free it with doppel_document_free. Errors: DOPPEL_ERROR_INPUT when it is not a JSON
 * object, DOPPEL_ERROR_USAGE for more than 32 extra keys, DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_document_parse(doppel_slice record, const doppel_input_options *options,
                                               doppel_document **document, doppel_error *error);
DOPPEL_API void doppel_document_free(doppel_document *document);

/* Writes a record, a JSON object that was read before, up to its closing brace, without the members of these names and
 * otherwise unchanged. `to` has space for record.length bytes. Returns how many were written. *had (had may be NULL):
 * whether there was such a member. */
DOPPEL_API size_t doppel_record_strip(doppel_slice record, const char *const *names, size_t count, char *to, bool *had);

/* Pages: HTML to content. */

typedef enum doppel_content {
    DOPPEL_CONTENT_MAIN, /* without navigation, headers, footers, asides, banners and blocks of links */
    DOPPEL_CONTENT_ALL   /* all visible text */
} doppel_content;

/* The content of a page, in UTF-8. Everything is borrowed from the reader until its next call. NULL: absent. */
typedef struct doppel_page {
    doppel_slice text; /* white space where blocks break */
    doppel_slice title;
    doppel_slice canonical; /* the page's own canonical link, unchanged */
    doppel_slice language;  /* of the html element, unchanged */
    const char *charset;    /* the name of the charset it was decoded from */
} doppel_page;

typedef struct doppel_page_reader doppel_page_reader;

/* A reader for one thread. */
DOPPEL_API doppel_status doppel_page_reader_create(doppel_page_reader **reader);
DOPPEL_API void doppel_page_reader_free(doppel_page_reader *reader);

/* Reads a page from any bytes: broken nesting, any charset (a byte-order mark, then `charset`, then the page's own
 * meta, then valid UTF-8, then a guess). `charset` may be NULL. Errors: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT for a
 * page of over 2 GiB, or when the system has no converter (iconv) for its charset. Memory: about three times the page,
 * at worst ten times; it is reused for the next one. */
DOPPEL_API doppel_status doppel_page_read(doppel_page_reader *reader, doppel_slice html, const char *charset,
                                          doppel_content content, doppel_page *page);

/* The content of a document in either form: the record's text if it has one (borrowed from the document), else its
 * page's; and the record's title, else its page's. Errors: as doppel_page_read. */
DOPPEL_API doppel_status doppel_document_text(doppel_page_reader *reader, const doppel_document *document,
                                              doppel_content content, doppel_page *page);

/* Addresses. */

/* Rules of canonical URLs; combine with | those NOT to apply. docs/FORMAT.md lists what each does. */
enum {
    DOPPEL_URL_SCHEME = 1,     /* http and https are one */
    DOPPEL_URL_WWW = 2,        /* a leading `www.` is dropped */
    DOPPEL_URL_PORT = 4,       /* the scheme's own port is dropped */
    DOPPEL_URL_DOTS = 8,       /* `.` and `..` segments are resolved */
    DOPPEL_URL_ESCAPES = 16,   /* percent-encoding is minimal, in capitals */
    DOPPEL_URL_INDEX = 32,     /* index.html and the like are dropped */
    DOPPEL_URL_FRAGMENT = 64,  /* the fragment (from #) is dropped */
    DOPPEL_URL_QUERY = 128,    /* query parameters are sorted, an empty query is dropped */
    DOPPEL_URL_TRACKING = 256, /* tracking parameters are dropped */
    DOPPEL_URL_IDN = 512,      /* host names are in their ASCII form */
    DOPPEL_URL_SLASH = 1024    /* trailing slashes of the path are dropped */
};

/* The canonical form of a URL, written to `to`, which has `room` bytes; *written is how many it needs, at most 3 *
 * (`length` + the length of `base`) + 64. With that much room, ordinary URLs need no allocation. Anything but an
 * absolute http or https URL is returned unchanged except for white space trimmed at both ends. A relative URL is
 * resolved against `base` (NULL: none). Canonicalising is idempotent. Errors: DOPPEL_ERROR_USAGE when `room` is too
 * small, DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_url_canonical(doppel_slice url, const doppel_slice *base, unsigned without, char *to,
                                              size_t room, size_t *written);

/* Parts of a URL in canonical form, borrowed from it; empty where absent. */
typedef struct doppel_url_parts {
    doppel_slice host;   /* "news.example.co.uk" */
    doppel_slice domain; /* the registered domain: "example.co.uk", by the public suffix list; an IP address: itself */
    doppel_slice path;   /* from its first slash, with the query */
} doppel_url_parts;
DOPPEL_API void doppel_url_split(doppel_slice canonical, doppel_url_parts *parts);

/* ---- 8. The Hamming index: every fingerprint within k bits ---- */

/* A set of (fingerprint, owner) entries that finds all fingerprints within k bits of a query: it never misses one, and
 * never returns one farther away. A fingerprint is one uint64_t up to 64 bits, two (low half first) for 128; calls take
 * a pointer to it. Owners are any 64-bit numbers; a fingerprint may have many owners, an owner many fingerprints. Times
 * are the caller's: any monotonic clock, in any unit; 0 means "never" or "no time".
 *
 *     doppel_index *index;
 *     doppel_index_create(NULL, &index, NULL);
 *     doppel_index_add(index, &fingerprint, 7, 0);
 *     doppel_matches near = {0};
 *     doppel_index_find(index, &query, 3, NULL, &near, NULL);
 *     doppel_index_remove(index, &fingerprint, 7);
 *
 * Threads: one thread at a time may change an index (add, add_batch, remove, expire, compact, merge); at the same time
 * any number may call find, contains, each, save and stats, and none waits for another. A find sees the entries as of
 * some moment during the call. Validate an index only while nothing changes it, and free it only when no call on it is
 * in progress. A large index merges its parts on a background thread, which no call waits for and which ends when the
 * index is freed. */
typedef struct doppel_index doppel_index;

typedef struct doppel_index_options {
    size_t size;        /* sizeof(doppel_index_options) */
    int bits;           /* 1..64 or 128; 0: 64 */
    int distance;       /* the distance it is planned for; 0: 3. Queries may use any other, at the cost that its plan
                          states. */
    uint64_t count;     /* entries to plan for; 0: not known */
    uint64_t memory;    /* bytes for `count` entries (with `count` only); 0: at most about 40 bytes per entry */
    const char *layout; /* a layout by name, e.g. "4x16" (see doppel_plan); NULL: the cheapest for each size */
    uint64_t secret;    /* seeds the secret order of bits; 0: random */
} doppel_index_options;

/* `options` may be NULL. Errors: DOPPEL_ERROR_USAGE for bits, distance, an impossible layout, or memory that no plan
 * fits (the message says what is needed), DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_index_create(const doppel_index_options *options, doppel_index **index,
                                             doppel_error *error);
DOPPEL_API void doppel_index_free(doppel_index *index);

/* Adds an entry until `expires` (0: forever). An entry already present gets the new time. Bits beyond the width must be
 * 0. Errors: DOPPEL_ERROR_USAGE (bits beyond the width), DOPPEL_ERROR_MEMORY (the index is unchanged),
 * DOPPEL_ERROR_STORE when a block of the file it was opened from is damaged. */
DOPPEL_API doppel_status doppel_index_add(doppel_index *index, const uint64_t *fingerprint, uint64_t owner,
                                          uint64_t expires);

/* Adds many at once, much faster: `fingerprints` is contiguous; owners NULL: 0, 1, 2, ... ; expires NULL: never. Of
 * equal entries the last counts. All are added or, on an error, none. Errors: as add, and DOPPEL_ERROR_USAGE for more
 * than 2^32 - 4098 in one call. */
DOPPEL_API doppel_status doppel_index_add_batch(doppel_index *index, const uint64_t *fingerprints,
                                                const uint64_t *owners, const uint64_t *expires, uint64_t count);

/* Removes an entry; *removed (may be NULL) says whether it was present. */
DOPPEL_API doppel_status doppel_index_remove(doppel_index *index, const uint64_t *fingerprint, uint64_t owner,
                                             bool *removed);

/* Whether exactly this entry is present, expired or not. */
DOPPEL_API doppel_status doppel_index_contains(const doppel_index *index, const uint64_t *fingerprint, uint64_t owner,
                                               bool *contains);

typedef struct doppel_match {
    uint64_t owner;
    uint64_t fingerprint[2]; /* low half, high half (0 up to 64 bits) */
    uint64_t expires;        /* 0: never */
    int distance;
} doppel_match;

/* The result of a find, and memory it reuses. Zero is empty. */
typedef struct doppel_matches {
    doppel_match *match; /* nearest first, then by fingerprint (as a number), then by owner */
    size_t count;
    size_t capacity;
    uint64_t candidates; /* fingerprints that were compared */
} doppel_matches;
DOPPEL_API void doppel_matches_free(doppel_matches *matches);

typedef struct doppel_find_options {
    size_t size;     /* sizeof(doppel_find_options) */
    uint64_t now;    /* entries that expire at or before it do not match; 0: all match */
    uint64_t limit;  /* return this many nearest entries; 0: all */
    bool any;        /* stop at the first one found, whichever it is */
    bool count_only; /* fill only `count` and `candidates`; `limit` is ignored */
} doppel_find_options;

/* Every entry within `distance` bits, 0 to the width. `options` may be NULL. Errors: DOPPEL_ERROR_USAGE,
 * DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_STORE when a block of the file it was opened from is damaged. */
DOPPEL_API doppel_status doppel_index_find(const doppel_index *index, const uint64_t *fingerprint, int distance,
                                           const doppel_find_options *options, doppel_matches *matches,
                                           doppel_error *error);

/* Calls `entry` for every entry, expired ones too, in no promised order; DOPPEL_ERROR_INTERRUPTED when it returns
 *
 * false. */
DOPPEL_API doppel_status doppel_index_each(const doppel_index *index,
                                           bool (*entry)(const doppel_match *entry, void *user), void *user);

/* Removes entries that expire at or before `now`; *expired (may be NULL) is their number. */
DOPPEL_API doppel_status doppel_index_expire(doppel_index *index, uint64_t now, uint64_t *expired);

/* Adds every entry of `from`, which must have the same width and not be `index` itself. Errors: DOPPEL_ERROR_USAGE
 * (also for more than 2^32 - 4098 entries), DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_STORE when a file of either is
 * damaged. */
DOPPEL_API doppel_status doppel_index_merge(doppel_index *index, const doppel_index *from, doppel_error *error);

/* Merges everything into one run, planned for its size: the smallest and fastest form. */
DOPPEL_API doppel_status doppel_index_compact(doppel_index *index, doppel_error *error);

/* Writes the index to a temporary file beside `path` and renames it into place, so it is complete or absent; `path` may
 * be the file it was opened from. docs/FORMAT.md section 9 has the format. The file holds the secret order of bits:
 * anyone who can read it can choose fingerprints that make finds slow. Errors: DOPPEL_ERROR_IO, DOPPEL_ERROR_MEMORY,
 * DOPPEL_ERROR_STORE when a block of the file it was opened from is damaged. */
DOPPEL_API doppel_status doppel_index_save(const doppel_index *index, const char *path, doppel_error *error);

/* Maps a saved index; it can be changed further (in memory: the file is not modified). The header and the directory are
 * checked at once, each block on first use. While it is open the file must not be truncated or written in place: the
 * process would get SIGBUS, or answers from altered blocks. Deleting it, or renaming another file over it, is safe.
 * Errors: DOPPEL_ERROR_IO, DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_STORE when it is not an index, is truncated or was
 * altered. */
DOPPEL_API doppel_status doppel_index_open(const char *path, doppel_index **index, doppel_error *error);

/* Checks everything, each block included: DOPPEL_OK, or DOPPEL_ERROR_STORE and the reason. Not while another thread
 * changes the index: changing counts would look wrong. */
DOPPEL_API doppel_status doppel_index_validate(const doppel_index *index, doppel_error *reason);

typedef struct doppel_index_stats {
    uint64_t entries;      /* (fingerprint, owner), including expired ones not yet purged */
    uint64_t fingerprints; /* distinct ones, counted once per run */
    uint64_t bytes;        /* memory and mapped file */
    int runs;              /* immutable parts, without the head */
    int bits, distance;
    char layout[64]; /* of the largest run */
} doppel_index_stats;
DOPPEL_API void doppel_index_get_stats(const doppel_index *index, doppel_index_stats *stats);

/* ---- 9. Joins: every pair within k bits ---- */

/* Where fingerprints come from: an array, a raw file of little-endian fingerprints (8 bytes each up to 64 bits, 16 for
 * 128) that is read as often as needed, or a callback (or a path that is not a plain file) that is read once and kept
 * in up to a quarter of the memory, beyond that in `tmp`, unless it is streamed. Set exactly one of the three. */
typedef struct doppel_source {
    size_t size; /* sizeof(doppel_source) */
    const uint64_t *array;
    uint64_t count; /* of the array, in fingerprints */
    const char *path;
    /* Writes up to `room` fingerprints to `to`; *count is how many, 0 at the end. */
    doppel_status (*read)(void *user, uint64_t *to, size_t room, size_t *count);
    void *user;
} doppel_source;

/* Two positions, from 0, and their distance. Within one set a < b. */
typedef struct doppel_pair {
    uint64_t a, b;
    int distance;
} doppel_pair;

typedef struct doppel_join_options {
    size_t size;     /* sizeof(doppel_join_options) */
    int bits;        /* 1..64 or 128; 0: 64 */
    int threads;     /* 0: one for each CPU this process may use */
    uint64_t memory; /* bytes; 0: half of the machine's free memory. Beyond it, files in `tmp` are used. */
    const char *tmp; /* NULL: the environment's TMPDIR, else /tmp */
    /* Give every pair of identical fingerprints too. Otherwise each copy is paired only with the first fingerprint it
     * equals (distance 0), so a million equal ones are a million pairs and not 5x10^11. */
    bool all;
    bool count_only; /* give no pairs, only counts */
    /* Receives batches of pairs, in order, from one thread at a time. A status other than DOPPEL_OK ends the join with
     * it. */
    doppel_status (*pairs)(const doppel_pair *pairs, size_t count, void *user);
    /* Called now and then with the work done and the total. May be NULL. */
    void (*progress)(uint64_t done, uint64_t total, void *user);
    void *user;
    const volatile int *stop; /* may be NULL; once it is nonzero, the join ends with DOPPEL_ERROR_INTERRUPTED */
    uint64_t secret;          /* seeds the secret order of bits; 0: random. The pairs do not depend on it. */
} doppel_join_options;

typedef struct doppel_join_counts {
    uint64_t fingerprints;  /* read; of two sets, those of the streamed one */
    uint64_t copies;        /* fingerprints that equal an earlier one (one set only) */
    uint64_t groups;        /* sets of two or more equal fingerprints (one set only) */
    uint64_t pairs;         /* given (or, with count_only, that would be) */
    uint64_t all_pairs;     /* what `all` would give; saturates */
    uint64_t candidates;    /* pairs that were compared */
    uint64_t spilled_bytes; /* written to `tmp` */
} doppel_join_counts;

/* All pairs within `distance` in one set, in order of (a, b). Exact for every distance; the pairs do not depend on
 * threads, memory or secret. Errors: DOPPEL_ERROR_USAGE (bits, distance, more than 2^32 - 1 fingerprints, memory too
 * small: the message says what is needed), DOPPEL_ERROR_INPUT (a file whose size is not a multiple of the
 * fingerprint's, a fingerprint with bits beyond the width), DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_IO,
 * DOPPEL_ERROR_INTERRUPTED. `counts` and `error` may be NULL. */
DOPPEL_API doppel_status doppel_join(const doppel_source *source, int distance, const doppel_join_options *options,
                                     doppel_join_counts *counts, doppel_error *error);

/* All pairs between two sets, in order of (b, a). `a`, at most 2^32 - 2 fingerprints, is held in memory, `b` is
 * streamed and never held. `all` is ignored: every pair is given. Errors: as doppel_join. */
DOPPEL_API doppel_status doppel_join_sets(const doppel_source *a, const doppel_source *b, int distance,
                                          const doppel_join_options *options, doppel_join_counts *counts,
                                          doppel_error *error);

/* The classic approximate join: the fingerprints are rotated left by `steps[r]` bits in turn, sorted, and each is
 * compared with the next `window`, wrapping around (the last is compared with the first too). Gives the pairs within
 * `distance` that it finds, each once, in order of (a, b); `all` is always on. `recall` (may be NULL) is their share of
 * the exact join's pairs. */
typedef struct doppel_rotation {
    size_t size;      /* sizeof(doppel_rotation) */
    const int *steps; /* NULL: 0, 1, 2, ... */
    int count;        /* rotations; 0: the width */
    int window;       /* 0: 1 */
} doppel_rotation;
DOPPEL_API doppel_status doppel_join_rotate(const doppel_source *source, int distance, const doppel_rotation *rotation,
                                            const doppel_join_options *options, double *recall,
                                            doppel_join_counts *counts, doppel_error *error);

/* ---- 10. Plans: what an index or a join costs, before it is made ---- */

typedef enum doppel_purpose { DOPPEL_FOR_FIND, DOPPEL_FOR_JOIN } doppel_purpose;

/* The parameters of the cost model, in nanoseconds. */
typedef struct doppel_costs {
    size_t size;         /* sizeof(doppel_costs) */
    double probe_cached; /* one probe of a bucket in cache */
    double probe;        /* one probe of a bucket in memory, several in flight at once */
    double candidate;    /* one comparison in a bucket */
    double query;        /* fixed cost of a query */
    double move;         /* join: one fingerprint through one pass over memory */
    double place;        /* join: one fingerprint put into one table in cache, and compared there */
    double pair;         /* join: one more candidate in a bucket */
} doppel_costs;

typedef struct doppel_plan_options {
    size_t size; /* sizeof(doppel_plan_options) */
    doppel_purpose purpose;
    int bits;                  /* 1..64 or 128; 0: 64 */
    uint64_t memory;           /* bytes in all; 0: no limit */
    const char *layout;        /* only this layout; NULL: all */
    const doppel_costs *costs; /* NULL: the built-in ones */
} doppel_plan_options;

#define DOPPEL_PLAN_TABLES 64

/* One plan. A layout is named by how the bits are cut: "4x16" (4 blocks, keys of 16 bits, a table each), "5c2x26" (5
 * blocks, a table for every 2 of them, keys of 26 bits), "4x16+4x12" (two levels: each of 4 blocks, then each of 4
 * blocks of the remaining bits), "scan" (no table: everything is compared). */
typedef struct doppel_plan {
    char layout[64];
    int bits, distance;
    uint64_t count;
    int blocks, tables; /* a join can have more tables than DOPPEL_PLAN_TABLES: the arrays hold the first ones */
    int key_bits[DOPPEL_PLAN_TABLES]; /* of each table */
    int radius[DOPPEL_PLAN_TABLES];   /* keys within this many bits are probed; -1: none */
    double probes, candidates;        /* expected, per query (find) or in all (join) */
    double bytes_per_entry;           /* owners included */
    double memory;                    /* bytes in all */
    double microseconds;              /* per query (find) or in all on one thread (join) */
    double reduction; /* the classic measure for one exact key per table: 2^key bits / the product of (blocks x bits)
                         over its levels; 0 where it does not apply */
    bool fits;        /* in the given memory */
} doppel_plan;

/* The plans for `count` fingerprints within `distance`, those that fit first, then the others, each cheapest first: by
 * time, where half the memory is worth a tenth of the time. Up to `room` are written to `plans`; *found is how many
 * exist. Pure arithmetic. Errors: DOPPEL_ERROR_USAGE (bits, distance, layout), DOPPEL_ERROR_MEMORY; memory that no plan
 * fits is not an error here: plans[0].fits is false, and plans[0] is the smallest. */
DOPPEL_API doppel_status doppel_plan_list(uint64_t count, int distance, const doppel_plan_options *options,
                                          doppel_plan *plans, size_t room, size_t *found, doppel_error *error);

/* The layout of a plan for finding, queried at another distance: its radii, probes, candidates and microseconds are
 * recomputed. */
DOPPEL_API doppel_status doppel_plan_widen(const doppel_plan *plan, int distance, const doppel_costs *costs,
                                           doppel_plan *wider, doppel_error *error);

/* The built-in costs, and costs measured on this machine, which takes some seconds and about `memory` bytes (0: 1
 * GiB). */
DOPPEL_API void doppel_costs_get(doppel_costs *costs);
DOPPEL_API doppel_status doppel_costs_measure(uint64_t memory, doppel_costs *costs, doppel_error *error);

/* ---- 11. Batch: documents in, one of each out, and why ---- */

/* Create, read (once or more), then either pairs, or decide and then get and write. Positions count documents from 0 in
 * the order in which they were read. Whether two documents are near depends on those two alone.
 *
 *     doppel_batch *batch;
 *     doppel_batch_create(NULL, &batch, &error);
 *     doppel_batch_read(batch, paths, count, false, &counts, &error);
 *     doppel_batch_decide(batch, &error);
 *     doppel_batch_write(batch, take_document, user, &error);
 *
 * A path that cannot be opened does not fail the call: counts.unopened and the input options' callback `bad` report it.
 * Documents without words are copies when the bytes of their texts are equal.
 *
 * Memory: at most 200 bytes per document plus 512 MiB, whatever the documents' length: feature hashes and ids are kept
 * in files in `tmp`. At most 2^32 - 2 documents. One thread at a time may use a batch; it runs `threads` of its own. */
typedef struct doppel_batch doppel_batch;

typedef enum doppel_method {
    DOPPEL_METHOD_AUTO,    /* every pair with similarity of at least `similarity`, verified */
    DOPPEL_METHOD_SIMHASH, /* every pair of fingerprints within `distance` bits */
    DOPPEL_METHOD_MINHASH, /* as auto, with candidates by `bands` bands of `rows` rows */
    DOPPEL_METHOD_EXACT    /* the same words */
} doppel_method;

/* What makes documents copies; combine with |. */
enum {
    DOPPEL_BY_CONTENT = 1,
    DOPPEL_BY_URL = 2,  /* the same canonical URL */
    DOPPEL_BY_TITLE = 4 /* titles of at least 10 code points, 90 % similar (Levenshtein), except generic ones such as
                           "Page not found" */
};

/* How a published pipeline finds near documents: its shingles as a recipe, its bands, and its threshold. For
 * doppel_batch_options: method DOPPEL_METHOD_MINHASH, the recipe, similarity, bands and rows. */
typedef struct doppel_pipeline {
    const char *name, *recipe;
    double similarity;
    int bands, rows;
} doppel_pipeline;

/* All of them; *count is how many. */
DOPPEL_API const doppel_pipeline *doppel_pipelines(size_t *count);

typedef struct doppel_batch_options {
    size_t size;                 /* sizeof(doppel_batch_options) */
    const doppel_recipe *recipe; /* NULL: page; it must outlive the batch */
    doppel_method method;
    double similarity;  /* 0: 0.8 */
    int distance;       /* 0: 3 */
    bool distance_zero; /* only equal fingerprints are near; `distance` is ignored */
    int bands, rows;    /* 0: chosen by `similarity` */
    uint64_t min_words; /* documents with fewer are near only if their words are the same; 0: 5 */
    /* Features found in more than this share of the groups (formed at max(similarity, 0.8)), and in more than 8 of
     * them, are left out, and similarity is computed on the rest; 0: none are. */
    double boilerplate;
    unsigned by;        /* 0: DOPPEL_BY_CONTENT */
    const char *keep;   /* which document of a group is kept: "first" (NULL), or rules in order, separated by commas:
                           first, last, longest, shortest, https, shortest-url, id (the smallest, compared as bytes),
                           newest:FIELD, oldest:FIELD, largest:FIELD, smallest:FIELD */
    bool link_any;      /* near any document of the group, not only the kept one: chains are one group */
    const char *within; /* only documents with the same "host", "domain" or value of a field are near; NULL: all */
    const char *across; /* only documents with different ones are near */
    doppel_content content;
    unsigned url_without; /* URL rules not to apply */
    uint64_t limit;       /* read at most this many documents (known ones not counted); 0: all */
    const char *work;     /* a folder that keeps what was read, for `resume` and reports; NULL: nothing is kept */
    bool resume;          /* continue the run in `work` */
    const char *tmp;      /* NULL: the environment's TMPDIR, else /tmp */
    uint64_t memory; /* bytes, kept to within a tenth and 64 MB; little memory means few threads, and more documents
                        than fit are an error. 0: half of the machine's free memory, more if needed */
    const doppel_input_options *input; /* how to read: threads, keys, bad, progress, stop; NULL: the defaults */
    /* Called now and then with the stage ("pairs", ...) and its progress. May be NULL. */
    void (*progress)(const char *stage, uint64_t done, uint64_t total, void *user);
    void *user;
    const doppel_input_options *known_input; /* how to read known documents; NULL: as the others */
    /* Early warnings: that there are more documents than one run takes, or than fit into `memory`. May be NULL. */
    void (*warn)(const char *message, void *user);
    bool keep_sketches; /* doppel_batch_save will be called: keep what it saves while documents are read. Without this
                           (and `work`) that call reads the inputs again */
    bool keys_for_sets; /* with keep_sketches: doppel_batch_get_sketches gives the wide keys of the document's bands
                           instead of each set, a twentieth of the bytes: enough to find candidates, not to decide.
                           doppel_batch_add_sketches does not take such entries */
    /* A copy is removed only if the kept document has at least this share of its features (containment), else it is
     * kept too: with 1 no feature is lost. 0: every near document is removed. Only with DOPPEL_BY_CONTENT; not with
     * link_any, DOPPEL_METHOD_SIMHASH or an index folder. */
    double only_contained;
    /* This many documents of each group are kept: the original, and the first of its copies in the order of `keep`.
     * Copies of known documents, and of those in an index, are all removed. 0: 1 */
    uint64_t keep_copies;
    const char *count_by; /* a field whose values doppel_batch_count_groups counts; NULL: none */
} doppel_batch_options;

/* `options` may be NULL. What they point to must outlive the batch. Errors: DOPPEL_ERROR_USAGE with a message that says
 * what is allowed, DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_IO (tmp, work). */
DOPPEL_API doppel_status doppel_batch_create(const doppel_batch_options *options, doppel_batch **batch,
                                             doppel_error *error);
DOPPEL_API void doppel_batch_free(doppel_batch *batch);

/* Reopens the batch of a finished run from its `work` folder, with the options it had: it can decide, find pairs and
 * write again. `input` (NULL: the defaults) says how to read. Errors: DOPPEL_ERROR_STORE when there is none, or it is
 * damaged or unfinished; DOPPEL_ERROR_USAGE for a recipe that needs more than its text. */
DOPPEL_API doppel_status doppel_batch_open(const char *work, const doppel_input_options *input, doppel_batch **batch,
                                           doppel_error *error);

/* The options in effect, defaults filled in. */
DOPPEL_API const doppel_batch_options *doppel_batch_get_options(const doppel_batch *batch);

/* Reads every document of the paths, as doppel_input_run does. With `known` the others are compared with them: known
 * documents are all kept, come before all others, and are not written. A known path may be the index folder of an
 * engine (section 14), which is only queried, by the criteria of `by`: a document it has is a copy and leaves the
 * batch, whatever else it is near. The index must have been made with the same recipe, content and min_words, and for
 * at most the similarity (at least the distance) that the batch asks for; with an index by distance DOPPEL_METHOD_AUTO
 * uses the index's distance. Not with within, across, link_any, boilerplate and doppel_batch_find_pairs. A known path
 * may also be a file of doppel_batch_save, or the `work` folder of a finished run, which stands for the documents of
 * that run. With the option refuse_bad a known folder without files is refused, and so are non-empty known paths
 * without any document. `counts` may be NULL. */
DOPPEL_API doppel_status doppel_batch_read(doppel_batch *batch, const char *const *paths, size_t path_count, bool known,
                                           doppel_input_counts *counts, doppel_error *error);

/* What one call of doppel_batch_read was given, and what it found. */
typedef struct doppel_batch_reading {
    const char *const *paths;
    size_t path_count;
    bool known;
    doppel_input_counts counts;
    uint64_t indexes; /* how many of the paths are index folders */
} doppel_batch_reading;

/* The readings of a batch, from 0; false: there is no such number. */
DOPPEL_API bool doppel_batch_get_reading(const doppel_batch *batch, size_t number, doppel_batch_reading *reading);

/* Saves the documents' sketches to a file, which is complete or absent: given to doppel_batch_read as a path of known
 * documents, it stands for them, and their text is not read again. The options that shape sketches must then be the
 * same: recipe, method, bands and rows (which follow from similarity), min_words, by, within, across, content. */
DOPPEL_API doppel_status doppel_batch_save(doppel_batch *batch, const char *path, doppel_error *error);

/* Why a document is a duplicate. */
typedef enum doppel_reason {
    DOPPEL_REASON_NONE,    /* it is not */
    DOPPEL_REASON_URL,     /* "exact_url" */
    DOPPEL_REASON_CONTENT, /* "content_hash": the same words, or near content (evidence.same_digest says which) */
    DOPPEL_REASON_TITLE,   /* "title_similarity" */
    DOPPEL_REASONS         /* their number, for arrays */
} doppel_reason;
/* Its name as verdicts print it; NULL for DOPPEL_REASON_NONE. */
DOPPEL_API const char *doppel_reason_name(doppel_reason reason);

/* Two documents, and what was measured. In `pairs` a < b. */
typedef struct doppel_near {
    uint64_t a, b;
    int distance;      /* differing bits of the fingerprints; -1: one has no words */
    double similarity; /* NaN: not known (simhash) */
    doppel_reason reason;
    bool verified; /* false: the original is in an index that keeps no features, and its words are not the same */
} doppel_near;

/* Gives every pair of near documents, in order of (a, b), from one thread at a time, which need not be the caller's.
 * With `collapse`, documents with the same words as earlier ones are paired only with the first of them. A status of
 * the callback other than DOPPEL_OK ends the call. */
DOPPEL_API doppel_status doppel_batch_find_pairs(doppel_batch *batch, bool collapse,
                                                 doppel_status (*pairs)(const doppel_near *pairs, size_t count,
                                                                        void *user),
                                                 void *user, doppel_error *error);

/* Decides which documents are kept: in the order of `keep`, a document is kept unless it is near an earlier kept one.
 * Its original is the one with the strongest evidence: the same URL, then the same words, then the most similar
 * content, then the most similar title; ties go to the first in order. */
DOPPEL_API doppel_status doppel_batch_decide(doppel_batch *batch, doppel_error *error);

DOPPEL_API uint64_t doppel_batch_count(const doppel_batch *batch);

/* The decision on a document: near->b is the document, near->a its original (itself if it is kept; then the distance is
 * 0, the similarity NaN, the reason DOPPEL_REASON_NONE). An original in an index has a position from doppel_batch_count
 * to doppel_batch_count + stats.in_index - 1. */
DOPPEL_API void doppel_batch_get(const doppel_batch *batch, uint64_t position, doppel_near *near);

/* Whether a document is kept: it is its own original, or one of `keep_copies`. */
DOPPEL_API bool doppel_batch_stays(const doppel_batch *batch, uint64_t position);

/* After doppel_batch_decide: counts the documents of each group, and with `count_by` reads the inputs (not `known`
 * ones) once more and counts the values of that field in each group; a field that no record has is given to `unseen` of
 * the options of the inputs. Errors: as doppel_batch_write. */
DOPPEL_API doppel_status doppel_batch_count_groups(doppel_batch *batch, doppel_error *error);
/* After that: the number of documents, known ones not counted, with the same original as this one, itself
 * included. */
DOPPEL_API uint64_t doppel_batch_group_size(const doppel_batch *batch, uint64_t position);
/* Value number `index`, from 0, of a document's group, and how many documents of the group (known ones not counted)
 * have it: most frequent first, ties in byte order. Documents without the field are not counted. False: there are fewer
 * values. The value is borrowed from the batch. */
DOPPEL_API bool doppel_batch_group_value(const doppel_batch *batch, uint64_t position, size_t index,
                                         doppel_slice *value, uint64_t *count);

/* The id of a document, or of an original in an index, written to `buffer` up to `room`, without a NUL; returns its
 * full length, which may exceed `room`. 0 when it cannot be read back, and before doppel_batch_decide. */
DOPPEL_API size_t doppel_batch_id(const doppel_batch *batch, uint64_t position, char *buffer, size_t room);

/* Reads the inputs (not `known` ones) once more and gives every document with its decision, in order: `record` is the
 * record as it is in the file or, if the document is not from JSONL, one made of its columns (row_records of
 * doppel_input_options) or its id, url, title and text, without a line end. Both are valid during the callback, which
 * may call doppel_batch_get and doppel_batch_id. Errors: as reading; DOPPEL_ERROR_INPUT when the inputs are not what
 * they were. */
DOPPEL_API doppel_status doppel_batch_write(doppel_batch *batch,
                                            doppel_status (*document)(doppel_slice record, const doppel_near *near,
                                                                      void *user),
                                            void *user, doppel_error *error);

/* Writes the records of the kept documents, as doppel_batch_write gives them, one per line, on all threads. The caller
 * opens the writer, uses it for nothing else, and finishes it. Errors: those of doppel_batch_write, and of
 * doppel_writer_write. */
DOPPEL_API doppel_status doppel_batch_write_kept(doppel_batch *batch, doppel_writer *writer, doppel_error *error);
/* The same for the documents that do not stay: both together have every document that was read, once. */
DOPPEL_API doppel_status doppel_batch_write_removed(doppel_batch *batch, doppel_writer *writer, doppel_error *error);

/* Makes doppel_batch_write_kept and doppel_batch_write_removed write CSV and TSV rows, and lines, as they are in their
 * files (rows under one header) instead of records. Call it before reading, with the paths that will be read. Errors:
 * DOPPEL_ERROR_USAGE for a file that has no such rows, or another format or columns than the first file; stdin is
 * checked when it is written, and the error is then DOPPEL_ERROR_INPUT. */
DOPPEL_API doppel_status doppel_batch_plan_rows(doppel_batch *batch, const char *const *paths, size_t path_count,
                                                doppel_error *error);

/* After that: the header of the first file, as it is there, without its line end; empty for lines and for stdin.
 * Borrowed from the batch. */
DOPPEL_API doppel_slice doppel_batch_row_header(const doppel_batch *batch);
/* The format of all files: "CSV", "TSV" or "lines"; NULL: not known before they are read, for stdin. */
DOPPEL_API const char *doppel_batch_row_format(const doppel_batch *batch);
/* As doppel_batch_write, but gives rows as they are in their files, without the \n (a \r stays); before them, once, the
 * header, with `near` NULL. */
DOPPEL_API doppel_status doppel_batch_write_rows(doppel_batch *batch,
                                                 doppel_status (*row)(doppel_slice row, const doppel_near *near,
                                                                      void *user),
                                                 void *user, doppel_error *error);

/* One output per input file, below a folder: named by the file's path below the given input folder, or by its file name
 * if the file itself was given. Rows of CSV and TSV (under their header), lines and JSONL are written unchanged,
 * documents of other formats as JSONL, with .jsonl added to the name. Names that end in .gz and .zst are compressed,
 * .bz2 and .xz become .zst. All outputs appear when the last one is complete, or none does.
 *
 * Call doppel_batch_plan_files before reading, with the paths that will be read. Errors: DOPPEL_ERROR_USAGE for stdin,
 * for two files with the same output name, and for an output that is an input; DOPPEL_ERROR_IO. */
DOPPEL_API doppel_status doppel_batch_plan_files(doppel_batch *batch, const char *const *paths, size_t path_count,
                                                 const char *folder, doppel_error *error);
/* After that: whether a path is that of an output, or of a folder below the given one that an output is in. Another
 * file must not be written there. */
DOPPEL_API bool doppel_batch_is_output(const doppel_batch *batch, const char *path);
/* Writes the kept documents. Errors: as doppel_batch_write_kept. */
DOPPEL_API doppel_status doppel_batch_write_files(doppel_batch *batch, doppel_error *error);

/* Announces, before doppel_batch_decide, the writer that doppel_batch_write_kept will use, so that disk space is
 * allocated for it in the background. The writer must stay open until both are done; NULL: none. */
DOPPEL_API void doppel_batch_set_output(doppel_batch *batch, doppel_writer *writer);

/* A file that was read, and which documents its rows are. */
typedef struct doppel_batch_rows {
    const char *path;
    uint64_t count; /* rows that were read (fewer than all after a `limit`); documents, if it is not a table */
    const uint64_t *positions; /* of each row; DOPPEL_NO_POSITION: not a document. NULL: the file is not a table */
} doppel_batch_rows;

/* If the options have `tables`, calls `table` for every file that was read, in order, except those of `known`
 * documents, so that the result can be written as tables again. `rows` is borrowed during the callback. After `resume`
 * the inputs are read again. Errors: those of the callback and of reading, DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_batch_each_table(const doppel_batch *batch,
                                                 doppel_status (*table)(const doppel_batch_rows *rows, void *user),
                                                 void *user, doppel_error *error);

/* What was done, in numbers. */
typedef struct doppel_batch_stats {
    uint64_t documents, known;
    uint64_t empty, few_words; /* without words; with fewer than min_words */
    uint64_t copies;           /* with the same words as an earlier one */
    uint64_t same_ids;         /* with the id of an earlier one: they are distinguished by position */
    uint64_t kept, groups;     /* documents kept, keep_copies included; groups of more than one. Neither counts known
                                  documents without copies */
    uint64_t candidates;       /* candidate pairs */
    uint64_t verified;         /* of those, compared feature by feature */
    uint64_t frequent;         /* features left out as boilerplate */
    int bands, rows;           /* 0: not used */
    double recall;             /* expected, of pairs at the very threshold */
    uint64_t spilled_bytes;    /* to temporary files, except the two members at the end */
    double seconds_read, seconds_candidates, seconds_decide;
    uint64_t in_index;     /* documents found in an index */
    uint64_t kept_bytes;   /* of what `work` and keep_sketches keep */
    uint64_t copied_bytes; /* of the copy of stdin, if that is a pipe */
} doppel_batch_stats;
DOPPEL_API void doppel_batch_get_stats(const doppel_batch *batch, doppel_batch_stats *stats);

/* The steps of a batch as calls, for engines that distribute the work over many machines. Two documents are candidates
 * when they have the same key in some band; docs/FORMAT.md section 11 defines bands and keys. */

/* Plans bands that find 999 of 1,000 pairs of a similarity. *bands or *rows is filled in if 0, else kept. Returns the
 * share of pairs of exactly this similarity that they find; 0: such bands are not possible. */
DOPPEL_API double doppel_bands_plan(double similarity, int *bands, int *rows);

/* The keys of a document's bands, from the set of its shingles (doppel_sketch.set); `keys` has space for `bands` of
 * them. Errors: DOPPEL_ERROR_USAGE for impossible numbers of bands and rows, or an empty set; DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_bands_keys(const uint64_t *set, size_t count, int bands, int rows, uint32_t *keys);

/* The same with all 64 bits of each key, of which doppel_bands_keys gives bits 16 to 47: beyond about ten million
 * documents, 32 bits are often equal by chance. */
DOPPEL_API doppel_status doppel_bands_wide_keys(const uint64_t *set, size_t count, int bands, int rows, uint64_t *keys);

/* Sketches as bytes, to be stored or sent elsewhere and added there instead of the documents: a sequence of entries,
 * one per document, as docs/FORMAT.md section 12 defines them (kind 3). Of documents with the same words only the first
 * has the set, unless `across` is given.
 *
 * doppel_batch_get_sketches gives the entries of all documents that were read, in order, as `entry`, which is borrowed
 * during the callback; the options must have keep_sketches. A status of the callback other than DOPPEL_OK ends the
 * call. */
DOPPEL_API doppel_status doppel_batch_get_sketches(doppel_batch *batch,
                                                   doppel_status (*take)(doppel_slice entry, void *user), void *user,
                                                   doppel_error *error);

/* Adds documents by their entries, as if they were read at this point; `known` as in doppel_batch_read. They must come
 * from batches with the same doppel_batch_settings and the same rules in `keep`. An entry with the set must come before
 * those with the same words and no set. The batch can decide and find pairs, but not write. Errors: DOPPEL_ERROR_STORE
 * for bytes that are not such entries, DOPPEL_ERROR_USAGE, and those of doppel_batch_read. */
DOPPEL_API doppel_status doppel_batch_add_sketches(doppel_batch *batch, doppel_slice entries, bool known,
                                                   doppel_error *error);

/* The options that shape sketches, as text, one line `name=value` each: recipe, Unicode version, sets, bands, rows,
 * min_words, content, by, url_without, within, across. Sketches are compatible if this text is the same. Written to
 * `buffer` up to `room`, without a NUL; returns its full length, which may exceed `room`; 0: out of memory. */
DOPPEL_API size_t doppel_batch_settings(const doppel_batch *batch, char *buffer, size_t room);

/* Two near documents, by their positions in keep order. */
typedef struct doppel_edge {
    uint32_t a, b;
    float similarity; /* among several originals the greatest wins, then the smallest position */
} doppel_edge;

/* Decides as doppel_batch_decide does, for `count` documents in keep order: one is kept unless it is near an earlier
 * kept one. original[i] is the original of document i, or i if it is kept; similarity[i] (similarity may be NULL) is
 * that of the two, or NaN if i is kept. With link_any all documents connected by edges are one group, of which the
 * first is kept, and similarity[i] is the greatest of the edges of i. The order of the edges and repeated edges do not
 * matter; the array is reordered. Errors: DOPPEL_ERROR_USAGE for a position of `count` or more, or an edge from a
 * document to itself; DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_decide_edges(doppel_edge *edges, size_t edge_count, uint32_t count, bool link_any,
                                             uint32_t *original, float *similarity, doppel_error *error);

/* ---- 12. Trim: text that documents repeat from each other ---- */

/* Finds lines, sentences, paragraphs or passages that occur in several documents, or several times in one, and cuts all
 * but the first. docs/FORMAT.md section 15 defines units, windows, spans and cuts.
 *
 *     doppel_trim *trim;
 *     doppel_trim_find(paths, count, NULL, &trim, &error);
 *     doppel_trim_write(trim, DOPPEL_TRIM_RECORDS, take_document, user, &error);
 *     doppel_trim_free(trim);
 *
 * The inputs are read three times; once more for the originals of spans (DOPPEL_TRIM_SPANS, DOPPEL_TRIM_ANNOTATE); and
 * for passages once more per extra round, if repeats are so frequent that their windows are compared in rounds to keep
 * temporary files small. The inputs must not change: a text that is cut is checked against what was read. Results
 * depend neither on threads nor on memory. Memory: `memory`, plus 16 bytes per document, 8 more with within or across,
 * 8 and 8 per rule with `keep`, 60 bytes for each text of `against` with fewer than `words` words, and, with min_count
 * or with across and cut_first, 16 bytes for each occurrence not yet known to be cut. The time per window grows with
 * `words` and with `run`: some hundreds are fine. */
typedef struct doppel_trim doppel_trim;

typedef enum doppel_unit {
    DOPPEL_UNIT_LINE,
    DOPPEL_UNIT_SENTENCE,
    DOPPEL_UNIT_PARAGRAPH,
    DOPPEL_UNIT_PASSAGE /* runs of `words` words, starting anywhere */
} doppel_unit;

typedef struct doppel_trim_options {
    size_t size;                 /* sizeof(doppel_trim_options) */
    const doppel_recipe *recipe; /* how words are made; NULL: page. Not with chars= or first= */
    doppel_unit unit;
    uint64_t run;       /* units in a row that are cut together; 0: 1. Not for passages */
    uint64_t words;     /* of a passage, at least; 0: 50. Only for passages */
    uint64_t min_words; /* units with fewer are cut only as part of a longer run; 0: 5 */
    const char *keep;   /* in which document a repeated unit is kept, as for a batch; NULL: the first */
    uint64_t min_count; /* cut only what occurs at least this often; 0: 2, the least */
    bool cut_first;     /* cut every occurrence, including the first */
    const char *within; /* only repeats in the same "document", "host", "domain" or value of a field count; NULL: all */
    const char *across; /* only repeats with different ones count */
    /* A document that loses words is dropped if fewer than `drop_below` words remain, if more than `drop_share` of its
     * words are cut, or, with `drop`, always. 0: not for this reason. */
    uint64_t drop_below;
    double drop_share;
    bool drop;
    /* Cut only what the documents of these paths contain. They are not written. Not with keep, min_count, cut_first,
     * within and across. */
    const char *const *against;
    size_t against_count;
    const doppel_input_options *against_input; /* how to read them; NULL: as the others */
    doppel_content content;
    uint64_t memory;  /* bytes; 0: half of the machine's free memory. Beyond it, files in `tmp` */
    const char *tmp;  /* NULL: the environment's TMPDIR, else /tmp */
    const char *work; /* a folder that keeps what was found, for `resume` and reports; NULL: nothing is kept */
    bool resume;      /* continue after the last stage that the run in `work` finished */
    const doppel_input_options *input; /* how to read: threads, keys, bad, progress, stop; NULL: the defaults */
    /* Called now and then with the stage ("samples", "repeats", "copies", "spans") and its progress. May be NULL. */
    void (*progress)(const char *stage, uint64_t done, uint64_t total, void *user);
    void *user;
} doppel_trim_options;

/* Reads the documents of the paths and finds what to cut. Errors: those of doppel_input_run; DOPPEL_ERROR_USAGE with a
 * message that says what is allowed; DOPPEL_ERROR_INPUT for a text of 4 GiB or more, for more than 2^32 - 2 documents,
 * and when an input has changed. What the options point to must outlive the trim, except `against` and the paths, which
 * are copied. A path that cannot be opened does not fail the call (see counts). */
DOPPEL_API doppel_status doppel_trim_find(const char *const *paths, size_t path_count,
                                          const doppel_trim_options *options, doppel_trim **trim, doppel_error *error);
DOPPEL_API void doppel_trim_free(doppel_trim *trim);

/* Reopens the trim of a finished run from its `work` folder, with the options it had: it can be written again. `input`
 * (NULL: the defaults) says how to read. Errors: DOPPEL_ERROR_STORE when there is none, or it is damaged or
 * unfinished. */
DOPPEL_API doppel_status doppel_trim_open(const char *work, const doppel_input_options *input, doppel_trim **trim,
                                          doppel_error *error);

/* The options in effect, defaults filled in. */
DOPPEL_API const doppel_trim_options *doppel_trim_get_options(const doppel_trim *trim);

/* A part of a text that repeats another. */
typedef struct doppel_span {
    uint64_t start, end; /* bytes of the original text */
    uint64_t words;
    uint64_t original;        /* position of the document, in the order of reading, those of `against` first */
    doppel_slice original_id; /* with DOPPEL_TRIM_SPANS, like original_start */
    uint64_t original_start;
} doppel_span;

typedef enum doppel_dropped {
    DOPPEL_DROPPED_NOT,
    DOPPEL_DROPPED_REPEATS, /* "repeats": with `drop` */
    DOPPEL_DROPPED_BELOW,   /* "below" */
    DOPPEL_DROPPED_SHARE    /* "share" */
} doppel_dropped;
/* Its name; NULL for DOPPEL_DROPPED_NOT. */
DOPPEL_API const char *doppel_dropped_name(doppel_dropped dropped);

/* A document, and what was cut from it. Everything is borrowed during the callback. */
typedef struct doppel_trimmed {
    uint64_t position; /* in the order of reading, those of `against` first */
    doppel_slice id;
    const char *file; /* as doppel_document has them */
    uint64_t line;
    uint64_t words, words_cut;
    const doppel_range *cuts; /* bytes of the original text, ascending, disjoint */
    size_t cut_count;
    const doppel_span *spans; /* with DOPPEL_TRIM_SPANS */
    size_t span_count;
    doppel_dropped dropped;
    bool emptied;
    /* With DOPPEL_TRIM_RECORDS: the record with its text cut and otherwise unchanged or, if the document is not from
     * JSONL, one made of its id, url, title and text; no line end. With DOPPEL_TRIM_ANNOTATE: the whole record with its
     * spans as a member "spans". Dropped documents have one too: the caller must not write it. */
    doppel_slice record;
    doppel_slice text;     /* with DOPPEL_TRIM_TEXTS: the text, cut */
    doppel_slice original; /* with DOPPEL_TRIM_ORIGINALS: the whole text */
    doppel_slice url;      /* as doppel_document has it; empty: there is none */
} doppel_trimmed;

/* What doppel_trim_write gives; combine with |. */
enum {
    DOPPEL_TRIM_RECORDS = 1,
    DOPPEL_TRIM_ANNOTATE = 2, /* instead of DOPPEL_TRIM_RECORDS */
    DOPPEL_TRIM_SPANS = 4,    /* spans with their originals, which are looked up first: one more reading */
    DOPPEL_TRIM_TEXTS = 8,
    DOPPEL_TRIM_ORIGINALS = 16
};

/* Reads the inputs (not those of `against`) once more and gives every document, in order, from one thread at a time,
 * which need not be the caller's. A status of the callback other than DOPPEL_OK ends the call. Errors: as
 *
 * doppel_trim_find. */
DOPPEL_API doppel_status doppel_trim_write(doppel_trim *trim, unsigned wanted,
                                           doppel_status (*document)(const doppel_trimmed *document, void *user),
                                           void *user, doppel_error *error);

/* What was done, in numbers. The members from `documents_cut` on are known after doppel_trim_write. */
typedef struct doppel_trim_stats {
    doppel_input_counts input, against;
    uint64_t units;         /* units (for passages: words) of all documents, those of `against` not counted */
    uint64_t short_against; /* texts of `against` with fewer than min_words words, which are not searched for */
    uint64_t repeated;      /* windows that are cut */
    uint64_t values;        /* different ones among them */
    uint64_t words;
    uint64_t spilled_bytes;   /* to temporary files, in all */
    uint64_t temporary_bytes; /* their largest total size at any time */
    uint64_t copied_bytes;    /* of the copy of stdin, if that is a pipe */
    double seconds_read, seconds_decide;
    uint64_t documents_cut, spans, words_cut, bytes_cut;
    uint64_t dropped, emptied;
} doppel_trim_stats;
DOPPEL_API void doppel_trim_get_stats(const doppel_trim *trim, doppel_trim_stats *stats);

/* A repeated window, or several that overlap in their first occurrence and occur equally often. */
typedef struct doppel_repeat {
    uint64_t count; /* occurrences */
    uint64_t words;
    uint64_t original; /* the document where it occurs first */
    uint64_t start;    /* its offset there */
    doppel_slice id;   /* of that document */
    doppel_slice text; /* its beginning there, at most 200 bytes */
} doppel_repeat;

/* The most frequent repeats, most frequent first; *count is at most 100. Of those that overlap in their first document,
 * only the most frequent. *repeats is borrowed from the trim. Reads the documents they occur in. */
DOPPEL_API doppel_status doppel_trim_get_repeats(doppel_trim *trim, const doppel_repeat **repeats, size_t *count,
                                                 doppel_error *error);

/* ---- 13. Mirrors and overlap ---- */

/* Two documents, one of which contains much of the other or a long run of it. */
typedef struct doppel_overlap {
    uint64_t a, b; /* positions in the order of reading, those of `against` first */
    doppel_slice a_id, b_id;
    double containment_ab, containment_ba; /* the share of A's features that are in B, and the other way round */
    uint64_t words_a, words_b;             /* of the texts, as passages count them */
    const doppel_passage *passages;        /* in the order of A */
    const doppel_slice *begins;            /* the first words of each in A, at most 80 bytes */
    size_t passage_count;
    void *search; /* for doppel_overlap_get_texts */
} doppel_overlap;

typedef struct doppel_overlap_options {
    size_t size;                 /* sizeof(doppel_overlap_options) */
    const doppel_recipe *recipe; /* NULL: page */
    /* A pair is given when either containment is at least `containment`, or when it shares a run of at least `words`
     * words. 0: not used; both 0: containment 0.2 or, where the recipe allows it, 30 words. */
    double containment;
    uint64_t words; /* at least the recipe's; not with chars= */
    /* Containment is found by the features that are 0 mod `sample`: a pair that shares s features is missed with
     * probability (1 - 1/sample)^s, and one exactly at the threshold once in 30,000 times. 0: 4. Runs of `words` words
     * are not missed by sampling. */
    uint64_t sample;
    const char *const *against; /* only pairs with a document of these paths are given: b is that document */
    size_t against_count;
    doppel_content content;
    uint64_t memory;                   /* bytes; 0: half of the machine's free memory. Beyond it, files in `tmp`. */
    const char *tmp;                   /* NULL: the environment's TMPDIR, else /tmp */
    const doppel_input_options *input; /* how to read: threads, keys, bad, progress, stop; NULL: the defaults */
    /* Receives each pair, in order of (a, b), from one thread at a time; everything is borrowed during the callback. A
     * status other than DOPPEL_OK ends the run. */
    doppel_status (*pair)(const doppel_overlap *pair, void *user);
    void *user;
    /* How to read `against`; NULL: like the others. Sketches and index folders have no texts and are refused; with
     * refuse_bad, so is a folder without files. */
    const doppel_input_options *against_input;
} doppel_overlap_options;

typedef struct doppel_overlap_counts {
    doppel_input_counts input, against;
    uint64_t copies;     /* documents with the same words as an earlier one */
    uint64_t samples;    /* hashes that were looked up */
    uint64_t frequent;   /* of those, distinct ones found in more than 128 documents */
    uint64_t candidates; /* pairs that were compared word for word */
    uint64_t pairs;
    uint64_t spilled_bytes;
} doppel_overlap_counts;

/* Finds the documents of the paths that overlap: sampled hashes of runs of words through an inverted index, then the
 * texts themselves, so that every pair given is verified. A hash found in more than 128 documents pairs each of them
 * with the first only; documents with the same words as an earlier one are paired with the first of them only (with
 * `against`: those of `against` are not paired). Texts are kept, compressed, in a file in `tmp`; memory is about 20
 * bytes per document plus `memory`. At most 2^31 - 1 documents. The pairs do not depend on threads or memory. Errors:
 * those of doppel_input_run, DOPPEL_ERROR_USAGE with a message that says what is allowed. `counts` and `error` may be
 * NULL. */
DOPPEL_API doppel_status doppel_overlap_find(const char *const *paths, size_t path_count,
                                             const doppel_overlap_options *options, doppel_overlap_counts *counts,
                                             doppel_error *error);

/* The texts of a pair, which its passages refer to. Call it only from the callback `pair`; the texts are borrowed until
 * that returns or calls this again. Errors: DOPPEL_ERROR_IO, DOPPEL_ERROR_MEMORY; `error` may be NULL. */
DOPPEL_API doppel_status doppel_overlap_get_texts(const doppel_overlap *pair, doppel_slice *a, doppel_slice *b,
                                                  doppel_error *error);

/* Two hosts, or prefixes of hosts, whose pages at equal paths are near-identical. */
typedef struct doppel_mirror {
    const char *a, *b; /* "host" or "host/prefix", a before b in byte order (with `page`: the page is in a) */
    uint64_t shared;   /* paths that both have */
    uint64_t matching; /* of those, with near-identical pages */
    double score;      /* matching / shared */
    const char *page;  /* with options.page: the URL, as read, of the same page in b; NULL: b does not have it */
} doppel_mirror;

typedef struct doppel_mirrors_options {
    size_t size;                 /* sizeof(doppel_mirrors_options) */
    const doppel_recipe *recipe; /* NULL: page */
    uint64_t min_paths;          /* shared paths, at least; 0: 3 */
    double min_score;            /* 0: 0.5 */
    double similarity;           /* pages with at least this estimated Jaccard are near-identical; 0: 0.8 */
    const char *page;            /* only mirrors of this URL's page; NULL: all */
    unsigned url_without;        /* URL rules not to apply */
    doppel_content content;
    uint64_t memory; /* bytes; 0: half of the machine's free memory. Beyond it, files in `tmp`. */
    const char *tmp; /* NULL: the environment's TMPDIR, else /tmp */
    const doppel_input_options *input;
    /* Receives each pair, in byte order of (a, b). A status other than DOPPEL_OK ends the run. */
    doppel_status (*mirror)(const doppel_mirror *mirror, void *user);
    void *user;
} doppel_mirrors_options;

typedef struct doppel_mirrors_counts {
    doppel_input_counts input;
    uint64_t pages;      /* with words and an http URL; of several with the same URL the first counts */
    uint64_t frequent;   /* contents found on so many pages with the same path end that these were paired with the first
                            only */
    uint64_t candidates; /* pairs of prefixes whose paths were compared */
    uint64_t mirrors;
    uint64_t spilled_bytes;
} doppel_mirrors_counts;

/* Finds the mirrors among the pages of the paths. Pages are paired by the last segment of their path and their content;
 * how far their paths agree from the end gives the prefixes that may mirror each other, and then all paths below these
 * are compared. Of nested prefixes the longest that holds all matching paths is given, but not one that excludes no
 * page. If more than 64 pages with the same last segment have the same content (parked hosts), each is paired only with
 * those that share the last two segments, and if these are still more than 64, only with the first. A prefix has at
 * most 11 segments. Crawls of any size: everything is sorted, in files in `tmp` beyond `memory`. Errors: as
 *
 * doppel_overlap_find. */
DOPPEL_API doppel_status doppel_mirrors_find(const char *const *paths, size_t path_count,
                                             const doppel_mirrors_options *options, doppel_mirrors_counts *counts,
                                             doppel_error *error);

/* ---- 14. The engine: remembers documents it has seen ---- */

/* Remembers documents and says whether a new one was seen before, with what confidence and why. In a folder (LMDB), or
 * in memory.
 *
 *     doppel_engine *engine;
 *     doppel_engine_open("seen", NULL, &engine, &error);
 *     doppel_item item = {.size = sizeof item, .document = document};
 *     doppel_verdict verdict = {0};
 *     doppel_engine_add(engine, &item, &verdict, &error);
 *     if (verdict.is_duplicate) ...
 *     doppel_verdict_free(&verdict);
 *     doppel_engine_close(engine);
 *
 * Evidence is searched in order: the same canonical URL, the same words, near content, a similar title. The first kind
 * that finds a document decides; of several documents the most similar is the original, ties go to the one added first.
 * Only originals are searched: a copy is never the original of another.
 *
 * Threads: any number may use an engine at once. A check never waits for an add to reach the disk, and does not see an
 * add that has not. Of any number of simultaneous adds of copies exactly one is unique and the others name it. An add
 * returns when it is durable. One process may write to a folder; any number may read it and see new writes. */
typedef struct doppel_engine doppel_engine;

/* For options that a preset sets, 0 means the preset's value (or, for an existing folder, the value it was made
 * with). */
typedef enum doppel_near_by {
    DOPPEL_NEAR_PRESET,
    DOPPEL_NEAR_DISTANCE,  /* fingerprints within `distance` bits */
    DOPPEL_NEAR_SIMILARITY /* similarity of at least `similarity`, verified on the kept feature hashes */
} doppel_near_by;

typedef enum doppel_switch { DOPPEL_SWITCH_PRESET, DOPPEL_SWITCH_ON, DOPPEL_SWITCH_OFF } doppel_switch;

typedef enum doppel_on_duplicate {
    DOPPEL_DUPLICATE_PRESET,
    DOPPEL_DUPLICATE_SKIP, /* it is counted at its original; if its words are not near the original's, they are
                              remembered */
    DOPPEL_DUPLICATE_LINK, /* its id, URL, title and fields are remembered under the original */
    DOPPEL_DUPLICATE_STORE /* it is stored like any other, but is not an original */
} doppel_on_duplicate;

typedef enum doppel_on_same_url {
    DOPPEL_SAME_URL_PRESET,
    DOPPEL_SAME_URL_DUPLICATE, /* the same URL is a duplicate, whatever the text */
    DOPPEL_SAME_URL_REFRESH    /* different text at the same URL replaces the old */
} doppel_on_same_url;

typedef enum doppel_durability {
    DOPPEL_DURABLE_PRESET, /* batch */
    DOPPEL_DURABLE_NONE,   /* acknowledged at once, on disk within a second; never damaged, but the last adds may be
                             lost */
    DOPPEL_DURABLE_BATCH,  /* acknowledged once it is on disk; concurrent adds share one commit */
    DOPPEL_DURABLE_EACH    /* one commit per document */
} doppel_durability;

typedef enum doppel_log_level { DOPPEL_LOG_ERROR, DOPPEL_LOG_WARNING, DOPPEL_LOG_INFO } doppel_log_level;

#define DOPPEL_NEVER UINT64_MAX
#define DOPPEL_CLOCK_TRUSTED UINT64_MAX
#define DOPPEL_SAMPLE_ALL UINT64_MAX

typedef struct doppel_engine_options {
    size_t size;        /* sizeof(doppel_engine_options) */
    const char *preset; /* "general" (NULL): recipe page, near by similarity 0.8, titles on, no expiry;
                           "crawl": recipe page, near by similarity 0.8 estimated on samples, titles off, 30 days;
                           "article": pairs of words of the first 5000 characters, near by similarity 0.8, titles
                           on, no expiry.
                           In a shared store NULL is "crawl", and documents expire after 30 days by default.
                           For an existing folder: NULL or the one it was made with. */
    /* Fixed when a folder is made: opening it with other values is refused, and the message names both. A folder in
     * which nothing was ever stored takes other values, as a new one does, unless must_exist or read_only. */
    const doppel_recipe *recipe; /* must outlive the engine */
    doppel_near_by near;
    double similarity;  /* 0.8 */
    int distance;       /* 3 */
    bool distance_zero; /* only equal fingerprints are near; `distance` is ignored */
    uint64_t min_words; /* documents with fewer are near only if their words are the same; 5 */
    doppel_switch titles;
    double title_similarity; /* 0.9 */
    doppel_switch keep_text; /* off; compressed */
    doppel_content content;
    unsigned url_without; /* URL rules not to apply */
    const char *fields; /* document fields kept with it (extra of doppel_document, in this order), separated by commas;
                           NULL: "source,date"; at most 16 */
    /* May differ each time the folder is opened. */
    doppel_on_duplicate on_duplicate; /* skip */
    doppel_on_same_url on_same_url;   /* duplicate */
    uint64_t ttl;                     /* seconds that a document is remembered; DOPPEL_NEVER: forever */
    double title_share; /* a title that more than this share of the documents, and more than 8, have is not evidence;
                           0.001 */
    doppel_durability durability;
    bool read_only;
    bool must_exist; /* do not create a folder */
    int threads;     /* for batches and opening; 0: one for each CPU this process may use */
    uint64_t count;  /* expected number of documents; 0: not known */
    uint64_t memory; /* bytes for fingerprints of `count` documents; 0: about 40 bytes each */
    uint64_t map;    /* initial bytes of address space; grows automatically; 0: 64 GiB */
    /* Seconds since 1970, instead of the system clock; clock_settle applies to it too. */
    uint64_t (*now)(void *user);
    /* A line of the log, without its end: "[DeduplicationService] CHECK_START ...". From any thread. NULL: none. */
    void (*log)(doppel_log_level level, const char *line, void *user);
    doppel_log_level log_level; /* lines above it are not logged */
    bool log_json;              /* lines are JSON objects */
    void *user;
    /* Stored with the folder, and may differ each time it is opened: if both documents have at least min_words words, a
     * content similarity below half of `similarity` overrides a similar title. Only with near by similarity:
     * DOPPEL_SWITCH_ON is refused with near by distance. On in "general" and "crawl", off in "article" and in folders
     * made before this option existed. */
    doppel_switch title_veto;
    /* For a folder opened for writing: its group may read it, regardless of the umask, now and after it is compacted. A
     * reader has to write to LMDB's lock, so the group may do that too. docs/ENGINE.md, "Who may read an index". */
    bool group_readable;
    /* A folder stores the time it uses. If the clock jumps, by more than a day or by more than the machine's uptime
     * since, it is believed only after this many seconds (0: 3600). Until then documents match by the folder's time,
     * which keeps running, are purged by the earlier of the two, and expire by the later if they are added in that
     * period; a jump of more than a day is logged. DOPPEL_CLOCK_TRUSTED: every reading counts at once. */
    uint64_t clock_settle;
    /* With read_only: open a folder even if it is damaged, and treat what cannot be read as absent;
     * doppel_engine_stats.damaged counts it. Otherwise a damaged folder is refused, and a call that meets damage later
     * fails with DOPPEL_ERROR_STORE. */
    bool salvage;
    /* Fixed when a folder is made, for near by similarity: how many of a document's feature hashes are kept, from 16 to
     * 4096, a sample from which the similarity is estimated (evidence.verified is then false); DOPPEL_SAMPLE_ALL: all,
     * and the similarity is exact. "crawl" keeps 192, the others all. */
    uint64_t sample;
} doppel_engine_options;

/* Opens the engine of a folder, which is created if missing (its parent must exist), or, with path NULL, a new one in
 * memory, or, with a URL (redis://HOST:PORT/DB?prefix=NAME; docs/ENGINE.md has all forms), a store that any number of
 * processes share: preset crawl unless another is named, everything for 30 days unless said otherwise. `options` may be
 * NULL. Errors: DOPPEL_ERROR_USAGE for invalid options, DOPPEL_ERROR_STORE when another process has the folder open for
 * writing (the message names it), or it was made with another recipe or a newer version, or is truncated or damaged,
 * DOPPEL_ERROR_AWAY (the URL's server does not answer), DOPPEL_ERROR_IO, DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_engine_open(const char *path, const doppel_engine_options *options,
                                            doppel_engine **engine, doppel_error *error);
/* Waits until all adds are durable. No other call may be in progress. */
DOPPEL_API void doppel_engine_close(doppel_engine *engine);

/* For a process that is shutting down: from now on, calls that wait for a shared store that does not answer fail with
 * DOPPEL_ERROR_AWAY within about a second, instead of after its `retry` seconds. While the store answers, nothing
 * changes. For a folder it does nothing. Any thread may call it, and so may a signal handler. */
DOPPEL_API void doppel_engine_stop_waiting(doppel_engine *engine);

/* Loads the functions that a shared store needs into its Redis, as an administrator, so that users without the right to
 * load functions can use it: into one server, the master named by Sentinels, or all masters of a Cluster. Functions of
 * other versions are kept. `url` is as for doppel_engine_open; its prefix does not matter. `server` (NULL: not wanted)
 * is called for each server with its address, the name of the library, and "loaded", "present" (nothing to do) or
 * "replaced" (there was other code under that name). Errors: DOPPEL_ERROR_USAGE, DOPPEL_ERROR_AWAY, DOPPEL_ERROR_STORE
 * (wrong password, missing rights), DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_store_prepare(const char *url,
                                              void (*server)(const char *server, const char *library, const char *state,
                                                             void *user),
                                              void *user, doppel_error *error);

/* What an engine needs from its process and machine. It follows from the path alone: nothing is opened or queried. */
typedef struct doppel_engine_needs {
    bool folder;     /* a local folder, which must exist (or its parent, to create it) and be writable */
    bool connects;   /* connects to a server, whose name is resolved: calls wait for its answers, and fail with
                        DOPPEL_ERROR_AWAY while it does not answer */
    bool one_writer; /* no second process may write to it */
} doppel_engine_needs;
/* `path` is as for doppel_engine_open. Errors: DOPPEL_ERROR_USAGE for an empty one. */
DOPPEL_API doppel_status doppel_engine_get_needs(const char *path, doppel_engine_needs *needs, doppel_error *error);

/* The options in effect, defaults filled in. */
DOPPEL_API const doppel_engine_options *doppel_engine_get_options(const doppel_engine *engine);

typedef struct doppel_stored doppel_stored;

/* A document to check or add. An id names a document permanently: give none rather than a number that restarts with
 * each run, since a different text with an existing id replaces the old one. */
typedef struct doppel_item {
    size_t size; /* sizeof(doppel_item) */
    /* `id`, `url`, `title`, `text` or `html`, and in `extra` the values of options.fields (NULL: none). In an add, a
     * missing id becomes the canonical URL, else 16 hex digits of the digest. */
    doppel_document document;
    /* Sketches instead of a text, made with the engine's recipe; NULL: made from the text. With near by similarity,
     * `set` is needed too. */
    const uint64_t *fingerprint; /* one number, or two for 128 bits */
    const uint8_t *digest;       /* 32 bytes; NULL with a fingerprint: no digest */
    const uint64_t *set;         /* distinct feature hashes, ascending */
    size_t set_count;
    uint64_t words; /* with a fingerprint: the number of words of the text; 0: at least min_words */
    uint64_t ttl;   /* seconds; 0: the engine's; DOPPEL_NEVER */
    /* Add: restore a document as doppel_engine_each gave it; nothing is decided. Used from it: when it was added and
     * expires, how many duplicates it had and, for a copy, its original (which must be present; if that is a copy here,
     * the original of that one takes its place), the reason and the evidence; the rest comes from the item. A copy
     * needs no set. NULL: it is new. */
    const doppel_stored *restore;
    /* Add: where it comes from, e.g. "pages/3/1207" for a record of a log, kept with the document; data NULL: not
     * given. An add with the origin of a stored document is the same document again and gets its first verdict again:
     * nothing is ever a duplicate of itself. With another origin, an existing id with the same words is a duplicate. At
     * most 1,024 bytes. */
    doppel_slice origin;
    /* With a fingerprint, instead of `set`: doppel_stored.sample from an index with the same similarity and sample. */
    doppel_slice sample;
    /* With `restore`, into an engine that has other documents: an original is decided like a new one, and may be a
     * duplicate here. Each copy counts as a duplicate of the original it goes to, so that only those duplicates of an
     * original that were not kept as copies are taken over (doppel_stored.duplicates_by less copies_by). */
    bool merge;
} doppel_item;

/* What was measured on a pair. NaN and -1: not known. */
typedef struct doppel_evidence {
    int distance;
    double similarity;  /* Jaccard of the feature sets */
    double containment; /* the share of the new document's features that the original has */
    double title_similarity;
    bool same_url, same_digest;
    bool verified; /* similarity was computed on the full sets (or the words are the same) */
} doppel_evidence;

/* Zero is empty; the memory of a verdict is reused by the next call that fills it. */
typedef struct doppel_verdict {
    bool is_duplicate;
    bool known;    /* add: the id was present with the same words (or the same origin), and this is its first verdict
                     again */
    bool replaced; /* add: it replaced an earlier version */
    double confidence; /* 1 for the same URL or words; the similarity, else 1 - distance/bits; for titles the title
                          similarity, or its mean with `similarity` if that is known */
    doppel_reason reason;
    doppel_evidence evidence;
    doppel_slice id;          /* of the document, as given or derived */
    doppel_slice original_id; /* data NULL: none */
    char *memory;             /* what both point into */
    size_t memory_size;
    bool id_known; /* add: a duplicate whose id another copy had already: nothing was stored under it */
} doppel_verdict;
DOPPEL_API void doppel_verdict_free(doppel_verdict *verdict);

/* A verdict as a JSON object, written to `to`, at most `room` bytes including the terminating NUL; returns its full
 * length without the NUL, which may exceed `room`. With `lead` it begins with "id". */
DOPPEL_API size_t doppel_verdict_json(const doppel_verdict *verdict, bool lead, char *to, size_t room);

/* Whether a document was seen; changes nothing. Its id is ignored: a stored document with the same id counts like any
 * other. With on_same_url refresh, different words at a known URL are checked against all documents but the one with
 * that URL, as in an add. Errors: DOPPEL_ERROR_USAGE (fingerprint of the wrong kind), DOPPEL_ERROR_INPUT (an id or URL
 * of over 64 KiB, a page that cannot be read), DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_STORE, DOPPEL_ERROR_AWAY. */
DOPPEL_API doppel_status doppel_engine_check(doppel_engine *engine, const doppel_item *item, doppel_verdict *verdict,
                                             doppel_error *error);

/* Checks and adds, atomically. An existing id: with the same words it gets its first verdict again; with different
 * words the new version replaces the old and is checked against all others; links to the old version and its counts are
 * removed with it. A derived id that exists is treated alike, unless what has it also has the URL, or the words, that
 * the id was derived from: then this is a duplicate as any other, of an original that may have that same id. After
 * DOPPEL_ERROR_IO, DOPPEL_ERROR_STORE or DOPPEL_ERROR_AWAY the document is not acknowledged (it is absent or complete),
 * and the engine remains usable. DOPPEL_ERROR_INPUT for one that has no id, no URL and no words. On an error the
 * verdict is unchanged. */
DOPPEL_API doppel_status doppel_engine_add(doppel_engine *engine, const doppel_item *item, doppel_verdict *verdict,
                                           doppel_error *error);

/* Many at once, sketched on several threads, which concurrent calls share; verdicts as if the items had been given one
 * by one. `errors` (NULL: the first item that fails ends the call; those before it are added) gets the error of each
 * item, code DOPPEL_OK if none; a bad item then does not affect the others, and the call fails only with errors that
 * concern all. All are durable when it returns, in one commit. */
DOPPEL_API doppel_status doppel_engine_check_batch(doppel_engine *engine, const doppel_item *items, size_t count,
                                                   doppel_verdict *verdicts, doppel_error *errors, doppel_error *error);
DOPPEL_API doppel_status doppel_engine_add_batch(doppel_engine *engine, const doppel_item *items, size_t count,
                                                 doppel_verdict *verdicts, doppel_error *errors, doppel_error *error);

/* Orders the decisions of batches that threads add at the same time. */
typedef struct doppel_turn {
    size_t size;              /* sizeof(doppel_turn) */
    void (*wait)(void *user); /* returns when all batches before it are decided */
    void (*pass)(void *user); /* this batch is decided: the next one may proceed */
    void *user;
} doppel_turn;

/* doppel_engine_add_batch for a sequence of batches: verdicts as if they had been given one after the other, while one
 * thread sketches a batch, another decides, and a third waits for the disk. Each batch is one call, from its own
 * thread; the call invokes `wait` after sketching, and `pass` before waiting for the disk: each exactly once, even on
 * errors, and without holding a lock. turn NULL: as doppel_engine_add_batch. After an error, batches decided since may
 * or may not have failed too: their own calls report it. */
DOPPEL_API doppel_status doppel_engine_add_in_turn(doppel_engine *engine, const doppel_item *items, size_t count,
                                                   const doppel_turn *turn, doppel_verdict *verdicts,
                                                   doppel_error *errors, doppel_error *error);

/* Removes a document, and with it its copies. *removed (may be NULL): whether it was present. */
DOPPEL_API doppel_status doppel_engine_remove(doppel_engine *engine, doppel_slice id, bool *removed,
                                              doppel_error *error);

/* A stored document. Everything is borrowed from the list or callback it came in. */
struct doppel_stored {
    uint64_t number;                     /* in the order of adding, from 1 */
    doppel_slice id, url, title, fields; /* url as given; fields: a JSON object; data NULL: none */
    doppel_slice canonical;              /* the canonical URL */
    doppel_slice text;                   /* with keep_text; data NULL: not kept */
    doppel_slice original_id;            /* of a copy (link, store): its original; data NULL: it is an original */
    doppel_reason reason;                /* of a copy */
    doppel_evidence evidence;            /* of a copy */
    uint64_t added, expires;             /* seconds since 1970; expires 0: never */
    uint64_t words;
    uint64_t fingerprint[2];
    uint8_t digest[32];
    const uint64_t *set; /* with near by similarity; NULL: none kept */
    size_t set_count;
    uint64_t duplicates;                    /* copies seen so far, removed ones too */
    uint64_t duplicates_by[DOPPEL_REASONS]; /* the same by doppel_reason */
    uint64_t last_duplicate;                /* time of the last one; 0: none */
    const doppel_slice *aliases;            /* URLs linked to it, in the order of adding */
    size_t alias_count;
    double similarity, containment; /* in a list of similar documents: to the query; NaN: not known */
    int distance;
    doppel_slice origin; /* as in doppel_item; data NULL: not given */
    doppel_slice sample; /* if a sample of the feature hashes is kept (then `set` is NULL, and set_count that of the
                            whole set): the sample and its band keys (docs/FORMAT.md); only from doppel_engine_each */
    uint64_t copies;     /* remembered under it (link, store) and not removed since, with a URL or without */
    uint64_t copies_by[DOPPEL_REASONS]; /* the same by doppel_reason */
};

/* Documents found by a call. Zero is empty. */
typedef struct doppel_stored_list {
    doppel_stored *stored;
    size_t count;
    void *memory; /* what they point into */
} doppel_stored_list;
DOPPEL_API void doppel_stored_list_free(doppel_stored_list *list);

/* The document with this id or, if there is none, with this URL: none or one. */
DOPPEL_API doppel_status doppel_engine_get(doppel_engine *engine, doppel_slice id_or_url, doppel_stored_list *list,
                                           doppel_error *error);

typedef struct doppel_similar_options {
    size_t size;        /* sizeof(doppel_similar_options) */
    uint64_t limit;     /* 0: 10 */
    double similarity;  /* above this; 0: 0.85. If no feature hashes are kept: 1 - distance/bits */
    int distance;       /* fingerprints within this many bits instead; 0: by similarity */
    bool distance_zero; /* only equal fingerprints; `distance` is ignored */
} doppel_similar_options;

/* The originals most similar to an item, the most similar first, ties by order of adding. An item with only an id or a
 * URL means the stored document, which is left out of its own list. Below the similarity (or beyond the distance) that
 * the engine was made for it may compare all documents. Errors: as check, DOPPEL_ERROR_INPUT for an unknown id. */
DOPPEL_API doppel_status doppel_engine_find_similar(doppel_engine *engine, const doppel_item *item,
                                                    const doppel_similar_options *options, doppel_stored_list *list,
                                                    doppel_error *error);

/* Every document, copies too, in the order of adding; documents added or removed during the call may or may not be
 * given. `document` returns false to end the call with DOPPEL_ERROR_INTERRUPTED. Damaged records are left out; *damaged
 * (may be NULL) counts them. */
DOPPEL_API doppel_status doppel_engine_each(doppel_engine *engine,
                                            bool (*document)(const doppel_stored *stored, void *user), void *user,
                                            uint64_t *damaged, doppel_error *error);

/* Which documents a list has. */
typedef enum doppel_list_kind { DOPPEL_LIST_ALL, DOPPEL_LIST_ORIGINALS, DOPPEL_LIST_COPIES } doppel_list_kind;

typedef struct doppel_list_options {
    size_t size;    /* sizeof(doppel_list_options) */
    uint64_t after; /* documents with a higher number than this */
    uint64_t limit; /* 0: 100 */
    doppel_list_kind kind;
    /* Only copies of the document with this id or URL, as kept by on_duplicate link or store; data NULL: any. */
    doppel_slice copies_of;
    /* Instead, originals whose title is similar enough to this one for a check, the most similar first, with the title
     * similarity in doppel_stored.similarity; `after`, `kind` and copies_of are ignored. None if the engine has titles
     * off, or for a title of less than 10 code points. Data NULL: not by title. */
    doppel_slice title;
    /* Filter: whether a document is wanted; NULL: all are. It must not call the engine. */
    bool (*wanted)(const doppel_stored *stored, void *user);
    void *user;
} doppel_list_options;

/* A page of a list: documents in the order of adding, without their texts and sets. *next (may be NULL) is the `after`
 * of the next page, 0 after the last. A call examines at most 4,096 documents, so a page may have fewer than `limit`,
 * even none, and more may follow. Nothing is counted as a check. Errors: DOPPEL_ERROR_INPUT when the document copies_of
 * does not exist, and those of doppel_engine_get. */
DOPPEL_API doppel_status doppel_engine_list(doppel_engine *engine, const doppel_list_options *options,
                                            doppel_stored_list *list, uint64_t *next, doppel_error *error);

/* The originals with the most copies, the largest first. */
DOPPEL_API doppel_status doppel_engine_groups(doppel_engine *engine, uint64_t limit, doppel_stored_list *list,
                                              doppel_error *error);

/* Removes expired documents; this also happens automatically every minute while documents are added. *expired may be
 * NULL. */
DOPPEL_API doppel_status doppel_engine_expire(doppel_engine *engine, uint64_t *expired, doppel_error *error);

/* Rewrites the index in its smallest form: removed documents and links to them are erased, and a folder's file shrinks.
 * Other calls continue; adds wait for its last step, a few hundred documents. While it runs, a folder takes the disk
 * space of both files. A second call waits for the first. */
DOPPEL_API doppel_status doppel_engine_compact(doppel_engine *engine, doppel_error *error);

/* Writes a complete copy of the folder, as of this moment, to a new folder, while the engine stays in use. Engines that
 * are not folders give DOPPEL_ERROR_USAGE and say what to do instead. */
DOPPEL_API doppel_status doppel_engine_backup(doppel_engine *engine, const char *path, doppel_error *error);

/* Checks a whole index, every record; a folder in a child process, so that a damaged file cannot harm this one. `path`
 * is as for doppel_engine_open. Each finding is passed to `finding` (may be NULL) as a sentence. DOPPEL_ERROR_STORE
 * when there is any. */
typedef struct doppel_verified {
    uint64_t documents, copies, removed; /* intact records */
    uint64_t damaged;                    /* documents that are lost or not fully readable */
    uint64_t bytes;
} doppel_verified;
DOPPEL_API doppel_status doppel_engine_verify(const char *path, void (*finding)(const char *what, void *user),
                                              void *user, doppel_verified *verified, doppel_error *error);

/* A histogram: bucket i counts values less than 2^i (microseconds or candidates), the last one all the rest. */
#define DOPPEL_BUCKETS 24
typedef struct doppel_histogram {
    uint64_t bucket[DOPPEL_BUCKETS];
    uint64_t count, sum;
} doppel_histogram;

typedef struct doppel_engine_stats {
    /* Current contents. */
    uint64_t documents, copies; /* originals; linked or stored copies */
    uint64_t titles;
    uint64_t duplicates_by[DOPPEL_REASONS]; /* ever counted, by doppel_reason */
    uint64_t oldest, newest;                /* when they were added */
    uint64_t disk_bytes, free_bytes;        /* the file; the reusable part of it */
    uint64_t memory_bytes;                  /* the sum of those below */
    uint64_t keys_bytes, near_bytes, title_bytes;
    char plan[64]; /* the layout of the Hamming index, or "BANDSxROWS" */
    uint64_t last; /* the last number assigned */
    /* Since it was opened. */
    uint64_t checks, adds, removes, expired, damaged, commits, failed_commits;
    uint64_t verdicts_by[DOPPEL_REASONS];               /* of checks and adds, by doppel_reason; NONE: unique */
    doppel_histogram check_time, add_time, commit_time; /* microseconds */
    doppel_histogram candidates;                        /* per check or add */
    doppel_histogram distances;                         /* of duplicates by content */
    double open_seconds;
    uint64_t reconnects, resent, moved; /* of a shared store: connections re-established, requests resent, answers that
                                           named another node; since it was opened */
} doppel_engine_stats;
DOPPEL_API void doppel_engine_get_stats(doppel_engine *engine, doppel_engine_stats *stats);

/* Search results, folded: fold[i] is the number of the result that i is a near-copy of, or i itself if it is to be
 * shown. In the given order, a result is shown unless it is near an earlier shown one, or has the same words as a
 * folded one. `options` are those of an engine (NULL: the defaults) and nothing is kept; `verdicts` (NULL: not wanted)
 * has `count` elements. There a result without an id is named by its URL, else by its number. Errors: as
 * doppel_engine_open and doppel_engine_add; the message names the result. */
DOPPEL_API doppel_status doppel_dedupe_results(const doppel_item *results, size_t count,
                                               const doppel_engine_options *options, size_t *fold,
                                               doppel_verdict *verdicts, doppel_error *error);

#ifdef __cplusplus
}
#endif
#endif
