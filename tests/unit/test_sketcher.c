/* test_sketcher.c - sketches of documents against the plain definitions (docs/FORMAT.md sections 2, 4 and 5). */
#include "support.h"

#include "doppel.h"

#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#define ROSE \
    "A rose is a rose is a rose; \xC3\xA9t\xC3\xA9 \xE6\x9D\xB1\xE4\xBA\xAC\xE6\x9D\xB1 by any other name, Rose!"

enum { EVERYTHING = DOPPEL_WANT_DIGEST | DOPPEL_WANT_FEATURES | DOPPEL_WANT_SET | DOPPEL_WANT_TEXT };

/* A recipe with its sketcher. */
typedef struct tool {
    doppel_recipe *recipe;
    doppel_sketcher *sketcher;
} tool;

static tool tool_open(const char *text, const doppel_df *df, unsigned wants) {
    tool t;
    doppel_error error;
    const doppel_recipe_parts parts = {.size = sizeof parts, .df = df};
    if (doppel_recipe_parse(text, &parts, &t.recipe, &error)) {
        print_error("%s: %s\n", text, error.message);
        fail();
    }
    assert_int_equal(doppel_sketcher_create(t.recipe, wants, &t.sketcher, NULL), DOPPEL_OK);
    return t;
}

static void tool_close(tool *t) {
    doppel_sketcher_free(t->sketcher);
    doppel_recipe_free(t->recipe);
}

static doppel_sketch run(tool *t, const char *text, size_t length) {
    doppel_sketch sketch;
    memset(&sketch, 0xAA, sizeof sketch);
    assert_int_equal(doppel_sketcher_run(t->sketcher, (doppel_slice){text, length}, &sketch), DOPPEL_OK);
    return sketch;
}

/* ---- the plain way from normalised text to features ---- */

typedef struct unit {
    const uint8_t *bytes;
    size_t length;
} unit;

/* How features are made: `chars`, n and the hash as in a recipe. */
typedef struct plan {
    bool chars;
    size_t n;
    const char *hash;
} plan;

static size_t split(const plan *p, const char *text, size_t length, unit *units) {
    const uint8_t *at = (const uint8_t *)text, *end = at + length;
    size_t count = 0;
    while (at < end) {
        const uint8_t *start = at++;
        while (at < end && (p->chars ? (*at & 0xC0) == 0x80 : *at != ' '))
            at++;
        units[count++] = (unit){start, (size_t)(at - start)};
        at += !p->chars;
    }
    return count;
}

static uint64_t plain_fast(const unit *units, size_t n, uint64_t seed) {
    const uint64_t golden = 0x9E3779B97F4A7C15u;
    uint64_t s = 0;
    for (size_t k = 0; k < n; k++) {
        uint64_t w = 0;
        for (size_t i = 0; i < units[k].length; i += 8) {
            uint64_t eight = 0;
            for (size_t b = i; b < i + 8 && b < units[k].length; b++)
                eight |= (uint64_t)units[k].bytes[b] << (8 * (b - i));
            w = (w ^ eight) * golden;
            w ^= w >> 32;
        }
        s = (s << 23 | s >> 41) + w + units[k].length;
    }
    uint64_t x = s + seed * golden;
    x = (x ^ x >> 32) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 29) * 0x94D049BB133111EBu;
    return x ^ x >> 32;
}

static uint64_t plain_hash(const plan *p, const unit *units, size_t n, uint64_t seed) {
    uint64_t hash;
    if (!strcmp(p->hash, "fast"))
        return plain_fast(units, n, seed);
    const unit *last = &units[n - 1];
    size_t length = (size_t)(last->bytes + last->length - units[0].bytes);
    assert_int_equal(doppel_hash(p->hash, (doppel_slice){(const char *)units[0].bytes, length}, seed, &hash),
                     DOPPEL_OK);
    return hash;
}

