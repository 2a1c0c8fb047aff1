/* metrics.c - GET /metrics: what was counted, in the text form of Prometheus. */
#include "common/metrics.h"
#include "server/service.h"

static const double latency_bounds[LATENCY_BUCKETS] = {
    100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100};
static const int statuses[METRIC_STATUSES] = {200, 201, 400, 401, 403, 404, 405, 409, 413,
                                              415, 421, 422, 429, 500, 501, 503, 0};

static size_t route_number(const route_info *route) {
    return route ? (size_t)(route - routes) : METRIC_ROUTES - 1;
}

void metrics_count(metrics *m, const route_info *route, int status, uint64_t microseconds) {
    size_t number = route_number(route), bucket = 0, place = 0;
    while (statuses[place] && statuses[place] != status)
        place++;
    while (bucket < LATENCY_BUCKETS && (double)microseconds * 1e-6 > latency_bounds[bucket])
        bucket++;
    atomic_fetch_add_explicit(&m->requests[number][place], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->latency[number][bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->latency_sum[number], microseconds, memory_order_relaxed);
}

/* ---- writing ---- */

static const char *method_of(size_t number) {
    return number < route_count() ? routes[number].method : "";
}

static const char *path_of(size_t number) {
    return number < route_count() ? routes[number].path : "";
}

static void write_requests(text *out, metrics *m) {
    metrics_head(out, "http_requests_total", "counter", "Requests that were answered.");
    for (size_t i = 0; i < METRIC_ROUTES; i++)
        for (size_t k = 0; k < METRIC_STATUSES; k++) {
            uint64_t count = atomic_load(&m->requests[i][k]);
            if (count)
                text_format(out, "doppel_http_requests_total{method=\"%s\",route=\"%s\",status=\"%d\"} %llu\n",
                            method_of(i), path_of(i), statuses[k], (unsigned long long)count);
        }
}

static void write_latency(text *out, metrics *m, size_t i) {
    uint64_t so_far = 0;
    for (size_t k = 0; k <= LATENCY_BUCKETS; k++) {
        so_far += atomic_load(&m->latency[i][k]);
        text_format(out, "doppel_http_request_duration_seconds_bucket{method=\"%s\",route=\"%s\",le=\"", method_of(i),
                    path_of(i));
        if (k < LATENCY_BUCKETS)
            text_number(out, latency_bounds[k]);
        else
            text_put(out, "+Inf");
        text_format(out, "\"} %llu\n", (unsigned long long)so_far);
    }
    text_format(out, "doppel_http_request_duration_seconds_sum{method=\"%s\",route=\"%s\"} ", method_of(i), path_of(i));
    text_number(out, (double)atomic_load(&m->latency_sum[i]) * 1e-6);
    text_format(out, "\ndoppel_http_request_duration_seconds_count{method=\"%s\",route=\"%s\"} %llu\n", method_of(i),
                path_of(i), (unsigned long long)so_far);
}

static void write_latencies(text *out, metrics *m) {
    metrics_head(out, "http_request_duration_seconds", "histogram",
                 "From the head of a request to the end of its answer.");
    for (size_t i = 0; i < METRIC_ROUTES; i++) {
        uint64_t any = 0;
        for (size_t k = 0; k <= LATENCY_BUCKETS; k++)
            any += atomic_load(&m->latency[i][k]);
        if (any)
            write_latency(out, m, i);
    }
}

static void write_server(text *out, service *s) {
    metrics *m = &s->metrics;
    metrics_process(out);
    metrics_single(out, "uptime_seconds", "gauge", "Since the server was started.",
                   (double)(now_microseconds() - m->started) * 1e-6);
    metrics_single(out, "http_connections", "gauge", "Open connections.", (double)atomic_load(&m->connections));
    metrics_single(out, "http_connections_total", "counter", "Connections ever.", (double)atomic_load(&m->connected));
    metrics_single(out, "http_requests_in_flight", "gauge", "Requests under way.", (double)atomic_load(&m->under_way));
    metrics_single(out, "http_received_bytes_total", "counter", "Bytes of bodies.", (double)atomic_load(&m->received));
    metrics_single(out, "http_sent_bytes_total", "counter", "Bytes of answers.", (double)atomic_load(&m->sent));
    metrics_single(out, "http_buffered_bytes", "gauge", "Bytes of bodies that are held.",
                   (double)atomic_load(&s->buffered));
    metrics_single(out, "batch_lines_total", "counter", "Lines of batches.", (double)atomic_load(&m->lines));
}

/* ---- of each index ---- */

enum { SHOWN = 64 }; /* indexes; more would make the answer long */

/* Of those that may be away. */
static void write_stores(text *out, index_entry *const *list, size_t count) {
    bool begun = false;
    for (size_t i = 0; i < count; i++) {
        if (!list[i]->needs.connects)
            continue;
        if (!begun)
            metrics_head(out, "store_up", "gauge", "Whether the shared store of the index answers.");
        begun = true;
        text_format(out, "doppel_store_up{index=\"%s\"} %d\n", list[i]->name, !index_is_away(list[i]));
    }
}

static void write_indexes(text *out, service *s) {
    index_entry *list[SHOWN];
    engine_figures engines[SHOWN];
    size_t count = 0;
    while (count < SHOWN && (list[count] = indexes_at(&s->indexes, count)))
        count++;
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i]->unavailable)
            continue;
        engines[open].name = list[i]->name;
        index_stats(list[i], &engines[open++].stats);
    }
    metrics_engines(out, engines, open);
    write_stores(out, list, count);
    for (size_t i = 0; i < count; i++)
        indexes_give(&s->indexes, list[i]);
}

void handle_metrics(request *r) {
    write_server(&r->answer, r->service);
    write_requests(&r->answer, &r->service->metrics);
    write_latencies(&r->answer, &r->service->metrics);
    write_indexes(&r->answer, r->service);
    request_answer(r, 200);
}
