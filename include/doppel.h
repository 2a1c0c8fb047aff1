/* doppel.h - find the documents you have already seen.
 *
 * Read from the top: one call turns a text into a fingerprint, one compares two texts. Below them stand the parts those
 * calls are made of: recipes, sketchers, the caller's own features, document-frequency tables, measures, documents from
 * files.
 *
 * Ownership, for all of this header: what a `create`, `parse` or `open` gives is the caller's, and ends with the `free`
 * or `close` of the same noun (which accept NULL); what any other call gives is borrowed from the object it came from,
 * and valid until the next call that changes that object. Text is UTF-8 with a length; it needs no NUL and may hold any
 * bytes.
 *
 * Threads: objects that are only read (recipes, frequency tables once opened) may be shared; everything that is written
 * (sketchers, inputs) belongs to one thread at a time. There is no global state but the choice of CPU level, made once.
 *
 * Errors: a call that can fail gives a doppel_status. Where it takes a doppel_error, that may be NULL; otherwise it is
 * filled on failure with a message that says what was wrong, where, and what to do. */
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

/* Pinned values. 2 to 5 are also the exit codes of the command. */
typedef enum doppel_status {
    DOPPEL_OK = 0,
    DOPPEL_ERROR_USAGE = 2,       /* an argument, option or recipe that makes no sense */
    DOPPEL_ERROR_INPUT = 3,       /* a file or record that cannot be read as what it says it is */
    DOPPEL_ERROR_STORE = 4,       /* a table or index that cannot be read or written */
    DOPPEL_ERROR_INTERRUPTED = 5, /* a callback asked to stop */
    DOPPEL_ERROR_MEMORY = 6,      /* no memory */
    DOPPEL_ERROR_IO = 7           /* the system refused a read, write or open */
} doppel_status;

/* What went wrong. `file` is empty, `line` and `position` are 0, where they mean nothing. Lines and positions count
 * from 1. A path too long for `file` is given by its end, behind "...". */
typedef struct doppel_error {
    doppel_status code;
    uint64_t line;
    uint64_t position;
    char file[256];
    char message[512];
} doppel_error;

/* The version of the library that is running, e.g. "0.1.0". */
DOPPEL_API const char *doppel_version(void);

/* A fixed English name of a status, e.g. "bad input". */
DOPPEL_API const char *doppel_status_name(doppel_status status);

/* The CPU level the kernels run at: "portable", "avx2", "avx512" or "neon". The environment variable DOPPEL_CPU lowers
 * it (never raises it); it is read at the first call that needs a kernel. */
DOPPEL_API const char *doppel_cpu_level(void);

/* ---- 1. Simple ---- */

/* The 64-bit fingerprint of a text by the default recipe, `page`. A text without words has fingerprint 0.
 * Errors: DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_fingerprint(const char *text, size_t length, uint64_t *fingerprint);

/* How many of the 64 bits differ. */
DOPPEL_API int doppel_distance(uint64_t a, uint64_t b);

/* Every measure on two texts. A measure that has no value is NaN (signature_similarity when a side has no words, the
 * containment of a side without words, edit_similarity of texts that are too long) or -1 (distance when a side has no
 * words, edit distances of texts that are too long). */
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
    int64_t edit_distance;                 /* Levenshtein on code points of the normalised texts; -1: too long */
    int64_t indel_distance;                /* the same with insertions and deletions only */
    double edit_similarity;                /* 1 - edit_distance / the longer length */
    bool same_digest;                      /* the normalised words are the same */
    uint8_t digest_a[32], digest_b[32];    /* SHA-256 of the normalised words; all 0 when there are none */
} doppel_comparison;

typedef struct doppel_recipe doppel_recipe;

/* Compares two texts by a recipe (NULL: `page`). Edit distances are worked out while the product of both lengths in
 * code points, less what is the same at both ends, is at most 2^36, which takes a few seconds at worst. Errors:
 * DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT for a word (or a shingle) of over 2 GiB. */
