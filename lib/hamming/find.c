/* find.c - reading an index: doppel_index_find, doppel_index_contains, doppel_index_each, numbers about it.
 *
 * A find gives every entry within k bits of a query. Each run has a schedule for the distance: tables, and for each a
 * radius. All keys of a table within its radius of the query's are probed. Probes of all tables and runs go through one
 * batch, in steps, so that memory is prefetched long before it is read: first the directory, then the bucket, then the
 * kernel looks at the bucket's filter column, and what passes waits for the rest of its bits to be compared in full. An
 * entry found by several tables is reported only by the first of them in the schedule: whether an earlier table would
 * have found it follows from the differing bits. */
#include "hamming/index.h"
#include "kernel/kernel.h"

#include <stdlib.h>

typedef struct index_finder {
    const dp_order *order;
    dp_bits query; /* reordered */
    int distance;
    uint64_t now, limit;
    bool any, count_only;
    bool done; /* nothing more is wanted */
    doppel_matches *matches;
} index_finder;

/* An entry that was found. */
typedef struct index_hit {
    dp_bits value; /* reordered */
    uint64_t owner, expires;
    int distance;
} index_hit;

/* ---- matches: collected, ordered, cut to a limit ---- */

/* The numbers (one or two words each) within the distance of the query: places as the near kernels give them. */
static size_t near_query(const index_finder *finder, const uint64_t *values, size_t count, uint32_t *hits) {
    if (finder->order->bits <= 64)
        return dp_near64_kernel()(values, count, (uint64_t)finder->query, finder->distance, hits);
    uint64_t query[2];
    dp_bits_store(finder->query, query);
    return dp_near128_kernel()(values, count, query, finder->distance, hits);
}

static int compare_matches(const void *left, const void *right) {
    const doppel_match *a = left, *b = right;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    for (int i = 1; i >= 0; i--)
        if (a->fingerprint[i] != b->fingerprint[i])
            return a->fingerprint[i] < b->fingerprint[i] ? -1 : 1;
    return a->owner < b->owner ? -1 : a->owner > b->owner;
}

/* Most finds return a handful. */
enum { FEW = 16 };

static void sort_matches(doppel_matches *matches) {
    if (matches->count > FEW) {
        qsort(matches->match, matches->count, sizeof *matches->match, compare_matches);
        return;
    }
    for (size_t i = 1; i < matches->count; i++) {
        doppel_match match = matches->match[i];
        size_t at = i;
        for (; at && compare_matches(&matches->match[at - 1], &match) > 0; at--)
            matches->match[at] = matches->match[at - 1];
        matches->match[at] = match;
    }
}

/* Up to twice the limit is kept before the matches are cut, so that sorting costs little per entry. */
static void cut(index_finder *finder) {
    sort_matches(finder->matches);
    if (finder->matches->count > finder->limit)
        finder->matches->count = finder->limit;
}

/* Keeps a hit, unless it has expired. False when out of memory. */
static bool take_hit(index_finder *finder, const index_hit *hit) {
    doppel_matches *matches = finder->matches;
    if (finder->now && hit->expires && hit->expires <= finder->now)
        return true;
    finder->done = finder->any;
    if (finder->count_only) {
        matches->count++;
        return true;
    }
    if (!dp_reserve(&matches->match, &matches->capacity, matches->count + 1, sizeof *matches->match))
        return false;
    doppel_match *match = &matches->match[matches->count++];
    *match = (doppel_match){.owner = hit->owner, .expires = hit->expires, .distance = hit->distance};
    dp_bits_store(dp_order_undo(finder->order, hit->value), match->fingerprint);
    if (finder->limit && matches->count >= 64 && matches->count / 2 >= finder->limit)
        cut(finder);
    return true;
}

void doppel_matches_free(doppel_matches *matches) {
    if (!matches)
        return;
    free(matches->match);
    *matches = (doppel_matches){0};
}

