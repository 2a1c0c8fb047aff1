/* describe.c - descriptions of the API, generated from its tables: GET /openapi.json (OpenAPI 3.0) and docs/HTTP.md. */
#include "server/console.h"
#include "server/service.h"

#include <stdio.h>
#include <string.h>

/* Whether a name is new; records it. `done` holds the names so far, each between line breaks. */
static bool is_new_name(doppel_slice name, text_buffer *done) {
    size_t before = done->length;
    text_format(done, "\n%.*s\n", (int)name.length, name.data);
    text_add(done, "", 1);
    if (done->failed)
        return false;
    done->length--;
    if (strstr(done->data, done->data + before) == done->data + before)
        return true;
    done->length = before;
    return false;
}

/* Whether a shape is not described yet. */
static bool is_new(const shape_info *shape, text_buffer *done) {
    return is_new_name(doppel_slice_of(shape->name), done);
}

/* ---- shapes as schemas of OpenAPI ---- */

static void openapi_choices(text_buffer *out, const char *choices, bool or_null) {
    text_member(out, "enum");
    for (const char *at = choices; at;) {
        size_t length = strcspn(at, "|");
        text_format(out, "%s\"%.*s\"", at == choices ? "[" : ",", (int)length, at);
        at = at[length] ? at + length + 1 : NULL;
    }
    text_put(out, or_null ? ",null]" : "]");
}

static void write_number(text_buffer *out, const field *f) {
    text_member_string(out, "type", doppel_slice_of(f->whole ? "integer" : "number"));
    if (f->least == 0 && f->most == 0)
        return;
    text_member_number(out, "minimum", f->least);
    text_member_number(out, "maximum", f->most);
}

static void openapi_reference(text_buffer *out, const shape_info *shape) {
    text_format(out, "{\"$ref\":\"#/components/schemas/%s\"}", shape->name);
}

static void write_array(text_buffer *out, const field *f) {
    text_member_string(out, "type", doppel_slice_of("array"));
    text_member(out, "items");
    if (f->shape)
        openapi_reference(out, f->shape);
    else
        text_put(out, f->items == ANY_STRING   ? "{\"type\":\"string\"}"
                      : f->items == ANY_NUMBER ? "{\"type\":\"integer\"}"
                      : f->items == ANY_OBJECT ? "{\"type\":\"object\"}"
                                               : "{}");
}

static void write_kinds(text_buffer *out, const field *f) {
    unsigned kinds = f->kinds & ~(unsigned)OR_NULL;
    if (kinds == (ANY_STRING | ANY_NUMBER)) {
        text_member(out, "anyOf");
        text_format(out, "[{\"type\":\"string\"},{\"type\":\"number\",\"minimum\":0,\"maximum\":%.0f}]", NUMBER_MOST);
    } else if (kinds == ANY_STRING) {
        text_member_string(out, "type", doppel_slice_of("string"));
        if (f->pattern)
            text_member_string(out, "pattern", doppel_slice_of(f->pattern));
    } else if (kinds == ANY_NUMBER) {
        write_number(out, f);
    } else if (kinds == ANY_BOOL) {
        text_member_string(out, "type", doppel_slice_of("boolean"));
    } else if (kinds == ANY_ARRAY) {
        write_array(out, f);
    } else if (!f->shape) {
        text_member_string(out, "type", doppel_slice_of("object"));
    }
    if (f->choices)
        openapi_choices(out, f->choices, f->kinds & OR_NULL);
    if (f->kinds & OR_NULL)
        text_member_bool(out, "nullable", true);
}

static void write_field(text_buffer *out, const field *f) {
    text_member(out, f->name);
    if ((f->kinds & ANY_OBJECT) && f->shape) {
        openapi_reference(out, f->shape);
        return;
    }
    text_put(out, "{");
    write_kinds(out, f);
    if (f->help && *f->help)
        text_member_string(out, "description", doppel_slice_of(f->help));
    text_put(out, "}");
}

static void write_required(text_buffer *out, const shape_info *shape) {
    const char *before = ",\"required\":[";
    for (const field *f = shape->fields; f->name; f++)
        if (f->required) {
            text_format(out, "%s\"%s\"", before, f->name);
            before = ",";
        }
    if (before[1] != '"')
        text_put(out, "]");
}

