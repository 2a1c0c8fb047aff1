/* test_batch.c - a batch as its callers see it: what adds up, what makes no difference, what is refused. */
#include "batches.h"

#include "doppel.h"

/* ---- small corpora ---- */

static void nothing_and_one_document(void **state) {
    const char *path = in(state, "a.jsonl");
    dp_buffer file = {0};
    for (int count = 0; count < 2; count++) {
        for (int method = DOPPEL_METHOD_AUTO; method <= DOPPEL_METHOD_EXACT; method++) {
            doppel_batch_options options = {.method = (doppel_method)method, .by = 7, .keep = "newest:date"};
            file.size = 0;
            if (count)
                add_record(&file, "one", "a document of more than five words", ",\"url\":\"http://a/b\"");
            spit(path, file.data ? file.data : "", file.size);
            check_decisions(options, path, "");
            options.link_any = true;
            check_decisions(options, path, "");
            doppel_batch *batch = read_batch(options, &path, 1, 0);
            dp_buffer lines = pair_lines(batch, false);
            assert_string_equal(lines.data, "");
            dp_buffer_free(&lines);
            doppel_batch_free(batch);
        }
    }
    dp_buffer_free(&file);
}

static void all_identical_and_none_alike(void **state) {
    const char *same = in(state, "same.jsonl"), *other = in(state, "other.jsonl");
    dp_buffer a = {0}, b = {0}, text = {0};
    uint64_t random = 1;
    for (int i = 0; i < 300; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        text.size = 0;
        add_words(&text, &random, 20);
        assert_true(dp_buffer_add(&text, "", 1));
        add_record(&a, id, "The same words, always.", "");
        add_record(&b, id, text.data, "");
    }
    save_records(&a, same);
    save_records(&b, other);
    for (int method = DOPPEL_METHOD_AUTO; method <= DOPPEL_METHOD_EXACT; method++) {
        doppel_batch_options options = {.method = (doppel_method)method, .min_words = 4};
        doppel_batch_stats stats;
        doppel_batch *batch = read_batch(options, &same, 1, 0);
        decide(batch);
        doppel_batch_get_stats(batch, &stats);
        assert_int_equal(stats.kept, 1);
        assert_int_equal(stats.groups, 1);
        assert_int_equal(stats.copies, 299);
        assert_int_equal(stats.verified, 0); /* the same words are never compared */
        doppel_batch_free(batch);
        batch = read_batch(options, &other, 1, 0);
        decide(batch);
        doppel_batch_get_stats(batch, &stats);
        assert_int_equal(stats.kept, 300);
        assert_int_equal(stats.groups, 0);
        doppel_batch_free(batch);
    }
    dp_buffer_free(&text);
}

static void few_words_and_none(void **state) {
    const char *path = in(state, "a.jsonl");
    dp_buffer file = {0};
    add_record(&file, "none", "", "");
    add_record(&file, "none2", "!!!", "");
    add_record(&file, "short", "three short words", "");
    add_record(&file, "short2", "Three short words.", "");
    add_record(&file, "short3", "three short word", "");
    save_records(&file, path);
    check_decisions((doppel_batch_options){.similarity = 0.1}, path, "short2 short content_hash 1.0000\n");
    check_decisions((doppel_batch_options){.method = DOPPEL_METHOD_SIMHASH, .distance = 64}, path,
                    "short2 short content_hash 1.0000\n");
}

/* ---- one batch ---- */

/* Counts what is written, and checks that originals stay. */
typedef struct written {
    const doppel_batch *batch;
    uint64_t kept, removed;
    dp_buffer text;
} written;

static doppel_status take_document(doppel_slice record, const doppel_near *near, void *user) {
    written *w = user;
    doppel_near original;
    assert_int_equal(near->b, w->kept + w->removed);
    doppel_batch_get(w->batch, near->a, &original);
    assert_int_equal(original.a, near->a);
    if (near->a != near->b) {
        w->removed++;
        return DOPPEL_OK;
    }
    w->kept++;
    assert_true(dp_buffer_add(&w->text, record.data, record.length) && dp_buffer_add(&w->text, "\n", 1));
    return DOPPEL_OK;
}

static written write_batch(doppel_batch *batch) {
    written w = {.batch = batch};
    doppel_error error = {0};
    if (doppel_batch_write(batch, take_document, &w, &error) != DOPPEL_OK)
        fail_msg("%s: %s", error.file, error.message);
    return w;
}

