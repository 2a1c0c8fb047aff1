/* levels.c - what an index publishes to readers, and when runs are merged: by the writer while they are small, else by
 * a thread in the background.
 *
 * dp_writer_begin -> dp_index_flush, dp_index_tidy -> dp_writer_end; dp_index_pin, dp_index_unpin; dp_index_stop.
 *
 * Level i has runs of up to DP_HEAD_ROOM * RATIO^i entries, one at a time: what comes from the head is merged with the
 * run of level 1; when that becomes too large for its level, with the run of the next one too, all in one merge. An
 * entry is so moved about RATIO / 2 times a level. Runs of which half is dead are merged with whatever comes.
 *
 * The writer merges what has up to `writer_most` entries together, which takes milliseconds. What is larger waits for
 * the index's own thread, which is started when there is something to do for the first time. It chooses runs under the
 * lock, merges them without it, and publishes the merged one under it again; adds and finds go on with the old runs.
 * While a merge takes long there are more runs than levels, and finds take a little longer; no call waits for it,
 * unless an index comes to have nearly DP_MAX_RUNS runs.
 *
 * Entries of a run that is being merged may be removed, expire or come back. The writer changes them where they stand,
 * as ever, and notes each change; the thread makes the same changes in the merged run before it publishes it. An entry
 * that was dead when the merge came by, and was added again since, is not in the merged run: all such entries become a
 * small run of their own. So what a find gives does not depend on what the thread is doing.
 *
 * The lock: a call that changes the index holds it throughout, once there is a thread; the thread holds it to choose,
 * and to publish. It protects all that is not read by finds: who holds which run, the list of versions, the notes. A
 * merge that fails (no memory, a damaged file) changes nothing; the next flush merges by itself, and its caller gets
 * the error. */
#include "hamming/index.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* ---- versions: what readers see, and when it is freed ----
 *
 * A reader announces the version it is going to read in a free slot, then looks whether it is still the published one:
 * if so, the writer, which publishes first and looks at the slots after, sees the announcement and keeps it. Both sides
 * use sequentially consistent operations, so one of the two always sees the other. A run or a head is freed with the
 * last version that holds it. */

/* Where this thread found a free slot last: it is free most likely, and its line is in this core's cache. */
static _Thread_local unsigned own_slot = UINT32_MAX;

static unsigned first_slot(void) {
    static _Atomic unsigned next;
    if (own_slot == UINT32_MAX)
        own_slot = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % DP_PINS;
    return own_slot;
}

dp_pinned dp_index_pin(const doppel_index *index) {
    doppel_index *shared = (doppel_index *)index; /* the slots are the readers' to write */
    for (unsigned slot = first_slot(), tried = 1;; slot = (slot + 1) % DP_PINS, tried++) {
        dp_version *version = atomic_load(&shared->current), *none = NULL;
        dp_pin *pin = &shared->pin[slot];
        if (atomic_compare_exchange_strong(&pin->version, &none, version)) {
            if (atomic_load(&shared->current) == version) {
                own_slot = slot;
                return (dp_pinned){version, pin};
            }
            atomic_store(&pin->version, NULL);
        }
        if (tried % DP_PINS == 0)
            sched_yield(); /* more readers at once than slots */
    }
}

void dp_index_unpin(dp_pinned pinned) {
    atomic_store_explicit(&pinned.pin->version, NULL, memory_order_release);
}

/* A run that nobody holds waits to be freed: that takes long for a large one, and is the thread's to do. */
static void release_run(doppel_index *index, dp_run *run) {
    if (--run->holders)
        return;
    run->next = index->merger.unused;
    index->merger.unused = run;
}

static void release_level(doppel_index *index, dp_growing *level) {
    if (!level || --level->holders)
        return;
    level->next = index->merger.unused_level;
    index->merger.unused_level = level;
}

/* What is to be freed, taken from the index under the lock. */
typedef struct unused {
    dp_run *run;
    dp_growing *level;
} unused;

static unused take_unused(doppel_index *index) {
    dp_merger *merger = &index->merger;
    unused taken = {merger->unused, merger->unused_level};
    merger->unused = NULL;
    merger->unused_level = NULL;
    return taken;
}

