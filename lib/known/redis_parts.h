/* redis_parts.h - what the files of a link to Redis share; redis_link.h is what others see. */
#ifndef DP_REDIS_PARTS_H
#define DP_REDIS_PARTS_H

#include "known/redis_wire.h"

#include <pthread.h>

/* ---- what an error of Redis asks for: redis_errors.c ---- */

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

/* ---- the link ---- */

/* A command on its way. */
typedef struct dp_redis_sending {
    size_t bytes; /* in the wire's buffer */
    bool unknown; /* it was sent before, and may have been carried out */
} dp_redis_sending;

struct dp_redis_link {
    dp_redis_pool *pool;
    dp_redis_link *next; /* in the pool's list */
    dp_redis_wire wire;
    bool ready;             /* connected, greeted, the functions are there */
    dp_redis_address where; /* host NULL: not known */
    bool cluster;           /* what is there is a node of a Cluster */
    long long client;       /* the connection's number at the server */
    dp_redis_turn refusal;  /* what the last error met while connecting asks for; DP_REDIS_KEEP: there was none */
    bool missing;           /* a call has not found the functions */
    bool wrote;             /* the server may remember requests of it */
    bool doubted;           /* a connection was given up with requests that may still arrive */
    size_t turn;            /* whom to ask next: an address of the URL, a known node */
    uint8_t name[8];
    uint64_t number;
    uint64_t chance; /* the state of what is left to chance */
    dp_redis_sending *sending;
    size_t capacity; /* of `sending` */
};

struct dp_redis_pool {
    dp_redis_link_options options;
    dp_redis_counters counters;
    dp_redis_stop stop;
    pthread_mutex_t mutex;
    dp_redis_link *idle;
    /* Nodes of the Cluster that have been named, the last one in charge first. */
    dp_redis_address *node;
    size_t nodes, node_capacity;
    bool warned;
};

/* Whether the process does not wait any longer for servers that do not answer. */
static inline bool dp_redis_stops(const dp_redis_pool *pool) {
    return atomic_load_explicit(&pool->stop.since, memory_order_relaxed) != 0;
}

void dp_redis_log(dp_redis_pool *pool, doppel_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Connects to `to` and makes the connection usable: password, name, version, db. Errors: DOPPEL_ERROR_AWAY (it may be
 * tried again), DOPPEL_ERROR_STORE, DOPPEL_ERROR_MEMORY; the wire is closed then. redis_greet.c */
doppel_status dp_redis_greet(dp_redis_link *link, const dp_redis_address *to, doppel_error *error);
/* Loads the functions if they are not there; warns once of what is wrong with the server's settings. */
doppel_status dp_redis_prepare(dp_redis_link *link, doppel_error *error);
/* Loads the functions where they are missing and may be loaded. Other code under their name is refused, or replaced by
 * an administrator. *done: "present", "loaded" or "replaced". */
doppel_status dp_redis_load(dp_redis_link *link, const char **done, doppel_error *error);

/* Connects to whoever is in charge now, in one round over those who may know. Errors as of greet. redis_find.c */
doppel_status dp_redis_find(dp_redis_link *link, doppel_error *error);
/* Calls `visit` with a connection to each master: the one that is connected, of a Cluster all of them. */
doppel_status dp_redis_each_master(dp_redis_link *link,
                                   doppel_status (*visit)(dp_redis_link *link, void *user, doppel_error *error),
                                   void *user, doppel_error *error);
/* Follows "MOVED SLOT HOST:PORT": the next find goes there. */
doppel_status dp_redis_follow(dp_redis_link *link, const char *moved, doppel_error *error);

/* Gives the connection up. */
void dp_redis_leave(dp_redis_link *link);

bool dp_redis_address_copy(dp_redis_address *to, const dp_redis_address *from);
bool dp_redis_address_equal(const dp_redis_address *a, const dp_redis_address *b);

/* An error of Redis as an error of the call: sets `refusal`, frees the reply. */
doppel_status dp_redis_refused(dp_redis_link *link, redisReply *reply, doppel_error *error);

/* ---- a call: redis_pass.c ---- */

/* Commands in flight at most: what a server takes some milliseconds for. */
enum { DP_REDIS_WINDOW = 1000 };
#define DP_REDIS_FIRST_PAUSE 0.01

/* A call of dp_redis_call on its way. */
typedef struct dp_redis_calling {
    dp_redis_link *link;
    const dp_redis_command *commands;
    size_t count;
    bool safe;    /* with a WAIT */
    bool ordered; /* it only reads, and no answer may be older than one before it */
    redisReply **replies;
    size_t window;
    size_t oldest, next; /* of this pass: the first that is in flight, the first that is not sent */
    size_t flying;
    dp_redis_turn turn; /* what its refusals ask for */
    char moved[320];
    doppel_error refusal;
    bool broken;  /* a connection was left during this call */
    double heard; /* when the last answer came */
    double pause;
} dp_redis_calling;

/* Sends all that have no answer, until a refusal, and takes the answers in. Errors: DOPPEL_ERROR_AWAY and _MEMORY; the
 * connection was given up then. */
doppel_status dp_redis_pass(dp_redis_calling *call, doppel_error *error);
/* Gives the connection up; `why` (may be NULL) is logged. */
void dp_redis_give_up(dp_redis_calling *call, const doppel_error *why);

/* ---- making links: redis_pool.c ---- */

/* A link without a connection. */
dp_redis_link *dp_redis_link_create(dp_redis_pool *pool, doppel_error *error);
void dp_redis_link_free(dp_redis_link *link);

#endif
