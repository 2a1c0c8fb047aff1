/* disk_left.c - what is left on a disk after a power loss. */
#include "disk_parts.h"

#include <sys/stat.h>

static void apply_some(tt_file *to, const tt_change *change, uint64_t *state) {
    if (change->resize) {
        if (below(state, 2))
            disk_resize(to, change->at);
        return;
    }
    if (change->synced) {
        disk_change(to, change);
        return;
    }
    for (uint64_t done = 0, length; done < change->length; done += length) {
        length = SECTOR - (change->at + done) % SECTOR;
        if (length > change->length - done)
            length = change->length - done;
        if (below(state, 2))
            disk_put(to, change->at + done, change->bytes + done, length);
    }
}

static void write_file(const tt_disk *disk, const tt_name *name, const char *path, disk_left left, uint64_t *state) {
    const tt_file *from = disk_file(disk, name->object);
    tt_file made = {0};
    disk_put(&made, 0, from->bytes, from->size);
    /* A third of the files lose all, a third nothing. */
    uint64_t choice = left == LEFT_SOME ? below(state, 3) : left == LEFT_BYTES || left == LEFT_ALL ? 2 : 0;
    for (size_t i = 0; i < from->count && choice; i++)
        if (choice == 2)
            disk_change(&made, &from->pending[i]);
        else
            apply_some(&made, &from->pending[i], state);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(made.bytes ? made.bytes : "", 1, made.size, out) != made.size || fclose(out))
        wrong("%s cannot be written", path);
    free(made.bytes);
}

/* The names that are left. */
static tt_names names_left(const tt_disk *disk, disk_left left, uint64_t *state) {
    tt_names made = {disk_grown(NULL, disk->safe.count + 1, sizeof(tt_name)), disk->safe.count};
    size_t count = left == LEFT_NAMES || left == LEFT_ALL ? disk->pending_count : 0;
    if (left == LEFT_SOME)
        count = below(state, disk->pending_count + 1);
    if (made.count)
        memcpy(made.name, disk->safe.name, made.count * sizeof(tt_name));
    for (size_t i = 0; i < count; i++)
        disk_name(&made, &disk->pending[i]);
    return made;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const tt_name *)a)->path, ((const tt_name *)b)->path);
}

/* Whether the folder that a name stands in is there (what is below a folder that is gone, is gone). */
static bool has_folder(const tt_names *names, const char *path) {
    if (!strchr(path, '/'))
        return true;
    for (size_t i = 0; i < names->count; i++)
        if (!names->name[i].object && disk_stands_in(path, names->name[i].path))
            return true;
    return false;
}

void disk_write(const tt_disk *disk, const char *folder, disk_left left, uint64_t seed) {
    tt_names names = names_left(disk, left, &seed);
    qsort(names.name, names.count, sizeof(tt_name), by_path);
    for (size_t i = 0; i < names.count; i++) {
        const char *path = beside(folder, names.name[i].path);
        if (!has_folder(&names, names.name[i].path))
            continue;
        if (names.name[i].object)
            write_file(disk, &names.name[i], path, left, &seed);
        else if (mkdir(path, 0777))
            wrong("%s cannot be made", path);
    }
    free(names.name);
}

/* ---- the whole of it ---- */

static void compare_file(const tt_disk *disk, const tt_name *name, const char *folder) {
    tt_file all = {0};
    const tt_file *from = disk_file(disk, name->object);
    const char *path = beside(folder, name->path);
    size_t length = strlen(path);
    FILE *in = fopen(path, "rb");
    if (length > 4 && !strcmp(path + length - 4, "lock")) {
        if (in)
            fclose(in);
        return;
    }
    disk_put(&all, 0, from->bytes, from->size);
    for (size_t i = 0; i < from->count; i++)
        disk_change(&all, &from->pending[i]);
    char *is = disk_grown(NULL, all.size + 2, 1);
    if (!in || fread(is, 1, all.size + 2, in) != all.size || memcmp(is, all.bytes, all.size))
        wrong("%s is not what the log makes of it: it was written past the shim", path);
    fclose(in);
    free(is);
    free(all.bytes);
}

void disk_compare(const tt_disk *disk, const char *folder) {
    uint64_t state = 0;
    tt_names names = names_left(disk, LEFT_ALL, &state);
    for (size_t i = 0; i < names.count; i++)
        if (names.name[i].object)
            compare_file(disk, &names.name[i], folder);
    free(names.name);
}
