/* redis_commit.c - what a call changes in a memory in Redis: queueing, undoing, committing.
 *
 * Queued changes are applied to the fetched data, so that the same call finds them. A document that is added has an
 * entry in each of its places, and a removed one has none. Places not fetched yet are fetched. Entries that lead
 * nowhere are dropped on the way. A title that has an owner has an entry in each of its segments.
 *
 * A commit is one call of a function inside Redis, which writes all of it if the stamp of the last commit is still the
 * one that was read before everything else. So decisions are based on current data. Numbers are never given twice.
 *
 * If other processes commit as well, the stamp has often changed. Then the look asks for a turn: others wait until it
 * has committed, or for at most a second. It learns which places were written since its stamp. If it has read none of
 * them, or only fingerprints far from all its queries, the decisions still hold, and it commits with the new stamp.
 * Otherwise everything is fetched and decided once more, in the same turn. So contention makes a commit slower, but it
 * is decided at most twice during its turn.
 *
 * Each commit has a request number: one that is resent, because its outcome is unknown, gets the first answer again. */
#include "known/redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Pause before asking for a turn again, microseconds. */
enum { PAUSE = 300 };
/* After this many turns without another process's commit, no more turns are taken. */
enum { ALONE_AFTER = 16 };
/* How often one commit is decided again before giving up: twice is rare. */
enum { MOST_ROUNDS = 100 };
/* How long the answer of a commit is kept for a resend, milliseconds. */
enum { ANSWERS_FOR = 120000 };
/* A bucket that expires within this many seconds may be gone before the commit: its expiry is written again. */
enum { SOON = 60 };
/* A bucket outlives its content by a 16th of its time, so that its expiry seldom has to be extended. */
enum { LONGER = 16 };
/* Instead of a class, in the list of written places: a whole bucket. */
enum { BUCKET = 3 };
/* One written bucket in this many is swept of what has expired. */
enum { SWEEP_EACH = 128 };

/* ---- taking back ---- */

static bool note_undo(dp_redis_look *l, const dp_redis_undo *undo) {
    if (!dp_reserve(&l->undo, &l->undo_room, l->undo_count + 1, sizeof *l->undo))
        return false;
    l->undo[l->undo_count++] = *undo;
    return true;
}

static bool note_document(dp_redis_look *l, const dp_redis_document *document) {
    return note_undo(l, &(dp_redis_undo){.position = (uint32_t)(document - l->document),
                                         .queued = document->queued,
                                         .removed = document->removed,
                                         .queued_titles = document->queued_titles});
}

static void undo_to(dp_redis_look *l, size_t count) {
    while (l->undo_count > count) {
        const dp_redis_undo *undo = &l->undo[--l->undo_count];
        if (undo->is_place) {
            l->place[undo->position].value = undo->value;
        } else {
            dp_redis_document *document = &l->document[undo->position];
            document->queued = undo->queued;
            document->removed = undo->removed;
            document->queued_titles = undo->queued_titles;
        }
    }
}

size_t dp_redis_mark(const dp_look *look) {
    return dp_redis_look_of(look)->pending_count;
}

void dp_redis_back(dp_look *look, size_t mark) {
    dp_redis_look *l = look->own;
    if (mark >= l->pending_count)
        return;
    undo_to(l, l->pending[mark].undo);
    l->pending_count = mark;
}

/* ---- numbers ---- */

/* Whether a function of ours met another memory than it was called for. */
static bool is_another(const redisReply *reply) {
    return reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "ANOTHER ", 8);
}

static doppel_status reserve_numbers(dp_redis_look *l, uint64_t count, doppel_error *error) {
    dp_redis_batch batch = dp_redis_batch_of(l->redis);
    dp_redis_call_begin(&batch, "reserve");
    dp_redis_put(&batch, l->memory.epoch, sizeof l->memory.epoch);
    dp_redis_put_number(&batch, count);
    doppel_status status = dp_redis_call(l->link, &batch, false, error);
    if (status == DOPPEL_OK && is_another(batch.reply[0])) {
        /* Numbers of the old memory are good enough: its commit is refused, and everything is decided again. */
        l->next = l->end ? l->end : 1;
        l->end = l->next + count;
    } else if (status == DOPPEL_OK && batch.reply[0]->type != REDIS_REPLY_INTEGER) {
        status = dp_redis_fail(l->redis, batch.reply[0], error);
    } else if (status == DOPPEL_OK) {
        l->end = (uint64_t)batch.reply[0]->integer + 1;
        l->next = l->end - count;
    }
    dp_redis_batch_free(&batch);
    return status;
}

doppel_status dp_redis_number(dp_look *look, uint64_t *number, doppel_error *error) {
    dp_redis_look *l = look->own;
    uint64_t left = l->query_count > l->pending_count ? l->query_count - l->pending_count : 1;
    if (l->next == l->end)
        DP_TRY(reserve_numbers(l, left, error));
    *number = l->next++;
    return DOPPEL_OK;
}

/* ---- places ---- */

/* The keys of a document's bands: kept with a sample, else made again from its set. False: no memory. */
static bool band_keys(const dp_redis_plan *plan, const dp_redis_document *document, uint32_t keys[DP_MOST_BANDS],
                      size_t *count) {
    const dp_trace *trace = &document->trace;
    doppel_slice set = document->part[DP_PART_SET];
    *count = trace->key_count;
    if (trace->key_count) {
        memcpy(keys, trace->keys, trace->key_count * sizeof *keys);
        return true;
    }
    if (set.length < 8)
        return true;
    uint64_t *values = malloc(set.length);
    for (size_t i = 0; values && i < set.length / 8; i++)
        values[i] = dp_load64(set.data + 8 * i);
    bool made = values && dp_bands_keys(values, set.length / 8, plan->bands, plan->rows, keys) == DOPPEL_OK;
    free(values);
    *count = made ? (size_t)plan->bands : 0;
    return made;
}

