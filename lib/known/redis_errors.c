/* redis_errors.c - what an error of Redis asks for, and what it means in words. One table; the first that begins the
 * error counts.
 *
 * ASK is waited out and not followed: it sends a command to a node that has a part of the slot's keys only. A function
 * that reads several keys would not find there what is still here, and call the known new. Until the slot has moved as
 * a whole, functions that meet a key that is not here fail before they have written anything, and are sent again. */
#include "known/redis_parts.h"

typedef struct meaning {
    const char *begins;
    dp_redis_turn turn;
    doppel_status code;
    const char *words; /* NULL: the error as it is says enough */
} meaning;

static const char moving[] = "the slot of this index is being moved to another node of the Cluster, which takes longer "
                             "than retry= waits";

static const meaning meanings[] = {
    {"MOVED ", DP_REDIS_MOVED, DOPPEL_ERROR_AWAY, NULL},
    {"ASK ", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, moving},
    {"TRYAGAIN", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, moving},
    {"ERR Script attempted to access a non local key", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, moving},
    {"LOADING", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, "it is still reading its data from disk"},
    {"BUSY ", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, "it is busy with a script"},
    {"NOREPLICAS", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, "it has fewer replicas than its min-replicas-to-write asks for"},
    {"ERR max number of clients", DP_REDIS_FIND, DOPPEL_ERROR_AWAY, "it has all the clients it takes (maxclients)"},
    {"CLUSTERDOWN", DP_REDIS_FIND, DOPPEL_ERROR_AWAY, "the Cluster is down: a master is gone and no replica took over"},
    {"MASTERDOWN", DP_REDIS_FIND, DOPPEL_ERROR_AWAY, "it is a replica that has lost its master"},
    {"READONLY", DP_REDIS_FIND, DOPPEL_ERROR_AWAY, "it is a replica, which takes no writes: name its master"},
    {"UNBLOCKED", DP_REDIS_FIND, DOPPEL_ERROR_AWAY, "it became a replica"},
    {"ERR Function not found", DP_REDIS_LOAD, DOPPEL_ERROR_AWAY,
     "doppel's functions vanish as soon as they are loaded"},
    {"OOM ", DP_REDIS_FAIL, DOPPEL_ERROR_AWAY,
     "it is full: raise its maxmemory, or let documents expire sooner (ttl), or remove some"},
    {"MISCONF", DP_REDIS_FAIL, DOPPEL_ERROR_AWAY,
     "it cannot save to its disk and takes no writes until it can: see its log and its disk"},
    {"NOAUTH", DP_REDIS_FAIL, DOPPEL_ERROR_STORE,
     "it asks for a password: give it with --store-password-file, in DOPPEL_REDIS_PASSWORD or in the URL "
     "(USER:PASSWORD@, or :PASSWORD@)"},
    {"WRONGPASS", DP_REDIS_FAIL, DOPPEL_ERROR_STORE, "the user name or the password is wrong, or the user is disabled"},
    {"NOPERM", DP_REDIS_FAIL, DOPPEL_ERROR_STORE, "its user lacks a right that docs/ENGINE.md lists (Rights)"},
    {"DENIED", DP_REDIS_FAIL, DOPPEL_ERROR_STORE, "it is in protected mode: give it a password (requirepass)"},
    {"ERR unknown command 'SENTINEL'", DP_REDIS_KEEP, DOPPEL_ERROR_STORE,
     "it is no Sentinel: name Sentinels, or give the server itself as redis://HOST:PORT"},
    {"ERR DB index is out of range", DP_REDIS_FAIL, DOPPEL_ERROR_STORE, "it does not have that db (databases)"},
    {"ERR SELECT is not allowed in cluster mode", DP_REDIS_FAIL, DOPPEL_ERROR_STORE,
     "it is a Cluster, which has db 0 only (prefix= tells indexes apart)"},
};

static const meaning *meaning_of(const redisReply *reply) {
    static const meaning other = {"", DP_REDIS_KEEP, DOPPEL_ERROR_STORE, NULL};
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (!strncmp(reply->str, meanings[i].begins, strlen(meanings[i].begins)))
            return &meanings[i];
    return &other;
}

dp_redis_turn dp_redis_turn_of(const redisReply *reply) {
    return reply->type == REDIS_REPLY_ERROR ? meaning_of(reply)->turn : DP_REDIS_KEEP;
}

doppel_status dp_redis_explain(const char *place, const redisReply *reply, doppel_error *error) {
    if (reply->type != REDIS_REPLY_ERROR)
        return dp_fail(error, DOPPEL_ERROR_STORE, "%s: it answers otherwise than Redis does", place);
    const meaning *found = meaning_of(reply);
    if (!found->words)
        return dp_fail(error, found->code, "%s: %.300s", place, reply->str);
    return dp_fail(error, found->code, "%s: %s (\"%.150s\")", place, found->words, reply->str);
}
