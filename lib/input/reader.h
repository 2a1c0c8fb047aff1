/* reader.h - how bytes become documents: blocks of records, the table of formats, units of work and their results, and
 * what a format calls to give documents.
 *
 * Paths stand for files (paths.c). A file is cut into blocks of whole records, by the format's own rule (blocks.c). One
 * thread takes a unit of work (a block, a range of a file of lines, or whole files), and the format gives each document
 * of it to the caller; the results are kept in the unit until its turn (input.c). refusal.c counts what was bad.
 *
 * To add a format: a file NAME.c that defines `const dp_format dp_format_NAME`, a line for it below and in the list in
 * format.c, and a test. A format need not know about compression: it sees the bytes, and the name without .gz, .zst,
 * .bz2 or .xz. */
#ifndef DP_READER_H
#define DP_READER_H

#include "input/decode.h"
#include "input/input.h"
#include "input/json.h"
#include "input/stream.h"

#include <glob.h>
#include <stdlib.h>

struct dp_reader;
struct dp_unit;

/* ---- the files that paths stand for: paths.c ---- */

typedef struct dp_walk_folder dp_walk_folder;

typedef struct dp_path_walk {
    dp_input_paths paths;
    size_t next_path;
    const doppel_tables *tables; /* NULL: there are none */
    glob_t matches;              /* of the current pattern */
    size_t next_match;
    dp_buffer listed;   /* the tables that the current URL stands for, each NUL-ended */
    size_t next_listed; /* the position of the next of them */
    dp_walk_folder *folders;
    size_t depth, capacity;
    dp_buffer path; /* of the file that was given last, NUL-ended */
    bool no_memory;
} dp_path_walk;

typedef struct dp_walk_file {
    const char *path; /* borrowed until the next call */
    bool regular;     /* its size is known */
    uint64_t size;
} dp_walk_file;

/* What the paths and `tables` (may be NULL) point to must outlive the walk. */
void dp_walk_init(dp_path_walk *walk, const dp_input_paths *paths, const doppel_tables *tables);
/* The next file; false at the end, or when there is no memory (`no_memory`). A folder that cannot be read is given like
 * a file, and opening it reports why. */
bool dp_walk_next(dp_path_walk *walk, dp_walk_file *file);
void dp_walk_free(dp_path_walk *walk);

/* ---- blocks of records ---- */

typedef struct dp_record_block {
    char *data; /* followed by DP_JSON_PADDING readable bytes */
    size_t size, capacity;
    uint64_t offset;      /* of its first byte in the file; DOPPEL_NO_POSITION: the file cannot be read at a position */
    uint64_t file_bytes;  /* with an offset: the size of the file when it was opened, */
    int64_t file_changed; /* and when it was changed last by then */
    uint64_t first_line;  /* the number of its first line, or record */
    uint64_t long_line;   /* a record after the block that is too long; 0: none */
    uint64_t cut_line;    /* a record after the block that lacks its end because the stream failed; 0: none */
    uint64_t bytes;       /* read for it, those of records that were passed over included */
    uint64_t raw_bytes;   /* the same as they stand in the file, which may be compressed */
    bool first, last;     /* of its file */
    const uint32_t *starts; /* of its lines, each with the same number too much, if they were found before; else NULL */
    size_t lines;           /* how many these are */
} dp_record_block;

/* Makes room for `need` bytes and the padding; false when there is no memory. */
static inline bool dp_block_reserve(dp_record_block *block, size_t need) {
    return dp_reserve(&block->data, &block->capacity, need + DP_JSON_PADDING, 1);
}

/* Empties a block; gives the memory back if it is much more than `target`. */
static inline void dp_block_reset(dp_record_block *block, size_t target) {
    dp_record_block kept = {.data = block->data, .capacity = block->capacity};
    /* A block holds up to twice its target without growing again. */
    if (kept.capacity > 4 * target + DP_JSON_PADDING) {
        free(kept.data);
        kept.data = NULL;
        kept.capacity = 0;
    }
    *block = kept;
}

