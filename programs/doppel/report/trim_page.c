/* trim_page.c - the page of a trim, from head to foot: what came in and went out, how much of documents is cut, what
 * repeats most, documents before and after, those that were dropped or emptied, inputs, settings and timings. */
#include "report/diff.h"
#include "report/trim.h"

#include <stdio.h>
#include <string.h>

/* Style rules in addition to those of all reports. Texts keep their line breaks. */
static const char trim_style[] =
    ".three{grid-template-columns:repeat(3,minmax(0,1fr))}"
    ".lines{white-space:pre-line}td .text{padding:0}td .meta{margin:2px 0 0}"
    ".list tbody tr:first-child>*{border-top:1px solid var(--line)}.list th{width:14%}.list th:first-child{width:auto}"
    ".list th.wide{width:20%}"
    "@media(max-width:760px){.three{grid-template-columns:repeat(2,minmax(0,1fr))}.list th,.list th.wide{width:23%}}";

static const char ellipsis[] = "\xE2\x80\xA6";

/* A document that is mentioned: its id, which is a link where it is an address of the web and not shortened. */
static void mention(html *page, const char *id, size_t length) {
    if (length <= LONG_ID)
        html_link(page, id, length);
    else
        html_id(page, id, length, LONG_ID);
}

/* The address of a document, unless that is its id. */
static bool has_address(const char *url, size_t length, const char *id, size_t id_length) {
    return length && (length != id_length || memcmp(url, id, length) != 0);
}

/* ---- names ---- */

/* What is compared: a name for one and for several. */
static const char *name_of_unit(doppel_unit unit, bool several) {
    static const char *const names[][2] = {[DOPPEL_UNIT_LINE] = {"line", "lines"},
                                           [DOPPEL_UNIT_SENTENCE] = {"sentence", "sentences"},
                                           [DOPPEL_UNIT_PARAGRAPH] = {"paragraph", "paragraphs"},
                                           [DOPPEL_UNIT_PASSAGE] = {"passage", "passages"}};
    return names[unit][several];
}

/* What is repeated: "lines", "runs of 3 sentences", "passages of 50 words"; or one of them. */
static void write_windows(const doppel_trim_options *o, html *page, bool several) {
    if (o->unit == DOPPEL_UNIT_PASSAGE)
        html_format(page, "%s of %llu %s", name_of_unit(o->unit, several), (unsigned long long)o->words,
                    o->words == 1 ? "word" : "words");
    else if (o->run > 1)
        html_format(page, "%s of %llu %s", several ? "runs" : "run", (unsigned long long)o->run,
                    name_of_unit(o->unit, true));
    else
        html_put(page, name_of_unit(o->unit, several));
}

/* ---- in and out ---- */

static void write_tile(html *page, uint64_t number, const char *what, double percent) {
    html_tile_begin(page, number);
    html_put(page, what);
    if (percent > 0)
        html_format(page, ", %.1f&nbsp;%%", percent);
    html_tile_end(page);
}

static void write_tiles(const trim_report *r, html *page) {
    const doppel_trim_stats *s = &r->stats;
    uint64_t documents = s->input.documents;
    html_put(page, "<div class=\"tiles three\">");
    html_tile_begin(page, documents);
    html_put(page, documents == 1 ? "document in, " : "documents in, ");
    html_count(page, s->words, "word", "words");
    html_tile_end(page);
    write_tile(page, s->documents_cut, s->documents_cut == 1 ? "document cut" : "documents cut",
               percent_of(s->documents_cut, documents));
    write_tile(page, s->words_cut, s->words_cut == 1 ? "word cut" : "words cut", percent_of(s->words_cut, s->words));
    html_tile_begin(page, s->spans);
    html_put(page, s->spans == 1 ? "repeated span in " : "repeated spans in ");
    html_count(page, r->cuts, "place", "places");
    html_tile_end(page);
    write_tile(page, s->dropped, s->dropped == 1 ? "document dropped" : "documents dropped",
               percent_of(s->dropped, documents));
    write_tile(page, s->emptied, s->emptied == 1 ? "document left empty" : "documents left empty",
               percent_of(s->emptied, documents));
    html_put(page, "</div>");
}

