/* cmd_add.c - doppel add: documents into an index, one verdict per line, each once it is durable. */
#include "commands.h"
#include "engine/verdicts.h"

const cli_option add_options[] = {
    INDEX_OPTION,  VERDICT_OPTIONS, DUPLICATE_OPTION, DECIDE_OPTIONS,
    WRITE_OPTIONS, MAKE_OPTIONS,    LOG_OPTIONS,      {NULL, 0, OPTION_FLAG, NULL, NULL},
};

int cmd_add(const cli_args *args) {
    uint64_t duplicates;
    return write_verdicts(args, false, &duplicates);
}
