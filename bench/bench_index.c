/* bench_index.c - finding within k bits in an index of planted fingerprints (bench/planted.h).
 *
 *   bench_index find COUNT QUERIES PLANNED ASKED BYTES [SAVE]
 *       builds an index of COUNT, planned for the distance PLANNED in BYTES per entry (0: the library's default), and
 *       runs QUERIES within ASKED on it; saves it if named
 *   bench_index open FILE COUNT QUERIES ASKED
 *       the same with a saved one
 *   bench_index grow COUNT
 *       adds and finds in turn, up to COUNT entries. "Rate by CPU time" counts the calling thread alone, "bytes" the
 *       peak while runs are merged
 *   bench_index waits COUNT
 *       the same, and how many calls took how long
 *   bench_index scan COUNT QUERIES ASKED
 *       the plain version: compares each query with all entries
 *   bench_index memory
 *       the speed of memory: read in order, and at random
 *
 * Prints a line per figure: name, tab, number. Memory is the increase over what the process had before the index. */
#include "doppel.h"
#include "measure.h"
#include "planted.h"
#include "process.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { RUNS = 3, THREADS = 2, TIMED = 200000 };

static void must(doppel_status status, const doppel_error *error) {
    if (status)
        bench_fail(error && error->message[0] ? error->message : "failed", "index");
}

typedef struct queries {
    uint64_t *of;
    size_t count;
    int distance;
} queries;

static queries queries_make(uint64_t number, uint64_t entries, int distance) {
    queries made = {malloc(number * sizeof *made.of), number, distance};
    if (!made.of)
        bench_fail("no memory", "queries");
    for (size_t i = 0; i < number; i++)
        made.of[i] = planted_query(i, entries);
    return made;
}

/* ---- asking ---- */

/* A thread's share of the queries. */
typedef struct share {
    const doppel_index *index;
    const uint64_t *query;
    size_t count;
    int distance;
    uint64_t matches, candidates;
} share;

static void *ask(void *argument) {
    share *mine = argument;
    doppel_matches near = {0};
    for (size_t i = 0; i < mine->count; i++) {
        must(doppel_index_find(mine->index, mine->query + i, mine->distance, NULL, &near, NULL), NULL);
        mine->matches += near.count;
        mine->candidates += near.candidates;
    }
    doppel_matches_free(&near);
    return NULL;
}

