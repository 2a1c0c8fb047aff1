/* page.c - the page from head to foot. It is self-contained: no script, no font, no picture from elsewhere, and its
 * policy forbids the browser to load any. */
#include "report/report.h"

#include <string.h>
#include <time.h>

/* Light or dark as the reader's system is, for phones and desktops. Text has a contrast of at least 4.5 to 1, and
 * nothing depends on colour alone. */
static const char report_style[] =
    ":root{color-scheme:light dark;--ground:#f6f6f4;--card:#fff;--ink:#1b1e23;--soft:#565d67;--line:#dcdfe3;"
    "--bar:#2a6fdb;--two:#7a4fc4;--three:#b3561a;--four:#0f7a6c;--rest:#9fb0c3;"
    "--link:#1f5fc4;--new:#d5f2dc;--new-ink:#0d5226;--gone:#fde1de;--gone-ink:#8a1c12}"
    "@media(prefers-color-scheme:dark){:root{--ground:#131519;--card:#1b1e24;--ink:#e7e9ec;--soft:#a4acb8;"
    "--line:#343a44;--bar:#6aa5ff;--two:#b693f5;--three:#f0a36b;--four:#56c9b8;--rest:#5d6b7d;"
    "--link:#8ab8ff;--new:#143c23;--new-ink:#a3e8b8;--gone:#4b1e1a;--gone-ink:#ffbab1}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--ground);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",\"DejaVu Sans\",sans-serif;"
    "overflow-wrap:anywhere;-webkit-text-size-adjust:100%;text-size-adjust:100%}"
    "main,header,footer{max-width:1080px;margin:0 auto;padding:0 20px}"
    "header{padding-top:32px}footer{padding-bottom:40px;color:var(--soft);font-size:14px}"
    "h1{font-size:28px;line-height:1.2;margin:0 0 6px}h2{font-size:21px;line-height:1.3;margin:40px 0 12px}"
    "h3{font-size:16px;margin:0 0 8px}p{margin:0 0 12px}.soft{color:var(--soft)}"
    ".lead{font-size:18px}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;margin:0 0 16px;"
    "min-width:0}"
    ".tiles{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:16px}"
    ".tiles .card{margin:0}.tile b{display:block;font-size:30px;line-height:1.2;font-weight:650}"
    ".tile span{color:var(--soft);font-size:14px}"
    ".two{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:16px;align-items:start}.two>figure{align-self:"
    "stretch}"
    "figure{margin:0}figcaption{color:var(--soft);font-size:14px;margin-top:8px}"
    "svg{display:block}svg.picture{overflow:visible}svg text{fill:var(--soft);font-size:12px;text-anchor:middle}"
    "svg text.count{fill:var(--ink)}svg text.side{text-anchor:end}"
    ".bar{fill:var(--bar)}.hit{fill:transparent}.axis{stroke:var(--soft);stroke-width:1}"
    ".grid{stroke:var(--line);stroke-width:1}.curve{fill:none;stroke:var(--bar);stroke-width:2;"
    "vector-effect:non-scaling-stroke}.threshold{stroke:var(--three);stroke-width:1.5;stroke-dasharray:5 4}"
    ".point{fill:var(--card);stroke:var(--bar);stroke-width:2}"
    ".parts{border-radius:6px;overflow:hidden;margin:20px 0 12px}"
    ".part0{fill:var(--rest)}.part1{fill:var(--bar)}.part2{fill:var(--two)}.part3{fill:var(--three)}"
    ".part4{fill:var(--four)}.share{margin-top:6px}"
    "ul.legend{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:6px 24px}"
    "ul.legend li{display:flex;align-items:baseline;gap:8px}ul.legend svg{flex:none;align-self:center}"
    "table{border-collapse:collapse;width:100%;font-size:15px}caption{text-align:left;color:var(--soft);"
    "font-size:14px;padding-bottom:8px}th,td{text-align:left;vertical-align:top;padding:7px 12px 7px 0;"
    "border-top:1px solid var(--line)}th{font-weight:600}tbody th{font-weight:400;color:var(--soft)}"
    "table{table-layout:fixed}td:last-child,th:last-child{padding-right:0}.rows th{width:38%}"
    ".hosts th{width:40%}.hosts th:last-child{width:20%}tbody tr:first-child>*{border-top:0}"
    ".hosts tbody tr:first-child>*{border-top:1px solid var(--line)}"
    "thead th{border-top:0;white-space:nowrap;overflow-wrap:normal}.number{text-align:right;white-space:nowrap}"
    "details.group{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:0 0 12px}"
    "details.group>summary{cursor:pointer;padding:12px 18px;border-radius:10px}"
    "summary h3{display:inline;margin:0}summary .soft{display:block;font-size:14px}"
    "summary:focus-visible{outline:2px solid var(--bar);outline-offset:-2px}"
    /* A letter with a hundred accents stays in its card. */
    "header,.card,details.group{overflow:clip}"
    ".inside{padding:0 18px 8px}.inside h4{font-size:15px;margin:0 0 2px}"
    ".document{border-top:1px solid var(--line);padding:12px 0}"
    ".meta{color:var(--soft);font-size:14px;margin:0 0 8px}"
    /* Room for the edge of a mark that continues in the next line. */
    ".text{margin:0;padding-right:3px;font-size:15px;line-height:1.65}"
    "ins,del{border-radius:3px;padding:1px 2px;-webkit-box-decoration-break:clone;box-decoration-break:clone}"
    "ins{background:var(--new);color:var(--new-ink);text-decoration:underline;text-underline-offset:2px}"
    "del{background:var(--gone);color:var(--gone-ink);text-decoration:line-through}"
    ".skip,.cut>summary{color:var(--soft);font-size:13px;white-space:normal;font-style:italic}"
    /* A fold in the middle of a line. Closed, its content is a box of no size out of the flow, where the search of
     * browsers still finds words: in the flow a block would break the line, and in an inline block nothing is found. */
    "details.cut{display:inline}details.cut>summary{display:inline;list-style:none;cursor:pointer;color:var(--link);"
    "white-space:nowrap;text-decoration:underline dotted;text-underline-offset:3px}"
    ".cut>summary::-webkit-details-marker{display:none}"
    "details.cut::details-content{position:absolute;left:0;right:0}"
    "details.cut[open]::details-content{position:static;display:inline}details.cut[open]>summary{color:var(--soft)}"
    "details.about{margin:24px 0 12px}.about>summary{cursor:pointer;color:var(--link)}.about ul{margin:8px 0 0;"
    "padding-left:20px}.about li{margin-bottom:6px}"
    "nav{display:flex;flex-wrap:wrap;gap:4px 18px;margin-top:10px}a{color:var(--link)}"
    "ul.all{margin:0;padding:0 0 8px;list-style:none;columns:3 240px;font-size:14px}ul.all li{break-inside:avoid;"
    "padding:2px 0}"
    "code{font:14px/1.4 ui-monospace,\"DejaVu Sans Mono\",monospace}"
    "@media(max-width:760px){.two{grid-template-columns:minmax(0,1fr);gap:0}"
    ".tiles{grid-template-columns:repeat(2,minmax(0,1fr));gap:10px}.tile b{font-size:24px}"
    "main,header,footer{padding-left:14px;padding-right:14px}h1{font-size:24px}.card,.inside,"
    "details.group>summary{padding-left:14px;padding-right:14px}svg text{font-size:11px}}"
    "@media print{body{background:#fff}h2,h4,summary{break-after:avoid}nav{display:none}}"
    /* Paper has what is folded, where browsers can: but not words that are the same in both. */
    "@supports selector(::details-content){@media print{details.group:not(.all)::details-content,"
    "details.about::details-content,details.more::details-content{display:block;content-visibility:visible}"
    "details.cut:not(.same)::details-content{position:static;display:inline;content-visibility:visible}"
    "details.cut:not(.same)>summary,details.more>summary{display:none}}}";

