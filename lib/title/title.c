/* title.c - the title index: every title that is similar enough to a given one, without comparing all of them.
 *
 * An entry is a distinct title with its owners. Entries of one length form a group, which says into how many segments a
 * title of that length is cut. A table leads from the hash of (length, number of the segment, its code points) to the
 * entries that have this segment, and from the hash of the whole title to the entry itself. A title without owners
 * stays until half of the titles have none; then everything is rebuilt from the others.
 *
 * Let q be the given title and e one of length n, cut into m segments, within distance d < m. Then there is a segment
 * of e, number i from 0, that stands in q, moved by s places, with i <= d,  |s| <= i  and  |s - (|q| - n)| <= d - i.
 * For take the fewest edits that make q of e, count each in the segment it stands in, and let A(i) be how many there
 * are in the segments before i. A(i) - i is 0 at first, below 0 after all m segments, and falls by 1 at most from each
 * segment to the next, by 1 only over one without edits. So where it first comes to -1, it was 0, A(i) = i, segment i
 * has no edits, and at most d - i are left for what comes after it. What stands before it is longer or shorter in q
 * by at most the edits there, and so is what comes after it.
 *
 * All these places are looked up in the table. The entries found there are filtered by their letter bags (the sum of
 * differences is at most 2 d: verify.h), and what is left is measured. Where a length has few titles, or is not cut
 * into segments, all of them are filtered. */
#include "title/title.h"

#include "verify/verify.h"

#include <math.h>
#include <stdlib.h>

/* ---- the table: from a hash to the entries of titles that have it ----
 *
 * Slots are ascending by hash, with empty ones between them: a hash's home is its share of the table's size, so that
 * order by home is order by hash, and a lookup ends at the first slot that is empty or has a larger hash. A table grows
 * by copying in order. A single entry is in its slot; more of them are in a list: a block of 2^class words, the count
 * and then the entries, that moves to a larger block when it is full. Different segments with equal hashes share a
 * list. */

/* Empty slots have value 0; else the entry's number + 1, or, with the top bit, where its list starts. */
typedef struct title_slot {
    uint32_t hash, value;
} title_slot;

enum { CLASSES = 31 };

typedef struct title_table {
    title_slot *slots; /* ascending by hash, empty ones between them */
    size_t size, used;
    uint32_t *words; /* of lists */
    size_t word_count, word_capacity;
    uint32_t free[CLASSES]; /* blocks of 2^class words that are not used; 0: none */
} title_table;

/* The home of a hash: its slot in an otherwise empty table. */
static inline size_t home_of(const title_table *table, uint32_t hash) {
    return (size_t)((unsigned __int128)hash * table->size >> 32);
}

/* Extra slots after the last home, and one more that stays empty. A table that needs more grows; the secret in the
 * hashes prevents attacks on the end. At least the keys of two titles. */
enum { SLACK = 256, FIRST_SIZE = 1024, FIRST_CLASS = 2 };
#define LIST 0x80000000u

static void table_free(title_table *table) {
    free(table->slots);
    free(table->words);
}

/* The slot of a hash, or the place where it belongs. */
static size_t locate(const title_table *table, uint32_t hash) {
    size_t at = home_of(table, hash);
    while (table->slots[at].value && table->slots[at].hash < hash)
        at++;
    return at;
}

/* Copies all slots into a table of a larger size; false when it does not fit, or there is no memory. */
static bool copy_slots(const title_table *from, title_table *to, bool *full) {
    *full = false;
    size_t bytes = (to->size + SLACK + 1) * sizeof *to->slots;
    if (!(to->slots = dp_big_alloc(bytes)))
        return false;
    memset(to->slots, 0, bytes);
    size_t at = 0;
    for (size_t i = 0; from->slots && i < from->size + SLACK; i++) {
        if (!from->slots[i].value)
            continue;
        size_t home = home_of(to, from->slots[i].hash);
        at = home > at ? home : at;
        if (at == to->size + SLACK) {
            *full = true;
            free(to->slots);
            return false;
        }
        to->slots[at++] = from->slots[i];
    }
    return true;
}

static bool grow(title_table *table, size_t least) {
    title_table larger = *table;
    bool full = true;
    larger.size = table->size ? table->size : FIRST_SIZE;
    while (larger.size / 4 * 3 < least)
        larger.size += larger.size / 2;
    while (full) {
        if (!copy_slots(table, &larger, &full) && !full)
            return false;
        if (full)
            larger.size += larger.size / 2;
    }
    free(table->slots);
    *table = larger;
    return true;
}

/* How many slots at the end are empty, up to `wanted`. */
static size_t room_at_end(const title_table *table, size_t wanted) {
    size_t room = 0;
    while (room < wanted && room < SLACK && !table->slots[table->size + SLACK - 1 - room].value)
        room++;
    return room;
}

/* Makes sure that `count` more keys, at most 128, find a place. */
static bool table_reserve(title_table *table, size_t count) {
    size_t need = table->used + count;
    if (need / 3 * 4 + 4 > table->size && !grow(table, need + need / 4))
        return false;
    /* All of them could belong at the end. */
    while (room_at_end(table, count) < count)
        if (!grow(table, table->size))
            return false;
    return true;
}

/* Puts a new slot in its place, moving those after it up to the next empty one. */
static void insert_slot(title_table *table, size_t at, title_slot slot) {
    size_t end = at;
    while (table->slots[end].value)
        end++;
    memmove(&table->slots[at + 1], &table->slots[at], (end - at) * sizeof slot);
    table->slots[at] = slot;
    table->used++;
}

/* The class of a list of `count` entries. */
static int class_of(size_t count) {
    int size = FIRST_CLASS;
    while ((size_t)1 << size < count + 1)
        size++;
    return size;
}

