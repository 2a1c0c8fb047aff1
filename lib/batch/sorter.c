/* sorter.c - records in memory: held, and sorted when there are enough of them.
 *
 * Records of one number are sorted as they stand. Else not the records are moved but their numbers, each with one word
 * of its record: sorted by the first word (by bytes, the least first, leaving out those that are the same in all), then
 * each run of equal ones by the next word, and so on. */
#include "batch/sorter.h"

#include <stdlib.h>

/* So few are sorted by insertion: counting 256 digits would cost more. */
#define SMALL 48

/* The least that is held: with fewer, runs would be so short that their number becomes the cost. */
#define LEAST_SHARE 4096

/* What is read of a run at once when they are merged: below it, seeking costs more than reading. */
#define LEAST_PART ((uint64_t)64 << 10)

void dp_sorter_init(dp_sorter *sorter, const dp_sorter_options *options) {
    *sorter = (dp_sorter){.options = *options};
    uint64_t record = options->words == 1 ? 16 : options->words * 8 + 2 * sizeof(dp_sorter_item);
    uint64_t share = options->memory / record, fan_in = options->memory / LEAST_PART;
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

/* ---- sorting ---- */

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

/* ---- the calls ---- */

/* Sorts the buffer and writes it out, but where half of it or more were repeats, and it need not be `emptied`. */
static doppel_status spill(dp_sorter *sorter, bool emptied, doppel_error *error) {
    if (dp_stopped(sorter->options.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    doppel_status status = sort_buffer(sorter, error);
    if (status == DOPPEL_OK && !emptied && sorter->count <= sorter->share / 2)
        return DOPPEL_OK;
    if (status == DOPPEL_OK)
        status = dp_sorter_write_run(sorter, error);
    sorter->count = 0;
    return status;
}

doppel_status dp_sorter_add(dp_sorter *sorter, const uint64_t *record, doppel_error *error) {
    size_t words = sorter->options.words;
    if (sorter->count == sorter->share) {
        doppel_status status = spill(sorter, false, error);
        if (status != DOPPEL_OK)
            return status;
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

doppel_status dp_sorter_finish(dp_sorter *sorter, doppel_error *error) {
    if (!sorter->run_count)
        return sort_buffer(sorter, error);
    doppel_status status = sorter->count ? spill(sorter, true, error) : DOPPEL_OK;
    free(sorter->records);
    free(sorter->order);
    sorter->records = NULL;
    sorter->order = NULL;
    return status == DOPPEL_OK ? dp_sorter_merge(sorter, error) : status;
}

doppel_status dp_sorter_next(dp_sorter *sorter, const uint64_t **record, doppel_error *error) {
    if (sorter->run_count)
        return dp_sorter_merged(sorter, record, error);
    *record = sorter->next < sorter->count ? dp_sorter_record(sorter, sorter->next++) : NULL;
    return DOPPEL_OK;
}
