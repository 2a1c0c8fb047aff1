/* page.c - HTML to content: doppel_page_reader_create, then doppel_page_read or doppel_document_text for each page.
 *
 * The bytes become clean UTF-8 (charset.c), what the parser cannot handle is repaired (page_repair.c), and the parser's
 * events give the visible text, its regions, and the page's metadata. At the end the regions that are not the main
 * content are dropped. */
#include "text/page.h"
#include "text/charset.h"

#include <libxml/HTMLparser.h>
#include <libxml/parser.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <strings.h>

/* ---- what an element is ----
 *
 * One table. A rule is a function of the element alone; what the rules of all elements together do to the page is
 * decided below, by drop_regions. */

enum {
    /* how it stands in the text */
    BREAKS = 1,    /* words end where it begins and ends */
    INVISIBLE = 2, /* nothing in it is text of the page */
    CONTAINER = 4, /* can be a block of links */
    LINK = 8,      /* its text is in a link, if it has an address */
    CELL = 16,     /* as BREAKS, by a space */
    /* what is special about it */
    TITLE = 32,
    META_LINK = 64,
    HTML = 128,
    DIALOG = 256,   /* hidden unless it is open */
    HEADING = 512,  /* a header: the page's, unless it is in the main part or an article */
    MAIN = 1024,    /* never dropped because of an outer element */
    ARTICLE = 2048, /* never dropped because of an outer element's name */
    WHOLE = 4096    /* cannot be dropped itself */
};

/* Why a region is not main content, and other properties of everything in it. */
enum {
    FRAME = 1,       /* its element or role: navigation, header, footer, aside */
    NAMED = 2,       /* its class or id: a menu, breadcrumbs, share buttons */
    LINKS = 4,       /* nearly all of it is links */
    CONTROL = 8,     /* buttons and choices of forms */
    INTRODUCED = 16, /* preceded by a colon: the list belongs to the text */
    IN_MAIN = 32     /* the page says that its content is here */
};

typedef struct page_element {
    char name[12];
    uint16_t kind;   /* BREAKS ... */
    uint8_t reasons; /* FRAME ... */
} page_element;

#define BLOCK BREAKS
#define BOX (BREAKS | CONTAINER)

/* Sorted by name. */
/* clang-format off */
static const page_element elements[] = {
    {"a", LINK, 0}, {"address", BLOCK, 0}, {"applet", INVISIBLE, 0}, {"article", BLOCK | ARTICLE | WHOLE, 0},
    {"aside", BLOCK, FRAME}, {"audio", INVISIBLE, 0}, {"blockquote", BLOCK, 0}, {"body", BLOCK | WHOLE, 0},
    {"br", BLOCK, 0}, {"button", CELL, CONTROL}, {"canvas", INVISIBLE, 0}, {"caption", BLOCK, 0},
    {"center", BOX, 0}, {"datalist", INVISIBLE, 0}, {"dd", BLOCK, 0}, {"details", BLOCK, 0},
    {"dialog", BLOCK | DIALOG, 0}, {"dir", BOX, 0}, {"div", BOX, 0}, {"dl", BOX, 0}, {"dt", BLOCK, 0},
    {"embed", INVISIBLE, 0}, {"fieldset", BLOCK, 0}, {"figcaption", BLOCK, 0}, {"figure", BLOCK, 0},
    {"footer", BLOCK, FRAME}, {"form", BOX, 0}, {"h1", BLOCK, 0}, {"h2", BLOCK, 0}, {"h3", BLOCK, 0},
    {"h4", BLOCK, 0}, {"h5", BLOCK, 0}, {"h6", BLOCK, 0}, {"head", BLOCK | WHOLE, 0},
    {"header", BLOCK | HEADING, FRAME}, {"hgroup", BLOCK, 0}, {"hr", BLOCK, 0}, {"html", BLOCK | HTML | WHOLE, 0},
    {"iframe", INVISIBLE, 0}, {"img", INVISIBLE, 0}, {"input", CELL, 0}, {"isindex", BLOCK, 0},
    {"legend", BLOCK, 0}, {"li", BLOCK, 0}, {"link", META_LINK, 0}, {"listing", BLOCK, 0},
    {"main", BLOCK | MAIN | WHOLE, 0}, {"menu", BOX, 0}, {"nav", BLOCK, FRAME}, {"noembed", INVISIBLE, 0},
    {"noframes", INVISIBLE, 0}, {"noscript", INVISIBLE, 0}, {"object", INVISIBLE, 0}, {"ol", BOX, 0},
    {"optgroup", CELL, 0}, {"option", CELL, 0}, {"output", 0, 0}, {"p", BOX, 0}, {"plaintext", BLOCK, 0},
    {"pre", BLOCK, 0}, {"rp", INVISIBLE, 0}, {"script", INVISIBLE, 0}, {"search", BLOCK, FRAME},
    {"section", BOX, 0}, {"select", CELL, CONTROL}, {"style", INVISIBLE, 0}, {"summary", BLOCK, 0},
    {"svg", INVISIBLE, 0}, {"table", BOX, 0}, {"tbody", BLOCK, 0}, {"td", CELL | CONTAINER, 0},
    {"template", INVISIBLE, 0}, {"textarea", INVISIBLE, 0}, {"tfoot", BLOCK, 0}, {"th", CELL, 0},
    {"thead", BLOCK, 0}, {"title", TITLE, 0}, {"tr", BLOCK, 0}, {"ul", BOX, 0}, {"video", INVISIBLE, 0},
    {"xmp", BLOCK, 0},
};
/* clang-format on */

