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
        text_buffer out = {0};
        text_put(&out, "{");
        text_member_string(&out, "index", doppel_slice_of(e.path));
        text_member_count(&out, "documents", after.documents);
        text_member_count(&out, "copies", after.copies);
        text_member_count(&out, "bytesBefore", before.disk_bytes);
        text_member_count(&out, "bytes", after.disk_bytes);
        text_put(&out, "}\n");
        code = finish_text(&out, code);
    }
    return engine_close(&e, code);
}