/* Kept and removed are all; originals stay; of what stays nothing goes. */
static void it_adds_up(void **state) {
    const char *path = in(state, "a.jsonl"), *out = in(state, "out.jsonl");
    save_mixture(path, 1000, 60);
    for (int i = 0; i < 8; i++) {
        doppel_batch_options options = {.method = (doppel_method)(i / 2),
                                        .link_any = i % 2,
                                        .keep = i % 2 ? "longest" : NULL,
                                        .similarity = i / 4 ? 0.5 : 0};
        doppel_batch_stats stats;
        doppel_batch *batch = read_batch(options, &path, 1, 0);
        decide(batch);
        written w = write_batch(batch);
        doppel_batch_get_stats(batch, &stats);
        assert_int_equal(stats.documents, 1000);
        assert_int_equal(w.kept + w.removed, 1000);
        assert_int_equal(w.kept, stats.kept);
        assert_true(w.removed > 200);
        spit(out, w.text.data, w.text.size);
        doppel_batch_free(batch);
        check_decisions(options, out, "");
        dp_buffer_free(&w.text);
    }
}

/* Deciding, pairs and deciding again: each is as if it were the only one. */
static void it_can_be_asked_again(void **state) {
    const char *path = in(state, "a.jsonl");
    save_mixture(path, 500, 40);
    doppel_batch *batch = read_batch((doppel_batch_options){.similarity = 0.5}, &path, 1, 0);
    decide(batch);
    dp_buffer first = decisions(batch), pairs = pair_lines(batch, false);
    decide(batch);
    dp_buffer second = decisions(batch), again = pair_lines(batch, false);
    assert_string_equal(first.data, second.data);
    assert_string_equal(pairs.data, again.data);
    dp_buffer_free(&first);
    dp_buffer_free(&second);
    dp_buffer_free(&pairs);
    dp_buffer_free(&again);
    doppel_batch_free(batch);
}

static void calls_out_of_order_are_refused(void **state) {
    const char *path = in(state, "a.jsonl");
    doppel_error error = {0};
    save_mixture(path, 10, 10);
    doppel_batch *batch = read_batch((doppel_batch_options){.similarity = 0.5}, &path, 1, 0);
    assert_int_equal(doppel_batch_read(batch, &path, 1, true, NULL, &error), DOPPEL_ERROR_USAGE);
    decide(batch);
    assert_int_equal(doppel_batch_read(batch, &path, 1, false, NULL, &error), DOPPEL_ERROR_USAGE);
    assert_true(error.message[0]);
    doppel_batch_free(batch);
}

