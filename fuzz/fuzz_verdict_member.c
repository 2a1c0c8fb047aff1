/* fuzz_verdict_member.c - any bytes as a page of a stream: a record that the JSON reader accepts gets another member,
 * is accepted again, and has the same fields and the new one. Any other does no harm. */
#include "fuzz.h"

#include "doppel.h"
#include "stream/verdict_member.h"

#include <string.h>

static const char *const keys[] = {"verdict"};

static doppel_document *parse(const char *bytes, size_t size) {
    const doppel_input_options options = {.size = sizeof options, .extra_keys = keys, .extra_count = 1};
    doppel_document *document = NULL;
    doppel_error error = {0};
    return doppel_document_parse((doppel_slice){bytes, size}, &options, &document, &error) == DOPPEL_OK ? document
                                                                                                        : NULL;
}

static void check_same(const char *a, size_t a_length, const char *b, size_t b_length) {
    CHECK(a_length == b_length && (!a_length || !memcmp(a, b, a_length)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char value[] = "{\"isDuplicate\":true}";
    const char *bytes = (const char *)data;
    text_buffer to = {0};
    doppel_document *before = parse(bytes, size);
    bool made = object_with(&to, (doppel_slice){bytes, size}, "verdict", (doppel_slice){value, sizeof value - 1});
    if (before) {
        CHECK(made && !to.failed);
        doppel_document *after = parse(to.data, to.length);
        CHECK(after);
        check_same(before->id.data, before->id.length, after->id.data, after->id.length);
        check_same(before->url.data, before->url.length, after->url.data, after->url.length);
        check_same(before->title.data, before->title.length, after->title.data, after->title.length);
        check_same(before->text.data, before->text.length, after->text.data, after->text.length);
        check_same(value, sizeof value - 1, after->extra[0].data, after->extra[0].length);
        doppel_document_free(after);
    }
    doppel_document_free(before);
    text_free(&to);
    return 0;
}
