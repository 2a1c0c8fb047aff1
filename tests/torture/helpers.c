/* helpers.c - small things that all of the programs need. */
#include "torture.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool full_suite(void) {
    const char *suite = getenv("DOPPEL_SUITE");
    return suite && !strcmp(suite, "full");
}

void wrong(const char *what, ...) {
    va_list rest;
    va_start(rest, what);
    fprintf(stderr, "WRONG: ");
    vfprintf(stderr, what, rest);
    fputc('\n', stderr);
    va_end(rest);
    _exit(1);
}

void must(doppel_status status, const doppel_error *error, const char *what) {
    if (status != DOPPEL_OK)
        wrong("%s: %s: %s %s", what, doppel_status_name(status), error->file, error->message);
}

uint64_t next_random(uint64_t *state) {
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

uint64_t below(uint64_t *state, uint64_t limit) {
    return next_random(state) % limit;
}

void scratch_create(char *path, size_t room, bool quick) {
    const char *tmp = getenv("TMPDIR");
    if (!tmp && quick && !access("/dev/shm", W_OK))
        tmp = "/dev/shm";
    snprintf(path, room, "%s/doppel-torture.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(path))
        wrong("%s cannot be made: %s", path, strerror(errno));
}

void tree_remove(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) {
        unlink(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char below_it[1200];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        snprintf(below_it, sizeof below_it, "%s/%s", path, entry->d_name);
        tree_remove(below_it);
    }
    closedir(folder);
    rmdir(path);
}

const char *beside(const char *path, const char *name) {
    static _Thread_local char buffers[8][1024];
    static _Thread_local unsigned turn;
    char *buffer = buffers[turn++ % 8];
    snprintf(buffer, sizeof buffers[0], "%s/%s", path, name);
    return buffer;
}

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int child_end(int child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            wrong("a child is lost: %s", strerror(errno));
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

static _Atomic uint64_t clock_now;

static uint64_t tell_time(void *user) {
    (void)user;
    return clock_now;
}

doppel_status setup_try(const tt_setup *setup, doppel_engine **engine, doppel_error *error) {
    doppel_engine_options options = {.size = sizeof options};
    options.near = setup->by_similarity ? DOPPEL_NEAR_SIMILARITY : DOPPEL_NEAR_DISTANCE;
    options.titles = setup->by_similarity ? DOPPEL_SWITCH_ON : DOPPEL_SWITCH_OFF;
    options.keep_text = DOPPEL_SWITCH_ON;
    options.on_duplicate = setup->on_duplicate;
    options.durability = setup->durability;
    options.read_only = setup->read_only;
    options.must_exist = setup->read_only;
    options.ttl = DOPPEL_NEVER;
    options.now = tell_time;
    options.map = 1 << 20; /* so that it has to grow, many times */
    clock_now = setup->now;
    return doppel_engine_open(setup->folder, &options, engine, error);
}

doppel_engine *setup_open(const tt_setup *setup) {
    doppel_engine *engine;
    doppel_error error;
    must(setup_try(setup, &engine, &error), &error, "open");
    return engine;
}
