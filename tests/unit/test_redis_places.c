/* test_redis_places.c - where documents are found in Redis: two that are near each other share a place, by every plan
 * and whatever the edits of a title, and a plan is read as it was written. */
#include "support.h"

#include "known/redis.h"

#include <stdio.h>

static dp_redis_memory memory_of(const dp_rules *rules, uint64_t count) {
    dp_redis_memory memory = {.secret = {0x0123456789ABCDEF, 0xFEDCBA9876543210}};
    dp_redis_plan_make(count, rules, &memory.plan);
    dp_order_init(&memory.order, rules->bits, memory.secret[0]);
    return memory;
}

static bool share_one(const dp_redis_places *a, const dp_redis_places *b) {
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++)
            if (a->place[i] == b->place[k])
                return true;
    return false;
}

static void check_places(const dp_redis_places *places, dp_redis_class class) {
    assert_false(places->failed);
    for (size_t i = 0; i < places->count; i++) {
        assert_int_not_equal(places->place[i], 0);
        assert_int_equal(dp_redis_class_of(places->place[i]), class);
    }
}

/* ---- fingerprints ---- */

static void pick_fingerprint(uint64_t *seed, int bits, uint64_t to[2]) {
    to[0] = random_next(seed);
    to[1] = bits > 64 ? random_next(seed) : 0;
    if (bits < 64)
        to[0] &= ((uint64_t)1 << bits) - 1;
}

/* Differs in exactly this many bits. */
static void flip(uint64_t *seed, int bits, int distance, const uint64_t from[2], uint64_t to[2]) {
    memcpy(to, from, 2 * sizeof *to);
    while (doppel_distance128(from, to) < distance) {
        size_t bit = random_below(seed, (size_t)bits);
        uint64_t flipped[2] = {to[0], to[1]};
        flipped[bit / 64] ^= (uint64_t)1 << bit % 64;
        if (doppel_distance128(from, flipped) > doppel_distance128(from, to))
            memcpy(to, flipped, sizeof flipped);
    }
}

static void check_plan(int bits, int distance, uint64_t count) {
    const dp_rules rules = {.bits = bits, .distance = distance};
    const dp_redis_memory memory = memory_of(&rules, count);
    dp_redis_places own = {0}, near = {0};
    uint64_t seed = (uint64_t)(bits * 100 + distance), a[2], b[2];
    int rounds = full_suite() ? 2000 : 200;
    for (int i = 0; i < rounds; i++) {
        pick_fingerprint(&seed, bits, a);
        flip(&seed, bits, (int)random_below(&seed, (size_t)distance + 1), a, b);
        own.count = near.count = 0;
        dp_redis_add_fingerprint(&memory, a, false, &own);
        dp_redis_add_fingerprint(&memory, b, true, &near);
        check_places(&own, DP_REDIS_FINGERPRINTS);
        assert_int_equal(own.count, memory.plan.tables);
        if (!share_one(&own, &near))
            fail_msg("%d bits within %d, %llu documents, plan %s: %016llx and %016llx share no place", bits, distance,
                     (unsigned long long)count, memory.plan.name, (unsigned long long)a[0], (unsigned long long)b[0]);
    }
    free(own.place);
    free(near.place);
}

static void every_plan_is_exact(void **state) {
    static const int widths[] = {1, 4, 12, 30, 32, 63, 64, 128};
    static const uint64_t counts[] = {10, 1000, 1000000, 100000000};
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int distance = 0; distance <= 7 && distance <= widths[i]; distance++)
            for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
                check_plan(widths[i], distance, counts[k]);
    check_plan(64, 16, 1000);
    check_plan(128, 40, 1000); /* more than there are tables */
}

/* What is looked at is not much more than what is needed: a plan of 64 bits within 3 looks at few places. */
static void plans_are_not_dear(void **state) {
    (void)state;
    const dp_rules rules = {.bits = 64, .distance = 3};
    const uint64_t counts[] = {1000, 1000000, 100000000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const dp_redis_memory memory = memory_of(&rules, counts[i]);
        dp_redis_places near = {0};
        dp_redis_add_fingerprint(&memory, (const uint64_t[2]){7, 0}, true, &near);
        assert_in_range(near.count, 1, 100);
        free(near.place);
    }
}

