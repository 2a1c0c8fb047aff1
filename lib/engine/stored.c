/* stored.c - documents as they are remembered, read back: by name (doppel_engine_get), all of them
 * (doppel_engine_each), and the originals with the most copies (doppel_engine_groups).
 *
 * A list (doppel_stored_list) owns blocks of memory, into which everything that is known of a number is copied. */
#include "engine/internal.h"

#include <math.h>
#include <stdlib.h>
#include <zstd.h>

/* ---- lists: memory that belongs to them ---- */

/* Blocks of so many bytes, or of what is needed at once. */
enum { BLOCK = 16384 };

typedef struct list_block {
    struct list_block *next;
    size_t used, room;
    char bytes[];
} list_block;

typedef struct list_memory {
    list_block *blocks;
    size_t stored_room;
} list_memory;

/* Memory of the list, on a multiple of 8; NULL: there is none. */
static void *take_memory(doppel_stored_list *list, size_t length) {
    list_memory *h = list->held;
    if (!h && !(list->held = h = calloc(1, sizeof *h)))
        return NULL;
    length = (length + 8) & ~(size_t)7;
    if (!h->blocks || h->blocks->room - h->blocks->used < length) {
        size_t room = length > BLOCK ? length : BLOCK;
        list_block *made = malloc(sizeof *made + room);
        if (!made)
            return NULL;
        *made = (list_block){.next = h->blocks, .room = room};
        h->blocks = made;
    }
    h->blocks->used += length;
    return h->blocks->bytes + h->blocks->used - length;
}

/* A copy of the list's own; false: no memory. */
static bool copy_slice(doppel_stored_list *list, doppel_slice from, doppel_slice *to) {
    *to = (doppel_slice){NULL, 0};
    if (!from.data)
        return true;
    char *bytes = take_memory(list, from.length);
    if (!bytes)
        return false;
    memcpy(bytes, from.data, from.length);
    *to = (doppel_slice){bytes, from.length};
    return true;
}

/* Room for one more after the last, which counts once list->count says so; NULL: no memory. */
static doppel_stored *next_stored(doppel_stored_list *list) {
    if (!list->held && !take_memory(list, 0))
        return NULL;
    list_memory *h = list->held;
    if (!dp_reserve(&list->stored, &h->stored_room, list->count + 1, sizeof *list->stored))
        return NULL;
    return &list->stored[list->count];
}

/* A text as it is kept, unpacked; one that cannot be is left out. False: no memory. */
static bool unpack_text(doppel_stored_list *list, doppel_slice packed, uint64_t length, doppel_slice *text) {
    char *to = take_memory(list, length);
    if (!to)
        return false;
    size_t size = ZSTD_decompress(to, length, packed.data, packed.length);
    if (!ZSTD_isError(size))
        *text = (doppel_slice){to, size};
    return true;
}

static void free_blocks(list_memory *h, list_block *until) {
    for (list_block *b = h->blocks, *next; b && b != until; b = next) {
        next = b->next;
        free(b);
    }
    h->blocks = until;
}

void dp_stored_list_clear(doppel_stored_list *list) {
    list->count = 0;
    if (list->held)
        free_blocks(list->held, NULL);
}

void doppel_stored_list_free(doppel_stored_list *list) {
    if (!list)
        return;
    dp_stored_list_clear(list);
    free(list->held);
    free(list->stored);
    *list = (doppel_stored_list){0};
}

/* ---- what traces and records say ---- */

/* What a trace and a record say, but for names, counts, aliases, text and set. */
static doppel_stored stored_of(const dp_trace *trace, const dp_record *record) {
    doppel_stored stored = {.number = trace->number,
                            .reason = dp_reason_name((dp_reason)record->reason),
                            .evidence = record->reason ? record->evidence : dp_evidence_none(),
                            .added = trace->added,
                            .expires = trace->expires,
                            .words = record->words,
                            .fingerprint = {trace->fingerprint[0], trace->fingerprint[1]},
                            .similarity = NAN,
                            .containment = NAN,
                            .distance = -1};
    memcpy(stored.digest, trace->digest, sizeof stored.digest);
    return stored;
}

/* Copies of its names; false: no memory. */
static bool copy_names(doppel_stored_list *list, const dp_record *record, doppel_stored *to) {
    return copy_slice(list, record->id, &to->id) && copy_slice(list, record->url, &to->url) &&
           copy_slice(list, record->canonical, &to->canonical) && copy_slice(list, record->title, &to->title) &&
           copy_slice(list, record->fields, &to->fields) && copy_slice(list, record->origin, &to->origin) &&
           (!record->reason || copy_slice(list, record->original_id, &to->original_id));
}

static void copy_counts(const dp_counts *counts, doppel_stored *to) {
    for (int i = 0; i < 3; i++) {
        to->duplicates_by[i] = counts->by[i];
        to->duplicates += counts->by[i];
    }
    to->last_duplicate = counts->last;
}

