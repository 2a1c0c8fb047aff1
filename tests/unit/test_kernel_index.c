/* test_kernel_index.c - the kernels of the index and the joins, each variant against doing it one by one. */
#include "support.h"

#include "kernel/kernel.h"

#include <stdlib.h>

static int bits_of(uint64_t x) {
    int count = 0;
    for (; x; x &= x - 1)
        count++;
    return count;
}

/* ---- near32, near64, near128 ---- */

enum { MOST_NEAR = 300 };

/* Numbers of which some are within a few bits of the query. */
static void fill_near(uint64_t *numbers, size_t count, uint64_t query, uint64_t *seed) {
    for (size_t i = 0; i < count; i++) {
        numbers[i] = random_next(seed);
        if (random_below(seed, 3) == 0) {
            numbers[i] = query;
            for (size_t flips = random_below(seed, 8); flips; flips--)
                numbers[i] ^= (uint64_t)1 << random_below(seed, 64);
        }
    }
}

static void check_hits(const uint32_t *hits, size_t found, const uint32_t *want, size_t wanted) {
    assert_int_equal(found, wanted);
    assert_memory_equal(hits, want, wanted * sizeof *want);
}

static void check_near32(guarded room, const uint64_t *numbers, size_t count, uint64_t query, int distance) {
    uint32_t column[MOST_NEAR], want[MOST_NEAR], hits[MOST_NEAR + 16];
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        column[i] = (uint32_t)numbers[i];
        if (bits_of(column[i] ^ (uint32_t)query) <= distance)
            want[wanted++] = (uint32_t)i;
    }
    const uint32_t *at = guarded_copy(room, column, count * sizeof *column);
    EACH_VARIANT(near32, variant)
    check_hits(hits, variant->run(at, count, (uint32_t)query, distance, hits), want, wanted);
}

static void check_near64(guarded room, const uint64_t *numbers, size_t count, uint64_t query, int distance) {
    uint32_t want[MOST_NEAR], hits[MOST_NEAR + 16];
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        if (bits_of(numbers[i] ^ query) <= distance)
            want[wanted++] = (uint32_t)i;
    const uint64_t *at = guarded_copy(room, numbers, count * sizeof *numbers);
    EACH_VARIANT(near64, variant)
    check_hits(hits, variant->run(at, count, query, distance, hits), want, wanted);
}

static void check_near128(guarded room, const uint64_t *numbers, size_t count, const uint64_t query[2], int distance) {
    uint32_t want[MOST_NEAR], hits[MOST_NEAR + 16];
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        if (bits_of(numbers[2 * i] ^ query[0]) + bits_of(numbers[2 * i + 1] ^ query[1]) <= distance)
            want[wanted++] = (uint32_t)i;
    const uint64_t *at = guarded_copy(room, numbers, 2 * count * sizeof *numbers);
    EACH_VARIANT(near128, variant)
    check_hits(hits, variant->run(at, count, query, distance, hits), want, wanted);
}

static void near_of_every_count(void **state) {
    (void)state;
    uint64_t numbers[2 * MOST_NEAR], seed = 1;
    guarded room = guarded_create(sizeof numbers);
    for (size_t count = 0; count <= MOST_NEAR; count += count < 140 ? 1 : 7) {
        uint64_t query = random_next(&seed);
        fill_near(numbers, 2 * count, query, &seed);
        for (int distance = 0; distance < 8; distance++) {
            check_near32(room, numbers, count, query, distance);
            check_near64(room, numbers, count, query, distance);
            check_near128(room, numbers, count, (uint64_t[2]){query, query}, distance);
        }
    }
    guarded_free(room);
}

static void near_of_every_distance(void **state) {
    (void)state;
    uint64_t numbers[2 * MOST_NEAR], seed = 2;
    guarded room = guarded_create(sizeof numbers);
    for (int distance = 0; distance <= 128; distance++) {
        uint64_t query[2] = {random_next(&seed), random_next(&seed)};
        for (size_t i = 0; i < 2 * MOST_NEAR; i++) /* from very near to very far */
            numbers[i] = query[i % 2] ^ (random_next(&seed) & (i % 3 ? random_next(&seed) : UINT64_MAX) >> i % 64);
        check_near32(room, numbers, MOST_NEAR, query[0], distance < 32 ? distance : 32);
        check_near64(room, numbers, MOST_NEAR, query[0], distance < 64 ? distance : 64);
        check_near128(room, numbers, MOST_NEAR, query, distance);
    }
    guarded_free(room);
}

