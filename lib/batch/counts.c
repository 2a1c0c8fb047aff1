/* counts.c - how many documents each group has and, with count_by, how many of them have each value of a field.
 *
 * Sizes are counted from what was decided. The values are not kept while documents are read: the inputs are read once
 * more. Each value gets a number; the pairs of a group and a value, one a document, are sorted, and equal ones counted.
 * Memory: 4 bytes a document, with count_by 28 more, and the values themselves. */
#include "batch/batch.h"

#include <stdlib.h>

/* The number of originals there may be. */
static size_t most_groups(const doppel_batch *batch) {
    return batch->documents.count + batch->matches.original_count;
}

/* The group of a document: the number of its original. */
static uint32_t group_of(const doppel_batch *batch, uint64_t position) {
    const dp_index_match *match = batch->matches.count ? dp_matches_get(&batch->matches, (uint32_t)position) : NULL;
    return match ? (uint32_t)batch->documents.count + match->original : batch->decisions.original[position];
}

static bool count_sizes(doppel_batch *batch) {
    uint32_t *size = batch->counts.size = calloc(most_groups(batch) + 1, sizeof *size);
    for (size_t d = batch->documents.known; size && d < batch->documents.count; d++)
        size[group_of(batch, d)]++;
    return size;
}

/* ---- the values ---- */

typedef struct value_reading {
    doppel_batch *batch;
    dp_hashmap numbers; /* of values, + 1, by their hash */
    uint64_t *pair;     /* of each document that has a value: its group << 32 | the number of the value */
    size_t pairs;
    uint64_t position;
    bool too_many; /* more documents came than were read before */
} value_reading;

static doppel_slice value_at(const dp_group_counts *counts, uint64_t number) {
    return (doppel_slice){counts->values.data + counts->at[number], counts->at[number + 1] - counts->at[number]};
}

typedef struct looked_value {
    const dp_group_counts *counts;
    doppel_slice value;
} looked_value;

static bool is_value(const void *user, uint64_t number) {
    const looked_value *looked = user;
    doppel_slice value = value_at(looked->counts, number - 1);
    return value.length == looked->value.length && !memcmp(value.data, looked->value.data, value.length);
}

/* The number of a value, from 1; 0: no memory. */
static uint64_t number_of(value_reading *r, doppel_slice value) {
    dp_group_counts *counts = &r->batch->counts;
    const looked_value looked = {counts, value};
    uint64_t *number = dp_hashmap_add_if(&r->numbers, dp_murmur3(value.data, value.length, 0), is_value, &looked);
    if (!number || *number)
        return number ? *number : 0;
    if (!dp_buffer_add(&counts->values, value.data, value.length) ||
        !dp_reserve(&counts->at, &counts->at_room, counts->value_count + 2, sizeof *counts->at))
        return 0;
    counts->at[counts->value_count] = counts->values.size - value.length;
    counts->at[++counts->value_count] = counts->values.size;
    return *number = counts->value_count;
}

/* doppel_work.document: the length of the value, + 1, and the value; 0: there is none. */
static doppel_status write_value(void *state, const doppel_document *document, doppel_output *output) {
    const doppel_slice value = document->extra[0];
    const uint64_t length = value.data ? value.length + 1 : 0;
    (void)state;
    DP_TRY(doppel_output_write(output, dp_bytes(&length, sizeof length)));
    return length ? doppel_output_write(output, value) : DOPPEL_OK;
}

/* doppel_work.emit */
static doppel_status take_values(void *user, doppel_slice bytes) {
    value_reading *r = user;
    uint64_t length;
    for (const char *at = bytes.data, *end = at + bytes.length; at < end; at += length ? length - 1 : 0) {
        memcpy(&length, at, sizeof length);
        at += sizeof length;
        if (r->position == r->batch->documents.count) {
            r->too_many = true;
            return DOPPEL_ERROR_INTERRUPTED;
        }
        uint64_t position = r->position++, number = length ? number_of(r, (doppel_slice){at, length - 1}) : 1;
        if (!number)
            return DOPPEL_ERROR_MEMORY;
        if (length)
            r->pair[r->pairs++] = (uint64_t)group_of(r->batch, position) << 32 | (number - 1);
    }
    return DOPPEL_OK;
}

