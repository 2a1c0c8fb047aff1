/* sketcher.c - words to sketches, one document at a time: doppel_sketcher_create, _run, _free; doppel_simhash for the
 * caller's own features.
 *
 * A batch of words becomes a batch of feature hashes: with `fast` the words are hashed once and their hashes combined,
 * with any other hash the runs of words are hashed as they stand in the normalised text. Features that all count alike
 * have their bits counted and are forgotten; what needs them all (other weights, sets, signatures, samples) collects
 * them. */
#include "sketch/sketch.h"

#include "kernel/kernel.h"

#include <math.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- SimHash of weighted features: those of a document, counted, and the caller's own.
 *
 * Weights are integers in units of 1/65536, so that sums do not depend on order. Bit i is set when the weights of the
 * features that have it outweigh the others: ones[i] - (total - ones[i]) > 0. */

/* Real weights count in units of 1/65536. */
#define WEIGHT_ONE 65536

/* Sums of weights, for one half of a fingerprint. Zero starts it. */
typedef struct weight_sums {
    int64_t ones[64]; /* the weights of the features whose hash has this bit */
    int64_t total;    /* all weights */
} weight_sums;

/* The bits whose sum of +-weights is above 0. */
static uint64_t sums_bits(const weight_sums *sums, int bits) {
    uint64_t set = 0;
    for (int i = 0; i < bits && i < 64; i++)
        set |= (uint64_t)(sums->ones[i] > sums->total - sums->ones[i]) << i;
    return set;
}

/* The weight of a feature that occurs `count` times, in units of 1/65536 (with tf2, where all are whole, in ones). */
static int64_t weight_of(const doppel_recipe *recipe, uint64_t feature_hash, uint64_t count) {
    switch (recipe->weight) {
    case DP_WEIGHT_TF: return (int64_t)count * WEIGHT_ONE;
    case DP_WEIGHT_SET: return WEIGHT_ONE;
    case DP_WEIGHT_SQRT: return llrint(sqrt((double)count) * WEIGHT_ONE);
    /* Whole, so that the units do not matter: even the square of 2^31 fits. */
    case DP_WEIGHT_TF2: return (int64_t)(count * count);
    case DP_WEIGHT_TFIDF: return (int64_t)count * dp_df_weight(recipe->df, feature_hash);
    }
    return 0;
}

typedef struct hash_pair {
    uint64_t low, high;
} hash_pair;

static int compare_pairs(const void *a, const void *b) {
    uint64_t x = ((const hash_pair *)a)->low, y = ((const hash_pair *)b)->low;
    return (x > y) - (x < y);
}

/* Sorts both arrays by the first. */
static bool sort_features(uint64_t *low, uint64_t *high, size_t count) {
    if (!high) {
        uint64_t *scratch = malloc(count * sizeof *scratch + 1);
        if (scratch)
            dp_sort64(low, count, scratch);
        free(scratch);
        return scratch;
    }
    hash_pair *pairs = malloc(count * sizeof *pairs + 1);
    if (!pairs)
        return false;
    for (size_t i = 0; i < count; i++)
        pairs[i] = (hash_pair){low[i], high[i]};
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < count; i++) {
        low[i] = pairs[i].low;
        high[i] = pairs[i].high;
    }
    free(pairs);
    return true;
}

/* Distinct features move to the front of the arrays, with their weights; returns how many. */
static size_t weigh_distinct(const doppel_recipe *recipe, uint64_t *low, uint64_t *high, size_t count,
                             int64_t *weights) {
    size_t distinct = 0;
    for (size_t i = 0, next; i < count; i = next, distinct++) {
        for (next = i + 1; next < count && low[next] == low[i]; next++)
            ;
        weights[distinct] = weight_of(recipe, low[i], next - i);
        low[distinct] = low[i];
        if (high)
            high[distinct] = high[i];
    }
    return distinct;
}

static uint64_t half(const uint64_t *hashes, const int64_t *weights, size_t count, int bits) {
    weight_sums sums = {0};
    dp_weigh_kernel()(hashes, weights, count, sums.ones);
    for (size_t i = 0; i < count; i++)
        sums.total += weights[i];
    return sums_bits(&sums, bits);
}