/* At least one of some fields is required. This is written as two negations, since generators of clients take anyOf
 * for a choice of types, and ignore `not`. */
static void write_some(text_buffer *out, const shape_info *shape) {
    if (!shape->some)
        return;
    text_member(out, "not");
    text_put(out, "{\"allOf\":[");
    for (const char *at = shape->some; at;) {
        size_t length = strcspn(at, "|");
        text_format(out,
                    "%s{\"not\":{\"required\":[\"%.*s\"],\"properties\":{\"%.*s\":{\"type\":\"string\","
                    "\"nullable\":false}}}}",
                    at == shape->some ? "" : ",", (int)length, at, (int)length, at);
        at = at[length] ? at + length + 1 : NULL;
    }
    text_put(out, "]}");
}

/* The fields that the default index keeps, or all indexes keep; `done` has the ones already written. */
static void write_kept(text_buffer *out, indexes *all, bool below, text_buffer *done) {
    index_entry *index;
    for (size_t n = 0; (below || !n) && (index = indexes_at(all, n)); n++) {
        for (size_t i = 0; i < index->fields.count; i++) {
            doppel_slice name = doppel_slice_of(index->fields.names[i]);
            if (!is_new_name(name, done))
                continue;
            text_put(out, ",");
            text_string(out, name);
            text_put(out, ":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"}],\"nullable\":true,\"description\":"
                          "\"kept with the document\"}");
        }
        indexes_release(all, index);
    }
}

/* The name of a schema: documents of other indexes have other fields. */
static void name_schema(char name[64], const shape_info *shape, bool below) {
    snprintf(name, 64, "%s%s", shape->name, shape->kept && below ? "OfIndex" : "");
}

/* `all`: the indexes that there are; NULL: any. `below`: the schema is for all of them, not for the default one. */
static void write_schema(text_buffer *out, const shape_info *shape, indexes *all, bool below) {
    char name[64];
    text_buffer fields = {0};
    name_schema(name, shape, below);
    text_member(out, name);
    text_put(out, "{");
    text_member_string(out, "type", doppel_slice_of("object"));
    text_member_string(out, "description", doppel_slice_of(shape->help));
    text_member(out, "properties");
    text_put(out, "{");
    for (const field *f = shape->fields; f->name; f++) {
        write_field(out, f);
        is_new_name(doppel_slice_of(f->name), &fields);
    }
    if (shape->kept && all)
        write_kept(out, all, below, &fields);
    text_free(&fields);
    text_put(out, "}");
    write_required(out, shape);
    write_some(out, shape);
    if (shape->never) {
        text_member(out, "not");
        text_put(out, shape->never);
    }
    if (shape->kept && !all) { /* a field that an index keeps is a string or a number */
        text_member(out, "additionalProperties");
        text_put(out, "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"}],\"nullable\":true}");
    } else {
        text_member_bool(out, "additionalProperties", shape->open);
    }
    text_put(out, "}");
}

/* Writes a shape and those inside it, each once. */
static void openapi_schemas(text_buffer *out, const shape_info *shape, indexes *all, text_buffer *done) {
    if (!is_new(shape, done))
        return;
    write_schema(out, shape, all, false);
    if (shape->kept)
        write_schema(out, shape, all, true);
    for (const field *f = shape->fields; f->name; f++)
        if (f->shape)
            openapi_schemas(out, f->shape, all, done);
}

/* ---- OpenAPI ---- */

#define INDEX_PATTERN "^[a-z0-9_-]{1,64}$"

/* Whether a list is still empty. */
static bool is_first(const text_buffer *out) {
    return out->length && out->data[out->length - 1] == '[';
}

static void write_path_parameter(text_buffer *out, const char *name, const char *help, const char *pattern,
                                 const char *example) {
    text_format(out, "%s{\"name\":\"%s\",\"in\":\"path\",\"required\":true,\"description\":\"%s\"",
                is_first(out) ? "" : ",", name, help);
    text_format(out, ",\"example\":\"%s\",\"schema\":{\"type\":\"string\",\"pattern\":\"%s\"}}", example, pattern);
}

