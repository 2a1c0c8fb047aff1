/* candidates.c - which documents may be near each other: by content (buckets), by URL and by title (classes).
 *
 * By bands of signatures, documents with the same key in some band are in one bucket: bands.c, from the rows of keys
 * that are collected here.
 *
 * By fingerprints, documents with one fingerprint are in one bucket; they look at it, and at those of fingerprints
 * within the distance. */
#include "batch/batch.h"
#include "title/title.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

void dp_candidates_free(dp_candidates *c) {
    free(c->member);
    free(c->start);
    free(c->looked_start);
    free(c->looked);
    free(c->looked_of);
    free(c->url_class);
    free(c->titles.of);
    free(c->titles.first);
    free(c->titles.start);
    free(c->titles.near);
    free(c->titles.similarity);
    *c = (dp_candidates){0};
}

/* ---- rows: keys in blocks ---- */

/* Keys of a band in memory. A power of two would put the keys of a row, one a band, into the same few lines of a cache,
 * where they evict each other. */
enum { BAND_ROOM = DP_ROW_BLOCK + 32 };

static doppel_status write_block(dp_key_rows *rows, size_t count, size_t bands, doppel_error *error) {
    for (size_t b = 0; b < bands; b++)
        DP_TRY(dp_append_file_add(&rows->keys, rows->block + b * BAND_ROOM, count * sizeof *rows->block, error));
    return DOPPEL_OK;
}

doppel_status dp_key_rows_add(dp_key_rows *rows, uint32_t document, const uint32_t *keys, int band_count,
                              doppel_error *error) {
    size_t bands = (size_t)band_count, at = rows->count % DP_ROW_BLOCK;
    if (bands && !rows->block && !(rows->block = malloc(bands * BAND_ROOM * sizeof *rows->block)))
        return dp_no_memory(error);
    if (!dp_reserve(&rows->document, &rows->room, rows->count + 1, sizeof *rows->document))
        return dp_no_memory(error);
    for (size_t b = 0; b < bands; b++)
        rows->block[b * BAND_ROOM + at] = keys[b];
    rows->document[rows->count++] = document;
    return at == DP_ROW_BLOCK - 1 ? write_block(rows, DP_ROW_BLOCK, bands, error) : DOPPEL_OK;
}

doppel_status dp_key_rows_flush(dp_key_rows *rows, int bands, doppel_error *error) {
    if (rows->count % DP_ROW_BLOCK)
        DP_TRY(write_block(rows, rows->count % DP_ROW_BLOCK, (size_t)bands, error));
    return dp_append_file_flush(&rows->keys, error);
}

/* ---- looks ---- */

/* Where the looks of each document begin, counted by document two places ahead: once they are placed, start[d + 1] has
 * moved to where those of d end. Gives how many there are. */
static uint64_t add_up_looks(uint64_t *start, size_t documents) {
    for (size_t d = 2; d < documents + 2; d++)
        start[d] += start[d - 1];
    return start[documents + 1];
}

/* ---- by fingerprints ---- */

/* Two rows, each the first with its fingerprint. */
typedef struct row_pair {
    uint32_t a, b;
} row_pair;

typedef struct fingerprint_join {
    doppel_batch *batch;
    uint32_t *first;  /* of each row: the first row with its fingerprint */
    uint32_t *bucket; /* of each first row; DP_NO_DOCUMENT: none */
    row_pair *pairs;
    size_t count, room;
} fingerprint_join;

/* doppel_join_options.pairs */
static doppel_status take_pairs(const doppel_pair *pairs, size_t count, void *user) {
    fingerprint_join *j = user;
    for (size_t i = 0; i < count; i++) {
        if (!pairs[i].distance) {
            j->first[pairs[i].b] = (uint32_t)pairs[i].a;
            continue;
        }
        if (!dp_reserve(&j->pairs, &j->room, j->count + 1, sizeof *j->pairs))
            return DOPPEL_ERROR_MEMORY;
        j->pairs[j->count++] = (row_pair){(uint32_t)pairs[i].a, (uint32_t)pairs[i].b};
    }
    return DOPPEL_OK;
}

static void on_progress(uint64_t done, uint64_t total, void *user) {
    dp_report_progress(&((fingerprint_join *)user)->batch->settings, "candidates", done, total);
}