static void free_unused(unused taken) {
    for (dp_run *run = taken.run, *next; run; run = next) {
        next = run->next;
        dp_run_free(run);
    }
    for (dp_growing *level = taken.level, *next; level; level = next) {
        next = level->next;
        dp_growing_free(level);
    }
}

static void let_go(doppel_index *index, dp_version *version) {
    for (int i = 0; i < version->runs; i++)
        release_run(index, version->run[i]);
    release_level(index, version->growing);
    release_level(index, version->full);
    if (--version->head->versions == 0)
        free(version->head);
    free(version);
}

static bool is_pinned(const doppel_index *index, const dp_version *version) {
    for (int i = 0; i < DP_PINS; i++)
        if (atomic_load(&index->pin[i].version) == version)
            return true;
    return false;
}

/* Frees the retired versions that no reader has pinned. */
static void free_retired(doppel_index *index) {
    for (dp_version **link = &index->retired; *link;) {
        dp_version *version = *link;
        if (is_pinned(index, version)) {
            link = &version->next;
        } else {
            *link = version->next;
            let_go(index, version);
        }
    }
    if (!index->merger.started)
        free_unused(take_unused(index));
}

bool dp_index_publish(doppel_index *index, const dp_version *content) {
    dp_version *version = malloc(sizeof *version),
               *before = atomic_load_explicit(&index->current, memory_order_relaxed);
    if (!version)
        return false;
    *version = *content;
    version->next = NULL;
    for (int i = 0; i < version->runs; i++)
        version->run[i]->holders++;
    if (version->growing)
        version->growing->holders++;
    if (version->full)
        version->full->holders++;
    version->head->versions++;
    atomic_store(&index->current, version);
    if (before) {
        before->next = index->retired;
        index->retired = before;
    }
    free_retired(index);
    return true;
}

/* ---- changes of entries whose run is being merged ---- */

bool dp_index_reserve_notes(doppel_index *index, size_t count) {
    dp_merger *m = &index->merger;
    return dp_reserve(&m->note, &m->note_room, m->notes + count, sizeof *m->note);
}

void dp_index_note(doppel_index *index, const dp_merge_note *note) {
    index->merger.note[index->merger.notes++] = *note;
}

/* Makes the change that was noted in a run. *found is false when the run does not have the entry. */
static doppel_status repeat_change(dp_run *run, const dp_merge_note *note, bool *found) {
    uint64_t slot, expired = 0;
    *found = true;
    if (note->expiry)
        return dp_run_expire(run, note->expires, &expired);
    DP_TRY(dp_run_slot(run, note->value, note->owner, found, &slot));
    if (!*found)
        return DOPPEL_OK;
    if (dp_run_expires(run, slot) != note->expires) {
        DP_TRY(dp_run_prepare_expires(run));
        dp_run_set_expires(run, slot, note->expires);
    }
    if (dp_run_is_dead(run, slot) != note->dead) {
        DP_TRY(dp_run_prepare_dead(run));
        dp_run_set_dead(run, slot, note->dead);
    }
    return DOPPEL_OK;
}

/* ---- what is merged ---- */

/* Reads look at one run a level, writes move an entry RATIO / 2 times a level. */
enum { RATIO = 16 };

/* From here on the smallest are merged whatever their sum: what is left is for runs that come meanwhile. */
enum { MANY_RUNS = DP_MAX_RUNS - 4 };

/* A growing level takes an eighth of what the index has, or less: all of it is moved once for each. In a level of a
 * million, a bucket of 16-bit keys has one or two cache lines. */
enum { LEVEL_SHARE = 8, LEVEL_MOST = 1 << 20 };

static int level_of(uint64_t count) {
    int level = 1;
    for (uint64_t most = DP_HEAD_ROOM * RATIO; most < count && level < 16; most *= RATIO)
        level++;
    return level;
}

static bool is_mostly_dead(const dp_run *run) {
    uint64_t dead = atomic_load_explicit(&run->dead_count, memory_order_relaxed);
    return dead >= DP_HEAD_ROOM && dead > dp_run_slots(run) / 2;
}

