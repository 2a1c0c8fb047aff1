/* minhash.c - signatures and samples of a set of feature hashes, and the bands by which signatures are matched.
 *
 * Signatures are made by fast similarity sketching (Dahlgaard, Knudsen, Thorup, FOCS 2017; docs/FORMAT.md section 5):
 * one pass over the hashes fills most slots at once, and more passes are made only while slots are empty. So a long
 * document costs one step per feature, whatever the number of slots, and a short one about slots * ln(slots) steps;
 * each slot still agrees between two sets with probability equal to their Jaccard similarity. */
#include "kernel/kernel.h"
#include "sketch/sketch.h"

#include <math.h>
#include <stdlib.h>

/* A sorted copy without repeats; NULL when out of memory. */
static uint64_t *copy_distinct(const uint64_t *hashes, size_t count, size_t *distinct) {
    uint64_t *copy = count > SIZE_MAX / 16 ? NULL : malloc(count * 2 * sizeof *copy);
    if (!copy)
        return NULL;
    memcpy(copy, hashes, count * sizeof *copy);
    dp_sort64(copy, count, copy + count);
    *distinct = dp_unique64(copy, count);
    return copy;
}

/* Fills all slots. Rounds from t on fill slot after slot, so that 2t rounds always suffice. Few distinct hashes need
 * many rounds, and are made distinct before them: a text that repeats itself costs no more than another. That is clear
 * when this many hashes leave a slot empty, which has probability t / e^16; otherwise it waits until the sort costs no
 * more than the rounds did. */
static bool fill_slots(const uint64_t *hashes, size_t count, uint64_t *slots, size_t t) {
    dp_minhash_round_fn run = dp_minhash_round_kernel();
    uint64_t *distinct = NULL;
    size_t empty = t;
    for (uint64_t round = 0; empty; round++) {
        if (round == (count / 16 >= t ? 1 : 16) && !distinct) {
            if (!(distinct = copy_distinct(hashes, count, &count)))
                return false;
            hashes = distinct;
        }
        empty -= run(hashes, count, round, slots, t);
    }
    free(distinct);
    return true;
}

doppel_status doppel_minhash(const uint64_t *hashes, size_t count, size_t t, uint32_t *signature) {
    if (!t || t > 65536)
        return DOPPEL_ERROR_USAGE;
    if (!count) {
        memset(signature, 0xFF, t * sizeof *signature);
        return DOPPEL_OK;
    }
    uint64_t few[256], *slots = t <= 256 ? few : malloc(t * sizeof *slots);
    if (!slots)
        return DOPPEL_ERROR_MEMORY;
    memset(slots, 0xFF, t * sizeof *slots);
    doppel_status status = fill_slots(hashes, count, slots, t) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < t && !status; i++)
        signature[i] = (uint32_t)slots[i] + (uint32_t)(slots[i] >> 32) * 0x9E3779B1u;
    if (slots != few)
        free(slots);
    return status;
}

size_t doppel_sample(uint64_t *hashes, size_t count, uint64_t p) {
    size_t kept = 0;
    for (size_t i = 0; p && i < count; i++)
        if (hashes[i] % p == 0)
            hashes[kept++] = hashes[i];
    return kept;
}

/* ---- bands of signatures: how many for a threshold, and the keys of a document's bands ---- */

/* The share of pairs exactly at the threshold that is found; above it more are. */
#define RECALL 0.999
/* More rows let fewer far pairs through, but need more bands. Few rows let so many through that more bands are worth
 * it. */
#define USUAL_BANDS 32
#define FEW_ROWS 4

double dp_bands_recall(double similarity, int bands, int rows) {
    return 1 - pow(1 - pow(similarity, rows), bands);
}

/* How many bands of `rows` rows reach the recall. */
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

/* The whole key of band b, by its slots. */
static uint64_t band_key(int b, const uint32_t *slot, int rows) {
    uint64_t hash = (uint64_t)b;
    for (int r = 0; r < rows; r++) {
        hash = (hash ^ slot[r]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash;
}

doppel_status dp_bands_keys(const uint64_t *set, size_t count, int bands, int rows, uint32_t *keys) {
    uint32_t signature[DP_MOST_SLOTS];
    doppel_status status = doppel_minhash(set, count, (size_t)bands * (size_t)rows, signature);
    for (int b = 0; b < bands && status == DOPPEL_OK; b++)
        keys[b] = dp_narrow_key(band_key(b, signature + (size_t)b * (size_t)rows, rows));
    return status;
}

double doppel_bands_plan(double similarity, int *bands, int *rows) {
    bool possible = similarity > 0 && similarity <= 1 && dp_bands_plan(similarity, bands, rows);
    return possible ? dp_bands_recall(similarity, *bands, *rows) : 0;
}

static bool are_possible(size_t count, int bands, int rows) {
    return count && bands >= 1 && rows >= 1 && bands <= DP_MOST_BANDS && rows <= DP_MOST_SLOTS &&
           bands * rows <= DP_MOST_SLOTS;
}

doppel_status doppel_bands_keys(const uint64_t *set, size_t count, int bands, int rows, uint32_t *keys) {
    return are_possible(count, bands, rows) ? dp_bands_keys(set, count, bands, rows, keys) : DOPPEL_ERROR_USAGE;
}

doppel_status doppel_bands_wide_keys(const uint64_t *set, size_t count, int bands, int rows, uint64_t *keys) {
    uint32_t signature[DP_MOST_SLOTS];
    if (!are_possible(count, bands, rows))
        return DOPPEL_ERROR_USAGE;
    doppel_status status = doppel_minhash(set, count, (size_t)bands * (size_t)rows, signature);
    for (int b = 0; b < bands && status == DOPPEL_OK; b++)
        keys[b] = band_key(b, signature + (size_t)b * (size_t)rows, rows);
    return status;
}
