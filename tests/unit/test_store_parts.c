/* test_store_parts.c - the bytes of traces and records: there and back, and any other bytes without harm. */
#include "support.h"

#include "store/store.h"

#include <math.h>
#include <stdio.h>

/* ---- samples ---- */

static const uint32_t KEYS[4] = {0, 1, 0x80000000, UINT32_MAX};

static dp_trace sample_trace(int number) {
    static const dp_trace traces[] = {
        {.number = 1, .kind = DP_TRACE_DOCUMENT},
        {.number = 300,
         .kind = DP_TRACE_DOCUMENT,
         .expires = 1800000000,
         .added = 1700000000,
         .id_hash = 0x0123456789ABCDEF,
         .url_hash = 0xFEDCBA9876543210,
         .digest = {1, 2, 3},
         .fingerprint = {0x8000000000000001, 5},
         .content = true,
         .keys = KEYS,
         .key_count = 4,
         .title = {"a title of some length", 22}},
        {.number = UINT64_MAX, .kind = DP_TRACE_COPY, .of = UINT64_MAX - 1, .added = 127, .url_hash = 1},
        {.number = 130, .kind = DP_TRACE_COPY, .of = 1, .digest = {9}, .own_words = true},
        {.number = 131, .kind = DP_TRACE_TEXT, .of = 1, .expires = 9, .digest = {9}},
        {.number = 129, .kind = DP_TRACE_COPY_REMOVAL, .of = 128, .added = 128, .url_hash = 7},
        {.number = 128, .kind = DP_TRACE_REMOVAL, .of = 127, .added = 128, .fingerprint = {0, 9}},
        {.number = 16384, .kind = DP_TRACE_DOCUMENT, .expires = UINT64_MAX, .digest = {[31] = 1}, .title = {"x", 1}},
    };
    return traces[number];
}

enum { TRACES = 6, RECORDS = 4 };

static dp_record sample_record(int number) {
    static const dp_record records[] = {
        {.id = {"a", 1}, .evidence = {-1, NAN, NAN, NAN, false, false, false}},
        {.id = {"id", 2},
         .url = {"HTTP://Example.org/", 19},
         .canonical = {"http://example.org/", 19},
         .title = {"Title", 5},
         .fields = {"{\"source\":\"x\"}", 14},
         .words = 1000,
         .set_count = 996,
         .text_length = 123456789,
         .evidence = {-1, NAN, NAN, NAN, false, false, false}},
        {.id = {"", 0},
         .url = {"u", 1},
         .original_id = {"id", 2},
         .origin = {"pages/3/1207", 12},
         .words = UINT64_MAX,
         .reason = 2,
         .evidence = {3, 0.97, 0.5, NAN, false, true, true}},
        {.id = {"b", 1}, .original_id = {"", 0}, .reason = 3, .evidence = {-1, NAN, NAN, 0.9, true, false, false}},
    };
    return records[number];
}

static void same_slice(doppel_slice a, doppel_slice b) {
    assert_int_equal(a.data != NULL, b.data != NULL);
    assert_int_equal(a.length, b.length);
    if (a.length)
        assert_memory_equal(a.data, b.data, a.length);
}

static void same_double(double a, double b) {
    assert_true(isnan(a) ? isnan(b) : a == b);
}

/* ---- there and back ---- */

static void traces_come_back(void **state) {
    (void)state;
    for (int i = 0; i < TRACES; i++) {
        dp_buffer bytes = {0};
        dp_trace in = sample_trace(i), out;
        assert_true(dp_trace_encode(&in, &bytes));
        assert_true(dp_trace_decode((doppel_slice){bytes.data, bytes.size}, &out));
        assert_int_equal(out.number, in.number);
        assert_int_equal(out.kind, in.kind);
        assert_int_equal(out.own_words, in.own_words);
        assert_int_equal(out.of, in.of);
        assert_int_equal(out.expires, in.expires);
        assert_int_equal(out.added, in.added);
        assert_int_equal(out.id_hash, in.id_hash);
        assert_int_equal(out.url_hash, in.url_hash);
        assert_memory_equal(out.digest, in.digest, 32);
        assert_memory_equal(out.fingerprint, in.fingerprint, 16);
        assert_int_equal(out.content, in.content);
        assert_int_equal(out.key_count, in.key_count);
        if (in.key_count)
            assert_memory_equal(out.keys, in.keys, 4 * in.key_count);
        assert_int_equal(out.title.length, in.title.length);
        dp_buffer_free(&bytes);
    }
}

