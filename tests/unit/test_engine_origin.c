/* test_engine_origin.c - where documents come from: the same place is the same document, another place is another. */
#include "engine_cases.h"
#include "engine_places.h"

static doppel_item from(doppel_item item, const char *origin) {
    item.origin = (doppel_slice){origin, strlen(origin)};
    return item;
}

#define A item_of("a", "http://a.example/", ARTICLE)
#define NAMELESS item_of(NULL, "http://n.example/", TRANSLATED)

static void the_same_place_is_the_same_document(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    adding_says(engine, from(A, "pages/0/1"), "unique");
    adding_says(engine, from(A, "pages/0/1"), "unique known");
    adding_says(engine, from(NAMELESS, "pages/0/2"), "unique");
    adding_says(engine, from(NAMELESS, "pages/0/2"), "unique known");
    adding_says(engine, from(item_of(NULL, NULL, OTHER_ARTICLE), "pages/0/3"), "unique");
    adding_says(engine, from(item_of(NULL, NULL, OTHER_ARTICLE), "pages/0/3"), "unique known");
    /* Whoever says nothing is known by its id, as ever. */
    adding_says(engine, A, "unique known");
    doppel_engine_close(engine);
}

static void the_same_place_by_another_name(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    adding_says(engine, from(A, "pages/0/1"), "unique");
    adding_says(engine, from(item_of("b", "http://a.example/", OTHER_ARTICLE), "pages/0/1"), "unique known");
    adding_says(engine, from(item_of("c", "http://c.example/", ARTICLE), "pages/0/1"), "unique known");
    adding_says(engine, from(item_of("a", NULL, TRANSLATED), "pages/0/1"), "unique known");
    doppel_engine_close(engine);
}

static void another_place_is_another_document(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    doppel_stored_list list = {0};
    adding_says(engine, from(A, "pages/0/1"), "unique");
    adding_says(engine, from(A, "pages/0/2"), "exact_url a");
    adding_says(engine, from(item_of("a", NULL, ARTICLE), "pages/0/3"), "content_hash a");
    adding_says(engine, from(item_of("a", "http://a.example/2", OTHER_ARTICLE), "pages/0/4"), "unique replaced");
    adding_says(engine, from(NAMELESS, "pages/0/5"), "unique");
    adding_says(engine, from(NAMELESS, "pages/0/6"), "exact_url https://n.example/");
    assert_int_equal(doppel_engine_get(engine, doppel_slice_of("a"), &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.stored[0].origin.length, 9);
    assert_memory_equal(list.stored[0].origin.data, "pages/0/4", 9);
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

/* What came without a place is another document, too. */
static void a_place_after_none(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    doppel_stored_list list = {0};
    adding_says(engine, A, "unique");
    adding_says(engine, from(A, "pages/0/1"), "exact_url a");
    adding_says(engine, from(A, ""), "unique known");
    assert_int_equal(doppel_engine_get(engine, doppel_slice_of("a"), &list, NULL), DOPPEL_OK);
    assert_int_equal(list.stored[0].duplicates, 1);
    assert_null(list.stored[0].origin.data);
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

static void a_skipped_copy_is_a_duplicate_again(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    adding_says(engine, from(A, "pages/0/1"), "unique");
    for (int i = 0; i < 2; i++)
        adding_says(engine, from(item_of("b", "http://b.example/", ARTICLE), "pages/0/2"), "content_hash a");
    doppel_engine_close(engine);
}

static void a_kept_copy_has_its_first_verdict(void **state) {
    const doppel_on_duplicate kinds[] = {DOPPEL_DUPLICATE_LINK, DOPPEL_DUPLICATE_STORE};
    for (int i = 0; i < 2; i++) {
        doppel_engine *engine = open_at(state, i ? "store" : "link", (doppel_engine_options){.on_duplicate = kinds[i]});
        doppel_item copy = item_of("b", "http://b.example/", ARTICLE), nameless = copy;
        nameless.document.id.length = 0;
        nameless.document.url.data = "http://c.example/";
        doppel_stored_list list = {0};
        adding_says(engine, from(A, "pages/0/1"), "unique");
        adding_says(engine, from(copy, "pages/0/2"), "content_hash a");
        adding_says(engine, from(copy, "pages/0/2"), "content_hash a known");
        adding_says(engine, from(nameless, "pages/0/3"), "content_hash a");
        adding_says(engine, from(nameless, "pages/0/3"), "content_hash a known");
        /* The id and the words of the copy from elsewhere: counted, but not kept twice. */
        adding_says(engine, from(copy, "pages/0/4"), "exact_url a");
        assert_int_equal(doppel_engine_get(engine, doppel_slice_of("b"), &list, NULL), DOPPEL_OK);
        assert_memory_equal(list.stored[0].origin.data, "pages/0/2", 9);
        assert_int_equal(doppel_engine_get(engine, doppel_slice_of("a"), &list, NULL), DOPPEL_OK);
        assert_int_equal(list.stored[0].alias_count, 2);
        assert_int_equal(list.stored[0].duplicates, 3);
        doppel_stored_list_free(&list);
        doppel_engine_close(engine);
    }
}

/* Another text at the URL takes the place of what was there, once. */
static void a_refresh_happens_once(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_same_url = DOPPEL_SAME_URL_REFRESH});
    doppel_item first = item_of(NULL, "http://a.example/", ARTICLE), next = first;
    next.document.text.data = OTHER_ARTICLE;
    next.document.text.length = strlen(OTHER_ARTICLE);
    adding_says(engine, from(first, "pages/0/1"), "unique");
    adding_says(engine, from(next, "pages/0/2"), "unique replaced");
    adding_says(engine, from(next, "pages/0/2"), "unique known");
    /* By another name, and with other words: it is at the URL itself. */
    adding_says(engine, from(item_of("b", "http://a.example/", TRANSLATED), "pages/0/2"), "unique known");
    doppel_engine_close(engine);
}

/* Nothing but the id is like what has it: no words, no URL. */
static void an_id_alone_is_replaced(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    adding_says(engine, from(item_of("a", NULL, ""), "pages/0/1"), "unique");
    adding_says(engine, from(item_of("a", NULL, ""), "pages/0/1"), "unique known");
    adding_says(engine, from(item_of("a", NULL, ""), "pages/0/2"), "unique replaced");
    adding_says(engine, from(item_of("a", NULL, ""), "pages/0/2"), "unique known");
    doppel_engine_close(engine);
}

static void places_outlive_the_engine(void **state) {
    if (here->place == IN_MEMORY)
        return;
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    adding_says(engine, from(A, "pages/0/1"), "unique");
    doppel_engine_close(engine);
    engine = open_at(state, "index", (doppel_engine_options){0});
    adding_says(engine, from(A, "pages/0/1"), "unique known");
    adding_says(engine, from(A, "pages/0/2"), "exact_url a");
    doppel_engine_close(engine);
}

static void batches_know_places(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    doppel_item items[] = {from(A, "p/1"), from(A, "p/1"), from(A, "p/2"), from(item_of("b", NULL, ARTICLE), "p/3")};
    const char *expected[] = {"unique", "unique known", "exact_url a", "content_hash a"};
    doppel_verdict verdicts[4] = {0};
    assert_int_equal(doppel_engine_add_batch(engine, items, 4, verdicts, NULL, NULL), DOPPEL_OK);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(say(&verdicts[i]), expected[i]);
        doppel_verdict_free(&verdicts[i]);
    }
    doppel_engine_close(engine);
}

