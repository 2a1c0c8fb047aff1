/* input.c - doppel_input_run: threads take units of work, and what comes of them is emitted in input order.
 *
 * Paths become files, and a block of records of a big file, a range of its bytes or some small files make a unit; one
 * thread gives the documents of a unit to the caller's work.
 *
 * There are two ways to cut a file of records. A stream (a pipe, a compressed file, a format whose records may hold any
 * byte) is cut from its start on, a block after the other, one thread at a time. A regular file of lines is cut by
 * ranges of its bytes, which any thread reads by itself. Either gives the same records, line numbers and reports.
 *
 * Small files and ranges of files of lines are read by the thread that has the unit. A block of any other big file is
 * read when the unit is taken, one at a time under `reading`, while the other threads compute. A unit has a number and
 * a slot; there are twice as many slots as threads, so that one slow unit does not stop the rest, and memory stays
 * bounded (dp_ordered). A unit that holds too much waits for its turn and emits what it has.
 *
 * Lock order: `reading`, then that of dp_ordered. Nothing is read, computed or emitted under the latter. */
#include "input/input.h"
#include "input/reader.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Cuts a stream into blocks of whole records. */
typedef struct record_cutter {
    const dp_format *format;
    dp_stream *stream;
    dp_buffer rest;   /* read, but not given yet */
    dp_buffer header; /* the first record, where the format has that */
    dp_mark mark;     /* of the current record */
    bool positions;   /* blocks have an offset: has_positions */
    uint64_t offset;  /* of what comes next */
    uint64_t line;    /* the number of the line or record that comes next */
    uint64_t raw_bytes;
    size_t target;     /* bytes of a block, unless one record is longer */
    size_t max_record; /* bytes of a record */
    bool begun, ended;
} record_cutter;

/* ---- the memory of a unit ---- */

#define USUAL_MAX_RECORD ((size_t)64 << 20)

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

/* ---- a stream, cut into blocks of whole records ----
 *
 * A block ends after the last record that fits; what follows opens the next block. A record longer than the limit is
 * passed over without being held; a block says so, and ends there. Where a record ends is the format's to say. */

/* Whether a file that was opened can be read at any position, by its name. */
static bool has_positions(const dp_stream *stream, const char *file) {
    /* stdin cannot be opened again, nor has it been read from its start for certain. */
    return dp_stream_is_plain(stream) && strcmp(file, "-") != 0;
}

/* Begins the stream of a file of which `cutter->rest` was already read. */
static void begin_cutter(record_cutter *cutter, const dp_format *format, dp_stream *stream, const char *file) {
    cutter->format = format;
    cutter->stream = stream;
    cutter->positions = has_positions(stream, file);
    cutter->offset = 0;
    cutter->mark = (dp_mark){0};
    cutter->header.size = 0;
    cutter->line = 1;
    cutter->raw_bytes = 0;
    cutter->begun = cutter->ended = false;
}

