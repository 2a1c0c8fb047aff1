/* service.c - the service as a whole: opened, reloaded, closed. */
#include "server/service.h"

#include "common/args.h"
#include "common/message.h"

enum {
    ADDERS = 2,        /* while one waits for the disk, the other gathers */
    STORE_WORKERS = 16 /* at least, when they wait for a store rather than for a CPU */
};

int service_open(service *s, const service_options *options) {
    *s = (service){.options = *options};
    s->metrics.started = now_microseconds();
    pthread_mutex_init(&s->log_lock, NULL);
    tokens_init(&s->tokens);
    bool memory = limits_open(&s->limits, (double)options->rate);
    memory = idempotency_open(&s->idempotency) && memory;
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
        workers_open(&s->adders, ADDERS, WORKERS_MOST, work_on_adds))
        return EXIT_DONE;
    message("no memory, or no threads");
    return EXIT_STORE;
}

void service_close(service *s) {
    workers_close(&s->workers);
    workers_close(&s->adders);
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

void service_complain(service *s, doppel_status status, const doppel_error *error) {
    (void)s;
    if (error && error->message[0])
        message_error(error);
    else
        message("%s", doppel_status_name(status));
}