DOPPEL_API doppel_status doppel_compare(const doppel_recipe *recipe, const char *a, size_t a_length, const char *b,
                                        size_t b_length, doppel_comparison *out);

/* A run of words that two texts share, as byte ranges of the texts as they were given. */
typedef struct doppel_passage {
    uint64_t a_start, a_end;
    uint64_t b_start, b_end;
    uint64_t words;
} doppel_passage;

/* The longest common runs of at least `min_words` words, in the order of A, none overlapping another in A or in B.
 * Where texts repeat themselves (a run of words that stands in B more than 16 times), only some of the places are
 * tried: what is given is always shared, but a longer run may be given in parts. Words are as `recipe` normalises them
 * (NULL: `page`). *passages is malloc'ed; free() it. Errors: DOPPEL_ERROR_USAGE when min_words is 0,
 * DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT for a text with more than 2 GiB of words. */
DOPPEL_API doppel_status doppel_passages(const doppel_recipe *recipe, const char *a, size_t a_length, const char *b,
                                         size_t b_length, size_t min_words, doppel_passage **passages, size_t *count);

/* ---- 2. Recipes: exactly how text becomes sketches ---- */

typedef struct doppel_df doppel_df;

/* What a recipe refers to but does not hold. Zero means none. The table must live as long as the recipe. */
typedef struct doppel_recipe_parts {
    size_t size;            /* sizeof(doppel_recipe_parts) */
    const char *stop_words; /* white-space separated; copied */
    size_t stop_words_length;
    const doppel_df *df; /* for weight=tfidf; borrowed */
} doppel_recipe_parts;

/* Parses the text form, e.g. "simhash64:words=5:hash=fast:weight=tf", or a name: page, article, literal. docs/FORMAT.md
 * lists every part. `parts` may be NULL.
 * Errors: DOPPEL_ERROR_USAGE with a message that names the part and lists what is allowed (error->position is where in
 * the text it stands), DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_recipe_parse(const char *text, const doppel_recipe_parts *parts, doppel_recipe **recipe,
                                             doppel_error *error);
DOPPEL_API void doppel_recipe_free(doppel_recipe *recipe);

/* The canonical text form: the same recipe always prints the same, and parsing it gives the same recipe. */
DOPPEL_API const char *doppel_recipe_text(const doppel_recipe *recipe);

/* Bits of the fingerprint, 1 to 64 or 128. */
DOPPEL_API int doppel_recipe_bits(const doppel_recipe *recipe);

/* The Unicode version this library normalises with, e.g. "15.0.0". */
DOPPEL_API const char *doppel_unicode_version(void);

/* A message when the recipe was written for another Unicode version (`unicode=`), else NULL. */
DOPPEL_API const char *doppel_recipe_warning(const doppel_recipe *recipe);

/* ---- 3. Sketchers: text in, fingerprint, signature, sample and digest out ---- */

/* What to work out beside the fingerprint; or them together. */
enum {
    DOPPEL_WANT_DIGEST = 1,   /* SHA-256 of the normalised words */
    DOPPEL_WANT_FEATURES = 2, /* the hash of each feature, in order, repeats kept */
    DOPPEL_WANT_SET = 4,      /* the distinct feature hashes, ascending */
    DOPPEL_WANT_TEXT = 8      /* the normalised words, one space between */
};

typedef struct doppel_sketch {
    uint64_t fingerprint[2];   /* low 64 bits, high 64 bits (0 up to 64 bits) */
    uint64_t words;            /* after stop words were left out; for chars=, code points */
    uint64_t features;         /* repeats counted */
    uint8_t digest[32];        /* WANT_DIGEST; all 0 when there are no words */
    const uint32_t *signature; /* `slots` of them, with minhash= in the recipe; NULL when there are no words */
    size_t slots;
    const uint64_t *sample; /* distinct feature hashes that are 0 mod p, ascending, with sample= in the recipe */
    size_t sample_count;
    const uint64_t *feature_hashes; /* WANT_FEATURES: `features` of them */
    const uint64_t *set;            /* WANT_SET */
    size_t set_count;
    const char *text; /* WANT_TEXT */
    size_t text_length;
} doppel_sketch;

