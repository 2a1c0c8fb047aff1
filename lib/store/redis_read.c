/* redis_read.c - documents of a shared memory: by id, URL, number or fingerprint, one after the other, and counts. */
#include "store/redis_memory.h"

#include <stdlib.h>

enum { ATTEMPTS = 8, CHUNK = 256, ITEM_HEAD = 6, FIRST_COPY = 4 };

/* What is asked for; each call uses some of it. */
typedef struct reading {
    dp_shared *shared;
    uint64_t now;
    doppel_slice id, canonical;
    const uint64_t *numbers;
    size_t number_count;
    const uint64_t *fingerprint;
    int distance;
    size_t limit;
    uint64_t from;
    dp_redis_memory memory;
    doppel_error *error;
} reading;

typedef void (*put_function)(dp_redis_writer *w, const reading *r);

/* ---- calling ---- */

static doppel_status call_once(reading *r, const char *function, put_function put, redisReply **reply) {
    dp_arena arena = {0};
    r->memory = dp_shared_memory(r->shared);
    dp_redis_writer w = {.arena = &arena, .memory = &r->memory};
    dp_redis_begin(&w, r->shared, function, true);
    dp_redis_put(&w, r->memory.epoch, sizeof r->memory.epoch);
    dp_redis_put_number(&w, r->now);
    put(&w, r);
    dp_redis_link *link = w.failed ? NULL : dp_redis_take(r->shared->pool, r->error);
    doppel_status status = w.failed ? dp_no_memory(r->error) : DOPPEL_OK;
    if (link)
        status = dp_redis_call(link, &w.command, 1, false, reply, r->error);
    else if (status == DOPPEL_OK)
        status = r->error && r->error->code ? r->error->code : DOPPEL_ERROR_IO;
    if (link)
        dp_redis_give(r->shared->pool, link);
    dp_arena_free(&arena);
    return status;
}

/* Calls a function, again where another memory was made meanwhile. The reply is a list. */
static doppel_status call(reading *r, const char *function, put_function put, redisReply **reply) {
    for (int i = 0; i < ATTEMPTS; i++) {
        doppel_status status = call_once(r, function, put, reply);
        if (status != DOPPEL_OK)
            return status;
        if ((*reply)->type == REDIS_REPLY_ARRAY)
            return DOPPEL_OK;
        bool another = dp_shared_is_another(*reply);
        status = another ? DOPPEL_OK : dp_shared_fail(r->shared, *reply, r->error);
        freeReplyObject(*reply);
        if (another)
            status = dp_shared_renew(r->shared, r->error);
        if (status != DOPPEL_OK)
            return status;
    }
    return dp_fail_at(r->error, DOPPEL_ERROR_IO, r->shared->url.name, 0, "the memory goes as soon as it is made");
}

/* ---- documents ---- */

typedef struct held {
    dp_arena arena;
    redisReply *reply;
} held;

void dp_shared_documents_free(dp_shared_documents *documents) {
    held *h = documents->held;
    if (h) {
        dp_arena_free(&h->arena);
        if (h->reply)
            freeReplyObject(h->reply);
        free(h);
    }
    free(documents->document);
    *documents = (dp_shared_documents){0};
}

static doppel_status damaged(const reading *r) {
    return dp_fail_at(r->error, DOPPEL_ERROR_STORE, r->shared->url.name, 0, "a document that is not what doppel wrote");
}

static doppel_status decode(reading *r, const redisReply *reply, uint64_t number, dp_arena *arena,
                            dp_redis_document *document) {
    const doppel_slice bytes = {reply->str, reply->len};
    doppel_status status = dp_redis_document_decode(&r->memory, number, bytes, arena, document);
    if (status == DOPPEL_ERROR_STORE)
        return damaged(r);
    return status == DOPPEL_OK ? status : dp_no_memory(r->error);
}

/* The URLs of its copies. */
static doppel_status read_aliases(reading *r, const redisReply *item, dp_arena *arena, dp_shared_document *to) {
    size_t count = item->elements - FIRST_COPY;
    doppel_slice *aliases = dp_arena_take(arena, count * sizeof *aliases);
    if (!aliases)
        return dp_no_memory(r->error);
    to->aliases = aliases;
    for (size_t i = FIRST_COPY; i < item->elements; i++) {
        dp_redis_document copy;
        doppel_status status = decode(r, item->element[i], 0, arena, &copy);
        if (status != DOPPEL_OK)
            return status;
        if (copy.record.url.length)
            aliases[to->alias_count++] = copy.record.url;
    }
    return DOPPEL_OK;
}

