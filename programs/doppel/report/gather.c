/* gather.c - what a report shows of a decided batch: figures, its largest groups, which of their documents; and, from
 * the inputs again, the texts of these and the hosts of all documents in groups. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *report_id(report *r, uint64_t document, size_t *length) {
    *length = doppel_batch_id(r->batch, document, r->id, r->id_room);
    if (*length > r->id_room) {
        char *more = realloc(r->id, *length);
        if (!more)
            return NULL;
        r->id = more;
        r->id_room = *length;
        *length = doppel_batch_id(r->batch, document, r->id, r->id_room);
    }
    return r->id ? r->id : "";
}

static void free_document(shown_document *d) {
    free(d->text);
    free(d->title);
    free(d->url);
}

void report_free(report *r) {
    for (size_t i = 0; i < r->groups; i++) {
        free_document(&r->group[i].kept);
        for (size_t j = 0; j < r->group[i].copies; j++)
            free_document(&r->group[i].copy[j]);
    }
    free(r->group);
    free(r->size);
    free(r->id);
    hosts_free(&r->hosts);
    doppel_batch_free(r->batch);
}

/* ---- figures ---- */

/* Similarities are kept in single precision: 0.8 may come as a little more or less. */
static bool is_identical(const doppel_near *near) {
    return isnan(near->similarity) ? near->distance == 0 : near->similarity > 1 - 1e-6;
}

static size_t step_of(double similarity) {
    double step = floor((similarity + 1e-6) * SIMILARITY_STEPS);
    return step < 0 ? 0 : step >= SIMILARITY_STEPS ? SIMILARITY_STEPS - 1 : (size_t)step;
}

static void count_removed(report_figures *f, const doppel_near *near) {
    f->removed++;
    switch (near->reason) {
    case DOPPEL_REASON_URL: f->by_url++; return;
    case DOPPEL_REASON_TITLE: f->by_title++; return;
    default: break;
    }
    if (is_identical(near))
        f->identical++;
    else
        f->near++;
    if (near->distance >= 0 && near->distance < DISTANCES)
        f->distance[near->distance]++;
    if (isnan(near->similarity))
        return;
    f->measured++;
    if (!is_identical(near))
        f->similarity[step_of(near->similarity)]++;
}

static void count_all(report *r) {
    report_figures *f = &r->figures;
    uint64_t count = doppel_batch_count(r->batch);
    f->known = r->stats.known;
    f->documents = count - f->known;
    for (uint64_t i = 0; i < count; i++) {
        doppel_near near;
        doppel_batch_get(r->batch, i, &near);
        /* An original in an index is not a document of the batch, but belongs to the group. */
        r->size[near.a] += near.a >= count && !r->size[near.a] ? 2 : 1;
        if (near.a != i)
            count_removed(f, &near);
        else if (i >= f->known)
            f->kept++;
    }
    for (uint64_t i = 0; i < count + r->stats.in_index; i++) {
        if (r->size[i] < 2)
            continue;
        f->groups++;
        f->largest = r->size[i] > f->largest ? r->size[i] : f->largest;
    }
}

/* ---- the largest groups ---- */

/* Puts a group where it belongs: the larger first, then the earlier. */
static void place_group(report *r, uint64_t original) {
    uint32_t size = r->size[original];
    if (r->groups == r->wanted && (!r->wanted || r->group[r->groups - 1].size >= size))
        return;
    size_t at = r->groups < r->wanted ? r->groups++ : r->groups - 1;
    for (; at && r->group[at - 1].size < size; at--)
        r->group[at] = r->group[at - 1];
    r->group[at] = (shown_group){.original = original, .size = size, .least = 1};
    r->group[at].kept.near = (doppel_near){.a = original, .b = original};
}

static shown_group *group_of(report *r, uint64_t original) {
    for (size_t i = 0; i < r->groups; i++)
        if (r->group[i].original == original)
            return &r->group[i];
    return NULL;
}

/* How much a copy differs from the kept document: those that differ most are shown. */
static double difference_of(const doppel_near *near) {
    return isnan(near->similarity) ? near->distance / 64.0 : 1 - near->similarity;
}

static void place_copy(shown_group *g, const doppel_near *near) {
    double own = difference_of(near);
    size_t at = g->copies;
    for (size_t i = 0; i < g->copies; i++)
        if (difference_of(&g->copy[i].near) == own && g->copy[i].near.distance == near->distance)
            return;
    if (at == SHOWN_COPIES && difference_of(&g->copy[--at].near) >= own)
        return;
    g->copies = at + 1;
    for (; at && difference_of(&g->copy[at - 1].near) < own; at--)
        g->copy[at] = g->copy[at - 1];
    g->copy[at] = (shown_document){.near = *near};
}

static void take_copy(shown_group *g, const doppel_near *near) {
    if (!is_identical(near)) {
        g->least = near->similarity < g->least ? near->similarity : g->least;
        g->most = near->similarity > g->most ? near->similarity : g->most;
        place_copy(g, near);
        return;
    }
    g->identical++;
    if (g->same_count < SHOWN_IDS)
        g->same[g->same_count++] = near->b;
}

