/* test_join_two.c - all pairs between two sets: the same as comparing each with each, whatever the sizes, widths,
 * distances, threads, memory and sources; in order; and what ends it. */
#include "support.h"

#include "doppel.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- sets ---- */

typedef struct set {
    uint64_t *numbers; /* words a fingerprint */
    size_t count, words;
    int bits;
} set;

static uint64_t low_bits(int bits) {
    return bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
}

static set make_set(size_t count, int bits, uint64_t seed) {
    set s = {.count = count, .words = bits > 64 ? 2 : 1, .bits = bits};
    s.numbers = malloc((count + 1) * s.words * sizeof(uint64_t));
    for (size_t i = 0; i < count * s.words; i++)
        s.numbers[i] = random_next(&seed) & low_bits(bits);
    return s;
}

static void free_sets(set *a, set *b) {
    free(a->numbers);
    free(b->numbers);
}

/* A share of the one becomes a copy of some of the other with up to `most` bits changed. */
static void plant(set *to, const set *from, int most, uint64_t seed) {
    for (size_t i = 0; from->count && i < to->count; i++) {
        uint64_t *number = to->numbers + i * to->words;
        if (random_below(&seed, 3))
            continue;
        memcpy(number, from->numbers + random_below(&seed, from->count) * to->words, to->words * 8);
        for (size_t changes = random_below(&seed, (size_t)most + 1); changes; changes--) {
            size_t bit = random_below(&seed, (size_t)to->bits);
            number[bit / 64] ^= (uint64_t)1 << bit % 64;
        }
    }
}

static doppel_source source_of(const set *s) {
    return (doppel_source){.size = sizeof(doppel_source), .array = s->numbers, .count = s->count};
}

/* ---- what goes out ---- */

typedef struct list {
    doppel_pair *pairs;
    size_t count, capacity;
    size_t fail_at; /* call; 0: never */
    size_t calls;
} list;

static doppel_status take(const doppel_pair *pairs, size_t count, void *user) {
    list *l = user;
    if (++l->calls == l->fail_at)
        return DOPPEL_ERROR_STORE;
    if (l->count + count > l->capacity) {
        l->capacity = 2 * (l->count + count);
        l->pairs = realloc(l->pairs, l->capacity * sizeof *pairs);
    }
    memcpy(l->pairs + l->count, pairs, count * sizeof *pairs);
    l->count += count;
    return DOPPEL_OK;
}

static int distance_of(const set *a, size_t i, const set *b, size_t j) {
    int distance = 0;
    for (size_t w = 0; w < a->words; w++)
        distance += __builtin_popcountll(a->numbers[i * a->words + w] ^ b->numbers[j * b->words + w]);
    return distance;
}

static list brute(const set *a, const set *b, int k) {
    list l = {0};
    for (size_t j = 0; j < b->count; j++)
        for (size_t i = 0; i < a->count; i++) {
            int distance = distance_of(a, i, b, j);
            if (distance <= k)
                take(&(doppel_pair){i, j, distance}, 1, &l);
        }
    return l;
}

static void check_equal(const list *got, const list *want) {
    assert_int_equal(got->count, want->count);
    for (size_t i = 0; i < want->count; i++) {
        assert_int_equal(got->pairs[i].b, want->pairs[i].b);
        assert_int_equal(got->pairs[i].a, want->pairs[i].a);
        assert_int_equal(got->pairs[i].distance, want->pairs[i].distance);
    }
}

static doppel_join_options options_of(int bits, list *to) {
    return (doppel_join_options){.size = sizeof(doppel_join_options), .bits = bits, .pairs = take, .user = to};
}

static void check_join(const set *a, const set *b, int k, doppel_join_options options) {
    list got = {0}, want = brute(a, b, k);
    doppel_source from_a = source_of(a), from_b = source_of(b);
    doppel_join_counts counts;
    doppel_error error;
    options.pairs = take;
    options.user = &got;
    doppel_status status = doppel_join_sets(&from_a, &from_b, k, &options, &counts, &error);
    if (status != DOPPEL_OK)
        fail_msg("%s", error.message);
    check_equal(&got, &want);
    assert_int_equal(counts.pairs, want.count);
    assert_int_equal(counts.all_pairs, want.count);
    assert_int_equal(counts.fingerprints, b->count);
    free(got.pairs);
    free(want.pairs);
}

