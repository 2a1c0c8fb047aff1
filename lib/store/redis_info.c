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

static void read_meta(dp_shared *shared, const redisReply *fields, uint64_t now, dp_shared_info *info) {
    const dp_redis_counters *counters = dp_redis_get_counters(shared->pool);
    for (size_t i = 0; i + 1 < fields->elements; i += 2)
        if (fields->element[i]->type == REDIS_REPLY_STRING && fields->element[i + 1]->type == REDIS_REPLY_STRING)
            read_field(fields->element[i]->str, fields->element[i + 1]->str, now, info);
    info->reconnects = atomic_load(&counters->reconnects);
    info->resent = atomic_load(&counters->resent);
    info->moved = atomic_load(&counters->moved);
    dp_redis_memory memory = dp_shared_memory(shared);
    snprintf(info->plan, sizeof info->plan, "%s", memory.plan.name);
}

/* What the whole server uses; 0: this user may not ask. */
static uint64_t ask_used_memory(dp_redis_link *link) {
    const char *ask[2] = {"INFO", "memory"};
    size_t lengths[2] = {4, 6};
    const dp_redis_command command = {.argc = 2, .argv = ask, .lengths = lengths};
    redisReply *reply = NULL;
    if (dp_redis_call(link, &command, 1, false, &reply, NULL) != DOPPEL_OK)
        return 0;
    const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, "used_memory:") : NULL;
    uint64_t used = at ? strtoull(at + strlen("used_memory:"), NULL, 10) : 0;
    freeReplyObject(reply);
    return used;
}

doppel_status dp_shared_get_info(dp_shared *shared, uint64_t now, dp_shared_info *info, doppel_error *error) {
    const char *get[2] = {"HGETALL", shared->meta};
    size_t lengths[2] = {7, shared->meta_length};
    const dp_redis_command command = {.argc = 2, .argv = get, .lengths = lengths};
    redisReply *reply = NULL;
    *info = (dp_shared_info){0};
    dp_redis_link *link = dp_redis_take(shared->pool, error);
    if (!link)
        return error && error->code ? error->code : DOPPEL_ERROR_IO;
    doppel_status status = dp_redis_call(link, &command, 1, false, &reply, error);
    if (status == DOPPEL_OK && reply->type == REDIS_REPLY_ARRAY) {
        read_meta(shared, reply, now ? now : (uint64_t)time(NULL), info);
        info->memory_bytes = ask_used_memory(link);
    } else if (status == DOPPEL_OK) {
        status = dp_shared_fail(shared, reply, error);
    }
    dp_redis_give(shared->pool, link);
    freeReplyObject(reply);
    return status;
}