/* ---- all there is of a number ---- */

typedef struct stored_reading {
    dp_worker *worker;
    dp_look *look; /* the worker's */
    uint64_t number;
    doppel_stored_list *list;
    doppel_stored *to;
    doppel_error *error;
} stored_reading;

/* The URLs of the copies that are linked to it. */
static doppel_status read_aliases(stored_reading *r) {
    uint64_t few[64], *links = few;
    size_t found = 0;
    doppel_status status = r->look->kind->links(r->look, r->number, few, 64, &found, r->error);
    if (status != DOPPEL_OK || !found)
        return status;
    if (found > 64) {
        if (!(links = take_memory(r->list, found * sizeof *links)))
            return dp_no_memory(r->error);
        status = r->look->kind->links(r->look, r->number, links, found, &found, r->error);
    }
    doppel_slice *aliases = take_memory(r->list, found * sizeof *aliases);
    if (!aliases)
        return dp_no_memory(r->error);
    r->to->aliases = aliases;
    for (size_t i = 0; i < found && status == DOPPEL_OK; i++) {
        dp_record record;
        bool there = false;
        status = r->look->kind->alive(r->look, links[i], &there, r->error);
        if (status == DOPPEL_OK && there)
            status = dp_look_record(r->look, links[i], &record, &there, r->error);
        if (status == DOPPEL_OK && there && record.url.length &&
            !copy_slice(r->list, record.url, &aliases[r->to->alias_count++]))
            status = dp_no_memory(r->error);
    }
    return status;
}

static doppel_status read_text(stored_reading *r, uint64_t length) {
    doppel_slice packed;
    doppel_status status = dp_look_read(r->look, DP_PART_TEXT, r->number, &packed, r->error);
    if (status != DOPPEL_OK || !packed.data)
        return status;
    return unpack_text(r->list, packed, length, &r->to->text) ? DOPPEL_OK : dp_no_memory(r->error);
}

/* A sample, with the keys of its bands: their number, each, the sample. */
static doppel_status read_sample(stored_reading *r, const dp_trace *trace) {
    doppel_slice sample;
    doppel_status status = dp_read_sample(r->worker, r->number, &sample, r->error);
    size_t head = 1 + 4 * trace->key_count;
    if (status != DOPPEL_OK || !sample.data)
        return status;
    char *kept = take_memory(r->list, head + sample.length);
    if (!kept)
        return dp_no_memory(r->error);
    kept[0] = (char)trace->key_count;
    if (trace->key_count)
        memcpy(kept + 1, trace->keys, 4 * trace->key_count);
    memcpy(kept + head, sample.data, sample.length);
    r->to->sample = (doppel_slice){kept, head + sample.length};
    return DOPPEL_OK;
}

static doppel_status read_set(stored_reading *r) {
    const uint64_t *set;
    size_t count;
    doppel_status status = dp_read_set(r->worker, r->number, &set, &count, r->error);
    if (status != DOPPEL_OK || !set)
        return status;
    uint64_t *kept = take_memory(r->list, count * sizeof *kept);
    if (!kept)
        return dp_no_memory(r->error);
    memcpy(kept, set, count * sizeof *kept);
    r->to->set = kept;
    r->to->set_count = count;
    return DOPPEL_OK;
}

static doppel_status read_number(stored_reading *r, const dp_wanted *wanted, bool *found) {
    dp_trace trace;
    dp_record record;
    doppel_status status = dp_look_trace(r->look, r->number, &trace, found, r->error);
    if (status == DOPPEL_OK && *found && !dp_trace_is_kept(&trace))
        *found = false;
    if (status == DOPPEL_OK && *found)
        status = dp_look_record(r->look, r->number, &record, found, r->error);
    if (status != DOPPEL_OK || !*found)
        return status;
    dp_counts counts;
    bool there = true;
    *r->to = stored_of(&trace, &record);
    if (trace.kind == DP_TRACE_COPY)
        status = r->look->kind->alive(r->look, trace.of, &there, r->error);
    r->to->original_gone = !there;
    if (status == DOPPEL_OK && !copy_names(r->list, &record, r->to))
        return dp_no_memory(r->error);
    DP_THEN(status, r->look->kind->counts(r->look, r->number, &counts, r->error));
    if (status == DOPPEL_OK)
        copy_counts(&counts, r->to);
    DP_THEN(status, read_aliases(r));
    if (status == DOPPEL_OK && wanted->text && record.text_length)
        status = read_text(r, record.text_length);
    if (record.sampled)
        r->to->set_count = record.set_count;
    if (status == DOPPEL_OK && wanted->set && record.set_count)
        status = record.sampled ? read_sample(r, &trace) : read_set(r);
    return status;
}

