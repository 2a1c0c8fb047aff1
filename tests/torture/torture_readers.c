/* torture_readers.c - one process writes, three read: what was acknowledged they see a moment later, what was never
 * offered they do not see, and what was removed they see no more, while the writer compacts, is killed, and another
 * takes its place.
 *
 * All share a state for each document, which the writer sets before and after each call. */
#include "torture.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { READERS = 3, MOST = 200000, AHEAD = 20 };
/* A moment: what a reader sees late is later than it should be on a machine that is busy. */
#define MOMENT 10.0

enum { NOT_OFFERED, OFFERED, THERE, REMOVING, GONE };

typedef struct tt_shared {
    _Atomic uint64_t last; /* that was offered */
    _Atomic bool end;
    _Atomic uint8_t state[MOST];
    _Atomic uint64_t compacted, writers;
    struct {
        uint64_t checks, opened;
        double worst; /* seconds until something was seen */
    } reader[READERS];
} tt_shared;

static tt_shared *shared;

static tt_setup setup_of(const char *folder, bool read_only) {
    return (tt_setup){.folder = folder, .by_similarity = true, .read_only = read_only, .now = 1700000000};
}

static tt_plant plant_of(uint64_t number) {
    return (tt_plant){.id = number, .text = number, .at = 1700000000};
}

/* ---- the writer ---- */

static void add(doppel_engine *engine, uint64_t number) {
    tt_plant plant = plant_of(number);
    shared->state[number] = OFFERED;
    shared->last = number;
    if (plant_add(engine, &plant))
        wrong("plant %" PRIu64 " is called a copy", number);
    shared->state[number] = THERE;
}

static void forget(doppel_engine *engine, uint64_t number) {
    tt_plant plant = plant_of(number);
    shared->state[number] = REMOVING;
    plant_remove(engine, &plant);
    shared->state[number] = GONE;
}

static void *compact(void *given) {
    doppel_error error;
    while (!shared->end) {
        usleep(50000 + (useconds_t)shared->last % 7 * 20000);
        must(doppel_engine_compact(given, &error), &error, "compact");
        shared->compacted++;
    }
    return NULL;
}

/* What the writer before was at when it was killed is there or not. */
static void settle(doppel_engine *engine) {
    for (uint64_t i = 1; i <= shared->last; i++) {
        doppel_stored_list list = {0};
        tt_plant plant = plant_of(i);
        if (shared->state[i] != OFFERED && shared->state[i] != REMOVING)
            continue;
        plant_get(engine, &plant, &list);
        shared->state[i] = list.count ? THERE : GONE;
        doppel_stored_list_free(&list);
    }
}

static int write_all(const char *folder) {
    tt_setup setup = setup_of(folder, false);
    doppel_engine *engine = setup_open(&setup);
    pthread_t thread;
    settle(engine);
    if (pthread_create(&thread, NULL, compact, engine))
        wrong("no thread");
    for (uint64_t i = shared->last + 1; i < MOST && !shared->end; i++) {
        add(engine, i);
        if (i > 10 && i % 5 == 0 && shared->state[i - 7] == THERE)
            forget(engine, i - 7);
    }
    pthread_join(thread, NULL);
    doppel_engine_close(engine);
    return 0;
}

/* One writer after the other; all but the last are killed. */
static void write_in_turns(const char *folder, double seconds) {
    uint64_t draw = 9;
    double until = seconds_now() + seconds;
    for (;;) {
        double turn = 0.3 + (double)below(&draw, 1000) / 1000;
        bool last = seconds_now() + turn > until;
        int child = fork();
        if (!child)
            _exit(write_all(folder));
        usleep((useconds_t)(1e6 * (last ? 1 : turn)));
        shared->writers++;
        if (last) {
            shared->end = true;
            int end = child_end(child);
            if (end)
                wrong("the last writer ended with %d", end);
            return;
        }
        kill(child, SIGKILL);
        int end = child_end(child);
        shared->end = end != 256 + SIGKILL;
        if (shared->end)
            wrong("a writer ended by itself, with %d", end);
    }
}

