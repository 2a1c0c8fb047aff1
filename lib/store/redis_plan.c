/* redis_plan.c - how fingerprints are cut into the keys of tables in Redis: pure arithmetic over measured costs.
 *
 * General pigeonhole: m blocks, the first at the top and as even as can be; radii r_i with the sum of (r_i + 1) above
 * the distance. Two fingerprints within the distance have, in some block, at most r_i differing bits, and so in the
 * part of it that is the key. Every m and every length of keys is tried. */
#include "store/redis_memory.h"

#include <math.h>
#include <stdio.h>

/* Measured in Redis 7.0: what a key that is looked at takes, and a fingerprint that is compared, in microseconds; what
 * a key takes besides its entries (its name, the two tables of Redis, what the allocator rounds up), and an entry
 * besides its fingerprint, in bytes. An add writes one entry in each table. */
static const double probe_cost = 2.0, candidate_cost = 0.08, write_cost = 4.0, key_bytes = 150, entry_bytes = 9 * 1.12;

/* A hundred bytes a document are worth so many microseconds of a check. */
static const double bytes_worth = 6;

enum { USUAL_COUNT = 1000000, MOST_KEY = 30, NAMES_IN_BUCKET = 32, NAMES_EACH = 3, SEGMENTS_EACH = 6 };

/* Titles are told to be so similar as 8 bytes. */
enum { HEAD = 15 };

static double choices(int n, int k) {
    double count = 1;
    for (int i = 1; i <= k; i++)
        count = count * (n - k + i) / i;
    return count;
}

/* Keys of so many bits within a radius. */
static double keys_within(int width, int radius) {
    double count = 0;
    for (int i = 0; i <= radius && i <= width; i++)
        count += choices(width, i);
    return count;
}

size_t dp_redis_plan_probes(const dp_redis_plan *plan) {
    double count = 0;
    for (int t = 0; t < plan->tables; t++)
        count += keys_within(plan->table[t].width, plan->table[t].radius) - 1;
    return (size_t)count;
}

/* Cuts into m blocks with keys of at most `width` bits. */
static void cut(dp_redis_plan *plan, int blocks, int width) {
    int top = (plan->bits + 7) / 8 * 8 - plan->bits, small = plan->bits / blocks, wide = plan->bits % blocks;
    int each = (plan->distance + 1) / blocks, more = (plan->distance + 1) % blocks;
    plan->tables = blocks;
    for (int i = 0, from = top; i < blocks; i++) {
        int bits = small + (i < wide);
        plan->table[i].from = from;
        plan->table[i].width = bits < width ? bits : width;
        plan->table[i].radius = each - 1 + (i < more);
        if (plan->table[i].radius > plan->table[i].width)
            plan->table[i].radius = plan->table[i].width;
        from += bits;
    }
    snprintf(plan->name, sizeof plan->name, "%dx%d", blocks, plan->table[0].width);
}

static double cost_of(const dp_redis_plan *plan, double count) {
    double microseconds = 0, bytes = 0;
    for (int t = 0; t < plan->tables; t++) {
        double keys = ldexp(1, plan->table[t].width), probes = keys_within(plan->table[t].width, plan->table[t].radius);
        double filled = keys * (1 - exp(-count / keys)); /* that have an entry */
        microseconds += probes * probe_cost + probes * count / keys * candidate_cost + write_cost;
        bytes += (double)dp_redis_plan_width(plan) * 1.12 + entry_bytes + filled / count * key_bytes;
    }
    return microseconds + bytes / 100 * bytes_worth;
}

/* The bits of the number of a bucket, for so many entries. */
static int bucket_bits(double entries, int most) {
    double bits = log2(entries / NAMES_IN_BUCKET);
    return bits < 4 ? 4 : bits > most ? most : (int)lround(bits);
}

