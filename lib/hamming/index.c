/* index.c - the calls that change an index.
 *
 * doppel_index_create -> doppel_index_add, doppel_index_add_batch, doppel_index_merge, doppel_index_remove,
 * doppel_index_expire, doppel_index_compact -> doppel_index_free. find.c reads.
 *
 * New entries go into the head, and a full head becomes a run; once there are many, they go into the growing level
 * instead, which then becomes a run. An entry is in at most one place, dead or alive: one that is added again is
 * revived in place. One thread writes, any number read. */
#include "hamming/index.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* ---- levels: what an index publishes to readers, and when runs are merged: by the writer while they are small, else
 * by a thread in the background.
 *
 * Level i has runs of up to DP_HEAD_ROOM * RATIO^i entries, one at a time: a full head is merged with the run of level
 * 1; when that becomes too large for its level, with the run of the next one too, all in one merge. So an entry is
 * moved about RATIO / 2 times per level. Half-dead runs are included in the next merge.
 *
 * The writer merges up to `writer_most` entries together, which takes milliseconds. Larger merges wait for the
 * background thread, which is started on first use. It chooses runs under the lock, merges them without it, and
 * publishes the merged one under it again; adds and finds continue on the old runs. While a merge takes long there are
 * more runs than levels, and finds take a little longer; no call waits for it, unless an index has nearly DP_MAX_RUNS
 * runs.
 *
 * Entries of a run that is being merged may be removed, expire or come back. The writer changes them in place, as
 * always, and logs each change; the thread repeats the changes in the merged run before it publishes it. An entry that
 * was dead when the merge read it, and was added again since, is not in the merged run: all such entries become a
 * separate small run. So the result of a find does not depend on the thread.
 *
 * The lock: a call that changes the index holds it throughout, once there is a thread; the thread holds it to choose,
 * and to publish. It protects everything that finds do not read: references to runs, the list of versions, the log of
 * changes. A merge that fails (no memory, a damaged file) changes nothing; the next flush merges by itself, and its
 * caller gets the error. */

/* An empty head; NULL when out of memory. */
static dp_head *create_head(int bits) {
    dp_head *head = aligned_alloc(64, dp_head_bytes(bits));
    if (!head)
        return NULL;
    atomic_init(&head->count, 0);
    head->bits = bits;
    head->versions = 0;
    return head;
}

/* ---- versions: what readers see, and when it is freed ----
 *
 * A reader announces the version it is going to read in a free slot, then looks whether it is still the published one:
 * if so, the writer, which publishes first and looks at the slots after, sees the announcement and keeps it. Both sides
 * use sequentially consistent operations, so one of the two always sees the other. A run or a head is freed with the
 * last version that holds it. */

/* Where this thread last found a free slot: it is most likely free, and its line is in this core's cache. */
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

/* Queues an unreferenced run to be freed: that takes long for a large one, so the background thread does it. */
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

/* Publishes a copy of `content` (runs largest first), and frees what no reader holds. Takes ownership of what the
 * previous version does not hold. False when out of memory: nothing has changed, and the caller keeps ownership. */
