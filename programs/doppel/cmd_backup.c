/* cmd_backup.c - doppel backup: a whole copy of an index, while it is in use. */
#include "common/message.h"
#include "engine_cli.h"

#include <string.h>

const cli_option backup_options[] = {
    FOLDER_OPTION,
    NO_STORE_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* What is in the copy, which may be less than in the index by now. */
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

int cmd_backup(const cli_args *args) {
    engine_cli e;
    doppel_engine_stats stats = {0};
    doppel_error error = {0};
    const char *from = args_text(args, "index"), *to = args->operands[0];
    if (!place_is_folder(args, "of a store, doppel export --store URL -o FILE writes what doppel import reads; Redis "
                               "itself keeps copies by BGSAVE and replicas"))
        return EXIT_USAGE;
    int code = engine_open(&e, args, ENGINE_COPY);
    if (code == EXIT_DONE)
        code = engine_ended(doppel_engine_backup(e.engine, to, &error), &error);
    code = engine_close(&e, code);
    if (code == EXIT_DONE)
        code = count_copy(to, &stats);
    if (code != EXIT_DONE)
        return code;
    printf("{\"index\":");
    print_json(stdout, from, strlen(from));
    printf(",\"backup\":");
    print_json(stdout, to, strlen(to));
    printf(",\"documents\":%llu,\"copies\":%llu}\n", (unsigned long long)stats.documents,
           (unsigned long long)stats.copies);
    return finish_stdout(code);
}
