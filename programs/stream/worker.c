/* worker.c - a batch to the engine, and its outcome to Kafka: part by part, each a transaction. */
#include "common/message.h"
#include "stream/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- how far partitions are committed ---- */

reached *find_reached(stream *s, const rd_kafka_message_t *m) {
    const char *topic = rd_kafka_topic_name(m->rkt);
    for (size_t i = 0; i < s->reached_count; i++)
        if (s->reached[i].partition == m->partition && !strcmp(s->reached[i].topic, topic))
            return &s->reached[i];
    return NULL;
}

/* Whether a group that has committed nothing begins with the first record. */
static bool begins_at_the_start(const stream *s) {
    bool start = true;
    for (size_t i = 0; i < s->settings.property_count; i++) {
        const property *p = &s->settings.properties[i];
        if (p->consumer && !strcmp(p->name, "auto.offset.reset"))
            start = !strcmp(p->value, "earliest") || !strcmp(p->value, "smallest") || !strcmp(p->value, "beginning");
    }
    return start;
}

/* The same, asking the brokers if needed; NULL: the worker has to stop. */
static reached *learn_reached(stream *s, const rd_kafka_message_t *m) {
    enum { PATIENCE = 1000 }; /* ms */
    reached *found = find_reached(s, m);
    if (found)
        return found;
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *at = rd_kafka_topic_partition_list_add(one, rd_kafka_topic_name(m->rkt), m->partition);
    rd_kafka_resp_err_t code = rd_kafka_committed(s->consumer, one, PATIENCE);
    while ((code = code ? code : at->err) && !stream_stop && !atomic_load(&s->abandon)) {
        message("the committed offsets cannot be read yet: %s", rd_kafka_err2str(code));
        usleep(100000);
        code = rd_kafka_committed(s->consumer, one, PATIENCE);
    }
    int64_t floor = at->offset >= 0 ? at->offset : begins_at_the_start(s) ? 0 : m->offset;
    rd_kafka_topic_partition_list_destroy(one);
    if (!code && s->reached_count == s->reached_room) {
        reached *grown = realloc(s->reached, (2 * s->reached_room + 8) * sizeof *grown);
        if (!grown)
            return NULL;
        s->reached = grown;
        s->reached_room = 2 * s->reached_room + 8;
    }
    if (code)
        return NULL;
    found = &s->reached[s->reached_count++];
    *found = (reached){.partition = m->partition, .floor = floor, .next = floor};
    snprintf(found->topic, sizeof found->topic, "%s", rd_kafka_topic_name(m->rkt));
    return found;
}

/* ---- records that come again ----
 *
 * An assignment begins at the committed offsets. But where a partition is revoked and soon assigned again, librdkafka
 * before 2.4 may first deliver records from where the assignment before began (its issue 4636). What is committed was
 * written, perhaps by another worker, and must not be written again. */

outcome drop_repeated(stream *s, batch *b) {
    size_t kept = 0, count = b->count;
    for (size_t i = 0; i < count; i++)
        if (!learn_reached(s, b->records[i].message))
            return OUTCOME_AGAIN;
    for (size_t i = 0; i < count; i++) {
        record *r = &b->records[i];
        reached *at = find_reached(s, r->message);
        if (r->message->offset < at->next) {
            b->without -= r->without;
            record_free(r);
            continue;
        }
        at->next = r->message->offset + 1;
        if (kept != i)
            b->records[kept] = *r;
        kept++;
    }
    b->count = kept;
    if (kept < count)
        message("%zu records came again after they were committed, and are dropped", count - kept);
    return OUTCOME_DONE;
}

/* ---- pages that were indexed and never written ----
 *
 * What a worker has added to the index, and has not committed when it dies, is read again, and the index recognises it
 * by its origin. But the record may be gone by then: compaction replaced it by a later one with the same key, or it was
 * older than the retention of the topic. Its document then belongs to a record that will never be written, and the page
 * would be a duplicate of itself when it comes again. Such a document is recognised by its origin: an offset of the
 * same partition that is neither committed nor among the records read. It is removed, and the page is checked again.
 *
 * There is work to do only where offsets are missing among the records of a part, and, as a worker is never ahead of
 * Kafka by more than a transaction, only for the first MOST_BATCH records of a partition after it was assigned. */

/* Whether a record is in a part. */
static bool has_offset(const batch *b, const part *p, const rd_kafka_message_t *m, int64_t offset) {
    for (size_t i = p->from; i < p->to; i++) {
        const rd_kafka_message_t *other = b->records[i].message;
        if (other->offset == offset && other->partition == m->partition && other->rkt == m->rkt)
            return true;
    }
    return false;
}

/* Whether a document of this origin was added for a record that is no longer there; `r` is a later one, and `at` its
 * partition. */
static bool is_lost(const batch *b, const part *p, const record *r, const reached *at, const char *origin) {
    const char *slash = strrchr(r->origin, '/');
    size_t lead = (size_t)(slash - r->origin) + 1;
    char *end = NULL;
    if (strncmp(origin, r->origin, lead) != 0 || !origin[lead])
        return false;
    long long offset = strtoll(origin + lead, &end, 10);
    return !*end && offset >= at->floor && offset < r->message->offset && !has_offset(b, p, r->message, offset);
}

