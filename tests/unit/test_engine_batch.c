/* test_engine_batch.c - batches and checks while other threads work: what is acknowledged is there, whoever wrote it
 * and whatever takes its place. */
#include "engine_cases.h"
#include "engine_places.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ITEMS = 5000 }; /* more than are decided at a time */

/* Another add, between two parts of a batch, on a disk that is full. */
typedef struct meddling {
    doppel_engine *engine;
    size_t lines;
    bool done, refused;
} meddling;

static doppel_item numbered(char id[16], size_t number, uint64_t *fingerprint) {
    snprintf(id, 16, "n%zu", number);
    *fingerprint = (number + 1) * 0x9E3779B97F4A7C15u;
    doppel_item item = {.size = sizeof item, .fingerprint = fingerprint};
    item.document = (doppel_document){.id.data = id, .id.length = strlen(id)};
    return item;
}

static void add_on_full_disk(doppel_log_level level, const char *line, void *user) {
    meddling *m = user;
    char id[16];
    uint64_t fingerprint;
    if (level != DOPPEL_LOG_INFO || !strstr(line, "ADD_SUCCESS") || ++m->lines != 4096 || m->done)
        return;
    m->done = true;
    doppel_item item = numbered(id, ITEMS, &fingerprint);
    doppel_verdict verdict = {0};
    limit_files(4096);
    m->refused = doppel_engine_add(m->engine, &item, &verdict, NULL) != DOPPEL_OK;
    limit_files(RLIM_INFINITY);
    doppel_verdict_free(&verdict);
}

