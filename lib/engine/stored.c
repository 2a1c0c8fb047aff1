/* stored.c - reading stored documents: by name (doppel_engine_get), all of them (doppel_engine_each), a page at a time
 * (doppel_engine_list), and the originals with the most copies (doppel_engine_groups).
 *
 * A list (doppel_stored_list) owns blocks of memory, into which everything stored for a number is copied. */
#include "engine/internal.h"

#include <math.h>
#include <stdlib.h>
#include <zstd.h>

/* ---- lists: memory that belongs to them ---- */

/* Bytes of a block, unless more are needed at once. */
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
    list_memory *h = list->memory;
    if (!h && !(list->memory = h = calloc(1, sizeof *h)))
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

/* A copy of the list's own; false: out of memory. */
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

/* Room for one more after the last, which counts once list->count says so; NULL: out of memory. */
static doppel_stored *next_stored(doppel_stored_list *list) {
    if (!list->memory && !take_memory(list, 0))
        return NULL;
    list_memory *h = list->memory;
    if (!dp_reserve(&list->stored, &h->stored_room, list->count + 1, sizeof *list->stored))
        return NULL;
    return &list->stored[list->count];
}

void dp_stored_list_clear(doppel_stored_list *list) {
    list_memory *h = list->memory;
    list->count = 0;
    for (list_block *next; h && h->blocks; h->blocks = next) {
        next = h->blocks->next;
        free(h->blocks);
    }
}

void doppel_stored_list_free(doppel_stored_list *list) {
    if (!list)
        return;
    dp_stored_list_clear(list);
    free(list->memory);
    free(list->stored);
    *list = (doppel_stored_list){0};
}

/* ---- what traces and records say ---- */

