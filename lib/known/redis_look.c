/* redis_look.c - a look at a memory in Redis: the places and documents that were asked for, kept until it ends, and
 * which of them may be like a query.
 *
 * The first batch of a look begins with a greeting: which memory it is, the stamp of its last commit, the server's
 * time. Data fetched later is never older than that stamp: so nothing has changed as long as the stamp has not. If the
 * memory was replaced, the look switches to the new one, and drops everything fetched from the old.
 *
 * Requested data is fetched first, if it has not been; dp_redis_fetch_queries does so for many queries in a few round
 * trips. Places hold what is queued as well (redis_commit.c), so that the documents of one batch find each other. */
#include "known/redis.h"
#include "verify/verify.h"

#include <stdlib.h>

/* Documents per MGET. */
enum { DOCUMENTS_EACH = 16 };
/* How often a look is retried when the memory keeps being replaced, and when a document is missing. */
enum { ATTEMPTS = 8, MOST_ROUNDS = 8 };

/* ---- memory that goes all at once: what a look has fetched ---- */

enum { BLOCK = 65536 };

struct dp_arena_block {
    struct dp_arena_block *next;
    size_t used, room;
    max_align_t bytes[];
};

void *dp_arena_take(dp_arena *arena, size_t length) {
    struct dp_arena_block *block = arena->block;
    if (length > SIZE_MAX / 2)
        return NULL;
    length = (length + 16) & ~(size_t)15;
    if (!block || block->room - block->used < length) {
        size_t room = length > BLOCK ? length : BLOCK;
        if (!(block = malloc(sizeof *block + room)))
            return NULL;
        *block = (struct dp_arena_block){.next = arena->block, .room = room};
        arena->block = block;
    }
    block->used += length;
    return (char *)block->bytes + block->used - length;
}

