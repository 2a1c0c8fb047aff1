/* openapi.c - GET /openapi.json: the table of routes as OpenAPI 3.0. */
#include "server/openapi.h"
#include "server/service.h"

#include <string.h>

#define INDEX_PATTERN "^[a-z0-9_-]{1,64}$"

/* Whether a list has nothing yet. */
static bool is_first(const text *out) {
    return out->length && out->data[out->length - 1] == '[';
}

static void write_path_parameter(text *out, const char *name, const char *help, const char *pattern) {
    text_format(out, "%s{\"name\":\"%s\",\"in\":\"path\",\"required\":true,\"description\":\"%s\"",
                is_first(out) ? "" : ",", name, help);
    text_format(out, ",\"schema\":{\"type\":\"string\",\"pattern\":\"%s\"}}", pattern);
}

static void write_parameter(text *out, const parameter *p) {
    text_format(out, "%s{\"name\":\"%s\",\"in\":\"query\",\"required\":%s", is_first(out) ? "" : ",", p->name,
                p->required ? "true" : "false");
    text_member_string(out, "description", slice_of(p->help));
    text_member(out, "schema");
    text_put(out, "{");
    if (p->choices) {
        text_member_string(out, "type", slice_of("string"));
        openapi_choices(out, p->choices, false);
    } else {
        text_member_string(out, "type", slice_of(p->whole ? "integer" : "number"));
        text_member_number(out, "minimum", p->least);
        text_member_number(out, "maximum", p->most);
    }
    if (p->otherwise)
        text_format(out, p->choices ? ",\"default\":\"%s\"" : ",\"default\":%s", p->otherwise);
    text_put(out, "}}");
}

static void write_parameters(text *out, const route_info *r, bool below) {
    text_member(out, "parameters");
    text_put(out, "[");
    if (below)
        write_path_parameter(out, "index", "the name of an index", INDEX_PATTERN);
    if (strstr(r->path, "{id}"))
        write_path_parameter(out, "id", "an id or a URL, percent-encoded, slashes too", "^.");
    if (strstr(r->path, "{name}"))
        write_path_parameter(out, "name", "a name", r->needs > RIGHT_NONE ? INDEX_PATTERN : "^.");
    for (int i = 0; i < MAX_PARAMETERS && r->parameters[i].name; i++)
        write_parameter(out, &r->parameters[i]);
    if (r->run == RUN_ADD)
        text_format(out,
                    "%s{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"required\":false,\"description\":\"an add "
                    "that is sent again under the same key gets the first answer\",\"schema\":{\"type\":"
                    "\"string\",\"minLength\":1,\"maxLength\":%d}}",
                    is_first(out) ? "" : ",", IDEMPOTENCY_LONGEST);
    text_put(out, "]");
}

static void write_body(text *out, const route_info *r) {
    if (r->body == BODY_NONE)
        return;
    text_member(out, "requestBody");
    text_format(out,
                "{\"required\":%s,\"content\":{\"%s\":{\"schema\":", r->body == BODY_JSON_OPTIONAL ? "false" : "true",
                r->body == BODY_LINES ? "application/x-ndjson" : "application/json");
    if (r->body == BODY_LINES)
        text_put(out, "{\"type\":\"string\"}");
    else
        openapi_reference(out, r->takes);
    text_put(out, "}}}");
}

static void write_answer(text *out, const route_info *r, const answer_info *a) {
    char status[8];
    snprintf(status, sizeof status, "%d", a->status);
    text_member(out, status);
    text_put(out, "{");
    text_member_string(out, "description", slice_of(a->help));
    text_member(out, "content");
    const char *type = a->shape == &shape_problem ? "application/problem+json" : r->type ? r->type : "application/json";
    size_t length = strcspn(type, ";");
    text_format(out, "{\"%.*s\":{\"schema\":", (int)length, type);
    if (r->body == BODY_LINES && a->status == 200)
        text_put(out, "{\"type\":\"string\"}");
    else if (a->shape)
        openapi_reference(out, a->shape);
    else
        text_put(out, "{}");
    text_put(out, "}}}");
}

