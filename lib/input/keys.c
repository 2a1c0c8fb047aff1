/* keys.c - the keys of a record: a name, a path (meta.text), or several (question,answer).
 *
 * If the record has a field with the whole key as its name, that is the field. Else the key is cut at its commas into
 * parts, and each part that is not the name of a field is a path: the name up to its first dot is that of an object, in
 * which the rest is looked up in the same way. What is found of several parts is joined with a line end between each
 * two; null is nothing. docs/FORMAT.md section 16 says so to users.
 *
 * The names of all parts, and the first names of all paths, are looked for together with the keys themselves, so that a
 * record is read once; only the objects that paths lead into are read again. */
#include "input/reader.h"

static void set_key(dp_json_field *field, const char *key, size_t length) {
    *field = (dp_json_field){.key = key, .key_length = length};
}

/* Adds a name to look for; gives its place, 0: there are too many (0 is the place of the id's own key). */
static size_t add_name(dp_reader *reader, const char *name, size_t length) {
    size_t place = reader->field_count;
    if (place == DP_FIELDS + DP_EXTRA + DP_NAMES)
        return 0;
    set_key(&reader->fields[place], name, length);
    reader->field_count++;
    return place;
}

/* Adds a part of the key of a field. */
static bool add_part(dp_reader *reader, size_t field, const char *name, size_t length) {
    const char *dot = memchr(name, '.', length);
    dp_key_part part = {.field = field, .name = add_name(reader, name, length)};
    if (!part.name || reader->part_count == DP_PARTS)
        return false;
    if (dot && dot > name && dot + 1 < name + length) {
        part.rest = (doppel_slice){dot + 1, (size_t)(name + length - dot - 1)};
        if (!(part.head = add_name(reader, name, (size_t)(dot - name))))
            return false;
    }
    reader->parts[reader->part_count++] = part;
    return true;
}

/* Cuts a key at its commas; one that is a plain name has no parts. */
static bool add_parts(dp_reader *reader, size_t field) {
    const char *p = reader->fields[field].key;
    if (!strpbrk(p, ".,"))
        return true;
    while (*p) {
        doppel_slice part = dp_key_next_part(&p);
        if (part.length && !add_part(reader, field, part.data, part.length))
            return false;
    }
    return true;
}

static void set_field(dp_reader *reader, size_t field, const char *key, const char *usual) {
    key = key ? key : usual;
    set_key(&reader->fields[field], key, strlen(key));
}

bool dp_fields_init(dp_reader *reader) {
    const doppel_input_options *options = reader->options;
    size_t count = DP_FIELDS + options->extra_count;
    set_field(reader, DP_FIELD_ID, options->id_key, "id");
    set_field(reader, DP_FIELD_URL, options->url_key, "url");
    set_field(reader, DP_FIELD_TITLE, options->title_key, "title");
    set_field(reader, DP_FIELD_TEXT, options->text_key, "text");
    set_field(reader, DP_FIELD_HTML, options->html_key, "html");
    for (size_t i = 0; i < options->extra_count; i++)
        set_field(reader, DP_FIELDS + i, options->extra_keys[i], "");
    reader->field_count = count;
    reader->part_count = 0;
    for (size_t i = 0; i < count; i++)
        if (!add_parts(reader, i))
            return false;
    return true;
}

static bool is_missing(const dp_json_field *field) {
    return field->kind == DP_JSON_ABSENT || field->kind == DP_JSON_NULL;
}

/* What a path leads to in an object that stands in the record, as it was found there. */
static dp_json_result follow(dp_reader *reader, doppel_slice path, dp_json_field object, dp_json_field *found) {
    for (;;) {
        dp_json_field names[2] = {{.key = path.data, .key_length = path.length}};
        const char *dot = memchr(path.data, '.', path.length);
        bool deeper = dot && dot > path.data && dot + 1 < path.data + path.length;
        found->kind = DP_JSON_ABSENT;
        if (object.kind != DP_JSON_OTHER || *object.raw != '{')
            return DP_JSON_OK;
        if (deeper)
            set_key(&names[1], path.data, (size_t)(dot - path.data));
        dp_json_result result = dp_json_read(reader->json, object.raw, object.raw_length, names, deeper ? 2 : 1);
        if (result != DP_JSON_OK || names[0].kind != DP_JSON_ABSENT || !deeper) {
            *found = names[0];
            return result;
        }
        object = names[1];
        path = (doppel_slice){dot + 1, (size_t)(path.data + path.length - dot - 1)};
    }
}

