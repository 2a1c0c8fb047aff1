/* test_faults.c - texts, sketches, tables and measures without memory, files or libcrypto: a clear error, no leak, no
 * part of a file, and the same call works afterwards. */
#include "faults.h"

#include <dirent.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

/* ---- libcrypto ---- */

static void *crypto_malloc(size_t size, const char *file, int line) {
    (void)file, (void)line;
    return fails(CRYPTO) ? NULL : __real_malloc(size);
}

static void *crypto_realloc(void *old, size_t size, const char *file, int line) {
    (void)file, (void)line;
    return fails(CRYPTO) ? NULL : __real_realloc(old, size);
}

static void crypto_free(void *given, const char *file, int line) {
    (void)file, (void)line;
    __real_free(given);
}

static void without_memory(scenario run) {
    run_with(run, (fault_plan){.kinds = MEMORY, .expected = DOPPEL_ERROR_MEMORY});
    run_with(run, (fault_plan){.kinds = MEMORY, .go_on = true, .expected = DOPPEL_ERROR_MEMORY});
}

static void without_libcrypto(scenario run) {
    run_with(run, (fault_plan){.kinds = CRYPTO, .expected = DOPPEL_ERROR_MEMORY, .may_pass = true});
    run_with(run, (fault_plan){.kinds = CRYPTO, .go_on = true, .expected = DOPPEL_ERROR_MEMORY, .may_pass = true});
}

/* ---- recipes ---- */

static const doppel_recipe_parts with_stop_words = {
    .size = sizeof with_stop_words, .stop_words.data = "the of and", .stop_words.length = 10};

static doppel_status parse(const char *text, const doppel_recipe_parts *parts, uint64_t *result) {
    doppel_recipe *recipe;
    doppel_error error;
    doppel_status status = doppel_recipe_parse(text, parts, &recipe, &error);
    if (status)
        assert_int_equal(error.code, status);
    else
        *result = mixed(*result, strlen(doppel_recipe_text(recipe)));
    doppel_recipe_free(recipe);
    return status;
}

static doppel_status parse_page(uint64_t *result) {
    return parse("page", NULL, result);
}

static doppel_status parse_stop(uint64_t *result) {
    return parse("simhash64:words=1:hash=md5:minhash=4", &with_stop_words, result);
}

static doppel_status parse_digest(uint64_t *result) {
    return parse("simhash64:hash=md5", NULL, result);
}

static void recipes(void **state) {
    (void)state;
    without_memory(parse_page);
    without_memory(parse_stop);
    without_libcrypto(parse_digest);
}

static void a_wrong_recipe_is_wrong_without_memory_too(void **state) {
    (void)state;
    static const char *const wrong[] = {"simhash64:words=0", "simhash64:nothing=1"};
    for (size_t k = 0; k < 2; k++)
        for (size_t n = 1; n < 10; n++) {
            faults.kinds = MEMORY;
            faults.calls = 0;
            faults.fail_at = n;
            doppel_recipe *recipe;
            doppel_error error;
            ptrdiff_t live = faults.live;
            doppel_status status = doppel_recipe_parse(wrong[k], NULL, &recipe, &error);
            faults.kinds = 0;
            assert_true(status == DOPPEL_ERROR_USAGE || status == DOPPEL_ERROR_MEMORY);
            assert_true(error.message[0]);
            assert_int_equal(faults.live, live);
        }
}

/* ---- sketches ---- */

static char long_text[24000];

static void fill_long_text(void) {
    uint64_t seed = 1;
    size_t length = 0;
    while (length < sizeof long_text - 20)
        length += (size_t)sprintf(long_text + length, "w%zu\xC3\xA9 ", random_below(&seed, 2000));
}

static const char *sketch_recipe;
static size_t sketch_length; /* of the long text; digests of libcrypto allocate for each feature */

static doppel_status sketch(const doppel_recipe *recipe, uint64_t *result) {
    const unsigned wants = DOPPEL_WANT_DIGEST | DOPPEL_WANT_FEATURES | DOPPEL_WANT_SET | DOPPEL_WANT_TEXT;
    doppel_sketcher *sketcher;
    doppel_sketch made;
    doppel_error error;
    doppel_status status = doppel_sketcher_create(recipe, wants, &sketcher, &error);
    if (!status)
        status = doppel_sketcher_run(sketcher, (doppel_slice){long_text, sketch_length}, &made);
    if (!status) {
        *result = mixed(mixed(*result, made.fingerprint[0]), made.fingerprint[1]);
        *result = mixed(mixed(*result, made.set_count), made.sample_count);
        *result = mixed(*result, made.slots ? made.signature[made.slots - 1] : 0);
        for (size_t i = 0; i < 32; i++)
            *result = mixed(*result, made.digest[i]);
    }
    doppel_sketcher_free(sketcher);
    return status;
}