static bool publish(doppel_index *index, const dp_version *content) {
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

/* Logs a change of an entry in a run that is being merged; there must be room. */
static bool reserve_notes(doppel_index *index, size_t count) {
    dp_merger *m = &index->merger;
    return dp_reserve(&m->note, &m->note_room, m->notes + count, sizeof *m->note);
}

static void note_change(doppel_index *index, const dp_merge_note *note) {
    index->merger.note[index->merger.notes++] = *note;
}

/* Repeats a logged change in a run. *found is false when the run does not have the entry. */
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

/* From this many on the smallest are merged whatever their sum: the rest is for runs added during the merge. */
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

/* Marks the runs to merge with the new entries: from the smallest up, while the sum fits their level. If there are too
 * many runs, the smallest, whatever their sum. */
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

/* A large enough index gets a growing level; *level is NULL if it is not, or if none is worth it. */
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
    content.head = status == DOPPEL_OK ? create_head(m->index->bits) : NULL;
    if (!content.head || !publish(m->index, &content)) {
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

/* As flush_index, with runs of up to `most` entries together. */
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

/* Chooses what to merge, and holds it; NULL: nothing, or out of memory. */
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

/* Repeats logged changes in the merged run. */
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

/* Up to this many changes are repeated while the writer waits: some hundred microseconds. A writer that changes entries
 * faster than they can be repeated waits after ROUNDS rounds. */
enum { FEW_NOTES = 512, ROUNDS = 16 };

static bool have_expiry(const dp_merge_note *notes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (notes[i].expiry)
            return true;
    return false;
}

/* Repeats the changes logged since the merge began; with the lock, which is released while there are many. At the end
 * the log is empty. */
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

/* Replaces the sources by the merged run. */
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
    if (!publish(m->index, &content))
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

/* Frees unreferenced runs and levels, without the lock. False: there was nothing. */
static bool free_what_is_unused(doppel_index *index) {
    unused taken = take_unused(index);
    if (!taken.run && !taken.level)
        return false;
    pthread_mutex_unlock(&index->merger.lock);
    free_unused(taken);
    pthread_mutex_lock(&index->merger.lock);
    return true;
}

/* Waits until there is something to do; only briefly while readers hold retired versions. */
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

/* If the system refuses a thread, the writer merges. */
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

/* Has due runs merged. A call that starts the thread gets the lock. */
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

/* A call adds one run, and a merge that ends during it one more: there is room for both. */
enum { NEARLY_FULL = MANY_RUNS - 2 };

static bool is_full(const dp_growing *level, uint64_t most) {
    return level && atomic_load_explicit(&level->entries, memory_order_relaxed) >= most;
}

/* Only when a merge takes so long that dozens of runs, or sixteen million entries, were added during it. */
static bool must_wait(const doppel_index *index) {
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    if (index->merger.failed)
        return false;
    return (index->merger.busy && version->runs >= NEARLY_FULL) ||
           (version->full && is_full(version->growing, DP_GROWING_MOST));
}

/* Around every call that changes the index. In between, nothing but the call itself changes what is published. */
static void begin_writing(doppel_index *index) {
    if (!index->merger.started)
        return;
    pthread_mutex_lock(&index->merger.lock);
    while (must_wait(index))
        pthread_cond_wait(&index->merger.moved, &index->merger.lock);
}

static void end_writing(doppel_index *index) {
    if (index->merger.started)
        pthread_mutex_unlock(&index->merger.lock);
}

/* Merges the head, `more` (may be NULL; a run without tables, always taken over) and small runs into one run, and has
 * the thread merge larger ones. */
static doppel_status flush_index(doppel_index *index, dp_run *more) {
    dp_merger *merger = &index->merger;
    uint64_t most = merger->failed ? DP_RUN_MOST : merger->writer_most;
    merger->failed = false;
    DP_TRY(flush_up_to(index, more, false, most));
    merge_runs(index);
    return DOPPEL_OK;
}

/* Has the full growing level merged, and begins another one; while the previous one is not merged yet, it may keep
 * growing. */
static doppel_status grow(doppel_index *index) {
    dp_version content = *atomic_load_explicit(&index->current, memory_order_relaxed);
    if (index->merger.failed)
        return flush_index(index, NULL);
    if (content.full)
        return is_full(content.growing, DP_GROWING_MOST) ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
    dp_growing *level;
    DP_TRY(make_level(index, &level));
    content.full = content.growing;
    content.growing = level;
    if (!publish(index, &content)) {
        dp_growing_free(level);
        return DOPPEL_ERROR_MEMORY;
    }
    merge_runs(index);
    return DOPPEL_OK;
}

/* Has mostly dead runs rebuilt. */
static void tidy(doppel_index *index) {
    merge_runs(index);
}

/* Everything into one run; waits for it. */
static doppel_status flush_all(doppel_index *index) {
    if (index->merger.started)
        cancel_merge(index);
    if (is_compact(atomic_load_explicit(&index->current, memory_order_relaxed)))
        return DOPPEL_OK;
    return flush_up_to(index, NULL, true, DP_RUN_MOST);
}

/* ---- beginning and end ---- */

static void init_merger(dp_merger *merger) {
    pthread_mutex_init(&merger->lock, NULL);
    pthread_cond_init(&merger->moved, NULL);
    merger->writer_most = merger->growing_from = merger->growing_least = DP_HEAD_ROOM * RATIO;
    merger->growing_most = LEVEL_MOST;
}

/* Ends the thread and frees what was published. */
static void release(doppel_index *index) {
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

/* ---- the head: the newest entries, before they go into a run ---- */

static size_t hash(dp_bits value, uint64_t owner) {
    uint64_t x = (uint64_t)value ^ (uint64_t)(value >> 64) ^ owner * 0x9E3779B97F4A7C15;
    x = (x ^ x >> 32) * 0xBF58476D1CE4E5B9;
    return (size_t)(x ^ x >> 29) % DP_PLACES;
}

/* The place of an entry, or the free place where it belongs. */
static size_t find_place(const dp_head *head, const dp_places *places, dp_bits value, uint64_t owner) {
    size_t at = hash(value, owner);
    for (; places->place[at]; at = (at + 1) % DP_PLACES) {
        uint64_t i = places->place[at] - 1U;
        if (head->owners[i] == owner && dp_head_value(head, i) == value)
            break;
    }
    return at;
}

/* The number of an entry, dead or not, or DP_HEAD_ROOM. */
static uint64_t head_search(const dp_head *head, const dp_places *places, dp_bits value, uint64_t owner) {
    uint16_t number = places->place[find_place(head, places, value, owner)];
    return number ? number - 1U : DP_HEAD_ROOM;
}

/* Adds an entry that is not there, to a head that has room. */
static void head_add(dp_head *head, dp_places *places, dp_bits value, uint64_t owner, uint64_t expires) {
    uint64_t i = atomic_load_explicit(&head->count, memory_order_relaxed);
    places->place[find_place(head, places, value, owner)] = (uint16_t)(i + 1);
    uint64_t words[2];
    dp_bits_store(value, words);
    memcpy(head->values + (head->bits > 64 ? 2 * i : i), words, head->bits > 64 ? 16 : 8);
    head->filter[i] = (uint32_t)value;
    head->owners[i] = owner;
    atomic_init(&head->expires[i], expires);
    atomic_init(&head->dead[i], 0);
    atomic_store_explicit(&head->count, i + 1, memory_order_release);
}

/* What is alive, as items with times; whether any of them expires. */
static bool list_items(const dp_head *head, dp_items *items) {
    size_t words = items->bits > 64 ? 2 : 1;
    uint64_t count = atomic_load_explicit(&head->count, memory_order_acquire), *item = items->item, times = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (atomic_load_explicit(&head->dead[i], memory_order_acquire))
            continue;
        memcpy(item, head->values + i * words, words * 8);
        item += words;
        *item++ = head->owners[i];
        times |= *item++ = atomic_load_explicit(&head->expires[i], memory_order_relaxed);
        items->count++;
    }
    return times;
}

doppel_status dp_head_run(const dp_head *head, dp_run **run) {
    dp_items items = {.bits = head->bits, .timed = true};
    size_t room = DP_HEAD_ROOM * dp_item_words(&items);
    *run = NULL;
    if (!(items.item = malloc(2 * room * sizeof *items.item)))
        return DOPPEL_ERROR_MEMORY;
    if (!list_items(head, &items))
        dp_items_drop_times(&items);
    dp_items_sort(&items, items.item + room);
    doppel_status status = items.count ? dp_run_from_items(&items, run) : DOPPEL_OK;
    free(items.item);
    return status;
}

/* ---- creating and freeing ---- */

/* How many entries of a run are alive; 0 when a mapped run is damaged. Slots, without the dead ones, and for each list
 * without its position's slot and its number of owners. */
static uint64_t count_entries(const dp_run *run) {
    uint64_t lists = 0, words = run->shared ? dp_shared_bytes(run) / 8 : 0;
    if (words && dp_run_touch(run, run->shared, words * 8) != DOPPEL_OK)
        return 0;
    for (uint64_t i = 0; i < words; i++)
        lists += (uint64_t)__builtin_popcountll(run->shared[i]);
    return dp_run_slots(run) - 2 * lists - atomic_load_explicit(&run->dead_count, memory_order_relaxed);
}

doppel_status dp_index_create(const doppel_index_options *options, dp_run **runs, int count, doppel_index **created) {
    doppel_index *index = aligned_alloc(64, (sizeof *index + 63) / 64 * 64);
    if (!index)
        return DOPPEL_ERROR_MEMORY;
    memset(index, 0, sizeof *index);
    index->bits = options->bits ? options->bits : 64;
    index->distance = options->distance ? options->distance : 3;
    index->bytes_per_entry = DP_BYTES_PER_ENTRY;
    if (options->count && options->memory)
        index->bytes_per_entry = (double)options->memory / (double)options->count;
    if (options->layout)
        strncpy(index->layout_name, options->layout, sizeof index->layout_name - 1);
    index->secret = options->secret;
    dp_order_init(&index->order, index->bits, index->secret);
    init_merger(&index->merger);
    dp_version content = {.runs = count, .head = create_head(index->bits)};
    if (count)
        memcpy(content.run, runs, (size_t)count * sizeof *runs);
    if (!content.head || !publish(index, &content)) {
        free(content.head);
        release(index);
        free(index);
        return DOPPEL_ERROR_MEMORY;
    }
    uint64_t entries = 0;
    for (int i = 0; i < count; i++)
        entries += count_entries(runs[i]);
    atomic_init(&index->entries, entries);
    *created = index;
    return DOPPEL_OK;
}

void doppel_index_free(doppel_index *index) {
    if (!index)
        return;
    release(index);
    free(index);
}

/* ---- creating ---- */

static doppel_status check_layout(const doppel_index_options *options, doppel_error *error) {
    dp_layout layout;
    if (options->layout && strlen(options->layout) >= sizeof(((doppel_index *)0)->layout_name))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a layout's name has at most 63 characters");
    return options->layout ? dp_layout_parse(options->layout, options->bits, &layout, error) : DOPPEL_OK;
}

static doppel_status check_memory(const doppel_index_options *options, doppel_error *error) {
    doppel_plan_options wanted = {.size = sizeof wanted,
                                  .purpose = DOPPEL_FOR_FIND,
                                  .bits = options->bits,
                                  .memory = options->memory,
                                  .layout = options->layout};
    doppel_plan plan;
    size_t found;
    if (!options->memory || !options->count)
        return DOPPEL_OK;
    doppel_status status = doppel_plan_list(options->count, options->distance, &wanted, &plan, 1, &found, error);
    if (status == DOPPEL_OK && !plan.fits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%llu entries need at least %.0f bytes (layout %s), %llu are allowed",
                       (unsigned long long)options->count, plan.memory, plan.layout,
                       (unsigned long long)options->memory);
    return status;
}

static doppel_status check_options(const doppel_index_options *options, doppel_error *error) {
    if ((options->bits < 1 || options->bits > 64) && options->bits != 128)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "%d bits: must be 1 to 64, or 128", options->bits);
    if (options->distance < 0 || options->distance > options->bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "distance %d: must be 0 to %d with %d bits", options->distance,
                       options->bits, options->bits);
    DP_TRY(check_layout(options, error));
    return check_memory(options, error);
}

doppel_status doppel_index_create(const doppel_index_options *given, doppel_index **index, doppel_error *error) {
    doppel_index_options options = {0};
    if (given)
        dp_copy_options(&options, given, sizeof options);
    options.bits = options.bits ? options.bits : 64;
    /* The default distance is 3, as far as there are bits for it. */
    if (!options.distance)
        options.distance = options.bits < 3 ? options.bits : 3;
    *index = NULL;
    DP_TRY(check_options(&options, error));
    options.secret = options.secret ? options.secret : dp_random_number();
    doppel_status status = dp_index_create(&options, NULL, 0, index);
    return status == DOPPEL_OK ? DOPPEL_OK : dp_no_memory(error);
}

/* ---- locating an entry ---- */

/* The location of an entry, for the writer: in the head or in a run; with neither, absent. */
typedef struct entry_place {
    dp_head *head;
    dp_growing *level;
    dp_run *run;
    uint64_t slot;
    dp_growing_entry entry; /* of a level */
    dp_bits value;
    uint64_t owner;
    int same; /* entries of the value in the growing level */
} entry_place;

typedef struct entry_state {
    uint64_t expires;
    bool dead;
} entry_state;

/* Where in the rest of table 0 a search begins. */
static const void *first_look(const dp_run *run, dp_range range, uint64_t rest) {
    const dp_run_table *table = &run->table[0];
    return table->rest + (range.from + (uint64_t)((dp_bits)rest * (range.to - range.from) >> table->rest_bits)) *
                             (uint64_t)table->rest_bytes;
}

/* Prefetches what searches of a number in these runs will read first. Always inline: some compilers drop a call that
 * only prefetches. */
static inline __attribute__((always_inline)) void prefetch_runs(const dp_run *const *runs, int count, dp_bits value) {
    for (int i = 0; i < count; i++) {
        const dp_run_table *table = &runs[i]->table[0];
        __builtin_prefetch(table->directory +
                           (table->key_bits ? (uint64_t)(value >> (runs[i]->bits - table->key_bits)) : 0));
    }
    for (int i = 0; i < count; i++) {
        const dp_run *run = runs[i];
        const dp_run_table *table = &run->table[0];
        if (run->backing || !table->rest_bits)
            continue;
        uint64_t key = table->key_bits ? (uint64_t)(value >> (run->bits - table->key_bits)) : 0;
        uint64_t rest = (uint64_t)(value >> dp_filter_bits(run->bits)) & (UINT64_MAX >> (64 - table->rest_bits));
        __builtin_prefetch(first_look(run, (dp_range){table->directory[key], table->directory[key + 1]}, rest));
    }
}

/* Looks up an entry in a level; returns how many entries have its value. */
static int search_level(dp_growing *level, entry_place *place) {
    dp_growing_places found;
    dp_growing_search(level, place->value, &found);
    for (int i = 0; i < found.count && !place->level; i++) {
        place->entry = dp_growing_place(level, &found.chunk, found.place[i]);
        place->level = *place->entry.owner == place->owner ? level : NULL;
    }
    return found.count;
}

static bool is_there(const entry_place *place) {
    return place->head || place->level || place->run;
}

/* Finds an entry. Where it may be added next, `keys` gets the value's in the growing level; else it is NULL. */
static doppel_status locate(const doppel_index *index, dp_bits value, uint64_t owner, entry_place *place,
                            dp_growing_keys *keys) {
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    place->head = NULL;
    place->level = NULL;
    place->run = NULL;
    place->value = value;
    place->owner = owner;
    place->same = 0;
    if (version->growing && keys)
        dp_growing_prepare(version->growing, value, keys);
    prefetch_runs((const dp_run *const *)version->run, version->runs, value);
    if (version->growing && keys)
        dp_growing_prefetch(version->growing, keys);
    uint64_t i = head_search(version->head, &index->places, value, owner);
    if (i < DP_HEAD_ROOM) {
        place->head = version->head;
        place->slot = i;
        return DOPPEL_OK;
    }
    if (version->growing)
        place->same = search_level(version->growing, place);
    if (version->full && !place->level)
        search_level(version->full, place);
    if (place->level)
        return DOPPEL_OK;
    for (int r = 0; r < version->runs; r++) {
        bool found;
        uint64_t slot;
        DP_TRY(dp_run_slot(version->run[r], value, owner, &found, &slot));
        if (found) {
            place->run = version->run[r];
            place->slot = slot;
            return DOPPEL_OK;
        }
    }
    return DOPPEL_OK;
}

static entry_state place_state(const entry_place *place) {
    if (place->head)
        return (entry_state){atomic_load_explicit(&place->head->expires[place->slot], memory_order_relaxed),
                             atomic_load_explicit(&place->head->dead[place->slot], memory_order_relaxed)};
    if (place->level)
        return (entry_state){atomic_load_explicit(place->entry.expires, memory_order_relaxed),
                             atomic_load_explicit(place->entry.dead, memory_order_relaxed)};
    return (entry_state){dp_run_expires(place->run, place->slot), dp_run_is_dead(place->run, place->slot)};
}

/* Whether changes at a place must be logged. */
static bool is_merging(const entry_place *place) {
    return place->run ? place->run->merging : place->level && place->level->merging;
}

/* Makes sure that a state can be set: DOPPEL_OK, DOPPEL_ERROR_MEMORY, or DOPPEL_ERROR_STORE for a damaged file. */
static doppel_status place_prepare(doppel_index *index, const entry_place *place, entry_state state) {
    entry_state now = place_state(place);
    if (is_merging(place) && !reserve_notes(index, 1))
        return DOPPEL_ERROR_MEMORY;
    if (!place->run)
        return DOPPEL_OK;
    if (state.expires != now.expires)
        DP_TRY(dp_run_prepare_expires(place->run));
    return state.dead != now.dead ? dp_run_prepare_dead(place->run) : DOPPEL_OK;
}

/* Adds to the number of entries. */
static void count_more(doppel_index *index, int64_t more) {
    uint64_t entries = atomic_load_explicit(&index->entries, memory_order_relaxed);
    atomic_store_explicit(&index->entries, entries + (uint64_t)more, memory_order_relaxed);
}

/* Sets a prepared state, and counts the entry. The time first: a reader that sees the entry alive again sees it. */
static void place_set(doppel_index *index, const entry_place *place, entry_state state) {
    entry_state now = place_state(place);
    if (place->run) {
        if (state.expires != now.expires)
            dp_run_set_expires(place->run, place->slot, state.expires);
        if (state.dead != now.dead)
            dp_run_set_dead(place->run, place->slot, state.dead);
    } else {
        _Atomic uint64_t *expires = place->level ? place->entry.expires : &place->head->expires[place->slot];
        _Atomic uint8_t *dead = place->level ? place->entry.dead : &place->head->dead[place->slot];
        atomic_store_explicit(expires, state.expires, memory_order_relaxed);
        atomic_store_explicit(dead, state.dead, memory_order_release);
    }
    if (is_merging(place))
        note_change(index, &(dp_merge_note){place->value, place->owner, state.expires, state.dead, false});
    count_more(index, (int64_t)now.dead - (int64_t)state.dead);
}

/* ---- one entry ---- */

/* Adds an entry that is nowhere to the growing level; *taken is false where it goes into the head. */
static doppel_status add_to_level(doppel_index *index, entry_place *place, dp_growing_keys *keys, uint64_t expires,
                                  bool *taken) {
    dp_growing *level = atomic_load_explicit(&index->current, memory_order_relaxed)->growing;
    *taken = false;
    if (!level || place->same == DP_SAME_MOST)
        return DOPPEL_OK;
    if (atomic_load_explicit(&level->entries, memory_order_relaxed) >= level->planned) {
        DP_TRY(grow(index));
        dp_growing *now = atomic_load_explicit(&index->current, memory_order_relaxed)->growing;
        if (!now)
            return DOPPEL_OK;
        if (now != level) {
            dp_growing_prepare(now, place->value, keys);
            place->same = 0;
        }
        level = now;
    }
    *taken = dp_growing_add(level, keys, place->same, place->owner, expires);
    return *taken ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status add_entry(doppel_index *index, dp_bits value, uint64_t owner, uint64_t expires) {
    entry_place place;
    dp_growing_keys keys;
    DP_TRY(locate(index, value, owner, &place, &keys));
    if (is_there(&place)) {
        entry_state state = {expires, false};
        DP_TRY(place_prepare(index, &place, state));
        place_set(index, &place, state);
        return DOPPEL_OK;
    }
    bool taken;
    DP_TRY(add_to_level(index, &place, &keys, expires, &taken));
    if (!taken) {
        dp_head *head = atomic_load_explicit(&index->current, memory_order_relaxed)->head;
        if (atomic_load_explicit(&head->count, memory_order_relaxed) == DP_HEAD_ROOM) {
            DP_TRY(flush_index(index, NULL));
            head = atomic_load_explicit(&index->current, memory_order_relaxed)->head;
        }
        head_add(head, &index->places, value, owner, expires);
    }
    count_more(index, 1);
    return DOPPEL_OK;
}

doppel_status doppel_index_add(doppel_index *index, const uint64_t *fingerprint, uint64_t owner, uint64_t expires) {
    if (!dp_index_has_width(index, fingerprint))
        return DOPPEL_ERROR_USAGE;
    dp_bits value = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits));
    begin_writing(index);
    doppel_status status = add_entry(index, value, owner, expires);
    end_writing(index);
    return status;
}

