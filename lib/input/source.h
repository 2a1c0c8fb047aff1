/* source.h - the next unit of work: what is done under the lock, so as little as can be.
 *
 * Small files are only named; the thread that takes the unit opens and reads them. A big file of records is read here,
 * a block a unit; of a big file that is one document only the start is read here. */
#ifndef DP_SOURCE_H
#define DP_SOURCE_H

#include "input/unit.h"
#include "input/walk.h"

typedef struct dp_source {
    const doppel_input_options *options;
    const dp_input_sizes *sizes;
    dp_walk walk;
    dp_walk_file file; /* the next one */
    bool has_file;     /* it was looked at, but not used yet */
    uint64_t files;    /* how many were looked at */
    dp_stream stream;  /* the big file that is open */
    dp_cutter cutter;
    bool reading; /* blocks of `cutter` come next */
    dp_buffer name;
    int threads; /* that may decompress the open file */
} dp_source;

void dp_source_init(dp_source *source, const dp_input_job *job);

/* Fills an empty unit; false at the end, or (unit->status) on failure. */
bool dp_source_next(dp_source *source, dp_unit *unit);

void dp_source_free(dp_source *source);

/* The bytes of all files, or 0 when there is stdin, a pipe or very many files among them. */
uint64_t dp_source_total(const dp_input_job *job);

#endif
