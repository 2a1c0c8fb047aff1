/* redis_words.h - pieces of the URL of a shared store; redis_url.c puts them together. */
#ifndef DP_REDIS_WORDS_H
#define DP_REDIS_WORDS_H

#include "base/base.h"

/* DOPPEL_ERROR_USAGE, with what is wrong. */
doppel_status dp_redis_no_sense(doppel_error *error, const char *what);

/* Cuts `text` at the first `mark`: gives what stands before it and leaves what is behind it, or nothing. `found` may be
 * NULL. */
doppel_slice dp_redis_cut(doppel_slice *text, char mark, bool *found);

/* A copy with its escapes undone, in place of *copy. Control characters have no place in names and messages, and are an
 * error. */
doppel_status dp_redis_copy_part(doppel_slice part, char **copy, doppel_error *error);

/* A decimal number without sign, blanks or anything behind it; false: it is none, or above `most`. */
bool dp_redis_read_number(doppel_slice text, uint64_t most, uint64_t *number);

/* Seconds: digits with a point, or none, among them. */
bool dp_redis_read_seconds(doppel_slice text, double least, double most, double *seconds);

#endif
