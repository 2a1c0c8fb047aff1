/* cmd_trim.c - doppel trim: the documents without the lines, sentences, paragraphs or passages that repeat others.
 *
 * doppel_trim_find reads the inputs and finds what is to be cut; doppel_trim_write reads them once more and gives every
 * document, cut, with its spans. Documents, spans and the list of dropped documents are written during that reading;
 * each of the files is complete or absent. Tables (Parquet) are written by the embedding program (common/embed.h). */
#include "batch/batch_command.h"
#include "commands.h"
#include "common/embed.h"
#include "common/message.h"
#include "common/progress.h"
#include "shared/choices.h"
#include "shared/outputs.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const cli_option trim_options[] = {
    {"output", 'o', OPTION_TABLE, "OUT",
     "write the trimmed documents to this file; .gz and .zst are compressed; .parquet takes Parquet inputs; - is "
     "stdout"},
    {"output-dir", 0, OPTION_FILE, "DIR",
     "instead of --output: write one file for each Parquet input, with the same name, below this folder"},
    {"unit", 'u', OPTION_TEXT, "UNIT",
     "what is compared: line (the default), sentence, paragraph (between blank lines), or passage (any run of --words "
     "words)"},
    {"run", 0, OPTION_COUNT, "N",
     "cut only N lines, sentences or paragraphs in a row that repeat together (default 1)"},
    {"words", 'w', OPTION_COUNT, "N", "for passages: the minimum number of words (default 50)"},
    {"min-words", 0, OPTION_COUNT, "N",
     "units with fewer words are cut only in a run with a longer one; shorter texts of --against are ignored (default "
     "5)"},
    {"keep", 0, OPTION_NAMES, "RULES",
     "which document keeps a repeat: the first by these rules, in order of precedence, separated by commas: first (the "
     "default), last, longest, shortest, https, shortest-url, newest:FIELD, oldest:FIELD, largest:FIELD, "
     "smallest:FIELD"},
    {"min-count", 0, OPTION_COUNT, "C", "cut only what occurs at least C times (default 2)"},
    {"keep-first", 0, OPTION_TEXT, "on|off", "on (the default): the first occurrence is kept; off: it is cut as well"},
    {"within", 0, OPTION_TEXT, "FIELD", "only repeats in one document, host, domain or value of FIELD count"},
    {"across", 0, OPTION_TEXT, "FIELD", "only repeats in different documents, hosts, domains or values of FIELD count"},
    {"drop-below", 0, OPTION_COUNT, "WORDS", "drop documents that are cut and have fewer than WORDS words left"},
    {"drop-share", 0, OPTION_TEXT, "S", "drop documents of which more than this share of the words is cut, e.g. 0.5"},
    {"drop", 0, OPTION_FLAG, NULL, "drop every document of which anything would be cut"},
    {"against", 0, OPTION_FILES, "FILE",
     "cut only what the documents of this file or folder contain, e.g. evaluation texts; these are not written. With "
     "--unit passage, those with fewer than --words words are matched as a whole. To remove near-copies of whole "
     "documents, use doppel dedup --against FILE"},
    AGAINST_OPTIONS,
    {"spans", 0, OPTION_OUTPUT, "FILE",
     "write a line for each span that is cut: {\"id\",\"start\",\"end\",\"words\",\"originalId\",\"originalStart\"}, "
     "in bytes of the original text; reads the inputs once more"},
    {"dropped", 0, OPTION_OUTPUT, "FILE",
     "write a line for each document that is dropped or left empty: why, and originalId, the document its first span "
     "is from; reads the inputs once more"},
    {"annotate", 0, OPTION_FLAG, NULL,
     "cut nothing: write all documents, with their spans added as a field spans, replacing one of this name"},
    {"dry-run", 0, OPTION_FLAG, NULL, "report what would be cut, but write no documents"},
    WORK_OPTIONS,
    {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},
    {"title-key", 0, OPTION_TEXT, "KEY", "the field with its title (default title)"},
    CONTENT_OPTION,
    RECIPE_OPTIONS,
    MEMORY_OPTION,
    TMP_OPTION,
    SUMMARY_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct trim_job {
    const cli_args *args;
    loaded_recipe loaded;
    doppel_input_options input, against_input;
    const char **against;
    doppel_trim_options options;
    doppel_trim *trim;
    doppel_trim_stats stats;
    writer out, spans, dropped; /* open only where the option is given */
    void *tables;               /* the writer of tables; NULL: the output is no table */
    doppel_error table_error;   /* of that */
    bool annotates;
    bool lines;       /* texts are written, a line each, not records */
    uint64_t places;  /* cuts of all documents */
    text_buffer line; /* of spans and dropped */
} trim_job;

/* ---- options ---- */

