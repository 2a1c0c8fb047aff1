/* engine_calls.c - calls of the engine, repeated while its index does not answer.
 *
 * The worker waits for an index that does not answer (DOPPEL_ERROR_AWAY), whose disk fails (DOPPEL_ERROR_IO) or that
 * refuses everything (DOPPEL_ERROR_STORE: a wrong password, a missing right) as long as it takes: every page would
 * fail. An index that answers, but fails for some records, is damaged where these belong. Waiting would block a
 * partition forever, and passing them on would call known pages new. After TRIES attempts such records go to the dead
 * letters, with the reason; without a topic for those, or when MOST_DAMAGED in a row fail, the worker ends: nothing is
 * lost, as nothing of it is committed. */
#include "common/message.h"
#include "stream/parts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 4, MOST_DAMAGED = 100 };

/* Waits before something is tried again: 0.2 s, twice as long each time, up to 10 s. False: stop trying. */
static bool wait_to_try(stream *s, unsigned tries) {
    enum { STEP = 50000, FIRST = 4, MOST = 200 };
    unsigned steps = tries < 6 ? (unsigned)FIRST << tries : MOST;
    for (unsigned i = 0; i < steps; i++) {
        if (stream_stop || atomic_load(&s->abandon))
            return false;
        usleep(STEP);
    }
    atomic_fetch_add(&s->figures.retries, 1);
    return true;
}

/* Whether an error may be temporary. */
static bool may_pass(doppel_status status) {
    return status == DOPPEL_ERROR_STORE || status == DOPPEL_ERROR_IO || status == DOPPEL_ERROR_AWAY;
}

/* Whether the index as a whole answers: it is asked for a document that no index has. */
static bool index_answers(stream *s) {
    static const char name[] = "doppel:is-it-there";
    doppel_stored_list list = {0};
    doppel_error error = {0};
    doppel_status status = doppel_engine_get(s->job->engine, (doppel_slice){name, sizeof name - 1}, &list, &error);
    doppel_stored_list_free(&list);
    return status == DOPPEL_OK;
}

/* The index has failed; *tries counts. OUTCOME_DONE: try again, or, if *damaged, never again: the index works, and is
 * damaged where the record belongs. OUTCOME_AGAIN: the worker has to stop, or its partitions are revoked. */
static outcome index_failed(stream *s, doppel_status status, const doppel_error *error, unsigned *tries,
                            bool *damaged) {
    *damaged = false;
    atomic_store(&s->away, true);
    if (!may_pass(status)) {
        message("%s: %s", s->job->place, error->message);
        return OUTCOME_FAILED;
    }
    if (status == DOPPEL_ERROR_STORE && *tries + 1 >= TRIES && index_answers(s)) {
        *damaged = true;
        return OUTCOME_DONE;
    }
    message("%s: %s; trying again", s->job->place, error->message);
    return wait_to_try(s, (*tries)++) ? OUTCOME_DONE : OUTCOME_AGAIN;
}

/* The index is damaged where a record belongs. */
static outcome divert_damaged(stream *s, record *r, const doppel_error *error) {
    char why[sizeof error->message + 64];
    if (!s->settings.topics[TO_DEAD_LETTER] || s->damaged_in_a_row >= MOST_DAMAGED) {
        message("%s: the index is damaged where this record belongs: %s: %s", r->origin, s->job->place, error->message);
        message(s->damaged_in_a_row
                    ? "the last %u records failed like this one: repair the index and restart doppel stream; "
                      "nothing is lost"
                    : "give --dead-letter TOPIC for such records, or repair the index and restart doppel stream: "
                      "nothing is lost",
                s->damaged_in_a_row);
        return OUTCOME_FAILED;
    }
    s->damaged_in_a_row++;
    snprintf(why, sizeof why, "the index is damaged where it belongs: %s", error->message);
    record_is_bad(r, why);
    atomic_fetch_add(&s->figures.damaged, 1);
    return OUTCOME_DONE;
}

outcome add_alone(stream *s, batch *b, record *r, unsigned tries) {
    for (;;) {
        doppel_error error = {0};
        bool damaged;
        doppel_status status = doppel_engine_add(s->job->engine, &b->items[r->item], &b->verdicts[r->item], &error);
        if (status == DOPPEL_OK) {
            s->damaged_in_a_row = 0;
            return OUTCOME_DONE;
        }
        if (status == DOPPEL_ERROR_INPUT || status == DOPPEL_ERROR_USAGE) {
            record_is_bad(r, error.message);
            return OUTCOME_DONE;
        }
        outcome o = index_failed(s, status, &error, &tries, &damaged);
        if (o == OUTCOME_DONE && damaged)
            return divert_damaged(s, r, &error);
        if (o != OUTCOME_DONE)
            return o;
    }
}

