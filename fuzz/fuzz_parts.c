/* fuzz_parts.c - any bytes as the trace and the record of a stored document: what is decoded points into them, and
 * encoding makes the same bytes again. */
#include "fuzz.h"

#include "store/store.h"

#include <string.h>

static void check_slice(doppel_slice slice, const uint8_t *data, size_t size) {
    if (!slice.data)
        return;
    CHECK(slice.data >= (const char *)data && slice.length <= size);
    CHECK(slice.data + slice.length <= (const char *)data + size);
}

static void check_same(dp_buffer *again, const uint8_t *data, size_t size) {
    CHECK(again->size == size && !memcmp(again->data, data, size));
    dp_buffer_free(again);
}

static void try_trace(const uint8_t *data, size_t size) {
    dp_trace trace;
    dp_buffer again = {0};
    if (!dp_trace_decode((doppel_slice){(const char *)data, size}, &trace))
        return;
    check_slice(trace.title, data, size);
    check_slice((doppel_slice){(const char *)trace.keys, 4 * trace.key_count}, data, size);
    CHECK(dp_trace_encode(&trace, &again));
    check_same(&again, data, size);
}

static void try_record(const uint8_t *data, size_t size) {
    dp_record record;
    dp_buffer again = {0};
    if (!dp_record_decode((doppel_slice){(const char *)data, size}, &record))
        return;
    const doppel_slice slices[] = {record.id,     record.url,         record.canonical, record.title,
                                   record.fields, record.original_id, record.origin};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
        check_slice(slices[i], data, size);
    CHECK(dp_record_encode(&record, &again));
    check_same(&again, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_trace(data, size);
    try_record(data, size);
    return 0;
}
