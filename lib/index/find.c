/* find.c - every entry within k bits of a query.
 *
 * Each run has a schedule for the distance: tables, and for each a radius. All keys of a table within its radius of the
 * query's are probed. Probes of all tables and runs go through one batch, in steps, so that memory is asked for long
 * before it is read: first the directory, then the bucket, then the kernel looks at the bucket's filter column, and
 * what passes waits for the rest of its bits to be compared in full. An entry that several tables find is taken by the
 * first of them in the schedule alone: whether an earlier table would have found it follows from the differing bits. */
#include "index/find.h"
#include "kernel/kernel.h"

/* A batch is so large that memory answers the first probe while the last are asked for; LINES_AHEAD cache lines of
 * buckets are asked for before they are read, which keeps all of a core's misses under way and fits its first cache. */
enum { PROBES = 64, SOURCES = 64, LINES_AHEAD = 64, CHUNK = 1024, WAITING = 64, SCAN = 512 };

#define CACHE_LINE 64

/* A table of a run that is probed. */
typedef struct probed {
    const dp_run *run;
    const dp_table *table;
    const dp_schedule *schedule;
    int order; /* in the schedule */
    dp_bits arranged;
    bool apart; /* no bit is in the key and in the filter */
} probed;

typedef struct probe {
    const probed *source;
    uint64_t key;
    int flips; /* bits by which the key differs from the query's */
    dp_range range;
} probe;

/* A place of a bucket whose filter is near. */
typedef struct waiting {
    const probed *source;
    uint64_t key, place;
} waiting;

typedef struct batch {
    dp_finder *finder;
    int sources, probes, waits;
    probed source[SOURCES];
    probe probe[PROBES];
    waiting waiting[WAITING];
} batch;

/* ---- buckets ---- */

static doppel_status take_position(dp_finder *finder, const dp_run *run, uint64_t position, dp_bits difference) {
    dp_owners owners;
    doppel_status status = dp_run_owners(run, position, &owners);
    if (status != DOPPEL_OK)
        return status;
    dp_hit hit = {.value = finder->query ^ difference, .distance = dp_bits_count(difference)};
    for (uint64_t i = 0; i < owners.count && !finder->done; i++) {
        if (dp_run_is_dead(run, owners.slot + i))
            continue;
        hit.owner = owners.owner[i];
        hit.expires = dp_run_expires(run, owners.slot + i);
        if (!dp_finder_take(finder, &hit))
            return DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

/* Whether a table that stands earlier in the schedule finds the entry too. */
static bool found_before(const probed *source, dp_bits difference) {
    const dp_schedule *schedule = source->schedule;
    for (int i = 0; i < source->order; i++) {
        dp_bits key = difference & source->run->layout.table[schedule->table[i]].key_mask;
        if (dp_bits_count(key) <= schedule->radius[i])
            return true;
    }
    return false;
}

/* A place whose filter is near: is the whole? */
static doppel_status check_place(dp_finder *finder, const waiting *w) {
    const probed *source = w->source;
    const dp_run *run = source->run;
    dp_bits difference = dp_run_arranged(run, source->table, w->key, w->place) ^ source->arranged;
    if (dp_bits_count(difference) > finder->distance)
        return DOPPEL_OK;
    int table = source->schedule->table[source->order];
    difference = dp_layout_restore(&run->layout.table[table], difference);
    if (found_before(source, difference))
        return DOPPEL_OK;
    if (table == 0)
        return take_position(finder, run, w->place, difference);
    bool found;
    uint64_t position;
    doppel_status status = dp_run_search(run, finder->query ^ difference, &found, &position);
    if (status != DOPPEL_OK)
        return status;
    return found ? take_position(finder, run, position, difference) : DOPPEL_ERROR_STORE;
}

static doppel_status check_waiting(batch *b) {
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < b->waits && status == DOPPEL_OK && !b->finder->done; i++)
        status = check_place(b->finder, &b->waiting[i]);
    b->waits = 0;
    return status;
}

static size_t near_filter(const probed *source, uint64_t from, size_t count, int distance, uint32_t *hits) {
    uint64_t query = (uint64_t)source->arranged;
    if (source->run->bits > 64)
        return dp_near64_kernel()((const uint64_t *)source->table->filter + from, count, query, distance, hits);
    return dp_near32_kernel()((const uint32_t *)source->table->filter + from, count, (uint32_t)query, distance, hits);
}

static doppel_status look_through(batch *b, const probe *p) {
    uint32_t hits[CHUNK + 16];
    const probed *source = p->source;
    int distance = source->apart ? b->finder->distance - p->flips : b->finder->distance;
    for (uint64_t from = p->range.from; from < p->range.to; from += CHUNK) {
        size_t count = p->range.to - from < CHUNK ? (size_t)(p->range.to - from) : CHUNK;
        size_t found = near_filter(source, from, count, distance, hits);
        for (size_t i = 0; i < found && !b->finder->done; i++) {
            uint64_t place = from + hits[i];
            __builtin_prefetch(source->table->rest + place * (uint64_t)source->table->rest_bytes);
            doppel_status status = b->waits == WAITING ? check_waiting(b) : DOPPEL_OK;
            if (status != DOPPEL_OK)
                return status;
            b->waiting[b->waits++] = (waiting){source, p->key, place};
        }
    }
    return DOPPEL_OK;
}

/* ---- batches ---- */

/* Asks for a bucket, as far as it is not longer than what is asked for ahead; gives its cache lines. Always inline:
 * a call that only asks for memory is one without effect to some compilers, and they leave it out. */
static inline __attribute__((always_inline)) int prefetch_bucket(const probe *p) {
    size_t size = dp_filter_size(p->source->run);
    const char *from = (const char *)p->source->table->filter + p->range.from * size;
    const char *to = (const char *)p->source->table->filter + p->range.to * size;
    int lines = 0;
    from -= (uintptr_t)from % CACHE_LINE;
    for (; from < to && lines < LINES_AHEAD; lines++, from += CACHE_LINE)
        __builtin_prefetch(from);
    return lines;
}

static doppel_status look_up_buckets(batch *b) {
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < b->probes && status == DOPPEL_OK; i++) {
        probe *p = &b->probe[i];
        status = dp_run_bucket(p->source->run, p->source->table, p->key, &p->range);
        b->finder->matches->candidates += p->range.to - p->range.from;
    }
    return status;
}

