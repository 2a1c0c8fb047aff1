/* sorter_runs.c - sorted runs in a file: written, and merged while they are read.
 *
 * A heap of runs has the one with the least record on top; of equal records, that of the earlier run. When there are
 * more runs than can be read at once (fan_in), so many neighbours at a time are first made one, which keeps the order
 * of equal records. */
#include "batch/sorter.h"

#include <stdlib.h>

/* Written at once, in records at least 1. */
#define PIECE ((size_t)1 << 20)

/* Records on their way to the file. */
typedef struct run_writer {
    dp_sorter *sorter;
    uint64_t *piece;
    size_t count, room;
    dp_sorter_run run;
} run_writer;

static doppel_status writer_open(run_writer *writer, dp_sorter *sorter, doppel_error *error) {
    size_t bytes = sorter->options.words * 8, room = PIECE / bytes ? PIECE / bytes : 1;
    *writer = (run_writer){.sorter = sorter, .room = room, .run = {.at = sorter->written}};
    if (!sorter->file.open) {
        doppel_status status = dp_scratch_open(&sorter->file, sorter->options.tmp, error);
        if (status != DOPPEL_OK)
            return status;
    }
    writer->piece = malloc(room * bytes);
    return writer->piece ? DOPPEL_OK : dp_no_memory(error);
}

static doppel_status writer_flush(run_writer *writer, doppel_error *error) {
    dp_sorter *sorter = writer->sorter;
    size_t bytes = sorter->options.words * 8;
    doppel_status status =
        dp_scratch_write(&sorter->file, writer->piece, writer->count * bytes, sorter->written * bytes, error);
    if (status == DOPPEL_OK) {
        sorter->written += writer->count;
        writer->run.left += writer->count;
        writer->count = 0;
    }
    return status;
}

static doppel_status writer_add(run_writer *writer, const uint64_t *record, doppel_error *error) {
    size_t words = writer->sorter->options.words;
    memcpy(writer->piece + writer->count * words, record, words * 8);
    return ++writer->count < writer->room ? DOPPEL_OK : writer_flush(writer, error);
}

doppel_status dp_sorter_write_run(dp_sorter *sorter, doppel_error *error) {
    run_writer writer;
    if (!dp_reserve(&sorter->runs, &sorter->run_room, sorter->run_count + 1, sizeof *sorter->runs))
        return dp_no_memory(error);
    doppel_status status = writer_open(&writer, sorter, error);
    for (size_t i = 0; i < sorter->count && status == DOPPEL_OK; i++)
        status = writer_add(&writer, dp_sorter_record(sorter, i), error);
    if (status == DOPPEL_OK)
        status = writer_flush(&writer, error);
    if (status == DOPPEL_OK)
        sorter->runs[sorter->run_count++] = writer.run;
    free(writer.piece);
    return status;
}

/* ---- merging ---- */

static const uint64_t *head_of(const dp_sorter *sorter, size_t run) {
    return sorter->runs[run].part + sorter->runs[run].part_next * sorter->options.words;
}

static bool goes_first(const dp_sorter *sorter, size_t x, size_t y) {
    const uint64_t *a = head_of(sorter, x), *b = head_of(sorter, y);
    for (size_t w = 0; w < sorter->options.keys; w++)
        if (a[w] != b[w])
            return a[w] < b[w];
    return x < y;
}

static void sift_down(dp_sorter *sorter, size_t at) {
    for (;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child < 2 * at + 3 && child < sorter->heap_count; child++)
            if (goes_first(sorter, sorter->heap[child], sorter->heap[best]))
                best = child;
        if (best == at)
            return;
        size_t run = sorter->heap[at];
        sorter->heap[at] = sorter->heap[best];
        sorter->heap[best] = run;
        at = best;
    }
}

