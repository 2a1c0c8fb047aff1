/* lmdb_backup.c - a copy of the folder as it is at one moment, while it is written: the file without its free pages,
 * then doppel.index, which makes it a folder that can be opened. */
#include "store/lmdb.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static doppel_status copy_file(dp_lmdb *store, const char *path, doppel_error *error) {
    dp_newfile file;
    doppel_status status = dp_newfile_create(&file, path, error);
    if (status)
        return status;
    int reason = mdb_env_copyfd2(store->env.env, file.number, MDB_CP_COMPACT);
    /* LMDB says so when pages are neither used nor free: they are copied, too. */
    if (reason == MDB_INCOMPATIBLE && !ftruncate(file.number, 0) && !lseek(file.number, 0, SEEK_SET))
        reason = mdb_env_copyfd2(store->env.env, file.number, 0);
    status = dp_newfile_finish(&file, reason > 0 ? reason : 0, error);
    if (!status && reason < 0) {
        unlink(path);
        return dp_env_fail(store->folder, reason, error);
    }
    return status;
}

static doppel_status copy_folder(dp_lmdb *store, const char *folder, doppel_error *error) {
    char *path = dp_folder_file(folder, store->generation);
    if (!path)
        return dp_no_memory(error);
    doppel_status status = copy_file(store, path, error);
    const dp_folder_index index = {dp_folder_format(&store->env.names), store->generation};
    if (!status && (status = dp_folder_write_index(folder, &index, error)))
        unlink(path);
    free(path);
    return status ? status : dp_folder_sync_parent(folder, error);
}

doppel_status dp_lmdb_backup(dp_store *given, const char *path, doppel_error *error) {
    dp_lmdb *store = dp_lmdb_of(given);
    dp_folder_content content;
    doppel_status status = dp_folder_look(path, &content, error);
    if (status)
        return status;
    if (!content.missing && !content.empty)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "is there and not empty; name a new folder");
    if (content.missing && (status = dp_folder_make(path, error)))
        return status;
    if (!(status = dp_lmdb_enter(store, error))) {
        status = copy_folder(store, path, error);
        pthread_rwlock_unlock(&store->gate);
    }
    if (status && content.missing)
        rmdir(path);
    return status;
}