static doppel_status remove_entry(doppel_index *index, dp_bits value, uint64_t owner, bool *removed) {
    entry_place place;
    DP_TRY(locate(index, value, owner, &place, NULL));
    if (!is_there(&place))
        return DOPPEL_OK;
    entry_state state = place_state(&place);
    if (state.dead)
        return DOPPEL_OK;
    state.dead = true;
    DP_TRY(place_prepare(index, &place, state));
    place_set(index, &place, state);
    *removed = true;
    if (place.run)
        tidy(index);
    return DOPPEL_OK;
}

doppel_status doppel_index_remove(doppel_index *index, const uint64_t *fingerprint, uint64_t owner, bool *removed) {
    bool done = false;
    doppel_status status = DOPPEL_ERROR_USAGE;
    if (dp_index_has_width(index, fingerprint)) {
        dp_bits value = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits));
        begin_writing(index);
        status = remove_entry(index, value, owner, &done);
        end_writing(index);
    }
    if (removed)
        *removed = done;
    return status;
}

/* ---- the whole index ---- */

static uint64_t expire_head(doppel_index *index, dp_head *head, uint64_t now) {
    uint64_t count = atomic_load_explicit(&head->count, memory_order_relaxed), expired = 0;
    for (uint64_t i = 0; i < count; i++) {
        entry_place place = {.head = head, .slot = i};
        entry_state state = place_state(&place);
        if (state.dead || !state.expires || state.expires > now)
            continue;
        place_set(index, &place, (entry_state){state.expires, true});
        expired++;
    }
    return expired;
}

