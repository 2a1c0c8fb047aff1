/* torture_kill.c - a process that adds, removes and keeps house from eight threads is killed at a random moment, over
 * and over, on the same folder.
 *
 * The child reports each step before it is tried, and each acknowledgement, through a pipe. After the kill: what was
 * acknowledged is there, what was not is absent or whole, nothing else is there, verify finds nothing, finished backups
 * are whole, and the next round continues with what is there. Without durability acknowledged documents may be missing,
 * but nothing is damaged and nothing invented. 20 kills, 200 at full size. */
#include "torture.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS_A_FOLDER = 20, MOST_BACKUPS = 64 };

/* What a round is like follows from its number. */
static tt_setup setup_of(const char *folder, uint64_t round) {
    static const doppel_durability durabilities[] = {DOPPEL_DURABLE_BATCH, DOPPEL_DURABLE_EACH, DOPPEL_DURABLE_BATCH,
                                                     DOPPEL_DURABLE_NONE};
    static const doppel_on_duplicate ways[] = {DOPPEL_DUPLICATE_SKIP, DOPPEL_DUPLICATE_LINK, DOPPEL_DUPLICATE_STORE};
    return (tt_setup){.folder = folder,
                      .by_similarity = (round - 1) / ROUNDS_A_FOLDER % 2 == 0,
                      .durability = durabilities[round % 4],
                      .on_duplicate = ways[round % 3],
                      .now = 1700000000 + 1000 * round};
}

/* ---- the child ---- */

static void report(const tt_step *step, void *user) {
    if (write(*(const int *)user, step, sizeof *step) != sizeof *step)
        _exit(1);
}

static int run_child(char **given) {
    uint64_t round = strtoull(given[2], NULL, 10);
    int to = atoi(given[3]);
    tt_setup setup = setup_of(given[0], round);
    tt_load load = {.engine = setup_open(&setup),
                    .seed = strtoull(given[4], NULL, 10),
                    .round = round,
                    .threads = THREADS,
                    .now = setup.now,
                    .by_similarity = setup.by_similarity,
                    .lossy = setup.durability == DOPPEL_DURABLE_NONE,
                    .keeps_copies = setup.on_duplicate != DOPPEL_DUPLICATE_SKIP,
                    .backups = given[1],
                    .report = report,
                    .user = &to};
    report(&(tt_step){.kind = STEP_READY}, &to);
    load_run(&load);
    return 1;
}

/* ---- the parent ---- */

typedef struct tt_torture {
    char scratch[256];
    const char *folder, *backups;
    uint64_t state, round, acknowledged, all_backups;
    bool in_folder;           /* its child has opened the folder */
    tt_model *model, *backup; /* backup: as it may be in the one that is being made */
    uint64_t backup_number;
    struct {
        tt_model *model;
        uint64_t number;
    } backed_up[MOST_BACKUPS];
    size_t backed_up_count;
} tt_torture;

static int start_child(tt_torture *torture, int *from) {
    int ends[2];
    if (pipe(ends))
        wrong("no pipe: %s", strerror(errno));
    int child = fork();
    if (child < 0)
        wrong("no process: %s", strerror(errno));
    if (!child) {
        char round[24], to[24], seed[24];
        close(ends[0]);
        snprintf(round, sizeof round, "%" PRIu64, torture->round);
        snprintf(to, sizeof to, "%d", ends[1]);
        snprintf(seed, sizeof seed, "%" PRIu64, next_random(&torture->state) % 1000000);
        execl("/proc/self/exe", "torture_kill", "child", torture->folder, torture->backups, round, to, seed, NULL);
        _exit(127);
    }
    close(ends[1]);
    *from = ends[0];
    return child;
}

static void take_backup(tt_torture *torture, const tt_step *step) {
    if (step->phase == STEP_OFFERED) {
        model_free(torture->backup);
        torture->backup = model_copy(torture->model);
    } else if (torture->backed_up_count < MOST_BACKUPS) {
        torture->backed_up[torture->backed_up_count].number = step->plant.id;
        torture->backed_up[torture->backed_up_count++].model = torture->backup;
        torture->backup = NULL;
    }
}

static void take(tt_torture *torture, const tt_step *step) {
    bool lossy = setup_of(torture->folder, torture->round).durability == DOPPEL_DURABLE_NONE;
    torture->acknowledged += step->phase == STEP_DONE;
    torture->in_folder = true;
    if (step->kind == STEP_BACKUP)
        take_backup(torture, step);
    model_step(torture->model, step, lossy);
    if (torture->backup)
        model_step(torture->backup, step, true);
}

