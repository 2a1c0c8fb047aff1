/* query_runs.h - what tests of queries share: askers, items, asking and being refused. */
#ifndef TESTS_QUERY_RUNS_H
#define TESTS_QUERY_RUNS_H

#include "support.h"

#include "engine/query.h"
#include "sketch/sketch.h"

#include <stdio.h>

static const char words12[] = "the quick brown fox jumps over the lazy dog in the park";

/* ---- askers and items ---- */

static char *field_names[] = {"source", "date"};

static inline dp_query_settings similarity_asking(void) {
    dp_query_settings asking = {.recipe = dp_recipe_default(),
                                .by_similarity = true,
                                .min_words = 5,
                                .titles = true,
                                .fields = field_names,
                                .field_count = 2};
    assert_true(dp_bands_plan(0.8, &asking.bands, &asking.rows));
    return asking;
}

static inline dp_query_settings distance_asking(const doppel_recipe *recipe) {
    return (dp_query_settings){.recipe = recipe, .min_words = 5, .titles = true};
}

static inline dp_query_maker *asker_of(dp_query_settings asking) {
    dp_query_maker *asker;
    assert_int_equal(dp_query_maker_create(&asking, &asker, NULL), DOPPEL_OK);
    return asker;
}

static inline doppel_item item_of(const char *id, const char *url, const char *title, const char *text) {
    doppel_item item = {.size = sizeof item};
    doppel_document *d = &item.document;
    d->id.data = id, d->url.data = url, d->title.data = title, d->text.data = text;
    d->id.length = id ? strlen(id) : 0;
    d->url.length = url ? strlen(url) : 0;
    d->title.length = title ? strlen(title) : 0;
    d->text.length = text ? strlen(text) : 0;
    return item;
}

static inline doppel_item page_of(const char *url, const char *html) {
    doppel_item item = item_of(NULL, url, NULL, NULL);
    item.document.html.data = html;
    item.document.html.length = strlen(html);
    return item;
}

static inline dp_query ask(dp_query_maker *asker, doppel_item item) {
    dp_query query;
    doppel_error error = {0};
    if (dp_query_make(asker, &item, &query, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return query;
}

static inline void assert_slice(doppel_slice slice, const char *expected) {
    assert_int_equal(slice.length, strlen(expected));
    assert_memory_equal(slice.data, expected, slice.length);
}

/* Asks for something that is refused with a message that says so. */
static inline void refuse(dp_query_maker *asker, doppel_item item, doppel_status status, const char *says) {
    dp_query query;
    doppel_error error = {0};
    item.document.file = "in.jsonl";
    item.document.line = 7;
    assert_int_equal(dp_query_make(asker, &item, &query, &error), status);
    if (!strstr(error.message, says))
        fail_msg("`%s` does not say `%s`", error.message, says);
    if (status == DOPPEL_ERROR_INPUT) {
        assert_string_equal(error.file, "in.jsonl");
        assert_int_equal(error.line, 7);
    }
    assert_int_equal(dp_query_make(asker, &item, &query, NULL), status);
}

/* ---- sketches ---- */

/* A query's sketches are those that a sketcher makes. */
static inline void assert_sketched(const dp_query *q, const dp_query_settings *asking, const char *text) {
    doppel_sketcher *sketcher;
    doppel_sketch sketch;
    uint32_t keys[DP_MOST_BANDS];
    assert_int_equal(doppel_sketcher_create(asking->recipe, DOPPEL_WANT_DIGEST | DOPPEL_WANT_SET, &sketcher, NULL),
                     DOPPEL_OK);
    assert_int_equal(doppel_sketcher_run(sketcher, doppel_slice_of(text), &sketch), DOPPEL_OK);
    assert_int_equal(q->words, sketch.words);
    assert_int_equal(q->has_digest, sketch.words > 0);
    assert_memory_equal(q->digest, sketch.digest, 32);
    assert_memory_equal(q->fingerprint, sketch.fingerprint, 16);
    assert_int_equal(q->content, sketch.words >= 5);
    if (q->content && asking->by_similarity) {
        assert_int_equal(q->set_count, sketch.set_count);
        assert_memory_equal(q->set, sketch.set, sketch.set_count * 8);
        assert_int_equal(dp_bands_keys(sketch.set, sketch.set_count, asking->bands, asking->rows, keys), DOPPEL_OK);
        assert_int_equal(q->key_count, asking->bands);
        assert_memory_equal(q->keys, keys, q->key_count * 4);
    } else {
        assert_int_equal(q->set_count + q->key_count, 0);
    }
    doppel_sketcher_free(sketcher);
}

#endif