doppel_status dp_stored_add(dp_worker *worker, uint64_t number, dp_wanted wanted, doppel_stored_list *list, bool *found,
                            doppel_error *error) {
    stored_reading r = {.worker = worker, .look = worker->look, .number = number, .list = list, .error = error};
    bool there;
    *found = false;
    if (!(r.to = next_stored(list)))
        return dp_no_memory(error);
    doppel_status status = r.look->kind->alive(r.look, number, &there, error);
    if (status != DOPPEL_OK || !there)
        return status;
    status = read_number(&r, &wanted, found);
    list->count += status == DOPPEL_OK && *found;
    return status;
}

/* ---- one, by its name ---- */

/* A name as the canonical URL that it may be; the worker's. */
static doppel_status canonical(doppel_engine *engine, dp_worker *worker, doppel_slice name, doppel_slice *url,
                               doppel_error *error) {
    dp_buffer *to = &worker->packed;
    if (!dp_reserve(&to->data, &to->capacity, 3 * name.length + 64, 1))
        return dp_no_memory(error);
    doppel_status status = doppel_url_canonical(name.data, name.length, NULL, engine->options.url_without, to->data,
                                                to->capacity, &to->size);
    *url = (doppel_slice){to->data, to->size};
    return status == DOPPEL_OK ? status : dp_fail(error, status, "%s", doppel_status_name(status));
}

doppel_status dp_engine_resolve(doppel_engine *engine, dp_worker *worker, doppel_slice name, uint64_t *number,
                                doppel_error *error) {
    doppel_slice url;
    doppel_status status = dp_find_id(worker, name, number, error);
    if (status != DOPPEL_OK || *number || !name.length)
        return status;
    status = canonical(engine, worker, name, &url, error);
    return status == DOPPEL_OK ? dp_find_url(worker, url, number, error) : status;
}

