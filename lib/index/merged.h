/* merged.h - a run that is being merged: numbers come in ascending order, each with the owners that several runs have
 * of it. init, then gather ... give, or give_stretch; finish; free. */
#ifndef DP_MERGED_H
#define DP_MERGED_H

#include "index/run.h"

typedef struct dp_owner_time {
    uint64_t owner, expires;
} dp_owner_time;

typedef struct dp_merged {
    int words; /* of a number */
    dp_run *run;
    uint64_t *values, *ids, *shared;
    uint64_t shared_words;
    uint64_t *times;      /* by position; NULL: nothing expires */
    dp_buffer lists;      /* uint64_t */
    dp_buffer listed;     /* the times of what is in lists, when there are times */
    dp_owner_time *owner; /* of the number at hand */
    size_t owners, owner_room;
} dp_merged;

/* For at most `most` numbers, `timed` when some expire. False when there is no memory, here and below. */
bool dp_merged_init(dp_merged *merged, dp_run *run, uint64_t most, bool timed);
/* Frees all but the run. */
void dp_merged_free(dp_merged *merged);

/* Adds those of a number's owners that are alive; owners of the number before are forgotten by owners = 0. */
bool dp_merged_gather(dp_merged *merged, const dp_run *run, const dp_owners *owners);
/* Writes a number with the owners that were gathered, at least one. */
bool dp_merged_give(dp_merged *merged, const uint64_t *number);
/* Writes numbers with one owner each, who never expires. */
void dp_merged_give_stretch(dp_merged *merged, const uint64_t *numbers, const uint64_t *owners, uint64_t count);

/* Gives the run all that was written. */
bool dp_merged_finish(dp_merged *merged);

#endif
