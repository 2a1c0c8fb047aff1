/* test_server_analysis.c - the analysis of a file where very many documents are similar: the search for pairs is
 * bounded, and every threshold that is offered has the result of doppel_batch_decide. */
#include "support.h"

#include "server/runs.h"

#include <stdio.h>
#include <sys/stat.h>

enum { DOCUMENTS = 400, SHARED = 120, GROUPS = 40 };

static char folder[64], path[96];

/* Writes documents that share boilerplate, some of them copies and near-copies of earlier ones: similarities from 0.5
 * to 1. */
static int write_file(void **state) {
    (void)state;
    uint64_t seed = 1;
    snprintf(folder, sizeof folder, "/tmp/doppel-analysis-%ld", (long)getpid());
    snprintf(path, sizeof path, "%s/input.jsonl", folder);
    if (mkdir(folder, 0700))
        return 1;
    FILE *file = fopen(path, "w");
    if (!file)
        return 1;
    for (int i = 0; i < DOCUMENTS; i++) {
        int group = i % GROUPS, own = 5 + group;
        fprintf(file, "{\"text\":\"");
        for (int word = 0; word < SHARED; word++)
            fprintf(file, "shared%d ", word);
        for (int word = 0; word < own; word++)
            fprintf(file, "g%dw%d ", group, random_below(&seed, 60) ? word : 1000 * i);
        fprintf(file, "\"}\n");
    }
    return fclose(file);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path) || rmdir(folder);
}

static run_result result; /* too large for the stack */
static volatile int stop;

static doppel_status analyse(run_input input, doppel_error *error) {
    static const char *const inputs[] = {path};
    input.inputs = inputs;
    input.input_count = 1;
    input.path = path;
    input.name = "pages.jsonl";
    input.tmp = folder;
    input.threads = 2;
    input.stop = &stop;
    return run_analyse(&input, &result, error);
}

/* The number of documents that are removed at a similarity, and of those with the same words. */
static uint64_t removed_at(double similarity, uint64_t *identical) {
    const doppel_batch_options options = {.size = sizeof options, .similarity = similarity, .tmp = folder};
    doppel_batch *batch;
    doppel_error error;
    const char *paths[] = {path};
    uint64_t removed = 0;
    *identical = 0;
    assert_int_equal(doppel_batch_create(&options, &batch, &error), DOPPEL_OK);
    assert_int_equal(doppel_batch_read(batch, paths, 1, false, NULL, &error), DOPPEL_OK);
    assert_int_equal(doppel_batch_decide(batch, &error), DOPPEL_OK);
    for (uint64_t i = 0; i < doppel_batch_count(batch); i++) {
        doppel_near near;
        doppel_batch_get(batch, i, &near);
        removed += near.a != near.b;
        *identical += near.a != near.b && near.similarity >= 1;
    }
    doppel_batch_free(batch);
    return removed;
}

static void check_step(double similarity, const run_step *step) {
    uint64_t identical, removed = removed_at(similarity, &identical), members = 0;
    assert_int_equal(step->removed, removed);
    assert_int_equal(step->identical, identical);
    for (int i = 0; i < step->largest_count; i++)
        members += step->largest[i].size - 1;
    assert_true(step->groups > RUN_GROUPS ? members <= removed : members == removed);
}

/* All groups, in pages of 7: the largest of them are those that the step has, and their copies are all removed
 * documents. */
static void check_groups(int number, const run_step *step) {
    run_decisions d;
    run_group_query query = {.only = RUN_ALL_GROUPS, .limit = 7, .copies = DOCUMENTS};
    uint64_t groups = 0, removed = 0;
    assert_true(run_decide(&result, number, &d));
    for (size_t count = query.limit; count == query.limit; query.after += count) {
        run_group_list list;
        assert_true(run_list_groups(&d, &query, &list));
        count = list.count;
        assert_int_equal(list.all, step->groups);
        for (size_t i = 0; i < count; i++, groups++) {
            const run_listed_group *g = &list.group[i];
            const run_group *largest = &step->largest[groups];
            assert_int_equal(g->members, g->size - 1);
            removed += g->members;
            if (groups >= RUN_GROUPS)
                continue;
            assert_int_equal(g->kept, largest->kept);
            assert_int_equal(g->size, largest->size);
            for (int k = 0; k < largest->members; k++) {
                assert_int_equal(list.member[g->first + (size_t)k].position, largest->member[k]);
                assert_true(list.member[g->first + (size_t)k].similarity == largest->similarity[k]);
            }
        }
        run_group_list_free(&list);
    }
    assert_int_equal(groups, step->groups);
    assert_int_equal(removed, step->removed);
    run_decisions_free(&d);
}

