/* redis_places.c - where documents are found in Redis: pure arithmetic.
 *
 * A name, a band, a key of a table of fingerprints and a segment of a title each have a place: SipHash with the
 * memory's secret, so that nobody can choose what shares a bucket.
 *
 * Fingerprints: general pigeonhole. m blocks of bits, the first at the top and as even as can be; radii r_i with the
 * sum of (r_i + 1) above the distance. Two fingerprints within the distance have, in some block, at most r_i differing
 * bits, and so in the part of it that is the key. Every m and every length of keys is tried.
 *
 * Titles: one that can have a distance of up to d to another that is found has d + 1 segments, one after the other from
 * its beginning on. Of two titles within distance d some segment i of the first d + 1 is untouched and has at most i
 * edits before it: it stands at most i code points aside. */
#include "known/redis.h"
#include "title/title.h"
#include "verify/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the plan ---- */

/* Measured in Redis 7.0: what a place that is looked at takes and a fingerprint that is compared, in microseconds; what
 * a field takes besides its entries, and an entry besides its fingerprint, in bytes. An add writes one entry in each
 * table. */
static const double probe_cost = 2.0, candidate_cost = 0.08, write_cost = 4.0, field_bytes = 16, entry_bytes = 9;

/* A hundred bytes per document are worth this many microseconds of a check. */
static const double bytes_worth = 6;

/* Fields of a bucket, at least, once the expected number of documents is reached; then less than twice as many. Redis
 * keeps a hash of up to 128 small fields without pointers. */
enum { USUAL_COUNT = 1000000, MOST_KEY = 30, FIELDS = 45, NAMES_EACH = 3, MOST_BUCKET_BITS = 28 };

static size_t fingerprint_bytes(const dp_redis_plan *plan) {
    return (size_t)(plan->rules.bits + 7) / 8;
}

/* Cuts into blocks with keys of at most `width` bits. */
static void cut(dp_redis_plan *plan, int blocks, int width) {
    const dp_rules *rules = &plan->rules;
    int top = (rules->bits + 7) / 8 * 8 - rules->bits, small = rules->bits / blocks, wide = rules->bits % blocks;
    int each = (rules->distance + 1) / blocks, more = (rules->distance + 1) % blocks;
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
}

static double cost_of(const dp_redis_plan *plan, double count) {
    double microseconds = 0, bytes = 0;
    for (int t = 0; t < plan->tables; t++) {
        double keys = ldexp(1, plan->table[t].width), probes = dp_ball(plan->table[t].width, plan->table[t].radius);
        double filled = keys * (1 - exp(-count / keys)); /* that have an entry */
        microseconds += probes * probe_cost + probes * count / keys * candidate_cost + write_cost;
        bytes += (double)fingerprint_bytes(plan) + entry_bytes + filled / count * field_bytes;
    }
    return microseconds + bytes / 100 * bytes_worth;
}

static int most_tables(const dp_rules *rules) {
    int most = rules->distance + 1 < rules->bits ? rules->distance + 1 : rules->bits;
    return most < DP_REDIS_TABLES ? most : DP_REDIS_TABLES;
}

static void choose_tables(dp_redis_plan *plan, double count) {
    double best = INFINITY;
    dp_redis_plan one = *plan;
    for (int blocks = 1; blocks <= most_tables(&plan->rules); blocks++) {
        for (int width = 1; width <= MOST_KEY && width <= (plan->rules.bits + blocks - 1) / blocks; width++) {
            cut(&one, blocks, width);
            double cost = cost_of(&one, count);
            if (cost < best) {
                best = cost;
                *plan = one;
            }
        }
    }
}

static void name_plan(dp_redis_plan *plan) {
    bool similar = plan->rules.by_similarity;
    snprintf(plan->name, sizeof plan->name, "%dx%d/%d", similar ? plan->bands : plan->tables,
             similar ? plan->rows : plan->table[0].width, plan->bucket_bits);
}

void dp_redis_plan_make(uint64_t count, const dp_rules *rules, dp_redis_plan *plan) {
    double n = count ? (double)count : USUAL_COUNT;
    *plan = (dp_redis_plan){.rules = *rules};
    if (rules->by_similarity)
        (void)dp_bands_plan(rules->similarity, &plan->bands, &plan->rows);
    else
        choose_tables(plan, n);
    double bits = log2(n * (NAMES_EACH + plan->bands + rules->titles) / FIELDS);
    plan->bucket_bits = bits < 4 ? 4 : bits > MOST_BUCKET_BITS ? MOST_BUCKET_BITS : (int)bits;
    name_plan(plan);
}

