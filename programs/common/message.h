/* message.h - what the command says on stderr, and text that is safe to print.
 *
 * Text from outside (ids, paths) may hold control characters. On lines and terminals they are written as escapes: \t,
 * \n, \r, \\ for a backslash, \xHH for any other control byte, so that each message stays on one line. */
#ifndef COMMON_MESSAGE_H
#define COMMON_MESSAGE_H

#include "doppel.h"

#include <stdio.h>

/* A line on stderr, led by "doppel: ", from any thread. Control characters in it are escaped. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a summary, not an error: suppressed by message_quiet (--quiet). */
void message_summary(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern bool message_quiet;

/* The same for an error, led by its file and line where there are any. */
void message_error(const doppel_error *error);

/* Set once the failure that ends the command was reported, so that it is not reported again in other words. */
extern bool failure_reported;

/* The exit code for a status. */
int exit_code(doppel_status status);

/* What to write for one character that is escaped, and how many bytes of text it stands for. */
typedef struct safe_escape {
    char text[9];
    size_t taken;
} safe_escape;

/* How many bytes at p (of `length`, at least 1) stand for themselves. 0: the first character is to be written as
 * *escape says. `backslash`: whether a backslash is escaped too. */
size_t safe_run(const char *p, size_t length, bool backslash, safe_escape *escape);

/* Writes text with its control characters escaped. */
void print_safe(FILE *file, const char *text, size_t length);

/* The width of the terminal in columns, or 0 if the file is not a terminal. */
int terminal_columns(FILE *file);

#endif
