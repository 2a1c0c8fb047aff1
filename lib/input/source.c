/* source.c - the next unit of work. */
#include "input/source.h"

#include <sys/stat.h>

/* Beyond so many files their sizes are not asked for ahead of the work: that would take seconds. */
#define TOTAL_FILES 20000

void dp_source_init(dp_source *source, const dp_input_job *job) {
    memset(source, 0, sizeof *source);
    source->options = job->options;
    source->sizes = job->sizes;
    dp_walk_init(&source->walk, job->paths, job->path_count);
    dp_stream_init(&source->stream, job->options->stop);
    source->cutter.target = job->sizes->block;
    source->cutter.max_record = job->options->max_record;
}

void dp_source_free(dp_source *source) {
    dp_walk_free(&source->walk);
    dp_stream_free(&source->stream);
    dp_cutter_free(&source->cutter);
    dp_buffer_free(&source->name);
}

static bool no_memory(dp_unit *unit) {
    dp_unit_fail(unit, DOPPEL_ERROR_MEMORY, "", 0, "no memory");
    return false;
}

/* The next block of the open file. */
static bool next_block(dp_source *source, dp_unit *unit) {
    dp_cutter *cutter = &source->cutter;
    unit->kind = DP_UNIT_BLOCK;
    unit->format = cutter->format;
    if (!dp_unit_add_file(unit, source->name.data) || !dp_cutter_next(cutter, &unit->block) ||
        !dp_unit_set_header(unit, &cutter->header))
        return no_memory(unit);
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
static bool give_whole(dp_source *source, dp_unit *unit) {
    dp_buffer *head = &source->cutter.rest;
    unit->kind = DP_UNIT_WHOLE;
    if (!dp_block_reserve(&unit->block, head->size))
        return no_memory(unit);
    if (head->size)
        memcpy(unit->block.data, head->data, head->size);
    unit->block.size = head->size;
    dp_stream closed = unit->stream;
    unit->stream = source->stream;
    source->stream = closed;
    return true;
}

/* Opens a big file. One that cannot be opened goes the way of the small ones, where that is found out again. */
static bool open_big(dp_source *source, dp_unit *unit) {
    const char *path = source->file.path;
    source->has_file = false;
    source->name.size = 0;
    if (!dp_unit_add_file(unit, path) || !dp_buffer_add(&source->name, path, strlen(path) + 1))
        return no_memory(unit);
    dp_stream_set_threads(&source->stream, source->threads);
    if (!dp_stream_open(&source->stream, path)) {
        dp_stream_close(&source->stream);
        return true;
    }
    unit->format = dp_format_read(&source->stream, path, &source->cutter.rest);
    if (!unit->format)
        return no_memory(unit);
    if (!unit->format->end)
        return give_whole(source, unit);
    dp_cutter_begin(&source->cutter, unit->format, &source->stream);
    source->reading = true;
    unit->names.size = unit->files = 0;
    return next_block(source, unit);
}

/* Whether the next file is there to look at; the walk is asked when it is not. */
static bool look(dp_source *source, dp_unit *unit) {
    if (!source->has_file && (source->has_file = dp_walk_next(&source->walk, &source->file)))
        source->files++;
    if (source->walk.no_memory)
        return no_memory(unit);
    return source->has_file;
}

static bool is_small(const dp_source *source) {
    return source->file.regular && source->file.size <= source->sizes->small_file;
}

bool dp_source_next(dp_source *source, dp_unit *unit) {
    uint64_t bytes = 0;
    unit->kind = DP_UNIT_FILES;
    unit->file_number = source->files;
    if (source->reading)
        return next_block(source, unit);
    if (look(source, unit) && !is_small(source)) {
        unit->file_number = source->files;
        return open_big(source, unit);
    }
    while (look(source, unit) && is_small(source) && unit->files < source->sizes->batch_files &&
           bytes < source->sizes->block) {
        if (!dp_unit_add_file(unit, source->file.path))
            return no_memory(unit);
        unit->file_number = source->files - unit->files + 1;
        bytes += source->file.size;
        source->has_file = false;
    }
    return unit->files && unit->status == DOPPEL_OK;
}

bool dp_input_is_empty_folder(const char *path) {
    struct stat there;
    dp_walk walk;
    dp_walk_file file;
    if (stat(path, &there) || !S_ISDIR(there.st_mode))
        return false;
    dp_walk_init(&walk, &path, 1);
    bool empty = !dp_walk_next(&walk, &file) && !walk.no_memory;
    dp_walk_free(&walk);
    return empty;
}

uint64_t dp_source_total(const dp_input_job *job) {
    dp_walk walk;
    dp_walk_file file;
    uint64_t total = 0, files = 0;
    dp_walk_init(&walk, job->paths, job->path_count);
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