static doppel_status expire_rest(doppel_index *index, const dp_version *version, uint64_t now, uint64_t *expired) {
    uint64_t before = *expired;
    doppel_status status = DOPPEL_OK;
    if (index->merger.busy && !reserve_notes(index, 1))
        return DOPPEL_ERROR_MEMORY;
    bool merging = version->full && version->full->merging;
    *expired += version->growing ? dp_growing_expire(version->growing, now) : 0;
    *expired += version->full ? dp_growing_expire(version->full, now) : 0;
    for (int i = 0; i < version->runs && status == DOPPEL_OK; i++) {
        status = dp_run_expire(version->run[i], now, expired);
        merging |= version->run[i]->merging;
    }
    if (merging)
        note_change(index, &(dp_merge_note){.expires = now, .expiry = true});
    count_more(index, (int64_t)before - (int64_t)*expired);
    return status;
}

doppel_status doppel_index_expire(doppel_index *index, uint64_t now, uint64_t *expired) {
    begin_writing(index);
    const dp_version *version = atomic_load_explicit(&index->current, memory_order_relaxed);
    uint64_t count = expire_head(index, version->head, now);
    doppel_status status = expire_rest(index, version, now, &count);
    tidy(index);
    end_writing(index);
    if (expired)
        *expired = count;
    return status;
}

