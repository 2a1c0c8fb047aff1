/* consume.c - records from Kafka: partitions that are assigned and revoked, the return to the committed offsets;
 * records polled, parsed and handed to the worker in batches.
 *
 * All partitions are reassigned each time a worker comes or goes (the eager protocol): every assignment begins at the
 * committed offsets, there is no state to carry over, and one rule holds for a rebalance and for an aborted
 * transaction.
 *
 * A batch goes as soon as the worker has nothing to do and its first record has waited for --wait; while the worker is
 * busy it grows, up to --batch records. So batches are small when little comes, and large when much does. */
#include "common/message.h"
#include "stream/worker.h"

#include <errno.h>
#include <string.h>

static rd_kafka_topic_partition_t *find(rd_kafka_topic_partition_list_t *list, const rd_kafka_message_t *m) {
    return rd_kafka_topic_partition_list_find(list, rd_kafka_topic_name(m->rkt), m->partition);
}

/* ---- positions ---- */

/* for each message that is polled */
static void note_position(stream *s, const rd_kafka_message_t *m) {
    pthread_mutex_lock(&s->lock);
    if (!find(s->positions, m))
        rd_kafka_topic_partition_list_add(s->positions, rd_kafka_topic_name(m->rkt), m->partition)->offset = m->offset;
    pthread_mutex_unlock(&s->lock);
}

static void note_end(stream *s, const rd_kafka_message_t *m, bool end) {
    rd_kafka_topic_partition_t *at = s->ends ? find(s->ends, m) : NULL;
    if (at && (end || m->offset + 1 >= at->offset))
        at->opaque = s; /* reached */
}

static bool all_ended(const stream *s) {
    if (!s->settings.until_end || !s->assigned || !s->ends)
        return false;
    for (int i = 0; i < s->ends->cnt; i++)
        if (!s->ends->elems[i].opaque)
            return false;
    return true;
}

/* Where the partitions end now. */
static void find_ends(stream *s, const rd_kafka_topic_partition_list_t *partitions) {
    enum { PATIENCE = 10000 }; /* ms */
    if (!s->settings.until_end)
        return;
    if (s->ends)
        rd_kafka_topic_partition_list_destroy(s->ends);
    s->ends = rd_kafka_topic_partition_list_copy(partitions);
    for (int i = 0; i < s->ends->cnt; i++) {
        rd_kafka_topic_partition_t *at = &s->ends->elems[i];
        int64_t low, high;
        at->opaque = NULL;
        at->offset = rd_kafka_query_watermark_offsets(s->consumer, at->topic, at->partition, &low, &high, PATIENCE)
                         ? INT64_MAX /* librdkafka will report its end */
                         : high;
    }
}

/* ---- partitions that come and go ---- */

static void assign(stream *s, const rd_kafka_topic_partition_list_t *partitions) {
    rd_kafka_resp_err_t code = rd_kafka_assign(s->consumer, partitions);
    if (code)
        message("partitions cannot be assigned: %s", rd_kafka_err2str(code));
}

/* Partitions stay paused when they are revoked and assigned again, so they are resumed first. */
static void resume_all(stream *s) {
    if (!s->paused)
        return;
    rd_kafka_resume_partitions(s->consumer, s->paused);
    rd_kafka_topic_partition_list_destroy(s->paused);
    s->paused = NULL;
}

static void pause_all(stream *s) {
    resume_all(s);
    if (!rd_kafka_assignment(s->consumer, &s->paused))
        rd_kafka_pause_partitions(s->consumer, s->paused);
}

/* Once the group has removed this worker, its client reports no generation, and the brokers would not check it: so the
 * generation at the time of the assignment is used. */
static void take_generation(stream *s) {
    if (s->generation)
        rd_kafka_consumer_group_metadata_destroy(s->generation);
    s->generation = rd_kafka_consumer_group_metadata(s->consumer);
}

/* The worker finishes what it has begun, and drops the rest. */
static void release_partitions(stream *s) {
    resume_all(s);
    stream_batch_clear(s->gathering);
    atomic_store(&s->abandon, true);
    wait_until_idle(s);
    atomic_store(&s->abandon, false);
    s->reached_count = 0;
    pthread_mutex_lock(&s->lock);
    s->rewind = false;
    rd_kafka_topic_partition_list_destroy(s->positions);
    s->positions = rd_kafka_topic_partition_list_new(8);
    pthread_mutex_unlock(&s->lock);
    s->assigned = false;
}

