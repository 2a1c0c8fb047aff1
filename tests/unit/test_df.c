/* test_df.c - document-frequency tables: counted, saved, opened, merged, and what is refused (docs/FORMAT.md 7). */
#include "files.h"

#include "sketch/df.h"

#include <math.h>
#include <signal.h>

/* ---- making tables ---- */

static doppel_df_builder *builder_open(const char *recipe_text, size_t memory, const char *tmp) {
    doppel_recipe *recipe;
    doppel_df_builder *builder;
    assert_int_equal(doppel_recipe_parse(recipe_text, NULL, &recipe, NULL), DOPPEL_OK);
    assert_int_equal(doppel_df_builder_create(recipe, memory, tmp, &builder, NULL), DOPPEL_OK);
    doppel_recipe_free(recipe);
    return builder;
}

static void add(doppel_df_builder *builder, const uint64_t *set, size_t count) {
    doppel_error error;
    if (doppel_df_builder_add(builder, set, count, &error)) {
        print_error("%s: %s\n", error.file, error.message);
        fail();
    }
}

/* Document d of `documents` has feature f when d % (f + 1) is 0: feature f is in ceil(documents / (f + 1)). */
static uint64_t feature(size_t number) {
    uint64_t state = number;
    return random_next(&state);
}

static void add_documents(doppel_df_builder *builder, size_t first, size_t end, size_t features) {
    uint64_t *set = malloc(features * 8);
    for (size_t d = first; d < end; d++) {
        size_t count = 0;
        for (size_t f = 0; f < features; f++)
            if (d % (f + 1) == 0)
                set[count++] = feature(f);
        add(builder, set, count);
    }
    free(set);
}

static void save(doppel_df_builder *builder, const char *path, uint32_t min_df) {
    doppel_error error;
    if (doppel_df_builder_save(builder, path, min_df, &error)) {
        print_error("%s: %s\n", error.file, error.message);
        fail();
    }
    doppel_df_builder_free(builder);
}

static void make_table(const char *path, size_t first, size_t end, size_t features) {
    doppel_df_builder *builder = builder_open("page", 0, NULL);
    add_documents(builder, first, end, features);
    save(builder, path, 0);
}

static doppel_df *open_table(const char *path) {
    doppel_df *df;
    doppel_error error;
    if (doppel_df_open(path, &df, &error)) {
        print_error("%s: %s\n", error.file, error.message);
        fail();
    }
    return df;
}

static void refused(const char *path, doppel_status status, const char *reason) {
    doppel_df *df = (void *)&df;
    doppel_error error = {.code = DOPPEL_OK};
    assert_int_equal(doppel_df_open(path, &df, &error), status);
    assert_null(df);
    assert_int_equal(error.code, status);
    assert_string_equal(error.file, path);
    if (!strstr(error.message, reason)) {
        print_error("`%s` lacks `%s`\n", error.message, reason);
        fail();
    }
}

/* ---- counting ---- */

static void counts_are_those_of_the_documents(void **state) {
    const char *path = in(state, "table");
    make_table(path, 0, 100, 150);
    doppel_df *df = open_table(path);
    assert_int_equal(doppel_df_documents(df), 100);
    assert_int_equal(doppel_df_features(df), 150);
    assert_string_equal(doppel_df_recipe(df), "words=5:hash=fast");
    for (size_t f = 0; f < 150; f++)
        assert_int_equal(doppel_df_get(df, feature(f)), (100 + f) / (f + 1));
    assert_int_equal(doppel_df_get(df, feature(150)), 0);
    assert_int_equal(entries(*state, false), 1);
    doppel_df_close(df);
}

static void idf_is_the_logarithm_and_never_negative(void **state) {
    const char *path = in(state, "table");
    make_table(path, 0, 100, 150);
    doppel_df *df = open_table(path);
    for (size_t f = 0; f <= 150; f++) {
        double count = f < 150 ? (double)((100 + f) / (f + 1)) : 0, idf = log(100 / (count + 1));
        double want = idf < 0 ? 0 : (double)llrint(idf * 65536) / 65536;
        assert_true(doppel_df_idf(df, feature(f)) == want);
    }
    assert_true(doppel_df_idf(df, feature(0)) == 0);
    doppel_df_close(df);
}