doppel_status doppel_index_compact(doppel_index *index, doppel_error *error) {
    begin_writing(index);
    doppel_status status = flush_all(index);
    end_writing(index);
    return status == DOPPEL_OK ? status : dp_index_explain(index, status, error);
}

/* ---- many entries at once ----
 *
 * Entries become items, which are sorted. Existing ones get their new times in place; the others become a run, or, if
 * few, go into the head. Changes in place are logged and undone if memory runs out later, so that all are added or
 * none. */

/* Up to FEW go into the head. More than MOST in one call may not fit one run together with the head. */
#define FEW ((uint64_t)DP_HEAD_ROOM / 4)
#define MOST (DP_RUN_MOST - DP_HEAD_ROOM)

enum { BATCH = 256 };

/* What the caller gave. */
typedef struct bulk_entries {
    const uint64_t *fingerprints, *owners, *expires;
    uint64_t count;
} bulk_entries;

/* An entry that was there, and how it was. */
typedef struct changed_entry {
    entry_place place;
    entry_state before;
} changed_entry;

typedef struct bulk_insert {
    doppel_index *index;
    dp_items items;
    dp_memory block; /* of the items */
    changed_entry *changed;
    size_t changes, room;
} bulk_insert;

/* ---- items ---- */

static void fill_items(bulk_insert *a, const bulk_entries *g) {
    size_t words = a->index->bits > 64 ? 2 : 1;
    uint64_t values[2 * BATCH], *item = a->items.item;
    for (uint64_t from = 0; from < g->count; from += BATCH) {
        size_t count = g->count - from < BATCH ? (size_t)(g->count - from) : BATCH;
        dp_order_apply_many(&a->index->order, g->fingerprints + from * words, count, values);
        for (size_t i = 0; i < count; i++) {
            for (size_t w = 0; w < words; w++)
                *item++ = values[i * words + w];
            *item++ = g->owners ? g->owners[from + i] : from + i;
            if (a->items.timed)
                *item++ = g->expires[from + i];
        }
    }
}

