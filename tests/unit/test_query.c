/* test_query.c - an item as the engine asks about it: each name and sketch that is derived, and what is refused. */
#include "support.h"

#include "engine/query.h"
#include "sketch/sketch.h"

#include <stddef.h>
#include <stdio.h>

static const char words12[] = "the quick brown fox jumps over the lazy dog in the park";

/* ---- askers and items ---- */

static char *field_names[] = {"source", "date"};

static dp_asking similarity_asking(void) {
    dp_asking asking = {.recipe = dp_recipe_default(),
                        .by_similarity = true,
                        .min_words = 5,
                        .titles = true,
                        .fields = field_names,
                        .field_count = 2};
    assert_true(dp_bands_plan(0.8, &asking.bands, &asking.rows));
    return asking;
}

static dp_asking distance_asking(const doppel_recipe *recipe) {
    return (dp_asking){.recipe = recipe, .min_words = 5, .titles = true};
}

static dp_asker *asker_of(dp_asking asking) {
    dp_asker *asker;
    assert_int_equal(dp_asker_create(&asking, &asker, NULL), DOPPEL_OK);
    return asker;
}

static doppel_item item_of(const char *id, const char *url, const char *title, const char *text) {
    doppel_item item = {.size = sizeof item};
    doppel_document *d = &item.document;
    d->id = id, d->url = url, d->title = title, d->text = text;
    d->id_length = id ? strlen(id) : 0;
    d->url_length = url ? strlen(url) : 0;
    d->title_length = title ? strlen(title) : 0;
    d->text_length = text ? strlen(text) : 0;
    return item;
}

static doppel_item page_of(const char *url, const char *html) {
    doppel_item item = item_of(NULL, url, NULL, NULL);
    item.document.html = html;
    item.document.html_length = strlen(html);
    return item;
}