doppel_status doppel_engine_get(doppel_engine *engine, const char *id_or_url, size_t length, doppel_stored_list *list,
                                doppel_error *error) {
    dp_worker *worker;
    dp_stored_list_clear(list);
    doppel_status status = dp_worker_take(engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    do {
        uint64_t number = 0;
        bool found;
        dp_stored_list_clear(list);
        status = dp_look_begin(worker->look, DP_LOOK_READ, error);
        if (status != DOPPEL_OK)
            break;
        status = dp_engine_resolve(engine, worker, (doppel_slice){id_or_url, length}, &number, error);
        if (status == DOPPEL_OK && number)
            status = dp_stored_add(worker, number, (dp_wanted){.text = true, .set = true}, list, &found, error);
        (void)worker->look->kind->end(worker->look, NULL);
    } while (status == DOPPEL_OK && !list->count && worker->look->kind->again(worker->look));
    dp_worker_give(engine, worker);
    return status;
}

/* ---- all of them ---- */

/* So many are read at a time, so that whoever is given them may take his time. */
enum { CHUNK = 256 };

typedef struct number_chunk {
    uint64_t number[CHUNK];
    size_t count;
    uint64_t damaged;
} number_chunk;

static doppel_status on_number(uint64_t number, doppel_slice bytes, void *user) {
    number_chunk *c = user;
    dp_trace trace;
    bool whole = dp_trace_decode(bytes, &trace);
    c->damaged += !whole;
    if (!whole || !dp_trace_is_kept(&trace))
        return DOPPEL_OK;
    c->number[c->count++] = number;
    return c->count < CHUNK ? DOPPEL_OK : DOPPEL_ERROR_INTERRUPTED;
}

static void on_damaged(uint64_t number, void *user) {
    number_chunk *c = user;
    (void)number;
    c->damaged++;
}

/* Reads the next documents from `*from` on, in a look that has begun. */
static doppel_status read_chunk(dp_worker *worker, uint64_t *from, number_chunk *c, doppel_stored_list *list,
                                doppel_error *error) {
    const dp_wanted wanted = {.text = true, .set = true};
    const dp_each each = {
        .part = DP_PART_TRACE, .from = *from, .to = UINT64_MAX, .value = on_number, .damaged = on_damaged, .user = c};
    c->count = 0;
    worker->look->salvage = true;
    doppel_status status = worker->look->kind->each(worker->look, &each, error);
    if (status == DOPPEL_ERROR_INTERRUPTED)
        status = DOPPEL_OK;
    for (size_t i = 0; i < c->count && status == DOPPEL_OK; i++) {
        bool found, alive = false;
        status = dp_stored_add(worker, c->number[i], wanted, list, &found, error);
        if (status == DOPPEL_OK && !found)
            status = worker->look->kind->alive(worker->look, c->number[i], &alive, error);
        c->damaged += alive; /* it is there, but its record cannot be read */
        *from = c->number[i] + 1;
    }
    return status;
}

doppel_status doppel_engine_each(doppel_engine *engine, bool (*document)(const doppel_stored *stored, void *user),
                                 void *user, uint64_t *damaged, doppel_error *error) {
    number_chunk c = {.count = CHUNK};
    uint64_t from = 1;
    doppel_stored_list list = {0};
    doppel_status status = engine->known->kind->flush(engine->known, error);
    while (status == DOPPEL_OK && c.count == CHUNK) {
        dp_worker *worker;
        dp_stored_list_clear(&list);
        if ((status = dp_worker_take(engine, &worker, error)) != DOPPEL_OK)
            break;
        status = dp_look_begin(worker->look, DP_LOOK_LIST, error);
        if (status == DOPPEL_OK) {
            status = read_chunk(worker, &from, &c, &list, error);
            (void)worker->look->kind->end(worker->look, NULL);
        }
        dp_worker_give(engine, worker);
        for (size_t i = 0; i < list.count && status == DOPPEL_OK; i++)
            if (!document(&list.stored[i], user))
                status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    }
    doppel_stored_list_free(&list);
    if (damaged)
        *damaged = c.damaged;
    return status;
}

/* ---- the largest groups: a heap over all that were counted ---- */

typedef struct group_size {
    uint64_t number, duplicates;
} group_size;

/* The largest groups so far, as a heap with the smallest on top; sorted, the largest first. */
typedef struct largest {
    group_size *group;
    size_t count, room;
} largest;

/* Whether a group comes behind another: fewer duplicates, then the higher number. */
static bool is_less(const group_size *a, const group_size *b) {
    return a->duplicates != b->duplicates ? a->duplicates < b->duplicates : a->number > b->number;
}

static void sift_down(largest *l) {
    for (size_t i = 0, child; (child = 2 * i + 1) < l->count; i = child) {
        if (child + 1 < l->count && is_less(&l->group[child + 1], &l->group[child]))
            child++;
        if (!is_less(&l->group[child], &l->group[i]))
            return;
        group_size kept = l->group[i];
        l->group[i] = l->group[child];
        l->group[child] = kept;
    }
}

static void add_up(largest *l, group_size one) {
    size_t i = l->count++;
    for (; i && is_less(&one, &l->group[(i - 1) / 2]); i = (i - 1) / 2)
        l->group[i] = l->group[(i - 1) / 2];
    l->group[i] = one;
}

static void add_group(largest *l, uint64_t number, const dp_counts *counts) {
    group_size one = {number, counts->by[0] + counts->by[1] + counts->by[2]};
    if (l->count < l->room) {
        add_up(l, one);
    } else if (l->room && is_less(&l->group[0], &one)) {
        l->group[0] = one;
        sift_down(l);
    }
}

static int compare_groups(const void *a, const void *b) {
    return is_less(a, b) ? 1 : -1;
}

typedef struct group_count {
    dp_look *look;
    largest largest;
    doppel_error *error;
} group_count;

static doppel_status on_count(uint64_t number, const dp_counts *counts, void *user) {
    group_count *c = user;
    bool alive;
    doppel_status status = c->look->kind->alive(c->look, number, &alive, c->error);
    if (status == DOPPEL_OK && alive)
        add_group(&c->largest, number, counts);
    return status;
}

static doppel_status list_groups(dp_worker *worker, largest *l, doppel_stored_list *list, doppel_error *error) {
    group_count c = {.look = worker->look, .largest = *l, .error = error};
    doppel_status status = worker->look->kind->each_count(worker->look, on_count, &c, error);
    *l = c.largest;
    qsort(l->group, l->count, sizeof *l->group, compare_groups);
    for (size_t i = 0; i < l->count && status == DOPPEL_OK; i++) {
        bool found;
        status = dp_stored_add(worker, l->group[i].number, (dp_wanted){0}, list, &found, error);
    }
    return status;
}

doppel_status doppel_engine_groups(doppel_engine *engine, uint64_t limit, doppel_stored_list *list,
                                   doppel_error *error) {
    largest l = {.room = limit < 1U << 20 ? (size_t)limit : 1U << 20};
    dp_worker *worker;
    dp_stored_list_clear(list);
    doppel_status status = engine->known->kind->flush(engine->known, error);
    DP_THEN(status, dp_worker_take(engine, &worker, error));
    if (status != DOPPEL_OK)
        return status;
    if (!(l.group = calloc(l.room + 1, sizeof *l.group)))
        status = dp_no_memory(error);
    DP_THEN(status, dp_look_begin(worker->look, DP_LOOK_LIST, error));
    if (status == DOPPEL_OK) {
        status = list_groups(worker, &l, list, error);
        (void)worker->look->kind->end(worker->look, NULL);
    }
    free(l.group);
    dp_worker_give(engine, worker);
    return status;
}
