/* serve.h - doppel serve: what the command calls. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "common/args.h"
#include "doppel.h"

/* Values that did not come from the command line. Zero is empty. */
typedef struct serve_config {
    char **values;
    size_t count;
} serve_config;

/* Fills in options that are not on the command line: from the environment (DOPPEL_LISTEN for --listen), then from the
 * file of --config. Prints a message and returns an exit code when something is invalid. Free it in any case, once the
 * arguments are no longer used. */
int serve_configure(serve_config *config, const cli_args *args);
void serve_config_free(serve_config *config);

/* The default index. */
typedef struct served_index {
    const char *path;                     /* as for doppel_engine_open; one that is not a folder is never shown */
    const doppel_engine_options *options; /* NULL: the defaults */
} served_index;

/* Serves until it is asked to stop. Returns the exit code. */
int serve(const cli_args *args, const served_index *index);

/* Writes /openapi.json or docs/HTTP.md to stdout: `what` is openapi or http. */
int serve_generate(const char *what);

#endif
