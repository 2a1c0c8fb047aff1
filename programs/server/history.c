/* history.c - what an index did in each minute of the last day: a ring of minutes, and its form as a text.
 *
 * The text has a line "doppel history 1 LINES CHECKSUM" and then a line a minute, the oldest first: the members of
 * history_minute as decimal numbers, separated by spaces. The checksum is the CRC-32 of what follows its line. */
#include "server/history.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    IDLE_SECONDS = 600, /* after which a history is written although nothing was done */
    NUMBERS = 10        /* of a line */
};

_Static_assert(DOPPEL_REASONS == 4, "a line has a number for each reason");
_Static_assert((HISTORY_MINUTES + 1) * 21 * NUMBERS < HISTORY_BYTES, "numbers have up to 20 digits");

typedef struct counters {
    uint64_t checks, adds, verdicts_by[DOPPEL_REASONS];
} counters;

struct history {
    pthread_mutex_t lock;
    history_minute minutes[HISTORY_MINUTES]; /* minute M is at M modulo their number */
    uint64_t last_add, last_write;           /* when */
    counters last;                           /* at last_add */
    bool active;                             /* something was done since last_write */
};

history *history_create(uint64_t now) {
    history *h = calloc(1, sizeof *h);
    if (h) {
        pthread_mutex_init(&h->lock, NULL);
        h->last_add = h->last_write = now;
    }
    return h;
}

void history_free(history *h) {
    if (!h)
        return;
    pthread_mutex_destroy(&h->lock);
    free(h);
}

/* The place of a minute; what was there of another day is removed. */
static history_minute *minute_at(history *h, uint64_t minute) {
    history_minute *m = &h->minutes[minute % HISTORY_MINUTES];
    if (m->minute != minute)
        *m = (history_minute){.minute = (uint32_t)minute};
    return m;
}

/* a + b, at most UINT32_MAX. */
static uint32_t saturating_add(uint32_t a, uint64_t b) {
    return b < UINT32_MAX - a ? a + (uint32_t)b : UINT32_MAX;
}

/* Adds `more` to a minute or to a sum of minutes; of the two, `more` is the later. */
static void add_minute(history_minute *to, const history_minute *more) {
    to->documents = more->documents;
    to->copies = more->copies;
    to->seconds = saturating_add(to->seconds, more->seconds);
    to->checks = saturating_add(to->checks, more->checks);
    to->adds = saturating_add(to->adds, more->adds);
    for (int i = 0; i < DOPPEL_REASONS; i++)
        to->verdicts_by[i] = saturating_add(to->verdicts_by[i], more->verdicts_by[i]);
}

/* By how much a counter has grown; one that is lower than before has started again from 0. */
static uint32_t increase(uint64_t from, uint64_t to) {
    return saturating_add(0, to < from ? to : to - from);
}

void history_add(history *h, uint64_t now, const doppel_engine_stats *stats) {
    counters current = {.checks = stats->checks, .adds = stats->adds};
    memcpy(current.verdicts_by, stats->verdicts_by, sizeof current.verdicts_by);
    pthread_mutex_lock(&h->lock);
    uint64_t since = h->last_add < now ? h->last_add : now; /* the clock may have been set back */
    history_minute done = {.documents = stats->documents,
                           .copies = stats->copies,
                           .seconds = (uint32_t)(now - since < 60 ? now - since : 60),
                           .checks = increase(h->last.checks, current.checks),
                           .adds = increase(h->last.adds, current.adds)};
    for (int i = 0; i < DOPPEL_REASONS; i++)
        done.verdicts_by[i] = increase(h->last.verdicts_by[i], current.verdicts_by[i]);
    history_minute *m = minute_at(h, since / 60);
    add_minute(m, &done);
    m->seconds = m->seconds < 60 ? m->seconds : 60;
    h->active = h->active || done.checks || done.adds;
    h->last = current;
    h->last_add = now;
    pthread_mutex_unlock(&h->lock);
}

