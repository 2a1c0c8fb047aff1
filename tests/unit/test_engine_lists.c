/* test_engine_lists.c - lists of documents: the similar, all of them; and the options that an engine has. */
#include "engine_cases.h"
#include "files.h"

static doppel_engine *open_engine(const char *path, doppel_engine_options options) {
    doppel_engine *engine;
    doppel_error error = {0};
    options.size = sizeof options;
    if (doppel_engine_open(path, &options, &engine, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return engine;
}

static void add(doppel_engine *engine, const char *id, const char *url, const char *text, bool is_duplicate) {
    doppel_item item = {.size = sizeof item};
    item.document = (doppel_document){.id = id,
                                      .id_length = strlen(id),
                                      .url = url,
                                      .url_length = strlen(url),
                                      .text = text,
                                      .text_length = strlen(text)};
    doppel_verdict verdict = {0};
    assert_int_equal(doppel_engine_add(engine, &item, &verdict, NULL), DOPPEL_OK);
    assert_int_equal(verdict.is_duplicate, is_duplicate);
    doppel_verdict_free(&verdict);
}

static size_t similar(doppel_engine *engine, const char *text, double similarity) {
    const doppel_similar_options options = {.size = sizeof options, .similarity = similarity};
    doppel_item item = {.size = sizeof item};
    doppel_stored_list list = {0};
    doppel_error error = {0};
    item.document = (doppel_document){.text = text, .text_length = strlen(text)};
    if (doppel_engine_similar(engine, &item, &options, &list, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    size_t count = list.count;
    for (size_t i = 0; i < count; i++)
        assert_null(list.stored[i].original_id.data);
    doppel_stored_list_free(&list);
    return count;
}

/* ---- the similar ---- */

static void copies_are_not_listed_however_they_are_found(void **state) {
    (void)state;
    doppel_engine *engine = open_engine(NULL, (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_STORE});
    add(engine, "a", "http://a.example/", ARTICLE, false);
    add(engine, "b", "http://b.example/", ARTICLE_CHANGED, true);
    assert_int_equal(similar(engine, ARTICLE, 0), 1);
    assert_int_equal(similar(engine, ARTICLE, 0.01), 1); /* all are compared */
    doppel_engine_close(engine);
}

static void nothing_is_more_than_the_same(void **state) {
    (void)state;
    const char *presets[] = {"general", "crawl", "article"};
    for (int i = 0; i < 3; i++) {
        doppel_engine *engine = open_engine(NULL, (doppel_engine_options){.preset = presets[i]});
        add(engine, "a", "http://a.example/", ARTICLE, false);
        assert_int_equal(similar(engine, ARTICLE, 1), 0);
        doppel_engine_close(engine);
    }
}

/* ---- copies of what is gone ---- */

/* Whether the copy "b" is there, and its original gone. */
static void copy_is(doppel_engine *engine, size_t count, bool gone) {
    doppel_stored_list list = {0};
    assert_int_equal(doppel_engine_get(engine, "b", 1, &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, count);
    if (count)
        assert_int_equal(list.stored[0].original_gone, gone);
    doppel_stored_list_free(&list);
}

static void copies_of_what_is_gone_leave_with_compact(void **state) {
    for (int i = 0; i < 2; i++) {
        doppel_engine_stats stats;
        doppel_engine *engine =
            open_engine(i ? *state : NULL, (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK});
        add(engine, "a", "http://a.example/", ARTICLE, false);
        add(engine, "b", "http://b.example/", ARTICLE_CHANGED, true);
        copy_is(engine, 1, false);
        assert_int_equal(doppel_engine_remove(engine, "a", 1, NULL, NULL), DOPPEL_OK);
        copy_is(engine, 1, true);
        assert_int_equal(doppel_engine_compact(engine, NULL), DOPPEL_OK);
        copy_is(engine, 0, false);
        doppel_engine_get_stats(engine, &stats);
        assert_int_equal(stats.documents + stats.copies, 0);
        add(engine, "b", "http://b.example/", ARTICLE_CHANGED, false);
        doppel_engine_close(engine);
    }
}

/* ---- all ---- */

static bool count_one(const doppel_stored *stored, void *user) {
    (void)stored;
    ++*(size_t *)user;
    return true;
}

/* Nobody waits for the disk, but whoever is told of a document finds it in every list. */
static void what_was_acknowledged_is_listed(void **state) {
    doppel_engine *engine =
        open_engine(*state, (doppel_engine_options){.durability = DOPPEL_DURABLE_NONE, .titles = DOPPEL_SWITCH_OFF});
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

static void records_that_are_damaged_are_counted(void **state) {
    size_t count = 0;
    uint64_t damaged = 0;
    doppel_engine *engine = open_engine(*state, (doppel_engine_options){0});
    bool removed;
    add(engine, "a", "http://a.example/", ARTICLE, false);
    add(engine, "b", "http://b.example/", OTHER_ARTICLE, false);
    add(engine, "c", "http://c.example/", TRANSLATED, false);
    assert_int_equal(doppel_engine_remove(engine, "c", 1, &removed, NULL), DOPPEL_OK);
    doppel_engine_close(engine);
    damage(in(state, "documents-1.mdb"), "http://b.example/");
    engine = open_engine(*state, (doppel_engine_options){0});
    assert_int_equal(doppel_engine_each(engine, count_one, &count, &damaged, NULL), DOPPEL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(damaged, 1);
    doppel_engine_close(engine);
}

/* ---- options ---- */

static void an_engine_has_its_own_fields(void **state) {
    char fields[] = "author,section";
    doppel_engine *engine = open_engine(*state, (doppel_engine_options){.fields = fields});
    memset(fields, 'x', strlen(fields));
    assert_string_equal(doppel_engine_get_options(engine)->fields, "author,section");
    doppel_engine_close(engine);
    engine = open_engine(*state, (doppel_engine_options){0});
    assert_string_equal(doppel_engine_get_options(engine)->fields, "author,section");
    doppel_engine_close(engine);
}

/* What could not be read again is not written. */
static void names_of_fields_have_a_limit(void **state) {
    char fields[1100];
    doppel_engine *engine;
    doppel_error error = {0};
    doppel_engine_options options = {.size = sizeof options, .fields = fields};
    memset(fields, 'x', sizeof fields);
    fields[1024] = 0;
    assert_int_equal(doppel_engine_open(*state, &options, &engine, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "1023"));
    fields[1023] = 0;
    doppel_engine_close(open_engine(*state, options));
    doppel_engine_close(open_engine(*state, (doppel_engine_options){0}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_not_listed_however_they_are_found),
        cmocka_unit_test(nothing_is_more_than_the_same),
        cmocka_unit_test_setup_teardown(copies_of_what_is_gone_leave_with_compact, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_acknowledged_is_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(records_that_are_damaged_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(an_engine_has_its_own_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(names_of_fields_have_a_limit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
