/* redis_pass.c - one pass over the commands that have no answer yet, on one connection; see redis_link.c. Replies come
 * in the order of the commands, so the oldest in flight is always the one that is answered. */
#include "known/redis_parts.h"

#include <stdio.h>
#include <stdlib.h>

/* Bytes that are made before the system takes them. */
enum { ROOM = 256 << 10 };

/* ---- leaving a connection ---- */

void dp_redis_leave(dp_redis_link *link) {
    dp_redis_wire_close(&link->wire);
    link->ready = false;
}

static void doubt(dp_redis_calling *call, size_t i) {
    call->link->sending[i].unknown = true;
    atomic_fetch_add_explicit(&call->link->pool->counters.resent, 1, memory_order_relaxed);
}

/* Gives the connection up. What is in flight is in question as far as the system has it. */
void dp_redis_give_up(dp_redis_calling *call, const doppel_error *why) {
    size_t unsent = dp_redis_wire_unsent(&call->link->wire), unknown = 0;
    for (size_t i = call->next; call->flying && i-- > call->oldest;) {
        if (call->replies[i])
            continue;
        size_t bytes = call->link->sending[i].bytes;
        if (!unsent) {
            doubt(call, i);
            unknown++;
        }
        unsent -= bytes < unsent ? bytes : unsent;
    }
    for (size_t i = 0; call->safe && i < call->count; i++)
        if (call->replies[i]) {
            freeReplyObject(call->replies[i]);
            call->replies[i] = NULL;
            doubt(call, i);
        }
    if (why)
        dp_redis_log(call->link->pool, DOPPEL_LOG_WARNING, "REDIS_LOST", "%s; %zu commands without an answer",
                     why->message, unknown);
    call->link->doubted = call->link->doubted || unknown;
    call->flying = 0;
    call->broken = true;
    dp_redis_leave(call->link);
}

/* ---- a pass ---- */

static doppel_status fill(dp_redis_calling *call, doppel_error *error) {
    dp_redis_wire *wire = &call->link->wire;
    while (call->turn == DP_REDIS_KEEP && call->flying < call->window && dp_redis_wire_unsent(wire) < ROOM) {
        while (call->next < call->count && call->replies[call->next])
            call->next++;
        if (call->next == call->count)
            return DOPPEL_OK;
        dp_redis_sending *sending = &call->link->sending[call->next];
        size_t before = wire->out.size;
        if (!dp_redis_wire_put(wire, &call->commands[call->next], sending->unknown))
            return dp_no_memory(error);
        sending->bytes = wire->out.size - before;
        call->next++;
        call->flying++;
    }
    return DOPPEL_OK;
}

static void settle(dp_redis_calling *call, redisReply *reply) {
    dp_redis_turn turn = dp_redis_turn_of(reply);
    while (call->replies[call->oldest])
        call->oldest++;
    size_t i = call->oldest++;
    call->flying--;
    if (turn == DP_REDIS_KEEP && call->turn != DP_REDIS_KEEP && call->ordered) {
        freeReplyObject(reply); /* it would be older than what comes before it: it is asked for again */
        return;
    }
    if (turn == DP_REDIS_KEEP) {
        call->replies[i] = reply;
        call->heard = dp_redis_clock();
        call->pause = DP_REDIS_FIRST_PAUSE;
        call->window = DP_REDIS_WINDOW;
        return;
    }
    if (turn > call->turn) {
        call->turn = turn;
        dp_redis_explain(call->link->wire.place, reply, &call->refusal);
        snprintf(call->moved, sizeof call->moved, "%s", reply->str);
    }
    freeReplyObject(reply);
}

static doppel_status settle_all(dp_redis_calling *call, doppel_error *error) {
    for (;;) {
        redisReply *reply;
        doppel_status status = dp_redis_wire_reply(&call->link->wire, &reply, error);
        if (status || !reply)
            return status;
        if (!call->flying) {
            freeReplyObject(reply);
            return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: it answers what nobody asked", call->link->wire.place);
        }
        settle(call, reply);
    }
}

doppel_status dp_redis_pass(dp_redis_calling *call, doppel_error *error) {
    double timeout = call->link->pool->options.url->timeout;
    call->oldest = call->next = call->flying = 0;
    call->turn = DP_REDIS_KEEP;
    for (;;) {
        doppel_status status = fill(call, error);
        if (!status && !call->flying)
            return DOPPEL_OK;
        if (!status)
            status = dp_redis_wire_move(&call->link->wire, timeout, error);
        /* What came before it broke is known. */
        doppel_status settled = settle_all(call, status ? NULL : error);
        status = status ? status : settled;
        if (status) {
            dp_redis_give_up(call, error);
            return status;
        }
    }
}