/* A block of 2^class words; 0: no memory. Word 0 is never used. */
static uint32_t take_block(title_table *table, int size) {
    if (size >= CLASSES)
        return 0;
    uint32_t block = table->free[size];
    if (block) {
        table->free[size] = table->words[block];
        return block;
    }
    size_t start = table->word_count ? table->word_count : 1, end = start + ((size_t)1 << size);
    if (end > LIST || !dp_reserve(&table->words, &table->word_capacity, end, sizeof *table->words))
        return 0;
    table->word_count = end;
    return (uint32_t)start;
}

static bool list_add(title_table *table, uint32_t *value, uint32_t entry) {
    uint32_t old = *value & ~LIST, block = old, count = *value & LIST ? table->words[old] : 1;
    int size = class_of(count), wanted = class_of((size_t)count + 1);
    if (!(*value & LIST) || wanted != size) {
        block = take_block(table, wanted);
        if (!block)
            return false;
        if (*value & LIST) {
            memcpy(table->words + block, table->words + old, ((size_t)count + 1) * sizeof *table->words);
            table->words[old] = table->free[size];
            table->free[size] = old;
        } else {
            table->words[block + 1] = *value - 1;
        }
    }
    table->words[block] = count + 1;
    table->words[block + 1 + count] = entry;
    *value = block | LIST;
    return true;
}

/* Adds an entry under a hash; there must be a place. False: no memory. */
static bool table_add(title_table *table, uint32_t hash, uint32_t entry) {
    size_t at = locate(table, hash);
    if (table->slots[at].value && table->slots[at].hash == hash)
        return list_add(table, &table->slots[at].value, entry);
    insert_slot(table, at, (title_slot){hash, entry + 1});
    return true;
}

/* The entries under a hash, *count of them; they stay where they are until the table changes. `one` is room for one. */
static const uint32_t *table_get(const title_table *table, uint32_t hash, uint32_t *one, size_t *count) {
    *count = 0;
    if (!table->size)
        return one;
    title_slot slot = table->slots[locate(table, hash)];
    if (!slot.value || slot.hash != hash)
        return one;
    if (slot.value & LIST) {
        const uint32_t *list = table->words + (slot.value & ~LIST);
        *count = list[0];
        return list + 1;
    }
    *one = slot.value - 1;
    *count = 1;
    return one;
}

/* ---- what the index is made of ---- */

/* The members a candidate is filtered by are adjacent. */
typedef struct title_entry {
    uint8_t bag[32];
    uint32_t length, owner_count; /* no owner: the title was removed */
    const char *points;           /* `width` bytes each */
    union {
        uint64_t one;   /* owner_count is 1 */
        uint64_t *many; /* ascending; room for a power of two */
    } owners;
    uint8_t width;
    uint32_t skipped; /* owners before the first of `many` that were removed */
} title_entry;

/* Lengths whose titles would be cut into more segments, or into shorter ones, are compared one by one. At 90 % these
 * are those over about 500 code points: the lookups grow with the third power of the segments. */
enum { MOST_SEGMENTS = 57, SHORTEST = 2 };

/* Where the segments of a length start, and last the length. Other cuts of one length have another version. */
typedef struct title_cuts {
    uint32_t version, at[MOST_SEGMENTS + 1];
} title_cuts;

typedef struct title_group {
    uint32_t length, segments; /* 0: none */
    title_cuts cuts;
    uint32_t versions; /* that were tried */
    size_t recut_at;   /* number of entries at which cuts are chosen again */
    uint32_t *entries;
    size_t count, capacity;
} title_group;

struct dp_titles_index {
    double min;
    uint64_t version;      /* different for every index, and changed when entries are renumbered; never 0 */
    uint64_t secret, base; /* for all hashes, so that no client can make them collide */
    title_table table;
    title_entry *entries;
    size_t count, capacity, live;
    title_group **groups; /* ascending by length */
    size_t group_count, group_capacity;
    char **blocks; /* the code points of all titles */
    size_t block_count, block_capacity;
    char *room; /* what is left of the last block */
    size_t room_left;
    uint64_t owners, bytes; /* bytes: of the blocks */
};

/* ---- hashes ---- */

/* Texts are hashed by sums: sums[0] is 0, and each is the last times the base plus the next code point plus 1, modulo a
 * prime. So any part of a text can be hashed at once. The base is a secret: two texts of n code points have one sum for
 * at most n of the 2^61 bases. Modulo 2^64 there are texts that collide whatever the base is. */
#define PRIME (((uint64_t)1 << 61) - 1)

/* The product of two numbers below the prime. */
static inline uint64_t times(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    uint64_t x = ((uint64_t)product & PRIME) + (uint64_t)(product >> 61);
    return x >= PRIME ? x - PRIME : x;
}

/* The sum with one code point more. */
static inline uint64_t add_point(uint64_t base, uint64_t sum, uint32_t point) {
    uint64_t x = times(sum, base) + point + 1;
    return x >= PRIME ? x - PRIME : x;
}

/* base^length, as part_sum needs it. */
static inline uint64_t power_of(uint64_t base, size_t length) {
    uint64_t power = 1;
    for (; length; length >>= 1, base = times(base, base))
        if (length & 1)
            power = times(power, base);
    return power;
}

/* The sum of the part of a text from `start` to `end`; `power` is that of the part's length. */
static inline uint64_t part_sum(const uint64_t *sums, size_t start, size_t end, uint64_t power) {
    uint64_t x = sums[end] + PRIME - times(sums[start], power);
    return x >= PRIME ? x - PRIME : x;
}

/* The hash of that part as segment `number` of a title of some length. Equal parts give equal hashes; different ones
 * seldom do, which only costs a comparison. */
static inline uint32_t segment_hash(const uint64_t *sums, size_t start, size_t end, uint64_t power, uint64_t seed) {
    uint64_t x = part_sum(sums, start, end, power) ^ seed;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(x >> 32);
}

/* Versions are few: each comes with four times the entries. */
static inline uint64_t seed_of(const dp_titles_index *index, size_t length, uint32_t version, size_t number) {
    return ((uint64_t)length << 32 | version << 8 | number) * 0xA0761D6478BD642Fu ^ index->secret;
}

