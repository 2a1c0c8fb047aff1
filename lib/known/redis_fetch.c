/* redis_fetch.c - what a look has of a memory in Redis: places and documents that were asked for, kept until it ends.
 *
 * The first batch of a look begins with a greeting: which memory it is, the stamp of its last commit, the server's
 * time. What is asked for later is never older than that stamp: so nothing has changed as long as the stamp has not. A
 * memory that is another one than expected is followed, and everything that was fetched of the one before is forgotten.
 */
#include "known/redis.h"

#include <stdlib.h>
#include <time.h>

/* Documents that one MGET asks for. */
enum { DOCUMENTS_EACH = 16 };
/* How often a memory that is another one each time is looked at again, and one in which a document is missing. */
enum { ATTEMPTS = 8, MOST_ROUNDS = 8 };

/* ---- maps ---- */

static size_t slot_of(const dp_redis_map *map, uint64_t key) {
    size_t at = (size_t)(key * 0x9E3779B97F4A7C15u >> 32) & (map->room - 1);
    while (map->key[at] && map->key[at] != key)
        at = (at + 1) & (map->room - 1);
    return at;
}

static bool map_grow(dp_redis_map *map) {
    dp_redis_map larger = {.count = map->count, .room = map->room ? 2 * map->room : 256};
    larger.key = calloc(larger.room, sizeof *larger.key);
    larger.position = malloc(larger.room * sizeof *larger.position);
    if (!larger.key || !larger.position) {
        free(larger.key);
        free(larger.position);
        return false;
    }
    for (size_t i = 0; i < map->room; i++) {
        if (!map->key[i])
            continue;
        size_t at = slot_of(&larger, map->key[i]);
        larger.key[at] = map->key[i];
        larger.position[at] = map->position[i];
    }
    free(map->key);
    free(map->position);
    *map = larger;
    return true;
}

/* The position of a key; a new one is map->count - 1, and *is_new says so. UINT32_MAX: no memory. */
static uint32_t map_add(dp_redis_map *map, uint64_t key, bool *is_new) {
    *is_new = false;
    if (2 * map->count >= map->room && !map_grow(map))
        return UINT32_MAX;
    size_t at = slot_of(map, key);
    if (!map->key[at]) {
        map->key[at] = key;
        map->position[at] = (uint32_t)map->count++;
        *is_new = true;
    }
    return map->position[at];
}

static uint32_t map_find(const dp_redis_map *map, uint64_t key) {
    size_t at = map->room ? slot_of(map, key) : 0;
    return map->room && key && map->key[at] ? map->position[at] : UINT32_MAX;
}

static void map_clear(dp_redis_map *map) {
    if (map->count)
        memset(map->key, 0, map->room * sizeof *map->key);
    map->count = 0;
}

static void map_free(dp_redis_map *map) {
    free(map->key);
    free(map->position);
}

/* ---- looks ---- */

void dp_redis_look_reset(dp_redis_look *l) {
    map_clear(&l->places);
    map_clear(&l->documents);
    dp_arena_free(&l->arena);
    l->arena = (dp_arena){0};
    l->arena_bytes = 0;
    l->pending_count = l->undo_count = l->fingerprint_count = 0;
    l->greeted = l->absent = l->has_totals = false;
}

/* What was not fetched is not there: all is forgotten. What was queued with it is lost, and the commit says so. */
static doppel_status fail_look(dp_redis_look *l, doppel_status status, const doppel_error *error) {
    if (l->pending_count && l->failed == DOPPEL_OK) {
        l->failed = status;
        l->why = error ? *error : (doppel_error){.code = status};
    }
    dp_redis_look_reset(l);
    return status;
}

doppel_status dp_redis_look_create(dp_look *look, doppel_error *error) {
    dp_redis_look *l = calloc(1, sizeof *l);
    if (!l)
        return dp_no_memory(error);
    l->redis = (dp_redis *)look->known;
    look->own = l;
    return DOPPEL_OK;
}

void dp_redis_look_free(dp_look *look) {
    dp_redis_look *l = look->own;
    if (!l)
        return;
    dp_redis_look_reset(l);
    map_free(&l->places);
    map_free(&l->documents);
    free(l->place);
    free(l->document);
    free(l->pending);
    free(l->undo);
    free(l->fingerprint);
    free(l->asked.place);
    dp_numbers_free(&l->wanted);
    free(l);
}

