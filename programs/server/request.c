/* request.c - the life of a request, from its head to its answer: its route, its sender and their rights, its
 * parameters, its body; the work; problems, as application/problem+json (RFC 9457). */
#include "server/service.h"

#include "doppel.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* ---- the target: path and query, percent-encoded ---- */

static int hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t target_decode(char *bytes, size_t length, bool query) {
    size_t to = 0;
    for (size_t i = 0; i < length; i++) {
        char c = bytes[i];
        if (c == '%') {
            int high = i + 2 < length ? hex(bytes[i + 1]) : -1, low = i + 2 < length ? hex(bytes[i + 2]) : -1;
            if (high < 0 || low < 0)
                return SIZE_MAX;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && query) {
            c = ' ';
        }
        bytes[to++] = c;
    }
    return to;
}

static bool decode_string(char *bytes) {
    size_t length = target_decode(bytes, strlen(bytes), true);
    if (length == SIZE_MAX || memchr(bytes, 0, length))
        return false;
    bytes[length] = 0;
    return true;
}

bool target_next(char **query, char **name, char **value, bool *broken) {
    static char nothing[1];
    char *part = *query;
    *broken = false;
    if (!part || !*part)
        return false;
    char *end = strchr(part, '&');
    if (end)
        *end = 0;
    *query = end ? end + 1 : NULL;
    *name = part;
    *value = strchr(part, '=');
    if (*value)
        *(*value)++ = 0;
    else
        *value = nothing;
    *broken = !decode_string(*name) || !decode_string(*value);
    return true;
}

/* ---- where it comes from ----
 *
 * A browser lets any page send requests to any server, with the rights of the machine it runs on. What a page cannot
 * change is what the browser reports about it: Origin, Sec-Fetch-Site, and the name in Host. So a request that a page
 * of another origin sends is refused, and a server on loopback without tokens accepts only the names of loopback: a
 * name that a page controls may resolve to loopback, too. --origins are the server's addresses behind a proxy. */

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

/* Takes the next origin off a list, separated by commas; false: there is none. */
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

static bool is_called_rightly(request *r, const request_head *head) {
    const char *host = head->header(head->user, "Host");
    if (!r->service->options.local_only || !host || is_loopback(host) ||
        is_listed_host(r->service->options.origins, host))
        return true;
    request_problem(r, PROBLEM_HOST, NULL,
                    "this server listens on loopback: use the name localhost, or start it with --origins if it has "
                    "this name behind a proxy");
    return false;
}

/* Whether a page of this origin comes from this server. */
static bool is_own(const service *s, const origin *given, const char *host) {
    authority own;
    return host && (given->https || !s->options.tls) && read_authority(doppel_slice_of(host), given->https, &own) &&
           same_authority(&given->at, &own);
}

/* A link that a user followed: the page that contains it sees nothing of the answer. */
static bool is_link(const request_head *head) {
    const char *mode = head->header(head->user, "Sec-Fetch-Mode"), *to = head->header(head->user, "Sec-Fetch-Dest");
    return (!strcmp(head->method, "GET") || !strcmp(head->method, "HEAD")) && mode && !strcmp(mode, "navigate") && to &&
           !strcmp(to, "document");
}