bool dp_redis_plan_read(const char *name, const dp_rules *rules, dp_redis_plan *plan) {
    int many = 0, wide = 0, bits = 0;
    *plan = (dp_redis_plan){.rules = *rules};
    if (sscanf(name, "%dx%d/%d", &many, &wide, &bits) != 3 || bits < 1 || bits > MOST_BUCKET_BITS)
        return false;
    plan->bucket_bits = bits;
    if (rules->by_similarity) {
        if (!dp_bands_plan(rules->similarity, &plan->bands, &plan->rows))
            return false;
    } else {
        if (many < 1 || many > most_tables(rules) || wide < 1 || wide > MOST_KEY ||
            wide > (rules->bits + many - 1) / many)
            return false;
        cut(plan, many, wide);
    }
    name_plan(plan);
    return !strcmp(plan->name, name);
}

size_t dp_redis_entry_size(const dp_redis_plan *plan, dp_redis_class class) {
    return class == DP_REDIS_SEGMENTS       ? DP_REDIS_SEGMENT
           : class == DP_REDIS_FINGERPRINTS ? DP_REDIS_ENTRY + fingerprint_bytes(plan)
                                            : DP_REDIS_ENTRY;
}

/* ---- places ---- */

static uint64_t place_of(const dp_redis_memory *memory, const void *bytes, size_t length, dp_redis_class class) {
    uint64_t field = ((uint64_t)1 << 8 * DP_REDIS_FIELD) - 4, bucket = ~(uint64_t)0 << (64 - memory->plan.bucket_bits);
    uint64_t hash = dp_siphash(bytes, length, memory->secret) & (bucket | field);
    return (hash ? hash : 4) | class;
}

void dp_redis_add_place(dp_redis_places *places, uint64_t place) {
    if (places->failed || !dp_reserve(&places->place, &places->room, places->count + 1, sizeof *places->place))
        places->failed = true;
    else
        places->place[places->count++] = place;
}

uint64_t dp_redis_name_place(const dp_redis_memory *memory, char kind, doppel_slice name) {
    uint8_t few[256], *bytes = few;
    /* A longer name is hashed first: the name itself is compared later. */
    if (name.length >= sizeof few) {
        dp_bytes_store(few + 1, dp_siphash(name.data, name.length, memory->secret), 8);
        dp_bytes_store(few + 9, name.length, 8);
        name = (doppel_slice){(const char *)few + 1, 16};
    } else if (name.length) {
        memcpy(few + 1, name.data, name.length);
    }
    bytes[0] = (uint8_t)kind;
    return place_of(memory, bytes, name.length + 1, DP_REDIS_NUMBERS);
}

void dp_redis_add_bands(const dp_redis_memory *memory, const uint32_t *keys, size_t count, dp_redis_places *places) {
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[6] = {'b', (uint8_t)i};
        dp_bytes_store(bytes + 2, keys[i], 4);
        dp_redis_add_place(places, place_of(memory, bytes, sizeof bytes, DP_REDIS_NUMBERS));
    }
}

/* ---- fingerprints ---- */

dp_bits dp_redis_order(const dp_redis_memory *memory, const uint64_t fingerprint[2]) {
    return dp_order_apply(&memory->order, dp_bits_load(fingerprint, memory->plan.rules.bits));
}

/* A table whose keys are being added. */
typedef struct key_list {
    const dp_redis_memory *memory;
    dp_redis_places *places;
    int table;
} key_list;

static void add_key(const key_list *list, uint64_t key) {
    uint8_t bytes[6] = {'f', (uint8_t)list->table};
    dp_bytes_store(bytes + 2, key, 4);
    dp_redis_add_place(list->places, place_of(list->memory, bytes, sizeof bytes, DP_REDIS_FINGERPRINTS));
}

/* All keys that differ from this one in 1 to `radius` of the bits below `below`. */
static void add_flipped(const key_list *list, uint64_t key, int below, int radius) {
    for (int bit = 0; radius > 0 && bit < below; bit++) {
        uint64_t flipped = key ^ (uint64_t)1 << bit;
        add_key(list, flipped);
        add_flipped(list, flipped, bit, radius - 1);
    }
}

void dp_redis_add_fingerprint(const dp_redis_memory *memory, const uint64_t fingerprint[2], bool near,
                              dp_redis_places *places) {
    const dp_redis_plan *plan = &memory->plan;
    dp_bits value = dp_redis_order(memory, fingerprint);
    key_list list = {.memory = memory, .places = places};
    for (; list.table < plan->tables; list.table++) {
        int width = plan->table[list.table].width;
        int shift = (int)fingerprint_bytes(plan) * 8 - plan->table[list.table].from - width;
        uint64_t key = (uint64_t)(value >> shift) & (((uint64_t)1 << width) - 1);
        add_key(&list, key);
        if (near)
            add_flipped(&list, key, width, plan->table[list.table].radius);
    }
}

/* ---- titles ---- */

enum { LONGEST_SEGMENT = 64 };
/* No title is longer than a title may be. */
enum { LONGEST_TITLE = 65536 };

