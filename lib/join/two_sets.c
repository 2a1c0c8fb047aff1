/* two_sets.c - doppel_join_sets: one set is kept in memory, the other is streamed past it.
 *
 * The first set becomes tables (resident.c) and a prefilter (prefilter.c). Threads take batches of the stream in turn,
 * filter and look up each on their own, and give the pairs out in the order of the stream. */
#include "join/two_sets.h"

#include <pthread.h>
#include <stdlib.h>

/* What came of a batch and is not given out yet. */
typedef struct batch_result {
    doppel_pair *pairs;
    size_t count, capacity;
    uint64_t fingerprints, found, candidates; /* to be counted */
} batch_result;

typedef struct stream_join {
    doppel_join_options options;
    size_t threads;
    dp_resident set;
    dp_prefilter filter;
    dp_fingerprints stream;
    uint64_t *ahead; /* what was read of a stream to see how long it is, and how much of that was used */
    size_t ahead_count, ahead_used;
    uint64_t total;        /* fingerprints in the stream; 0: not known */
    size_t most_pairs;     /* in a result */
    batch_result *results; /* by slot */
    size_t result_count;
    dp_ordered ordered;        /* of batches */
    pthread_mutex_t reading;   /* of the stream and `position` */
    uint64_t position;         /* of the next fingerprint to read */
    doppel_join_counts counts; /* of the thread that emits */
} stream_join;

/* What a thread works with. */
typedef struct stream_worker {
    stream_join *join;
    dp_filter_batch batch;
    dp_resident_finder finder;
    uint64_t *queries; /* finder.group of them, their numbers in the batch, and the parts in which they may be near */
    uint32_t *numbers;
    uint8_t *parts;
    uint64_t *keys, *scratch; /* to sort the pairs of one fingerprint */
    size_t key_capacity, scratch_capacity;
    uint64_t *room;  /* for reading */
    uint64_t number; /* of the batch */
    batch_result *result;
    uint64_t first; /* position of the batch */
} stream_worker;

/* ---- giving out: batches are done in any order, their pairs go out in the order of the stream ---- */

/* Gives out what the result of a slot has; dp_emit. */
static doppel_status emit(void *user, size_t slot, bool finished, doppel_error *error) {
    stream_join *join = user;
    batch_result *result = &join->results[slot];
    const doppel_join_options *options = &join->options;
    (void)finished; /* both times the same: the result is empty afterwards */
    doppel_status status = DOPPEL_OK;
    if (result->count && options->pairs)
        status = options->pairs(result->pairs, result->count, options->user);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "the callback that takes pairs says: %s", doppel_status_name(status));
    join->counts.fingerprints += result->fingerprints;
    join->counts.pairs += result->found;
    join->counts.candidates += result->candidates;
    result->count = 0;
    result->fingerprints = result->found = result->candidates = 0;
    if (options->progress)
        options->progress(join->counts.fingerprints, join->total, options->user);
    return DOPPEL_OK;
}

/* ---- looking up what passed the prefilter: pairs in order of (b, a) ---- */

static bool worker_init(stream_worker *worker, stream_join *join) {
    *worker = (stream_worker){.join = join};
    bool made = dp_resident_finder_init(&worker->finder, &join->set);
    made = dp_filter_batch_init(&worker->batch, &join->filter) && made;
    worker->queries = malloc(worker->finder.group * join->set.words * sizeof *worker->queries);
    worker->numbers = malloc(worker->finder.group * sizeof *worker->numbers);
    worker->parts = malloc(worker->finder.group);
    worker->room = malloc(DP_FINGERPRINTS_BATCH * join->set.words * sizeof *worker->room);
    return made && worker->queries && worker->numbers && worker->parts && worker->room;
}

static void worker_free(stream_worker *worker) {
    dp_resident_finder_free(&worker->finder);
    dp_filter_batch_free(&worker->batch);
    free(worker->queries);
    free(worker->numbers);
    free(worker->parts);
    free(worker->room);
    free(worker->keys);
    free(worker->scratch);
}

