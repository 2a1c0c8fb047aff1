/* fuzz_df.c - any bytes as a document-frequency table. If the first byte is odd the checksum is made right, so that the
 * checks after it are reached. A table that opens answers every question; one that does not says why. */
#include "fuzz.h"

#include "sketch/df.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void write_file(int file, const uint8_t *data, size_t size) {
    CHECK(!ftruncate(file, 0) && pwrite(file, data, size, 0) == (ssize_t)size);
}

static void check_table(const doppel_df *df) {
    uint64_t features = doppel_df_features(df), documents = doppel_df_documents(df), last = 0;
    CHECK(strlen(doppel_df_digest(df)) == 16 && doppel_df_recipe(df));
    for (uint64_t i = 0; i < features; i++) {
        uint64_t hash = df->hashes[i];
        CHECK(!i || hash > last);
        CHECK(doppel_df_get(df, hash) == df->counts[i]);
        if (hash - 1 > last || !i)
            CHECK(!hash || doppel_df_get(df, hash - 1) == 0);
        double idf = doppel_df_idf(df, hash);
        CHECK(idf >= 0 && idf <= log((double)documents + 1) + 1);
        last = hash;
    }
    CHECK(doppel_df_get(df, last + 1) == 0 || last == UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int file = -1;
    static char path[40];
    if (file < 0) {
        file = memfd_create("table", 0);
        CHECK(file >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (!size)
        return 0;
    uint8_t *copy = malloc(size);
    CHECK(copy);
    memcpy(copy, data + 1, size - 1);
    if (data[0] & 1 && size > sizeof(dp_df_header)) {
        uint64_t checksum;
        CHECK(dp_df_checksum(copy, size - 1, &checksum));
        memcpy(copy + offsetof(dp_df_header, checksum), &checksum, sizeof checksum);
    }
    write_file(file, copy, size - 1);
    doppel_df *df;
    doppel_error error;
    doppel_status status = doppel_df_open(path, &df, &error);
    if (status)
        CHECK(status == DOPPEL_ERROR_STORE && error.message[0] && !df);
    else
        check_table(df);
    doppel_df_close(df);
    free(copy);
    return 0;
}
