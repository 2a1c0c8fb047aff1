/* pairs.c - two documents that share text, for people.
 *
 * On the page, passages that follow each other closely in both texts are one stretch: a paragraph in which some words
 * were replaced. A stretch is a row: the first text on the left, the second on the right, each with a few words before
 * and after it; what both have is shaded. */
#include "report/pairs.h"

#include "report/diff.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Passages with at most GAP words between them, in both texts, are one stretch, until it has STRETCH shared words: then
 * left and right fit on one screen, even on a phone. CONTEXT words are shown around it. */
enum { GAP = 12, STRETCH = 120, CONTEXT = 14 };

/* A passage of more than PASSAGE_WHOLE words is shown by PASSAGE_END words at either end: 17 lines of a phone, whose
 * screen has both texts then. */
enum { PASSAGE_WHOLE = 140, PASSAGE_END = 50 };

/* Stretches shown of a pair, the first ones, and pairs that are open when the page opens. */
enum { MOST_STRETCHES = 60, OPEN_PAIRS = 5 };

static const char style[] = ":root{--shared:#ffe69c;--shared-ink:#3d2c00}"
                            "@media(prefers-color-scheme:dark){:root{--shared:#5a4708;--shared-ink:#ffe9ad}}"
                            "mark{background:var(--shared);color:var(--shared-ink);border-radius:3px;padding:1px 2px;"
                            "-webkit-box-decoration-break:clone;box-decoration-break:clone}"
                            ".stretch{border-top:1px solid var(--line);padding:12px 0;gap:8px 28px}"
                            ".stretch h4{grid-column:1/-1;font-weight:600;font-size:14px;color:var(--soft)}"
                            ".stretch .meta{margin:0 0 4px}.percent{font-variant-numeric:tabular-nums}"
                            "@media(max-width:760px){.stretch .text{padding-bottom:8px}}"
                            /* Printers leave backgrounds out. */
                            "@media print{mark{text-decoration:underline;font-weight:600;print-color-adjust:exact}}";

size_t pair_sum(shared_pair *pair) {
    size_t longest = 0;
    pair->words = 0;
    for (size_t i = 0; i < pair->count; i++) {
        pair->words += pair->passages[i].words;
        if (pair->passages[i].words > pair->passages[longest].words)
            longest = i;
    }
    pair->longest = pair->count ? pair->passages[longest].words : 0;
    return longest;
}

/* A share in per cent: whole ones, but never 0 or 100 for what is not. */
static void percent(char text[16], double share) {
    double rounded = floor(100 * share + 0.5);
    if (share > 0 && rounded < 1)
        snprintf(text, 16, "< 1 %%");
    else if (share < 1 && rounded > 99)
        snprintf(text, 16, "> 99 %%");
    else
        snprintf(text, 16, "%.0f %%", rounded);
}

/* ---- lines ---- */

/* How many bytes of a text fit into `columns`, if each character takes one: whole words where possible. */
static size_t fitting(doppel_slice text, size_t columns) {
    size_t at = 0, space = 0;
    for (size_t used = 0; at < text.length; at++) {
        used += ((unsigned char)text.data[at] & 0xC0) != 0x80;
        if (used > columns)
            return space ? space : at;
        space = text.data[at] == ' ' ? at : space;
    }
    return at;
}

void pair_lines(text_buffer *out, const shared_pair *pair, size_t rank, size_t width) {
    enum { INDENT = 15, MARKS = 9 }; /* MARKS: quotation marks, and dots where there is more */
    for (size_t i = 0; i < 2; i++) {
        char share[16];
        percent(share, pair->side[i].share);
        if (i)
            text_put(out, "      ");
        else
            text_format(out, "%4zu. ", rank);
        text_format(out, "%7s  ", share);
        text_safe(out, pair->side[i].id, pair->side[i].id_length);
        text_put(out, "\n");
    }
    text_format(out, "%*s%llu word%s in %zu passage%s", INDENT, "", (unsigned long long)pair->words,
                pair->words == 1 ? "" : "s", pair->count, pair->count == 1 ? "" : "s");
    if (pair->count > 1)
        text_format(out, ", the longest of %llu", (unsigned long long)pair->longest);
    text_put(out, ":\n");
    if (pair->quote.length) {
        size_t room = width > INDENT + MARKS + 20 ? width - INDENT - MARKS : 20;
        size_t shown = fitting(pair->quote, room);
        text_format(out, "%*s\"", INDENT, "");
        text_safe(out, pair->quote.data, shown);
        text_put(out, shown < pair->quote.length || pair->quote_cut ? " ...\"\n" : "\"\n");
    }
}

/* ---- the page ---- */

/* The words [first, end) of a text. */
typedef struct word_span {
    size_t first, end;
} word_span;

