/* origins.c - which pages may send requests, and under which names the server answers.
 *
 * A browser lets any page send requests to any server, with the rights of the machine it runs on. What a page cannot
 * change is what the browser reports about it: Origin, Sec-Fetch-Site, and the name in Host. So a request from a page
 * of another origin is refused, and a server on loopback without tokens answers only to the names of loopback: a
 * name that a page controls may resolve to loopback, too. --origins are the server's addresses behind a proxy. */
#include "server/service.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* HOST:PORT */
typedef struct authority {
    doppel_slice name; /* with the brackets of IPv6 */
    unsigned port;
} authority;

static bool read_authority(doppel_slice written, bool https, authority *a) {
    const char *end = written.data + written.length, *at = written.data;
    if (written.length && *at == '[')
        at = memchr(at, ']', written.length);
    const char *colon = at ? memchr(at, ':', (size_t)(end - at)) : NULL;
    *a = (authority){{written.data, colon ? (size_t)(colon - written.data) : written.length}, https ? 443 : 80};
    if (!at || !a->name.length)
        return false;
    for (size_t i = 0; i < a->name.length; i++)
        if ((unsigned char)a->name.data[i] <= ' ' || strchr("/?#@\\\"", a->name.data[i]))
            return false;
    if (!colon)
        return true;
    a->port = 0;
    for (at = colon + 1; at < end && *at >= '0' && *at <= '9' && a->port <= UINT16_MAX; at++)
        a->port = a->port * 10 + (unsigned)(*at - '0');
    return at == end && end > colon + 1 && a->port <= UINT16_MAX;
}

static bool same_authority(const authority *a, const authority *b) {
    return a->port == b->port && a->name.length == b->name.length &&
           !strncasecmp(a->name.data, b->name.data, a->name.length);
}

typedef struct origin {
    bool https;
    authority at;
} origin;

static bool read_origin(doppel_slice written, origin *o) {
    static const char *const schemes[] = {"http://", "https://"};
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(schemes[i]);
        if (written.length > length && !strncasecmp(written.data, schemes[i], length)) {
            o->https = i;
            return read_authority((doppel_slice){written.data + length, written.length - length}, i, &o->at);
        }
    }
    return false;
}

/* Takes the next origin off a list separated by commas; false: there is none. */
static bool next_origin(const char **list, doppel_slice *written) {
    while (*list && (**list == ',' || **list == ' '))
        ++*list;
    if (!*list || !**list)
        return false;
    *written = (doppel_slice){*list, strcspn(*list, ", ")};
    *list += written->length;
    return true;
}

bool origins_allowed(const char *list, doppel_slice *wrong) {
    origin o;
    while (next_origin(&list, wrong))
        if (!read_origin(*wrong, &o))
            return false;
    return true;
}

/* Whether a Host header is one of the server's addresses behind a proxy. */
static bool is_listed_host(const char *list, const char *host) {
    doppel_slice written;
    origin o;
    authority given;
    while (next_origin(&list, &written))
        if (read_origin(written, &o) && read_authority(doppel_slice_of(host), o.https, &given) &&
            same_authority(&given, &o.at))
            return true;
    return false;
}

static bool is_listed_origin(const char *list, const origin *given) {
    doppel_slice written;
    origin o;
    while (next_origin(&list, &written))
        if (read_origin(written, &o) && o.https == given->https && same_authority(&given->at, &o.at))
            return true;
    return false;
}

/* Whether a Host header names this machine. */
static bool is_loopback(const char *host) {
    authority a;
    char name[INET6_ADDRSTRLEN];
    struct in_addr address;
    if (!read_authority(doppel_slice_of(host), false, &a) || a.name.length >= sizeof name)
        return false;
    memcpy(name, a.name.data, a.name.length);
    name[a.name.length] = 0;
    return !strcasecmp(name, "localhost") || !strcmp(name, "[::1]") ||
           (inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

static bool is_host_allowed(request *r, const request_head *head) {
    const char *host = head->header(head->user, "Host");
    if (!r->service->options.local_only || !host || is_loopback(host) ||
        is_listed_host(r->service->options.origins, host))
        return true;
    request_problem(r, PROBLEM_HOST, NULL,
                    "this server listens on loopback: use the name localhost, or start it with --origins if it has "
                    "this name behind a proxy");
    return false;
}

/* Whether this server serves the pages of an origin. */
static bool is_own(const service *s, const origin *given, const char *host) {
    authority own;
    return host && (given->https || !s->options.tls) && read_authority(doppel_slice_of(host), given->https, &own) &&
           same_authority(&given->at, &own);
}

/* Whether the user followed a link: the page that contains it does not see the answer. */
static bool is_link(const request_head *head) {
    const char *mode = head->header(head->user, "Sec-Fetch-Mode"), *to = head->header(head->user, "Sec-Fetch-Dest");
    return (!strcmp(head->method, "GET") || !strcmp(head->method, "HEAD")) && mode && !strcmp(mode, "navigate") && to &&
           !strcmp(to, "document");
}

static bool is_site_allowed(request *r, const request_head *head) {
    const char *from = head->header(head->user, "Origin"), *site = head->header(head->user, "Sec-Fetch-Site");
    origin o;
    if (from) {
        bool read = read_origin(doppel_slice_of(from), &o);
        if (read && is_listed_origin(r->service->options.origins, &o))
            return true;
        if (!read || !is_own(r->service, &o, head->header(head->user, "Host"))) {
            request_problem(r, PROBLEM_CROSS_SITE, NULL,
                            "a page of %.200s sent this request; if that is the address of this server behind a proxy, "
                            "start the server with --origins",
                            from);
            return false;
        }
    }
    if (!site || !strcmp(site, "same-origin") || !strcmp(site, "none") || is_link(head))
        return true;
    request_problem(r, PROBLEM_CROSS_SITE, NULL, "a page of another origin sent this request (Sec-Fetch-Site: %.40s)",
                    site);
    return false;
}

bool origin_allowed(request *r, const request_head *head) {
    return is_host_allowed(r, head) && is_site_allowed(r, head);
}