static void free_cutter(record_cutter *cutter) {
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
static uint64_t count_numbers(const record_cutter *cutter, const char *p, size_t size, uint64_t records) {
    return cutter->format->by_lines ? count_lines(p, size) : records;
}

/* The whole records that a block is known to have. */
typedef struct whole_records {
    size_t size;
    uint64_t records;
} whole_records;

static void find_records(record_cutter *cutter, const dp_record_block *block, whole_records *whole) {
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
static bool keep_rest(record_cutter *cutter, dp_record_block *block, const whole_records *whole) {
    cutter->rest.size = 0;
    if (!dp_buffer_add(&cutter->rest, block->data + whole->size, block->size - whole->size))
        return false;
    block->size = whole->size;
    cutter->offset += whole->size;
    cutter->line += count_numbers(cutter, block->data, whole->size, whole->records);
    return true;
}

/* Drops what was seen of a record that is too long. */
static void drop_seen(record_cutter *cutter, dp_record_block *block) {
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
static size_t read_room(const record_cutter *cutter, char *to, size_t room) {
    size_t got = 0, more = 1;
    while (more && got < room && (!got || dp_stream_ready(cutter->stream))) {
        more = dp_stream_read(cutter->stream, to + got, room - got);
        got += more;
    }
    return got;
}

/* Passes over the rest of a record that is too long; the block's memory serves to read it. */
static bool skip_long_record(record_cutter *cutter, dp_record_block *block) {
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
static void end_stream(record_cutter *cutter, dp_record_block *block, const whole_records *whole) {
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
static size_t make_room(const record_cutter *cutter, dp_record_block *block) {
    size_t want = block->size < cutter->target ? cutter->target : block->size * 2;
    size_t most = cutter->max_record + SLACK + 1;
    if (want > most && most > cutter->target && most > block->size)
        want = most;
    return reserve_block(block, want) ? want - block->size : 0;
}

/* Reads until the block is full and has a whole record. */
static bool fill_block(record_cutter *cutter, dp_record_block *block) {
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
static bool take_header(record_cutter *cutter, dp_record_block *block) {
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
static bool next_block(record_cutter *cutter, dp_record_block *block) {
    size_t held = cutter->rest.size;
    if (cutter->ended || !reserve_block(block, held > cutter->target ? held : cutter->target))
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
 * take ranges in order and count before they do anything else, so that the wait for that is short. */

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

/* Takes over the open file; NULL when there is no memory. Each unit that gets a range holds it, too. `at_once`: how
 * many ranges there are at most from the first that is not emitted yet to the last that was given. */
static dp_ranges *create_ranges(const dp_stream *file, size_t size, size_t at_once) {
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

static void release_ranges(dp_ranges *ranges) {
    if (!ranges || atomic_fetch_sub(&ranges->users, 1) > 1)
        return;
    pthread_cond_destroy(&ranges->moved);
    pthread_mutex_destroy(&ranges->lock);
    close(ranges->fd);
    free(ranges);
}

/* Output buffers above this are given back after use, so that one huge record does not stay in memory. */
#define KEEP_OUTPUT ((size_t)16 << 20)

static void free_file_counts(dp_unit *unit) {
    for (size_t i = 0; i < unit->file_count; i++)
        free(unit->file_counts[i].hint);
    unit->file_count = 0;
}

/* Empties a unit for its next use; memory is kept, unless it is much more than `block_size`. */
static void reset_unit(dp_unit *unit, size_t block_size) {
    dp_stream_close(&unit->stream);
    reset_block(&unit->block, block_size);
    release_ranges(unit->ranges);
    unit->ranges = NULL;
    dp_table_batch_free(&unit->table);
    unit->left_out.size = 0;
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

/* Forgets all results of a unit of one file of records. */
static void forget_unit(dp_unit *unit) {
    unit->output.bytes.size = unit->report_count = unit->first.count = unit->left_out.size = 0;
    memset(&unit->counts, 0, sizeof unit->counts);
    for (size_t i = 0; i < unit->file_count; i++) {
        free(unit->file_counts[i].hint);
        unit->file_counts[i] = (dp_file_counts){.file = unit->file_counts[i].file, .records = true};
    }
    unit->status = DOPPEL_OK;
}

static void free_unit(dp_unit *unit) {
    dp_stream_free(&unit->stream);
    release_ranges(unit->ranges);
    dp_table_batch_free(&unit->table);
    dp_buffer_free(&unit->left_out);
    free(unit->block.data);
    dp_buffer_free(&unit->names);
    dp_buffer_free(&unit->header);
    dp_buffer_free(&unit->output.bytes);
    free(unit->reports);
    free_file_counts(unit);
    free(unit->file_counts);
}

/* Makes the unit one of a range, by the range's number; false when the file has no such range, or cannot be read. A
 * file has all ranges that its size has room for at that moment. They are given in order, and each is read. */
static bool give_range(dp_ranges *ranges, uint64_t range, dp_unit *unit) {
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

/* Fills the block with a copy of these bytes; false when there is no memory, and then the unit has failed. */
static bool set_block(dp_unit *unit, const dp_buffer *bytes) {
    if (!reserve_block(&unit->block, bytes->size))
        return dp_unit_no_memory(unit);
    if (bytes->size)
        memcpy(unit->block.data, bytes->data, bytes->size);
    unit->block.size = bytes->size;
    return true;
}

/* Fills the block with the next of the cutter, and the header with that of its file; false as above. */
static bool fill_unit(dp_unit *unit, record_cutter *cutter) {
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

static void read_small_records(dp_reader *reader, dp_unit *unit, const char *file, record_cutter *cutter) {
    begin_cutter(cutter, unit->format, &unit->stream, file);
    while (!cutter->ended && !dp_reader_stopped(reader, unit)) {
        unit->block.size = 0;
        unit->block.long_line = unit->block.cut_line = unit->block.bytes = 0;
        if (!fill_unit(unit, cutter))
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

static void read_file(dp_reader *reader, dp_unit *unit, const char *file, record_cutter *cutter) {
    dp_stream *stream = &unit->stream;
    if (!dp_stream_open(stream, file))
        dp_reader_bad_file(reader, unit, file, "%s", why_unopened(file, stream));
    else if (!(unit->format = dp_format_read(stream, file, reader->format, &cutter->rest)))
        dp_unit_no_memory(unit);
    else if (unit->format->end)
        read_small_records(reader, unit, file, cutter);
    else if (set_block(unit, &cutter->rest))
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

/* Gives every document of the unit to the work, if the unit has not failed before. How that went is in the unit.
 * `cutter` is for small files. */
static void read_unit(dp_reader *reader, dp_unit *unit, record_cutter *cutter) {
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
    } else if (unit->kind == DP_UNIT_TABLE) {
        dp_format_table.read(reader, unit, file);
    } else {
        for (size_t i = 0; i < unit->files && !dp_reader_stopped(reader, unit); i++, file += strlen(file) + 1)
            if (begin_file(unit, unit->file_number + i))
                read_file(reader, unit, file, cutter);
    }
}

/* ---- the files that a list of paths stands for ----
 *
 * In order: each path itself, or all that is below a folder, by byte order of names. A path with *, ? or [ that is not
 * there stands for those that match it, in byte order.
 *
 * Below a folder, links to files are followed, links to folders are not (so there are no cycles); what is neither file
 * nor folder (devices, sockets, pipes, links that lead nowhere) is left out. A path that was given is taken as it is.
 *
 * A stack of folders, each with its names sorted; the top one gives the next name, and a name that is a folder becomes
 * the new top. Memory: the names of the folders that are open, one below the other. */

/* One folder on the way down: its names, sorted, and how far it is done. */
typedef struct walk_folder {
    struct dirent **names;
    size_t count, next;
    size_t path_length; /* of the folder's own path */
} walk_folder;

typedef struct path_walk {
    const char *const *paths;
    size_t path_count, next_path;
    const doppel_tables *tables; /* NULL: there are none */
    glob_t matches;              /* of the current pattern */
    size_t next_match;
    dp_buffer listed;   /* the tables that the current URL stands for, each NUL-ended */
    size_t next_listed; /* the position of the next of them */
    walk_folder *folders;
    size_t depth, capacity;
    dp_buffer path; /* of the file that was given last, NUL-ended */
    bool no_memory;
} path_walk;

typedef struct walk_file {
    const char *path; /* borrowed until the next call */
    bool regular;     /* its size is known */
    uint64_t size;
} walk_file;

static void init_walk(path_walk *walk, const dp_input_job *job) {
    memset(walk, 0, sizeof *walk);
    walk->paths = job->paths;
    walk->path_count = job->path_count;
    walk->tables = job->options ? job->options->tables : NULL;
}

static void free_folder(walk_folder *folder) {
    for (size_t i = 0; i < folder->count; i++)
        free(folder->names[i]);
    free(folder->names);
}

static void free_matches(path_walk *walk) {
    if (walk->matches.gl_pathv)
        globfree(&walk->matches);
    walk->matches = (glob_t){0};
    walk->next_match = 0;
}

static void free_walk(path_walk *walk) {
    free_matches(walk);
    while (walk->depth)
        free_folder(&walk->folders[--walk->depth]);
    free(walk->folders);
    dp_buffer_free(&walk->listed);
    dp_buffer_free(&walk->path);
}

static int is_name(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Whether a name marks a file as no part of the data: _SUCCESS, ._part.crc. */
static bool is_beside(const struct dirent *entry) {
    return entry->d_name[0] == '_' || entry->d_name[0] == '.';
}

/* Whether a folder holds tables, or nothing but folders: then files whose names begin with _ or . are not data. */
static bool holds_tables(const path_walk *walk, const walk_folder *folder) {
    bool folders = false, others = false;
    for (size_t i = 0; i < folder->count; i++) {
        const struct dirent *entry = folder->names[i];
        if (entry->d_type == DT_DIR)
            folders = true;
        else if (walk->tables->claims(entry->d_name, walk->tables->user))
            return true;
        else
            others = others || !is_beside(entry);
    }
    return folders && !others;
}

static void drop_beside_tables(const path_walk *walk, walk_folder *folder) {
    size_t left = 0;
    if (!walk->tables || !holds_tables(walk, folder))
        return;
    for (size_t i = 0; i < folder->count; i++)
        if (is_beside(folder->names[i]))
            free(folder->names[i]);
        else
            folder->names[left++] = folder->names[i];
    folder->count = left;
}

/* Makes the folder at walk->path the top of the stack; false when it cannot be read, or (no_memory) held. */
static bool enter(path_walk *walk) {
    walk_folder folder = {.path_length = strlen(walk->path.data)};
    int count = scandir(walk->path.data, &folder.names, is_name, by_name);
    if (count < 0) {
        walk->no_memory = errno == ENOMEM;
        return false;
    }
    folder.count = (size_t)count;
    drop_beside_tables(walk, &folder);
    if (!dp_reserve(&walk->folders, &walk->capacity, walk->depth + 1, sizeof *walk->folders)) {
        free_folder(&folder);
        walk->no_memory = true;
        return false;
    }
    walk->folders[walk->depth++] = folder;
    return true;
}

/* Sets walk->path to its first `length` bytes and then `name`. */
static bool set_path(path_walk *walk, size_t length, const char *name) {
    walk->path.size = length;
    if (length && walk->path.data[length - 1] != '/' && !dp_buffer_add(&walk->path, "/", 1))
        return false;
    return dp_buffer_add(&walk->path, name, strlen(name) + 1);
}

/* What a name below a folder is: a file to give, a folder to enter, or neither. */
static mode_t kind_of(const char *path, unsigned char type, struct stat *status) {
    if (type == DT_DIR)
        return S_IFDIR;
    if (type != DT_REG && type != DT_LNK && type != DT_UNKNOWN)
        return 0;
    if (stat(path, status))
        return type == DT_REG ? S_IFREG : 0;
    if (S_ISREG(status->st_mode))
        return S_IFREG;
    return S_ISDIR(status->st_mode) && type == DT_UNKNOWN && !lstat(path, status) ? status->st_mode & S_IFDIR : 0;
}

static bool give_file(path_walk *walk, walk_file *file, const struct stat *status) {
    file->path = walk->path.data;
    file->regular = S_ISREG(status->st_mode);
    file->size = file->regular ? (uint64_t)status->st_size : 0;
    return true;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Finds what matches a pattern; false when nothing does. */
static bool expand(path_walk *walk, const char *pattern) {
    free_matches(walk);
    int result = glob(pattern, GLOB_NOSORT, NULL, &walk->matches);
    walk->no_memory = result == GLOB_NOSPACE;
    if (result)
        return false;
    qsort(walk->matches.gl_pathv, walk->matches.gl_pathc, sizeof *walk->matches.gl_pathv, by_bytes);
    return true;
}

/* One path, given or matched: true when it is a file (or cannot be opened as anything else). */
static bool take_path(path_walk *walk, const char *path, walk_file *file) {
    struct stat status = {0};
    if (!set_path(walk, 0, path)) {
        walk->no_memory = true;
        return false;
    }
    bool is_stdin = !strcmp(path, "-");
    bool there = !is_stdin && !stat(path, &status);
    if (there && S_ISDIR(status.st_mode) && (enter(walk) || walk->no_memory))
        return false;
    return give_file(walk, file, &status);
}

/* doppel_tables.list */
static doppel_status add_listed(const char *path, void *to) {
    path_walk *walk = to;
    walk->no_memory = !dp_buffer_add(&walk->listed, path, strlen(path) + 1);
    return walk->no_memory ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}

/* Lists the tables that a URL stands for; false: it stands for itself, and opening it will report what is wrong. */
static bool list_url(path_walk *walk, const char *path) {
    walk->listed.size = walk->next_listed = 0;
    if (!walk->tables || !walk->tables->list || !strstr(path, "://"))
        return false;
    if (walk->tables->list(path, add_listed, walk, walk->tables->user, NULL) != DOPPEL_OK)
        walk->listed.size = 0;
    return walk->listed.size;
}

/* The next table of a URL. */
static bool next_listed(path_walk *walk, walk_file *file) {
    const char *path = walk->listed.data + walk->next_listed;
    walk->next_listed += strlen(path) + 1;
    if (!set_path(walk, 0, path)) {
        walk->no_memory = true;
        return false;
    }
    return give_file(walk, file, &(struct stat){0});
}

/* The next given path, or the next that matches it. */
static bool next_path(path_walk *walk, walk_file *file) {
    struct stat status;
    if (walk->next_listed < walk->listed.size)
        return next_listed(walk, file);
    if (walk->next_match < walk->matches.gl_pathc)
        return take_path(walk, walk->matches.gl_pathv[walk->next_match++], file);
    const char *path = walk->paths[walk->next_path++];
    if (list_url(walk, path) || walk->no_memory)
        return false;
    if (strpbrk(path, "*?[") && lstat(path, &status) && (expand(walk, path) || walk->no_memory))
        return false;
    return take_path(walk, path, file);
}

/* The next name of the top folder: true when it is a file. */
static bool next_name(path_walk *walk, walk_file *file) {
    walk_folder *top = &walk->folders[walk->depth - 1];
    if (top->next == top->count) {
        free_folder(top);
        walk->depth--;
        return false;
    }
    const struct dirent *entry = top->names[top->next++];
    struct stat status = {0};
    if (!set_path(walk, top->path_length, entry->d_name)) {
        walk->no_memory = true;
        return false;
    }
    mode_t kind = kind_of(walk->path.data, entry->d_type, &status);
    if (kind == S_IFDIR && (enter(walk) || walk->no_memory))
        return false;
    return kind && give_file(walk, file, &status);
}

/* The next file; false at the end, or when there is no memory (`no_memory`). A folder that cannot be read is given like
 * a file, and opening it will tell why. */
static bool next_file(path_walk *walk, walk_file *file) {
    while (!walk->no_memory && (walk->depth || walk->next_match < walk->matches.gl_pathc ||
                                walk->next_listed < walk->listed.size || walk->next_path < walk->path_count))
        if (walk->depth ? next_name(walk, file) : next_path(walk, file))
            return true;
    return false;
}

bool dp_input_is_empty_folder(const char *path) {
    struct stat there;
    path_walk walk;
    walk_file file;
    if (stat(path, &there) || !S_ISDIR(there.st_mode))
        return false;
    init_walk(&walk, &(dp_input_job){.paths = &path, .path_count = 1});
    bool empty = !next_file(&walk, &file) && !walk.no_memory;
    free_walk(&walk);
    return empty;
}

/* The name of the file that was given last, below the folder it was found in. */
static const char *name_below(const path_walk *walk) {
    const char *path = walk->path.data, *slash = strrchr(path, '/');
    if (!walk->depth)
        return slash ? slash + 1 : path;
    path += walk->folders[0].path_length;
    return path + (*path == '/');
}

/* What is read of a file to have its header, if that is no longer. */
#define HEADER ((size_t)64 << 10)

/* Opens a file to see what it is; false: no memory. */
static bool look_inside(const doppel_input_options *options, const dp_format *asked, dp_input_kind *kind) {
    dp_stream stream;
    record_cutter cutter = {.target = HEADER, .max_record = USUAL_MAX_RECORD};
    dp_record_block block = {0};
    bool whole = true;
    dp_stream_init(&stream, options->stop);
    if (dp_stream_open(&stream, kind->path)) {
        const dp_format *format = dp_format_read(&stream, kind->path, asked, &cutter.rest);
        begin_cutter(&cutter, format, &stream, kind->path);
        whole = format && (!format->headed || next_block(&cutter, &block));
        kind->format = format ? format->name : NULL;
        kind->rows = format && (format->headed || format == &dp_format_lines);
        kind->records = format == &dp_format_jsonl;
        kind->header = cutter.header;
        kind->header.size -= kind->header.size && kind->header.data[kind->header.size - 1] == '\n';
        cutter.header = (dp_buffer){0};
    }
    free(block.data);
    free_cutter(&cutter);
    dp_stream_free(&stream);
    return whole;
}

doppel_status dp_input_list(const dp_input_paths *paths, const doppel_input_options *options,
                            doppel_status (*found)(dp_input_kind *file, void *user), void *user, doppel_error *error) {
    path_walk walk;
    walk_file file;
    const dp_format *asked;
    DP_TRY(dp_format_find(options, &asked, error));
    doppel_status status = DOPPEL_OK;
    init_walk(&walk, &(dp_input_job){.paths = paths->path, .path_count = paths->count});
    while (status == DOPPEL_OK && next_file(&walk, &file)) {
        dp_input_kind kind = {.path = file.path,
                              .name = name_below(&walk),
                              .format = asked ? asked->name : doppel_input_format(file.path)};
        kind.rows = kind.format &&
                    (!strcmp(kind.format, "CSV") || !strcmp(kind.format, "TSV") || !strcmp(kind.format, "lines"));
        kind.records = kind.format && !strcmp(kind.format, "JSONL");
        if (file.regular && !look_inside(options, asked, &kind))
            walk.no_memory = true;
        else
            status = found(&kind, user);
        dp_buffer_free(&kind.header);
    }
    bool no_memory = walk.no_memory;
    free_walk(&walk);
    return no_memory ? dp_no_memory(error) : status;
}

/* ---- the next unit of work ----
 *
 * What is done under the lock `reading`, so as little as can be: small files are only named, ranges only numbered; the
 * thread that takes the unit reads them. Any other big file of records is read here, a block a unit; of a big file that
 * is one document only the start is read here. */

typedef struct unit_source {
    const doppel_input_options *options;
    const dp_format *format; /* that was asked for; NULL: none */
    const dp_input_sizes *sizes;
    path_walk walk;
    walk_file file;   /* the next one */
    bool has_file;    /* it was looked at, but not used yet */
    uint64_t files;   /* how many were looked at */
    dp_stream stream; /* the big file that is open */
    record_cutter cutter;
    bool reading;          /* blocks of `cutter` come next */
    dp_ranges *ranges;     /* of the big file that is read by them; NULL: none is */
    uint64_t next_range;   /* comes next */
    dp_table_cursor table; /* the table that is open */
    dp_buffer name;
    int threads;  /* that may decompress the open file */
    size_t units; /* there are, at a time */
} unit_source;

static void init_source(unit_source *source, const dp_input_job *job, int threads, size_t units) {
    memset(source, 0, sizeof *source);
    source->options = job->options;
    source->sizes = job->sizes;
    init_walk(&source->walk, job);
    dp_stream_init(&source->stream, job->options->stop);
    source->threads = threads;
    source->units = units;
    source->cutter.target = job->sizes->block;
    source->cutter.max_record = job->options->max_record;
}

static void free_source(unit_source *source) {
    free_walk(&source->walk);
    dp_stream_free(&source->stream);
    release_ranges(source->ranges);
    dp_table_cursor_free(&source->table);
    free_cutter(&source->cutter);
    dp_buffer_free(&source->name);
}

/* Adds a file's name; false when there is no memory, and then the unit has failed. */
static bool add_file(dp_unit *unit, const char *path) {
    unit->files++;
    return dp_buffer_add(&unit->names, path, strlen(path) + 1) || dp_unit_no_memory(unit);
}

/* The next block of the open file. */
static bool next_file_block(unit_source *source, dp_unit *unit) {
    record_cutter *cutter = &source->cutter;
    unit->kind = DP_UNIT_BLOCK;
    unit->format = cutter->format;
    if (!add_file(unit, source->name.data) || !fill_unit(unit, cutter))
        return false;
    unit->raw_bytes = unit->block.raw_bytes;
    if (cutter->ended) {
        if (source->stream.failed)
            memcpy(unit->failure, source->stream.failure, sizeof unit->failure);
        dp_stream_close(&source->stream);
        source->reading = false;
    }
    return true;
}

/* Hands the open file over to the unit, with what was read of it. */
static bool give_whole(unit_source *source, dp_unit *unit) {
    unit->kind = DP_UNIT_WHOLE;
    if (!set_block(unit, &source->cutter.rest))
        return false;
    dp_stream closed = unit->stream;
    unit->stream = source->stream;
    source->stream = closed;
    return true;
}

/* The next range of the file that is read by them; false when it has no more. */
static bool next_file_range(unit_source *source, dp_unit *unit) {
    unit->format = source->cutter.format;
    if (!give_range(source->ranges, source->next_range, unit)) {
        release_ranges(source->ranges);
        source->ranges = NULL;
        return false;
    }
    source->next_range++;
    return true;
}

/* The open file is read by ranges, of which the unit gets the first. If it is empty by now, the unit stays one of small
 * files. */
static bool begin_ranges(unit_source *source, dp_unit *unit) {
    source->ranges = create_ranges(&source->stream, source->sizes->block, source->units);
    if (!source->ranges)
        return dp_unit_no_memory(unit);
    source->stream.fd = -1; /* the ranges have it */
    source->next_range = 0;
    source->cutter.format = unit->format;
    next_file_range(source, unit);
    return true;
}

static bool is_table(const unit_source *source, const char *path) {
    const doppel_tables *tables = source->options->tables;
    return tables && tables->claims(path, tables->user);
}

/* The next part of the table that is open; false when it has no more. */
static bool next_table_part(unit_source *source, dp_unit *unit) {
    if (dp_table_next(&source->table, unit))
        return true;
    dp_table_batch_free(&unit->table);
    dp_table_cursor_free(&source->table);
    unit->kind = DP_UNIT_FILES;
    return false;
}

/* Opens a table, which is read part by part: the unit gets the first. */
static bool open_table(unit_source *source, dp_unit *unit) {
    unit->kind = DP_UNIT_TABLE;
    if (!dp_table_open(&source->table, source->options, source->name.data, source->file.size, unit))
        return unit->status == DOPPEL_OK;
    return next_table_part(source, unit);
}

/* Opens a big file. One that cannot be opened goes the way of the small ones, where that is found out again. */
static bool open_big(unit_source *source, dp_unit *unit) {
    const char *path = source->file.path;
    source->has_file = false;
    source->name.size = 0;
    if (!add_file(unit, path))
        return false;
    if (!dp_buffer_add(&source->name, path, strlen(path) + 1))
        return dp_unit_no_memory(unit);
    if (is_table(source, path))
        return open_table(source, unit);
    source->stream.threads = source->threads;
    if (!dp_stream_open(&source->stream, path)) {
        dp_stream_close(&source->stream);
        return true;
    }
    unit->format = dp_format_read(&source->stream, path, source->format, &source->cutter.rest);
    if (!unit->format)
        return dp_unit_no_memory(unit);
    if (!unit->format->end)
        return give_whole(source, unit);
    if (unit->format->lines && has_positions(&source->stream, path))
        return begin_ranges(source, unit);
    begin_cutter(&source->cutter, unit->format, &source->stream, path);
    source->reading = true;
    unit->names.size = unit->files = 0;
    return next_file_block(source, unit);
}

/* Whether the next file is there to look at; the walk is asked when it is not. */
static bool look(unit_source *source, dp_unit *unit) {
    if (!source->has_file && (source->has_file = next_file(&source->walk, &source->file)))
        source->files++;
    if (source->walk.no_memory)
        return dp_unit_no_memory(unit);
    return source->has_file;
}

static bool is_small(const unit_source *source) {
    return source->file.regular && source->file.size <= source->sizes->small_file &&
           !is_table(source, source->file.path);
}

/* Fills an empty unit; false at the end, or (unit->status) on failure. */
static bool next_unit(unit_source *source, dp_unit *unit) {
    uint64_t bytes = 0;
    unit->kind = DP_UNIT_FILES;
    unit->file_number = source->files;
    if (source->reading)
        return next_file_block(source, unit);
    if ((source->ranges && next_file_range(source, unit)) || (source->table.table && next_table_part(source, unit)))
        return add_file(unit, source->name.data);
    if (look(source, unit) && !is_small(source)) {
        unit->file_number = source->files;
        return open_big(source, unit);
    }
    while (look(source, unit) && is_small(source) && unit->files < source->sizes->batch_files &&
           bytes < source->sizes->block) {
        if (!add_file(unit, source->file.path))
            return false;
        unit->file_number = source->files - unit->files + 1;
        bytes += source->file.size;
        source->has_file = false;
    }
    return unit->files && unit->status == DOPPEL_OK;
}

/* With more files than this their sizes are not added up before the work: that would take seconds. */
#define TOTAL_FILES 20000

/* The bytes of all files, or 0 when there is stdin, a pipe or very many files among them. */
static uint64_t total_bytes(const dp_input_job *job) {
    path_walk walk;
    walk_file file;
    uint64_t total = 0, files = 0;
    init_walk(&walk, job);
    while (next_file(&walk, &file)) {
        if (!file.regular || ++files > TOTAL_FILES) {
            total = 0;
            break;
        }
        total += file.size;
    }
    free_walk(&walk);
    return total;
}

/* ---- the run ---- */

/* 512 KiB of lines are some 100 documents, so that locks cost nothing, and with the text taken out of them still fit
 * into the second-level cache. Files up to twice that are opened by the thread that reads them: opening is what costs
 * time with them. */
static const dp_input_sizes usual_sizes = {
    .block = (size_t)512 << 10, .small_file = (size_t)1 << 20, .batch_files = 128, .pending = (size_t)4 << 20};

/* Sums with it do not overflow. */
#define MOST_MAX_RECORD (SIZE_MAX / 4)

/* Documents that wait until the first records are judged hold no more memory than that. */
#define MOST_WAITING ((size_t)64 << 20)

typedef struct input_run {
    dp_input_job job;
    doppel_input_options options;
    const dp_format *format; /* that was asked for; NULL: none */
    size_t threads;
    pthread_mutex_t reading;
    unit_source source; /* by `reading`, as is the next */
    bool source_ended;
    uint64_t seen; /* of dp_reader, of all threads; by `reading` */
    uint64_t parts_seen;
    dp_ordered ordered; /* the units, in input order */
    dp_unit *units;     /* by slot */
    size_t unit_count;

    /* By the thread that is emitting: */
    doppel_input_counts counts;
    dp_refusal refusal;
    dp_buffer held; /* what is emitted once the first records were judged */
    uint64_t raw_bytes, total;
    uint64_t unread_file; /* the number of the last file that could not be read to its end, by ranges or parts */
} input_run;

/* ---- emitting, by one thread at a time and without a lock ---- */

/* Adds what the unit counted to the whole and clears it. */
static void add_counts(input_run *r, dp_unit *unit) {
    r->counts.documents += unit->counts.documents;
    r->counts.bytes += unit->counts.bytes;
    r->counts.bad += unit->counts.bad;
    r->counts.repaired += unit->counts.repaired;
    r->counts.unopened += unit->counts.unopened;
    r->raw_bytes += unit->raw_bytes;
    unit->raw_bytes = 0;
    memset(&unit->counts, 0, sizeof unit->counts);
}

/* Notes a file, unless it was noted last. */
static dp_input_file *note_file(dp_input_units *units, uint64_t number, const char *path) {
    if (units->file_count && units->files[units->file_count - 1].number == number)
        return &units->files[units->file_count - 1];
    if (!dp_reserve(&units->files, &units->file_capacity, units->file_count + 1, sizeof *units->files))
        return NULL;
    dp_input_file *file = &units->files[units->file_count];
    *file = (dp_input_file){.number = number, .path = strdup(path), .left_out = units->left_out_count};
    units->file_count += file->path != NULL;
    return file->path ? file : NULL;
}

/* The name of a file of a unit, by its number. */
static const char *name_of(const dp_unit *unit, uint64_t number) {
    const char *name = unit->names.data;
    for (uint64_t i = unit->file_number; i < number && unit->kind == DP_UNIT_FILES; i++)
        name += strlen(name) + 1;
    return name;
}

/* Notes the files of a unit, and the rows of a table that it left out. */
static bool note_files(dp_input_units *units, dp_unit *unit) {
    size_t rows = unit->left_out.size / sizeof *units->left_out;
    for (size_t i = 0; i < unit->file_count; i++) {
        uint64_t number = unit->file_counts[i].file;
        dp_input_file *file = note_file(units, number - 1, name_of(unit, number));
        if (!file)
            return false;
        file->table = unit->kind == DP_UNIT_TABLE;
        file->documents += unit->file_counts[i].documents;
    }
    if (!rows)
        return true;
    if (!dp_reserve(&units->left_out, &units->left_out_capacity, units->left_out_count + rows, sizeof *units->left_out))
        return false;
    memcpy(units->left_out + units->left_out_count, unit->left_out.data, unit->left_out.size);
    units->left_out_count += rows;
    unit->left_out.size = 0;
    return true;
}

/* Notes the number of the unit's first document, when it emits for the first time, and where there are tables what was
 * read since. */
static doppel_status note_unit(const input_run *r, dp_unit *unit) {
    dp_input_units *units = r->job.units;
    if (!units)
        return DOPPEL_OK;
    if (r->options.tables && !note_files(units, unit))
        return DOPPEL_ERROR_MEMORY;
    if (unit->number < units->count)
        return DOPPEL_OK;
    if (!dp_reserve(&units->first, &units->capacity, units->count + 1, sizeof *units->first))
        return DOPPEL_ERROR_MEMORY;
    units->first[units->count++] = r->counts.documents;
    return DOPPEL_OK;
}

void dp_input_units_free(dp_input_units *units) {
    for (size_t i = 0; i < units->file_count; i++)
        free(units->files[i].path);
    free(units->files);
    free(units->left_out);
    free(units->first);
    *units = (dp_input_units){0};
}

/* Sets the numbers of the unit's documents, if they are known. */
static void set_numbers(const input_run *r, dp_unit *unit) {
    if (!r->job.numbered)
        return;
    const dp_input_units *units = r->job.numbered->units;
    if (unit->number >= units->count) {
        dp_unit_changed(unit);
        return;
    }
    size_t after = (size_t)unit->number + 1;
    unit->next_document = units->first[unit->number];
    unit->after_document = after < units->count ? units->first[after] : units->documents;
}

/* Gives the caller what was written. */
static doppel_status give(input_run *r, dp_buffer *bytes) {
    doppel_status status = DOPPEL_OK;
    if (bytes->size && r->job.work->emit)
        status = r->job.work->emit(r->job.work->user, (doppel_slice){bytes->data, bytes->size});
    bytes->size = 0;
    return status;
}

/* Judges the first records, or all of them; what was held goes out if they are good. */
static doppel_status judge(input_run *r, bool all) {
    DP_TRY(dp_refusal_check(&r->refusal, all));
    return give(r, &r->held);
}

/* Whether as many records were read as are judged before anything is done with them. */
static bool has_first(const input_run *r) {
    return r->refusal.first_documents + r->refusal.first_bad >= r->options.judge_first || r->held.size > MOST_WAITING;
}

/* Gives what the unit has, or holds it until the first records are judged. */
static doppel_status give_unit(input_run *r, dp_unit *unit) {
    bool first = r->options.refuse_bad && r->options.judge_first && !r->refusal.first;
    dp_buffer *bytes = &unit->output.bytes;
    doppel_status status = DOPPEL_OK;
    if (!first || !r->options.judge_holds)
        status = give(r, bytes);
    else if (bytes->size && !dp_buffer_add(&r->held, bytes->data, bytes->size))
        status = DOPPEL_ERROR_MEMORY;
    bytes->size = 0;
    dp_refusal_take(&r->refusal, unit);
    return status == DOPPEL_OK && first && has_first(r) ? judge(r, false) : status;
}

/* Emits what a unit has (dp_emit). */
static doppel_status emit(void *user, size_t slot, bool finished, doppel_error *error) {
    input_run *r = user;
    dp_unit *unit = &r->units[slot];
    /* A file ends where it cannot be read. */
    bool in_parts = unit->kind == DP_UNIT_RANGE || unit->kind == DP_UNIT_TABLE;
    if (in_parts && unit->file_number == r->unread_file)
        forget_unit(unit);
    else if (in_parts && finished && (unit->failure[0] || (unit->kind == DP_UNIT_TABLE && unit->counts.unopened)))
        r->unread_file = unit->file_number;
    doppel_status status = note_unit(r, unit);
    DP_THEN(status, give_unit(r, unit));
    bool reported = status == DOPPEL_OK || r->refusal.refused;
    for (size_t i = 0; i < unit->report_count && reported && r->options.bad; i++)
        r->options.bad(&unit->reports[i], r->options.user);
    unit->report_count = 0;
    add_counts(r, unit);
    if (r->options.progress)
        r->options.progress(r->raw_bytes, r->total, r->counts.documents, r->options.user);
    if (r->refusal.refused) {
        *error = r->refusal.error;
    } else if (status == DOPPEL_OK && finished && unit->status != DOPPEL_OK) {
        *error = unit->error;
        status = unit->status;
    }
    return status;
}

/* A unit that is still being worked on emits what it has so far, in its turn. */
static void flush(void *user, dp_unit *unit) {
    input_run *r = user;
    doppel_status status = dp_ordered_flush(&r->ordered, unit->number);
    if (unit->status == DOPPEL_OK)
        unit->status = status;
}

/* ---- threads ---- */

/* The next unit of work, read; NULL when there is none. Under `reading`. */
static dp_unit *take_unit(input_run *r) {
    size_t slot;
    if (r->source_ended || !dp_ordered_wait(&r->ordered, &slot))
        return NULL;
    if (dp_stopped(r->options.stop)) {
        dp_ordered_fail(&r->ordered, DOPPEL_ERROR_INTERRUPTED, NULL);
        return NULL;
    }
    dp_unit *unit = &r->units[slot];
    reset_unit(unit, r->job.sizes->block);
    r->source_ended = !next_unit(&r->source, unit);
    if (r->source_ended && unit->status == DOPPEL_OK)
        return NULL;
    unit->number = dp_ordered_take(&r->ordered);
    set_numbers(r, unit);
    return unit;
}

static void read_documents(input_run *r, dp_reader *reader) {
    record_cutter cutter = {.target = reader->sizes->block, .max_record = reader->options->max_record};
    for (;;) {
        pthread_mutex_lock(&r->reading);
        dp_unit *unit = take_unit(r);
        r->seen |= reader->seen;
        r->parts_seen |= reader->parts_seen;
        pthread_mutex_unlock(&r->reading);
        if (!unit)
            break;
        read_unit(reader, unit, &cutter);
        if (reader->numbered && unit->next_document != unit->after_document && !dp_reader_stopped(reader, unit))
            dp_unit_changed(unit);
        dp_ordered_finish(&r->ordered, unit->number);
    }
    free_cutter(&cutter);
}

/* `options`, `work`, `sizes`, `flush` and `run` are set by the caller, the rest is zero. False: no memory. */
static bool init_reader(dp_reader *reader) {
    dp_fields_init(reader);
    reader->decoder.limit = reader->options->max_record;
    reader->json = dp_json_create();
    return reader->json != NULL;
}

static void free_reader(dp_reader *reader) {
    dp_json_free(reader->json);
    dp_buffer_free(&reader->text);
    dp_buffer_free(&reader->joined);
    dp_buffer_free(&reader->repaired);
    dp_buffer_free(&reader->id);
    for (size_t i = 0; i < DP_SPARE; i++)
        dp_buffer_free(&reader->spare[i]);
    dp_body_decoder_free(&reader->decoder);
    free(reader->range.data);
    free(reader->starts);
}

static void run_thread(void *user, size_t thread) {
    (void)thread;
    input_run *r = user;
    const doppel_work *w = r->job.work;
    dp_reader reader = {.options = &r->options,
                        .work = w,
                        .sizes = r->job.sizes,
                        .numbered = r->job.numbered,
                        .format = r->format,
                        .flush = flush,
                        .run = r};
    doppel_status status = init_reader(&reader) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    reader.state = w->user;
    if (w->begin)
        DP_THEN(status, w->begin(w->user, &reader.state));
    if (status == DOPPEL_OK) {
        read_documents(r, &reader);
        if (w->begin && w->end)
            w->end(w->user, reader.state);
    } else {
        dp_ordered_fail(&r->ordered, status, NULL);
    }
    free_reader(&reader);
}

/* ---- the call ---- */

/* Copies as much of the options as the caller knows of, and sets defaults. */
static void set_options(input_run *r, const doppel_input_options *given) {
    if (given)
        dp_copy_options(&r->options, given, sizeof r->options);
    if (!r->options.max_record)
        r->options.max_record = USUAL_MAX_RECORD;
    if (r->options.max_record > MOST_MAX_RECORD)
        r->options.max_record = MOST_MAX_RECORD;
    r->job.options = &r->options;
    r->refusal.options = &r->options;
    if (!r->job.sizes)
        r->job.sizes = &usual_sizes;
}

/* Errors: DOPPEL_ERROR_MEMORY. */
static doppel_status create_units(input_run *r) {
    r->units = calloc(r->unit_count, sizeof *r->units);
    if (!r->units)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < r->unit_count; i++)
        dp_stream_init(&r->units[i].stream, r->options.stop);
    return dp_ordered_init(&r->ordered, r->unit_count, emit, r);
}

static void free_run(input_run *r) {
    for (size_t i = 0; r->units && i < r->unit_count; i++)
        free_unit(&r->units[i]);
    free(r->units);
    free_source(&r->source);
    free(r->refusal.file.hint);
    free(r->refusal.all.hint);
    dp_buffer_free(&r->held);
    pthread_mutex_destroy(&r->reading);
}

static void tell_part(const doppel_input_options *o, doppel_slice name) {
    char *key = strndup(name.data, name.length);
    if (key)
        o->unseen(key, o->user);
    free(key);
}

/* Names the keys that were asked for and that no record has; of several in one, those of them. */
static void tell_unseen(const input_run *r) {
    size_t part = 0; /* as dp_fields_init numbers them */
    const doppel_input_options *o = &r->options;
    const char *keys[DP_FIELDS] = {o->id_key, o->url_key, o->title_key, o->text_key, o->html_key};
    if (!o->unseen || !(r->seen & DP_SEEN_RECORD))
        return;
    for (size_t i = 0; i < DP_FIELDS + o->extra_count; i++) {
        const char *key = i < DP_FIELDS ? keys[i] : o->extra_keys[i - DP_FIELDS];
        bool seen = r->seen >> i & 1;
        if (key && !seen)
            o->unseen(key, o->user);
        for (const char *rest = key && strpbrk(key, ".,") ? key : ""; *rest;) {
            doppel_slice name = dp_key_next_part(&rest);
            if (name.length && !(r->parts_seen >> part++ & 1) && seen)
                tell_part(o, name);
        }
    }
}

/* Everything was read: there were as many units as in the run before, if there was one. */
static doppel_status check_units(const input_run *r, doppel_error *error) {
    if (r->job.units)
        r->job.units->documents = r->counts.documents;
    if (r->job.numbered && r->ordered.taken != r->job.numbered->units->count)
        return dp_fail(error, DOPPEL_ERROR_INPUT, "%s", DP_WHY_CHANGED);
    return DOPPEL_OK;
}

/* Reads everything; gives how it went, and frees r->ordered. */
static doppel_status run_all(input_run *r, doppel_error *error) {
    dp_run_threads(r->threads, run_thread, r);
    if (dp_stopped(r->options.stop))
        dp_ordered_fail(&r->ordered, DOPPEL_ERROR_INTERRUPTED, NULL);
    if (!dp_ordered_over(&r->ordered)) {
        doppel_error why = {0};
        doppel_status status = judge(r, true);
        if (r->refusal.refused)
            why = r->refusal.error;
        DP_THEN(status, check_units(r, &why));
        if (status != DOPPEL_OK)
            dp_ordered_fail(&r->ordered, status, &why);
        else
            tell_unseen(r);
    }
    return dp_ordered_end(&r->ordered, error);
}

doppel_status dp_input_run(const dp_input_job *job, doppel_input_counts *counts, doppel_error *error) {
    input_run r = {.job = *job};
    set_options(&r, job->options);
    if (counts)
        *counts = r.counts;
    if (r.options.extra_count > DP_EXTRA)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "more than %d extra keys", DP_EXTRA);
    if (!dp_fields_init(&(dp_reader){.options = &r.options}))
        return dp_fail(error, DOPPEL_ERROR_USAGE, DP_WHY_NAMES);
    DP_TRY(dp_format_find(&r.options, &r.format, error));
    if (r.format)
        r.options.tables = NULL;
    pthread_mutex_init(&r.reading, NULL);
    r.threads = dp_thread_count(r.options.threads);
    r.unit_count = 2 * r.threads;
    init_source(&r.source, &r.job, (int)r.threads, r.unit_count);
    r.source.format = r.format;
    if (r.options.progress)
        r.total = total_bytes(&r.job);
    doppel_status status = create_units(&r) == DOPPEL_OK ? run_all(&r, error) : dp_no_memory(error);
    if (counts)
        *counts = r.counts;
    free_run(&r);
    return status;
}

doppel_status doppel_input_run(const char *const *paths, size_t path_count, const doppel_input_options *options,
                               const doppel_work *work_to_do, doppel_input_counts *counts, doppel_error *error) {
    dp_input_job job = {.paths = paths, .path_count = path_count, .options = options, .work = work_to_do};
    return dp_input_run(&job, counts, error);
}
