/* test_engine_floods.c - documents that were made to be slow: names that have one XXH3, wherever an engine lives. What
 * counts is how many parts of documents are read for one that is added, not the time that takes. */
#include "files.h"

#include "engine/engine.h"

#include <stdio.h>
#include <xxhash.h>

/* ---- names ---- */

/* XXH3 of 129 to 240 bytes adds up products of 8 bytes, each mixed with 8 bytes of a secret that is in its source.
 * Bytes that are the secret's make a product of 0, whatever it is multiplied with: so the next 8 bytes are free. */
enum { NAME = 144 };

static doppel_slice crafted_name(char bytes[NAME], uint64_t number) {
    static const unsigned char secret[8] = {0xB8, 0xFE, 0x6C, 0x39, 0x23, 0xA4, 0x4B, 0xBE};
    memset(bytes, 'n', NAME);
    memcpy(bytes, secret, sizeof secret);
    memcpy(bytes + sizeof secret, &number, sizeof number);
    return (doppel_slice){bytes, NAME};
}

static uint64_t reads_of(const doppel_engine *engine, dp_part part) {
    return atomic_load(&engine->counters.reads[part]);
}

static doppel_engine *open_engine(const char *path, bool read_only) {
    const doppel_engine_options options = {.size = sizeof options,
                                           .near = DOPPEL_NEAR_SIMILARITY,
                                           .read_only = read_only,
                                           .durability = DOPPEL_DURABLE_BATCH};
    doppel_engine *engine;
    doppel_error error = {0};
    if (doppel_engine_open(path, &options, &engine, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return engine;
}

static void names_have_hashes_of_their_own(void **state) {
    (void)state;
    char first[NAME], other[NAME];
    const dp_names without = {.keyed = false};
    dp_names names, others;
    assert_int_equal(dp_names_create(&names, NULL), DOPPEL_OK);
    assert_int_equal(dp_names_create(&others, NULL), DOPPEL_OK);
    doppel_slice a = crafted_name(first, 1);
    for (uint64_t i = 2; i < 1000; i++) {
        doppel_slice b = crafted_name(other, i);
        assert_int_equal(dp_name_hash(&without, a), dp_name_hash(&without, b));
        assert_int_not_equal(dp_name_hash(&names, a), dp_name_hash(&names, b));
        assert_int_not_equal(dp_name_hash(&names, b), dp_name_hash(&others, b));
    }
}

enum { BATCH = 500 };

/* Adds documents with crafted ids, or URLs; gives how many records are read for each. */
static double add_crafted(doppel_engine *engine, bool urls, uint64_t from, uint64_t count) {
    static char names[BATCH][NAME], texts[BATCH][64];
    static doppel_item items[BATCH];
    static doppel_verdict verdicts[BATCH];
    uint64_t before = reads_of(engine, DP_PART_RECORD);
    for (uint64_t done = 0; done < count; done += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++) {
            uint64_t number = from + done + i;
            doppel_slice name = crafted_name(names[i], number);
            doppel_document *d = &items[i].document;
            items[i] = (doppel_item){.size = sizeof items[i]};
            *(urls ? &d->url : &d->id) = name.data;
            *(urls ? &d->url_length : &d->id_length) = name.length;
            d->text = texts[i];
            d->text_length = (size_t)snprintf(texts[i], sizeof texts[i], "word%llu of text%llu",
                                              (unsigned long long)number, (unsigned long long)number);
        }
        assert_int_equal(doppel_engine_add_batch(engine, items, BATCH, verdicts, NULL, NULL), DOPPEL_OK);
        for (size_t i = 0; i < BATCH; i++) {
            assert_false(verdicts[i].is_duplicate || verdicts[i].known || verdicts[i].replaced);
            doppel_verdict_free(&verdicts[i]);
        }
    }
    return (double)(reads_of(engine, DP_PART_RECORD) - before) / (double)count;
}

/* The URL is not one, so that it is its own canonical form. */
static void check_crafted(const char *path, bool urls) {
    uint64_t count = full_suite() ? 20000 : 2000;
    char bytes[NAME];
    doppel_engine *engine = open_engine(path, false);
    assert_true(add_crafted(engine, urls, 1, count) < 1);
    if (path) {
        doppel_engine_close(engine);
        engine = open_engine(path, false);
        assert_true(add_crafted(engine, urls, count + 1, BATCH) < 1);
    }
    doppel_item item = {.size = sizeof item};
    doppel_slice name = crafted_name(bytes, count / 2);
    item.document.url = name.data;
    item.document.url_length = name.length;
    doppel_verdict verdict = {0};
    assert_int_equal(doppel_engine_check(engine, &item, &verdict, NULL), DOPPEL_OK);
    assert_int_equal(verdict.is_duplicate, urls);
    doppel_verdict_free(&verdict);
    doppel_stored_list list = {0};
    assert_int_equal(doppel_engine_get(engine, name.data, name.length, &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 1);
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
}

static void ids_that_meet_in_xxh3_cost_nothing_more(void **state) {
    check_crafted(NULL, false);
    check_crafted(in(state, "index"), false);
    entries(in(state, "index"), true);
}

static void urls_that_meet_in_xxh3_cost_nothing_more(void **state) {
    check_crafted(NULL, true);
    check_crafted(in(state, "index"), true);
    entries(in(state, "index"), true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_hashes_of_their_own),
        cmocka_unit_test_setup_teardown(ids_that_meet_in_xxh3_cost_nothing_more, setup, teardown),
        cmocka_unit_test_setup_teardown(urls_that_meet_in_xxh3_cost_nothing_more, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
