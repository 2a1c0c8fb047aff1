/* redis_pool.c - links for as many threads as ask at once: one is taken, used and given back; the pool grows to as many
 * as were ever taken at the same time. */
#include "known/redis_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

/* ---- links ---- */

dp_redis_link *dp_redis_link_create(dp_redis_pool *pool, doppel_error *error) {
    dp_redis_link *link = calloc(1, sizeof *link);
    if (!link) {
        dp_no_memory(error);
        return NULL;
    }
    link->pool = pool;
    link->wire.fd = -1;
    if (getrandom(link->name, sizeof link->name, 0) != sizeof link->name) {
        dp_fail(error, DOPPEL_ERROR_AWAY, "the system gives no random numbers: %s", strerror(errno));
        free(link);
        return NULL;
    }
    link->chance = dp_load64(link->name);
    return link;
}

void dp_redis_link_free(dp_redis_link *link) {
    dp_redis_wire_close(&link->wire);
    free(link->where.host);
    free(link->sending);
    free(link);
}

const uint8_t *dp_redis_link_name(const dp_redis_link *link) {
    return link->name;
}

uint64_t dp_redis_link_next(dp_redis_link *link) {
    return ++link->number;
}

/* ---- the pool ---- */

void dp_redis_log(dp_redis_pool *pool, doppel_log_level level, const char *event, const char *format, ...) {
    if (!pool->options.log)
        return;
    char line[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pool->options.log(level, event, line, pool->options.user);
}

/* Who answers and is still reading its data, or choosing a master, is worth some patience; what else fails is told at
 * once. */
static bool may_pass(const dp_redis_link *link) {
    bool choosing = link->cluster || link->pool->options.url->kind == DP_REDIS_SENTINEL;
    return link->client && link->refusal != DP_REDIS_FAIL && (choosing || link->refusal == DP_REDIS_WAIT);
}

static doppel_status connect_first(dp_redis_pool *pool, doppel_error *error) {
    dp_redis_link *link = dp_redis_take(pool, error);
    if (!link)
        return error->code;
    double until = dp_redis_clock() + pool->options.url->retry;
    doppel_status status;
    for (;;) {
        link->client = 0;
        link->refusal = DP_REDIS_KEEP;
        status = dp_redis_find(link, error);
        if (status != DOPPEL_ERROR_AWAY || !may_pass(link) || dp_redis_clock() >= until)
            break;
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    dp_redis_give(pool, link);
    return status;
}

doppel_status dp_redis_pool_create(const dp_redis_link_options *options, dp_redis_pool **pool, doppel_error *error) {
    dp_redis_pool *made = calloc(1, sizeof *made);
    *pool = NULL;
    if (!made)
        return dp_no_memory(error);
    made->options = *options;
    pthread_mutex_init(&made->mutex, NULL);
    doppel_error why = {0};
    doppel_status status = connect_first(made, &why);
    if (!status) {
        *pool = made;
        return DOPPEL_OK;
    }
    if (error)
        *error = why;
    dp_redis_pool_free(made);
    return status;
}

/* A server remembers the last request of a link for two minutes, so that it is known when it is sent again. The link
 * sends nothing any more: it goes at once. Where one may still arrive from a connection that was given up, and where
 * the server is away, it goes at its time. */
static void forget_requests(dp_redis_link *link) {
    const dp_redis_url *url = link->pool->options.url;
    size_t prefix = strlen(url->prefix), name = sizeof link->name;
    char key[160];
    const double patience = url->timeout < 1 ? url->timeout : 1;
    if (!link->wrote || link->doubted || !link->ready || !dp_redis_wire_is_quiet(&link->wire))
        return;
    snprintf(key, sizeof key, "{%s}r", url->prefix);
    memcpy(key + prefix + 3, link->name, name);
    const char *forget[2] = {"DEL", key};
    size_t lengths[2] = {3, prefix + 3 + name};
    const dp_redis_command command = {2, forget, lengths, 0};
    redisReply *reply = NULL;
    bool sent = dp_redis_wire_put(&link->wire, &command, false);
    double until = dp_redis_clock() + patience;
    while (sent && !reply && dp_redis_clock() < until)
        sent = !dp_redis_wire_move(&link->wire, patience, NULL) && !dp_redis_wire_reply(&link->wire, &reply, NULL);
    if (reply)
        freeReplyObject(reply);
}

void dp_redis_pool_stop(dp_redis_pool *pool) {
    atomic_store(&pool->stop.since, (uint64_t)(dp_redis_clock() * 1e6));
}

void dp_redis_pool_free(dp_redis_pool *pool) {
    if (!pool)
        return;
    for (dp_redis_link *link = pool->idle, *next; link; link = next) {
        next = link->next;
        forget_requests(link);
        dp_redis_link_free(link);
    }
    for (size_t i = 0; i < pool->nodes; i++)
        free(pool->node[i].host);
    free(pool->node);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

dp_redis_link *dp_redis_take(dp_redis_pool *pool, doppel_error *error) {
    pthread_mutex_lock(&pool->mutex);
    dp_redis_link *link = pool->idle;
    if (link)
        pool->idle = link->next;
    pthread_mutex_unlock(&pool->mutex);
    return link ? link : dp_redis_link_create(pool, error);
}

void dp_redis_give(dp_redis_pool *pool, dp_redis_link *link) {
    pthread_mutex_lock(&pool->mutex);
    link->next = pool->idle;
    pool->idle = link;
    pthread_mutex_unlock(&pool->mutex);
}

const dp_redis_counters *dp_redis_get_counters(const dp_redis_pool *pool) {
    return &pool->counters;
}