/* ---- the same as brute force ---- */

static void every_distance_of_64_bits(void **state) {
    (void)state;
    set a = make_set(700, 64, 1), b = make_set(900, 64, 2);
    for (int k = 0; k <= 64; k += k < 17 && SMALLER == 1 ? 1 : 11) {
        plant(&b, &a, k + 1, (uint64_t)k);
        check_join(&a, &b, k, options_of(64, NULL));
    }
    free_sets(&a, &b);
}

static void every_distance_of_128_bits(void **state) {
    (void)state;
    set a = make_set(500, 128, 3), b = make_set(600, 128, 4);
    for (int k = 0; k <= 32; k += SMALLER) {
        plant(&b, &a, k + 1, (uint64_t)k);
        check_join(&a, &b, k, options_of(128, NULL));
    }
    check_join(&a, &b, 128, options_of(128, NULL));
    free_sets(&a, &b);
}

static void every_width(void **state) {
    (void)state;
    for (int bits = 1; bits <= 64; bits += SMALLER) {
        set a = make_set(bits < 8 ? 20 : 400, bits, 5), b = make_set(bits < 8 ? 30 : 300, bits, 6);
        for (int k = 0; k <= 4 && k <= bits; k++) {
            plant(&b, &a, k < bits ? k + 1 : k, (uint64_t)k);
            if (bits >= 12 || k < 3)
                check_join(&a, &b, k, options_of(bits, NULL));
        }
        free_sets(&a, &b);
    }
}

static void sizes_from_none_on(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 63, 64, 65, 257, 5000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < SIZES; j++) {
            if (sizes[i] * sizes[j] > 2000000)
                continue;
            set a = make_set(sizes[i], 64, 7), b = make_set(sizes[j], 64, 8);
            plant(&b, &a, 4, 9);
            check_join(&a, &b, 3, options_of(0, NULL));
            free_sets(&a, &b);
        }
}

/* ---- skewed sets ---- */

static void copies_on_both_sides(void **state) {
    (void)state;
    set a = make_set(1000, 64, 10), b = make_set(600, 64, 11);
    for (size_t i = 0; i < a.count; i++)
        a.numbers[i] = i % 5 ? a.numbers[i % 7] ^ i % 3 : a.numbers[i];
    plant(&b, &a, 4, 12);
    check_join(&a, &b, 3, options_of(64, NULL));
    free_sets(&a, &b);
}

static void all_equal(void **state) {
    (void)state;
    set a = make_set(400, 64, 13), b = make_set(500, 64, 14);
    for (size_t i = 0; i < 500; i++)
        b.numbers[i] = a.numbers[i % 400] = 0x1234;
    check_join(&a, &b, 0, options_of(64, NULL));
    check_join(&a, &b, 5, options_of(64, NULL));
    free_sets(&a, &b);
}

static void all_one_bit_apart(void **state) {
    (void)state;
    set a = make_set(64, 64, 15), b = make_set(64, 64, 16);
    for (size_t i = 0; i < 64; i++)
        a.numbers[i] = b.numbers[63 - i] = (uint64_t)1 << i;
    for (int k = 0; k < 4; k++)
        check_join(&a, &b, k, options_of(64, NULL));
    free_sets(&a, &b);
}

static void numbers_that_count_up(void **state) {
    (void)state;
    set a = make_set(1500, 64, 17), b = make_set(1500, 64, 18);
    for (size_t i = 0; i < 1500; i++) {
        a.numbers[i] = i;
        b.numbers[i] = 2000 - i;
    }
    check_join(&a, &b, 2, options_of(64, NULL));
    free_sets(&a, &b);
}

/* ---- sizes at which the filter is cut into slices ---- */

