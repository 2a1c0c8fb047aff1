/* bench_join.c - all pairs within k bits of planted fingerprints (bench/planted.h).
 *
 *   bench_join self COUNT KIND THREADS RUNS        pairs within 3 of an array, to a list of pairs of positions
 *   bench_join plain COUNT KIND                    the plain version: four bands of 16 bits, each counted into buckets
 *   bench_join file FILE THREADS MEMORY            pairs within 3 of a raw file, counted
 *   bench_join stream COUNT THREADS RUNS           a million queries against COUNT that a callback makes
 *   bench_join stream-file FILE THREADS RUNS       the same against a raw file
 *   bench_join make FILE COUNT                     writes a raw file of COUNT
 *   bench_join make-queries FILE QUERIES COUNT     and one of queries against the first COUNT
 *
 * KIND is few, same or near. Prints a line a figure: name, tab, number. Memory is the peak of the process, less what it
 * had at the start: the set itself is in it. */
#include "doppel.h"
#include "measure.h"
#include "planted.h"
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DISTANCE = 3, MOST_RUNS = 16, QUERIES = 1000000, BLOCK = 1 << 14 };

static void must(doppel_status status, const doppel_error *error) {
    if (status)
        bench_fail(error && error->message[0] ? error->message : "failed", "join");
}

/* ---- the list that a join fills ---- */

typedef struct pair_list {
    uint32_t (*pair)[2];
    size_t count, room;
} pair_list;

static doppel_status keep(const doppel_pair *pairs, size_t count, void *user) {
    pair_list *list = user;
    if (list->count + count > list->room) {
        size_t room = 2 * (list->count + count);
        void *grown = realloc(list->pair, room * sizeof *list->pair);
        if (!grown)
            return DOPPEL_ERROR_MEMORY;
        list->pair = grown;
        list->room = room;
    }
    for (size_t i = 0; i < count; i++) {
        list->pair[list->count + i][0] = (uint32_t)pairs[i].a;
        list->pair[list->count + i][1] = (uint32_t)pairs[i].b;
    }
    list->count += count;
    return DOPPEL_OK;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_seconds(double *seconds, int runs) {
    qsort(seconds, (size_t)runs, sizeof *seconds, by_size);
    process_print("seconds", seconds[runs / 2]);
    process_print("best seconds", seconds[0]);
}

static void print_counts(const doppel_join_counts *counts) {
    process_print("fingerprints", (double)counts->fingerprints);
    process_print("copies", (double)counts->copies);
    process_print("pairs", (double)counts->pairs);
    process_print("all pairs", (double)counts->all_pairs);
    process_print("candidates", (double)counts->candidates);
    process_print("spilled", (double)counts->spilled_bytes);
}

static int runs_of(const char *argument) {
    int runs = atoi(argument);
    return runs < 1 ? 1 : runs > MOST_RUNS ? MOST_RUNS : runs;
}

/* ---- one set ---- */

static void print_plan(uint64_t count) {
    doppel_plan_options options = {.size = sizeof options, .purpose = DOPPEL_FOR_JOIN};
    doppel_plan plan;
    size_t found;
    doppel_error error = {0};
    must(doppel_plan_list(count, DISTANCE, &options, &plan, 1, &found, &error), &error);
    printf("layout\t%s\n", plan.layout);
    process_print("predicted", 1e-6 * plan.microseconds);
    process_print("predicted bytes", plan.memory);
}

static void self(char **argument) {
    uint64_t count = process_number(argument[0]), before = process_memory();
    int runs = runs_of(argument[3]);
    double seconds[MOST_RUNS];
    uint64_t *set = planted_array(count, planted_kind_named(argument[1]));
    doppel_source source = {.size = sizeof source, .array = set, .count = count};
    pair_list list = {0};
    doppel_join_options options = {.size = sizeof options, .threads = atoi(argument[2]), .pairs = keep, .user = &list};
    doppel_join_counts counts = {0};
    doppel_error error = {0};
    for (int run = 0; run < runs; run++) {
        list.count = 0;
        double start = process_now();
        must(doppel_join(&source, DISTANCE, &options, &counts, &error), &error);
        seconds[run] = process_now() - start;
    }
    print_seconds(seconds, runs);
    print_counts(&counts);
    process_print("peak", (double)(process_peak() - before));
    print_plan(count);
    free(list.pair);
    free(set);
}

static void file(char **argument) {
    uint64_t before = process_memory();
    doppel_source source = {.size = sizeof source, .path = argument[0]};
    doppel_join_options options = {.size = sizeof options,
                                   .threads = atoi(argument[1]),
                                   .memory = process_number(argument[2]),
                                   .count_only = true};
    doppel_join_counts counts = {0};
    doppel_error error = {0};
    double start = process_now();
    must(doppel_join(&source, DISTANCE, &options, &counts, &error), &error);
    process_print("seconds", process_now() - start);
    print_counts(&counts);
    process_print("peak", (double)(process_peak() - before));
    print_plan(counts.fingerprints);
}

/* ---- the plain version ---- */

static unsigned band(uint64_t value, int number) {
    return (unsigned)(value >> 16 * number) & 0xffff;
}

/* Pairs in one bucket of a band, each counted at the first band that the two share. */
static uint64_t bucket_pairs(const uint64_t *bucket, size_t count, int number) {
    uint64_t pairs = 0, before = number ? ~(uint64_t)0 >> (64 - 16 * number) : 0;
    for (size_t i = 1; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            uint64_t differ = bucket[i] ^ bucket[j];
            if (__builtin_popcountll(differ) > DISTANCE)
                continue;
            int first = 0;
            while (first < number && (differ & before) >> 16 * first & 0xffff)
                first++;
            pairs += first == number;
        }
    }
    return pairs;
}