/* The caller's clock, which never goes back, or that of the machine until the server's has been read. */
static uint64_t own_time(dp_redis *redis) {
    const dp_known_options *options = &redis->known.options;
    if (!options->now)
        return (uint64_t)time(NULL);
    dp_latest(&redis->now, options->now(options->now_user));
    return atomic_load(&redis->now);
}

/* Whether a document was gone that something led to: a new version may have come before the place was read. */
bool dp_redis_again(const dp_look *look) {
    const dp_redis_look *l = look->own;
    return look->purpose == DP_LOOK_READ && l->missed && l->missed_rounds < MOST_ROUNDS;
}

/* ---- greeting, begin and end ---- */

/* The first commands of a look: which memory it is, its stamp, when it was made, and the time. */
enum { GREETING = 2 };

static void put_greeting(dp_redis_batch *batch) {
    dp_redis_command_begin(batch, "HMGET", 4);
    dp_redis_put_key(batch, 'm', 0, 0);
    dp_redis_put_text(batch, "e");
    dp_redis_put_text(batch, "o");
    dp_redis_put_text(batch, "b");
    dp_redis_command_begin(batch, "TIME", 0);
}

/* What the greeting was answered with. *changed: it is another memory. */
static doppel_status take_greeting(dp_look *look, redisReply *const reply[GREETING], bool *changed,
                                   doppel_error *error) {
    dp_redis_look *l = look->own;
    const redisReply *meta = reply[0], *clock = reply[1];
    *changed = false;
    if (meta->type != REDIS_REPLY_ARRAY || meta->elements != 3)
        return dp_redis_fail(l->redis, meta, error);
    if (clock->type != REDIS_REPLY_ARRAY || clock->elements != 2 || !dp_redis_is_string(clock->element[0]))
        return dp_redis_fail(l->redis, clock, error);
    const redisReply *epoch = meta->element[0], *stamp = meta->element[1];
    if (dp_redis_is_string(stamp) && stamp->len != sizeof l->stamp)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, l->redis->url.name, 0, "the meta key of the memory is damaged");
    l->absent = !dp_redis_is_string(epoch);
    *changed = !dp_redis_is_string(epoch) || epoch->len != sizeof l->memory.epoch ||
               memcmp(epoch->str, l->memory.epoch, sizeof l->memory.epoch) != 0;
    l->stamp_length = dp_redis_is_string(stamp) ? sizeof l->stamp : 0;
    if (l->stamp_length)
        memcpy(l->stamp, stamp->str, sizeof l->stamp);
    if (!look->known->options.now)
        look->now = look->latest = strtoull(clock->element[0]->str, NULL, 10);
    l->made = dp_redis_is_string(meta->element[2]) ? strtoull(meta->element[2]->str, NULL, 10) : 0;
    l->greeted = true;
    return DOPPEL_OK;
}

/* The memory that is there now. */
doppel_status dp_redis_follow_memory(dp_redis_look *l, doppel_error *error) {
    bool absent = l->absent && l->redis->known.options.read_only;
    doppel_status status = absent ? DOPPEL_OK : dp_redis_renew(l->redis, error);
    if (status != DOPPEL_OK)
        return status;
    l->renewed = l->renewed || l->pending_count > 0;
    dp_redis_look_reset(l);
    l->next = l->end = 0;
    l->memory = dp_redis_get_memory(l->redis);
    l->greeted = l->absent = absent;
    return DOPPEL_OK;
}

static doppel_status greet(dp_look *look, doppel_error *error) {
    dp_redis_look *l = look->own;
    bool changed = true;
    doppel_status status = DOPPEL_OK;
    for (int i = 0; changed && status == DOPPEL_OK && i < ATTEMPTS; i++) {
        dp_redis_batch batch = {.redis = l->redis};
        put_greeting(&batch);
        status = dp_redis_send(&batch, l->link, false, error);
        if (status == DOPPEL_OK)
            status = take_greeting(look, batch.reply, &changed, error);
        dp_redis_batch_free(&batch);
        if (status == DOPPEL_OK && changed) {
            status = dp_redis_follow_memory(l, error);
            changed = status != DOPPEL_OK || !l->greeted;
        }
    }
    if (status == DOPPEL_OK && changed)
        status = dp_fail_at(error, DOPPEL_ERROR_AWAY, l->redis->url.name, 0,
                            "the memory goes as soon as it is made: is something else deleting its keys?");
    return status;
}

