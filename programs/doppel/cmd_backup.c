/* cmd_backup.c - doppel backup: a whole copy of an index, while it is in use. */
#include "common/message.h"
#include "engine_cli.h"

#include <string.h>

const cli_option backup_options[] = {
    INDEX_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

int cmd_backup(const cli_args *args) {
    engine_cli e;
    doppel_engine_stats stats;
    doppel_error error = {0};
    const char *to = args->operands[0];
    int code = engine_open(&e, args, ENGINE_READ);
    if (code == EXIT_DONE)
        code = engine_ended(doppel_engine_backup(e.engine, to, &error), &error);
    if (code == EXIT_DONE) {
        doppel_engine_get_stats(e.engine, &stats);
        printf("{\"index\":");
        print_json(stdout, e.path, strlen(e.path));
        printf(",\"backup\":");
        print_json(stdout, to, strlen(to));
        printf(",\"documents\":%llu,\"copies\":%llu}\n", (unsigned long long)stats.documents,
               (unsigned long long)stats.copies);
        code = finish_stdout(code);
    }
    return engine_close(&e, code);
}