/* A batch is large enough for the first probe's data to arrive while the last are prefetched; LINES_AHEAD cache lines
 * of buckets are prefetched before they are read, which uses all of a core's outstanding misses and fits its L1
 * cache. */
enum { PROBES = 64, SOURCES = 64, LINES_AHEAD = 64, CHUNK = 1024, WAITING = 64, SCAN = 512 };

#define CACHE_LINE 64

/* A table of a run, or of a level, that is probed. */
typedef struct probed {
    const dp_run *run;       /* NULL: a level's */
    const dp_growing *level; /* NULL: a run's */
    const dp_layout *layout;
    const dp_run_table *table; /* of a level: widths alone */
    const dp_schedule *schedule;
    int order;            /* in the schedule */
    uint64_t arranged[2]; /* the query; in words, as reading a just-written 128-bit number at once is slow */
    bool apart;           /* no bit is in the key and in the filter */
} probed;

typedef struct probe {
    const probed *source;
    uint64_t key;
    int flips;      /* bits by which the key differs from the query's */
    dp_chunk chunk; /* the bucket */
    uint64_t first; /* of a run: the place of its first number */
} probe;

/* A place of a bucket whose filter is near. */
typedef struct waiting {
    const probe *probe;
    uint64_t place; /* in the bucket */
} waiting;

typedef struct batch {
    index_finder *finder;
    int sources, probes, waits;
    const dp_layout *layout; /* the layout the query was last arranged for; NULL: none */
    uint64_t arranged_for;   /* its tables for which that is done */
    uint64_t arranged[DP_MAX_TABLES][2];
    probed source[SOURCES];
    probe probe[PROBES];
    waiting waiting[WAITING];
} batch;

/* ---- buckets ---- */

