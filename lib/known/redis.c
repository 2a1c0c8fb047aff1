/* redis.c - a memory in Redis: opened, found or made, closed; what it is like; commands to it.
 *
 * Everything that all processes need to know is in its meta key: the settings, the plan, the secret. The first process
 * that finds none creates it. A memory that disappears while it is in use (all expired, all removed, a server that lost
 * its data) is recreated by the first process that misses it, and the others follow. */
#include "known/redis.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define VERSION "2"

enum meta_field { META_VERSION, META_SETTINGS, META_EPOCH, META_SECRET, META_PLAN, META_LATEST, META_FIELDS };
static const char *const meta_names[META_FIELDS] = {"v", "s", "e", "k", "p", "x"};

static doppel_slice slice_of(const redisReply *reply) {
    return (doppel_slice){reply->str, dp_redis_is_string(reply) ? reply->len : 0};
}

/* ---- commands ---- */

dp_redis_batch dp_redis_batch_of(const dp_redis *redis) {
    return (dp_redis_batch){.prefix = {redis->prefix, redis->prefix_length}};
}

void dp_redis_call_begin(dp_redis_batch *batch, const char *function) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", dp_redis_library_name, function);
    dp_redis_command_begin(batch, "FCALL");
    dp_redis_put_text(batch, name);
    dp_redis_put_text(batch, "1");
    dp_redis_put_key(batch, 'm', 0, 0);
}

/* Values of one class share a bucket: Redis keeps a hash small as long as all of its values are. */
void dp_redis_put_bucket(dp_redis_batch *batch, uint64_t place, const dp_redis_plan *plan) {
    static const char letters[] = {[DP_REDIS_NUMBERS] = 'b', [DP_REDIS_FINGERPRINTS] = 'f', [DP_REDIS_SEGMENTS] = 's'};
    dp_redis_put_key(batch, letters[dp_redis_class_of(place)], place >> (64 - plan->bucket_bits), 4);
}

void dp_redis_put_field(dp_redis_batch *batch, uint64_t place) {
    dp_redis_put_bytes(batch, 0, place, DP_REDIS_FIELD);
}

/* ---- errors ---- */

doppel_status dp_redis_fail(const dp_redis *redis, const redisReply *reply, doppel_error *error) {
    const char *name = redis->url.name;
    if (reply->type != REDIS_REPLY_ERROR)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, name, 0, "a reply that doppel does not expect");
    if (strstr(reply->str, "WRONGTYPE"))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, name, 0,
                          "a key at this prefix is of another kind than doppel wrote");
    if (strstr(reply->str, "hash value is not an integer"))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, name, 0, "a count of it is not what doppel wrote");
    if (!strncmp(reply->str, "ERR ", 4) && strstr(reply->str, "user_function"))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, name, 0, "a key of it is not what doppel wrote");
    return dp_redis_explain(name, reply, error);
}

static void tell(const dp_redis *redis, doppel_log_level level, const char *what) {
    dp_known_log(&redis->known, level, "MEMORY_LOST", "the memory of %.300s %s", redis->url.name, what);
}

/* ---- the meta key ---- */

/* A new memory's. */
static void make_up(const dp_redis *redis, dp_redis_memory *m) {
    uint64_t epoch = dp_random_number();
    uint64_t count = redis->known.options.count ? redis->known.options.count : redis->url.count;
    memcpy(m->epoch, &epoch, sizeof epoch);
    for (int i = 0; i < 2; i++)
        m->secret[i] = dp_random_number();
    dp_redis_plan_make(count, &redis->known.options.rules, &m->plan);
}

