/* kernel.h - the inner loops, each as portable C and as variants for CPU levels.
 *
 * A file holds the kernels of one subject, each with portable C first, variants below it by target attribute, and one
 * list dp_NAME_variants[] of {name, needs, run}, best first, ended by the portable one (needs 0). The list feeds the
 * dispatch, the tests (every variant against the last) and the benchmarks. dp_NAME_kernel() gives the best variant for
 * this CPU. */
#ifndef DP_KERNEL_H
#define DP_KERNEL_H

#include "base/base.h"

/* Declares the variants of a kernel: DP_KERNEL(thing, size_t, (const char *p, size_t n)) gives the type dp_thing_fn,
 * the list dp_thing_variants and the chooser dp_thing_kernel(). */
#define DP_KERNEL(kernel, result, arguments)                     \
    typedef result(*dp_##kernel##_fn) arguments;                 \
    typedef struct dp_##kernel##_variant {                       \
        const char *name;                                        \
        int needs;                                               \
        dp_##kernel##_fn run;                                    \
    } dp_##kernel##_variant;                                     \
    extern const dp_##kernel##_variant dp_##kernel##_variants[]; \
    dp_##kernel##_fn dp_##kernel##_kernel(void);

/* Defines the list and the chooser: DP_KERNEL_LIST(thing, DP_AVX2(thing_avx2) DP_PORTABLE(thing_portable)). The choice
 * is made once; two racing threads choose the same. */
#define DP_KERNEL_LIST(kernel, ...)                                                 \
    const dp_##kernel##_variant dp_##kernel##_variants[] = {__VA_ARGS__};           \
    dp_##kernel##_fn dp_##kernel##_kernel(void) {                                   \
        static _Atomic(dp_##kernel##_fn) chosen;                                    \
        dp_##kernel##_fn run = atomic_load_explicit(&chosen, memory_order_relaxed); \
        if (run)                                                                    \
            return run;                                                             \
        const dp_##kernel##_variant *variant = dp_##kernel##_variants;              \
        while (variant->needs > dp_cpu_level())                                     \
            variant++;                                                              \
        atomic_store_explicit(&chosen, variant->run, memory_order_relaxed);         \
        return variant->run;                                                        \
    }

/* Entries of the list; those of other processors are empty. */
#define DP_PORTABLE(run) {"portable", DP_CPU_PORTABLE, run},
#if defined(__x86_64__)
#define DP_AVX2(run) {"avx2", DP_CPU_AVX2, run},
#define DP_AVX512(run) {"avx512", DP_CPU_AVX512, run},
#else
#define DP_AVX2(run)
#define DP_AVX512(run)
#endif
#if defined(__aarch64__)
#define DP_NEON(run) {"neon", DP_CPU_NEON, run},
#else
#define DP_NEON(run)
#endif

/* Target attributes of the levels. */
#define DP_TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define DP_TARGET_AVX512                                                                                    \
    __attribute__((target("avx2,bmi,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2," \
                          "avx512bitalg,avx512vpopcntdq")))

/* ---- text: text.c ---- */

/* What the ascii kernel keeps between calls. */
enum { DP_ASCII_STAYS, DP_ASCII_SPACE, DP_ASCII_UPPER };
typedef struct dp_ascii_state {
    uint8_t map[128];    /* what each ASCII byte becomes: itself, its lower case, a space, or 0: dropped */
    uint8_t rows[3][16]; /* the same as sets, by dp_ascii_prepare: bit h of row l is byte 16 h + l */
    bool at_space;       /* the last byte kept was a space, or there was none: spaces are dropped */
    size_t used;         /* out: how much of the input was read */
} dp_ascii_state;

/* Fills the members derived from the map. */
void dp_ascii_prepare(dp_ascii_state *state);

/* Normalises ASCII up to the first other byte; returns how many bytes it wrote. `out` has space for length + 64. */
DP_KERNEL(ascii, size_t, (const uint8_t *in, size_t length, uint8_t *out, dp_ascii_state *state))

