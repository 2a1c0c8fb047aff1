/* spill.c - what does not fit into memory: files that are only appended to, and records sorted in any amount of memory.
 *
 * The sorter sorts records of one number in place. Of wider records it does not move the records but their numbers,
 * each with one word of its record: by the first word (a radix sort by bytes that skips bytes all records share), then
 * each run of equal ones by the next word, and so on. When `memory` is used up, the sorted buffer is written as a run.
 * The runs are merged through a heap that has the run with the least record on top, of equal records that of the
 * earlier run. When there are more runs than can be read at once (fan_in), neighbouring runs are first merged into one,
 * which keeps the order of equal records. */
#include "batch/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files that are only appended to ---- */

/* Bytes written at a time. */
#define PIECE ((size_t)1 << 20)

static doppel_status open_named(dp_append_file *file, const char *folder, const char *name, doppel_error *error) {
    char path[4096];
    struct stat known;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return dp_fail(error, DOPPEL_ERROR_IO, "%s: the name is too long", folder);
    file->scratch.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file->scratch.fd < 0 || fstat(file->scratch.fd, &known))
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be opened: %s", strerror(errno));
    file->scratch.open = true;
    file->scratch.size = (uint64_t)known.st_size;
    snprintf(file->scratch.folder, sizeof file->scratch.folder, "%.200s", folder);
    return DOPPEL_OK;
}

doppel_status dp_append_file_open(dp_append_file *file, const char *folder, const char *name, const char *tmp,
                                  doppel_error *error) {
    *file = (dp_append_file){.scratch = {.fd = -1}};
    return folder ? open_named(file, folder, name, error) : dp_scratch_open(&file->scratch, tmp, error);
}

void dp_append_file_close(dp_append_file *file) {
    if (file->scratch.open)
        dp_scratch_close(&file->scratch);
    dp_buffer_free(&file->pending);
}

doppel_status dp_append_file_flush(dp_append_file *file, doppel_error *error) {
    size_t length = file->pending.size;
    if (!length)
        return DOPPEL_OK;
    DP_TRY(dp_scratch_write(&file->scratch, file->pending.data, length, file->scratch.size, error));
    file->scratch.size += length;
    file->pending.size = 0;
    return DOPPEL_OK;
}

doppel_status dp_append_file_add(dp_append_file *file, const void *bytes, size_t length, doppel_error *error) {
    if (!length)
        return DOPPEL_OK;
    if (!dp_buffer_add(&file->pending, bytes, length))
        return dp_no_memory(error);
    return file->pending.size < PIECE ? DOPPEL_OK : dp_append_file_flush(file, error);
}

doppel_status dp_append_file_read(const dp_append_file *file, uint64_t at, void *bytes, size_t length,
                                  doppel_error *error) {
    return length ? dp_scratch_read(&file->scratch, bytes, length, at, error) : DOPPEL_OK;
}

/* ---- the sorter: in memory ---- */

/* Up to this many records are sorted by insertion: counting 256 digits would cost more. */
#define SMALL 48

/* Records buffered at least: with fewer, runs would be so short that their number becomes the cost. */
#define LEAST_SHARE 4096

/* Bytes read of a run at a time while merging: below it, seeking costs more than reading. */
#define LEAST_PART ((uint64_t)64 << 10)

void dp_sorter_init(dp_sorter *sorter, const dp_sorter_options *options) {
    *sorter = (dp_sorter){.options = *options};
    uint64_t record = dp_sorter_record_bytes(options->words);
    sorter->options.merge_memory = options->merge_memory ? options->merge_memory : options->memory;
    uint64_t share = options->memory / record, fan_in = sorter->options.merge_memory / LEAST_PART;
    sorter->share = share < LEAST_SHARE ? LEAST_SHARE : share > SIZE_MAX / record ? SIZE_MAX / record : (size_t)share;
    sorter->fan_in = fan_in < 8 ? 8 : fan_in > 1024 ? 1024 : (size_t)fan_in;
}

void dp_sorter_free(dp_sorter *sorter) {
    for (size_t i = 0; i < sorter->run_count; i++)
        free(sorter->runs[i].part);
    free(sorter->runs);
    free(sorter->heap);
    free(sorter->records);
    free(sorter->order);
    free(sorter->scratch);
    if (sorter->file.open)
        dp_scratch_close(&sorter->file);
    *sorter = (dp_sorter){0};
}

static const uint64_t *record_of(const dp_sorter *sorter, uint64_t number) {
    return sorter->records + number * sorter->options.words;
}

