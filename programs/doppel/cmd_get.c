/* cmd_get.c - doppel get: what an index remembers of documents, or of their copies, one JSON line each. */
#include "commands.h"
#include "common/message.h"
#include "common/stored_json.h"
#include "engine/engine_command.h"

#include <string.h>

const cli_option get_options[] = {
    INDEX_OPTION,
    {"copies", 0, OPTION_FLAG, NULL,
     "show the copies that the index remembers under each ID instead (see --on-duplicate of doppel add)"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* Prints the documents of a list and frees it. */
static int print_list(const engine_command *e, doppel_stored_list *list, int code) {
    int bits = doppel_recipe_bits(doppel_engine_get_options(e->engine)->recipe);
    text_buffer out = {0};
    for (size_t i = 0; i < list->count && code == EXIT_DONE; i++) {
        text_stored(&out, &list->stored[i], bits);
        text_put(&out, "\n");
    }
    doppel_stored_list_free(list);
    return print_text(&out, code);
}

/* Whether the index only counts copies. A single run may have had another --on-duplicate. */
static bool only_counts(const engine_command *e) {
    doppel_engine_stats stats;
    if (doppel_engine_get_options(e->engine)->on_duplicate != DOPPEL_DUPLICATE_SKIP)
        return false;
    doppel_engine_get_stats(e->engine, &stats);
    return !stats.copies;
}

static int report_missing(const engine_command *e, const char *id) {
    message("%s: the index has no document with this id or URL%s", id,
            only_counts(e) ? "; it does not remember copies (--on-duplicate skip)" : "");
    return EXIT_INPUT;
}

/* Reads what is remembered of an id or URL. Returns EXIT_INPUT, with a message, when it is not there. */
static int find_one(const engine_command *e, const char *id, doppel_stored_list *list) {
    doppel_error error = {0};
    int code = engine_ended(doppel_engine_get(e->engine, doppel_slice_of(id), list, &error), &error);
    return code == EXIT_DONE && !list->count ? report_missing(e, id) : code;
}

static int get_one(const engine_command *e, const char *id) {
    doppel_stored_list list = {0};
    int code = find_one(e, id, &list);
    return print_list(e, &list, code);
}

/* ---- copies ---- */

/* Says why an original has no copies to show. */
static void explain_no_copies(const engine_command *e, const char *id, const doppel_stored *original) {
    unsigned long long count = original->duplicates;
    const char *copies = count == 1 ? "copy was" : "copies were";
    if (!count)
        message_summary("%s: no copies of it were found", id);
    else if (only_counts(e))
        message_summary("%s: %llu %s found, but this index only counts them (--on-duplicate skip); an index made with "
                        "--on-duplicate link or store remembers them",
                        id, count, copies);
    else
        message_summary("%s: %llu %s found, but none is remembered: they were removed, have expired, or were added "
                        "with --on-duplicate skip",
                        id, count, copies);
}

/* Prints the copies of a document, in the order in which they were added. */
static int print_copies(const engine_command *e, doppel_slice original, size_t *count) {
    doppel_list_options options = {.size = sizeof options, .copies_of = original};
    int code = EXIT_DONE;
    do {
        doppel_stored_list list = {0};
        doppel_error error = {0};
        code = engine_ended(doppel_engine_list(e->engine, &options, &list, &options.after, &error), &error);
        *count += list.count;
        code = print_list(e, &list, code);
    } while (code == EXIT_DONE && options.after && !stop_asked);
    return code;
}

/* The copies of an id; of one that is itself a copy, those of its original. */
static int get_copies(const engine_command *e, const char *id) {
    doppel_stored_list known = {0};
    size_t count = 0;
    int code = find_one(e, id, &known);
    const doppel_stored *one = known.stored;
    bool copy = code == EXIT_DONE && one->original_id.data;
    if (copy)
        message_summary("%s %s a copy of %.*s%s", id, one->original_gone ? "was" : "is", (int)one->original_id.length,
                        one->original_id.data, one->original_gone ? ", which is no longer in the index" : "");
    if (code == EXIT_DONE && !(copy && one->original_gone)) {
        code = print_copies(e, copy ? one->original_id : one->id, &count);
        if (code == EXIT_DONE && !copy && !count)
            explain_no_copies(e, id, one);
    }
    doppel_stored_list_free(&known);
    return code;
}

int cmd_get(const cli_args *args) {
    engine_command e;
    int code = engine_open(&e, args, ENGINE_READ), missing = EXIT_DONE;
    for (size_t i = 0; i < args->operand_count && code == EXIT_DONE; i++) {
        code = args_flag(args, "copies") ? get_copies(&e, args->operands[i]) : get_one(&e, args->operands[i]);
        if (code == EXIT_INPUT) {
            missing = code;
            code = EXIT_DONE;
        }
    }
    code = finish_stdout(code ? code : missing);
    return engine_close(&e, code);
}
