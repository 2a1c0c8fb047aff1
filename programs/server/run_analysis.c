/* run_analysis.c - what is in a file: pairs of near documents, and from them what each threshold would remove.
 *
 * All pairs from FLOOR on are found once (doppel_batch_find_pairs). A document whose words are an earlier one's is
 * paired with the first of its kind only, and shares its fate. For any threshold then one walk over the pairs, in the
 * order of the documents, decides as doppel_batch_decide does: a document goes if it is near an earlier one that stays,
 * and its original is the most similar of those, the first where there are several. So a slider needs no second search.
 * Where there are more pairs than are kept, the least similar ones are dropped, and the thresholds begin above them. */
#include "server/runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOOR 0.5

static doppel_status fail(doppel_error *error, doppel_status status, const char *message) {
    *error = (doppel_error){.code = status};
    snprintf(error->message, sizeof error->message, "%s", message);
    return status;
}

/* ---- pairs ---- */

typedef struct pairs {
    doppel_edge *edge;
    size_t count, room;
    int from; /* the least step that is complete */
} pairs;

static int step_of(float similarity) {
    int step = (int)floorf(similarity * 100 + 1e-4f);
    return step < 0 ? 0 : step > 100 ? 100 : step;
}

/* Drops the least similar half. */
static void drop_half(pairs *p) {
    size_t at[RUN_STEPS] = {0}, kept = 0, all = 0;
    int step = 100;
    for (size_t i = 0; i < p->count; i++)
        at[step_of(p->edge[i].similarity)]++;
    for (all = at[100]; step > 0 && all + at[step - 1] <= RUN_EDGES / 2; all += at[--step])
        ;
    for (size_t i = 0; i < p->count; i++)
        if (step_of(p->edge[i].similarity) >= step)
            p->edge[kept++] = p->edge[i];
    p->count = kept;
    p->from = step > p->from ? step : p->from;
}

static doppel_status take_pairs(const doppel_near *near, size_t count, void *user) {
    pairs *p = user;
    for (size_t i = 0; i < count; i++) {
        float similarity = near[i].similarity < 1 ? (float)near[i].similarity : 1; /* not known: the same words */
        if (p->count == RUN_EDGES)
            drop_half(p);
        if (p->count == RUN_EDGES)
            return DOPPEL_ERROR_MEMORY; /* all of them are the same */
        if (p->count == p->room) {
            size_t room = p->room ? 2 * p->room : 1024;
            doppel_edge *grown = realloc(p->edge, room * sizeof *grown);
            if (!grown)
                return DOPPEL_ERROR_MEMORY;
            p->edge = grown;
            p->room = room;
        }
        if (step_of(similarity) >= p->from)
            p->edge[p->count++] = (doppel_edge){(uint32_t)near[i].a, (uint32_t)near[i].b, similarity};
    }
    return DOPPEL_OK;
}

static doppel_status find_pairs(const run_input *input, pairs *p, run_result *result, doppel_error *error) {
    double floor = input->similarity < FLOOR ? input->similarity : FLOOR;
    const doppel_input_options reads = {.size = sizeof reads,
                                        .threads = input->threads,
                                        .text_key = input->text_key,
                                        .id_key = input->id_key,
                                        .stop = input->stop,
                                        .refuse_bad = !input->limit};
    const doppel_batch_options options = {.size = sizeof options,
                                          .similarity = floor,
                                          .limit = input->limit,
                                          .tmp = input->tmp,
                                          .memory = RUN_MEMORY,
                                          .input = &reads};
    doppel_batch *batch = NULL;
    doppel_input_counts counts = {0};
    p->from = (int)ceil(floor * 100 - 1e-6);
    doppel_status status = doppel_batch_create(&options, &batch, error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, &input->path, 1, false, &counts, error);
    if (status == DOPPEL_OK && counts.unopened)
        status = fail(error, DOPPEL_ERROR_INPUT, "the file cannot be read to its end");
    result->documents = status == DOPPEL_OK ? doppel_batch_count(batch) : 0;
    result->bad = counts.bad;
    result->whole = !input->limit || result->documents < input->limit;
    if (status == DOPPEL_OK && result->documents > UINT32_MAX)
        status = fail(error, DOPPEL_ERROR_MEMORY, "more documents than one run takes");
    if (status == DOPPEL_OK)
        status = doppel_batch_find_pairs(batch, true, take_pairs, p, error);
    doppel_batch_free(batch);
    return status;
}

