/* batches.h - what tests of batches share: files of documents, and what a batch says of them, as text. */
#ifndef TESTS_BATCHES_H
#define TESTS_BATCHES_H

#include "files.h"

#include "batch/batch.h"

#include <math.h>
#include <stdio.h>

/* ---- documents ---- */

/* Words of a language with 20,000 of them. */
static inline void add_words(dp_buffer *text, uint64_t *state, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_true(dp_buffer_printf(text, "w%zu ", random_below(state, 20000)));
}

/* A record with an id, a text, and other members as they stand (or ""). */
static inline void add_record(dp_buffer *file, const char *id, const char *text, const char *more) {
    assert_true(dp_buffer_printf(file, "{\"id\":\"%s\",\"text\":\"%s\"%s}\n", id, text, more));
}

static inline void save_records(dp_buffer *file, const char *path) {
    spit(path, file->data ? file->data : "", file->size);
    dp_buffer_free(file);
}

/* Documents of `words` words. Of every five, the second equals the first, the third has one word changed, the fourth
 * four; the fifth has two words, or none. */
static inline void save_mixture(const char *path, size_t count, size_t words) {
    dp_buffer file = {0}, text = {0}, edited = {0};
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        char id[32];
        snprintf(id, sizeof id, "d%zu", i);
        if (i % 5 == 0) {
            text.size = 0;
            add_words(&text, &state, words);
            assert_true(dp_buffer_add(&text, "", 1));
        }
        edited.size = 0;
        assert_true(dp_buffer_add(&edited, text.data, text.size));
        for (size_t k = 0; k < (i % 5 == 2 ? 1u : i % 5 == 3 ? 4u : 0u); k++)
            edited.data[1 + random_below(&state, text.size - 3)] = 'x';
        add_record(&file, id, i % 5 < 4 ? edited.data : i % 10 == 4 ? "" : "two words", "");
    }
    save_records(&file, path);
    dp_buffer_free(&text);
    dp_buffer_free(&edited);
}

/* ---- batches ---- */

/* A batch that has read the paths; those before `known` are known. */
static inline doppel_batch *read_batch(doppel_batch_options options, const char *const *paths, size_t count,
                                       size_t known) {
    doppel_batch *batch = NULL;
    doppel_error error = {0};
    options.size = sizeof options;
    doppel_status status = doppel_batch_create(&options, &batch, &error);
    if (status == DOPPEL_OK && known)
        status = doppel_batch_read(batch, paths, known, true, NULL, &error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, paths + known, count - known, false, NULL, &error);
    if (status != DOPPEL_OK)
        fail_msg("%s: %s", error.file, error.message);
    return batch;
}

static inline void decide(doppel_batch *batch) {
    doppel_error error = {0};
    if (doppel_batch_decide(batch, &error) != DOPPEL_OK)
        fail_msg("%s: %s", error.file, error.message);
}

static inline void add_id(dp_buffer *lines, const doppel_batch *batch, uint64_t position) {
    char id[200];
    size_t length = doppel_batch_id(batch, position, id, sizeof id);
    assert_true(dp_buffer_add(lines, id, length));
}

static inline void add_similarity(dp_buffer *lines, double similarity) {
    if (isnan(similarity))
        assert_true(dp_buffer_printf(lines, " ?"));
    else
        assert_true(dp_buffer_printf(lines, " %.4f", similarity));
}

/* What was decided: a line "id original reason similarity" for each copy. */
static inline dp_buffer decisions(const doppel_batch *batch) {
    dp_buffer lines = {0};
    for (uint64_t i = 0; i < doppel_batch_count(batch); i++) {
        doppel_near near;
        doppel_batch_get(batch, i, &near);
        assert_int_equal(near.b, i);
        if (near.a == i)
            continue;
        add_id(&lines, batch, i);
        assert_true(dp_buffer_add(&lines, " ", 1));
        add_id(&lines, batch, near.a);
        assert_true(dp_buffer_printf(&lines, " %s", doppel_reason_name(near.reason)));
        add_similarity(&lines, near.similarity);
        assert_true(dp_buffer_add(&lines, "\n", 1));
    }
    assert_true(dp_buffer_add(&lines, "", 1));
    return lines;
}

static inline doppel_status take_pair_lines(const doppel_near *pairs, size_t count, void *user) {
    dp_buffer *lines = user;
    for (size_t i = 0; i < count; i++) {
        assert_true(pairs[i].a < pairs[i].b);
        assert_true(dp_buffer_printf(lines, "%llu %llu %d", (unsigned long long)pairs[i].a,
                                     (unsigned long long)pairs[i].b, pairs[i].distance));
        add_similarity(lines, pairs[i].similarity);
        assert_true(dp_buffer_add(lines, "\n", 1));
    }
    return DOPPEL_OK;
}

/* A line "a b distance similarity" for each pair. */
static inline dp_buffer pair_lines(doppel_batch *batch, bool collapse) {
    dp_buffer lines = {0};
    doppel_error error = {0};
    if (doppel_batch_find_pairs(batch, collapse, take_pair_lines, &lines, &error) != DOPPEL_OK)
        fail_msg("%s: %s", error.file, error.message);
    assert_true(dp_buffer_add(&lines, "", 1));
    return lines;
}

/* Reads one path, decides, and compares with what is expected. */
static inline void check_decisions(doppel_batch_options options, const char *path, const char *expected) {
    doppel_batch *batch = read_batch(options, &path, 1, 0);
    decide(batch);
    dp_buffer lines = decisions(batch);
    assert_string_equal(lines.data, expected);
    dp_buffer_free(&lines);
    doppel_batch_free(batch);
}

#endif
