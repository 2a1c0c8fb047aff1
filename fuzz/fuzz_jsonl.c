/* fuzz_jsonl.c - any bytes as lines of JSON; see records.h. */
#include "records.h"

static void check(const doppel_document *document) {
    CHECK(document->record.data);
    check_utf8(document->id.data, document->id.length);
    check_utf8(document->text.data, document->text.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const format as = {{".jsonl", ".jsonl"}, 4000, check};
    return try_input(data, size, &as);
}
