/* reader.c - the documents of a unit: blocks of big files, whole big files, small files. The formats do the reading;
 * here is what they have in common. */
#include "input/reader.h"

#include <stdio.h>
#include <unistd.h>

static void set_key(dp_json_field *field, const char *key, const char *usual) {
    field->key = key ? key : usual;
    field->key_length = strlen(field->key);
}

bool dp_reader_init(dp_reader *reader) {
    const doppel_input_options *options = reader->options;
    set_key(&reader->fields[DP_FIELD_ID], options->id_key, "id");
    set_key(&reader->fields[DP_FIELD_URL], options->url_key, "url");
    set_key(&reader->fields[DP_FIELD_TITLE], options->title_key, "title");
    set_key(&reader->fields[DP_FIELD_TEXT], options->text_key, "text");
    set_key(&reader->fields[DP_FIELD_HTML], options->html_key, "html");
    for (size_t i = 0; i < options->extra_count; i++)
        set_key(&reader->fields[DP_FIELDS + i], options->extra_keys[i], "");
    reader->decoder.limit = options->max_record;
    reader->cutter.target = reader->sizes->block;
    reader->cutter.max_record = options->max_record;
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
    dp_http_decoder_free(&reader->decoder);
}

bool dp_reader_no_memory(dp_unit *unit) {
    dp_unit_fail(unit, DOPPEL_ERROR_MEMORY, "", 0, "no memory");
    return false;
}

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

bool dp_reader_bad_record(const dp_reader *reader, dp_unit *unit, const dp_place *at, const char *why) {
    unit->counts.bad++;
    dp_unit_report(unit, DOPPEL_ERROR_INPUT, at->file, at->line, "%s", why);
    if (unit->report_count)
        dp_tally_bad(dp_unit_tally(unit), &unit->reports[unit->report_count - 1]);
    dp_first_add(&unit->first, true);
    end_if_strict(reader, unit);
    flush_if_full(reader, unit);
    return false;
}

void dp_reader_bad_file(const dp_reader *reader, dp_unit *unit, const char *file, const char *why) {
    unit->counts.unopened++;
    dp_unit_report(unit, DOPPEL_ERROR_IO, file, 0, "%s", why);
    end_if_strict(reader, unit);
}

static void breaks_off(const dp_reader *reader, dp_unit *unit, const dp_place *at) {
    char why[80];
    snprintf(why, sizeof why, "the file breaks off within this %s", unit->format->record);
    dp_reader_bad_record(reader, unit, at, why);
}

void dp_reader_cut_off(const dp_reader *reader, dp_unit *unit, const dp_place *at) {
    breaks_off(reader, unit, at);
    dp_reader_bad_file(reader, unit, at->file, "cut short");
}

bool dp_reader_too_long(const dp_reader *reader, dp_unit *unit, const dp_place *at) {
    char why[120];
    snprintf(why, sizeof why, "longer than the limit of %zu bytes; --max-record sets it", reader->options->max_record);
    return dp_reader_bad_record(reader, unit, at, why);
}

bool dp_reader_stopped(const dp_reader *reader, const dp_unit *unit) {
    return unit->status != DOPPEL_OK || dp_stop_asked(reader->options->stop);
}

/* ---- documents ---- */

bool dp_reader_make_id(dp_reader *reader, dp_unit *unit, const dp_place *at, doppel_document *document) {
    reader->id.size = 0;
    document->id = "";
    document->id_length = 0;
    if (reader->options->no_made_ids)
        return true;
    if (!dp_buffer_printf(&reader->id, "%s:%llu", at->file, (unsigned long long)at->line))
        return dp_reader_no_memory(unit);
    document->id = reader->id.data;
    document->id_length = reader->id.size;
    return true;
}

doppel_document dp_reader_document(dp_reader *reader, const dp_place *at) {
    /* What comes on stdin has no name. */
    const char *id = reader->options->no_made_ids && !strcmp(at->file, "-") ? "" : at->file;
    memset(reader->extra, 0, sizeof reader->extra);
    return (doppel_document){
        .id = id, .id_length = strlen(id), .text = "", .file = at->file, .line = at->line, .extra = reader->extra};
}

