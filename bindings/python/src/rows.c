/* rows.c - rows of the caller's data, worked on by several threads (run_rows), and columns of texts (open_texts,
 * get_text, sketch_text).
 *
 * Threads take blocks of rows in order, so that when one fails, all rows before it have been given to some thread: the
 * row that is reported is the first that fails, however many threads there are. Texts are read where they stand. */
#include "sketches.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- rows, on several threads ---- */

doppel_status fail_row(row_job *job, uint64_t row, doppel_status status, const char *format, ...) {
    pthread_mutex_lock(&job->lock);
    if (row < atomic_load(&job->bad_row)) {
        doppel_error *error = &job->call.error;
        va_list arguments;
        *error = (doppel_error){.code = status};
        va_start(arguments, format);
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
        atomic_store(&job->bad_row, row);
    }
    pthread_mutex_unlock(&job->lock);
    return status;
}

static void *take_blocks(void *given) {
    row_job *job = given;
    void *state = NULL;
    doppel_status status = job->begin ? job->begin(job, &state) : DOPPEL_OK;
    if (status != DOPPEL_OK)
        fail_row(job, 0, status, "%s", doppel_status_name(status));
    while (status == DOPPEL_OK && !job->call.stop) {
        uint64_t first = atomic_fetch_add(&job->next, job->block);
        if (first >= job->count || first > atomic_load(&job->bad_row))
            break;
        uint64_t last = job->count - first < job->block ? job->count : first + job->block;
        status = job->run(job, state, first, last);
        atomic_fetch_add(&job->call.done, last - first);
    }
    if (job->end)
        job->end(job, state);
    return NULL;
}

/* Signals are for Python's own threads. */
static bool start_thread(pthread_t *thread, row_job *job) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int refused = pthread_create(thread, NULL, take_blocks, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !refused;
}

static doppel_status row_status(row_job *job) {
    if (atomic_load(&job->bad_row) != UINT64_MAX)
        return job->call.error.code;
    return job->call.stop ? DOPPEL_ERROR_INTERRUPTED : DOPPEL_OK;
}

/* The work of a long call. Where a thread cannot be started, the others do its share. */
static doppel_status run_threads(void *given) {
    row_job *job = given;
    size_t started = 0, wanted = (size_t)job->threads;
    pthread_t *threads = wanted > 1 ? calloc(wanted - 1, sizeof *threads) : NULL;
    atomic_store(&job->call.total, job->count);
    while (threads && started < wanted - 1 && start_thread(&threads[started], job))
        started++;
    take_blocks(job);
    while (started)
        pthread_join(threads[--started], NULL);
    free(threads);
    return row_status(job);
}

static int cpu_count(void) {
    cpu_set_t cpus;
    if (!sched_getaffinity(0, sizeof cpus, &cpus))
        return CPU_COUNT(&cpus);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* of a machine with more CPUs than a cpu_set_t has bits */
    return online > 0 ? (int)online : 1;
}

/* Blocks are small enough for the threads to end at about the same time, and for progress to be reported while long
 * texts are worked on; and large enough that taking the next one is rare. */
void plan_blocks(row_job *job) {
    enum { BLOCKS_A_THREAD = 256, LEAST_ROWS = 16, MOST_ROWS = 128, MOST_THREADS = 1024 };
    if (job->threads <= 0)
        job->threads = cpu_count();
    if (job->threads > MOST_THREADS)
        job->threads = MOST_THREADS;
    job->block = job->count / ((uint64_t)job->threads * BLOCKS_A_THREAD);
    job->block = job->block < LEAST_ROWS ? LEAST_ROWS : job->block > MOST_ROWS ? MOST_ROWS : job->block;
    uint64_t blocks = job->count / job->block + 1;
    if ((uint64_t)job->threads > blocks)
        job->threads = (int)blocks;
}

