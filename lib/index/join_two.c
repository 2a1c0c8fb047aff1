/* join_two.c - doppel_join_two: one set is held, the other is streamed past it.
 *
 * The held side becomes tables (held.c) and a sieve (sieve.c). Threads take batches of the stream in turn, sift and
 * look up each on their own, and give the pairs out in the order of the stream (two_emit.c). */
#include "index/two.h"

#include <stdlib.h>

/* How much of a stream of unknown length is read to see whether it is short: so many fingerprints, or what an eighth of
 * the memory holds. */
#define AHEAD ((uint64_t)1 << 20)
#define LEAST_AHEAD ((uint64_t)1 << 12)
/* A stream that goes on behind that is taken to be this long: its sieve pays from about there on. */
#define LONG_STREAM ((uint64_t)1 << 26)
/* Pairs a batch keeps before it waits for its turn: 1.5 MiB. */
#define MOST_PAIRS 65536

static size_t item_size(const dp_two *two) {
    return two->held.words * sizeof(uint64_t);
}

/* ---- reading ---- */

/* The next of the stream, at most `room`, into worker->room or where they stand; *count is 0 at the end. */
static doppel_status read_next(dp_two_worker *worker, size_t room, const uint64_t **got, size_t *count,
                               doppel_error *error) {
    dp_two *two = worker->two;
    size_t left = two->ahead_count - two->ahead_used;
    *count = room;
    if (!left)
        return dp_feed_next(&two->stream, worker->room, count, got, error);
    *count = left < room ? left : room;
    *got = two->ahead + two->ahead_used * two->held.words;
    two->ahead_used += *count;
    return DOPPEL_OK;
}

/* Adds fingerprints to the batch. */
static void load(dp_two_worker *worker, const uint64_t *values, size_t count) {
    dp_sifter *sifter = &worker->sifter;
    const dp_held *held = &worker->two->held;
    dp_order_apply_many(&held->order, values, count, sifter->values + sifter->count * held->words);
    dp_sifter_added(sifter, count);
}

/* Loads a batch from what can only be read in turn; under `reading`. */
static doppel_status load_in_turn(dp_two_worker *worker, doppel_error *error) {
    size_t batch = worker->two->sieve.batch, count = 1;
    doppel_status status = DOPPEL_OK;
    while (status == DOPPEL_OK && count && worker->sifter.count < batch) {
        size_t room = batch - worker->sifter.count;
        const uint64_t *got;
        if (dp_stopped(worker->two->options.stop))
            return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        status = read_next(worker, room < DP_FEED_BATCH ? room : DP_FEED_BATCH, &got, &count, error);
        if (status == DOPPEL_OK && count)
            load(worker, got, count);
    }
    return status;
}

/* Loads `count` fingerprints of what can be read anywhere. */
static doppel_status load_anywhere(dp_two_worker *worker, size_t count, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    while (status == DOPPEL_OK && worker->sifter.count < count) {
        size_t left = count - worker->sifter.count, piece = left < DP_FEED_BATCH ? left : DP_FEED_BATCH;
        const uint64_t *got;
        dp_feed_part part = {worker->first + worker->sifter.count, piece};
        status = dp_feed_read(&worker->two->stream, part, worker->room, &got, error);
        if (status == DOPPEL_OK)
            load(worker, got, piece);
    }
    return status;
}

/* Takes the next batch, and if it can only be read in turn, reads it; *count is how many are left to read, false at the
 * end. Under `reading`. */
static bool take(dp_two_worker *worker, size_t *count) {
    dp_two *two = worker->two;
    doppel_error error;
    dp_sifter_clear(&worker->sifter);
    worker->first = two->position;
    if (!(worker->result = dp_two_begin(two)))
        return false;
    if (two->stream.settled) {
        uint64_t left = two->stream.count - two->position;
        *count = left < two->sieve.batch ? (size_t)left : two->sieve.batch;
        two->position += *count;
    } else {
        doppel_status status = load_in_turn(worker, &error);
        if (status != DOPPEL_OK) {
            dp_two_fail(two, status, &error);
            return false;
        }
        *count = worker->sifter.count;
        two->position += *count;
    }
    if (!*count)
        return false;
    pthread_mutex_lock(&two->order);
    two->next_read++;
    pthread_mutex_unlock(&two->order);
    return true;
}

static void work(dp_two_worker *worker) {
    dp_two *two = worker->two;
    doppel_error error;
    for (;;) {
        size_t count = 0;
        pthread_mutex_lock(&two->reading);
        bool taken = take(worker, &count);
        pthread_mutex_unlock(&two->reading);
        if (!taken)
            return;
        doppel_status status = load_anywhere(worker, count, &error);
        if (status != DOPPEL_OK) {
            dp_two_fail(two, status, &error);
            return;
        }
        worker->result->fingerprints += count;
        dp_two_check(worker);
        dp_two_finish(two, worker->result);
    }
}

static void thread_main(void *user, size_t thread) {
    dp_two *two = user;
    dp_two_worker *worker = malloc(sizeof *worker);
    (void)thread;
    if (worker && dp_two_worker_init(worker, two))
        work(worker);
    else
        dp_two_fail(two, DOPPEL_ERROR_MEMORY, NULL);
    if (worker)
        dp_two_worker_free(worker);
    free(worker);
}