static doppel_status run_batch(batch *b) {
    doppel_status status = look_up_buckets(b);
    int lines[PROBES], ahead = 0, asked = 0;
    for (int i = 0; i < b->probes && status == DOPPEL_OK && !b->finder->done; i++) {
        for (; ahead < b->probes && (ahead == i || asked < LINES_AHEAD); ahead++)
            asked += lines[ahead] = prefetch_bucket(&b->probe[ahead]);
        status = look_through(b, &b->probe[i]);
        asked -= lines[i];
    }
    b->probes = 0;
    return status == DOPPEL_OK ? check_waiting(b) : status;
}

static doppel_status add_probe(batch *b, const probed *source, uint64_t key, int flips) {
    doppel_status status = b->probes == PROBES ? run_batch(b) : DOPPEL_OK;
    __builtin_prefetch(source->table->directory + key);
    b->probe[b->probes++] = (probe){source, key, flips, {0, 0}};
    return status;
}

/* The next number with as many bits set. */
static uint64_t next_flips(uint64_t x) {
    uint64_t low = x & -x, up = x + low;
    return (x ^ up) >> (2 + __builtin_ctzll(x)) | up;
}

static doppel_status probe_table(batch *b, const probed *source) {
    int key_bits = source->table->key_bits, radius = source->schedule->radius[source->order];
    uint64_t key = key_bits ? (uint64_t)(source->arranged >> (source->run->bits - key_bits)) : 0;
    doppel_status status = add_probe(b, source, key, 0);
    for (int flips = 1; flips <= radius && flips <= key_bits; flips++) {
        uint64_t mask = ((uint64_t)1 << flips) - 1;
        for (; mask >> key_bits == 0 && status == DOPPEL_OK && !b->finder->done; mask = next_flips(mask))
            status = add_probe(b, source, key ^ mask, flips);
    }
    return status;
}

/* ---- all entries ---- */