void dp_redis_trace_places(const dp_redis_memory *memory, const dp_redis_document *document, dp_redis_places *places) {
    static const uint8_t none[32];
    const dp_trace *trace = &document->trace;
    const dp_rules *rules = &memory->plan.rules;
    dp_record record = {0};
    if (dp_trace_is_kept(trace) && dp_record_decode(document->part[DP_PART_RECORD], &record))
        dp_redis_add_place(places, dp_redis_name_place(memory, 'i', record.id));
    if (trace->url_hash && record.canonical.length)
        dp_redis_add_place(places, dp_redis_name_place(memory, 'u', record.canonical));
    if ((trace->kind != DP_TRACE_COPY || trace->own_words) && memcmp(trace->digest, none, sizeof none) != 0)
        dp_redis_add_place(places, dp_redis_name_place(memory, 'g', (doppel_slice){(const char *)trace->digest, 32}));
    if (trace->kind != DP_TRACE_DOCUMENT)
        return;
    uint32_t keys[DP_MOST_BANDS];
    size_t count = 0;
    if (trace->content && rules->by_similarity)
        places->failed = places->failed || !band_keys(&memory->plan, document, keys, &count);
    else if (trace->content)
        dp_redis_add_fingerprint(memory, trace->fingerprint, false, places);
    dp_redis_add_bands(memory, keys, count, places);
    if (rules->titles && trace->title.length)
        dp_redis_add_place(places, dp_redis_name_place(memory, 't', trace->title));
}

static uint64_t hours_of(uint64_t expires) {
    uint64_t hours = expires / 3600 + 1;
    return !expires ? DP_REDIS_NEVER_HOURS : hours < DP_REDIS_NEVER_HOURS ? hours : DP_REDIS_NEVER_HOURS - 1;
}

static bool set_value(dp_redis_look *l, dp_redis_place *place, doppel_slice value) {
    if (!value.data ||
        !note_undo(l,
                   &(dp_redis_undo){.is_place = true, .position = (uint32_t)(place - l->place), .value = place->value}))
        return false;
    place->value = value;
    return true;
}

/* Whether an entry leads to a document known to be gone. */
static bool is_dead(dp_redis_look *l, const dp_redis_place *place, size_t at) {
    if (dp_redis_class_of(place->hash) == DP_REDIS_SEGMENTS)
        return false;
    const dp_redis_document *document = dp_redis_known_document(l, dp_bytes_load(place->value.data + at, 5));
    return document && document->fetched && !document->there && !document->queued;
}

/* The value without entries that lead nowhere and without that of a number or title, and with a new one (NULL:
 * none). */
static bool change_value(dp_redis_look *l, dp_redis_place *place, uint64_t without, const uint8_t *entry) {
    dp_redis_class class = dp_redis_class_of(place->hash);
    size_t size = dp_redis_entry_size(&l->memory.plan, class), length = 0;
    size_t head = class == DP_REDIS_SEGMENTS ? 8 : DP_REDIS_NUMBER;
    char *bytes = dp_arena_take(&l->arena, place->value.length + size);
    if (!bytes)
        return false;
    for (size_t at = 0; at < place->value.length; at += size) {
        bool found = dp_bytes_load(place->value.data + at, head) == without;
        place->shortened = place->shortened || found;
        if (found || is_dead(l, place, at))
            continue;
        memcpy(bytes + length, place->value.data + at, size);
        length += size;
    }
    if (entry) {
        memcpy(bytes + length, entry, size);
        length += size;
    }
    return set_value(l, place, (doppel_slice){bytes, length});
}

/* Whether a segment leads to a title until then already. */
static bool leads_to(const dp_redis_place *place, const uint8_t entry[DP_REDIS_SEGMENT]) {
    for (size_t at = 0; at < place->value.length; at += DP_REDIS_SEGMENT)
        if (!memcmp(place->value.data + at, entry, DP_REDIS_SEGMENT))
            return true;
    return false;
}

/* The segments of a title lead to it until then, or do so no longer (0). They are in l->asked, fetched. */
static bool change_segments(dp_redis_look *l, doppel_slice title, uint64_t latest) {
    uint8_t entry[DP_REDIS_SEGMENT];
    dp_redis_title read;
    uint64_t place_of_title = dp_redis_name_place(&l->memory, 't', title);
    if (!dp_redis_read_title(title, &read))
        return false;
    uint8_t *at = dp_bytes_store(entry, place_of_title, 8);
    at = dp_bytes_store(at, hours_of(latest == UINT64_MAX ? 0 : latest), 3);
    at = dp_bytes_store(at, read.length, 2);
    dp_bytes_store(at, read.bag, 8);
    for (size_t i = 0; i < l->asked.count; i++) {
        dp_redis_place *place = dp_redis_find_place(l, l->asked.place[i]);
        place->needs = latest > place->needs ? latest : place->needs;
        if (latest && leads_to(place, entry))
            continue;
        if (!change_value(l, place, place_of_title, latest ? entry : NULL))
            return false;
    }
    return true;
}

static doppel_status fetch_segments(dp_redis_look *l, doppel_slice title, doppel_error *error) {
    bool changed;
    l->asked.count = 0;
    l->asked.failed = false;
    dp_redis_add_segments(&l->memory, title, false, &l->asked);
    return dp_redis_fetch_places(l, &changed, error);
}

/* When the last owner of a title expires: UINT64_MAX: never; 0: it has none. Their documents are fetched: others may
 * share the
 * place. */
static doppel_status latest_owner(dp_redis_look *l, doppel_slice title, uint64_t *latest, doppel_error *error) {
    doppel_slice value = dp_redis_find_place(l, dp_redis_name_place(&l->memory, 't', title))->value;
    dp_numbers owners = {0};
    *latest = 0;
    if (!dp_reserve(&owners.number, &owners.room, value.length / DP_REDIS_ENTRY + 1, sizeof *owners.number))
        return dp_no_memory(error);
    for (size_t at = 0; at < value.length; at += DP_REDIS_ENTRY)
        owners.number[owners.count++] = dp_bytes_load(value.data + at, DP_REDIS_NUMBER);
    doppel_status status = dp_redis_fetch_documents(l, owners.number, owners.count, error);
    for (size_t i = 0; i < owners.count && status == DOPPEL_OK; i++) {
        const dp_redis_document *owner = dp_redis_known_document(l, owners.number[i]);
        if (!owner) /* 0 is not a number */
            continue;
        const dp_trace *trace = &owner->trace;
        uint64_t expires = trace->expires ? trace->expires : UINT64_MAX;
        if ((owner->there || owner->queued) && !owner->removed && trace->kind == DP_TRACE_DOCUMENT &&
            trace->title.length == title.length && !memcmp(trace->title.data, title.data, title.length))
            *latest = expires > *latest ? expires : *latest;
    }
    dp_numbers_free(&owners);
    return status;
}

