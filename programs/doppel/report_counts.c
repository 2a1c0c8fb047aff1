/* report_counts.c - what came in and went out. */
#include "report.h"

#include <stdio.h>
#include <string.h>

void table_begin(html *page, const char *caption) {
    html_format(page, "<div class=\"card\"><table class=\"rows\"><caption>%s</caption><tbody>", caption);
}

void table_end(html *page) {
    html_put(page, "</tbody></table></div>");
}

void row_begin(html *page, const char *name) {
    html_put(page, "<tr><th scope=\"row\">");
    html_put(page, name);
    html_put(page, "</th><td>");
}

void row_end(html *page) {
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
    write_count(page, "Files not read to their end", counts->unopened);
    table_end(page);
}

/* Documents that are compared otherwise than by their content. */
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
