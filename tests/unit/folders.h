/* folders.h - what tests of index folders share: folders that go with all that is in them, and other processes. */
#ifndef TESTS_FOLDERS_H
#define TESTS_FOLDERS_H

#include "stores.h"

#include <signal.h>
#include <sys/wait.h>

/* In memory where that can be: a disk's syncs are slow, and not what is tested. */
static inline const char *quick_folder(void) {
    return access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
}

static inline int setup_folders(void **state) {
    char *folder = malloc(64);
    snprintf(folder, 64, "%s/doppel-test.XXXXXX", quick_folder());
    *state = folder;
    return mkdtemp(folder) ? 0 : -1;
}

/* Removes what is in the folders of the test's folder, then that. */
static inline int teardown_folders(void **state) {
    DIR *open = opendir(*state);
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open));) {
        char path[300];
        snprintf(path, sizeof path, "%.40s/%s", (const char *)*state, entry->d_name);
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        assert_int_equal(chmod(path, 0777), 0);
        entries(path, true);
    }
    closedir(open);
    return teardown(state);
}

static inline const char *name_in(const char *folder, const char *name) {
    static char paths[4][400];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* ---- opening ---- */

static inline dp_store *no_store(void) {
    return (dp_store *)(uintptr_t)8;
}

#define OPEN_REFUSED(path, options, status, reason)                              \
    do {                                                                         \
        dp_store *store_ = no_store();                                           \
        dp_store_options options_ = options;                                     \
        REFUSED(dp_store_open(path, &options_, &store_, error), status, reason); \
        assert_null(store_);                                                     \
    } while (0)

#define WRITING ((dp_store_options){0})
#define READING ((dp_store_options){.read_only = true})
#define EXISTING ((dp_store_options){.must_exist = true})

static inline bool keep_all(const dp_trace *trace, void *user) {
    (void)trace, (void)user;
    return true;
}

/* A folder with numbers 1 to `last`. */
static inline void make_folder(const char *path, uint64_t last, size_t size) {
    dp_store *store = open_store(path, (dp_store_options){.settings = "x=1\n"});
    if (last)
        write_numbers(store, 1, last, size);
    dp_store_close(store);
}

/* The numbers 1 to `last` are there. */
static inline void check_folder(const char *path, uint64_t last, size_t size) {
    dp_store *store = open_store(path, (dp_store_options){.read_only = true});
    dp_view *view = open_view(store);
    dp_moment moment;
    OK(dp_view_begin(view, error));
    dp_view_moment(view, &moment);
    assert_int_equal(moment.last, last);
    for (uint64_t number = 1; number <= last; number++)
        check_number(view, number, 0, size);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
}

/* ---- findings of verify ---- */

typedef struct findings {
    dp_buffer text;
    size_t count;
} findings;

static inline void note_finding(const char *what, void *user) {
    findings *f = user;
    f->count++;
    assert_true(dp_buffer_printf(&f->text, "%s\n", what));
}

static inline doppel_status verify_folder(const char *path, findings *f, doppel_verified *verified) {
    doppel_error error = {.code = DOPPEL_OK};
    *f = (findings){0};
    doppel_status status = dp_store_check(path, note_finding, f, verified, &error);
    assert_int_equal(status, error.code);
    assert_true(dp_buffer_add(&f->text, "", 1));
    return status;
}

static inline void verified_clean(const char *path, uint64_t documents) {
    findings f;
    doppel_verified verified;
    if (verify_folder(path, &f, &verified)) {
        print_error("%s", f.text.data);
        fail();
    }
    assert_int_equal(f.count, 0);
    assert_int_equal(verified.documents, documents);
    assert_int_equal(verified.damaged, 0);
    assert_true(verified.bytes > 0);
    dp_buffer_free(&f.text);
}

/* ---- other processes ---- */

/* A process that does something and says so with a byte each time; it ends when nobody listens. */
typedef struct other {
    pid_t process;
    int from, to;
} other;

static inline other start_other(void (*work)(int from, int to, const char *path), const char *path) {
    int up[2], down[2];
    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    other o = {fork(), up[0], down[1]};
    assert_true(o.process >= 0);
    if (!o.process) {
        close(up[0]);
        close(down[1]);
        work(down[0], up[1], path);
        _exit(0);
    }
    close(up[1]);
    close(down[0]);
    return o;
}

static inline void tell_byte(int to) {
    assert_int_equal(write(to, "x", 1), 1);
}

static inline bool wait_byte(int from) {
    char byte;
    return read(from, &byte, 1) == 1;
}

/* Gives how it ended. */
static inline int end_other(other *o, int signal_number) {
    int ended;
    if (signal_number)
        kill(o->process, signal_number);
    close(o->from);
    close(o->to);
    assert_int_equal(waitpid(o->process, &ended, 0), o->process);
    return ended;
}

#endif