static size_t first_word_from(const diff_text *t, uint64_t byte) {
    size_t low = 0, high = t->words;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->ranges.range[middle].start < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static word_span span_of(const diff_text *t, const doppel_passage *p, size_t side) {
    return (word_span){first_word_from(t, side ? p->b_start : p->a_start),
                       first_word_from(t, side ? p->b_end : p->a_end)};
}

/* Whether a passage continues the stretch that ends with the one before it. */
static bool continues(const diff_text texts[2], const doppel_passage *before, const doppel_passage *next) {
    for (size_t i = 0; i < 2; i++) {
        size_t end = span_of(&texts[i], before, i).end, from = span_of(&texts[i], next, i).first;
        if (from < end || from - end > GAP)
            return false;
    }
    return true;
}

static void write_passage(html *page, const diff_text *t, word_span span) {
    static const char *shaded[2] = {"<mark>", "</mark>"};
    if (span.end - span.first <= PASSAGE_WHOLE) {
        html_words(page, t, span.first, span.end, shaded);
        return;
    }
    html_words(page, t, span.first, span.first + PASSAGE_END, shaded);
    html_skip(page, span.end - span.first - 2 * PASSAGE_END, "shared word", "shared words");
    html_words(page, t, span.end - PASSAGE_END, span.end, shaded);
}

/* The words around a stretch that are no passage: where they begin and end. */
static word_span around(const shared_pair *pair, const diff_text *t, size_t side, word_span stretch) {
    word_span shown = {stretch.first > CONTEXT ? stretch.first - CONTEXT : 0,
                       stretch.end + CONTEXT < t->words ? stretch.end + CONTEXT : t->words};
    for (size_t i = 0; i < pair->count; i++) {
        word_span other = span_of(t, &pair->passages[i], side);
        if (other.end <= stretch.first && other.end > shown.first)
            shown.first = other.end;
        if (other.first >= stretch.end && other.first < shown.end)
            shown.end = other.first;
    }
    return shown;
}

/* One side of a stretch: its passages, what is between them, and some words around it. */
static void write_side(html *page, const shared_pair *pair, const diff_text *t, size_t side, word_span passages) {
    static const char *none[2] = {"", ""};
    word_span stretch = {span_of(t, &pair->passages[passages.first], side).first,
                         span_of(t, &pair->passages[passages.end - 1], side).end};
    word_span shown = around(pair, t, side, stretch);
    size_t at = shown.first;
    html_put(page, "<div><p class=\"meta\"><bdi>");
    html_text(page, pair->side[side].id, pair->side[side].id_length);
    html_put(page, "</bdi></p><p class=\"text\" dir=\"auto\">");
    if (at)
        html_put(page, "<span class=\"skip\">\xE2\x80\xA6</span> ");
    for (size_t i = passages.first; i < passages.end; i++) {
        word_span span = span_of(t, &pair->passages[i], side);
        html_words(page, t, at, span.first, none);
        write_passage(page, t, span);
        at = span.end;
    }
    html_words(page, t, at, shown.end, none);
    html_put(page, shown.end < t->words ? "<span class=\"skip\">\xE2\x80\xA6</span></p></div>" : "</p></div>");
}

/* Whether both texts have a passage in the part that is there. */
static bool is_there(const shared_pair *pair, const doppel_passage *p) {
    return p->a_end <= pair->side[0].length && p->b_end <= pair->side[1].length;
}

static void write_stretches(html *page, const shared_pair *pair, const diff_text texts[2]) {
    size_t there = 0, shown = 0, at = 0;
    while (there < pair->count && is_there(pair, &pair->passages[there]))
        there++;
    while (at < there && shown < MOST_STRETCHES) {
        uint64_t words = 0;
        size_t end = at;
        do {
            words += pair->passages[end++].words;
        } while (end < there && words < STRETCH && continues(texts, &pair->passages[end - 1], &pair->passages[end]));
        html_put(page, "<div class=\"two stretch\"><h4>");
        html_count(page, words, "shared word", "shared words");
        html_put(page, "</h4>");
        write_side(page, pair, &texts[0], 0, (word_span){at, end});
        write_side(page, pair, &texts[1], 1, (word_span){at, end});
        html_put(page, "</div>");
        at = end;
        shown++;
    }
    if (at < pair->count) {
        html_put(page, "<p class=\"soft\">");
        html_count(page, pair->count - at, "more passage is", "more passages are");
        html_put(page, " not shown.</p>");
    }
}

static void write_summary(html *page, const shared_pair *pair, size_t rank) {
    html_put(page, "<summary><h3>");
    if (rank) {
        html_number(page, rank);
        html_put(page, ". ");
    }
    for (size_t i = 0; i < 2; i++) {
        html_put(page, i ? " and <bdi>" : "<bdi>");
        html_text(page, pair->side[i].id, pair->side[i].id_length);
        html_put(page, "</bdi>");
    }
    char first[16], second[16];
    percent(first, pair->side[0].share);
    percent(second, pair->side[1].share);
    html_put(page, "</h3><span class=\"soft\">");
    html_string(page, first);
    html_put(page, " of the first is in the second, ");
    html_string(page, second);
    html_put(page, " of the second in the first \xC2\xB7 ");
    html_count(page, pair->words, "word", "words");
    html_put(page, " in ");
    html_count(page, pair->count, "passage", "passages");
    html_put(page, "</span></summary>");
}

void pair_page_begin(html *page) {
    html_page_begin(page, style, "Shared text found by doppel");
}

void pair_page_pair(html *page, const shared_pair *pair, size_t rank) {
    diff_text texts[2] = {{0}, {0}};
    doppel_status status = diff_split(&texts[0], pair->side[0].text, pair->side[0].length);
    if (status == DOPPEL_OK)
        status = diff_split(&texts[1], pair->side[1].text, pair->side[1].length);
    html_put(page, rank <= OPEN_PAIRS ? "<details class=\"group\" open>" : "<details class=\"group\">");
    write_summary(page, pair, rank);
    html_put(page, "<div class=\"inside\">");
    if (status == DOPPEL_OK)
        write_stretches(page, pair, texts);
    html_put(page, "</div></details>\n");
    diff_text_free(&texts[0]);
    diff_text_free(&texts[1]);
    if (page->status == DOPPEL_OK)
        page->status = status;
}