static doppel_status take_position(index_finder *finder, const dp_run *run, uint64_t position, dp_bits difference) {
    dp_owners owners;
    DP_TRY(dp_run_owners(run, position, &owners));
    index_hit hit = {.value = finder->query ^ difference, .distance = dp_bits_count(difference)};
    for (uint64_t i = 0; i < owners.count && !finder->done; i++) {
        if (dp_run_is_dead(run, owners.slot + i))
            continue;
        hit.owner = owners.owner[i];
        hit.expires = dp_run_expires(run, owners.slot + i);
        if (!take_hit(finder, &hit))
            return DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

static doppel_status take_from_level(index_finder *finder, const probed *source, const dp_chunk *chunk, uint64_t place,
                                     dp_bits difference) {
    dp_growing_entry entry = dp_growing_place(source->level, chunk, place);
    if (finder->done || atomic_load_explicit(entry.dead, memory_order_acquire))
        return DOPPEL_OK;
    index_hit hit = {.value = finder->query ^ difference,
                     .owner = *entry.owner,
                     .expires = atomic_load_explicit(entry.expires, memory_order_relaxed),
                     .distance = dp_bits_count(difference)};
    return take_hit(finder, &hit) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* Whether an earlier table of the schedule finds the entry too. */
static bool found_before(const probed *source, dp_bits difference) {
    const dp_schedule *schedule = source->schedule;
    for (int i = 0; i < source->order; i++) {
        dp_bits key = difference & source->layout->table[schedule->table[i]].key_mask;
        if (dp_bits_count(key) <= schedule->radius[i])
            return true;
    }
    return false;
}

/* All entries of a number that another table of a level has; table 0 may not have it yet. */
static doppel_status take_all_from_level(index_finder *finder, const probed *source, dp_bits difference) {
    dp_growing_places found;
    doppel_status status = DOPPEL_OK;
    dp_growing_search(source->level, finder->query ^ difference, &found);
    for (int i = 0; i < found.count && status == DOPPEL_OK; i++)
        status = take_from_level(finder, source, &found.chunk, found.place[i], difference);
    return status;
}

/* A number that is near, found in a table of a run or a level. */
static doppel_status take_number(index_finder *finder, const waiting *w, int table, dp_bits difference) {
    const probe *p = w->probe;
    const probed *source = p->source;
    if (source->level)
        return table ? take_all_from_level(finder, source, difference)
                     : take_from_level(finder, source, &p->chunk, w->place, difference);
    if (table == 0)
        return take_position(finder, source->run, p->first + w->place, difference);
    bool found;
    uint64_t position;
    DP_TRY(dp_run_search(source->run, finder->query ^ difference, &found, &position));
    return found ? take_position(finder, source->run, position, difference) : DOPPEL_ERROR_STORE;
}

/* Compares a place whose filter is near in full. */
static doppel_status check_place(index_finder *finder, const waiting *w) {
    const probe *p = w->probe;
    const probed *source = p->source;
    int table = source->schedule->table[source->order];
    dp_bits arranged = source->level ? dp_growing_arranged(source->level, table, p->key, &p->chunk, w->place)
                                     : dp_run_arranged(source->run, source->table, p->key, p->first + w->place);
    dp_bits difference = arranged ^ dp_bits_load(source->arranged, source->layout->bits);
    if (dp_bits_count(difference) > finder->distance)
        return DOPPEL_OK;
    difference = dp_layout_restore(&source->layout->table[table], difference);
    return found_before(source, difference) ? DOPPEL_OK : take_number(finder, w, table, difference);
}

static doppel_status check_waiting(batch *b) {
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < b->waits && status == DOPPEL_OK && !b->finder->done; i++)
        status = check_place(b->finder, &b->waiting[i]);
    b->waits = 0;
    return status;
}

static size_t near_filter(const probed *source, const void *column, size_t count, int distance, uint32_t *hits) {
    uint64_t query = source->arranged[0];
    if (source->layout->bits > 64)
        return dp_near64_kernel()(column, count, query, distance, hits);
    return dp_near32_kernel()(column, count, (uint32_t)query, distance, hits);
}

static inline size_t filter_size(const probed *source) {
    return source->layout->bits > 64 ? sizeof(uint64_t) : sizeof(uint32_t);
}

static doppel_status look_through(batch *b, const probe *p) {
    uint32_t hits[CHUNK + 16];
    const probed *source = p->source;
    int distance = source->apart ? b->finder->distance - p->flips : b->finder->distance;
    for (uint64_t from = 0; from < p->chunk.count; from += CHUNK) {
        size_t count = p->chunk.count - from < CHUNK ? (size_t)(p->chunk.count - from) : CHUNK;
        size_t found = near_filter(source, p->chunk.filter + from * filter_size(source), count, distance, hits);
        for (size_t i = 0; i < found && !b->finder->done; i++) {
            uint64_t place = from + hits[i];
            __builtin_prefetch(p->chunk.rest + place * (uint64_t)source->table->rest_bytes);
            doppel_status status = b->waits == WAITING ? check_waiting(b) : DOPPEL_OK;
            if (status != DOPPEL_OK)
                return status;
            b->waiting[b->waits++] = (waiting){p, place};
        }
    }
    return DOPPEL_OK;
}

/* ---- batches ---- */

/* Prefetches a bucket, up to the prefetch limit; returns its cache lines. Always inline: to some compilers a call that
 * only prefetches has no effect, and they drop it. */
static inline __attribute__((always_inline)) int prefetch_bucket(const probe *p) {
    const uint8_t *from = p->chunk.filter, *to = from + p->chunk.count * filter_size(p->source);
    int lines = 0;
    if (!p->chunk.count)
        return 0;
    from -= (uintptr_t)from % CACHE_LINE;
    for (; from < to && lines < LINES_AHEAD; lines++, from += CACHE_LINE)
        __builtin_prefetch(from);
    return lines;
}

static doppel_status look_up_bucket(probe *p) {
    const probed *source = p->source;
    if (source->level) {
        p->chunk = dp_growing_chunk(source->level, source->schedule->table[source->order], p->key);
        return DOPPEL_OK;
    }
    dp_range range;
    DP_TRY(dp_run_bucket(source->run, source->table, p->key, &range));
    p->first = range.from;
    p->chunk.count = range.to - range.from;
    p->chunk.filter = (const uint8_t *)source->table->filter + range.from * filter_size(source);
    p->chunk.rest = source->table->rest + range.from * (uint64_t)source->table->rest_bytes;
    return DOPPEL_OK;
}

static doppel_status look_up_buckets(batch *b) {
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < b->probes && status == DOPPEL_OK; i++) {
        probe *p = &b->probe[i];
        status = look_up_bucket(p);
        b->finder->matches->candidates += p->chunk.count;
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
    if (source->level)
        __builtin_prefetch((const void *)&source->level->bucket[source->schedule->table[source->order]][key]);
    else
        __builtin_prefetch(source->table->directory + key);
    probe *added = &b->probe[b->probes++];
    added->source = source;
    added->key = key;
    added->flips = flips;
    added->chunk.count = 0;
    return status;
}

/* The next number with the same number of bits set. */
static uint64_t next_flips(uint64_t x) {
    uint64_t low = x & -x, up = x + low;
    return (x ^ up) >> (2 + __builtin_ctzll(x)) | up;
}

static doppel_status probe_table(batch *b, const probed *source) {
    int key_bits = source->table->key_bits, radius = source->schedule->radius[source->order];
    int above = source->layout->bits - key_bits; /* a key has at most 30 bits: it lies in one word */
    uint64_t key = key_bits ? above < 64 ? source->arranged[0] >> above : source->arranged[1] >> (above - 64) : 0;
    doppel_status status = add_probe(b, source, key, 0);
    if (!radius)
        return status;
    for (int flips = 1; flips <= radius && flips <= key_bits; flips++) {
        uint64_t mask = ((uint64_t)1 << flips) - 1;
        for (; mask >> key_bits == 0 && status == DOPPEL_OK && !b->finder->done; mask = next_flips(mask))
            status = add_probe(b, source, key ^ mask, flips);
    }
    return status;
}

static doppel_status scan_run(index_finder *finder, const dp_run *run) {
    uint64_t values[2 * SCAN], bucket = 0;
    size_t words = run->bits > 64 ? 2 : 1;
    finder->matches->candidates += run->count;
    for (uint64_t from = 0; from < run->count && !finder->done; from += SCAN) {
        uint64_t count = run->count - from < SCAN ? run->count - from : SCAN;
        uint32_t hits[SCAN + 16];
        doppel_status status = dp_run_values(run, from, count, &bucket, values);
        size_t found = status == DOPPEL_OK ? near_query(finder, values, (size_t)count, hits) : 0;
        for (size_t i = 0; i < found && status == DOPPEL_OK && !finder->done; i++)
            status = take_position(finder, run, from + hits[i],
                                   dp_bits_load(values + hits[i] * words, run->bits) ^ finder->query);
        if (status != DOPPEL_OK)
            return status;
    }
    return DOPPEL_OK;
}

static doppel_status take_from_head(index_finder *finder, const dp_head *head, uint64_t at) {
    index_hit hit = {.value = dp_head_value(head, at)};
    hit.distance = dp_bits_count(hit.value ^ finder->query);
    if (hit.distance > finder->distance || atomic_load_explicit(&head->dead[at], memory_order_acquire))
        return DOPPEL_OK;
    hit.owner = head->owners[at];
    hit.expires = atomic_load_explicit(&head->expires[at], memory_order_relaxed);
    return take_hit(finder, &hit) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status find_in_head(index_finder *finder, const dp_head *head) {
    uint64_t all = atomic_load_explicit(&head->count, memory_order_acquire);
    finder->matches->candidates += all;
    for (uint64_t from = 0; from < all && !finder->done; from += CHUNK) {
        uint32_t hits[CHUNK + 16];
        size_t count = all - from < CHUNK ? (size_t)(all - from) : CHUNK;
        size_t found = dp_near32_kernel()(head->filter + from, count, (uint32_t)finder->query, finder->distance, hits);
        for (size_t i = 0; i < found && !finder->done; i++) {
            DP_TRY(take_from_head(finder, head, from + hits[i]));
        }
    }
    return DOPPEL_OK;
}

/* What is probed: a run or a level. */
typedef struct probed_part {
    const dp_run *run;
    const dp_growing *level;
    const dp_layout *layout;
    uint64_t count;
    const _Atomic(dp_schedule *) *schedules; /* by distance */
} probed_part;

static dp_schedule *make_schedule(const probed_part *part, int distance) {
    dp_schedule *schedule = calloc(1, sizeof *schedule);
    if (!schedule)
        return NULL;
    int radius[DP_MAX_TABLES];
    doppel_costs costs;
    doppel_costs_get(&costs);
    schedule->scan = !dp_layout_radii(&(dp_question){&costs, part->count, distance}, part->layout, radius);
    for (int t = 0; t < part->layout->tables && !schedule->scan; t++)
        if (radius[t] >= 0) {
            schedule->table[schedule->tables] = t;
            schedule->radius[schedule->tables++] = radius[t];
        }
    return schedule;
}

/* The schedule of a run or a level for a distance; NULL when out of memory. */
static const dp_schedule *schedule_for(const probed_part *part, int distance) {
    /* A cache: the first thread publishes the result for all. */
    _Atomic(dp_schedule *) *place = (_Atomic(dp_schedule *) *)&part->schedules[distance];
    dp_schedule *there = atomic_load_explicit(place, memory_order_acquire);
    if (there)
        return there;
    dp_schedule *made = make_schedule(part, distance);
    if (made && !atomic_compare_exchange_strong(place, &there, made)) {
        free(made);
        return there;
    }
    return made;
}

/* Bucket by bucket of table 0. */
static doppel_status scan_level(index_finder *finder, const dp_growing *level) {
    probed source = {.level = level};
    doppel_status status = DOPPEL_OK;
    for (uint64_t key = 0; key < (uint64_t)1 << level->table[0].key_bits && !finder->done; key++) {
        dp_chunk chunk = dp_growing_chunk(level, 0, key);
        finder->matches->candidates += chunk.count;
        for (uint64_t i = 0; i < chunk.count && status == DOPPEL_OK; i++) {
            dp_bits difference = dp_growing_arranged(level, 0, key, &chunk, i) ^ finder->query;
            if (dp_bits_count(difference) <= finder->distance)
                status = take_from_level(finder, &source, &chunk, i, difference);
        }
        if (status != DOPPEL_OK)
            return status;
    }
    return DOPPEL_OK;
}

_Static_assert(DP_MAX_TABLES <= 64, "a bit a table");

/* The query in the order of a table. Runs and levels of a large index have the same layout: the work is done once. */
static const uint64_t *arrange_query(batch *b, const dp_layout *layout, int table) {
    uint64_t *arranged = b->arranged[table];
    if (b->layout != layout && (!b->layout || memcmp(b->layout->name, layout->name, sizeof layout->name) != 0))
        b->arranged_for = 0;
    b->layout = layout;
    if (b->arranged_for >> table & 1)
        return arranged;
    b->arranged_for |= (uint64_t)1 << table;
    if (layout->bits > 64)
        dp_bits_store(dp_layout_arrange(&layout->table[table], b->finder->query), arranged);
    else
        arranged[0] = dp_layout_arrange64(&layout->table[table], layout->bits, (uint64_t)b->finder->query);
    return arranged;
}

static doppel_status find_in_part(batch *b, const probed_part *part) {
    const dp_schedule *schedule = schedule_for(part, b->finder->distance);
    if (!schedule)
        return DOPPEL_ERROR_MEMORY;
    if (schedule->scan)
        return part->run ? scan_run(b->finder, part->run) : scan_level(b->finder, part->level);
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < schedule->tables && status == DOPPEL_OK && !b->finder->done; i++) {
        if (b->sources == SOURCES) {
            status = run_batch(b);
            b->sources = 0;
        }
        int t = schedule->table[i], bits = part->layout->bits;
        probed *source = &b->source[b->sources++];
        const dp_run_table *table = part->run ? &part->run->table[t] : &part->level->table[t];
        *source = (probed){part->run, part->level, part->layout, table, schedule, .order = i};
        const uint64_t *arranged = arrange_query(b, part->layout, t);
        source->arranged[0] = arranged[0];
        source->arranged[1] = bits > 64 ? arranged[1] : 0;
        source->apart = bits - table->key_bits >= dp_filter_bits(bits);
        DP_THEN(status, probe_table(b, source));
    }
    return status;
}

static doppel_status find_in_run(batch *b, const dp_run *run) {
    return find_in_part(b, &(probed_part){run, NULL, &run->layout, run->count, run->schedule});
}

static doppel_status find_in_level(batch *b, const dp_growing *level) {
    return find_in_part(b, &(probed_part){NULL, level, &level->layout, level->planned, level->schedule});
}

/* Looks through a version: DOPPEL_OK, DOPPEL_ERROR_MEMORY, or DOPPEL_ERROR_STORE for a damaged file. */
static doppel_status find_in_version(index_finder *finder, const dp_version *version) {
    batch b;
    b.finder = finder;
    b.sources = b.probes = b.waits = 0;
    b.layout = NULL;
    b.arranged_for = 0;
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < version->runs && status == DOPPEL_OK && !finder->done; i++)
        status = find_in_run(&b, version->run[i]);
    if (version->full && !finder->done)
        DP_THEN(status, find_in_level(&b, version->full));
    if (version->growing && !finder->done)
        DP_THEN(status, find_in_level(&b, version->growing));
    if (status == DOPPEL_OK && !finder->done)
        status = find_in_head(finder, version->head);
    if (status == DOPPEL_OK && !finder->done)
        status = run_batch(&b);
    return status;
}

/* ---- the call ---- */

doppel_status doppel_index_find(const doppel_index *index, const uint64_t *fingerprint, int distance,
                                const doppel_find_options *given, doppel_matches *matches, doppel_error *error) {
    doppel_find_options options = {0};
    if (given)
        dp_copy_options(&options, given, sizeof options);
    matches->count = 0;
    matches->candidates = 0;
    if (distance < 0 || distance > index->bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "distance %d: must be 0 to %d with %d bits", distance, index->bits,
                       index->bits);
    if (!dp_index_has_width(index, fingerprint))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "the fingerprint has bits beyond the %d of the index", index->bits);
    index_finder finder = {.order = &index->order,
                           .query = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits)),
                           .distance = distance,
                           .now = options.now,
                           .limit = options.limit,
                           .any = options.any,
                           .count_only = options.count_only,
                           .matches = matches};
    dp_pinned pinned = dp_index_pin(index);
    doppel_status status = find_in_version(&finder, pinned.version);
    dp_index_unpin(pinned);
    if (status != DOPPEL_OK)
        return dp_index_explain(index, status, error);
    if (!options.count_only) {
        sort_matches(matches);
        if (options.limit && matches->count > options.limit)
            matches->count = options.limit;
    }
    return status;
}