doppel_status dp_redis_begin(dp_look *look, doppel_error *error) {
    dp_redis_look *l = look->own;
    dp_redis_look_reset(l);
    l->memory = dp_redis_get_memory(l->redis);
    l->failed = DOPPEL_OK;
    l->missed_rounds = l->missed ? l->missed_rounds + 1 : 0;
    l->renewed = l->has_turn = l->missed = false;
    l->next = l->end = 0;
    look->below = UINT64_MAX;
    look->now = look->latest = own_time(l->redis);
    look->deciding = look->purpose == DP_LOOK_ADD;
    if (!(l->link = dp_redis_take(l->redis->pool, error)))
        return error && error->code ? error->code : DOPPEL_ERROR_MEMORY;
    if (look->purpose != DP_LOOK_STILL || look->known->options.read_only)
        return DOPPEL_OK;
    doppel_status status = greet(look, error);
    if (status == DOPPEL_OK)
        status = dp_redis_take_turn(look, error);
    if (status != DOPPEL_OK)
        dp_redis_give(l->redis->pool, l->link);
    return status;
}

doppel_status dp_redis_end(dp_look *look, doppel_error *error) {
    dp_redis_look *l = look->own;
    (void)error;
    if (l->has_turn)
        dp_redis_leave_turn(look); /* else it ends by itself */
    dp_redis_give(l->redis->pool, l->link);
    l->link = NULL;
    dp_redis_look_reset(l);
    return DOPPEL_OK;
}

/* A batch; the first of a look begins with the greeting, which would else be a round trip of its own. */
dp_redis_batch dp_redis_look_batch(const dp_look *look) {
    const dp_redis_look *l = look->own;
    dp_redis_batch batch = {.redis = l->redis};
    if (!l->greeted) {
        put_greeting(&batch);
        batch.first = GREETING;
    }
    return batch;
}

doppel_status dp_redis_look_send(dp_look *look, dp_redis_batch *batch, bool *changed, doppel_error *error) {
    dp_redis_look *l = look->own;
    *changed = false;
    doppel_status status = dp_redis_send(batch, l->link, false, error);
    if (status != DOPPEL_OK || !batch->first)
        return status;
    status = take_greeting(look, batch->reply, changed, error);
    if (status == DOPPEL_OK && *changed)
        status = dp_redis_follow_memory(l, error);
    return status == DOPPEL_OK && !l->greeted ? greet(look, error) : status;
}

/* ---- places ---- */

dp_redis_place *dp_redis_find_place(dp_redis_look *l, uint64_t hash) {
    uint32_t position = map_find(&l->places, hash);
    return position == UINT32_MAX ? NULL : &l->place[position];
}

static dp_redis_place *add_place(dp_redis_look *l, uint64_t hash) {
    bool is_new;
    if (!dp_reserve(&l->place, &l->place_room, l->places.count + 1, sizeof *l->place))
        return NULL;
    uint32_t position = map_add(&l->places, hash, &is_new);
    if (position == UINT32_MAX)
        return NULL;
    if (is_new)
        l->place[position] = (dp_redis_place){.hash = hash};
    return &l->place[position];
}

static doppel_status take_place(dp_redis_look *l, dp_redis_place *place, const redisReply *reply, doppel_error *error) {
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
        return dp_redis_fail(l->redis, reply, error);
    const redisReply *goes = reply->element[0], *value = reply->element[1];
    size_t size = dp_redis_entry_size(&l->memory.plan, dp_redis_class_of(place->hash));
    size_t length = dp_redis_is_string(value) ? value->len : 0;
    if (length % size)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, l->redis->url.name, 0,
                          "a bucket of it is not what doppel wrote; `doppel verify` says more");
    place->base = dp_arena_copy(&l->arena, length ? value->str : "", length);
    if (!place->base.data)
        return dp_no_memory(error);
    l->arena_bytes += length;
    place->value = place->base;
    place->goes =
        dp_redis_is_string(goes) && goes->len == DP_REDIS_NUMBER ? dp_bytes_load(goes->str, DP_REDIS_NUMBER) : 0;
    if (place->goes == DP_REDIS_NEVER)
        place->goes = UINT64_MAX;
    place->fetched = true;
    return DOPPEL_OK;
}