static void what_another_could_not_write_is_not_acknowledged(void **state) {
    meddling m = {0};
    const doppel_engine_options options = {.size = sizeof options,
                                           .preset = "crawl",
                                           .near = DOPPEL_NEAR_DISTANCE,
                                           .log = add_on_full_disk,
                                           .log_level = DOPPEL_LOG_INFO,
                                           .user = &m};
    static char ids[ITEMS][16];
    static uint64_t fingerprints[ITEMS];
    static doppel_item items[ITEMS];
    static doppel_verdict verdicts[ITEMS];
    static doppel_error errors[ITEMS];
    doppel_stored_list list = {0};
    doppel_error error = {0};
    if (here->place != IN_FOLDER)
        return;
    signal(SIGXFSZ, SIG_IGN);
    if (doppel_engine_open(in(state, "index"), &options, &m.engine, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = numbered(ids[i], i, &fingerprints[i]);
    doppel_status whole = doppel_engine_add_batch(m.engine, items, ITEMS, verdicts, errors, &error);
    assert_true(m.refused);
    for (size_t i = 0; i < ITEMS; i++) {
        assert_int_equal(doppel_engine_get(m.engine, doppel_slice_of(ids[i]), &list, NULL), DOPPEL_OK);
        assert_true(list.count == 1 || errors[i].code != DOPPEL_OK);
        doppel_verdict_free(&verdicts[i]);
    }
    assert_int_equal(whole, DOPPEL_ERROR_IO);
    assert_string_not_equal(error.message, "");
    /* The next one goes well. */
    assert_int_equal(doppel_engine_add_batch(m.engine, items, 10, verdicts, NULL, NULL), DOPPEL_OK);
    for (size_t i = 0; i < 10; i++)
        doppel_verdict_free(&verdicts[i]);
    doppel_stored_list_free(&list);
    doppel_engine_close(m.engine);
}

/* ---- replacing ---- */

#define URL "http://a.example/"

typedef struct looking {
    doppel_engine *engine;
    _Atomic bool end;
    size_t checks, missed;
} looking;

static doppel_item version_of(const char *id, uint64_t *fingerprint) {
    doppel_item item = {.size = sizeof item, .fingerprint = fingerprint};
    item.document =
        (doppel_document){.id.data = id, .id.length = strlen(id), .url.data = URL, .url.length = strlen(URL)};
    return item;
}

static void *look(void *user) {
    looking *l = user;
    uint64_t fingerprint = 1;
    doppel_item item = version_of("other", &fingerprint);
    doppel_verdict verdict = {0};
    doppel_stored_list list = {0};
    while (!atomic_load(&l->end)) {
        bool there = doppel_engine_check(l->engine, &item, &verdict, NULL) == DOPPEL_OK && verdict.is_duplicate;
        there =
            there && doppel_engine_get(l->engine, doppel_slice_of("a"), &list, NULL) == DOPPEL_OK && list.count == 1;
        l->missed += !there;
        l->checks++;
    }
    doppel_verdict_free(&verdict);
    doppel_stored_list_free(&list);
    return NULL;
}

/* One version after the other, each seen until the next is durable. */
static void what_is_replaced_is_always_there(void **state) {
    looking l = {.engine =
                     open_at(state, "index", (doppel_engine_options){.preset = "crawl", .near = DOPPEL_NEAR_DISTANCE})};
    doppel_verdict verdict = {0};
    pthread_t thread;
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t fingerprint = (i + 2) * 0x9E3779B97F4A7C15u;
        doppel_item item = version_of("a", &fingerprint);
        assert_int_equal(doppel_engine_add(l.engine, &item, &verdict, NULL), DOPPEL_OK);
        assert_int_equal(verdict.replaced, i > 0);
        if (!i)
            assert_int_equal(pthread_create(&thread, NULL, look, &l), 0);
    }
    atomic_store(&l.end, true);
    pthread_join(thread, NULL);
    assert_int_equal(l.missed, 0);
    doppel_verdict_free(&verdict);
    doppel_engine_close(l.engine);
}

/* A removal that cannot be written has not happened. */
static void what_could_not_be_removed_is_there(void **state) {
    const doppel_engine_options options = {.size = sizeof options, .preset = "crawl", .near = DOPPEL_NEAR_DISTANCE};
    doppel_engine *engine;
    doppel_verdict verdict = {0};
    uint64_t fingerprint = 7, flipped = ~fingerprint;
    doppel_item item = version_of("a", &fingerprint), next = version_of("a", &flipped);
    bool removed;
    if (here->place != IN_FOLDER)
        return;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(doppel_engine_open(in(state, "index"), &options, &engine, NULL), DOPPEL_OK);
    assert_int_equal(doppel_engine_add(engine, &item, &verdict, NULL), DOPPEL_OK);
    limit_files(4096);
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("a"), &removed, NULL), DOPPEL_ERROR_IO);
    assert_int_equal(doppel_engine_add(engine, &next, &verdict, NULL), DOPPEL_ERROR_IO);
    limit_files(RLIM_INFINITY);
    assert_int_equal(doppel_engine_add(engine, &item, &verdict, NULL), DOPPEL_OK);
    assert_true(verdict.known);
    assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("a"), &removed, NULL), DOPPEL_OK);
    assert_true(removed);
    assert_int_equal(doppel_engine_check(engine, &item, &verdict, NULL), DOPPEL_OK);
    assert_false(verdict.is_duplicate);
    doppel_verdict_free(&verdict);
    doppel_engine_close(engine);
}

/* ---- verdicts of a batch ---- */

/* Good ones, one that has nothing to be remembered by, one whose id is too long. */
enum { MIXED = 7 };
static const char *const mixed_says[MIXED] = {"unique", "unique known", "exact_url a", "", "content_hash a",
                                              "",       "unique"};

static void make_mixed(doppel_item items[MIXED]) {
    static char long_id[70000];
    memset(long_id, 'x', sizeof long_id - 1);
    items[0] = item_of("a", URL, ARTICLE);
    items[1] = item_of("a", URL, ARTICLE);
    items[2] = item_of("b", URL, OTHER_ARTICLE);
    items[3] = item_of(NULL, NULL, "");
    items[4] = item_of("c", NULL, ARTICLE);
    items[5] = item_of(long_id, NULL, ARTICLE);
    items[6] = item_of("d", NULL, TRANSLATED);
}

