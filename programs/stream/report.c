/* report.c - what the worker says: lines of the log now and then, and the summary at its end. */
#include "stream/state.h"

#include "common/message.h"
#include "common/metrics.h"
#include "common/progress.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define EVERY 10000000 /* microseconds between two lines */

static pthread_mutex_t saying = PTHREAD_MUTEX_INITIALIZER;

void say(const char *format, ...) {
    char line[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    pthread_mutex_lock(&saying);
    message("%s", line);
    pthread_mutex_unlock(&saying);
}

void on_kafka_log(const rd_kafka_t *client, int level, const char *part, const char *line) {
    enum { NOTICE = 5, DEBUG = 7 }; /* as syslog(3) has them */
    (void)client;
    /* Of properties that are for both clients, each of them knows some only. */
    if ((level <= NOTICE || level == DEBUG) && strcmp(part, "CONFWARN") != 0)
        say("kafka: %s: %s", part, line);
}

int64_t lag_of(stream *s, text *out) {
    rd_kafka_topic_partition_list_t *all = NULL;
    int64_t lag = 0;
    pthread_mutex_lock(&s->lock);
    all = rd_kafka_topic_partition_list_copy(s->positions);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < all->cnt; i++) {
        const rd_kafka_topic_partition_t *at = &all->elems[i];
        int64_t low, high;
        if (rd_kafka_get_watermark_offsets(s->consumer, at->topic, at->partition, &low, &high) || high < 0)
            continue;
        int64_t behind = high > at->offset ? high - at->offset : 0;
        lag += behind;
        if (out)
            text_format(out, "doppel_stream_lag{topic=\"%s\",partition=\"%d\"} %lld\n", at->topic, (int)at->partition,
                        (long long)behind);
    }
    rd_kafka_topic_partition_list_destroy(all);
    return lag;
}

static unsigned long long count(const stream *s, counted what) {
    return atomic_load(&s->figures.records[what]);
}

void report_now_and_then(stream *s) {
    uint64_t now = now_ticks(), records = figures_records(&s->figures);
    pthread_mutex_lock(&saying);
    progress_show(atomic_load(&s->figures.bytes), 0, records, NULL);
    pthread_mutex_unlock(&saying);
    if (now - s->reported < EVERY)
        return;
    if (records != s->reported_records)
        say("%.0f records/s; so far %llu: %llu unique, %llu duplicates, %llu bad, %llu tombstones; lag %lld",
            (double)(records - s->reported_records) * 1e6 / (double)(now - s->reported), (unsigned long long)records,
            count(s, COUNT_UNIQUE), (unsigned long long)figures_duplicates(&s->figures),
            count(s, COUNT_DEAD_LETTERS) + count(s, COUNT_LEFT_OUT), count(s, COUNT_TOMBSTONES),
            (long long)lag_of(s, NULL));
    s->reported = now;
    s->reported_records = records;
}

static void print_count(const char *name, unsigned long long value) {
    printf(",\"%s\":%llu", name, value);
}

static void print_summary(stream *s, double seconds) {
    printf("{\"index\":");
    print_json(stdout, s->job->place, strlen(s->job->place));
    print_count("records", figures_records(&s->figures));
    print_count("bytes", atomic_load(&s->figures.bytes));
    print_count("unique", count(s, COUNT_UNIQUE));
    print_count("duplicates", figures_duplicates(&s->figures));
    print_count("byUrl", count(s, COUNT_BY_URL));
    print_count("byContent", count(s, COUNT_BY_CONTENT));
    print_count("byTitle", count(s, COUNT_BY_TITLE));
    print_count("deadLetters", count(s, COUNT_DEAD_LETTERS));
    print_count("leftOut", count(s, COUNT_LEFT_OUT));
    print_count("tombstones", count(s, COUNT_TOMBSTONES));
    print_count("transactions", atomic_load(&s->figures.transactions));
    print_count("aborted", atomic_load(&s->figures.aborted));
    printf(",\"seconds\":%.3f,\"engineSeconds\":%.3f,\"transactionSeconds\":%.3f}\n", seconds,
           (double)atomic_load(&s->figures.engine.sum) * 1e-6, (double)atomic_load(&s->figures.transaction.sum) * 1e-6);
}

int report_end(stream *s, int code) {
    double seconds = (double)(now_ticks() - s->figures.started) * 1e-6;
    uint64_t records = figures_records(&s->figures);
    progress_end();
    message("%llu records in %.1f s: %llu unique, %llu duplicates (%llu by URL, %llu by content, %llu by title), %llu "
            "dead letters, %llu left out, %llu tombstones",
            (unsigned long long)records, seconds, count(s, COUNT_UNIQUE),
            (unsigned long long)figures_duplicates(&s->figures), count(s, COUNT_BY_URL), count(s, COUNT_BY_CONTENT),
            count(s, COUNT_BY_TITLE), count(s, COUNT_DEAD_LETTERS), count(s, COUNT_LEFT_OUT),
            count(s, COUNT_TOMBSTONES));
    if (s->settings.json)
        print_summary(s, seconds);
    if (fflush(stdout) && code == EXIT_DONE)
        code = EXIT_STORE;
    return code;
}