/* The fingerprint of the features, `high` being their second hashes or NULL. Sorts `low`, and `high` with it. */
static doppel_status weighted_fingerprint(const doppel_recipe *recipe, uint64_t *low, uint64_t *high, size_t count,
                                          uint64_t fingerprint[2]) {
    int64_t *weights = malloc(count * sizeof *weights + 1);
    if (!weights || !sort_features(low, high, count)) {
        free(weights);
        return DOPPEL_ERROR_MEMORY;
    }
    size_t distinct = weigh_distinct(recipe, low, high, count, weights);
    fingerprint[0] = half(low, weights, distinct, recipe->bits);
    fingerprint[1] = high ? half(high, weights, distinct, 64) : 0;
    free(weights);
    return DOPPEL_OK;
}

/* ---- the caller's own features ---- */

/* A single weight is at most 2^31, that is 2^47 units; the sum of all sizes is at most 2^62, so that what is for a
 * bit less what is against it fits. */
#define MAX_WEIGHT 0x1p31
#define MAX_TOTAL ((int64_t)1 << 62)

static doppel_status read_weight(double weight, size_t number, int64_t *units, int64_t *size, doppel_error *error) {
    if (!isfinite(weight) || fabs(weight) > MAX_WEIGHT)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "feature %zu: the weight %g is not a number from -2^31 to 2^31",
                       number + 1, weight);
    *units = llrint(weight * WEIGHT_ONE);
    if (__builtin_add_overflow(*size, llabs(*units), size) || *size > MAX_TOTAL)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "feature %zu: the weights add up to more than 2^46", number + 1);
    return DOPPEL_OK;
}

typedef struct own_hash {
    const doppel_simhash_options *options;
    dp_hasher hasher;
} own_hash;

static uint64_t hash_own(own_hash *own, const doppel_feature *feature, uint64_t seed) {
    if (own->options->function)
        return own->options->function(feature->bytes, seed, own->options->user);
    return dp_hasher_run(&own->hasher, feature->bytes.data, feature->bytes.length, seed);
}

static doppel_status sum_own(own_hash *own, const doppel_feature *features, size_t count, weight_sums sums[2],
                             doppel_error *error) {
    int64_t size = 0;
    int halves = own->options->bits == 128 ? 2 : 1;
    for (size_t i = 0; i < count; i++) {
        int64_t units;
        DP_TRY(read_weight(features[i].weight, i, &units, &size, error));
        for (int k = 0; k < halves; k++) {
            uint64_t hash = hash_own(own, &features[i], (uint64_t)k);
            dp_weigh_kernel()(&hash, &units, 1, sums[k].ones);
            sums[k].total += units;
        }
    }
    return own->hasher.failed ? dp_no_memory(error) : DOPPEL_OK;
}

/* Fills what was left at 0, and opens the hash. */
static doppel_status open_own(const doppel_simhash_options *given, doppel_simhash_options *options, own_hash *own,
                              doppel_error *error) {
    if (given)
        dp_copy_options(options, given, sizeof *options);
    options->bits = options->bits ? options->bits : 64;
    own->options = options;
    if (options->bits < 1 || (options->bits > 64 && options->bits != 128))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a fingerprint has 1 to 64 or 128 bits, not %d", options->bits);
    const char *name = options->hash ? options->hash : "fast";
    doppel_status status = options->function ? DOPPEL_OK : dp_hasher_open(name, &own->hasher);
    if (status == DOPPEL_ERROR_USAGE)
        return dp_fail(error, status, "unknown hash `%s`; use %s", name, dp_hash_names);
    return status ? dp_no_memory(error) : DOPPEL_OK;
}

doppel_status doppel_simhash(const doppel_feature *features, size_t count, const doppel_simhash_options *given,
                             uint64_t fingerprint[2], doppel_error *error) {
    doppel_simhash_options options = {0};
    own_hash own = {0};
    weight_sums sums[2] = {{{0}, 0}, {{0}, 0}};
    doppel_status status = open_own(given, &options, &own, error);
    DP_THEN(status, sum_own(&own, features, count, sums, error));
    dp_hasher_close(&own.hasher);
    if (status)
        return status;
    fingerprint[0] = sums_bits(&sums[0], options.bits);
    fingerprint[1] = options.bits == 128 ? sums_bits(&sums[1], 64) : 0;
    for (int i = 0; options.sums && i < options.bits; i++)
        options.sums[i] = sums[i / 64].ones[i % 64] - (sums[i / 64].total - sums[i / 64].ones[i % 64]);
    return DOPPEL_OK;
}

/* ---- the sketcher ---- */

typedef struct numbers {
    uint64_t *data;
    size_t count, capacity;
} numbers;

