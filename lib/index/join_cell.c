/* join_cell.c - takes the fingerprints of one key into the cache. In the first pass, where equal ones meet, each is
 * looked up in a hash table of what is there already: a copy is told, marked and left out. */
#include "index/join.h"

#include <stdlib.h>

/* What a number in a cell costs with all tables about it, beyond its own size: for the limit alone. */
enum { BYTES_BESIDE = 48 };

bool dp_cell_reserve(dp_joiner *joiner, dp_cell *cell, size_t need) {
    dp_join *join = joiner->join;
    if (need <= cell->capacity)
        return true;
    size_t capacity = cell->capacity ? cell->capacity : 1024;
    while (capacity < need)
        capacity += capacity / 2;
    uint64_t bytes = (uint64_t)capacity * (join->words * sizeof(uint64_t) + BYTES_BESIDE);
    if (bytes > join->memory) {
        doppel_error error;
        dp_fail(&error, DOPPEL_ERROR_USAGE,
                "too little memory: %zu fingerprints that share a key have to be held at once; %llu MiB would do", need,
                (unsigned long long)(bytes / 4 * 5 >> 20) + 1);
        return dp_join_fail(join, DOPPEL_ERROR_USAGE, &error);
    }
    uint64_t *values = realloc(cell->values, capacity * join->words * sizeof *values);
    if (values)
        cell->values = values;
    uint32_t *positions = realloc(cell->positions, capacity * sizeof *positions);
    if (positions)
        cell->positions = positions;
    if (!values || !positions)
        return dp_join_no_memory(join);
    cell->capacity = capacity;
    return true;
}

/* ---- the hash table of a cell ---- */

