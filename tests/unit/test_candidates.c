/* test_candidates.c - documents that may be near, in buckets, and who looks at which; what is connected. */
#include "batches.h"

enum { BANDS = 20, ROWS = 3 };

/* A batch to which rows can be added; documents are numbered below `documents`. */
static doppel_batch *plain_batch(size_t documents, size_t threads) {
    doppel_batch_options options = {
        .size = sizeof options, .method = DOPPEL_METHOD_MINHASH, .bands = BANDS, .rows = ROWS};
    doppel_batch *batch;
    assert_int_equal(doppel_batch_create(&options, &batch, NULL), DOPPEL_OK);
    batch->documents.count = documents;
    batch->settings.threads = threads;
    return batch;
}

static void add_row(doppel_batch *batch, uint32_t document, const uint32_t keys[BANDS]) {
    assert_int_equal(dp_key_rows_add(&batch->rows, document, keys, BANDS, NULL), DOPPEL_OK);
}

static dp_candidates find(doppel_batch *batch) {
    dp_candidates candidates = {0};
    assert_int_equal(dp_key_rows_flush(&batch->rows, BANDS, NULL), DOPPEL_OK);
    assert_int_equal(dp_candidates_find(batch, &candidates, NULL), DOPPEL_OK);
    return candidates;
}

static void end(doppel_batch *batch, dp_candidates *candidates) {
    dp_candidates_free(candidates);
    assert_null(candidates->member);
    doppel_batch_free(batch);
}

/* Rows beyond a block: those that are put together are found together, by every number of threads. */
static void rows_with_one_key_stand_together(void **state) {
    (void)state;
    for (size_t threads = 1; threads <= 7; threads += 3) {
        size_t rows = DP_ROW_BLOCK + 1000;
        doppel_batch *batch = plain_batch(2 * rows, threads);
        for (uint32_t d = 0; d < rows; d++) {
            uint32_t keys[BANDS];
            for (uint32_t b = 0; b < BANDS; b++)
                keys[b] = d;
            /* In band 3 the rows 5 and rows - 1 meet, in bands 4 and 9 three others. */
            keys[3] = d == rows - 1 ? 5 : d;
            keys[4] = keys[9] = d == 70 || d == DP_ROW_BLOCK ? 8 : d;
            add_row(batch, 2 * d, keys);
        }
        dp_candidates c = find(batch);
        assert_int_equal(c.count, 2);
        assert_int_equal(c.member_count, 5);
        size_t pair = c.start[1] == 2 ? 0 : 1;
        const uint32_t *two = c.member + c.start[pair], *three = c.member + c.start[1 - pair];
        assert_memory_equal(two, ((uint32_t[]){10, (uint32_t)(2 * (rows - 1))}), 8);
        assert_memory_equal(three, ((uint32_t[]){16, 140, 2 * DP_ROW_BLOCK}), 12);
        end(batch, &c);
    }
}

/* Bands in which documents 1 and 4, 1, 4 and 5, 1 and 4 again, 4 and 5, and 1, 4 and 5 again have one key. */
static void a_bucket_is_kept_once(void **state) {
    (void)state;
    static const uint8_t has[5][6] = {
        {0, 1, 0, 0, 1, 0}, {0, 1, 0, 0, 1, 1}, {0, 1, 0, 0, 1, 0}, {0, 0, 0, 0, 1, 1}, {0, 1, 0, 0, 1, 1}};
    doppel_batch *batch = plain_batch(6, 1);
    for (uint32_t d = 0; d < 6; d++) {
        uint32_t keys[BANDS];
        for (uint32_t b = 0; b < BANDS; b++)
            keys[b] = b < 5 && has[b][d] ? 1000 : d;
        add_row(batch, d, keys);
    }
    dp_candidates c = find(batch);
    assert_int_equal(c.count, 3);
    assert_int_equal(c.member_count, 7);
    assert_int_equal(c.start[0], 0);
    assert_int_equal(c.start[3], 7);
    assert_memory_equal(c.member, ((uint32_t[]){1, 4, 1, 4, 5, 4, 5}), 7 * sizeof(uint32_t));
    end(batch, &c);
}

static void a_document_looks_at_the_buckets_it_stands_in(void **state) {
    (void)state;
    enum { DOCUMENTS = 500 };
    doppel_batch *batch = plain_batch(DOCUMENTS, 3);
    uint64_t random = 1;
    for (uint32_t d = 0; d < DOCUMENTS; d++) {
        uint32_t keys[BANDS];
        for (uint32_t b = 0; b < BANDS; b++)
            keys[b] = (uint32_t)random_below(&random, 100);
        add_row(batch, d, keys);
    }
    dp_candidates c = find(batch);
    size_t looks = 0;
    for (uint32_t d = 0; d < DOCUMENTS; d++) {
        dp_bucket_list list = dp_buckets_of(&c, d);
        looks += list.count;
        for (size_t i = 0; i < list.count; i++) {
            uint32_t b = list.bucket[i];
            bool found = false;
            assert_true(!i || list.bucket[i - 1] < b);
            for (uint64_t m = c.start[b]; m < c.start[b + 1]; m++)
                found = found || c.member[m] == d;
            assert_true(found);
        }
    }
    assert_true(c.count > 1000);
    assert_int_equal(looks, c.member_count);
    end(batch, &c);
}

static void without_rows_there_are_no_buckets(void **state) {
    (void)state;
    for (size_t documents = 0; documents <= 3; documents += 3) {
        doppel_batch *batch = plain_batch(documents, 1);
        dp_candidates c = find(batch);
        assert_int_equal(c.count, 0);
        assert_int_equal(c.looked_start[documents], 0);
        end(batch, &c);
    }
}

/* Of ten documents 9 and 7, 7 and 3, 1 and 2, and 2 and 9 have a URL or a title in common. */
static void what_is_connected_is_one_group(void **state) {
    static const char *const more[10] = {
        [9] = ",\"url\":\"http://a.example/x\",\"title\":\"the second common title\"",
        [7] = ",\"url\":\"http://a.example/x\",\"title\":\"one shared headline\"",
        [3] = ",\"title\":\"one shared headline\"",
        [1] = ",\"url\":\"http://b.example/y\"",
        [2] = ",\"url\":\"http://b.example/y\",\"title\":\"the second common title\"",
    };
    dp_buffer file = {0};
    for (int i = 0; i < 10; i++) {
        char id[8];
        snprintf(id, sizeof id, "d%d", i);
        add_record(&file, id, id, more[i] ? more[i] : "");
    }
    const char *path = in(state, "connected.jsonl");
    save_records(&file, path);
    doppel_batch_options options = {.by = DOPPEL_BY_URL | DOPPEL_BY_TITLE, .link_any = true};
    doppel_batch *batch = read_batch(options, &path, 1, 0);
    decide(batch);
    for (uint64_t d = 0; d < 10; d++) {
        doppel_near near;
        doppel_batch_get(batch, d, &near);
        assert_int_equal(near.a, more[d] ? 1 : d);
    }
    doppel_batch_free(batch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rows_with_one_key_stand_together),
        TEST(a_bucket_is_kept_once),
        TEST(a_document_looks_at_the_buckets_it_stands_in),
        TEST(without_rows_there_are_no_buckets),
        TEST(what_is_connected_is_one_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
