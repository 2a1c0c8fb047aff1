/* test_store_lmdb.c - index folders in every state: new, half made, foreign, cut short, altered. */
#include "folders.h"

#include "store/lmdb.h"

#include <sys/resource.h>

#define INDEX_TEXT "doppel index\nformat 2\ngeneration 1\n"

/* ---- the states of a folder ---- */

static void a_folder_is_made_and_opened_again(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 20, 50);
    dp_buffer text = slurp(name_in(path, "doppel.index"));
    assert_int_equal(text.size, strlen(INDEX_TEXT));
    assert_memory_equal(text.data, INDEX_TEXT, text.size);
    dp_buffer_free(&text);
    assert_int_equal(entries(path, false), 5);
    dp_store *store = open_store(path, (dp_store_options){.settings = "other=1\n", .must_exist = true});
    assert_string_equal(dp_store_settings(store), "x=1\n");
    write_numbers(store, 21, 30, 50);
    dp_store_close(store);
    check_folder(path, 30, 50);
    verified_clean(path, 30);
}

static void what_is_not_an_index_is_refused(void **state) {
    const char *path = in(state, "index");
    OPEN_REFUSED(path, EXISTING, DOPPEL_ERROR_IO, "no such folder");
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_IO, "no such folder");
    OPEN_REFUSED(in(state, "no/index"), WRITING, DOPPEL_ERROR_IO, "there is no folder");
    spit(path, "x", 1);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "is not a folder");
    unlink(path);
    assert_int_equal(mkdir(path, 0777), 0);
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "is not an index; make one");
    spit(name_in(path, "letters.txt"), "x", 1);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "letters.txt");
    assert_int_equal(entries(path, false), 1);
}

static void what_doppel_index_says_counts(void **state) {
    const char *path = in(state, "index"), *index = name_in(path, "doppel.index");
    const char *bad[] = {"",
                         "hello",
                         "doppel index\n",
                         "doppel index\nformat 2\n",
                         "doppel index\nformat 2\ngeneration 0\n",
                         "doppel index\nformat 2\ngeneration 1\nand more\n"};
    make_folder(path, 3, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spit(index, bad[i], strlen(bad[i]));
        OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "damaged");
        OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "damaged");
    }
    spit(index, "doppel index\nformat 3\nwhatever\n", 31);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "format 3; this program reads formats 1 to 2");
    spit(index, "doppel index\nformat 0\nwhatever\n", 31);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "format 0");
    spit(index, "doppel index\nformat 1\ngeneration 1\n", 35);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "speaks of format 1, but the file has a secret");
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "speaks of format 1, but the file has a secret");
    spit(index, "doppel index\nformat 2\ngeneration 8\n", 35);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_IO, "No such file");
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_IO, "No such file");
    spit(index, INDEX_TEXT, strlen(INDEX_TEXT));
    check_folder(path, 3, 1);
}

static void a_file_that_is_not_lmdbs_is_refused(void **state) {
    const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
    make_folder(path, 3, 1);
    dp_buffer good = slurp(file), text = {0};
    for (int i = 0; i < 5000; i++)
        assert_true(dp_buffer_printf(&text, "not a database\n"));
    spit(file, text.data, text.size);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "not a file of LMDB");
    spit(file, "", 0);
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "not a file of LMDB");
    good.data[20] = good.data[4096 + 20] = 9;
    spit(file, good.data, good.size);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "version 9");
    good.data[20] = good.data[4096 + 20] = 1;
    spit(file, good.data, good.size);
    check_folder(path, 3, 1);
    dp_buffer_free(&good);
    dp_buffer_free(&text);
}

static void a_half_made_folder_is_made_anew(void **state) {
    for (size_t length = 0; length <= 8192; length += 1024) {
        const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
        make_folder(path, 0, 0);
        dp_buffer good = slurp(file);
        unlink(name_in(path, "doppel.index"));
        spit(file, good.data, length);
        spit(name_in(path, "doppel.index.77.tmp"), "doppel", 6);
        OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "is not an index; make one");
        make_folder(path, 4, 2);
        check_folder(path, 4, 2);
        assert_int_equal(entries(path, true), 5);
        dp_buffer_free(&good);
    }
    const char *path = in(state, "index");
    spit(name_in(path, "writer.lock"), "", 0);
    make_folder(path, 4, 2);
    check_folder(path, 4, 2);
}

static void note_warning(const char *message, void *user) {
    snprintf(user, 500, "%s", message);
}

