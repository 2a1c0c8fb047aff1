/* reader.h - the documents of a unit: what one thread does with what it took. */
#ifndef DP_READER_H
#define DP_READER_H

#include "input/json.h"
#include "input/source.h"

enum { DP_FIELD_ID, DP_FIELD_URL, DP_FIELD_TITLE, DP_FIELD_TEXT, DP_FIELDS };

typedef struct dp_reader {
    const doppel_input_options *options;
    const doppel_work *work;
    const dp_input_sizes *sizes;
    void *state; /* the work's own for this thread */
    /* Waits for the unit's turn and emits what it has so far. */
    void (*flush)(void *run, dp_unit *unit);
    void *run;

    dp_json *json;
    dp_json_field fields[DP_FIELDS];
    dp_buffer text;     /* strings of the record at hand, unescaped */
    dp_buffer repaired; /* the line at hand, if its UTF-8 was not valid */
    dp_buffer id;       /* FILE:LINE */
    dp_lines lines;     /* the small JSONL file at hand */
    /* What was repaired in the record at hand. */
    bool invalid_utf8, lone_surrogate;
} dp_reader;

/* A record as it stands in the file. */
typedef struct dp_place {
    const char *file;
    uint64_t line; /* 0: a plain file */
    const char *bytes;
    size_t length;
} dp_place;

/* `options`, `work`, `sizes`, `flush` and `run` are set by the caller, the rest is zero. False: no memory. */
bool dp_reader_init(dp_reader *reader);
void dp_reader_free(dp_reader *reader);

/* Gives every document of the unit to the work. How that went is in the unit. */
void dp_reader_run(dp_reader *reader, dp_unit *unit);

/* ---- between reader.c and record.c ---- */

/* Whether text starts with the byte-order mark of UTF-16, and what to say then. */
static inline bool dp_is_utf16(const char *text, size_t length) {
    return length >= 2 && (!memcmp(text, "\xFF\xFE", 2) || !memcmp(text, "\xFE\xFF", 2));
}
#define DP_WHY_UTF16 "UTF-16, not UTF-8; convert it with iconv -f utf-16 -t utf-8"

/* Makes a document of a line of JSON and gives it to the work. */
void dp_reader_record(dp_reader *reader, dp_unit *unit, const dp_place *at);

/* Gives a document to the work. */
void dp_reader_give(dp_reader *reader, dp_unit *unit, const doppel_document *document);

/* Leaves a record out, or ends the run for want of memory. Both give false, so that one line does it. */
bool dp_reader_bad_record(const dp_reader *reader, dp_unit *unit, const dp_place *at, const char *why);
bool dp_reader_no_memory(dp_unit *unit);

#endif
