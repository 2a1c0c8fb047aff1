/* pairs.c - two documents that share text, for people.
 *
 * On the page, passages that follow each other closely in both texts are one stretch: a paragraph in which some words
 * were replaced. A stretch is a row, the longest ones first: the first text on the left, the second on the right, each
 * with a few words before and after it; what both have is shaded. */
#include "report/pairs.h"

#include "report/diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Passages with at most GAP words between them, in both texts, are one stretch, until it has STRETCH shared words: then
 * left and right fit on one screen, even on a phone. CONTEXT words are shown around it. */
enum { GAP = 12, STRETCH = 120, CONTEXT = 14 };

/* Of a passage of more than PASSAGE_WHOLE words, all but PASSAGE_END words at either end is folded: these are 17 lines
 * of a phone, whose screen has both texts then. */
enum { PASSAGE_WHOLE = 140, PASSAGE_END = 50 };

/* Stretches of a pair that are not folded, and pairs that are open when the page opens. Stretches of fewer than
 * FRAGMENT words are often stock phrases, and are folded where there are longer ones. */
enum { MOST_STRETCHES = 60, OPEN_PAIRS = 5, FRAGMENT = 10 };

static const char style[] = ":root{--shared:#ffe69c;--shared-ink:#3d2c00}"
                            "@media(prefers-color-scheme:dark){:root{--shared:#5a4708;--shared-ink:#ffe9ad}}"
                            "mark{background:var(--shared);color:var(--shared-ink);border-radius:3px;padding:1px 2px;"
                            "-webkit-box-decoration-break:clone;box-decoration-break:clone}"
                            ".stretch{border-top:1px solid var(--line);padding:12px 0;gap:8px 28px}"
                            ".stretch h4{grid-column:1/-1;font-weight:600;font-size:14px;color:var(--soft)}"
                            ".stretch .meta{margin:0}details.more>summary{cursor:pointer;padding:12px 0;"
                            "border-top:1px solid var(--line);color:var(--link)}"
                            /* Both texts begin at the same height, however long their names are. */
                            ".stretch>div{display:grid;grid-template-rows:subgrid;grid-row:span 2;row-gap:4px}"
                            "@media(max-width:760px){.stretch>div{display:block}.stretch .text{padding-bottom:8px}}"
                            /* Printers leave backgrounds out. */
                            "@media print{mark{text-decoration:underline;print-color-adjust:exact}}";

size_t pair_same_folder(const shared_pair *pair, const char *name, size_t common) {
    for (size_t i = 0; i < 2; i++) {
        const shared_side *side = &pair->side[i];
        size_t same = 0;
        while (same < common && same < side->id_length && side->id[same] == name[same])
            same++;
        common = same;
    }
    while (common && name[common - 1] != '/')
        common--;
    return common;
}

void pair_shorten_names(shared_pair *pair, size_t folder) {
    for (size_t i = 0; i < 2; i++) {
        pair->side[i].id += folder;
        pair->side[i].id_length -= folder;
    }
}

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

double pair_share(const shared_pair *pair, size_t side) {
    uint64_t all = pair->side[side].words;
    return pair->words < all ? (double)pair->words / (double)all : all ? 1 : 0;
}

void pair_percent(char text[16], double share) {
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
        pair_percent(share, pair_share(pair, i));
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
    static const char *const shaded[2] = {"<mark>", "</mark>"};
    static const fold middle = {"cut", "shared word", "shared words"};
    if (span.end - span.first <= PASSAGE_WHOLE) {
        html_words(page, t, span.first, span.end, shaded);
        return;
    }
    html_words(page, t, span.first, span.first + PASSAGE_END, shaded);
    html_fold_words(page, t, span.first + PASSAGE_END, span.end - PASSAGE_END, shaded, &middle);
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
    static const char *const none[2] = {"", ""};
    word_span stretch = {span_of(t, &pair->passages[passages.first], side).first,
                         span_of(t, &pair->passages[passages.end - 1], side).end};
    word_span shown = around(pair, t, side, stretch);
    size_t at = shown.first;
    html_put(page, "<div><p class=\"meta\">");
    html_id(page, pair->side[side].id, pair->side[side].id_length, LONG_ID);
    html_put(page, "</p><div class=\"text\" dir=\"auto\">");
    if (at)
        html_put(page, "<span class=\"skip\">\xE2\x80\xA6</span> ");
    for (size_t i = passages.first; i < passages.end; i++) {
        word_span span = span_of(t, &pair->passages[i], side);
        html_words(page, t, at, span.first, none);
        write_passage(page, t, span);
        at = span.end;
    }
    html_words(page, t, at, shown.end, none);
    html_put(page, shown.end < t->words ? "<span class=\"skip\">\xE2\x80\xA6</span></div></div>" : "</div></div>");
}