static bool no_memory(stream_worker *worker) {
    doppel_error error;
    dp_no_memory(&error);
    dp_ordered_fail(&worker->join->ordered, DOPPEL_ERROR_MEMORY, &error);
    return false;
}

static bool add_pair(stream_worker *worker, doppel_pair pair) {
    batch_result *result = worker->result;
    if (result->count == worker->join->most_pairs &&
        dp_ordered_flush(&worker->join->ordered, worker->number) != DOPPEL_OK)
        return false;
    if (!dp_reserve(&result->pairs, &result->capacity, result->count + 1, sizeof pair))
        return no_memory(worker);
    result->pairs[result->count++] = pair;
    result->found++;
    return true;
}

/* The positions of one resident fingerprint are in order as they stand. */
static bool add_one(stream_worker *worker, const dp_resident_hit *hit, uint64_t b) {
    const dp_resident *set = &worker->join->set;
    for (uint32_t at = set->starts[hit->id]; at < set->starts[hit->id + 1]; at++)
        if (!add_pair(worker, (doppel_pair){set->positions[at], b, (int)hit->distance}))
            return false;
    return true;
}

/* Those of several are sorted: a position and its distance, at most 128, as one number. */
static bool add_several(stream_worker *worker, const dp_resident_hit *hits, size_t count, uint64_t b) {
    const dp_resident *set = &worker->join->set;
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += set->starts[hits[i].id + 1] - set->starts[hits[i].id];
    if (!dp_reserve(&worker->keys, &worker->key_capacity, found, sizeof *worker->keys) ||
        !dp_reserve(&worker->scratch, &worker->scratch_capacity, found, sizeof *worker->scratch))
        return no_memory(worker);
    uint64_t *key = worker->keys;
    for (size_t i = 0; i < count; i++)
        for (uint32_t at = set->starts[hits[i].id]; at < set->starts[hits[i].id + 1]; at++)
            *key++ = (uint64_t)set->positions[at] << 8 | hits[i].distance;
    dp_sort64(worker->keys, found, worker->scratch);
    for (size_t i = 0; i < found; i++)
        if (!add_pair(worker, (doppel_pair){worker->keys[i] >> 8, b, (int)(worker->keys[i] & 255)}))
            return false;
    return true;
}

static void count_pairs(stream_worker *worker, const dp_resident_hit *hits, size_t count) {
    const dp_resident *set = &worker->join->set;
    for (size_t i = 0; i < count; i++)
        worker->result->found += set->starts[hits[i].id + 1] - set->starts[hits[i].id];
}

/* Adds the pairs of all hits of the last find. */
static bool add_hits(stream_worker *worker) {
    const dp_resident_finder *finder = &worker->finder;
    bool only_count = worker->join->options.count_only || !worker->join->options.pairs;
    for (size_t from = 0, end; from < finder->hit_count; from = end) {
        const dp_resident_hit *hits = finder->hits + from;
        for (end = from + 1; end < finder->hit_count && finder->hits[end].query == hits->query; end++)
            ;
        uint64_t b = worker->first + worker->numbers[hits->query];
        if (only_count)
            count_pairs(worker, hits, end - from);
        else if (!(end - from == 1 ? add_one(worker, hits, b) : add_several(worker, hits, end - from, b)))
            return false;
    }
    return true;
}

static bool find_group(stream_worker *worker, size_t count) {
    dp_resident_finder *finder = &worker->finder;
    if (dp_ordered_over(&worker->join->ordered))
        return false;
    if (dp_stopped(worker->join->options.stop)) {
        dp_ordered_fail(&worker->join->ordered, DOPPEL_ERROR_INTERRUPTED, NULL);
        return false;
    }
    if (!dp_resident_finder_run(finder, worker->queries, worker->parts, count))
        return no_memory(worker);
    worker->result->candidates += finder->candidates;
    finder->candidates = 0;
    return !finder->hit_count || add_hits(worker);
}

