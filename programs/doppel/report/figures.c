/* figures.c - the sections with figures: what came in and went out, how similar and how many, the plan and its timings.
 */
#include "report/report.h"

#include <stdio.h>

/* ---- tiles ---- */

static void write_tiles(const report_figures *f, html *page) {
    html_put(page, "<div class=\"tiles\">");
    html_tile_begin(page, f->documents);
    html_put(page, f->documents == 1 ? "document in, " : "documents in, ");
    html_bytes(page, f->bytes_in);
    html_tile_end(page);
    html_tile_begin(page, f->kept);
    html_put(page, "kept, ");
    html_bytes(page, f->bytes_out);
    html_tile_end(page);
    html_tile_begin(page, f->removed);
    html_format(page, "removed, %.1f %%", percent_of(f->removed, f->documents));
    html_tile_end(page);
    html_tile_begin(page, f->groups);
    html_put(page, f->groups == 1 ? "group" : "groups");
    if (f->groups) {
        html_put(page, ", the largest of ");
        html_number(page, f->largest);
    }
    html_tile_end(page);
    html_put(page, "</div>");
}

/* ---- parts ---- */

static void write_parts(const report_figures *f, html *page) {
    static const char *const names[][2] = {{"kept", "kept"},
                                           {"identical copy, removed", "identical copies, removed"},
                                           {"near copy, removed", "near copies, removed"},
                                           {"removed by its address", "removed by their address"},
                                           {"removed by its title", "removed by their title"}};
    const uint64_t part[] = {f->kept, f->identical, f->near, f->by_url, f->by_title};
    enum { PARTS = sizeof part / sizeof *part };
    if (!f->documents)
        return;
    picture_parts(page, "What became of the documents", part, PARTS);
    picture_legend(page, names, part, PARTS, f->documents);
}

/* ---- what was read ---- */

static void write_reading(const doppel_batch_reading *reading, html *page) {
    html_reading(page, reading->known ? "Known documents, which the others were compared with" : "What was read",
                 reading->paths, reading->path_count, &reading->counts);
}

/* Documents that are not compared by their content. */
static void write_remarks(const report *r, html *page) {
    char few[64];
    snprintf(few, sizeof few, "With fewer than %llu words", (unsigned long long)r->options->min_words);
    if (!r->stats.empty && !r->stats.few_words && !r->stats.copies)
        return;
    html_table_begin(page, "Among all documents");
    html_row_count(page, "With the same words as an earlier one", r->stats.copies);
    html_row_count(page, few, r->stats.few_words);
    html_row_count(page, "Without words", r->stats.empty);
    html_table_end(page);
}

void report_write_counts(const report *r, html *page) {
    html_put(page, "<section id=\"in-and-out\"><h2>In and out</h2>");
    write_tiles(&r->figures, page);
    write_parts(&r->figures, page);
    html_put(page, "</section>");
}

void report_write_inputs(const report *r, html *page) {
    doppel_batch_reading reading;
    html_put(page, "<section id=\"inputs\"><h2>Inputs</h2><div class=\"two\">");
    for (size_t i = 0; doppel_batch_get_reading(r->batch, i, &reading); i++)
        write_reading(&reading, page);
    write_remarks(r, page);
    html_put(page, "</div></section>");
}

/* ---- similarity ---- */

/* The narrowest bars, in hundredths, of which at most MOST_BARS reach from the least similarity to 1. */
static int bar_width(const report_figures *f, int *first) {
    static const int widths[] = {1, 2, 5, 10, 20};
    int least = 0, i = 0;
    while (least < SIMILARITY_STEPS - 1 && !f->similarity[least])
        least++;
    while ((SIMILARITY_STEPS - least / widths[i] * widths[i]) / widths[i] > MOST_BARS)
        i++;
    *first = least / widths[i] * widths[i];
    return widths[i];
}

static size_t similarity_bars(const report_figures *f, bar *bars) {
    int first, width = bar_width(f, &first);
    size_t count = 0;
    for (int from = first; from < SIMILARITY_STEPS; from += width) {
        bar *b = &bars[count++];
        *b = (bar){.count = 0};
        for (int i = from; i < from + width; i++)
            b->count += f->similarity[i];
        snprintf(b->label, sizeof b->label, ".%02d", from);
        snprintf(b->title, sizeof b->title, "similarity from %.2f to below %.2f: %llu documents", from / 100.0,
                 (from + width) / 100.0, (unsigned long long)b->count);
    }
    return count;
}