/* For each space at i in the text: base + i + 1; returns how many. No two spaces are adjacent. `starts` has room for
 * length / 2 + 32, as variants write ahead. */
DP_KERNEL(spaces, size_t, (const uint8_t *text, size_t length, uint32_t base, uint32_t *starts))

/* What a code point of normalised text is to words. */
enum {
    DP_CLASS_VANISH,   /* leaves no trace */
    DP_CLASS_SPACE,    /* separates words */
    DP_CLASS_LETTER,   /* stays: categories L and N */
    DP_CLASS_ALONE,    /* a letter or number of a script written without spaces */
    DP_CLASS_MARK,     /* stays: category M */
    DP_CLASS_PUNCT,    /* categories P and S: stay with punct=keep, else vanish */
    DP_CLASS_BITS = 7, /* bits of an entry that are the class */
};

/* An entry of the table: the class in the low 3 bits, these flags, and in the high 24 bits the normalised code point
 * less the code point itself. */
enum {
    DP_ENTRY_SLOW = 8,   /* becomes none or several code points: ask dp_normalise */
    DP_ENTRY_JOINS = 16, /* may combine with what precedes it */
    DP_ENTRY_INERT = 32, /* joins only in order: is never changed and composes with nothing */
};
#define DP_ENTRY_SHIFT 8

/* The state between two code points. */
enum {
    DP_AT_SPACE, /* after a space, or at the start */
    DP_IN_WORD,
    DP_ALONE, /* after a word that stands alone: the next letter starts another */
    DP_STATES,
};

/* A step from state to state: bits that say what to write, and the next state above them. */
enum { DP_WRITE_SPACE = 1, DP_WRITE_IT = 2, DP_STEP_STATE = 2 };

#define DP_TABLE_BLOCK 128

/* Ranges of code points that all have the entry of the first one; the table generator checks it. */
enum { DP_HAN_FIRST = 0x4E00, DP_HAN_LAST = 0x9FFF, DP_HANGUL_FIRST = 0xAC00, DP_HANGUL_LAST = 0xD7A3 };

/* The tables of the unicode kernel, and what it keeps between calls. */
typedef struct dp_unicode_state {
    const uint16_t *rows;   /* which row has a block's entries: rows[code point / DP_TABLE_BLOCK] */
    const int32_t *entries; /* DP_TABLE_BLOCK a row */
    /* Sets of classes, bit c for class c: those that stay, in three kinds, and those that separate. */
    uint8_t letters, alones, marks, spaces;
    uint8_t steps[DP_STATES][8]; /* the same by state and class, by dp_unicode_prepare */
    unsigned state;
    size_t used; /* out: how much of the input was read */
} dp_unicode_state;

/* Fills the members derived from the sets. */
void dp_unicode_prepare(dp_unicode_state *state);

/* Code points of one to three bytes that become one such and join nothing, by their table entries; stops at any other,
 * and may stop where there is only ASCII. Returns how many bytes it wrote. `out` has space for 4 * length + 64. */
DP_KERNEL(unicode, size_t, (const uint8_t *in, size_t length, uint8_t *out, dp_unicode_state *state))

/* ---- JSON strings: unescape.c ---- */

/* Copies raw bytes to `to` and resolves the escapes of one letter on the way. Stops at the end, at \u, and at an escape
 * that JSON does not have. Returns how many bytes it read; *written is how many it wrote, never more. */
DP_KERNEL(unescape, size_t, (const char *raw, size_t length, char *to, size_t *written))

/* ---- hashes: hash.c ---- */

/* `fast` of one word, and its finaliser (docs/FORMAT.md section 3). */
uint64_t dp_hash_word(const uint8_t *bytes, size_t length);
static inline uint64_t dp_hash_mix(uint64_t x) {
    x = (x ^ x >> 32) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 29) * 0x94D049BB133111EBu;
    return x ^ x >> 32;
}

#define DP_TEXT_SLACK 128

