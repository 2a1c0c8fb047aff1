/* cmd_verify.c - doppel verify: every record of an index is checked, and what is wrong is told. */
#include "commands.h"
#include "common/message.h"
#include "engine/engine_command.h"

#include <string.h>

const cli_option verify_options[] = {
    INDEX_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct verify_job {
    const char *name;
    unsigned long long findings;
} verify_job;

static void tell_finding(const char *what, void *user) {
    verify_job *job = user;
    job->findings++;
    message("%s: %s", job->name, what);
}

static int verify(const index_place *place) {
    doppel_verified found = {0};
    doppel_error error = {0};
    verify_job job = {.name = place->name};
    if (place->needs.folder && !is_folder(place->path))
        return EXIT_STORE;
    doppel_status status = doppel_engine_verify(place->path, tell_finding, &job, &found, &error);
    if (status != DOPPEL_OK && !job.findings)
        return engine_ended(status, &error);
    printf("{\"index\":");
    print_json(stdout, job.name, strlen(job.name));
    printf(",\"documents\":%llu,\"copies\":%llu,\"removed\":%llu,\"damaged\":%llu,\"bytes\":%llu,\"findings\":%llu}\n",
           (unsigned long long)found.documents, (unsigned long long)found.copies, (unsigned long long)found.removed,
           (unsigned long long)found.damaged, (unsigned long long)found.bytes, job.findings);
    return finish_stdout(exit_code(status));
}

int cmd_verify(const cli_args *args) {
    index_place place;
    int code = place_find(&place, args) ? verify(&place) : EXIT_USAGE;
    place_free(&place);
    return code;
}
