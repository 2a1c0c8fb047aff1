/* leaving.h - numbers that are to be removed by a commit that is not durable yet: checks still find them, adds do not.
 *
 * A set with open addressing; zero is empty. Whoever decides holds a lock around all of it. */
#ifndef DP_LEAVING_H
#define DP_LEAVING_H

#include "base/base.h"

typedef struct dp_leaving {
    uint64_t *slot; /* 0: empty */
    size_t room, count;
} dp_leaving;

/* Makes room for one more; false: no memory, and nothing has changed. */
bool dp_leaving_reserve(dp_leaving *leaving);
/* Adds a number, for which there is room. */
void dp_leaving_add(dp_leaving *leaving, uint64_t number);
bool dp_leaving_has(const dp_leaving *leaving, uint64_t number);
void dp_leaving_clear(dp_leaving *leaving);
void dp_leaving_free(dp_leaving *leaving);

#endif
