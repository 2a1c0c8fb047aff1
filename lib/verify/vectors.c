/* vectors.c - measures on term vectors: cosine, its angle, Euclidean distance. Terms ascend, so that one merge pairs
 * them up, and sums run in the order of terms. */
#include "verify/verify.h"

#include <math.h>

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