/* Segments have one of a few sizes, so that titles of nearly the same length mostly have the same. */
enum { SIZES = 11 };
static const size_t sizes[SIZES] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, LONGEST_SEGMENT};

/* A title whose segments are being added. */
typedef struct segmented {
    const dp_redis_memory *memory;
    dp_redis_places *places;
    const uint32_t *points;
    size_t length;
    double least; /* similarity */
} segmented;

/* The part from `start` on, as segment `number` of titles with segments of this size. */
static void add_segment(const segmented *s, size_t size, size_t number, size_t start) {
    uint8_t bytes[3 + 4 * LONGEST_SEGMENT] = {'s', (uint8_t)size, (uint8_t)number};
    for (size_t i = 0; i < size; i++)
        dp_bytes_store(bytes + 3 + 4 * i, s->points[start + i], 4);
    dp_redis_add_place(s->places, place_of(s->memory, bytes, 3 + 4 * size, DP_REDIS_SEGMENTS));
}

/* Uncut titles are found by their length. */
static void add_uncut(const segmented *s, size_t length) {
    uint8_t bytes[6] = {'s', 0};
    dp_bytes_store(bytes + 2, length, 4);
    dp_redis_add_place(s->places, place_of(s->memory, bytes, sizeof bytes, DP_REDIS_SEGMENTS));
}

/* Which of the sizes this many segments of a title have: the largest that it has room for. */
static size_t size_for(size_t length, size_t count) {
    size_t size = 0;
    while (size + 1 < SIZES && sizes[size + 1] * count <= length)
        size++;
    return size;
}

static void add_own(const segmented *s) {
    size_t count = dp_title_segments(s->length, s->least);
    size_t size = count ? sizes[size_for(s->length, count)] : 0;
    if (!count)
        add_uncut(s, s->length);
    for (size_t i = 0; i < count; i++)
        add_segment(s, size, i, i * size);
}

static void add_shifted(const segmented *s, size_t size, size_t distance) {
    for (size_t i = 0; i <= distance; i++)
        for (size_t at = i * size > i ? i * size - i : 0; at <= i * size + i && at + size <= s->length; at++)
            add_segment(s, size, i, at);
}

/* Notes that titles of a length may be within a distance. */
static void note_length(const segmented *s, size_t length, size_t distance, size_t most[SIZES]) {
    size_t count = dp_title_segments(length, s->least);
    if (!count) {
        add_uncut(s, length);
        return;
    }
    size_t *noted = &most[size_for(length, count)];
    *noted = distance + 1 > *noted ? distance + 1 : *noted;
}

static void add_near(const segmented *s) {
    size_t allowed, most[SIZES] = {0};
    if (!dp_edit_allowed(s->length, s->least, &allowed))
        return;
    for (size_t length = s->length - allowed; length <= s->length; length++)
        note_length(s, length, allowed, most);
    for (size_t length = s->length + 1; length <= LONGEST_TITLE && !s->places->failed; length++) {
        if (!dp_edit_allowed(length, s->least, &allowed) || length - s->length > allowed)
            break;
        note_length(s, length, allowed, most);
    }
    for (size_t i = 0; i < SIZES; i++)
        if (most[i])
            add_shifted(s, sizes[i], most[i] - 1);
}

/* The code points of a title, to be freed; NULL: out of memory. */
static uint32_t *read_points(doppel_slice title, size_t *length) {
    uint32_t *points = malloc((title.length + 1) * sizeof *points);
    if (points)
        *length = dp_points_decode(title.data, title.length, points);
    return points;
}

void dp_redis_add_segments(const dp_redis_memory *memory, doppel_slice title, bool near, dp_redis_places *places) {
    segmented s = {.memory = memory, .places = places, .least = memory->plan.rules.title_similarity};
    uint32_t *points = read_points(title, &s.length);
    s.points = points;
    if (!points)
        places->failed = true;
    else if (near)
        add_near(&s);
    else
        add_own(&s);
    free(points);
}

bool dp_redis_read_title(doppel_slice title, dp_redis_title *read) {
    size_t length = 0;
    uint32_t *points = read_points(title, &length);
    if (!points)
        return false;
    *read = (dp_redis_title){.length = length < UINT16_MAX ? length : UINT16_MAX};
    for (size_t i = 0; i < length; i++)
        read->bag ^= (uint64_t)1 << (points[i] * 0x9E3779B1u >> 26);
    free(points);
    return true;
}

bool dp_redis_title_near(const dp_redis_title *a, const dp_redis_title *b, double similarity) {
    size_t longer = a->length > b->length ? a->length : b->length;
    size_t shorter = a->length + b->length - longer, allowed;
    if (longer == UINT16_MAX)
        return true;
    return dp_edit_allowed(longer, similarity, &allowed) && longer - shorter <= allowed &&
           (size_t)__builtin_popcountll(a->bag ^ b->bag) <= 2 * allowed;
}
