/* redis_link.c - commands in order, each carried out once, over connections that break.
 *
 * A call makes passes over the commands that have no answer yet. In a pass they are sent in order, a window at a time;
 * answers come in the same order. A refusal (MOVED, LOADING, ...) ends the sending: what is on its way is awaited, then
 * the reason is mended. The next pass, as the first on every connection, sends one command alone until one is answered,
 * so that a server that changes its mind meanwhile does not carry out the later ones of a window only. When the
 * connection breaks, what was sent may have been carried out or not: it is sent again with its flag `again`, by which
 * the function inside Redis knows to look first. What the system never got was not carried out, and is sent again as it
 * was.
 *
 * With replicas an answer counts once a WAIT has confirmed it. If the connection is lost before, the server that gave
 * the answer may be gone, and another without it in charge: all commands of the call are in question again. */
#include "known/redis_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Between two attempts at most; and where somebody answers, and only asks for patience. */
#define LONGEST_PAUSE 1.0
#define LONGEST_WAIT 0.1

/* ---- replicas ---- */

/* WAIT counts from the last write of its own connection. After another one has broken there may be none, so a key that
 * vanishes at once is written. */
static doppel_status write_mark(dp_redis_calling *call, doppel_error *error) {
    const dp_redis_url *url = call->link->pool->options.url;
    char key[128];
    redisReply *reply;
    snprintf(key, sizeof key, "{%s}z", url->prefix);
    doppel_status status = DP_REDIS_ASK(&call->link->wire, url->timeout, &reply, error, "SET", key, "", "PX", "1000");
    if (!status && reply->type == REDIS_REPLY_ERROR)
        return dp_redis_refused(call->link, reply, error);
    freeReplyObject(reply);
    return status;
}

static doppel_status confirm(dp_redis_calling *call, doppel_error *error) {
    const dp_redis_url *url = call->link->pool->options.url;
    char replicas[16], milliseconds[16];
    redisReply *reply;
    snprintf(replicas, sizeof replicas, "%d", url->replicas);
    snprintf(milliseconds, sizeof milliseconds, "%d", (int)(url->timeout * 500) + 1);
    doppel_status status = call->broken ? write_mark(call, error) : DOPPEL_OK;
    if (!status)
        status = DP_REDIS_ASK(&call->link->wire, 2 * url->timeout, &reply, error, "WAIT", replicas, milliseconds);
    if (status) {
        dp_redis_give_up(call, error);
        return status;
    }
    bool enough = reply->type == REDIS_REPLY_INTEGER && reply->integer >= url->replicas;
    if (reply->type == REDIS_REPLY_ERROR) {
        status = dp_redis_refused(call->link, reply, error);
        dp_redis_give_up(call, error);
        return status == DOPPEL_ERROR_MEMORY ? status : DOPPEL_ERROR_AWAY;
    }
    if (!enough)
        status = dp_fail(error, DOPPEL_ERROR_AWAY,
                         "%s: %lld of the %d replicas that replicas= asks for have what was written",
                         call->link->wire.place, reply->integer, url->replicas);
    freeReplyObject(reply);
    return status;
}

/* ---- a call ---- */

/* Back-off: twice as long each time, half of it left to chance, so that many do not come back at the same moment. */
static void rest(dp_redis_calling *call) {
    uint64_t *chance = &call->link->chance;
    *chance = *chance * 6364136223846793005u + 1442695040888963407u;
    double seconds = call->pause * (0.5 + (double)(*chance >> 33) / 4294967296.0);
    const double step = 0.05;
    for (; seconds > 0 && !dp_redis_stops(call->link->pool); seconds -= step)
        nanosleep(&(struct timespec){0, (long)((seconds < step ? seconds : step) * 1e9)}, NULL);
    double longest = call->turn == DP_REDIS_WAIT ? LONGEST_WAIT : LONGEST_PAUSE;
    call->pause = call->pause * 2 < longest ? call->pause * 2 : longest;
}

/* Does what the refusals of a pass ask for. Functions are loaded after the pause, so that they are used before they can
 * go again. */
