/* cut.h - a stream cut into blocks of whole records.
 *
 * A block ends behind the last record that fits, what is behind it opens the next block. A record longer than the limit
 * is passed over without being held; a block says so, and ends there. Where a record ends is the format's to say. */
#ifndef DP_CUT_H
#define DP_CUT_H

#include "input/stream.h"

typedef struct dp_block {
    char *data; /* followed by DP_JSON_PADDING readable bytes */
    size_t size, capacity;
    uint64_t first_line; /* the number of its first line, or record */
    uint64_t long_line;  /* a record behind the block that is too long; 0: none */
    uint64_t cut_line;   /* a record behind the block that lacks its end because the stream failed; 0: none */
    uint64_t raw_bytes;  /* read from the file for this block */
    bool first, last;    /* of its file */
} dp_block;

/* What a format knows of the record at hand. All zero where one starts, but for `file`. */
typedef struct dp_mark {
    size_t seen;    /* bytes that were looked at: the next look starts there */
    uint64_t state; /* anything; positions only relative to `seen` */
    uint64_t file;  /* what it knows of the file: zero at its start, then as the format sets it */
} dp_mark;

/* Gives how many bytes the record at `data` has, its line end and all else that belongs to it included, if its end is
 * surely within the `size` bytes that are there; else 0, and is asked again when there are more. In between, those
 * before mark->seen may be dropped, if the record is too long: `data` is then what was behind them, and mark->seen 0.
 */
typedef size_t (*dp_record_end)(dp_mark *mark, const char *data, size_t size);

struct dp_format;

typedef struct dp_cutter {
    const struct dp_format *format;
    dp_stream *stream;
    dp_buffer rest;   /* read, but not given yet */
    dp_buffer header; /* the first record, where the format has that */
    dp_mark mark;     /* of the record at hand */
    uint64_t line;    /* the number of the line or record that comes next */
    uint64_t raw_bytes;
    size_t target;     /* bytes of a block, unless one record is longer */
    size_t max_record; /* bytes of a record */
    bool begun, ended;
} dp_cutter;

/* Makes room for `need` bytes and the padding; false when there is no memory. */
bool dp_block_reserve(dp_block *block, size_t need);

/* Empties a block; gives the memory back if it is much more than `target`. */
void dp_block_reset(dp_block *block, size_t target);
void dp_block_free(dp_block *block);

/* Begins a stream of which `cutter->rest` was already read. */
void dp_cutter_begin(dp_cutter *cutter, const struct dp_format *format, dp_stream *stream);
void dp_cutter_free(dp_cutter *cutter);

/* Fills an empty block. False at the end of the stream (`ended`), or when there is no memory. The last block may have
 * no records, only something to report. */
bool dp_cutter_next(dp_cutter *cutter, dp_block *block);

#endif
