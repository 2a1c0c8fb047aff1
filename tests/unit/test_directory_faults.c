/* test_directory_faults.c - the directory without memory: each allocation fails in turn, and nothing has changed
 * then; the same change, tried again, works. */
#include "best_title.h"
#include "faults.h"

enum { COUNT = 200, BANDS = 4 };

typedef struct document {
    dp_trace trace;
    uint32_t keys[BANDS];
    char title[700];
} document;

/* Some share keys; some titles are too long for the stack. */
static void fill(document *d, uint64_t number) {
    uint64_t random = number;
    *d = (document){.trace = {.number = number, .kind = number % 5 ? DP_TRACE_DOCUMENT : DP_TRACE_COPY}};
    d->trace.content = true;
    d->trace.id_hash = random_next(&random);
    d->trace.url_hash = 1 + number % 7;
    d->trace.digest[number % 3] = 1;
    d->trace.fingerprint[0] = random_next(&random);
    for (size_t b = 0; b < BANDS; b++)
        d->keys[b] = (uint32_t)(b ? random_next(&random) : number % 11);
    d->trace.keys = d->keys;
    d->trace.key_count = BANDS;
    int length = snprintf(d->title, sizeof d->title, "%05llu is the title of %0*d",
                          (unsigned long long)(number * 7919 % 100000), number % 50 == 1 ? 600 : 9, (int)number);
    d->trace.title = (doppel_slice){d->title, (size_t)length};
}

/* A number for all that can be found, looked at without faults. */
static uint64_t found_by(dp_directory *directory, const dp_directory_options *options) {
    int kinds = pause_faults();
    dp_numbers numbers = {0};
    doppel_matches near = {0};
    dp_title_matches titles = {0};
    uint64_t sum = 0;
    document d;
    for (uint64_t n = 1; n <= COUNT; n++) {
        fill(&d, n);
        sum = mixed(sum, dp_directory_alive(directory, n, 1));
        for (dp_key key = DP_KEY_ID; key <= DP_KEY_DIGEST; key++) {
            const uint64_t hash[] = {d.trace.id_hash, d.trace.url_hash, dp_digest_hash(d.trace.digest)};
            assert_int_equal(dp_directory_find_key(directory, key, hash[key], &numbers), DOPPEL_OK);
            for (size_t i = 0; i < numbers.count; i++)
                sum = mixed(sum, numbers.number[i]);
        }
        if (options->by_similarity) {
            assert_int_equal(dp_directory_find_bands(directory, d.keys, BANDS, &numbers), DOPPEL_OK);
            for (size_t i = 0; i < numbers.count; i++)
                sum = mixed(sum, numbers.number[i]);
            continue;
        }
        assert_int_equal(dp_directory_find_near(directory, d.trace.fingerprint, 0, &near, NULL), DOPPEL_OK);
        for (size_t i = 0; i < near.count; i++)
            sum = mixed(sum, near.match[i].owner);
        dp_title_search query = {.title = d.trace.title, .below = UINT64_MAX, .share = 0.2};
        dp_title_hit hit;
        assert_int_equal(find_best_title(directory, &query, &titles, &hit), DOPPEL_OK);
        sum = mixed(sum, hit.number);
    }
    dp_numbers_free(&numbers);
    doppel_matches_free(&near);
    dp_title_matches_free(&titles);
    resume_faults(kinds);
    return sum;
}

typedef doppel_status (*change)(dp_directory *directory, const document *d);

static doppel_status add(dp_directory *directory, const document *d) {
    return dp_directory_add(directory, &d->trace);
}

static doppel_status take_out(dp_directory *directory, const document *d) {
    return dp_directory_remove(directory, &d->trace);
}

static doppel_status see(dp_directory *directory, const document *d) {
    return dp_directory_title_seen(directory, d->trace.number, 1);
}

/* Does one thing to some; where it fails, it works when it is tried again. */
static doppel_status change_some(dp_directory *directory, change do_it, uint64_t step) {
    doppel_status failed = DOPPEL_OK;
    document d;
    for (uint64_t n = 1; n <= COUNT; n += step) {
        fill(&d, n);
        doppel_status status = do_it(directory, &d);
        if (status == DOPPEL_OK)
            continue;
        failed = status;
        int kinds = pause_faults();
        assert_int_equal(do_it(directory, &d), DOPPEL_OK);
        resume_faults(kinds);
    }
    return failed;
}

