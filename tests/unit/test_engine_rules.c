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
    assert_int_equal(doppel_engine_get(engine, v.id, &list, NULL), DOPPEL_OK);
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

/* An id that is derived from the URL or the words belongs to one document, too. */
static void a_derived_id_that_is_there_is_known_or_replaced(void **state) {
    static const char url[] = "https://example.com/x";
    char words[17] = "", copy_of_words[40];
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
    doppel_engine_stats stats;
    doppel_verdict v = {0};
    doppel_item item = item_of(NULL, NULL, TRANSLATED);
    assert_int_equal(doppel_engine_check(engine, &item, &v, NULL), DOPPEL_OK);
    memcpy(words, v.id.data, 16);
    adding_says(engine, item_of(url, NULL, ARTICLE), "unique");
    adding_says(engine, item_of(NULL, url, ARTICLE), "unique known");
    adding_says(engine, item_of(NULL, url, OTHER_ARTICLE), "unique replaced");
    adding_says(engine, item_of(words, NULL, ARTICLE), "unique");
    adding_says(engine, item_of(NULL, NULL, TRANSLATED), "unique replaced");
    doppel_engine_get_stats(engine, &stats);
    assert_int_equal(stats.documents, 2);
    /* What has the URL, or the words, is found by that. */
    adding_says(engine, item_of(NULL, url, ARTICLE), "exact_url https://example.com/x");
    snprintf(copy_of_words, sizeof copy_of_words, "content_hash %s", words);
    adding_says(engine, item_of(NULL, NULL, TRANSLATED), copy_of_words);
    doppel_engine_get_stats(engine, &stats);
    assert_int_equal(stats.documents, 2);
    assert_int_equal(stats.copies, 0);
    doppel_verdict_free(&v);
    doppel_engine_close(engine);
}

/* A copy is not stored under an id that another copy has; the verdict says so. */
static void a_derived_id_of_a_copy_is_named(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
    doppel_verdict v = {0};
    doppel_item item = item_of(NULL, "http://b.example/", ARTICLE_CHANGED);
    adding_says(engine, item_of("a", "http://a.example/", ARTICLE), "unique");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(doppel_engine_add(engine, &item, &v, NULL), DOPPEL_OK);
        assert_true(v.is_duplicate && v.id_known == (round > 0));
    }
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
    checking_says(engine, item_of("d", "http://b.example/", TRANSLATED), "unique");
    assert_int_equal(doppel_engine_get(engine, doppel_slice_of("a"), &list, NULL), DOPPEL_OK);
    assert_int_equal(list.stored[0].duplicates, 2);
    assert_int_equal(list.stored[0].duplicates_by[DOPPEL_REASON_URL], 1);
    assert_int_equal(list.stored[0].duplicates_by[DOPPEL_REASON_CONTENT], 1);
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
    assert_int_equal(doppel_engine_get(engine, doppel_slice_of("a"), &list, NULL), DOPPEL_OK);
    assert_int_equal(list.stored[0].alias_count, 1);
    assert_memory_equal(list.stored[0].aliases[0].data, "http://b.example/", 17);
    assert_int_equal(doppel_engine_get(engine, doppel_slice_of("b"), &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 1);
    assert_memory_equal(list.stored[0].original_id.data, "a", 1);
    bool removed;
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("a"), &removed, NULL), DOPPEL_OK);
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

