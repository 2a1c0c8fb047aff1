/* test_trim_work.c - trims in a work folder: resumed, opened again, refused with other options and inputs, and never
 * believed where the folder is damaged. */
#include "trims.h"

static const char *const input = "a.jsonl", *const known = "q.jsonl";

static void save_inputs(void) {
    save_texts(input,
               (texts){{"one two three four five\nx", "y\none two three four five", "z", "ONE two three four five"}},
               'a');
    save_texts(known, (texts){{"one two three four five", "x"}}, 'q');
}

/* What a trim found before, as lines. */
static dp_buffer found(doppel_trim_options options) {
    doppel_trim *trim = find_repeats(&input, 1, options);
    dp_buffer lines = trimmed_lines(trim);
    doppel_trim_free(trim);
    return lines;
}

static doppel_trim *open_work(const doppel_input_options *reading) {
    doppel_trim *trim = NULL;
    doppel_error error = {0};
    if (doppel_trim_open("work", reading, &trim, &error) != DOPPEL_OK)
        fail_msg("%s: %s", error.file, error.message);
    return trim;
}

static void check_lines(doppel_trim *trim, const dp_buffer *truth) {
    dp_buffer lines = trimmed_lines(trim);
    assert_string_equal(lines.data, truth->data);
    dp_buffer_free(&lines);
    doppel_trim_free(trim);
}

static void same_stats(const doppel_trim *a, const doppel_trim *b) {
    doppel_trim_stats x, y;
    doppel_trim_get_stats(a, &x);
    doppel_trim_get_stats(b, &y);
    assert_int_equal(x.units, y.units);
    assert_int_equal(x.words, y.words);
    assert_int_equal(x.repeated, y.repeated);
    assert_int_equal(x.values, y.values);
    assert_int_equal(x.short_against, y.short_against);
    assert_int_equal(x.input.documents, y.input.documents);
    assert_int_equal(x.against.documents, y.against.documents);
    assert_int_equal(x.words_cut, y.words_cut);
    assert_int_equal(x.dropped, y.dropped);
}

static void same_repeats(doppel_trim *a, doppel_trim *b) {
    const doppel_repeat *x, *y;
    size_t count, other;
    assert_int_equal(doppel_trim_get_repeats(a, &x, &count, NULL), DOPPEL_OK);
    assert_int_equal(doppel_trim_get_repeats(b, &y, &other, NULL), DOPPEL_OK);
    assert_int_equal(count, other);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(x[i].count, y[i].count);
        assert_int_equal(x[i].start, y[i].start);
        assert_int_equal(x[i].original, y[i].original);
        assert_int_equal(x[i].text.length, y[i].text.length);
        assert_memory_equal(x[i].text.data, y[i].text.data, x[i].text.length);
    }
}

/* Runs, resumes and opens: all the same. */
static void check_run(doppel_trim_options options) {
    save_inputs();
    options.work = "work";
    doppel_trim *first = find_repeats(&input, 1, options);
    dp_buffer truth = trimmed_lines(first);
    options.resume = true;
    doppel_trim *again = find_repeats(&input, 1, options);
    write_trimmed(again, 0, NULL, NULL);
    same_stats(first, again);
    same_repeats(first, again);
    check_lines(again, &truth);
    doppel_trim *opened = open_work(NULL);
    write_trimmed(opened, 0, NULL, NULL);
    same_stats(first, opened);
    same_repeats(first, opened);
    check_lines(opened, &truth);
    doppel_trim_free(first);
    dp_buffer_free(&truth);
    assert_int_equal(unlink("work/trim"), 0);
    assert_int_equal(unlink("work/trim-spans"), 0);
    assert_int_equal(rmdir("work"), 0);
}