/* Queries a second on `threads` threads, each with its own part of them. */
static double ask_all(const doppel_index *index, const queries *all, int threads, share *sum) {
    share part[THREADS];
    pthread_t thread[THREADS];
    double start = process_now();
    for (int t = 0; t < threads; t++) {
        size_t first = all->count * (size_t)t / (size_t)threads, end = all->count * (size_t)(t + 1) / (size_t)threads;
        part[t] = (share){index, all->of + first, end - first, all->distance, 0, 0};
        if (t && pthread_create(&thread[t], NULL, ask, &part[t]))
            bench_fail("cannot be started", "thread");
    }
    ask(&part[0]);
    for (int t = 1; t < threads; t++)
        pthread_join(thread[t], NULL);
    double seconds = process_now() - start;
    *sum = (share){0};
    for (int t = 0; t < threads; t++) {
        sum->matches += part[t].matches;
        sum->candidates += part[t].candidates;
    }
    return (double)all->count / seconds;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The time of single queries: the middle one, and what one in a hundred exceeds. */
static void print_latency(const doppel_index *index, const queries *all) {
    static double each[TIMED];
    size_t count = all->count < TIMED ? all->count : TIMED;
    doppel_matches near = {0};
    for (size_t i = 0; i < count; i++) {
        double start = process_now();
        must(doppel_index_find(index, all->of + i, all->distance, NULL, &near, NULL), NULL);
        each[i] = process_now() - start;
    }
    doppel_matches_free(&near);
    qsort(each, count, sizeof *each, by_size);
    process_print("p50", each[count / 2]);
    process_print("p99", each[count * 99 / 100]);
}

static void print_speed(const doppel_index *index, const queries *all) {
    share sum;
    double rate[RUNS];
    ask_all(index, all, 1, &sum);
    for (int threads = 1; threads <= THREADS; threads++) {
        for (int run = 0; run < RUNS; run++)
            rate[run] = ask_all(index, all, threads, &sum);
        qsort(rate, RUNS, sizeof *rate, by_size);
        process_print(threads == 1 ? "rate" : "rate of two", rate[RUNS / 2]);
        process_print(threads == 1 ? "best rate" : "best rate of two", rate[RUNS - 1]);
    }
    process_print("matches", (double)sum.matches);
    process_print("candidates", (double)sum.candidates / (double)all->count);
    print_latency(index, all);
}

/* What the plan predicts for a query: for the layout of the index, at another distance if necessary. */
static void print_plan(const doppel_index *index, uint64_t count, int asked) {
    doppel_index_stats stats;
    doppel_index_get_stats(index, &stats);
    printf("layout\t%s\n", stats.layout);
    process_print("runs", stats.runs);
    process_print("bytes said", (double)stats.bytes / (double)count);
    doppel_plan_options options = {.size = sizeof options, .purpose = DOPPEL_FOR_FIND, .layout = stats.layout};
    doppel_plan plan, wider;
    size_t found;
    doppel_error error = {0};
    must(doppel_plan_list(count, stats.distance, &options, &plan, 1, &found, &error), &error);
    must(doppel_plan_widen(&plan, asked, NULL, &wider, &error), &error);
    process_print("predicted", 1e6 / wider.microseconds);
    process_print("predicted candidates", wider.candidates);
    process_print("predicted bytes", wider.bytes_per_entry);
}

/* ---- the commands ---- */

static void print_save(const doppel_index *index, const char *path) {
    doppel_error error = {0};
    double start = process_now();
    must(doppel_index_save(index, path, &error), &error);
    process_print("save", process_now() - start);
}

static void find(char **argument, const char *save) {
    uint64_t count = process_number(argument[0]);
    int planned = atoi(argument[2]), asked = atoi(argument[3]);
    queries all = queries_make(process_number(argument[1]), count, asked);
    doppel_index_options options = {.size = sizeof options, .distance = planned, .count = count};
    options.memory = count * process_number(argument[4]);
    uint64_t before = process_memory();
    doppel_index *index;
    doppel_error error = {0};
    uint64_t *set = planted_array(count, PLANTED_FEW);
    double start = process_now();
    must(doppel_index_create(&options, &index, &error), &error);
    must(doppel_index_add_batch(index, set, NULL, NULL, count), NULL);
    must(doppel_index_compact(index, &error), &error);
    process_print("build", process_now() - start);
    process_print("peak", (double)(process_peak() - before));
    free(set);
    process_forget_peak();
    print_plan(index, count, asked);
    print_speed(index, &all);
    process_print("bytes", (double)(process_peak() - before) / (double)count);
    if (save)
        print_save(index, save);
    doppel_index_free(index);
    free(all.of);
}

static void open_saved(char **argument) {
    uint64_t count = process_number(argument[1]);
    queries all = queries_make(process_number(argument[2]), count, atoi(argument[3])), first = all;
    uint64_t before = process_memory();
    doppel_index *index;
    doppel_error error = {0};
    double start = process_now();
    must(doppel_index_open(argument[0], &index, &error), &error);
    process_print("open", process_now() - start);
    share sum;
    first.count = 1;
    process_print("first query", 1 / ask_all(index, &first, 1, &sum));
    start = process_now();
    must(doppel_index_validate(index, &error), &error); /* so that every page is there */
    process_print("validate", process_now() - start);
    print_speed(index, &all);
    process_print("bytes", (double)(process_peak() - before) / (double)count);
    doppel_index_free(index);
    free(all.of);
}

/* ---- an index that grows ---- */

static double thread_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void grow(char **argument) {
    uint64_t count = process_number(argument[0]), before = process_memory(), matches = 0;
    doppel_index *index;
    doppel_matches near = {0};
    must(doppel_index_create(NULL, &index, NULL), NULL);
    double start = process_now(), busy = thread_seconds();
    for (uint64_t i = 0; i < count; i++) {
        uint64_t fingerprint = planted_at(i), query = planted_query(i, i);
        must(doppel_index_add(index, &fingerprint, i, 0), NULL);
        must(doppel_index_find(index, &query, 3, NULL, &near, NULL), NULL);
        matches += near.count;
    }
    process_print("rate", (double)count / (process_now() - start));
    process_print("rate by CPU time", (double)count / (thread_seconds() - busy));
    process_print("matches", (double)matches);
    process_print("bytes", (double)(process_peak() - before) / (double)count);
    doppel_index_stats stats;
    doppel_index_get_stats(index, &stats);
    process_print("bytes said", (double)stats.bytes / (double)count);
    doppel_matches_free(&near);
    doppel_index_free(index);
}

/* Calls by the time they took: up to 1, 2, 4, ... microseconds. A call during which the system gave the CPU to another
 * process counts by the CPU time it took itself, and is counted as interrupted: the rest of the time is the machine's
 * load. */
enum { WAITS = 24 };
typedef struct waits {
    uint64_t calls[WAITS], interrupted;
    double longest;
} waits;

typedef struct moment {
    double clock, cpu;
} moment;

static moment moment_now(void) {
    double clock = process_now();
    return (moment){clock, thread_seconds()};
}

/* Whether this thread lost the CPU, without having waited for anything, since the last call. */
static bool was_interrupted(void) {
    static long last;
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    bool more = usage.ru_nivcsw > last;
    last = usage.ru_nivcsw;
    return more;
}

static void waits_add(waits *w, moment from, moment to) {
    double seconds = to.clock - from.clock;
    int at = 0;
    if (seconds > 20e-6 && was_interrupted()) {
        w->interrupted++;
        seconds = to.cpu - from.cpu;
    }
    while (at < WAITS - 1 && seconds > 1e-6 * (double)(1 << at))
        at++;
    w->calls[at]++;
    w->longest = seconds > w->longest ? seconds : w->longest;
}

static void print_waits(const char *what, const waits *w) {
    char name[80];
    for (int i = 0; i < WAITS; i++) {
        snprintf(name, sizeof name, "%s up to %d us", what, 1 << i);
        if (w->calls[i])
            process_print(name, (double)w->calls[i]);
    }
    snprintf(name, sizeof name, "%s interrupted", what);
    process_print(name, (double)w->interrupted);
    snprintf(name, sizeof name, "longest %s", what);
    process_print(name, w->longest);
}

static void wait_times(char **argument) {
    uint64_t count = process_number(argument[0]);
    doppel_index *index;
    doppel_matches near = {0};
    waits adds = {0}, finds = {0};
    must(doppel_index_create(NULL, &index, NULL), NULL);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t fingerprint = planted_at(i), query = planted_query(i, i);
        moment start = moment_now();
        must(doppel_index_add(index, &fingerprint, i, 0), NULL);
        moment between = moment_now();
        must(doppel_index_find(index, &query, 3, NULL, &near, NULL), NULL);
        moment end = moment_now();
        waits_add(&adds, start, between);
        waits_add(&finds, between, end);
    }
    print_waits("adds", &adds);
    print_waits("finds", &finds);
    doppel_matches_free(&near);
    doppel_index_free(index);
}

