/* test_engine_copies.c - the words of a copy that came by its URL or its title, and is linked, stored or skipped: they
 * are known when they come again, for as long as its original is there. */
#include "engine_cases.h"
#include "engine_places.h"

#define TITLE "Harbour bridge opens after nine years"

static doppel_item page_of(const char *id, const char *url, const char *title, const char *text) {
    doppel_item item = item_of(id, url, text);
    item.document.title.data = title;
    item.document.title.length = title ? strlen(title) : 0;
    return item;
}

static const doppel_on_duplicate ways[] = {DOPPEL_DUPLICATE_SKIP, DOPPEL_DUPLICATE_LINK, DOPPEL_DUPLICATE_STORE};
enum { WAYS = sizeof ways / sizeof *ways };

/* An engine with one document, and a copy of it by its URL and one by its title, each with words of its own. */
static doppel_engine *open_with_copies(void **state, size_t way) {
    char name[16];
    snprintf(name, sizeof name, "index-%zu", way);
    const doppel_engine_options options = {
        .titles = DOPPEL_SWITCH_ON, .title_veto = DOPPEL_SWITCH_OFF, .on_duplicate = ways[way], .ttl = 1000};
    doppel_engine *engine = open_at(state, name, options);
    adding_says(engine, page_of("a", "http://a.example/", TITLE, ARTICLE), "unique");
    adding_says(engine, page_of("b", "http://a.example/", NULL, OTHER_ARTICLE), "exact_url a");
    adding_says(engine, page_of("c", "http://c.example/", TITLE, TRANSLATED), "title_similarity a");
    return engine;
}

static doppel_engine *open_again(void **state, size_t way, doppel_engine *engine) {
    char name[16];
    if (here->place == IN_MEMORY)
        return engine;
    snprintf(name, sizeof name, "index-%zu", way);
    doppel_engine_close(engine);
    return open_at(state, name, (doppel_engine_options){0});
}

static void copies_are_known_by_their_words(void **state) {
    for (size_t way = 0; way < WAYS; way++) {
        doppel_engine *engine = open_with_copies(state, way);
        for (int round = 0; round < 2; round++) {
            checking_says(engine, item_of("d", "http://d.example/", OTHER_ARTICLE), "content_hash a");
            checking_says(engine, item_of("d", NULL, TRANSLATED), "content_hash a");
            checking_says(engine, item_of("d", NULL, "nobody has had these words before, not one of them"), "unique");
            engine = open_again(state, way, engine);
        }
        doppel_engine_close(engine);
    }
}

/* It is certain that the words were seen: the evidence is that of the copy which has them. */
static void the_evidence_is_that_of_the_copy(void **state) {
    for (size_t way = 0; way < WAYS; way++) {
        doppel_engine *engine = open_with_copies(state, way);
        doppel_item item = item_of("d", "http://d.example/", TRANSLATED);
        doppel_verdict v = {0};
        assert_int_equal(doppel_engine_check(engine, &item, &v, NULL), DOPPEL_OK);
        assert_true(v.is_duplicate && v.confidence == 1);
        assert_true(v.evidence.same_digest && v.evidence.verified && !v.evidence.same_url);
        assert_int_equal(v.evidence.distance, 0);
        assert_true(v.evidence.similarity == 1 && v.evidence.containment == 1);
        /* The first verdict again is the same. */
        if (ways[way] != DOPPEL_DUPLICATE_SKIP) {
            adding_says(engine, item, "content_hash a");
            adding_says(engine, item, "content_hash a known");
            assert_int_equal(doppel_engine_add(engine, &item, &v, NULL), DOPPEL_OK);
            assert_true(v.confidence == 1);
        }
        doppel_verdict_free(&v);
        doppel_engine_close(engine);
    }
}

/* Each copy is counted once, the same words again by content; what was skipped leaves no document behind. */
static void they_are_counted_at_the_original(void **state) {
    for (size_t way = 0; way < WAYS; way++) {
        doppel_engine *engine = open_with_copies(state, way);
        doppel_stored_list list = {0};
        doppel_engine_stats stats;
        adding_says(engine, item_of("d", "http://d.example/", OTHER_ARTICLE), "content_hash a");
        adding_says(engine, item_of("e", "http://a.example/", OTHER_ARTICLE), "exact_url a");
        assert_int_equal(doppel_engine_get(engine, doppel_slice_of("a"), &list, NULL), DOPPEL_OK);
        assert_int_equal(list.stored[0].duplicates_by[DOPPEL_REASON_URL], 2);
        assert_int_equal(list.stored[0].duplicates_by[DOPPEL_REASON_CONTENT], 1);
        assert_int_equal(list.stored[0].duplicates_by[DOPPEL_REASON_TITLE], 1);
        assert_int_equal(list.stored[0].copies, ways[way] == DOPPEL_DUPLICATE_SKIP ? 0 : 4);
        doppel_engine_get_stats(engine, &stats);
        assert_int_equal(stats.documents, 1);
        assert_int_equal(stats.copies, ways[way] == DOPPEL_DUPLICATE_SKIP ? 0 : 4);
        doppel_stored_list_free(&list);
        doppel_engine_close(engine);
    }
}

