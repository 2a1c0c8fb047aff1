/* worker.c - a batch to the engine, and its outcome to Kafka: part by part, each a transaction. */
#include "stream/parts.h"

#include <stdlib.h>
#include <string.h>

/* ---- batches ---- */

static outcome run_part(stream *s, batch *b, part *p) {
    uint64_t begun = now_ticks();
    outcome o = find_part(s, b, p);
    if (o == OUTCOME_DONE)
        o = add_pages(s, b, p->from, p->to);
    if (o == OUTCOME_DONE)
        divert_refused(s, b, p->from, p->to);
    times_add(&s->figures.engine, now_ticks() - begun);
    return o;
}

/* Bad records are named, a few at a time. With --strict they end the worker. */
static outcome tell_bad(stream *s, const batch *b, size_t from, size_t to) {
    enum { NAMED = 10 };
    size_t bad = 0;
    for (size_t i = from; i < to; i++) {
        const record *r = &b->records[i];
        if (r->kind == RECORD_BAD && bad++ < NAMED)
            say("%s: %s%s", r->origin, r->why ? r->why : "no memory",
                s->to[TO_DEAD_LETTER] || s->settings.strict ? "" : "; left out");
    }
    if (bad > NAMED)
        say("and %zu more like these", bad - NAMED);
    if (!bad || !s->settings.strict)
        return OUTCOME_DONE;
    pthread_mutex_lock(&s->lock);
    s->code = EXIT_INPUT;
    pthread_mutex_unlock(&s->lock);
    return OUTCOME_FAILED;
}

static void make_items(batch *b) {
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++) {
        record *r = &b->records[i];
        if (r->kind != RECORD_PAGE)
            continue;
        b->items[count] = (doppel_item){
            .size = sizeof(doppel_item), .document = *r->document, .origin = {r->origin, strlen(r->origin)}};
        r->item = count++;
    }
}

static outcome run_batch(stream *s, batch *b) {
    part p = {0};
    outcome o = OUTCOME_DONE;
    make_items(b);
    if (!id_set_open(&p.ids, b->count)) {
        say("no memory");
        return OUTCOME_FAILED;
    }
    while (p.from < b->count && o == OUTCOME_DONE && !atomic_load(&s->abandon)) {
        p.adds = p.unnamed = false;
        atomic_store(&s->since, now_ticks());
        id_set_clear(&p.ids);
        o = run_part(s, b, &p);
        if (o == OUTCOME_DONE)
            o = tell_bad(s, b, p.from, p.to);
        if (o == OUTCOME_DONE)
            o = transaction_run(s, b, p.from, p.to);
        p.from = p.to;
    }
    atomic_store(&s->since, 0);
    id_set_free(&p.ids);
    return o;
}

/* ---- the thread ---- */

/* Waits for a batch; NULL: there are no more. */
static batch *take(stream *s) {
    pthread_mutex_lock(&s->lock);
    while (!s->queued && !s->ended)
        pthread_cond_wait(&s->changed, &s->lock);
    batch *b = s->queued;
    s->queued = NULL;
    s->working = b;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return b;
}

static void give_back(stream *s, batch *b, outcome o) {
    if (o == OUTCOME_FAILED)
        producer_close(s); /* which may still hold what the batch has */
    stream_batch_clear(b);
    pthread_mutex_lock(&s->lock);
    b->next = s->spare;
    s->spare = b;
    s->working = false;
    s->rewind = s->rewind || o != OUTCOME_DONE;
    if (o == OUTCOME_FAILED && !s->code)
        s->code = EXIT_STORE;
    atomic_store(&s->busy, s->queued);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *user) {
    stream *s = user;
    for (batch *b; (b = take(s));) {
        pthread_mutex_lock(&s->lock);
        bool drop = s->rewind || s->code || atomic_load(&s->abandon);
        pthread_mutex_unlock(&s->lock);
        give_back(s, b, drop ? OUTCOME_DONE : run_batch(s, b));
    }
    return NULL;
}

bool worker_start(stream *s) {
    if (!pthread_create(&s->worker, NULL, work, s))
        return true;
    say("no threads");
    return false;
}

void worker_stop(stream *s) {
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->worker, NULL);
}

void wait_until_idle(stream *s) {
    pthread_mutex_lock(&s->lock);
    while (s->queued || s->working)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}
