/* torture_limits.c - disks that are full or read-only, clocks that go backwards, ids and URLs that are too long. */
#include "torture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { T = 1700000000, BALLAST = 2 << 20, NOT_PERMITTED = 77 };

/* ---- small things ---- */

static doppel_status add(doppel_engine *engine, tt_plant plant, bool *duplicate, doppel_error *error) {
    plant_room room;
    doppel_item item = plant_item(&plant, &room);
    doppel_verdict verdict = {0};
    doppel_status status = doppel_engine_add(engine, &item, &verdict, error);
    *duplicate = verdict.is_duplicate;
    doppel_verdict_free(&verdict);
    return status;
}

static void must_add(doppel_engine *engine, tt_plant plant) {
    if (plant_add(engine, &plant))
        wrong("plant %" PRIu64 " is called a copy", plant.id);
}

static bool knows(doppel_engine *engine, uint64_t number) {
    plant_room room;
    doppel_item item = plant_item(&(tt_plant){.id = number, .text = number}, &room);
    doppel_verdict verdict = {0};
    doppel_error error;
    item.document.id.data = item.document.url.data = item.document.title.data = NULL;
    item.document.id.length = item.document.url.length = item.document.title.length = 0;
    must(doppel_engine_check(engine, &item, &verdict, &error), &error, "check");
    bool known = verdict.is_duplicate;
    doppel_verdict_free(&verdict);
    return known;
}

/* ---- a disk of its own ---- */

/* As much as there is room for, `most` bytes at most. */
static void put_ballast(const char *path, size_t most) {
    static const char zeros[4096];
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0)
        wrong("%s: %s", path, strerror(errno));
    for (size_t done = 0; done < most; done += sizeof zeros)
        if (write(file, zeros, sizeof zeros) != sizeof zeros)
            break;
    close(file);
}

/* Adds until the disk is full; gives how many were acknowledged. */
static uint64_t fill(doppel_engine *engine) {
    bool duplicate;
    doppel_error error = {0};
    for (uint64_t i = 1; i < 1000000; i++) {
        doppel_status status = add(engine, (tt_plant){.id = i, .text = i, .at = T}, &duplicate, &error);
        if (status == DOPPEL_OK)
            continue;
        if (status != DOPPEL_ERROR_IO || (!strstr(error.message, "space") && !strstr(error.message, "full")))
            wrong("a full disk gives \"%s\": %s", doppel_status_name(status), error.message);
        if (knows(engine, i))
            wrong("plant %" PRIu64 ", which was refused, is known", i);
        return i - 1;
    }
    wrong("the disk is not filled");
}

static void must_know(doppel_engine *engine, uint64_t count, const char *when) {
    for (uint64_t i = 1; i <= count; i++)
        if (!knows(engine, i))
            wrong("plant %" PRIu64 " of %" PRIu64 " is not known %s", i, count, when);
}

static uint64_t full_disk(const char *disk, const char *folder) {
    tt_setup setup = {.folder = folder, .by_similarity = true, .now = T};
    const char *ballast = beside(disk, "ballast");
    put_ballast(ballast, BALLAST);
    doppel_engine *engine = setup_open(&setup);
    uint64_t count = fill(engine);
    must_know(engine, count, "while the disk is full");
    unlink(ballast);
    must_add(engine, (tt_plant){.id = count + 1, .text = count + 1, .at = T});
    count++;
    doppel_engine_close(engine);
    /* Full once more, it can still be read. */
    put_ballast(ballast, BALLAST);
    tt_setup reading = setup;
    reading.read_only = true;
    engine = setup_open(&reading);
    must_know(engine, count, "when it is opened again");
    doppel_engine_close(engine);
    unlink(ballast);
    engine = setup_open(&setup);
    must_know(engine, count, "when there is space again");
    doppel_engine_close(engine);
    folder_verify(folder);
    return count;
}

/* Removes the files of a folder whose names end so. */
static void remove_ending(const char *folder, const char *ending) {
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));) {
        size_t length = strlen(entry->d_name), size = strlen(ending);
        if (length > size && !strcmp(entry->d_name + length - size, ending))
            unlinkat(dirfd(open), entry->d_name, 0);
    }
    if (open)
        closedir(open);
}

