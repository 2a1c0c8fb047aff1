/* report_texts.c - the inputs once more: texts of the documents that are shown, hosts of all that are in groups. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

/* More of a text is not compared: about 40,000 words of English. */
#define MOST_TEXT ((size_t)256 << 10)

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

/* A copy of some text, which ends between characters. */
static bool copy_text(const char *text, size_t length, size_t most, char **to, size_t *copied) {
    if (length > most)
        for (length = most; length && ((unsigned char)text[length] & 0xC0) == 0x80;)
            length--;
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
    bool copied = copy_text(page.text ? page.text : "", page.text_length, MOST_TEXT, &shown->text, &shown->text_length);
    if (copied && page.title)
        copied = copy_text(page.title, page.title_length, MOST_TITLE, &shown->title, &shown->title_length);
    shown->text_cut = shown->text_length < page.text_length;
    shown->title_cut = page.title && shown->title_length < page.title_length;
    if (copied && d->url)
        copied = copy_text(d->url, d->url_length, MOST_URL, &shown->url, &shown->url_length);
    shown->found = copied;
    return copied ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* The document of a record. One that was made of another format has the usual keys, whatever those of JSONL are. */
static doppel_status parse(text_reading *in, doppel_slice record, doppel_document **d) {
    doppel_status status = doppel_document_parse(record.data, record.length, in->r->options->input, d, in->error);
    if (status != DOPPEL_OK || (*d)->text_length || (*d)->html)
        return status;
    doppel_document_free(*d);
    return doppel_document_parse(record.data, record.length, NULL, d, in->error);
}

/* doppel_batch_write */
static doppel_status take_document(doppel_slice record, const doppel_near *near, void *user) {
    text_reading *in = user;
    report *r = in->r;
    doppel_document *d;
    r->figures.bytes_in += record.length + 1;
    r->figures.bytes_out += near->a == near->b ? record.length + 1 : 0;
    if (r->size[near->a] < 2)
        return DOPPEL_OK;
    doppel_status status = parse(in, record, &d);
    if (status != DOPPEL_OK)
        return status;
    if (d->url && !hosts_add(&r->hosts, near->b, d->url, d->url_length))
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
