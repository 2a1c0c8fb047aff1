/* test_engine_floods.c - documents that are many of one kind: names that have one XXH3, and pages of one template. What
 * counts is how many parts of documents are read for one that is added, not the time that takes. */
#include "files.h"

#include "engine/internal.h"
#include "known/local.h"

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
    return atomic_load(&engine->counters.known.reads[part]);
}

static uint64_t parity_bytes(const doppel_engine *engine) {
    dp_directory_stats stats;
    dp_directory_get_stats(((dp_local *)engine->known)->directory, &stats);
    return stats.parity_bytes;
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
            *(urls ? &d->url.data : &d->id.data) = name.data;
            *(urls ? &d->url.length : &d->id.length) = name.length;
            d->text.data = texts[i];
            d->text.length = (size_t)snprintf(texts[i], sizeof texts[i], "word%llu of text%llu",
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
    item.document.url.data = name.data;
    item.document.url.length = name.length;
    doppel_verdict verdict = {0};
    assert_int_equal(doppel_engine_check(engine, &item, &verdict, NULL), DOPPEL_OK);
    assert_int_equal(verdict.is_duplicate, urls);
    doppel_verdict_free(&verdict);
    doppel_stored_list list = {0};
    assert_int_equal(doppel_engine_get(engine, name, &list, NULL), DOPPEL_OK);
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

/* ---- pages of one template ---- */

/* Words of a page that all have, and those of its own: of two pages half of the features are the same. */
enum { COMMON = 104, OWN = 48, WORD = 16 };
/* Every 20th page is an earlier one with two other words, and the page before it goes. */
enum { COPY_EVERY = 20 };

typedef struct page {
    char id[32], text[(COMMON + OWN) * WORD];
    doppel_item item;
} page;

static void make_page(page *p, uint64_t number) {
    bool copy = number % COPY_EVERY == COPY_EVERY - 1;
    uint64_t own = copy ? number - COPY_EVERY / 2 : number;
    size_t length = 0;
    for (unsigned i = 0; i < COMMON; i++)
        length += (size_t)snprintf(p->text + length, WORD, "frame%u ", i);
    for (unsigned i = 0; i < OWN; i++)
        length += (size_t)snprintf(p->text + length, WORD, "w%llux%u ",
                                   (unsigned long long)(copy && i < 2 ? number : own), i);
    p->item = (doppel_item){.size = sizeof p->item};
    p->item.document.id.data = p->id;
    p->item.document.id.length = (size_t)snprintf(p->id, sizeof p->id, "page-%llu", (unsigned long long)number);
    p->item.document.text.data = p->text;
    p->item.document.text.length = length;
    p->item.ttl = number % 7 ? 0 : 1000;
}

static uint64_t test_time;
static uint64_t time_of_test(void *user) {
    (void)user;
    return test_time;
}

/* Samples of nearly all features, so that few pages are at the threshold by chance; 0: whole sets. */
enum { WHOLE, SAMPLED = 144 };

static doppel_engine *open_sampled(const char *path, size_t above, uint64_t sample) {
    const doppel_engine_options options = {.size = sizeof options,
                                           .durability = DOPPEL_DURABLE_NONE,
                                           .now = time_of_test,
                                           .clock_settle = DOPPEL_CLOCK_TRUSTED,
                                           .sample = sample};
    doppel_engine *engine;
    assert_int_equal(doppel_engine_open(path, &options, &engine, NULL), DOPPEL_OK);
    engine->filter_above = above;
    return engine;
}

static doppel_engine *open_pages(const char *path, size_t above) {
    return open_sampled(path, above, WHOLE);
}

/* Adds a page and removes one now and then; the verdict as a line. */
static void add_page(doppel_engine *engine, uint64_t number, char line[200]) {
    static page p;
    doppel_verdict verdict = {0};
    doppel_error error = {0};
    make_page(&p, number);
    if (doppel_engine_add(engine, &p.item, &verdict, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    snprintf(line, 200, "%d %.17g %.*s", verdict.is_duplicate, verdict.evidence.similarity,
             (int)verdict.original_id.length, verdict.original_id.data ? verdict.original_id.data : "");
    doppel_verdict_free(&verdict);
    if (number % COPY_EVERY == 0 && number) {
        bool removed;
        snprintf(p.id, sizeof p.id, "page-%llu", (unsigned long long)number - 5);
        assert_int_equal(doppel_engine_remove(engine, doppel_slice_of(p.id), &removed, NULL), DOPPEL_OK);
        assert_true(removed);
    }
}

/* Adds pages to an engine, and to others that have to say the same. */
static double add_pages(doppel_engine *const *engines, size_t count, uint64_t from, uint64_t to) {
    uint64_t before = reads_of(engines[0], DP_PART_SET), copies = 0;
    char line[200], other[200];
    for (uint64_t number = from; number < to; number++) {
        test_time += number % 4 == 0;
        add_page(engines[0], number, line);
        copies += line[0] == '1';
        for (size_t i = 1; i < count; i++) {
            add_page(engines[i], number, other);
            assert_string_equal(line, other);
        }
    }
    assert_true(copies >= (to - from) / COPY_EVERY / 2);
    return (double)(reads_of(engines[0], DP_PART_SET) - before) / (double)(to - from);
}

/* With the same verdicts as without sifting, a page costs no more reads than few pages do. */
static void check_sifting(uint64_t sample) {
    test_time = 1000000;
    doppel_engine *engines[2] = {open_sampled(NULL, DP_FILTER_ABOVE, sample), open_sampled(NULL, SIZE_MAX, sample)};
    (void)add_pages(engines, 2, 0, 1500);
    uint64_t plain = reads_of(engines[1], DP_PART_SET);
    double each = add_pages(engines, 2, 1500, 2000);
    assert_true((double)(reads_of(engines[1], DP_PART_SET) - plain) / 500 > 100);
    assert_true(each < 5);
    for (uint64_t count = 2000; full_suite() && count < 20000; count += 3000)
        assert_true(add_pages(engines, 1, count, count + 3000) < 5);
    doppel_engine_close(engines[0]);
    doppel_engine_close(engines[1]);
}

static void pages_of_one_template_are_sifted(void **state) {
    (void)state;
    check_sifting(WHOLE);
}

static void samples_of_one_template_are_sifted(void **state) {
    (void)state;
    check_sifting(SAMPLED);
}

/* A process that comes later reads each set once more, and says the same. */
static void an_engine_that_opens_again_sifts(void **state) {
    const char *path = in(state, "index");
    test_time = 1000000;
    doppel_engine *engines[2] = {open_pages(path, DP_FILTER_ABOVE), open_pages(NULL, DP_FILTER_ABOVE)};
    (void)add_pages(engines, 2, 0, 1000);
    doppel_engine_close(engines[0]);
    engines[0] = open_pages(path, DP_FILTER_ABOVE);
    assert_true(500 * add_pages(engines, 2, 1000, 1500) < 1000 + 500 * 5);
    assert_true(add_pages(engines, 2, 1500, 2000) < 5);
    assert_int_equal(doppel_engine_compact(engines[0], NULL), DOPPEL_OK);
    assert_true(add_pages(engines, 2, 2000, 2200) < 5);
    doppel_engine_close(engines[0]);
    doppel_engine_close(engines[1]);
    entries(path, true);
}

/* Whatever is removed, or expires, leaves nothing behind. */
static void pages_that_go_leave_nothing(void **state) {
    (void)state;
    test_time = 1000000;
    doppel_engine *engine = open_pages(NULL, DP_FILTER_ABOVE);
    uint64_t empty = parity_bytes(engine), expired;
    (void)add_pages(&engine, 1, 0, 1000);
    uint64_t full = parity_bytes(engine);
    assert_true(full > empty + 500 * 64);
    for (uint64_t number = 0; number < 1000; number++) {
        char id[32];
        bool removed;
        snprintf(id, sizeof id, "page-%llu", (unsigned long long)number);
        if (number % 7)
            assert_int_equal(doppel_engine_remove(engine, doppel_slice_of(id), &removed, NULL), DOPPEL_OK);
    }
    test_time += 1000000;
    assert_int_equal(doppel_engine_expire(engine, &expired, NULL), DOPPEL_OK);
    assert_int_equal(engine->known->kind->flush(engine->known, NULL), DOPPEL_OK);
    if (parity_bytes(engine) > empty + 2 * 8 * (2000 / 32 + 1))
        fail_msg("%llu", (unsigned long long)parity_bytes(engine));
    doppel_engine_close(engine);
}

/* Documents that share bands with few others cost no memory. */
static void few_pages_of_a_template_keep_nothing(void **state) {
    (void)state;
    test_time = 1000000;
    doppel_engine *engine = open_pages(NULL, DP_FILTER_ABOVE);
    uint64_t empty = parity_bytes(engine);
    (void)add_pages(&engine, 1, 0, 60);
    assert_int_equal(parity_bytes(engine), empty);
    doppel_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_hashes_of_their_own),
        cmocka_unit_test_setup_teardown(ids_that_meet_in_xxh3_cost_nothing_more, setup, teardown),
        cmocka_unit_test_setup_teardown(urls_that_meet_in_xxh3_cost_nothing_more, setup, teardown),
        cmocka_unit_test(pages_of_one_template_are_sifted),
        cmocka_unit_test(samples_of_one_template_are_sifted),
        cmocka_unit_test_setup_teardown(an_engine_that_opens_again_sifts, setup, teardown),
        cmocka_unit_test(pages_that_go_leave_nothing),
        cmocka_unit_test(few_pages_of_a_template_keep_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
