/* stored_json.h - what an index remembers of a document, as JSON. */
#ifndef ENGINE_STORED_JSON_H
#define ENGINE_STORED_JSON_H

#include "doppel.h"

#include <stdio.h>

/* Writes `before` (",\"name\":" mostly) and a string, or null where there is none. */
void print_slice(FILE *file, const char *before, doppel_slice text);

/* The same with a number, null for NaN; with seconds since 1970 as ISO 8601, null for 0; with a fingerprint of so many
 * bits in hexadecimal. */
void print_time(FILE *file, const char *before, uint64_t seconds);
void print_fingerprint(FILE *file, const char *before, const uint64_t fingerprint[2], int bits);

/* The SHA-256 of the words; null when there are none. */
void print_digest(FILE *file, const char *before, const uint8_t digest[32]);

/* Of a copy: why it is one, the reason and the evidence as in a verdict. */
void print_evidence(FILE *file, const doppel_stored *stored);

/* Everything, as one object without a line end. */
void print_stored(FILE *file, const doppel_stored *stored, int bits);

/* As one of a list of similar ones. */
void print_similar(FILE *file, const doppel_stored *stored);

#endif