/* ---- reorder ---- */

/* Bit by bit, as kernel.h says: stage s swaps bits i and i + 2^s where mask s has bit i. */
static uint64_t plain_reorder(uint64_t x, const uint64_t masks[6]) {
    for (int stage = 5; stage >= 0; stage--)
        for (int i = 0; i + (1 << stage) < 64; i++)
            if (masks[stage] >> i & 1) {
                int j = i + (1 << stage);
                uint64_t low = x >> i & 1, high = x >> j & 1;
                x = (x & ~((uint64_t)1 << i | (uint64_t)1 << j)) | high << i | low << j;
            }
    return x;
}

/* Masks that swap each bit once at most. */
static void random_masks(uint64_t masks[6], uint64_t *seed) {
    for (int stage = 0; stage < 6; stage++) {
        uint64_t lower = 0;
        for (int i = 0; i < 64; i++)
            lower |= (uint64_t) !(i >> stage & 1) << i;
        masks[stage] = random_next(seed) & lower;
    }
}

static void reorder_swaps_the_bits_that_the_masks_say(void **state) {
    (void)state;
    enum { MOST = 70 };
    uint64_t numbers[MOST], masks[6], seed = 3;
    guarded from_room = guarded_create(sizeof numbers), to_room = guarded_create(sizeof numbers);
    for (size_t count = 0; count <= MOST; count++) {
        random_masks(masks, &seed);
        for (size_t i = 0; i < count; i++)
            numbers[i] = random_next(&seed);
        uint64_t *to = guarded_copy(to_room, NULL, count * 8);
        EACH_VARIANT(reorder, variant) {
            uint64_t *from = guarded_copy(from_room, numbers, count * 8);
            variant->run(from, count, masks, to);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(to[i], plain_reorder(numbers[i], masks));
            variant->run(from, count, masks, from);
            assert_memory_equal(from, to, count * 8);
        }
    }
    guarded_free(from_room);
    guarded_free(to_room);
}

/* ---- scatter ---- */

enum { MOST_MOVED = 3000, MOST_KEYS = 64, KEY_LINES = MOST_MOVED / DP_LINE_WIDE + 1 };

typedef struct moved {
    uint64_t values[2 * MOST_MOVED];
    uint32_t positions[MOST_MOVED];
    size_t count, words;
    dp_line *open, *lines; /* KEY_LINES a key */
    uint32_t next[MOST_KEYS];
} moved;

static uint32_t key_of(const moved *m, size_t i, const dp_scatter *scatter) {
    unsigned __int128 value = m->values[m->words * i];
    if (m->words == 2)
        value |= (unsigned __int128)m->values[2 * i + 1] << 64;
    return (uint32_t)(value >> scatter->shift) & ((1U << scatter->width) - 1);
}

/* The number and position that a place in a key's lines holds; the last line is open. */
static const uint64_t *moved_at(const moved *m, uint32_t key, size_t i, uint32_t *position) {
    size_t per_line = m->words == 1 ? DP_LINE_NARROW : DP_LINE_WIDE, line = key * KEY_LINES + i / per_line;
    const dp_line *at = line < m->next[key] ? &m->lines[line] : &m->open[key];
    if (m->words == 1) {
        assert_true(i % per_line < (line < m->next[key] ? DP_LINE_NARROW : at->narrow.fill));
        *position = at->narrow.position[i % per_line];
        return &at->narrow.value[i % per_line];
    }
    assert_true(i % per_line < (line < m->next[key] ? DP_LINE_WIDE : at->wide.fill));
    *position = at->wide.position[i % per_line];
    return at->wide.value[i % per_line];
}

