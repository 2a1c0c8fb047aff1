/* report_plan.c - how copies were looked for, what was expected of it, and how long it took. */
#include "report.h"

/* ---- the plan ---- */

static void write_method(const report *r, html *page) {
    const doppel_batch_options *o = r->options;
    row_begin(page, "Method");
    switch (o->method) {
    case DOPPEL_METHOD_SIMHASH:
        html_format(page, "simhash: fingerprints that differ in at most %d bits", o->distance < 0 ? 0 : o->distance);
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
    html_format(page, "%.2f %% of the pairs at the very threshold, more above it", 100 * r->stats.recall);
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
    row_begin(page, "Copies are told by");
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
        html_format(page, " shingles that more than %g %% of the groups have are left out", 100 * o->boilerplate);
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
    row_begin(page, "Pairs that came up");
    html_number(page, r->stats.candidates);
    row_end(page);
    row_begin(page, "Of those, compared shingle by shingle");
    html_number(page, r->stats.verified);
    row_end(page);
    row_begin(page, "Kept in files");
    html_bytes(page, r->stats.spilled_bytes);
    row_end(page);
    table_end(page);
}

void report_write_plan(const report *r, html *page) {
    html_put(page, "<section><h2>The plan and its timings</h2><div class=\"two\">");
    table_begin(page, "How copies were looked for");
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
