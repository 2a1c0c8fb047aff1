/* cmd_verify.c - doppel verify: every record of an index is checked, and what is wrong is told. */
#include "common/message.h"
#include "engine_cli.h"

#include <string.h>

const cli_option verify_options[] = {
    FOLDER_OPTION,
    NO_STORE_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct verify_job {
    const char *path;
    unsigned long long findings;
} verify_job;

static void tell_finding(const char *what, void *user) {
    verify_job *job = user;
    job->findings++;
    message("%s: %s", job->path, what);
}

int cmd_verify(const cli_args *args) {
    index_place place;
    doppel_verified found = {0};
    doppel_error error = {0};
    if (!place_is_folder(args, "what Redis writes to its disk, redis-check-aof and redis-check-rdb look at") ||
        !place_find(&place, args))
        return EXIT_USAGE;
    verify_job job = {.path = place.path};
    if (!is_folder(job.path))
        return EXIT_STORE;
    doppel_status status = doppel_engine_verify(job.path, tell_finding, &job, &found, &error);
    if (status != DOPPEL_OK && !job.findings)
        return engine_ended(status, &error);
    printf("{\"index\":");
    print_json(stdout, job.path, strlen(job.path));
    printf(",\"documents\":%llu,\"copies\":%llu,\"removed\":%llu,\"damaged\":%llu,\"bytes\":%llu,\"findings\":%llu}\n",
           (unsigned long long)found.documents, (unsigned long long)found.copies, (unsigned long long)found.removed,
           (unsigned long long)found.damaged, (unsigned long long)found.bytes, job.findings);
    return finish_stdout(exit_code(status));
}
