/* generate_unicode.c - writes unicode_table.h: for each code point, what it becomes and how it behaves, for case folded
 * and case kept, in two steps: a block of 128 code points, then its entry. Equal blocks are written once.
 *
 * Usage: generate_unicode > unicode_table.h */
#include "text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

#define BLOCK DP_TABLE_BLOCK
#define BLOCKS (0x110000 / BLOCK)

static int32_t pool[2 * BLOCKS][BLOCK];
static uint16_t rows[2][BLOCKS];
static size_t pooled;

/* Second halves of canonical compositions, as they are found by decomposing everything that composes again. */
static bool second_half[0x110000];

static size_t decompose(int32_t c, int options, int32_t *out) {
    int boundary = 0;
    utf8proc_ssize_t made = utf8proc_decompose_char(c, out, DP_PIECE_NORMALISED, (utf8proc_option_t)options, &boundary);
    return made > 0 ? (size_t)made : 0;
}

static void find_second_halves(void) {
    for (int32_t c = 0; c < 0x110000; c++) {
        int32_t parts[DP_PIECE_NORMALISED], whole[DP_PIECE_NORMALISED];
        size_t made = decompose(c, UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, parts);
        memcpy(whole, parts, made * sizeof *parts);
        utf8proc_option_t options = (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        if (made < 2 || utf8proc_normalize_utf32(whole, (utf8proc_ssize_t)made, options) != 1)
            continue;
        for (size_t i = 1; i < made; i++)
            second_half[parts[i]] = true;
    }
}

static bool joins_itself(int32_t c) {
    return dp_combining_class(c) || second_half[c];
}

static bool first_joins(int32_t c, int options) {
    int32_t parts[DP_PIECE_NORMALISED];
    return decompose(c, options, parts) && joins_itself(parts[0]);
}

/* Whether c can join what precedes it (docs/FORMAT.md section 1, step 2). */
static bool joins(int32_t c, bool keep_case) {
    const int nfkd = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
    if (joins_itself(c) || first_joins(c, nfkd))
        return true;
    /* utf8proc folds and decomposes until nothing changes. */
    return !keep_case && first_joins(c, nfkd | UTF8PROC_CASEFOLD);
}

static int32_t entry(int32_t c, bool keep_case) {
    if (c >= 0xD800 && c < 0xE000)
        return DP_ENTRY_SLOW;
    int32_t out[DP_PIECE_NORMALISED];
    size_t made = dp_normalise(&c, 1, keep_case, out);
    int flags = joins(c, keep_case) ? DP_ENTRY_JOINS : 0;
    if (made != 1)
        return flags | DP_ENTRY_SLOW;
    /* Never changed, never composed: only its order among other marks matters. */
    if (flags && out[0] == c && dp_combining_class(c) && !second_half[c])
        flags |= DP_ENTRY_INERT;
    return (int32_t)((uint32_t)(out[0] - c) << DP_ENTRY_SHIFT) | flags | dp_code_point_class(out[0]);
}

static uint16_t pool_block(const int32_t *block) {
    for (size_t i = 0; i < pooled; i++)
        if (!memcmp(pool[i], block, sizeof pool[i]))
            return (uint16_t)i;
    memcpy(pool[pooled], block, sizeof pool[pooled]);
    return (uint16_t)pooled++;
}

static void make_tables(void) {
    for (int keep_case = 0; keep_case < 2; keep_case++)
        for (int32_t b = 0; b < BLOCKS; b++) {
            int32_t block[BLOCK];
            for (int32_t i = 0; i < BLOCK; i++)
                block[i] = entry(b * BLOCK + i, keep_case);
            rows[keep_case][b] = pool_block(block);
        }
}

static void print_tables(void) {
    printf("/* Made by generate_unicode.c, with Unicode %s. */\n", doppel_unicode_version());
    printf("#define DP_TABLE_UNICODE \"%s\"\n", doppel_unicode_version());
    printf("static const uint16_t dp_table_rows[2][%d] = {", BLOCKS);
    for (int keep_case = 0; keep_case < 2; keep_case++)
        for (int b = 0; b < BLOCKS; b++)
            printf("%s%d,", b % 32 ? "" : b ? "\n" : "{\n", rows[keep_case][b]), b == BLOCKS - 1 ? printf("},\n") : 0;
    printf("};\nstatic const int32_t dp_table_entries[%zu][%d] = {\n", pooled, BLOCK);
    for (size_t i = 0; i < pooled; i++)
        for (int k = 0; k < BLOCK; k++)
            printf("%s%d,%s", k ? "" : "{", pool[i][k], k == BLOCK - 1 ? "},\n" : k % 16 == 15 ? "\n" : "");
    printf("};\n");
}

/* A property the plain kernel relies on. */
static bool is_uniform(int32_t first, int32_t last) {
    for (int keep_case = 0; keep_case < 2; keep_case++)
        for (int32_t c = first; c <= last; c++)
            if (entry(c, keep_case) != entry(first, keep_case))
                return false;
    return true;
}

int main(void) {
    find_second_halves();
    if (!is_uniform(DP_HAN_FIRST, DP_HAN_LAST) || !is_uniform(DP_HANGUL_FIRST, DP_HANGUL_LAST)) {
        fprintf(stderr, "generate_unicode: Han or Hangul no longer behave alike: see DP_HAN_FIRST\n");
        return EXIT_FAILURE;
    }
    make_tables();
    print_tables();
    return fflush(stdout) || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