void dp_redis_plan_make(uint64_t count, const dp_rules *rules, dp_redis_plan *plan) {
    double n = count ? (double)count : USUAL_COUNT, best = INFINITY;
    int distance = rules->distance, bits = rules->bits;
    int most = distance + 1 < bits ? distance + 1 : bits;
    *plan = (dp_redis_plan){.bits = bits, .distance = distance};
    for (int blocks = 1; blocks <= most && blocks <= DP_REDIS_TABLES; blocks++) {
        for (int width = 1; width <= MOST_KEY && width <= (bits + blocks - 1) / blocks; width++) {
            dp_redis_plan one = {.bits = bits, .distance = distance};
            cut(&one, blocks, width);
            double cost = cost_of(&one, n);
            if (cost < best) {
                best = cost;
                *plan = one;
            }
        }
    }
    plan->name_bits = bucket_bits(n * NAMES_EACH, 30);
    plan->title_bits = rules->titles ? bucket_bits(n * SEGMENTS_EACH, 24) : 0;
    plan->title_similarity = rules->titles ? rules->title_similarity : 0;
}

size_t dp_redis_plan_width(const dp_redis_plan *plan) {
    return (size_t)(plan->bits + 7) / 8;
}

size_t dp_redis_plan_key_bytes(const dp_redis_plan *plan) {
    return (size_t)(plan->table[0].width + 7) / 8;
}

size_t dp_redis_plan_name_bytes(const dp_redis_plan *plan) {
    return (size_t)(plan->name_bits + 7) / 8;
}

/* ---- as bytes ---- */

size_t dp_redis_plan_encode(const dp_redis_plan *plan, uint8_t bytes[DP_REDIS_GEOMETRY]) {
    size_t length = 0;
    bytes[length++] = (uint8_t)dp_redis_plan_width(plan);
    bytes[length++] = (uint8_t)plan->name_bits;
    bytes[length++] = (uint8_t)dp_redis_plan_name_bytes(plan);
    bytes[length++] = (uint8_t)dp_redis_plan_key_bytes(plan);
    bytes[length++] = (uint8_t)plan->distance;
    bytes[length++] = (uint8_t)plan->tables;
    bytes[length++] = (uint8_t)plan->title_bits;
    uint64_t similarity;
    memcpy(&similarity, &plan->title_similarity, sizeof similarity);
    for (int i = 56; i >= 0; i -= 8)
        bytes[length++] = (uint8_t)(similarity >> i);
    for (int t = 0; t < plan->tables; t++) {
        bytes[length++] = (uint8_t)plan->table[t].from;
        bytes[length++] = (uint8_t)plan->table[t].width;
        bytes[length++] = (uint8_t)plan->table[t].radius;
    }
    return length;
}

/* Whether every pair within the distance meets in some table. */
static bool is_exact(const dp_redis_plan *plan) {
    int sum = 0, top = (plan->bits + 7) / 8 * 8 - plan->bits, end = top;
    for (int t = 0; t < plan->tables; t++) {
        int from = plan->table[t].from, width = plan->table[t].width, radius = plan->table[t].radius;
        if (from < end || width < 1 || width > MOST_KEY || width > plan->table[0].width ||
            from + width > top + plan->bits || radius > width)
            return false;
        end = from + width;
        sum += radius == width ? plan->distance + 1 : radius + 1;
    }
    return sum > plan->distance;
}

bool dp_redis_plan_decode(doppel_slice bytes, int bits, dp_redis_plan *plan) {
    const uint8_t *at = (const uint8_t *)bytes.data;
    *plan = (dp_redis_plan){.bits = bits};
    if (bytes.length < HEAD || bytes.length != HEAD + 3 * (size_t)at[5] || !at[5] || at[5] > DP_REDIS_TABLES)
        return false;
    plan->name_bits = at[1];
    plan->distance = at[4];
    plan->tables = at[5];
    plan->title_bits = at[6];
    uint64_t similarity = __builtin_bswap64(dp_load64(at + 7));
    memcpy(&plan->title_similarity, &similarity, sizeof similarity);
    for (int t = 0; t < plan->tables; t++) {
        const uint8_t *table = at + HEAD + 3 * t;
        plan->table[t].from = table[0];
        plan->table[t].width = table[1];
        plan->table[t].radius = table[2];
    }
    snprintf(plan->name, sizeof plan->name, "%dx%d", plan->tables, plan->table[0].width);
    return plan->title_bits <= 24 && plan->name_bits >= 1 && plan->name_bits <= 32 &&
           at[0] == dp_redis_plan_width(plan) && at[2] == dp_redis_plan_name_bytes(plan) &&
           at[3] == dp_redis_plan_key_bytes(plan) && is_exact(plan);
}