static void options_that_make_no_sense_are_refused(void **state) {
    (void)state;
    const doppel_batch_options bad[] = {
        {.similarity = 1.5},
        {.similarity = -0.5},
        {.similarity = NAN},
        {.method = DOPPEL_METHOD_SIMHASH, .distance = 65},
        {.method = DOPPEL_METHOD_MINHASH, .bands = 65},
        {.method = DOPPEL_METHOD_MINHASH, .bands = 40, .rows = 40},
        {.method = DOPPEL_METHOD_MINHASH, .rows = -1},
        {.boilerplate = 1},
        {.boilerplate = -1},
        {.boilerplate = 0.1, .method = DOPPEL_METHOD_SIMHASH},
        {.within = "host", .across = "host"},
        {.across = "host", .link_any = true},
        {.within = ""},
        {.keep = "best"},
        {.tmp = "/nonexistent/folder"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        doppel_batch_options options = bad[i];
        doppel_batch *batch;
        doppel_error error = {0};
        options.size = sizeof options;
        doppel_status status = doppel_batch_create(&options, &batch, &error);
        if (status != (bad[i].tmp ? DOPPEL_ERROR_IO : DOPPEL_ERROR_USAGE))
            fail_msg("options %zu: status %d", i, (int)status);
        assert_null(batch);
        assert_true(error.message[0]);
    }
}

static void changed_inputs_are_told(void **state) {
    const char *path = in(state, "a.jsonl");
    for (int more = 0; more < 3; more++) {
        doppel_error error = {0};
        written w = {0};
        save_mixture(path, 50, 20);
        doppel_batch *batch = read_batch((doppel_batch_options){.size = 0}, &path, 1, 0);
        decide(batch);
        w.batch = batch;
        save_mixture(path, more == 0 ? 40 : 60, more == 2 ? 21 : 20);
        assert_int_equal(doppel_batch_write(batch, take_document, &w, &error), DOPPEL_ERROR_INPUT);
        assert_non_null(strstr(error.message, "changed"));
        dp_buffer_free(&w.text);
        doppel_batch_free(batch);
    }
}

/* ---- what makes no difference ---- */

static void threads_and_files_make_no_difference(void **state) {
    const char *whole = in(state, "whole.jsonl");
    save_mixture(whole, 1500, 50);
    dp_buffer bytes = slurp(whole);
    const char *parts[3];
    size_t cut = 0;
    for (int i = 0; i < 3; i++) {
        size_t end = i == 2 ? bytes.size : bytes.size * (size_t)(i + 1) / 3;
        while (end < bytes.size && bytes.data[end - 1] != '\n')
            end++;
        char name[32];
        snprintf(name, sizeof name, "part%d.jsonl", i);
        parts[i] = in(state, name);
        spit(parts[i], bytes.data + cut, end - cut);
        cut = end;
    }
    dp_buffer_free(&bytes);
    for (int method = DOPPEL_METHOD_AUTO; method <= DOPPEL_METHOD_SIMHASH; method++) {
        dp_buffer expected = {0}, expected_pairs = {0};
        for (int i = 0; i < 6; i++) {
            static const int threads[] = {1, 2, 7};
            doppel_input_options input = {.size = sizeof input, .threads = threads[i % 3]};
            doppel_batch_options options = {.method = (doppel_method)method, .similarity = 0.6, .input = &input};
            doppel_batch *batch = read_batch(options, i < 3 ? &whole : parts, i < 3 ? 1 : 3, 0);
            decide(batch);
            dp_buffer lines = decisions(batch), pairs = pair_lines(batch, false);
            doppel_batch_free(batch);
            if (!i) {
                expected = lines;
                expected_pairs = pairs;
                continue;
            }
            assert_string_equal(lines.data, expected.data);
            assert_string_equal(pairs.data, expected_pairs.data);
            dp_buffer_free(&lines);
            dp_buffer_free(&pairs);
        }
        dp_buffer_free(&expected);
        dp_buffer_free(&expected_pairs);
    }
}

/* Known documents all stay, those among them that are alike too, and what is near one of them goes. */
static void known_documents_stay(void **state) {
    const char *paths[] = {in(state, "known.jsonl"), in(state, "new.jsonl")};
    dp_buffer known = {0}, new = {0};
    add_record(&known, "k1", "one two three four five six seven", "");
    add_record(&known, "k2", "one two three four five six seven", "");
    add_record(&known, "k3", "one two three four five six eight", "");
    add_record(&new, "k1", "something else that nobody has ever said before", "");
    add_record(&new, "n2", "One two three four five six eight!", "");
    add_record(&new, "n3", "one two three four five six seven", "");
    save_records(&known, paths[0]);
    save_records(&new, paths[1]);
    doppel_batch *batch =
        read_batch((doppel_batch_options){.similarity = 0.3, .min_words = 5, .keep = "last"}, paths, 2, 1);
    decide(batch);
    dp_buffer lines = decisions(batch);
    assert_string_equal(lines.data, "n2 k3 content_hash 1.0000\nn3 k1 content_hash 1.0000\n");
    dp_buffer_free(&lines);
    lines = pair_lines(batch, false);
    /* 3 shingles each, 2 of 4 in common; none of the pairs is of two known ones */
    assert_string_equal(lines.data, "0 4 19 0.5000\n0 5 0 1.0000\n1 4 19 0.5000\n1 5 0 1.0000\n2 4 0 1.0000\n"
                                    "2 5 19 0.5000\n4 5 19 0.5000\n");
    dp_buffer_free(&lines);
    doppel_batch_free(batch);
}

/* ---- many of one kind ---- */

/* Identical, empty, and near-identical documents, and those that share a template: each costs a look or two, which is
 * how a million of them take seconds. */
static void many_of_one_kind_cost_little(void **state) {
    enum { MANY = 4000 };
    const char *path = in(state, "a.jsonl");
    for (int kind = 0; kind < 3; kind++)
        for (int link = 0; link < 2; link++) {
            dp_buffer file = {0}, text = {0};
            uint64_t random = 1;
            add_words(&text, &random, 100);
            for (int i = 0; i < MANY; i++) {
                char id[16], whole[1200];
                snprintf(id, sizeof id, "%d", i);
                snprintf(whole, sizeof whole, "%.*s %d", (int)text.size, text.data, kind == 2 ? i : 0);
                add_record(&file, id, kind == 1 ? "" : whole, "");
            }
            save_records(&file, path);
            dp_buffer_free(&text);
            doppel_batch *batch = read_batch((doppel_batch_options){.link_any = link}, &path, 1, 0);
            doppel_batch_stats stats;
            decide(batch);
            doppel_batch_get_stats(batch, &stats);
            assert_int_equal(stats.kept, 1);
            assert_true(stats.candidates <= (kind == 2 ? MANY : 0));
            doppel_batch_free(batch);
        }
}

static doppel_status count_pairs(const doppel_near *pairs, size_t count, void *user) {
    uint64_t *counts = user;
    assert_true(count <= 300000);
    assert_true(pairs[0].a >= counts[1]);
    counts[0] += count;
    counts[1] = pairs[count - 1].a;
    return DOPPEL_OK;
}

/* All pairs of many copies: given in pieces, not held. */
static void pairs_of_copies_come_in_pieces(void **state) {
    enum { MANY = 1500 };
    const char *path = in(state, "a.jsonl");
    dp_buffer file = {0};
    for (int i = 0; i < MANY; i++)
        add_record(&file, "x", "the same words in every one of them", "");
    save_records(&file, path);
    for (int threads = 1; threads <= 7; threads += 3) {
        doppel_input_options input = {.size = sizeof input, .threads = threads};
        doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, &path, 1, 0);
        uint64_t counts[2] = {0, 0};
        assert_int_equal(doppel_batch_find_pairs(batch, false, count_pairs, counts, NULL), DOPPEL_OK);
        assert_int_equal(counts[0], (uint64_t)MANY * (MANY - 1) / 2);
        counts[0] = counts[1] = 0;
        assert_int_equal(doppel_batch_find_pairs(batch, true, count_pairs, counts, NULL), DOPPEL_OK);
        assert_int_equal(counts[0], MANY - 1);
        doppel_batch_free(batch);
    }
}

