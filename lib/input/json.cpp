/* json.cpp - simdjson through C calls. Its on-demand front end finds the structure of the line with the widest vectors
 * the CPU has and checks UTF-8 on the way; the walk below looks at each value once. Nothing here throws. */
#define SIMDJSON_EXCEPTIONS 0
#include "input/json.h"

#include <algorithm>
#include <new>
#include <simdjson.h>
#include <stdlib.h>
#include <string.h>
#include <utility>

using namespace simdjson;

/* A parser that has read a longer line gives its memory back: it holds 4 bytes and more for each byte of the line. */
static constexpr size_t KEEP_CAPACITY = size_t(8) << 20;

struct dp_json {
    ondemand::parser parser;
    char *scratch; /* for strings that are only checked */
    size_t scratch_capacity;
    const char *why;
};

extern "C" dp_json *dp_json_create(void) {
    return new (std::nothrow) dp_json();
}

extern "C" void dp_json_free(dp_json *json) {
    if (json)
        free(json->scratch);
    delete json;
}

extern "C" const char *dp_json_why(const dp_json *json) {
    return json->why;
}

extern "C" bool dp_json_is_utf8(const char *bytes, size_t length) {
    return validate_utf8(bytes, length);
}

static dp_json_result broken(dp_json *json, const char *why) {
    json->why = why;
    return DP_JSON_BROKEN;
}

static dp_json_result from_error(dp_json *json, error_code error) {
    switch (error) {
    case SUCCESS: return DP_JSON_OK;
    case MEMALLOC: return DP_JSON_NO_MEMORY;
    case UTF8_ERROR: return DP_JSON_NOT_UTF8;
    case CAPACITY: return broken(json, "longer than 4 GiB");
    case EMPTY: return broken(json, "nothing but white space");
    case UNCLOSED_STRING: return broken(json, "a string without its closing quote");
    case UNESCAPED_CHARS: return broken(json, "a control character inside a string");
    case INCOMPLETE_ARRAY_OR_OBJECT: return broken(json, "an object or array without its end");
    default: return broken(json, "a comma, colon, quote or bracket is missing or out of place");
    }
}

static std::string_view trimmed(std::string_view token) {
    while (!token.empty() &&
           (token.back() == ' ' || token.back() == '\t' || token.back() == '\r' || token.back() == '\n'))
        token.remove_suffix(1);
    return token;
}

static bool has_escape(std::string_view text) {
    return !text.empty() && memchr(text.data(), '\\', text.size());
}

/* The string unescaped into the scratch memory, for keys and for strings that are only checked. */
static dp_json_result unescape(dp_json *json, std::string_view raw, std::string_view *text) {
    if (json->scratch_capacity < raw.size()) {
        char *grown = static_cast<char *>(realloc(json->scratch, raw.size() * 2));
        if (!grown)
            return DP_JSON_NO_MEMORY;
        json->scratch = grown;
        json->scratch_capacity = raw.size() * 2;
    }
    bool repaired = false;
    size_t length = dp_json_unescape(raw.data(), raw.size(), json->scratch, &repaired);
    if (length == SIZE_MAX)
        return broken(json, "an escape in a string that JSON does not allow");
    *text = std::string_view(json->scratch, length);
    return DP_JSON_OK;
}

/* The string between its quotes. */
static std::string_view inside(std::string_view token) {
    return token.size() < 2 ? std::string_view() : token.substr(1, token.size() - 2);
}

static dp_json_result check_string(dp_json *json, std::string_view token) {
    std::string_view ignored;
    return has_escape(token) ? unescape(json, inside(token), &ignored) : DP_JSON_OK;
}