static doppel_status sketch_document(uint64_t *result) {
    doppel_recipe *recipe;
    doppel_status status = doppel_recipe_parse(sketch_recipe, &with_stop_words, &recipe, NULL);
    if (!status)
        status = sketch(recipe, result);
    doppel_recipe_free(recipe);
    return status;
}

static void sketches(void **state) {
    (void)state;
    static const char *const recipes_to_try[] = {
        "simhash64:words=5:weight=tf", "simhash128:words=3:weight=tf:minhash=300:sample=2",
        "simhash64:words=1:weight=set", "simhash128:words=1:weight=sqrt:hash=murmur3:minhash=16",
        "simhash64:words=2:weight=tf2:hash=xxh3"};
    sketch_length = strlen(long_text);
    for (size_t i = 0; i < 5; i++) {
        sketch_recipe = recipes_to_try[i];
        without_memory(sketch_document);
    }
}

static void digests_of_libcrypto(void **state) {
    (void)state;
    sketch_recipe = "simhash128:words=2:hash=md5";
    sketch_length = 100;
    without_memory(sketch_document);
    without_libcrypto(sketch_document);
    sketch_recipe = "simhash64:words=5";
    without_libcrypto(sketch_document);
}

/* A sketcher that had no memory for one document does the next one. */
static void a_sketcher_goes_on(void **state) {
    (void)state;
    doppel_recipe *recipe;
    doppel_sketch made;
    uint64_t want;
    assert_int_equal(doppel_fingerprint(doppel_slice_of("one two three four five six"), &want), DOPPEL_OK);
    assert_int_equal(doppel_recipe_parse("simhash64:words=5:minhash=8:sample=3", NULL, &recipe, NULL), DOPPEL_OK);
    for (size_t n = 1;; n++) {
        doppel_sketcher *sketcher;
        assert_int_equal(doppel_sketcher_create(recipe, DOPPEL_WANT_TEXT | DOPPEL_WANT_SET, &sketcher, NULL),
                         DOPPEL_OK);
        faults.kinds = MEMORY;
        faults.calls = 0;
        faults.fail_at = n;
        doppel_status status = doppel_sketcher_run(sketcher, doppel_slice_of(long_text), &made);
        faults.kinds = 0;
        assert_int_equal(status, faults.calls < n ? DOPPEL_OK : DOPPEL_ERROR_MEMORY);
        assert_int_equal(doppel_sketcher_run(sketcher, doppel_slice_of("one two three four five six"), &made),
                         DOPPEL_OK);
        assert_int_equal(made.fingerprint[0], want);
        doppel_sketcher_free(sketcher);
        if (!status)
            break;
    }
    doppel_recipe_free(recipe);
}

/* ---- document frequencies ---- */

static char folder[] = "/tmp/doppel-test.XXXXXX";
static char table_path[60], merged_path[60];

/* How many files there are, folders counted by what is in them and one more. */
static size_t files_in(const char *path) {
    DIR *open = opendir(path);
    size_t count = 0;
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open));)
        if (entry->d_name[0] != '.') {
            char below[400];
            assert_true(snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below);
            count += 1 + (entry->d_type == DT_DIR ? files_in(below) : 0);
        }
    closedir(open);
    return count;
}

/* Fills the memory for counts several times over. */
static doppel_status add_documents(doppel_df_builder *builder) {
    uint64_t set[1000];
    doppel_error error;
    doppel_status status = DOPPEL_OK;
    for (uint64_t d = 0; d < 3 && !status; d++) {
        for (uint64_t i = 0; i < 1000; i++)
            set[i] = (i + 1) * 0x9E3779B97F4A7C15u + d % 2;
        status = doppel_df_builder_add(builder, set, 1000, &error);
        assert_true(!status || error.message[0]);
    }
    return status;
}

