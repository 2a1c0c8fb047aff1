/* shape_check.c - checks JSON against the shape of a route: fields that are unknown, missing or of another kind are
 * reported, with their place. */
#include "server/service.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct checker {
    const json *j;
    const index_entry *index;
    problem *p;
} checker;

static bool wrong(checker *c, const char *pointer, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool wrong(checker *c, const char *pointer, const char *format, ...) {
    va_list list;
    va_start(list, format);
    c->p->kind = PROBLEM_WRONG_SHAPE;
    vsnprintf(c->p->detail, sizeof c->p->detail, format, list);
    snprintf(c->p->pointer, sizeof c->p->pointer, "%s", pointer);
    va_end(list);
    return false;
}

static bool is_key(const json_value *value, const char *name) {
    return value->key.length == strlen(name) && !memcmp(value->key.data, name, value->key.length);
}

static const field *field_of(const shape_info *shape, const json_value *value) {
    for (const field *f = shape->fields; f->name; f++)
        if (is_key(value, f->name))
            return f;
    return NULL;
}

static bool is_kept(const checker *c, const json_value *value) {
    for (size_t i = 0; c->index && i < c->index->fields.count; i++)
        if (is_key(value, c->index->fields.names[i]))
            return true;
    return false;
}

/* Names the kinds that a field may have. */
static void kinds_named(unsigned kinds, char *to, size_t room) {
    to[0] = 0;
    for (int kind = JSON_NULL; kind <= JSON_OBJECT; kind++)
        if (kinds & KIND(kind)) {
            size_t used = strlen(to);
            snprintf(to + used, room - used, "%s%s", used ? " or " : "", json_kind_name((json_kind)kind));
        }
}

static bool check_number(checker *c, const field *f, const json_value *value, const char *pointer) {
    double number = strtod(value->text.data, NULL);
    double most = f->least == 0 && f->most == 0 ? NUMBER_MOST : f->most;
    if (!(number >= f->least && number <= most))
        return wrong(c, pointer, "%s must be from %.16g to %.16g", f->name, f->least, most);
    return !f->whole || number == floor(number) || wrong(c, pointer, "%s must be a whole number", f->name);
}

static bool check_choice(checker *c, const field *f, const json_value *value, const char *pointer) {
    for (const char *at = f->choices; at;) {
        size_t length = strcspn(at, "|");
        if (length == value->text.length && !memcmp(at, value->text.data, length))
            return true;
        at = at[length] ? at + length + 1 : NULL;
    }
    return wrong(c, pointer, "%s must be one of: %s", f->name, f->choices);
}

static bool check_object(checker *c, const shape_info *shape, const json_value *object, const char *pointer);

static bool check_array(checker *c, const field *f, const json_value *array, const char *pointer) {
    char place[216];
    const json_value *value = json_first(array);
    for (size_t i = 0; f->shape && i < array->count; i++, value = json_next(c->j, value)) {
        snprintf(place, sizeof place, "%s/%zu", pointer, i);
        if (value->kind != JSON_OBJECT)
            return wrong(c, place, "expected an object, not %s", json_kind_name(value->kind));
        if (!check_object(c, f->shape, value, place))
            return false;
    }
    return true;
}

static bool check_field(checker *c, const field *f, const json_value *value, const char *pointer) {
    char kinds[96];
    if (!(f->kinds & KIND(value->kind))) {
        kinds_named(f->kinds, kinds, sizeof kinds);
        return wrong(c, pointer, "%s must be %s, not %s", f->name, kinds, json_kind_name(value->kind));
    }
    if (value->kind == JSON_NUMBER)
        return check_number(c, f, value, pointer);
    if (value->kind == JSON_STRING && f->choices)
        return check_choice(c, f, value, pointer);
    if (value->kind == JSON_STRING && f->pattern && memchr(value->text.data, 0, value->text.length))
        return wrong(c, pointer, "%s may not contain U+0000", f->name);
    if (value->kind == JSON_OBJECT && f->shape)
        return check_object(c, f->shape, value, pointer);
    return value->kind != JSON_ARRAY || check_array(c, f, value, pointer);
}

/* Names the fields that an object may have. */
static void fields_named(const checker *c, const shape_info *shape, char *to, size_t room) {
    size_t used = 0, kept = shape->kept && c->index ? c->index->fields.count : 0;
    to[0] = 0;
    for (const field *f = shape->fields; f->name && used < room; f++)
        used += (size_t)snprintf(to + used, room - used, "%s%s", used ? ", " : "", f->name);
    for (size_t i = 0; i < kept && used < room; i++)
        used += (size_t)snprintf(to + used, room - used, "%s%s", used ? ", " : "", c->index->fields.names[i]);
}

static bool unknown_field(checker *c, const shape_info *shape, const json_value *value, const char *pointer) {
    char fields[480];
    int length = (int)(value->key.length < 100 ? value->key.length : 100);
    fields_named(c, shape, fields, sizeof fields);
    return wrong(c, pointer, "unknown field \"%.*s\"; %s%s", length, value->key.data,
                 fields[0] ? "the fields are " : "no fields are allowed here", fields);
}

static bool check_other(checker *c, const shape_info *shape, const json_value *value, const char *pointer) {
    if (!shape->kept || !is_kept(c, value))
        return shape->open || unknown_field(c, shape, value, pointer);
    return value->kind == JSON_STRING || value->kind == JSON_NUMBER || value->kind == JSON_NULL ||
           wrong(c, pointer, "a kept field must be a string or a number, not %s", json_kind_name(value->kind));
}

/* A part of a pointer, with ~ and / escaped as RFC 6901 says; what is too long is cut. */
static void point_to(char place[192], const char *pointer, doppel_slice key) {
    size_t at = (size_t)snprintf(place, 192, "%s/", pointer);
    for (size_t i = 0; i < key.length && at < 188; i++) {
        char c = key.data[i];
        if (c == '~' || c == '/')
            place[at++] = '~';
        place[at++] = c == '~' ? '0' : c == '/' ? '1' : c;
    }
    place[at < 191 ? at : 191] = 0;
}

static bool check_object(checker *c, const shape_info *shape, const json_value *object, const char *pointer) {
    char place[192];
    const json_value *value = json_first(object);
    for (size_t i = 0; i < object->count; i++, value = json_next(c->j, value)) {
        const field *f = field_of(shape, value);
        point_to(place, pointer, value->key);
        if (f ? !check_field(c, f, value, place) : !check_other(c, shape, value, place))
            return false;
    }
    for (const field *f = shape->fields; f->name; f++)
        if (f->required && !json_member(c->j, object, f->name))
            return wrong(c, pointer, "the field \"%s\" is missing", f->name);
    return true;
}

bool shape_check(const shape_info *shape, const json *j, const json_value *object, const index_entry *index,
                 problem *p) {
    checker c = {j, index, p};
    if (object->kind != JSON_OBJECT)
        return wrong(&c, "", "expected an object, not %s", json_kind_name(object->kind));
    return check_object(&c, shape, object, "");
}
