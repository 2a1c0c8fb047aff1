/* files.h - what the server has on disk: reading and writing all of some bytes, and files without a name. */
#ifndef SERVER_FILES_H
#define SERVER_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes all bytes, however many calls it takes; false, with errno, on failure. */
bool file_write(int file, const char *bytes, size_t length);
/* The same at a position of the file. */
bool file_write_at(int file, const void *bytes, size_t length, uint64_t at);
/* Reads all bytes from a position; false where the file has fewer, too. */
bool file_read_at(int file, void *bytes, size_t length, uint64_t at);

/* Opens a file without a name in a folder, to be written and read; -1, with errno, on failure. */
int file_open_unnamed(const char *folder);

#endif
