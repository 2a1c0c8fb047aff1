/* serve.h - doppel serve: what the command calls. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "common/args.h"
#include "doppel.h"

/* Fills in what the command line does not say: from the environment (DOPPEL_LISTEN for --listen), then from the file
 * of --config. The values live as long as the process. Complains and gives an exit code when something makes no sense.
 */
int serve_configure(const cli_args *args);

/* Serves until it is told to stop. Gives the exit code. */
int serve(const cli_args *args, const doppel_engine_options *engine);

/* Writes /openapi.json or docs/HTTP.md to stdout: `what` is openapi or http. */
int serve_generate(const char *what);

#endif
