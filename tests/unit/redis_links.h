/* redis_links.h - what tests of links to Redis share: a pool that keeps its log, and batches whose every command is to
 * be carried out once, which a function inside Redis checks, and in order as long as the functions are there. */
#ifndef TESTS_REDIS_LINKS_H
#define TESTS_REDIS_LINKS_H

#include "redis_server.h"

#include "known/redis_link.h"

#include <pthread.h>

/* doppel_test_count KEY LINK NUMBER: adds 1 to the field `all` of a hash, which also has the last number of each
 * link, and a field LINK:NUMBER for each that was counted. Such a number is not counted again, whether it is sent again
 * or comes late, from a connection that was given up; one that does not follow the last adds to `disorder`. The last
 * alone would not do: where functions vanish and come back in the middle of a batch, the end of it is carried out
 * before its middle. While there is a key {doppel}refuse, the next is refused, and that key goes. */
static const char test_library[] = "#!lua name=doppel_test\n"
                                   "redis.register_function('doppel_test_count', function(keys, args)\n"
                                   "  if redis.call('DEL', '{doppel}refuse') == 1 then\n"
                                   "    return redis.error_reply('LOADING not yet')\n"
                                   "  end\n"
                                   "  local last = tonumber(redis.call('HGET', keys[1], args[1]) or '0')\n"
                                   "  local number = tonumber(args[2])\n"
                                   "  if redis.call('HSETNX', keys[1], args[1] .. ':' .. number, 1) == 0 then\n"
                                   "    return {number, 'settled'}\n"
                                   "  end\n"
                                   "  if number ~= last + 1 then redis.call('HINCRBY', keys[1], 'disorder', 1) end\n"
                                   "  redis.call('HSET', keys[1], args[1], math.max(last, number))\n"
                                   "  redis.call('HINCRBY', keys[1], 'all', 1)\n"
                                   "  return {number, 'counted'}\n"
                                   "end)\n";

/* ---- pools ---- */

typedef struct redis_links {
    dp_redis_url url;
    dp_redis_pool *pool;
    pthread_mutex_t mutex;
    char log[8000]; /* lines LEVEL EVENT WORDS */
} redis_links;

static inline void links_note(doppel_log_level level, const char *event, const char *line, void *user) {
    redis_links *links = user;
    pthread_mutex_lock(&links->mutex);
    size_t used = strlen(links->log);
    snprintf(links->log + used, sizeof links->log - used, "%d %s %s\n", (int)level, event, line);
    pthread_mutex_unlock(&links->mutex);
}

static inline doppel_status links_try(redis_links *links, const char *url, doppel_error *error) {
    memset(links, 0, sizeof *links);
    pthread_mutex_init(&links->mutex, NULL);
    doppel_status status = dp_redis_url_parse(url, &links->url, error);
    if (status)
        return status;
    dp_redis_link_options options = {
        .url = &links->url, .library = test_library, .library_name = "doppel_test", .log = links_note, .user = links};
    status = dp_redis_pool_create(&options, &links->pool, error);
    if (status)
        dp_redis_url_free(&links->url);
    return status;
}

static inline void links_open(redis_links *links, const char *url) {
    doppel_error error = {0};
    if (links_try(links, url, &error))
        fail_msg("%s: %s", url, error.message);
}

static inline void links_close(redis_links *links) {
    dp_redis_pool_free(links->pool);
    dp_redis_url_free(&links->url);
    pthread_mutex_destroy(&links->mutex);
}

/* That opening fails with this status, and a message that has these words. */
static inline void links_refuse(const char *url, doppel_status expected, const char *words) {
    redis_links links;
    doppel_error error = {0};
    doppel_status status = links_try(&links, url, &error);
    if (status != expected || !strstr(error.message, words))
        fail_msg("%s: %d, %s", url, (int)status, error.message);
    pthread_mutex_destroy(&links.mutex);
}

/* ---- batches ---- */

typedef struct count_batch {
    dp_redis_batch batch;
    uint64_t first; /* number of the first command */
} count_batch;

static inline count_batch make_batch(dp_redis_link *link, size_t count) {
    count_batch made = {0};
    char name[17], number[24];
    for (size_t i = 0; i < 8; i++)
        snprintf(name + 2 * i, 3, "%02x", dp_redis_link_name(link)[i]);
    for (size_t i = 0; i < count; i++) {
        uint64_t next = dp_redis_link_next(link);
        made.first = i ? made.first : next;
        snprintf(number, sizeof number, "%llu", (unsigned long long)next);
        const char *words[] = {"doppel_test_count", "1", "{doppel}m", name, number};
        dp_redis_command_begin(&made.batch, "FCALL");
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            dp_redis_put_text(&made.batch, words[k]);
    }
    assert_false(made.batch.failed);
    return made;
}

/* Calls with `count` commands, and checks that each has its own answer. Gives how many were settled. */
static inline size_t call_counts(dp_redis_link *link, size_t count, bool safe) {
    count_batch made = make_batch(link, count);
    doppel_error error = {0};
    size_t settled = 0;
    if (dp_redis_call(link, &made.batch, safe, &error))
        fail_msg("%s", error.message);
    for (size_t i = 0; i < count; i++) {
        const redisReply *reply = made.batch.reply[i];
        if (reply->type != REDIS_REPLY_ARRAY)
            fail_msg("command %zu of %zu: %s", i, count, reply->str ? reply->str : "no array");
        assert_int_equal(reply->element[0]->integer, made.first + i);
        settled += !strcmp(reply->element[1]->str, "settled");
    }
    dp_redis_batch_free(&made.batch);
    return settled;
}

/* Calls and expects an error with these words. */
static inline void call_fails(dp_redis_link *link, size_t count, doppel_status expected, const char *words) {
    count_batch made = make_batch(link, count);
    doppel_error error = {0};
    doppel_status status = dp_redis_call(link, &made.batch, true, &error);
    if (status != expected || !strstr(error.message, words))
        fail_msg("%d, %s", (int)status, error.message);
    assert_null(made.batch.reply);
    dp_redis_batch_free(&made.batch);
}

static inline dp_redis_link *take_link(redis_links *links) {
    dp_redis_link *link = dp_redis_take(links->pool, NULL);
    assert_non_null(link);
    return link;
}

#endif
