/* history.h - what an index did in each minute of the last day.
 *
 *     history_create     with the index: its counters are 0 then
 *     history_read       what an earlier server wrote, if there is a file
 *     history_add        what was done since the last call, once a minute and before every query
 *     history_sum        what was done between two minutes
 *     history_write      all of it, as a text for a file
 *
 * Differences of counters are kept, not the counters: they start from 0 whenever an index is opened. A minute in which
 * the index was not open is not known, which is not the same as one in which nothing was done. */
#ifndef SERVER_HISTORY_H
#define SERVER_HISTORY_H

#include "common/text.h"
#include "doppel.h"

enum { HISTORY_MINUTES = 24 * 60 };

/* What was done in a minute, or in several. */
typedef struct history_minute {
    uint64_t documents, copies; /* at its end */
    uint32_t minute;            /* since 1970; 0: nothing is known */
    uint32_t seconds;           /* of it, those in which the index was open */
    uint32_t checks, adds;
    uint32_t verdicts_by[DOPPEL_REASONS]; /* of checks and adds */
} history_minute;

typedef struct history history;

/* Times are in seconds since 1970. NULL: no memory. All other calls may come from any thread. */
history *history_create(uint64_t now);
void history_free(history *h);

/* Adds what the counters of `stats` say was done since the last call. It belongs to the minute of that call: there is
 * one at the end of every minute. */
void history_add(history *h, uint64_t now, const doppel_engine_stats *stats);

/* Sums up the minutes from `from` up to, not including, `to`; false: nothing is known of them. */
bool history_sum(history *h, uint64_t from, uint64_t to, history_minute *sum);

/* Whether there is something to write: what was done since the last history_write, or ten minutes in which nothing was.
 */
bool history_is_due(history *h, uint64_t now);

/* Writes the minutes of the last day as a text of at most HISTORY_BYTES. */
enum { HISTORY_BYTES = 1 << 20 };
void history_write(history *h, uint64_t now, text_buffer *out);

/* Adds the minutes of such a text; false: it is damaged, and nothing was added. */
bool history_read(history *h, uint64_t now, doppel_slice bytes);

#endif
