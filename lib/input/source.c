/* source.c - the next unit of work. */
#include "input/source.h"

#include <strings.h>

/* What is read of a file to tell what it is. */
#define HEAD ((size_t)8 << 10)

/* Beyond so many files their sizes are not asked for ahead of the work: that would take seconds. */
#define TOTAL_FILES 20000

/* Whether the path ends so, without regard to case; if so, *length loses the ending. */
static bool ends_in(const char *path, size_t *length, const char *ending) {
    size_t size = strlen(ending);
    if (*length <= size || strncasecmp(path + *length - size, ending, size))
        return false;
    *length -= size;
    return true;
}

bool dp_is_jsonl(const char *path, const char *head, size_t length) {
    size_t size = strlen(path);
    if (!ends_in(path, &size, ".gz"))
        ends_in(path, &size, ".zst");
    if (ends_in(path, &size, ".jsonl") || ends_in(path, &size, ".ndjson") || ends_in(path, &size, ".json"))
        return true;
    if (length >= 3 && !memcmp(head, "\xEF\xBB\xBF", 3)) {
        head += 3;
        length -= 3;
    }
    return length && *head == '{';
}

bool dp_read_head(dp_stream *stream, dp_buffer *head) {
    if (!dp_reserve(&head->data, &head->capacity, HEAD, 1))
        return false;
    size_t got = 1;
    for (head->size = 0; got && head->size < 4; head->size += got)
        got = dp_stream_read(stream, head->data + head->size, HEAD - head->size);
    return true;
}

void dp_source_init(dp_source *source, const dp_input_job *job) {
    memset(source, 0, sizeof *source);
    source->options = job->options;
    source->sizes = job->sizes;
    dp_walk_init(&source->walk, job->paths, job->path_count);
    dp_stream_init(&source->stream, job->options->stop);
    source->lines.target = job->sizes->block;
    source->lines.max_line = job->options->max_record;
}

void dp_source_free(dp_source *source) {
    dp_walk_free(&source->walk);
    dp_stream_free(&source->stream);
    dp_buffer_free(&source->lines.rest);
    dp_buffer_free(&source->name);
}

static bool no_memory(dp_unit *unit) {
    dp_unit_fail(unit, DOPPEL_ERROR_MEMORY, "", 0, "no memory");
    return false;
}

/* The next block of the open file. */
static bool next_lines(dp_source *source, dp_unit *unit) {
    unit->kind = DP_UNIT_LINES;
    if (!dp_unit_add_file(unit, source->name.data) || !dp_lines_next(&source->lines, &unit->block))
        return no_memory(unit);
    unit->raw_bytes = unit->block.raw_bytes;
    if (source->lines.ended) {
        if (source->stream.failed)
            memcpy(unit->failure, source->stream.failure, sizeof unit->failure);
        dp_stream_close(&source->stream);
        source->reading = false;
    }
    return true;
}

/* Hands the open file over to the unit, with what was read of it. */
static bool give_whole(dp_source *source, dp_unit *unit) {
    dp_buffer *head = &source->lines.rest;
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
    if (!dp_stream_open(&source->stream, path)) {
        dp_stream_close(&source->stream);
        return true;
    }
    if (!dp_read_head(&source->stream, &source->lines.rest))
        return no_memory(unit);
    if (!dp_is_jsonl(path, source->lines.rest.data, source->lines.rest.size))
        return give_whole(source, unit);
    dp_lines_begin(&source->lines, &source->stream);
    source->reading = true;
    unit->names.size = unit->files = 0;
    return next_lines(source, unit);
}

/* Whether the next file is there to look at; the walk is asked when it is not. */
static bool look(dp_source *source, dp_unit *unit) {
    if (!source->has_file)
        source->has_file = dp_walk_next(&source->walk, &source->file);
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
    if (source->reading)
        return next_lines(source, unit);
    if (look(source, unit) && !is_small(source))
        return open_big(source, unit);
    while (look(source, unit) && is_small(source) && unit->files < source->sizes->batch_files &&
           bytes < source->sizes->block) {
        if (!dp_unit_add_file(unit, source->file.path))
            return no_memory(unit);
        bytes += source->file.size;
        source->has_file = false;
    }
    return unit->files && unit->status == DOPPEL_OK;
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
