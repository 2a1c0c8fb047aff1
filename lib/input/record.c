/* record.c - a line of JSON becomes a document: its fields, unescaped, its id, what is wrong with it. */
#include "input/reader.h"

#include "input/utf8.h"

#include <stdio.h>

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

static bool make_id(dp_reader *reader, dp_unit *unit, const dp_place *at, doppel_document *document) {
    reader->id.size = 0;
    if (!dp_buffer_printf(&reader->id, "%s:%llu", at->file, (unsigned long long)at->line))
        return dp_reader_no_memory(unit);
    document->id = reader->id.data;
    document->id_length = reader->id.size;
    return true;
}

static bool bad_escape(const dp_reader *reader, dp_unit *unit, const dp_place *at) {
    return dp_reader_bad_record(reader, unit, at, "not JSON: an escape in a string that JSON does not have");
}

static bool get_id(dp_reader *reader, dp_unit *unit, const dp_place *at, doppel_document *document) {
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
        return dp_reader_bad_record(reader, unit, at, why);
    }
}

static const char *kind_name(const dp_json_field *field) {
    switch (field->kind) {
    case DP_JSON_NUMBER: return "a number";
    case DP_JSON_NULL: return "null";
    default: return *field->raw == '[' ? "an array" : *field->raw == '{' ? "an object" : "true or false";
    }
}

static bool get_text(dp_reader *reader, dp_unit *unit, const dp_place *at, doppel_document *document) {
    const dp_json_field *field = &reader->fields[DP_FIELD_TEXT];
    char why[160];
    if (field->kind == DP_JSON_STRING)
        return get_string(reader, field, &document->text, &document->text_length) || bad_escape(reader, unit, at);
    if (field->kind == DP_JSON_ABSENT)
        snprintf(why, sizeof why, "has no field \"%.60s\"", field->key);
    else
        snprintf(why, sizeof why, "field \"%.60s\" is %s, not a string", field->key, kind_name(field));
    return dp_reader_bad_record(reader, unit, at, why);
}

/* Reads the JSON of a line, repaired first if it has to be. */
static bool read_json(dp_reader *reader, dp_unit *unit, const dp_place *at) {
    static const char padding[DP_JSON_PADDING];
    char why[200];
    dp_json_result result = dp_json_read(reader->json, at->bytes, at->length, reader->fields, DP_FIELDS);
    if (result == DP_JSON_NOT_UTF8) {
        reader->repaired.size = 0;
        reader->was_repaired = true;
        if (!dp_utf8_repair(at->bytes, at->length, &reader->repaired) ||
            !dp_buffer_add(&reader->repaired, padding, DP_JSON_PADDING))
            return dp_reader_no_memory(unit);
        size_t length = reader->repaired.size - DP_JSON_PADDING;
        result = dp_json_read(reader->json, reader->repaired.data, length, reader->fields, DP_FIELDS);
    }
    switch (result) {
    case DP_JSON_OK: return true;
    case DP_JSON_NO_MEMORY: return dp_reader_no_memory(unit);
    case DP_JSON_NOT_OBJECT: return dp_reader_bad_record(reader, unit, at, "not a JSON object");
    default:
        snprintf(why, sizeof why, "not JSON: %s", dp_json_why(reader->json));
        return dp_reader_bad_record(reader, unit, at, why);
    }
}

/* Room for the text of all strings: unescaping never makes one longer. It must not move once it is used. */
static bool reserve_text(dp_reader *reader) {
    size_t room = 0;
    for (int i = 0; i < DP_FIELDS; i++)
        if (reader->fields[i].kind == DP_JSON_STRING)
            room += reader->fields[i].raw_length;
    reader->text.size = 0;
    return dp_reserve(&reader->text.data, &reader->text.capacity, room, 1);
}

void dp_reader_record(dp_reader *reader, dp_unit *unit, const dp_place *at) {
    doppel_document document = {.file = at->file, .line = at->line, .record = at->bytes, .record_length = at->length};
    reader->was_repaired = false;
    if (!read_json(reader, unit, at))
        return;
    if (!reserve_text(reader)) {
        dp_reader_no_memory(unit);
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
    dp_reader_give(reader, unit, &document);
}
