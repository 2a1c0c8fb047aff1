/* jsonl.c - the format JSONL: a record a line; record.c makes a document of each. */
#include "input/format.h"

#include "input/reader.h"

static const char *const endings[] = {".jsonl", ".ndjson", ".json", NULL};

/* An object, or an array of them, which is none of JSONL but read as such, so that it is called what it is. */
static bool tells(const char *head, size_t length) {
    size_t at = length && *head == '[';
    while (at && at < length && (head[at] == ' ' || head[at] == '\t' || head[at] == '\r' || head[at] == '\n'))
        at++;
    return at < length && head[at] == '{';
}

static size_t line_end(dp_mark *mark, const char *data, size_t size) {
    const char *end = memchr(data + mark->seen, '\n', size - mark->seen);
    mark->seen = size;
    return end ? (size_t)(end + 1 - data) : 0;
}

static bool is_blank(const char *p, size_t length) {
    while (length && (*p == ' ' || *p == '\t' || *p == '\r')) {
        p++;
        length--;
    }
    return !length;
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
        dp_reader_too_long(reader, unit, at);
    else if (!is_blank(at->bytes, at->length))
        dp_reader_record(reader, unit, at);
}

static void read_lines(dp_reader *reader, dp_unit *unit, const char *file) {
    const dp_block *block = &unit->block;
    const char *p = block->data, *end = p + block->size;
    dp_place at = {.file = file};
    for (uint64_t line = block->first_line; p < end && !dp_reader_stopped(reader, unit); line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        at.line = line;
        at.bytes = p;
        at.length = (size_t)(stop - p);
        read_line(reader, unit, &at);
        p = stop + 1;
    }
}

const dp_format dp_format_jsonl = {
    .record = "line", .endings = endings, .tells = tells, .end = line_end, .read = read_lines};
