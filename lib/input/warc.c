/* warc.c - the format WARC (1.0, 1.1 and the drafts before), WET among it.
 *
 * Responses and resources become documents if they are text or pages, conversions (the texts of WET) always; revisits
 * that name another address are its aliases. The number of a record counts all records, those that are left out too. */
#include "input/archive.h"

static const char *const endings[] = {".warc", ".wet", NULL};

static dp_answer starts(const char *p, size_t size) {
    static const char magic[] = "WARC/";
    size_t length = sizeof magic - 1, look = size < length ? size : length;
    if (look && memcmp(p, magic, look) != 0)
        return DP_NO;
    return look == length ? DP_YES : DP_UNSURE;
}

static bool tells(const char *head, size_t length) {
    return starts(head, length) == DP_YES;
}

/* A whole number without anything else; false: it is none, or has more than 18 digits. */
static bool parse_length(doppel_slice text, uint64_t *number) {
    *number = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        *number = *number * 10 + (uint64_t)(text.data[i] - '0');
    }
    return text.length > 0 && text.length <= 18;
}

/* Lines up to an empty one. A line that starts a record cannot be part of a head. */
static dp_answer read_head(const char *p, size_t size, size_t *length, uint64_t *content) {
    size_t at = 0, limit = size < DP_ARCHIVE_MAX_HEAD ? size : DP_ARCHIVE_MAX_HEAD;
    for (;;) {
        const char *line = p + at, *end = at < limit ? memchr(line, '\n', limit - at) : NULL;
        if (!end)
            return limit == DP_ARCHIVE_MAX_HEAD ? DP_NO : DP_UNSURE;
        if (at && starts(line, (size_t)(end - line)) == DP_YES)
            return DP_NO;
        at = (size_t)(end + 1 - p);
        if (end == line || (end == line + 1 && *line == '\r'))
            break;
    }
    *length = at;
    doppel_slice value = dp_http_field((doppel_slice){p, at}, "Content-Length");
    return parse_length(value, content) ? DP_YES : DP_NO;
}

/* Addresses stand between angle brackets in the files of some tools. */
static doppel_slice address(doppel_slice head, const char *name) {
    doppel_slice value = dp_http_field(head, name);
    if (value.length >= 2 && value.data[0] == '<' && value.data[value.length - 1] == '>')
        return (doppel_slice){value.data + 1, value.length - 2};
    return value;
}

static void set_extra(dp_reader *reader, doppel_slice head) {
    for (size_t i = 0; i < reader->options->extra_count; i++) {
        const char *key = reader->options->extra_keys[i];
        reader->extra[i] = dp_http_field(head, strcmp(key, "date") ? key : "WARC-Date");
    }
}

static void give_revisit(dp_reader *reader, dp_unit *unit, doppel_slice head, doppel_document *document) {
    doppel_slice target = address(head, "WARC-Refers-To-Target-URI");
    if (!target.length || (target.length == document->url_length && !memcmp(target.data, document->url, target.length)))
        return;
    document->alias = target.data;
    document->alias_length = target.length;
    dp_reader_give(reader, unit, document);
}

static void give(dp_reader *reader, dp_unit *unit, const dp_place *at, size_t head_length) {
    doppel_slice head = {at->bytes, head_length}, type = dp_http_field(head, "WARC-Type");
    bool response = dp_slice_is(type, "response"), conversion = dp_slice_is(type, "conversion");
    bool revisit = dp_slice_is(type, "revisit");
    if (!response && !conversion && !revisit && !dp_slice_is(type, "resource"))
        return;
    doppel_document document = dp_reader_document(reader, at);
    doppel_slice id = dp_http_field(head, "WARC-Record-ID"), url = address(head, "WARC-Target-URI");
    document.id = id.data;
    document.id_length = id.length;
    if (!id.length && !dp_reader_make_id(reader, unit, at, &document))
        return;
    document.url = url.length ? url.data : NULL;
    document.url_length = url.length;
    set_extra(reader, head);
    dp_archived content = {.bytes = {at->bytes + head_length, at->length - head_length},
                           .type = dp_http_field(head, "Content-Type")};
    if (response)
        content.http = dp_slice_is(dp_http_media_type(content.type), "application/http") ? DP_YES : DP_UNSURE;
    if (conversion)
        content.type = (doppel_slice){"text/plain", 10};
    if (revisit)
        give_revisit(reader, unit, head, &document);
    else
        dp_archive_content(reader, unit, &content, &document);
}

static const dp_archive archive = {starts, read_head, give};

static size_t end_of(dp_mark *mark, const char *data, size_t size) {
    return dp_archive_end(&archive, mark, data, size);
}

static void read_records(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_archive_read(&archive, reader, unit, file);
}

const dp_format dp_format_warc = {
    .record = "record", .endings = endings, .tells = tells, .end = end_of, .read = read_records};