/* ---- readers ---- */

static bool sees(doppel_engine *engine, uint64_t number) {
    plant_room room;
    tt_plant plant = plant_of(number);
    doppel_item item = plant_item(&plant, &room);
    doppel_verdict verdict = {0};
    doppel_error error;
    item.document.id.data = item.document.url.data = item.document.title.data = NULL;
    item.document.id.length = item.document.url.length = item.document.title.length = 0;
    must(doppel_engine_check(engine, &item, &verdict, &error), &error, "check");
    uint64_t original = 0;
    if (verdict.is_duplicate && (!plant_number(verdict.original_id, &original) || original != number))
        wrong("plant %" PRIu64 " is called a copy of another", number);
    doppel_verdict_free(&verdict);
    return original != 0;
}

static void get_whole(doppel_engine *engine, uint64_t number) {
    tt_plant plant = plant_of(number);
    doppel_stored_list list = {0};
    plant_get(engine, &plant, &list);
    if (list.count && plant_differs(&plant, &list.stored[0]))
        wrong("plant %" PRIu64 " as a reader gets it has another %s", number, plant_differs(&plant, &list.stored[0]));
    doppel_stored_list_free(&list);
}

/* Looks at one document; gives how long it took until it was seen as it should be. */
static double look(doppel_engine *engine, uint64_t number) {
    double from = seconds_now();
    for (;;) {
        uint8_t before = shared->state[number];
        bool seen = sees(engine, number);
        uint8_t after = shared->state[number];
        if (seen && after == NOT_OFFERED)
            wrong("a reader sees plant %" PRIu64 ", which was never offered", number);
        bool settled = before == after && (before == THERE || before == GONE);
        if (!settled || seen == (before == THERE))
            return seconds_now() - from;
        if (seconds_now() - from > MOMENT)
            wrong("after %.0f s a reader %s plant %" PRIu64, MOMENT, seen ? "still sees" : "does not see", number);
        usleep(1000);
    }
}

static int read_all(const char *folder, int number) {
    tt_setup setup = setup_of(folder, true);
    uint64_t draw = (uint64_t)number;
    while (shared->last < 2)
        usleep(1000);
    while (!shared->end) {
        doppel_engine *engine = setup_open(&setup);
        shared->reader[number].opened++;
        double until = seconds_now() + 0.5 + number;
        while (!shared->end && seconds_now() < until) {
            uint64_t last = shared->last, one = 1 + below(&draw, last + AHEAD);
            if (below(&draw, 2)) /* something new */
                one = last > AHEAD ? last - AHEAD + below(&draw, 2 * AHEAD) : one;
            double took = look(engine, one < MOST ? one : 1);
            if (took > shared->reader[number].worst)
                shared->reader[number].worst = took;
            if (++shared->reader[number].checks % 16 == 0)
                get_whole(engine, one);
        }
        doppel_engine_close(engine);
    }
    return 0;
}

/* ---- all of them ---- */

int main(void) {
    char scratch[256], folder[300];
    int children[READERS];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        wrong("no memory");
    scratch_create(scratch, sizeof scratch, false);
    snprintf(folder, sizeof folder, "%s/index", scratch);
    for (int i = 0; i < READERS; i++) {
        children[i] = fork();
        if (!children[i])
            _exit(read_all(folder, i));
    }
    write_in_turns(folder, full_suite() ? 60 : 8);
    for (int i = 0; i < READERS; i++) {
        int end = child_end(children[i]);
        if (end)
            wrong("a reader ended with %d", end);
    }
    folder_verify(folder);
    printf("%" PRIu64 " documents by %" PRIu64 " writers, compacted %" PRIu64 " times\n", (uint64_t)shared->last,
           (uint64_t)shared->writers, (uint64_t)shared->compacted);
    for (int i = 0; i < READERS; i++)
        printf("reader %d: %" PRIu64 " looks, opened %" PRIu64 " times, waited %.3f s at most\n", i + 1,
               shared->reader[i].checks, shared->reader[i].opened, shared->reader[i].worst);
    tree_remove(scratch);
    return 0;
}