/* ---- decisions ---- */

typedef struct decider {
    uint32_t count;
    const doppel_edge *edge; /* in the order of b, then of a */
    const size_t *first;     /* of each b, and one more */
    const uint32_t *same;    /* the first document with the same words, or itself */
    uint32_t *original;
    float *similarity;
} decider;

/* What goes at a threshold. */
static uint64_t decide(const decider *d, float threshold) {
    uint64_t removed = 0;
    for (uint32_t b = 0; b < d->count; b++) {
        uint32_t same = d->same[b];
        d->original[b] = b;
        d->similarity[b] = 0;
        if (same != b) {
            d->original[b] = d->original[same];
            d->similarity[b] = d->original[same] == same ? 1 : d->similarity[same];
        }
        for (size_t i = d->first[b]; same == b && i < d->first[b + 1]; i++) {
            const doppel_edge *e = &d->edge[i];
            if (e->similarity >= threshold && d->original[e->a] == e->a && e->similarity > d->similarity[b]) {
                d->original[b] = e->a;
                d->similarity[b] = e->similarity;
            }
        }
        removed += d->original[b] != b;
    }
    return removed;
}

static int compare_edges(const void *left, const void *right) {
    const doppel_edge *a = left, *b = right;
    if (a->b != b->b)
        return a->b < b->b ? -1 : 1;
    return a->a < b->a ? -1 : a->a > b->a;
}

/* Documents with the words of an earlier one leave the pairs; the others are brought into order. */
static bool prepare(pairs *p, decider *d, size_t *first, uint32_t *same) {
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
    return true;
}

/* ---- what is shown ---- */

static void choose_examples(const decider *d, const pairs *p, run_result *result) {
    for (size_t i = 0; i < p->count; i++) {
        int step = step_of(d->edge[i].similarity);
        if (result->examples[step] < RUN_EXAMPLES)
            result->example[step][result->examples[step]++] = d->edge[i];
    }
}

/* The largest groups, those with the earlier kept document first; `size` is by kept document. */
static void choose_groups(const decider *d, const uint32_t *size, run_result *result) {
    for (uint32_t i = 0; i < d->count; i++) {
        if (size[i] < 2)
            continue;
        result->groups++;
        int at = result->largest_count;
        while (at > 0 && result->largest[at - 1].size < size[i])
            at--;
        if (at == RUN_GROUPS)
            continue;
        int moved = result->largest_count < RUN_GROUPS ? result->largest_count : RUN_GROUPS - 1;
        memmove(&result->largest[at + 1], &result->largest[at], (size_t)(moved - at) * sizeof *result->largest);
        result->largest[at] = (run_group){.kept = i, .size = size[i]};
        result->largest_count = moved + 1;
    }
    for (uint32_t b = 0; b < d->count; b++)
        for (int i = 0; d->original[b] != b && i < result->largest_count; i++) {
            run_group *g = &result->largest[i];
            if (g->kept != d->original[b] || g->members == RUN_MEMBERS)
                continue;
            g->member[g->members] = b;
            g->similarity[g->members++] = d->similarity[b];
        }
}

static bool count_groups(const decider *d, run_result *result) {
    uint32_t *size = calloc((size_t)d->count + 1, sizeof *size);
    if (!size)
        return false;
    for (uint32_t b = 0; b < d->count; b++) {
        size[d->original[b]]++;
        result->identical += d->original[b] != b && d->similarity[b] >= 1;
    }
    choose_groups(d, size, result);
    free(size);
    return true;
}

static doppel_status decide_all(const run_input *input, pairs *p, run_result *result, doppel_error *error) {
    decider d = {.count = (uint32_t)result->documents};
    size_t documents = (size_t)d.count + 1;
    size_t *first = calloc(documents, sizeof *first);
    uint32_t *same = calloc(documents, sizeof *same);
    d.original = calloc(documents, sizeof *d.original);
    d.similarity = calloc(documents, sizeof *d.similarity);
    bool fine = first && same && d.original && d.similarity && prepare(p, &d, first, same);
    if (fine) {
        result->from = p->from;
        for (int step = p->from; step < RUN_STEPS; step++)
            result->removed_at[step] = decide(&d, (float)step / 100);
        choose_examples(&d, p, result);
        result->removed = decide(&d, (float)input->similarity);
        fine = count_groups(&d, result);
    }
    free(first);
    free(same);
    free(d.original);
    free(d.similarity);
    return fine ? DOPPEL_OK : fail(error, DOPPEL_ERROR_MEMORY, "no memory");
}

