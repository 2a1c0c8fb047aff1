/* df.c - a document-frequency table, mapped from its file: open, get, close.
 *
 * The hashes are well mixed, so that a feature is found by interpolation in two or three steps; a table that was made
 * to prevent that is searched by halves. */
#include "sketch/df.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

bool dp_df_checksum(const uint8_t *file, size_t size, uint64_t *checksum) {
    static const uint8_t zero[8];
    size_t at = offsetof(dp_df_header, checksum);
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return false;
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, file, at);
    XXH3_64bits_update(state, zero, sizeof zero);
    XXH3_64bits_update(state, file + at + 8, size - at - 8);
    *checksum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return true;
}

/* ---- opening ---- */

static doppel_status map_file(const char *path, doppel_df *df, doppel_error *error) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status)) {
        int reason = errno;
        if (file >= 0)
            close(file);
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be opened: %s", strerror(reason));
    }
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size < sizeof(dp_df_header)) {
        close(file);
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                          "is not a document-frequency table: make one with `doppel df`");
    }
    df->size = (size_t)status.st_size;
    void *map = mmap(NULL, df->size, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED)
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be mapped: %s", strerror(errno));
    df->map = map;
    return DOPPEL_OK;
}

/* The size the header speaks of, or 0 when that is more than there can be. */
static uint64_t expected_size(const dp_df_header *header) {
    if (header->features > (UINT64_MAX >> 5))
        return 0;
    return sizeof *header + dp_df_padded(header->recipe_length) + header->features * 8 +
           dp_df_padded(header->features * 4);
}

static doppel_status check_header(doppel_df *df, const char *path, doppel_error *error) {
    const dp_df_header *header = (const void *)df->map;
    if (memcmp(header->magic, DP_DF_MAGIC, sizeof header->magic))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                          "is not a document-frequency table: make one with `doppel df`");
    if (header->version != DP_DF_VERSION)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "has version %" PRIu32 ", this library reads version %d",
                          header->version, DP_DF_VERSION);
    if (expected_size(header) != df->size)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is cut short or too long: %zu bytes, not %" PRIu64,
                          df->size, expected_size(header));
    uint64_t checksum;
    if (!dp_df_checksum(df->map, df->size, &checksum))
        return dp_no_memory(error);
    if (checksum != header->checksum)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "was altered: its checksum is wrong");
    df->header = header;
    df->hashes = (const void *)(df->map + sizeof *header + dp_df_padded(header->recipe_length));
    df->counts = (const void *)(df->hashes + header->features);
    for (uint64_t i = 1; i < header->features; i++)
        if (df->hashes[i - 1] >= df->hashes[i])
            return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is not in order at feature %" PRIu64, i + 1);
    return DOPPEL_OK;
}

doppel_status doppel_df_open(const char *path, doppel_df **out, doppel_error *error) {
    *out = NULL;
    doppel_df *df = calloc(1, sizeof *df);
    if (!df)
        return dp_no_memory(error);
    doppel_status status = map_file(path, df, error);
    if (!status)
        status = check_header(df, path, error);
    if (!status) {
        memcpy(df->unicode, df->header->unicode, sizeof df->header->unicode);
        snprintf(df->digest, sizeof df->digest, "%016" PRIx64, df->header->checksum);
        df->recipe = strndup((const char *)df->map + sizeof *df->header, df->header->recipe_length);
        status = df->recipe ? DOPPEL_OK : dp_no_memory(error);
    }
    if (status) {
        doppel_df_close(df);
        return status;
    }
    *out = df;
    return DOPPEL_OK;
}

void doppel_df_close(doppel_df *df) {
    if (!df)
        return;
    if (df->map)
        munmap((void *)(uintptr_t)df->map, df->size);
    free(df->recipe);
    free(df);
}

/* ---- looking up ---- */

__extension__ typedef unsigned __int128 wide;

/* Steps by interpolation before the search goes on by halves. */
#define GUESSES 8

uint64_t doppel_df_get(const doppel_df *df, uint64_t hash) {
    const uint64_t *hashes = df->hashes;
    uint64_t low = 0, high = df->header->features;
    for (int step = 0; low < high; step++) {
        uint64_t first = hashes[low], last = hashes[high - 1];
        if (hash < first || hash > last)
            return 0;
        uint64_t at = low + (high - low) / 2;
        if (step < GUESSES && last > first)
            at = low + (uint64_t)((wide)(hash - first) * (high - 1 - low) / (last - first));
        if (hashes[at] == hash)
            return df->counts[at];
        if (hashes[at] < hash)
            low = at + 1;
        else
            high = at;
    }
    return 0;
}

int64_t dp_df_weight(const doppel_df *df, uint64_t hash) {
    double ratio = (double)df->header->documents / ((double)doppel_df_get(df, hash) + 1);
    return ratio > 1 ? llrint(log(ratio) * 65536) : 0;
}

double doppel_df_idf(const doppel_df *df, uint64_t hash) {
    return (double)dp_df_weight(df, hash) / 65536;
}

uint64_t doppel_df_documents(const doppel_df *df) {
    return df->header->documents;
}

uint64_t doppel_df_features(const doppel_df *df) {
    return df->header->features;
}

const char *doppel_df_recipe(const doppel_df *df) {
    return df->recipe;
}

const char *dp_df_unicode(const doppel_df *df) {
    return df->unicode;
}

const char *doppel_df_digest(const doppel_df *df) {
    return df->digest;
}
