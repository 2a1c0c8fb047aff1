/* record.c - the documents of a unit. Lines become records, records become documents, a plain file is one document. */
#include "input/record.h"

#include "input/utf8.h"

#include <stdio.h>
#include <stdlib.h>

/* A NUL in the first bytes of a plain file says that it is not text. */
#define BINARY_LOOK ((size_t)8 << 10)

/* A record as it stands in the file. */
typedef struct place {
    const char *file;
    uint64_t line; /* 0: a plain file */
    const char *bytes;
    size_t length;
} place;

static void set_key(dp_json_field *field, const char *key, const char *usual) {
    field->key = key ? key : usual;
    field->key_length = strlen(field->key);
}

bool dp_reader_init(dp_reader *reader) {
    const doppel_input_options *options = reader->options;
    set_key(&reader->fields[DP_FIELD_ID], options->id_key, "id");
    set_key(&reader->fields[DP_FIELD_URL], options->url_key, "url");
    set_key(&reader->fields[DP_FIELD_TITLE], options->title_key, "title");
    set_key(&reader->fields[DP_FIELD_TEXT], options->text_key, "text");
    reader->lines.target = reader->sizes->block;
    reader->lines.max_line = options->max_record;
    reader->json = dp_json_create();
    return reader->json != NULL;
}

void dp_reader_free(dp_reader *reader) {
    dp_json_free(reader->json);
    dp_buffer_free(&reader->text);
    dp_buffer_free(&reader->repaired);
    dp_buffer_free(&reader->id);
    dp_buffer_free(&reader->lines.rest);
}

static bool no_memory(dp_unit *unit) {
    dp_unit_fail(unit, DOPPEL_ERROR_MEMORY, "", 0, "no memory");
    return false;
}

/* With `strict`, what was reported last ends the run. */
static void end_if_strict(const dp_reader *reader, dp_unit *unit) {
    if (!reader->options->strict || !unit->report_count)
        return;
    const doppel_error *last = &unit->reports[unit->report_count - 1];
    dp_unit_fail(unit, DOPPEL_ERROR_INPUT, last->file, last->line, last->message);
}

/* A record is left out. */
static bool bad_record(const dp_reader *reader, dp_unit *unit, const place *at, const char *why) {
    unit->counts.bad++;
    dp_unit_report(unit, DOPPEL_ERROR_INPUT, at->file, at->line, "%s", why);
    end_if_strict(reader, unit);
    return false;
}

/* A file could not be read to its end. */
static void bad_file(const dp_reader *reader, dp_unit *unit, const char *file, const char *why) {
    unit->counts.unopened++;
    dp_unit_report(unit, DOPPEL_ERROR_IO, file, 0, "%s", why);
    end_if_strict(reader, unit);
}

static bool too_long(const dp_reader *reader, dp_unit *unit, const place *at) {
    char why[120];
    snprintf(why, sizeof why, "longer than the limit of %zu bytes", reader->options->max_record);
    return bad_record(reader, unit, at, why);
}

/* ---- the fields of a record ---- */

/* The text of a string field. Without escapes it is where it stands; else it goes to reader->text, which has room. */
static bool get_string(dp_reader *reader, const dp_json_field *field, const char **text, size_t *length) {
    *text = field->raw;
    *length = field->raw_length;
    if (!field->raw_length || !memchr(field->raw, '\\', field->raw_length))
        return true;
    char *to = reader->text.data + reader->text.size;
    *length = dp_json_unescape(field->raw, field->raw_length, to, &reader->was_repaired);
    *text = to;
    if (*length == SIZE_MAX)
        return false;
    reader->text.size += *length;
    return true;
}

/* A field that may be missing; one that is not a string counts as missing. */
static bool get_optional(dp_reader *reader, int which, const char **text, size_t *length) {
    if (reader->fields[which].kind == DP_JSON_STRING)
        return get_string(reader, &reader->fields[which], text, length);
    *text = NULL;
    *length = 0;
    return true;
}

static bool make_id(dp_reader *reader, dp_unit *unit, const place *at, doppel_document *document) {
    reader->id.size = 0;
    if (!dp_buffer_printf(&reader->id, "%s:%llu", at->file, (unsigned long long)at->line))
        return no_memory(unit);
    document->id = reader->id.data;
    document->id_length = reader->id.size;
    return true;
}

static bool bad_escape(const dp_reader *reader, dp_unit *unit, const place *at) {
    return bad_record(reader, unit, at, "not JSON: an escape in a string that JSON does not have");
}

static bool get_id(dp_reader *reader, dp_unit *unit, const place *at, doppel_document *document) {
    const dp_json_field *field = &reader->fields[DP_FIELD_ID];
    char why[160];
    switch (field->kind) {
    case DP_JSON_ABSENT:
    case DP_JSON_NULL: return make_id(reader, unit, at, document);
    case DP_JSON_NUMBER:
        document->id = field->raw;
        document->id_length = field->raw_length;
        return true;
    case DP_JSON_STRING:
        return get_string(reader, field, &document->id, &document->id_length) || bad_escape(reader, unit, at);
    default:
        snprintf(why, sizeof why, "field \"%.60s\" is neither a string nor a number", field->key);
        return bad_record(reader, unit, at, why);
    }
}