/* ---- the texts of what is shown ---- */

typedef struct text_reading {
    run_result *result;
    uint64_t position; /* of the next document */
    size_t next;       /* of those that are shown */
    doppel_page_reader *pages;
} text_reading;

static int compare_documents(const void *left, const void *right) {
    uint32_t a = ((const run_document *)left)->position, b = ((const run_document *)right)->position;
    return a < b ? -1 : a > b;
}

static void show(run_result *result, uint32_t position) {
    result->shown[result->shown_count++].position = position;
}

/* Lists the documents that are shown, each once. */
static bool list_shown(run_result *result) {
    size_t kept = 0;
    result->shown = calloc(2 * RUN_STEPS * RUN_EXAMPLES + RUN_GROUPS * (RUN_MEMBERS + 1), sizeof *result->shown);
    if (!result->shown)
        return false;
    for (int i = 0; i < result->largest_count; i++) {
        show(result, result->largest[i].kept);
        for (int k = 0; k < result->largest[i].members; k++)
            show(result, result->largest[i].member[k]);
    }
    for (int step = 0; step < RUN_STEPS; step++)
        for (int k = 0; k < result->examples[step]; k++) {
            show(result, result->example[step][k].a);
            show(result, result->example[step][k].b);
        }
    qsort(result->shown, result->shown_count, sizeof *result->shown, compare_documents);
    for (size_t i = 0; i < result->shown_count; i++)
        if (!kept || result->shown[kept - 1].position != result->shown[i].position)
            result->shown[kept++] = result->shown[i];
    result->shown_count = kept;
    return true;
}

/* A copy of at most `most` bytes that ends between characters; false: no memory. */
static bool copy(doppel_slice from, size_t most, doppel_slice *to) {
    size_t length = from.length < most ? from.length : most;
    while (length && length < from.length && ((unsigned char)from.data[length] & 0xC0) == 0x80)
        length--;
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
    to->cut = page.text.length > RUN_TEXT;
    bool fine = copy(document->id, RUN_TEXT, &to->id) && copy(page.text, RUN_TEXT, &to->text) &&
                copy(page.title.length ? page.title : page.text, RUN_TITLE, &to->title);
    return fine ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status begin_texts(void *user, void **state) {
    *state = user;
    return DOPPEL_OK;
}

static doppel_status read_texts(const run_input *input, run_result *result, doppel_error *error) {
    text_reading t = {.result = result};
    const doppel_input_options reads = {
        .size = sizeof reads, .threads = 1, .text_key = input->text_key, .id_key = input->id_key, .stop = input->stop};
    const doppel_work work = {.user = &t, .begin = begin_texts, .document = take_text};
    if (!list_shown(result) || doppel_page_reader_create(&t.pages) != DOPPEL_OK)
        return fail(error, DOPPEL_ERROR_MEMORY, "no memory");
    doppel_status status =
        result->shown_count ? doppel_input_run(&input->path, 1, &reads, &work, NULL, error) : DOPPEL_OK;
    doppel_page_reader_free(t.pages);
    if (status == DOPPEL_ERROR_INTERRUPTED && t.next == result->shown_count)
        return DOPPEL_OK;
    if (status == DOPPEL_OK && t.next < result->shown_count)
        return fail(error, DOPPEL_ERROR_INPUT, "the file changed while it was read");
    return status;
}

/* ---- all together ---- */

doppel_status run_analyse(const run_input *input, run_result *result, doppel_error *error) {
    pairs p = {0};
    *result = (run_result){0};
    doppel_status status = find_pairs(input, &p, result, error);
    if (status == DOPPEL_OK && p.from > (int)floor(input->similarity * 100 + 1e-6))
        status = fail(error, DOPPEL_ERROR_MEMORY,
                      "too many pairs of documents are that similar to show them; ask for a higher similarity, or use "
                      "doppel dedup, which takes any number");
    if (status == DOPPEL_OK)
        status = decide_all(input, &p, result, error);
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
        free((void *)(uintptr_t)result->shown[i].text.data);
    }
    free(result->shown);
    *result = (run_result){0};
}

const run_document *run_result_document(const run_result *result, uint32_t position) {
    const run_document wanted = {.position = position};
    return result->shown_count ? bsearch(&wanted, result->shown, result->shown_count, sizeof wanted, compare_documents)
                               : NULL;
}