static dp_query ask(dp_asker *asker, doppel_item item) {
    dp_query query;
    doppel_error error = {0};
    if (dp_ask(asker, &item, &query, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return query;
}

static void assert_slice(doppel_slice slice, const char *expected) {
    assert_int_equal(slice.length, strlen(expected));
    assert_memory_equal(slice.data, expected, slice.length);
}

/* Asks for something that is refused with a message that says so. */
static void refuse(dp_asker *asker, doppel_item item, doppel_status status, const char *says) {
    dp_query query;
    doppel_error error = {0};
    item.document.file = "in.jsonl";
    item.document.line = 7;
    assert_int_equal(dp_ask(asker, &item, &query, &error), status);
    if (!strstr(error.message, says))
        fail_msg("`%s` does not say `%s`", error.message, says);
    if (status == DOPPEL_ERROR_INPUT) {
        assert_string_equal(error.file, "in.jsonl");
        assert_int_equal(error.line, 7);
    }
    assert_int_equal(dp_ask(asker, &item, &query, NULL), status);
}

/* ---- names ---- */

static void an_id_is_as_given_or_derived(void **state) {
    (void)state;
    dp_asker *asker = asker_of(similarity_asking());
    dp_query q = ask(asker, item_of("\xFFid", "http://www.a.example/x/?utm_source=y", NULL, words12));
    assert_true(q.id_given);
    assert_slice(q.id, "\xFFid");
    assert_int_equal(q.id_hash, dp_name_hash(q.id));
    q = ask(asker, item_of("", "http://www.a.example/x/?utm_source=y", NULL, words12));
    assert_false(q.id_given);
    assert_ptr_equal(q.id.data, q.canonical.data);
    q = ask(asker, item_of(NULL, NULL, NULL, words12));
    char hex[17];
    for (int i = 0; i < 8; i++)
        sprintf(hex + 2 * i, "%02x", q.digest[i]);
    assert_slice(q.id, hex);
    assert_false(q.id_given);
    q = ask(asker, item_of(NULL, NULL, NULL, "..."));
    assert_int_equal(q.id.length, 0);
    assert_int_equal(q.id_hash, 0);
    dp_asker_free(asker);
}

static void spellings_of_a_url_are_one(void **state) {
    (void)state;
    static const char *const spellings[] = {
        "https://example.com/a?b=1&c=2", "HTTP://EXAMPLE.com:80/a?c=2&b=1", "http://www.example.com/a/?b=1&c=2#top",
        " https://example.com/./x/../a?b=1&c=2 ", "https://example.com/%61?b=1&c=2&utm_medium=mail"};
    dp_asker *asker = asker_of(similarity_asking());
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        dp_query q = ask(asker, item_of("a", spellings[i], NULL, NULL));
        assert_slice(q.url, spellings[i]);
        hash = hash ? hash : q.url_hash;
        assert_int_equal(q.url_hash, hash);
        assert_int_equal(q.url_hash, dp_name_hash(q.canonical));
    }
    dp_query q = ask(asker, item_of("a", NULL, NULL, words12));
    assert_null(q.url.data);
    assert_null(q.canonical.data);
    assert_int_equal(q.url_hash, 0);
    q = ask(asker, item_of("a", "\xFF\xFE no url", NULL, words12));
    assert_true(q.url_hash != 0);
    dp_asker_free(asker);
    dp_asking strict = similarity_asking();
    strict.url_without = DOPPEL_URL_FRAGMENT;
    asker = asker_of(strict);
    q = ask(asker, item_of("a", "https://example.com/a?b=1&c=2#top", NULL, NULL));
    assert_true(q.url_hash != hash);
    dp_asker_free(asker);
}

static void a_page_and_a_redirect_name_their_address(void **state) {
    (void)state;
    dp_asker *asker = asker_of(similarity_asking());
    dp_query q =
        ask(asker, page_of("https://example.com/dir/page?session=4", "<link rel=canonical href='../true'><p>words"));
    doppel_slice own = q.canonical;
    uint64_t hash = q.url_hash;
    assert_slice(q.url, "https://example.com/dir/page?session=4");
    assert_true(own.length && memmem(own.data, own.length, "/true", 5));
    doppel_item redirect = item_of(NULL, "https://example.com/old", NULL, NULL);
    redirect.document.alias = "/true";
    redirect.document.alias_length = 5;
    q = ask(asker, redirect);
    assert_int_equal(q.url_hash, hash);
    assert_slice(q.url, "https://example.com/old");
    assert_false(q.has_digest);
    q = ask(asker, page_of(NULL, "<link rel=canonical href='https://example.com/true'><p>words"));
    assert_int_equal(q.url_hash, hash);
    assert_null(q.url.data);
    dp_asker_free(asker);
}

static void a_title_is_as_given_or_of_the_page(void **state) {
    (void)state;
    dp_asker *asker = asker_of(similarity_asking());
    dp_query q = ask(asker, page_of(NULL, "<title>The Life of\n Whales, Part 1</title><p>words"));
    assert_slice(q.title, "The Life of Whales, Part 1");
    assert_slice(q.title_key, "the life of whales part 1");
    doppel_item item = page_of(NULL, "<title>The Life of Whales</title><p>words");
    item.document.title = "Something ELSE altogether";
    item.document.title_length = strlen(item.document.title);
    q = ask(asker, item);
    assert_slice(q.title, "Something ELSE altogether");
    assert_slice(q.title_key, "something else altogether");
    q = ask(asker, item_of(NULL, NULL, "Too short", words12));
    assert_slice(q.title, "Too short");
    assert_int_equal(q.title_key.length, 0);
    q = ask(asker, item_of(NULL, NULL, "a title \xFF with bad bytes", words12));
    assert_slice(q.title, "a title \xFF with bad bytes");
    assert_slice(q.title_key, "a title with bad bytes");
    q = ask(asker, item_of(NULL, NULL, NULL, words12));
    assert_null(q.title.data);
    assert_int_equal(q.title_key.length, 0);
    dp_asker_free(asker);
    dp_asking asking = similarity_asking();
    asking.titles = false;
    asker = asker_of(asking);
    q = ask(asker, item_of(NULL, NULL, "A title that is long enough", words12));
    assert_slice(q.title, "A title that is long enough");
    assert_int_equal(q.title_key.length, 0);
    dp_asker_free(asker);
}

static void fields_are_a_json_object(void **state) {
    (void)state;
    dp_asker *asker = asker_of(similarity_asking());
    doppel_slice extra[2] = {{"a \"wire\" \xFF", 10}, {"2024-05-01", 10}};
    doppel_item item = item_of("a", NULL, NULL, words12);
    assert_null(ask(asker, item).fields.data);
    item.document.extra = extra;
    assert_slice(ask(asker, item).fields, "{\"source\":\"a \\\"wire\\\" \xEF\xBF\xBD\",\"date\":\"2024-05-01\"}");
    extra[0] = (doppel_slice){NULL, 0};
    assert_slice(ask(asker, item).fields, "{\"date\":\"2024-05-01\"}");
    extra[1] = (doppel_slice){"", 0};
    assert_slice(ask(asker, item).fields, "{\"date\":\"\"}");
    extra[1].data = NULL;
    assert_null(ask(asker, item).fields.data);
    dp_asker_free(asker);
}

/* ---- texts ---- */

/* A query's sketches are those that a sketcher makes. */
static void assert_sketched(const dp_query *q, const dp_asking *asking, const char *text) {
    doppel_sketcher *sketcher;
    doppel_sketch sketch;
    uint32_t keys[DP_MOST_BANDS];
    assert_int_equal(doppel_sketcher_create(asking->recipe, DOPPEL_WANT_DIGEST | DOPPEL_WANT_SET, &sketcher, NULL),
                     DOPPEL_OK);
    assert_int_equal(doppel_sketcher_run(sketcher, text, strlen(text), &sketch), DOPPEL_OK);
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
            dp_asking asking = by_similarity ? similarity_asking() : distance_asking(recipe);
            asking.recipe = recipe;
            dp_asker *asker = asker_of(asking);
            for (size_t i = 0; i < 2 * sizeof texts / sizeof *texts; i++) {
                const char *text = texts[i % (sizeof texts / sizeof *texts)];
                dp_query q = ask(asker, item_of("a", NULL, NULL, text));
                assert_sketched(&q, &asking, text);
                assert_null(q.text.data);
            }
            dp_asker_free(asker);
        }
        doppel_recipe_free(recipe);
    }
}

