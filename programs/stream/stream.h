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
    doppel_input_options input; /* how records are parsed; `threads` and the callbacks are not used, `stop` is */
    doppel_engine *engine;
} stream_job;

/* Checks the options before the engine is opened: EXIT_USAGE, with a message, when they are invalid. */
int stream_check(const cli_args *args);

/* Works until it is told to stop. Returns the exit code. */
int stream_run(const stream_job *job);

#endif
