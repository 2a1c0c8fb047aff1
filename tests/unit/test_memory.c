/* test_memory.c - memory of runs: a failed allocation leaks nothing; a trimmed one keeps its bytes.
 */
#include "support.h"

#include "hamming/run.h"

#include <sys/resource.h>

enum { SIZE = 9 << 20 };

/* Asks for a block while the system gives no memory. */
static bool get_from_nothing(dp_memory *block) {
    struct rlimit before, little;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    little = (struct rlimit){1 << 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    bool got = dp_memory_alloc(block, SIZE);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    return got;
}

static void a_block_that_was_not_given_is_empty(void **state) {
    (void)state;
    dp_memory block;
    assert_false(get_from_nothing(&block));
    assert_null(block.data);
    assert_int_equal(block.mapped, 0);
    dp_memory_free(&block);
}

static void a_trimmed_block_keeps_what_is_left(void **state) {
    (void)state;
    dp_memory block;
    assert_true(dp_memory_alloc(&block, SIZE));
    memset(block.data, 7, SIZE);
    size_t mapped = block.mapped;
    dp_memory_trim(&block, SIZE / 3);
    assert_int_equal(block.size, SIZE / 3);
    assert_true(block.mapped < mapped);
    for (size_t i = 0; i < SIZE / 3; i += 4096)
        assert_int_equal(((const char *)block.data)[i], 7);
    dp_memory_free(&block);
    assert_null(block.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_that_was_not_given_is_empty),
        cmocka_unit_test(a_trimmed_block_keeps_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