typedef struct doppel_sketcher doppel_sketcher;

/* A sketcher for one thread. The recipe must outlive it. Memory: for weight=tf alone, a fixed buffer (and the longest
 * shingle); for other weights, signatures, samples and sets, 8 bytes a feature of the document at hand.
 * Errors: DOPPEL_ERROR_USAGE, DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_sketcher_create(const doppel_recipe *recipe, unsigned wants, doppel_sketcher **sketcher,
                                                doppel_error *error);
DOPPEL_API void doppel_sketcher_free(doppel_sketcher *sketcher);

/* One document in one call. Pointers in `out` are borrowed until the next call on this sketcher.
 * Errors, here and below: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT for a word (or a shingle) of over 2 GiB. */
DOPPEL_API doppel_status doppel_sketcher_run(doppel_sketcher *sketcher, const char *text, size_t length,
                                             doppel_sketch *out);

/* One document in pieces, cut anywhere: reset, add ..., finish. Gives what `run` gives on the whole. */
DOPPEL_API void doppel_sketcher_reset(doppel_sketcher *sketcher);
DOPPEL_API doppel_status doppel_sketcher_add(doppel_sketcher *sketcher, const char *piece, size_t length);
DOPPEL_API doppel_status doppel_sketcher_finish(doppel_sketcher *sketcher, doppel_sketch *out);

/* Byte range [start, end) in the given text of each of its normalised words (for showing where they came from). With
 * chars= the words are what stands between spaces. *ranges is malloc'ed, two numbers a word; free() it.
 * Errors: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT for more than 2 GiB of words. */
DOPPEL_API doppel_status doppel_word_ranges(const doppel_recipe *recipe, const char *text, size_t length,
                                            uint64_t **ranges, size_t *count);

/* ---- 4. The caller's own features, weights and hashes ---- */

/* A named hash of any bytes: fast, xxh3, murmur3, jenkins, djb2, md5, sha1, sha256, or any digest libcrypto offers by
 * name. docs/FORMAT.md gives the arithmetic. Errors: DOPPEL_ERROR_USAGE when there is no such hash,
 * DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_hash(const char *name, const void *bytes, size_t length, uint64_t seed, uint64_t *hash);

/* One feature. It counts `weight`, rounded to 1/65536; weights may be negative. */
typedef struct doppel_feature {
    const void *bytes;
    size_t length;
    double weight;
} doppel_feature;

/* A hash of the caller's: seed is 0, and 1 for the high half of 128 bits. */
typedef uint64_t (*doppel_hash_function)(const void *bytes, size_t length, uint64_t seed, void *user);

typedef struct doppel_simhash_options {
    size_t size;                   /* sizeof(doppel_simhash_options) */
    int bits;                      /* 1..64 or 128; 0: 64 */
    const char *hash;              /* a named hash; NULL: fast */
    doppel_hash_function function; /* in place of a named hash */
    void *user;
    int64_t *sums; /* if set, gets the `bits` weighted sums of +-1, bit 0 first, in units of 1/65536 */
} doppel_simhash_options;

/* SimHash of weighted features: bit i is 1 when the weighted sum of +-1 is above 0. `options` may be NULL.
 * Errors: DOPPEL_ERROR_USAGE (bits, hash, a weight that is not finite or above 2^31, a total that leaves 64 bits),
 * DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_simhash(const doppel_feature *features, size_t count,
                                        const doppel_simhash_options *options, uint64_t fingerprint[2],
                                        doppel_error *error);

/* MinHash signature of a set of 64-bit hashes (repeats are harmless; count 0 leaves the slots at UINT32_MAX). The
 * hashes must be well mixed, as those of doppel_hash are. Errors: DOPPEL_ERROR_USAGE when slots is 0 or above 65536,
 * DOPPEL_ERROR_MEMORY. */
DOPPEL_API doppel_status doppel_minhash(const uint64_t *hashes, size_t count, size_t slots, uint32_t *signature);