struct doppel_sketcher {
    const doppel_recipe *recipe;
    unsigned wants;
    dp_words *words;
    dp_hasher hasher;
    EVP_MD *sha256;
    EVP_MD_CTX *digest;
    bool no_digest; /* libcrypto had no memory for this document's */
    dp_hash_words_fn hash_words;
    dp_shingles_fn shingles;
    dp_bit_counts_fn count_bits;

    bool collects; /* features are kept */
    uint64_t planes[2][DP_BIT_COUNTS_PLANES];
    numbers word_hashes; /* of a batch */
    numbers batch[2];    /* feature hashes of a batch, with seed 0 and 1 */
    numbers features[2]; /* of the document, when collected */
    numbers sorted, scratch, sample;
    uint32_t *signature;
    dp_buffer text;
    uint64_t words_seen, features_seen;
};

/* ---- a batch of features ---- */

static bool reserve(numbers *n, size_t count) {
    return dp_reserve(&n->data, &n->capacity, count, sizeof *n->data);
}

static bool append(numbers *n, const uint64_t *data, size_t count) {
    if (!count)
        return true;
    if (!reserve(n, n->count + count))
        return false;
    memcpy(n->data + n->count, data, count * sizeof *data);
    n->count += count;
    return true;
}

static void hash_joined(doppel_sketcher *s, const dp_runs *runs, uint64_t seed, uint64_t *hashes) {
    if (s->hasher.is_murmur3) {
        dp_murmur3_runs_kernel()(runs, (uint32_t)seed, hashes);
        return;
    }
    for (size_t i = 0; i < runs->count; i++) {
        uint32_t start = runs->starts[i], length = runs->starts[i + runs->n] - runs->gap - start;
        hashes[i] = dp_hasher_run(&s->hasher, runs->text + start, length, seed);
    }
}

/* The hashes of all runs, once for each half of the fingerprint. */
static doppel_status hash_runs(doppel_sketcher *s, const dp_runs *runs) {
    int halves = s->recipe->bits == 128 ? 2 : 1;
    size_t units = runs->count + runs->n - 1;
    if (!reserve(&s->word_hashes, units) || !reserve(&s->batch[0], runs->count) || !reserve(&s->batch[1], runs->count))
        return DOPPEL_ERROR_MEMORY;
    if (s->hasher.is_fast)
        s->hash_words(&(dp_runs){runs->text, runs->starts, units, 1, runs->gap}, s->word_hashes.data);
    for (int k = 0; k < halves; k++) {
        if (s->hasher.is_fast)
            s->shingles(s->word_hashes.data, runs->count, runs->n, (uint64_t)k, s->batch[k].data);
        else
            hash_joined(s, runs, (uint64_t)k, s->batch[k].data);
        if (s->recipe->weight == DP_WEIGHT_TF)
            for (size_t at = 0; at < runs->count; at += DP_BIT_COUNTS_BATCH)
                s->count_bits(s->batch[k].data + at,
                              runs->count - at < DP_BIT_COUNTS_BATCH ? runs->count - at : DP_BIT_COUNTS_BATCH,
                              s->planes[k]);
        /* The second half is kept for weights only. */
        bool keep = k ? s->recipe->weight != DP_WEIGHT_TF : s->collects;
        if (keep && !append(&s->features[k], s->batch[k].data, runs->count))
            return DOPPEL_ERROR_MEMORY;
    }
    s->features_seen += runs->count;
    return s->hasher.failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}

/* The runs of a batch. A document of fewer units than n is one run of all it has. */
static dp_runs find_runs(const doppel_sketcher *s, const dp_word_batch *batch) {
    dp_runs runs = {batch->text, batch->starts, 0, s->recipe->n, batch->gap};
    if (batch->count >= runs.n) {
        runs.count = batch->count - runs.n + 1;
    } else if (batch->last && batch->count && s->words_seen < runs.n) {
        runs.count = 1;
        runs.n = batch->count;
    }
    return runs;
}

