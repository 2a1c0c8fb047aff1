/* test_engine_batch.c - batches and checks beside other threads: what is acknowledged is there, whoever wrote it and
 * whatever takes its place. */
#include "files.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { ITEMS = 5000 }; /* more than are decided at a time */

/* Another add, between two parts of a batch, on a disk that is full. */
typedef struct meddling {
    doppel_engine *engine;
    size_t lines;
    bool done, refused;
} meddling;

static doppel_item item_of(char id[16], size_t number, uint64_t *fingerprint) {
    snprintf(id, 16, "n%zu", number);
    *fingerprint = (number + 1) * 0x9E3779B97F4A7C15u;
    doppel_item item = {.size = sizeof item, .fingerprint = fingerprint};
    item.document = (doppel_document){.id = id, .id_length = strlen(id)};
    return item;
}

static void add_on_full_disk(doppel_log_level level, const char *line, void *user) {
    meddling *m = user;
    char id[16];
    uint64_t fingerprint;
    if (level != DOPPEL_LOG_INFO || !strstr(line, "ADD_SUCCESS") || ++m->lines != 4096 || m->done)
        return;
    m->done = true;
    doppel_item item = item_of(id, ITEMS, &fingerprint);
    doppel_verdict verdict = {0};
    limit_files(4096);
    m->refused = doppel_engine_add(m->engine, &item, &verdict, NULL) != DOPPEL_OK;
    limit_files(RLIM_INFINITY);
    doppel_verdict_free(&verdict);
}

static void what_another_could_not_write_is_not_acknowledged(void **state) {
    meddling m = {0};
    const doppel_engine_options options = {
        .size = sizeof options, .preset = "crawl", .log = add_on_full_disk, .log_level = DOPPEL_LOG_INFO, .user = &m};
    static char ids[ITEMS][16];
    static uint64_t fingerprints[ITEMS];
    static doppel_item items[ITEMS];
    static doppel_verdict verdicts[ITEMS];
    static doppel_status status[ITEMS];
    doppel_stored_list list = {0};
    doppel_error error = {0};
    signal(SIGXFSZ, SIG_IGN);
    if (doppel_engine_open(*state, &options, &m.engine, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = item_of(ids[i], i, &fingerprints[i]);
    doppel_status whole = doppel_engine_add_batch(m.engine, items, ITEMS, verdicts, status, &error);
    assert_true(m.refused);
    for (size_t i = 0; i < ITEMS; i++) {
        assert_int_equal(doppel_engine_get(m.engine, ids[i], strlen(ids[i]), &list, NULL), DOPPEL_OK);
        assert_true(list.count == 1 || status[i] != DOPPEL_OK);
        doppel_verdict_free(&verdicts[i]);
    }
    assert_int_equal(whole, DOPPEL_ERROR_IO);
    assert_string_not_equal(error.message, "");
    /* The next one goes well. */
    assert_int_equal(doppel_engine_add_batch(m.engine, items, 10, verdicts, NULL, NULL), DOPPEL_OK);
    for (size_t i = 0; i < 10; i++)
        doppel_verdict_free(&verdicts[i]);
    doppel_stored_list_free(&list);
    doppel_engine_close(m.engine);
}

/* ---- replacing ---- */

#define URL "http://a.example/"

typedef struct looking {
    doppel_engine *engine;
    _Atomic bool end;
    size_t checks, missed;
} looking;

static doppel_item version_of(const char *id, uint64_t *fingerprint) {
    doppel_item item = {.size = sizeof item, .fingerprint = fingerprint};
    item.document = (doppel_document){.id = id, .id_length = strlen(id), .url = URL, .url_length = strlen(URL)};
    return item;
}

static void *look(void *user) {
    looking *l = user;
    uint64_t fingerprint = 1;
    doppel_item item = version_of("other", &fingerprint);
    doppel_verdict verdict = {0};
    doppel_stored_list list = {0};
    while (!atomic_load(&l->end)) {
        bool there = doppel_engine_check(l->engine, &item, &verdict, NULL) == DOPPEL_OK && verdict.is_duplicate;
        there = there && doppel_engine_get(l->engine, "a", 1, &list, NULL) == DOPPEL_OK && list.count == 1;
        l->missed += !there;
        l->checks++;
    }
    doppel_verdict_free(&verdict);
    doppel_stored_list_free(&list);
    return NULL;
}

/* One version after the other, each seen until the next is durable. */
static void replace_while_looking(const char *path) {
    const doppel_engine_options options = {.size = sizeof options, .preset = "crawl"};
    looking l = {0};
    doppel_verdict verdict = {0};
    pthread_t thread;
    assert_int_equal(doppel_engine_open(path, &options, &l.engine, NULL), DOPPEL_OK);
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t fingerprint = (i + 2) * 0x9E3779B97F4A7C15u;
        doppel_item item = version_of("a", &fingerprint);
        assert_int_equal(doppel_engine_add(l.engine, &item, &verdict, NULL), DOPPEL_OK);
        assert_int_equal(verdict.replaced, i > 0);
        if (!i)
            assert_int_equal(pthread_create(&thread, NULL, look, &l), 0);
    }
    atomic_store(&l.end, true);
    pthread_join(thread, NULL);
    assert_int_equal(l.missed, 0);
    doppel_verdict_free(&verdict);
    doppel_engine_close(l.engine);
}

static void what_is_replaced_is_always_there(void **state) {
    replace_while_looking(NULL);
    replace_while_looking(*state);
}

/* A removal that cannot be written has not happened. */
static void what_could_not_be_removed_is_there(void **state) {
    const doppel_engine_options options = {.size = sizeof options, .preset = "crawl"};
    doppel_engine *engine;
    doppel_verdict verdict = {0};
    uint64_t fingerprint = 7, other = ~fingerprint;
    doppel_item item = version_of("a", &fingerprint), next = version_of("a", &other);
    bool removed;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(doppel_engine_open(*state, &options, &engine, NULL), DOPPEL_OK);
    assert_int_equal(doppel_engine_add(engine, &item, &verdict, NULL), DOPPEL_OK);
    limit_files(4096);
    assert_int_equal(doppel_engine_remove(engine, "a", 1, &removed, NULL), DOPPEL_ERROR_IO);
    assert_int_equal(doppel_engine_add(engine, &next, &verdict, NULL), DOPPEL_ERROR_IO);
    limit_files(RLIM_INFINITY);
    assert_int_equal(doppel_engine_add(engine, &item, &verdict, NULL), DOPPEL_OK);
    assert_true(verdict.known);
    assert_int_equal(doppel_engine_remove(engine, "a", 1, &removed, NULL), DOPPEL_OK);
    assert_true(removed);
    assert_int_equal(doppel_engine_check(engine, &item, &verdict, NULL), DOPPEL_OK);
    assert_false(verdict.is_duplicate);
    doppel_verdict_free(&verdict);
    doppel_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_another_could_not_write_is_not_acknowledged, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_replaced_is_always_there, setup, teardown),
        cmocka_unit_test_setup_teardown(what_could_not_be_removed_is_there, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
