/* reader.c - how bytes become documents: a stream cut into blocks of whole records, units of work and their results,
 * and the documents of a unit. The formats do the reading; here is what they have in common. */
#include "input/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- blocks of records ---- */

/* What a record may have beside its own bytes: line ends, at most. */
#define SLACK 16

/* Makes room for `need` bytes and the padding; false when there is no memory. */
static bool reserve_block(dp_record_block *block, size_t need) {
    return dp_reserve(&block->data, &block->capacity, need + DP_JSON_PADDING, 1);
}

/* Empties a block; gives the memory back if it is much more than `target`. */
void dp_block_reset(dp_record_block *block, size_t target) {
    dp_record_block kept = {.data = block->data, .capacity = block->capacity};
    /* A block holds up to twice its target without growing again. */
    if (kept.capacity > 4 * target + DP_JSON_PADDING) {
        free(kept.data);
        kept.data = NULL;
        kept.capacity = 0;
    }
    *block = kept;
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

static void look(dp_cutter *cutter, const dp_record_block *block, found *whole) {
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
static bool cut(dp_cutter *cutter, dp_record_block *block, const found *whole) {
    cutter->rest.size = 0;
    if (!dp_buffer_add(&cutter->rest, block->data + whole->size, block->size - whole->size))
        return false;
    block->size = whole->size;
    cutter->line += numbers(cutter, block->data, whole->size, whole->records);
    return true;
}

/* Drops what was seen of a record that is too long. */
static void drop(dp_cutter *cutter, dp_record_block *block) {
    size_t seen = cutter->mark.seen;
    cutter->line += numbers(cutter, block->data, seen, 0);
    memmove(block->data, block->data + seen, block->size - seen);
    block->size -= seen;
    cutter->mark.seen = 0;
}

/* Passes over the rest of a record that is too long; the block's memory serves to read it. */
static bool skip(dp_cutter *cutter, dp_record_block *block) {
    block->long_line = cutter->line;
    for (;;) {
        drop(cutter, block);
        size_t got = 1, length = block->size ? cutter->format->end(&cutter->mark, block->data, block->size) : 0;
        if (!length) {
            if (!reserve_block(block, block->size + cutter->target))
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
static void finish(dp_cutter *cutter, dp_record_block *block, const found *whole) {
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
static size_t make_room(const dp_cutter *cutter, dp_record_block *block) {
    size_t want = block->size < cutter->target ? cutter->target : block->size * 2;
    size_t most = cutter->max_record + SLACK + 1;
    if (want > most && most > cutter->target && most > block->size)
        want = most;
    return reserve_block(block, want) ? want - block->size : 0;
}

/* Reads until the block is full and has a whole record. */
static bool fill(dp_cutter *cutter, dp_record_block *block) {
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
static bool take_header(dp_cutter *cutter, dp_record_block *block) {
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

bool dp_cutter_next(dp_cutter *cutter, dp_record_block *block) {
    size_t held = cutter->rest.size;
    if (cutter->ended || !reserve_block(block, held > cutter->target ? held : cutter->target))
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

/* ---- units of work ---- */

void dp_unit_fail(dp_unit *unit, doppel_status code, const char *file, uint64_t line, const char *message) {
    if (unit->status == DOPPEL_OK)
        unit->status = dp_fail_at(&unit->error, code, file, line, "%s", message);
}

bool dp_unit_no_memory(dp_unit *unit) {
    dp_unit_fail(unit, DOPPEL_ERROR_MEMORY, "", 0, "no memory");
    return false;
}

void dp_unit_report(dp_unit *unit, doppel_status code, const char *file, uint64_t line, const char *format, ...) {
    if (!dp_reserve(&unit->reports, &unit->report_capacity, unit->report_count + 1, sizeof *unit->reports)) {
        dp_unit_no_memory(unit);
        return;
    }
    char message[sizeof unit->reports->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    dp_fail_at(&unit->reports[unit->report_count++], code, file, line, "%s", message);
}

bool dp_unit_set_block(dp_unit *unit, const dp_buffer *bytes) {
    if (!reserve_block(&unit->block, bytes->size))
        return dp_unit_no_memory(unit);
    if (bytes->size)
        memcpy(unit->block.data, bytes->data, bytes->size);
    unit->block.size = bytes->size;
    return true;
}

bool dp_unit_next_block(dp_unit *unit, dp_cutter *cutter) {
    unit->header.size = 0;
    return (dp_cutter_next(cutter, &unit->block) &&
            dp_buffer_add(&unit->header, cutter->header.data, cutter->header.size)) ||
           dp_unit_no_memory(unit);
}

/* Begins to count for a file; false when there is no memory, and then the unit has failed. */
static bool begin_file(dp_unit *unit, uint64_t number) {
    if (!dp_reserve(&unit->file_counts, &unit->file_room, unit->file_count + 1, sizeof *unit->file_counts))
        return dp_unit_no_memory(unit);
    unit->file_counts[unit->file_count++] = (dp_file_counts){.file = number};
    return true;
}

/* ---- what the work writes ---- */

doppel_status doppel_output_write(doppel_output *output, doppel_slice bytes) {
    return dp_buffer_add(&output->bytes, bytes.data, bytes.length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

doppel_status doppel_output_json(doppel_output *output, doppel_slice bytes) {
    return dp_json_add(&output->bytes, bytes.data, bytes.length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* ---- for the formats ---- */

/* With `strict`, what was reported last ends the run. */
static void end_if_strict(const dp_reader *reader, dp_unit *unit) {
    if (!reader->options->strict || !unit->report_count)
        return;
    const doppel_error *last = &unit->reports[unit->report_count - 1];
    dp_unit_fail(unit, DOPPEL_ERROR_INPUT, last->file, last->line, last->message);
}

/* A unit that holds much waits for its turn and emits it. */
static void flush_if_full(const dp_reader *reader, dp_unit *unit) {
    size_t pending = reader->sizes->pending;
    if (unit->output.bytes.size > pending || unit->report_count > pending / 1000)
        reader->flush(reader->run, unit);
}

static void note_first(dp_first *first, bool bad) {
    if (first->count == DP_FIRST)
        return;
    if (first->count % 64 == 0)
        first->bad[first->count / 64] = 0;
    first->bad[first->count / 64] |= (uint64_t)bad << first->count % 64;
    first->count++;
}

bool dp_reader_bad_record(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const char *why) {
    unit->counts.bad++;
    dp_unit_report(unit, DOPPEL_ERROR_INPUT, at->file, at->line, "%s", why);
    if (unit->report_count)
        dp_counts_bad(dp_unit_counts(unit), &unit->reports[unit->report_count - 1]);
    note_first(&unit->first, true);
    end_if_strict(reader, unit);
    flush_if_full(reader, unit);
    return false;
}

void dp_reader_bad_file(const dp_reader *reader, dp_unit *unit, const char *file, const char *why) {
    unit->counts.unopened++;
    dp_unit_report(unit, DOPPEL_ERROR_IO, file, 0, "%s", why);
    end_if_strict(reader, unit);
}

static void breaks_off(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    char why[80];
    snprintf(why, sizeof why, "the file breaks off within this %s", unit->format->record);
    dp_reader_bad_record(reader, unit, at, why);
}

bool dp_reader_too_long(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    char why[120];
    snprintf(why, sizeof why, "longer than the limit of %zu bytes; --max-record sets it", reader->options->max_record);
    return dp_reader_bad_record(reader, unit, at, why);
}

bool dp_reader_stopped(const dp_reader *reader, const dp_unit *unit) {
    return unit->status != DOPPEL_OK || dp_stopped(reader->options->stop);
}

bool dp_reader_make_id(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_document *document) {
    reader->id.size = 0;
    document->id.data = "";
    document->id.length = 0;
    if (reader->options->no_made_ids)
        return true;
    if (!dp_buffer_printf(&reader->id, "%s:%llu", at->file, (unsigned long long)at->line))
        return dp_unit_no_memory(unit);
    document->id.data = reader->id.data;
    document->id.length = reader->id.size;
    return true;
}

doppel_document dp_reader_document(dp_reader *reader, const dp_raw_record *at) {
    /* What comes on stdin has no name. */
    const char *id = reader->options->no_made_ids && !strcmp(at->file, "-") ? "" : at->file;
    memset(reader->extra, 0, sizeof reader->extra);
    return (doppel_document){.id.data = id,
                             .id.length = strlen(id),
                             .text.data = "",
                             .file = at->file,
                             .line = at->line,
                             .extra = reader->extra};
}

void dp_reader_give(dp_reader *reader, dp_unit *unit, const doppel_document *document) {
    size_t before = unit->output.bytes.size;
    unit->counts.documents++;
    dp_unit_counts(unit)->documents++;
    note_first(&unit->first, false);
    doppel_status status = reader->work->document(reader->state, document, &unit->output);
    if (status != DOPPEL_OK) {
        unit->output.bytes.size = before; /* half of a document is no use to anyone */
        dp_unit_fail(unit, status, document->file, document->line, doppel_status_name(status));
    }
    flush_if_full(reader, unit);
}

/* ---- the documents of a unit ---- */

static void set_key(dp_json_field *field, const char *key, const char *usual) {
    field->key = key ? key : usual;
    field->key_length = strlen(field->key);
}

void dp_fields_init(const doppel_input_options *options, dp_json_field fields[DP_FIELDS + DP_EXTRA]) {
    set_key(&fields[DP_FIELD_ID], options->id_key, "id");
    set_key(&fields[DP_FIELD_URL], options->url_key, "url");
    set_key(&fields[DP_FIELD_TITLE], options->title_key, "title");
    set_key(&fields[DP_FIELD_TEXT], options->text_key, "text");
    set_key(&fields[DP_FIELD_HTML], options->html_key, "html");
    for (size_t i = 0; i < options->extra_count; i++)
        set_key(&fields[DP_FIELDS + i], options->extra_keys[i], "");
}

bool dp_reader_init(dp_reader *reader) {
    dp_fields_init(reader->options, reader->fields);
    reader->decoder.limit = reader->cutter.max_record = reader->options->max_record;
    reader->cutter.target = reader->sizes->block;
    reader->json = dp_json_create();
    return reader->json != NULL;
}

void dp_reader_free(dp_reader *reader) {
    dp_json_free(reader->json);
    dp_buffer_free(&reader->text);
    dp_buffer_free(&reader->repaired);
    dp_buffer_free(&reader->id);
    for (size_t i = 0; i < DP_SPARE; i++)
        dp_buffer_free(&reader->spare[i]);
    dp_cutter_free(&reader->cutter);
    dp_body_decoder_free(&reader->decoder);
}

/* The records of a block, and what is to be said of those behind it. */
static void read_block(dp_reader *reader, dp_unit *unit, const char *file) {
    const dp_record_block *block = &unit->block;
    dp_raw_record at = {.file = file};
    unit->counts.bytes += block->size;
    dp_unit_counts(unit)->records = true;
    unit->format->read(reader, unit, file);
    if (block->long_line && !dp_reader_stopped(reader, unit)) {
        at.line = block->long_line;
        dp_reader_too_long(reader, unit, &at);
    }
    if (block->cut_line && !dp_reader_stopped(reader, unit)) {
        at.line = block->cut_line;
        breaks_off(reader, unit, &at);
    }
}

/* Reads the rest of the file behind what the block has of it, up to one byte more than a record may have. */
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
    if (!read_rest(reader, unit) || dp_reader_stopped(reader, unit))
        return;
    unit->counts.bytes += block->size;
    if (unit->stream.failed)
        dp_reader_bad_file(reader, unit, file, unit->stream.failure);
    else if (block->size > reader->options->max_record)
        dp_reader_too_long(reader, unit, &(dp_raw_record){.file = file});
    else
        unit->format->read(reader, unit, file);
}

static void read_small_records(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_cutter *cutter = &reader->cutter;
    dp_cutter_begin(cutter, unit->format, &unit->stream);
    while (!cutter->ended && !dp_reader_stopped(reader, unit)) {
        unit->block.size = 0;
        unit->block.long_line = unit->block.cut_line = 0;
        if (!dp_unit_next_block(unit, cutter))
            return;
        read_block(reader, unit, file);
    }
    if (unit->stream.failed && !dp_reader_stopped(reader, unit))
        dp_reader_bad_file(reader, unit, file, unit->stream.failure);
}

/* A file that cannot be opened may be a pattern. */
static const char *why_unopened(const char *file, const dp_stream *stream) {
    return strpbrk(file, "*?[") && access(file, F_OK) ? "no file matches this pattern" : stream->failure;
}

static void read_file(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_stream *stream = &unit->stream;
    dp_buffer *head = &reader->cutter.rest;
    if (!dp_stream_open(stream, file))
        dp_reader_bad_file(reader, unit, file, why_unopened(file, stream));
    else if (!(unit->format = dp_format_read(stream, file, head)))
        dp_unit_no_memory(unit);
    else if (unit->format->end)
        read_small_records(reader, unit, file);
    else if (dp_unit_set_block(unit, head))
        read_whole(reader, unit, file);
    unit->raw_bytes += stream->raw_bytes;
    dp_stream_close(stream);
    dp_block_reset(&unit->block, reader->sizes->block);
}

void dp_reader_run(dp_reader *reader, dp_unit *unit) {
    const char *file = unit->names.data;
    if (unit->kind != DP_UNIT_FILES && !begin_file(unit, unit->file_number))
        return;
    if (unit->kind == DP_UNIT_BLOCK) {
        read_block(reader, unit, file);
        if (unit->failure[0] && !dp_reader_stopped(reader, unit))
            dp_reader_bad_file(reader, unit, file, unit->failure);
    } else if (unit->kind == DP_UNIT_WHOLE) {
        read_whole(reader, unit, file);
        unit->raw_bytes += unit->stream.raw_bytes;
    } else {
        for (size_t i = 0; i < unit->files && !dp_reader_stopped(reader, unit); i++, file += strlen(file) + 1)
            if (begin_file(unit, unit->file_number + i))
                read_file(reader, unit, file);
    }
}
