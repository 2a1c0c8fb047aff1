/* properties.c - properties of librdkafka: those of -X, and which of them would break what is promised. */
#include "stream/properties.h"

#include <stdio.h>
#include <string.h>

/* What is ours to set. */
static const struct {
    const char *name, *why;
} refused[] = {
    {"bootstrap.servers", "--brokers says it"},
    {"metadata.broker.list", "--brokers says it"},
    {"group.id", "--group says it"},
    {"transactional.id",
     "it is made of --group and --instance, so that a worker that starts again ends what its former "
     "self has left open"},
    {"enable.auto.commit", "offsets are committed with the output, in one transaction"},
    {"auto.commit.enable", "offsets are committed with the output, in one transaction"},
    {"auto.commit.interval.ms", "offsets are committed with the output, in one transaction"},
    {"enable.auto.offset.store", "offsets are committed with the output, in one transaction"},
    {"isolation.level", "pages of transactions that were aborted must not be read"},
    {"enable.idempotence", "without it pages could be written twice"},
    {"acks", "with fewer than all of them, pages could be lost"},
    {"request.required.acks", "with fewer than all of them, pages could be lost"},
    {"enable.partition.eof", "--until-end says it"},
    {"delivery.report.only.error", "it is needed as it is"},
    {"partition.assignment.strategy",
     "all partitions are handed out anew when workers come and go; moving them one by one is not supported"},
};

/* Cuts a prefix off. */
static bool lead(const char **text, const char *prefix) {
    size_t length = strlen(prefix);
    if (strncmp(*text, prefix, length) != 0)
        return false;
    *text += length;
    return true;
}

bool property_read(property *p, const char *given, char *why, size_t room) {
    const char *name = given;
    *p = (property){.consumer = true, .producer = true};
    if (lead(&name, "consumer."))
        p->producer = false;
    else if (lead(&name, "producer."))
        p->consumer = false;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : 0;
    if (!length || length >= sizeof p->name) {
        snprintf(why, room, "a property is KEY=VALUE, e.g. security.protocol=ssl, not %.*s",
                 (int)strcspn(given, " \t:"), given); /* what follows may be a password */
        return false;
    }
    p->value = equals + 1;
    if (name[length - 1] == ' ') /* KEY = VALUE */
        p->value += strspn(p->value, " ");
    while (length && name[length - 1] == ' ')
        length--;
    memcpy(p->name, name, length);
    p->name[length] = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!strcmp(p->name, refused[i].name)) {
            snprintf(why, room, "property %s cannot be set: %s", p->name, refused[i].why);
            return false;
        }
    return true;
}