/* ---- the index as a whole ---- */

/* The number of fingerprints of a run that are read at a time. */
enum { STRETCH = 512 };

/* The newest entries are scanned: a reader has no hash of them. */
static bool head_contains(const dp_head *head, dp_bits value, uint64_t owner) {
    uint32_t hits[STRETCH + 16];
    uint64_t all = atomic_load_explicit(&head->count, memory_order_acquire);
    for (uint64_t from = 0; from < all; from += STRETCH) {
        size_t count = all - from < STRETCH ? (size_t)(all - from) : STRETCH;
        size_t found = dp_near32_kernel()(head->filter + from, count, (uint32_t)value, 0, hits);
        for (size_t i = 0; i < found; i++) {
            uint64_t at = from + hits[i];
            if (head->owners[at] == owner && dp_head_value(head, at) == value)
                return !atomic_load_explicit(&head->dead[at], memory_order_acquire);
        }
    }
    return false;
}

/* Whether a level has the entry, alive. */
static bool level_contains(const dp_growing *level, dp_bits value, uint64_t owner) {
    dp_growing_places found = {.count = 0};
    if (level)
        dp_growing_search(level, value, &found);
    for (int i = 0; i < found.count; i++) {
        dp_growing_entry entry = dp_growing_place(level, &found.chunk, found.place[i]);
        if (*entry.owner == owner)
            return !atomic_load_explicit(entry.dead, memory_order_acquire);
    }
    return false;
}

