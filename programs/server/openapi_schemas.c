/* openapi_schemas.c - shapes as schemas of OpenAPI 3.0. */
#include "server/openapi.h"

#include <stdio.h>
#include <string.h>

void openapi_choices(text *out, const char *choices, bool or_null) {
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

void openapi_reference(text *out, const shape_info *shape) {
    text_format(out, "{\"$ref\":\"#/components/schemas/%s\"}", shape->name);
}

static void write_array(text *out, const field *f) {
    text_member_string(out, "type", slice_of("array"));
    text_member(out, "items");
    if (f->shape)
        openapi_reference(out, f->shape);
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
        openapi_choices(out, f->choices, f->kinds & OR_NULL);
    if (f->kinds & OR_NULL)
        text_member_bool(out, "nullable", true);
}

static void write_field(text *out, const field *f) {
    text_member(out, f->name);
    if ((f->kinds & ANY_OBJECT) && f->shape) {
        openapi_reference(out, f->shape);
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
void openapi_schemas(text *out, const shape_info *shape, text *done) {
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
            openapi_schemas(out, f->shape, done);
}