/* What cannot be read may hold a document all the same: it is kept under another name, and the warning says so. */
static void a_file_without_doppel_index_is_never_deleted(void **state) {
    const char *path = in(state, "index");
    char warned[500] = "", file[400];
    snprintf(file, sizeof file, "%s/documents-1.mdb", path);
    dp_store_options options = {.settings = "x=1\n", .warn = note_warning, .user = warned};
    make_folder(path, 3, 1);
    dp_buffer good = slurp(file);
    assert_true(good.size < 65536);
    for (int times = 1; times <= 3; times++) {
        unlink(name_in(path, "doppel.index"));
        spit(file, good.data, good.size - 4096);
        *warned = 0;
        dp_store_close(open_store(path, options));
        const char *aside = times == 1   ? "documents-1.mdb.aside"
                            : times == 2 ? "documents-1.mdb.aside-2"
                                         : "documents-1.mdb.aside-3";
        assert_non_null(strstr(warned, aside));
        dp_buffer kept = slurp(name_in(path, aside));
        assert_int_equal(kept.size, good.size - 4096);
        assert_memory_equal(kept.data, good.data, kept.size);
        dp_buffer_free(&kept);
    }
    /* Nor does a later writer, or a compaction, clear it. */
    dp_store *store = open_store(path, options);
    write_numbers(store, 1, 5, 1);
    OK(dp_store_compact(store, keep_all, NULL, error));
    dp_store_close(store);
    check_folder(path, 5, 1);
    assert_int_equal(entries(path, false), 8);
    dp_buffer_free(&good);
}

/* More than a creation that was cut off can leave. */
static void a_large_file_without_doppel_index_is_left_alone(void **state) {
    const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
    make_folder(path, 100, 300);
    dp_buffer good = slurp(file);
    unlink(name_in(path, "doppel.index"));
    spit(file, good.data, good.size / 2);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "move that file away");
    good.data[20] = good.data[4096 + 20] = 9;
    spit(file, good.data, good.size);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "version 9");
    good.data[20] = good.data[4096 + 20] = 1;
    spit(file, good.data, good.size);
    dp_store_close(open_store(path, WRITING));
    check_folder(path, 100, 300);
    dp_buffer_free(&good);
}

/* A meta page that names an older commit hides a document: the file is longer than it says. */
static void a_commit_that_is_hidden_is_not_overwritten(void **state) {
    const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
    make_folder(path, 1, 1);
    dp_buffer good = slurp(file);
    unlink(name_in(path, "doppel.index"));
    assert_int_equal(dp_load64(good.data + 4096 + 144), 3);
    good.data[4096 + 144] = 1;
    spit(file, good.data, good.size);
    dp_store_close(open_store(path, WRITING));
    dp_buffer kept = slurp(name_in(path, "documents-1.mdb.aside"));
    assert_int_equal(kept.size, good.size);
    assert_memory_equal(kept.data, good.data, kept.size);
    dp_buffer_free(&kept);
    dp_buffer_free(&good);
}

/* Memory, permissions and the like say nothing about the file. */
static void open_with_little(int from, int to, const char *path) {
    dp_store *store;
    doppel_error error;
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    (void)from, (void)to;
    MUST(file && fscanf(file, "%llu", &pages) == 1);
    fclose(file);
    /* Less than the smallest map. */
    struct rlimit limit = {pages * 4096 + (48 << 20), RLIM_INFINITY};
    MUST(!setrlimit(RLIMIT_AS, &limit));
    MUST(dp_store_open(path, &WRITING, &store, &error) == DOPPEL_ERROR_MEMORY);
    MUST(strstr(error.message, "ulimit -v") != NULL);
}

static void open_without_files(int from, int to, const char *path) {
    dp_store *store;
    (void)from, (void)to;
    for (rlim_t files = 3; files < 12; files++) {
        struct rlimit limit = {files, 64};
        MUST(!setrlimit(RLIMIT_NOFILE, &limit));
        if (!dp_store_open(path, &WRITING, &store, NULL))
            dp_store_close(store);
    }
}

static void open_as_nobody(int from, int to, const char *path) {
    dp_store *store;
    (void)from, (void)to;
    MUST(!setgid(65534) && !setuid(65534));
    MUST(dp_store_open(path, &WRITING, &store, NULL) == DOPPEL_ERROR_IO);
}

