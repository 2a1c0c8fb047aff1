/* assignment.c - partitions that come and go, and the way back to what is committed.
 *
 * All partitions are handed out anew each time a worker comes or goes (the eager protocol): every assignment begins at
 * what is committed, there is no state to carry over, and one rule holds for a rebalance and for a transaction that was
 * taken back. */
#include "stream/state.h"

#include <string.h>

static rd_kafka_topic_partition_t *find(rd_kafka_topic_partition_list_t *list, const rd_kafka_message_t *m) {
    return rd_kafka_topic_partition_list_find(list, rd_kafka_topic_name(m->rkt), m->partition);
}

/* ---- where it stands ---- */

void note_position(stream *s, const rd_kafka_message_t *m) {
    pthread_mutex_lock(&s->lock);
    if (!find(s->positions, m))
        rd_kafka_topic_partition_list_add(s->positions, rd_kafka_topic_name(m->rkt), m->partition)->offset = m->offset;
    pthread_mutex_unlock(&s->lock);
}

void note_end(stream *s, const rd_kafka_message_t *m, bool end) {
    rd_kafka_topic_partition_t *at = s->ends ? find(s->ends, m) : NULL;
    if (at && (end || m->offset + 1 >= at->offset))
        at->opaque = s; /* reached */
}

bool all_ended(const stream *s) {
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
                         ? INT64_MAX /* its end will be told */
                         : high;
    }
}

/* ---- partitions that come and go ---- */

static void assign(stream *s, const rd_kafka_topic_partition_list_t *partitions) {
    rd_kafka_resp_err_t code = rd_kafka_assign(s->consumer, partitions);
    if (code)
        say("partitions cannot be assigned: %s", rd_kafka_err2str(code));
}

/* Partitions stay paused when they are given back and come again, so that they are resumed before. */
void resume_all(stream *s) {
    if (!s->paused)
        return;
    rd_kafka_resume_partitions(s->consumer, s->paused);
    rd_kafka_topic_partition_list_destroy(s->paused);
    s->paused = NULL;
}

void pause_all(stream *s) {
    resume_all(s);
    if (!rd_kafka_assignment(s->consumer, &s->paused))
        rd_kafka_pause_partitions(s->consumer, s->paused);
}

/* Once the group has thrown this worker out, its client says that it is of no generation, and then the brokers ask no
 * questions: what counts is what it was when the partitions were assigned. */
static void take_generation(stream *s) {
    if (s->generation)
        rd_kafka_consumer_group_metadata_destroy(s->generation);
    s->generation = rd_kafka_consumer_group_metadata(s->consumer);
}

/* The worker finishes what it has begun, and drops the rest. */
static void let_go(stream *s) {
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
        say("%d partition%s to work on", partitions->cnt, partitions->cnt == 1 ? "" : "s");
        find_ends(s, partitions);
        take_generation(s);
        assign(s, partitions);
        s->assigned = true;
        atomic_store(&s->joined, true);
        return;
    }
    if (code != RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS)
        say("partitions are given back: %s", rd_kafka_err2str(code));
    let_go(s);
    assign(s, NULL);
}

/* The partitions, with what is committed of each; NULL: that is not known now. */
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
    say("what is committed is not known yet: %s", rd_kafka_err2str(code));
    if (all)
        rd_kafka_topic_partition_list_destroy(all);
    return NULL;
}

/* What is committed counts, as the worker may not have heard how its last transaction ended; where nothing is yet, the
 * first record that was read. */
void go_back(stream *s) {
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