static void short_texts_have_a_digest_only(void **state) {
    (void)state;
    dp_asking asking = similarity_asking();
    asking.min_words = 13;
    dp_asker *asker = asker_of(asking);
    dp_query q = ask(asker, item_of("a", NULL, NULL, words12));
    assert_true(q.has_digest);
    assert_false(q.content);
    assert_null(q.set);
    assert_null(q.keys);
    dp_asker_free(asker);
    asking.min_words = 12;
    asker = asker_of(asking);
    assert_true(ask(asker, item_of("a", NULL, NULL, words12)).content);
    assert_false(ask(asker, item_of("a", NULL, NULL, "")).content);
    dp_asker_free(asker);
    asking.min_words = 0;
    asker = asker_of(asking);
    assert_false(ask(asker, item_of("a", NULL, NULL, "")).content);
    assert_true(ask(asker, item_of("a", NULL, NULL, "one")).content);
    dp_asker_free(asker);
}

static void the_text_of_a_page_is_its_content(void **state) {
    (void)state;
    static const char html[] = "<title>T</title><nav><a href=x>Home</a></nav><main><p>the quick brown fox jumps over "
                               "the lazy dog in the park</main><footer>imprint</footer>";
    dp_asking asking = similarity_asking();
    asking.keep_text = true;
    dp_asker *asker = asker_of(asking);
    dp_query q = ask(asker, page_of(NULL, html));
    assert_sketched(&q, &asking, words12);
    assert_slice(q.text, words12);
    dp_asker_free(asker);
    asking.content = DOPPEL_CONTENT_ALL;
    asker = asker_of(asking);
    q = ask(asker, page_of(NULL, html));
    assert_true(q.words > 12);
    /* A record's own text goes before its page. */
    doppel_item item = page_of(NULL, html);
    item.document.text = "one";
    item.document.text_length = 3;
    q = ask(asker, item);
    assert_int_equal(q.words, 1);
    assert_slice(q.text, "one");
    dp_asker_free(asker);
}

