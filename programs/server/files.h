/* files.h - what the server writes to disk: all of some bytes, and files without a name. */
#ifndef SERVER_FILES_H
#define SERVER_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Writes all bytes, however many calls it takes; false, with errno, on failure. */
bool file_write(int file, const char *bytes, size_t length);

/* Opens a file without a name in a folder, to be written and read; -1, with errno, on failure. */
int file_open_unnamed(const char *folder);

#endif
