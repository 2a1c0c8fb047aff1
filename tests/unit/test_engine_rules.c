/* test_engine_rules.c - what docs/ENGINE.md says of ids, duplicates, time and titles, wherever an engine lives. */
#include "engine_cases.h"
#include "engine_places.h"

/* ---- ids ---- */

static void an_id_that_is_there_is_known_or_replaced(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    adding_says(engine, item_of("a", NULL, ARTICLE), "unique");
    adding_says(engine, item_of("a", NULL, ARTICLE), "unique known");
    adding_says(engine, item_of("b", NULL, ARTICLE), "content_hash a");
    adding_says(engine, item_of("a", NULL, OTHER_ARTICLE), "unique replaced");
    checking_says(engine, item_of("c", NULL, ARTICLE), "unique");
    checking_says(engine, item_of("c", NULL, OTHER_ARTICLE), "content_hash a");
    /* A new version that is near the old one is not its own duplicate. */
    adding_says(engine, item_of("a", NULL, OTHER_ARTICLE "And so on."), "unique replaced");
    doppel_engine_close(engine);
}

static void a_missing_id_is_derived(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    doppel_stored_list list = {0};
    doppel_verdict v = {0};
    doppel_item item = item_of(NULL, "https://www.example.com/x/", ARTICLE);
    assert_int_equal(doppel_engine_add(engine, &item, &v, NULL), DOPPEL_OK);
    assert_int_equal(doppel_engine_get(engine, v.id.data, v.id.length, &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.stored[0].canonical.length, v.id.length);
    assert_memory_equal(list.stored[0].canonical.data, v.id.data, v.id.length);
    item = item_of(NULL, NULL, OTHER_ARTICLE);
    assert_int_equal(doppel_engine_add(engine, &item, &v, NULL), DOPPEL_OK);
    assert_int_equal(v.id.length, 16);
    doppel_stored_list_free(&list);
    doppel_verdict_free(&v);
    doppel_engine_close(engine);
}

/* ---- duplicates ---- */

static void skipped_copies_are_counted(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    doppel_stored_list list = {0};
    adding_says(engine, item_of("a", "http://a.example/", ARTICLE), "unique");
    adding_says(engine, item_of("b", "http://b.example/", ARTICLE), "content_hash a");
    adding_says(engine, item_of("c", "http://a.example/", OTHER_ARTICLE), "exact_url a");
    checking_says(engine, item_of("d", "http://b.example/", OTHER_ARTICLE), "unique");
    assert_int_equal(doppel_engine_get(engine, "a", 1, &list, NULL), DOPPEL_OK);
    assert_int_equal(list.stored[0].duplicates, 2);
    assert_int_equal(list.stored[0].duplicates_by[0], 1);
    assert_int_equal(list.stored[0].duplicates_by[1], 1);
    assert_int_equal(list.stored[0].alias_count, 0);
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

static void linked_copies_are_aliases(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
    doppel_stored_list list = {0};
    adding_says(engine, item_of("a", "http://a.example/", ARTICLE), "unique");
    adding_says(engine, item_of("b", "http://b.example/", ARTICLE), "content_hash a");
    adding_says(engine, item_of("b", "http://b.example/", ARTICLE), "content_hash a known");
    checking_says(engine, item_of("d", "http://b.example/", OTHER_ARTICLE), "exact_url a");
    assert_int_equal(doppel_engine_get(engine, "a", 1, &list, NULL), DOPPEL_OK);
    assert_int_equal(list.stored[0].alias_count, 1);
    assert_memory_equal(list.stored[0].aliases[0].data, "http://b.example/", 17);
    assert_int_equal(doppel_engine_get(engine, "b", 1, &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 1);
    assert_memory_equal(list.stored[0].original_id.data, "a", 1);
    bool removed;
    assert_int_equal(doppel_engine_remove(engine, "a", 1, &removed, NULL), DOPPEL_OK);
    checking_says(engine, item_of("d", "http://b.example/", OTHER_ARTICLE), "unique");
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

static void a_refreshed_url_has_its_new_text(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_same_url = DOPPEL_SAME_URL_REFRESH});
    adding_says(engine, item_of("a", "http://a.example/", ARTICLE), "unique");
    adding_says(engine, item_of("b", "http://a.example/", ARTICLE), "exact_url a");
    adding_says(engine, item_of("c", "http://a.example/", OTHER_ARTICLE), "unique replaced");
    checking_says(engine, item_of("d", NULL, ARTICLE), "unique");
    checking_says(engine, item_of("d", NULL, OTHER_ARTICLE), "content_hash c");
    doppel_engine_close(engine);
}

static void short_texts_are_the_same_but_never_near(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.preset = "crawl", .distance = 64});
    adding_says(engine, item_of("a", NULL, "four words of text"), "unique");
    checking_says(engine, item_of("b", NULL, "Four words, of TEXT!"), "content_hash a");
    checking_says(engine, item_of("b", NULL, "four words of texts"), "unique");
    adding_says(engine, item_of("c", NULL, "here are five whole words"), "unique");
    checking_says(engine, item_of("d", NULL, "there stand five other words"), "content_hash c");
    doppel_engine_close(engine);
}

