/* redis_shared.c - a shared memory: opened, found or made, closed.
 *
 * All that is known of it in every process stands in its meta key: the settings, the plan, the secrets. Whoever finds
 * none makes it. A memory that goes while it is in use (all expired, all removed, a server that lost its data) is made
 * anew by the first who misses it, and the others follow. */
#include "store/redis_memory.h"
#include "store/redis_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define VERSION "1"

enum { META_FIELDS = 7 };

/* ---- errors ---- */

bool dp_shared_is_another(const redisReply *reply) {
    return reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "ANOTHER ", 8);
}

doppel_status dp_shared_fail(const dp_shared *shared, const redisReply *reply, doppel_error *error) {
    if (reply->type != REDIS_REPLY_ERROR)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, shared->url.name, 0, "an answer that makes no sense");
    const char *damaged = strstr(reply->str, "DAMAGED ");
    if (damaged) {
        const char *place = strstr(damaged, " script: "); /* where in the script is nobody's concern */
        int length = (int)(place ? place - damaged : (ptrdiff_t)strlen(damaged)) - 8;
        return dp_fail_at(error, DOPPEL_ERROR_STORE, shared->url.name, 0, "%.*s", length, damaged + 8);
    }
    if (!strncmp(reply->str, "WRONGTYPE", 9))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, shared->url.name, 0,
                          "a key at this prefix is of another kind than doppel wrote");
    if (!strncmp(reply->str, "ERR hash value is not an integer", 32))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, shared->url.name, 0, "a count of it is not what doppel wrote");
    return dp_redis_explain(shared->url.name, reply, error);
}

static void tell(const dp_shared *shared, doppel_log_level level, const char *event, const char *what) {
    char line[512];
    if (!shared->options.log)
        return;
    snprintf(line, sizeof line, "the memory of %.300s %s", shared->url.name, what);
    shared->options.log(level, event, line, shared->options.user);
}

/* ---- the meta key ---- */

static bool is_string(const redisReply *reply) {
    return reply->type == REDIS_REPLY_STRING;
}

static doppel_slice slice_of(const redisReply *reply) {
    return (doppel_slice){reply->str, is_string(reply) ? reply->len : 0};
}

/* A new memory's. */
static void make_up(const dp_shared *shared, dp_redis_memory *m) {
    uint64_t epoch = dp_order_random(), seed = dp_order_random();
    uint64_t count = shared->options.count ? shared->options.count : shared->url.count;
    memcpy(m->epoch, &epoch, sizeof epoch);
    memcpy(m->seed, &seed, sizeof seed);
    dp_redis_plan_make(count, &shared->options.rules, &m->plan);
}

static doppel_status send(dp_shared *shared, const dp_redis_command *command, bool safe, redisReply **reply,
                          doppel_error *error) {
    dp_redis_link *link = dp_redis_take(shared->pool, error);
    if (!link)
        return error && error->code ? error->code : DOPPEL_ERROR_IO;
    doppel_status status = dp_redis_call(link, command, 1, safe, reply, error);
    dp_redis_give(shared->pool, link);
    if (status != DOPPEL_OK || (*reply)->type != REDIS_REPLY_ERROR)
        return status;
    status = dp_shared_fail(shared, *reply, error);
    freeReplyObject(*reply);
    return status;
}

