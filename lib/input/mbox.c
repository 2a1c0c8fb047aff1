/* mbox.c - the format mbox: a mail folder, each message a document.
 *
 * A message begins with a line `From sender date`, at the start of the file or after an empty line. Other lines that
 * begin so are to be escaped by `>`, but often are not: only with a time of day in it does a line count. The id is the
 * Message-ID without its angle brackets, the title the subject. The text is the first part that is plain text, or else
 * the first that is a page; more fields are looked for in the head.
 *
 * Messages are read as MIME says, with best effort: what is invalid is taken literally, and nothing is refused. Nothing
 * is copied before the transfer encoding is decoded. */
#include "input/reader.h"

#include <strings.h>

/* A line that begins a message has at most this many bytes. */
#define FROM_LINE 1000

/* Bytes searched again with the next ones: an empty line and the word. */
#define KEPT_IN_VIEW 8

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

/* Finds the next line that begins a message after `p`, and gives where it stands. NULL: there is none; then *p is
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
            *p = at - start > KEPT_IN_VIEW ? at - KEPT_IN_VIEW : start;
            return NULL;
        }
    }
    *p = end - start > KEPT_IN_VIEW ? end - KEPT_IN_VIEW : start;
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

static bool matches(const char *head, size_t length) {
    const char *end = head + length;
    if (length < 5 || memcmp(head, "From ", 5) != 0)
        return false;
    const char *line = memchr(head, '\n', length);
    return line && has_time(head, line) && is_field(line + 1, end);
}

/* ---- fields and parts of a message ---- */

/* Whether a value begins so, in any case. */
static bool starts(doppel_slice value, const char *with) {
    size_t length = strlen(with);
    return value.length >= length && !strncasecmp(value.data, with, length);
}

typedef struct mail_part {
    doppel_slice head, body;
} mail_part;

/* A part that is text; body.data NULL: there is none. */
typedef struct mail_text {
    doppel_slice body, encoding;
    char charset[64]; /* empty: none is given */
} mail_text;

/* The first plain text and the first page of a message that are not attachments. */
typedef struct mail_content {
    mail_text plain, html;
    size_t parts; /* looked at */
} mail_content;

/* How deep multiparts are nested that are looked into, and how many parts of a message in all. */
#define MAX_DEPTH 16
#define MAX_PARTS 1000

/* The longest boundary that is taken; RFC 2046 allows 70 bytes. */
#define BOUNDARY 256

static doppel_slice trim(const char *p, const char *end) {
    return dp_slice_trim((doppel_slice){p, (size_t)(end - p)});
}

/* Where the next line begins. */
static const char *next_line(const char *p, const char *end) {
    const char *line = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    return line ? line + 1 : end;
}

/* Cuts at the first empty line. */
static mail_part split(doppel_slice bytes) {
    const char *p = bytes.data, *end = p + bytes.length;
    while (p < end && *p != '\n' && !(*p == '\r' && p + 1 < end && p[1] == '\n'))
        p = next_line(p, end);
    const char *body = next_line(p, end);
    return (mail_part){{bytes.data, (size_t)(p - bytes.data)}, {body, (size_t)(end - body)}};
}

/* The first field of this name, in any case: as it stands, perhaps over several lines, without white space at its ends.
 * data NULL: there is none. */
static doppel_slice find_field(doppel_slice head, const char *name) {
    size_t length = strlen(name);
    for (const char *p = head.data, *end = p + head.length, *next; p < end; p = next) {
        /* Lines that begin with white space go on with the one before. */
        for (next = next_line(p, end); next < end && (*next == ' ' || *next == '\t');)
            next = next_line(next, end);
        if ((size_t)(next - p) <= length || strncasecmp(p, name, length) != 0)
            continue;
        const char *colon = p + length;
        while (colon < next && (*colon == ' ' || *colon == '\t'))
            colon++;
        if (colon < next && *colon == ':')
            return trim(colon + 1, next);
    }
    return (doppel_slice){0};
}

/* Reads a word or a quoted string at p into `to`; gives where it ends. *fits is cleared when there is too little room.
 */
static const char *read_word(const char *p, const char *end, doppel_slice stop, char *to, size_t room, bool *fits) {
    bool quoted = p < end && *p == '"';
    size_t length = 0;
    for (p += quoted; p < end; p++) {
        if (quoted ? *p == '"' : memchr(stop.data, *p, stop.length) != NULL)
            break;
        if (quoted && *p == '\\' && p + 1 < end)
            p++;
        if (length + 1 < room)
            to[length++] = *p;
        else
            *fits = false;
    }
    to[length] = 0;
    return p + (quoted && p < end);
}

