/* batch.h - records of a topic on their way through the worker. */
#ifndef STREAM_BATCH_H
#define STREAM_BATCH_H

#include "stream/settings.h"

#include <librdkafka/rdkafka.h>

/* The longest name of a topic has 249 bytes. */
enum { ORIGIN_ROOM = 296 };

typedef enum record_kind {
    RECORD_PAGE,
    RECORD_TOMBSTONE, /* no value: the document whose id is the key is to be removed */
    RECORD_BAD
} record_kind;

typedef struct record {
    rd_kafka_message_t *message;
    doppel_document *document; /* of a page; its id may be the record's key */
    record_kind kind;
    char *why;    /* why it is bad; NULL: out of memory for the reason */
    size_t item;  /* of a page: its place among the batch's items */
    bool without; /* it is bad, or has no text */
    char origin[ORIGIN_ROOM];
} record;

typedef struct batch {
    record *records;
    size_t count, room;
    size_t bytes;   /* of values and keys */
    uint64_t begun; /* when the first came, in microseconds */
    uint64_t last;  /* when the last came */
    size_t without; /* records that are bad, or pages without a text: for judging the first records */
    bool ends;      /* no more come: the topics are at their end */
    /* What the engine is given; as many places as for records. */
    doppel_item *items;
    doppel_verdict *verdicts;
    doppel_error *errors;
    struct batch *next; /* where they are kept */
} batch;

batch *stream_batch_create(size_t room); /* NULL: out of memory */
void stream_batch_free(batch *b);

/* Empties it, and frees the messages. */
void stream_batch_clear(batch *b);

/* How records are read: as doppel_input_options say, with the id once more after the other extra keys, where an invalid
 * id can be seen. */
typedef struct reading {
    doppel_input_options input;
    const char *keys[16]; /* as many as a reader takes */
    bool sees_id;
    size_t max_record;
} reading;

void reading_open(reading *r, const doppel_input_options *input, size_t max_record);

/* Adds a message, which the batch owns from now on. There must be room. */
void stream_batch_add(batch *b, rd_kafka_message_t *message, const reading *how);

/* Frees its message and what was read from it. */
void record_free(record *r);

/* Marks a record as bad, with the reason. */
void record_is_bad(record *r, const char *why);

#endif