/* What a format knows of the current record. All zero where one starts, but for `file`. */
typedef struct dp_mark {
    size_t seen;    /* bytes that were looked at: the next look starts there */
    uint64_t state; /* anything; positions only relative to `seen` */
    uint64_t file;  /* what it knows of the file: zero at its start, then as the format sets it */
} dp_mark;

/* Gives how many bytes the record at `data` has, its line end and all else that belongs to it included, if its end is
 * surely within the `size` bytes that are there; else 0, and is asked again when there are more. In between, those
 * before mark->seen may be dropped, if the record is too long: `data` is then what followed them, and mark->seen 0.
 */
typedef size_t (*dp_record_end)(dp_mark *mark, const char *data, size_t size);

/* ---- formats: format.c ---- */

/* How a file of a format is recognised, cut into units of work, and read. */
typedef struct dp_format {
    const char *name;   /* as doppel_input_format gives it */
    const char *record; /* what messages call a record of it, e.g. "row"; not for files that are one document */

    /* Endings of names that stand for it, each with its dot, NULL at the end; or NULL. Names count before content. */
    const char *const *endings;

    /* Whether a file that begins so has it; or NULL. At most the first kilobytes are there, fewer when that is all the
     * file has or when a pipe has given no more yet: then a format is asked again with more. A byte-order mark of UTF-8
     * is taken off before. */
    bool (*matches)(const char *head, size_t length);

    /* On the reading side, one thread at a time: finds the end of a record, so that a big file is cut into blocks of
     * whole records. NULL: the file is one document. */
    dp_record_end end;
    bool lines;    /* a record is a line, whatever stands in it: the file may be cut at any byte */
    bool by_lines; /* a record may have several lines, and its number is that of its first line; else records count */
    bool headed;   /* the first record says how to read the others: it goes to unit->header, with each block */

    /* On any of the threads: gives the documents of unit->block (dp_reader_give), whole records of the file or the
     * whole file, and leaves out bad ones (dp_reader_bad_record). Ends early when dp_reader_stopped. The first block of
     * a file has `first` set, and may be empty; the last record of the last block may lack its end. Records are up to a
     * few bytes longer than options->max_record: check it. block->long_line and block->cut_line are
     * reported elsewhere. Memory of its own it takes from reader->spare, or as a field of dp_reader. */
    void (*read)(struct dp_reader *reader, struct dp_unit *unit, const char *file);
} dp_format;

extern const dp_format dp_format_jsonl, dp_format_json, dp_format_lines, dp_format_warc, dp_format_arc, dp_format_csv,
    dp_format_tsv, dp_format_mbox, dp_format_docx, dp_format_pdf;

/* The format that options->format names; NULL: none is named. Errors: DOPPEL_ERROR_USAGE for another name. */
doppel_status dp_format_find(const doppel_input_options *options, const dp_format **format, doppel_error *error);

/* Reads the start of a file into an empty buffer, as much as it takes to know its format, which is `asked` unless that
 * is NULL; the keys of the options may tell it. NULL: no memory. */
const dp_format *dp_format_read(dp_stream *stream, const char *path, const dp_format *asked,
                                const doppel_input_options *options, dp_buffer *head);

/* Whether the bytes begin with a header of two columns or more, among them all that the key of the text or of the page
 * names, where that key was given. */
bool dp_csv_has_keys(const char *head, size_t length, const doppel_input_options *options);

/* Whether the bytes are a table of an office program: a ZIP file with a folder xl/ (Excel) or a type of its own
 * (OpenDocument), or the older container of Excel with a part called Workbook, in UTF-16. */
bool dp_is_spreadsheet(const char *bytes, size_t length);

/* Whether the bytes begin as a page does. */
bool dp_html_matches(const char *head, size_t length);

/* ---- whether inputs are refused for their bad records: refusal.c ----
 *
 * doppel_input_options.refuse_bad. Each unit of work counts, file by file, what it read and what it left out; the
 * thread that emits units hands the counts over, in input order. A file of records of which no document could be read,
 * or more than half of whose records are bad, is refused, and so are all inputs together. A file that is one document
 * by itself counts only among all: an image among texts is no reason to stop. */

