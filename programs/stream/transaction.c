/* transaction.c - a part of a batch to Kafka: what was decided and the offsets, in one transaction. */
#include "common/message.h"
#include "common/stored_json.h"
#include "stream/verdict_member.h"
#include "stream/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- headers of records that are written: those that they came with, and ours after them ---- */

static rd_kafka_headers_t *headers_copy(const rd_kafka_message_t *m) {
    rd_kafka_headers_t *there;
    return rd_kafka_message_headers(m, &there) ? NULL : rd_kafka_headers_copy(there);
}

/* A copy to add to; headers of an earlier worker are replaced. */
static rd_kafka_headers_t *begin_headers(const rd_kafka_message_t *m, size_t room) {
    rd_kafka_headers_t *headers = headers_copy(m);
    return headers ? headers : rd_kafka_headers_new(room);
}

static void add_header(rd_kafka_headers_t *headers, const char *name, const char *value, size_t length) {
    rd_kafka_header_remove(headers, name);
    rd_kafka_header_add(headers, name, -1, value, (ssize_t)length);
}

static void add_number_header(rd_kafka_headers_t *headers, const char *name, long long value) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", value);
    add_header(headers, name, digits, (size_t)length);
}

static rd_kafka_headers_t *headers_of_duplicate(const rd_kafka_message_t *m, doppel_slice original) {
    rd_kafka_headers_t *headers = begin_headers(m, 1);
    add_header(headers, HEADER_ORIGINAL, original.data ? original.data : "", original.length);
    return headers;
}

static rd_kafka_headers_t *headers_of_dead_letter(const rd_kafka_message_t *m, const char *why) {
    rd_kafka_headers_t *headers = begin_headers(m, 4);
    const char *topic = rd_kafka_topic_name(m->rkt);
    add_header(headers, HEADER_ERROR, why, strlen(why));
    add_header(headers, HEADER_TOPIC, topic, strlen(topic));
    add_number_header(headers, HEADER_PARTITION, m->partition);
    add_number_header(headers, HEADER_OFFSET, m->offset);
    return headers;
}

/* ---- records that are too large for the topic they belong to. They go to the dead letters instead; where that topic
 * refuses them, too, the operator has to act ---- */

/* Brokers refuse a whole batch of records and do not say which was too large: it is the largest. */
void note_refused(stream *s, const rd_kafka_message_t *m) {
    if (m->err != RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || !m->_private || m->len < s->largest_size)
        return;
    s->largest = m->_private;
    s->largest_size = m->len;
}

static bool is_refused(const stream *s, const record *r) {
    for (size_t i = 0; i < s->refused_count; i++)
        if (!strcmp(s->refused[i], r->origin))
            return true;
    return false;
}

/* of those; false: there is nothing to divert */
static bool refuse_largest(stream *s) {
    const record *r = s->largest;
    s->largest = NULL;
    s->largest_size = 0;
    if (!r || !s->to[TO_DEAD_LETTER] || is_refused(s, r))
        return false;
    if (s->refused_count == sizeof s->refused / sizeof *s->refused) {
        free(s->refused[0]); /* done long ago */
        memmove(s->refused, s->refused + 1, --s->refused_count * sizeof *s->refused);
    }
    char *origin = strdup(r->origin);
    if (!origin)
        return false;
    s->refused[s->refused_count++] = origin;
    return true;
}

void divert_refused(stream *s, batch *b, size_t from, size_t to) {
    for (size_t i = from; s->refused_count && i < to; i++)
        if (b->records[i].kind != RECORD_BAD && is_refused(s, &b->records[i]))
            record_is_bad(&b->records[i], "too large for its topic");
}

void free_refused(stream *s) {
    while (s->refused_count)
        free(s->refused[--s->refused_count]);
}

/* ---- writing records ---- */

typedef struct outgoing {
    output to;
    const void *value;
    size_t length;
    int flags;
    rd_kafka_headers_t *headers;
} outgoing;

/* Puts a record into the producer's queue, once there is room. The key and the time stay as they are. */
static rd_kafka_resp_err_t put(stream *s, const record *r, outgoing *out) {
    const rd_kafka_message_t *m = r->message;
    rd_kafka_timestamp_type_t kind;
    int64_t time = rd_kafka_message_timestamp(m, &kind);
    rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = s->to[out->to]},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)out->value, out->length}},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {m->key, m->key_len}},
        {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? 0 : time},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = (void *)(uintptr_t)r},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = out->flags},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = out->headers},
    };
    size_t count = sizeof parts / sizeof *parts - !out->headers;
    for (;;) {
        rd_kafka_error_t *error = rd_kafka_produceva(s->producer, parts, count);
        rd_kafka_resp_err_t code = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
        rd_kafka_error_destroy(error);
        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            if (code && out->headers)
                rd_kafka_headers_destroy(out->headers);
            return code;
        }
        rd_kafka_poll(s->producer, 50);
    }
}

static rd_kafka_resp_err_t put_unchanged(stream *s, const record *r, output to, rd_kafka_headers_t *headers) {
    /* Not copied: the messages of a batch outlive its transaction. */
    outgoing out = {to, r->message->payload, r->message->len, 0, headers};
    return put(s, r, &out);
}

