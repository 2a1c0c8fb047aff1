/* known_titles.c - titles as evidence: whose title is most like this one, and which titles are too frequent to tell. */
#include "engine/known_parts.h"

#include <stdlib.h>

/* Fewer owners than this are never too many. */
enum { FEW_OWNERS = 8 };

doppel_status dp_known_titles_create(double similarity, dp_known_titles **titles) {
    dp_known_titles *made = calloc(1, sizeof *made);
    *titles = NULL;
    if (!made)
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = dp_titles_index_create(similarity, &made->index);
    if (status == DOPPEL_OK && !dp_lock_init(&made->lock))
        status = DOPPEL_ERROR_MEMORY;
    if (status != DOPPEL_OK) {
        dp_titles_index_free(made->index);
        free(made);
        return status;
    }
    *titles = made;
    return DOPPEL_OK;
}

void dp_known_titles_free(dp_known_titles *titles) {
    if (!titles)
        return;
    dp_titles_index_free(titles->index);
    pthread_rwlock_destroy(&titles->lock);
    free(titles->seen);
    free(titles);
}

doppel_status dp_known_titles_add(dp_known_titles *titles, doppel_slice title, uint64_t number) {
    pthread_rwlock_wrlock(&titles->lock);
    doppel_status status = dp_titles_index_add(titles->index, title.data, title.length, number);
    pthread_rwlock_unlock(&titles->lock);
    return status;
}

void dp_known_titles_remove(dp_known_titles *titles, doppel_slice title, uint64_t number) {
    pthread_rwlock_wrlock(&titles->lock);
    (void)dp_titles_index_remove(titles->index, title.data, title.length, number, NULL);
    pthread_rwlock_unlock(&titles->lock);
}

void dp_known_titles_stats(dp_known_titles *titles, dp_known_stats *stats) {
    dp_titles_stats found;
    pthread_rwlock_rdlock(&titles->lock);
    dp_titles_index_get_stats(titles->index, &found);
    stats->titles = found.titles;
    stats->title_bytes = found.bytes + titles->seen_room * sizeof *titles->seen;
    pthread_rwlock_unlock(&titles->lock);
}

/* ---- titles that were seen ---- */

/* Where a hash stands, or the empty slot where it belongs. */
static dp_seen_title *seen_at(dp_seen_title *seen, size_t room, uint64_t hash) {
    size_t at = (size_t)hash & (room - 1);
    while (seen[at].hash && seen[at].hash != hash)
        at = (at + 1) & (room - 1);
    return &seen[at];
}

static uint64_t times_seen(const dp_known_titles *titles, uint64_t hash) {
    return titles->seen_room ? seen_at(titles->seen, titles->seen_room, hash)->times : 0;
}

static bool grow_seen(dp_known_titles *titles) {
    if (titles->seen_count < titles->seen_room / 4 * 3)
        return true;
    size_t room = titles->seen_room ? 2 * titles->seen_room : 64;
    dp_seen_title *seen = calloc(room, sizeof *seen);
    if (!seen)
        return false;
    for (size_t i = 0; i < titles->seen_room; i++)
        if (titles->seen[i].hash)
            *seen_at(seen, room, titles->seen[i].hash) = titles->seen[i];
    free(titles->seen);
    titles->seen = seen;
    titles->seen_room = room;
    return true;
}

static doppel_status see(dp_known_titles *titles, doppel_slice title, uint64_t times) {
    uint64_t hash;
    doppel_status status = dp_titles_index_hash(titles->index, title.data, title.length, &hash);
    if (status != DOPPEL_OK)
        return status;
    if (!grow_seen(titles))
        return DOPPEL_ERROR_MEMORY;
    dp_seen_title *seen = seen_at(titles->seen, titles->seen_room, hash);
    titles->seen_count += !seen->hash;
    seen->hash = hash;
    seen->times += times;
    titles->seen_times += times;
    return DOPPEL_OK;
}

doppel_status dp_known_title_seen(dp_known *known, doppel_slice title, uint64_t times) {
    if (!known->titles || !title.length || !times)
        return DOPPEL_OK;
    pthread_rwlock_wrlock(&known->titles->lock);
    doppel_status status = see(known->titles, title, times);
    pthread_rwlock_unlock(&known->titles->lock);
    return status;
}

/* ---- finding ---- */

static bool is_frequent(const dp_known *known, const dp_title_query *query, uint64_t times) {
    uint64_t documents = atomic_load_explicit(&known->documents, memory_order_relaxed) + known->titles->seen_times;
    return times > FEW_OWNERS && (double)times > query->share * (double)documents;
}

/* The lowest number that counts; 0: none. */
static uint64_t first_owner(dp_known *known, const dp_title_query *query, const dp_title_match *match) {
    for (size_t i = 0; i < match->owner_count; i++) {
        uint64_t owner = match->owners[i];
        if (owner >= query->below)
            break;
        if (owner != query->except[0] && owner != query->except[1] && dp_alive_at(&known->alive, owner, query->now))
            return owner;
    }
    return 0;
}

/* Whether the very title that was asked about is a frequent one: then nothing like it counts. */
static doppel_status asks_frequent(const dp_known *known, const dp_title_query *query, const dp_title_matches *matches,
                                   bool *frequent) {
    uint64_t hash, owners = 0;
    doppel_status status = dp_titles_index_hash(known->titles->index, query->title.data, query->title.length, &hash);
    if (status == DOPPEL_OK) {
        if (matches->count && matches->match[0].similarity >= 1)
            owners = matches->match[0].owner_count;
        *frequent = is_frequent(known, query, owners + times_seen(known->titles, hash));
    }
    return status;
}

static doppel_status find(dp_known *known, const dp_title_query *query, dp_title_matches *matches, dp_title_hit *hit) {
    dp_known_titles *titles = known->titles;
    bool frequent = false;
    doppel_status status = dp_titles_index_find(titles->index, query->title.data, query->title.length, matches);
    if (status == DOPPEL_OK && matches->count)
        status = asks_frequent(known, query, matches, &frequent);
    for (size_t i = 0; status == DOPPEL_OK && !frequent && i < matches->count; i++) {
        const dp_title_match *match = &matches->match[i];
        if (hit->number && match->similarity < hit->similarity)
            break;
        uint64_t hash = dp_titles_index_hash_of(titles->index, match);
        if (is_frequent(known, query, match->owner_count + times_seen(titles, hash)))
            continue;
        uint64_t owner = first_owner(known, query, match);
        if (owner && (!hit->number || owner < hit->number))
            *hit = (dp_title_hit){owner, match->similarity};
    }
    return status;
}

doppel_status dp_known_find_title(dp_known *known, const dp_title_query *query, dp_title_matches *matches,
                                  dp_title_hit *hit) {
    *hit = (dp_title_hit){0};
    if (!known->titles || !query->title.length)
        return DOPPEL_OK;
    pthread_rwlock_rdlock(&known->titles->lock);
    doppel_status status = find(known, query, matches, hit);
    pthread_rwlock_unlock(&known->titles->lock);
    return status;
}
