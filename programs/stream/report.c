/* report.c - what the worker reports: a line now and then, the summary at its end, and over HTTP (GET /metrics,
 * /healthz, /readyz), with a thread per connection, as /readyz waits for brokers that do not answer. */
#include "common/listen.h"
#include "common/message.h"
#include "common/metrics.h"
#include "common/progress.h"
#include "common/store_watch.h"
#include "stream/worker.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVERY 10000000 /* microseconds between two lines */

void on_kafka_log(const rd_kafka_t *client, int level, const char *part, const char *line) {
    enum { NOTICE = 5, DEBUG = 7 }; /* as syslog(3) has them */
    (void)client;
    /* Of properties given for both clients, each knows only some. */
    if ((level <= NOTICE || level == DEBUG) && strcmp(part, "CONFWARN") != 0)
        message("kafka: %s: %s", part, line);
}

/* of all partitions, each written to `out` if it is not NULL */
static int64_t lag_of(stream *s, text_buffer *out) {
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
    uint64_t now = now_microseconds(), records = figures_records(&s->figures);
    progress_show(atomic_load(&s->figures.bytes), 0, records, NULL);
    if (now - s->reported < EVERY)
        return;
    if (records != s->reported_records)
        message("%.0f records/s; so far %llu: %llu unique, %llu duplicates, %llu bad, %llu tombstones; lag %lld",
                (double)(records - s->reported_records) * 1e6 / (double)(now - s->reported),
                (unsigned long long)records, count(s, COUNT_UNIQUE),
                (unsigned long long)figures_duplicates(&s->figures),
                count(s, COUNT_DEAD_LETTERS) + count(s, COUNT_LEFT_OUT), count(s, COUNT_TOMBSTONES),
                (long long)lag_of(s, NULL));
    s->reported = now;
    s->reported_records = records;
}

static void print_summary(stream *s, double seconds) {
    const figures *f = &s->figures;
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "index", doppel_slice_of(s->job->place));
    text_member_count(&out, "records", figures_records(f));
    text_member_count(&out, "bytes", atomic_load(&f->bytes));
    text_member_count(&out, "unique", count(s, COUNT_UNIQUE));
    text_member_count(&out, "duplicates", figures_duplicates(f));
    text_member_count(&out, "byUrl", count(s, COUNT_BY_URL));
    text_member_count(&out, "byContent", count(s, COUNT_BY_CONTENT));
    text_member_count(&out, "byTitle", count(s, COUNT_BY_TITLE));
    text_member_count(&out, "deadLetters", count(s, COUNT_DEAD_LETTERS));
    text_member_count(&out, "leftOut", count(s, COUNT_LEFT_OUT));
    text_member_count(&out, "tombstones", count(s, COUNT_TOMBSTONES));
    text_member_count(&out, "transactions", atomic_load(&f->transactions));
    text_member_count(&out, "aborted", atomic_load(&f->aborted));
    text_format(&out, ",\"seconds\":%.3f,\"engineSeconds\":%.3f,\"transactionSeconds\":%.3f}\n", seconds,
                (double)atomic_load(&f->engine.sum) * 1e-6, (double)atomic_load(&f->transaction.sum) * 1e-6);
    if (out.failed)
        message("no memory for the summary");
    else
        fwrite(out.data, 1, out.length, stdout);
    text_free(&out);
}

