/* cmd_import.c - doppel import: what doppel export wrote, or plain records, into an index. */
#include "common/message.h"
#include "importing.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const cli_option import_options[] = {
    INDEX_OPTION,
    {"batch", 0, OPTION_COUNT, "N", "give the engine N documents at once (default 1000)"},
    {"json", 0, OPTION_FLAG, NULL, "print a summary as one JSON object"},
    {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},
    {"title-key", 0, OPTION_TEXT, "KEY", "the field with its title (default title)"},
    {"on-duplicate", 0, OPTION_TEXT, "DO", "as of doppel add; the default is link for an export"},
    DECIDE_OPTIONS,
    WRITE_OPTIONS,
    MAKE_OPTIONS,
    LOG_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* ---- opening ---- */

/* Whether the index is there already, with settings of its own; damaged or not. What else may be wrong with it comes up
 * when it is opened to write. */
static bool is_there(const char *path) {
    const doppel_engine_options options = {
        .size = sizeof options, .read_only = true, .must_exist = true, .salvage = true};
    doppel_engine *engine = NULL;
    doppel_error error = {0};
    bool there = doppel_engine_open(path, &options, &engine, &error) == DOPPEL_OK;
    doppel_engine_close(engine);
    return there;
}

/* Ends the command. */
static feed_answer end_with(import_job *job, int code) {
    job->feed.code = code;
    return FEED_END;
}

static feed_answer start(import_job *job) {
    int code = engine_start(&job->cli);
    if (code != EXIT_DONE)
        return end_with(job, code);
    doppel_engine_stats stats;
    doppel_engine_get_stats(job->cli.engine, &stats);
    job->fresh = !stats.documents;
    if (split_names(&job->fields, doppel_engine_get_options(job->cli.engine)->fields))
        return FEED_SKIP;
    message("no memory");
    return end_with(job, EXIT_STORE);
}

/* Whether the sketches of an export are of the kind of an index with these options. */
static bool fits(const import_job *job, const doppel_engine_options *o, const settings *exported) {
    const doppel_engine_options *from = &exported->options;
    if (strcmp(doppel_recipe_text(o->recipe), exported->recipe) != 0) {
        message("the export has recipe %s and %s has %s; sketches of different recipes are never mixed",
                exported->recipe, job->cli.path, doppel_recipe_text(o->recipe));
        return false;
    }
    if (o->near == DOPPEL_NEAR_SIMILARITY && from->near == DOPPEL_NEAR_DISTANCE &&
        from->keep_text != DOPPEL_SWITCH_ON) {
        message("the export is of an index with near=distance, and has neither texts nor shingles; %s has "
                "near=similarity, and needs them",
                job->cli.path);
        return false;
    }
    return true;
}

/* Before a new index is made: whether the export would fit, by one in memory that has its options. */
static int try_new(const import_job *job, const settings *exported) {
    doppel_engine_options options = job->cli.options;
    doppel_engine *engine = NULL;
    doppel_error error = {0};
    options.log = NULL;
    options.count = options.memory = 0;
    int code = engine_ended(doppel_engine_open(NULL, &options, &engine, &error), &error);
    if (code == EXIT_DONE && !fits(job, doppel_engine_get_options(engine), exported))
        code = EXIT_STORE;
    doppel_engine_close(engine);
    return code;
}

/* Whether the first line of an export says that it is of the version that this doppel reads; complains. */
static bool is_our_version(const doppel_document *from) {
    static const char *const keys[] = {"version"};
    doppel_input_options options = {.size = sizeof options, .extra_keys = keys, .extra_count = 1};
    doppel_document *parsed = NULL;
    doppel_error error = {0};
    if (doppel_document_parse(from->record, from->record_length, &options, &parsed, &error) != DOPPEL_OK) {
        message_error(&error);
        return false;
    }
    bool ours = export_is(parsed, 0, EXPORT_VERSION);
    doppel_slice version = parsed->extra[0];
    if (!ours)
        message("%s:%llu: an export of version %.*s; this doppel reads version %s", from->file,
                (unsigned long long)from->line, (int)(version.length < 20 ? version.length : 20),
                version.data ? version.data : "", EXPORT_VERSION);
    doppel_document_free(parsed);
    return ours;
}

/* Whether the first line of an export is one that can be read. */
static feed_answer check_head(import_job *job, const doppel_document *from, doppel_error *why) {
    if (!export_is(from, EXPORT_DOPPEL, EXPORT_KIND)) {
        snprintf(why->message, sizeof why->message, "field \"doppel\" is not \"%s\"", EXPORT_KIND);
        return FEED_BAD;
    }
    return is_our_version(from) ? FEED_SKIP : end_with(job, EXIT_STORE);
}