static outcome judge_anew(stream *s, batch *b, const part *p, record *r, const reached *at) {
    const doppel_verdict *verdict = &b->verdicts[r->item];
    char origin[ORIGIN_ROOM];
    bool there;
    outcome o = get_origin(s, verdict->original_id, origin, &there);
    if (o != OUTCOME_DONE || (there && !is_lost(b, p, r, at, origin)))
        return o;
    if (there) {
        message("%s: a duplicate of the record at %s, which was indexed but never committed and is no longer in the "
                "topic: checked again",
                r->origin, origin);
        o = forget(s, r, verdict->original_id);
    }
    return o == OUTCOME_DONE && r->kind == RECORD_PAGE ? add_alone(s, b, r, 0) : o;
}

static bool has_duplicates(const batch *b, const part *p) {
    for (size_t i = p->from; i < p->to; i++)
        if (b->records[i].kind == RECORD_PAGE && b->verdicts[b->records[i].item].is_duplicate)
            return true;
    return false;
}

static outcome judge_copies_of_lost(stream *s, batch *b, const part *p) {
    outcome o = OUTCOME_DONE;
    if (!has_duplicates(b, p))
        return OUTCOME_DONE;
    for (size_t i = 0; i < s->reached_count; i++)
        s->reached[i].here = 0;
    for (size_t i = p->from; i < p->to && o == OUTCOME_DONE; i++) {
        record *r = &b->records[i];
        reached *at = learn_reached(s, r->message);
        if (!at)
            return OUTCOME_AGAIN;
        bool gap = r->message->offset - at->floor > (int64_t)at->here++;
        if (gap && at->read < MOST_BATCH && r->kind == RECORD_PAGE && b->verdicts[r->item].is_duplicate)
            o = judge_anew(s, b, p, r, at);
    }
    return o;
}

/* ---- batches ---- */

static outcome run_part(stream *s, batch *b, part *p) {
    uint64_t begun = now_microseconds();
    outcome o = find_part(s, b, p);
    if (o == OUTCOME_DONE)
        o = add_pages(s, b, p->from, p->to);
    if (o == OUTCOME_DONE)
        o = judge_copies_of_lost(s, b, p);
    if (o == OUTCOME_DONE)
        divert_refused(s, b, p->from, p->to);
    times_add(&s->figures.engine, now_microseconds() - begun);
    return o;
}

/* Reports bad records, a few at a time. With --strict they end the worker. */
static outcome report_bad(stream *s, const batch *b, size_t from, size_t to) {
    enum { NAMED = 10 };
    size_t bad = 0;
    for (size_t i = from; i < to; i++) {
        const record *r = &b->records[i];
        if (r->kind == RECORD_BAD && bad++ < NAMED)
            message("%s: %s%s", r->origin, r->why ? r->why : "no memory",
                    s->to[TO_DEAD_LETTER] || s->settings.strict ? "" : "; left out");
    }
    if (bad > NAMED)
        message("and %zu more like these", bad - NAMED);
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

/* Reports that the records do not have the given fields, and shows one. */
static void report_refused(const stream *s, const batch *b, uint64_t judged, uint64_t without) {
    enum { SHOWN = 150 };
    size_t i = 0;
    while (i + 1 < b->count && !b->records[i].without)
        i++;
    const rd_kafka_message_t *m = b->records[i].message;
    const char *text_key = s->job->input.text_key, *html_key = s->job->input.html_key;
    message("%llu of the first %llu records are bad, or have no field \"%s\" or \"%s\": --text-key names the field; "
            "--allow-bad continues without them. %s begins: %.*s",
            (unsigned long long)without, (unsigned long long)judged, text_key ? text_key : "text",
            html_key ? html_key : "html", b->records[i].origin, (int)(m->len < SHOWN ? m->len : SHOWN),
            m->payload ? (const char *)m->payload : "");
}

/* Judges the first records before the batch is processed. At the end of the topics, fewer than STREAM_JUDGED are
 * enough. */
static outcome judge(stream *s, const batch *b) {
    uint64_t judged = atomic_load(&s->judged), without = atomic_load(&s->judged_without);
    atomic_fetch_add(&s->records, b->count);
    atomic_fetch_add(&s->records_without, b->without);
    if (!s->job->input.refuse_bad || judged >= STREAM_JUDGED)
        return OUTCOME_DONE;
    for (size_t i = 0; i < b->count && judged < STREAM_JUDGED; i++)
        if (b->records[i].kind != RECORD_TOMBSTONE) {
            judged++;
            without += b->records[i].without;
        }
    atomic_store(&s->judged, judged);
    atomic_store(&s->judged_without, without);
    if (2 * without <= judged || (judged < STREAM_JUDGED && !b->ends))
        return OUTCOME_DONE;
    report_refused(s, b, judged, without);
    pthread_mutex_lock(&s->lock);
    s->code = EXIT_INPUT;
    pthread_mutex_unlock(&s->lock);
    return OUTCOME_FAILED;
}

static outcome run_batch(stream *s, batch *b) {
    part p = {0};
    outcome o = drop_repeated(s, b);
    if (o == OUTCOME_DONE)
        o = judge(s, b);
    if (o != OUTCOME_DONE)
        return o;
    make_items(b);
    if (!id_set_open(&p.ids, b->count)) {
        message("no memory");
        return OUTCOME_FAILED;
    }
    while (p.from < b->count && o == OUTCOME_DONE && !atomic_load(&s->abandon)) {
        p.adds = p.unnamed = false;
        atomic_store(&s->since, now_microseconds());
        id_set_clear(&p.ids);
        o = run_part(s, b, &p);
        if (o == OUTCOME_DONE)
            o = report_bad(s, b, p.from, p.to);
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
        producer_close(s); /* which may still refer to messages of the batch */
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
    message("no threads");
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