static const char *kind_name(const dp_json_field *field) {
    switch (field->kind) {
    case DP_JSON_NUMBER: return "a number";
    case DP_JSON_NULL: return "null";
    default: return *field->raw == '[' ? "an array" : *field->raw == '{' ? "an object" : "true or false";
    }
}

static bool get_text(dp_reader *reader, dp_unit *unit, const place *at, doppel_document *document) {
    const dp_json_field *field = &reader->fields[DP_FIELD_TEXT];
    char why[160];
    if (field->kind == DP_JSON_STRING)
        return get_string(reader, field, &document->text, &document->text_length) || bad_escape(reader, unit, at);
    if (field->kind == DP_JSON_ABSENT)
        snprintf(why, sizeof why, "has no field \"%.60s\"", field->key);
    else
        snprintf(why, sizeof why, "field \"%.60s\" is %s, not a string", field->key, kind_name(field));
    return bad_record(reader, unit, at, why);
}

/* ---- documents ---- */

static void give(dp_reader *reader, dp_unit *unit, const doppel_document *document) {
    unit->counts.documents++;
    doppel_status status = reader->work->document(reader->state, document, &unit->output);
    if (status != DOPPEL_OK)
        dp_unit_fail(unit, status, document->file, document->line, doppel_status_name(status));
    if (unit->output.bytes.size > reader->sizes->pending)
        reader->flush(reader->run, unit);
}

/* Reads the JSON of a line, repaired first if it has to be. */
static bool read_json(dp_reader *reader, dp_unit *unit, const place *at) {
    static const char padding[DP_JSON_PADDING];
    char why[200];
    dp_json_result result = dp_json_read(reader->json, at->bytes, at->length, reader->fields, DP_FIELDS);
    if (result == DP_JSON_NOT_UTF8) {
        reader->repaired.size = 0;
        reader->was_repaired = true;
        if (!dp_utf8_repair(at->bytes, at->length, &reader->repaired) ||
            !dp_buffer_add(&reader->repaired, padding, DP_JSON_PADDING))
            return no_memory(unit);
        size_t length = reader->repaired.size - DP_JSON_PADDING;
        result = dp_json_read(reader->json, reader->repaired.data, length, reader->fields, DP_FIELDS);
    }
    switch (result) {
    case DP_JSON_OK: return true;
    case DP_JSON_NO_MEMORY: return no_memory(unit);
    case DP_JSON_NOT_OBJECT: return bad_record(reader, unit, at, "not a JSON object");
    default:
        snprintf(why, sizeof why, "not JSON: %s", dp_json_why(reader->json));
        return bad_record(reader, unit, at, why);
    }
}

static void read_record(dp_reader *reader, dp_unit *unit, const place *at) {
    doppel_document document = {.file = at->file, .line = at->line, .record = at->bytes, .record_length = at->length};
    reader->was_repaired = false;
    if (!read_json(reader, unit, at))
        return;
    /* Unescaping never makes a string longer, and the strings of a record do not overlap. */
    reader->text.size = 0;
    size_t most = at->length > reader->repaired.size ? at->length : reader->repaired.size;
    if (!dp_reserve(&reader->text.data, &reader->text.capacity, most, 1)) {
        no_memory(unit);
        return;
    }
    if (!get_id(reader, unit, at, &document) || !get_text(reader, unit, at, &document))
        return;
    if (!get_optional(reader, DP_FIELD_URL, &document.url, &document.url_length) ||
        !get_optional(reader, DP_FIELD_TITLE, &document.title, &document.title_length)) {
        bad_escape(reader, unit, at);
        return;
    }
    if (reader->was_repaired) {
        unit->counts.repaired++;
        dp_unit_report(unit, DOPPEL_OK, at->file, at->line, "invalid UTF-8 became U+FFFD");
    }
    give(reader, unit, &document);
}

static bool is_blank(const char *p, size_t length) {
    while (length && (*p == ' ' || *p == '\t' || *p == '\r')) {
        p++;
        length--;
    }
    return !length;
}

static bool stopped(const dp_reader *reader, const dp_unit *unit) {
    return unit->status != DOPPEL_OK || (reader->options->stop && *reader->options->stop);
}

/* One line, without its line end. */
static void read_line(dp_reader *reader, dp_unit *unit, place *at) {
    if (at->line == 1 && at->length >= 3 && !memcmp(at->bytes, "\xEF\xBB\xBF", 3)) {
        at->bytes += 3;
        at->length -= 3;
    }
    if (at->length && at->bytes[at->length - 1] == '\r')
        at->length--;
    if (at->length > reader->options->max_record)
        too_long(reader, unit, at);
    else if (!is_blank(at->bytes, at->length))
        read_record(reader, unit, at);
    if (unit->report_count > reader->sizes->pending / 1000)
        reader->flush(reader->run, unit);
}