/* Fetches the places where a document is found, into l->asked. */
static doppel_status fetch_own_places(dp_redis_look *l, const dp_redis_document *document, doppel_error *error) {
    bool changed;
    l->asked.count = 0;
    l->asked.failed = false;
    dp_redis_trace_places(&l->memory, document, &l->asked);
    return dp_redis_fetch_places(l, &changed, error);
}

static bool has_title(const dp_redis_look *l, const dp_trace *trace) {
    return l->memory.plan.rules.titles && trace->kind == DP_TRACE_DOCUMENT && trace->title.length;
}

/* The segments of a title lead to it for as long as it has an owner. */
static doppel_status lead_to_title(dp_redis_look *l, doppel_slice title, doppel_error *error) {
    uint64_t latest;
    DP_TRY(latest_owner(l, title, &latest, error));
    DP_TRY(fetch_segments(l, title, error));
    return change_segments(l, title, latest) ? DOPPEL_OK : dp_no_memory(error);
}

/* ---- new documents ---- */

static doppel_status add_entries(dp_redis_look *l, uint64_t number, doppel_error *error) {
    const dp_trace trace = dp_redis_known_document(l, number)->trace;
    uint64_t hours = hours_of(trace.expires), needs = trace.expires ? trace.expires : UINT64_MAX;
    uint8_t entry[DP_REDIS_ENTRY + 16];
    DP_TRY(fetch_own_places(l, dp_redis_known_document(l, number), error));
    uint8_t *end = dp_bytes_store(dp_bytes_store(entry, number, DP_REDIS_NUMBER), hours, 3);
    size_t bytes = dp_redis_entry_size(&l->memory.plan, DP_REDIS_FINGERPRINTS) - DP_REDIS_ENTRY;
    dp_bits value = dp_redis_order(&l->memory, trace.fingerprint);
    for (size_t i = bytes; i-- > 0; value >>= 8)
        end[i] = (uint8_t)value;
    for (size_t i = 0; i < l->asked.count; i++) {
        dp_redis_place *place = dp_redis_find_place(l, l->asked.place[i]);
        if (!change_value(l, place, number, entry))
            return dp_no_memory(error);
        place->needs = needs > place->needs ? needs : place->needs;
    }
    return has_title(l, &trace) ? lead_to_title(l, trace.title, error) : DOPPEL_OK;
}

static doppel_status add_new(dp_redis_look *l, const dp_pending *p, doppel_error *error) {
    dp_redis_document *document = dp_redis_add_document(l, p->change.number);
    if (!document || !note_document(l, document))
        return dp_no_memory(error);
    memcpy(document->part, p->change.part, sizeof document->part);
    document->trace = p->trace;
    document->fetched = document->queued = true;
    document->there = false;
    return add_entries(l, p->change.number, error);
}

/* ---- documents that go ---- */

/* Queues the removal of a copy or text of an original, if it is one. */
static doppel_status remove_copy(dp_redis_look *l, uint64_t number, uint64_t of, doppel_error *error) {
    const dp_redis_document *copy = dp_redis_known_document(l, number);
    if (!copy || (!copy->there && !copy->queued) || copy->removed || copy->trace.kind == DP_TRACE_DOCUMENT ||
        copy->trace.of != of)
        return DOPPEL_OK;
    const dp_pending removal = {.change = {.remove = number}, .removed = true, .trace = copy->trace};
    return dp_redis_queue(l->look, &removal, error);
}

/* The places of copies, all at once. */
static doppel_status fetch_copy_places(dp_redis_look *l, const dp_numbers *copies, doppel_error *error) {
    bool changed;
    l->asked.count = 0;
    l->asked.failed = false;
    for (size_t i = 0; i < copies->count; i++) {
        const dp_redis_document *copy = dp_redis_known_document(l, copies->number[i]);
        if (copy && copy->there)
            dp_redis_trace_places(&l->memory, copy, &l->asked);
    }
    return dp_redis_fetch_places(l, &changed, error);
}

/* Copies, and the words of those that were not kept, go with their original: those in its list, and those that are
 * queued. */
static doppel_status remove_copies(dp_redis_look *l, uint64_t number, doppel_error *error) {
    dp_numbers copies = {0};
    dp_redis_document *of = dp_redis_known_document(l, number);
    size_t listed = 0, queued = l->pending_count;
    doppel_status status = of->there ? dp_redis_fetch_links(l, number, &copies, &listed, error) : DOPPEL_OK;
    if (status == DOPPEL_OK)
        dp_redis_known_document(l, number)->links = listed;
    DP_THEN(status, fetch_copy_places(l, &copies, error));
    for (size_t i = 0; i < copies.count && status == DOPPEL_OK; i++)
        status = remove_copy(l, copies.number[i], number, error);
    for (size_t i = 0; i < queued && status == DOPPEL_OK; i++)
        if (l->pending[i].pending.added)
            status = remove_copy(l, l->pending[i].pending.change.number, number, error);
    dp_numbers_free(&copies);
    return status;
}

static doppel_status remove_old(dp_redis_look *l, uint64_t number, doppel_error *error) {
    dp_redis_document *document = NULL;
    DP_TRY(dp_redis_find_document(l, number, &document, error));
    if (!document || (!document->there && !document->queued) || document->removed)
        return DOPPEL_OK;
    const dp_trace trace = document->trace;
    DP_TRY(fetch_own_places(l, document, error));
    for (size_t i = 0; i < l->asked.count; i++)
        if (!change_value(l, dp_redis_find_place(l, l->asked.place[i]), number, NULL))
            return dp_no_memory(error);
    document = dp_redis_known_document(l, number);
    if (!note_document(l, document))
        return dp_no_memory(error);
    document->removed = true;
    if (has_title(l, &trace))
        DP_TRY(lead_to_title(l, trace.title, error));
    return trace.kind == DP_TRACE_DOCUMENT ? remove_copies(l, number, error) : DOPPEL_OK;
}

/* ---- queueing ---- */

static bool copy_slice(dp_redis_look *l, doppel_slice *slice) {
    if (!slice->data)
        return true;
    *slice = dp_arena_copy(&l->arena, slice->data, slice->length);
    return slice->data;
}

