/* redis_codec.c - documents as they stand in Redis: a head of fixed size that the functions read and write, names, and
 * a rest that is theirs to carry only. docs/FORMAT.md has the bytes. */
#include "store/bytes.h"
#include "store/redis_memory.h"
#include "verify/verify.h"

#include <math.h>
#include <stdlib.h>

enum { HEAD = 58, VERSION = 1 };

/* ---- the rest ---- */

/* A URL is mostly its canonical form but for a few bytes: how many bytes at its beginning and at its end are those of
 * the canonical URL, and what stands between them. */
static bool encode_url(const dp_record *record, dp_buffer *to) {
    writer w = {to, false};
    doppel_slice url = record->url, canonical = record->canonical;
    size_t most = url.length < canonical.length ? url.length : canonical.length, front = 0, back = 0;
    while (front < most && url.data[front] == canonical.data[front])
        front++;
    while (back < most - front && url.data[url.length - 1 - back] == canonical.data[canonical.length - 1 - back])
        back++;
    put_varint(&w, front);
    put_varint(&w, back);
    put_bytes(&w, url.data + front, url.length - front - back);
    return !w.failed;
}

static doppel_status decode_url(doppel_slice bytes, doppel_slice canonical, dp_arena *arena, doppel_slice *url) {
    reader r = {(const uint8_t *)bytes.data, (const uint8_t *)bytes.data + bytes.length, false};
    uint64_t front = take_varint(&r), back = take_varint(&r);
    if (r.failed || front > canonical.length || back > canonical.length - front)
        return DOPPEL_ERROR_STORE;
    size_t middle = (size_t)(r.end - r.at);
    char *whole = dp_arena_take(arena, (size_t)front + middle + (size_t)back);
    if (!whole)
        return DOPPEL_ERROR_MEMORY;
    if (front)
        memcpy(whole, canonical.data, (size_t)front);
    if (middle)
        memcpy(whole + front, r.at, middle);
    if (back)
        memcpy(whole + front + middle, canonical.data + canonical.length - back, (size_t)back);
    *url = (doppel_slice){whole, (size_t)front + middle + (size_t)back};
    return DOPPEL_OK;
}

bool dp_redis_rest_encode(const dp_shared_request *request, dp_buffer *to) {
    const dp_record *from = &request->record;
    dp_buffer url = {0};
    dp_record rest = {
        .title = from->title, .fields = from->fields, .words = from->words, .text_length = from->text_length};
    bool done = !from->url.data || encode_url(from, &url);
    if (from->url.data)
        rest.url = (doppel_slice){url.data ? url.data : "", url.size};
    if (request->op == DP_SHARED_RESTORE && from->reason) {
        rest.reason = from->reason;
        rest.evidence = from->evidence;
    }
    done = done && dp_record_encode(&rest, to);
    dp_buffer_free(&url);
    return done;
}

/* ---- documents ---- */

static uint64_t take_number(reader *r, size_t bytes) {
    const uint8_t *from = take_bytes(r, bytes);
    uint64_t number = 0;
    for (size_t i = 0; i < bytes && from; i++)
        number = number << 8 | from[i];
    return number;
}

static doppel_slice take_part(reader *r, uint64_t length) {
    const uint8_t *from = take_bytes(r, length);
    return (doppel_slice){(const char *)from, from ? (size_t)length : 0};
}

/* How long the parts behind the head are; `origin` is one more. */
typedef struct lengths {
    uint64_t original, id, canonical, title, origin;
} lengths;

static unsigned take_head(reader *r, dp_redis_document *d, lengths *l) {
    bool right = take_number(r, 1) == VERSION;
    uint64_t kind = take_number(r, 1);
    unsigned flags = (unsigned)take_number(r, 1);
    d->trace.kind = kind == DP_TRACE_COPY ? DP_TRACE_COPY : DP_TRACE_DOCUMENT;
    d->record.reason = (uint8_t)take_number(r, 1);
    d->trace.added = take_number(r, 5);
    d->trace.expires = take_number(r, 5);
    for (int i = 0; i < 3; i++)
        d->counts.by[i] = take_number(r, 4);
    d->counts.last = take_number(r, 5);
    d->trace.of = take_number(r, 5);
    take_bytes(r, 8); /* the token */
    l->original = take_number(r, 3);
    l->id = take_number(r, 3);
    l->canonical = take_number(r, 3);
    l->title = take_number(r, 3);
    l->origin = take_number(r, 2);
    r->failed = r->failed || !right || kind != (uint64_t)d->trace.kind || d->record.reason >= DP_REASONS ||
                (kind == DP_TRACE_COPY) != (d->record.reason != 0);
    return flags;
}

