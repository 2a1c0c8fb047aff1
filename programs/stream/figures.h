/* figures.h - what the worker has done, counted once it is committed; written by one thread, read by any. */
#ifndef STREAM_FIGURES_H
#define STREAM_FIGURES_H

#include "common/clock.h"
#include "common/text.h"

#include <stdatomic.h>

/* Upper bounds from 1 ms to 100 s, three a power of ten, and what is above. */
enum { TIME_BUCKETS = 17 };

typedef struct times {
    atomic_uint_fast64_t bucket[TIME_BUCKETS];
    atomic_uint_fast64_t sum; /* microseconds */
} times;

typedef enum counted {
    COUNT_UNIQUE,
    COUNT_BY_URL,
    COUNT_BY_CONTENT,
    COUNT_BY_TITLE,
    COUNT_DEAD_LETTERS,
    COUNT_LEFT_OUT, /* would be dead letters, but there is no topic for them */
    COUNT_TOMBSTONES,
    COUNTED
} counted;

typedef struct figures {
    uint64_t started; /* microseconds */
    atomic_uint_fast64_t records[COUNTED], bytes;
    atomic_uint_fast64_t transactions, aborted, rebalances, retries, damaged;
    times latency;     /* from the time of a record to its commit */
    times transaction; /* from its first call to its last */
    times engine;      /* adds and removes of a transaction */
} figures;

void times_add(times *t, uint64_t microseconds);

/* A histogram in the text form of Prometheus, its name without doppel_. */
void times_write(text_buffer *out, const times *t, const char *name, const char *help);

/* A quantile of the times, in seconds: the bound of its bucket; 0: there are none. */
double times_share(const times *t, double share);

uint64_t figures_records(const figures *f); /* all */
uint64_t figures_duplicates(const figures *f);

#endif
