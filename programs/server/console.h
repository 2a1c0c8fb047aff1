/* console.h - the files of the console, which the build puts into the program (cmake/server.cmake). */
#ifndef SERVER_CONSOLE_H
#define SERVER_CONSOLE_H

#include <stddef.h>

typedef struct console_file {
    const char *name; /* NULL ends the table */
    const unsigned char *bytes;
    size_t length;
} console_file;

extern const console_file console_files[];

/* The content type of a file, by the ending of its name. */
const char *console_type(const char *name);

/* What the pages may load: only files of this server, and inline pictures. */
#define CONSOLE_POLICY                                                                                        \
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " \
    "object-src 'none'"

#endif
