/* directory_titles.c - titles as evidence: whose title is most like this one, and which titles are too frequent to
 * tell. */
#include "decide/decide.h"
#include "known/directory_parts.h"
#include "text/text.h"

#include <math.h>
#include <stdlib.h>

/* ---- how often each title came without being added: a table by hash ---- */

/* Where a hash stands, or the empty slot where it belongs. */
static dp_seen_title *slot_of(dp_seen_title *slot, size_t room, uint64_t hash) {
    size_t at = (size_t)hash & (room - 1);
    while (slot[at].hash && slot[at].hash != hash)
        at = (at + 1) & (room - 1);
    return &slot[at];
}

static bool grow(dp_seen_titles *seen) {
    if (seen->count < seen->room / 4 * 3)
        return true;
    size_t room = seen->room ? 2 * seen->room : 64;
    dp_seen_title *slot = calloc(room, sizeof *slot);
    if (!slot)
        return false;
    for (size_t i = 0; i < seen->room; i++)
        if (seen->slot[i].hash)
            *slot_of(slot, room, seen->slot[i].hash) = seen->slot[i];
    free(seen->slot);
    seen->slot = slot;
    seen->room = room;
    return true;
}

static bool seen_add(dp_seen_titles *seen, uint64_t hash, uint64_t times) {
    pthread_rwlock_wrlock(&seen->lock);
    bool there = grow(seen);
    if (there) {
        dp_seen_title *slot = slot_of(seen->slot, seen->room, hash);
        seen->count += !slot->hash;
        slot->hash = hash;
        slot->times += times;
        atomic_fetch_add_explicit(&seen->times, times, memory_order_relaxed);
    }
    pthread_rwlock_unlock(&seen->lock);
    return there;
}

static void seen_remove(dp_seen_titles *seen, uint64_t hash, uint64_t times) {
    pthread_rwlock_wrlock(&seen->lock);
    dp_seen_title *slot = seen->room ? slot_of(seen->slot, seen->room, hash) : NULL;
    if (slot && slot->hash) {
        times = times < slot->times ? times : slot->times;
        slot->times -= times;
        atomic_fetch_sub_explicit(&seen->times, times, memory_order_relaxed);
    }
    pthread_rwlock_unlock(&seen->lock);
}

static uint64_t seen_times(dp_seen_titles *seen, uint64_t hash) {
    if (!atomic_load_explicit(&seen->times, memory_order_relaxed))
        return 0;
    pthread_rwlock_rdlock(&seen->lock);
    uint64_t times = seen->room ? slot_of(seen->slot, seen->room, hash)->times : 0;
    pthread_rwlock_unlock(&seen->lock);
    return times;
}

/* ---- shards ---- */

doppel_status dp_directory_titles_create(double similarity, dp_directory_titles **titles) {
    dp_directory_titles *made = calloc(1, sizeof *made);
    *titles = NULL;
    if (!made)
        return DOPPEL_ERROR_MEMORY;
    made->similarity = similarity;
    doppel_status status = (made->seen.has_lock = dp_lock_init(&made->seen.lock)) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < DP_TITLE_SHARDS && status == DOPPEL_OK; i++) {
        status = dp_titles_index_create(similarity, &made->shard[i].index);
        if (status == DOPPEL_OK && !(made->shard[i].has_lock = dp_lock_init(&made->shard[i].lock)))
            status = DOPPEL_ERROR_MEMORY;
    }
    if (status == DOPPEL_OK)
        *titles = made;
    else
        dp_directory_titles_free(made);
    return status;
}

void dp_directory_titles_free(dp_directory_titles *titles) {
    if (!titles)
        return;
    for (size_t i = 0; i < DP_TITLE_SHARDS; i++) {
        dp_titles_index_free(titles->shard[i].index);
        if (titles->shard[i].has_lock)
            pthread_rwlock_destroy(&titles->shard[i].lock);
    }
    if (titles->seen.has_lock)
        pthread_rwlock_destroy(&titles->seen.lock);
    free(titles->seen.slot);
    free(titles);
}

/* How many code points a title has, as the index counts them. */
static size_t length_of(doppel_slice title) {
    const uint8_t *at = (const uint8_t *)title.data, *end = at + title.length;
    size_t count = 0;
    for (int32_t point; at < end; count++)
        at += dp_utf8_decode(at, end, &point);
    return count;
}

size_t dp_directory_titles_shard(doppel_slice title) {
    return length_of(title) / DP_TITLE_LENGTHS % DP_TITLE_SHARDS;
}

