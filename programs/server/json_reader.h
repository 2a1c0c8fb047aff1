/* json_reader.h - what json.c and json_string.c share: where reading stands. */
#ifndef SERVER_JSON_READER_H
#define SERVER_JSON_READER_H

#include "server/json.h"

typedef struct json_reader {
    json *j;
    const unsigned char *start, *p, *end;
    int depth;
} json_reader;

/* Tells why reading ends here, and gives false. */
bool json_fail(json_reader *r, const char *why);
bool json_no_memory(json_reader *r);

/* Reads a string; r->p stands on its quote. */
bool json_string(json_reader *r, doppel_slice *text);

#endif