doppel_status doppel_index_contains(const doppel_index *index, const uint64_t *fingerprint, uint64_t owner,
                                    bool *contains) {
    *contains = false;
    if (!dp_index_has_width(index, fingerprint))
        return DOPPEL_ERROR_USAGE;
    dp_bits value = dp_order_apply(&index->order, dp_bits_load(fingerprint, index->bits));
    dp_pinned pinned = dp_index_pin(index);
    const dp_version *version = pinned.version;
    doppel_status status = DOPPEL_OK;
    *contains = head_contains(version->head, value, owner) || level_contains(version->growing, value, owner) ||
                level_contains(version->full, value, owner);
    for (int i = 0; i < version->runs && !*contains && status == DOPPEL_OK; i++) {
        bool found;
        uint64_t slot;
        status = dp_run_slot(version->run[i], value, owner, &found, &slot);
        if (status == DOPPEL_OK && found) {
            *contains = !dp_run_is_dead(version->run[i], slot);
            break;
        }
    }
    dp_index_unpin(pinned);
    return status;
}

typedef struct reading {
    const dp_order *order;
    bool (*entry)(const doppel_match *entry, void *user);
    void *user;
} reading;

static doppel_status give(const reading *r, dp_bits value, uint64_t owner, uint64_t expires) {
    doppel_match match = {.owner = owner, .expires = expires};
    dp_bits_store(dp_order_undo(r->order, value), match.fingerprint);
    return r->entry(&match, r->user) ? DOPPEL_OK : DOPPEL_ERROR_INTERRUPTED;
}

