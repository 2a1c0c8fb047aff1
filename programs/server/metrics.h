/* metrics.h - what is counted, for GET /metrics in the text form of Prometheus. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "server/routes.h"

#include <stdatomic.h>

/* Upper bounds of the latency histogram, 100 microseconds to 100 seconds, three a power of ten. */
enum { LATENCY_BUCKETS = 19, METRIC_ROUTES = 40, METRIC_STATUSES = 24 };

typedef struct metrics {
    uint64_t started; /* microseconds */
    /* By route (the last: none matched) and by status. */
    atomic_uint_fast64_t requests[METRIC_ROUTES][METRIC_STATUSES];
    atomic_uint_fast64_t latency[METRIC_ROUTES][LATENCY_BUCKETS + 1];
    atomic_uint_fast64_t latency_sum[METRIC_ROUTES];
    atomic_uint_fast64_t received, sent; /* bytes of bodies */
    atomic_uint_fast64_t under_way, connections, connected, lines;
} metrics;

/* Counts a request that has ended. */
void metrics_count(metrics *m, const route_info *route, int status, uint64_t microseconds);

#endif