static void records_come_back(void **state) {
    (void)state;
    for (int i = 0; i < RECORDS; i++) {
        dp_buffer bytes = {0};
        dp_record in = sample_record(i), out;
        assert_true(dp_record_encode(&in, &bytes));
        assert_true(dp_record_decode((doppel_slice){bytes.data, bytes.size}, &out));
        same_slice(in.id, out.id);
        same_slice(in.url, out.url);
        same_slice(in.canonical, out.canonical);
        same_slice(in.title, out.title);
        same_slice(in.fields, out.fields);
        same_slice(in.original_id, out.original_id);
        same_slice(in.origin, out.origin);
        assert_int_equal(in.words, out.words);
        assert_int_equal(in.set_count, out.set_count);
        assert_int_equal(in.text_length, out.text_length);
        assert_int_equal(in.reason, out.reason);
        assert_int_equal(in.evidence.distance, out.evidence.distance);
        same_double(in.evidence.similarity, out.evidence.similarity);
        same_double(in.evidence.containment, out.evidence.containment);
        same_double(in.evidence.title_similarity, out.evidence.title_similarity);
        assert_int_equal(in.evidence.same_url, out.evidence.same_url);
        assert_int_equal(in.evidence.same_digest, out.evidence.same_digest);
        assert_int_equal(in.evidence.verified, out.evidence.verified);
        dp_buffer_free(&bytes);
    }
}

static void a_document_without_anything_takes_few_bytes(void **state) {
    (void)state;
    dp_buffer bytes = {0};
    dp_trace trace = sample_trace(0);
    assert_true(dp_trace_encode(&trace, &bytes));
    assert_int_equal(bytes.size, 5);
    dp_buffer_free(&bytes);
}

/* ---- any bytes ---- */

/* What is decoded is what encoding makes, and stands inside the bytes that were given. */
static bool try_trace(const char *bytes, size_t length) {
    dp_trace trace;
    dp_buffer again = {0};
    if (!dp_trace_decode((doppel_slice){bytes, length}, &trace))
        return false;
    assert_true(dp_trace_encode(&trace, &again));
    assert_int_equal(again.size, length);
    assert_memory_equal(again.data, bytes, length);
    dp_buffer_free(&again);
    return true;
}

static bool try_record(const char *bytes, size_t length) {
    dp_record record;
    dp_buffer again = {0};
    if (!dp_record_decode((doppel_slice){bytes, length}, &record))
        return false;
    assert_true(dp_record_encode(&record, &again));
    assert_int_equal(again.size, length);
    assert_memory_equal(again.data, bytes, length);
    dp_buffer_free(&again);
    return true;
}

typedef bool try_bytes(const char *bytes, size_t length);

/* Every shorter form, every flipped bit, one byte more: at the end of a page. */
static void try_around(const dp_buffer *bytes, try_bytes *attempt) {
    guarded memory = guarded_create(bytes->size + 1);
    assert_true(attempt(guarded_copy(memory, bytes->data, bytes->size), bytes->size));
    for (size_t length = 0; length < bytes->size; length++)
        assert_false(attempt(guarded_copy(memory, bytes->data, length), length));
    for (size_t bit = 0; bit < 8 * bytes->size; bit++) {
        char *copy = guarded_copy(memory, bytes->data, bytes->size);
        copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
        attempt(copy, bytes->size);
    }
    char *longer = guarded_copy(memory, NULL, bytes->size + 1);
    memcpy(longer, bytes->data, bytes->size);
    longer[bytes->size] = 0;
    assert_false(attempt(longer, bytes->size + 1));
    guarded_free(memory);
}

static void other_bytes_do_no_harm(void **state) {
    (void)state;
    for (int i = 0; i < TRACES; i++) {
        dp_buffer bytes = {0};
        dp_trace trace = sample_trace(i);
        assert_true(dp_trace_encode(&trace, &bytes));
        try_around(&bytes, try_trace);
        dp_buffer_free(&bytes);
    }
    for (int i = 0; i < RECORDS; i++) {
        dp_buffer bytes = {0};
        dp_record record = sample_record(i);
        assert_true(dp_record_encode(&record, &bytes));
        try_around(&bytes, try_record);
        dp_buffer_free(&bytes);
    }
    dp_trace trace;
    dp_record record;
    assert_false(dp_trace_decode((doppel_slice){NULL, 0}, &trace));
    assert_false(dp_record_decode((doppel_slice){NULL, 0}, &record));
}

static void random_bytes_do_no_harm(void **state) {
    (void)state;
    uint64_t seed = 7;
    size_t taken = 0;
    for (int i = 0; i < 200000; i++) {
        char bytes[48];
        size_t length = random_below(&seed, sizeof bytes + 1);
        for (size_t at = 0; at < length; at++)
            bytes[at] = (char)(random_next(&seed) >> random_below(&seed, 64));
        taken += try_trace(bytes, length) || try_record(bytes, length);
    }
    assert_true(taken > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_come_back),
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(a_document_without_anything_takes_few_bytes),
        cmocka_unit_test(other_bytes_do_no_harm),
        cmocka_unit_test(random_bytes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
