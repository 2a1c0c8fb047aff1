/* bit_counts_template.h - adds up the bits of many 64-bit numbers, column by column, in vectors of BITS_LANES numbers.
 *
 * Parameters: BITS_NAME, the function; BITS_LANES, a power of two; BITS_TARGET, its target attribute.
 *
 * Counters are bit-sliced: plane p holds bit p of all 64 counters of a lane. Sixteen vectors go through a tree of
 * carry-save adders (Harley-Seal), which costs about one adder per vector; the carry out of the top, once in sixteen,
 * ripples up. */
#define BITS_PASTE2(a, b) a##b
#define BITS_PASTE(a, b) BITS_PASTE2(a, b)
#define bits_vector BITS_PASTE(BITS_NAME, _vector)

typedef uint64_t bits_vector __attribute__((vector_size(8 * BITS_LANES)));

/* *sum + b + c: the sum bit stays in *sum, the carry comes out. */
#define bits_add(sum, b, c, carry)            \
    do {                                      \
        bits_vector u = (sum) ^ (b), v = (c); \
        carry = ((sum) & (b)) | (u & v);      \
        sum = u ^ v;                          \
    } while (0)

#define bits_load(at) (*(const bits_vector_u *)(const void *)(at))

BITS_TARGET static void BITS_NAME(const uint64_t *numbers, size_t count, uint64_t *planes) {
    typedef bits_vector bits_vector_u __attribute__((aligned(8), may_alias));
    bits_vector plane[DP_BIT_COUNTS_BATCH_PLANES] = {{0}};
    bits_vector ones = {0}, twos = {0}, fours = {0}, eights = {0};
    uint64_t padded[16 * BITS_LANES];
    for (size_t i = 0; i < count; i += 16 * BITS_LANES) {
        const uint64_t *block = numbers + i;
        if (count - i < 16 * BITS_LANES) {
            /* Zeros add nothing. */
            memcpy(padded, block, (count - i) * sizeof *block);
            memset(padded + (count - i), 0, sizeof padded - (count - i) * sizeof *block);
            block = padded;
        }
        bits_vector carry2[2], carry4[2], carry8[2], carry;
        for (int half = 0; half < 2; half++, block += 8 * BITS_LANES) {
            bits_add(ones, bits_load(block), bits_load(block + BITS_LANES), carry2[0]);
            bits_add(ones, bits_load(block + 2 * BITS_LANES), bits_load(block + 3 * BITS_LANES), carry2[1]);
            bits_add(twos, carry2[0], carry2[1], carry4[0]);
            bits_add(ones, bits_load(block + 4 * BITS_LANES), bits_load(block + 5 * BITS_LANES), carry2[0]);
            bits_add(ones, bits_load(block + 6 * BITS_LANES), bits_load(block + 7 * BITS_LANES), carry2[1]);
            bits_add(twos, carry2[0], carry2[1], carry4[1]);
            bits_add(fours, carry4[0], carry4[1], carry8[half]);
        }
        bits_add(eights, carry8[0], carry8[1], carry);
        /* A block brings at most one carry to each column, so plane p changes once in 2^(p-3) blocks. */
        size_t blocks = i / (16 * BITS_LANES) + 1;
        for (int p = 4; blocks; p++, blocks >>= 1) {
            bits_vector next = plane[p] & carry;
            plane[p] ^= carry;
            carry = next;
        }
    }
    plane[0] = ones;
    plane[1] = twos;
    plane[2] = fours;
    plane[3] = eights;
    int used = 64 - __builtin_clzll(count | 15) + 1;
    used = used < DP_BIT_COUNTS_BATCH_PLANES ? used : DP_BIT_COUNTS_BATCH_PLANES;
    for (int lane = 0; lane < BITS_LANES; lane++) {
        uint64_t carry = 0;
        for (int p = 0; p < used || carry; p++) {
            uint64_t bit = p < used ? plane[p][lane] : 0, sum = planes[p] ^ bit;
            uint64_t next = (planes[p] & bit) | (sum & carry);
            planes[p] = sum ^ carry;
            carry = next;
        }
    }
}

#undef bits_vector
#undef bits_add
#undef bits_load
#undef BITS_NAME
#undef BITS_LANES
#undef BITS_TARGET
#undef BITS_PASTE
#undef BITS_PASTE2