/* Whether both texts have a passage in the part that is there. */
static bool is_there(const shared_pair *pair, const doppel_passage *p) {
    return p->a_end <= pair->side[0].length && p->b_end <= pair->side[1].length;
}

/* Some passages that follow each other, [first, end), and how many words they have together. */
typedef struct stretch {
    size_t first, end;
    uint64_t words;
} stretch;

static void write_stretch(html *page, const shared_pair *pair, const diff_text texts[2], const stretch *s) {
    html_put(page, "<div class=\"two stretch\"><h4>");
    html_count(page, s->words, "shared word", "shared words");
    html_put(page, "</h4>");
    write_side(page, pair, &texts[0], 0, (word_span){s->first, s->end});
    write_side(page, pair, &texts[1], 1, (word_span){s->first, s->end});
    html_put(page, "</div>");
}

/* The longest first; of equal ones, the first of the text. */
static int compare_stretches(const void *x, const void *y) {
    const stretch *a = x, *b = y;
    if (a->words != b->words)
        return a->words > b->words ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

/* The stretches of the first `there` passages, the longest first; NULL: no memory. */
static stretch *find_stretches(const shared_pair *pair, const diff_text texts[2], size_t there, size_t *count) {
    stretch *all = malloc((there + 1) * sizeof *all);
    *count = 0;
    for (size_t at = 0; all && at < there;) {
        stretch *s = &all[(*count)++];
        *s = (stretch){at, at + 1, pair->passages[at].words};
        for (; s->end < there && s->words < STRETCH; s->end++) {
            if (!continues(texts, &pair->passages[s->end - 1], &pair->passages[s->end]))
                break;
            s->words += pair->passages[s->end].words;
        }
        at = s->end;
    }
    if (all)
        qsort(all, *count, sizeof *all, compare_stretches);
    return all;
}

/* How many of the stretches are not folded. */
static size_t count_open(const stretch *all, size_t count) {
    size_t open = 0;
    while (open < count && open < MOST_STRETCHES && (all[open].words >= FRAGMENT || all[0].words < FRAGMENT))
        open++;
    return open;
}

static size_t count_passages(const stretch *all, size_t from, size_t end) {
    size_t passages = 0;
    for (size_t i = from; i < end; i++)
        passages += all[i].end - all[i].first;
    return passages;
}

static void write_stretches(html *page, const shared_pair *pair, const diff_text texts[2]) {
    size_t there = 0, count, at = 0;
    while (there < pair->count && is_there(pair, &pair->passages[there]))
        there++;
    stretch *all = find_stretches(pair, texts, there, &count);
    if (!all) {
        page->status = DOPPEL_ERROR_MEMORY;
        return;
    }
    for (size_t open = count_open(all, count); at < open && page->written < MOST_PAGE; at++)
        write_stretch(page, pair, texts, &all[at]);
    if (at < count && page->written < MOST_FOLDED) {
        html_put(page, "<details class=\"more\"><summary>");
        html_count(page, count_passages(all, at, count), "more passage", "more passages");
        html_put(page, all[at].words < FRAGMENT ? " of a few words</summary>" : "</summary>");
        for (; at < count && page->written < MOST_FOLDED; at++)
            write_stretch(page, pair, texts, &all[at]);
        html_put(page, "</details>");
    }
    page->full = page->full || at < count;
    size_t left = count_passages(all, at, count) + pair->count - there;
    if (left) {
        html_put(page, "<p class=\"soft\">");
        html_count(page, left, "more passage is", "more passages are");
        html_put(page, at < count ? " not on this page, which is full.</p>"
                                  : " not on this page: only the first 256 KB of a text are.</p>");
    }
    free(all);
}

/* ---- what a pair shares ---- */

static void write_name(html *page, const shared_pair *pair, size_t side) {
    html_id(page, pair->side[side].id, pair->side[side].id_length, SHORT_ID);
}

static void write_share(html *page, const shared_pair *pair, size_t side) {
    char share[16];
    pair_percent(share, pair_share(pair, side));
    html_put(page, share[0] == '<' ? "less than " : share[0] == '>' ? "more than " : "");
    html_put(page, share + strcspn(share, "0123456789"));
}

static void write_bold_name(html *page, const shared_pair *pair, size_t side) {
    html_put(page, "<b>");
    write_name(page, pair, side);
    html_put(page, "</b>");
}

void pair_page_sentence(html *page, const shared_pair *pair) {
    size_t of = pair_share(pair, 1) > pair_share(pair, 0), in = !of;
    uint64_t all = pair->side[of].words;
    if (!pair->words) {
        write_bold_name(page, pair, 0);
        html_put(page, " and ");
        write_bold_name(page, pair, 1);
        html_put(page, " share no passage.");
        return;
    }
    html_number(page, pair->words);
    html_put(page, " of the ");
    html_count(page, all > pair->words ? all : pair->words, "word", "words");
    html_put(page, " of ");
    write_bold_name(page, pair, of);
    html_put(page, " (");
    write_share(page, pair, of);
    html_put(page, pair->words == 1 ? ") is also in " : ") are also in ");
    write_bold_name(page, pair, in);
    html_put(page, ".");
}

static void write_summary(html *page, const shared_pair *pair, size_t rank) {
    html_put(page, "<summary><h3>");
    if (rank) {
        html_number(page, rank);
        html_put(page, ". ");
    }
    for (size_t i = 0; i < 2; i++) {
        html_put(page, i ? " and " : "");
        html_id(page, pair->side[i].id, pair->side[i].id_length, LONG_ID);
    }
    html_put(page, "</h3><span class=\"soft\">");
    if (!pair->count) {
        html_put(page, "no shared passage</span></summary>");
        return;
    }
    html_count(page, pair->words, "shared word", "shared words");
    html_put(page, " in ");
    html_count(page, pair->count, "passage", "passages");
    if (pair->count > 1) {
        html_put(page, ", the longest of ");
        html_number(page, pair->longest);
    }
    html_put(page, ": ");
    write_share(page, pair, 0);
    html_put(page, " of ");
    write_name(page, pair, 0);
    html_put(page, ", ");
    write_share(page, pair, 1);
    html_put(page, " of ");
    write_name(page, pair, 1);
    html_put(page, "</span></summary>");
}

/* ---- all of it ---- */

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
    if (!pair->count)
        html_put(page, "<p>They have no run of words in common that is long enough to be shown.</p>");
    html_put(page, "</div></details>\n");
    diff_text_free(&texts[0]);
    diff_text_free(&texts[1]);
    if (page->status == DOPPEL_OK)
        page->status = status;
}

void pair_page_end(html *page, bool ranked) {
    html_put(page,
             "<details class=\"about\"><summary>How to read this page</summary><ul>"
             "<li>A passage is a run of words that both documents have; case and punctuation do not count. "
             "Percentages are the words in passages, of all words of a document. The longest passages come first, and "
             "short ones are folded.</li>"
             "<li><i>[\xE2\x80\xA6 84 shared words \xE2\x80\xA6]</i> stands for the middle of a long passage: "
             "press it to see the words. The browser\xE2\x80\x99s search finds them, and they are printed.</li>"
             "<li>Shared text alone does not show who copied: documents may quote a third one, and who wrote first "
             "cannot be seen from the texts.</li>");
    if (ranked)
        html_put(page, "<li>The pairs are in the order of the larger of their two percentages.</li>");
    html_put(page, "</ul></details>");
    html_page_end(page);
}