static bool is_of_no_other_site(request *r, const request_head *head) {
    const char *from = head->header(head->user, "Origin"), *site = head->header(head->user, "Sec-Fetch-Site");
    origin o;
    if (from) {
        bool read = read_origin(doppel_slice_of(from), &o);
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
    request_problem(r, PROBLEM_BAD_REQUEST, NULL, "the path has a %% that is not followed by two hexadecimal digits");
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
        request_problem(r, PROBLEM_NO_ROUTE, NULL, "GET /openapi.json lists the routes");
    return false;
}

static bool has_right(request *r, const request_head *head) {
    right_kind needs = r->route->needs;
    if (needs == RIGHT_NONE)
        return true;
    r->right = tokens_find(&r->service->tokens, head->header(head->user, "Authorization"), r->token, &r->wrong_token);
    if (r->right == RIGHT_NONE && r->wrong_token)
        request_problem(
            r, PROBLEM_WRONG_TOKEN, NULL,
            "the server does not know this token: check it for typing errors, or ask the operator for another");
    else if (r->right == RIGHT_NONE)
        request_problem(r, PROBLEM_NO_TOKEN, NULL, "send the header Authorization: Bearer TOKEN");
    else if (r->right < needs)
        request_problem(r, PROBLEM_NO_RIGHT, NULL, "this needs a token with the right %s", right_names[needs]);
    return r->right >= needs;
}

static bool take_index(request *r) {
    if (!r->route->of_index)
        return true;
    r->index = indexes_take(&r->service->indexes, r->index_name);
    if (!r->index)
        request_problem(r, PROBLEM_NO_INDEX, NULL, "GET /v1/indexes lists the indexes");
    else if (r->index->unavailable)
        request_unavailable(r);
    else if (index_is_away(r->index))
        request_away(r);
    return !r->done;
}

/* ---- parameters ---- */

/* The number of characters of a text in UTF-8. */
static size_t characters(const char *text) {
    size_t count = 0;
    for (; *text; text++)
        count += (*text & 0xC0) != 0x80;
    return count;
}

static bool number_fits(const parameter *p, const char *value) {
    char *end;
    double number = strtod(value, &end);
    bool plain = *value && *value != '+' && !value[strspn(value, p->whole ? "0123456789" : "0123456789.eE+-")] && !*end;
    return plain && number >= p->least && number <= p->most;
}

static bool fits(const parameter *p, const char *value) {
    if (p->example)
        return characters(value) >= (size_t)p->least && characters(value) <= (size_t)p->most;
    if (!p->choices)
        return number_fits(p, value);
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
    else if (p->example)
        request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s has %g to %g characters", p->name, p->least,
                        p->most);
    else
        request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s is a %s from %.16g to %.16g", p->name,
                        p->whole ? "whole number" : "number", p->least, p->most);
    return false;
}

static bool take_parameter(request *r, const char *name, const char *value) {
    for (int i = 0; i < MAX_PARAMETERS && r->route->parameters[i].name; i++) {
        const parameter *p = &r->route->parameters[i];
        if (strcmp(p->name, name) != 0)
            continue;
        if (r->given[i]) {
            request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s is given twice", name);
            return false;
        }
        r->given[i] = value;
        return fits(p, value) || bad_value(r, p);
    }
    request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "unknown parameter \"%.100s\"", name);
    return false;
}

static bool take_parameters(request *r, char *query) {
    char *name, *value;
    bool broken;
    while (!r->route->any_query && target_next(&query, &name, &value, &broken)) {
        if (broken)
            request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the query is not correctly percent-encoded");
        if (broken || !take_parameter(r, name, value))
            return false;
    }
    for (int i = 0; i < MAX_PARAMETERS && r->route->parameters[i].name; i++)
        if (r->route->parameters[i].required && !r->given[i]) {
            const parameter *p = &r->route->parameters[i];
            request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s is missing; it is %s%s", p->name,
                            p->choices ? "one of: " : "", p->choices ? p->choices : p->help);
            return false;
        }
    return true;
}

/* ---- the body to come ---- */

static bool is_type(const char *given, const char *type) {
    size_t length = strlen(type);
    return !strncasecmp(given, type, length) && (!given[length] || given[length] == ';' || given[length] == ' ');
}

const char *body_type(const route_info *route) {
    return route->body == BODY_LINES  ? "application/x-ndjson"
           : route->body == BODY_FILE ? "application/octet-stream"
                                      : "application/json";
}

static bool type_fits(request *r, const char *type) {
    static const char *const lines[] = {"application/x-ndjson", "application/ndjson", "application/jsonl",
                                        "application/x-jsonlines"};
    /* None that a form of a page can have. */
    static const char *const files[] = {"application/octet-stream", "text/csv",         "text/tab-separated-values",
                                        "application/gzip",         "application/zstd", "application/x-bzip2",
                                        "application/x-xz",         "application/warc", "application/mbox"};
    body_kind kind = r->route->body;
    if (kind != BODY_LINES && kind != BODY_FILE)
        return type && is_type(type, "application/json");
    for (size_t i = 0; type && i < sizeof lines / sizeof *lines; i++)
        if (is_type(type, lines[i]))
            return true;
    for (size_t i = 0; type && kind == BODY_FILE && i < sizeof files / sizeof *files; i++)
        if (is_type(type, files[i]))
            return true;
    return false;
}

