/* json.c - a request's JSON, read whole into a flat list of values. */
#include "server/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct json_reader {
    json *j;
    const unsigned char *start, *p, *end;
    int depth;
} json_reader;

/* Records why reading ends here, and returns false. */
static bool json_fail(json_reader *r, const char *why) {
    snprintf(r->j->why, sizeof r->j->why, "%s", why);
    r->j->position = (size_t)(r->p - r->start);
    return false;
}

static bool json_no_memory(json_reader *r) {
    r->j->no_memory = true;
    return json_fail(r, "no memory");
}

/* ---- strings: valid UTF-8, escapes undone ---- */

/* The length of the character at p, which begins with a byte of 0x80 or more; 0: it is not valid UTF-8. */
static size_t long_character(const unsigned char *p, const unsigned char *end) {
    size_t more = p[0] >= 0xF0 ? 3 : p[0] >= 0xE0 ? 2 : 1;
    if (p[0] < 0xC2 || p[0] > 0xF4 || (size_t)(end - p) <= more)
        return 0;
    for (size_t i = 1; i <= more; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool too_long = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool no_character = (p[0] == 0xED && p[1] >= 0xA0) || (p[0] == 0xF4 && p[1] >= 0x90);
    return too_long || no_character ? 0 : more + 1;
}

static int32_t hex4(const json_reader *r, const unsigned char *p) {
    int32_t value = 0;
    if (r->end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        unsigned char c = p[i], lower = c | 32;
        if (c >= '0' && c <= '9')
            value = value * 16 + c - '0';
        else if (lower >= 'a' && lower <= 'f')
            value = value * 16 + lower - 'a' + 10;
        else
            return -1;
    }
    return value;
}

static char *put_utf8(char *to, int32_t c) {
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xE0 | c >> 12);
        } else {
            *to++ = (char)(0xF0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 63));
        }
        *to++ = (char)(0x80 | (c >> 6 & 63));
    }
    *to++ = (char)(0x80 | (c & 63));
    return to;
}

/* \uXXXX, and the second half of a surrogate pair. r->p is at the u. */
static char *unicode_escape(json_reader *r, char *to) {
    int32_t c = hex4(r, r->p + 1);
    if (c < 0) {
        json_fail(r, "\\u needs four hexadecimal digits");
        return NULL;
    }
    r->p += 5;
    if (c >= 0xD800 && c < 0xE000) {
        int32_t low = r->end - r->p > 2 && r->p[0] == '\\' && r->p[1] == 'u' ? hex4(r, r->p + 2) : -1;
        if (c >= 0xDC00 || low < 0xDC00 || low >= 0xE000) {
            json_fail(r, "a surrogate without its other half");
            return NULL;
        }
        r->p += 6;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    return put_utf8(to, c);
}

/* An escape; r->p is after its backslash. Returns where the text continues, or NULL. */
static char *one_escape(json_reader *r, char *to) {
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *found = r->p < r->end && *r->p ? strchr(from, *r->p) : NULL;
    if (found) {
        *to++ = into[found - from];
        r->p++;
        return to;
    }
    if (r->p < r->end && *r->p == 'u')
        return unicode_escape(r, to);
    json_fail(r, "unknown escape");
    return NULL;
}

/* Skips characters that need no escape; false, with a reason, at one that is not allowed. */
static bool plain_run(json_reader *r) {
    while (r->p < r->end && *r->p != '"' && *r->p != '\\') {
        if (*r->p < 0x20)
            return json_fail(r, "a control character in a string must be escaped");
        size_t size = *r->p < 0x80 ? 1 : long_character(r->p, r->end);
        if (!size)
            return json_fail(r, "not valid UTF-8");
        r->p += size;
    }
    return r->p < r->end || json_fail(r, "the string is not closed");
}

/* The rest of a string that has an escape; `from` is where it begins. Unescaped text is never longer than it was. */
static bool escaped_string(json_reader *r, const unsigned char *from, doppel_slice *text) {
    json *j = r->j;
    if (!j->unescaped || j->unescaped_room < (size_t)(r->end - r->start)) {
        if (j->unescaped_length)
            return json_no_memory(r); /* not reached: the first escape makes room for all of them */
        char *grown = realloc(j->unescaped, (size_t)(r->end - r->start));
        if (!grown)
            return json_no_memory(r);
        j->unescaped = grown;
        j->unescaped_room = (size_t)(r->end - r->start);
    }
    char *to = j->unescaped + j->unescaped_length;
    text->data = to;
    for (;;) {
        memcpy(to, from, (size_t)(r->p - from));
        to += r->p - from;
        if (*r->p++ == '"')
            break;
        if (!(to = one_escape(r, to)))
            return false;
        from = r->p;
        if (!plain_run(r))
            return false;
    }
    text->length = (size_t)(to - text->data);
    j->unescaped_length += text->length;
    return true;
}

/* Reads a string; r->p is at its opening quote. */
static bool json_string(json_reader *r, doppel_slice *text) {
    const unsigned char *from = ++r->p;
    if (!plain_run(r))
        return false;
    if (*r->p == '\\')
        return escaped_string(r, from, text);
    *text = (doppel_slice){(const char *)from, (size_t)(r->p - from)};
    r->p++;
    return true;
}

static void skip_space(json_reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r'))
        r->p++;
}

/* ---- values ---- */

static bool digits(json_reader *r) {
    const unsigned char *from = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return r->p > from || json_fail(r, "expected a digit");
}

static bool read_number(json_reader *r) {
    if (*r->p == '-')
        r->p++;
    const unsigned char *from = r->p;
    if (!digits(r))
        return false;
    if (*from == '0' && r->p - from > 1)
        return json_fail(r, "a number may not begin with 0");
    if (r->p < r->end && *r->p == '.') {
        r->p++;
        if (!digits(r))
            return false;
    }
    if (r->p < r->end && (*r->p | 32) == 'e') {
        r->p++;
        if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
            r->p++;
        return digits(r);
    }
    return true;
}

static bool read_word(json_reader *r, json_value *value) {
    static const struct {
        const char *word;
        json_kind kind;
    } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(r->end - r->p) >= length && !memcmp(r->p, words[i].word, length)) {
            value->kind = words[i].kind;
            r->p += length;
            return true;
        }
    }
    return json_fail(r, r->p < r->end ? "expected a value" : "the JSON ends too early");
}

