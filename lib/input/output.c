/* output.c - what the work writes: bytes, and strings as JSON. */
#include "input/reader.h"

doppel_status doppel_output_write(doppel_output *output, const void *bytes, size_t length) {
    return dp_buffer_add(&output->bytes, bytes, length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

doppel_status doppel_output_json(doppel_output *output, const char *bytes, size_t length) {
    return dp_json_add(&output->bytes, bytes, length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}