/* A parameter of a field's value, as in `text/plain; charset="utf-8"`; false when there is none that fits. */
static bool parameter(doppel_slice value, const char *name, char *to, size_t room) {
    static const doppel_slice name_end = {"=; \t\r\n", 6}, word_end = {"; \t\r\n", 5};
    const char *p = value.data ? value.data : "", *end = p + value.length;
    char found[40];
    *to = 0;
    while (p < end && (p = memchr(p, ';', (size_t)(end - p)))) {
        bool name_fits = true, fits = true;
        for (p++; p < end && dp_is_space(*p);)
            p++;
        p = read_word(p, end, name_end, found, sizeof found, &name_fits);
        while (p < end && dp_is_space(*p))
            p++;
        if (p == end || *p != '=')
            continue;
        for (p++; p < end && dp_is_space(*p);)
            p++;
        p = read_word(p, end, word_end, to, room, &fits);
        if (name_fits && fits && !strcasecmp(found, name) && *to)
            return true;
    }
    *to = 0;
    return false;
}

/* The next line that is the boundary, which begins with two dashes; NULL: there is none. */
static const char *find_boundary(const char *p, const char *end, const char *boundary) {
    size_t length = strlen(boundary);
    const char *start = p;
    while (p < end && (p = memmem(p, (size_t)(end - p), boundary, length))) {
        const char *after = p + length;
        bool closing = end - after >= 2 && after[0] == '-' && after[1] == '-';
        if ((p == start || p[-1] == '\n') && (closing || after == end || dp_is_space(*after)))
            return p;
        p = after;
    }
    return NULL;
}

/* The first part that is not blank: many messages have an empty text in addition to their page. */
static void take_text(mail_part part, doppel_slice type, mail_text *text) {
    if (text->body.data || !trim(part.body.data, part.body.data + part.body.length).length)
        return;
    text->body = part.body;
    text->encoding = find_field(part.head, "Content-Transfer-Encoding");
    parameter(type, "charset", text->charset, sizeof text->charset);
}

static void walk(mail_part part, int depth, mail_content *content);

/* The parts between boundaries; false when there is no boundary. */
static bool walk_parts(mail_part whole, doppel_slice type, int depth, mail_content *content) {
    char boundary[BOUNDARY] = "--";
    if (depth == MAX_DEPTH || !parameter(type, "boundary", boundary + 2, sizeof boundary - 2))
        return false;
    const char *end = whole.body.data + whole.body.length;
    const char *p = find_boundary(whole.body.data, end, boundary);
    if (!p)
        return false;
    while (p && content->parts < MAX_PARTS) {
        const char *after = p + strlen(boundary);
        if (end - after >= 2 && after[0] == '-' && after[1] == '-')
            break;
        const char *start = next_line(after, end), *next = find_boundary(start, end, boundary);
        const char *stop = next ? next : end;
        /* The line end before a boundary belongs to it. */
        stop -= next && stop > start;
        stop -= next && stop > start && stop[-1] == '\r';
        walk(split((doppel_slice){start, (size_t)(stop - start)}), depth + 1, content);
        p = next;
    }
    return true;
}

static void walk(mail_part part, int depth, mail_content *content) {
    doppel_slice type = find_field(part.head, "Content-Type");
    content->parts++;
    if (starts(find_field(part.head, "Content-Disposition"), "attachment"))
        return;
    if (starts(type, "multipart/") && walk_parts(part, type, depth, content))
        return;
    if (starts(type, "text/html"))
        take_text(part, type, &content->html);
    else if (!type.length || starts(type, "text/plain") ||
             (!depth && (starts(type, "text") || starts(type, "multipart/"))))
        take_text(part, type, &content->plain);
}

static void find_texts(mail_part message, mail_content *content) {
    memset(content, 0, sizeof *content);
    walk(message, 0, content);
}

/* ---- transfer encodings ---- */

/* The value of a base64 digit; -1: it is none. */
static int digit64(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Everything but digits is passed over; padding ends a group, and another may follow. */
static bool decode_base64(doppel_slice body, dp_buffer *out) {
    uint32_t bits = 0;
    int count = 0;
    if (!dp_reserve(&out->data, &out->capacity, out->size + body.length, 1))
        return false;
    for (size_t i = 0; i < body.length; i++) {
        int digit = digit64(body.data[i]);
        if (body.data[i] == '=')
            count = 0;
        if (digit < 0)
            continue;
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out->data[out->size++] = (char)(bits >> count);
        }
    }
    return true;
}

