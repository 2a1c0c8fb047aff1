/* jsonl.c - JSON becomes documents: the formats JSONL, a record a line, and JSON, an array of records; and
 * doppel_document_parse for one record that is in memory already. json.cpp and keys.c find the fields of a record; here
 * their strings become text. The format of lines, each a text, is here as well, as files of lines are read alike. */
#include "input/reader.h"

#include "kernel/kernel.h"

#include <stdlib.h>

/* ---- strings of JSON, as text ---- */

/* The value of four hexadecimal digits, or -1. */
static int32_t hex4(const char *p) {
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = dp_hex_digit(p[i]);
        if (digit < 0)
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

/* ---- a record becomes a document: its fields, unescaped, its id, what is wrong with it ---- */

/* The text of a string field. Without escapes it is borrowed from the record; else it is in reader->text, which has
 * room. */
static bool get_string(dp_reader *reader, const dp_json_field *field, doppel_slice *text) {
    *text = (doppel_slice){field->raw, field->raw_length};
    if (!field->raw_length || !memchr(field->raw, '\\', field->raw_length))
        return true;
    char *to = reader->text.data + reader->text.size;
    *text = (doppel_slice){to, dp_json_unescape(field->raw, field->raw_length, to, &reader->lone_surrogate)};
    if (text->length == SIZE_MAX)
        return false;
    reader->text.size += text->length;
    return true;
}

/* A field that may be missing; one that is not a string counts as missing. */
static bool get_optional(dp_reader *reader, int which, doppel_slice *text) {
    *text = (doppel_slice){0};
    return reader->fields[which].kind != DP_JSON_STRING || get_string(reader, &reader->fields[which], text);
}

/* The same for an id, which may be a number. */
static bool get_optional_id(dp_reader *reader, doppel_slice *id) {
    const dp_json_field *field = &reader->fields[DP_FIELD_ID];
    if (field->kind != DP_JSON_NUMBER)
        return get_optional(reader, DP_FIELD_ID, id);
    *id = (doppel_slice){field->raw, field->raw_length};
    return true;
}

#define WHY_ESCAPE "not JSON: an escape in a string that JSON does not allow"

static bool bad_escape(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    return dp_reader_bad_record(reader, unit, at, "%s", WHY_ESCAPE);
}

static bool is_missing(const dp_json_field *field) {
    return field->kind == DP_JSON_ABSENT || field->kind == DP_JSON_NULL;
}

static bool get_id(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_document *document) {
    const dp_json_field *field = &reader->fields[DP_FIELD_ID];
    if (is_missing(field))
        return dp_reader_make_id(reader, unit, at, document);
    if (field->kind == DP_JSON_OTHER)
        return dp_reader_bad_record(reader, unit, at, "field \"%.60s\" is neither a string nor a number", field->key);
    return get_optional_id(reader, &document->id) || bad_escape(reader, unit, at);
}

static const char *kind_name(const dp_json_field *field) {
    switch (field->kind) {
    case DP_JSON_NUMBER: return "a number";
    case DP_JSON_NULL: return "null";
    default: return *field->raw == '[' ? "an array" : *field->raw == '{' ? "an object" : "true or false";
    }
}

static bool not_string(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const dp_json_field *field) {
    return dp_reader_bad_record(reader, unit, at, "field \"%.60s\" is %s, not a string", field->key, kind_name(field));
}

static bool is_named(const dp_json_field *field) {
    return field->kind == DP_JSON_STRING && field->raw_length;
}

/* Whether a record without a text may be one: options.text_optional. */
static bool needs_no_text(const dp_reader *reader, const dp_raw_record *at) {
    const dp_json_field *field = reader->fields;
    size_t longest = 0;
    if (!reader->options->text_optional || !is_missing(&field[DP_FIELD_TEXT]) || !is_missing(&field[DP_FIELD_HTML]) ||
        !(is_named(&field[DP_FIELD_URL]) || is_named(&field[DP_FIELD_TITLE])))
        return false;
    for (size_t i = 0; i < DP_FIELDS + reader->options->extra_count; i++)
        if (!is_missing(&field[i]) && field[i].raw_length > longest)
            longest = field[i].raw_length;
    return dp_longest_string(at->bytes, at->length) <= longest + strlen("\"\"");
}

/* A record has a text, or a page, or both. JSON is UTF-8, whatever its pages say of themselves. */
static bool get_text(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_document *document) {
    const dp_json_field *text = &reader->fields[DP_FIELD_TEXT], *html = &reader->fields[DP_FIELD_HTML];
    const char *prefix = reader->options->option_prefix ? reader->options->option_prefix : "";
    document->charset = html->kind == DP_JSON_STRING ? DP_CHARSET_UTF8 : NULL;
    if (html->kind == DP_JSON_STRING && !get_string(reader, html, &document->html))
        return bad_escape(reader, unit, at);
    if (text->kind == DP_JSON_STRING)
        return get_string(reader, text, &document->text) || bad_escape(reader, unit, at);
    document->text = (doppel_slice){"", 0};
    if ((is_missing(text) && html->kind == DP_JSON_STRING) || needs_no_text(reader, at))
        return true;
    if (text->kind != DP_JSON_ABSENT)
        return not_string(reader, unit, at, text);
    if (html->kind != DP_JSON_ABSENT)
        return not_string(reader, unit, at, html);
    dp_counts_lacks_text(dp_unit_counts(unit), at->bytes, at->length);
    if (!strcmp(text->key, html->key))
        return dp_reader_bad_record(reader, unit, at, "has no field \"%.60s\"", text->key);
    return dp_reader_bad_record(
        reader, unit, at, "has no field \"%.60s\" or \"%.60s\"; --%.20stext-key KEY names the field with the text",
        text->key, html->key, prefix);
}

/* The extra fields that the options name. */
static bool get_extra(dp_reader *reader, doppel_document *document) {
    document->extra = reader->extra;
    for (size_t i = 0; i < reader->options->extra_count; i++) {
        const dp_json_field *field = &reader->fields[DP_FIELDS + i];
        doppel_slice *slice = &reader->extra[i];
        *slice = (doppel_slice){0};
        if (field->kind == DP_JSON_STRING && !get_string(reader, field, slice))
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
        return "a JSON array, where JSONL has an object in each line; a file that is one array: --format json";
    if (at->line == 1 && *p == '[')
        return "looks like a JSON array over several lines, not JSONL: --format json reads it";
    if (at->line == 1 && *p == '{' && (end[-1] == '{' || end[-1] == '[' || end[-1] == ','))
        return "looks like one JSON document over several lines, not JSONL; convert it with jq -c .";
    return NULL;
}

static bool not_record(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at, dp_json_result result) {
    const char *like = looks_like(at);
    if (!like && result == DP_JSON_NOT_OBJECT)
        like = "not a JSON object";
    return dp_reader_bad_record(reader, unit, at, "%s%s",
                                like ? "" : "not JSON: ", like ? like : dp_json_why(reader->json));
}

/* Reads the JSON of a line, repaired first if it has to be. */
static bool read_json(dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    static const char padding[DP_JSON_PADDING];
    dp_json_result result = dp_fields_read(reader, at->bytes, at->length);
    if (result == DP_JSON_NOT_UTF8) {
        reader->repaired.size = 0;
        reader->invalid_utf8 = true;
        if (!dp_utf8_repair(at->bytes, at->length, &reader->repaired) ||
            !dp_buffer_add(&reader->repaired, padding, DP_JSON_PADDING))
            return dp_unit_no_memory(unit);
        size_t length = reader->repaired.size - DP_JSON_PADDING;
        result = dp_fields_read(reader, reader->repaired.data, length);
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
    if (reader->invalid_utf8 || reader->lone_surrogate)
        dp_reader_repaired(unit, at, "%s%s%s became U+FFFD", reader->invalid_utf8 ? "invalid UTF-8" : "",
                           both ? " and " : "", reader->lone_surrogate ? "a lone surrogate" : "");
}

/* Which fields there are. */
static void note_seen(dp_reader *reader) {
    reader->seen |= DP_SEEN_RECORD;
    for (size_t i = 0; i < DP_FIELDS + reader->options->extra_count; i++)
        if (!is_missing(&reader->fields[i]))
            reader->seen |= (uint64_t)1 << i;
}

/* One that was repaired is not in the block, and so has no position in the file. */
static uint64_t position_of(const dp_record_block *block, const dp_raw_record *at) {
    bool known =
        block->offset != DOPPEL_NO_POSITION && at->bytes >= block->data && at->bytes < block->data + block->size;
    return known ? block->offset + (uint64_t)(at->bytes - block->data) : DOPPEL_NO_POSITION;
}

/* Whether a value was joined from several, and so is not in the record. */
static bool is_joined(const dp_reader *reader, const dp_json_field *field) {
    const char *joined = reader->joined.data;
    return joined && field->raw >= joined && field->raw < joined + reader->joined.size;
}

/* The value of the text's key, unchanged, in the record. */
static doppel_slice text_value(const dp_reader *reader) {
    const dp_json_field *field = &reader->fields[DP_FIELD_TEXT];
    size_t quote = field->kind == DP_JSON_STRING;
    if (field->kind == DP_JSON_ABSENT || is_joined(reader, field))
        return (doppel_slice){0};
    return (doppel_slice){field->raw - quote, field->raw_length + 2 * quote};
}

static void give_record(dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    doppel_document document = {.file = at->file,
                                .line = at->line,
                                .record = {at->bytes, at->length},
                                .record_at = position_of(&unit->block, at),
                                .file_bytes = unit->block.file_bytes,
                                .file_changed = unit->block.file_changed};
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
    if (!get_optional(reader, DP_FIELD_URL, &document.url) || !get_optional(reader, DP_FIELD_TITLE, &document.title) ||
        !get_extra(reader, &document)) {
        bad_escape(reader, unit, at);
        return;
    }
    if (!reader->invalid_utf8)
        document.text_value = text_value(reader);
    report_repair(reader, unit, at);
    dp_reader_give(reader, unit, &document);
}

/* ---- files of lines ---- */

static const char *const endings[] = {".jsonl", ".ndjson", ".json", NULL};

static bool matches(const char *head, size_t length) {
    return length && *head == '{';
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
static void read_record(dp_reader *reader, dp_unit *unit, dp_raw_record *at) {
    if (at->line == 1)
        dp_skip_mark(&at->bytes, &at->length);
    if (at->length && at->bytes[at->length - 1] == '\r')
        at->length--;
    if (at->length > reader->options->max_record)
        dp_reader_too_long(reader, unit, at);
    else if (!is_blank(at->bytes, at->length))
        give_record(reader, unit, at);
}

/* Where line i of the block, which is at p, ends. */
static const char *stop_of(const dp_record_block *block, size_t i, const char *p) {
    const char *end = block->data + block->size;
    if (block->starts && i + 1 < block->lines)
        return block->data + (block->starts[i + 1] - block->starts[0]) - 1;
    const char *stop = block->starts ? end - (end[-1] == '\n') : memchr(p, '\n', (size_t)(end - p));
    return stop ? stop : end;
}

static void each_line(dp_reader *reader, dp_unit *unit, const char *file,
                      void (*line)(dp_reader *reader, dp_unit *unit, dp_raw_record *at)) {
    const dp_record_block *block = &unit->block;
    const char *p = block->data, *end = p + block->size;
    dp_raw_record at = {.file = file};
    for (size_t i = 0; p < end && !dp_reader_stopped(reader, unit); i++) {
        const char *stop = stop_of(block, i, p);
        at.line = block->first_line + i;
        at.bytes = p;
        at.length = (size_t)(stop - p);
        line(reader, unit, &at);
        p = stop + 1;
    }
}

static void read_lines(dp_reader *reader, dp_unit *unit, const char *file) {
    each_line(reader, unit, file, read_record);
}

const dp_format dp_format_jsonl = {.name = "JSONL",
                                   .record = "line",
                                   .endings = endings,
                                   .matches = matches,
                                   .end = line_end,
                                   .lines = true,
                                   .read = read_lines};

static void read_text_line(dp_reader *reader, dp_unit *unit, dp_raw_record *at) {
    const doppel_slice row = {at->bytes, at->length};
    if (at->line == 1)
        dp_skip_mark(&at->bytes, &at->length);
    if (at->length && at->bytes[at->length - 1] == '\r')
        at->length--;
    if (at->length > reader->options->max_record) {
        dp_reader_too_long(reader, unit, at);
        return;
    }
    doppel_document document = dp_reader_document(reader, unit, at);
    document.row = row;
    if (dp_slice_trim((doppel_slice){at->bytes, at->length}).length &&
        dp_reader_text(reader, unit, at, &reader->spare[0], &document) &&
        dp_reader_make_id(reader, unit, at, &document))
        dp_reader_give(reader, unit, &document);
}

static void lines_read(dp_reader *reader, dp_unit *unit, const char *file) {
    each_line(reader, unit, file, read_text_line);
}

/* Never detected by name or content: --format selects it. */
const dp_format dp_format_lines = {
    .name = "lines", .record = "line", .end = line_end, .lines = true, .read = lines_read};

/* ---- arrays ----
 *
 * The reading side cuts the file into elements, each with what precedes it: the bracket that opens the array, or
 * the comma after the element before it, and white space. To find where an element ends, only strings and brackets are
 * looked at; whether it is JSON is found out when it is read, by a thread that has it. So an array of any length is
 * read in blocks, and a bad element is left out like a bad line. What follows the last element, the closing bracket, is
 * a record without an end.
 *
 * Elements have numbers, from 1, instead of lines: many arrays are written in one line. An element of several lines is
 * given in one, without the white space outside of its strings, as records are written a line each. */

/* The position in a record; the depth is kept with it. A string within an element is IN_STRING or AFTER_ESCAPE.
 */
enum { BEFORE, IN_VALUE, IN_STRING, AFTER_ESCAPE, IN_WORD, AFTER_ARRAY };
enum { PLACES = 8 };

/* Of dp_mark.file: */
enum { NOT_OPENED, OPENED };

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Within a string: goes to its end, or as far as there is. Gives the place it is in then. No byte is searched twice,
 * however many escapes there are. */
static unsigned pass_string(const char **p, const char *end, unsigned place) {
    const char *quote = *p; /* the next one, if it is not before *p; or the end */
    while (*p < end) {
        if (place == AFTER_ESCAPE) {
            place = IN_STRING;
            ++*p;
            continue;
        }
        if (quote <= *p && !(quote = memchr(*p, '"', (size_t)(end - *p))))
            quote = end;
        const char *escape = memchr(*p, '\\', (size_t)(quote - *p));
        *p = escape ? escape + 1 : quote < end ? quote + 1 : end;
        if (!escape)
            return quote < end ? IN_VALUE : IN_STRING;
        place = AFTER_ESCAPE;
    }
    return place;
}

/* dp_record_end */
static size_t element_end(dp_mark *mark, const char *data, size_t size) {
    const char *p = data + mark->seen, *end = data + size;
    unsigned place = (unsigned)(mark->state % PLACES);
    uint64_t depth = mark->state / PLACES;
    while (p < end) {
        char c = *p;
        if (place == IN_STRING || place == AFTER_ESCAPE) {
            place = pass_string(&p, end, place);
            if (place == IN_VALUE && !depth)
                return (size_t)(p - data);
            continue;
        }
        if (place == AFTER_ARRAY)
            break;
        /* Only what the file begins with, a byte-order mark aside, opens the array. */
        bool begins = mark->file == NOT_OPENED && !is_space(c) && (signed char)c >= 0;
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        if (begins)
            mark->file = OPENED;
        if (begins && c == '[') {
            p++;
            continue;
        }
        if (place == BEFORE && closes) {
            place = AFTER_ARRAY;
        } else if (place == IN_WORD && (closes || c == ',' || is_space(c))) {
            return (size_t)(p - data);
        } else if (c == '"' && place != IN_WORD) {
            place = IN_STRING;
        } else if (opens && place != IN_WORD) {
            place = IN_VALUE;
            depth++;
        } else if (place == IN_VALUE && closes && --depth == 0) {
            return (size_t)(p + 1 - data);
        } else if (place == BEFORE && c != ',' && !is_space(c) && mark->file == OPENED) {
            place = IN_WORD;
        }
        p++;
    }
    /* The last byte of a word is looked at again: what was seen of a record that is too long is dropped, and if the
     * word ended before all that is left, its length would be 0. */
    mark->seen = size - (place == IN_WORD);
    mark->state = place + PLACES * depth;
    return 0;
}

static void pass_space(const char **p, const char *end) {
    while (*p < end && is_space(**p))
        ++*p;
}

static bool one_line(const dp_raw_record *at) {
    bool ends_in_cr = at->bytes[at->length] == '\r'; /* it would be taken for the end of a line */
    return !ends_in_cr && !memchr(at->bytes, '\n', at->length) && !memchr(at->bytes, '\r', at->length);
}

/* Copies an element without the white space outside of its strings; false when there is no memory. */
static bool compact(dp_reader *reader, dp_raw_record *at) {
    static const char padding[DP_JSON_PADDING];
    dp_buffer *to = &reader->spare[0];
    const char *p = at->bytes, *end = p + at->length;
    to->size = 0;
    if (!dp_reserve(&to->data, &to->capacity, at->length + DP_JSON_PADDING, 1))
        return false;
    while (p < end) {
        const char *from = p;
        if (*p == '"') {
            p++;
            pass_string(&p, end, IN_STRING);
        } else {
            while (p < end && *p != '"' && !is_space(*p))
                p++;
        }
        dp_buffer_add(to, from, (size_t)(p - from));
        pass_space(&p, end);
    }
    at->bytes = to->data;
    at->length = to->size;
    return dp_buffer_add(to, padding, sizeof padding);
}

/* Skips what must precede an element, the bracket that opens the array or a comma, and white space. False: it is
 * missing. */
static bool pass_opening(const char **p, const char *end, char opening) {
    pass_space(p, end);
    if (*p == end || **p != opening)
        return false;
    ++*p;
    pass_space(p, end);
    return true;
}

#define WHY_NO_ARRAY "does not begin with [, as an array of objects does"

/* One element, with what precedes it. */
static bool read_element(dp_reader *reader, dp_unit *unit, dp_raw_record *at, bool first) {
    const char *p = at->bytes, *end = p + at->length;
    /* What precedes it counts, so that it does not matter how the file was cut into blocks. */
    if (at->length > reader->options->max_record)
        return dp_reader_too_long(reader, unit, at);
    if (!pass_opening(&p, end, first ? '[' : ','))
        return dp_reader_bad_record(reader, unit, at, "%s",
                                    first ? WHY_NO_ARRAY : "a comma is missing before this element");
    at->bytes = p;
    at->length = (size_t)(end - p);
    if (*p != '{')
        return dp_reader_bad_record(reader, unit, at, "%s",
                                    *p != ',' ? "not a JSON object"
                                    : first   ? "a comma before the first element"
                                              : "more than one comma before this element");
    if (!one_line(at) && !compact(reader, at))
        return dp_unit_no_memory(unit);
    /* A record ends with its line for whatever looks at the byte after it: the parser, to say what is wrong. */
    char *after = unit->block.data + (end - unit->block.data), kept = *after;
    *after = '\n';
    give_record(reader, unit, at);
    *after = kept;
    return true;
}

/* Whether the end of the file is missing, which is reported elsewhere. */
static bool is_cut_short(const dp_unit *unit) {
    return unit->block.cut_line || unit->block.long_line || unit->failure[0] || unit->stream.failed;
}

/* The file ends before its array: what is left of an element is left out, and the file counts as not read to its end.
 */
static bool cut_off(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at, bool within) {
    if (within)
        dp_reader_bad_record(reader, unit, at, "the file ends within this element");
    dp_reader_bad_file(reader, unit, at->file, "cut short: the array is not closed with ]");
    return false;
}

/* What follows the last element. */
static bool read_end(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, bool first) {
    const char *p = at->bytes, *end = p + at->length;
    if (at->length > reader->options->max_record)
        return dp_reader_too_long(reader, unit, at);
    pass_space(&p, end);
    if (first && p == end)
        return true;
    if (first && !pass_opening(&p, end, '['))
        return dp_reader_bad_record(reader, unit, at, WHY_NO_ARRAY);
    if (pass_opening(&p, end, ',') && p < end && *p == ']')
        return dp_reader_bad_record(reader, unit, at, "an element is missing after the last comma");
    if (p < end && *p == '}')
        return dp_reader_bad_record(reader, unit, at, "} where the array is closed with ]");
    if (p == end || *p != ']')
        return is_cut_short(unit) || cut_off(reader, unit, at, p < end);
    p++;
    pass_space(&p, end);
    return p == end || dp_reader_bad_record(reader, unit, at, "unexpected text after the array");
}

static void read_elements(dp_reader *reader, dp_unit *unit, const char *file) {
    const dp_record_block *block = &unit->block;
    const char *p = block->data, *end = p + block->size;
    dp_mark mark = {.file = block->first ? NOT_OPENED : OPENED};
    dp_raw_record at = {.file = file, .line = block->first_line};
    bool first = block->first;
    /* Of a file that breaks off, the block has whole elements only; that a word has ended cannot be seen in it. */
    bool has_end = block->last && !block->cut_line && !block->long_line;
    if (first) {
        size_t size = block->size;
        dp_skip_mark(&p, &size);
    }
    for (size_t length; p < end && !dp_reader_stopped(reader, unit); p += length, at.line++, first = false) {
        length = element_end(&mark, p, (size_t)(end - p));
        if (!length && has_end)
            break;
        length = length ? length : (size_t)(end - p);
        at.bytes = p;
        at.length = length;
        read_element(reader, unit, &at, first);
        mark = (dp_mark){.file = mark.file};
    }
    at.bytes = p;
    at.length = (size_t)(end - p);
    if (block->last && !dp_reader_stopped(reader, unit))
        read_end(reader, unit, &at, first);
}

/* An array of objects, whatever the name. */
static bool array_matches(const char *head, size_t length) {
    const char *p = head, *end = head + length;
    return pass_opening(&p, end, '[') && p < end && *p == '{';
}

const dp_format dp_format_json = {
    .name = "JSON", .record = "element", .matches = array_matches, .end = element_end, .read = read_elements};

/* ---- one document from one record that is in memory already ---- */

/* A document with the memory of its fields. */
typedef struct owned_document {
    doppel_document document; /* first: it is what the caller holds */
    dp_buffer record;         /* with the padding that the parser wants */
    dp_buffer text;           /* strings that had escapes */
    doppel_slice extra[DP_EXTRA];
} owned_document;

static doppel_status copy_record(owned_document *own, doppel_slice record, doppel_error *error) {
    static const char padding[DP_JSON_PADDING];
    dp_buffer *to = &own->record;
    bool copied = dp_json_is_utf8(record.data, record.length) ? dp_buffer_add(to, record.data, record.length)
                                                              : dp_utf8_repair(record.data, record.length, to);
    return copied && dp_buffer_add(to, padding, sizeof padding) ? DOPPEL_OK : dp_no_memory(error);
}

static doppel_status find_fields(dp_reader *reader, const owned_document *own, doppel_error *error) {
    switch (dp_fields_read(reader, own->record.data, own->record.size - DP_JSON_PADDING)) {
    case DP_JSON_OK: return DOPPEL_OK;
    case DP_JSON_NO_MEMORY: return dp_no_memory(error);
    case DP_JSON_NOT_OBJECT: return dp_fail(error, DOPPEL_ERROR_INPUT, "not a JSON object");
    case DP_JSON_NOT_UTF8: return dp_fail(error, DOPPEL_ERROR_INPUT, "not UTF-8");
    default: return dp_fail(error, DOPPEL_ERROR_INPUT, "not JSON: %s", dp_json_why(reader->json));
    }
}

static doppel_status set_fields(dp_reader *reader, owned_document *own, doppel_error *error) {
    doppel_document *d = &own->document;
    DP_TRY(find_fields(reader, own, error));
    if (!reserve_text(reader))
        return dp_no_memory(error);
    bool taken = get_optional_id(reader, &d->id) && get_optional(reader, DP_FIELD_URL, &d->url) &&
                 get_optional(reader, DP_FIELD_TITLE, &d->title) && get_optional(reader, DP_FIELD_TEXT, &d->text) &&
                 get_optional(reader, DP_FIELD_HTML, &d->html) && get_extra(reader, d);
    own->text = reader->text;
    memcpy(own->extra, reader->extra, sizeof own->extra);
    d->id.data = d->id.data ? d->id.data : "";
    d->text.data = d->text.data ? d->text.data : "";
    d->file = "";
    d->charset = d->html.data ? DP_CHARSET_UTF8 : NULL;
    d->extra = own->extra;
    d->record_at = DOPPEL_NO_POSITION;
    d->record = (doppel_slice){own->record.data, own->record.size - DP_JSON_PADDING};
    d->text_value = text_value(reader);
    return taken ? DOPPEL_OK : dp_fail(error, DOPPEL_ERROR_INPUT, "%s", WHY_ESCAPE);
}

doppel_status doppel_document_parse(doppel_slice record, const doppel_input_options *given, doppel_document **document,
                                    doppel_error *error) {
    doppel_input_options options = {0};
    *document = NULL;
    if (given)
        dp_copy_options(&options, given, sizeof options);
    if (options.extra_count > DP_EXTRA)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "more than %d extra keys", DP_EXTRA);
    dp_reader reader = {.options = &options, .json = dp_json_create()};
    owned_document *own = calloc(1, sizeof *own);
    doppel_status status = own && reader.json ? DOPPEL_OK : dp_no_memory(error);
    if (!dp_fields_init(&reader))
        status = dp_fail(error, DOPPEL_ERROR_USAGE, DP_WHY_NAMES);
    DP_THEN(status, copy_record(own, record, error));
    DP_THEN(status, set_fields(&reader, own, error));
    dp_json_free(reader.json);
    dp_buffer_free(&reader.joined);
    if (status == DOPPEL_OK)
        *document = &own->document;
    else if (own)
        doppel_document_free(&own->document);
    return status;
}

/* ---- one record after the other ---- */

struct dp_record_parser {
    doppel_input_options options;
    dp_reader reader;
    owned_document own; /* its text is that of the reader */
};

doppel_status dp_record_parser_create(const doppel_input_options *options, dp_record_parser **made) {
    dp_record_parser *parser = *made = calloc(1, sizeof *parser);
    if (!parser)
        return DOPPEL_ERROR_MEMORY;
    dp_copy_options(&parser->options, options, sizeof parser->options);
    parser->reader.options = &parser->options;
    parser->reader.json = dp_json_create();
    if (dp_fields_init(&parser->reader) && parser->reader.json)
        return DOPPEL_OK;
    dp_record_parser_free(parser);
    *made = NULL;
    return DOPPEL_ERROR_MEMORY;
}

void dp_record_parser_free(dp_record_parser *parser) {
    if (!parser)
        return;
    dp_json_free(parser->reader.json);
    dp_buffer_free(&parser->reader.text);
    dp_buffer_free(&parser->reader.joined);
    dp_buffer_free(&parser->own.record);
    free(parser);
}

doppel_status dp_record_parser_run(dp_record_parser *parser, doppel_slice record, doppel_document *document) {
    parser->own.record.size = 0;
    parser->own.document = (doppel_document){0};
    DP_TRY(copy_record(&parser->own, record, NULL));
    doppel_status status = set_fields(&parser->reader, &parser->own, NULL);
    *document = parser->own.document;
    return status;
}

void doppel_document_free(doppel_document *document) {
    owned_document *own = (owned_document *)document;
    if (!own)
        return;
    dp_buffer_free(&own->record);
    dp_buffer_free(&own->text);
    free(own);
}
