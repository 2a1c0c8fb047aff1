/* titles_find.c - every title that is similar enough to a given one: dp_titles_index_find().
 *
 * Let q be the given title and e one of length n, cut into m segments, within distance d < m. Then there is a segment
 * of e, number i from 0, that stands in q, moved by s places, with i <= d,  |s| <= i  and  |s - (|q| - n)| <= d - i.
 * For take the fewest edits that make q of e, count each in the segment it stands in, and let A(i) be how many there
 * are in the segments before i. A(i) - i is 0 at first, below 0 after all m segments, and falls by 1 at most from each
 * segment to the next, by 1 only over one without edits. So where it first comes to -1, it was 0, A(i) = i, segment i
 * has no edits, and at most d - i are left for what stands behind it. What stands before it is longer or shorter in q
 * by at most the edits there, and so is what stands behind it.
 *
 * All these places are looked up in the table. The entries found there are filtered by their letter bags (the sum of
 * differences is at most 2 d: verify.h), and what is left is measured. Where a length has few titles, or is not cut
 * into segments, all of them are filtered. */
#include "index/titles_store.h"

#include <stdlib.h>

/* CANDIDATES: entries that wait for the filter while they come into the cache. AHEAD: look-ups under way at once. A
 * look-up costs about as much as filtering two entries. */
enum { CANDIDATES = 1024, AHEAD = 24, PROBE_COST = 2 };

struct probe {
    uint32_t hash, limit;
};

struct candidate {
    uint32_t entry, limit; /* the largest sum of differences of bags */
};

/* What a find needs besides, kept for the next one. */
struct dp_titles_work {
    dp_titles_text text;
    uint8_t bag[32];
    struct probe *probes;
    size_t probe_count, probe_capacity;
    struct candidate candidates[CANDIDATES];
    size_t candidate_count;
    uint64_t *near; /* entries that passed, with repeats; twice the room, for sorting */
    size_t near_count, near_capacity;
    uint32_t *other; /* code points of an entry */
    size_t other_capacity;
    uint64_t filtered;
};

void dp_title_matches_free(dp_title_matches *matches) {
    if (matches->work) {
        free(matches->work->probes);
        free(matches->work->near);
        free(matches->work->other);
        free(matches->work);
    }
    free(matches->match);
    *matches = (dp_title_matches){0};
}

/* ---- the filter ---- */

static unsigned bag_difference(const uint8_t *a, const uint8_t *b) {
    unsigned sum = 0;
    for (int i = 0; i < 32; i++)
        sum += (unsigned)abs(a[i] - b[i]);
    return sum;
}

/* Filters the candidates that wait. */
static bool filter(const dp_titles_index *index, struct dp_titles_work *work) {
    if (!dp_reserve(&work->near, &work->near_capacity, 2 * (work->near_count + work->candidate_count),
                    sizeof *work->near))
        return false;
    for (size_t i = 0; i < work->candidate_count; i++) {
        struct candidate candidate = work->candidates[i];
        const dp_titles_entry *entry = &index->entries[candidate.entry];
        if (entry->owner_count && bag_difference(entry->bag, work->bag) <= candidate.limit)
            work->near[work->near_count++] = candidate.entry;
    }
    work->filtered += work->candidate_count;
    work->candidate_count = 0;
    return true;
}

static bool add_candidates(const dp_titles_index *index, struct dp_titles_work *work, const uint32_t *entries,
                           size_t count, uint32_t limit) {
    for (size_t i = 0; i < count; i++) {
        if (work->candidate_count == CANDIDATES && !filter(index, work))
            return false;
        __builtin_prefetch(&index->entries[entries[i]]);
        work->candidates[work->candidate_count++] = (struct candidate){entries[i], limit};
    }
    return true;
}

/* ---- look-ups ---- */

static ptrdiff_t larger(ptrdiff_t a, ptrdiff_t b) {
    return a > b ? a : b;
}

static ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b) {
    return a < b ? a : b;
}

/* Notes the places where segment i of a group's titles can stand in the text, within distance d. */
static void note_segment(const dp_titles_index *index, struct dp_titles_work *work, const dp_titles_group *group,
                         size_t i, size_t d) {
    size_t start = group->cuts.at[i], size = group->cuts.at[i + 1] - start;
    ptrdiff_t longer = (ptrdiff_t)work->text.points.count - (ptrdiff_t)group->length;
    ptrdiff_t before = (ptrdiff_t)i, behind = (ptrdiff_t)(d - i);
    ptrdiff_t last = (ptrdiff_t)work->text.points.count - (ptrdiff_t)size;
    ptrdiff_t low = larger((ptrdiff_t)start + larger(-before, longer - behind), 0);
    ptrdiff_t high = smaller((ptrdiff_t)start + smaller(before, longer + behind), last);
    uint64_t power = dp_titles_power(index->base, size),
             seed = dp_titles_seed(index, group->length, group->cuts.version, i);
    for (ptrdiff_t at = low; at <= high; at++) {
        uint32_t hash = dp_titles_hash(work->text.sums, (size_t)at, (size_t)at + size, power, seed);
        work->probes[work->probe_count++] = (struct probe){hash, (uint32_t)(2 * d)};
    }
}

