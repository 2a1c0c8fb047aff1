/* parallel.c - work on large arrays shared by threads. */
#include "base/parallel.h"

#include "base/base.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- pieces ---- */

typedef struct pieces {
    size_t count, piece;
    void (*work)(void *user, size_t from, size_t to);
    void *user;
    atomic_size_t next; /* the next piece to take */
} pieces;

static void work_on_pieces(void *user, size_t thread) {
    pieces *p = user;
    size_t all = (p->count + p->piece - 1) / p->piece;
    (void)thread;
    for (size_t number; (number = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < all;) {
        size_t from = number * p->piece, left = p->count - from;
        p->work(p->user, from, from + (left < p->piece ? left : p->piece));
    }
}

void dp_run_pieces(size_t threads, size_t count, size_t piece, void (*work)(void *user, size_t from, size_t to),
                   void *user) {
    pieces p = {.count = count, .piece = piece, .work = work, .user = user};
    size_t all = count / piece + (count % piece != 0);
    if (all)
        dp_run_threads(threads < all ? threads : all, work_on_pieces, &p);
}

/* ---- sums ---- */

/* An array is cut into at most this many parts: enough to share them evenly, few enough to sum quickly. */
enum { PARTS = 256 };

static size_t part_length(size_t count) {
    size_t length = count / PARTS + 1;
    return length < DP_PIECE ? DP_PIECE : length;
}

typedef struct sums {
    uint64_t *number;
    size_t length;
    uint64_t before[PARTS + 1]; /* of each part: the sum of all before it */
} sums;

static void add_part(void *user, size_t from, size_t to) {
    sums *s = user;
    uint64_t sum = 0;
    for (size_t i = from; i < to; i++)
        sum += s->number[i];
    s->before[from / s->length + 1] = sum;
}

static void add_up_part(void *user, size_t from, size_t to) {
    const sums *s = user;
    uint64_t sum = s->before[from / s->length];
    for (size_t i = from; i < to; i++)
        sum = s->number[i] += sum;
}

uint64_t dp_add_up(size_t threads, uint64_t *numbers, size_t count) {
    sums s = {.number = numbers, .length = part_length(count)};
    dp_run_pieces(threads, count, s.length, add_part, &s);
    for (size_t i = 1; i <= PARTS; i++)
        s.before[i] += s.before[i - 1];
    dp_run_pieces(threads, count, s.length, add_up_part, &s);
    return s.before[PARTS];
}

/* ---- sorting numbers ----
 *
 * By the first eight bits in which they differ, into 256 sections, which threads then sort one by one. A section larger
 * than a thread's share is split again in the same way. */

enum { DIGITS = 256, LEAST_SHARED = 1 << 16 };

typedef struct digit_sort {
    uint64_t *number, *scratch;
    size_t count, length; /* in all, of a part */
    _Atomic uint64_t differing;
    int shift;
    size_t (*place)[DIGITS]; /* by part */
    size_t start[DIGITS + 1];
    size_t share; /* longer sections are shared by all threads */
} digit_sort;

static void find_differing(void *user, size_t from, size_t to) {
    digit_sort *s = user;
    uint64_t differing = 0, first = s->number[0];
    for (size_t i = from; i < to; i++)
        differing |= s->number[i] ^ first;
    atomic_fetch_or_explicit(&s->differing, differing, memory_order_relaxed);
}

static void count_digits(void *user, size_t from, size_t to) {
    const digit_sort *s = user;
    size_t *place = s->place[from / s->length];
    for (size_t i = from; i < to; i++)
        place[s->number[i] >> s->shift & (DIGITS - 1)]++;
}

static void scatter_digits(void *user, size_t from, size_t to) {
    const digit_sort *s = user;
    size_t *place = s->place[from / s->length];
    for (size_t i = from; i < to; i++)
        s->scratch[place[s->number[i] >> s->shift & (DIGITS - 1)]++] = s->number[i];
}

/* Turns counts into places: for each digit, part after part. */
static void set_places(digit_sort *s) {
    size_t next = 0, parts = (s->count + s->length - 1) / s->length;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        s->start[digit] = next;
        for (size_t part = 0; part < parts; part++) {
            size_t here = s->place[part][digit];
            s->place[part][digit] = next;
            next += here;
        }
    }
    s->start[DIGITS] = next;
}