static void a_table_of_nothing(void **state) {
    const char *path = in(state, "table");
    make_table(path, 0, 0, 0);
    doppel_df *df = open_table(path);
    assert_int_equal(doppel_df_documents(df) + doppel_df_features(df), 0);
    assert_int_equal(doppel_df_get(df, 0) + doppel_df_get(df, UINT64_MAX), 0);
    assert_true(doppel_df_idf(df, 1) == 0);
    doppel_df_close(df);
}

static void rare_features_can_be_left_out(void **state) {
    const char *path = in(state, "table");
    for (uint32_t min_df = 0; min_df < 12; min_df += 3) {
        doppel_df_builder *builder = builder_open("page", 0, NULL);
        add_documents(builder, 0, 60, 70);
        save(builder, path, min_df);
        doppel_df *df = open_table(path);
        uint64_t left = 0;
        for (size_t f = 0; f < 70; f++) {
            uint64_t count = (60 + f) / (f + 1), want = count >= min_df ? count : 0;
            assert_int_equal(doppel_df_get(df, feature(f)), want);
            left += want != 0;
        }
        assert_int_equal(doppel_df_features(df), left);
        assert_int_equal(doppel_df_documents(df), 60);
        doppel_df_close(df);
    }
}

static void features_at_any_place_are_found(void **state) {
    /* Far from well mixed: what interpolation guesses badly. */
    uint64_t set[400];
    size_t count = 0;
    for (uint64_t i = 0; i < 100; i++)
        set[count++] = i * 2;
    for (int shift = 8; shift < 64; shift++)
        set[count++] = (uint64_t)1 << shift;
    for (uint64_t i = 100; i > 0; i--)
        set[count++] = UINT64_MAX - 2 * (i - 1);
    const char *path = in(state, "table");
    doppel_df_builder *builder = builder_open("page", 0, NULL);
    add(builder, set, count);
    add(builder, set, 3);
    save(builder, path, 0);
    doppel_df *df = open_table(path);
    assert_int_equal(doppel_df_features(df), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(doppel_df_get(df, set[i]), i < 3 ? 2 : 1);
        assert_int_equal(doppel_df_get(df, set[i] + 1), set[i] == UINT64_MAX ? 2 : 0);
    }
    doppel_df_close(df);
}

/* ---- little memory ---- */

static void little_memory_gives_the_same_bytes(void **state) {
    const char *tmp = in(state, "tmp"), *plain = in(state, "plain"), *spilt = in(state, "spilt");
    assert_int_equal(mkdir(tmp, 0700), 0);
    make_table(plain, 0, 40, 5000);
    doppel_df_builder *builder = builder_open("page", 1, tmp);
    add_documents(builder, 0, 40, 5000);
    assert_true(entries(tmp, false) > 0);
    doppel_error error;
    assert_int_equal(doppel_df_builder_save(builder, spilt, 0, &error), DOPPEL_OK);
    same_files(plain, spilt);
    /* Saving changes nothing: more can be added. */
    add_documents(builder, 40, 50, 5000);
    assert_int_equal(doppel_df_builder_save(builder, spilt, 0, &error), DOPPEL_OK);
    make_table(plain, 0, 50, 5000);
    same_files(plain, spilt);
    doppel_df_builder_free(builder);
    assert_int_equal(entries(tmp, false), 0);
}

static void a_folder_for_little_memory_that_is_not_there(void **state) {
    const char *tmp = in(state, "missing");
    doppel_df_builder *builder = builder_open("page", 1, tmp);
    uint64_t set[5000];
    for (size_t i = 0; i < 5000; i++)
        set[i] = feature(i);
    doppel_error error;
    assert_int_equal(doppel_df_builder_add(builder, set, 5000, &error), DOPPEL_ERROR_IO);
    assert_string_equal(error.file, tmp);
    assert_non_null(strstr(error.message, "No such file or directory"));
    doppel_df_builder_free(builder);
}

/* ---- merging ---- */

static void merged_tables_are_the_table_of_all(void **state) {
    const char *whole = in(state, "whole"), *first = in(state, "first"), *second = in(state, "second");
    const char *merged = in(state, "merged");
    make_table(whole, 0, 90, 200);
    make_table(first, 0, 31, 200);
    make_table(second, 31, 90, 200);
    doppel_error error;
    assert_int_equal(doppel_df_merge((const char *const[]){second, first}, 2, merged, &error), DOPPEL_OK);
    same_files(merged, whole);
    assert_int_equal(doppel_df_merge((const char *const[]){whole}, 1, merged, &error), DOPPEL_OK);
    same_files(merged, whole);
    /* Into one of its own parts. */
    assert_int_equal(doppel_df_merge((const char *const[]){second, first}, 2, first, &error), DOPPEL_OK);
    same_files(first, whole);
}

