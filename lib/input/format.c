/* format.c - the list of formats, and telling one by name and content. */
#include "input/format.h"

#include <strings.h>

/* In the order in which they are asked. Plain files are what no other format claims. */
static const dp_format *const formats[] = {&dp_format_jsonl, &dp_format_warc, &dp_format_arc, &dp_format_csv,
                                           &dp_format_tsv,   &dp_format_mbox, &dp_format_html};

/* What is read of a file at a time, and at most, to tell its format. */
#define HEAD ((size_t)8 << 10)

/* So much is there before the first look, if the file has it: a byte-order mark and a byte. */
#define FIRST_LOOK 4

/* Whether the path ends so, without regard to case; if so, *length loses the ending. */
static bool ends_in(const char *path, size_t *length, const char *ending) {
    size_t size = strlen(ending);
    if (*length <= size || strncasecmp(path + *length - size, ending, size))
        return false;
    *length -= size;
    return true;
}

static const dp_format *by_name(const char *path) {
    size_t length = strlen(path);
    if (!ends_in(path, &length, ".gz"))
        ends_in(path, &length, ".zst");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (const char *const *ending = formats[i]->endings; ending && *ending; ending++)
            if (ends_in(path, &length, *ending))
                return formats[i];
    return NULL;
}

static const dp_format *by_content(const char *head, size_t length) {
    if (length >= 3 && !memcmp(head, "\xEF\xBB\xBF", 3)) {
        head += 3;
        length -= 3;
    }
    for (size_t i = 0; length && i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->tells && formats[i]->tells(head, length))
            return formats[i];
    return NULL;
}

const dp_format *dp_format_tell(const char *path, const dp_buffer *head, bool ended) {
    const dp_format *format = by_name(path);
    if (!format)
        format = by_content(head->data, head->size);
    return format || !ended ? format : &dp_format_plain;
}

const dp_format *dp_format_read(dp_stream *stream, const char *path, dp_buffer *head) {
    if (!dp_reserve(&head->data, &head->capacity, HEAD, 1))
        return NULL;
    const dp_format *format = NULL;
    for (head->size = 0; !format;) {
        size_t got = dp_stream_read(stream, head->data + head->size, HEAD - head->size);
        head->size += got;
        bool ended = !got || head->size == HEAD;
        if (head->size >= FIRST_LOOK || ended)
            format = dp_format_tell(path, head, ended);
    }
    return format;
}
