/* tops.c - the most repeated windows: dp_tops_push while windows are scanned, doppel_trim_get_repeats at the end. */
#include "trim/trim.h"

#include <stdlib.h>

/* Repeats that are given, and bytes of their texts. */
enum { GIVEN = 100, BEGIN = 200 };

static bool is_less(const dp_trim_top *a, const dp_trim_top *b) {
    return a->count != b->count ? a->count < b->count : a->place > b->place;
}

void dp_tops_push(dp_trim_tops *tops, dp_trim_top top) {
    size_t at = 0, limit = tops->limit ? tops->limit : DP_TRIM_TOPS;
    if (tops->count < limit) {
        for (at = tops->count++; at && is_less(&top, &tops->top[(at - 1) / 2]); at = (at - 1) / 2)
            tops->top[at] = tops->top[(at - 1) / 2];
    } else {
        if (!is_less(&tops->top[0], &top))
            return;
        for (size_t child; (child = 2 * at + 1) < tops->count; at = child) {
            child += child + 1 < tops->count && is_less(&tops->top[child + 1], &tops->top[child]);
            if (!is_less(&tops->top[child], &top))
                break;
            tops->top[at] = tops->top[child];
        }
    }
    tops->top[at] = top;
}

/* ---- which ones are given ---- */

/* Windows that overlap in their first occurrence and occur equally often: a longer repeat. */
typedef struct chain {
    dp_trim_top top; /* the first of them */
    uint32_t end;    /* the unit after the last */
} chain;

static int compare_places(const void *x, const void *y) {
    const dp_trim_top *a = x, *b = y;
    return (a->place > b->place) - (a->place < b->place);
}

static int compare_chains(const void *x, const void *y) {
    const chain *a = x, *b = y;
    return is_less(&b->top, &a->top) ? -1 : is_less(&a->top, &b->top);
}

/* Makes chains of the windows; returns how many. */
static size_t make_chains(dp_trim_tops *tops, size_t n, chain *chains) {
    size_t count = 0;
    qsort(tops->top, tops->count, sizeof *tops->top, compare_places);
    for (size_t i = 0; i < tops->count; i++) {
        dp_trim_top top = tops->top[i];
        chain *last = count ? &chains[count - 1] : NULL;
        uint32_t end = (uint32_t)(top.place + n);
        if (last && last->top.place >> 32 == top.place >> 32 && last->top.count == top.count &&
            (uint32_t)top.place < last->end)
            last->end = end;
        else
            chains[count++] = (chain){top, end};
    }
    return count;
}

/* Whether a chain overlaps one that is given already: neighbours in one passage are about as frequent as each other. */
static bool overlaps(const doppel_trim *trim, uint64_t document, const chain *c) {
    for (size_t i = 0; i < trim->repeat_count; i++) {
        const doppel_repeat *given = &trim->repeats[i];
        if (given->original == document && given->start < c->end && (uint32_t)c->top.place < given->words)
            return true;
    }
    return false;
}

/* Chooses; until they are looked up, `start` is the first unit, and `words` the one after the last. */
static bool choose(doppel_trim *trim) {
    const dp_trim_documents *d = &trim->documents;
    chain *chains = malloc((trim->tops.count + 1) * sizeof *chains);
    if (!chains)
        return false;
    size_t count = make_chains(&trim->tops, trim->settings.n, chains);
    qsort(chains, count, sizeof *chains, compare_chains);
    for (size_t i = 0; i < count && trim->repeat_count < GIVEN; i++) {
        const dp_trim_top *top = &chains[i].top;
        uint64_t rank = top->place >> 32, document = d->by_rank ? d->by_rank[rank] : rank;
        if (!overlaps(trim, document, &chains[i]))
            trim->repeats[trim->repeat_count++] = (doppel_repeat){
                .count = top->count, .original = document, .start = (uint32_t)top->place, .words = chains[i].end};
    }
    free(chains);
    return true;
}

/* ---- their texts ---- */

typedef struct top_reader {
    doppel_trim *trim;
    uint64_t first;
    dp_trim_text text;
    doppel_error error;
} top_reader;

typedef struct top_reading {
    doppel_trim *trim;
    uint64_t first;
} top_reading;

