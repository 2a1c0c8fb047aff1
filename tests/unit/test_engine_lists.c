/* test_engine_lists.c - lists of documents: the similar, all of them, the largest groups. */
#include "engine_cases.h"
#include "engine_places.h"

#include "store/store.h"

static void add(doppel_engine *engine, const char *id, const char *url, const char *text, bool is_duplicate) {
    doppel_item item = item_of(id, url, text);
    doppel_verdict verdict = {0};
    doppel_error error = {0};
    if (doppel_engine_add(engine, &item, &verdict, &error) != DOPPEL_OK)
        fail_msg("%s: %s", here->name, error.message);
    assert_int_equal(verdict.is_duplicate, is_duplicate);
    doppel_verdict_free(&verdict);
}

static size_t similar(doppel_engine *engine, const char *text, double similarity) {
    const doppel_similar_options options = {.size = sizeof options, .similarity = similarity};
    doppel_item item = {.size = sizeof item};
    doppel_stored_list list = {0};
    doppel_error error = {0};
    item.document = (doppel_document){.text.data = text, .text.length = strlen(text)};
    if (doppel_engine_find_similar(engine, &item, &options, &list, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    size_t count = list.count;
    for (size_t i = 0; i < count; i++)
        assert_null(list.stored[i].original_id.data);
    doppel_stored_list_free(&list);
    return count;
}

/* ---- the similar ---- */

static void copies_are_not_listed_however_they_are_found(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_STORE});
    add(engine, "a", "http://a.example/", ARTICLE, false);
    add(engine, "b", "http://b.example/", ARTICLE_CHANGED, true);
    assert_int_equal(similar(engine, ARTICLE, 0), 1);
    assert_int_equal(similar(engine, ARTICLE, 0.01), 1); /* all are compared */
    doppel_engine_close(engine);
}

static void nothing_is_more_than_the_same(void **state) {
    const char *presets[] = {"general", "crawl", "article"};
    for (int i = 0; i < 3; i++) {
        doppel_engine *engine = open_at(state, presets[i], (doppel_engine_options){.preset = presets[i]});
        add(engine, "a", "http://a.example/", ARTICLE, false);
        assert_int_equal(similar(engine, ARTICLE, 1), 0);
        doppel_engine_close(engine);
    }
}

/* ---- copies of what is gone ---- */

static void copy_is(doppel_engine *engine, size_t count) {
    doppel_stored_list list = {0};
    doppel_engine_stats stats;
    assert_int_equal(doppel_engine_get(engine, doppel_slice_of("b"), &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, count);
    assert_int_equal(doppel_engine_get(engine, doppel_slice_of("http://b.example/"), &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, count);
    assert_int_equal(doppel_engine_list(engine, NULL, &list, NULL, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 2 * count);
    doppel_engine_get_stats(engine, &stats);
    assert_int_equal(stats.copies, count);
    doppel_stored_list_free(&list);
}

static void copies_leave_with_their_original(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
    bool removed = true;
    add(engine, "a", "http://a.example/", ARTICLE, false);
    add(engine, "b", "http://b.example/", ARTICLE_CHANGED, true);
    copy_is(engine, 1);
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("a"), NULL, NULL), DOPPEL_OK);
    copy_is(engine, 0);
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("b"), &removed, NULL), DOPPEL_OK);
    assert_false(removed);
    add(engine, "b", "http://b.example/", ARTICLE_CHANGED, false);
    doppel_engine_close(engine);
}

/* Folders of earlier versions have copies without their original: nothing shows them, and a writer purges them. */
static void an_orphan_of_an_earlier_version_is_gone(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
    const dp_store_options options = {.must_exist = true};
    const dp_change removal = {.remove = 1};
    const dp_clock clock = {.time = now};
    dp_store *store;
    add(engine, "a", "http://a.example/", ARTICLE, false);
    add(engine, "b", "http://b.example/", ARTICLE_CHANGED, true);
    copy_is(engine, 1);
    doppel_engine_close(engine);
    if (here->place != IN_FOLDER)
        return;
    assert_int_equal(dp_store_open(path_of(state, "index"), &options, &store, NULL), DOPPEL_OK);
    assert_int_equal(dp_store_write(store, &removal, 1, &clock, NULL), DOPPEL_OK);
    dp_store_close(store);
    engine = open_at(state, "index", (doppel_engine_options){.read_only = true});
    copy_is(engine, 0);
    doppel_engine_close(engine);
    engine = open_at(state, "index", (doppel_engine_options){0});
    assert_int_equal(doppel_engine_expire(engine, NULL, NULL), DOPPEL_OK);
    copy_is(engine, 0);
    add(engine, "b", "http://b.example/", ARTICLE_CHANGED, false);
    add(engine, "a", "http://a.example/", ARTICLE, true);
    doppel_engine_close(engine);
}