/* Copies all that a change points to. What a trace of a whole set leaves out, its bands, is made again from the set. */
static bool copy_pending(dp_redis_look *l, dp_pending *p) {
    for (int i = 0; i < DP_PARTS; i++)
        if (!copy_slice(l, &p->change.part[i]))
            return false;
    if (!p->added)
        return true;
    if (!dp_trace_decode(p->change.part[DP_PART_TRACE], &p->trace))
        return false;
    return true;
}

static doppel_status count_duplicate(dp_redis_look *l, const dp_change *change, doppel_error *error) {
    dp_redis_document *original = NULL;
    if (!change->count || change->count_reason != DOPPEL_REASON_TITLE)
        return DOPPEL_OK;
    DP_TRY(dp_redis_find_document(l, change->count, &original, error));
    if (!original)
        return DOPPEL_OK;
    if (!note_document(l, original))
        return dp_no_memory(error);
    original->queued_titles += change->count_times ? change->count_times : 1;
    return DOPPEL_OK;
}

doppel_status dp_redis_queue(dp_look *look, const dp_pending *pending, doppel_error *error) {
    dp_redis_look *l = look->own;
    size_t undo = l->undo_count, count = l->pending_count;
    dp_redis_pending copy = {.pending = *pending, .undo = undo};
    if (!copy_pending(l, &copy.pending) || !dp_reserve(&l->pending, &l->pending_room, count + 1, sizeof *l->pending))
        return dp_no_memory(error);
    l->pending[l->pending_count++] = copy; /* before what it brings along */
    doppel_status status = DOPPEL_OK;
    if (pending->added)
        status = add_new(l, &copy.pending, error);
    if (status == DOPPEL_OK && pending->change.remove)
        status = remove_old(l, pending->change.remove, error);
    DP_THEN(status, count_duplicate(l, &pending->change, error));
    if (status != DOPPEL_OK && l->pending_count > count) {
        undo_to(l, undo);
        l->pending_count = count;
    }
    return status;
}

/* ---- a commit as arguments ---- */

/* Counts of the meta key that change. */
typedef struct total {
    char field[24];
    int64_t change;
} total;

/* What a commit is made of. */
typedef struct committing {
    dp_redis_look *l;
    dp_redis_batch batch;
    uint64_t request;
    bool adds;       /* there are new documents or texts */
    bool removes;    /* there are removals */
    uint64_t latest; /* when the last new document expires; UINT64_MAX: never */
    total *totals;
    size_t total_count, total_room;
    doppel_error *error;
} committing;

static uint64_t milliseconds_until(const committing *c, uint64_t expires) {
    if (!expires || expires == UINT64_MAX)
        return 0;
    return expires > c->l->look->now ? (expires - c->l->look->now) * 1000 : 1;
}

/* Inserts the number of items written since `start` before them: a section of the arguments is a count and its
 * items. */
static void put_count(committing *c, size_t start, size_t items) {
    dp_redis_batch *batch = &c->batch;
    size_t end = batch->bytes.size;
    char count[64];
    dp_redis_put_number(batch, items);
    if (batch->failed)
        return;
    size_t length = batch->bytes.size - end;
    memcpy(count, batch->bytes.data + end, length);
    memmove(batch->bytes.data + start + length, batch->bytes.data + start, end - start);
    memcpy(batch->bytes.data + start, count, length);
}

/* Whether a place is written: its value has changed, or its bucket has to live longer. */
static bool is_changed(const dp_redis_place *place) {
    return place->value.length != place->base.length || (place->value.length && place->needs > place->goes) ||
           (place->value.data != place->base.data &&
            memcmp(place->value.data, place->base.data, place->base.length) != 0);
}

/* The written places, for other processes that may have read them; and buckets that may expire earlier. */
static void put_written(committing *c) {
    dp_redis_look *l = c->l;
    uint64_t bucket = ~(uint64_t)0 << (64 - l->memory.plan.bucket_bits);
    uint8_t *start = malloc(16 * l->place_count + 1), *at = start;
    for (size_t i = 0; i < l->place_count && start; i++) {
        if (!is_changed(&l->place[i]))
            continue;
        at = dp_bytes_store(at, l->place[i].hash, 8);
        if (l->place[i].shortened)
            at = dp_bytes_store(at, (l->place[i].hash & bucket) | BUCKET, 8);
    }
    c->batch.failed = c->batch.failed || !start;
    dp_redis_put(&c->batch, start, (size_t)(at - start));
    free(start);
}

/* The document that a change needs to exist, because it is counted or linked to. */
static uint64_t refers_to(dp_redis_look *l, const dp_pending *p) {
    uint64_t number = p->change.link ? p->change.link : p->change.count;
    const dp_redis_document *document = number ? dp_redis_known_document(l, number) : NULL;
    return document && document->there && !document->removed ? number : 0;
}

static bool is_new(const dp_pending *p) {
    return p->added && !dp_trace_is_removal(&p->trace);
}

static void put_existing(committing *c) {
    dp_redis_look *l = c->l;
    size_t start = c->batch.bytes.size, count = 0;
    for (size_t i = 0; i < l->pending_count; i++) {
        const dp_pending *p = &l->pending[i].pending;
        if (is_new(p)) {
            dp_redis_put_bytes(&c->batch, 0, p->change.number, DP_REDIS_NUMBER);
            dp_redis_put_text(&c->batch, "0");
            count++;
        }
        if (refers_to(l, p)) {
            dp_redis_put_bytes(&c->batch, 0, refers_to(l, p), DP_REDIS_NUMBER);
            dp_redis_put_text(&c->batch, "1");
            count++;
        }
    }
    put_count(c, start, count);
}

/* How long the lists of copies and texts are of what is removed. */
static void put_links_read(committing *c) {
    dp_redis_look *l = c->l;
    size_t start = c->batch.bytes.size, count = 0;
    for (size_t i = 0; i < l->pending_count; i++) {
        uint64_t number = l->pending[i].pending.change.remove;
        const dp_redis_document *document = number ? dp_redis_known_document(l, number) : NULL;
        if (!document)
            continue;
        dp_redis_put_bytes(&c->batch, 0, number, DP_REDIS_NUMBER);
        dp_redis_put_number(&c->batch, document->links);
        count++;
    }
    put_count(c, start, count);
}

