/* batch_command.c - what the commands on many documents share: options, reading, deciding, what they print. */
#include "batch/batch_command.h"

#include "common/embed.h"
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

/* As --method takes it. */
static const char *method_name(doppel_method method) {
    return choice_name(method_choices, (unsigned)method);
}

uint64_t batch_min_words(const cli_args *args) {
    uint64_t given = args_number(args, "min-words", 5);
    return given ? given : 1;
}

static int number_of(const cli_args *args, const char *option) {
    uint64_t given = args_number(args, option, 0);
    return given < INT_MAX ? (int)given : INT_MAX;
}

/* The value of --preset, which stands for options of signatures: others may not be given with it. */
static bool preset_option(const cli_args *args, const doppel_pipeline **preset) {
    size_t count;
    const doppel_pipeline *pipelines = doppel_pipelines(&count);
    unsigned chosen = 0;
    if (!choose_one(args, "preset", &chosen))
        return false;
    *preset = args_text(args, "preset") ? &pipelines[chosen] : NULL;
    const char *method = args_text(args, "method");
    bool fits = !args_text(args, "distance") && (!method || !strcmp(method, "minhash"));
    if (*preset && !fits)
        message("--preset is for signatures: it cannot be used with %s",
                method && strcmp(method, "minhash") != 0 ? "a --method other than minhash" : "--distance");
    return !*preset || fits;
}

/* Takes from the preset what the command line does not give. */
static void apply_preset(const doppel_pipeline *preset, doppel_batch_options *o) {
    o->method = DOPPEL_METHOD_MINHASH;
    o->similarity = o->similarity > 0 ? o->similarity : preset->similarity;
    /* Bands of another number of rows are another plan. */
    if (!o->bands && !o->rows) {
        o->bands = preset->bands;
        o->rows = preset->rows;
    }
}

/* Whether the options that define near fit the method. */
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
            message("--%s cannot be used with --method %s%s", rules[i].option, method_name(method),
                    args_text(args, "method") ? "" : ", which is what --distance means");
            return false;
        }
    return true;
}

static bool check_copies(const cli_args *args) {
    const char *keep = args_text(args, "keep");
    uint64_t number;
    if (keep && !strcmp(args->command->name, "dedup") && parse_number(keep, &number)) {
        message("--keep says which document of a group is kept, not how many; did you mean --keep-copies %s?", keep);
        return false;
    }
    if (!args_text(args, "keep-copies") || args_number(args, "keep-copies", 0))
        return true;
    message("--keep-copies 0 would keep nothing: 1, the default, keeps one document of each group");
    return false;
}

/* Reads the options of the command line into b->options. False, with a message: one is invalid. */
static bool batch_options(batch_command *b) {
    const cli_args *args = b->args;
    doppel_batch_options *o = &b->options;
    unsigned method = DOPPEL_METHOD_AUTO, content = DOPPEL_CONTENT_MAIN, any = false;
    bool good = choose_one(args, "method", &method) && choose_one(args, "content", &content) &&
                choose_one(args, "link", &any) && choose_some(args, "by", &o->by) &&
                choose_some(args, "url-keep", &o->url_without) && args_share(args, "similarity", &o->similarity) &&
                args_share(args, "boilerplate", &o->boilerplate) &&
                args_share(args, "only-contained", &o->only_contained) && check_copies(args) &&
                args_positive(args, "limit");
    o->bands = number_of(args, "bands");
    o->rows = number_of(args, "rows");
    o->distance = number_of(args, "distance");
    o->distance_zero = args_text(args, "distance") && !o->distance;
    o->method = (doppel_method)method;
    /* A distance implies fingerprints, bands or rows imply signatures. */
    if (!args_text(args, "method"))
        o->method = args_text(args, "distance")                           ? DOPPEL_METHOD_SIMHASH
                    : args_text(args, "bands") || args_text(args, "rows") ? DOPPEL_METHOD_MINHASH
                                                                          : DOPPEL_METHOD_AUTO;
    if (b->preset)
        apply_preset(b->preset, o);
    o->content = (doppel_content)content;
    o->link_any = any;
    o->min_words = batch_min_words(args);
    o->keep = args_text(args, "keep");
    o->keep_copies = args_number(args, "keep-copies", 0);
    o->count_by = args_text(args, "count-by");
    o->within = args_text(args, "within");
    o->across = args_text(args, "across");
    o->tmp = args_text(args, "tmp");
    o->memory = args_number(args, "memory", 0);
    o->limit = args_number(args, "limit", 0);
    o->work = args_text(args, "work");
    o->resume = args_flag(args, "resume");
    return good && fits_method(args, o->method);
}

