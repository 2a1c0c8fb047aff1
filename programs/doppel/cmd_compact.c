/* cmd_compact.c - doppel compact: an index in its smallest form. */
#include "commands.h"
#include "common/message.h"
#include "engine/engine_command.h"

#include <string.h>

const cli_option compact_options[] = {
    INDEX_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

int cmd_compact(const cli_args *args) {
    engine_command e;
    doppel_engine_stats before, after;
    doppel_error error = {0};
    int code = engine_open(&e, args, ENGINE_WRITE);
    if (code == EXIT_DONE) {
        doppel_engine_get_stats(e.engine, &before);
        code = engine_ended(doppel_engine_compact(e.engine, &error), &error);
    }
    if (code == EXIT_DONE) {
        doppel_engine_get_stats(e.engine, &after);
        printf("{\"index\":");
        print_json(stdout, e.path, strlen(e.path));
        printf(",\"documents\":%llu,\"copies\":%llu,\"bytesBefore\":%llu,\"bytes\":%llu}\n",
               (unsigned long long)after.documents, (unsigned long long)after.copies,
               (unsigned long long)before.disk_bytes, (unsigned long long)after.disk_bytes);
        code = finish_stdout(code);
    }
    return engine_close(&e, code);
}
