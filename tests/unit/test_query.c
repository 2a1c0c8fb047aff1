/* test_query.c - an item as the engine asks about it: the names that are derived, their limits, and copies. */
#include "query_runs.h"

/* ---- names ---- */

static void an_id_is_as_given_or_derived(void **state) {
    (void)state;
    dp_query_maker *asker = asker_of(similarity_asking());
    dp_query q = ask(asker, item_of("\xFFid", "http://www.a.example/x/?utm_source=y", NULL, words12));
    assert_true(q.id_given);
    assert_slice(q.id, "\xFFid");
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
    dp_query_maker_free(asker);
}

static void spellings_of_a_url_are_one(void **state) {
    (void)state;
    static const char *const spellings[] = {
        "https://example.com/a?b=1&c=2", "HTTP://EXAMPLE.com:80/a?c=2&b=1", "http://www.example.com/a/?b=1&c=2#top",
        " https://example.com/./x/../a?b=1&c=2 ", "https://example.com/%61?b=1&c=2&utm_medium=mail"};
    dp_query_maker *asker = asker_of(similarity_asking());
    char canonical[100] = "";
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        dp_query q = ask(asker, item_of("a", spellings[i], NULL, NULL));
        assert_slice(q.url, spellings[i]);
        if (!i)
            snprintf(canonical, sizeof canonical, "%.*s", (int)q.canonical.length, q.canonical.data);
        assert_slice(q.canonical, canonical);
    }
    dp_query q = ask(asker, item_of("a", NULL, NULL, words12));
    assert_null(q.url.data);
    assert_null(q.canonical.data);
    q = ask(asker, item_of("a", "\xFF\xFE no url", NULL, words12));
    assert_true(q.canonical.length > 0);
    dp_query_maker_free(asker);
    dp_query_settings strict = similarity_asking();
    strict.url_without = DOPPEL_URL_FRAGMENT;
    asker = asker_of(strict);
    q = ask(asker, item_of("a", "https://example.com/a?b=1&c=2#top", NULL, NULL));
    assert_true(q.canonical.length != strlen(canonical) || memcmp(q.canonical.data, canonical, strlen(canonical)) != 0);
    dp_query_maker_free(asker);
}

static void a_page_and_a_redirect_name_their_address(void **state) {
    (void)state;
    dp_query_maker *asker = asker_of(similarity_asking());
    dp_query q =
        ask(asker, page_of("https://example.com/dir/page?session=4", "<link rel=canonical href='../true'><p>words"));
    doppel_slice own = q.canonical;
    assert_slice(q.url, "https://example.com/dir/page?session=4");
    assert_true(own.length && memmem(own.data, own.length, "/true", 5));
    doppel_item redirect = item_of(NULL, "https://example.com/old", NULL, NULL);
    redirect.document.alias.data = "/true";
    redirect.document.alias.length = 5;
    q = ask(asker, redirect);
    assert_slice(q.canonical, "https://example.com/true");
    assert_slice(q.url, "https://example.com/old");
    assert_false(q.has_digest);
    q = ask(asker, page_of(NULL, "<link rel=canonical href='https://example.com/true'><p>words"));
    assert_slice(q.canonical, "https://example.com/true");
    assert_null(q.url.data);
    dp_query_maker_free(asker);
}

static void a_title_is_as_given_or_of_the_page(void **state) {
    (void)state;
    dp_query_maker *asker = asker_of(similarity_asking());
    dp_query q = ask(asker, page_of(NULL, "<title>The Life of\n Whales, Part 1</title><p>words"));
    assert_slice(q.title, "The Life of Whales, Part 1");
    assert_slice(q.title_key, "the life of whales part 1");
    doppel_item item = page_of(NULL, "<title>The Life of Whales</title><p>words");
    item.document.title.data = "Something ELSE altogether";
    item.document.title.length = strlen(item.document.title.data);
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
    dp_query_maker_free(asker);
    dp_query_settings asking = similarity_asking();
    asking.titles = false;
    asker = asker_of(asking);
    q = ask(asker, item_of(NULL, NULL, "A title that is long enough", words12));
    assert_slice(q.title, "A title that is long enough");
    assert_int_equal(q.title_key.length, 0);
    dp_query_maker_free(asker);
}

