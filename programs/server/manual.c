/* manual.c - docs/HTTP.md: the table of routes for people. */
#include "server/service.h"

#include <string.h>

static const char *body_name(const route_info *r) {
    return r->body == BODY_LINES ? "application/x-ndjson" : "application/json";
}

static void write_kinds(text *out, const field *f) {
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

static void write_escaped(text *out, const char *words) {
    for (; *words; words++)
        text_format(out, *words == '|' ? "\\%c" : "%c", *words);
}

static void write_field(text *out, const field *f) {
    text_format(out, "| `%s` | ", f->name);
    write_kinds(out, f);
    text_format(out, " | %s | %s", f->required ? "yes" : "", f->help ? f->help : "");
    if (f->choices) {
        text_put(out, f->help && *f->help ? ": " : "");
        write_escaped(out, f->choices);
    }
    if (f->least != 0 || f->most != 0)
        text_format(out, " (%g to %g)", f->least, f->most);
    text_put(out, " |\n");
}

static void write_shape(text *out, const shape_info *shape, text *done) {
    char name[64];
    snprintf(name, sizeof name, " %s ", shape->name);
    text_add(done, "", 1);
    bool there = done->data && strstr(done->data, name);
    done->length--;
    if (there || done->failed)
        return;
    text_put(done, name);
    text_format(out, "\n### %s\n\n%s%s\n\n", shape->name, shape->help,
                shape->open ? " Other fields may stand there, too." : "");
    if (shape->fields->name)
        text_put(out, "| field | kind | always | what |\n|---|---|---|---|\n");
    for (const field *f = shape->fields; f->name; f++)
        write_field(out, f);
    for (const field *f = shape->fields; f->name; f++)
        if (f->shape)
            write_shape(out, f->shape, done);
}

static void write_shapes(text *out) {
    text done = {0};
    text_put(out, "\n## Bodies and answers\n");
    for (const route_info *r = routes; r->method; r++) {
        if (r->takes)
            write_shape(out, r->takes, &done);
        for (int i = 0; i < MAX_ANSWERS && r->answers[i].status; i++)
            if (r->answers[i].shape)
                write_shape(out, r->answers[i].shape, &done);
    }
    write_shape(out, &shape_verdict, &done);
    text_free(&done);
}

static void write_parameters(text *out, const route_info *r) {
    for (int i = 0; i < MAX_PARAMETERS && r->parameters[i].name; i++) {
        const parameter *p = &r->parameters[i];
        text_format(out, "- `?%s=` %s: ", p->name, p->help);
        if (p->choices)
            text_put(out, p->choices);
        else
            text_format(out, "%g to %g", p->least, p->most);
        if (p->otherwise)
            text_format(out, "; %s if it is not given", p->otherwise);
        text_put(out, p->required ? "; has to be given\n" : "\n");
    }
}

static void write_route(text *out, const route_info *r) {
    static const char *const rights[] = {"nothing", "read", "write", "admin"};
    text_format(out, "\n### %s %s\n\n%s.%s%s\n\n", r->method, r->path, r->summary, *r->help ? " " : "", r->help);
    if (r->of_index)
        text_format(out, "Of another index: `%s /v1/indexes/{name}%s`.\n\n", r->method, r->path + 3);
    text_format(out, "- needs: %s\n", rights[r->needs]);
    if (r->takes)
        text_format(out, "- takes%s: %s, %s[%s](#%s)\n", r->body == BODY_JSON_OPTIONAL ? ", or nothing" : "",
                    body_name(r), r->body == BODY_LINES ? "each line a " : "a ", r->takes->name, r->takes->name);
    write_parameters(out, r);
    for (int i = 0; i < MAX_ANSWERS && r->answers[i].status; i++) {
        const answer_info *a = &r->answers[i];
        text_format(out, "- %d: %s", a->status, a->help);
        if (a->shape)
            text_format(out, ", a [%s](#%s)", a->shape->name, a->shape->name);
        text_put(out, "\n");
    }
}

static void write_problems(text *out) {
    text_put(out,
             "\n## Problems\n\nEvery error is `application/problem+json` (RFC 9457), a [Problem](#Problem). What is "
             "no HTTP at all, and heads that are too large, are answered by the HTTP library, with a page.\n\n"
             "| type | status | what |\n|---|---|---|\n");
    for (int i = 0; i < PROBLEM_KINDS; i++)
        text_format(out, "| `urn:doppel:problem:%s` | %d | %s |\n", problems[i].name, problems[i].status,
                    problems[i].title);
}

void manual_write(text *out) {
    text_put(out,
             "# HTTP\n\nWhat `doppel serve` answers to. This page is made of the table that requests are checked by, "
             "programs/server/routes.c: `doppel --generate http`. The same for programs: `GET /openapi.json`.\n\n"
             "Bodies are UTF-8, plain or with `Content-Encoding: gzip` or `zstd`; ids in paths are "
             "percent-encoded, slashes too. A body needs the Content-Type that its route takes. With `--tokens FILE`, "
             "send `Authorization: Bearer TOKEN`. Requests that pages of other sites send are refused "
             "(docs/SERVER.md).\n\n"
             "| | | |\n|---|---|---|\n");
    for (const route_info *r = routes; r->method; r++)
        text_format(out, "| %s | `%s` | %s |\n", r->method, r->path, r->summary);
    text_put(out, "\n## Routes\n");
    for (const route_info *r = routes; r->method; r++)
        write_route(out, r);
    write_problems(out);
    write_shapes(out);
}