/* The new expiry of a place's bucket, if the old one is too early for what is written into it; else empty bytes. */
static void put_life(committing *c, const dp_redis_place *place) {
    uint64_t goes = place->needs > place->goes ? place->needs : place->goes;
    if (place->needs <= place->goes && place->goes > c->l->look->now + SOON) {
        dp_redis_put_text(&c->batch, "");
        dp_redis_put_text(&c->batch, "");
        return;
    }
    if (goes != UINT64_MAX && goes > place->goes)
        goes += (goes > c->l->look->now ? goes - c->l->look->now : 0) / LONGER + 1;
    dp_redis_put_bytes(&c->batch, 0, goes < DP_REDIS_NEVER ? goes : DP_REDIS_NEVER, 5);
    dp_redis_put_number(&c->batch, milliseconds_until(c, goes));
}

static void put_places(committing *c) {
    dp_redis_look *l = c->l;
    size_t start = c->batch.bytes.size, count = 0;
    for (size_t i = 0; i < l->place_count; i++) {
        if (!is_changed(&l->place[i]))
            continue;
        dp_redis_put_bucket(&c->batch, l->place[i].hash, &l->memory.plan);
        dp_redis_put_field(&c->batch, l->place[i].hash);
        dp_redis_put(&c->batch, l->place[i].value.data, l->place[i].value.length);
        put_life(c, &l->place[i]);
        count++;
    }
    put_count(c, start, count);
}

/* ---- documents ---- */

static bool is_same(doppel_slice a, doppel_slice b) {
    return a.length && a.length == b.length && !memcmp(a.data, b.data, a.length);
}

/* The record without what can be derived from its canonical URL; returns the flags that say so. */
static unsigned shorten_record(dp_record *record) {
    unsigned flags = (is_same(record->id, record->canonical) ? DP_REDIS_ID_IS_URL : 0U) |
                     (is_same(record->url, record->canonical) ? DP_REDIS_SAME_URL : 0U);
    if (flags & DP_REDIS_ID_IS_URL)
        record->id = (doppel_slice){NULL, 0};
    if (flags & DP_REDIS_SAME_URL)
        record->url = (doppel_slice){NULL, 0};
    return flags;
}

/* Adds the bytes of a document: the format, flags and two lengths, its trace, its record and its set. The trace leaves
 * out the hash of the id and, of a whole set, the keys of its bands. False: no memory. */
static bool encode(const dp_pending *p, dp_buffer *to) {
    dp_record record = {0};
    dp_trace kept = p->trace;
    doppel_slice set = p->change.part[DP_PART_SET];
    uint8_t head[8] = {DP_REDIS_FORMAT};
    bool has_record = p->change.part[DP_PART_RECORD].length > 0;
    if (!dp_buffer_add(to, head, sizeof head) ||
        (has_record && !dp_record_decode(p->change.part[DP_PART_RECORD], &record)))
        return false;
    kept.id_hash = 0;
    if (has_record && set.length && !record.sampled)
        kept.key_count = 0;
    if (has_record)
        head[1] = (uint8_t)shorten_record(&record);
    if (!dp_trace_encode(&kept, to))
        return false;
    size_t trace = to->size - sizeof head;
    if (has_record && !dp_record_encode(&record, to))
        return false;
    dp_bytes_store(head + 2, trace, 3);
    dp_bytes_store(head + 5, to->size - sizeof head - trace, 3);
    memcpy(to->data, head, sizeof head);
    return !set.length || dp_buffer_add(to, set.data, set.length);
}

/* A key, its value and how long both live. */
static void put_value(committing *c, char letter, const dp_pending *p, const void *bytes, size_t length) {
    dp_redis_put_bytes(&c->batch, letter, p->change.number, DP_REDIS_NUMBER);
    dp_redis_put(&c->batch, bytes, length);
    dp_redis_put_number(&c->batch, milliseconds_until(c, p->trace.expires));
}

static void put_documents(committing *c) {
    dp_redis_look *l = c->l;
    size_t start = c->batch.bytes.size, count = 0;
    dp_buffer bytes = {0};
    for (size_t i = 0; i < l->pending_count; i++) {
        const dp_pending *p = &l->pending[i].pending;
        doppel_slice text = p->change.part[DP_PART_TEXT];
        if (!is_new(p))
            continue;
        bytes.size = 0;
        c->batch.failed = c->batch.failed || !encode(p, &bytes);
        put_value(c, 'd', p, bytes.data, bytes.size);
        if (text.length)
            put_value(c, 't', p, text.data, text.length);
        count += text.length ? 2 : 1;
    }
    dp_buffer_free(&bytes);
    put_count(c, start, count);
}

static void put_removals(committing *c) {
    dp_redis_look *l = c->l;
    size_t start = c->batch.bytes.size, count = 0;
    for (size_t i = 0; i < l->pending_count; i++) {
        if (!l->pending[i].pending.change.remove)
            continue;
        dp_redis_put_bytes(&c->batch, 0, l->pending[i].pending.change.remove, DP_REDIS_NUMBER);
        count++;
    }
    put_count(c, start, count);
}

static uint64_t life_of(committing *c, uint64_t number) {
    const dp_redis_document *document = dp_redis_known_document(c->l, number);
    return milliseconds_until(c, document ? document->trace.expires : 0);
}

static uint64_t times_of(const dp_change *change) {
    return change->count_times ? change->count_times : 1;
}

static void put_counts(committing *c) {
    dp_redis_look *l = c->l;
    size_t start = c->batch.bytes.size, count = 0;
    for (size_t i = 0; i < l->pending_count; i++) {
        const dp_change *change = &l->pending[i].pending.change;
        if (!change->count)
            continue;
        dp_redis_put_bytes(&c->batch, 0, change->count, DP_REDIS_NUMBER);
        dp_redis_put_number(&c->batch, change->count_reason);
        dp_redis_put_number(&c->batch, times_of(change));
        dp_redis_put_number(&c->batch, change->count_at);
        dp_redis_put_number(&c->batch, life_of(c, change->count));
        count++;
    }
    put_count(c, start, count);
}

