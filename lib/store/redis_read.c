/* redis_read.c - documents of a shared memory: by id, URL or number, one after the other. */
#include "store/redis_reading.h"

#include <stdlib.h>

enum { ATTEMPTS = 8, CHUNK = 256, ITEM_HEAD = 6, FIRST_COPY = 4 };

/* ---- calling ---- */

static doppel_status call_once(dp_redis_reading *r, const char *function, dp_redis_put_reading put,
                               redisReply **reply) {
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

doppel_status dp_redis_read(dp_redis_reading *r, const char *function, dp_redis_put_reading put, redisReply **reply) {
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

doppel_status dp_redis_read_damaged(const dp_redis_reading *r) {
    return dp_fail_at(r->error, DOPPEL_ERROR_STORE, r->shared->url.name, 0, "a document that is not what doppel wrote");
}

static doppel_status decode(dp_redis_reading *r, const redisReply *reply, uint64_t number, dp_arena *arena,
                            dp_redis_document *document) {
    const doppel_slice bytes = {reply->str, reply->len};
    doppel_status status = dp_redis_document_decode(&r->memory, number, bytes, arena, document);
    if (status == DOPPEL_ERROR_STORE)
        return dp_redis_read_damaged(r);
    return status == DOPPEL_OK ? status : dp_no_memory(r->error);
}

/* The URLs of its copies. */
static doppel_status read_aliases(dp_redis_reading *r, const redisReply *item, dp_arena *arena,
                                  dp_shared_document *to) {
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
static doppel_status read_evidence(dp_redis_reading *r, const redisReply *item, dp_arena *arena,
                                   const dp_redis_document *copy, dp_shared_document *to) {
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

static doppel_status read_item(dp_redis_reading *r, const redisReply *item, dp_arena *arena, dp_shared_document *to) {
    dp_redis_document d;
    if (!is_item(item))
        return dp_redis_read_damaged(r);
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

doppel_status dp_redis_read_items(dp_redis_reading *r, redisReply *reply, size_t first,
                                  dp_shared_documents *documents) {
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

static void put_names(dp_redis_writer *w, const dp_redis_reading *r) {
    dp_redis_put_place(w, 'n', r->id);
    dp_redis_put(w, r->id.data, r->id.length);
    dp_redis_put_place(w, 'n', r->canonical);
    dp_redis_put(w, r->canonical.data, r->canonical.length);
}

doppel_status dp_shared_get(dp_shared *shared, doppel_slice id, doppel_slice canonical, uint64_t now,
                            dp_shared_documents *documents, doppel_error *error) {
    dp_redis_reading r = {.shared = shared, .now = now, .id = id, .canonical = canonical, .error = error};
    redisReply *reply = NULL;
    *documents = (dp_shared_documents){0};
    doppel_status status = dp_redis_read(&r, "get", put_names, &reply);
    return status == DOPPEL_OK ? dp_redis_read_items(&r, reply, 0, documents) : status;
}

int dp_redis_compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Numbers of 5 bytes, the highest first. */
static void put_numbers(dp_redis_writer *w, const dp_redis_reading *r) {
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
    qsort(sorted, count, sizeof *sorted, dp_redis_compare_numbers);
    count = dp_unique64(sorted, count);
    dp_redis_reading r = {.shared = shared, .now = now, .numbers = sorted, .number_count = count, .error = error};
    doppel_status status = dp_redis_read(&r, "numbers", put_numbers, &reply);
    free(sorted);
    return status == DOPPEL_OK ? dp_redis_read_items(&r, reply, 0, documents) : status;
}

static void put_from(dp_redis_writer *w, const dp_redis_reading *r) {
    dp_redis_put_number(w, r->from);
    dp_redis_put_number(w, CHUNK);
}

doppel_status dp_shared_each(dp_shared *shared, uint64_t *from, uint64_t now, dp_shared_documents *documents,
                             doppel_error *error) {
    dp_redis_reading r = {.shared = shared, .now = now, .from = *from ? *from : 1, .error = error};
    redisReply *reply = NULL;
    *documents = (dp_shared_documents){0};
    doppel_status status = dp_redis_read(&r, "each", put_from, &reply);
    if (status != DOPPEL_OK)
        return status;
    if (!reply->elements || reply->element[0]->type != REDIS_REPLY_STRING) {
        freeReplyObject(reply);
        return dp_redis_read_damaged(&r);
    }
    char *behind;
    *from = strtoull(reply->element[0]->str, &behind, 10);
    uint64_t lost = strtoull(behind, NULL, 10);
    status = dp_redis_read_items(&r, reply, 1, documents);
    documents->damaged += lost;
    return status;
}
