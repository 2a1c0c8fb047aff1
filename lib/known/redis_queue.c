/* redis_queue.c - what a call is going to change in a memory in Redis: numbers for new documents, and changes that are
 * queued in what was fetched, so that the same call finds them, and can be taken back.
 *
 * A document that is added has an entry in each of its places, and one that is removed has none any more. Places that
 * were not fetched yet are. Entries that lead nowhere are dropped on the way. A title that has an owner has an entry in
 * each of its segments. */
#include "known/redis.h"

#include <stdlib.h>

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

static doppel_status reserve_numbers(dp_look *look, uint64_t count, doppel_error *error) {
    dp_redis_look *l = look->own;
    dp_redis_batch batch = {.redis = l->redis};
    dp_redis_call_begin(&batch, "reserve", 2);
    dp_redis_put(&batch, l->memory.epoch, sizeof l->memory.epoch);
    dp_redis_put_number(&batch, count);
    doppel_status status = dp_redis_send(&batch, l->link, false, error);
    if (status == DOPPEL_OK && dp_redis_is_another(batch.reply[0])) {
        /* Numbers of the old memory will do: its commit is refused, and everything is decided again. */
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
    doppel_status status = DOPPEL_OK;
    if (l->next == l->end) {
        uint64_t left = l->query_count > l->pending_count ? l->query_count - l->pending_count : 1;
        status = reserve_numbers(look, left, error);
    }
    *number = l->next;
    l->next += status == DOPPEL_OK;
    return status;
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

/* Whether an entry leads to a document that is known to be gone. */
static bool is_dead(dp_redis_look *l, const dp_redis_place *place, size_t at) {
    if (dp_redis_class_of(place->hash) == DP_REDIS_SEGMENTS)
        return false;
    const dp_redis_document *document = dp_redis_known_document(l, dp_bytes_load(place->value.data + at, 5));
    return document && document->fetched && !document->there && !document->queued;
}

/* The value without entries that lead nowhere and without that of a number or title, and with a new one (NULL: none).
 */
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

static doppel_status fetch_segments(dp_look *look, doppel_slice title, doppel_error *error) {
    dp_redis_look *l = look->own;
    bool changed;
    l->asked.count = 0;
    l->asked.failed = false;
    dp_redis_add_segments(&l->memory, title, false, &l->asked);
    return dp_redis_fetch_places(look, &changed, error);
}

/* When the last owner of a title expires: UINT64_MAX: never; 0: it has none. Their documents are fetched: others may
 * share the place.
 */
static doppel_status latest_owner(dp_look *look, doppel_slice title, uint64_t *latest, doppel_error *error) {
    dp_redis_look *l = look->own;
    doppel_slice value = dp_redis_find_place(l, dp_redis_name_place(&l->memory, 't', title))->value;
    dp_numbers owners = {0};
    *latest = 0;
    if (!dp_reserve(&owners.number, &owners.room, value.length / DP_REDIS_ENTRY + 1, sizeof *owners.number))
        return dp_no_memory(error);
    for (size_t at = 0; at < value.length; at += DP_REDIS_ENTRY)
        owners.number[owners.count++] = dp_bytes_load(value.data + at, DP_REDIS_NUMBER);
    doppel_status status = dp_redis_fetch_documents(look, owners.number, owners.count, error);
    for (size_t i = 0; i < owners.count && status == DOPPEL_OK; i++) {
        const dp_redis_document *owner = dp_redis_known_document(l, owners.number[i]);
        if (!owner) /* 0 is no number */
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
static doppel_status fetch_own_places(dp_look *look, const dp_redis_document *document, doppel_error *error) {
    dp_redis_look *l = look->own;
    bool changed;
    l->asked.count = 0;
    l->asked.failed = false;
    dp_redis_trace_places(&l->memory, document, &l->asked);
    return dp_redis_fetch_places(look, &changed, error);
}

static bool has_title(const dp_redis_look *l, const dp_trace *trace) {
    return l->memory.plan.rules.titles && trace->kind == DP_TRACE_DOCUMENT && trace->title.length;
}

/* The segments of a title lead to it for as long as it has an owner. */
static doppel_status lead_to_title(dp_look *look, doppel_slice title, doppel_error *error) {
    dp_redis_look *l = look->own;
    uint64_t latest;
    doppel_status status = latest_owner(look, title, &latest, error);
    if (status == DOPPEL_OK)
        status = fetch_segments(look, title, error);
    if (status == DOPPEL_OK && !change_segments(l, title, latest))
        status = dp_no_memory(error);
    return status;
}

/* ---- new documents ---- */

static doppel_status add_entries(dp_look *look, uint64_t number, doppel_error *error) {
    dp_redis_look *l = look->own;
    const dp_trace trace = dp_redis_known_document(l, number)->trace;
    uint64_t hours = hours_of(trace.expires), needs = trace.expires ? trace.expires : UINT64_MAX;
    uint8_t entry[DP_REDIS_ENTRY + 16];
    doppel_status status = fetch_own_places(look, dp_redis_known_document(l, number), error);
    if (status != DOPPEL_OK)
        return status;
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
    return has_title(l, &trace) ? lead_to_title(look, trace.title, error) : DOPPEL_OK;
}

static doppel_status add_new(dp_look *look, const dp_pending *p, doppel_error *error) {
    dp_redis_look *l = look->own;
    dp_redis_document *document = dp_redis_add_document(l, p->change.number);
    if (!document || !note_document(l, document))
        return dp_no_memory(error);
    memcpy(document->part, p->change.part, sizeof document->part);
    document->trace = p->trace;
    document->fetched = document->queued = true;
    document->there = false;
    return add_entries(look, p->change.number, error);
}

/* ---- documents that go ---- */

/* Queues the removal of a text of a copy, if it is one. */
static doppel_status remove_text(dp_look *look, uint64_t number, uint64_t of, doppel_error *error) {
    const dp_redis_document *text = dp_redis_known_document(look->own, number);
    if (!text || (!text->there && !text->queued) || text->removed || text->trace.kind != DP_TRACE_TEXT ||
        text->trace.of != of)
        return DOPPEL_OK;
    const dp_pending removal = {.change = {.remove = number}, .removed = true, .trace = text->trace};
    return dp_redis_queue(look, &removal, error);
}

/* The words of copies that were not kept go with their original: those in its list, and those that are queued. */
static doppel_status remove_texts(dp_look *look, uint64_t number, doppel_error *error) {
    dp_redis_look *l = look->own;
    dp_numbers copies = {0};
    dp_redis_document *of = dp_redis_known_document(l, number);
    size_t listed = 0, queued = l->pending_count;
    doppel_status status = of->there ? dp_redis_fetch_links(look, number, &copies, &listed, error) : DOPPEL_OK;
    if (status == DOPPEL_OK)
        dp_redis_known_document(l, number)->links = listed;
    for (size_t i = 0; i < copies.count && status == DOPPEL_OK; i++)
        status = remove_text(look, copies.number[i], number, error);
    for (size_t i = 0; i < queued && status == DOPPEL_OK; i++)
        if (l->pending[i].pending.added)
            status = remove_text(look, l->pending[i].pending.change.number, number, error);
    dp_numbers_free(&copies);
    return status;
}

static doppel_status remove_old(dp_look *look, uint64_t number, doppel_error *error) {
    dp_redis_look *l = look->own;
    dp_redis_document *document = NULL;
    doppel_status status = dp_redis_find_document(look, number, &document, error);
    if (status != DOPPEL_OK || !document || (!document->there && !document->queued) || document->removed)
        return status;
    const dp_trace trace = document->trace;
    status = fetch_own_places(look, document, error);
    if (status != DOPPEL_OK)
        return status;
    for (size_t i = 0; i < l->asked.count; i++)
        if (!change_value(l, dp_redis_find_place(l, l->asked.place[i]), number, NULL))
            return dp_no_memory(error);
    document = dp_redis_known_document(l, number);
    if (!note_document(l, document))
        return dp_no_memory(error);
    document->removed = true;
    if (has_title(l, &trace))
        status = lead_to_title(look, trace.title, error);
    return status == DOPPEL_OK ? remove_texts(look, number, error) : status;
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

static doppel_status count_duplicate(dp_look *look, const dp_change *change, doppel_error *error) {
    dp_redis_look *l = look->own;
    dp_redis_document *original = NULL;
    if (!change->count || change->count_reason != DP_SAME_TITLE)
        return DOPPEL_OK;
    doppel_status status = dp_redis_find_document(look, change->count, &original, error);
    if (status != DOPPEL_OK || !original)
        return status;
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
        status = add_new(look, &copy.pending, error);
    if (status == DOPPEL_OK && pending->change.remove)
        status = remove_old(look, pending->change.remove, error);
    if (status == DOPPEL_OK)
        status = count_duplicate(look, &pending->change, error);
    if (status != DOPPEL_OK && l->pending_count > count) {
        undo_to(l, undo);
        l->pending_count = count;
    }
    return status;
}