static void unlike_tables_are_not_merged(void **state) {
    const char *pages = in(state, "pages"), *words = in(state, "words"), *merged = in(state, "merged");
    make_table(pages, 0, 5, 5);
    doppel_df_builder *builder = builder_open("article", 0, NULL);
    add_documents(builder, 0, 5, 5);
    save(builder, words, 0);
    doppel_error error;
    assert_int_equal(doppel_df_merge((const char *const[]){pages, words}, 2, merged, &error), DOPPEL_ERROR_USAGE);
    assert_string_equal(error.file, words);
    assert_non_null(strstr(error.message, "words=1:hash=fast:first=5000"));
    assert_non_null(strstr(error.message, "words=5:hash=fast"));
    assert_int_equal(doppel_df_merge(NULL, 0, merged, &error), DOPPEL_ERROR_USAGE);
    assert_int_equal(doppel_df_merge((const char *const[]){pages, "/nowhere/table"}, 2, merged, &error),
                     DOPPEL_ERROR_IO);
    assert_int_equal(entries(*state, false), 2);
}

/* ---- files that are not tables ---- */

static void every_altered_byte_is_noticed(void **state) {
    const char *path = in(state, "table");
    make_table(path, 0, 3, 5);
    dp_buffer bytes = slurp(path);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] ^= (char)(1 << i % 8);
        spit(path, bytes.data, bytes.size);
        refused(path, DOPPEL_ERROR_STORE, "");
        bytes.data[i] ^= (char)(1 << i % 8);
    }
    bytes.data[bytes.size - 30] ^= 1;
    spit(path, bytes.data, bytes.size);
    refused(path, DOPPEL_ERROR_STORE, "altered");
    dp_buffer_free(&bytes);
}

static void a_table_that_is_cut_short_or_too_long(void **state) {
    const char *path = in(state, "table");
    make_table(path, 0, 3, 5);
    dp_buffer bytes = slurp(path);
    for (size_t length = 0; length < bytes.size; length++) {
        spit(path, bytes.data, length);
        refused(path, DOPPEL_ERROR_STORE, length < sizeof(dp_df_header) ? "is not a document-frequency table" : "cut");
    }
    assert_true(dp_buffer_add(&bytes, "\0\0\0\0\0\0\0\0", 8));
    spit(path, bytes.data, bytes.size);
    refused(path, DOPPEL_ERROR_STORE, "too long");
    dp_buffer_free(&bytes);
}

static void what_is_no_table_at_all(void **state) {
    const char *path = in(state, "text");
    refused(path, DOPPEL_ERROR_IO, "No such file or directory");
    char text[200];
    memset(text, 'x', sizeof text);
    spit(path, text, sizeof text);
    refused(path, DOPPEL_ERROR_STORE, "is not a document-frequency table");
    refused(*state, DOPPEL_ERROR_STORE, "is not a document-frequency table");
}

/* A table with the right checksum, changed by `change`. */
static void refused_with_checksum(const char *path, void (*change)(dp_df_header *header, uint64_t *hashes),
                                  const char *reason) {
    dp_buffer bytes = slurp(path);
    dp_df_header header;
    memcpy(&header, bytes.data, sizeof header);
    uint64_t hashes[5], *at = (void *)(bytes.data + sizeof header + dp_df_padded(header.recipe_length));
    memcpy(hashes, at, sizeof hashes);
    change(&header, hashes);
    memcpy(at, hashes, sizeof hashes);
    memcpy(bytes.data, &header, sizeof header);
    assert_true(dp_df_checksum((const uint8_t *)bytes.data, bytes.size, &header.checksum));
    memcpy(bytes.data, &header, sizeof header);
    spit(path, bytes.data, bytes.size);
    refused(path, DOPPEL_ERROR_STORE, reason);
    dp_buffer_free(&bytes);
}

static void swap_two(dp_df_header *header, uint64_t *hashes) {
    (void)header;
    uint64_t third = hashes[2];
    hashes[2] = hashes[3];
    hashes[3] = third;
}

static void repeat_one(dp_df_header *header, uint64_t *hashes) {
    (void)header;
    hashes[4] = hashes[3];
}

static void next_version(dp_df_header *header, uint64_t *hashes) {
    (void)hashes;
    header->version++;
}