static const char *digits(const char *p, const char *end) {
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* Whether a token is a number by the grammar of JSON. */
static bool is_number(std::string_view token) {
    const char *p = token.data(), *end = p + token.size(), *start;
    if (p < end && *p == '-')
        p++;
    start = p;
    p = digits(p, end);
    if (p == start || (*start == '0' && p - start > 1))
        return false;
    if (p < end && *p == '.') {
        start = ++p;
        if ((p = digits(p, end)) == start)
            return false;
    }
    if (p < end && (*p | 32) == 'e') {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        start = p;
        if ((p = digits(p, end)) == start)
            return false;
    }
    return p == end;
}

/* simdjson recognises true, false and null by their first letter alone, so look at the rest. */
static dp_json_result check_scalar(dp_json *json, std::string_view token) {
    if (token[0] == '"')
        return check_string(json, token);
    if (token == "true" || token == "false" || token == "null" || is_number(token))
        return DP_JSON_OK;
    return broken(json, "a value that is neither a string, a number, true, false, null, an object nor an array");
}

static dp_json_result check_value(dp_json *json, ondemand::value value, int depth);

static dp_json_result check_array(dp_json *json, ondemand::value value, int depth) {
    ondemand::array array;
    if (error_code error = value.get_array().get(array))
        return from_error(json, error);
    for (auto item : array) {
        ondemand::value child;
        if (error_code error = item.get(child))
            return from_error(json, error);
        if (dp_json_result result = check_value(json, child, depth))
            return result;
    }
    return DP_JSON_OK;
}

static dp_json_result check_object(dp_json *json, ondemand::value value, int depth) {
    ondemand::object object;
    if (error_code error = value.get_object().get(object))
        return from_error(json, error);
    for (auto item : object) {
        ondemand::field field;
        if (error_code error = std::move(item).get(field))
            return from_error(json, error);
        if (dp_json_result result = check_value(json, field.value(), depth))
            return result;
    }
    return DP_JSON_OK;
}

static dp_json_result check_value(dp_json *json, ondemand::value value, int depth) {
    std::string_view token = trimmed(value.raw_json_token());
    if (token.empty())
        return broken(json, "a value is missing");
    if (token[0] != '[' && token[0] != '{')
        return check_scalar(json, token);
    if (depth >= DP_JSON_MAX_DEPTH)
        return broken(json, "nested more than 1000 deep");
    return token[0] == '[' ? check_array(json, value, depth + 1) : check_object(json, value, depth + 1);
}

/* The key between its quotes, still escaped. */
static std::string_view raw_key(const ondemand::field &field) {
    const char *start = field.key().raw(), *p = start;
    while (*p != '"')
        p += *p == '\\' ? 2 : 1;
    return std::string_view(start, size_t(p - start));
}

static dp_json_kind kind_of(char first) {
    switch (first) {
    case '"': return DP_JSON_STRING;
    case 'n': return DP_JSON_NULL;
    case '[':
    case '{':
    case 't':
    case 'f': return DP_JSON_OTHER;
    default: return DP_JSON_NUMBER;
    }
}

static void fill(dp_json_field *field, std::string_view token) {
    field->kind = kind_of(token[0]);
    if (field->kind == DP_JSON_STRING)
        token = inside(token);
    field->raw = token.data();
    field->raw_length = token.size();
}

static bool has_key(const dp_json_field *field, std::string_view key) {
    return key == std::string_view(field->key, field->key_length);
}

static bool is_wanted(std::string_view key, const dp_json_field *fields, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (has_key(&fields[i], key))
            return true;
    return false;
}

/* An array or object, whole: up to the bracket that closes the one it starts with. Empty: nothing closes it before the
 * end; what the parser has passed over need not be JSON. */
static std::string_view whole_value(const char *start, const char *end) {
    size_t depth = 0, i = 0;
    bool in_string = false;
    do {
        if (i >= (size_t)(end - start))
            return std::string_view();
        char c = start[i++];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            depth++;
        else if (!in_string && (c == '}' || c == ']'))
            depth--;
    } while (depth);
    return std::string_view(start, i);
}

static bool is_nested(std::string_view token) {
    return !token.empty() && (token[0] == '[' || token[0] == '{');
}

static dp_json_result read_field(dp_json *json, const char *end, ondemand::field field, dp_json_field *fields,
                                 size_t count) {
    std::string_view key = raw_key(field);
    if (has_escape(key))
        if (dp_json_result result = unescape(json, key, &key))
            return result;
    bool wanted = is_wanted(key, fields, count);
    std::string_view token = trimmed(field.value().raw_json_token());
    /* The escapes of a wanted string are checked where it becomes text. */
    if (!wanted || token.empty() || token[0] != '"')
        if (dp_json_result result = check_value(json, field.value(), 1))
            return result;
    if (wanted && is_nested(token) && (token = whole_value(token.data(), end)).empty())
        return broken(json, "a value without an end");
    for (size_t i = 0; wanted && i < count; i++)
        if (has_key(&fields[i], key))
            fill(&fields[i], token);
    return DP_JSON_OK;
}

/* A line that is no object: JSON of another kind, going by its start, or none at all. */
static dp_json_result other_kind(dp_json *json, const char *line) {
    while (*line == ' ' || *line == '\t')
        line++;
    if (*line == '[' || *line == '"' || *line == '-' || (*line >= '0' && *line <= '9') || !strncmp(line, "true", 4) ||
        !strncmp(line, "false", 5) || !strncmp(line, "null", 4))
        return DP_JSON_NOT_OBJECT;
    return broken(json, "does not start with {");
}

/* Whether anything follows the object that the line starts with. */
static bool has_more(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty() || (line[0] != '{' && line[0] != '['))
        return false;
    std::string_view object = whole_value(line.data(), line.data() + line.size());
    return !object.empty() && !trimmed(line.substr(object.size())).empty();
}

static dp_json_result not_object(dp_json *json, padded_string_view line, error_code error) {
    if (error == INCORRECT_TYPE)
        return other_kind(json, line.data());
    if (error != UTF8_ERROR && error != MEMALLOC && has_more(line))
        return broken(json, "unexpected text after the end of the object");
    return from_error(json, error);
}

static dp_json_result read_object(dp_json *json, padded_string_view line, dp_json_field *fields, size_t count) {
    ondemand::document document;
    ondemand::object object;
    if (error_code error = json->parser.iterate(line).get(document))
        return from_error(json, error);
    if (error_code error = document.get_object().get(object))
        return not_object(json, line, error);
    for (auto item : object) {
        ondemand::field field;
        if (error_code error = std::move(item).get(field))
            return from_error(json, error);
        if (dp_json_result result = read_field(json, line.data() + line.length(), field, fields, count))
            return result;
    }
    if (document.current_location().error() != OUT_OF_BOUNDS)
        return broken(json, "unexpected text after the end of the object");
    return DP_JSON_OK;
}

extern "C" dp_json_result dp_json_read(dp_json *json, const char *line, size_t length, dp_json_field *fields,
                                       size_t count) {
    for (size_t i = 0; i < count; i++)
        fields[i].kind = DP_JSON_ABSENT;
    json->why = "";
    dp_json_result result =
        read_object(json, padded_string_view(line, length, length + DP_JSON_PADDING), fields, count);
    if (length > KEEP_CAPACITY)
        json->parser = ondemand::parser();
    return result;
}
