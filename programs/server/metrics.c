/* metrics.c - GET /metrics: what was counted, in the text form of Prometheus. */
#include "server/service.h"

#include <string.h>
#include <unistd.h>

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

static void head(text *out, const char *name, const char *type, const char *help) {
    text_format(out, "# HELP doppel_%s %s\n# TYPE doppel_%s %s\n", name, help, name, type);
}

static void single(text *out, const char *name, const char *type, const char *help, double value) {
    head(out, name, type, help);
    text_format(out, "doppel_%s ", name);
    text_number(out, value);
    text_put(out, "\n");
}

static const char *method_of(size_t number) {
    return number < route_count() ? routes[number].method : "";
}

static const char *path_of(size_t number) {
    return number < route_count() ? routes[number].path : "";
}

static void write_requests(text *out, metrics *m) {
    head(out, "http_requests_total", "counter", "Requests that were answered.");
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
    head(out, "http_request_duration_seconds", "histogram", "From the head of a request to the end of its answer.");
    for (size_t i = 0; i < METRIC_ROUTES; i++) {
        uint64_t any = 0;
        for (size_t k = 0; k <= LATENCY_BUCKETS; k++)
            any += atomic_load(&m->latency[i][k]);
        if (any)
            write_latency(out, m, i);
    }
}

static double resident_bytes(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*u %llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void write_server(text *out, service *s) {
    metrics *m = &s->metrics;
    head(out, "build_info", "gauge", "The version that runs.");
    text_format(out, "doppel_build_info{version=\"%s\",cpu=\"%s\"} 1\n", doppel_version(), doppel_cpu_level());
    single(out, "uptime_seconds", "gauge", "Since the server was started.",
           (double)(now_microseconds() - m->started) * 1e-6);
    single(out, "resident_memory_bytes", "gauge", "Memory of the process.", resident_bytes());
    single(out, "http_connections", "gauge", "Open connections.", (double)atomic_load(&m->connections));
    single(out, "http_connections_total", "counter", "Connections ever.", (double)atomic_load(&m->connected));
    single(out, "http_requests_in_flight", "gauge", "Requests under way.", (double)atomic_load(&m->under_way));
    single(out, "http_received_bytes_total", "counter", "Bytes of bodies.", (double)atomic_load(&m->received));
    single(out, "http_sent_bytes_total", "counter", "Bytes of answers.", (double)atomic_load(&m->sent));
    single(out, "http_buffered_bytes", "gauge", "Bytes of bodies that are held.", (double)atomic_load(&s->buffered));
    single(out, "batch_lines_total", "counter", "Lines of batches.", (double)atomic_load(&m->lines));
}

/* ---- of each index ---- */

typedef double (*figure)(const doppel_engine_stats *s);

#define FIGURE(name, expression)                       \
    static double name(const doppel_engine_stats *s) { \
        return (double)(expression);                   \
    }
FIGURE(documents, s->documents)
FIGURE(copies, s->copies)
FIGURE(disk, s->disk_bytes)
FIGURE(disk_free, s->free_bytes)
FIGURE(memory, s->memory_bytes)
FIGURE(checks, s->checks)
FIGURE(adds, s->adds)
FIGURE(removes, s->removes)
FIGURE(expired, s->expired)
FIGURE(damaged, s->damaged)
FIGURE(commits, s->commits)
FIGURE(failed_commits, s->failed_commits)

static const struct {
    const char *name, *type, *help;
    figure of;
} figures[] = {
    {"index_documents", "gauge", "Originals.", documents},
    {"index_copies", "gauge", "Linked or stored copies.", copies},
    {"index_disk_bytes", "gauge", "Size of the file.", disk},
    {"index_disk_free_bytes", "gauge", "Of it, what can be used again.", disk_free},
    {"index_memory_bytes", "gauge", "Memory of the index.", memory},
    {"checks_total", "counter", "Checks.", checks},
    {"adds_total", "counter", "Adds.", adds},
    {"removes_total", "counter", "Documents that were removed.", removes},
    {"expired_total", "counter", "Documents that expired.", expired},
    {"damaged_total", "counter", "Records that could not be read.", damaged},
    {"commits_total", "counter", "Commits.", commits},
    {"failed_commits_total", "counter", "Commits that failed.", failed_commits},
};

static void write_engine_histogram(text *out, const char *name, const char *index, const doppel_histogram *h,
                                   double unit) {
    uint64_t so_far = 0;
    for (int i = 0; i < DOPPEL_BUCKETS; i++) {
        so_far += h->bucket[i];
        text_format(out, "doppel_%s_bucket{index=\"%s\",le=\"", name, index);
        if (i < DOPPEL_BUCKETS - 1)
            text_number(out, (double)(((uint64_t)1 << i) - (unit == 1)) * unit);
        else
            text_put(out, "+Inf");
        text_format(out, "\"} %llu\n", (unsigned long long)so_far);
    }
    text_format(out, "doppel_%s_sum{index=\"%s\"} ", name, index);
    text_number(out, (double)h->sum * unit);
    text_format(out, "\ndoppel_%s_count{index=\"%s\"} %llu\n", name, index, (unsigned long long)so_far);
}

static const struct {
    const char *name, *help;
    size_t place;
    double unit;
} histograms[] = {
    {"check_duration_seconds", "Checks in the engine.", offsetof(doppel_engine_stats, check_time), 1e-6},
    {"add_duration_seconds", "Adds in the engine, without their commit.", offsetof(doppel_engine_stats, add_time),
     1e-6},
    {"commit_duration_seconds", "Commits.", offsetof(doppel_engine_stats, commit_time), 1e-6},
    {"candidates", "Documents that were compared, a check or add.", offsetof(doppel_engine_stats, candidates), 1},
    {"duplicate_distance", "Differing bits of duplicates by content.", offsetof(doppel_engine_stats, distances), 1},
};

static void write_verdicts(text *out, index_entry *const *list, const doppel_engine_stats *stats, size_t count) {
    static const char *const reasons[] = {"unique", "exact_url", "content_hash", "title_similarity"};
    head(out, "verdicts_total", "counter", "Verdicts of checks and adds, by reason.");
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 4; k++)
            text_format(out, "doppel_verdicts_total{index=\"%s\",reason=\"%s\"} %llu\n", list[i]->name, reasons[k],
                        (unsigned long long)stats[i].verdicts_by[k]);
}

enum { SHOWN = 64 }; /* indexes; more would make the answer long */

static void write_indexes(text *out, service *s) {
    index_entry *list[SHOWN];
    doppel_engine_stats stats[SHOWN];
    size_t count = 0;
    while (count < SHOWN && (list[count] = indexes_at(&s->indexes, count)))
        count++;
    for (size_t i = 0; i < count; i++)
        doppel_engine_get_stats(list[i]->engine, &stats[i]);
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++) {
        head(out, figures[k].name, figures[k].type, figures[k].help);
        for (size_t i = 0; i < count; i++)
            text_format(out, "doppel_%s{index=\"%s\"} %.0f\n", figures[k].name, list[i]->name,
                        figures[k].of(&stats[i]));
    }
    for (size_t k = 0; k < sizeof histograms / sizeof *histograms; k++) {
        head(out, histograms[k].name, "histogram", histograms[k].help);
        for (size_t i = 0; i < count; i++)
            write_engine_histogram(out, histograms[k].name, list[i]->name,
                                   (const doppel_histogram *)((const char *)&stats[i] + histograms[k].place),
                                   histograms[k].unit);
    }
    write_verdicts(out, list, stats, count);
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