/* The number of the segment that is the whole. */
enum { WHOLE = 255 };

/* ---- decoded titles ---- */

/* A title's code points and their sums; a short one needs no allocation. */
typedef struct title_text {
    dp_points points;
    uint64_t *sums;
    uint32_t *data; /* of points */
    void *room;
    uint64_t base; /* of the index */
    uint64_t here[768];
} title_text;

static inline uint32_t point_at(const char *points, size_t i, uint8_t width) {
    uint16_t half;
    uint32_t whole;
    if (width == 1)
        return (uint8_t)points[i];
    if (width == 2) {
        memcpy(&half, points + 2 * i, 2);
        return half;
    }
    memcpy(&whole, points + 4 * i, 4);
    return whole;
}

/* Writes the code points of an entry to `to`. */
static void unpack(const title_entry *entry, uint32_t *to) {
    const char *points = entry->points;
    size_t length = entry->length;
    if (entry->width == 1)
        for (size_t i = 0; i < length; i++)
            to[i] = point_at(points, i, 1);
    else
        for (size_t i = 0; i < length; i++)
            to[i] = point_at(points, i, entry->width);
}

enum { BLOCK = 1 << 20 };

#define LONGEST 0x80000000u

/* Room for a title of `length` bytes or code points. */
static bool text_room(title_text *text, const dp_titles_index *index, size_t length) {
    text->base = index->base;
    size_t bytes = (length + 1) * (sizeof *text->sums + sizeof *text->data);
    text->room = bytes <= sizeof text->here ? NULL : malloc(bytes);
    text->sums = bytes <= sizeof text->here ? text->here : text->room;
    if (!text->sums)
        return false;
    text->data = (uint32_t *)(text->sums + length + 1);
    return true;
}

static void set_points(title_text *text, size_t count) {
    text->points = (dp_points){text->data, count};
    text->sums[0] = 0;
    for (size_t i = 0; i < count; i++)
        text->sums[i + 1] = add_point(text->base, text->sums[i], text->data[i]);
}

/* From UTF-8. Errors: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT when it is too long. */
static doppel_status text_init(title_text *text, const dp_titles_index *index, const char *title, size_t length) {
    if (length >= LONGEST)
        return DOPPEL_ERROR_INPUT;
    if (!text_room(text, index, length))
        return DOPPEL_ERROR_MEMORY;
    set_points(text, dp_points_decode(title, length, text->data));
    return DOPPEL_OK;
}

/* From an entry that there is room for. */
static void text_load(title_text *text, const title_entry *entry) {
    unpack(entry, text->data);
    set_points(text, entry->length);
}

static void text_free(title_text *text) {
    free(text->room);
}

/* The hash of a whole title. */
static uint32_t whole_hash(const dp_titles_index *index, const uint64_t *sums, size_t length) {
    return segment_hash(sums, 0, length, 0, seed_of(index, length, 0, WHOLE));
}

/* ---- groups: the titles of one length, and where they are cut into segments ----
 *
 * Any cuts are exact; good ones make segments that few titles share. At first all segments are equally long. Titles of
 * a site tend to have an end or a beginning in common, though, and whole segments inside it lead to all titles of the
 * site. So once there are many, the cuts are chosen on which the fewest pairs of a sample agree, and what many titles
 * have in common becomes part of one long segment. All titles of the length are then put into the table once more;
 * entries for the old cuts are never looked up again. This happens with 256 titles and each time their number has grown
 * fourfold, so that what is left over stays below a third. */

/* All places are prefetched first: most are not in the cache. */
static bool add_segments(dp_titles_index *index, const title_group *group, const title_cuts *cuts, uint32_t number,
                         const uint64_t *sums) {
    uint32_t hash[MOST_SEGMENTS];
    for (size_t i = 0; i < group->segments; i++) {
        size_t start = cuts->at[i], end = cuts->at[i + 1];
        uint64_t seed = seed_of(index, group->length, cuts->version, i);
        hash[i] = segment_hash(sums, start, end, power_of(index->base, end - start), seed);
        __builtin_prefetch(index->table.slots + home_of(&index->table, hash[i]));
    }
    for (size_t i = 0; i < group->segments; i++)
        if (!table_add(&index->table, hash[i], number))
            return false;
    return true;
}

/* PLACES: a power of two, 2^10, that the sample does not fill. FEW_PAIRS: cuts on which at most this many of the
 * sample's 32640 pairs agree are good enough. LEAST_STEPS: the number of places among which cuts are chosen, or three a
 * segment. */
enum { SAMPLE = 256, TIMES = 4, PLACES = 1024, FEW_PAIRS = 16, LEAST_STEPS = 32 };