static void places_have_a_limit(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    char origin[1026];
    doppel_verdict v = {0};
    doppel_error error = {0};
    memset(origin, 'o', sizeof origin);
    origin[1025] = 0;
    doppel_item item = from(A, origin);
    item.document.file = "pages.jsonl";
    item.document.line = 7;
    assert_int_equal(doppel_engine_add(engine, &item, &v, &error), DOPPEL_ERROR_INPUT);
    assert_string_equal(error.file, "pages.jsonl");
    assert_int_equal(error.line, 7);
    assert_non_null(strstr(error.message, "1025"));
    origin[1024] = 0;
    adding_says(engine, from(A, origin), "unique");
    adding_says(engine, from(A, origin), "unique known");
    doppel_verdict_free(&v);
    doppel_engine_close(engine);
}

/* For doppel_engine_each: `user` is the engine that gets it. */
static bool put_back(const doppel_stored *stored, void *user) {
    doppel_item item = {.size = sizeof item, .restore = stored, .words = stored->words, .origin = stored->origin};
    item.document = (doppel_document){.id.data = stored->id.data, .id.length = stored->id.length, .text.data = ""};
    item.document.url.data = stored->url.data;
    item.document.url.length = stored->url.length;
    item.fingerprint = stored->fingerprint;
    item.digest = stored->digest;
    item.set = stored->set;
    item.set_count = stored->set_count;
    doppel_verdict v = {0};
    assert_int_equal(doppel_engine_add(user, &item, &v, NULL), DOPPEL_OK);
    doppel_verdict_free(&v);
    return true;
}

static void places_are_put_back(void **state) {
    doppel_engine_options options = {.on_duplicate = DOPPEL_DUPLICATE_LINK};
    doppel_engine *old = open_at(state, "old", options), *new = open_at(state, "new", options);
    doppel_item copy = item_of("b", "http://b.example/", ARTICLE);
    adding_says(old, from(A, "pages/0/1"), "unique");
    adding_says(old, from(copy, "pages/0/2"), "content_hash a");
    for (int i = 0; i < 2; i++) /* the second time all is known */
        assert_int_equal(doppel_engine_each(old, put_back, new, NULL, NULL), DOPPEL_OK);
    adding_says(new, from(A, "pages/0/1"), "unique known");
    adding_says(new, from(copy, "pages/0/2"), "content_hash a known");
    adding_says(new, from(A, "pages/0/3"), "exact_url a");
    doppel_engine_close(old);
    doppel_engine_close(new);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EVERYWHERE(the_same_place_is_the_same_document),
        EVERYWHERE(the_same_place_by_another_name),
        EVERYWHERE(another_place_is_another_document),
        EVERYWHERE(a_place_after_none),
        EVERYWHERE(a_skipped_copy_is_a_duplicate_again),
        EVERYWHERE(a_kept_copy_has_its_first_verdict),
        EVERYWHERE(a_refresh_happens_once),
        EVERYWHERE(an_id_alone_is_replaced),
        EVERYWHERE(places_outlive_the_engine),
        EVERYWHERE(batches_know_places),
        EVERYWHERE(places_have_a_limit),
        EVERYWHERE(places_are_put_back),
    };
    return run_everywhere("origin", tests, sizeof tests / sizeof *tests);
}
