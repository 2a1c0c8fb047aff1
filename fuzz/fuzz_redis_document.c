/* fuzz_redis_document.c - any bytes as a document of a shared memory, and as its plan: what is decoded lies in them or
 * in memory of its own, and can be measured. */
#include "fuzz.h"

#include "store/redis_memory.h"

#include <string.h>

/* Reads every byte, so that the sanitizers see it. */
static unsigned sum_of(doppel_slice slice) {
    unsigned sum = 0;
    for (size_t i = 0; slice.data && i < slice.length; i++)
        sum += (unsigned char)slice.data[i];
    return sum;
}

static void try_document(const dp_redis_memory *memory, doppel_slice bytes) {
    dp_arena arena = {0};
    dp_redis_document d;
    if (dp_redis_document_decode(memory, 1, bytes, &arena, &d) == DOPPEL_OK) {
        const doppel_slice slices[] = {d.record.id,     d.record.url,         d.record.canonical, d.record.title,
                                       d.record.fields, d.record.original_id, d.record.origin,    d.trace.title};
        unsigned sum = 0;
        for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
            sum += sum_of(slices[i]);
        doppel_evidence evidence;
        CHECK(sum < UINT32_MAX && dp_redis_measure(&d, &d, DP_SAME_URL, &evidence) == DOPPEL_OK);
        CHECK(evidence.same_url && evidence.distance <= 0);
    }
    dp_arena_free(&arena);
}

static void try_plan(doppel_slice bytes) {
    dp_redis_plan plan, again;
    uint8_t made[DP_REDIS_GEOMETRY];
    if (!dp_redis_plan_decode(bytes, 64, &plan))
        return;
    size_t length = dp_redis_plan_encode(&plan, made);
    CHECK(length == bytes.length && !memcmp(made, bytes.data, length));
    CHECK(dp_redis_plan_decode((doppel_slice){(const char *)made, length}, 64, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dp_redis_memory memory = {0};
    const dp_rules rules = {.bits = 64, .distance = 3};
    dp_redis_plan_make(1000, &rules, &memory.plan);
    dp_order_init(&memory.order, 64, 1);
    try_document(&memory, (doppel_slice){(const char *)data, size});
    try_plan((doppel_slice){(const char *)data, size});
    return 0;
}