/* What is wrong with the bad records of a file, for the message. */
typedef struct dp_hint {
    doppel_error first; /* the first of them */
    const char *record; /* what it is called if it has a number, not a line; NULL: a line */
    uint64_t lacking;   /* how many have neither a text nor a page */
    uint64_t listed;    /* of these, how many gave their fields to `fields` */
    char fields[200];   /* names, separated by commas */
    char key[64];       /* the field with the longest string, which may be the text */
    size_t longest;
    bool whole_file; /* `first` is about the whole file, and says it all, */
    bool left_out;   /* which is left out where bad input is allowed */
} dp_hint;

typedef struct dp_file_counts {
    uint64_t file; /* its number, in input order */
    uint64_t documents, bad;
    bool records;       /* it is a file of records */
    const char *record; /* what messages call one, if they have numbers, not lines; else NULL */
    dp_hint *hint;      /* NULL: nothing is bad */
} dp_file_counts;

/* Notes what is bad with a record; no memory for it is no failure. */
void dp_counts_bad(dp_file_counts *counts, const doppel_error *why);

/* The same of a file that is not read at all, and is not reported elsewhere; left_out: where bad input is allowed, too.
 */
void dp_counts_bad_file(dp_file_counts *counts, const char *file, const char *why, bool left_out);

/* Notes the fields of a record, a JSON object that was read, which has neither a text nor a page. */
void dp_counts_lacks_text(dp_file_counts *counts, const char *record, size_t length);

/* The length of the longest string in a record, quotes included. */
size_t dp_longest_string(const char *record, size_t length);

/* How the first records of a unit went: bit i is set when record i is bad. */
enum { DP_FIRST = 1024 };
typedef struct dp_first {
    size_t count;
    uint64_t bad[DP_FIRST / 64];
} dp_first;

typedef struct dp_refusal {
    const doppel_input_options *options;
    dp_file_counts file, all;
    uint64_t first_documents, first_bad; /* of the first records */
    uint64_t files;                      /* that were refused */
    bool first;                          /* the first records were judged */
    bool refused;                        /* the inputs were refused: `error` says why, */
    bool left_out;                       /* and it is about a file that is left out where bad input is allowed */
    doppel_error error;
} dp_refusal;

/* Takes the counts of a unit; of those of its files the last is left, empty. */
void dp_refusal_take(dp_refusal *refusal, struct dp_unit *unit);

/* Judges the first records, or all that was read: DOPPEL_OK, or DOPPEL_ERROR_INPUT and refusal->error. */
doppel_status dp_refusal_check(dp_refusal *refusal, bool all);

/* ---- units of work: what one thread takes at a time, and its results, kept until its turn ---- */

struct doppel_output {
    dp_buffer bytes;
};

typedef enum dp_unit_kind {
    DP_UNIT_FILES, /* whole small files, still to be opened */
    DP_UNIT_BLOCK, /* a block of records of a big one */
    DP_UNIT_RANGE, /* the lines of a big one that begin in a range of its bytes, still to be read */
    DP_UNIT_WHOLE, /* the start of a big file that is one document; `stream` has the rest */
    DP_UNIT_TABLE  /* a part of a table, still to be read, or a batch of one */
} dp_unit_kind;

typedef struct dp_ranges dp_ranges;
typedef struct dp_table dp_table;

/* A part of a table, or one batch of it. */
typedef struct dp_table_batch {
    dp_table *table;
    uint64_t part;
    bool whole_part;    /* the part is still to be read; else `array` has rows, unless the table has none */
    uint64_t first_row; /* of the table, from 0 */
    struct ArrowSchema schema;
    struct ArrowArray array;
} dp_table_batch;

