/* cmd_get.c - doppel get: what an index remembers of documents, one JSON line each. */
#include "commands.h"
#include "common/message.h"
#include "common/stored_json.h"
#include "engine/engine_command.h"

#include <string.h>

const cli_option get_options[] = {
    INDEX_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* Returns EXIT_INPUT for an id that is not there. */
static int get_one(const engine_command *e, const char *id) {
    int bits = doppel_recipe_bits(doppel_engine_get_options(e->engine)->recipe);
    doppel_stored_list list = {0};
    doppel_error error = {0};
    int code = engine_ended(doppel_engine_get(e->engine, doppel_slice_of(id), &list, &error), &error);
    if (code == EXIT_DONE && !list.count) {
        message("%s: the index has no document with this id or URL", id);
        code = EXIT_INPUT;
    }
    text_buffer out = {0};
    for (size_t i = 0; i < list.count && code == EXIT_DONE; i++) {
        text_stored(&out, &list.stored[i], bits);
        text_put(&out, "\n");
    }
    doppel_stored_list_free(&list);
    return print_text(&out, code);
}

int cmd_get(const cli_args *args) {
    engine_command e;
    int code = engine_open(&e, args, ENGINE_READ), missing = EXIT_DONE;
    for (size_t i = 0; i < args->operand_count && code == EXIT_DONE; i++) {
        code = get_one(&e, args->operands[i]);
        if (code == EXIT_INPUT) {
            missing = code;
            code = EXIT_DONE;
        }
    }
    code = finish_stdout(code ? code : missing);
    return engine_close(&e, code);
}
