/* parse.c - one document from one record of JSON that is in memory already. */
#include "base/base.h"
#include "input/reader.h"
#include "input/utf8.h"

#include <stdio.h>
#include <stdlib.h>

/* A document with the memory its fields stand in. */
typedef struct owned {
    doppel_document document; /* first: it is what the caller holds */
    dp_buffer record;         /* with the padding that the parser wants */
    char *strings;
    doppel_slice extra[DP_EXTRA];
} owned;

typedef struct parse {
    owned *own;
    dp_json *json;
    dp_json_field field[DP_FIELDS + DP_EXTRA];
    size_t fields; /* of these */
    size_t used;   /* of own->strings */
    doppel_error *error;
} parse;

static doppel_status bad(const parse *p, const char *why) {
    return dp_fail(p->error, DOPPEL_ERROR_INPUT, "%s", why);
}

static void name_field(parse *p, const char *key, const char *usual) {
    const char *name = key ? key : usual;
    p->field[p->fields++] = (dp_json_field){.key = name, .key_length = strlen(name)};
}

/* In the order of DP_FIELD_ID and the others, then what else is asked for. */
static doppel_status name_fields(parse *p, const doppel_input_options *given) {
    doppel_input_options o = {0};
    if (given)
        dp_copy_options(&o, given, sizeof o);
    if (o.extra_count > DP_EXTRA)
        return dp_fail(p->error, DOPPEL_ERROR_USAGE, "more than %d extra keys", DP_EXTRA);
    name_field(p, o.id_key, "id");
    name_field(p, o.url_key, "url");
    name_field(p, o.title_key, "title");
    name_field(p, o.text_key, "text");
    name_field(p, o.html_key, "html");
    for (size_t i = 0; i < o.extra_count; i++)
        name_field(p, o.extra_keys[i], "");
    return DOPPEL_OK;
}

static doppel_status copy_record(parse *p, const char *record, size_t length) {
    static const char padding[DP_JSON_PADDING];
    dp_buffer *to = &p->own->record;
    bool copied =
        dp_json_is_utf8(record, length) ? dp_buffer_add(to, record, length) : dp_utf8_repair(record, length, to);
    return copied && dp_buffer_add(to, padding, sizeof padding) ? DOPPEL_OK : dp_no_memory(p->error);
}

static doppel_status read_record(parse *p) {
    size_t length = p->own->record.size - DP_JSON_PADDING;
    char why[200];
    switch (dp_json_read(p->json, p->own->record.data, length, p->field, p->fields)) {
    case DP_JSON_OK: return DOPPEL_OK;
    case DP_JSON_NO_MEMORY: return dp_no_memory(p->error);
    case DP_JSON_NOT_OBJECT: return bad(p, "not a JSON object");
    case DP_JSON_NOT_UTF8: return bad(p, "not UTF-8");
    default: snprintf(why, sizeof why, "not JSON: %s", dp_json_why(p->json)); return bad(p, why);
    }
}

/* A string field; one that is no string counts as missing, but for what may be something else: an id a number, and an
 * extra field anything but null. */
static bool take(parse *p, size_t which, const char **text, size_t *length) {
    const dp_json_field *f = &p->field[which];
    bool repaired, other = which >= DP_FIELDS && f->kind == DP_JSON_OTHER;
    *text = NULL;
    *length = 0;
    if (other || ((which == DP_FIELD_ID || which >= DP_FIELDS) && f->kind == DP_JSON_NUMBER)) {
        *text = f->raw;
        *length = f->raw_length;
    }
    if (f->kind != DP_JSON_STRING)
        return true;
    char *to = p->own->strings + p->used;
    *length = dp_json_unescape(f->raw, f->raw_length, to, &repaired);
    *text = to;
    p->used += *length == SIZE_MAX ? 0 : *length;
    return *length != SIZE_MAX;
}

/* False: an escape is wrong. */
static bool take_all(parse *p) {
    doppel_document *d = &p->own->document;
    bool taken = take(p, DP_FIELD_ID, &d->id, &d->id_length) && take(p, DP_FIELD_URL, &d->url, &d->url_length) &&
                 take(p, DP_FIELD_TITLE, &d->title, &d->title_length) &&
                 take(p, DP_FIELD_TEXT, &d->text, &d->text_length) && take(p, DP_FIELD_HTML, &d->html, &d->html_length);
    for (size_t i = DP_FIELDS; taken && i < p->fields; i++) {
        doppel_slice *extra = &p->own->extra[i - DP_FIELDS];
        taken = take(p, i, &extra->data, &extra->length);
    }
    return taken;
}

static doppel_status take_fields(parse *p) {
    doppel_document *d = &p->own->document;
    size_t room = 1;
    for (size_t i = 0; i < p->fields; i++)
        room += p->field[i].kind == DP_JSON_STRING ? p->field[i].raw_length : 0;
    if (!(p->own->strings = malloc(room)))
        return dp_no_memory(p->error);
    if (!take_all(p))
        return bad(p, "not JSON: an escape in a string that JSON does not have");
    d->id = d->id ? d->id : "";
    d->text = d->text ? d->text : "";
    d->file = "";
    d->charset = d->html ? DP_CHARSET_UTF8 : NULL;
    d->extra = p->own->extra;
    d->record = p->own->record.data;
    d->record_length = p->own->record.size - DP_JSON_PADDING;
    return DOPPEL_OK;
}

doppel_status doppel_document_parse(const char *record, size_t length, const doppel_input_options *options,
                                    doppel_document **document, doppel_error *error) {
    parse p = {.own = calloc(1, sizeof *p.own), .json = dp_json_create(), .error = error};
    *document = NULL;
    doppel_status status = p.own && p.json ? DOPPEL_OK : dp_no_memory(error);
    if (status == DOPPEL_OK)
        status = name_fields(&p, options);
    if (status == DOPPEL_OK)
        status = copy_record(&p, record, length);
    if (status == DOPPEL_OK)
        status = read_record(&p);
    if (status == DOPPEL_OK)
        status = take_fields(&p);
    dp_json_free(p.json);
    if (status == DOPPEL_OK)
        *document = &p.own->document;
    else if (p.own)
        doppel_document_free(&p.own->document);
    return status;
}

void doppel_document_free(doppel_document *document) {
    owned *own = (owned *)document;
    if (!own)
        return;
    dp_buffer_free(&own->record);
    free(own->strings);
    free(own);
}