/* ---- opening ---- */

static void show_stage(const char *stage, uint64_t done, uint64_t total, void *user) {
    (void)stage;
    progress_part(done, total, user);
}

static void show_warning(const char *text, void *user) {
    (void)user;
    message("%s", text);
}

bool batch_check(const cli_args *args) {
    if ((!args_flag(args, "dry-run") && !check_json(args)) || !check_outputs(args) || !check_against(args))
        return false;
    if (!args_flag(args, "resume") || args_text(args, "work"))
        return true;
    message("--resume continues the run of a work folder: name it with --work DIR");
    return false;
}

int batch_open(batch_command *b, const cli_args *args) {
    doppel_error error = {0};
    *b = (batch_command){.args = args, .input = reading_options(args), .known_input = against_options(args)};
    b->options = (doppel_batch_options){.size = sizeof b->options, .input = &b->input, .known_input = &b->known_input};
    if (!batch_check(args))
        return EXIT_USAGE;
    if (!preset_option(args, &b->preset))
        return EXIT_USAGE;
    const char *recipe = args_text(args, "recipe");
    int code = load_recipe(args, recipe || !b->preset ? recipe : b->preset->recipe, &b->loaded);
    if (code != EXIT_DONE)
        return code;
    if (!batch_options(b))
        return EXIT_USAGE;
    code = try_outputs(args);
    if (code != EXIT_DONE)
        return code;
    b->options.recipe = b->loaded.recipe;
    b->options.keep_sketches = args_text(args, "save-sketches") != NULL;
    b->options.progress = message_quiet ? NULL : show_stage;
    b->options.warn = show_warning;
    return batch_end(doppel_batch_create(&b->options, &b->batch, &error), &error);
}

void batch_close(batch_command *b) {
    doppel_batch_free(b->batch);
    free_recipe(&b->loaded);
    free(b->id);
    text_free(&b->line);
}

/* ---- reading ---- */

int batch_end(doppel_status status, const doppel_error *error) {
    if (output_closed())
        return EXIT_DONE;
    if (status == DOPPEL_ERROR_INTERRUPTED)
        message("interrupted");
    else if (status != DOPPEL_OK && !failure_reported)
        message_error(error);
    return exit_code(status);
}

int batch_open_tables(const cli_args *args, const char *text, void **tables) {
    const embedded_tables *embedded = get_tables();
    const table_output output = {.output = args_text(args, "output"),
                                 .folder = args_text(args, "output-dir"),
                                 .inputs = args->operands,
                                 .input_count = args->operand_count,
                                 .text = text,
                                 .annotate = args_flag(args, "annotate"),
                                 .counts = args_text(args, "count-by"),
                                 .prefix = args_text(args, "annotate-prefix"),
                                 .stop = &stop_asked,
                                 .memory = args_number(args, "memory", 0),
                                 .threads = output_threads(args)};
    doppel_error error = {0};
    return batch_end(embedded->create(&output, tables, embedded->user, &error), &error);
}

int batch_close_tables(void **tables, int code) {
    const embedded_tables *embedded = get_tables();
    doppel_error error = {0};
    if (!*tables)
        return code;
    int finished = batch_end(embedded->finish(*tables, code == EXIT_DONE, embedded->user, &error), &error);
    *tables = NULL;
    return code ? code : finished;
}

void batch_hint_resume(const cli_args *args, int code) {
    if (code == EXIT_INTERRUPTED && args_text(args, "work"))
        message("run the same command with --resume to continue");
}

void batch_begin_step(const batch_command *b, unsigned step) {
    static const char *const what[] = {[STEP_READ] = "reading", [STEP_COMPARE] = "comparing", [STEP_WRITE] = "writing"};
    bool writes = !strcmp(b->args->command->name, "dedup");
    progress_begin_step(what[step], step, writes ? STEP_WRITE : STEP_COMPARE);
}

/* Reads paths. Returns an exit code; *usable: there is something to continue with. */
static int batch_read(batch_command *b, const char *const *paths, size_t count, bool known, bool *usable) {
    doppel_input_counts counts = {0};
    doppel_error error = {0};
    progress_limit(known ? 0 : b->options.limit);
    batch_begin_step(b, STEP_READ);
    doppel_status status = doppel_batch_read(b->batch, paths, count, known, &counts, &error);
    int code = reading_ended(status, &b->input, &error, &counts);
    progress_limit(0);
    *usable = status == DOPPEL_OK && !nothing_read(b->args, &counts);
    batch_hint_resume(b->args, code);
    *(known ? &b->known_counts : &b->counts) = counts;
    return code;
}