static void check_result(double similarity, int from) {
    assert_int_equal(result.documents, DOCUMENTS);
    assert_int_equal(result.from, from);
    check_step(similarity, &result.own);
    for (int step = result.from; step < RUN_STEPS; step += 5)
        check_step(step / 100.0, &result.step[step]);
    for (int step = 0; step < result.from && step < RUN_STEPS; step++)
        assert_int_equal(result.step[step].removed, 0);
    run_decisions decisions;
    assert_true(run_decide(&result, RUN_STEPS, &decisions));
    for (uint32_t i = 0; i < DOCUMENTS; i++) {
        run_document d;
        char id[32];
        snprintf(id, sizeof id, "pages.jsonl:%u", i + 1);
        assert_int_equal(run_document_find(&result, &decisions, doppel_slice_of(id)), i);
        if (!run_document_read(&result, i, true, &d))
            continue; /* it is in no group */
        assert_int_equal(d.id.length, strlen(id));
        assert_memory_equal(d.id.data, id, d.id.length);
        assert_memory_equal(d.text.data, "shared0 shared1 ", 16);
        run_document_free(&d);
    }
    assert_true(run_document_find(&result, &decisions, doppel_slice_of("pages.jsonl:0")) == RUN_NO_DOCUMENT);
    run_decisions_free(&decisions);
    check_groups(RUN_STEPS, &result.own);
    for (int step = result.from; step < RUN_STEPS; step += 5)
        check_groups(step, &result.step[step]);
}

/* The fewer pairs are allowed, the higher the first threshold; the run's own similarity is there in any case. */
static void many_pairs_raise_the_first_threshold(void **state) {
    static const struct {
        uint64_t pairs;
        int from;
    } cases[] = {{0, 50}, {20000, 50}, {10000, 70}, {4000, 80}, {500, 90}, {10, RUN_STEPS}};
    (void)state;
    int before = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        doppel_error error = {0};
        assert_int_equal(analyse((run_input){.similarity = 0.8, .most_pairs = cases[i].pairs}, &error), DOPPEL_OK);
        check_result(0.8, cases[i].from);
        assert_true(result.from >= before);
        before = result.from;
        run_result_free(&result);
    }
}

/* So does a search that takes too long: it is made at the run's own similarity, then not at all. */
static void a_slow_search_raises_it(void **state) {
    (void)state;
    doppel_error error = {0};
    assert_int_equal(analyse((run_input){.similarity = 0.8, .most_microseconds = 1}, &error), DOPPEL_OK);
    check_result(0.8, RUN_STEPS);
    run_result_free(&result);
    assert_int_equal(stop, RUN_GO_ON);
}

static void what_is_known_of_the_beginning_is_used(void **state) {
    (void)state;
    doppel_error error = {0};
    assert_int_equal(analyse((run_input){.similarity = 0.8, .from = 90}, &error), DOPPEL_OK);
    check_result(0.8, 90);
    run_result_free(&result);
    assert_int_equal(analyse((run_input){.similarity = 0.3, .from = RUN_STEPS}, &error), DOPPEL_OK);
    check_result(0.3, 100);
    run_result_free(&result);
    assert_int_equal(analyse((run_input){.similarity = 0.345}, &error), DOPPEL_OK);
    check_result(0.345, 35);
    run_result_free(&result);
}

static void a_stopped_run_ends(void **state) {
    (void)state;
    doppel_error error = {0};
    stop = RUN_STOP;
    assert_int_equal(analyse((run_input){.similarity = 0.8, .most_microseconds = 1}, &error), DOPPEL_ERROR_INTERRUPTED);
    assert_int_equal(stop, RUN_STOP);
    run_result_free(&result);
    stop = RUN_GO_ON;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_pairs_raise_the_first_threshold),
        cmocka_unit_test(a_slow_search_raises_it),
        cmocka_unit_test(what_is_known_of_the_beginning_is_used),
        cmocka_unit_test(a_stopped_run_ends),
    };
    return cmocka_run_group_tests(tests, write_file, remove_file);
}
