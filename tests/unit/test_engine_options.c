/* test_engine_options.c - the options that an engine has, and what it was made with, wherever it lives. */
#include "engine_cases.h"
#include "engine_places.h"

static void an_engine_has_its_own_fields(void **state) {
    if (here->place == IN_MEMORY)
        return;
    char fields[] = "author,section";
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.fields = fields});
    memset(fields, 'x', strlen(fields));
    assert_string_equal(doppel_engine_get_options(engine)->fields, "author,section");
    doppel_engine_close(engine);
    engine = open_at(state, "index", (doppel_engine_options){0});
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
    assert_int_equal(doppel_engine_open(path_of(state, "index"), &options, &engine, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "1023"));
    fields[1023] = 0;
    doppel_engine_close(open_at(state, "index", options));
    doppel_engine_close(open_at(state, "index", (doppel_engine_options){0}));
}

/* What a store cannot do, it says, with what to do instead. */
static void what_a_shared_store_leaves_to_others(void **state) {
    if (here->place != IN_REDIS)
        return;
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    doppel_verified verified;
    REFUSED(doppel_engine_backup(engine, in(state, "copy"), error), DOPPEL_ERROR_USAGE, "doppel export");
    OK(doppel_engine_compact(engine, error));
    OK(doppel_engine_verify(path_of(state, "index"), NULL, NULL, &verified, error));
    uint64_t expired = 7;
    OK(doppel_engine_expire(engine, &expired, error));
    assert_int_equal(expired, 0);
    doppel_engine_close(engine);
}

/* Adds one document, so that what an index was made with is fixed. */
static void add_something(doppel_engine *engine) {
    doppel_item item = {.size = sizeof item};
    doppel_verdict verdict = {0};
    item.document.id = doppel_slice_of("a");
    item.document.text = doppel_slice_of("some words of a document that is stored");
    OK(doppel_engine_add(engine, &item, &verdict, error));
    doppel_verdict_free(&verdict);
}

/* With these options alone: open_at adds a preset. */
static doppel_engine *open_with(void **state, doppel_engine_options options) {
    doppel_engine *engine;
    options.size = sizeof options;
    OK(doppel_engine_open(path_of(state, "index"), &options, &engine, error));
    return engine;
}

/* A folder in which nothing was ever stored takes other settings; one whose document was removed does not. */
static void settings_of_an_unused_folder_can_be_replaced(void **state) {
    if (here->place != IN_FOLDER)
        return;
    doppel_engine_close(open_with(state, (doppel_engine_options){.preset = "crawl", .ttl = 77}));
    doppel_engine_options differing = {.size = sizeof differing, .must_exist = true, .keep_text = DOPPEL_SWITCH_ON};
    doppel_engine *engine;
    REFUSED(doppel_engine_open(path_of(state, "index"), &differing, &engine, error), DOPPEL_ERROR_STORE,
            "made with keep_text off");
    /* What may change each time is stored, with the settings that it has. */
    doppel_engine_close(open_with(state, (doppel_engine_options){.on_duplicate = DOPPEL_DUPLICATE_LINK}));
    engine = open_with(state, (doppel_engine_options){0});
    assert_string_equal(doppel_engine_get_options(engine)->preset, "crawl");
    assert_int_equal(doppel_engine_get_options(engine)->ttl, 77);
    assert_int_equal(doppel_engine_get_options(engine)->on_duplicate, DOPPEL_DUPLICATE_LINK);
    doppel_engine_close(engine);
    /* What is fixed makes all settings anew. */
    doppel_engine_close(open_with(state, (doppel_engine_options){.preset = "article", .distance = 5}));
    engine = open_with(state, (doppel_engine_options){.keep_text = DOPPEL_SWITCH_ON, .fields = "author"});
    assert_string_equal(doppel_engine_get_options(engine)->preset, "general");
    assert_string_equal(doppel_recipe_text(doppel_engine_get_options(engine)->recipe),
                        "simhash64:words=5:hash=fast:weight=tf");
    add_something(engine);
    bool removed;
    OK(doppel_engine_remove(engine, doppel_slice_of("a"), &removed, error));
    assert_true(removed);
    doppel_engine_close(engine);
    engine = open_with(state, (doppel_engine_options){0});
    assert_int_equal(doppel_engine_get_options(engine)->keep_text, DOPPEL_SWITCH_ON);
    assert_string_equal(doppel_engine_get_options(engine)->fields, "author");
    OK(doppel_engine_compact(engine, error));
    doppel_engine_close(engine);
    differing = (doppel_engine_options){.size = sizeof differing, .titles = DOPPEL_SWITCH_OFF};
    REFUSED(doppel_engine_open(path_of(state, "index"), &differing, &engine, error), DOPPEL_ERROR_STORE,
            "made with titles on");
}

