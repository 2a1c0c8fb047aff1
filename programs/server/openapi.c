/* openapi.c - GET /openapi.json: the table of routes as OpenAPI 3.0. */
#include "server/service.h"

#include <string.h>

/* ---- schemas ---- */

static void write_choices(text *out, const char *choices, bool or_null) {
    text_member(out, "enum");
    for (const char *at = choices; at;) {
        size_t length = strcspn(at, "|");
        text_format(out, "%s\"%.*s\"", at == choices ? "[" : ",", (int)length, at);
        at = at[length] ? at + length + 1 : NULL;
    }
    text_put(out, or_null ? ",null]" : "]");
}

static void write_number(text *out, const field *f) {
    text_member_string(out, "type", slice_of(f->whole ? "integer" : "number"));
    if (f->least == 0 && f->most == 0)
        return;
    text_member_number(out, "minimum", f->least);
    text_member_number(out, "maximum", f->most);
}

static void write_reference(text *out, const shape_info *shape) {
    text_format(out, "{\"$ref\":\"#/components/schemas/%s\"}", shape->name);
}

static void write_array(text *out, const field *f) {
    text_member_string(out, "type", slice_of("array"));
    text_member(out, "items");
    if (f->shape)
        write_reference(out, f->shape);
    else
        text_put(out, "{}");
}

static void write_kinds(text *out, const field *f) {
    unsigned kinds = f->kinds & ~(unsigned)OR_NULL;
    if (kinds == (ANY_STRING | ANY_NUMBER)) {
        text_member(out, "anyOf");
        text_put(out, "[{\"type\":\"string\"},{\"type\":\"number\"}]");
    } else if (kinds == ANY_STRING) {
        text_member_string(out, "type", slice_of("string"));
    } else if (kinds == ANY_NUMBER) {
        write_number(out, f);
    } else if (kinds == ANY_BOOL) {
        text_member_string(out, "type", slice_of("boolean"));
    } else if (kinds == ANY_ARRAY) {
        write_array(out, f);
    } else if (!f->shape) {
        text_member_string(out, "type", slice_of("object"));
    }
    if (f->choices)
        write_choices(out, f->choices, f->kinds & OR_NULL);
    if (f->kinds & OR_NULL)
        text_member_bool(out, "nullable", true);
}

static void write_field(text *out, const field *f) {
    text_member(out, f->name);
    if ((f->kinds & ANY_OBJECT) && f->shape) {
        write_reference(out, f->shape);
        return;
    }
    text_put(out, "{");
    write_kinds(out, f);
    if (f->help && *f->help)
        text_member_string(out, "description", slice_of(f->help));
    text_put(out, "}");
}

static void write_required(text *out, const shape_info *shape) {
    const char *before = ",\"required\":[";
    for (const field *f = shape->fields; f->name; f++)
        if (f->required) {
            text_format(out, "%s\"%s\"", before, f->name);
            before = ",";
        }
    if (before[1] != '"')
        text_put(out, "]");
}

static void write_schema(text *out, const shape_info *shape) {
    text_member(out, shape->name);
    text_put(out, "{");
    text_member_string(out, "type", slice_of("object"));
    text_member_string(out, "description", slice_of(shape->help));
    text_member(out, "properties");
    text_put(out, "{");
    for (const field *f = shape->fields; f->name; f++)
        write_field(out, f);
    text_put(out, "}");
    write_required(out, shape);
    if (shape->kept) { /* what an index keeps beside is a string or a number */
        text_member(out, "additionalProperties");
        text_put(out, "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"}],\"nullable\":true}");
    } else {
        text_member_bool(out, "additionalProperties", shape->open);
    }
    text_put(out, "}");
}

/* Writes a shape and those inside it, each once: `done` holds the names, with a space around each. */
static void write_schemas(text *out, const shape_info *shape, text *done) {
    char name[64];
    snprintf(name, sizeof name, " %s ", shape->name);
    text_add(done, "", 1);
    bool there = done->data && strstr(done->data, name);
    done->length--;
    if (there || done->failed)
        return;
    text_put(done, name);
    write_schema(out, shape);
    for (const field *f = shape->fields; f->name; f++)
        if (f->shape)
            write_schemas(out, f->shape, done);
}

/* ---- paths ---- */

static void write_path_parameter(text *out, const char *name, const char *help) {
    bool first = out->data[out->length - 1] == '[';
    text_format(out,
                "%s{\"name\":\"%s\",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\","
                "\"minLength\":1},\"description\":\"%s\"}",
                first ? "" : ",", name, help);
}

static void write_parameter(text *out, const parameter *p) {
    bool first = out->data[out->length - 1] == '[';
    text_format(out, "%s{\"name\":\"%s\",\"in\":\"query\",\"required\":%s", first ? "" : ",", p->name,
                p->required ? "true" : "false");
    text_member_string(out, "description", slice_of(p->help));
    text_member(out, "schema");
    text_put(out, "{");
    if (p->choices) {
        text_member_string(out, "type", slice_of("string"));
        write_choices(out, p->choices, false);
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
    if (text_reserve(out, 1) && below)
        write_path_parameter(out, "index", "the name of an index");
    if (strstr(r->path, "{id}"))
        write_path_parameter(out, "id", "an id or a URL, percent-encoded, slashes too");
    if (strstr(r->path, "{name}"))
        write_path_parameter(out, "name", "a name");
    for (int i = 0; i < MAX_PARAMETERS && r->parameters[i].name; i++)
        write_parameter(out, &r->parameters[i]);
    if (r->run == RUN_ADD)
        text_format(out,
                    "%s{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"required\":false,\"description\":\"an add "
                    "that is sent again under the same key gets the first answer\",\"schema\":{\"type\":"
                    "\"string\",\"minLength\":1,\"maxLength\":%d}}",
                    out->data[out->length - 1] == '[' ? "" : ",", IDEMPOTENCY_LONGEST);
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
        write_reference(out, r->takes);
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
        write_reference(out, a->shape);
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
    case 401:
    case 403: return r->needs > RIGHT_NONE;
    case 404: return below;
    case 408:
    case 413:
    case 415: return r->body != BODY_NONE;
    default: return true;
    }
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
        if (status > last && common && can(r, status, below)) {
            answer_info a = {status, &shape_problem, problems[i].title};
            write_answer(out, r, &a);
        }
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
            write_schemas(out, r->takes, &done);
        for (int i = 0; i < MAX_ANSWERS && r->answers[i].status; i++)
            if (r->answers[i].shape)
                write_schemas(out, r->answers[i].shape, &done);
    }
    write_schemas(out, &shape_problem, &done);
    write_schemas(out, &shape_verdict, &done);
    text_put(out, "}}}\n");
    text_free(&done);
}

void handle_openapi(request *r) {
    openapi_write(&r->answer);
    request_answer(r, 200);
}
