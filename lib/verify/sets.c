/* sets.c - measures on fingerprints, on sets of hashes and on the signatures that stand for them. */
#include "kernel/kernel.h"
#include "verify/verify.h"

#include <math.h>

/* From this ratio of sizes on, looking up each number of the smaller set beats walking through the larger one: a
 * look-up costs about 2 log2(ratio) comparisons that the CPU cannot foresee, the kernel an eighth to one comparison a
 * number. */
#define GALLOP_RATIO 64

int doppel_distance(uint64_t a, uint64_t b) {
    return __builtin_popcountll(a ^ b);
}

int doppel_distance128(const uint64_t a[2], const uint64_t b[2]) {
    return doppel_distance(a[0], b[0]) + doppel_distance(a[1], b[1]);
}

/* The first place from `at` on whose number is not below `number`: steps that double, then halves. */
static size_t gallop(const uint64_t *set, size_t count, size_t at, uint64_t number) {
    size_t step = 1, low = at;
    while (low + step <= count && set[low + step - 1] < number) {
        low += step;
        step *= 2;
    }
    size_t high = low + step <= count ? low + step - 1 : count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t shared_gallop(const uint64_t *small, size_t small_count, const uint64_t *large, size_t large_count) {
    size_t at = 0, shared = 0;
    for (size_t i = 0; i < small_count && at < large_count; i++) {
        at = gallop(large, large_count, at, small[i]);
        shared += at < large_count && large[at] == small[i];
    }
    return shared;
}

size_t doppel_set_shared(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count) {
    if (a_count > b_count)
        return doppel_set_shared(b, b_count, a, a_count);
    if (b_count / GALLOP_RATIO >= a_count)
        return shared_gallop(a, a_count, b, b_count);
    return dp_shared_kernel()(a, a_count, b, b_count);
}

double doppel_jaccard(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count) {
    size_t shared = doppel_set_shared(a, a_count, b, b_count), all = a_count + b_count - shared;
    return all ? (double)shared / (double)all : 1;
}

double doppel_containment(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count) {
    return a_count ? (double)doppel_set_shared(a, a_count, b, b_count) / (double)a_count : 1;
}

double doppel_signature_jaccard(const uint32_t *a, const uint32_t *b, size_t slots) {
    size_t equal = 0;
    for (size_t i = 0; i < slots; i++)
        equal += a[i] == b[i];
    return slots ? (double)equal / (double)slots : 1;
}

/* J = s / (A + B - s) for s shared ones, so s = J (A + B) / (1 + J); no more can be shared than the smaller set has. */
double doppel_signature_containment(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count,
                                    size_t slots) {
    if (!a_count)
        return 1;
    double jaccard = doppel_signature_jaccard(a, b, slots);
    double shared = jaccard * ((double)a_count + (double)b_count) / (1 + jaccard);
    return fmin(shared, fmin((double)a_count, (double)b_count)) / (double)a_count;
}
