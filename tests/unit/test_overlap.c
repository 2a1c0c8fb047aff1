/* test_overlap.c - documents that contain much of one another: planted passages are found, all of them and no other,
 * whatever the threads and the memory. */
#include "files.h"

#include "doppel.h"
#include "overlap/overlap.h"

/* ---- documents ---- */

/* Words of a language with 20,000 of them. */
static void add_words(dp_buffer *text, uint64_t *state, size_t count) {
    for (size_t i = 0; i < count; i++)
        dp_buffer_printf(text, "w%zu ", random_below(state, 20000));
}

static void add_record(dp_buffer *file, const char *id, const dp_buffer *text) {
    dp_buffer_printf(file, "{\"id\":\"%s\",\"text\":\"%.*s\"}\n", id, (int)text->size, text->data);
}

static void add_text(dp_buffer *file, const char *id, const char *text) {
    dp_buffer buffer = {(char *)(uintptr_t)text, strlen(text), 0};
    add_record(file, id, &buffer);
}

static void save(dp_buffer *file, const char *path) {
    spit(path, file->data ? file->data : "", file->size);
    dp_buffer_free(file);
}

/* ---- runs ---- */

/* A line for each pair: a b containments words-of-passages. */
static doppel_status take_pair(const doppel_overlap *pair, void *user) {
    dp_buffer *lines = user;
    dp_buffer_printf(lines, "%.*s %.*s %.3f %.3f", (int)pair->a_id.length, pair->a_id.data, (int)pair->b_id.length,
                     pair->b_id.data, pair->containment_ab, pair->containment_ba);
    for (size_t i = 0; i < pair->passage_count; i++)
        dp_buffer_printf(lines, " %llu", (unsigned long long)pair->passages[i].words);
    return dp_buffer_add(lines, "\n", 1) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static dp_buffer run(const char *path, doppel_overlap_options options, doppel_overlap_counts *counts) {
    dp_buffer lines = {0};
    doppel_error error = {.code = DOPPEL_OK};
    options.size = sizeof options;
    options.pair = take_pair;
    options.user = &lines;
    if (doppel_overlap_find(&path, 1, &options, counts, &error) != DOPPEL_OK) {
        print_error("%s: %s\n", error.file, error.message);
        fail();
    }
    dp_buffer_add(&lines, "", 1);
    return lines;
}

static void check(const char *path, doppel_overlap_options options, const char *expected) {
    dp_buffer lines = run(path, options, NULL);
    assert_string_equal(lines.data, expected);
    dp_buffer_free(&lines);
}

/* ---- tests ---- */

/* 60 documents of 5,000 words; document 2i + 1 has a passage of 100 words of document 2i, for the first 40 of them. */
static void plant(const char *path, dp_buffer *expected) {
    dp_buffer file = {0}, passage = {0}, text = {0};
    uint64_t state = 1;
    char id[32];
    for (size_t d = 0; d < 60; d++) {
        size_t before = random_below(&state, 4900);
        text.size = 0;
        if (d % 2 == 0)
            passage.size = 0, add_words(&passage, &state, 100);
        add_words(&text, &state, before);
        if (d < 40)
            dp_buffer_add(&text, passage.data, passage.size);
        add_words(&text, &state, 4900 - before);
        snprintf(id, sizeof id, "d%zu", d);
        add_record(&file, id, &text);
        if (d % 2 && d < 40)
            dp_buffer_printf(expected, "d%zu d%zu ", d - 1, d);
    }
    dp_buffer_add(expected, "", 1);
    dp_buffer_free(&passage);
    dp_buffer_free(&text);
    save(&file, path);
}

/* "a b " of each line. */
static dp_buffer names_of(const char *lines) {
    dp_buffer names = {0};
    for (const char *line = lines; *line; line = strchr(line, '\n') + 1) {
        const char *end = strchr(strchr(line, ' ') + 1, ' ') + 1;
        dp_buffer_add(&names, line, (size_t)(end - line));
    }
    dp_buffer_add(&names, "", 1);
    return names;
}

static void test_planted_passages(void **state) {
    const char *path = in(state, "planted.jsonl");
    dp_buffer expected = {0};
    plant(path, &expected);
    const uint64_t lengths[] = {100, 50, 20};
    for (size_t i = 0; i < 3; i++) {
        dp_buffer lines = run(path, (doppel_overlap_options){.words = lengths[i]}, NULL), names = names_of(lines.data);
        assert_string_equal(names.data, expected.data);
        dp_buffer_free(&names);
        dp_buffer_free(&lines);
    }
    dp_buffer lines = run(path, (doppel_overlap_options){.words = 102}, NULL);
    assert_string_equal(lines.data, "");
    dp_buffer_free(&lines);
    dp_buffer_free(&expected);
}

static void test_threads_and_memory_change_nothing(void **state) {
    const char *path = in(state, "planted.jsonl");
    dp_buffer expected = {0};
    plant(path, &expected);
    dp_buffer_free(&expected);
    doppel_overlap_options options = {.words = 30, .containment = 0.01, .sample = 1};
    expected = run(path, options, NULL);
    for (int threads = 1; threads < 4; threads++) {
        doppel_input_options input = {.size = sizeof input, .threads = threads};
        doppel_overlap_counts counts;
        options.input = &input;
        options.memory = threads == 2 ? 1 : 0;
        dp_buffer lines = run(path, options, &counts);
        assert_string_equal(lines.data, expected.data);
        assert_int_equal(counts.input.documents, 60);
        assert_int_equal(counts.pairs, 20);
        dp_buffer_free(&lines);
    }
    dp_buffer_free(&expected);
}

#define TEN "alpha beta gamma delta epsilon zeta eta theta iota kappa "
#define TEN2 "one two three four five six seven eight nine ten "
#define TEN3 "red green blue white black brown grey pink cyan lilac "

static void test_containment(void **state) {
    dp_buffer file = {0};
    add_text(&file, "part", TEN TEN2);
    add_text(&file, "whole", TEN3 TEN TEN2 TEN3 "end");
    add_text(&file, "other", TEN3 "and something else that is quite another thing");
    add_text(&file, "half", "this is the half " TEN2 "of it and not more");
    save(&file, in(state, "a.jsonl"));
    check(in(state, "a.jsonl"), (doppel_overlap_options){.sample = 1, .containment = 0.5},
          "part whole 1.000 0.516 20\n");
    check(in(state, "a.jsonl"), (doppel_overlap_options){.sample = 1, .containment = 0.41},
          "part whole 1.000 0.516 20\nwhole other 0.194 0.429 10\n");
    check(in(state, "a.jsonl"), (doppel_overlap_options){.words = 10},
          "part whole 1.000 0.516 20\npart half 0.375 0.400 10\nwhole other 0.194 0.429 10\n"
          "whole half 0.194 0.400 10\n");
    check(in(state, "a.jsonl"), (doppel_overlap_options){.words = 11}, "part whole 1.000 0.516 20\n");
    check(in(state, "a.jsonl"), (doppel_overlap_options){.words = 11, .containment = 0.42, .sample = 1},
          "part whole 1.000 0.516 20\nwhole other 0.194 0.429 10\n");
}

/* Numbers from one on, as words. */
static void add_numbers(dp_buffer *file, const char *id, const int parts[][2], size_t count) {
    dp_buffer text = {0};
    for (size_t i = 0; i < count; i++)
        for (int n = 0; n < parts[i][1]; n++)
            dp_buffer_printf(&text, "n%d ", parts[i][0] + n);
    dp_buffer_add(&text, "", 1);
    add_text(file, id, text.data);
    dp_buffer_free(&text);
}

/* By default: 30 words in a row, however long the texts are, or a fifth of one of them in pieces. */
static void test_default(void **state) {
    dp_buffer file = {0};
    add_numbers(&file, "long", (const int[][2]){{1000, 500}, {1, 30}, {2000, 500}}, 3);
    add_numbers(&file, "run", (const int[][2]){{3000, 500}, {1, 30}, {4000, 500}}, 3);
    add_numbers(&file, "less", (const int[][2]){{5000, 500}, {1, 29}, {6000, 500}}, 3);
    add_numbers(&file, "pieces",
                (const int[][2]){{1000, 20}, {7000, 20}, {1200, 20}, {7100, 20}, {1400, 20}, {7200, 20}}, 6);
    save(&file, in(state, "a.jsonl"));
    check(in(state, "a.jsonl"), (doppel_overlap_options){.sample = 1},
          "long run 0.025 0.025 30\nlong pieces 0.047 0.414 20 20 20\n");
}

/* doppel_overlap_options.pair: the texts at the places of a passage are the same, and the words are counted. */
static doppel_status take_texts(const doppel_overlap *pair, void *user) {
    doppel_slice a, b;
    assert_int_equal(doppel_overlap_get_texts(pair, &a, &b, NULL), DOPPEL_OK);
    assert_int_equal(pair->words_a, 140 + pair->a % 4 * 10);
    assert_int_equal(pair->words_b, 140 + pair->b % 4 * 10);
    for (size_t i = 0; i < pair->passage_count; i++) {
        const doppel_passage *p = &pair->passages[i];
        assert_true(p->a_end <= a.length && p->b_end <= b.length);
        assert_int_equal(p->a_end - p->a_start, p->b_end - p->b_start);
        assert_memory_equal(a.data + p->a_start, b.data + p->b_start, p->a_end - p->a_start);
        ++*(size_t *)user;
    }
    return DOPPEL_OK;
}

static void test_texts_of_a_pair(void **state) {
    dp_buffer file = {0};
    size_t passages = 0;
    for (int i = 0; i < 40; i++) {
        char id[16];
        snprintf(id, sizeof id, "d%d", i);
        add_numbers(&file, id,
                    (const int[][2]){{1000 * i, 50}, {500000 + i / 4, 40}, {1000 * i + 500, 50 + i % 4 * 10}}, 3);
    }
    save(&file, in(state, "a.jsonl"));
    const char *path = in(state, "a.jsonl");
    doppel_overlap_options options = {.size = sizeof options, .pair = take_texts, .user = &passages};
    assert_int_equal(doppel_overlap_find(&path, 1, &options, NULL, NULL), DOPPEL_OK);
    assert_true(passages >= 60);
}

static void test_copies_are_paired_with_the_first(void **state) {
    dp_buffer file = {0};
    add_text(&file, "a", TEN);
    add_text(&file, "none", "!!!");
    add_text(&file, "b", "ALPHA, beta; gamma delta epsilon zeta eta theta iota kappa.");
    add_text(&file, "short", "two words");
    add_text(&file, "c", TEN);
    add_text(&file, "none2", "");
    add_text(&file, "short2", "Two words!");
    save(&file, in(state, "a.jsonl"));
    check(in(state, "a.jsonl"), (doppel_overlap_options){.sample = 1000},
          "a b 1.000 1.000 10\na c 1.000 1.000 10\nshort short2 1.000 1.000 2\n");
    check(in(state, "a.jsonl"), (doppel_overlap_options){.words = 6}, "a b 1.000 1.000 10\na c 1.000 1.000 10\n");
}

static void test_against(void **state) {
    dp_buffer old = {0}, new = {0};
    add_text(&old, "question", "what did he say then " TEN);
    add_text(&old, "question2", "What did he say then? " TEN);
    add_text(&old, "unused", TEN3);
    save(&old, in(state, "old.jsonl"));
    add_text(&new, "clean", TEN2 TEN2);
    add_text(&new, "dirty", TEN2 "what did he say then " TEN TEN2);
    add_text(&new, "dirty2", TEN2 "what did he say then " TEN TEN2);
    add_text(&new, "same", "what did he say then " TEN);
    save(&new, in(state, "new.jsonl"));
    const char *against = in(state, "old.jsonl");
    check(in(state, "new.jsonl"), (doppel_overlap_options){.words = 13, .against = &against, .against_count = 1},
          "dirty question 0.440 1.000 15\ndirty2 question 0.440 1.000 15\nsame question 1.000 1.000 15\n");
}

/* 200 documents share a run: each is paired with the first, and few others are (by hashes that not all have chosen). */
static void test_frequent_runs_pair_with_the_first(void **state) {
    dp_buffer file = {0}, text = {0};
    uint64_t random = 5;
    char id[32];
    for (size_t d = 0; d < 200; d++) {
        text.size = 0;
        add_words(&text, &random, 30);
        dp_buffer_printf(&text, "%s", TEN TEN2);
        snprintf(id, sizeof id, "d%zu", d);
        add_record(&file, id, &text);
    }
    dp_buffer_free(&text);
    save(&file, in(state, "a.jsonl"));
    doppel_overlap_counts counts;
    dp_buffer lines = run(in(state, "a.jsonl"), (doppel_overlap_options){.words = 20}, &counts);
    assert_in_range(counts.pairs, 199, 2000);
    assert_true(counts.frequent > 0);
    size_t with_first = 0;
    for (const char *line = lines.data; *line; line = strchr(line, '\n') + 1)
        with_first += !memcmp(line, "d0 ", 3);
    assert_int_equal(with_first, 199);
    dp_buffer_free(&lines);
}

static void refused(const char *recipe_text, doppel_overlap_options options, const char *reason) {
    doppel_recipe *recipe;
    doppel_error error = {.code = DOPPEL_OK};
    options.size = sizeof options;
    assert_int_equal(doppel_recipe_parse(recipe_text, NULL, &recipe, NULL), DOPPEL_OK);
    options.recipe = recipe;
    assert_int_equal(doppel_overlap_find(NULL, 0, &options, NULL, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, reason));
    doppel_recipe_free(recipe);
}

static void test_usage(void **state) {
    (void)state;
    refused("page", (doppel_overlap_options){.words = 4}, "at least as many words as the recipe's features, 5");
    refused("page", (doppel_overlap_options){.words = (uint64_t)1 << 40}, "at most");
    refused("simhash64:chars=5", (doppel_overlap_options){.words = 9}, "characters");
    refused("page", (doppel_overlap_options){.containment = 1.5}, "at most 1");
    refused("page", (doppel_overlap_options){.containment = -1}, "above 0");
}

static void test_nothing(void **state) {
    spit(in(state, "empty.jsonl"), "", 0);
    check(in(state, "empty.jsonl"), (doppel_overlap_options){.words = 5}, "");
}

static doppel_status refuse_pair(const doppel_overlap *pair, void *user) {
    (void)pair;
    (void)user;
    return DOPPEL_ERROR_STORE;
}

static void test_callback_ends_it(void **state) {
    dp_buffer file = {0};
    const char *path = in(state, "a.jsonl");
    doppel_error error = {.code = DOPPEL_OK};
    add_text(&file, "a", TEN);
    add_text(&file, "b", TEN);
    save(&file, path);
    doppel_overlap_options options = {.size = sizeof options, .pair = refuse_pair};
    assert_int_equal(doppel_overlap_find(&path, 1, &options, NULL, &error), DOPPEL_ERROR_STORE);
    assert_int_equal(error.code, DOPPEL_ERROR_STORE);
}

/* Every run of `words` words has a sample that depends on the run alone. */
static void test_no_run_is_missed(void **state) {
    (void)state;
    uint64_t random = 9, features[400], other[400];
    dp_overlap_samples x = {0}, y = {0};
    for (size_t round = 0; round < 300; round++) {
        dp_overlap_plan plan;
        doppel_overlap_options options = {.size = sizeof options, .words = 5 + random_below(&random, 60)};
        doppel_recipe *recipe;
        doppel_recipe_parse("page", NULL, &recipe, NULL);
        assert_int_equal(dp_overlap_plan_make(&options, recipe, &plan, NULL), DOPPEL_OK);
        doppel_recipe_free(recipe);
        size_t run_length = (size_t)options.words - 4, at = random_below(&random, 100), to = random_below(&random, 100);
        for (size_t i = 0; i < 400; i++)
            features[i] = random_next(&random) % (round % 2 ? 4 : UINT64_MAX), other[i] = random_next(&random);
        memcpy(other + to, features + at, run_length * 8);
        assert_true(dp_overlap_sample(&plan, features, 400, &x) && dp_overlap_sample(&plan, other, 400, &y));
        assert_true(doppel_set_shared(x.hash, x.count, y.hash, y.count) > 0);
    }
    free(x.hash);
    free(y.hash);
    free(x.chosen);
    free(y.chosen);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_planted_passages),
        TEST(test_threads_and_memory_change_nothing),
        TEST(test_containment),
        TEST(test_default),
        TEST(test_texts_of_a_pair),
        TEST(test_copies_are_paired_with_the_first),
        TEST(test_against),
        TEST(test_frequent_runs_pair_with_the_first),
        TEST(test_usage),
        TEST(test_nothing),
        TEST(test_callback_ends_it),
        TEST(test_no_run_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