/* Keeps the hashes that are 0 mod p, in order, in place; gives how many stay. p = 0 keeps none. */
DOPPEL_API size_t doppel_sample(uint64_t *hashes, size_t count, uint64_t p);

/* ---- 5. Document-frequency tables, for weight=tfidf ---- */

/* In how many of N documents a feature occurs; idf = ln(N / (df + 1)), at least 0, rounded to 1/65536. */

typedef struct doppel_df_builder doppel_df_builder;

/* Counts features as `recipe` makes them (its weight does not matter). Beyond `memory` bytes (0: 1 GiB) runs are
 * spilled to files in `tmp` (NULL: the environment's TMPDIR, else /tmp). Not thread-safe. */
DOPPEL_API doppel_status doppel_df_builder_create(const doppel_recipe *recipe, size_t memory, const char *tmp,
                                                  doppel_df_builder **builder, doppel_error *error);
DOPPEL_API void doppel_df_builder_free(doppel_df_builder *builder);

/* Counts one document, given its distinct feature hashes (DOPPEL_WANT_SET). */
DOPPEL_API doppel_status doppel_df_builder_add(doppel_df_builder *builder, const uint64_t *set, size_t count,
                                               doppel_error *error);

/* Writes the table beside `path` and renames it into place, so that it is whole or absent. Features found in fewer than
 * `min_df` documents are left out (0 and 1: none are). */
DOPPEL_API doppel_status doppel_df_builder_save(doppel_df_builder *builder, const char *path, uint32_t min_df,
                                                doppel_error *error);

/* Maps a table. The header and the checksum of the whole are verified.
 * Errors: DOPPEL_ERROR_IO, DOPPEL_ERROR_STORE when it is not a table, is cut short or was altered. */
DOPPEL_API doppel_status doppel_df_open(const char *path, doppel_df **df, doppel_error *error);
DOPPEL_API void doppel_df_close(doppel_df *df);

/* Adds tables of one recipe up into a new one at `path`. Errors: as open and save, DOPPEL_ERROR_USAGE for unlike
 * recipes. */
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
/* Sorts words' hashes and counts them: *terms has `count` places at most; gives how many were filled. */
DOPPEL_API size_t doppel_terms(const uint64_t *hashes, size_t count, doppel_term *terms);

DOPPEL_API int doppel_distance128(const uint64_t a[2], const uint64_t b[2]);

/* Edit distances on code points. Invalid UTF-8 counts a code point U+FFFD each. A result above `max` is given as max +
 * 1, as soon as that is sure (max = SIZE_MAX: never). *distance is untouched on failure. Errors: DOPPEL_ERROR_MEMORY.
 */
DOPPEL_API doppel_status doppel_levenshtein(const char *a, size_t a_length, const char *b, size_t b_length, size_t max,
                                            size_t *distance);
/* Insertions and deletions only: a substitution costs 2. */
DOPPEL_API doppel_status doppel_indel(const char *a, size_t a_length, const char *b, size_t b_length, size_t max,
                                      size_t *distance);
/* 1 - d / max(length in code points); 1 for two empty texts; below `min`, 0 as soon as that is sure. */
DOPPEL_API doppel_status doppel_edit_similarity(const char *a, size_t a_length, const char *b, size_t b_length,
                                                double min, double *similarity);

/* One text against many: prepared once, then each comparison costs a few nanoseconds when it fails. */
typedef struct doppel_titles doppel_titles;
DOPPEL_API doppel_status doppel_titles_create(doppel_titles **titles);
DOPPEL_API void doppel_titles_free(doppel_titles *titles);
/* Appends a text; its number is how many were there before. */
DOPPEL_API doppel_status doppel_titles_add(doppel_titles *titles, const char *text, size_t length);
DOPPEL_API size_t doppel_titles_count(const doppel_titles *titles);
/* Calls `found` for every text with similarity to `text` of at least `min`, in order of number. Compares each: a scan.
 * Returns DOPPEL_ERROR_INTERRUPTED when `found` gives false. */
