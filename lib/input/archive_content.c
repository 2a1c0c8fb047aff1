/* archive_content.c - what a web archive holds becomes a document: a page, a text, or a redirect to another. */
#include "input/archive.h"
#include "input/mime.h"

#include <strings.h>

/* Longer names of charsets are nonsense. */
#define MAX_CHARSET 60

typedef enum kind { KIND_OTHER, KIND_HTML, KIND_TEXT, KIND_UNTOLD } kind;

static kind kind_of(doppel_slice type) {
    doppel_slice name = dp_http_media_type(type);
    if (dp_slice_is(name, "text/html") || dp_slice_is(name, "application/xhtml+xml"))
        return KIND_HTML;
    if (dp_slice_is(name, "text/plain"))
        return KIND_TEXT;
    return name.length ? KIND_OTHER : KIND_UNTOLD;
}

/* The charset as a string; kept in a spare buffer. False: no memory. */
static bool set_charset(dp_reader *reader, doppel_slice type, doppel_document *document) {
    doppel_slice name = dp_http_charset(type);
    dp_buffer *kept = &reader->spare[0];
    if (!name.data || name.length > MAX_CHARSET || memchr(name.data, 0, name.length))
        return true;
    kept->size = 0;
    if (!dp_buffer_add(kept, name.data, name.length) || !dp_buffer_add(kept, "", 1))
        return false;
    document->charset = kept->data;
    return true;
}

/* Sets the text, out of the charset it is said to be in; false: it was left out, for being no text. */
static bool set_text(dp_reader *reader, dp_unit *unit, const dp_place *at, doppel_document *document) {
    const char *charset = document->charset, *known = charset ? dp_mime_charset(charset) : NULL;
    document->charset = NULL;
    if (known && strcmp(known, "UTF-8") != 0)
        return dp_reader_charset_text(unit, at, charset, &reader->spare[1], document);
    if (dp_reader_is_binary(reader, unit, at))
        return false;
    dp_reader_plain_text(unit, at, document);
    return true;
}

/* Gives content that is text or a page. `at` has its bytes. */
static void give(dp_reader *reader, dp_unit *unit, const dp_place *at, doppel_slice type, doppel_document *document) {
    kind what = kind_of(type);
    if (what == KIND_UNTOLD && dp_html_tells(at->bytes, at->length))
        what = KIND_HTML;
    if (what == KIND_OTHER || what == KIND_UNTOLD)
        return;
    if (!set_charset(reader, type, document)) {
        dp_reader_no_memory(unit);
        return;
    }
    if (what == KIND_HTML) {
        document->html = at->bytes;
        document->html_length = at->length;
    } else if (!set_text(reader, unit, at, document)) {
        return;
    }
    dp_reader_give(reader, unit, document);
}

/* Extra fields that the archive itself does not have may stand in the head of HTTP. */
static void add_extra(dp_reader *reader, const dp_http *http) {
    for (size_t i = 0; i < reader->options->extra_count; i++)
        if (!reader->extra[i].data)
            reader->extra[i] = dp_http_field(http->fields, reader->options->extra_keys[i]);
}

/* The body of a response, decoded; false: it was reported, and left out. */
static bool decode(dp_reader *reader, dp_unit *unit, dp_place *at, const dp_http *http) {
    doppel_slice body;
    dp_decoded result = dp_http_decode(&reader->decoder, http, &body);
    switch (result) {
    case DP_DECODED_NO_MEMORY: return dp_reader_no_memory(unit);
    case DP_DECODED_TOO_LONG: return dp_reader_too_long(reader, unit, at);
    case DP_DECODED_UNKNOWN:
        return dp_reader_bad_record(reader, unit, at, "its Content-Encoding or Transfer-Encoding is not known");
    case DP_DECODED_PART:
        unit->counts.repaired++;
        dp_unit_report(unit, DOPPEL_OK, at->file, at->line,
                       "its encoded body breaks off or is damaged; what comes before that is used");
        break;
    default: break;
    }
    at->bytes = body.data;
    at->length = body.length;
    return true;
}

static void give_response(dp_reader *reader, dp_unit *unit, dp_place *at, doppel_document *document) {
    dp_http http;
    if (!dp_http_parse(at->bytes, at->length, &http)) {
        dp_reader_bad_record(reader, unit, at, "its content has no status line of HTTP");
        return;
    }
    add_extra(reader, &http);
    doppel_slice location = http.status / 100 == 3 ? dp_http_field(http.fields, "Location") : (doppel_slice){0};
    if (location.length) {
        document->alias = location.data;
        document->alias_length = location.length;
        dp_reader_give(reader, unit, document);
        return;
    }
    doppel_slice type = dp_http_field(http.fields, "Content-Type");
    if (http.status == 200 && kind_of(type) != KIND_OTHER && decode(reader, unit, at, &http))
        give(reader, unit, at, type, document);
}

void dp_archive_content(dp_reader *reader, dp_unit *unit, const dp_archived *content, doppel_document *document) {
    dp_place at = {document->file, document->line, content->bytes.data, content->bytes.length};
    bool begins_so = at.length >= 5 && !strncasecmp(at.bytes, "HTTP/", 5);
    if (content->http == DP_YES || (content->http == DP_UNSURE && begins_so))
        give_response(reader, unit, &at, document);
    else
        give(reader, unit, &at, content->type, document);
}