static void choose(report *r) {
    uint64_t count = doppel_batch_count(r->batch);
    for (uint64_t i = 0; i < count + r->stats.in_index; i++)
        if (r->size[i] > 1)
            place_group(r, i);
    uint64_t least = r->groups ? r->group[r->groups - 1].size : UINT64_MAX;
    for (uint64_t i = 0; i < count; i++) {
        doppel_near near;
        doppel_batch_get(r->batch, i, &near);
        shown_group *g = near.a != i && r->size[near.a] >= least ? group_of(r, near.a) : NULL;
        if (g)
            take_copy(g, &near);
    }
}

doppel_status report_gather(report *r) {
    uint64_t count = doppel_batch_count(r->batch);
    r->size = calloc(count + r->stats.in_index + 1, sizeof *r->size);
    r->group = calloc(r->wanted + 1, sizeof *r->group);
    if (!r->size || !r->group)
        return DOPPEL_ERROR_MEMORY;
    count_all(r);
    choose(r);
    return DOPPEL_OK;
}

/* ---- texts ---- */

/* A few lines on a phone. */
enum { MOST_TITLE = 200, MOST_URL = 400 };

typedef struct text_reading {
    report *r;
    shown_document **shown; /* by number */
    size_t count, at;
    doppel_page_reader *pages;
    doppel_error *error;
} text_reading;

static int by_number(const void *x, const void *y) {
    const shown_document *a = *(shown_document *const *)x, *b = *(shown_document *const *)y;
    return a->near.b < b->near.b ? -1 : a->near.b > b->near.b;
}

static doppel_status list_shown(text_reading *in) {
    report *r = in->r;
    in->shown = calloc(r->groups * (SHOWN_COPIES + 1) + 1, sizeof(shown_document *));
    if (!in->shown)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < r->groups; i++) {
        in->shown[in->count++] = &r->group[i].kept;
        for (size_t j = 0; j < r->group[i].copies; j++)
            in->shown[in->count++] = &r->group[i].copy[j];
    }
    qsort(in->shown, in->count, sizeof *in->shown, by_number);
    return DOPPEL_OK;
}

size_t whole_characters(const char *text, size_t length, size_t most) {
    if (length <= most)
        return length;
    while (most && ((unsigned char)text[most] & 0xC0) == 0x80)
        most--;
    return most;
}

bool copy_text(const char *text, size_t length, size_t most, char **to, size_t *copied) {
    length = whole_characters(text, length, most);
    *to = malloc(length + 1);
    if (!*to)
        return false;
    if (length)
        memcpy(*to, text, length);
    *copied = length;
    return true;
}

static doppel_status take_shown(text_reading *in, shown_document *shown, const doppel_document *d) {
    doppel_page page;
    doppel_status status = doppel_document_text(in->pages, d, in->r->options->content, &page);
    if (status != DOPPEL_OK)
        return status;
    bool copied =
        copy_text(page.text.data ? page.text.data : "", page.text.length, MOST_TEXT, &shown->text, &shown->text_length);
    if (copied && page.title.data)
        copied = copy_text(page.title.data, page.title.length, MOST_TITLE, &shown->title, &shown->title_length);
    shown->text_cut = shown->text_length < page.text.length;
    shown->title_cut = page.title.data && shown->title_length < page.title.length;
    if (copied && d->url.data)
        copied = copy_text(d->url.data, d->url.length, MOST_URL, &shown->url, &shown->url_length);
    shown->found = copied;
    return copied ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* The document of a record. One that was made from another format has the default keys, whatever those of the JSONL
 * inputs are. */
static doppel_status parse(text_reading *in, doppel_slice record, doppel_document **d) {
    doppel_status status = doppel_document_parse(record, in->r->options->input, d, in->error);
    if (status != DOPPEL_OK || (*d)->text.length || (*d)->html.data)
        return status;
    doppel_document_free(*d);
    return doppel_document_parse(record, NULL, d, in->error);
}

/* doppel_batch_write */
static doppel_status take_document(doppel_slice record, const doppel_near *near, void *user) {
    text_reading *in = user;
    report *r = in->r;
    doppel_document *d;
    r->figures.bytes_in += record.length + 1;
    r->figures.bytes_out += doppel_batch_stays(r->batch, near->b) ? record.length + 1 : 0;
    if (r->size[near->a] < 2)
        return DOPPEL_OK;
    doppel_status status = parse(in, record, &d);
    if (status != DOPPEL_OK)
        return status;
    if (d->url.data && !hosts_add(&r->hosts, near->b, d->url.data, d->url.length))
        status = DOPPEL_ERROR_MEMORY;
    while (in->at < in->count && in->shown[in->at]->near.b < near->b)
        in->at++;
    if (status == DOPPEL_OK && in->at < in->count && in->shown[in->at]->near.b == near->b)
        status = take_shown(in, in->shown[in->at++], d);
    doppel_document_free(d);
    return status;
}

doppel_status report_read_texts(report *r, doppel_error *error) {
    text_reading in = {.r = r, .error = error};
    doppel_status status = hosts_begin(&r->hosts, doppel_batch_count(r->batch)) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK)
        status = list_shown(&in);
    if (status == DOPPEL_OK)
        status = doppel_page_reader_create(&in.pages);
    if (status == DOPPEL_OK)
        status = doppel_batch_write(r->batch, take_document, &in, error);
    if (status == DOPPEL_OK && !hosts_count(&r->hosts, r->batch))
        status = DOPPEL_ERROR_MEMORY;
    doppel_page_reader_free(in.pages);
    free(in.shown);
    return status;
}
