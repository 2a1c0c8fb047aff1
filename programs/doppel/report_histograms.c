/* report_histograms.c - how similar removed documents are to what is kept, and how large groups are. */
#include "report.h"

#include <stdio.h>

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

/* Bars of sizes, their counts not yet known; gives how many, and the last size of each. */
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
