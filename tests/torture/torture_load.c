/* torture_load.c - eight threads add, replace, link, remove and ask while a ninth compacts, purges and makes backups,
 * with every durability and every way to treat duplicates, near by similarity and by distance: what was said is what is
 * there, before the engine is closed and after it is opened again. For the sanitizers, above all. */
#include "torture.h"

#include <inttypes.h>
#include <pthread.h>

enum { THREADS = 8 };

typedef struct tt_report {
    pthread_mutex_t lock;
    tt_model *model;
} tt_report;

static void report(const tt_step *step, void *user) {
    tt_report *report = user;
    pthread_mutex_lock(&report->lock);
    model_step(report->model, step, false);
    pthread_mutex_unlock(&report->lock);
}

static void compare(doppel_engine *engine, tt_model *model, uint64_t now) {
    model_check check = {.engine = engine, .now = now, .samples = 1000, .seed = 3};
    model_compare(model, &check);
}

static void one_load(const tt_setup *setup, const char *backups, uint64_t round) {
    tt_report reports = {PTHREAD_MUTEX_INITIALIZER, model_create()};
    tt_load load = {.engine = setup_open(setup),
                    .seed = round,
                    .round = round,
                    .threads = THREADS,
                    .steps = full_suite() ? 2000 : 100,
                    .now = setup->now,
                    .by_similarity = setup->by_similarity,
                    .keeps_copies = setup->on_duplicate != DOPPEL_DUPLICATE_SKIP,
                    .lossy = setup->durability == DOPPEL_DURABLE_NONE,
                    .backups = backups,
                    .report = report,
                    .user = &reports};
    load_run(&load);
    if (!load.lossy)
        compare(load.engine, reports.model, setup->now);
    doppel_engine_close(load.engine);
    load.engine = setup_open(setup);
    compare(load.engine, reports.model, setup->now);
    printf("near by %s, durability %d, duplicates %d: %" PRIu64 " documents\n",
           setup->by_similarity ? "similarity" : "distance", setup->durability, setup->on_duplicate,
           model_count(reports.model));
    fflush(stdout);
    doppel_engine_close(load.engine);
    folder_verify(setup->folder);
    model_free(reports.model);
}

int main(void) {
    char scratch[256], folder[300];
    uint64_t round = 1;
    scratch_create(scratch, sizeof scratch, false);
    for (int durability = DOPPEL_DURABLE_NONE; durability <= DOPPEL_DURABLE_EACH; durability++)
        for (int near = 0; near < 2; near++, round++) {
            tt_setup setup = {.folder = folder,
                              .by_similarity = near == 0,
                              .durability = (doppel_durability)durability,
                              .on_duplicate = (doppel_on_duplicate)(DOPPEL_DUPLICATE_SKIP + (int)round % 3),
                              .now = 1700000000};
            snprintf(folder, sizeof folder, "%s/index-%" PRIu64, scratch, round);
            one_load(&setup, scratch, round);
        }
    tree_remove(scratch);
    return 0;
}