static doppel_status read_values(value_reading *r, const dp_reading *reading, doppel_error *error) {
    const dp_batch_settings *s = &r->batch->settings;
    const doppel_work work = {.user = r, .document = write_value, .emit = take_values};
    doppel_input_options options = s->input;
    uint64_t first = r->position;
    options.bad = NULL;
    options.unseen = NULL;
    options.strict = options.refuse_bad = false;
    options.extra_keys = &s->options.count_by;
    options.extra_count = 1;
    const dp_input_paths paths = {(const char *const *)reading->paths, reading->count};
    DP_TRY(dp_check_pipes(&paths, error));
    DP_TRY(dp_readings_rewind(r->batch, reading, error));
    doppel_status status = doppel_input_run(paths.path, paths.count, &options, &work, NULL, error);
    if (r->too_many && r->batch->readings.limit_reached)
        return DOPPEL_OK;
    bool other = status == DOPPEL_OK && r->position - first != reading->counts.documents;
    return r->too_many || other ? dp_inputs_changed(error) : status;
}

/* ---- the counts ---- */

/* The most frequent first; equally frequent ones by their bytes. */
static int compare_counts(const void *x, const void *y, void *user) {
    const dp_value_count *a = x, *b = y;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    doppel_slice s = value_at(user, a->value), t = value_at(user, b->value);
    size_t shorter = s.length < t.length ? s.length : t.length;
    int order = shorter ? memcmp(s.data, t.data, shorter) : 0;
    return order ? order : (s.length > t.length) - (s.length < t.length);
}

/* Counts equal pairs, which are sorted. */
static bool count_pairs(const value_reading *r) {
    dp_group_counts *counts = &r->batch->counts;
    size_t groups = most_groups(r->batch), used = 0;
    counts->start = calloc(groups + 1, sizeof *counts->start);
    counts->count = malloc((r->pairs + 1) * sizeof *counts->count);
    if (!counts->start || !counts->count)
        return false;
    for (size_t group = 0, i = 0; group < groups; group++) {
        counts->start[group] = used;
        for (; i < r->pairs && r->pair[i] >> 32 == group; i++) {
            uint32_t value = (uint32_t)r->pair[i];
            if (used == counts->start[group] || counts->count[used - 1].value != value)
                counts->count[used++] = (dp_value_count){.value = value};
            counts->count[used - 1].count++;
        }
        qsort_r(counts->count + counts->start[group], used - counts->start[group], sizeof *counts->count,
                compare_counts, counts);
    }
    counts->start[groups] = used;
    return true;
}

static doppel_status count_values(doppel_batch *batch, doppel_error *error) {
    size_t documents = batch->documents.count - batch->documents.known;
    value_reading r = {
        .batch = batch, .position = batch->documents.known, .pair = malloc((documents + 1) * sizeof *r.pair)};
    uint64_t *scratch = NULL;
    doppel_status status = r.pair ? DOPPEL_OK : dp_no_memory(error);
    for (size_t i = 0; i < batch->readings.count && status == DOPPEL_OK; i++)
        if (!batch->readings.reading[i].known)
            status = read_values(&r, &batch->readings.reading[i], error);
    dp_hashmap_free(&r.numbers);
    const doppel_input_options *input = &batch->settings.input;
    if (status == DOPPEL_OK && documents && !r.pairs && input->unseen)
        input->unseen(batch->settings.options.count_by, input->user);
    if (status == DOPPEL_OK && !(scratch = malloc((r.pairs + 1) * sizeof *scratch)))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK) {
        dp_sort64_on(batch->settings.threads, r.pair, r.pairs, scratch);
        status = count_pairs(&r) ? DOPPEL_OK : dp_no_memory(error);
    }
    free(scratch);
    free(r.pair);
    return status;
}

/* ---- the calls ---- */

doppel_status doppel_batch_count_groups(doppel_batch *batch, doppel_error *error) {
    dp_group_counts_free(&batch->counts);
    if (!batch->decisions.made)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "groups can be counted once they are decided");
    doppel_status status = count_sizes(batch) ? DOPPEL_OK : dp_no_memory(error);
    if (batch->settings.options.count_by)
        DP_THEN(status, count_values(batch, error));
    if (status != DOPPEL_OK)
        dp_group_counts_free(&batch->counts);
    return status;
}

uint64_t doppel_batch_group_size(const doppel_batch *batch, uint64_t position) {
    return batch->counts.size ? batch->counts.size[group_of(batch, position)] : 0;
}

bool doppel_batch_group_value(const doppel_batch *batch, uint64_t position, size_t index, doppel_slice *value,
                              uint64_t *count) {
    const dp_group_counts *counts = &batch->counts;
    uint32_t group = group_of(batch, position);
    if (!counts->start || index >= counts->start[group + 1] - counts->start[group])
        return false;
    const dp_value_count *found = &counts->count[counts->start[group] + index];
    *value = value_at(counts, found->value);
    *count = found->count;
    return true;
}
