/* torture_faults.c - each call to the system, and each piece of memory that is asked for, fails in its turn.
 *
 *     torture_faults SHIM [KIND [N]]
 *
 * A process does everything an engine can do (scenario.c) while the shim makes the n-th call of a kind fail, or all
 * from the n-th one on, for n from 1 until none is met any more. Each time: no crash, no hang; an error was reported,
 * or all went right; after a single failure the engine continues. Then the folder is opened without faults: what was
 * acknowledged is there, what was not is absent or whole, verify finds nothing. Every n at full size. */
#include "scenario.h"
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct tt_kind {
    const char *name;
    int kinds, reason;
    uint64_t step; /* for a quick run */
} all_kinds[] = {
    {"write", FAULT_WRITE, ENOSPC, 3},
    {"write-error", FAULT_WRITE, EIO, 3},
    {"short", FAULT_SHORT, ENOSPC, 3},
    {"sync", FAULT_SYNC, EIO, 1},
    {"size", FAULT_SIZE, ENOSPC, 1},
    {"open", FAULT_OPEN, EMFILE, 1},
    {"map", FAULT_MAP, ENOMEM, 1},
    {"name", FAULT_NAME, EIO, 1},
    {"thread", FAULT_THREAD, EAGAIN, 1},
    {"memory", FAULT_MEMORY, ENOMEM, 50},
    {"any", FAULT_WRITE | FAULT_SYNC | FAULT_SIZE | FAULT_OPEN | FAULT_MAP | FAULT_NAME | FAULT_MEMORY, EIO, 50},
};

typedef struct tt_torture {
    char scratch[256], folder[300], backup[300];
    tt_outcomes *out; /* shared with children */
    void (*arm)(int kinds, uint64_t n, int reason, fault_when when);
    uint64_t (*disarm)(void);
    uint64_t runs, refused, harmless;
} tt_torture;

typedef struct tt_fault {
    const struct tt_kind *kind;
    uint64_t n;
    bool go_on;
} tt_fault;

__attribute__((noreturn)) static void blame(const tt_torture *torture, const tt_fault *fault, const char *what) {
    wrong("%s %" PRIu64 "%s: %s (first error: %s; files are in %s)", fault->kind->name, fault->n,
          fault->go_on ? " and all after it" : "", what, torture->out->first[0] ? torture->out->first : "none",
          torture->scratch);
}

/* Engines are near by similarity or distance in turn. */
static bool by_distance(const tt_fault *fault) {
    return (fault->n + fault->go_on) % 2 == 0;
}

/* ---- with faults ---- */

static void run_child(const tt_torture *torture, const tt_fault *fault) {
    alarm(60);
    torture->out->by_distance = by_distance(fault);
    torture->arm(fault->kind->kinds, fault->n, fault->kind->reason, fault->go_on ? FAULT_FROM : FAULT_ONCE);
    scenario_run(torture->folder, torture->backup, torture->out);
    torture->out->calls = torture->disarm();
    _exit(0);
}

static void judge(tt_torture *torture, const tt_fault *fault, int end) {
    char what[400];
    if (end == 256 + SIGALRM)
        blame(torture, fault, "it hangs");
    if (end) {
        snprintf(what, sizeof what, "it ended with %s %d", end > 256 ? "signal" : "exit code", end & 255);
        blame(torture, fault, what);
    }
    if (torture->out->surprises) {
        snprintf(what, sizeof what, "no call failed, but this was wrong: %s", torture->out->first_surprise);
        blame(torture, fault, what);
    }
    if (!fault->go_on && torture->out->refusals > 2) {
        snprintf(what, sizeof what, "one fault made %" PRIu64 " calls fail", torture->out->refusals);
        blame(torture, fault, what);
    }
    torture->refused += torture->out->refusals != 0;
    torture->harmless += !torture->out->refusals;
}

/* ---- and without ---- */

