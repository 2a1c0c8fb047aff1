/* trims.h - what tests of trim share: documents in files, and what a trim cuts of them, as text. */
#ifndef TESTS_TRIMS_H
#define TESTS_TRIMS_H

#include "files.h"
#include "work_folder.h"

#include "trim/trim.h"

#include <unistd.h>

/* ---- documents ---- */

enum { TEXTS_MOST = 16 };

/* Some texts; the last is followed by NULL. */
typedef struct texts {
    const char *text[TEXTS_MOST];
} texts;

/* A record with its text, and other members as they stand (or ""). */
static inline void add_record(dp_buffer *file, const char *id, const char *text, const char *more) {
    assert_true(dp_buffer_printf(file, "{\"id\":\"%s\",\"text\":", id) && dp_json_add(file, text, strlen(text)) &&
                dp_buffer_printf(file, "%s}\n", more));
}

static inline void save_buffer(dp_buffer *file, const char *path) {
    spit(path, file->data ? file->data : "", file->size);
    dp_buffer_free(file);
}

/* Texts as a file of records; their ids are letters from `first` on. */
static inline void save_texts(const char *path, texts given, char first) {
    dp_buffer file = {0};
    for (char id[2] = {first, 0}; given.text[id[0] - first]; id[0]++)
        add_record(&file, id, given.text[id[0] - first], "");
    save_buffer(&file, path);
}

/* ---- what is cut of them ---- */

static inline doppel_trim *find_repeats(const char *const *paths, size_t count, doppel_trim_options options) {
    doppel_trim *trim = NULL;
    doppel_error error = {0};
    options.size = sizeof options;
    if (doppel_trim_find(paths, count, &options, &trim, &error) != DOPPEL_OK)
        fail_msg("%s:%llu: %s", error.file, (unsigned long long)error.line, error.message);
    return trim;
}

static inline void write_trimmed(doppel_trim *trim, unsigned wanted,
                                 doppel_status (*take)(const doppel_trimmed *, void *), void *user) {
    doppel_error error = {0};
    if (doppel_trim_write(trim, wanted, take, user, &error) != DOPPEL_OK)
        fail_msg("%s: %s", error.file, error.message);
}

/* A text, with ~ for its line feeds. */
static inline void add_shown(dp_buffer *lines, doppel_slice text) {
    for (size_t i = 0; i < text.length; i++)
        assert_true(dp_buffer_add(lines, text.data[i] == '\n' ? "~" : &text.data[i], 1));
}

/* The text without its cuts, by the cuts alone. */
static inline void check_cuts(const doppel_trimmed *d) {
    uint64_t at = 0, left = 0;
    for (size_t i = 0; i <= d->cut_count; i++) {
        uint64_t end = i < d->cut_count ? d->cuts[i].start : d->original.length;
        assert_true(at < end || !i || (i == d->cut_count && at == end));
        assert_true(left + (end - at) <= d->text.length);
        assert_memory_equal(d->text.data + left, d->original.data + at, end - at);
        left += end - at;
        at = i < d->cut_count ? d->cuts[i].end : end;
        assert_true(i == d->cut_count || at > d->cuts[i].start);
    }
    assert_int_equal(left, d->text.length);
    assert_int_equal(d->cut_count > 0, d->words_cut > 0);
}

/* doppel_trim_write: adds a line of a document: its spans, what is left of it, and why it is dropped. */
static inline doppel_status add_trimmed(const doppel_trimmed *d, void *user) {
    dp_buffer *lines = user;
    check_cuts(d);
    for (size_t i = 0; i < d->span_count; i++) {
        const doppel_span *span = &d->spans[i];
        assert_true(dp_buffer_printf(lines, "[%llu-%llu %llu %.*s@%llu]", (unsigned long long)span->start,
                                     (unsigned long long)span->end, (unsigned long long)span->words,
                                     (int)span->original_id.length, span->original_id.data,
                                     (unsigned long long)span->original_start));
    }
    add_shown(lines, d->text);
    if (d->dropped)
        assert_true(dp_buffer_printf(lines, " !%s", doppel_dropped_name(d->dropped)));
    assert_true(dp_buffer_printf(lines, d->emptied ? " !empty\n" : "\n"));
    return DOPPEL_OK;
}

/* A line of each document. */
static inline dp_buffer trimmed_lines(doppel_trim *trim) {
    dp_buffer lines = {0};
    write_trimmed(trim, DOPPEL_TRIM_SPANS | DOPPEL_TRIM_TEXTS | DOPPEL_TRIM_ORIGINALS, add_trimmed, &lines);
    assert_true(dp_buffer_add(&lines, "", 1));
    return lines;
}

/* Trims paths with one thread, with several, and with hardly any memory: it comes to the same. */
static inline void check_paths(const char *const *paths, size_t count, doppel_trim_options options,
                               const char *expected) {
    const doppel_input_options *given = options.input;
    for (int way = 0; way < 3; way++) {
        doppel_input_options input = given ? *given : (doppel_input_options){.size = sizeof input};
        input.threads = way == 1 ? 3 : 1;
        options.input = &input;
        options.memory = way == 2 ? 1 : 0;
        doppel_trim *trim = find_repeats(paths, count, options);
        dp_buffer lines = trimmed_lines(trim);
        assert_string_equal(lines.data, expected);
        dp_buffer_free(&lines);
        doppel_trim_free(trim);
    }
}

static inline void check_texts(doppel_trim_options options, texts given, const char *expected) {
    const char *path = "texts.jsonl";
    save_texts(path, given, 'a');
    check_paths(&path, 1, options, expected);
}

#endif