/* What the record has for a part; goes to the field of its name. */
static dp_json_result find_part(dp_reader *reader, const dp_key_part *part) {
    dp_json_field *found = &reader->fields[part->name];
    if (found->kind != DP_JSON_ABSENT || !part->head)
        return DP_JSON_OK;
    dp_json_field value = {0};
    dp_json_result result = follow(reader, part->rest, reader->fields[part->head], &value);
    found->kind = value.kind;
    found->raw = value.raw;
    found->raw_length = value.raw_length;
    return result;
}

/* Room for all joined values, which must not move once one of them is used. */
static bool reserve_joined(dp_reader *reader) {
    size_t room = 0;
    for (size_t i = 0; i < reader->part_count; i++) {
        const dp_json_field *found = &reader->fields[reader->parts[i].name];
        room += is_missing(found) ? 0 : found->raw_length + 2;
    }
    reader->joined.size = 0;
    return dp_reserve(&reader->joined.data, &reader->joined.capacity, room, 1);
}

static void add_joined(dp_buffer *joined, const char *bytes, size_t length) {
    if (length)
        memcpy(joined->data + joined->size, bytes, length);
    joined->size += length;
}

/* Gives a field what was found of its parts, from `first` on to `end`: one value as it stands, several as one string,
 * still escaped. One that is neither a string nor a number is given by itself, to be refused. */
static void join_parts(dp_reader *reader, size_t first, size_t end) {
    dp_json_field *to = &reader->fields[reader->parts[first].field];
    dp_buffer *joined = &reader->joined;
    size_t start = joined->size, count = 0;
    for (size_t i = first; i < end; i++) {
        const dp_json_field *found = &reader->fields[reader->parts[i].name];
        if (is_missing(found) && !(to->kind == DP_JSON_ABSENT && found->kind == DP_JSON_NULL))
            continue;
        if (!is_missing(found) && count++)
            add_joined(joined, "\\n", 2);
        if (!is_missing(found))
            add_joined(joined, found->raw, found->raw_length);
        to->kind = found->kind;
        to->raw = found->raw;
        to->raw_length = found->raw_length;
        if (found->kind == DP_JSON_OTHER)
            return;
    }
    if (count < 2)
        return;
    to->kind = DP_JSON_STRING;
    to->raw = joined->data + start;
    to->raw_length = joined->size - start;
}

_Static_assert(DP_PARTS <= 64, "parts_seen has a bit for each");

static void note_parts(dp_reader *reader, size_t first, size_t end) {
    bool whole = reader->fields[reader->parts[first].field].kind != DP_JSON_ABSENT;
    for (size_t i = first; i < end; i++)
        if (whole || reader->fields[reader->parts[i].name].kind != DP_JSON_ABSENT)
            reader->parts_seen |= (uint64_t)1 << i;
}

dp_json_result dp_fields_read(dp_reader *reader, const char *record, size_t length) {
    dp_json_result result = dp_json_read(reader->json, record, length, reader->fields, reader->field_count);
    for (size_t i = 0; i < reader->part_count && result == DP_JSON_OK; i++)
        result = find_part(reader, &reader->parts[i]);
    if (result != DP_JSON_OK || !reader->part_count)
        return result;
    if (!reserve_joined(reader))
        return DP_JSON_NO_MEMORY;
    for (size_t i = 0, end; i < reader->part_count; i = end) {
        end = dp_parts_end(reader, i);
        note_parts(reader, i, end);
        if (reader->fields[reader->parts[i].field].kind == DP_JSON_ABSENT)
            join_parts(reader, i, end);
    }
    return DP_JSON_OK;
}
