/* redis_ask.c - requests to answers: encoded, sent in one pipeline, decoded. What met another memory than it was made
 * for is encoded anew and sent once more. */
#include "store/redis_memory.h"

#include <stdlib.h>

/* So often a memory is looked for again before we give up. */
enum { ATTEMPTS = 8 };
enum { KNOWN = 1, TOOK_PLACE = 2, FOUND = 4, EMPTIED = 8 };
enum { ANSWER_HEAD = 26 };

/* What answers point into. */
typedef struct held {
    dp_arena arena;
    redisReply **reply;
    size_t count;
} held;

typedef struct asking {
    dp_shared *shared;
    const dp_shared_request *request;
    dp_shared_answers *answers;
    held *held;
    size_t *left; /* the requests that have no answer yet */
    size_t left_count;
    dp_redis_memory memory;
    bool emptied; /* by the last request that changed something */
    doppel_error *error;
} asking;

void dp_shared_answers_free(dp_shared_answers *answers) {
    held *h = answers->held;
    for (size_t i = 0; h && i < h->count; i++)
        if (h->reply[i])
            freeReplyObject(h->reply[i]);
    if (h) {
        dp_arena_free(&h->arena);
        free(h->reply);
        free(h);
    }
    free(answers->answer);
    *answers = (dp_shared_answers){0};
}

/* ---- answers ---- */

static uint64_t read_number(const uint8_t *bytes, size_t length) {
    uint64_t number = 0;
    for (size_t i = 0; i < length; i++)
        number = number << 8 | bytes[i];
    return number;
}

static bool is_answer(const redisReply *reply) {
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 1 || reply->elements > 3)
        return false;
    for (size_t i = 0; i < reply->elements; i++)
        if (reply->element[i]->type != REDIS_REPLY_STRING)
            return false;
    const uint8_t *head = (const uint8_t *)reply->element[0]->str;
    return reply->element[0]->len == ANSWER_HEAD && head[0] <= 1 && head[1] < DP_REASONS;
}

static doppel_status decode(asking *a, const redisReply *reply, uint64_t number, dp_redis_document *document) {
    doppel_status status =
        dp_redis_document_decode(&a->memory, number, (doppel_slice){reply->str, reply->len}, &a->held->arena, document);
    if (status == DOPPEL_ERROR_STORE)
        return dp_fail_at(a->error, status, a->shared->url.name, 0, "document %llu is not what doppel wrote",
                          (unsigned long long)number);
    return status == DOPPEL_OK ? status : dp_no_memory(a->error);
}

/* The evidence of a copy that is there already, or of what the request is a copy of. */
static doppel_status measure(asking *a, const redisReply *reply, const dp_shared_request *request,
                             const dp_redis_document *original, dp_shared_answer *answer) {
    dp_redis_document own = {.trace = request->trace, .record = request->record};
    doppel_status status = DOPPEL_OK;
    if (reply->elements > 2)
        status = decode(a, reply->element[2], answer->number, &own);
    if (status != DOPPEL_OK)
        return status;
    answer->id = own.record.id;
    if (own.has_evidence || (request->op == DP_SHARED_RESTORE && reply->elements < 3)) {
        answer->evidence = own.record.evidence;
        return DOPPEL_OK;
    }
    if (original->trace.kind == DP_TRACE_COPY) { /* its original is gone meanwhile: all that is left is its id */
        answer->record.id = own.record.original_id;
        return DOPPEL_OK;
    }
    status = dp_redis_measure(&own, original, answer->reason, &answer->evidence);
    return status == DOPPEL_OK ? status : dp_no_memory(a->error);
}

/* Notes what was added and removed, for the day when nothing is there any more. */
static void note(asking *a, const dp_shared_request *request, const dp_shared_answer *answer, unsigned flags) {
    if (flags & EMPTIED) {
        a->emptied = true;
        dp_shared_note_emptied(a->shared);
    } else if (answer->number && !answer->known && request->op != DP_SHARED_REMOVE) {
        a->emptied = false;
        dp_shared_note_added(a->shared, request->ttl);
    }
}

static doppel_status read_answer(asking *a, const redisReply *reply, size_t at) {
    dp_shared_answer *answer = &a->answers->answer[at];
    const dp_shared_request *request = &a->request[at];
    if (!is_answer(reply))
        return dp_shared_fail(a->shared, reply, a->error);
    const uint8_t *head = (const uint8_t *)reply->element[0]->str;
    *answer = (dp_shared_answer){.reason = (dp_reason)head[1],
                                 .known = head[2] & KNOWN,
                                 .replaced = head[2] & TOOK_PLACE,
                                 .found = head[2] & FOUND,
                                 .number = read_number(head + 3, 5),
                                 .candidates = read_number(head + 13, 4),
                                 .id = request->record.id,
                                 .evidence = dp_evidence_none()};
    if (head[0])
        answer->status = DOPPEL_ERROR_INPUT;
    note(a, request, answer, head[2]);
    if (reply->elements < 2)
        return DOPPEL_OK;
    dp_redis_document original;
    uint64_t number = read_number(head + 8, 5);
    doppel_status status = decode(a, reply->element[1], number ? number : answer->number, &original);
    if (status != DOPPEL_OK)
        return status;
    answer->trace = original.trace;
    answer->record = original.record;
    if (answer->known && !answer->reason)
        answer->id = original.record.id;
    return answer->reason ? measure(a, reply, request, &original, answer) : DOPPEL_OK;
}

