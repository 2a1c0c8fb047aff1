/* rotate.c - doppel_join_rotate: the classic approximate join. The fingerprints are rotated, sorted, and each is
 * compared with its next neighbours in the circle; once for each rotation.
 *
 * A rotation is the work of one thread; what it finds goes to the sink for pairs (pairs.c), which drops repeats. */
#include "hamming/hamming.h"
#include "join/join.h"

#include <stdlib.h>

/* Positions are 32 bits wide. */
#define MOST (((uint64_t)1 << 32) - 2)
/* Neighbours compared between two checks of `stop`. */
#define STOP_EVERY ((size_t)1 << 16)
/* The minimum for the sink of pairs. */
#define LEAST_PAIRS ((uint64_t)1 << 20)

/* One 64-bit number of a rotated fingerprint, and whose it is. */
typedef struct item {
    uint64_t key;
    uint32_t position;
} item;

typedef struct rotate {
    doppel_join_options options;
    doppel_rotation rotation;
    int bits, distance;
    size_t words, count, threads;
    uint64_t *raw; /* the fingerprints as they came */
    dp_pairs pairs;
    atomic_int next; /* rotation to take */
    atomic_uint_fast64_t candidates;
    pthread_mutex_t lock; /* of what follows */
    int done;             /* rotations */
    doppel_status status; /* the first failure */
    uint64_t copies, groups;
} rotate;

static void fail(rotate *r, doppel_status status) {
    pthread_mutex_lock(&r->lock);
    if (r->status == DOPPEL_OK)
        r->status = status;
    pthread_mutex_unlock(&r->lock);
}

/* ---- one rotation ---- */

static dp_bits value_at(const rotate *r, size_t position) {
    return dp_bits_load(r->raw + position * r->words, r->bits);
}

/* Rotated left within the width; 0 <= step < bits. */
static dp_bits rotated(dp_bits value, int bits, int step) {
    dp_bits mask = bits == 128 ? ~(dp_bits)0 : ((dp_bits)1 << bits) - 1;
    return step ? (value << step | value >> (bits - step)) & mask : value;
}

/* One byte: from -> to, in order. False, and nothing is done, when all have the same. */
static bool sort_byte(const item *from, size_t count, item *to, int shift) {
    size_t places[256] = {0}, next = 0;
    for (size_t i = 0; i < count; i++)
        places[from[i].key >> shift & 255]++;
    if (places[from[0].key >> shift & 255] == count)
        return false;
    for (int value = 0; value < 256; value++) {
        size_t here = places[value];
        places[value] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++)
        to[places[from[i].key >> shift & 255]++] = from[i];
    return true;
}

/* Stable sort by key. Returns the array that has the result: one of the two. */
static item *sort_keys(item *items, size_t count, item *scratch) {
    for (int shift = 0; shift < 64; shift += 8)
        if (sort_byte(items, count, scratch, shift)) {
            item *swapped = items;
            items = scratch;
            scratch = swapped;
        }
    return items;
}

/* All in the order of their rotated numbers: by the low half first, then by the high half. */
static item *sort_rotated(const rotate *r, int step, item *items, item *scratch) {
    for (size_t i = 0; i < r->count; i++)
        items[i] = (item){(uint64_t)rotated(value_at(r, i), r->bits, step), (uint32_t)i};
    item *sorted = sort_keys(items, r->count, scratch);
    if (r->words == 1)
        return sorted;
    for (size_t i = 0; i < r->count; i++)
        sorted[i].key = (uint64_t)(rotated(value_at(r, sorted[i].position), r->bits, step) >> 64);
    return sort_keys(sorted, r->count, sorted == items ? scratch : items);
}

static int distance_of(const rotate *r, const item *one, const item *other) {
    if (r->words == 1)
        return __builtin_popcountll(one->key ^ other->key);
    return dp_bits_count(value_at(r, one->position) ^ value_at(r, other->position));
}

