/* fuzz_json.c - any bytes as an array of objects, also with keys that are paths and several; see records.h. */
#include "records.h"

static void check(const doppel_document *document) {
    CHECK(document->record.data && !memchr(document->record.data, '\n', document->record.length));
    check_utf8(document->id.data, document->id.length);
    check_utf8(document->text.data, document->text.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const format as = {.ending = {".json", ".json"},
                              .max_record = 4000,
                              .check = check,
                              .format = "json",
                              .text_key = "text,meta.text"};
    return try_input(data, size, &as);
}
