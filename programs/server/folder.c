/* folder.c - the few things the server does with files of its own folder of indexes. */
#include "server/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST = 1 << 20 };

char *folder_path(const char *folder, const char *name, const char *ending) {
    char *path = NULL;
    return asprintf(&path, "%s/%s%s", folder, name, ending) < 0 ? NULL : path;
}

static doppel_status failed(const char *path, const char *what, doppel_error *error) {
    doppel_status status = path ? DOPPEL_ERROR_IO : DOPPEL_ERROR_MEMORY;
    *error = (doppel_error){.code = status};
    snprintf(error->message, sizeof error->message, "cannot %s: %s", what, strerror(path ? errno : ENOMEM));
    if (path)
        snprintf(error->file, sizeof error->file, "%s", path);
    return status;
}

doppel_status folder_read(const char *folder, const char *name, const char *ending, folder_file *into,
                          doppel_error *error) {
    char *path = folder_path(folder, name, ending);
    FILE *file = path ? fopen(path, "re") : NULL;
    into->bytes = malloc(LARGEST);
    into->length = file && into->bytes ? fread(into->bytes, 1, LARGEST, file) : 0;
    doppel_status status = DOPPEL_OK;
    if (!file || !into->bytes || ferror(file))
        status = failed(path, "read", error);
    if (file)
        fclose(file);
    free(path);
    return status;
}

static bool write_whole(int file, doppel_slice bytes) {
    size_t wrote = 0;
    while (wrote < bytes.length) {
        ssize_t now = write(file, bytes.data + wrote, bytes.length - wrote);
        if (now < 0 && errno != EINTR)
            return false;
        wrote += now > 0 ? (size_t)now : 0;
    }
    return !fsync(file);
}

static bool sync_folder(const char *folder) {
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool fine = file >= 0 && !fsync(file);
    if (file >= 0)
        close(file);
    return fine;
}

doppel_status folder_write(const char *folder, const char *name, const char *ending, doppel_slice bytes,
                           doppel_error *error) {
    char *path = folder_path(folder, name, ending), *beside = folder_path(folder, name, ".new");
    int file = path && beside ? open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    bool fine = file >= 0 && write_whole(file, bytes) && !rename(beside, path) && sync_folder(folder);
    doppel_status status = fine ? DOPPEL_OK : failed(beside ? path : NULL, "write", error);
    if (file >= 0)
        close(file);
    free(path);
    free(beside);
    return status;
}

doppel_status folder_unlink(const char *folder, const char *name, const char *ending, doppel_error *error) {
    char *path = folder_path(folder, name, ending);
    bool fine = path && !unlink(path) && sync_folder(folder);
    doppel_status status = fine ? DOPPEL_OK : failed(path, "remove", error);
    free(path);
    return status;
}

void folder_remove(const char *path) {
    struct dirent *found;
    DIR *folder = opendir(path);
    while (folder && (found = readdir(folder)))
        if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
            unlinkat(dirfd(folder), found->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}
