/* warc.c - web archives: the formats WARC (1.0, 1.1 and the drafts before, WET among it) and ARC.
 *
 * A record is a head that gives a length, the content, and the next record. WARC and ARC differ in their heads alone;
 * first comes what they have in common: where a record ends, what to do when a length is wrong, and how content that
 * came by HTTP becomes a document.
 *
 * A length is believed when a record (or the end of the file) follows the content. If not, the record is bad, and
 * reading resumes at the next line after its head that starts a record with a good head.
 *
 * The reading side and the threads must cut alike, though they see different amounts of what follows: `measure` goes by
 * the bytes up to the next record alone. */
#include "input/reader.h"

#include <strings.h>

/* A head longer than this is broken. */
#define MAX_HEAD ((size_t)1 << 20)

typedef enum certainty { NO, YES, UNSURE /* too few bytes to say */ } certainty;

typedef struct archive_format {
    /* Whether a record starts at p. */
    certainty (*starts)(const char *p, size_t size);
    /* Reads the head of the record that starts at p: its bytes, with what separates it from the content, and the bytes
     * of the content. NO: it is broken. */
    certainty (*head)(const char *p, size_t size, size_t *length, uint64_t *content);
    /* Makes a document of a whole record and gives it to the work, or leaves it out. */
    void (*give)(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, size_t head_length);
} archive_format;

/* ---- where the records of an archive end ---- */

/* mark->state while the start of the next record is looked for; otherwise how many bytes the record has after `seen`.
 */
#define SEARCHING UINT64_MAX

/* How many line ends may stand before a record and after it; more are a blank record of their own. It is below what
 * blocks.c lets a record have in addition to its own bytes. */
#define LINE_ENDS 8

typedef enum record_state {
    GOOD,
    BLANK,   /* nothing but line ends */
    GARBAGE, /* does not start as a record */
    BROKEN,  /* the head cannot be read */
    WRONG,   /* the length is wrong */
    CUT      /* truncated */
} record_state;

typedef struct measured {
    record_state state;
    size_t start;       /* line ends before it */
    size_t head_length; /* from there */
    uint64_t total;     /* bytes with its content, if the head gives a length; else 0 */
    size_t searched;    /* SEARCHING: where to go on; else 0 */
} measured;

static bool is_line_end(char c) {
    return c == '\n' || c == '\r';
}

static size_t skip_line_ends(const char *data, size_t at, size_t size) {
    for (int i = 0; i < LINE_ENDS && at < size && is_line_end(data[at]); i++)
        at++;
    return at;
}

/* Whether reading can resume at p: a record starts there, and its head is good. */
static certainty can_resume(const archive_format *archive, const char *p, size_t size) {
    size_t length;
    uint64_t content;
    certainty answer = archive->starts(p, size);
    return answer == YES ? archive->head(p, size, &length, &content) : answer;
}

/* Where reading can resume, at a line start after `from`. 0: not in these bytes, or (m->searched) not surely. */
static size_t find_start(const archive_format *archive, const char *data, size_t from, size_t size, measured *m) {
    const char *p;
    while (from < size && (p = memchr(data + from, '\n', size - from))) {
        size_t at = (size_t)(p - data) + 1;
        certainty answer = can_resume(archive, data + at, size - at);
        if (answer == YES)
            return at;
        m->searched = at - 1;
        if (answer == UNSURE)
            return 0;
        from = at;
    }
    m->searched = size;
    return 0;
}

/* The record is bad; it extends to the next start. */
static size_t give_up(const archive_format *archive, const char *data, size_t size, size_t from, measured *m) {
    size_t start = find_start(archive, data, from, size, m);
    m->searched = start ? 0 : m->searched;
    return start;
}

/* The head has been read: is there a record after the content? */
static size_t check_length(const archive_format *archive, const char *data, size_t size, bool last, measured *m) {
    size_t content = m->start + m->head_length;
    if (m->total > size) {
        m->state = CUT;
        size_t start = last ? give_up(archive, data, size, content, m) : 0;
        if (start)
            m->state = WRONG;
        return start;
    }
    size_t after = skip_line_ends(data, (size_t)m->total, size);
    certainty answer = UNSURE;
    if (after < size)
        answer = is_line_end(data[after]) ? YES : archive->starts(data + after, size - after);
    m->state = GOOD;
    if (answer == YES || (answer == UNSURE && last))
        return after;
    if (answer == UNSURE)
        return 0;
    m->state = WRONG;
    return give_up(archive, data, size, content, m);
}

