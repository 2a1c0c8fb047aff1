/* walks_template.h - WALKS_LANES walks side by side (see walks.c).
 *
 * Parameters: WALKS_NAME, the function; WALKS_LANES, 4 or 8; WALKS_TARGET, its target attribute; WALKS_OVER(distance,
 * limit), whether every lane's distance is above its limit. */
#define WALKS_PASTE2(a, b) a##b
#define WALKS_PASTE(a, b) WALKS_PASTE2(a, b)
#define walks_vector WALKS_PASTE(WALKS_NAME, _vector)
#define walks_part WALKS_PASTE(WALKS_NAME, _part)

typedef uint64_t walks_vector __attribute__((vector_size(8 * WALKS_LANES)));

#define walks_string(i) string_at(walks, first + (i), j)
#if WALKS_LANES == 8
#define WALKS_STRINGS                                                                                         \
    {                                                                                                         \
        walks_string(0), walks_string(1), walks_string(2), walks_string(3), walks_string(4), walks_string(5), \
            walks_string(6), walks_string(7)                                                                  \
    }
#else
#define WALKS_STRINGS \
    { walks_string(0), walks_string(1), walks_string(2), walks_string(3) }
#endif

/* The walks from `first` on: together while all of them have columns, or until all have passed their limit; what is
 * left of each by itself. */
WALKS_TARGET static void walks_part(dp_walks *walks, size_t first) {
    walks_vector plus, minus = {0}, start, last, limit, distance;
    size_t together = SIZE_MAX;
    for (size_t i = 0; i < WALKS_LANES; i++) {
        const dp_walk *walk = &walks->walks[first + i];
        plus[i] = ~(uint64_t)0 << walk->high;
        start[i] = DP_WALK_AHEAD - walk->high;
        last[i] = walk->last;
        limit[i] = walk->limit;
        distance[i] = walk->distance;
        together = walk->columns < together ? walk->columns : together;
    }
    for (size_t j = 0; j < together; j++) {
        const walks_vector strings = WALKS_STRINGS;
        walks_vector equal = strings >> ((start + j) & 7);
        walks_vector zero = (((equal & plus) + plus) ^ plus) | equal | minus;
        distance += (~zero >> last) & 1;
        if (j % 4 == 3 && WALKS_OVER(distance, limit)) {
            together = j + 1;
            break;
        }
        walks_vector right_plus = minus | ~(zero | plus), right_minus = zero & plus;
        plus = right_minus | ~(zero >> 1 | right_plus);
        minus = zero >> 1 & right_plus;
    }
    for (size_t i = 0; i < WALKS_LANES; i++) {
        walks->walks[first + i].distance = distance[i];
        walk_on(walks, first + i, together, plus[i], minus[i]);
    }
}

WALKS_TARGET static void WALKS_NAME(dp_walks *walks) {
    for (size_t first = 0; first < DP_WALKS; first += WALKS_LANES)
        walks_part(walks, first);
}

#undef walks_vector
#undef walks_part
#undef walks_string
#undef WALKS_STRINGS
#undef WALKS_NAME
#undef WALKS_LANES
#undef WALKS_TARGET
#undef WALKS_OVER
#undef WALKS_PASTE
#undef WALKS_PASTE2