doppel_status dp_directory_titles_add(dp_directory_titles *titles, doppel_slice title, uint64_t number) {
    dp_title_shard *shard = &titles->shard[dp_directory_titles_shard(title)];
    pthread_rwlock_wrlock(&shard->lock);
    doppel_status status = dp_titles_index_add(shard->index, title.data, title.length, number);
    pthread_rwlock_unlock(&shard->lock);
    return status;
}

void dp_directory_titles_remove(dp_directory_titles *titles, doppel_slice title, uint64_t number) {
    dp_title_shard *shard = &titles->shard[dp_directory_titles_shard(title)];
    pthread_rwlock_wrlock(&shard->lock);
    (void)dp_titles_index_remove(shard->index, title.data, title.length, number, NULL);
    pthread_rwlock_unlock(&shard->lock);
}

void dp_directory_titles_stats(dp_directory_titles *titles, dp_directory_stats *stats) {
    for (size_t i = 0; i < DP_TITLE_SHARDS; i++) {
        dp_titles_stats found;
        pthread_rwlock_rdlock(&titles->shard[i].lock);
        dp_titles_index_get_stats(titles->shard[i].index, &found);
        pthread_rwlock_unlock(&titles->shard[i].lock);
        stats->titles += found.titles;
        stats->title_bytes += found.bytes;
    }
    pthread_rwlock_rdlock(&titles->seen.lock);
    stats->title_bytes += sizeof *titles + titles->seen.room * sizeof *titles->seen.slot;
    pthread_rwlock_unlock(&titles->seen.lock);
}

static doppel_status hash_title(dp_directory *directory, doppel_slice title, uint64_t *hash) {
    dp_title_shard *shard = &directory->titles->shard[dp_directory_titles_shard(title)];
    pthread_rwlock_rdlock(&shard->lock);
    doppel_status status = dp_titles_index_hash(shard->index, title.data, title.length, hash);
    pthread_rwlock_unlock(&shard->lock);
    return status;
}

doppel_status dp_directory_title_seen(dp_directory *directory, doppel_slice title, uint64_t times) {
    uint64_t hash;
    if (!directory->titles || !title.length || !times)
        return DOPPEL_OK;
    doppel_status status = hash_title(directory, title, &hash);
    if (status == DOPPEL_OK && !seen_add(&directory->titles->seen, hash, times))
        status = DOPPEL_ERROR_MEMORY;
    return status;
}

doppel_status dp_directory_title_forgotten(dp_directory *directory, doppel_slice title, uint64_t times) {
    uint64_t hash;
    if (!directory->titles || !title.length || !times)
        return DOPPEL_OK;
    doppel_status status = hash_title(directory, title, &hash);
    if (status == DOPPEL_OK)
        seen_remove(&directory->titles->seen, hash, times);
    return status;
}

/* ---- finding ---- */

typedef struct finding {
    dp_directory *directory;
    const dp_title_search *query;
    dp_title_matches *matches;
    bool frequent;       /* the very title that was asked about is: then nothing like it counts */
    dp_title_hit hit;    /* the best; number 0: none */
    dp_title_hits *hits; /* unless only the best is asked for */
} finding;

/* Whether an owner is there: those that have expired or are to be removed are among those of the index for a while. */
static bool is_there(const finding *f, uint64_t owner) {
    const dp_title_search *query = f->query;
    return !(query->leaving && dp_leaving_has(query->leaving, owner)) &&
           dp_alive_at(&f->directory->alive, owner, query->now);
}

/* Whether a title is; match NULL: nobody has it now. */
static bool is_frequent(const finding *f, const dp_title_match *match, uint64_t hash) {
    dp_seen_titles *seen = &f->directory->titles->seen;
    uint64_t documents = atomic_load_explicit(&f->directory->documents, memory_order_relaxed) +
                         atomic_load_explicit(&seen->times, memory_order_relaxed);
    uint64_t times = seen_times(seen, hash), owners = match ? match->owner_count : 0;
    double share = f->query->share;
    if (!dp_title_is_frequent(times + owners, documents, share))
        return false;
    for (uint64_t i = 0; i < owners && !dp_title_is_frequent(times, documents, share); i++)
        times += is_there(f, match->owners[i]);
    return dp_title_is_frequent(times, documents, share);
}

static bool owner_counts(const finding *f, uint64_t owner) {
    const dp_title_search *query = f->query;
    return owner < query->below && owner != query->except[0] && owner != query->except[1] && is_there(f, owner);
}

/* The lowest number that counts; 0: none. */
static uint64_t first_owner(const finding *f, const dp_title_match *match) {
    for (size_t i = 0; i < match->owner_count; i++)
        if (owner_counts(f, match->owners[i]))
            return match->owners[i];
    return 0;
}

