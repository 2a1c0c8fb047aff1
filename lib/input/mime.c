/* mime.c - mail messages: fields of their head, the part that is their text, and what it says in UTF-8. */
#include "input/mime.h"

#include "input/json.h"
#include "input/utf8.h"

#include <errno.h>
#include <iconv.h>
#include <strings.h>

/* Whether a value begins so, in any case. */
static bool starts(doppel_slice value, const char *with) {
    size_t length = strlen(with);
    return value.length >= length && !strncasecmp(value.data, with, length);
}

/* ---- fields and parts ---- */

/* Multiparts within multiparts are looked into so deep, and so many parts of a message in all. */
#define MAX_DEPTH 16
#define MAX_PARTS 1000

/* The longest boundary that is taken; RFC 2046 allows 70 bytes. */
#define BOUNDARY 256

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static doppel_slice trim(const char *p, const char *end) {
    while (p < end && is_space(*p))
        p++;
    while (p < end && is_space(end[-1]))
        end--;
    return (doppel_slice){p, (size_t)(end - p)};
}

/* Where the next line begins. */
static const char *next_line(const char *p, const char *end) {
    const char *line = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    return line ? line + 1 : end;
}

dp_mime_part dp_mime_split(doppel_slice bytes) {
    const char *p = bytes.data, *end = p + bytes.length;
    while (p < end && *p != '\n' && !(*p == '\r' && p + 1 < end && p[1] == '\n'))
        p = next_line(p, end);
    const char *body = next_line(p, end);
    return (dp_mime_part){{bytes.data, (size_t)(p - bytes.data)}, {body, (size_t)(end - body)}};
}

doppel_slice dp_mime_field(doppel_slice head, const char *name) {
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
        for (p++; p < end && is_space(*p);)
            p++;
        p = read_word(p, end, name_end, found, sizeof found, &name_fits);
        while (p < end && is_space(*p))
            p++;
        if (p == end || *p != '=')
            continue;
        for (p++; p < end && is_space(*p);)
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
        const char *behind = p + length;
        bool closing = end - behind >= 2 && behind[0] == '-' && behind[1] == '-';
        if ((p == start || p[-1] == '\n') && (closing || behind == end || is_space(*behind)))
            return p;
        p = behind;
    }
    return NULL;
}

/* The first part that is not blank: many messages have an empty text beside their page. */
static void take_text(dp_mime_part part, doppel_slice type, dp_mime_text *text) {
    if (text->body.data || !trim(part.body.data, part.body.data + part.body.length).length)
        return;
    text->body = part.body;
    text->encoding = dp_mime_field(part.head, "Content-Transfer-Encoding");
    parameter(type, "charset", text->charset, sizeof text->charset);
}

static void walk(dp_mime_part part, int depth, dp_mime_content *content);

/* The parts between boundaries; false when there is no boundary. */
static bool walk_parts(dp_mime_part whole, doppel_slice type, int depth, dp_mime_content *content) {
    char boundary[BOUNDARY] = "--";
    if (depth == MAX_DEPTH || !parameter(type, "boundary", boundary + 2, sizeof boundary - 2))
        return false;
    const char *end = whole.body.data + whole.body.length;
    const char *p = find_boundary(whole.body.data, end, boundary);
    if (!p)
        return false;
    while (p && content->parts < MAX_PARTS) {
        const char *behind = p + strlen(boundary);
        if (end - behind >= 2 && behind[0] == '-' && behind[1] == '-')
            break;
        const char *start = next_line(behind, end), *next = find_boundary(start, end, boundary);
        const char *stop = next ? next : end;
        /* The line end ahead of a boundary belongs to it. */
        stop -= next && stop > start;
        stop -= next && stop > start && stop[-1] == '\r';
        walk(dp_mime_split((doppel_slice){start, (size_t)(stop - start)}), depth + 1, content);
        p = next;
    }
    return true;
}

static void walk(dp_mime_part part, int depth, dp_mime_content *content) {
    doppel_slice type = dp_mime_field(part.head, "Content-Type");
    content->parts++;
    if (starts(dp_mime_field(part.head, "Content-Disposition"), "attachment"))
        return;
    if (starts(type, "multipart/") && walk_parts(part, type, depth, content))
        return;
    if (starts(type, "text/html"))
        take_text(part, type, &content->html);
    else if (!type.length || starts(type, "text/plain") ||
             (!depth && (starts(type, "text") || starts(type, "multipart/"))))
        take_text(part, type, &content->plain);
}

