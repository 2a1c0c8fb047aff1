/* test_index_model.c - a Hamming index does what a plain array does: random inserts, removals, expiries, finds, merges,
 * saves and reopenings, each answer compared.
 *
 * The fingerprints lie close together and the owners are few, so that the same entry occurs many times. With
 * DOPPEL_SUITE=full there are a million operations. */
#include "support.h"

#include "doppel.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the model: entries in an array, in no order ---- */

typedef struct model {
    doppel_match *entries; /* `distance` is not used */
    size_t count, capacity;
    int bits;
} model;

static int distance_of(const uint64_t *a, const uint64_t *b) {
    return __builtin_popcountll(a[0] ^ b[0]) + __builtin_popcountll(a[1] ^ b[1]);
}

static doppel_match *model_find(const model *m, const uint64_t fingerprint[2], uint64_t owner) {
    for (size_t i = 0; i < m->count; i++) {
        doppel_match *entry = &m->entries[i];
        if (entry->owner == owner && !distance_of(entry->fingerprint, fingerprint))
            return entry;
    }
    return NULL;
}

static void model_insert(model *m, const uint64_t fingerprint[2], uint64_t owner, uint64_t expires) {
    doppel_match *entry = model_find(m, fingerprint, owner);
    if (!entry) {
        if (m->count == m->capacity) {
            m->capacity = m->capacity * 2 + 64;
            m->entries = realloc(m->entries, m->capacity * sizeof *m->entries);
            assert_non_null(m->entries);
        }
        entry = &m->entries[m->count++];
        *entry = (doppel_match){.owner = owner, .fingerprint = {fingerprint[0], fingerprint[1]}};
    }
    entry->expires = expires;
}

static bool model_remove(model *m, const uint64_t fingerprint[2], uint64_t owner) {
    doppel_match *entry = model_find(m, fingerprint, owner);
    if (entry)
        *entry = m->entries[--m->count];
    return entry != NULL;
}

static bool expired(const doppel_match *entry, uint64_t now) {
    return entry->expires && entry->expires <= now;
}

static uint64_t model_purge(model *m, uint64_t now) {
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++)
        if (!expired(&m->entries[i], now))
            m->entries[kept++] = m->entries[i];
    uint64_t purged = m->count - kept;
    m->count = kept;
    return purged;
}

static int by_number(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

/* The order of matches: nearest first, then by fingerprint, then by owner. */
static int compare_matches(const void *a, const void *b) {
    const doppel_match *x = a, *y = b;
    int order = by_number((uint64_t)x->distance, (uint64_t)y->distance);
    order = order ? order : by_number(x->fingerprint[1], y->fingerprint[1]);
    order = order ? order : by_number(x->fingerprint[0], y->fingerprint[0]);
    return order ? order : by_number(x->owner, y->owner);
}

/* What is within the distance, in order; `found` has room for all. */
static size_t model_near(const model *m, const uint64_t query[2], int distance, uint64_t now, doppel_match *found) {
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) {
        int apart = distance_of(m->entries[i].fingerprint, query);
        if (apart > distance || (now && expired(&m->entries[i], now)))
            continue;
        found[count] = m->entries[i];
        found[count++].distance = apart;
    }
    qsort(found, count, sizeof *found, compare_matches);
    return count;
}

/* ---- the run: an index, its model and the random numbers ---- */

/* What a run is made with. */
typedef struct shape {
    int bits, distance;
    const char *layout;
    size_t most;    /* entries that the set grows to */
    size_t centres; /* fingerprints that the others lie near */
} shape;

typedef struct run {
    const shape *shape;
    doppel_index *index;
    model model;
    uint64_t random, clock;
    uint64_t centre[64][2];
    doppel_matches matches;
    char path[80];
} run;

static void ok(doppel_status status, const doppel_error *error) {
    if (status) {
        print_error("status %d: %s\n", (int)status, error->message);
        fail();
    }
}

static void make_index(const shape *s, uint64_t secret, doppel_index **index) {
    doppel_index_options options = {
        .size = sizeof options, .bits = s->bits, .distance = s->distance, .layout = s->layout, .secret = secret};
    doppel_error error;
    ok(doppel_index_create(&options, index, &error), &error);
}

static void mask(int bits, uint64_t fingerprint[2]) {
    if (bits < 64)
        fingerprint[0] &= ((uint64_t)1 << bits) - 1;
    if (bits <= 64)
        fingerprint[1] = 0;
}