/* Runs of n units of a text: run i goes from starts[i] to starts[i + n] - gap. */
typedef struct dp_runs {
    const uint8_t *text; /* can be read DP_TEXT_SLACK bytes beyond */
    const uint32_t *starts;
    size_t count; /* runs */
    size_t n;
    uint32_t gap;
} dp_runs;

/* The hash of each word (n is 1). */
DP_KERNEL(hash_words, void, (const dp_runs *words, uint64_t *hashes))

/* The hash of each of `count` runs of n words, given the words' hashes (count + n - 1 of them). May work in place. */
DP_KERNEL(shingles, void, (const uint64_t *words, size_t count, size_t n, uint64_t seed, uint64_t *hashes))

/* MurmurHash3 x64_128, the first half, of each run as it stands. */
DP_KERNEL(murmur3_runs, void, (const dp_runs *runs, uint32_t seed, uint64_t *hashes))

/* ---- signatures: minhash.c ---- */

/* A slot of an unfinished signature: the round that filled it, above the smallest value of that round; larger than any
 * other while empty. */
#define DP_SLOT_EMPTY UINT64_MAX

/* One round of the hashes over `t` slots (docs/FORMAT.md section 5), at most 65536 of them; returns how many empty
 * slots it filled. */
DP_KERNEL(minhash_round, size_t, (const uint64_t *hashes, size_t count, uint64_t round, uint64_t *slots, size_t t))

/* ---- sums: bit_counts.c ---- */

/* Adds the bits of the numbers, column by column, to 64 bit-sliced counters: plane p holds bit p of each. A batch is at
 * most 2^20 numbers, so that a lane's counters fit DP_BIT_COUNTS_BATCH_PLANES; the counters hold 2^56. */
#define DP_BIT_COUNTS_BATCH_PLANES 21
#define DP_BIT_COUNTS_BATCH ((size_t)1 << 20)
#define DP_BIT_COUNTS_PLANES 56
DP_KERNEL(bit_counts, void, (const uint64_t *numbers, size_t count, uint64_t *planes))

/* The bits whose counter is above the limit. */
uint64_t dp_bit_counts_above(const uint64_t *planes, uint64_t limit);

/* Adds weights[i] to sums[b] for each bit b that is set in hashes[i]. */
DP_KERNEL(weigh, void, (const uint64_t *hashes, const int64_t *weights, size_t count, int64_t *sums))

/* ---- measures (lib/verify): measures.c, edit.c ---- */

/* How many numbers two ascending arrays of distinct numbers share. */
DP_KERNEL(shared, size_t, (const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count))

/* How many bits differ between two bitmaps. */
DP_KERNEL(differing, size_t, (const uint64_t *a, const uint64_t *b, size_t words))

/* Letter counts: 32 counters of 8 bits per text, kept for 8 texts together as 4 rows of 8 x 8 bytes (row r holds
 * counters 8r to 8r + 7 of each text in turn). Sets bit t of near[g] when the sum of absolute differences between the
 * counts of text t of group g and `letters` is at most `limit`. */
enum { DP_LETTER_COUNTS = 32, DP_LETTER_GROUP = 8 };
DP_KERNEL(letter_counts, void,
          (const uint8_t *groups, size_t count, const uint8_t *letters, unsigned limit, uint8_t *near))

/* A strip of an edit-distance table: 64 * words rows (words at most DP_STRIP_WORDS), `columns` columns. */
enum { DP_STRIP_WORDS = 8, DP_STRIP_ROWS = 64 * DP_STRIP_WORDS };
typedef struct dp_strip {
    const uint64_t *masks;          /* DP_STRIP_WORDS a symbol: bit r is set where row r of the strip has it */
    const uint16_t *slots;          /* where in `masks` those of each column begin */
    int8_t *steps;                  /* in: the differences along the row above the strip; out: along its last row */
    size_t columns, words;          /* words: 1 to DP_STRIP_WORDS */
    uint64_t plus[DP_STRIP_WORDS];  /* in: the first column, out: the last: rows that are one more than the row above */
    uint64_t minus[DP_STRIP_WORDS]; /* the same for one less */
} dp_strip;

