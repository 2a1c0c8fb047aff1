/* packed.c - a document as bytes, from the thread that read it to the one that gives it to the engine.
 *
 * A head with the length of each string, then the strings, each with a NUL behind it. */
#include "feeding.h"

#include <string.h>

enum { PACK_ID, PACK_URL, PACK_TITLE, PACK_TEXT, PACK_HTML, PACK_CHARSET, PACK_ALIAS, PACK_FILE, PACK_RECORD, PACKED };

/* The length of a string that is not there. */
#define NONE SIZE_MAX

typedef struct packed_head {
    uint64_t line;
    size_t length[PACKED + FEED_KEYS];
} packed_head;

static doppel_slice slice_of(const char *data, size_t length) {
    return (doppel_slice){data, data ? length : 0};
}

static doppel_slice string_slice(const char *text) {
    return (doppel_slice){text, text ? strlen(text) : 0};
}

doppel_status pack_document(const feed *f, const doppel_document *d, doppel_output *output) {
    doppel_slice parts[PACKED + FEED_KEYS] = {
        [PACK_ID] = slice_of(d->id, d->id_length),          [PACK_URL] = slice_of(d->url, d->url_length),
        [PACK_TITLE] = slice_of(d->title, d->title_length), [PACK_TEXT] = slice_of(d->text, d->text_length),
        [PACK_HTML] = slice_of(d->html, d->html_length),    [PACK_CHARSET] = string_slice(d->charset),
        [PACK_ALIAS] = slice_of(d->alias, d->alias_length), [PACK_FILE] = string_slice(d->file)};
    packed_head head = {.line = d->line};
    if (f->record)
        parts[PACK_RECORD] = slice_of(d->record, d->record_length);
    for (size_t i = 0; i < f->key_count; i++)
        parts[PACKED + i] = d->extra[i];
    for (size_t i = 0; i < PACKED + f->key_count; i++)
        head.length[i] = parts[i].data ? parts[i].length : NONE;
    doppel_status status = doppel_output_write(output, &head, sizeof head);
    for (size_t i = 0; i < PACKED + f->key_count && status == DOPPEL_OK; i++) {
        if (!parts[i].data)
            continue;
        status = doppel_output_write(output, parts[i].data, parts[i].length);
        if (status == DOPPEL_OK)
            status = doppel_output_write(output, "", 1);
    }
    return status;
}

size_t unpack_document(const feed *f, const char *bytes, doppel_document *d, doppel_slice *extra) {
    packed_head head;
    doppel_slice parts[PACKED + FEED_KEYS] = {{0}};
    const char *p = bytes + sizeof head;
    memcpy(&head, bytes, sizeof head);
    for (size_t i = 0; i < PACKED + f->key_count; i++)
        if (head.length[i] != NONE) {
            parts[i] = (doppel_slice){p, head.length[i]};
            p += head.length[i] + 1;
        }
    for (size_t i = 0; i < f->key_count; i++)
        extra[i] = parts[PACKED + i];
    *d = (doppel_document){.id = parts[PACK_ID].data,
                           .id_length = parts[PACK_ID].length,
                           .url = parts[PACK_URL].data,
                           .url_length = parts[PACK_URL].length,
                           .title = parts[PACK_TITLE].data,
                           .title_length = parts[PACK_TITLE].length,
                           .text = parts[PACK_TEXT].data,
                           .text_length = parts[PACK_TEXT].length,
                           .html = parts[PACK_HTML].data,
                           .html_length = parts[PACK_HTML].length,
                           .charset = parts[PACK_CHARSET].data,
                           .alias = parts[PACK_ALIAS].data,
                           .alias_length = parts[PACK_ALIAS].length,
                           .file = parts[PACK_FILE].data,
                           .line = head.line,
                           .record = parts[PACK_RECORD].data,
                           .record_length = parts[PACK_RECORD].length,
                           .extra = extra};
    return (size_t)(p - bytes);
}