void dp_arena_free(dp_arena *arena) {
    for (struct dp_arena_block *block = arena->block, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    arena->block = NULL;
}

doppel_slice dp_arena_copy(dp_arena *arena, const void *bytes, size_t length) {
    char *copy = dp_arena_take(arena, length);
    if (copy && length)
        memcpy(copy, bytes, length);
    return (doppel_slice){copy, copy ? length : 0};
}

/* ---- looks ---- */

void dp_redis_look_reset(dp_redis_look *l) {
    dp_hashmap_clear(&l->places);
    dp_hashmap_clear(&l->documents);
    l->place_count = l->document_count = 0;
    dp_arena_free(&l->arena);
    l->arena = (dp_arena){0};
    l->arena_bytes = 0;
    l->pending_count = l->undo_count = l->fingerprint_count = 0;
    l->greeted = l->absent = l->has_totals = false;
}

/* Data is incomplete: everything is dropped. Queued changes are lost, and the commit reports it. */
static doppel_status fail_look(dp_redis_look *l, doppel_status status, const doppel_error *error) {
    if (l->pending_count && l->failed == DOPPEL_OK) {
        l->failed = status;
        l->why = error ? *error : (doppel_error){.code = status};
    }
    dp_redis_look_reset(l);
    return status;
}

static doppel_status look_create(dp_look *look, doppel_error *error) {
    dp_redis_look *l = calloc(1, sizeof *l);
    if (!l)
        return dp_no_memory(error);
    l->look = look;
    l->redis = (dp_redis *)look->known;
    look->own = l;
    return DOPPEL_OK;
}

static void look_free(dp_look *look) {
    dp_redis_look *l = look->own;
    if (!l)
        return;
    dp_redis_look_reset(l);
    dp_hashmap_free(&l->places);
    dp_hashmap_free(&l->documents);
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
        return dp_wall_seconds();
    dp_latest(&redis->now, options->now(options->now_user));
    return atomic_load(&redis->now);
}

/* Whether a document that something led to was gone: a new version may have been added before the place was read. */
static bool again(const dp_look *look) {
    const dp_redis_look *l = look->own;
    return look->purpose == DP_LOOK_READ && l->missed && l->missed_rounds < MOST_ROUNDS;
}

/* ---- greeting, begin and end ---- */

/* The first commands of a look: which memory it is, its stamp, when it was made, and the time. */
enum { GREETING = 2 };

static void put_greeting(dp_redis_batch *batch) {
    dp_redis_command_begin(batch, "HMGET");
    dp_redis_put_key(batch, 'm', 0, 0);
    dp_redis_put_text(batch, "e");
    dp_redis_put_text(batch, "o");
    dp_redis_put_text(batch, "b");
    dp_redis_command_begin(batch, "TIME");
}

/* What the greeting was answered with. *changed: it is another memory. */
static doppel_status take_greeting(dp_redis_look *l, redisReply *const reply[GREETING], bool *changed,
                                   doppel_error *error) {
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
    if (!l->look->known->options.now)
        l->look->now = l->look->latest = strtoull(clock->element[0]->str, NULL, 10);
    l->made = dp_redis_is_string(meta->element[2]) ? strtoull(meta->element[2]->str, NULL, 10) : 0;
    l->greeted = true;
    return DOPPEL_OK;
}

/* Switches to the current memory. */
static doppel_status follow_memory(dp_redis_look *l, doppel_error *error) {
    bool absent = l->absent && l->redis->known.options.read_only;
    DP_TRY(absent ? DOPPEL_OK : dp_redis_renew(l->redis, error));
    l->renewed = l->renewed || l->pending_count > 0;
    dp_redis_look_reset(l);
    l->next = l->end = 0;
    l->memory = dp_redis_get_memory(l->redis);
    l->greeted = l->absent = absent;
    return DOPPEL_OK;
}

static doppel_status greet(dp_redis_look *l, doppel_error *error) {
    bool changed = true;
    doppel_status status = DOPPEL_OK;
    for (int i = 0; changed && status == DOPPEL_OK && i < ATTEMPTS; i++) {
        dp_redis_batch batch = dp_redis_batch_of(l->redis);
        put_greeting(&batch);
        status = dp_redis_call(l->link, &batch, false, error);
        DP_THEN(status, take_greeting(l, batch.reply, &changed, error));
        dp_redis_batch_free(&batch);
        if (status == DOPPEL_OK && changed) {
            status = follow_memory(l, error);
            changed = status != DOPPEL_OK || !l->greeted;
        }
    }
    if (status == DOPPEL_OK && changed)
        status = dp_fail_at(error, DOPPEL_ERROR_AWAY, l->redis->url.name, 0,
                            "the memory goes as soon as it is made: is something else deleting its keys?");
    return status;
}

static doppel_status begin(dp_look *look, doppel_error *error) {
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
    doppel_status status = greet(l, error);
    DP_THEN(status, dp_redis_take_turn(l, error));
    if (status != DOPPEL_OK)
        dp_redis_give(l->redis->pool, l->link);
    return status;
}

static doppel_status end(dp_look *look, doppel_error *error) {
    dp_redis_look *l = look->own;
    (void)error;
    if (l->has_turn)
        dp_redis_leave_turn(l); /* else it ends by itself */
    dp_redis_give(l->redis->pool, l->link);
    l->link = NULL;
    dp_redis_look_reset(l);
    return DOPPEL_OK;
}

/* A batch; the first of a look begins with the greeting, which would else be a round trip of its own. */
dp_redis_batch dp_redis_look_batch(const dp_redis_look *l) {
    dp_redis_batch batch = dp_redis_batch_of(l->redis);
    if (!l->greeted) {
        put_greeting(&batch);
        batch.first = GREETING;
    }
    return batch;
}

doppel_status dp_redis_look_send(dp_redis_look *l, dp_redis_batch *batch, bool *changed, doppel_error *error) {
    *changed = false;
    DP_TRY(dp_redis_call(l->link, batch, false, error));
    if (!batch->first)
        return DOPPEL_OK;
    DP_TRY(take_greeting(l, batch->reply, changed, error));
    if (*changed)
        DP_TRY(follow_memory(l, error));
    return l->greeted ? DOPPEL_OK : greet(l, error);
}

/* ---- places ---- */

dp_redis_place *dp_redis_find_place(dp_redis_look *l, uint64_t hash) {
    uint64_t at = dp_hashmap_find(&l->places, hash);
    return at ? &l->place[at - 1] : NULL;
}

static dp_redis_place *add_place(dp_redis_look *l, uint64_t hash) {
    if (!dp_reserve(&l->place, &l->place_room, l->place_count + 1, sizeof *l->place))
        return NULL;
    uint64_t *at = dp_hashmap_add(&l->places, hash);
    if (!at)
        return NULL;
    if (!*at) {
        l->place[l->place_count] = (dp_redis_place){.hash = hash};
        *at = ++l->place_count;
    }
    return &l->place[*at - 1];
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
static doppel_status fetch_places_from(dp_redis_look *l, size_t first, bool *changed, doppel_error *error) {
    dp_redis_batch batch = dp_redis_look_batch(l);
    for (size_t i = first; i < l->place_count && !l->absent; i++) {
        dp_redis_command_begin(&batch, "HMGET");
        dp_redis_put_bucket(&batch, l->place[i].hash, &l->memory.plan);
        dp_redis_put_text(&batch, "x");
        dp_redis_put_field(&batch, l->place[i].hash);
    }
    doppel_status status = DOPPEL_OK;
    if (batch.count || batch.failed)
        status = dp_redis_look_send(l, &batch, changed, error);
    for (size_t i = batch.first; i < batch.count && status == DOPPEL_OK && !*changed; i++)
        status = take_place(l, &l->place[first + i - batch.first], batch.reply[i], error);
    dp_redis_batch_free(&batch);
    return status;
}

doppel_status dp_redis_fetch_places(dp_redis_look *l, bool *changed, doppel_error *error) {
    size_t first = l->place_count;
    *changed = false;
    doppel_status status = add_asked(l) ? fetch_places_from(l, first, changed, error) : dp_no_memory(error);
    return status == DOPPEL_OK ? status : fail_look(l, status, error);
}

/* Fetches the places that `add` names. They are others when the memory is. */
static doppel_status fetch_asked(dp_redis_look *l, void (*add)(dp_redis_look *l, const void *what), const void *what,
                                 doppel_error *error) {
    for (bool changed = true; changed;) {
        l->asked.count = 0;
        l->asked.failed = false;
        add(l, what);
        DP_TRY(dp_redis_fetch_places(l, &changed, error));
    }
    return DOPPEL_OK;
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
    uint64_t at = dp_hashmap_find(&l->documents, number);
    return at ? &l->document[at - 1] : NULL;
}

dp_redis_document *dp_redis_add_document(dp_redis_look *l, uint64_t number) {
    if (!dp_reserve(&l->document, &l->document_room, l->document_count + 1, sizeof *l->document))
        return NULL;
    uint64_t *at = dp_hashmap_add(&l->documents, number);
    if (!at)
        return NULL;
    if (!*at) {
        l->document[l->document_count] = (dp_redis_document){.number = number};
        *at = ++l->document_count;
    }
    return &l->document[*at - 1];
}

static doppel_status take_document(dp_redis_look *l, dp_redis_document *document, const redisReply *reply,
                                   doppel_error *error) {
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
static doppel_status fetch_from(dp_redis_look *l, size_t first, doppel_error *error) {
    dp_redis_batch batch = dp_redis_look_batch(l);
    size_t count = l->document_count;
    bool changed;
    for (size_t i = first; i < count; i++) {
        if ((i - first) % DOCUMENTS_EACH == 0)
            dp_redis_command_begin(&batch, "MGET");
        dp_redis_put_key(&batch, 'd', l->document[i].number, DP_REDIS_NUMBER);
    }
    doppel_status status = dp_redis_look_send(l, &batch, &changed, error);
    for (size_t i = first; i < count && status == DOPPEL_OK && !changed; i++) {
        const redisReply *reply = batch.reply[batch.first + (i - first) / DOCUMENTS_EACH];
        size_t at = (i - first) % DOCUMENTS_EACH;
        status = reply->type == REDIS_REPLY_ARRAY && at < reply->elements
                     ? take_document(l, &l->document[i], reply->element[at], error)
                     : dp_redis_fail(l->redis, reply, error);
    }
    dp_redis_batch_free(&batch);
    return status == DOPPEL_OK ? status : fail_look(l, status, error);
}

doppel_status dp_redis_prefetch_documents(dp_redis_look *l, const uint64_t *numbers, size_t count,
                                          doppel_error *error) {
    size_t first = l->document_count;
    for (size_t i = 0; i < count; i++) {
        dp_redis_document *document = numbers[i] ? dp_redis_add_document(l, numbers[i]) : NULL;
        if (numbers[i] && !document)
            return fail_look(l, dp_no_memory(error), error);
        if (document && l->absent)
            document->fetched = true;
    }
    return l->document_count > first && !l->absent ? fetch_from(l, first, error) : DOPPEL_OK;
}

doppel_status dp_redis_fetch_documents(dp_redis_look *l, const uint64_t *numbers, size_t count, doppel_error *error) {
    DP_TRY(dp_redis_prefetch_documents(l, numbers, count, error));
    for (size_t i = 0; i < count; i++) {
        const dp_redis_document *document = dp_redis_known_document(l, numbers[i]);
        if (document && document->damaged)
            DP_TRY(dp_look_nonsense(l->look, "document", numbers[i], "is not what doppel wrote", error));
    }
    return DOPPEL_OK;
}

doppel_status dp_redis_find_document(dp_redis_look *l, uint64_t number, dp_redis_document **document,
                                     doppel_error *error) {
    *document = NULL;
    DP_TRY(dp_redis_fetch_documents(l, &number, 1, error));
    *document = dp_redis_known_document(l, number);
    return DOPPEL_OK;
}

/* ---- entries ---- */

static uint64_t number_at(doppel_slice value, size_t at) {
    return dp_bytes_load(value.data + at, DP_REDIS_NUMBER);
}

static bool add_number(dp_numbers *numbers, uint64_t number) {
    if (!number)
        return true;
    if (!dp_reserve(&numbers->number, &numbers->room, numbers->count + 1, sizeof *numbers->number))
        return false;
    numbers->number[numbers->count++] = number;
    return true;
}

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The numbers of some places, each once, ascending. */
static bool collect(dp_redis_look *l, const dp_redis_places *places, dp_numbers *numbers) {
    for (size_t i = 0; i < places->count; i++) {
        const dp_redis_place *place = dp_redis_find_place(l, places->place[i]);
        size_t size = dp_redis_entry_size(&l->memory.plan, dp_redis_class_of(places->place[i]));
        for (size_t at = 0; place && at < place->value.length; at += size)
            if (!add_number(numbers, number_at(place->value, at)))
                return false;
    }
    return true;
}

/* ---- names and bands ---- */

typedef struct asked_name {
    char kind;
    doppel_slice name;
} asked_name;

static void add_named(dp_redis_look *l, const void *what) {
    const asked_name *n = what;
    dp_redis_add_place(&l->asked, dp_redis_name_place(&l->memory, n->kind, n->name));
}

/* Records whether an entry in l->asked leads to a document gone before it expired: it was removed after the place was
 * read. */
static void note_missed(dp_redis_look *l) {
    for (size_t i = 0; i < l->asked.count && l->look->purpose == DP_LOOK_READ; i++) {
        const dp_redis_place *place = dp_redis_find_place(l, l->asked.place[i]);
        size_t size = dp_redis_entry_size(&l->memory.plan, dp_redis_class_of(l->asked.place[i]));
        for (size_t at = 0; place && at < place->value.length; at += size) {
            const dp_redis_document *document = dp_redis_known_document(l, number_at(place->value, at));
            uint64_t hours = dp_bytes_load(place->value.data + at + DP_REDIS_NUMBER, 3);
            if (document && document->fetched && !document->there && hours > l->look->now / 3600 + 1)
                l->missed = true;
        }
    }
}

/* The numbers in l->asked, with their documents. */
static doppel_status give_numbers(dp_redis_look *l, dp_numbers *numbers, doppel_error *error) {
    if (!collect(l, &l->asked, numbers) || dp_numbers_arrange(numbers) != DOPPEL_OK)
        return dp_no_memory(error);
    DP_TRY(dp_redis_fetch_documents(l, numbers->number, numbers->count, error));
    note_missed(l);
    return DOPPEL_OK;
}

static doppel_status find_name(dp_look *look, dp_key key, doppel_slice name, dp_numbers *numbers, doppel_error *error) {
    static const char kinds[] = {[DP_KEY_ID] = 'i', [DP_KEY_URL] = 'u', [DP_KEY_DIGEST] = 'g'};
    const asked_name asked = {kinds[key], name};
    numbers->count = 0;
    DP_TRY(fetch_asked(look->own, add_named, &asked, error));
    return give_numbers(look->own, numbers, error);
}

static void add_query_bands(dp_redis_look *l, const void *what) {
    const dp_query *query = what;
    dp_redis_add_bands(&l->memory, query->keys, query->key_count, &l->asked);
}

static doppel_status find_bands(dp_look *look, const dp_query *query, dp_numbers *numbers, doppel_error *error) {
    numbers->count = 0;
    DP_TRY(fetch_asked(look->own, add_query_bands, query, error));
    return give_numbers(look->own, numbers, error);
}

/* ---- fingerprints ---- */

static void add_near_fingerprint(dp_redis_look *l, const void *what) {
    dp_redis_add_fingerprint(&l->memory, what, true, &l->asked);
}

static int distance_at(const dp_redis_look *l, doppel_slice value, size_t at, dp_bits ordered) {
    dp_bits bits = 0;
    size_t bytes = dp_redis_entry_size(&l->memory.plan, DP_REDIS_FINGERPRINTS) - DP_REDIS_ENTRY;
    for (size_t i = 0; i < bytes; i++)
        bits = bits << 8 | (uint8_t)value.data[at + DP_REDIS_ENTRY + i];
    return dp_bits_count(bits ^ ordered);
}

static bool add_match(doppel_matches *matches, uint64_t number, int distance) {
    for (size_t i = 0; i < matches->count; i++)
        if (matches->match[i].owner == number)
            return true;
    if (!dp_reserve(&matches->match, &matches->capacity, matches->count + 1, sizeof *matches->match))
        return false;
    matches->match[matches->count++] = (doppel_match){.owner = number, .distance = distance};
    return true;
}

static int compare_matches(const void *a, const void *b) {
    const doppel_match *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance - y->distance;
    return x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* Matches in the places of l->asked. */
static bool match_places(dp_redis_look *l, const uint64_t fingerprint[2], int distance, doppel_matches *matches) {
    dp_bits ordered = dp_redis_order(&l->memory, fingerprint);
    size_t size = dp_redis_entry_size(&l->memory.plan, DP_REDIS_FINGERPRINTS);
    for (size_t i = 0; i < l->asked.count; i++) {
        const dp_redis_place *place = dp_redis_find_place(l, l->asked.place[i]);
        for (size_t at = 0; place && at < place->value.length; at += size) {
            int found = distance_at(l, place->value, at, ordered);
            matches->candidates++;
            if (found <= distance && !add_match(matches, number_at(place->value, at), found))
                return false;
        }
    }
    return true;
}

/* A walk that compares every document. */
typedef struct near_scan {
    const uint64_t *fingerprint;
    int distance;
    doppel_matches *matches;
} near_scan;

static doppel_status compare_trace(uint64_t number, doppel_slice bytes, void *user) {
    const near_scan *c = user;
    dp_trace trace;
    if (!dp_trace_decode(bytes, &trace) || trace.kind != DP_TRACE_DOCUMENT || !trace.content)
        return DOPPEL_OK;
    int distance = doppel_distance128(trace.fingerprint, c->fingerprint);
    c->matches->candidates++;
    return distance > c->distance || add_match(c->matches, number, distance) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static bool note_fingerprint(dp_redis_look *l, const uint64_t fingerprint[2]) {
    if (!dp_reserve(&l->fingerprint, &l->fingerprint_room, l->fingerprint_count + 1, sizeof *l->fingerprint))
        return false;
    memcpy(l->fingerprint[l->fingerprint_count++], fingerprint, sizeof *l->fingerprint);
    return true;
}

static doppel_status find_near(dp_look *look, const uint64_t fingerprint[2], int distance, doppel_matches *matches,
                               doppel_error *error) {
    dp_redis_look *l = look->own;
    const dp_rules *rules = &l->memory.plan.rules;
    doppel_status status;
    matches->count = 0;
    matches->candidates = 0;
    if (rules->by_similarity || distance > rules->distance) {
        near_scan c = {fingerprint, distance, matches};
        const dp_each each = {.part = DP_PART_TRACE, .from = 1, .to = UINT64_MAX, .value = compare_trace, .user = &c};
        status = dp_redis_each(look, &each, error);
        if (status == DOPPEL_ERROR_MEMORY)
            return dp_no_memory(error);
    } else {
        status = fetch_asked(l, add_near_fingerprint, fingerprint, error);
        if (status == DOPPEL_OK &&
            (!note_fingerprint(l, fingerprint) || !match_places(l, fingerprint, distance, matches)))
            return dp_no_memory(error);
    }
    if (status == DOPPEL_OK && matches->count > 1)
        qsort(matches->match, matches->count, sizeof *matches->match, compare_matches);
    l->wanted.count = 0;
    for (size_t i = 0; i < matches->count && status == DOPPEL_OK; i++)
        if (!add_number(&l->wanted, matches->match[i].owner))
            return dp_no_memory(error);
    DP_THEN(status, dp_redis_fetch_documents(l, l->wanted.number, l->wanted.count, error));
    if (status == DOPPEL_OK && !rules->by_similarity && distance <= rules->distance)
        note_missed(l);
    return status;
}

/* ---- titles ---- */

static void add_title(dp_redis_look *l, const void *what) {
    const doppel_slice *title = what;
    dp_redis_add_place(&l->asked, dp_redis_name_place(&l->memory, 't', *title));
    dp_redis_add_segments(&l->memory, *title, true, &l->asked);
}

/* The places of titles that may be similar, by the segments in l->asked; the own one is the first of these. */
static bool collect_titles(dp_redis_look *l, doppel_slice title, dp_redis_places *titles) {
    dp_redis_title own;
    double least = l->memory.plan.rules.title_similarity;
    if (!dp_redis_read_title(title, &own))
        return false;
    dp_redis_add_place(titles, dp_redis_name_place(&l->memory, 't', title));
    size_t first = titles->count;
    for (size_t i = 0; i < l->asked.count; i++) {
        const dp_redis_place *place = dp_redis_find_place(l, l->asked.place[i]);
        if (!place || dp_redis_class_of(place->hash) != DP_REDIS_SEGMENTS)
            continue;
        for (size_t at = 0; at < place->value.length; at += DP_REDIS_SEGMENT) {
            const char *entry = place->value.data + at;
            const dp_redis_title other = {dp_bytes_load(entry + 11, 2), dp_bytes_load(entry + 13, 8)};
            if (dp_redis_title_near(&own, &other, least))
                dp_redis_add_place(titles, dp_bytes_load(entry, 8));
        }
    }
    if (titles->failed)
        return false;
    if (titles->count > first + 1) {
        qsort(titles->place + first, titles->count - first, sizeof *titles->place, compare_numbers);
        titles->count = first + dp_unique64(titles->place + first, titles->count - first);
    }
    return true;
}

/* Fetches the owners of titles ahead; l->asked has the places of the titles then, and l->wanted the owners. */
static doppel_status prefetch_owners(dp_redis_look *l, const dp_redis_places *titles, doppel_error *error) {
    bool changed;
    l->asked.count = 0;
    for (size_t i = 0; i < titles->count; i++)
        dp_redis_add_place(&l->asked, titles->place[i]);
    DP_TRY(dp_redis_fetch_places(l, &changed, error));
    l->wanted.count = 0;
    if (!collect(l, &l->asked, &l->wanted) || dp_numbers_arrange(&l->wanted) != DOPPEL_OK)
        return dp_no_memory(error);
    return dp_redis_prefetch_documents(l, l->wanted.number, l->wanted.count, error);
}

static doppel_status fetch_owners(dp_redis_look *l, const dp_redis_places *titles, doppel_error *error) {
    DP_TRY(prefetch_owners(l, titles, error));
    return dp_redis_fetch_documents(l, l->wanted.number, l->wanted.count, error);
}

static bool is_alive(const dp_redis_look *l, const dp_redis_document *document) {
    return (document->there || document->queued) && !document->removed &&
           (!document->trace.expires || document->trace.expires > l->look->now);
}

static doppel_status fetch_counts(dp_redis_look *l, dp_redis_document *document, doppel_error *error) {
    static const char *const fields[4] = {"1", "2", "3", "t"};
    dp_redis_batch batch = dp_redis_look_batch(l);
    bool changed = false;
    dp_redis_command_begin(&batch, "HMGET");
    dp_redis_put_key(&batch, 'c', document->number, DP_REDIS_NUMBER);
    for (int i = 0; i < 4; i++)
        dp_redis_put_text(&batch, fields[i]);
    doppel_status status = dp_redis_look_send(l, &batch, &changed, error);
    const redisReply *reply = status == DOPPEL_OK && !changed ? batch.reply[batch.first] : NULL;
    if (reply && (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4))
        status = dp_redis_fail(l->redis, reply, error);
    for (size_t i = 0; i < 4 && reply && status == DOPPEL_OK; i++) {
        uint64_t value = dp_redis_is_string(reply->element[i]) ? strtoull(reply->element[i]->str, NULL, 10) : 0;
        *(i < 3 ? &document->counts.by[i] : &document->counts.last) = value;
    }
    document->counted = status == DOPPEL_OK;
    dp_redis_batch_free(&batch);
    return status;
}

static doppel_status fetch_totals(dp_redis_look *l, doppel_error *error) {
    dp_redis_batch batch = dp_redis_look_batch(l);
    bool changed = false;
    dp_redis_command_begin(&batch, "HGETALL");
    dp_redis_put_key(&batch, 'm', 0, 0);
    doppel_status status = dp_redis_look_send(l, &batch, &changed, error);
    if (status == DOPPEL_OK && !changed && batch.reply[batch.first]->type != REDIS_REPLY_ARRAY)
        status = dp_redis_fail(l->redis, batch.reply[batch.first], error);
    l->totals = (dp_redis_totals){0};
    if (status == DOPPEL_OK && !changed)
        dp_redis_read_totals(batch.reply[batch.first], l->look->now, &l->totals);
    l->has_totals = status == DOPPEL_OK;
    dp_redis_batch_free(&batch);
    return status;
}

/* Documents and duplicates by their title that are queued. */
static uint64_t queued_documents(const dp_redis_look *l) {
    uint64_t count = 0;
    for (size_t i = 0; i < l->pending_count; i++) {
        const dp_pending *p = &l->pending[i].pending;
        count += (p->added && p->trace.kind == DP_TRACE_DOCUMENT) || p->change.count_reason == DOPPEL_REASON_TITLE;
    }
    return count;
}

/* A title whose owners are being looked at. */
typedef struct titled {
    dp_redis_look *l;
    const dp_title_query *query;
    dp_title_hits *hits;
    doppel_error *error;
} titled;

static bool is_same(doppel_slice a, doppel_slice b) {
    return a.length == b.length && !memcmp(a.data, b.data, a.length);
}

/* The document of an entry, if it has a title; NULL: it has none, or is gone. Other names may share the place. */
static dp_redis_document *titled_at(dp_redis_look *l, doppel_slice value, size_t at) {
    dp_redis_document *document = dp_redis_known_document(l, number_at(value, at));
    bool has = document && (document->there || document->queued) && document->trace.kind == DP_TRACE_DOCUMENT;
    return has && document->trace.title.length ? document : NULL;
}

/* Whether a title is too frequent: by its living owners in a place, and duplicates counted by it. */
static doppel_status is_frequent(titled *t, doppel_slice value, doppel_slice title, bool *frequent) {
    dp_redis_look *l = t->l;
    uint64_t times = 0;
    *frequent = false;
    for (size_t at = 0; at < value.length; at += DP_REDIS_ENTRY) {
        dp_redis_document *owner = titled_at(l, value, at);
        if (!owner || !is_alive(t->l, owner) || !is_same(owner->trace.title, title))
            continue;
        if (!owner->counted && owner->there)
            DP_TRY(fetch_counts(l, owner, t->error));
        times += 1 + owner->counts.by[dp_reason_counter(DOPPEL_REASON_TITLE)] + owner->queued_titles;
    }
    if (!dp_title_is_frequent(times, 0, t->query->share))
        return DOPPEL_OK;
    if (!l->has_totals)
        DP_TRY(fetch_totals(l, t->error));
    uint64_t documents =
        l->totals.documents + l->totals.counts.by[dp_reason_counter(DOPPEL_REASON_TITLE)] + queued_documents(l);
    *frequent = dp_title_is_frequent(times, documents, t->query->share);
    return DOPPEL_OK;
}

static bool owner_counts(const dp_redis_look *l, const dp_redis_document *owner) {
    return owner->number < l->look->below && owner->number != l->look->except[0] &&
           owner->number != l->look->except[1] && is_alive(l, owner);
}

/* Adds the owners of one title in a place. DOPPEL_ERROR_INTERRUPTED: it is the own one, and too frequent: nothing like
 * it counts. */
static doppel_status add_owners_of(titled *t, doppel_slice value, doppel_slice title) {
    dp_redis_look *l = t->l;
    double similarity = 1, least = l->memory.plan.rules.title_similarity;
    bool frequent, own = is_same(title, t->query->title);
    t->hits->candidates++;
    if (!own && doppel_edit_similarity(t->query->title, title, least, &similarity) != DOPPEL_OK)
        return dp_no_memory(t->error);
    if (!(similarity >= least))
        return DOPPEL_OK;
    DP_TRY(is_frequent(t, value, title, &frequent));
    if (frequent)
        return own ? DOPPEL_ERROR_INTERRUPTED : DOPPEL_OK;
    for (size_t at = 0; at < value.length; at += DP_REDIS_ENTRY) {
        const dp_redis_document *owner = titled_at(l, value, at);
        if (!owner || !is_same(owner->trace.title, title) || !owner_counts(t->l, owner))
            continue;
        if (!dp_reserve(&t->hits->hit, &t->hits->room, t->hits->count + 1, sizeof *t->hits->hit))
            return dp_no_memory(t->error);
        t->hits->hit[t->hits->count++] = (dp_title_hit){owner->number, similarity};
    }
    return DOPPEL_OK;
}

/* Whether an entry before this one has the same title. */
static bool had_title(dp_redis_look *l, doppel_slice value, size_t end, doppel_slice title) {
    for (size_t at = 0; at < end; at += DP_REDIS_ENTRY) {
        const dp_redis_document *owner = titled_at(l, value, at);
        if (owner && is_same(owner->trace.title, title))
            return true;
    }
    return false;
}

/* Adds the owners of each title in a place: it has one, unless others share it by chance. */
static doppel_status add_owners(titled *t, uint64_t hash) {
    dp_redis_look *l = t->l;
    const dp_redis_place *place = dp_redis_find_place(l, hash);
    doppel_slice value = place ? place->value : (doppel_slice){NULL, 0};
    for (size_t at = 0; at < value.length; at += DP_REDIS_ENTRY) {
        const dp_redis_document *owner = titled_at(l, value, at);
        if (owner && !had_title(l, value, at, owner->trace.title))
            DP_TRY(add_owners_of(t, value, owner->trace.title));
    }
    return DOPPEL_OK;
}

static int compare_hits(const void *left, const void *right) {
    const dp_title_hit *a = left, *b = right;
    if (a->similarity != b->similarity)
        return a->similarity > b->similarity ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static doppel_status find_titles(dp_look *look, const dp_title_query *query, dp_title_hits *hits, doppel_error *error) {
    dp_redis_look *l = look->own;
    titled t = {l, query, hits, error};
    dp_redis_places titles = {0};
    hits->count = 0;
    hits->candidates = 0;
    if (!l->memory.plan.rules.titles || !query->title.length)
        return DOPPEL_OK;
    doppel_status status = fetch_asked(l, add_title, &query->title, error);
    if (status == DOPPEL_OK && !collect_titles(l, query->title, &titles))
        status = dp_no_memory(error);
    DP_THEN(status, fetch_owners(l, &titles, error));
    for (size_t i = 0; i < titles.count && status == DOPPEL_OK; i++)
        if (!i || titles.place[i] != titles.place[0])
            status = add_owners(&t, titles.place[i]);
    free(titles.place);
    if (status == DOPPEL_ERROR_INTERRUPTED) {
        hits->count = 0;
        return DOPPEL_OK;
    }
    if (status == DOPPEL_OK && hits->count > 1)
        qsort(hits->hit, hits->count, sizeof *hits->hit, compare_hits);
    if (query->best && hits->count > 1)
        hits->count = 1;
    return status;
}

/* ---- what many queries will ask for ---- */

static void add_query(dp_redis_look *l, const dp_query *q) {
    const dp_rules *rules = &l->memory.plan.rules;
    if (q->id.length)
        add_named(l, &(asked_name){'i', q->id});
    if (q->canonical.length)
        add_named(l, &(asked_name){'u', q->canonical});
    if (q->has_digest)
        add_named(l, &(asked_name){'g', {(const char *)q->digest, sizeof q->digest}});
    if (q->restore && q->restore->original_id.length)
        add_named(l, &(asked_name){'i', q->restore->original_id});
    if (q->content && rules->by_similarity)
        dp_redis_add_bands(&l->memory, q->keys, q->key_count, &l->asked);
    else if (q->content)
        dp_redis_add_fingerprint(&l->memory, q->fingerprint, true, &l->asked);
    if (rules->titles && q->title_key.length)
        add_title(l, &q->title_key);
}

typedef struct queries {
    const dp_query *const *query;
    size_t count;
} queries;

static void add_queries(dp_redis_look *l, const void *what) {
    const queries *q = what;
    for (size_t i = 0; i < q->count; i++)
        add_query(l, q->query[i]);
}

/* The numbers that the places of the queries lead to: of fingerprints and titles only those that are near. */
static bool collect_wanted(dp_redis_look *l, const queries *q, dp_redis_places *titles) {
    dp_redis_places numbers = {0};
    doppel_matches matches = {0};
    bool there = true;
    const dp_rules *rules = &l->memory.plan.rules;
    for (size_t i = 0; i < l->asked.count; i++)
        if (dp_redis_class_of(l->asked.place[i]) == DP_REDIS_NUMBERS)
            dp_redis_add_place(&numbers, l->asked.place[i]);
    there = !numbers.failed && collect(l, &numbers, &l->wanted);
    free(numbers.place);
    for (size_t i = 0; i < q->count && there; i++) {
        const dp_query *query = q->query[i];
        l->asked.count = 0;
        if (query->content && !rules->by_similarity) {
            dp_redis_add_fingerprint(&l->memory, query->fingerprint, true, &l->asked);
            matches.count = 0;
            there = !l->asked.failed && match_places(l, query->fingerprint, rules->distance, &matches);
            for (size_t k = 0; k < matches.count && there; k++)
                there = add_number(&l->wanted, matches.match[k].owner);
        }
        if (there && rules->titles && query->title_key.length) {
            l->asked.count = 0;
            add_title(l, &query->title_key);
            there = !l->asked.failed && collect_titles(l, query->title_key, titles);
        }
    }
    free(matches.match);
    return there;
}

/* The documents, and the originals of copies among them. */
static doppel_status fetch_wanted(dp_redis_look *l, doppel_error *error) {
    if (dp_numbers_arrange(&l->wanted) != DOPPEL_OK)
        return dp_no_memory(error);
    DP_TRY(dp_redis_prefetch_documents(l, l->wanted.number, l->wanted.count, error));
    l->wanted.count = 0;
    for (size_t i = 0; i < l->document_count; i++)
        if (l->document[i].there && l->document[i].trace.kind != DP_TRACE_DOCUMENT &&
            !add_number(&l->wanted, l->document[i].trace.of))
            return dp_no_memory(error);
    return dp_redis_prefetch_documents(l, l->wanted.number, l->wanted.count, error);
}

doppel_status dp_redis_fetch_queries(dp_redis_look *l, doppel_error *error) {
    const queries q = {l->query, l->query_count};
    dp_redis_places titles = {0};
    doppel_status status = fetch_asked(l, add_queries, &q, error);
    l->wanted.count = 0;
    if (status == DOPPEL_OK && !collect_wanted(l, &q, &titles))
        status = dp_no_memory(error);
    DP_THEN(status, fetch_wanted(l, error));
    if (status == DOPPEL_OK && titles.count)
        status = prefetch_owners(l, &titles, error);
    free(titles.place);
    return status;
}

static doppel_status fetch(dp_look *look, const dp_query *const *query, size_t count, size_t *ready,
                           doppel_error *error) {
    dp_redis_look *l = look->own;
    bool adds = look->purpose == DP_LOOK_ADD;
    size_t chunk = adds ? atomic_load(&l->redis->chunk) : DP_REDIS_MOST_QUERIES;
    l->query = query;
    l->query_count = *ready = count < chunk ? count : chunk;
    if (adds) {
        dp_redis_look_reset(l);
        l->renewed = false;
        l->failed = DOPPEL_OK;
        l->rounds = 0;
    }
    return dp_redis_fetch_queries(l, error);
}

/* ---- reading ---- */

static doppel_status alive(dp_look *look, uint64_t number, bool *is, doppel_error *error) {
    dp_redis_document *document = NULL;
    *is = false;
    if (!number)
        return DOPPEL_OK;
    DP_TRY(dp_redis_find_document(look->own, number, &document, error));
    if (!document || !is_alive(look->own, document))
        return DOPPEL_OK;
    *is = document->trace.kind == DP_TRACE_DOCUMENT;
    return *is ? DOPPEL_OK : alive(look, document->trace.of, is, error);
}

static uint64_t hash(const dp_look *look, doppel_slice name) {
    (void)look;
    return dp_name_hash(&(dp_names){0}, name);
}

static doppel_status fetch_string(dp_redis_look *l, char letter, uint64_t number, doppel_slice *bytes,
                                  doppel_error *error) {
    dp_redis_batch batch = dp_redis_look_batch(l);
    bool changed = false;
    *bytes = (doppel_slice){NULL, 0};
    dp_redis_command_begin(&batch, "GET");
    dp_redis_put_key(&batch, letter, number, DP_REDIS_NUMBER);
    doppel_status status = dp_redis_look_send(l, &batch, &changed, error);
    if (status == DOPPEL_OK && !changed && dp_redis_is_string(batch.reply[batch.first])) {
        *bytes = dp_arena_copy(&l->arena, batch.reply[batch.first]->str, batch.reply[batch.first]->len);
        status = bytes->data ? DOPPEL_OK : dp_no_memory(error);
    } else if (status == DOPPEL_OK && !changed && batch.reply[batch.first]->type != REDIS_REPLY_NIL) {
        status = dp_redis_fail(l->redis, batch.reply[batch.first], error);
    }
    dp_redis_batch_free(&batch);
    return status;
}

static doppel_status read_part(dp_look *look, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error) {
    dp_redis_document *document = NULL;
    *bytes = (doppel_slice){NULL, 0};
    DP_TRY(dp_redis_find_document(look->own, number, &document, error));
    if (!document || (!document->there && !document->queued))
        return DOPPEL_OK;
    if (part == DP_PART_TEXT && !document->queued)
        return fetch_string(look->own, 't', number, bytes, error);
    *bytes = document->part[part];
    return DOPPEL_OK;
}

static doppel_status counts(dp_look *look, uint64_t number, dp_counts *to, doppel_error *error) {
    dp_redis_document *document = NULL;
    *to = (dp_counts){0};
    DP_TRY(dp_redis_find_document(look->own, number, &document, error));
    if (document && document->there && !document->counted)
        DP_TRY(fetch_counts(look->own, document, error));
    if (document)
        *to = document->counts;
    return DOPPEL_OK;
}

doppel_status dp_redis_fetch_links(dp_redis_look *l, uint64_t number, dp_numbers *numbers, size_t *listed,
                                   doppel_error *error) {
    doppel_slice bytes;
    numbers->count = 0;
    DP_TRY(fetch_string(l, 'a', number, &bytes, error));
    for (size_t at = 0; at + DP_REDIS_NUMBER <= bytes.length; at += DP_REDIS_NUMBER)
        if (!add_number(numbers, number_at(bytes, at)))
            return dp_no_memory(error);
    *listed = bytes.length;
    if (dp_numbers_arrange(numbers) != DOPPEL_OK)
        return dp_no_memory(error);
    return dp_redis_fetch_documents(l, numbers->number, numbers->count, error);
}

static doppel_status links(dp_look *look, uint64_t number, uint64_t *to, size_t room, size_t *found,
                           doppel_error *error) {
    dp_redis_look *l = look->own;
    size_t listed;
    *found = 0;
    DP_TRY(dp_redis_fetch_links(l, number, &l->wanted, &listed, error));
    for (size_t i = 0; i < l->wanted.count; i++) {
        const dp_redis_document *copy = dp_redis_known_document(l, l->wanted.number[i]);
        if (!copy || !copy->there || copy->trace.kind != DP_TRACE_COPY)
            continue;
        if (*found < room)
            to[*found] = copy->number;
        ++*found;
    }
    return DOPPEL_OK;
}

static doppel_status backup(dp_known *known, const char *path, doppel_error *error) {
    (void)known, (void)path;
    return dp_fail(error, DOPPEL_ERROR_USAGE,
                   "backup copies an index folder: a shared store is backed up by Redis's own persistence (appendonly, "
                   "SAVE), and `doppel export` copies what is in it");
}

static void stop_waiting(dp_known *known) {
    dp_redis_pool_stop(((dp_redis *)known)->pool);
}

/* What was acknowledged is with the servers, and goes by itself when it expires. */
static doppel_status flush(dp_known *known, doppel_error *error) {
    (void)known, (void)error;
    return DOPPEL_OK;
}

static doppel_status expire(dp_known *known, uint64_t *expired, doppel_error *error) {
    *expired = 0;
    return flush(known, error);
}

const dp_known_kind dp_known_redis = {
    .name = "redis",
    .shared = true,
    .fetches = DP_REDIS_MOST_QUERIES,
    .takes = dp_known_is_redis_url,
    .open = dp_redis_open,
    .close = dp_redis_close,
    .prepare = dp_redis_prepare_servers,
    .inspect = dp_redis_inspect,
    .look_create = look_create,
    .look_free = look_free,
    .begin = begin,
    .end = end,
    .again = again,
    .fetch = fetch,
    .find_name = find_name,
    .find_bands = find_bands,
    .find_near = find_near,
    .find_titles = find_titles,
    .alive = alive,
    .hash = hash,
    .read = read_part,
    .counts = counts,
    .links = links,
    .each = dp_redis_each,
    .each_count = dp_redis_each_count,
    .number = dp_redis_number,
    .queue = dp_redis_queue,
    .mark = dp_redis_mark,
    .back = dp_redis_back,
    .commit = dp_redis_commit,
    .flush = flush,
    .expire = expire,
    .compact = dp_redis_compact,
    .backup = backup,
    .get_stats = dp_redis_get_stats,
    .stop_waiting = stop_waiting,
};
