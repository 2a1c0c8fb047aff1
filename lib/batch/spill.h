/* spill.h - what does not fit into memory: files that are only appended to, and records sorted in any amount of
 * memory. */
#ifndef DP_BATCH_SPILL_H
#define DP_BATCH_SPILL_H

#include "base/base.h"

/* ---- files that are only appended to: open, add ..., flush, read ..., close ---- */

typedef struct dp_append_file {
    dp_scratch scratch; /* size: what was written */
    dp_buffer pending;  /* added, but not written yet */
} dp_append_file;

/* A nameless file in `tmp` or, with `folder`, the file `name` there. */
doppel_status dp_append_file_open(dp_append_file *file, const char *folder, const char *name, const char *tmp,
                                  doppel_error *error);
void dp_append_file_close(dp_append_file *file);
static inline uint64_t dp_append_file_size(const dp_append_file *file) {
    return file->scratch.size + file->pending.size;
}
doppel_status dp_append_file_add(dp_append_file *file, const void *bytes, size_t length, doppel_error *error);
/* Writes what is pending; then any number of threads may read. */
doppel_status dp_append_file_flush(dp_append_file *file, doppel_error *error);
doppel_status dp_append_file_read(const dp_append_file *file, uint64_t at, void *bytes, size_t length,
                                  doppel_error *error);

/* ---- records sorted in any amount of memory: init, add ..., finish, next ..., free ----
 *
 * A record is a few 64-bit numbers, of which the first `keys` count, in order; equal ones come out in the order in
 * which they came in. Beyond `memory`, sorted runs go to a nameless file of `tmp`, and are merged while they are read.
 */

typedef struct dp_sorter_options {
    size_t words; /* numbers of a record */
    size_t keys;  /* how many of them, from the first on, are compared */
    bool unique;  /* equal records come out once; only for records of one number */
    uint64_t memory;
    uint64_t merge_memory;    /* for reading runs, once all is there; 0: `memory` */
    const char *tmp;          /* NULL: TMPDIR, else /tmp */
    const volatile int *stop; /* may be NULL */
} dp_sorter_options;

/* A record of the buffer, by its number, and the word that is being sorted by. */
typedef struct dp_sorter_item {
    uint64_t key, number;
} dp_sorter_item;

/* A sorted run in the file, and the part of it that is being read. */
typedef struct dp_sorter_run {
    uint64_t at, left; /* in records */
    uint64_t *part;
    size_t part_count, part_next;
} dp_sorter_run;

typedef struct dp_sorter {
    dp_sorter_options options;
    uint64_t *records;
    size_t count, room, share;       /* share: records that are buffered before they are written */
    dp_sorter_item *order, *scratch; /* order NULL: as the records stand */
    size_t next;                     /* record to be given, where all are in memory */
    dp_scratch file;
    uint64_t written; /* records in the file */
    dp_sorter_run *runs;
    size_t run_count, run_room, fan_in;
    size_t *heap; /* numbers of the runs that are being read, that with the least record on top */
    size_t heap_count;
    bool taken;    /* the record on top has been given, */
    uint64_t last; /* and this was its first number */
} dp_sorter;

/* Cannot fail: memory is taken when it is needed. */
void dp_sorter_init(dp_sorter *sorter, const dp_sorter_options *options);
void dp_sorter_free(dp_sorter *sorter);

/* Errors, here and below: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_IO, DOPPEL_ERROR_INTERRUPTED. */
doppel_status dp_sorter_add(dp_sorter *sorter, const uint64_t *record, doppel_error *error);
/* Writes what is buffered as a run now, and gives its memory back: for several sorters that share memory. */
doppel_status dp_sorter_spill(dp_sorter *sorter, doppel_error *error);
doppel_status dp_sorter_finish(dp_sorter *sorter, doppel_error *error);

/* The next record, valid until the next call; NULL at the end. */
doppel_status dp_sorter_next(dp_sorter *sorter, const uint64_t **record, doppel_error *error);

/* A record of the buffer once it is sorted. */
static inline const uint64_t *dp_sorter_record(const dp_sorter *sorter, size_t i) {
    return sorter->records + (sorter->order ? sorter->order[i].number : i) * sorter->options.words;
}

/* Bytes of memory that a record takes while it is buffered and sorted. */
static inline uint64_t dp_sorter_record_bytes(size_t words) {
    return words == 1 ? 16 : words * 8 + 2 * sizeof(dp_sorter_item);
}

/* Bytes that were written to the file. */
static inline uint64_t dp_sorter_spilled(const dp_sorter *sorter) {
    return sorter->written * sorter->options.words * 8;
}

#endif
