/* blocks.c - how a file of records is cut into blocks of whole records, one a unit of work.
 *
 * There are two ways. A stream (a pipe, a compressed file, a format whose records may hold any byte) is cut from its
 * start on, a block after the other, one thread at a time: dp_cutter_begin, dp_cutter_next ..., dp_cutter_free. A
 * regular file of lines is cut by ranges of its bytes, which any thread reads by itself: dp_ranges_create, for each
 * range dp_ranges_give and on its thread dp_ranges_read, and dp_ranges_release. Either gives the same records, line
 * numbers and reports. */
#include "input/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a record may have in addition to its own bytes: line ends, at most this many. */
#define SLACK 16

/* ---- a stream, cut into blocks of whole records ----
 *
 * A block ends after the last record that fits; what follows opens the next block. A record longer than the limit is
 * skipped without being buffered; a block says so, and ends there. The format says where a record ends. */

void dp_cutter_begin(dp_record_cutter *cutter, const dp_format *format, dp_stream *stream) {
    cutter->format = format;
    cutter->stream = stream;
    cutter->positions = dp_stream_has_positions(stream);
    cutter->offset = 0;
    cutter->mark = (dp_mark){0};
    cutter->header.size = 0;
    cutter->line = 1;
    cutter->raw_bytes = 0;
    cutter->begun = cutter->ended = false;
}

void dp_cutter_free(dp_record_cutter *cutter) {
    dp_buffer_free(&cutter->rest);
    dp_buffer_free(&cutter->header);
}

/* How many line ends there are: in 64 counters of a byte each, which hold 255 rounds. Compilers make vectors of that.
 */
static uint64_t count_lines(const char *p, size_t size) {
    uint64_t count = 0;
    while (size >= 64) {
        uint8_t counters[64] = {0};
        size_t rounds = size / 64 < 255 ? size / 64 : 255;
        size -= rounds * 64;
        for (; rounds; rounds--, p += 64)
            for (size_t i = 0; i < 64; i++)
                counters[i] = (uint8_t)(counters[i] + (p[i] == '\n'));
        for (size_t i = 0; i < 64; i++)
            count += counters[i];
    }
    for (size_t i = 0; i < size; i++)
        count += p[i] == '\n';
    return count;
}

/* By how much the numbering advances over `records` records in these bytes. */
static uint64_t count_numbers(const dp_record_cutter *cutter, const char *p, size_t size, uint64_t records) {
    return cutter->format->by_lines ? count_lines(p, size) : records;
}

/* The whole records that a block is known to have. */
typedef struct whole_records {
    size_t size;
    uint64_t records;
} whole_records;

static void find_records(dp_record_cutter *cutter, const dp_record_block *block, whole_records *whole) {
    while (whole->size < block->size) {
        size_t length = cutter->format->end(&cutter->mark, block->data + whole->size, block->size - whole->size);
        if (!length)
            return;
        whole->size += length;
        whole->records++;
        cutter->mark = (dp_mark){.file = cutter->mark.file};
    }
}

/* Keeps what is after the whole records for the next block. */
static bool keep_rest(dp_record_cutter *cutter, dp_record_block *block, const whole_records *whole) {
    cutter->rest.size = 0;
    if (!dp_buffer_add(&cutter->rest, block->data + whole->size, block->size - whole->size))
        return false;
    block->size = whole->size;
    cutter->offset += whole->size;
    cutter->line += count_numbers(cutter, block->data, whole->size, whole->records);
    return true;
}

/* Drops what was seen of a record that is too long. */
static void drop_seen(dp_record_cutter *cutter, dp_record_block *block) {
    size_t seen = cutter->mark.seen;
    block->bytes += seen;
    cutter->offset += seen;
    cutter->line += count_numbers(cutter, block->data, seen, 0);
    memmove(block->data, block->data + seen, block->size - seen);
    block->size -= seen;
    cutter->mark.seen = 0;
}

/* Reads until the room is full, the stream has ended or nothing more is available at once: how a file is cut into
 * blocks must not depend on how its bytes arrive. */
static size_t read_room(const dp_record_cutter *cutter, char *to, size_t room) {
    size_t got = 0, more = 1;
    while (more && got < room && (!got || dp_stream_ready(cutter->stream))) {
        more = dp_stream_read(cutter->stream, to + got, room - got);
        got += more;
    }
    return got;
}

