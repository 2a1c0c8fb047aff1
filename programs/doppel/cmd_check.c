/* cmd_check.c - doppel check: whether documents were seen, one verdict per line. */
#include "commands.h"
#include "engine/verdicts.h"

const cli_option check_options[] = {
    INDEX_OPTION,          VERDICT_OPTIONS, DECIDE_OPTIONS,
    ENGINE_RECIPE_OPTIONS, LOG_OPTIONS,     {NULL, 0, OPTION_FLAG, NULL, NULL},
};

int cmd_check(const cli_args *args) {
    uint64_t duplicates;
    int code = write_verdicts(args, true, &duplicates);
    return code == EXIT_DONE && duplicates ? EXIT_FOUND : code;
}