void html_page_begin(html *page, const char *style, const char *title) {
    html_put(page,
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
             "'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
             "<meta name=\"color-scheme\" content=\"light dark\"><meta name=\"referrer\" content=\"no-referrer\">");
    html_format(page, "<title>%s</title><style>", title);
    html_put(page, report_style);
    html_put(page, style);
    html_format(page, "</style></head>\n<body><header><h1>%s</h1><p class=\"soft\">", title);
}

void html_corpus(html *page, const char *path, size_t path_count) {
    char date[16];
    time_t now = time(NULL);
    struct tm parts;
    if (path_count) {
        html_put(page, "<b><bdi>");
        html_string(page, strcmp(path, "-") != 0 ? path : "standard input");
        html_put(page, "</bdi></b>");
    }
    if (path_count > 1) {
        html_put(page, " and ");
        html_number(page, path_count - 1);
        html_put(page, " more");
    }
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &parts));
    html_format(page, "%s%s", path_count ? ", " : "", date);
}

void html_result(html *page) {
    html_put(page, "</p><p class=\"lead\">");
}

void html_contents(html *page, const contents *entry, size_t count) {
    html_put(page, count ? "</p><nav aria-label=\"Contents\">" : "</p>");
    for (size_t i = 0; i < count; i++)
        if (entry[i].there)
            html_format(page, "<a href=\"#%s\">%s</a> ", entry[i].id, entry[i].name);
    html_put(page, count ? "</nav></header>\n<main>" : "</header>\n<main>");
}

void html_page_end(html *page) {
    if (page->full)
        html_format(page,
                    "<p class=\"card\">This page is full: text that would be folded is left out after the first %d MB, "
                    "all text after %d MB.</p>",
                    (int)(MOST_FOLDED >> 20), (int)(MOST_PAGE >> 20));
    html_format(page, "</main>\n<footer><p>Made by doppel %s.</p></footer></body></html>\n", doppel_version());
}

/* The first reading that is not of known documents. */
static void write_corpus(const report *r, html *page) {
    doppel_batch_reading reading;
    for (size_t i = 0; doppel_batch_get_reading(r->batch, i, &reading); i++)
        if (!reading.known && reading.path_count) {
            html_corpus(page, reading.paths[0], reading.path_count);
            return;
        }
    html_corpus(page, NULL, 0);
}

void report_write(report *r, html *page) {
    const contents sections[] = {{"in-and-out", "In and out", true}, {"similar", "How similar", true},
                                 {"groups", "Groups", r->groups},    {"hosts", "Hosts", r->hosts.count},
                                 {"inputs", "Inputs", true},         {"plan", "Plan", true}};
    html_page_begin(page, "", "Copies found by doppel");
    write_corpus(r, page);
    html_result(page);
    html_count(page, r->figures.documents, "document", "documents");
    html_put(page, r->figures.documents == 1 ? " was read; " : " were read; ");
    html_number(page, r->figures.removed);
    html_put(page, r->figures.removed == 1 ? " is a copy, and " : " are copies, and ");
    html_number(page, r->figures.kept);
    html_put(page, r->figures.kept == 1 ? " is kept." : " are kept.");
    html_contents(page, sections, sizeof sections / sizeof *sections);
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
    html_page_end(page);
}
