/* worker.h - the worker as a whole.
 *
 *     consume.c       the caller's thread: takes records from Kafka and reads them into a batch; partitions that come
 *                     and go, the way back to what is committed
 *     worker.c        a thread of its own: a batch to the engine, cut where it has to be (parts.c, engine_calls.c)
 *     transaction.c   what was decided and the offsets, to Kafka in one transaction
 *     clients.c       the consumer and the producer
 *     report.c        what is said; /metrics
 *
 * While a batch is processed, the next one is read. The worker takes a batch only when the one before is committed, so
 * that the engine is never ahead of Kafka by more than one transaction: after a crash, an open transaction is repeated
 * from its first record, and the engine recognises by their origins the records it has seen. */
#ifndef STREAM_WORKER_H
#define STREAM_WORKER_H

#include "stream/batch.h"
#include "stream/figures.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* This many of the first records are judged before any is processed. */
enum { STREAM_JUDGED = 1000 };

/* How work on a batch or a part of it went. */
typedef enum outcome {
    OUTCOME_DONE,
    OUTCOME_AGAIN, /* nothing of it is committed; it has to be read again */
    OUTCOME_FAILED /* the worker has to end; the reason was reported */
} outcome;

/* How far a partition is committed; known once Kafka was asked. */
typedef struct reached {
    char topic[256];
    int32_t partition;
    int64_t floor; /* the first offset that is not committed */
    int64_t next;  /* the offset after the last record that was taken */
    size_t read;   /* records that were committed since the partition was assigned */
    size_t here;   /* records of the current part */
} reached;

typedef struct stream {
    const stream_job *job;
    stream_settings settings;
    reading reading;
    rd_kafka_t *consumer, *producer;
    rd_kafka_topic_t *to[OUTPUTS];
    char transactional_id[8192];     /* with a long group and instance */
    rd_kafka_resp_err_t undelivered; /* the first reason why a record could not be written */
    const record *largest;           /* of those that were too large */
    size_t largest_size;
    char *refused[1000]; /* the origins of records that go to the dead letters for that */
    size_t refused_count;
    unsigned reopened;         /* how often the producer was reopened since the last commit */
    unsigned damaged_in_a_row; /* records for which the index is damaged */
    reached *reached; /* by partition; of the worker's thread, and emptied by the caller's while that is idle */
    size_t reached_count, reached_room;
    figures figures;
    struct http *http;

    /* Between the two threads. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t worker;
    batch *queued, *spare;
    bool working, ended;
    bool rewind; /* uncommitted records have to be read again; until then the worker drops batches */
    int code;    /* not EXIT_DONE: the worker has failed */
    rd_kafka_topic_partition_list_t *positions; /* the first offset that is not committed */
    /* Of the group when partitions were assigned, for what is read from them; changed while the worker is idle. */
    rd_kafka_consumer_group_metadata_t *generation;
    atomic_uint_fast64_t records, records_without; /* all of them */
    atomic_uint_fast64_t judged, judged_without;   /* the first records; of these, bad ones and pages without a text */
    atomic_bool busy;                              /* queued or working */
    atomic_bool abandon;        /* partitions are being revoked: what has not begun is left to other workers */
    atomic_bool away;           /* the index or the brokers do not answer */
    atomic_uint_fast64_t since; /* when the worker began with a part, in microseconds; 0: it has none */
    atomic_bool joined;         /* partitions were assigned */

    /* Of the caller's thread. */
    batch *gathering;
    rd_kafka_topic_partition_list_t *ends; /* --until-end: where partitions ended at the start; opaque: reached */
    rd_kafka_topic_partition_list_t *paused;
    bool assigned;
    uint64_t reported; /* when, in microseconds */
    uint64_t reported_records;
} stream;

/* 1 once the user has asked to stop. */
extern volatile sig_atomic_t stream_stop;

/* ---- clients.c ---- */
int clients_open(stream *s); /* returns an exit code, with a message unless it is EXIT_DONE */
void clients_close(stream *s);
/* A new producer instead of one that failed fatally. */
bool producer_open(stream *s);
/* The same under a name that no other process has. */
bool producer_rename(stream *s);
void producer_close(stream *s);

/* ---- consume.c ---- */
int consume_run(stream *s);
void on_rebalance(rd_kafka_t *consumer, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *partitions,
                  void *user);

/* ---- worker.c ---- */
reached *find_reached(stream *s, const rd_kafka_message_t *m); /* NULL: not known yet */
/* Drops the records of a batch that were committed, or taken, before. */
outcome drop_repeated(stream *s, batch *b);
bool worker_start(stream *s);
void worker_stop(stream *s);
void wait_until_idle(stream *s);

/* ---- transaction.c ---- */
outcome transaction_run(stream *s, batch *b, size_t from, size_t to);

/* The headers of ours. */
#define HEADER_ORIGINAL "doppel-original"
#define HEADER_ERROR "doppel-error"
#define HEADER_TOPIC "doppel-topic"
#define HEADER_PARTITION "doppel-partition"
#define HEADER_OFFSET "doppel-offset"

/* Records that are too large for the topic they belong to. */
void note_refused(stream *s, const rd_kafka_message_t *m);        /* a record that was not delivered */
void divert_refused(stream *s, batch *b, size_t from, size_t to); /* makes them bad ones */
void free_refused(stream *s);

/* ---- report.c ---- */
void on_kafka_log(const rd_kafka_t *client, int level, const char *part, const char *line);
void report_now_and_then(stream *s);
int report_end(stream *s, int code);

int http_start(stream *s); /* the exit code */
void http_stop(stream *s);

#endif
