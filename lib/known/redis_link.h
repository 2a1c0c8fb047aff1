/* redis_link.h - commands to a Redis, wherever it is: one server, the master that Sentinels name, or the node of a
 * Cluster that has the index's slot (all its keys share one hash tag).
 *
 * A link is a connection that reconnects: it finds the server, greets it, loads the functions, and sends commands in a
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

enum { DP_REDIS_LONGEST_PREFIX = 100 };
typedef struct dp_redis_url {
    dp_redis_kind kind;
    dp_redis_address *address;
    size_t addresses;
    char *user, *password, *sentinel_password, *service; /* NULL: none */
    char *prefix;                                        /* at most DP_REDIS_LONGEST_PREFIX bytes */
    char *name;                                          /* the URL without passwords, for messages */
    int db, replicas;
    double timeout, retry; /* seconds */
    uint64_t count;
} dp_redis_url;
doppel_status dp_redis_url_parse(const char *text, dp_redis_url *url, doppel_error *error);
void dp_redis_url_free(dp_redis_url *url);

/* ---- commands: redis_link.c ---- */

/* A command of a batch. */
typedef struct dp_redis_command {
    size_t arguments;  /* with its name */
    size_t start, end; /* of their bytes in the batch */
} dp_redis_command;

/* Commands that are put together, sent in one pipeline, and answered. Zero is empty; failed: there was no memory. */
typedef struct dp_redis_batch {
    doppel_slice prefix; /* of the keys (dp_redis_put_key) */
    dp_buffer bytes;     /* all arguments, as the protocol has them */
    dp_redis_command *command;
    redisReply **reply; /* of each command, once they were answered */
    size_t count, room;
    size_t first; /* replies before this one are the greeting of a look */
    bool failed;
} dp_redis_batch;
void dp_redis_batch_free(dp_redis_batch *batch);
void dp_redis_command_begin(dp_redis_batch *batch, const char *name);
/* An argument of the last command: bytes, which are copied; text; a number in digits; a key, or a part of one: a letter
 * (0: none) and a number in some bytes, the highest first. */
void dp_redis_put(dp_redis_batch *batch, const void *bytes, size_t length);
void dp_redis_put_text(dp_redis_batch *batch, const char *text);
void dp_redis_put_number(dp_redis_batch *batch, uint64_t number);
void dp_redis_put_bytes(dp_redis_batch *batch, char letter, uint64_t number, size_t bytes);
void dp_redis_put_key(dp_redis_batch *batch, char letter, uint64_t number, size_t bytes); /* after the prefix */

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
    bool administers; /* loads the functions on request, replacing other code of that name */
} dp_redis_link_options;

/* A pool: links for all concurrent threads. create connects once, so that errors are reported at the start:
 * DOPPEL_ERROR_AWAY (no answer), DOPPEL_ERROR_STORE (wrong password, no such db, below Redis 7). */
typedef struct dp_redis_pool dp_redis_pool;
doppel_status dp_redis_pool_create(const dp_redis_link_options *options, dp_redis_pool **pool, doppel_error *error);
/* Makes the server forget which requests the links have sent, if it can be reached at once and no request may still
 * arrive; then frees the pool. */
void dp_redis_pool_free(dp_redis_pool *pool);
/* Calls that wait for a server that does not answer give up within about a second, now and from now on:
 * DOPPEL_ERROR_AWAY. May be called by any thread, and by a signal handler. */
void dp_redis_pool_stop(dp_redis_pool *pool);
/* Loads the functions on each master, of a Cluster all of them, for a pool that administers. `server` (may be NULL) is
 * called for each with what was done: "present", "loaded" or "replaced". */
doppel_status dp_redis_pool_prepare(dp_redis_pool *pool,
                                    void (*server)(const char *server, const char *library, const char *state,
                                                   void *user),
                                    void *user, doppel_error *error);
dp_redis_link *dp_redis_take(dp_redis_pool *pool, doppel_error *error);
void dp_redis_give(dp_redis_pool *pool, dp_redis_link *link);

/* Sends the commands of a batch in order, a window at a time, and gives it each one's reply, which may be an error of
 * the command itself. Recoverable conditions are handled here: a broken connection (back-off from 10 ms to 1 s, with a
 * part left to chance, for up to `retry` seconds without an answer), MOVED, ASK, TRYAGAIN, READONLY, LOADING,
 * MASTERDOWN, CLUSTERDOWN, and a function that is not there (loaded again). Commands without an answer are sent again,
 * in order: so one may be executed twice, and has to recognise its request (dp_redis_link_next) where that matters.
 * With url->replicas > 0 and `safe`, a WAIT follows the commands, and too few replicas are an error: DOPPEL_ERROR_AWAY.
 * Commands of a call that is not `safe` only read: what was answered after a refusal is asked again, so that no answer
 * is older than one before it. On an error the batch has no reply. */
doppel_status dp_redis_call(dp_redis_link *link, dp_redis_batch *batch, bool safe, doppel_error *error);

typedef struct dp_redis_counters {
    _Atomic uint64_t reconnects, resent, moved;
} dp_redis_counters;
const dp_redis_counters *dp_redis_get_counters(const dp_redis_pool *pool);

/* Identifies requests: 8 random bytes, and increasing numbers, so that a resent request is recognised. Each link has
 * its own name, as its requests arrive in order. */
const uint8_t *dp_redis_link_name(const dp_redis_link *link);
uint64_t dp_redis_link_next(dp_redis_link *link);

#endif