/* What stands at an equals sign in quoted-printable: gives how long it is, and the byte, or -1 for none. An equals sign
 * that is neither before two digits nor of a line end stands for itself. */
static size_t decode_equals(const char *p, const char *end, int *byte) {
    const char *line = p + 1;
    *byte = -1;
    while (line < end && (*line == ' ' || *line == '\t' || *line == '\r'))
        line++;
    if (line == end || *line == '\n')
        return (size_t)(line - p) + (line < end);
    *byte = '=';
    if (end - p < 3 || dp_hex_digit(p[1]) < 0 || dp_hex_digit(p[2]) < 0)
        return 1;
    *byte = dp_hex_digit(p[1]) << 4 | dp_hex_digit(p[2]);
    return 3;
}

/* `underscore` is what an underscore stands for: itself, or in encoded words a space. */
static bool decode_quoted(doppel_slice body, char underscore, dp_buffer *out) {
    if (!dp_reserve(&out->data, &out->capacity, out->size + body.length, 1))
        return false;
    for (const char *p = body.data, *end = p + body.length; p < end;) {
        int byte = *p == '_' ? underscore : (unsigned char)*p;
        p += *p == '=' ? decode_equals(p, end, &byte) : 1;
        if (byte >= 0)
            out->data[out->size++] = (char)byte;
    }
    return true;
}

/* Appends a body without its transfer encoding; false when there is no memory. */
static bool decode_transfer(doppel_slice body, doppel_slice encoding, dp_buffer *out) {
    if (starts(encoding, "base64"))
        return decode_base64(body, out);
    if (starts(encoding, "quoted-printable"))
        return decode_quoted(body, '_', out);
    return dp_buffer_add(out, body.data, body.length);
}

/* Appends what quoted-printable or base64 stand for, as encoded words have them ('Q' or 'B'); false when there is no
 * memory. */
static bool decode_word(doppel_slice text, char encoding, dp_buffer *out) {
    return (encoding | 0x20) == 'b' ? decode_base64(text, out) : decode_quoted(text, ' ', out);
}

/* ---- the text of a field: encoded words (RFC 2047), white space ----
 *
 * Words in a row with one charset are converted together, as some mailers cut characters in two. */

/* The text of an encoded word is not longer: RFC 5322 allows 998 bytes a line. Looking no farther keeps a field of many
 * words without an end from costing more than it should. */
#define LONGEST_WORD ((size_t)1000)

/* The field that is being read. */
typedef struct words {
    dp_buffer *out;
    size_t start;     /* where the field begins in `out` */
    dp_buffer bytes;  /* of the current encoded words, not converted yet */
    char charset[64]; /* theirs */
    bool after_word;  /* an encoded word was the last thing */
} words;

/* Converts the current encoded words. */
static bool flush(words *w) {
    doppel_slice bytes = {w->bytes.data, w->bytes.size};
    w->bytes.size = 0;
    return !bytes.length || dp_text_convert(bytes, w->charset, w->out) != DP_TEXT_NO_MEMORY;
}

static bool add_space(words *w) {
    return w->out->size == w->start || dp_buffer_add(w->out, " ", 1);
}

/* The parts of an encoded word: =?charset*language?encoding?text?= */
typedef struct encoded {
    char charset[64];
    char encoding;
    doppel_slice text;
    const char *end;
} encoded;

static bool parse_word(const char *p, const char *end, encoded *word) {
    const char *charset = p + 2;
    if (end - p < 8 || p[0] != '=' || p[1] != '?')
        return false;
    const char *mark = memchr(charset, '?', (size_t)(end - charset));
    if (!mark || end - mark < 5 || mark[2] != '?' || !memchr("BbQq", mark[1], 4))
        return false;
    const char *language = memchr(charset, '*', (size_t)(mark - charset));
    size_t length = (size_t)((language ? language : mark) - charset);
    if (!length || length >= sizeof word->charset)
        return false;
    const char *text = mark + 3;
    size_t left = (size_t)(end - text);
    const char *stop = memmem(text, left < LONGEST_WORD ? left : LONGEST_WORD, "?=", 2);
    if (!stop || memchr(text, '\n', (size_t)(stop - text)))
        return false;
    memcpy(word->charset, charset, length);
    word->charset[length] = 0;
    word->encoding = mark[1];
    word->text = (doppel_slice){text, (size_t)(stop - text)};
    word->end = stop + 2;
    return true;
}

