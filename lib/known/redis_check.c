/* redis_check.c - all of a memory in Redis: each document, a check of everything, its smallest form.
 *
 * Documents are walked by number, from 1 to the last that was given; documents added after the walk began are not part
 * of
 * it. */
#include "known/redis.h"

#include <stdio.h>
#include <stdlib.h>

/* Numbers, and buckets, requested at once; a walk drops what it has fetched beyond KEPT_BYTES, or KEPT_DOCUMENTS
 * numbers. */
enum { NUMBERS_EACH = 256, BUCKETS_EACH = 512, KEPT_BYTES = 16 << 20, KEPT_DOCUMENTS = 1 << 15 };

/* ---- each document ---- */

static doppel_status read_last(dp_redis_look *l, uint64_t *last, doppel_error *error) {
    dp_redis_batch batch = dp_redis_look_batch(l);
    bool changed = false;
    *last = 0;
    dp_redis_command_begin(&batch, "HGET");
    dp_redis_put_key(&batch, 'm', 0, 0);
    dp_redis_put_text(&batch, "n");
    doppel_status status = dp_redis_look_send(l, &batch, &changed, error);
    if (status == DOPPEL_OK && !changed) {
        const redisReply *reply = batch.reply[batch.first];
        if (reply->type == REDIS_REPLY_STRING)
            *last = strtoull(reply->str, NULL, 10);
        else if (reply->type != REDIS_REPLY_NIL)
            status = dp_redis_fail(l->redis, reply, error);
    }
    dp_redis_batch_free(&batch);
    return status;
}

/* The documents of the numbers from *from on, up to `to`. */
static doppel_status fetch_numbers(dp_redis_look *l, uint64_t from, uint64_t to, doppel_error *error) {
    uint64_t numbers[NUMBERS_EACH];
    size_t count = 0;
    if ((l->arena_bytes > KEPT_BYTES || l->document_count > KEPT_DOCUMENTS) && !l->pending_count)
        dp_redis_look_reset(l);
    for (uint64_t number = from; number <= to; number++)
        numbers[count++] = number;
    return dp_redis_prefetch_documents(l, numbers, count, error);
}

static doppel_status give(dp_redis_look *l, const dp_each *each, uint64_t number, doppel_error *error) {
    const dp_redis_document *document = dp_redis_known_document(l, number);
    if (document && document->damaged && each->damaged)
        each->damaged(number, each->user);
    if (!document || !document->there || (document->trace.expires && document->trace.expires <= l->look->now))
        return DOPPEL_OK;
    doppel_slice bytes = document->part[each->part];
    if (each->part == DP_PART_TEXT) {
        DP_TRY(l->look->kind->read(l->look, DP_PART_TEXT, number, &bytes, error));
    }
    return bytes.data ? each->value(number, bytes, each->user) : DOPPEL_OK;
}

doppel_status dp_redis_each(dp_look *look, const dp_each *each, doppel_error *error) {
    uint64_t last = 0;
    DP_TRY(read_last(look->own, &last, error));
    last = each->to < last ? each->to : last;
    for (uint64_t from = each->from ? each->from : 1; from <= last; from += NUMBERS_EACH) {
        uint64_t to = last - from < NUMBERS_EACH ? last : from + NUMBERS_EACH - 1;
        DP_TRY(fetch_numbers(look->own, from, to, error));
        for (uint64_t number = from; number <= to; number++)
            DP_TRY(give(look->own, each, number, error));
    }
    return DOPPEL_OK;
}

typedef struct counting {
    dp_look *look;
    doppel_status (*counted)(uint64_t number, const dp_counts *counts, void *user);
    void *user;
    doppel_error *error;
} counting;

static doppel_status on_trace(uint64_t number, doppel_slice bytes, void *user) {
    counting *c = user;
    dp_counts counts;
    dp_trace trace;
    if (!dp_trace_decode(bytes, &trace) || trace.kind != DP_TRACE_DOCUMENT)
        return DOPPEL_OK;
    DP_TRY(c->look->kind->counts(c->look, number, &counts, c->error));
    return counts.by[0] + counts.by[1] + counts.by[2] ? c->counted(number, &counts, c->user) : DOPPEL_OK;
}

doppel_status dp_redis_each_count(dp_look *look,
                                  doppel_status (*counted)(uint64_t number, const dp_counts *counts, void *user),
                                  void *user, doppel_error *error) {
    counting c = {look, counted, user, error};
    const dp_each each = {.part = DP_PART_TRACE, .from = 1, .to = UINT64_MAX, .value = on_trace, .user = &c};
    return dp_redis_each(look, &each, error);
}

