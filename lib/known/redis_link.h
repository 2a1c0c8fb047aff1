/* redis_link.h - commands to a Redis, wherever it is: one server, the master that Sentinels name, or the node of a
 * Cluster that has the index's slot (all its keys share one hash tag).
 *
 * A link is a connection that comes back: it finds the server, greets it, loads the functions, and sends commands in a
 * pipeline. One thread at a time uses a link; a pool of them belongs to the store. */
#ifndef DP_REDIS_LINK_H
#define DP_REDIS_LINK_H

#include "base/base.h"

#include <hiredis/hiredis.h>

/* ---- where: redis_url.c ---- */

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

/* ---- the link: redis_link.c, redis_find.c (who is it now?), redis_pool.c ---- */

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
dp_redis_link *dp_redis_take(dp_redis_pool *pool, doppel_error *error);
void dp_redis_give(dp_redis_pool *pool, dp_redis_link *link);

typedef struct dp_redis_command {
    int argc;
    const char **argv;
    size_t *lengths;
    int again; /* the argument that is "0" the first time and "1" when the command is sent again because nobody knows
                  whether it was carried out; 0: it may be sent again as it is (it only reads, or twice is as once) */
} dp_redis_command;

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