/* The first group of at least this length. */
static size_t group_at(const dp_titles_index *index, size_t length) {
    size_t low = 0, high = index->group_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (index->groups[middle]->length < length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One segment more than the largest distance that a title of this length can have to one that is found: then one of
 * them is untouched by the edits. The longer of the two, of length n, allows d(n), and must be within d(n) of this
 * length; n - d(n) never falls, so that the first n that is not within is the end. */
size_t dp_title_segments(size_t length, double min) {
    size_t most = 0, allowed;
    for (size_t longer = length; dp_edit_allowed(longer, min, &allowed) && longer - length <= allowed; longer++) {
        most = allowed > most ? allowed : most;
        if (most + 1 > MOST_SEGMENTS || (most + 1) * SHORTEST > length)
            return 0;
    }
    return most + 1;
}

static title_group *group_create(size_t length, double min) {
    title_group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->length = (uint32_t)length;
    group->segments = (uint32_t)dp_title_segments(length, min);
    group->recut_at = group->segments > 1 ? SAMPLE : SIZE_MAX;
    for (size_t i = 0; group->segments && i <= group->segments; i++)
        group->cuts.at[i] = (uint32_t)(length * i / group->segments);
    return group;
}

static void group_free(title_group *group) {
    free(group->entries);
    free(group);
}

/* The group of a length, with room for one more entry; NULL: out of memory. */
static title_group *group_for(dp_titles_index *index, size_t length) {
    size_t at = group_at(index, length);
    if (at == index->group_count || index->groups[at]->length != length) {
        if (!dp_reserve(&index->groups, &index->group_capacity, index->group_count + 1, sizeof *index->groups))
            return NULL;
        title_group *group = group_create(length, index->min);
        if (!group)
            return NULL;
        memmove(index->groups + at + 1, index->groups + at, (index->group_count - at) * sizeof *index->groups);
        index->groups[at] = group;
        index->group_count++;
    }
    title_group *group = index->groups[at];
    return dp_reserve(&group->entries, &group->capacity, group->count + 1, sizeof *group->entries) ? group : NULL;
}

/* The sums of titles of one length, one title after the other, and a small table for counting. */
struct sample {
    size_t length;
    uint64_t base; /* of the index */
    uint64_t *sums;
    uint64_t keys[PLACES];
    uint16_t counts[PLACES];
};

static bool sample_take(const dp_titles_index *index, const title_group *group, struct sample *sample) {
    title_text text;
    sample->length = group->length;
    sample->base = index->base;
    sample->sums = malloc(SAMPLE * (sample->length + 1) * sizeof *sample->sums);
    if (!sample->sums || !text_room(&text, index, group->length))
        return false;
    for (size_t i = 0; i < SAMPLE; i++) {
        text_load(&text, &index->entries[group->entries[i * group->count / SAMPLE]]);
        memcpy(sample->sums + i * (sample->length + 1), text.sums, (sample->length + 1) * sizeof *text.sums);
    }
    text_free(&text);
    return true;
}

/* How many pairs of the sample have the same from `start` to `end`. */
static size_t pairs_alike(struct sample *sample, size_t start, size_t end) {
    uint64_t power = power_of(sample->base, end - start);
    size_t pairs = 0;
    memset(sample->counts, 0, sizeof sample->counts);
    for (size_t i = 0; i < SAMPLE; i++) {
        const uint64_t *sums = sample->sums + i * (sample->length + 1);
        uint64_t key = part_sum(sums, start, end, power);
        size_t at = (key ^ key >> 32) * 0x9E3779B97F4A7C15u >> 54;
        while (sample->counts[at] && sample->keys[at] != key)
            at = (at + 1) % PLACES;
        sample->keys[at] = key;
        pairs += sample->counts[at]++;
    }
    return pairs;
}

/* What a segment costs: the pairs that agree on it, and, since a sample knows little of rare ones, those that would if
 * each letter were one of four. */
static double segment_cost(struct sample *sample, size_t start, size_t end) {
    const double pairs = SAMPLE * (SAMPLE - 1) / 2;
    return (double)pairs_alike(sample, start, end) + ldexp(pairs, -2 * (int)(end - start));
}

/* The cheapest cuts, at some of the places j * length / steps: best[k][j] is the cost of k segments up to place j. */
struct cutting {
    struct sample *sample;
    size_t steps, segments;
    double *best;   /* (segments + 1) rows of steps + 1 */
    uint16_t *from; /* where the last of them starts */
};

static size_t place(const struct cutting *cutting, size_t j) {
    return cutting->sample->length * j / cutting->steps;
}

static void fill_best(struct cutting *cutting) {
    size_t row = cutting->steps + 1;
    for (size_t i = 0; i < (cutting->segments + 1) * row; i++)
        cutting->best[i] = INFINITY;
    cutting->best[0] = 0;
    for (size_t end = 1; end <= cutting->steps; end++) {
        for (size_t start = 0; start < end; start++) {
            double cost = segment_cost(cutting->sample, place(cutting, start), place(cutting, end));
            for (size_t k = 1; k <= cutting->segments; k++) {
                double sum = cutting->best[(k - 1) * row + start] + cost;
                if (sum < cutting->best[k * row + end]) {
                    cutting->best[k * row + end] = sum;
                    cutting->from[k * row + end] = (uint16_t)start;
                }
            }
        }
    }
}

/* Gives the cost, infinite when out of memory. */
static double cheapest(struct sample *sample, size_t segments, title_cuts *cuts) {
    size_t wanted = 3 * segments < LEAST_STEPS ? LEAST_STEPS : 3 * segments;
    struct cutting cutting = {.sample = sample, .segments = segments};
    cutting.steps = sample->length < wanted ? sample->length : wanted;
    size_t row = cutting.steps + 1, cells = (segments + 1) * row;
    cutting.best = malloc(cells * sizeof *cutting.best);
    cutting.from = calloc(cells, sizeof *cutting.from);
    double cost = INFINITY;
    if (cutting.best && cutting.from) {
        fill_best(&cutting);
        cost = cutting.best[segments * row + cutting.steps];
        size_t at = cutting.steps;
        for (size_t k = segments + 1; k-- > 0; at = cutting.from[k * row + at])
            cuts->at[k] = (uint32_t)place(&cutting, at);
    }
    free(cutting.best);
    free(cutting.from);
    return cost;
}

static bool choose(struct sample *sample, const title_group *group, title_cuts *cuts) {
    double now = 0;
    for (size_t i = 0; i < group->segments; i++)
        now += segment_cost(sample, group->cuts.at[i], group->cuts.at[i + 1]);
    return now > FEW_PAIRS && cheapest(sample, group->segments, cuts) < now / 2;
}

/* Puts all titles of a group into the table by new cuts. */
static bool put_all(dp_titles_index *index, const title_group *group, const title_cuts *cuts) {
    title_text text;
    if (!text_room(&text, index, group->length))
        return false;
    bool done = true;
    for (size_t i = 0; i < group->count && done; i++) {
        text_load(&text, &index->entries[group->entries[i]]);
        done = table_reserve(&index->table, group->segments) &&
               add_segments(index, group, cuts, group->entries[i], text.sums);
    }
    text_free(&text);
    return done;
}

/* Chooses new cuts for a group, if they are much better; without memory for that, nothing changes. */
static void group_recut(dp_titles_index *index, title_group *group) {
    struct sample sample = {0};
    title_cuts cuts = {.version = ++group->versions};
    group->recut_at = TIMES * group->count;
    if (sample_take(index, group, &sample) && choose(&sample, group, &cuts) && put_all(index, group, &cuts))
        group->cuts = cuts;
    free(sample.sums);
}

/* ---- entries ---- */

static uint8_t width_of(dp_points text) {
    uint32_t all = 0;
    for (size_t i = 0; i < text.count; i++)
        all |= text.data[i];
    return all < 256 ? 1 : all < 65536 ? 2 : 4;
}

/* Room for the code points of a title, aligned to four; NULL: out of memory. */
static char *take_room(dp_titles_index *index, size_t size) {
    size = size / 4 * 4 + 4;
    if (size > index->room_left) {
        size_t block = size > BLOCK ? size : BLOCK;
        if (!dp_reserve(&index->blocks, &index->block_capacity, index->block_count + 1, sizeof *index->blocks))
            return NULL;
        char *room = malloc(block);
        if (!room)
            return NULL;
        index->blocks[index->block_count++] = room;
        index->room = room;
        index->room_left = block;
        index->bytes += block;
    }
    char *at = index->room;
    index->room += size;
    index->room_left -= size;
    return at;
}

static void pack(char *to, dp_points text, uint8_t width) {
    for (size_t i = 0; i < text.count; i++) {
        uint16_t half = (uint16_t)text.data[i];
        if (width == 1)
            to[i] = (char)text.data[i];
        else if (width == 2)
            memcpy(to + 2 * i, &half, 2);
        else
            memcpy(to + 4 * i, &text.data[i], 4);
    }
}

static bool is_title(const title_entry *entry, dp_points text) {
    if (entry->length != text.count)
        return false;
    for (size_t i = 0; i < text.count; i++)
        if (point_at(entry->points, i, entry->width) != text.data[i])
            return false;
    return true;
}

/* The entry of a title; NULL: there is none. */
static title_entry *entry_get(const dp_titles_index *index, dp_points text, const uint64_t *sums) {
    uint32_t one;
    size_t count;
    const uint32_t *found = table_get(&index->table, whole_hash(index, sums, text.count), &one, &count);
    for (size_t i = 0; i < count; i++)
        if (is_title(&index->entries[found[i]], text))
            return &index->entries[found[i]];
    return NULL;
}

/* An entry that fails half-way has no owner and is not found as a whole: it cannot get an owner. */
static title_entry *entry_add(dp_titles_index *index, dp_points text, const uint64_t *sums) {
    uint8_t width = width_of(text);
    title_group *group = group_for(index, text.count);
    if (!group || !table_reserve(&index->table, (size_t)group->segments + 1) ||
        !dp_reserve(&index->entries, &index->capacity, index->count + 1, sizeof *index->entries))
        return NULL;
    char *points = take_room(index, text.count * width);
    if (!points)
        return NULL;
    pack(points, text, width);
    uint32_t number = (uint32_t)index->count++;
    title_entry *entry = &index->entries[number];
    *entry = (title_entry){.points = points, .length = (uint32_t)text.count, .width = width};
    dp_title_letters(text, entry->bag);
    group->entries[group->count++] = number;
    if (!add_segments(index, group, &group->cuts, number, sums) ||
        !table_add(&index->table, whole_hash(index, sums, text.count), number))
        return NULL;
    if (group->count >= group->recut_at)
        group_recut(index, group);
    return entry;
}

/* ---- creating and freeing ---- */

enum { FEW_REMOVED = 1024 };
#define MOST_TITLES 0x7FFFFFFEu

/* Larger than any code point. */
#define LEAST_BASE ((uint64_t)1 << 32)

doppel_status dp_titles_index_create(double min, dp_titles_index **index) {
    *index = NULL;
    if (!(min >= 0 && min <= 1))
        return DOPPEL_ERROR_USAGE;
    *index = calloc(1, sizeof **index);
    if (!*index)
        return DOPPEL_ERROR_MEMORY;
    (*index)->min = min;
    (*index)->version = dp_random_number();
    (*index)->secret = dp_random_number();
    (*index)->base = dp_random_number() % (PRIME - LEAST_BASE) + LEAST_BASE;
    return DOPPEL_OK;
}

/* All but the lists of owners. */
static void free_parts(dp_titles_index *index) {
    table_free(&index->table);
    for (size_t i = 0; i < index->group_count; i++)
        group_free(index->groups[i]);
    for (size_t i = 0; i < index->block_count; i++)
        free(index->blocks[i]);
    free(index->entries);
    free(index->groups);
    free(index->blocks);
}

void dp_titles_index_free(dp_titles_index *index) {
    if (!index)
        return;
    for (size_t i = 0; i < index->count; i++)
        if (index->entries[i].owner_count > 1)
            free(index->entries[i].owners.many);
    free_parts(index);
    free(index);
}

/* Lists of owners, those skipped included, have room for the next power of two. */
static size_t owner_room(const title_entry *entry) {
    size_t count = (size_t)entry->skipped + entry->owner_count;
    return (size_t)1 << (64 - __builtin_clzll(count - 1));
}

void dp_titles_index_get_stats(const dp_titles_index *index, dp_titles_stats *stats) {
    stats->titles = index->live;
    stats->owners = index->owners;
    stats->bytes = index->bytes + index->capacity * sizeof *index->entries +
                   index->table.size * sizeof *index->table.slots +
                   index->table.word_capacity * sizeof *index->table.words;
    for (size_t i = 0; i < index->count; i++)
        if (index->entries[i].owner_count > 1)
            stats->bytes += sizeof(uint64_t) * owner_room(&index->entries[i]);
    for (size_t i = 0; i < index->group_count; i++)
        stats->bytes += sizeof **index->groups + index->groups[i]->capacity * sizeof *index->groups[i]->entries;
}

/* ---- owners ---- */

/* Ascending, owner_count of them. */
static const uint64_t *owners_of(const title_entry *entry) {
    return entry->owner_count == 1 ? &entry->owners.one : entry->owners.many + entry->skipped;
}

/* The position of an owner (*there), or where it belongs. */
static size_t owner_at(const title_entry *entry, uint64_t owner, bool *there) {
    const uint64_t *owners = owners_of(entry);
    size_t low = 0, high = entry->owner_count;
    if (high && owners[high - 1] < owner)
        low = high; /* the usual order */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (owners[middle] < owner)
            low = middle + 1;
        else
            high = middle;
    }
    *there = low < entry->owner_count && owners[low] == owner;
    return low;
}

/* Moves the owners to the beginning of their list. Without memory to shrink it, it stays larger. */
static void close_up(title_entry *entry) {
    uint64_t *many = entry->owners.many;
    memmove(many, many + entry->skipped, entry->owner_count * sizeof *many);
    entry->skipped = 0;
    uint64_t *smaller = realloc(many, owner_room(entry) * sizeof *many);
    entry->owners.many = smaller ? smaller : many;
}

/* Makes room for one more: a list is full when it has a power of two. */
static bool owner_reserve(title_entry *entry) {
    size_t count = entry->owner_count;
    if (count > 1 && entry->skipped >= count)
        close_up(entry);
    count += entry->skipped;
    if (count & (count - 1))
        return true;
    uint64_t one = entry->owners.one, *many = count > 1 ? entry->owners.many : NULL;
    if (!(many = realloc(many, 2 * count * sizeof *many)))
        return false;
    if (count == 1)
        many[0] = one;
    entry->owners.many = many;
    return true;
}

static bool owner_add(title_entry *entry, size_t at, uint64_t owner) {
    size_t count = entry->owner_count;
    if (!count) {
        entry->owners.one = owner;
    } else {
        if (!owner_reserve(entry))
            return false;
        uint64_t *many = entry->owners.many + entry->skipped;
        memmove(many + at + 1, many + at, (count - at) * sizeof *many);
        many[at] = owner;
    }
    entry->owner_count++;
    return true;
}

/* Usually the first is removed: it is skipped, until half of the list is. */
static void owner_remove(title_entry *entry, size_t at) {
    size_t count = --entry->owner_count;
    if (!count)
        return;
    uint64_t *many = entry->owners.many, *first = many + entry->skipped;
    if (count == 1) {
        entry->owners.one = first[!at];
        entry->skipped = 0;
        free(many);
    } else if (!at) {
        entry->skipped++;
        if (entry->skipped > count)
            close_up(entry);
    } else {
        memmove(first + at, first + at + 1, (count - at) * sizeof *first);
        count += entry->skipped;
        uint64_t *smaller = count & (count - 1) ? many : realloc(many, count * sizeof *many);
        entry->owners.many = smaller ? smaller : many;
    }
}

/* ---- adding and removing ---- */

doppel_status dp_titles_index_add(dp_titles_index *index, const char *title, size_t length, uint64_t owner) {
    title_text text;
    doppel_status status = text_init(&text, index, title, length);
    if (status)
        return status;
    title_entry *entry = entry_get(index, text.points, text.sums);
    bool there = false;
    size_t at = entry ? owner_at(entry, owner, &there) : 0;
    if (!there && (entry ? entry->owner_count == UINT32_MAX : index->count > MOST_TITLES)) {
        status = DOPPEL_ERROR_INPUT;
    } else if (!there) {
        if (!entry)
            entry = entry_add(index, text.points, text.sums);
        if (entry && owner_add(entry, at, owner)) {
            index->live += entry->owner_count == 1;
            index->owners++;
        } else {
            status = DOPPEL_ERROR_MEMORY;
        }
    }
    text_free(&text);
    return status;
}

/* Moves an entry and its owners to another index. */
static bool move_entry(const title_entry *from, dp_titles_index *to) {
    title_text text;
    if (!text_room(&text, to, from->length))
        return false;
    text_load(&text, from);
    title_entry *entry = entry_add(to, text.points, text.sums);
    text_free(&text);
    if (!entry)
        return false;
    entry->owners = from->owners;
    entry->owner_count = from->owner_count;
    entry->skipped = from->skipped;
    return true;
}

/* Rebuilds everything without titles that have no owner. Without memory for that, nothing changes. */
static void rebuild(dp_titles_index *index) {
    dp_titles_index fresh = {.min = index->min,
                             .version = dp_random_number(),
                             .secret = index->secret,
                             .base = index->base,
                             .live = index->live,
                             .owners = index->owners};
    for (size_t i = 0; i < index->count; i++) {
        if (index->entries[i].owner_count && !move_entry(&index->entries[i], &fresh)) {
            free_parts(&fresh);
            return;
        }
    }
    free_parts(index);
    *index = fresh;
}

doppel_status dp_titles_index_remove(dp_titles_index *index, const char *title, size_t length, uint64_t owner,
                                     bool *removed) {
    title_text text;
    DP_TRY(text_init(&text, index, title, length));
    title_entry *entry = entry_get(index, text.points, text.sums);
    bool there = false;
    size_t at = entry ? owner_at(entry, owner, &there) : 0;
    text_free(&text);
    if (removed)
        *removed = there;
    if (!there)
        return DOPPEL_OK;
    owner_remove(entry, at);
    index->owners--;
    index->live -= !entry->owner_count;
    if (index->count > 2 * index->live + FEW_REMOVED)
        rebuild(index);
    return DOPPEL_OK;
}

/* ---- finding ---- */

/* CANDIDATES: entries that wait for the filter while they are prefetched. AHEAD: lookups in progress at once. A lookup
 * costs about as much as filtering two entries. */
enum { CANDIDATES = 1024, AHEAD = 24, PROBE_COST = 2 };

struct title_probe {
    uint32_t hash, limit;
};

struct title_candidate {
    uint32_t entry, limit; /* the largest sum of differences of bags */
};

/* Scratch memory of a find, kept for the next one. */
struct dp_titles_work {
    title_text text;
    uint8_t bag[32];
    uint32_t from;      /* entries before it do not count */
    bool ownerless;     /* titles without an owner count */
    bool more;          /* of a look ahead: there are lengths left, */
    size_t next_length; /* from this one on */
    struct title_probe *probes;
    size_t probe_count, probe_capacity;
    struct title_candidate candidates[CANDIDATES];
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

static unsigned bag_difference(const uint8_t *a, const uint8_t *b) {
    unsigned sum = 0;
    for (int i = 0; i < 32; i++)
        sum += (unsigned)abs(a[i] - b[i]);
    return sum;
}

/* Filters the waiting candidates. */
static bool filter(const dp_titles_index *index, struct dp_titles_work *work) {
    if (!dp_reserve(&work->near, &work->near_capacity, 2 * (work->near_count + work->candidate_count),
                    sizeof *work->near))
        return false;
    for (size_t i = 0; i < work->candidate_count; i++) {
        struct title_candidate candidate = work->candidates[i];
        const title_entry *entry = &index->entries[candidate.entry];
        if (candidate.entry >= work->from && (entry->owner_count || work->ownerless) &&
            bag_difference(entry->bag, work->bag) <= candidate.limit)
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
        work->candidates[work->candidate_count++] = (struct title_candidate){entries[i], limit};
    }
    return true;
}

static ptrdiff_t larger(ptrdiff_t a, ptrdiff_t b) {
    return a > b ? a : b;
}

static ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b) {
    return a < b ? a : b;
}

/* Adds the places where segment i of a group's titles can be in the text, within distance d. */
static void note_segment(const dp_titles_index *index, struct dp_titles_work *work, const title_group *group, size_t i,
                         size_t d) {
    size_t start = group->cuts.at[i], size = group->cuts.at[i + 1] - start;
    ptrdiff_t longer = (ptrdiff_t)work->text.points.count - (ptrdiff_t)group->length;
    ptrdiff_t before = (ptrdiff_t)i, after = (ptrdiff_t)(d - i);
    ptrdiff_t last = (ptrdiff_t)work->text.points.count - (ptrdiff_t)size;
    ptrdiff_t low = larger((ptrdiff_t)start + larger(-before, longer - after), 0);
    ptrdiff_t high = smaller((ptrdiff_t)start + smaller(before, longer + after), last);
    uint64_t power = power_of(index->base, size), seed = seed_of(index, group->length, group->cuts.version, i);
    for (ptrdiff_t at = low; at <= high; at++) {
        uint32_t hash = segment_hash(work->text.sums, (size_t)at, (size_t)at + size, power, seed);
        work->probes[work->probe_count++] = (struct title_probe){hash, (uint32_t)(2 * d)};
    }
}

/* At most this many lookups find all titles of a group within distance d: the sum over i of the smaller of 2 i + 1 and
 * 2 (d - i) + 1. */
static size_t most_probes(size_t d) {
    return d * d / 2 + d + 1;
}

/* Entries of a group from `from` on: they are the last. */
static size_t count_from(const title_group *group, uint32_t from) {
    size_t first = from ? group->count : 0;
    while (first && group->entries[first - 1] >= from)
        first--;
    return group->count - first;
}

/* The titles of a group, which may be within distance d, are looked up later, or all of them that count are
 * candidates. */
static bool visit_group(const dp_titles_index *index, struct dp_titles_work *work, const title_group *group, size_t d) {
    size_t count = count_from(group, work->from);
    if (!group->segments || count < PROBE_COST * most_probes(d))
        return add_candidates(index, work, group->entries + group->count - count, count,
                              (uint32_t)(d < 1u << 30 ? 2 * d : UINT32_MAX));
    if (!dp_reserve(&work->probes, &work->probe_capacity, work->probe_count + most_probes(d), sizeof *work->probes))
        return false;
    for (size_t i = 0; i <= d; i++)
        note_segment(index, work, group, i, d);
    return true;
}

static bool look_up(const dp_titles_index *index, struct dp_titles_work *work) {
    const struct title_probe *probes = work->probes;
    for (size_t i = 0; i < work->probe_count + AHEAD; i++) {
        if (i < work->probe_count)
            __builtin_prefetch(&index->table.slots[home_of(&index->table, probes[i].hash)]);
        if (i < AHEAD)
            continue;
        uint32_t one;
        size_t count;
        const uint32_t *found = table_get(&index->table, probes[i - AHEAD].hash, &one, &count);
        if (!add_candidates(index, work, found, count, probes[i - AHEAD].limit))
            return false;
    }
    return true;
}

/* Goes through the lengths that a similar enough title can have, from work->next_length on, until there are enough
 * places to look up; work->more: lengths are left. */
static bool collect(const dp_titles_index *index, struct dp_titles_work *work, size_t enough) {
    size_t length = work->text.points.count, allowed;
    work->probe_count = work->candidate_count = work->near_count = 0;
    work->more = false;
    if (!dp_edit_allowed(length, index->min, &allowed))
        return true;
    for (size_t at = group_at(index, work->next_length); at < index->group_count; at++) {
        const title_group *group = index->groups[at];
        if (group->length > length &&
            (!dp_edit_allowed(group->length, index->min, &allowed) || group->length - length > allowed))
            break;
        if (work->probe_count + work->candidate_count >= enough) {
            work->more = true;
            work->next_length = group->length;
            break;
        }
        if (!visit_group(index, work, group, allowed))
            return false;
    }
    if (!look_up(index, work) || !filter(index, work))
        return false;
    if (work->near_count) {
        dp_sort64(work->near, work->near_count, work->near + work->near_count);
        work->near_count = dp_unique64(work->near, work->near_count);
    }
    return true;
}

static doppel_status measure(const dp_titles_index *index, dp_title_matches *matches, uint32_t number) {
    struct dp_titles_work *work = matches->work;
    const title_entry *entry = &index->entries[number];
    size_t length = work->text.points.count > entry->length ? work->text.points.count : entry->length;
    size_t allowed, distance;
    if (!dp_edit_allowed(length, index->min, &allowed))
        return DOPPEL_OK;
    if (!dp_reserve(&work->other, &work->other_capacity, (size_t)entry->length + 1, sizeof *work->other) ||
        !dp_reserve(&matches->match, &matches->capacity, matches->count + 1, sizeof *matches->match))
        return DOPPEL_ERROR_MEMORY;
    unpack(entry, work->other);
    doppel_status status =
        dp_levenshtein(work->text.points, (dp_points){work->other, entry->length}, allowed, &distance);
    if (!status && distance <= allowed)
        matches->match[matches->count++] = (dp_title_match){.similarity = dp_edit_similarity(distance, length),
                                                            .owners = owners_of(entry),
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

/* Memory and the title, for a find or a look ahead. */
static doppel_status begin_find(const dp_titles_index *index, const char *title, size_t length,
                                dp_title_matches *matches) {
    size_t allowed;
    matches->count = 0;
    matches->measured = matches->candidates = 0;
    if (!matches->work && !(matches->work = calloc(1, sizeof *matches->work)))
        return DOPPEL_ERROR_MEMORY;
    struct dp_titles_work *work = matches->work;
    DP_TRY(text_init(&work->text, index, title, length));
    dp_title_letters(work->text.points, work->bag);
    work->from = 0;
    work->ownerless = false;
    work->filtered = 0;
    size_t points = work->text.points.count;
    work->next_length = dp_edit_allowed(points, index->min, &allowed) ? points - allowed : points;
    return DOPPEL_OK;
}

static doppel_status measure_near(const dp_titles_index *index, dp_title_matches *matches) {
    const struct dp_titles_work *work = matches->work;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < work->near_count && !status; i++)
        status = measure(index, matches, (uint32_t)work->near[i]);
    matches->candidates = work->filtered;
    matches->measured += work->near_count;
    return status;
}

/* ---- ahead of time ----
 *
 * Entries keep their numbers, and new ones get larger numbers, until everything is rebuilt: then the version changes,
 * and what was found ahead does not count. A title may lose its owners and get others. */

struct dp_titles_near {
    double similarity;
    uint32_t entry;
};

/* Look-ups and candidates of a step: some microseconds. */
enum { STEP = 64 };

void dp_titles_ahead_free(dp_titles_ahead *ahead) {
    free(ahead->near);
    *ahead = (dp_titles_ahead){0};
}

doppel_status dp_titles_ahead_begin(const dp_titles_index *index, const char *title, size_t length,
                                    dp_title_matches *matches, dp_titles_ahead *ahead) {
    *ahead = (dp_titles_ahead){0};
    DP_TRY(begin_find(index, title, length, matches));
    matches->work->ownerless = true;
    ahead->version = index->version;
    ahead->entries = (uint32_t)index->count;
    return DOPPEL_OK;
}

bool dp_titles_ahead_step(const dp_titles_index *index, dp_title_matches *matches, dp_titles_ahead *ahead) {
    if (index->version != ahead->version || !collect(index, matches->work, STEP) || measure_near(index, matches)) {
        ahead->version = 0;
        return false;
    }
    return matches->work->more;
}

void dp_titles_ahead_end(dp_title_matches *matches, dp_titles_ahead *ahead) {
    text_free(&matches->work->text);
    if (!ahead->version || !matches->count)
        return;
    if (!(ahead->near = malloc(matches->count * sizeof *ahead->near))) {
        ahead->version = 0;
        return;
    }
    for (size_t i = 0; i < matches->count; i++)
        if (matches->match[i].entry < ahead->entries)
            ahead->near[ahead->count++] =
                (struct dp_titles_near){matches->match[i].similarity, matches->match[i].entry};
}

/* Turns what was found ahead into the current result. */
static doppel_status take_ahead(const dp_titles_index *index, const dp_titles_ahead *ahead, dp_title_matches *matches) {
    if (!dp_reserve(&matches->match, &matches->capacity, matches->count + ahead->count, sizeof *matches->match))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < ahead->count; i++) {
        const title_entry *entry = &index->entries[ahead->near[i].entry];
        if (entry->owner_count)
            matches->match[matches->count++] = (dp_title_match){.similarity = ahead->near[i].similarity,
                                                                .owners = owners_of(entry),
                                                                .owner_count = entry->owner_count,
                                                                .entry = ahead->near[i].entry};
    }
    return DOPPEL_OK;
}

doppel_status dp_titles_index_find_after(const dp_titles_index *index, const char *title, size_t length,
                                         const dp_titles_ahead *ahead, dp_title_matches *matches) {
    bool counts = ahead && ahead->version == index->version;
    DP_TRY(begin_find(index, title, length, matches));
    struct dp_titles_work *work = matches->work;
    work->from = counts ? ahead->entries : 0;
    doppel_status status = collect(index, work, SIZE_MAX) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    DP_THEN(status, measure_near(index, matches));
    if (status == DOPPEL_OK && counts)
        status = take_ahead(index, ahead, matches);
    text_free(&work->text);
    if (status)
        matches->count = 0;
    else if (matches->count > 1)
        qsort(matches->match, matches->count, sizeof *matches->match, compare_matches);
    return status;
}

doppel_status dp_titles_index_find(const dp_titles_index *index, const char *title, size_t length,
                                   dp_title_matches *matches) {
    return dp_titles_index_find_after(index, title, length, NULL, matches);
}
