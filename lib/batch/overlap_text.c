/* overlap_text.c - documents are read back from the file of packed texts. */
#include "batch/overlap.h"

#include <zstd.h>

static doppel_status make_room(dp_buffer *buffer, uint64_t bytes, doppel_error *error) {
    buffer->size = (size_t)bytes;
    return dp_reserve(&buffer->data, &buffer->capacity, (size_t)bytes + 1, 1) ? DOPPEL_OK : dp_no_memory(error);
}

doppel_status dp_overlap_text_read(const dp_overlap_work *work, size_t document, void *unpacker, dp_overlap_text *text,
                                   doppel_error *error) {
    dp_overlap_head *head = &text->head;
    uint64_t at = work->at[document];
    doppel_status status = dp_spill_read(&work->texts, at, head, sizeof *head, error);
    if (status == DOPPEL_OK)
        status = make_room(&text->packed, head->id_length + head->packed_length, error);
    if (status == DOPPEL_OK)
        status = dp_spill_read(&work->texts, at + sizeof *head, text->packed.data, text->packed.size, error);
    if (status == DOPPEL_OK)
        status = make_room(&text->text, head->text_length, error);
    if (status != DOPPEL_OK)
        return status;
    size_t size = ZSTD_decompressDCtx(unpacker, text->text.data, text->text.size, text->packed.data + head->id_length,
                                      (size_t)head->packed_length);
    if (ZSTD_isError(size) || size != text->text.size)
        return dp_fail(error, DOPPEL_ERROR_IO, "a text in the folder for temporary files is not what was written: %s",
                       ZSTD_isError(size) ? ZSTD_getErrorName(size) : "its length differs");
    return DOPPEL_OK;
}

void dp_overlap_text_free(dp_overlap_text *text) {
    dp_buffer_free(&text->packed);
    dp_buffer_free(&text->text);
}
