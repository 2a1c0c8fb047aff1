/* titles_groups.c - the titles of one length, and where they are cut into segments.
 *
 * Any cuts are exact; good ones make segments that few titles share. At first all segments are equally long. Titles of
 * a site tend to have an end or a beginning in common, though, and whole segments inside it lead to all titles of the
 * site. So once there are many, the cuts are chosen on which the fewest pairs of a sample agree, and what many titles
 * have in common becomes part of one long segment. All titles of the length are then put into the table once more; what
 * it held of the former cuts is never asked for again. This happens with 256 titles and each time there are four times
 * as many, so that what is left over stays below a third. */
#include "index/titles_store.h"

#include <math.h>
#include <stdlib.h>

/* PLACES: a power of two, 2^10, that the sample does not fill. FEW_PAIRS: cuts on which at most so many of the sample's
 * 32640 pairs agree are good enough. LEAST_STEPS: cuts are chosen among so many places, or three a segment. */
enum { SAMPLE = 256, TIMES = 4, PLACES = 1024, FEW_PAIRS = 16, LEAST_STEPS = 32 };

/* ---- groups ---- */

size_t dp_titles_group_at(const dp_titles_index *index, size_t length) {
    size_t low = 0, high = index->group_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (index->groups[middle]->length < length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One segment more than the largest distance that a title of this length can have to one that is found: then one of
 * them is untouched by the edits. The longer of the two, of length n, allows d(n), and must be within d(n) of this
 * length; n - d(n) never falls, so that the first n that is not within is the end. */
static uint32_t segments_for(size_t length, double min) {
    size_t most = 0, allowed;
    for (size_t longer = length; dp_edit_allowed(longer, min, &allowed) && longer - length <= allowed; longer++) {
        most = allowed > most ? allowed : most;
        if (most + 1 > DP_TITLES_SEGMENTS || (most + 1) * DP_TITLES_SHORTEST > length)
            return 0;
    }
    return (uint32_t)most + 1;
}

static dp_titles_group *group_create(size_t length, double min) {
    dp_titles_group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->length = (uint32_t)length;
    group->segments = segments_for(length, min);
    group->recut_at = group->segments > 1 ? SAMPLE : SIZE_MAX;
    for (size_t i = 0; group->segments && i <= group->segments; i++)
        group->cuts.at[i] = (uint32_t)(length * i / group->segments);
    return group;
}

void dp_titles_group_free(dp_titles_group *group) {
    free(group->entries);
    free(group);
}

dp_titles_group *dp_titles_group_for(dp_titles_index *index, size_t length) {
    size_t at = dp_titles_group_at(index, length);
    if (at == index->group_count || index->groups[at]->length != length) {
        if (!dp_reserve(&index->groups, &index->group_capacity, index->group_count + 1, sizeof *index->groups))
            return NULL;
        dp_titles_group *group = group_create(length, index->min);
        if (!group)
            return NULL;
        memmove(index->groups + at + 1, index->groups + at, (index->group_count - at) * sizeof *index->groups);
        index->groups[at] = group;
        index->group_count++;
    }
    dp_titles_group *group = index->groups[at];
    return dp_reserve(&group->entries, &group->capacity, group->count + 1, sizeof *group->entries) ? group : NULL;
}

/* ---- cuts ---- */

/* The sums of titles of one length, one title after the other, and a small table for counting. */
struct sample {
    size_t length;
    uint64_t base; /* of the index */
    uint64_t *sums;
    uint64_t keys[PLACES];
    uint16_t counts[PLACES];
};

static bool sample_take(const dp_titles_index *index, const dp_titles_group *group, struct sample *sample) {
    dp_titles_text text;
    sample->length = group->length;
    sample->base = index->base;
    sample->sums = malloc(SAMPLE * (sample->length + 1) * sizeof *sample->sums);
    if (!sample->sums || !dp_titles_text_room(&text, index, group->length))
        return false;
    for (size_t i = 0; i < SAMPLE; i++) {
        dp_titles_text_load(&text, &index->entries[group->entries[i * group->count / SAMPLE]]);
        memcpy(sample->sums + i * (sample->length + 1), text.sums, (sample->length + 1) * sizeof *text.sums);
    }
    dp_titles_text_free(&text);
    return true;
}

/* How many pairs of the sample have the same from `start` to `end`. */
static size_t pairs_alike(struct sample *sample, size_t start, size_t end) {
    uint64_t power = dp_titles_power(sample->base, end - start);
    size_t pairs = 0;
    memset(sample->counts, 0, sizeof sample->counts);
    for (size_t i = 0; i < SAMPLE; i++) {
        const uint64_t *sums = sample->sums + i * (sample->length + 1);
        uint64_t key = dp_titles_part(sums, start, end, power);
        size_t at = (key ^ key >> 32) * 0x9E3779B97F4A7C15u >> 54;
        while (sample->counts[at] && sample->keys[at] != key)
            at = (at + 1) % PLACES;
        sample->keys[at] = key;
        pairs += sample->counts[at]++;
    }
    return pairs;
}

/* What a segment costs: the pairs that agree on it, and, since a sample knows little of rare ones, those that would if
 * each letter were one of four. */
static double segment_cost(struct sample *sample, size_t start, size_t end) {
    const double pairs = SAMPLE * (SAMPLE - 1) / 2;
    return (double)pairs_alike(sample, start, end) + ldexp(pairs, -2 * (int)(end - start));
}

/* The cheapest cuts, at some of the places j * length / steps: best[k][j] is the cost of k segments up to place j. */
struct cutting {
    struct sample *sample;
    size_t steps, segments;
    double *best;   /* (segments + 1) rows of steps + 1 */
    uint16_t *from; /* where the last of them starts */
};

static size_t place(const struct cutting *cutting, size_t j) {
    return cutting->sample->length * j / cutting->steps;
}

static void fill_best(struct cutting *cutting) {
    size_t row = cutting->steps + 1;
    for (size_t i = 0; i < (cutting->segments + 1) * row; i++)
        cutting->best[i] = INFINITY;
    cutting->best[0] = 0;
    for (size_t end = 1; end <= cutting->steps; end++) {
        for (size_t start = 0; start < end; start++) {
            double cost = segment_cost(cutting->sample, place(cutting, start), place(cutting, end));
            for (size_t k = 1; k <= cutting->segments; k++) {
                double sum = cutting->best[(k - 1) * row + start] + cost;
                if (sum < cutting->best[k * row + end]) {
                    cutting->best[k * row + end] = sum;
                    cutting->from[k * row + end] = (uint16_t)start;
                }
            }
        }
    }
}

/* Gives the cost, infinite when there is no memory. */
static double cheapest(struct sample *sample, size_t segments, dp_titles_cuts *cuts) {
    size_t wanted = 3 * segments < LEAST_STEPS ? LEAST_STEPS : 3 * segments;
    struct cutting cutting = {.sample = sample, .segments = segments};
    cutting.steps = sample->length < wanted ? sample->length : wanted;
    size_t row = cutting.steps + 1, cells = (segments + 1) * row;
    cutting.best = malloc(cells * sizeof *cutting.best);
    cutting.from = calloc(cells, sizeof *cutting.from);
    double cost = INFINITY;
    if (cutting.best && cutting.from) {
        fill_best(&cutting);
        cost = cutting.best[segments * row + cutting.steps];
        size_t at = cutting.steps;
        for (size_t k = segments + 1; k-- > 0; at = cutting.from[k * row + at])
            cuts->at[k] = (uint32_t)place(&cutting, at);
    }
    free(cutting.best);
    free(cutting.from);
    return cost;
}

static bool choose(struct sample *sample, const dp_titles_group *group, dp_titles_cuts *cuts) {
    double now = 0;
    for (size_t i = 0; i < group->segments; i++)
        now += segment_cost(sample, group->cuts.at[i], group->cuts.at[i + 1]);
    return now > FEW_PAIRS && cheapest(sample, group->segments, cuts) < now / 2;
}

/* Puts all titles of a group into the table by other cuts. */
static bool put_all(dp_titles_index *index, const dp_titles_group *group, const dp_titles_cuts *cuts) {
    dp_titles_text text;
    if (!dp_titles_text_room(&text, index, group->length))
        return false;
    bool done = true;
    for (size_t i = 0; i < group->count && done; i++) {
        dp_titles_text_load(&text, &index->entries[group->entries[i]]);
        done = dp_titles_table_reserve(&index->table, group->segments) &&
               dp_titles_add_segments(index, group, cuts, group->entries[i], text.sums);
    }
    dp_titles_text_free(&text);
    return done;
}

void dp_titles_group_recut(dp_titles_index *index, dp_titles_group *group) {
    struct sample sample = {0};
    dp_titles_cuts cuts = {.version = ++group->versions};
    group->recut_at = TIMES * group->count;
    if (sample_take(index, group, &sample) && choose(&sample, group, &cuts) && put_all(index, group, &cuts))
        group->cuts = cuts;
    free(sample.sums);
}
