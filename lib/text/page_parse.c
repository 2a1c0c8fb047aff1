/* page_parse.c - the events of the parser: what is visible, in which region, and what the page says of itself.
 *
 * The parser (libxml2's, for HTML) repairs the nesting: every start has its end. It knows no network and no entities
 * but those of HTML, keeps nothing, and is asked for events alone; the stack of open elements below follows its own. */
#include "text/page.h"

#include <libxml/HTMLparser.h>
#include <setjmp.h>
#include <strings.h>

/* Deeper than this the middle of the stack is forgotten, as browsers flatten at 512: an end that matches nothing is
 * looked for in all of it, and must not cost more the deeper a page is. */
#define DEPTH 512
#define DEPTH_KEPT 64

/* Elements looked up before; the parser gives equal names at equal addresses. */
#define KNOWN 64

typedef struct opened {
    const dp_element *element;
    uint32_t region; /* the one to go back to */
    bool link, heading_kept;
} opened;

typedef struct parsing {
    dp_page_parts *parts;
    htmlParserCtxtPtr parser;
    opened stack[DEPTH + 1];
    size_t depth;
    size_t invisible; /* depth of the outermost invisible element; 0: none */
    size_t title;     /* depth of the title element; 0: none */
    size_t links;     /* open ones */
    size_t mains;     /* open elements whose headers are theirs, not the page's */
    char title_gap;
    bool failed;              /* no memory */
    jmp_buf out_of_parser;    /* for when it has none, and would not come back */
    const xmlChar *complaint; /* where the parser complained last, and how often in a row */
    size_t complaints;
    struct {
        const xmlChar *name;
        const dp_element *element;
    } known[KNOWN];
} parsing;

static const dp_element *element_of(parsing *p, const xmlChar *name) {
    size_t slot = (uintptr_t)name / 8 * 0x9E3779B1u >> 16 & (KNOWN - 1);
    if (p->known[slot].name != name) {
        p->known[slot].name = name;
        p->known[slot].element = dp_element_find((const char *)name);
    }
    return p->known[slot].element;
}

/* ---- attributes ---- */

/* What the attributes of an element say that matters; NULL: not there. */
typedef struct attributes {
    const char *class, *id, *role, *style, *lang, *rel, *href;
    bool hidden, open;
} attributes;

static const char *value_of(const xmlChar *value) {
    return value ? (const char *)value : "";
}

static bool is_hidden(const char *value) {
    return strcasecmp(value, "until-found") != 0;
}

static void read_attribute(attributes *a, const char *name, const char *value) {
    switch (name[0]) {
    case 'a': a->hidden |= !strcmp(name, "aria-hidden") && !strcasecmp(value, "true"); break;
    case 'c': a->class = strcmp(name, "class") ? a->class : value; break;
    case 'h':
        a->href = strcmp(name, "href") ? a->href : value;
        a->hidden |= !strcmp(name, "hidden") && is_hidden(value);
        break;
    case 'i': a->id = strcmp(name, "id") ? a->id : value; break;
    case 'l': a->lang = strcmp(name, "lang") ? a->lang : value; break;
    case 'o': a->open |= !strcmp(name, "open"); break;
    case 'r':
        a->role = strcmp(name, "role") ? a->role : value;
        a->rel = strcmp(name, "rel") ? a->rel : value;
        break;
    case 's': a->style = strcmp(name, "style") ? a->style : value; break;
    case 'x': a->lang = strcmp(name, "xml:lang") || a->lang ? a->lang : value; break;
    default: break;
    }
}

static void read_attributes(attributes *a, const xmlChar **list) {
    for (; list && list[0]; list += 2)
        read_attribute(a, (const char *)list[0], value_of(list[1]));
}

/* ---- what the page says of itself ---- */

/* Copies a value without white space at its ends, the first time only. */
static void take(parsing *p, const char *value, dp_buffer *to, bool *has) {
    char gap = 0;
    if (*has || !value)
        return;
    to->size = 0;
    p->failed |= !dp_collapse(to, value, strlen(value), &gap);
    *has = to->size != 0;
}