/* Numbers of which 0 is not the default, as it is for the library, but a mistake. */
static bool check_zero(const cli_args *args) {
    static const struct {
        const char *option;
        int least;
    } numbers[] = {{"run", 1}, {"words", 1}, {"min-count", 2}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!args_number(args, numbers[i].option, 1)) {
            message("--%s takes a number of at least %d, not 0", numbers[i].option, numbers[i].least);
            return false;
        }
    return true;
}

/* Reads the options of the command line into job->options. False, with a message: one is invalid. */
static bool read_options(trim_job *job) {
    const cli_args *args = job->args;
    doppel_trim_options *o = &job->options;
    unsigned unit = DOPPEL_UNIT_LINE, cut_first = false;
    bool good = choose_one(args, "unit", &unit) && choose_one(args, "keep-first", &cut_first) &&
                content_option(args, &o->content) && args_share(args, "drop-share", &o->drop_share) && check_zero(args);
    o->unit = (doppel_unit)unit;
    o->run = args_number(args, "run", 0);
    o->words = args_number(args, "words", 0);
    o->min_words = batch_min_words(args);
    o->keep = args_text(args, "keep");
    o->min_count = args_number(args, "min-count", 0);
    o->cut_first = cut_first;
    o->within = args_text(args, "within");
    o->across = args_text(args, "across");
    o->drop_below = args_number(args, "drop-below", 0);
    o->drop = args_flag(args, "drop");
    o->memory = args_number(args, "memory", 0);
    o->tmp = args_text(args, "tmp");
    o->work = args_text(args, "work");
    o->resume = args_flag(args, "resume");
    return good;
}

/* Lines stay lines, except under the name of another format. */
static bool writes_lines(const cli_args *args) {
    const char *format = args_text(args, "format"), *out = args_text(args, "output");
    return format && !strcasecmp(format, "lines") && out && !args_flag(args, "annotate") &&
           (is_stdout(out) || !doppel_input_format(out));
}

/* What the inputs are read for. */
static const char *reading_for = "reading";

/* doppel_input_options.progress: between two stages the inputs are read again. */
static void show_reading(uint64_t bytes, uint64_t total, uint64_t documents, void *user) {
    progress_change(reading_for);
    progress_show(bytes, total, documents, user);
}

/* doppel_trim_options.progress */
static void show_stage(const char *stage, uint64_t done, uint64_t total, void *user) {
    progress_change(stage);
    progress_part(done, total, user);
}

/* Returns an exit code, with a message unless it is EXIT_DONE. Close it in any case. */
static int open_job(trim_job *job, const cli_args *args) {
    *job = (trim_job){.args = args,
                      .input = reading_options(args),
                      .against_input = against_options(args),
                      .annotates = args_flag(args, "annotate"),
                      .lines = writes_lines(args)};
    job->options = (doppel_trim_options){.size = sizeof job->options,
                                         .input = &job->input,
                                         .against_input = &job->against_input,
                                         .progress = message_quiet ? NULL : show_stage};
    if (job->input.progress)
        job->input.progress = job->against_input.progress = show_reading;
    if (!check_documents_output(args, false) || !batch_check(args) || !read_options(job))
        return EXIT_USAGE;
    int code = load_recipe(args, args_text(args, "recipe"), &job->loaded);
    if (code == EXIT_DONE)
        code = against_paths(args, &job->against, &job->options.against_count);
    if (code == EXIT_DONE)
        code = try_outputs(args);
    const char *text = args_text(args, "text-key");
    if (code == EXIT_DONE && writes_tables(args) && !args_flag(args, "dry-run"))
        code = batch_open_tables(args, text ? text : "text", &job->tables);
    job->options.recipe = job->loaded.recipe;
    job->options.against = job->against;
    return code;
}

static void close_job(trim_job *job) {
    batch_close_tables(&job->tables, EXIT_INPUT);
    doppel_trim_free(job->trim);
    free_recipe(&job->loaded);
    free(job->against);
    text_free(&job->line);
}

/* ---- finding ---- */

/* Warns about texts of --against that are not used. */
static void warn_against(const trim_job *job) {
    const doppel_trim_stats *s = &job->stats;
    if (!job->options.against_count)
        return;
    if (!s->against.documents)
        message("warning: --against has no documents");
    if (s->short_against)
        message("%llu text%s of --against %s fewer than %llu words and %s ignored; --min-words sets the limit",
                (unsigned long long)s->short_against, s->short_against == 1 ? "" : "s",
                s->short_against == 1 ? "has" : "have", (unsigned long long)job->options.min_words,
                s->short_against == 1 ? "is" : "are");
}

