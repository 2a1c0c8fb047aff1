/* compare.c - candidates are compared on their texts, and those that are pairs are given in order.
 *
 * Hits come sorted, so that those of one pair stand together. A pair that only shares keys is a candidate when one side
 * shares as many as containment C lets expect, less four standard deviations: of x keys C * x, deviation
 * sqrt(C (1 - C) x). Keys that are so frequent that they do not hit all pairs count as shared. A batch of candidates is
 * compared by all threads, then given by this one. */
#include "overlap/overlap.h"

#include <math.h>
#include <stdlib.h>
#include <zstd.h>

/* A document, read back. */
typedef struct dp_overlap_text {
    dp_overlap_head head;
    dp_buffer packed; /* the id, and behind it the text packed */
    dp_buffer text;   /* text.size is its length */
} dp_overlap_text;

typedef struct dp_overlap_pair {
    uint32_t a, b;
    bool found; /* it is a pair; only then there is the rest */
    double containment_ab, containment_ba;
    doppel_passages passages;
    doppel_slice *begins; /* lengths; where they are is known when they are given */
    size_t a_id_length, b_id_length;
    dp_buffer bytes; /* both ids, and how each passage begins */
} dp_overlap_pair;

/* Where the words of a text begin and end, and how many there are. */
typedef struct dp_overlap_whole {
    uint64_t start, end, words;
} dp_overlap_whole;

/* What one thread compares with. */
typedef struct dp_overlap_comparer {
    const dp_overlap_work *work;
    doppel_sketcher *sketcher;
    void *unpacker;
    dp_overlap_text a, b;
    size_t a_number; /* the document that `a` and `a_set` are of; SIZE_MAX: none */
    uint64_t *a_set;
    size_t a_count, a_room;
    dp_overlap_whole a_whole; /* of `a`; words 0: not known */
    doppel_status status;
    doppel_error error;
} dp_overlap_comparer;

/* ---- documents are read back from the file of packed texts ---- */

static doppel_status make_room(dp_buffer *buffer, uint64_t bytes, doppel_error *error) {
    buffer->size = (size_t)bytes;
    return dp_reserve(&buffer->data, &buffer->capacity, (size_t)bytes + 1, 1) ? DOPPEL_OK : dp_no_memory(error);
}

/* `unpacker` is a ZSTD_DCtx. */
static doppel_status overlap_text_read(const dp_overlap_work *work, size_t document, void *unpacker,
                                       dp_overlap_text *text, doppel_error *error) {
    dp_overlap_head *head = &text->head;
    uint64_t at = work->at[document];
    doppel_status status = dp_spill_read(&work->texts, at, head, sizeof *head, error);
    if (status == DOPPEL_OK)
        status = make_room(&text->packed, head->id_length + head->packed_length, error);
    if (status == DOPPEL_OK)
        status = dp_spill_read(&work->texts, at + sizeof *head, text->packed.data, text->packed.size, error);
    if (status == DOPPEL_OK)
        status = make_room(&text->text, head->text_length, error);
    if (status != DOPPEL_OK)
        return status;
    size_t size = ZSTD_decompressDCtx(unpacker, text->text.data, text->text.size, text->packed.data + head->id_length,
                                      (size_t)head->packed_length);
    if (ZSTD_isError(size) || size != text->text.size)
        return dp_fail(error, DOPPEL_ERROR_IO, "a text in the folder for temporary files is not what was written: %s",
                       ZSTD_isError(size) ? ZSTD_getErrorName(size) : "its length differs");
    return DOPPEL_OK;
}

static void overlap_text_free(dp_overlap_text *text) {
    dp_buffer_free(&text->packed);
    dp_buffer_free(&text->text);
}

/* ---- one candidate, compared on its texts: containment on the sets of features, then the passages ---- */

/* So many bytes of a passage are given. */
#define BEGIN 80

/* ---- a comparer ---- */

static doppel_status overlap_comparer_init(dp_overlap_comparer *c, const dp_overlap_work *work, doppel_error *error) {
    *c = (dp_overlap_comparer){.work = work, .a_number = SIZE_MAX, .unpacker = ZSTD_createDCtx()};
    if (!c->unpacker)
        return dp_no_memory(error);
    return doppel_sketcher_create(work->recipe, DOPPEL_WANT_SET, &c->sketcher, error);
}

static void overlap_comparer_free(dp_overlap_comparer *c) {
    doppel_sketcher_free(c->sketcher);
    ZSTD_freeDCtx(c->unpacker);
    overlap_text_free(&c->a);
    overlap_text_free(&c->b);
    free(c->a_set);
}

