/* run_unread.c - the files and records of a run that could not be read, each with the reason: the first of them, for
 * people who look for what is missing. */
#include "server/runs.h"
#include "server/service.h"

#include <stdlib.h>
#include <string.h>

/* How the library words that it runs no programs here; the command runs pdftotext. */
static const char no_programs[] = "PDF, which is not read here";

void run_unread_add(run_unread_list *list, const run_unread *item) {
    list->all++;
    if (list->count == RUN_UNREAD)
        return;
    if (!list->item && !(list->item = calloc(RUN_UNREAD, sizeof *list->item))) {
        list->failed = true;
        return;
    }
    run_unread *added = &list->item[list->count];
    *added = *item;
    added->file = strndup(item->file, RUN_UNREAD_NAME);
    added->why = strdup(item->why);
    if (added->file && added->why) {
        list->count++;
        return;
    }
    free(added->file);
    free(added->why);
    list->failed = true;
}

void run_unread_take(run_unread_list *list, const doppel_error *what, const char *path, const char *name) {
    if (what->code == DOPPEL_OK) /* it was repaired */
        return;
    text_buffer replaced = {0};
    char why[sizeof what->message];
    doppel_slice file =
        run_replace_path(doppel_slice_of(what->file), doppel_slice_of(path), doppel_slice_of(name), &replaced);
    char *shown = file.data ? strndup(file.data, file.length) : NULL;
    snprintf(why, sizeof why, "%s", what->message);
    problem_words(why, sizeof why);
    if (shown)
        run_unread_add(list, &(run_unread){.file = shown,
                                           .why = why,
                                           .line = what->line,
                                           .command_may_read = !strncmp(why, no_programs, sizeof no_programs - 1)});
    else
        list->failed = true;
    free(shown);
    text_free(&replaced);
}

void run_unread_free(run_unread_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->item[i].file);
        free(list->item[i].why);
    }
    free(list->item);
    *list = (run_unread_list){0};
}

void run_unread_write(text_buffer *out, const run_unread_list *list) {
    out->failed = out->failed || list->failed;
    for (size_t i = 0; i < list->count && !out->failed; i++) {
        const run_unread *u = &list->item[i];
        text_put(out, out->data[out->length - 1] == '[' ? "{" : ",{");
        text_member_string(out, "file", doppel_slice_of(u->file));
        text_member_distance(out, "line", u->line ? (int64_t)u->line : -1);
        text_member_string(out, "why", doppel_slice_of(u->why));
        text_member_bool(out, "commandMayRead", u->command_may_read);
        text_put(out, "}");
    }
}
