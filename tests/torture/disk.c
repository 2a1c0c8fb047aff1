/* disk.c - files and names as they were last synced, and what was done to them since.
 *
 * A file's bytes are safe once it is synced (or, where it was opened so, each write by itself); a name is safe once its
 * folder is synced. */
#include "disk_parts.h"

#include <inttypes.h>

void *disk_grown(void *old, size_t count, size_t size) {
    void *made = realloc(old, count * size);
    if (!made)
        wrong("no memory");
    return made;
}

tt_disk *disk_create(void) {
    tt_disk *made = calloc(1, sizeof *made);
    if (!made)
        wrong("no memory");
    return made;
}

void disk_free(tt_disk *disk) {
    for (size_t i = 0; i < disk->file_count; i++) {
        free(disk->files[i].bytes);
        free(disk->files[i].pending);
    }
    free(disk->files);
    free(disk->safe.name);
    free(disk->pending);
    free(disk);
}

/* ---- bytes ---- */

void disk_resize(tt_file *file, uint64_t size) {
    file->bytes = disk_grown(file->bytes, size + 1, 1);
    if (size > file->size)
        memset(file->bytes + file->size, 0, size - file->size);
    file->size = size;
}

void disk_put(tt_file *to, uint64_t at, const char *bytes, uint64_t length) {
    if (at + length > to->size)
        disk_resize(to, at + length);
    memcpy(to->bytes + at, bytes, length);
}

void disk_change(tt_file *to, const tt_change *change) {
    if (change->resize)
        disk_resize(to, change->at);
    else
        disk_put(to, change->at, change->bytes, change->length);
}

tt_file *disk_file(const tt_disk *disk, uint64_t object) {
    for (size_t i = 0; i < disk->file_count; i++)
        if (disk->files[i].object == object)
            return &disk->files[i];
    wrong("the log has an object %" PRIu64 " that was never made", object);
}

static void add_change(tt_file *file, tt_change change) {
    if (file->count == file->room) {
        file->room = 2 * file->room + 16;
        file->pending = disk_grown(file->pending, file->room, sizeof change);
    }
    file->pending[file->count++] = change;
}

static void sync_file(tt_file *file) {
    for (size_t i = 0; i < file->count; i++)
        disk_change(file, &file->pending[i]);
    file->count = 0;
}

/* ---- names ---- */

static void drop_name(tt_names *names, const char *path) {
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->name[i].path, path))
            names->name[kept++] = names->name[i];
    names->count = kept;
}

void disk_name(tt_names *names, const tt_naming *naming) {
    tt_name moved = naming->name;
    if (naming->type == LOG_RENAME) {
        size_t i = 0;
        while (i < names->count && strcmp(names->name[i].path, naming->name.path))
            i++;
        if (i == names->count)
            return; /* what it was to move was never safe */
        moved = names->name[i];
        snprintf(moved.path, sizeof moved.path, "%s", naming->to);
        drop_name(names, naming->to);
    }
    drop_name(names, naming->name.path);
    if (naming->type == LOG_UNLINK)
        return;
    names->name = disk_grown(names->name, names->count + 1, sizeof moved);
    names->name[names->count++] = moved;
}

static void add_naming(tt_disk *disk, const log_record *record, const char *bytes) {
    tt_naming naming = {.type = record->type, .name.object = record->object};
    size_t first = strnlen(bytes, record->length);
    if (record->length >= MOST_PATH)
        wrong("the log has a path that is too long");
    memcpy(naming.name.path, bytes, first);
    if (record->type == LOG_RENAME)
        memcpy(naming.to, bytes + first + 1, record->length - first - 1);
    disk->pending = disk_grown(disk->pending, disk->pending_count + 1, sizeof naming);
    disk->pending[disk->pending_count++] = naming;
}

bool disk_stands_in(const char *path, const char *folder) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    return strlen(folder) == length && !strncmp(path, folder, length);
}

static void sync_folder(tt_disk *disk, const char *folder) {
    size_t kept = 0;
    for (size_t i = 0; i < disk->pending_count; i++) {
        const tt_naming *naming = &disk->pending[i];
        if (disk_stands_in(naming->type == LOG_RENAME ? naming->to : naming->name.path, folder))
            disk_name(&disk->safe, naming);
        else
            disk->pending[kept++] = *naming;
    }
    disk->pending_count = kept;
}

/* ---- records ---- */

static void make_file(tt_disk *disk, const log_record *record, const char *bytes) {
    disk->files = disk_grown(disk->files, disk->file_count + 1, sizeof *disk->files);
    disk->files[disk->file_count++] = (tt_file){.object = record->object};
    add_naming(disk, record, bytes);
}

void disk_apply(tt_disk *disk, const log_record *record, const char *bytes) {
    char path[MOST_PATH] = "";
    switch ((log_type)record->type) {
    case LOG_CREATE: make_file(disk, record, bytes); break;
    case LOG_FOLDER:
    case LOG_RENAME:
    case LOG_UNLINK: add_naming(disk, record, bytes); break;
    case LOG_TRUNCATE:
        add_change(disk_file(disk, record->object), (tt_change){.resize = true, .at = record->offset});
        break;
    case LOG_SYNC: sync_file(disk_file(disk, record->object)); break;
    case LOG_SYNC_FOLDER:
        memcpy(path, bytes, record->length < MOST_PATH ? record->length : 0);
        sync_folder(disk, path);
        break;
    case LOG_WRITE:
        /* What is safe at once is also written over all that is not, if that is left. */
        if (record->synced)
            disk_put(disk_file(disk, record->object), record->offset, bytes, record->length);
        add_change(
            disk_file(disk, record->object),
            (tt_change){.synced = record->synced, .at = record->offset, .length = record->length, .bytes = bytes});
        break;
    case LOG_UNKNOWN: wrong("the log has what cannot be replayed: %.*s", (int)record->length, bytes);
    case LOG_NOTE: break;
    }
}