/* How many bytes the record has; 0: it has no end within these bytes. `last`: there are no more. */
static size_t measure(const archive_format *archive, const char *data, size_t size, bool last, measured *m) {
    *m = (measured){.state = BLANK, .start = skip_line_ends(data, 0, size)};
    const char *p = data + m->start;
    size_t left = size - m->start;
    if (!left || is_line_end(*p))
        return left ? m->start : 0;
    uint64_t content;
    certainty answer = archive->starts(p, left);
    m->state = answer == UNSURE ? CUT : GARBAGE;
    if (answer != YES)
        return answer == UNSURE ? 0 : give_up(archive, data, size, m->start, m);
    answer = archive->head(p, left, &m->head_length, &content);
    m->state = answer == UNSURE ? CUT : BROKEN;
    if (answer != YES)
        return answer == UNSURE ? 0 : give_up(archive, data, size, m->start, m);
    m->total = m->start + m->head_length + content;
    return check_length(archive, data, size, last, m);
}

/* Notes how far the record was seen, so that what was seen of a long one can be dropped. */
static void note(dp_mark *mark, size_t size, const measured *m) {
    if (m->searched) {
        mark->state = SEARCHING;
        mark->seen = m->searched;
    } else if (m->total) {
        /* One byte is left to see, so that the record never ends with nothing. */
        mark->seen = m->total > size ? size : (size_t)m->total - 1;
        mark->state = m->total - mark->seen;
    }
}

/* The `end` of a format. */
static size_t archive_end(const archive_format *archive, dp_mark *mark, const char *data, size_t size) {
    measured m = {0};
    if (mark->state == SEARCHING) {
        size_t start = find_start(archive, data, mark->seen, size, &m);
        mark->seen = m.searched;
        return start;
    }
    if (mark->state && !mark->seen) { /* the start of the record was dropped */
        if (mark->state <= size)
            return (size_t)mark->state;
        mark->state -= size;
        mark->seen = size;
        return 0;
    }
    size_t length = measure(archive, data, size, false, &m);
    if (!length)
        note(mark, size, &m);
    return length;
}

/* The last record of the file is truncated: it is left out, and the file counts as not read to its end. */
static void cut_off(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    dp_reader_bad_record(reader, unit, at, "the file ends within this record");
    dp_reader_bad_file(reader, unit, at->file, "cut short");
}

static void read_record(const archive_format *archive, dp_reader *reader, dp_unit *unit, dp_raw_record *at,
                        const measured *m) {
    const dp_record_block *block = &unit->block;
    bool ends_block = at->bytes + at->length == block->data + block->size;
    bool at_end = ends_block && block->last && !block->cut_line && !block->long_line;
    at->bytes += m->start;
    at->length -= m->start;
    if (m->state == GOOD)
        at->length = (size_t)m->total - m->start;
    if (at->length > reader->options->max_record)
        dp_reader_too_long(reader, unit, at);
    else if (m->state == GOOD)
        archive->give(reader, unit, at, m->head_length);
    else if (m->state == GARBAGE)
        dp_reader_bad_record(reader, unit, at, "not the start of a record; skipped to the next one");
    else if (m->state == CUT && at_end)
        cut_off(reader, unit, at);
    else if (m->state == BROKEN || !m->total)
        dp_reader_bad_record(reader, unit, at, "its header is invalid or has no length; skipped to the next record");
    else
        dp_reader_bad_record(reader, unit, at, "its length is wrong: no record starts after it");
}

/* The `read` of a format. */
static void read_archive(const archive_format *archive, dp_reader *reader, dp_unit *unit, const char *file) {
    const char *p = unit->block.data, *end = p + unit->block.size;
    for (uint64_t number = unit->block.first_line; p < end && !dp_reader_stopped(reader, unit); number++) {
        measured m;
        size_t length = measure(archive, p, (size_t)(end - p), true, &m);
        if (!length)
            length = (size_t)(end - p);
        dp_raw_record at = {file, number, p, length};
        if (m.state != BLANK)
            read_record(archive, reader, unit, &at, &m);
        p += length;
    }
}

