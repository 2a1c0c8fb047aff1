/* readings.c - what a batch was made of: the inputs, in the order they were read. */
#include "batch/batch.h"

bool doppel_batch_get_reading(const doppel_batch *batch, size_t number, doppel_batch_reading *reading) {
    if (number >= batch->reading_count)
        return false;
    const dp_reading *r = &batch->readings[number];
    *reading = (doppel_batch_reading){.paths = (const char *const *)r->paths,
                                      .path_count = r->count,
                                      .known = r->known,
                                      .counts = r->counts,
                                      .indexes = r->indexes};
    return true;
}
