/* fuzz_sketches.c - files of sketches, as --against takes them: any entries, with valid checksums, after a valid
 * header.
 *
 * The input is a row of entries: a byte for the kind, two for the length, and the content. An unknown kind means bytes
 * that are not an entry. A file is refused, or its documents can be decided. */
#include "fuzz.h"

#include "batch/batch.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const doppel_batch_options options = {.size = sizeof options,
                                             .by = DOPPEL_BY_CONTENT | DOPPEL_BY_URL | DOPPEL_BY_TITLE};

/* The header of a batch that has read nothing. */
static dp_buffer header_bytes(void) {
    dp_buffer bytes = {0};
    doppel_batch *batch;
    doppel_batch_options keeping = options;
    keeping.keep_sketches = true;
    CHECK(!doppel_batch_create(&keeping, &batch, NULL));
    CHECK(batch->journal.file.pending.size);
    CHECK(dp_buffer_add(&bytes, batch->journal.file.pending.data, batch->journal.file.pending.size));
    doppel_batch_free(batch);
    return bytes;
}

static void add_entry(dp_buffer *file, uint8_t kind, const char *body, size_t length) {
    size_t head = kind == DP_ENTRY_DOCUMENT ? sizeof(dp_document_head)
                  : kind == DP_ENTRY_FILE   ? sizeof(dp_file_state)
                                            : length;
    head = head < length ? head : length;
    const doppel_slice rest = {body + head, length - head};
    CHECK(dp_entry_pack(file, (dp_entry_kind)kind, (doppel_slice){body, head}, &rest, 1, true));
}

static void add_entries(dp_buffer *file, const uint8_t *data, size_t size) {
    while (size >= 3) {
        size_t length = data[1] | (size_t)data[2] << 8;
        length = length < size - 3 ? length : size - 3;
        if (data[0] >= DP_ENTRY_READING && data[0] <= DP_ENTRY_END)
            add_entry(file, data[0], (const char *)data + 3, length);
        else
            CHECK(dp_buffer_add(file, data + 3, length));
        data += 3 + length;
        size -= 3 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dp_buffer file = header_bytes();
    doppel_batch *batch;
    doppel_error error;
    char name[64];
    int memory = memfd_create("sketches", 0);
    const char *path = name;
    add_entries(&file, data, size);
    snprintf(name, sizeof name, "/proc/self/fd/%d", memory);
    CHECK(memory >= 0 && write(memory, file.data, file.size) == (ssize_t)file.size);
    CHECK(!doppel_batch_create(&options, &batch, &error));
    doppel_status status = doppel_batch_read(batch, &path, 1, true, NULL, &error);
    CHECK(!status || (status == DOPPEL_ERROR_STORE && error.message[0]));
    if (!status)
        CHECK(!doppel_batch_decide(batch, &error));
    doppel_batch_free(batch);
    dp_buffer_free(&file);
    close(memory);
    return 0;
}