/* What a merge works on. */
typedef struct run_merge {
    doppel_index *index;
    const dp_version *version;
    dp_growing *full; /* that is merged; NULL: none */
    dp_run *own[4];   /* runs without tables: what comes, the head, the growing level, the full one */
    int owns;
    int sources; /* runs that the merge holds: the first of merging.run */
    bool chosen[DP_MAX_RUNS];
    dp_merging merging;
    dp_run *made;          /* NULL: nothing is left */
    uint64_t total;        /* positions that are merged, at most */
    uint64_t most;         /* of them */
    dp_merge_note *missed; /* changes of entries that the merged run does not have */
    size_t misses, miss_room;
} run_merge;

_Static_assert(DP_MERGE_MOST == DP_MAX_RUNS + 4, "all runs, what comes, the head, two levels");

static void choose(run_merge *m, int i, uint64_t most) {
    const dp_run *run = m->version->run[i];
    if (m->chosen[i] || run->merging || m->total + run->count > most)
        return;
    m->chosen[i] = true;
    m->total += run->count;
}

/* Marks the runs that are merged with what comes: from the smallest up, while the sum is of their level. Where there
 * are too many runs, the smallest, whatever their sum. */
static void choose_runs(run_merge *m, bool all) {
    const dp_version *version = m->version;
    for (int i = 0; i < version->runs; i++)
        if (all || is_mostly_dead(version->run[i]))
            choose(m, i, m->most);
    for (int i = version->runs - 1; i >= 0; i--) {
        if (i >= MANY_RUNS)
            choose(m, i, DP_RUN_MOST);
        else if (level_of(version->run[i]->count) <= level_of(m->total))
            choose(m, i, m->most);
    }
}

static void list_sources(run_merge *m) {
    for (int i = 0; i < m->version->runs; i++)
        if (m->chosen[i])
            m->merging.run[m->merging.count++] = m->version->run[i];
}

/* Takes over a run without tables (NULL: none) to be merged. */
static void add_own(run_merge *m, dp_run *run) {
    if (!run)
        return;
    m->own[m->owns++] = run;
    m->total += run->count;
}

static doppel_status add_level(run_merge *m, const dp_growing *level) {
    dp_run *run = NULL;
    DP_TRY(level ? dp_growing_run(level, &run) : DOPPEL_OK);
    add_own(m, run);
    return DOPPEL_OK;
}

/* The runs become one, without tables. A single one that has none is taken as it is. */
static doppel_status merge_sources(run_merge *m) {
    if (!m->merging.count && m->owns == 1) {
        m->made = m->own[--m->owns];
        return DOPPEL_OK;
    }
    for (int i = 0; i < m->owns; i++)
        m->merging.run[m->merging.count++] = m->own[i];
    return m->merging.count ? dp_run_merge(&m->merging, &m->made) : DOPPEL_OK;
}

doppel_status dp_index_build(const doppel_index *index, dp_run *run, const dp_merging *merging) {
    dp_layout layout;
    if (index->layout_name[0]) {
        DP_TRY(dp_layout_parse(index->layout_name, index->bits, &layout, NULL));
    } else {
        dp_plan_run(run->count, index->distance, index->bits, index->bytes_per_entry, &layout);
    }
    return dp_run_build(run, &layout, merging);
}

/* Merges the sources into a run with tables; NULL when nothing of them is alive. */
static doppel_status make_run(run_merge *m) {
    doppel_status status = merge_sources(m);
    if (status == DOPPEL_OK && m->made && !m->made->count) {
        dp_run_free(m->made);
        m->made = NULL;
    }
    if (status == DOPPEL_OK && m->made)
        status = dp_index_build(m->index, m->made, m->merging.count ? &m->merging : NULL);
    return status;
}

static void free_merge(run_merge *m) {
    dp_merging_free(&m->merging);
    for (int i = 0; i < m->owns; i++)
        dp_run_free(m->own[i]);
    dp_run_free(m->made);
    free(m->missed);
    free(m);
}

/* ---- by the writer ---- */

static void add_by_size(dp_version *content, dp_run *run) {
    int at = content->runs++;
    for (; at && content->run[at - 1]->count < run->count; at--)
        content->run[at] = content->run[at - 1];
    content->run[at] = run;
}