static void write_parameter(text_buffer *out, const parameter *p) {
    text_format(out, "%s{\"name\":\"%s\",\"in\":\"query\",\"required\":%s", is_first(out) ? "" : ",", p->name,
                p->required ? "true" : "false");
    text_member_string(out, "description", doppel_slice_of(p->help));
    text_member(out, "schema");
    text_put(out, "{");
    if (p->choices) {
        text_member_string(out, "type", doppel_slice_of("string"));
        openapi_choices(out, p->choices, false);
    } else if (p->example) {
        text_member_string(out, "type", doppel_slice_of("string"));
        text_member_count(out, "minLength", (uint64_t)p->least);
        text_member_count(out, "maxLength", (uint64_t)p->most);
        text_member_string(out, "pattern", doppel_slice_of(p->pattern ? p->pattern : "^[^\\u0000]*$"));
        text_member_string(out, "example", doppel_slice_of(p->example));
    } else {
        text_member_string(out, "type", doppel_slice_of(p->whole ? "integer" : "number"));
        text_member_number(out, "minimum", p->least);
        text_member_number(out, "maximum", p->most);
    }
    if (p->otherwise)
        text_format(out, p->choices ? ",\"default\":\"%s\"" : ",\"default\":%s", p->otherwise);
    text_put(out, "}}");
}

static void write_parameters(text_buffer *out, const route_info *r, bool below) {
    text_member(out, "parameters");
    text_put(out, "[");
    if (below)
        write_path_parameter(out, "index", "the name of an index", INDEX_PATTERN, "news");
    if (strstr(r->path, "/runs/{id}"))
        write_path_parameter(out, "id", "the id of a run", "^.", "5d1f8a0c6e2b4f97");
    else if (strstr(r->path, "{id}"))
        write_path_parameter(out, "id", "an id or a URL, percent-encoded, slashes too", "^.", "ferry");
    if (strstr(r->path, "{name}"))
        write_path_parameter(out, "name", "a name", r->needs > RIGHT_NONE ? INDEX_PATTERN : "^.",
                             r->needs > RIGHT_NONE ? "news" : "icon.svg");
    for (int i = 0; i < MAX_PARAMETERS && r->parameters[i].name; i++)
        write_parameter(out, &r->parameters[i]);
    if (r->dispatch == DISPATCH_ADD)
        text_format(out,
                    "%s{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"required\":false,\"description\":\"an add "
                    "that is repeated under the same key gets the first answer\",\"schema\":{\"type\":"
                    "\"string\",\"minLength\":1,\"maxLength\":%d}}",
                    is_first(out) ? "" : ",", IDEMPOTENCY_LONGEST);
    text_put(out, "]");
}

/* The example of a body: lines, and files, as one string. */
static void write_body_example(text_buffer *out, const route_info *r) {
    if (!r->example.body)
        return;
    text_put(out, ",\"example\":");
    if (r->body == BODY_LINES || r->body == BODY_FILE)
        text_string(out, doppel_slice_of(r->example.body));
    else
        text_put(out, r->example.body);
}

static void write_body(text_buffer *out, const route_info *r, bool below) {
    char name[64];
    if (r->body == BODY_NONE)
        return;
    text_member(out, "requestBody");
    text_format(out,
                "{\"required\":%s,\"content\":{\"%s\":{\"schema\":", r->body == BODY_JSON_OPTIONAL ? "false" : "true",
                body_type(r));
    if (r->body == BODY_FILE)
        text_put(out, "{\"type\":\"string\",\"format\":\"binary\"}");
    else if (r->body == BODY_LINES)
        text_put(out, "{\"type\":\"string\"}");
    else {
        name_schema(name, r->takes, below);
        text_format(out, "{\"$ref\":\"#/components/schemas/%s\"}", name);
    }
    write_body_example(out, r);
    text_put(out, "}}}");
}

/* The content of the answer with a file of the console: every type that there is. */
static void write_console_types(text_buffer *out) {
    text_buffer done = {0};
    text_put(out, "{");
    for (const console_file *file = console_files; file->name; file++) {
        const char *type = console_type(file->name);
        doppel_slice name = {type, strcspn(type, ";")};
        if (is_new_name(name, &done))
            text_format(out, "%s\"%.*s\":{\"schema\":{\"type\":\"string\"}}", done.length > name.length + 2 ? "," : "",
                        (int)name.length, type);
    }
    text_put(out, "}}");
    text_free(&done);
}