/* Levenshtein distance; steps are -1, 0 or 1. */
DP_KERNEL(levenshtein, void, (dp_strip * strip))
/* Length of the longest common subsequence; steps are 0 or 1, `minus` is not used. */
DP_KERNEL(subsequence, void, (dp_strip * strip))

/* Banded edit distances of one prepared text, the rows, and DP_BANDED_EDITS others, the columns (edit.c). */
enum { DP_BANDED_EDITS = 8, DP_BAND_AHEAD = 64, DP_BAND_BEHIND = 120, DP_BAND_LIMIT = 56 };
typedef struct dp_banded_edit {
    const uint8_t *text; /* one byte a code point */
    uint64_t columns;    /* of them: at most DP_BAND_LIMIT more than rows */
    uint64_t high;       /* the highest diagonal, column - row, of the band; at most DP_BAND_LIMIT */
    uint64_t last;       /* the bit of the diagonal that ends in the last cell: high - (columns - rows) */
    uint64_t limit;      /* at most DP_BAND_LIMIT */
    uint64_t distance;   /* in: max(rows - columns, 0); out: the distance, if within limit */
} dp_banded_edit;
typedef struct dp_banded_edits {
    const uint8_t *strings;    /* of bits: bit DP_BAND_AHEAD + r says whether row r is the symbol; DP_BAND_BEHIND zeros
                                  follow the last row */
    const uint32_t *string_of; /* where the string of each of 256 code points begins, in bytes */
    dp_banded_edit edits[DP_BANDED_EDITS];
} dp_banded_edits;
DP_KERNEL(banded_edits, void, (dp_banded_edits * edits))

/* ---- near fingerprints (lib/hamming): fingerprints.c ---- */

/* The positions, from 0, at which a column differs from the query by at most `distance` bits, ascending; returns how
 * many. `hits` has space for count + 16. near128 takes two numbers a position, low half first. */
DP_KERNEL(near32, size_t, (const uint32_t *column, size_t count, uint32_t query, int distance, uint32_t *hits))
DP_KERNEL(near64, size_t, (const uint64_t *column, size_t count, uint64_t query, int distance, uint32_t *hits))
DP_KERNEL(near128, size_t,
          (const uint64_t *column, size_t count, const uint64_t query[2], int distance, uint32_t *hits))

/* Six exchanges of bits: stage s swaps bit i with bit i + 2^s where masks[s] has bit i set; from stage 5 to stage 0.
 * `to` may be `from`. */
DP_KERNEL(reorder, void, (const uint64_t *from, size_t count, const uint64_t masks[6], uint64_t *to))

/* ---- joins (lib/join): join.c ---- */

/* A cache line of fingerprints and their positions: five of up to 64 bits, or three of 128. A join moves whole lines
 * through memory, so that no cache has to read them first. */
enum { DP_LINE_NARROW = 5, DP_LINE_WIDE = 3 };
typedef struct dp_line_narrow {
    uint64_t value[DP_LINE_NARROW];
    uint32_t position[DP_LINE_NARROW];
    uint32_t fill;
} dp_line_narrow;
typedef struct dp_line_wide {
    uint64_t value[DP_LINE_WIDE][2];
    uint32_t position[DP_LINE_WIDE];
    uint32_t fill;
} dp_line_wide;
typedef union dp_line {
    _Alignas(64) dp_line_narrow narrow;
    dp_line_wide wide;
} dp_line;

/* Where fingerprints go by their key, `width` bits from bit `shift` on. Keys outside first .. first + keys - 1 are
 * dropped. */
typedef struct dp_scatter {
    int shift, width; /* width: up to 31 */
    uint32_t first, keys;
    dp_line *open;  /* per key: the line being filled, fill 0 at first */
    uint32_t *next; /* per key: the number of the line that its next full one is written to */
    dp_line *lines;
} dp_scatter;

