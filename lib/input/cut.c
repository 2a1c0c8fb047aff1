/* cut.c - a stream cut into blocks of whole records. */
#include "input/cut.h"

#include "input/format.h"
#include "input/json.h"

#include <stdlib.h>

/* What a record may have beside its own bytes: line ends, at most. */
#define SLACK 16

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

void dp_cutter_begin(dp_cutter *cutter, const dp_format *format, dp_stream *stream) {
    cutter->format = format;
    cutter->stream = stream;
    cutter->mark = (dp_mark){0};
    cutter->header.size = 0;
    cutter->line = 1;
    cutter->raw_bytes = 0;
    cutter->begun = cutter->ended = false;
}

void dp_cutter_free(dp_cutter *cutter) {
    dp_buffer_free(&cutter->rest);
    dp_buffer_free(&cutter->header);
}

/* How far the numbers go on over `records` records in these bytes. */
static uint64_t numbers(const dp_cutter *cutter, const char *p, size_t size, uint64_t records) {
    uint64_t count = 0;
    if (!cutter->format->by_lines)
        return records;
    for (const char *end = p + size; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        count++;
    return count;
}

/* The whole records that a block is known to have. */
typedef struct found {
    size_t size;
    uint64_t records;
} found;

static void look(dp_cutter *cutter, const dp_block *block, found *whole) {
    while (whole->size < block->size) {
        size_t length = cutter->format->end(&cutter->mark, block->data + whole->size, block->size - whole->size);
        if (!length)
            return;
        whole->size += length;
        whole->records++;
        cutter->mark = (dp_mark){.file = cutter->mark.file};
    }
}

/* Keeps what is behind the whole records for the next block. */
static bool cut(dp_cutter *cutter, dp_block *block, const found *whole) {
    cutter->rest.size = 0;
    if (!dp_buffer_add(&cutter->rest, block->data + whole->size, block->size - whole->size))
        return false;
    block->size = whole->size;
    cutter->line += numbers(cutter, block->data, whole->size, whole->records);
    return true;
}

/* Drops what was seen of a record that is too long. */
static void drop(dp_cutter *cutter, dp_block *block) {
    size_t seen = cutter->mark.seen;
    cutter->line += numbers(cutter, block->data, seen, 0);
    memmove(block->data, block->data + seen, block->size - seen);
    block->size -= seen;
    cutter->mark.seen = 0;
}

/* Passes over the rest of a record that is too long; the block's memory serves to read it. */
static bool skip(dp_cutter *cutter, dp_block *block) {
    block->long_line = cutter->line;
    for (;;) {
        drop(cutter, block);
        size_t got = 1, length = block->size ? cutter->format->end(&cutter->mark, block->data, block->size) : 0;
        if (!length) {
            if (!dp_block_reserve(block, block->size + cutter->target))
                return false;
            got = dp_stream_read(cutter->stream, block->data + block->size, cutter->target);
            block->size += got;
        }
        if (!got || length) {
            cutter->ended = !got;
            cutter->mark = (dp_mark){.file = cutter->mark.file};
            bool kept = cut(cutter, block, &(found){got ? length : block->size, 1});
            block->size = 0;
            return kept;
        }
    }
}

/* The stream has ended: what is left is the last record, unless it was cut off. */
static void finish(dp_cutter *cutter, dp_block *block, const found *whole) {
    cutter->ended = true;
    size_t left = block->size - whole->size;
    if (!cutter->stream->failed || !left)
        return;
    uint64_t line = cutter->line + numbers(cutter, block->data, whole->size, whole->records);
    if (left > cutter->max_record)
        block->long_line = line;
    else
        block->cut_line = line;
    block->size = whole->size;
}

/* Room for the next read: up to the target, then up to the longest record, doubling. Gives its size; 0: no memory. */
static size_t make_room(const dp_cutter *cutter, dp_block *block) {
    size_t want = block->size < cutter->target ? cutter->target : block->size * 2;
    size_t most = cutter->max_record + SLACK + 1;
    if (want > most && most > cutter->target && most > block->size)
        want = most;
    return dp_block_reserve(block, want) ? want - block->size : 0;
}

/* Reads until the block is full and has a whole record. */
static bool fill(dp_cutter *cutter, dp_block *block) {
    found whole = {0};
    for (;;) {
        look(cutter, block, &whole);
        if (whole.size && (block->size >= cutter->target || !dp_stream_ready(cutter->stream)))
            return cut(cutter, block, &whole);
        if (!whole.size && block->size > cutter->max_record + SLACK)
            return skip(cutter, block);
        size_t room = make_room(cutter, block);
        if (!room)
            return false;
        size_t got = dp_stream_read(cutter->stream, block->data + block->size, room);
        if (!got) {
            finish(cutter, block, &whole);
            return true;
        }
        block->size += got;
    }
}

/* Moves the first record from the first block to the header. */
static bool take_header(dp_cutter *cutter, dp_block *block) {
    if (!block->size)
        return true;
    size_t length = cutter->format->end(&(dp_mark){0}, block->data, block->size);
    if (!length)
        length = block->size;
    if (!dp_buffer_add(&cutter->header, block->data, length))
        return false;
    block->first_line += numbers(cutter, block->data, length, 1);
    block->size -= length;
    memmove(block->data, block->data + length, block->size);
    return true;
}

bool dp_cutter_next(dp_cutter *cutter, dp_block *block) {
    size_t held = cutter->rest.size;
    if (cutter->ended || !dp_block_reserve(block, held > cutter->target ? held : cutter->target))
        return false;
    block->first = !cutter->begun;
    cutter->begun = true;
    block->first_line = cutter->line;
    block->size = held;
    if (held)
        memcpy(block->data, cutter->rest.data, held);
    cutter->rest.size = 0;
    bool filled = fill(cutter, block);
    block->last = cutter->ended;
    block->raw_bytes = cutter->stream->raw_bytes - cutter->raw_bytes;
    cutter->raw_bytes = cutter->stream->raw_bytes;
    if (!filled || (block->first && cutter->format->headed && !take_header(cutter, block)))
        return false;
    memset(block->data + block->size, 0, DP_JSON_PADDING);
    return true;
}