/* The fingerprints of all rows, one or two words each; NULL: no memory. */
static uint64_t *gather_fingerprints(const doppel_batch *batch) {
    const dp_key_rows *rows = &batch->rows;
    size_t words = batch->settings.bits > 64 ? 2 : 1;
    uint64_t *array = malloc((rows->count + 1) * words * sizeof *array);
    for (size_t i = 0; array && i < rows->count; i++)
        memcpy(array + i * words, batch->documents.doc[rows->document[i]].fingerprint, words * sizeof *array);
    return array;
}

static doppel_status join_fingerprints(fingerprint_join *j, doppel_error *error) {
    doppel_batch *batch = j->batch;
    const dp_batch_settings *s = &batch->settings;
    uint64_t *array = gather_fingerprints(batch);
    doppel_source source = {.size = sizeof source, .array = array, .count = batch->rows.count};
    doppel_join_options options = {.size = sizeof options,
                                   .bits = s->bits,
                                   .threads = (int)s->threads,
                                   .memory = s->options.memory,
                                   .tmp = s->options.tmp,
                                   .pairs = take_pairs,
                                   .progress = on_progress,
                                   .user = j,
                                   .stop = s->input.stop};
    doppel_join_counts counts = {0};
    doppel_status status = array ? doppel_join(&source, s->distance, &options, &counts, error) : dp_no_memory(error);
    batch->stats.spilled_bytes += counts.spilled_bytes;
    batch->stats.candidates = counts.candidates;
    free(array);
    return status;
}

/* A bucket for each fingerprint that several documents have or that another is near. */
static bool make_buckets(fingerprint_join *j, dp_candidates *c) {
    size_t rows = j->batch->rows.count;
    uint32_t *size = calloc(rows + 1, sizeof *size);
    if (!size)
        return false;
    for (size_t i = 0; i < j->count; i++)
        size[j->pairs[i].a] = size[j->pairs[i].b] = 1;
    for (size_t i = 0; i < rows; i++)
        if (j->first[i] != i)
            size[j->first[i]] = size[j->first[i]] ? size[j->first[i]] + 1 : 2;
    bool made = dp_reserve(&c->start, &c->start_room, 1, sizeof *c->start);
    for (size_t i = 0; i < rows && made; i++) {
        j->bucket[i] = DP_NO_DOCUMENT;
        if (!size[i] || !(made = dp_reserve(&c->start, &c->start_room, c->count + 2, sizeof *c->start)))
            continue;
        j->bucket[i] = (uint32_t)c->count;
        c->start[c->count++] = c->member_count;
        c->member_count += size[i];
    }
    if (made)
        c->start[c->count] = c->member_count;
    free(size);
    return made;
}

/* Places the rows in their buckets, in order. */
static bool fill_buckets(const fingerprint_join *j, dp_candidates *c) {
    const dp_key_rows *rows = &j->batch->rows;
    uint64_t *next = malloc((c->count + 1) * sizeof *next);
    c->member = malloc((c->member_count + 1) * sizeof *c->member);
    c->own_first = true;
    if (next && c->member) {
        memcpy(next, c->start, c->count * sizeof *next);
        for (size_t i = 0; i < rows->count; i++)
            if (j->bucket[j->first[i]] != DP_NO_DOCUMENT)
                c->member[next[j->bucket[j->first[i]]]++] = rows->document[i];
    }
    free(next);
    return next && c->member;
}

/* Counts the looks of each first row: its own bucket, and those of its pairs. Gives all. */
static uint64_t count_looks(const fingerprint_join *j, uint64_t *start) {
    const dp_key_rows *rows = &j->batch->rows;
    for (size_t i = 0; i < rows->count; i++)
        start[rows->document[i] + 2] += j->first[i] == i && j->bucket[i] != DP_NO_DOCUMENT;
    for (size_t i = 0; i < j->count; i++) {
        start[rows->document[j->pairs[i].a] + 2]++;
        start[rows->document[j->pairs[i].b] + 2]++;
    }
    return add_up_looks(start, j->batch->documents.count);
}