/* At most this many look-ups find all titles of a group within distance d: the sum over i of the smaller of 2 i + 1 and
 * 2 (d - i) + 1. */
static size_t most_probes(size_t d) {
    return d * d / 2 + d + 1;
}

/* The titles of a group, which may be within distance d, are looked up later, or all of them are candidates. */
static bool visit_group(const dp_titles_index *index, struct dp_titles_work *work, const dp_titles_group *group,
                        size_t d) {
    if (!group->segments || group->count < PROBE_COST * most_probes(d))
        return add_candidates(index, work, group->entries, group->count, (uint32_t)(d < 1u << 30 ? 2 * d : UINT32_MAX));
    if (!dp_reserve(&work->probes, &work->probe_capacity, work->probe_count + most_probes(d), sizeof *work->probes))
        return false;
    for (size_t i = 0; i <= d; i++)
        note_segment(index, work, group, i, d);
    return true;
}

static bool look_up(const dp_titles_index *index, struct dp_titles_work *work) {
    const struct probe *probes = work->probes;
    for (size_t i = 0; i < work->probe_count + AHEAD; i++) {
        if (i < work->probe_count)
            __builtin_prefetch(&index->table.slots[dp_titles_home(&index->table, probes[i].hash)]);
        if (i < AHEAD)
            continue;
        uint32_t one;
        size_t count;
        const uint32_t *found = dp_titles_table_get(&index->table, probes[i - AHEAD].hash, &one, &count);
        if (!add_candidates(index, work, found, count, probes[i - AHEAD].limit))
            return false;
    }
    return true;
}

/* Goes through the lengths that a title similar enough can have. */
static bool collect(const dp_titles_index *index, struct dp_titles_work *work) {
    size_t length = work->text.points.count, allowed;
    work->probe_count = work->candidate_count = work->near_count = 0;
    work->filtered = 0;
    if (!dp_edit_allowed(length, index->min, &allowed))
        return true;
    for (size_t at = dp_titles_group_at(index, length - allowed); at < index->group_count; at++) {
        const dp_titles_group *group = index->groups[at];
        if (group->length > length &&
            (!dp_edit_allowed(group->length, index->min, &allowed) || group->length - length > allowed))
            break;
        if (!visit_group(index, work, group, allowed))
            return false;
    }
    return look_up(index, work) && filter(index, work);
}

/* ---- measuring ---- */

static doppel_status measure(const dp_titles_index *index, dp_title_matches *matches, uint32_t number) {
    struct dp_titles_work *work = matches->work;
    const dp_titles_entry *entry = &index->entries[number];
    size_t length = work->text.points.count > entry->length ? work->text.points.count : entry->length;
    size_t allowed, distance;
    if (!dp_edit_allowed(length, index->min, &allowed))
        return DOPPEL_OK;
    if (!dp_reserve(&work->other, &work->other_capacity, (size_t)entry->length + 1, sizeof *work->other) ||
        !dp_reserve(&matches->match, &matches->capacity, matches->count + 1, sizeof *matches->match))
        return DOPPEL_ERROR_MEMORY;
    dp_titles_unpack(entry, work->other);
    doppel_status status =
        dp_levenshtein(work->text.points, (dp_points){work->other, entry->length}, allowed, &distance);
    if (!status && distance <= allowed)
        matches->match[matches->count++] = (dp_title_match){.similarity = dp_edit_similarity(distance, length),
                                                            .owners = dp_titles_owners(entry),
                                                            .owner_count = entry->owner_count,
                                                            .entry = number};
    return status;
}

static int compare_matches(const void *first, const void *second) {
    const dp_title_match *a = first, *b = second;
    if (a->similarity != b->similarity)
        return a->similarity < b->similarity ? 1 : -1;
    if (a->owners[0] != b->owners[0])
        return a->owners[0] < b->owners[0] ? -1 : 1;
    return (a->entry > b->entry) - (a->entry < b->entry);
}

doppel_status dp_titles_index_find(const dp_titles_index *index, const char *title, size_t length,
                                   dp_title_matches *matches) {
    matches->count = 0;
    if (!matches->work && !(matches->work = calloc(1, sizeof *matches->work)))
        return DOPPEL_ERROR_MEMORY;
    struct dp_titles_work *work = matches->work;
    doppel_status status = dp_titles_text_init(&work->text, index, title, length);
    if (status)
        return status;
    dp_title_bag(work->text.points, work->bag);
    if (!collect(index, work))
        status = DOPPEL_ERROR_MEMORY;
    if (!status && work->near_count) {
        dp_sort64(work->near, work->near_count, work->near + work->near_count);
        work->near_count = dp_unique64(work->near, work->near_count);
    }
    for (size_t i = 0; i < work->near_count && !status; i++)
        status = measure(index, matches, (uint32_t)work->near[i]);
    dp_titles_text_free(&work->text);
    matches->candidates = work->filtered;
    matches->measured = work->near_count;
    if (status)
        matches->count = 0;
    else if (matches->count > 1)
        qsort(matches->match, matches->count, sizeof *matches->match, compare_matches);
    return status;
}
