/* unit.h - a unit of work: what one thread takes at a time, and what came of it, kept until its turn. */
#ifndef DP_UNIT_H
#define DP_UNIT_H

#include "input/format.h"
#include "input/input.h"
#include "input/judge.h"

struct doppel_output {
    dp_buffer bytes;
};

typedef enum dp_unit_kind {
    DP_UNIT_FILES, /* whole small files, still to be opened */
    DP_UNIT_BLOCK, /* a block of records of a big one */
    DP_UNIT_WHOLE  /* the start of a big file that is one document; `stream` has the rest */
} dp_unit_kind;

typedef struct dp_unit {
    dp_unit_kind kind;
    dp_buffer names; /* of its files, each NUL-ended; one only unless kind is FILES */
    size_t files;
    const dp_format *format; /* of the block, or of the file at hand */
    dp_buffer header;        /* of the file, where the format has one */
    dp_block block;
    dp_stream stream;
    char failure[160]; /* BLOCK: why the stream ended too early; empty: it did not */

    doppel_output output;
    doppel_error *reports; /* for `bad` */
    size_t report_count, report_capacity;
    doppel_input_counts counts;
    dp_first first;    /* for the judge */
    dp_tally *tallies; /* of its files, the last being that at hand */
    size_t tally_count, tally_room;
    uint64_t file_number; /* of its first file */
    uint64_t raw_bytes;
    doppel_status status; /* not DOPPEL_OK: the run ends here */
    doppel_error error;

    uint64_t sequence; /* its place in the input */
    bool done;         /* waits to be emitted; by the lock of the run, not by its thread */
} dp_unit;

/* Empties a unit for its next use; memory is kept. */
void dp_unit_reset(dp_unit *unit, size_t block_size);
void dp_unit_free(dp_unit *unit);

/* Adds a file's name; false when there is no memory. */
bool dp_unit_add_file(dp_unit *unit, const char *path);

/* Begins to count for a file; false when there is no memory, and then the unit has failed. */
bool dp_unit_begin_file(dp_unit *unit, uint64_t number);
/* The counts of the file at hand. */
static inline dp_tally *dp_unit_tally(dp_unit *unit) {
    return &unit->tallies[unit->tally_count - 1];
}

/* Copies the header of its file; false when there is no memory. */
bool dp_unit_set_header(dp_unit *unit, const dp_buffer *header);

/* Notes something for `bad`: code DOPPEL_OK is a repair. */
void dp_unit_report(dp_unit *unit, doppel_status code, const char *file, uint64_t line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Ends the run at this unit. */
void dp_unit_fail(dp_unit *unit, doppel_status code, const char *file, uint64_t line, const char *message);

#endif
