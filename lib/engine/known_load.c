/* known_load.c - many traces at once. Each thread fills a desk of its own: keys in stages (keys_stage.c), fingerprints
 * and titles as they come. At the end keys and titles are built on all threads, and beside them the index of the
 * fingerprints. */
#include "engine/known_parts.h"

#include <stdlib.h>

typedef struct desk {
    pthread_mutex_t lock;
    dp_keys_stage *keys, *bands;
    uint64_t *fingerprints, *owners;
    size_t count, fingerprint_room, owner_room;
    uint64_t documents, copies, highest;
    dp_title_pile titles[DP_TITLE_SHARDS];
} desk;

struct dp_known_load {
    dp_known *known;
    size_t desks, threads;
    _Atomic doppel_status status; /* the first that went wrong */
    _Atomic size_t next;          /* task of the end */
    desk desk[];
};

static doppel_status fail(dp_known_load *load, doppel_status status) {
    doppel_status none = DOPPEL_OK;
    atomic_compare_exchange_strong(&load->status, &none, status);
    return status;
}

/* ---- desks ---- */

static void clear_desk(desk *d) {
    dp_keys_stage_free(d->keys);
    dp_keys_stage_free(d->bands);
    free(d->fingerprints);
    free(d->owners);
    for (size_t i = 0; i < DP_TITLE_SHARDS; i++)
        dp_title_pile_free(&d->titles[i]);
    pthread_mutex_destroy(&d->lock);
}

doppel_status dp_known_load_begin(dp_known *known, dp_known_load **load) {
    size_t threads = dp_thread_count(known->options.threads);
    dp_known_load *l = calloc(1, sizeof *l + threads * sizeof *l->desk);
    *load = NULL;
    if (!l)
        return DOPPEL_ERROR_MEMORY;
    l->known = known;
    l->threads = threads;
    for (; l->desks < threads && !pthread_mutex_init(&l->desk[l->desks].lock, NULL); l->desks++)
        ;
    if (!l->desks) {
        free(l);
        return DOPPEL_ERROR_MEMORY;
    }
    *load = l;
    return DOPPEL_OK;
}

/* A desk that is free, the same for the same thread where that is possible. */
static desk *take_desk(dp_known_load *load) {
    static _Atomic size_t threads;
    static _Thread_local size_t mine;
    if (!mine)
        mine = atomic_fetch_add(&threads, 1) + 1;
    for (size_t i = 0; i < load->desks; i++) {
        desk *d = &load->desk[(mine + i) % load->desks];
        if (!pthread_mutex_trylock(&d->lock))
            return d;
    }
    desk *d = &load->desk[mine % load->desks];
    pthread_mutex_lock(&d->lock);
    return d;
}