/* Compares each with those that follow it. */
static bool compare_neighbours(rotate *r, const item *sorted, dp_pair_buffer *buffer) {
    size_t window = (size_t)r->rotation.window < r->count ? (size_t)r->rotation.window : r->count - 1;
    for (size_t i = 0; i < r->count; i++) {
        if (i % STOP_EVERY == 0 && dp_stopped(r->options.stop)) {
            fail(r, DOPPEL_ERROR_INTERRUPTED);
            return false;
        }
        for (size_t ahead = 1; ahead <= window; ahead++) {
            const item *next = &sorted[i + ahead < r->count ? i + ahead : i + ahead - r->count];
            int distance = distance_of(r, &sorted[i], next);
            uint32_t a = sorted[i].position, b = next->position;
            if (distance <= r->distance && !dp_pairs_add(buffer, a < b ? a : b, a < b ? b : a, distance))
                return false;
        }
    }
    atomic_fetch_add(&r->candidates, r->count * window);
    return true;
}

/* Counts copies, which are adjacent in any rotation. */
static void count_copies(rotate *r, const item *sorted) {
    uint64_t copies = 0, groups = 0;
    bool before = false;
    for (size_t i = 1; i < r->count; i++) {
        bool same = value_at(r, sorted[i - 1].position) == value_at(r, sorted[i].position);
        copies += same;
        groups += same && !before;
        before = same;
    }
    r->copies = copies;
    r->groups = groups;
}

/* ---- threads ---- */

static int step_of(const rotate *r, int rotation) {
    int step = r->rotation.steps ? r->rotation.steps[rotation] % r->bits : rotation % r->bits;
    return step < 0 ? step + r->bits : step;
}

static void note_done(rotate *r) {
    pthread_mutex_lock(&r->lock);
    r->done++;
    if (r->options.progress)
        r->options.progress((uint64_t)r->done * r->count, (uint64_t)r->rotation.count * r->count, r->options.user);
    pthread_mutex_unlock(&r->lock);
}

static void thread_main(void *user, size_t thread) {
    rotate *r = user;
    item *items = dp_big_alloc(r->count * sizeof *items), *scratch = dp_big_alloc(r->count * sizeof *scratch);
    if (!items || !scratch)
        fail(r, DOPPEL_ERROR_MEMORY);
    for (int i; items && scratch && (i = atomic_fetch_add(&r->next, 1)) < r->rotation.count;) {
        const item *sorted = sort_rotated(r, step_of(r, i), items, scratch);
        if (i == 0)
            count_copies(r, sorted);
        if (!compare_neighbours(r, sorted, &r->pairs.buffers[thread]))
            break;
        note_done(r);
    }
    free(items);
    free(scratch);
}

/* ---- setting up ---- */

static doppel_status check(rotate *r, const doppel_rotation *rotation, doppel_error *error) {
    if (rotation)
        dp_copy_options(&r->rotation, rotation, sizeof r->rotation);
    if (r->rotation.count < 0 || r->rotation.window < 0)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%d rotations and a window of %d: neither can be below 0",
                       r->rotation.count, r->rotation.window);
    if (r->rotation.steps && !r->rotation.count)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "steps to rotate by are given, but not how many");
    if (r->distance < 0 || r->distance > r->bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a distance of %d: fingerprints have %d bits", r->distance, r->bits);
    r->rotation.count = r->rotation.count ? r->rotation.count : r->bits;
    r->rotation.window = r->rotation.window ? r->rotation.window : 1;
    return DOPPEL_OK;
}

/* Threads that the memory has room for, and what is left for pairs. */
static doppel_status share_memory(rotate *r, uint64_t count, uint64_t *for_pairs, doppel_error *error) {
    uint64_t memory = r->options.memory;
    uint64_t raw = count * r->words * 8, each = count * 2 * sizeof(item), need = raw + each + LEAST_PAIRS;
    if (count > MOST)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%llu fingerprints are too many; the most is %llu",
                       (unsigned long long)count, (unsigned long long)MOST);
    if (need > memory)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "too little memory: %llu fingerprints need at least %llu MiB",
                       (unsigned long long)count, (unsigned long long)(need >> 20) + 1);
    r->threads = dp_thread_count(r->options.threads);
    if (r->threads > (size_t)r->rotation.count)
        r->threads = (size_t)r->rotation.count;
    while (r->threads > 1 && raw + r->threads * each + LEAST_PAIRS > memory)
        r->threads--;
    *for_pairs = memory - raw - r->threads * each;
    return DOPPEL_OK;
}

