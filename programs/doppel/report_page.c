/* report_page.c - the page from head to foot. It needs nothing but itself: no script, no font, no picture from
 * elsewhere, and its policy lets a browser ask for none. */
#include "report.h"

void report_write(report *r, html *page) {
    html_put(page, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                   "'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                   "<meta name=\"color-scheme\" content=\"light dark\"><meta name=\"referrer\" content=\"no-referrer\">"
                   "<title>doppel report</title><style>");
    html_put(page, report_style);
    html_put(page, "</style></head>\n<body><header><h1>Copies found by doppel</h1><p class=\"soft\">");
    html_count(page, r->figures.documents, "document", "documents");
    html_put(page, r->figures.documents == 1 ? " was read; " : " were read; ");
    html_number(page, r->figures.removed);
    html_put(page, r->figures.removed == 1 ? " is a copy, and " : " are copies, and ");
    html_number(page, r->figures.kept);
    html_put(page, r->figures.kept == 1 ? " is kept.</p></header>\n<main>" : " are kept.</p></header>\n<main>");
    report_write_counts(r, page);
    html_put(page, "\n");
    report_write_histograms(r, page);
    html_put(page, "\n");
    report_write_groups(r, page);
    html_put(page, "\n");
    report_write_hosts(r, page);
    html_put(page, "\n");
    report_write_inputs(r, page);
    html_put(page, "\n");
    report_write_plan(r, page);
    html_format(page, "</main>\n<footer><p>doppel %s, CPU level %s, Unicode %s.</p></footer></body></html>\n",
                doppel_version(), doppel_cpu_level(), doppel_unicode_version());
}
