/* hosts.c - the hosts of documents in groups: how many copies one has of what is kept on another. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

bool hosts_begin(report_hosts *hosts, uint64_t documents) {
    hosts->of = calloc(documents + 1, sizeof *hosts->of);
    return hosts->of;
}

void hosts_free(report_hosts *hosts) {
    for (size_t i = 0; i < hosts->count; i++)
        free(hosts->name[i]);
    free(hosts->name);
    free(hosts->table);
    free(hosts->of);
    free(hosts->pair);
}

/* ---- names ---- */

static size_t hash_of(const char *name, size_t length, size_t room) {
    uint64_t hash = 14695981039346656037U; /* FNV-1a: names are short */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 1099511628211U;
    return (size_t)(hash ^ hash >> 32) & (room - 1);
}

/* The place of a name in the table: where it is, or where it may go. */
static uint32_t *place_of(const report_hosts *hosts, const char *name, size_t length) {
    size_t i = hash_of(name, length, hosts->table_room);
    for (; hosts->table[i]; i = (i + 1) & (hosts->table_room - 1)) {
        const char *there = hosts->name[hosts->table[i] - 1];
        if (!strncmp(there, name, length) && !there[length])
            break;
    }
    return &hosts->table[i];
}

/* Makes room for one more name; the table is never more than half full. */
static bool make_room(report_hosts *hosts) {
    if (hosts->count < hosts->room)
        return true;
    size_t room = hosts->room ? 2 * hosts->room : 64;
    char **name = realloc(hosts->name, room * sizeof *name);
    if (!name)
        return false;
    hosts->name = name;
    uint32_t *table = calloc(2 * room, sizeof *table);
    if (!table)
        return false;
    free(hosts->table);
    hosts->table = table;
    hosts->table_room = 2 * room;
    hosts->room = room;
    for (size_t i = 0; i < hosts->count; i++)
        *place_of(hosts, name[i], strlen(name[i])) = (uint32_t)i + 1;
    return true;
}

static bool note_host(report_hosts *hosts, uint64_t document, doppel_slice host) {
    if (!make_room(hosts))
        return false;
    uint32_t *place = place_of(hosts, host.data, host.length);
    if (!*place) {
        char *name = strndup(host.data, host.length);
        if (!name)
            return false;
        hosts->name[hosts->count++] = name;
        *place = (uint32_t)hosts->count;
    }
    hosts->of[document] = *place;
    return true;
}

bool hosts_add(report_hosts *hosts, uint64_t document, const char *url, size_t length) {
    size_t room = 3 * length + 64, written;
    char *canonical = malloc(room);
    doppel_url_parts parts;
    bool good =
        canonical && doppel_url_canonical((doppel_slice){url, length}, NULL, 0, canonical, room, &written) == DOPPEL_OK;
    if (good) {
        doppel_url_split((doppel_slice){canonical, written}, &parts);
        good = !parts.host.length || note_host(hosts, document, parts.host);
    }
    free(canonical);
    return good;
}

/* ---- pairs ---- */

static int by_hosts(const void *x, const void *y) {
    const host_pair *a = x, *b = y;
    if (a->kept != b->kept)
        return a->kept < b->kept ? -1 : 1;
    return a->copy < b->copy ? -1 : a->copy > b->copy;
}

static int by_copies(const void *x, const void *y) {
    const host_pair *a = x, *b = y;
    return a->copies != b->copies ? (a->copies > b->copies ? -1 : 1) : by_hosts(x, y);
}

/* Adds equal pairs up. */
static size_t merge(host_pair *pair, size_t count) {
    size_t used = 0;
    if (count)
        qsort(pair, count, sizeof *pair, by_hosts);
    for (size_t i = 0; i < count; i++)
        if (used && !by_hosts(&pair[used - 1], &pair[i]))
            pair[used - 1].copies += pair[i].copies;
        else
            pair[used++] = pair[i];
    return used;
}

static bool add_pair(report_hosts *hosts, size_t *room, host_pair pair) {
    if (hosts->pairs == *room) {
        hosts->pairs = merge(hosts->pair, hosts->pairs);
        if (hosts->pairs > *room / 2 || !*room) {
            size_t more = *room ? 2 * *room : 1024;
            host_pair *grown = realloc(hosts->pair, more * sizeof *grown);
            if (!grown)
                return false;
            hosts->pair = grown;
            *room = more;
        }
    }
    hosts->pair[hosts->pairs++] = pair;
    return true;
}

bool hosts_count(report_hosts *hosts, const doppel_batch *batch) {
    uint64_t count = doppel_batch_count(batch);
    size_t room = 0;
    for (uint64_t i = 0; i < count; i++) {
        doppel_near near;
        doppel_batch_get(batch, i, &near);
        uint32_t kept = near.a < count ? hosts->of[near.a] : 0, copy = hosts->of[i];
        if (near.a == i || !kept || !copy)
            continue;
        if (kept == copy)
            hosts->inside++;
        else
            hosts->between++;
        if (kept != copy && !add_pair(hosts, &room, (host_pair){kept - 1, copy - 1, 1}))
            return false;
    }
    if (hosts->pairs) {
        hosts->pairs = merge(hosts->pair, hosts->pairs);
        qsort(hosts->pair, hosts->pairs, sizeof *hosts->pair, by_copies);
    }
    return true;
}

/* ---- the section: pairs of hosts with the most copies ---- */

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
    html_format(page, "<section id=\"hosts\"><h2>%s</h2><p class=\"soft\">",
                hosts->pairs ? "Hosts that copy each other" : "Hosts");
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
