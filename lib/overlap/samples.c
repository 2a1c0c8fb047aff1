/* samples.c - the hashes by which documents meet.
 *
 * For containment: the features that are 0 mod `sample`. Whether one is chosen depends on itself alone, so a feature
 * that two documents share is chosen in both or in neither. The least of a document's are its keys; the share of the
 * keys that another document has, whether as keys or not, tells the containment in it.
 *
 * For runs of N words: of every `window` grams in a row the one with the least hash (winnowing). A gram is a run of
 * N - window + 1 words, so a run of N words holds `window` grams in a row, and in both documents the same one of them
 * is chosen: no shared run is missed. Long grams make few false candidates, wide windows few hashes (2 of window + 1).
 */
#include "kernel/kernel.h"
#include "overlap/overlap.h"
#include "sketch/sketch.h"

#include <math.h>

/* Wider windows save little: at 32 one gram of 16 is chosen. */
#define WIDEST 32

/* Multiplies hashes of features into those of grams; odd, so that nothing is lost. */
#define MULTIPLIER 0x9E3779B97F4A7C15u

#define USUAL_CONTAINMENT 0.5
#define USUAL_SAMPLE 4
#define USUAL_PASSAGE 5

/* Keys of a document: at containment C about KEYS_SHARED of them are shared, so that one always is. */
#define KEYS_SHARED 32
#define LEAST_KEYS 64

static doppel_status plan_words(dp_overlap_plan *plan, uint64_t words, const doppel_recipe *recipe,
                                doppel_error *error) {
    if (recipe->text.chars)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "runs of words go with a recipe of words, not of characters");
    if (words < recipe->n)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "runs have at least as many words as the recipe's features, %zu, and not %llu; a recipe with "
                       "words=%llu finds them",
                       recipe->n, (unsigned long long)words, (unsigned long long)words);
    if (words > UINT32_MAX)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "runs have at most %u words", UINT32_MAX);
    size_t features = (size_t)words - recipe->n + 1, window = ((size_t)words + 2) / 3;
    window = window < features ? window : features;
    plan->window = window < WIDEST ? window : WIDEST;
    plan->gram = features - plan->window + 1;
    plan->words = (size_t)words;
    /* Passages show why a pair is one: all that is shared, where it is one by containment. */
    if (!plan->sample)
        plan->passage = plan->words;
    return DOPPEL_OK;
}

doppel_status dp_overlap_plan_make(const doppel_overlap_options *options, const doppel_recipe *recipe,
                                   dp_overlap_plan *plan, doppel_error *error) {
    *plan = (dp_overlap_plan){.containment = options->containment};
    if (!(options->containment >= 0 && options->containment <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "containment is above 0 and at most 1, not %g", options->containment);
    if (!options->words && plan->containment <= 0)
        plan->containment = USUAL_CONTAINMENT;
    if (plan->containment > 0) {
        plan->sample = options->sample ? options->sample : USUAL_SAMPLE;
        double keys = ceil(KEYS_SHARED / plan->containment);
        plan->keys = keys < LEAST_KEYS ? LEAST_KEYS : keys > UINT32_MAX ? UINT32_MAX : (size_t)keys;
    }
    plan->passage = recipe->text.chars ? USUAL_PASSAGE : recipe->n;
    return options->words ? plan_words(plan, options->words, recipe, error) : DOPPEL_OK;
}

static void add_sampled(const dp_overlap_plan *plan, const uint64_t *features, size_t count,
                        dp_overlap_samples *samples) {
    for (size_t i = 0; i < count; i++)
        if (features[i] % plan->sample == 0)
            samples->hash[samples->count++] = features[i] & ~(uint64_t)1;
}

/* Writes the hash of each gram, an odd number: the sum of its features, each multiplied by how far it is from the end,
 * spread over all bits. */
static void make_grams(const uint64_t *features, size_t grams, size_t gram, uint64_t *to) {
    uint64_t sum = 0, power = 1;
    for (size_t i = 0; i < gram; i++) {
        sum = sum * MULTIPLIER + features[i];
        power *= MULTIPLIER;
    }
    to[0] = dp_hash_mix(sum) | 1;
    for (size_t i = 1; i < grams; i++) {
        sum = sum * MULTIPLIER + features[i + gram - 1] - features[i - 1] * power;
        to[i] = dp_hash_mix(sum) | 1;
    }
}

/* The place of the least of some grams, the last of equal ones. */
static size_t least_of(const uint64_t *grams, size_t from, size_t end) {
    size_t least = from;
    for (size_t i = from + 1; i < end; i++)
        if (grams[i] <= grams[least])
            least = i;
    return least;
}

/* Chooses of the grams; the chosen ones go to the front. */
static size_t winnow(uint64_t *grams, size_t count, size_t window) {
    size_t least = least_of(grams, 0, window), chosen = 0;
    uint64_t value = grams[least];
    for (size_t end = window;; end++) {
        /* Before `chosen` nothing is looked at any more: it is at most the number of windows so far. */
        if (!chosen || grams[chosen - 1] != value)
            grams[chosen++] = value;
        if (end == count)
            return chosen;
        if (least + window == end)
            least = least_of(grams, end - window + 1, end + 1);
        else if (grams[end] <= value)
            least = end;
        value = grams[least];
    }
}

bool dp_overlap_sample(const dp_overlap_plan *plan, const uint64_t *features, size_t count,
                       dp_overlap_samples *samples) {
    size_t grams = plan->words && count >= plan->gram ? count - plan->gram + 1 : 0;
    samples->count = 0;
    /* At most two for each feature, and as much to sort with. */
    if (!dp_reserve(&samples->hash, &samples->room, 4 * count + 1, sizeof *samples->hash))
        return false;
    if (plan->sample)
        add_sampled(plan, features, count, samples);
    if (grams >= plan->window && grams) {
        uint64_t *to = samples->hash + samples->count;
        make_grams(features, grams, plan->gram, to);
        samples->count += winnow(to, grams, plan->window);
    }
    dp_sort64(samples->hash, samples->count, samples->hash + 2 * count);
    samples->count = dp_unique64(samples->hash, samples->count);
    return true;
}
