/* test_candidates.c - documents that may be near, in buckets, which document looks at which; what is connected. */
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

/* ---- on threads, and in little memory ---- */

/* A key of a document in a band: its own, one that some share, or one that a tenth of all have. */
static uint32_t some_key(uint32_t document, uint32_t band) {
    uint64_t random = (uint64_t)document * BANDS + band + 1;
    size_t kind = random_below(&random, 20);
    if (kind < 2 && band < 4)
        return 0x80000000u | band;
    if (kind < 6)
        return (uint32_t)random_below(&random, 2000) * 2000003u;
    return document * 2654435761u;
}

static int compare_entries(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* The plain way: how many buckets of two or more the bands have, and a sum over their members by which two sets of
 * buckets can be told apart. */
typedef struct plain_buckets {
    dp_hashmap seen;
    uint64_t count, members, sum;
} plain_buckets;

static uint64_t sum_of(const uint32_t *member, size_t count) {
    uint64_t sum = count;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ member[i]) * 0x9E3779B97F4A7C15u + (sum >> 31);
    return sum | 1;
}

static void add_plain(plain_buckets *plain, const uint64_t *entry, size_t count) {
    uint32_t member[8192];
    assert_true(count <= 8192);
    for (size_t i = 0; i < count; i++)
        member[i] = (uint32_t)entry[i];
    uint64_t sum = sum_of(member, count), *known = dp_hashmap_add(&plain->seen, sum);
    if (*known)
        return;
    *known = 1;
    plain->count++;
    plain->members += count;
    plain->sum += sum;
}

static plain_buckets find_plainly(size_t rows) {
    plain_buckets plain = {0};
    uint64_t *entry = malloc(rows * sizeof *entry);
    for (uint32_t band = 0; band < BANDS; band++) {
        for (uint32_t d = 0; d < rows; d++)
            entry[d] = (uint64_t)some_key(d, band) << 32 | 3 * d;
        qsort(entry, rows, sizeof *entry, compare_entries);
        for (size_t from = 0, to; from < rows; from = to) {
            for (to = from + 1; to < rows && entry[to] >> 32 == entry[from] >> 32;)
                to++;
            if (to - from > 1)
                add_plain(&plain, entry + from, to - from);
        }
    }
    dp_hashmap_free(&plain.seen);
    free(entry);
    return plain;
}

static void check_buckets(const dp_candidates *c, const plain_buckets *plain) {
    uint64_t sum = 0;
    for (size_t b = 0; b < c->count; b++)
        sum += sum_of(c->member + c->start[b], (size_t)(c->start[b + 1] - c->start[b]));
    assert_int_equal(c->count, plain->count);
    assert_int_equal(c->member_count, plain->members);
    assert_int_equal(c->start[c->count], plain->members);
    assert_int_equal(sum, plain->sum);
}

static dp_candidates find_some(size_t rows, size_t threads, uint64_t memory, doppel_batch **batch) {
    *batch = plain_batch(3 * rows, threads);
    (*batch)->settings.options.memory = memory;
    for (uint32_t d = 0; d < rows; d++) {
        uint32_t keys[BANDS];
        for (uint32_t b = 0; b < BANDS; b++)
            keys[b] = some_key(d, b);
        add_row(*batch, 3 * d, keys);
    }
    return find(*batch);
}

/* Little memory cuts bands into slices. Numbers of buckets do not depend on it, nor on threads. */
static void buckets_are_those_of_the_plain_way(void **state) {
    (void)state;
    static const struct {
        size_t threads;
        uint64_t memory;
    } ways[] = {{16, 1 << 16}, {2, 0}, {3, 0}, {8, 0}, {16, 0}, {1, 1 << 20}, {3, 1}};
    size_t way_count = SMALLER > 1 ? 1 : sizeof ways / sizeof *ways;
    size_t rows = DP_ROW_BLOCK + 5000;
    doppel_batch *batch, *other;
    plain_buckets plain = find_plainly(rows);
    dp_candidates c = find_some(rows, 1, 0, &batch);
    check_buckets(&c, &plain);
    for (size_t w = 0; w < way_count; w++) {
        dp_candidates again = find_some(rows, ways[w].threads, ways[w].memory, &other);
        check_buckets(&again, &plain);
        assert_memory_equal(again.start, c.start, (c.count + 1) * sizeof *c.start);
        assert_memory_equal(again.member, c.member, c.member_count * sizeof *c.member);
        assert_memory_equal(again.looked_start, c.looked_start, (3 * rows + 1) * sizeof *c.looked_start);
        assert_memory_equal(again.looked, c.looked, c.member_count * sizeof *c.looked);
        end(other, &again);
    }
    end(batch, &c);
}

/* Texts in chains: each is near the one before it; titles and URLs connect some of them. */
static void save_chains(const char *path, size_t count) {
    dp_buffer file = {0};
    for (size_t i = 0; i < count; i++) {
        char id[24], text[200], more[160];
        size_t chain = i % 977 * 40, place = i / 977;
        int length = 0;
        for (size_t w = place / 3; w < place / 3 + 24; w++)
            length += snprintf(text + length, sizeof text - (size_t)length, "%zx ", (chain + w) * 37);
        snprintf(id, sizeof id, "d%zu", i);
        uint64_t title = (i % 3 ? i : i % 50) * 0x9E3779B97F4A7C15u;
        snprintf(more, sizeof more, ",\"url\":\"http://a.example/%zu\",\"title\":\"%016llx %016llx\"", i / 3,
                 (unsigned long long)title, (unsigned long long)(title * title));
        add_record(&file, id, text, more);
    }
    save_records(&file, path);
}

/* More documents than threads share in one piece. */
static void decisions_are_the_same_on_all_threads(void **state) {
    enum { DOCUMENTS = DP_PIECE + 3000 };
    const char *path = in(state, "chains.jsonl");
    save_chains(path, DOCUMENTS);
    for (int way = SMALLER > 1 ? 3 : 0; way < 4; way++) {
        doppel_batch_options options = {.similarity = 0.7,
                                        .by = DOPPEL_BY_CONTENT | (way & 1 ? DOPPEL_BY_URL | DOPPEL_BY_TITLE : 0U),
                                        .link_any = way & 2,
                                        .keep = way == 1   ? "longest"
                                                : way == 2 ? "last"
                                                           : NULL};
        doppel_input_options input = {.size = sizeof input, .threads = 1};
        options.input = &input;
        doppel_batch *one = read_batch(options, &path, 1, 0);
        decide(one);
        for (int threads = 2; threads <= 16; threads += SMALLER > 1 ? 15 : 7) {
            input.threads = threads;
            doppel_batch *several = read_batch(options, &path, 1, 0);
            decide(several);
            assert_int_equal(several->stats.kept, one->stats.kept);
            assert_int_equal(several->stats.groups, one->stats.groups);
            assert_memory_equal(several->decisions.original, one->decisions.original, DOCUMENTS * 4);
            assert_memory_equal(several->decisions.similarity, one->decisions.similarity, DOCUMENTS * 4);
            assert_memory_equal(several->decisions.reason, one->decisions.reason, DOCUMENTS);
            doppel_batch_free(several);
        }
        assert_true(one->stats.groups > (way == 3 ? 0 : 500));
        doppel_batch_free(one);
    }
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
        TEST(buckets_are_those_of_the_plain_way),
        TEST(decisions_are_the_same_on_all_threads),
        TEST(without_rows_there_are_no_buckets),
        TEST(what_is_connected_is_one_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
