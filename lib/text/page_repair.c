/* page_repair.c - takes what the parser cannot handle out of a page, in one pass over its tags.
 *
 * - The parser compares each attribute of a tag with all before it, so that a tag of a million of them would take
 *   hours: what follows a tag's first ATTRIBUTES is left out.
 * - It looks for elements inside noscript, iframe and textarea, whose content is not markup for a browser and may be
 * anything; none of it is text of the page, and it is left out.
 * - It takes `<![CDATA[`, `<![endif]>` and whatever begins like a comment for text. They are left out, but not what
 * follows them.
 * - It cannot handle sections that leave elements open: these are closed for it.
 *
 * The page is scanned as the parser does: comments, scripts and styles hold no tags; a quoted value may hold anything.
 * A page that needs no repair is used in place. */
#include "text/page.h"

#include <strings.h>

/* A page being repaired: `out` has what precedes `from`, if something had to change. */
typedef struct repair {
    const char *from, *end;
    dp_buffer *out;
    unsigned missing; /* end tags known to be missing, not searched again */
    bool failed;      /* no memory */
} repair;

/* Leaves out the bytes from `start` to `stop`. */
static void cut(repair *r, const char *start, const char *stop) {
    r->failed |= !dp_buffer_add(r->out, r->from, (size_t)(start - r->from));
    r->from = stop;
}

/* Puts text in before `place`. */
static void insert(repair *r, const char *place, const char *text, size_t length) {
    cut(r, place, place);
    r->failed |= !dp_buffer_add(r->out, text, length);
}

/* ---- tags and their attributes ---- */

/* Far more than hand-written or generated pages have; a tag with that many takes the parser a tenth of a
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

/* After a value. */
static const char *skip_value(const char *p, const char *end) {
    if (p < end && (*p == '"' || *p == '\'')) {
        const char *close = memchr(p + 1, *p, (size_t)(end - p - 1));
        return close ? close + 1 : end;
    }
    while (p < end && !is_blank(*p) && *p != '>')
        p++;
    return p;
}

/* After an attribute, which has a name, or after anything else, up to a blank or the end of the tag. */
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