/* What was measured on a copy and its original. */
static doppel_status read_evidence(reading *r, const redisReply *item, dp_arena *arena, const dp_redis_document *copy,
                                   dp_shared_document *to) {
    dp_redis_document original;
    to->original_gone = !item->element[3]->len;
    if (to->original_gone || copy->has_evidence) {
        to->record.evidence.same_url = to->record.evidence.same_url || to->record.reason == DP_SAME_URL;
        return DOPPEL_OK;
    }
    doppel_status status = decode(r, item->element[3], copy->trace.of, arena, &original);
    if (status != DOPPEL_OK)
        return status;
    status = dp_redis_measure(copy, &original, (dp_reason)to->record.reason, &to->record.evidence);
    return status == DOPPEL_OK ? status : dp_no_memory(r->error);
}

static bool is_item(const redisReply *item) {
    if (item->type != REDIS_REPLY_ARRAY || item->elements < FIRST_COPY)
        return false;
    for (size_t i = 0; i < item->elements; i++)
        if (item->element[i]->type != REDIS_REPLY_STRING)
            return false;
    return item->element[0]->len == ITEM_HEAD;
}

static doppel_status read_item(reading *r, const redisReply *item, dp_arena *arena, dp_shared_document *to) {
    dp_redis_document d;
    if (!is_item(item))
        return damaged(r);
    const uint8_t *head = (const uint8_t *)item->element[0]->str;
    uint64_t number = 0;
    for (int i = 0; i < 5; i++)
        number = number << 8 | head[i];
    doppel_status status = decode(r, item->element[1], number, arena, &d);
    if (status != DOPPEL_OK)
        return status;
    *to = (dp_shared_document){
        .trace = d.trace, .record = d.record, .counts = d.counts, .distance = head[5] == 255 ? -1 : head[5]};
    if (item->element[2]->len)
        to->text = (doppel_slice){item->element[2]->str, item->element[2]->len};
    if (d.trace.kind == DP_TRACE_COPY)
        return read_evidence(r, item, arena, &d, to);
    return read_aliases(r, item, arena, to);
}

/* The documents of a list, from `first` on; the reply is theirs then. */
static doppel_status read_items(reading *r, redisReply *reply, size_t first, dp_shared_documents *documents) {
    size_t count = reply->elements - first;
    held *h = calloc(1, sizeof *h);
    *documents = (dp_shared_documents){.document = calloc(count + 1, sizeof *documents->document), .held = h};
    if (h)
        h->reply = reply;
    else
        freeReplyObject(reply);
    doppel_status status = h && documents->document ? DOPPEL_OK : dp_no_memory(r->error);
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        status = read_item(r, reply->element[first + i], &h->arena, &documents->document[documents->count]);
        bool left_out = status == DOPPEL_ERROR_STORE && r->from; /* one of all */
        documents->damaged += left_out;
        documents->count += status == DOPPEL_OK;
        if (left_out)
            status = DOPPEL_OK;
    }
    if (status != DOPPEL_OK)
        dp_shared_documents_free(documents);
    return status;
}

/* ---- one, some, all ---- */

static void put_names(dp_redis_writer *w, const reading *r) {
    dp_redis_put_place(w, 'n', r->id);
    dp_redis_put(w, r->id.data, r->id.length);
    dp_redis_put_place(w, 'n', r->canonical);
    dp_redis_put(w, r->canonical.data, r->canonical.length);
}

doppel_status dp_shared_get(dp_shared *shared, doppel_slice id, doppel_slice canonical, uint64_t now,
                            dp_shared_documents *documents, doppel_error *error) {
    reading r = {.shared = shared, .now = now, .id = id, .canonical = canonical, .error = error};
    redisReply *reply = NULL;
    *documents = (dp_shared_documents){0};
    doppel_status status = call(&r, "get", put_names, &reply);
    return status == DOPPEL_OK ? read_items(&r, reply, 0, documents) : status;
}

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Numbers of 5 bytes, the highest first. */
static void put_numbers(dp_redis_writer *w, const reading *r) {
    uint8_t *bytes = dp_arena_take(w->arena, 5 * r->number_count);
    w->failed = w->failed || !bytes;
    for (size_t i = 0; i < r->number_count && bytes; i++)
        for (int b = 0; b < 5; b++)
            bytes[5 * i + (size_t)b] = (uint8_t)(r->numbers[i] >> (32 - 8 * b));
    dp_redis_put(w, bytes, 5 * r->number_count);
}