static void check_moved(const moved *m, const dp_scatter *scatter) {
    size_t seen[MOST_KEYS] = {0}, per_line = m->words == 1 ? DP_LINE_NARROW : DP_LINE_WIDE;
    for (size_t i = 0; i < m->count; i++) {
        uint32_t key = key_of(m, i, scatter) - scatter->first, position;
        if (key >= scatter->keys)
            continue;
        const uint64_t *value = moved_at(m, key, seen[key]++, &position);
        assert_memory_equal(value, m->values + m->words * i, m->words * 8);
        assert_int_equal(position, m->positions[i]);
    }
    for (uint32_t key = 0; key < scatter->keys; key++) {
        assert_int_equal(m->next[key] - key * KEY_LINES, seen[key] / per_line);
        assert_int_equal(m->words == 1 ? m->open[key].narrow.fill : m->open[key].wide.fill, seen[key] % per_line);
    }
}

/* Runs a variant in two calls: the second goes on where the first stopped. */
static void move(moved *m, const dp_scatter *scatter, dp_scatter64_fn run) {
    size_t half = m->count / 3;
    memset(m->open, 0, MOST_KEYS * sizeof *m->open);
    memset(m->lines, 0xAA, MOST_KEYS * KEY_LINES * sizeof *m->lines);
    for (uint32_t key = 0; key < MOST_KEYS; key++)
        m->next[key] = key * KEY_LINES;
    run(scatter, m->values, m->positions, half);
    run(scatter, m->values + half * m->words, m->positions + half, m->count - half);
    check_moved(m, scatter);
}

static void check_scatter(moved *m, dp_scatter scatter) {
    scatter.open = m->open;
    scatter.next = m->next;
    scatter.lines = m->lines;
    if (m->words == 2) {
        EACH_VARIANT(scatter128, variant)
        move(m, &scatter, variant->run);
        return;
    }
    EACH_VARIANT(scatter64, variant)
    move(m, &scatter, variant->run);
}

static void scatter_all(size_t words) {
    moved *m = malloc(sizeof *m);
    m->words = words;
    m->open = aligned_alloc(64, MOST_KEYS * sizeof *m->open);
    m->lines = aligned_alloc(64, MOST_KEYS * KEY_LINES * sizeof *m->lines);
    uint64_t seed = 4;
    for (m->count = 0; m->count <= MOST_MOVED; m->count = m->count * 2 + 1) {
        for (size_t i = 0; i < 2 * MOST_MOVED; i++)
            m->values[i] = random_next(&seed);
        for (size_t i = 0; i < MOST_MOVED; i++)
            m->positions[i] = (uint32_t)random_next(&seed);
        check_scatter(m, (dp_scatter){.shift = 58, .width = 6, .keys = 64});
        check_scatter(m, (dp_scatter){.shift = 3, .width = 1, .keys = 2});
        check_scatter(m, (dp_scatter){.shift = 17, .width = 12, .first = 1000, .keys = 50});
        if (words == 2) {
            check_scatter(m, (dp_scatter){.shift = 61, .width = 6, .keys = 64});
            check_scatter(m, (dp_scatter){.shift = 122, .width = 6, .first = 7, .keys = 57});
        }
    }
    free(m->open);
    free(m->lines);
    free(m);
}

static void scatter_keeps_everything_in_order(void **state) {
    (void)state;
    scatter_all(1);
    scatter_all(2);
}

/* ---- crowd ---- */

enum { MOST_CROWD = 2000, CROWD_KEYS = 256 };

typedef struct crowd_room {
    dp_bucket_pairs crowd;
    uint32_t *want;
    size_t wanted, over;
    uint8_t fills[CROWD_KEYS];
} crowd_room;

static uint32_t word_of(const dp_bucket_pairs *crowd, size_t i) {
    uint64_t number = crowd->numbers[i];
    return (uint32_t)(crowd->rotate ? number >> crowd->rotate | number << (64 - crowd->rotate) : number);
}