static void compare(const tt_torture *torture, tt_model *model, const char *folder) {
    tt_setup setup = scenario_setup(folder, torture->out->by_distance);
    model_check check = {.engine = setup_open(&setup), .now = setup.now, .samples = 60, .seed = 1};
    model_compare(model, &check);
    doppel_engine_close(check.engine);
    folder_verify(folder);
}

static void inspect(const tt_torture *torture) {
    tt_model *model = model_create(), *backup = NULL, *backed_up = NULL;
    for (size_t i = 0; i < torture->out->count; i++) {
        const tt_step *step = &torture->out->steps[i];
        if (step->kind == STEP_BACKUP && step->phase == STEP_OFFERED)
            backup = model_copy(model);
        else if (step->kind == STEP_BACKUP)
            backed_up = backup;
        model_step(model, step, false);
    }
    alarm(60);
    compare(torture, model, torture->folder);
    if (backed_up)
        compare(torture, backed_up, torture->backup);
    _exit(0);
}

static void one_fault(tt_torture *torture, const tt_fault *fault) {
    tree_remove(torture->folder);
    tree_remove(torture->backup);
    memset(torture->out, 0, sizeof *torture->out);
    int child = fork();
    if (!child)
        run_child(torture, fault);
    judge(torture, fault, child_end(child));
    child = fork();
    if (!child)
        inspect(torture);
    if (child_end(child))
        blame(torture, fault, "what is left is not right");
    torture->runs++;
}

static void one_kind(tt_torture *torture, const struct tt_kind *kind, uint64_t only) {
    for (int go_on = 0; go_on < 2; go_on++) {
        uint64_t step = full_suite() ? 1 : kind->step, n = only ? only : 1;
        for (;; n += step) {
            one_fault(torture, &(tt_fault){kind, n, go_on != 0});
            if (only || torture->out->calls < n)
                break;
        }
        printf("%s%s: %" PRIu64 " calls\n", kind->name, go_on ? ", all from then on" : "", torture->out->calls);
        fflush(stdout);
    }
}

static void set_up(tt_torture *torture) {
    scratch_create(torture->scratch, sizeof torture->scratch, true);
    snprintf(torture->folder, sizeof torture->folder, "%s/index", torture->scratch);
    snprintf(torture->backup, sizeof torture->backup, "%s/backup", torture->scratch);
    torture->out = mmap(NULL, sizeof *torture->out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (torture->out == MAP_FAILED)
        wrong("no memory");
    *(void **)&torture->arm = dlsym(RTLD_DEFAULT, "shim_arm");
    *(void **)&torture->disarm = dlsym(RTLD_DEFAULT, "shim_disarm");
    if (!torture->arm || !torture->disarm)
        wrong("the shim is not there");
    /* libcrypto does not survive that its own beginnings fail. */
    uint64_t hash;
    if (doppel_hash("sha256", doppel_slice_of(""), 0, &hash))
        wrong("there is no SHA-256");
}

int main(int count, char **arguments) {
    if (count < 2)
        wrong("torture_faults SHIM [KIND [N]]");
    if (!dlsym(RTLD_DEFAULT, "shim_arm")) {
        setenv("LD_PRELOAD", arguments[1], 1);
        execv("/proc/self/exe", arguments);
        wrong("it cannot be run again: %s", strerror(errno));
    }
    tt_torture torture = {0};
    set_up(&torture);
    for (size_t i = 0; i < sizeof all_kinds / sizeof *all_kinds; i++)
        if (count < 3 || !strcmp(arguments[2], all_kinds[i].name))
            one_kind(&torture, &all_kinds[i], count > 3 ? strtoull(arguments[3], NULL, 10) : 0);
    printf("%" PRIu64 " runs with faults: %" PRIu64 " reported, %" PRIu64 " harmless or not met\n", torture.runs,
           torture.refused, torture.harmless);
    tree_remove(torture.scratch);
    return 0;
}