/* Whether one of the words of rel is `canonical`. */
static bool is_canonical(const char *rel) {
    for (size_t length; *rel; rel += length) {
        rel += strspn(rel, " \t\n\r");
        length = strcspn(rel, " \t\n\r");
        if (length == 9 && !strncasecmp(rel, "canonical", 9))
            return true;
    }
    return false;
}

static void read_self(parsing *p, const dp_element *element, const attributes *a) {
    dp_page_parts *parts = p->parts;
    if (element->kind & DP_HTML)
        take(p, a->lang, &parts->language, &parts->has_language);
    else if (element->kind & DP_META_LINK && a->rel && is_canonical(a->rel))
        take(p, a->href, &parts->canonical, &parts->has_canonical);
    else if (element->kind & DP_TITLE && !parts->has_title)
        p->title = p->depth;
}

/* ---- elements ---- */

/* The first title is the page's; others are nobody's. */
static bool hides(const parsing *p, const dp_element *element, const attributes *a) {
    return element->kind & DP_INVISIBLE || a->hidden || (element->kind & DP_DIALOG && !a->open) ||
           (element->kind & DP_TITLE && p->title != p->depth) || (a->style && dp_style_hides(a->style));
}

/* The reasons of an element to drop out, by what it is and how it is called. */
static uint8_t reasons_of(const parsing *p, const dp_element *element, const attributes *a, uint16_t *kind) {
    uint8_t role = a->role ? dp_role_reasons(a->role) : 0, reasons = element->reasons;
    if (role & DP_ROLE_MAIN)
        *kind |= DP_MAIN | DP_WHOLE;
    if (*kind & DP_WHOLE)
        return 0;
    if (*kind & DP_HEADING && p->mains)
        reasons = 0;
    reasons |= role;
    if ((a->class && dp_name_reasons(a->class)) || (a->id && dp_name_reasons(a->id)))
        reasons |= DP_NAMED;
    return reasons;
}

/* Opens a region for an element that may drop out, or that keeps what is in it from doing so. */
static void enter(parsing *p, opened *top, const dp_element *element, const attributes *a) {
    dp_content *content = &p->parts->content;
    uint16_t kind = element->kind;
    uint8_t reasons = reasons_of(p, element, a, &kind);
    top->heading_kept = kind & (DP_MAIN | DP_ARTICLE);
    p->mains += top->heading_kept;
    top->link = kind & DP_LINK && a->href;
    p->links += top->link;
    if (reasons || kind & (DP_CONTAINER | DP_MAIN | DP_ARTICLE))
        p->failed |= !dp_content_open(content, content->region, &(dp_region){.kind = kind, .reasons = reasons},
                                      &content->region);
    content->regions[content->region].links += top->link;
}

static void break_words(parsing *p, const dp_element *element) {
    if (element->kind & (DP_BREAKS | DP_CELL))
        dp_content_gap(&p->parts->content, element->kind & DP_BREAKS ? '\n' : ' ');
}

/* Forgets the middle of both stacks, that of the parser and the one here. */
static void flatten(parsing *p) {
    htmlParserCtxtPtr parser = p->parser;
    if (p->depth < DEPTH || parser->nameNr <= DEPTH_KEPT)
        return;
    for (size_t i = DEPTH_KEPT; i < p->depth; i++) {
        p->links -= p->stack[i].link;
        p->mains -= p->stack[i].heading_kept;
    }
    parser->nameTab[DEPTH_KEPT] = parser->nameTab[parser->nameNr - 1];
    parser->nameNr = DEPTH_KEPT + 1;
    p->depth = DEPTH_KEPT;
    p->invisible = p->invisible > DEPTH_KEPT ? DEPTH_KEPT : p->invisible;
    p->title = p->title > DEPTH_KEPT ? DEPTH_KEPT : p->title;
}

