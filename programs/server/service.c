/* service.c - the service as a whole: its threads, its access log, its metrics; opened, reloaded, closed. */
#include "server/service.h"

#include "common/args.h"
#include "common/message.h"
#include "common/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- threads that work on requests ---- */

/* Takes the first request, and those after it that are of the same index where several are wanted. */
static size_t take_requests(workers *w, request **list) {
    size_t count = 0;
    request **at = &w->first, *last = NULL;
    index_entry *index = w->first ? w->first->index : NULL;
    while (*at && count < w->most) {
        request *r = *at;
        if (r->index == index) {
            list[count++] = r;
            *at = r->next;
        } else {
            last = r;
            at = &r->next;
        }
    }
    if (!*at)
        w->last = last;
    return count;
}

static void *run_worker(void *user) {
    workers *w = user;
    request *list[WORKERS_MOST];
    for (;;) {
        pthread_mutex_lock(&w->lock);
        while (!w->first && !w->stop)
            pthread_cond_wait(&w->more, &w->lock);
        size_t count = take_requests(w, list);
        pthread_mutex_unlock(&w->lock);
        if (!count)
            return NULL;
        w->work(list, count);
    }
}

/* False: no memory, or no threads. Close it in any case. */
static bool workers_open(workers *w, int threads, size_t most, void (*work)(struct request **list, size_t count)) {
    *w = (workers){.most = most < WORKERS_MOST ? most : WORKERS_MOST, .work = work};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    w->threads = calloc((size_t)threads, sizeof *w->threads);
    while (w->threads && w->count < threads && !pthread_create(&w->threads[w->count], NULL, run_worker, w))
        w->count++;
    return w->count == threads;
}

/* Finishes the queue first. */
static void workers_close(workers *w) {
    if (!w->work)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->count; i++)
        pthread_join(w->threads[i], NULL);
    free(w->threads);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->more);
    *w = (workers){0};
}

void workers_add(workers *w, request *r) {
    pthread_mutex_lock(&w->lock);
    r->next = NULL;
    if (w->first)
        w->last->next = r;
    else
        w->first = r;
    w->last = r;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}

/* ---- the access log ----
 *
 * One JSON line per request: client, route, status, duration. Routes are named as in the table, so that neither ids nor
 * texts of documents get into the log. */

static bool access_log_open(service *s) {
    const char *path = s->options.access_log;
    if (!path)
        return true;
    FILE *file = strcmp(path, "-") != 0 ? fopen(path, "ae") : stdout;
    if (!file) {
        message("%s: cannot open the access log: %s", path, strerror(errno));
        return false;
    }
    setvbuf(file, NULL, _IOLBF, 1 << 14);
    pthread_mutex_lock(&s->log_lock);
    FILE *old = s->access_log;
    s->access_log = file;
    pthread_mutex_unlock(&s->log_lock);
    if (old && old != stdout)
        fclose(old);
    return true;
}

static void access_log_close(service *s) {
    if (s->access_log && s->access_log != stdout)
        fclose(s->access_log);
    s->access_log = NULL;
}

static void write_when(text_buffer *out) {
    struct timespec now;
    char date[DATE_ROOM];
    clock_gettime(CLOCK_REALTIME, &now);
    text_format(out, "{\"time\":\"%.19s.%03dZ\"", format_date((uint64_t)now.tv_sec, date),
                (int)(now.tv_nsec / 1000000));
}

void access_log_write(service *s, const request *r, uint64_t microseconds) {
    text_buffer out = {0};
    if (!s->options.access_log)
        return;
    write_when(&out);
    text_member_string(&out, "client", doppel_slice_of(r->client));
    if (r->token[0])
        text_member_string(&out, "token", doppel_slice_of(r->token));
    text_member_string(&out, "method", doppel_slice_of(r->route ? r->route->method : NULL));
    text_member_string(&out, "route", doppel_slice_of(r->route ? r->route->path : NULL));
    if (r->index)
        text_member_string(&out, "index", doppel_slice_of(r->index->name));
    text_member_count(&out, "status", (uint64_t)r->status);
    text_member_count(&out, "received", r->received);
    text_member_count(&out, "sent", r->sent);
    text_member_count(&out, "microseconds", microseconds);
    text_put(&out, "}\n");
    pthread_mutex_lock(&s->log_lock);
    if (s->access_log && !out.failed)
        fwrite(out.data, 1, out.length, s->access_log);
    pthread_mutex_unlock(&s->log_lock);
    text_free(&out);
}

/* ---- GET /metrics, in the text form of Prometheus ---- */

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

static void write_requests(text_buffer *out, metrics *m) {
    metrics_head(out, "http_requests_total", "counter", "Requests that were answered.");
    for (size_t i = 0; i < METRIC_ROUTES; i++)
        for (size_t k = 0; k < METRIC_STATUSES; k++) {
            uint64_t count = atomic_load(&m->requests[i][k]);
            if (count)
                text_format(out, "doppel_http_requests_total{method=\"%s\",route=\"%s\",status=\"%d\"} %llu\n",
                            method_of(i), path_of(i), statuses[k], (unsigned long long)count);
        }
}