/* The new words go into the digest and the text, with a space between batches. */
static doppel_status take_text(doppel_sketcher *s, const dp_word_batch *batch) {
    if (batch->count == batch->seen)
        return DOPPEL_OK;
    const uint8_t *start = batch->text + batch->starts[batch->seen];
    size_t length = batch->starts[batch->count] - batch->gap - batch->starts[batch->seen];
    bool space = batch->gap && s->words_seen;
    if (s->wants & DOPPEL_WANT_DIGEST &&
        (s->no_digest || !EVP_DigestUpdate(s->digest, " ", space) || !EVP_DigestUpdate(s->digest, start, length)))
        return DOPPEL_ERROR_MEMORY;
    if (s->wants & DOPPEL_WANT_TEXT &&
        (!dp_buffer_add(&s->text, " ", space) || !dp_buffer_add(&s->text, start, length)))
        return DOPPEL_ERROR_MEMORY;
    return DOPPEL_OK;
}

static doppel_status take_batch(void *user, const dp_word_batch *batch) {
    doppel_sketcher *s = user;
    doppel_status status = s->wants & (DOPPEL_WANT_DIGEST | DOPPEL_WANT_TEXT) ? take_text(s, batch) : DOPPEL_OK;
    s->words_seen += batch->count - batch->seen;
    dp_runs runs = find_runs(s, batch);
    if (!status && runs.count)
        status = hash_runs(s, &runs);
    return status;
}

/* ---- the end of a document ---- */

static doppel_status make_fingerprint(doppel_sketcher *s, doppel_sketch *out) {
    int bits = s->recipe->bits;
    if (s->recipe->weight != DP_WEIGHT_TF) {
        /* Sorting must not disturb the features, which may be wanted in order. */
        s->sorted.count = 0;
        if (!append(&s->sorted, s->features[0].data, s->features[0].count))
            return DOPPEL_ERROR_MEMORY;
        return weighted_fingerprint(s->recipe, s->sorted.data, bits == 128 ? s->features[1].data : NULL,
                                    s->sorted.count, out->fingerprint);
    }
    /* A bit is set when more than half of the features have it. */
    uint64_t mask = bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
    out->fingerprint[0] = dp_bit_counts_above(s->planes[0], s->features_seen / 2) & mask;
    out->fingerprint[1] = bits == 128 ? dp_bit_counts_above(s->planes[1], s->features_seen / 2) : 0;
    return DOPPEL_OK;
}

static doppel_status make_set(doppel_sketcher *s, doppel_sketch *out) {
    s->sorted.count = 0;
    if (!append(&s->sorted, s->features[0].data, s->features[0].count) || !reserve(&s->scratch, s->sorted.count))
        return DOPPEL_ERROR_MEMORY;
    dp_sort64(s->sorted.data, s->sorted.count, s->scratch.data);
    s->sorted.count = dp_unique64(s->sorted.data, s->sorted.count);
    if (s->wants & DOPPEL_WANT_SET) {
        out->set = s->sorted.data;
        out->set_count = s->sorted.count;
    }
    if (s->recipe->sample) {
        s->sample.count = 0;
        if (!append(&s->sample, s->sorted.data, s->sorted.count))
            return DOPPEL_ERROR_MEMORY;
        out->sample = s->sample.data;
        out->sample_count = doppel_sample(s->sample.data, s->sample.count, s->recipe->sample);
    }
    return DOPPEL_OK;
}

static doppel_status make_sketch(doppel_sketcher *s, doppel_sketch *out) {
    doppel_status status = make_fingerprint(s, out);
    if (!status && (s->recipe->sample || s->wants & DOPPEL_WANT_SET))
        status = make_set(s, out);
    if (!status && s->recipe->slots && s->features_seen) {
        out->signature = s->signature;
        out->slots = s->recipe->slots;
        status = doppel_minhash(s->features[0].data, s->features[0].count, out->slots, s->signature);
    }
    if (!status && s->wants & DOPPEL_WANT_DIGEST && s->words_seen && !EVP_DigestFinal_ex(s->digest, out->digest, NULL))
        status = DOPPEL_ERROR_MEMORY;
    if (s->wants & DOPPEL_WANT_FEATURES)
        out->feature_hashes = s->features[0].data;
    if (s->wants & DOPPEL_WANT_TEXT) {
        out->text.data = s->text.data;
        out->text.length = s->text.size;
    }
    return status;
}

/* ---- the public calls ---- */

void doppel_sketcher_reset(doppel_sketcher *s) {
    dp_words_reset(s->words);
    memset(s->planes, 0, sizeof s->planes);
    s->features[0].count = s->features[1].count = 0;
    s->text.size = 0;
    s->words_seen = s->features_seen = 0;
    s->hasher.failed = false;
    s->no_digest = s->wants & DOPPEL_WANT_DIGEST && !EVP_DigestInit_ex2(s->digest, s->sha256, NULL);
}