static void plans_are_read_as_they_were_written(void **state) {
    (void)state;
    for (int bits = 1; bits <= 128; bits += bits == 64 ? 64 : 1) {
        for (int distance = 0; distance < 20 && distance <= bits; distance++) {
            dp_redis_plan plan, again;
            const dp_rules rules = {.bits = bits, .distance = distance, .titles = true, .title_similarity = 0.9};
            dp_redis_plan_make(1000, &rules, &plan);
            assert_true(dp_redis_plan_read(plan.name, &rules, &again));
            assert_memory_equal(&plan, &again, sizeof plan);
        }
    }
    for (double similarity = 0.3; similarity < 1; similarity += 0.1) {
        dp_redis_plan plan, again;
        const dp_rules rules = {.by_similarity = true, .similarity = similarity, .bits = 64};
        dp_redis_plan_make(0, &rules, &plan);
        assert_true(plan.bands > 0 && plan.rows > 0);
        assert_true(dp_redis_plan_read(plan.name, &rules, &again));
        assert_memory_equal(&plan, &again, sizeof plan);
    }
}

static void plans_that_are_none_are_refused(void **state) {
    static const char *const names[] = {"",         "x",        "4x16",     "4x16/",    "4x16/0",
                                        "4x16/29",  "0x16/17",  "5x16/17",  "4x17/17",  "4x0/17",
                                        "-4x16/17", "4x16/17x", " 4x16/17", "4x16/017", "99999999999x16/17"};
    (void)state;
    dp_redis_plan plan;
    const dp_rules rules = {.bits = 64, .distance = 3}, similar = {.by_similarity = true, .similarity = 0.8};
    assert_true(dp_redis_plan_read("4x16/17", &rules, &plan));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dp_redis_plan_read(names[i], &rules, &plan))
            fail_msg("`%s` is taken for a plan", names[i]);
    assert_false(dp_redis_plan_read("4x16/17", &similar, &plan));
}

/* ---- titles ---- */

enum { LONGEST = 400 };

/* Letters of a few scripts, some of which are frequent. */
static uint32_t pick_letter(uint64_t *seed) {
    static const uint32_t others[] = {' ', 'e', 0xE9, 0x3B1, 0x434, 0x4E2D, 0x1F600};
    size_t which = random_below(seed, 10);
    return which < 7 ? others[which] : (uint32_t)('a' + random_below(seed, 26));
}

static size_t put_letter(char *to, uint32_t c) {
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned heads[] = {0, 0xC0, 0xE0, 0xF0};
    to[0] = (char)(heads[more] | c >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3F));
    return more + 1;
}

typedef struct title {
    uint32_t letter[2 * LONGEST];
    size_t length;
    char bytes[8 * LONGEST];
    doppel_slice slice;
} title;

static void write_title(title *t) {
    size_t at = 0;
    for (size_t i = 0; i < t->length; i++)
        at += put_letter(t->bytes + at, t->letter[i]);
    t->slice = (doppel_slice){t->bytes, at};
}

/* One letter is another one, or gone, or new, all at a place of the title's first `within` letters. */
static void edit(uint64_t *seed, title *t, size_t within) {
    size_t at = random_below(seed, within < t->length ? within : t->length);
    switch (random_below(seed, 3)) {
    case 0: t->letter[at] = pick_letter(seed); break;
    case 1:
        if (t->length > 1)
            memmove(t->letter + at, t->letter + at + 1, (--t->length - at) * sizeof *t->letter);
        break;
    default:
        memmove(t->letter + at + 1, t->letter + at, (t->length++ - at) * sizeof *t->letter);
        t->letter[at] = pick_letter(seed);
        break;
    }
}

static void make_titles(uint64_t *seed, double least, title *a, title *b) {
    a->length = 10 + random_below(seed, random_below(seed, 4) ? 80 : LONGEST - 10);
    for (size_t i = 0; i < a->length; i++)
        a->letter[i] = pick_letter(seed);
    *b = *a;
    /* As many edits as may be, or one more or less; all over the title, or all in one part of it. */
    size_t edits = (size_t)((1 - least) * (double)a->length), within = 1 + random_below(seed, 2 * a->length);
    for (size_t i = random_below(seed, edits + 3); i; i--)
        edit(seed, b, within);
    write_title(a);
    write_title(b);
}

/* Whether a title that has these segments is found by the other one, and is not passed over for its length or bag. */
static bool is_found(const dp_redis_memory *memory, doppel_slice kept, doppel_slice asked) {
    dp_redis_places own = {0}, near = {0};
    dp_redis_title read[2];
    dp_redis_add_segments(memory, kept, false, &own);
    dp_redis_add_segments(memory, asked, true, &near);
    check_places(&own, DP_REDIS_SEGMENTS);
    check_places(&near, DP_REDIS_SEGMENTS);
    assert_true(dp_redis_read_title(kept, &read[0]) && dp_redis_read_title(asked, &read[1]));
    bool found = share_one(&own, &near) &&
                 dp_redis_title_near(&read[0], &read[1], memory->plan.rules.title_similarity) &&
                 dp_redis_title_near(&read[1], &read[0], memory->plan.rules.title_similarity);
    free(own.place);
    free(near.place);
    return found;
}

