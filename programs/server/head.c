/* head.c - the head of a request: its route, who sends it, what it may, its parameters, what body it brings. */
#include "server/service.h"
#include "server/target.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- what is true of every request ---- */

/* Whether a Host header names this machine: a page elsewhere cannot reach a server on loopback by a name of its own. */
static bool is_local(const char *host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (!strncasecmp(host, names[i], length) && (!host[length] || host[length] == ':'))
            return true;
    }
    return !host;
}

static bool welcome(request *r, const request_head *head) {
    service *s = r->service;
    if (!limits_allow(&s->limits, r->client, r->began, &r->retry_after)) {
        request_problem(r, PROBLEM_RATE, NULL, "at most %.0f requests a second; try again in %u s", s->limits.rate,
                        r->retry_after);
        return false;
    }
    if (s->options.local_only && !is_local(head->header(head->user, "Host"))) {
        request_problem(r, PROBLEM_HOST, NULL, "this server listens on loopback; call it localhost");
        return false;
    }
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
    r->right = tokens_find(&r->service->tokens, head->header(head->user, "Authorization"), r->token);
    if (r->right == RIGHT_NONE)
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
    const char *length = head->header(head->user, "Content-Length");
    bool any = head->header(head->user, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
    if (!size_fits(r, length))
        return false;
    if (r->route->body == BODY_NONE || (r->route->body == BODY_JSON_OPTIONAL && !any))
        return true;
    if (!type_fits(r, head->header(head->user, "Content-Type"))) {
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