static void on_start(void *user, const xmlChar *name, const xmlChar **list) {
    parsing *p = user;
    const dp_element *element = element_of(p, name);
    flatten(p);
    opened *top = &p->stack[p->depth++];
    *top = (opened){.element = element, .region = p->parts->content.region};
    if (p->invisible || p->failed)
        return;
    attributes a = {0};
    read_attributes(&a, list);
    read_self(p, element, &a);
    break_words(p, element);
    if (hides(p, element, &a))
        p->invisible = p->depth;
    else
        enter(p, top, element, &a);
}

static void on_end(void *user, const xmlChar *name) {
    parsing *p = user;
    (void)name;
    if (!p->depth)
        return;
    const opened *top = &p->stack[--p->depth];
    if (p->title > p->depth) {
        p->title = 0;
        p->parts->has_title = p->parts->title.size != 0;
    }
    if (p->invisible > p->depth)
        p->invisible = 0;
    if (p->invisible)
        return;
    p->links -= top->link;
    p->mains -= top->heading_kept;
    p->parts->content.region = top->region;
    break_words(p, top->element);
}

static void on_text(void *user, const xmlChar *text, int length) {
    parsing *p = user;
    if (p->invisible || p->failed)
        return;
    if (p->title)
        p->failed = !dp_collapse(&p->parts->title, (const char *)text, (size_t)length, &p->title_gap);
    else
        p->failed = !dp_content_add(&p->parts->content, (const char *)text, (size_t)length, p->links != 0);
}

/* ---- the parser ---- */

/* The parser complains where it repairs a page, which is nobody's business; and when it has no memory, which it may
 * also not notice, and then stays where it is for ever, told to stop or not: it is left by a jump. */
#define COMPLAINTS 10000

static void on_error(void *user, xmlErrorPtr error) {
    parsing *p = user;
    const xmlChar *at = p->parser && p->parser->input ? p->parser->input->cur : NULL;
    p->complaints = at == p->complaint ? p->complaints + 1 : 0;
    p->complaint = at;
    p->failed |= error->code == XML_ERR_NO_MEMORY || p->complaints >= COMPLAINTS;
    if (p->failed && p->parser)
        longjmp(p->out_of_parser, 1);
}

static bool parts_reset(dp_page_parts *parts) {
    parts->title.size = parts->canonical.size = parts->language.size = 0;
    parts->has_title = parts->has_canonical = parts->has_language = false;
    return dp_content_reset(&parts->content);
}

static void set_up(parsing *p) {
    htmlParserCtxtPtr parser = p->parser;
    htmlCtxtUseOptions(parser, HTML_PARSE_RECOVER | HTML_PARSE_NONET | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                                   HTML_PARSE_IGNORE_ENC);
    *parser->sax = (htmlSAXHandler){
        .startElement = on_start, .endElement = on_end, .characters = on_text, .ignorableWhitespace = on_text};
    parser->userData = p;
    parser->charset = XML_CHAR_ENCODING_UTF8;
}

/* False: no memory. */
static bool parse(parsing *p, const char *html, size_t length) {
    p->parser = htmlCreateMemoryParserCtxt(html, (int)length);
    if (!p->parser)
        return false;
    if (!setjmp(p->out_of_parser)) {
        set_up(p);
        htmlParseDocument(p->parser);
        p->failed |= p->parser->errNo == XML_ERR_NO_MEMORY;
    }
    htmlParserCtxtPtr parser = p->parser;
    p->parser = NULL; /* what goes wrong now is told, and no reason to jump */
    htmlFreeParserCtxt(parser);
    return !p->failed;
}

/* Who is told of errors is said for the thread, so that it is said back afterwards. */
doppel_status dp_page_parse(dp_page_parts *parts, const char *html, size_t length) {
    if (!parts_reset(parts))
        return DOPPEL_ERROR_MEMORY;
    if (!length)
        return DOPPEL_OK;
    parsing p = {.parts = parts};
    xmlStructuredErrorFunc told = xmlStructuredError;
    void *told_user = xmlStructuredErrorContext;
    xmlSetStructuredErrorFunc(&p, on_error);
    bool parsed = parse(&p, html, length);
    xmlSetStructuredErrorFunc(told_user, told);
    return parsed ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}