static void a_bad_item_leaves_the_others_alone(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    doppel_item items[MIXED];
    doppel_verdict verdicts[MIXED] = {0};
    doppel_error errors[MIXED];
    make_mixed(items);
    OK(doppel_engine_add_batch(engine, items, MIXED, verdicts, errors, error));
    for (int i = 0; i < MIXED; i++) {
        assert_int_equal(errors[i].code, *mixed_says[i] ? DOPPEL_OK : DOPPEL_ERROR_INPUT);
        if (errors[i].code == DOPPEL_OK)
            assert_string_equal(say(&verdicts[i]), mixed_says[i]);
        /* Each has its own message: the one that adding it alone gives. */
        doppel_error alone = {0};
        doppel_verdict ignored = {0};
        if (errors[i].code != DOPPEL_OK) {
            assert_int_equal(doppel_engine_add(engine, &items[i], &ignored, &alone), errors[i].code);
            assert_string_equal(errors[i].message, alone.message);
            assert_true(*alone.message);
        }
        doppel_verdict_free(&ignored);
    }
    OK(doppel_engine_check_batch(engine, items, MIXED, verdicts, errors, error));
    for (int i = 0; i < MIXED; i++) {
        assert_int_equal(errors[i].code, i == 5 ? DOPPEL_ERROR_INPUT : DOPPEL_OK);
        if (i != 5)
            assert_int_equal(verdicts[i].is_duplicate, i != 3);
        doppel_verdict_free(&verdicts[i]);
    }
    doppel_engine_close(engine);
}

static void the_first_bad_item_ends_a_batch(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    doppel_item items[MIXED];
    doppel_verdict verdicts[MIXED] = {0};
    make_mixed(items);
    REFUSED(doppel_engine_add_batch(engine, items, MIXED, verdicts, NULL, error), DOPPEL_ERROR_INPUT, "no id, no URL");
    checking_says(engine, item_of("e", NULL, ARTICLE), "content_hash a");
    REFUSED(doppel_engine_check_batch(engine, items, MIXED, verdicts, NULL, error), DOPPEL_ERROR_INPUT, "bytes");
    for (int i = 0; i < MIXED; i++)
        doppel_verdict_free(&verdicts[i]);
    doppel_engine_close(engine);
}

/* Of copies that threads add at the same time one is unique, and the others name it. */
enum { THREADS = 4, CLIQUES = 100 };
typedef struct racing {
    doppel_engine *engine;
    int thread;
    char originals[CLIQUES][16];
    int unique[CLIQUES];
} racing;

static void *race(void *user) {
    racing *r = user;
    doppel_verdict verdict = {0};
    for (int i = 0; i < CLIQUES; i++) {
        char id[16];
        uint64_t fingerprint = ((uint64_t)i + 1) * 0x9E3779B97F4A7C15u ^ 1u << r->thread;
        doppel_item item = {.size = sizeof item, .fingerprint = &fingerprint};
        snprintf(id, sizeof id, "%d-%d", i, r->thread);
        item.document = (doppel_document){.id.data = id, .id.length = strlen(id)};
        must(doppel_engine_add(r->engine, &item, &verdict, NULL) == DOPPEL_OK, "add", __LINE__);
        r->unique[i] = !verdict.is_duplicate;
        doppel_slice name = verdict.is_duplicate ? verdict.original_id : verdict.id;
        snprintf(r->originals[i], sizeof r->originals[i], "%.*s", (int)name.length, name.data);
    }
    doppel_verdict_free(&verdict);
    return NULL;
}

