/* mbox.c - the format mbox: a mail folder, each message a document.
 *
 * A message begins with a line `From sender date`, at the start of the file or behind an empty line. Other lines that
 * begin so are to be escaped by `>`, but often are not: only with a time of day in it does a line count. The id is the
 * Message-ID without its angle brackets, the title the subject. The text is the first part that is plain text, or else
 * the first that is a page; more fields are looked for in the head. */
#include "input/mime.h"
#include "input/reader.h"

/* A line that begins a message has at most so many bytes. */
#define FROM_LINE 1000

/* What must stay in view behind what was seen: an empty line and the word. */
#define BEHIND 8

/* What reader->spare is used for. */
enum { MESSAGE, DECODED, TEXT, FIELDS };

/* ---- where messages begin ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Two digits, a colon and two digits. */
static bool has_time(const char *p, const char *end) {
    for (; end - p >= 5; p++)
        if (p[2] == ':' && is_digit(p[0]) && is_digit(p[1]) && is_digit(p[3]) && is_digit(p[4]))
            return true;
    return false;
}

/* Whether `newline` is the end of an empty line, in bytes that begin at `start`. */
static bool ends_empty_line(const char *start, const char *newline) {
    if (newline > start && newline[-1] == '\r')
        newline--;
    return newline > start && newline[-1] == '\n';
}

/* Finds the next line that begins a message behind `p`, and gives where it stands. NULL: there is none; then *p is
 * where the next look starts. */
static const char *find_message(const char **p, const char *end) {
    const char *start = *p;
    for (const char *at = start; (at = memmem(at, (size_t)(end - at), "\nFrom ", 6)); at++) {
        size_t left = (size_t)(end - at - 1);
        const char *stop = memchr(at + 1, '\n', left < FROM_LINE ? left : FROM_LINE);
        if (!ends_empty_line(start, at))
            continue;
        if (stop && has_time(at + 1, stop))
            return at + 1;
        if (!stop && left < FROM_LINE) { /* the line has more to come */
            *p = at - start > BEHIND ? at - BEHIND : start;
            return NULL;
        }
    }
    *p = end - start > BEHIND ? end - BEHIND : start;
    return NULL;
}

static size_t message_end(dp_mark *mark, const char *data, size_t size) {
    const char *p = data + mark->seen, *found = find_message(&p, data + size);
    mark->seen = (size_t)(p - data);
    return found ? (size_t)(found - data) : 0;
}

/* A field of a head: a name of printable characters, and a colon. */
static bool is_field(const char *p, const char *end) {
    const char *start = p;
    for (; p < end && *p != ':'; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7F)
            return false;
    return p > start && p < end && *p == ':';
}

static bool tells(const char *head, size_t length) {
    const char *end = head + length;
    if (length < 5 || memcmp(head, "From ", 5) != 0)
        return false;
    const char *line = memchr(head, '\n', length);
    return line && has_time(head, line) && is_field(line + 1, end);
}

/* ---- messages ---- */

/* Takes one > off each line that has some ahead of `From `, as they were put there; false when there is no memory. */
static bool unescape(dp_reader *reader, doppel_slice *message) {
    const char *p = message->data, *end = p + message->length;
    dp_buffer *out = &reader->spare[MESSAGE];
    if (!memmem(p, message->length, ">From ", 6))
        return true;
    out->size = 0;
    while (p < end) {
        const char *line = p, *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop + 1 : end;
        while (p < stop && *p == '>')
            p++;
        if (p > line && stop - p >= 5 && !memcmp(p, "From ", 5))
            line++;
        if (!dp_buffer_add(out, line, (size_t)(stop - line)))
            return false;
        p = stop;
    }
    *message = (doppel_slice){out->data, out->size};
    return true;
}

/* Sets the text, or the page, of a document; false when there is no memory. */
static bool set_text(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const dp_mime_content *content,
                     doppel_document *document) {
    dp_buffer *decoded = &reader->spare[DECODED], *text = &reader->spare[TEXT];
    const dp_mime_text *part = content->plain.body.data ? &content->plain : &content->html;
    decoded->size = 0;
    if (!part->body.data)
        return true;
    if (!dp_mime_transfer(part->body, part->encoding, decoded))
        return dp_unit_no_memory(unit);
    doppel_slice bytes = {decoded->data ? decoded->data : "", decoded->size};
    if (part == &content->html) {
        document->html = bytes.data;
        document->html_length = bytes.length;
        document->charset = *part->charset ? part->charset : NULL;
        return true;
    }
    return dp_reader_charset_text(unit, &(dp_raw_record){at->file, at->line, bytes.data, bytes.length}, part->charset,
                                  text, document);
}

/* ---- fields ---- */

/* The id, the title and more fields, one behind the other in reader->spare[FIELDS]; SIZE_MAX: there is none. */
typedef struct lengths {
    size_t id, title, extra[DP_EXTRA];
} lengths;

