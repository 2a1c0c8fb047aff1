/* bench_waits.c - how long single calls wait: one thread adds, one checks, first alone and then while the index is
 * compacted over and over. At the same time a third syncs a file of its own on the same disk, and a fourth computes as
 * long as a check does: their waits are those of the disk and the machine itself.
 *
 *   bench_waits NEAR COUNT FOLDER [SECONDS]
 *
 * NEAR is distance (fingerprints in a Hamming index, which merges its runs as it grows), similarity (keys of bands) or
 * titles (both keys of bands and titles).
 * COUNT documents are there first: a folder that exists is used, and filled up. Each phase takes SECONDS (10), the
 * second at least one compaction.
 *
 * Of the adds one in eight is a duplicate, which is counted at its original, and one in sixteen removes a document that
 * was added before. A sync is what LMDB does for a commit: some pages written, then synced, then one page, then synced.
 * All pause between two calls: on a machine that is always busy, threads wait for its CPUs.
 * Each line of the tables is a bound in milliseconds and how many calls took no longer than that, and longer than the
 * line before. */
#include "doppel.h"
#include "given.h"
#include "measure.h"
#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- waits ---- */

static const double bounds[] = {0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 1e9};
enum { BOUNDS = sizeof bounds / sizeof *bounds };

typedef struct waits {
    uint64_t count[BOUNDS], all;
    double sum, longest; /* seconds */
} waits;

static void wait_add(waits *w, double seconds) {
    int i = 0;
    while (seconds * 1e3 > bounds[i])
        i++;
    w->count[i]++;
    w->all++;
    w->sum += seconds;
    if (seconds > w->longest)
        w->longest = seconds;
}

/* What each thread does. */
enum { ADD, SYNC, CHECK, COMPUTE, THREADS };

static void waits_print(const char *phase, const waits all[THREADS]) {
    printf("%s\n%10s %12s %12s %12s %12s\n", phase, "ms", "add", "sync", "check", "compute");
    for (int i = 0; i < BOUNDS; i++) {
        if (!all[ADD].count[i] && !all[SYNC].count[i] && !all[CHECK].count[i] && !all[COMPUTE].count[i])
            continue;
        if (i + 1 < BOUNDS)
            printf("%10g", bounds[i]);
        else
            printf("%10s", "more");
        for (int j = 0; j < THREADS; j++)
            printf(" %12" PRIu64, all[j].count[i]);
        printf("\n");
    }
    printf("%10s", "all");
    for (int j = 0; j < THREADS; j++)
        printf(" %12" PRIu64, all[j].all);
    printf("\n%10s", "longest");
    for (int j = 0; j < THREADS; j++)
        printf(" %12.2f", all[j].longest * 1e3);
    printf("\n");
    fflush(stdout);
}

/* ---- the threads ---- */

typedef struct bench_load {
    doppel_engine *engine;
    const char *folder;
    given_parts parts;
    uint64_t known;        /* documents there were before */
    _Atomic uint64_t next; /* the next document */
    atomic_bool stop;
    waits waits[THREADS];
} bench_load;

static void check_status(doppel_status status, const doppel_error *error) {
    if (status != DOPPEL_OK)
        bench_fail(error->message, "engine");
}

static void *add_all(void *user) {
    bench_load *l = user;
    doppel_verdict verdict = {0};
    doppel_error error;
    given_document g;
    for (uint64_t i = 1; !atomic_load(&l->stop); i++) {
        uint64_t random = given_mix(i);
        bool removes = i % 16 == 0, known = i % 8 == 1;
        given_make(&g, removes || known ? random % l->known : atomic_fetch_add(&l->next, 1), l->parts);
        double began = process_now();
        if (removes)
            check_status(doppel_engine_remove(l->engine, g.item.document.id, &(bool){false}, &error), &error);
        else
            check_status(doppel_engine_add(l->engine, &g.item, &verdict, &error), &error);
        wait_add(&l->waits[ADD], process_now() - began);
    }
    doppel_verdict_free(&verdict);
    return NULL;
}

/* Microseconds between two checks. */
enum { REST = 50 };

