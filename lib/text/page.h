/* page.h - HTML to content: what the parts of lib/text/page*.c share.
 *
 * page.c (charset, the public calls) -> page_tame.c (what the parser cannot bear) -> page_parse.c (the parser's events,
 * what is visible) -> page_rules.c (what an element is, one table) -> page_content.c (which regions stay). */
#ifndef DP_PAGE_H
#define DP_PAGE_H

#include "base/base.h"
#include "text/charset.h"

/* ---- page_rules.c: what an element is ---- */

enum {
    /* how it stands in the text */
    DP_BREAKS = 1,    /* words end where it begins and ends */
    DP_INVISIBLE = 2, /* nothing in it is text of the page */
    DP_CONTAINER = 4, /* can be a block of links */
    DP_LINK = 8,      /* its text is in a link, if it has an address */
    DP_CELL = 16,     /* as DP_BREAKS, by a space */
    /* what is special about it */
    DP_TITLE = 32,
    DP_META_LINK = 64,
    DP_HTML = 128,
    DP_DIALOG = 256,   /* hidden unless it is open */
    DP_HEADING = 512,  /* a header: that of the page, unless it stands in the main part or an article */
    DP_MAIN = 1024,    /* nothing outside of it makes it drop */
    DP_ARTICLE = 2048, /* no name outside of it makes it drop */
    DP_WHOLE = 4096    /* cannot be dropped itself */
};

/* Why a region drops out of the main content, and what else holds for all in it. */
enum {
    DP_FRAME = 1,       /* its element or role: navigation, header, footer, aside */
    DP_NAMED = 2,       /* its class or id: a menu, breadcrumbs, share buttons */
    DP_LINKS = 4,       /* nearly all of it is links */
    DP_CONTROL = 8,     /* buttons and choices of forms */
    DP_INTRODUCED = 16, /* a colon stands before it: what it lists belongs to the text */
    DP_IN_MAIN = 32     /* the page says that its content is here */
};

typedef struct dp_element {
    char name[12];
    uint16_t kind;   /* DP_BREAKS ... */
    uint8_t reasons; /* DP_FRAME ... */
} dp_element;

/* The element of this name; one for all unknown ones. */
const dp_element *dp_element_find(const char *name);

/* What a role, and the words of a class or an id, say: reasons; DP_ROLE_MAIN for role=main. */
#define DP_ROLE_MAIN 128
uint8_t dp_role_reasons(const char *role);
uint8_t dp_name_reasons(const char *names);

/* Whether a style hides its element. */
bool dp_style_hides(const char *style);

/* ---- page_content.c: the text and its regions ---- */

/* A part of the page: an element that may drop out, with what stands in it. */
typedef struct dp_region {
    uint32_t parent;                   /* comes before it; the first one, the page, is its own */
    uint16_t kind;                     /* of its element */
    uint8_t reasons;                   /* its own; after dp_content_finish, those of what it stands in, too */
    uint32_t bytes, link_bytes, links; /* of its own; after dp_content_finish, of all in it */
} dp_region;

/* Text from `start` to the next run's start. */
typedef struct dp_run {
    uint32_t start, region;
} dp_run;

typedef struct dp_content {
    dp_buffer text; /* every run begins with the white space that parts it from the one before, if any */
    dp_run *runs;
    size_t run_count, run_capacity;
    dp_region *regions;
    size_t region_count, region_capacity;
    uint32_t region; /* the one that text is added to */
    char gap;        /* white space that is due before the next word; 0: none */
} dp_content;

bool dp_content_reset(dp_content *content);
void dp_content_free(dp_content *content);

/* Opens a region in `parent`; false: no memory. */
bool dp_content_open(dp_content *content, uint32_t parent, const dp_region *region, uint32_t *number);

/* Adds text, with each stretch of white space as one space. */
bool dp_content_add(dp_content *content, const char *text, size_t length, bool in_link);

/* White space, a space or a line feed, comes before the next word. */
static inline void dp_content_gap(dp_content *content, char gap) {
    if (content->gap != '\n')
        content->gap = gap;
}

/* Decides which regions stay; the text is then what they hold. */
void dp_content_finish(dp_content *content, doppel_content which);

/* Appends text to a buffer, with each stretch of white space as one space, none at the start. *gap is what is due
 * before the next word. */
bool dp_collapse(dp_buffer *out, const char *text, size_t length, char *gap);

/* ---- page_tame.c ---- */

/* Cuts tags of too many attributes: *html is then borrowed from `out`. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_page_tame(dp_buffer *out, doppel_slice *html);

/* ---- page_parse.c ---- */

typedef struct dp_page_parts {
    dp_content content;
    dp_buffer title, canonical, language;
    bool has_title, has_canonical, has_language;
} dp_page_parts;

/* Fills `parts` from a page in clean UTF-8 (dp_decoder_run). Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_page_parse(dp_page_parts *parts, const char *html, size_t length);

#endif
