/* run_analysis.c - the near documents of a file, and what each threshold would remove.
 *
 * All pairs with a similarity of at least 0.5 are found once (doppel_batch_find_pairs). A document with the words of an
 * earlier one is paired with the first of them only. For any threshold, one pass over the pairs, in the order of the
 * documents, decides as doppel_batch_decide does: a document is removed if it is near an earlier one that is kept, and
 * its original is the most similar of those, the first where there are several. So a slider needs no second search.
 *
 * Documents that share boilerplate have pairs by the square of their number. The work is bounded: where more pairs are
 * found than pairs_allowed, or finding them takes too long, they are found again from a higher threshold on, and
 * lower ones are not offered. Should the run's own similarity be lower, doppel_batch_decide decides for it.
 *
 * The largest groups of each threshold are in the result. For all groups, and for one document, the decisions of a
 * threshold are made again (run_decide) from the pairs, which are in a file without a name: 12 bytes a pair and 12 a
 * document. */
#include "common/clock.h"
#include "server/files.h"
#include "server/runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOWEST_STEP = 50,          /* hundredths: thresholds begin here, or at the run's own similarity if that is lower */
    STEPS_APART = 10,          /* of the thresholds from which pairs are found */
    PAIRS_OF_A_FILE = 1 << 20, /* see pairs_allowed: about 5 seconds of one CPU */
    PAIRS_OF_A_DOCUMENT = 4,
    SEARCH_SECONDS = 10, /* finding pairs takes at most this and SEARCH_SHARE times as long as reading the file */
    SEARCH_SHARE = 4
};

static doppel_status fail(doppel_error *error, doppel_status status, const char *message) {
    *error = (doppel_error){.code = status};
    snprintf(error->message, sizeof error->message, "%s", message);
    return status;
}

static doppel_status no_memory(doppel_error *error) {
    return fail(error, DOPPEL_ERROR_MEMORY, "no memory");
}

static bool is_stopped(const run_input *input) {
    return __atomic_load_n(input->stop, __ATOMIC_RELAXED) == RUN_STOP;
}

/* ---- pairs ---- */

typedef struct pairs {
    const run_input *input;
    run_unread_list *unread; /* of the result */
    doppel_input_options reads;
    doppel_edge *edge;
    size_t count, room;
    size_t most;       /* pairs that are allowed */
    uint64_t deadline; /* of the search, microseconds; 0: none */
    int from;          /* the lowest step that is searched for; RUN_STEPS: none */
} pairs;

static int step_of(float similarity) {
    int step = (int)floorf(similarity * 100 + 1e-4f);
    return step < 0 ? 0 : step > 100 ? 100 : step;
}

static size_t pairs_allowed(const run_input *input, uint64_t documents) {
    uint64_t allowed = input->most_pairs ? input->most_pairs : PAIRS_OF_A_FILE + PAIRS_OF_A_DOCUMENT * documents;
    return allowed < RUN_EDGES ? (size_t)allowed : RUN_EDGES;
}

/* Adds pairs (doppel_batch_find_pairs), up to p->most. */
static doppel_status take_pairs(const doppel_near *near, size_t count, void *user) {
    pairs *p = user;
    for (size_t i = 0; i < count; i++) {
        if (p->count == p->most)
            return DOPPEL_ERROR_INTERRUPTED;
        if (p->count == p->room) {
            size_t room = p->room ? 2 * p->room : 1024;
            doppel_edge *grown = realloc(p->edge, room * sizeof *grown);
            if (!grown)
                return DOPPEL_ERROR_MEMORY;
            p->edge = grown;
            p->room = room;
        }
        float similarity = near[i].similarity < 1 ? (float)near[i].similarity : 1; /* not known: the same words */
        p->edge[p->count++] = (doppel_edge){(uint32_t)near[i].a, (uint32_t)near[i].b, similarity};
    }
    return DOPPEL_OK;
}

/* doppel_input_options.bad */
static void note_unread(const doppel_error *what, void *user) {
    pairs *p = user;
    run_unread_take(p->unread, what, p->input->path, p->input->name);
}