/* Adds those of l->asked that are new. False: no memory. */
static bool add_asked(dp_redis_look *l) {
    for (size_t i = 0; i < l->asked.count && !l->asked.failed; i++) {
        dp_redis_place *place = add_place(l, l->asked.place[i]);
        if (!place)
            return false;
        place->fetched = place->fetched || l->absent;
    }
    return !l->asked.failed;
}

/* Those from `first` on, which were added. */
static doppel_status fetch_places_from(dp_look *look, size_t first, bool *changed, doppel_error *error) {
    dp_redis_look *l = look->own;
    dp_redis_batch batch = dp_redis_look_batch(look);
    for (size_t i = first; i < l->places.count && !l->absent; i++) {
        dp_redis_command_begin(&batch, "HMGET", 3);
        dp_redis_put_bucket(&batch, l->place[i].hash, &l->memory.plan);
        dp_redis_put_text(&batch, "x");
        dp_redis_put_field(&batch, l->place[i].hash);
    }
    doppel_status status = DOPPEL_OK;
    if (batch.count || batch.failed)
        status = dp_redis_look_send(look, &batch, changed, error);
    for (size_t i = batch.first; i < batch.count && status == DOPPEL_OK && !*changed; i++)
        status = take_place(l, &l->place[first + i - batch.first], batch.reply[i], error);
    dp_redis_batch_free(&batch);
    return status;
}

doppel_status dp_redis_fetch_places(dp_look *look, bool *changed, doppel_error *error) {
    dp_redis_look *l = look->own;
    size_t first = l->places.count;
    *changed = false;
    doppel_status status = add_asked(l) ? fetch_places_from(look, first, changed, error) : dp_no_memory(error);
    return status == DOPPEL_OK ? status : fail_look(l, status, error);
}

/* Fetches the places that `add` names. They are others when the memory is. */
doppel_status dp_redis_fetch_asked(dp_look *look, void (*add)(dp_redis_look *l, const void *what), const void *what,
                                   doppel_error *error) {
    dp_redis_look *l = look->own;
    bool changed = true;
    doppel_status status = DOPPEL_OK;
    while (changed && status == DOPPEL_OK) {
        l->asked.count = 0;
        l->asked.failed = false;
        add(l, what);
        status = dp_redis_fetch_places(look, &changed, error);
    }
    return status;
}

/* ---- documents ---- */

/* The record with what its document says only once: an id that is the canonical URL, a URL that is. */
static bool complete_record(dp_arena *arena, unsigned flags, doppel_slice *bytes) {
    dp_record record;
    dp_buffer whole = {0};
    if (!dp_record_decode(*bytes, &record))
        return false;
    if ((flags & DP_REDIS_ID_IS_URL && (record.id.data || !record.canonical.data)) ||
        (flags & DP_REDIS_SAME_URL && (record.url.data || !record.canonical.data)))
        return false;
    if (flags & DP_REDIS_ID_IS_URL)
        record.id = record.canonical;
    if (flags & DP_REDIS_SAME_URL)
        record.url = record.canonical;
    if (flags && dp_record_encode(&record, &whole))
        *bytes = dp_arena_copy(arena, whole.data, whole.size);
    dp_buffer_free(&whole);
    return bytes->data;
}

bool dp_redis_document_read(doppel_slice bytes, dp_arena *arena, dp_redis_document *document) {
    enum { HEAD = 8 };
    if (bytes.length < HEAD || bytes.data[0] != DP_REDIS_FORMAT ||
        (bytes.data[1] & ~(DP_REDIS_ID_IS_URL | DP_REDIS_SAME_URL)))
        return false;
    size_t trace = (size_t)dp_bytes_load(bytes.data + 2, 3), rest = (size_t)dp_bytes_load(bytes.data + 5, 3);
    if (trace > bytes.length - HEAD || rest > bytes.length - HEAD - trace)
        return false;
    const char *at = bytes.data + HEAD;
    size_t set = bytes.length - HEAD - trace - rest;
    document->part[DP_PART_TRACE] = (doppel_slice){at, trace};
    document->part[DP_PART_RECORD] = (doppel_slice){rest ? at + trace : NULL, rest};
    document->part[DP_PART_SET] = (doppel_slice){set ? at + trace + rest : NULL, set};
    if (!dp_trace_decode(document->part[DP_PART_TRACE], &document->trace) ||
        document->trace.number != document->number || dp_trace_is_removal(&document->trace) ||
        dp_trace_is_kept(&document->trace) != (rest > 0))
        return false;
    return !rest || complete_record(arena, (unsigned char)bytes.data[1], &document->part[DP_PART_RECORD]);
}

