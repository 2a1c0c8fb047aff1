/* arc.c - the format ARC, which WARC came from: a line with the address, an IP address, the date, a media type (version
 * 2: five more fields) and the length, then the content as it came by HTTP. The first record describes the file. */
#include "input/archive.h"

/* A line longer than this is no head. */
#define MAX_LINE ((size_t)64 << 10)

static const char *const endings[] = {".arc", NULL};

typedef struct arc_line {
    doppel_slice url, date, type;
    uint64_t content;
} arc_line;

/* The next field, up to a space. */
static doppel_slice take_field(doppel_slice *rest) {
    const char *space = rest->length ? memchr(rest->data, ' ', rest->length) : NULL;
    doppel_slice field = {rest->data, space ? (size_t)(space - rest->data) : rest->length};
    size_t used = field.length + (space ? 1 : 0);
    rest->data += used;
    rest->length -= used;
    return field;
}

static bool is_number(doppel_slice field, size_t least, size_t most) {
    for (size_t i = 0; i < field.length; i++)
        if (field.data[i] < '0' || field.data[i] > '9')
            return false;
    return field.length >= least && field.length <= most;
}

/* Whether an address with a scheme starts at p. */
static bool has_scheme(const char *p, size_t size) {
    size_t i = 0;
    while (i < size && ((p[i] | 32) >= 'a' && (p[i] | 32) <= 'z'))
        i++;
    return i >= 2 && i < size && p[i] == ':';
}

/* Takes a line apart: the date is the first field of 12 to 17 digits that has two fields before it, so that addresses
 * may have spaces; the length is the last one. */
static bool parse_line(doppel_slice line, arc_line *parsed) {
    if (!has_scheme(line.data, line.length))
        return false;
    doppel_slice rest = line, field = {0}, ip = {0};
    bool dated = false;
    for (int i = 0; rest.length && !dated; i++) {
        ip = field;
        field = take_field(&rest);
        dated = i >= 2 && is_number(field, 12, 17);
    }
    if (!dated || !rest.length)
        return false;
    parsed->url = dp_slice_trim((doppel_slice){line.data, (size_t)(ip.data - line.data)});
    parsed->date = field;
    parsed->type = take_field(&rest);
    while (rest.length)
        field = take_field(&rest);
    parsed->content = 0;
    for (size_t i = 0; i < field.length; i++)
        parsed->content = parsed->content * 10 + (uint64_t)(field.data[i] - '0');
    return field.data != parsed->date.data && is_number(field, 1, 18);
}

static dp_answer find_line(const char *p, size_t size, size_t *length, arc_line *parsed) {
    size_t look = size < MAX_LINE ? size : MAX_LINE;
    const char *end = look ? memchr(p, '\n', look) : NULL;
    if (!end)
        return look == MAX_LINE ? DP_NO : DP_UNSURE;
    *length = (size_t)(end + 1 - p);
    return parse_line(dp_slice_trim((doppel_slice){p, *length}), parsed) ? DP_YES : DP_NO;
}

static dp_answer starts(const char *p, size_t size) {
    arc_line parsed;
    size_t length;
    return find_line(p, size, &length, &parsed);
}

static bool tells(const char *head, size_t length) {
    return length >= 11 && !memcmp(head, "filedesc://", 11);
}

static dp_answer read_head(const char *p, size_t size, size_t *length, uint64_t *content) {
    arc_line parsed;
    dp_answer answer = find_line(p, size, length, &parsed);
    if (answer == DP_YES)
        *content = parsed.content;
    return answer;
}

static void give(dp_reader *reader, dp_unit *unit, const dp_place *at, size_t head_length) {
    arc_line line;
    size_t length;
    if (tells(at->bytes, at->length) || find_line(at->bytes, head_length, &length, &line) != DP_YES)
        return;
    doppel_document document = dp_reader_document(reader, at);
    if (!dp_reader_make_id(reader, unit, at, &document))
        return;
    document.url = line.url.data;
    document.url_length = line.url.length;
    for (size_t i = 0; i < reader->options->extra_count; i++)
        if (!strcmp(reader->options->extra_keys[i], "date"))
            reader->extra[i] = line.date;
    dp_archived content = {
        .bytes = {at->bytes + head_length, at->length - head_length}, .type = line.type, .http = DP_UNSURE};
    dp_archive_content(reader, unit, &content, &document);
}

static const dp_archive archive = {starts, read_head, give};

static size_t end_of(dp_mark *mark, const char *data, size_t size) {
    return dp_archive_end(&archive, mark, data, size);
}

static void read_records(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_archive_read(&archive, reader, unit, file);
}

const dp_format dp_format_arc = {
    .record = "record", .endings = endings, .tells = tells, .end = end_of, .read = read_records};