/* What can be found in the end is the same, whichever call failed: had one that failed left anything, it would be found
 * after the number was taken out. */
static doppel_status change_all(const dp_directory_options *options, uint64_t *result) {
    static uint64_t expected[2];
    uint64_t *sum = &expected[options->by_similarity];
    dp_directory *directory;
    doppel_status status = dp_directory_create(options, &directory, NULL), next;
    if (status != DOPPEL_OK)
        return status;
    static const struct {
        change do_it;
        uint64_t step;
    } changes[] = {{add, 1}, {take_out, 3}, {see, 5}, {add, 3}, {take_out, 2}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if ((next = change_some(directory, changes[i].do_it, changes[i].step)) != DOPPEL_OK)
            status = next;
    *result = found_by(directory, options);
    *sum = *sum ? *sum : *result;
    assert_int_equal(*result, *sum);
    dp_directory_free(directory);
    return status;
}

static const dp_directory_options by_distance = {
    .bits = 64, .distance = 3, .titles = true, .title_similarity = 0.9, .threads = 2};
static const dp_directory_options by_similarity = {.bits = 64, .by_similarity = true, .threads = 2};

static doppel_status changes_by_distance(uint64_t *result) {
    return change_all(&by_distance, result);
}

static doppel_status changes_by_similarity(uint64_t *result) {
    return change_all(&by_similarity, result);
}

/* ---- loading ---- */

static doppel_status load_all(const dp_directory_options *options, uint64_t *result) {
    dp_directory *directory;
    dp_directory_load *load;
    doppel_status status = dp_directory_create(options, &directory, NULL);
    if (status != DOPPEL_OK)
        return status;
    status = dp_directory_load_begin(directory, &load);
    if (status == DOPPEL_OK) {
        document d;
        for (uint64_t n = 1; n <= COUNT && status == DOPPEL_OK; n++) {
            fill(&d, n);
            status = dp_directory_load_add(load, &d.trace);
        }
        doppel_status ended = dp_directory_load_end(load);
        assert_true(status == DOPPEL_OK || ended == status);
        status = ended;
    }
    if (status == DOPPEL_OK)
        *result = found_by(directory, options);
    dp_directory_free(directory);
    return status;
}

static doppel_status loads_by_distance(uint64_t *result) {
    return load_all(&by_distance, result);
}

static doppel_status loads_by_similarity(uint64_t *result) {
    return load_all(&by_similarity, result);
}

/* ---- finding ---- */

static dp_directory *asked;

static doppel_status find(uint64_t *result) {
    dp_numbers numbers = {0};
    document d;
    fill(&d, 8);
    doppel_status status = dp_directory_find_key(asked, DP_KEY_URL, d.trace.url_hash, &numbers);
    if (status == DOPPEL_OK)
        status = dp_directory_find_bands(asked, d.keys, BANDS, &numbers);
    for (size_t i = 0; i < numbers.count && status == DOPPEL_OK; i++)
        *result = mixed(*result, numbers.number[i]);
    dp_numbers_free(&numbers);
    return status;
}

/* ---- all of them ---- */

static const fault_plan each_fails = {
    .kinds = MEMORY, .expected = DOPPEL_ERROR_MEMORY, .may_pass = true, .sparse = true};

static void changes_without_memory(void **state) {
    (void)state;
    run_with(changes_by_distance, each_fails);
    run_with(changes_by_similarity, each_fails);
}

static void loads_without_memory(void **state) {
    (void)state;
    run_with(loads_by_distance, each_fails);
    run_with(loads_by_similarity, each_fails);
}

static void loads_without_threads(void **state) {
    (void)state;
    run_with(loads_by_distance, (fault_plan){.kinds = THREADS, .may_pass = true});
}

static void finds_without_memory(void **state) {
    (void)state;
    document d;
    assert_int_equal(dp_directory_create(&by_similarity, &asked, NULL), DOPPEL_OK);
    for (uint64_t n = 1; n <= COUNT; n++) {
        fill(&d, n);
        assert_int_equal(dp_directory_add(asked, &d.trace), DOPPEL_OK);
    }
    run_with(find, (fault_plan){.kinds = MEMORY, .expected = DOPPEL_ERROR_MEMORY});
    dp_directory_free(asked);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_without_memory),
        cmocka_unit_test(loads_without_memory),
        cmocka_unit_test(loads_without_threads),
        cmocka_unit_test(finds_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
