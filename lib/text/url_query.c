/* url_query.c - the query of an address: its parts without those that only track, sorted.
 *
 * The order is by name, then by value, byte for byte, a part without `=` before one with an empty value: no two
 * different parts are equal in it, so that equal sets of parts always give equal queries. */
#include "text/url.h"

#include <stdlib.h>

enum { LOCAL_PARTS = 64, LOCAL_BYTES = 2048 };

static size_t name_length(doppel_slice part) {
    const char *equals = part.length ? memchr(part.data, '=', part.length) : NULL;
    return equals ? (size_t)(equals - part.data) : part.length;
}

/* The part that starts at `at` in a text that ends at `end`. */
static doppel_slice part_at(const char *at, const char *end) {
    const char *mark = at != end ? memchr(at, '&', (size_t)(end - at)) : NULL;
    return (doppel_slice){at, (size_t)((mark ? mark : end) - at)};
}

static int compare_bytes(doppel_slice a, doppel_slice b) {
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_parts(const void *first, const void *second) {
    const doppel_slice *a = first, *b = second;
    size_t a_name = name_length(*a), b_name = name_length(*b);
    int order = compare_bytes((doppel_slice){a->data, a_name}, (doppel_slice){b->data, b_name});
    return order ? order
                 : compare_bytes((doppel_slice){a->data + a_name, a->length - a_name},
                                 (doppel_slice){b->data + b_name, b->length - b_name});
}

/* Keeps the parts that the rules keep, in place: gives the end, *parts how many, *sorted whether they are in order. */
static char *filter(char *query, char *end, unsigned without, size_t *parts, bool *sorted) {
    char *kept = query;
    doppel_slice before = {query, 0};
    *parts = 0;
    *sorted = true;
    for (char *at = query;;) {
        doppel_slice part = part_at(at, end);
        char *behind = at + part.length;
        bool empty = !part.length && !(without & DOPPEL_URL_QUERY);
        if (!empty && ((without & DOPPEL_URL_TRACKING) || !dp_url_is_tracking(part.data, name_length(part)))) {
            if ((*parts)++)
                *kept++ = '&';
            memmove(kept, at, part.length);
            part.data = kept;
            kept += part.length;
            *sorted = *sorted && (*parts == 1 || compare_parts(&before, &part) <= 0);
            before = part;
        }
        if (behind == end)
            return kept;
        at = behind + 1;
    }
}

/* Few parts, as most queries have, without a call to the sorting of the C library, which allocates. */
static void sort_parts(doppel_slice *parts, size_t count) {
    if (count > LOCAL_PARTS) {
        qsort(parts, count, sizeof *parts, compare_parts);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        doppel_slice part = parts[i];
        size_t at = i;
        for (; at && compare_parts(&parts[at - 1], &part) > 0; at--)
            parts[at] = parts[at - 1];
        parts[at] = part;
    }
}

/* Sorts in `parts` and `copy`, which have the room. */
static void rewrite(char *query, size_t length, doppel_slice *parts, char *copy) {
    size_t count = 0;
    memcpy(copy, query, length);
    for (const char *at = copy, *end = copy + length;; at++) {
        parts[count] = part_at(at, end);
        at += parts[count++].length;
        if (at == end)
            break;
    }
    sort_parts(parts, count);
    for (size_t i = 0; i < count; i++) {
        if (i)
            *query++ = '&';
        memcpy(query, parts[i].data, parts[i].length);
        query += parts[i].length;
    }
}

static doppel_status sort_query(char *query, size_t length, size_t count) {
    doppel_slice parts[LOCAL_PARTS];
    char copy[LOCAL_BYTES];
    if (count <= LOCAL_PARTS && length <= LOCAL_BYTES) {
        rewrite(query, length, parts, copy);
        return DOPPEL_OK;
    }
    doppel_slice *room = malloc(count * sizeof *room + length);
    if (!room)
        return DOPPEL_ERROR_MEMORY;
    rewrite(query, length, room, (char *)(room + count));
    free(room);
    return DOPPEL_OK;
}

doppel_status dp_url_put_query(dp_url_out *out, doppel_slice query) {
    size_t start = out->size, parts;
    dp_url_put(out, "?", 1);
    dp_url_put_escaped(out, query, DP_URL_QUERY);
    if ((out->without & DOPPEL_URL_QUERY) && (out->without & DOPPEL_URL_TRACKING))
        return DOPPEL_OK;
    char *from = out->data + start + 1;
    bool sorted;
    out->size = (size_t)(filter(from, out->data + out->size, out->without, &parts, &sorted) - out->data);
    if (!parts)
        out->size = start;
    if (sorted || !parts || out->without & DOPPEL_URL_QUERY)
        return DOPPEL_OK;
    return sort_query(from, out->size - start - 1, parts);
}
