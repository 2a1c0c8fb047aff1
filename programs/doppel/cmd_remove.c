/* cmd_remove.c - doppel remove: documents out of an index, one JSON line each.
 *
 * An operand is an id or a URL, or a line that doppel add printed: then what that line put into the index is removed,
 * and nothing that was there before. */
#include "commands.h"
#include "common/message.h"
#include "engine/engine_command.h"
#include "shared/address.h"

#include <string.h>

const cli_option remove_options[] = {
    INDEX_OPTION,
    IDS_OPTION,
    LOG_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* ---- what is meant ---- */

/* What an operand names. */
typedef struct removal {
    doppel_slice name;
    doppel_document *line; /* a verdict of doppel add; NULL: the operand is the name */
    bool record;           /* it is another JSON object: an id only if the index has it */
    bool copy;             /* by that verdict it is a copy, which the index need not have stored */
    bool stays;            /* by that verdict it was in the index before, or is another document's id */
    doppel_stored_list known;
    bool removed, by_url;
} removal;

static bool is_true(doppel_slice value) {
    return value.length == 4 && !memcmp(value.data, "true", 4);
}

/* What was done, for the summary. */
typedef struct removal_counts {
    uint64_t none;    /* verdicts that put nothing into the index */
    uint64_t records; /* JSON objects that are neither verdicts nor ids */
} removal_counts;

/* Whether the operand is a verdict with an id; then it is read. An id may begin with a brace, too. */
static bool read_verdict(const char *operand, removal *r) {
    static const char *const names[] = {"isDuplicate", "known", "idKnown", "originalId"};
    const doppel_input_options options = {.size = sizeof options, .extra_keys = names, .extra_count = 4};
    doppel_error error;
    if (*operand != '{' || doppel_document_parse(r->name, &options, &r->line, &error) != DOPPEL_OK)
        return false;
    r->record = true;
    const doppel_slice id = r->line->id, *value = r->line->extra, original = value[3];
    if (!id.length || !value[0].data)
        return false;
    r->record = false;
    r->name = id;
    r->copy = is_true(value[0]);
    r->stays = is_true(value[1]) || is_true(value[2]) ||
               (r->copy && original.length == id.length && !memcmp(original.data, id.data, id.length));
    return true;
}

/* ---- removing ---- */

/* Removes the document with this id or, if there is none, with this URL. */
static doppel_status remove_named(const engine_command *e, removal *r, doppel_error *error) {
    doppel_status status = doppel_engine_get(e->engine, r->name, &r->known, error);
    if (status == DOPPEL_OK)
        status = doppel_engine_remove(e->engine, r->name, &r->removed, error);
    r->by_url = status == DOPPEL_OK && !r->removed && r->known.count && !r->line;
    return r->by_url ? doppel_engine_remove(e->engine, r->known.stored[0].id, &r->removed, error) : status;
}

/* Reports what was removed: the id and, where a URL named it, that URL. */
static int report(const removal *r) {
    text_buffer out = {0};
    size_t copies = r->removed && r->known.count ? (size_t)r->known.stored[0].copies : 0;
    text_put(&out, "{");
    text_member_string(&out, "id", r->by_url ? r->known.stored[0].id : r->name);
    if (r->by_url)
        text_member_string(&out, "url", r->name);
    text_member_bool(&out, "removed", r->removed);
    if (copies)
        text_member_count(&out, "copies", copies);
    text_put(&out, "}\n");
    if (copies)
        message_summary("%.*s: %zu %s removed with it", (int)r->name.length, r->name.data, copies,
                        copies == 1 ? "copy" : "copies");
    if (!r->removed && !r->copy && !r->stays)
        message("%.*s: the index has no document with this id or URL%s", (int)r->name.length, r->name.data,
                r->line ? "" : address_hint(r->name.data));
    return print_text(&out, EXIT_DONE);
}

/* Removes one document, and says which. */
static int remove_one(const engine_command *e, const char *operand, removal_counts *counts) {
    removal r = {.name = doppel_slice_of(operand)};
    doppel_error error = {0};
    if (!read_verdict(operand, &r)) {
        doppel_document_free(r.line);
        r.line = NULL;
    }
    int code = r.stays ? EXIT_DONE : engine_ended(remove_named(e, &r, &error), &error);
    bool none = !r.removed && (r.copy || r.stays), record = !r.removed && r.record;
    counts->none += none;
    counts->records += record;
    if (code == EXIT_DONE && !record)
        code = report(&r);
    if (code == EXIT_DONE && !r.removed && !none)
        code = EXIT_INPUT;
    doppel_stored_list_free(&r.known);
    doppel_document_free(r.line);
    return code;
}

static void summarize(const removal_counts *counts) {
    unsigned long long none = counts->none, records = counts->records;
    if (none)
        message_summary("%llu line%s of doppel add put no document into the index, or a copy that went with its "
                        "original; nothing was removed for %s",
                        none, none == 1 ? "" : "s", none == 1 ? "it" : "them");
    if (records)
        message("%llu line%s, not the output of doppel add, and nothing was removed for %s; give ids, one per "
                "line",
                records, records == 1 ? " is a record" : "s are records", records == 1 ? "it" : "them");
}

int cmd_remove(const cli_args *args) {
    engine_command e;
    removal_counts counts = {0};
    int code = engine_open(&e, args, ENGINE_WRITE), missing = EXIT_DONE;
    for (size_t i = 0; i < args->operand_count && code == EXIT_DONE; i++) {
        doppel_error error = {0};
        code = stop_asked ? engine_ended(DOPPEL_ERROR_INTERRUPTED, &error) : remove_one(&e, args->operands[i], &counts);
        if (code == EXIT_INPUT) {
            missing = code;
            code = EXIT_DONE;
        }
    }
    summarize(&counts);
    return engine_close(&e, finish_stdout(code ? code : missing));
}