static void put_links(committing *c) {
    dp_redis_look *l = c->l;
    size_t start = c->batch.bytes.size, count = 0;
    for (size_t i = 0; i < l->pending_count; i++) {
        const dp_pending *p = &l->pending[i].pending;
        uint64_t of = p->trace.kind == DP_TRACE_TEXT ? p->trace.of : p->change.link;
        if (!is_new(p) || !of)
            continue;
        dp_redis_put_bytes(&c->batch, 0, of, DP_REDIS_NUMBER);
        dp_redis_put_bytes(&c->batch, 0, p->change.number, DP_REDIS_NUMBER);
        dp_redis_put_number(&c->batch, life_of(c, of));
        count++;
    }
    put_count(c, start, count);
}

/* ---- totals ---- */

static void add_total(committing *c, const char *field, int64_t change) {
    size_t i = 0;
    while (i < c->total_count && strcmp(c->totals[i].field, field) != 0)
        i++;
    if (i == c->total_count) {
        if (!dp_reserve(&c->totals, &c->total_room, i + 1, sizeof *c->totals)) {
            c->batch.failed = true;
            return;
        }
        c->totals[i] = (total){0};
        snprintf(c->totals[i].field, sizeof c->totals[i].field, "%s", field);
        c->total_count++;
    }
    c->totals[i].change += change;
}

/* Documents are counted by when they expire, rounded up by at most 1/256 of their whole time. */
static void count_field(const dp_trace *trace, char field[24]) {
    uint64_t by = 0;
    if (trace->expires) {
        uint64_t step = trace->expires > trace->added ? (trace->expires - trace->added) / 256 + 1 : 1;
        by = (trace->expires + step - 1) / step * step;
    }
    snprintf(field, 24, "%c%" PRIu64, trace->kind == DP_TRACE_DOCUMENT ? 'd' : 'c', by);
}

static void add_trace_total(committing *c, const dp_trace *trace, int change) {
    char field[24];
    if (!dp_trace_is_kept(trace))
        return;
    count_field(trace, field);
    add_total(c, field, change);
}

static void put_totals(committing *c) {
    static const char *const reasons[] = {
        [DOPPEL_REASON_URL] = "u", [DOPPEL_REASON_CONTENT] = "w", [DOPPEL_REASON_TITLE] = "t"};
    _Static_assert(sizeof reasons / sizeof *reasons == DOPPEL_REASONS, "every reason has a field of its own");
    dp_redis_look *l = c->l;
    for (size_t i = 0; i < l->pending_count; i++) {
        const dp_pending *p = &l->pending[i].pending;
        const dp_redis_document *gone = p->change.remove ? dp_redis_known_document(l, p->change.remove) : NULL;
        if (is_new(p))
            add_trace_total(c, &p->trace, 1);
        if (gone)
            add_trace_total(c, &gone->trace, -1);
        if (p->change.count)
            add_total(c, reasons[p->change.count_reason], (int64_t)times_of(&p->change));
    }
    dp_redis_put_number(&c->batch, c->total_count);
    for (size_t i = 0; i < c->total_count; i++) {
        char digits[24];
        snprintf(digits, sizeof digits, "%" PRId64, c->totals[i].change);
        dp_redis_put_text(&c->batch, c->totals[i].field);
        dp_redis_put_text(&c->batch, digits);
    }
}

/* At random, once the memory is older than the life of what is written: before that little can have expired in it. */
static bool is_swept(const committing *c, const dp_redis_place *place) {
    uint64_t now = c->l->look->now, age = now > c->l->made ? now - c->l->made : UINT64_MAX;
    bool chosen = (place->hash >> 2 ^ c->request * 0x9E3779B97F4A7C15u >> 32) % SWEEP_EACH == 0;
    bool expires = place->value.length && place->needs != UINT64_MAX && place->needs > now && place->needs - now < age;
    return is_changed(place) && (place->shortened || (chosen && expires));
}

static void put_sweeps(committing *c) {
    dp_redis_look *l = c->l;
    dp_redis_put_number(&c->batch, dp_redis_entry_size(&l->memory.plan, DP_REDIS_FINGERPRINTS) - DP_REDIS_ENTRY);
    size_t start = c->batch.bytes.size, count = 0;
    for (size_t i = 0; i < l->place_count; i++) {
        if (!is_swept(c, &l->place[i]))
            continue;
        dp_redis_put_bucket(&c->batch, l->place[i].hash, &l->memory.plan);
        dp_redis_put_text(&c->batch, l->place[i].shortened ? "1" : "0");
        count++;
    }
    put_count(c, start, count);
}

/* ---- the whole ---- */

/* What the changes do as a whole: whether they add or remove, and when the last that is new expires. */
static void sum_up(committing *c) {
    for (size_t i = 0; i < c->l->pending_count; i++) {
        const dp_pending *p = &c->l->pending[i].pending;
        uint64_t expires = p->trace.expires ? p->trace.expires : UINT64_MAX;
        c->adds = c->adds || is_new(p);
        c->latest = is_new(p) && expires > c->latest ? expires : c->latest;
        c->removes = c->removes || p->change.remove;
    }
}

static void encode_commit(committing *c) {
    dp_redis_look *l = c->l;
    sum_up(c);
    uint64_t lives = milliseconds_until(c, c->latest);
    dp_redis_call_begin(&c->batch, c->adds ? "commit" : "remove");
    dp_redis_put(&c->batch, l->memory.epoch, sizeof l->memory.epoch);
    dp_redis_put(&c->batch, dp_redis_link_name(l->link), 8);
    dp_redis_put_bytes(&c->batch, 0, c->request, 8);
    dp_redis_put(&c->batch, l->stamp, l->stamp_length);
    dp_redis_put_number(&c->batch, c->l->look->now);
    dp_redis_put_number(&c->batch, c->adds ? l->next - 1 : 0);
    if (!c->adds)
        dp_redis_put_text(&c->batch, "");
    else
        dp_redis_put_number(&c->batch, c->latest == UINT64_MAX ? 0 : c->latest);
    dp_redis_put_number(&c->batch, lives);
    dp_redis_put_text(&c->batch, c->removes ? "1" : "0");
    dp_redis_put_number(&c->batch, lives && lives < ANSWERS_FOR ? lives : ANSWERS_FOR);
    put_written(c);
    put_existing(c);
    put_links_read(c);
    put_places(c);
    put_documents(c);
    put_counts(c);
    put_links(c);
    put_removals(c);
    put_totals(c);
    put_sweeps(c);
}

/* ---- turns ---- */