/* Only planted pairs are compared: random ones of so many bits are never that near. */
static void check_planted(size_t held, size_t streamed, int bits, doppel_join_options options) {
    set a = make_set(held, bits, 19), b = make_set(streamed, bits, 20);
    list got = {0}, want = {0};
    uint64_t seed = 21;
    for (size_t j = 0; j < streamed; j += 1 + random_below(&seed, 40)) {
        size_t i = random_below(&seed, held);
        memcpy(b.numbers + j * b.words, a.numbers + i * a.words, a.words * 8);
        for (int changes = 0; changes < 3; changes++) {
            size_t bit = random_below(&seed, (size_t)bits);
            b.numbers[j * b.words + bit / 64] ^= (uint64_t)1 << bit % 64;
        }
        take(&(doppel_pair){i, j, distance_of(&a, i, &b, j)}, 1, &want);
    }
    doppel_source from_a = source_of(&a), from_b = source_of(&b);
    options.pairs = take;
    options.user = &got;
    assert_int_equal(doppel_join_sets(&from_a, &from_b, 3, &options, NULL, NULL), DOPPEL_OK);
    check_equal(&got, &want);
    free_sets(&a, &b);
    free(got.pairs);
    free(want.pairs);
}

static void large_sets(void **state) {
    (void)state;
    check_planted(20000, 700000 / SMALLER, 64, options_of(64, NULL));
    check_planted(100, 700000 / SMALLER, 64, options_of(64, NULL));
    check_planted(50000, 1000, 64, options_of(64, NULL));
    check_planted(20000, 300000 / SMALLER, 128, options_of(128, NULL));
}

/* ---- threads, memory, secrets ---- */

static void threads_and_secrets_do_not_show(void **state) {
    (void)state;
    set a = make_set(2000, 64, 26), b = make_set(2000, 64, 27);
    plant(&b, &a, 5, 28);
    for (int threads = 1; threads <= 5; threads += 2)
        for (uint64_t secret = 1; secret < 3; secret++) {
            doppel_join_options options = options_of(64, NULL);
            options.threads = threads;
            options.secret = secret;
            check_join(&a, &b, 4, options);
        }
    free_sets(&a, &b);
}

static void many_batches_come_out_in_order(void **state) {
    (void)state;
    doppel_join_options options = options_of(64, NULL);
    options.threads = 4;
    options.memory = 8 << 20;
    check_planted(300, 300000, 64, options);
}

/* Each of 3000 is within 64 of each of 3000: more pairs than batches keep. */
static void more_pairs_than_fit(void **state) {
    (void)state;
    set a = make_set(1500 / SMALLER, 64, 29), b = make_set(1500, 64, 30);
    doppel_join_options options = options_of(64, NULL);
    options.threads = 3;
    options.memory = 1 << 20;
    check_join(&a, &b, 64, options);
    free_sets(&a, &b);
}

static void too_little_memory_says_what_is_needed(void **state) {
    (void)state;
    set a = make_set(100000, 64, 31), b = make_set(10, 64, 32);
    doppel_source from_a = source_of(&a), from_b = source_of(&b);
    doppel_join_options options = options_of(64, NULL);
    doppel_error error;
    options.memory = 1 << 20;
    assert_int_equal(doppel_join_sets(&from_a, &from_b, 3, &options, NULL, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "MiB"));
    free_sets(&a, &b);
}

static void counting_gives_no_pairs(void **state) {
    (void)state;
    set a = make_set(500, 64, 33), b = make_set(500, 64, 34);
    plant(&b, &a, 5, 35);
    list got = {0}, want = brute(&a, &b, 4);
    doppel_source from_a = source_of(&a), from_b = source_of(&b);
    doppel_join_options options = options_of(64, &got);
    doppel_join_counts counts;
    options.count_only = true;
    assert_int_equal(doppel_join_sets(&from_a, &from_b, 4, &options, &counts, NULL), DOPPEL_OK);
    assert_int_equal(counts.pairs, want.count);
    assert_int_equal(got.calls, 0);
    assert_true(counts.candidates >= want.count);
    free(want.pairs);
    free_sets(&a, &b);
}

/* ---- sources ---- */

typedef struct reader {
    const set *from;
    size_t at, most, calls;
    size_t fail_at; /* call; 0: never */
} reader;