/* An index that is large enough gets a growing level; *level is NULL where it is not, or where none is worth it. */
static doppel_status make_level(const doppel_index *index, dp_growing **level) {
    const dp_merger *limits = &index->merger;
    uint64_t entries = atomic_load_explicit(&index->entries, memory_order_relaxed), planned = entries / LEVEL_SHARE;
    *level = NULL;
    if (entries < limits->growing_from)
        return DOPPEL_OK;
    planned = planned < limits->growing_least ? limits->growing_least : planned;
    planned = planned > limits->growing_most ? limits->growing_most : planned;
    const dp_growing_options options = {index->bits, index->distance, index->bytes_per_entry, index->layout_name,
                                        planned};
    return dp_growing_create(&options, level);
}

/* The runs that were not chosen, and the new one, with an empty head. Levels that were merged are left out. */
static doppel_status publish_flushed(run_merge *m, bool all) {
    dp_version content = {.growing = all ? NULL : m->version->growing, .full = m->full ? NULL : m->version->full};
    for (int i = 0; i < m->version->runs; i++)
        if (!m->chosen[i])
            content.run[content.runs++] = m->version->run[i];
    if (m->made)
        add_by_size(&content, m->made);
    dp_growing *level = NULL;
    doppel_status status = content.growing || all ? DOPPEL_OK : make_level(m->index, &level);
    content.growing = level ? level : content.growing;
    content.head = status == DOPPEL_OK ? dp_head_create(m->index->bits) : NULL;
    if (!content.head || !dp_index_publish(m->index, &content)) {
        free(content.head);
        dp_growing_free(level);
        return DOPPEL_ERROR_MEMORY;
    }
    memset(&m->index->places, 0, sizeof m->index->places);
    m->made = NULL;
    return DOPPEL_OK;
}

/* The full level is merged too where all is, or where the thread could not. */
static doppel_status flush(run_merge *m, bool all) {
    dp_run *head_run;
    DP_TRY(dp_head_run(m->version->head, &head_run));
    add_own(m, head_run);
    m->full = m->most == DP_RUN_MOST ? m->version->full : NULL;
    DP_TRY(add_level(m, m->full));
    DP_TRY(add_level(m, all ? m->version->growing : NULL));
    choose_runs(m, all);
    list_sources(m);
    DP_TRY(make_run(m));
    return publish_flushed(m, all);
}

/* Whether everything is in one run already, and all of it alive. */
static bool is_compact(const dp_version *version) {
    return version->runs <= 1 && !version->growing && !version->full &&
           !atomic_load_explicit(&version->head->count, memory_order_relaxed) &&
           (!version->runs || !atomic_load_explicit(&version->run[0]->dead_count, memory_order_relaxed));
}

/* As dp_index_flush, with runs of up to `most` entries together. */
static doppel_status flush_up_to(doppel_index *index, dp_run *more, bool all, uint64_t most) {
    run_merge *m = calloc(1, sizeof *m);
    if (!m) {
        dp_run_free(more);
        return DOPPEL_ERROR_MEMORY;
    }
    m->index = index;
    m->version = atomic_load_explicit(&index->current, memory_order_relaxed);
    m->most = most;
    add_own(m, more);
    doppel_status status = flush(m, all);
    free_merge(m);
    return status;
}

/* ---- by the thread ---- */

/* Chooses among the runs alone. False: none need be merged, by themselves or with one another. */
static bool choose_work(run_merge *m) {
    const dp_version *version = m->version;
    int chosen = 0;
    bool dead = false;
    m->full = version->full && !version->full->merging ? version->full : NULL;
    m->total = m->full ? atomic_load_explicit(&m->full->entries, memory_order_relaxed) : 0;
    for (int i = version->runs - 1; i >= 0 && !m->total; i--)
        choose(m, i, m->most);
    choose_runs(m, false);
    for (int i = 0; i < version->runs; i++) {
        chosen += m->chosen[i];
        dead |= m->chosen[i] && is_mostly_dead(version->run[i]);
    }
    return chosen > 1 || dead || m->full;
}

static bool has_work(const doppel_index *index) {
    run_merge m = {.version = atomic_load_explicit(&index->current, memory_order_relaxed), .most = DP_RUN_MOST};
    return choose_work(&m);
}