/* The first line of an export: a new index is made as it says. */
static feed_answer take_head(import_job *job, const doppel_document *from, doppel_error *why) {
    settings exported;
    feed_answer answer = check_head(job, from, why);
    if (answer != FEED_SKIP)
        return answer;
    bool good = read_settings(&exported, from->record, from->record_length);
    if (good && !job->cli.engine) {
        bool is_new = !is_there(job->cli.place.path);
        int code = is_new ? use_settings(&exported, &job->cli) : EXIT_DONE;
        if (is_new && code == EXIT_DONE)
            code = try_new(job, &exported);
        answer = code == EXIT_DONE ? start(job) : end_with(job, code);
    }
    if (!good)
        answer = end_with(job, EXIT_INPUT);
    else if (answer == FEED_SKIP && !fits(job, doppel_engine_get_options(job->cli.engine), &exported))
        answer = end_with(job, EXIT_STORE);
    if (job->settings.recipe)
        settings_free(&exported);
    else
        job->settings = exported;
    return answer;
}

static feed_answer turn(feed *f, const doppel_document *from, doppel_item *item, doppel_error *why) {
    import_job *job = (import_job *)f;
    if (from->extra[EXPORT_DOPPEL].data && from->record)
        return take_head(job, from, why);
    if (!job->cli.engine) {
        feed_answer answer = start(job);
        if (answer != FEED_SKIP)
            return answer;
    }
    return import_item(job, from, item, why);
}

/* ---- the end ---- */

static doppel_status count_verdict(feed *f, const doppel_item *item, const doppel_verdict *verdict) {
    import_job *job = (import_job *)f;
    bool is = verdict->is_duplicate;
    job->known += verdict->known;
    job->documents += !verdict->known && !is;
    job->copies += !verdict->known && is && item->restore;
    job->duplicates += !verdict->known && is && !item->restore;
    return DOPPEL_OK;
}

static int tell_summary(const import_job *job, int code) {
    unsigned long long documents = job->documents, copies = job->copies, duplicates = job->duplicates,
                       expired = job->expired, known = job->known, orphans = job->orphans;
    message("%llu document%s and %llu cop%s came in", documents, documents == 1 ? "" : "s", copies,
            copies == 1 ? "y" : "ies");
    if (known)
        message("%llu %s there already", known, known == 1 ? "was" : "were");
    if (duplicates)
        message("%llu %s of what is there", duplicates, duplicates == 1 ? "is a duplicate" : "are duplicates");
    if (expired)
        message("%llu %s expired and left out", expired, expired == 1 ? "is" : "are");
    if (orphans)
        message("%llu cop%s left out, the original is gone", orphans, orphans == 1 ? "y is" : "ies are");
    if (!args_flag(job->cli.args, "json"))
        return code;
    printf("{\"index\":");
    print_json(stdout, job->cli.path, strlen(job->cli.path));
    printf(",\"documents\":%llu,\"copies\":%llu,\"known\":%llu,\"duplicates\":%llu,\"expired\":%llu,"
           "\"originalGone\":%llu,\"bad\":%llu,\"unopened\":%llu}\n",
           documents, copies, known, duplicates, expired, orphans, (unsigned long long)job->feed.counts.bad,
           (unsigned long long)job->feed.counts.unopened);
    return finish_stdout(code);
}

static int run(import_job *job) {
    static const char *const keys[EXPORT_KEYS] = EXPORT_NAMES;
    job->feed.keys = keys;
    job->feed.key_count = EXPORT_KEYS;
    job->held = calloc(job->feed.batch, sizeof *job->held);
    if (!job->held) {
        message("no memory");
        return EXIT_STORE;
    }
    int code = feed_run(&job->feed);
    import_over(&job->feed);
    return job->feed.code ? code : tell_summary(job, code);
}

int cmd_import(const cli_args *args) {
    import_job job = {.feed = {.record = true, .turn = turn, .told = count_verdict, .over = import_over},
                      .now = (uint64_t)time(NULL)};
    job.feed.cli = &job.cli;
    job.feed.batch = batch_option(args);
    if (!job.feed.batch)
        return EXIT_USAGE;
    int code = engine_prepare(&job.cli, args, ENGINE_MAKE);
    if (code == EXIT_DONE)
        code = run(&job);
    feed_free(&job.feed);
    free(job.held);
    free(job.fields.text);
    code = engine_close(&job.cli, code);
    settings_free(&job.settings);
    return code;
}
