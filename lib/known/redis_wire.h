/* redis_wire.h - bytes to and from one server of Redis: a socket that nobody waits for longer than asked.
 *
 *   dp_redis_wire_open, dp_redis_wire_put ..., dp_redis_wire_move and dp_redis_wire_reply in turn, dp_redis_wire_close
 *
 * Writing and reading take turns, so that a long pipeline cannot stop with both sides' buffers full. A server that
 * closes its end is an error of a call, never a signal (SIGPIPE). */
#ifndef DP_REDIS_WIRE_H
#define DP_REDIS_WIRE_H

#include "known/redis_link.h"

/* Whether the process still waits for a server that does not answer. Once it does not, whoever is silent for
 * DP_REDIS_GRACE seconds is given up, whatever the timeout. */
typedef struct dp_redis_stop {
    _Atomic uint64_t since; /* when it was told to, in microseconds of dp_redis_clock; 0: it was not */
} dp_redis_stop;
#define DP_REDIS_GRACE 0.5

typedef struct dp_redis_wire {
    int fd; /* -1: closed */
    const dp_redis_stop *stop;
    redisReader *reader;
    dp_buffer out; /* bytes to send */
    size_t sent;   /* of `out` the system has these */
    char place[128];
} dp_redis_wire;

/* Connects within `timeout` seconds, by each address of the host in turn. `stop` must outlive the wire. Errors:
 * DOPPEL_ERROR_AWAY, _MEMORY. */
doppel_status dp_redis_wire_open(dp_redis_wire *wire, const dp_redis_address *to, double timeout,
                                 const dp_redis_stop *stop, doppel_error *error);
void dp_redis_wire_close(dp_redis_wire *wire);

/* Whether nothing has come in: bytes that nobody asked for, or its end, mean that it is of no use any more. */
bool dp_redis_wire_is_quiet(const dp_redis_wire *wire);

/* Appends a command to what is to be sent; `again` sets the argument of that name. false: no memory, nothing changed.
 */
bool dp_redis_wire_put(dp_redis_wire *wire, const dp_redis_command *command, bool again);

/* Bytes that were put and not sent yet. */
static inline size_t dp_redis_wire_unsent(const dp_redis_wire *wire) {
    return wire->out.size - wire->sent;
}

/* Sends what can be sent and takes in what has come, once, waiting for either for up to `timeout` seconds. An error
 * means that the connection is of no use any more: DOPPEL_ERROR_AWAY, _MEMORY. */
doppel_status dp_redis_wire_move(dp_redis_wire *wire, double timeout, doppel_error *error);

/* The next reply that has come whole; NULL: none yet. Errors as of move. */
doppel_status dp_redis_wire_reply(dp_redis_wire *wire, redisReply **reply, doppel_error *error);

/* One command, given as strings up to NULL, and its reply, which may be an error of Redis. Nothing else may be on its
 * way. Errors as of move. */
doppel_status dp_redis_wire_ask(dp_redis_wire *wire, double timeout, const char *const *words, redisReply **reply,
                                doppel_error *error);
#define DP_REDIS_ASK(wire, timeout, reply, error, ...) \
    dp_redis_wire_ask(wire, timeout, (const char *const[]){__VA_ARGS__, NULL}, reply, error)

/* Seconds of a clock that only goes on. */
double dp_redis_clock(void);

#endif