static void take_sketch(reader *r, const dp_redis_memory *memory, unsigned flags, dp_trace *trace) {
    size_t width = dp_redis_plan_width(&memory->plan);
    const uint8_t *bytes = take_bytes(r, width);
    dp_bits value = 0;
    for (size_t i = 0; i < width && bytes; i++)
        value = value << 8 | bytes[i];
    dp_bits_store(dp_order_undo(&memory->order, value), trace->fingerprint);
    trace->content = flags & DP_REDIS_CONTENT;
    const uint8_t *digest = flags & DP_REDIS_DIGEST ? take_bytes(r, sizeof trace->digest) : NULL;
    if (digest)
        memcpy(trace->digest, digest, sizeof trace->digest);
}

static void take_names(reader *r, unsigned flags, const lengths *l, dp_redis_document *d) {
    dp_record *record = &d->record;
    doppel_slice id = take_part(r, l->id);
    doppel_slice canonical = take_part(r, l->canonical);
    record->canonical = canonical.length ? canonical : (doppel_slice){NULL, 0};
    record->id = flags & DP_REDIS_SAME_ID ? canonical : id;
    if (l->origin)
        record->origin = take_part(r, l->origin - 1);
    d->trace.title = take_part(r, l->title);
}

/* What dp_redis_rest_encode made. */
static doppel_status take_rest(reader *r, uint64_t original, dp_arena *arena, dp_redis_document *d) {
    dp_record rest, *record = &d->record;
    uint64_t left = (uint64_t)(r->end - r->at);
    if (r->failed || left < original || !dp_record_decode(take_part(r, left - original), &rest))
        return DOPPEL_ERROR_STORE;
    if (d->trace.kind == DP_TRACE_COPY)
        record->original_id = take_part(r, original);
    record->title = rest.title;
    record->fields = rest.fields;
    record->words = rest.words;
    record->text_length = d->has_text ? rest.text_length : 0;
    record->evidence = rest.evidence;
    return rest.url.data ? decode_url(rest.url, record->canonical, arena, &record->url) : DOPPEL_OK;
}

doppel_status dp_redis_document_decode(const dp_redis_memory *memory, uint64_t number, doppel_slice bytes,
                                       dp_arena *arena, dp_redis_document *d) {
    reader r = {(const uint8_t *)bytes.data, (const uint8_t *)bytes.data + bytes.length, !bytes.data};
    lengths l = {0};
    *d = (dp_redis_document){.trace.number = number, .record.evidence = dp_evidence_none()};
    unsigned flags = take_head(&r, d, &l);
    d->has_text = flags & DP_REDIS_TEXT;
    d->has_evidence = flags & DP_REDIS_EVIDENCE;
    take_sketch(&r, memory, flags, &d->trace);
    take_names(&r, flags, &l, d);
    return take_rest(&r, l.original, arena, d);
}

/* ---- evidence ---- */

static bool has_words(const dp_trace *trace) {
    static const uint8_t none[32];
    return memcmp(trace->digest, none, sizeof none) != 0;
}

doppel_status dp_redis_measure(const dp_redis_document *document, const dp_redis_document *original, dp_reason reason,
                               doppel_evidence *e) {
    const dp_trace *a = &document->trace, *b = &original->trace;
    doppel_slice url = document->record.canonical, other = original->record.canonical;
    *e = dp_evidence_none();
    e->same_url = reason == DP_SAME_URL ||
                  (url.length && url.length == other.length && !memcmp(url.data, other.data, url.length));
    e->same_digest = has_words(a) && !memcmp(a->digest, b->digest, sizeof a->digest);
    if ((has_words(a) || a->content) && (has_words(b) || b->content))
        e->distance = doppel_distance128(a->fingerprint, b->fingerprint);
    if (e->same_digest) {
        e->similarity = e->containment = 1;
        e->verified = true;
    }
    if (!a->title.length || !b->title.length)
        return DOPPEL_OK;
    return doppel_edit_similarity(a->title.data, a->title.length, b->title.data, b->title.length, 0,
                                  &e->title_similarity);
}