/* The content of an answer that is a file of one of several types. */
static void write_file_types(text_buffer *out, const char *types) {
    text_put(out, "{");
    for (const char *at = types; at;) {
        size_t length = strcspn(at, "|");
        text_format(out, "%s\"%.*s\":{\"schema\":{\"type\":\"string\"}}", at == types ? "" : ",", (int)length, at);
        at = at[length] ? at + length + 1 : NULL;
    }
    text_put(out, "}}");
}

static void write_answer(text_buffer *out, const route_info *r, const answer_info *a) {
    char status[8];
    snprintf(status, sizeof status, "%d", a->status);
    text_member(out, status);
    text_put(out, "{");
    text_member_string(out, "description", doppel_slice_of(a->help));
    text_member(out, "content");
    const char *type = a->shape == &shape_problem ? "application/problem+json" : r->type ? r->type : "application/json";
    if (r->handle == handle_console && strchr(r->path, '{') && !a->shape) {
        write_console_types(out);
        return;
    }
    if (a->types) {
        write_file_types(out, a->types);
        return;
    }
    text_format(out, "{\"%.*s\":{\"schema\":", (int)strcspn(type, ";"), type);
    if (r->body == BODY_LINES && a->status == 200)
        text_put(out, "{\"type\":\"string\"}");
    else if (a->shape)
        openapi_reference(out, a->shape);
    else if (!r->type) /* /openapi.json */
        text_put(out, "{}");
    else
        text_put(out, "{\"type\":\"string\"}");
    text_put(out, "}}}");
}

/* Whether a route can answer with a problem of this status that is common to all routes. */
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

/* All problems of a status, of which `first` is the first. */
static void write_problem(text_buffer *out, const route_info *r, int first) {
    char help[512];
    size_t used = 0;
    for (int i = first; i < PROBLEM_KINDS && used < sizeof help; i++)
        if (problems[i].status == problems[first].status)
            used += (size_t)snprintf(help + used, sizeof help - used, "%s%s", used ? "; " : "", problems[i].title);
    write_answer(out, r, &(answer_info){problems[first].status, &shape_problem, help});
}

