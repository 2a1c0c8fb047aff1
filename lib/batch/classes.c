/* classes.c - documents of one URL, or of one title, and which titles are near which; the order of keeping. */
#include "batch/batch.h"
#include "title/title.h"

#include <math.h>
#include <stdlib.h>

/* ---- documents with similar titles: classes of one title, and which titles are near which.
 *
 * Titles that are no evidence (dp_title_counts) have no class. Similar ones are found through the title index, which
 * misses none. */

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

/* ---- the order of keeping ---- */

static int compare_ranks(const void *x, const void *y, void *user) {
    const doppel_batch *batch = user;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    bool a_known = a < batch->known, b_known = b < batch->known;
    if (a_known != b_known)
        return a_known ? -1 : 1;
    if (a_known)
        return a < b ? -1 : 1;
    size_t rules = batch->keep.count;
    return dp_keep_compare(&batch->keep, &(dp_keep_place){batch->ranks + a * rules, a},
                           &(dp_keep_place){batch->ranks + b * rules, b});
}

bool dp_keep_order_make(const doppel_batch *batch, dp_keep_order *order) {
    *order = (dp_keep_order){0};
    if (!batch->keep.count)
        return true;
    order->document = malloc((batch->count + 1) * sizeof *order->document);
    order->rank = malloc((batch->count + 1) * sizeof *order->rank);
    if (!order->document || !order->rank)
        return false;
    for (size_t i = 0; i < batch->count; i++)
        order->document[i] = (uint32_t)i;
    qsort_r(order->document, batch->count, sizeof *order->document, compare_ranks, (void *)batch);
    for (size_t i = 0; i < batch->count; i++)
        order->rank[order->document[i]] = (uint32_t)i;
    return true;
}

void dp_keep_order_free(dp_keep_order *order) {
    free(order->document);
    free(order->rank);
}

/* ---- the same URL ---- */

static bool same_url(const doppel_batch *batch, uint32_t a, uint32_t b) {
    return !memcmp(batch->url[a], batch->url[b], sizeof batch->url[a]) &&
           (!batch->options.within || batch->scope[a] == batch->scope[b]);
}

/* Those with one hash, of which `entry` has the numbers in its low half: each gets the first that is the same. */
static void find_firsts(const doppel_batch *batch, const uint64_t *entry, size_t count, uint32_t *of) {
    for (size_t i = 0; i < count; i++) {
        uint32_t document = (uint32_t)entry[i];
        for (size_t j = 0; j < i && of[document] == DP_NO_DOCUMENT; j++)
            if (of[(uint32_t)entry[j]] == (uint32_t)entry[j] && same_url(batch, (uint32_t)entry[j], document))
                of[document] = (uint32_t)entry[j];
        if (of[document] == DP_NO_DOCUMENT)
            of[document] = document;
    }
}

/* 32 bits of a document's URL, and of its scope where that counts; the key keeps anybody from choosing URLs that meet.
 */
static uint64_t url_entry(const doppel_batch *batch, uint32_t document, const uint64_t key[2]) {
    const uint64_t names[3] = {batch->url[document][0], batch->url[document][1],
                               batch->options.within ? batch->scope[document] : 0};
    return dp_siphash(names, sizeof names, key) << 32 | document;
}

bool dp_url_classes(const doppel_batch *batch, uint32_t **of) {
    const uint64_t key[2] = {dp_random_number(), dp_random_number()};
    size_t count = 0;
    uint64_t *entry = malloc((batch->count + 1) * sizeof *entry), *scratch = malloc((batch->count + 1) * sizeof *entry);
    *of = malloc((batch->count + 1) * sizeof **of);
    bool made = entry && scratch && *of;
    for (size_t i = 0; made && i < batch->count; i++) {
        (*of)[i] = DP_NO_DOCUMENT;
        if (batch->url[i][0] || batch->url[i][1])
            entry[count++] = url_entry(batch, (uint32_t)i, key);
    }
    if (made)
        dp_sort64(entry, count, scratch);
    for (size_t from = 0, to; made && from < count; from = to) {
        for (to = from + 1; to < count && entry[to] >> 32 == entry[from] >> 32;)
            to++;
        find_firsts(batch, entry + from, to - from, *of);
    }
    free(entry);
    free(scratch);
    return made;
}
