/* banded_template.h - BANDED_LANES texts side by side (see edit.c).
 *
 * Parameters: BANDED_NAME, the function; BANDED_LANES, 4 or 8; BANDED_TARGET, its target attribute;
 * BANDED_OVER(distance, limit), whether every lane's distance is above its limit. */
#define BANDED_PASTE2(a, b) a##b
#define BANDED_PASTE(a, b) BANDED_PASTE2(a, b)
#define banded_vector BANDED_PASTE(BANDED_NAME, _vector)
#define banded_part BANDED_PASTE(BANDED_NAME, _part)

typedef uint64_t banded_vector __attribute__((vector_size(8 * BANDED_LANES)));

#define banded_string(i) string_at(edits, first + (i), j)
#if BANDED_LANES == 8
#define BANDED_STRINGS                                                                                              \
    {                                                                                                               \
        banded_string(0), banded_string(1), banded_string(2), banded_string(3), banded_string(4), banded_string(5), \
            banded_string(6), banded_string(7)                                                                      \
    }
#else
#define BANDED_STRINGS \
    { banded_string(0), banded_string(1), banded_string(2), banded_string(3) }
#endif

/* The texts from `first` on: together while all of them have columns, or until all have passed their limit; then the
 * rest of each separately. */
BANDED_TARGET static void banded_part(dp_banded_edits *edits, size_t first) {
    banded_vector plus, minus = {0}, start, last, limit, distance;
    size_t together = SIZE_MAX;
    for (size_t i = 0; i < BANDED_LANES; i++) {
        const dp_banded_edit *edit = &edits->edits[first + i];
        plus[i] = ~(uint64_t)0 << edit->high;
        start[i] = DP_BAND_AHEAD - edit->high;
        last[i] = edit->last;
        limit[i] = edit->limit;
        distance[i] = edit->distance;
        together = edit->columns < together ? edit->columns : together;
    }
    for (size_t j = 0; j < together; j++) {
        const banded_vector strings = BANDED_STRINGS;
        banded_vector equal = strings >> ((start + j) & 7);
        banded_vector zero = (((equal & plus) + plus) ^ plus) | equal | minus;
        distance += (~zero >> last) & 1;
        if (j % 4 == 3 && BANDED_OVER(distance, limit)) {
            together = j + 1;
            break;
        }
        banded_vector right_plus = minus | ~(zero | plus), right_minus = zero & plus;
        plus = right_minus | ~(zero >> 1 | right_plus);
        minus = zero >> 1 & right_plus;
    }
    for (size_t i = 0; i < BANDED_LANES; i++) {
        edits->edits[first + i].distance = distance[i];
        finish_edit(edits, first + i, together, plus[i], minus[i]);
    }
}

BANDED_TARGET static void BANDED_NAME(dp_banded_edits *edits) {
    for (size_t first = 0; first < DP_BANDED_EDITS; first += BANDED_LANES)
        banded_part(edits, first);
}

#undef banded_vector
#undef banded_part
#undef banded_string
#undef BANDED_STRINGS
#undef BANDED_NAME
#undef BANDED_LANES
#undef BANDED_TARGET
#undef BANDED_OVER
#undef BANDED_PASTE
#undef BANDED_PASTE2
