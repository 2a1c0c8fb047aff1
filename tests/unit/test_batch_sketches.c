/* test_batch_sketches.c - sketches as bytes: a batch that gets them decides as the one that read the documents. */
#include "batches.h"

#include <unistd.h>

static int enter_folder(void **state) {
    return setup(state) || chdir(*state);
}

static doppel_status take_sketch(doppel_slice entry, void *user) {
    dp_buffer *entries = user;
    return dp_buffer_add(entries, entry.data, entry.length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* The sketches of the documents of a file. */
static dp_buffer sketches_of(doppel_batch_options options, const char *path) {
    dp_buffer entries = {0};
    doppel_error error = {0};
    options.keep_sketches = true;
    doppel_batch *batch = read_batch(options, &path, 1, 0);
    if (doppel_batch_get_sketches(batch, take_sketch, &entries, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    doppel_batch_free(batch);
    return entries;
}

static doppel_batch *make_batch(doppel_batch_options options) {
    doppel_batch *batch = NULL;
    options.size = sizeof options;
    assert_int_equal(doppel_batch_create(&options, &batch, NULL), DOPPEL_OK);
    return batch;
}

static void add(doppel_batch *batch, const dp_buffer *entries, bool known) {
    doppel_error error = {0};
    if (doppel_batch_add_sketches(batch, (doppel_slice){entries->data, entries->size}, known, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
}

static void check_same(doppel_batch *a, doppel_batch *b) {
    decide(a);
    decide(b);
    dp_buffer x = decisions(a), y = decisions(b);
    assert_true(x.size > 1);
    assert_string_equal(x.data, y.data);
    dp_buffer_free(&x);
    dp_buffer_free(&y);
    doppel_batch_free(a);
    doppel_batch_free(b);
}

static void sketches_are_decided_as_documents_are(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    static const doppel_batch_options all[] = {{0},
                                               {.keep = "longest,id"},
                                               {.method = DOPPEL_METHOD_SIMHASH, .distance = 6},
                                               {.method = DOPPEL_METHOD_EXACT, .keep = "last"},
                                               {.link_any = true, .keep = "id"},
                                               {.similarity = 0.4, .keep = "shortest,id"}};
    save_mixture(path, 200, 60);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        dp_buffer entries = sketches_of(all[i], path);
        doppel_batch *batch = make_batch(all[i]);
        add(batch, &entries, false);
        check_same(batch, read_batch(all[i], &path, 1, 0));
        dp_buffer_free(&entries);
    }
}

static void known_sketches_are_as_known_documents(void **state) {
    (void)state;
    const char *paths[] = {"a.jsonl", "b.jsonl"};
    const doppel_batch_options options = {.keep = "id"};
    save_mixture(paths[0], 50, 60);
    save_mixture(paths[1], 120, 60);
    dp_buffer known = sketches_of(options, paths[0]), others = sketches_of(options, paths[1]);
    doppel_batch *batch = make_batch(options);
    add(batch, &known, true);
    add(batch, &others, false);
    doppel_error error = {0};
    assert_int_equal(doppel_batch_add_sketches(batch, (doppel_slice){known.data, known.size}, true, &error),
                     DOPPEL_ERROR_USAGE);
    check_same(batch, read_batch(options, paths, 2, 1));
    dp_buffer_free(&known);
    dp_buffer_free(&others);
}

/* With `across`, documents with the same words stay beside each other, and any of them may be the first. */
static void with_across_each_document_has_its_set(void **state) {
    (void)state;
#define WORDS "the quick brown fox jumps over the lazy dog and sleeps in the sun for the rest of this day"
    static const char words[] = WORDS, edited[] = WORDS " again";
    static const char lang[] = ",\"lang\":\"en\"", other[] = ",\"lang\":\"de\"";
    const char *paths[] = {"turned.jsonl", "b.jsonl"};
    const doppel_batch_options options = {.across = "lang"};
    dp_buffer file = {0};
    add_record(&file, "1", words, lang);
    add_record(&file, "2", words, lang);
    save_records(&file, "a.jsonl");
    add_record(&file, "2", words, lang);
    add_record(&file, "1", words, lang);
    save_records(&file, "turned.jsonl");
    add_record(&file, "3", edited, other);
    save_records(&file, "b.jsonl");
    dp_buffer known = sketches_of(options, "a.jsonl"), others = sketches_of(options, "b.jsonl");
    dp_entry_prefix first;
    memcpy(&first, known.data, sizeof first);
    doppel_batch *batch = make_batch(options);
    add(batch, &(dp_buffer){.data = known.data + first.size, .size = known.size - first.size}, true);
    add(batch, &(dp_buffer){.data = known.data, .size = first.size}, true);
    add(batch, &others, false);
    check_same(batch, read_batch(options, paths, 2, 1));
    dp_buffer_free(&known);
    dp_buffer_free(&others);
}

static void what_is_no_sketch_is_refused(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    const doppel_batch_options options = {0};
    save_mixture(path, 5, 20);
    dp_buffer entries = sketches_of(options, path);
    for (size_t length = 1; length < entries.size; length += 37) {
        doppel_batch *batch = make_batch(options);
        doppel_error error = {0};
        doppel_status status = doppel_batch_add_sketches(batch, (doppel_slice){entries.data, length}, false, &error);
        if (status != DOPPEL_OK)
            assert_int_equal(status, DOPPEL_ERROR_STORE);
        doppel_batch_free(batch);
    }
    for (size_t at = 0; at < entries.size; at += 13) {
        doppel_batch *batch = make_batch(options);
        entries.data[at] ^= 1;
        assert_int_equal(doppel_batch_add_sketches(batch, (doppel_slice){entries.data, entries.size}, false, NULL),
                         DOPPEL_ERROR_STORE);
        entries.data[at] ^= 1;
        doppel_batch_free(batch);
    }
    dp_buffer_free(&entries);
}

/* With keys_for_sets, entries are those of the same documents but for their sets: these have the wide keys that the
 * sets make. */
static void keys_stand_for_sets(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    save_mixture(path, 40, 60);
    dp_buffer sketches = sketches_of((doppel_batch_options){0}, path);
    dp_buffer keys = sketches_of((doppel_batch_options){.keys_for_sets = true}, path);
    size_t at = 0, compared = 0;
    for (size_t from = 0; from < sketches.size;) {
        dp_entry_prefix whole, short_one;
        dp_document_head with_set, with_keys;
        memcpy(&whole, sketches.data + from, sizeof whole);
        memcpy(&short_one, keys.data + at, sizeof short_one);
        memcpy(&with_set, sketches.data + from + sizeof whole, sizeof with_set);
        memcpy(&with_keys, keys.data + at + sizeof short_one, sizeof with_keys);
        const char *set = sketches.data + from + whole.size - with_set.set_count * sizeof(uint64_t);
        const char *wide = keys.data + at + short_one.size - with_keys.set_count * sizeof(uint64_t);
        assert_int_equal(with_set.keys, with_keys.keys);
        assert_int_equal(with_keys.set_count, with_keys.keys);
        if (with_set.keys) {
            uint64_t hashes[100], made[DP_MOST_BANDS];
            assert_in_range(with_set.set_count, 1, 100);
            memcpy(hashes, set, with_set.set_count * sizeof *hashes);
            assert_int_equal(doppel_bands_wide_keys(hashes, with_set.set_count, (int)with_set.keys, 7, made),
                             DOPPEL_OK);
            assert_memory_equal(wide, made, with_set.keys * sizeof *made);
            assert_memory_equal(set - 4 * with_set.keys, wide - 4 * with_set.keys, 4 * with_set.keys);
            compared++;
        }
        with_keys.set_count = with_set.set_count;
        assert_memory_equal(&with_set, &with_keys, sizeof with_set);
        from += whole.size;
        at += short_one.size;
    }
    assert_true(compared > 10 && at == keys.size);
    dp_buffer_free(&sketches);
    dp_buffer_free(&keys);
}

static void sketches_have_to_be_kept(void **state) {
    (void)state;
    const char *path = "a.jsonl";
    dp_buffer entries = {0};
    doppel_error error = {0};
    save_mixture(path, 5, 20);
    doppel_batch *batch = read_batch((doppel_batch_options){0}, &path, 1, 0);
    assert_int_equal(doppel_batch_get_sketches(batch, take_sketch, &entries, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "keep_sketches"));
    doppel_batch_free(batch);
}

static void settings_are_text(void **state) {
    (void)state;
    char text[512] = "";
    doppel_batch *batch = make_batch((doppel_batch_options){.similarity = 0.9, .within = "host"});
    size_t length = doppel_batch_settings(batch, text, sizeof text - 1);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "recipe=simhash64:words=5:hash=fast:weight=tf\n"));
    assert_non_null(strstr(text, "within=host\n"));
    char part[4] = "";
    assert_int_equal(doppel_batch_settings(batch, part, 3), length);
    assert_string_equal(part, "rec");
    doppel_batch_free(batch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sketches_are_decided_as_documents_are, enter_folder, teardown),
        cmocka_unit_test_setup_teardown(known_sketches_are_as_known_documents, enter_folder, teardown),
        cmocka_unit_test_setup_teardown(with_across_each_document_has_its_set, enter_folder, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_sketch_is_refused, enter_folder, teardown),
        cmocka_unit_test_setup_teardown(sketches_have_to_be_kept, enter_folder, teardown),
        cmocka_unit_test_setup_teardown(keys_stand_for_sets, enter_folder, teardown),
        cmocka_unit_test(settings_are_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