/* ---- all ---- */

static bool count_one(const doppel_stored *stored, void *user) {
    (void)stored;
    ++*(size_t *)user;
    return true;
}

/* Nobody waits for the disk, but whoever is told of a document finds it in every list. */
static void what_was_acknowledged_is_listed(void **state) {
    const doppel_engine_options options = {.durability = DOPPEL_DURABLE_NONE, .titles = DOPPEL_SWITCH_OFF};
    doppel_engine *engine = open_at(state, "index", options);
    doppel_stored_list groups = {0};
    size_t count = 0;
    for (int i = 0; i < 20; i++) {
        char id[16], url[40], text[160];
        snprintf(id, sizeof id, "d%d", i);
        snprintf(url, sizeof url, "http://x.example/%d", i);
        snprintf(text, sizeof text, "only%d once%d are%d these%d words%d together%d here%d", i, i, i, i, i, i, i);
        add(engine, id, url, text, false);
        add(engine, "again", url, "", true);
        count = 0;
        assert_int_equal(doppel_engine_each(engine, count_one, &count, NULL, NULL), DOPPEL_OK);
        assert_int_equal(count, i + 1);
        add(engine, "more", url, "", true);
        assert_int_equal(doppel_engine_groups(engine, 100, &groups, NULL), DOPPEL_OK);
        assert_int_equal(groups.count, i + 1);
        assert_int_equal(groups.stored[i].duplicates, 2);
    }
    doppel_stored_list_free(&groups);
    doppel_engine_close(engine);
}

/* ---- a page at a time ---- */

static bool has_even_id(const doppel_stored *stored, void *user) {
    (void)user;
    return (stored->id.data[stored->id.length - 1] - '0') % 2 == 0;
}

/* Adds d0 to d599, each with a copy c0 ... that has no URL. */
static void add_pairs(doppel_engine *engine, int count) {
    for (int i = 0; i < count; i++) {
        char id[16], text[160];
        snprintf(text, sizeof text, "only%d once%d are%d these%d words%d together%d here%d", i, i, i, i, i, i, i);
        snprintf(id, sizeof id, "d%d", i);
        add(engine, id, NULL, text, false);
        snprintf(id, sizeof id, "c%d", i);
        add(engine, id, NULL, text, true);
    }
}

/* All pages of a list: how many documents they have; each number is higher than the one before. */
static size_t walk(doppel_engine *engine, doppel_list_options options) {
    doppel_stored_list list = {0};
    doppel_error error = {0};
    uint64_t last = 0;
    size_t count = 0;
    options.size = sizeof options;
    do {
        if (doppel_engine_list(engine, &options, &list, &options.after, &error) != DOPPEL_OK)
            fail_msg("%s: %s", here->name, error.message);
        assert_true(list.count <= options.limit);
        for (size_t i = 0; i < list.count; i++) {
            assert_true(list.stored[i].number > last);
            last = list.stored[i].number;
        }
        count += list.count;
    } while (options.after);
    doppel_stored_list_free(&list);
    return count;
}

static void pages_hold_every_document_once(void **state) {
    const int count = 300; /* more than are read at a time */
    doppel_engine *engine = open_at(
        state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK, .titles = DOPPEL_SWITCH_OFF});
    add_pairs(engine, count);
    for (uint64_t limit = 1; limit < 2000; limit = limit * 7 + 1) {
        assert_int_equal(walk(engine, (doppel_list_options){.limit = limit}), 2 * count);
        assert_int_equal(walk(engine, (doppel_list_options){.limit = limit, .kind = DOPPEL_LIST_ORIGINALS}), count);
        assert_int_equal(walk(engine, (doppel_list_options){.limit = limit, .kind = DOPPEL_LIST_COPIES}), count);
        assert_int_equal(walk(engine, (doppel_list_options){.limit = limit, .wanted = has_even_id}), count);
    }
    doppel_engine_close(engine);
}

