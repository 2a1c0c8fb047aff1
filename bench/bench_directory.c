/* bench_directory.c - what the engine knows of its documents, in memory: bytes a document, time to load, time a
 * look-up.
 *
 *   bench_directory distance|similarity|titles [COUNT [THREADS [QUERIES]]]
 *
 * Loads COUNT documents (100,000 if not given), each with an id, a URL, a digest and a planted fingerprint
 * (bench/planted.h), or the keys of 30 bands, or a title of some words, on THREADS threads (2), and asks QUERIES (a
 * million) of each kind on one. Prints a line a figure: name, tab, number: seconds to load (and of all CPUs),
 * nanoseconds of a CPU for a look-up, bytes a document, by what it counts itself and by what the process has more. */
#include "known/directory.h"
#include "measure.h"
#include "planted.h"
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BANDS = 30 };

typedef struct bench {
    dp_directory *directory;
    dp_directory_load *load;
    uint64_t count, queries;
    bool by_similarity, titles;
    _Atomic uint64_t next;
} bench;

static void check(doppel_status status, const char *what) {
    if (status != DOPPEL_OK)
        bench_fail(doppel_status_name(status), what);
}

/* Seconds of all CPUs, which others that are at work on the machine do not add to. */
static double cpu_now(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

/* ---- documents ---- */

static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

typedef struct document {
    dp_trace trace;
    uint32_t keys[BANDS];
    char title[128];
} document;

/* Words of 4 to 9 letters. */
static size_t make_title(char *to, uint64_t seed) {
    size_t at = 0;
    for (int word = 0; word < 9; word++) {
        uint64_t letters = mix(mix(seed + (uint64_t)word) % 20000);
        for (uint64_t i = 4 + letters % 6; i; i--, letters /= 26)
            to[at++] = (char)('a' + letters % 26);
        to[at++] = ' ';
    }
    return at - 1;
}

static void make(const bench *b, document *d, uint64_t number) {
    d->trace = (dp_trace){.number = number, .kind = DP_TRACE_DOCUMENT, .content = true};
    d->trace.id_hash = mix(3 * number);
    d->trace.url_hash = mix(3 * number + 1);
    uint64_t digest = mix(3 * number + 2);
    memcpy(d->trace.digest, &digest, sizeof digest);
    if (!b->by_similarity)
        d->trace.fingerprint[0] = planted_at(number);
    for (size_t i = 0; i < BANDS && b->by_similarity; i++)
        d->keys[i] = (uint32_t)mix(number << 8 | i);
    d->trace.keys = d->keys;
    d->trace.key_count = b->by_similarity ? BANDS : 0;
    if (b->titles)
        d->trace.title = (doppel_slice){d->title, make_title(d->title, mix(number))};
}

/* ---- loading ---- */

static void load_some(void *user, size_t thread) {
    enum { SOME = 10000 };
    bench *b = user;
    document d;
    (void)thread;
    for (uint64_t from; (from = atomic_fetch_add(&b->next, SOME)) < b->count;)
        for (uint64_t n = from + 1; n <= from + SOME && n <= b->count; n++) {
            make(b, &d, n);
            check(dp_directory_load_add(b->load, &d.trace), "load");
        }
}

static void print_bytes(const bench *b, uint64_t count) {
    dp_directory_stats stats;
    dp_directory_get_stats(b->directory, &stats);
    process_print("bytes_keys", (double)stats.keys_bytes / (double)count);
    process_print("bytes_near", (double)stats.near_bytes / (double)count);
    if (b->titles)
        process_print("bytes_titles", (double)stats.title_bytes / (double)count);
}

static void load_all(bench *b, int threads) {
    uint64_t before = process_memory();
    double start = process_now();
    double used = cpu_now();
    check(dp_directory_load_begin(b->directory, &b->load), "load");
    dp_run_threads((size_t)threads, load_some, b);
    double added = process_now();
    check(dp_directory_load_end(b->load), "load");
    process_print("load_traces", added - start);
    process_print("load_building", process_now() - added);
    process_print("load_cpu", cpu_now() - used);
    process_print("bytes_process", (double)(process_memory() - before) / (double)b->count);
    process_print("bytes_peak", (double)(process_peak() - before) / (double)b->count);
    print_bytes(b, b->count);
}

/* ---- asking ---- */

typedef struct asking {
    dp_numbers numbers;
    doppel_matches near;
    dp_title_matches titles;
    dp_title_hits hits;
    uint64_t found;
} asking;

typedef void (*question)(const bench *b, asking *a, const document *d);

static void ask_keys(const bench *b, asking *a, const document *d) {
    check(dp_directory_find_key(b->directory, DP_KEY_URL, d->trace.url_hash, &a->numbers), "keys");
    a->found += a->numbers.count;
    check(dp_directory_find_key(b->directory, DP_KEY_DIGEST, dp_digest_hash(d->trace.digest), &a->numbers), "keys");
    a->found += a->numbers.count;
    check(dp_directory_find_key(b->directory, DP_KEY_ID, d->trace.id_hash, &a->numbers), "keys");
    a->found += a->numbers.count;
}

static void ask_bands(const bench *b, asking *a, const document *d) {
    check(dp_directory_find_bands(b->directory, d->keys, BANDS, &a->numbers), "bands");
    a->found += a->numbers.count;
}

static void ask_near(const bench *b, asking *a, const document *d) {
    check(dp_directory_find_near(b->directory, d->trace.fingerprint, 3, &a->near, NULL), "fingerprints");
    a->found += a->near.count;
}

static void ask_title(const bench *b, asking *a, const document *d) {
    dp_title_search query = {.title = d->trace.title, .now = 1, .below = UINT64_MAX, .share = 0.001, .best = true};
    check(dp_directory_find_titles(b->directory, &query, &a->titles, &a->hits), "titles");
    a->found += a->hits.count;
}

static void ask_alive(const bench *b, asking *a, const document *d) {
    a->found += dp_directory_alive(b->directory, d->trace.number, 1);
}

/* Half of the documents asked about are there. */
static void ask_all(const bench *b, const char *name, question ask, uint64_t queries) {
    asking a = {0};
    document d;
    double making = cpu_now();
    uint64_t sum = 0;
    for (uint64_t q = 0; q < queries; q++) {
        make(b, &d, 1 + mix(q) % (2 * b->count));
        sum += d.trace.id_hash;
    }
    double start = cpu_now();
    making = start - making;
    for (uint64_t q = 0; q < queries; q++) {
        make(b, &d, 1 + mix(q) % (2 * b->count));
        ask(b, &a, &d);
    }
    double took = cpu_now() - start - making;
    process_print(name, took / (double)queries * 1e9);
    if (!a.found && sum)
        bench_fail("nothing was found", name);
    dp_numbers_free(&a.numbers);
    doppel_matches_free(&a.near);
    dp_title_matches_free(&a.titles);
    free(a.hits.hit);
}

/* ---- changing ---- */

static void change(bench *b) {
    document d;
    uint64_t some = b->queries;
    double worst = 0, start = cpu_now(), before = bench_now();
    for (uint64_t n = b->count + 1; n <= b->count + some; n++) {
        make(b, &d, n);
        check(dp_directory_add(b->directory, &d.trace), "add");
        double now = bench_now();
        worst = now - before > worst ? now - before : worst;
        before = now;
    }
    process_print("add", (cpu_now() - start) / (double)some * 1e9);
    process_print("add_longest", worst * 1e9);
    process_print("bytes_process_added", (double)process_memory() / (double)(b->count + some));
    print_bytes(b, b->count + some);
    start = cpu_now();
    for (uint64_t n = b->count + 1; n <= b->count + some; n++) {
        make(b, &d, n);
        check(dp_directory_remove(b->directory, &d.trace), "remove");
    }
    process_print("remove", (cpu_now() - start) / (double)some * 1e9);
    uint64_t ended[16];
    start = cpu_now();
    if (dp_directory_expired(b->directory, UINT32_MAX / 2, ended, 16))
        bench_fail("something expired", "expired");
    process_print("expired_scan", (cpu_now() - start) * 1e9);
}

int main(int count, char **arguments) {
    if (count < 2)
        bench_fail("distance|similarity|titles [COUNT [THREADS [QUERIES]]]", "usage");
    bench b = {.count = count > 2 ? process_number(arguments[2]) : 100000,
               .queries = count > 4 ? process_number(arguments[4]) : 1000000};
    int threads = count > 3 ? atoi(arguments[3]) : 2;
    b.by_similarity = !strcmp(arguments[1], "similarity");
    b.titles = !strcmp(arguments[1], "titles");
    dp_directory_options options = {.bits = 64,
                                    .distance = 3,
                                    .by_similarity = b.by_similarity,
                                    .titles = b.titles,
                                    .title_similarity = 0.9,
                                    .threads = threads,
                                    .count = b.count};
    check(dp_directory_create(&options, &b.directory, NULL), "create");
    load_all(&b, threads);
    ask_all(&b, "find_three_keys", ask_keys, b.queries);
    ask_all(&b, "find_alive", ask_alive, b.queries);
    if (b.by_similarity)
        ask_all(&b, "find_30_bands", ask_bands, b.queries);
    else
        ask_all(&b, "find_near", ask_near, b.queries);
    if (b.titles)
        ask_all(&b, "find_title", ask_title, b.queries / 50);
    change(&b);
    dp_directory_free(b.directory);
    return 0;
}
