/* costs.c - what a find costs: the arithmetic, its constants, and the cheapest radii that make a layout exact.
 *
 * A find looks at V(key bits, radius) buckets of each table it uses: for each a line of the directory and, where the
 * bucket is not empty, a line of the column. A bucket of random fingerprints holds count / 2^key bits entries, and each
 * is compared by its filter, the 32 (for 128 bits, 64) bits below the key. What the filter lets through is looked up in
 * the rest of the fingerprint. */
#include "hamming/hamming.h"

#include <math.h>

/* Measured on one core with AVX-512 at 2.8 GHz, memory of 13 GB/s. */
static const doppel_costs builtin = {
    .size = sizeof(doppel_costs),
    .probe_cached = 18,
    .probe = 68,
    .candidate = 0.24,
    .query = 72,
    .move = 10.5,
    .place = 2.8,
    .pair = 0.12,
};

void doppel_costs_get(doppel_costs *costs) {
    *costs = builtin;
}

double dp_ball(int bits, int radius) {
    double sum = 0, binomial = 1;
    for (int i = 0; i <= radius && i <= bits; i++) {
        sum += binomial;
        binomial = binomial * (bits - i) / (i + 1);
    }
    return sum;
}

/* ---- bytes ---- */

static int filter_bytes(const dp_layout *layout) {
    return layout->bits > 64 ? 8 : 4;
}

/* Bits of a fingerprint that neither the key nor the filter holds. */
static int rest_bits(const dp_layout *layout, int table) {
    int rest = layout->bits - layout->table[table].key_bits - 8 * filter_bytes(layout);
    return rest > 0 ? rest : 0;
}

static double directory_bytes(const dp_layout *layout, int table) {
    return 4 * (ldexp(1, layout->table[table].key_bits) + 1);
}

double dp_layout_bytes(const dp_layout *layout, uint64_t count) {
    double bytes = DP_OWNER_BYTES * (double)count;
    for (int t = 0; t < layout->tables; t++)
        bytes += (double)count * (filter_bytes(layout) + (rest_bits(layout, t) + 7) / 8) + directory_bytes(layout, t);
    return bytes;
}

/* ---- time ---- */

/* Up to CACHE bytes a probe has the cost of a cache hit, from MEMORY bytes on that of a memory access, and in between
 * it is interpolated by the logarithm of the size: an L2 cache holds about CACHE, no cache holds MEMORY. */
#define CACHE (1 << 20)
#define MEMORY (64 << 20)

static double look(const doppel_costs *costs, double bytes) {
    double far = log2(bytes / CACHE) / log2((double)MEMORY / CACHE);
    far = far < 0 ? 0 : far > 1 ? 1 : far;
    return costs->probe_cached + far * (costs->probe - costs->probe_cached);
}

/* The share of fingerprints that pass the filter of a bucket whose key differs in `used` bits. */
static double filter_share(const dp_layout *layout, int table, int distance) {
    int bits = layout->bits - layout->table[table].key_bits - rest_bits(layout, table);
    return distance < 0 ? 0 : dp_ball(bits, distance) / ldexp(1, bits);
}

/* Expected candidates that pass the filter and have a rest to be looked up. */
static double survivors(const dp_question *question, const dp_layout *layout, int table, int radius) {
    int key = layout->table[table].key_bits;
    double sum = 0, keys = 1, bucket = (double)question->count / ldexp(1, key);
    if (!rest_bits(layout, table))
        return 0;
    for (int used = 0; used <= radius && used <= key; used++) {
        sum += keys * bucket * filter_share(layout, table, question->distance - used);
        keys = keys * (key - used) / (used + 1);
    }
    return sum;
}

/* A probe is two accesses, to the directory and to the bucket, the second only if it is not empty: in 1 - 1/e^bucket of
 * the buckets. Up to LINES lines of a bucket are prefetched together, and each after the first costs a fraction of the
 * first one's miss penalty; longer ones arrive as fast as they are compared. */
enum { LINES = 16, LINE_PART = 6 };

static double probe_time(const doppel_costs *costs, double directory, double column, double bucket, double bytes) {
    double far = look(costs, column), lines = bucket * bytes / 64;
    return look(costs, directory) / 2 + far / 2 * (1 - exp(-bucket)) +
           (far - costs->probe_cached) / LINE_PART * (lines < LINES ? lines : LINES);
}

/* What a table costs before its buckets are probed: arranging the query costs a part of a query's fixed cost, and the
 * first access to an uncached table is waited for, half as long again. */
enum { TABLE_PART = 4 };

static double table_time(const doppel_costs *costs, double directory, double column) {
    return costs->query / TABLE_PART + (look(costs, directory) + look(costs, column)) / 2 - costs->probe_cached;
}

dp_effort dp_effort_table(const dp_question *question, const dp_layout *layout, int table, int radius) {
    const doppel_costs *costs = question->costs;
    double count = (double)question->count, directory = directory_bytes(layout, table);
    double bucket = count / ldexp(1, layout->table[table].key_bits), bytes = filter_bytes(layout);
    dp_effort effort = {0};
    if (radius < 0)
        return effort;
    effort.probes = dp_ball(layout->table[table].key_bits, radius);
    effort.candidates = effort.probes * bucket;
    effort.nanoseconds = table_time(costs, directory, count * bytes) +
                         effort.probes * probe_time(costs, directory, count * bytes, bucket, bytes) +
                         effort.candidates * costs->candidate * bytes / 4 +
                         survivors(question, layout, table, radius) * costs->probe_cached;
    return effort;
}

static dp_effort add(dp_effort a, dp_effort b) {
    return (dp_effort){a.probes + b.probes, a.candidates + b.candidates, a.nanoseconds + b.nanoseconds};
}

dp_effort dp_effort_find(const dp_question *question, const dp_layout *layout, const int *radius) {
    dp_effort effort = {0, 0, question->costs->query};
    for (int t = 0; t < layout->tables; t++)
        effort = add(effort, dp_effort_table(question, layout, t, radius[t]));
    return effort;
}

dp_effort dp_effort_scan(const dp_question *question, const dp_layout *layout) {
    double count = (double)question->count;
    const doppel_costs *costs = question->costs;
    /* A scan of the first table. Fingerprints are assembled from their parts before they are compared, which costs as
     * much as SCAN comparisons, and a little for each bucket. */
    enum { SCAN = 2 };
    double found = count * dp_ball(layout->bits, question->distance) / ldexp(1, layout->bits);
    double each = SCAN * costs->candidate * filter_bytes(layout) / 4;
    double buckets = layout->table[0].key_bits ? ldexp(1, layout->table[0].key_bits) * costs->probe_cached / 2 : 0;
    return (dp_effort){1, count, costs->query + count * each + buckets + found * costs->probe_cached};
}

/* ---- radii: which keys must be probed so that nothing within the distance is missed ----
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

/* The bits of the first `blocks` blocks: what the tables of choices among them may take. */
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

bool dp_layout_radii(const dp_question *question, const dp_layout *layout, int radius[DP_MAX_TABLES]) {
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