static void a_run_is_opened_again_as_it_was(void **state) {
    (void)state;
    check_run((doppel_trim_options){0});
    check_run((doppel_trim_options){.keep = "last", .min_count = 3, .cut_first = true, .drop_below = 2});
    check_run((doppel_trim_options){.within = "host", .drop_share = 0.5, .min_words = 1});
    check_run((doppel_trim_options){.across = "document", .unit = DOPPEL_UNIT_SENTENCE, .run = 2, .min_words = 1});
    check_run((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 3, .drop = true});
    check_run((doppel_trim_options){.unit = DOPPEL_UNIT_PARAGRAPH, .content = DOPPEL_CONTENT_ALL});
    check_run((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 9, .against = &known, .against_count = 1});
    check_run((doppel_trim_options){.against = &known, .against_count = 1});
}

/* Options are those of the run. */
static void options_are_kept(void **state) {
    (void)state;
    save_inputs();
    doppel_trim_free(find_repeats(&input, 1,
                                  (doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE,
                                                        .words = 3,
                                                        .min_count = 3,
                                                        .cut_first = true,
                                                        .across = "host",
                                                        .keep = "longest,last",
                                                        .drop_share = 0.25,
                                                        .drop_below = 7,
                                                        .drop = true,
                                                        .content = DOPPEL_CONTENT_ALL,
                                                        .work = "work"}));
    doppel_trim *trim = open_work(NULL);
    const doppel_trim_options *o = doppel_trim_get_options(trim);
    assert_int_equal(o->unit, DOPPEL_UNIT_PASSAGE);
    assert_int_equal(o->words, 3);
    assert_int_equal(o->min_words, 5);
    assert_int_equal(o->min_count, 3);
    assert_true(o->cut_first && o->drop && o->drop_share == 0.25);
    assert_int_equal(o->drop_below, 7);
    assert_null(o->within);
    assert_string_equal(o->across, "host");
    assert_string_equal(o->keep, "longest,last");
    assert_int_equal(o->content, DOPPEL_CONTENT_ALL);
    doppel_trim_free(trim);
}

/* Keys, the limit of records and stop words belong to the run. */
static void the_way_of_reading_is_kept(void **state) {
    (void)state;
    static const char records[] =
        "{\"key\":\"a\",\"body\":\"one of two three four five\"}\n"
        "{\"key\":\"long\",\"body\":\"one two three four five six seven eight nine ten eleven\"}\n"
        "{\"key\":\"b\",\"body\":\"one two three four five\\nrest\"}\n";
    static const char others[] = "{\"number\":\"q\",\"line\":\"one two three four five\"}\n";
    spit(input, records, sizeof records - 1);
    spit(known, others, sizeof others - 1);
    doppel_input_options reading = {.size = sizeof reading, .id_key = "key", .text_key = "body", .max_record = 60};
    doppel_input_options other = {.size = sizeof other, .id_key = "number", .text_key = "line", .max_record = 60};
    doppel_recipe *recipe;
    doppel_recipe_parts parts = {.size = sizeof parts, .stop_words = doppel_slice_of("of\nthe")};
    assert_int_equal(doppel_recipe_parse("simhash64:words=1", &parts, &recipe, NULL), DOPPEL_OK);
    doppel_trim_options options = {.input = &reading,
                                   .against_input = &other,
                                   .against = &known,
                                   .against_count = 1,
                                   .recipe = recipe,
                                   .work = "work"};
    dp_buffer truth = found(options);
    assert_string_equal(truth.data, "[0-26 5 q@0] !empty\n[0-24 5 q@0]rest\n");
    doppel_input_options threads = {.size = sizeof threads, .threads = 2, .text_key = "none"};
    check_lines(open_work(&threads), &truth);
    dp_buffer_free(&truth);
    doppel_recipe_free(recipe);
}

/* ---- what is refused ---- */

static void check_refused(const char *const *paths, size_t count, doppel_trim_options options, doppel_status status,
                          const char *message) {
    doppel_trim *trim = NULL;
    doppel_error error = {0};
    options.size = sizeof options;
    options.work = "work";
    assert_int_equal(doppel_trim_find(paths, count, &options, &trim, &error), status);
    assert_null(trim);
    if (error.code != status || !strstr(error.message, message))
        fail_msg("%s", error.message);
}

