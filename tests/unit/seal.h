/* seal.h - makes every checksum of an index file valid, so that tests and fuzzers reach the checks after them. */
#ifndef TESTS_SEAL_H
#define TESTS_SEAL_H

#include "hamming/index.h"

#include <xxhash.h>

/* Where the checksums of the blocks begin in the directory, as its runs say; `size` when they make no sense. */
static inline uint64_t seal_checks_at(const uint8_t *bytes, uint64_t from, uint64_t size, uint32_t runs) {
    uint64_t at = from;
    for (uint32_t i = 0; i < runs; i++) {
        dp_file_run record;
        if (size - at < sizeof record)
            return size;
        memcpy(&record, bytes + at, sizeof record);
        at += sizeof record;
        if (record.sections > (size - at) / sizeof(dp_file_section))
            return size;
        at += record.sections * sizeof(dp_file_section);
    }
    return at;
}

/* `bytes` are a whole file; whatever they say, nothing outside them is touched. */
static inline void seal(uint8_t *bytes, uint64_t size) {
    dp_file_header header;
    if (size < sizeof header)
        return;
    memcpy(&header, bytes, sizeof header);
    uint64_t left = size - sizeof header;
    uint64_t directory = header.directory_size < left ? header.directory_size : left, data = sizeof header + directory;
    uint64_t at = seal_checks_at(bytes, sizeof header, data, header.runs);
    for (uint64_t from = data; from < size && data - at >= sizeof(uint64_t); from += DP_FILE_BLOCK) {
        uint64_t check = XXH3_64bits(bytes + from, size - from < DP_FILE_BLOCK ? size - from : DP_FILE_BLOCK);
        memcpy(bytes + at, &check, sizeof check);
        at += sizeof check;
    }
    header.directory_check = XXH3_64bits(bytes + sizeof header, directory);
    header.header_check = XXH3_64bits(&header, sizeof header - sizeof header.header_check);
    memcpy(bytes, &header, sizeof header);
}

#endif