bool history_sum(history *h, uint64_t from, uint64_t to, history_minute *sum) {
    bool known = false;
    *sum = (history_minute){.minute = (uint32_t)from};
    pthread_mutex_lock(&h->lock);
    for (uint64_t minute = from; minute < to; minute++) {
        const history_minute *m = &h->minutes[minute % HISTORY_MINUTES];
        if (m->minute != minute)
            continue;
        add_minute(sum, m);
        known = true;
    }
    pthread_mutex_unlock(&h->lock);
    return known;
}

/* ---- the text ---- */

bool history_is_due(history *h, uint64_t now) {
    pthread_mutex_lock(&h->lock);
    bool due = h->active || now < h->last_write || now - h->last_write >= IDLE_SECONDS;
    pthread_mutex_unlock(&h->lock);
    return due;
}

static uint64_t first_minute(uint64_t now) {
    return now / 60 >= HISTORY_MINUTES ? now / 60 - HISTORY_MINUTES + 1 : 1;
}

void history_write(history *h, uint64_t now, text_buffer *out) {
    text_buffer lines = {0};
    unsigned count = 0;
    pthread_mutex_lock(&h->lock);
    for (uint64_t minute = first_minute(now); minute <= now / 60; minute++) {
        const history_minute *m = &h->minutes[minute % HISTORY_MINUTES];
        if (m->minute != minute)
            continue;
        text_format(&lines, "%u %u %u %u %u %u %u %u %" PRIu64 " %" PRIu64 "\n", m->minute, m->seconds, m->checks,
                    m->adds, m->verdicts_by[0], m->verdicts_by[1], m->verdicts_by[2], m->verdicts_by[3], m->documents,
                    m->copies);
        count++;
    }
    h->active = false;
    h->last_write = now;
    pthread_mutex_unlock(&h->lock);
    text_format(out, "doppel history 1 %u %08lx\n", count,
                crc32(0, (const Bytef *)(lines.data ? lines.data : ""), (uInt)lines.length));
    text_add(out, lines.data ? lines.data : "", lines.length);
    out->failed = out->failed || lines.failed;
    text_free(&lines);
}

/* Reads a line; returns its end, or NULL if it is malformed. */
static const char *read_line(const char *at, history_minute *m) {
    uint64_t numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        char *end;
        numbers[i] = strtoull(at, &end, 10);
        if (*at < '0' || *at > '9' || *end != (i + 1 < NUMBERS ? ' ' : '\n') || (i < 8 && numbers[i] > UINT32_MAX))
            return NULL;
        at = end + 1;
    }
    *m = (history_minute){.minute = (uint32_t)numbers[0],
                          .seconds = (uint32_t)numbers[1],
                          .checks = (uint32_t)numbers[2],
                          .adds = (uint32_t)numbers[3],
                          .documents = numbers[8],
                          .copies = numbers[9]};
    for (int i = 0; i < DOPPEL_REASONS; i++)
        m->verdicts_by[i] = (uint32_t)numbers[4 + i];
    return at;
}

/* Adds `count` lines; with h NULL, only checks whether they are well-formed. */
static bool read_lines(history *h, uint64_t now, const char *at, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        history_minute m;
        at = read_line(at, &m);
        if (!at)
            return false;
        if (h && m.minute >= first_minute(now) && m.minute <= now / 60)
            add_minute(minute_at(h, m.minute), &m);
    }
    return !*at;
}

bool history_read(history *h, uint64_t now, doppel_slice bytes) {
    unsigned count;
    unsigned long checksum;
    int end = 0;
    char *text = malloc(bytes.length + 1); /* with a NUL at its end */
    if (!text)
        return false;
    memcpy(text, bytes.data, bytes.length);
    text[bytes.length] = 0;
    bool fine = sscanf(text, "doppel history 1 %u %8lx%n", &count, &checksum, &end) == 2 && text[end] == '\n';
    const char *lines = text + end + 1;
    fine = fine && checksum == crc32(0, (const Bytef *)lines, (uInt)(bytes.length - (size_t)end - 1)) &&
           count <= HISTORY_MINUTES && read_lines(NULL, now, lines, count);
    if (fine) {
        pthread_mutex_lock(&h->lock);
        read_lines(h, now, lines, count);
        pthread_mutex_unlock(&h->lock);
    }
    free(text);
    return fine;
}