/* What it was made with stays; what is said of it later must be the same. */
static void settings_are_agreed_upon(void **state) {
    if (here->place == IN_MEMORY)
        return;
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){.preset = "article", .distance = 5});
    if (here->place == IN_FOLDER)
        add_something(engine);
    doppel_engine_close(engine);
    const doppel_engine_options nothing = {.size = sizeof nothing};
    OK(doppel_engine_open(path_of(state, "index"), &nothing, &engine, error));
    const doppel_engine_options *has = doppel_engine_get_options(engine);
    assert_string_equal(has->preset, "article");
    assert_int_equal(has->distance, 5);
    assert_true(here->place == IN_REDIS ? has->ttl == 30 * 86400 : has->ttl == DOPPEL_NEVER);
    doppel_engine_close(engine);
    doppel_engine_options later = {.size = sizeof later, .distance = 4};
    REFUSED(doppel_engine_open(path_of(state, "index"), &later, &engine, error), DOPPEL_ERROR_STORE,
            "made with distance 5 and cannot be used with distance 4");
    later = (doppel_engine_options){.size = sizeof later, .preset = "crawl"};
    REFUSED(doppel_engine_open(path_of(state, "index"), &later, &engine, error), DOPPEL_ERROR_STORE,
            "made with preset article");
    later = (doppel_engine_options){.size = sizeof later, .ttl = DOPPEL_NEVER};
    OK(doppel_engine_open(path_of(state, "index"), &later, &engine, error));
    assert_true(doppel_engine_get_options(engine)->ttl == DOPPEL_NEVER);
    doppel_engine_close(engine);
}

static void what_is_not_there_is_not_made(void **state) {
    if (here->place == IN_MEMORY)
        return;
    doppel_engine *engine;
    const doppel_engine_options options[] = {{.size = sizeof options[0], .must_exist = true},
                                             {.size = sizeof options[0], .read_only = true}};
    for (int i = 0; i < 2; i++) {
        doppel_error error = {0};
        doppel_status status = doppel_engine_open(path_of(state, "index"), &options[i], &engine, &error);
        assert_true(status == DOPPEL_ERROR_STORE || status == DOPPEL_ERROR_IO);
        assert_string_not_equal(error.message, "");
    }
}

static void a_reader_changes_nothing(void **state) {
    if (here->place == IN_MEMORY)
        return;
    doppel_engine *writer = open_at(state, "index", (doppel_engine_options){0});
    adding_says(writer, item_of("a", "http://a.example/", ARTICLE), "unique");
    if (here->place == IN_FOLDER) /* a process has one engine of a folder */
        doppel_engine_close(writer);
    doppel_engine *reader = open_at(state, "index", (doppel_engine_options){.read_only = true});
    doppel_item item = item_of("b", "http://a.example/", OTHER_ARTICLE);
    doppel_verdict verdict = {0};
    bool removed;
    checking_says(reader, item, "exact_url a");
    REFUSED(doppel_engine_add(reader, &item, &verdict, error), DOPPEL_ERROR_USAGE, "read only");
    REFUSED(doppel_engine_remove(reader, doppel_slice_of("a"), &removed, error), DOPPEL_ERROR_USAGE, "read only");
    if (here->place == IN_REDIS) {
        adding_says(writer, item_of("c", "http://c.example/", OTHER_ARTICLE), "unique");
        checking_says(reader, item_of("d", "http://c.example/", TRANSLATED), "exact_url c");
        doppel_engine_close(writer);
    }
    doppel_engine_close(reader);
    doppel_verdict_free(&verdict);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EVERYWHERE(an_engine_has_its_own_fields),
        EVERYWHERE(names_of_fields_have_a_limit),
        EVERYWHERE(what_a_shared_store_leaves_to_others),
        EVERYWHERE(settings_are_agreed_upon),
        EVERYWHERE(settings_of_an_unused_folder_can_be_replaced),
        EVERYWHERE(what_is_not_there_is_not_made),
        EVERYWHERE(a_reader_changes_nothing),
    };
    return run_everywhere("options", tests, sizeof tests / sizeof *tests);
}