static void of_copies_at_once_one_is_unique(void **state) {
    doppel_engine *engine =
        open_at(state, "index", (doppel_engine_options){.preset = "crawl", .near = DOPPEL_NEAR_DISTANCE});
    static racing r[THREADS];
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        r[t] = (racing){.engine = engine, .thread = t};
        assert_int_equal(pthread_create(&threads[t], NULL, race, &r[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int i = 0; i < CLIQUES; i++) {
        int unique = 0;
        for (int t = 0; t < THREADS; t++) {
            unique += r[t].unique[i];
            assert_string_equal(r[t].originals[i], r[0].originals[i]);
        }
        assert_int_equal(unique, 1);
    }
    doppel_engine_close(engine);
}

/* ---- batches that follow each other ---- */

enum { IN_TURN = 24, EACH = 50 / SMALLER, ADDERS = 8, TEXT_ROOM = 1200 };

/* Documents of which many are near another, or have its title, of the same batch or of another. */
typedef struct following {
    doppel_engine *engine;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    size_t next, decided; /* batches that were taken; that were decided */
    char texts[IN_TURN * EACH][TEXT_ROOM], ids[IN_TURN * EACH][16], titles[IN_TURN * EACH][64];
    doppel_item items[IN_TURN * EACH];
    doppel_verdict verdicts[IN_TURN * EACH];
} following;

typedef struct my_turn {
    following *all;
    size_t number;
} my_turn;

static void make_following(following *f) {
    for (size_t i = 0; i < IN_TURN * EACH; i++) {
        uint64_t random = (i + 1) * 0x9E3779B97F4A7C15u;
        size_t of = i % 3 ? i : (size_t)(random >> 33) % (i + 1), length = 0;
        for (size_t word = 0; word < 100; word++)
            length += (size_t)snprintf(f->texts[i] + length, TEXT_ROOM - length, "w%zu ",
                                       of != i && word == random % 100 ? i : of * 7919 + word);
        snprintf(f->ids[i], sizeof f->ids[i], "d%zu", i);
        snprintf(f->titles[i], sizeof f->titles[i], "The title of number %zu, which is a long one",
                 i % 5 ? i * 7777 : of);
        f->items[i] = item_of(f->ids[i], NULL, f->texts[i]);
        f->items[i].document.title.data = f->titles[i];
        f->items[i].document.title.length = strlen(f->titles[i]);
    }
}

static void wait_turn(void *user) {
    const my_turn *mine = user;
    pthread_mutex_lock(&mine->all->lock);
    while (mine->all->decided != mine->number)
        pthread_cond_wait(&mine->all->moved, &mine->all->lock);
    pthread_mutex_unlock(&mine->all->lock);
}

static void pass_turn(void *user) {
    const my_turn *mine = user;
    pthread_mutex_lock(&mine->all->lock);
    must(mine->all->decided++ == mine->number, "a turn", __LINE__);
    pthread_cond_broadcast(&mine->all->moved);
    pthread_mutex_unlock(&mine->all->lock);
}

static void *follow(void *user) {
    following *f = user;
    for (;;) {
        pthread_mutex_lock(&f->lock);
        my_turn mine = {f, f->next++};
        pthread_mutex_unlock(&f->lock);
        if (mine.number >= IN_TURN)
            return NULL;
        const doppel_turn turn = {.size = sizeof turn, .wait = wait_turn, .pass = pass_turn, .user = &mine};
        size_t from = mine.number * EACH;
        must(doppel_engine_add_in_turn(f->engine, f->items + from, EACH, &turn, f->verdicts + from, NULL, NULL) ==
                 DOPPEL_OK,
             "a batch", __LINE__);
    }
}

static void batches_in_turn_are_as_one_after_the_other(void **state) {
    following *f = calloc(1, sizeof *f);
    assert_non_null(f);
    pthread_t threads[ADDERS];
    doppel_verdict expected = {0};
    size_t duplicates = 0;
    make_following(f);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->moved, NULL);
    f->engine = open_at(state, "in turn", (doppel_engine_options){0});
    for (int t = 0; t < ADDERS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, follow, f), 0);
    for (int t = 0; t < ADDERS; t++)
        pthread_join(threads[t], NULL);
    assert_int_equal(f->decided, IN_TURN);
    doppel_engine_close(f->engine);
    doppel_engine *engine = open_at(state, "one by one", (doppel_engine_options){0});
    for (size_t i = 0; i < IN_TURN * EACH; i++) {
        char text[1000], given[1000];
        OK(doppel_engine_add(engine, &f->items[i], &expected, error));
        doppel_verdict_json(&expected, true, text, sizeof text);
        doppel_verdict_json(&f->verdicts[i], true, given, sizeof given);
        assert_string_equal(given, text);
        duplicates += expected.is_duplicate;
        doppel_verdict_free(&f->verdicts[i]);
    }
    assert_true(duplicates > IN_TURN * EACH / 4 && duplicates < IN_TURN * EACH);
    doppel_verdict_free(&expected);
    doppel_engine_close(engine);
    free(f);
}

