/* groups.c - the largest groups: what is kept, and how copies differ from it, word by word. */
#include "report/report.h"

#include "report/diff.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Words that are not folded: of a run that both have, at its ends, and before its middle is folded at all; of a run
 * that one has; of a kept text by itself. */
enum { SAME_END = 10, SAME_WHOLE = 28, CHANGE_END = 24, CHANGE_WHOLE = 60, BEGINNING = 60 };

/* Changes of a copy that are not folded; groups that are listed by their ids; words and bytes of a text without a title
 * that stand for it. */
enum { MOST_CHANGES = 16, MOST_LISTED = 20000, TITLE_WORDS = 12, TITLE_BYTES = 120 };

/* Groups that are open when the page opens: the first with differences to show. */
enum { OPEN_GROUPS = 3 };

/* A run of words, its middle folded if it is long. */
static void write_run(html *page, const diff_text *t, const diff_run *run) {
    static const char *const all_tags[][2] = {{"", ""}, {"<del>", "</del>"}, {"<ins>", "</ins>"}};
    static const fold middle[] = {{"cut same", "word the same", "words the same"}, {"cut", "word", "words"}};
    bool same = run->kind == DIFF_SAME;
    const char *const *tags = all_tags[run->kind];
    size_t whole = same ? SAME_WHOLE : CHANGE_WHOLE, shown = same ? SAME_END : CHANGE_END;
    size_t end = run->first + run->count;
    if (run->count <= whole) {
        html_words(page, t, run->first, end, tags);
        return;
    }
    html_words(page, t, run->first, run->first + shown, tags);
    html_fold_words(page, t, run->first + shown, end - shown, tags, &middle[!same]);
    html_words(page, t, end - shown, end, tags);
}

/* What a run is taken from, and where its words are in it. */
typedef struct placed_run {
    const diff_text *text;
    size_t start, end; /* bytes, up to the next word */
} placed_run;

