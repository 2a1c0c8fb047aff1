/* format.h - the table of formats: how a file of each is told, cut into units of work, and read.
 *
 * To add a format: a file NAME.c that defines `const dp_format dp_format_NAME`, a line for it below and in the list in
 * format.c, and a test. Compression is no concern of a format: it sees the bytes, and the name without .gz or .zst. */
#ifndef DP_FORMAT_H
#define DP_FORMAT_H

#include "input/cut.h"

struct dp_reader;
struct dp_unit;

typedef struct dp_format {
    const char *record; /* what messages call a record of it, e.g. "row"; not for files that are one document */

    /* Endings of names that tell it, each with its dot, NULL at the end; or NULL. Names count before content. */
    const char *const *endings;

    /* Whether a file that begins so has it; or NULL. At most the first kilobytes are there, fewer when that is all the
     * file has or when a pipe has given no more yet: then a format is asked again with more. A byte-order mark of UTF-8
     * is taken off before. */
    bool (*tells)(const char *head, size_t length);

    /* On the reading side, one thread at a time: finds the end of a record, so that a big file is cut into blocks of
     * whole records; see dp_record_end in cut.h. NULL: the file is one document. */
    dp_record_end end;
    bool by_lines; /* a record may have several lines, and its number is that of its first line; else records count */
    bool headed;   /* the first record says how to read the others: it goes to unit->header, with each block */

    /* On any of the threads: gives the documents of unit->block (dp_reader_give), whole records of the file or the
     * whole file, and leaves out bad ones (dp_reader_bad_record). Ends early when dp_reader_stopped. The first block of
     * a file has `first` set, and may be empty; the last record of the last block may lack its end. Records are up to a
     * few bytes longer than options->max_record: check it. What stands in block->long_line and block->cut_line has been
     * seen to. Memory of its own it takes from reader->spare, or as a field of dp_reader. */
    void (*read)(struct dp_reader *reader, struct dp_unit *unit, const char *file);
} dp_format;

extern const dp_format dp_format_jsonl, dp_format_html, dp_format_plain, dp_format_warc, dp_format_arc, dp_format_csv,
    dp_format_tsv, dp_format_mbox;

/* Whether a page begins so: what dp_format_html goes by. */
bool dp_html_tells(const char *head, size_t length);

/* The format of a file, by its name or else by how it begins; NULL: it cannot be told from so little. `ended`: there is
 * no more of it; then it is plain at least. */
const dp_format *dp_format_tell(const char *path, const dp_buffer *head, bool ended);

/* Reads the start of a file into an empty buffer, as much as it takes to tell its format. NULL: no memory. */
const dp_format *dp_format_read(dp_stream *stream, const char *path, dp_buffer *head);

#endif