static void read_block(dp_reader *reader, dp_unit *unit, const char *file) {
    const dp_block *block = &unit->block;
    const char *p = block->data, *end = p + block->size;
    place at = {.file = file};
    unit->counts.bytes += block->size;
    for (uint64_t line = block->first_line; p < end && !stopped(reader, unit); line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        at.line = line;
        at.bytes = p;
        at.length = (size_t)(stop - p);
        read_line(reader, unit, &at);
        p = stop + 1;
    }
    if (block->long_line && !stopped(reader, unit)) {
        at.line = block->long_line;
        too_long(reader, unit, &at);
    }
    if (block->cut_line && !stopped(reader, unit)) {
        at.line = block->cut_line;
        bad_record(reader, unit, &at, "the file breaks off within this line");
    }
}

/* ---- plain files ---- */

/* Reads the rest of the file behind what the block has of it, up to one byte more than a record may have. */
static bool read_rest(dp_reader *reader, dp_unit *unit) {
    dp_block *block = &unit->block;
    dp_stream *stream = &unit->stream;
    size_t limit = reader->options->max_record, got = 1;
    uint64_t expected = stream->size - (stream->raw_bytes < stream->size ? stream->raw_bytes : stream->size);
    while (got && block->size <= limit) {
        size_t want = (size_t)expected + 1 > limit - block->size ? limit - block->size + 1 : (size_t)expected + 1;
        if (want < 4096)
            want = 4096;
        if (!dp_block_reserve(block, block->size + want))
            return no_memory(unit);
        got = dp_stream_read(stream, block->data + block->size, want);
        block->size += got;
        /* Where the size is not known, or wrong, the room doubles. */
        expected = expected > got ? expected - got : expected ? 0 : (uint64_t)block->size;
    }
    return true;
}

static void read_plain(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_block *block = &unit->block;
    if (!read_rest(reader, unit) || stopped(reader, unit))
        return;
    place at = {.file = file, .bytes = block->data, .length = block->size};
    unit->counts.bytes += block->size;
    size_t look = block->size < BINARY_LOOK ? block->size : BINARY_LOOK;
    const char *nul = look ? memchr(block->data, 0, look) : NULL;
    if (unit->stream.failed) {
        bad_file(reader, unit, file, unit->stream.failure);
    } else if (nul) {
        char why[80];
        snprintf(why, sizeof why, "binary, not text: byte %zu is NUL", (size_t)(nul - block->data) + 1);
        bad_record(reader, unit, &at, why);
    } else if (block->size > reader->options->max_record) {
        too_long(reader, unit, &at);
    } else {
        const char *text = block->data ? block->data : "";
        doppel_document document = {file, strlen(file), text,        block->size, NULL, NULL, 0,
                                    0,    text,         block->size, file,        0};
        give(reader, unit, &document);
    }
}

/* ---- units ---- */

static void read_small_jsonl(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_lines_begin(&reader->lines, &unit->stream);
    while (!reader->lines.ended && !stopped(reader, unit)) {
        unit->block.size = 0;
        unit->block.long_line = unit->block.cut_line = 0;
        if (!dp_lines_next(&reader->lines, &unit->block)) {
            no_memory(unit);
            return;
        }
        read_block(reader, unit, file);
    }
    if (unit->stream.failed && !stopped(reader, unit))
        bad_file(reader, unit, file, unit->stream.failure);
}

static void read_file(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_stream *stream = &unit->stream;
    dp_buffer *head = &reader->lines.rest;
    bool opened = dp_stream_open(stream, file);
    if (!opened)
        bad_file(reader, unit, file, stream->failure);
    else if (!dp_read_head(stream, head))
        no_memory(unit);
    else if (dp_is_jsonl(file, head->data, head->size))
        read_small_jsonl(reader, unit, file);
    else {
        if (dp_block_reserve(&unit->block, head->size)) {
            memcpy(unit->block.data, head->data, head->size);
            unit->block.size = head->size;
            read_plain(reader, unit, file);
        } else {
            no_memory(unit);
        }
    }
    unit->raw_bytes += stream->raw_bytes;
    dp_stream_close(stream);
    dp_block_reset(&unit->block, reader->sizes->block);
}

void dp_reader_run(dp_reader *reader, dp_unit *unit) {
    const char *file = unit->names.data;
    if (unit->kind == DP_UNIT_LINES) {
        read_block(reader, unit, file);
        if (unit->failure[0] && !stopped(reader, unit))
            bad_file(reader, unit, file, unit->failure);
    } else if (unit->kind == DP_UNIT_WHOLE) {
        read_plain(reader, unit, file);
        unit->raw_bytes += unit->stream.raw_bytes;
    } else {
        for (size_t i = 0; i < unit->files && !stopped(reader, unit); i++, file += strlen(file) + 1)
            read_file(reader, unit, file);
    }
}