/* One in five was seen. */
static void *check_all(void *user) {
    bench_load *l = user;
    doppel_verdict verdict = {0};
    doppel_error error;
    given_document g;
    for (uint64_t i = 0; !atomic_load(&l->stop); i++) {
        uint64_t random = given_mix(i + (1ULL << 50));
        given_make(&g, i % 5 ? (1ULL << 40) + random % (1ULL << 38) : random % l->known, l->parts);
        double began = process_now();
        check_status(doppel_engine_check(l->engine, &g.item, &verdict, &error), &error);
        wait_add(&l->waits[CHECK], process_now() - began);
        usleep(REST);
    }
    doppel_verdict_free(&verdict);
    return NULL;
}

/* About as long as a check. */
static void *compute_all(void *user) {
    bench_load *l = user;
    for (uint64_t i = 0; !atomic_load(&l->stop); i++) {
        double began = process_now();
        uint64_t random = i;
        for (int j = 0; j < 4000; j++)
            random = given_mix(random + 1);
        wait_add(&l->waits[COMPUTE], process_now() - began + (double)(random == 0));
        usleep(REST);
    }
    return NULL;
}

/* What a small commit writes; it rests as long as it worked, to leave the disk to the others. */
enum { SYNC_PAGES = 24, PAGE = 4096 };

static void sync_once(int file, const char *pages, uint64_t i) {
    off_t at = (off_t)(i % 64 * SYNC_PAGES + 1) * PAGE;
    if (pwrite(file, pages, SYNC_PAGES * PAGE, at) < 0 || fdatasync(file) || pwrite(file, pages, PAGE, 0) < 0 ||
        fdatasync(file))
        bench_fail("cannot be synced", "file");
}

static void *sync_all(void *user) {
    bench_load *l = user;
    char path[4096];
    static char pages[SYNC_PAGES * PAGE];
    snprintf(path, sizeof path, "%s.sync", l->folder);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (file < 0)
        bench_fail("cannot be made", path);
    unlink(path);
    for (uint64_t i = 0; !atomic_load(&l->stop); i++) {
        memset(pages, (int)i, sizeof pages);
        double began = process_now();
        sync_once(file, pages, i);
        double took = process_now() - began;
        wait_add(&l->waits[SYNC], took);
        usleep((useconds_t)(took * 1e6));
    }
    close(file);
    return NULL;
}

/* ---- phases ---- */

static void rest(bench_load *l, double seconds) {
    (void)l;
    usleep((useconds_t)(seconds * 1e6));
}

static void compact_all(bench_load *l, double seconds) {
    doppel_error error;
    double began = process_now();
    int count = 0;
    for (; !count || process_now() - began < seconds; count++)
        check_status(doppel_engine_compact(l->engine, &error), &error);
    process_print("compactions", count);
    process_print("seconds of a compaction", (process_now() - began) / count);
}

static void run_phase(bench_load *l, const char *name, void (*meanwhile)(bench_load *, double), double seconds) {
    void *(*const work[THREADS])(void *) = {
        [ADD] = add_all, [SYNC] = sync_all, [CHECK] = check_all, [COMPUTE] = compute_all};
    pthread_t threads[THREADS];
    memset(l->waits, 0, sizeof l->waits);
    atomic_store(&l->stop, false);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work[i], l))
            bench_fail("no thread", "phase");
    meanwhile(l, seconds);
    atomic_store(&l->stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    waits_print(name, l->waits);
}

/* Numbers are given to removals and counts, too: the next document is one that no run has added. */
static void fill(bench_load *l, uint64_t count) {
    doppel_engine_stats stats;
    doppel_engine_get_stats(l->engine, &stats);
    double began = process_now();
    if (stats.last < count)
        given_add(l->engine, stats.last, count, l->parts);
    process_print("seconds to fill", process_now() - began);
    l->known = count;
    l->next = (stats.last > count ? stats.last : count) + 1;
}

int main(int count, char **arguments) {
    if (count != 4 && count != 5)
        bench_fail("NEAR COUNT FOLDER [SECONDS]", "usage");
    bench_load l = {.folder = arguments[3], .parts = given_named(arguments[1])};
    double seconds = count == 5 ? (double)process_number(arguments[4]) : 10;
    double began = process_now();
    l.engine = given_open(l.folder, l.parts);
    process_print("seconds to open", process_now() - began);
    fill(&l, process_number(arguments[2]));
    run_phase(&l, "nothing beside", rest, seconds);
    run_phase(&l, "beside compactions", compact_all, seconds);
    doppel_engine_close(l.engine);
    return 0;
}