/* Returns an exit code; *usable: there is something to write. */
static int find(trim_job *job, bool *usable) {
    const cli_args *args = job->args;
    doppel_error error = {0};
    progress_begin("reading");
    doppel_status status = doppel_trim_find(args->operands, args->operand_count, &job->options, &job->trim, &error);
    if (job->trim)
        doppel_trim_get_stats(job->trim, &job->stats);
    const doppel_input_counts read = add_counts(&job->stats.input, &job->stats.against);
    int code = reading_ended(status, &job->input, &error, &read);
    batch_hint_resume(args, code);
    *usable = status == DOPPEL_OK && !nothing_read(args, &job->stats.input);
    if (*usable)
        warn_against(job);
    return code;
}

/* ---- writing ---- */

static doppel_status write_span(trim_job *job, const doppel_trimmed *d, const doppel_span *span) {
    text_buffer *line = &job->line;
    text_put(line, "{");
    text_member_string(line, "id", d->id);
    text_member_count(line, "start", span->start);
    text_member_count(line, "end", span->end);
    text_member_count(line, "words", span->words);
    text_member_string(line, "originalId", span->original_id);
    text_member_count(line, "originalStart", span->original_start);
    text_put(line, "}\n");
    return writer_add_text(&job->spans, line);
}

static doppel_status write_dropped(trim_job *job, const doppel_trimmed *d) {
    text_buffer *line = &job->line;
    const char *reason = d->emptied ? "empty" : doppel_dropped_name(d->dropped);
    text_put(line, "{");
    text_member_string(line, "id", d->id);
    text_member_string(line, "reason", doppel_slice_of(reason));
    text_member_count(line, "words", d->words);
    text_member_count(line, "wordsCut", d->words_cut);
    text_member_string(line, "originalId", d->spans[0].original_id);
    text_put(line, "}\n");
    return writer_add_text(&job->dropped, line);
}

/* doppel_trim_write */
static doppel_status take_document(const doppel_trimmed *d, void *user) {
    trim_job *job = user;
    doppel_status status = DOPPEL_OK;
    job->places += d->cut_count;
    for (size_t i = 0; job->spans.bytes && i < d->span_count && status == DOPPEL_OK; i++)
        status = write_span(job, d, &d->spans[i]);
    if (job->dropped.bytes && (d->dropped || d->emptied) && status == DOPPEL_OK)
        status = write_dropped(job, d);
    if (job->tables && status == DOPPEL_OK)
        return get_tables()->trim(job->tables, d, get_tables()->user, &job->table_error);
    if (!job->out.bytes || (d->dropped && !job->annotates) || status != DOPPEL_OK)
        return status;
    const doppel_slice written = job->lines ? d->text : d->record;
    status = writer_add(&job->out, written.data, written.length);
    return status == DOPPEL_OK ? writer_add(&job->out, "\n", 1) : status;
}

/* The parts that doppel_trim_write is to give. */
static unsigned wanted_parts(const trim_job *job) {
    unsigned wanted = job->spans.bytes || job->dropped.bytes ? DOPPEL_TRIM_SPANS : 0;
    if (job->out.bytes)
        wanted |= job->annotates ? DOPPEL_TRIM_ANNOTATE : job->lines ? DOPPEL_TRIM_TEXTS : DOPPEL_TRIM_RECORDS;
    if (job->tables)
        wanted |= job->annotates ? DOPPEL_TRIM_SPANS | DOPPEL_TRIM_ORIGINALS : DOPPEL_TRIM_TEXTS;
    return wanted;
}

static int write_documents(trim_job *job) {
    doppel_error error = {0};
    reading_for = job->out.bytes || job->tables ? "writing" : "counting";
    progress_begin(reading_for);
    doppel_status status = doppel_trim_write(job->trim, wanted_parts(job), take_document, job, &error);
    progress_end();
    if (status != DOPPEL_OK && job->table_error.code != DOPPEL_OK)
        error = job->table_error;
    if (status != DOPPEL_OK && !error.message[0])
        snprintf(error.message, sizeof error.message, "%s", doppel_status_name(status));
    doppel_trim_get_stats(job->trim, &job->stats);
    int code = batch_close_tables(&job->tables, batch_end(status, &error));
    batch_hint_resume(job->args, code);
    return code;
}

/* Opens the outputs that are asked for, and writes them all in one reading. */
static int write_outputs(trim_job *job) {
    const cli_args *args = job->args;
    const struct {
        writer *w;
        const char *path;
    } outputs[] = {{&job->out, args_flag(args, "dry-run") || job->tables ? NULL : args_text(args, "output")},
                   {&job->spans, args_text(args, "spans")},
                   {&job->dropped, args_text(args, "dropped")}};
    enum { OUTPUTS = sizeof outputs / sizeof *outputs };
    int code = EXIT_DONE;
    for (size_t i = 0; i < OUTPUTS && code == EXIT_DONE; i++)
        if (outputs[i].path)
            code = writer_open(outputs[i].w, outputs[i].path, output_threads(args));
    if (code == EXIT_DONE)
        code = write_documents(job);
    for (size_t i = OUTPUTS; i--;)
        if (outputs[i].w->bytes)
            code = writer_close(outputs[i].w, code);
    return code;
}

