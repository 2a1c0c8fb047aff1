/* json.h - one line of JSON, by simdjson: the only C++ of the library.
 *
 * dp_json_create, then dp_json_read for each line, then dp_json_free. A line is checked whole: values that are
 * not asked for must be JSON too. Strings are given still escaped; dp_json_unescape makes text of them.
 */
#ifndef DP_JSON_H
#define DP_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This many bytes after a line must be readable, whatever they hold: simdjson loads whole vectors. */
#define DP_JSON_PADDING 64

/* Deeper records are refused: each level costs a stack frame. */
#define DP_JSON_MAX_DEPTH 1000

typedef enum dp_json_result {
    DP_JSON_OK,
    DP_JSON_NOT_UTF8,   /* repair it and try again */
    DP_JSON_NOT_OBJECT, /* JSON of another kind */
    DP_JSON_BROKEN,     /* dp_json_why says what is wrong */
    DP_JSON_NO_MEMORY
} dp_json_result;

typedef enum dp_json_kind { DP_JSON_ABSENT, DP_JSON_STRING, DP_JSON_NUMBER, DP_JSON_NULL, DP_JSON_OTHER } dp_json_kind;

/* A field to look for. When a key occurs twice, the last one counts. */
typedef struct dp_json_field {
    const char *key; /* in: without escapes */
    size_t key_length;
    dp_json_kind kind; /* out */
    const char *raw;   /* out: the value, unchanged; a string without its quotes, still escaped */
    size_t raw_length;
} dp_json_field;

typedef struct dp_json dp_json;

/* A parser for one thread; NULL when there is no memory. */
dp_json *dp_json_create(void);
void dp_json_free(dp_json *json);

/* Reads one object and finds `count` fields in it. */
dp_json_result dp_json_read(dp_json *json, const char *line, size_t length, dp_json_field *fields, size_t count);

/* What was wrong with the last line that was DP_JSON_BROKEN. */
const char *dp_json_why(const dp_json *json);

/* Makes text of an escaped string: at most `length` bytes, at `to` (which may not overlap `raw`). Gives their number,
 * or SIZE_MAX for an escape that JSON does not have. Surrogates without their other half become U+FFFD, and *repaired
 * is set. */
size_t dp_json_unescape(const char *raw, size_t length, char *to, bool *repaired);

/* Whether the bytes are valid UTF-8. */
bool dp_json_is_utf8(const char *bytes, size_t length);

#ifdef __cplusplus
}
#endif
#endif
