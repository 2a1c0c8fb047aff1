/* pairs_sort.c - sorts pairs by (a, b).
 *
 * Two steps, so that most of the work stays in the cache: the pairs are dealt into parts by the top bits of a, and each
 * part is sorted by the digits that are left, the least one first. */
#include "index/pairs.h"

/* A part of 4096 pairs and its copy are 96 KiB: half of it in the first-level cache, all in the second. */
#define PART 4096
/* More parts than 4096 would need more open cache lines than the first-level cache has. */
#define MOST_PART_BITS 12
#define SMALL 32
#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)

static uint64_t key_of(dp_pair pair) {
    return (uint64_t)pair.a << 32 | pair.b;
}

static void insertion_sort(dp_pair *records, size_t count) {
    for (size_t i = 1; i < count; i++) {
        dp_pair record = records[i];
        uint64_t key = key_of(record);
        size_t at = i;
        for (; at && key_of(records[at - 1]) > key; at--)
            records[at] = records[at - 1];
        records[at] = record;
    }
}

/* Turns counts into where each begins. */
static void sum_up(uint32_t *places, size_t count) {
    uint32_t next = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t here = places[i];
        places[i] = next;
        next += here;
    }
}

/* One digit: from -> to. False, and nothing is done, when all have the same. */
static bool sort_digit(const dp_pair *from, size_t count, dp_pair *to, int shift) {
    uint32_t places[DIGITS] = {0};
    for (size_t i = 0; i < count; i++)
        places[key_of(from[i]) >> shift & (DIGITS - 1)]++;
    if (places[key_of(from[0]) >> shift & (DIGITS - 1)] == count)
        return false;
    sum_up(places, DIGITS);
    for (size_t i = 0; i < count; i++)
        to[places[key_of(from[i]) >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

/* Sorts one part that stands in `from`, and leaves it in `to`. */
static void sort_part(dp_pair *from, size_t count, dp_pair *to) {
    dp_pair *here = from, *there = to;
    uint64_t differ = 0;
    if (count > SMALL) {
        for (size_t i = 1; i < count; i++)
            differ |= key_of(from[i]) ^ key_of(from[0]);
        for (int shift = 0; shift < 64; shift += DIGIT_BITS)
            if ((differ >> shift & (DIGITS - 1)) && sort_digit(here, count, there, shift)) {
                dp_pair *swapped = here;
                here = there;
                there = swapped;
            }
    }
    if (here != to)
        memcpy(to, here, count * sizeof *to);
    if (count <= SMALL)
        insertion_sort(to, count);
}

static bool is_sorted(const dp_pair *records, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (key_of(records[i - 1]) > key_of(records[i]))
            return false;
    return true;
}

/* How many top bits of a, which are below 2^a_bits, deal `count` pairs into parts of about PART. */
static int part_bits(size_t count, int a_bits) {
    int bits = 0;
    while (bits < MOST_PART_BITS && bits < a_bits && count >> bits > PART)
        bits++;
    return bits;
}

void dp_pairs_sort(dp_pair *records, size_t count, dp_pair *scratch) {
    if (is_sorted(records, count))
        return;
    uint32_t any = 0, places[(1 << MOST_PART_BITS) + 1] = {0};
    for (size_t i = 0; i < count; i++)
        any |= records[i].a;
    int a_bits = any ? 32 - __builtin_clz(any) : 0, bits = part_bits(count, a_bits), shift = a_bits - bits;
    for (size_t i = 0; i < count; i++)
        places[(uint64_t)records[i].a >> shift]++;
    sum_up(places, (size_t)1 << bits);
    for (size_t i = 0; i < count; i++)
        scratch[places[(uint64_t)records[i].a >> shift]++] = records[i];
    for (size_t part = 0, start = 0; part < (size_t)1 << bits; start = places[part++])
        if (places[part] > start)
            sort_part(scratch + start, places[part] - start, records + start);
}