/* Sorts a few, which are the same before `word`; they stand in the order in which they came. */
static void sort_few(const dp_sorter *sorter, dp_sorter_item *items, size_t count, size_t word) {
    size_t keys = sorter->options.keys;
    for (size_t i = 1; i < count; i++) {
        dp_sorter_item item = items[i];
        const uint64_t *record = record_of(sorter, item.number);
        size_t at = i;
        for (; at; at--) {
            const uint64_t *before = record_of(sorter, items[at - 1].number);
            size_t w = word;
            while (w < keys && before[w] == record[w])
                w++;
            if (w == keys || before[w] < record[w])
                break;
            items[at] = items[at - 1];
        }
        items[at] = item;
    }
}

/* One byte of the key: from -> to. False, and nothing is done, when all have the same. */
static bool sort_byte(const dp_sorter_item *from, dp_sorter_item *to, size_t count, int shift) {
    size_t places[256] = {0}, next = 0;
    for (size_t i = 0; i < count; i++)
        places[from[i].key >> shift & 255]++;
    if (places[from[0].key >> shift & 255] == count)
        return false;
    for (size_t digit = 0; digit < 256; digit++) {
        size_t here = places[digit];
        places[digit] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++)
        to[places[from[i].key >> shift & 255]++] = from[i];
    return true;
}

static void sort_key(dp_sorter_item *items, dp_sorter_item *scratch, size_t count) {
    dp_sorter_item *here = items, *there = scratch;
    for (int shift = 0; shift < 64; shift += 8)
        if (sort_byte(here, there, count, shift)) {
            dp_sorter_item *swapped = here;
            here = there;
            there = swapped;
        }
    if (here != items)
        memcpy(items, here, count * sizeof *items);
}

/* Sorts items that are the same before `word`. */
static void sort_items(const dp_sorter *sorter, dp_sorter_item *items, size_t count, size_t word) {
    if (count <= SMALL) {
        sort_few(sorter, items, count, word);
        return;
    }
    for (size_t i = 0; i < count; i++)
        items[i].key = record_of(sorter, items[i].number)[word];
    sort_key(items, sorter->scratch + (items - sorter->order), count);
    if (word + 1 == sorter->options.keys)
        return;
    for (size_t start = 0, end; start < count; start = end) {
        for (end = start + 1; end < count && items[end].key == items[start].key;)
            end++;
        sort_items(sorter, items + start, end - start, word + 1);
    }
}

static doppel_status sort_numbers(dp_sorter *sorter, doppel_error *error) {
    uint64_t *scratch = malloc((sorter->count + 1) * sizeof *scratch);
    if (!scratch)
        return dp_no_memory(error);
    dp_sort64(sorter->records, sorter->count, scratch);
    if (sorter->options.unique)
        sorter->count = dp_unique64(sorter->records, sorter->count);
    free(scratch);
    return DOPPEL_OK;
}

static doppel_status sort_buffer(dp_sorter *sorter, doppel_error *error) {
    if (!sorter->count || sorter->options.words == 1)
        return sorter->count ? sort_numbers(sorter, error) : DOPPEL_OK;
    free(sorter->order);
    sorter->order = malloc((sorter->count + 1) * sizeof *sorter->order);
    sorter->scratch = malloc((sorter->count + 1) * sizeof *sorter->scratch);
    bool done = sorter->order && sorter->scratch;
    if (done) {
        for (size_t i = 0; i < sorter->count; i++)
            sorter->order[i].number = i;
        sort_items(sorter, sorter->order, sorter->count, 0);
    }
    free(sorter->scratch);
    sorter->scratch = NULL;
    return done ? DOPPEL_OK : dp_no_memory(error);
}

/* ---- writing runs ---- */

/* Records buffered for the file. */
typedef struct run_writer {
    dp_sorter *sorter;
    uint64_t *piece;
    size_t count, room;
    dp_sorter_run run;
} run_writer;

static doppel_status writer_open(run_writer *writer, dp_sorter *sorter, doppel_error *error) {
    size_t bytes = sorter->options.words * 8, room = PIECE / bytes ? PIECE / bytes : 1;
    *writer = (run_writer){.sorter = sorter, .room = room, .run = {.at = sorter->written}};
    if (!sorter->file.open)
        DP_TRY(dp_scratch_open(&sorter->file, sorter->options.tmp, error));
    writer->piece = malloc(room * bytes);
    return writer->piece ? DOPPEL_OK : dp_no_memory(error);
}

static doppel_status writer_flush(run_writer *writer, doppel_error *error) {
    dp_sorter *sorter = writer->sorter;
    size_t bytes = sorter->options.words * 8;
    DP_TRY(dp_scratch_write(&sorter->file, writer->piece, writer->count * bytes, sorter->written * bytes, error));
    sorter->written += writer->count;
    writer->run.left += writer->count;
    writer->count = 0;
    return DOPPEL_OK;
}