static doppel_status read_some(void *user, uint64_t *to, size_t room, size_t *count) {
    reader *r = user;
    if (++r->calls == r->fail_at)
        return DOPPEL_ERROR_STORE;
    size_t left = r->from->count - r->at, size = left < room ? left : room;
    *count = size < r->most ? size : r->most;
    memcpy(to, r->from->numbers + r->at * r->from->words, *count * r->from->words * 8);
    r->at += *count;
    return DOPPEL_OK;
}

static doppel_source source_of_reader(reader *r) {
    return (doppel_source){.size = sizeof(doppel_source), .read = read_some, .user = r};
}

static void callbacks_on_both_sides(void **state) {
    (void)state;
    for (int bits = 64; bits <= 128; bits += 64) {
        set a = make_set(600, bits, 36), b = make_set(700, bits, 37);
        plant(&b, &a, 4, 38);
        reader read_a = {.from = &a, .most = 7}, read_b = {.from = &b, .most = 64};
        doppel_source from_a = source_of_reader(&read_a), from_b = source_of_reader(&read_b);
        list got = {0}, want = brute(&a, &b, 3);
        doppel_join_options options = options_of(bits, &got);
        assert_int_equal(doppel_join_sets(&from_a, &from_b, 3, &options, NULL, NULL), DOPPEL_OK);
        check_equal(&got, &want);
        free(got.pairs);
        free(want.pairs);
        free_sets(&a, &b);
    }
}

/* More than is read ahead, to see how long it is. */
static void a_long_callback(void **state) {
    (void)state;
    set a = make_set(300, 64, 39), b = make_set(1200000, 64, 40);
    uint64_t seed = 41;
    list got = {0}, want = {0};
    for (size_t j = 0; j < b.count; j += 1 + random_below(&seed, 100000)) {
        b.numbers[j] = a.numbers[j % 300] ^ 5;
        take(&(doppel_pair){j % 300, j, 2}, 1, &want);
    }
    reader read_b = {.from = &b, .most = 100000};
    doppel_source from_a = source_of(&a), from_b = source_of_reader(&read_b);
    doppel_join_options options = options_of(64, &got);
    assert_int_equal(doppel_join_sets(&from_a, &from_b, 3, &options, NULL, NULL), DOPPEL_OK);
    check_equal(&got, &want);
    free(got.pairs);
    free(want.pairs);
    free_sets(&a, &b);
}

/* A file in a folder that goes with it. */
typedef struct file {
    char folder[64], path[128];
} file;

static file write_file(const void *bytes, size_t size) {
    file f;
    snprintf(f.folder, sizeof f.folder, "/tmp/doppel-test-XXXXXX");
    assert_non_null(mkdtemp(f.folder));
    snprintf(f.path, sizeof f.path, "%s/b.u64", f.folder);
    FILE *out = fopen(f.path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    return f;
}

static void remove_file(const file *f) {
    unlink(f->path);
    rmdir(f->folder);
}

static doppel_status join_file(const set *a, const file *f, int bits, list *got, doppel_error *error) {
    doppel_source from_a = source_of(a), from_b = {.size = sizeof from_b, .path = f->path};
    doppel_join_options options = options_of(bits, got);
    return doppel_join_sets(&from_a, &from_b, 3, &options, NULL, error);
}

static void files(void **state) {
    (void)state;
    for (int bits = 64; bits <= 128; bits += 64) {
        set a = make_set(600, bits, 42), b = make_set(70000 / SMALLER, bits, 43);
        for (size_t j = 0; j < b.count; j += 999)
            memcpy(b.numbers + j * b.words, a.numbers + (j % 600) * a.words, b.words * 8);
        list got = {0}, want = brute(&a, &b, 3);
        file f = write_file(b.numbers, b.count * b.words * 8);
        assert_int_equal(join_file(&a, &f, bits, &got, NULL), DOPPEL_OK);
        check_equal(&got, &want);
        remove_file(&f);
        free(got.pairs);
        free(want.pairs);
        free_sets(&a, &b);
    }
}

static void *write_pipe(void *user) {
    const file *f = user;
    static uint64_t numbers[1000];
    int fd = open(f->path, O_WRONLY);
    for (size_t i = 0; i < 1000; i++)
        numbers[i] = i;
    for (size_t at = 0; at < sizeof numbers; at += 100)
        if (write(fd, (char *)numbers + at, 100) != 100)
            break;
    close(fd);
    return NULL;
}

static void a_pipe(void **state) {
    (void)state;
    set a = make_set(1, 64, 44);
    a.numbers[0] = 0x1FF;
    file f = write_file("", 0);
    unlink(f.path);
    assert_int_equal(mkfifo(f.path, 0600), 0);
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_pipe, &f), 0);
    list got = {0};
    assert_int_equal(join_file(&a, &f, 64, &got, NULL), DOPPEL_OK);
    pthread_join(writer, NULL);
    /* Of the numbers below 1000, those with at least 6 of the low 9 bits set, and no other. */
    size_t want = 0;
    for (unsigned i = 0; i < 1000; i++)
        want += __builtin_popcount(i ^ 0x1FF) <= 3;
    assert_int_equal(got.count, want);
    remove_file(&f);
    free(got.pairs);
    free(a.numbers);
}