/* Asks for the fields of the meta key, or has it made as `made` says. */
static doppel_status fetch(dp_shared *shared, const dp_redis_memory *made, redisReply **reply, doppel_error *error) {
    static const char *const names[META_FIELDS] = {"v", "s", "e", "k", "p", "g", "x"};
    dp_arena arena = {0};
    dp_redis_writer w = {.arena = &arena};
    uint8_t geometry[DP_REDIS_GEOMETRY];
    dp_redis_begin(&w, shared, "make", false);
    if (!made && !w.failed) {
        w.command.argc = 0;
        dp_redis_put(&w, "HMGET", 5);
        dp_redis_put(&w, shared->meta, shared->meta_length);
    }
    const doppel_slice values[6] = {{VERSION, 1},
                                    {shared->settings, strlen(shared->settings)},
                                    {made ? (const char *)made->epoch : "", sizeof made->epoch},
                                    {made ? (const char *)made->seed : "", sizeof made->seed},
                                    {made ? made->plan.name : "", made ? strlen(made->plan.name) : 0},
                                    {(const char *)geometry, made ? dp_redis_plan_encode(&made->plan, geometry) : 0}};
    for (int i = 0; i < (made ? 6 : META_FIELDS); i++) {
        dp_redis_put(&w, names[i], 1);
        if (made)
            dp_redis_put(&w, values[i].data, values[i].length);
    }
    doppel_status status =
        w.failed ? dp_no_memory(error) : send(shared, &w.command, made && !shared->options.read_only, reply, error);
    dp_arena_free(&arena);
    return status;
}

/* Takes over what a meta key says. */
static doppel_status read_meta(const dp_shared *shared, const redisReply *reply, dp_redis_memory *m,
                               doppel_error *error) {
    const char *name = shared->url.name;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != META_FIELDS || !is_string(reply->element[0]))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, name, 0, "what is at this prefix is no memory of doppel's");
    if (strcmp(reply->element[0]->str, VERSION) != 0)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, name, 0, "a memory of format %.20s; this doppel knows format %s",
                          reply->element[0]->str, VERSION);
    doppel_slice epoch = slice_of(reply->element[2]), seed = slice_of(reply->element[3]);
    if (epoch.length != 8 || seed.length != 8 ||
        !dp_redis_plan_decode(slice_of(reply->element[5]), shared->options.rules.bits, &m->plan) ||
        m->plan.distance != shared->options.rules.distance)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, name, 0,
                          "a memory for other fingerprints than those of %d bits within a distance of %d, or damaged",
                          shared->options.rules.bits, shared->options.rules.distance);
    memcpy(m->epoch, epoch.data, 8);
    memcpy(m->seed, seed.data, 8);
    dp_order_init(&m->order, m->plan.bits, dp_load64(m->seed) ? dp_load64(m->seed) : 1);
    return DOPPEL_OK;
}

/* When the last document of a memory expires, in seconds; 0: it has none. */
static uint64_t latest_of(const redisReply *reply) {
    const redisReply *latest = reply->element[6];
    if (!is_string(latest) || !latest->len)
        return 0;
    uint64_t milliseconds = strtoull(latest->str, NULL, 10);
    return milliseconds ? milliseconds / 1000 : UINT64_MAX;
}

dp_redis_memory dp_shared_memory(dp_shared *shared) {
    pthread_mutex_lock(&shared->mutex);
    dp_redis_memory copy = shared->memory;
    pthread_mutex_unlock(&shared->mutex);
    return copy;
}

void dp_shared_note_added(dp_shared *shared, uint64_t expires_in) {
    uint64_t now = (uint64_t)time(NULL);
    uint64_t expires = expires_in < UINT64_MAX - now ? now + expires_in : UINT64_MAX;
    pthread_mutex_lock(&shared->mutex);
    if (expires > shared->latest)
        shared->latest = expires;
    pthread_mutex_unlock(&shared->mutex);
}

void dp_shared_note_emptied(dp_shared *shared) {
    pthread_mutex_lock(&shared->mutex);
    shared->latest = 0;
    pthread_mutex_unlock(&shared->mutex);
}

/* ---- made anew ---- */

/* Settings that may be given anew whenever it is opened, and do not make it another memory. */
static bool is_free(const char *line) {
    static const char *const names[] = {"on_duplicate=", "on_same_url=", "ttl=", "title_share="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(line, names[i], strlen(names[i])))
            return true;
    return false;
}