/* ---- each bucket ---- */

/* A walk over the buckets of a memory. */
typedef struct bucket_walk {
    dp_redis *redis;
    dp_redis_link *link;
    char cursor[32];
    redisReply *keys; /* of this step */
    bool ended;
} bucket_walk;

static doppel_status next_buckets(bucket_walk *w, doppel_error *error) {
    dp_redis_batch batch = dp_redis_batch_of(w->redis);
    char pattern[256];
    size_t length = 0;
    for (size_t i = 0; i < w->redis->prefix_length; i++) {
        if (strchr("*?[]\\^-", w->redis->prefix[i]))
            pattern[length++] = '\\';
        pattern[length++] = w->redis->prefix[i];
    }
    memcpy(pattern + length, "[bfs]*", 6);
    dp_redis_command_begin(&batch, "SCAN");
    dp_redis_put_text(&batch, w->cursor);
    dp_redis_put_text(&batch, "MATCH");
    dp_redis_put(&batch, pattern, length + 6);
    dp_redis_put_text(&batch, "COUNT");
    dp_redis_put_number(&batch, BUCKETS_EACH);
    doppel_status status = dp_redis_call(w->link, &batch, false, error);
    if (status == DOPPEL_OK) {
        redisReply *reply = batch.reply[0];
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING &&
            reply->element[0]->len < sizeof w->cursor && reply->element[1]->type == REDIS_REPLY_ARRAY) {
            memcpy(w->cursor, reply->element[0]->str, reply->element[0]->len + 1);
            w->ended = !strcmp(w->cursor, "0");
            w->keys = reply;
            batch.reply[0] = NULL;
        } else {
            status = dp_redis_fail(w->redis, reply, error);
        }
    }
    dp_redis_batch_free(&batch);
    return status;
}

static doppel_status each_buckets(dp_redis *redis,
                                  doppel_status (*step)(bucket_walk *w, const redisReply *keys, void *user,
                                                        doppel_error *error),
                                  void *user, doppel_error *error) {
    bucket_walk w = {.redis = redis, .cursor = "0"};
    if (!(w.link = dp_redis_take(redis->pool, error)))
        return error && error->code != DOPPEL_OK ? error->code : DOPPEL_ERROR_MEMORY;
    doppel_status status = DOPPEL_OK;
    while (!w.ended && status == DOPPEL_OK) {
        status = next_buckets(&w, error);
        if (status == DOPPEL_OK && w.keys->element[1]->elements)
            status = step(&w, w.keys->element[1], user, error);
        if (w.keys)
            freeReplyObject(w.keys);
        w.keys = NULL;
    }
    dp_redis_give(redis->pool, w.link);
    return status;
}

/* ---- the smallest form ---- */

/* What is swept, and by which time. */
typedef struct sweeping {
    dp_redis_memory memory;
    uint64_t now;
} sweeping;

static doppel_status sweep_buckets(bucket_walk *w, const redisReply *keys, void *user, doppel_error *error) {
    const sweeping *s = user;
    dp_redis_batch batch = dp_redis_batch_of(w->redis);
    uint8_t stamp[16];
    memcpy(stamp, dp_redis_link_name(w->link), 8);
    dp_bytes_store(stamp + 8, dp_redis_link_next(w->link), 8);
    dp_redis_call_begin(&batch, "sweep");
    dp_redis_put(&batch, s->memory.epoch, sizeof s->memory.epoch);
    dp_redis_put_number(&batch, s->now);
    dp_redis_put_number(&batch, dp_redis_entry_size(&s->memory.plan, DP_REDIS_FINGERPRINTS) - DP_REDIS_ENTRY);
    dp_redis_put(&batch, stamp, sizeof stamp);
    for (size_t i = 0; i < keys->elements; i++)
        dp_redis_put(&batch, keys->element[i]->str, keys->element[i]->len);
    doppel_status status = dp_redis_call(w->link, &batch, true, error);
    if (status == DOPPEL_OK && batch.reply[0]->type == REDIS_REPLY_ERROR)
        status = dp_redis_fail(w->redis, batch.reply[0], error);
    dp_redis_batch_free(&batch);
    return status;
}

/* Copies and texts whose original is gone. */
typedef struct orphans {
    dp_look *look;
    dp_numbers numbers;
    doppel_error *error;
} orphans;