/* Reads the documents of --against. */
static int read_known(batch_command *b, bool *usable) {
    doppel_batch_reading reading;
    size_t count;
    const char **against;
    int code = against_paths(b->args, &against, &count);
    *usable = code == EXIT_DONE;
    if (*usable)
        code = batch_read(b, against, count, true, usable);
    free(against);
    if (*usable && !doppel_batch_count(b->batch) && doppel_batch_get_reading(b->batch, 0, &reading) && !reading.indexes)
        message("warning: --against has no documents");
    if (*usable && b->all_pairs && doppel_batch_get_reading(b->batch, 0, &reading) && reading.indexes) {
        message("--against: an index finds one original for a document, not all pairs: use doppel dedup --against");
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

doppel_slice batch_get_id(batch_command *b, uint64_t position) {
    size_t length;
    const char *id = get_id(b, position, &length);
    b->line.failed = b->line.failed || !id;
    return (doppel_slice){id ? id : "", id ? length : 0};
}

void batch_put_id(batch_command *b, const char *name, uint64_t position) {
    text_member_string(&b->line, name, batch_get_id(b, position));
}

doppel_status batch_write_line(batch_command *b, writer *w) {
    return writer_add_text(w, &b->line);
}

void batch_warn_ids(const batch_command *b) {
    doppel_batch_stats stats;
    doppel_batch_get_stats(b->batch, &stats);
    if (stats.same_ids)
        message("%llu document%s the id of an earlier one; they are distinguished by position",
                (unsigned long long)stats.same_ids, stats.same_ids == 1 ? " has" : "s have");
}

int batch_decide(batch_command *b) {
    doppel_error error = {0};
    batch_begin_step(b, STEP_COMPARE);
    doppel_status status = doppel_batch_decide(b->batch, &error);
    progress_end();
    if (status == DOPPEL_OK)
        batch_warn_ids(b);
    int code = batch_end(status, &error);
    batch_hint_resume(b->args, code);
    return code;
}

/* ---- messages ---- */

static double found_at(const doppel_batch_stats *stats, double similarity) {
    return 100 * (1 - pow(1 - pow(similarity, stats->rows), stats->bands));
}

void batch_print_plan(const batch_command *b) {
    doppel_batch_stats stats;
    doppel_batch_get_stats(b->batch, &stats);
    double similarity = doppel_batch_get_options(b->batch)->similarity;
    bool by_content = !b->options.by || b->options.by & DOPPEL_BY_CONTENT;
    if (stats.bands && by_content && args_flag(b->args, "verbose"))
        message_summary(
            "%d band%s of %d row%s are expected to find %.1f %% of the pairs at similarity %g, %.4g %% at %.3g",
            stats.bands, stats.bands == 1 ? "" : "s", stats.rows, stats.rows == 1 ? "" : "s",
            found_at(&stats, similarity), similarity, found_at(&stats, (1 + similarity) / 2), (1 + similarity) / 2);
}

void batch_summary(const batch_command *b, text_buffer *out) {
    doppel_batch_stats s;
    const doppel_batch_options *used = doppel_batch_get_options(b->batch);
    doppel_batch_get_stats(b->batch, &s);
    text_put(out, "{");
    text_member_string(out, "method", doppel_slice_of(method_name(b->options.method)));
    text_member_string(out, "recipe", doppel_slice_of(doppel_recipe_text(b->loaded.recipe)));
    if (b->options.method == DOPPEL_METHOD_SIMHASH)
        text_member_distance(out, "distance", used->distance);
    if (s.bands)
        text_format(out, ",\"similarity\":%g,\"bands\":%d,\"rows\":%d,\"expectedRecall\":%.4f", used->similarity,
                    s.bands, s.rows, s.recall);
    text_counts(out, &b->counts);
    text_member_count(out, "known", s.known);
    text_member_count(out, "empty", s.empty);
    text_member_count(out, "fewWords", s.few_words);
    text_member_count(out, "copies", s.copies);
    text_member_count(out, "sameIds", s.same_ids);
    text_member_count(out, "candidates", s.candidates);
    text_member_count(out, "verified", s.verified);
    text_member_count(out, "spilledBytes", s.spilled_bytes);
}
