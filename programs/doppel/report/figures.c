/* figures.c - the sections with figures: what came in and went out, how similar and how many, the plan and its timings.
 */
#include "report/report.h"

#include <stdio.h>
#include <string.h>

/* ---- tables of two columns ---- */

/* A table of two columns, and a row of it: its head, (the cell's content,) its end. What is given is markup. */
static void table_begin(html *page, const char *caption) {
    html_format(page, "<div class=\"card\"><table class=\"rows\"><caption>%s</caption><tbody>", caption);
}

static void table_end(html *page) {
    html_put(page, "</tbody></table></div>");
}

static void row_begin(html *page, const char *name) {
    html_put(page, "<tr><th scope=\"row\">");
    html_put(page, name);
    html_put(page, "</th><td>");
}

static void row_end(html *page) {
    html_put(page, "</td></tr>");
}

/* ---- tiles ---- */

static double percent(uint64_t part, uint64_t whole) {
    return whole ? 100 * (double)part / (double)whole : 0;
}

static void tile_begin(html *page, uint64_t number) {
    html_put(page, "<div class=\"card tile\"><b>");
    html_number(page, number);
    html_put(page, "</b><span>");
}

static void tile_end(html *page) {
    html_put(page, "</span></div>");
}

static void write_tiles(const report_figures *f, html *page) {
    html_put(page, "<div class=\"tiles\">");
    tile_begin(page, f->documents);
    html_put(page, f->documents == 1 ? "document in, " : "documents in, ");
    html_bytes(page, f->bytes_in);
    tile_end(page);
    tile_begin(page, f->kept);
    html_put(page, "kept, ");
    html_bytes(page, f->bytes_out);
    tile_end(page);
    tile_begin(page, f->removed);
    html_format(page, "removed, %.1f %%", percent(f->removed, f->documents));
    tile_end(page);
    tile_begin(page, f->groups);
    html_put(page, f->groups == 1 ? "group" : "groups");
    if (f->groups) {
        html_put(page, ", the largest of ");
        html_number(page, f->largest);
    }
    tile_end(page);
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
    html_put(page, "<ul class=\"legend\">");
    for (size_t i = 0; i < PARTS; i++) {
        if (!part[i])
            continue;
        html_format(page,
                    "<li><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect class=\"part%zu\" width=\"12\" "
                    "height=\"12\" rx=\"3\"/></svg><span>",
                    i);
        html_count(page, part[i], names[i][0], names[i][1]);
        html_format(page, " (%.1f %%)</span></li>", percent(part[i], f->documents));
    }
    html_put(page, "</ul>");
}

/* ---- what was read ---- */

enum { SHOWN_PATHS = 12 };

static void write_paths(const doppel_batch_reading *reading, html *page) {
    for (size_t i = 0; i < reading->path_count && i < SHOWN_PATHS; i++) {
        html_put(page, i ? "<br><bdi>" : "<bdi>");
        html_string(page, strcmp(reading->paths[i], "-") != 0 ? reading->paths[i] : "standard input");
        html_put(page, "</bdi>");
    }
    if (reading->path_count > SHOWN_PATHS) {
        html_put(page, "<br>and ");
        html_number(page, reading->path_count - SHOWN_PATHS);
        html_put(page, " more");
    }
}

static void write_count(html *page, const char *name, uint64_t count) {
    if (!count)
        return;
    row_begin(page, name);
    html_number(page, count);
    row_end(page);
}

static void write_reading(const doppel_batch_reading *reading, html *page) {
    const doppel_input_counts *counts = &reading->counts;
    table_begin(page, reading->known ? "Known documents, which the others were compared with" : "What was read");
    row_begin(page, "From");
    write_paths(reading, page);
    row_end(page);
    row_begin(page, "Documents");
    html_number(page, counts->documents);
    if (counts->bytes) {
        html_put(page, " in ");
        html_bytes(page, counts->bytes);
        html_put(page, " of input, uncompressed");
    }
    row_end(page);
    write_count(page, "Bad records, left out", counts->bad);
    write_count(page, "Records repaired", counts->repaired);
    write_count(page, "Files not read completely", counts->unopened);
    table_end(page);
}

/* Documents that are not compared by their content. */
static void write_remarks(const report *r, html *page) {
    char few[64];
    snprintf(few, sizeof few, "With fewer than %llu words", (unsigned long long)r->options->min_words);
    if (!r->stats.empty && !r->stats.few_words && !r->stats.copies)
        return;
    table_begin(page, "Among all documents");
    write_count(page, "With the same words as an earlier one", r->stats.copies);
    write_count(page, few, r->stats.few_words);
    write_count(page, "Without words", r->stats.empty);
    table_end(page);
}

void report_write_counts(const report *r, html *page) {
    html_put(page, "<section><h2>In and out</h2>");
    write_tiles(&r->figures, page);
    write_parts(&r->figures, page);
    html_put(page, "</section>");
}

void report_write_inputs(const report *r, html *page) {
    doppel_batch_reading reading;
    html_put(page, "<section><h2>Inputs</h2><div class=\"two\">");
    for (size_t i = 0; doppel_batch_get_reading(r->batch, i, &reading); i++)
        write_reading(&reading, page);
    write_remarks(r, page);
    html_put(page, "</div></section>");
}

