/* test_kernel_partition.c - dealing keys into slices: every variant as defined, whatever the widths, strides and skew.
 */
#include "support.h"

#include "kernel/kernel.h"

#include <stdlib.h>

typedef struct dealt {
    dp_partition deal;
    uint32_t *counts;
    size_t slices, room;
} dealt;

static void *aligned(size_t bytes) {
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static uint64_t key_of(const dp_partition *deal, const uint64_t *values, uint32_t number) {
    return values[number * deal->stride] >> deal->shift & (((uint64_t)1 << deal->width) - 1);
}

/* Room for `count` numbers, each slice where it belongs. */
static dealt prepare(dp_partition deal, const uint64_t *values, uint32_t count) {
    dealt d = {.deal = deal, .slices = (size_t)1 << deal.slice_bits};
    uint32_t next = 0;
    d.counts = calloc(d.slices, sizeof *d.counts);
    d.deal.fills = calloc(d.slices, sizeof *d.deal.fills);
    d.deal.starts = calloc(d.slices, sizeof *d.deal.starts);
    d.deal.open = aligned(d.slices * DP_PARTITION_LINE * 8);
    for (uint32_t i = 0; i < count; i++)
        d.counts[key_of(&deal, values, i) >> (deal.width - deal.slice_bits)]++;
    for (size_t s = 0; s < d.slices; s++) {
        d.deal.starts[s] = next;
        next += (d.counts[s] + DP_PARTITION_LINE - 1) / DP_PARTITION_LINE * DP_PARTITION_LINE;
    }
    d.room = next;
    d.deal.entries = aligned((d.room + 8) * 8);
    return d;
}

static void release(dealt *d) {
    free(d->counts);
    free(d->deal.fills);
    free(d->deal.starts);
    free(d->deal.open);
    free(d->deal.entries);
}

/* Every slice has its numbers in order, those of full lines in memory and the others in the open line. */
static void check(const dealt *d, const uint64_t *values, uint32_t count) {
    uint32_t *seen = calloc(d->slices, sizeof *seen);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t key = key_of(&d->deal, values, i);
        size_t slice = key >> (d->deal.width - d->deal.slice_bits);
        uint32_t at = seen[slice]++, full = d->counts[slice] / DP_PARTITION_LINE * DP_PARTITION_LINE;
        const uint64_t *from = at < full ? d->deal.entries + d->deal.starts[slice] + at
                                         : d->deal.open + slice * DP_PARTITION_LINE + (at - full);
        assert_int_equal(*from, key << 32 | i);
    }
    assert_memory_equal(seen, d->counts, d->slices * sizeof *seen);
    assert_memory_equal(seen, d->deal.fills, d->slices * sizeof *seen);
    free(seen);
}

static void check_deal(dp_partition deal, const uint64_t *values, uint32_t count) {
    EACH_VARIANT(partition, variant) {
        dealt d = prepare(deal, values, count);
        variant->run(&d.deal, values, 0, count / 3);
        variant->run(&d.deal, values, count / 3, count - count / 3);
        check(&d, values, count);
        release(&d);
    }
}

static void keys_go_to_their_slices_in_order(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    uint64_t *values = malloc(COUNT * 2 * 8), seed = 1;
    for (size_t i = 0; i < 2 * COUNT; i++)
        values[i] = random_next(&seed);
    check_deal((dp_partition){.stride = 1, .shift = 32, .width = 32, .slice_bits = 9}, values, COUNT);
    check_deal((dp_partition){.stride = 1, .shift = 0, .width = 32, .slice_bits = 0}, values, COUNT);
    check_deal((dp_partition){.stride = 2, .shift = 7, .width = 20, .slice_bits = 5}, values, COUNT);
    check_deal((dp_partition){.stride = 2, .shift = 63, .width = 1, .slice_bits = 1}, values, COUNT);
    check_deal((dp_partition){.stride = 1, .shift = 10, .width = 3, .slice_bits = 3}, values, 5);
    check_deal((dp_partition){.stride = 1, .shift = 10, .width = 3, .slice_bits = 3}, values, 0);
    free(values);
}

static void all_keys_in_one_slice(void **state) {
    (void)state;
    enum { COUNT = 3 * DP_PARTITION_LINE + 1 };
    uint64_t values[COUNT];
    for (uint32_t count = 0; count <= COUNT; count++) {
        for (size_t i = 0; i < COUNT; i++)
            values[i] = 0xFFFFFFFF00000000 | i;
        check_deal((dp_partition){.stride = 1, .shift = 32, .width = 32, .slice_bits = 4}, values, count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_go_to_their_slices_in_order),
        cmocka_unit_test(all_keys_in_one_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