void dp_reader_give(dp_reader *reader, dp_unit *unit, const doppel_document *document) {
    size_t before = unit->output.bytes.size;
    unit->counts.documents++;
    dp_unit_tally(unit)->documents++;
    dp_first_add(&unit->first, false);
    doppel_status status = reader->work->document(reader->state, document, &unit->output);
    if (status != DOPPEL_OK) {
        unit->output.bytes.size = before; /* half of a document is no use to anyone */
        dp_unit_fail(unit, status, document->file, document->line, doppel_status_name(status));
    }
    flush_if_full(reader, unit);
}

/* ---- blocks ---- */

/* The records of a block, and what is to be said of those behind it. */
static void read_block(dp_reader *reader, dp_unit *unit, const char *file) {
    const dp_block *block = &unit->block;
    dp_place at = {.file = file};
    unit->counts.bytes += block->size;
    dp_unit_tally(unit)->records = true;
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

/* ---- whole files ---- */

/* Reads the rest of the file behind what the block has of it, up to one byte more than a record may have. */
static bool read_rest(dp_reader *reader, dp_unit *unit) {
    dp_block *block = &unit->block;
    dp_stream *stream = &unit->stream;
    size_t limit = reader->options->max_record, got = 1;
    uint64_t expected = stream->size - (stream->raw_bytes < stream->size ? stream->raw_bytes : stream->size);
    while (got && block->size <= limit) {
        size_t want = (size_t)expected + 1 > limit - block->size ? limit - block->size + 1 : (size_t)expected + 1;
        if (want < 4096)
            want = 4096;
        if (!dp_block_reserve(block, block->size + want))
            return dp_reader_no_memory(unit);
        got = dp_stream_read(stream, block->data + block->size, want);
        block->size += got;
        /* Where the size is not known, or wrong, the room doubles. */
        expected = expected > got ? expected - got : expected ? 0 : (uint64_t)block->size;
    }
    return true;
}

static void read_whole(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_block *block = &unit->block;
    if (!read_rest(reader, unit) || dp_reader_stopped(reader, unit))
        return;
    unit->counts.bytes += block->size;
    if (unit->stream.failed)
        dp_reader_bad_file(reader, unit, file, unit->stream.failure);
    else if (block->size > reader->options->max_record)
        dp_reader_too_long(reader, unit, &(dp_place){.file = file});
    else
        unit->format->read(reader, unit, file);
}

/* ---- small files ---- */

static void read_small_records(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_cutter *cutter = &reader->cutter;
    dp_cutter_begin(cutter, unit->format, &unit->stream);
    while (!cutter->ended && !dp_reader_stopped(reader, unit)) {
        unit->block.size = 0;
        unit->block.long_line = unit->block.cut_line = 0;
        if (!dp_cutter_next(cutter, &unit->block) || !dp_unit_set_header(unit, &cutter->header)) {
            dp_reader_no_memory(unit);
            return;
        }
        read_block(reader, unit, file);
    }
    if (unit->stream.failed && !dp_reader_stopped(reader, unit))
        dp_reader_bad_file(reader, unit, file, unit->stream.failure);
}

/* A small file that is one document, of which `head` was read. */
static void read_small_whole(dp_reader *reader, dp_unit *unit, const char *file, const dp_buffer *head) {
    if (!dp_block_reserve(&unit->block, head->size)) {
        dp_reader_no_memory(unit);
        return;
    }
    memcpy(unit->block.data, head->data, head->size);
    unit->block.size = head->size;
    read_whole(reader, unit, file);
}

/* A file that cannot be opened may be a pattern. */
static const char *why_unopened(const char *file, const dp_stream *stream) {
    return dp_walk_is_pattern(file) && access(file, F_OK) ? "no file matches this pattern" : stream->failure;
}

static void read_file(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_stream *stream = &unit->stream;
    dp_buffer *head = &reader->cutter.rest;
    if (!dp_stream_open(stream, file))
        dp_reader_bad_file(reader, unit, file, why_unopened(file, stream));
    else if (!(unit->format = dp_format_read(stream, file, head)))
        dp_reader_no_memory(unit);
    else if (unit->format->end)
        read_small_records(reader, unit, file);
    else
        read_small_whole(reader, unit, file, head);
    unit->raw_bytes += stream->raw_bytes;
    dp_stream_close(stream);
    dp_block_reset(&unit->block, reader->sizes->block);
}

void dp_reader_run(dp_reader *reader, dp_unit *unit) {
    const char *file = unit->names.data;
    if (unit->kind != DP_UNIT_FILES && !dp_unit_begin_file(unit, unit->file_number))
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
            if (dp_unit_begin_file(unit, unit->file_number + i))
                read_file(reader, unit, file);
    }
}