/* ---- messages ---- */

/* Suggests other units when nothing was found because each text is a single unit. */
static void suggest_units(const trim_job *job) {
    doppel_unit unit = job->options.unit;
    bool divides = unit == DOPPEL_UNIT_LINE || unit == DOPPEL_UNIT_PARAGRAPH;
    if (divides && job->stats.units && job->stats.units <= job->stats.input.documents)
        message("the texts have one %s each; try --unit sentence or --unit passage",
                choice_name(unit_choices, (unsigned)unit));
}

/* "150 documents: 135 kept, 15 dropped (10.0 %)": with --drop none is written cut. */
static void print_dropped(const doppel_trim_stats *s, bool would) {
    uint64_t documents = s->input.documents;
    message_summary("%llu document%s: %llu kept, %llu %sdropped (%.1f %%)", (unsigned long long)documents,
                    documents == 1 ? "" : "s", (unsigned long long)(documents - s->dropped),
                    (unsigned long long)s->dropped, would ? "would be " : "",
                    100 * (double)s->dropped / (double)documents);
}

/* "1204 documents: 312 cut in 518 places, 4.1 % of the words; 3 dropped, 1 emptied"; where nothing is cut, "would be
 * cut". */
static void print_result(const trim_job *job) {
    const doppel_trim_stats *s = &job->stats;
    uint64_t documents = s->input.documents;
    bool would = job->annotates || args_flag(job->args, "dry-run");
    char lost[80] = "";
    if (s->dropped || s->emptied)
        snprintf(lost, sizeof lost, "; %llu dropped, %llu emptied", (unsigned long long)s->dropped,
                 (unsigned long long)s->emptied);
    if (s->documents_cut && job->options.drop) {
        print_dropped(s, would);
    } else if (s->documents_cut) {
        message_summary("%llu document%s: %llu %s in %llu place%s, %.1f %% of the words%s",
                        (unsigned long long)documents, documents == 1 ? "" : "s", (unsigned long long)s->documents_cut,
                        would ? "would be cut" : "cut", (unsigned long long)job->places, job->places == 1 ? "" : "s",
                        100 * (double)s->words_cut / (double)s->words, lost);
    } else {
        message_summary("%llu document%s: nothing %scut", (unsigned long long)documents, documents == 1 ? "" : "s",
                        would ? "would be " : "");
        suggest_units(job);
    }
    tell_jsonl(job->args);
}

static int print_summary(const trim_job *job, int code) {
    const doppel_trim_stats *s = &job->stats;
    const doppel_trim_options *used = doppel_trim_get_options(job->trim);
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "unit", doppel_slice_of(choice_name(unit_choices, (unsigned)used->unit)));
    if (used->unit == DOPPEL_UNIT_PASSAGE)
        text_member_count(&out, "windowWords", used->words);
    else
        text_member_count(&out, "run", used->run);
    text_member_string(&out, "recipe", doppel_slice_of(doppel_recipe_text(job->loaded.recipe)));
    text_counts(&out, &s->input);
    text_member_count(&out, "against", s->against.documents);
    text_member_count(&out, "shortAgainst", s->short_against);
    text_member_count(&out, "documentsCut", s->documents_cut);
    text_member_count(&out, "spans", s->spans);
    text_member_count(&out, "words", s->words);
    text_member_count(&out, "wordsCut", s->words_cut);
    text_member_count(&out, "bytesCut", s->bytes_cut);
    text_member_count(&out, "dropped", s->dropped);
    text_member_count(&out, "emptied", s->emptied);
    text_member_count(&out, "repeated", s->repeated);
    text_member_count(&out, "values", s->values);
    text_member_count(&out, "spilledBytes", s->spilled_bytes);
    text_member_count(&out, "temporaryBytes", s->temporary_bytes);
    text_put(&out, "}\n");
    return finish_text(&out, code);
}

int cmd_trim(const cli_args *args) {
    trim_job job;
    bool usable = false;
    int code = open_job(&job, args);
    if (code == EXIT_DONE)
        code = find(&job, &usable);
    if (usable) {
        int written = write_outputs(&job);
        code = written ? written : code;
        if (!written && !output_closed())
            print_result(&job);
        if (!written && args_flag(args, "json"))
            code = print_summary(&job, code);
    }
    close_job(&job);
    return code;
}
