/* redis_link.h - commands to a Redis, wherever it is: one server, the master that Sentinels name, or the node of a
 * Cluster that has the index's slot (all its keys share one hash tag).
 *
 * A link is a connection that comes back: it finds the server, greets it, loads the functions, and sends commands in a
 * pipeline. One thread at a time uses a link; a pool of them belongs to the store. */
#ifndef DP_REDIS_LINK_H
#define DP_REDIS_LINK_H

#include "base/base.h"

#include <hiredis/hiredis.h>

/* ---- where: redis_server.c ---- */

/* redis://[USER:PASSWORD@]HOST[:PORT][/DB]
 * redis+unix://[USER:PASSWORD@]/PATH/TO/SOCKET?db=DB
 * redis+sentinel://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...]/SERVICE[/DB]
 * redis+cluster://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...]
 * each with ?prefix=NAME (doppel), replicas=N (0), timeout=SECONDS (5), retry=SECONDS (30), sentinel_password=P,
 * count=N (documents to expect). Escapes (%40) are undone. A redis:// server that answers MOVED is a Cluster too.
 * DOPPEL_REDIS_PASSWORD in the environment is the password where the URL has none. */
typedef enum dp_redis_kind { DP_REDIS_TCP, DP_REDIS_UNIX, DP_REDIS_SENTINEL, DP_REDIS_CLUSTER } dp_redis_kind;

typedef struct dp_redis_address {
    char *host; /* or the path of a unix socket */
    int port;   /* 0: a unix socket */
} dp_redis_address;

typedef struct dp_redis_url {
    dp_redis_kind kind;
    dp_redis_address *address;
    size_t addresses;
    char *user, *password, *sentinel_password, *service; /* NULL: none */
    char *prefix;
    char *name; /* the URL without passwords, for messages */
    int db, replicas;
    double timeout, retry; /* seconds */
    uint64_t count;
} dp_redis_url;
doppel_status dp_redis_url_parse(const char *text, dp_redis_url *url, doppel_error *error);
void dp_redis_url_free(dp_redis_url *url);

/* ---- one connection: redis_server.c ----
 *
 *   dp_redis_wire_open, dp_redis_wire_put ..., dp_redis_wire_move and dp_redis_wire_reply in turn, dp_redis_wire_close
 */

typedef struct dp_redis_command {
    int argc;
    const char **argv;
    size_t *lengths;
    int again; /* the argument that is "0" the first time and "1" when the command is sent again because nobody knows
                  whether it was carried out; 0: it may be sent again as it is (it only reads, or twice is as once) */
} dp_redis_command;

/* Whether the process still waits for a server that does not answer. Once it does not, whoever is silent for
 * DP_REDIS_GRACE seconds is given up, whatever the timeout. */
typedef struct dp_redis_stop {
    _Atomic uint64_t since; /* when it was told to, in microseconds of dp_seconds; 0: it was not */
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

/* ---- what an error of Redis asks for: redis_server.c ---- */

typedef enum dp_redis_turn {
    DP_REDIS_KEEP,  /* it is the command's own: the caller gets it */
    DP_REDIS_WAIT,  /* the same again a little later */
    DP_REDIS_LOAD,  /* the functions are not there: load them, and the same again */
    DP_REDIS_FIND,  /* somebody else may be in charge by now: look, and the same again */
    DP_REDIS_MOVED, /* it says who is in charge */
    DP_REDIS_FAIL   /* nothing helps but somebody who reads the message */
} dp_redis_turn;

/* The later ones include what the earlier ones do. All but KEEP mean that the command was not carried out. */
dp_redis_turn dp_redis_turn_of(const redisReply *reply);

/* The error of `place` in words that say what to do. */
doppel_status dp_redis_explain(const char *place, const redisReply *reply, doppel_error *error);

/* ---- links: redis_link.c ---- */

typedef struct dp_redis_link dp_redis_link;

typedef struct dp_redis_link_options {
    const dp_redis_url *url;  /* must outlive the links */
    const char *library;      /* source of the functions, for FUNCTION LOAD */
    const char *library_name; /* its name, which says its version */
    void (*log)(doppel_log_level level, const char *event, const char *line, void *user);
    void *user;
    bool administers; /* loads the functions when it is told to, over whatever has their name */
} dp_redis_link_options;

/* A pool: links for as many threads as ask at once. create connects once, so that what is wrong is told at the start:
 * DOPPEL_ERROR_AWAY (nobody answers), DOPPEL_ERROR_STORE (wrong password, no such db, below Redis 7). */
typedef struct dp_redis_pool dp_redis_pool;
doppel_status dp_redis_pool_create(const dp_redis_link_options *options, dp_redis_pool **pool, doppel_error *error);
/* Makes the server forget which requests the links have sent, as far as it can be reached at once and no request may
 * still arrive; then frees the pool. */
void dp_redis_pool_free(dp_redis_pool *pool);
/* Calls that wait for a server that does not answer give up within about a second, now and from now on:
 * DOPPEL_ERROR_AWAY. May be called by any thread, and by a signal handler. */
void dp_redis_pool_stop(dp_redis_pool *pool);
/* Loads the functions on each master, of a Cluster all of them, for a pool that administers. `server` (may be NULL) is
 * told of each what was done: "present", "loaded" or "replaced". */
doppel_status dp_redis_pool_prepare(dp_redis_pool *pool,
                                    void (*server)(const char *server, const char *library, const char *state,
                                                   void *user),
                                    void *user, doppel_error *error);
dp_redis_link *dp_redis_take(dp_redis_pool *pool, doppel_error *error);
void dp_redis_give(dp_redis_pool *pool, dp_redis_link *link);

/* Sends the commands in order, a window at a time, and gives each one's reply (free with freeReplyObject), which may be
 * an error of the command itself. What is met on the way is mended here: a broken connection (back-off from 10 ms to
 * 1 s, with a part left to chance, for up to `retry` seconds without an answer), MOVED, ASK, TRYAGAIN, READONLY,
 * LOADING, MASTERDOWN, CLUSTERDOWN, and a function that is not there (loaded again). A command that was certainly not
 * carried out is sent again as it was, in order; one that may have been, with `again`. With url->replicas > 0 and
 * `safe`, a WAIT follows the commands, and too few replicas are an error: DOPPEL_ERROR_AWAY.
 * Commands of a call that is not `safe` only read: what was answered after a refusal is asked again, so that no answer
 * is older than one before it. On an error no reply is left to the caller. */
doppel_status dp_redis_call(dp_redis_link *link, const dp_redis_command *commands, size_t count, bool safe,
                            redisReply **replies, doppel_error *error);

typedef struct dp_redis_counters {
    _Atomic uint64_t reconnects, resent, moved;
} dp_redis_counters;
const dp_redis_counters *dp_redis_get_counters(const dp_redis_pool *pool);

/* Who this process is: 8 random bytes, and numbers that only grow, so that a request can be known again. Each link has
 * its own name, as its requests arrive in order. */
const uint8_t *dp_redis_link_name(const dp_redis_link *link);
uint64_t dp_redis_link_next(dp_redis_link *link);

#endif