/* All features in order, with both seeds; gives how many. */
static size_t plain_features(const plan *p, const char *text, size_t length, uint64_t *low, uint64_t *high) {
    unit *units = malloc((length + 1) * sizeof *units);
    size_t count = split(p, text, length, units), n = count < p->n ? count : p->n, features = n ? count - n + 1 : 0;
    for (size_t i = 0; i < features; i++) {
        low[i] = plain_hash(p, units + i, n, 0);
        high[i] = plain_hash(p, units + i, n, 1);
    }
    free(units);
    return features;
}

/* ---- the plain way from features to fingerprints ---- */

static double plain_weight(const char *weight, const doppel_df *df, uint64_t hash, double count) {
    if (!strcmp(weight, "set"))
        return 1;
    if (!strcmp(weight, "sqrt"))
        return sqrt(count);
    if (!strcmp(weight, "tf2"))
        return count * count;
    return strcmp(weight, "tfidf") ? count : count * doppel_df_idf(df, hash);
}

typedef struct weighing {
    const char *weight;
    const doppel_df *df;
    int bits;
} weighing;

static void plain_fingerprint(const weighing *w, const uint64_t *low, const uint64_t *high, size_t count,
                              uint64_t out[2]) {
    int64_t sums[128] = {0};
    for (size_t i = 0; i < count; i++) {
        size_t times = 0, before = 0;
        for (size_t j = 0; j < count; j++) {
            times += low[j] == low[i];
            before += j < i && low[j] == low[i];
        }
        if (before)
            continue;
        int64_t weight = llrint(plain_weight(w->weight, w->df, low[i], (double)times) * 65536);
        for (int bit = 0; bit < 128; bit++)
            sums[bit] += (bit < 64 ? low[i] >> bit : high[i] >> (bit - 64)) & 1 ? weight : -weight;
    }
    out[0] = out[1] = 0;
    for (int bit = 0; bit < w->bits; bit++)
        out[bit / 64] |= (uint64_t)(sums[bit] > 0) << bit % 64;
}

/* Everything a sketch holds, worked out again from its normalised text. */
static void check_sketch(const plan *p, const weighing *w, const doppel_sketch *sketch) {
    uint64_t *low = malloc((sketch->text.length + 1) * 8), *high = malloc((sketch->text.length + 1) * 8), want[2];
    size_t count = plain_features(p, sketch->text.data, sketch->text.length, low, high);
    assert_int_equal(sketch->features, count);
    if (count)
        assert_memory_equal(sketch->feature_hashes, low, count * 8);
    plain_fingerprint(w, low, high, count, want);
    assert_int_equal(sketch->fingerprint[0], want[0]);
    assert_int_equal(sketch->fingerprint[1], want[1]);
    free(low);
    free(high);
}

static void check_recipe(const plan *p, const weighing *w, const char *text, size_t length) {
    char recipe[120];
    snprintf(recipe, sizeof recipe, "simhash%d:%s=%zu:hash=%s:weight=%s", w->bits, p->chars ? "chars" : "words", p->n,
             p->hash, w->weight);
    tool t = tool_open(recipe, w->df, EVERYTHING);
    doppel_sketch sketch = run(&t, text, length);
    check_sketch(p, w, &sketch);
    tool_close(&t);
}

/* ---- weights, hashes, widths ---- */

static const char *const weights[] = {"tf", "set", "sqrt", "tf2"};

static void every_weight_hash_and_n(void **state) {
    (void)state;
    static const char *const hashes[] = {"fast", "xxh3", "murmur3", "jenkins", "djb2",
                                         "md5",  "sha1", "sha256",  "sha3-256"};
    static const size_t runs[] = {1, 2, 3, 5, 18, 40};
    for (size_t h = 0; h < sizeof hashes / sizeof *hashes; h++)
        for (size_t n = 0; n < sizeof runs / sizeof *runs; n++)
            for (size_t k = 0; k < 8; k++) {
                plan p = {k % 2, runs[n], hashes[h]};
                weighing w = {weights[k / 2], NULL, h % 2 ? 128 : 64};
                check_recipe(&p, &w, ROSE, strlen(ROSE));
            }
}

