/* test_store_compact_faults.c - a process that ends, or meets a fault, at any step of a compaction while another thread
 * writes: the folder is the old one or the new one, with all that was acknowledged. LMDB's own calls are not wrapped.
 */
#include "compactions.h"
#include "faults.h"
#include "folders.h"

#include <pthread.h>

enum { BEFORE = 120, MEANWHILE = 120, MOST = 40 };

static char folder[64];

static void clear(void) {
    if (access(folder, F_OK))
        return;
    entries(folder, true);
    assert_int_equal(rmdir(folder), 0);
}

/* What the child has done, for its parent. */
typedef struct progress {
    _Atomic uint64_t written;
    _Atomic bool compacted;
} progress;

typedef struct writing {
    dp_store *store;
    progress *progress;
    _Atomic uint64_t wanted;
    _Atomic bool end;
} writing;

/* Faults are those of the compaction. */
static void *write_wanted(void *user) {
    writing *w = user;
    while (!w->end || w->progress->written < w->wanted)
        if (w->progress->written < w->wanted) {
            MUST(!write_step(w->store, w->progress->written + 1, MOST, NULL));
            w->progress->written++;
        }
    return NULL;
}

static bool write_meanwhile(const dp_trace *trace, void *user) {
    writing *w = user;
    (void)trace;
    if (w->progress->written == w->wanted && w->wanted < BEFORE + MEANWHILE) {
        w->wanted++;
        for (int i = 0; i < 100 && w->progress->written < w->wanted; i++)
            usleep(10);
    }
    return true;
}

/* The n-th call to the system ends the process, or fails; 0: none. */
static _Noreturn void run_child(progress *p, size_t n, bool die) {
    dp_store *store = open_store(folder, WRITING);
    writing w = {.store = store, .progress = p, .wanted = BEFORE};
    pthread_t thread;
    write_steps(store, 1, BEFORE, MOST);
    p->written = BEFORE;
    MUST(!pthread_create(&thread, NULL, write_wanted, &w));
    faults.kinds = SYSTEM | FILES;
    faults.calls = 0;
    faults.fail_at = n;
    faults.die = die;
    doppel_status status = dp_store_compact(store, write_meanwhile, &w, NULL);
    bool met = faults.calls >= n && n;
    faults.kinds = 0;
    p->compacted = !status;
    w.end = true;
    pthread_join(thread, NULL);
    dp_store_close(store);
    MUST(met || !status);
    _exit(met ? 1 : 0);
}

static void check_acknowledged(const progress *p) {
    dp_store *store = open_store(folder, WRITING), *plain = open_store(NULL, WRITING);
    findings f;
    doppel_verified verified;
    uint64_t written = p->written;
    write_steps(plain, 1, written, MOST);
    uint64_t differs = first_difference(store, plain, written);
    /* One more may be there that was not acknowledged. */
    if (differs) {
        write_steps(plain, written + 1, written + 1, MOST);
        differs = first_difference(store, plain, written + 1);
    }
    assert_int_equal(differs, 0);
    dp_store_close(plain);
    dp_store_close(store);
    assert_int_equal(verify_folder(folder, &f, &verified), DOPPEL_OK);
    dp_buffer_free(&f.text);
}

/* Gives how the child ended. */
static int run_once(progress *p, size_t n, bool die) {
    int ended;
    clear();
    *p = (progress){0};
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        run_child(p, n, die);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    check_acknowledged(p);
    return WEXITSTATUS(ended);
}

static progress *share_progress(void) {
    progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

static void a_process_that_ends_loses_nothing(void **state) {
    progress *p = share_progress();
    size_t n = 1;
    (void)state;
    while (run_once(p, n, true) == DIED)
        n++;
    assert_true(n > 10);
    assert_true(p->compacted);
    munmap(p, sizeof *p);
}

static void a_compaction_that_fails_loses_nothing(void **state) {
    progress *p = share_progress();
    size_t n = 1, failed = 0;
    (void)state;
    for (int ended = 1; ended == 1; n++) {
        ended = run_once(p, n, false);
        assert_true(ended == 0 || ended == 1);
        failed += !p->compacted;
    }
    assert_true(failed > 0);
    munmap(p, sizeof *p);
}

int main(void) {
    snprintf(folder, sizeof folder, "%s/doppel-test.XXXXXX", quick_folder());
    if (!mkdtemp(folder))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_ends_loses_nothing),
        cmocka_unit_test(a_compaction_that_fails_loses_nothing),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clear();
    return failed;
}
