/* parts.c - where a batch is cut.
 *
 * Within a part nothing is removed after something was added: whatever makes the engine remove a document (a tombstone
 * of an indexed document, a page that replaces one with other words) begins a new part. So a part that is repeated
 * after a crash finds everything it found the first time, and its verdicts are the same. */
#include "stream/parts.h"

#include <stdlib.h>
#include <string.h>

/* ---- the pages of a part by their ids: open addressing. Ids chosen to collide slow down one batch only, and a batch
 * is small ---- */

bool id_set_open(id_set *set, size_t count) {
    *set = (id_set){.room = 16};
    while (set->room < 2 * count)
        set->room *= 2;
    set->slots = calloc(set->room, sizeof *set->slots);
    return set->slots;
}

void id_set_clear(id_set *set) {
    memset(set->slots, 0, set->room * sizeof *set->slots);
}

void id_set_free(id_set *set) {
    free(set->slots);
    *set = (id_set){0};
}

/* FNV-1a, 64 bits. */
static uint64_t hash(const char *id, size_t length) {
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)id[i]) * 0x100000001b3;
    return h ^ h >> 32;
}

/* Where it is, or would be. */
static const doppel_document **find(const id_set *set, const char *id, size_t length) {
    for (size_t i = hash(id, length);; i++) {
        const doppel_document **slot = &set->slots[i & (set->room - 1)];
        if (!*slot || ((*slot)->id.length == length && !memcmp((*slot)->id.data, id, length)))
            return slot;
    }
}

bool id_set_has(const id_set *set, const char *id, size_t length) {
    return *find(set, id, length);
}

const doppel_document *id_set_add(id_set *set, const doppel_document *page) {
    const doppel_document **slot = find(set, page->id.data, page->id.length);
    if (*slot)
        return *slot;
    *slot = page;
    return NULL;
}

/* ---- cutting ---- */

static bool same_bytes(const char *a, size_t a_length, const char *b, size_t b_length) {
    return a_length == b_length && (!a_length || !memcmp(a, b, a_length));
}

static bool same_text(const doppel_document *a, const doppel_document *b) {
    return same_bytes(a->text.data, a->text.length, b->text.data, b->text.length) &&
           same_bytes(a->html.data, a->html.length, b->html.data, b->html.length);
}

/* Whether a page replaces an indexed one with other words. Where several workers share an index, the order of pages is
 * undefined anyway, and the index is not asked. */
static outcome replaces(stream *s, const doppel_item *page, bool *other) {
    const doppel_slice id = {page->document.id.data, page->document.id.length};
    bool same;
    *other = false;
    if (!s->job->needs.one_writer)
        return OUTCOME_DONE;
    outcome o = is_there(s, id, page->origin, other);
    if (o == OUTCOME_DONE && *other) {
        o = has_same_words(s, page, &same);
        *other = !same;
    }
    return o;
}

/* Whether a page begins a new part; else it is in this one. */
static outcome page_begins(stream *s, part *p, const doppel_item *page, const doppel_document *document, bool *begins) {
    outcome o = OUTCOME_DONE;
    *begins = false;
    if (document->id.length) {
        const doppel_document *first = id_set_add(&p->ids, document);
        if (first)
            *begins = !same_text(first, document);
        else if (p->adds)
            o = replaces(s, page, begins);
    }
    p->unnamed = p->unnamed || (!*begins && !document->id.length);
    p->adds = p->adds || !*begins;
    return o;
}

/* The same for a tombstone. It is carried out at the start of a part, before pages are added. */
static outcome tombstone_begins(stream *s, part *p, record *r, bool *begins) {
    const rd_kafka_message_t *m = r->message;
    const doppel_slice id = {m->key, m->key_len};
    bool there;
    if (p->adds && (p->unnamed || id_set_has(&p->ids, m->key, m->key_len))) {
        *begins = true;
        return OUTCOME_DONE;
    }
    outcome o = is_there(s, id, (doppel_slice){NULL, 0}, &there);
    *begins = there && p->adds;
    return o == OUTCOME_DONE && there && !p->adds ? forget(s, r, id) : o;
}

outcome find_part(stream *s, batch *b, part *p) {
    outcome o = OUTCOME_DONE;
    bool begins = false;
    for (p->to = p->from; p->to < b->count; p->to++) {
        record *r = &b->records[p->to];
        if (r->kind == RECORD_PAGE)
            o = page_begins(s, p, &b->items[r->item], r->document, &begins);
        else if (r->kind == RECORD_TOMBSTONE)
            o = tombstone_begins(s, p, r, &begins);
        if (begins || o != OUTCOME_DONE)
            break;
    }
    return o;
}
