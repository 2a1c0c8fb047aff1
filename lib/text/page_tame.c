/* page_tame.c - cuts tags that have more attributes than any page needs.
 *
 * The parser compares each attribute of a tag with all before it, so that a tag of a million of them would take hours.
 * This goes over a page as the parser does (comments, scripts and styles are no tags; a value in quotes may hold
 * anything) in one pass, and leaves out what follows a tag's first ATTRIBUTES. */
#include "text/page.h"

#include <strings.h>

/* Far beyond what is written by hand or made by generators; a tag of so many takes the parser a tenth of a
 * millisecond. */
#define ATTRIBUTES 256

/* Smaller pages have no room for attributes enough to matter: one tag of 8 KiB takes milliseconds. */
#define TAME_FROM 8192

static inline bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool starts_name(char c) {
    return is_letter(c) || c == '_' || c == ':' || c == '.';
}

static inline bool in_name(char c) {
    return starts_name(c) || (c >= '0' && c <= '9') || c == '-';
}

static inline const char *skip_blanks(const char *p, const char *end) {
    while (p < end && is_blank(*p))
        p++;
    return p;
}

static inline bool at_tag_end(const char *p, const char *end) {
    return p == end || *p == '>' || (*p == '/' && p + 1 < end && p[1] == '>');
}

/* Behind a value. */
static const char *skip_value(const char *p, const char *end) {
    if (p < end && (*p == '"' || *p == '\'')) {
        const char *close = memchr(p + 1, *p, (size_t)(end - p - 1));
        return close ? close + 1 : end;
    }
    while (p < end && !is_blank(*p) && *p != '>')
        p++;
    return p;
}

/* Behind an attribute, which has a name, or behind what is none, up to a blank or the end of the tag. */
static const char *skip_attribute(const char *p, const char *end) {
    if (!starts_name(*p)) {
        while (!at_tag_end(p, end) && !is_blank(*p))
            p++;
        return p;
    }
    while (p < end && in_name(*p))
        p++;
    const char *sign = skip_blanks(p, end);
    return sign < end && *sign == '=' ? skip_value(skip_blanks(sign + 1, end), end) : sign;
}

/* The end of a tag whose name ends at p; *cut is where its attributes become too many, or NULL. */
static const char *skip_tag(const char *p, const char *end, const char **cut) {
    size_t count = 0;
    *cut = NULL;
    for (p = skip_blanks(p, end); !at_tag_end(p, end); p = skip_blanks(p, end)) {
        if (count++ == ATTRIBUTES)
            *cut = p;
        p = skip_attribute(p, end);
    }
    return p;
}

/* Where a script or style ends, whose tag ends at p; p itself for other elements. */
static const char *skip_raw(const char *name, size_t length, const char *p, const char *end) {
    bool raw = (length == 6 && !strncasecmp(name, "script", 6)) || (length == 5 && !strncasecmp(name, "style", 5));
    if (!raw || p == end || *p != '>')
        return p;
    while ((p = memmem(p, (size_t)(end - p), "</", 2))) {
        if ((size_t)(end - p) >= length + 2 && !strncasecmp(p + 2, name, length))
            return p;
        p += 2;
    }
    return end;
}

/* A page on its way: `out` has what comes before `from`, as far as something had to be left out. */
typedef struct taming {
    const char *from, *end;
    dp_buffer *out;
    bool failed;
} taming;

/* Goes over the tag whose name is at p. */
static const char *tame_tag(taming *t, const char *p) {
    const char *name = p, *cut;
    while (p < t->end && in_name(*p))
        p++;
    size_t length = (size_t)(p - name);
    p = skip_tag(p, t->end, &cut);
    if (cut) {
        t->failed |= !dp_buffer_add(t->out, t->from, (size_t)(cut - t->from));
        t->from = p;
    }
    return skip_raw(name, length, p, t->end);
}

static const char *skip_comment(const char *p, const char *end) {
    const char *close = memmem(p + 3, (size_t)(end - p - 3), "-->", 3);
    return close ? close + 3 : end;
}

doppel_status dp_page_tame(dp_buffer *out, doppel_slice *html) {
    const char *p = html->data;
    taming t = {.from = p, .end = p + html->length, .out = out};
    out->size = 0;
    if (html->length < TAME_FROM)
        return DOPPEL_OK;
    while (p && p < t.end && (p = memchr(p, '<', (size_t)(t.end - p)))) {
        p++;
        if (t.end - p > 3 && !memcmp(p, "!--", 3))
            p = skip_comment(p, t.end);
        else if (p < t.end && starts_name(*p))
            p = tame_tag(&t, p);
    }
    if (t.from == html->data)
        return DOPPEL_OK;
    if (t.failed || !dp_buffer_add(out, t.from, (size_t)(t.end - t.from)))
        return DOPPEL_ERROR_MEMORY;
    *html = (doppel_slice){out->data, out->size};
    return DOPPEL_OK;
}