/* ---- given sketches ---- */

static void given_sketches_ask_like_their_text(void **state) {
    (void)state;
    doppel_recipe *wide;
    assert_int_equal(doppel_recipe_parse("simhash128:words=3", NULL, &wide, NULL), DOPPEL_OK);
    for (int i = 0; i < 4; i++) {
        dp_asking asking = i & 1 ? similarity_asking() : distance_asking(dp_recipe_default());
        asking.recipe = i & 2 ? wide : dp_recipe_default();
        dp_asker *one = asker_of(asking), *other = asker_of(asking);
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
        dp_asker_free(one);
        dp_asker_free(other);
    }
    doppel_recipe_free(wide);
}

static void given_sketches_may_lack_parts(void **state) {
    (void)state;
    static const uint64_t fingerprint[2] = {5, 0}, set[] = {1, 2, 3};
    static const uint8_t zeros[32];
    dp_asker *asker = asker_of(distance_asking(dp_recipe_default()));
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
    dp_asker_free(asker);
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
    item.document.text_length = 0;
    item.words = 3; /* too few to need a set */
    assert_false(ask(asker, item).content);
    dp_asker_free(asker);
}

static void sketches_that_do_not_fit_are_refused(void **state) {
    (void)state;
    static const uint64_t wide[2] = {1ULL << 32, 0}, twice[] = {1, 2, 2}, falling[] = {3, 2, 5};
    doppel_recipe *narrow;
    assert_int_equal(doppel_recipe_parse("simhash32", NULL, &narrow, NULL), DOPPEL_OK);
    dp_asker *asker = asker_of(distance_asking(narrow));
    doppel_item item = item_of("a", NULL, NULL, NULL);
    item.fingerprint = wide;
    refuse(asker, item, DOPPEL_ERROR_USAGE, "32 bits");
    dp_asker_free(asker);
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
    dp_asker_free(asker);
}

/* ---- limits ---- */

static void names_have_a_limit(void **state) {
    (void)state;
    enum { MILLION = 1 << 20 };
    dp_asker *asker = asker_of(similarity_asking());
    char *name = malloc(MILLION);
    memset(name, 'x', MILLION);
    doppel_item plain = item_of("a", NULL, NULL, words12), item = plain;
    static const size_t over[] = {DP_NAME_LIMIT + 1, MILLION};
    doppel_slice extra[2] = {{NULL, 0}, {name, 0}};
    for (size_t i = 0; i < 2; i++) {
        item = plain, item.document.id = name, item.document.id_length = over[i];
        refuse(asker, item, DOPPEL_ERROR_INPUT, "an id of");
        item = plain, item.document.url = name, item.document.url_length = over[i];
        refuse(asker, item, DOPPEL_ERROR_INPUT, "a URL of");
        item = plain, item.document.title = name, item.document.title_length = over[i];
        refuse(asker, item, DOPPEL_ERROR_INPUT, "a title of");
        item = plain, item.document.alias = name, item.document.alias_length = over[i];
        refuse(asker, item, DOPPEL_ERROR_INPUT, "redirect");
        item = plain, item.document.extra = extra, extra[1].length = over[i];
        refuse(asker, item, DOPPEL_ERROR_INPUT, "`date`");
    }
    item = plain;
    item.document.id = item.document.url = item.document.title = name;
    item.document.id_length = item.document.url_length = item.document.title_length = DP_NAME_LIMIT;
    dp_query q = ask(asker, item);
    assert_int_equal(q.id.length + q.url.length + q.title.length, 3 * DP_NAME_LIMIT);
    free(name);
    dp_asker_free(asker);
}

