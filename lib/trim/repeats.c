/* repeats.c - which windows are cut, and what they repeat: dp_repeats_mark, dp_repeats_thin (passages), then
 * dp_repeats_join.
 *
 * Windows are sorted by hash, then by rank and unit, so equal ones are adjacent, the one to keep first. A group of any
 * size is decided in one pass: of the earlier ones only the first, the first of another scope (across), and their
 * number are needed. Windows whose fate depends on what is still to come wait in a list: fewer than min_count of them
 * or, with cut_first, those that repeat no earlier one.
 *
 * What is cut becomes a mark: its document and unit, and those of its original. Sorted, the marks of a document stand
 * together; those with the same original document and the same shift join into spans. */
#include "trim/trim.h"

#include <stdlib.h>

#define NO_PLACE UINT64_MAX

static uint32_t place_document(uint64_t place) {
    return (uint32_t)(place >> 32);
}

static uint32_t place_unit(uint64_t place) {
    return (uint32_t)place;
}

/* ---- equal windows ---- */

/* A window not decided yet, and its original: NO_PLACE if that comes later. */
typedef struct waiting_window {
    uint64_t place, original;
} waiting_window;

typedef struct window_list {
    waiting_window *window;
    size_t count, room;
} window_list;

/* One thread's work on sorted windows, and the current group. Places here have ranks, not documents. */
typedef struct marker {
    doppel_trim *trim;
    dp_trim_adder marks;
    uint64_t hash[2];
    uint64_t first, other; /* other: the first of another scope, with `across` */
    uint64_t last_counted, count;
    window_list for_count, for_later; /* waiting until there are enough, or for a later one that repeats them */
    uint64_t cut;                     /* of the group */
    uint64_t repeated, values;
    dp_trim_tops *tops;
} marker;

static uint32_t document_of(const doppel_trim *trim, uint64_t place) {
    uint32_t rank = place_document(place);
    return trim->documents.by_rank ? trim->documents.by_rank[rank] : rank;
}

static bool across(const marker *m) {
    return m->trim->settings.options.across;
}

static bool same_scope(const marker *m, uint64_t a, uint64_t b) {
    return dp_trim_scope(m->trim, document_of(m->trim, a)) == dp_trim_scope(m->trim, document_of(m->trim, b));
}

/* Whether `later` repeats `earlier`, both of this group. */
static bool repeats(const marker *m, uint64_t earlier, uint64_t later) {
    if (across(m))
        return !same_scope(m, earlier, later);
    return place_document(earlier) != place_document(later) ||
           (uint64_t)place_unit(earlier) + m->trim->settings.n <= place_unit(later);
}

/* The earliest that a window repeats; NO_PLACE: none. */
static uint64_t find_original(const marker *m, uint64_t place) {
    uint64_t against = m->trim->documents.against;
    if (m->trim->settings.options.against_count)
        return place_document(m->first) < against && place_document(place) >= against ? m->first : NO_PLACE;
    if (place == m->first)
        return NO_PLACE;
    if (repeats(m, m->first, place))
        return m->first;
    return across(m) ? m->other : NO_PLACE;
}

static doppel_status add_waiting(window_list *list, uint64_t place, uint64_t original) {
    if (!dp_reserve(&list->window, &list->room, list->count + 1, sizeof *list->window))
        return DOPPEL_ERROR_MEMORY;
    list->window[list->count++] = (waiting_window){place, original};
    return DOPPEL_OK;
}

static doppel_status cut_window(marker *m, uint64_t place, uint64_t original) {
    const doppel_trim *trim = m->trim;
    if (m->count < trim->settings.options.min_count)
        return add_waiting(&m->for_count, place, original);
    m->cut++;
    return dp_trim_adder_add(&m->marks,
                             (uint64_t[2]){(uint64_t)document_of(trim, place) << 32 | place_unit(place),
                                           (uint64_t)document_of(trim, original) << 32 | place_unit(original)});
}

/* There are enough now. */
static doppel_status cut_waiting(marker *m) {
    for (size_t i = 0; i < m->for_count.count; i++)
        DP_TRY(cut_window(m, m->for_count.window[i].place, m->for_count.window[i].original));
    m->for_count.count = 0;
    return DOPPEL_OK;
}

/* Cuts those that this later one repeats. They are in order, and it repeats the first ones if any. */
static doppel_status cut_earlier(marker *m, uint64_t place) {
    window_list *list = &m->for_later;
    size_t done = 0;
    while (done < list->count && repeats(m, list->window[done].place, place))
        DP_TRY(cut_window(m, list->window[done++].place, place));
    list->count -= done;
    if (done)
        memmove(list->window, list->window + done, list->count * sizeof *list->window);
    return DOPPEL_OK;
}

static void count_window(marker *m, uint64_t place) {
    uint64_t last = m->last_counted;
    if (m->count && place_document(last) == place_document(place) &&
        place_unit(place) < (uint64_t)place_unit(last) + m->trim->settings.n)
        return;
    m->count++;
    m->last_counted = place;
}