/* Those of 64 fingerprints, from number `from` on, that passed some map. Without a prefilter, all are taken to be near
 * in the first part. */
static uint64_t passed_any(const dp_filter_batch *batch, size_t from) {
    uint64_t passed = batch->filter->parts ? 0 : ~(uint64_t)0;
    for (int i = 0; i < batch->filter->parts; i++)
        passed |= batch->passed[i][from / 64];
    return batch->count - from < 64 ? passed & (((uint64_t)1 << (batch->count - from)) - 1) : passed;
}

static uint8_t parts_of(const dp_filter_batch *batch, size_t number) {
    unsigned parts = !batch->filter->parts;
    for (int i = 0; i < batch->filter->parts; i++)
        parts |= (unsigned)(batch->passed[i][number / 64] >> number % 64 & 1) << i;
    return (uint8_t)parts;
}

/* Looks the loaded batch up and adds its pairs to the result. */
static void look_up_batch(stream_worker *worker) {
    const dp_filter_batch *batch = &worker->batch;
    size_t words = worker->join->set.words, group = worker->finder.group, filled = 0;
    dp_filter_batch_run(&worker->batch);
    for (size_t from = 0; from < batch->count; from += 64)
        for (uint64_t passed = passed_any(batch, from); passed; passed &= passed - 1) {
            size_t number = from + (size_t)__builtin_ctzll(passed);
            memcpy(worker->queries + filled * words, batch->values + number * words, words * sizeof(uint64_t));
            worker->parts[filled] = parts_of(batch, number);
            worker->numbers[filled++] = (uint32_t)number;
            if (filled == group && !find_group(worker, filled))
                return;
            filled %= group;
        }
    if (filled)
        find_group(worker, filled);
}

/* How much of a stream of unknown length is read to see whether it is short: AHEAD fingerprints, or what an eighth of
 * the memory holds. */
#define AHEAD ((uint64_t)1 << 20)
#define LEAST_AHEAD ((uint64_t)1 << 12)
/* A stream that goes on after that is taken to be this long: its prefilter pays from about there on. */
#define LONG_STREAM ((uint64_t)1 << 26)
/* Pairs a batch keeps before it waits for its turn: 1.5 MiB. */
#define MOST_PAIRS 65536

static size_t item_size(const stream_join *join) {
    return join->set.words * sizeof(uint64_t);
}

/* ---- reading ---- */

/* The next of the stream, at most `room`, into worker->room or where they stand; *count is 0 at the end. */
static doppel_status read_next(stream_worker *worker, size_t room, const uint64_t **got, size_t *count,
                               doppel_error *error) {
    stream_join *join = worker->join;
    size_t left = join->ahead_count - join->ahead_used;
    *count = room;
    if (!left)
        return dp_fingerprints_next(&join->stream, worker->room, count, got, error);
    *count = left < room ? left : room;
    *got = join->ahead + join->ahead_used * join->set.words;
    join->ahead_used += *count;
    return DOPPEL_OK;
}

/* Adds fingerprints to the batch. */
static void load(stream_worker *worker, const uint64_t *values, size_t count) {
    dp_filter_batch *batch = &worker->batch;
    const dp_resident *set = &worker->join->set;
    dp_order_apply_many(&set->order, values, count, batch->values + batch->count * set->words);
    dp_filter_batch_added(batch, count);
}

/* Loads a batch from what can only be read in turn; under `reading`. */
static doppel_status load_in_turn(stream_worker *worker, doppel_error *error) {
    size_t batch = worker->join->filter.batch, count = 1;
    doppel_status status = DOPPEL_OK;
    while (status == DOPPEL_OK && count && worker->batch.count < batch) {
        size_t room = batch - worker->batch.count;
        const uint64_t *got;
        if (dp_stopped(worker->join->options.stop))
            return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        status = read_next(worker, room < DP_FINGERPRINTS_BATCH ? room : DP_FINGERPRINTS_BATCH, &got, &count, error);
        if (status == DOPPEL_OK && count)
            load(worker, got, count);
    }
    return status;
}