static void must_be_full(const tt_setup *setup, const char *what) {
    doppel_engine *engine = NULL;
    doppel_error error = {0};
    doppel_status status = setup_try(setup, &engine, &error);
    if (status != DOPPEL_ERROR_IO || !strstr(error.message, "space"))
        wrong("%s on a full disk gives \"%s\": %s", what, doppel_status_name(status), error.message);
}

/* LMDB writes to its lock through a map, which must not end the process. */
static void no_room_for_locks(const char *disk, const char *folder, uint64_t count) {
    tt_setup setup = {.folder = folder, .by_similarity = true, .now = T}, reading = setup, other = setup;
    const char *ballast = beside(disk, "ballast"), *new = beside(disk, "new");
    doppel_error error = {0};
    reading.read_only = true;
    other.folder = new;
    doppel_engine *engine = setup_open(&setup);
    put_ballast(ballast, SIZE_MAX);
    doppel_status status = doppel_engine_compact(engine, &error);
    if (status != DOPPEL_ERROR_IO || !strstr(error.message, "space"))
        wrong("compact on a full disk gives \"%s\": %s", doppel_status_name(status), error.message);
    must_know(engine, count, "after a compaction that failed");
    doppel_engine_close(engine);
    remove_ending(folder, "-lock");
    put_ballast(ballast, SIZE_MAX);
    must_be_full(&reading, "reading");
    must_be_full(&setup, "writing");
    must_be_full(&other, "a new folder");
    unlink(ballast);
    tree_remove(new);
    engine = setup_open(&setup);
    must_know(engine, count, "when there is room for locks again");
    doppel_engine_close(engine);
    folder_verify(folder);
    printf("no room for a lock is an error, and nothing more\n");
}

static void read_only_disk(const char *disk, const char *folder, uint64_t count) {
    tt_setup setup = {.folder = folder, .by_similarity = true, .now = T};
    doppel_engine *engine = NULL;
    doppel_error error = {0};
    bool duplicate;
    if (mount("", disk, "", MS_REMOUNT | MS_RDONLY, ""))
        wrong("%s cannot be made read-only: %s", disk, strerror(errno));
    doppel_status status = setup_try(&setup, &engine, &error);
    if ((status != DOPPEL_ERROR_IO && status != DOPPEL_ERROR_STORE) || !error.message[0])
        wrong("a read-only folder gives \"%s\": %s", doppel_status_name(status), error.message);
    printf("a read-only folder: %s\n", error.message);
    setup.read_only = true;
    engine = setup_open(&setup);
    must_know(engine, count, "when the disk is read-only");
    status = add(engine, (tt_plant){.id = 999999, .text = 999999, .at = T}, &duplicate, &error);
    if (status == DOPPEL_OK || !error.message[0])
        wrong("an engine that reads only takes a document");
    doppel_engine_close(engine);
    folder_verify(folder);
}

/* In a child, so that its mounts end with it. */
static void small_disk(const char *scratch) {
    int child = fork();
    if (!child) {
        char folder[300];
        if ((unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS)) ||
            mount("", "/", "", MS_REC | MS_PRIVATE, "") || mount("tmpfs", scratch, "tmpfs", 0, "size=6m"))
            _exit(NOT_PERMITTED);
        snprintf(folder, sizeof folder, "%s/index", scratch);
        uint64_t count = full_disk(scratch, folder);
        printf("a disk of 6 MB is full after %" PRIu64 " documents; none is lost, and it goes on\n", count);
        no_room_for_locks(scratch, folder, count);
        read_only_disk(scratch, folder, count);
        fflush(stdout);
        _exit(0);
    }
    int end = child_end(child);
    if (end == NOT_PERMITTED)
        printf("SKIPPED: full and read-only disks, because this user may not mount a tmpfs here\n");
    else if (end)
        wrong("the test of a full disk ended with %d", end);
}

/* ---- a clock that goes backwards ---- */