/* Skips the rest of a record that is too long; the block's memory is used to read it. */
static bool skip_long_record(dp_record_cutter *cutter, dp_record_block *block) {
    block->long_line = cutter->line;
    for (;;) {
        drop_seen(cutter, block);
        size_t got = 1, length = block->size ? cutter->format->end(&cutter->mark, block->data, block->size) : 0;
        if (!length) {
            if (!dp_block_reserve(block, block->size + cutter->target))
                return false;
            got = read_room(cutter, block->data + block->size, cutter->target);
            block->size += got;
        }
        if (!got || length) {
            cutter->ended = !got;
            cutter->mark = (dp_mark){.file = cutter->mark.file};
            bool kept = keep_rest(cutter, block, &(whole_records){got ? length : block->size, 1});
            block->bytes += block->size;
            block->size = 0;
            return kept;
        }
    }
}

/* The stream has ended: what is left is the last record, unless it was cut off. */
static void end_stream(dp_record_cutter *cutter, dp_record_block *block, const whole_records *whole) {
    cutter->ended = true;
    size_t left = block->size - whole->size;
    if (!cutter->stream->failed || !left)
        return;
    block->bytes += left;
    uint64_t line = cutter->line + count_numbers(cutter, block->data, whole->size, whole->records);
    if (left > cutter->max_record)
        block->long_line = line;
    else
        block->cut_line = line;
    block->size = whole->size;
}

/* Room for the next read: up to the target, then up to the longest record, doubling. Gives its size; 0: no memory. */
static size_t make_room(const dp_record_cutter *cutter, dp_record_block *block) {
    size_t want = block->size < cutter->target ? cutter->target : block->size * 2;
    size_t most = cutter->max_record + SLACK + 1;
    if (want > most && most > cutter->target && most > block->size)
        want = most;
    return dp_block_reserve(block, want) ? want - block->size : 0;
}

/* Reads until the block is full and has a whole record: with a header two, so that the reader of the header always has
 * the first row beside it, unless that is too long. */
static bool fill_block(dp_record_cutter *cutter, dp_record_block *block) {
    whole_records whole = {0};
    const uint64_t least = block->first && cutter->format->headed ? 2 : 1;
    for (;;) {
        find_records(cutter, block, &whole);
        if (whole.records >= least && (block->size >= cutter->target || !dp_stream_ready(cutter->stream)))
            return keep_rest(cutter, block, &whole);
        if (whole.records < least && block->size - whole.size > cutter->max_record + SLACK)
            return whole.size ? keep_rest(cutter, block, &whole) : skip_long_record(cutter, block);
        size_t room = make_room(cutter, block);
        if (!room)
            return false;
        size_t got = read_room(cutter, block->data + block->size, room);
        if (!got) {
            end_stream(cutter, block, &whole);
            return true;
        }
        block->size += got;
    }
}

/* Moves the first record from the first block to the header. */
static bool take_header(dp_record_cutter *cutter, dp_record_block *block) {
    if (!block->size)
        return true;
    size_t length = cutter->format->end(&(dp_mark){0}, block->data, block->size);
    if (!length)
        length = block->size;
    if (!dp_buffer_add(&cutter->header, block->data, length))
        return false;
    block->first_line += count_numbers(cutter, block->data, length, 1);
    if (cutter->positions)
        block->offset += length;
    block->size -= length;
    memmove(block->data, block->data + length, block->size);
    return true;
}

bool dp_cutter_next(dp_record_cutter *cutter, dp_record_block *block) {
    size_t held = cutter->rest.size;
    if (cutter->ended || !dp_block_reserve(block, held > cutter->target ? held : cutter->target))
        return false;
    block->first = !cutter->begun;
    cutter->begun = true;
    block->first_line = cutter->line;
    block->offset = cutter->positions ? cutter->offset : DOPPEL_NO_POSITION;
    block->file_bytes = cutter->stream->size;
    block->file_changed = cutter->stream->changed;
    block->size = held;
    if (held)
        memcpy(block->data, cutter->rest.data, held);
    cutter->rest.size = 0;
    bool filled = fill_block(cutter, block);
    block->last = cutter->ended;
    block->raw_bytes = cutter->stream->raw_bytes - cutter->raw_bytes;
    cutter->raw_bytes = cutter->stream->raw_bytes;
    if (!filled || (block->first && cutter->format->headed && !take_header(cutter, block)))
        return false;
    block->bytes += block->size;
    memset(block->data + block->size, 0, DP_JSON_PADDING);
    return true;
}