typedef struct dp_unit {
    dp_unit_kind kind;
    dp_buffer names; /* of its files, each NUL-ended; one only unless kind is FILES */
    size_t files;
    const dp_format *format; /* of the block, or of the current file */
    dp_buffer header;        /* of the file, where the format has one */
    dp_record_block block;
    dp_stream stream;
    dp_ranges *ranges; /* of the file; NULL if it is not read by ranges */
    uint64_t range;    /* which of them */
    dp_table_batch table;
    dp_buffer left_out; /* rows of the table that are no documents: uint64_t, from 0 */
    char failure[160];  /* BLOCK, RANGE, TABLE: why reading ended too early; empty: it did not */

    doppel_output output;
    doppel_error *reports; /* for `bad` */
    size_t report_count, report_capacity;
    doppel_input_counts counts;
    dp_first first;              /* for dp_refusal_take */
    dp_file_counts *file_counts; /* of its files, the last being the current one */
    size_t file_count, file_room;
    uint64_t file_number; /* of its first file */
    uint64_t raw_bytes;
    doppel_status status; /* not DOPPEL_OK: the run ends here */
    doppel_error error;

    uint64_t number;                        /* its place in the input */
    uint64_t next_document, after_document; /* numbers of its next document and of the one after its last, if known */
} dp_unit;

/* The counts of the current file. */
static inline dp_file_counts *dp_unit_counts(dp_unit *unit) {
    return &unit->file_counts[unit->file_count - 1];
}

/* Ends the run at this unit for want of memory; gives false, so that one line does it. */
bool dp_unit_no_memory(dp_unit *unit);

/* Ends the run at this unit: it does not have the documents that it had in the run before. */
void dp_unit_changed(dp_unit *unit);

/* ---- the documents of a unit: what one thread does with what it took ---- */

enum { DP_FIELD_ID, DP_FIELD_URL, DP_FIELD_TITLE, DP_FIELD_TEXT, DP_FIELD_HTML, DP_FIELDS };

/* The most of doppel_input_options.extra_count. */
#define DP_EXTRA 32

#define DP_SEEN_RECORD ((uint64_t)1 << (DP_FIELDS + DP_EXTRA))

/* Names that are looked for in addition to the keys, and parts of keys (keys.c). */
#define DP_NAMES 128
#define DP_PARTS 64

/* A part of a key that is a path, or several: places in dp_reader.fields. */
typedef struct dp_key_part {
    size_t field;
    size_t name;       /* the part as it stands */
    size_t head;       /* the first name of its path; 0: it is none */
    doppel_slice rest; /* of the path */
} dp_key_part;

/* Buffers for any format. */
#define DP_SPARE 4

typedef struct dp_reader {
    const doppel_input_options *options;
    const doppel_work *work;
    const dp_input_sizes *sizes;
    const dp_input_numbered *numbered; /* NULL: documents have no numbers */
    void *state;                       /* the work's own for this thread */
    /* Waits for the unit's turn and emits what it has so far. */
    void (*flush)(void *run, dp_unit *unit);
    void *run;

    dp_json *json;
    const dp_format *format; /* that all files are read as; NULL: as names and contents say */
    dp_input_paths paths;    /* of the run */
    /* The keys of a record: one for each field of a document, then options->extra_count more, then the names of parts:
     * field_count in all. */
    dp_json_field fields[DP_FIELDS + DP_EXTRA + DP_NAMES];
    size_t field_count;
    dp_key_part parts[DP_PARTS]; /* those of a field one after the other */
    size_t part_count;
    dp_buffer joined;             /* values of several parts of the current record */
    doppel_slice extra[DP_EXTRA]; /* of the current document */
    dp_buffer text;               /* strings of the current record, unescaped */
    dp_buffer repaired;           /* the current line, if its UTF-8 was not valid */
    dp_buffer id;                 /* FILE, or FILE:LINE */
    dp_buffer spare[DP_SPARE];    /* of the current format, as it needs them */
    dp_body_decoder decoder;      /* for bodies of HTTP */
    dp_record_block range;        /* memory for the unit's block, if that is a range */
    uint32_t *starts;             /* and for where its lines start */
    size_t starts_capacity;
    uint64_t seen;       /* bits: which of `fields` some record had; DP_SEEN_RECORD: there were records */
    uint64_t parts_seen; /* bits: which of `parts` some record had, or had no need of */
    /* What was repaired in the current record. */
    bool invalid_utf8, lone_surrogate;
} dp_reader;

/* ---- blocks of whole records, cut from a file: blocks.c ---- */