/* The buckets that a fingerprint is near: its own, then those of pairs. The first row with it has the list. */
static bool look_at_near(const fingerprint_join *j, dp_candidates *c) {
    const uint32_t *document = j->batch->rows.document;
    size_t documents = j->batch->documents.count;
    uint64_t *start = c->looked_start = calloc(documents + 2, sizeof *start);
    c->looked_of = malloc((documents + 1) * sizeof *c->looked_of);
    if (!start || !c->looked_of || !(c->looked = malloc((count_looks(j, start) + 1) * sizeof *c->looked)))
        return false;
    for (size_t d = 0; d < documents; d++)
        c->looked_of[d] = (uint32_t)d;
    for (size_t i = 0; i < j->batch->rows.count; i++) {
        c->looked_of[document[i]] = document[j->first[i]];
        if (j->first[i] == i && j->bucket[i] != DP_NO_DOCUMENT)
            c->looked[start[document[i] + 1]++] = j->bucket[i];
    }
    for (size_t i = 0; i < j->count; i++) {
        uint32_t a = j->pairs[i].a, b = j->pairs[i].b;
        c->looked[start[document[a] + 1]++] = j->bucket[b];
        c->looked[start[document[b] + 1]++] = j->bucket[a];
    }
    return true;
}

static doppel_status find_by_fingerprints(doppel_batch *batch, dp_candidates *c, doppel_error *error) {
    size_t rows = batch->rows.count;
    fingerprint_join j = {
        .batch = batch, .first = malloc((rows + 1) * sizeof *j.first), .bucket = malloc((rows + 1) * sizeof *j.bucket)};
    doppel_status status = j.first && j.bucket ? DOPPEL_OK : dp_no_memory(error);
    for (size_t i = 0; i < rows && status == DOPPEL_OK; i++)
        j.first[i] = (uint32_t)i;
    DP_THEN(status, join_fingerprints(&j, error));
    if (status == DOPPEL_OK && (!make_buckets(&j, c) || !fill_buckets(&j, c) || !look_at_near(&j, c)))
        status = dp_no_memory(error);
    free(j.first);
    free(j.bucket);
    free(j.pairs);
    return status;
}

/* ---- by URL ---- */

typedef struct url_columns {
    const dp_documents *documents;
    bool within; /* the scope counts */
} url_columns;

static bool same_url(const url_columns *u, uint32_t a, uint32_t b) {
    const dp_documents *d = u->documents;
    return !memcmp(d->url[a], d->url[b], sizeof d->url[a]) && (!u->within || d->scope[a] == d->scope[b]);
}

/* Those with one hash, of which `entry` has the numbers in its low half: each gets the first that is the same. */
static void class_stretch(const url_columns *u, const uint64_t *entry, size_t count, uint32_t *class_of) {
    for (size_t i = 0; i < count; i++) {
        uint32_t document = (uint32_t)entry[i];
        for (size_t j = 0; j < i && class_of[document] == DP_NO_DOCUMENT; j++)
            if (class_of[(uint32_t)entry[j]] == (uint32_t)entry[j] && same_url(u, (uint32_t)entry[j], document))
                class_of[document] = (uint32_t)entry[j];
        if (class_of[document] == DP_NO_DOCUMENT)
            class_of[document] = document;
    }
}

/* 32 bits of a document's URL, and of its scope where that counts; the key keeps an attacker from choosing URLs that
 * collide. */
static uint64_t url_entry(const url_columns *u, uint32_t document, const uint64_t key[2]) {
    const uint64_t *url = u->documents->url[document];
    const uint64_t names[3] = {url[0], url[1], u->within ? u->documents->scope[document] : 0};
    return dp_siphash(names, sizeof names, key) << 32 | document;
}

typedef struct url_search {
    const url_columns *columns;
    uint64_t key[2];
    uint64_t *entry;   /* of documents with a URL */
    uint64_t *counted; /* by piece of documents, how many these are; then, with those before it */
    size_t count;
    uint32_t *class_of;
} url_search;

static bool has_url(const url_search *s, size_t document) {
    const uint64_t *url = s->columns->documents->url[document];
    return url[0] || url[1];
}

static void count_urls(void *user, size_t from, size_t to) {
    const url_search *s = user;
    for (size_t d = from; d < to; d++) {
        s->class_of[d] = DP_NO_DOCUMENT;
        s->counted[from / DP_PIECE] += has_url(s, d);
    }
}

