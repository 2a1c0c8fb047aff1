/* units.c - a unit of work becomes documents: its bytes are read, cut into whole records and given to the format.
 *
 * There are two ways to cut a file of records. A stream (a pipe, a compressed file, a format whose records may hold any
 * byte) is cut from its start on, a block after the other: by `dp_cutter`, one thread at a time. A regular file of
 * lines is cut by ranges of its bytes, which any thread reads by itself. Either gives the same records, line numbers
 * and reports. */
#include "input/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the memory of a unit ---- */

/* What a record may have beside its own bytes: line ends, at most. */
#define SLACK 16

/* Makes room for `need` bytes and the padding; false when there is no memory. */
static bool reserve_block(dp_record_block *block, size_t need) {
    return dp_reserve(&block->data, &block->capacity, need + DP_JSON_PADDING, 1);
}

/* Empties a block; gives the memory back if it is much more than `target`. */
static void reset_block(dp_record_block *block, size_t target) {
    dp_record_block kept = {.data = block->data, .capacity = block->capacity};
    /* A block holds up to twice its target without growing again. */
    if (kept.capacity > 4 * target + DP_JSON_PADDING) {
        free(kept.data);
        kept.data = NULL;
        kept.capacity = 0;
    }
    *block = kept;
}

/* Output buffers above this are given back after use, so that one huge record does not stay in memory. */
#define KEEP_OUTPUT ((size_t)16 << 20)

static void free_file_counts(dp_unit *unit) {
    for (size_t i = 0; i < unit->file_count; i++)
        free(unit->file_counts[i].hint);
    unit->file_count = 0;
}

void dp_unit_reset(dp_unit *unit, size_t block_size) {
    dp_stream_close(&unit->stream);
    reset_block(&unit->block, block_size);
    dp_ranges_release(unit->ranges);
    unit->ranges = NULL;
    unit->names.size = unit->files = unit->header.size = 0;
    unit->failure[0] = 0;
    if (unit->output.bytes.capacity > KEEP_OUTPUT)
        dp_buffer_free(&unit->output.bytes);
    unit->output.bytes.size = 0;
    unit->report_count = 0;
    memset(&unit->counts, 0, sizeof unit->counts);
    free_file_counts(unit);
    unit->first.count = 0;
    unit->raw_bytes = 0;
    unit->status = DOPPEL_OK;
}

void dp_unit_forget(dp_unit *unit) {
    unit->output.bytes.size = unit->report_count = unit->first.count = 0;
    memset(&unit->counts, 0, sizeof unit->counts);
    for (size_t i = 0; i < unit->file_count; i++) {
        free(unit->file_counts[i].hint);
        unit->file_counts[i] = (dp_file_counts){.file = unit->file_counts[i].file, .records = true};
    }
    unit->status = DOPPEL_OK;
}

void dp_unit_free(dp_unit *unit) {
    dp_stream_free(&unit->stream);
    dp_ranges_release(unit->ranges);
    free(unit->block.data);
    dp_buffer_free(&unit->names);
    dp_buffer_free(&unit->header);
    dp_buffer_free(&unit->output.bytes);
    free(unit->reports);
    free_file_counts(unit);
    free(unit->file_counts);
}

/* ---- a stream, cut into blocks of whole records ----
 *
 * A block ends after the last record that fits; what follows opens the next block. A record longer than the limit is
 * passed over without being held; a block says so, and ends there. Where a record ends is the format's to say. */

bool dp_has_positions(const dp_stream *stream, const char *file) {
    /* stdin cannot be opened again, nor has it been read from its start for certain. */
    return dp_stream_is_plain(stream) && strcmp(file, "-") != 0;
}

