/* samples.c - the hashes by which documents are paired.
 *
 * For containment: the features that are 0 mod `sample`. Whether one is chosen depends on itself alone, so a feature
 * that two documents share is chosen in both or in neither. The smallest of a document's are its keys; the share of the
 * keys that another document has, whether as keys or not, estimates the containment in it.
 *
 * For runs of N words: grams that are chosen by winnowing (lib/sketch/winnow.c), of which every shared run has
 * one. */
#include "kernel/kernel.h"
#include "overlap/overlap.h"
#include "sketch/sketch.h"

#include <math.h>

/* The default: a copied paragraph, which is a small part of a long essay, or a fifth of a text in pieces. */
#define USUAL_CONTAINMENT 0.2
#define USUAL_WORDS 30
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
    size_t features = (size_t)words - recipe->n + 1, window = dp_winnow_window((size_t)words);
    plan->window = window < features ? window : features;
    plan->gram = features - plan->window + 1;
    plan->words = (size_t)words;
    /* Passages explain a pair: for one by containment, everything shared. */
    if (!plan->sample)
        plan->passage = plan->words;
    return DOPPEL_OK;
}

doppel_status dp_overlap_plan_make(const doppel_overlap_options *options, const doppel_recipe *recipe,
                                   dp_overlap_plan *plan, doppel_error *error) {
    uint64_t words = options->words;
    *plan = (dp_overlap_plan){.containment = options->containment};
    if (!(options->containment >= 0 && options->containment <= 1))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "containment is above 0 and at most 1, not %g", options->containment);
    if (!words && plan->containment <= 0) {
        plan->containment = USUAL_CONTAINMENT;
        words = !recipe->text.chars && recipe->n <= USUAL_WORDS ? USUAL_WORDS : 0;
    }
    if (plan->containment > 0) {
        plan->sample = options->sample ? options->sample : USUAL_SAMPLE;
        double keys = ceil(KEYS_SHARED / plan->containment);
        plan->keys = keys < LEAST_KEYS ? LEAST_KEYS : keys > UINT32_MAX ? UINT32_MAX : (size_t)keys;
    }
    plan->passage = recipe->text.chars ? USUAL_PASSAGE : recipe->n;
    return words ? plan_words(plan, words, recipe, error) : DOPPEL_OK;
}

static void add_sampled(const dp_overlap_plan *plan, const uint64_t *features, size_t count,
                        dp_overlap_samples *samples) {
    for (size_t i = 0; i < count; i++)
        if (features[i] % plan->sample == 0)
            samples->hash[samples->count++] = features[i] & ~(uint64_t)1;
}

bool dp_overlap_sample(const dp_overlap_plan *plan, const uint64_t *features, size_t count,
                       dp_overlap_samples *samples) {
    size_t grams = plan->words && count >= plan->gram ? count - plan->gram + 1 : 0;
    samples->count = 0;
    /* At most two for each feature, and as much to sort with. */
    if (!dp_reserve(&samples->hash, &samples->room, 4 * count + 1, sizeof *samples->hash) ||
        !dp_reserve(&samples->chosen, &samples->chosen_room, grams + 1, sizeof *samples->chosen))
        return false;
    if (plan->sample)
        add_sampled(plan, features, count, samples);
    if (grams >= plan->window && grams) {
        uint64_t *to = samples->hash + samples->count;
        dp_winnowed *chosen = samples->chosen;
        dp_grams_make(features, grams, plan->gram, to);
        size_t found = dp_winnow(to, grams, plan->window, chosen);
        /* Grams are chosen in ascending order of place: one is read before its place is written to. */
        for (size_t i = 0; i < found; i++)
            to[i] = to[chosen[i].gram];
        samples->count += found;
    }
    dp_sort64(samples->hash, samples->count, samples->hash + 2 * count);
    samples->count = dp_unique64(samples->hash, samples->count);
    return true;
}