static void what_is_in_the_way_deletes_nothing(void **state) {
    const char *path = in(state, "index");
    char file[400];
    snprintf(file, sizeof file, "%s/documents-1.mdb", path);
    void (*const ways[])(int, int, const char *) = {open_with_little, open_without_files, open_as_nobody};
    make_folder(path, 9, 3);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        /* Only root can become somebody else. */
        if (ways[i] == open_as_nobody && getuid())
            continue;
        unlink(name_in(path, "doppel.index"));
        if (ways[i] == open_as_nobody)
            assert_true(!chmod(*state, 0755) && !chmod(path, 0777) && !chmod(file, 0600) &&
                        !chmod(name_in(path, "writer.lock"), 0666));
        other process = start_other(ways[i], path);
        assert_int_equal(end_other(&process, 0), 0);
        assert_int_equal(access(name_in(path, "documents-1.mdb.aside"), F_OK), -1);
        dp_store_close(open_store(path, WRITING));
        check_folder(path, 9, 3);
    }
}

static void documents_are_not_forgotten_without_doppel_index(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 9, 3);
    unlink(name_in(path, "doppel.index"));
    dp_store_close(open_store(path, WRITING));
    check_folder(path, 9, 3);
    unlink(name_in(path, "doppel.index"));
    spit(name_in(path, "documents-2.mdb"), "", 0);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "several");
}

static void leftovers_are_cleared_by_the_writer(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 9, 3);
    const char *left[] = {"documents-2.mdb", "documents-2.mdb-lock", "documents-1.mdb.9.tmp", "doppel.index.9.tmp"};
    for (size_t i = 0; i < 4; i++)
        spit(name_in(path, left[i]), "x", 1);
    spit(name_in(path, "notes"), "x", 1);
    check_folder(path, 9, 3);
    assert_int_equal(entries(path, false), 10);
    dp_store_close(open_store(path, WRITING));
    assert_int_equal(entries(path, false), 6);
    check_folder(path, 9, 3);
}

/* ---- files that are cut, or altered ---- */

static void a_file_that_is_cut_short_is_refused(void **state) {
    const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
    make_folder(path, 30, 700);
    dp_buffer good = slurp(file);
    size_t refused = 0, tried = 0;
    for (size_t length = 0; length < good.size; length += length % 4096 ? 2595 : 1501, tried++) {
        dp_store *store;
        doppel_error error;
        findings f;
        doppel_verified verified;
        spit(file, good.data, length);
        doppel_status status = dp_store_open(path, &READING, &store, &error);
        assert_int_equal(verify_folder(path, &f, &verified), status);
        assert_int_equal(f.count, status ? 1 : 0);
        refused += status == DOPPEL_ERROR_STORE;
        assert_true(!status || strstr(error.message, "cut short") || strstr(error.message, "not a file of LMDB"));
        dp_store_close(store);
        dp_buffer_free(&f.text);
    }
    assert_true(refused + 8 > tried);
    spit(file, good.data, good.size);
    check_folder(path, 30, 700);
    dp_buffer_free(&good);
}

/* LMDB takes pages at the end of the file, gives them back in the same transaction and never writes them. */
static void a_file_may_lack_pages_that_are_free(void **state) {
    const char *path = in(state, "index");
    dp_store *store = open_store(path, WRITING);
    const dp_env *env = &dp_lmdb_of(store)->env;
    uint64_t seed = 3;
    size_t shorter = 0;
    for (uint64_t number = 0; number < 20000 && shorter < 5;) {
        parts all[8];
        dp_change changes[8];
        size_t count = 1 + random_below(&seed, 8);
        for (size_t i = 0; i < count; i++) {
            all[i] = make_parts(++number, 0, random_below(&seed, random_below(&seed, 4) ? 250 : 7500));
            changes[i] = all[i].change;
            changes[i].remove = number > 50 && random_below(&seed, 2) ? number - 1 - random_below(&seed, 40) : 0;
        }
        OK(dp_store_write(store, changes, count, AT(1), error));
        while (count)
            free_parts(&all[--count]);
        struct stat known;
        MDB_envinfo info;
        assert_int_equal(stat(env->path, &known), 0);
        assert_int_equal(mdb_env_info(env->env, &info), 0);
        if ((off_t)(info.me_last_pgno + 1) * 4096 <= known.st_size)
            continue;
        OK(dp_file_check(env->path, error));
        shorter++;
    }
    assert_true(shorter > 0);
    dp_store_close(store);
}

/* Where the bytes of a part stand in the file. */
static size_t find_part(const dp_buffer *file, const dp_buffer *part) {
    char *at = memmem(file->data, file->size, part->data, part->size);
    assert_non_null(at);
    return (size_t)(at - file->data);
}

static void note_damaged(uint64_t number, void *user) {
    *(uint64_t *)user = *(uint64_t *)user * 100 + number;
}

