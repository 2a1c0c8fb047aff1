/* test_hashmap.c - the hash table: against a model, with equal hashes, cleared, without memory. */
#include "support.h"

#include "base/base.h"

/* Keys 0 to KEYS - 1, times a factor, in a map; model[i] is the value of key i. */
enum { KEYS = 5000 };

static void check_all(const dp_hashmap *map, uint64_t factor, const uint64_t *model) {
    size_t count = 0;
    for (uint64_t i = 0; i < KEYS; i++) {
        assert_int_equal(dp_hashmap_find(map, i * factor), model[i]);
        count += model[i] != 0;
    }
    assert_int_equal(map->count, count);
}

static void it_has_what_was_added_and_nothing_else(void **state) {
    (void)state;
    static const uint64_t factors[] = {1, 2, 1000, (uint64_t)1 << 32, (uint64_t)1 << 51, 0x9E3779B97F4A7C15u};
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
        static uint64_t model[KEYS];
        uint64_t chance = f + 1;
        dp_hashmap map = {0};
        memset(model, 0, sizeof model);
        check_all(&map, factors[f], model);
        for (int step = 0; step < 10000; step++) {
            size_t key = random_below(&chance, KEYS);
            uint64_t *value = dp_hashmap_add(&map, key * factors[f]);
            assert_non_null(value);
            assert_int_equal(*value, model[key]);
            *value = model[key] = random_next(&chance) | 1;
            key = random_below(&chance, KEYS);
            dp_hashmap_remove(&map, key * factors[f]);
            model[key] = 0;
        }
        check_all(&map, factors[f], model);
        dp_hashmap_clear(&map);
        memset(model, 0, sizeof model);
        check_all(&map, factors[f], model);
        dp_hashmap_free(&map);
        check_all(&map, factors[f], model);
    }
}

typedef struct texts {
    const char *text[8];
    const char *wanted;
} texts;

static bool same_text(const void *user, uint64_t value) {
    const texts *t = user;
    return !strcmp(t->text[value - 1], t->wanted);
}

static void equal_hashes_are_told_apart(void **state) {
    (void)state;
    texts t = {.text = {"one", "two", "three", "four"}};
    dp_hashmap map = {0};
    for (uint64_t i = 1; i <= 4; i++) {
        t.wanted = t.text[i - 1];
        uint64_t *value = dp_hashmap_add_if(&map, i / 4, same_text, &t);
        assert_int_equal(*value, 0);
        *value = i;
    }
    for (int grown = 0; grown < 2; grown++) {
        for (uint64_t i = 1; i <= 4; i++) {
            t.wanted = t.text[i - 1];
            assert_int_equal(dp_hashmap_find_if(&map, i / 4, same_text, &t), i);
            assert_int_equal(*dp_hashmap_add_if(&map, i / 4, same_text, &t), i);
        }
        t.wanted = "five";
        assert_int_equal(dp_hashmap_find_if(&map, 0, same_text, &t), 0);
        assert_true(dp_hashmap_reserve(&map, 1000));
    }
    assert_int_equal(map.count, 4);
    dp_hashmap_free(&map);
}

static void reserved_room_lets_values_stay(void **state) {
    (void)state;
    for (size_t count = 0; count < 200; count++) {
        dp_hashmap map = {0};
        assert_true(dp_hashmap_reserve(&map, count));
        assert_int_equal(map.room * sizeof *map.places, dp_hashmap_bytes(count));
        const dp_hashmap_place *places = map.places;
        for (size_t i = 0; i < count; i++)
            *dp_hashmap_add(&map, i) = i + 1;
        assert_ptr_equal(map.places, places);
        assert_true(map.count < map.room);
        dp_hashmap_free(&map);
    }
}

static void what_is_there_needs_no_room(void **state) {
    (void)state;
    dp_hashmap map = {0};
    do
        *dp_hashmap_add(&map, map.count) = 1;
    while (map.count < map.room / 3 * 2);
    const dp_hashmap_place *places = map.places;
    for (size_t i = 0; i < map.count; i++)
        assert_int_equal(*dp_hashmap_add(&map, i), 1);
    assert_ptr_equal(map.places, places);
    dp_hashmap_free(&map);
}

static void without_memory_nothing_is_lost(void **state) {
    (void)state;
    dp_hashmap map = {0};
    *dp_hashmap_add(&map, 7) = 8;
    assert_false(dp_hashmap_reserve(&map, SIZE_MAX));
    assert_int_equal(dp_hashmap_find(&map, 7), 8);
    dp_hashmap_free(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_what_was_added_and_nothing_else), cmocka_unit_test(equal_hashes_are_told_apart),
        cmocka_unit_test(reserved_room_lets_values_stay),         cmocka_unit_test(what_is_there_needs_no_room),
        cmocka_unit_test(without_memory_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