/* Every earlier one of the bucket's first 16, in the order of their places. */
static void plain_crowd(crowd_room *room) {
    dp_bucket_pairs *crowd = &room->crowd;
    uint16_t ids[CROWD_KEYS][DP_BUCKET_SLOTS];
    memset(room->fills, 0, sizeof room->fills);
    room->wanted = room->over = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        size_t key = crowd->numbers[i] >> crowd->shift & (((uint64_t)1 << crowd->width) - 1);
        if (room->fills[key] >= DP_BUCKET_SLOTS) {
            room->fills[key] = DP_BUCKET_OVERFLOW;
            room->over++;
            continue;
        }
        for (uint8_t slot = 0; slot < room->fills[key]; slot++)
            if (bits_of(word_of(crowd, ids[key][slot]) ^ word_of(crowd, i)) <= crowd->distance)
                room->want[room->wanted++] = (uint32_t)ids[key][slot] << 16 | (uint32_t)i;
        ids[key][room->fills[key]++] = (uint16_t)i;
    }
}

static void check_crowd(crowd_room *room) {
    dp_bucket_pairs *crowd = &room->crowd;
    plain_crowd(room);
    EACH_VARIANT(bucket_pairs, variant) {
        crowd->room = room->wanted;
        memset(crowd->slots, 0xFF, CROWD_KEYS * DP_BUCKET_SLOTS * sizeof *crowd->slots);
        assert_int_equal(variant->run(crowd), room->wanted);
        assert_memory_equal(crowd->hits, room->want, room->wanted * sizeof *room->want);
        assert_memory_equal(crowd->fills, room->fills, (size_t)1 << crowd->width);
        assert_int_equal(crowd->overflow, room->over);
    }
}

/* Numbers of which a third is near an earlier one. */
static void fill_crowd(uint64_t *numbers, size_t count, uint64_t *seed) {
    for (size_t i = 0; i < count; i++) {
        numbers[i] = random_next(seed);
        if (i && random_below(seed, 3) == 0) {
            numbers[i] = numbers[random_below(seed, i)];
            for (size_t flips = random_below(seed, 7); flips; flips--)
                numbers[i] ^= (uint64_t)1 << random_below(seed, 64);
        }
    }
}

static void with_crowd(void (*test)(crowd_room *, uint64_t *numbers)) {
    guarded memory = guarded_create(MOST_CROWD * 8);
    crowd_room *room = malloc(sizeof *room);
    *room = (crowd_room){.want = malloc(MOST_CROWD * DP_BUCKET_SLOTS * 4)};
    room->crowd.fills = malloc(CROWD_KEYS);
    room->crowd.slots = aligned_alloc(64, CROWD_KEYS * DP_BUCKET_SLOTS * 4);
    room->crowd.ids = malloc(CROWD_KEYS * DP_BUCKET_SLOTS * 2);
    room->crowd.hits = malloc((MOST_CROWD + 1) * DP_BUCKET_SLOTS * 4);
    test(room, (uint64_t *)(void *)(memory.pages + memory.size));
    free(room->crowd.fills);
    free(room->crowd.slots);
    free(room->crowd.ids);
    free(room->crowd.hits);
    free(room->want);
    free(room);
    guarded_free(memory);
}

static void crowds_of_every_kind(crowd_room *room, uint64_t *end) {
    static const size_t counts[] = {0, 1, 2, 3, 17, 100, 511, 512, 513, 1025, MOST_CROWD};
    uint64_t seed = 5;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int width = 1; width <= 8; width++)
            for (int distance = 0; distance <= 6; distance += 3) {
                uint64_t *numbers = end - counts[c];
                fill_crowd(numbers, counts[c], &seed);
                dp_bucket_pairs *crowd = &room->crowd;
                crowd->numbers = numbers;
                crowd->count = counts[c];
                crowd->width = width;
                crowd->shift = (int)random_below(&seed, (size_t)(65 - width));
                crowd->rotate = (int)random_below(&seed, 64);
                crowd->distance = distance;
                check_crowd(room);
            }
}

static void crowd_finds_what_is_near_in_a_bucket(void **state) {
    (void)state;
    with_crowd(crowds_of_every_kind);
}

