/* cmd_get.c - doppel get: what an index remembers of documents, or of their copies, one line each: JSON or, on a
 * terminal, words. */
#include "commands.h"
#include "common/clock.h"
#include "common/message.h"
#include "common/stored_json.h"
#include "engine/verdicts.h"
#include "shared/address.h"
#include "shared/choices.h"

#include <string.h>
#include <unistd.h>

const cli_option get_options[] = {
    INDEX_OPTION,
    {"copies", 0, OPTION_FLAG, NULL,
     "show the copies that the index remembers under each ID instead (see --on-duplicate of doppel add)"},
    PRINT_OPTION,
    IDS_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* The command: its index, and whether it prints words. */
typedef struct get_command {
    engine_command index; /* must be first */
    bool words;
} get_command;

/* "a.txt: 150 words, added 2026-11-19T04:09:16Z, 2 copies seen; The title; https://example.org/a" */
static void put_words(text_buffer *out, const doppel_stored *stored) {
    const doppel_slice names[] = {stored->title, stored->url};
    char date[DATE_ROOM];
    text_safe(out, stored->id.data, stored->id.length);
    text_put(out, ": ");
    if (stored->original_id.data) {
        text_copy_of(out, stored->reason, &stored->evidence, stored->original_id);
        text_put(out, "; ");
    }
    text_format(out, "%llu word%s, added %s", (unsigned long long)stored->words, stored->words == 1 ? "" : "s",
                format_date(stored->added, date));
    if (stored->expires)
        text_format(out, ", expires %s", format_date(stored->expires, date));
    if (stored->duplicates)
        text_format(out, ", %llu cop%s seen", (unsigned long long)stored->duplicates,
                    stored->duplicates == 1 ? "y" : "ies");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].length) {
            text_put(out, "; ");
            text_safe(out, names[i].data, names[i].length);
        }
}

/* Prints the documents of a list and frees it. */
static int print_list(const engine_command *e, doppel_stored_list *list, int code) {
    int bits = doppel_recipe_bits(doppel_engine_get_options(e->engine)->recipe);
    text_buffer out = {0};
    for (size_t i = 0; i < list->count && code == EXIT_DONE; i++) {
        if (((const get_command *)e)->words)
            put_words(&out, &list->stored[i]);
        else
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
    message("%s: the index has no document with this id or URL%s%s", id, address_hint(id),
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

/* Says why an original has had more copies than those `shown`. */
static void explain_missing_copies(const engine_command *e, const char *id, const doppel_stored *original,
                                   size_t shown) {
    unsigned long long all = original->duplicates, count = all > shown ? all - shown : 0;
    const char *copies = count == 1 ? "copy was" : "copies were", *more = shown ? "more " : "";
    if (!all && !shown)
        message_summary("%s: no copies of it were found", id);
    else if (!count)
        return;
    else if (only_counts(e))
        message_summary("%s: %llu %s found, but this index only counts them (--on-duplicate skip); an index made with "
                        "--on-duplicate link or store remembers them",
                        id, count, copies);
    else
        message_summary("%s: %llu %s%s counted, but %s not in the index: added again under an id that it has, removed "
                        "since, expired, or added with --on-duplicate skip",
                        id, count, more, copies, count == 1 ? "is" : "are");
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
        message_summary("%s is a copy of %.*s", id, (int)one->original_id.length, one->original_id.data);
    if (code == EXIT_DONE) {
        code = print_copies(e, copy ? one->original_id : one->id, &count);
        if (code == EXIT_DONE && !copy)
            explain_missing_copies(e, id, one, count);
    }
    doppel_stored_list_free(&known);
    return code;
}

int cmd_get(const cli_args *args) {
    get_command g = {.words = false};
    engine_command *e = &g.index;
    unsigned words = isatty(STDOUT_FILENO) != 0;
    int missing = EXIT_DONE, code = choose_one(args, "print", &words) ? engine_open(e, args, ENGINE_READ) : EXIT_USAGE;
    g.words = words;
    for (size_t i = 0; i < args->operand_count && code == EXIT_DONE; i++) {
        code = args_flag(args, "copies") ? get_copies(e, args->operands[i]) : get_one(e, args->operands[i]);
        if (code == EXIT_INPUT) {
            missing = code;
            code = EXIT_DONE;
        }
    }
    code = finish_stdout(code ? code : missing);
    return engine_close(e, code);
}
