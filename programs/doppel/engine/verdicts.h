/* verdicts.h - doppel add and doppel check: one verdict per line, in input order. */
#ifndef ENGINE_VERDICTS_H
#define ENGINE_VERDICTS_H

#include "engine/engine_command.h"

#define VERDICT_OPTIONS                                                                              \
    {"output", 'o', OPTION_LINES, "FILE", "write the verdicts to this file instead of stdout"},      \
        {"print", 0, OPTION_TEXT, "FORM",                                                            \
         "text: a sentence for each document; jsonl (default: text on a terminal, else jsonl)"},     \
        {"batch", 0, OPTION_COUNT, "N", "give the engine up to N documents at once (default 1000)"}, \
        {"json", 0, OPTION_FLAG, NULL, "with --output: print a summary as one JSON object"},         \
        {"id", 0, OPTION_TEXT, "ID", "the id of the document, if there is only one"},                \
        {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"}, {         \
        "title-key", 0, OPTION_TEXT, "KEY", "the field with its title (default title)"               \
    }

/* Checks, or adds, the documents of the operands and writes a line for each. Returns the exit code; *duplicates is the
 * number of duplicates. */
int write_verdicts(const cli_args *args, bool check, uint64_t *duplicates);

/* Why a document is a copy, in words: "similar to a.txt: similarity 0.843". */
void text_copy_of(text_buffer *line, doppel_reason reason, const doppel_evidence *evidence, doppel_slice original);

/* The value of --batch; 0, with a message, when it is invalid. */
size_t batch_option(const cli_args *args);

#endif