static doppel_status scan_run(dp_finder *finder, const dp_run *run) {
    uint64_t values[2 * SCAN], bucket = 0;
    size_t words = run->bits > 64 ? 2 : 1;
    finder->matches->candidates += run->count;
    for (uint64_t from = 0; from < run->count && !finder->done; from += SCAN) {
        uint64_t count = run->count - from < SCAN ? run->count - from : SCAN;
        uint32_t hits[SCAN + 16];
        doppel_status status = dp_run_values(run, from, count, &bucket, values);
        size_t found = status == DOPPEL_OK ? dp_finder_near(finder, values, (size_t)count, hits) : 0;
        for (size_t i = 0; i < found && status == DOPPEL_OK && !finder->done; i++)
            status = take_position(finder, run, from + hits[i],
                                   dp_bits_load(values + hits[i] * words, run->bits) ^ finder->query);
        if (status != DOPPEL_OK)
            return status;
    }
    return DOPPEL_OK;
}

static doppel_status take_from_head(dp_finder *finder, const dp_head *head, uint64_t at) {
    dp_hit hit = {.value = dp_head_value(head, at)};
    hit.distance = dp_bits_count(hit.value ^ finder->query);
    if (hit.distance > finder->distance || atomic_load_explicit(&head->dead[at], memory_order_acquire))
        return DOPPEL_OK;
    hit.owner = head->owners[at];
    hit.expires = atomic_load_explicit(&head->expires[at], memory_order_relaxed);
    return dp_finder_take(finder, &hit) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status find_in_head(dp_finder *finder, const dp_head *head) {
    uint64_t all = atomic_load_explicit(&head->count, memory_order_acquire);
    finder->matches->candidates += all;
    for (uint64_t from = 0; from < all && !finder->done; from += CHUNK) {
        uint32_t hits[CHUNK + 16];
        size_t count = all - from < CHUNK ? (size_t)(all - from) : CHUNK;
        size_t found = dp_near32_kernel()(head->filter + from, count, (uint32_t)finder->query, finder->distance, hits);
        for (size_t i = 0; i < found && !finder->done; i++) {
            doppel_status status = take_from_head(finder, head, from + hits[i]);
            if (status != DOPPEL_OK)
                return status;
        }
    }
    return DOPPEL_OK;
}

/* ---- the whole ---- */

/* dp_layout_arrange, in half the work for half the bits. */
static dp_bits arrange(const dp_table_layout *layout, int bits, dp_bits value) {
    if (bits > 64)
        return dp_layout_arrange(layout, value);
    uint64_t from = (uint64_t)value, to = 0;
    int shift = bits;
    for (int i = 0; i < layout->cuts; i++) {
        shift -= layout->cut[i].width;
        to |= (from >> layout->cut[i].from & UINT64_MAX >> (64 - layout->cut[i].width)) << shift;
    }
    return to;
}

static doppel_status find_in_run(batch *b, const dp_run *run) {
    const dp_schedule *schedule = dp_run_schedule(run, b->finder->distance);
    if (!schedule)
        return DOPPEL_ERROR_MEMORY;
    if (schedule->scan)
        return scan_run(b->finder, run);
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < schedule->tables && status == DOPPEL_OK && !b->finder->done; i++) {
        if (b->sources == SOURCES) {
            status = run_batch(b);
            b->sources = 0;
        }
        int t = schedule->table[i];
        probed *source = &b->source[b->sources++];
        const dp_table *table = &run->table[t];
        *source = (probed){.run = run, .table = table, .schedule = schedule, .order = i};
        source->arranged = arrange(&run->layout.table[t], run->bits, b->finder->query);
        source->apart = run->bits - table->key_bits >= dp_filter_bits(run->bits);
        if (status == DOPPEL_OK)
            status = probe_table(b, source);
    }
    return status;
}

doppel_status dp_finder_run(dp_finder *finder, const dp_version *version) {
    batch b;
    b.finder = finder;
    b.sources = b.probes = b.waits = 0;
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < version->runs && status == DOPPEL_OK && !finder->done; i++)
        status = find_in_run(&b, version->run[i]);
    if (status == DOPPEL_OK && !finder->done)
        status = find_in_head(finder, version->head);
    if (status == DOPPEL_OK && !finder->done)
        status = run_batch(&b);
    return status;
}