static size_t head_of(const dp_joiner *joiner, const uint64_t *value) {
    uint64_t mixed = value[0];
    if (joiner->join->words == 2)
        mixed ^= (value[1] << 32 | value[1] >> 32) * 0xC2B2AE3D27D4EB4F;
    return (size_t)((mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15 >> (64 - joiner->head_bits));
}

/* Makes the table fit for `count` numbers, at most half full, and puts those of the cell in. */
static bool rebuild_heads(dp_joiner *joiner, size_t count) {
    const dp_cell *cell = &joiner->cells[0];
    int bits = 8;
    while ((size_t)1 << bits < 2 * count)
        bits++;
    if ((size_t)1 << bits > joiner->head_capacity) {
        free(joiner->heads);
        joiner->head_capacity = 0;
        joiner->heads = dp_big_alloc(sizeof(uint32_t) << bits);
        if (!joiner->heads)
            return dp_join_no_memory(joiner->join);
        joiner->head_capacity = (size_t)1 << bits;
    }
    joiner->head_bits = bits;
    memset(joiner->heads, 0, sizeof(uint32_t) << bits);
    size_t mask = ((size_t)1 << bits) - 1, words = joiner->join->words;
    for (size_t i = 0; i < cell->count; i++) {
        size_t at = head_of(joiner, cell->values + i * words);
        while (joiner->heads[at])
            at = (at + 1) & mask;
        joiner->heads[at] = (uint32_t)i + 1;
    }
    return true;
}

static bool reserve_extra(dp_joiner *joiner, size_t need) {
    if (need <= joiner->extra_capacity)
        return true;
    size_t before = joiner->extra_capacity;
    if (!dp_reserve(&joiner->extra, &joiner->extra_capacity, need, sizeof *joiner->extra))
        return dp_join_no_memory(joiner->join);
    memset(joiner->extra + before, 0, (joiner->extra_capacity - before) * sizeof *joiner->extra);
    return true;
}

/* Room in the table for `more` numbers that may all be new. */
static bool reserve_distinct(dp_joiner *joiner, size_t more) {
    dp_cell *cell = &joiner->cells[0];
    size_t need = cell->count + more;
    if (!dp_cell_reserve(joiner, cell, need) || !reserve_extra(joiner, need))
        return false;
    return need <= (size_t)1 << joiner->head_bits >> 1 || rebuild_heads(joiner, 2 * need);
}

static inline bool equal(const uint64_t *a, const uint64_t *b, size_t words) {
    return a[0] == b[0] && (words == 1 || a[1] == b[1]);
}

/* Puts a number in, or finds the one that it copies. */
static inline bool add_distinct(dp_joiner *joiner, const uint64_t *value, uint32_t position, size_t words) {
    dp_cell *cell = &joiner->cells[0];
    size_t mask = ((size_t)1 << joiner->head_bits) - 1, at = head_of(joiner, value);
    for (; joiner->heads[at]; at = (at + 1) & mask) {
        uint32_t here = joiner->heads[at] - 1;
        if (equal(cell->values + here * words, value, words)) {
            joiner->extra[here]++;
            return dp_copy_add(joiner, cell->positions[here], position);
        }
    }
    joiner->heads[at] = (uint32_t)cell->count + 1;
    for (size_t w = 0; w < words; w++)
        cell->values[cell->count * words + w] = value[w];
    cell->positions[cell->count++] = position;
    return true;
}

/* ---- filling the cell ---- */

/* Before a cell of up to `count` numbers. Where most are copies a small table will do, so it starts small and grows. */
static bool begin(dp_joiner *joiner, size_t count) {
    enum { FIRST_MOST = 1 << 16 };
    joiner->cells[0].count = 0;
    joiner->cell_groups.count = 0;
    return joiner->join->pass > 0 || rebuild_heads(joiner, count < FIRST_MOST ? count : FIRST_MOST);
}

/* Behind it: what has copies becomes a group. */
static bool end(dp_joiner *joiner) {
    dp_join *join = joiner->join;
    const dp_cell *cell = &joiner->cells[0];
    size_t before = joiner->group_count;
    for (size_t i = 0; join->pass == 0 && i < cell->count; i++)
        if (joiner->extra[i]) {
            if (!dp_group_add(joiner, cell->positions[i], joiner->extra[i]))
                return false;
            joiner->extra[i] = 0;
        }
    if (joiner->group_count == before)
        return true;
    if (!dp_groups_reset(join, &joiner->cell_groups, joiner->group_count - before))
        return false;
    for (size_t i = before; i < joiner->group_count; i++)
        dp_groups_put(&joiner->cell_groups, joiner->groups[i]);
    return true;
}

static bool add(dp_joiner *joiner, const uint64_t *values, const uint32_t *positions, size_t count) {
    dp_cell *cell = &joiner->cells[0];
    size_t words = joiner->join->words;
    if (joiner->join->pass == 0) {
        for (size_t i = 0; i < count; i++)
            if (!add_distinct(joiner, values + i * words, positions[i], words))
                return false;
        return true;
    }
    memcpy(cell->values + cell->count * words, values, count * words * sizeof *values);
    memcpy(cell->positions + cell->count, positions, count * sizeof *positions);
    cell->count += count;
    return true;
}

static bool load_lines(dp_joiner *joiner, const dp_line *lines, size_t count) {
    enum { ONCE = 256 }; /* lines, between two looks at the room */
    bool wide = joiner->join->words == 2;
    for (size_t i = 0; i < count; i++) {
        size_t room = (count - i < ONCE ? count - i : ONCE) * DP_LINE_NARROW;
        if (i % ONCE == 0 &&
            !(joiner->join->pass ? dp_cell_reserve(joiner, &joiner->cells[0], joiner->cells[0].count + room)
                                 : reserve_distinct(joiner, room)))
            return false;
        const dp_line *line = &lines[i];
        if (!(wide ? add(joiner, line->wide.value[0], line->wide.position, line->wide.fill)
                   : add(joiner, line->narrow.value, line->narrow.position, line->narrow.fill)))
            return false;
    }
    return true;
}

bool dp_cell_load(dp_joiner *joiner, uint32_t key) {
    const dp_join *join = joiner->join;
    size_t lines = 0;
    for (size_t thread = 0; thread < join->threads; thread++)
        lines += join->ends[(thread << join->key_bits) + key] - join->starts[(thread << join->key_bits) + key];
    if (!begin(joiner, lines * DP_LINE_NARROW))
        return false;
    for (size_t thread = 0; thread < join->threads; thread++) {
        uint32_t from = join->starts[(thread << join->key_bits) + key],
                 to = join->ends[(thread << join->key_bits) + key];
        if (!load_lines(joiner, join->lines + from, to - from))
            return false;
    }
    return end(joiner);
}

/* Keeps those of the batch that have the key. */
static void keep_key(const dp_join *join, dp_batch *batch, uint32_t key) {
    int bits = dp_join_key_bits(join, join->pass),
        shift = join->block[join->pass].shift + join->block[join->pass].width - bits;
    size_t kept = 0, words = join->words;
    dp_bits mask = ((dp_bits)1 << bits) - 1;
    for (size_t i = 0; i < batch->count; i++) {
        dp_bits value = dp_bits_load(batch->values + i * words, join->bits);
        for (size_t w = 0; w < words; w++)
            batch->values[kept * words + w] = batch->values[i * words + w];
        batch->positions[kept] = batch->positions[i];
        kept += (value >> shift & mask) == key;
    }
    batch->count = kept;
}

bool dp_cell_feed(dp_joiner *joiner, uint32_t key) {
    dp_join *join = joiner->join;
    dp_batch *batch = &joiner->batch;
    if (!begin(joiner, DP_BATCH))
        return false;
    dp_batch_start(batch, 0, join->count);
    while (dp_batch_next(joiner)) {
        size_t count = batch->count;
        if (join->blocks)
            keep_key(join, batch, key);
        if (!(join->pass ? dp_cell_reserve(joiner, &joiner->cells[0], joiner->cells[0].count + batch->count)
                         : reserve_distinct(joiner, batch->count)))
            return false;
        if (!add(joiner, batch->values, batch->positions, batch->count) ||
            !dp_join_advance(joiner, join->blocks ? 0 : count))
            return false;
    }
    return !atomic_load(&join->status) && end(joiner);
}