doppel_status dp_shared_get_numbers(dp_shared *shared, const uint64_t *numbers, size_t count, uint64_t now,
                                    dp_shared_documents *documents, doppel_error *error) {
    redisReply *reply = NULL;
    *documents = (dp_shared_documents){0};
    uint64_t *sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted)
        return dp_no_memory(error);
    if (count)
        memcpy(sorted, numbers, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_numbers);
    count = dp_unique64(sorted, count);
    reading r = {.shared = shared, .now = now, .numbers = sorted, .number_count = count, .error = error};
    doppel_status status = call(&r, "numbers", put_numbers, &reply);
    free(sorted);
    return status == DOPPEL_OK ? read_items(&r, reply, 0, documents) : status;
}

static void put_from(dp_redis_writer *w, const reading *r) {
    dp_redis_put_number(w, r->from);
    dp_redis_put_number(w, CHUNK);
}

doppel_status dp_shared_each(dp_shared *shared, uint64_t *from, uint64_t now, dp_shared_documents *documents,
                             doppel_error *error) {
    reading r = {.shared = shared, .now = now, .from = *from ? *from : 1, .error = error};
    redisReply *reply = NULL;
    *documents = (dp_shared_documents){0};
    doppel_status status = call(&r, "each", put_from, &reply);
    if (status != DOPPEL_OK)
        return status;
    if (!reply->elements || reply->element[0]->type != REDIS_REPLY_STRING) {
        freeReplyObject(reply);
        return damaged(&r);
    }
    char *behind;
    *from = strtoull(reply->element[0]->str, &behind, 10);
    uint64_t lost = strtoull(behind, NULL, 10);
    status = read_items(&r, reply, 1, documents);
    documents->damaged += lost;
    return status;
}

/* ---- near ones ---- */

static void put_near(dp_redis_writer *w, const reading *r) {
    dp_redis_put_fingerprint(w, r->fingerprint);
    dp_redis_put_number(w, (uint64_t)r->distance);
    dp_redis_put_number(w, r->limit);
    dp_redis_put_homes_and_probes(w, r->fingerprint);
}

static void put_scan(dp_redis_writer *w, const reading *r) {
    dp_redis_put_number(w, r->from);
    dp_redis_put_fingerprint(w, r->fingerprint);
    dp_redis_put_number(w, (uint64_t)r->distance);
}

/* Hits of all documents: the distance in the upper bits, then the number, so that they sort as they are given. */
typedef struct hits {
    uint64_t *hit;
    size_t count, room;
} hits;

static doppel_status add_hits(const reading *r, const redisReply *packed, hits *to) {
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

static doppel_status scan(reading *r, hits *to) {
    doppel_status status = DOPPEL_OK;
    for (r->from = 1; r->from && status == DOPPEL_OK;) {
        redisReply *reply = NULL;
        if ((status = call(r, "scan", put_scan, &reply)) != DOPPEL_OK)
            break;
        if (reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
            reply->element[1]->type != REDIS_REPLY_STRING)
            status = damaged(r);
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
static doppel_status find_far(reading *r, dp_shared_documents *documents) {
    hits found = {0};
    doppel_status status = scan(r, &found);
    if (status == DOPPEL_OK && found.count) {
        qsort(found.hit, found.count, sizeof *found.hit, compare_numbers);
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
    reading r = {.shared = shared, .now = now, .distance = distance, .limit = limit, .error = error};
    r.fingerprint = fingerprint;
    redisReply *reply = NULL;
    *documents = (dp_shared_documents){0};
    if (distance > shared->options.rules.distance)
        return find_far(&r, documents);
    doppel_status status = call(&r, "near", put_near, &reply);
    return status == DOPPEL_OK ? read_items(&r, reply, 0, documents) : status;
}
