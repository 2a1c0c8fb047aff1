/* charset.c - which charset a page is written in: what it or its carrier says, else what its bytes look like. */
#include "text/charset.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <strings.h>
#include <uchardet.h>

/* A page says its charset in its first 1024 bytes if it keeps to the standard; some do not. */
#define DECLARED_WITHIN 4096
/* What the guess is made from: enough for its statistics to settle. */
#define GUESSED_FROM 65536

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* One that is there. */
static const dp_charset *named(const char *name) {
    return dp_charset_by_label(name, strlen(name));
}

/* ---- what the page says ---- */

/* Where `word` stands, in any case; NULL: nowhere. */
static const char *find(const char *p, const char *end, const char *word) {
    size_t length = strlen(word);
    for (; (size_t)(end - p) >= length; p++)
        if (!strncasecmp(p, word, length))
            return p;
    return NULL;
}

/* The label behind the first `word` in a tag, `=` and an optional quote; charset="..." and content="...; charset=..."
 * alike. */
static const dp_charset *label_in(const char *p, const char *end, const char *word) {
    while ((p = find(p, end, word))) {
        for (p += strlen(word); p < end && is_space(*p);)
            p++;
        if (p == end || *p != '=')
            continue;
        for (p++; p < end && (is_space(*p) || *p == '"' || *p == '\'');)
            p++;
        const char *label = p;
        while (p < end && !is_space(*p) && !strchr("\"';>/?", *p))
            p++;
        return dp_charset_by_label(label, (size_t)(p - label));
    }
    return NULL;
}

/* A declaration that can be read as ASCII is not UTF-16, whatever it says. */
static const dp_charset *believed(const dp_charset *said) {
    return said && said->unit > 1 ? named("utf-8") : said;
}

/* A tag ends at its `>`, wherever that stands: no charset has one. */
static const char *tag_end(const char *p, const char *end) {
    const char *close = memchr(p, '>', (size_t)(end - p));
    return close ? close : end;
}

const dp_charset *dp_charset_declared(const char *bytes, size_t length) {
    const char *p = bytes, *end = bytes + (length < DECLARED_WITHIN ? length : DECLARED_WITHIN);
    const dp_charset *said = NULL;
    if (end - p > 5 && !memcmp(p, "<?xml", 5))
        said = label_in(p, tag_end(p, end), "encoding");
    while (!said && (p = memchr(p, '<', (size_t)(end - p)))) {
        size_t left = (size_t)(end - p);
        if (left > 4 && !memcmp(p, "<!--", 4)) {
            const char *close = memmem(p + 2, left - 2, "-->", 3);
            if (!close)
                break;
            p = close;
        } else if (left > 6 && !strncasecmp(p, "<meta", 5) && (is_space(p[5]) || p[5] == '/')) {
            said = label_in(p, tag_end(p, end), "charset");
        }
        p++;
    }
    return believed(said);
}

/* ---- all together ---- */

static const dp_charset *by_mark(const char *bytes, size_t length, size_t *mark) {
    static const struct {
        const char *mark;
        size_t length;
        const char *charset;
    } marks[] = {{"\xEF\xBB\xBF", 3, "utf-8"}, {"\xFF\xFE", 2, "utf-16le"}, {"\xFE\xFF", 2, "utf-16be"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (length >= marks[i].length && !memcmp(bytes, marks[i].mark, marks[i].length)) {
            *mark = marks[i].length;
            return named(marks[i].charset);
        }
    return NULL;
}

static bool valid_utf8(const char *bytes, size_t length) {
    const uint8_t *p = (const uint8_t *)bytes, *end = p + length;
    while (p < end) {
        bool whole;
        while (end - p >= 8 && !(dp_load64(p) & 0x8080808080808080u))
            p += 8;
        if (p < end) {
            p += dp_utf8_extent(p, (size_t)(end - p), &whole);
            if (!whole)
                return false;
        }
    }
    return true;
}

/* NULL: no memory. */
static const dp_charset *guess(const char *bytes, size_t length) {
    uchardet_t detector = uchardet_new();
    const dp_charset *guessed = NULL;
    if (!detector)
        return NULL;
    if (!uchardet_handle_data(detector, bytes, length < GUESSED_FROM ? length : GUESSED_FROM)) {
        uchardet_data_end(detector);
        const char *name = uchardet_get_charset(detector);
        guessed = believed(dp_charset_by_label(name, strlen(name)));
        if (!guessed || guessed == named("utf-8"))
            guessed = named("windows-1252");
    }
    uchardet_delete(detector);
    return guessed;
}

const dp_charset *dp_charset_of(const char *bytes, size_t length, const char *carrier, size_t *mark) {
    *mark = 0;
    const dp_charset *charset = by_mark(bytes, length, mark);
    if (!charset && carrier)
        charset = dp_charset_by_label(carrier, strlen(carrier));
    if (!charset)
        charset = dp_charset_declared(bytes, length);
    if (!charset && valid_utf8(bytes, length))
        charset = named("utf-8");
    return charset ? charset : guess(bytes, length);
}
