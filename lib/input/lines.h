/* lines.h - a stream cut into blocks of whole lines.
 *
 * A block ends at the last line end that fits, what is behind it opens the next block. A line longer than the limit is
 * passed over without being held; a block says so, and ends there. */
#ifndef DP_LINES_H
#define DP_LINES_H

#include "input/stream.h"

typedef struct dp_block {
    char *data; /* followed by DP_JSON_PADDING readable bytes */
    size_t size, capacity;
    uint64_t first_line; /* the number of its first line */
    uint64_t long_line;  /* a line behind the block that is too long; 0: none */
    uint64_t cut_line;   /* a line behind the block that lacks its end because the stream failed; 0: none */
    uint64_t raw_bytes;  /* read from the file for this block */
} dp_block;

typedef struct dp_lines {
    dp_stream *stream;
    dp_buffer rest; /* read, but not given yet */
    uint64_t line;  /* the number of the line that comes next */
    uint64_t raw_bytes;
    size_t target;   /* bytes of a block, unless one line is longer */
    size_t max_line; /* bytes of a line */
    bool ended;
} dp_lines;

/* Makes room for `need` bytes and the padding; false when there is no memory. */
bool dp_block_reserve(dp_block *block, size_t need);

/* Empties a block; gives the memory back if it is much more than `target`. */
void dp_block_reset(dp_block *block, size_t target);
void dp_block_free(dp_block *block);

/* Begins a stream of which `lines->rest` was already read. */
void dp_lines_begin(dp_lines *lines, dp_stream *stream);

/* Fills an empty block. False at the end of the stream (`ended`), or when there is no memory. The last block may have
 * no lines, only something to report. */
bool dp_lines_next(dp_lines *lines, dp_block *block);

#endif
