/* df.h - the file of document frequencies (docs/FORMAT.md section 7), for df.c and its tests. */
#ifndef DP_DF_H
#define DP_DF_H

#include "sketch/sketch.h"

typedef struct dp_df_header {
    char magic[8];
    uint32_t version, recipe_length;
    uint64_t documents, features, checksum;
    char unicode[24]; /* the version the text was normalised with, filled up with zeros */
} dp_df_header;

_Static_assert(sizeof(dp_df_header) == 64, "the header is 64 bytes, without gaps");

/* A table as it lies in the file, mapped. */
struct doppel_df {
    const uint8_t *map;
    size_t size;
    const dp_df_header *header;
    const uint64_t *hashes;
    const uint32_t *counts;
    char *recipe;
    char digest[17], unicode[25];
};

#define DP_DF_MAGIC "DOPPELDF"
#define DP_DF_VERSION 1

/* Lengths are filled up to a multiple of 8. */
static inline uint64_t dp_df_padded(uint64_t length) {
    return (length + 7) / 8 * 8;
}

/* XXH3 of a whole file in memory, taking its checksum field as zero; false when out of memory. */
bool dp_df_checksum(const uint8_t *file, size_t size, uint64_t *checksum);

#endif
