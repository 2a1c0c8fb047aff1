/* redis_greet.c - a connection from its first byte to the first command: password, name, version, db; then the
 * functions, which must be there and be ours.
 *
 * HELLO answers who is there (version, mode, role, the connection's number) and may be asked by every user. A user may
 * lack the right to load functions (FUNCTION LOAD): then an administrator has loaded them (dp_known_prepare). A user
 * that may not even list them takes those that are there: whoever has no right to load cannot have replaced them. */
#include "known/redis_parts.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAST_VERSION = 7 };

static doppel_status ask(dp_redis_link *link, const char *const *words, redisReply **reply, doppel_error *error) {
    return dp_redis_wire_ask(&link->wire, link->pool->options.url->timeout, words, reply, error);
}
#define ASK(link, reply, error, ...) ask(link, (const char *const[]){__VA_ARGS__, NULL}, reply, error)

doppel_status dp_redis_refused(dp_redis_link *link, redisReply *reply, doppel_error *error) {
    link->refusal = dp_redis_turn_of(reply);
    doppel_status status = dp_redis_explain(link->wire.place, reply, error);
    freeReplyObject(reply);
    return status;
}

/* Sends a command that is to be answered by anything but an error. */
static doppel_status demand(dp_redis_link *link, const char *const *words, doppel_error *error) {
    redisReply *reply;
    doppel_status status = ask(link, words, &reply, error);
    if (!status && reply->type == REDIS_REPLY_ERROR)
        return dp_redis_refused(link, reply, error);
    freeReplyObject(reply);
    return status;
}

/* ---- who is there ---- */

/* Of names and values in turn, the value behind a name; NULL: none. */
static const redisReply *value_of(const redisReply *pairs, const char *name) {
    for (size_t i = 0; i + 1 < pairs->elements; i += 2)
        if (pairs->element[i]->str && !strcmp(pairs->element[i]->str, name))
            return pairs->element[i + 1];
    return NULL;
}

static const char *text_of(const redisReply *pairs, const char *name) {
    const redisReply *value = value_of(pairs, name);
    return value && value->str ? value->str : "";
}

static doppel_status meet(dp_redis_link *link, const redisReply *hello, doppel_error *error) {
    const char *version = text_of(hello, "version");
    const redisReply *id = value_of(hello, "id");
    if (hello->type == REDIS_REPLY_ERROR && strncmp(hello->str, "ERR unknown command", 19))
        return dp_redis_explain(link->wire.place, hello, error);
    if (atoi(version) < LEAST_VERSION)
        return dp_fail(error, DOPPEL_ERROR_STORE, "%s: it is Redis %s; version 7 or later is needed (functions)",
                       link->wire.place, *version ? version : "below 6");
    link->cluster = !strcmp(text_of(hello, "mode"), "cluster");
    link->client = id ? id->integer : 0;
    if (link->pool->options.url->kind == DP_REDIS_SENTINEL && strcmp(text_of(hello, "role"), "master") != 0)
        return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: the Sentinels name it as master, but it is a replica",
                       link->wire.place);
    return DOPPEL_OK;
}

static doppel_status say_hello(dp_redis_link *link, doppel_error *error) {
    const dp_redis_url *url = link->pool->options.url;
    char name[32] = "doppel-";
    for (size_t i = 0; i < sizeof link->name; i++)
        snprintf(name + 7 + 2 * i, 3, "%02x", link->name[i]);
    const char *user = url->user ? url->user : "default";
    redisReply *hello;
    doppel_status status = url->password
                               ? ASK(link, &hello, error, "HELLO", "2", "AUTH", user, url->password, "SETNAME", name)
                               : ASK(link, &hello, error, "HELLO", "2", "SETNAME", name);
    if (!status)
        status = meet(link, hello, error);
    freeReplyObject(hello);
    return status;
}

doppel_status dp_redis_greet(dp_redis_link *link, const dp_redis_address *to, doppel_error *error) {
    const dp_redis_url *url = link->pool->options.url;
    doppel_status status = dp_redis_wire_open(&link->wire, to, url->timeout, &link->pool->stop, error);
    if (status)
        return status;
    char db[16];
    snprintf(db, sizeof db, "%d", url->db);
    status = say_hello(link, error);
    if (!status && url->db)
        status = demand(link, (const char *const[]){"SELECT", db, NULL}, error);
    if (status)
        dp_redis_wire_close(&link->wire);
    return status;
}

/* ---- functions and settings ---- */

/* Which functions the server has under our name. */
typedef enum library_state { LIBRARY_ABSENT, LIBRARY_OURS, LIBRARY_OTHER, LIBRARY_HIDDEN } library_state;

