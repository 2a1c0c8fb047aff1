/* test_query_sketches.c - an item as the engine asks about it: sketches of its text, and those that are given. */
#include "query_runs.h"

/* ---- texts ---- */

static const char *const texts[] = {"",
                                    " ,.; ",
                                    "one",
                                    "one two three four",
                                    "one two three four five",
                                    words12,
                                    "caf\xC3\xA9 \xFF\xFE au lait \xE4\xB8\xAD\xE6\x96\x87"};

static void sketches_are_those_of_the_text(void **state) {
    (void)state;
    static const char *const recipes[] = {
        "page", "article", "literal", "simhash128:words=3", "simhash32:words=1", "simhash64:chars=4"};
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
        doppel_recipe *recipe;
        assert_int_equal(doppel_recipe_parse(recipes[r], NULL, &recipe, NULL), DOPPEL_OK);
        for (int by_similarity = 0; by_similarity < 2; by_similarity++) {
            dp_query_settings asking = by_similarity ? similarity_asking() : distance_asking(recipe);
            asking.recipe = recipe;
            dp_query_maker *asker = asker_of(asking);
            for (size_t i = 0; i < 2 * sizeof texts / sizeof *texts; i++) {
                const char *text = texts[i % (sizeof texts / sizeof *texts)];
                dp_query q = ask(asker, item_of("a", NULL, NULL, text));
                assert_sketched(&q, &asking, text);
                assert_null(q.text.data);
            }
            dp_query_maker_free(asker);
        }
        doppel_recipe_free(recipe);
    }
}

static void short_texts_have_a_digest_only(void **state) {
    (void)state;
    dp_query_settings asking = similarity_asking();
    asking.min_words = 13;
    dp_query_maker *asker = asker_of(asking);
    dp_query q = ask(asker, item_of("a", NULL, NULL, words12));
    assert_true(q.has_digest);
    assert_false(q.content);
    assert_null(q.set);
    assert_null(q.keys);
    dp_query_maker_free(asker);
    asking.min_words = 12;
    asker = asker_of(asking);
    assert_true(ask(asker, item_of("a", NULL, NULL, words12)).content);
    assert_false(ask(asker, item_of("a", NULL, NULL, "")).content);
    dp_query_maker_free(asker);
    asking.min_words = 0;
    asker = asker_of(asking);
    assert_false(ask(asker, item_of("a", NULL, NULL, "")).content);
    assert_true(ask(asker, item_of("a", NULL, NULL, "one")).content);
    dp_query_maker_free(asker);
}

static void the_text_of_a_page_is_its_content(void **state) {
    (void)state;
    static const char html[] = "<title>T</title><nav><a href=x>Home</a></nav><main><p>the quick brown fox jumps over "
                               "the lazy dog in the park</main><footer>imprint</footer>";
    dp_query_settings asking = similarity_asking();
    asking.keep_text = true;
    dp_query_maker *asker = asker_of(asking);
    dp_query q = ask(asker, page_of(NULL, html));
    assert_sketched(&q, &asking, words12);
    assert_slice(q.text, words12);
    dp_query_maker_free(asker);
    asking.content = DOPPEL_CONTENT_ALL;
    asker = asker_of(asking);
    q = ask(asker, page_of(NULL, html));
    assert_true(q.words > 12);
    /* A record's own text goes before its page. */
    doppel_item item = page_of(NULL, html);
    item.document.text.data = "one";
    item.document.text.length = 3;
    q = ask(asker, item);
    assert_int_equal(q.words, 1);
    assert_slice(q.text, "one");
    dp_query_maker_free(asker);
}

/* ---- given sketches ---- */