/* Fetches the fields of the meta key, or creates it as `made` says. */
static doppel_status fetch_meta(dp_redis *redis, const dp_redis_memory *made, redisReply **reply, doppel_error *error) {
    dp_redis_batch batch = dp_redis_batch_of(redis);
    uint8_t secret[16];
    if (made) {
        for (int i = 0; i < 2; i++)
            dp_bytes_store(secret + 8 * i, made->secret[i], 8);
        const doppel_slice values[META_LATEST] = {{VERSION, 1},
                                                  {redis->settings, strlen(redis->settings)},
                                                  {(const char *)made->epoch, sizeof made->epoch},
                                                  {(const char *)secret, sizeof secret},
                                                  {made->plan.name, strlen(made->plan.name)}};
        dp_redis_call_begin(&batch, "make");
        for (int i = 0; i < META_LATEST; i++) {
            dp_redis_put_text(&batch, meta_names[i]);
            dp_redis_put(&batch, values[i].data, values[i].length);
        }
    } else {
        dp_redis_command_begin(&batch, "HMGET");
        dp_redis_put_key(&batch, 'm', 0, 0);
        for (int i = 0; i < META_FIELDS; i++)
            dp_redis_put_text(&batch, meta_names[i]);
    }
    dp_redis_link *link = dp_redis_take(redis->pool, error);
    doppel_status status = link                        ? dp_redis_call(link, &batch, made != NULL, error)
                           : error && error->code != 0 ? error->code
                                                       : DOPPEL_ERROR_MEMORY;
    if (link)
        dp_redis_give(redis->pool, link);
    if (status == DOPPEL_OK && batch.reply[0]->type == REDIS_REPLY_ERROR) {
        status = dp_redis_fail(redis, batch.reply[0], error);
    } else if (status == DOPPEL_OK) {
        *reply = batch.reply[0];
        batch.reply[0] = NULL;
    }
    dp_redis_batch_free(&batch);
    return status;
}

/* Reads a meta key. */
static doppel_status read_meta(const dp_redis *redis, const redisReply *reply, dp_redis_memory *m,
                               doppel_error *error) {
    const char *name = redis->url.name;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != META_FIELDS ||
        !dp_redis_is_string(reply->element[META_VERSION]))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, name, 0, "the keys with this prefix were not written by doppel");
    if (!strcmp(reply->element[META_VERSION]->str, "1"))
        return dp_fail_at(
            error, DOPPEL_ERROR_STORE, name, 0,
            "a memory of format 1, which this doppel does not read; with the doppel that made it, `doppel "
            "export --store URL > FILE`, then import FILE into a new prefix (?prefix=NAME) with this one, "
            "and delete the old keys");
    if (strcmp(reply->element[META_VERSION]->str, VERSION) != 0)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, name, 0, "a memory of format %.20s; this doppel knows format %s",
                          reply->element[META_VERSION]->str, VERSION);
    doppel_slice epoch = slice_of(reply->element[META_EPOCH]), secret = slice_of(reply->element[META_SECRET]);
    if (epoch.length != sizeof m->epoch || secret.length != 16 || !dp_redis_is_string(reply->element[META_PLAN]) ||
        !dp_redis_plan_read(reply->element[META_PLAN]->str, &redis->known.options.rules, &m->plan))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, name, 0, "the meta key of the memory is damaged");
    memcpy(m->epoch, epoch.data, sizeof m->epoch);
    for (int i = 0; i < 2; i++)
        m->secret[i] = dp_bytes_load(secret.data + 8 * i, 8);
    dp_order_init(&m->order, m->plan.rules.bits, m->secret[0] ? m->secret[0] : 1);
    return DOPPEL_OK;
}

/* When the last document of a memory expires, in seconds; 0: it has none. */
static uint64_t latest_of(const redisReply *reply) {
    const redisReply *latest = reply->element[META_LATEST];
    if (!dp_redis_is_string(latest) || !latest->len)
        return 0;
    uint64_t seconds = strtoull(latest->str, NULL, 10);
    return seconds ? seconds : UINT64_MAX;
}

dp_redis_memory dp_redis_get_memory(dp_redis *redis) {
    pthread_mutex_lock(&redis->mutex);
    dp_redis_memory copy = redis->memory;
    pthread_mutex_unlock(&redis->mutex);
    return copy;
}

/* ---- recreated ---- */

