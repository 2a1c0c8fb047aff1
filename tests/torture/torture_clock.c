/* torture_clock.c - a system's clock that jumps at random, by up to thirty years, while processes that last a moment
 * add, check, expire and compact: every document, all of them for 30 days, is there in the end, is found at any time,
 * and those that were added while the clock was right expire in 30 days. */
#include "torture.h"

#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ABOUT: the time of an index runs on by seconds of the machine's, which may be ahead of the clock's by one a jump. */
enum { ABOUT = 300, MONTH = 30 * 86400, EACH = 5, MOST = 10000, YEARS = 30 * 365 };

/* What all processes see. */
typedef struct tt_shared {
    uint64_t added;
    bool wrong[MOST]; /* the clock was, when it was added */
    uint64_t jumps;
} tt_shared;

static tt_shared *shared;
static void (*set_clock)(long seconds);

static void count_jump(doppel_log_level level, const char *line, void *user) {
    (void)level, (void)user;
    shared->jumps += strstr(line, "CLOCK_JUMP") != NULL;
}

static doppel_engine *open_index(const char *folder) {
    doppel_engine_options options = {
        .size = sizeof options, .preset = "crawl", .log = count_jump, .log_level = DOPPEL_LOG_WARNING};
    doppel_engine *engine;
    doppel_error error;
    must(doppel_engine_open(folder, &options, &engine, &error), &error, "open");
    return engine;
}

static bool is_known(doppel_engine *engine, uint64_t number, bool add) {
    plant_room room;
    doppel_item item = plant_item(&(tt_plant){.id = number, .text = number}, &room);
    doppel_verdict verdict = {0};
    doppel_error error;
    must(add ? doppel_engine_add(engine, &item, &verdict, &error)
             : doppel_engine_check(engine, &item, &verdict, &error),
         &error, add ? "add" : "check");
    bool known = verdict.is_duplicate;
    doppel_verdict_free(&verdict);
    return known;
}

/* One process: what it purges is nothing, as no document is a month old. */
static int work(const char *folder, bool wrong_clock) {
    doppel_error error;
    uint64_t expired;
    doppel_engine *engine = open_index(folder);
    for (int i = 0; i < EACH; i++) {
        if (is_known(engine, shared->added, true))
            wrong("document %" PRIu64 " is called a copy", shared->added);
        shared->wrong[shared->added++] = wrong_clock;
    }
    for (uint64_t i = 0; i < shared->added; i++)
        if (!is_known(engine, i, false))
            wrong("document %" PRIu64 " of %" PRIu64 " is not known", i, shared->added);
    must(doppel_engine_expire(engine, &expired, &error), &error, "expire");
    if (expired)
        wrong("%" PRIu64 " documents are purged", expired);
    must(doppel_engine_compact(engine, &error), &error, "compact");
    doppel_engine_close(engine);
    return 0;
}

/* When those expire that were added while the clock was right. */
static void look_through(const char *folder) {
    doppel_engine *engine = open_index(folder);
    doppel_error error;
    uint64_t late = 0, now = (uint64_t)time(NULL);
    for (uint64_t i = 0; i < shared->added; i++) {
        doppel_stored_list list = {0};
        char id[32];
        size_t length = (size_t)snprintf(id, sizeof id, "plant-%" PRIu64, i);
        must(doppel_engine_get(engine, (doppel_slice){id, length}, &list, &error), &error, "get");
        if (list.count != 1)
            wrong("document %" PRIu64 " is not there", i);
        if (!shared->wrong[i] &&
            (list.stored[0].expires > now + MONTH + ABOUT || list.stored[0].expires + 3600 < now + MONTH))
            wrong("document %" PRIu64 " expires at %" PRIu64, i, list.stored[0].expires);
        late += list.stored[0].expires > now + MONTH + ABOUT;
        doppel_stored_list_free(&list);
    }
    doppel_engine_close(engine);
    folder_verify(folder);
    printf("%" PRIu64 " documents are there, none purged early; %" PRIu64
           " that were added under a clock that was ahead stay longer; %" PRIu64 " jumps were logged\n",
           shared->added, late, shared->jumps);
}

int main(int count, char **arguments) {
    if (count < 2)
        wrong("torture_clock SHIM");
    if (!(set_clock = (void (*)(long))(uintptr_t)dlsym(RTLD_DEFAULT, "shim_clock"))) {
        setenv("LD_PRELOAD", arguments[1], 1);
        execv("/proc/self/exe", arguments);
        wrong("it cannot be run again: %s", strerror(errno));
    }
    char scratch[256];
    uint64_t draw = 46, rounds = full_suite() ? 1000 : 60;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        wrong("no memory");
    scratch_create(scratch, sizeof scratch, true);
    const char *folder = beside(scratch, "index");
    for (uint64_t i = 0; i < rounds; i++) {
        bool wrong_clock = i && below(&draw, 2);
        int child = fork();
        if (!child) {
            long days = (long)below(&draw, 2 * YEARS) - YEARS;
            set_clock(wrong_clock ? (days ? days : 2) * 86400L : 0);
            _exit(work(folder, wrong_clock));
        }
        int end = child_end(child);
        if (end)
            wrong("round %" PRIu64 " ended with %d", i, end);
        (void)next_random(&draw);
    }
    look_through(folder);
    tree_remove(scratch);
    return 0;
}