/* Whether a route can answer with a problem that any can. */
static bool can(const route_info *r, int status, bool below) {
    for (int i = 0; i < MAX_ANSWERS && r->answers[i].status; i++)
        if (r->answers[i].status == status)
            return false;
    switch (status) {
    case 401: return r->needs > RIGHT_NONE;
    case 404: return below;
    case 413:
    case 415: return r->body != BODY_NONE;
    default: return true;
    }
}

/* Every problem of a status, from one of them on. */
static void write_problem(text *out, const route_info *r, int first) {
    char help[512];
    size_t used = 0;
    for (int i = first; i < PROBLEM_KINDS && used < sizeof help; i++)
        if (problems[i].status == problems[first].status)
            used += (size_t)snprintf(help + used, sizeof help - used, "%s%s", used ? "; " : "", problems[i].title);
    write_answer(out, r, &(answer_info){problems[first].status, &shape_problem, help});
}

static void write_answers(text *out, const route_info *r, bool below) {
    text_member(out, "responses");
    text_put(out, "{");
    for (int i = 0; i < MAX_ANSWERS && r->answers[i].status; i++)
        write_answer(out, r, &r->answers[i]);
    int last = 0;
    for (int i = 0; i < PROBLEM_KINDS; i++) {
        int status = problems[i].status;
        bool common = status != 405 && status != 409 && status != 422 && status != 501;
        if (status > last && common && can(r, status, below))
            write_problem(out, r, i);
        last = status > last ? status : last;
    }
    text_put(out, "}");
}

static void write_operation(text *out, const route_info *r, bool below) {
    char method[8] = {0};
    for (size_t i = 0; r->method[i] && i < sizeof method - 1; i++)
        method[i] = (char)(r->method[i] | 32);
    text_member(out, method);
    text_put(out, "{");
    text_member_string(out, "summary", slice_of(r->summary));
    if (*r->help)
        text_member_string(out, "description", slice_of(r->help));
    write_parameters(out, r, below);
    write_body(out, r);
    write_answers(out, r, below);
    if (r->needs > RIGHT_NONE) {
        text_member(out, "security");
        text_put(out, "[{},{\"token\":[]}]");
    }
    text_put(out, "}");
}

/* All methods of the path of a route, unless an earlier one has it. */
static void write_path(text *out, const route_info *r, bool below) {
    for (const route_info *earlier = routes; earlier < r; earlier++)
        if (!strcmp(earlier->path, r->path))
            return;
    char path[128];
    snprintf(path, sizeof path, "%s%s", below ? "/v1/indexes/{index}" : "", r->path + (below ? 3 : 0));
    text_member(out, path);
    text_put(out, "{");
    for (const route_info *same = r; same->method; same++)
        if (!strcmp(same->path, r->path))
            write_operation(out, same, below);
    text_put(out, "}");
}

void openapi_write(text *out) {
    text done = {0};
    text_format(out,
                "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"doppel\",\"version\":\"%s\",\"description\":\"Finds the "
                "documents you have already seen.\"}",
                doppel_version());
    text_member(out, "paths");
    text_put(out, "{");
    for (const route_info *r = routes; r->method; r++)
        write_path(out, r, false);
    for (const route_info *r = routes; r->method; r++)
        if (r->of_index)
            write_path(out, r, true);
    text_put(out, "}");
    text_member(out, "components");
    text_put(out, "{");
    text_member(out, "securitySchemes");
    text_put(out, "{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}");
    text_member(out, "schemas");
    text_put(out, "{");
    for (const route_info *r = routes; r->method; r++) {
        if (r->takes)
            openapi_schemas(out, r->takes, &done);
        for (int i = 0; i < MAX_ANSWERS && r->answers[i].status; i++)
            if (r->answers[i].shape)
                openapi_schemas(out, r->answers[i].shape, &done);
    }
    openapi_schemas(out, &shape_problem, &done);
    openapi_schemas(out, &shape_verdict, &done);
    text_put(out, "}}}\n");
    text_free(&done);
}

void handle_openapi(request *r) {
    openapi_write(&r->answer);
    request_answer(r, 200);
}
