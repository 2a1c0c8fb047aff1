/* fuzz_mbox.c - any bytes as a mail folder; see records.h. */
#include "records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const format as = {{".mbox", ".mbox"}, 4000, check_fields};
    return try_input(data, size, &as);
}
