/* titles.c - documents with similar titles: classes of one title, and which titles are near which.
 *
 * Titles that are no evidence (dp_title_counts) have no class. Similar ones are found through the title index, which
 * misses none. */
#include "batch/batch.h"
#include "index/index.h"

#include <math.h>
#include <stdlib.h>

void dp_titles_free(dp_titles *titles) {
    free(titles->of);
    free(titles->first);
    free(titles->start);
    free(titles->near);
    free(titles->similarity);
    *titles = (dp_titles){0};
}

/* Reads a title back; its bytes are in `text`. */
static doppel_status read_title(const doppel_batch *batch, uint32_t document, dp_buffer *text, doppel_error *error) {
    const dp_title *title = &batch->title[document];
    text->size = 0;
    if (!dp_reserve(&text->data, &text->capacity, title->length, 1))
        return dp_no_memory(error);
    text->size = title->length;
    return dp_spill_read(&batch->journal, title->at, text->data, title->length, error);
}

static bool counts(const dp_buffer *text) {
    return dp_title_counts((doppel_slice){text->data, text->size});
}

/* Puts all titles into the index, each with its documents as owners. */
static doppel_status fill_index(const doppel_batch *batch, dp_titles_index *index, doppel_error *error) {
    dp_buffer text = {0};
    doppel_status status = DOPPEL_OK;
    for (size_t d = 0; d < batch->count && status == DOPPEL_OK; d++) {
        status = read_title(batch, (uint32_t)d, &text, error);
        if (status == DOPPEL_OK && counts(&text) &&
            (status = dp_titles_index_add(index, text.data, text.size, d)) != DOPPEL_OK)
            dp_fail(error, status, "%s", doppel_status_name(status));
        if (status == DOPPEL_OK && dp_stopped(batch->input.stop))
            status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    }
    dp_buffer_free(&text);
    return status;
}

/* Gives every owner of a title its class. */
static bool number_class(dp_titles *titles, const dp_title_match *match) {
    size_t class = titles->count;
    if (!dp_reserve(&titles->first, &titles->first_room, class + 1, sizeof *titles->first) ||
        !dp_reserve(&titles->start, &titles->start_room, class + 2, sizeof *titles->start))
        return false;
    titles->first[class] = (uint32_t)match->owners[0];
    for (size_t i = 0; i < match->owner_count; i++)
        titles->of[match->owners[i]] = (uint32_t) class;
    titles->count++;
    return true;
}

/* Notes the titles that are near one, by their first documents; classes are not numbered yet. */
static bool note_near(dp_titles *titles, const dp_title_matches *matches, uint32_t document) {
    for (size_t i = 0; i < matches->count; i++) {
        const dp_title_match *match = &matches->match[i];
        if (match->owners[0] == document)
            continue;
        if (!dp_reserve(&titles->near, &titles->near_room, titles->near_count + 1, sizeof *titles->near) ||
            !dp_reserve(&titles->similarity, &titles->similarity_room, titles->near_count + 1,
                        sizeof *titles->similarity))
            return false;
        titles->near[titles->near_count] = (uint32_t)match->owners[0];
        titles->similarity[titles->near_count++] = match->similarity;
    }
    return true;
}

static bool note_title(dp_titles *titles, const dp_title_matches *matches, uint32_t document) {
    for (size_t i = 0; i < matches->count; i++)
        if (matches->match[i].owners[0] == document) {
            if (!number_class(titles, &matches->match[i]))
                return false;
            titles->start[titles->count - 1] = titles->near_count;
            bool noted = note_near(titles, matches, document);
            titles->start[titles->count] = titles->near_count;
            return noted;
        }
    return true; /* an earlier document has the title */
}

static doppel_status find_all(const doppel_batch *batch, const dp_titles_index *index, dp_titles *titles,
                              doppel_error *error) {
    dp_buffer text = {0};
    dp_title_matches matches = {0};
    doppel_status status = DOPPEL_OK;
    for (size_t d = 0; d < batch->count && status == DOPPEL_OK; d++) {
        if (titles->of[d] != DP_NO_DOCUMENT)
            continue;
        status = read_title(batch, (uint32_t)d, &text, error);
        if (status != DOPPEL_OK || !counts(&text))
            continue;
        status = dp_titles_index_find(index, text.data, text.size, &matches);
        if (status != DOPPEL_OK || !note_title(titles, &matches, (uint32_t)d))
            status = dp_no_memory(error);
        if (status == DOPPEL_OK && dp_stopped(batch->input.stop))
            status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        dp_batch_tell(batch, "titles", d, batch->count);
    }
    /* Now all classes have numbers. */
    for (size_t i = 0; i < titles->near_count && status == DOPPEL_OK; i++)
        titles->near[i] = titles->of[titles->near[i]];
    dp_title_matches_free(&matches);
    dp_buffer_free(&text);
    return status;
}

doppel_status dp_titles_find(const doppel_batch *batch, dp_titles *titles, doppel_error *error) {
    dp_titles_index *index = NULL;
    *titles = (dp_titles){.of = malloc((batch->count + 1) * sizeof *titles->of)};
    if (!titles->of || dp_titles_index_create(DP_TITLE_SIMILARITY, &index) != DOPPEL_OK)
        return dp_no_memory(error);
    memset(titles->of, 255, (batch->count + 1) * sizeof *titles->of); /* DP_NO_DOCUMENT */
    doppel_status status = fill_index(batch, index, error);
    if (status == DOPPEL_OK)
        status = find_all(batch, index, titles, error);
    dp_titles_index_free(index);
    return status;
}

double dp_titles_similarity(const dp_titles *titles, uint32_t a, uint32_t b) {
    uint32_t class_a = titles->of ? titles->of[a] : DP_NO_DOCUMENT,
             class_b = titles->of ? titles->of[b] : DP_NO_DOCUMENT;
    if (class_a == DP_NO_DOCUMENT || class_b == DP_NO_DOCUMENT)
        return NAN;
    if (class_a == class_b)
        return 1;
    for (uint64_t i = titles->start[class_a]; i < titles->start[class_a + 1]; i++)
        if (titles->near[i] == class_b)
            return titles->similarity[i];
    return NAN;
}
