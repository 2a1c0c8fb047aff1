/* batch.c - records of a topic, parsed: pages, tombstones, and bad records. */
#include "stream/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

batch *stream_batch_create(size_t room) {
    batch *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->room = room;
    b->records = calloc(room, sizeof *b->records);
    b->items = calloc(room, sizeof *b->items);
    b->verdicts = calloc(room, sizeof *b->verdicts);
    b->errors = calloc(room, sizeof *b->errors);
    if (b->records && b->items && b->verdicts && b->errors)
        return b;
    stream_batch_free(b);
    return NULL;
}

void record_free(record *r) {
    doppel_document_free(r->document);
    rd_kafka_message_destroy(r->message);
    free(r->why);
}

void stream_batch_clear(batch *b) {
    for (size_t i = 0; i < b->count; i++)
        record_free(&b->records[i]);
    b->count = b->bytes = b->without = 0;
    b->ends = false;
}

void stream_batch_free(batch *b) {
    if (!b)
        return;
    stream_batch_clear(b);
    for (size_t i = 0; b->verdicts && i < b->room; i++)
        doppel_verdict_free(&b->verdicts[i]);
    free(b->records);
    free(b->items);
    free(b->verdicts);
    free(b->errors);
    free(b);
}

void record_is_bad(record *r, const char *why) {
    doppel_document_free(r->document);
    r->document = NULL;
    r->kind = RECORD_BAD;
    free(r->why);
    r->why = strdup(why);
}

/* The reader repairs invalid UTF-8; here that is an error, as the record is passed on unchanged. */
static bool was_repaired(const doppel_document *document, const rd_kafka_message_t *m) {
    return document->record.length != m->len || memcmp(document->record.data, m->payload, m->len) != 0;
}

/* ASCII letters and digits are parts of words in every recipe; for anything else the fingerprint shows whether there
 * are words. */
static bool has_words(const doppel_document *page) {
    for (size_t i = 0; i < page->text.length; i++) {
        char c = page->text.data[i];
        if ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'))
            return true;
    }
    uint64_t fingerprint = 0;
    return page->text.length && doppel_fingerprint(page->text, &fingerprint) == DOPPEL_OK && fingerprint;
}

void reading_open(reading *r, const doppel_input_options *input, size_t max_record) {
    enum { MOST = sizeof r->keys / sizeof *r->keys };
    size_t count = input->extra_count;
    *r = (reading){.input = *input, .sees_id = count < MOST, .max_record = max_record};
    for (size_t i = 0; i < count && i < MOST; i++)
        r->keys[i] = input->extra_keys[i];
    if (r->sees_id)
        r->keys[count++] = input->id_key ? input->id_key : "id";
    r->input.extra_keys = r->keys;
    r->input.extra_count = count;
}

/* Why a record that could be parsed is not a page; NULL: it is one. */
static const char *find_fault(const record *r, const reading *how) {
    const doppel_document *page = r->document;
    if (was_repaired(page, r->message))
        return "not UTF-8";
    if (how->sees_id && !page->id.length && page->extra[how->input.extra_count - 1].length)
        return "the id is neither a string nor a number";
    if (!page->url.length && !page->title.length && !page->html.length && !has_words(page))
        return "nothing to index: no URL, no title and no words";
    return NULL;
}

static void read_page(record *r, const reading *how) {
    const rd_kafka_message_t *m = r->message;
    doppel_error error = {0};
    char why[120];
    if (m->len > how->max_record) {
        snprintf(why, sizeof why, "the record has %zu bytes, more than --max-record %zu", m->len, how->max_record);
        record_is_bad(r, why);
        return;
    }
    doppel_status status = doppel_document_parse((doppel_slice){m->payload, m->len}, &how->input, &r->document, &error);
    if (status != DOPPEL_OK) {
        record_is_bad(r, m->len ? error.message : "the value is empty");
        return;
    }
    const char *fault = find_fault(r, how);
    if (fault) {
        record_is_bad(r, fault);
        return;
    }
    if (!r->document->id.length && m->key_len) {
        r->document->id.data = m->key;
        r->document->id.length = m->key_len;
    }
}

void stream_batch_add(batch *b, rd_kafka_message_t *message, const reading *how) {
    record *r = &b->records[b->count++];
    *r = (record){.message = message};
    b->bytes += message->len + message->key_len;
    snprintf(r->origin, sizeof r->origin, "%s/%d/%lld", rd_kafka_topic_name(message->rkt), (int)message->partition,
             (long long)message->offset);
    if (message->payload)
        read_page(r, how);
    else if (message->key_len)
        r->kind = RECORD_TOMBSTONE;
    else
        record_is_bad(r, "neither a value nor a key");
    r->without =
        r->kind == RECORD_BAD || (r->kind == RECORD_PAGE && !r->document->text.length && !r->document->html.length);
    b->without += r->without;
}