/* The page, with the verdict as its last member. */
static rd_kafka_resp_err_t put_duplicate(stream *s, const record *r, const doppel_verdict *verdict) {
    text_buffer value = {0}, json = {0};
    const doppel_slice page = {r->message->payload, r->message->len};
    doppel_verdict shown = *verdict;
    shown.known = shown.replaced = shown.id_known = false; /* these may differ when the transaction is repeated */
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    text_verdict(&json, &shown, false);
    const doppel_slice member = {json.data, json.length};
    if (!json.failed && object_with(&value, page, s->settings.verdict_key, member) && !value.failed) {
        outgoing out = {TO_DUPLICATES, value.data, value.length, RD_KAFKA_MSG_F_COPY,
                        headers_of_duplicate(r->message, verdict->original_id)};
        code = put(s, r, &out);
    }
    text_free(&json);
    text_free(&value);
    return code;
}

static rd_kafka_resp_err_t put_record(stream *s, const batch *b, const record *r) {
    const doppel_verdict *verdict = &b->verdicts[r->item];
    if (r->kind == RECORD_BAD && !s->to[TO_DEAD_LETTER])
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    if (r->kind == RECORD_BAD)
        return put_unchanged(s, r, TO_DEAD_LETTER,
                             headers_of_dead_letter(r->message, r->why ? r->why : "no memory to say why"));
    if (r->kind == RECORD_PAGE && verdict->is_duplicate)
        return put_duplicate(s, r, verdict);
    return put_unchanged(s, r, TO_UNIQUE, headers_copy(r->message));
}

/* ---- errors ---- */

/* Errors that would occur again at every attempt. */
static bool is_lasting(rd_kafka_resp_err_t code) {
    switch (code) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE: return true;
    default: return false;
    }
}

/* A producer that failed fatally is replaced by a new one. Where another process has taken its name, which happens
 * with the copy of a folder, the new one takes a name of its own: two workers that take the same name in turns would
 * fence each other forever. A name that was given with --instance is left to the worker that came later. */
static outcome replace_producer(stream *s, const char *why) {
    enum { MOST = 3 };
    char fault[256];
    bool fenced = rd_kafka_fatal_error(s->producer, fault, sizeof fault) == RD_KAFKA_RESP_ERR__FENCED;
    bool named = s->settings.instance && (fenced || !s->job->needs.one_writer);
    message("the transaction failed fatally: %s", why);
    producer_close(s);
    if (named || s->reopened++ >= MOST) {
        message(named ? "is there another worker with --instance %s? each needs its own name"
                      : "giving up; %s resumes with the same records when it is restarted",
                named ? s->settings.instance : "doppel stream");
        return OUTCOME_FAILED;
    }
    if (fenced)
        message(
            "another worker uses the name of this one (a copy of its index folder?): this one continues under another");
    return (fenced ? producer_rename(s) : producer_open(s)) ? OUTCOME_AGAIN : OUTCOME_FAILED;
}

/* Aborts the transaction. */
static outcome abort_transaction(stream *s) {
    for (;;) {
        rd_kafka_error_t *error = rd_kafka_abort_transaction(s->producer, -1);
        if (!error)
            break;
        bool again = rd_kafka_error_is_retriable(error) && !stream_stop;
        char why[256];
        snprintf(why, sizeof why, "%s", rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
        atomic_store(&s->away, true);
        if (again)
            message("the transaction cannot be aborted yet: %s", why);
        else
            return replace_producer(s, why);
    }
    atomic_fetch_add(&s->figures.aborted, 1);
    bool too_large = s->undelivered == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
    if (!is_lasting(s->undelivered) || (too_large && refuse_largest(s)))
        return OUTCOME_AGAIN;
    message("%s; fix it (a topic's max.message.bytes, its permissions) and restart doppel stream: nothing is lost",
            rd_kafka_err2str(s->undelivered));
    return OUTCOME_FAILED;
}

/* What to do after an error of a call. *again: repeat the same call. */
static outcome settle(stream *s, rd_kafka_error_t *error, const char *what, bool *again) {
    char why[256];
    bool abort = rd_kafka_error_txn_requires_abort(error), retry = rd_kafka_error_is_retriable(error);
    snprintf(why, sizeof why, "%s: %s", what, rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    atomic_store(&s->away, true);
    if (!abort && retry && !stream_stop) {
        message("%s; trying again", why);
        *again = true;
        return OUTCOME_DONE;
    }
    *again = false;
    if (!abort && !retry)
        return replace_producer(s, why);
    message("%s; the transaction is aborted", why);
    return abort_transaction(s);
}

/* ---- the transaction ---- */

static rd_kafka_topic_partition_list_t *offsets_of(const batch *b, size_t from, size_t to) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    rd_kafka_topic_partition_t *last = NULL;
    for (size_t i = from; i < to; i++) {
        const rd_kafka_message_t *m = b->records[i].message;
        const char *topic = rd_kafka_topic_name(m->rkt);
        if (!last || last->partition != m->partition || strcmp(last->topic, topic) != 0)
            last = rd_kafka_topic_partition_list_find(list, topic, m->partition);
        if (!last)
            last = rd_kafka_topic_partition_list_add(list, topic, m->partition);
        last->offset = m->offset + 1;
    }
    return list;
}

/* A call of the transaction, repeated where that helps. */
static outcome call_until_settled(stream *s, const char *what, rd_kafka_error_t *(*call)(stream *s, const void *with),
                                  const void *with) {
    for (bool again;;) {
        rd_kafka_error_t *error = call(s, with);
        if (!error)
            return OUTCOME_DONE;
        outcome o = settle(s, error, what, &again);
        if (!again)
            return o;
    }
}

static rd_kafka_error_t *begin(stream *s, const void *with) {
    (void)with;
    return rd_kafka_begin_transaction(s->producer);
}

/* With the group's generation in which the records were read: if it is over, other workers have them. */
static rd_kafka_error_t *send_offsets(stream *s, const void *with) {
    enum { PATIENCE = 10000 }; /* ms */
    const rd_kafka_topic_partition_list_t *offsets = with;
    return rd_kafka_send_offsets_to_transaction(s->producer, offsets, s->generation, PATIENCE);
}

static rd_kafka_error_t *commit(stream *s, const void *with) {
    (void)with;
    return rd_kafka_commit_transaction(s->producer, -1);
}

static outcome put_all(stream *s, const batch *b, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        rd_kafka_resp_err_t code = put_record(s, b, &b->records[i]);
        if (!code)
            continue;
        char why[256];
        if (rd_kafka_fatal_error(s->producer, why, sizeof why))
            return replace_producer(s, why);
        s->undelivered = code;
        message("%s cannot be written: %s; the transaction is aborted", b->records[i].origin, rd_kafka_err2str(code));
        return abort_transaction(s);
    }
    return OUTCOME_DONE;
}

