/* batch_command.c - what the commands on many documents share: options, reading, deciding, what they print. */
#include "batch/batch_command.h"

#include "common/message.h"
#include "common/progress.h"
#include "shared/choices.h"
#include "shared/outputs.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- options ---- */

static const choice methods[] = {{"auto", DOPPEL_METHOD_AUTO},
                                 {"simhash", DOPPEL_METHOD_SIMHASH},
                                 {"minhash", DOPPEL_METHOD_MINHASH},
                                 {"exact", DOPPEL_METHOD_EXACT},
                                 {NULL, 0}};
static const choice evidence[] = {
    {"content", DOPPEL_BY_CONTENT}, {"url", DOPPEL_BY_URL}, {"title", DOPPEL_BY_TITLE}, {NULL, 0}};
static const choice links[] = {{"kept", false}, {"any", true}, {NULL, 0}};

/* As --method takes it. */
static const char *method_name(doppel_method method) {
    return choice_name(methods, (unsigned)method);
}

static bool number_of(const cli_args *args, const char *option, int *value) {
    uint64_t given = args_number(args, option, 0);
    *value = given < INT_MAX ? (int)given : INT_MAX;
    return true;
}

/* Whether the options that say what is near are of the method. */
static bool fits_method(const cli_args *args, doppel_method method) {
    static const struct {
        const char *option;
        unsigned methods;
    } rules[] = {{"similarity", 1U << DOPPEL_METHOD_AUTO | 1U << DOPPEL_METHOD_MINHASH},
                 {"distance", 1U << DOPPEL_METHOD_SIMHASH},
                 {"bands", 1U << DOPPEL_METHOD_MINHASH},
                 {"rows", 1U << DOPPEL_METHOD_MINHASH}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (args_text(args, rules[i].option) && !(rules[i].methods >> method & 1)) {
            message("--%s does not go with --method %s%s", rules[i].option, method_name(method),
                    args_text(args, "method") ? "" : ", which is what --distance means");
            return false;
        }
    return true;
}

/* Reads the options of the command line into b->options. false: one makes no sense, with a message. */
static bool batch_options(batch_command *b) {
    const cli_args *args = b->args;
    doppel_batch_options *o = &b->options;
    unsigned method = DOPPEL_METHOD_AUTO, content = DOPPEL_CONTENT_MAIN, any = false;
    bool good = choose_one(args, "method", methods, &method) &&
                choose_one(args, "content", content_choices, &content) && choose_one(args, "link", links, &any) &&
                choose_some(args, "by", evidence, &o->by) &&
                choose_some(args, "url-keep", url_rule_choices, &o->url_without) &&
                args_share(args, "similarity", &o->similarity) && args_share(args, "boilerplate", &o->boilerplate) &&
                number_of(args, "bands", &o->bands) && number_of(args, "rows", &o->rows) &&
                number_of(args, "distance", &o->distance);
    if (args_text(args, "distance") && !o->distance)
        o->distance = -1;
    o->method = (doppel_method)method;
    /* Who names a distance means fingerprints, who names bands means those. */
    if (!args_text(args, "method"))
        o->method = args_text(args, "distance") ? DOPPEL_METHOD_SIMHASH
                    : o->bands || o->rows       ? DOPPEL_METHOD_MINHASH
                                                : DOPPEL_METHOD_AUTO;
    o->content = (doppel_content)content;
    o->link_any = any;
    o->min_words = args_number(args, "min-words", 5);
    o->min_words = o->min_words ? o->min_words : 1;
    o->keep = args_text(args, "keep");
    o->within = args_text(args, "within");
    o->across = args_text(args, "across");
    o->tmp = args_text(args, "tmp");
    o->memory = args_number(args, "memory", 0);
    o->limit = args_number(args, "limit", 0);
    o->work = args_text(args, "work");
    o->resume = args_flag(args, "resume");
    return good && fits_method(args, o->method);
}

/* ---- lines of JSON ---- */

doppel_status add_text(writer *w, const char *text) {
    return writer_add(w, text, strlen(text));
}

/* How a character stands in a JSON string, when it does not stand for itself. */
static const char *escape_of(unsigned char c, char buffer[8]) {
    switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: snprintf(buffer, 8, "\\u%04x", c); return buffer;
    }
}

