/* measure.h - what the benchmark programs share: documents in memory, a clock, the best and the median of some runs.
 *
 * bench_documents_load -> bench_measure (once a figure, which it prints) -> bench_documents_free. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "process.h"

#include <stddef.h>
#include <stdint.h>

/* A set of documents as bench/corpus writes it (NAME.bin): each one's length, 32 bits little-endian, then its bytes. */
typedef struct bench_documents {
    char *data; /* the whole file */
    size_t size;
    const char **texts;
    uint32_t *lengths;
    size_t count;
    uint64_t bytes; /* of all texts */
} bench_documents;

/* Reads the file into memory, so that all of it has been touched before any clock starts; at most `limit` bytes of
 * whole documents (0: all). Ends the program with a message when it cannot. */
void bench_documents_load(bench_documents *documents, const char *path, uint64_t limit);
void bench_documents_free(bench_documents *documents);

/* Seconds of a clock that never goes back; with BENCH_CLOCK=cpu in the environment, of this thread on a CPU, which
 * shows more than the time of day while the machine has other work. */
double bench_now(void);

/* One thing to measure. `run` gives a number that depends on all it computed. */
typedef struct bench_case {
    const char *name;
    uint64_t (*run)(void *user);
    void *user;
    double amount; /* what one run gets through: bytes, comparisons */
    int runs;
} bench_case;

/* Runs it and prints one line: name, CPU level, best and median amount a second, amount, result in hexadecimal,
 * separated by tabs. */
void bench_measure(const bench_case *what);

#endif
