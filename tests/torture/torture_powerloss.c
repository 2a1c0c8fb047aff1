/* torture_powerloss.c - the power goes at any moment.
 *
 *     torture_powerloss SHIM [KIND]
 *
 * A process works on a folder while the shim writes down each write, sync and change of a name, and each
 * acknowledgement, in one log. For a moment between any two records, and several ways in which what was not synced may
 * be lost (disk.h), what is left is made into files: they open, all that was acknowledged by then is there, what was
 * not is absent or whole, nothing else is there, verify finds nothing, finished backups are whole, and the folder can
 * be written again. Some 60 moments of each kind of work; at full size each of them in each way. */
#include "disk.h"
#include "shim.h"
#include "torture.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 4, MOMENTS = 60 };

/* Kinds of work. Without durability what was acknowledged may be lost, but nothing is damaged. */
static const tt_setup kinds[] = {
    {.by_similarity = true, .on_duplicate = DOPPEL_DUPLICATE_LINK, .durability = DOPPEL_DURABLE_BATCH},
    {.by_similarity = false, .on_duplicate = DOPPEL_DUPLICATE_SKIP, .durability = DOPPEL_DURABLE_EACH},
    {.by_similarity = true, .on_duplicate = DOPPEL_DUPLICATE_STORE, .durability = DOPPEL_DURABLE_NONE},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static tt_setup setup_of(const char *folder, int kind) {
    tt_setup setup = kinds[kind];
    setup.folder = folder;
    setup.now = 1700000000;
    return setup;
}

/* ---- the process that works ---- */

static void (*note)(const void *bytes, size_t length);

static void report(const tt_step *step, void *user) {
    (void)user;
    note(step, sizeof *step);
}

static int work(const char *root, int kind) {
    tt_setup setup = setup_of(beside(root, "index"), kind);
    if (!(*(void **)&note = dlsym(RTLD_DEFAULT, "shim_note")))
        wrong("the shim is not there");
    tt_load load = {.engine = setup_open(&setup),
                    .seed = 7,
                    .round = 1,
                    .threads = THREADS,
                    .steps = full_suite() ? 40 : 25,
                    .now = setup.now,
                    .by_similarity = setup.by_similarity,
                    .keeps_copies = setup.on_duplicate != DOPPEL_DUPLICATE_SKIP,
                    .lossy = setup.durability == DOPPEL_DURABLE_NONE,
                    .backups = root,
                    .report = report};
    load_run(&load);
    doppel_engine_close(load.engine);
    return 0;
}

/* ---- the log ---- */

typedef struct tt_replay {
    int kind;
    char scratch[256];
    char *log;
    size_t length, records;
    tt_disk *disk;
    tt_model *model, *backup, *last_backup;
    uint64_t last_backup_number, states;
} tt_replay;

static void run_work(tt_replay *replay, const char *shim) {
    const char *root = beside(replay->scratch, "root");
    if (mkdir(root, 0777))
        wrong("%s: %s", root, strerror(errno));
    int child = fork();
    if (!child) {
        setenv("TORTURE_ROOT", root, 1);
        setenv("TORTURE_LOG", beside(replay->scratch, "log"), 1);
        setenv("LD_PRELOAD", shim, 1);
        char kind[12];
        snprintf(kind, sizeof kind, "%d", replay->kind);
        execl("/proc/self/exe", "torture_powerloss", "work", root, kind, NULL);
        _exit(127);
    }
    int end = child_end(child);
    if (end)
        wrong("the process that works ended with %d", end);
}

static const log_record *record_at(const tt_replay *replay, size_t at, const char **bytes) {
    const log_record *record = (const log_record *)(const void *)(replay->log + at);
    *bytes = replay->log + at + sizeof *record;
    return record;
}

/* Records are aligned when they are read: each is moved to a multiple of eight bytes. */
static void read_log(tt_replay *replay) {
    FILE *in = fopen(beside(replay->scratch, "log"), "rb");
    log_record record;
    if (!in)
        wrong("there is no log");
    while (fread(&record, sizeof record, 1, in) == 1) {
        size_t room = sizeof record + (record.length + 7) / 8 * 8;
        if (!(replay->log = realloc(replay->log, replay->length + room)))
            wrong("no memory");
        memcpy(replay->log + replay->length, &record, sizeof record);
        if (record.length && fread(replay->log + replay->length + sizeof record, record.length, 1, in) != 1)
            wrong("the log is cut short");
        replay->length += room;
        replay->records++;
    }
    fclose(in);
}

/* ---- what is left ---- */

static void compare(int kind, tt_model *model, const char *folder, uint64_t seed) {
    tt_setup setup = setup_of(folder, kind);
    model_check check = {.engine = setup_open(&setup), .now = setup.now, .samples = 30, .seed = seed};
    model_compare(model, &check);
    /* It can be written again. */
    plant_room room;
    doppel_verdict verdict = {0};
    doppel_error error;
    doppel_item item = plant_item(&(tt_plant){.id = UINT64_MAX, .text = UINT64_MAX, .at = setup.now}, &room);
    must(doppel_engine_add(check.engine, &item, &verdict, &error), &error, "add after the loss");
    if (verdict.is_duplicate)
        wrong("a new document is called a copy");
    doppel_verdict_free(&verdict);
    doppel_engine_close(check.engine);
    folder_verify(folder);
}

static void one_state(tt_replay *replay, size_t moment, disk_left left) {
    char state[300];
    snprintf(state, sizeof state, "%s/state", replay->scratch);
    tree_remove(state);
    if (mkdir(state, 0777))
        wrong("%s: %s", state, strerror(errno));
    disk_write(replay->disk, state, left, moment * 31 + left);
    replay->states++;
    int child = fork();
    if (!child) {
        char name[32];
        alarm(120);
        compare(replay->kind, replay->model, beside(state, "index"), moment);
        snprintf(name, sizeof name, "%" PRIu64, replay->last_backup_number);
        if (replay->last_backup)
            compare(replay->kind, replay->last_backup, beside(state, name), moment);
        _exit(0);
    }
    int end = child_end(child);
    if (end)
        wrong("after record %zu of %zu, way %d of losing: %s %d (files are in %s)", moment, replay->records, left,
              end > 256 ? "signal" : "exit code", end & 255, state);
}

/* ---- moment after moment ---- */

static void take_backup(tt_replay *replay, const tt_step *step) {
    if (step->phase == STEP_OFFERED) {
        model_free(replay->backup);
        replay->backup = model_copy(replay->model);
    } else {
        model_free(replay->last_backup);
        replay->last_backup = replay->backup;
        replay->last_backup_number = step->plant.id;
        replay->backup = NULL;
    }
}

static void take(tt_replay *replay, const log_record *record, const char *bytes) {
    tt_step step;
    disk_apply(replay->disk, record, bytes);
    if (record->type != LOG_NOTE)
        return;
    memcpy(&step, bytes, sizeof step);
    if (step.kind == STEP_BACKUP)
        take_backup(replay, &step);
    model_step(replay->model, &step, kinds[replay->kind].durability == DOPPEL_DURABLE_NONE);
    if (replay->backup)
        model_step(replay->backup, &step, true);
}

static void replay_all(tt_replay *replay) {
    const char *bytes;
    size_t every = full_suite() ? 1 : replay->records / MOMENTS + 1, moment = 0;
    int way = 0;
    for (size_t at = 0; at < replay->length; moment++) {
        const log_record *record = record_at(replay, at, &bytes);
        take(replay, record, bytes);
        at += sizeof *record + (record->length + 7) / 8 * 8;
        if (moment % every)
            continue;
        for (int left = 0; left < LEFT_KINDS; left++)
            if (full_suite() || left == way)
                one_state(replay, moment, (disk_left)left);
        way = (way + 1) % LEFT_KINDS;
    }
    char root[300];
    snprintf(root, sizeof root, "%s/root", replay->scratch);
    disk_compare(replay->disk, root);
}

static void one_kind(int kind, const char *shim) {
    tt_replay replay = {.kind = kind, .disk = disk_create(), .model = model_create()};
    scratch_create(replay.scratch, sizeof replay.scratch, true);
    run_work(&replay, shim);
    read_log(&replay);
    replay_all(&replay);
    printf("work %d: %zu records, %" PRIu64 " states after a loss of power\n", kind, replay.records, replay.states);
    fflush(stdout);
    disk_free(replay.disk);
    model_free(replay.model);
    model_free(replay.backup);
    model_free(replay.last_backup);
    free(replay.log);
    tree_remove(replay.scratch);
}

int main(int count, char **arguments) {
    if (count == 4 && !strcmp(arguments[1], "work"))
        return work(arguments[2], atoi(arguments[3]));
    if (count < 2)
        wrong("torture_powerloss SHIM [KIND]");
    for (int kind = 0; kind < KINDS; kind++)
        if (count < 3 || kind == atoi(arguments[2]))
            one_kind(kind, arguments[1]);
    return 0;
}