/* Adds a field; false when there is no memory. */
static bool add_field(dp_reader *reader, doppel_slice value, size_t *length) {
    dp_buffer *fields = &reader->spare[FIELDS];
    size_t before = fields->size;
    *length = SIZE_MAX;
    if (!value.data)
        return true;
    if (!dp_mime_words(value, fields))
        return false;
    *length = fields->size - before;
    return true;
}

static doppel_slice message_id(doppel_slice head) {
    doppel_slice id = dp_mime_field(head, "Message-ID");
    if (id.length >= 2 && id.data[0] == '<' && id.data[id.length - 1] == '>')
        return (doppel_slice){id.data + 1, id.length - 2};
    return id;
}

static bool add_fields(dp_reader *reader, doppel_slice head, lengths *found) {
    const doppel_input_options *options = reader->options;
    reader->spare[FIELDS].size = 0;
    if (!add_field(reader, message_id(head), &found->id) ||
        !add_field(reader, dp_mime_field(head, "Subject"), &found->title))
        return false;
    for (size_t i = 0; i < options->extra_count; i++)
        if (!add_field(reader, dp_mime_field(head, options->extra_keys[i]), &found->extra[i]))
            return false;
    return true;
}

/* The next field, once all are there. */
static doppel_slice next_field(const char **p, size_t length) {
    doppel_slice field = {length == SIZE_MAX ? NULL : *p, length == SIZE_MAX ? 0 : length};
    *p += field.length;
    return field;
}

/* Sets id, title and more fields of a document; false when there is no memory. */
static bool set_fields(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_slice head,
                       doppel_document *document) {
    lengths found;
    if (!add_fields(reader, head, &found))
        return dp_unit_no_memory(unit);
    const char *p = reader->spare[FIELDS].data ? reader->spare[FIELDS].data : "";
    doppel_slice id = next_field(&p, found.id), title = next_field(&p, found.title);
    document->id = id.data;
    document->id_length = id.length;
    document->title = title.data;
    document->title_length = title.length;
    for (size_t i = 0; i < reader->options->extra_count; i++)
        reader->extra[i] = next_field(&p, found.extra[i]);
    return id.length || dp_reader_make_id(reader, unit, at, document);
}

/* ---- reading ---- */

/* Goes behind the line that begins the message; false when it is none. */
static bool skip_from(doppel_slice *message) {
    const char *p = message->data, *end = p + message->length;
    if (message->length < 5 || memcmp(p, "From ", 5) != 0)
        return is_field(p, end);
    const char *line = memchr(p, '\n', message->length);
    p = line ? line + 1 : end;
    *message = (doppel_slice){p, (size_t)(end - p)};
    return true;
}

static bool read_message(dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    doppel_slice message = {at->bytes, at->length};
    dp_mime_content content;
    if (at->length > reader->options->max_record)
        return dp_reader_too_long(reader, unit, at);
    if (!skip_from(&message))
        return dp_reader_bad_record(reader, unit, at, "not a message: it begins with neither a From line nor a field");
    if (!unescape(reader, &message))
        return dp_unit_no_memory(unit);
    dp_mime_part whole = dp_mime_split(message);
    doppel_document document = dp_reader_document(reader, at);
    dp_mime_find(whole, &content);
    if (!set_text(reader, unit, at, &content, &document) || !set_fields(reader, unit, at, whole.head, &document))
        return false;
    dp_reader_give(reader, unit, &document);
    return true;
}

/* Passes over empty lines; gives where others begin. */
static const char *skip_empty(const char *p, const char *end, uint64_t *line) {
    for (; p < end && (*p == '\n' || *p == '\r'); p++)
        *line += *p == '\n';
    return p;
}

static void read_messages(dp_reader *reader, dp_unit *unit, const char *file) {
    const char *p = unit->block.data, *end = p + unit->block.size;
    uint64_t line = unit->block.first_line;
    p = skip_empty(p, end, &line);
    if (unit->block.first && line == 1 && end - p >= 3 && !memcmp(p, "\xEF\xBB\xBF", 3))
        p += 3;
    while (p < end && !dp_reader_stopped(reader, unit)) {
        size_t length = message_end(&(dp_mark){0}, p, (size_t)(end - p));
        dp_raw_record at = {file, line, p, length ? length : (size_t)(end - p)};
        read_message(reader, unit, &at);
        for (const char *stop = p + at.length; p < stop; p++)
            line += *p == '\n';
        p = skip_empty(p, end, &line);
    }
}

static const char *const endings[] = {".mbox", ".mbx", NULL};

const dp_format dp_format_mbox = {.name = "mbox",
                                  .record = "message",
                                  .endings = endings,
                                  .tells = tells,
                                  .end = message_end,
                                  .by_lines = true,
                                  .read = read_messages};