static bool read_value(json_reader *r, doppel_slice key);

static bool new_key(json_reader *r, size_t object, doppel_slice key) {
    const json *j = r->j;
    for (size_t i = object + 1; i < j->count; i = j->values[i].next)
        if (j->values[i].key.length == key.length && !memcmp(j->values[i].key.data, key.data, key.length)) {
            snprintf(r->j->why, sizeof r->j->why, "the key \"%.*s\" appears twice",
                     (int)(key.length < 100 ? key.length : 100), key.data);
            r->j->position = (size_t)(r->p - r->start);
            return false;
        }
    return j->values[object].count < JSON_MAX_MEMBERS || json_fail(r, "an object with more than 256 members");
}

static bool read_key(json_reader *r, size_t object, doppel_slice *key) {
    skip_space(r);
    if (r->p == r->end || *r->p != '"')
        return json_fail(r, "expected a key in quotes");
    const unsigned char *at = r->p;
    if (!json_string(r, key))
        return false;
    const unsigned char *after = r->p;
    r->p = at;
    if (!new_key(r, object, *key))
        return false;
    r->p = after;
    skip_space(r);
    if (r->p == r->end || *r->p != ':')
        return json_fail(r, "expected a colon");
    r->p++;
    return true;
}

/* r->p is after the opening bracket. */
static bool read_inside(json_reader *r, size_t number, unsigned char closing) {
    doppel_slice key = {NULL, 0};
    skip_space(r);
    if (r->p < r->end && *r->p == closing) {
        r->p++;
        return true;
    }
    for (;;) {
        if (closing == '}' && !read_key(r, number, &key))
            return false;
        if (!read_value(r, key))
            return false;
        r->j->values[number].count++;
        skip_space(r);
        unsigned char c = r->p < r->end ? *r->p : 0;
        if (c != ',' && c != closing)
            return json_fail(r, closing == '}' ? "expected a comma or }" : "expected a comma or ]");
        r->p++;
        if (c == closing)
            return true;
    }
}

static bool add_value(json_reader *r) {
    json *j = r->j;
    if (j->count == JSON_MAX_VALUES)
        return json_fail(r, "too many values");
    if (j->count < j->room)
        return true;
    size_t room = j->room ? j->room * 2 : 16;
    json_value *grown = realloc(j->values, room * sizeof *grown);
    if (!grown)
        return json_no_memory(r);
    j->values = grown;
    j->room = room;
    return true;
}

static bool read_value(json_reader *r, doppel_slice key) {
    json *j = r->j;
    skip_space(r);
    if (!add_value(r))
        return false;
    size_t number = j->count++;
    json_value value = {.key = key};
    const unsigned char *from = r->p;
    unsigned char c = r->p < r->end ? *r->p : 0;
    bool fine;
    value.kind = c == '{' ? JSON_OBJECT : c == '[' ? JSON_ARRAY : c == '"' ? JSON_STRING : JSON_NUMBER;
    j->values[number] = value;
    if (c == '{' || c == '[') {
        if (++r->depth > JSON_MAX_DEPTH)
            return json_fail(r, "nested more than 64 deep");
        r->p++;
        fine = read_inside(r, number, c == '{' ? '}' : ']');
        r->depth--;
        value.count = j->values[number].count;
    } else if (c == '"') {
        fine = json_string(r, &value.text);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        fine = read_number(r);
    } else {
        fine = read_word(r, &value);
    }
    if (value.kind != JSON_STRING)
        value.text = (doppel_slice){(const char *)from, (size_t)(r->p - from)};
    value.next = j->count;
    j->values[number] = value;
    return fine;
}

bool json_read(json *j, const char *bytes, size_t length) {
    json_reader r = {j, (const unsigned char *)bytes, (const unsigned char *)bytes,
                     (const unsigned char *)bytes + length, 0};
    j->count = j->unescaped_length = 0;
    j->no_memory = false;
    if (!read_value(&r, (doppel_slice){NULL, 0}))
        return false;
    skip_space(&r);
    return r.p == r.end || json_fail(&r, "nothing may follow the value");
}

void json_free(json *j) {
    free(j->values);
    free(j->unescaped);
    *j = (json){0};
}

void json_trim(json *j) {
    enum { VALUES_KEPT = 256, BYTES_KEPT = 1 << 14 }; /* more than most documents need */
    if (j->room > VALUES_KEPT || j->unescaped_room > BYTES_KEPT)
        json_free(j);
}

const json_value *json_first(const json_value *container) {
    return container + 1;
}

const json_value *json_next(const json *j, const json_value *value) {
    return j->values + value->next;
}

const json_value *json_member(const json *j, const json_value *object, const char *key) {
    size_t length = strlen(key);
    const json_value *value = json_first(object);
    for (size_t i = 0; i < object->count; i++, value = json_next(j, value))
        if (value->key.length == length && !memcmp(value->key.data, key, length))
            return value;
    return NULL;
}

const char *json_kind_name(json_kind kind) {
    static const char *const names[] = {"null", "false", "true", "a number", "a string", "an array", "an object"};
    return names[kind];
}