static doppel_status check_widths(const doppel_index *index, const bulk_entries *g) {
    uint64_t bits = 0;
    if (index->bits < 64)
        for (uint64_t i = 0; i < g->count; i++)
            bits |= g->fingerprints[i];
    return index->bits < 64 && bits >> index->bits ? DOPPEL_ERROR_USAGE : DOPPEL_OK;
}

static doppel_status make_items(bulk_insert *a, const bulk_entries *g) {
    a->items = (dp_items){.bits = a->index->bits, .count = g->count};
    for (uint64_t i = 0; g->expires && i < g->count && !a->items.timed; i++)
        a->items.timed = g->expires[i] != 0;
    size_t bytes = g->count * dp_item_words(&a->items) * 8;
    dp_memory scratch;
    if (!dp_memory_alloc(&a->block, bytes))
        return DOPPEL_ERROR_MEMORY;
    if (!dp_memory_alloc(&scratch, bytes))
        return DOPPEL_ERROR_MEMORY;
    a->items.item = a->block.data;
    fill_items(a, g);
    dp_items_sort(&a->items, scratch.data);
    dp_memory_free(&scratch);
    return DOPPEL_OK;
}

/* ---- existing entries ---- */

static doppel_status change(bulk_insert *a, const entry_place *place, entry_state state) {
    entry_state before = place_state(place);
    if (before.expires == state.expires && before.dead == state.dead)
        return DOPPEL_OK;
    if (!dp_reserve(&a->changed, &a->room, a->changes + 1, sizeof *a->changed))
        return DOPPEL_ERROR_MEMORY;
    DP_TRY(place_prepare(a->index, place, state));
    /* For the change, and for changing all back. */
    if (is_merging(place) && !reserve_notes(a->index, a->changes + 2))
        return DOPPEL_ERROR_MEMORY;
    a->changed[a->changes++] = (changed_entry){*place, before};
    place_set(a->index, place, state);
    return DOPPEL_OK;
}