DOPPEL_API doppel_status doppel_titles_scan(const doppel_titles *titles, const char *text, size_t length, double min,
                                            bool (*found)(size_t number, double similarity, void *user), void *user);

/* ---- 7. Documents from files ---- */

/* A document as it was read; everything is borrowed for the time of the call that got it. */
typedef struct doppel_document {
    const char *id; /* as the record gives it; else FILE:LINE; for a plain file its path as given */
    size_t id_length;
    const char *text; /* UTF-8 */
    size_t text_length;
    const char *url, *title; /* NULL when the record has none */
    size_t url_length, title_length;
    const char *record; /* the whole record as it stands in the file, without its line end; for a plain file the text */
    size_t record_length;
    const char *file; /* as given, or below a given folder */
    uint64_t line;    /* 0 for a plain file */
} doppel_document;

typedef struct doppel_input_options {
    size_t size;                                         /* sizeof(doppel_input_options) */
    int threads;                                         /* 0: one for each CPU this process may use */
    size_t max_record;                                   /* 0: 64 MiB; longer records are bad */
    bool strict;                                         /* stop at the first bad record */
    const char *id_key, *url_key, *title_key, *text_key; /* NULL: id, url, title, text */
    /* A record that was left out (or, code DOPPEL_OK, repaired), in input order, from one thread at a time. May be
     * NULL. */
    void (*bad)(const doppel_error *what, void *user);
    /* Bytes read so far of all bytes there are to read (0: unknown) and documents so far; now and then. May be NULL. */
    void (*progress)(uint64_t bytes, uint64_t total, uint64_t documents, void *user);
    void *user;
    const volatile int *stop; /* may be NULL; once it is not 0, the run ends with DOPPEL_ERROR_INTERRUPTED */
} doppel_input_options;

typedef struct doppel_input_counts {
    uint64_t documents, bytes; /* bytes: after decompression */
    uint64_t bad;              /* records left out */
    uint64_t repaired; /* records with invalid UTF-8 or lone surrogates, which became U+FFFD; and plain files with
                          invalid UTF-8, which are given as they are */
    uint64_t unopened; /* files that could not be opened or read to the end */
} doppel_input_counts;

/* What one thread writes for the documents it got; emitted in input order. */
typedef struct doppel_output doppel_output;
DOPPEL_API doppel_status doppel_output_write(doppel_output *output, const void *bytes, size_t length);
/* Writes a string as a JSON string, quotes included; invalid UTF-8 becomes U+FFFD. */
DOPPEL_API doppel_status doppel_output_json(doppel_output *output, const char *bytes, size_t length);

/* What to do with documents. `begin` makes a thread's own state, `document` uses it, `end` frees it; `emit` gets the
 * written bytes in input order, from one thread at a time. `begin`, `end` and `emit` may be NULL. A status other than
 * DOPPEL_OK from any of them ends the run with it. */
typedef struct doppel_work {
    void *user;
    doppel_status (*begin)(void *user, void **state);
    doppel_status (*document)(void *state, const doppel_document *document, doppel_output *output);
    void (*end)(void *user, void *state);
    doppel_status (*emit)(void *user, const char *bytes, size_t length);
} doppel_work;

/* Reads every document of the paths in order, and does the work on `threads` threads. A path is a file, a folder
 * (walked in byte order of names) or "-" for stdin; JSONL (.jsonl, .ndjson, .json, or a first byte `{`) and plain text
 * are told apart by name and content, .gz and .zst by content. The emitted bytes do not depend on the number of
 * threads. A bad record or file is reported and left out, and DOPPEL_OK is given (see counts); with `strict` the first
 * one ends the run with DOPPEL_ERROR_INPUT. `counts` and `error` may be NULL. */
DOPPEL_API doppel_status doppel_input_run(const char *const *paths, size_t path_count,
                                          const doppel_input_options *options, const doppel_work *work,
                                          doppel_input_counts *counts, doppel_error *error);

#ifdef __cplusplus
}
#endif
#endif