static doppel_status give_head(const reading *r, const dp_head *head) {
    uint64_t count = atomic_load_explicit(&head->count, memory_order_acquire);
    doppel_status status = DOPPEL_OK;
    for (uint64_t i = 0; i < count && status == DOPPEL_OK; i++)
        if (!atomic_load_explicit(&head->dead[i], memory_order_acquire))
            status = give(r, dp_head_value(head, i), head->owners[i],
                          atomic_load_explicit(&head->expires[i], memory_order_relaxed));
    return status;
}

static doppel_status give_position(const reading *r, const dp_run *run, uint64_t position, dp_bits value) {
    dp_owners owners;
    doppel_status status = dp_run_owners(run, position, &owners);
    for (uint64_t i = 0; status == DOPPEL_OK && i < owners.count; i++)
        if (!dp_run_is_dead(run, owners.slot + i))
            status = give(r, value, owners.owner[i], dp_run_expires(run, owners.slot + i));
    return status;
}

static doppel_status give_run(const reading *r, const dp_run *run) {
    uint64_t values[2 * STRETCH], bucket = 0;
    size_t words = run->bits > 64 ? 2 : 1;
    for (uint64_t from = 0; from < run->count; from += STRETCH) {
        uint64_t count = run->count - from < STRETCH ? run->count - from : STRETCH;
        doppel_status status = dp_run_values(run, from, count, &bucket, values);
        for (uint64_t i = 0; i < count && status == DOPPEL_OK; i++)
            status = give_position(r, run, from + i, dp_bits_load(values + i * words, run->bits));
        if (status != DOPPEL_OK)
            return status;
    }
    return DOPPEL_OK;
}