/* dp_input_numbered.wanted */
static bool is_wanted(void *state, uint64_t number) {
    const top_reader *r = state;
    for (size_t i = 0; i < r->trim->repeat_count; i++)
        if (r->trim->repeats[i].original == number + r->first)
            return true;
    return false;
}

/* A copy that is freed with the trim; false: out of memory. */
static bool copy_slice(doppel_slice from, doppel_slice *to) {
    char *copy = malloc(from.length + 1);
    *to = (doppel_slice){copy, from.length};
    if (copy)
        memcpy(copy, from.data, from.length);
    return copy;
}

static bool fill(doppel_repeat *repeat, const dp_trim_text *text, doppel_slice bytes, doppel_slice id) {
    uint64_t unit = repeat->start, end = repeat->words;
    uint64_t from = text->bounds[unit], length = text->bounds[end] - from;
    if (length > BEGIN)
        for (length = BEGIN; length && ((unsigned char)bytes.data[from + length] & 0xC0) == 0x80;)
            length--;
    repeat->start = from;
    repeat->words = dp_trim_text_words(text, unit, end);
    return copy_slice((doppel_slice){bytes.data + from, (size_t)length}, &repeat->text) && copy_slice(id, &repeat->id);
}

static doppel_status read_top(top_reader *r, uint64_t number, const doppel_document *document) {
    doppel_page page;
    bool is_page;
    DP_TRY(dp_trim_text_of(&r->text, document, &page, &is_page));
    DP_TRY(dp_trim_text_bounds(&r->text, page.text, is_page));
    for (size_t i = 0; i < r->trim->repeat_count; i++) {
        doppel_repeat *repeat = &r->trim->repeats[i];
        if (repeat->original != number)
            continue;
        if (repeat->words > r->text.count)
            return dp_inputs_changed(&r->error);
        if (!fill(repeat, &r->text, page.text, document->id))
            return DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

/* dp_input_numbered.document */
static doppel_status read_numbered(void *state, uint64_t number, const doppel_document *document,
                                   doppel_output *output) {
    top_reader *r = state;
    (void)output;
    doppel_status status = read_top(r, number + r->first, document);
    dp_trim_fail(r->trim, status, &r->error);
    return status;
}

static void end_reader(void *user, void *state) {
    top_reader *r = state;
    (void)user;
    dp_trim_text_free(&r->text);
    free(r);
}

static doppel_status begin_reader(void *user, void **state) {
    const top_reading *reading = user;
    top_reader *r = calloc(1, sizeof *r);
    if (!r)
        return DOPPEL_ERROR_MEMORY;
    r->trim = reading->trim;
    r->first = reading->first;
    doppel_status status = dp_trim_text_init(&r->text, &r->trim->settings);
    if (status == DOPPEL_OK)
        *state = r;
    else
        end_reader(NULL, r);
    return status;
}

static doppel_status read_tops(doppel_trim *trim, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < 2; i++) {
        const dp_trim_reading *reading = &trim->reading[i];
        top_reading user = {trim, reading->first};
        const dp_input_numbered numbered = {.units = &reading->units, .wanted = is_wanted, .document = read_numbered};
        const doppel_work work = {.user = &user, .begin = begin_reader, .end = end_reader};
        if (reading->count)
            DP_THEN(status, dp_trim_read_again(trim, reading, &numbered, &work, error));
    }
    return status;
}

void dp_tops_free(doppel_trim *trim) {
    for (size_t i = 0; i < trim->repeat_count; i++) {
        free((void *)trim->repeats[i].id.data);
        free((void *)trim->repeats[i].text.data);
    }
    free(trim->repeats);
    trim->repeats = NULL;
    trim->repeat_count = 0;
}

doppel_status doppel_trim_get_repeats(doppel_trim *trim, const doppel_repeat **repeats, size_t *count,
                                      doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (!trim->repeats) {
        trim->repeats = calloc(GIVEN, sizeof *trim->repeats);
        status = trim->repeats && choose(trim) ? DOPPEL_OK : dp_no_memory(error);
        if (trim->repeat_count)
            DP_THEN(status, read_tops(trim, error));
        if (status != DOPPEL_OK)
            dp_tops_free(trim);
    }
    *repeats = trim->repeats;
    *count = trim->repeat_count;
    return status;
}