static void every_width(void **state) {
    (void)state;
    for (int bits = 1; bits <= 65; bits++)
        for (size_t k = 0; k < 4; k++) {
            plan p = {false, 2, k % 2 ? "fast" : "murmur3"};
            weighing w = {weights[k], NULL, bits == 65 ? 128 : bits};
            check_recipe(&p, &w, ROSE, strlen(ROSE));
        }
}

/* A table in which "a" is everywhere, "rose" often, and "name" is new. */
static doppel_df *make_table(const plan *p, char *path) {
    char recipe[80];
    snprintf(recipe, sizeof recipe, "simhash64:words=%zu:hash=%s", p->n, p->hash);
    tool t = tool_open(recipe, NULL, DOPPEL_WANT_SET);
    doppel_df_builder *builder;
    assert_int_equal(doppel_df_builder_create(t.recipe, 0, NULL, &builder, NULL), DOPPEL_OK);
    static const char *const documents[] = {"a rose is", "a rose", "a by other", "a", "a \xC3\xA9t\xC3\xA9", "a rose"};
    for (size_t i = 0; i < 6; i++) {
        doppel_sketch sketch = run(&t, documents[i], strlen(documents[i]));
        assert_int_equal(doppel_df_builder_add(builder, sketch.set, sketch.set_count, NULL), DOPPEL_OK);
    }
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(doppel_df_builder_save(builder, path, 0, NULL), DOPPEL_OK);
    doppel_df_builder_free(builder);
    tool_close(&t);
    doppel_df *df;
    assert_int_equal(doppel_df_open(path, &df, NULL), DOPPEL_OK);
    return df;
}

static void tfidf_weighs_by_the_table(void **state) {
    (void)state;
    for (int bits = 1; bits <= 128; bits += bits == 64 ? 64 : 9) {
        char path[] = "/tmp/doppel-test.XXXXXX";
        plan p = {false, 1, bits % 2 ? "fast" : "xxh3"};
        doppel_df *df = make_table(&p, path);
        weighing w = {"tfidf", df, bits};
        check_recipe(&p, &w, ROSE, strlen(ROSE));
        /* What is in every document weighs nothing: no bit is above 0. */
        char recipe[80];
        snprintf(recipe, sizeof recipe, "simhash%d:words=1:hash=%s:weight=tfidf", bits, p.hash);
        tool t = tool_open(recipe, df, 0);
        doppel_sketch sketch = run(&t, "a A a", 5);
        assert_int_equal(sketch.fingerprint[0] | sketch.fingerprint[1], 0);
        assert_int_equal(sketch.features, 3);
        tool_close(&t);
        doppel_df_close(df);
        unlink(path);
    }
}

static void a_word_that_fills_a_large_document(void **state) {
    (void)state;
    enum { WORDS = 9000000 }; /* the square of this, in units of 1/65536, does not fit 63 bits */
    char *text = malloc(2 * WORDS);
    uint64_t hash;
    for (size_t i = 0; i < WORDS; i++)
        memcpy(text + 2 * i, "a ", 2);
    assert_int_equal(doppel_hash("fast", doppel_slice_of("a"), 0, &hash), DOPPEL_OK);
    for (size_t k = 0; k < 4; k++) {
        char recipe[80];
        snprintf(recipe, sizeof recipe, "simhash64:words=1:weight=%s", weights[k]);
        tool t = tool_open(recipe, NULL, 0);
        doppel_sketch sketch = run(&t, text, 2 * WORDS);
        assert_int_equal(sketch.words, WORDS);
        assert_int_equal(sketch.fingerprint[0], hash);
        tool_close(&t);
    }
    free(text);
}

/* ---- everything else in a sketch ---- */

