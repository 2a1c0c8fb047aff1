/* compare.c - compares candidates on their texts, and gives pairs in order.
 *
 * Hits are sorted, so that those of one pair are adjacent. A pair that only shares keys is a candidate when one side
 * shares as many as containment C predicts, less four standard deviations: of x keys C * x, deviation sqrt(C (1 - C)
 * x). Keys too frequent to hit all pairs count as shared. A batch of candidates is compared by all threads (containment
 * on the sets of features, then the passages), then given by this one. */
#include "overlap/overlap.h"

#include <math.h>
#include <stdlib.h>
#include <zstd.h>

/* One pair of 30,000 exactly at the threshold is farther off. */
#define DEVIATIONS 4

/* Candidates a thread takes at a time: neighbours have the same A, which is then read once. */
#define CHUNK 8
/* Candidates per batch and thread: enough for the threads to finish together. */
#define BATCH 64

/* Bytes of a passage that are given. */
#define BEGIN 80

/* A document, read back. */
typedef struct overlap_text {
    dp_overlap_head head;
    dp_buffer packed; /* the id, and after it the text packed */
    dp_buffer text;   /* text.size is its length */
} overlap_text;

typedef struct overlap_pair {
    uint32_t a, b;
    bool found; /* it is a pair; the rest is set only then */
    double containment_ab, containment_ba;
    uint64_t words_a, words_b;
    doppel_passages passages;
    doppel_slice *begins; /* lengths; where they are is known when they are given */
    size_t a_id_length, b_id_length;
    dp_buffer bytes; /* both ids, and how each passage begins */
} overlap_pair;

/* Where the words of a text begin and end, and how many there are. */
typedef struct text_words {
    uint64_t start, end, count;
} text_words;

/* What one thread compares with. */
typedef struct comparer {
    const dp_overlap_work *work;
    doppel_sketcher *sketcher;
    ZSTD_DCtx *unpacker;
    overlap_text a, b;
    size_t a_number; /* the document that `a` and `a_set` are of; SIZE_MAX: none */
    uint64_t *a_set;
    size_t a_count, a_room;
    uint64_t a_total;   /* its words */
    text_words a_words; /* count 0: not known */
    doppel_status status;
    doppel_error error;
} comparer;

/* ---- documents, read back ---- */

static doppel_slice text_of(const overlap_text *text) {
    return (doppel_slice){text->text.data, text->text.size};
}

static doppel_status make_room(dp_buffer *buffer, uint64_t bytes, doppel_error *error) {
    buffer->size = (size_t)bytes;
    return dp_reserve(&buffer->data, &buffer->capacity, (size_t)bytes + 1, 1) ? DOPPEL_OK : dp_no_memory(error);
}

static doppel_status read_text(comparer *c, size_t document, overlap_text *text) {
    const dp_append_file *texts = &c->work->texts;
    dp_overlap_head *head = &text->head;
    uint64_t at = c->work->at[document];
    DP_TRY(dp_append_file_read(texts, at, head, sizeof *head, &c->error));
    DP_TRY(make_room(&text->packed, head->id_length + head->packed_length, &c->error));
    DP_TRY(dp_append_file_read(texts, at + sizeof *head, text->packed.data, text->packed.size, &c->error));
    DP_TRY(make_room(&text->text, head->text_length, &c->error));
    size_t size = ZSTD_decompressDCtx(c->unpacker, text->text.data, text->text.size,
                                      text->packed.data + head->id_length, (size_t)head->packed_length);
    if (ZSTD_isError(size) || size != text->text.size)
        return dp_fail(&c->error, DOPPEL_ERROR_IO, "a temporary file was changed by another program: %s",
                       ZSTD_isError(size) ? ZSTD_getErrorName(size) : "its length differs");
    return DOPPEL_OK;
}

