/* scenario.h - everything an engine can do, once, on a small scale, and what came of it, in memory that outlives the
 * process. */
#ifndef TORTURE_SCENARIO_H
#define TORTURE_SCENARIO_H

#include "torture.h"

enum { MOST_STEPS = 256 };

typedef struct tt_outcomes {
    bool by_distance; /* how engines are opened; what follows came of it */
    size_t count;
    tt_step steps[MOST_STEPS];
    uint64_t refusals;  /* calls that reported an error */
    uint64_t surprises; /* verdicts and answers that were not right, though no call before had failed */
    uint64_t calls;     /* that could have failed */
    bool finished;      /* it came to its end */
    char first[600];    /* error */
    char first_surprise[200];
} tt_outcomes;

/* Two sessions on the folder: adds, copies, a batch, links, removals, replacements, checks and look-ups, compacting, a
 * backup. Whatever fails, the rest is tried. */
void scenario_run(const char *folder, const char *backup, tt_outcomes *out);

/* How engines of the scenario are opened. */
tt_setup scenario_setup(const char *folder, bool by_distance);

#endif