static uint64_t band_pairs(const uint64_t *set, uint64_t count, int number, uint64_t *sorted) {
    static uint64_t start[65537];
    memset(start, 0, sizeof start);
    for (uint64_t i = 0; i < count; i++)
        start[band(set[i], number) + 1]++;
    for (int i = 0; i < 65536; i++)
        start[i + 1] += start[i];
    for (uint64_t i = 0; i < count; i++)
        sorted[start[band(set[i], number)]++] = set[i];
    uint64_t pairs = 0, from = 0;
    for (int i = 0; i < 65536; i++) {
        pairs += bucket_pairs(sorted + from, start[i] - from, number);
        from = start[i];
    }
    return pairs;
}

static void plain(char **argument) {
    uint64_t count = process_number(argument[0]), pairs = 0;
    uint64_t *set = planted_array(count, planted_kind_named(argument[1])), *sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        bench_fail("no memory", "join");
    double start = process_now();
    for (int number = 0; number < 4; number++)
        pairs += band_pairs(set, count, number, sorted);
    process_print("seconds", process_now() - start);
    process_print("all pairs", (double)pairs);
    free(sorted);
    free(set);
}

/* ---- queries against a stream ---- */

/* Numbers made cheaply: one block of random ones, turned into another by one random number a block. One in a hundred is
 * a query with up to three bits flipped. */
typedef struct maker {
    uint64_t block[BLOCK];
    const uint64_t *query;
    uint64_t done, count;
} maker;

static doppel_status make_some(void *user, uint64_t *to, size_t room, size_t *count) {
    maker *from = user;
    size_t made = 0;
    while (made < room && from->done < from->count) {
        size_t now = room - made < BLOCK ? room - made : BLOCK;
        now = from->count - from->done < now ? (size_t)(from->count - from->done) : now;
        uint64_t turn = planted_query(10 * from->done + 1, 1); /* not one in ten: a random one */
        for (size_t i = 0; i < now; i++)
            to[made + i] = from->block[i] ^ turn;
        for (size_t i = 99; i < now; i += 100) {
            uint64_t random = to[made + i];
            to[made + i] = from->query[(random >> 32) % QUERIES] ^ (uint64_t)(random & 7) << (random >> 8 & 31);
        }
        from->done += now;
        made += now;
    }
    *count = made;
    return DOPPEL_OK;
}

/* Seconds to make all of the stream, and nothing else. */
static double make_alone(maker *from) {
    static uint64_t to[BLOCK];
    size_t got = 1;
    double start = process_now();
    for (from->done = 0; got;)
        make_some(from, to, BLOCK, &got);
    return process_now() - start;
}

static void stream(const char *path, uint64_t count, int threads, int runs) {
    static maker from;
    uint64_t before = process_memory(), *query = planted_array(QUERIES, PLANTED_FEW);
    from.query = query;
    from.count = count;
    for (size_t i = 0; i < BLOCK; i++)
        from.block[i] = planted_query(10 * i + 3, 1);
    if (!path)
        process_print("making", make_alone(&from));
    doppel_source a = {.size = sizeof a, .array = query, .count = QUERIES};
    doppel_source b = {.size = sizeof b, .path = path};
    if (!path) {
        b.read = make_some;
        b.user = &from;
    }
    doppel_join_options options = {.size = sizeof options, .threads = threads, .count_only = true};
    doppel_join_counts counts = {0};
    doppel_error error = {0};
    double seconds[MOST_RUNS];
    for (int run = 0; run < runs; run++) {
        from.done = 0;
        double start = process_now();
        must(doppel_join_sets(&a, &b, DISTANCE, &options, &counts, &error), &error);
        seconds[run] = process_now() - start;
    }
    print_seconds(seconds, runs);
    print_counts(&counts);
    process_print("peak", (double)(process_peak() - before));
    free(query);
}

int main(int count, char **argument) {
    const char *command = count > 1 ? argument[1] : "";
    if (strcmp(command, "self") == 0 && count == 6)
        self(argument + 2);
    else if (strcmp(command, "plain") == 0 && count == 4)
        plain(argument + 2);
    else if (strcmp(command, "file") == 0 && count == 5)
        file(argument + 2);
    else if (strcmp(command, "stream") == 0 && count == 5)
        stream(NULL, process_number(argument[2]), atoi(argument[3]), runs_of(argument[4]));
    else if (strcmp(command, "stream-file") == 0 && count == 5)
        stream(argument[2], 0, atoi(argument[3]), runs_of(argument[4]));
    else if (strcmp(command, "make") == 0 && count == 4)
        planted_write(argument[2], process_number(argument[3]));
    else if (strcmp(command, "make-queries") == 0 && count == 5)
        planted_write_queries(argument[2], process_number(argument[3]), process_number(argument[4]));
    else
        bench_fail("COMMAND ARGUMENTS: see the head of bench/bench_join.c", "usage");
    return 0;
}
