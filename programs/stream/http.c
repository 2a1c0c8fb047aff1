/* http.c - GET /metrics, /healthz and /readyz of a worker, by libmicrohttpd: a thread a connection, as an index that is
 * away may let one of them wait. */
#include "stream/state.h"

#include "common/listen.h"
#include "common/message.h"
#include "common/metrics.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct http {
    struct MHD_Daemon *daemon;
    listening listening;
    pthread_mutex_t lock;
    doppel_engine_stats stats; /* as they were when the index last answered */
};

/* ---- what is shown ---- */

static void write_records(text *out, const figures *f) {
    static const char *const names[COUNTED] = {"unique",      "exact_url", "content_hash", "title_similarity",
                                               "dead_letter", "left_out",  "tombstone"};
    metrics_head(out, "stream_records_total", "counter", "Records that were committed, by what they were.");
    for (int i = 0; i < COUNTED; i++)
        text_format(out, "doppel_stream_records_total{outcome=\"%s\"} %llu\n", names[i],
                    (unsigned long long)atomic_load(&f->records[i]));
}

static void write_figures(text *out, stream *s) {
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
    times_write(out, &f->latency, "stream_latency_seconds", "From the time of a record to its commit.");
    times_write(out, &f->transaction, "stream_transaction_duration_seconds", "Transactions.");
    times_write(out, &f->engine, "stream_engine_duration_seconds", "Adds and removes of a transaction.");
    metrics_head(out, "stream_lag", "gauge", "Records of a partition that are not committed yet.");
    lag_of(s, out);
}

/* Calls that wait for the index or the brokers say so only in the end; a part that takes so long waits for them. */
static bool is_away(stream *s) {
    enum { LONG = 5000000 }; /* microseconds */
    uint64_t since = atomic_load(&s->since);
    return atomic_load(&s->away) || (since && now_ticks() - since > LONG);
}

static void write_metrics(text *out, stream *s) {
    engine_figures engine = {.name = "default"};
    doppel_engine_stats *last = &s->http->stats;
    metrics_process(out);
    metrics_single(out, "uptime_seconds", "gauge", "Since the worker was started.",
                   (double)(now_ticks() - s->figures.started) * 1e-6);
    write_figures(out, s);
    bool away = is_away(s);
    if (!away)
        doppel_engine_get_stats(s->job->engine, &engine.stats);
    pthread_mutex_lock(&s->http->lock);
    if (!away)
        *last = engine.stats;
    engine.stats = *last;
    pthread_mutex_unlock(&s->http->lock);
    metrics_engines(out, &engine, 1);
}

/* ---- answers ---- */

static enum MHD_Result answer(struct MHD_Connection *to, unsigned status, const char *type, text *body) {
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
    text body = {0};
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
        bool away = is_away(s), ready = atomic_load(&s->joined) && !away;
        text_format(&body, "{\"status\":\"%s\"}\n",
                    ready  ? "ready"
                    : away ? "the index or the brokers do not answer"
                           : "no partitions yet");
        return answer(from, ready ? 200 : 503, "application/json", &body);
    }
    text_put(&body,
             "{\"title\":\"Not found\",\"status\":404,\"detail\":\"there are /metrics, /healthz and /readyz\"}\n");
    return answer(from, 404, "application/problem+json", &body);
}

bool http_start(stream *s) {
    enum { CONNECTIONS = 64, TIMEOUT = 30 };
    if (!s->settings.listen)
        return true;
    s->http = calloc(1, sizeof *s->http);
    if (s->http)
        pthread_mutex_init(&s->http->lock, NULL);
    if (!s->http || !listen_open(&s->http->listening, s->settings.listen))
        return false;
    s->http->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC, 0,
                                       NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, s->http->listening.socket,
                                       MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
                                       MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT, MHD_OPTION_END);
    if (s->http->daemon)
        say("listening on http://%s", s->http->listening.where);
    else
        say("cannot serve on %s", s->http->listening.where);
    return s->http->daemon;
}

void http_stop(stream *s) {
    if (s->http && s->http->daemon)
        MHD_stop_daemon(s->http->daemon);
    else if (s->http && s->http->listening.socket > 0)
        close(s->http->listening.socket);
    free(s->http);
    s->http = NULL;
}
