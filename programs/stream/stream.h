/* stream.h - doppel stream: what the command calls. */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include "common/args.h"
#include "doppel.h"

/* What it works with; everything is borrowed. */
typedef struct stream_job {
    const cli_args *args;
    const char *place;          /* of the index, as it may be shown */
    doppel_engine_needs needs;  /* of the index's path */
    doppel_input_options input; /* how records are read; of `threads` and the calls only `stop` counts */
    doppel_engine *engine;
} stream_job;

/* Whether the options make sense; complains and gives EXIT_USAGE when they do not. For before the engine is opened. */
int stream_check(const cli_args *args);

/* Works until it is told to stop. Gives the exit code. */
int stream_run(const stream_job *job);

#endif