static doppel_status take_window(marker *m, uint64_t place) {
    const doppel_trim_options *o = &m->trim->settings.options;
    if (m->first == NO_PLACE)
        m->first = place;
    else if (across(m) && m->other == NO_PLACE && !same_scope(m, m->first, place))
        m->other = place;
    count_window(m, place);
    if (m->count >= o->min_count && m->for_count.count)
        DP_TRY(cut_waiting(m));
    if (m->for_later.count)
        DP_TRY(cut_earlier(m, place));
    uint64_t original = find_original(m, place);
    if (original != NO_PLACE)
        return cut_window(m, place, original);
    return o->cut_first ? add_waiting(&m->for_later, place, NO_PLACE) : DOPPEL_OK;
}

static void end_group(marker *m) {
    m->repeated += m->cut;
    m->values += m->cut > 0;
    if (m->cut)
        dp_tops_push(m->tops, (dp_trim_top){m->count, m->first});
    m->first = m->other = NO_PLACE;
    m->count = m->cut = m->for_count.count = m->for_later.count = 0;
}

static void end_marker(marker *m) {
    doppel_trim *trim = m->trim;
    pthread_mutex_lock(&trim->lock);
    trim->stats.repeated += m->repeated;
    trim->stats.values += m->values;
    for (size_t i = 0; m->tops && i < m->tops->count; i++)
        dp_tops_push(&trim->tops, m->tops->top[i]);
    pthread_mutex_unlock(&trim->lock);
    dp_trim_adder_free(&m->marks);
    free(m->for_count.window);
    free(m->for_later.window);
    free(m->tops);
}

static doppel_status mark_windows(marker *m, dp_sorter *sorter, doppel_error *error) {
    const uint64_t *record;
    for (uint64_t taken = 1;; taken++) {
        DP_TRY(dp_sorter_next(sorter, &record, error));
        if (!record)
            break;
        if (!(taken % 65536) && dp_stopped(m->trim->settings.input.stop))
            return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        if (record[0] != m->hash[0] || record[1] != m->hash[1]) {
            end_group(m);
            m->hash[0] = record[0];
            m->hash[1] = record[1];
        }
        DP_TRY(take_window(m, record[2]));
    }
    end_group(m);
    return dp_trim_adder_flush(&m->marks);
}

typedef struct marking {
    doppel_trim *trim;
    dp_trim_parts *marks;
} marking;

/* dp_trim_part_work */
static doppel_status mark_part(void *user, dp_sorter *sorter, doppel_error *error) {
    const marking *work = user;
    marker m = {.trim = work->trim, .first = NO_PLACE, .other = NO_PLACE, .tops = calloc(1, sizeof *m.tops)};
    bool ready = dp_trim_adder_init(&m.marks, work->marks) && m.tops;
    if (m.tops)
        m.tops->limit = 4 * DP_TRIM_TOPS / DP_TRIM_PARTS; /* values are spread evenly over the parts */
    m.marks.error = error;
    doppel_status status = ready ? mark_windows(&m, sorter, error) : dp_no_memory(error);
    end_marker(&m);
    return status;
}

doppel_status dp_repeats_mark(doppel_trim *trim, dp_trim_parts *windows, dp_trim_parts *marks) {
    marking work = {trim, marks};
    return dp_trim_parts_run(trim, windows, "repeats", mark_part, &work);
}

/* ---- marks of one copy ----
 *
 * Of neighbouring windows with neighbouring originals only the first, the last, and one in n between are needed: these
 * join into the same span. */

typedef struct thinner {
    dp_trim_adder marks;
    size_t n;
    uint64_t last[2], kept; /* the mark before, and the first number of the last one that was kept */
    bool any;
} thinner;

static doppel_status keep_mark(thinner *t, const uint64_t *mark) {
    t->kept = mark[0];
    return dp_trim_adder_add(&t->marks, mark);
}

static doppel_status thin_mark(thinner *t, const uint64_t *mark) {
    bool follows = t->any && mark[0] == t->last[0] + 1 && mark[1] == t->last[1] + 1;
    if (!follows) {
        if (t->any && t->kept != t->last[0])
            DP_TRY(keep_mark(t, t->last));
        DP_TRY(keep_mark(t, mark));
    } else if (mark[0] - t->kept == t->n) {
        DP_TRY(keep_mark(t, mark));
    }
    memcpy(t->last, mark, sizeof t->last);
    t->any = true;
    return DOPPEL_OK;
}

/* dp_trim_part_work */
static doppel_status thin_part(void *user, dp_sorter *sorter, doppel_error *error) {
    doppel_trim *trim = user;
    thinner t = {.n = trim->settings.n};
    const uint64_t *mark = NULL;
    doppel_status status = dp_trim_adder_init(&t.marks, &trim->marks) ? DOPPEL_OK : dp_no_memory(error);
    t.marks.error = error;
    DP_THEN(status, dp_sorter_next(sorter, &mark, error));
    while (status == DOPPEL_OK && mark) {
        status = thin_mark(&t, mark);
        DP_THEN(status, dp_sorter_next(sorter, &mark, error));
    }
    if (t.any && t.kept != t.last[0])
        DP_THEN(status, keep_mark(&t, t.last));
    DP_THEN(status, dp_trim_adder_flush(&t.marks));
    dp_trim_adder_free(&t.marks);
    return status;
}