static void fields_are_a_json_object(void **state) {
    (void)state;
    dp_query_maker *asker = asker_of(similarity_asking());
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
    dp_query_maker_free(asker);
}

/* ---- limits ---- */

static void names_have_a_limit(void **state) {
    (void)state;
    enum { MILLION = 1 << 20 };
    dp_query_maker *asker = asker_of(similarity_asking());
    char *name = malloc(MILLION);
    memset(name, 'x', MILLION);
    doppel_item plain = item_of("a", NULL, NULL, words12), item = plain;
    static const size_t over[] = {DP_NAME_LIMIT + 1, MILLION};
    doppel_slice extra[2] = {{NULL, 0}, {name, 0}};
    for (size_t i = 0; i < 2; i++) {
        item = plain, item.document.id.data = name, item.document.id.length = over[i];
        refuse(asker, item, DOPPEL_ERROR_INPUT, "an id of");
        item = plain, item.document.url.data = name, item.document.url.length = over[i];
        refuse(asker, item, DOPPEL_ERROR_INPUT, "a URL of");
        item = plain, item.document.title.data = name, item.document.title.length = over[i];
        refuse(asker, item, DOPPEL_ERROR_INPUT, "a title of");
        item = plain, item.document.alias.data = name, item.document.alias.length = over[i];
        refuse(asker, item, DOPPEL_ERROR_INPUT, "redirect");
        item = plain, item.document.extra = extra, extra[1].length = over[i];
        refuse(asker, item, DOPPEL_ERROR_INPUT, "`date`");
    }
    item = plain;
    item.document.id.data = item.document.url.data = item.document.title.data = name;
    item.document.id.length = item.document.url.length = item.document.title.length = DP_NAME_LIMIT;
    dp_query q = ask(asker, item);
    assert_int_equal(q.id.length + q.url.length + q.title.length, 3 * DP_NAME_LIMIT);
    free(name);
    dp_query_maker_free(asker);
}

static void pages_have_the_same_limits(void **state) {
    (void)state;
    enum { ROOM = 200000 };
    dp_query_maker *asker = asker_of(similarity_asking());
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
    dp_query_maker_free(asker);
}

static void an_item_has_a_size(void **state) {
    (void)state;
    dp_query_maker *asker = asker_of(similarity_asking());
    doppel_item item = item_of("a", NULL, NULL, words12);
    item.size = 0;
    refuse(asker, item, DOPPEL_ERROR_USAGE, "size");
    item.size = offsetof(doppel_item, ttl); /* a caller that does not know of ttl */
    item.ttl = 99;
    assert_int_equal(ask(asker, item).ttl, 0);
    item.size = sizeof item;
    assert_int_equal(ask(asker, item).ttl, 99);
    dp_query_maker_free(asker);
}

/* ---- copies ---- */

static void a_copy_outlives_its_asker(void **state) {
    (void)state;
    dp_query_settings asking = similarity_asking();
    asking.keep_text = true;
    doppel_slice extra[2] = {{"wire", 4}, {NULL, 0}};
    char id[] = "an id", url[] = "http://a.example/x", title[] = "A title of some length", text[sizeof words12];
    memcpy(text, words12, sizeof text);
    dp_query_maker *asker = asker_of(asking);
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
    dp_query_maker_free(asker);
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
    copy = dp_query_copy(&(dp_query){.words = 3});
    assert_int_equal(copy->words, 3);
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
        cmocka_unit_test(names_have_a_limit),
        cmocka_unit_test(pages_have_the_same_limits),
        cmocka_unit_test(an_item_has_a_size),
        cmocka_unit_test(a_copy_outlives_its_asker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