static doppel_status fail(dp_overlap_comparer *c, doppel_status status) {
    return status == DOPPEL_OK ? status : dp_fail(&c->error, status, "%s", doppel_status_name(status));
}

/* Reads A, unless it is there from the pair before. */
static doppel_status read_a(dp_overlap_comparer *c, size_t number) {
    doppel_sketch sketch;
    if (c->a_number == number)
        return DOPPEL_OK;
    c->a_number = SIZE_MAX;
    c->a_whole.words = 0;
    doppel_status status = overlap_text_read(c->work, number, c->unpacker, &c->a, &c->error);
    if (status != DOPPEL_OK)
        return status;
    status = doppel_sketcher_run(c->sketcher, (doppel_slice){c->a.text.data, c->a.text.size}, &sketch);
    if (status == DOPPEL_OK && !dp_reserve(&c->a_set, &c->a_room, sketch.set_count + 1, sizeof *c->a_set))
        status = DOPPEL_ERROR_MEMORY;
    if (status != DOPPEL_OK)
        return fail(c, status);
    if (sketch.set_count)
        memcpy(c->a_set, sketch.set, sketch.set_count * sizeof *c->a_set);
    c->a_count = sketch.set_count;
    c->a_number = number;
    return DOPPEL_OK;
}

/* ---- what is shared ---- */

/* Where the words of a text begin and end. */
static doppel_status find_whole(const doppel_recipe *recipe, const dp_buffer *text, dp_overlap_whole *whole) {
    doppel_ranges words = {0};
    DP_TRY(doppel_ranges_find(recipe, (doppel_slice){text->data, text->size}, &words));
    if (words.count)
        *whole = (dp_overlap_whole){words.range[0].start, words.range[words.count - 1].end, words.count};
    else
        *whole = (dp_overlap_whole){0};
    doppel_ranges_free(&words);
    return DOPPEL_OK;
}

/* Both have the same words: the one passage is all of them. Copies to the byte need not be looked at. */
static doppel_status match_whole(dp_overlap_comparer *c, dp_overlap_pair *pair) {
    dp_overlap_whole *a = &c->a_whole, b;
    bool same = c->a.text.size == c->b.text.size && !memcmp(c->a.text.data, c->b.text.data, c->a.text.size);
    doppel_status status = a->words ? DOPPEL_OK : find_whole(c->work->recipe, &c->a.text, a);
    b = *a;
    if (status == DOPPEL_OK && !same)
        status = find_whole(c->work->recipe, &c->b.text, &b);
    if (status != DOPPEL_OK)
        return status;
    pair->passages.passage = malloc(sizeof *pair->passages.passage);
    if (!pair->passages.passage)
        return DOPPEL_ERROR_MEMORY;
    *pair->passages.passage = (doppel_passage){a->start, a->end, b.start, b.end, a->words};
    pair->passages.count = a->words && a->words == b.words;
    return DOPPEL_OK;
}

static bool same_words(const dp_overlap_comparer *c) {
    return c->a.head.digest[0] == c->b.head.digest[0] && c->a.head.digest[1] == c->b.head.digest[1];
}

static doppel_status find_passages(dp_overlap_comparer *c, dp_overlap_pair *pair) {
    if (same_words(c))
        return match_whole(c, pair);
    const doppel_slice a = {c->a.text.data, c->a.text.size}, b = {c->b.text.data, c->b.text.size};
    return doppel_passages_find(c->work->recipe, a, b, c->work->plan.passage, &pair->passages);
}

static doppel_status find_containment(dp_overlap_comparer *c, dp_overlap_pair *pair) {
    doppel_sketch sketch;
    pair->containment_ab = pair->containment_ba = 1;
    if (same_words(c))
        return DOPPEL_OK;
    doppel_status status = doppel_sketcher_run(c->sketcher, (doppel_slice){c->b.text.data, c->b.text.size}, &sketch);
    if (status != DOPPEL_OK)
        return status;
    pair->containment_ab = doppel_containment(c->a_set, c->a_count, sketch.set, sketch.set_count);
    pair->containment_ba = doppel_containment(sketch.set, sketch.set_count, c->a_set, c->a_count);
    return DOPPEL_OK;
}

static bool has_long_passage(const dp_overlap_plan *plan, const dp_overlap_pair *pair) {
    for (size_t i = 0; plan->words && i < pair->passages.count; i++)
        if (pair->passages.passage[i].words >= plan->words)
            return true;
    return false;
}

/* ---- what is told of it ---- */