static void write_counts(const trim_report *r, html *page) {
    static const char *const names[][2] = {{"untouched", "untouched"},
                                           {"cut in part", "cut in part"},
                                           {"left empty", "left empty"},
                                           {"dropped", "dropped"}};
    const doppel_trim_stats *s = &r->stats;
    uint64_t documents = s->input.documents, untouched = r->documents[CUT_NONE];
    const uint64_t part[] = {untouched, documents - untouched - s->emptied - s->dropped, s->emptied, s->dropped};
    enum { PARTS = sizeof part / sizeof *part };
    html_put(page, "<section id=\"in-and-out\"><h2>In and out</h2>");
    write_tiles(r, page);
    if (documents) {
        picture_parts(page, "What became of the documents", part, PARTS);
        picture_legend(page, names, part, PARTS, documents);
    }
    html_put(page, "</section>");
}

/* ---- how much is cut ---- */

/* A bar this many times higher than the next would leave nothing to see of the others: it is not drawn. */
enum { TOO_HIGH = 4 };

/* Bars for the steps from `first` on; returns how many. */
static size_t step_bars(const uint64_t *count, size_t first, const char *what, bar *bars) {
    for (size_t i = first; i < CUT_STEPS; i++) {
        bar *b = &bars[i - first];
        int from = 10 * ((int)i - CUT_SOME);
        unsigned long long number = count[i];
        *b = (bar){.count = count[i], .apart = i == CUT_NONE};
        if (i == CUT_NONE) {
            snprintf(b->label, sizeof b->label, "none");
            snprintf(b->title, sizeof b->title, "nothing is cut: %llu %s", number, what);
        } else if (i == CUT_ALL) {
            snprintf(b->label, sizeof b->label, "100");
            snprintf(b->title, sizeof b->title, "all is cut: %llu %s", number, what);
        } else {
            snprintf(b->label, sizeof b->label, from ? "%d" : ">%d", from);
            snprintf(b->title, sizeof b->title, "%s %d %% to below %d %% is cut: %llu %s", from ? "from" : "more than",
                     from, from + 10, number, what);
        }
    }
    return CUT_STEPS - first;
}

static void write_document_bars(const trim_report *r, html *page) {
    uint64_t untouched = r->documents[CUT_NONE], most = 0;
    bar bars[CUT_STEPS];
    for (size_t i = CUT_SOME; i < CUT_STEPS; i++)
        most = r->documents[i] > most ? r->documents[i] : most;
    bool too_high = untouched > TOO_HIGH * most;
    html_figure_begin(page, "Documents by the share of their words cut");
    picture_bars(page, "Documents by the share of their words cut, in steps of 10 percent", bars,
                 step_bars(r->documents, too_high ? CUT_SOME : CUT_NONE, "documents", bars));
    html_put(page, "<figcaption>In percent; a bar begins at the number below it, and 100 means that all is cut. ");
    html_put(page, too_high ? "Not drawn: " : "The first bar: ");
    html_count(page, untouched, "document with nothing cut.", "documents with nothing cut.");
    html_put(page, "</figcaption></figure>");
}

static void write_word_bars(const trim_report *r, html *page) {
    bar bars[CUT_STEPS];
    uint64_t most = r->words_cut[CUT_ALL] + r->words_cut[CUT_ALL - 1];
    html_figure_begin(page, "Words cut, by the share their document lost");
    picture_bars(page, "Words cut, by the share of words their document lost, in steps of 10 percent", bars,
                 step_bars(r->words_cut, CUT_SOME, "words", bars));
    html_put(page, "<figcaption>The same steps, counting the words cut.");
    if (most)
        html_format(page, " %.1f&nbsp;%% of them come from documents that lost 90&nbsp;%% or more: copies of others.",
                    percent_of(most, r->stats.words_cut));
    html_put(page, "</figcaption></figure>");
}