/* ---- heads of HTTP, whose fields WARC has too ---- */

/* Takes off what stands before the first `separator`, and that too. */
static doppel_slice take_until(doppel_slice *rest, char separator) {
    const char *end = rest->length ? memchr(rest->data, separator, rest->length) : NULL;
    doppel_slice taken = {rest->data, end ? (size_t)(end - rest->data) : rest->length};
    size_t used = taken.length + (end ? 1 : 0);
    rest->data += used;
    rest->length -= used;
    return taken;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

typedef struct http_response {
    int status;          /* e.g. 200 */
    doppel_slice fields; /* the lines of the head after the first */
    doppel_slice body;   /* as it stands */
} http_response;

/* "HTTP/1.1 200 OK": the three digits, or -1. */
static int status_of(doppel_slice line) {
    if (line.length < 5 || strncasecmp(line.data, "HTTP/", 5))
        return -1;
    const char *p = memchr(line.data, ' ', line.length), *end = line.data + line.length;
    while (p && p < end && *p == ' ')
        p++;
    if (!p || end - p < 3 || !is_digit(p[0]) || !is_digit(p[1]) || !is_digit(p[2]) || (end - p > 3 && is_digit(p[3])))
        return -1;
    return (p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0');
}

/* Takes a response apart, all borrowed; false when it has no status line. */
static bool parse_response(const char *bytes, size_t length, http_response *http) {
    doppel_slice rest = {bytes, length};
    http->status = status_of(take_until(&rest, '\n'));
    if (http->status < 0)
        return false;
    http->fields.data = rest.data;
    while (rest.length) {
        doppel_slice line = take_until(&rest, '\n');
        if (!dp_slice_trim(line).length)
            break;
    }
    http->fields.length = (size_t)(rest.data - http->fields.data);
    http->body = rest;
    return true;
}

/* The value of a field, by lines of `Name: value`, names in any case; data NULL: it is not there. The first counts. */
static doppel_slice http_field(doppel_slice fields, const char *name) {
    size_t length = strlen(name);
    while (fields.length) {
        doppel_slice line = take_until(&fields, '\n');
        if (line.length <= length || strncasecmp(line.data, name, length))
            continue;
        doppel_slice value = dp_slice_trim((doppel_slice){line.data + length, line.length - length});
        if (!value.length || *value.data != ':')
            continue;
        return dp_slice_trim((doppel_slice){value.data + 1, value.length - 1});
    }
    return (doppel_slice){0};
}

/* A value up to its first ; without white space at its ends. */
static doppel_slice media_type(doppel_slice value) {
    return value.data ? dp_slice_trim(take_until(&value, ';')) : value;
}

/* The value of the parameter `charset` of a media type, without quotes; data NULL: none. */
static doppel_slice charset_of(doppel_slice value) {
    if (value.data)
        take_until(&value, ';');
    while (value.length) {
        doppel_slice parameter = dp_slice_trim(take_until(&value, ';'));
        if (parameter.length < 8 || strncasecmp(parameter.data, "charset", 7))
            continue;
        doppel_slice after = dp_slice_trim((doppel_slice){parameter.data + 7, parameter.length - 7});
        if (!after.length || *after.data != '=')
            continue;
        after = dp_slice_trim((doppel_slice){after.data + 1, after.length - 1});
        while (after.length && (*after.data == '"' || *after.data == '\'')) {
            after.data++;
            after.length--;
        }
        while (after.length && (after.data[after.length - 1] == '"' || after.data[after.length - 1] == '\''))
            after.length--;
        if (after.length)
            return after;
    }
    return (doppel_slice){0};
}

/* ---- content becomes a document: a page, a text, or a redirect to another ---- */

/* What a record says of its content. */
typedef struct archived_content {
    doppel_slice bytes; /* with the head of HTTP, if it came with one */
    doppel_slice type;  /* where there is no such head */
    certainty http;     /* whether it has one; UNSURE: if it begins so */
} archived_content;

/* No charset has a longer name. */
#define MAX_CHARSET 60

typedef enum kind { KIND_OTHER, KIND_HTML, KIND_TEXT, KIND_UNKNOWN } kind;

static kind kind_of(doppel_slice type) {
    doppel_slice name = media_type(type);
    if (dp_slice_is(name, "text/html") || dp_slice_is(name, "application/xhtml+xml"))
        return KIND_HTML;
    if (dp_slice_is(name, "text/plain"))
        return KIND_TEXT;
    return name.length ? KIND_OTHER : KIND_UNKNOWN;
}

/* The charset as a string; kept in a spare buffer. False: no memory. */
static bool set_charset(dp_reader *reader, doppel_slice type, doppel_document *document) {
    doppel_slice name = charset_of(type);
    dp_buffer *kept = &reader->spare[0];
    if (!name.data || name.length > MAX_CHARSET || memchr(name.data, 0, name.length))
        return true;
    kept->size = 0;
    if (!dp_buffer_add(kept, name.data, name.length) || !dp_buffer_add(kept, "", 1))
        return false;
    document->charset = kept->data;
    return true;
}

/* Gives content that is text or a page. `at` has its bytes. */
static void give_content(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_slice type,
                         doppel_document *document) {
    kind what = kind_of(type);
    if (what == KIND_UNKNOWN && dp_html_matches(at->bytes, at->length))
        what = KIND_HTML;
    if (what == KIND_OTHER || what == KIND_UNKNOWN)
        return;
    if (!set_charset(reader, type, document)) {
        dp_unit_no_memory(unit);
        return;
    }
    if (what == KIND_HTML) {
        document->html = (doppel_slice){at->bytes, at->length};
    } else if (!dp_reader_text(reader, unit, at, &reader->spare[1], document)) {
        return;
    }
    dp_reader_give(reader, unit, document);
}

/* Extra fields that the archive itself does not have may stand in the head of HTTP. */
static void add_extra(dp_reader *reader, const http_response *http) {
    for (size_t i = 0; i < reader->options->extra_count; i++)
        if (!reader->extra[i].data)
            reader->extra[i] = http_field(http->fields, reader->options->extra_keys[i]);
}

/* The body of a response, decoded; false: it was reported, and left out. */
static bool decode(dp_reader *reader, dp_unit *unit, dp_raw_record *at, const http_response *http) {
    doppel_slice body;
    dp_encoded_body encoded = {http->body, http_field(http->fields, "Content-Encoding"),
                               http_field(http->fields, "Transfer-Encoding")};
    dp_decoded result = dp_body_decode(&reader->decoder, &encoded, &body);
    switch (result) {
    case DP_DECODED_NO_MEMORY: return dp_unit_no_memory(unit);
    case DP_DECODED_TOO_LONG: return dp_reader_too_long(reader, unit, at);
    case DP_DECODED_UNKNOWN:
        return dp_reader_bad_record(reader, unit, at, "its Content-Encoding or Transfer-Encoding is unknown");
    case DP_DECODED_PART:
        dp_reader_repaired(unit, at, "its encoded body is truncated or damaged; the part before that is used");
        break;
    default: break;
    }
    at->bytes = body.data;
    at->length = body.length;
    return true;
}

static void give_response(dp_reader *reader, dp_unit *unit, dp_raw_record *at, doppel_document *document) {
    http_response http;
    if (!parse_response(at->bytes, at->length, &http)) {
        dp_reader_bad_record(reader, unit, at, "its content has no HTTP status line");
        return;
    }
    add_extra(reader, &http);
    doppel_slice location = http.status / 100 == 3 ? http_field(http.fields, "Location") : (doppel_slice){0};
    if (location.length) {
        document->alias = location;
        dp_reader_give(reader, unit, document);
        return;
    }
    doppel_slice type = http_field(http.fields, "Content-Type");
    if (http.status == 200 && kind_of(type) != KIND_OTHER && decode(reader, unit, at, &http))
        give_content(reader, unit, at, type, document);
}

/* Gives the document if its content is text, a page or a redirect; content of other kinds and failures that the server
 * reports are left out. `document` has an id and a URL. */
static void give_archived(dp_reader *reader, dp_unit *unit, const archived_content *content,
                          doppel_document *document) {
    dp_raw_record at = {document->file, document->line, content->bytes.data, content->bytes.length};
    bool begins_so = at.length >= 5 && !strncasecmp(at.bytes, "HTTP/", 5);
    if (content->http == YES || (content->http == UNSURE && begins_so))
        give_response(reader, unit, &at, document);
    else
        give_content(reader, unit, &at, content->type, document);
}

/* A whole number without anything else; false: it is none, or has more than 18 digits. */
static bool parse_length(doppel_slice text, uint64_t *number) {
    *number = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        *number = *number * 10 + (uint64_t)(text.data[i] - '0');
    }
    return text.length > 0 && text.length <= 18;
}

/* ---- WARC ----
 *
 * Responses and resources become documents if they are text or pages, conversions (the texts of WET) always; revisits
 * that name another address are its aliases. The number of a record counts all records, those that are left out too. */

static const char *const warc_endings[] = {".warc", ".wet", NULL};

static certainty warc_starts(const char *p, size_t size) {
    static const char magic[] = "WARC/";
    size_t length = sizeof magic - 1, look = size < length ? size : length;
    if (look && memcmp(p, magic, look) != 0)
        return NO;
    return look == length ? YES : UNSURE;
}

static bool warc_matches(const char *head, size_t length) {
    return warc_starts(head, length) == YES;
}

/* Lines up to an empty one. A line that starts a record cannot be part of a head. */
static certainty read_warc_head(const char *p, size_t size, size_t *length, uint64_t *content) {
    size_t at = 0, limit = size < MAX_HEAD ? size : MAX_HEAD;
    for (;;) {
        const char *line = p + at, *end = at < limit ? memchr(line, '\n', limit - at) : NULL;
        if (!end)
            return limit == MAX_HEAD ? NO : UNSURE;
        if (at && warc_starts(line, (size_t)(end - line)) == YES)
            return NO;
        at = (size_t)(end + 1 - p);
        if (end == line || (end == line + 1 && *line == '\r'))
            break;
    }
    *length = at;
    doppel_slice value = http_field((doppel_slice){p, at}, "Content-Length");
    return parse_length(value, content) ? YES : NO;
}

/* Addresses stand between angle brackets in the files of some tools. */
static doppel_slice address(doppel_slice head, const char *name) {
    doppel_slice value = http_field(head, name);
    if (value.length >= 2 && value.data[0] == '<' && value.data[value.length - 1] == '>')
        return (doppel_slice){value.data + 1, value.length - 2};
    return value;
}

static void set_warc_extra(dp_reader *reader, doppel_slice head) {
    for (size_t i = 0; i < reader->options->extra_count; i++) {
        const char *key = reader->options->extra_keys[i];
        reader->extra[i] = http_field(head, strcmp(key, "date") ? key : "WARC-Date");
    }
}

static void give_revisit(dp_reader *reader, dp_unit *unit, doppel_slice head, doppel_document *document) {
    doppel_slice target = address(head, "WARC-Refers-To-Target-URI");
    if (!target.length ||
        (target.length == document->url.length && !memcmp(target.data, document->url.data, target.length)))
        return;
    document->alias = target;
    dp_reader_give(reader, unit, document);
}

static void give_warc(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, size_t head_length) {
    doppel_slice head = {at->bytes, head_length}, type = http_field(head, "WARC-Type");
    bool response = dp_slice_is(type, "response"), conversion = dp_slice_is(type, "conversion");
    bool revisit = dp_slice_is(type, "revisit");
    if (!response && !conversion && !revisit && !dp_slice_is(type, "resource"))
        return;
    doppel_document document = dp_reader_document(reader, unit, at);
    doppel_slice id = http_field(head, "WARC-Record-ID"), url = address(head, "WARC-Target-URI");
    document.id = id;
    if (!id.length && !dp_reader_make_id(reader, unit, at, &document))
        return;
    document.url = url.length ? url : (doppel_slice){0};
    set_warc_extra(reader, head);
    archived_content content = {.bytes = {at->bytes + head_length, at->length - head_length},
                                .type = http_field(head, "Content-Type")};
    if (response)
        content.http = dp_slice_is(media_type(content.type), "application/http") ? YES : UNSURE;
    if (conversion)
        content.type = (doppel_slice){"text/plain", 10};
    if (revisit)
        give_revisit(reader, unit, head, &document);
    else
        give_archived(reader, unit, &content, &document);
}

static const archive_format warc = {warc_starts, read_warc_head, give_warc};

static size_t warc_end(dp_mark *mark, const char *data, size_t size) {
    return archive_end(&warc, mark, data, size);
}

static void read_warc(dp_reader *reader, dp_unit *unit, const char *file) {
    read_archive(&warc, reader, unit, file);
}

const dp_format dp_format_warc = {.name = "WARC",
                                  .record = "record",
                                  .endings = warc_endings,
                                  .matches = warc_matches,
                                  .end = warc_end,
                                  .read = read_warc};

/* ---- ARC, which WARC came from ----
 *
 * A line with the address, an IP address, the date, a media type (version 2: five more fields) and the length, then the
 * content as it came by HTTP. The first record describes the file. */

/* A line longer than this is no head. */
#define MAX_LINE ((size_t)64 << 10)

static const char *const arc_endings[] = {".arc", NULL};

typedef struct arc_line {
    doppel_slice url, date, type;
    uint64_t content;
} arc_line;

/* Whether an address with a scheme starts at p. */
static bool has_scheme(const char *p, size_t size) {
    size_t i = 0;
    while (i < size && ((p[i] | 32) >= 'a' && (p[i] | 32) <= 'z'))
        i++;
    return i >= 2 && i < size && p[i] == ':';
}

/* Takes a line apart: the date is the first field of 12 to 17 digits that has two fields before it, so that addresses
 * may have spaces; the length is the last one. */
static bool parse_line(doppel_slice line, arc_line *parsed) {
    if (!has_scheme(line.data, line.length))
        return false;
    doppel_slice rest = line, field = {0}, ip = {0};
    bool dated = false;
    uint64_t number;
    for (int i = 0; rest.length && !dated; i++) {
        ip = field;
        field = take_until(&rest, ' ');
        dated = i >= 2 && field.length >= 12 && field.length <= 17 && parse_length(field, &number);
    }
    if (!dated || !rest.length)
        return false;
    parsed->url = dp_slice_trim((doppel_slice){line.data, (size_t)(ip.data - line.data)});
    parsed->date = field;
    parsed->type = take_until(&rest, ' ');
    while (rest.length)
        field = take_until(&rest, ' ');
    return field.data != parsed->date.data && parse_length(field, &parsed->content);
}

static certainty find_line(const char *p, size_t size, size_t *length, arc_line *parsed) {
    size_t look = size < MAX_LINE ? size : MAX_LINE;
    const char *end = look ? memchr(p, '\n', look) : NULL;
    if (!end)
        return look == MAX_LINE ? NO : UNSURE;
    *length = (size_t)(end + 1 - p);
    return parse_line(dp_slice_trim((doppel_slice){p, *length}), parsed) ? YES : NO;
}

static certainty arc_starts(const char *p, size_t size) {
    arc_line parsed;
    size_t length;
    return find_line(p, size, &length, &parsed);
}

static bool arc_matches(const char *head, size_t length) {
    return length >= 11 && !memcmp(head, "filedesc://", 11);
}

static certainty read_arc_head(const char *p, size_t size, size_t *length, uint64_t *content) {
    arc_line parsed;
    certainty answer = find_line(p, size, length, &parsed);
    if (answer == YES)
        *content = parsed.content;
    return answer;
}

static void give_arc(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, size_t head_length) {
    arc_line line;
    size_t length;
    if (arc_matches(at->bytes, at->length) || find_line(at->bytes, head_length, &length, &line) != YES)
        return;
    doppel_document document = dp_reader_document(reader, unit, at);
    if (!dp_reader_make_id(reader, unit, at, &document))
        return;
    document.url = line.url;
    for (size_t i = 0; i < reader->options->extra_count; i++)
        if (!strcmp(reader->options->extra_keys[i], "date"))
            reader->extra[i] = line.date;
    archived_content content = {
        .bytes = {at->bytes + head_length, at->length - head_length}, .type = line.type, .http = UNSURE};
    give_archived(reader, unit, &content, &document);
}

static const archive_format arc = {arc_starts, read_arc_head, give_arc};

static size_t arc_end(dp_mark *mark, const char *data, size_t size) {
    return archive_end(&arc, mark, data, size);
}

static void read_arc(dp_reader *reader, dp_unit *unit, const char *file) {
    read_archive(&arc, reader, unit, file);
}

const dp_format dp_format_arc = {.name = "ARC",
                                 .record = "record",
                                 .endings = arc_endings,
                                 .matches = arc_matches,
                                 .end = arc_end,
                                 .read = read_arc};
