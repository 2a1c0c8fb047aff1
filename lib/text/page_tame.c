/* page_tame.c - what the parser cannot bear, taken out of a page in one pass over its tags.
 *
 * - The parser compares each attribute of a tag with all before it, so that a tag of a million of them would take
 *   hours: what follows a tag's first ATTRIBUTES is left out.
 * - It looks for elements inside noscript, iframe and textarea, whose content is no markup for a browser, and which may
 *   be anything; none of it is text of the page, and it is left out.
 * - It takes `<![CDATA[`, `<![endif]>` and whatever begins like a comment for text. They are left out, but not what
 *   stands behind them.
 * - Sections that leave something open (page_nest.c).
 *
 * The page is gone over as the parser does: comments, scripts and styles hold no tags; a value in quotes may hold
 * anything. A page that needs nothing of this is used where it is. */
#include "text/page_tame.h"
#include "text/page.h"

#include <strings.h>

/* Far beyond what is written by hand or made by generators; a tag of so many takes the parser a tenth of a
 * millisecond. */
#define ATTRIBUTES 256

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

/* ---- elements that hold no markup ---- */

typedef struct raw_element {
    const char *name;
    bool drops;
} raw_element;

static const raw_element raws[] = {{"script", false}, {"style", false},   {"noscript", true}, {"iframe", true},
                                   {"noembed", true}, {"noframes", true}, {"textarea", true}};

enum { RAWS = sizeof raws / sizeof *raws, NO_CLOSE = 1u << RAWS };

/* Which of them it is; RAWS: none. */
static size_t find_raw(const char *name, size_t length) {
    size_t i = 0;
    while (i < RAWS &&
           ((name[0] | 0x20) != raws[i].name[0] || strncasecmp(name, raws[i].name, length) || raws[i].name[length]))
        i++;
    return i;
}

/* Where the end tag of one stands; NULL: nowhere. */
static const char *find_end(dp_taming *t, size_t raw, const char *p) {
    size_t length = strlen(raws[raw].name);
    while (!(t->missing >> raw & 1) && (p = memmem(p, (size_t)(t->end - p), "</", 2))) {
        if ((size_t)(t->end - p) >= length + 2 && !strncasecmp(p + 2, raws[raw].name, length))
            return p;
        p += 2;
    }
    t->missing |= 1u << raw;
    return NULL;
}

/* ---- changes ---- */

void dp_taming_cut(dp_taming *t, const char *start, const char *stop) {
    t->failed |= !dp_buffer_add(t->out, t->from, (size_t)(start - t->from));
    t->from = stop;
}

void dp_taming_insert(dp_taming *t, const char *place, const char *text, size_t length) {
    dp_taming_cut(t, place, place);
    t->failed |= !dp_buffer_add(t->out, text, length);
}

/* ---- the pass: each of these goes over one thing, whose second byte is at p, and gives where it ends ---- */

static const char *pass_start(dp_taming *t, dp_nest *nest, const char *p) {
    const char *name = p, *cut;
    while (p < t->end && in_name(*p))
        p++;
    size_t length = (size_t)(p - name);
    p = skip_tag(p, t->end, &cut);
    if (cut)
        dp_taming_cut(t, cut, p);
    if (p == t->end || *p != '>')
        return p;
    size_t raw = length > 4 ? find_raw(name, length) : RAWS;
    if (raw == RAWS) {
        dp_nest_start(nest, name, length);
        return p;
    }
    const char *stop = find_end(t, raw, p);
    if (raws[raw].drops && stop)
        dp_taming_cut(t, p + 1, stop);
    return stop ? stop : raws[raw].drops ? p : t->end;
}

static const char *pass_end(dp_taming *t, dp_nest *nest, const char *p) {
    const char *name = p + 1;
    for (p = name; p < t->end && in_name(*p);)
        p++;
    dp_nest_end(nest, t, name - 2, name, (size_t)(p - name));
    return p;
}

/* Comments, and what begins like one. */
static const char *pass_mark(dp_taming *t, const char *p) {
    size_t left = (size_t)(t->end - p);
    if (left > 3 && !memcmp(p, "!--", 3)) {
        const char *close = memmem(p + 3, left - 3, "-->", 3);
        return close ? close + 3 : t->end;
    }
    if (left >= 8 && !memcmp(p, "![CDATA[", 8)) {
        dp_taming_cut(t, p - 1, p + 8);
        return p + 8;
    }
    const char *close = t->missing & NO_CLOSE ? NULL : memchr(p, '>', left);
    t->missing |= close ? 0 : NO_CLOSE;
    if (left > 1 && (p[1] | 0x20) != 'd' && close)
        dp_taming_cut(t, p - 1, close + 1);
    return close ? close + 1 : p;
}

doppel_status dp_page_tame(dp_buffer *out, doppel_slice *html) {
    const char *p = html->data;
    dp_taming t = {.from = p, .end = p + html->length, .out = out};
    dp_nest nest = {.depth = 0};
    out->size = 0;
    while (p < t.end && !t.failed && (p = memchr(p, '<', (size_t)(t.end - p)))) {
        if (++p == t.end)
            break;
        if (starts_name(*p))
            p = pass_start(&t, &nest, p);
        else if (*p == '/')
            p = pass_end(&t, &nest, p);
        else if (*p == '!')
            p = pass_mark(&t, p);
    }
    if (t.from == html->data && !out->size)
        return t.failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
    dp_taming_cut(&t, t.end, t.end);
    *html = (doppel_slice){out->size ? out->data : "", out->size};
    return t.failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}