static doppel_status give_level(const reading *r, const dp_growing *level) {
    doppel_status status = DOPPEL_OK;
    for (uint64_t key = 0; level && key < (uint64_t)1 << level->table[0].key_bits; key++) {
        dp_chunk chunk = dp_growing_chunk(level, 0, key);
        for (uint64_t i = 0; i < chunk.count && status == DOPPEL_OK; i++) {
            dp_growing_entry entry = dp_growing_place(level, &chunk, i);
            if (!atomic_load_explicit(entry.dead, memory_order_acquire))
                status = give(r, dp_growing_arranged(level, 0, key, &chunk, i), *entry.owner,
                              atomic_load_explicit(entry.expires, memory_order_relaxed));
        }
    }
    return status;
}

doppel_status doppel_index_each(const doppel_index *index, bool (*entry)(const doppel_match *entry, void *user),
                                void *user) {
    reading r = {&index->order, entry, user};
    dp_pinned pinned = dp_index_pin(index);
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < pinned.version->runs && status == DOPPEL_OK; i++)
        status = give_run(&r, pinned.version->run[i]);
    DP_THEN(status, give_level(&r, pinned.version->full));
    DP_THEN(status, give_level(&r, pinned.version->growing));
    DP_THEN(status, give_head(&r, pinned.version->head));
    dp_index_unpin(pinned);
    return status;
}

