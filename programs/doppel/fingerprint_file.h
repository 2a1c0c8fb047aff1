/* fingerprint_file.h - files of fingerprints, as a join takes them.
 *
 * raw: little-endian numbers of 8 bytes, or 16 for 128 bits. hex: one per line, up to 32 digits, and after a tab a
 * name: what `doppel fingerprint` prints. JSONL: records with the digits in "fingerprint" (or --text-key). Raw files
 * and lines are read as the join asks for them, and not kept; JSONL is read at once, and kept in memory. */
#ifndef FINGERPRINT_FILE_H
#define FINGERPRINT_FILE_H

#include "common/args.h"
#include "doppel.h"
#include "shared/id_list.h"

typedef enum file_format { FORMAT_UNKNOWN, FORMAT_RAW, FORMAT_HEX, FORMAT_JSONL } file_format;

typedef struct fingerprint_file {
    const cli_args *args;
    const char *path; /* "-": stdin */
    file_format format;
    int bits;             /* 0: taken from the file */
    id_list *names;       /* gets the names, or positions where there are none; NULL: not wanted */
    doppel_source source; /* for the join */

    int file;    /* -1: not open */
    char *bytes; /* what was read; unused bytes are from `from` to `filled` */
    size_t room, from, filled;
    bool ended;
    uint64_t line;  /* lines used so far */
    uint64_t count; /* fingerprints given so far */

    uint64_t *values; /* JSONL */
    size_t value_words, values_room;
} fingerprint_file;

/* Opens `path`, with the fields `args`, `bits` and `names` set and the others 0; then `bits` is known and `source` can
 * be joined. Prints a message and returns the exit code when there is something wrong. Close it in any case. */
int fingerprints_open(fingerprint_file *f, const char *path);
void fingerprints_close(fingerprint_file *f);

#endif