int report_end(stream *s, int code) {
    double seconds = (double)(now_microseconds() - s->figures.started) * 1e-6;
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

struct http {
    struct MHD_Daemon *daemon;
    listening listening;
    store_watch watch; /* of the index */
};

/* ---- what is shown ---- */

static void write_records(text_buffer *out, const figures *f) {
    const char *const names[COUNTED] = {
        [COUNT_UNIQUE] = "unique",
        [COUNT_BY_URL] = doppel_reason_name(DOPPEL_REASON_URL),
        [COUNT_BY_CONTENT] = doppel_reason_name(DOPPEL_REASON_CONTENT),
        [COUNT_BY_TITLE] = doppel_reason_name(DOPPEL_REASON_TITLE),
        [COUNT_DEAD_LETTERS] = "dead_letter",
        [COUNT_LEFT_OUT] = "left_out",
        [COUNT_TOMBSTONES] = "tombstone",
    };
    metrics_head(out, "stream_records_total", "counter", "Records that were committed, by what they were.");
    for (int i = 0; i < COUNTED; i++)
        text_format(out, "doppel_stream_records_total{outcome=\"%s\"} %llu\n", names[i],
                    (unsigned long long)atomic_load(&f->records[i]));
}

static void write_figures(text_buffer *out, stream *s) {
    figures *f = &s->figures;
    write_records(out, f);
    metrics_single(out, "stream_bytes_total", "counter", "Bytes of their values.", (double)atomic_load(&f->bytes));
    metrics_single(out, "stream_transactions_total", "counter", "Transactions that were committed.",
                   (double)atomic_load(&f->transactions));
    metrics_single(out, "stream_aborted_total", "counter", "Transactions that were taken back.",
                   (double)atomic_load(&f->aborted));
    metrics_single(out, "stream_rebalances_total", "counter", "Times that partitions came or went.",
                   (double)atomic_load(&f->rebalances));
    metrics_single(out, "stream_retries_total", "counter", "Times that the index was asked again.",
                   (double)atomic_load(&f->retries));
    metrics_single(out, "stream_damaged_total", "counter",
                   "Records that became dead letters because the index is damaged where they belong.",
                   (double)atomic_load(&f->damaged));
    times_write(out, &f->latency, "stream_latency_seconds", "From the time of a record to its commit.");
    times_write(out, &f->transaction, "stream_transaction_duration_seconds", "Transactions.");
    times_write(out, &f->engine, "stream_engine_duration_seconds", "Adds and removes of a transaction.");
    metrics_head(out, "stream_lag", "gauge", "Records of a partition that are not committed yet.");
    lag_of(s, out);
}

/* The statistics of the index, without waiting for it. */
static void write_index(text_buffer *out, stream *s) {
    engine_figures engine = {.name = "default"};
    watch_stats(&s->http->watch, &engine.stats);
    metrics_engines(out, &engine, 1);
    if (!s->job->needs.connects)
        return;
    metrics_head(out, "store_up", "gauge", "Whether the shared store of the index answers.");
    text_format(out, "doppel_store_up{index=\"%s\"} %d\n", engine.name, !watch_is_away(&s->http->watch));
}

static void write_metrics(text_buffer *out, stream *s) {
    metrics_process(out);
    metrics_single(out, "uptime_seconds", "gauge", "Since the worker was started.",
                   (double)(now_microseconds() - s->figures.started) * 1e-6);
    write_figures(out, s);
    write_index(out, s);
}

/* ---- whether it works ---- */

/* Calls that wait for the index or the brokers report it only when they return; a part that takes this long waits for
 * them. */
static bool is_stuck(stream *s) {
    enum { LONG = 5000000 }; /* microseconds */
    uint64_t since = atomic_load(&s->since);
    return atomic_load(&s->away) || (since && now_microseconds() - since > LONG);
}

/* Asks the brokers, since an idle worker does not notice. */
static bool brokers_answer(stream *s) {
    enum { PATIENCE = 2000 }; /* milliseconds */
    const struct rd_kafka_metadata *found = NULL;
    if (rd_kafka_metadata(s->consumer, 0, NULL, &found, PATIENCE) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    rd_kafka_metadata_destroy(found);
    return true;
}

/* NULL: it is ready. */
static const char *why_not_ready(stream *s) {
    if (watch_is_away(&s->http->watch))
        return "the store does not answer";
    if (is_stuck(s))
        return "the index or the brokers do not answer";
    if (!atomic_load(&s->joined))
        return "no partitions yet";
    return brokers_answer(s) ? NULL : "the brokers do not answer";
}

/* ---- answers ---- */

static enum MHD_Result answer(struct MHD_Connection *to, unsigned status, const char *type, text_buffer *body) {
    struct MHD_Response *response =
        body->failed ? NULL : MHD_create_response_from_buffer(body->length, body->data, MHD_RESPMEM_MUST_COPY);
    text_free(body);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result queued = MHD_queue_response(to, status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *from, const char *path, const char *method,
                                  const char *version, const char *bytes, size_t *length, void **state) {
    stream *s = user;
    text_buffer body = {0};
    (void)version, (void)bytes, (void)state;
    if (*length)
        return MHD_NO;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        text_put(&body, "{\"title\":\"Method not allowed\",\"status\":405}\n");
        return answer(from, 405, "application/problem+json", &body);
    }
    if (!strcmp(path, "/metrics")) {
        write_metrics(&body, s);
        return answer(from, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
    }
    if (!strcmp(path, "/healthz")) {
        text_put(&body, "{\"status\":\"ok\"}\n");
        return answer(from, 200, "application/json", &body);
    }
    if (!strcmp(path, "/readyz")) {
        const char *why = why_not_ready(s);
        text_format(&body, "{\"status\":\"%s\"}\n", why ? why : "ready");
        return answer(from, why ? 503 : 200, "application/json", &body);
    }
    text_put(&body,
             "{\"title\":\"Not found\",\"status\":404,\"detail\":\"the paths are /metrics, /healthz and /readyz\"}\n");
    return answer(from, 404, "application/problem+json", &body);
}

int http_start(stream *s) {
    enum { CONNECTIONS = 64, TIMEOUT = 30 };
    if (!s->settings.listen)
        return EXIT_DONE;
    s->http = calloc(1, sizeof *s->http);
    int code = s->http ? listen_open(&s->http->listening, s->settings.listen) : EXIT_STORE;
    if (code != EXIT_DONE)
        return code;
    if (!watch_open(&s->http->watch, s->job->engine, &s->job->needs, "pages wait")) {
        message("no threads to watch the store");
        return EXIT_STORE;
    }
    s->http->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC, 0,
                                       NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, s->http->listening.socket,
                                       MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
                                       MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT, MHD_OPTION_END);
    if (s->http->daemon)
        message("listening on http://%s", s->http->listening.where);
    else
        message("cannot serve on %s", s->http->listening.where);
    return s->http->daemon ? EXIT_DONE : EXIT_STORE;
}

void http_stop(stream *s) {
    if (s->http && s->http->daemon)
        MHD_stop_daemon(s->http->daemon);
    else if (s->http && s->http->listening.socket > 0)
        close(s->http->listening.socket);
    if (s->http)
        watch_close(&s->http->watch);
    free(s->http);
    s->http = NULL;
}