void on_rebalance(rd_kafka_t *consumer, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *partitions,
                  void *user) {
    stream *s = user;
    (void)consumer;
    atomic_fetch_add(&s->figures.rebalances, 1);
    if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        message("%d partition%s assigned", partitions->cnt, partitions->cnt == 1 ? "" : "s");
        find_ends(s, partitions);
        take_generation(s);
        assign(s, partitions);
        s->assigned = true;
        atomic_store(&s->joined, true);
        return;
    }
    if (code != RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS)
        message("partitions revoked: %s", rd_kafka_err2str(code));
    release_partitions(s);
    assign(s, NULL);
}

/* The partitions with their committed offsets; NULL: not known now. */
static rd_kafka_topic_partition_list_t *committed(stream *s) {
    enum { PATIENCE = 5000 }; /* ms */
    rd_kafka_topic_partition_list_t *all = NULL;
    rd_kafka_resp_err_t code = rd_kafka_assignment(s->consumer, &all);
    if (!code && all->cnt)
        code = rd_kafka_committed(s->consumer, all, PATIENCE);
    for (int i = 0; !code && i < all->cnt; i++)
        code = all->elems[i].err;
    if (!code)
        return all;
    message("the committed offsets cannot be read yet: %s", rd_kafka_err2str(code));
    if (all)
        rd_kafka_topic_partition_list_destroy(all);
    return NULL;
}

/* The committed offsets count, as the worker may not know how its last transaction ended; where there are none yet, the
 * first record that was read. */
static void go_back(stream *s) {
    wait_until_idle(s);
    s->reached_count = 0;
    stream_batch_clear(s->gathering);
    rd_kafka_topic_partition_list_t *all = committed(s);
    if (!all)
        return;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < all->cnt; i++) {
        rd_kafka_topic_partition_t *at = &all->elems[i],
                                   *from = rd_kafka_topic_partition_list_find(s->positions, at->topic, at->partition);
        if (at->offset < 0)
            at->offset = from ? from->offset : RD_KAFKA_OFFSET_INVALID;
    }
    s->rewind = false;
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; s->ends && i < s->ends->cnt; i++)
        s->ends->elems[i].opaque = NULL;
    assign(s, NULL);
    assign(s, all);
    rd_kafka_topic_partition_list_destroy(all);
}

/* ---- taking records ---- */

/* A batch of this many bytes does not wait for more. */
#define MOST_BYTES ((size_t)32 << 20)

/* How long a poll waits: while no record is there, and while a batch is being gathered; how long the worker may keep a
 * batch waiting; how long after its last record a doubtful batch waits for more. */
enum { IDLE = 100, BUSY = 2, PATIENCE = 5000, QUIET = 1000 }; /* ms */

static void tell_error(const rd_kafka_message_t *m) {
    message("%s%s%s", m->rkt ? rd_kafka_topic_name(m->rkt) : "", m->rkt ? ": " : "", rd_kafka_message_errstr(m));
}

/* Takes what a poll gave. */
static void take(stream *s, rd_kafka_message_t *m) {
    if (!m->err) {
        if (!s->gathering->count)
            s->gathering->begun = now_microseconds();
        s->gathering->last = now_microseconds();
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

/* Whether a batch looks as if the worker had been given wrong field names: then it waits until STREAM_JUDGED records
 * are there, as long as more come. */
static bool is_doubtful(const stream *s) {
    const batch *b = s->gathering;
    return s->job->input.refuse_bad && atomic_load(&s->judged) + b->count < STREAM_JUDGED &&
           2 * b->without > b->count && now_microseconds() - b->last < QUIET * 1000ull && !all_ended(s);
}

static bool is_due(const stream *s) {
    const batch *b = s->gathering;
    if (b->count == b->room || b->bytes >= MOST_BYTES)
        return true;
    if (!b->count || atomic_load(&s->busy) || is_doubtful(s))
        return false;
    return now_microseconds() - b->begun >= s->settings.wait * 1000ull || all_ended(s);
}

/* Whether there is something to do besides polling. */
static bool is_disturbed(stream *s) {
    if (stream_stop)
        return true;
    pthread_mutex_lock(&s->lock);
    bool disturbed = s->rewind || s->code;
    pthread_mutex_unlock(&s->lock);
    return disturbed;
}

/* Polls until a batch is due, or all topics are at their end. */
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

/* Waits for a place, for at most this long. The lock is held. */
static bool wait_for_place(stream *s, unsigned milliseconds) {
    struct timespec until = milliseconds_from_now((long)milliseconds);
    int code = 0;
    while ((s->queued || !s->spare) && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    return !s->queued && s->spare;
}

/* There is no room for a record that came: everything that is not committed is read again. */
static void read_again(stream *s) {
    pthread_mutex_lock(&s->lock);
    s->rewind = true;
    pthread_mutex_unlock(&s->lock);
}

/* The worker is busy: this member must still poll for its group, and no more records are wanted. False: the batch was
 * dropped in the meantime. */
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

int consume_run(stream *s) {
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