static doppel_status mend(dp_redis_calling *call, doppel_error *error) {
    dp_redis_link *link = call->link;
    doppel_status status = DOPPEL_OK;
    call->window = 1;
    if (call->turn == DP_REDIS_LOAD) {
        rest(call);
        link->missing = true;
        const char *done;
        status = dp_redis_load(link, &done, error);
        if (!status)
            dp_redis_log(link->pool, DOPPEL_LOG_WARNING, "REDIS_FUNCTIONS", "%s: the functions were gone: loaded again",
                         link->wire.place);
        else if (link->ready)
            dp_redis_give_up(call, NULL);
    }
    if (call->turn == DP_REDIS_FIND || call->turn == DP_REDIS_MOVED)
        dp_redis_give_up(call, NULL);
    if (call->turn == DP_REDIS_MOVED) {
        atomic_fetch_add_explicit(&link->pool->counters.moved, 1, memory_order_relaxed);
        status = dp_redis_follow(link, call->moved, error);
    }
    if (status)
        return status;
    if (error)
        *error = call->refusal;
    return call->refusal.code;
}

static doppel_status connect_again(dp_redis_calling *call, doppel_error *error) {
    dp_redis_link *link = call->link;
    bool before = link->client != 0;
    doppel_status status = dp_redis_find(link, error);
    call->window = 1;
    if (status || !before)
        return status;
    atomic_fetch_add_explicit(&link->pool->counters.reconnects, 1, memory_order_relaxed);
    dp_redis_log(link->pool, DOPPEL_LOG_INFO, "REDIS_CONNECTED", "%s", link->wire.place);
    return DOPPEL_OK;
}

/* One attempt at all that is left. Errors: DOPPEL_ERROR_AWAY may pass, unless what was refused says otherwise. */
static doppel_status attempt(dp_redis_calling *call, doppel_error *error) {
    call->turn = call->link->refusal = DP_REDIS_KEEP;
    doppel_status status = call->link->ready ? DOPPEL_OK : connect_again(call, error);
    if (!status)
        status = dp_redis_pass(call, error);
    if (!status && call->turn != DP_REDIS_KEEP)
        return mend(call, error);
    return !status && call->safe ? confirm(call, error) : status;
}

static doppel_status too_long(const dp_redis_calling *call, const doppel_error *why, doppel_error *error) {
    size_t unknown = 0;
    char when[48] = "as this process is stopping";
    for (size_t i = 0; i < call->count; i++)
        unknown += !call->replies[i] && call->link->sending[i].unknown;
    if (!dp_redis_stops(call->link->pool))
        snprintf(when, sizeof when, "after %g s", call->link->pool->options.url->retry);
    if (unknown)
        return dp_fail(error, DOPPEL_ERROR_AWAY, "%s; given up %s: what became of the last %zu commands is not known",
                       why->message, when, unknown);
    return dp_fail(error, DOPPEL_ERROR_AWAY, "%s; given up %s", why->message, when);
}

static doppel_status run(dp_redis_calling *call, doppel_error *error) {
    double retry = call->link->pool->options.url->retry;
    for (;;) {
        doppel_error why;
        doppel_status status = attempt(call, &why);
        if (!status)
            return DOPPEL_OK;
        bool hopeless = call->turn == DP_REDIS_FAIL || call->link->refusal == DP_REDIS_FAIL;
        if (status != DOPPEL_ERROR_AWAY || hopeless) {
            if (error)
                *error = why;
            return status;
        }
        bool stops = dp_redis_stops(call->link->pool) && retry > DP_REDIS_GRACE;
        if (dp_redis_clock() - call->heard >= (stops ? DP_REDIS_GRACE : retry))
            return too_long(call, &why, error);
        if (call->turn != DP_REDIS_LOAD)
            rest(call);
    }
}

doppel_status dp_redis_call(dp_redis_link *link, const dp_redis_command *commands, size_t count, bool safe,
                            redisReply **replies, doppel_error *error) {
    if (!count)
        return DOPPEL_OK;
    memset(replies, 0, count * sizeof *replies);
    if (!dp_reserve(&link->sending, &link->capacity, count, sizeof *link->sending))
        return dp_no_memory(error);
    memset(link->sending, 0, count * sizeof *link->sending);
    link->wrote = link->wrote || safe;
    if (link->ready && !dp_redis_wire_is_quiet(&link->wire))
        dp_redis_leave(link);
    dp_redis_calling call = {.link = link, .commands = commands, .count = count, .replies = replies};
    call.ordered = !safe;
    call.safe = safe && link->pool->options.url->replicas > 0;
    call.window = DP_REDIS_WINDOW;
    call.heard = dp_redis_clock();
    call.pause = DP_REDIS_FIRST_PAUSE;
    doppel_status status = run(&call, error);
    for (size_t i = 0; status && i < count; i++) {
        freeReplyObject(replies[i]);
        replies[i] = NULL;
    }
    return status;
}
