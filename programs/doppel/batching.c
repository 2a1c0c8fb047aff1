/* batching.c - what the commands on many documents share. */
#include "batching.h"

#include "common/message.h"
#include "common/progress.h"
#include "outputs.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- options ---- */

typedef struct word {
    const char *name;
    unsigned value;
} word;

static const word methods[] = {{"auto", DOPPEL_METHOD_AUTO},
                               {"simhash", DOPPEL_METHOD_SIMHASH},
                               {"minhash", DOPPEL_METHOD_MINHASH},
                               {"exact", DOPPEL_METHOD_EXACT},
                               {NULL, 0}};
static const word evidence[] = {
    {"content", DOPPEL_BY_CONTENT}, {"url", DOPPEL_BY_URL}, {"title", DOPPEL_BY_TITLE}, {NULL, 0}};
static const word contents[] = {{"main", DOPPEL_CONTENT_MAIN}, {"all", DOPPEL_CONTENT_ALL}, {NULL, 0}};
static const word links[] = {{"kept", false}, {"any", true}, {NULL, 0}};
static const word url_rules[] = {
    {"scheme", DOPPEL_URL_SCHEME},     {"www", DOPPEL_URL_WWW},         {"port", DOPPEL_URL_PORT},
    {"dots", DOPPEL_URL_DOTS},         {"escapes", DOPPEL_URL_ESCAPES}, {"index", DOPPEL_URL_INDEX},
    {"fragment", DOPPEL_URL_FRAGMENT}, {"query", DOPPEL_URL_QUERY},     {"tracking", DOPPEL_URL_TRACKING},
    {"idn", DOPPEL_URL_IDN},           {"slash", DOPPEL_URL_SLASH},     {NULL, 0}};

static const word *find_word(const word *words, const char *name, size_t length) {
    for (; words->name; words++)
        if (strlen(words->name) == length && !memcmp(words->name, name, length))
            return words;
    return NULL;
}

static bool refuse(const char *option, const word *words, const char *name, size_t length) {
    char list[200];
    size_t used = 0;
    for (const word *w = words; w->name && used < sizeof list; w++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 w == words  ? ""
                                 : w[1].name ? ", "
                                             : " or ",
                                 w->name);
    message("--%s takes %s, not %.*s", option, list, (int)length, name);
    return false;
}

/* The value of an option that takes one of some words; *value stays where it is not given. */
static bool one_of(const cli_args *args, const char *option, const word *words, unsigned *value) {
    const char *given = args_text(args, option);
    const word *found = given ? find_word(words, given, strlen(given)) : NULL;
    if (given && !found)
        return refuse(option, words, given, strlen(given));
    *value = found ? found->value : *value;
    return true;
}

/* The same for several, divided by commas. */
static bool some_of(const cli_args *args, const char *option, const word *words, unsigned *value) {
    for (const char *at = args_text(args, option); at; at = *at ? at + 1 : NULL) {
        size_t length = strcspn(at, ",");
        const word *found = find_word(words, at, length);
        if (!found)
            return refuse(option, words, at, length);
        *value |= found->value;
        at += length;
    }
    return true;
}

static bool number_of(const cli_args *args, const char *option, int *value) {
    uint64_t given = args_number(args, option, 0);
    *value = given < INT_MAX ? (int)given : INT_MAX;
    return true;
}

static bool read_options(batching *b) {
    const cli_args *args = b->args;
    doppel_batch_options *o = &b->options;
    unsigned method = DOPPEL_METHOD_AUTO, content = DOPPEL_CONTENT_MAIN, any = false;
    bool good = one_of(args, "method", methods, &method) && one_of(args, "content", contents, &content) &&
                one_of(args, "link", links, &any) && some_of(args, "by", evidence, &o->by) &&
                some_of(args, "url-keep", url_rules, &o->url_without) &&
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
    return good;
}

static void show_stage(const char *stage, uint64_t done, uint64_t total, void *user) {
    (void)stage;
    progress_part(done, total, user);
}

