/* parts.c - the bytes of traces and records: docs/FORMAT.md has them.
 *
 * Flags say what is there, numbers are varints (seven bits a byte, the lowest first), nothing is padded. Every value
 * has exactly one encoding, and decoding accepts no other: encoding reproduces what decoding accepts. */
#include "store/store.h"

#include <math.h>

/* ---- bytes: failures are sticky: a writer out of memory, a reader that runs out of bytes or finds invalid ones
 * ---- */

typedef struct byte_writer {
    dp_buffer *to;
    bool failed;
} byte_writer;

static void put_bytes(byte_writer *w, const void *bytes, size_t length) {
    w->failed = w->failed || !dp_buffer_add(w->to, bytes, length);
}

/* The lowest `bytes` bytes of a number, the lowest first. */
static void put_fixed(byte_writer *w, uint64_t number, size_t bytes) {
    uint8_t out[8];
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(number >> (8 * i));
    put_bytes(w, out, bytes);
}

static void put_varint(byte_writer *w, uint64_t number) {
    uint8_t out[10];
    size_t length = 0;
    for (; number >= 128; number >>= 7)
        out[length++] = (uint8_t)(number | 128);
    out[length++] = (uint8_t)number;
    put_bytes(w, out, length);
}

static void put_slice(byte_writer *w, doppel_slice slice) {
    put_varint(w, slice.length);
    put_bytes(w, slice.data, slice.length);
}

static void put_double(byte_writer *w, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_fixed(w, bits, 8);
}

/* Undoes a partial write. */
static bool finish(byte_writer *w, size_t before) {
    if (w->failed)
        w->to->size = before;
    return !w->failed;
}

typedef struct byte_reader {
    const uint8_t *at, *end;
    bool failed;
} byte_reader;

static const uint8_t *take_bytes(byte_reader *r, uint64_t length) {
    if (r->failed || length > (uint64_t)(r->end - r->at)) {
        r->failed = true;
        return NULL;
    }
    r->at += length;
    return r->at - length;
}

static uint64_t take_fixed(byte_reader *r, size_t bytes) {
    const uint8_t *from = take_bytes(r, bytes);
    return from ? dp_load_tail(from, bytes) : 0;
}

/* Only the shortest form is valid, and only values that fit 64 bits. */
static uint64_t take_varint(byte_reader *r) {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint8_t *byte = take_bytes(r, 1);
        if (!byte)
            return 0;
        uint64_t seven = *byte & 127;
        number |= seven << shift;
        if (*byte < 128) {
            r->failed = (shift && !seven) || seven << shift >> shift != seven;
            return number;
        }
    }
    r->failed = true;
    return 0;
}

/* A number stored only if it is not 0. */
static uint64_t take_nonzero(byte_reader *r, uint64_t number) {
    r->failed = r->failed || !number;
    return number;
}

static doppel_slice take_slice(byte_reader *r) {
    uint64_t length = take_varint(r);
    const uint8_t *from = take_bytes(r, length);
    return (doppel_slice){(const char *)from, from ? (size_t)length : 0};
}