/* Chooses what is to be merged, and holds it; NULL: nothing, or there is no memory. */
static run_merge *begin_merge(doppel_index *index) {
    run_merge *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->index = index;
    m->version = atomic_load_explicit(&index->current, memory_order_relaxed);
    m->most = DP_RUN_MOST;
    if (!choose_work(m)) {
        free(m);
        return NULL;
    }
    list_sources(m);
    m->sources = m->merging.count;
    m->merging.cancel = &index->merger.cancel;
    for (int i = 0; i < m->version->runs; i++)
        if (m->chosen[i]) {
            m->version->run[i]->holders++;
            m->version->run[i]->merging = true;
        }
    if (m->full) {
        m->full->holders++;
        m->full->merging = true;
    }
    m->version = NULL; /* others follow while it merges */
    index->merger.busy = true;
    return m;
}

/* Makes changes that were noted in the merged run. */
static doppel_status repeat_changes(run_merge *m, const dp_merge_note *notes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        if (m->made)
            DP_TRY(repeat_change(m->made, &notes[i], &found));
        if (found && !notes[i].expiry)
            continue;
        if (!dp_reserve(&m->missed, &m->miss_room, m->misses + 1, sizeof *m->missed))
            return DOPPEL_ERROR_MEMORY;
        m->missed[m->misses++] = notes[i];
    }
    return DOPPEL_OK;
}

/* Up to this many changes are made while the writer waits: some hundred microseconds. A writer that changes entries
 * faster than they are changed again here waits after ROUNDS rounds. */
enum { FEW_NOTES = 512, ROUNDS = 16 };

static bool have_expiry(const dp_merge_note *notes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (notes[i].expiry)
            return true;
    return false;
}

/* Makes the changes noted since the merge began; with the lock, which is let go of while there are many. At the end no
 * note is left. */
static doppel_status catch_up(run_merge *m) {
    dp_merger *merger = &m->index->merger;
    doppel_status status = DOPPEL_OK;
    for (int round = 0; merger->notes && status == DOPPEL_OK; round++) {
        dp_merge_note *notes = merger->note;
        size_t count = merger->notes;
        bool alone = round < ROUNDS && (count > FEW_NOTES || have_expiry(notes, count));
        merger->note = NULL;
        merger->notes = merger->note_room = 0;
        if (alone)
            pthread_mutex_unlock(&merger->lock);
        status = repeat_changes(m, notes, count);
        if (alone)
            pthread_mutex_lock(&merger->lock);
        free(notes);
    }
    return status;
}

/* A run of the entries that were added again after the merge had left them out; NULL: there are none. */
static doppel_status make_late_run(run_merge *m, dp_run **late) {
    dp_items items = {.bits = m->index->bits, .timed = true};
    size_t words = dp_item_words(&items), value_words = words - 2;
    *late = NULL;
    uint64_t *memory = m->misses ? calloc(2 * m->misses, words * 8) : NULL;
    if (m->misses && !memory)
        return DOPPEL_ERROR_MEMORY;
    items.item = memory;
    for (size_t i = 0; i < m->misses; i++) {
        const dp_merge_note *note = &m->missed[i];
        if (note->expiry || note->dead)
            continue;
        uint64_t *item = memory + items.count++ * words, value[2];
        dp_bits_store(note->value, value);
        memcpy(item, value, value_words * 8);
        item[value_words] = note->owner;
        item[value_words + 1] = note->expires;
    }
    doppel_status status = DOPPEL_OK;
    if (items.count) {
        dp_items_sort(&items, memory + m->misses * words);
        status = dp_run_from_items(&items, late);
        DP_THEN(status, dp_index_build(m->index, *late, NULL));
        for (size_t i = 0; i < m->misses && status == DOPPEL_OK; i++) {
            bool found;
            status = repeat_change(*late, &m->missed[i], &found);
        }
    }
    free(memory);
    return status;
}

static bool is_source(const run_merge *m, const dp_run *run) {
    for (int i = 0; i < m->merging.count; i++)
        if (m->merging.run[i] == run)
            return true;
    return false;
}

