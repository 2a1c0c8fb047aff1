/* serve.h - doppel serve: what the command calls. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "common/args.h"
#include "doppel.h"

/* Values that did not come from the command line. Zero is empty. */
typedef struct serve_config {
    char **held;
    size_t count;
} serve_config;

/* Fills in what the command line does not say: from the environment (DOPPEL_LISTEN for --listen), then from the file
 * of --config. Complains and gives an exit code when something makes no sense. Free it in any case, once the arguments
 * are not used any more. */
int serve_configure(serve_config *config, const cli_args *args);
void serve_config_free(serve_config *config);

/* The default index. */
typedef struct served_index {
    const char *path;                     /* as of doppel_engine_open; one that is no folder is told to nobody */
    const doppel_engine_options *options; /* NULL: the defaults */
} served_index;

/* Serves until it is told to stop. Gives the exit code. */
int serve(const cli_args *args, const served_index *index);

/* Writes /openapi.json or docs/HTTP.md to stdout: `what` is openapi or http. */
int serve_generate(const char *what);

#endif
