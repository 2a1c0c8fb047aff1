/* titles_store.h - what the title index is made of; inside titles*.c.
 *
 * An entry is a distinct title. Entries of one length form a group, which says into how many segments a title of that
 * length is cut. A table (titles_table.c) leads from the hash of (length, number of the segment, its code points) to
 * the entries that have this segment, and from the hash of the whole title to the entry itself. */
#ifndef DP_TITLES_STORE_H
#define DP_TITLES_STORE_H

#include "index/titles.h"
#include "verify/verify.h"

/* ---- the table: titles_table.c ---- */

/* Empty slots have value 0; else the entry's number + 1, or, with the top bit, where its list starts. */
typedef struct dp_titles_slot {
    uint32_t hash, value;
} dp_titles_slot;

enum { DP_TITLES_CLASSES = 31 };

typedef struct dp_titles_table {
    dp_titles_slot *slots; /* ascending by hash, empty ones between them */
    size_t size, used;
    uint32_t *words; /* of lists */
    size_t word_count, word_capacity;
    uint32_t free[DP_TITLES_CLASSES]; /* blocks of 2^class words that are not used; 0: none */
} dp_titles_table;

void dp_titles_table_free(dp_titles_table *table);
/* Makes sure that `count` more keys, at most 128, find a place. */
bool dp_titles_table_reserve(dp_titles_table *table, size_t count);
/* Adds an entry under a hash; there must be a place. False: no memory. */
bool dp_titles_table_add(dp_titles_table *table, uint32_t hash, uint32_t entry);

/* The entries under a hash, *count of them; they stay where they are until the table changes. `one` is room for one. */
const uint32_t *dp_titles_table_get(const dp_titles_table *table, uint32_t hash, uint32_t *one, size_t *count);

/* Where a hash would stand in an otherwise empty table. */
static inline size_t dp_titles_home(const dp_titles_table *table, uint32_t hash) {
    return (size_t)((unsigned __int128)hash * table->size >> 32);
}

/* ---- entries and groups: titles_store.c ---- */

/* What a candidate is filtered by stands together. */
typedef struct dp_titles_entry {
    uint8_t bag[32];
    uint32_t length, owner_count; /* no owner: the title was removed */
    const char *points;           /* `width` bytes each */
    union {
        uint64_t one;   /* owner_count is 1 */
        uint64_t *many; /* ascending; room for a power of two */
    } owners;
    uint8_t width;
    uint32_t skipped; /* so many before the first of `many` were removed */
} dp_titles_entry;

/* Lengths whose titles would be cut into more segments, or into shorter ones, are compared one by one. At 90 % these
 * are those over about 500 code points: the look-ups grow with the third power of the segments. */
enum { DP_TITLES_SEGMENTS = 57, DP_TITLES_SHORTEST = 2 };

/* Where the segments of a length start, and last the length. Other cuts of one length have another version. */
typedef struct dp_titles_cuts {
    uint32_t version, at[DP_TITLES_SEGMENTS + 1];
} dp_titles_cuts;

typedef struct dp_titles_group {
    uint32_t length, segments; /* 0: none */
    dp_titles_cuts cuts;
    uint32_t versions; /* so many were tried */
    size_t recut_at;   /* with so many entries, cuts are chosen anew */
    uint32_t *entries;
    size_t count, capacity;
} dp_titles_group;

struct dp_titles_index {
    double min;
    uint64_t secret, base; /* of all hashes, so that nobody can choose which are alike */
    dp_titles_table table;
    dp_titles_entry *entries;
    size_t count, capacity, live;
    dp_titles_group **groups; /* ascending by length */
    size_t group_count, group_capacity;
    char **blocks; /* the code points of all titles */
    size_t block_count, block_capacity;
    char *room; /* what is left of the last block */
    size_t room_left;
    uint64_t owners, bytes; /* bytes: of the blocks */
};

/* Texts are hashed by sums: sums[0] is 0, and each is the last times the base plus the next code point plus 1, modulo a
 * prime. So any part of a text can be hashed at once. The base is a secret: two texts of n code points have one sum for
 * at most n of the 2^61 bases. Modulo 2^64 there are texts that meet whatever the base is. */
#define DP_TITLES_PRIME (((uint64_t)1 << 61) - 1)

