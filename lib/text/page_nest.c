/* page_nest.c - closes what a section leaves open.
 *
 * `<nav><div>...</nav>` ends both for a browser. The parser, by the rules of older HTML, finds that the end of a lesser
 * element cannot close a div, and takes the rest of the page for navigation. So the div gets its own end here. */
#include "text/page_tame.h"

#include <strings.h>

/* Elements of more than a line that the parser knows nothing of, or that can drop out with all in them. */
static const char *const sections[] = {"article", "aside",  "button",  "details", "dialog",
                                       "figure",  "footer", "header",  "main",    "nav",
                                       "object",  "search", "section", "svg",     "template"};

static bool is_section(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if ((name[0] | 0x20) == sections[i][0] && !strncasecmp(name, sections[i], length) && !sections[i][length])
            return true;
    return false;
}

static bool is_div(const char *name, size_t length) {
    return length == 3 && !strncasecmp(name, "div", 3);
}

void dp_nest_start(dp_nest *nest, const char *name, size_t length) {
    if (nest->depth && is_div(name, length)) {
        nest->open[nest->depth - 1].divs++;
    } else if (nest->depth < DP_NEST_DEPTH && length > 2 && is_section(name, length)) {
        nest->open[nest->depth].name = name;
        nest->open[nest->depth].length = length;
        nest->open[nest->depth++].divs = 0;
    }
}

/* Closes what the innermost section has open, and itself if asked for. */
static void close_top(dp_nest *nest, dp_taming *t, const char *place, bool itself) {
    nest->depth--;
    for (size_t i = 0; i < nest->open[nest->depth].divs; i++)
        dp_taming_insert(t, place, "</div>", 6);
    if (itself) {
        dp_taming_insert(t, place, "</", 2);
        dp_taming_insert(t, place, nest->open[nest->depth].name, nest->open[nest->depth].length);
        dp_taming_insert(t, place, ">", 1);
    }
}

void dp_nest_end(dp_nest *nest, dp_taming *t, const char *place, const char *name, size_t length) {
    size_t at = nest->depth;
    if (nest->depth && is_div(name, length)) {
        size_t *divs = &nest->open[nest->depth - 1].divs;
        *divs -= *divs != 0;
        return;
    }
    while (at && !(nest->open[at - 1].length == length && !strncasecmp(nest->open[at - 1].name, name, length)))
        at--;
    while (at && nest->depth >= at)
        close_top(nest, t, place, nest->depth > at);
}