/* The content of a trace and a record, except names, counts, aliases, text and set. */
static doppel_stored stored_of(const dp_trace *trace, const dp_record *record) {
    doppel_stored stored = {.number = trace->number,
                            .reason = (doppel_reason)record->reason,
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

/* Copies of its names; false: out of memory. */
static bool copy_names(doppel_stored_list *list, const dp_record *record, doppel_stored *to) {
    return copy_slice(list, record->id, &to->id) && copy_slice(list, record->url, &to->url) &&
           copy_slice(list, record->canonical, &to->canonical) && copy_slice(list, record->title, &to->title) &&
           copy_slice(list, record->fields, &to->fields) && copy_slice(list, record->origin, &to->origin) &&
           (!record->reason || copy_slice(list, record->original_id, &to->original_id));
}

static void copy_counts(const dp_counts *counts, doppel_stored *to) {
    for (doppel_reason i = DOPPEL_REASON_URL; i < DOPPEL_REASONS; i++) {
        to->duplicates_by[i] = counts->by[dp_reason_counter(i)];
        to->duplicates += to->duplicates_by[i];
    }
    to->last_duplicate = counts->last;
}

/* ---- everything stored for a number ---- */

typedef struct stored_reading {
    dp_worker *worker;
    dp_look *look; /* the worker's */
    uint64_t number;
    doppel_stored_list *list;
    doppel_stored *to;
    doppel_error *error;
} stored_reading;

/* The copies that are linked to it: how many, and their URLs. */
static doppel_status read_aliases(stored_reading *r) {
    enum { FEW = 64 };
    uint64_t few[FEW], *links = few;
    size_t found = 0;
    DP_TRY(r->look->kind->links(r->look, r->number, few, FEW, &found, r->error));
    if (!found)
        return DOPPEL_OK;
    if (found > FEW) {
        if (!(links = take_memory(r->list, found * sizeof *links)))
            return dp_no_memory(r->error);
        DP_TRY(r->look->kind->links(r->look, r->number, links, found, &found, r->error));
    }
    doppel_slice *aliases = take_memory(r->list, found * sizeof *aliases);
    if (!aliases)
        return dp_no_memory(r->error);
    r->to->aliases = aliases;
    for (size_t i = 0; i < found; i++) {
        dp_record record;
        bool there = false;
        DP_TRY(r->look->kind->alive(r->look, links[i], &there, r->error));
        if (there)
            DP_TRY(dp_look_record(r->look, links[i], &record, &there, r->error));
        if (!there)
            continue;
        r->to->copies++;
        r->to->copies_by[record.reason]++;
        if (record.url.length && !copy_slice(r->list, record.url, &aliases[r->to->alias_count++]))
            return dp_no_memory(r->error);
    }
    return DOPPEL_OK;
}

/* A decompressed text; one that cannot be decompressed is left out. */
static doppel_status read_text(stored_reading *r, uint64_t length) {
    doppel_slice packed;
    DP_TRY(dp_look_read(r->look, DP_PART_TEXT, r->number, &packed, r->error));
    if (!packed.data)
        return DOPPEL_OK;
    char *to = take_memory(r->list, length);
    if (!to)
        return dp_no_memory(r->error);
    size_t size = ZSTD_decompress(to, length, packed.data, packed.length);
    if (!ZSTD_isError(size))
        r->to->text = (doppel_slice){to, size};
    return DOPPEL_OK;
}

/* A sample, with the keys of its bands: their number, each, the sample. */
static doppel_status read_sample(stored_reading *r, const dp_trace *trace) {
    doppel_slice sample;
    size_t head = 1 + 4 * trace->key_count;
    DP_TRY(dp_read_sample(r->worker, r->number, &sample, r->error));
    if (!sample.data)
        return DOPPEL_OK;
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
    DP_TRY(dp_read_set(r->worker, r->number, &set, &count, r->error));
    if (!set)
        return DOPPEL_OK;
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
    dp_counts counts;
    DP_TRY(dp_look_trace(r->look, r->number, &trace, found, r->error));
    *found = *found && dp_trace_is_kept(&trace);
    if (*found)
        DP_TRY(dp_look_record(r->look, r->number, &record, found, r->error));
    if (!*found)
        return DOPPEL_OK;
    *r->to = stored_of(&trace, &record);
    if (!copy_names(r->list, &record, r->to))
        return dp_no_memory(r->error);
    DP_TRY(r->look->kind->counts(r->look, r->number, &counts, r->error));
    copy_counts(&counts, r->to);
    DP_TRY(read_aliases(r));
    if (wanted->text && record.text_length)
        DP_TRY(read_text(r, record.text_length));
    if (record.sampled)
        r->to->set_count = record.set_count;
    if (!wanted->set || !record.set_count)
        return DOPPEL_OK;
    return record.sampled ? read_sample(r, &trace) : read_set(r);
}

doppel_status dp_stored_add(dp_worker *worker, uint64_t number, dp_wanted wanted, doppel_stored_list *list, bool *found,
                            doppel_error *error) {
    stored_reading r = {.worker = worker, .look = worker->look, .number = number, .list = list, .error = error};
    bool there;
    *found = false;
    if (!(r.to = next_stored(list)))
        return dp_no_memory(error);
    DP_TRY(r.look->kind->alive(r.look, number, &there, error));
    if (there)
        DP_TRY(read_number(&r, &wanted, found));
    list->count += *found;
    return DOPPEL_OK;
}

/* ---- one, by its name ---- */

/* A name as the canonical URL that it may be; the worker's. */
static doppel_status canonical(dp_worker *worker, doppel_slice name, doppel_slice *url, doppel_error *error) {
    dp_buffer *to = &worker->packed;
    if (!dp_reserve(&to->data, &to->capacity, 3 * name.length + 64, 1))
        return dp_no_memory(error);
    doppel_status status =
        doppel_url_canonical(name, NULL, worker->engine->options.url_without, to->data, to->capacity, &to->size);
    *url = (doppel_slice){to->data, to->size};
    return status == DOPPEL_OK ? status : dp_fail(error, status, "%s", doppel_status_name(status));
}

doppel_status dp_find_id_or_url(dp_worker *worker, doppel_slice name, uint64_t *number, doppel_error *error) {
    doppel_slice url;
    DP_TRY(dp_find_name(worker, DP_KEY_ID, name, number, error));
    if (*number || !name.length)
        return DOPPEL_OK;
    DP_TRY(canonical(worker, name, &url, error));
    return dp_find_name(worker, DP_KEY_URL, url, number, error);
}

static doppel_status get(dp_worker *worker, doppel_slice name, doppel_stored_list *list, doppel_error *error) {
    uint64_t number = 0;
    bool found;
    DP_TRY(dp_find_id_or_url(worker, name, &number, error));
    return number ? dp_stored_add(worker, number, (dp_wanted){.text = true, .set = true}, list, &found, error)
                  : DOPPEL_OK;
}

doppel_status doppel_engine_get(doppel_engine *engine, doppel_slice id_or_url, doppel_stored_list *list,
                                doppel_error *error) {
    bool again;
    doppel_status status;
    do {
        dp_worker *worker;
        dp_stored_list_clear(list);
        DP_TRY(dp_worker_begin(engine, DP_LOOK_READ, &worker, error));
        status = get(worker, id_or_url, list, error);
        again = status == DOPPEL_OK && !list->count && worker->look->kind->again(worker->look);
        dp_worker_end(worker);
    } while (again);
    return status;
}

/* ---- all of them ---- */

/* Documents that are read at a time, so that the caller may take its time with each. */
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
    if (status != DOPPEL_OK && status != DOPPEL_ERROR_INTERRUPTED)
        return status;
    for (size_t i = 0; i < c->count; i++) {
        bool found, alive = false;
        DP_TRY(dp_stored_add(worker, c->number[i], wanted, list, &found, error));
        if (!found)
            DP_TRY(worker->look->kind->alive(worker->look, c->number[i], &alive, error));
        c->damaged += alive; /* it exists, but its record cannot be read */
        *from = c->number[i] + 1;
    }
    return DOPPEL_OK;
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
        if ((status = dp_worker_begin(engine, DP_LOOK_LIST, &worker, error)) != DOPPEL_OK)
            break;
        status = read_chunk(worker, &from, &c, &list, error);
        dp_worker_end(worker);
        for (size_t i = 0; i < list.count && status == DOPPEL_OK; i++)
            if (!document(&list.stored[i], user))
                status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    }
    doppel_stored_list_free(&list);
    if (damaged)
        *damaged = c.damaged;
    return status;
}

