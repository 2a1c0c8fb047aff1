/* files.h - what tests of files share: a folder of its own for each test, and whole files read, written and compared.
 */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

#include "support.h"

#include "base/base.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---- a folder of its own for each test ---- */

static inline int setup(void **state) {
    char *folder = strdup("/tmp/doppel-test.XXXXXX");
    *state = folder;
    return mkdtemp(folder) ? 0 : -1;
}

/* How many entries the folder has; with `remove_them` they go. */
static inline size_t entries(const char *folder, bool remove_them) {
    DIR *open = opendir(folder);
    size_t count = 0;
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open));) {
        char path[600];
        if (entry->d_name[0] == '.')
            continue;
        count++;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (remove_them)
            assert_int_equal(remove(path), 0);
    }
    closedir(open);
    return count;
}

static inline int teardown(void **state) {
    entries(*state, true);
    int failed = rmdir(*state);
    free(*state);
    return failed;
}

static inline const char *in(void **state, const char *name) {
    static char paths[4][200];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", (const char *)*state, name);
    return path;
}

/* ---- whole files ---- */

/* The bytes of a file. */
static inline dp_buffer slurp(const char *path) {
    dp_buffer bytes = {0};
    char block[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t got; (got = fread(block, 1, sizeof block, file));)
        assert_true(dp_buffer_add(&bytes, block, got));
    fclose(file);
    return bytes;
}

/* A new file: some file systems write one that is emptied and filled again to the disk at once. */
static inline void spit(const char *path, const void *bytes, size_t length) {
    unlink(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static inline void same_files(const char *a, const char *b) {
    dp_buffer x = slurp(a), y = slurp(b);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    dp_buffer_free(&x);
    dp_buffer_free(&y);
}

/* The most a file may have from here on: a disk that is full. */
static inline void limit_files(rlim_t most) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

#endif
