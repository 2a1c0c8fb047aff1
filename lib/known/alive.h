/* alive.h - which numbers there are, and when each of them ends: 4 bytes a number, in pages of 65,536 numbers.
 *
 * Pages are found through a directory. One whose numbers are all gone is emptied and used again for others; whoever
 * still reads it by its old place sees no number there, or that it is another page by now.
 *
 * Threads: any number may read at any time, and any number may reserve and set, each its own numbers, while none
 * clears.
 */
#ifndef DP_ALIVE_H
#define DP_ALIVE_H

#include "base/base.h"

#include <pthread.h>

enum { DP_ALIVE_PAGE = 1 << 16 };

typedef struct dp_alive_page {
    _Atomic uint64_t place;     /* which page of numbers it is; UINT64_MAX: none at the moment */
    _Atomic uint32_t count;     /* numbers that are there */
    _Atomic uint32_t earliest;  /* none of them ends before */
    struct dp_alive_page *next; /* among those that wait to be used again */
    _Atomic uint32_t end[DP_ALIVE_PAGE];
} dp_alive_page;

typedef struct dp_alive_directory {
    size_t count;
    struct dp_alive_directory *before; /* smaller ones, which somebody may still look at */
    _Atomic(dp_alive_page *) page[];
} dp_alive_directory;

typedef struct dp_alive {
    pthread_mutex_t lock; /* of pages that come and go */
    _Atomic(dp_alive_directory *) directory;
    dp_alive_page *idle;
    _Atomic uint64_t pages;
} dp_alive;

bool dp_alive_init(dp_alive *alive);
void dp_alive_free(dp_alive *alive);

/* Makes sure that a number can be set; false: no memory. */
bool dp_alive_reserve(dp_alive *alive, uint64_t number);
/* A number is there from now on, until `expires` (0: for ever). It must have been reserved, and not be there. */
void dp_alive_set(dp_alive *alive, uint64_t number, uint64_t expires);
/* False: it was not there. */
bool dp_alive_clear(dp_alive *alive, uint64_t number);

/* Whether it is there, and whether it is and has not ended by `now`. */
bool dp_alive_has(dp_alive *alive, uint64_t number);
bool dp_alive_at(dp_alive *alive, uint64_t number, uint64_t now);

/* Those that have ended by `now`: up to `room` are written, ascending; gives how many. */
size_t dp_alive_ended(dp_alive *alive, uint64_t now, uint64_t *numbers, size_t room);

uint64_t dp_alive_bytes(const dp_alive *alive);

#endif