static void given_sketches_ask_like_their_text(void **state) {
    (void)state;
    doppel_recipe *wide;
    assert_int_equal(doppel_recipe_parse("simhash128:words=3", NULL, &wide, NULL), DOPPEL_OK);
    for (int i = 0; i < 4; i++) {
        dp_query_settings asking = i & 1 ? similarity_asking() : distance_asking(dp_recipe_default());
        asking.recipe = i & 2 ? wide : dp_recipe_default();
        dp_query_maker *one = asker_of(asking), *other = asker_of(asking);
        dp_query a = ask(one, item_of(NULL, NULL, NULL, words12));
        doppel_item item = item_of(NULL, NULL, NULL, NULL);
        item.fingerprint = a.fingerprint;
        item.digest = a.digest;
        item.set = a.set;
        item.set_count = a.set_count;
        item.words = a.words;
        dp_query b = ask(other, item);
        assert_sketched(&b, &asking, words12);
        assert_slice(b.id, "16f3be39f6fa7c28"); /* sha256sum says so */
        dp_query_maker_free(one);
        dp_query_maker_free(other);
    }
    doppel_recipe_free(wide);
}

static void given_sketches_may_lack_parts(void **state) {
    (void)state;
    static const uint64_t fingerprint[2] = {5, 0}, set[] = {1, 2, 3};
    static const uint8_t zeros[32];
    dp_query_maker *asker = asker_of(distance_asking(dp_recipe_default()));
    doppel_item item = item_of(NULL, "http://a.example/", NULL, "a text that is not looked at");
    item.fingerprint = fingerprint;
    dp_query q = ask(asker, item);
    assert_false(q.has_digest);
    assert_true(q.content);
    assert_int_equal(q.fingerprint[0], 5);
    assert_null(q.text.data);
    item.words = 4;
    assert_false(ask(asker, item).content);
    item.words = 5;
    assert_true(ask(asker, item).content);
    /* What a sketcher gives for a text without words. */
    item.digest = zeros;
    item.words = 0;
    q = ask(asker, item);
    assert_false(q.content || q.has_digest);
    dp_query_maker_free(asker);
    asker = asker_of(similarity_asking());
    item.digest = NULL;
    q = ask(asker, item); /* the text tells more than a fingerprint without a set */
    assert_true(q.has_digest);
    assert_int_equal(q.words, 7);
    item.set = set;
    item.set_count = 3;
    q = ask(asker, item);
    assert_ptr_equal(q.set, set);
    assert_int_equal(q.words, 0);
    item.set = NULL;
    item.document.text.length = 0;
    item.words = 3; /* too few to need a set */
    assert_false(ask(asker, item).content);
    dp_query_maker_free(asker);
}

static void sketches_that_do_not_fit_are_refused(void **state) {
    (void)state;
    static const uint64_t wide[2] = {1ULL << 32, 0}, twice[] = {1, 2, 2}, falling[] = {3, 2, 5};
    doppel_recipe *narrow;
    assert_int_equal(doppel_recipe_parse("simhash32", NULL, &narrow, NULL), DOPPEL_OK);
    dp_query_maker *asker = asker_of(distance_asking(narrow));
    doppel_item item = item_of("a", NULL, NULL, NULL);
    item.fingerprint = wide;
    refuse(asker, item, DOPPEL_ERROR_USAGE, "32 bits");
    dp_query_maker_free(asker);
    doppel_recipe_free(narrow);
    asker = asker_of(similarity_asking());
    refuse(asker, item, DOPPEL_ERROR_USAGE, "set");
    item.set = twice;
    item.set_count = 3;
    refuse(asker, item, DOPPEL_ERROR_USAGE, "ascending");
    item.set = falling;
    refuse(asker, item, DOPPEL_ERROR_USAGE, "ascending");
    item.fingerprint = NULL;
    refuse(asker, item, DOPPEL_ERROR_USAGE, "no fingerprint");
    item.set = NULL;
    item.digest = (const uint8_t *)words12;
    refuse(asker, item, DOPPEL_ERROR_USAGE, "no fingerprint");
    dp_query_maker_free(asker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sketches_are_those_of_the_text),    cmocka_unit_test(short_texts_have_a_digest_only),
        cmocka_unit_test(the_text_of_a_page_is_its_content), cmocka_unit_test(given_sketches_ask_like_their_text),
        cmocka_unit_test(given_sketches_may_lack_parts),     cmocka_unit_test(sketches_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
