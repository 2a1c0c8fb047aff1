/* metrics.c - what is counted, in the text form of Prometheus: what every program that shows metrics has. A figure of
 * an engine is a row of `figures` or `histograms`; those of the server alone are in programs/server/service.c. */
#include "common/metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

void metrics_head(text_buffer *out, const char *name, const char *type, const char *help) {
    text_format(out, "# HELP doppel_%s %s\n# TYPE doppel_%s %s\n", name, help, name, type);
}

void metrics_single(text_buffer *out, const char *name, const char *type, const char *help, double value) {
    metrics_head(out, name, type, help);
    text_format(out, "doppel_%s ", name);
    text_number(out, value);
    text_put(out, "\n");
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

void metrics_process(text_buffer *out) {
    metrics_head(out, "build_info", "gauge", "The version that runs.");
    text_format(out, "doppel_build_info{version=\"%s\",cpu=\"%s\"} 1\n", doppel_version(), doppel_cpu_level());
    metrics_single(out, "resident_memory_bytes", "gauge", "Memory of the process.", resident_bytes());
}

/* ---- of engines ---- */

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
FIGURE(reconnects, s->reconnects)
FIGURE(resent, s->resent)
FIGURE(moved, s->moved)

static const struct {
    const char *name, *type, *help;
    figure of;
} figures[] = {
    {"index_documents", "gauge", "Originals.", documents},
    {"index_copies", "gauge", "Linked or stored copies.", copies},
    {"index_disk_bytes", "gauge", "Size of the file.", disk},
    {"index_disk_free_bytes", "gauge", "Free space inside the file, which is reused.", disk_free},
    {"index_memory_bytes", "gauge", "Memory of the index.", memory},
    {"checks_total", "counter", "Checks.", checks},
    {"adds_total", "counter", "Adds.", adds},
    {"removes_total", "counter", "Documents that were removed.", removes},
    {"expired_total", "counter", "Documents that expired.", expired},
    {"damaged_total", "counter", "Records that could not be read.", damaged},
    {"commits_total", "counter", "Commits.", commits},
    {"failed_commits_total", "counter", "Commits that failed.", failed_commits},
    {"store_reconnects_total", "counter", "Reconnections to a shared store.", reconnects},
    {"store_resent_total", "counter", "Requests to a shared store that were retried.", resent},
    {"store_moved_total", "counter", "Redirections from a shared store to another node.", moved},
};

static void write_engine_histogram(text_buffer *out, const char *name, const char *index, const doppel_histogram *h,
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

static void write_verdicts(text_buffer *out, const engine_figures *engines, size_t count) {
    metrics_head(out, "verdicts_total", "counter", "Verdicts of checks and adds, by reason.");
    for (size_t i = 0; i < count; i++)
        for (doppel_reason k = DOPPEL_REASON_NONE; k < DOPPEL_REASONS; k++)
            text_format(out, "doppel_verdicts_total{index=\"%s\",reason=\"%s\"} %llu\n", engines[i].name,
                        k ? doppel_reason_name(k) : "unique", (unsigned long long)engines[i].stats.verdicts_by[k]);
}

void metrics_engines(text_buffer *out, const engine_figures *engines, size_t count) {
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++) {
        metrics_head(out, figures[k].name, figures[k].type, figures[k].help);
        for (size_t i = 0; i < count; i++)
            text_format(out, "doppel_%s{index=\"%s\"} %.0f\n", figures[k].name, engines[i].name,
                        figures[k].of(&engines[i].stats));
    }
    for (size_t k = 0; k < sizeof histograms / sizeof *histograms; k++) {
        metrics_head(out, histograms[k].name, "histogram", histograms[k].help);
        for (size_t i = 0; i < count; i++)
            write_engine_histogram(out, histograms[k].name, engines[i].name,
                                   (const doppel_histogram *)((const char *)&engines[i].stats + histograms[k].place),
                                   histograms[k].unit);
    }
    write_verdicts(out, engines, count);
}