/* Settings that may change whenever it is opened, without making it another memory. */
static bool is_free(const char *line) {
    static const char *const names[] = {"on_duplicate=", "on_same_url=", "ttl=", "title_share="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(line, names[i], strlen(names[i])))
            return true;
    return false;
}

/* Whether every line of one, except free ones, is in the other. */
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

/* The time that `latest` is in. */
static uint64_t time_of(const dp_redis *redis) {
    const dp_known_options *options = &redis->known.options;
    return options->now ? options->now(options->now_user) : dp_wall_seconds();
}

/* Replaces the known memory by one that was found or created. */
static doppel_status replace(dp_redis *redis, const redisReply *reply, const dp_redis_memory *made,
                             doppel_error *error) {
    dp_redis_memory found = {0};
    bool there = reply->type == REDIS_REPLY_ARRAY && reply->elements == META_FIELDS;
    doppel_slice settings = there ? slice_of(reply->element[META_SETTINGS]) : (doppel_slice){NULL, 0};
    if (settings.length && (!has_lines(settings.data, redis->settings) || !has_lines(redis->settings, settings.data)))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, redis->url.name, 0,
                          "the memory was made anew by another process, with other settings");
    DP_TRY(read_meta(redis, reply, &found, error));
    pthread_mutex_lock(&redis->mutex);
    bool same = !memcmp(redis->memory.epoch, found.epoch, sizeof found.epoch);
    uint64_t had = redis->latest;
    redis->memory = found;
    if (!same)
        redis->latest = latest_of(reply);
    pthread_mutex_unlock(&redis->mutex);
    bool ours = made && !memcmp(made->epoch, found.epoch, sizeof found.epoch);
    if (!same && had > time_of(redis))
        tell(redis, ours ? DOPPEL_LOG_ERROR : DOPPEL_LOG_WARNING,
             ours ? "is gone: it starts anew" : "is gone; another process has begun a new one");
    return DOPPEL_OK;
}

doppel_status dp_redis_renew(dp_redis *redis, doppel_error *error) {
    bool reads = redis->known.options.read_only;
    dp_redis_memory made = {0};
    redisReply *reply = NULL;
    make_up(redis, &made);
    DP_TRY(fetch_meta(redis, reads ? NULL : &made, &reply, error));
    doppel_status status = DOPPEL_OK;
    if (reply->type != REDIS_REPLY_ARRAY || !reads || dp_redis_is_string(reply->element[META_VERSION]))
        status = replace(redis, reply, &made, error);
    freeReplyObject(reply);
    return status;
}

/* ---- opened and closed ---- */

/* The settings of the existing or new one, which the opener must agree to. */
static doppel_status agree(dp_redis *redis, const redisReply *reply, doppel_error *error) {
    dp_known_options *o = &redis->known.options;
    bool there = reply->type == REDIS_REPLY_ARRAY && reply->elements == META_FIELDS &&
                 dp_redis_is_string(reply->element[META_VERSION]) && dp_redis_is_string(reply->element[META_SETTINGS]);
    if (there && strcmp(reply->element[META_VERSION]->str, VERSION) != 0)
        return DOPPEL_OK; /* read_meta refuses it */
    if (there) {
        char *settings = strndup(reply->element[META_SETTINGS]->str, reply->element[META_SETTINGS]->len);
        if (!settings)
            return dp_no_memory(error);
        free(redis->settings);
        redis->settings = settings;
    }
    /* Another process may have it open with these settings, even if nothing was added yet. */
    return o->agree ? o->agree(redis->settings, NULL, &o->rules, o->user, error) : DOPPEL_OK;
}

