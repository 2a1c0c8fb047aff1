/* report_copying.c - hosts that copy each other: the pairs with the most copies. */
#include "report.h"

enum { SHOWN_PAIRS = 25 };

static void write_host(html *page, const report_hosts *hosts, uint32_t number) {
    html_put(page, "<td><bdi>");
    html_string(page, hosts->name[number]);
    html_put(page, "</bdi></td>");
}

static void write_table(const report_hosts *hosts, html *page) {
    html_put(
        page,
        "<div class=\"card\"><table class=\"hosts\"><caption>Pairs of hosts with the most copies</caption><thead><tr>"
        "<th scope=\"col\">Kept on</th><th scope=\"col\">Copied on</th><th scope=\"col\" class=\"number\">"
        "Copies</th></tr></thead><tbody>");
    for (size_t i = 0; i < hosts->pairs && i < SHOWN_PAIRS; i++) {
        html_put(page, "<tr>");
        write_host(page, hosts, hosts->pair[i].kept);
        write_host(page, hosts, hosts->pair[i].copy);
        html_put(page, "<td class=\"number\">");
        html_number(page, hosts->pair[i].copies);
        picture_share(page, (double)hosts->pair[i].copies / (double)hosts->pair[0].copies);
        html_put(page, "</td></tr>");
    }
    html_put(page, "</tbody></table></div>");
}

void report_write_hosts(const report *r, html *page) {
    const report_hosts *hosts = &r->hosts;
    if (!hosts->count)
        return;
    html_put(page, "<section><h2>Hosts that copy each other</h2><p class=\"soft\">");
    html_count(page, hosts->between, "removed document is", "removed documents are");
    html_put(page, " on another host than the kept one, ");
    html_number(page, hosts->inside);
    html_put(page, " on the same.");
    if (hosts->pairs > SHOWN_PAIRS) {
        html_put(page, " There are ");
        html_number(page, hosts->pairs);
        html_format(page, " pairs of hosts; these are the first %d.", SHOWN_PAIRS);
    }
    html_put(page, "</p>");
    if (hosts->pairs)
        write_table(hosts, page);
    html_put(page, "</section>");
}