static bool size_fits(request *r, const char *length) {
    const service_options *o = &r->service->options;
    uint64_t most = r->route->body == BODY_FILE ? o->max_run : o->max_body;
    if (!length || r->route->body == BODY_LINES || strtoull(length, NULL, 10) <= most)
        return true;
    /* Up to a limit the body is read and dropped, so that a client that sends everything before it reads gets the
     * answer. */
    r->close = strtoull(length, NULL, 10) > DISCARD_MOST;
    request_problem(r, PROBLEM_TOO_LARGE, NULL, "at most %llu bytes", (unsigned long long)most);
    return false;
}

static bool expect_body(request *r, const request_head *head) {
    const char *length = head->header(head->user, "Content-Length"), *type = head->header(head->user, "Content-Type");
    bool any = head->header(head->user, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
    if (!size_fits(r, length))
        return false;
    /* A form of a page has a Content-Type even if it sends nothing. */
    if (r->route->body == BODY_NONE || (r->route->body == BODY_JSON_OPTIONAL && !any && !type))
        return true;
    if (!type_fits(r, type)) {
        request_problem(r, PROBLEM_TYPE, NULL, "send it with Content-Type: %s", body_type(r->route));
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
    if (r->route->body == BODY_FILE) {
        snprintf(r->sent_type, sizeof r->sent_type, "%s", type);
        return upload_begin(r);
    }
    return r->route->body != BODY_LINES || batch_begin(r);
}

/* The Idempotency-Key of an add; it is used once the body is here. */
static bool take_key(request *r, const request_head *head) {
    const char *key = r->route->dispatch == DISPATCH_ADD ? head->header(head->user, "Idempotency-Key") : NULL;
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

/* Takes the head; afterwards `done`, or the body may come. */
static void request_take_head(request *r, const request_head *head) {
    char *query;
    if (welcome(r, head) && find_route(r, head, &query) && has_right(r, head) && take_index(r) &&
        take_parameters(r, query) && take_key(r, head))
        expect_body(r, head);
}

/* ---- problems ---- */

const problem_info problems[PROBLEM_KINDS] = {
    [PROBLEM_NOT_JSON] = {"not-json", 400, "The body is not JSON"},
    [PROBLEM_WRONG_SHAPE] = {"wrong-shape", 400, "The body does not have the shape that this route takes"},
    [PROBLEM_BAD_DOCUMENT] = {"bad-document", 400, "The document cannot be used"},
    [PROBLEM_BAD_PARAMETER] = {"bad-parameter", 400, "A parameter is missing, unknown or invalid"},
    [PROBLEM_BAD_REQUEST] = {"bad-request", 400, "The request is invalid"},
    [PROBLEM_BAD_ENCODING] = {"bad-encoding", 400, "The compressed body is damaged"},
    [PROBLEM_BAD_LINES] = {"bad-lines", 400, "These lines of the batch cannot be used"},
    [PROBLEM_NO_TOKEN] = {"no-token", 401, "A token is needed"},
    [PROBLEM_WRONG_TOKEN] = {"wrong-token", 401, "The token is not known"},
    [PROBLEM_NO_RIGHT] = {"no-right", 403, "The token does not give this right"},
    [PROBLEM_CROSS_SITE] = {"cross-site", 403, "Pages of other sites may not use this server"},
    [PROBLEM_NO_ROUTE] = {"no-route", 404, "There is nothing at this path"},
    [PROBLEM_NO_DOCUMENT] = {"no-document", 404, "There is no such document"},
    [PROBLEM_NO_INDEX] = {"no-index", 404, "There is no such index"},
    [PROBLEM_NO_RUN] = {"no-run", 404, "There is no such run"},
    [PROBLEM_METHOD] = {"method", 405, "This path does not support this method"},
    [PROBLEM_EXISTS] = {"exists", 409, "The index already exists"},
    [PROBLEM_IN_PROGRESS] = {"in-progress", 409, "The same operation is in progress"},
    [PROBLEM_RUN_FAILED] = {"run-failed", 409, "The run failed and has no result"},
    [PROBLEM_DEFAULT_INDEX] = {"default-index", 409, "The default index cannot be dropped"},
    [PROBLEM_TOO_LARGE] = {"too-large", 413, "The body is too large"},
    [PROBLEM_CUT] = {"cut", 413, "The answer of the batch ends here"},
    [PROBLEM_TYPE] = {"type", 415, "A body of this type or encoding is not accepted"},
    [PROBLEM_HOST] = {"host", 421, "This server does not answer to that host name"},
    [PROBLEM_KEY_REUSED] = {"key-reused", 422, "The Idempotency-Key was used with another body"},
    [PROBLEM_RATE] = {"rate", 429, "Too many requests"},
    [PROBLEM_FAILED] = {"failed", 500, "The server failed"},
    [PROBLEM_STORE] = {"store", 500, "The index cannot be read or written"},
    [PROBLEM_AWAY] = {"away", 503, "The store of the index does not answer, or refuses writes"},
    [PROBLEM_UNAVAILABLE] = {"unavailable", 503, "The index is damaged or cannot be opened"},
    [PROBLEM_FULL] = {"full", 503, "There is no room for this now"},
    [PROBLEM_OFF] = {"off", 501, "The server was started without this, or the index does not support it"},
    [PROBLEM_NO_MEMORY] = {"no-memory", 503, "There is not enough memory for this now"},
};

void problem_write(text_buffer *out, const problem *p) {
    const problem_info *info = &problems[p->kind];
    text_format(out, "{\"type\":\"urn:doppel:problem:%s\",\"title\":\"%s\",\"status\":%d", info->name, info->title,
                info->status);
    text_member_string(out, "detail", doppel_slice_of(p->detail));
    if (p->pointer[0])
        text_member_string(out, "pointer", doppel_slice_of(p->pointer));
    if (p->line)
        text_member_count(out, "line", p->line);
    if (p->position)
        text_member_count(out, "position", p->position);
    text_put(out, "}");
}

static problem_kind kind_of(const index_entry *index, doppel_status status) {
    switch (status) {
    case DOPPEL_ERROR_USAGE:
    case DOPPEL_ERROR_INPUT: return PROBLEM_BAD_DOCUMENT;
    case DOPPEL_ERROR_MEMORY: return PROBLEM_NO_MEMORY;
    case DOPPEL_ERROR_AWAY: return PROBLEM_AWAY;
    case DOPPEL_ERROR_IO: return PROBLEM_STORE;
    case DOPPEL_ERROR_STORE: return index ? PROBLEM_UNAVAILABLE : PROBLEM_STORE;
    default: return PROBLEM_FAILED;
    }
}

enum { RETRY_AFTER = 1 }; /* seconds; a store that answers again is noticed sooner */

static const char try_again[] = "try again in a moment; documents may have been added, and are not added twice";

static const char see_log[] = "the server's log says what is wrong; other indexes are not affected";

void problem_words(char *message, size_t room) {
    static const struct {
        const char *option, *here;
    } words[] = {{"; --allow-bad continues without them", ""},
                 {"; --max-record sets it", ""},
                 {"--text-key ", "textKey="},
                 {"--html-key ", "textKey="},
                 {"--id-key ", "idKey="},
                 {": --format json reads it", ": give it a name that ends in .json"},
                 {": --format json", ": give it a name that ends in .json"},
                 {"; make one with `doppel df INPUT... -o TABLE` and give it with --df TABLE",
                  ", which the server does not take"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *found = strstr(message, words[i].option);
        char *rest = found ? strdup(found + strlen(words[i].option)) : NULL;
        if (rest)
            snprintf(found, room - (size_t)(found - message), "%s%s", words[i].here, rest);
        free(rest);
    }
}

void problem_of_error(problem *p, const index_entry *index, doppel_status status, const doppel_error *error) {
    *p = (problem){.kind = kind_of(index, status)};
    /* Clients must not see paths of the machine: of errors of the store only the status is shown. */
    bool tell = p->kind == PROBLEM_BAD_DOCUMENT && error && error->message[0];
    snprintf(p->detail, sizeof p->detail, "%s",
             tell                             ? error->message
             : p->kind == PROBLEM_AWAY        ? try_again
             : p->kind == PROBLEM_UNAVAILABLE ? see_log
                                              : doppel_status_name(status));
    problem_words(p->detail, sizeof p->detail);
}

static void answer_problem(request *r, const problem *p) {
    const problem_info *info = &problems[p->kind];
    text_free(&r->answer);
    spool_free(r->spool);
    r->spool = NULL;
    problem_write(&r->answer, p);
    r->status = info->status;
    r->type = "application/problem+json";
    r->done = r->failed = true;
}

void request_problem(request *r, problem_kind kind, const char *pointer, const char *format, ...) {
    problem p = {.kind = kind};
    va_list list;
    va_start(list, format);
    vsnprintf(p.detail, sizeof p.detail, format, list);
    va_end(list);
    if (pointer)
        snprintf(p.pointer, sizeof p.pointer, "%s", pointer);
    answer_problem(r, &p);
}

static void request_fail(request *r, const problem *p) {
    answer_problem(r, p);
}

void request_away(request *r) {
    request_problem(r, PROBLEM_AWAY, NULL, "nothing was done; try again in a moment");
    r->retry_after = RETRY_AFTER;
}

void request_unavailable(request *r) {
    request_problem(r, PROBLEM_UNAVAILABLE, NULL, "%s", see_log);
}

void request_error(request *r, doppel_status status, const doppel_error *error) {
    problem p;
    problem_of_error(&p, r->index, status, error);
    if (p.kind == PROBLEM_STORE || p.kind == PROBLEM_FAILED || p.kind == PROBLEM_AWAY || p.kind == PROBLEM_UNAVAILABLE)
        service_complain(r->service, status, error);
    if (p.kind == PROBLEM_AWAY)
        r->retry_after = RETRY_AFTER;
    answer_problem(r, &p);
}

void request_refused(request *r, doppel_status status, const doppel_error *error) {
    if (status == DOPPEL_ERROR_USAGE)
        request_problem(r, PROBLEM_OFF, NULL, "%s", error->message);
    else
        request_error(r, status, error);
}

/* ---- the whole ---- */

request *request_create(service *s, const request_head *head) {
    request *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->service = s;
    r->began = now_microseconds();
    snprintf(r->client, sizeof r->client, "%s", head->client ? head->client : "");
    atomic_fetch_add(&s->metrics.under_way, 1);
    r->target = strdup(head->target);
    if (r->target)
        request_take_head(r, head);
    else
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    return r;
}

void request_free(request *r) {
    if (!r)
        return;
    service *s = r->service;
    uint64_t took = now_microseconds() - r->began;
    metrics_count(&s->metrics, r->route, r->status, took);
    atomic_fetch_add(&s->metrics.received, r->received);
    atomic_fetch_add(&s->metrics.sent, r->sent);
    atomic_fetch_sub(&s->metrics.under_way, 1);
    atomic_fetch_sub(&s->buffered, r->buffered);
    access_log_write(s, r, took);
    if (r->has_key)
        idempotency_end(&s->idempotency, &r->key, 0, NULL);
    if (r->index)
        indexes_give(&s->indexes, r->index);
    batch_free(r->batch);
    upload_free(r);
    spool_free(r->spool);
    doppel_verdict_free(&r->verdict);
    free(r->extra);
    free(r->target);
    free(r->key_name);
    body_free(&r->body);
    json_free(&r->json);
    text_free(&r->content);
    text_free(&r->answer);
    text_free(&r->disposition);
    free(r);
}

/* ---- the body ---- */

/* Takes decompressed bytes of a JSON body. */
static bool add_to_content(void *user, const char *bytes, size_t length) {
    request *r = user;
    service *s = r->service;
    if (length > s->options.max_body - r->content.length) {
        request_problem(r, PROBLEM_TOO_LARGE, NULL, "at most %llu bytes", (unsigned long long)s->options.max_body);
        return false;
    }
    if (atomic_fetch_add(&s->buffered, length) > s->options.max_buffered) {
        atomic_fetch_sub(&s->buffered, length);
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "too many bodies are being received; try again later");
        return false;
    }
    r->buffered += length;
    text_reserve(&r->content, length + 1);
    text_add(&r->content, bytes, length);
    if (!r->content.failed)
        return true;
    request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    return false;
}

void request_body_result(request *r, body_result result, const char *what) {
    switch (result) {
    case BODY_FINE:
    case BODY_STOPPED: return;
    case BODY_BROKEN: request_problem(r, PROBLEM_BAD_ENCODING, NULL, "the %s cannot be decompressed", what); return;
    case BODY_TOO_DENSE:
        request_problem(r, PROBLEM_TOO_LARGE, NULL,
                        "the %s decompresses to more than %llu times its size: send it uncompressed", what,
                        (unsigned long long)r->body.max_ratio);
        return;
    case BODY_LARGE_WINDOW:
        request_problem(r, PROBLEM_TYPE, NULL,
                        "the %s takes more memory to decompress than the server gives it: compress it with a smaller "
                        "window (zstd -19 and xz -9 are accepted), or send it uncompressed",
                        what);
        return;
    case BODY_NO_MEMORY: request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory"); return;
    }
}

bool request_receive(request *r, const char *bytes, size_t length) {
    r->received += length;
    if (r->received > DISCARD_MOST && (r->done || r->route->body == BODY_NONE))
        r->drop = true;
    if (r->done || r->route->body == BODY_NONE)
        return false;
    if (r->route->body == BODY_LINES)
        return batch_receive(r, bytes, length);
    if (r->route->body == BODY_FILE)
        return upload_receive(r, bytes, length);
    request_body_result(r, body_add(&r->body, bytes, length, add_to_content, r), "body");
    return false;
}

dispatch_kind request_received(request *r) {
    if (r->done)
        return DISPATCH_HERE;
    bool by_worker = r->route->body == BODY_LINES || r->route->body == BODY_FILE; /* which looks at its end, too */
    if (!by_worker && !body_whole(&r->body)) {
        request_problem(r, PROBLEM_BAD_ENCODING, NULL, "the compressed body is truncated");
        return DISPATCH_HERE;
    }
    r->work = r->route->handle;
    bool waits = r->content.length > QUICK_BODY || (r->index && r->index->needs.connects);
    return r->route->dispatch == DISPATCH_HERE && waits ? DISPATCH_WORKER : r->route->dispatch;
}

/* ---- the work ---- */

static void no_answer(request *r) {
    if (r->done && r->answer.failed)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
}

void request_run(request *r) {
    r->work(r);
    if (r->adds) {
        request *list[] = {r};
        add_together(list, 1);
    }
    no_answer(r);
}

/* Whether its store stopped answering while it was in the queue. */
static bool is_too_late(request *r) {
    return r->index && !r->batch && index_is_away(r->index);
}

/* The work of a worker: everything. */
void work_on(request **list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        request *r = list[i];
        if (is_too_late(r))
            request_away(r);
        else
            request_run(r);
        if (r->waits && !r->done)
            upload_wait(r);
        else if (r->service->wake)
            r->service->wake(r);
    }
}

/* The work of an adder. */
void work_on_adds(request **list, size_t count) {
    bool away = count && is_too_late(list[0]); /* they are of one index */
    if (!away)
        add_together(list, count);
    for (size_t i = 0; i < count; i++) {
        if (away)
            request_away(list[i]);
        no_answer(list[i]);
        if (list[i]->service->wake)
            list[i]->service->wake(list[i]);
    }
}

void request_hand_over(request *r, dispatch_kind how) {
    service *s = r->service;
    if (how == DISPATCH_WAIT)
        runs_wait(r);
    else
        workers_add(how == DISPATCH_ADD ? &s->adders : how == DISPATCH_FILE ? &s->makers : &s->workers, r);
}

/* ---- for handlers ---- */

void request_answer(request *r, int status) {
    r->status = status;
    r->type = r->route->type ? r->route->type : "application/json";
    r->done = true;
}

double request_number(const request *r, const char *name) {
    const char *value = request_choice(r, name);
    return value ? strtod(value, NULL) : 0;
}

const char *request_choice(const request *r, const char *name) {
    for (int i = 0; i < MAX_PARAMETERS && r->route->parameters[i].name; i++)
        if (!strcmp(r->route->parameters[i].name, name))
            return r->given[i] ? r->given[i] : r->route->parameters[i].otherwise;
    return NULL;
}

bool request_json(request *r) {
    problem p = {.kind = PROBLEM_NOT_JSON};
    if (!r->content.length && r->route->body == BODY_JSON_OPTIONAL)
        text_put(&r->content, "{}");
    text_reserve(&r->content, 1);
    if (r->content.failed) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
        return false;
    }
    r->content.data[r->content.length] = 0;
    if (!json_read(&r->json, r->content.data, r->content.length)) {
        p.position = r->json.position + 1;
        p.kind = r->json.no_memory ? PROBLEM_NO_MEMORY : PROBLEM_NOT_JSON;
        snprintf(p.detail, sizeof p.detail, "%s", r->json.why);
        request_fail(r, &p);
        return false;
    }
    if (shape_check(r->route->takes, &r->json, r->json.values, r->index, &p))
        return true;
    request_fail(r, &p);
    return false;
}