static placed_run place_of(const diff_text *a, const diff_text *b, const diff_run *run) {
    const diff_text *t = run->kind == DIFF_ADDED ? b : a;
    size_t end = run->first + run->count;
    return (placed_run){t, (size_t)t->ranges.range[run->first].start,
                        end < t->words ? (size_t)t->ranges.range[end].start : t->length};
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Whether a space is missing between two runs: the first may be the end of its text, where no space follows, or end
 * with a mark of punctuation that the other text lacks. Words removed and those in their place are always apart. */
static bool lacks_space(placed_run before, placed_run next, bool replaces) {
    bool space_before = before.end && is_space(before.text->text[before.end - 1]);
    bool space_next = next.start && is_space(next.text->text[next.start - 1]);
    return !space_before && (space_next || replaces);
}

/* The runs [from, end) of a difference. */
static void write_runs(html *page, const diff_text *a, const diff_text *b, const diff *d, size_t from, size_t end) {
    for (size_t i = from; i < end; i++) {
        const diff_run *run = &d->run[i];
        bool replaces = i && run->kind == DIFF_ADDED && run[-1].kind == DIFF_REMOVED;
        if (i && lacks_space(place_of(a, b, run - 1), place_of(a, b, run), replaces))
            html_put(page, " ");
        write_run(page, run->kind == DIFF_ADDED ? b : a, run);
    }
}

/* What both have and what one has, in the order of the texts; of many changes, all but the first are folded. */
static void write_changes(html *page, const diff_text *a, const diff_text *b, const diff *d) {
    static const fold more = {"cut", "more change", "more changes"};
    size_t changes = 0, left = 0, bytes = 0, end = d->count;
    for (size_t i = 0; i < d->count; i++) {
        placed_run place = place_of(a, b, &d->run[i]);
        bool change = d->run[i].kind != DIFF_SAME;
        if (change && changes++ == MOST_CHANGES)
            end = i;
        left += change && i >= end;
        bytes += i >= end ? place.end - place.start : 0;
    }
    html_put(page, "<div class=\"text\" dir=\"auto\">");
    write_runs(page, a, b, d, 0, end);
    if (left && html_fold_begin(page, &more, left, bytes)) {
        write_runs(page, a, b, d, end, d->count);
        html_fold_end(page);
    }
    html_put(page, "</div>");
}

/* ---- documents ---- */

static void show_id(report *r, html *page, uint64_t document) {
    size_t length = 0;
    const char *id = report_id(r, document, &length);
    if (!id && page->status == DOPPEL_OK)
        page->status = DOPPEL_ERROR_MEMORY;
    html_id(page, id ? id : "", length, LONG_ID);
}

/* A title, or the first words of a text that has none. */
static void show_title(html *page, const shown_document *d, const diff_text *text) {
    size_t words = text->words < TITLE_WORDS ? text->words : TITLE_WORDS;
    size_t end = words ? (size_t)text->ranges.range[words - 1].end : 0,
           shown = whole_characters(text->text, end, TITLE_BYTES);
    html_put(page, "<bdi>");
    if (d->title_length)
        html_text(page, d->title, d->title_length);
    else
        html_text(page, text->text, shown);
    html_put(page, d->title_cut || (!d->title_length && (shown < end || words < text->words)) ? "\xE2\x80\xA6</bdi>"
                                                                                              : "</bdi>");
}

static void write_url(html *page, const shown_document *d) {
    if (!d->url_length)
        return;
    html_put(page, " \xC2\xB7 ");
    html_link(page, d->url, d->url_length);
}

static void write_kept(report *r, html *page, const shown_document *kept, const diff_text *text) {
    static const char *const none[2] = {"", ""};
    static const fold rest = {"cut same", "more word", "more words"};
    html_put(page, "<div class=\"document\"><h4>Kept: ");
    show_id(r, page, kept->near.b);
    html_put(page, "</h4>");
    if (!kept->found) {
        html_put(page, "<p class=\"meta\">A known document: its text is not read for a report.</p></div>");
        return;
    }
    html_put(page, kept->text_cut ? "<p class=\"meta\">a long text, of which this page has the first "
                                  : "<p class=\"meta\">");
    html_count(page, text->words, "word", "words");
    write_url(page, kept);
    html_put(page, "</p><div class=\"text\" dir=\"auto\">");
    size_t shown = text->words < BEGINNING + 10 ? text->words : BEGINNING;
    html_words(page, text, 0, shown, none);
    if (shown < text->words)
        html_fold_words(page, text, shown, text->words, none, &rest);
    html_put(page, "</div></div>");
}

static const char *name_of_reason(const doppel_near *near) {
    switch (near->reason) {
    case DOPPEL_REASON_URL: return "the same address";
    case DOPPEL_REASON_TITLE: return "nearly the same title";
    default: return "similar content";
    }
}

static void write_evidence(html *page, const doppel_near *near) {
    html_put(page, name_of_reason(near));
    if (!isnan(near->similarity))
        html_format(page, " \xC2\xB7 similarity %.3f", near->similarity);
    if (near->distance >= 0)
        html_format(page, " \xC2\xB7 fingerprints differ in %d %s", near->distance,
                    near->distance == 1 ? "bit" : "bits");
}

static void write_counted(html *page, const diff *d) {
    size_t gone = 0, new = 0;
    for (size_t i = 0; i < d->count; i++) {
        gone += d->run[i].kind == DIFF_REMOVED ? d->run[i].count : 0;
        new += d->run[i].kind == DIFF_ADDED ? d->run[i].count : 0;
    }
    html_put(page, " \xC2\xB7 ");
    html_count(page, gone, "word", "words");
    html_put(page, " only in the kept one, ");
    html_number(page, new);
    html_put(page, " only here");
    if (d->unaligned)
        html_put(page, " (too much differs to be aligned)");
}

static doppel_status write_copy(report *r, html *page, const shown_document *copy, const diff_text *kept) {
    diff_text text;
    diff d = {0};
    doppel_status status = diff_split(&text, copy->text ? copy->text : "", copy->text_length);
    if (status == DOPPEL_OK && kept)
        status = diff_words(kept, &text, &d);
    html_put(page, "<div class=\"document\"><h4>Removed: ");
    show_id(r, page, copy->near.b);
    html_put(page, "</h4><p class=\"meta\">");
    write_evidence(page, &copy->near);
    if (status == DOPPEL_OK && kept)
        write_counted(page, &d);
    if (copy->text_cut)
        html_put(page, " \xC2\xB7 a long text, of which only the beginning is compared");
    write_url(page, copy);
    html_put(page, "</p>");
    if (status == DOPPEL_OK && kept && page->written < MOST_PAGE)
        write_changes(page, kept, &text, &d);
    else
        page->full = page->full || kept;
    html_put(page, "</div>");
    diff_free(&d);
    diff_text_free(&text);
    return status;
}

/* ---- groups ---- */

static void write_identical(report *r, html *page, const shown_group *g) {
    if (!g->identical)
        return;
    html_put(page, "<div class=\"document\"><h4>");
    html_count(page, g->identical, "identical copy", "identical copies");
    html_put(page, "</h4><p class=\"meta\">");
    for (size_t i = 0; i < g->same_count; i++) {
        html_put(page, i ? ", " : "");
        show_id(r, page, g->same[i]);
    }
    if (g->identical > g->same_count) {
        html_put(page, " and ");
        html_number(page, g->identical - g->same_count);
        html_put(page, " more");
    }
    html_put(page, "</p></div>");
}

/* What they have in hundredths is shown once where it is the same. */
static void write_similarities(html *page, double least, double most) {
    char from[16], to[16];
    snprintf(from, sizeof from, "%.2f", least);
    snprintf(to, sizeof to, "%.2f", most);
    html_format(page, strcmp(from, to) != 0 ? " (similarity %s to %s)" : " (similarity %s)", from, to);
}

static void write_summary(report *r, html *page, const shown_group *g, const diff_text *kept) {
    uint64_t others = g->size - 1 - g->identical;
    bool titled = g->kept.title_length || kept->words;
    html_put(page, "<summary><h3>");
    if (titled)
        show_title(page, &g->kept, kept);
    else
        show_id(r, page, g->original);
    html_put(page, "</h3><span class=\"soft\">");
    if (titled) {
        show_id(r, page, g->original);
        html_put(page, " \xC2\xB7 ");
    }
    html_count(page, g->size, "document", "documents");
    html_put(page, ": 1 kept");
    if (g->identical) {
        html_put(page, ", ");
        html_count(page, g->identical, "identical copy", "identical copies");
    }
    if (others) {
        html_put(page, ", ");
        html_count(page, others, "near copy", "near copies");
    }
    if (g->most > 0)
        write_similarities(page, g->least, g->most);
    html_put(page, "</span></summary>");
}

static void write_group(report *r, html *page, const shown_group *g) {
    diff_text kept;
    doppel_status status = diff_split(&kept, g->kept.text ? g->kept.text : "", g->kept.text_length);
    write_summary(r, page, g, &kept);
    html_put(page, "<div class=\"inside\">");
    if (status == DOPPEL_OK)
        write_kept(r, page, &g->kept, &kept);
    for (size_t i = 0; i < g->copies && status == DOPPEL_OK; i++)
        status = write_copy(r, page, &g->copy[i], g->kept.found ? &kept : NULL);
    write_identical(r, page, g);
    if (g->size - 1 > g->identical + g->copies) {
        html_put(page, "<p class=\"soft\">");
        html_count(page, g->size - 1 - g->identical - g->copies, "more near copy is", "more near copies are");
        html_put(page, " not shown: at least as similar as these.</p>");
    }
    html_put(page, "</div>");
    diff_text_free(&kept);
    if (page->status == DOPPEL_OK)
        page->status = status;
}

/* Every group by its kept document, for a search in the page: browsers open what is folded when they find something in
 * it. */
static void write_all_groups(report *r, html *page) {
    uint64_t listed = 0, count = doppel_batch_count(r->batch) + r->stats.in_index;
    if (r->figures.groups <= r->groups)
        return;
    html_put(page, "<details class=\"group all\"><summary><h3>All groups</h3><span class=\"soft\">");
    html_number(page, r->figures.groups);
    html_put(page, ", by the id of the kept document, for the search of your browser</span></summary><div "
                   "class=\"inside\"><ul class=\"all\">");
    for (uint64_t i = 0; i < count && listed < MOST_LISTED; i++) {
        if (r->size[i] < 2)
            continue;
        listed++;
        html_put(page, "<li>");
        show_id(r, page, i);
        html_put(page, " <span class=\"soft\">");
        html_count(page, r->size[i], "document", "documents");
        html_put(page, "</span></li>");
    }
    html_put(page, "</ul>");
    if (r->figures.groups > listed) {
        html_put(page, "<p class=\"soft\">And ");
        html_number(page, r->figures.groups - listed);
        html_put(page, " more: <code>doppel cluster</code> lists them.</p>");
    }
    html_put(page, "</div></details>");
}

void report_write_groups(report *r, html *page) {
    if (!r->groups)
        return;
    html_put(page, "<section id=\"groups\"><h2>The largest groups</h2><p class=\"soft\">Of ");
    html_count(page, r->figures.groups, "group", "groups");
    html_put(page, ", the ");
    html_number(page, r->groups);
    html_put(page, " largest. In a copy, <del>struck out</del> is what only the kept document has, "
                   "<ins>underlined</ins> what only the copy has; case and punctuation do not count. The least similar "
                   "copies come first.</p>");
    for (size_t i = 0, open = 0; i < r->groups; i++) {
        bool opens = r->group[i].copies && open < OPEN_GROUPS;
        open += opens;
        html_put(page, opens ? "<details class=\"group\" open>" : "<details class=\"group\">");
        write_group(r, page, &r->group[i]);
        html_put(page, "</details>");
    }
    write_all_groups(r, page);
    html_put(page, "</section>");
}