/* A centre with some bits flipped: few most of the time. */
static void random_fingerprint(run *r, uint64_t fingerprint[2]) {
    const uint64_t *centre = r->centre[random_below(&r->random, r->shape->centres)];
    fingerprint[0] = centre[0];
    fingerprint[1] = centre[1];
    size_t flips = random_below(&r->random, random_below(&r->random, 4) ? 4 : 12);
    for (size_t i = 0; i < flips; i++) {
        size_t bit = random_below(&r->random, (size_t)r->shape->bits);
        fingerprint[bit / 64] ^= (uint64_t)1 << bit % 64;
    }
}

/* Few owners, so that entries meet; now and then the largest number there is. */
static uint64_t random_owner(run *r) {
    size_t owner = random_below(&r->random, 9);
    return owner == 8 ? UINT64_MAX - random_below(&r->random, 2) : owner;
}

static uint64_t random_time(run *r) {
    return random_below(&r->random, 3) ? 0 : r->clock + random_below(&r->random, 200);
}

static void random_entry(run *r, doppel_match *entry) {
    /* Often one that is there. */
    if (r->model.count && random_below(&r->random, 3) == 0) {
        *entry = r->model.entries[random_below(&r->random, r->model.count)];
        return;
    }
    random_fingerprint(r, entry->fingerprint);
    entry->owner = random_owner(r);
}

/* ---- one operation each ---- */

static void do_insert(run *r) {
    doppel_match entry;
    random_entry(r, &entry);
    uint64_t expires = random_time(r);
    assert_int_equal(doppel_index_add(r->index, entry.fingerprint, entry.owner, expires), DOPPEL_OK);
    model_insert(&r->model, entry.fingerprint, entry.owner, expires);
}

static void do_remove(run *r) {
    doppel_match entry;
    random_entry(r, &entry);
    bool removed;
    assert_int_equal(doppel_index_remove(r->index, entry.fingerprint, entry.owner, &removed), DOPPEL_OK);
    assert_int_equal(removed, model_remove(&r->model, entry.fingerprint, entry.owner));
}

static void do_contains(run *r) {
    doppel_match entry;
    random_entry(r, &entry);
    bool contains;
    assert_int_equal(doppel_index_contains(r->index, entry.fingerprint, entry.owner, &contains), DOPPEL_OK);
    assert_int_equal(contains, model_find(&r->model, entry.fingerprint, entry.owner) != NULL);
}

static void same_matches(const doppel_match *want, const doppel_match *got, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(got[i].distance, want[i].distance);
        assert_int_equal(got[i].fingerprint[0], want[i].fingerprint[0]);
        assert_int_equal(got[i].fingerprint[1], want[i].fingerprint[1]);
        assert_int_equal(got[i].owner, want[i].owner);
        assert_int_equal(got[i].expires, want[i].expires);
    }
}

static bool is_among(const doppel_match *match, const doppel_match *among, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!compare_matches(match, &among[i]) && match->expires == among[i].expires)
            return true;
    return false;
}

/* Most distances are those one asks for; some are any. */
static int random_distance(run *r) {
    if (random_below(&r->random, 8))
        return (int)random_below(&r->random,
                                 (size_t)(r->shape->distance < r->shape->bits ? r->shape->distance + 2 : 1));
    return (int)random_below(&r->random, (size_t)r->shape->bits + 1);
}

static void do_find(run *r) {
    uint64_t query[2];
    random_fingerprint(r, query);
    int distance = random_distance(r);
    distance = distance > r->shape->bits ? r->shape->bits : distance;
    doppel_find_options options = {.size = sizeof options};
    if (random_below(&r->random, 2))
        options.now = r->clock;
    switch (random_below(&r->random, 6)) {
    case 0: options.limit = 1 + random_below(&r->random, 20); break;
    case 1: options.any = true; break;
    case 2: options.count_only = true; break;
    default: break;
    }
    doppel_error error;
    ok(doppel_index_find(r->index, query, distance, &options, &r->matches, &error), &error);
    doppel_match *want = malloc((r->model.count + 1) * sizeof *want);
    assert_non_null(want);
    size_t count = model_near(&r->model, query, distance, options.now, want);
    if (options.any) {
        assert_int_equal(r->matches.count, count ? 1 : 0);
        assert_true(!count || is_among(r->matches.match, want, count));
    } else {
        size_t most = options.limit && options.limit < count ? options.limit : count;
        assert_int_equal(r->matches.count, most);
        if (!options.count_only)
            same_matches(want, r->matches.match, most);
    }
    free(want);
}