static void write_answers(text_buffer *out, const route_info *r, bool below) {
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

static void write_operation(text_buffer *out, const route_info *r, bool below) {
    char method[8] = {0};
    for (size_t i = 0; r->method[i] && i < sizeof method - 1; i++)
        method[i] = (char)(r->method[i] | 32);
    text_member(out, method);
    text_put(out, "{");
    text_format(out, "\"operationId\":\"%s%s\",\"tags\":[\"%s\"]", r->operation, below ? "OfIndex" : "", r->tag);
    text_member_string(out, "summary", doppel_slice_of(r->summary));
    if (*r->help)
        text_member_string(out, "description", doppel_slice_of(r->help));
    write_parameters(out, r, below);
    write_body(out, r, below);
    write_answers(out, r, below);
    if (r->needs > RIGHT_NONE) {
        text_member(out, "security");
        text_put(out, "[{},{\"token\":[]}]");
    }
    text_put(out, "}");
}

/* All methods of the path of a route, unless an earlier route has the same path. */
static void write_path(text_buffer *out, const route_info *r, bool below) {
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

/* What routes are about. */
static const struct {
    const char *name, *help;
} tags[] = {
    {"documents", "Check, add, find and list documents."},
    {"comparing", "Compare texts that are given; nothing is stored."},
    {"runs", "Deduplicate a file."},
    {"indexes", "Contents and maintenance of indexes."},
    {"server", "The server itself."},
};

static void write_tags(text_buffer *out) {
    text_member(out, "tags");
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        text_format(out, "%s{\"name\":\"%s\",\"description\":\"%s\"}", i ? "," : "[", tags[i].name, tags[i].help);
    text_put(out, "]");
}

void openapi_write(text_buffer *out, indexes *all) {
    text_buffer done = {0};
    text_format(out,
                "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"doppel\",\"version\":\"%s\",\"description\":\"Finds the "
                "documents you have already seen.\"}",
                doppel_version());
    text_member(out, "servers");
    text_put(out, "[{\"url\":\"/\",\"description\":\"this server\"}]");
    write_tags(out);
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
            openapi_schemas(out, r->takes, all, &done);
        for (int i = 0; i < MAX_ANSWERS && r->answers[i].status; i++)
            if (r->answers[i].shape)
                openapi_schemas(out, r->answers[i].shape, all, &done);
    }
    openapi_schemas(out, &shape_problem, all, &done);
    openapi_schemas(out, &shape_verdict, all, &done);
    text_put(out, "}}}\n");
    text_free(&done);
}

void handle_openapi(request *r) {
    openapi_write(&r->answer, &r->service->indexes);
    request_answer(r, 200);
}

/* ---- docs/HTTP.md: the table of routes for people ---- */

static void print_kinds(text_buffer *out, const field *f) {
    static const struct {
        unsigned kinds;
        const char *name;
    } names[] = {{ANY_STRING, "string"}, {ANY_NUMBER, "number"}, {ANY_BOOL, "boolean"},
                 {ANY_ARRAY, "array"},   {ANY_OBJECT, "object"}, {OR_NULL, "null"}};
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (f->kinds & names[i].kinds) {
            const char *name = f->whole && names[i].kinds == ANY_NUMBER ? "whole number" : names[i].name;
            text_format(out, "%s%s", any ? " or " : "", name);
            any = true;
        }
    if (f->shape)
        text_format(out, " of [%s](#%s)", f->shape->name, f->shape->name);
}

static void print_escaped(text_buffer *out, const char *words) {
    for (; *words; words++)
        text_format(out, *words == '|' ? "\\%c" : "%c", *words);
}

static void print_field(text_buffer *out, const field *f) {
    text_format(out, "| `%s` | ", f->name);
    print_kinds(out, f);
    text_format(out, " | %s | %s", f->required ? "yes" : "", f->help ? f->help : "");
    if (f->choices) {
        text_put(out, f->help && *f->help ? ": " : "");
        print_escaped(out, f->choices);
    }
    if (f->least != 0 || f->most != 0)
        text_format(out, " (%.16g to %.16g)", f->least, f->most);
    text_put(out, " |\n");
}

static void print_shape(text_buffer *out, const shape_info *shape, text_buffer *done) {
    if (!is_new(shape, done))
        return;
    text_format(out, "\n### %s\n\n%s%s\n\n", shape->name, shape->help, shape->open ? " Other fields are allowed." : "");
    if (shape->fields->name)
        text_put(out, "| field | kind | always | what |\n|---|---|---|---|\n");
    for (const field *f = shape->fields; f->name; f++)
        print_field(out, f);
    for (const field *f = shape->fields; f->name; f++)
        if (f->shape)
            print_shape(out, f->shape, done);
}

static void print_shapes(text_buffer *out) {
    text_buffer done = {0};
    text_put(out, "\n## Bodies and answers\n");
    for (const route_info *r = routes; r->method; r++) {
        if (r->takes)
            print_shape(out, r->takes, &done);
        for (int i = 0; i < MAX_ANSWERS && r->answers[i].status; i++)
            if (r->answers[i].shape)
                print_shape(out, r->answers[i].shape, &done);
    }
    print_shape(out, &shape_verdict, &done);
    text_free(&done);
}

static void print_parameters(text_buffer *out, const route_info *r) {
    for (int i = 0; i < MAX_PARAMETERS && r->parameters[i].name; i++) {
        const parameter *p = &r->parameters[i];
        text_format(out, "- `?%s=` %s: ", p->name, p->help);
        if (p->choices)
            text_put(out, p->choices);
        else
            text_format(out, "%.16g to %.16g%s", p->least, p->most, p->example ? " characters" : "");
        if (p->otherwise)
            text_format(out, "; default %s", p->otherwise);
        text_put(out, p->required ? "; required\n" : "\n");
    }
}

/* A curl that sends the example of a route, and what it prints. Bodies of lines come from printf. */
static void print_example(text_buffer *out, const route_info *r) {
    const route_example *e = &r->example;
    bool lines = r->body == BODY_LINES || r->body == BODY_FILE;
    text_put(out, "\n```console\n$ ");
    for (const char *at = lines ? e->body : ""; *at;) { /* each line by itself, so that they can be read */
        size_t length = strcspn(at, "\n");
        text_format(out, at == e->body ? "printf '%%s\\n' '%.*s' \\\n" : "    '%.*s' \\\n", (int)length, at);
        at += length + 1;
    }
    text_format(out, "%scurl -s%s", lines ? "    | " : "", strcmp(r->method, "GET") != 0 && !e->body ? " -X " : "");
    if (strcmp(r->method, "GET") != 0 && !e->body)
        text_put(out, r->method);
    else if (!strcmp(r->method, "PUT"))
        text_put(out, " -X PUT");
    bool quoted = strpbrk(e->target, "?&%");
    text_format(out, quoted ? " 'localhost:7700%s'" : " localhost:7700%s", e->target);
    if (e->body)
        text_format(out, " \\\n    -H 'Content-Type: %s' %s", body_type(r), lines ? "--data-binary @-" : "-d '");
    if (e->body && !lines)
        text_format(out, "%s'", e->body);
    text_format(out, "\n%s\n```\n", e->prints);
}

static void print_route(text_buffer *out, const route_info *r) {
    static const char *const rights[] = {"nothing", "read", "write", "admin"};
    text_format(out, "\n### %s %s\n\n%s.%s%s\n\n", r->method, r->path, r->summary, *r->help ? " " : "", r->help);
    if (r->of_index)
        text_format(out, "For another index: `%s /v1/indexes/{name}%s`.\n\n", r->method, r->path + 3);
    text_format(out, "- needs: %s\n", rights[r->needs]);
    if (r->takes)
        text_format(out, "- takes: %s, %s[%s](#%s)%s\n", body_type(r), r->body == BODY_LINES ? "each line a " : "a ",
                    r->takes->name, r->takes->name, r->body == BODY_JSON_OPTIONAL ? "; optional" : "");
    print_parameters(out, r);
    for (int i = 0; i < MAX_ANSWERS && r->answers[i].status; i++) {
        const answer_info *a = &r->answers[i];
        text_format(out, "- %d: %s", a->status, a->help);
        if (a->shape)
            text_format(out, " ([%s](#%s))", a->shape->name, a->shape->name);
        text_put(out, "\n");
    }
    print_example(out, r);
}

static void print_problems(text_buffer *out) {
    text_put(out,
             "\n## Problems\n\nEvery error is `application/problem+json` (RFC 9457), a [Problem](#Problem). Requests "
             "that are not HTTP, and heads that are too large, are answered by the HTTP library, with an HTML page.\n\n"
             "| type | status | what |\n|---|---|---|\n");
    for (int i = 0; i < PROBLEM_KINDS; i++)
        text_format(out, "| `urn:doppel:problem:%s` | %d | %s |\n", problems[i].name, problems[i].status,
                    problems[i].title);
}

void manual_write(text_buffer *out) {
    text_put(
        out,
        "# HTTP\n\nThe HTTP API of `doppel serve`. `doppel --generate http` makes this page from the table that "
        "requests are checked against, programs/server/routes.c. The same for programs: `GET /openapi.json`.\n\n"
        "Bodies are UTF-8, plain or with `Content-Encoding: gzip` or `zstd`; ids in paths are "
        "percent-encoded, slashes too. A body needs the Content-Type that its route takes. With `--tokens FILE`, "
        "send `Authorization: Bearer TOKEN`. Requests from pages of other sites are refused "
        "(docs/SERVER.md).\n\n"
        "The tests run the examples, in this order, on a new index:\n\n"
        "```console\n$ doppel serve --index ferries --indexes indexes --backups backups --keep-text \\\n"
        "    --on-duplicate link > serve.log 2>&1 &\n$ curl -s --retry 9 --retry-connrefused localhost:7700/readyz\n"
        "{\"status\":\"ready\"}\n```\n\n"
        "| | | |\n|---|---|---|\n");
    for (const route_info *r = routes; r->method; r++)
        text_format(out, "| %s | `%s` | %s |\n", r->method, r->path, r->summary);
    text_put(out, "\n## Routes\n");
    for (const route_info *r = routes; r->method; r++)
        print_route(out, r);
    print_problems(out);
    print_shapes(out);
}