/* The existing one, or a new one. */
static doppel_status find_memory(dp_redis *redis, doppel_error *error) {
    const dp_known_options *o = &redis->known.options;
    redisReply *reply = NULL;
    dp_redis_memory made = {0};
    make_up(redis, &made);
    bool makes = !o->read_only && !o->must_exist;
    doppel_status status = fetch_meta(redis, makes ? &made : NULL, &reply, error);
    if (status != DOPPEL_OK)
        return status;
    bool absent = !makes && reply->type == REDIS_REPLY_ARRAY && reply->elements == META_FIELDS &&
                  !dp_redis_is_string(reply->element[META_EPOCH]) && !dp_redis_is_string(reply->element[META_VERSION]);
    if (absent && o->must_exist) {
        status = dp_fail_at(error, DOPPEL_ERROR_STORE, redis->url.name, 0,
                            "there is no such index: nothing was added to it, or all of it has expired");
    } else {
        status = agree(redis, reply, error);
        if (status == DOPPEL_OK && absent) {
            redis->memory = made;
            dp_order_init(&redis->memory.order, o->rules.bits, 1);
        } else if (status == DOPPEL_OK) {
            status = read_meta(redis, reply, &redis->memory, error);
        }
        if (status == DOPPEL_OK && !absent)
            redis->latest = latest_of(reply);
    }
    freeReplyObject(reply);
    return status;
}

static void on_log(doppel_log_level level, const char *event, const char *line, void *user) {
    const dp_redis *redis = user;
    dp_known_log(&redis->known, level, event, "%s", line);
}

static doppel_status connect_all(dp_redis *redis, doppel_error *error) {
    size_t length = strlen(redis->url.prefix) + 3;
    redis->prefix = malloc(length);
    if (!redis->prefix || !redis->settings)
        return dp_no_memory(error);
    redis->prefix_length = (size_t)snprintf(redis->prefix, length, "{%s}", redis->url.prefix);
    const dp_redis_link_options options = {.url = &redis->url,
                                           .library = dp_redis_library,
                                           .library_name = dp_redis_library_name,
                                           .log = on_log,
                                           .user = redis};
    DP_TRY(dp_redis_pool_create(&options, &redis->pool, error));
    return find_memory(redis, error);
}

doppel_status dp_redis_open(const char *path, const dp_known_options *options, dp_known **known, doppel_error *error) {
    dp_redis *redis = calloc(1, sizeof *redis);
    *known = NULL;
    if (!redis)
        return dp_no_memory(error);
    pthread_mutex_init(&redis->mutex, NULL);
    redis->chunk = DP_REDIS_MOST_QUERIES;
    redis->alone = INT_MAX / 2; /* until another process is seen */
    redis->settings = strdup(options->settings ? options->settings : "");
    doppel_status status = dp_redis_url_parse(path, &redis->url, error);
    if (status == DOPPEL_OK && !dp_known_init(&redis->known, &dp_known_redis, options, redis->url.name))
        status = dp_no_memory(error);
    DP_THEN(status, connect_all(redis, error));
    redis->known.options.settings = NULL;
    if (status == DOPPEL_OK)
        *known = &redis->known;
    else
        dp_redis_close(&redis->known);
    return status;
}

void dp_redis_close(dp_known *known) {
    dp_redis *redis = (dp_redis *)known;
    dp_redis_pool_free(redis->pool);
    dp_redis_url_free(&redis->url);
    dp_known_clear(known);
    pthread_mutex_destroy(&redis->mutex);
    free(redis->settings);
    free(redis->prefix);
    free(redis);
}

/* ---- the functions, by an administrator ---- */

doppel_status dp_redis_prepare_servers(const char *text,
                                       void (*server)(const char *server, const char *library, const char *state,
                                                      void *user),
                                       void *user, doppel_error *error) {
    dp_redis_url url;
    dp_redis_pool *pool = NULL;
    DP_TRY(dp_redis_url_parse(text, &url, error));
    const dp_redis_link_options options = {
        .url = &url, .library = dp_redis_library, .library_name = dp_redis_library_name, .administers = true};
    doppel_status status = dp_redis_pool_create(&options, &pool, error);
    DP_THEN(status, dp_redis_pool_prepare(pool, server, user, error));
    dp_redis_pool_free(pool);
    dp_redis_url_free(&url);
    return status;
}

