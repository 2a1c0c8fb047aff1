/* verify_values.c - what can be wrong with one value, or with what it refers to. */
#include "store/verify.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <zstd.h>

/* A finding on a number, which is marked. */
#define WRONG(w, number, ...)                       \
    do {                                            \
        char what_[300];                            \
        snprintf(what_, sizeof what_, __VA_ARGS__); \
        tell_wrong(w, number, what_);               \
    } while (0)

/* So much of an id is told. */
#define MOST_ID ((size_t)200)

/* ---- looking up ---- */

/* A value whose checksum is right; false: there is none. */
static bool get(const dp_walk *w, int part, uint64_t number, doppel_slice *bytes) {
    dp_found found;
    return !dp_btree_get(&w->now.pages, &w->now.db[part], number, &found) &&
           dp_value_open(&found.value, number, part, bytes);
}

static bool exists(const dp_walk *w, int db, uint64_t number) {
    dp_found found;
    return !dp_btree_get(&w->now.pages, &w->now.db[db], number, &found);
}

bool dp_verify_trace(const dp_walk *w, uint64_t number, dp_trace *trace) {
    doppel_slice bytes;
    return get(w, DP_PART_TRACE, number, &bytes) && dp_trace_decode(bytes, trace);
}

static bool get_record(const dp_walk *w, uint64_t number, dp_record *record) {
    doppel_slice bytes;
    return get(w, DP_PART_RECORD, number, &bytes) && dp_record_decode(bytes, record);
}

/* With the id, where the record can be read. */
static void tell_wrong(dp_walk *w, uint64_t number, const char *what) {
    dp_record record;
    dp_verify_mark(w, number);
    if (get_record(w, number, &record) && record.id.length)
        dp_verify_say(w, "number %" PRIu64 " (id %.*s): %s", number,
                      (int)(record.id.length < MOST_ID ? record.id.length : MOST_ID), record.id.data, what);
    else
        dp_verify_say(w, "number %" PRIu64 ": %s", number, what);
}

/* ---- one value ---- */

static void check_trace(dp_walk *w, uint64_t number, doppel_slice bytes) {
    dp_trace trace;
    if (!dp_trace_decode(bytes, &trace))
        WRONG(w, number, "its trace makes no sense");
    else if (trace.number != number)
        WRONG(w, number, "its trace is that of number %" PRIu64, trace.number);
    else if (dp_trace_is_kept(&trace) && !exists(w, DP_PART_RECORD, number))
        WRONG(w, number, "its record is missing");
    else if (trace.kind != DP_TRACE_DOCUMENT && (!trace.of || trace.of >= number))
        WRONG(w, number, "its trace refers to number %" PRIu64 ", which came later", trace.of);
}

static void check_record(dp_walk *w, uint64_t number, doppel_slice bytes) {
    dp_record record;
    if (!dp_record_decode(bytes, &record)) {
        WRONG(w, number, "its record makes no sense");
        return;
    }
    if (record.set_count && !exists(w, DP_PART_SET, number))
        WRONG(w, number, "its set of features is missing");
    if (record.text_length && !exists(w, DP_PART_TEXT, number))
        WRONG(w, number, "its text is missing");
}

static void check_set(dp_walk *w, uint64_t number, doppel_slice bytes) {
    dp_record record;
    if (get_record(w, number, &record) && record.sampled) {
        if (!dp_bottom_is_valid(bytes))
            WRONG(w, number, "its sample of features makes no sense");
        else if (dp_bottom_count(bytes) != record.set_count)
            WRONG(w, number, "its sample is of %zu features, its record speaks of others", dp_bottom_count(bytes));
        return;
    }
    for (size_t at = 8; at + 8 <= bytes.length; at += 8)
        if (dp_load64(bytes.data + at) <= dp_load64(bytes.data + at - 8)) {
            WRONG(w, number, "its set of features is not in order");
            return;
        }
    if (bytes.length % 8 || (get_record(w, number, &record) && record.set_count != bytes.length / 8))
        WRONG(w, number, "its set has %zu features, its record speaks of others", bytes.length / 8);
}

static void check_text(dp_walk *w, uint64_t number, doppel_slice bytes) {
    dp_record record;
    unsigned long long length = ZSTD_getFrameContentSize(bytes.data, bytes.length);
    if (length == ZSTD_CONTENTSIZE_ERROR || length == ZSTD_CONTENTSIZE_UNKNOWN)
        WRONG(w, number, "its text is not compressed as it should be");
    else if (get_record(w, number, &record) && record.text_length != length)
        WRONG(w, number, "its text has %llu bytes, its record speaks of %" PRIu64, length, record.text_length);
}

void dp_verify_part(dp_walk *w, int part, uint64_t number, const MDB_val *value) {
    static void (*const checks[DP_PARTS])(dp_walk *, uint64_t, doppel_slice) = {check_trace, check_record, check_set,
                                                                                check_text};
    doppel_slice bytes;
    if (!dp_value_open(value, number, part, &bytes))
        WRONG(w, number, "its %s is damaged, the checksum is wrong", dp_part_name((dp_part)part));
    else
        checks[part](w, number, bytes);
    if (part != DP_PART_TRACE && !exists(w, DP_PART_TRACE, number))
        WRONG(w, number, "has a %s, but no trace", dp_part_name((dp_part)part));
    if (number > w->state.last)
        WRONG(w, number, "is above the last number, %" PRIu64, w->state.last);
}

void dp_verify_link(dp_walk *w, uint64_t number, uint64_t copy) {
    dp_trace trace;
    if (!exists(w, DP_PART_TRACE, number))
        dp_verify_say(w, "number %" PRIu64 " has a link, but is not there", number);
    /* A trace that is damaged has been told. */
    if (!exists(w, DP_PART_TRACE, copy))
        dp_verify_say(w, "number %" PRIu64 " has a link to number %" PRIu64 ", which is not there", number, copy);
    else if (dp_verify_trace(w, copy, &trace) && (trace.kind != DP_TRACE_COPY || trace.of != number))
        dp_verify_say(w, "number %" PRIu64 " has a link to number %" PRIu64 ", which is no copy of it", number, copy);
}

void dp_verify_count(dp_walk *w, uint64_t number, const MDB_val *value) {
    doppel_slice bytes;
    dp_counts counts;
    if (!dp_value_open(value, number, DP_SEED_COUNTS, &bytes) || !dp_counts_decode(bytes, &counts))
        dp_verify_say(w, "number %" PRIu64 ": the count of its duplicates is damaged, the checksum is wrong", number);
    if (!exists(w, DP_PART_TRACE, number))
        dp_verify_say(w, "duplicates of number %" PRIu64 " are counted, but it is not there", number);
}
