/* test_prefix_filter.c - large buckets: the filter finds what comparing all pairs finds, with
 * far fewer comparisons. */
#include "batches.h"

#include "doppel.h"

/* ---- documents ---- */

/* Pages of one template, most with words of their own behind it, 0 to `own`; every third is an edited copy of any
 * before it, every tenth the same as one. So sizes differ, and similarities are of all kinds. */
static void save_templates(const char *path, size_t count, size_t frame, size_t own) {
    dp_buffer file = {0}, template = {0}, *text = calloc(count, sizeof *text);
    uint64_t state = 7;
    assert_non_null(text);
    add_words(&template, &state, frame);
    for (size_t i = 0; i < count; i++) {
        const dp_buffer *from = i % 10 == 9 || i % 3 == 2 ? &text[random_below(&state, i)] : &template;
        char id[32], host[64];
        assert_true(dp_buffer_add(&text[i], from->data, from->size - (from != &template)));
        for (size_t k = i % 10 == 9 ? 0 : random_below(&state, 8); k > 0; k--)
            text[i].data[1 + random_below(&state, text[i].size - 3)] = 'x';
        if (from == &template)
            add_words(&text[i], &state, random_below(&state, own + 1));
        assert_true(dp_buffer_add(&text[i], "", 1));
        snprintf(id, sizeof id, "d%zu", i);
        snprintf(host, sizeof host, ",\"url\":\"http://h%zu.org/%zu\"", i % 3, i);
        add_record(&file, id, text[i].data, host);
    }
    save_records(&file, path);
    for (size_t i = 0; i < count; i++)
        dp_buffer_free(&text[i]);
    free(text);
    dp_buffer_free(&template);
}

/* A phrase that wins the only slot of any signature it is in. */
static void find_phrase(char *phrase, size_t room) {
    doppel_recipe *recipe = NULL;
    doppel_sketcher *sketcher = NULL;
    uint32_t least = UINT32_MAX;
    assert_int_equal(doppel_recipe_parse("page", NULL, &recipe, NULL), DOPPEL_OK);
    assert_int_equal(doppel_sketcher_create(recipe, DOPPEL_WANT_SET, &sketcher, NULL), DOPPEL_OK);
    for (int i = 0; i < 300000 / SMALLER; i++) {
        char text[64];
        doppel_sketch sketch;
        uint32_t slot;
        int length = snprintf(text, sizeof text, "all of number %d here", i);
        assert_int_equal(doppel_sketcher_run(sketcher, (doppel_slice){text, (size_t)length}, &sketch), DOPPEL_OK);
        assert_int_equal(doppel_minhash(sketch.set, sketch.set_count, 1, &slot), DOPPEL_OK);
        if (slot < least) {
            least = slot;
            snprintf(phrase, room, "%s", text);
        }
    }
    doppel_sketcher_free(sketcher);
    doppel_recipe_free(recipe);
}

/* Documents with nothing but one phrase in common; every hundredth is a near copy of the one before it. */
static void save_one_band(const char *path, size_t count) {
    dp_buffer file = {0}, text = {0};
    uint64_t state = 3;
    char phrase[64], id[32];
    find_phrase(phrase, sizeof phrase);
    for (size_t i = 0; i < count; i++) {
        if (i % 100 != 99) {
            text.size = 0;
            assert_true(dp_buffer_printf(&text, "%s ", phrase));
            add_words(&text, &state, 40);
        }
        snprintf(id, sizeof id, "d%zu", i);
        text.data[text.size] = 0;
        if (i % 100 == 99)
            text.data[text.size - 2] = 'x';
        add_record(&file, id, text.data, "");
    }
    save_records(&file, path);
    dp_buffer_free(&text);
}

/* One page, with another last word each time; behind these, `others` that come in twos. */
static void save_copies(const char *path, size_t count, size_t others) {
    dp_buffer file = {0}, text = {0};
    uint64_t state = 5;
    add_words(&text, &state, 30);
    for (size_t i = 0; i < count + others; i++) {
        char id[32], copy[512];
        if (i >= count && (i - count) % 2 == 0) {
            text.size = 0;
            add_words(&text, &state, 30);
        }
        snprintf(id, sizeof id, "d%zu", i);
        snprintf(copy, sizeof copy, "%.*s end%zu", (int)text.size, text.data, i);
        add_record(&file, id, copy, "");
    }
    save_records(&file, path);
    dp_buffer_free(&text);
}

/* ---- the same as comparing each with each ---- */

typedef struct outcome {
    dp_buffer decisions, pairs, collapsed;
} outcome;

static outcome run(doppel_batch_options options, const char *path, size_t large_bucket) {
    outcome o = {{0}, {0}, {0}};
    doppel_batch *batch = read_batch(options, &path, 1, 0);
    batch->settings.large_bucket = large_bucket;
    decide(batch);
    o.decisions = decisions(batch);
    o.pairs = pair_lines(batch, false);
    o.collapsed = pair_lines(batch, true);
    doppel_batch_free(batch);
    return o;
}

static void free_outcome(outcome *o) {
    dp_buffer_free(&o->decisions);
    dp_buffer_free(&o->pairs);
    dp_buffer_free(&o->collapsed);
}