/* Updates the times of existing entries, and leaves the others. */
static doppel_status take_out_known(bulk_insert *a) {
    size_t words = dp_item_words(&a->items), value_words = a->items.bits > 64 ? 2 : 1;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < a->items.count; i++) {
        const uint64_t *item = a->items.item + i * words;
        entry_place place;
        doppel_status status = locate(a->index, dp_bits_load(item, a->items.bits), item[value_words], &place, NULL);
        if (status == DOPPEL_OK && is_there(&place))
            status = change(a, &place, (entry_state){a->items.timed ? item[value_words + 1] : 0, false});
        else
            memmove(a->items.item + kept++ * words, item, words * 8);
        if (status != DOPPEL_OK)
            return status;
    }
    a->items.count = kept;
    return DOPPEL_OK;
}

static void change_back(bulk_insert *a) {
    while (a->changes) {
        const changed_entry *last = &a->changed[--a->changes];
        place_set(a->index, &last->place, last->before);
    }
}

/* ---- entries that are new ---- */

static doppel_status add_to_head(bulk_insert *a) {
    dp_head *head = atomic_load_explicit(&a->index->current, memory_order_relaxed)->head;
    if (atomic_load_explicit(&head->count, memory_order_relaxed) + a->items.count > DP_HEAD_ROOM) {
        DP_TRY(flush_index(a->index, NULL));
        head = atomic_load_explicit(&a->index->current, memory_order_relaxed)->head;
    }
    size_t words = dp_item_words(&a->items), value_words = a->items.bits > 64 ? 2 : 1;
    for (uint64_t i = 0; i < a->items.count; i++) {
        const uint64_t *item = a->items.item + i * words;
        head_add(head, &a->index->places, dp_bits_load(item, a->items.bits), item[value_words],
                 a->items.timed ? item[value_words + 1] : 0);
    }
    return DOPPEL_OK;
}

