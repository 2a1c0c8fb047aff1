/* cmd_remove.c - doppel remove: documents out of an index, one JSON line each. */
#include "commands.h"
#include "common/message.h"
#include "engine/engine_command.h"

#include <string.h>

const cli_option remove_options[] = {
    INDEX_OPTION,
    LOG_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

int cmd_remove(const cli_args *args) {
    engine_command e;
    int code = engine_open(&e, args, ENGINE_WRITE);
    for (size_t i = 0; i < args->operand_count && code == EXIT_DONE; i++) {
        const char *id = args->operands[i];
        bool removed = false;
        doppel_error error = {0};
        code = stop_asked ? engine_ended(DOPPEL_ERROR_INTERRUPTED, &error)
                          : engine_ended(doppel_engine_remove(e.engine, doppel_slice_of(id), &removed, &error), &error);
        if (code != EXIT_DONE)
            break;
        text_buffer out = {0};
        text_put(&out, "{");
        text_member_string(&out, "id", doppel_slice_of(id));
        text_member_bool(&out, "removed", removed);
        text_put(&out, "}\n");
        code = print_text(&out, code);
    }
    return engine_close(&e, finish_stdout(code));
}
