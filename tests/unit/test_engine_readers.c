/* test_engine_readers.c - a process that reads what another writes: it finds what was added, and what was removed,
 * replaced or has expired leaves it. */
#include "files.h"

#include "engine/internal.h"
#include "known/local.h"

#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* What both processes see. */
typedef struct shared {
    _Atomic uint64_t now;
} shared;

/* The child's answer to a question. */
typedef struct answer {
    bool is_duplicate;
    uint64_t documents, copies;
} answer;

typedef struct reader {
    pid_t process;
    int to, from;
    shared *shared;
} reader;

static uint64_t now_is(void *user) {
    return ((shared *)user)->now;
}

static doppel_engine *open_engine(const char *path, shared *with, bool read_only) {
    const doppel_engine_options options = {.size = sizeof options,
                                           .preset = read_only ? NULL : "crawl",
                                           .near = read_only ? DOPPEL_NEAR_PRESET : DOPPEL_NEAR_DISTANCE,
                                           .on_duplicate = DOPPEL_DUPLICATE_LINK,
                                           .ttl = 1000,
                                           .read_only = read_only,
                                           .now = now_is,
                                           .user = with};
    doppel_engine *engine;
    doppel_error error = {0};
    if (doppel_engine_open(path, &options, &engine, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    return engine;
}

/* A document that is known by its number alone: other numbers have far fingerprints. */
static doppel_item item_of(uint64_t number, const char *id, uint64_t *fingerprint) {
    *fingerprint = (number + 1) * 0x9E3779B97F4A7C15u;
    doppel_item item = {.size = sizeof item, .fingerprint = fingerprint};
    item.document = (doppel_document){.id.data = id, .id.length = strlen(id)};
    return item;
}

static bool add(doppel_engine *engine, uint64_t number, const char *id) {
    uint64_t fingerprint;
    doppel_item item = item_of(number, id, &fingerprint);
    doppel_verdict verdict = {0};
    assert_int_equal(doppel_engine_add(engine, &item, &verdict, NULL), DOPPEL_OK);
    bool is_duplicate = verdict.is_duplicate;
    doppel_verdict_free(&verdict);
    return is_duplicate;
}

/* ---- the child ---- */

/* Another thread that is taking something in. */
typedef struct holding {
    doppel_engine *engine;
    sem_t held;
} holding;

static void *hold_order(void *user) {
    holding *h = user;
    dp_local *local = (dp_local *)h->engine->known;
    pthread_mutex_lock(&local->order);
    sem_post(&h->held);
    usleep(300000);
    pthread_mutex_unlock(&local->order);
    return NULL;
}

/* Answers for a number; with `held` while another thread is at it. */
static answer answer_for(doppel_engine *engine, uint64_t number, bool held) {
    uint64_t fingerprint;
    doppel_item item = item_of(number, "asked", &fingerprint);
    doppel_verdict verdict = {0};
    doppel_engine_stats stats;
    holding h = {.engine = engine};
    pthread_t thread;
    if (held && (sem_init(&h.held, 0, 0) || pthread_create(&thread, NULL, hold_order, &h) || sem_wait(&h.held)))
        _exit(2);
    if (doppel_engine_check(engine, &item, &verdict, NULL) != DOPPEL_OK)
        _exit(3);
    if (held)
        pthread_join(thread, NULL);
    doppel_engine_get_stats(engine, &stats);
    answer given = {verdict.is_duplicate, stats.documents, stats.copies};
    doppel_verdict_free(&verdict);
    return given;
}

enum { HELD = 1 << 30 };

static void read_for_ever(const char *path, const reader *r) {
    doppel_engine *engine = open_engine(path, r->shared, true);
    for (uint64_t number; read(r->to, &number, sizeof number) == sizeof number;) {
        answer given = answer_for(engine, number & (HELD - 1), number & HELD);
        if (write(r->from, &given, sizeof given) != sizeof given)
            break;
    }
    doppel_engine_close(engine);
    _exit(0);
}

/* ---- the parent ---- */

static reader start(const char *path, shared *with) {
    int to[2], from[2];
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    reader r = {.to = to[0], .from = from[1], .shared = with};
    r.process = fork();
    assert_true(r.process >= 0);
    if (!r.process) {
        close(to[1]);
        close(from[0]);
        read_for_ever(path, &r);
    }
    close(to[0]);
    close(from[1]);
    r.to = to[1];
    r.from = from[0];
    return r;
}

static answer ask(const reader *r, uint64_t number) {
    answer given;
    assert_int_equal(write(r->to, &number, sizeof number), sizeof number);
    assert_int_equal(read(r->from, &given, sizeof given), sizeof given);
    return given;
}

static void stop(reader *r) {
    int status;
    close(r->to);
    close(r->from);
    assert_int_equal(waitpid(r->process, &status, 0), r->process);
    assert_int_equal(status, 0);
}

static shared *share(void) {
    shared *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(made != MAP_FAILED);
    made->now = 1000;
    return made;
}

static void removed_documents_and_copies_leave(void **state) {
    shared *with = share();
    doppel_engine *engine = open_engine(*state, with, false);
    reader r = start(*state, with);
    assert_false(add(engine, 1, "a"));
    assert_false(add(engine, 2, "b"));
    assert_true(add(engine, 2, "copy of b"));
    answer found = ask(&r, 1);
    assert_true(found.is_duplicate && found.documents == 2 && found.copies == 1);
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("a"), NULL, NULL), DOPPEL_OK);
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("copy of b"), NULL, NULL), DOPPEL_OK);
    found = ask(&r, 1);
    assert_true(!found.is_duplicate && found.documents == 1 && found.copies == 0);
    assert_true(add(engine, 2, "copy of b"));
    assert_true(add(engine, 2, "another copy"));
    assert_int_equal(ask(&r, 2).copies, 2);
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("b"), NULL, NULL), DOPPEL_OK);
    found = ask(&r, 2);
    assert_true(!found.is_duplicate && found.documents == 0 && found.copies == 0);
    assert_false(add(engine, 2, "b"));
    assert_int_equal(doppel_engine_compact(engine, NULL), DOPPEL_OK);
    assert_false(add(engine, 3, "c"));
    found = ask(&r, 3);
    assert_true(found.is_duplicate && found.documents == 2);
    stop(&r);
    doppel_engine_close(engine);
    munmap(with, sizeof *with);
}