/* ---- time ---- */

static void documents_match_until_their_time_is_over(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.ttl = 100});
    doppel_item own = item_of("b", NULL, OTHER_ARTICLE);
    own.ttl = 200;
    adding_says(engine, item_of("a", NULL, ARTICLE), "unique");
    adding_says(engine, own, "unique");
    now += 99;
    checking_says(engine, item_of("c", NULL, ARTICLE), "content_hash a");
    now += 1;
    checking_says(engine, item_of("c", NULL, ARTICLE), "unique");
    checking_says(engine, item_of("c", NULL, OTHER_ARTICLE), "content_hash b");
    now -= 100000; /* a clock that goes backwards brings nothing back */
    checking_says(engine, item_of("c", NULL, ARTICLE), "unique");
    adding_says(engine, item_of("a", NULL, ARTICLE), "unique");
    uint64_t expired;
    assert_int_equal(doppel_engine_expire(engine, &expired, NULL), DOPPEL_OK);
    checking_says(engine, item_of("c", NULL, ARTICLE), "content_hash a");
    doppel_engine_close(engine);
}

/* ---- titles ---- */

/* Titles of which each document has one, with words of its own below. */
static doppel_item titled(const char *title, size_t number, char text[64]) {
    sprintf(text, "w%zu x%zu y%zu z%zu v%zu u%zu", number, number, number, number, number, number);
    doppel_item item = item_of(NULL, NULL, text);
    item.document.title = title;
    item.document.title_length = strlen(title);
    return item;
}

static void titles_that_are_everywhere_do_not_count(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    char text[64];
    doppel_verdict v = {0};
    size_t duplicates = 0;
    for (size_t i = 0; i < 30; i++) {
        doppel_item item = titled("The daily column of our editor", i, text);
        assert_int_equal(doppel_engine_add(engine, &item, &v, NULL), DOPPEL_OK);
        duplicates += v.is_duplicate;
    }
    /* The first is unique, the next eight are its copies by title, then the title says nothing any more. */
    assert_int_equal(duplicates, 8);
    doppel_verdict_free(&v);
    doppel_engine_close(engine);
}

/* An item that replaces one document by its id and another by its URL is a copy of neither. */
static void what_goes_is_no_original(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_same_url = DOPPEL_SAME_URL_REFRESH});
    adding_says(engine, item_of("x", "http://x.example/", ARTICLE), "unique");
    adding_says(engine, item_of("y", "http://y.example/", OTHER_ARTICLE), "unique");
    adding_says(engine, item_of("x", "http://y.example/", ARTICLE_CHANGED), "unique replaced");
    checking_says(engine, item_of("z", NULL, OTHER_ARTICLE), "unique");
    checking_says(engine, item_of("z", NULL, ARTICLE_CHANGED), "content_hash x");
    doppel_engine_close(engine);
}

/* A copy of what was removed does not stand in the way of who has its URL, or its id, next. */
static void a_url_outlives_its_orphans(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
    bool removed;
    adding_says(engine, item_of("a", "http://a.example/", ARTICLE), "unique");
    adding_says(engine, item_of("b", "http://b.example/", ARTICLE), "content_hash a");
    assert_int_equal(doppel_engine_remove(engine, "a", 1, &removed, NULL), DOPPEL_OK);
    assert_true(removed);
    adding_says(engine, item_of("c", "http://b.example/", OTHER_ARTICLE), "unique");
    adding_says(engine, item_of("d", "http://b.example/", ARTICLE), "exact_url c");
    adding_says(engine, item_of("b", NULL, ARTICLE), "unique replaced");
    doppel_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EVERYWHERE(a_url_outlives_its_orphans),
        EVERYWHERE(what_goes_is_no_original),
        EVERYWHERE(an_id_that_is_there_is_known_or_replaced),
        EVERYWHERE(a_missing_id_is_derived),
        EVERYWHERE(skipped_copies_are_counted),
        EVERYWHERE(linked_copies_are_aliases),
        EVERYWHERE(a_refreshed_url_has_its_new_text),
        EVERYWHERE(short_texts_are_the_same_but_never_near),
        EVERYWHERE(documents_match_until_their_time_is_over),
        EVERYWHERE(titles_that_are_everywhere_do_not_count),
    };
    return run_everywhere("rules", tests, sizeof tests / sizeof *tests);
}