static doppel_status add_json(writer *w, const char *text, size_t length) {
    doppel_status status = writer_add(w, "\"", 1);
    size_t from = 0;
    for (size_t i = 0; i < length && status == DOPPEL_OK; i++) {
        unsigned char c = (unsigned char)text[i];
        char buffer[8];
        if (c >= ' ' && c != '"' && c != '\\')
            continue;
        status = writer_add(w, text + from, i - from);
        if (status == DOPPEL_OK)
            status = add_text(w, escape_of(c, buffer));
        from = i + 1;
    }
    if (status == DOPPEL_OK)
        status = writer_add(w, text + from, length - from);
    return status == DOPPEL_OK ? writer_add(w, "\"", 1) : status;
}

doppel_status add_share(writer *w, double share) {
    char text[32];
    if (isnan(share))
        return add_text(w, "null");
    snprintf(text, sizeof text, "%.6g", share);
    return add_text(w, text);
}

/* ---- opening ---- */

static void show_stage(const char *stage, uint64_t done, uint64_t total, void *user) {
    (void)stage;
    progress_part(done, total, user);
}

int batch_open(batch_command *b, const cli_args *args) {
    doppel_error error = {0};
    *b = (batch_command){.args = args, .input = reading_options(args), .known_input = against_options(args)};
    b->options = (doppel_batch_options){.size = sizeof b->options, .input = &b->input, .known_input = &b->known_input};
    const char *output = args_text(args, "output");
    if (args_flag(args, "json") && is_stdout(output) && !args_flag(args, "dry-run")) {
        message("--json prints a summary, and goes with --output FILE");
        return EXIT_USAGE;
    }
    if (!check_outputs(args) || !check_against(args))
        return EXIT_USAGE;
    if (args_flag(args, "resume") && !args_text(args, "work")) {
        message("--resume goes on with the run of a folder: name it with --work DIR");
        return EXIT_USAGE;
    }
    int code = load_recipe(args, args_text(args, "recipe"), &b->loaded);
    if (code != EXIT_DONE)
        return code;
    if (!batch_options(b))
        return EXIT_USAGE;
    code = args_flag(args, "dry-run") ? EXIT_DONE : try_outputs(args);
    if (code != EXIT_DONE)
        return code;
    b->options.recipe = b->loaded.recipe;
    b->options.progress = isatty(STDERR_FILENO) ? show_stage : NULL;
    return batch_end(doppel_batch_create(&b->options, &b->batch, &error), &error);
}

void batch_close(batch_command *b) {
    doppel_batch_free(b->batch);
    free_recipe(&b->loaded);
    free(b->id);
}

/* ---- reading ---- */

int batch_end(doppel_status status, const doppel_error *error) {
    if (output_closed())
        return EXIT_DONE;
    if (status == DOPPEL_ERROR_INTERRUPTED)
        message("interrupted");
    else if (status != DOPPEL_OK && !failure_told)
        message_error(error);
    return exit_code(status);
}

void batch_tell_resume(const batch_command *b, int code) {
    if (code == EXIT_INTERRUPTED && b->options.work)
        message("the same command with --resume goes on with it");
}

/* Reads paths. Gives an exit code; *usable tells whether there is something to go on with. */
static int batch_read(batch_command *b, const char *const *paths, size_t count, bool known, bool *usable) {
    doppel_input_counts counts = {0};
    doppel_error error = {0};
    progress_begin("reading");
    doppel_status status = doppel_batch_read(b->batch, paths, count, known, &counts, &error);
    int code = reading_ended(status, &b->input, &error, &counts);
    *usable = status == DOPPEL_OK && !nothing_read(b->args, &counts);
    batch_tell_resume(b, code);
    if (!known)
        b->counts = counts;
    return code;
}

/* Reads the documents of --against. */
static int read_known(batch_command *b, bool *usable) {
    doppel_batch_reading reading;
    size_t count;
    const char **against = args_all(b->args, "against", &count);
    *usable = against != NULL;
    for (size_t i = 0; *usable && i < count; i++)
        *usable = against_is_readable(against[i]);
    int code = *usable ? batch_read(b, against, count, true, usable) : EXIT_USAGE;
    free(against);
    if (*usable && !doppel_batch_count(b->batch) && doppel_batch_get_reading(b->batch, 0, &reading) && !reading.indexes)
        message("warning: --against has no documents");
    if (*usable && b->all_pairs && doppel_batch_get_reading(b->batch, 0, &reading) && reading.indexes) {
        message("--against: an index names one original of a document, not all pairs: use doppel dedup --against");
        *usable = false;
        return EXIT_USAGE;
    }
    return code;
}