static void too_many(dp_df_header *header, uint64_t *hashes) {
    (void)hashes;
    header->features = UINT64_MAX;
}

static void a_long_recipe(dp_df_header *header, uint64_t *hashes) {
    (void)hashes;
    header->recipe_length = UINT32_MAX;
}

static void a_checksum_does_not_make_a_table(void **state) {
    static const struct {
        void (*change)(dp_df_header *header, uint64_t *hashes);
        const char *reason;
    } cases[] = {{swap_two, "not in order at feature 4"},
                 {repeat_one, "not in order at feature 5"},
                 {next_version, "version 2"},
                 {too_many, "cut short"},
                 {a_long_recipe, "cut short"}};
    const char *path = in(state, "table");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_table(path, 0, 3, 5);
        refused_with_checksum(path, cases[i].change, cases[i].reason);
    }
}

/* ---- files that cannot be written ---- */

static void cannot_save(doppel_df_builder *builder, const char *path, const char *reason) {
    doppel_error error;
    assert_int_equal(doppel_df_builder_save(builder, path, 0, &error), DOPPEL_ERROR_IO);
    assert_string_equal(error.file, path);
    if (!strstr(error.message, reason)) {
        print_error("`%s` lacks `%s`\n", error.message, reason);
        fail();
    }
}

static void a_path_that_cannot_be_written(void **state) {
    doppel_df_builder *builder = builder_open("page", 0, NULL);
    add_documents(builder, 0, 5, 5);
    cannot_save(builder, in(state, "missing/table"), "/missing does not exist");
    cannot_save(builder, "/proc/table", "");
    /* A folder stands there: the table is written, but cannot take its place. */
    const char *folder = in(state, "folder");
    assert_int_equal(mkdir(folder, 0700), 0);
    cannot_save(builder, folder, "directory");
    assert_int_equal(entries(*state, false), 1);
    assert_int_equal(entries(folder, false), 0);
    doppel_df_builder_free(builder);
}

static void a_full_disk_leaves_no_part_of_a_table(void **state) {
    const char *path = in(state, "table"), *old = in(state, "old");
    make_table(path, 0, 9, 9);
    make_table(old, 0, 9, 9);
    doppel_df_builder *builder = builder_open("page", 0, NULL);
    add_documents(builder, 0, 10, 3000);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t most = 0; most < 36000; most += 3999) {
        limit_files(most);
        cannot_save(builder, path, "File too large");
        limit_files(RLIM_INFINITY);
        same_files(path, old);
        assert_int_equal(entries(*state, false), 2);
    }
    assert_int_equal(doppel_df_builder_save(builder, path, 0, NULL), DOPPEL_OK);
    doppel_df *df = open_table(path);
    assert_int_equal(doppel_df_features(df), 3000);
    doppel_df_close(df);
    doppel_df_builder_free(builder);
}

static void a_full_disk_while_little_memory_is_used(void **state) {
    doppel_df_builder *builder = builder_open("page", 1, *state);
    uint64_t set[5000];
    for (size_t i = 0; i < 5000; i++)
        set[i] = feature(i);
    doppel_error error;
    signal(SIGXFSZ, SIG_IGN);
    limit_files(1000);
    assert_int_equal(doppel_df_builder_add(builder, set, 5000, &error), DOPPEL_ERROR_IO);
    limit_files(RLIM_INFINITY);
    doppel_df_builder_free(builder);
    assert_int_equal(entries(*state, false), 0);
}

/* ---- recipes with tables ---- */

static doppel_status parse_with(const char *text, const doppel_df *df, doppel_recipe **recipe, doppel_error *error) {
    const doppel_recipe_parts parts = {.size = sizeof parts, .df = df};
    return doppel_recipe_parse(text, &parts, recipe, error);
}

static void a_recipe_names_its_table(void **state) {
    const char *path = in(state, "table");
    make_table(path, 0, 9, 9);
    doppel_df *df = open_table(path);
    doppel_recipe *recipe;
    doppel_error error;
    char want[100];
    assert_int_equal(strlen(doppel_df_digest(df)), 16);
    snprintf(want, sizeof want, "simhash64:words=5:hash=fast:weight=tfidf:df=%s", doppel_df_digest(df));
    assert_int_equal(parse_with("simhash64:weight=tfidf", df, &recipe, &error), DOPPEL_OK);
    assert_string_equal(doppel_recipe_text(recipe), want);
    doppel_recipe_free(recipe);
    assert_int_equal(parse_with(want, df, &recipe, &error), DOPPEL_OK);
    doppel_recipe_free(recipe);
    char *last = want + strlen(want) - 1;
    *last = *last == '0' ? '1' : '0';
    assert_int_equal(parse_with(want, df, &recipe, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, doppel_df_digest(df)));
    assert_int_equal(parse_with("simhash64:words=4:weight=tfidf", df, &recipe, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "words=5:hash=fast"));
    assert_non_null(strstr(error.message, "words=4:hash=fast"));
    doppel_df_close(df);
}

