/* cmd_verify.c - doppel verify: every record of an index is checked, and what is wrong is reported. */
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

static void print_finding(const char *what, void *user) {
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
    doppel_status status = doppel_engine_verify(place->path, print_finding, &job, &found, &error);
    if (status != DOPPEL_OK && !job.findings)
        return engine_ended(status, &error);
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "index", doppel_slice_of(job.name));
    text_member_count(&out, "documents", found.documents);
    text_member_count(&out, "copies", found.copies);
    text_member_count(&out, "removed", found.removed);
    text_member_count(&out, "damaged", found.damaged);
    text_member_count(&out, "bytes", found.bytes);
    text_member_count(&out, "findings", job.findings);
    text_put(&out, "}\n");
    return finish_text(&out, exit_code(status));
}

int cmd_verify(const cli_args *args) {
    index_place place;
    int code = place_find(&place, args) ? verify(&place) : EXIT_USAGE;
    place_free(&place);
    return code;
}
