/* parts.c - numbers sorted in parts: open, add through adders of the threads, run, close. */
#include "trim/trim.h"

#include <stdlib.h>

/* Records that an adder buffers for each part: 64 parts of 256 records of 24 bytes fit the L2 cache. */
enum { HELD = 256 };

/* Records that parts hold at least: with fewer, there would be too many runs to merge. */
enum { LEAST = DP_TRIM_PARTS * 4096 };

void dp_trim_parts_open(dp_trim_parts *parts, doppel_trim *trim, size_t words, double limit, uint64_t bytes) {
    const dp_trim_settings *settings = &trim->settings;
    const dp_sorter_options options = {.words = words,
                                       .keys = words,
                                       .memory = bytes,
                                       .merge_memory = bytes / settings->threads,
                                       .tmp = settings->options.tmp,
                                       .stop = settings->input.stop};
    parts->disk = &trim->disk;
    parts->words = words;
    parts->held = 0;
    parts->most = bytes / dp_sorter_record_bytes(words);
    parts->most = parts->most > LEAST ? parts->most : LEAST;
    parts->scale = DP_TRIM_PARTS / (limit / 0x1p32);
    parts->open = true;
    for (size_t i = 0; i < DP_TRIM_PARTS; i++) {
        pthread_mutex_init(&parts->part[i].lock, NULL);
        dp_sorter_init(&parts->part[i].sorter, &options);
        parts->part[i].held = 0;
    }
}

void dp_trim_parts_close(dp_trim_parts *parts) {
    for (size_t i = 0; i < DP_TRIM_PARTS && parts->open; i++) {
        dp_sorter_free(&parts->part[i].sorter);
        pthread_mutex_destroy(&parts->part[i].lock);
    }
    parts->open = false;
}

/* The bytes in the file of a part have changed. */
static void count_disk(dp_trim_disk *disk, uint64_t before, uint64_t after) {
    unsigned long long now = atomic_fetch_add(&disk->now, after - before) + after - before, most = disk->most;
    while (now > most && !atomic_compare_exchange_weak(&disk->most, &most, now))
        ;
}

/* ---- adding ---- */

bool dp_trim_adder_init(dp_trim_adder *adder, dp_trim_parts *parts) {
    *adder = (dp_trim_adder){.parts = parts};
    adder->records = malloc(DP_TRIM_PARTS * HELD * parts->words * sizeof *adder->records);
    return adder->records;
}

void dp_trim_adder_free(dp_trim_adder *adder) {
    free(adder->records);
    adder->records = NULL;
}

/* What is in memory of a part has changed. Its lock is held. */
static void count_held(dp_trim_parts *parts, dp_trim_part *part) {
    unsigned long long held = part->sorter.count;
    atomic_fetch_add(&parts->held, held - part->held);
    part->held = held;
}

static dp_trim_part *find_largest(dp_trim_parts *parts) {
    dp_trim_part *largest = &parts->part[0];
    for (size_t i = 1; i < DP_TRIM_PARTS; i++)
        if (parts->part[i].held > largest->held)
            largest = &parts->part[i];
    return largest;
}

/* Writes the largest part to its file, unless another thread has made room before. */
static doppel_status make_room(dp_trim_parts *parts, doppel_error *error) {
    dp_trim_part *part = find_largest(parts);
    doppel_status status = DOPPEL_OK;
    pthread_mutex_lock(&part->lock);
    if (parts->held > parts->most) {
        uint64_t before = dp_sorter_spilled(&part->sorter);
        status = dp_sorter_spill(&part->sorter, error);
        count_disk(parts->disk, before, dp_sorter_spilled(&part->sorter));
        count_held(parts, part);
    }
    pthread_mutex_unlock(&part->lock);
    return status;
}

static doppel_status flush_part(dp_trim_adder *adder, size_t number) {
    dp_trim_parts *parts = adder->parts;
    dp_trim_part *part = &parts->part[number];
    const uint64_t *record = adder->records + number * HELD * parts->words;
    doppel_status status = DOPPEL_OK;
    pthread_mutex_lock(&part->lock);
    uint64_t before = dp_sorter_spilled(&part->sorter);
    for (size_t i = 0; i < adder->count[number] && status == DOPPEL_OK; i++, record += parts->words)
        status = dp_sorter_add(&part->sorter, record, adder->error);
    count_disk(parts->disk, before, dp_sorter_spilled(&part->sorter));
    count_held(parts, part);
    pthread_mutex_unlock(&part->lock);
    adder->count[number] = 0;
    if (parts->held > parts->most)
        DP_THEN(status, make_room(parts, adder->error));
    return status;
}

doppel_status dp_trim_adder_add(dp_trim_adder *adder, const uint64_t *record) {
    size_t words = adder->parts->words, number = (size_t)((double)(record[0] >> 32) * adder->parts->scale);
    number = number < DP_TRIM_PARTS ? number : DP_TRIM_PARTS - 1;
    memcpy(adder->records + (number * HELD + adder->count[number]) * words, record, words * sizeof *record);
    return ++adder->count[number] < HELD ? DOPPEL_OK : flush_part(adder, number);
}

doppel_status dp_trim_adder_flush(dp_trim_adder *adder) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < DP_TRIM_PARTS; i++)
        if (adder->count[i])
            DP_THEN(status, flush_part(adder, i));
    return status;
}

/* ---- going through ---- */

typedef struct parts_run {
    doppel_trim *trim;
    dp_trim_parts *parts;
    const char *stage;
    dp_trim_part_work work;
    void *user;
    atomic_size_t next;
} parts_run;

static doppel_status run_part(parts_run *run, size_t number, doppel_error *error) {
    doppel_trim *trim = run->trim;
    dp_sorter *sorter = &run->parts->part[number].sorter;
    if (dp_stopped(trim->settings.input.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    uint64_t before = dp_sorter_spilled(sorter);
    doppel_status status = dp_sorter_finish(sorter, error);
    count_disk(&trim->disk, before, dp_sorter_spilled(sorter));
    DP_THEN(status, run->work(run->user, sorter, error));
    pthread_mutex_lock(&trim->lock);
    trim->stats.spilled_bytes += dp_sorter_spilled(sorter);
    dp_trim_progress(trim, run->stage, number, DP_TRIM_PARTS);
    pthread_mutex_unlock(&trim->lock);
    count_disk(&trim->disk, dp_sorter_spilled(sorter), 0);
    dp_sorter_free(sorter);
    return status;
}

static void run_parts(void *user, size_t thread) {
    parts_run *run = user;
    (void)thread;
    for (size_t i; (i = atomic_fetch_add(&run->next, 1)) < DP_TRIM_PARTS && !dp_trim_failed(run->trim);) {
        doppel_error error = {0};
        dp_trim_fail(run->trim, run_part(run, i, &error), &error);
    }
}

doppel_status dp_trim_parts_run(doppel_trim *trim, dp_trim_parts *parts, const char *stage, dp_trim_part_work work,
                                void *user) {
    parts_run run = {.trim = trim, .parts = parts, .stage = stage, .work = work, .user = user};
    dp_run_threads(trim->settings.threads, run_parts, &run);
    dp_trim_parts_close(parts);
    return trim->failure.code;
}