/* ---- what it is like ---- */

void dp_redis_read_totals(const redisReply *fields, uint64_t now, dp_redis_totals *totals) {
    static const char counts[] = "uwt";
    *totals = (dp_redis_totals){0};
    for (size_t i = 0; i + 1 < fields->elements; i += 2) {
        if (!dp_redis_is_string(fields->element[i]) || !dp_redis_is_string(fields->element[i + 1]))
            continue;
        const char *name = fields->element[i]->str;
        uint64_t value = strtoull(fields->element[i + 1]->str, NULL, 10);
        const char *count = name[0] && !name[1] ? strchr(counts, name[0]) : NULL;
        uint64_t by = (*name == 'd' || *name == 'c') && name[1] ? strtoull(name + 1, NULL, 10) : 1;
        if (count)
            totals->counts.by[count - counts] = value;
        else if (!strcmp(name, "n"))
            totals->last = value;
        else if (!by || by > now)
            *(*name == 'd' ? &totals->documents : &totals->copies) += *name == 'd' || *name == 'c' ? value : 0;
    }
}

/* Memory used by the whole server; 0: this user may not query it. */
static uint64_t used_memory(dp_redis *redis, dp_redis_link *link) {
    dp_redis_batch batch = dp_redis_batch_of(redis);
    uint64_t used = 0;
    dp_redis_command_begin(&batch, "INFO");
    dp_redis_put_text(&batch, "memory");
    if (dp_redis_call(link, &batch, false, NULL) == DOPPEL_OK && dp_redis_is_string(batch.reply[0])) {
        const char *at = strstr(batch.reply[0]->str, "used_memory:");
        used = at ? strtoull(at + strlen("used_memory:"), NULL, 10) : 0;
    }
    dp_redis_batch_free(&batch);
    return used;
}

void dp_redis_get_stats(dp_known *known, doppel_engine_stats *stats) {
    dp_redis *redis = (dp_redis *)known;
    dp_redis_batch batch = dp_redis_batch_of(redis);
    doppel_error why = {0};
    dp_redis_totals totals;
    dp_redis_command_begin(&batch, "HGETALL");
    dp_redis_put_key(&batch, 'm', 0, 0);
    dp_redis_command_begin(&batch, "TIME");
    dp_redis_link *link = dp_redis_take(redis->pool, &why);
    doppel_status status = link ? dp_redis_call(link, &batch, false, &why) : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK && batch.reply[0]->type != REDIS_REPLY_ARRAY)
        status = dp_redis_fail(redis, batch.reply[0], &why);
    if (status == DOPPEL_OK) {
        const redisReply *clock = batch.reply[1];
        bool told = !known->options.now && clock->type == REDIS_REPLY_ARRAY && clock->elements == 2 &&
                    dp_redis_is_string(clock->element[0]);
        uint64_t now = told ? strtoull(clock->element[0]->str, NULL, 10) : time_of(redis);
        dp_redis_read_totals(batch.reply[0], now, &totals);
        stats->documents = totals.documents;
        stats->copies = totals.copies;
        stats->last = totals.last;
        stats->memory_bytes = used_memory(redis, link);
        for (doppel_reason i = DOPPEL_REASON_URL; i < DOPPEL_REASONS; i++)
            stats->duplicates_by[i] = totals.counts.by[dp_reason_counter(i)];
    } else {
        dp_known_log_error(known, "STATS", &why);
    }
    if (link)
        dp_redis_give(redis->pool, link);
    dp_redis_batch_free(&batch);
    const dp_redis_counters *counters = dp_redis_get_counters(redis->pool);
    stats->reconnects = atomic_load(&counters->reconnects);
    stats->resent = atomic_load(&counters->resent);
    stats->moved = atomic_load(&counters->moved);
    dp_redis_memory memory = dp_redis_get_memory(redis);
    snprintf(stats->plan, sizeof stats->plan, "%.*s", (int)strcspn(memory.plan.name, "/"), memory.plan.name);
}