/* Unknown elements are inline, except custom elements, which have a dash in their name and are mostly blocks. */
static const page_element unknown = {"", 0, 0}, homemade = {"", BLOCK, 0};

static int by_name(const void *name, const void *element) {
    return strcmp(name, ((const page_element *)element)->name);
}

/* The element of this name; one for all unknown ones. */
static const page_element *find_element(const char *name) {
    const page_element *found = bsearch(name, elements, sizeof elements / sizeof *elements, sizeof *elements, by_name);
    return found ? found : strchr(name, '-') ? &homemade : &unknown;
}

/* What a role says: reasons, or ROLE_MAIN. */
#define ROLE_MAIN 128
static const struct {
    const char *role;
    uint8_t reasons;
} roles[] = {
    {"navigation", FRAME}, {"banner", FRAME},      {"contentinfo", FRAME}, {"complementary", FRAME},
    {"search", FRAME},     {"menu", FRAME},        {"menubar", FRAME},     {"toolbar", FRAME},
    {"dialog", FRAME},     {"alertdialog", FRAME}, {"main", ROLE_MAIN},
};

static uint8_t role_reasons(const char *role) {
    size_t length = strcspn(role, " \t\n\r");
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strlen(roles[i].role) == length && !strncasecmp(role, roles[i].role, length))
            return roles[i].reasons;
    return 0;
}

/* Words of classes and ids that mean the frame around content. Each is a whole word: delimited by non-letters, or
 * beginning with a capital after a small letter (`mainMenu`). Sorted. */
static const char *const frame_words[] = {
    "ads",        "advert",  "advertisement", "advertising", "breadcrumb", "breadcrumbs", "consent",    "cookie",
    "cookiebar",  "cookies", "footer",        "gdpr",        "masthead",   "menu",        "menubar",    "menus",
    "nav",        "navbar",  "navbars",       "navfooter",   "navheader",  "navigation",  "navlinks",   "navmenu",
    "newsletter", "pager",   "pagination",    "related",     "share",      "sharebar",    "sharedaddy", "sharing",
    "sidebar",    "sidenav", "siteheader",    "skiplink",    "skiplinks",  "social",      "sponsored",  "submenu",
    "subnav",     "toolbar", "topbar",        "topnav",
};

/* Words that, before one of those, say that the element is not part of the frame: `has-sidebar`, `with-nav`. */
static const char *const beside_words[] = {"has", "no", "with", "without", "hide", "hidden", "show", "is", "not"};

static int by_word(const void *word, const void *entry) {
    return strcmp(word, *(const char *const *)entry);
}

/* The longest of frame_words, and the 0. */
#define WORD_ROOM 16

