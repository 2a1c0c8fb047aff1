/* torture_chaos.c - while six threads work and a seventh keeps house, calls keep failing.
 *
 *     torture_chaos SHIM
 *
 * The shim makes every n-th call of a kind fail, for several kinds and n: commits that others rest on fail, and with
 * them all that was decided meanwhile. No crash, no hang; each call says whether it failed; what was acknowledged is
 * there, also for checks by other threads; what was refused is absent or whole; verdicts name only what is there. Then
 * the faults end, the engine continues, and the folder is opened again. */
#include "shim.h"
#include "torture.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 4 };

static const struct tt_kind {
    const char *name;
    int kinds, reason;
    uint64_t every;
} all_kinds[] = {
    {"write", FAULT_WRITE, ENOSPC, 23},
    {"write", FAULT_WRITE, EIO, 5},
    {"short", FAULT_SHORT, ENOSPC, 17},
    {"sync", FAULT_SYNC, EIO, 7},
    {"map", FAULT_MAP, ENOMEM, 2},
    {"open", FAULT_OPEN, EMFILE, 5},
    {"name", FAULT_NAME, EIO, 3},
    {"thread", FAULT_THREAD, EAGAIN, 3},
    {"memory", FAULT_MEMORY, ENOMEM, 211},
    {"memory", FAULT_MEMORY, ENOMEM, 31},
    {"anything", FAULT_WRITE | FAULT_SYNC | FAULT_SIZE | FAULT_OPEN | FAULT_MAP | FAULT_NAME | FAULT_MEMORY, EIO, 97},
};

static void (*arm)(int kinds, uint64_t n, int reason, fault_when when);
static uint64_t (*disarm)(void);
static void (*hold)(bool paused);

typedef struct tt_report {
    pthread_mutex_t lock;
    tt_model *model;
    uint64_t done, refused;
    bool lossy;
} tt_report;

static void report(const tt_step *step, void *user) {
    tt_report *report = user;
    hold(true);
    pthread_mutex_lock(&report->lock);
    report->done += step->phase == STEP_DONE;
    report->refused += step->phase == STEP_REFUSED;
    model_step(report->model, step, report->lossy);
    pthread_mutex_unlock(&report->lock);
    hold(false);
}

static void compare(doppel_engine *engine, tt_model *model, uint64_t now) {
    model_check check = {.engine = engine, .now = now, .samples = 1000, .seed = 3};
    model_compare(model, &check);
}

static void compare_again(const tt_setup *setup, tt_model *model) {
    doppel_engine *engine = setup_open(setup);
    compare(engine, model, setup->now);
    doppel_engine_close(engine);
    folder_verify(setup->folder);
}

static void run_child(const struct tt_kind *kind, uint64_t round, const char *scratch, const char *folder) {
    static const doppel_durability durabilities[] = {DOPPEL_DURABLE_BATCH, DOPPEL_DURABLE_EACH, DOPPEL_DURABLE_BATCH,
                                                     DOPPEL_DURABLE_NONE};
    tt_report reports = {.lock = PTHREAD_MUTEX_INITIALIZER, .model = model_create()};
    tt_setup setup = {.folder = folder,
                      .by_similarity = (round / ROUNDS + round) % 2 == 0,
                      .durability = durabilities[round % 4],
                      .on_duplicate = (doppel_on_duplicate)(DOPPEL_DUPLICATE_SKIP + (int)round % 3),
                      .now = 1700000000};
    tt_load load = {.engine = setup_open(&setup),
                    .seed = round,
                    .round = round,
                    .threads = THREADS,
                    .steps = full_suite() ? 3000 : 300,
                    .now = setup.now,
                    .by_similarity = setup.by_similarity,
                    .keeps_copies = setup.on_duplicate != DOPPEL_DUPLICATE_SKIP,
                    .lossy = setup.durability == DOPPEL_DURABLE_NONE,
                    .tolerant = true,
                    .backups = scratch,
                    .report = report,
                    .user = &reports};
    reports.lossy = load.lossy;
    alarm(full_suite() ? 900 : 120);
    hold(true); /* threads that it starts are not held */
    arm(kind->kinds, kind->every, kind->reason, FAULT_EVERY);
    load_run(&load);
    uint64_t calls = disarm();
    /* Without memory a document that could not be removed may be out of sight until the folder is opened again. */
    if (!(kind->kinds & FAULT_MEMORY) && !load.lossy)
        compare(load.engine, reports.model, setup.now);
    doppel_engine_close(load.engine);
    compare_again(&setup, reports.model);
    printf("%s, every %" PRIu64 " of %" PRIu64 " calls: %" PRIu64 " steps done, %" PRIu64 " refused\n", kind->name,
           kind->every, calls, reports.done, reports.refused);
    fflush(stdout);
    _exit(0);
}

static void set_up(char **arguments) {
    if (!dlsym(RTLD_DEFAULT, "shim_arm")) {
        setenv("LD_PRELOAD", arguments[1], 1);
        execv("/proc/self/exe", arguments);
        wrong("it cannot be run again: %s", strerror(errno));
    }
    *(void **)&arm = dlsym(RTLD_DEFAULT, "shim_arm");
    *(void **)&disarm = dlsym(RTLD_DEFAULT, "shim_disarm");
    *(void **)&hold = dlsym(RTLD_DEFAULT, "shim_pause");
    /* libcrypto does not survive that its own beginnings fail. */
    uint64_t hash;
    if (!arm || !disarm || !hold || doppel_hash("sha256", doppel_slice_of(""), 0, &hash))
        wrong("the shim is not there");
}

int main(int count, char **arguments) {
    char scratch[256], folder[300];
    if (count < 2)
        wrong("torture_chaos SHIM [NUMBER]");
    set_up(arguments);
    size_t kinds = sizeof all_kinds / sizeof *all_kinds, only = count > 2 ? strtoull(arguments[2], NULL, 10) : kinds;
    scratch_create(scratch, sizeof scratch, true);
    for (uint64_t i = 0; i < kinds; i++)
        for (uint64_t round = 1 + i * ROUNDS; round <= (i + 1) * ROUNDS; round++) {
            if (only < kinds && i != only)
                continue;
            snprintf(folder, sizeof folder, "%s/index", scratch);
            tree_remove(folder);
            int child = fork();
            if (!child)
                run_child(&all_kinds[i], round, scratch, folder);
            int end = child_end(child);
            if (end)
                wrong("%s (%" PRIu64 "): %s %d (files are in %s)", all_kinds[i].name, i,
                      end > 256 ? "signal" : "exit code", end & 255, folder);
        }
    tree_remove(scratch);
    return 0;
}