/* The end of a tag whose name ends at p; *too_many is where its attributes become too many, or NULL. */
static const char *skip_tag(const char *p, const char *end, const char **too_many) {
    size_t count = 0;
    *too_many = NULL;
    for (p = skip_blanks(p, end); !at_tag_end(p, end); p = skip_blanks(p, end)) {
        if (count++ == ATTRIBUTES)
            *too_many = p;
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

/* The end tag of one; NULL: none. */
static const char *find_end(repair *r, size_t raw, const char *p) {
    size_t length = strlen(raws[raw].name);
    while (!(r->missing >> raw & 1) && (p = memmem(p, (size_t)(r->end - p), "</", 2))) {
        if ((size_t)(r->end - p) >= length + 2 && !strncasecmp(p + 2, raws[raw].name, length))
            return p;
        p += 2;
    }
    r->missing |= 1u << raw;
    return NULL;
}

/* ---- sections that leave something open ----
 *
 * `<nav><div>...</nav>` ends both for a browser. The parser, by the rules of older HTML, finds that the end of a lesser
 * element cannot close a div, and takes the rest of the page for navigation. So the div gets its own end here. */

/* More open sections than any page has. */
#define OPEN_SECTIONS 64

/* The open sections, each with its div elements that are open. */
typedef struct open_sections {
    struct {
        const char *name;
        size_t length, divs;
    } at[OPEN_SECTIONS];
    size_t depth;
} open_sections;

/* Block elements that the parser does not know, or that can be dropped with all their content. */
static const char *const section_names[] = {"article", "aside",  "button",  "details", "dialog",
                                            "figure",  "footer", "header",  "main",    "nav",
                                            "object",  "search", "section", "svg",     "template"};

static bool is_section(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof section_names / sizeof *section_names; i++)
        if ((name[0] | 0x20) == section_names[i][0] && !strncasecmp(name, section_names[i], length) &&
            !section_names[i][length])
            return true;
    return false;
}

static bool is_div(const char *name, size_t length) {
    return length == 3 && !strncasecmp(name, "div", 3);
}

/* A tag that opens an element. */
static void open_element(open_sections *open, const char *name, size_t length) {
    if (open->depth && is_div(name, length)) {
        open->at[open->depth - 1].divs++;
    } else if (open->depth < OPEN_SECTIONS && length > 2 && is_section(name, length)) {
        open->at[open->depth].name = name;
        open->at[open->depth].length = length;
        open->at[open->depth++].divs = 0;
    }
}

/* Closes what the innermost section has open, and itself if asked for. */
static void close_top(open_sections *open, repair *r, const char *place, bool itself) {
    open->depth--;
    for (size_t i = 0; i < open->at[open->depth].divs; i++)
        insert(r, place, "</div>", 6);
    if (itself) {
        insert(r, place, "</", 2);
        insert(r, place, open->at[open->depth].name, open->at[open->depth].length);
        insert(r, place, ">", 1);
    }
}

/* A tag at `place` that closes one: what is still open in it is closed first. */
static void close_element(open_sections *open, repair *r, const char *place, const char *name, size_t length) {
    size_t at = open->depth;
    if (open->depth && is_div(name, length)) {
        size_t *divs = &open->at[open->depth - 1].divs;
        *divs -= *divs != 0;
        return;
    }
    while (at && !(open->at[at - 1].length == length && !strncasecmp(open->at[at - 1].name, name, length)))
        at--;
    while (at && open->depth >= at)
        close_top(open, r, place, open->depth > at);
}

/* ---- the pass: each of these skips one construct, whose second byte is at p, and returns its end ---- */

static const char *pass_start(repair *r, open_sections *open, const char *p) {
    const char *name = p, *too_many;
    while (p < r->end && in_name(*p))
        p++;
    size_t length = (size_t)(p - name);
    p = skip_tag(p, r->end, &too_many);
    if (too_many)
        cut(r, too_many, p);
    if (p == r->end || *p != '>')
        return p;
    size_t raw = length > 4 ? find_raw(name, length) : RAWS;
    if (raw == RAWS) {
        open_element(open, name, length);
        return p;
    }
    const char *stop = find_end(r, raw, p);
    if (raws[raw].drops && stop)
        cut(r, p + 1, stop);
    return stop ? stop : raws[raw].drops ? p : r->end;
}

static const char *pass_end(repair *r, open_sections *open, const char *p) {
    const char *name = p + 1;
    for (p = name; p < r->end && in_name(*p);)
        p++;
    close_element(open, r, name - 2, name, (size_t)(p - name));
    return p;
}

/* Comments, and what begins like one. */
static const char *pass_mark(repair *r, const char *p) {
    size_t left = (size_t)(r->end - p);
    if (left > 3 && !memcmp(p, "!--", 3)) {
        const char *close = memmem(p + 3, left - 3, "-->", 3);
        return close ? close + 3 : r->end;
    }
    if (left >= 8 && !memcmp(p, "![CDATA[", 8)) {
        cut(r, p - 1, p + 8);
        return p + 8;
    }
    const char *close = r->missing & NO_CLOSE ? NULL : memchr(p, '>', left);
    r->missing |= close ? 0 : NO_CLOSE;
    if (left > 1 && (p[1] | 0x20) != 'd' && close)
        cut(r, p - 1, close + 1);
    return close ? close + 1 : p;
}

doppel_status dp_page_repair(dp_buffer *out, doppel_slice *html) {
    const char *p = html->data;
    repair r = {.from = p, .end = p + html->length, .out = out};
    open_sections open = {.depth = 0};
    out->size = 0;
    while (p < r.end && !r.failed && (p = memchr(p, '<', (size_t)(r.end - p)))) {
        if (++p == r.end)
            break;
        if (starts_name(*p))
            p = pass_start(&r, &open, p);
        else if (*p == '/')
            p = pass_end(&r, &open, p);
        else if (*p == '!')
            p = pass_mark(&r, p);
    }
    if (r.from == html->data && !out->size)
        return r.failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
    cut(&r, r.end, r.end);
    *html = (doppel_slice){out->size ? out->data : "", out->size};
    return r.failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}