static doppel_status build_table(const char *path, size_t memory) {
    doppel_df_builder *builder;
    doppel_error error;
    doppel_status status = doppel_df_builder_create(NULL, memory, folder, &builder, &error);
    if (!status)
        status = add_documents(builder);
    if (!status)
        status = doppel_df_builder_save(builder, path, 0, &error);
    doppel_df_builder_free(builder);
    return status;
}

static doppel_status read_table(const char *path, uint64_t *result) {
    doppel_df *df;
    doppel_error error;
    doppel_status status = doppel_df_open(path, &df, &error);
    if (!status)
        *result = mixed(mixed(*result, doppel_df_features(df)), strtoull(doppel_df_digest(df), NULL, 16));
    else
        assert_true(error.message[0]);
    doppel_df_close(df);
    return status;
}

/* Nothing but what was there, and nothing half done. */
static doppel_status build_and_read(uint64_t *result) {
    doppel_status status = build_table(table_path, 1);
    if (!status)
        status = read_table(table_path, result);
    int kinds = pause_faults();
    assert_true(files_in(folder) <= 1);
    uint64_t again = 0;
    if (!access(table_path, F_OK))
        assert_int_equal(read_table(table_path, &again), DOPPEL_OK);
    unlink(table_path);
    resume_faults(kinds);
    return status;
}

static doppel_status merge_and_read(uint64_t *result) {
    doppel_error error;
    doppel_status status = doppel_df_merge((const char *const[]){table_path, table_path}, 2, merged_path, &error);
    if (!status)
        status = read_table(merged_path, result);
    int kinds = pause_faults();
    assert_true(files_in(folder) <= 2);
    unlink(merged_path);
    resume_faults(kinds);
    return status;
}

static void tables_without_memory(void **state) {
    (void)state;
    without_memory(build_and_read);
    assert_int_equal(build_table(table_path, 0), DOPPEL_OK);
    without_memory(merge_and_read);
    unlink(table_path);
}

static void tables_without_a_system(void **state) {
    (void)state;
    run_with(build_and_read, (fault_plan){.kinds = SYSTEM, .expected = DOPPEL_ERROR_IO});
    run_with(build_and_read, (fault_plan){.kinds = SYSTEM, .go_on = true, .expected = DOPPEL_ERROR_IO});
    assert_int_equal(build_table(table_path, 0), DOPPEL_OK);
    run_with(merge_and_read, (fault_plan){.kinds = SYSTEM, .expected = DOPPEL_ERROR_IO});
    unlink(table_path);
}

/* No file stays open, either. */
static void descriptors_are_given_back(void **state) {
    (void)state;
    assert_int_equal(build_table(table_path, 0), DOPPEL_OK);
    int before = dup(0);
    close(before);
    tables_without_a_system(state);
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
}

static const doppel_df *sketch_table;

/* The table counts the same features as the sketches: five words, without stop words. */
static doppel_status sketch_by_table(uint64_t *result) {
    doppel_recipe *recipe;
    const doppel_recipe_parts parts = {.size = sizeof parts, .df = sketch_table};
    doppel_status status = doppel_recipe_parse("simhash64:weight=tfidf", &parts, &recipe, NULL);
    if (!status)
        status = sketch(recipe, result);
    doppel_recipe_free(recipe);
    return status;
}

static void sketches_by_a_table(void **state) {
    (void)state;
    doppel_df *df;
    assert_int_equal(build_table(table_path, 0), DOPPEL_OK);
    assert_int_equal(doppel_df_open(table_path, &df, NULL), DOPPEL_OK);
    sketch_table = df;
    sketch_length = strlen(long_text);
    without_memory(sketch_by_table);
    doppel_df_close(df);
    unlink(table_path);
}

/* ---- measures ---- */

static doppel_status compare(uint64_t *result) {
    doppel_comparison made;
    doppel_status status =
        doppel_compare(NULL, (doppel_slice){long_text, 4000}, (doppel_slice){long_text + 500, 4000}, &made);
    if (!status)
        *result = mixed(mixed(*result, made.shingles_shared), (uint64_t)made.edit_distance);
    return status;
}

static doppel_status passages(uint64_t *result) {
    doppel_passages list = {0};
    doppel_status status =
        doppel_passages_find(NULL, (doppel_slice){long_text, 4000}, (doppel_slice){long_text + 500, 4000}, 2, &list);
    if (status)
        return status;
    *result = mixed(mixed(*result, list.count), list.count ? list.passage[0].a_start : 0);
    doppel_passages_free(&list);
    return DOPPEL_OK;
}