static doppel_status note_orphan(uint64_t number, doppel_slice bytes, void *user) {
    orphans *o = user;
    dp_trace trace;
    bool alive = true;
    if (!dp_trace_decode(bytes, &trace) || trace.kind == DP_TRACE_DOCUMENT)
        return DOPPEL_OK;
    DP_TRY(o->look->kind->alive(o->look, trace.of, &alive, o->error));
    if (alive)
        return DOPPEL_OK;
    if (!dp_reserve(&o->numbers.number, &o->numbers.room, o->numbers.count + 1, sizeof *o->numbers.number))
        return dp_no_memory(o->error);
    o->numbers.number[o->numbers.count++] = number;
    return DOPPEL_OK;
}

/* Queues the removal of some that still exist; a removed original does not come back. */
static doppel_status queue_orphans(orphans *o, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        dp_redis_document *document = NULL;
        DP_TRY(dp_redis_find_document(o->look->own, o->numbers.number[i], &document, o->error));
        if (!document || !document->there || document->removed)
            continue;
        const dp_pending removal = {.change = {.remove = document->number}, .removed = true, .trace = document->trace};
        DP_TRY(o->look->kind->queue(o->look, &removal, o->error));
    }
    return DOPPEL_OK;
}

static doppel_status remove_some(orphans *o, size_t from, size_t to) {
    bool stands = false;
    size_t ready;
    DP_TRY(dp_look_begin(o->look, DP_LOOK_ADD, o->error));
    doppel_status status = o->look->kind->fetch(o->look, NULL, 0, &ready, o->error);
    while (status == DOPPEL_OK && !stands) {
        status = queue_orphans(o, from, to);
        DP_THEN(status, o->look->kind->commit(o->look, &stands, o->error));
    }
    doppel_status ended = o->look->kind->end(o->look, status == DOPPEL_OK ? o->error : NULL);
    return status == DOPPEL_OK ? ended : status;
}

/* *now: the time of the memory. */
static doppel_status remove_orphans(dp_known *known, uint64_t *now, doppel_error *error) {
    orphans o = {.error = error};
    const dp_each each = {.part = DP_PART_TRACE, .from = 1, .to = UINT64_MAX, .value = note_orphan, .user = &o};
    DP_TRY(dp_look_create(known, &o.look, error));
    doppel_status status = dp_look_begin(o.look, DP_LOOK_LIST, error);
    if (status == DOPPEL_OK) {
        o.look->salvage = true;
        status = dp_redis_each(o.look, &each, error);
        *now = o.look->now;
        (void)o.look->kind->end(o.look, NULL);
    }
    for (size_t from = 0; from < o.numbers.count && status == DOPPEL_OK; from += DP_REDIS_MOST_QUERIES) {
        size_t to = from + DP_REDIS_MOST_QUERIES;
        status = remove_some(&o, from, to < o.numbers.count ? to : o.numbers.count);
    }
    dp_numbers_free(&o.numbers);
    dp_look_free(o.look);
    return status;
}

doppel_status dp_redis_compact(dp_known *known, doppel_error *error) {
    dp_redis *redis = (dp_redis *)known;
    sweeping s = {0};
    DP_TRY(remove_orphans(known, &s.now, error));
    s.memory = dp_redis_get_memory(redis);
    return each_buckets(redis, sweep_buckets, &s, error);
}

/* ---- a check of everything ---- */

typedef struct checking {
    dp_look *look;
    void (*finding)(const char *what, void *user);
    void *user;
    doppel_verified *verified;
    doppel_error *error;
} checking;

static void report(checking *c, const char *format, unsigned long long number) {
    char what[160];
    int length = snprintf(what, sizeof what, format, number);
    c->verified->damaged++;
    if (c->finding && length > 0)
        c->finding(what, c->user);
}

static bool has_entry(const dp_redis_look *l, const dp_redis_place *place, uint64_t number) {
    size_t size = dp_redis_entry_size(&l->memory.plan, dp_redis_class_of(place->hash));
    for (size_t at = 0; at + size <= place->value.length; at += size)
        if (dp_bytes_load(place->value.data + at, DP_REDIS_NUMBER) == number)
            return true;
    return false;
}

/* Whether a document that was not found in a place is still not in it, though it has not been removed. */
static doppel_status is_missing(checking *c, uint64_t number, uint64_t hash, bool *missing) {
    dp_redis_look *l = c->look->own;
    dp_redis_batch batch = dp_redis_batch_of(l->redis);
    dp_redis_place now = {.hash = hash};
    dp_redis_command_begin(&batch, "HGET");
    dp_redis_put_bucket(&batch, hash, &l->memory.plan);
    dp_redis_put_field(&batch, hash);
    dp_redis_command_begin(&batch, "GET");
    dp_redis_put_key(&batch, 'd', number, DP_REDIS_NUMBER);
    doppel_status status = dp_redis_call(l->link, &batch, false, c->error);
    if (status == DOPPEL_OK && dp_redis_is_string(batch.reply[0]))
        now.value = (doppel_slice){batch.reply[0]->str, batch.reply[0]->len};
    *missing = status == DOPPEL_OK && dp_redis_is_string(batch.reply[1]) && !has_entry(l, &now, number);
    dp_redis_batch_free(&batch);
    return status;
}

