/* measure.c - documents in memory, and timed runs. */
#include "measure.h"

#include "doppel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_RUNS = 64 };

/* The whole file in fresh memory. */
static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        bench_fail("cannot be opened; bench/corpus makes it", path);
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*size + 1);
    if (!data || fread(data, 1, *size, file) != *size)
        bench_fail("cannot be read", path);
    fclose(file);
    return data;
}

static uint32_t length_at(const char *p) {
    const uint8_t *b = (const uint8_t *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Counts the documents up to the limit, and notes where they are once there is room for that. */
static void find_documents(bench_documents *documents, uint64_t limit) {
    documents->count = 0;
    documents->bytes = 0;
    for (size_t at = 0; at + 4 <= documents->size && (!limit || documents->bytes < limit); documents->count++) {
        uint32_t length = length_at(documents->data + at);
        if (documents->texts) {
            documents->texts[documents->count] = documents->data + at + 4;
            documents->lengths[documents->count] = length;
        }
        documents->bytes += length;
        at += 4 + (size_t)length;
    }
}

void bench_documents_load(bench_documents *documents, const char *path, uint64_t limit) {
    memset(documents, 0, sizeof *documents);
    documents->data = read_file(path, &documents->size);
    find_documents(documents, limit);
    documents->texts = malloc((documents->count + 1) * sizeof *documents->texts);
    documents->lengths = malloc((documents->count + 1) * sizeof *documents->lengths);
    if (!documents->texts || !documents->lengths)
        bench_fail("no memory", path);
    find_documents(documents, limit);
}

void bench_documents_free(bench_documents *documents) {
    free(documents->data);
    free(documents->texts);
    free(documents->lengths);
}

double bench_now(void) {
    struct timespec now;
    const char *clock = getenv("BENCH_CLOCK");
    clock_gettime(clock && strcmp(clock, "cpu") == 0 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_measure(const bench_case *what) {
    double seconds[MOST_RUNS];
    int runs = what->runs < 1 ? 1 : what->runs > MOST_RUNS ? MOST_RUNS : what->runs;
    uint64_t result = 0;
    for (int i = 0; i < runs; i++) {
        double start = bench_now();
        result = what->run(what->user);
        seconds[i] = bench_now() - start;
    }
    qsort(seconds, (size_t)runs, sizeof *seconds, by_size);
    printf("%s\t%s\t%.6g\t%.6g\t%.0f\t%016llx\n", what->name, doppel_cpu_level(), what->amount / seconds[0],
           what->amount / seconds[runs / 2], what->amount, (unsigned long long)result);
    fflush(stdout);
}
