/* torture_users.c - readers that run as another user, with a writer that adds, removes and compacts without a pause.
 *
 * Where the group of the folder may read, every run finds what was acknowledged before it began, whole, and every
 * backup verifies. Where it may not, every run is refused, with a message that says what to do: without LMDB's lock a
 * reader would see pages that are written over. Needs root, who alone can become another user. */
#include "torture.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READERS = 2, NOBODY = 65534, NOW = 1700000000, KEPT = 40, PASSING = 1 << 20, MOST_KEPT = 5000 };

typedef struct tt_shared {
    _Atomic uint64_t kept; /* documents 1 to here were acknowledged, and stay */
    _Atomic uint64_t compacted;
    _Atomic bool end;
    _Atomic uint64_t runs, backups, refused;
} tt_shared;

static tt_shared *shared;

static tt_plant plant_of(uint64_t number) {
    return (tt_plant){.id = number, .text = number, .at = NOW};
}

static uint64_t tell_time(void *user) {
    (void)user;
    return NOW;
}

/* ---- the writer ---- */

static void add(doppel_engine *engine, uint64_t number) {
    tt_plant plant = plant_of(number);
    plant_add(engine, &plant);
}

static void forget(doppel_engine *engine, uint64_t number) {
    tt_plant plant = plant_of(number);
    plant_remove(engine, &plant);
}

/* What comes and goes makes pages free, which the next commit uses again. */
static int write_on(const char *folder, bool group) {
    doppel_engine_options options = {.size = sizeof options, .preset = "crawl", .group_readable = group};
    doppel_engine *engine;
    doppel_error error;
    options.keep_text = DOPPEL_SWITCH_ON;
    options.ttl = DOPPEL_NEVER;
    options.now = tell_time;
    must(doppel_engine_open(folder, &options, &engine, &error), &error, "open");
    for (uint64_t i = 1; !shared->end; i++) {
        if (shared->kept < KEPT || (i % 20 == 0 && shared->kept < MOST_KEPT)) {
            add(engine, shared->kept + 1);
            shared->kept++;
        }
        add(engine, PASSING + i);
        if (i > 15)
            forget(engine, PASSING + i - 15);
        if (i % 400 == 0) {
            must(doppel_engine_compact(engine, &error), &error, "compact");
            shared->compacted++;
        }
    }
    doppel_engine_close(engine);
    return 0;
}

/* ---- readers ---- */

static void look_for(doppel_engine *engine, uint64_t number) {
    tt_plant plant = plant_of(number);
    doppel_stored_list list = {0};
    plant_get(engine, &plant, &list);
    if (list.count != 1)
        wrong("document %" PRIu64 " is not there", number);
    const char *differs = plant_differs(&plant, &list.stored[0]);
    if (differs)
        wrong("document %" PRIu64 ": %s", number, differs);
    doppel_stored_list_free(&list);
}

static void back_up(doppel_engine *engine, const char *copy, uint64_t kept) {
    doppel_error error;
    doppel_verified verified;
    must(doppel_engine_backup(engine, copy, &error), &error, "backup");
    must(doppel_engine_verify(copy, NULL, NULL, &verified, &error), &error, "verify of a backup");
    if (verified.documents < kept)
        wrong("a backup has %" PRIu64 " documents, but %" PRIu64 " were acknowledged before", verified.documents, kept);
    tree_remove(copy);
    shared->backups++;
}

/* One run, as of a command: opens, looks, copies, closes. */
static void run(const char *folder, const char *copy, bool group, uint64_t *draw) {
    doppel_engine_options options = {.size = sizeof options, .read_only = true, .must_exist = true};
    doppel_engine *engine;
    doppel_error error = {0};
    uint64_t kept = shared->kept;
    options.now = tell_time;
    doppel_status status = doppel_engine_open(folder, &options, &engine, &error);
    if (status != DOPPEL_OK && group)
        wrong("a reader of the group is refused: %s: %s", error.file, error.message);
    if (status != DOPPEL_OK) {
        if (status != DOPPEL_ERROR_IO || !strstr(error.message, "chgrp") || !strstr(error.file, "mdb-lock"))
            wrong("a refusal says \"%s: %s\"", error.file, error.message);
        shared->refused++;
        return;
    }
    for (int i = 0; i < 20; i++)
        look_for(engine, 1 + below(draw, kept));
    if (below(draw, 2))
        back_up(engine, copy, kept);
    doppel_engine_close(engine);
    shared->runs++;
}

static int read_on(const char *folder, const char *copy, bool group) {
    uint64_t draw = (uint64_t)getpid();
    if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
        wrong("this process cannot become another user: %s", strerror(errno));
    while (!shared->end)
        run(folder, copy, group, &draw);
    return 0;
}

static void trial(const char *scratch, bool group, unsigned seconds) {
    const char *folder = beside(scratch, group ? "granted" : "denied"), *copies = beside(scratch, "copies");
    int child[READERS + 1];
    memset(shared, 0, sizeof *shared);
    if (mkdir(folder, 0755) || mkdir(copies, 0777) || chmod(copies, 0777) || (group && chown(folder, 0, NOBODY)))
        wrong("%s: %s", folder, strerror(errno));
    for (int i = 0; i <= READERS; i++) {
        char copy[400];
        snprintf(copy, sizeof copy, "%s/%d", copies, i);
        if (!(child[i] = fork()))
            _exit(i ? read_on(folder, copy, group) : write_on(folder, group));
        while (shared->kept < KEPT)
            usleep(1000);
    }
    for (unsigned i = 0; i < 10 * seconds; i++)
        usleep(100000);
    shared->end = true;
    for (int i = 0; i <= READERS; i++) {
        int end = child_end(child[i]);
        if (end)
            wrong("%s ended with %d", i ? "a reader" : "the writer", end);
    }
    folder_verify(folder);
    printf("%s, %u s: %" PRIu64 " runs right, %" PRIu64 " refused; %" PRIu64 " backups, all whole; %" PRIu64
           " documents stay, %" PRIu64 " compactions\n",
           group ? "the group may read" : "the group may not read", seconds, shared->runs, shared->refused,
           shared->backups, shared->kept, shared->compacted);
    if (group ? !shared->runs || !shared->backups || shared->refused : shared->runs || !shared->refused)
        wrong("that is not what was to be shown");
    tree_remove(folder);
    tree_remove(copies);
}

int main(void) {
    char scratch[256];
    if (getuid()) {
        printf("SKIPPED: readers that are another user, because only root can become one\n");
        return 0;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    scratch_create(scratch, sizeof scratch, true);
    /* What the umask takes away must not matter. */
    umask(0077);
    if (shared == MAP_FAILED || chmod(scratch, 0755))
        wrong("%s: %s", scratch, strerror(errno));
    trial(scratch, true, full_suite() ? 60 : 3);
    umask(0022);
    trial(scratch, false, full_suite() ? 60 : 2);
    tree_remove(scratch);
    return 0;
}
