/* settings.h - the options of the command line, as the worker uses them; properties of librdkafka. */
#ifndef STREAM_SETTINGS_H
#define STREAM_SETTINGS_H

#include "stream/stream.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct property {
    char name[128];
    const char *value;
    bool consumer, producer; /* of which client */
} property;

/* Reads NAME=VALUE, consumer.NAME=VALUE or producer.NAME=VALUE. False, with the reason in `why`: it is invalid, or
 * refused. */
bool property_read(property *p, const char *given, char *why, size_t room);

enum { MOST_TOPICS = 64, MOST_BATCH = 100000 }; /* of the records of a batch: librdkafka's queue holds as many */

/* Where records go. */
typedef enum output { TO_UNIQUE, TO_DUPLICATES, TO_DEAD_LETTER, OUTPUTS } output;

typedef struct stream_settings {
    const char *brokers, *group, *instance, *verdict_key, *listen;
    const char *topics[OUTPUTS]; /* of TO_DEAD_LETTER: may be NULL */
    const char *in[MOST_TOPICS];
    size_t in_count;
    property *properties;
    size_t property_count;
    char *property_file; /* what was read, which they may point into */
    size_t batch;        /* records of a transaction, at most */
    unsigned wait;       /* milliseconds that a batch waits for more records while the worker is idle */
    size_t max_record;   /* bytes */
    bool until_end, strict, json;
    char *held;
} stream_settings;

/* Prints a message and returns false when they are invalid. Free them in any case. */
bool stream_settings_read(stream_settings *s, const cli_args *args);
void stream_settings_free(stream_settings *s);

#endif