/* ---- ranges of a file of lines ----
 *
 * A range has the lines that begin in it: its thread looks for the first of them, and reads on after the range until
 * the last one ends. The number of its first line is known once the lines of all ranges before it are counted. Threads
 * take ranges in order and count first, so that the wait is short. */

/* The lines of a range. */
typedef struct range_lines {
    bool counted;           /* but not yet those of all ranges before */
    uint64_t count, before; /* `before`: once they are */
} range_lines;

struct dp_ranges {
    int fd;
    uint64_t file_bytes; /* when it was opened */
    int64_t file_changed;
    size_t size;    /* bytes of a range */
    size_t at_once; /* ranges that are not emitted yet, at most */
    atomic_size_t users;
    atomic_bool failed;   /* something of the file cannot be read */
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t moved;
    uint64_t counted;       /* ranges, from the first on, whose lines were counted */
    uint64_t lines;         /* that they have */
    range_lines lines_of[]; /* by range, modulo at_once */
};

dp_ranges *dp_ranges_create(const dp_stream *file, size_t size, size_t at_once) {
    dp_ranges *ranges = calloc(1, sizeof *ranges + at_once * sizeof *ranges->lines_of);
    if (!ranges)
        return NULL;
    ranges->fd = file->fd;
    ranges->file_bytes = file->size;
    ranges->file_changed = file->changed;
    ranges->size = size;
    ranges->at_once = at_once;
    atomic_init(&ranges->users, 1);
    pthread_mutex_init(&ranges->lock, NULL);
    pthread_cond_init(&ranges->moved, NULL);
    return ranges;
}

void dp_ranges_release(dp_ranges *ranges) {
    if (!ranges || atomic_fetch_sub(&ranges->users, 1) > 1)
        return;
    pthread_cond_destroy(&ranges->moved);
    pthread_mutex_destroy(&ranges->lock);
    close(ranges->fd);
    free(ranges);
}

bool dp_ranges_give(dp_ranges *ranges, uint64_t range, dp_unit *unit) {
    struct stat status;
    uint64_t begin = range * ranges->size;
    if (atomic_load(&ranges->failed) || fstat(ranges->fd, &status) || (uint64_t)status.st_size <= begin)
        return false;
    uint64_t left = (uint64_t)status.st_size - begin;
    atomic_fetch_add(&ranges->users, 1);
    unit->kind = DP_UNIT_RANGE;
    unit->ranges = ranges;
    unit->range = range;
    unit->raw_bytes = left < ranges->size ? left : ranges->size;
    return true;
}

/* Advances over ranges that are counted, up to one that is not. Under the lock. */
static void add_lines(dp_ranges *ranges) {
    for (range_lines *next; (next = &ranges->lines_of[ranges->counted % ranges->at_once])->counted;) {
        next->counted = false;
        next->before = ranges->lines;
        ranges->lines += next->count;
        ranges->counted++;
    }
}

/* Adds the lines of a range; gives how many all ranges before it have, once these are counted. Every range that a unit
 * got comes here, or the next ones would wait forever. The last that was missing wakes all others. */
static uint64_t count_range(dp_ranges *ranges, uint64_t range, uint64_t lines) {
    range_lines *own = &ranges->lines_of[range % ranges->at_once];
    pthread_mutex_lock(&ranges->lock);
    own->count = lines;
    own->counted = true;
    if (ranges->counted == range) {
        add_lines(ranges);
        pthread_cond_broadcast(&ranges->moved);
    }
    while (ranges->counted <= range)
        pthread_cond_wait(&ranges->moved, &ranges->lock);
    uint64_t before = own->before;
    pthread_mutex_unlock(&ranges->lock);
    return before;
}

/* What was read for a range. */
typedef struct range_text {
    dp_record_block *bytes; /* in the thread's own memory */
    uint64_t from;          /* the offset of the first of them: of the byte before the range, if there is one */
    size_t inside;          /* after a line end among the first N of them, a line of the range begins */
    bool ended;             /* the file has no more, or cannot be read: unit->failure */
} range_text;

/* Reads on until there are `size` bytes, or the file ends; false when there is no memory, and then the unit has failed.
 */
