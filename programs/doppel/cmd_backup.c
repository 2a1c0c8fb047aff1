/* cmd_backup.c - doppel backup: a whole copy of an index, while it is in use. */
#include "commands.h"
#include "common/message.h"
#include "engine/engine_command.h"

#include <string.h>

const cli_option backup_options[] = {
    FOLDER_OPTION,
    {"store", 0, OPTION_TEXT, "URL", "not supported: back up a shared store with the tools of Redis"},
    STORE_PASSWORD_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* Counts what is in the copy; the index may have more by now. */
static int count_copy(const char *path, doppel_engine_stats *stats) {
    const doppel_engine_options options = {.size = sizeof options, .read_only = true};
    doppel_engine *copy = NULL;
    doppel_error error = {0};
    int code = engine_ended(doppel_engine_open(path, &options, &copy, &error), &error);
    if (code == EXIT_DONE)
        doppel_engine_get_stats(copy, stats);
    doppel_engine_close(copy);
    return code;
}

static int print_copy(const char *from, const char *to, const doppel_engine_stats *stats) {
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "index", doppel_slice_of(from));
    text_member_string(&out, "backup", doppel_slice_of(to));
    text_member_count(&out, "documents", stats->documents);
    text_member_count(&out, "copies", stats->copies);
    text_put(&out, "}\n");
    return finish_text(&out, EXIT_DONE);
}

int cmd_backup(const cli_args *args) {
    engine_command e;
    doppel_engine_stats stats = {0};
    doppel_error error = {0};
    const char *to = args->operands[0];
    int code = engine_open(&e, args, ENGINE_COPY);
    if (code == EXIT_DONE)
        code = engine_ended(doppel_engine_backup(e.engine, to, &error), &error);
    if (code == EXIT_DONE)
        code = count_copy(to, &stats);
    if (code == EXIT_DONE)
        code = print_copy(e.path, to, &stats);
    return engine_close(&e, code);
}
