/* headers.c - the headers of records that are written. */
#include "stream/headers.h"

#include <stdio.h>
#include <string.h>

rd_kafka_headers_t *headers_copy(const rd_kafka_message_t *m) {
    rd_kafka_headers_t *there;
    return rd_kafka_message_headers(m, &there) ? NULL : rd_kafka_headers_copy(there);
}

/* A copy to add to; ours of an earlier worker give way. */
static rd_kafka_headers_t *begin(const rd_kafka_message_t *m, size_t room) {
    rd_kafka_headers_t *headers = headers_copy(m);
    return headers ? headers : rd_kafka_headers_new(room);
}

static void add(rd_kafka_headers_t *headers, const char *name, const char *value, size_t length) {
    rd_kafka_header_remove(headers, name);
    rd_kafka_header_add(headers, name, -1, value, (ssize_t)length);
}

static void add_number(rd_kafka_headers_t *headers, const char *name, long long value) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", value);
    add(headers, name, digits, (size_t)length);
}

rd_kafka_headers_t *headers_of_duplicate(const rd_kafka_message_t *m, doppel_slice original) {
    rd_kafka_headers_t *headers = begin(m, 1);
    add(headers, HEADER_ORIGINAL, original.data ? original.data : "", original.length);
    return headers;
}

rd_kafka_headers_t *headers_of_dead_letter(const rd_kafka_message_t *m, const char *why) {
    rd_kafka_headers_t *headers = begin(m, 4);
    const char *topic = rd_kafka_topic_name(m->rkt);
    add(headers, HEADER_ERROR, why, strlen(why));
    add(headers, HEADER_TOPIC, topic, strlen(topic));
    add_number(headers, HEADER_PARTITION, m->partition);
    add_number(headers, HEADER_OFFSET, m->offset);
    return headers;
}