/* Whether the very title that was asked about is frequent; its own shard has just been asked. */
static doppel_status ask_own(finding *f, const dp_titles_index *index) {
    const dp_title_match *match = f->matches->match;
    bool there = f->matches->count && match[0].similarity >= 1;
    uint64_t hash;
    doppel_status status = dp_titles_index_hash(index, f->query->title.data, f->query->title.length, &hash);
    if (status == DOPPEL_OK)
        f->frequent = is_frequent(f, there ? match : NULL, hash);
    return status;
}

/* The best of what was found in a shard. */
static void choose(finding *f, const dp_titles_index *index) {
    for (size_t i = 0; i < f->matches->count; i++) {
        const dp_title_match *match = &f->matches->match[i];
        if (match->similarity < f->hit.similarity)
            break;
        if (is_frequent(f, match, dp_titles_index_hash_of(index, match)))
            continue;
        uint64_t owner = first_owner(f, match);
        if (owner && (match->similarity > f->hit.similarity || owner < f->hit.number))
            f->hit = (dp_title_hit){owner, match->similarity};
    }
}

/* Everything that was found in a shard. */
static doppel_status collect(finding *f, const dp_titles_index *index) {
    dp_title_hits *hits = f->hits;
    for (size_t i = 0; i < f->matches->count; i++) {
        const dp_title_match *match = &f->matches->match[i];
        if (is_frequent(f, match, dp_titles_index_hash_of(index, match)))
            continue;
        if (!dp_reserve(&hits->hit, &hits->room, hits->count + match->owner_count, sizeof *hits->hit))
            return DOPPEL_ERROR_MEMORY;
        for (size_t k = 0; k < match->owner_count; k++)
            if (owner_counts(f, match->owners[k]))
                hits->hit[hits->count++] = (dp_title_hit){match->owners[k], match->similarity};
    }
    return DOPPEL_OK;
}

static doppel_status find_in(finding *f, dp_title_shard *shard, bool own) {
    doppel_slice title = f->query->title;
    pthread_rwlock_rdlock(&shard->lock);
    doppel_status status = dp_titles_index_find(shard->index, title.data, title.length, f->matches);
    if (status == DOPPEL_OK && own)
        status = ask_own(f, shard->index);
    if (status == DOPPEL_OK && !f->frequent && !f->query->best)
        status = collect(f, shard->index);
    else if (status == DOPPEL_OK && !f->frequent)
        choose(f, shard->index);
    pthread_rwlock_unlock(&shard->lock);
    return status;
}

/* Its own shard first, then those where lengths are near enough: l >= t * L and L >= t * l, with
 * one length more for rounding. */
static doppel_status find(finding *f) {
    dp_directory_titles *titles = f->directory->titles;
    double length = (double)length_of(f->query->title), t = titles->similarity;
    size_t own = (size_t)length / DP_TITLE_LENGTHS % DP_TITLE_SHARDS;
    double least = (t * length - 1) / DP_TITLE_LENGTHS, most = ((t > 0 ? length / t : INFINITY) + 1) / DP_TITLE_LENGTHS;
    size_t from = 0, count = DP_TITLE_SHARDS;
    if (most - least < DP_TITLE_SHARDS - 1) {
        from = least > 0 ? (size_t)least : 0;
        count = (size_t)most - from + 1;
    }
    doppel_status status = find_in(f, &titles->shard[own], true);
    for (size_t i = from; i < from + count && status == DOPPEL_OK && !f->frequent; i++)
        if (i % DP_TITLE_SHARDS != own)
            status = find_in(f, &titles->shard[i % DP_TITLE_SHARDS], false);
    return status;
}

static int compare_title_hits(const void *left, const void *right) {
    const dp_title_hit *a = left, *b = right;
    if (a->similarity != b->similarity)
        return a->similarity > b->similarity ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

doppel_status dp_directory_find_titles(dp_directory *directory, const dp_title_search *search,
                                       dp_title_matches *matches, dp_title_hits *hits) {
    finding f = {.directory = directory, .query = search, .matches = matches, .hits = hits};
    hits->count = 0;
    hits->candidates = 0;
    if (!directory->titles || !search->title.length)
        return DOPPEL_OK;
    doppel_status status = find(&f);
    hits->candidates = matches->candidates;
    if (f.frequent)
        hits->count = 0;
    if (status == DOPPEL_OK && f.hit.number) {
        if (!dp_reserve(&hits->hit, &hits->room, 1, sizeof *hits->hit))
            return DOPPEL_ERROR_MEMORY;
        hits->hit[hits->count++] = f.hit;
    }
    if (hits->count > 1)
        qsort(hits->hit, hits->count, sizeof *hits->hit, compare_title_hits);
    return status;
}
