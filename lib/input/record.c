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
    *length = dp_json_unescape(field->raw, field->raw_length, to, &reader->lone_surrogate);
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

static bool bad_escape(const dp_reader *reader, dp_unit *unit, const dp_place *at) {
    return dp_reader_bad_record(reader, unit, at, "not JSON: an escape in a string that JSON does not have");
}

static bool get_id(dp_reader *reader, dp_unit *unit, const dp_place *at, doppel_document *document) {
    const dp_json_field *field = &reader->fields[DP_FIELD_ID];
    char why[160];
    switch (field->kind) {
    case DP_JSON_ABSENT:
    case DP_JSON_NULL: return dp_reader_make_id(reader, unit, at, document);
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

static bool not_string(const dp_reader *reader, dp_unit *unit, const dp_place *at, const dp_json_field *field) {
    char why[160];
    snprintf(why, sizeof why, "field \"%.60s\" is %s, not a string", field->key, kind_name(field));
    return dp_reader_bad_record(reader, unit, at, why);
}

static bool is_missing(const dp_json_field *field) {
    return field->kind == DP_JSON_ABSENT || field->kind == DP_JSON_NULL;
}

/* A record has a text, or a page, or both. JSON is UTF-8, whatever its pages say of themselves. */
static bool get_text(dp_reader *reader, dp_unit *unit, const dp_place *at, doppel_document *document) {
    const dp_json_field *text = &reader->fields[DP_FIELD_TEXT], *html = &reader->fields[DP_FIELD_HTML];
    const char *prefix = reader->options->option_prefix ? reader->options->option_prefix : "";
    char why[240];
    document->charset = html->kind == DP_JSON_STRING ? DP_CHARSET_UTF8 : NULL;
    if (html->kind == DP_JSON_STRING && !get_string(reader, html, &document->html, &document->html_length))
        return bad_escape(reader, unit, at);
    if (text->kind == DP_JSON_STRING)
        return get_string(reader, text, &document->text, &document->text_length) || bad_escape(reader, unit, at);
    document->text = "";
    if (is_missing(text) && html->kind == DP_JSON_STRING)
        return true;
    if (text->kind != DP_JSON_ABSENT)
        return not_string(reader, unit, at, text);
    if (html->kind != DP_JSON_ABSENT)
        return not_string(reader, unit, at, html);
    dp_tally_lacks_text(dp_unit_tally(unit), at->bytes, at->length);
    if (strcmp(text->key, html->key) != 0)
        snprintf(why, sizeof why, "has no field \"%.60s\" or \"%.60s\"; --%.20stext-key names it", text->key, html->key,
                 prefix);
    else
        snprintf(why, sizeof why, "has no field \"%.60s\"", text->key);
    return dp_reader_bad_record(reader, unit, at, why);
}

/* The fields that the options ask for besides. */
static bool get_extra(dp_reader *reader, doppel_document *document) {
    document->extra = reader->extra;
    for (size_t i = 0; i < reader->options->extra_count; i++) {
        const dp_json_field *field = &reader->fields[DP_FIELDS + i];
        doppel_slice *slice = &reader->extra[i];
        *slice = (doppel_slice){0};
        if (field->kind == DP_JSON_STRING && !get_string(reader, field, &slice->data, &slice->length))
            return false;
        if (field->kind == DP_JSON_NUMBER || field->kind == DP_JSON_OTHER)
            *slice = (doppel_slice){field->raw, field->raw_length};
    }
    return true;
}

/* What a line that is no record looks like part of; NULL: nothing known. */
static const char *looks_like(const dp_place *at) {
    const char *p = at->bytes, *end = p + at->length;
    if (at->line == 1 && dp_is_utf16(p, at->length))
        return DP_WHY_UTF16;
    if (at->line == 1 && dp_is_parquet(p, at->length))
        return DP_WHY_PARQUET;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (p < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (p == end)
        return NULL;
    if (*p == '[' && end[-1] == ']')
        return "a JSON array, where JSONL has an object in each line; convert it with jq -c '.[]'";
    if (at->line == 1 && *p == '[')
        return "looks like one JSON document over several lines, not JSONL; convert it with jq -c '.[]'";
    if (at->line == 1 && *p == '{' && (end[-1] == '{' || end[-1] == '[' || end[-1] == ','))
        return "looks like one JSON document over several lines, not JSONL; convert it with jq -c .";
    return NULL;
}

static bool not_record(const dp_reader *reader, dp_unit *unit, const dp_place *at, dp_json_result result) {
    char why[200];
    const char *like = looks_like(at);
    if (!like && result == DP_JSON_NOT_OBJECT)
        like = "not a JSON object";
    snprintf(why, sizeof why, "%s%s", like ? "" : "not JSON: ", like ? like : dp_json_why(reader->json));
    return dp_reader_bad_record(reader, unit, at, why);
}

/* Reads the JSON of a line, repaired first if it has to be. */
static bool read_json(dp_reader *reader, dp_unit *unit, const dp_place *at) {
    static const char padding[DP_JSON_PADDING];
    size_t fields = DP_FIELDS + reader->options->extra_count;
    dp_json_result result = dp_json_read(reader->json, at->bytes, at->length, reader->fields, fields);
    if (result == DP_JSON_NOT_UTF8) {
        reader->repaired.size = 0;
        reader->invalid_utf8 = true;
        if (!dp_utf8_repair(at->bytes, at->length, &reader->repaired) ||
            !dp_buffer_add(&reader->repaired, padding, DP_JSON_PADDING))
            return dp_reader_no_memory(unit);
        size_t length = reader->repaired.size - DP_JSON_PADDING;
        result = dp_json_read(reader->json, reader->repaired.data, length, reader->fields, fields);
    }
    switch (result) {
    case DP_JSON_OK: return true;
    case DP_JSON_NO_MEMORY: return dp_reader_no_memory(unit);
    default: return not_record(reader, unit, at, result);
    }
}

/* Room for the text of all strings: unescaping never makes one longer. It must not move once it is used. */
static bool reserve_text(dp_reader *reader) {
    size_t room = 0;
    for (size_t i = 0; i < DP_FIELDS + reader->options->extra_count; i++)
        if (reader->fields[i].kind == DP_JSON_STRING)
            room += reader->fields[i].raw_length;
    reader->text.size = 0;
    return dp_reserve(&reader->text.data, &reader->text.capacity, room, 1);
}

static void report_repair(const dp_reader *reader, dp_unit *unit, const dp_place *at) {
    bool both = reader->invalid_utf8 && reader->lone_surrogate;
    if (!reader->invalid_utf8 && !reader->lone_surrogate)
        return;
    unit->counts.repaired++;
    dp_unit_report(unit, DOPPEL_OK, at->file, at->line, "%s%s%s became U+FFFD",
                   reader->invalid_utf8 ? "invalid UTF-8" : "", both ? " and " : "",
                   reader->lone_surrogate ? "a lone surrogate" : "");
}

/* Which fields there are. */
static void note_seen(dp_reader *reader) {
    reader->seen |= DP_SEEN_RECORD;
    for (size_t i = 0; i < DP_FIELDS + reader->options->extra_count; i++)
        if (!is_missing(&reader->fields[i]))
            reader->seen |= (uint64_t)1 << i;
}

void dp_reader_record(dp_reader *reader, dp_unit *unit, const dp_place *at) {
    doppel_document document = {.file = at->file, .line = at->line, .record = at->bytes, .record_length = at->length};
    reader->invalid_utf8 = reader->lone_surrogate = false;
    if (!read_json(reader, unit, at))
        return;
    note_seen(reader);
    if (!reserve_text(reader)) {
        dp_reader_no_memory(unit);
        return;
    }
    if (!get_id(reader, unit, at, &document) || !get_text(reader, unit, at, &document))
        return;
    if (!get_optional(reader, DP_FIELD_URL, &document.url, &document.url_length) ||
        !get_optional(reader, DP_FIELD_TITLE, &document.title, &document.title_length) ||
        !get_extra(reader, &document)) {
        bad_escape(reader, unit, at);
        return;
    }
    report_repair(reader, unit, at);
    dp_reader_give(reader, unit, &document);
}
