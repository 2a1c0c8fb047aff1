/* run_analysis.c - the near documents of a file, and what each threshold would remove.
 *
 * All pairs with a similarity of at least 0.5 are found once (doppel_batch_find_pairs). A document with the words of an
 * earlier one is paired with the first of them only. For any threshold, one pass over the pairs, in the order of the
 * documents, decides as doppel_batch_decide does: a document is removed if it is near an earlier one that is kept, and
 * its original is the most similar of those, the first where there are several. So a slider needs no second search.
 *
 * Documents that share boilerplate have pairs by the square of their number. The work is bounded: where more pairs are
 * found than pairs_allowed, or finding them takes too long, they are found again from a higher threshold on, and
 * lower ones are not offered. Should the run's own similarity be lower, doppel_batch_decide decides for it. */
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

/* Ends the search for pairs after its time. A run that is being deleted stays so. */
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
    p->reads = (doppel_input_options){.size = sizeof p->reads,
                                      .threads = input->threads,
                                      .text_key = input->text_key,
                                      .id_key = input->id_key,
                                      .stop = input->stop,
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
        status = doppel_batch_read(*batch, &input->path, 1, false, &counts, error);
    if (status == DOPPEL_OK && counts.unopened)
        status = fail(error, DOPPEL_ERROR_INPUT, "the file cannot be read to its end");
    result->documents = status == DOPPEL_OK ? doppel_batch_count(*batch) : 0;
    result->bad = counts.bad;
    result->whole = !input->limit || result->documents < input->limit;
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

/* Takes the documents that have the words of an earlier one out of the pairs, and sorts the others. */
static void prepare(pairs *p, decider *d, size_t *first, uint32_t *same) {
    size_t kept = 0, at = 0;
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
    for (uint32_t b = 0; b <= d->count; b++) {
        while (at < p->count && p->edge[at].b < b)
            at++;
        first[b] = at;
    }
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

static doppel_status decide_all(pairs *p, run_result *result, doppel_error *error) {
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

/* ---- texts ---- */

typedef struct text_reading {
    run_result *result;
    const run_input *input;
    text_buffer id;
    uint64_t position; /* of the next document */
    uint64_t written;  /* bytes of texts */
    size_t next;       /* of the documents shown */
    doppel_page_reader *pages;
} text_reading;

static int compare_documents(const void *left, const void *right) {
    uint32_t a = ((const run_document *)left)->position, b = ((const run_document *)right)->position;
    return a < b ? -1 : a > b;
}

static void show(run_result *result, uint32_t position) {
    result->shown[result->shown_count++] = (run_document){.position = position};
}

static void show_groups(run_result *result, const run_step *step) {
    for (int i = 0; i < step->largest_count; i++) {
        show(result, step->largest[i].kept);
        for (int k = 0; k < step->largest[i].members; k++)
            show(result, step->largest[i].member[k]);
    }
}

/* Makes the documents that are shown distinct, in the order of the file. */
static void sort_shown(run_result *result) {
    size_t kept = 0;
    qsort(result->shown, result->shown_count, sizeof *result->shown, compare_documents);
    for (size_t i = 0; i < result->shown_count; i++)
        if (!kept || result->shown[kept - 1].position != result->shown[i].position)
            result->shown[kept++] = result->shown[i];
    result->shown_count = kept;
    run_document *smaller = realloc(result->shown, (kept ? kept : 1) * sizeof *smaller);
    result->shown = smaller ? smaller : result->shown;
}

static bool list_shown(run_result *result) {
    enum { MOST = (RUN_STEPS + 1) * RUN_GROUPS * (RUN_MEMBERS + 1) + 2 * RUN_STEPS * RUN_EXAMPLES };
    result->shown = calloc(MOST, sizeof *result->shown);
    if (!result->shown)
        return false;
    show_groups(result, &result->own);
    for (int step = 0; step < RUN_STEPS; step++) {
        show_groups(result, &result->step[step]);
        for (int k = 0; k < result->examples[step]; k++) {
            show(result, result->example[step][k].a);
            show(result, result->example[step][k].b);
        }
    }
    sort_shown(result);
    return true;
}

/* The length of a text, or at most `most` bytes of it that end between characters. */
static size_t length_up_to(doppel_slice text, size_t most) {
    size_t length = text.length < most ? text.length : most;
    while (length && length < text.length && ((unsigned char)text.data[length] & 0xC0) == 0x80)
        length--;
    return length;
}

/* A copy of at most `most` bytes; false: no memory. */
static bool copy(doppel_slice from, size_t most, doppel_slice *to) {
    size_t length = length_up_to(from, most);
    char *bytes = malloc(length + 1);
    if (!bytes)
        return false;
    if (length)
        memcpy(bytes, from.data, length);
    *to = (doppel_slice){bytes, length};
    return true;
}

static doppel_status take_text(void *state, const doppel_document *document, doppel_output *output) {
    text_reading *t = state;
    run_result *result = t->result;
    doppel_page page = {0};
    (void)output;
    if (t->next == result->shown_count)
        return DOPPEL_ERROR_INTERRUPTED;
    if (result->shown[t->next].position != t->position++)
        return DOPPEL_OK;
    run_document *to = &result->shown[t->next++];
    if (doppel_document_text(t->pages, document, DOPPEL_CONTENT_MAIN, &page) != DOPPEL_OK)
        page.text = document->text;
    size_t length = length_up_to(page.text, RUN_TEXT);
    to->cut = length < page.text.length;
    to->text_length = (uint32_t)length;
    to->text_at = t->written;
    t->written += length;
    if (!file_write(result->texts, page.text.data, length))
        return DOPPEL_ERROR_IO;
    doppel_slice id =
        run_replace_path(document->id, doppel_slice_of(t->input->path), doppel_slice_of(t->input->name), &t->id);
    bool fine = !t->id.failed && copy(id, RUN_ID_SHOWN, &to->id) &&
                copy(page.title.length ? page.title : page.text, RUN_TITLE, &to->title);
    return fine ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status begin_texts(void *user, void **state) {
    *state = user;
    return DOPPEL_OK;
}

static doppel_status read_texts(const run_input *input, run_result *result, doppel_error *error) {
    text_reading t = {.result = result, .input = input};
    const doppel_input_options reads = {
        .size = sizeof reads, .threads = 1, .text_key = input->text_key, .id_key = input->id_key, .stop = input->stop};
    const doppel_work work = {.user = &t, .begin = begin_texts, .document = take_text};
    if (!list_shown(result) || doppel_page_reader_create(&t.pages) != DOPPEL_OK)
        return no_memory(error);
    result->texts = file_open_unnamed(input->tmp);
    if (result->texts < 0) {
        doppel_page_reader_free(t.pages);
        return fail(error, DOPPEL_ERROR_IO, "cannot make a temporary file");
    }
    doppel_status status =
        result->shown_count ? doppel_input_run(&input->path, 1, &reads, &work, NULL, error) : DOPPEL_OK;
    doppel_page_reader_free(t.pages);
    text_free(&t.id);
    if (status == DOPPEL_ERROR_INTERRUPTED && t.next == result->shown_count)
        return DOPPEL_OK;
    if (status == DOPPEL_OK && t.next < result->shown_count)
        return fail(error, DOPPEL_ERROR_INPUT, "the file changed while it was read");
    return status;
}

/* ---- an analysis ---- */

doppel_status run_analyse(const run_input *input, run_result *result, doppel_error *error) {
    int own = (int)ceil(input->similarity * 100 - 1e-6), lowest = own < LOWEST_STEP ? own : LOWEST_STEP;
    pairs p = {.input = input, .from = input->from < lowest ? lowest : input->from > 100 ? 100 : input->from};
    *result = (run_result){.texts = -1};
    doppel_status status = find_pairs(&p, result, error);
    if (status == DOPPEL_OK)
        status = decide_all(&p, result, error);
    if (status == DOPPEL_OK)
        status = read_texts(input, result, error);
    free(p.edge);
    return status;
}

void run_result_free(run_result *result) {
    if (!result)
        return;
    for (size_t i = 0; i < result->shown_count; i++) {
        free((void *)(uintptr_t)result->shown[i].id.data);
        free((void *)(uintptr_t)result->shown[i].title.data);
    }
    free(result->shown);
    if (result->texts >= 0)
        close(result->texts);
    *result = (run_result){.texts = -1};
}

bool run_document_text(const run_result *result, const run_document *document, text_buffer *to) {
    uint64_t done = 0;
    to->length = 0;
    if (!text_reserve(to, document->text_length + 1))
        return false;
    while (done < document->text_length) {
        ssize_t got =
            pread(result->texts, to->data + done, document->text_length - done, (off_t)(document->text_at + done));
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (uint64_t)got : 0;
    }
    to->length = done;
    return true;
}

const run_document *run_result_document(const run_result *result, uint32_t position) {
    const run_document wanted = {.position = position};
    return result->shown_count ? bsearch(&wanted, result->shown, result->shown_count, sizeof wanted, compare_documents)
                               : NULL;
}