doppel_status doppel_sketcher_add(doppel_sketcher *s, doppel_slice piece) {
    return dp_words_add(s->words, piece.data, piece.length, take_batch, s);
}

doppel_status doppel_sketcher_finish(doppel_sketcher *s, doppel_sketch *out) {
    memset(out, 0, sizeof *out);
    doppel_status status = dp_words_finish(s->words, take_batch, s);
    DP_THEN(status, make_sketch(s, out));
    out->words = s->words_seen;
    out->features = s->features_seen;
    return status;
}

doppel_status doppel_sketcher_run(doppel_sketcher *s, doppel_slice text, doppel_sketch *out) {
    doppel_sketcher_reset(s);
    doppel_status status = doppel_sketcher_add(s, text);
    return status ? status : doppel_sketcher_finish(s, out);
}

static doppel_status open_parts(doppel_sketcher *s, doppel_error *error) {
    const doppel_recipe *r = s->recipe;
    dp_words_options options = r->text;
    options.overlap = r->n - 1;
    doppel_status status = dp_words_create(&options, &s->words, error);
    /* The recipe has opened it before. */
    if (!status && dp_hasher_open(r->hash, &s->hasher))
        return dp_fail(error, DOPPEL_ERROR_MEMORY, "libcrypto has no memory for the hash `%s`", r->hash);
    if (!status && r->slots && !(s->signature = malloc(r->slots * sizeof *s->signature)))
        return dp_no_memory(error);
    if (!status && s->wants & DOPPEL_WANT_DIGEST &&
        (!(s->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL)) || !(s->digest = EVP_MD_CTX_new())))
        return dp_fail(error, DOPPEL_ERROR_MEMORY, "libcrypto has no SHA-256, or no memory");
    return status;
}

doppel_status doppel_sketcher_create(const doppel_recipe *recipe, unsigned wants, doppel_sketcher **sketcher,
                                     doppel_error *error) {
    *sketcher = NULL;
    doppel_sketcher *s = calloc(1, sizeof *s);
    if (!s)
        return dp_no_memory(error);
    s->recipe = recipe ? recipe : dp_recipe_default();
    s->wants = wants;
    s->collects = s->recipe->weight != DP_WEIGHT_TF || s->recipe->slots || s->recipe->sample ||
                  wants & (DOPPEL_WANT_FEATURES | DOPPEL_WANT_SET);
    s->hash_words = dp_hash_words_kernel();
    s->shingles = dp_shingles_kernel();
    s->count_bits = dp_bit_counts_kernel();
    doppel_status status = open_parts(s, error);
    if (status) {
        doppel_sketcher_free(s);
        return status;
    }
    doppel_sketcher_reset(s);
    *sketcher = s;
    return DOPPEL_OK;
}

void doppel_sketcher_free(doppel_sketcher *s) {
    if (!s)
        return;
    dp_words_free(s->words);
    dp_hasher_close(&s->hasher);
    EVP_MD_CTX_free(s->digest);
    EVP_MD_free(s->sha256);
    numbers *all[] = {&s->word_hashes, &s->batch[0], &s->batch[1], &s->features[0],
                      &s->features[1], &s->sorted,   &s->scratch,  &s->sample};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->data);
    free(s->signature);
    dp_buffer_free(&s->text);
    free(s);
}

doppel_status doppel_fingerprint(doppel_slice text, uint64_t *fingerprint) {
    doppel_sketcher *s;
    doppel_sketch sketch;
    doppel_status status = doppel_sketcher_create(NULL, 0, &s, NULL);
    DP_THEN(status, doppel_sketcher_run(s, text, &sketch));
    if (!status)
        *fingerprint = sketch.fingerprint[0];
    doppel_sketcher_free(s);
    return status;
}

/* ---- many texts: each thread takes the next few ---- */

enum { TEXTS_AT_ONCE = 16 };

typedef struct text_batch {
    const doppel_recipe *recipe;
    const doppel_slice *texts;
    size_t count;
    doppel_sketch_arrays to;
    _Atomic size_t next;
    pthread_mutex_t lock;
    size_t first_bad; /* the first text that failed, and how; SIZE_MAX: none did */
    doppel_status status;
} text_batch;

static void fail_text(text_batch *b, size_t i, doppel_status status) {
    pthread_mutex_lock(&b->lock);
    if (i < b->first_bad) {
        b->first_bad = i;
        b->status = status;
    }
    pthread_mutex_unlock(&b->lock);
}