static doppel_status add_run(bulk_insert *a) {
    dp_run *run;
    doppel_status status = dp_run_from_items(&a->items, &run);
    dp_memory_free(&a->block);
    return status == DOPPEL_OK ? flush_index(a->index, run) : status;
}

static doppel_status add_all(bulk_insert *a, const bulk_entries *g) {
    doppel_status status = make_items(a, g);
    const dp_version *version = atomic_load_explicit(&a->index->current, memory_order_relaxed);
    if (status == DOPPEL_OK &&
        (version->runs || version->growing || atomic_load_explicit(&version->head->count, memory_order_relaxed)))
        status = take_out_known(a);
    uint64_t count = a->items.count;
    if (status == DOPPEL_OK && count)
        status = count <= FEW ? add_to_head(a) : add_run(a);
    if (status == DOPPEL_OK)
        count_more(a->index, (int64_t)count);
    else
        change_back(a);
    return status;
}

doppel_status doppel_index_add_batch(doppel_index *index, const uint64_t *fingerprints, const uint64_t *owners,
                                     const uint64_t *expires, uint64_t count) {
    bulk_entries g = {fingerprints, owners, expires, count};
    if (!count)
        return DOPPEL_OK;
    if (count > MOST)
        return DOPPEL_ERROR_USAGE;
    DP_TRY(check_widths(index, &g));
    bulk_insert a = {.index = index};
    begin_writing(index);
    doppel_status status = add_all(&a, &g);
    end_writing(index);
    dp_memory_free(&a.block);
    free(a.changed);
    return status;
}

/* ---- another index ---- */

/* The entries of an index, as insert_many takes them. */
typedef struct collecting {
    dp_buffer fingerprints, owners, expires;
    size_t fingerprint_bytes;
    bool full; /* no memory */
} collecting;

static bool collect(const doppel_match *entry, void *user) {
    collecting *c = user;
    c->full = !dp_buffer_add(&c->fingerprints, entry->fingerprint, c->fingerprint_bytes) ||
              !dp_buffer_add(&c->owners, &entry->owner, 8) || !dp_buffer_add(&c->expires, &entry->expires, 8);
    return !c->full;
}

doppel_status doppel_index_merge(doppel_index *index, const doppel_index *from, doppel_error *error) {
    if (index == from)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an index cannot be merged into itself");
    if (index->bits != from->bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "an index of %d bits cannot take one of %d", index->bits, from->bits);
    collecting c = {.fingerprint_bytes = index->bits > 64 ? 16 : 8};
    const doppel_index *damaged = from;
    doppel_status status = doppel_index_each(from, collect, &c);
    uint64_t count = c.owners.size / 8;
    if (status == DOPPEL_OK && count > MOST) {
        status = dp_fail(error, DOPPEL_ERROR_USAGE, "%llu entries are too many to merge at once; the most is %llu",
                         (unsigned long long)count, (unsigned long long)MOST);
    } else if (status == DOPPEL_OK) {
        status = doppel_index_add_batch(index, (const void *)c.fingerprints.data, (const void *)c.owners.data,
                                        (const void *)c.expires.data, count);
        /* Bits beyond the width can only come from a forged file. */
        damaged = status == DOPPEL_ERROR_USAGE ? from : index;
        status = status == DOPPEL_ERROR_USAGE ? DOPPEL_ERROR_STORE : status;
    }
    dp_buffer_free(&c.fingerprints);
    dp_buffer_free(&c.owners);
    dp_buffer_free(&c.expires);
    if (c.full)
        return dp_no_memory(error);
    return dp_index_explain(damaged, status, error);
}
