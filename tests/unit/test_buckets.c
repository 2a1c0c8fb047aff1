/* test_buckets.c - documents that may be near, in buckets, and who looks at which. */
#include "support.h"

#include "batch/batch.h"

static void add(dp_buckets *buckets, size_t count, const uint32_t *members) {
    assert_true(dp_buckets_add(buckets, members, count));
}

static void a_bucket_is_kept_once(void **state) {
    (void)state;
    dp_buckets buckets = {0};
    add(&buckets, 2, (uint32_t[]){1, 4});
    add(&buckets, 3, (uint32_t[]){1, 4, 5});
    add(&buckets, 2, (uint32_t[]){1, 4});
    add(&buckets, 2, (uint32_t[]){4, 5});
    add(&buckets, 3, (uint32_t[]){1, 4, 5});
    assert_int_equal(buckets.count, 3);
    assert_int_equal(buckets.member_count, 7);
    assert_int_equal(buckets.start[0], 0);
    assert_int_equal(buckets.start[3], 7);
    assert_memory_equal(buckets.member, ((uint32_t[]){1, 4, 1, 4, 5, 4, 5}), 7 * sizeof(uint32_t));
    dp_buckets_free(&buckets);
    assert_null(buckets.member);
}

static void every_look_leads_to_a_bucket_with_the_document(void **state) {
    (void)state;
    enum { DOCUMENTS = 500, BUCKETS = 3000 };
    dp_buckets buckets = {0};
    dp_looks looks = {0};
    uint64_t random = 1;
    for (int i = 0; i < BUCKETS; i++) {
        uint32_t members[20];
        size_t count = 0;
        for (uint32_t d = (uint32_t)random_below(&random, 200); d < DOCUMENTS && count < 20;
             d += 1 + (uint32_t)random_below(&random, 90))
            members[count++] = d;
        add(&buckets, count, members);
    }
    assert_true(dp_looks_make(&looks, &buckets, DOCUMENTS));
    assert_int_equal(looks.start[0], 0);
    assert_int_equal(looks.start[DOCUMENTS], buckets.member_count);
    for (uint32_t d = 0; d < DOCUMENTS; d++)
        for (uint64_t i = looks.start[d]; i < looks.start[d + 1]; i++) {
            uint32_t b = looks.bucket[i];
            bool found = false;
            assert_true(i == looks.start[d] || looks.bucket[i - 1] < b);
            for (uint64_t m = buckets.start[b]; m < buckets.start[b + 1]; m++)
                found = found || buckets.member[m] == d;
            assert_true(found);
        }
    dp_looks_free(&looks);
    dp_buckets_free(&buckets);
}

static void nothing_has_no_looks(void **state) {
    (void)state;
    dp_buckets buckets = {0};
    dp_looks looks = {0};
    assert_true(dp_looks_make(&looks, &buckets, 0));
    assert_int_equal(looks.start[0], 0);
    dp_looks_free(&looks);
    assert_true(dp_looks_make(&looks, &buckets, 3));
    assert_int_equal(looks.start[3], 0);
    dp_looks_free(&looks);
    dp_buckets_free(&buckets);
}

static void sets_grow_together(void **state) {
    (void)state;
    uint32_t parent[10];
    for (uint32_t i = 0; i < 10; i++)
        parent[i] = i;
    dp_unite(parent, 9, 7);
    dp_unite(parent, 7, 3);
    dp_unite(parent, 1, 2);
    assert_int_equal(dp_root(parent, 9), 3);
    assert_int_equal(dp_root(parent, 2), 1);
    dp_unite(parent, 2, 9);
    assert_int_equal(dp_root(parent, 7), 1);
    assert_int_equal(dp_root(parent, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_is_kept_once),
        cmocka_unit_test(every_look_leads_to_a_bucket_with_the_document),
        cmocka_unit_test(nothing_has_no_looks),
        cmocka_unit_test(sets_grow_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