static void scan(char **argument) {
    uint64_t count = process_number(argument[0]), matches = 0;
    queries all = queries_make(process_number(argument[1]), count, atoi(argument[2]));
    uint64_t *set = planted_array(count, PLANTED_FEW);
    double start = process_now();
    for (size_t q = 0; q < all.count; q++) {
        for (uint64_t i = 0; i < count; i++)
            matches += __builtin_popcountll(set[i] ^ all.of[q]) <= all.distance;
    }
    process_print("rate", (double)all.count / (process_now() - start));
    process_print("matches", (double)matches);
    free(set);
    free(all.of);
}

static void memory(void) {
    enum { LINE = 8, RUNS_OF_READS = 3 }; /* numbers a cache line */
    size_t count = (size_t)1 << 27, lines = count / LINE, reads = lines;
    uint64_t *set = planted_array(count, PLANTED_FEW), sum = 0;
    double best = 1e9, start = 0;
    for (int run = 0; run < RUNS_OF_READS; run++) {
        start = process_now();
        for (size_t i = 0; i < count; i++)
            sum += set[i];
        best = process_now() - start < best ? process_now() - start : best;
    }
    process_print("in order", (double)(count * sizeof *set) / best);
    start = process_now();
    for (size_t i = 0; i < reads; i++) /* no read waits for another, so that many are under way at once */
        sum ^= set[(i * 0x9e3779b97f4a7c15u >> 40) % lines * LINE];
    process_print("anywhere", (process_now() - start) / (double)reads);
    printf("sum\t%llu\n", (unsigned long long)sum);
    free(set);
}

int main(int count, char **argument) {
    const char *command = count > 1 ? argument[1] : "";
    if (strcmp(command, "find") == 0 && (count == 7 || count == 8))
        find(argument + 2, argument[7]);
    else if (strcmp(command, "open") == 0 && count == 6)
        open_saved(argument + 2);
    else if (strcmp(command, "grow") == 0 && count == 3)
        grow(argument + 2);
    else if (strcmp(command, "waits") == 0 && count == 3)
        wait_times(argument + 2);
    else if (strcmp(command, "scan") == 0 && count == 5)
        scan(argument + 2);
    else if (strcmp(command, "memory") == 0 && count == 2)
        memory();
    else
        bench_fail("COMMAND ARGUMENTS: see the head of bench/bench_index.c", "usage");
    return 0;
}