static void figure_begin(html *page, const char *title) {
    html_format(page, "<figure class=\"card\"><h3>%s</h3>", title);
}

static void figure_end(html *page, const char *caption) {
    html_format(page, "<figcaption>%s</figcaption></figure>", caption);
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
    figure_begin(page, "Similarity of near copies to the kept document");
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
    figure_begin(page, "Distance of copies to the kept document");
    picture_bars(page, "Removed documents by the bits in which fingerprints differ", bars, count);
    figure_end(page, "Documents by differing bits of their fingerprints; a bar begins at the number below it.");
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
    figure_begin(page, "Size of groups");
    picture_bars(page, "Groups by how many documents they have, the kept one included", bars, count);
    figure_end(page, "Groups by their number of documents, the kept one included.");
}

void report_write_histograms(const report *r, html *page) {
    html_put(page, "<section><h2>How similar, and how many</h2>");
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
    row_begin(page, "Method");
    switch (o->method) {
    case DOPPEL_METHOD_SIMHASH:
        html_format(page, "simhash: fingerprints that differ in at most %d bits", o->distance);
        break;
    case DOPPEL_METHOD_EXACT: html_put(page, "exact: the same words"); break;
    case DOPPEL_METHOD_MINHASH: html_format(page, "minhash: similarity of at least %g, verified", o->similarity); break;
    default: html_format(page, "auto: similarity of at least %g, verified", o->similarity); break;
    }
    row_end(page);
    if (!r->stats.bands)
        return;
    row_begin(page, "Candidates");
    html_format(page, "documents that share one of %d bands of %d rows", r->stats.bands, r->stats.rows);
    row_end(page);
    row_begin(page, "Expected recall");
    html_format(page, "%.2f %% of the pairs exactly at the threshold, more above it", 100 * r->stats.recall);
    row_end(page);
}

static void write_text_row(html *page, const char *name, const char *text) {
    if (!text)
        return;
    row_begin(page, name);
    html_put(page, "<code>");
    html_string(page, text);
    html_put(page, "</code>");
    row_end(page);
}

static void write_options(const report *r, html *page) {
    const doppel_batch_options *o = r->options;
    static const char *const kinds[] = {"content", "address", "title"};
    unsigned by = o->by ? o->by : DOPPEL_BY_CONTENT;
    bool first = true;
    write_text_row(page, "Recipe", o->recipe ? doppel_recipe_text(o->recipe) : "page");
    row_begin(page, "Copies are recognised by");
    for (unsigned i = 0; i < 3; i++)
        if (by >> i & 1) {
            html_format(page, "%s%s", first ? "" : ", ", kinds[i]);
            first = false;
        }
    row_end(page);
    write_text_row(page, "Kept is", o->keep ? o->keep : "first");
    write_text_row(page, "Only within one", o->within);
    write_text_row(page, "Only across different", o->across);
    if (o->link_any) {
        row_begin(page, "Chains");
        html_put(page, "are one group (link any)");
        row_end(page);
    }
    if (o->boilerplate > 0) {
        row_begin(page, "Boilerplate");
        html_number(page, r->stats.frequent);
        html_format(page, " shingles that more than %g %% of the groups have are ignored", 100 * o->boilerplate);
        row_end(page);
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

static void write_time(html *page, const char *name, double seconds, double most) {
    row_begin(page, name);
    html_format(page, seconds < 10 ? "%.3f s" : "%.1f s", seconds);
    picture_share(page, most > 0 ? seconds / most : 0);
    row_end(page);
}

static void write_timings(const report *r, html *page) {
    const struct {
        const char *name;
        double seconds;
    } part[] = {{"Reading the sketches of the run", r->seconds_open},
                {"Finding candidates", r->stats.seconds_candidates},
                {"Verifying and deciding", r->stats.seconds_decide},
                {"Reading the inputs for this page", r->seconds_texts}};
    enum { PARTS = sizeof part / sizeof *part };
    double most = 0;
    for (size_t i = 0; i < PARTS; i++)
        most = part[i].seconds > most ? part[i].seconds : most;
    table_begin(page, "Time, measured while this page was made");
    for (size_t i = 0; i < PARTS; i++)
        write_time(page, part[i].name, part[i].seconds, most);
    table_end(page);
}

static void write_work(const report *r, html *page) {
    table_begin(page, "Work");
    row_begin(page, "Candidate pairs");
    html_number(page, r->stats.candidates);
    row_end(page);
    row_begin(page, "Of those, compared shingle by shingle");
    html_number(page, r->stats.verified);
    row_end(page);
    row_begin(page, "Temporary files");
    html_bytes(page, r->stats.spilled_bytes);
    row_end(page);
    table_end(page);
}

void report_write_plan(const report *r, html *page) {
    html_put(page, "<section><h2>The plan and its timings</h2><div class=\"two\">");
    table_begin(page, "How copies were searched for");
    write_method(r, page);
    write_options(r, page);
    table_end(page);
    if (r->stats.bands)
        write_curve(r, page);
    html_put(page, "</div><div class=\"two\">");
    write_timings(r, page);
    write_work(r, page);
    html_put(page, "</div></section>");
}
