/* items.c - documents from JSON, as the engine takes them. */
#include "server/service.h"

#include <stdlib.h>
#include <string.h>

static doppel_slice text_member_of(const json *j, const json_value *object, const char *key) {
    const json_value *value = json_member(j, object, key);
    bool fits = value && (value->kind == JSON_STRING || value->kind == JSON_NUMBER);
    return fits ? value->text : (doppel_slice){NULL, 0};
}

static doppel_slice *kept_fields(const json *j, const json_value *object, const index_entry *index) {
    doppel_slice *extra = calloc(index->field_count, sizeof *extra);
    for (size_t i = 0; extra && i < index->field_count; i++)
        extra[i] = text_member_of(j, object, index->fields[i]);
    return extra;
}

bool item_make(const json *j, const json_value *object, const index_entry *index, doppel_item *item,
               doppel_slice **extra) {
    doppel_slice id = text_member_of(j, object, "id"), url = text_member_of(j, object, "url"),
                 title = text_member_of(j, object, "title"), content = text_member_of(j, object, "text"),
                 html = text_member_of(j, object, "html");
    const json_value *ttl = json_member(j, object, "ttl");
    *item = (doppel_item){.size = sizeof *item};
    *extra = NULL;
    item->document = (doppel_document){
        .id = id.data ? id.data : "",
        .id_length = id.length,
        .text = content.data ? content.data : "",
        .text_length = content.length,
        .url = url.data,
        .url_length = url.length,
        .title = title.data,
        .title_length = title.length,
        .html = html.data,
        .html_length = html.length,
        .charset = html.data ? "utf-8" : NULL,
    };
    if (ttl && ttl->kind == JSON_NUMBER)
        item->ttl = (uint64_t)strtod(ttl->text.data, NULL);
    if (!index || !index->field_count)
        return true;
    *extra = kept_fields(j, object, index);
    item->document.extra = *extra;
    return *extra;
}

bool item_says_something(const json *j, const json_value *object) {
    static const char *const names[] = {"url", "title", "text", "html"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_value *value = json_member(j, object, names[i]);
        if (value && value->kind == JSON_STRING)
            return true;
    }
    return false;
}
