/* jsonl.c - JSON becomes documents: the format JSONL, a record a line, and doppel_document_parse for one record that is
 * in memory already. json.cpp finds the fields of a record; here their strings become text. */
#include "input/reader.h"

#include "kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- strings and numbers of JSON, as text ---- */

/* The value of four hexadecimal digits, or -1. */
static int32_t hex4(const char *p) {
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            digit = (c | 32) - 'a' + 10;
        else
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static char *put_utf8(char *to, int32_t c) {
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xE0 | c >> 12);
        } else {
            *to++ = (char)(0xF0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 63));
        }
        *to++ = (char)(0x80 | (c >> 6 & 63));
    }
    *to++ = (char)(0x80 | (c & 63));
    return to;
}

/* The code point of one \u escape, or of two that make a pair, of which the first is whole; -1 when its digits are
 * none. A half of a pair without the other is U+FFFD. */
static int32_t code_point(const char **p, const char *end, bool *repaired) {
    int32_t c = hex4(*p + 2);
    *p += 6;
    if (c < 0xD800 || c > 0xDFFF)
        return c;
    if (c < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        int32_t low = hex4(*p + 2);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *p += 6;
            return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    *repaired = true;
    return 0xFFFD;
}

size_t dp_json_unescape(const char *raw, size_t length, char *to, bool *repaired) {
    dp_unescape_fn unescape = dp_unescape_kernel();
    const char *p = raw, *end = raw + length;
    char *start = to;
    for (;;) {
        size_t written;
        p += unescape(p, (size_t)(end - p), to, &written);
        to += written;
        if (p == end)
            return (size_t)(to - start);
        do {
            int32_t c = end - p >= 6 && p[1] == 'u' ? code_point(&p, end, repaired) : -1;
            if (c < 0)
                return SIZE_MAX;
            to = put_utf8(to, c);
        } while (end - p >= 2 && p[0] == '\\' && p[1] == 'u');
    }
}

static const char *digits(const char *p, const char *end) {
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

bool dp_json_is_number(const char *raw, size_t length) {
    const char *p = raw, *end = raw + length, *start;
    if (p < end && *p == '-')
        p++;
    start = p;
    p = digits(p, end);
    if (p == start || (*start == '0' && p - start > 1))
        return false;
    if (p < end && *p == '.') {
        start = ++p;
        if ((p = digits(p, end)) == start)
            return false;
    }
    if (p < end && (*p | 32) == 'e') {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        start = p;
        if ((p = digits(p, end)) == start)
            return false;
    }
    return p == end;
}

/* ---- a record becomes a document: its fields, unescaped, its id, what is wrong with it ---- */

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

static bool bad_escape(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    return dp_reader_bad_record(reader, unit, at, "not JSON: an escape in a string that JSON does not have");
}

static bool get_id(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_document *document) {
    const dp_json_field *field = &reader->fields[DP_FIELD_ID];
    char why[160];
    switch (field->kind) {
    case DP_JSON_ABSENT:
    case DP_JSON_NULL: return dp_reader_make_id(reader, unit, at, document);
    case DP_JSON_NUMBER:
        document->id.data = field->raw;
        document->id.length = field->raw_length;
        return true;
    case DP_JSON_STRING:
        return get_string(reader, field, &document->id.data, &document->id.length) || bad_escape(reader, unit, at);
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

static bool not_string(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const dp_json_field *field) {
    char why[160];
    snprintf(why, sizeof why, "field \"%.60s\" is %s, not a string", field->key, kind_name(field));
    return dp_reader_bad_record(reader, unit, at, why);
}

static bool is_missing(const dp_json_field *field) {
    return field->kind == DP_JSON_ABSENT || field->kind == DP_JSON_NULL;
}

/* A record has a text, or a page, or both. JSON is UTF-8, whatever its pages say of themselves. */
static bool get_text(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_document *document) {
    const dp_json_field *text = &reader->fields[DP_FIELD_TEXT], *html = &reader->fields[DP_FIELD_HTML];
    const char *prefix = reader->options->option_prefix ? reader->options->option_prefix : "";
    char why[240];
    document->charset = html->kind == DP_JSON_STRING ? DP_CHARSET_UTF8 : NULL;
    if (html->kind == DP_JSON_STRING && !get_string(reader, html, &document->html.data, &document->html.length))
        return bad_escape(reader, unit, at);
    if (text->kind == DP_JSON_STRING)
        return get_string(reader, text, &document->text.data, &document->text.length) || bad_escape(reader, unit, at);
    document->text.data = "";
    if (is_missing(text) && html->kind == DP_JSON_STRING)
        return true;
    if (text->kind != DP_JSON_ABSENT)
        return not_string(reader, unit, at, text);
    if (html->kind != DP_JSON_ABSENT)
        return not_string(reader, unit, at, html);
    dp_counts_lacks_text(dp_unit_counts(unit), at->bytes, at->length);
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
static const char *looks_like(const dp_raw_record *at) {
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

static bool not_record(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at, dp_json_result result) {
    char why[200];
    const char *like = looks_like(at);
    if (!like && result == DP_JSON_NOT_OBJECT)
        like = "not a JSON object";
    snprintf(why, sizeof why, "%s%s", like ? "" : "not JSON: ", like ? like : dp_json_why(reader->json));
    return dp_reader_bad_record(reader, unit, at, why);
}

/* Reads the JSON of a line, repaired first if it has to be. */
static bool read_json(dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    static const char padding[DP_JSON_PADDING];
    size_t fields = DP_FIELDS + reader->options->extra_count;
    dp_json_result result = dp_json_read(reader->json, at->bytes, at->length, reader->fields, fields);
    if (result == DP_JSON_NOT_UTF8) {
        reader->repaired.size = 0;
        reader->invalid_utf8 = true;
        if (!dp_utf8_repair(at->bytes, at->length, &reader->repaired) ||
            !dp_buffer_add(&reader->repaired, padding, DP_JSON_PADDING))
            return dp_unit_no_memory(unit);
        size_t length = reader->repaired.size - DP_JSON_PADDING;
        result = dp_json_read(reader->json, reader->repaired.data, length, reader->fields, fields);
    }
    switch (result) {
    case DP_JSON_OK: return true;
    case DP_JSON_NO_MEMORY: return dp_unit_no_memory(unit);
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

static void report_repair(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
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

/* Makes a document of a line of JSON and gives it to the work. */
static void give_record(dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    doppel_document document = {
        .file = at->file, .line = at->line, .record.data = at->bytes, .record.length = at->length};
    reader->invalid_utf8 = reader->lone_surrogate = false;
    if (!read_json(reader, unit, at))
        return;
    note_seen(reader);
    if (!reserve_text(reader)) {
        dp_unit_no_memory(unit);
        return;
    }
    if (!get_id(reader, unit, at, &document) || !get_text(reader, unit, at, &document))
        return;
    if (!get_optional(reader, DP_FIELD_URL, &document.url.data, &document.url.length) ||
        !get_optional(reader, DP_FIELD_TITLE, &document.title.data, &document.title.length) ||
        !get_extra(reader, &document)) {
        bad_escape(reader, unit, at);
        return;
    }
    report_repair(reader, unit, at);
    dp_reader_give(reader, unit, &document);
}

/* ---- the format ---- */

static const char *const endings[] = {".jsonl", ".ndjson", ".json", NULL};

/* An object, or an array of them, which is none of JSONL but read as such, so that it is called what it is. */
static bool tells(const char *head, size_t length) {
    size_t at = length && *head == '[';
    while (at && at < length && (head[at] == ' ' || head[at] == '\t' || head[at] == '\r' || head[at] == '\n'))
        at++;
    return at < length && head[at] == '{';
}

static size_t line_end(dp_mark *mark, const char *data, size_t size) {
    const char *end = memchr(data + mark->seen, '\n', size - mark->seen);
    mark->seen = size;
    return end ? (size_t)(end + 1 - data) : 0;
}

static bool is_blank(const char *p, size_t length) {
    while (length && (*p == ' ' || *p == '\t' || *p == '\r')) {
        p++;
        length--;
    }
    return !length;
}

/* One line, without its line end. */
static void read_line(dp_reader *reader, dp_unit *unit, dp_raw_record *at) {
    if (at->line == 1 && at->length >= 3 && !memcmp(at->bytes, "\xEF\xBB\xBF", 3)) {
        at->bytes += 3;
        at->length -= 3;
    }
    if (at->length && at->bytes[at->length - 1] == '\r')
        at->length--;
    if (at->length > reader->options->max_record)
        dp_reader_too_long(reader, unit, at);
    else if (!is_blank(at->bytes, at->length))
        give_record(reader, unit, at);
}

static void read_lines(dp_reader *reader, dp_unit *unit, const char *file) {
    const dp_record_block *block = &unit->block;
    const char *p = block->data, *end = p + block->size;
    dp_raw_record at = {.file = file};
    for (uint64_t line = block->first_line; p < end && !dp_reader_stopped(reader, unit); line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        at.line = line;
        at.bytes = p;
        at.length = (size_t)(stop - p);
        read_line(reader, unit, &at);
        p = stop + 1;
    }
}

const dp_format dp_format_jsonl = {
    .name = "JSONL", .record = "line", .endings = endings, .tells = tells, .end = line_end, .read = read_lines};

/* ---- one document from one record that is in memory already ---- */

/* A document with the memory its fields stand in. */
typedef struct owned {
    doppel_document document; /* first: it is what the caller holds */
    dp_buffer record;         /* with the padding that the parser wants */
    char *strings;
    doppel_slice extra[DP_EXTRA];
} owned;

typedef struct record_parse {
    owned *own;
    dp_json *json;
    dp_json_field field[DP_FIELDS + DP_EXTRA];
    size_t fields; /* of these */
    size_t used;   /* of own->strings */
    doppel_error *error;
} record_parse;

static doppel_status bad(const record_parse *p, const char *why) {
    return dp_fail(p->error, DOPPEL_ERROR_INPUT, "%s", why);
}

static doppel_status name_fields(record_parse *p, const doppel_input_options *given) {
    doppel_input_options options = {0};
    if (given)
        dp_copy_options(&options, given, sizeof options);
    if (options.extra_count > DP_EXTRA)
        return dp_fail(p->error, DOPPEL_ERROR_USAGE, "more than %d extra keys", DP_EXTRA);
    dp_fields_init(&options, p->field);
    p->fields = DP_FIELDS + options.extra_count;
    return DOPPEL_OK;
}

static doppel_status copy_record(record_parse *p, const char *record, size_t length) {
    static const char padding[DP_JSON_PADDING];
    dp_buffer *to = &p->own->record;
    bool copied =
        dp_json_is_utf8(record, length) ? dp_buffer_add(to, record, length) : dp_utf8_repair(record, length, to);
    return copied && dp_buffer_add(to, padding, sizeof padding) ? DOPPEL_OK : dp_no_memory(p->error);
}

static doppel_status parse_record(record_parse *p) {
    size_t length = p->own->record.size - DP_JSON_PADDING;
    char why[200];
    switch (dp_json_read(p->json, p->own->record.data, length, p->field, p->fields)) {
    case DP_JSON_OK: return DOPPEL_OK;
    case DP_JSON_NO_MEMORY: return dp_no_memory(p->error);
    case DP_JSON_NOT_OBJECT: return bad(p, "not a JSON object");
    case DP_JSON_NOT_UTF8: return bad(p, "not UTF-8");
    default: snprintf(why, sizeof why, "not JSON: %s", dp_json_why(p->json)); return bad(p, why);
    }
}

/* A string field; one that is no string counts as missing, but for what may be something else: an id a number, and an
 * extra field anything but null. */
static bool take_field(record_parse *p, size_t which, const char **text, size_t *length) {
    const dp_json_field *f = &p->field[which];
    bool repaired, other = which >= DP_FIELDS && f->kind == DP_JSON_OTHER;
    *text = NULL;
    *length = 0;
    if (other || ((which == DP_FIELD_ID || which >= DP_FIELDS) && f->kind == DP_JSON_NUMBER)) {
        *text = f->raw;
        *length = f->raw_length;
    }
    if (f->kind != DP_JSON_STRING)
        return true;
    char *to = p->own->strings + p->used;
    *length = dp_json_unescape(f->raw, f->raw_length, to, &repaired);
    *text = to;
    p->used += *length == SIZE_MAX ? 0 : *length;
    return *length != SIZE_MAX;
}

/* False: an escape is wrong. */
static bool take_all(record_parse *p) {
    doppel_document *d = &p->own->document;
    bool taken = take_field(p, DP_FIELD_ID, &d->id.data, &d->id.length) &&
                 take_field(p, DP_FIELD_URL, &d->url.data, &d->url.length) &&
                 take_field(p, DP_FIELD_TITLE, &d->title.data, &d->title.length) &&
                 take_field(p, DP_FIELD_TEXT, &d->text.data, &d->text.length) &&
                 take_field(p, DP_FIELD_HTML, &d->html.data, &d->html.length);
    for (size_t i = DP_FIELDS; taken && i < p->fields; i++) {
        doppel_slice *extra = &p->own->extra[i - DP_FIELDS];
        taken = take_field(p, i, &extra->data, &extra->length);
    }
    return taken;
}

static doppel_status take_fields(record_parse *p) {
    doppel_document *d = &p->own->document;
    size_t room = 1;
    for (size_t i = 0; i < p->fields; i++)
        room += p->field[i].kind == DP_JSON_STRING ? p->field[i].raw_length : 0;
    if (!(p->own->strings = malloc(room)))
        return dp_no_memory(p->error);
    if (!take_all(p))
        return bad(p, "not JSON: an escape in a string that JSON does not have");
    d->id.data = d->id.data ? d->id.data : "";
    d->text.data = d->text.data ? d->text.data : "";
    d->file = "";
    d->charset = d->html.data ? DP_CHARSET_UTF8 : NULL;
    d->extra = p->own->extra;
    d->record.data = p->own->record.data;
    d->record.length = p->own->record.size - DP_JSON_PADDING;
    return DOPPEL_OK;
}

doppel_status doppel_document_parse(doppel_slice record, const doppel_input_options *options,
                                    doppel_document **document, doppel_error *error) {
    record_parse p = {.own = calloc(1, sizeof *p.own), .json = dp_json_create(), .error = error};
    *document = NULL;
    doppel_status status = p.own && p.json ? DOPPEL_OK : dp_no_memory(error);
    if (status == DOPPEL_OK)
        status = name_fields(&p, options);
    if (status == DOPPEL_OK)
        status = copy_record(&p, record.data, record.length);
    if (status == DOPPEL_OK)
        status = parse_record(&p);
    if (status == DOPPEL_OK)
        status = take_fields(&p);
    dp_json_free(p.json);
    if (status == DOPPEL_OK)
        *document = &p.own->document;
    else if (p.own)
        doppel_document_free(&p.own->document);
    return status;
}

void doppel_document_free(doppel_document *document) {
    owned *own = (owned *)document;
    if (!own)
        return;
    dp_buffer_free(&own->record);
    free(own->strings);
    free(own);
}
