/* input.c - doppel_input_run: threads take units of work, and their output is emitted in input order.
 *
 * Paths become files (paths.c), and a block of records of a big file, a range of its bytes (blocks.c) or some small
 * files make a unit; one thread gives the documents of a unit to the caller's work.
 *
 * Small files and ranges of files of lines are read by the thread that has the unit. A block of any other big file is
 * read when the unit is taken, one at a time under `reading`, while the other threads compute. A unit has a number and
 * a slot; there are twice as many slots as threads, so that one slow unit does not stop the rest, and memory is bounded
 * (dp_ordered). A unit that holds too much waits for its turn and emits what it has.
 *
 * Lock order: `reading`, then that of dp_ordered. Nothing is read, computed or emitted under the latter. */
#include "input/input.h"
#include "input/reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the memory of a unit ---- */

/* Output buffers above this are given back after use, so that one huge record does not hold memory to the end. */
#define KEEP_OUTPUT ((size_t)16 << 20)

static void free_file_counts(dp_unit *unit) {
    for (size_t i = 0; i < unit->file_count; i++)
        free(unit->file_counts[i].hint);
    unit->file_count = 0;
}

/* Empties a unit for its next use; memory is kept, unless it is much more than `block_size`. */
static void reset_unit(dp_unit *unit, size_t block_size) {
    dp_stream_close(&unit->stream);
    dp_block_reset(&unit->block, block_size);
    dp_ranges_release(unit->ranges);
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
    dp_ranges_release(unit->ranges);
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

/* Fills the block with a copy of these bytes; false when there is no memory, and then the unit has failed. */
static bool set_block(dp_unit *unit, const dp_buffer *bytes) {
    if (!dp_block_reserve(&unit->block, bytes->size))
        return dp_unit_no_memory(unit);
    if (bytes->size)
        memcpy(unit->block.data, bytes->data, bytes->size);
    unit->block.size = bytes->size;
    return true;
}

/* Fills the block with the next of the cutter, and the header with that of its file; false as above. */
static bool fill_unit(dp_unit *unit, dp_record_cutter *cutter) {
    unit->header.size = 0;
    return (dp_cutter_next(cutter, &unit->block) &&
            dp_buffer_add(&unit->header, cutter->header.data, cutter->header.size)) ||
           dp_unit_no_memory(unit);
}

/* ---- the next unit of work ----
 *
 * Done under the lock `reading`, so it does as little as possible: small files are only named, ranges only numbered;
 * the thread that takes the unit reads them. Any other big file of records is read here, a block a unit; of a big file
 * that is one document only the start is read here. */

typedef struct unit_source {
    const doppel_input_options *options;
    const dp_format *format; /* that was asked for; NULL: none */
    const dp_input_sizes *sizes;
    dp_path_walk walk;
    dp_walk_file file; /* the next one */
    bool has_file;     /* it was looked at, but not used yet */
    uint64_t files;    /* how many were looked at */
    dp_stream stream;  /* the big file that is open */
    dp_record_cutter cutter;
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
    dp_walk_init(&source->walk, &(dp_input_paths){job->paths, job->path_count}, job->options->tables);
    dp_stream_init(&source->stream, job->options->stop);
    source->threads = threads;
    source->units = units;
    source->cutter.target = job->sizes->block;
    source->cutter.max_record = job->options->max_record;
}

static void free_source(unit_source *source) {
    dp_walk_free(&source->walk);
    dp_stream_free(&source->stream);
    dp_ranges_release(source->ranges);
    dp_table_cursor_free(&source->table);
    dp_cutter_free(&source->cutter);
    dp_buffer_free(&source->name);
}

/* Adds a file's name; false when there is no memory, and then the unit has failed. */
static bool add_file(dp_unit *unit, const char *path) {
    unit->files++;
    return dp_buffer_add(&unit->names, path, strlen(path) + 1) || dp_unit_no_memory(unit);
}

/* The next block of the open file. */
static bool next_file_block(unit_source *source, dp_unit *unit) {
    dp_record_cutter *cutter = &source->cutter;
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
    if (!dp_ranges_give(source->ranges, source->next_range, unit)) {
        dp_ranges_release(source->ranges);
        source->ranges = NULL;
        return false;
    }
    source->next_range++;
    return true;
}

/* The open file is read by ranges, of which the unit gets the first. If it is empty by now, the unit remains one of
 * small files. */
static bool begin_ranges(unit_source *source, dp_unit *unit) {
    source->ranges = dp_ranges_create(&source->stream, source->sizes->block, source->units);
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

/* Opens a big file. One that cannot be opened is treated as a small one, where the failure is reported. */
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
    unit->format = dp_format_read(&source->stream, path, source->format, source->options, &source->cutter.rest);
    if (!unit->format)
        return dp_unit_no_memory(unit);
    if (!unit->format->end)
        return give_whole(source, unit);
    if (unit->format->lines && dp_stream_has_positions(&source->stream))
        return begin_ranges(source, unit);
    dp_cutter_begin(&source->cutter, unit->format, &source->stream);
    source->reading = true;
    unit->names.size = unit->files = 0;
    return next_file_block(source, unit);
}

/* Makes sure that source->file is the next file, from the walk; false: there is none. */
static bool peek_file(unit_source *source, dp_unit *unit) {
    if (!source->has_file && (source->has_file = dp_walk_next(&source->walk, &source->file)))
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
    if (peek_file(source, unit) && !is_small(source)) {
        unit->file_number = source->files;
        return open_big(source, unit);
    }
    while (peek_file(source, unit) && is_small(source) && unit->files < source->sizes->batch_files &&
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
    dp_path_walk walk;
    dp_walk_file file;
    uint64_t total = 0, files = 0;
    dp_walk_init(&walk, &(dp_input_paths){job->paths, job->path_count}, job->options->tables);
    while (dp_walk_next(&walk, &file)) {
        if (!file.regular || ++files > TOTAL_FILES) {
            total = 0;
            break;
        }
        total += file.size;
    }
    dp_walk_free(&walk);
    return total;
}

/* ---- the documents of a unit ---- */

/* Begins to count for a file; false when there is no memory, and then the unit has failed. */
static bool begin_file(dp_unit *unit, uint64_t number) {
    if (!dp_reserve(&unit->file_counts, &unit->file_room, unit->file_count + 1, sizeof *unit->file_counts))
        return dp_unit_no_memory(unit);
    unit->file_counts[unit->file_count++] = (dp_file_counts){.file = number};
    return true;
}

/* Reads the records of a block, and reports those after it that were skipped. */
static void read_block(dp_reader *reader, dp_unit *unit, const char *file) {
    const dp_record_block *block = &unit->block;
    dp_raw_record at = {.file = file};
    unit->counts.bytes += block->bytes;
    dp_file_counts *file_counts = dp_unit_counts(unit);
    file_counts->records = true;
    file_counts->record = unit->format->lines || unit->format->by_lines ? NULL : unit->format->record;
    unit->format->read(reader, unit, file);
    if (block->long_line && !dp_reader_stopped(reader, unit)) {
        at.line = block->long_line;
        dp_reader_too_long(reader, unit, &at);
    }
    if (block->cut_line && !dp_reader_stopped(reader, unit)) {
        at.line = block->cut_line;
        dp_reader_bad_record(reader, unit, &at, "the file ends within this %s", unit->format->record);
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
        if (!dp_block_reserve(block, block->size + want))
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

static void read_small_records(dp_reader *reader, dp_unit *unit, const char *file, dp_record_cutter *cutter) {
    dp_cutter_begin(cutter, unit->format, &unit->stream);
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

static void read_file(dp_reader *reader, dp_unit *unit, const char *file, dp_record_cutter *cutter) {
    dp_stream *stream = &unit->stream;
    if (!dp_stream_open(stream, file))
        dp_reader_bad_file(reader, unit, file, "%s", why_unopened(file, stream));
    else if (!(unit->format = dp_format_read(stream, file, reader->format, reader->options, &cutter->rest)))
        dp_unit_no_memory(unit);
    else if (unit->format->end)
        read_small_records(reader, unit, file, cutter);
    else if (set_block(unit, &cutter->rest))
        read_whole(reader, unit, file);
    unit->raw_bytes += stream->raw_bytes;
    dp_stream_close(stream);
    dp_block_reset(&unit->block, reader->sizes->block);
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
    dp_ranges_read(reader, unit);
    read_big_block(reader, unit, file);
    unit->block = own;
}

/* Gives every document of the unit to the work, if the unit has not failed before. How that went is in the unit.
 * `cutter` is for small files. */
static void read_unit(dp_reader *reader, dp_unit *unit, dp_record_cutter *cutter) {
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

/* ---- the run ---- */

/* 512 KiB of lines are some 100 documents, so that locks cost nothing, and with the text taken out of them they still
 * fit into the second-level cache. Files up to twice that are opened by the thread that reads them: with them, opening
 * takes most of the time. */
static const dp_input_sizes usual_sizes = {
    .block = (size_t)512 << 10, .small_file = (size_t)1 << 20, .batch_files = 128, .pending = (size_t)4 << 20};

/* Sums with it do not overflow. */
#define MOST_MAX_RECORD (SIZE_MAX / 4)

/* At most this much memory for documents that wait until the first records are judged. */
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

/* Judges the first records, or all of them; what was held back is emitted if they are good. */
static doppel_status judge(input_run *r, bool all) {
    DP_TRY(dp_refusal_check(&r->refusal, all));
    return give(r, &r->held);
}

/* Whether as many records were read as are judged before anything is done with them. */
static bool has_first(const input_run *r) {
    return r->refusal.first_documents + r->refusal.first_bad >= r->options.judge_first || r->held.size > MOST_WAITING;
}

/* Emits what the unit has, or holds it back until the first records are judged. */
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
    dp_record_cutter cutter = {.target = reader->sizes->block, .max_record = reader->options->max_record};
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
    dp_cutter_free(&cutter);
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
                        .paths = {r->job.paths, r->job.path_count},
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

/* Copies the options that the caller's version has, and sets defaults. */
static void set_options(input_run *r, const doppel_input_options *given) {
    if (given)
        dp_copy_options(&r->options, given, sizeof r->options);
    if (!r->options.max_record)
        r->options.max_record = DP_USUAL_MAX_RECORD;
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

static void report_part(const doppel_input_options *o, doppel_slice name) {
    char *key = strndup(name.data, name.length);
    if (key)
        o->unseen(key, o->user);
    free(key);
}

/* Names the keys that were asked for and that no record has; of several in one, those of them. */
static void report_unseen(const input_run *r) {
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
                report_part(o, name);
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

/* Reads everything, and frees r->ordered. */
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
            report_unseen(r);
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
