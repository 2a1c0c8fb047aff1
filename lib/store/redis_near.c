/* redis_near.c - documents of a shared memory that are near a fingerprint: by its plan, or all compared. */
#include "store/redis_reading.h"

#include <stdlib.h>

static void put_near(dp_redis_writer *w, const dp_redis_reading *r) {
    dp_redis_put_fingerprint(w, r->fingerprint);
    dp_redis_put_number(w, (uint64_t)r->distance);
    dp_redis_put_number(w, r->limit);
    dp_redis_put_homes_and_probes(w, r->fingerprint);
}

static void put_scan(dp_redis_writer *w, const dp_redis_reading *r) {
    dp_redis_put_number(w, r->from);
    dp_redis_put_fingerprint(w, r->fingerprint);
    dp_redis_put_number(w, (uint64_t)r->distance);
}

/* Hits of all documents: the distance in the upper bits, then the number, so that they sort as they are given. */
typedef struct hits {
    uint64_t *hit;
    size_t count, room;
} hits;

static doppel_status add_hits(const dp_redis_reading *r, const redisReply *packed, hits *to) {
    for (size_t at = 0; at + 6 <= packed->len; at += 6) {
        const uint8_t *bytes = (const uint8_t *)packed->str + at;
        uint64_t number = 0;
        for (int i = 0; i < 5; i++)
            number = number << 8 | bytes[i];
        if (!dp_reserve(&to->hit, &to->room, to->count + 1, sizeof *to->hit))
            return dp_no_memory(r->error);
        to->hit[to->count++] = (uint64_t)bytes[5] << 40 | number;
    }
    return DOPPEL_OK;
}

static doppel_status scan(dp_redis_reading *r, hits *to) {
    doppel_status status = DOPPEL_OK;
    for (r->from = 1; r->from && status == DOPPEL_OK;) {
        redisReply *reply = NULL;
        if ((status = dp_redis_read(r, "scan", put_scan, &reply)) != DOPPEL_OK)
            break;
        if (reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
            reply->element[1]->type != REDIS_REPLY_STRING)
            status = dp_redis_read_damaged(r);
        if (status == DOPPEL_OK) {
            status = add_hits(r, reply->element[1], to);
            r->from = strtoull(reply->element[0]->str, NULL, 10);
        }
        freeReplyObject(reply);
    }
    return status;
}

static int compare_documents(const void *a, const void *b) {
    const dp_shared_document *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->trace.number > y->trace.number) - (x->trace.number < y->trace.number);
}

/* All are compared; the best are read. */
static doppel_status find_far(dp_redis_reading *r, dp_shared_documents *documents) {
    hits found = {0};
    doppel_status status = scan(r, &found);
    if (status == DOPPEL_OK && found.count) {
        qsort(found.hit, found.count, sizeof *found.hit, dp_redis_compare_numbers);
        found.count = found.count < r->limit ? found.count : r->limit;
        for (size_t i = 0; i < found.count; i++)
            found.hit[i] &= ((uint64_t)1 << 40) - 1;
        status = dp_shared_get_numbers(r->shared, found.hit, found.count, r->now, documents, r->error);
    }
    for (size_t i = 0; status == DOPPEL_OK && i < documents->count; i++)
        documents->document[i].distance = doppel_distance128(documents->document[i].trace.fingerprint, r->fingerprint);
    if (status == DOPPEL_OK && documents->count)
        qsort(documents->document, documents->count, sizeof *documents->document, compare_documents);
    free(found.hit);
    return status;
}

doppel_status dp_shared_near(dp_shared *shared, const uint64_t fingerprint[2], int distance, size_t limit, uint64_t now,
                             dp_shared_documents *documents, doppel_error *error) {
    dp_redis_reading r = {.shared = shared, .now = now, .distance = distance, .limit = limit, .error = error};
    r.fingerprint = fingerprint;
    redisReply *reply = NULL;
    *documents = (dp_shared_documents){0};
    if (distance > shared->options.rules.distance)
        return find_far(&r, documents);
    doppel_status status = dp_redis_read(&r, "near", put_near, &reply);
    return status == DOPPEL_OK ? dp_redis_read_items(&r, reply, 0, documents) : status;
}
