/* tally_template.h - adds up the bits of many 64-bit numbers, column by column, in vectors of TALLY_LANES numbers.
 *
 * Parameters: TALLY_NAME, the function; TALLY_LANES, a power of two; TALLY_TARGET, its target attribute.
 *
 * Counters are bit-sliced: plane p holds bit p of all 64 counters of a lane. Sixteen vectors go through a tree of
 * carry-save adders (Harley-Seal), which costs about one adder a vector; what comes out at the top, once in sixteen,
 * ripples up. */
#define TALLY_PASTE2(a, b) a##b
#define TALLY_PASTE(a, b) TALLY_PASTE2(a, b)
#define tally_vector TALLY_PASTE(TALLY_NAME, _vector)

typedef uint64_t tally_vector __attribute__((vector_size(8 * TALLY_LANES)));

/* *sum + b + c: the sum bit stays in *sum, the carry comes out. */
#define tally_add(sum, b, c, carry)            \
    do {                                       \
        tally_vector u = (sum) ^ (b), v = (c); \
        carry = ((sum) & (b)) | (u & v);       \
        sum = u ^ v;                           \
    } while (0)

#define tally_load(at) (*(const tally_vector_u *)(const void *)(at))

TALLY_TARGET static void TALLY_NAME(const uint64_t *numbers, size_t count, uint64_t *planes) {
    typedef tally_vector tally_vector_u __attribute__((aligned(8), may_alias));
    tally_vector plane[DP_TALLY_BATCH_PLANES] = {{0}};
    tally_vector ones = {0}, twos = {0}, fours = {0}, eights = {0};
    uint64_t padded[16 * TALLY_LANES];
    for (size_t i = 0; i < count; i += 16 * TALLY_LANES) {
        const uint64_t *block = numbers + i;
        if (count - i < 16 * TALLY_LANES) {
            /* Zeros add nothing. */
            memcpy(padded, block, (count - i) * sizeof *block);
            memset(padded + (count - i), 0, sizeof padded - (count - i) * sizeof *block);
            block = padded;
        }
        tally_vector carry2[2], carry4[2], carry8[2], carry;
        for (int half = 0; half < 2; half++, block += 8 * TALLY_LANES) {
            tally_add(ones, tally_load(block), tally_load(block + TALLY_LANES), carry2[0]);
            tally_add(ones, tally_load(block + 2 * TALLY_LANES), tally_load(block + 3 * TALLY_LANES), carry2[1]);
            tally_add(twos, carry2[0], carry2[1], carry4[0]);
            tally_add(ones, tally_load(block + 4 * TALLY_LANES), tally_load(block + 5 * TALLY_LANES), carry2[0]);
            tally_add(ones, tally_load(block + 6 * TALLY_LANES), tally_load(block + 7 * TALLY_LANES), carry2[1]);
            tally_add(twos, carry2[0], carry2[1], carry4[1]);
            tally_add(fours, carry4[0], carry4[1], carry8[half]);
        }
        tally_add(eights, carry8[0], carry8[1], carry);
        /* A block brings at most one carry to each column, so that plane p turns once in 2^(p-3) blocks. */
        size_t blocks = i / (16 * TALLY_LANES) + 1;
        for (int p = 4; blocks; p++, blocks >>= 1) {
            tally_vector next = plane[p] & carry;
            plane[p] ^= carry;
            carry = next;
        }
    }
    plane[0] = ones;
    plane[1] = twos;
    plane[2] = fours;
    plane[3] = eights;
    int used = 64 - __builtin_clzll(count | 15) + 1;
    used = used < DP_TALLY_BATCH_PLANES ? used : DP_TALLY_BATCH_PLANES;
    for (int lane = 0; lane < TALLY_LANES; lane++) {
        uint64_t carry = 0;
        for (int p = 0; p < used || carry; p++) {
            uint64_t bit = p < used ? plane[p][lane] : 0, sum = planes[p] ^ bit;
            uint64_t next = (planes[p] & bit) | (sum & carry);
            planes[p] = sum ^ carry;
            carry = next;
        }
    }
}

#undef tally_vector
#undef tally_add
#undef tally_load
#undef TALLY_NAME
#undef TALLY_LANES
#undef TALLY_TARGET
#undef TALLY_PASTE
#undef TALLY_PASTE2
