/* test_store_formats.c - a folder of format 1 becomes one of format 2 as a whole or not at all, and concurrent readers
 * continue. The folder is that of tests/cli/format1.sh, which shows that its answers are unchanged. */
#include "folders.h"

#include "engine/internal.h"
#include "known/local.h"

/* What the folder has: numbers 1 to 13, of which 9 are documents and copies. */
enum { LAST = 13, ALIVE = 9 };

static void make_format1(const char *path) {
    char command[600];
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(command, sizeof command, "gzip -dc tests/cli/format1.mdb.gz >%s/documents-1.mdb", path);
    assert_int_equal(system(command), 0);
    spit(name_in(path, "doppel.index"), "doppel index\nformat 1\ngeneration 1\n", 35);
}

static void is_of_format(const char *path, int format, int generation) {
    char text[64];
    snprintf(text, sizeof text, "doppel index\nformat %d\ngeneration %d\n", format, generation);
    dp_buffer found = slurp(name_in(path, "doppel.index"));
    assert_int_equal(found.size, strlen(text));
    assert_memory_equal(found.data, text, found.size);
    dp_buffer_free(&found);
}

static dp_moment moment_of(dp_store *store) {
    dp_moment moment;
    dp_view *view = open_view(store);
    OK(dp_view_begin(view, error));
    dp_view_moment(view, &moment);
    dp_view_end(view);
    dp_view_free(view);
    return moment;
}

/* ---- names ---- */

typedef struct naming {
    dp_view *view;
    dp_names names;
    uint64_t seen;
} naming;

static doppel_status check_trace(uint64_t number, doppel_slice bytes, void *user) {
    naming *n = user;
    dp_trace trace;
    dp_record record;
    doppel_slice part;
    assert_true(dp_trace_decode(bytes, &trace));
    if (trace.kind >= DP_TRACE_REMOVAL)
        return DOPPEL_OK;
    assert_int_equal(dp_view_get(n->view, DP_PART_RECORD, number, &part, NULL), DOPPEL_OK);
    assert_true(dp_record_decode(part, &record));
    assert_int_equal(trace.id_hash, dp_name_hash(&n->names, record.id));
    if (trace.url_hash)
        assert_int_equal(trace.url_hash, dp_name_hash(&n->names, record.canonical));
    n->seen++;
    return DOPPEL_OK;
}

/* Everything is there, hashed as the folder says. */
static void check_names(const char *path, bool keyed) {
    dp_store *store = open_store(path, READING);
    naming n = {.view = open_view(store)};
    dp_moment moment;
    OK(dp_view_begin(n.view, error));
    dp_view_moment(n.view, &moment);
    assert_int_equal(moment.last, LAST);
    assert_int_equal(moment.names.keyed, keyed);
    n.names = moment.names;
    const dp_each each = {.part = DP_PART_TRACE, .from = 1, .to = LAST, .value = check_trace, .user = &n};
    OK(dp_view_each(n.view, &each, error));
    assert_int_equal(n.seen, ALIVE);
    dp_view_end(n.view);
    dp_view_free(n.view);
    dp_store_close(store);
    verified_clean(path, ALIVE - 3);
}

static void a_folder_of_format_1_is_read_and_converted(void **state) {
    const char *path = in(state, "index");
    make_format1(path);
    check_names(path, false);
    is_of_format(path, 1, 1);
    dp_store *store = open_store(path, WRITING);
    assert_false(moment_of(store).names.keyed);
    OK(dp_store_compact(store, keep_all, NULL, error));
    dp_names names = moment_of(store).names;
    assert_true(names.keyed);
    OK(dp_store_compact(store, keep_all, NULL, error));
    assert_memory_equal(moment_of(store).names.secret, names.secret, sizeof names.secret);
    dp_store_close(store);
    is_of_format(path, 2, 3);
    check_names(path, true);
}

static void secrets_differ(void **state) {
    uint64_t seen[3];
    for (int i = 0; i < 3; i++) {
        const char *paths[3] = {in(state, "a"), in(state, "b"), NULL};
        dp_store *store = open_store(paths[i], WRITING);
        dp_names names = moment_of(store).names;
        assert_true(names.keyed && names.secret[0] != names.secret[1]);
        seen[i] = names.secret[0];
        dp_store_close(store);
    }
    assert_true(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2]);
}

/* ---- half way ---- */

