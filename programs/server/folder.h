/* folder.h - the few things the server does with files of its own folder of indexes. Names are checked by the caller.
 */
#ifndef SERVER_FOLDER_H
#define SERVER_FOLDER_H

#include "doppel.h"

/* FOLDER/NAMEENDING, allocated; NULL: no memory. */
char *folder_path(const char *folder, const char *name, const char *ending);

/* A small file, read whole. */
typedef struct folder_file {
    char *bytes; /* to be freed, also after a failure */
    size_t length;
} folder_file;
doppel_status folder_read(const char *folder, const char *name, const char *ending, folder_file *into,
                          doppel_error *error);

/* Writes a file that is whole or absent, and on the disk. */
doppel_status folder_write(const char *folder, const char *name, const char *ending, doppel_slice bytes,
                           doppel_error *error);

doppel_status folder_unlink(const char *folder, const char *name, const char *ending, doppel_error *error);

/* Removes a folder with the plain files that are directly in it; others stay, and so it does then. */
void folder_remove(const char *path);

#endif