/* Loads `count` fingerprints of what can be read anywhere. */
static doppel_status load_anywhere(stream_worker *worker, size_t count, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    while (status == DOPPEL_OK && worker->batch.count < count) {
        size_t left = count - worker->batch.count, piece = left < DP_FINGERPRINTS_BATCH ? left : DP_FINGERPRINTS_BATCH;
        const uint64_t *got;
        dp_fingerprints_part part = {worker->first + worker->batch.count, piece};
        status = dp_fingerprints_read(&worker->join->stream, part, worker->room, &got, error);
        if (status == DOPPEL_OK)
            load(worker, got, piece);
    }
    return status;
}

/* Takes the next batch, and if it can only be read in turn, reads it; *count is how many are left to read, false at the
 * end. Under `reading`. */
static bool take(stream_worker *worker, size_t *count) {
    stream_join *join = worker->join;
    doppel_error error;
    size_t slot;
    dp_filter_batch_clear(&worker->batch);
    worker->first = join->position;
    if (!dp_ordered_wait(&join->ordered, &slot))
        return false;
    worker->result = &join->results[slot];
    if (dp_stopped(join->options.stop)) {
        dp_ordered_fail(&join->ordered, DOPPEL_ERROR_INTERRUPTED, NULL);
        return false;
    }
    if (join->stream.settled) {
        uint64_t left = join->stream.count - join->position;
        *count = left < join->filter.batch ? (size_t)left : join->filter.batch;
    } else {
        doppel_status status = load_in_turn(worker, &error);
        if (status != DOPPEL_OK) {
            dp_ordered_fail(&join->ordered, status, &error);
            return false;
        }
        *count = worker->batch.count;
    }
    join->position += *count;
    if (*count)
        worker->number = dp_ordered_take(&join->ordered);
    return *count != 0;
}

static void work(stream_worker *worker) {
    stream_join *join = worker->join;
    doppel_error error;
    for (;;) {
        size_t count = 0;
        pthread_mutex_lock(&join->reading);
        bool taken = take(worker, &count);
        pthread_mutex_unlock(&join->reading);
        if (!taken)
            return;
        doppel_status status = load_anywhere(worker, count, &error);
        if (status != DOPPEL_OK) {
            dp_ordered_fail(&join->ordered, status, &error);
            return;
        }
        worker->result->fingerprints += count;
        look_up_batch(worker);
        dp_ordered_finish(&join->ordered, worker->number);
    }
}

static void thread_main(void *user, size_t thread) {
    stream_join *join = user;
    stream_worker *worker = malloc(sizeof *worker);
    (void)thread;
    if (worker && worker_init(worker, join))
        work(worker);
    else
        dp_ordered_fail(&join->ordered, DOPPEL_ERROR_MEMORY, NULL);
    if (worker)
        worker_free(worker);
    free(worker);
}

/* ---- setting up ---- */

/* Finds out how long the stream is, or reads ahead to see whether it is short; gives what to plan for. What that takes
 * of the memory is taken off. */
static doppel_status look_ahead(stream_join *join, uint64_t *memory, uint64_t *expected, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    uint64_t room = *memory / 8 / item_size(join);
    size_t count = 1, most = (size_t)(room < LEAST_AHEAD ? LEAST_AHEAD : room < AHEAD ? room : AHEAD);
    *expected = join->total = join->stream.count;
    if (join->stream.settled)
        return DOPPEL_OK;
    join->ahead = malloc(most * item_size(join));
    if (!join->ahead)
        return dp_no_memory(error);
    *memory -= most * item_size(join) < *memory ? most * item_size(join) : *memory;
    while (status == DOPPEL_OK && count && join->ahead_count < most) {
        const uint64_t *got;
        count = most - join->ahead_count;
        if (dp_stopped(join->options.stop))
            return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        status =
            dp_fingerprints_next(&join->stream, join->ahead + join->ahead_count * join->set.words, &count, &got, error);
        if (status == DOPPEL_OK)
            join->ahead_count += count;
    }
    *expected = count ? LONG_STREAM : join->ahead_count;
    join->total = count ? 0 : join->ahead_count;
    return status;
}