static void copies_without_a_url_are_listed(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
    doppel_list_options options = {.size = sizeof options, .copies_of = doppel_slice_of("a")};
    doppel_stored_list list = {0};
    uint64_t next = 7;
    add(engine, "a", "http://a.example/", ARTICLE, false);
    add(engine, "b", NULL, ARTICLE_CHANGED, true);
    add(engine, "c", NULL, ARTICLE, true);
    assert_int_equal(doppel_engine_list(engine, &options, &list, &next, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(next, 0);
    assert_memory_equal(list.stored[0].id.data, "b", 1);
    assert_memory_equal(list.stored[1].original_id.data, "a", 1);
    assert_int_equal(walk(engine, (doppel_list_options){.limit = 1, .copies_of = options.copies_of}), 2);
    options.copies_of = doppel_slice_of("b"); /* a copy has none */
    assert_int_equal(doppel_engine_list(engine, &options, &list, &next, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 0);
    options.copies_of = doppel_slice_of("nothing");
    assert_int_equal(doppel_engine_list(engine, &options, &list, &next, NULL), DOPPEL_ERROR_INPUT);
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

static void a_title_finds_without_counting_as_a_check(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.titles = DOPPEL_SWITCH_ON});
    doppel_list_options options = {.size = sizeof options};
    doppel_item item = item_of("a", NULL, ARTICLE);
    doppel_verdict verdict = {0};
    doppel_stored_list list = {0};
    doppel_engine_stats stats;
    item.document.title = doppel_slice_of("A title that is long enough");
    assert_int_equal(doppel_engine_add(engine, &item, &verdict, NULL), DOPPEL_OK);
    options.title = doppel_slice_of("a title that is long enough!");
    assert_int_equal(doppel_engine_list(engine, &options, &list, NULL, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 1);
    assert_true(list.stored[0].similarity == 1);
    options.title = doppel_slice_of("quite another title than that");
    assert_int_equal(doppel_engine_list(engine, &options, &list, NULL, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 0);
    doppel_engine_get_stats(engine, &stats);
    assert_int_equal(stats.checks, 0);
    doppel_stored_list_free(&list);
    doppel_verdict_free(&verdict);
    doppel_engine_close(engine);
}

/* Changes a byte of each such text in a file. */
static void damage(const char *path, const char *text) {
    dp_buffer bytes = slurp(path);
    size_t length = strlen(text), found = 0;
    for (size_t i = 0; i + length <= bytes.size; i++)
        if (!memcmp(bytes.data + i, text, length)) {
            bytes.data[i] ^= 1;
            found++;
        }
    assert_true(found > 0);
    spit(path, bytes.data, bytes.size);
    dp_buffer_free(&bytes);
}

static void damage_second(void **state) {
#ifdef WITH_REDIS
    char key[300];
    int length = snprintf(key, sizeof key, "{%s}d", in(state, "index"));
    memcpy(key + length, "\0\0\0\0\2", 5);
    if (here->place == IN_REDIS)
        freeReplyObject(redis_say(&redis, "SETRANGE %b 1 %s", key, (size_t)length + 5, "damaged"));
#endif
    if (here->place == IN_FOLDER)
        damage(in(state, "index/documents-1.mdb"), "http://b.example/");
}

static void records_that_are_damaged_are_counted(void **state) {
    size_t count = 0;
    uint64_t damaged = 0;
    if (here->place == IN_MEMORY)
        return;
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    bool removed;
    add(engine, "a", "http://a.example/", ARTICLE, false);
    add(engine, "b", "http://b.example/", OTHER_ARTICLE, false);
    add(engine, "c", "http://c.example/", TRANSLATED, false);
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("c"), &removed, NULL), DOPPEL_OK);
    doppel_engine_close(engine);
    damage_second(state);
    engine = open_at(state, "index", (doppel_engine_options){0});
    assert_int_equal(doppel_engine_each(engine, count_one, &count, &damaged, NULL), DOPPEL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(damaged, 1);
    doppel_engine_close(engine);
}

/* Everything that was given comes back. */
static void a_document_comes_back_as_it_was(void **state) {
    doppel_engine *engine =
        open_at(state, "index",
                (doppel_engine_options){.keep_text = DOPPEL_SWITCH_ON, .fields = "author,section", .ttl = 1000});
    doppel_item item = item_of("a", "HTTP://Example.org:80/x", ARTICLE);
    const doppel_slice extra[2] = {{"Ann", 3}, {"News \"1\"", 8}};
    doppel_stored_list list = {0};
    doppel_verdict verdict = {0};
    item.document.title.data = "The harbour bridge";
    item.document.title.length = 18;
    item.document.extra = extra;
    OK(doppel_engine_add(engine, &item, &verdict, error));
    OK(doppel_engine_get(engine, doppel_slice_of("https://www.example.org/x"), &list, error));
    assert_int_equal(list.count, 1);
    const doppel_stored *has = &list.stored[0];
    assert_int_equal(has->number, 1);
    assert_memory_equal(has->id.data, "a", 2 - 1);
    assert_int_equal(has->url.length, 23);
    assert_memory_equal(has->url.data, "HTTP://Example.org:80/x", 23);
    assert_int_equal(has->title.length, 18);
    assert_int_equal(has->fields.length, strlen("{\"author\":\"Ann\",\"section\":\"News \\\"1\\\"\"}"));
    assert_int_equal(has->text.length, strlen(ARTICLE));
    assert_memory_equal(has->text.data, ARTICLE, strlen(ARTICLE));
    assert_int_equal(has->added, now);
    assert_int_equal(has->expires, now + 1000);
    assert_int_equal(has->words, 249);
    assert_null(has->original_id.data);
    doppel_engine_stats stats;
    doppel_engine_get_stats(engine, &stats);
    assert_int_equal(stats.documents, 1);
    assert_int_equal(stats.last, 1);
    assert_int_equal(stats.adds, 1);
    assert_int_equal(stats.checks, 0);
    OK(doppel_engine_check(engine, &item, &verdict, error));
    doppel_engine_get_stats(engine, &stats);
    assert_int_equal(stats.checks, 1);
    assert_int_equal(stats.check_time.count, 1);
    assert_int_equal(stats.add_time.count, 1);
    assert_int_equal(stats.verdicts_by[0], 1);
    assert_int_equal(stats.verdicts_by[1], 1);
    doppel_verdict_free(&verdict);
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

/* Those with the most copies, the largest first. */
static void the_largest_groups_come_first(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.titles = DOPPEL_SWITCH_OFF});
    doppel_stored_list groups = {0};
    for (int i = 0; i < 5; i++) {
        char id[16], url[40], text[160];
        snprintf(id, sizeof id, "d%d", i);
        snprintf(url, sizeof url, "http://x.example/%d", i);
        snprintf(text, sizeof text, "only%d once%d are%d these%d words%d together%d here%d", i, i, i, i, i, i, i);
        add(engine, id, url, text, false);
        for (int copies = 0; copies < (i * 2) % 5; copies++)
            add(engine, "copy", url, "", true);
    }
    OK(doppel_engine_groups(engine, 3, &groups, error));
    assert_int_equal(groups.count, 3);
    const char *order[] = {"d2", "d4", "d1"};
    const uint64_t sizes[] = {4, 3, 2};
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(groups.stored[i].id.data, order[i], 2);
        assert_int_equal(groups.stored[i].duplicates, sizes[i]);
    }
    doppel_stored_list_free(&groups);
    doppel_engine_close(engine);
}

/* A document is asked about by its name, and is not in its own list; short texts are alike when their words are. */
static void names_and_short_texts_have_lists(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.preset = "article"});
    const doppel_similar_options all = {.size = sizeof all, .distance = 64};
    doppel_stored_list list = {0};
    doppel_item by_id = item_of("a", NULL, NULL), by_url = item_of(NULL, "http://b.example/", NULL);
    add(engine, "a", "http://a.example/", ARTICLE, false);
    add(engine, "b", "http://b.example/", OTHER_ARTICLE, false);
    add(engine, "c", "http://c.example/", "two words", false);
    OK(doppel_engine_find_similar(engine, &by_id, &all, &list, error));
    assert_int_equal(list.count, 1);
    assert_memory_equal(list.stored[0].id.data, "b", 1);
    assert_true(list.stored[0].distance > 3);
    OK(doppel_engine_find_similar(engine, &by_url, &all, &list, error));
    assert_int_equal(list.count, 1);
    assert_memory_equal(list.stored[0].id.data, "a", 1);
    assert_int_equal(similar(engine, "Two words!", 0.5), 1);
    assert_int_equal(similar(engine, "Two words more", 0.5), 0);
    doppel_item nobody = item_of("x", NULL, NULL);
    REFUSED(doppel_engine_find_similar(engine, &nobody, NULL, &list, error), DOPPEL_ERROR_INPUT, "no document has");
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EVERYWHERE(copies_are_not_listed_however_they_are_found),
        EVERYWHERE(nothing_is_more_than_the_same),
        EVERYWHERE(copies_leave_with_their_original),
        EVERYWHERE(an_orphan_of_an_earlier_version_is_gone),
        EVERYWHERE(what_was_acknowledged_is_listed),
        EVERYWHERE(pages_hold_every_document_once),
        EVERYWHERE(copies_without_a_url_are_listed),
        EVERYWHERE(a_title_finds_without_counting_as_a_check),
        EVERYWHERE(records_that_are_damaged_are_counted),
        EVERYWHERE(a_document_comes_back_as_it_was),
        EVERYWHERE(the_largest_groups_come_first),
        EVERYWHERE(names_and_short_texts_have_lists),
    };
    return run_everywhere("lists", tests, sizeof tests / sizeof *tests);
}
