/* read.c - what similarity is measured on, read from what is known. */
#include "engine/engine.h"
#include "verify/verify.h"

doppel_status dp_read_set(dp_worker *worker, uint64_t number, const uint64_t **set, size_t *count,
                          doppel_error *error) {
    doppel_slice bytes;
    doppel_status status = dp_look_read(worker->look, DP_PART_SET, number, &bytes, error);
    *set = NULL;
    *count = 0;
    if (status != DOPPEL_OK || !bytes.data)
        return status;
    *count = bytes.length / sizeof **set;
    if (!dp_reserve(&worker->set, &worker->set_room, *count + 1, sizeof *worker->set))
        return dp_no_memory(error);
    for (size_t i = 0; i < *count; i++)
        worker->set[i] = dp_load64(bytes.data + 8 * i);
    *set = worker->set;
    return DOPPEL_OK;
}

doppel_status dp_read_sample(dp_worker *worker, uint64_t number, doppel_slice *sample, doppel_error *error) {
    doppel_status status = dp_look_read(worker->look, DP_PART_SET, number, sample, error);
    if (status != DOPPEL_OK || !sample->data || dp_bottom_is_valid(*sample))
        return status;
    *sample = (doppel_slice){NULL, 0};
    return dp_look_nonsense(worker->look, "sample", number, "makes no sense", error);
}
