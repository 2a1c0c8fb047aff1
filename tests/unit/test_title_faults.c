/* test_title_faults.c - titles and addresses without memory: a clear error, no leak, and what was there is still found.
 */
#include "faults.h"

#include "title/title.h"

enum { TITLES = 900, QUERIES = 20 };

static size_t put_title(size_t i, char *to) {
    return (size_t)sprintf(to, "%05zu title %zu of a site with one long end for all of them", i * 7919 % 100000, i % 7);
}

/* A number for what an index finds, looked at without faults. */
static uint64_t found_by(const dp_titles_index *index) {
    int kinds = pause_faults();
    dp_title_matches found = {0};
    uint64_t sum = 0;
    char title[128];
    for (size_t q = 0; q < QUERIES; q++) {
        assert_int_equal(dp_titles_index_find(index, title, put_title(q * 31, title), &found), DOPPEL_OK);
        for (size_t i = 0; i < found.count; i++)
            for (size_t j = 0; j < found.match[i].owner_count; j++)
                sum = mixed(sum, found.match[i].owners[j]);
    }
    dp_title_matches_free(&found);
    resume_faults(kinds);
    return sum;
}

/* Adds all, each tried again when there was no memory for it: then it must work. *status tells whether there was. */
static void add_all(dp_titles_index *index, size_t from, size_t step, doppel_status *status) {
    char title[128];
    for (size_t i = from; i < TITLES; i += step) {
        size_t length = put_title(i / 2 * 2, title);
        doppel_status added = dp_titles_index_add(index, title, length, i);
        if (added) {
            *status = added;
            int kinds = pause_faults();
            assert_int_equal(dp_titles_index_add(index, title, length, i), DOPPEL_OK);
            resume_faults(kinds);
        }
    }
}

/* What is found in the end is the same, whichever call failed. */
static uint64_t expected_sum;

static doppel_status titles(uint64_t *result) {
    dp_titles_index *index;
    doppel_status status = dp_titles_index_create(0.9, &index);
    if (status)
        return status;
    add_all(index, 0, 1, &status);
    char title[128];
    for (size_t i = 0; i < TITLES; i += 3) {
        doppel_status removed = dp_titles_index_remove(index, title, put_title(i / 2 * 2, title), i, NULL);
        if (removed) {
            status = removed;
            int kinds = pause_faults();
            assert_int_equal(dp_titles_index_remove(index, title, put_title(i / 2 * 2, title), i, NULL), DOPPEL_OK);
            resume_faults(kinds);
        }
    }
    uint64_t sum = found_by(index);
    expected_sum = expected_sum ? expected_sum : sum;
    assert_int_equal(sum, expected_sum);
    *result = sum;
    dp_titles_index_free(index);
    return status;
}

/* Removing most of many builds the index anew. */
static doppel_status rebuilding(uint64_t *result) {
    int kinds = pause_faults();
    dp_titles_index *index;
    doppel_status status = DOPPEL_OK;
    char title[128];
    assert_int_equal(dp_titles_index_create(0.9, &index), DOPPEL_OK);
    for (size_t i = 0; i < 3 * TITLES; i++)
        assert_int_equal(dp_titles_index_add(index, title, put_title(i, title), i), DOPPEL_OK);
    for (size_t i = TITLES; i < 3 * TITLES && !status; i++) {
        size_t length = put_title(i, title);
        resume_faults(i > 5 * TITLES / 2 ? kinds : 0);
        status = dp_titles_index_remove(index, title, length, i, NULL);
        pause_faults();
    }
    *result = status ? 0 : found_by(index);
    dp_titles_index_free(index);
    resume_faults(kinds);
    return status;
}

static doppel_status finding(uint64_t *result) {
    int kinds = pause_faults();
    dp_titles_index *index;
    doppel_status status = DOPPEL_OK;
    assert_int_equal(dp_titles_index_create(0.9, &index), DOPPEL_OK);
    add_all(index, 0, 2, &status);
    resume_faults(kinds);
    dp_title_matches found = {0};
    char title[4096];
    memset(title, 'x', sizeof title);
    for (size_t q = 0; q < 3 && !status; q++) {
        status = dp_titles_index_find(index, title, q ? put_title(q * 31, title) : sizeof title, &found);
        assert_true(!status || !found.count);
        *result = mixed(*result, found.count);
    }
    dp_title_matches_free(&found);
    dp_titles_index_free(index);
    return status;
}

static doppel_status addresses(uint64_t *result) {
    static const char start[] = "http://a.b/?";
    char url[6000], to[16];
    memcpy(url, start, sizeof start - 1);
    for (size_t i = sizeof start - 1; i < sizeof url; i++)
        url[i] = "zya&"[i % 4];
    size_t written;
    doppel_status status = doppel_url_canonical((doppel_slice){url, sizeof url}, NULL, 0, to, sizeof to, &written);
    *result = written;
    return status == DOPPEL_ERROR_USAGE ? DOPPEL_OK : status;
}

static void run_without_memory(scenario run, bool may_pass) {
    for (int go_on = 0; go_on < 2; go_on++)
        run_with(run, (fault_plan){.kinds = MEMORY,
                                   .go_on = go_on,
                                   .expected = DOPPEL_ERROR_MEMORY,
                                   .may_pass = may_pass,
                                   .sparse = true});
}

static void titles_without_memory(void **state) {
    (void)state;
    run_without_memory(titles, true); /* cuts that cannot be chosen anew stay as they are */
}

static void rebuilding_without_memory(void **state) {
    (void)state;
    run_without_memory(rebuilding, true); /* what cannot be built anew stays as it is */
}

static void finding_without_memory(void **state) {
    (void)state;
    run_without_memory(finding, false);
}

static void addresses_without_memory(void **state) {
    (void)state;
    run_without_memory(addresses, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(titles_without_memory),
        cmocka_unit_test(rebuilding_without_memory),
        cmocka_unit_test(finding_without_memory),
        cmocka_unit_test(addresses_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
