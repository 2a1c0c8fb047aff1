/* overlap.c - documents that contain much of one another: read, who shares hashes, what do they share. */
#include "batch/overlap.h"
#include "input/input.h"
#include "sketch/sketch.h"

#include <stdlib.h>

/* Hashes take most of the memory while documents are read, hits while hashes are gone through; digests are few. The
 * hashes' sorter then holds parts of its runs, within its own share. */
static void init_sorters(dp_overlap_work *work) {
    dp_sorter_options options = {.tmp = work->options.tmp, .stop = work->input.stop};
    options.words = 3, options.keys = 2, options.memory = work->memory / 8;
    dp_sorter_init(&work->digests, &options);
    options.words = 2, options.keys = 1, options.memory = work->memory / 2;
    dp_sorter_init(&work->samples, &options);
    /* Where hits are not counted, one of each pair is enough. */
    options.words = 1, options.unique = !work->plan.sample, options.memory = work->memory / 8 * 3;
    dp_sorter_init(&work->hits, &options);
}

static doppel_status prepare(dp_overlap_work *work, const doppel_overlap_options *options, doppel_error *error) {
    if (options)
        dp_copy_options(&work->options, options, sizeof work->options);
    if (work->options.input)
        dp_copy_options(&work->input, work->options.input, sizeof work->input);
    work->input.size = sizeof work->input;
    work->recipe = work->options.recipe ? work->options.recipe : dp_recipe_default();
    work->threads = dp_thread_count(work->input.threads);
    work->memory = work->options.memory ? work->options.memory : dp_memory_default();
    doppel_status status = dp_overlap_plan_make(&work->options, work->recipe, &work->plan, error);
    init_sorters(work);
    return status == DOPPEL_OK ? dp_spill_open(&work->texts, NULL, NULL, work->options.tmp, error) : status;
}

/* Whether there are texts to compare with. */
static doppel_status check_against(const char *path, bool refuse, doppel_error *error) {
    char file[4096];
    if (dp_is_index(path))
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "is an index, and overlaps are found in texts: give the documents, or, if it keeps texts, "
                          "what doppel export --index DIR -o FILE writes");
    if (dp_is_journal(path) || dp_is_work(path, file))
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "holds sketches, and overlaps are found in texts: give the documents");
    if (refuse && dp_input_is_empty_folder(path))
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, path, 0, "is an empty folder: there is nothing to compare with");
    return DOPPEL_OK;
}

static doppel_status read_against(dp_overlap_work *work, doppel_error *error) {
    const doppel_overlap_options *options = &work->options;
    doppel_input_options input = work->input;
    doppel_status status = DOPPEL_OK;
    if (options->against_input)
        dp_copy_options(&input, options->against_input, sizeof input);
    input.size = sizeof input;
    for (size_t i = 0; i < options->against_count && status == DOPPEL_OK; i++)
        status = check_against(options->against[i], input.refuse_bad, error);
    if (status == DOPPEL_OK)
        status = dp_overlap_read(work, options->against, options->against_count, &input, &work->counts.against, error);
    if (status == DOPPEL_OK && input.refuse_bad && work->counts.against.unopened)
        status = dp_fail(error, DOPPEL_ERROR_INPUT,
                         "not all that is to be compared with could be read; --allow-bad goes on without it");
    if (status == DOPPEL_OK && input.refuse_bad && !work->counts.against.documents && work->counts.against.bytes)
        status = dp_fail_at(error, DOPPEL_ERROR_INPUT, options->against[0], 0,
                            "has no document: there is nothing to compare with");
    return status;
}

static doppel_status read_all(dp_overlap_work *work, const char *const *paths, size_t path_count, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    work->against = SIZE_MAX;
    if (work->options.against_count)
        status = read_against(work, error);
    work->against = work->count;
    return status == DOPPEL_OK ? dp_overlap_read(work, paths, path_count, &work->input, &work->counts.input, error)
                               : status;
}

static void free_work(dp_overlap_work *work) {
    dp_spill_close(&work->texts);
    dp_sorter_free(&work->digests);
    dp_sorter_free(&work->samples);
    dp_sorter_free(&work->hits);
    free(work->at);
    free(work->seen);
    free(work->first);
    free(work->live);
    free(work->frequent);
}

doppel_status doppel_overlap_find(const char *const *paths, size_t path_count, const doppel_overlap_options *options,
                                  doppel_overlap_counts *counts, doppel_error *error) {
    dp_overlap_work work = {.count = 0};
    doppel_status status = prepare(&work, options, error);
    if (status == DOPPEL_OK)
        status = read_all(&work, paths, path_count, error);
    if (status == DOPPEL_OK)
        status = dp_overlap_find_hits(&work, error);
    if (status == DOPPEL_OK)
        status = dp_overlap_verify(&work, error);
    if (counts)
        *counts = work.counts;
    free_work(&work);
    return status;
}