/* The set of A, whose memory the sketcher uses again for B. */
static doppel_status keep_set(comparer *c) {
    doppel_sketch sketch;
    DP_TRY(doppel_sketcher_run(c->sketcher, text_of(&c->a), &sketch));
    if (!dp_reserve(&c->a_set, &c->a_room, sketch.set_count + 1, sizeof *c->a_set))
        return DOPPEL_ERROR_MEMORY;
    if (sketch.set_count)
        memcpy(c->a_set, sketch.set, sketch.set_count * sizeof *c->a_set);
    c->a_count = sketch.set_count;
    c->a_total = sketch.words;
    return DOPPEL_OK;
}

static doppel_status fail(comparer *c, doppel_status status) {
    return status == DOPPEL_OK ? status : dp_fail(&c->error, status, "%s", doppel_status_name(status));
}

/* Reads A, unless the pair before had the same. */
static doppel_status read_a(comparer *c, size_t number) {
    if (c->a_number == number)
        return DOPPEL_OK;
    c->a_number = SIZE_MAX;
    c->a_words.count = 0;
    DP_TRY(read_text(c, number, &c->a));
    DP_TRY(fail(c, keep_set(c)));
    c->a_number = number;
    return DOPPEL_OK;
}

/* ---- what is shared ---- */

static doppel_status find_words(const doppel_recipe *recipe, const overlap_text *text, text_words *words) {
    doppel_ranges ranges = {0};
    DP_TRY(doppel_ranges_find(recipe, text_of(text), &ranges));
    *words = (text_words){0};
    if (ranges.count)
        *words = (text_words){ranges.range[0].start, ranges.range[ranges.count - 1].end, ranges.count};
    doppel_ranges_free(&ranges);
    return DOPPEL_OK;
}

/* Both have the same words: the one passage is all of them. Byte-identical copies need not be examined. */
static doppel_status match_whole(comparer *c, overlap_pair *pair) {
    text_words *a = &c->a_words, b;
    bool same = c->a.text.size == c->b.text.size && !memcmp(c->a.text.data, c->b.text.data, c->a.text.size);
    if (!a->count)
        DP_TRY(find_words(c->work->recipe, &c->a, a));
    b = *a;
    if (!same)
        DP_TRY(find_words(c->work->recipe, &c->b, &b));
    if (!(pair->passages.passage = malloc(sizeof *pair->passages.passage)))
        return DOPPEL_ERROR_MEMORY;
    *pair->passages.passage = (doppel_passage){a->start, a->end, b.start, b.end, a->count};
    pair->passages.count = a->count && a->count == b.count;
    return DOPPEL_OK;
}

static bool have_same_words(const comparer *c) {
    return !memcmp(c->a.head.digest, c->b.head.digest, sizeof c->a.head.digest);
}

static doppel_status find_passages(comparer *c, overlap_pair *pair) {
    if (have_same_words(c))
        return match_whole(c, pair);
    return doppel_passages_find(c->work->recipe, text_of(&c->a), text_of(&c->b), c->work->plan.passage,
                                &pair->passages);
}

static doppel_status find_containment(comparer *c, overlap_pair *pair) {
    doppel_sketch sketch;
    pair->containment_ab = pair->containment_ba = 1;
    pair->words_a = pair->words_b = c->a_total;
    if (have_same_words(c))
        return DOPPEL_OK;
    DP_TRY(doppel_sketcher_run(c->sketcher, text_of(&c->b), &sketch));
    pair->containment_ab = doppel_containment(c->a_set, c->a_count, sketch.set, sketch.set_count);
    pair->containment_ba = doppel_containment(sketch.set, sketch.set_count, c->a_set, c->a_count);
    pair->words_b = sketch.words;
    return DOPPEL_OK;
}

static bool has_long_passage(const dp_overlap_plan *plan, const overlap_pair *pair) {
    for (size_t i = 0; plan->words && i < pair->passages.count; i++)
        if (pair->passages.passage[i].words >= plan->words)
            return true;
    return false;
}

/* ---- one candidate ---- */

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

