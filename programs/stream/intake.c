/* intake.c - takes records from Kafka, reads them, and hands them to the worker in batches.
 *
 * A batch goes as soon as the worker has nothing to do and its first record has waited for --wait; while the worker is
 * busy it grows, up to --batch records. So batches are small when little comes, and large when much does. */
#include "stream/state.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* A batch of so many bytes waits for no more. */
#define MOST_BYTES ((size_t)32 << 20)

/* Records are read while the worker is busy; then it is looked after so often. */
enum { IDLE = 100, BUSY = 2, PATIENCE = 5000, QUIET = 1000 }; /* ms */

static void tell_error(const rd_kafka_message_t *m) {
    say("%s%s%s", m->rkt ? rd_kafka_topic_name(m->rkt) : "", m->rkt ? ": " : "", rd_kafka_message_errstr(m));
}

/* Takes what a poll gave. */
static void take(stream *s, rd_kafka_message_t *m) {
    if (!m->err) {
        if (!s->gathering->count)
            s->gathering->begun = now_ticks();
        s->gathering->last = now_ticks();
        note_position(s, m);
        note_end(s, m, false);
        stream_batch_add(s->gathering, m, &s->reading);
        return;
    }
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        note_end(s, m, true);
    else
        tell_error(m);
    rd_kafka_message_destroy(m);
}

/* Whether a batch looks as if the worker had been told wrong fields: then it waits for as many records as are judged,
 * as long as they come. */
static bool is_doubtful(const stream *s) {
    const batch *b = s->gathering;
    return s->job->input.refuse_bad && atomic_load(&s->judged) + b->count < STREAM_JUDGED &&
           2 * b->without > b->count && now_ticks() - b->last < QUIET * 1000ull && !all_ended(s);
}

static bool is_due(const stream *s) {
    const batch *b = s->gathering;
    if (b->count == b->room || b->bytes >= MOST_BYTES)
        return true;
    if (!b->count || atomic_load(&s->busy) || is_doubtful(s))
        return false;
    return now_ticks() - b->begun >= s->settings.wait * 1000ull || all_ended(s);
}

/* Whether something is to be done beside taking records. */
static bool is_disturbed(stream *s) {
    if (stream_stop)
        return true;
    pthread_mutex_lock(&s->lock);
    bool disturbed = s->rewind || s->code;
    pthread_mutex_unlock(&s->lock);
    return disturbed;
}

/* Until a batch is due, or all is at its end. */
static void gather(stream *s) {
    for (unsigned taken = 0;; taken++) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(s->consumer, s->gathering->count ? BUSY : IDLE);
        if (m)
            take(s, m);
        if (is_due(s) || (!m && all_ended(s)))
            return;
        if ((!m || taken % 256 == 0) && is_disturbed(s))
            return;
        if (!m)
            report_now_and_then(s);
    }
}

/* ---- handing over ---- */

/* Waits for a place, for so many milliseconds. The lock is held. */
static bool wait_for_place(stream *s, unsigned milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int code = 0;
    while ((s->queued || !s->spare) && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    return !s->queued && s->spare;
}

/* There is no room for a record that came: all that is not committed is read once more. */
static void read_again(stream *s) {
    pthread_mutex_lock(&s->lock);
    s->rewind = true;
    pthread_mutex_unlock(&s->lock);
}

/* The worker is held up: the group must hear from this one all the same, and no more records are wanted. False: the
 * batch was let go meanwhile. */
static bool hold_on(stream *s) {
    bool place = false;
    pause_all(s);
    while (!place && s->gathering->count && !is_disturbed(s)) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(s->consumer, IDLE);
        if (m && !m->err)
            read_again(s); /* it was not paused: its partition has just been assigned */
        if (m)
            rd_kafka_message_destroy(m);
        report_now_and_then(s);
        pthread_mutex_lock(&s->lock);
        place = wait_for_place(s, IDLE);
        pthread_mutex_unlock(&s->lock);
    }
    resume_all(s);
    return place;
}

/* Hands the batch over, and begins a new one. */
static void hand_over(stream *s) {
    pthread_mutex_lock(&s->lock);
    bool place = false;
    for (unsigned waited = 0; !place && waited < PATIENCE && !stream_stop; waited += IDLE)
        place = wait_for_place(s, IDLE);
    pthread_mutex_unlock(&s->lock);
    if (!place && !hold_on(s))
        return;
    pthread_mutex_lock(&s->lock);
    s->gathering->ends = all_ended(s);
    s->queued = s->gathering;
    s->gathering = s->spare;
    s->spare = s->spare->next;
    atomic_store(&s->busy, true);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static int failure(stream *s) {
    pthread_mutex_lock(&s->lock);
    int code = s->code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

static bool must_go_back(stream *s) {
    pthread_mutex_lock(&s->lock);
    bool back = s->rewind && !s->code;
    pthread_mutex_unlock(&s->lock);
    return back;
}

int intake_run(stream *s) {
    while (!failure(s)) {
        gather(s);
        if (must_go_back(s)) {
            if (stream_stop)
                break;
            go_back(s);
            continue;
        }
        if (s->gathering->count && !failure(s))
            hand_over(s);
        report_now_and_then(s);
        if (!stream_stop && !all_ended(s))
            continue;
        wait_until_idle(s);
        if (stream_stop || (!must_go_back(s) && all_ended(s) && !s->gathering->count))
            break;
    }
    wait_until_idle(s);
    return failure(s);
}
