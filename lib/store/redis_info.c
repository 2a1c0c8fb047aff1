/* redis_info.c - what a shared memory is like, in figures. */
#include "store/redis_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The live documents of a field of the meta key, "d" or "c" and the second they expire by (0: never). */
static void count_field(const char *name, uint64_t value, uint64_t now, dp_shared_info *info) {
    uint64_t expires = strtoull(name + 1, NULL, 10);
    if (expires && expires <= now)
        return;
    if (*name == 'd')
        info->documents += value;
    else
        info->copies += value;
}

static void read_field(const char *name, const char *text, uint64_t now, dp_shared_info *info) {
    static const char counts[] = "uwt";
    uint64_t value = strtoull(text, NULL, 10);
    const char *count = name[0] && !name[1] ? strchr(counts, name[0]) : NULL;
    if ((*name == 'd' || *name == 'c') && name[1])
        count_field(name, value, now, info);
    else if (count)
        info->total.by[count - counts] = value;
    else if (!strcmp(name, "z"))
        info->total.last = value;
    else if (!strcmp(name, "n"))
        info->last = value;
}

static uint64_t used_memory(const redisReply *reply) {
    const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, "used_memory:") : NULL;
    return at ? strtoull(at + strlen("used_memory:"), NULL, 10) : 0;
}

static void read_replies(dp_shared *shared, redisReply **replies, uint64_t now, dp_shared_info *info) {
    const dp_redis_counters *counters = dp_redis_get_counters(shared->pool);
    const redisReply *fields = replies[0];
    for (size_t i = 0; i + 1 < fields->elements; i += 2)
        if (fields->element[i]->type == REDIS_REPLY_STRING && fields->element[i + 1]->type == REDIS_REPLY_STRING)
            read_field(fields->element[i]->str, fields->element[i + 1]->str, now, info);
    info->memory_bytes = used_memory(replies[1]);
    info->reconnects = atomic_load(&counters->reconnects);
    info->resent = atomic_load(&counters->resent);
    info->moved = atomic_load(&counters->moved);
    dp_redis_memory memory = dp_shared_memory(shared);
    snprintf(info->plan, sizeof info->plan, "%s", memory.plan.name);
}

doppel_status dp_shared_get_info(dp_shared *shared, uint64_t now, dp_shared_info *info, doppel_error *error) {
    const char *get[2] = {"HGETALL", shared->meta}, *ask[2] = {"INFO", "memory"};
    size_t get_lengths[2] = {7, shared->meta_length}, ask_lengths[2] = {4, 6};
    const dp_redis_command commands[2] = {{.argc = 2, .argv = get, .lengths = get_lengths},
                                          {.argc = 2, .argv = ask, .lengths = ask_lengths}};
    redisReply *replies[2] = {0};
    *info = (dp_shared_info){0};
    dp_redis_link *link = dp_redis_take(shared->pool, error);
    if (!link)
        return error && error->code ? error->code : DOPPEL_ERROR_IO;
    doppel_status status = dp_redis_call(link, commands, 2, false, replies, error);
    dp_redis_give(shared->pool, link);
    if (status != DOPPEL_OK)
        return status;
    if (replies[0]->type == REDIS_REPLY_ARRAY)
        read_replies(shared, replies, now ? now : (uint64_t)time(NULL), info);
    else
        status = dp_shared_fail(shared, replies[0], error);
    freeReplyObject(replies[0]);
    freeReplyObject(replies[1]);
    return status;
}