static uint64_t run_bytes(const dp_run *run) {
    uint64_t bytes = sizeof *run + run->count * 8 + run->list_count * 8;
    for (int t = 0; t < run->layout.tables; t++)
        bytes += dp_directory_bytes(&run->table[t]) + dp_filter_bytes(run) + dp_rest_bytes(run, &run->table[t]);
    bytes += run->shared ? dp_shared_bytes(run) : 0;
    bytes += atomic_load_explicit(&run->expires, memory_order_relaxed) ? dp_run_slots(run) * 8 : 0;
    bytes += atomic_load_explicit(&run->dead, memory_order_relaxed) ? dp_run_slots(run) / 8 : 0;
    return bytes;
}

static void add_level_stats(const dp_growing *level, doppel_index_stats *stats) {
    if (!level)
        return;
    stats->fingerprints += atomic_load_explicit(&level->fingerprints, memory_order_relaxed);
    stats->bytes += atomic_load_explicit(&level->bytes, memory_order_relaxed);
}

void doppel_index_get_stats(const doppel_index *index, doppel_index_stats *stats) {
    dp_pinned pinned = dp_index_pin(index);
    const dp_version *version = pinned.version;
    *stats = (doppel_index_stats){.entries = atomic_load_explicit(&index->entries, memory_order_relaxed),
                                  .fingerprints = atomic_load_explicit(&version->head->count, memory_order_relaxed),
                                  .bytes = sizeof *index + dp_head_bytes(index->bits),
                                  .runs = version->runs,
                                  .bits = index->bits,
                                  .distance = index->distance};
    for (int i = 0; i < version->runs; i++) {
        stats->fingerprints += version->run[i]->count;
        stats->bytes += run_bytes(version->run[i]);
    }
    add_level_stats(version->growing, stats);
    add_level_stats(version->full, stats);
    if (version->runs)
        memcpy(stats->layout, version->run[0]->layout.name, sizeof stats->layout);
    else
        memcpy(stats->layout, index->layout_name, sizeof stats->layout);
    dp_index_unpin(pinned);
}
