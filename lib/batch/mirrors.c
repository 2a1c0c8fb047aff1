/* mirrors.c - hosts and prefixes that mirror each other: read, meet, compare, and give in order of their names. */
#include "batch/mirrors.h"
#include "sketch/sketch.h"

#include <math.h>
#include <stdlib.h>

#define USUAL_PATHS 3
#define USUAL_SCORE 0.5
#define USUAL_SIMILARITY 0.8

/* A mirror with its names. */
typedef struct named {
    dp_mirror_pair pair;
    dp_buffer a, b;
} named;

static bool is_share(double share) {
    return share > 0 && share <= 1;
}

static doppel_status find_page(dp_mirrors_work *work, doppel_error *error) {
    dp_buffer canonical = {0};
    bool found = false;
    doppel_slice url = {work->options.page, strlen(work->options.page)};
    doppel_status status = dp_mirror_locate(&work->page, url, work->options.url_without, &canonical, &found);
    dp_buffer_free(&canonical);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "%s", doppel_status_name(status));
    return found ? DOPPEL_OK : dp_fail(error, DOPPEL_ERROR_USAGE, "%s is no http URL", url.data);
}

static doppel_status prepare(dp_mirrors_work *work, const doppel_mirrors_options *given, doppel_error *error) {
    doppel_mirrors_options *options = &work->options;
    if (given)
        dp_copy_options(options, given, sizeof *options);
    if (options->input)
        dp_copy_options(&work->input, options->input, sizeof work->input);
    work->input.size = sizeof work->input;
    options->min_paths = options->min_paths ? options->min_paths : USUAL_PATHS;
    options->min_score = options->min_score == 0 ? USUAL_SCORE : options->min_score;
    options->similarity = options->similarity == 0 ? USUAL_SIMILARITY : options->similarity;
    if (!is_share(options->min_score) || !is_share(options->similarity))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "the score and the similarity are above 0 and at most 1");
    work->recipe = options->recipe ? options->recipe : dp_recipe_default();
    work->memory = options->memory ? options->memory : dp_memory_default();
    work->least_slots = (unsigned)ceil(options->similarity * DP_MIRROR_SLOTS);
    dp_sorter_init(&work->pages, &(dp_sorter_options){.words = sizeof(dp_mirror_page) / 8,
                                                      .keys = DP_MIRROR_KEYS,
                                                      .memory = work->memory,
                                                      .tmp = options->tmp,
                                                      .stop = work->input.stop});
    doppel_status status = dp_spill_open(&work->urls, NULL, NULL, options->tmp, error);
    return status == DOPPEL_OK && options->page ? find_page(work, error) : status;
}

/* ---- giving ---- */

static int by_name(const void *x, const void *y) {
    const named *a = x, *b = y;
    int order = strcmp(a->a.data, b->a.data);
    return order ? order : strcmp(a->b.data, b->b.data);
}

static void turn(named *mirror) {
    dp_mirror_pair *pair = &mirror->pair;
    dp_buffer name = mirror->a;
    mirror->a = mirror->b;
    mirror->b = name;
    *pair = (dp_mirror_pair){pair->b, pair->a, pair->b_depth, pair->a_depth, pair->shared, pair->matching};
}

static doppel_status name_all(const dp_mirrors_work *work, named *mirrors, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < work->pair_count && status == DOPPEL_OK; i++) {
        named *mirror = &mirrors[i];
        mirror->pair = work->pairs[i];
        status = dp_mirror_name(work, &work->table[mirror->pair.a], mirror->pair.a_depth, &mirror->a, error);
        if (status == DOPPEL_OK)
            status = dp_mirror_name(work, &work->table[mirror->pair.b], mirror->pair.b_depth, &mirror->b, error);
        if (status == DOPPEL_OK && strcmp(mirror->a.data, mirror->b.data) > 0)
            turn(mirror);
    }
    if (status == DOPPEL_OK)
        qsort(mirrors, work->pair_count, sizeof *mirrors, by_name);
    return status;
}

