/* sketch.h - words to fingerprints, signatures, samples and digests: the parts that sketching is made of.
 *
 * The public calls are in doppel.h. This header is for the stages below. */
#ifndef DP_SKETCH_H
#define DP_SKETCH_H

#include "base/base.h"
#include "text/text.h"

typedef enum dp_weight { DP_WEIGHT_TF, DP_WEIGHT_SET, DP_WEIGHT_SQRT, DP_WEIGHT_TF2, DP_WEIGHT_TFIDF } dp_weight;

struct doppel_recipe {
    int bits;
    size_t n;      /* units of a feature: words, or code points with text.chars */
    char hash[64]; /* a name dp_hasher_open knows */
    dp_weight weight;
    dp_words_options text; /* stop_words are the recipe's own copy */
    uint64_t slots;        /* of the signature; 0: none */
    uint64_t sample;       /* 0: none */
    const doppel_df *df;
    char stop[17], df_digest[17], unicode[24]; /* as given in the text form; empty: not */
    char *stop_copy;
    dp_buffer printed;  /* canonical text form, with a NUL */
    dp_buffer features; /* the parts that make features, with a NUL */
    char warning[160];
};

/* The recipe that NULL stands for. */
const doppel_recipe *dp_recipe_default(void);

/* ---- titles ---- */

/* A sketcher for titles, and a title as it is compared with others; borrowed from the sketcher. `title` NULL: none. */
doppel_status dp_title_sketcher_create(doppel_sketcher **sketcher, doppel_error *error);
doppel_status dp_title_normalise(doppel_sketcher *sketcher, const char *title, size_t length, doppel_slice *normalised);

/* ---- named hashes ---- */

/* A named hash, ready to run. One thread's. */
typedef struct dp_hasher {
    uint64_t (*function)(const void *bytes, size_t length, uint64_t seed); /* NULL: a digest of libcrypto */
    void *digest, *context;
    bool is_fast, is_murmur3;
    bool failed;   /* libcrypto was out of memory: its result is not a hash */
    char name[64]; /* its one name, lower-case */
} dp_hasher;

doppel_status dp_hasher_open(const char *name, dp_hasher *hasher);
void dp_hasher_close(dp_hasher *hasher);
uint64_t dp_hasher_run(dp_hasher *hasher, const void *bytes, size_t length, uint64_t seed);
/* Names to list in the message for an unknown one. */
extern const char dp_hash_names[];

/* ---- document frequencies ---- */

/* The Unicode version a table was made with. */
const char *dp_df_unicode(const doppel_df *df);

/* idf in units of 1/65536, at least 0. */
int64_t dp_df_weight(const doppel_df *df, uint64_t feature_hash);

/* ---- hashes of shared runs: winnow.c ---- */

/* The grams in a row of which one is chosen, for runs of this many features; a gram is run - window + 1 features. */
size_t dp_winnow_window(size_t run);
/* The hash of each of `grams` grams, an odd number: the sum of its features (grams + gram - 1 in all), each multiplied
 * by how far it is from the end, spread over all bits. */
void dp_grams_make(const uint64_t *features, size_t grams, size_t gram, uint64_t *to);

/* A gram that is chosen, by its place, and the first run that chooses it: runs from there on up to that of the next
 * chosen gram choose this one. */
typedef struct dp_winnowed {
    uint32_t gram, first;
} dp_winnowed;

/* Chooses among count >= window grams; returns how many are chosen, at most count - window + 1. */
size_t dp_winnow(const uint64_t *grams, size_t count, size_t window, dp_winnowed *chosen);

/* ---- bands of signatures: how many for a threshold, and the keys of a document's bands.
 *
 * A signature of bands * rows slots (docs/FORMAT.md section 5) agrees in a slot with probability J, the similarity, so
 * two documents share some band with probability 1 - (1 - J^rows)^bands. A band's rows are hashed to 32 bits: chance
 * collisions are removed by verification. */

enum { DP_MOST_BANDS = 64, DP_MOST_SLOTS = 1024 };

/* Rows and bands for a threshold, where they are 0; false when they were given and are invalid. */
bool dp_bands_plan(double similarity, int *bands, int *rows);
/* The share of the pairs with this similarity that the bands find. */
double dp_bands_recall(double similarity, int bands, int rows);
/* The keys of a document's bands, `bands` of them, from its features. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_bands_keys(const uint64_t *set, size_t count, int bands, int rows, uint32_t *keys);

/* The 32-bit key of a band from its wide key. */
static inline uint32_t dp_narrow_key(uint64_t wide) {
    return (uint32_t)(wide >> 16);
}

#endif