static void a_table_of_another_unicode_version_warns_with_both(void **state) {
    const char *path = in(state, "table");
    doppel_df_builder *builder = builder_open("page", 0, NULL);
    add(builder, (const uint64_t[]){5, 9}, 2);
    save(builder, path, 0);
    dp_buffer bytes = slurp(path);
    dp_df_header header;
    memcpy(&header, bytes.data, sizeof header);
    for (int old = 0; old < 2; old++) {
        if (old)
            snprintf(header.unicode, sizeof header.unicode, "9.1.0");
        memcpy(bytes.data, &header, sizeof header);
        assert_true(dp_df_checksum((const uint8_t *)bytes.data, bytes.size, &header.checksum));
        memcpy(bytes.data, &header, sizeof header);
        spit(path, bytes.data, bytes.size);
        doppel_df *df = open_table(path);
        doppel_recipe *recipe;
        doppel_error error;
        assert_int_equal(parse_with("simhash64:weight=tfidf", df, &recipe, &error), DOPPEL_OK);
        const char *warning = doppel_recipe_warning(recipe);
        assert_true(old ? warning && strstr(warning, "9.1.0") && strstr(warning, doppel_unicode_version()) : !warning);
        doppel_recipe_free(recipe);
        doppel_df_close(df);
    }
    dp_buffer_free(&bytes);
}

static void the_file_is_as_the_page_says(void **state) {
    const char *path = in(state, "table");
    doppel_df_builder *builder = builder_open("simhash64:chars=3:hash=xxh3:space=drop:weight=set:minhash=4", 0, NULL);
    add(builder, (const uint64_t[]){0x1122334455667788, 5, 9}, 3);
    add(builder, (const uint64_t[]){9}, 1);
    save(builder, path, 0);
    dp_buffer bytes = slurp(path);
    static const char want[] = "DOPPELDF\1\0\0\0\34\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0";
    static const char rest[] = "15.0.0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0chars=3:hash=xxh3:space=drop\0\0\0\0"
                               "\5\0\0\0\0\0\0\0\11\0\0\0\0\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11"
                               "\1\0\0\0\2\0\0\0\1\0\0\0\0\0\0\0";
    assert_int_equal(bytes.size, 40 + sizeof rest - 1);
    assert_memory_equal(bytes.data, want, 32);
    assert_memory_equal(bytes.data + 40, rest, sizeof rest - 1);
    uint64_t checksum = dp_load64(bytes.data + 32), sum;
    memset(bytes.data + 32, 0, 8);
    assert_int_equal(doppel_hash("xxh3", (doppel_slice){bytes.data, bytes.size}, 0, &sum), DOPPEL_OK);
    assert_int_equal(checksum, sum);
    dp_buffer_free(&bytes);
}

static void close_and_free_take_null(void **state) {
    (void)state;
    doppel_df_close(NULL);
    doppel_df_builder_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(counts_are_those_of_the_documents),
        TEST(idf_is_the_logarithm_and_never_negative),
        TEST(a_table_of_nothing),
        TEST(rare_features_can_be_left_out),
        TEST(features_at_any_place_are_found),
        TEST(little_memory_gives_the_same_bytes),
        TEST(a_folder_for_little_memory_that_is_not_there),
        TEST(merged_tables_are_the_table_of_all),
        TEST(unlike_tables_are_not_merged),
        TEST(every_altered_byte_is_noticed),
        TEST(a_table_that_is_cut_short_or_too_long),
        TEST(what_is_no_table_at_all),
        TEST(a_checksum_does_not_make_a_table),
        TEST(a_path_that_cannot_be_written),
        TEST(a_full_disk_leaves_no_part_of_a_table),
        TEST(a_full_disk_while_little_memory_is_used),
        TEST(a_recipe_names_its_table),
        TEST(a_table_of_another_unicode_version_warns_with_both),
        TEST(the_file_is_as_the_page_says),
        TEST(close_and_free_take_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