static void other_options_are_refused(void **state) {
    (void)state;
    const char *const two[] = {input, known}, *const stdin_too[] = {"-"};
    static const doppel_trim_options others[] = {
        {.unit = DOPPEL_UNIT_SENTENCE},
        {.unit = DOPPEL_UNIT_PASSAGE},
        {.run = 2},
        {.min_words = 4},
        {.keep = "last"},
        {.min_count = 3},
        {.cut_first = true},
        {.within = "host"},
        {.across = "host"},
        {.drop_below = 1},
        {.drop_share = 0.5},
        {.drop = true},
        {.content = DOPPEL_CONTENT_ALL},
        {.against = &known, .against_count = 1},
    };
    save_inputs();
    dp_buffer lines = found((doppel_trim_options){.work = "work"});
    dp_buffer_free(&lines);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        doppel_trim_options options = others[i];
        options.resume = true;
        check_refused(&input, 1, options, DOPPEL_ERROR_USAGE, "other options or inputs");
    }
    doppel_input_options keys = {.size = sizeof keys, .id_key = "key"};
    check_refused(&input, 1, (doppel_trim_options){.resume = true, .input = &keys}, DOPPEL_ERROR_USAGE,
                  "other options or inputs");
    check_refused(two, 2, (doppel_trim_options){.resume = true}, DOPPEL_ERROR_USAGE, "other options or inputs");
    check_refused(&known, 1, (doppel_trim_options){.resume = true}, DOPPEL_ERROR_USAGE, "other options or inputs");
    check_refused(&input, 1, (doppel_trim_options){0}, DOPPEL_ERROR_USAGE, "already contains a run");
    check_refused(stdin_too, 1, (doppel_trim_options){0}, DOPPEL_ERROR_USAGE, "stdin cannot be resumed");
}

/* Which of two paths is which does count. */
static void against_is_not_an_input(void **state) {
    (void)state;
    const char *const two[] = {known, input};
    save_inputs();
    dp_buffer lines = found((doppel_trim_options){.work = "work", .against = &known, .against_count = 1});
    dp_buffer_free(&lines);
    check_refused(two, 2, (doppel_trim_options){.resume = true}, DOPPEL_ERROR_USAGE, "other options or inputs");
}

static void inputs_that_have_changed(void **state) {
    (void)state;
    doppel_trim *trim;
    doppel_error error = {0};
    save_inputs();
    dp_buffer lines = found((doppel_trim_options){.work = "work"});
    dp_buffer_free(&lines);
    for (int way = 0; way < 2; way++) {
        save_inputs();
        dp_buffer file = slurp(input);
        if (way)
            memset(file.data, ' ',
                   (size_t)((char *)memchr(file.data, '\n', file.size) - file.data)); /* as many bytes */
        else
            file.size = (size_t)((char *)memchr(file.data, '\n', file.size) + 1 - file.data);
        spit(input, file.data, file.size);
        dp_buffer_free(&file);
        check_refused(&input, 1, (doppel_trim_options){.resume = true}, DOPPEL_ERROR_INPUT, "changed");
        assert_int_equal(doppel_trim_open("work", NULL, &trim, &error), DOPPEL_ERROR_INPUT);
        assert_null(trim);
    }
}