static void write_sketch(const text_batch *b, size_t i, const doppel_sketch *sketch) {
    const doppel_sketch_arrays *to = &b->to;
    size_t halves = b->recipe->bits > 64 ? 2 : 1, slots = b->recipe->slots;
    if (to->fingerprints)
        memcpy(to->fingerprints + i * halves, sketch->fingerprint, halves * sizeof *to->fingerprints);
    if (to->digests)
        memcpy(to->digests + i * sizeof sketch->digest, sketch->digest, sizeof sketch->digest);
    for (size_t k = 0; to->signatures && k < slots; k++)
        to->signatures[i * slots + k] = sketch->signature ? sketch->signature[k] : UINT32_MAX;
    if (to->words)
        to->words[i] = sketch->words;
}

static void sketch_text(text_batch *b, doppel_sketcher *sketcher, size_t i) {
    doppel_sketch sketch;
    doppel_status status = doppel_sketcher_run(sketcher, b->texts[i], &sketch);
    if (status == DOPPEL_OK)
        write_sketch(b, i, &sketch);
    else if (!b->to.statuses)
        fail_text(b, i, status);
    if (b->to.statuses)
        b->to.statuses[i] = status;
}

static void sketch_texts(void *user, size_t thread) {
    text_batch *b = user;
    doppel_sketcher *sketcher;
    (void)thread;
    doppel_status status = doppel_sketcher_create(b->recipe, b->to.digests ? DOPPEL_WANT_DIGEST : 0, &sketcher, NULL);
    for (size_t from; (from = atomic_fetch_add(&b->next, TEXTS_AT_ONCE)) < b->count;)
        for (size_t i = from; i < b->count && i < from + TEXTS_AT_ONCE; i++)
            if (status == DOPPEL_OK)
                sketch_text(b, sketcher, i);
            else
                fail_text(b, i, status);
    doppel_sketcher_free(sketcher);
}

doppel_status doppel_sketch_batch(const doppel_recipe *recipe, const doppel_slice *texts, size_t count, int threads,
                                  const doppel_sketch_arrays *to, doppel_error *error) {
    text_batch b = {.recipe = recipe ? recipe : dp_recipe_default(),
                    .texts = texts,
                    .count = count,
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .first_bad = SIZE_MAX};
    dp_copy_options(&b.to, to, sizeof b.to);
    if (b.to.signatures && !b.recipe->slots)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "signatures need minhash= in the recipe, and `%s` has none",
                       doppel_recipe_text(b.recipe));
    size_t most = count / TEXTS_AT_ONCE + 1, asked = dp_thread_count(threads);
    dp_run_threads(asked < most ? asked : most, sketch_texts, &b);
    if (b.first_bad == SIZE_MAX)
        return DOPPEL_OK;
    return dp_fail(error, b.status, "text %zu: %s", b.first_bad, doppel_status_name(b.status));
}

/* ---- the positions of a text's words ---- */

void doppel_ranges_free(doppel_ranges *ranges) {
    if (!ranges)
        return;
    free(ranges->range);
    *ranges = (doppel_ranges){0};
}

doppel_status doppel_ranges_find(const doppel_recipe *recipe, doppel_slice text, doppel_ranges *ranges) {
    doppel_ranges_free(ranges);
    dp_word_list list;
    DP_TRY(dp_word_list_make(&(recipe ? recipe : dp_recipe_default())->text, text.data, text.length, &list));
    /* Starts and ends lie one after the other there. */
    ranges->range = (doppel_range *)(void *)list.ranges;
    ranges->count = list.count;
    list.ranges = NULL;
    dp_word_list_free(&list);
    return DOPPEL_OK;
}

/* ---- titles: the words of the default recipe, one space between ---- */

doppel_status dp_title_sketcher_create(doppel_sketcher **sketcher, doppel_error *error) {
    return doppel_sketcher_create(dp_recipe_default(), DOPPEL_WANT_TEXT, sketcher, error);
}

doppel_status dp_title_normalise(doppel_sketcher *sketcher, const char *title, size_t length,
                                 doppel_slice *normalised) {
    doppel_sketch sketch;
    *normalised = (doppel_slice){NULL, 0};
    if (!title)
        return DOPPEL_OK;
    doppel_status status = doppel_sketcher_run(sketcher, (doppel_slice){title, length}, &sketch);
    if (status == DOPPEL_OK)
        *normalised = sketch.text;
    return status;
}