/* Reads what the child says until it ends; kills it at `deadline`. */
static void follow(tt_torture *torture, int child, int from, double deadline) {
    tt_step step;
    size_t got = 0;
    bool killed = false;
    for (;;) {
        double left = deadline - seconds_now();
        struct pollfd waiting = {.fd = from, .events = POLLIN};
        if (!killed && (left <= 0 || !poll(&waiting, 1, (int)(left * 1000)))) {
            kill(child, SIGKILL);
            killed = true;
        }
        ssize_t more = read(from, (char *)&step + got, sizeof step - got);
        if (more <= 0)
            break;
        got += (size_t)more;
        if (got < sizeof step)
            continue;
        got = 0;
        take(torture, &step);
    }
    close(from);
    int end = child_end(child);
    if (end != 256 + SIGKILL)
        wrong("round %" PRIu64 ": the child ended by itself, with %d", torture->round, end);
}

static void compare(tt_torture *torture, tt_model *model, const char *folder, uint64_t samples) {
    tt_setup setup = setup_of(folder, torture->round);
    model_check check = {.engine = setup_open(&setup), .now = setup.now, .samples = samples, .seed = torture->state};
    model_compare(model, &check);
    doppel_engine_close(check.engine);
    folder_verify(folder);
}

/* A process that only reads finds the same, before anyone has opened it to write; but a folder that was not made yet.
 */
static void compare_reading(tt_torture *torture) {
    tt_setup setup = setup_of(torture->folder, torture->round);
    doppel_engine *engine;
    doppel_error error;
    setup.read_only = true;
    doppel_status status = setup_try(&setup, &engine, &error);
    if (status != DOPPEL_OK && !torture->in_folder)
        return;
    must(status, &error, "open to read");
    tt_model *model = model_copy(torture->model);
    model_check check = {.engine = engine, .now = setup.now, .samples = 100, .seed = torture->state};
    model_compare(model, &check);
    doppel_engine_close(engine);
    model_free(model);
}

static void compare_backups(tt_torture *torture) {
    for (size_t i = 0; i < torture->backed_up_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%" PRIu64, torture->backed_up[i].number);
        compare(torture, torture->backed_up[i].model, beside(torture->backups, name), 50);
        model_free(torture->backed_up[i].model);
    }
    torture->all_backups += torture->backed_up_count;
    torture->backed_up_count = 0;
    model_free(torture->backup);
    torture->backup = NULL;
    tree_remove(torture->backups);
}

static void begin_folder(tt_torture *torture) {
    tree_remove(torture->folder);
    torture->in_folder = false;
    model_free(torture->model);
    torture->model = model_create();
}

static void one_round(tt_torture *torture) {
    int from;
    if (torture->round % ROUNDS_A_FOLDER == 1 || ROUNDS_A_FOLDER == 1)
        begin_folder(torture);
    if (access(torture->backups, F_OK) && mkdir(torture->backups, 0777))
        wrong("%s: %s", torture->backups, strerror(errno));
    /* From while it opens to a second of work. */
    double wait = torture->round % 5 == 4 ? 0.03 : 0.7;
    int child = start_child(torture, &from);
    follow(torture, child, from, seconds_now() + wait * (double)below(&torture->state, 1000) / 1000);
    compare_reading(torture);
    /* A folder that was killed while it was made is made by this opening. */
    compare(torture, torture->model, torture->folder, 300);
    torture->in_folder = true;
    compare_backups(torture);
}

int main(int count, char **arguments) {
    if (count == 7 && !strcmp(arguments[1], "child"))
        return run_child(arguments + 2);
    tt_torture torture = {.state = count > 1 ? strtoull(arguments[1], NULL, 10) : 1};
    uint64_t rounds = full_suite() ? 200 : 20;
    scratch_create(torture.scratch, sizeof torture.scratch, false);
    char folder[300], backups[300];
    torture.folder = strcpy(folder, beside(torture.scratch, "index"));
    torture.backups = strcpy(backups, beside(torture.scratch, "backups"));
    for (torture.round = 1; torture.round <= rounds; torture.round++)
        one_round(&torture);
    printf("%" PRIu64 " kills: %" PRIu64 " steps acknowledged, %" PRIu64 " documents at the end, %" PRIu64
           " backups compared\n",
           rounds, torture.acknowledged, model_count(torture.model), torture.all_backups);
    model_free(torture.model);
    tree_remove(torture.scratch);
    return 0;
}