/* Removing one leaves the count of those that were seen, not of those that are remembered, with a URL or without. */
static void removing_one_leaves_what_was_seen(void **state) {
    for (size_t way = 0; way < WAYS; way++) {
        doppel_engine *engine = open_with_copies(state, way);
        doppel_stored_list list = {0};
        uint64_t kept = ways[way] == DOPPEL_DUPLICATE_SKIP ? 0 : 3;
        adding_says(engine, item_of("d", NULL, OTHER_ARTICLE), "content_hash a");
        for (int round = 0; round < 2; round++) {
            bool removed = false;
            assert_int_equal(doppel_engine_get(engine, doppel_slice_of("http://a.example/"), &list, NULL), DOPPEL_OK);
            assert_int_equal(list.stored[0].duplicates, 3);
            assert_int_equal(list.stored[0].copies, kept ? kept - (uint64_t)round : 0);
            assert_int_equal(list.stored[0].alias_count, kept ? kept - 1 : 0);
            assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("d"), &removed, NULL), DOPPEL_OK);
            assert_true(removed == (kept && !round));
        }
        doppel_stored_list_free(&list);
        doppel_engine_close(engine);
    }
}

static void they_go_with_their_original(void **state) {
    for (size_t way = 0; way < WAYS; way++) {
        doppel_engine *engine = open_with_copies(state, way);
        bool removed;
        assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("a"), &removed, NULL), DOPPEL_OK);
        checking_says(engine, item_of("d", NULL, OTHER_ARTICLE), "unique");
        adding_says(engine, item_of("d", NULL, TRANSLATED), "unique");
        assert_int_equal(doppel_engine_compact(engine, NULL), DOPPEL_OK);
        engine = open_again(state, way, engine);
        checking_says(engine, item_of("e", NULL, OTHER_ARTICLE), "unique");
        checking_says(engine, item_of("e", NULL, TRANSLATED), "content_hash d");
        doppel_engine_close(engine);
    }
}

static void they_are_there_after_a_compaction(void **state) {
    for (size_t way = 0; way < WAYS; way++) {
        doppel_engine *engine = open_with_copies(state, way);
        assert_int_equal(doppel_engine_compact(engine, NULL), DOPPEL_OK);
        engine = open_again(state, way, engine);
        checking_says(engine, item_of("d", NULL, OTHER_ARTICLE), "content_hash a");
        if (here->place == IN_FOLDER) {
            char name[16];
            doppel_verified verified;
            snprintf(name, sizeof name, "index-%zu", way);
            assert_int_equal(doppel_engine_verify(path_of(state, name), NULL, NULL, &verified, NULL), DOPPEL_OK);
            assert_int_equal(verified.documents, 1);
            assert_int_equal(verified.copies, ways[way] == DOPPEL_DUPLICATE_SKIP ? 0 : 2);
        }
        doppel_engine_close(engine);
    }
}

static void they_expire_in_their_own_time(void **state) {
    for (size_t way = 0; way < WAYS; way++) {
        doppel_engine *engine = open_with_copies(state, way);
        uint64_t expired;
        now += 500;
        adding_says(engine, item_of("d", "http://a.example/", "quite other words of a copy that comes much later"),
                    "exact_url a");
        now += 500;
        checking_says(engine, item_of("e", NULL, OTHER_ARTICLE), "unique");
        checking_says(engine, item_of("e", NULL, "quite other words of a copy that comes much later"), "unique");
        assert_int_equal(doppel_engine_expire(engine, &expired, NULL), DOPPEL_OK);
        adding_says(engine, item_of("a", "http://a.example/", ARTICLE), "unique");
        now += 500;
        doppel_engine_close(engine);
    }
}

/* Another text under the id of a copy takes its place, and the old words are forgotten. */
static void a_replaced_copy_forgets_its_words(void **state) {
    for (size_t way = 1; way < WAYS; way++) {
        doppel_engine *engine = open_with_copies(state, way);
        adding_says(engine, page_of("c", "http://c.example/", NULL, "not a word of what stood here is left of it"),
                    "unique replaced");
        checking_says(engine, item_of("d", NULL, TRANSLATED), "unique");
        checking_says(engine, item_of("d", NULL, OTHER_ARTICLE), "content_hash a");
        doppel_engine_close(engine);
    }
}

/* Near copies of such words are not found by them: only the very words are remembered. */
static void only_the_very_words_are_known(void **state) {
    for (size_t way = 0; way < WAYS; way++) {
        doppel_engine *engine = open_with_copies(state, way);
        checking_says(engine, item_of("d", NULL, OTHER_ARTICLE "And so on."), "unique");
        doppel_engine_close(engine);
    }
}

/* A document that has the words goes before a copy that has them. */
static void a_document_goes_before_a_copy(void **state) {
    for (size_t way = 0; way < WAYS; way++) {
        doppel_engine *engine = open_with_copies(state, way);
        /* While `a` is away nobody has the words; it takes its own place, and its copies are gone with the old one. */
        adding_says(engine, page_of("a", "http://a.example/", TITLE, OTHER_ARTICLE), "unique replaced");
        checking_says(engine, item_of("d", NULL, OTHER_ARTICLE), "content_hash a");
        checking_says(engine, item_of("d", NULL, TRANSLATED), "unique");
        doppel_engine_close(engine);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EVERYWHERE(removing_one_leaves_what_was_seen), EVERYWHERE(copies_are_known_by_their_words),
        EVERYWHERE(the_evidence_is_that_of_the_copy),  EVERYWHERE(they_are_counted_at_the_original),
        EVERYWHERE(they_go_with_their_original),       EVERYWHERE(they_are_there_after_a_compaction),
        EVERYWHERE(they_expire_in_their_own_time),     EVERYWHERE(a_replaced_copy_forgets_its_words),
        EVERYWHERE(only_the_very_words_are_known),     EVERYWHERE(a_document_goes_before_a_copy),
        EVERYWHERE(removing_one_leaves_what_was_seen),
    };
    return run_everywhere("copies", tests, sizeof tests / sizeof *tests);
}