void dp_redis_leave_turn(dp_redis_look *l) {
    dp_redis_batch batch = dp_redis_batch_of(l->redis);
    dp_redis_command_begin(&batch, "DEL");
    dp_redis_put_key(&batch, 'h', 0, 0);
    (void)dp_redis_call(l->link, &batch, false, NULL); /* it ends by itself within a second */
    dp_redis_batch_free(&batch);
    l->has_turn = false;
}

/* Fewer queries are decided at once where others change what they rest on. */
static void note_loss(dp_redis_look *l) {
    size_t chunk = atomic_load(&l->redis->chunk);
    atomic_store(&l->redis->chunk, chunk > 1 ? chunk / 2 : 1);
    atomic_fetch_add(&l->redis->retries, 1);
}

static void note_success(dp_redis_look *l) {
    size_t chunk = atomic_load(&l->redis->chunk);
    chunk += chunk / 8 + 1;
    atomic_store(&l->redis->chunk, chunk < DP_REDIS_MOST_QUERIES ? chunk : DP_REDIS_MOST_QUERIES);
    l->has_turn = false;
}

/* The decisions do not hold: everything is fetched again for the same queries. */
static doppel_status begin_again(committing *c) {
    dp_redis_look *l = c->l;
    if (++l->rounds > MOST_ROUNDS)
        return dp_fail_at(c->error, DOPPEL_ERROR_STORE, l->redis->url.name, 0,
                          "the memory is another one each time it is read: is something else changing its keys?");
    note_loss(l);
    dp_redis_look_reset(l);
    l->renewed = false;
    return dp_redis_fetch_queries(c->l, c->error);
}

typedef enum outcome { DONE, EMPTIED, BUSY, WAIT, SAME, CHANGED, UNKNOWN, ANOTHER, FAILED } outcome;

static outcome outcome_of(const redisReply *reply) {
    static const struct {
        const char *word;
        outcome outcome;
    } words[] = {{"done", DONE}, {"emptied", EMPTIED}, {"busy", BUSY},       {"wait", WAIT},
                 {"same", SAME}, {"changed", CHANGED}, {"unknown", UNKNOWN}, {"gone", ANOTHER}};
    if (is_another(reply))
        return ANOTHER;
    if (reply->type != REDIS_REPLY_ARRAY || !reply->elements || reply->element[0]->type != REDIS_REPLY_STRING)
        return FAILED;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(reply->element[0]->str, words[i].word))
            return words[i].outcome;
    return FAILED;
}

/* Whether everything new in a place is fingerprints far from all queries; the place is rebased on its current value. */
static bool rebase(dp_redis_look *l, dp_redis_place *place, doppel_slice now) {
    size_t size = dp_redis_entry_size(&l->memory.plan, DP_REDIS_FINGERPRINTS), had = place->base.length;
    if (now.length % size || now.length < had || place->value.length < had ||
        (had &&
         (memcmp(now.data, place->base.data, had) != 0 || memcmp(place->value.data, place->base.data, had) != 0)))
        return false;
    for (size_t at = had; at < now.length; at += size) {
        dp_bits bits = 0;
        for (size_t i = DP_REDIS_ENTRY; i < size; i++)
            bits = bits << 8 | (uint8_t)now.data[at + i];
        for (size_t i = 0; i < l->fingerprint_count; i++)
            if (dp_bits_count(bits ^ dp_redis_order(&l->memory, l->fingerprint[i])) <= l->memory.plan.rules.distance)
                return false;
    }
    size_t own = place->value.length - had;
    char *bytes = dp_arena_take(&l->arena, now.length + own);
    if (!bytes)
        return false;
    memcpy(bytes, now.data, now.length);
    memcpy(bytes + now.length, place->value.data + had, own);
    place->base = (doppel_slice){bytes, now.length};
    place->value = (doppel_slice){bytes, now.length + own};
    return true;
}

/* The places of this look in a bucket. */
static void add_bucket(dp_redis_look *l, uint64_t hash) {
    uint64_t bucket = ~(uint64_t)0 << (64 - l->memory.plan.bucket_bits);
    for (size_t i = 0; i < l->place_count; i++)
        if (!((l->place[i].hash ^ hash) & bucket))
            dp_redis_add_place(&l->asked, l->place[i].hash);
}

/* Those of the places in `written` that this look has read, in l->asked; false: out of memory. */
static bool find_read(dp_redis_look *l, doppel_slice written, bool *only_fingerprints) {
    l->asked.count = 0;
    *only_fingerprints = true;
    for (size_t at = 0; at + 8 <= written.length; at += 8) {
        uint64_t hash = dp_bytes_load(written.data + at, 8);
        size_t before = l->asked.count;
        if ((hash & BUCKET) == BUCKET)
            add_bucket(l, hash);
        else if (dp_redis_find_place(l, hash))
            dp_redis_add_place(&l->asked, hash);
        if (l->asked.count > before && dp_redis_class_of(hash) != DP_REDIS_FINGERPRINTS)
            *only_fingerprints = false;
    }
    return !l->asked.failed;
}

/* Reads the places in l->asked again. *holds: the decisions hold with the current values. */
static doppel_status compare_again(committing *c, bool *holds) {
    dp_redis_look *l = c->l;
    dp_redis_batch batch = dp_redis_batch_of(l->redis);
    for (size_t i = 0; i < l->asked.count; i++) {
        dp_redis_command_begin(&batch, "HGET");
        dp_redis_put_bucket(&batch, l->asked.place[i], &l->memory.plan);
        dp_redis_put_field(&batch, l->asked.place[i]);
    }
    doppel_status status = dp_redis_call(l->link, &batch, false, c->error);
    *holds = status == DOPPEL_OK;
    for (size_t i = 0; i < l->asked.count && *holds; i++) {
        const redisReply *reply = batch.reply[i];
        doppel_slice now = {dp_redis_is_string(reply) ? reply->str : "", dp_redis_is_string(reply) ? reply->len : 0};
        *holds = rebase(l, dp_redis_find_place(l, l->asked.place[i]), now);
    }
    dp_redis_batch_free(&batch);
    return status;
}