static void write_latency(text_buffer *out, metrics *m, size_t i) {
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

static void write_latencies(text_buffer *out, metrics *m) {
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

static void write_server(text_buffer *out, service *s) {
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

/* Of the indexes whose store may be unreachable. */
static void write_stores(text_buffer *out, index_entry *const *list, size_t count) {
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

static void write_indexes(text_buffer *out, service *s) {
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
        indexes_release(&s->indexes, list[i]);
}

void handle_metrics(request *r) {
    write_server(&r->answer, r->service);
    write_requests(&r->answer, &r->service->metrics);
    write_latencies(&r->answer, &r->service->metrics);
    write_indexes(&r->answer, r->service);
    request_answer(r, 200);
}

/* ---- the histories of indexes ---- */

static void update_histories(indexes *all) {
    index_entry *entry;
    for (size_t i = 0; (entry = indexes_at(all, i)); i++) {
        index_history_update(entry, true);
        indexes_release(all, entry);
    }
}

static void *update_histories_each_minute(void *user) {
    service *s = user;
    history_thread *k = &s->histories;
    pthread_mutex_lock(&k->lock);
    while (!k->stop) {
        const struct timespec minute_end = {.tv_sec = (time(NULL) / 60 + 1) * 60};
        pthread_cond_timedwait(&k->end, &k->lock, &minute_end);
        if (k->stop)
            break;
        pthread_mutex_unlock(&k->lock);
        update_histories(&s->indexes);
        pthread_mutex_lock(&k->lock);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

static bool start_history_thread(service *s) {
    history_thread *k = &s->histories;
    k->running = !pthread_create(&k->thread, NULL, update_histories_each_minute, s);
    return k->running;
}

static void stop_history_thread(history_thread *k) {
    pthread_mutex_lock(&k->lock);
    k->stop = true;
    pthread_cond_signal(&k->end);
    pthread_mutex_unlock(&k->lock);
    if (k->running)
        pthread_join(k->thread, NULL);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->end);
}

/* ---- opened, reloaded, closed ---- */

enum {
    ADDERS = 2,        /* while one waits for the disk, the other collects adds */
    STORE_WORKERS = 16 /* at least, when they wait for a store rather than for a CPU */
};

int service_open(service *s, const service_options *options) {
    *s = (service){.options = *options};
    s->metrics.started = now_microseconds();
    pthread_mutex_init(&s->log_lock, NULL);
    pthread_mutex_init(&s->histories.lock, NULL);
    pthread_cond_init(&s->histories.end, NULL);
    tokens_init(&s->tokens);
    runs_open(&s->runs, s);
    bool memory = limits_open(&s->limits, (double)options->rate);
    memory = idempotency_open(&s->idempotency) && memory;
    if (options->backups && mkdir(options->backups, 0700) && errno != EEXIST) {
        message("%s: cannot make the folder for backups: %s", options->backups, strerror(errno));
        return EXIT_STORE;
    }
    int code = indexes_open(&s->indexes, &options->first, options->indexes);
    if (code != EXIT_DONE)
        return code;
    if (options->tokens && !tokens_load(&s->tokens, options->tokens))
        return EXIT_USAGE;
    if (!access_log_open(s))
        return EXIT_STORE;
    int threads = options->threads < 2 ? 2 : options->threads; /* one may wait until an index is free to be dropped */
    if (indexes_connect(&s->indexes) && threads < STORE_WORKERS)
        threads = STORE_WORKERS;
    if (memory && workers_open(&s->workers, threads, 1, work_on) &&
        workers_open(&s->adders, ADDERS, WORKERS_MOST, work_on_adds) && workers_open(&s->makers, 1, 1, work_on) &&
        start_history_thread(s))
        return EXIT_DONE;
    message("no memory, or no threads");
    return EXIT_STORE;
}

void service_close(service *s) {
    workers_close(&s->workers);
    workers_close(&s->adders);
    workers_close(&s->makers);
    runs_close(&s->runs);
    stop_history_thread(&s->histories);
    indexes_close(&s->indexes);
    tokens_free(&s->tokens);
    limits_close(&s->limits);
    idempotency_close(&s->idempotency);
    access_log_close(s);
    pthread_mutex_destroy(&s->log_lock);
}

void service_reload(service *s) {
    if (s->options.tokens && tokens_load(&s->tokens, s->options.tokens))
        message("%s: %zu tokens", s->options.tokens, s->tokens.count);
    access_log_open(s);
}

void service_complain(doppel_status status, const doppel_error *error) {
    if (error && error->message[0])
        message_error(error);
    else
        message("%s", doppel_status_name(status));
}
