/* overlap_pair.c - one candidate, compared on its texts: containment on the sets of features, then the passages. */
#include "batch/overlap_pair.h"

#include <stdlib.h>
#include <zstd.h>

/* So many bytes of a passage are given. */
#define BEGIN 80

/* ---- a comparer ---- */

doppel_status dp_overlap_comparer_init(dp_overlap_comparer *c, const dp_overlap_work *work, doppel_error *error) {
    *c = (dp_overlap_comparer){.work = work, .a_number = SIZE_MAX, .unpacker = ZSTD_createDCtx()};
    if (!c->unpacker)
        return dp_no_memory(error);
    return doppel_sketcher_create(work->recipe, DOPPEL_WANT_SET, &c->sketcher, error);
}

void dp_overlap_comparer_free(dp_overlap_comparer *c) {
    doppel_sketcher_free(c->sketcher);
    ZSTD_freeDCtx(c->unpacker);
    dp_overlap_text_free(&c->a);
    dp_overlap_text_free(&c->b);
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
    doppel_status status = dp_overlap_text_read(c->work, number, c->unpacker, &c->a, &c->error);
    if (status != DOPPEL_OK)
        return status;
    status = doppel_sketcher_run(c->sketcher, c->a.text.data, c->a.text.size, &sketch);
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
    uint64_t *ranges;
    size_t words;
    doppel_status status = doppel_word_ranges(recipe, text->data, text->size, &ranges, &words);
    if (status != DOPPEL_OK)
        return status;
    *whole = (dp_overlap_whole){words ? ranges[0] : 0, words ? ranges[2 * words - 1] : 0, words};
    free(ranges);
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
    pair->passages = malloc(sizeof *pair->passages);
    if (!pair->passages)
        return DOPPEL_ERROR_MEMORY;
    *pair->passages = (doppel_passage){a->start, a->end, b.start, b.end, a->words};
    pair->passage_count = a->words && a->words == b.words;
    return DOPPEL_OK;
}

static bool same_words(const dp_overlap_comparer *c) {
    return c->a.head.digest[0] == c->b.head.digest[0] && c->a.head.digest[1] == c->b.head.digest[1];
}

static doppel_status find_passages(dp_overlap_comparer *c, dp_overlap_pair *pair) {
    if (same_words(c))
        return match_whole(c, pair);
    return doppel_passages(c->work->recipe, c->a.text.data, c->a.text.size, c->b.text.data, c->b.text.size,
                           c->work->plan.passage, &pair->passages, &pair->passage_count);
}

static doppel_status find_containment(dp_overlap_comparer *c, dp_overlap_pair *pair) {
    doppel_sketch sketch;
    pair->containment_ab = pair->containment_ba = 1;
    if (same_words(c))
        return DOPPEL_OK;
    doppel_status status = doppel_sketcher_run(c->sketcher, c->b.text.data, c->b.text.size, &sketch);
    if (status != DOPPEL_OK)
        return status;
    pair->containment_ab = doppel_containment(c->a_set, c->a_count, sketch.set, sketch.set_count);
    pair->containment_ba = doppel_containment(sketch.set, sketch.set_count, c->a_set, c->a_count);
    return DOPPEL_OK;
}

static bool has_long_passage(const dp_overlap_plan *plan, const dp_overlap_pair *pair) {
    for (size_t i = 0; plan->words && i < pair->passage_count; i++)
        if (pair->passages[i].words >= plan->words)
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
    pair->begins = malloc((pair->passage_count + 1) * sizeof *pair->begins);
    pair->a_id_length = (size_t)c->a.head.id_length;
    pair->b_id_length = (size_t)c->b.head.id_length;
    bool kept = pair->begins && dp_buffer_add(&pair->bytes, c->a.packed.data, pair->a_id_length) &&
                dp_buffer_add(&pair->bytes, c->b.packed.data, pair->b_id_length);
    for (size_t i = 0; i < pair->passage_count && kept; i++) {
        const doppel_passage *passage = &pair->passages[i];
        const char *text = c->a.text.data + passage->a_start;
        pair->begins[i].length = begin_length(text, (size_t)(passage->a_end - passage->a_start));
        kept = dp_buffer_add(&pair->bytes, text, pair->begins[i].length);
    }
    return kept;
}

doppel_status dp_overlap_compare(dp_overlap_comparer *c, dp_overlap_pair *pair) {
    const dp_overlap_plan *plan = &c->work->plan;
    doppel_status status = read_a(c, pair->a);
    if (status == DOPPEL_OK)
        status = dp_overlap_text_read(c->work, pair->b, c->unpacker, &c->b, &c->error);
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
        dp_overlap_pair_free(pair);
    return fail(c, status);
}

void dp_overlap_pair_free(dp_overlap_pair *pair) {
    free(pair->passages);
    free(pair->begins);
    dp_buffer_free(&pair->bytes);
    pair->passages = NULL;
    pair->begins = NULL;
}

doppel_status dp_overlap_pair_give(dp_overlap_pair *pair, const doppel_overlap_options *options) {
    const char *at = pair->bytes.data;
    doppel_overlap given = {.a = pair->a,
                            .b = pair->b,
                            .a_id = {at, pair->a_id_length},
                            .b_id = {at + pair->a_id_length, pair->b_id_length},
                            .containment_ab = pair->containment_ab,
                            .containment_ba = pair->containment_ba,
                            .passages = pair->passages,
                            .begins = pair->begins,
                            .passage_count = pair->passage_count};
    at += pair->a_id_length + pair->b_id_length;
    for (size_t i = 0; i < pair->passage_count; i++) {
        pair->begins[i].data = at;
        at += pair->begins[i].length;
    }
    return options->pair ? options->pair(&given, options->user) : DOPPEL_OK;
}
