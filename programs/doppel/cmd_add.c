/* cmd_add.c - doppel add: documents into an index, a verdict a line, each once it is durable. */
#include "verdicts.h"

const cli_option add_options[] = {
    INDEX_OPTION,
    VERDICT_OPTIONS,
    {"on-duplicate", 0, OPTION_TEXT, "DO",
     "skip (the default): count it at its original; link: remember its id, URL, title and fields there; store: keep "
     "it like any other, but never as an original"},
    DECIDE_OPTIONS,
    WRITE_OPTIONS,
    MAKE_OPTIONS,
    LOG_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

int cmd_add(const cli_args *args) {
    uint64_t duplicates;
    return write_verdicts(args, false, &duplicates);
}