/* Sorts sections and copies them back; long ones are left to all threads. */
static void sort_sections(void *user, size_t from, size_t to) {
    const digit_sort *s = user;
    for (size_t digit = from; digit < to; digit++) {
        size_t start = s->start[digit], count = s->start[digit + 1] - start;
        if (count > s->share)
            continue;
        dp_sort64(s->scratch + start, count, s->number + start);
        memcpy(s->number + start, s->scratch + start, count * sizeof *s->number);
    }
}

static void sort_by_digit(size_t threads, digit_sort *s) {
    uint64_t differing = atomic_load(&s->differing);
    int bits = 64 - __builtin_clzll(differing);
    s->shift = bits > 8 ? bits - 8 : 0;
    dp_run_pieces(threads, s->count, s->length, count_digits, s);
    set_places(s);
    dp_run_pieces(threads, s->count, s->length, scatter_digits, s);
    dp_run_pieces(threads, DIGITS, 1, sort_sections, s);
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t start = s->start[digit], count = s->start[digit + 1] - start;
        if (count <= s->share)
            continue;
        memcpy(s->number + start, s->scratch + start, count * sizeof *s->number);
        dp_sort64_on(threads, s->number + start, count, s->scratch + start);
    }
}

void dp_sort64_on(size_t threads, uint64_t *numbers, size_t count, uint64_t *scratch) {
    digit_sort s = {.number = numbers, .scratch = scratch, .count = count, .length = part_length(count)};
    if (threads > 1 && count >= LEAST_SHARED)
        s.place = calloc(count / s.length + 1, sizeof *s.place);
    if (!s.place) { /* few numbers, or no memory to share them */
        dp_sort64(numbers, count, scratch);
        return;
    }
    s.share = count / threads + LEAST_SHARED;
    dp_run_pieces(threads, count, s.length, find_differing, &s);
    if (atomic_load(&s.differing))
        sort_by_digit(threads, &s);
    free(s.place);
}

/* ---- sorting by a comparison ----
 *
 * Runs of whole blocks are sorted, then merged two by two. A merge works on one output block at a time: where a block
 * begins in either run is found by bisection. */

enum { BLOCK = 1 << 12 };

typedef struct run_sort {
    uint32_t *from, *to;
    size_t count, run;
    dp_compare_numbers compare;
    void *user;
} run_sort;

static void sort_run(void *user, size_t from, size_t to) {
    const run_sort *s = user;
    qsort_r(s->from + from, to - from, sizeof *s->from, s->compare, s->user);
}

/* How many of the first `taken` of two merged runs come from the first one. */
static size_t taken_of_first(const run_sort *s, const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count,
                             size_t taken) {
    size_t low = taken > b_count ? taken - b_count : 0, high = taken < a_count ? taken : a_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->compare(&a[middle], &b[taken - middle - 1], s->user) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One output block; runs consist of whole blocks, so it comes from two runs only. */
static void merge_block(void *user, size_t from, size_t to) {
    const run_sort *s = user;
    size_t start = from / (2 * s->run) * (2 * s->run), left = s->count - start;
    size_t a_count = left < s->run ? left : s->run, b_count = left - a_count < s->run ? left - a_count : s->run;
    const uint32_t *a = s->from + start, *b = a + a_count;
    size_t i = taken_of_first(s, a, a_count, b, b_count, from - start), j = from - start - i;
    for (size_t at = from; at < to; at++) {
        bool first = j == b_count || (i < a_count && s->compare(&a[i], &b[j], s->user) < 0);
        s->to[at] = first ? a[i] : b[j];
        i += first;
        j += !first;
    }
}

void dp_sort_by(size_t threads, uint32_t *numbers, size_t count, uint32_t *scratch, dp_compare_numbers compare,
                void *user) {
    run_sort s = {.from = numbers, .to = scratch, .count = count, .compare = compare, .user = user};
    s.run = (count / threads / BLOCK + 1) * BLOCK;
    dp_run_pieces(threads, count, s.run, sort_run, &s);
    for (; s.run < count; s.run *= 2) {
        dp_run_pieces(threads, count, BLOCK, merge_block, &s);
        uint32_t *swap = s.from;
        s.from = s.to;
        s.to = swap;
    }
    if (count && s.from != numbers)
        memcpy(numbers, s.from, count * sizeof *numbers);
}