/* Stages are made when they are needed: a desk may find nobody to sit at it. */
static bool stage_all(dp_keys_stage **stage, dp_keys *keys, const uint64_t *hashes, size_t count, uint64_t number) {
    if (count && !*stage && !(*stage = dp_keys_stage_create(keys)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!dp_keys_stage_add(*stage, hashes[i], number))
            return false;
    return true;
}

static bool put_fingerprint(desk *d, const dp_trace *trace, size_t words) {
    if (!dp_reserve(&d->owners, &d->owner_room, d->count + 1, sizeof *d->owners) ||
        !dp_reserve(&d->fingerprints, &d->fingerprint_room, (d->count + 1) * words, sizeof *d->fingerprints))
        return false;
    memcpy(d->fingerprints + d->count * words, trace->fingerprint, words * sizeof *d->fingerprints);
    d->owners[d->count++] = trace->number;
    return true;
}

static bool put(dp_known_load *load, desk *d, const dp_trace *trace) {
    dp_known *known = load->known;
    uint64_t keys[DP_KEY_KINDS], bands[DP_MOST_BANDS];
    if (!dp_alive_reserve(&known->alive, trace->number) ||
        !stage_all(&d->keys, known->keys, keys, dp_known_keys(trace, keys), trace->number) ||
        !stage_all(&d->bands, known->bands, bands, dp_known_bands(known, trace, bands), trace->number) ||
        (dp_known_near(known, trace) && !put_fingerprint(d, trace, known->options.bits > 64 ? 2 : 1)) ||
        (dp_known_titled(known, trace) &&
         !dp_title_pile_add(&d->titles[dp_known_titles_shard(trace->title)], trace->title, trace->number)))
        return false;
    dp_alive_set(&known->alive, trace->number, trace->expires);
    d->documents += trace->kind == DP_TRACE_DOCUMENT;
    d->copies += trace->kind == DP_TRACE_COPY;
    d->highest = trace->number > d->highest ? trace->number : d->highest;
    return true;
}

doppel_status dp_known_load_add(dp_known_load *load, const dp_trace *trace) {
    doppel_status status = dp_known_check(trace);
    if (status != DOPPEL_OK)
        return fail(load, status);
    if (dp_trace_is_removal(trace))
        return DOPPEL_OK;
    desk *d = take_desk(load);
    bool taken = put(load, d, trace);
    pthread_mutex_unlock(&d->lock);
    return taken ? DOPPEL_OK : fail(load, DOPPEL_ERROR_MEMORY);
}

/* ---- the end ---- */

/* Brings all fingerprints to the first desk: what is inserted at once is one run, and found the fastest. */
static bool gather(dp_known_load *load) {
    desk *first = &load->desk[0];
    size_t words = load->known->options.bits > 64 ? 2 : 1;
    for (desk *d = first + 1; d < load->desk + load->desks; d++) {
        if (!dp_reserve(&first->owners, &first->owner_room, first->count + d->count, sizeof *first->owners) ||
            !dp_reserve(&first->fingerprints, &first->fingerprint_room, (first->count + d->count) * words,
                        sizeof *first->fingerprints))
            return false;
        if (d->count) {
            memcpy(first->owners + first->count, d->owners, d->count * sizeof *d->owners);
            memcpy(first->fingerprints + first->count * words, d->fingerprints,
                   d->count * words * sizeof *d->fingerprints);
        }
        first->count += d->count;
        free(d->owners);
        free(d->fingerprints);
        d->owners = d->fingerprints = NULL;
    }
    return true;
}

static doppel_status insert_fingerprints(dp_known_load *load) {
    desk *first = &load->desk[0];
    if (!load->known->near)
        return DOPPEL_OK;
    if (!gather(load))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = DOPPEL_OK;
    if (first->count)
        status = doppel_index_insert_many(load->known->near, first->fingerprints, first->owners, NULL, first->count);
    free(first->owners);
    free(first->fingerprints);
    first->owners = first->fingerprints = NULL;
    return status;
}

/* What stands on all desks for a shard. */
static doppel_status add_titles(dp_known_load *load, size_t shard) {
    doppel_status status = DOPPEL_OK;
    if (!load->known->titles)
        return status;
    dp_title_pile *piles[DP_MAX_THREADS];
    for (size_t i = 0; i < load->desks; i++)
        piles[i] = &load->desk[i].titles[shard];
    status = dp_title_piles_load(load->known->titles->shard[shard].index, piles, load->desks);
    for (size_t i = 0; i < load->desks; i++)
        dp_title_pile_free(piles[i]);
    return status;
}

/* The keys of a part, or the bands, of all desks. */
static bool build_keys(dp_known_load *load, bool bands, size_t part, dp_keys_scratch *scratch) {
    dp_keys_stage *stages[DP_MAX_THREADS];
    dp_keys *keys = bands ? load->known->bands : load->known->keys;
    for (size_t i = 0; i < load->desks; i++)
        stages[i] = bands ? load->desk[i].bands : load->desk[i].keys;
    return !keys || dp_keys_build(keys, stages, load->desks, part, scratch);
}

/* The longest tasks come first. */
enum { FINGERPRINTS = 0, FIRST_TITLES = 1, FIRST_BANDS = FIRST_TITLES + DP_TITLE_SHARDS };
enum { FIRST_KEYS = FIRST_BANDS + DP_KEY_PARTS, TASKS = FIRST_KEYS + DP_KEY_PARTS };

static doppel_status run_task(dp_known_load *load, size_t task, dp_keys_scratch *scratch) {
    if (task == FINGERPRINTS)
        return insert_fingerprints(load);
    if (task < FIRST_BANDS)
        return add_titles(load, task - FIRST_TITLES);
    bool bands = task < FIRST_KEYS;
    return build_keys(load, bands, task - (bands ? FIRST_BANDS : FIRST_KEYS), scratch) ? DOPPEL_OK
                                                                                       : DOPPEL_ERROR_MEMORY;
}

static void run_tasks(void *user, size_t thread) {
    dp_known_load *load = user;
    dp_keys_scratch scratch = {0};
    (void)thread;
    for (size_t task; (task = atomic_fetch_add(&load->next, 1)) < TASKS;) {
        doppel_status status = atomic_load(&load->status) == DOPPEL_OK ? run_task(load, task, &scratch) : DOPPEL_OK;
        if (status != DOPPEL_OK)
            fail(load, status);
    }
    dp_keys_scratch_free(&scratch);
}

static void count_desk(dp_known *known, const desk *d) {
    atomic_fetch_add(&known->documents, d->documents);
    atomic_fetch_add(&known->copies, d->copies);
    dp_known_raise(known, d->highest);
}

doppel_status dp_known_load_end(dp_known_load *load) {
    for (size_t i = 0; i < load->desks; i++)
        count_desk(load->known, &load->desk[i]);
    if (atomic_load(&load->status) == DOPPEL_OK)
        dp_run_threads(load->threads, run_tasks, load);
    doppel_status status = atomic_load(&load->status);
    for (size_t i = 0; i < load->desks; i++)
        clear_desk(&load->desk[i]);
    free(load);
    return status;
}