static void pages_have_the_same_limits(void **state) {
    (void)state;
    enum { ROOM = 200000 };
    dp_asker *asker = asker_of(similarity_asking());
    char *long_name = malloc(ROOM), *html = malloc(ROOM + 100);
    memset(long_name, 'x', ROOM - 1);
    long_name[ROOM - 1] = 0;
    sprintf(html, "<title>%s</title><p>words", long_name);
    refuse(asker, page_of(NULL, html), DOPPEL_ERROR_INPUT, "a page's title");
    sprintf(html, "<link rel=canonical href='http://a.example/%s'><p>words", long_name);
    refuse(asker, page_of(NULL, html), DOPPEL_ERROR_INPUT, "a page's canonical link");
    /* Escapes make a URL longer. */
    strcpy(long_name, "http://a.example/");
    for (size_t i = strlen(long_name); i < 60000; i++)
        long_name[i] = '\xE9';
    long_name[60000] = 0;
    refuse(asker, item_of("a", long_name, NULL, words12), DOPPEL_ERROR_INPUT, "a canonical URL");
    free(long_name);
    free(html);
    dp_asker_free(asker);
}

static void an_item_has_a_size(void **state) {
    (void)state;
    dp_asker *asker = asker_of(similarity_asking());
    doppel_item item = item_of("a", NULL, NULL, words12);
    item.size = 0;
    refuse(asker, item, DOPPEL_ERROR_USAGE, "size");
    item.size = offsetof(doppel_item, ttl); /* a caller that does not know of ttl */
    item.ttl = 99;
    assert_int_equal(ask(asker, item).ttl, 0);
    item.size = sizeof item;
    assert_int_equal(ask(asker, item).ttl, 99);
    dp_asker_free(asker);
}

/* ---- copies ---- */

static void a_copy_outlives_its_asker(void **state) {
    (void)state;
    dp_asking asking = similarity_asking();
    asking.keep_text = true;
    doppel_slice extra[2] = {{"wire", 4}, {NULL, 0}};
    char id[] = "an id", url[] = "http://a.example/x", title[] = "A title of some length", text[sizeof words12];
    memcpy(text, words12, sizeof text);
    dp_asker *asker = asker_of(asking);
    doppel_item item = item_of(id, url, title, text);
    item.document.extra = extra;
    item.ttl = 5;
    dp_query q = ask(asker, item);
    dp_query *copy = dp_query_copy(&q);
    assert_non_null(copy);
    memset(id, 'z', strlen(id));
    memset(url, 'z', strlen(url));
    memset(title, 'z', strlen(title));
    memset(text, 'z', strlen(text));
    dp_asker_free(asker);
    assert_slice(copy->id, "an id");
    assert_slice(copy->url, "http://a.example/x");
    assert_true(memmem(copy->canonical.data, copy->canonical.length, "a.example/x", 11));
    assert_slice(copy->title, "A title of some length");
    assert_slice(copy->title_key, "a title of some length");
    assert_slice(copy->fields, "{\"source\":\"wire\"}");
    assert_slice(copy->text, words12);
    assert_int_equal(copy->ttl, 5);
    assert_sketched(copy, &asking, words12);
    free(copy);
    copy = dp_query_copy(&(dp_query){.id_hash = 3});
    assert_int_equal(copy->id_hash, 3);
    assert_null(copy->set);
    assert_null(copy->id.data);
    free(copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_as_given_or_derived),
        cmocka_unit_test(spellings_of_a_url_are_one),
        cmocka_unit_test(a_page_and_a_redirect_name_their_address),
        cmocka_unit_test(a_title_is_as_given_or_of_the_page),
        cmocka_unit_test(fields_are_a_json_object),
        cmocka_unit_test(sketches_are_those_of_the_text),
        cmocka_unit_test(short_texts_have_a_digest_only),
        cmocka_unit_test(the_text_of_a_page_is_its_content),
        cmocka_unit_test(given_sketches_ask_like_their_text),
        cmocka_unit_test(given_sketches_may_lack_parts),
        cmocka_unit_test(sketches_that_do_not_fit_are_refused),
        cmocka_unit_test(names_have_a_limit),
        cmocka_unit_test(pages_have_the_same_limits),
        cmocka_unit_test(an_item_has_a_size),
        cmocka_unit_test(a_copy_outlives_its_asker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