static doppel_status read_all(rotate *r, dp_fingerprints *source, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    r->raw = dp_big_alloc(source->count * r->words * sizeof *r->raw);
    if (!r->raw)
        return dp_no_memory(error);
    while (status == DOPPEL_OK && r->count < source->count) {
        uint64_t left = source->count - r->count, *to = r->raw + r->count * r->words;
        size_t piece = left < DP_FINGERPRINTS_BATCH ? (size_t)left : DP_FINGERPRINTS_BATCH;
        const uint64_t *got;
        status = dp_fingerprints_read(source, (dp_fingerprints_part){r->count, piece}, to, &got, error);
        if (status == DOPPEL_OK && got != to)
            memcpy(to, got, piece * r->words * sizeof *to);
        r->count += piece;
    }
    return status;
}

/* ---- the call ---- */

static doppel_status run(rotate *r, doppel_join_counts *counts, doppel_error *error) {
    if (r->count)
        dp_run_threads(r->threads, thread_main, r);
    if (r->status != DOPPEL_OK)
        return dp_fail(error, r->status, "%s", doppel_status_name(r->status));
    doppel_status status = dp_pairs_finish(&r->pairs, r->options.count_only ? NULL : r->options.pairs, r->options.user,
                                           &counts->pairs, error);
    counts->fingerprints = r->count;
    counts->copies = r->copies;
    counts->groups = r->groups;
    counts->all_pairs = counts->pairs;
    counts->candidates = atomic_load(&r->candidates);
    counts->spilled_bytes += r->pairs.file.size;
    return status;
}

/* Counts what the exact join finds, and gives the share that `found` is of it; 1 when there is nothing to find. */
static doppel_status measure_recall(const rotate *r, uint64_t found, double *recall, doppel_error *error) {
    doppel_source source = {.size = sizeof source, .array = r->raw, .count = r->count};
    doppel_join_options options = r->options;
    doppel_join_counts exact;
    options.size = sizeof options;
    options.all = options.count_only = true;
    options.pairs = NULL;
    options.progress = NULL;
    doppel_status status = doppel_join(&source, r->distance, &options, &exact, error);
    if (status == DOPPEL_OK)
        *recall = exact.pairs ? (double)found / (double)exact.pairs : 1;
    return status;
}

static doppel_status join(rotate *r, dp_fingerprints *source, double *recall, doppel_join_counts *counts,
                          doppel_error *error) {
    uint64_t for_pairs = 0;
    dp_fingerprints_keeping keeping = {r->options.memory, r->options.tmp, r->options.stop};
    doppel_status status = dp_fingerprints_settle(source, &keeping, error);
    counts->spilled_bytes = source->spool.size;
    DP_THEN(status, share_memory(r, source->count, &for_pairs, error));
    DP_THEN(status, read_all(r, source, error));
    dp_fingerprints_close(source);
    if (status != DOPPEL_OK)
        return status;
    dp_pairs_options options = {r->threads, for_pairs, r->options.tmp, r->options.stop, true};
    DP_TRY(dp_pairs_init(&r->pairs, &options, error));
    status = run(r, counts, error);
    dp_pairs_free(&r->pairs);
    return status == DOPPEL_OK && recall ? measure_recall(r, counts->pairs, recall, error) : status;
}

doppel_status doppel_join_rotate(const doppel_source *given, int distance, const doppel_rotation *rotation,
                                 const doppel_join_options *options, double *recall, doppel_join_counts *counts,
                                 doppel_error *error) {
    rotate r = {.distance = distance, .lock = PTHREAD_MUTEX_INITIALIZER};
    doppel_join_counts found = {0};
    dp_fingerprints source;
    if (options)
        dp_copy_options(&r.options, options, sizeof r.options);
    DP_TRY(dp_fingerprints_open(&source, given, r.options.bits, error));
    r.options.memory = r.options.memory ? r.options.memory : dp_memory_default();
    r.bits = source.bits;
    r.words = source.words;
    doppel_status status = check(&r, rotation, error);
    DP_THEN(status, join(&r, &source, recall, &found, error));
    if (counts)
        *counts = found;
    free(r.raw);
    dp_fingerprints_close(&source);
    pthread_mutex_destroy(&r.lock);
    return status;
}