/* The product of two numbers below the prime. */
static inline uint64_t dp_titles_times(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    uint64_t x = ((uint64_t)product & DP_TITLES_PRIME) + (uint64_t)(product >> 61);
    return x >= DP_TITLES_PRIME ? x - DP_TITLES_PRIME : x;
}

/* The sum with one code point more. */
static inline uint64_t dp_titles_next(uint64_t base, uint64_t sum, uint32_t point) {
    uint64_t x = dp_titles_times(sum, base) + point + 1;
    return x >= DP_TITLES_PRIME ? x - DP_TITLES_PRIME : x;
}

/* base^length, as dp_titles_part needs it. */
static inline uint64_t dp_titles_power(uint64_t base, size_t length) {
    uint64_t power = 1;
    for (; length; length >>= 1, base = dp_titles_times(base, base))
        if (length & 1)
            power = dp_titles_times(power, base);
    return power;
}

/* The sum of the part of a text from `start` to `end`; `power` is that of the part's length. */
static inline uint64_t dp_titles_part(const uint64_t *sums, size_t start, size_t end, uint64_t power) {
    uint64_t x = sums[end] + DP_TITLES_PRIME - dp_titles_times(sums[start], power);
    return x >= DP_TITLES_PRIME ? x - DP_TITLES_PRIME : x;
}

/* The hash of that part as segment `number` of a title of some length. Equal parts give equal hashes; unlike ones
 * seldom do, which costs a comparison and nothing else. */
static inline uint32_t dp_titles_hash(const uint64_t *sums, size_t start, size_t end, uint64_t power, uint64_t seed) {
    uint64_t x = dp_titles_part(sums, start, end, power) ^ seed;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(x >> 32);
}

/* Versions are few: each comes with four times the entries. */
static inline uint64_t dp_titles_seed(const dp_titles_index *index, size_t length, uint32_t version, size_t number) {
    return ((uint64_t)length << 32 | version << 8 | number) * 0xA0761D6478BD642Fu ^ index->secret;
}

/* The number of the segment that is the whole. */
enum { DP_TITLES_WHOLE = 255 };

/* ---- groups: titles_groups.c ---- */

/* The first group of at least this length. */
size_t dp_titles_group_at(const dp_titles_index *index, size_t length);

/* The group of a length, with room for one more entry; NULL: no memory. */
dp_titles_group *dp_titles_group_for(dp_titles_index *index, size_t length);
void dp_titles_group_free(dp_titles_group *group);

/* Chooses the cuts of a group anew, if others are much better; without the memory for that, all stays as it is. */
void dp_titles_group_recut(dp_titles_index *index, dp_titles_group *group);

/* Puts an entry of a group into the table under each of its segments by these cuts; there must be a place. False: no
 * memory. */
bool dp_titles_add_segments(dp_titles_index *index, const dp_titles_group *group, const dp_titles_cuts *cuts,
                            uint32_t number, const uint64_t *sums);

/* ---- entries ---- */

/* The hash of a whole title. */
uint32_t dp_titles_whole(const dp_titles_index *index, const uint64_t *sums, size_t length);

/* The entry of a title; NULL: there is none. */
dp_titles_entry *dp_titles_entry_get(const dp_titles_index *index, dp_points text, const uint64_t *sums);

/* A new entry, without owners; NULL: no memory. */
dp_titles_entry *dp_titles_entry_add(dp_titles_index *index, dp_points text, const uint64_t *sums);

/* Writes the code points of an entry to `to`. */
void dp_titles_unpack(const dp_titles_entry *entry, uint32_t *to);

/* Ascending, as many as owner_count says. */
const uint64_t *dp_titles_owners(const dp_titles_entry *entry);

/* A title's code points and their sums; a short one needs no allocation. */
typedef struct dp_titles_text {
    dp_points points;
    uint64_t *sums;
    uint32_t *data; /* of points */
    void *room;
    uint64_t base; /* of the index */
    uint64_t here[768];
} dp_titles_text;

/* Room for a title of so many bytes or code points, to be looked for in an index. */
bool dp_titles_text_room(dp_titles_text *text, const dp_titles_index *index, size_t length);
/* From UTF-8. Errors: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_INPUT when it is too long. */
doppel_status dp_titles_text_init(dp_titles_text *text, const dp_titles_index *index, const char *title, size_t length);
/* From an entry that there is room for. */
void dp_titles_text_load(dp_titles_text *text, const dp_titles_entry *entry);
void dp_titles_text_free(dp_titles_text *text);

#endif
