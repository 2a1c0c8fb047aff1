/* run_folders.c - the folder of all runs of a server, doppel-runs-XXXXXX below that of temporary files. The server
 * holds a lock on a file of it, so that the next server can tell which folders belong to a server that was killed. */
#include "common/message.h"
#include "server/runs.h"
#include "server/service.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char folder_prefix[] = "doppel-runs-";

static void remove_tree(int parent, const char *name) {
    int here = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = here >= 0 ? fdopendir(here) : NULL;
    struct dirent *found;
    while (folder && (found = readdir(folder))) {
        if (!strcmp(found->d_name, ".") || !strcmp(found->d_name, ".."))
            continue;
        if (unlinkat(dirfd(folder), found->d_name, 0))
            remove_tree(dirfd(folder), found->d_name);
    }
    if (folder)
        closedir(folder);
    else if (here >= 0)
        close(here);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void run_folder_remove(const char *path) {
    remove_tree(AT_FDCWD, path);
}

void run_folders_remove_old(const char *tmp) {
    DIR *folder = opendir(tmp);
    struct dirent *found;
    while (folder && (found = readdir(folder))) {
        char lock[512];
        if (strncmp(found->d_name, folder_prefix, sizeof folder_prefix - 1) != 0 ||
            snprintf(lock, sizeof lock, "%s/lock", found->d_name) >= (int)sizeof lock)
            continue;
        int file = openat(dirfd(folder), lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (file >= 0 && !flock(file, LOCK_EX | LOCK_NB))
            remove_tree(dirfd(folder), found->d_name);
        if (file >= 0)
            close(file);
    }
    if (folder)
        closedir(folder);
}

/* Locks a new folder; -1, with errno, on failure. ENOENT: another server that starts took the folder for one that was
 * left, before it was locked, and removes it. */
static int lock_folder(const char *folder) {
    char *path;
    struct stat locked, there;
    if (asprintf(&path, "%s/lock", folder) < 0)
        return -1;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool locks = file >= 0 && !flock(file, LOCK_EX | LOCK_NB);
    bool removed = file >= 0 && (locks ? fstat(file, &locked) || stat(path, &there) || locked.st_ino != there.st_ino
                                       : errno == EWOULDBLOCK);
    free(path);
    if (locks && !removed)
        return file;
    int reason = removed ? ENOENT : errno;
    if (file >= 0)
        close(file);
    errno = reason;
    return -1;
}

bool run_folders_make(runs *all) {
    const char *tmp = all->service->options.tmp;
    if (all->folder)
        return true;
    if (!tmp)
        return false;
    do {
        free(all->folder);
        if (asprintf(&all->folder, "%s/%sXXXXXX", tmp, folder_prefix) < 0) {
            all->folder = NULL;
            return false;
        }
        all->folder_lock = mkdtemp(all->folder) ? lock_folder(all->folder) : -1;
    } while (all->folder_lock < 0 && errno == ENOENT && !access(tmp, W_OK));
    if (all->folder_lock >= 0)
        return true;
    message("%s: cannot make a folder for runs: %s", all->folder, strerror(errno));
    rmdir(all->folder);
    free(all->folder);
    all->folder = NULL;
    return false;
}