static doppel_status ranges(uint64_t *result) {
    doppel_ranges list = {0};
    doppel_status status = doppel_ranges_find(NULL, (doppel_slice){long_text, 9000}, &list);
    if (status)
        return status;
    *result = mixed(*result, list.range[list.count - 1].end);
    doppel_ranges_free(&list);
    return DOPPEL_OK;
}

static doppel_status edits(uint64_t *result) {
    size_t distance = 0, indel = 0;
    double similarity = 0;
    doppel_status status =
        doppel_levenshtein((doppel_slice){long_text, 4000}, (doppel_slice){long_text + 100, 4000}, SIZE_MAX, &distance);
    if (!status)
        status = doppel_indel((doppel_slice){long_text, 4000}, (doppel_slice){long_text + 100, 4000}, SIZE_MAX, &indel);
    if (!status)
        status = doppel_edit_similarity((doppel_slice){long_text, 5000}, (doppel_slice){long_text + 10, 5000}, 0.9,
                                        &similarity);
    if (!status)
        *result = mixed(mixed(mixed(*result, distance), indel), (uint64_t)(similarity * 1e9));
    return status;
}

static bool count_found(size_t number, double similarity, void *user) {
    (void)similarity;
    *(uint64_t *)user = mixed(*(uint64_t *)user, number);
    return true;
}

static doppel_status titles(uint64_t *result) {
    doppel_titles *list;
    doppel_status status = doppel_titles_create(&list);
    uint64_t found = 0;
    for (size_t i = 0; i < 100 && !status; i++)
        status = doppel_titles_add(list, (doppel_slice){long_text + 10 * i, 40 + 20 * (i % 50)});
    if (!status)
        status = doppel_titles_find(list, (doppel_slice){long_text + 50, 60 + 80}, 0.5, count_found, &found);
    doppel_titles_free(list);
    *result = mixed(*result, found);
    return status;
}

static doppel_status simple_calls(uint64_t *result) {
    uint64_t fingerprint[2] = {0};
    uint32_t *signature = __real_malloc(65536 * sizeof *signature);
    doppel_feature feature = {{"x", 1}, 2.5};
    doppel_status status = doppel_fingerprint((doppel_slice){long_text, 9000}, fingerprint);
    if (!status)
        status = doppel_minhash(fingerprint, 1, 65536, signature);
    if (!status)
        status = doppel_simhash(&feature, 1, NULL, fingerprint, NULL);
    *result = mixed(*result, fingerprint[0]);
    __real_free(signature);
    return status;
}

static doppel_status named_hash(uint64_t *result) {
    return doppel_hash("sha256", doppel_slice_of("x"), 0, result);
}

static doppel_status own_features(uint64_t *result) {
    const doppel_feature features[] = {{{"x", 1}, 2.5}, {{"y", 1}, 1}};
    uint64_t fingerprint[2];
    const doppel_simhash_options options = {.size = sizeof options, .hash = "sha1"};
    doppel_status status = doppel_simhash(features, 2, &options, fingerprint, NULL);
    *result = status ? 0 : fingerprint[0];
    return status;
}

static void measures(void **state) {
    (void)state;
    without_memory(compare);
    without_memory(passages);
    without_memory(ranges);
    without_memory(edits);
    without_memory(titles);
    without_memory(simple_calls);
}

static void hashes_of_libcrypto(void **state) {
    (void)state;
    without_libcrypto(named_hash);
    without_libcrypto(own_features);
    without_libcrypto(compare);
}

/* ---- */

static int setup(void **state) {
    (void)state;
    fill_long_text();
    if (!mkdtemp(folder))
        return -1;
    snprintf(table_path, sizeof table_path, "%s/table", folder);
    snprintf(merged_path, sizeof merged_path, "%s/merged", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return rmdir(folder);
}

int main(void) {
    if (!CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recipes),
        cmocka_unit_test(a_wrong_recipe_is_wrong_without_memory_too),
        cmocka_unit_test(sketches),
        cmocka_unit_test(digests_of_libcrypto),
        cmocka_unit_test(a_sketcher_goes_on),
        cmocka_unit_test(tables_without_memory),
        cmocka_unit_test(tables_without_a_system),
        cmocka_unit_test(descriptors_are_given_back),
        cmocka_unit_test(sketches_by_a_table),
        cmocka_unit_test(measures),
        cmocka_unit_test(hashes_of_libcrypto),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