static double take_double(byte_reader *r) {
    uint64_t bits = take_fixed(r, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    r->failed = r->failed || isnan(value);
    return value;
}

/* ---- traces ---- */

enum trace_flag {
    HAS_CONTENT = 1,
    HAS_DIGEST = 2,
    HAS_FINGERPRINT = 4,
    HAS_SECOND = 8, /* the second half of a fingerprint */
    HAS_ID = 16,
    HAS_URL = 32,
    HAS_EXPIRY = 64,
    HAS_KEYS = 128,
    HAS_TITLE = 256,
    HAS_OWN_WORDS = 512,
    TRACE_FLAGS = 1023
};

static unsigned trace_flags(const dp_trace *trace) {
    return (trace->content ? HAS_CONTENT : 0U) | (dp_has_digest(trace->digest) ? HAS_DIGEST : 0) |
           (trace->fingerprint[0] ? HAS_FINGERPRINT : 0) | (trace->fingerprint[1] ? HAS_SECOND : 0) |
           (trace->id_hash ? HAS_ID : 0) | (trace->url_hash ? HAS_URL : 0) | (trace->expires ? HAS_EXPIRY : 0) |
           (trace->key_count ? HAS_KEYS : 0) | (trace->title.length ? HAS_TITLE : 0) |
           (trace->own_words ? HAS_OWN_WORDS : 0);
}

bool dp_trace_encode(const dp_trace *trace, dp_buffer *to) {
    size_t before = to->size;
    unsigned flags = trace_flags(trace);
    byte_writer w = {to, false};
    put_fixed(&w, (uint64_t)trace->kind, 1);
    put_fixed(&w, flags, 2);
    put_varint(&w, trace->number);
    if (trace->kind != DP_TRACE_DOCUMENT)
        put_varint(&w, trace->of);
    put_varint(&w, trace->added);
    if (flags & HAS_EXPIRY)
        put_varint(&w, trace->expires);
    if (flags & HAS_ID)
        put_fixed(&w, trace->id_hash, 8);
    if (flags & HAS_URL)
        put_fixed(&w, trace->url_hash, 8);
    if (flags & HAS_DIGEST)
        put_bytes(&w, trace->digest, 32);
    if (flags & HAS_FINGERPRINT)
        put_fixed(&w, trace->fingerprint[0], 8);
    if (flags & HAS_SECOND)
        put_fixed(&w, trace->fingerprint[1], 8);
    if (flags & HAS_KEYS) {
        put_varint(&w, trace->key_count);
        put_bytes(&w, trace->keys, 4 * trace->key_count);
    }
    if (flags & HAS_TITLE)
        put_slice(&w, trace->title);
    return finish(&w, before);
}

static void take_digest(byte_reader *r, uint8_t digest[32]) {
    const uint8_t *from = take_bytes(r, 32);
    if (from)
        memcpy(digest, from, 32);
    r->failed = r->failed || !dp_has_digest(digest);
}

static void take_keys(byte_reader *r, dp_trace *trace) {
    uint64_t count = take_nonzero(r, take_varint(r));
    if (count > (uint64_t)(r->end - r->at) / 4)
        r->failed = true;
    trace->keys = (const void *)take_bytes(r, 4 * count);
    trace->key_count = trace->keys ? (size_t)count : 0;
}

/* Behind the number and what it is of. */
static void take_evidence(byte_reader *r, unsigned flags, dp_trace *trace) {
    trace->content = flags & HAS_CONTENT;
    trace->own_words = flags & HAS_OWN_WORDS;
    if (flags & HAS_EXPIRY)
        trace->expires = take_nonzero(r, take_varint(r));
    if (flags & HAS_ID)
        trace->id_hash = take_nonzero(r, take_fixed(r, 8));
    if (flags & HAS_URL)
        trace->url_hash = take_nonzero(r, take_fixed(r, 8));
    if (flags & HAS_DIGEST)
        take_digest(r, trace->digest);
    if (flags & HAS_FINGERPRINT)
        trace->fingerprint[0] = take_nonzero(r, take_fixed(r, 8));
    if (flags & HAS_SECOND)
        trace->fingerprint[1] = take_nonzero(r, take_fixed(r, 8));
    if (flags & HAS_KEYS)
        take_keys(r, trace);
    if (flags & HAS_TITLE) {
        trace->title = take_slice(r);
        take_nonzero(r, trace->title.length);
    }
}

bool dp_trace_decode(doppel_slice bytes, dp_trace *trace) {
    byte_reader r = {(const uint8_t *)bytes.data, (const uint8_t *)bytes.data + bytes.length, !bytes.data};
    *trace = (dp_trace){0};
    uint64_t kind = take_fixed(&r, 1);
    unsigned flags = (unsigned)take_fixed(&r, 2);
    if (r.failed || kind < DP_TRACE_DOCUMENT || kind > DP_TRACE_TEXT || flags & ~(unsigned)TRACE_FLAGS)
        return false;
    trace->kind = (dp_trace_kind)kind;
    if (trace->kind == DP_TRACE_TEXT && flags & ~(unsigned)(HAS_DIGEST | HAS_EXPIRY))
        return false;
    trace->number = take_varint(&r);
    if (trace->kind != DP_TRACE_DOCUMENT)
        trace->of = take_varint(&r);
    trace->added = take_varint(&r);
    take_evidence(&r, flags, trace);
    return !r.failed && r.at == r.end;
}

/* ---- records ---- */

enum record_flag {
    EVIDENCE_URL = 1,
    EVIDENCE_DIGEST = 2,
    EVIDENCE_VERIFIED = 4,
    EVIDENCE_SIMILARITY = 8,
    EVIDENCE_CONTAINMENT = 16,
    EVIDENCE_TITLE = 32,
    EVIDENCE_FLAGS = 63
};

enum { RECORD_SLICES = 7, LAST_REASON = 3, RECORD_SAMPLED = 1 << RECORD_SLICES };

/* The slices, in their order. */
static void list_slices(const dp_record *record, doppel_slice slices[RECORD_SLICES]) {
    const doppel_slice all[RECORD_SLICES] = {record->id,     record->url,         record->canonical, record->title,
                                             record->fields, record->original_id, record->origin};
    memcpy(slices, all, sizeof all);
}

static void put_evidence(byte_writer *w, const doppel_evidence *evidence) {
    const double measures[3] = {evidence->similarity, evidence->containment, evidence->title_similarity};
    unsigned flags = (evidence->same_url ? EVIDENCE_URL : 0U) | (evidence->same_digest ? EVIDENCE_DIGEST : 0) |
                     (evidence->verified ? EVIDENCE_VERIFIED : 0);
    for (unsigned i = 0; i < 3; i++)
        flags |= isnan(measures[i]) ? 0U : (unsigned)EVIDENCE_SIMILARITY << i;
    put_fixed(w, flags, 1);
    put_varint(w, evidence->distance < 0 ? 0 : (uint64_t)evidence->distance + 1);
    for (unsigned i = 0; i < 3; i++)
        if (flags & (unsigned)EVIDENCE_SIMILARITY << i)
            put_double(w, measures[i]);
}

bool dp_record_encode(const dp_record *record, dp_buffer *to) {
    size_t before = to->size;
    doppel_slice slices[RECORD_SLICES];
    unsigned flags = 0;
    byte_writer w = {to, false};
    list_slices(record, slices);
    for (unsigned i = 0; i < RECORD_SLICES; i++)
        flags |= slices[i].data ? 1U << i : 0;
    put_fixed(&w, flags | (record->sampled ? RECORD_SAMPLED : 0), 1);
    put_fixed(&w, record->reason, 1);
    put_varint(&w, record->words);
    put_varint(&w, record->set_count);
    put_varint(&w, record->text_length);
    for (unsigned i = 0; i < RECORD_SLICES; i++)
        if (slices[i].data)
            put_slice(&w, slices[i]);
    if (record->reason)
        put_evidence(&w, &record->evidence);
    return finish(&w, before);
}

static void take_record_evidence(byte_reader *r, doppel_evidence *evidence) {
    double *measures[3] = {&evidence->similarity, &evidence->containment, &evidence->title_similarity};
    unsigned flags = (unsigned)take_fixed(r, 1);
    uint64_t distance = take_varint(r);
    if (flags & ~(unsigned)EVIDENCE_FLAGS || distance > INT32_MAX)
        r->failed = true;
    evidence->distance = r->failed ? -1 : (int)distance - 1;
    evidence->same_url = flags & EVIDENCE_URL;
    evidence->same_digest = flags & EVIDENCE_DIGEST;
    evidence->verified = flags & EVIDENCE_VERIFIED;
    for (unsigned i = 0; i < 3; i++)
        if (flags & (unsigned)EVIDENCE_SIMILARITY << i)
            *measures[i] = take_double(r);
}

bool dp_record_decode(doppel_slice bytes, dp_record *record) {
    byte_reader r = {(const uint8_t *)bytes.data, (const uint8_t *)bytes.data + bytes.length, !bytes.data};
    *record = (dp_record){.evidence = dp_evidence_none()};
    doppel_slice *slices[RECORD_SLICES] = {&record->id,     &record->url,         &record->canonical, &record->title,
                                           &record->fields, &record->original_id, &record->origin};
    unsigned flags = (unsigned)take_fixed(&r, 1);
    record->reason = (uint8_t)take_fixed(&r, 1);
    if (r.failed || record->reason > LAST_REASON)
        return false;
    record->sampled = flags & RECORD_SAMPLED;
    record->words = take_varint(&r);
    record->set_count = take_varint(&r);
    record->text_length = take_varint(&r);
    for (unsigned i = 0; i < RECORD_SLICES; i++)
        if (flags & 1U << i)
            *slices[i] = take_slice(&r);
    if (record->reason)
        take_record_evidence(&r, &record->evidence);
    return !r.failed && r.at == r.end;
}