static void clock_backwards(const char *folder) {
    tt_setup setup = {.folder = folder, .by_similarity = true, .now = T};
    doppel_engine *engine = setup_open(&setup);
    must_add(engine, (tt_plant){.id = 1, .text = 1, .ttl = 500, .at = T});
    must_add(engine, (tt_plant){.id = 2, .text = 2, .at = T});
    if (!knows(engine, 1))
        wrong("a document ends before its time");
    doppel_engine_close(engine);
    setup.now = T + 600;
    engine = setup_open(&setup);
    must_add(engine, (tt_plant){.id = 3, .text = 3, .at = T + 600});
    if (knows(engine, 1))
        wrong("a document outlives its time");
    doppel_engine_close(engine);
    /* Back by a day. */
    setup.now = T - 86400;
    engine = setup_open(&setup);
    if (knows(engine, 1) || !knows(engine, 2) || !knows(engine, 3))
        wrong("a clock that goes backwards changes what is known");
    must_add(engine, (tt_plant){.id = 4, .text = 4, .ttl = 10, .at = T});
    if (!knows(engine, 4))
        wrong("with a clock that went backwards a new document is not known");
    doppel_stored_list list = {0};
    doppel_error error;
    must(doppel_engine_get(engine, doppel_slice_of("plant-4"), &list, &error), &error, "get");
    if (list.count != 1 || list.stored[0].added < T + 600)
        wrong("a clock that went backwards is believed");
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
    folder_verify(folder);
    printf("a clock that goes backwards is not followed\n");
}

/* ---- ids and URLs that are too long ---- */

static void try_long(doppel_engine *engine, size_t id_length, size_t url_length, doppel_status expected) {
    static char letters[1 << 20];
    plant_room room;
    doppel_verdict verdict = {0};
    doppel_error error = {0};
    uint64_t number = id_length + 3 * url_length;
    doppel_item item = plant_item(&(tt_plant){.id = number, .text = number, .at = T}, &room);
    memset(letters, 'a', sizeof letters);
    if (id_length)
        item.document.id.data = letters, item.document.id.length = id_length;
    if (url_length) {
        memcpy(letters, "https://a.example/", 18);
        item.document.url.data = letters, item.document.url.length = url_length;
    }
    for (int adds = 0; adds < 2; adds++) {
        doppel_status status = adds ? doppel_engine_add(engine, &item, &verdict, &error)
                                    : doppel_engine_check(engine, &item, &verdict, &error);
        if (status != expected || (status && !strstr(error.message, id_length ? "id" : "URL")))
            wrong("an %s of %zu bytes gives \"%s\": %s", id_length ? "id" : "URL", id_length + url_length,
                  doppel_status_name(status), error.message);
    }
    doppel_verdict_free(&verdict);
}

static void long_names(const char *folder) {
    tt_setup setup = {.folder = folder, .by_similarity = true, .now = T};
    doppel_engine *engine = setup_open(&setup);
    static const size_t lengths[] = {512, 5000, 65536, 65537, 1 << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        doppel_status expected = lengths[i] > 65536 ? DOPPEL_ERROR_INPUT : DOPPEL_OK;
        try_long(engine, lengths[i], 0, expected);
        try_long(engine, 0, lengths[i], expected);
    }
    doppel_engine_close(engine);
    folder_verify(folder);
    engine = setup_open(&setup);
    doppel_engine_stats stats;
    doppel_engine_get_stats(engine, &stats);
    if (stats.documents != 6)
        wrong("%" PRIu64 " documents with long names are there, not 6", stats.documents);
    doppel_engine_close(engine);
    printf("ids and URLs of 64 KiB are taken, of more refused\n");
}

int main(void) {
    char scratch[256], disk[280];
    scratch_create(scratch, sizeof scratch, false);
    clock_backwards(beside(scratch, "clock"));
    long_names(beside(scratch, "names"));
    snprintf(disk, sizeof disk, "%s/disk", scratch);
    fflush(stdout);
    if (mkdir(disk, 0777))
        wrong("%s: %s", disk, strerror(errno));
    small_disk(disk);
    tree_remove(scratch);
    return 0;
}