static bool read_bytes(dp_unit *unit, range_text *text, size_t size) {
    dp_record_block *bytes = text->bytes;
    if (!dp_block_reserve(bytes, size))
        return dp_unit_no_memory(unit);
    while (!text->ended && bytes->size < size) {
        off_t at = (off_t)(text->from + bytes->size);
        ssize_t got = pread(unit->ranges->fd, bytes->data + bytes->size, size - bytes->size, at);
        text->ended = !got || (got < 0 && errno != EINTR);
        if (got > 0) {
            bytes->size += (size_t)got;
        } else if (got < 0 && text->ended) {
            snprintf(unit->failure, sizeof unit->failure, "cannot read: %s", strerror(errno));
            atomic_store(&unit->ranges->failed, true);
        }
    }
    return true;
}

/* What is read after a range at a time, to begin with: a line or some; but no more than a range. */
#define TAIL ((size_t)16 << 10)

/* Where the line that begins at `last` ends: where the text ends, if that is not found within `limit` bytes. */
static size_t find_end(dp_unit *unit, range_text *text, size_t last, size_t limit) {
    size_t seen = text->inside;
    for (size_t step = unit->ranges->size < TAIL ? unit->ranges->size : TAIL;; step *= 2) {
        size_t size = text->bytes->size, left = last + limit - size;
        const char *end = memchr(text->bytes->data + seen, '\n', size - seen);
        if (end)
            return (size_t)(end + 1 - text->bytes->data);
        seen = size;
        if (!left || text->ended || !read_bytes(unit, text, size + (step < left ? step : left)))
            return size;
    }
}

/* Sets the block to the lines of the range, of which there are some. The last one is skipped if the cutter of streams
 * would skip it: when it does not fit into a block, or is cut off by a failure. */
static void set_lines(const dp_reader *reader, dp_unit *unit, range_text *text) {
    dp_record_block *block = &unit->block;
    size_t most = reader->options->max_record + SLACK + 1,
           limit = most > unit->ranges->size ? most : unit->ranges->size;
    size_t first = block->starts[0], last = block->starts[block->lines - 1];
    size_t end = find_end(unit, text, last, limit), left = end - last;
    if (left && text->bytes->data[end - 1] != '\n' && (left >= limit || unit->failure[0])) {
        bool is_long = left > reader->options->max_record;
        *(is_long ? &block->long_line : &block->cut_line) = block->first_line + --block->lines;
        end = last;
    }
    block->data = text->bytes->data + first;
    block->size = end - first;
    block->offset = text->from + first;
    block->file_bytes = unit->ranges->file_bytes;
    block->file_changed = unit->ranges->file_changed;
    memset(block->data + block->size, 0, DP_JSON_PADDING);
}

/* Where the line after the one at p starts; NULL: not before `end`. */
static const char *next_line(const char *p, const char *end) {
    const char *stop = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    return stop ? stop + 1 : NULL;
}

/* Notes where the lines of the range start, in the thread's own memory; gives how many there are. */
static size_t find_starts(dp_reader *reader, dp_unit *unit, const range_text *text) {
    const char *data = text->bytes->data, *end = data + text->inside;
    size_t lines = 0;
    for (const char *p = unit->range ? next_line(data, end) : data; p; p = next_line(p, end)) {
        if (!dp_reserve(&reader->starts, &reader->starts_capacity, lines + 1, sizeof *reader->starts)) {
            dp_unit_no_memory(unit);
            break;
        }
        reader->starts[lines++] = (uint32_t)(p - data);
    }
    return lines;
}

void dp_ranges_read(dp_reader *reader, dp_unit *unit) {
    uint64_t begin = unit->range * unit->ranges->size;
    range_text text = {.bytes = &reader->range, .from = begin ? begin - 1 : 0};
    size_t size = (size_t)(begin - text.from) + unit->ranges->size;
    dp_block_reset(text.bytes, unit->ranges->size);
    if (unit->status == DOPPEL_OK)
        read_bytes(unit, &text, size);
    text.inside = text.bytes->size < size ? text.bytes->size : size - 1;
    size_t lines = find_starts(reader, unit, &text), before = begin && text.bytes->size;
    unit->block = (dp_record_block){.data = text.bytes->data,
                                    .first = !begin,
                                    .first_line = 1 + count_range(unit->ranges, unit->range, lines),
                                    .bytes = text.bytes->size - before,
                                    .starts = reader->starts,
                                    .lines = lines};
    if (lines && unit->status == DOPPEL_OK)
        set_lines(reader, unit, &text);
}