/* ---- stopping ---- */

static doppel_status refuse_pairs(const doppel_near *pairs, size_t count, void *user) {
    (void)pairs;
    (void)count;
    (void)user;
    return DOPPEL_ERROR_STORE;
}

static doppel_status refuse_document(doppel_slice record, const doppel_near *near, void *user) {
    (void)record;
    (void)near;
    (void)user;
    return DOPPEL_ERROR_STORE;
}

static void a_caller_can_stop_it(void **state) {
    const char *path = in(state, "a.jsonl");
    volatile int stop = 0;
    doppel_input_options input = {.size = sizeof input, .stop = &stop};
    save_mixture(path, 500, 20);
    doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, &path, 1, 0);
    assert_int_equal(doppel_batch_find_pairs(batch, false, refuse_pairs, NULL, NULL), DOPPEL_ERROR_STORE);
    decide(batch);
    assert_int_equal(doppel_batch_write(batch, refuse_document, NULL, NULL), DOPPEL_ERROR_STORE);
    stop = 1;
    written w = {.batch = batch};
    assert_int_equal(doppel_batch_decide(batch, NULL), DOPPEL_ERROR_INTERRUPTED);
    assert_int_equal(doppel_batch_find_pairs(batch, false, take_pair_lines, &w.text, NULL), DOPPEL_ERROR_INTERRUPTED);
    assert_int_equal(doppel_batch_write(batch, take_document, &w, NULL), DOPPEL_ERROR_INTERRUPTED);
    dp_buffer_free(&w.text);
    doppel_batch_free(batch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(nothing_and_one_document),
        TEST(all_identical_and_none_alike),
        TEST(few_words_and_none),
        TEST(it_adds_up),
        TEST(it_can_be_asked_again),
        TEST(calls_out_of_order_are_refused),
        TEST(options_that_make_no_sense_are_refused),
        TEST(changed_inputs_are_told),
        TEST(threads_and_files_make_no_difference),
        TEST(known_documents_stay),
        TEST(many_of_one_kind_cost_little),
        TEST(pairs_of_copies_come_in_pieces),
        TEST(a_caller_can_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