doppel_status dp_repeats_thin(doppel_trim *trim, dp_trim_parts *marks) {
    return dp_trim_parts_run(trim, marks, "copies", thin_part, trim);
}

/* ---- spans ---- */

/* The marks of one document, and the resulting spans. */
typedef struct joiner {
    doppel_trim *trim;
    uint64_t (*mark)[2];
    dp_trim_span *span;
    size_t count, room, spans, span_room;
} joiner;

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

/* By original document, shift, unit. */
static int compare_marks(const void *x, const void *y) {
    const uint64_t *a = x, *b = y;
    int64_t shift_a = (int64_t)place_unit(a[0]) - place_unit(a[1]),
            shift_b = (int64_t)place_unit(b[0]) - place_unit(b[1]);
    int by_document = compare_numbers(place_document(a[1]), place_document(b[1]));
    if (by_document || shift_a != shift_b)
        return by_document ? by_document : shift_a < shift_b ? -1 : 1;
    return compare_numbers(a[0], b[0]);
}

static int compare_spans(const void *x, const void *y) {
    const dp_trim_span *a = x, *b = y;
    int order = compare_numbers(a->first, b->first);
    order = order ? order : compare_numbers(a->end, b->end);
    order = order ? order : compare_numbers(a->document, b->document);
    return order ? order : compare_numbers(a->unit, b->unit);
}

/* The units of a window: all of a text of `against` that has fewer than n. */
static uint32_t window_units(const doppel_trim *trim, uint32_t original) {
    uint32_t words = trim->documents.words[original];
    bool is_short = trim->settings.passages && original < trim->documents.against && words < trim->settings.n;
    return is_short ? words : (uint32_t)trim->settings.n;
}

static bool continues(const doppel_trim *trim, const dp_trim_span *span, const uint64_t *mark, uint32_t units) {
    return units == trim->settings.n && span->document == place_document(mark[1]) &&
           (int64_t)span->first - span->unit == (int64_t)place_unit(mark[0]) - place_unit(mark[1]) &&
           place_unit(mark[0]) <= span->end;
}

static bool make_spans(joiner *j) {
    qsort(j->mark, j->count, sizeof *j->mark, compare_marks);
    j->spans = 0;
    if (!dp_reserve(&j->span, &j->span_room, j->count, sizeof *j->span))
        return false;
    for (size_t i = 0; i < j->count; i++) {
        const uint64_t *mark = j->mark[i];
        uint32_t units = window_units(j->trim, place_document(mark[1])), end = place_unit(mark[0]) + units;
        if (j->spans && continues(j->trim, &j->span[j->spans - 1], mark, units))
            j->span[j->spans - 1].end = end;
        else
            j->span[j->spans++] =
                (dp_trim_span){place_unit(mark[0]), end, place_document(mark[1]), place_unit(mark[1])};
    }
    qsort(j->span, j->spans, sizeof *j->span, compare_spans);
    return true;
}

/* After the last mark of a document. */
static doppel_status end_document(joiner *j, uint32_t document, doppel_error *error) {
    doppel_trim *trim = j->trim;
    if (!j->count)
        return DOPPEL_OK;
    if (!make_spans(j))
        return dp_no_memory(error);
    uint64_t count = j->spans;
    pthread_mutex_lock(&trim->lock);
    trim->documents.cuts_at[document] = dp_append_file_size(&trim->spans) + 1;
    doppel_status status = dp_append_file_add(&trim->spans, &count, sizeof count, error);
    DP_THEN(status, dp_append_file_add(&trim->spans, j->span, j->spans * sizeof *j->span, error));
    pthread_mutex_unlock(&trim->lock);
    j->count = 0;
    return status;
}

static doppel_status join_marks(joiner *j, dp_sorter *sorter, doppel_error *error) {
    const uint64_t *mark;
    for (uint32_t document = 0;;) {
        DP_TRY(dp_sorter_next(sorter, &mark, error));
        if (!mark || place_document(mark[0]) != document)
            DP_TRY(end_document(j, document, error));
        if (!mark)
            return DOPPEL_OK;
        document = place_document(mark[0]);
        if (!dp_reserve(&j->mark, &j->room, j->count + 1, sizeof *j->mark))
            return dp_no_memory(error);
        memcpy(j->mark[j->count++], mark, sizeof *j->mark);
    }
}

/* dp_trim_part_work */
static doppel_status join_part(void *user, dp_sorter *sorter, doppel_error *error) {
    joiner j = {.trim = user};
    doppel_status status = join_marks(&j, sorter, error);
    free(j.mark);
    free(j.span);
    return status;
}

doppel_status dp_repeats_join(doppel_trim *trim) {
    return dp_trim_parts_run(trim, &trim->marks, "spans", join_part, trim);
}
