/* file.h - the file of an index (docs/FORMAT.md), as its writer (file_save.c), its reader (file_open.c) and the one who
 * checks its blocks (file.c) share it.
 *
 * A header, a directory, the data. The directory says for every run what it is and where its sections lie, and has the
 * checksum of each block of the data. Every byte of the file is under a checksum: the header's own, that of the
 * directory, which the header holds, or that of a block. */
#ifndef DP_FILE_H
#define DP_FILE_H

#include "index/versions.h"

#define DP_FILE_MAGIC "DOPPELIX"
#define DP_FILE_VERSION 1

/* Sections and the data begin at multiples of a cache line. A block is small enough to be checked within some
 * microseconds, and large enough that its 8 bytes of checksum do not count. */
enum { DP_FILE_ALIGN = 64, DP_FILE_BLOCK = 1 << 16 };

typedef struct dp_file_header {
    char magic[8];
    uint32_t version;
    uint32_t bits, distance;  /* as doppel_index_options has them */
    uint32_t runs;            /* in the directory */
    uint64_t secret;          /* what the order of bits was made from */
    double bytes_per_entry;   /* what runs are planned for */
    char layout[64];          /* forced for all runs; empty: none, zeros behind */
    uint64_t directory_size;  /* bytes, behind the header; a multiple of DP_FILE_ALIGN */
    uint64_t data_size;       /* bytes, behind the directory */
    uint64_t directory_check; /* XXH3 of the directory */
    char reserved[56];        /* zeros */
    uint64_t header_check;    /* XXH3 of the header before it */
} dp_file_header;

_Static_assert(sizeof(dp_file_header) == 3 * DP_FILE_ALIGN, "without gaps");

/* Bytes from `offset` in the data; nothing: 0 and 0. */
typedef struct dp_file_section {
    uint64_t offset, length;
} dp_file_section;

/* The sections of a run: three for each table, then these. */
enum { DP_FILE_TABLE_SECTIONS = 3, DP_FILE_OTHER_SECTIONS = 5 };
enum { DP_FILE_IDS, DP_FILE_LISTS, DP_FILE_SHARED, DP_FILE_EXPIRES, DP_FILE_DEAD };
enum { DP_FILE_MAX_SECTIONS = DP_FILE_TABLE_SECTIONS * DP_MAX_TABLES + DP_FILE_OTHER_SECTIONS };

/* A run in the directory; its sections follow. Behind the last run stand the checksums, one a block. */
typedef struct dp_file_run {
    char layout[64]; /* zeros behind the name */
    uint64_t count, list_count;
    uint64_t lists; /* positions with several owners */
    uint64_t sections;
} dp_file_run;

_Static_assert(sizeof(dp_file_run) == 96, "without gaps");

static inline uint64_t dp_file_align(uint64_t size) {
    return (size + DP_FILE_ALIGN - 1) / DP_FILE_ALIGN * DP_FILE_ALIGN;
}

static inline uint64_t dp_file_blocks(uint64_t data_size) {
    return (data_size + DP_FILE_BLOCK - 1) / DP_FILE_BLOCK;
}

/* A section as it lies in memory; `atomic`: others may write to it meanwhile, it is read number by number. */
typedef struct dp_file_part {
    const void *bytes;
    uint64_t length;
    bool atomic;
} dp_file_part;

/* The sections that a run has, in the order of the file; gives how many. Lengths follow from the run, its layout and
 * which of the three that need not be there are. */
int dp_file_parts(const dp_run *run, dp_file_part parts[DP_FILE_MAX_SECTIONS]);

/* ---- file.c: an open file ---- */

/* Numbers that must ascend, from 0 to `last`: the directory of a table. */
typedef struct dp_file_ascent {
    const uint32_t *numbers;
    uint64_t count, last;
} dp_file_ascent;

typedef struct dp_file {
    dp_backing backing;
    _Atomic uint64_t references;
    char *path;
    const uint8_t *map;
    uint64_t size, data, blocks; /* data: where it begins */
    const uint64_t *checks;      /* one a block */
    _Atomic uint64_t *checked;   /* a bit a block that was found to be right */
    _Atomic uint64_t damaged;    /* the first block that was found to be wrong, counted from 1 */
    dp_file_ascent *ascents;     /* in the order of the file */
    size_t ascent_count, ascent_room;
} dp_file;

/* Maps a file, which then has one reference. */
doppel_status dp_file_map(const char *path, dp_file **file, doppel_error *error);
void dp_file_hold(dp_file *file);
void dp_file_release(dp_file *file);

/* Every block: DOPPEL_OK or DOPPEL_ERROR_STORE. */
doppel_status dp_file_check_all(dp_file *file);

/* The file a run lies in, or NULL. */
dp_file *dp_file_of(const dp_run *run);

/* Gives `status` again with its message: where it is DOPPEL_ERROR_STORE, which block of which file is damaged. */
doppel_status dp_version_explain(const dp_version *version, doppel_status status, doppel_error *error);
doppel_status dp_index_explain(const doppel_index *index, doppel_status status, doppel_error *error);

#endif
