/* json.h - a request's JSON, read whole into a flat list of values.
 *
 * Strict, because what comes from outside must mean one thing: valid UTF-8 only, no surrogate without its other half,
 * no key twice in an object, numbers as JSON writes them; and bounded: depth, members of an object, values in all.
 * What is wrong is told with its place. The bytes are not changed, so that an object can be handed on as it stands. */
#ifndef SERVER_JSON_H
#define SERVER_JSON_H

#include "doppel.h"

enum {
    JSON_MAX_DEPTH = 64,      /* a stack frame each */
    JSON_MAX_MEMBERS = 256,   /* keys are compared each with each */
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
    size_t behind;     /* the number of the value behind this one and all that is inside it */
    doppel_slice key;  /* in an object */
    doppel_slice text; /* of a string what it says, of anything else how it stands in the source */
} json_value;

/* Zero is empty; its memory is used again by the next read. */
typedef struct json {
    json_value *values; /* the first is the whole; those inside an object or array follow it */
    size_t count, room;
    char *held; /* strings that had escapes */
    size_t held_length, held_room;
    /* Why reading failed. */
    bool no_memory;
    char why[160];
    size_t position; /* in bytes, from 0 */
} json;

/* Reads one value, white space around it. `bytes` must live as long as the values are used. */
bool json_read(json *j, const char *bytes, size_t length);
void json_free(json *j);

/* The member of an object, or NULL. */
const json_value *json_member(const json *j, const json_value *object, const char *key);

/* The first value inside, and the one behind a value. */
const json_value *json_first(const json_value *container);
const json_value *json_next(const json *j, const json_value *value);

/* What a kind is called: "a string". */
const char *json_kind_name(json_kind kind);

#endif
