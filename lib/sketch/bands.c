/* bands.c - bands of signatures: how many for a threshold, and the keys of a document's bands. */
#include "sketch/sketch.h"

#include <math.h>

/* Of pairs at the very threshold so many shall be found; those above it are found more often. */
#define RECALL 0.999
/* More rows let fewer pairs through that are not near enough, but need more bands. Few rows let so many through that
 * more bands are worth it. */
#define USUAL_BANDS 32
#define FEW_ROWS 4

double dp_bands_recall(double similarity, int bands, int rows) {
    return 1 - pow(1 - pow(similarity, rows), bands);
}

/* How many bands of so many rows reach the recall. */
static double bands_for(double similarity, int rows) {
    double one = pow(similarity, rows);
    return one >= 1 ? 1 : ceil(log(1 - RECALL) / log1p(-one));
}

bool dp_bands_plan(double similarity, int *bands, int *rows) {
    if (*bands < 0 || *rows < 0 || (*bands && *rows && (long long)*bands * *rows > DP_MOST_SLOTS) ||
        *bands > DP_MOST_BANDS || *rows > DP_MOST_SLOTS)
        return false;
    if (!*rows) {
        for (*rows = 1; *rows < 16; ++*rows) {
            double most = *bands ? *bands : *rows < FEW_ROWS ? DP_MOST_BANDS : USUAL_BANDS;
            if (bands_for(similarity, *rows + 1) > most)
                break;
        }
    }
    if (!*bands) {
        double need = bands_for(similarity, *rows);
        *bands = need > DP_MOST_BANDS ? DP_MOST_BANDS : (int)need;
    }
    return (long long)*bands * *rows <= DP_MOST_SLOTS;
}

doppel_status dp_bands_keys(const uint64_t *set, size_t count, int bands, int rows, uint32_t *keys) {
    uint32_t signature[DP_MOST_SLOTS];
    doppel_status status = doppel_minhash(set, count, (size_t)bands * (size_t)rows, signature);
    const uint32_t *slot = signature;
    for (int b = 0; b < bands && status == DOPPEL_OK; b++) {
        uint64_t hash = (uint64_t)b;
        for (int r = 0; r < rows; r++) {
            hash = (hash ^ *slot++) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 32;
        }
        keys[b] = (uint32_t)(hash >> 16);
    }
    return status;
}