static void do_purge(run *r) {
    uint64_t purged;
    assert_int_equal(doppel_index_expire(r->index, r->clock, &purged), DOPPEL_OK);
    assert_int_equal(purged, model_purge(&r->model, r->clock));
}

/* A batch as the columns that insert_many takes. */
typedef struct batch {
    uint64_t *fingerprints, *owners, *expires;
    size_t count;
} batch;

static batch random_batch(run *r, size_t most) {
    batch b = {.count = random_below(&r->random, most + 1)};
    b.fingerprints = malloc((b.count + 1) * 16);
    b.owners = malloc((b.count + 1) * 8);
    b.expires = malloc((b.count + 1) * 8);
    assert_true(b.fingerprints && b.owners && b.expires);
    size_t words = r->shape->bits > 64 ? 2 : 1;
    for (size_t i = 0; i < b.count; i++) {
        doppel_match entry;
        random_entry(r, &entry);
        memcpy(b.fingerprints + i * words, entry.fingerprint, words * 8);
        b.owners[i] = entry.owner;
        b.expires[i] = random_time(r);
    }
    return b;
}

static void free_batch(batch *b) {
    free(b->fingerprints);
    free(b->owners);
    free(b->expires);
}

static void add_batch(const run *r, const batch *b, doppel_index *index, model *m) {
    size_t words = r->shape->bits > 64 ? 2 : 1;
    assert_int_equal(doppel_index_add_batch(index, b->fingerprints, b->owners, b->expires, b->count), DOPPEL_OK);
    for (size_t i = 0; m && i < b->count; i++) {
        const uint64_t *from = b->fingerprints + i * words;
        const uint64_t fingerprint[2] = {from[0], words > 1 ? from[1] : 0};
        model_insert(m, fingerprint, b->owners[i], b->expires[i]);
    }
}

static void do_insert_many(run *r) {
    batch b = random_batch(r, random_below(&r->random, 20) ? 60 : r->shape->most / 2);
    add_batch(r, &b, r->index, &r->model);
    free_batch(&b);
}

/* Another index, with another secret and half of it in its head. */
static void do_merge(run *r) {
    doppel_index *other;
    make_index(r->shape, 0, &other);
    batch b = random_batch(r, 200);
    model apart = {.bits = r->shape->bits};
    add_batch(r, &b, other, &apart);
    for (int i = 0; i < 20; i++) {
        doppel_match entry;
        random_entry(r, &entry);
        uint64_t expires = random_time(r);
        assert_int_equal(doppel_index_add(other, entry.fingerprint, entry.owner, expires), DOPPEL_OK);
        model_insert(&apart, entry.fingerprint, entry.owner, expires);
    }
    doppel_error error;
    ok(doppel_index_merge(r->index, other, &error), &error);
    for (size_t i = 0; i < apart.count; i++)
        model_insert(&r->model, apart.entries[i].fingerprint, apart.entries[i].owner, apart.entries[i].expires);
    free(apart.entries);
    free_batch(&b);
    doppel_index_free(other);
}

static bool collect(const doppel_match *entry, void *user) {
    doppel_matches *all = user;
    if (all->count == all->capacity)
        return false;
    all->match[all->count] = *entry;
    all->match[all->count++].distance = 0;
    return true;
}

/* Every entry, each once, whatever the order. */
static void do_each(run *r) {
    size_t count = r->model.count;
    doppel_matches all = {.match = malloc((count + 1) * sizeof *all.match), .capacity = count + 1};
    doppel_match *want = malloc((count + 1) * sizeof *want);
    assert_true(all.match && want);
    assert_int_equal(doppel_index_each(r->index, collect, &all), DOPPEL_OK);
    assert_int_equal(all.count, count);
    for (size_t i = 0; i < count; i++) {
        want[i] = r->model.entries[i];
        want[i].distance = 0;
    }
    qsort(want, count, sizeof *want, compare_matches);
    qsort(all.match, count, sizeof *want, compare_matches);
    same_matches(want, all.match, count);
    free(all.match);
    free(want);
}

