/* fuzz.h - what every fuzz target has. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* A finding: libFuzzer keeps the input. */
#define CHECK(what)  \
    do {             \
        if (!(what)) \
            abort(); \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