static void a_file_that_does_not_divide(void **state) {
    (void)state;
    set a = make_set(5, 64, 45);
    file f = write_file("0123456789", 10);
    list got = {0};
    doppel_error error;
    assert_int_equal(join_file(&a, &f, 64, &got, &error), DOPPEL_ERROR_INPUT);
    assert_string_equal(error.file, f.path);
    assert_non_null(strstr(error.message, "10 bytes"));
    remove_file(&f);
    free(a.numbers);
}

static void a_file_that_is_not_there(void **state) {
    (void)state;
    set a = make_set(5, 64, 46);
    file f = {.path = "/nowhere/b.u64"};
    list got = {0};
    doppel_error error;
    assert_int_equal(join_file(&a, &f, 64, &got, &error), DOPPEL_ERROR_IO);
    assert_string_equal(error.file, "/nowhere/b.u64");
    free(a.numbers);
}

static void bits_beyond_the_width_are_told_by_position(void **state) {
    (void)state;
    set a = make_set(5, 48, 47);
    uint64_t numbers[300] = {0};
    numbers[257] = (uint64_t)1 << 48;
    file f = write_file(numbers, sizeof numbers);
    list got = {0};
    doppel_error error;
    assert_int_equal(join_file(&a, &f, 48, &got, &error), DOPPEL_ERROR_INPUT);
    assert_string_equal(error.file, f.path);
    assert_int_equal(error.position, 258);
    assert_non_null(strstr(error.message, "fingerprint 257"));
    remove_file(&f);
    free(a.numbers);
}

/* ---- what makes no sense ---- */

static doppel_status try(const doppel_source *a, const doppel_source *b, int distance, int bits) {
    doppel_join_options options = {.size = sizeof options, .bits = bits};
    doppel_error error = {0};
    doppel_status status = doppel_join_sets(a, b, distance, &options, NULL, &error);
    assert_true(status == DOPPEL_OK || strlen(error.message) > 10);
    return status;
}

static void bad_usage(void **state) {
    (void)state;
    uint64_t one[2] = {1, 2};
    doppel_source good = {.size = sizeof good, .array = one, .count = 1}, none = {.size = sizeof none};
    doppel_source both = good, counted = {.size = sizeof counted, .count = 3};
    both.path = "x";
    assert_int_equal(try(&good, &good, 3, 64), DOPPEL_OK);
    assert_int_equal(try(&none, &good, 3, 64), DOPPEL_OK);
    assert_int_equal(try(&good, &none, 3, 64), DOPPEL_OK);
    assert_int_equal(try(&both, &good, 3, 64), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(&good, &both, 3, 64), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(&counted, &good, 3, 64), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(NULL, &good, 3, 64), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(&good, &good, -1, 64), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(&good, &good, 65, 64), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(&good, &good, 3, 65), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(&good, &good, 3, 129), DOPPEL_ERROR_USAGE);
    assert_int_equal(try(&good, &good, 3, -1), DOPPEL_ERROR_USAGE);
}