/* doppel_input_options.max_record, unless it is set. */
#define DP_USUAL_MAX_RECORD ((size_t)64 << 20)

/* Cuts a stream into blocks of whole records. Starts as all zero but for `target` and `max_record`. */
typedef struct dp_record_cutter {
    const dp_format *format;
    dp_stream *stream;
    dp_buffer rest;   /* read, but not given yet */
    dp_buffer header; /* the first record, where the format has that */
    dp_mark mark;     /* of the current record */
    bool positions;   /* blocks have an offset: dp_stream_has_positions */
    uint64_t offset;  /* of what comes next */
    uint64_t line;    /* the number of the line or record that comes next */
    uint64_t raw_bytes;
    size_t target;     /* bytes of a block, unless one record is longer */
    size_t max_record; /* bytes of a record */
    bool begun, ended;
} dp_record_cutter;

/* Begins the stream of a file of which `cutter->rest` was already read. */
void dp_cutter_begin(dp_record_cutter *cutter, const dp_format *format, dp_stream *stream);
/* Fills an empty block. False at the end of the stream (`ended`), or when there is no memory. The last block may have
 * no records, only something to report. */
bool dp_cutter_next(dp_record_cutter *cutter, dp_record_block *block);
void dp_cutter_free(dp_record_cutter *cutter);

/* Takes over the open file, whose ranges have `size` bytes; NULL when there is no memory. Each unit that gets a range
 * holds it, too. `at_once`: how many ranges there are at most from the first that is not emitted yet to the last that
 * was given. */
dp_ranges *dp_ranges_create(const dp_stream *file, size_t size, size_t at_once);
/* Makes the unit one of a range, by the range's number; false when the file has no such range, or cannot be read. A
 * file has all ranges that its size has room for at that moment. They are given in order, and each is read. */
bool dp_ranges_give(dp_ranges *ranges, uint64_t range, dp_unit *unit);
/* Makes a block of the unit's range, in the thread's own memory. */
void dp_ranges_read(dp_reader *reader, dp_unit *unit);
/* NULL is fine. */
void dp_ranges_release(dp_ranges *ranges);

/* ---- for the formats ---- */

/* A record as it is in the file. */
typedef struct dp_raw_record {
    const char *file;
    uint64_t line; /* 0: a file that is one document */
    const char *bytes;
    size_t length;
} dp_raw_record;

/* Whether text starts with the byte-order mark of UTF-16, and what to say then. */
static inline bool dp_is_utf16(const char *text, size_t length) {
    return length >= 2 && (!memcmp(text, "\xFF\xFE", 2) || !memcmp(text, "\xFE\xFF", 2));
}
#define DP_WHY_UTF16 "UTF-16, not UTF-8; convert it with iconv -f utf-16 -t utf-8"

/* Whether a file is one of Parquet, and what to say then. */
static inline bool dp_is_parquet(const char *bytes, size_t length) {
    return length >= 4 && !memcmp(bytes, "PAR1", 4);
}
#define DP_WHY_PARQUET "Parquet, which the command of the Python package reads: pip install libdoppel pyarrow"

/* Passes over a byte-order mark of UTF-8. */
static inline void dp_skip_mark(const char **bytes, size_t *length) {
    if (*length >= 3 && !memcmp(*bytes, "\xEF\xBB\xBF", 3)) {
        *bytes += 3;
        *length -= 3;
    }
}

/* The charset of pages that stand in records of UTF-8; what they declare themselves applied before the conversion. */
#define DP_CHARSET_UTF8 "utf-8"

/* ---- keys of a record: keys.c ---- */

/* Sets reader->fields by the keys of its options. False: they name too many fields (DP_WHY_NAMES). */
bool dp_fields_init(dp_reader *reader);

/* The part of a key up to its next comma, which may be empty; moves the key on to what follows. */
static inline doppel_slice dp_key_next_part(const char **key) {
    doppel_slice part = {*key, strcspn(*key, ",")};
    *key += part.length + ((*key)[part.length] == ',');
    return part;
}
/* Where the parts of the field that has part `first` end. */
static inline size_t dp_parts_end(const dp_reader *reader, size_t first) {
    size_t end = first + 1;
    while (end < reader->part_count && reader->parts[end].field == reader->parts[first].field)
        end++;
    return end;
}
#define DP_WHY_NAMES "the keys of records name too many fields"

