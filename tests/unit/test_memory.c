/* test_memory.c - memory of runs: blocks that could not be had leave nothing behind, in a pool either. */
#include "support.h"

#include "hamming/run.h"

#include <sys/resource.h>

enum { SIZE = 5 << 20 };

/* Asks for a block while the system gives no memory. */
static bool get_from_nothing(dp_memory_pool *pool, dp_memory *block) {
    struct rlimit before, little;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    little = (struct rlimit){1 << 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    bool got = dp_memory_pool_get(pool, block, SIZE);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    return got;
}

static void a_block_that_was_not_given_is_empty(void **state) {
    (void)state;
    dp_memory block;
    assert_false(get_from_nothing(NULL, &block));
    assert_null(block.data);
    assert_int_equal(block.mapped, 0);
    dp_memory_free(&block);
}

static void a_pool_keeps_no_block_that_was_not_given(void **state) {
    (void)state;
    dp_memory_pool pool = {0};
    dp_memory block;
    assert_false(get_from_nothing(&pool, &block));
    dp_memory_pool_put(&pool, &block);
    assert_true(dp_memory_pool_get(&pool, &block, SIZE));
    assert_non_null(block.data);
    memset(block.data, 1, SIZE);
    dp_memory_pool_put(&pool, &block);
    dp_memory_pool_free(&pool);
}

static void a_pool_gives_a_block_again(void **state) {
    (void)state;
    dp_memory_pool pool = {0};
    dp_memory block;
    assert_true(dp_memory_pool_get(&pool, &block, SIZE));
    const void *data = block.data;
    dp_memory_pool_put(&pool, &block);
    assert_null(block.data);
    assert_true(dp_memory_pool_get(&pool, &block, SIZE - 1));
    assert_ptr_equal(block.data, data);
    dp_memory_pool_put(&pool, &block);
    dp_memory_pool_free(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_that_was_not_given_is_empty),
        cmocka_unit_test(a_pool_keeps_no_block_that_was_not_given),
        cmocka_unit_test(a_pool_gives_a_block_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
