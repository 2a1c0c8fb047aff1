/* stream.c - doppel stream from its options to its end. */
#include "stream/stream.h"

#include "common/message.h"
#include "common/progress.h"
#include "stream/worker.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

volatile sig_atomic_t stream_stop;

/* The first signal lets it finish what it has begun; a second one ends it at once, as a crash would, which only costs
 * work that is repeated. */
static doppel_engine *volatile stopping; /* whose calls stop waiting then */

static void on_signal(int number) {
    (void)number;
    if (stream_stop)
        _exit(EXIT_INTERRUPTED);
    stream_stop = 1;
    doppel_engine_stop_waiting(stopping);
}

static void catch_signals(doppel_engine *engine) {
    stopping = engine;
    struct sigaction stop = {.sa_handler = on_signal};
    sigemptyset(&stop.sa_mask);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
}

/* One batch that is being gathered, one that waits and one that the worker has. */
static bool make_batches(stream *s) {
    for (int i = 0; i < 3; i++) {
        batch *b = stream_batch_create(s->settings.batch);
        if (!b)
            return false;
        b->next = s->spare;
        s->spare = b;
    }
    s->gathering = s->spare;
    s->spare = s->spare->next;
    return true;
}

static void free_batches(stream *s) {
    stream_batch_free(s->gathering);
    stream_batch_free(s->queued);
    for (batch *b = s->spare, *next; b; b = next) {
        next = b->next;
        stream_batch_free(b);
    }
    s->gathering = s->queued = s->spare = NULL;
}

static int run(stream *s) {
    int code = http_start(s);
    if (code == EXIT_DONE)
        code = clients_open(s);
    if (code != EXIT_DONE)
        return code;
    if (!worker_start(s))
        return EXIT_STORE;
    if (isatty(STDERR_FILENO)) /* elsewhere there are reports */
        progress_begin("working");
    code = consume_run(s);
    worker_stop(s);
    if (s->consumer && code == EXIT_DONE)
        message("stopping");
    return code;
}

static stream *create(const stream_job *job) {
    stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->job = job;
    s->figures.started = s->reported = now_microseconds();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->positions = rd_kafka_topic_partition_list_new(8);
    return s;
}

static void destroy(stream *s) {
    http_stop(s);
    if (s->gathering)
        stream_batch_clear(s->gathering);
    clients_close(s);
    free_batches(s);
    rd_kafka_topic_partition_list_destroy(s->positions);
    if (s->generation)
        rd_kafka_consumer_group_metadata_destroy(s->generation);
    if (s->ends)
        rd_kafka_topic_partition_list_destroy(s->ends);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free_refused(s);
    free(s->reached);
    stream_settings_free(&s->settings);
    free(s);
}

int stream_run(const stream_job *job) {
    stream *s = create(job);
    int code = EXIT_STORE;
    if (!s) {
        message("no memory");
        return EXIT_STORE;
    }
    catch_signals(job->engine);
    if (job->input.stop && *job->input.stop) { /* a signal came before */
        stream_stop = 1;
        doppel_engine_stop_waiting(job->engine);
    }
    if (!stream_settings_read(&s->settings, job->args)) {
        code = EXIT_USAGE;
    } else if (!make_batches(s)) {
        message("no memory for batches of %zu records", s->settings.batch);
    } else {
        reading_open(&s->reading, &job->input, s->settings.max_record);
        code = run(s);
        if (code == EXIT_DONE && s->settings.until_end && job->input.refuse_bad &&
            2 * atomic_load(&s->records_without) > atomic_load(&s->records)) {
            message("more than half of the records are bad, or have no text; --allow-bad accepts that");
            code = EXIT_INPUT;
        }
        code = code == EXIT_USAGE ? code : report_end(s, code);
    }
    destroy(s);
    stopping = NULL;
    return code;
}
