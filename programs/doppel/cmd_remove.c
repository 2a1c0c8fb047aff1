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

/* How many copies the index remembers under a name; they no longer match once it is removed. */
static doppel_status count_copies(const engine_command *e, doppel_slice name, size_t *count, doppel_error *error) {
    doppel_list_options options = {.size = sizeof options, .copies_of = name};
    doppel_status status;
    do {
        doppel_stored_list list = {0};
        status = doppel_engine_list(e->engine, &options, &list, &options.after, error);
        *count += list.count;
        doppel_stored_list_free(&list);
    } while (status == DOPPEL_OK && options.after);
    return status == DOPPEL_ERROR_INPUT ? DOPPEL_OK : status; /* nothing has this name */
}

/* What was removed. */
typedef struct removal {
    doppel_stored_list known; /* the document, where its URL named it; else empty */
    size_t copies;
    bool removed;
} removal;

/* Removes the document with an id or, if there is none, with this URL. */
static doppel_status remove_named(const engine_command *e, doppel_slice name, removal *r, doppel_error *error) {
    doppel_status status = count_copies(e, name, &r->copies, error);
    if (status == DOPPEL_OK)
        status = doppel_engine_remove(e->engine, name, &r->removed, error);
    if (status == DOPPEL_OK && !r->removed)
        status = doppel_engine_get(e->engine, name, &r->known, error);
    if (status == DOPPEL_OK && r->known.count)
        status = doppel_engine_remove(e->engine, r->known.stored[0].id, &r->removed, error);
    return status;
}

/* Reports what happens to the copies of a removed document. */
static void tell_copies(const char *name, size_t copies) {
    if (copies)
        message_summary("%s: %zu %s of it no longer %s; doppel compact erases %s", name, copies,
                        copies == 1 ? "copy" : "copies", copies == 1 ? "matches" : "match",
                        copies == 1 ? "it" : "them");
}

/* Removes one document, and says which: its id and, where a URL named it, that URL. */
static int remove_one(const engine_command *e, const char *name) {
    removal r = {0};
    doppel_error error = {0};
    text_buffer out = {0};
    int code = engine_ended(remove_named(e, doppel_slice_of(name), &r, &error), &error);
    if (code == EXIT_DONE) {
        text_put(&out, "{");
        text_member_string(&out, "id", r.known.count ? r.known.stored[0].id : doppel_slice_of(name));
        if (r.known.count)
            text_member_string(&out, "url", doppel_slice_of(name));
        text_member_bool(&out, "removed", r.removed);
        if (r.removed && r.copies)
            text_member_count(&out, "copies", r.copies);
        text_put(&out, "}\n");
        if (r.removed)
            tell_copies(name, r.copies);
        else
            message("%s: the index has no document with this id or URL", name);
    }
    doppel_stored_list_free(&r.known);
    code = print_text(&out, code);
    return code == EXIT_DONE && !r.removed ? EXIT_INPUT : code;
}

int cmd_remove(const cli_args *args) {
    engine_command e;
    int code = engine_open(&e, args, ENGINE_WRITE), missing = EXIT_DONE;
    for (size_t i = 0; i < args->operand_count && code == EXIT_DONE; i++) {
        doppel_error error = {0};
        code = stop_asked ? engine_ended(DOPPEL_ERROR_INTERRUPTED, &error) : remove_one(&e, args->operands[i]);
        if (code == EXIT_INPUT) {
            missing = code;
            code = EXIT_DONE;
        }
    }
    return engine_close(&e, finish_stdout(code ? code : missing));
}
