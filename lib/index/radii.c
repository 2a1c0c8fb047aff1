/* radii.c - which keys must be probed so that nothing within the distance is missed.
 *
 * Two fingerprints at most k bits apart differ in an error pattern of at most k bits. Radii are exact for k when every
 * such pattern has, for some table t, at most r_t bits in the key of t. Three rules give exact radii; the cheapest that
 * any of them gives is taken.
 *
 * 1. Keys that share no bit, with the sum of (r_t + 1) above k. A pattern that is missed has at least r_t + 1 bits in
 *    each of these keys, so at least the sum of them in all: more than k.
 *
 * 2. All choices of c out of m blocks, with one radius r, the largest with r + (m - c) * ceil(r / c) <= k. Take the
 *    c blocks with the fewest errors, and let s be the errors there. One of the c has at least ceil(s / c) of them, so
 *    each of the other m - c blocks has as many: s + (m - c) * ceil(s / c) <= k, and s <= r, as that grows with s. The
 *    key is a part of these blocks. For k <= m - c this is r = 0. Fewer blocks do for a smaller k: any m of them that
 *    are there, whatever the errors in the others.
 *
 * 3. Two levels, m and n blocks, with one radius a + floor((k - a) / n) where a = floor(k / m). Some first block has
 *    b <= a errors, and its key has no more. The rest has at most k - b errors, if b stands for those in the key, and
 *    so one of its n blocks has at most floor((k - b) / n). b + floor((k - b) / n) does not fall when b grows. Fewer
 *    blocks on either level do for a smaller k. */
#include "index/costs.h"

typedef struct radii_search {
    const dp_question *question;
    const dp_layout *layout;
    double best; /* nanoseconds */
    int *radius; /* that cost it */
    bool found;
} radii_search;

static void offer(radii_search *search, const int *radius) {
    double cost = dp_effort_find(search->question, search->layout, radius).nanoseconds;
    if (search->found && cost >= search->best)
        return;
    search->found = true;
    search->best = cost;
    memcpy(search->radius, radius, sizeof(int) * DP_MAX_TABLES);
}

static void use_no_table(int radius[DP_MAX_TABLES]) {
    for (int t = 0; t < DP_MAX_TABLES; t++)
        radius[t] = -1;
}

/* ---- rule 1 ---- */

/* A list of tables whose keys share no bit: the longest keys first. */
static int disjoint_tables(const dp_layout *layout, int list[DP_MAX_TABLES]) {
    dp_bits taken = 0;
    int count = 0;
    for (int bits = DP_MAX_KEY; bits > 0; bits--)
        for (int t = 0; t < layout->tables; t++)
            if (layout->table[t].key_bits == bits && !(layout->table[t].key_mask & taken)) {
                taken |= layout->table[t].key_mask;
                list[count++] = t;
            }
    return count;
}

/* Raises the radius that costs least to raise, k + 1 times. What a step costs grows with the radius up to half the key
 * bits, so that no other order of steps is cheaper; beyond that no radius is cheaper than a scan. */
static void offer_disjoint(radii_search *search) {
    int list[DP_MAX_TABLES], radius[DP_MAX_TABLES];
    double step[DP_MAX_TABLES], cost[DP_MAX_TABLES] = {0};
    int count = disjoint_tables(search->layout, list);
    if (!count)
        return;
    use_no_table(radius);
    for (int i = 0; i < count; i++)
        step[i] = dp_effort_table(search->question, search->layout, list[i], 0).nanoseconds;
    for (int units = 0; units <= search->question->distance; units++) {
        int least = 0;
        for (int i = 1; i < count; i++)
            if (step[i] < step[least])
                least = i;
        int *raised = &radius[list[least]];
        cost[least] += step[least];
        ++*raised;
        double next = dp_effort_table(search->question, search->layout, list[least], *raised + 1).nanoseconds;
        step[least] = next - cost[least];
    }
    offer(search, radius);
}

/* ---- rule 2 ---- */

static int choice_radius(int blocks, int choose, int distance) {
    int radius = 0;
    while (radius + 1 + (blocks - choose) * ((radius + choose) / choose) <= distance)
        radius++;
    return radius;
}

/* The bits of the first so many blocks: what the tables of choices among them may take. */
static dp_bits first_blocks(const dp_layout *layout, int blocks) {
    int small = layout->bits / layout->blocks, wide = layout->bits % layout->blocks;
    int bits = blocks * small + (blocks < wide ? blocks : wide);
    dp_bits all = layout->bits == 128 ? ~(dp_bits)0 : ((dp_bits)1 << layout->bits) - 1;
    return bits == layout->bits ? all : all & ~(all >> bits);
}

static void offer_choices(radii_search *search, int blocks) {
    const dp_layout *layout = search->layout;
    int radius[DP_MAX_TABLES], uniform = choice_radius(blocks, layout->choose, search->question->distance);
    dp_bits outside = ~first_blocks(layout, blocks);
    use_no_table(radius);
    for (int t = 0; t < layout->tables; t++)
        if (!(layout->table[t].key_mask & outside))
            radius[t] = uniform;
    offer(search, radius);
}

/* ---- rule 3 ---- */

static void offer_levels(radii_search *search, int first, int second) {
    const dp_layout *layout = search->layout;
    int radius[DP_MAX_TABLES], k = search->question->distance, seconds = layout->tables / layout->blocks;
    int in_first = k / first;
    use_no_table(radius);
    for (int i = 0; i < first; i++)
        for (int j = 0; j < second; j++)
            radius[i * seconds + j] = in_first + (k - in_first) / second;
    offer(search, radius);
}

/* ---- the choice ---- */

bool dp_radii_choose(const dp_question *question, const dp_layout *layout, int radius[DP_MAX_TABLES]) {
    radii_search search = {question, layout, 0, radius, false};
    int seconds = layout->tables / layout->blocks;
    use_no_table(radius);
    if (!layout->table[0].key_bits)
        return false;
    offer_disjoint(&search);
    if (layout->choose > 1)
        for (int blocks = layout->choose; blocks <= layout->blocks; blocks++)
            offer_choices(&search, blocks);
    else if (layout->tables > layout->blocks)
        for (int first = 1; first <= layout->blocks; first++)
            for (int second = 1; second <= seconds; second++)
                offer_levels(&search, first, second);
    return search.best < dp_effort_scan(question, layout).nanoseconds;
}

bool dp_layout_radii(const dp_layout *layout, int distance, uint64_t count, int radius[DP_MAX_TABLES]) {
    doppel_costs costs;
    doppel_costs_get(&costs);
    return dp_radii_choose(&(dp_question){&costs, count, distance}, layout, radius);
}