static void write_histograms(const trim_report *r, html *page) {
    html_put(page, "<section id=\"cut\"><h2>How much is cut</h2>");
    if (r->stats.documents_cut) {
        html_put(page, "<div class=\"two\">");
        write_document_bars(r, page);
        write_word_bars(r, page);
        html_put(page, "</div>");
    } else {
        html_put(page, r->stats.input.documents ? "<p class=\"card\">Nothing is cut: nothing was found twice.</p>"
                                                : "<p class=\"card\">There is no document.</p>");
    }
    html_put(page, "</section>");
}

/* ---- what repeats most ---- */

/* The library gives at most this many bytes of a repeat: one as long as that may be truncated. */
enum { REPEAT_BYTES = 200, LONGEST_CHARACTER = 4 };

static void write_repeat(const trim_report *r, html *page, const doppel_repeat *repeat) {
    bool goes_on = repeat->text.length > REPEAT_BYTES - LONGEST_CHARACTER;
    html_put(page, "<tr><td><p class=\"text\" dir=\"auto\">");
    html_text(page, repeat->text.data, repeat->text.length);
    html_put(page, goes_on ? ellipsis : "");
    html_put(page, "</p><p class=\"meta\">");
    html_count(page, repeat->words, "word", "words");
    html_put(page, ", first in ");
    mention(page, repeat->id.data, repeat->id.length);
    html_put(page, "</p></td><td class=\"number\">");
    html_number(page, repeat->count);
    picture_share(page, (double)repeat->count / (double)r->repeat[0].count);
    html_put(page, "</td></tr>");
}

static void write_repeats(const trim_report *r, html *page) {
    if (!r->repeats)
        return;
    html_put(page, "<section id=\"repeats\"><h2>What repeats most</h2><p class=\"soft\">");
    html_number(page, r->stats.values);
    html_put(page, r->stats.values == 1 ? " " : " different ");
    write_windows(r->options, page, r->stats.values != 1);
    html_put(page, r->stats.values == 1 ? " is repeated" : " are repeated");
    if (r->stats.values > r->repeats) {
        html_put(page, "; these are the ");
        html_number(page, r->repeats);
        html_put(page, " with the most occurrences");
    }
    html_put(page,
             ". Words are compared: case and punctuation do not count.</p>"
             "<div class=\"card\"><table class=\"list\"><caption>Where each occurs first, and how often, "
             "the first one included</caption><thead><tr><th scope=\"col\">Text</th><th scope=\"col\" class=\"number "
             "wide\">Count</th></tr></thead><tbody>");
    for (size_t i = 0; i < r->repeats; i++)
        write_repeat(r, page, &r->repeat[i]);
    html_put(page, "</tbody></table></div></section>");
}

/* ---- documents before and after ---- */

/* Words shown of what is kept or cut: at its ends, and before it is shortened at all. */
enum { KEPT_END = 12, KEPT_WHOLE = 32, CUT_END = 30, CUT_WHOLE = 80 };

/* Bytes shown at most where words are few: of a long line of hyphens, or one endless word. */
enum { MOST_PIECE = 2000 };

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Bytes [from, to) of a text, white space outside the tags. */
static void write_piece(html *page, const char *text, size_t from, size_t to, const char *const tags[2]) {
    size_t first = from, last = to;
    while (first < to && is_space(text[first]))
        first++;
    while (last > first && is_space(text[last - 1]))
        last--;
    size_t shown = whole_characters(text + first, last - first, MOST_PIECE);
    html_text(page, text + from, first - from < MOST_PIECE ? first - from : 1);
    if (first < last) {
        html_put(page, tags[0]);
        html_text(page, text + first, shown);
        html_put(page, shown < last - first ? ellipsis : "");
        html_put(page, tags[1]);
        html_text(page, text + last, to - last < MOST_PIECE ? to - last : 1);
    }
}