static void list_urls(void *user, size_t from, size_t to) {
    const url_search *s = user;
    uint64_t at = from ? s->counted[from / DP_PIECE - 1] : 0;
    for (size_t d = from; d < to; d++)
        if (has_url(s, d))
            s->entry[at++] = url_entry(s->columns, (uint32_t)d, s->key);
}

/* The stretches of equal hashes that begin in a piece. */
static void class_piece(void *user, size_t from, size_t to) {
    const url_search *s = user;
    const uint64_t *entry = s->entry;
    while (from && from < to && entry[from] >> 32 == entry[from - 1] >> 32)
        from++;
    for (size_t end; from < to; from = end) {
        for (end = from + 1; end < s->count && entry[end] >> 32 == entry[from] >> 32;)
            end++;
        class_stretch(s->columns, entry + from, end - from, s->class_of);
    }
}

static bool find_url_classes(const url_columns *u, size_t threads, uint32_t **class_of) {
    size_t documents = u->documents->count;
    url_search s = {.columns = u,
                    .key = {dp_random_number(), dp_random_number()},
                    .counted = calloc(documents / DP_PIECE + 1, sizeof *s.counted),
                    .class_of = *class_of = malloc((documents + 1) * sizeof **class_of)};
    uint64_t *scratch = NULL;
    bool made = s.counted && s.class_of;
    if (made) {
        dp_run_pieces(threads, documents, DP_PIECE, count_urls, &s);
        s.count = (size_t)dp_add_up(threads, s.counted, documents / DP_PIECE + 1);
        s.entry = malloc((s.count + 1) * sizeof *s.entry);
        scratch = malloc((s.count + 1) * sizeof *scratch);
        made = s.entry && scratch;
    }
    if (made) {
        dp_run_pieces(threads, documents, DP_PIECE, list_urls, &s);
        dp_sort64_on(threads, s.entry, s.count, scratch);
        dp_run_pieces(threads, s.count, DP_PIECE, class_piece, &s);
    }
    free(s.counted);
    free(s.entry);
    free(scratch);
    return made;
}

/* ---- by title ----
 *
 * Titles that are no evidence (dp_title_counts) have no class. Similar ones are found through the title index, which
 * misses none: one thread fills it, then all find, some documents at a time, and classes are numbered in the order of
 * their first documents. */

/* Documents whose titles a thread takes at a time. */
enum { TITLE_SHARE = 64 };

/* A title that was found, by the first document that has it: the documents that have it (borrowed from the index), and
 * the number of titles near it. */
typedef struct found_title {
    const uint64_t *owners;
    size_t owner_count, near_count;
} found_title;

/* What was found of some documents. */
typedef struct title_list {
    found_title *title;
    uint32_t *near; /* first documents */
    double *similarity;
    size_t count, near_count, room, near_room, similarity_room;
} title_list;

typedef struct title_search {
    const doppel_batch *batch;
    dp_titles *titles;
    dp_titles_index *index;
    dp_ordered ordered;
    title_list *list;     /* by slot */
    pthread_mutex_t lock; /* of `next` */
    size_t next;          /* the document to take next */
} title_search;

