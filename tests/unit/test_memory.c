/* test_memory.c - memory of runs: areas that could not be had leave nothing behind, in a pool either. */
#include "support.h"

#include "hamming/run.h"

#include <sys/resource.h>

enum { SIZE = 5 << 20 };

/* Asks for an area while the system gives no memory. */
static bool get_from_nothing(dp_pool *pool, dp_area *area) {
    struct rlimit before, little;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    little = (struct rlimit){1 << 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    bool got = dp_pool_get(pool, area, SIZE);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    return got;
}

static void an_area_that_was_not_given_is_empty(void **state) {
    (void)state;
    dp_area area;
    assert_false(get_from_nothing(NULL, &area));
    assert_null(area.data);
    assert_int_equal(area.mapped, 0);
    dp_area_free(&area);
}

static void a_pool_keeps_no_area_that_was_not_given(void **state) {
    (void)state;
    dp_pool pool = {0};
    dp_area area;
    assert_false(get_from_nothing(&pool, &area));
    dp_pool_give(&pool, &area);
    assert_true(dp_pool_get(&pool, &area, SIZE));
    assert_non_null(area.data);
    memset(area.data, 1, SIZE);
    dp_pool_give(&pool, &area);
    dp_pool_free(&pool);
}

static void a_pool_gives_an_area_again(void **state) {
    (void)state;
    dp_pool pool = {0};
    dp_area area;
    assert_true(dp_pool_get(&pool, &area, SIZE));
    const void *data = area.data;
    dp_pool_give(&pool, &area);
    assert_null(area.data);
    assert_true(dp_pool_get(&pool, &area, SIZE - 1));
    assert_ptr_equal(area.data, data);
    dp_pool_give(&pool, &area);
    dp_pool_free(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_area_that_was_not_given_is_empty),
        cmocka_unit_test(a_pool_keeps_no_area_that_was_not_given),
        cmocka_unit_test(a_pool_gives_an_area_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
