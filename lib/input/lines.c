/* lines.c - a stream cut into blocks of whole lines. */
#include "input/lines.h"

#include "input/json.h"

#include <stdlib.h>

/* A line may end in \r\n: two bytes more than its own. */
#define LINE_END 2

bool dp_block_reserve(dp_block *block, size_t need) {
    return dp_reserve(&block->data, &block->capacity, need + DP_JSON_PADDING, 1);
}

void dp_block_reset(dp_block *block, size_t target) {
    dp_block kept = {.data = block->data, .capacity = block->capacity};
    /* A block holds up to twice its target without growing again. */
    if (kept.capacity > 4 * target + DP_JSON_PADDING) {
        free(kept.data);
        kept.data = NULL;
        kept.capacity = 0;
    }
    *block = kept;
}

void dp_block_free(dp_block *block) {
    free(block->data);
    block->data = NULL;
}

void dp_lines_begin(dp_lines *lines, dp_stream *stream) {
    lines->stream = stream;
    lines->line = 1;
    lines->raw_bytes = 0;
    lines->ended = false;
}

static uint64_t count_lines(const char *p, size_t size) {
    uint64_t count = 0;
    for (const char *end = p + size; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        count++;
    return count;
}

/* Keeps what is behind the last line end for the next block. */
static bool cut(dp_lines *lines, dp_block *block, const char *last) {
    size_t whole = (size_t)(last + 1 - block->data);
    lines->rest.size = 0;
    if (!dp_buffer_add(&lines->rest, last + 1, block->size - whole))
        return false;
    block->size = whole;
    lines->line += count_lines(block->data, whole);
    return true;
}

/* Passes over the rest of a line that is too long; the block's memory serves to read it. */
static bool skip_line(dp_lines *lines, dp_block *block) {
    block->long_line = lines->line++;
    size_t got;
    while ((got = dp_stream_read(lines->stream, block->data, lines->target))) {
        const char *end = memchr(block->data, '\n', got);
        if (end) {
            size_t passed = (size_t)(end + 1 - block->data);
            block->size = 0;
            return dp_buffer_add(&lines->rest, end + 1, got - passed);
        }
    }
    block->size = 0;
    lines->ended = true;
    return true;
}

/* The stream has ended: what is left is the last line, unless it was cut off. */
static void finish(dp_lines *lines, dp_block *block) {
    lines->ended = true;
    if (!lines->stream->failed || !block->size)
        return;
    const char *last = memrchr(block->data, '\n', block->size);
    size_t whole = last ? (size_t)(last + 1 - block->data) : 0;
    uint64_t line = lines->line + count_lines(block->data, whole);
    if (block->size - whole > lines->max_line)
        block->long_line = line;
    else if (whole < block->size)
        block->cut_line = line;
    block->size = whole;
}

/* Room for the next read: up to the target, then up to the longest line, doubling. Gives its size; 0: no memory. */
static size_t make_room(const dp_lines *lines, dp_block *block) {
    size_t want = block->size < lines->target ? lines->target : block->size * 2;
    size_t most = lines->max_line + LINE_END + 1;
    if (want > most && most > lines->target)
        want = most;
    return dp_block_reserve(block, want) ? want - block->size : 0;
}

/* Reads until the block is full and has a line end. `searched` bytes of it are known to have none. */
static bool fill(dp_lines *lines, dp_block *block) {
    size_t searched = 0;
    for (;;) {
        const char *last = memrchr(block->data + searched, '\n', block->size - searched);
        if (last && (block->size >= lines->target || !dp_stream_ready(lines->stream)))
            return cut(lines, block, last);
        if (!last)
            searched = block->size;
        if (searched > lines->max_line + LINE_END)
            return skip_line(lines, block);
        size_t room = make_room(lines, block);
        if (!room)
            return false;
        size_t got = dp_stream_read(lines->stream, block->data + block->size, room);
        if (!got) {
            finish(lines, block);
            return true;
        }
        block->size += got;
    }
}

bool dp_lines_next(dp_lines *lines, dp_block *block) {
    if (lines->ended || !dp_block_reserve(block, lines->rest.size > lines->target ? lines->rest.size : lines->target))
        return false;
    block->first_line = lines->line;
    block->size = lines->rest.size;
    if (block->size)
        memcpy(block->data, lines->rest.data, block->size);
    lines->rest.size = 0;
    bool filled = fill(lines, block);
    block->raw_bytes = lines->stream->raw_bytes - lines->raw_bytes;
    lines->raw_bytes = lines->stream->raw_bytes;
    if (!filled)
        return false;
    memset(block->data + block->size, 0, DP_JSON_PADDING);
    return true;
}