/* Puts the merged run in the place of its sources. */
static doppel_status publish_merged(run_merge *m, dp_run *late) {
    dp_version content = *atomic_load_explicit(&m->index->current, memory_order_relaxed);
    int runs = content.runs;
    content.runs = 0;
    for (int i = 0; i < runs; i++)
        if (!is_source(m, content.run[i]))
            content.run[content.runs++] = content.run[i];
    if (content.runs + (m->made != NULL) + (late != NULL) > DP_MAX_RUNS)
        return DOPPEL_ERROR_MEMORY;
    if (m->made)
        add_by_size(&content, m->made);
    if (late)
        add_by_size(&content, late);
    content.full = m->full ? NULL : content.full;
    if (!dp_index_publish(m->index, &content))
        return DOPPEL_ERROR_MEMORY;
    m->made = NULL;
    return DOPPEL_OK;
}

static doppel_status finish_merge(run_merge *m) {
    dp_run *late = NULL;
    doppel_status status = catch_up(m);
    DP_THEN(status, make_late_run(m, &late));
    DP_THEN(status, publish_merged(m, late));
    if (status != DOPPEL_OK)
        dp_run_free(late);
    return status;
}

static void end_merge(run_merge *m, doppel_status status) {
    dp_merger *merger = &m->index->merger;
    if (status != DOPPEL_OK && !atomic_load(&merger->cancel))
        merger->failed = true;
    for (int i = 0; i < m->sources; i++) {
        dp_run *run = (dp_run *)m->merging.run[i];
        run->merging = false;
        release_run(m->index, run);
    }
    if (m->full)
        m->full->merging = false;
    release_level(m->index, m->full);
    free(merger->note);
    merger->note = NULL;
    merger->notes = merger->note_room = 0;
    merger->busy = false;
    pthread_cond_broadcast(&merger->moved);
}

/* Frees what nobody holds, without the lock. False: there was nothing. */
static bool free_what_is_unused(doppel_index *index) {
    unused taken = take_unused(index);
    if (!taken.run && !taken.level)
        return false;
    pthread_mutex_unlock(&index->merger.lock);
    free_unused(taken);
    pthread_mutex_lock(&index->merger.lock);
    return true;
}