static void the_digest_is_sha256_of_the_normalised_text(void **state) {
    (void)state;
    static const char *const recipes[] = {"page", "simhash64:words=1:case=keep:punct=keep", "simhash64:chars=4",
                                          "simhash64:chars=4:space=drop"};
    for (size_t i = 0; i < 4; i++) {
        tool t = tool_open(recipes[i], NULL, DOPPEL_WANT_DIGEST | DOPPEL_WANT_TEXT);
        doppel_sketch sketch = run(&t, ROSE, strlen(ROSE));
        unsigned char want[32];
        assert_true(EVP_Digest(sketch.text.data, sketch.text.length, want, NULL, EVP_sha256(), NULL));
        assert_memory_equal(sketch.digest, want, 32);
        tool_close(&t);
    }
}

static void the_normalised_text(void **state) {
    (void)state;
    tool t = tool_open("simhash64:words=3", NULL, DOPPEL_WANT_TEXT);
    static const char want[] =
        "a rose is a rose is a rose \xC3\xA9t\xC3\xA9 \xE6\x9D\xB1 \xE4\xBA\xAC \xE6\x9D\xB1 by any "
        "other name rose";
    doppel_sketch sketch = run(&t, ROSE, strlen(ROSE));
    assert_int_equal(sketch.text.length, strlen(want));
    assert_memory_equal(sketch.text.data, want, strlen(want));
    assert_int_equal(sketch.words, 17);
    assert_int_equal(sketch.features, 15);
    tool_close(&t);
}

static void the_set_is_the_distinct_features_in_order(void **state) {
    (void)state;
    tool t = tool_open("simhash64:chars=2", NULL, DOPPEL_WANT_SET | DOPPEL_WANT_FEATURES);
    doppel_sketch sketch = run(&t, ROSE, strlen(ROSE));
    assert_true(sketch.set_count < sketch.features);
    for (size_t i = 1; i < sketch.set_count; i++)
        assert_true(sketch.set[i - 1] < sketch.set[i]);
    for (size_t i = 0; i < sketch.features; i++) {
        size_t found = 0;
        for (size_t k = 0; k < sketch.set_count; k++)
            found += sketch.set[k] == sketch.feature_hashes[i];
        assert_int_equal(found, 1);
    }
    tool_close(&t);
}

static void the_sample_is_the_set_that_p_divides(void **state) {
    (void)state;
    static const unsigned divisors[] = {1, 2, 3, 4, 7, 4294967295u};
    for (size_t k = 0; k < 6; k++) {
        char recipe[60];
        snprintf(recipe, sizeof recipe, "simhash64:chars=2:sample=%u", divisors[k]);
        tool t = tool_open(recipe, NULL, DOPPEL_WANT_SET);
        doppel_sketch sketch = run(&t, ROSE, strlen(ROSE));
        size_t at = 0;
        for (size_t i = 0; i < sketch.set_count; i++)
            if (sketch.set[i] % divisors[k] == 0)
                assert_int_equal(sketch.sample[at++], sketch.set[i]);
        assert_int_equal(sketch.sample_count, at);
        tool_close(&t);
    }
}

static void the_signature_is_minhash_of_the_features(void **state) {
    (void)state;
    static const unsigned slots[] = {1, 8, 128, 300};
    for (size_t k = 0; k < 4; k++) {
        char recipe[60];
        uint32_t want[300];
        snprintf(recipe, sizeof recipe, "simhash128:words=2:minhash=%u", slots[k]);
        tool t = tool_open(recipe, NULL, DOPPEL_WANT_FEATURES);
        doppel_sketch sketch = run(&t, ROSE, strlen(ROSE));
        assert_int_equal(sketch.slots, slots[k]);
        assert_int_equal(doppel_minhash(sketch.feature_hashes, sketch.features, slots[k], want), DOPPEL_OK);
        assert_memory_equal(sketch.signature, want, slots[k] * 4);
        tool_close(&t);
    }
}

