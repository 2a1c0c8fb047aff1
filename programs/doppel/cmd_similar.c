/* cmd_similar.c - doppel similar: the documents of an index that are most similar to one, one JSON line each. */
#include "commands.h"
#include "common/message.h"
#include "common/stored_json.h"
#include "engine/feed.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_option similar_options[] = {
    INDEX_OPTION,
    {"limit", 'n', OPTION_COUNT, "N", "show the N most similar (default 10)"},
    {"similarity", 's', OPTION_TEXT, "T", "show those with a similarity above T (default 0.85)"},
    {"distance", 'd', OPTION_COUNT, "K", "show those with fingerprints within K bits instead"},
    ENGINE_RECIPE_OPTIONS,
    {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},
    {"title-key", 0, OPTION_TEXT, "KEY", "the field with its title (default title)"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* The document to compare with, from a file. */
typedef struct asked {
    feed feed;          /* must be first; only the parts that packing needs */
    text_buffer packed; /* the first document */
    size_t count;       /* of documents */
} asked;

static doppel_status pack(void *state, const doppel_document *document, doppel_output *output) {
    return pack_document(state, document, output);
}

/* Keeps the first document and counts all. */
static doppel_status keep_first(void *user, doppel_slice bytes) {
    asked *a = user;
    doppel_document document;
    for (size_t at = 0, size; at < bytes.length; at += size) {
        size = unpack_document(&a->feed, bytes.data + at, &document, NULL);
        if (a->count++)
            continue;
        text_add(&a->packed, bytes.data + at, size);
    }
    return a->packed.failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}

/* Reads the one document of a file. */
static int read_asked(const cli_args *args, asked *a) {
    const char *path = args->operands[0];
    doppel_input_options options = reading_options(args);
    doppel_work work = {.user = a, .document = pack, .emit = keep_first};
    int code = run_paths(&path, 1, &options, &work, NULL);
    if (code == EXIT_DONE && a->count != 1) {
        message("%s: has %zu documents; similar takes one", path, a->count);
        code = EXIT_INPUT;
    }
    return code;
}

static bool is_file(const char *path) {
    return !strcmp(path, "-") || !access(path, R_OK);
}

/* Makes an item from the operand: the document in the index with this id or URL, else the document of this file. */
static int find_asked(const engine_command *e, asked *a, doppel_stored_list *known, doppel_item *item) {
    const char *what = e->args->operands[0];
    doppel_error error = {0};
    int code = engine_ended(doppel_engine_get(e->engine, doppel_slice_of(what), known, &error), &error);
    *item = (doppel_item){.size = sizeof *item};
    if (code != EXIT_DONE)
        return code;
    if (known->count) {
        item->document.id.data = known->stored[0].id.data;
        item->document.id.length = known->stored[0].id.length;
        return EXIT_DONE;
    }
    if (!is_file(what)) {
        message("%s: the index has no document with this id or URL, and there is no such file", what);
        return EXIT_INPUT;
    }
    code = read_asked(e->args, a);
    if (code != EXIT_DONE)
        return code;
    unpack_document(&a->feed, a->packed.data, &item->document, NULL);
    item->document.extra = NULL;
    /* It is compared by its content, whatever the index has under its id. */
    item->document.id.data = "";
    item->document.id.length = 0;
    return EXIT_DONE;
}

static int show_similar(const engine_command *e, const doppel_item *item, const doppel_similar_options *options) {
    doppel_stored_list list = {0};
    doppel_error error = {0};
    int code = engine_ended(doppel_engine_find_similar(e->engine, item, options, &list, &error), &error);
    text_buffer out = {0};
    for (size_t i = 0; i < list.count && code == EXIT_DONE; i++) {
        text_similar(&out, &list.stored[i]);
        text_put(&out, "\n");
    }
    doppel_stored_list_free(&list);
    return finish_text(&out, code);
}

static bool read_options(const cli_args *args, doppel_similar_options *options) {
    uint64_t distance = args_number(args, "distance", 0);
    *options = (doppel_similar_options){.size = sizeof *options, .limit = args_number(args, "limit", 0)};
    options->distance = distance < INT_MAX ? (int)distance : INT_MAX;
    options->distance_zero = args_text(args, "distance") && !distance;
    if (args_text(args, "distance") && args_text(args, "similarity")) {
        message("give --similarity or --distance, not both");
        return false;
    }
    if (args_text(args, "limit") && !options->limit) {
        message("--limit takes a number of at least 1");
        return false;
    }
    return args_share(args, "similarity", &options->similarity);
}

int cmd_similar(const cli_args *args) {
    engine_command e = {0};
    asked a = {.count = 0};
    doppel_stored_list known = {0};
    doppel_similar_options options;
    doppel_item item;
    int code = read_options(args, &options) ? engine_open(&e, args, ENGINE_READ) : EXIT_USAGE;
    if (code == EXIT_DONE)
        code = find_asked(&e, &a, &known, &item);
    if (code == EXIT_DONE)
        code = show_similar(&e, &item, &options);
    doppel_stored_list_free(&known);
    text_free(&a.packed);
    return engine_close(&e, code);
}