/* How much of a passage is given: whole words of its first bytes or, without spaces, whole characters. */
static size_t begin_length(const char *text, size_t length) {
    if (length <= BEGIN)
        return length;
    for (size_t cut = BEGIN; cut; cut--)
        if (text[cut] == ' ' || (text[cut] >= '\t' && text[cut] <= '\r'))
            return cut;
    size_t cut = BEGIN;
    while (cut && ((unsigned char)text[cut] & 0xC0) == 0x80)
        cut--;
    return cut;
}

static bool keep_begins(const dp_overlap_comparer *c, dp_overlap_pair *pair) {
    pair->begins = malloc((pair->passages.count + 1) * sizeof *pair->begins);
    pair->a_id_length = (size_t)c->a.head.id_length;
    pair->b_id_length = (size_t)c->b.head.id_length;
    bool kept = pair->begins && dp_buffer_add(&pair->bytes, c->a.packed.data, pair->a_id_length) &&
                dp_buffer_add(&pair->bytes, c->b.packed.data, pair->b_id_length);
    for (size_t i = 0; i < pair->passages.count && kept; i++) {
        const doppel_passage *passage = &pair->passages.passage[i];
        const char *text = c->a.text.data + passage->a_start;
        pair->begins[i].length = begin_length(text, (size_t)(passage->a_end - passage->a_start));
        kept = dp_buffer_add(&pair->bytes, text, pair->begins[i].length);
    }
    return kept;
}

static void overlap_pair_free(dp_overlap_pair *pair) {
    doppel_passages_free(&pair->passages);
    free(pair->begins);
    dp_buffer_free(&pair->bytes);
    pair->begins = NULL;
}

/* Compares: pair->a and pair->b are given, the rest is filled. What went wrong is in comparer->error. */
static doppel_status overlap_compare(dp_overlap_comparer *c, dp_overlap_pair *pair) {
    const dp_overlap_plan *plan = &c->work->plan;
    doppel_status status = read_a(c, pair->a);
    if (status == DOPPEL_OK)
        status = overlap_text_read(c->work, pair->b, c->unpacker, &c->b, &c->error);
    if (status != DOPPEL_OK)
        return status;
    status = find_containment(c, pair);
    double most = pair->containment_ab > pair->containment_ba ? pair->containment_ab : pair->containment_ba;
    bool contained = plan->containment > 0 && most >= plan->containment;
    if (status == DOPPEL_OK && (contained || plan->words))
        status = find_passages(c, pair);
    pair->found = contained || has_long_passage(plan, pair);
    if (status == DOPPEL_OK && pair->found && !keep_begins(c, pair))
        status = DOPPEL_ERROR_MEMORY;
    if (!pair->found)
        overlap_pair_free(pair);
    return fail(c, status);
}

/* Gives a pair to options->pair. */
static doppel_status overlap_pair_give(dp_overlap_pair *pair, const doppel_overlap_options *options) {
    const char *at = pair->bytes.data;
    doppel_overlap given = {.a = pair->a,
                            .b = pair->b,
                            .a_id = {at, pair->a_id_length},
                            .b_id = {at + pair->a_id_length, pair->b_id_length},
                            .containment_ab = pair->containment_ab,
                            .containment_ba = pair->containment_ba,
                            .passages = pair->passages.passage,
                            .begins = pair->begins,
                            .passage_count = pair->passages.count};
    at += pair->a_id_length + pair->b_id_length;
    for (size_t i = 0; i < pair->passages.count; i++) {
        pair->begins[i].data = at;
        at += pair->begins[i].length;
    }
    return options->pair ? options->pair(&given, options->user) : DOPPEL_OK;
}

/* One pair of 30,000 at the very threshold is farther off. */
#define DEVIATIONS 4

/* Candidates a thread takes at a time: neighbours have the same A, which is then read once. */
#define CHUNK 8
/* Of so many a batch is made, a thread: enough that the threads end together. */
#define BATCH 64

typedef struct verification {
    dp_overlap_work *work;
    dp_overlap_pair *pairs;
    size_t count, room;
    atomic_size_t next;
    dp_overlap_comparer *comparers; /* one a thread */
    const uint64_t *hit;            /* that comes next; NULL: none is left */
} verification;

/* ---- candidates ---- */

/* The keys of one side that the other has. */
typedef struct shared_keys {
    uint64_t a, b;
} shared_keys;

/* Whether so many shared keys of a document may be containment enough. */
static bool may_contain(const dp_overlap_work *work, uint32_t document, uint64_t shared) {
    double c = work->plan.containment, frequent = work->frequent[document], x = work->live[document] + frequent;
    return shared && (double)shared + frequent >= c * x - DEVIATIONS * sqrt(c * (1 - c) * x);
}