static doppel_status count_value(uint64_t number, doppel_slice bytes, void *user) {
    (void)number, (void)bytes, (void)user;
    return DOPPEL_OK;
}

static void an_altered_value_is_reported_and_the_others_are_fine(void **state) {
    const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
    make_folder(path, 9, 10);
    parts p = make_parts(5, 0, 10);
    dp_buffer good = slurp(file);
    for (int part = 0; part < DP_PARTS - 1; part++) {
        size_t at = find_part(&good, &p.bytes[part]) + 3;
        good.data[at] ^= 16;
        spit(file, good.data, good.size);
        good.data[at] ^= 16;
        dp_store *store = open_store(path, READING);
        dp_view *view = open_view(store);
        doppel_slice bytes;
        uint64_t damaged = 0;
        const char *names[] = {"the trace of number 5 is damaged", "the record of number 5", "the set of number 5"};
        OK(dp_view_begin(view, error));
        REFUSED(dp_view_get(view, (dp_part)part, 5, &bytes, error), DOPPEL_ERROR_STORE, names[part]);
        assert_null(bytes.data);
        check_number(view, 4, 0, 10);
        check_number(view, 6, 0, 10);
        dp_each each = {(dp_part)part, 0, UINT64_MAX, count_value, note_damaged, &damaged};
        OK(dp_view_each(view, &each, error));
        assert_int_equal(damaged, 5);
        dp_view_end(view);
        dp_view_free(view);
        dp_store_close(store);
        findings f;
        doppel_verified verified;
        assert_int_equal(verify_folder(path, &f, &verified), DOPPEL_ERROR_STORE);
        assert_int_equal(f.count, 1);
        assert_non_null(strstr(f.text.data, part == DP_PART_RECORD ? "number 5: its " : "number 5 (id id-5): its "));
        assert_int_equal(verified.documents, 8);
        assert_int_equal(verified.damaged, 1);
        dp_buffer_free(&f.text);
    }
    free_parts(&p);
    dp_buffer_free(&good);
}

static void verify_survives_any_page(void **state) {
    const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
    make_folder(path, 40, 300);
    dp_store *store = open_store(path, WRITING);
    for (uint64_t number = 41; number < 60; number++)
        write_one(store, make_parts(number, 7, 0));
    dp_store_close(store);
    dp_buffer good = slurp(file);
    uint64_t seed = 3;
    size_t clean = 0, pages = good.size / 4096;
    for (size_t page = 2; page < pages; page++) {
        findings f;
        doppel_verified verified;
        char *bytes = malloc(good.size);
        memcpy(bytes, good.data, good.size);
        bool all = random_below(&seed, 2);
        for (size_t i = 0; i < 4096; i++)
            if (all || !random_below(&seed, 100))
                bytes[page * 4096 + i] = (char)random_next(&seed);
        spit(file, bytes, good.size);
        doppel_status status = verify_folder(path, &f, &verified);
        assert_true(status == DOPPEL_OK || status == DOPPEL_ERROR_STORE);
        assert_int_equal(f.count > 0, status == DOPPEL_ERROR_STORE);
        clean += status == DOPPEL_OK;
        dp_buffer_free(&f.text);
        free(bytes);
    }
    /* Pages that are free may hold anything. */
    assert_true(clean < pages / 3);
    spit(file, good.data, good.size);
    findings f;
    doppel_verified verified;
    assert_int_equal(verify_folder(path, &f, &verified), DOPPEL_OK);
    assert_int_equal(verified.documents, 40);
    assert_int_equal(verified.copies, 19);
    dp_buffer_free(&f.text);
    dp_buffer_free(&good);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folders, teardown_folders)
    const struct CMUnitTest tests[] = {
        TEST(a_folder_is_made_and_opened_again),
        TEST(what_is_not_an_index_is_refused),
        TEST(what_doppel_index_says_counts),
        TEST(a_file_that_is_not_lmdbs_is_refused),
        TEST(a_half_made_folder_is_made_anew),
        TEST(a_file_without_doppel_index_is_never_deleted),
        TEST(a_large_file_without_doppel_index_is_left_alone),
        TEST(a_commit_that_is_hidden_is_not_overwritten),
        TEST(what_is_in_the_way_deletes_nothing),
        TEST(documents_are_not_forgotten_without_doppel_index),
        TEST(leftovers_are_cleared_by_the_writer),
        TEST(a_file_that_is_cut_short_is_refused),
        TEST(a_file_may_lack_pages_that_are_free),
        TEST(an_altered_value_is_reported_and_the_others_are_fine),
        TEST(verify_survives_any_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
