/* request.c - a request from its head to its answer: its route, its rights, its parameters, its body; the work. */
#include "server/service.h"

#include "doppel.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* ---- before its route is known ---- */

static bool is_admitted(request *r, const request_head *head) {
    service *s = r->service;
    if (!limits_allow(&s->limits, r->client, r->began, &r->retry_after)) {
        request_problem(r, PROBLEM_RATE, NULL, "at most %.0f requests a second; try again in %u s", s->limits.rate,
                        r->retry_after);
        return false;
    }
    if (!origin_allowed(r, head))
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
        request_problem(r, PROBLEM_WRONG_TOKEN, NULL,
                        "unknown token: check it for typing errors, or ask the operator for another");
    else if (r->right == RIGHT_NONE)
        request_problem(r, PROBLEM_NO_TOKEN, NULL, "send the header Authorization: Bearer TOKEN");
    else if (r->right < needs)
        request_problem(r, PROBLEM_NO_RIGHT, NULL, "this needs a token with the right %s", right_names[needs]);
    return r->right >= needs;
}

static bool take_index(request *r) {
    if (!r->route->of_index)
        return true;
    r->index = indexes_acquire(&r->service->indexes, r->index_name);
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
        request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s must be one of: %s", p->name, p->choices);
    else if (p->example)
        request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s must have %g to %g characters", p->name,
                        p->least, p->most);
    else
        request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "the parameter %s must be a %s from %.16g to %.16g", p->name,
                        p->whole ? "whole number" : "number", p->least, p->most);
    return false;
}

static bool unknown_parameter(request *r, const char *name) {
    text_buffer names = {0};
    for (int i = 0; i < MAX_PARAMETERS && r->route->parameters[i].name; i++)
        text_format(&names, "%s%s", i ? ", " : "; the parameters are ", r->route->parameters[i].name);
    request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "unknown parameter \"%.100s\"%.*s", name,
                    names.failed ? 0 : (int)names.length, names.failed || !names.data ? "" : names.data);
    text_free(&names);
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
    return unknown_parameter(r, name);
}