/* White space between encoded words is not part of the text. */
static bool take_word(words *w, const encoded *word, bool space) {
    if (space && !w->after_word && !add_space(w))
        return false;
    if (w->bytes.size && strcasecmp(w->charset, word->charset) != 0 && !flush(w))
        return false;
    memcpy(w->charset, word->charset, sizeof w->charset);
    w->after_word = true;
    return decode_word(word->text, word->encoding, &w->bytes);
}

/* Text up to the next white space, or what may be an encoded word; gives where it ends, NULL when there is no memory.
 */
static const char *take_plain(words *w, const char *p, const char *end, bool space) {
    const char *stop = p + 1;
    while (stop < end && !dp_is_space(*stop) && !(*stop == '=' && end - stop >= 2 && stop[1] == '?'))
        stop++;
    if (!flush(w) || (space && !add_space(w)))
        return NULL;
    w->after_word = false;
    doppel_slice text = {p, (size_t)(stop - p)};
    return dp_text_convert(text, "", w->out) != DP_TEXT_NO_MEMORY ? stop : NULL;
}

/* Appends the text of a field as UTF-8: encoded words decoded, a space where lines or more white space were. False when
 * there is no memory. */
static bool decode_field(doppel_slice value, dp_buffer *out) {
    words w = {.out = out, .start = out->size};
    const char *p = value.data, *end = p + value.length;
    while (p && p < end) {
        encoded word;
        bool space = false;
        for (; p < end && dp_is_space(*p); p++)
            space = true;
        if (p == end)
            break;
        if (parse_word(p, end, &word))
            p = take_word(&w, &word, space) ? word.end : NULL;
        else
            p = take_plain(&w, p, end, space);
    }
    bool done = (p || !value.length) && flush(&w);
    dp_buffer_free(&w.bytes);
    return done;
}

/* ---- messages ---- */

/* Takes one > off each line that has some before `From `, as they were put there; false when there is no memory. */
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
static bool set_text(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const mail_content *content,
                     doppel_document *document) {
    dp_buffer *decoded = &reader->spare[DECODED], *text = &reader->spare[TEXT];
    const mail_text *part = content->plain.body.data ? &content->plain : &content->html;
    decoded->size = 0;
    if (!part->body.data)
        return true;
    if (!decode_transfer(part->body, part->encoding, decoded))
        return dp_unit_no_memory(unit);
    doppel_slice bytes = {decoded->data ? decoded->data : "", decoded->size};
    if (part == &content->html) {
        document->html = bytes;
        document->charset = *part->charset ? part->charset : NULL;
        return true;
    }
    return dp_reader_charset_text(unit, &(dp_raw_record){at->file, at->line, bytes.data, bytes.length}, part->charset,
                                  text, document);
}

/* ---- fields ---- */

/* The id, the title and more fields, one after the other in reader->spare[FIELDS]; SIZE_MAX: there is none. */
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
    if (!decode_field(value, fields))
        return false;
    *length = fields->size - before;
    return true;
}

static doppel_slice message_id(doppel_slice head) {
    doppel_slice id = find_field(head, "Message-ID");
    if (id.length >= 2 && id.data[0] == '<' && id.data[id.length - 1] == '>')
        return (doppel_slice){id.data + 1, id.length - 2};
    return id;
}

static bool add_fields(dp_reader *reader, doppel_slice head, lengths *found) {
    const doppel_input_options *options = reader->options;
    reader->spare[FIELDS].size = 0;
    if (!add_field(reader, message_id(head), &found->id) ||
        !add_field(reader, find_field(head, "Subject"), &found->title))
        return false;
    for (size_t i = 0; i < options->extra_count; i++)
        if (!add_field(reader, find_field(head, options->extra_keys[i]), &found->extra[i]))
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
    document->id = id;
    document->title = title;
    for (size_t i = 0; i < reader->options->extra_count; i++)
        reader->extra[i] = next_field(&p, found.extra[i]);
    return id.length || dp_reader_make_id(reader, unit, at, document);
}

/* ---- reading ---- */

/* Goes past the line that begins the message; false when it is none. */
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
    mail_content content;
    if (at->length > reader->options->max_record)
        return dp_reader_too_long(reader, unit, at);
    if (!skip_from(&message))
        return dp_reader_bad_record(reader, unit, at, "not a message: it begins with neither a From line nor a field");
    if (!unescape(reader, &message))
        return dp_unit_no_memory(unit);
    mail_part whole = split(message);
    doppel_document document = dp_reader_document(reader, unit, at);
    find_texts(whole, &content);
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
                                  .matches = matches,
                                  .end = message_end,
                                  .by_lines = true,
                                  .read = read_messages};