/* The first word that starts at a byte or after it. */
static size_t word_from(const diff_text *t, uint64_t byte) {
    size_t low = 0, high = t->words;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->ranges.range[middle].start < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Text that is kept or cut, its middle folded if it is long. */
static void write_part(html *page, const diff_text *t, doppel_range part, bool cut) {
    static const char *const tags[][2] = {{"", ""}, {"<del>", "</del>"}};
    static const fold middle[] = {{"cut same", "word", "words"}, {"cut", "word, cut", "words, cut"}};
    size_t from = (size_t)part.start, to = (size_t)part.end, end = cut ? CUT_END : KEPT_END;
    size_t first = word_from(t, from), last = word_from(t, to);
    if (last - first <= (cut ? CUT_WHOLE : KEPT_WHOLE)) {
        write_piece(page, t->text, from, to, tags[cut]);
        return;
    }
    write_piece(page, t->text, from, (size_t)t->ranges.range[first + end].start, tags[cut]);
    html_fold_words(page, t, first + end, last - end, tags[cut], &middle[cut]);
    write_piece(page, t->text, (size_t)t->ranges.range[last - end].start, to, tags[cut]);
}

static void write_cut_text(html *page, const shown_trimmed *d, const diff_text *t) {
    uint64_t at = 0;
    html_put(page, "<div class=\"text lines\" dir=\"auto\">");
    html_put(page, d->text_begins ? "" : "<span class=\"skip\">[\xE2\x80\xA6]</span> ");
    for (size_t i = 0; i < d->cuts; at = d->cut[i++].end) {
        write_part(page, t, (doppel_range){at, d->cut[i].start}, false);
        write_part(page, t, d->cut[i], true);
    }
    if (d->cuts_in_all > d->cuts)
        html_skip(page, d->cuts_in_all - d->cuts, "more cut", "more cuts");
    else
        write_part(page, t, (doppel_range){at, t->length}, false);
    if (!d->text_ends && d->cuts_in_all == d->cuts)
        html_put(page, "<span class=\"skip\">[\xE2\x80\xA6]</span>");
    html_put(page, "</div>");
}

static void write_originals(html *page, const shown_trimmed *d) {
    html_put(page, "repeats ");
    for (size_t i = 0; i < d->originals; i++) {
        html_put(page, i ? ", " : "");
        mention(page, d->original[i].id, d->original[i].id_length);
        html_put(page, " (");
        html_count(page, d->original[i].words, "word", "words");
        html_put(page, i ? ")" : " in a row)");
    }
    if (d->originals == SHOWN_ORIGINALS)
        html_put(page, " and perhaps others");
}

static void write_summary(html *page, const shown_trimmed *d) {
    html_put(page, "<summary><h3>");
    html_id(page, d->id, d->id_length, LONG_ID);
    html_put(page, "</h3><span class=\"soft\">");
    html_number(page, d->words_cut);
    html_put(page, " of ");
    html_count(page, d->words, "word", "words");
    html_format(page, " cut (%.1f %%) in ", percent_of(d->words_cut, d->words));
    html_count(page, d->cuts_in_all, "place", "places");
    html_put(page, d->dropped ? "; dropped</span></summary>" : "</span></summary>");
}

static void write_trimmed(html *page, const shown_trimmed *d, bool opens) {
    diff_text text;
    doppel_status status = diff_split(&text, d->text, d->text_length);
    html_put(page, opens ? "<details class=\"group\" open>" : "<details class=\"group\">");
    write_summary(page, d);
    html_put(page, "<div class=\"inside\"><div class=\"document\"><p class=\"meta\">");
    write_originals(page, d);
    html_put(page, " \xC2\xB7 ");
    if (d->url_length) {
        html_link(page, d->url, d->url_length);
        html_put(page, " \xC2\xB7 ");
    }
    html_put(page, "<bdi>");
    html_string(page, d->file);
    html_put(page, "</bdi>");
    if (d->line)
        html_format(page, ", line %llu", (unsigned long long)d->line);
    html_put(page, "</p>");
    if (status == DOPPEL_OK)
        write_cut_text(page, d, &text);
    html_put(page, "</div></div></details>");
    diff_text_free(&text);
    if (page->status == DOPPEL_OK)
        page->status = status;
}

static bool has_documents(const trim_report *r) {
    size_t count = 0;
    for (size_t k = 0; k < LOST_KINDS; k++)
        count += r->kind[k].count;
    return count;
}

static void write_documents(const trim_report *r, html *page) {
    if (!has_documents(r))
        return;
    html_put(page, "<section id=\"documents\"><h2>Documents before and after</h2><p class=\"soft\">Some that lost "
                   "much, then some that "
                   "lost less, drawn at random from those that keep words. <del>Struck out</del> is what is cut; the "
                   "rest is kept, and is shown around the cuts.</p>");
    for (size_t k = 0; k < LOST_KINDS; k++)
        for (size_t i = 0; i < r->kind[k].count; i++)
            write_trimmed(page, &r->kind[k].document[i], !i);
    html_put(page, "</section>");
}

/* ---- dropped and emptied documents ---- */

static const char *why_lost(const lost_document *lost) {
    switch (lost->dropped) {
    case DOPPEL_DROPPED_REPEATS: return "dropped: it repeats something";
    case DOPPEL_DROPPED_BELOW: return "dropped: too few words are left";
    case DOPPEL_DROPPED_SHARE: return "dropped: too large a share is cut";
    default: return "left empty";
    }
}

static void write_lost(const trim_report *r, html *page) {
    uint64_t count = r->stats.dropped + r->stats.emptied;
    if (!count)
        return;
    html_put(page, "<section id=\"dropped\"><h2>Dropped and emptied documents</h2><p class=\"soft\">");
    html_count(page, count, "document", "documents");
    if (count > r->lost_count) {
        html_put(page, ", of which these are the first ");
        html_number(page, r->lost_count);
        html_put(page, "; doppel trim --dropped FILE lists them all");
    }
    html_put(page,
             ".</p><div class=\"card\"><table class=\"list\"><caption>In the order of reading</caption><thead><tr>"
             "<th scope=\"col\">Document</th><th scope=\"col\" class=\"number\">Words</th><th scope=\"col\" "
             "class=\"number wide\">Cut</th></tr></thead><tbody>");
    for (size_t i = 0; i < r->lost_count; i++) {
        const lost_document *lost = &r->lost[i];
        html_put(page, "<tr><td>");
        mention(page, lost->id, lost->id_length);
        html_format(page, "<p class=\"meta\">%s", why_lost(lost));
        if (has_address(lost->url, lost->url_length, lost->id, lost->id_length)) {
            html_put(page, " \xC2\xB7 ");
            html_link(page, lost->url, lost->url_length);
        }
        html_put(page, "</p></td><td class=\"number\">");
        html_number(page, lost->words);
        html_put(page, "</td><td class=\"number\">");
        html_number(page, lost->words_cut);
        html_put(page, "</td></tr>");
    }
    html_put(page, "</tbody></table></div></section>");
}

/* ---- inputs, settings, timings ---- */

static void write_inputs(const trim_report *r, html *page) {
    const doppel_trim_options *o = r->options;
    html_put(page, "<section id=\"inputs\"><h2>Inputs</h2><div class=\"two\">");
    html_reading(page, "What was read", (const char *const *)r->file, r->files, &r->stats.input);
    if (o->against_count)
        html_reading(page, "What it was compared with, which is not cut", o->against, o->against_count,
                     &r->stats.against);
    html_put(page, "</div></section>");
}

static void write_unit(const doppel_trim_options *o, html *page) {
    html_row_begin(page, "Units compared");
    write_windows(o, page, true);
    html_row_end(page);
    if (o->unit != DOPPEL_UNIT_PASSAGE) {
        html_row_begin(page, "With at least");
        html_count(page, o->min_words, "word", "words");
        html_put(page, o->run > 1 ? " in one of them" : "");
        html_row_end(page);
    }
}

static void write_rules(const doppel_trim_options *o, html *page) {
    html_row_begin(page, "What is cut");
    if (o->against_count)
        html_put(page, "what the documents compared with contain");
    else
        html_format(page, "what occurs at least %llu times, %s", (unsigned long long)o->min_count,
                    o->cut_first ? "everywhere" : "but not the first one");
    html_row_end(page);
    if (!o->against_count)
        html_row_text(page, "Which one is kept", o->keep ? o->keep : "first");
    html_row_text(page, "Only within one", o->within);
    html_row_text(page, "Only across different", o->across);
}

static void write_drops(const doppel_trim_options *o, html *page) {
    if (!o->drop && !o->drop_below && o->drop_share <= 0)
        return;
    html_row_begin(page, "Documents dropped");
    if (o->drop)
        html_put(page, "those of which anything is cut");
    else if (o->drop_below)
        html_format(page, "those that lost words and have fewer than %llu left", (unsigned long long)o->drop_below);
    if (!o->drop && o->drop_share > 0)
        html_format(page, "%sthose of which more than %g %% of the words are cut", o->drop_below ? ", and " : "",
                    100 * o->drop_share);
    html_row_end(page);
}

static void write_settings(const trim_report *r, html *page) {
    const doppel_trim_options *o = r->options;
    const timing part[] = {{"Opening the run, counting its inputs", r->seconds_open},
                           {"Reading the inputs for this page", r->seconds_texts}};
    char units[64];
    snprintf(units, sizeof units, "Among %s", o->unit == DOPPEL_UNIT_PASSAGE ? "words" : name_of_unit(o->unit, true));
    html_put(page, "<section id=\"settings\"><h2>The settings and timings</h2><div class=\"two\">");
    html_table_begin(page, "How repeats were searched for");
    write_unit(o, page);
    write_rules(o, page);
    write_drops(o, page);
    html_row_text(page, "Words by the recipe", o->recipe ? doppel_recipe_text(o->recipe) : "page");
    html_row_count(page, units, r->stats.units);
    html_row_count(page, "Repeats that are cut", r->stats.repeated);
    html_row_count(page, "Different ones among them", r->stats.values);
    html_table_end(page);
    html_timings(page, part, sizeof part / sizeof *part);
    html_put(page, "</div></section>");
}

/* ---- the page ---- */

void trim_report_write(trim_report *r, html *page) {
    const doppel_trim_stats *s = &r->stats;
    const contents sections[] = {{"in-and-out", "In and out", true},
                                 {"cut", "How much is cut", true},
                                 {"repeats", "What repeats most", r->repeats},
                                 {"documents", "Before and after", has_documents(r)},
                                 {"dropped", "Dropped and emptied", s->dropped + s->emptied},
                                 {"inputs", "Inputs", true},
                                 {"settings", "Settings", true}};
    html_page_begin(page, trim_style, "Repeats cut by doppel");
    html_corpus(page, r->file[0], r->files);
    html_result(page);
    html_count(page, s->input.documents, "document", "documents");
    html_put(page, s->input.documents == 1 ? " was read; " : " were read; ");
    html_number(page, s->documents_cut);
    html_put(page, s->documents_cut == 1 ? " repeats something, and " : " repeat something, and ");
    html_format(page, "%.1f %% of all words are cut.", percent_of(s->words_cut, s->words));
    html_contents(page, sections, sizeof sections / sizeof *sections);
    write_counts(r, page);
    html_put(page, "\n");
    write_histograms(r, page);
    html_put(page, "\n");
    write_repeats(r, page);
    html_put(page, "\n");
    write_documents(r, page);
    html_put(page, "\n");
    write_lost(r, page);
    html_put(page, "\n");
    write_inputs(r, page);
    html_put(page, "\n");
    write_settings(r, page);
    html_page_end(page);
}
