/* refused.c - records that are too large for the topic they belong to. They go to the dead letters instead; where that
 * topic does not take them, either, somebody has to see to it. */
#include "stream/state.h"

#include <stdlib.h>
#include <string.h>

/* Brokers refuse what was sent together, and do not say which record of it was too large: the largest is. */
void note_refused(stream *s, const rd_kafka_message_t *m) {
    if (m->err != RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || !m->_private || m->len < s->largest_size)
        return;
    s->largest = m->_private;
    s->largest_size = m->len;
}

bool is_refused(const stream *s, const record *r) {
    for (size_t i = 0; i < s->refused_count; i++)
        if (!strcmp(s->refused[i], r->origin))
            return true;
    return false;
}

bool refuse_largest(stream *s) {
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
            record_is_bad(&b->records[i], "too large for the topic it belongs to");
}

void free_refused(stream *s) {
    while (s->refused_count)
        free(s->refused[--s->refused_count]);
}