/* A call that adds nothing has its turn, too. */
static void count_call(void *user) {
    ++*(int *)user;
}

static void each_batch_has_one_turn(void **state) {
    doppel_engine *engine = open_at(state, "index", (doppel_engine_options){0});
    doppel_item bad = item_of(NULL, NULL, ""), good = item_of("a", NULL, ARTICLE);
    doppel_verdict verdict = {0};
    int calls = 0;
    const doppel_turn turn = {.size = sizeof turn, .wait = count_call, .pass = count_call, .user = &calls};
    OK(doppel_engine_add_in_turn(engine, &good, 0, &turn, &verdict, NULL, error));
    assert_int_equal(calls, 2);
    REFUSED(doppel_engine_add_in_turn(engine, &bad, 1, &turn, &verdict, NULL, error), DOPPEL_ERROR_INPUT, "no id");
    assert_int_equal(calls, 4);
    OK(doppel_engine_add_in_turn(engine, &good, 1, &turn, &verdict, NULL, error));
    assert_int_equal(calls, 6);
    doppel_verdict_free(&verdict);
    doppel_engine_close(engine);
}

/* The time of an add lasts until it is durable, of one and of many alike. */
static void the_time_of_an_add_holds_its_commit(void **state) {
    enum { FEW = 20 };
    char ids[FEW + 1][16];
    uint64_t fingerprints[FEW + 1];
    doppel_item items[FEW + 1];
    doppel_verdict verdicts[FEW + 1] = {0};
    doppel_engine_stats stats;
    if (here->place != IN_FOLDER)
        return;
    doppel_engine *engine = open_at(state, "times", (doppel_engine_options){.near = DOPPEL_NEAR_DISTANCE});
    for (size_t i = 0; i <= FEW; i++)
        items[i] = numbered(ids[i], i, &fingerprints[i]);
    assert_int_equal(doppel_engine_add_batch(engine, items, FEW, verdicts, NULL, NULL), DOPPEL_OK);
    doppel_engine_get_stats(engine, &stats);
    assert_int_equal(stats.commit_time.count, 1);
    assert_int_equal(stats.add_time.count, FEW);
    assert_true(stats.add_time.sum >= FEW * stats.commit_time.sum);
    assert_int_equal(doppel_engine_add(engine, &items[FEW], &verdicts[FEW], NULL), DOPPEL_OK);
    doppel_engine_get_stats(engine, &stats);
    assert_int_equal(stats.commit_time.count, 2);
    assert_int_equal(stats.add_time.count, FEW + 1);
    assert_true(stats.add_time.sum >= stats.commit_time.sum);
    for (size_t i = 0; i <= FEW; i++)
        doppel_verdict_free(&verdicts[i]);
    doppel_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EVERYWHERE(what_another_could_not_write_is_not_acknowledged),
        EVERYWHERE(what_is_replaced_is_always_there),
        EVERYWHERE(what_could_not_be_removed_is_there),
        EVERYWHERE(a_bad_item_leaves_the_others_alone),
        EVERYWHERE(the_first_bad_item_ends_a_batch),
        EVERYWHERE(of_copies_at_once_one_is_unique),
        EVERYWHERE(batches_in_turn_are_as_one_after_the_other),
        EVERYWHERE(each_batch_has_one_turn),
        EVERYWHERE(the_time_of_an_add_holds_its_commit),
    };
    return run_everywhere("batch", tests, sizeof tests / sizeof *tests);
}