static bool take_parameters(request *r, char *query) {
    char *name, *value;
    bool broken;
    while (!r->route->any_query && target_next(&query, &name, &value, &broken)) {
        if (broken)
            request_problem(r, PROBLEM_BAD_PARAMETER, NULL,
                            "the query is not correctly percent-encoded, or it contains U+0000");
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

/* ---- headers of the body ---- */

bool request_has_type(const char *given, const char *type) {
    size_t length = strlen(type);
    return !strncasecmp(given, type, length) && (!given[length] || given[length] == ';' || given[length] == ' ');
}

const char *body_type(const route_info *route) {
    return route->body == BODY_LINES                                    ? "application/x-ndjson"
           : route->body == BODY_FILE || route->body == BODY_SMALL_FILE ? "application/octet-stream"
                                                                        : "application/json";
}

static bool type_fits(request *r, const char *type) {
    static const char *const lines[] = {"application/x-ndjson", "application/ndjson", "application/jsonl",
                                        "application/x-jsonlines"};
    /* No type here can be that of a form. */
    static const char *const files[] = {"application/octet-stream", "text/csv",         "text/tab-separated-values",
                                        "application/gzip",         "application/zstd", "application/x-bzip2",
                                        "application/x-xz",         "application/warc", "application/mbox",
                                        "application/x-tar"};
    body_kind kind = r->route->body;
    bool is_file = kind == BODY_FILE || kind == BODY_SMALL_FILE;
    if (kind != BODY_LINES && !is_file)
        return type && request_has_type(type, "application/json");
    for (size_t i = 0; type && i < sizeof lines / sizeof *lines; i++)
        if (request_has_type(type, lines[i]))
            return true;
    for (size_t i = 0; type && is_file && i < sizeof files / sizeof *files; i++)
        if (request_has_type(type, files[i]))
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
    /* The form of a page has a Content-Type even if its body is empty. */
    if (r->route->body == BODY_NONE || (r->route->body == BODY_JSON_OPTIONAL && !any && !type))
        return true;
    if (!type_fits(r, type)) {
        request_problem(r, PROBLEM_TYPE, NULL, "send it with Content-Type: %s", body_type(r->route));
        return false;
    }
    body_coding coding = body_coding_of(head->header(head->user, "Content-Encoding"));
    if (coding == CODING_UNKNOWN) {
        request_problem(r, PROBLEM_TYPE, NULL, "the body may be uncompressed, or compressed with gzip or zstd");
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

/* Keeps the Idempotency-Key of an add until its body has arrived. */
static bool take_key(request *r, const request_head *head) {
    const char *key = r->route->dispatch == DISPATCH_ADD ? head->header(head->user, "Idempotency-Key") : NULL;
    if (!key)
        return true;
    if (!*key || strlen(key) > IDEMPOTENCY_LONGEST) {
        request_problem(r, PROBLEM_BAD_REQUEST, NULL, "an Idempotency-Key must have 1 to %d bytes",
                        IDEMPOTENCY_LONGEST);
        return false;
    }
    r->key_name = strdup(key);
    if (!r->key_name)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    return r->key_name;
}

/* Checks the head; afterwards the request is `done`, or its body can be received. */
static void request_take_head(request *r, const request_head *head) {
    char *query;
    if (is_admitted(r, head) && find_route(r, head, &query) && has_right(r, head) && take_index(r) &&
        take_parameters(r, query) && take_key(r, head))
        expect_body(r, head);
}

/* ---- created and freed ---- */

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
        indexes_release(&s->indexes, r->index);
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

bool request_set_buffered(request *r, size_t bytes) {
    service *s = r->service;
    if (bytes > r->buffered) {
        size_t more = bytes - r->buffered;
        if (atomic_fetch_add(&s->buffered, more) + more > s->options.max_buffered) {
            atomic_fetch_sub(&s->buffered, more);
            return false;
        }
    } else {
        atomic_fetch_sub(&s->buffered, r->buffered - bytes);
    }
    r->buffered = bytes;
    return true;
}

/* Takes decompressed bytes of a JSON body. */
static bool add_to_content(void *user, const char *bytes, size_t length) {
    request *r = user;
    service *s = r->service;
    if (length > s->options.max_body - r->content.length) {
        request_problem(r, PROBLEM_TOO_LARGE, NULL, "at most %llu bytes", (unsigned long long)s->options.max_body);
        return false;
    }
    if (!request_set_buffered(r, r->buffered + length)) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "too many bodies are being received; try again later");
        return false;
    }
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
    bool by_worker = r->route->body == BODY_LINES || r->route->body == BODY_FILE; /* which checks its end, too */
    if (!by_worker && !body_whole(&r->body)) {
        request_problem(r, PROBLEM_BAD_ENCODING, NULL, "the compressed body is truncated");
        return DISPATCH_HERE;
    }
    r->work = r->route->handle;
    bool waits = r->content.length > QUICK_BODY || (r->index && r->index->needs.connects);
    return r->route->dispatch == DISPATCH_HERE && waits ? DISPATCH_WORKER : r->route->dispatch;
}

/* ---- the work ---- */

/* There is an answer, which may take long to be sent: frees what is not needed for it. */
static void end_work(request *r) {
    if (!r->done)
        return;
    if (r->answer.failed)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    json_free(&r->json);
    text_free(&r->content);
    request_set_buffered(r, r->answer.length);
}

void request_run(request *r) {
    r->work(r);
    if (r->adds) {
        request *list[] = {r};
        add_together(list, 1);
    }
    end_work(r);
}

/* Whether the store of its index stopped answering while the request was in the queue. */
static bool is_too_late(request *r) {
    return r->index && !r->batch && index_is_away(r->index);
}

/* What workers do: everything. */
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

/* What adders do. */
void work_on_adds(request **list, size_t count) {
    bool away = count && is_too_late(list[0]); /* they are of one index */
    if (!away)
        add_together(list, count);
    for (size_t i = 0; i < count; i++) {
        if (away)
            request_away(list[i]);
        end_work(list[i]);
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