static bool die_at(const dp_trace *trace, void *user) {
    if (trace->number == *(const uint64_t *)user)
        _exit(0);
    return true;
}

/* The process ends at one number after the other. */
static void a_conversion_that_is_killed_leaves_format_1(void **state) {
    const char *path = in(state, "index");
    make_format1(path);
    for (uint64_t number = 1; number <= 12; number += 3) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            dp_store *store = open_store(path, WRITING);
            doppel_status status = dp_store_compact(store, die_at, &number, NULL);
            _exit(status == DOPPEL_OK ? 1 : 2);
        }
        int ended;
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_int_equal(ended, 0);
        is_of_format(path, 1, 1);
        check_names(path, false);
    }
}

static void a_conversion_without_room_leaves_format_1(void **state) {
    const char *path = in(state, "index");
    make_format1(path);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        doppel_engine *engine;
        doppel_error error = {0};
        signal(SIGXFSZ, SIG_IGN);
        limit_files(32768);
        _exit(doppel_engine_open(path, NULL, &engine, &error) == DOPPEL_ERROR_IO ? 0 : 1);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    is_of_format(path, 1, 1);
    check_names(path, false);
    doppel_engine *engine;
    assert_int_equal(doppel_engine_open(path, NULL, &engine, NULL), DOPPEL_OK);
    doppel_engine_close(engine);
    check_names(path, true);
}

/* ---- who reads ---- */

static bool knows(doppel_engine *engine, const char *url) {
    doppel_verdict verdict = {0};
    doppel_item item = {.size = sizeof item, .document = {.url.data = url, .url.length = strlen(url)}};
    assert_int_equal(doppel_engine_check(engine, &item, &verdict, NULL), DOPPEL_OK);
    bool known = verdict.is_duplicate && verdict.evidence.same_url;
    doppel_verdict_free(&verdict);
    return known;
}

/* Reads until it sees the new format and what was added to it, then says so. */
static void read_on(int from, int to, const char *path) {
    const doppel_engine_options options = {.size = sizeof options, .read_only = true};
    doppel_engine *engine;
    char byte = 0;
    if (doppel_engine_open(path, &options, &engine, NULL) != DOPPEL_OK)
        _exit(1);
    for (bool found = false; !found;) {
        for (int i = 0; i < 100; i++)
            if (!knows(engine, "http://example.org/a") || knows(engine, "http://example.org/nobody"))
                _exit(2);
        found = knows(engine, "http://example.org/new") && ((dp_local *)engine->known)->names.keyed;
        if (write(to, &byte, 1) != 1)
            _exit(3);
    }
    byte = 1;
    if (write(to, &byte, 1) != 1 || read(from, &byte, 1) < 0)
        _exit(4);
    doppel_engine_close(engine);
}

static void a_reader_follows_from_format_1_to_2(void **state) {
    const char *path = in(state, "index");
    make_format1(path);
    other reader = start_other(read_on, path);
    char byte = 1;
    assert_int_equal(read(reader.from, &byte, 1), 1);
    assert_int_equal(byte, 0);
    doppel_engine *engine;
    assert_int_equal(doppel_engine_open(path, NULL, &engine, NULL), DOPPEL_OK);
    doppel_verdict verdict = {0};
    doppel_item item = {.size = sizeof item, .document = {.url.data = "http://example.org/new", .url.length = 22}};
    assert_int_equal(doppel_engine_add(engine, &item, &verdict, NULL), DOPPEL_OK);
    doppel_verdict_free(&verdict);
    doppel_engine_close(engine);
    while (!byte)
        assert_int_equal(read(reader.from, &byte, 1), 1);
    close(reader.from);
    close(reader.to);
    int ended;
    assert_int_equal(waitpid(reader.process, &ended, 0), reader.process);
    assert_int_equal(ended, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_of_format_1_is_read_and_converted, setup_folders, teardown_folders),
        cmocka_unit_test_setup_teardown(secrets_differ, setup_folders, teardown_folders),
        cmocka_unit_test_setup_teardown(a_conversion_that_is_killed_leaves_format_1, setup_folders, teardown_folders),
        cmocka_unit_test_setup_teardown(a_conversion_without_room_leaves_format_1, setup_folders, teardown_folders),
        cmocka_unit_test_setup_teardown(a_reader_follows_from_format_1_to_2, setup_folders, teardown_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