static doppel_status create_results(stream_join *join, uint64_t memory, doppel_error *error) {
    size_t count = 4 * join->threads;
    uint64_t share = memory / count / sizeof(doppel_pair);
    join->most_pairs = share < 256 ? 256 : share > MOST_PAIRS ? MOST_PAIRS : (size_t)share;
    join->results = calloc(count, sizeof *join->results);
    if (!join->results || dp_ordered_init(&join->ordered, count, emit, join) != DOPPEL_OK)
        return dp_no_memory(error);
    join->result_count = count;
    return DOPPEL_OK;
}

/* Shares the memory: the resident set takes what it needs, of the rest an eighth is for pairs. */
static doppel_status set_up(stream_join *join, const doppel_source *a, int distance, doppel_error *error) {
    const doppel_join_options *o = &join->options;
    uint64_t memory = o->memory ? o->memory : dp_memory_default(), expected;
    dp_resident_options set = {.distance = distance, .threads = join->threads, .memory = memory, .stop = o->stop};
    set.secret = o->secret ? o->secret : dp_random_number();
    dp_fingerprints source;
    DP_TRY(dp_fingerprints_open(&source, a, o->bits, error));
    doppel_status status = dp_resident_build(&join->set, &source, &set, error);
    dp_fingerprints_close(&source);
    uint64_t used = dp_resident_bytes(&join->set), rest = memory > used ? memory - used : 0;
    DP_THEN(status, look_ahead(join, &rest, &expected, error));
    if (status != DOPPEL_OK)
        return status;
    dp_prefilter_options filter = {.threads = join->threads, .memory = rest / 8 * 7, .stream = expected};
    dp_prefilter_plan(&join->filter, &join->set, &filter);
    if (join->filter.nested)
        dp_resident_use_parts(&join->set, join->filter.found, join->filter.parts);
    if (!dp_resident_fill(&join->set, join->threads) || !dp_prefilter_build(&join->filter, &join->set, join->threads))
        return dp_no_memory(error);
    if (join->total && join->total / join->filter.batch < join->threads)
        join->threads = (size_t)(join->total / join->filter.batch) + 1; /* no more than there are batches */
    return create_results(join, rest / 8, error);
}

static void free_all(stream_join *join) {
    for (size_t i = 0; join->results && i < join->result_count; i++)
        free(join->results[i].pairs);
    free(join->results);
    free(join->ahead);
    dp_prefilter_free(&join->filter);
    dp_resident_free(&join->set);
    dp_fingerprints_close(&join->stream);
    pthread_mutex_destroy(&join->reading);
}

/* ---- the call ---- */

static doppel_status run(stream_join *join, const doppel_source *a, int distance, doppel_error *error) {
    if (distance < 0 || distance > join->stream.bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d: fingerprints have %d bits", distance,
                       join->stream.bits);
    DP_TRY(set_up(join, a, distance, error));
    dp_run_threads(join->threads, thread_main, join);
    return dp_ordered_end(&join->ordered, error);
}

doppel_status doppel_join_sets(const doppel_source *a, const doppel_source *b, int distance,
                               const doppel_join_options *options, doppel_join_counts *counts, doppel_error *error) {
    stream_join join = {0};
    if (counts)
        memset(counts, 0, sizeof *counts);
    if (options)
        dp_copy_options(&join.options, options, sizeof join.options);
    DP_TRY(dp_fingerprints_open(&join.stream, b, join.options.bits, error));
    join.threads = dp_thread_count(join.options.threads);
    pthread_mutex_init(&join.reading, NULL);
    doppel_status status = run(&join, a, distance, error);
    join.counts.all_pairs = join.counts.pairs;
    if (counts)
        *counts = join.counts;
    free_all(&join);
    return status;
}
