/* clock.h - the time: how long something takes, when to stop waiting, and dates for people and machines. */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Microseconds on a clock that is never set back. */
uint64_t now_microseconds(void);

/* The time this many milliseconds from now, as pthread_cond_timedwait takes it. */
struct timespec milliseconds_from_now(long milliseconds);

/* Seconds since 1970 as ISO 8601 in UTC, such as 2026-01-31T09:30:00Z. */
enum { DATE_ROOM = 40 };
const char *format_date(uint64_t seconds, char text[DATE_ROOM]);

#endif
