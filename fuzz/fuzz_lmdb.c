/* fuzz_lmdb.c - any bytes as a file of LMDB: it is checked without being mapped, and what is wrong is reported. Pages
 * have 256 bytes, so that a small input reaches the tree of free pages. */
#include "fuzz.h"

#include "store/lmdb.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int file = -1;
    static char path[40];
    if (file < 0) {
        file = memfd_create("documents", 0);
        CHECK(file >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    CHECK(!ftruncate(file, 0) && pwrite(file, data, size, 0) == (ssize_t)size);
    doppel_error error = {.code = DOPPEL_OK};
    doppel_status status = dp_file_check(path, &error);
    CHECK(status == DOPPEL_OK || (status == DOPPEL_ERROR_STORE && error.message[0]));
    return 0;
}
