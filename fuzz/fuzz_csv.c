/* fuzz_csv.c - any bytes as CSV; see records.h. */
#include "records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return try_input(data, size, ".csv");
}
