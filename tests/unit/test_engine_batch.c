/* test_engine_batch.c - batches beside other threads: what is acknowledged is there, whoever wrote it. */
#include "files.h"

#include <signal.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_another_could_not_write_is_not_acknowledged, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