dp_redis_document *dp_redis_known_document(dp_redis_look *l, uint64_t number) {
    uint32_t position = map_find(&l->documents, number);
    return position == UINT32_MAX ? NULL : &l->document[position];
}

dp_redis_document *dp_redis_add_document(dp_redis_look *l, uint64_t number) {
    bool is_new;
    if (!dp_reserve(&l->document, &l->document_room, l->documents.count + 1, sizeof *l->document))
        return NULL;
    uint32_t position = map_add(&l->documents, number, &is_new);
    if (position == UINT32_MAX)
        return NULL;
    if (is_new)
        l->document[position] = (dp_redis_document){.number = number};
    return &l->document[position];
}

static doppel_status take_document(dp_look *look, dp_redis_document *document, const redisReply *reply,
                                   doppel_error *error) {
    dp_redis_look *l = look->own;
    document->fetched = true;
    document->there = dp_redis_is_string(reply);
    if (!document->there)
        return DOPPEL_OK;
    doppel_slice bytes = dp_arena_copy(&l->arena, reply->str, reply->len);
    if (!bytes.data)
        return dp_no_memory(error);
    l->arena_bytes += reply->len;
    if (dp_redis_document_read(bytes, &l->arena, document))
        return DOPPEL_OK;
    document->there = false;
    document->damaged = true;
    return DOPPEL_OK;
}

/* Those from `first` on, which were added and not fetched. */
static doppel_status fetch_from(dp_look *look, size_t first, doppel_error *error) {
    dp_redis_look *l = look->own;
    dp_redis_batch batch = dp_redis_look_batch(look);
    size_t count = l->documents.count;
    bool changed;
    for (size_t i = first; i < count; i++) {
        if ((i - first) % DOCUMENTS_EACH == 0)
            dp_redis_command_begin(&batch, "MGET", DOCUMENTS_EACH);
        dp_redis_put_key(&batch, 'd', l->document[i].number, DP_REDIS_NUMBER);
    }
    doppel_status status = dp_redis_look_send(look, &batch, &changed, error);
    for (size_t i = first; i < count && status == DOPPEL_OK && !changed; i++) {
        const redisReply *reply = batch.reply[batch.first + (i - first) / DOCUMENTS_EACH];
        size_t at = (i - first) % DOCUMENTS_EACH;
        status = reply->type == REDIS_REPLY_ARRAY && at < reply->elements
                     ? take_document(look, &l->document[i], reply->element[at], error)
                     : dp_redis_fail(l->redis, reply, error);
    }
    dp_redis_batch_free(&batch);
    return status == DOPPEL_OK ? status : fail_look(l, status, error);
}

doppel_status dp_redis_prefetch_documents(dp_look *look, const uint64_t *numbers, size_t count, doppel_error *error) {
    dp_redis_look *l = look->own;
    size_t first = l->documents.count;
    for (size_t i = 0; i < count; i++) {
        dp_redis_document *document = numbers[i] ? dp_redis_add_document(l, numbers[i]) : NULL;
        if (numbers[i] && !document)
            return fail_look(l, dp_no_memory(error), error);
        if (document && l->absent)
            document->fetched = true;
    }
    return l->documents.count > first && !l->absent ? fetch_from(look, first, error) : DOPPEL_OK;
}

doppel_status dp_redis_fetch_documents(dp_look *look, const uint64_t *numbers, size_t count, doppel_error *error) {
    doppel_status status = dp_redis_prefetch_documents(look, numbers, count, error);
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        const dp_redis_document *document = dp_redis_known_document(look->own, numbers[i]);
        if (document && document->damaged)
            status = dp_look_nonsense(look, "document", numbers[i], "is not what doppel wrote", error);
    }
    return status;
}

doppel_status dp_redis_find_document(dp_look *look, uint64_t number, dp_redis_document **document,
                                     doppel_error *error) {
    dp_redis_look *l = look->own;
    *document = NULL;
    doppel_status status = dp_redis_fetch_documents(look, &number, 1, error);
    if (status != DOPPEL_OK)
        return status;
    *document = dp_redis_known_document(l, number);
    return DOPPEL_OK;
}
