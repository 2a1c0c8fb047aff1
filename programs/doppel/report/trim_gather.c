/* trim_gather.c - what a report shows of a trim: its most repeated units; then, in one reading of the inputs, how much
 * of each document is cut, a few documents before and after, and those that were dropped or emptied.
 *
 * Of each kind of document (LOST_MOST, ...) some are drawn at random, by a hash of their position, so that a page is
 * the same every time. Of documents that repeat the same one, one is drawn: a page with a footer in every document
 * shows more than that footer. */
#include "report/trim.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a text that are kept before its first cut: far more than the words that are shown of them. */
#define TEXT_BEFORE ((uint64_t)8 << 10)

static void free_trimmed(shown_trimmed *d) {
    free(d->id);
    free(d->url);
    free(d->file);
    free(d->text);
    for (size_t i = 0; i < d->originals; i++)
        free(d->original[i].id);
}

void trim_report_free(trim_report *r) {
    for (size_t k = 0; k < LOST_KINDS; k++)
        for (size_t i = 0; i < r->kind[k].count; i++)
            free_trimmed(&r->kind[k].document[i]);
    for (size_t i = 0; i < r->lost_count; i++) {
        free(r->lost[i].id);
        free(r->lost[i].url);
    }
    for (size_t i = 0; i < SHOWN_PATHS; i++)
        free(r->file[i]);
    free(r->last_file);
    doppel_trim_free(r->trim);
}

static bool copy_slice(doppel_slice slice, char **to, size_t *length) {
    return copy_text(slice.data ? slice.data : "", slice.length, SIZE_MAX, to, length);
}

/* ---- counting ---- */

static void count_document(trim_report *r, const doppel_trimmed *d) {
    size_t step = !d->words_cut              ? CUT_NONE
                  : d->words_cut >= d->words ? CUT_ALL
                                             : CUT_SOME + (size_t)(10 * d->words_cut / d->words);
    r->documents[step]++;
    r->words_cut[step] += d->words_cut;
    r->cuts += d->cut_count;
}