static void only_what_is_wanted_is_given(void **state) {
    (void)state;
    static const uint8_t none[32];
    for (unsigned wants = 0; wants < 16; wants++) {
        tool t = tool_open("simhash64:words=1:weight=set", NULL, wants);
        doppel_sketch sketch = run(&t, ROSE, strlen(ROSE));
        assert_int_equal(!memcmp(sketch.digest, none, 32), !(wants & DOPPEL_WANT_DIGEST));
        assert_int_equal(!sketch.feature_hashes, !(wants & DOPPEL_WANT_FEATURES));
        assert_int_equal(!sketch.set, !(wants & DOPPEL_WANT_SET));
        assert_int_equal(!sketch.set_count, !(wants & DOPPEL_WANT_SET));
        assert_int_equal(!sketch.text.data, !(wants & DOPPEL_WANT_TEXT));
        assert_null(sketch.signature);
        assert_null(sketch.sample);
        tool_close(&t);
    }
}

/* ---- short documents ---- */

static void a_document_without_words_has_no_sketch(void **state) {
    (void)state;
    static const char *const recipes[] = {"simhash128:words=5:minhash=16:sample=1",
                                          "simhash64:words=1:weight=tf2:minhash=1",
                                          "simhash64:chars=3:weight=set:minhash=16:sample=1"};
    static const char *const texts[] = {"", " \n ", "...", "\xFF"};
    static const uint8_t none[32];
    for (size_t k = 0; k < 12; k++) {
        tool t = tool_open(recipes[k / 4], NULL, EVERYTHING);
        doppel_sketch sketch = run(&t, texts[k % 4], strlen(texts[k % 4]));
        assert_int_equal(sketch.fingerprint[0] | sketch.fingerprint[1], 0);
        assert_int_equal(sketch.words + sketch.features + sketch.set_count + sketch.sample_count, 0);
        assert_int_equal(sketch.text.length, 0);
        assert_null(sketch.signature);
        assert_memory_equal(sketch.digest, none, 32);
        tool_close(&t);
    }
}

static void fewer_words_than_n_are_one_feature(void **state) {
    (void)state;
    static const char text[] = "one two three four five six";
    static const size_t ends[] = {3, 7, 13, 18, 23, 27};
    for (size_t words = 1; words <= 6; words++) {
        plan p = {false, 4, "fast"};
        weighing w = {"tf", NULL, 64};
        tool t = tool_open("simhash64:words=4", NULL, EVERYTHING);
        doppel_sketch sketch = run(&t, text, ends[words - 1]);
        assert_int_equal(sketch.words, words);
        assert_int_equal(sketch.features, words < 4 ? 1 : words - 3);
        check_sketch(&p, &w, &sketch);
        tool_close(&t);
    }
}

static void a_thousand_words_a_feature(void **state) {
    (void)state;
    char *text = malloc(60000);
    for (size_t words = 998; words <= 1003; words++) {
        size_t length = 0;
        for (size_t i = 0; i < words; i++)
            length += (size_t)sprintf(text + length, "word%zu a%zu.%c", i, i * i, i % 2 ? '\n' : ' ');
        plan p = {false, 1000, "fast"};
        weighing w = {"tf", NULL, 128};
        check_recipe(&p, &w, text, length);
        p.hash = "murmur3";
        check_recipe(&p, &w, text, length);
    }
    free(text);
}

/* ---- pieces, and use again ---- */

static char *long_document(size_t *length) {
    enum { WORDS = 9000 };
    char *text = malloc(WORDS * 12);
    uint64_t seed = 1;
    *length = 0;
    for (size_t i = 0; i < WORDS; i++) {
        size_t word = random_below(&seed, 3000);
        const char *form = word % 50 ? word % 7 ? "w%zu " : "W%zu, " : "\xC3\x89\xE6\x9D\xB1%zu\n";
        *length += (size_t)sprintf(text + *length, form, word);
    }
    return text;
}