void dp_mime_find(dp_mime_part message, dp_mime_content *content) {
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

/* All else than digits is passed over; padding ends a group, and another may follow. */
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

static int digit16(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What stands at an equals sign in quoted-printable: gives how long it is, and the byte, or -1 for none. An equals sign
 * that is neither ahead of two digits nor of a line end stands for itself. */
static size_t decode_equals(const char *p, const char *end, int *byte) {
    const char *line = p + 1;
    *byte = -1;
    while (line < end && (*line == ' ' || *line == '\t' || *line == '\r'))
        line++;
    if (line == end || *line == '\n')
        return (size_t)(line - p) + (line < end);
    *byte = '=';
    if (end - p < 3 || digit16(p[1]) < 0 || digit16(p[2]) < 0)
        return 1;
    *byte = digit16(p[1]) << 4 | digit16(p[2]);
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

bool dp_mime_transfer(doppel_slice body, doppel_slice encoding, dp_buffer *out) {
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

/* ---- charsets ---- */

/* What iconv calls a charset that mail is written in, and the names it goes by there, in small letters. Where mail says
 * one charset and means a larger one that contains it, as Latin-1 for windows-1252, it is the larger. */
static const struct {
    const char *converter, *names;
} charsets[] = {
    {"UTF-8", "utf-8 utf8 unicode-1-1-utf-8"},
    {"WINDOWS-1252",
     "us-ascii ascii ansi_x3.4-1968 iso-8859-1 iso8859-1 iso_8859-1 latin1 latin-1 cp1252 windows-1252"},
    {"WINDOWS-1250", "cp1250 windows-1250"},
    {"WINDOWS-1251", "cp1251 x-cp1251 windows-1251"},
    {"WINDOWS-1253", "cp1253 windows-1253"},
    {"WINDOWS-1254", "cp1254 iso-8859-9 latin5 windows-1254"},
    {"WINDOWS-1255", "cp1255 windows-1255"},
    {"WINDOWS-1256", "cp1256 windows-1256"},
    {"WINDOWS-1257", "cp1257 windows-1257"},
    {"WINDOWS-1258", "cp1258 windows-1258"},
    {"ISO-8859-2", "latin2 iso8859-2 iso-8859-2"},
    {"ISO-8859-15", "latin9 iso8859-15 iso-8859-15"},
    {"ISO-8859-8", "iso-8859-8-i iso-8859-8"},
    {"KOI8-R", "koi8-r"},
    {"KOI8-U", "koi8-u"},
    {"GB18030", "gb2312 gbk x-gbk cp936 eucgb2312_cn gb18030"},
    {"BIG5-HKSCS", "big5 big5-hkscs"},
    {"EUC-JP", "euc-jp"},
    {"CP932", "shift_jis shift-jis sjis x-sjis cp932 windows-31j"},
    {"ISO-2022-JP", "iso-2022-jp"},
    {"CP949", "euc-kr ks_c_5601-1987 cp949"},
    {"ISO-2022-KR", "iso-2022-kr"},
    {"WINDOWS-874", "tis-620 iso-8859-11 windows-874"},
    {"UTF-7", "utf-7 unicode-1-1-utf-7"},
    {"UTF-16", "utf-16"},
    {"UTF-16LE", "utf-16le"},
    {"UTF-16BE", "utf-16be"},
    {"MACINTOSH", "macintosh"},
    {"CP850", "cp850 ibm850"},
    {"CP437", "cp437 ibm437"},
    {"CP866", "cp866 ibm866"},
    {"ISO-8859-3", "iso-8859-3"},
    {"ISO-8859-4", "iso-8859-4"},
    {"ISO-8859-5", "iso-8859-5"},
    {"ISO-8859-6", "iso-8859-6"},
    {"ISO-8859-7", "iso-8859-7"},
    {"ISO-8859-10", "iso-8859-10"},
    {"ISO-8859-13", "iso-8859-13"},
    {"ISO-8859-14", "iso-8859-14"},
    {"ISO-8859-16", "iso-8859-16"},
};

/* Whether one of the words in a list with a space between them is this one, in any case. */
static bool is_listed(const char *words, const char *word) {
    for (size_t size, length = strlen(word); *words; words += size + (words[size] == ' ')) {
        size = strcspn(words, " ");
        if (size == length && !strncasecmp(words, word, length))
            return true;
    }
    return false;
}

const char *dp_mime_charset(const char *name) {
    for (size_t i = 0; i < sizeof charsets / sizeof *charsets; i++)
        if (is_listed(charsets[i].names, name))
            return charsets[i].converter;
    return NULL;
}

/* What stands for bytes that cannot be read. */
#define REPLACEMENT "\xEF\xBF\xBD"

/* Goes over what iconv stopped at; false when there is no memory. */
static bool step_over(char **in, size_t *left, int reason, dp_buffer *out) {
    if (reason == E2BIG)
        return dp_reserve(&out->data, &out->capacity, out->size + *left + 64, 1);
    *in += 1;
    *left = reason == EINVAL ? 0 : *left - 1; /* a character that breaks off at the end */
    return dp_buffer_add(out, REPLACEMENT, 3);
}

static dp_mime_result convert(doppel_slice text, const char *charset, dp_buffer *out) {
    iconv_t converter = iconv_open("UTF-8", charset);
    char *in = (char *)(uintptr_t)text.data;
    size_t left = text.length;
    dp_mime_result result = DP_MIME_CLEAN;
    if (converter == (iconv_t)-1)
        return errno == ENOMEM ? DP_MIME_NO_MEMORY : DP_MIME_UNKNOWN;
    if (!dp_reserve(&out->data, &out->capacity, out->size + left + left / 2 + 64, 1))
        result = DP_MIME_NO_MEMORY;
    for (bool done = result == DP_MIME_NO_MEMORY; !done;) {
        char *to = out->data + out->size;
        size_t room = out->capacity - out->size;
        bool last = !left; /* what the converter still holds */
        size_t failed = iconv(converter, last ? NULL : &in, last ? NULL : &left, &to, &room);
        int reason = failed == (size_t)-1 ? errno : 0;
        out->size = (size_t)(to - out->data);
        done = last && reason != E2BIG;
        if (reason && reason != E2BIG)
            result = DP_MIME_LOST;
        if (reason && !done && !step_over(&in, &left, reason, out)) {
            result = DP_MIME_NO_MEMORY;
            done = true;
        }
    }
    iconv_close(converter);
    return result;
}

dp_mime_result dp_mime_utf8(doppel_slice text, const char *charset, dp_buffer *out) {
    const char *known = *charset ? dp_mime_charset(charset) : "WINDOWS-1252";
    bool utf8 = known && !strcmp(known, "UTF-8"), ascii = known && !strcmp(known, "WINDOWS-1252");
    if ((utf8 || ascii || !known) && dp_json_is_utf8(text.data, text.length))
        return dp_buffer_add(out, text.data, text.length) ? known ? DP_MIME_CLEAN : DP_MIME_UNKNOWN : DP_MIME_NO_MEMORY;
    if (utf8)
        return dp_utf8_repair(text.data, text.length, out) ? DP_MIME_LOST : DP_MIME_NO_MEMORY;
    dp_mime_result result = convert(text, known ? known : "WINDOWS-1252", out);
    if (result != DP_MIME_UNKNOWN)
        return known || result == DP_MIME_NO_MEMORY ? result : DP_MIME_UNKNOWN;
    /* iconv of this system does not have it. */
    return dp_utf8_repair(text.data, text.length, out) ? DP_MIME_UNKNOWN : DP_MIME_NO_MEMORY;
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
    dp_buffer bytes;  /* of the encoded words at hand, not converted yet */
    char charset[64]; /* theirs */
    bool after_word;  /* an encoded word was the last thing */
} words;

/* Converts the encoded words at hand. */
static bool flush(words *w) {
    doppel_slice bytes = {w->bytes.data, w->bytes.size};
    w->bytes.size = 0;
    return !bytes.length || dp_mime_utf8(bytes, w->charset, w->out) != DP_MIME_NO_MEMORY;
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
    while (stop < end && !is_space(*stop) && !(*stop == '=' && end - stop >= 2 && stop[1] == '?'))
        stop++;
    if (!flush(w) || (space && !add_space(w)))
        return NULL;
    w->after_word = false;
    doppel_slice text = {p, (size_t)(stop - p)};
    return dp_mime_utf8(text, "", w->out) != DP_MIME_NO_MEMORY ? stop : NULL;
}

bool dp_mime_words(doppel_slice value, dp_buffer *out) {
    words w = {.out = out, .start = out->size};
    const char *p = value.data, *end = p + value.length;
    while (p && p < end) {
        encoded word;
        bool space = false;
        for (; p < end && is_space(*p); p++)
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