/* Notes the file of a document, unless it is that of the last one. */
static doppel_status note_file(trim_report *r, const char *file) {
    if (r->last_file && !strcmp(r->last_file, file))
        return DOPPEL_OK;
    r->refused = !check_output("output", args_text(r->args, "output"), file);
    if (r->refused)
        return DOPPEL_ERROR_USAGE;
    free(r->last_file);
    r->last_file = strdup(file);
    if (r->files < SHOWN_PATHS && !(r->file[r->files] = strdup(file)))
        return DOPPEL_ERROR_MEMORY;
    r->files++;
    return r->last_file ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status note_lost(trim_report *r, const doppel_trimmed *d) {
    if ((!d->dropped && !d->emptied) || r->lost_count == SHOWN_LOST)
        return DOPPEL_OK;
    lost_document *lost = &r->lost[r->lost_count];
    *lost = (lost_document){.words = d->words, .words_cut = d->words_cut, .dropped = d->dropped};
    r->lost_count++;
    return copy_slice(d->id, &lost->id, &lost->id_length) && copy_slice(d->url, &lost->url, &lost->url_length)
               ? DOPPEL_OK
               : DOPPEL_ERROR_MEMORY;
}

/* ---- which documents are shown ---- */

/* A hash of a number (the finaliser of SplitMix64), which no two numbers share. */
static uint64_t key_of(uint64_t position) {
    uint64_t x = position + 0x9E3779B97F4A7C15;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
}

static size_t kind_of(const doppel_trimmed *d) {
    return 2 * d->words_cut >= d->words ? LOST_MOST : 10 * d->words_cut >= d->words ? LOST_SOME : LOST_LITTLE;
}

/* The originals with the longest spans; their ids are borrowed. */
static size_t find_originals(const doppel_trimmed *d, const doppel_span *longest[SHOWN_ORIGINALS]) {
    size_t count = 0;
    for (; count < SHOWN_ORIGINALS; count++) {
        longest[count] = NULL;
        for (size_t i = 0; i < d->span_count; i++) {
            const doppel_span *span = &d->spans[i];
            bool known = longest[count] && longest[count]->words >= span->words;
            for (size_t j = 0; j < count && !known; j++)
                known = longest[j]->original == span->original;
            if (!known)
                longest[count] = span;
        }
        if (!longest[count])
            break;
    }
    return count;
}

/* The place in which a document of this key is shown: a new one, that of one with the same original, or that of the one
 * with the greatest key; NULL: it is not. What is there is freed. */
static shown_trimmed *place_of(shown_kind *kind, uint64_t key, uint64_t original) {
    shown_trimmed *place = NULL;
    for (size_t i = 0; i < kind->count; i++) {
        shown_trimmed *there = &kind->document[i];
        if (there->original[0].document == original) {
            place = there;
            break;
        }
        if (kind->count == SHOWN_OF_KIND && (!place || there->key > place->key))
            place = there;
    }
    if (!place)
        return &kind->document[kind->count++];
    if (place->key <= key)
        return NULL;
    free_trimmed(place);
    return place;
}

/* Copies the text from shortly before its first cut on, and the cuts that are whole in it. */
static bool copy_cut_text(shown_trimmed *to, const doppel_trimmed *d) {
    uint64_t first = d->cuts[0].start, from = first > TEXT_BEFORE ? first - TEXT_BEFORE : 0;
    const char *text = d->original.data;
    while (from && ((unsigned char)text[from] & 0xC0) == 0x80)
        from--;
    if (!copy_text(text + from, (size_t)(d->original.length - from), MOST_TEXT, &to->text, &to->text_length))
        return false;
    to->text_begins = !from;
    to->text_ends = from + to->text_length == d->original.length;
    to->cuts_in_all = d->cut_count;
    for (; to->cuts < SHOWN_CUTS && to->cuts < d->cut_count; to->cuts++) {
        doppel_range cut = {d->cuts[to->cuts].start - from, d->cuts[to->cuts].end - from};
        if (cut.start >= to->text_length)
            break;
        to->cut[to->cuts] = (doppel_range){cut.start, cut.end < to->text_length ? cut.end : to->text_length};
    }
    return true;
}

static bool copy_trimmed(shown_trimmed *to, const doppel_trimmed *d, const doppel_span *const *longest, size_t count) {
    *to = (shown_trimmed){.key = key_of(d->position),
                          .words = d->words,
                          .words_cut = d->words_cut,
                          .line = d->line,
                          .dropped = d->dropped,
                          .file = strdup(d->file)};
    bool copied = to->file && copy_slice(d->id, &to->id, &to->id_length) &&
                  copy_slice(d->url, &to->url, &to->url_length) && copy_cut_text(to, d);
    for (; copied && to->originals < count; to->originals++) {
        const doppel_span *span = longest[to->originals];
        shown_original *original = &to->original[to->originals];
        *original = (shown_original){.document = span->original, .words = span->words};
        copied = copy_slice(span->original_id, &original->id, &original->id_length);
    }
    return copied;
}

/* Shows a document that lost words, but not all of them, if its turn is now. */
static doppel_status note_trimmed(trim_report *r, const doppel_trimmed *d) {
    const doppel_span *longest[SHOWN_ORIGINALS];
    if (!d->words_cut || d->words_cut >= d->words)
        return DOPPEL_OK;
    size_t count = find_originals(d, longest);
    shown_trimmed *place = count ? place_of(&r->kind[kind_of(d)], key_of(d->position), longest[0]->original) : NULL;
    return !place || copy_trimmed(place, d, longest, count) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* doppel_trim_write */
static doppel_status take_document(const doppel_trimmed *d, void *user) {
    trim_report *r = user;
    count_document(r, d);
    doppel_status status = note_file(r, d->file);
    if (status == DOPPEL_OK)
        status = note_lost(r, d);
    return status == DOPPEL_OK ? note_trimmed(r, d) : status;
}

/* ---- all of it ---- */

static int by_share(const void *x, const void *y) {
    const shown_trimmed *a = x, *b = y;
    double more = (double)b->words_cut / (double)b->words - (double)a->words_cut / (double)a->words;
    return more != 0 ? (more < 0 ? -1 : 1) : a->key < b->key ? -1 : a->key > b->key;
}

doppel_status trim_report_read(trim_report *r, doppel_error *error) {
    doppel_status status = doppel_trim_get_repeats(r->trim, &r->repeat, &r->repeats, error);
    r->repeats = r->repeats < r->wanted ? r->repeats : r->wanted;
    if (status == DOPPEL_OK)
        status = doppel_trim_write(r->trim, DOPPEL_TRIM_SPANS | DOPPEL_TRIM_ORIGINALS, take_document, r, error);
    for (size_t k = 0; k < LOST_KINDS && status == DOPPEL_OK; k++)
        if (r->kind[k].count)
            qsort(r->kind[k].document, r->kind[k].count, sizeof *r->kind[k].document, by_share);
    doppel_trim_get_stats(r->trim, &r->stats);
    return status;
}