static void same_sketch(const doppel_sketch *a, const doppel_sketch *b) {
    assert_memory_equal(a->fingerprint, b->fingerprint, sizeof a->fingerprint);
    assert_memory_equal(a->digest, b->digest, 32);
    assert_int_equal(a->words, b->words);
    assert_int_equal(a->features, b->features);
    assert_int_equal(a->set_count, b->set_count);
    assert_int_equal(a->sample_count, b->sample_count);
    assert_int_equal(a->text.length, b->text.length);
    assert_memory_equal(a->text.data, b->text.data, a->text.length);
    assert_memory_equal(a->set, b->set, a->set_count * 8);
    assert_memory_equal(a->feature_hashes, b->feature_hashes, a->features * 8);
    assert_memory_equal(a->signature, b->signature, a->slots * 4);
}

static void pieces_give_what_the_whole_gives(void **state) {
    (void)state;
    static const char *const recipes[] = {"simhash128:words=5:minhash=64:sample=2",
                                          "simhash64:chars=7:hash=xxh3:minhash=8:sample=3",
                                          "simhash33:words=3:hash=murmur3:weight=sqrt:minhash=8:sample=3"};
    static const size_t pieces[] = {1, 3, 1000, 16384, 50000};
    size_t length;
    char *text = long_document(&length);
    for (size_t k = 0; k < 15; k++) {
        tool whole = tool_open(recipes[k / 5], NULL, EVERYTHING), cut = tool_open(recipes[k / 5], NULL, EVERYTHING);
        doppel_sketch want = run(&whole, text, length), got;
        doppel_sketcher_reset(cut.sketcher);
        for (size_t at = 0, here; at < length; at += here) {
            here = length - at < pieces[k % 5] ? length - at : pieces[k % 5];
            assert_int_equal(doppel_sketcher_add(cut.sketcher, (doppel_slice){text + at, here}), DOPPEL_OK);
        }
        assert_int_equal(doppel_sketcher_finish(cut.sketcher, &got), DOPPEL_OK);
        same_sketch(&want, &got);
        tool_close(&whole);
        tool_close(&cut);
    }
    free(text);
}

static void long_documents_by_the_plain_way(void **state) {
    (void)state;
    size_t length;
    char *text = long_document(&length);
    plan p = {false, 5, "fast"};
    weighing w = {"tf", NULL, 128};
    check_recipe(&p, &w, text, length / 2);
    free(text);
}

static void a_sketcher_is_used_again(void **state) {
    (void)state;
    size_t length;
    char *text = long_document(&length);
    tool used = tool_open("simhash128:words=5:weight=sqrt:minhash=64:sample=2", NULL, EVERYTHING);
    tool fresh = tool_open("simhash128:words=5:weight=sqrt:minhash=64:sample=2", NULL, EVERYTHING);
    run(&used, text, length);
    run(&used, "", 0);
    /* Given up in the middle of a code point. */
    doppel_sketcher_reset(used.sketcher);
    assert_int_equal(doppel_sketcher_add(used.sketcher, (doppel_slice){text, length}), DOPPEL_OK);
    assert_int_equal(doppel_sketcher_add(used.sketcher, doppel_slice_of("more \xE6\x9D")), DOPPEL_OK);
    doppel_sketch got = run(&used, ROSE, strlen(ROSE)), want = run(&fresh, ROSE, strlen(ROSE));
    same_sketch(&want, &got);
    tool_close(&used);
    tool_close(&fresh);
    free(text);
}

static void the_simple_call_is_the_page_recipe(void **state) {
    (void)state;
    tool t = tool_open("page", NULL, 0);
    uint64_t fingerprint = 1;
    assert_int_equal(doppel_fingerprint(doppel_slice_of(ROSE), &fingerprint), DOPPEL_OK);
    assert_int_equal(fingerprint, run(&t, ROSE, strlen(ROSE)).fingerprint[0]);
    assert_int_equal(doppel_fingerprint(doppel_slice_of(""), &fingerprint), DOPPEL_OK);
    assert_int_equal(fingerprint, 0);
    tool_close(&t);
}