int batch_read_all(batch_command *b, bool *usable) {
    int known = EXIT_DONE;
    *usable = true;
    if (args_text(b->args, "against"))
        known = read_known(b, usable);
    if (!*usable)
        return known;
    int code = batch_read(b, b->args->operands, b->args->operand_count, false, usable);
    const char *save = args_text(b->args, "save-sketches");
    if (*usable && save) {
        doppel_error error = {0};
        int saved = batch_end(doppel_batch_save(b->batch, save, &error), &error);
        *usable = saved == EXIT_DONE;
        code = saved ? saved : code;
    }
    return code ? code : known;
}

/* A document's id, borrowed until the next call. NULL: no memory. */
static const char *get_id(batch_command *b, uint64_t position, size_t *length) {
    *length = doppel_batch_id(b->batch, position, b->id, b->id_room);
    if (*length > b->id_room) {
        char *more = realloc(b->id, *length);
        if (!more)
            return NULL;
        b->id = more;
        b->id_room = *length;
        *length = doppel_batch_id(b->batch, position, b->id, b->id_room);
    }
    return b->id ? b->id : "";
}

doppel_status batch_write_id(batch_command *b, writer *w, const char *before, uint64_t position) {
    size_t length;
    const char *id = get_id(b, position, &length);
    doppel_status status = id ? add_text(w, before) : DOPPEL_ERROR_MEMORY;
    return status == DOPPEL_OK ? add_json(w, id, length) : status;
}

void batch_tell_ids(const batch_command *b) {
    doppel_batch_stats stats;
    doppel_batch_get_stats(b->batch, &stats);
    if (stats.same_ids)
        message("%llu document%s the id of an earlier one; they are kept apart by position",
                (unsigned long long)stats.same_ids, stats.same_ids == 1 ? " has" : "s have");
}

int batch_decide(batch_command *b) {
    doppel_error error = {0};
    progress_begin("comparing");
    doppel_status status = doppel_batch_decide(b->batch, &error);
    progress_end();
    if (status == DOPPEL_OK)
        batch_tell_ids(b);
    int code = batch_end(status, &error);
    batch_tell_resume(b, code);
    return code;
}

/* ---- what is said ---- */

static double found_at(const doppel_batch_stats *stats, double similarity) {
    return 100 * (1 - pow(1 - pow(similarity, stats->rows), stats->bands));
}

void batch_tell_plan(const batch_command *b) {
    doppel_batch_stats stats;
    doppel_batch_get_stats(b->batch, &stats);
    double similarity = b->options.similarity > 0 ? b->options.similarity : 0.8;
    bool by_content = !b->options.by || b->options.by & DOPPEL_BY_CONTENT;
    if (stats.bands && by_content)
        message("%d band%s of %d row%s are expected to find %.1f %% of the pairs at similarity %g, %.4g %% at %.3g",
                stats.bands, stats.bands == 1 ? "" : "s", stats.rows, stats.rows == 1 ? "" : "s",
                found_at(&stats, similarity), similarity, found_at(&stats, (1 + similarity) / 2), (1 + similarity) / 2);
}

void batch_print(const batch_command *b) {
    doppel_batch_stats s;
    doppel_batch_get_stats(b->batch, &s);
    printf("{\"method\":\"%s\",\"recipe\":\"%s\"", method_name(b->options.method),
           doppel_recipe_text(b->loaded.recipe));
    if (b->options.method == DOPPEL_METHOD_SIMHASH)
        printf(",\"distance\":%d", b->options.distance == 0 ? 3 : b->options.distance < 0 ? 0 : b->options.distance);
    if (s.bands)
        printf(",\"similarity\":%g,\"bands\":%d,\"rows\":%d,\"expectedRecall\":%.4f",
               b->options.similarity > 0 ? b->options.similarity : 0.8, s.bands, s.rows, s.recall);
    print_counts(stdout, &b->counts);
    printf(",\"known\":%llu,\"empty\":%llu,\"fewWords\":%llu,\"copies\":%llu,\"sameIds\":%llu,\"candidates\":%llu,"
           "\"verified\":%llu,"
           "\"spilledBytes\":%llu",
           (unsigned long long)s.known, (unsigned long long)s.empty, (unsigned long long)s.few_words,
           (unsigned long long)s.copies, (unsigned long long)s.same_ids, (unsigned long long)s.candidates,
           (unsigned long long)s.verified, (unsigned long long)s.spilled_bytes);
}