static doppel_status look_at_library(dp_redis_link *link, library_state *state, doppel_error *error) {
    const dp_redis_link_options *o = &link->pool->options;
    redisReply *reply;
    doppel_status status = ASK(link, &reply, error, "FUNCTION", "LIST", "LIBRARYNAME", o->library_name, "WITHCODE");
    if (status)
        return status;
    if (reply->type == REDIS_REPLY_ERROR && dp_redis_turn_of(reply) == DP_REDIS_WAIT)
        return dp_redis_refused(link, reply, error);
    if (reply->type != REDIS_REPLY_ARRAY)
        *state = LIBRARY_HIDDEN;
    else if (!reply->elements)
        *state = LIBRARY_ABSENT;
    else
        *state = !strcmp(text_of(reply->element[0], "library_code"), o->library) ? LIBRARY_OURS : LIBRARY_OTHER;
    freeReplyObject(reply);
    return DOPPEL_OK;
}

/* Gives *lost true when somebody else was quicker. */
static doppel_status load_library(dp_redis_link *link, bool replace, bool *lost, doppel_error *error) {
    const char *library = link->pool->options.library;
    redisReply *reply;
    doppel_status status = replace ? ASK(link, &reply, error, "FUNCTION", "LOAD", "REPLACE", library)
                                   : ASK(link, &reply, error, "FUNCTION", "LOAD", library);
    if (status)
        return status;
    *lost = reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "ERR Library", 11);
    if (reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "NOPERM", 6)) {
        freeReplyObject(reply);
        link->refusal = DP_REDIS_FAIL;
        return dp_fail(error, DOPPEL_ERROR_STORE,
                       "%s: it does not have doppel's functions (%s), and this user may not load them: an "
                       "administrator runs `doppel prepare --store URL` once",
                       link->wire.place, link->pool->options.library_name);
    }
    if (reply->type == REDIS_REPLY_ERROR && !*lost) {
        doppel_error refused;
        status = dp_redis_refused(link, reply, &refused);
        return dp_fail(error, status, "doppel's functions cannot be loaded: %s", refused.message);
    }
    freeReplyObject(reply);
    return DOPPEL_OK;
}

static doppel_status refuse_library(dp_redis_link *link, doppel_error *error) {
    link->refusal = DP_REDIS_FAIL;
    return dp_fail(
        error, DOPPEL_ERROR_STORE,
        "%s: the functions %s on this server have other code than this doppel's, and are not called: an "
        "administrator runs `doppel prepare --store URL` to put them right, and looks who may load functions",
        link->wire.place, link->pool->options.library_name);
}

doppel_status dp_redis_load(dp_redis_link *link, const char **done, doppel_error *error) {
    enum { TRIES = 5 };
    bool administers = link->pool->options.administers, missing = link->missing;
    link->missing = false;
    *done = "present";
    for (int i = 0; i < TRIES; i++) {
        library_state state = LIBRARY_ABSENT;
        bool lost = false;
        doppel_status status = look_at_library(link, &state, error);
        if (status || state == LIBRARY_OURS)
            return status;
        if (state == LIBRARY_OTHER && !administers)
            return refuse_library(link, error);
        /* Where they are hidden, the first call tells whether they are there. */
        if (state == LIBRARY_HIDDEN && !missing && !administers)
            return DOPPEL_OK;
        status = load_library(link, state == LIBRARY_OTHER, &lost, error);
        *done = state == LIBRARY_OTHER ? "replaced" : "loaded";
        if (status || !lost || state == LIBRARY_HIDDEN)
            return status;
        *done = "present";
    }
    return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: doppel's functions come and go: is somebody else loading them?",
                   link->wire.place);
}

/* What may be evicted is forgotten before its time. A user that may not ask is not told. */
static doppel_status warn_of_eviction(dp_redis_link *link, doppel_error *error) {
    redisReply *reply;
    doppel_status status = ASK(link, &reply, error, "CONFIG", "GET", "maxmemory*");
    if (status)
        return status;
    const char *policy = text_of(reply, "maxmemory-policy");
    if (strcmp(text_of(reply, "maxmemory"), "0") != 0 && *policy && strcmp(policy, "noeviction") != 0)
        dp_redis_log(link->pool, DOPPEL_LOG_WARNING, "REDIS_EVICTS",
                     "%s: maxmemory-policy is %s: when it is full it drops keys, and with them what doppel remembers, "
                     "without a word; set it to noeviction",
                     link->wire.place, policy);
    freeReplyObject(reply);
    return DOPPEL_OK;
}

doppel_status dp_redis_prepare(dp_redis_link *link, doppel_error *error) {
    const char *done;
    doppel_status status = link->pool->options.administers ? DOPPEL_OK : dp_redis_load(link, &done, error);
    pthread_mutex_lock(&link->pool->mutex);
    bool warned = link->pool->warned;
    link->pool->warned = true;
    pthread_mutex_unlock(&link->pool->mutex);
    return status || warned ? status : warn_of_eviction(link, error);
}