/* ---- rounds ---- */

/* Takes the replies of a round; what met another memory is left for the next. */
static doppel_status take_replies(asking *a, redisReply **replies) {
    doppel_status status = DOPPEL_OK;
    size_t left = 0;
    for (size_t i = 0; i < a->left_count; i++) {
        size_t at = a->left[i];
        a->held->reply[at] = replies[i];
        if (status != DOPPEL_OK)
            continue;
        if (dp_shared_is_another(replies[i])) {
            freeReplyObject(replies[i]);
            a->held->reply[at] = NULL;
            a->left[left++] = at;
        } else {
            status = read_answer(a, replies[i], at);
        }
    }
    a->left_count = left;
    return status;
}

/* A request that changed nothing leaves no trace at the server, but one that removed the last document does. */
static void forget_link(asking *a, dp_redis_link *link) {
    dp_arena arena = {0};
    size_t length = a->shared->meta_length;
    char *key = dp_arena_take(&arena, length + 8);
    redisReply *reply = NULL;
    if (key) {
        memcpy(key, a->shared->meta, length - 1);
        key[length - 1] = 'r';
        memcpy(key + length, dp_redis_link_name(link), 8);
        const char *argv[2] = {"DEL", key};
        size_t lengths[2] = {3, length + 8};
        const dp_redis_command command = {.argc = 2, .argv = argv, .lengths = lengths};
        /* Where this fails, the key goes by itself a little later. */
        if (dp_redis_call(link, &command, 1, false, &reply, NULL) == DOPPEL_OK)
            freeReplyObject(reply);
    }
    dp_arena_free(&arena);
}

static doppel_status send_round(asking *a, dp_redis_link *link) {
    dp_arena arena = {0};
    dp_redis_command *commands = dp_arena_take(&arena, a->left_count * sizeof *commands);
    redisReply **replies = dp_arena_take(&arena, a->left_count * sizeof *replies);
    bool failed = !commands || !replies, changes = false;
    a->memory = dp_shared_memory(a->shared);
    for (size_t i = 0; i < a->left_count && !failed; i++) {
        const dp_shared_request *request = &a->request[a->left[i]];
        dp_redis_writer w = {.arena = &arena, .memory = &a->memory};
        dp_redis_put_request(&w, a->shared, request, link);
        commands[i] = w.command;
        failed = w.failed;
        changes = changes || request->op != DP_SHARED_CHECK;
    }
    doppel_status status =
        failed ? dp_no_memory(a->error) : dp_redis_call(link, commands, a->left_count, changes, replies, a->error);
    if (status == DOPPEL_OK)
        status = take_replies(a, replies);
    dp_arena_free(&arena);
    return status;
}

static doppel_status ask_all(asking *a) {
    dp_redis_link *link = dp_redis_take(a->shared->pool, a->error);
    if (!link)
        return a->error && a->error->code ? a->error->code : DOPPEL_ERROR_IO;
    doppel_status status = send_round(a, link);
    for (int i = 0; status == DOPPEL_OK && a->left_count && i < ATTEMPTS; i++) {
        status = dp_shared_renew(a->shared, a->error);
        if (status == DOPPEL_OK)
            status = send_round(a, link);
    }
    if (status == DOPPEL_OK && a->left_count)
        status = dp_fail_at(a->error, DOPPEL_ERROR_IO, a->shared->url.name, 0,
                            "the memory goes as soon as it is made: is something else deleting its keys?");
    if (status == DOPPEL_OK && a->emptied)
        forget_link(a, link);
    dp_redis_give(a->shared->pool, link);
    return status;
}

doppel_status dp_shared_ask(dp_shared *shared, const dp_shared_request *requests, size_t count,
                            dp_shared_answers *answers, doppel_error *error) {
    asking a = {.shared = shared, .request = requests, .answers = answers, .left_count = count, .error = error};
    *answers = (dp_shared_answers){0};
    if (!count)
        return DOPPEL_OK;
    answers->held = a.held = calloc(1, sizeof *a.held);
    answers->answer = calloc(count, sizeof *answers->answer);
    a.left = malloc(count * sizeof *a.left);
    bool there = a.held && answers->answer && a.left && (a.held->reply = calloc(count, sizeof *a.held->reply));
    for (size_t i = 0; i < count && there; i++)
        a.left[i] = i;
    if (there)
        a.held->count = count;
    doppel_status status = there ? ask_all(&a) : dp_no_memory(error);
    answers->count = count;
    free(a.left);
    if (status != DOPPEL_OK)
        dp_shared_answers_free(answers);
    return status;
}