static doppel_status give(dp_mirrors_work *work, const named *mirror, const char *page, doppel_error *error) {
    const dp_mirror_pair *pair = &mirror->pair;
    doppel_mirror given = {.a = mirror->a.data,
                           .b = mirror->b.data,
                           .shared = pair->shared,
                           .matching = pair->matching,
                           .score = (double)pair->matching / (double)pair->shared,
                           .page = page};
    work->counts.mirrors++;
    doppel_status status = work->options.mirror ? work->options.mirror(&given, work->options.user) : DOPPEL_OK;
    return status == DOPPEL_OK ? status : dp_fail(error, status, "%s", doppel_status_name(status));
}

/* Gives the mirror if the page is below A, with the same page of B. */
static doppel_status give_page(dp_mirrors_work *work, const named *mirror, doppel_error *error) {
    const dp_mirror_pair *pair = &mirror->pair;
    const dp_mirror_page *a = &work->table[pair->a], *page = &work->page;
    dp_buffer url = {0};
    if (page->host != a->host || memcmp(page->segment, a->segment, pair->a_depth * sizeof *page->segment) != 0)
        return DOPPEL_OK;
    dp_mirror_range range = dp_mirror_below(work, &work->table[pair->b], pair->b_depth);
    size_t at = dp_mirror_seek(work, range, pair->b_depth, page, pair->a_depth);
    bool there = at < range.end && !dp_mirror_order(&work->table[at], pair->b_depth, page, pair->a_depth);
    doppel_status status = there ? dp_mirror_url(work, &work->table[at], &url, error) : DOPPEL_OK;
    if (status == DOPPEL_OK)
        status = give(work, mirror, there ? url.data : NULL, error);
    dp_buffer_free(&url);
    return status;
}

static doppel_status give_page_all(dp_mirrors_work *work, named *mirrors, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < work->pair_count && status == DOPPEL_OK; i++) {
        status = give_page(work, &mirrors[i], error);
        turn(&mirrors[i]);
        if (status == DOPPEL_OK)
            status = give_page(work, &mirrors[i], error);
    }
    return status;
}

static doppel_status give_all(dp_mirrors_work *work, doppel_error *error) {
    named *mirrors = calloc(work->pair_count + 1, sizeof *mirrors);
    doppel_status status = mirrors ? name_all(work, mirrors, error) : dp_no_memory(error);
    if (status == DOPPEL_OK && work->options.page)
        status = give_page_all(work, mirrors, error);
    else
        for (size_t i = 0; i < work->pair_count && status == DOPPEL_OK; i++)
            status = give(work, &mirrors[i], NULL, error);
    for (size_t i = 0; mirrors && i < work->pair_count; i++) {
        dp_buffer_free(&mirrors[i].a);
        dp_buffer_free(&mirrors[i].b);
    }
    free(mirrors);
    return status;
}

/* ---- the call ---- */

static void free_work(dp_mirrors_work *work) {
    dp_mirrors_free_table(work);
    dp_sorter_free(&work->pages);
    dp_sorter_free(&work->hits);
    free(work->pairs);
}

doppel_status doppel_mirrors_find(const char *const *paths, size_t path_count, const doppel_mirrors_options *options,
                                  doppel_mirrors_counts *counts, doppel_error *error) {
    dp_mirrors_work work = {.count = 0};
    doppel_status status = prepare(&work, options, error);
    if (status == DOPPEL_OK)
        status = dp_mirrors_read(&work, paths, path_count, error);
    if (status == DOPPEL_OK)
        status = dp_mirrors_make_table(&work, error);
    if (status == DOPPEL_OK)
        status = dp_mirrors_meet(&work, error);
    if (status == DOPPEL_OK)
        status = dp_mirrors_compare(&work, error);
    if (status == DOPPEL_OK)
        status = give_all(&work, error);
    if (counts)
        *counts = work.counts;
    free_work(&work);
    return status;
}
