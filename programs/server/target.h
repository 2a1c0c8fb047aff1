/* target.h - the target of a request: path and query, percent-encoded. */
#ifndef SERVER_TARGET_H
#define SERVER_TARGET_H

#include "doppel.h"

/* Decodes percent-encoding in place, and + as a space in a query; gives the length, or SIZE_MAX when an escape is
 * broken. */
size_t target_decode(char *text, size_t length, bool query);

/* The next NAME=VALUE of a query, decoded in place, NUL behind each; false at the end. *broken: an escape is. */
bool target_next(char **query, char **name, char **value, bool *broken);

#endif