static void folders_that_cannot_be_used(void **state) {
    (void)state;
    doppel_trim *trim;
    doppel_error error = {0};
    save_inputs();
    assert_int_equal(doppel_trim_open("work", NULL, &trim, &error), DOPPEL_ERROR_STORE);
    assert_int_equal(mkdir("work", 0777), 0);
    assert_int_equal(doppel_trim_open("work", NULL, &trim, &error), DOPPEL_ERROR_STORE);
    assert_string_equal(error.file, "work/trim");
    doppel_trim_options options = {.size = sizeof options, .work = "no/such/folder"};
    assert_int_equal(doppel_trim_find(&input, 1, &options, &trim, &error), DOPPEL_ERROR_IO);
    options.work = input;
    assert_int_equal(doppel_trim_find(&input, 1, &options, &trim, &error), DOPPEL_ERROR_IO);
    /* An empty folder is one that a run was stopped in. */
    options = (doppel_trim_options){.work = "work", .resume = true};
    spit("work/trim-spans", "what was there before", 21);
    dp_buffer lines = found(options);
    doppel_trim *opened = open_work(NULL);
    check_lines(opened, &lines);
    dp_buffer_free(&lines);
}

/* ---- damage ---- */

static void check_damaged(void) {
    doppel_trim *trim;
    doppel_error error = {0};
    assert_int_equal(doppel_trim_open("work", NULL, &trim, &error), DOPPEL_ERROR_STORE);
    assert_null(trim);
    assert_true(error.code == DOPPEL_ERROR_STORE && error.message[0]);
    check_refused(&input, 1, (doppel_trim_options){.resume = true}, DOPPEL_ERROR_STORE, "damaged");
}

/* Every byte altered, every length but the right one. */
static void check_damages(const char *path) {
    dp_buffer file = slurp(path);
    size_t step = 1 + file.size * SMALLER / 300;
    for (size_t at = 0; at < file.size; at += step) {
        file.data[at] ^= 0x20;
        spit(path, file.data, file.size);
        check_damaged();
        file.data[at] ^= 0x20;
        spit(path, file.data, at);
        check_damaged();
    }
    assert_true(dp_buffer_add(&file, "", 1));
    spit(path, file.data, file.size);
    check_damaged();
    spit(path, file.data, file.size - 1);
    doppel_trim_free(open_work(NULL));
    dp_buffer_free(&file);
}

static void a_damaged_folder_is_refused(void **state) {
    (void)state;
    save_inputs();
    dp_buffer lines = found((doppel_trim_options){.work = "work"});
    dp_buffer_free(&lines);
    check_damages("work/trim");
    check_damages("work/trim-spans");
    assert_int_equal(unlink("work/trim-spans"), 0);
    check_damaged();
}

/* ---- stopping ---- */

static volatile int stop;

static void stop_at(const char *stage, uint64_t done, uint64_t total, void *user) {
    (void)done, (void)total;
    stop = stop || !strcmp(stage, user);
}

/* Stopped at any stage, it says so, and the next run starts over. */
static void a_run_that_is_stopped(void **state) {
    (void)state;
    static const char *const stages[] = {"samples", "repeats", "copies", "spans"};
    doppel_input_options reading = {.size = sizeof reading, .threads = 1, .stop = &stop};
    save_inputs();
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        char stage[16];
        snprintf(stage, sizeof stage, "%s", stages[i]);
        doppel_trim_options options = {.unit = DOPPEL_UNIT_PASSAGE,
                                       .words = 3,
                                       .input = &reading,
                                       .progress = stop_at,
                                       .user = stage,
                                       .resume = true};
        check_refused(&input, 1, options, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        assert_int_equal(stop, 1);
        stop = 0;
    }
    assert_int_equal(access("work/trim", F_OK), -1);
    doppel_trim_options options = {.unit = DOPPEL_UNIT_PASSAGE, .words = 3};
    dp_buffer truth = found(options);
    options.work = "work";
    options.resume = true;
    dp_buffer lines = found(options);
    assert_string_equal(lines.data, truth.data);
    dp_buffer_free(&lines);
    dp_buffer_free(&truth);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_run_is_opened_again_as_it_was), TEST(options_are_kept),
        TEST(the_way_of_reading_is_kept),      TEST(other_options_are_refused),
        TEST(against_is_not_an_input),         TEST(inputs_that_have_changed),
        TEST(folders_that_cannot_be_used),     TEST(a_damaged_folder_is_refused),
        TEST(a_run_that_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