/* ---- a page at a time ---- */

enum { LIST_LIMIT = 100, LIST_SCAN = 4096 };

typedef struct page_reading {
    doppel_list_options options;
    dp_worker *worker;
    doppel_stored_list *list;
    uint64_t next; /* the last number that was looked at; 0: there are no more */
    doppel_error *error;
} page_reading;

static bool is_wanted(const page_reading *p, const doppel_stored *stored) {
    const doppel_list_options *o = &p->options;
    bool copy = stored->original_id.data;
    if ((copy && o->kind == DOPPEL_LIST_ORIGINALS) || (!copy && o->kind == DOPPEL_LIST_COPIES))
        return false;
    return !o->wanted || o->wanted(stored, o->user);
}

/* Reads a number, and keeps it if it is wanted. */
static doppel_status list_number(page_reading *p, uint64_t number, bool *kept) {
    DP_TRY(dp_stored_add(p->worker, number, (dp_wanted){0}, p->list, kept, p->error));
    if (*kept && !is_wanted(p, &p->list->stored[p->list->count - 1])) {
        p->list->count--;
        *kept = false;
    }
    return DOPPEL_OK;
}

/* Documents by their numbers, ascending: those above `after`. */
static doppel_status list_numbers(page_reading *p, const uint64_t *number, size_t count) {
    size_t looked = 0;
    for (size_t i = 0; i < count; i++) {
        bool kept;
        if (number[i] <= p->options.after)
            continue;
        if (p->list->count == p->options.limit || looked++ == LIST_SCAN)
            return DOPPEL_OK;
        DP_TRY(list_number(p, number[i], &kept));
        p->next = number[i];
    }
    p->next = 0;
    return DOPPEL_OK;
}

/* The copies of a document. */
static doppel_status list_copies(page_reading *p) {
    dp_look *look = p->worker->look;
    uint64_t original = 0, *links = NULL;
    size_t found = 0, room = 0;
    DP_TRY(dp_find_id_or_url(p->worker, p->options.copies_of, &original, p->error));
    if (!original)
        return dp_fail(p->error, DOPPEL_ERROR_INPUT, "no document has this id or URL");
    do {
        room = found;
        if (!(links = take_memory(p->list, (room + 1) * sizeof *links)))
            return dp_no_memory(p->error);
        DP_TRY(look->kind->links(look, original, links, room, &found, p->error));
    } while (found > room);
    return list_numbers(p, links, found);
}

/* All documents, some hundred numbers at a time. */
static doppel_status list_all(page_reading *p) {
    number_chunk c = {0};
    dp_each each = {.part = DP_PART_TRACE,
                    .from = p->options.after + 1,
                    .to = UINT64_MAX,
                    .value = on_number,
                    .damaged = on_damaged,
                    .user = &c};
    p->worker->look->salvage = true;
    for (size_t looked = 0; looked < LIST_SCAN; looked += CHUNK) {
        c.count = 0;
        doppel_status status = p->worker->look->kind->each(p->worker->look, &each, p->error);
        if (status != DOPPEL_OK && status != DOPPEL_ERROR_INTERRUPTED)
            return status;
        DP_TRY(list_numbers(p, c.number, c.count));
        if (p->next || c.count < CHUNK)
            return DOPPEL_OK;
        p->next = c.number[CHUNK - 1];
        each.from = p->next + 1;
        if (p->list->count == p->options.limit)
            return DOPPEL_OK;
    }
    return DOPPEL_OK;
}

