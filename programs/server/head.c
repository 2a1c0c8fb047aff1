/* head.c - the head of a request: its route, who sends it, what it may, its parameters, what body it brings. */
#include "server/service.h"
#include "server/target.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- where it comes from ----
 *
 * A browser lets any page send requests to any server, with the rights of the machine it runs on. What a page cannot
 * change is what the browser says of it: Origin, Sec-Fetch-Site, and the name in Host. So a request that a page of
 * another origin sends is refused, and a server on loopback without tokens is called by the names of loopback alone: a
 * name of a page's own may resolve to loopback, too. --origins are the addresses that it has behind a proxy. */

/* The part HOST:PORT of an address. */
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

/* Takes the next of a list of origins, separated by commas, off it; false: there is none. */
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

/* Whether the server answers to a Host header behind a proxy. */
static bool is_listed_host(const char *list, const char *host) {
    doppel_slice written;
    origin o;
    authority given;
    while (next_origin(&list, &written))
        if (read_origin(written, &o) && read_authority(slice_of(host), o.https, &given) &&
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
    if (!read_authority(slice_of(host), false, &a) || a.name.length >= sizeof name)
        return false;
    memcpy(name, a.name.data, a.name.length);
    name[a.name.length] = 0;
    return !strcasecmp(name, "localhost") || !strcmp(name, "[::1]") ||
           (inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

static bool is_called_rightly(request *r, const request_head *head) {
    const char *host = head->header(head->user, "Host");
    if (!r->service->options.local_only || !host || is_loopback(host) ||
        is_listed_host(r->service->options.origins, host))
        return true;
    request_problem(r, PROBLEM_HOST, NULL,
                    "this server listens on loopback; call it localhost, or start it with --origins if it has this "
                    "name behind a proxy");
    return false;
}

/* Whether a page of this origin is one of this server's own. */
static bool is_own(const service *s, const origin *given, const char *host) {
    authority own;
    return host && (given->https || !s->options.tls) && read_authority(slice_of(host), given->https, &own) &&
           same_authority(&given->at, &own);
}

/* A link that somebody followed: the page that has it sees nothing of the answer. */
static bool is_link(const request_head *head) {
    const char *mode = head->header(head->user, "Sec-Fetch-Mode"), *to = head->header(head->user, "Sec-Fetch-Dest");
    return (!strcmp(head->method, "GET") || !strcmp(head->method, "HEAD")) && mode && !strcmp(mode, "navigate") && to &&
           !strcmp(to, "document");
}

static bool is_of_no_other_site(request *r, const request_head *head) {
    const char *from = head->header(head->user, "Origin"), *site = head->header(head->user, "Sec-Fetch-Site");
    origin o;
    if (from) {
        bool read = read_origin(slice_of(from), &o);
        if (read && is_listed_origin(r->service->options.origins, &o))
            return true;
        if (!read || !is_own(r->service, &o, head->header(head->user, "Host"))) {
            request_problem(r, PROBLEM_CROSS_SITE, NULL,
                            "a page of %.200s sent this request; if that is this server behind a proxy, start it with "
                            "--origins",
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

/* ---- what is true of every request ---- */

static bool welcome(request *r, const request_head *head) {
    service *s = r->service;
    if (!limits_allow(&s->limits, r->client, r->began, &r->retry_after)) {
        request_problem(r, PROBLEM_RATE, NULL, "at most %.0f requests a second; try again in %u s", s->limits.rate,
                        r->retry_after);
        return false;
    }
    if (!is_called_rightly(r, head) || !is_of_no_other_site(r, head))
        return false;
    if (head->header(head->user, "Transfer-Encoding") && head->header(head->user, "Content-Length")) {
        r->close = true;
        request_problem(r, PROBLEM_BAD_REQUEST, NULL, "Transfer-Encoding and Content-Length exclude each other");
        return false;
    }
    return true;
}

/* ---- the route ---- */

static void wrong_method(request *r, const request_head *head, unsigned methods) {
    for (unsigned i = 0; method_names[i]; i++)
        if (methods & 1u << i) {
            size_t used = strlen(r->allow);
            snprintf(r->allow + used, sizeof r->allow - used, "%s%s", used ? ", " : "", method_names[i]);
        }
    request_problem(r, PROBLEM_METHOD, NULL, "this path takes %s, not %.20s", r->allow, head->method);
}

static bool decode_parts(request *r, const route_match *match) {
    r->index_name = match->index;
    if (!match->id.data)
        return true;
    r->id = r->target + (match->id.data - r->target);
    r->id_length = target_decode(r->id, match->id.length, false);
    if (r->id_length != SIZE_MAX)
        return true;
    r->id_length = 0;
    request_problem(r, PROBLEM_BAD_REQUEST, NULL, "the path has a %% that no two hexadecimal digits follow");
    return false;
}

static bool find_route(request *r, const request_head *head, char **query) {
    char *mark = strchr(r->target, '?');
    *query = mark ? mark + 1 : NULL;
    doppel_slice path = {r->target, mark ? (size_t)(mark - r->target) : strlen(r->target)};
    route_match match = route_find(head->method, path);
    r->route = match.route;
    if (match.route)
        return decode_parts(r, &match);
    if (match.other_methods)
        wrong_method(r, head, match.other_methods);
    else
        request_problem(r, PROBLEM_NO_ROUTE, NULL, "GET /openapi.json lists what there is");
    return false;
}

static bool has_right(request *r, const request_head *head) {
    static const char *const names[] = {"", "read", "write", "admin"};
    right_kind needs = r->route->needs;
    if (needs == RIGHT_NONE)
        return true;
    r->right = tokens_find(&r->service->tokens, head->header(head->user, "Authorization"), r->token, &r->wrong_token);
    if (r->right == RIGHT_NONE && r->wrong_token)
        request_problem(
            r, PROBLEM_WRONG_TOKEN, NULL,
            "the server does not know this token: look for a typing error, or ask the operator for another");
    else if (r->right == RIGHT_NONE)
        request_problem(r, PROBLEM_NO_TOKEN, NULL, "send the header Authorization: Bearer TOKEN");
    else if (r->right < needs)
        request_problem(r, PROBLEM_NO_RIGHT, NULL, "this needs the right to %s", names[needs]);
    return r->right >= needs;
}

static bool take_index(request *r) {
    if (!r->route->of_index)
        return true;
    r->index = indexes_take(&r->service->indexes, r->index_name);
    if (!r->index)
        request_problem(r, PROBLEM_NO_INDEX, NULL, "GET /v1/indexes lists what there is");
    else if (r->index->unavailable)
        request_unavailable(r);
    else if (index_is_away(r->index))
        request_away(r);
    return !r->done;
}

/* ---- parameters ---- */

static bool fits(const parameter *p, const char *value) {
    char *end;
    if (!p->choices) {
        double number = strtod(value, &end);
        bool plain = *value && !value[strspn(value, "0123456789.")] && !*end;
        return plain && number >= p->least && number <= p->most && (!p->whole || number == (double)(uint64_t)number);
    }
    for (const char *at = p->choices; at;) {
        size_t length = strcspn(at, "|");
        if (strlen(value) == length && !memcmp(at, value, length))
            return true;
        at = at[length] ? at + length + 1 : NULL;
    }
    return false;
}

static bool bad_value(request *r, const parameter *p) {
    if (p->choices)
        request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s is one of: %s", p->name, p->choices);
    else
        request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s is a %s from %g to %g", p->name,
                        p->whole ? "whole number" : "number", p->least, p->most);
    return false;
}

static bool take_parameter(request *r, const char *name, const char *value) {
    for (int i = 0; i < MAX_PARAMETERS && r->route->parameters[i].name; i++) {
        const parameter *p = &r->route->parameters[i];
        if (strcmp(p->name, name) != 0)
            continue;
        if (r->given[i]) {
            request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s stands there twice", name);
            return false;
        }
        r->given[i] = value;
        return fits(p, value) || bad_value(r, p);
    }
    request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "there is no parameter \"%.100s\" here", name);
    return false;
}

static bool take_parameters(request *r, char *query) {
    char *name, *value;
    bool broken;
    while (target_next(&query, &name, &value, &broken)) {
        if (broken)
            request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the query is not percent-encoded as it should be");
        if (broken || !take_parameter(r, name, value))
            return false;
    }
    for (int i = 0; i < MAX_PARAMETERS && r->route->parameters[i].name; i++)
        if (r->route->parameters[i].required && !r->given[i]) {
            request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s is missing; it is one of: %s",
                            r->route->parameters[i].name, r->route->parameters[i].choices);
            return false;
        }
    return true;
}

/* ---- the body to come ---- */

static bool is_type(const char *given, const char *type) {
    size_t length = strlen(type);
    return !strncasecmp(given, type, length) && (!given[length] || given[length] == ';' || given[length] == ' ');
}

static bool type_fits(request *r, const char *type) {
    static const char *const lines[] = {"application/x-ndjson", "application/ndjson", "application/jsonl",
                                        "application/x-jsonlines"};
    if (r->route->body != BODY_LINES)
        return type && is_type(type, "application/json");
    for (size_t i = 0; type && i < sizeof lines / sizeof *lines; i++)
        if (is_type(type, lines[i]))
            return true;
    return false;
}

static bool size_fits(request *r, const char *length) {
    uint64_t most = r->service->options.max_body;
    if (!length || r->route->body == BODY_LINES || strtoull(length, NULL, 10) <= most)
        return true;
    /* Up to a limit it is read away, so that a client that sends first and then listens gets the answer. */
    r->close = strtoull(length, NULL, 10) > DISCARD_MOST;
    request_problem(r, PROBLEM_TOO_LARGE, NULL, "at most %llu bytes", (unsigned long long)most);
    return false;
}

static bool expect_body(request *r, const request_head *head) {
    const char *length = head->header(head->user, "Content-Length"), *type = head->header(head->user, "Content-Type");
    bool any = head->header(head->user, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
    if (!size_fits(r, length))
        return false;
    /* A form of a page says its type even if it sends nothing. */
    if (r->route->body == BODY_NONE || (r->route->body == BODY_JSON_OPTIONAL && !any && !type))
        return true;
    if (!type_fits(r, type)) {
        request_problem(r, PROBLEM_TYPE, NULL, "send it with Content-Type: %s",
                        r->route->body == BODY_LINES ? "application/x-ndjson" : "application/json");
        return false;
    }
    body_coding coding = body_coding_of(head->header(head->user, "Content-Encoding"));
    if (coding == CODING_UNKNOWN) {
        request_problem(r, PROBLEM_TYPE, NULL, "the body may be plain, gzip or zstd");
        return false;
    }
    if (body_begin(&r->body, coding) != BODY_FINE) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
        return false;
    }
    r->body.max_ratio = r->service->options.max_ratio;
    return r->route->body != BODY_LINES || batch_begin(r);
}

/* The Idempotency-Key of an add; it is used once the body is here. */
static bool take_key(request *r, const request_head *head) {
    const char *key = r->route->run == RUN_ADD ? head->header(head->user, "Idempotency-Key") : NULL;
    if (!key)
        return true;
    if (!*key || strlen(key) > IDEMPOTENCY_LONGEST) {
        request_problem(r, PROBLEM_BAD_REQUEST, NULL, "an Idempotency-Key has 1 to %d bytes", IDEMPOTENCY_LONGEST);
        return false;
    }
    r->key_name = strdup(key);
    if (!r->key_name)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    return r->key_name;
}

void request_take_head(request *r, const request_head *head) {
    char *query;
    if (welcome(r, head) && find_route(r, head, &query) && has_right(r, head) && take_index(r) &&
        take_parameters(r, query) && take_key(r, head))
        expect_body(r, head);
}