/* A check is of the moment that its view shows, also when another thread is at taking it in. */
static void a_check_is_not_behind(void **state) {
    shared *with = share();
    doppel_engine *engine = open_engine(*state, with, false);
    assert_false(add(engine, 1, "a"));
    reader r = start(*state, with);
    assert_true(ask(&r, 1).is_duplicate);
    assert_false(add(engine, 2, "a"));
    assert_true(ask(&r, 2 | HELD).is_duplicate);
    stop(&r);
    doppel_engine_close(engine);
    munmap(with, sizeof *with);
}

static void what_expired_does_not_gather(void **state) {
    enum { MANY = 20000 };
    shared *with = share();
    doppel_engine *engine = open_engine(*state, with, false);
    reader r = start(*state, with);
    uint64_t fingerprint[500];
    char ids[500][16];
    doppel_item items[500];
    doppel_verdict verdicts[500] = {0};
    for (uint64_t i = 0; i < MANY; i++) {
        snprintf(ids[i % 500], sizeof *ids, "n%llu", (unsigned long long)i);
        items[i % 500] = item_of(i, ids[i % 500], &fingerprint[i % 500]);
        if (i % 500 == 499)
            assert_int_equal(doppel_engine_add_batch(engine, items, 500, verdicts, NULL, NULL), DOPPEL_OK);
    }
    for (int i = 0; i < 500; i++)
        doppel_verdict_free(&verdicts[i]);
    assert_int_equal(ask(&r, 5).documents, MANY);
    with->now = 3000;
    assert_int_equal(doppel_engine_expire(engine, NULL, NULL), DOPPEL_OK);
    assert_false(ask(&r, 5).is_duplicate);
    assert_int_equal(ask(&r, 5).documents, 0);
    stop(&r);
    doppel_engine_close(engine);
    munmap(with, sizeof *with);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(removed_documents_and_copies_leave, setup, teardown),
        cmocka_unit_test_setup_teardown(a_check_is_not_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(what_expired_does_not_gather, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