/* At this many thresholds. */
static void check_same(doppel_batch_options options, const char *path, size_t thresholds) {
    static const size_t sizes[] = {2, 16};
    static const double similarities[] = {0.8, 0.5, 0.9, 0.3, 0.7, 0.1, 1};
    for (size_t s = 0; s < thresholds; s++) {
        options.similarity = similarities[s];
        outcome plain = run(options, path, SIZE_MAX);
        assert_true(plain.pairs.size > 1 || similarities[s] > 0.8);
        for (size_t c = 0; c < (SMALLER > 1 ? 1 : sizeof sizes / sizeof *sizes); c++) {
            outcome filtered = run(options, path, sizes[c]);
            assert_string_equal(filtered.decisions.data, plain.decisions.data);
            assert_string_equal(filtered.pairs.data, plain.pairs.data);
            assert_string_equal(filtered.collapsed.data, plain.collapsed.data);
            free_outcome(&filtered);
        }
        free_outcome(&plain);
    }
}

static void templates_come_out_the_same(void **state) {
    const char *path = in(state, "templates.jsonl");
    static const size_t frames[] = {20, 60, 120};
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        save_templates(path, 200, frames[i], 40);
        check_same((doppel_batch_options){0}, path, SMALLER > 1 ? 1 : 7);
    }
}

static void mixtures_come_out_the_same(void **state) {
    const char *path = in(state, "mixture.jsonl");
    save_mixture(path, 400, 50);
    check_same((doppel_batch_options){0}, path, SMALLER > 1 ? 1 : 7);
}

static void one_band_comes_out_the_same(void **state) {
    const char *path = in(state, "few.jsonl");
    save_one_band(path, 400);
    check_same((doppel_batch_options){.method = DOPPEL_METHOD_MINHASH, .bands = 1, .rows = 1}, path,
               SMALLER > 1 ? 1 : 7);
}

static void every_way_of_deciding_comes_out_the_same(void **state) {
    doppel_input_options two = {.size = sizeof two, .threads = 2};
    doppel_batch_options ways[] = {
        {.link_any = true},  {.within = "host"},   {.across = "host"}, {.link_any = true, .within = "host"},
        {.keep = "longest"}, {.boilerplate = 0.3}, {.input = &two},    {.link_any = true, .input = &two},
        {.memory = 1 << 12}, {.memory = 1},
    };
    const char *path = in(state, "ways.jsonl");
    save_templates(path, 200, 60, 40);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        check_same(ways[i], path, SMALLER > 1 ? 1 : 2);
}

/* ---- how much is compared ---- */

static void documents_of_one_band_are_not_compared_each_with_each(void **state) {
    enum { COUNT = 20000 / SMALLER };
    const char *path = in(state, "band.jsonl");
    save_one_band(path, COUNT);
    doppel_batch_options options = {.method = DOPPEL_METHOD_MINHASH, .bands = 1, .rows = 1};
    doppel_batch *batch = read_batch(options, &path, 1, 0);
    doppel_batch_stats stats;
    decide(batch);
    doppel_batch_get_stats(batch, &stats);
    assert_int_equal(stats.kept, COUNT - COUNT / 100);
    assert_true(stats.verified < (uint64_t)DP_LARGE_BUCKET * DP_LARGE_BUCKET + COUNT);
    dp_buffer lines = pair_lines(batch, false);
    doppel_batch_get_stats(batch, &stats);
    assert_true(stats.verified < COUNT);
    size_t pairs = 0;
    for (const char *at = lines.data; (at = strchr(at, '\n')); at++)
        pairs++;
    assert_int_equal(pairs, COUNT / 100);
    dp_buffer_free(&lines);
    doppel_batch_free(batch);
}

/* A page with very many near copies is one that stays, and needs no filter. */
static void copies_are_compared_once(void **state) {
    enum { COUNT = 2000 };
    const char *path = in(state, "copies.jsonl");
    save_copies(path, COUNT, 0);
    doppel_batch *batch = read_batch((doppel_batch_options){0}, &path, 1, 0);
    doppel_batch_stats stats;
    decide(batch);
    doppel_batch_get_stats(batch, &stats);
    assert_int_equal(stats.kept, 1);
    assert_int_equal(stats.verified, COUNT - 1);
    doppel_batch_free(batch);
}

/* So many pairs that threads give them out before they are done with the documents they have taken. */
static void pairs_of_a_large_bucket_come_in_pieces(void **state) {
    const char *path = in(state, "many.jsonl");
    doppel_input_options one = {.size = sizeof one, .threads = 1}, three = {.size = sizeof three, .threads = 3};
    save_copies(path, 1500, 500);
    outcome plain = run((doppel_batch_options){.input = &one}, path, SIZE_MAX);
    outcome filtered = run((doppel_batch_options){.input = &three}, path, 16);
    assert_string_equal(filtered.pairs.data, plain.pairs.data);
    assert_string_equal(filtered.collapsed.data, plain.collapsed.data);
    free_outcome(&plain);
    free_outcome(&filtered);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(templates_come_out_the_same),
        TEST(mixtures_come_out_the_same),
        TEST(one_band_comes_out_the_same),
        TEST(every_way_of_deciding_comes_out_the_same),
        TEST(documents_of_one_band_are_not_compared_each_with_each),
        TEST(copies_are_compared_once),
        TEST(pairs_of_a_large_bucket_come_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
