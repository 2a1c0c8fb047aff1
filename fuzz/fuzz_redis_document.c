/* fuzz_redis_document.c - any bytes as a document of a memory in Redis, and as its plan: what is decoded lies in them
 * or in memory of its own, and the keys it is found by can be computed. */
#include "fuzz.h"

#include "known/redis.h"

#include <stdlib.h>
#include <string.h>

static const dp_rules rules[] = {
    {.bits = 64, .distance = 3},
    {.bits = 64, .by_similarity = true, .similarity = 0.8, .titles = true, .title_similarity = 0.9}};
enum { RULES = 2, NUMBERS = 2 };

/* Reads every byte, so that the sanitizers see it. */
static unsigned sum_of(doppel_slice slice) {
    unsigned sum = 0;
    for (size_t i = 0; slice.data && i < slice.length; i++)
        sum += (unsigned char)slice.data[i];
    return sum;
}

static void try_places(const dp_redis_document *d, const dp_rules *of) {
    dp_redis_memory memory = {.secret = {1, 2}};
    dp_redis_places places = {0};
    dp_redis_plan_make(1000, of, &memory.plan);
    dp_order_init(&memory.order, 64, 1);
    dp_redis_trace_places(&memory, d, &places);
    CHECK(!places.failed);
    for (size_t i = 0; i < places.count; i++)
        CHECK(places.place[i] && dp_redis_class_of(places.place[i]) != DP_REDIS_SEGMENTS);
    free(places.place);
}

static void try_document(uint64_t number, doppel_slice bytes) {
    dp_arena arena = {0};
    dp_redis_document d = {.number = number};
    if (dp_redis_document_read(bytes, &arena, &d)) {
        unsigned sum = sum_of(d.trace.title);
        for (int i = 0; i < DP_PARTS; i++)
            sum += sum_of(d.part[i]);
        CHECK(sum < UINT32_MAX && d.trace.number == number && !dp_trace_is_removal(&d.trace));
        dp_record record;
        CHECK(dp_trace_is_kept(&d.trace) == (d.part[DP_PART_RECORD].data != NULL));
        if (d.part[DP_PART_RECORD].data) {
            CHECK(dp_record_decode(d.part[DP_PART_RECORD], &record));
            const doppel_slice slices[] = {record.id,     record.url,         record.canonical, record.title,
                                           record.fields, record.original_id, record.origin};
            for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
                sum += sum_of(slices[i]);
            CHECK(sum < UINT32_MAX);
        }
        for (int i = 0; i < RULES; i++)
            try_places(&d, &rules[i]);
    }
    dp_arena_free(&arena);
}

static void try_plan(doppel_slice bytes) {
    char name[40];
    dp_redis_plan plan, again;
    if (bytes.length >= sizeof name)
        return;
    memcpy(name, bytes.data, bytes.length);
    name[bytes.length] = '\0';
    for (int i = 0; i < RULES; i++)
        if (dp_redis_plan_read(name, &rules[i], &plan))
            CHECK(!strcmp(plan.name, name) && dp_redis_plan_read(plan.name, &rules[i], &again) &&
                  !memcmp(&plan, &again, sizeof plan));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const doppel_slice bytes = {(const char *)data, size};
    for (uint64_t number = 1; number <= NUMBERS; number++)
        try_document(number, bytes);
    if (size)
        try_plan(bytes);
    return 0;
}