/* Whether every line of one, but for those that are free, is in the other. */
static bool has_lines(const char *text, const char *lines) {
    for (const char *line = lines, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        size_t length = (size_t)(end - line);
        const char *at = text;
        while (at && (strncmp(at, line, length) != 0 || (at[length] && at[length] != '\n')))
            at = (at = strchr(at, '\n')) && at[1] ? at + 1 : NULL;
        if (length && !at && !is_free(line))
            return false;
    }
    return true;
}

/* Takes a memory that was found, or made, in the place of the one that was known. */
static doppel_status replace(dp_shared *shared, const redisReply *reply, const dp_redis_memory *made,
                             doppel_error *error) {
    dp_redis_memory found = {0};
    doppel_status status = read_meta(shared, reply, &found, error);
    if (status != DOPPEL_OK)
        return status;
    doppel_slice settings = slice_of(reply->element[1]);
    if (!settings.data || !has_lines(settings.data, shared->settings) || !has_lines(shared->settings, settings.data))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, shared->url.name, 0,
                          "the memory was made anew by another process, with other settings");
    pthread_mutex_lock(&shared->mutex);
    bool same = !memcmp(shared->memory.epoch, found.epoch, sizeof found.epoch);
    uint64_t had = shared->latest;
    shared->memory = found;
    if (!same)
        shared->latest = latest_of(reply);
    pthread_mutex_unlock(&shared->mutex);
    bool ours = made && !memcmp(made->epoch, found.epoch, sizeof found.epoch);
    if (!same && had > (uint64_t)time(NULL))
        tell(shared, ours ? DOPPEL_LOG_ERROR : DOPPEL_LOG_WARNING, "MEMORY_LOST",
             ours ? "is gone: it starts anew" : "is gone; another process has begun a new one");
    return DOPPEL_OK;
}

doppel_status dp_shared_renew(dp_shared *shared, doppel_error *error) {
    dp_redis_memory made = {0};
    redisReply *reply = NULL;
    make_up(shared, &made);
    doppel_status status = fetch(shared, shared->options.read_only ? NULL : &made, &reply, error);
    if (status != DOPPEL_OK)
        return status;
    if (reply->type != REDIS_REPLY_ARRAY || !shared->options.read_only || is_string(reply->element[0]))
        status = replace(shared, reply, &made, error);
    freeReplyObject(reply);
    return status;
}

/* ---- opened and closed ---- */

/* The settings of one that is there, which whoever opens it must agree to. */
static doppel_status take_settings(dp_shared *shared, const redisReply *reply, doppel_error *error) {
    dp_shared_options *o = &shared->options;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != META_FIELDS || !is_string(reply->element[0]) ||
        strcmp(reply->element[0]->str, VERSION) != 0 || !is_string(reply->element[1]))
        return DOPPEL_OK; /* read_meta refuses it */
    char *settings = strndup(reply->element[1]->str, reply->element[1]->len);
    if (!settings)
        return dp_no_memory(error);
    free(shared->settings);
    shared->settings = settings;
    return o->agree ? o->agree(settings, &o->rules, o->agreeing, error) : DOPPEL_OK;
}

/* What is there, or a new one. */
static doppel_status find_memory(dp_shared *shared, doppel_error *error) {
    const dp_shared_options *o = &shared->options;
    redisReply *reply = NULL;
    dp_redis_memory made = {0};
    make_up(shared, &made);
    doppel_status status = fetch(shared, o->read_only || o->must_exist ? NULL : &made, &reply, error);
    if (status != DOPPEL_OK)
        return status;
    bool absent = reply->type == REDIS_REPLY_ARRAY && reply->elements == META_FIELDS && !is_string(reply->element[2]);
    if (absent && o->must_exist) {
        status = dp_fail_at(error, DOPPEL_ERROR_STORE, shared->url.name, 0,
                            "there is no such index: nothing was added to it, or all of it has expired");
    } else if (absent) {
        shared->memory = made;
        dp_order_init(&shared->memory.order, made.plan.bits, 1);
    } else {
        status = take_settings(shared, reply, error);
        if (status == DOPPEL_OK)
            status = read_meta(shared, reply, &shared->memory, error);
        if (status == DOPPEL_OK)
            shared->latest = latest_of(reply);
    }
    freeReplyObject(reply);
    return status;
}

