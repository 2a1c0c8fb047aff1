/* stores.h - what tests of stores share: numbers with all their parts, written, and looked for again. */
#ifndef TESTS_STORES_H
#define TESTS_STORES_H

#include "files.h"

#include "store/store.h"

#include <math.h>

/* Fails with the error's own words. */
#define OK(call)                                                             \
    do {                                                                     \
        doppel_error error_ = {.code = DOPPEL_OK};                           \
        doppel_error *error = &error_;                                       \
        if (call) {                                                          \
            print_error("%s: %s: %s\n", #call, error_.file, error_.message); \
            fail();                                                          \
        }                                                                    \
    } while (0)

#define REFUSED(call, status, reason)                                                  \
    do {                                                                               \
        doppel_error error_ = {.code = DOPPEL_OK};                                     \
        doppel_error *error = &error_;                                                 \
        assert_int_equal(call, status);                                                \
        assert_int_equal(error_.code, status);                                         \
        if (!strstr(error_.message, reason)) {                                         \
            print_error("%s: `%s` lacks `%s`\n", error_.file, error_.message, reason); \
            fail();                                                                    \
        }                                                                              \
    } while (0)

/* In another process, or in a thread: what does not hold there ends it all. */
static inline void must(bool holds, const char *what, int line) {
    if (!holds) {
        fprintf(stderr, "line %d: `%s` does not hold\n", line, what);
        _exit(3);
    }
}
#define MUST(what) must(what, #what, __LINE__)

/* A clock that is not doubted. */
#define AT(seconds) (&(dp_clock){.time = (seconds)})

/* ---- documents ---- */

/* The parts of a number, and the memory they are in. */
typedef struct parts {
    dp_buffer bytes[DP_PARTS];
    dp_change change;
} parts;

/* A frame of zstd that says only how long its content is: 7 zeros. */
static const unsigned char FRAME[] = {0x28, 0xB5, 0x2F, 0xFD, 0x20, 7, 0x3B, 0, 0, 0};

/* A document, or the copy of one; `size` numbers are in its set. */
static inline parts make_parts(uint64_t number, uint64_t of, size_t size) {
    parts p = {.change = {.number = number, .link = of}};
    char id[40], title[40];
    uint64_t state = number, last = 0;
    uint32_t keys[3] = {(uint32_t)number, 7, UINT32_MAX};
    snprintf(id, sizeof id, "id-%llu", (unsigned long long)number);
    snprintf(title, sizeof title, "the title of %llu", (unsigned long long)number);
    dp_trace trace = {.number = number,
                      .kind = of ? DP_TRACE_COPY : DP_TRACE_DOCUMENT,
                      .of = of,
                      .expires = number % 3 ? 0 : 1000000 + number,
                      .added = 1700000000 + number,
                      .id_hash = random_next(&state),
                      .url_hash = number % 2 ? random_next(&state) : 0,
                      .fingerprint = {random_next(&state), 0},
                      .content = !of,
                      .keys = keys,
                      .key_count = of ? 0 : 3,
                      .title = {title, strlen(title)}};
    memset(trace.digest, (int)(number & 255) | 1, sizeof trace.digest);
    dp_record record = {.id = {id, strlen(id)},
                        .title = {title, strlen(title)},
                        .words = number % 900,
                        .set_count = size,
                        .text_length = 7,
                        .reason = of ? 2 : 0,
                        .evidence = {.distance = 3, .similarity = 0.9, .containment = NAN, .title_similarity = NAN}};
    if (of)
        record.original_id = (doppel_slice){"id-of", 5};
    assert_true(dp_trace_encode(&trace, &p.bytes[DP_PART_TRACE]));
    assert_true(dp_record_encode(&record, &p.bytes[DP_PART_RECORD]));
    for (size_t i = 0; i < size; i++) {
        last += 1 + random_next(&state) % ((uint64_t)1 << 40);
        assert_true(dp_buffer_add(&p.bytes[DP_PART_SET], &last, 8));
    }
    assert_true(dp_buffer_add(&p.bytes[DP_PART_TEXT], FRAME, sizeof FRAME));
    for (int part = 0; part < DP_PARTS; part++)
        if (part != DP_PART_SET || size)
            p.change.part[part] = (doppel_slice){p.bytes[part].data, p.bytes[part].size};
    return p;
}

static inline void free_parts(parts *p) {
    for (int part = 0; part < DP_PARTS; part++)
        dp_buffer_free(&p->bytes[part]);
}

/* The trace of a removal of `of`. */
static inline parts make_removal(uint64_t number, uint64_t of) {
    parts p = {.change = {.number = number, .remove = of}};
    dp_trace trace = {.number = number, .kind = DP_TRACE_REMOVAL, .of = of, .added = 5};
    assert_true(dp_trace_encode(&trace, &p.bytes[0]));
    p.change.part[0] = (doppel_slice){p.bytes[0].data, p.bytes[0].size};
    return p;
}

/* Writes numbers `from` to `to` in one go. */
static inline void write_numbers(dp_store *store, uint64_t from, uint64_t to, size_t size) {
    size_t count = (size_t)(to - from + 1);
    parts *all = calloc(count, sizeof *all);
    dp_change *changes = calloc(count, sizeof *changes);
    for (size_t i = 0; i < count; i++) {
        all[i] = make_parts(from + i, 0, size);
        changes[i] = all[i].change;
    }
    OK(dp_store_write(store, changes, count, AT(to), error));
    for (size_t i = 0; i < count; i++)
        free_parts(&all[i]);
    free(changes);
    free(all);
}

static inline void write_one(dp_store *store, parts p) {
    OK(dp_store_write(store, &p.change, 1, AT(p.change.number), error));
    free_parts(&p);
}

/* ---- looking ---- */

static inline dp_store *open_store(const char *path, dp_store_options options) {
    dp_store *store = NULL;
    OK(dp_store_open(path, &options, &store, error));
    return store;
}

static inline dp_view *open_view(dp_store *store) {
    dp_view *view = NULL;
    OK(dp_view_create(store, &view, error));
    return view;
}

static inline bool has_part(dp_view *view, dp_part part, uint64_t number) {
    doppel_slice bytes;
    OK(dp_view_get(view, part, number, &bytes, error));
    return bytes.data != NULL;
}

/* A number is there, with all its parts as they were written. */
static inline void check_number(dp_view *view, uint64_t number, uint64_t of, size_t size) {
    parts p = make_parts(number, of, size);
    for (int part = 0; part < DP_PARTS; part++) {
        doppel_slice bytes;
        OK(dp_view_get(view, (dp_part)part, number, &bytes, error));
        assert_int_equal(bytes.data != NULL, p.change.part[part].data != NULL);
        assert_int_equal(bytes.length, p.change.part[part].length);
        if (bytes.length)
            assert_memory_equal(bytes.data, p.change.part[part].data, bytes.length);
    }
    free_parts(&p);
}

#endif
