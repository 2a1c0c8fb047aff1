/* asking.c - the engine asked, again and again while its index does not answer. */
#include "stream/parts.h"

#include <string.h>
#include <unistd.h>

/* Waits before something is tried again: 0.2 s, twice as long each time, up to 10 s. False: it is not to be tried. */
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

/* Whether an error is one that may pass. */
static bool may_pass(doppel_status status) {
    return status == DOPPEL_ERROR_STORE || status == DOPPEL_ERROR_IO;
}

/* The index has failed; *tries counts. OUTCOME_DONE: once more. */
static outcome engine_failed(stream *s, doppel_status status, const doppel_error *error, unsigned *tries) {
    say("%s: %s%s", s->job->place, error->message, may_pass(status) ? "; trying again" : "");
    atomic_store(&s->away, true);
    if (!may_pass(status))
        return OUTCOME_FAILED;
    if (wait_to_try(s, (*tries)++))
        return OUTCOME_DONE;
    return atomic_load(&s->abandon) ? OUTCOME_AGAIN : OUTCOME_FAILED;
}

/* A page that the engine would not have is given once more, alone, to hear why. */
static outcome ask_again(stream *s, batch *b, record *r) {
    unsigned tries = 0;
    for (;;) {
        doppel_error error = {0};
        doppel_status status = doppel_engine_add(s->job->engine, &b->items[r->item], &b->verdicts[r->item], &error);
        if (status == DOPPEL_OK)
            return OUTCOME_DONE;
        if (status == DOPPEL_ERROR_INPUT || status == DOPPEL_ERROR_USAGE) {
            record_is_bad(r, error.message);
            return OUTCOME_DONE;
        }
        outcome o = engine_failed(s, status, &error, &tries);
        if (o != OUTCOME_DONE)
            return o;
    }
}

outcome add_pages(stream *s, batch *b, size_t from, size_t to) {
    size_t first = SIZE_MAX, count = 0;
    unsigned tries = 0;
    for (size_t i = from; i < to; i++)
        if (b->records[i].kind == RECORD_PAGE) {
            first = first == SIZE_MAX ? b->records[i].item : first;
            count++;
        }
    for (outcome o = OUTCOME_DONE; count;) {
        doppel_error error = {0};
        doppel_status status = doppel_engine_add_batch(s->job->engine, b->items + first, count, b->verdicts + first,
                                                       b->statuses + first, &error);
        if (status == DOPPEL_OK)
            break;
        if ((o = engine_failed(s, status, &error, &tries)) != OUTCOME_DONE)
            return o;
    }
    for (size_t i = from; i < to; i++) {
        record *r = &b->records[i];
        outcome o = r->kind == RECORD_PAGE && b->statuses[r->item] != DOPPEL_OK ? ask_again(s, b, r) : OUTCOME_DONE;
        if (o != OUTCOME_DONE)
            return o;
    }
    return OUTCOME_DONE;
}

outcome forget(stream *s, const rd_kafka_message_t *m) {
    unsigned tries = 0;
    for (;;) {
        doppel_error error = {0};
        doppel_status status = doppel_engine_remove(s->job->engine, m->key, m->key_len, NULL, &error);
        if (status == DOPPEL_OK || status == DOPPEL_ERROR_INPUT)
            return OUTCOME_DONE;
        outcome o = engine_failed(s, status, &error, &tries);
        if (o != OUTCOME_DONE)
            return o;
    }
}

static bool is(doppel_slice a, doppel_slice b) {
    return a.length == b.length && (!a.length || !memcmp(a.data, b.data, a.length));
}

outcome is_there(stream *s, doppel_slice id, doppel_slice origin, bool *there) {
    unsigned tries = 0;
    *there = false;
    for (;;) {
        doppel_stored_list list = {0};
        doppel_error error = {0};
        doppel_status status = doppel_engine_get(s->job->engine, id.data, id.length, &list, &error);
        if (status == DOPPEL_OK && list.count)
            *there = is(list.stored->id, id) && !(origin.data && is(list.stored->origin, origin));
        doppel_stored_list_free(&list);
        if (status == DOPPEL_OK || status == DOPPEL_ERROR_INPUT)
            return OUTCOME_DONE;
        outcome o = engine_failed(s, status, &error, &tries);
        if (o != OUTCOME_DONE)
            return o;
    }
}

outcome has_same_words(stream *s, const doppel_item *page, bool *same) {
    unsigned tries = 0;
    *same = false;
    for (;;) {
        doppel_verdict verdict = {0};
        doppel_error error = {0};
        doppel_status status = doppel_engine_check(s->job->engine, page, &verdict, &error);
        if (status == DOPPEL_OK)
            *same = verdict.evidence.same_digest &&
                    is(verdict.original_id, (doppel_slice){page->document.id, page->document.id_length});
        doppel_verdict_free(&verdict);
        if (status == DOPPEL_OK || status == DOPPEL_ERROR_INPUT || status == DOPPEL_ERROR_USAGE)
            return OUTCOME_DONE;
        outcome o = engine_failed(s, status, &error, &tries);
        if (o != OUTCOME_DONE)
            return o;
    }
}
