/* measures.c - measures on fingerprints, on sets of hashes and their signatures, and on term vectors. */
#include "kernel/kernel.h"
#include "verify/verify.h"

#include <math.h>

/* ---- fingerprints, sets and signatures ---- */

/* From this ratio of sizes on, looking up each number of the smaller set beats going through the larger one: a
 * lookup costs about 2 log2(ratio) comparisons that the CPU cannot predict, the kernel an eighth to one comparison a
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

/* ---- term vectors: cosine, its angle, Euclidean distance. Terms ascend, so that one merge pairs them up, and sums run
 * in the order of terms. ---- */

/* What one merge of two vectors yields. */
typedef struct products {
    double dot, square_a, square_b, square_difference;
} products;

static void add_pair(products *sums, double a, double b) {
    sums->dot += a * b;
    sums->square_a += a * a;
    sums->square_b += b * b;
    sums->square_difference += (a - b) * (a - b);
}

static products multiply(const doppel_term *a, size_t a_count, const doppel_term *b, size_t b_count) {
    products sums = {0};
    size_t i = 0, j = 0;
    while (i < a_count || j < b_count) {
        if (j == b_count || (i < a_count && a[i].term < b[j].term))
            add_pair(&sums, a[i++].weight, 0);
        else if (i == a_count || b[j].term < a[i].term)
            add_pair(&sums, 0, b[j++].weight);
        else
            add_pair(&sums, a[i++].weight, b[j++].weight);
    }
    return sums;
}

/* Rounding must not push a cosine out of [-1, 1]. The root of the product, not the product of the roots: a vector with
 * itself gives exactly 1. */
static double cosine(const products *sums) {
    if (sums->square_a == 0 && sums->square_b == 0)
        return 1;
    if (sums->square_a == 0 || sums->square_b == 0)
        return 0;
    double both = sums->square_a * sums->square_b;
    double length = isnormal(both) ? sqrt(both) : sqrt(sums->square_a) * sqrt(sums->square_b);
    return fmax(-1, fmin(1, sums->dot / length));
}

double doppel_cosine(const doppel_term *a, size_t a_count, const doppel_term *b, size_t b_count) {
    products sums = multiply(a, a_count, b, b_count);
    return cosine(&sums);
}

/* Near 0 the arc cosine turns one unit in the last place into a millionth of a degree; a vector with itself still gives
 * 0, as its cosine is exactly 1. */
double doppel_angle(const doppel_term *a, size_t a_count, const doppel_term *b, size_t b_count) {
    return acos(doppel_cosine(a, a_count, b, b_count)) * (180 / 3.14159265358979323846);
}

double doppel_euclidean(const doppel_term *a, size_t a_count, const doppel_term *b, size_t b_count) {
    return sqrt(multiply(a, a_count, b, b_count).square_difference);
}

/* Sorts inside `terms` itself: it holds two numbers a place, so that the sorted hashes fit its upper half and the
 * scratch of the sort its lower half. Then the terms are written from the bottom. Term i is complete when hash j >= i
 * has been read; it ends at 16 (i + 1) bytes, and hash j + 1 stands at 8 count + 8 (j + 1), which is not less as
 * j + 1 <= count: nothing unread is overwritten. */
size_t doppel_terms(const uint64_t *hashes, size_t count, doppel_term *terms) {
    typedef uint64_t number __attribute__((may_alias));
    _Static_assert(sizeof(doppel_term) == 2 * sizeof(uint64_t), "a term has room for two hashes");
    if (!count)
        return 0;
    number *scratch = (number *)(void *)terms, *sorted = scratch + count;
    memcpy(sorted, hashes, count * sizeof *hashes);
    dp_sort64(sorted, count, scratch);
    size_t filled = 0;
    for (size_t i = 0; i < count;) {
        uint64_t term = sorted[i], times = 0;
        for (; i < count && sorted[i] == term; i++)
            times++;
        double weight = (double)times;
        memcpy(&terms[filled].term, &term, sizeof term);
        memcpy(&terms[filled].weight, &weight, sizeof weight);
        filled++;
    }
    return filled;
}