static bool is_beside(const char *word) {
    for (size_t i = 0; i < sizeof beside_words / sizeof *beside_words; i++)
        if (!strcmp(word, beside_words[i]))
            return true;
    return false;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The next word from *at on, in small letters; an empty one if it is too long to matter. False: there is none. *apart:
 * white space precedes it. */
static bool next_word(const char **at, char *word, bool *apart) {
    const char *p = *at;
    size_t length = 0, kept = 0;
    *apart = false;
    for (; *p && !is_letter(*p); p++)
        *apart |= *p == ' ' || *p == '\t' || *p == '\n' || *p == '\r';
    const char *start = p;
    for (; is_letter(*p) && !(p > start && *p < 'a' && p[-1] >= 'a'); p++, length++)
        if (kept < WORD_ROOM - 1)
            word[kept++] = (char)(*p | 0x20);
    word[length < WORD_ROOM ? kept : 0] = 0;
    *at = p;
    return length != 0;
}

/* What the words of a class or an id say. */
static uint8_t name_reasons(const char *names) {
    char word[WORD_ROOM];
    bool apart, beside = false;
    while (next_word(&names, word, &apart)) {
        beside &= !apart;
        if (!beside &&
            bsearch(word, frame_words, sizeof frame_words / sizeof *frame_words, sizeof *frame_words, by_word))
            return NAMED;
        beside = is_beside(word);
    }
    return 0;
}

/* Whether the style has a declaration `name: value`, ignoring case and white space. */
static bool declares(const char *style, const char *name, const char *value) {
    const char *p = style;
    while ((p = strcasestr(p, name))) {
        bool whole = p == style || !(is_letter(p[-1]) || p[-1] == '-');
        p += strlen(name);
        p += strspn(p, " \t\n\r");
        if (!whole || *p != ':')
            continue;
        p++;
        p += strspn(p, " \t\n\r");
        if (!strncasecmp(p, value, strlen(value)))
            return true;
    }
    return false;
}

/* Whether a style hides its element. */
static bool style_hides(const char *style) {
    return declares(style, "display", "none") || declares(style, "visibility", "hidden");
}

/* ---- the text and its regions ----
 *
 * Reset, then open and add as the page goes, then drop. Text is gathered once, in order; each run of it has a region.
 * At the end each region has reasons to be dropped: its own and those of its ancestors. What stays is a function of the
 * page alone:
 *
 * - a region with a name (class or id) of the frame that holds more than half of the page is no frame, but what all of
 *   the page stands in (unless the page says what is its content: main, article);
 * - a block of links (see is_links) drops out, unless a colon introduces it;
 * - if what is left is too little to be the content (see `enough`), some reasons are not good enough for this page, and
 *   it is tried again with fewer: an index of links keeps its links, and a page that is all navigation stays whole.
 *   Where the page says what is its content, that part alone is looked at: a page of few words in a large frame is no
 *   reason to keep the frame. */

/* A part of the page: an element that may be dropped, with its content. */
typedef struct page_region {
    uint32_t parent;                   /* comes before it; the first one, the page, is its own */
    uint16_t kind;                     /* of its element */
    uint8_t reasons;                   /* its own; after drop_regions, those of its ancestors, too */
    uint32_t bytes, link_bytes, links; /* of its own; after drop_regions, of all in it */
} page_region;

/* Text from `start` to the next run's start. */
typedef struct page_run {
    uint32_t start, region;
} page_run;

typedef struct page_text {
    dp_buffer text; /* every run begins with the white space that separates it from the one before, if any */
    page_run *runs;
    size_t run_count, run_capacity;
    page_region *regions;
    size_t region_count, region_capacity;
    uint32_t region; /* the one that text is added to */
    char gap;        /* white space to write before the next word; 0: none */
} page_text;

/* White space, a space or a line feed, comes before the next word. */
static void set_gap(page_text *content, char gap) {
    if (content->gap != '\n')
        content->gap = gap;
}

/* Which reasons count, in turn, until enough is left. */
static const uint8_t levels[] = {FRAME | NAMED | LINKS | CONTROL, FRAME | NAMED | CONTROL, FRAME | CONTROL, 0};

static void free_text(page_text *content) {
    dp_buffer_free(&content->text);
    free(content->runs);
    free(content->regions);
    *content = (page_text){0};
}

/* Whether the text ends with a colon, of the narrow kind or the wide one (U+FF1A). */
static bool after_colon(const dp_buffer *text) {
    size_t size = text->size;
    return (size && text->data[size - 1] == ':') || (size >= 3 && !memcmp(text->data + size - 3, "\xEF\xBC\x9A", 3));
}

/* Opens a region in `parent`; false: out of memory. */
static bool open_region(page_text *content, uint32_t parent, const page_region *region, uint32_t *number) {
    if (!dp_reserve(&content->regions, &content->region_capacity, content->region_count + 1, sizeof *content->regions))
        return false;
    *number = (uint32_t)content->region_count++;
    content->regions[*number] = *region;
    content->regions[*number].parent = parent;
    content->regions[*number].reasons |= after_colon(&content->text) ? INTRODUCED : 0;
    return true;
}

static bool reset_text(page_text *content) {
    content->text.size = content->run_count = content->region_count = 0;
    content->gap = 0;
    content->region = 0;
    return open_region(content, 0, &(page_region){.kind = WHOLE}, &content->region);
}

static inline bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Appends text to a buffer, with each stretch of white space as one space, none at the start. *gap is what is due
 * before the next word. */
static bool collapse(dp_buffer *out, const char *text, size_t length, char *gap) {
    if (!dp_reserve(&out->data, &out->capacity, out->size + length + 1, 1))
        return false;
    char *to = out->data + out->size, due = out->size ? *gap : 0;
    for (const char *p = text, *end = text + length; p < end; p++) {
        if (is_space(*p)) {
            due = due || to == out->data ? due : ' ';
            continue;
        }
        if (due)
            *to++ = due;
        due = 0;
        *to++ = *p;
    }
    out->size = (size_t)(to - out->data);
    *gap = due;
    return true;
}

/* Adds text, with each stretch of white space as one space. */
static bool add_text(page_text *content, const char *text, size_t length, bool in_link) {
    size_t before = content->text.size;
    if (!collapse(&content->text, text, length, &content->gap))
        return false;
    size_t added = content->text.size - before;
    if (!added)
        return true;
    page_region *region = &content->regions[content->region];
    region->bytes += (uint32_t)added;
    region->link_bytes += in_link ? (uint32_t)added : 0;
    if (content->run_count && content->runs[content->run_count - 1].region == content->region)
        return true;
    if (!dp_reserve(&content->runs, &content->run_capacity, content->run_count + 1, sizeof *content->runs))
        return false;
    content->runs[content->run_count++] = (page_run){(uint32_t)before, content->region};
    return true;
}

/* A block of links: at least three of them, with nearly all of the text, and short. Running text has fewer, lists of
 * articles with their summaries longer ones. */
static bool is_links(const page_region *region) {
    return region->kind & CONTAINER && region->links >= 3 &&
           (uint64_t)region->link_bytes * 10 >= (uint64_t)region->bytes * 7 && region->link_bytes / region->links <= 80;
}

/* Bytes of text: of a part that stays, and of all. */
typedef struct share {
    uint64_t kept, all;
} share;

/* 300 bytes are about 50 words, enough shingles to identify a page. Less is enough for a page with little text. */
static bool enough(share of) {
    return of.kept >= 300 || of.kept * 4 >= of.all;
}

/* Adds up what is in each region. */
static void add_up(page_region *regions, size_t count) {
    for (size_t i = count; i-- > 1;) {
        page_region *parent = &regions[regions[i].parent];
        parent->bytes += regions[i].bytes;
        parent->link_bytes += regions[i].link_bytes;
        parent->links += regions[i].links;
    }
}

/* What a region inherits from its parent. */
static uint8_t inherited(const page_region *region, const page_region *outer) {
    uint8_t reasons = outer->reasons;
    if (region->kind & MAIN)
        return IN_MAIN;
    if (region->kind & ARTICLE)
        reasons &= (uint8_t)~NAMED;
    if (region->kind & ARTICLE && !(reasons & FRAME))
        reasons |= IN_MAIN;
    return reasons;
}

/* Whether the page says what is its content. */
static bool has_main(const page_region *regions, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (regions[i].kind & (MAIN | ARTICLE) && regions[i].bytes)
            return true;
    return false;
}

/* Gives each region its reasons, own and inherited. */
static void give_reasons(page_region *regions, size_t count) {
    bool says_main = has_main(regions, count);
    for (size_t i = 1; i < count; i++) {
        page_region *region = &regions[i];
        if (!says_main && (uint64_t)region->bytes * 2 > regions[0].bytes)
            region->reasons &= (uint8_t)~NAMED;
        region->reasons |= inherited(region, &regions[region->parent]);
        if (!(region->reasons & INTRODUCED) && is_links(region))
            region->reasons |= LINKS;
    }
}

static uint32_t run_end(const page_text *content, size_t run) {
    return run + 1 < content->run_count ? content->runs[run + 1].start : (uint32_t)content->text.size;
}

/* How much is left without the regions that have one of `reasons`, of those that have all of `part`. */
static share left_without(const page_text *content, uint8_t reasons, uint8_t part) {
    share of = {0, 0};
    for (size_t i = 0; i < content->run_count; i++) {
        uint8_t has = content->regions[content->runs[i].region].reasons;
        uint32_t bytes = run_end(content, i) - content->runs[i].start;
        of.all += (has & part) == part ? bytes : 0;
        of.kept += (has & part) == part && !(has & reasons) ? bytes : 0;
    }
    return of;
}

/* Closes the gaps of dropped runs. White space dropped with a run is restored before the next. */
static void keep_without(page_text *content, uint8_t reasons) {
    char *text = content->text.data, due = 0;
    size_t size = 0;
    for (size_t i = 0; i < content->run_count; i++) {
        const char *from = text + content->runs[i].start, *end = text + run_end(content, i);
        char first = is_space(*from) ? *from : 0;
        if (content->regions[content->runs[i].region].reasons & reasons) {
            due = due == '\n' ? due : first ? first : due;
            continue;
        }
        due = due == '\n' || !first ? due : first;
        from += first != 0;
        if (size && due)
            text[size++] = due;
        memmove(text + size, from, (size_t)(end - from));
        size += (size_t)(end - from);
        due = 0;
    }
    content->text.size = size;
}

/* Decides which regions stay; the text is then what they hold. */
static void drop_regions(page_text *content, doppel_content which) {
    if (which == DOPPEL_CONTENT_ALL)
        return;
    size_t level = 0;
    add_up(content->regions, content->region_count);
    give_reasons(content->regions, content->region_count);
    uint8_t part = left_without(content, 0, IN_MAIN).all ? IN_MAIN : 0;
    while (levels[level] && !enough(left_without(content, levels[level], part)))
        level++;
    if (levels[level])
        keep_without(content, levels[level]);
}

/* ---- the events of the parser ----
 *
 * The parser (libxml2's, for HTML) repairs the nesting: every start has its end. It uses no network and only HTML's
 * entities, builds no tree, and only reports events; the stack of open elements below mirrors its own. */

typedef struct page_parts {
    page_text content;
    dp_buffer title, canonical, language;
    bool has_title, has_canonical, has_language;
} page_parts;

/* Deeper than this the middle of the stack is dropped, as browsers flatten at 512: an unmatched end tag is searched in
 * all of it, and must not cost more the deeper a page is. */
#define DEPTH 512
#define DEPTH_KEPT 64

/* Elements looked up before; the parser gives equal names at equal addresses. */
#define KNOWN 64

typedef struct opened {
    const page_element *element;
    uint32_t region; /* the one to go back to */
    bool link, heading_kept;
} opened;

typedef struct page_parsing {
    page_parts *parts;
    htmlParserCtxtPtr parser;
    opened stack[DEPTH + 1];
    size_t depth;
    size_t invisible; /* depth of the outermost invisible element; 0: none */
    size_t title;     /* depth of the title element; 0: none */
    size_t links;     /* open ones */
    size_t mains;     /* open elements with headers of their own, not the page's */
    char title_gap;
    bool failed;              /* no memory */
    jmp_buf out_of_parser;    /* for a parser that is out of memory and does not return */
    const xmlChar *complaint; /* where the parser complained last, and how often in a row */
    size_t complaints;
    struct {
        const xmlChar *name;
        const page_element *element;
    } known[KNOWN];
} page_parsing;

static const page_element *element_of(page_parsing *p, const xmlChar *name) {
    size_t slot = (uintptr_t)name / 8 * 0x9E3779B1u >> 16 & (KNOWN - 1);
    if (p->known[slot].name != name) {
        p->known[slot].name = name;
        p->known[slot].element = find_element((const char *)name);
    }
    return p->known[slot].element;
}

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

/* Copies a value without white space at its ends, the first time only. */
static void take(page_parsing *p, const char *value, dp_buffer *to, bool *has) {
    char gap = 0;
    if (*has || !value)
        return;
    to->size = 0;
    p->failed |= !collapse(to, value, strlen(value), &gap);
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

static void read_self(page_parsing *p, const page_element *element, const attributes *a) {
    page_parts *parts = p->parts;
    if (element->kind & HTML)
        take(p, a->lang, &parts->language, &parts->has_language);
    else if (element->kind & META_LINK && a->rel && is_canonical(a->rel))
        take(p, a->href, &parts->canonical, &parts->has_canonical);
    else if (element->kind & TITLE && !parts->has_title)
        p->title = p->depth;
}

/* The first title is the page's; others are ignored. */
static bool hides(const page_parsing *p, const page_element *element, const attributes *a) {
    return element->kind & INVISIBLE || a->hidden || (element->kind & DIALOG && !a->open) ||
           (element->kind & TITLE && p->title != p->depth) || (a->style && style_hides(a->style));
}

/* The reasons to drop an element, by its type and its names. */
static uint8_t reasons_of(const page_parsing *p, const page_element *element, const attributes *a, uint16_t *kind) {
    uint8_t role = a->role ? role_reasons(a->role) : 0, reasons = element->reasons;
    if (role & ROLE_MAIN)
        *kind |= MAIN | WHOLE;
    if (*kind & WHOLE)
        return 0;
    if (*kind & HEADING && p->mains)
        reasons = 0;
    reasons |= role;
    if ((a->class && name_reasons(a->class)) || (a->id && name_reasons(a->id)))
        reasons |= NAMED;
    return reasons;
}

/* Opens a region for an element that may be dropped, or that protects its content from being dropped. */
static void enter(page_parsing *p, opened *top, const page_element *element, const attributes *a) {
    page_text *content = &p->parts->content;
    uint16_t kind = element->kind;
    uint8_t reasons = reasons_of(p, element, a, &kind);
    top->heading_kept = kind & (MAIN | ARTICLE);
    p->mains += top->heading_kept;
    top->link = kind & LINK && a->href;
    p->links += top->link;
    if (reasons || kind & (CONTAINER | MAIN | ARTICLE))
        p->failed |=
            !open_region(content, content->region, &(page_region){.kind = kind, .reasons = reasons}, &content->region);
    content->regions[content->region].links += top->link;
}

static void break_words(page_parsing *p, const page_element *element) {
    if (element->kind & (BREAKS | CELL))
        set_gap(&p->parts->content, element->kind & BREAKS ? '\n' : ' ');
}

/* Forgets the middle of both stacks, that of the parser and the one here. */
static void flatten(page_parsing *p) {
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
    page_parsing *p = user;
    const page_element *element = element_of(p, name);
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
    page_parsing *p = user;
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
    page_parsing *p = user;
    if (p->invisible || p->failed)
        return;
    if (p->title)
        p->failed = !collapse(&p->parts->title, (const char *)text, (size_t)length, &p->title_gap);
    else
        p->failed = !add_text(&p->parts->content, (const char *)text, (size_t)length, p->links != 0);
}

/* The parser complains where it repairs a page, which is ignored, and when it has no memory. It may also fail to notice
 * that, and then complains at the same place forever, even when told to stop: longjmp ends it. */
#define COMPLAINTS 10000

static void on_error(void *user, xmlErrorPtr error) {
    page_parsing *p = user;
    const xmlChar *at = p->parser && p->parser->input ? p->parser->input->cur : NULL;
    p->complaints = at == p->complaint ? p->complaints + 1 : 0;
    p->complaint = at;
    p->failed |= error->code == XML_ERR_NO_MEMORY || p->complaints >= COMPLAINTS;
    if (p->failed && p->parser)
        longjmp(p->out_of_parser, 1);
}

static bool parts_reset(page_parts *parts) {
    parts->title.size = parts->canonical.size = parts->language.size = 0;
    parts->has_title = parts->has_canonical = parts->has_language = false;
    return reset_text(&parts->content);
}

static void set_up(page_parsing *p) {
    htmlParserCtxtPtr parser = p->parser;
    htmlCtxtUseOptions(parser, HTML_PARSE_RECOVER | HTML_PARSE_NONET | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                                   HTML_PARSE_IGNORE_ENC);
    *parser->sax = (htmlSAXHandler){
        .startElement = on_start, .endElement = on_end, .characters = on_text, .ignorableWhitespace = on_text};
    parser->userData = p;
    parser->charset = XML_CHAR_ENCODING_UTF8;
}

/* False: no memory. */
static bool parse(page_parsing *p, const char *html, size_t length) {
    p->parser = htmlCreateMemoryParserCtxt(html, (int)length);
    if (!p->parser)
        return false;
    if (!setjmp(p->out_of_parser)) {
        set_up(p);
        htmlParseDocument(p->parser);
        p->failed |= p->parser->errNo == XML_ERR_NO_MEMORY;
    }
    htmlParserCtxtPtr parser = p->parser;
    p->parser = NULL; /* errors from here on must not jump */
    htmlFreeParserCtxt(parser);
    return !p->failed;
}

/* Fills `parts` from a page in clean UTF-8. Errors: DOPPEL_ERROR_MEMORY. The error handler is per thread: it is
 * restored afterwards. */
static doppel_status parse_page(page_parts *parts, const char *html, size_t length) {
    if (!parts_reset(parts))
        return DOPPEL_ERROR_MEMORY;
    if (!length)
        return DOPPEL_OK;
    page_parsing p = {.parts = parts};
    xmlStructuredErrorFunc before = xmlStructuredError;
    void *before_user = xmlStructuredErrorContext;
    xmlSetStructuredErrorFunc(&p, on_error);
    bool parsed = parse(&p, html, length);
    xmlSetStructuredErrorFunc(before_user, before);
    return parsed ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* ---- the calls ---- */

struct doppel_page_reader {
    dp_decoder decoder;
    dp_buffer repaired;
    page_parts parts;
};

/* The parser's own tables, which all threads share and none writes. */
static pthread_once_t parser_once = PTHREAD_ONCE_INIT;

doppel_status doppel_page_reader_create(doppel_page_reader **reader) {
    pthread_once(&parser_once, xmlInitParser);
    *reader = calloc(1, sizeof **reader);
    return *reader ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

void doppel_page_reader_free(doppel_page_reader *reader) {
    if (!reader)
        return;
    dp_decoder_close(&reader->decoder);
    dp_buffer_free(&reader->repaired);
    free_text(&reader->parts.content);
    dp_buffer_free(&reader->parts.title);
    dp_buffer_free(&reader->parts.canonical);
    dp_buffer_free(&reader->parts.language);
    free(reader);
}

static void give(const dp_buffer *from, bool has, const char **data, size_t *length) {
    *data = has ? from->data : NULL;
    *length = has ? from->size : 0;
}

static void give_parts(const page_parts *parts, doppel_page *page) {
    page->text.data = parts->content.text.size ? parts->content.text.data : "";
    page->text.length = parts->content.text.size;
    give(&parts->title, parts->has_title, &page->title.data, &page->title.length);
    give(&parts->canonical, parts->has_canonical, &page->canonical.data, &page->canonical.length);
    give(&parts->language, parts->has_language, &page->language.data, &page->language.length);
}

doppel_status doppel_page_read(doppel_page_reader *reader, doppel_slice html, const char *charset,
                               doppel_content content, doppel_page *page) {
    size_t mark;
    doppel_slice text;
    *page = (doppel_page){.text.data = ""};
    const dp_charset *found = dp_charset_of(html.data, html.length, charset, &mark);
    if (!found)
        return DOPPEL_ERROR_MEMORY;
    DP_TRY(dp_decoder_run(&reader->decoder, found, html.data + mark, html.length - mark, &text));
    DP_TRY(dp_page_repair(&reader->repaired, &text));
    if (text.length > INT_MAX)
        return DOPPEL_ERROR_INPUT;
    DP_TRY(parse_page(&reader->parts, text.data, text.length));
    drop_regions(&reader->parts.content, content);
    give_parts(&reader->parts, page);
    page->charset = found->name;
    return DOPPEL_OK;
}

doppel_status doppel_document_text(doppel_page_reader *reader, const doppel_document *document, doppel_content content,
                                   doppel_page *page) {
    doppel_status status = DOPPEL_OK;
    *page = (doppel_page){.text.data = document->text.data ? document->text.data : "",
                          .text.length = document->text.length};
    if (document->html.data && !document->text.length)
        status = doppel_page_read(reader, document->html, document->charset, content, page);
    if (document->title.data) {
        page->title.data = document->title.data;
        page->title.length = document->title.length;
    }
    return status;
}