/* Every number of threads gives what a sketcher gives, text after text. */
static void many_texts_give_what_each_gives(void **state) {
    (void)state;
    enum { TEXTS = 100, SLOTS = 16 };
    static char bytes[TEXTS][64];
    doppel_slice texts[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) {
        snprintf(bytes[i], sizeof bytes[i], i % 7 ? "text number %zu of a batch of many" : "", i);
        texts[i] = doppel_slice_of(bytes[i]);
    }
    doppel_recipe *recipe;
    assert_int_equal(doppel_recipe_parse("simhash128:words=2:hash=fast:weight=tf:minhash=16", NULL, &recipe, NULL),
                     DOPPEL_OK);
    doppel_sketcher *sketcher;
    assert_int_equal(doppel_sketcher_create(recipe, DOPPEL_WANT_DIGEST, &sketcher, NULL), DOPPEL_OK);
    for (int threads = 1; threads < 5; threads++) {
        uint64_t fingerprints[2 * TEXTS], words[TEXTS];
        uint8_t digests[32 * TEXTS];
        uint32_t signatures[SLOTS * TEXTS];
        doppel_status statuses[TEXTS];
        const doppel_sketch_arrays to = {sizeof to, fingerprints, digests, signatures, words, statuses};
        assert_int_equal(doppel_sketch_batch(recipe, texts, TEXTS, threads, &to, NULL), DOPPEL_OK);
        for (size_t i = 0; i < TEXTS; i++) {
            doppel_sketch want;
            assert_int_equal(doppel_sketcher_run(sketcher, texts[i], &want), DOPPEL_OK);
            assert_int_equal(statuses[i], DOPPEL_OK);
            assert_int_equal(words[i], want.words);
            assert_memory_equal(fingerprints + 2 * i, want.fingerprint, 16);
            assert_memory_equal(digests + 32 * i, want.digest, 32);
            for (size_t k = 0; k < SLOTS; k++)
                assert_int_equal(signatures[SLOTS * i + k], want.signature ? want.signature[k] : UINT32_MAX);
        }
    }
    uint32_t signatures[SLOTS];
    const doppel_sketch_arrays none = {.size = sizeof none, .signatures = signatures};
    doppel_error error;
    assert_int_equal(doppel_sketch_batch(NULL, texts, 1, 1, &none, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "minhash="));
    doppel_sketcher_free(sketcher);
    doppel_recipe_free(recipe);
}

/* A stop word is no word. */
static void word_ranges_follow_the_recipe(void **state) {
    (void)state;
    const doppel_recipe_parts parts = {.size = sizeof parts, .stop_words.data = "is", .stop_words.length = 2};
    doppel_recipe *recipe;
    doppel_ranges ranges = {0};
    assert_int_equal(doppel_recipe_parse("simhash64:words=2", &parts, &recipe, NULL), DOPPEL_OK);
    assert_int_equal(doppel_ranges_find(recipe, doppel_slice_of("A rose is."), &ranges), DOPPEL_OK);
    assert_int_equal(ranges.count, 2);
    assert_memory_equal(ranges.range, ((const uint64_t[]){0, 1, 2, 6}), 32);
    assert_int_equal(doppel_ranges_find(NULL, doppel_slice_of("A rose is."), &ranges), DOPPEL_OK);
    assert_int_equal(ranges.count, 3);
    doppel_ranges_free(&ranges);
    doppel_recipe_free(recipe);
}

/* ---- the caller's own features ---- */

static doppel_status simhash(double weight, size_t count, const doppel_simhash_options *options) {
    doppel_feature *features = malloc((count + 1) * sizeof *features);
    doppel_error error = {.code = DOPPEL_OK};
    uint64_t fingerprint[2];
    for (size_t i = 0; i < count; i++)
        features[i] = (doppel_feature){{"feature", 7}, weight};
    doppel_status status = doppel_simhash(features, count, options, fingerprint, &error);
    assert_int_equal(status != DOPPEL_OK, error.message[0] != 0);
    free(features);
    return status;
}

