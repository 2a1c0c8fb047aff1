/* fuzz_csv.c - any bytes as CSV; see records.h. The record of a row is JSON of which the same document is read. */
#include "records.h"

#include <pthread.h>

/* Several threads read rows. */
static void check_row(const doppel_document *document) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static dp_record_parser *parser;
    const doppel_input_options options = {.size = sizeof options};
    doppel_document read = *document;
    check_fields(document);
    check_utf8(document->record.data, document->record.length);
    pthread_mutex_lock(&lock);
    if (!parser)
        CHECK(!dp_record_parser_create(&options, &parser));
    CHECK(!dp_record_parser_run(parser, document->record, &read));
    CHECK(read.text.length == document->text.length && !memcmp(read.text.data, document->text.data, read.text.length));
    CHECK(read.id.length == document->id.length && !memcmp(read.id.data, document->id.data, read.id.length));
    pthread_mutex_unlock(&lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const format as = {{".csv", ".csv"}, 4000, check_row};
    return try_input(data, size, &as);
}
