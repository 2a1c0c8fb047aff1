/* reader.h - the documents of a unit: what one thread does with what it took. */
#ifndef DP_READER_H
#define DP_READER_H

#include "input/http.h"
#include "input/json.h"
#include "input/source.h"

enum { DP_FIELD_ID, DP_FIELD_URL, DP_FIELD_TITLE, DP_FIELD_TEXT, DP_FIELD_HTML, DP_FIELDS };

/* The most of doppel_input_options.extra_count. */
#define DP_EXTRA 32

#define DP_SEEN_RECORD ((uint64_t)1 << (DP_FIELDS + DP_EXTRA))

/* Buffers for any format. */
#define DP_SPARE 4

typedef struct dp_reader {
    const doppel_input_options *options;
    const doppel_work *work;
    const dp_input_sizes *sizes;
    void *state; /* the work's own for this thread */
    /* Waits for the unit's turn and emits what it has so far. */
    void (*flush)(void *run, dp_unit *unit);
    void *run;

    dp_json *json;
    /* The keys of a record: one for each field of a document, then options->extra_count more. */
    dp_json_field fields[DP_FIELDS + DP_EXTRA];
    doppel_slice extra[DP_EXTRA]; /* of the document at hand */
    dp_buffer text;               /* strings of the record at hand, unescaped */
    dp_buffer repaired;           /* the line at hand, if its UTF-8 was not valid */
    dp_buffer id;                 /* FILE:LINE */
    dp_buffer spare[DP_SPARE];    /* of the format at hand, as it likes */
    dp_cutter cutter;             /* the small file at hand */
    dp_http_decoder decoder;      /* for bodies of HTTP */
    uint64_t seen;                /* bits: which of `fields` some record had; DP_SEEN_RECORD: there were records */
    /* What was repaired in the record at hand. */
    bool invalid_utf8, lone_surrogate;
} dp_reader;

/* A record as it stands in the file. */
typedef struct dp_place {
    const char *file;
    uint64_t line; /* 0: a file that is one document */
    const char *bytes;
    size_t length;
} dp_place;

/* `options`, `work`, `sizes`, `flush` and `run` are set by the caller, the rest is zero. False: no memory. */
bool dp_reader_init(dp_reader *reader);
void dp_reader_free(dp_reader *reader);

/* Gives every document of the unit to the work. How that went is in the unit. */
void dp_reader_run(dp_reader *reader, dp_unit *unit);

/* ---- for the formats ---- */

/* Whether text starts with the byte-order mark of UTF-16, and what to say then. */
static inline bool dp_is_utf16(const char *text, size_t length) {
    return length >= 2 && (!memcmp(text, "\xFF\xFE", 2) || !memcmp(text, "\xFE\xFF", 2));
}
/* Whether a file is one of Parquet, and what to say then. */
static inline bool dp_is_parquet(const char *bytes, size_t length) {
    return length >= 4 && !memcmp(bytes, "PAR1", 4);
}
#define DP_WHY_PARQUET "Parquet, not text; convert it, e.g. with duckdb: COPY 'x.parquet' TO 'x.jsonl' (FORMAT json)"
#define DP_WHY_UTF16 "UTF-16, not UTF-8; convert it with iconv -f utf-16 -t utf-8"

/* The charset of pages that stand in records of UTF-8; what they say of themselves was so before. */
#define DP_CHARSET_UTF8 "utf-8"

/* Whether the run is over: a format then gives no more documents. */
bool dp_reader_stopped(const dp_reader *reader, const dp_unit *unit);

/* A document without text and extra fields (reader->extra is emptied; fill it), its id the file. */
doppel_document dp_reader_document(dp_reader *reader, const dp_place *at);

/* Sets the id to FILE:LINE, kept in reader->id, or with no_made_ids to nothing; false: no memory. */
bool dp_reader_make_id(dp_reader *reader, dp_unit *unit, const dp_place *at, doppel_document *document);

/* reader_text.c: sets the text to the bytes at hand as they are; that they are not valid UTF-8 is counted and reported.
 */
void dp_reader_plain_text(dp_unit *unit, const dp_place *at, doppel_document *document);

/* The same with bytes in a charset (empty: none is given; see dp_mime_utf8): the text is kept in `out`, and what was
 * lost of it is counted and reported. False: no memory. */
bool dp_reader_charset_text(dp_unit *unit, const dp_place *at, const char *charset, dp_buffer *out,
                            doppel_document *document);

/* Makes a document of a line of JSON and gives it to the work. */
void dp_reader_record(dp_reader *reader, dp_unit *unit, const dp_place *at);

/* Gives a document to the work. */
void dp_reader_give(dp_reader *reader, dp_unit *unit, const doppel_document *document);

/* Whether the bytes at hand are no text, by a NUL among the first or the mark of UTF-16: says so, and leaves them out.
 */
bool dp_reader_is_binary(const dp_reader *reader, dp_unit *unit, const dp_place *at);

/* Leaves the last record of a file out, which breaks off; the file counts as not read to its end. */
void dp_reader_cut_off(const dp_reader *reader, dp_unit *unit, const dp_place *at);

/* Says that a file cannot be read, or not to its end. */
void dp_reader_bad_file(const dp_reader *reader, dp_unit *unit, const char *file, const char *why);

/* Leaves a record out, or ends the run for want of memory. All give false, so that one line does it. */
bool dp_reader_bad_record(const dp_reader *reader, dp_unit *unit, const dp_place *at, const char *why);
bool dp_reader_too_long(const dp_reader *reader, dp_unit *unit, const dp_place *at);
bool dp_reader_no_memory(dp_unit *unit);

#endif