void dp_cutter_begin(dp_cutter *cutter, const dp_format *format, dp_stream *stream, const char *file) {
    cutter->format = format;
    cutter->stream = stream;
    cutter->positions = dp_has_positions(stream, file);
    cutter->offset = 0;
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

/* How far the numbering goes on over `records` records in these bytes. */
static uint64_t count_numbers(const dp_cutter *cutter, const char *p, size_t size, uint64_t records) {
    return cutter->format->by_lines ? count_lines(p, size) : records;
}

/* The whole records that a block is known to have. */
typedef struct whole_records {
    size_t size;
    uint64_t records;
} whole_records;

static void find_records(dp_cutter *cutter, const dp_record_block *block, whole_records *whole) {
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
static bool keep_rest(dp_cutter *cutter, dp_record_block *block, const whole_records *whole) {
    cutter->rest.size = 0;
    if (!dp_buffer_add(&cutter->rest, block->data + whole->size, block->size - whole->size))
        return false;
    block->size = whole->size;
    cutter->offset += whole->size;
    cutter->line += count_numbers(cutter, block->data, whole->size, whole->records);
    return true;
}

/* Drops what was seen of a record that is too long. */
static void drop_seen(dp_cutter *cutter, dp_record_block *block) {
    size_t seen = cutter->mark.seen;
    block->bytes += seen;
    cutter->offset += seen;
    cutter->line += count_numbers(cutter, block->data, seen, 0);
    memmove(block->data, block->data + seen, block->size - seen);
    block->size -= seen;
    cutter->mark.seen = 0;
}

/* Reads until the room is full, the stream has ended or nothing more is there at once: how a file is cut into blocks
 * must not depend on how its bytes happen to come. */
static size_t read_room(const dp_cutter *cutter, char *to, size_t room) {
    size_t got = 0, more = 1;
    while (more && got < room && (!got || dp_stream_ready(cutter->stream))) {
        more = dp_stream_read(cutter->stream, to + got, room - got);
        got += more;
    }
    return got;
}

/* Passes over the rest of a record that is too long; the block's memory serves to read it. */
static bool skip_long_record(dp_cutter *cutter, dp_record_block *block) {
    block->long_line = cutter->line;
    for (;;) {
        drop_seen(cutter, block);
        size_t got = 1, length = block->size ? cutter->format->end(&cutter->mark, block->data, block->size) : 0;
        if (!length) {
            if (!reserve_block(block, block->size + cutter->target))
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
static void end_stream(dp_cutter *cutter, dp_record_block *block, const whole_records *whole) {
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
static size_t make_room(const dp_cutter *cutter, dp_record_block *block) {
    size_t want = block->size < cutter->target ? cutter->target : block->size * 2;
    size_t most = cutter->max_record + SLACK + 1;
    if (want > most && most > cutter->target && most > block->size)
        want = most;
    return reserve_block(block, want) ? want - block->size : 0;
}

/* Reads until the block is full and has a whole record. */
static bool fill_block(dp_cutter *cutter, dp_record_block *block) {
    whole_records whole = {0};
    for (;;) {
        find_records(cutter, block, &whole);
        if (whole.size && (block->size >= cutter->target || !dp_stream_ready(cutter->stream)))
            return keep_rest(cutter, block, &whole);
        if (!whole.size && block->size > cutter->max_record + SLACK)
            return skip_long_record(cutter, block);
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
static bool take_header(dp_cutter *cutter, dp_record_block *block) {
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

/* Fills an empty block. False at the end of the stream (`ended`), or when there is no memory. The last block may have
 * no records, only something to report. */
static bool next_block(dp_cutter *cutter, dp_record_block *block) {
    size_t held = cutter->rest.size;
    if (cutter->ended || !reserve_block(block, held > cutter->target ? held : cutter->target))
        return false;
    block->first = !cutter->begun;
    cutter->begun = true;
    block->first_line = cutter->line;
    block->offset = cutter->positions ? cutter->offset : DOPPEL_NO_POSITION;
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
 * take ranges in order and count before they do anything else, so that the wait for that is short. */

/* The lines of a range. */
typedef struct range_lines {
    bool counted;           /* but not yet those of all ranges before */
    uint64_t count, before; /* `before`: once they are */
} range_lines;

struct dp_ranges {
    int fd;
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

dp_ranges *dp_ranges_create(int fd, size_t size, size_t at_once) {
    dp_ranges *ranges = calloc(1, sizeof *ranges + at_once * sizeof *ranges->lines_of);
    if (!ranges)
        return NULL;
    ranges->fd = fd;
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

/* Goes on over ranges that are counted, up to one that is not. Under the lock. */
static void add_lines(dp_ranges *ranges) {
    for (range_lines *next; (next = &ranges->lines_of[ranges->counted % ranges->at_once])->counted;) {
        next->counted = false;
        next->before = ranges->lines;
        ranges->lines += next->count;
        ranges->counted++;
    }
}

/* Adds the lines of a range; gives how many all ranges before it have, once these are counted. Every range that a unit
 * got comes here, or the next ones would wait for ever. The last that was missing lets all others go on at once. */
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
    size_t inside;          /* after a line end among the first so many of them, a line of the range begins */
    bool ended;             /* the file has no more, or cannot be read: unit->failure */
} range_text;

/* Reads on until there are `size` bytes, or the file ends; false when there is no memory, and then the unit has failed.
 */
static bool read_bytes(dp_unit *unit, range_text *text, size_t size) {
    dp_record_block *bytes = text->bytes;
    if (!reserve_block(bytes, size))
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

/* Sets the block to the lines of the range, of which there are some. The last one is passed over if the cutter of
 * streams would do so: when it does not fit into a block, or is cut off by a failure. */
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

/* Makes a block of the unit's range, in the thread's own memory. */
static void cut_range(dp_reader *reader, dp_unit *unit) {
    uint64_t begin = unit->range * unit->ranges->size;
    range_text text = {.bytes = &reader->range, .from = begin ? begin - 1 : 0};
    size_t size = (size_t)(begin - text.from) + unit->ranges->size;
    reset_block(text.bytes, unit->ranges->size);
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

bool dp_unit_set_block(dp_unit *unit, const dp_buffer *bytes) {
    if (!reserve_block(&unit->block, bytes->size))
        return dp_unit_no_memory(unit);
    if (bytes->size)
        memcpy(unit->block.data, bytes->data, bytes->size);
    unit->block.size = bytes->size;
    return true;
}

bool dp_unit_fill(dp_unit *unit, dp_cutter *cutter) {
    unit->header.size = 0;
    return (next_block(cutter, &unit->block) &&
            dp_buffer_add(&unit->header, cutter->header.data, cutter->header.size)) ||
           dp_unit_no_memory(unit);
}

/* ---- the documents of a unit ---- */

/* Begins to count for a file; false when there is no memory, and then the unit has failed. */
static bool begin_file(dp_unit *unit, uint64_t number) {
    if (!dp_reserve(&unit->file_counts, &unit->file_room, unit->file_count + 1, sizeof *unit->file_counts))
        return dp_unit_no_memory(unit);
    unit->file_counts[unit->file_count++] = (dp_file_counts){.file = number};
    return true;
}

/* The records of a block, and what is to be said of those after it. */
static void read_block(dp_reader *reader, dp_unit *unit, const char *file) {
    const dp_record_block *block = &unit->block;
    dp_raw_record at = {.file = file};
    unit->counts.bytes += block->bytes;
    dp_unit_counts(unit)->records = true;
    unit->format->read(reader, unit, file);
    if (block->long_line && !dp_reader_stopped(reader, unit)) {
        at.line = block->long_line;
        dp_reader_too_long(reader, unit, &at);
    }
    if (block->cut_line && !dp_reader_stopped(reader, unit)) {
        at.line = block->cut_line;
        dp_reader_bad_record(reader, unit, &at, "the file breaks off within this %s", unit->format->record);
    }
}

/* Reads the rest of the file after what the block has of it, up to one byte more than a record may have. */
static bool read_rest(dp_reader *reader, dp_unit *unit) {
    dp_record_block *block = &unit->block;
    dp_stream *stream = &unit->stream;
    size_t limit = reader->options->max_record, got = 1;
    uint64_t expected = stream->size - (stream->raw_bytes < stream->size ? stream->raw_bytes : stream->size);
    while (got && block->size <= limit) {
        size_t want = (size_t)expected + 1 > limit - block->size ? limit - block->size + 1 : (size_t)expected + 1;
        if (want < 4096)
            want = 4096;
        if (!reserve_block(block, block->size + want))
            return dp_unit_no_memory(unit);
        got = dp_stream_read(stream, block->data + block->size, want);
        block->size += got;
        /* Where the size is not known, or wrong, the room doubles. */
        expected = expected > got ? expected - got : expected ? 0 : (uint64_t)block->size;
    }
    return true;
}

static void read_whole(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_record_block *block = &unit->block;
    if (dp_reader_stopped(reader, unit) || !read_rest(reader, unit) || dp_reader_stopped(reader, unit))
        return;
    unit->counts.bytes += block->size;
    if (unit->stream.failed)
        dp_reader_bad_file(reader, unit, file, "%s", unit->stream.failure);
    else if (block->size > reader->options->max_record)
        dp_reader_too_long(reader, unit, &(dp_raw_record){.file = file});
    else
        unit->format->read(reader, unit, file);
}

static void read_small_records(dp_reader *reader, dp_unit *unit, const char *file, dp_cutter *cutter) {
    dp_cutter_begin(cutter, unit->format, &unit->stream, file);
    while (!cutter->ended && !dp_reader_stopped(reader, unit)) {
        unit->block.size = 0;
        unit->block.long_line = unit->block.cut_line = unit->block.bytes = 0;
        if (!dp_unit_fill(unit, cutter))
            return;
        read_block(reader, unit, file);
    }
    if (unit->stream.failed && !dp_reader_stopped(reader, unit))
        dp_reader_bad_file(reader, unit, file, "%s", unit->stream.failure);
}

/* A file that cannot be opened may be a pattern. */
static const char *why_unopened(const char *file, const dp_stream *stream) {
    return strpbrk(file, "*?[") && access(file, F_OK) ? "no file matches this pattern" : stream->failure;
}

static void read_file(dp_reader *reader, dp_unit *unit, const char *file, dp_cutter *cutter) {
    dp_stream *stream = &unit->stream;
    if (!dp_stream_open(stream, file))
        dp_reader_bad_file(reader, unit, file, "%s", why_unopened(file, stream));
    else if (!(unit->format = dp_format_read(stream, file, &cutter->rest)))
        dp_unit_no_memory(unit);
    else if (unit->format->end)
        read_small_records(reader, unit, file, cutter);
    else if (dp_unit_set_block(unit, &cutter->rest))
        read_whole(reader, unit, file);
    unit->raw_bytes += stream->raw_bytes;
    dp_stream_close(stream);
    reset_block(&unit->block, reader->sizes->block);
}

/* The records of a block of a big file. */
static void read_big_block(dp_reader *reader, dp_unit *unit, const char *file) {
    if (unit->status != DOPPEL_OK)
        return;
    read_block(reader, unit, file);
    if (unit->failure[0] && !dp_reader_stopped(reader, unit))
        dp_reader_bad_file(reader, unit, file, "%s", unit->failure);
}

/* The lines of a range of a big file. */
static void read_range(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_record_block own = unit->block;
    cut_range(reader, unit);
    read_big_block(reader, unit, file);
    unit->block = own;
}

void dp_unit_read(dp_reader *reader, dp_unit *unit, dp_cutter *cutter) {
    const char *file = unit->names.data;
    if (unit->kind != DP_UNIT_FILES)
        begin_file(unit, unit->file_number);
    if (unit->kind == DP_UNIT_RANGE) {
        read_range(reader, unit, file);
    } else if (unit->kind == DP_UNIT_BLOCK) {
        read_big_block(reader, unit, file);
    } else if (unit->kind == DP_UNIT_WHOLE) {
        read_whole(reader, unit, file);
        unit->raw_bytes += unit->stream.raw_bytes;
    } else {
        for (size_t i = 0; i < unit->files && !dp_reader_stopped(reader, unit); i++, file += strlen(file) + 1)
            if (begin_file(unit, unit->file_number + i))
                read_file(reader, unit, file, cutter);
    }
}