/* ---- setting up ---- */

/* Finds out how long the stream is, or reads ahead to see whether it is short; gives what to plan for. What that takes
 * of the memory is taken off. */
static doppel_status look_ahead(dp_two *two, uint64_t *memory, uint64_t *expected, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    uint64_t room = *memory / 8 / item_size(two);
    size_t count = 1, most = (size_t)(room < LEAST_AHEAD ? LEAST_AHEAD : room < AHEAD ? room : AHEAD);
    *expected = two->total = two->stream.count;
    if (two->stream.settled)
        return DOPPEL_OK;
    two->ahead = malloc(most * item_size(two));
    if (!two->ahead)
        return dp_no_memory(error);
    *memory -= most * item_size(two) < *memory ? most * item_size(two) : *memory;
    while (status == DOPPEL_OK && count && two->ahead_count < most) {
        const uint64_t *got;
        count = most - two->ahead_count;
        if (dp_stopped(two->options.stop))
            return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        status = dp_feed_next(&two->stream, two->ahead + two->ahead_count * two->held.words, &count, &got, error);
        if (status == DOPPEL_OK)
            two->ahead_count += count;
    }
    *expected = count ? LONG_STREAM : two->ahead_count;
    two->total = count ? 0 : two->ahead_count;
    return status;
}

static bool create_results(dp_two *two, uint64_t memory) {
    two->result_count = 4 * two->threads;
    two->results = calloc(two->result_count, sizeof *two->results);
    uint64_t share = memory / two->result_count / sizeof(doppel_pair);
    two->most_pairs = share < 256 ? 256 : share > MOST_PAIRS ? MOST_PAIRS : (size_t)share;
    return two->results != NULL;
}

/* Shares the memory: the held side takes what it needs, of the rest an eighth is for pairs. */
static doppel_status set_up(dp_two *two, const doppel_source *a, int distance, doppel_error *error) {
    const doppel_join_options *o = &two->options;
    uint64_t memory = o->memory ? o->memory : dp_memory_default(), expected;
    dp_held_options held = {.distance = distance, .threads = two->threads, .memory = memory, .stop = o->stop};
    held.secret = o->secret ? o->secret : dp_order_random();
    dp_feed feed;
    doppel_status status = dp_feed_open(&feed, a, o->bits, error);
    if (status != DOPPEL_OK)
        return status;
    status = dp_held_build(&two->held, &feed, &held, error);
    dp_feed_close(&feed);
    uint64_t used = dp_held_bytes(&two->held), rest = memory > used ? memory - used : 0;
    if (status == DOPPEL_OK)
        status = look_ahead(two, &rest, &expected, error);
    if (status != DOPPEL_OK)
        return status;
    dp_sieve_options sieve = {.threads = two->threads, .memory = rest / 8 * 7, .stream = expected};
    dp_sieve_plan(&two->sieve, &two->held, &sieve);
    if (two->sieve.nested)
        dp_held_use_parts(&two->held, two->sieve.found, two->sieve.parts);
    if (!dp_held_fill(&two->held, two->threads) || !dp_sieve_build(&two->sieve, &two->held, two->threads))
        return dp_no_memory(error);
    if (two->total && two->total / two->sieve.batch < two->threads)
        two->threads = (size_t)(two->total / two->sieve.batch) + 1; /* no more than there are batches */
    return create_results(two, rest / 8) ? DOPPEL_OK : dp_no_memory(error);
}

static void free_all(dp_two *two) {
    for (size_t i = 0; two->results && i < two->result_count; i++)
        free(two->results[i].pairs);
    free(two->results);
    free(two->ahead);
    dp_sieve_free(&two->sieve);
    dp_held_free(&two->held);
    dp_feed_close(&two->stream);
    pthread_cond_destroy(&two->moved);
    pthread_mutex_destroy(&two->order);
    pthread_mutex_destroy(&two->reading);
}

/* ---- the call ---- */

static doppel_status join(dp_two *two, const doppel_source *a, int distance, doppel_error *error) {
    if (distance < 0 || distance > two->stream.bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d: fingerprints have %d bits", distance,
                       two->stream.bits);
    doppel_status status = set_up(two, a, distance, error);
    if (status != DOPPEL_OK)
        return status;
    dp_run_threads(two->threads, thread_main, two);
    if (two->status != DOPPEL_OK && error)
        *error = two->error;
    return two->status;
}

doppel_status doppel_join_two(const doppel_source *a, const doppel_source *b, int distance,
                              const doppel_join_options *options, doppel_join_counts *counts, doppel_error *error) {
    dp_two two = {0};
    if (counts)
        memset(counts, 0, sizeof *counts);
    if (options)
        dp_copy_options(&two.options, options, sizeof two.options);
    doppel_status status = dp_feed_open(&two.stream, b, two.options.bits, error);
    if (status != DOPPEL_OK)
        return status;
    two.threads = dp_thread_count(two.options.threads);
    pthread_mutex_init(&two.reading, NULL);
    pthread_mutex_init(&two.order, NULL);
    pthread_cond_init(&two.moved, NULL);
    status = join(&two, a, distance, error);
    two.counts.all_pairs = two.counts.pairs;
    if (counts)
        *counts = two.counts;
    free_all(&two);
    return status;
}