static void check_titles(double least) {
    const dp_rules rules = {.bits = 64, .distance = 3, .titles = true, .title_similarity = least};
    const dp_redis_memory memory = memory_of(&rules, 1000);
    static title a, b;
    uint64_t seed = (uint64_t)(least * 1000), similar = 0;
    int rounds = full_suite() ? 50000 : 3000;
    for (int i = 0; i < rounds; i++) {
        double similarity = 0;
        make_titles(&seed, least, &a, &b);
        assert_int_equal(doppel_edit_similarity((doppel_slice){a.bytes, a.slice.length},
                                                (doppel_slice){b.bytes, b.slice.length}, 0, &similarity),
                         DOPPEL_OK);
        if (similarity < least)
            continue;
        similar++;
        if (!is_found(&memory, a.slice, b.slice) || !is_found(&memory, b.slice, a.slice))
            fail_msg("at %g, `%.*s` and `%.*s` do not find each other", least, (int)a.slice.length, a.bytes,
                     (int)b.slice.length, b.bytes);
    }
    assert_true(similar > (uint64_t)rounds / 4);
}

static void similar_titles_find_each_other(void **state) {
    (void)state;
    static const double least[] = {0.6, 0.8, 0.85, 0.9, 0.95, 1};
    for (size_t i = 0; i < sizeof least / sizeof *least; i++)
        check_titles(least[i]);
}

/* Beyond 65535 code points all lengths look the same. */
static void very_long_titles_find_themselves(void **state) {
    (void)state;
    enum { LENGTH = 65530 };
    const dp_rules rules = {.bits = 64, .distance = 3, .titles = true, .title_similarity = 0.99};
    const dp_redis_memory memory = memory_of(&rules, 1000);
    char *bytes = malloc(LENGTH + 10);
    uint64_t seed = 3;
    for (size_t i = 0; i < LENGTH + 10; i++)
        bytes[i] = (char)('a' + random_below(&seed, 26));
    assert_true(is_found(&memory, (doppel_slice){bytes, LENGTH}, (doppel_slice){bytes, LENGTH + 5}));
    assert_true(is_found(&memory, (doppel_slice){bytes, LENGTH}, (doppel_slice){bytes, LENGTH + 6}));
    assert_true(is_found(&memory, (doppel_slice){bytes, LENGTH + 6}, (doppel_slice){bytes, LENGTH}));
    free(bytes);
}

/* Most titles are passed over before they are fetched. */
static void other_titles_are_seldom_fetched(void **state) {
    (void)state;
    const dp_rules rules = {.bits = 64, .distance = 3, .titles = true, .title_similarity = 0.9};
    const dp_redis_memory memory = memory_of(&rules, 1000);
    static title a, b;
    uint64_t seed = 11;
    size_t found = 0;
    for (int i = 0; i < 1000; i++) {
        make_titles(&seed, 1, &a, &b);
        make_titles(&seed, 1, &b, &b);
        found += is_found(&memory, a.slice, b.slice);
    }
    assert_true(found < 10);
}

/* ---- names ---- */

static void names_have_places_of_their_own(void **state) {
    (void)state;
    const dp_rules rules = {.bits = 64, .distance = 3};
    dp_redis_memory memory = memory_of(&rules, 1000);
    char name[600];
    memset(name, 'a', sizeof name);
    for (size_t length = 1; length < sizeof name; length++) {
        uint64_t place = dp_redis_name_place(&memory, 'i', (doppel_slice){name, length});
        assert_int_equal(dp_redis_class_of(place), DP_REDIS_NUMBERS);
        assert_true(place != dp_redis_name_place(&memory, 'u', (doppel_slice){name, length}));
        assert_true(place != dp_redis_name_place(&memory, 'i', (doppel_slice){name, length - 1}));
    }
    uint64_t place = dp_redis_name_place(&memory, 'i', (doppel_slice){name, 5});
    memory.secret[1]++;
    assert_true(place != dp_redis_name_place(&memory, 'i', (doppel_slice){name, 5}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_is_exact),
        cmocka_unit_test(plans_are_not_dear),
        cmocka_unit_test(plans_are_read_as_they_were_written),
        cmocka_unit_test(plans_that_are_none_are_refused),
        cmocka_unit_test(similar_titles_find_each_other),
        cmocka_unit_test(very_long_titles_find_themselves),
        cmocka_unit_test(other_titles_are_seldom_fetched),
        cmocka_unit_test(names_have_places_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