/* Sorts `count` fingerprints (scatter128: two numbers each) and their positions into lines, in their order. */
DP_KERNEL(scatter64, void, (const dp_scatter *scatter, const uint64_t *values, const uint32_t *positions, size_t count))
DP_KERNEL(scatter128, void,
          (const dp_scatter *scatter, const uint64_t *values, const uint32_t *positions, size_t count))

/* Finds numbers that share a key and are near each other in 32 of their bits. Each goes into the bucket of its key, and
 * is compared with those already in it. */
enum { DP_BUCKET_SLOTS = 16, DP_BUCKET_OVERFLOW = 17, DP_BUCKET_MOST = 1 << 16 };
typedef struct dp_bucket_pairs {
    const uint64_t *numbers;
    size_t count;         /* at most DP_BUCKET_MOST */
    int shift, width;     /* the key: `width` bits from bit `shift` on */
    int rotate, distance; /* the 32 bits: the low ones of the number rotated right */
    uint8_t *fills;       /* out, per key: numbers in its bucket; DP_BUCKET_OVERFLOW: there were more than it holds */
    uint32_t *slots;      /* DP_BUCKET_SLOTS a key, on a multiple of 64 bytes */
    uint16_t *ids;        /* DP_BUCKET_SLOTS a key */
    uint32_t *hits;       /* out: earlier index << 16 | later index */
    size_t room;          /* hits there is room for, and DP_BUCKET_SLOTS beyond */
    size_t overflow;      /* out: numbers that found their bucket full, and were not compared */
} dp_bucket_pairs;
#define DP_BUCKET_HITS_FULL SIZE_MAX

/* Returns the number of hits, or DP_BUCKET_HITS_FULL when there is no room for all. */
DP_KERNEL(bucket_pairs, size_t, (dp_bucket_pairs * pairs))

/* Moves keys into slices by their top bits. A slice is a piece of `entries`, each entry a key (high half) and
 * its number (low half), in the order they came. */
enum { DP_PARTITION_LINE = 32 }; /* entries written to memory together: 256 bytes, within one memory row */
typedef struct dp_partition {
    size_t stride;     /* the key of number i is in values[i * stride] */
    int shift, width;  /* `width` bits (at most 32) from bit `shift` on */
    int slice_bits;    /* at most `width` */
    uint64_t *open;    /* DP_PARTITION_LINE per slice, aligned to 64 bytes: the lines being filled */
    uint32_t *fills;   /* per slice: its number of entries */
    uint32_t *starts;  /* per slice: where in `entries` it begins, a multiple of DP_PARTITION_LINE */
    uint64_t *entries; /* aligned to 64 bytes; lines still open at the end are not included */
} dp_partition;

/* Moves numbers `first` to `first + count - 1`. */
DP_KERNEL(partition, void, (const dp_partition *partition, const uint64_t *values, uint32_t first, uint32_t count))

/* Finds numbers that share a bucket and are near each other in their upper 32 bits; the lower 32 are names. Buckets of
 * more than DP_ROW_PAIRS_MOST are skipped. */
enum { DP_ROW_PAIRS_MOST = 64, DP_ROW_PAIRS_SLACK = DP_ROW_PAIRS_MOST * (DP_ROW_PAIRS_MOST - 1) / 2 };
typedef struct dp_row_pairs {
    const uint64_t *numbers; /* sorted by bucket; can be read 7 beyond */
    const uint32_t *bounds;  /* bucket k: numbers bounds[k] to bounds[k + 1] - 1 */
    size_t buckets;
    int distance;
    size_t next;    /* in and out: the next bucket */
    uint64_t *hits; /* out: earlier name << 32 | later name */
    size_t room;    /* beyond this many hits it stops after the current bucket; there is space for DP_ROW_PAIRS_SLACK
                       more */
} dp_row_pairs;
DP_KERNEL(row_pairs, size_t, (dp_row_pairs * pairs))

#endif