/* Reads a record of JSON: the values of reader->fields. */
dp_json_result dp_fields_read(dp_reader *reader, const char *record, size_t length);

/* Whether the run is over: a format then gives no more documents. */
bool dp_reader_stopped(const dp_reader *reader, const dp_unit *unit);

/* A document without text and extra fields (reader->extra is emptied; fill it). A file that is one document (line 0)
 * has its path as id, kept in reader->id. */
doppel_document dp_reader_document(dp_reader *reader, dp_unit *unit, const dp_raw_record *at);

/* Sets the id to FILE:LINE, kept in reader->id, or with no_made_ids to nothing; false: no memory. */
bool dp_reader_make_id(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_document *document);

/* Gives a document to the work; its file_number is set here. */
void dp_reader_give(dp_reader *reader, dp_unit *unit, doppel_document *document);

/* Gives the document of a file whose text was made of its bytes; one that has become too long is left out. */
void dp_reader_give_made(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const dp_buffer *text);

/* Leaves a record out. Both give false, so that one line does it. */
bool dp_reader_bad_record(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool dp_reader_too_long(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at);

/* Says that a file cannot be read, or not to its end. */
void dp_reader_bad_file(const dp_reader *reader, dp_unit *unit, const char *file, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Says what was repaired in a record. */
void dp_reader_repaired(dp_unit *unit, const dp_raw_record *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- tables: arrow.c ---- */

/* The documents of a unit of a table. No path has this format: options->tables says which are tables. */
extern const dp_format dp_format_table;

/* Where reading is in a table that is open. */
typedef struct dp_table_cursor {
    dp_table *table; /* NULL: none is open */
    bool begun;
    uint64_t part;                  /* the next one */
    uint64_t row, part_end;         /* of the table: the next row, and where the part at hand ends */
    struct ArrowArrayStream stream; /* of a large part */
} dp_table_cursor;

/* False: it cannot be opened; unit->failure says why, or unit->status, where that ends the run. */
bool dp_table_open(dp_table_cursor *cursor, const doppel_input_options *options, const char *path, uint64_t file_bytes,
                   dp_unit *unit);
/* Gives the next part or batch to the unit, at least one for each table; false: there is none left. */
bool dp_table_next(dp_table_cursor *cursor, dp_unit *unit);
void dp_table_cursor_free(dp_table_cursor *cursor);
void dp_table_batch_free(dp_table_batch *batch);

/* ---- the text of a document that is no page ---- */

/* Appends the text to `out`, each invalid sequence of UTF-8 as one U+FFFD; false when there is no memory. */
bool dp_utf8_repair(const char *text, size_t length, dp_buffer *out);

typedef enum dp_text_result {
    DP_TEXT_CLEAN,
    DP_TEXT_LOST,    /* some bytes became U+FFFD */
    DP_TEXT_UNKNOWN, /* the charset is not known; windows-1252 was taken */
    DP_TEXT_NO_MEMORY
} dp_text_result;

/* Appends text in a charset as UTF-8. Text without a charset, or said to be ASCII or Latin-1, is UTF-8 if it is valid
 * UTF-8, else windows-1252. */
dp_text_result dp_text_convert(doppel_slice text, const char *charset, dp_buffer *out);

/* Sets the text to bytes in a charset (empty: none is given): it is kept in `out`, and what was lost of it is counted
 * and reported. False: no memory. */
bool dp_reader_charset_text(dp_unit *unit, const dp_raw_record *at, const char *charset, dp_buffer *out,
                            doppel_document *document);

/* The same by document->charset, which is cleared; bytes in no charset that is known are taken as they are, and invalid
 * UTF-8 is counted and reported. False: no memory, or they are no text, by a NUL among the first or the mark of UTF-16:
 * then the record is left out. */
bool dp_reader_text(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at, dp_buffer *out,
                    doppel_document *document);

#endif