/* A copy goes when its original does, however long its own life is. */
static void copies_expire_with_their_original(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
    doppel_item first = item_of("a", "http://a.example/", ARTICLE), copy = item_of("b", "http://b.example/", ARTICLE);
    doppel_stored_list list = {0};
    first.ttl = 100;
    copy.ttl = DOPPEL_NEVER;
    adding_says(engine, first, "unique");
    adding_says(engine, copy, "content_hash a");
    now += 100;
    assert_int_equal(doppel_engine_get(engine, doppel_slice_of("b"), &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 0);
    checking_says(engine, item_of("c", "http://b.example/", OTHER_ARTICLE), "unique");
    adding_says(engine, copy, "unique");
    adding_says(engine, item_of("c", "http://c.example/", ARTICLE), "content_hash b");
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

/* ---- titles ---- */

/* Titles of which each document has one, with words of its own below. */
static doppel_item titled(const char *title, size_t number, char text[64]) {
    sprintf(text, "w%zu x%zu y%zu z%zu v%zu u%zu", number, number, number, number, number, number);
    doppel_item item = item_of(NULL, NULL, text);
    item.document.title.data = title;
    item.document.title.length = strlen(title);
    return item;
}

static void titles_that_are_everywhere_do_not_count(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.title_veto = DOPPEL_SWITCH_OFF});
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

#define TITLE "Harbour bridge opens after nine years"

static doppel_item titled_item(const char *id, const char *title, const char *text) {
    doppel_item item = item_of(id, NULL, text);
    item.document.title.data = title;
    item.document.title.length = strlen(title);
    return item;
}

/* Without words the title is what there is. */
static void another_title_without_words_replaces(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.preset = "general"});
    adding_says(engine, titled_item("a", TITLE, ""), "unique");
    adding_says(engine, titled_item("a", TITLE, ""), "unique known");
    adding_says(engine, titled_item("a", "Potters in the hill villages", ""), "unique replaced");
    checking_says(engine, titled_item("b", TITLE, ""), "unique");
    checking_says(engine, titled_item("b", "Potters in the hill villages", ""), "title_similarity a");
    doppel_engine_close(engine);
}

static void unlike_contents_outweigh_a_title(void **state) {
    const doppel_engine_options veto = {.near = DOPPEL_NEAR_SIMILARITY, .title_veto = DOPPEL_SWITCH_ON};
    doppel_engine *engine = open_at(state, "index", veto);
    adding_says(engine, titled_item("a", TITLE, ARTICLE), "unique");
    checking_says(engine, titled_item("b", TITLE, OTHER_ARTICLE), "unique");
    adding_says(engine, titled_item("b", TITLE, OTHER_ARTICLE), "unique");
    /* Half of the text is enough; with four words nothing is measured. */
    checking_says(engine, titled_item("c", TITLE, ARTICLE_HALF), "title_similarity a");
    checking_says(engine, titled_item("c", TITLE, "read the full story"), "title_similarity a");
    checking_says(engine, titled_item("c", TITLE, ""), "title_similarity a");
    doppel_engine_close(engine);
}

/* A veto is against one document: the next one with a similar title may be the original. */
static void the_best_title_without_a_veto_counts(void **state) {
    const doppel_engine_options veto = {.near = DOPPEL_NEAR_SIMILARITY, .title_veto = DOPPEL_SWITCH_ON};
    doppel_engine *engine = open_at(state, "index", veto);
    adding_says(engine, titled_item("a", TITLE, TRANSLATED), "unique");
    adding_says(engine, titled_item("b", TITLE, OTHER_ARTICLE), "unique");
    adding_says(engine, titled_item("c", "Harbor bridge opens after nine years", ARTICLE), "unique");
    checking_says(engine, titled_item("d", TITLE, ARTICLE_HALF), "title_similarity c");
    checking_says(engine, titled_item("d", "Harbour bridge opens in nine years", ARTICLE_HALF), "unique");
    doppel_engine_close(engine);
}