static outcome run(stream *s, const batch *b, size_t from, size_t to) {
    s->undelivered = RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_topic_partition_list_t *offsets = offsets_of(b, from, to);
    outcome o = call_until_settled(s, "begin", begin, NULL);
    if (o == OUTCOME_DONE)
        o = put_all(s, b, from, to);
    if (o == OUTCOME_DONE)
        o = call_until_settled(s, "offsets", send_offsets, offsets);
    if (o == OUTCOME_DONE)
        o = call_until_settled(s, "commit", commit, NULL);
    rd_kafka_topic_partition_list_destroy(offsets);
    return o;
}

/* ---- what is committed ---- */

static counted kind_of(const stream *s, const batch *b, const record *r) {
    const doppel_verdict *verdict = &b->verdicts[r->item];
    if (r->kind == RECORD_BAD)
        return s->to[TO_DEAD_LETTER] ? COUNT_DEAD_LETTERS : COUNT_LEFT_OUT;
    if (r->kind == RECORD_TOMBSTONE)
        return COUNT_TOMBSTONES;
    switch (verdict->is_duplicate ? verdict->reason : DOPPEL_REASON_NONE) {
    case DOPPEL_REASON_URL: return COUNT_BY_URL;
    case DOPPEL_REASON_CONTENT: return COUNT_BY_CONTENT;
    case DOPPEL_REASON_TITLE: return COUNT_BY_TITLE;
    default: return COUNT_UNIQUE;
    }
}

static void note(stream *s, const batch *b, size_t from, size_t to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t milliseconds = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    for (size_t i = from; i < to; i++) {
        const record *r = &b->records[i];
        rd_kafka_timestamp_type_t kind;
        int64_t time = rd_kafka_message_timestamp(r->message, &kind);
        atomic_fetch_add_explicit(&s->figures.records[kind_of(s, b, r)], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&s->figures.bytes, r->message->len, memory_order_relaxed);
        if (kind != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE)
            times_add(&s->figures.latency, time < milliseconds ? (uint64_t)(milliseconds - time) * 1000 : 0);
    }
    pthread_mutex_lock(&s->lock);
    for (size_t i = from; i < to; i++) {
        const rd_kafka_message_t *m = b->records[i].message;
        rd_kafka_topic_partition_t *at =
            rd_kafka_topic_partition_list_find(s->positions, rd_kafka_topic_name(m->rkt), m->partition);
        if (at)
            at->offset = m->offset + 1;
        reached *so_far = find_reached(s, m);
        if (so_far) {
            so_far->floor = m->offset + 1;
            so_far->read++;
        }
    }
    pthread_mutex_unlock(&s->lock);
}

outcome transaction_run(stream *s, batch *b, size_t from, size_t to) {
    uint64_t begun = now_microseconds();
    outcome o = run(s, b, from, to);
    if (o != OUTCOME_DONE)
        return o;
    times_add(&s->figures.transaction, now_microseconds() - begun);
    atomic_fetch_add(&s->figures.transactions, 1);
    atomic_store(&s->away, false);
    s->reopened = 0;
    note(s, b, from, to);
    return OUTCOME_DONE;
}
