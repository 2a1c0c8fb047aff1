/* index_files.h - what tests of index files share: indexes with something of everything in them, saved, opened and
 * compared. */
#ifndef TESTS_INDEX_FILES_H
#define TESTS_INDEX_FILES_H

#include "files.h"

/* ---- making ---- */

static inline void ok(doppel_status status, const doppel_error *error) {
    if (status) {
        print_error("%s: %s\n", error->file, error->message);
        fail();
    }
}

static inline doppel_index *make(int bits, const char *layout) {
    doppel_index *index;
    doppel_error error;
    doppel_index_options options = {.size = sizeof options, .bits = bits, .layout = layout, .secret = 77};
    ok(doppel_index_create(&options, &index, &error), &error);
    return index;
}

/* Fingerprint `i` of a set where every fourth is a copy of the one before it. */
static inline void fingerprint(int bits, uint64_t i, uint64_t out[2]) {
    uint64_t state = i % 4 == 3 ? i - 1 : i;
    out[0] = random_next(&state) & (bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX);
    out[1] = bits > 64 ? random_next(&state) : 0;
}

static inline void add_many(doppel_index *index, int bits, uint64_t first, uint64_t end) {
    size_t words = bits > 64 ? 2 : 1;
    uint64_t *numbers = malloc((end - first) * 16), *owners = malloc((end - first) * 8);
    assert_true(numbers && owners);
    for (uint64_t i = first; i < end; i++) {
        uint64_t one[2];
        fingerprint(bits, i, one);
        memcpy(numbers + (i - first) * words, one, words * 8);
        owners[i - first] = i;
    }
    assert_int_equal(doppel_index_add_batch(index, numbers, owners, NULL, end - first), DOPPEL_OK);
    free(numbers);
    free(owners);
}

static inline void add_one(doppel_index *index, int bits, uint64_t i, uint64_t expires) {
    uint64_t one[2];
    fingerprint(bits, i, one);
    assert_int_equal(doppel_index_add(index, one, i, expires), DOPPEL_OK);
}

static inline void remove_one(doppel_index *index, int bits, uint64_t i) {
    uint64_t one[2];
    fingerprint(bits, i, one);
    assert_int_equal(doppel_index_remove(index, one, i, NULL), DOPPEL_OK);
}

static inline void compact(doppel_index *index) {
    doppel_error error;
    ok(doppel_index_compact(index, &error), &error);
}

/* A run and a head, with lists of owners, times and dead entries in each. */
static inline doppel_index *make_rich(int bits, const char *layout) {
    doppel_index *index = make(bits, layout);
    add_many(index, bits, 0, 100);
    compact(index);
    for (uint64_t i = 100; i < 130; i++)
        add_one(index, bits, i, i % 3 ? 0 : 1000 + i);
    for (uint64_t i = 0; i < 130; i += 7)
        remove_one(index, bits, i);
    for (uint64_t i = 1; i < 30; i += 7)
        add_one(index, bits, i, 2000 + i);
    return index;
}

static inline void save(const doppel_index *index, const char *path) {
    doppel_error error;
    ok(doppel_index_save(index, path, &error), &error);
}

static inline doppel_index *open_index(const char *path) {
    doppel_index *index;
    doppel_error error;
    ok(doppel_index_open(path, &index, &error), &error);
    return index;
}

static inline void valid(const doppel_index *index) {
    doppel_error error;
    ok(doppel_index_validate(index, &error), &error);
}

static inline bool collect(const doppel_match *entry, void *user) {
    doppel_matches *all = user;
    return dp_reserve(&all->match, &all->capacity, all->count + 1, sizeof *entry) &&
           (all->match[all->count++] = *entry, true);
}

static inline int compare(const void *a, const void *b) {
    const doppel_match *x = a, *y = b;
    return x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* All entries by owner. Every owner here has one. */
static inline doppel_status all_entries(const doppel_index *index, doppel_matches *all) {
    doppel_status status = doppel_index_each(index, collect, all);
    if (all->count)
        qsort(all->match, all->count, sizeof *all->match, compare);
    return status;
}

static inline bool same_entries(const doppel_matches *x, const doppel_matches *y) {
    bool same = x->count == y->count;
    for (size_t i = 0; same && i < x->count; i++)
        same = x->match[i].owner == y->match[i].owner && x->match[i].expires == y->match[i].expires &&
               !memcmp(x->match[i].fingerprint, y->match[i].fingerprint, 16);
    return same;
}

static inline void same_indexes(const doppel_index *a, const doppel_index *b) {
    doppel_matches x = {0}, y = {0};
    assert_int_equal(all_entries(a, &x), DOPPEL_OK);
    assert_int_equal(all_entries(b, &y), DOPPEL_OK);
    assert_true(same_entries(&x, &y));
    doppel_matches_free(&x);
    doppel_matches_free(&y);
}

static inline void refused(const char *path, doppel_status status, const char *reason) {
    doppel_index *index = (void *)&index;
    doppel_error error = {.code = DOPPEL_OK};
    assert_int_equal(doppel_index_open(path, &index, &error), status);
    assert_null(index);
    assert_int_equal(error.code, status);
    assert_string_equal(error.file, path);
    if (!strstr(error.message, reason)) {
        print_error("`%s` lacks `%s`\n", error.message, reason);
        fail();
    }
}

#endif
