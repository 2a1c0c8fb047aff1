/* fuzz_warc.c - any bytes as a web archive; see records.h. */
#include "records.h"

static void check(const doppel_document *document) {
    CHECK(!document->record.data && document->id.length && document->text.data);
    CHECK(!document->alias.data || (!document->html.data && !document->text.length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const format as = {{".warc", ".arc"}, 1 << 20, check};
    return try_input(data, size, &as);
}