static doppel_status writer_add(run_writer *writer, const uint64_t *record, doppel_error *error) {
    size_t words = writer->sorter->options.words;
    memcpy(writer->piece + writer->count * words, record, words * 8);
    return ++writer->count < writer->room ? DOPPEL_OK : writer_flush(writer, error);
}

static doppel_status write_run(dp_sorter *sorter, doppel_error *error) {
    run_writer writer;
    if (!dp_reserve(&sorter->runs, &sorter->run_room, sorter->run_count + 1, sizeof *sorter->runs))
        return dp_no_memory(error);
    doppel_status status = writer_open(&writer, sorter, error);
    for (size_t i = 0; i < sorter->count && status == DOPPEL_OK; i++)
        status = writer_add(&writer, dp_sorter_record(sorter, i), error);
    DP_THEN(status, writer_flush(&writer, error));
    if (status == DOPPEL_OK)
        sorter->runs[sorter->run_count++] = writer.run;
    free(writer.piece);
    return status;
}

/* ---- merging runs ---- */

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
    uint64_t room = sorter->options.merge_memory / runs / (sorter->options.words * 8);
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
            DP_TRY(read_part(sorter, run, run->part_count, error));
        } else {
            free(run->part);
            run->part = NULL;
            sorter->heap[0] = sorter->heap[--sorter->heap_count];
        }
    }
    sift_down(sorter, 0);
    return DOPPEL_OK;
}

static doppel_status next_merged(dp_sorter *sorter, const uint64_t **record, doppel_error *error) {
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
    DP_THEN(status, open_runs(sorter, first, count, error));
    while (status == DOPPEL_OK && (status = next_merged(sorter, &record, error)) == DOPPEL_OK && record)
        status = writer_add(&writer, record, error);
    DP_THEN(status, writer_flush(&writer, error));
    *merged = writer.run;
    free(writer.piece);
    return status;
}

static doppel_status merge_all(dp_sorter *sorter, doppel_error *error) {
    while (sorter->run_count > sorter->fan_in) {
        size_t kept = 0;
        for (size_t first = 0, count; first < sorter->run_count; first += count) {
            dp_sorter_run merged;
            count = sorter->run_count - first < sorter->fan_in ? sorter->run_count - first : sorter->fan_in;
            DP_TRY(merge_runs(sorter, first, count, &merged, error));
            sorter->runs[kept++] = merged;
        }
        sorter->run_count = kept;
    }
    return open_runs(sorter, 0, sorter->run_count, error);
}

/* ---- the calls ---- */

/* Sorts the buffer and writes it out, unless half of it or more were repeats and it need not be `emptied`. */
static doppel_status write_buffer(dp_sorter *sorter, bool emptied, doppel_error *error) {
    if (dp_stopped(sorter->options.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    doppel_status status = sort_buffer(sorter, error);
    if (status == DOPPEL_OK && !emptied && sorter->count <= sorter->share / 2)
        return DOPPEL_OK;
    DP_THEN(status, write_run(sorter, error));
    sorter->count = 0;
    return status;
}

doppel_status dp_sorter_add(dp_sorter *sorter, const uint64_t *record, doppel_error *error) {
    size_t words = sorter->options.words;
    if (sorter->count == sorter->share) {
        DP_TRY(write_buffer(sorter, false, error));
    }
    if (sorter->count == sorter->room) {
        size_t room = sorter->room ? 2 * sorter->room : LEAST_SHARE;
        room = room < sorter->share ? room : sorter->share;
        uint64_t *grown = realloc(sorter->records, room * words * 8);
        if (!grown)
            return dp_no_memory(error);
        sorter->records = grown;
        sorter->room = room;
    }
    memcpy(sorter->records + sorter->count++ * words, record, words * 8);
    return DOPPEL_OK;
}

doppel_status dp_sorter_spill(dp_sorter *sorter, doppel_error *error) {
    doppel_status status = sorter->count ? write_buffer(sorter, true, error) : DOPPEL_OK;
    free(sorter->records);
    free(sorter->order);
    sorter->records = NULL;
    sorter->order = NULL;
    sorter->room = 0;
    return status;
}

doppel_status dp_sorter_finish(dp_sorter *sorter, doppel_error *error) {
    if (!sorter->run_count)
        return sort_buffer(sorter, error);
    doppel_status status = dp_sorter_spill(sorter, error);
    return status == DOPPEL_OK ? merge_all(sorter, error) : status;
}

doppel_status dp_sorter_next(dp_sorter *sorter, const uint64_t **record, doppel_error *error) {
    if (sorter->run_count)
        return next_merged(sorter, record, error);
    *record = sorter->next < sorter->count ? dp_sorter_record(sorter, sorter->next++) : NULL;
    return DOPPEL_OK;
}
