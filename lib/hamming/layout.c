/* layout.c - layouts by name, and the order in which a table sees the bits.
 *
 * dp_layout_parse -> dp_layout_arrange, dp_layout_restore. plan.c chooses a layout; costs.c says which radii make it
 * exact.
 *
 * Kinds of layouts, all lists of tables with a key each:
 *
 *     4x16        the bits are cut into 4 blocks; a table for each, its key the top 16 bits of the block
 *     5c2x26      ... into 5 blocks; a table for every 2 of them, its key the top 26 bits of the two put together
 *     4x16+4x12   ... into 4 blocks, keys of 16 bits; what is not in that key is cut into 4 blocks, keys of 12 bits; a
 *                 table for each of the 16 choices, its key both together
 *     scan        one table without a key
 *
 * Blocks are as even as can be, wider ones first, the first at the top. A key asks for at most as many bits as its
 * blocks have. Table 0 takes the top bits in every kind, so its order is the order of the numbers. */
#include "hamming/hamming.h"

/* The cuts of one level. */
typedef struct cut_level {
    int blocks, choose, key;
} cut_level;

/* ---- cutting ---- */

/* Block `i` of `blocks` even ones of the bits 0 .. width - 1, the first at the top. */
static dp_cut block_of(int width, int blocks, int i) {
    int small = width / blocks, wide = width % blocks;
    int above = i * small + (i < wide ? i : wide);
    int own = small + (i < wide);
    return (dp_cut){(uint8_t)(width - above - own), (uint8_t)own};
}

static dp_bits mask_of(dp_cut cut) {
    dp_bits ones = cut.width == 128 ? ~(dp_bits)0 : ((dp_bits)1 << cut.width) - 1;
    return ones << cut.from;
}

/* Appends a cut; one that continues the last becomes a part of it. */
static void add_cut(dp_table_layout *table, int from, int width) {
    dp_cut *last = table->cuts ? &table->cut[table->cuts - 1] : NULL;
    if (last && from + width == last->from) {
        last->from = (uint8_t)from;
        last->width = (uint8_t)(last->width + width);
    } else if (width) {
        table->cut[table->cuts++] = (dp_cut){(uint8_t)from, (uint8_t)width};
    }
}

/* Appends the bits of `mask` from the highest to the lowest, at most `most` of them; returns those it took. */
static dp_bits add_bits(dp_table_layout *table, dp_bits mask, int most) {
    dp_bits taken = 0;
    for (int bit = 127; bit >= 0 && most > 0; bit--)
        if (mask >> bit & 1) {
            add_cut(table, bit, 1);
            taken |= (dp_bits)1 << bit;
            most--;
        }
    return taken;
}

/* Spreads the low bits of `value` over the bits of `mask`: bit i goes to the i-th lowest of them. */
static dp_bits spread(dp_bits value, dp_bits mask) {
    dp_bits out = 0;
    for (int bit = 0; bit < 128; bit++)
        if (mask >> bit & 1) {
            out |= (value & 1) << bit;
            value >>= 1;
        }
    return out;
}

static dp_bits all_bits(int bits) {
    return mask_of((dp_cut){0, (uint8_t)bits});
}

/* Adds a table whose key is the top most[0] bits of keys[0], then the top most[1] bits of keys[1]. */
static void add_table(dp_layout *layout, const dp_bits keys[2], const int most[2]) {
    dp_table_layout *table = &layout->table[layout->tables++];
    *table = (dp_table_layout){0};
    for (int i = 0; i < 2; i++)
        table->key_mask |= add_bits(table, keys[i], most[i]);
    table->key_bits = dp_bits_count(table->key_mask);
    add_bits(table, all_bits(layout->bits) & ~table->key_mask, layout->bits);
}

/* The next choice of blocks after `chosen` (ascending) of `blocks`, in the order of dictionaries; false: there is
 * none. */
static bool next_choice(int *chosen, int choose, int blocks) {
    int i = choose - 1;
    while (i >= 0 && chosen[i] == blocks - choose + i)
        i--;
    if (i < 0)
        return false;
    chosen[i]++;
    for (int j = i + 1; j < choose; j++)
        chosen[j] = chosen[j - 1] + 1;
    return true;
}

static void cut_choices(dp_layout *layout, const cut_level *level) {
    int chosen[DP_MAX_TABLES];
    for (int i = 0; i < level->choose; i++)
        chosen[i] = i;
    do {
        dp_bits key = 0;
        for (int i = 0; i < level->choose; i++)
            key |= mask_of(block_of(layout->bits, level->blocks, chosen[i]));
        add_table(layout, (dp_bits[2]){key, 0}, (int[2]){level->key, 0});
    } while (next_choice(chosen, level->choose, level->blocks));
}