/* The next candidate; *found is false when there is none. */
static doppel_status next_candidate(verification *v, dp_overlap_pair *pair, bool *found, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    *found = false;
    while (v->hit && !*found && status == DOPPEL_OK) {
        uint64_t both = *v->hit >> 2;
        shared_keys shared = {0, 0};
        while (v->hit && *v->hit >> 2 == both && status == DOPPEL_OK) {
            *found |= (*v->hit & 3) == DP_OVERLAP_SURE;
            shared.a += (*v->hit & DP_OVERLAP_KEY_A) != 0;
            shared.b += (*v->hit & DP_OVERLAP_KEY_B) != 0;
            status = dp_sorter_next(&v->work->hits, &v->hit, error);
        }
        *pair = (dp_overlap_pair){.a = (uint32_t)(both >> 31), .b = (uint32_t)(both & DP_OVERLAP_MOST_DOCUMENTS)};
        *found = *found || may_contain(v->work, pair->a, shared.a) || may_contain(v->work, pair->b, shared.b);
    }
    return status;
}

/* ---- comparing ---- */

static void compare(void *user, size_t thread) {
    verification *v = user;
    dp_overlap_comparer *comparer = &v->comparers[thread];
    for (size_t from; comparer->status == DOPPEL_OK && (from = atomic_fetch_add(&v->next, CHUNK)) < v->count;)
        for (size_t i = from; i < from + CHUNK && i < v->count && comparer->status == DOPPEL_OK; i++)
            comparer->status = dp_stopped(v->work->input.stop)
                                   ? dp_fail(&comparer->error, DOPPEL_ERROR_INTERRUPTED, "interrupted")
                                   : overlap_compare(comparer, &v->pairs[i]);
}

static doppel_status give_pairs(verification *v, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < v->count && status == DOPPEL_OK; i++)
        if (v->pairs[i].found) {
            v->work->counts.pairs++;
            status = overlap_pair_give(&v->pairs[i], &v->work->options);
            if (status != DOPPEL_OK)
                dp_fail(error, status, "%s", doppel_status_name(status));
        }
    return status;
}

static doppel_status run_batch(verification *v, doppel_error *error) {
    size_t threads =
        (v->count + CHUNK - 1) / CHUNK < v->work->threads ? (v->count + CHUNK - 1) / CHUNK : v->work->threads;
    v->next = 0;
    v->work->counts.candidates += v->count;
    dp_run_threads(threads, compare, v);
    for (size_t i = 0; i < threads; i++)
        if (v->comparers[i].status != DOPPEL_OK) {
            if (error)
                *error = v->comparers[i].error;
            return v->comparers[i].status;
        }
    return give_pairs(v, error);
}

static void free_pairs(verification *v) {
    for (size_t i = 0; i < v->count; i++)
        overlap_pair_free(&v->pairs[i]);
    v->count = 0;
}

static doppel_status run_all(verification *v, doppel_error *error) {
    bool found = true;
    doppel_status status = dp_sorter_next(&v->work->hits, &v->hit, error);
    while (status == DOPPEL_OK && found) {
        while (v->count < v->room && found && status == DOPPEL_OK) {
            status = next_candidate(v, &v->pairs[v->count], &found, error);
            v->count += status == DOPPEL_OK && found;
        }
        if (status == DOPPEL_OK && v->count)
            status = run_batch(v, error);
        free_pairs(v);
    }
    return status;
}

doppel_status dp_overlap_verify(dp_overlap_work *work, doppel_error *error) {
    verification v = {.work = work, .room = BATCH * work->threads};
    doppel_status status = dp_spill_flush(&work->texts, error);
    v.pairs = malloc(v.room * sizeof *v.pairs);
    v.comparers = calloc(work->threads, sizeof *v.comparers);
    if (status == DOPPEL_OK && (!v.pairs || !v.comparers))
        status = dp_no_memory(error);
    for (size_t i = 0; i < work->threads && status == DOPPEL_OK; i++)
        status = overlap_comparer_init(&v.comparers[i], work, error);
    if (status == DOPPEL_OK)
        status = run_all(&v, error);
    for (size_t i = 0; v.comparers && i < work->threads; i++)
        overlap_comparer_free(&v.comparers[i]);
    work->counts.spilled_bytes += dp_sorter_spilled(&work->hits) + dp_spill_size(&work->texts);
    free(v.comparers);
    free(v.pairs);
    return status;
}
