/* directory_load.c - many traces at once. Each thread fills a desk of its own: keys in stages (keys.h), fingerprints
 * and titles as they come. At the end keys and titles are built on all threads, and beside them the index of the
 * fingerprints. */
#include "known/directory_parts.h"

#include <stdlib.h>

/* ---- titles that wait to be loaded ----
 *
 * Owners of a title are best added in the order of their numbers. Titles come in that order, but on several threads: so
 * those of one pile whose numbers differ in the lowest bits only are a stretch, and stretches of all piles are sorted.
 */

/* Titles of numbers that stand together. */
typedef struct title_stretch {
    uint64_t number; /* of the first */
    size_t start, end;
    const char *titles; /* what both count in */
} title_stretch;

typedef struct title_pile {
    dp_buffer titles; /* each: number, length, bytes */
    title_stretch *stretch;
    size_t count, room;
} title_pile;

enum { STRETCH_BITS = 12 };

static void title_pile_free(title_pile *pile) {
    dp_buffer_free(&pile->titles);
    free(pile->stretch);
    *pile = (title_pile){0};
}

static bool title_pile_add(title_pile *pile, doppel_slice title, uint64_t number) {
    title_stretch *last = pile->count ? &pile->stretch[pile->count - 1] : NULL;
    if (!last || last->number >> STRETCH_BITS != number >> STRETCH_BITS) {
        if (!dp_reserve(&pile->stretch, &pile->room, pile->count + 1, sizeof *pile->stretch))
            return false;
        last = &pile->stretch[pile->count++];
        *last = (title_stretch){.number = number, .start = pile->titles.size, .end = pile->titles.size};
    }
    uint64_t head[2] = {number, title.length};
    bool added =
        dp_buffer_add(&pile->titles, head, sizeof head) && dp_buffer_add(&pile->titles, title.data, title.length);
    if (added)
        last->end = pile->titles.size;
    return added;
}

static int compare_stretches(const void *first, const void *second) {
    const title_stretch *a = first, *b = second;
    return a->number < b->number ? -1 : a->number > b->number;
}

static doppel_status add_stretch(dp_titles_index *index, const title_stretch *s) {
    doppel_status status = DOPPEL_OK;
    for (const char *at = s->titles + s->start, *end = s->titles + s->end; at < end && status == DOPPEL_OK;) {
        uint64_t head[2];
        memcpy(head, at, sizeof head);
        at += sizeof head;
        status = dp_titles_index_add(index, at, (size_t)head[1], head[0]);
        at += (size_t)head[1];
    }
    return status;
}

static doppel_status title_piles_load(dp_titles_index *index, title_pile *const *piles, size_t count) {
    size_t stretches = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        stretches += piles[i]->count;
    title_stretch *all = malloc((stretches + 1) * sizeof *all);
    if (!all)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < piles[i]->count; j++) {
            all[at] = piles[i]->stretch[j];
            all[at++].titles = piles[i]->titles.data;
        }
    qsort(all, stretches, sizeof *all, compare_stretches);
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < stretches && status == DOPPEL_OK; i++)
        status = add_stretch(index, &all[i]);
    free(all);
    return status;
}

/* ---- loading ---- */

typedef struct desk {
    pthread_mutex_t lock;
    dp_keys_stage *keys, *bands;
    uint64_t *fingerprints, *owners;
    size_t count, fingerprint_room, owner_room;
    uint64_t documents, copies, highest;
    title_pile titles[DP_TITLE_SHARDS];
} desk;

struct dp_directory_load {
    dp_directory *directory;
    size_t desks, threads;
    _Atomic doppel_status status; /* the first that went wrong */
    _Atomic size_t next;          /* task of the end */
    desk desk[];
};

static doppel_status fail(dp_directory_load *load, doppel_status status) {
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
        title_pile_free(&d->titles[i]);
    pthread_mutex_destroy(&d->lock);
}