/* Whether a document is in all the places where it is looked up. */
static doppel_status check_document(uint64_t number, doppel_slice bytes, void *user) {
    checking *c = user;
    dp_redis_look *l = c->look->own;
    bool changed;
    (void)bytes;
    const dp_redis_document *document = dp_redis_known_document(l, number);
    ++*(document->trace.kind == DP_TRACE_DOCUMENT ? &c->verified->documents : &c->verified->copies);
    l->asked.count = 0;
    l->asked.failed = false;
    dp_redis_trace_places(&l->memory, document, &l->asked);
    DP_TRY(dp_redis_fetch_places(l, &changed, c->error));
    bool missing = false;
    for (size_t i = 0; i < l->asked.count && !missing; i++) {
        const dp_redis_place *place = dp_redis_find_place(l, l->asked.place[i]);
        if (!place || !has_entry(l, place, number))
            DP_TRY(is_missing(c, number, l->asked.place[i], &missing));
    }
    if (missing)
        report(c, "document %llu does not stand in a bucket where it is looked for", (unsigned long long)number);
    return DOPPEL_OK;
}

static void on_damaged(uint64_t number, void *user) {
    report(user, "document %llu is not what doppel wrote", (unsigned long long)number);
}

static void check_field(checking *c, dp_redis_class class, const redisReply *field, const redisReply *value) {
    const dp_redis_look *l = c->look->own;
    bool time = field->len == 1 && field->str[0] == 'x';
    size_t size = dp_redis_entry_size(&l->memory.plan, class);
    if (time ? value->len != 5 : field->len != DP_REDIS_FIELD || !value->len || value->len % size)
        report(c, "a bucket has a field of %llu bytes that is not what doppel wrote", (unsigned long long)value->len);
}

static doppel_status check_buckets(bucket_walk *w, const redisReply *keys, void *user, doppel_error *error) {
    checking *c = user;
    dp_redis_batch batch = dp_redis_batch_of(w->redis);
    for (size_t i = 0; i < keys->elements; i++) {
        dp_redis_command_begin(&batch, "HGETALL");
        dp_redis_put(&batch, keys->element[i]->str, keys->element[i]->len);
    }
    doppel_status status = dp_redis_call(w->link, &batch, false, error);
    for (size_t i = 0; i < batch.count && status == DOPPEL_OK; i++) {
        const redisReply *fields = batch.reply[i];
        char letter =
            keys->element[i]->len > w->redis->prefix_length ? keys->element[i]->str[w->redis->prefix_length] : 0;
        dp_redis_class class = letter == 'f'   ? DP_REDIS_FINGERPRINTS
                               : letter == 's' ? DP_REDIS_SEGMENTS
                                               : DP_REDIS_NUMBERS;
        if (fields->type != REDIS_REPLY_ARRAY)
            report(c, "%llu bucket is no hash", 1);
        for (size_t k = 0; fields->type == REDIS_REPLY_ARRAY && k + 1 < fields->elements; k += 2)
            check_field(c, class, fields->element[k], fields->element[k + 1]);
    }
    dp_redis_batch_free(&batch);
    return status;
}

doppel_status dp_redis_inspect(dp_known *known, void (*finding)(const char *what, void *user), void *user,
                               doppel_verified *verified, doppel_error *error) {
    dp_look *look;
    *verified = (doppel_verified){0};
    DP_TRY(dp_look_create(known, &look, error));
    checking c = {look, finding, user, verified, error};
    doppel_status status = dp_look_begin(look, DP_LOOK_LIST, error);
    if (status == DOPPEL_OK) {
        look->salvage = true;
        const dp_each each = {.part = DP_PART_TRACE,
                              .from = 1,
                              .to = UINT64_MAX,
                              .value = check_document,
                              .damaged = on_damaged,
                              .user = &c};
        status = dp_redis_each(look, &each, error);
        DP_THEN(status, each_buckets((dp_redis *)known, check_buckets, &c, error));
        (void)look->kind->end(look, NULL);
    }
    dp_look_free(look);
    if (status == DOPPEL_OK && verified->damaged)
        status = dp_fail_at(error, DOPPEL_ERROR_STORE, known->name, 0, "%llu documents or buckets are damaged",
                            (unsigned long long)verified->damaged);
    return status;
}
