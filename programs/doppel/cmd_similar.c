/* cmd_similar.c - doppel similar: the documents of an index, or of inputs, that are most similar to one, one line each:
 * JSON or, on a terminal, words. */
#include "commands.h"
#include "common/message.h"
#include "common/stored_json.h"
#include "engine/feed.h"
#include "shared/address.h"
#include "shared/choices.h"
#include "similar_scan.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_option similar_options[] = {
    INDEX_OPTION,
    {"in", 0, OPTION_FILES, "FILE",
     "look in this file or folder instead of an index: all its documents are read for each query"},
    {"limit", 'n', OPTION_COUNT, "N", "show the N most similar (default 10)"},
    {"similarity", 's', OPTION_TEXT, "T",
     "show those with a similarity above T (default 0.85); with --in: of at least T (default 0.8, as in doppel dedup)"},
    {"distance", 'd', OPTION_COUNT, "K", "show those with fingerprints within K bits instead"},
    PRINT_OPTION,
    ENGINE_RECIPE_OPTIONS,
    {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},
    {"title-key", 0, OPTION_TEXT, "KEY", "the field with its title (default title)"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* The document to compare with, from a file. */
typedef struct similar_query {
    feed feed;          /* must be first; only the parts that packing needs */
    text_buffer packed; /* the first document */
    size_t count;       /* of documents */
} similar_query;

static doppel_status pack(void *state, const doppel_document *document, doppel_output *output) {
    return pack_document(state, document, output);
}

/* Keeps the first document and counts all. */
static doppel_status keep_first(void *user, doppel_slice bytes) {
    similar_query *query = user;
    doppel_document document;
    for (size_t at = 0, size; at < bytes.length; at += size) {
        size = unpack_document(&query->feed, bytes.data + at, &document, NULL);
        if (query->count++)
            continue;
        text_add(&query->packed, bytes.data + at, size);
    }
    return query->packed.failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}

/* Reads the one document of a file. */
static int read_query(const cli_args *args, similar_query *query) {
    const char *path = args->operands[0];
    doppel_input_options options = reading_options(args);
    doppel_work work = {.user = query, .document = pack, .emit = keep_first};
    int code = run_paths(&path, 1, &options, &work, NULL);
    if (code == EXIT_DONE && query->count != 1) {
        message("%s: has %zu documents; similar takes one", path, query->count);
        code = EXIT_INPUT;
    }
    return code;
}

static bool is_file(const char *path) {
    return !strcmp(path, "-") || !access(path, R_OK);
}

/* Makes an item from the operand: the document in the index with this id or URL, else the document of this file. */
static int find_query(const engine_command *e, similar_query *query, doppel_stored_list *known, doppel_item *item) {
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
        message("%s: the index has no document with this id or URL, and there is no such file%s", what,
                address_hint(what));
        return EXIT_INPUT;
    }
    code = read_query(e->args, query);
    if (code != EXIT_DONE)
        return code;
    unpack_document(&query->feed, query->packed.data, &item->document, NULL);
    item->document.extra = NULL;
    /* It is compared by its content, whatever the index has under its id. */
    item->document.id.data = "";
    item->document.id.length = 0;
    return EXIT_DONE;
}

/* ---- what is found ---- */

/* The default of doppel_engine_find_similar; and that of --in, which is doppel dedup's. */
#define USUAL_SIMILARITY 0.85
#define COPY_SIMILARITY 0.8

/* A document in words: "a.txt: similarity 0.843, The title, 2 copies seen". */
static void put_words(text_buffer *out, const doppel_stored *stored) {
    text_safe(out, stored->id.data, stored->id.length);
    if (!isnan(stored->similarity))
        text_format(out, ": similarity %.3f", stored->similarity);
    else
        text_format(out, ": fingerprints differ in %d bit%s", stored->distance, stored->distance == 1 ? "" : "s");
    if (stored->title.length) {
        text_put(out, ", ");
        text_safe(out, stored->title.data, stored->title.length);
    }
    if (stored->duplicates)
        text_format(out, ", %llu cop%s seen", (unsigned long long)stored->duplicates,
                    stored->duplicates == 1 ? "y" : "ies");
}

/* ---- nothing is found ---- */

/* The nearest of all is looked for in a folder of up to this many documents, as each of them is compared. */
enum { MOST_COMPARED = 100000 };