int batching_open(batching *b, const cli_args *args) {
    doppel_error error = {0};
    *b = (batching){.args = args, .input = reading_options(args)};
    b->options = (doppel_batch_options){.size = sizeof b->options, .input = &b->input};
    const char *output = args_text(args, "output");
    if (args_flag(args, "json") && (!output || !strcmp(output, "-")) && !args_flag(args, "dry-run")) {
        message("--json prints a summary, and goes with --output FILE");
        return EXIT_USAGE;
    }
    if (!check_outputs(args))
        return EXIT_USAGE;
    if (args_flag(args, "resume") && !args_text(args, "work")) {
        message("--resume goes on with the run of a folder: name it with --work DIR");
        return EXIT_USAGE;
    }
    int code = load_recipe(args, args_text(args, "recipe"), &b->loaded);
    if (code != EXIT_DONE)
        return code;
    if (!read_options(b))
        return EXIT_USAGE;
    b->options.recipe = b->loaded.recipe;
    b->options.progress = isatty(STDERR_FILENO) ? show_stage : NULL;
    return batching_end(doppel_batch_create(&b->options, &b->batch, &error), &error);
}

void batching_close(batching *b) {
    doppel_batch_free(b->batch);
    free_recipe(&b->loaded);
    free(b->id);
}

/* ---- reading ---- */

int batching_end(doppel_status status, const doppel_error *error) {
    if (output_closed())
        return EXIT_DONE;
    if (status == DOPPEL_ERROR_INTERRUPTED)
        message("interrupted");
    else if (status != DOPPEL_OK && !failure_told)
        message_error(error);
    return exit_code(status);
}

int batching_read(batching *b, const char *const *paths, size_t count, bool known, bool *usable) {
    doppel_input_counts counts = {0};
    doppel_error error = {0};
    progress_begin();
    doppel_status status = doppel_batch_read(b->batch, paths, count, known, &counts, &error);
    int code = reading_ended(status, &b->input, &error, &counts);
    *usable = code == EXIT_DONE || (code == EXIT_INPUT && !b->input.strict);
    if (!known)
        b->counts = counts;
    return code;
}

int batching_read_all(batching *b, bool *usable) {
    const char *against = args_text(b->args, "against");
    int known = EXIT_DONE;
    *usable = true;
    if (against)
        known = batching_read(b, &against, 1, true, usable);
    if (!*usable)
        return known;
    int code = batching_read(b, b->args->operands, b->args->operand_count, false, usable);
    const char *save = args_text(b->args, "save-sketches");
    if (*usable && save) {
        doppel_error error = {0};
        int saved = batching_end(doppel_batch_save(b->batch, save, &error), &error);
        *usable = saved == EXIT_DONE;
        code = saved ? saved : code;
    }
    return code ? code : known;
}

/* A document's id, borrowed until the next call. NULL: no memory. */
static const char *get_id(batching *b, uint64_t position, size_t *length) {
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

doppel_status batching_write_id(batching *b, writer *w, const char *before, uint64_t position) {
    size_t length;
    const char *id = get_id(b, position, &length);
    doppel_status status = id ? add_text(w, before) : DOPPEL_ERROR_MEMORY;
    return status == DOPPEL_OK ? add_json(w, id, length) : status;
}

int batching_decide(batching *b) {
    doppel_error error = {0};
    progress_begin();
    doppel_status status = doppel_batch_decide(b->batch, &error);
    progress_end();
    return batching_end(status, &error);
}

/* ---- what is said ---- */

static double found_at(const doppel_batch_stats *stats, double similarity) {
    return 100 * (1 - pow(1 - pow(similarity, stats->rows), stats->bands));
}

void batching_tell_plan(const batching *b) {
    doppel_batch_stats stats;
    doppel_batch_get_stats(b->batch, &stats);
    double similarity = b->options.similarity > 0 ? b->options.similarity : 0.8;
    if (stats.bands)
        message("%d bands of %d rows are expected to find %.1f %% of the pairs at similarity %g, %.4g %% at %.3g",
                stats.bands, stats.rows, found_at(&stats, similarity), similarity,
                found_at(&stats, (1 + similarity) / 2), (1 + similarity) / 2);
}

static const char *method_name(doppel_method method) {
    for (const word *w = methods; w->name; w++)
        if (w->value == (unsigned)method)
            return w->name;
    return "";
}

void batching_print(const batching *b) {
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
    printf(",\"known\":%llu,\"empty\":%llu,\"fewWords\":%llu,\"copies\":%llu,\"candidates\":%llu,\"verified\":%llu,"
           "\"spilledBytes\":%llu",
           (unsigned long long)s.known, (unsigned long long)s.empty, (unsigned long long)s.few_words,
           (unsigned long long)s.copies, (unsigned long long)s.candidates, (unsigned long long)s.verified,
           (unsigned long long)s.spilled_bytes);
}

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

doppel_status add_json(writer *w, const char *text, size_t length) {
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
