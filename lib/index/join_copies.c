/* join_copies.c - copies of a fingerprint: told as they are found, counted by groups, and multiplied out when every
 * pair is asked for. */
#include "index/join.h"

#include <stdlib.h>

bool dp_copy_add(dp_joiner *joiner, uint32_t first, uint32_t copy) {
    dp_join *join = joiner->join;
    joiner->copies++;
    atomic_fetch_or_explicit(&join->marks[copy / 64], (uint64_t)1 << (copy % 64), memory_order_relaxed);
    if (!join->keeps_pairs || !join->options.all)
        return dp_join_tell(joiner, first, copy, 0);
    if (!dp_reserve(&joiner->members, &joiner->member_capacity, joiner->member_count + 1, sizeof(uint64_t)))
        return dp_join_no_memory(join);
    joiner->members[joiner->member_count++] = (uint64_t)first << 32 | copy;
    return true;
}

bool dp_group_add(dp_joiner *joiner, uint32_t first, uint32_t copies) {
    if (!dp_reserve(&joiner->groups, &joiner->group_capacity, joiner->group_count + 1, sizeof *joiner->groups))
        return dp_join_no_memory(joiner->join);
    joiner->groups[joiner->group_count++] = (uint64_t)first << 32 | copies;
    uint64_t size = (uint64_t)copies + 1;
    joiner->all_pairs = dp_add_sure(joiner->all_pairs, size % 2 ? (size - 1) / 2 * size : size / 2 * (size - 1));
    return true;
}

/* ---- the table of groups ---- */

bool dp_groups_reset(dp_join *join, dp_groups *groups, size_t count) {
    size_t capacity = 16;
    while (capacity < 2 * count)
        capacity *= 2;
    if (capacity > groups->capacity) {
        free(groups->entries);
        *groups = (dp_groups){.entries = malloc(capacity * sizeof *groups->entries)};
        if (!groups->entries)
            return dp_join_no_memory(join);
        groups->capacity = capacity;
    }
    memset(groups->entries, 0, groups->capacity * sizeof *groups->entries);
    groups->count = 0;
    return true;
}

/* The place of a group, or the empty one where it would be. */
static size_t place_of(const dp_groups *groups, uint32_t first) {
    size_t at = (size_t)(first * 0x9E3779B97F4A7C15 >> 32) & (groups->capacity - 1);
    while (groups->entries[at] && groups->entries[at] >> 32 != first)
        at = (at + 1) & (groups->capacity - 1);
    return at;
}

void dp_groups_put(dp_groups *groups, uint64_t entry) {
    groups->entries[place_of(groups, (uint32_t)(entry >> 32))] = entry;
    groups->count++;
}

uint64_t dp_group_size(const dp_groups *groups, uint32_t first) {
    return (groups->entries[place_of(groups, first)] & UINT32_MAX) + 1;
}

static bool collect_groups(dp_join *join, size_t count) {
    if (!dp_groups_reset(join, &join->groups, count))
        return false;
    for (size_t thread = 0; thread < join->threads; thread++) {
        dp_joiner *joiner = &join->joiners[thread];
        for (size_t i = 0; i < joiner->group_count; i++)
            dp_groups_put(&join->groups, joiner->groups[i]);
        free(joiner->groups);
        joiner->groups = NULL;
    }
    return true;
}

/* ---- the members of groups ---- */

static bool collect_members(dp_join *join, size_t count) {
    uint64_t *members = malloc(count * sizeof *members + 1), *scratch = malloc(count * sizeof *members + 1);
    size_t done = 0;
    for (size_t thread = 0; members && scratch && thread < join->threads; thread++) {
        dp_joiner *joiner = &join->joiners[thread];
        if (joiner->member_count)
            memcpy(members + done, joiner->members, joiner->member_count * sizeof *members);
        done += joiner->member_count;
        free(joiner->members);
        joiner->members = NULL;
    }
    if (members && scratch)
        dp_sort64(members, count, scratch);
    free(scratch);
    join->members = members;
    join->member_count = count;
    return (members && scratch) || dp_join_no_memory(join);
}

bool dp_groups_settle(dp_join *join) {
    size_t groups = 0, members = 0;
    for (size_t thread = 0; thread < join->threads; thread++) {
        groups += join->joiners[thread].group_count;
        members += join->joiners[thread].member_count;
        join->has_copies |= join->joiners[thread].copies > 0;
    }
    return collect_groups(join, groups) && collect_members(join, members);
}

/* Where the numbers with `high` as their upper half begin. */
static size_t find_high(const uint64_t *numbers, size_t count, uint32_t high) {
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (numbers[middle] >> 32 < high)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* ---- every pair ---- */

/* Pairs of firsts come in order, and become pairs of all that equal them, which are sorted again. */
typedef struct product {
    dp_join *join;
    dp_pairs pairs;
} product;

/* All that equal `first`: itself and the copies from *from on. */
static size_t copies_of(const dp_join *join, uint32_t first, size_t *from) {
    size_t to = *from = find_high(join->members, join->member_count, first);
    while (to < join->member_count && join->members[to] >> 32 == first)
        to++;
    return to - *from;
}

static inline uint32_t member(const dp_join *join, uint32_t first, size_t from, size_t i) {
    return i ? (uint32_t)join->members[from + i - 1] : first;
}

static doppel_status multiply(const doppel_pair *pairs, size_t count, void *user) {
    product *p = user;
    for (size_t i = 0; i < count; i++) {
        uint32_t a = (uint32_t)pairs[i].a, b = (uint32_t)pairs[i].b;
        size_t a_from, b_from, a_count = copies_of(p->join, a, &a_from), b_count = copies_of(p->join, b, &b_from);
        for (size_t x = 0; x <= a_count; x++)
            for (size_t y = 0; y <= b_count; y++) {
                uint32_t one = member(p->join, a, a_from, x), two = member(p->join, b, b_from, y);
                if (!dp_pairs_add(&p->pairs.buffers[0], one < two ? one : two, one < two ? two : one,
                                  pairs[i].distance))
                    return DOPPEL_OK; /* finish tells the error */
            }
    }
    return DOPPEL_OK;
}

/* The pairs inside groups. */
static void multiply_groups(product *p) {
    const dp_join *join = p->join;
    for (size_t at = 0; at < join->member_count;) {
        uint32_t first = (uint32_t)(join->members[at] >> 32);
        size_t from, count = copies_of(join, first, &from);
        for (size_t x = 0; x <= count; x++)
            for (size_t y = x + 1; y <= count; y++)
                if (!dp_pairs_add(&p->pairs.buffers[0], member(join, first, from, x), member(join, first, from, y), 0))
                    return;
        at = from + count;
    }
}

doppel_status dp_copies_emit(dp_join *join, uint64_t *given, doppel_error *error) {
    product p = {.join = join};
    dp_pairs_options options = join->pairs.options;
    options.threads = 1;
    doppel_status status = dp_pairs_init(&p.pairs, &options, error);
    if (status)
        return status;
    multiply_groups(&p);
    status = dp_pairs_finish(&join->pairs, multiply, &p, given, error);
    if (!status)
        status = dp_pairs_finish(&p.pairs, join->options.pairs, join->options.user, given, error);
    join->pairs.file.size += p.pairs.file.size;
    dp_pairs_free(&p.pairs);
    return status;
}
