/* levenshtein_template.h - STRIP_LANES blocks of a strip at a time, as a wave front.
 *
 * Parameters: STRIP_NAME, the function; STRIP_LANES, 4 or 8; STRIP_TARGET, its target attribute; STRIP_ROWS(words,
 * index), which loads the words that a vector of numbers names.
 *
 * A block needs its upper neighbour's step at the same column, so lanes work on different columns: at time t the lowest
 * block is in lane 0 at column t - (STRIP_LANES - 1), the top block in the last lane at column t. A lane's step moves
 * to the lane before it, in time for the next column. At both ends some lanes have no column; their state does not
 * change. */
#define STRIP_PASTE2(a, b) a##b
#define STRIP_PASTE(a, b) STRIP_PASTE2(a, b)
#define strip_vector STRIP_PASTE(STRIP_NAME, _vector)
#define strip_wave STRIP_PASTE(STRIP_NAME, _wave)
#define strip_advance STRIP_PASTE(STRIP_NAME, _advance)
#define strip_edge STRIP_PASTE(STRIP_NAME, _edge)
#define strip_run STRIP_PASTE(STRIP_NAME, _run)

typedef uint64_t strip_vector __attribute__((vector_size(8 * STRIP_LANES)));

/* plus, minus: as in dp_strip; right_plus, right_minus: the same along the rows, at the lanes' last columns. */
struct strip_wave {
    strip_vector plus, minus, right_plus, right_minus;
};

/* Rotates the lanes by one: the value of the last lane moves to lane 0, where it is read and replaced. */
#if STRIP_LANES == 8
#define strip_turn(lanes) __builtin_shufflevector(lanes, lanes, 7, 0, 1, 2, 3, 4, 5, 6)
#else
#define strip_turn(lanes) __builtin_shufflevector(lanes, lanes, 3, 0, 1, 2)
#endif

/* All lanes advance by one column. `slots` points to that of lane 0, the others precede it; `step`: above the first
 * block, -1, 0 or 1. right_plus and right_minus are left rotated: lane 0 has the step below the last block. */
STRIP_TARGET static inline __attribute__((always_inline)) void
strip_advance(struct strip_wave *wave, const uint64_t *masks, const uint16_t *slots, int64_t step) {
    strip_vector equal = STRIP_ROWS(masks, slots);
    strip_vector above_plus = wave->right_plus, above_minus = wave->right_minus;
    above_plus[0] = (uint64_t)(step > 0) << 63;
    above_minus[0] = (uint64_t)step;
    strip_vector p = wave->plus, m = wave->minus, vertical = equal | m, down = above_minus >> 63;
    equal |= down;
    strip_vector zero = (((equal & p) + p) ^ p) | equal;
    strip_vector right_plus = m | ~(zero | p), right_minus = p & zero;
    strip_vector low_plus = right_plus << 1 | above_plus >> 63, low_minus = right_minus << 1 | down;
    wave->plus = low_minus | ~(vertical | low_plus);
    wave->minus = low_plus & vertical;
    wave->right_plus = strip_turn(right_plus);
    wave->right_minus = strip_turn(right_minus);
}

#define strip_below(wave) ((int8_t)((int)((wave)->right_plus[0] >> 63) - (int)((wave)->right_minus[0] >> 63)))

/* Time t, when not every lane has a column. */
STRIP_TARGET static void strip_edge(struct strip_wave *wave, dp_strip *strip, const uint64_t *masks, size_t t) {
    uint16_t slots[STRIP_LANES] = {0};
    strip_vector active = {0};
    for (size_t lane = 0; lane < STRIP_LANES; lane++) {
        if (t - lane < strip->columns) {
            slots[STRIP_LANES - 1 - lane] = strip->slots[t - lane];
            active[lane] = ~(uint64_t)0;
        }
    }
    struct strip_wave old = *wave;
    strip_advance(wave, masks, slots + STRIP_LANES - 1, t < strip->columns ? strip->steps[t] : 0);
    wave->plus = (wave->plus & active) | (old.plus & ~active);
    wave->minus = (wave->minus & active) | (old.minus & ~active);
    if (t >= STRIP_LANES - 1)
        strip->steps[t - (STRIP_LANES - 1)] = strip_below(wave);
}

/* The blocks from `word` on. */
STRIP_TARGET static void strip_run(dp_strip *strip, size_t word) {
    const uint64_t *masks = strip->masks + word;
    struct strip_wave wave = {0};
    memcpy(&wave.plus, strip->plus + word, sizeof wave.plus);
    memcpy(&wave.minus, strip->minus + word, sizeof wave.minus);
    size_t t = 0;
    for (; t < STRIP_LANES - 1; t++)
        strip_edge(&wave, strip, masks, t);
    for (; t < strip->columns; t++) {
        strip_advance(&wave, masks, strip->slots + t, strip->steps[t]);
        strip->steps[t - (STRIP_LANES - 1)] = strip_below(&wave);
    }
    for (; t < strip->columns + STRIP_LANES - 1; t++)
        strip_edge(&wave, strip, masks, t);
    memcpy(strip->plus + word, &wave.plus, sizeof wave.plus);
    memcpy(strip->minus + word, &wave.minus, sizeof wave.minus);
}

STRIP_TARGET static void STRIP_NAME(dp_strip *strip) {
    size_t word = 0;
    if (strip->columns >= STRIP_LANES)
        for (; word + STRIP_LANES <= strip->words; word += STRIP_LANES)
            strip_run(strip, word);
    run_blocks(strip, word);
}

#undef strip_vector
#undef strip_wave
#undef strip_advance
#undef strip_edge
#undef strip_run
#undef strip_turn
#undef strip_below
#undef STRIP_NAME
#undef STRIP_LANES
#undef STRIP_TARGET
#undef STRIP_ROWS
#undef STRIP_PASTE
#undef STRIP_PASTE2