static void do_compact(run *r) {
    doppel_error error;
    ok(doppel_index_compact(r->index, &error), &error);
    doppel_index_stats stats;
    doppel_index_get_stats(r->index, &stats);
    assert_true(stats.runs <= 1);
}

static void do_validate(run *r) {
    doppel_error error;
    ok(doppel_index_validate(r->index, &error), &error);
    doppel_index_stats stats;
    doppel_index_get_stats(r->index, &stats);
    assert_int_equal(stats.entries, r->model.count);
    assert_int_equal(stats.bits, r->shape->bits);
}

/* Saves; goes on with the file most of the time. */
static void do_save(run *r) {
    doppel_error error;
    ok(doppel_index_save(r->index, r->path, &error), &error);
    doppel_index *opened;
    ok(doppel_index_open(r->path, &opened, &error), &error);
    if (random_below(&r->random, 3)) {
        doppel_index *old = r->index;
        r->index = opened;
        opened = old;
    }
    doppel_index_free(opened);
    do_validate(r);
}

/* ---- all of them ---- */

/* Of a thousand operations so many are of a kind; the rest are finds. */
static const struct {
    void (*run)(run *r);
    size_t weight;
} kinds[] = {{do_insert, 320}, {do_remove, 150}, {do_contains, 100}, {do_purge, 5}, {do_each, 3},  {do_insert_many, 14},
             {do_merge, 2},    {do_validate, 2}, {do_compact, 1},    {do_save, 3},  {do_find, 400}};

static void one_operation(run *r) {
    size_t turn = random_below(&r->random, 1000), kind = 0;
    while (turn >= kinds[kind].weight)
        turn -= kinds[kind++].weight;
    kinds[kind].run(r);
    r->clock += random_below(&r->random, 3) == 0;
    /* Thinned out where it has grown enough. */
    while (r->model.count > r->shape->most && !random_below(&r->random, 4))
        do_remove(r);
}

static size_t operations(void) {
    const char *suite = getenv("DOPPEL_SUITE"); /* set by scripts/test */
    return suite && !strcmp(suite, "full") ? 1000000 : 20000;
}

static void run_shape(const shape *s, size_t steps) {
    run r = {.shape = s, .random = 0x5EED + (uint64_t)s->bits * 131 + (uint64_t)s->most, .clock = 1};
    snprintf(r.path, sizeof r.path, "/tmp/doppel-model.%ld.%d", (long)getpid(), s->bits);
    for (size_t i = 0; i < s->centres; i++) {
        r.centre[i][0] = random_next(&r.random);
        r.centre[i][1] = random_next(&r.random);
        mask(s->bits, r.centre[i]);
    }
    make_index(s, random_next(&r.random), &r.index);
    for (size_t i = 0; i < steps; i++)
        one_operation(&r);
    do_each(&r);
    do_save(&r);
    unlink(r.path);
    doppel_matches_free(&r.matches);
    doppel_index_free(r.index);
    free(r.model.entries);
}

#define SHAPE_TEST(name, ...)                 \
    static void name(void **state) {          \
        (void)state;                          \
        static const shape s = {__VA_ARGS__}; \
        run_shape(&s, operations() / SHAPES); \
    }

enum { SHAPES = 8 };
SHAPE_TEST(sixty_four_bits, 64, 3, NULL, 600, 20)
SHAPE_TEST(sixty_four_bits_with_four_bands, 64, 3, "4x16", 600, 20)
SHAPE_TEST(sixty_four_bits_wide, 64, 8, NULL, 1500, 40)
SHAPE_TEST(sixty_four_bits_many, 64, 3, NULL, 9000, 64)
SHAPE_TEST(one_hundred_and_twenty_eight_bits, 128, 6, NULL, 600, 20)
SHAPE_TEST(sixteen_bits, 16, 3, NULL, 400, 20)
SHAPE_TEST(thirty_three_bits, 33, 3, NULL, 800, 10)
SHAPE_TEST(one_bit, 1, 1, NULL, 30, 2)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixty_four_bits),
        cmocka_unit_test(sixty_four_bits_with_four_bands),
        cmocka_unit_test(sixty_four_bits_wide),
        cmocka_unit_test(sixty_four_bits_many),
        cmocka_unit_test(one_hundred_and_twenty_eight_bits),
        cmocka_unit_test(sixteen_bits),
        cmocka_unit_test(thirty_three_bits),
        cmocka_unit_test(one_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
