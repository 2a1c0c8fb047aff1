/* reader.c - the documents of a unit: blocks of lines, whole small files, plain files. */
#include "input/reader.h"

#include <stdio.h>

/* A NUL in the first bytes of a plain file says that it is not text. */
#define BINARY_LOOK ((size_t)8 << 10)

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
    reader->lines.target = reader->sizes->block;
    reader->lines.max_line = options->max_record;
    reader->json = dp_json_create();
    return reader->json != NULL;
}

void dp_reader_free(dp_reader *reader) {
    dp_json_free(reader->json);
    dp_buffer_free(&reader->text);
    dp_buffer_free(&reader->repaired);
    dp_buffer_free(&reader->id);
    dp_buffer_free(&reader->lines.rest);
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

bool dp_reader_bad_record(const dp_reader *reader, dp_unit *unit, const dp_place *at, const char *why) {
    unit->counts.bad++;
    dp_unit_report(unit, DOPPEL_ERROR_INPUT, at->file, at->line, "%s", why);
    end_if_strict(reader, unit);
    return false;
}

/* A file could not be read to its end. */
static void bad_file(const dp_reader *reader, dp_unit *unit, const char *file, const char *why) {
    unit->counts.unopened++;
    dp_unit_report(unit, DOPPEL_ERROR_IO, file, 0, "%s", why);
    end_if_strict(reader, unit);
}

static bool too_long(const dp_reader *reader, dp_unit *unit, const dp_place *at) {
    char why[120];
    snprintf(why, sizeof why, "longer than the limit of %zu bytes; --max-record sets it", reader->options->max_record);
    return dp_reader_bad_record(reader, unit, at, why);
}

void dp_reader_give(dp_reader *reader, dp_unit *unit, const doppel_document *document) {
    unit->counts.documents++;
    doppel_status status = reader->work->document(reader->state, document, &unit->output);
    if (status != DOPPEL_OK)
        dp_unit_fail(unit, status, document->file, document->line, doppel_status_name(status));
    if (unit->output.bytes.size > reader->sizes->pending)
        reader->flush(reader->run, unit);
}

/* ---- lines ---- */

static bool is_blank(const char *p, size_t length) {
    while (length && (*p == ' ' || *p == '\t' || *p == '\r')) {
        p++;
        length--;
    }
    return !length;
}

static bool stopped(const dp_reader *reader, const dp_unit *unit) {
    return unit->status != DOPPEL_OK || dp_stop_asked(reader->options->stop);
}

/* One line, without its line end. */
static void read_line(dp_reader *reader, dp_unit *unit, dp_place *at) {
    if (at->line == 1 && at->length >= 3 && !memcmp(at->bytes, "\xEF\xBB\xBF", 3)) {
        at->bytes += 3;
        at->length -= 3;
    }
    if (at->length && at->bytes[at->length - 1] == '\r')
        at->length--;
    if (at->length > reader->options->max_record)
        too_long(reader, unit, at);
    else if (!is_blank(at->bytes, at->length))
        dp_reader_record(reader, unit, at);
    if (unit->report_count > reader->sizes->pending / 1000)
        reader->flush(reader->run, unit);
}

static void read_block(dp_reader *reader, dp_unit *unit, const char *file) {
    const dp_block *block = &unit->block;
    const char *p = block->data, *end = p + block->size;
    dp_place at = {.file = file};
    unit->counts.bytes += block->size;
    for (uint64_t line = block->first_line; p < end && !stopped(reader, unit); line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        at.line = line;
        at.bytes = p;
        at.length = (size_t)(stop - p);
        read_line(reader, unit, &at);
        p = stop + 1;
    }
    if (block->long_line && !stopped(reader, unit)) {
        at.line = block->long_line;
        too_long(reader, unit, &at);
    }
    if (block->cut_line && !stopped(reader, unit)) {
        at.line = block->cut_line;
        dp_reader_bad_record(reader, unit, &at, "the file breaks off within this line");
    }
}

/* ---- plain files ---- */

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

/* Whether the file at hand is no text: says so, and leaves it out. */
static bool is_binary(const dp_reader *reader, dp_unit *unit, const dp_place *at) {
    char why[80];
    size_t look = at->length < BINARY_LOOK ? at->length : BINARY_LOOK;
    const char *nul = look ? memchr(at->bytes, 0, look) : NULL;
    if (dp_is_utf16(at->bytes, at->length))
        snprintf(why, sizeof why, "%s", DP_WHY_UTF16);
    else if (nul)
        snprintf(why, sizeof why, "binary, not text: byte %zu is NUL", (size_t)(nul - at->bytes) + 1);
    else
        return false;
    dp_reader_bad_record(reader, unit, at, why);
    return true;
}

/* A plain file is used as it is; its invalid UTF-8, which separates words, counts as repaired. */
static void give_plain(dp_reader *reader, dp_unit *unit, const dp_place *at) {
    doppel_document document = {.id = at->file,
                                .id_length = strlen(at->file),
                                .text = at->bytes,
                                .text_length = at->length,
                                .record = at->bytes,
                                .record_length = at->length,
                                .file = at->file};
    if (!dp_json_is_utf8(at->bytes, at->length)) {
        unit->counts.repaired++;
        dp_unit_report(unit, DOPPEL_OK, at->file, 0,
                       "invalid UTF-8 separates words; is it Latin-1? iconv -f latin1 -t utf8");
    }
    dp_reader_give(reader, unit, &document);
}

static void read_plain(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_block *block = &unit->block;
    if (!read_rest(reader, unit) || stopped(reader, unit))
        return;
    dp_place at = {.file = file, .bytes = block->data ? block->data : "", .length = block->size};
    unit->counts.bytes += block->size;
    if (unit->stream.failed)
        bad_file(reader, unit, file, unit->stream.failure);
    else if (is_binary(reader, unit, &at))
        return;
    else if (block->size > reader->options->max_record)
        too_long(reader, unit, &at);
    else
        give_plain(reader, unit, &at);
}

/* ---- units ---- */

static void read_small_jsonl(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_lines_begin(&reader->lines, &unit->stream);
    while (!reader->lines.ended && !stopped(reader, unit)) {
        unit->block.size = 0;
        unit->block.long_line = unit->block.cut_line = 0;
        if (!dp_lines_next(&reader->lines, &unit->block)) {
            dp_reader_no_memory(unit);
            return;
        }
        read_block(reader, unit, file);
    }
    if (unit->stream.failed && !stopped(reader, unit))
        bad_file(reader, unit, file, unit->stream.failure);
}

/* A small plain file, of which `head` was read. */
static void read_small_plain(dp_reader *reader, dp_unit *unit, const char *file, const dp_buffer *head) {
    if (!dp_block_reserve(&unit->block, head->size)) {
        dp_reader_no_memory(unit);
        return;
    }
    memcpy(unit->block.data, head->data, head->size);
    unit->block.size = head->size;
    read_plain(reader, unit, file);
}

static void read_file(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_stream *stream = &unit->stream;
    dp_buffer *head = &reader->lines.rest;
    if (!dp_stream_open(stream, file))
        bad_file(reader, unit, file, stream->failure);
    else if (!dp_read_head(stream, head))
        dp_reader_no_memory(unit);
    else if (dp_is_jsonl(file, head->data, head->size))
        read_small_jsonl(reader, unit, file);
    else
        read_small_plain(reader, unit, file, head);
    unit->raw_bytes += stream->raw_bytes;
    dp_stream_close(stream);
    dp_block_reset(&unit->block, reader->sizes->block);
}

void dp_reader_run(dp_reader *reader, dp_unit *unit) {
    const char *file = unit->names.data;
    if (unit->kind == DP_UNIT_LINES) {
        read_block(reader, unit, file);
        if (unit->failure[0] && !stopped(reader, unit))
            bad_file(reader, unit, file, unit->failure);
    } else if (unit->kind == DP_UNIT_WHOLE) {
        read_plain(reader, unit, file);
        unit->raw_bytes += unit->stream.raw_bytes;
    } else {
        for (size_t i = 0; i < unit->files && !stopped(reader, unit); i++, file += strlen(file) + 1)
            read_file(reader, unit, file);
    }
}