/* Ends the search for pairs once its time is up, unless the run is being deleted. */
static void watch_time(const char *stage, uint64_t done, uint64_t total, void *user) {
    pairs *p = user;
    int running = RUN_GO_ON;
    (void)stage, (void)done, (void)total;
    if (p->deadline && now_microseconds() > p->deadline)
        __atomic_compare_exchange_n(p->input->stop, &running, RUN_TOO_SLOW, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Whether watch_time ended the search; resets that. */
static bool took_too_long(const run_input *input) {
    int slow = RUN_TOO_SLOW;
    return __atomic_compare_exchange_n(input->stop, &slow, RUN_GO_ON, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Creates a batch, and reads the file into it. Free the batch in any case. */
static doppel_status read_batch(pairs *p, double similarity, run_result *result, doppel_batch **batch,
                                doppel_error *error) {
    const run_input *input = p->input;
    p->unread = &result->unread;
    run_unread_free(p->unread); /* of an earlier reading */
    p->reads = (doppel_input_options){.size = sizeof p->reads,
                                      .threads = input->threads,
                                      .text_key = input->text_key,
                                      .id_key = input->id_key,
                                      .stop = input->stop,
                                      .bad = note_unread,
                                      .user = p,
                                      .refuse_plain = input->several,
                                      .refuse_bad = !input->limit};
    const doppel_batch_options options = {.size = sizeof options,
                                          .similarity = similarity,
                                          .limit = input->limit,
                                          .tmp = input->tmp,
                                          .memory = RUN_MEMORY,
                                          .progress = watch_time,
                                          .user = p,
                                          .input = &p->reads};
    doppel_input_counts counts = {0};
    *batch = NULL;
    doppel_status status = doppel_batch_create(&options, batch, error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(*batch, input->inputs, input->input_count, false, &counts, error);
    /* The beginning of a file that is still coming in may end within its array. */
    result->cut = counts.unopened && input->limit && counts.documents;
    if (status == DOPPEL_OK && counts.unopened && !input->several && !result->cut)
        status = fail(error, DOPPEL_ERROR_INPUT, "the file cannot be read to its end");
    result->documents = status == DOPPEL_OK ? doppel_batch_count(*batch) : 0;
    result->bad = counts.bad;
    result->whole = !input->limit || result->documents < input->limit;
    if (status == DOPPEL_OK) {
        doppel_batch_stats stats;
        doppel_batch_get_stats(*batch, &stats);
        result->empty = stats.empty;
    }
    if (status == DOPPEL_OK && result->documents > UINT32_MAX)
        status = fail(error, DOPPEL_ERROR_MEMORY, "more documents than one run takes");
    return status;
}

/* The step to begin at where p->from has too many pairs: the lowest that has at most half of the pairs allowed
 * among the pairs found so far. */
static int raise_from(const pairs *p) {
    size_t at[RUN_STEPS + 1] = {0};
    for (size_t i = 0; i < p->count; i++)
        at[step_of(p->edge[i].similarity)]++;
    for (int step = 99; step >= 0; step--)
        at[step] += at[step + 1];
    int raised = p->from - p->from % STEPS_APART + STEPS_APART;
    while (raised < RUN_STEPS && at[raised] > p->most / 2)
        raised += STEPS_APART;
    return raised < RUN_STEPS ? raised : RUN_STEPS;
}

/* The same where finding pairs takes too long: the run's own similarity, or none. */
static int raise_from_slow(const pairs *p) {
    int own = (int)(p->input->similarity * 100 + 1e-6);
    return p->from < own ? own : RUN_STEPS;
}

/* The similarity from which pairs are searched for: that of p->from, or the run's own just below it. */
static double lowest_similarity(const pairs *p) {
    double own = p->input->similarity, lowest = p->from / 100.0;
    return own < lowest && own > lowest - 0.01 ? own : lowest;
}

/* Finds the pairs from p->from on. If there are too many, or it takes too long, raises p->from. */
static doppel_status find_pairs_once(pairs *p, run_result *result, doppel_error *error) {
    const run_input *input = p->input;
    doppel_batch *batch;
    uint64_t began = now_microseconds();
    doppel_status status = read_batch(p, lowest_similarity(p), result, &batch, error);
    uint64_t read = now_microseconds(), most = SEARCH_SECONDS * 1000000ULL + SEARCH_SHARE * (read - began);
    p->count = 0;
    p->most = pairs_allowed(input, result->documents);
    p->deadline = read + (input->most_microseconds ? input->most_microseconds : most);
    if (status == DOPPEL_OK)
        status = doppel_batch_find_pairs(batch, true, take_pairs, p, error);
    p->deadline = 0;
    doppel_batch_free(batch);
    if (took_too_long(input))
        p->from = raise_from_slow(p);
    else if (status == DOPPEL_ERROR_INTERRUPTED && p->count == p->most)
        p->from = raise_from(p);
    else
        return status;
    return is_stopped(input) ? DOPPEL_ERROR_INTERRUPTED : DOPPEL_OK;
}

static doppel_status find_pairs(pairs *p, run_result *result, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    int tried = 0;
    while (status == DOPPEL_OK && tried != p->from && p->from < RUN_STEPS) {
        tried = p->from;
        status = find_pairs_once(p, result, error);
    }
    if (p->from == RUN_STEPS)
        p->count = 0;
    return status;
}

/* ---- decisions ---- */

typedef struct decider {
    uint32_t count;
    const doppel_edge *edge; /* in the order of b, then of a */
    const size_t *first;     /* of each b, and one more */
    const uint32_t *same;    /* the first document with the same words, or itself */
    uint32_t *original;      /* the kept document that each is a copy of, or itself */
    float *similarity;       /* to it; 0 for a kept document */
    /* For a removed document, the most similar kept one so far: the original of a later document with the same words.
     */
    uint32_t *nearest;
    float *nearest_similarity;
} decider;

/* Finds the most similar earlier document that is kept; of several, the first. */
static void find_original(const decider *d, uint32_t b, float threshold) {
    for (size_t i = d->first[b]; i < d->first[b + 1]; i++) {
        const doppel_edge *e = &d->edge[i];
        if (e->similarity >= threshold && d->original[e->a] == e->a && e->similarity > d->similarity[b]) {
            d->original[b] = e->a;
            d->similarity[b] = e->similarity;
        }
    }
    d->nearest[b] = d->original[b];
    d->nearest_similarity[b] = d->similarity[b];
}

/* A document is kept: it may be nearer to earlier, removed ones than their originals are. */
static void note_nearest(const decider *d, uint32_t b, float threshold) {
    for (size_t i = d->first[b]; i < d->first[b + 1]; i++) {
        const doppel_edge *e = &d->edge[i];
        if (e->similarity >= threshold && e->similarity > d->nearest_similarity[e->a]) {
            d->nearest[e->a] = b;
            d->nearest_similarity[e->a] = e->similarity;
        }
    }
}

/* Decides which documents are removed at a threshold. */
static void decide(const decider *d, float threshold) {
    for (uint32_t b = 0; b < d->count; b++) {
        uint32_t same = d->same[b];
        d->original[b] = b;
        d->similarity[b] = 0;
        if (same == b) {
            find_original(d, b, threshold);
        } else {
            bool kept = d->original[same] == same;
            d->original[b] = kept ? same : d->nearest[same];
            d->similarity[b] = kept ? 1 : d->nearest_similarity[same];
        }
        if (d->original[b] == b)
            note_nearest(d, b, threshold);
    }
}

/* Takes the decisions of doppel_batch_decide at the run's own similarity. */
static doppel_status decide_by_batch(const decider *d, pairs *p, run_result *result, doppel_error *error) {
    doppel_batch *batch;
    doppel_status status = read_batch(p, p->input->similarity, result, &batch, error);
    if (status == DOPPEL_OK)
        status = doppel_batch_decide(batch, error);
    if (status == DOPPEL_OK && result->documents != d->count)
        status = fail(error, DOPPEL_ERROR_INPUT, "the file changed while it was read");
    for (uint32_t b = 0; b < d->count && status == DOPPEL_OK; b++) {
        doppel_near near;
        doppel_batch_get(batch, b, &near);
        d->original[b] = (uint32_t)near.a;
        d->similarity[b] = near.a == b ? 0 : (float)near.similarity;
    }
    doppel_batch_free(batch);
    return status;
}

static int compare_edges(const void *left, const void *right) {
    const doppel_edge *a = left, *b = right;
    if (a->b != b->b)
        return a->b < b->b ? -1 : 1;
    return a->a < b->a ? -1 : a->a > b->a;
}

/* Where the pairs of each b begin, and their end. */
static void index_pairs(const doppel_edge *edge, size_t count, uint32_t documents, size_t *first) {
    size_t at = 0;
    for (uint32_t b = 0; b <= documents; b++) {
        while (at < count && edge[at].b < b)
            at++;
        first[b] = at;
    }
}

/* Takes the documents that have the words of an earlier one out of the pairs, and sorts the others. */
static void prepare(pairs *p, decider *d, size_t *first, uint32_t *same) {
    size_t kept = 0;
    if (p->count)
        qsort(p->edge, p->count, sizeof *p->edge, compare_edges);
    for (uint32_t i = 0; i < d->count; i++)
        same[i] = i;
    for (size_t i = 0; i < p->count; i++)
        if (p->edge[i].similarity >= 1 && same[p->edge[i].b] == p->edge[i].b)
            same[p->edge[i].b] = same[p->edge[i].a];
    for (size_t i = 0; i < p->count; i++) {
        doppel_edge e = p->edge[i];
        if (e.similarity >= 1)
            continue;
        e.a = same[e.a];
        if (same[e.b] == e.b && e.a < e.b)
            p->edge[kept++] = e;
    }
    p->count = kept;
    index_pairs(p->edge, p->count, d->count, first);
    d->edge = p->edge;
    d->first = first;
    d->same = same;
}

/* ---- groups and examples ---- */

static void choose_examples(const decider *d, const pairs *p, run_result *result) {
    for (size_t i = 0; i < p->count; i++) {
        int step = step_of(d->edge[i].similarity);
        if (result->examples[step] < RUN_EXAMPLES)
            result->example[step][result->examples[step]++] = d->edge[i];
    }
}

/* Arrays of a number for each document. */
typedef struct group_counts {
    uint32_t *size; /* of the group of a kept document */
    uint8_t *place; /* of a group among the largest ones, from 1; 0: it is not one of them */
} group_counts;

/* Adds a group to the largest ones, where the larger come first and, of the same size, those whose kept document comes
 * first. */
static void add_group(run_step *step, uint32_t kept, uint32_t size) {
    int at = step->largest_count;
    while (at > 0 && step->largest[at - 1].size < size)
        at--;
    if (at == RUN_GROUPS)
        return;
    int moved = step->largest_count < RUN_GROUPS ? step->largest_count : RUN_GROUPS - 1;
    memmove(&step->largest[at + 1], &step->largest[at], (size_t)(moved - at) * sizeof *step->largest);
    step->largest[at] = (run_group){.kept = kept, .size = size};
    step->largest_count = moved + 1;
}

static void add_members(const decider *d, const group_counts *counts, run_step *step) {
    for (uint32_t b = 0; b < d->count; b++) {
        int place = d->original[b] != b ? counts->place[d->original[b]] : 0;
        run_group *g = place ? &step->largest[place - 1] : NULL;
        if (!g || g->members == RUN_MEMBERS)
            continue;
        g->member[g->members] = b;
        g->similarity[g->members++] = d->similarity[b];
    }
}

/* Counts what the decisions remove, and lists the largest groups. */
static void summarise(const decider *d, const group_counts *counts, run_step *step) {
    memset(counts->size, 0, d->count * sizeof *counts->size);
    for (uint32_t b = 0; b < d->count; b++) {
        counts->size[d->original[b]]++;
        step->removed += d->original[b] != b;
        step->identical += d->original[b] != b && d->similarity[b] >= 1;
    }
    for (uint32_t i = 0; i < d->count; i++)
        if (counts->size[i] >= 2) {
            step->groups++;
            add_group(step, i, counts->size[i]);
        }
    for (int i = 0; i < step->largest_count; i++)
        counts->place[step->largest[i].kept] = (uint8_t)(i + 1);
    add_members(d, counts, step);
    for (int i = 0; i < step->largest_count; i++)
        counts->place[step->largest[i].kept] = 0;
}

/* Decides at the run's own similarity. */
static doppel_status decide_own(const decider *d, const group_counts *counts, pairs *p, run_result *result,
                                doppel_error *error) {
    bool known = p->from < RUN_STEPS && lowest_similarity(p) <= p->input->similarity;
    doppel_status status = DOPPEL_OK;
    if (known)
        decide(d, (float)p->input->similarity);
    else
        status = decide_by_batch(d, p, result, error);
    if (status == DOPPEL_OK)
        summarise(d, counts, &result->own);
    return status;
}

static doppel_status decide_steps(const decider *d, const group_counts *counts, pairs *p, run_result *result,
                                  doppel_error *error) {
    for (int step = p->from; step < RUN_STEPS; step++) {
        if (is_stopped(p->input))
            return DOPPEL_ERROR_INTERRUPTED;
        decide(d, (float)step / 100);
        summarise(d, counts, &result->step[step]);
    }
    result->from = p->from;
    choose_examples(d, p, result);
    return decide_own(d, counts, p, result, error);
}

/* ---- pairs and the run's own decisions, in a file ---- */

/* The file has the pairs, then, for each document, the first with the same words, its original and the similarity to
 * it at the run's own similarity. */
static uint64_t same_at(const run_result *result) {
    return result->pair_count * sizeof(doppel_edge);
}

static uint64_t own_at(const run_result *result, int array) {
    return same_at(result) + result->documents * sizeof(uint32_t) * (1 + (uint64_t)array);
}

/* The decisions are the run's own. */
static doppel_status keep_pairs(const decider *d, const pairs *p, run_result *result) {
    size_t bytes = d->count * sizeof(uint32_t);
    result->pair_count = p->count;
    result->pairs = file_open_unnamed(p->input->tmp);
    bool fine = result->pairs >= 0 && file_write_at(result->pairs, p->edge, p->count * sizeof *p->edge, 0) &&
                file_write_at(result->pairs, d->same, bytes, same_at(result)) &&
                file_write_at(result->pairs, d->original, bytes, own_at(result, 0)) &&
                file_write_at(result->pairs, d->similarity, bytes, own_at(result, 1));
    return fine ? DOPPEL_OK : DOPPEL_ERROR_IO;
}

/* Decides by the pairs of the file. */
static bool decide_again(const run_result *result, float threshold, run_decisions *to) {
    size_t documents = (size_t)to->count + 1, count = (size_t)result->pair_count;
    doppel_edge *edge = malloc((count + 1) * sizeof *edge);
    size_t *first = malloc((documents + 1) * sizeof *first);
    uint32_t *same = malloc(documents * sizeof *same);
    decider d = {.count = to->count, .edge = edge, .first = first, .same = same};
    d.original = to->original;
    d.similarity = to->similarity;
    d.nearest = malloc(documents * sizeof *d.nearest);
    d.nearest_similarity = malloc(documents * sizeof *d.nearest_similarity);
    bool fine = edge && first && same && d.nearest && d.nearest_similarity &&
                file_read_at(result->pairs, edge, count * sizeof *edge, 0) &&
                file_read_at(result->pairs, same, to->count * sizeof *same, same_at(result));
    if (fine) {
        index_pairs(edge, count, to->count, first);
        decide(&d, threshold);
    }
    free(edge);
    free(first);
    free(same);
    free(d.nearest);
    free(d.nearest_similarity);
    return fine;
}

void run_decisions_free(run_decisions *d) {
    free(d->original);
    free(d->similarity);
    *d = (run_decisions){0};
}

bool run_decide(const run_result *result, int step, run_decisions *to) {
    size_t bytes = (size_t)result->documents * sizeof(uint32_t);
    *to = (run_decisions){.count = (uint32_t)result->documents};
    to->original = malloc(bytes + sizeof *to->original);
    to->similarity = malloc(bytes + sizeof *to->similarity);
    bool fine = to->original && to->similarity;
    if (fine && step < RUN_STEPS)
        fine = decide_again(result, (float)step / 100, to);
    else if (fine)
        fine = file_read_at(result->pairs, to->original, bytes, own_at(result, 0)) &&
               file_read_at(result->pairs, to->similarity, bytes, own_at(result, 1));
    if (!fine)
        run_decisions_free(to);
    return fine;
}

/* ---- all groups of the decisions of a threshold ---- */

static int compare_groups(const void *left, const void *right) {
    const run_listed_group *a = left, *b = right;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->kept < b->kept ? -1 : a->kept > b->kept;
}

/* Finds the groups, or the one whose kept document is `only`; false: no memory. */
static bool find_groups(const run_decisions *d, uint64_t only, run_group_list *list) {
    uint32_t *size = calloc((size_t)d->count + 1, sizeof *size);
    for (uint32_t b = 0; size && b < d->count; b++)
        list->all += ++size[d->original[b]] == 2;
    list->group = size ? calloc((size_t)list->all + 1, sizeof *list->group) : NULL;
    for (uint32_t i = 0; list->group && i < d->count; i++)
        if (size[i] >= 2 && (only == RUN_ALL_GROUPS || i == only))
            list->group[list->count++] = (run_listed_group){.kept = i, .size = size[i]};
    free(size);
    return list->group;
}

/* Lists the first copies of each group; false: no memory. */
static bool find_members(const run_decisions *d, size_t most, run_group_list *list) {
    uint32_t *place = calloc((size_t)d->count + 1, sizeof *place);
    size_t room = 0;
    for (size_t i = 0; place && i < list->count; i++) {
        run_listed_group *g = &list->group[i];
        g->first = room;
        room += g->size - 1 < most ? g->size - 1 : most;
        place[g->kept] = (uint32_t)i + 1;
    }
    list->member = place ? calloc(room + 1, sizeof *list->member) : NULL;
    for (uint32_t b = 0; list->member && b < d->count; b++) {
        uint32_t group = d->original[b] != b ? place[d->original[b]] : 0;
        run_listed_group *g = group ? &list->group[group - 1] : NULL;
        if (g && g->members < most)
            list->member[g->first + g->members++] = (run_member){b, d->similarity[b]};
    }
    free(place);
    return list->member;
}

bool run_list_groups(const run_decisions *d, const run_group_query *query, run_group_list *list) {
    *list = (run_group_list){0};
    bool fine = find_groups(d, query->only, list);
    if (fine && list->count) {
        qsort(list->group, list->count, sizeof *list->group, compare_groups);
        size_t skipped = query->after < list->count ? (size_t)query->after : list->count;
        size_t left = list->count - skipped;
        list->count = left < query->limit ? left : query->limit;
        memmove(list->group, list->group + skipped, list->count * sizeof *list->group);
    }
    fine = fine && find_members(d, query->copies, list);
    if (!fine)
        run_group_list_free(list);
    return fine;
}

void run_group_list_free(run_group_list *list) {
    free(list->group);
    free(list->member);
    *list = (run_group_list){0};
}

/* ---- all decisions ---- */

/* Which documents are in a pair, or in a group of the run's own decisions; NULL: no memory. */
static uint8_t *find_wanted(const decider *d, const pairs *p) {
    uint8_t *wanted = calloc((size_t)d->count + 1, 1);
    for (size_t i = 0; wanted && i < p->count; i++)
        wanted[p->edge[i].a] = wanted[p->edge[i].b] = 1;
    for (uint32_t b = 0; wanted && b < d->count; b++) {
        if (d->same[b] != b)
            wanted[b] = wanted[d->same[b]] = 1;
        if (d->original[b] != b)
            wanted[b] = wanted[d->original[b]] = 1;
    }
    return wanted;
}

/* *wanted, which is to be freed, says which documents are shown. */
static doppel_status decide_all(pairs *p, run_result *result, uint8_t **wanted, doppel_error *error) {
    decider d = {.count = (uint32_t)result->documents};
    size_t documents = (size_t)d.count + 1;
    size_t *first = calloc(documents, sizeof *first);
    uint32_t *same = calloc(documents, sizeof *same);
    d.original = calloc(documents, sizeof *d.original);
    d.similarity = calloc(documents, sizeof *d.similarity);
    group_counts counts = {calloc(documents, sizeof *counts.size), calloc(documents, sizeof *counts.place)};
    d.nearest = calloc(documents, sizeof *d.nearest);
    d.nearest_similarity = calloc(documents, sizeof *d.nearest_similarity);
    doppel_status status;
    if (first && same && d.original && d.similarity && d.nearest && d.nearest_similarity && counts.size &&
        counts.place) {
        prepare(p, &d, first, same);
        status = decide_steps(&d, &counts, p, result, error);
        if (status == DOPPEL_OK)
            status = keep_pairs(&d, p, result);
        if (status == DOPPEL_OK && !(*wanted = find_wanted(&d, p)))
            status = no_memory(error);
    } else {
        status = no_memory(error);
    }
    free(first);
    free(same);
    free(counts.size);
    free(counts.place);
    free(d.original);
    free(d.similarity);
    free(d.nearest);
    free(d.nearest_similarity);
    return status;
}

/* ---- an analysis ---- */

doppel_status run_analyse(const run_input *input, run_result *result, doppel_error *error) {
    int own = (int)ceil(input->similarity * 100 - 1e-6), lowest = own < LOWEST_STEP ? own : LOWEST_STEP;
    pairs p = {.input = input, .from = input->from < lowest ? lowest : input->from > 100 ? 100 : input->from};
    uint8_t *wanted = NULL;
    *result = (run_result){.kept = -1, .pairs = -1};
    doppel_status status = find_pairs(&p, result, error);
    if (status == DOPPEL_OK)
        status = decide_all(&p, result, &wanted, error);
    free(p.edge);
    if (status == DOPPEL_OK)
        status = run_documents_write(input, result, wanted, error);
    free(wanted);
    return status;
}

void run_result_free(run_result *result) {
    if (!result)
        return;
    run_unread_free(&result->unread);
    if (result->kept >= 0)
        close(result->kept);
    if (result->pairs >= 0)
        close(result->pairs);
    *result = (run_result){.kept = -1, .pairs = -1};
}
