/* headers.h - the headers of records that are written: those that they came with, and ours behind them. */
#ifndef STREAM_HEADERS_H
#define STREAM_HEADERS_H

#include "stream/batch.h"

/* What ours are called. */
#define HEADER_ORIGINAL "doppel-original"
#define HEADER_ERROR "doppel-error"
#define HEADER_TOPIC "doppel-topic"
#define HEADER_PARTITION "doppel-partition"
#define HEADER_OFFSET "doppel-offset"

/* A copy of the message's headers; NULL: it has none. */
rd_kafka_headers_t *headers_copy(const rd_kafka_message_t *m);

/* The same with the id of the original. */
rd_kafka_headers_t *headers_of_duplicate(const rd_kafka_message_t *m, doppel_slice original);

/* The same with the reason, and where the record was. */
rd_kafka_headers_t *headers_of_dead_letter(const rd_kafka_message_t *m, const char *why);

#endif