static void write_similarity(const report *r, html *page) {
    const report_figures *f = &r->figures;
    bar bars[MOST_BARS];
    uint64_t less = 0;
    for (int i = 0; i < SIMILARITY_STEPS; i++)
        less += f->similarity[i];
    html_figure_begin(page, "Similarity of near copies to the kept document");
    if (less)
        picture_bars(page, "Removed documents by their similarity to the kept one", bars, similarity_bars(f, bars));
    else
        html_put(page, "<p>No removed document has a similarity below 1.</p>");
    html_put(page, "<figcaption>");
    html_put(page, less ? "Documents by similarity; a bar begins at the number below it. " : "");
    if (f->measured > less) {
        html_put(page, less ? "Not drawn: " : "With a similarity of 1: ");
        html_count(page, f->measured - less, "document", "documents");
        html_put(page, less ? " with a similarity of 1." : ".");
    }
    html_put(page, "</figcaption></figure>");
}

/* ---- distance, where similarity was not measured ---- */

static void write_distance(const report *r, html *page) {
    bar bars[MOST_BARS];
    int most = 0;
    size_t count = 0;
    for (int i = 0; i < DISTANCES; i++)
        most = r->figures.distance[i] ? i : most;
    int width = most / MOST_BARS + 1;
    for (int from = 0; from <= most; from += width) {
        bar *b = &bars[count++];
        *b = (bar){.count = 0};
        for (int i = from; i < from + width && i < DISTANCES; i++)
            b->count += r->figures.distance[i];
        snprintf(b->label, sizeof b->label, "%d", from);
        snprintf(b->title, sizeof b->title, "%d to %d bits: %llu documents", from, from + width - 1,
                 (unsigned long long)b->count);
    }
    html_figure_begin(page, "Distance of copies to the kept document");
    picture_bars(page, "Removed documents by the bits in which fingerprints differ", bars, count);
    html_figure_end(page, "Documents by differing bits of their fingerprints; a bar begins at the number below it.");
}

/* ---- sizes ---- */

/* Bars double their sizes (2, 3-4, 5-8, ...) or, where groups are very large, have as many digits (2-9, 10-99, ...). */
static uint64_t next_size(uint64_t last, bool by_digits) {
    return by_digits ? 10 * (last + 1) - 1 : 2 * last;
}

static void short_size(uint64_t size, char text[24]) {
    if (size >= 1000000 && size % 1000000 == 0)
        snprintf(text, 24, "%lluM", (unsigned long long)size / 1000000);
    else if (size >= 1000 && size % 1000 == 0)
        snprintf(text, 24, "%lluK", (unsigned long long)size / 1000);
    else
        snprintf(text, 24, "%llu", (unsigned long long)size);
}

/* Bars of sizes, their counts not yet known; returns how many, and the last size of each. */
static size_t size_bars(uint64_t largest, bar *bars, uint64_t *last) {
    bool by_digits = largest > (uint64_t)2 << (MOST_BARS - 4);
    size_t count = 0;
    for (uint64_t from = 2, to = by_digits ? 9 : 2; from <= largest; from = to + 1, to = next_size(to, by_digits)) {
        char text[24];
        short_size(from, text);
        bool range = !by_digits && to > from;
        last[count] = to;
        bars[count] = (bar){.count = 0};
        if (range && to < 100)
            snprintf(bars[count].label, sizeof bars->label, "%llu\xE2\x80\x93%llu", (unsigned long long)from,
                     (unsigned long long)to);
        else
            snprintf(bars[count].label, sizeof bars->label, "%s%s", text, from < to ? "+" : "");
        count++;
    }
    return count;
}

static void write_sizes(const report *r, html *page) {
    bar bars[MOST_BARS];
    uint64_t last[MOST_BARS], from = 2;
    size_t count = size_bars(r->figures.largest, bars, last);
    for (uint64_t i = 0, documents = doppel_batch_count(r->batch) + r->stats.in_index; i < documents; i++)
        for (size_t j = 0; r->size[i] > 1 && j < count; j++)
            if (r->size[i] <= last[j]) {
                bars[j].count++;
                break;
            }
    for (size_t j = 0; j < count; from = last[j++] + 1)
        snprintf(bars[j].title, sizeof bars->title, "%llu to %llu documents: %llu groups", (unsigned long long)from,
                 (unsigned long long)last[j], (unsigned long long)bars[j].count);
    html_figure_begin(page, "Size of groups");
    picture_bars(page, "Groups by how many documents they have, the kept one included", bars, count);
    html_figure_end(page, "Groups by their number of documents, the kept one included.");
}

