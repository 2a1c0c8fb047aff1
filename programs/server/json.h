/* json.h - a request's JSON, read whole into a flat list of values.
 *
 * Strict, because what comes from outside must mean one thing: valid UTF-8 only, no surrogate without its other half,
 * no key twice in an object, numbers in JSON's form only; and bounded: depth, members of an object, values in all.
 * Errors are reported with their place. The bytes are not changed, so that an object can be passed on unchanged. */
#ifndef SERVER_JSON_H
#define SERVER_JSON_H

#include "doppel.h"

enum {
    JSON_MAX_DEPTH = 64,      /* a stack frame each */
    JSON_MAX_MEMBERS = 256,   /* each key is compared with all others */
    JSON_MAX_VALUES = 1 << 19 /* 72 bytes each */
};

typedef enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json_value {
    json_kind kind;
    size_t count;      /* elements or members */
    size_t next;       /* the number of the value after this one and everything inside it */
    doppel_slice key;  /* in an object */
    doppel_slice text; /* of a string its value, of anything else its source */
} json_value;

/* Zero is empty; its memory is used again by the next read. */
typedef struct json {
    json_value *values; /* the first is the whole; those inside an object or array follow it */
    size_t count, room;
    char *unescaped; /* strings that had escapes */
    size_t unescaped_length, unescaped_room;
    /* Why reading failed. */
    bool no_memory;
    char why[160];
    size_t position; /* in bytes, from 0 */
} json;

/* Reads one value, with white space around it. `bytes` must live as long as the values are used. */
bool json_read(json *j, const char *bytes, size_t length);
void json_free(json *j);
/* Frees the memory of a large value; that of a small one is kept for the next read. The values cannot be used any
 * longer. */
void json_trim(json *j);

/* The member of an object, or NULL. */
const json_value *json_member(const json *j, const json_value *object, const char *key);

/* The first value inside a container, and the value after one. */
const json_value *json_first(const json_value *container);
const json_value *json_next(const json *j, const json_value *value);

/* The name of a kind: "a string". */
const char *json_kind_name(json_kind kind);

#endif