/* Documents that are less similar than this have nothing to do with each other. */
#define LEAST_SIMILARITY 0.1

/* The criterion of the options, as the end of "nothing in INDEX ..."; `what` is the document, `in`: of --in. */
static void put_criterion(text_buffer *out, const doppel_similar_options *options, const char *what, bool in) {
    if (options->distance || options->distance_zero)
        text_format(out, "is within %d bit%s of ", options->distance, options->distance == 1 ? "" : "s");
    else
        text_format(out, "is %s %g similar to ", in ? "at least" : "more than",
                    options->similarity > 0 ? options->similarity : USUAL_SIMILARITY);
    text_put(out, what);
}

/* The options that find what is less near than the given ones do; false: there are none. */
static bool look_further(const engine_command *e, const doppel_similar_options *given, doppel_similar_options *wider) {
    const doppel_engine_options *index = doppel_engine_get_options(e->engine);
    *wider = (doppel_similar_options){.size = sizeof *wider, .limit = 1};
    if (given->distance || given->distance_zero || index->near == DOPPEL_NEAR_DISTANCE) {
        wider->distance = doppel_recipe_bits(index->recipe) / 4;
        return given->distance < wider->distance;
    }
    wider->similarity = LEAST_SIMILARITY;
    return !(given->similarity > 0) || given->similarity > LEAST_SIMILARITY;
}

/* Which document is nearest, and the option that lists it. */
static void put_nearest(text_buffer *out, const doppel_stored *nearest) {
    text_put(out, "; the nearest is ");
    text_safe(out, nearest->id.data, nearest->id.length);
    if (isnan(nearest->similarity))
        text_format(out, " (%d bits): --distance %d lists it", nearest->distance, nearest->distance);
    else
        text_format(out, " (%.3f): --similarity %g lists it", nearest->similarity,
                    nearest->similarity > 0.5 ? 0.5 : LEAST_SIMILARITY);
}

/* Says that nothing is similar enough and, unless the index is too large to look for it, what is nearest. */
static int report_none(const engine_command *e, const doppel_item *item, const doppel_similar_options *options) {
    doppel_engine_stats stats;
    doppel_stored_list list = {0};
    doppel_similar_options wider;
    doppel_error error = {0};
    text_buffer out = {0};
    int code = EXIT_DONE;
    doppel_engine_get_stats(e->engine, &stats);
    bool few = e->place.needs.folder && stats.documents <= MOST_COMPARED;
    text_format(&out, "nothing in %s ", e->path);
    put_criterion(&out, options, e->args->operands[0], false);
    if (!stats.documents) {
        text_put(&out, ": the index has no documents");
    } else if (few && look_further(e, options, &wider)) {
        code = engine_ended(doppel_engine_find_similar(e->engine, item, &wider, &list, &error), &error);
        if (list.count)
            put_nearest(&out, &list.stored[0]);
        else if (wider.distance)
            text_format(&out, ", nor within %d", wider.distance);
        else
            text_format(&out, ", nor more than %g", LEAST_SIMILARITY);
    }
    if (code == EXIT_DONE && !out.failed)
        message_summary("%.*s", (int)out.length, out.data);
    doppel_stored_list_free(&list);
    text_free(&out);
    return code;
}

/* Says that the document itself has copies, which are not among those that are similar to it. */
static void tell_copies(const engine_command *e, const doppel_stored *stored) {
    unsigned long long all = stored->duplicates > stored->copies ? stored->duplicates : stored->copies;
    const char *what = e->args->operands[0], *copies = all == 1 ? "copy" : "copies";
    if (all && stored->copies)
        message_summary("%s has %llu %s, without lines here: doppel get --copies lists %s", what, all, copies,
                        all == 1 ? "it" : "them");
    else if (all)
        message_summary("%s has %llu %s, counted but not in the index", what, all, copies);
}

static int show_similar(const engine_command *e, const doppel_item *item, const doppel_similar_options *options,
                        bool words) {
    doppel_stored_list list = {0};
    doppel_error error = {0};
    int code = engine_ended(doppel_engine_find_similar(e->engine, item, options, &list, &error), &error);
    text_buffer out = {0};
    for (size_t i = 0; i < list.count && code == EXIT_DONE; i++) {
        if (words)
            put_words(&out, &list.stored[i]);
        else
            text_similar(&out, &list.stored[i]);
        text_put(&out, "\n");
    }
    if (code == EXIT_DONE && !list.count)
        code = report_none(e, item, options);
    doppel_stored_list_free(&list);
    return finish_text(&out, code);
}