/* Those with a similar title. */
static doppel_status list_titled(page_reading *p) {
    dp_worker *worker = p->worker;
    dp_title_hits *hits = &worker->title_hits;
    doppel_item item = {.size = sizeof item, .document = {.text.data = "", .title = p->options.title}};
    dp_query query;
    DP_TRY(dp_engine_ask(worker, &item, &query, p->error));
    if (!worker->engine->rules.titles || !query.title_key.length)
        return DOPPEL_OK;
    const dp_title_query asked = {.title = query.title_key, .share = worker->engine->options.title_share};
    DP_TRY(worker->look->kind->find_titles(worker->look, &asked, hits, p->error));
    for (size_t i = 0; i < hits->count && p->list->count < p->options.limit; i++) {
        bool kept;
        DP_TRY(list_number(p, hits->hit[i].number, &kept));
        if (kept)
            p->list->stored[p->list->count - 1].similarity = hits->hit[i].similarity;
    }
    return DOPPEL_OK;
}

doppel_status doppel_engine_list(doppel_engine *engine, const doppel_list_options *options, doppel_stored_list *list,
                                 uint64_t *next, doppel_error *error) {
    page_reading p = {.options = {.size = sizeof p.options}, .list = list, .error = error};
    dp_stored_list_clear(list);
    if (options)
        dp_copy_options(&p.options, options, sizeof p.options);
    p.options.limit = p.options.limit ? p.options.limit : LIST_LIMIT;
    bool titled = p.options.title.data, copies = p.options.copies_of.data;
    DP_TRY(engine->known->kind->flush(engine->known, error));
    DP_TRY(dp_worker_begin(engine, titled || copies ? DP_LOOK_READ : DP_LOOK_LIST, &p.worker, error));
    doppel_status status = titled ? list_titled(&p) : copies ? list_copies(&p) : list_all(&p);
    dp_worker_end(p.worker);
    if (next)
        *next = p.next;
    return status;
}

/* ---- the largest groups ---- */

typedef struct group_size {
    uint64_t number, duplicates;
} group_size;

/* The largest so far and as many others: whenever there is no room left, the smaller half goes. */
typedef struct largest_groups {
    dp_look *look;
    group_size *group;
    size_t count, limit;
    doppel_error *error;
} largest_groups;

/* The most duplicates first, then the lower number. */
static int compare_groups(const void *left, const void *right) {
    const group_size *a = left, *b = right;
    if (a->duplicates != b->duplicates)
        return a->duplicates > b->duplicates ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static void drop_smaller(largest_groups *l) {
    qsort(l->group, l->count, sizeof *l->group, compare_groups);
    l->count = l->count < l->limit ? l->count : l->limit;
}

static doppel_status on_count(uint64_t number, const dp_counts *counts, void *user) {
    largest_groups *l = user;
    bool alive;
    DP_TRY(l->look->kind->alive(l->look, number, &alive, l->error));
    if (!alive)
        return DOPPEL_OK;
    l->group[l->count++] = (group_size){number, counts->by[0] + counts->by[1] + counts->by[2]};
    if (l->count > 2 * l->limit)
        drop_smaller(l);
    return DOPPEL_OK;
}

static doppel_status list_groups(dp_worker *worker, largest_groups *l, doppel_stored_list *list, doppel_error *error) {
    l->look = worker->look;
    DP_TRY(l->look->kind->each_count(l->look, on_count, l, error));
    drop_smaller(l);
    for (size_t i = 0; i < l->count; i++) {
        bool found;
        DP_TRY(dp_stored_add(worker, l->group[i].number, (dp_wanted){0}, list, &found, error));
    }
    return DOPPEL_OK;
}

doppel_status doppel_engine_groups(doppel_engine *engine, uint64_t limit, doppel_stored_list *list,
                                   doppel_error *error) {
    largest_groups l = {.limit = limit < 1U << 20 ? (size_t)limit : 1U << 20, .error = error};
    dp_worker *worker;
    dp_stored_list_clear(list);
    DP_TRY(engine->known->kind->flush(engine->known, error));
    if (!(l.group = calloc(2 * l.limit + 1, sizeof *l.group)))
        return dp_no_memory(error);
    doppel_status status = dp_worker_begin(engine, DP_LOOK_LIST, &worker, error);
    if (status == DOPPEL_OK) {
        status = list_groups(worker, &l, list, error);
        dp_worker_end(worker);
    }
    free(l.group);
    return status;
}