/* Whether the decisions hold with what others have written since. */
static doppel_status compare(committing *c, const redisReply *reply, bool *holds) {
    dp_redis_look *l = c->l;
    bool only_fingerprints;
    *holds = false;
    if (reply->elements != 3 || !dp_redis_is_string(reply->element[1]) || !dp_redis_is_string(reply->element[2]) ||
        reply->element[1]->len != sizeof l->stamp)
        return DOPPEL_OK;
    if (!find_read(l, (doppel_slice){reply->element[2]->str, reply->element[2]->len}, &only_fingerprints))
        return dp_no_memory(c->error);
    memcpy(l->stamp, reply->element[1]->str, sizeof l->stamp);
    l->stamp_length = sizeof l->stamp;
    *holds = !l->asked.count;
    return l->asked.count && only_fingerprints ? compare_again(c, holds) : DOPPEL_OK;
}

/* Asks for a turn until it is given. *holds: what was decided still holds. */
static doppel_status enter(committing *c, bool *holds) {
    dp_redis_look *l = c->l;
    outcome what = WAIT;
    doppel_status status = DOPPEL_OK;
    atomic_fetch_add(&l->redis->turns, 1);
    while (what == WAIT && status == DOPPEL_OK) {
        dp_redis_batch batch = dp_redis_batch_of(l->redis);
        dp_redis_call_begin(&batch, "enter");
        dp_redis_put(&batch, l->memory.epoch, sizeof l->memory.epoch);
        dp_redis_put(&batch, dp_redis_link_name(l->link), 8);
        dp_redis_put(&batch, l->stamp, l->stamp_length);
        status = dp_redis_call(l->link, &batch, false, c->error);
        what = status == DOPPEL_OK ? outcome_of(batch.reply[0]) : FAILED;
        if (what == CHANGED)
            status = compare(c, batch.reply[0], holds);
        else if (status == DOPPEL_OK && what == FAILED)
            status = dp_redis_fail(l->redis, batch.reply[0], c->error);
        dp_redis_batch_free(&batch);
        if (what == WAIT)
            dp_sleep(PAUSE * 1e-6);
    }
    if (what != CHANGED)
        *holds = what == SAME;
    l->has_turn = status == DOPPEL_OK && what != ANOTHER;
    atomic_store(&l->redis->alone, what == SAME ? atomic_load(&l->redis->alone) + 1 : 0);
    return status;
}

doppel_status dp_redis_take_turn(dp_redis_look *l, doppel_error *error) {
    committing c = {.l = l, .error = error};
    bool holds;
    return enter(&c, &holds);
}

/* ---- the commit ---- */

/* Records that something was added that expires at this time (0: never), or that everything is gone. */
static void note_added(dp_redis *redis, uint64_t expires) {
    pthread_mutex_lock(&redis->mutex);
    if (!expires || expires > redis->latest)
        redis->latest = expires ? expires : UINT64_MAX;
    pthread_mutex_unlock(&redis->mutex);
}

static void note_emptied(dp_redis *redis) {
    pthread_mutex_lock(&redis->mutex);
    redis->latest = 0;
    pthread_mutex_unlock(&redis->mutex);
}

static void note_done(committing *c, bool emptied) {
    dp_redis_look *l = c->l;
    if (emptied)
        note_emptied(l->redis);
    else if (c->latest)
        note_added(l->redis, c->latest == UINT64_MAX ? 0 : c->latest);
    note_success(l);
    dp_redis_look_reset(l);
}

/* An emptied memory keeps nothing of this link either. */
static void forget_link(dp_redis_look *l) {
    dp_redis_batch batch = dp_redis_batch_of(l->redis);
    dp_redis_command_begin(&batch, "DEL");
    dp_redis_put_key(&batch, 'r', __builtin_bswap64(dp_load64(dp_redis_link_name(l->link))), 8);
    (void)dp_redis_call(l->link, &batch, false, NULL); /* it goes by itself a little later */
    dp_redis_batch_free(&batch);
}

/* One try. */
static doppel_status try_commit(committing *c, outcome *what) {
    dp_redis_look *l = c->l;
    c->batch = dp_redis_batch_of(l->redis);
    c->total_count = 0;
    encode_commit(c);
    doppel_status status = dp_redis_call(l->link, &c->batch, true, c->error);
    if (status == DOPPEL_OK) {
        *what = outcome_of(c->batch.reply[0]);
        if (*what == FAILED)
            status = dp_redis_fail(l->redis, c->batch.reply[0], c->error);
    }
    dp_redis_batch_free(&c->batch);
    return status;
}

static doppel_status commit_all(committing *c, bool *stands) {
    dp_redis_look *l = c->l;
    outcome what = BUSY;
    bool holds = true, enters = atomic_load(&l->redis->alone) < ALONE_AFTER;
    doppel_status status = DOPPEL_OK;
    while (what != DONE && what != EMPTIED) {
        if (enters && (status = enter(c, &holds)) != DOPPEL_OK)
            return status;
        if (!holds)
            return begin_again(c);
        if ((status = try_commit(c, &what)) != DOPPEL_OK)
            return status;
        if (what == ANOTHER) {
            l->next = l->end = 0;
            return begin_again(c);
        }
        enters = true;
    }
    *stands = true;
    note_done(c, what == EMPTIED);
    if (what == EMPTIED)
        forget_link(l);
    return DOPPEL_OK;
}

doppel_status dp_redis_commit(dp_look *look, bool *stands, doppel_error *error) {
    committing c = {.l = look->own, .error = error};
    dp_known_counters *counters = look->known->options.counters;
    *stands = false;
    if (c.l->failed != DOPPEL_OK) {
        if (error)
            *error = c.l->why;
        return c.l->failed;
    }
    if (c.l->renewed)
        return begin_again(&c);
    if (!c.l->pending_count) {
        if (c.l->has_turn)
            dp_redis_leave_turn(c.l);
        *stands = true;
        return DOPPEL_OK;
    }
    double began = dp_seconds();
    c.request = dp_redis_link_next(c.l->link);
    doppel_status status = commit_all(&c, stands);
    free(c.totals);
    if (status != DOPPEL_OK)
        dp_redis_look_reset(c.l);
    if (counters && (*stands || status != DOPPEL_OK)) {
        atomic_fetch_add(status == DOPPEL_OK ? &counters->commits : &counters->failed_commits, 1);
        dp_tally_add(&counters->commit_time, (uint64_t)((dp_seconds() - began) * 1e6));
    }
    return status;
}