/* ---- in inputs ---- */

/* Says that nothing in the inputs is similar enough, and what is nearest. */
static void tell_none_in(const cli_args *args, const doppel_similar_options *options, const scan_result *result) {
    text_buffer out = {0};
    const char *second = args_again(args, "in", 1);
    text_format(&out, "nothing in %s%s ", args_again(args, "in", 0), second ? " and the other files of --in" : "");
    put_criterion(&out, options, args->operands[0], true);
    if (result->nearest.memory)
        put_nearest(&out, &result->nearest.stored);
    else if (!result->documents)
        text_put(&out, ": it has no documents");
    else if (!options->distance && !options->distance_zero && options->similarity > LEAST_SIMILARITY)
        text_format(&out, ", nor more than %g", LEAST_SIMILARITY);
    if (!out.failed)
        message_summary("%.*s", (int)out.length, out.data);
    text_free(&out);
}

static int show_similar_in(const cli_args *args, doppel_similar_options *options, bool words) {
    enum { USUAL_LIMIT = 10, NEAREST_BITS = 16 };
    const doppel_similar_options wider = {.similarity = LEAST_SIMILARITY,
                                          .distance = options->distance || options->distance_zero ? NEAREST_BITS : 0};
    scan_result result;
    text_buffer out = {0};
    options->limit = options->limit ? options->limit : USUAL_LIMIT;
    if (!(options->similarity > 0))
        options->similarity = COPY_SIMILARITY;
    int code = scan_inputs(args, options, &wider, &result);
    for (size_t i = 0; i < result.count && !reading_failed(); i++) {
        if (words)
            put_words(&out, &result.hits[i].stored);
        else
            text_similar(&out, &result.hits[i].stored);
        text_put(&out, "\n");
    }
    if (code == EXIT_DONE && !result.count)
        tell_none_in(args, options, &result);
    scan_free(&result);
    return finish_text(&out, code);
}

/* ---- the command ---- */

/* Refuses options of an index where there is none. */
static bool check_in(const cli_args *args) {
    static const char *const of_index[] = {"index", "store", "store-password-file"};
    for (size_t i = 0; i < sizeof of_index / sizeof *of_index; i++)
        if (args_text(args, of_index[i])) {
            message("give --in or --%s, not both", of_index[i]);
            return false;
        }
    return check_outputs(args);
}

static bool read_options(const cli_args *args, doppel_similar_options *options, unsigned *words) {
    uint64_t distance = args_number(args, "distance", 0);
    *options = (doppel_similar_options){.size = sizeof *options, .limit = args_number(args, "limit", 0)};
    options->distance = distance < INT_MAX ? (int)distance : INT_MAX;
    options->distance_zero = args_text(args, "distance") && !distance;
    if (args_text(args, "distance") && args_text(args, "similarity")) {
        message("give --similarity or --distance, not both");
        return false;
    }
    *words = isatty(STDOUT_FILENO) != 0;
    return args_positive(args, "limit") && args_share(args, "similarity", &options->similarity) &&
           choose_one(args, "print", words);
}

int cmd_similar(const cli_args *args) {
    engine_command e = {0};
    similar_query query = {.count = 0};
    doppel_stored_list known = {0};
    doppel_similar_options options;
    doppel_item item;
    unsigned words;
    int code = read_options(args, &options, &words) ? EXIT_DONE : EXIT_USAGE;
    if (code == EXIT_DONE && args_text(args, "in"))
        return check_in(args) ? show_similar_in(args, &options, words) : EXIT_USAGE;
    if (code == EXIT_DONE)
        code = engine_open(&e, args, ENGINE_READ);
    if (code == EXIT_DONE)
        code = find_query(&e, &query, &known, &item);
    if (code == EXIT_DONE)
        code = show_similar(&e, &item, &options, words);
    if (code == EXIT_DONE && known.count)
        tell_copies(&e, known.stored);
    doppel_stored_list_free(&known);
    text_free(&query.packed);
    return engine_close(&e, code);
}
