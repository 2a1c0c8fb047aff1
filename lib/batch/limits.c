/* limits.c - what one run has room for: documents, whose numbers have 32 bits, and memory.
 *
 * The columns of documents must be in memory; threads, buffers and caches use the rest. A run that will exceed either
 * limit gives a warning as soon as the size of its inputs and of its first records shows it (dp_limit_watch_begin), and
 * ends when it does (dp_limits_check). */
#include "batch/batch.h"

#include <stdio.h>

/* Memory that a thread reads and sketches with, about. */
#define THREAD_MEMORY ((uint64_t)16 << 20)

/* What a run of few documents takes, whatever the limit: one thread, and the keys of DP_ROW_BLOCK rows. */
#define LEAST_MEMORY ((uint64_t)32 << 20)

/* Documents between two checks of the memory. */
enum { MEMORY_STEP = 1 << 14 };

size_t dp_threads_within(size_t threads, uint64_t memory) {
    uint64_t most = memory / THREAD_MEMORY;
    if (!memory || threads <= most)
        return threads;
    return most ? (size_t)most : 1;
}

/* Bytes that a document takes at least, all stages considered: its columns, its hash among ids or (later) its place in
 * candidates and components, its place among the firsts of their kind, and its row. */
static uint64_t bytes_of_document(const dp_batch_settings *s) {
    uint64_t bytes = sizeof(dp_doc) + 32;
    bytes += s->scope.kind ? sizeof(uint64_t) : 0;
    bytes += s->by & DOPPEL_BY_URL ? sizeof(uint64_t[2]) + 8 : 0;
    bytes += s->by & DOPPEL_BY_TITLE ? sizeof(dp_title) + 8 : 0;
    bytes += s->keep.count ? s->keep.count * sizeof(double) + 8 : 0;
    return bytes;
}

uint64_t dp_memory_left(const doppel_batch *batch) {
    const dp_batch_settings *s = &batch->settings;
    uint64_t memory = dp_settings_memory(s), taken = batch->documents.count * bytes_of_document(s);
    return memory > taken && memory - taken > memory / 16 ? memory - taken : memory / 16;
}

/* The memory that a number of documents needs at least, in whole MiB. */
static uint64_t least_memory(const dp_batch_settings *s, uint64_t documents) {
    uint64_t columns = documents * bytes_of_document(s);
    return columns > LEAST_MEMORY ? (columns - LEAST_MEMORY) / (1 << 20) + 1 : 0;
}

static bool exceeds_memory(const dp_batch_settings *s, uint64_t documents) {
    return s->options.memory && least_memory(s, documents) << 20 > s->options.memory;
}

doppel_status dp_limits_check(const doppel_batch *batch, doppel_error *error) {
    const dp_batch_settings *s = &batch->settings;
    uint64_t count = batch->documents.count;
    if (count >= s->most_documents)
        return dp_fail(error, DOPPEL_ERROR_INPUT,
                       "more than %llu documents, the limit of one run: deduplicate parts of the input separately, "
                       "then the kept documents together",
                       (unsigned long long)s->most_documents);
    if (count % MEMORY_STEP == 0 && exceeds_memory(s, count))
        return dp_fail(error, DOPPEL_ERROR_MEMORY,
                       "%llu documents do not fit into the memory limit: they need at least %llu "
                       "MiB, and there are more",
                       (unsigned long long)count, (unsigned long long)least_memory(s, count));
    return DOPPEL_OK;
}

/* ---- warnings, by the first records ---- */

static void warn(const doppel_batch *batch, const char *format, uint64_t documents, uint64_t number) {
    const doppel_batch_options *o = &batch->settings.options;
    char text[256];
    snprintf(text, sizeof text, format, (unsigned long long)documents, (unsigned long long)number);
    o->warn(text, o->user);
}

/* Warns where a limit will be exceeded; whether it did. */
static bool warn_of_limits(const doppel_batch *batch, uint64_t documents) {
    const dp_batch_settings *s = &batch->settings;
    if (documents > s->most_documents)
        warn(batch,
             "judging by its first records, the input has about %llu documents, and the limit of one run is %llu: "
             "deduplicate parts of it separately, then the kept documents together",
             documents, s->most_documents);
    else if (exceeds_memory(s, documents))
        warn(batch,
             "judging by its first records, the input has about %llu documents, which need at least %llu MiB of "
             "memory",
             documents, least_memory(s, documents));
    else
        return false;
    return true;
}

/* Bytes are counted as they are read, documents as they are taken, somewhat later: at first, the input seems to have
 * fewer of them than it has. */
static void on_progress(uint64_t bytes, uint64_t total, uint64_t documents, void *user) {
    dp_limit_watch *w = user;
    if (w->given->progress)
        w->given->progress(bytes, total, documents, w->given->user);
    if (!w->warned && bytes && total && w->batch->settings.options.warn)
        w->warned = warn_of_limits(w->batch, w->before + (uint64_t)((double)total / (double)bytes * (double)documents));
}

static void on_bad(const doppel_error *what, void *user) {
    const dp_limit_watch *w = user;
    w->given->bad(what, w->given->user);
}

static void on_unseen(const char *key, void *user) {
    const dp_limit_watch *w = user;
    w->given->unseen(key, w->given->user);
}

doppel_input_options dp_limit_watch_begin(dp_limit_watch *watch, const doppel_batch *batch,
                                          const doppel_input_options *given) {
    doppel_input_options watched = *given;
    *watch = (dp_limit_watch){.batch = batch, .given = given, .before = batch->documents.count};
    watched.progress = on_progress;
    watched.bad = given->bad ? on_bad : NULL;
    watched.unseen = given->unseen ? on_unseen : NULL;
    watched.user = watch;
    return watched;
}