int run_rows(row_job *job) {
    doppel_status status;
    if (!job->block)
        plan_blocks(job);
    job->call.progress = job->progress;
    atomic_store(&job->next, 0);
    atomic_store(&job->bad_row, UINT64_MAX);
    pthread_mutex_init(&job->lock, NULL);
    if (job->small) {
        job->threads = 1;
        PyThreadState *thread = job->keep_gil ? NULL : PyEval_SaveThread();
        status = run_threads(job);
        if (thread)
            PyEval_RestoreThread(thread);
    } else {
        status = run_long_call(&job->call, run_threads, job);
    }
    pthread_mutex_destroy(&job->lock);
    if (status != DOPPEL_OK) {
        raise_error(status, &job->call.error, NULL);
        return -1;
    }
    return !job->small || report_progress(&job->call) ? 0 : -1;
}

/* ---- columns of the caller ---- */

static bool is_text(const struct ArrowSchema *schema) {
    static const char *const formats[] = {"u", "U", "vu", "z", "Z", "vz", "n"};
    const char *format = schema->dictionary ? schema->dictionary->format : schema->format;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(format, formats[i]))
            return true;
    return false;
}

int open_texts(text_column *texts, const data_input *data, const char *name, const char *argument) {
    int64_t child = 0;
    const struct ArrowSchema *schema = find_schema(data, name, &child);
    *texts = (text_column){.data = data, .argument = argument};
    if (!schema)
        return raise_no_column(data, NULL, name);
    if (!is_text(schema)) {
        PyErr_Format(PyExc_TypeError, "%s: expected a column of strings, not of the Arrow type \"%s\"", argument,
                     schema->dictionary ? schema->dictionary->format : schema->format);
        return -1;
    }
    texts->batch = calloc(data->batch_count + 1, sizeof *texts->batch);
    if (!texts->batch) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < data->batch_count; i++)
        if (data_column(data, i, name, argument, NULL, &texts->batch[i]) < 0)
            return -1;
    return 0;
}

void close_texts(text_column *texts) {
    free(texts->batch);
}

size_t find_batch(const data_input *data, uint64_t row) {
    size_t low = 0, high = data->batch_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (data->batches[middle].first <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void advance(const data_input *data, uint64_t row, size_t *batch) {
    while (row - data->batches[*batch].first >= (uint64_t)data->batches[*batch].array.length)
        ++*batch;
}

doppel_slice get_text(const text_column *texts, size_t batch, uint64_t row) {
    char room[DOPPEL_COLUMN_ROOM]; /* strings need none */
    return doppel_column_get(&texts->batch[batch], row - texts->data->batches[batch].first, room);
}

size_t count_bytes(const text_column *texts) {
    const data_input *data = texts->data;
    size_t bytes = 0;
    if (data->rows > 4096)
        return SIZE_MAX;
    for (size_t batch = 0; batch < data->batch_count; batch++)
        for (int64_t row = 0; row < data->batches[batch].array.length; row++)
            bytes += get_text(texts, batch, data->batches[batch].first + (uint64_t)row).length;
    return bytes;
}

/* A text is given to the sketcher in pieces of this size, some milliseconds each, so that a call ends soon when asked
 * to. */
#define PIECE ((size_t)4 << 20)

doppel_status sketch_text(row_job *job, doppel_sketcher *sketcher, doppel_slice text, doppel_sketch *sketch) {
    if (text.length <= PIECE)
        return doppel_sketcher_run(sketcher, text, sketch);
    doppel_status status = DOPPEL_OK;
    doppel_sketcher_reset(sketcher);
    for (size_t at = 0; at < text.length && status == DOPPEL_OK; at += PIECE) {
        size_t left = text.length - at;
        status = job->call.stop
                     ? DOPPEL_ERROR_INTERRUPTED
                     : doppel_sketcher_add(sketcher, (doppel_slice){text.data + at, left < PIECE ? left : PIECE});
    }
    return status == DOPPEL_OK ? doppel_sketcher_finish(sketcher, sketch) : status;
}