void report_write_histograms(const report *r, html *page) {
    html_put(page, "<section id=\"similar\"><h2>How similar, and how many</h2>");
    if (!r->figures.groups) {
        html_put(page, r->figures.documents
                           ? "<p class=\"card\">Nothing was found twice: every document is kept.</p></section>"
                           : "<p class=\"card\">There is no document.</p></section>");
        return;
    }
    html_put(page, "<div class=\"two\">");
    if (r->options->method == DOPPEL_METHOD_SIMHASH)
        write_distance(r, page);
    else
        write_similarity(r, page);
    write_sizes(r, page);
    html_put(page, "</div></section>");
}

/* ---- the plan ---- */

static void write_method(const report *r, html *page) {
    const doppel_batch_options *o = r->options;
    html_row_begin(page, "Method");
    switch (o->method) {
    case DOPPEL_METHOD_SIMHASH:
        html_format(page, "simhash: fingerprints that differ in at most %d bits", o->distance);
        break;
    case DOPPEL_METHOD_EXACT: html_put(page, "exact: the same words"); break;
    case DOPPEL_METHOD_MINHASH: html_format(page, "minhash: similarity of at least %g, verified", o->similarity); break;
    default: html_format(page, "auto: similarity of at least %g, verified", o->similarity); break;
    }
    html_row_end(page);
    if (!r->stats.bands)
        return;
    html_row_begin(page, "Candidates");
    html_format(page, "documents that share one of %d bands of %d rows", r->stats.bands, r->stats.rows);
    html_row_end(page);
    html_row_begin(page, "Expected recall");
    html_format(page, "%.2f %% of the pairs exactly at the threshold, more above it", 100 * r->stats.recall);
    html_row_end(page);
}

static void write_options(const report *r, html *page) {
    const doppel_batch_options *o = r->options;
    static const char *const kinds[] = {"content", "address", "title"};
    unsigned by = o->by ? o->by : DOPPEL_BY_CONTENT;
    bool first = true;
    html_row_text(page, "Recipe", o->recipe ? doppel_recipe_text(o->recipe) : "page");
    html_row_begin(page, "Copies are recognised by");
    for (unsigned i = 0; i < 3; i++)
        if (by >> i & 1) {
            html_format(page, "%s%s", first ? "" : ", ", kinds[i]);
            first = false;
        }
    html_row_end(page);
    html_row_text(page, "Kept document", o->keep ? o->keep : "first");
    html_row_text(page, "Only within one", o->within);
    html_row_text(page, "Only across different", o->across);
    if (o->link_any) {
        html_row_begin(page, "Chains");
        html_put(page, "are one group (link any)");
        html_row_end(page);
    }
    if (o->boilerplate > 0) {
        html_row_begin(page, "Boilerplate");
        html_number(page, r->stats.frequent);
        html_format(page, " shingles that more than %g %% of the groups have are ignored", 100 * o->boilerplate);
        html_row_end(page);
    }
}

static void write_curve(const report *r, html *page) {
    html_put(page, "<figure class=\"card\"><h3>What bands find</h3>");
    picture_curve(page, r->stats.bands, r->stats.rows, r->options->similarity);
    html_format(page,
                "<figcaption>The share of pairs that become candidates, by their similarity. The dashed line is the "
                "threshold, %g: %.2f %% of the pairs there are found. Each candidate is then verified, so that none "
                "below the threshold is reported.</figcaption></figure>",
                r->options->similarity, 100 * r->stats.recall);
}

/* ---- timings ---- */

static void write_timings(const report *r, html *page) {
    const timing part[] = {{"Reading the sketches of the run", r->seconds_open},
                           {"Finding candidates", r->stats.seconds_candidates},
                           {"Verifying and deciding", r->stats.seconds_decide},
                           {"Reading the inputs for this page", r->seconds_texts}};
    html_timings(page, part, sizeof part / sizeof *part);
}

static void write_work(const report *r, html *page) {
    html_table_begin(page, "Work");
    html_row_begin(page, "Candidate pairs");
    html_number(page, r->stats.candidates);
    html_row_end(page);
    html_row_begin(page, "Of those, compared shingle by shingle");
    html_number(page, r->stats.verified);
    html_row_end(page);
    html_row_bytes(page, "Temporary files", r->stats.spilled_bytes);
    html_table_end(page);
}

void report_write_plan(const report *r, html *page) {
    html_put(page, "<section id=\"plan\"><h2>The plan and its timings</h2><div class=\"two\">");
    html_table_begin(page, "How copies were searched for");
    write_method(r, page);
    write_options(r, page);
    html_table_end(page);
    if (r->stats.bands)
        write_curve(r, page);
    html_put(page, "</div><div class=\"two\">");
    write_timings(r, page);
    write_work(r, page);
    html_put(page, "</div></section>");
}
