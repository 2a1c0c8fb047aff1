/* properties.h - properties of librdkafka: those of -X, and which of them would break what is promised. */
#ifndef STREAM_PROPERTIES_H
#define STREAM_PROPERTIES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct property {
    char name[128];
    const char *value;
    bool consumer, producer; /* of which client */
} property;

/* Reads NAME=VALUE, consumer.NAME=VALUE or producer.NAME=VALUE. False, with the reason in `why`: it makes no sense, or
 * is refused. */
bool property_read(property *p, const char *given, char *why, size_t room);

#endif