static void weights_and_options_that_make_no_sense(void **state) {
    (void)state;
    assert_int_equal(simhash(1, 1, NULL), DOPPEL_OK);
    assert_int_equal(simhash(0, 0, NULL), DOPPEL_OK);
    assert_int_equal(simhash(-0x1p31, 1, NULL), DOPPEL_OK);
    assert_int_equal(simhash(0x1.0000001p31, 1, NULL), DOPPEL_ERROR_USAGE);
    assert_int_equal(simhash((double)NAN, 1, NULL), DOPPEL_ERROR_USAGE);
    assert_int_equal(simhash((double)-INFINITY, 1, NULL), DOPPEL_ERROR_USAGE);
    /* 2^15 of 2^31 are 2^62 units: the most there is. */
    assert_int_equal(simhash(0x1p31, 1 << 15, NULL), DOPPEL_OK);
    assert_int_equal(simhash(0x1p31, (1 << 15) + 1, NULL), DOPPEL_ERROR_USAGE);
    static const int wrong[] = {-1, 65, 127, 129, 256};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(
            simhash(1, 1, &(doppel_simhash_options){.size = sizeof(doppel_simhash_options), .bits = wrong[i]}),
            DOPPEL_ERROR_USAGE);
    assert_int_equal(simhash(1, 1, &(doppel_simhash_options){.size = sizeof(doppel_simhash_options), .hash = "no"}),
                     DOPPEL_ERROR_USAGE);
}

static void weights_are_rounded_to_even_units(void **state) {
    (void)state;
    /* Halves of 1/65536 go to the even one. */
    static const struct {
        double weight;
        int64_t units;
    } cases[] = {{0.5 / 65536, 0}, {1.5 / 65536, 2}, {2.5 / 65536, 2}, {-1.5 / 65536, -2}, {4.3, 281805}, {-1, -65536}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t sums[64];
        uint64_t fingerprint[2], hash;
        doppel_feature feature = {{"x", 1}, cases[i].weight};
        doppel_simhash_options options = {.size = sizeof options, .sums = sums};
        assert_int_equal(doppel_simhash(&feature, 1, &options, fingerprint, NULL), DOPPEL_OK);
        assert_int_equal(doppel_hash("fast", doppel_slice_of("x"), 0, &hash), DOPPEL_OK);
        for (int bit = 0; bit < 64; bit++)
            assert_int_equal(sums[bit], hash >> bit & 1 ? cases[i].units : -cases[i].units);
        assert_int_equal(fingerprint[0], cases[i].units > 0 ? hash : cases[i].units < 0 ? ~hash : 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_weight_hash_and_n),
        cmocka_unit_test(every_width),
        cmocka_unit_test(tfidf_weighs_by_the_table),
        cmocka_unit_test(a_word_that_fills_a_large_document),
        cmocka_unit_test(the_digest_is_sha256_of_the_normalised_text),
        cmocka_unit_test(the_normalised_text),
        cmocka_unit_test(the_set_is_the_distinct_features_in_order),
        cmocka_unit_test(the_sample_is_the_set_that_p_divides),
        cmocka_unit_test(the_signature_is_minhash_of_the_features),
        cmocka_unit_test(only_what_is_wanted_is_given),
        cmocka_unit_test(a_document_without_words_has_no_sketch),
        cmocka_unit_test(fewer_words_than_n_are_one_feature),
        cmocka_unit_test(a_thousand_words_a_feature),
        cmocka_unit_test(pieces_give_what_the_whole_gives),
        cmocka_unit_test(long_documents_by_the_plain_way),
        cmocka_unit_test(a_sketcher_is_used_again),
        cmocka_unit_test(the_simple_call_is_the_page_recipe),
        cmocka_unit_test(many_texts_give_what_each_gives),
        cmocka_unit_test(word_ranges_follow_the_recipe),
        cmocka_unit_test(weights_and_options_that_make_no_sense),
        cmocka_unit_test(weights_are_rounded_to_even_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
