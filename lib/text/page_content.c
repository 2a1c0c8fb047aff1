/* page_content.c - the text of a page by regions, and which of them are its main content.
 *
 * reset, then open and add as the page goes, then finish. Text is gathered once, in order; a run of it knows the region
 * it stands in. At the end each region has its reasons to drop out: its own and those of what it stands in. What stays
 * is a function of the page alone:
 *
 * - a region with a name (class or id) of the frame that holds more than half of the page is no frame, but what all of
 *   the page stands in (unless the page says what is its content: main, article);
 * - a block of links (see is_links) drops out, unless a colon introduces it;
 * - if what is left is too little to be the content (see `enough`), some reasons are not good enough for this page, and
 *   it is tried again with fewer: an index of links keeps its links, and a page that is all navigation stays whole.
 *   Where the page says what is its content, that part alone is looked at: a page of few words in a large frame is no
 *   reason to keep the frame. */
#include "text/page.h"

#include <stdlib.h>

/* Which reasons count, in turn, until enough is left. */
static const uint8_t levels[] = {DP_FRAME | DP_NAMED | DP_LINKS | DP_CONTROL, DP_FRAME | DP_NAMED | DP_CONTROL,
                                 DP_FRAME | DP_CONTROL, 0};

bool dp_content_reset(dp_content *content) {
    content->text.size = content->run_count = content->region_count = 0;
    content->gap = 0;
    content->region = 0;
    return dp_content_open(content, 0, &(dp_region){.kind = DP_WHOLE}, &content->region);
}

void dp_content_free(dp_content *content) {
    dp_buffer_free(&content->text);
    free(content->runs);
    free(content->regions);
    *content = (dp_content){0};
}

/* Whether the text ends with a colon, of the narrow kind or the wide one (U+FF1A). */
static bool after_colon(const dp_buffer *text) {
    size_t size = text->size;
    return (size && text->data[size - 1] == ':') || (size >= 3 && !memcmp(text->data + size - 3, "\xEF\xBC\x9A", 3));
}

bool dp_content_open(dp_content *content, uint32_t parent, const dp_region *region, uint32_t *number) {
    if (!dp_reserve(&content->regions, &content->region_capacity, content->region_count + 1, sizeof *content->regions))
        return false;
    *number = (uint32_t)content->region_count++;
    content->regions[*number] = *region;
    content->regions[*number].parent = parent;
    content->regions[*number].reasons |= after_colon(&content->text) ? DP_INTRODUCED : 0;
    return true;
}

/* ---- text ---- */

static inline bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool dp_collapse(dp_buffer *out, const char *text, size_t length, char *gap) {
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

bool dp_content_add(dp_content *content, const char *text, size_t length, bool in_link) {
    size_t before = content->text.size;
    if (!dp_collapse(&content->text, text, length, &content->gap))
        return false;
    size_t added = content->text.size - before;
    if (!added)
        return true;
    dp_region *region = &content->regions[content->region];
    region->bytes += (uint32_t)added;
    region->link_bytes += in_link ? (uint32_t)added : 0;
    if (content->run_count && content->runs[content->run_count - 1].region == content->region)
        return true;
    if (!dp_reserve(&content->runs, &content->run_capacity, content->run_count + 1, sizeof *content->runs))
        return false;
    content->runs[content->run_count++] = (dp_run){(uint32_t)before, content->region};
    return true;
}

/* ---- what stays ---- */

/* A block of links: at least three of them, with nearly all of the text, and short. Running text has fewer, lists of
 * articles with their summaries longer ones. */
static bool is_links(const dp_region *region) {
    return region->kind & DP_CONTAINER && region->links >= 3 &&
           (uint64_t)region->link_bytes * 10 >= (uint64_t)region->bytes * 7 && region->link_bytes / region->links <= 80;
}

/* Bytes of text: of a part that stays, and of all. */
typedef struct share {
    uint64_t kept, all;
} share;

/* 300 bytes are about 50 words, which make enough shingles to know a page by. Less will do for a page that has little
 * in all. */
static bool enough(share of) {
    return of.kept >= 300 || of.kept * 4 >= of.all;
}

/* Adds up what is in each region. */
static void add_up(dp_region *regions, size_t count) {
    for (size_t i = count; i-- > 1;) {
        dp_region *parent = &regions[regions[i].parent];
        parent->bytes += regions[i].bytes;
        parent->link_bytes += regions[i].link_bytes;
        parent->links += regions[i].links;
    }
}

/* What a region has from the one it stands in. */
static uint8_t inherited(const dp_region *region, const dp_region *outer) {
    uint8_t reasons = outer->reasons;
    if (region->kind & DP_MAIN)
        return DP_IN_MAIN;
    if (region->kind & DP_ARTICLE)
        reasons &= (uint8_t)~DP_NAMED;
    if (region->kind & DP_ARTICLE && !(reasons & DP_FRAME))
        reasons |= DP_IN_MAIN;
    return reasons;
}

/* Whether the page says what is its content. */
static bool has_main(const dp_region *regions, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (regions[i].kind & (DP_MAIN | DP_ARTICLE) && regions[i].bytes)
            return true;
    return false;
}

/* Gives each region its reasons, own and inherited. */
static void give_reasons(dp_region *regions, size_t count) {
    bool told = has_main(regions, count);
    for (size_t i = 1; i < count; i++) {
        dp_region *region = &regions[i];
        if (!told && (uint64_t)region->bytes * 2 > regions[0].bytes)
            region->reasons &= (uint8_t)~DP_NAMED;
        region->reasons |= inherited(region, &regions[region->parent]);
        if (!(region->reasons & DP_INTRODUCED) && is_links(region))
            region->reasons |= DP_LINKS;
    }
}

static uint32_t run_end(const dp_content *content, size_t run) {
    return run + 1 < content->run_count ? content->runs[run + 1].start : (uint32_t)content->text.size;
}

/* How much is left without the regions that have one of `reasons`, of those that have all of `part`. */
static share left_without(const dp_content *content, uint8_t reasons, uint8_t part) {
    share of = {0, 0};
    for (size_t i = 0; i < content->run_count; i++) {
        uint8_t has = content->regions[content->runs[i].region].reasons;
        uint32_t bytes = run_end(content, i) - content->runs[i].start;
        of.all += (has & part) == part ? bytes : 0;
        of.kept += (has & part) == part && !(has & reasons) ? bytes : 0;
    }
    return of;
}

/* Moves what stays together. White space that went with a run that drops out comes back before the next. */
static void keep_without(dp_content *content, uint8_t reasons) {
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

void dp_content_finish(dp_content *content, doppel_content which) {
    if (which == DOPPEL_CONTENT_ALL)
        return;
    size_t level = 0;
    add_up(content->regions, content->region_count);
    give_reasons(content->regions, content->region_count);
    uint8_t part = left_without(content, 0, DP_IN_MAIN).all ? DP_IN_MAIN : 0;
    while (levels[level] && !enough(left_without(content, levels[level], part)))
        level++;
    if (levels[level])
        keep_without(content, levels[level]);
}