static void cut_two_levels(dp_layout *layout, const cut_level levels[2]) {
    for (int i = 0; i < levels[0].blocks; i++) {
        dp_cut block = block_of(layout->bits, levels[0].blocks, i);
        int width = block.width < levels[0].key ? block.width : levels[0].key;
        dp_bits first = mask_of((dp_cut){(uint8_t)(block.from + block.width - width), (uint8_t)width});
        dp_bits rest = all_bits(layout->bits) & ~first;
        for (int j = 0; j < levels[1].blocks; j++) {
            dp_bits second = spread(mask_of(block_of(layout->bits - width, levels[1].blocks, j)), rest);
            add_table(layout, (dp_bits[2]){first, second}, (int[2]){width, levels[1].key});
        }
    }
}

/* ---- names ---- */

static bool take_number(const char **at, int *number) {
    int value = 0, digits = 0;
    for (; **at >= '0' && **at <= '9' && digits < 4; digits++)
        value = value * 10 + *(*at)++ - '0';
    *number = value;
    return digits && digits < 4;
}

static bool take_level(const char **at, cut_level *level) {
    level->choose = 1;
    if (!take_number(at, &level->blocks))
        return false;
    if (**at == 'c') {
        ++*at;
        if (!take_number(at, &level->choose))
            return false;
    }
    return *(*at)++ == 'x' && take_number(at, &level->key);
}

/* The levels of a name; 0: it is no name of a layout. */
static int take_levels(const char *name, cut_level levels[2]) {
    const char *at = name;
    if (strlen(name) >= sizeof((dp_layout *)0)->name || !take_level(&at, &levels[0]))
        return 0;
    if (!*at)
        return 1;
    if (*at++ != '+' || levels[0].choose > 1 || !take_level(&at, &levels[1]) || *at || levels[1].choose > 1)
        return 0;
    return 2;
}

/* Whether a level can cut `bits` bits. */
static doppel_status check_level(const char *name, const cut_level *level, int bits, doppel_error *error) {
    if (level->blocks < 1 || level->blocks > bits)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "layout \"%s\": %d bits can be cut into 1 to %d blocks, not %d", name,
                       bits, bits, level->blocks);
    if (level->choose < 1 || level->choose > level->blocks)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "layout \"%s\": a key can take 1 to %d of %d blocks, not %d", name,
                       level->blocks, level->blocks, level->choose);
    if (level->key < 1 || level->key > DP_MAX_KEY)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "layout \"%s\": a key can have 1 to %d bits, not %d", name,
                       DP_MAX_KEY, level->key);
    if (dp_choices(level->blocks, level->choose) > DP_MAX_TABLES)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "layout \"%s\": more than %d tables", name, DP_MAX_TABLES);
    return DOPPEL_OK;
}

static doppel_status check_two_levels(const char *name, const cut_level levels[2], int bits, doppel_error *error) {
    int wide = (bits + levels[0].blocks - 1) / levels[0].blocks;
    int left = bits - (wide < levels[0].key ? wide : levels[0].key);
    if (left < 1)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "layout \"%s\": the first level leaves no bits to the second", name);
    DP_TRY(check_level(name, &levels[1], left, error));
    if (levels[0].blocks * levels[1].blocks > DP_MAX_TABLES)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "layout \"%s\": more than %d tables", name, DP_MAX_TABLES);
    if (levels[0].key + levels[1].key > DP_MAX_KEY)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "layout \"%s\": a key can have at most %d bits in both levels", name,
                       DP_MAX_KEY);
    return DOPPEL_OK;
}

doppel_status dp_layout_parse(const char *name, int bits, dp_layout *layout, doppel_error *error) {
    cut_level levels[2] = {{0}};
    *layout = (dp_layout){.bits = bits, .blocks = 1, .choose = 1};
    if (!strcmp(name, "scan")) {
        strcpy(layout->name, name);
        add_table(layout, (dp_bits[2]){0, 0}, (int[2]){0, 0});
        return DOPPEL_OK;
    }
    int count = take_levels(name, levels);
    if (!count)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "there is no layout \"%s\": a layout is such as 4x16, 5c2x26, 4x16+4x12 or scan", name);
    DP_TRY(check_level(name, &levels[0], bits, error));
    if (count == 2)
        DP_TRY(check_two_levels(name, levels, bits, error));
    strcpy(layout->name, name);
    layout->blocks = levels[0].blocks;
    layout->choose = levels[0].choose;
    if (count == 2)
        cut_two_levels(layout, levels);
    else
        cut_choices(layout, levels);
    return DOPPEL_OK;
}

/* ---- a table's order ---- */

dp_bits dp_layout_arrange(const dp_table_layout *table, dp_bits value) {
    dp_bits arranged = 0;
    if (table->cuts == 1)
        return value;
    for (int i = 0; i < table->cuts; i++) {
        dp_cut cut = table->cut[i];
        arranged = arranged << cut.width | (value >> cut.from & (((dp_bits)1 << cut.width) - 1));
    }
    return arranged;
}

dp_bits dp_layout_restore(const dp_table_layout *table, dp_bits arranged) {
    dp_bits value = 0;
    if (table->cuts == 1)
        return arranged;
    for (int i = table->cuts - 1; i >= 0; i--) {
        dp_cut cut = table->cut[i];
        value |= (arranged & (((dp_bits)1 << cut.width) - 1)) << cut.from;
        arranged >>= cut.width;
    }
    return value;
}
