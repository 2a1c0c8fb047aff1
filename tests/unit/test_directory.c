/* test_directory.c - what the engine knows, after any adds, removals and loads, against a plain list of traces. */
#include "directory_model.h"

/* ---- adding and removing ---- */

static void change_at_random(const dp_directory_options *options) {
    scene s = begin(options, 11);
    while (s.count < MOST) {
        if (s.count < 300 || random_below(&s.random, 5) < 3) {
            add(&s);
        } else {
            document *d = &s.document[random_below(&s.random, s.count)];
            assert_int_equal(dp_directory_remove(s.directory, &d->trace), DOPPEL_OK);
            d->there = false;
        }
        if (s.count % 500 == 0)
            check_all(&s, 20);
    }
    check_all(&s, 100);
    for (size_t i = 0; i < s.count; i++) {
        assert_int_equal(dp_directory_remove(s.directory, &s.document[i].trace), DOPPEL_OK);
        s.document[i].there = false;
    }
    check_all(&s, 20);
    end(&s);
}

static void all_is_found_by_distance(void **state) {
    (void)state;
    change_at_random(&by_distance);
}

static void all_is_found_by_similarity(void **state) {
    (void)state;
    change_at_random(&by_similarity);
}

/* What is there is not added twice, and removals have no trace of their own. */
static void a_number_is_there_once(void **state) {
    (void)state;
    scene s = begin(&by_distance, 3);
    for (size_t i = 0; i < 50; i++)
        add(&s);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(dp_directory_add(s.directory, &s.document[i].trace), DOPPEL_OK);
    dp_trace removal = {.number = 51, .kind = DP_TRACE_REMOVAL, .of = 3};
    assert_int_equal(dp_directory_add(s.directory, &removal), DOPPEL_OK);
    check_all(&s, 50);
    for (size_t i = 0; i < 50; i += 2) {
        assert_int_equal(dp_directory_remove(s.directory, &s.document[i].trace), DOPPEL_OK);
        assert_int_equal(dp_directory_remove(s.directory, &s.document[i].trace), DOPPEL_OK);
        s.document[i].there = false;
    }
    check_all(&s, 50);
    end(&s);
}

static void numbers_that_cannot_be_are_refused(void **state) {
    (void)state;
    scene s = begin(&by_distance, 3);
    dp_trace trace = {.kind = DP_TRACE_DOCUMENT, .id_hash = 5, .content = true};
    assert_int_equal(dp_directory_add(s.directory, &trace), DOPPEL_ERROR_USAGE);
    trace.number = DP_DIRECTORY_NUMBERS + 1;
    assert_int_equal(dp_directory_add(s.directory, &trace), DOPPEL_ERROR_STORE);
    trace.number = 7;
    trace.key_count = DP_MOST_BANDS + 1;
    assert_int_equal(dp_directory_add(s.directory, &trace), DOPPEL_ERROR_USAGE);
    trace.key_count = 0;
    trace.number = (uint64_t)1 << 33; /* far from the others */
    assert_int_equal(dp_directory_add(s.directory, &trace), DOPPEL_OK);
    dp_numbers found = {0};
    assert_int_equal(dp_directory_find_key(s.directory, DP_KEY_ID, 5, &found), DOPPEL_OK);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.number[0], trace.number);
    assert_true(dp_directory_alive(s.directory, trace.number, 1));
    dp_numbers_free(&found);
    end(&s);
}

/* ---- loading ---- */

typedef struct loading {
    scene *scene;
    dp_directory_load *load;
    _Atomic size_t next;
} loading;

/* Numbers come out of order, each thread has some of all, and some are missing. */
static void load_some(void *user, size_t thread) {
    loading *l = user;
    (void)thread;
    for (size_t i; (i = atomic_fetch_add(&l->next, 1)) < l->scene->count;) {
        document *d = &l->scene->document[(i * 1787) % l->scene->count];
        if (i % 20 && dp_directory_load_add(l->load, &d->trace) == DOPPEL_OK)
            d->there = true;
    }
}

/* A copy expires with its original; one without an original at once, or is not taken. */
static void settle_copies(scene *s, size_t from, bool read_only) {
    for (size_t i = from; i < s->count; i++) {
        document *d = &s->document[i];
        const document *of = d->trace.kind == DP_TRACE_COPY ? &s->document[d->trace.of - 1] : d;
        if (!of->there)
            d->trace.expires = 1;
        else if (of->trace.expires && (!d->trace.expires || of->trace.expires < d->trace.expires))
            d->trace.expires = of->trace.expires;
        d->there = d->there && (of->there || !read_only);
    }
}

static void load_all(const dp_directory_options *options, int threads, bool read_only) {
    dp_directory_options all = *options;
    all.threads = threads;
    all.read_only = read_only;
    scene s = begin(&all, 5);
    while (s.count < MOST)
        make(&s);
    loading l = {.scene = &s};
    assert_int_equal(dp_directory_load_begin(s.directory, &l.load), DOPPEL_OK);
    dp_run_threads(3, load_some, &l);
    assert_int_equal(dp_directory_load_end(l.load), DOPPEL_OK);
    settle_copies(&s, 0, read_only);
    check_all(&s, 50);
    for (size_t i = 0; i < MOST; i += 3) {
        assert_int_equal(dp_directory_remove(s.directory, &s.document[i].trace), DOPPEL_OK);
        s.document[i].there = false;
    }
    check_all(&s, 50);
    end(&s);
}

static void what_is_loaded_is_as_if_added(void **state) {
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        load_all(&by_distance, threads, false);
        load_all(&by_similarity, threads, true);
    }
}

static void a_load_joins_what_is_there(void **state) {
    (void)state;
    scene s = begin(&by_distance, 5);
    for (size_t i = 0; i < 1000; i++)
        add(&s);
    for (int round = 0; round < 3; round++) {
        dp_directory_load *load;
        assert_int_equal(dp_directory_load_begin(s.directory, &load), DOPPEL_OK);
        for (size_t i = 0; i < (round ? 500 : 0); i++) {
            document *d = make(&s);
            assert_int_equal(dp_directory_load_add(load, &d->trace), DOPPEL_OK);
            d->there = true;
        }
        assert_int_equal(dp_directory_load_end(load), DOPPEL_OK);
        if (round)
            settle_copies(&s, 1000, false);
        check_all(&s, 30);
    }
    end(&s);
}

static void a_bad_trace_ends_a_load(void **state) {
    (void)state;
    scene s = begin(&by_distance, 5);
    dp_directory_load *load;
    dp_trace trace = {.kind = DP_TRACE_DOCUMENT};
    assert_int_equal(dp_directory_load_begin(s.directory, &load), DOPPEL_OK);
    assert_int_equal(dp_directory_load_add(load, &trace), DOPPEL_ERROR_USAGE);
    assert_int_equal(dp_directory_load_end(load), DOPPEL_ERROR_USAGE);
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_found_by_distance),      cmocka_unit_test(all_is_found_by_similarity),
        cmocka_unit_test(a_number_is_there_once),        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(what_is_loaded_is_as_if_added), cmocka_unit_test(a_load_joins_what_is_there),
        cmocka_unit_test(a_bad_trace_ends_a_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