static void crowds_without_room(crowd_room *room, uint64_t *end) {
    dp_bucket_pairs *crowd = &room->crowd;
    uint64_t *numbers = end - 500;
    for (size_t i = 0; i < 500; i++)
        numbers[i] = i / 10; /* ten of each: 45 hits a bucket */
    crowd->numbers = numbers;
    crowd->count = 500;
    crowd->width = 8;
    EACH_VARIANT(bucket_pairs, variant) {
        crowd->room = 500;
        assert_true(variant->run(crowd) == DP_BUCKET_HITS_FULL);
        crowd->room = 50 * 45;
        assert_int_equal(variant->run(crowd), 50 * 45);
    }
}

static void crowd_says_when_there_are_too_many_hits(void **state) {
    (void)state;
    with_crowd(crowds_without_room);
}

/* ---- rows ---- */

enum { ROWS_BUCKETS = 40, ROWS_ROOM = 100 };

typedef struct rows_room {
    uint64_t *numbers;
    uint32_t bounds[ROWS_BUCKETS + 1];
    uint64_t *want, *got;
    size_t wanted;
} rows_room;

static void plain_rows(rows_room *room, int distance) {
    room->wanted = 0;
    for (size_t k = 0; k < ROWS_BUCKETS; k++)
        for (uint32_t i = room->bounds[k];
             room->bounds[k + 1] - room->bounds[k] <= DP_ROW_PAIRS_MOST && i < room->bounds[k + 1]; i++)
            for (uint32_t j = i + 1; j < room->bounds[k + 1]; j++)
                if (bits_of((room->numbers[i] ^ room->numbers[j]) >> 32) <= distance)
                    room->want[room->wanted++] = room->numbers[i] << 32 | (uint32_t)room->numbers[j];
}

static void check_rows(rows_room *room, int distance) {
    plain_rows(room, distance);
    EACH_VARIANT(row_pairs, variant) {
        dp_row_pairs rows = {
            .numbers = room->numbers, .bounds = room->bounds, .buckets = ROWS_BUCKETS, .distance = distance};
        rows.room = ROWS_ROOM;
        size_t found = 0;
        while (rows.next < rows.buckets) {
            rows.hits = room->got + found;
            size_t more = variant->run(&rows);
            assert_true(more > ROWS_ROOM || rows.next == rows.buckets);
            assert_true(more <= ROWS_ROOM + DP_ROW_PAIRS_SLACK);
            found += more;
        }
        assert_int_equal(found, room->wanted);
        assert_memory_equal(room->got, room->want, found * sizeof *room->got);
    }
}

static void rows_find_what_is_near_in_a_bucket(void **state) {
    (void)state;
    enum { MOST = ROWS_BUCKETS * 80 };
    guarded memory = guarded_create((MOST + 7) * 8);
    rows_room *room = malloc(sizeof *room);
    room->want = malloc((size_t)ROWS_BUCKETS * DP_ROW_PAIRS_SLACK * 8);
    room->got = malloc((size_t)(ROWS_BUCKETS + 1) * DP_ROW_PAIRS_SLACK * 8);
    uint64_t seed = 6;
    for (size_t most = 1; most <= 80; most += most < 20 ? 1 : 12)
        for (int distance = 0; distance <= 6; distance += 2) {
            room->bounds[0] = 0;
            for (size_t k = 0; k < ROWS_BUCKETS; k++)
                room->bounds[k + 1] = room->bounds[k] + (uint32_t)random_below(&seed, most + 1);
            size_t count = room->bounds[ROWS_BUCKETS];
            room->numbers = guarded_copy(memory, NULL, (count + 7) * 8);
            fill_crowd(room->numbers, count + 7, &seed);
            check_rows(room, distance);
        }
    free(room->want);
    free(room->got);
    free(room);
    guarded_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_of_every_count),
        cmocka_unit_test(near_of_every_distance),
        cmocka_unit_test(reorder_swaps_the_bits_that_the_masks_say),
        cmocka_unit_test(scatter_keeps_everything_in_order),
        cmocka_unit_test(crowd_finds_what_is_near_in_a_bucket),
        cmocka_unit_test(crowd_says_when_there_are_too_many_hits),
        cmocka_unit_test(rows_find_what_is_near_in_a_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