static void the_veto_is_kept_with_the_index(void **state) {
    if (here->place != IN_FOLDER)
        return;
    doppel_engine *engine;
    doppel_error error = {0};
    doppel_engine_options by_distance = {
        .size = sizeof by_distance, .near = DOPPEL_NEAR_DISTANCE, .title_veto = DOPPEL_SWITCH_ON};
    static const struct {
        const char *preset;
        doppel_near_by near;
        doppel_switch given, kept;
    } made[] = {
        {"general", DOPPEL_NEAR_PRESET, DOPPEL_SWITCH_PRESET, DOPPEL_SWITCH_ON},
        {"general", DOPPEL_NEAR_PRESET, DOPPEL_SWITCH_OFF, DOPPEL_SWITCH_OFF},
        {"general", DOPPEL_NEAR_DISTANCE, DOPPEL_SWITCH_PRESET, DOPPEL_SWITCH_OFF},
        {"crawl", DOPPEL_NEAR_SIMILARITY, DOPPEL_SWITCH_PRESET, DOPPEL_SWITCH_ON},
        {"article", DOPPEL_NEAR_SIMILARITY, DOPPEL_SWITCH_PRESET, DOPPEL_SWITCH_OFF},
        {"article", DOPPEL_NEAR_SIMILARITY, DOPPEL_SWITCH_ON, DOPPEL_SWITCH_ON},
    };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        char name[16];
        const doppel_engine_options options = {
            .preset = made[i].preset, .near = made[i].near, .title_veto = made[i].given};
        snprintf(name, sizeof name, "index-%zu", i);
        engine = open_at(state, name, options);
        adding_says(engine, item_of("a", NULL, ARTICLE),
                    "unique"); /* an index that was never used takes any settings */
        doppel_engine_close(engine);
        assert_int_equal(doppel_engine_open(path_of(state, name), NULL, &engine, NULL), DOPPEL_OK);
        assert_int_equal(doppel_engine_get_options(engine)->title_veto, made[i].kept);
        doppel_engine_close(engine);
    }
    assert_int_equal(doppel_engine_open(path_of(state, "new"), &by_distance, &engine, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "title_veto=on needs near=similarity"));
    by_distance.near = DOPPEL_NEAR_PRESET;
    assert_int_equal(doppel_engine_open(path_of(state, "index-2"), &by_distance, &engine, &error), DOPPEL_ERROR_USAGE);
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

/* The address of a copy is known as long as any copy has it. */
static void a_url_is_known_while_a_copy_has_it(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
    adding_says(engine, item_of("a", "http://a.example/", ARTICLE), "unique");
    adding_says(engine, item_of("b", "http://b.example/", ARTICLE), "content_hash a");
    adding_says(engine, item_of("c", "http://b.example/", OTHER_ARTICLE), "exact_url a");
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("b"), NULL, NULL), DOPPEL_OK);
    checking_says(engine, item_of("d", "http://b.example/", TRANSLATED), "exact_url a");
    doppel_engine_close(engine);
}

/* A copy of what was removed does not stand in the way of who has its URL, or its id, next. */
static void a_url_outlives_its_orphans(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
    bool removed;
    adding_says(engine, item_of("a", "http://a.example/", ARTICLE), "unique");
    adding_says(engine, item_of("b", "http://b.example/", ARTICLE), "content_hash a");
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("a"), &removed, NULL), DOPPEL_OK);
    assert_true(removed);
    adding_says(engine, item_of("c", "http://b.example/", OTHER_ARTICLE), "unique");
    adding_says(engine, item_of("d", "http://b.example/", TRANSLATED), "exact_url c");
    adding_says(engine, item_of("b", NULL, ARTICLE), "unique");
    doppel_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EVERYWHERE(a_derived_id_that_is_there_is_known_or_replaced),
        EVERYWHERE(a_derived_id_of_a_copy_is_named),
        EVERYWHERE(copies_expire_with_their_original),
        EVERYWHERE(another_title_without_words_replaces),
        EVERYWHERE(a_url_is_known_while_a_copy_has_it),
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
        EVERYWHERE(unlike_contents_outweigh_a_title),
        EVERYWHERE(the_best_title_without_a_veto_counts),
        EVERYWHERE(the_veto_is_kept_with_the_index),
    };
    return run_everywhere("rules", tests, sizeof tests / sizeof *tests);
}