static doppel_status connect_all(dp_shared *shared, doppel_error *error) {
    size_t length = strlen(shared->url.prefix) + 4;
    shared->meta = malloc(length);
    if (!shared->meta || !shared->settings)
        return dp_no_memory(error);
    shared->meta_length = (size_t)snprintf(shared->meta, length, "{%s}m", shared->url.prefix);
    const dp_redis_link_options options = {.url = &shared->url,
                                           .library = dp_redis_library,
                                           .library_name = dp_redis_library_name,
                                           .log = shared->options.log,
                                           .user = shared->options.user};
    doppel_status status = dp_redis_pool_create(&options, &shared->pool, error);
    return status == DOPPEL_OK ? find_memory(shared, error) : status;
}

doppel_status dp_shared_open(const char *url, const dp_shared_options *options, dp_shared **shared,
                             doppel_error *error) {
    *shared = NULL;
    if (options->rules.by_similarity)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "a shared store is near by distance only; near by similarity works in a folder or in memory");
    dp_shared *s = calloc(1, sizeof *s);
    if (!s)
        return dp_no_memory(error);
    pthread_mutex_init(&s->mutex, NULL);
    s->options = *options;
    s->settings = strdup(options->settings ? options->settings : "");
    doppel_status status = dp_redis_url_parse(url, &s->url, error);
    if (status == DOPPEL_OK)
        status = connect_all(s, error);
    if (status == DOPPEL_OK)
        *shared = s;
    else
        dp_shared_close(s);
    return status;
}

/* ---- the functions, by an administrator ---- */

typedef struct preparing {
    void (*server)(const char *server, const char *library, const char *state, void *user);
    void *user;
} preparing;

static doppel_status prepare_server(dp_redis_link *link, void *user, doppel_error *error) {
    const preparing *p = user;
    const char *state;
    doppel_status status = dp_redis_load(link, &state, error);
    if (status == DOPPEL_OK && p->server)
        p->server(link->wire.place, dp_redis_library_name, state, p->user);
    return status;
}

doppel_status dp_shared_prepare(const char *text,
                                void (*server)(const char *server, const char *library, const char *state, void *user),
                                void *user, doppel_error *error) {
    dp_redis_url url;
    dp_redis_pool *pool = NULL;
    preparing p = {server, user};
    doppel_status status = dp_redis_url_parse(text, &url, error);
    if (status)
        return status;
    const dp_redis_link_options options = {
        .url = &url, .library = dp_redis_library, .library_name = dp_redis_library_name, .administers = true};
    status = dp_redis_pool_create(&options, &pool, error);
    dp_redis_link *link = status ? NULL : dp_redis_take(pool, error);
    if (link) {
        status = dp_redis_each_master(link, prepare_server, &p, error);
        dp_redis_give(pool, link);
    } else if (!status) {
        status = DOPPEL_ERROR_MEMORY;
    }
    dp_redis_pool_free(pool);
    dp_redis_url_free(&url);
    return status;
}

void dp_shared_close(dp_shared *shared) {
    if (!shared)
        return;
    dp_redis_pool_free(shared->pool);
    dp_redis_url_free(&shared->url);
    pthread_mutex_destroy(&shared->mutex);
    free(shared->settings);
    free(shared->meta);
    free(shared);
}

void dp_shared_stop_waiting(dp_shared *shared) {
    dp_redis_pool_stop(shared->pool);
}

const char *dp_shared_settings(const dp_shared *shared) {
    return shared->settings;
}

const char *dp_shared_name(const dp_shared *shared) {
    return shared->url.name;
}
