/* page_rules.c - what the elements of a page are, in one table, and which roles and names stand for the frame around
 * its content.
 *
 * A rule is a function of the element alone. What the rules of all elements together do to the page is decided in
 * page_content.c. */
#include "text/page.h"

#include <stdlib.h>
#include <strings.h>

#define BLOCK DP_BREAKS
#define BOX (DP_BREAKS | DP_CONTAINER)

/* Sorted by name. */
static const dp_element elements[] = {
    {"a", DP_LINK, 0},
    {"address", BLOCK, 0},
    {"applet", DP_INVISIBLE, 0},
    {"article", BLOCK | DP_ARTICLE | DP_WHOLE, 0},
    {"aside", BLOCK, DP_FRAME},
    {"audio", DP_INVISIBLE, 0},
    {"blockquote", BLOCK, 0},
    {"body", BLOCK | DP_WHOLE, 0},
    {"br", BLOCK, 0},
    {"button", DP_CELL, DP_CONTROL},
    {"canvas", DP_INVISIBLE, 0},
    {"caption", BLOCK, 0},
    {"center", BOX, 0},
    {"datalist", DP_INVISIBLE, 0},
    {"dd", BLOCK, 0},
    {"details", BLOCK, 0},
    {"dialog", BLOCK | DP_DIALOG, 0},
    {"dir", BOX, 0},
    {"div", BOX, 0},
    {"dl", BOX, 0},
    {"dt", BLOCK, 0},
    {"embed", DP_INVISIBLE, 0},
    {"fieldset", BLOCK, 0},
    {"figcaption", BLOCK, 0},
    {"figure", BLOCK, 0},
    {"footer", BLOCK, DP_FRAME},
    {"form", BOX, 0},
    {"h1", BLOCK, 0},
    {"h2", BLOCK, 0},
    {"h3", BLOCK, 0},
    {"h4", BLOCK, 0},
    {"h5", BLOCK, 0},
    {"h6", BLOCK, 0},
    {"head", BLOCK | DP_WHOLE, 0},
    {"header", BLOCK | DP_HEADING, DP_FRAME},
    {"hgroup", BLOCK, 0},
    {"hr", BLOCK, 0},
    {"html", BLOCK | DP_HTML | DP_WHOLE, 0},
    {"iframe", DP_INVISIBLE, 0},
    {"img", DP_INVISIBLE, 0},
    {"input", DP_CELL, 0},
    {"isindex", BLOCK, 0},
    {"legend", BLOCK, 0},
    {"li", BLOCK, 0},
    {"link", DP_META_LINK, 0},
    {"listing", BLOCK, 0},
    {"main", BLOCK | DP_MAIN | DP_WHOLE, 0},
    {"menu", BOX, 0},
    {"nav", BLOCK, DP_FRAME},
    {"noembed", DP_INVISIBLE, 0},
    {"noframes", DP_INVISIBLE, 0},
    {"noscript", DP_INVISIBLE, 0},
    {"object", DP_INVISIBLE, 0},
    {"ol", BOX, 0},
    {"optgroup", DP_CELL, 0},
    {"option", DP_CELL, 0},
    {"output", 0, 0},
    {"p", BOX, 0},
    {"plaintext", BLOCK, 0},
    {"pre", BLOCK, 0},
    {"rp", DP_INVISIBLE, 0},
    {"script", DP_INVISIBLE, 0},
    {"search", BLOCK, DP_FRAME},
    {"section", BOX, 0},
    {"select", DP_CELL, DP_CONTROL},
    {"style", DP_INVISIBLE, 0},
    {"summary", BLOCK, 0},
    {"svg", DP_INVISIBLE, 0},
    {"table", BOX, 0},
    {"tbody", BLOCK, 0},
    {"td", DP_CELL | DP_CONTAINER, 0},
    {"template", DP_INVISIBLE, 0},
    {"textarea", DP_INVISIBLE, 0},
    {"tfoot", BLOCK, 0},
    {"th", DP_CELL, 0},
    {"thead", BLOCK, 0},
    {"title", DP_TITLE, 0},
    {"tr", BLOCK, 0},
    {"ul", BOX, 0},
    {"video", DP_INVISIBLE, 0},
    {"xmp", BLOCK, 0},
};

/* Unknown elements stand inside a line, but for those that a site has made itself, which have a dash in their name and
 * are mostly boxes. */
static const dp_element unknown = {"", 0, 0}, homemade = {"", BLOCK, 0};

static int by_name(const void *name, const void *element) {
    return strcmp(name, ((const dp_element *)element)->name);
}

const dp_element *dp_element_find(const char *name) {
    const dp_element *found = bsearch(name, elements, sizeof elements / sizeof *elements, sizeof *elements, by_name);
    return found ? found : strchr(name, '-') ? &homemade : &unknown;
}

/* ---- roles ---- */

static const struct {
    const char *role;
    uint8_t reasons;
} roles[] = {
    {"navigation", DP_FRAME}, {"banner", DP_FRAME},      {"contentinfo", DP_FRAME}, {"complementary", DP_FRAME},
    {"search", DP_FRAME},     {"menu", DP_FRAME},        {"menubar", DP_FRAME},     {"toolbar", DP_FRAME},
    {"dialog", DP_FRAME},     {"alertdialog", DP_FRAME}, {"main", DP_ROLE_MAIN},
};

uint8_t dp_role_reasons(const char *role) {
    size_t length = strcspn(role, " \t\n\r");
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strlen(roles[i].role) == length && !strncasecmp(role, roles[i].role, length))
            return roles[i].reasons;
    return 0;
}

/* ---- names ---- */

/* Words of classes and ids that stand for the frame around content. Each is a whole word: what stands between other
 * characters than letters, or begins with a capital after a small letter (`mainMenu`). Sorted. */
static const char *const frame_words[] = {
    "ads",        "advert",  "advertisement", "advertising", "breadcrumb", "breadcrumbs", "consent",    "cookie",
    "cookiebar",  "cookies", "footer",        "gdpr",        "masthead",   "menu",        "menubar",    "menus",
    "nav",        "navbar",  "navbars",       "navfooter",   "navheader",  "navigation",  "navlinks",   "navmenu",
    "newsletter", "pager",   "pagination",    "related",     "share",      "sharebar",    "sharedaddy", "sharing",
    "sidebar",    "sidenav", "siteheader",    "skiplink",    "skiplinks",  "social",      "sponsored",  "submenu",
    "subnav",     "toolbar", "topbar",        "topnav",
};

/* Words that, before one of those, say that the element is beside it, not of it: `has-sidebar`, `with-nav`. */
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

/* The next word from *at on, in small letters; an empty one when it is too long to be of interest. False: there is
 * none. *apart: white space stands before it. */
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

uint8_t dp_name_reasons(const char *names) {
    char word[WORD_ROOM];
    bool apart, beside = false;
    while (next_word(&names, word, &apart)) {
        beside &= !apart;
        if (!beside &&
            bsearch(word, frame_words, sizeof frame_words / sizeof *frame_words, sizeof *frame_words, by_word))
            return DP_NAMED;
        beside = is_beside(word);
    }
    return 0;
}

/* ---- styles ---- */

/* Whether a declaration `name: value` stands in the style, in any case and with any white space. */
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

bool dp_style_hides(const char *style) {
    return declares(style, "display", "none") || declares(style, "visibility", "hidden");
}