static bool keep_begins(const comparer *c, overlap_pair *pair) {
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

static void free_pair(overlap_pair *pair) {
    doppel_passages_free(&pair->passages);
    free(pair->begins);
    dp_buffer_free(&pair->bytes);
    pair->begins = NULL;
}

static doppel_status measure(comparer *c, overlap_pair *pair) {
    const dp_overlap_plan *plan = &c->work->plan;
    DP_TRY(find_containment(c, pair));
    double most = pair->containment_ab > pair->containment_ba ? pair->containment_ab : pair->containment_ba;
    bool contained = plan->containment > 0 && most >= plan->containment;
    if (contained || plan->words)
        DP_TRY(find_passages(c, pair));
    pair->found = contained || has_long_passage(plan, pair);
    return !pair->found || keep_begins(c, pair) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status compare_pair(comparer *c, overlap_pair *pair) {
    if (dp_stopped(c->work->input.stop))
        return dp_fail(&c->error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    DP_TRY(read_a(c, pair->a));
    DP_TRY(read_text(c, pair->b, &c->b));
    doppel_status status = measure(c, pair);
    if (!pair->found)
        free_pair(pair);
    return fail(c, status);
}

static doppel_status give_pair(overlap_pair *pair, comparer *c) {
    const doppel_overlap_options *options = &c->work->options;
    const char *at = pair->bytes.data;
    doppel_overlap given = {.a = pair->a,
                            .b = pair->b,
                            .a_id = {at, pair->a_id_length},
                            .b_id = {at + pair->a_id_length, pair->b_id_length},
                            .containment_ab = pair->containment_ab,
                            .containment_ba = pair->containment_ba,
                            .words_a = pair->words_a,
                            .words_b = pair->words_b,
                            .passages = pair->passages.passage,
                            .begins = pair->begins,
                            .passage_count = pair->passages.count,
                            .search = c};
    at += pair->a_id_length + pair->b_id_length;
    for (size_t i = 0; i < pair->passages.count; i++) {
        pair->begins[i].data = at;
        at += pair->begins[i].length;
    }
    return options->pair ? options->pair(&given, options->user) : DOPPEL_OK;
}

doppel_status doppel_overlap_get_texts(const doppel_overlap *pair, doppel_slice *a, doppel_slice *b,
                                       doppel_error *error) {
    comparer *c = pair->search;
    doppel_status status = read_a(c, (size_t)pair->a);
    DP_THEN(status, read_text(c, (size_t)pair->b, &c->b));
    *a = text_of(&c->a);
    *b = text_of(&c->b);
    if (status != DOPPEL_OK && error)
        *error = c->error;
    return status;
}

/* ---- batches of candidates ---- */

typedef struct comparison {
    dp_overlap_work *work;
    overlap_pair *pairs;
    size_t count, room;
    atomic_size_t next;
    comparer *comparers; /* one per thread */
    const uint64_t *hit; /* that comes next; NULL: none is left */
} comparison;

/* Whether this number of shared keys of a document may mean enough containment. */
static bool may_contain(const dp_overlap_work *work, uint32_t document, uint64_t shared) {
    double c = work->plan.containment, frequent = work->frequent[document], x = work->live[document] + frequent;
    return shared && (double)shared + frequent >= c * x - DEVIATIONS * sqrt(c * (1 - c) * x);
}

/* The next candidate; *found is false when there is none. */
static doppel_status next_candidate(comparison *v, overlap_pair *pair, bool *found, doppel_error *error) {
    *found = false;
    while (v->hit && !*found) {
        uint64_t both = *v->hit >> 2, shared_a = 0, shared_b = 0;
        while (v->hit && *v->hit >> 2 == both) {
            *found |= (*v->hit & 3) == DP_OVERLAP_SURE;
            shared_a += (*v->hit & DP_OVERLAP_KEY_A) != 0;
            shared_b += (*v->hit & DP_OVERLAP_KEY_B) != 0;
            DP_TRY(dp_sorter_next(&v->work->hits, &v->hit, error));
        }
        *pair = (overlap_pair){.a = (uint32_t)(both >> 31), .b = (uint32_t)(both & DP_OVERLAP_MOST_DOCUMENTS)};
        *found = *found || may_contain(v->work, pair->a, shared_a) || may_contain(v->work, pair->b, shared_b);
    }
    return DOPPEL_OK;
}

static void compare_chunks(void *user, size_t thread) {
    comparison *v = user;
    comparer *c = &v->comparers[thread];
    for (size_t from; c->status == DOPPEL_OK && (from = atomic_fetch_add(&v->next, CHUNK)) < v->count;)
        for (size_t i = from; i < from + CHUNK && i < v->count && c->status == DOPPEL_OK; i++)
            c->status = compare_pair(c, &v->pairs[i]);
}

static doppel_status give_pairs(comparison *v, doppel_error *error) {
    for (size_t i = 0; i < v->count; i++) {
        if (!v->pairs[i].found)
            continue;
        v->work->counts.pairs++;
        doppel_status status = give_pair(&v->pairs[i], &v->comparers[0]);
        if (status != DOPPEL_OK)
            return dp_fail(error, status, "%s", doppel_status_name(status));
    }
    return DOPPEL_OK;
}

static doppel_status run_batch(comparison *v, doppel_error *error) {
    size_t chunks = (v->count + CHUNK - 1) / CHUNK, threads = chunks < v->work->threads ? chunks : v->work->threads;
    v->next = 0;
    v->work->counts.candidates += v->count;
    dp_run_threads(threads, compare_chunks, v);
    for (size_t i = 0; i < threads; i++)
        if (v->comparers[i].status != DOPPEL_OK) {
            if (error)
                *error = v->comparers[i].error;
            return v->comparers[i].status;
        }
    return give_pairs(v, error);
}

static doppel_status run_all(comparison *v, doppel_error *error) {
    bool found = true;
    doppel_status status = dp_sorter_next(&v->work->hits, &v->hit, error);
    while (status == DOPPEL_OK && found) {
        while (v->count < v->room && found && status == DOPPEL_OK) {
            status = next_candidate(v, &v->pairs[v->count], &found, error);
            v->count += status == DOPPEL_OK && found;
        }
        if (v->count)
            DP_THEN(status, run_batch(v, error));
        for (; v->count; v->count--)
            free_pair(&v->pairs[v->count - 1]);
    }
    return status;
}

static doppel_status init_comparer(comparer *c, const dp_overlap_work *work, doppel_error *error) {
    *c = (comparer){.work = work, .a_number = SIZE_MAX, .unpacker = ZSTD_createDCtx()};
    if (!c->unpacker)
        return dp_no_memory(error);
    return doppel_sketcher_create(work->recipe, DOPPEL_WANT_SET, &c->sketcher, error);
}

static void free_comparer(comparer *c) {
    doppel_sketcher_free(c->sketcher);
    ZSTD_freeDCtx(c->unpacker);
    dp_buffer_free(&c->a.packed);
    dp_buffer_free(&c->a.text);
    dp_buffer_free(&c->b.packed);
    dp_buffer_free(&c->b.text);
    free(c->a_set);
}

doppel_status dp_overlap_compare(dp_overlap_work *work, doppel_error *error) {
    comparison v = {.work = work, .room = BATCH * work->threads};
    v.pairs = malloc(v.room * sizeof *v.pairs);
    v.comparers = calloc(work->threads, sizeof *v.comparers);
    doppel_status status = v.pairs && v.comparers ? DOPPEL_OK : dp_no_memory(error);
    DP_THEN(status, dp_append_file_flush(&work->texts, error));
    for (size_t i = 0; i < work->threads && status == DOPPEL_OK; i++)
        status = init_comparer(&v.comparers[i], work, error);
    DP_THEN(status, run_all(&v, error));
    for (size_t i = 0; v.comparers && i < work->threads; i++)
        free_comparer(&v.comparers[i]);
    work->counts.spilled_bytes += dp_sorter_spilled(&work->hits) + dp_append_file_size(&work->texts);
    free(v.comparers);
    free(v.pairs);
    return status;
}