/* Reads the next part of a run, `room` records at most. */
static doppel_status read_part(dp_sorter *sorter, dp_sorter_run *run, size_t room, doppel_error *error) {
    size_t bytes = sorter->options.words * 8, count = run->left < room ? (size_t)run->left : room;
    if (!run->part && !(run->part = malloc(room * bytes)))
        return dp_no_memory(error);
    if (dp_stopped(sorter->options.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    doppel_status status = dp_scratch_read(&sorter->file, run->part, count * bytes, run->at * bytes, error);
    run->at += count;
    run->left -= count;
    run->part_count = count;
    run->part_next = 0;
    return status;
}

/* What is read of each run at once, in records, when `runs` of them are read. */
static size_t part_room(const dp_sorter *sorter, size_t runs) {
    uint64_t room = sorter->options.memory / runs / (sorter->options.words * 8);
    return room < 64 ? 64 : room > PIECE ? PIECE : (size_t)room;
}

/* Begins to read some runs. */
static doppel_status open_runs(dp_sorter *sorter, size_t first, size_t count, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    sorter->heap_count = 0;
    sorter->taken = false;
    if (!sorter->heap && !(sorter->heap = malloc(sorter->fan_in * sizeof *sorter->heap)))
        return dp_no_memory(error);
    for (size_t i = first; i < first + count && status == DOPPEL_OK; i++) {
        status = read_part(sorter, &sorter->runs[i], part_room(sorter, count), error);
        sorter->heap[sorter->heap_count++] = i;
    }
    for (size_t i = sorter->heap_count / 2; i-- && status == DOPPEL_OK;)
        sift_down(sorter, i);
    return status;
}

/* Goes past the record on top. */
static doppel_status pass_top(dp_sorter *sorter, doppel_error *error) {
    dp_sorter_run *run = &sorter->runs[sorter->heap[0]];
    if (++run->part_next == run->part_count) {
        if (run->left) {
            doppel_status status = read_part(sorter, run, run->part_count, error);
            if (status != DOPPEL_OK)
                return status;
        } else {
            free(run->part);
            run->part = NULL;
            sorter->heap[0] = sorter->heap[--sorter->heap_count];
        }
    }
    sift_down(sorter, 0);
    return DOPPEL_OK;
}

doppel_status dp_sorter_merged(dp_sorter *sorter, const uint64_t **record, doppel_error *error) {
    doppel_status status = sorter->taken ? pass_top(sorter, error) : DOPPEL_OK;
    while (sorter->taken && sorter->options.unique && status == DOPPEL_OK && sorter->heap_count &&
           *head_of(sorter, sorter->heap[0]) == sorter->last)
        status = pass_top(sorter, error);
    sorter->taken = sorter->heap_count;
    *record = status == DOPPEL_OK && sorter->heap_count ? head_of(sorter, sorter->heap[0]) : NULL;
    sorter->last = *record ? **record : 0;
    return status;
}

/* Makes one run of some neighbours. */
static doppel_status merge_runs(dp_sorter *sorter, size_t first, size_t count, dp_sorter_run *merged,
                                doppel_error *error) {
    run_writer writer;
    const uint64_t *record = NULL;
    doppel_status status = writer_open(&writer, sorter, error);
    if (status == DOPPEL_OK)
        status = open_runs(sorter, first, count, error);
    while (status == DOPPEL_OK && (status = dp_sorter_merged(sorter, &record, error)) == DOPPEL_OK && record)
        status = writer_add(&writer, record, error);
    if (status == DOPPEL_OK)
        status = writer_flush(&writer, error);
    *merged = writer.run;
    free(writer.piece);
    return status;
}

doppel_status dp_sorter_merge(dp_sorter *sorter, doppel_error *error) {
    while (sorter->run_count > sorter->fan_in) {
        size_t kept = 0;
        for (size_t first = 0, count; first < sorter->run_count; first += count) {
            dp_sorter_run merged;
            count = sorter->run_count - first < sorter->fan_in ? sorter->run_count - first : sorter->fan_in;
            doppel_status status = merge_runs(sorter, first, count, &merged, error);
            if (status != DOPPEL_OK)
                return status;
            sorter->runs[kept++] = merged;
        }
        sorter->run_count = kept;
    }
    return open_runs(sorter, 0, sorter->run_count, error);
}