/* ---- what ends it ---- */

static void the_callback_for_pairs_ends_it(void **state) {
    (void)state;
    set a = make_set(300, 64, 48);
    doppel_source from = source_of(&a);
    for (int threads = 1; threads <= 3; threads++) {
        list got = {.fail_at = 2};
        doppel_join_options options = options_of(64, &got);
        doppel_error error;
        options.threads = threads;
        options.memory = 1 << 18;
        assert_int_equal(doppel_join_sets(&from, &from, 64, &options, NULL, &error), DOPPEL_ERROR_STORE);
        assert_non_null(strstr(error.message, "callback"));
        assert_int_equal(got.calls, 2);
        free(got.pairs);
    }
    free(a.numbers);
}

static void a_callback_that_reads_ends_it(void **state) {
    (void)state;
    set a = make_set(300, 64, 49);
    for (size_t fail_at = 1; fail_at < 4; fail_at++) {
        reader failing = {.from = &a, .most = 100, .fail_at = fail_at};
        doppel_source good = source_of(&a), bad = source_of_reader(&failing);
        assert_int_equal(try(&good, &bad, 3, 64), DOPPEL_ERROR_STORE);
        failing = (reader){.from = &a, .most = 100, .fail_at = fail_at};
        assert_int_equal(try(&bad, &good, 3, 64), DOPPEL_ERROR_STORE);
    }
    free(a.numbers);
}

static void stop_ends_it(void **state) {
    (void)state;
    set a = make_set(300, 64, 50);
    doppel_source from = source_of(&a);
    volatile int stop = 1;
    list got = {0};
    doppel_join_options options = options_of(64, &got);
    options.stop = &stop;
    assert_int_equal(doppel_join_sets(&from, &from, 3, &options, NULL, NULL), DOPPEL_ERROR_INTERRUPTED);
    assert_int_equal(got.count, 0);
    free(a.numbers);
}

static void note_progress(uint64_t done, uint64_t total, void *user) {
    list *l = user;
    assert_int_equal(total, 100000);
    assert_true(done >= l->capacity && done <= total);
    l->capacity = done;
}

static void progress_goes_up_to_all(void **state) {
    (void)state;
    set a = make_set(300, 64, 51), b = make_set(100000, 64, 52);
    doppel_source from_a = source_of(&a), from_b = source_of(&b);
    list seen = {0};
    doppel_join_options options = {.size = sizeof options, .progress = note_progress, .user = &seen, .threads = 2};
    assert_int_equal(doppel_join_sets(&from_a, &from_b, 3, &options, NULL, NULL), DOPPEL_OK);
    assert_int_equal(seen.capacity, 100000);
    free_sets(&a, &b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_distance_of_64_bits),
        cmocka_unit_test(every_distance_of_128_bits),
        cmocka_unit_test(every_width),
        cmocka_unit_test(sizes_from_none_on),
        cmocka_unit_test(copies_on_both_sides),
        cmocka_unit_test(all_equal),
        cmocka_unit_test(all_one_bit_apart),
        cmocka_unit_test(numbers_that_count_up),
        cmocka_unit_test(large_sets),
        cmocka_unit_test(threads_and_secrets_do_not_show),
        cmocka_unit_test(many_batches_come_out_in_order),
        cmocka_unit_test(more_pairs_than_fit),
        cmocka_unit_test(too_little_memory_says_what_is_needed),
        cmocka_unit_test(counting_gives_no_pairs),
        cmocka_unit_test(callbacks_on_both_sides),
        cmocka_unit_test(a_long_callback),
        cmocka_unit_test(files),
        cmocka_unit_test(a_pipe),
        cmocka_unit_test(a_file_that_does_not_divide),
        cmocka_unit_test(a_file_that_is_not_there),
        cmocka_unit_test(bits_beyond_the_width_are_told_by_position),
        cmocka_unit_test(bad_usage),
        cmocka_unit_test(the_callback_for_pairs_ends_it),
        cmocka_unit_test(a_callback_that_reads_ends_it),
        cmocka_unit_test(stop_ends_it),
        cmocka_unit_test(progress_goes_up_to_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
