/* verify.c - dp_store_verify: a child walks the folder, so that whatever a damaged file does to it happens there. Its
 * findings come through a pipe; when it dies, that is one more. */
#include "store/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct verifying {
    const char *path;
    void (*finding)(const char *what, void *user);
    void *user;
    uint64_t findings;
    char first[400]; /* the first finding */
} verifying;

static void tell(verifying *v, const char *what) {
    if (!v->findings++)
        snprintf(v->first, sizeof v->first, "%s", what);
    if (v->finding)
        v->finding(what, v->user);
}

/* ---- the child ---- */

static void run_child(const char *path, int pipe, dp_verify_place *place) {
    const struct rlimit none = {0, 0};
    /* Handlers of the program would not know what it means here. */
    const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &none);
    dp_verify_walk(path, pipe, place);
    _exit(0);
}

/* ---- the parent ---- */

static bool read_findings(verifying *v, int pipe) {
    dp_buffer line = {0};
    char block[4096];
    bool good = true;
    for (ssize_t got; good && (got = read(pipe, block, sizeof block)) != 0;) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        for (ssize_t i = 0; i < got && good; i++) {
            bool end = block[i] == '\n';
            good = dp_buffer_add(&line, end ? "" : &block[i], 1);
            if (good && end) {
                tell(v, line.data);
                line.size = 0;
            }
        }
    }
    dp_buffer_free(&line);
    return good;
}

static void tell_death(verifying *v, int ended, dp_verify_place *place) {
    char what[400], where[100] = "while it was opened";
    if (place->db >= 0)
        snprintf(where, sizeof where, "in its %s, behind number %" PRIu64, dp_verify_db_name(place->db), place->number);
    if (WIFSIGNALED(ended))
        snprintf(what, sizeof what, "the file is damaged %s: reading on ends the process (%s)", where,
                 strsignal(WTERMSIG(ended)));
    else
        snprintf(what, sizeof what, "the file is damaged %s: reading on ends the process (status %d)", where,
                 WEXITSTATUS(ended));
    place->found.damaged += !place->found.damaged;
    tell(v, what);
}

static doppel_status watch(verifying *v, dp_verify_place *place, doppel_error *error) {
    int ends[2], ended = 0;
    if (pipe2(ends, O_CLOEXEC))
        return dp_env_fail(v->path, errno, error);
    pid_t child = fork();
    if (!child)
        run_child(v->path, ends[1], place);
    int reason = errno;
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return dp_env_fail(v->path, reason, error);
    }
    bool good = read_findings(v, ends[0]);
    close(ends[0]);
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR)
        ;
    if (!good)
        return dp_no_memory(error);
    if (ended)
        tell_death(v, ended, place);
    return DOPPEL_OK;
}

/* Whether there is anything to walk. */
static doppel_status look(const char *path, doppel_error *error) {
    dp_folder_content content;
    uint64_t generation = 0;
    doppel_status status = dp_folder_look(path, &content, error);
    if (!status && content.missing)
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "there is no such folder");
    if (!status)
        status = dp_folder_generation(path, &generation, error);
    if (!status && !generation)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                          "is not an index; make one with doppel add --index DIR INPUT...");
    return status;
}

doppel_status dp_store_verify(const char *path, void (*finding)(const char *what, void *user), void *user,
                              doppel_verified *verified, doppel_error *error) {
    verifying v = {.path = path, .finding = finding, .user = user};
    *verified = (doppel_verified){0};
    doppel_status status = look(path, error);
    if (status)
        return status;
    dp_verify_place *place = mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return dp_no_memory(error);
    place->db = -1;
    status = watch(&v, place, error);
    *verified = place->found;
    munmap(place, sizeof *place);
    if (status || !v.findings)
        return status;
    return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "%" PRIu64 " finding%s, the first: %s", v.findings,
                      v.findings == 1 ? "" : "s", v.first);
}
