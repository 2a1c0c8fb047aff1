/* fuzz_mbox.c - any bytes as a mail folder; see records.h. */
#include "records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return try_input(data, size, ".mbox");
}