/* Until there is something to do; for a moment only while readers hold versions that are published no more. */
static void wait_for_work(doppel_index *index) {
    dp_merger *merger = &index->merger;
    if (!index->retired) {
        pthread_cond_wait(&merger->moved, &merger->lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&merger->moved, &merger->lock, &until);
    free_retired(index);
}

static void merge_once(run_merge *m) {
    dp_merger *merger = &m->index->merger;
    pthread_mutex_unlock(&merger->lock);
    doppel_status status = add_level(m, m->full);
    DP_THEN(status, make_run(m));
    pthread_mutex_lock(&merger->lock);
    DP_THEN(status, finish_merge(m));
    end_merge(m, status);
    pthread_mutex_unlock(&merger->lock);
    free_merge(m);
    pthread_mutex_lock(&merger->lock);
}

static void *merge_in_background(void *user) {
    doppel_index *index = user;
    dp_merger *merger = &index->merger;
    pthread_mutex_lock(&merger->lock);
    while (!merger->stop) {
        run_merge *m = merger->failed ? NULL : begin_merge(index);
        if (m)
            merge_once(m);
        if (!free_what_is_unused(index) && !m && !merger->stop)
            wait_for_work(index);
    }
    pthread_mutex_unlock(&merger->lock);
    return NULL;
}

/* Where the system gives no thread, the writer merges. */
static void merge_here(doppel_index *index) {
    run_merge *m = begin_merge(index);
    if (!m)
        return;
    doppel_status status = add_level(m, m->full);
    DP_THEN(status, make_run(m));
    DP_THEN(status, finish_merge(m));
    end_merge(m, status);
    free_merge(m);
    free_unused(take_unused(index));
}

/* Has runs merged that are to be. A call that starts the thread gets the lock. */
static void merge_runs(doppel_index *index) {
    dp_merger *merger = &index->merger;
    if (merger->failed || !has_work(index))
        return;
    if (!merger->started) {
        pthread_mutex_lock(&merger->lock);
        merger->started = dp_thread_start(&merger->thread, merge_in_background, index);
        if (!merger->started) {
            pthread_mutex_unlock(&merger->lock);
            merge_here(index);
        }
        return;
    }
    pthread_cond_broadcast(&merger->moved);
}

/* ---- calls that change the index ---- */

/* Waits until the thread merges nothing; what it merges is no longer wanted. */
static void cancel_merge(doppel_index *index) {
    dp_merger *merger = &index->merger;
    atomic_store(&merger->cancel, true);
    while (merger->busy)
        pthread_cond_wait(&merger->moved, &merger->lock);
    atomic_store(&merger->cancel, false);
}

/* A call adds one run, and a merge that ends meanwhile one more: what is left is enough for both. */
enum { NEARLY_FULL = MANY_RUNS - 2 };

static bool is_full(const dp_growing *level, uint64_t most) {
    return level && atomic_load_explicit(&level->entries, memory_order_relaxed) >= most;
}

/* Only when a merge takes so long that dozens of runs, or sixteen million entries, have come meanwhile. */
static bool must_wait(const doppel_index *index) {
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    if (index->merger.failed)
        return false;
    return (index->merger.busy && version->runs >= NEARLY_FULL) ||
           (version->full && is_full(version->growing, DP_GROWING_MOST));
}

void dp_writer_begin(doppel_index *index) {
    if (!index->merger.started)
        return;
    pthread_mutex_lock(&index->merger.lock);
    while (must_wait(index))
        pthread_cond_wait(&index->merger.moved, &index->merger.lock);
}

void dp_writer_end(doppel_index *index) {
    if (index->merger.started)
        pthread_mutex_unlock(&index->merger.lock);
}

doppel_status dp_index_flush(doppel_index *index, dp_run *more) {
    dp_merger *merger = &index->merger;
    uint64_t most = merger->failed ? DP_RUN_MOST : merger->writer_most;
    merger->failed = false;
    DP_TRY(flush_up_to(index, more, false, most));
    merge_runs(index);
    return DOPPEL_OK;
}

doppel_status dp_index_grow(doppel_index *index) {
    dp_version content = *atomic_load_explicit(&index->current, memory_order_relaxed);
    if (index->merger.failed)
        return dp_index_flush(index, NULL);
    if (content.full)
        return is_full(content.growing, DP_GROWING_MOST) ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
    dp_growing *level;
    DP_TRY(make_level(index, &level));
    content.full = content.growing;
    content.growing = level;
    if (!dp_index_publish(index, &content)) {
        dp_growing_free(level);
        return DOPPEL_ERROR_MEMORY;
    }
    merge_runs(index);
    return DOPPEL_OK;
}

void dp_index_tidy(doppel_index *index) {
    merge_runs(index);
}

doppel_status dp_index_flush_all(doppel_index *index) {
    if (index->merger.started)
        cancel_merge(index);
    if (is_compact(atomic_load_explicit(&index->current, memory_order_relaxed)))
        return DOPPEL_OK;
    return flush_up_to(index, NULL, true, DP_RUN_MOST);
}

/* ---- beginning and end ---- */

void dp_merger_init(dp_merger *merger) {
    pthread_mutex_init(&merger->lock, NULL);
    pthread_cond_init(&merger->moved, NULL);
    merger->writer_most = merger->growing_from = merger->growing_least = DP_HEAD_ROOM * RATIO;
    merger->growing_most = LEVEL_MOST;
}

void dp_index_release(doppel_index *index) {
    dp_merger *merger = &index->merger;
    if (merger->started) {
        pthread_mutex_lock(&merger->lock);
        merger->stop = true;
        atomic_store(&merger->cancel, true);
        pthread_cond_broadcast(&merger->moved);
        pthread_mutex_unlock(&merger->lock);
        pthread_join(merger->thread, NULL);
    }
    for (dp_version *version; (version = index->retired);) {
        index->retired = version->next;
        let_go(index, version);
    }
    dp_version *current = atomic_load_explicit(&index->current, memory_order_relaxed);
    if (current)
        let_go(index, current);
    free_unused(take_unused(index));
    free(merger->note);
    pthread_cond_destroy(&merger->moved);
    pthread_mutex_destroy(&merger->lock);
}