/* All pages at once. *alone: the index is damaged where one of them belongs, and each has to be added alone. */
static outcome add_together(stream *s, batch *b, size_t first, size_t count, bool *alone) {
    unsigned tries = 0;
    for (*alone = false;;) {
        doppel_error error = {0};
        doppel_status status = doppel_engine_add_batch(s->job->engine, b->items + first, count, b->verdicts + first,
                                                       b->errors + first, &error);
        if (status == DOPPEL_OK)
            return OUTCOME_DONE;
        outcome o = index_failed(s, status, &error, &tries, alone);
        if (o != OUTCOME_DONE || *alone)
            return o;
    }
}

outcome add_pages(stream *s, batch *b, size_t from, size_t to) {
    size_t first = SIZE_MAX, count = 0;
    bool alone = false, added = false;
    for (size_t i = from; i < to; i++)
        if (b->records[i].kind == RECORD_PAGE) {
            first = first == SIZE_MAX ? b->records[i].item : first;
            count++;
        }
    outcome o = count ? add_together(s, b, first, count, &alone) : OUTCOME_DONE;
    for (size_t i = from; i < to && o == OUTCOME_DONE; i++) {
        record *r = &b->records[i];
        if (r->kind != RECORD_PAGE)
            continue;
        const doppel_error *why = &b->errors[r->item];
        if (!alone && (why->code == DOPPEL_ERROR_INPUT || why->code == DOPPEL_ERROR_USAGE))
            record_is_bad(r, why->message);
        else if (alone || why->code != DOPPEL_OK)
            o = add_alone(s, b, r, alone ? TRIES : 0);
        added = added || (r->kind == RECORD_PAGE && o == OUTCOME_DONE);
    }
    if (added && !alone)
        s->damaged_in_a_row = 0;
    return o;
}

/* ---- other calls; where the index is damaged, they leave it to the add ---- */

outcome forget(stream *s, record *r, doppel_slice id) {
    unsigned tries = 0;
    for (;;) {
        doppel_error error = {0};
        bool damaged;
        doppel_status status = doppel_engine_remove(s->job->engine, id, NULL, &error);
        if (status == DOPPEL_OK || status == DOPPEL_ERROR_INPUT)
            return OUTCOME_DONE;
        outcome o = index_failed(s, status, &error, &tries, &damaged);
        if (o == OUTCOME_DONE && damaged)
            return divert_damaged(s, r, &error);
        if (o != OUTCOME_DONE)
            return o;
    }
}

static bool is(doppel_slice a, doppel_slice b) {
    return a.length == b.length && (!a.length || !memcmp(a.data, b.data, a.length));
}

/* What the index has by this id, to be freed. *damaged: it is damaged where the document belongs. */
static outcome get_document(stream *s, doppel_slice id, doppel_stored_list *list, bool *damaged) {
    unsigned tries = 0;
    *damaged = false;
    for (;;) {
        doppel_error error = {0};
        doppel_status status = doppel_engine_get(s->job->engine, id, list, &error);
        if (status == DOPPEL_OK || status == DOPPEL_ERROR_INPUT)
            return OUTCOME_DONE;
        outcome o = index_failed(s, status, &error, &tries, damaged);
        if (o != OUTCOME_DONE || *damaged)
            return o;
    }
}

outcome is_there(stream *s, doppel_slice id, doppel_slice origin, bool *there) {
    doppel_stored_list list = {0};
    outcome o = get_document(s, id, &list, there); /* where it is damaged, removing or replacing it fails, too */
    if (list.count)
        *there = is(list.stored->id, id) && !(origin.data && is(list.stored->origin, origin));
    doppel_stored_list_free(&list);
    return o;
}

outcome get_origin(stream *s, doppel_slice id, char origin[ORIGIN_ROOM], bool *there) {
    doppel_stored_list list = {0};
    outcome o = get_document(s, id, &list, there);
    *origin = 0;
    if (list.count && is(list.stored->id, id)) {
        doppel_slice from = list.stored->origin;
        *there = true;
        if (from.data && from.length < ORIGIN_ROOM)
            snprintf(origin, ORIGIN_ROOM, "%.*s", (int)from.length, from.data);
    }
    doppel_stored_list_free(&list);
    return o;
}

outcome has_same_words(stream *s, const doppel_item *page, bool *same) {
    unsigned tries = 0;
    *same = false;
    for (;;) {
        doppel_verdict verdict = {0};
        doppel_error error = {0};
        bool damaged;
        doppel_status status = doppel_engine_check(s->job->engine, page, &verdict, &error);
        if (status == DOPPEL_OK)
            *same = verdict.evidence.same_digest && is(verdict.original_id, page->document.id);
        doppel_verdict_free(&verdict);
        if (status == DOPPEL_OK || status == DOPPEL_ERROR_INPUT || status == DOPPEL_ERROR_USAGE)
            return OUTCOME_DONE;
        outcome o = index_failed(s, status, &error, &tries, &damaged);
        if (o != OUTCOME_DONE || damaged)
            return o;
    }
}
