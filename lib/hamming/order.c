/* order.c - the secret order of bits: an index permutes every fingerprint first, so that a client that chooses
 * fingerprints cannot choose which of their bits form a key.
 *
 * A butterfly: from the widest stage to the narrowest, bit i and bit i + 2^s are swapped or not, by a random mask. Each
 * stage is its own inverse, so the way back is the same stages from the narrowest to the widest. */
#include "hamming/hamming.h"
#include "kernel/kernel.h"

/* The next number of a sequence that a seed starts: Weyl steps by 2^64 / the golden ratio, mixed. */
static uint64_t next(uint64_t *state) {
    uint64_t x = *state += 0x9E3779B97F4A7C15;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
}

/* The places i < bits, of those with i + 2^stage < bits, that are the lower of a pair of the stage. */
static uint64_t lower_places(int stage, int bits) {
    uint64_t places = 0;
    for (int i = 0; i + (1 << stage) < bits; i++)
        places |= (uint64_t) !(i >> stage & 1) << i;
    return places;
}

void dp_order_init(dp_order *order, int bits, uint64_t seed) {
    memset(order, 0, sizeof *order);
    order->bits = bits;
    if (seed == 0)
        return;
    int word_bits = bits < 64 ? bits : 64;
    for (int stage = 0; stage < 6; stage++) {
        uint64_t places = lower_places(stage, word_bits);
        order->mask[stage][0] = next(&seed) & places;
        order->mask[stage][1] = bits > 64 ? next(&seed) & places : 0;
    }
    order->mask[6][0] = bits > 64 ? next(&seed) : 0;
}

static uint64_t swap(uint64_t x, int stage, uint64_t mask) {
    uint64_t t = (x ^ x >> (1 << stage)) & mask;
    return x ^ t ^ t << (1 << stage);
}

/* Stage 6: bit i of the low half with bit i of the high half. */
static void swap_halves(uint64_t words[2], uint64_t mask) {
    uint64_t t = (words[0] ^ words[1]) & mask;
    words[0] ^= t;
    words[1] ^= t;
}

dp_bits dp_order_apply(const dp_order *order, dp_bits value) {
    uint64_t words[2];
    dp_bits_store(value, words);
    if (order->bits > 64)
        swap_halves(words, order->mask[6][0]);
    for (int half = 0; half < (order->bits > 64 ? 2 : 1); half++)
        for (int stage = 5; stage >= 0; stage--)
            words[half] = swap(words[half], stage, order->mask[stage][half]);
    return dp_bits_load(words, order->bits);
}

dp_bits dp_order_undo(const dp_order *order, dp_bits value) {
    uint64_t words[2];
    dp_bits_store(value, words);
    for (int half = 0; half < (order->bits > 64 ? 2 : 1); half++)
        for (int stage = 0; stage < 6; stage++)
            words[half] = swap(words[half], stage, order->mask[stage][half]);
    if (order->bits > 64)
        swap_halves(words, order->mask[6][0]);
    return dp_bits_load(words, order->bits);
}

/* ---- many at once, by a kernel ---- */

/* The masks of a half, as the kernel has them. */
static void masks_of(const dp_order *order, int half, uint64_t masks[6]) {
    for (int stage = 0; stage < 6; stage++)
        masks[stage] = order->mask[stage][half];
}

/* Numbers of two halves are taken apart for the kernel, in pieces that the stack holds. */
static void apply_wide(const dp_order *order, const uint64_t *from, size_t count, uint64_t *to) {
    enum { PIECE = 256 };
    uint64_t low[PIECE], high[PIECE], masks[2][6];
    masks_of(order, 0, masks[0]);
    masks_of(order, 1, masks[1]);
    for (size_t done = 0; done < count; done += PIECE) {
        size_t piece = count - done < PIECE ? count - done : PIECE;
        for (size_t i = 0; i < piece; i++) {
            uint64_t words[2] = {from[2 * (done + i)], from[2 * (done + i) + 1]};
            swap_halves(words, order->mask[6][0]);
            low[i] = words[0];
            high[i] = words[1];
        }
        dp_reorder_kernel()(low, piece, masks[0], low);
        dp_reorder_kernel()(high, piece, masks[1], high);
        for (size_t i = 0; i < piece; i++) {
            to[2 * (done + i)] = low[i];
            to[2 * (done + i) + 1] = high[i];
        }
    }
}

void dp_order_apply_many(const dp_order *order, const uint64_t *from, size_t count, uint64_t *to) {
    uint64_t masks[6];
    if (order->bits > 64) {
        apply_wide(order, from, count, to);
        return;
    }
    masks_of(order, 0, masks);
    dp_reorder_kernel()(from, count, masks, to);
}