doppel_status dp_directory_load_begin(dp_directory *directory, dp_directory_load **load) {
    size_t threads = dp_thread_count(directory->options.threads);
    dp_directory_load *l = calloc(1, sizeof *l + threads * sizeof *l->desk);
    *load = NULL;
    if (!l)
        return DOPPEL_ERROR_MEMORY;
    l->directory = directory;
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
static desk *take_desk(dp_directory_load *load) {
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

static bool put(dp_directory_load *load, desk *d, const dp_trace *trace) {
    dp_directory *directory = load->directory;
    uint64_t keys[DP_KEY_KINDS], bands[DP_MOST_BANDS];
    if (!dp_alive_reserve(&directory->alive, trace->number) ||
        !stage_all(&d->keys, directory->keys, keys, dp_directory_keys(trace, keys), trace->number) ||
        !stage_all(&d->bands, directory->bands, bands, dp_directory_bands(directory, trace, bands), trace->number) ||
        (dp_directory_near(directory, trace) && !put_fingerprint(d, trace, directory->options.bits > 64 ? 2 : 1)) ||
        (dp_directory_titled(directory, trace) &&
         !title_pile_add(&d->titles[dp_directory_titles_shard(trace->title)], trace->title, trace->number)))
        return false;
    dp_alive_set(&directory->alive, trace->number, trace->expires);
    d->documents += trace->kind == DP_TRACE_DOCUMENT;
    d->copies += trace->kind == DP_TRACE_COPY;
    d->highest = trace->number > d->highest ? trace->number : d->highest;
    return true;
}

doppel_status dp_directory_load_add(dp_directory_load *load, const dp_trace *trace) {
    doppel_status status = dp_directory_check(trace);
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
static bool gather(dp_directory_load *load) {
    desk *first = &load->desk[0];
    size_t words = load->directory->options.bits > 64 ? 2 : 1;
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

static doppel_status insert_fingerprints(dp_directory_load *load) {
    desk *first = &load->desk[0];
    if (!load->directory->near)
        return DOPPEL_OK;
    if (!gather(load))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = DOPPEL_OK;
    if (first->count)
        status =
            doppel_index_insert_many(load->directory->near, first->fingerprints, first->owners, NULL, first->count);
    free(first->owners);
    free(first->fingerprints);
    first->owners = first->fingerprints = NULL;
    return status;
}

/* What stands on all desks for a shard. */
static doppel_status add_titles(dp_directory_load *load, size_t shard) {
    doppel_status status = DOPPEL_OK;
    if (!load->directory->titles)
        return status;
    title_pile *piles[DP_MAX_THREADS];
    for (size_t i = 0; i < load->desks; i++)
        piles[i] = &load->desk[i].titles[shard];
    status = title_piles_load(load->directory->titles->shard[shard].index, piles, load->desks);
    for (size_t i = 0; i < load->desks; i++)
        title_pile_free(piles[i]);
    return status;
}

/* The keys of a part, or the bands, of all desks. */
static bool build_keys(dp_directory_load *load, bool bands, size_t part, dp_keys_scratch *scratch) {
    dp_keys_stage *stages[DP_MAX_THREADS];
    dp_keys *keys = bands ? load->directory->bands : load->directory->keys;
    for (size_t i = 0; i < load->desks; i++)
        stages[i] = bands ? load->desk[i].bands : load->desk[i].keys;
    return !keys || dp_keys_build(keys, stages, load->desks, part, scratch);
}

/* The longest tasks come first. */
enum { FINGERPRINTS = 0, FIRST_TITLES = 1, FIRST_BANDS = FIRST_TITLES + DP_TITLE_SHARDS };
enum { FIRST_KEYS = FIRST_BANDS + DP_KEY_PARTS, TASKS = FIRST_KEYS + DP_KEY_PARTS };

static doppel_status run_task(dp_directory_load *load, size_t task, dp_keys_scratch *scratch) {
    if (task == FINGERPRINTS)
        return insert_fingerprints(load);
    if (task < FIRST_BANDS)
        return add_titles(load, task - FIRST_TITLES);
    bool bands = task < FIRST_KEYS;
    return build_keys(load, bands, task - (bands ? FIRST_BANDS : FIRST_KEYS), scratch) ? DOPPEL_OK
                                                                                       : DOPPEL_ERROR_MEMORY;
}

static void run_tasks(void *user, size_t thread) {
    dp_directory_load *load = user;
    dp_keys_scratch scratch = {0};
    (void)thread;
    for (size_t task; (task = atomic_fetch_add(&load->next, 1)) < TASKS;) {
        doppel_status status = atomic_load(&load->status) == DOPPEL_OK ? run_task(load, task, &scratch) : DOPPEL_OK;
        if (status != DOPPEL_OK)
            fail(load, status);
    }
    dp_keys_scratch_free(&scratch);
}

static void count_desk(dp_directory *directory, const desk *d) {
    atomic_fetch_add(&directory->documents, d->documents);
    atomic_fetch_add(&directory->copies, d->copies);
    dp_directory_raise(directory, d->highest);
}

doppel_status dp_directory_load_end(dp_directory_load *load) {
    for (size_t i = 0; i < load->desks; i++)
        count_desk(load->directory, &load->desk[i]);
    if (atomic_load(&load->status) == DOPPEL_OK)
        dp_run_threads(load->threads, run_tasks, load);
    doppel_status status = atomic_load(&load->status);
    for (size_t i = 0; i < load->desks; i++)
        clear_desk(&load->desk[i]);
    free(load);
    return status;
}