/* Reads a title back; *counts is whether it is evidence. */
static doppel_status read_title(const title_search *s, size_t document, dp_buffer *text, bool *counts,
                                doppel_error *error) {
    const dp_title *title = &s->batch->documents.title[document];
    if (!dp_reserve(&text->data, &text->capacity, title->length, 1))
        return dp_no_memory(error);
    text->size = title->length;
    DP_TRY(dp_append_file_read(&s->batch->journal.file, title->at, text->data, title->length, error));
    *counts = dp_title_counts((doppel_slice){text->data, text->size});
    if (dp_stopped(s->batch->settings.input.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    return DOPPEL_OK;
}

/* Puts all titles into the index, each with its documents as owners. */
static doppel_status fill_title_index(title_search *s, doppel_error *error) {
    dp_buffer text = {0};
    doppel_status status = DOPPEL_OK;
    for (size_t d = 0; d < s->batch->documents.count && status == DOPPEL_OK; d++) {
        bool counts = false;
        status = read_title(s, d, &text, &counts, error);
        if (status == DOPPEL_OK && counts &&
            (status = dp_titles_index_add(s->index, text.data, text.size, d)) != DOPPEL_OK)
            dp_fail(error, status, "%s", doppel_status_name(status));
    }
    dp_buffer_free(&text);
    return status;
}

/* Adds the titles that are near that of a document, by their first documents. */
static bool add_near_titles(title_list *list, const dp_title_matches *matches, uint32_t document) {
    for (size_t i = 0; i < matches->count; i++) {
        const dp_title_match *match = &matches->match[i];
        if (match->owners[0] == document)
            continue;
        if (!dp_reserve(&list->near, &list->near_room, list->near_count + 1, sizeof *list->near) ||
            !dp_reserve(&list->similarity, &list->similarity_room, list->near_count + 1, sizeof *list->similarity))
            return false;
        list->near[list->near_count] = (uint32_t)match->owners[0];
        list->similarity[list->near_count++] = match->similarity;
    }
    return true;
}

static bool add_title(title_list *list, const dp_title_matches *matches, uint32_t document) {
    size_t own = 0, before = list->near_count;
    while (own < matches->count && matches->match[own].owners[0] != document)
        own++;
    if (own == matches->count)
        return true; /* an earlier document has the title */
    if (!dp_reserve(&list->title, &list->room, list->count + 1, sizeof *list->title) ||
        !add_near_titles(list, matches, document))
        return false;
    const dp_title_match *match = &matches->match[own];
    list->title[list->count++] = (found_title){match->owners, match->owner_count, list->near_count - before};
    return true;
}

/* ---- classes, in order ---- */

/* Makes a class of a title, and gives it to every owner. Other threads may read at the same time whether a document has
 * one. */
static bool add_class(dp_titles *t, const found_title *title) {
    size_t class = t->count;
    if (!dp_reserve(&t->first, &t->first_room, class + 1, sizeof *t->first) ||
        !dp_reserve(&t->start, &t->start_room, class + 2, sizeof *t->start))
        return false;
    t->first[class] = (uint32_t)title->owners[0];
    t->start[class] = t->near_count;
    t->start[class + 1] = t->near_count + title->near_count;
    for (size_t i = 0; i < title->owner_count; i++)
        __atomic_store_n(&t->of[title->owners[i]], (uint32_t) class, __ATOMIC_RELAXED);
    t->count++;
    return true;
}

/* dp_emit: near titles are known by their first documents, until all classes have numbers. */
static doppel_status add_classes(void *user, size_t slot, bool finished, doppel_error *error) {
    title_search *s = user;
    dp_titles *t = s->titles;
    title_list *list = &s->list[slot];
    size_t near = t->near_count + list->near_count;
    (void)finished, (void)error;
    if (!dp_reserve(&t->near, &t->near_room, near, sizeof *t->near) ||
        !dp_reserve(&t->similarity, &t->similarity_room, near, sizeof *t->similarity))
        return DOPPEL_ERROR_MEMORY;
    if (list->near_count) {
        memcpy(t->near + t->near_count, list->near, list->near_count * sizeof *t->near);
        memcpy(t->similarity + t->near_count, list->similarity, list->near_count * sizeof *t->similarity);
    }
    for (size_t i = 0; i < list->count; i++) {
        if (!add_class(t, &list->title[i]))
            return DOPPEL_ERROR_MEMORY;
        t->near_count += list->title[i].near_count;
    }
    list->count = list->near_count = 0;
    dp_report_progress(&s->batch->settings, "titles", s->ordered.emitted * TITLE_SHARE, s->batch->documents.count);
    return DOPPEL_OK;
}

/* ---- finding, on threads ---- */

static bool take_titles(title_search *s, size_t *from, size_t *slot, uint64_t *number) {
    pthread_mutex_lock(&s->lock);
    bool more = s->next < s->batch->documents.count && dp_ordered_wait(&s->ordered, slot);
    if (more) {
        *number = dp_ordered_take(&s->ordered);
        *from = s->next;
        s->next += TITLE_SHARE;
    }
    pthread_mutex_unlock(&s->lock);
    return more;
}

/* A document that already has a class is skipped: an earlier one has its title. */
static doppel_status find_near_titles(const title_search *s, size_t from, title_list *list, dp_title_matches *matches,
                                      dp_buffer *text, doppel_error *error) {
    size_t count = s->batch->documents.count, to = count - from < TITLE_SHARE ? count : from + TITLE_SHARE;
    for (size_t d = from; d < to; d++) {
        bool counts = false;
        if (__atomic_load_n(&s->titles->of[d], __ATOMIC_RELAXED) != DP_NO_DOCUMENT)
            continue;
        DP_TRY(read_title(s, d, text, &counts, error));
        if (counts && (dp_titles_index_find(s->index, text->data, text->size, matches) != DOPPEL_OK ||
                       !add_title(list, matches, (uint32_t)d)))
            return dp_no_memory(error);
    }
    return DOPPEL_OK;
}

static void find_on_thread(void *user, size_t thread) {
    title_search *s = user;
    dp_title_matches matches = {0};
    dp_buffer text = {0};
    size_t from, slot;
    uint64_t number;
    (void)thread;
    while (take_titles(s, &from, &slot, &number)) {
        doppel_error error = {0};
        doppel_status status = find_near_titles(s, from, &s->list[slot], &matches, &text, &error);
        if (status == DOPPEL_OK)
            dp_ordered_finish(&s->ordered, number);
        else
            dp_ordered_fail(&s->ordered, status, &error);
    }
    dp_title_matches_free(&matches);
    dp_buffer_free(&text);
}

static void number_near(void *user, size_t from, size_t to) {
    const dp_titles *t = user;
    for (size_t i = from; i < to; i++)
        t->near[i] = t->of[t->near[i]];
}

static doppel_status find_all_titles(title_search *s, doppel_error *error) {
    size_t threads = s->batch->settings.threads, slots = 4 * threads;
    if (!(s->list = calloc(slots, sizeof *s->list)) ||
        dp_ordered_init(&s->ordered, slots, add_classes, s) != DOPPEL_OK) {
        free(s->list);
        return dp_no_memory(error);
    }
    pthread_mutex_init(&s->lock, NULL);
    dp_run_threads(threads, find_on_thread, s);
    pthread_mutex_destroy(&s->lock);
    for (size_t i = 0; i < slots; i++) {
        free(s->list[i].title);
        free(s->list[i].near);
        free(s->list[i].similarity);
    }
    free(s->list);
    doppel_status status = dp_ordered_end(&s->ordered, error);
    if (status == DOPPEL_OK)
        dp_run_pieces(threads, s->titles->near_count, DP_PIECE, number_near, s->titles);
    return status;
}

static doppel_status find_titles(const doppel_batch *batch, dp_titles *titles, doppel_error *error) {
    size_t bytes = (batch->documents.count + 1) * sizeof *titles->of;
    title_search s = {.batch = batch, .titles = titles};
    if (!(titles->of = malloc(bytes)) || dp_titles_index_create(DP_TITLE_SIMILARITY, &s.index) != DOPPEL_OK)
        return dp_no_memory(error);
    memset(titles->of, 255, bytes); /* DP_NO_DOCUMENT */
    doppel_status status = fill_title_index(&s, error);
    DP_THEN(status, find_all_titles(&s, error));
    dp_titles_index_free(s.index);
    return status;
}

/* ---- all of them ---- */

doppel_status dp_candidates_find(doppel_batch *batch, dp_candidates *candidates, doppel_error *error) {
    const dp_batch_settings *s = &batch->settings;
    const url_columns urls = {&batch->documents, s->options.within};
    double begun = dp_seconds();
    doppel_status status = s->options.method == DOPPEL_METHOD_SIMHASH
                               ? find_by_fingerprints(batch, candidates, error)
                               : dp_candidates_by_bands(batch, candidates, error);
    batch->stats.seconds_candidates = dp_seconds() - begun;
    if (batch->documents.url && status == DOPPEL_OK && !find_url_classes(&urls, s->threads, &candidates->url_class))
        status = dp_no_memory(error);
    if (s->by & DOPPEL_BY_TITLE)
        DP_THEN(status, find_titles(batch, &candidates->titles, error));
    return status;
}
