/* cmd_report.c - doppel report: one page about a finished run, of dedup and cluster or of trim.
 *
 * The sketches of a run of dedup are opened and decided again, with the same result; the results of a run of trim are
 * opened. The inputs are read again for the texts that are shown. */
#include "batch/batch_command.h"
#include "commands.h"
#include "common/clock.h"
#include "common/message.h"
#include "common/progress.h"
#include "report/report.h"
#include "report/trim.h"
#include "shared/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { USUAL_GROUPS = 20, MOST_GROUPS = 500 };

const cli_option report_options[] = {
    {"work", 0, OPTION_FILE, "DIR", "the folder of the run, made by doppel dedup, cluster or trim with --work"},
    {"output", 'o', OPTION_OUTPUT, "FILE", "write the page to this file; - is stdout"},
    {"groups", 0, OPTION_COUNT, "N",
     "show the N largest groups or, for a trim, the N most frequent repeats (default 20, at most 500)"},
    {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},
    {"title-key", 0, OPTION_TEXT, "KEY", "the field with its title (default title)"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

static double seconds_now(void) {
    return (double)now_microseconds() * 1e-6;
}

static int check(const cli_args *args) {
    if (!args_text(args, "work"))
        message("report needs the work folder of a run: --work DIR, as given to doppel dedup");
    else if (!args_text(args, "output"))
        message("report needs an output: -o report.html (- for stdout)");
    else if (args_number(args, "groups", USUAL_GROUPS) > MOST_GROUPS)
        message("--groups takes at most %d", MOST_GROUPS);
    else
        return EXIT_DONE;
    return EXIT_USAGE;
}

/* Whether an input still exists; a pattern is left to the reader. */
static bool is_there(const char *path) {
    struct stat found;
    if (strpbrk(path, "*?[") || !stat(path, &found))
        return true;
    message("%s: %s; a report reads the inputs of the run again: start it in the folder where the run was started",
            path, strerror(errno));
    return false;
}

/* The page must not overwrite a file of the work folder. */
static bool check_kept(const cli_args *args, const char *name) {
    char kept[4096];
    snprintf(kept, sizeof kept, "%s/%s", args_text(args, "work"), name);
    return check_output("output", args_text(args, "output"), kept);
}

/* The inputs of the run must exist; they, and its work folder, must not be overwritten. */
static int check_inputs(const report *r) {
    const char *output = args_text(r->args, "output");
    doppel_batch_reading reading;
    if (!check_kept(r->args, "sketches"))
        return EXIT_USAGE;
    for (size_t i = 0; doppel_batch_get_reading(r->batch, i, &reading); i++)
        for (size_t j = 0; j < reading.path_count; j++) {
            if (!check_output("output", output, reading.paths[j]))
                return EXIT_USAGE;
            if (!reading.known && !reading.counts.unopened && !is_there(reading.paths[j]))
                return EXIT_INPUT;
        }
    return EXIT_DONE;
}

/* The work folder remembers how its inputs were read; an option that says otherwise is a mistake. */
static bool check_keys(const cli_args *args, const doppel_input_options *run) {
    const struct {
        const char *option, *usual, *key;
    } keys[] = {{"id-key", "id", run->id_key},          {"url-key", "url", run->url_key},
                {"title-key", "title", run->title_key}, {"text-key", "text", run->text_key},
                {"html-key", "html", run->html_key},    {"format", "by names and contents", run->format}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *given = args_text(args, keys[i].option), *has = keys[i].key ? keys[i].key : keys[i].usual;
        if (given && strcmp(given, has) != 0) {
            message("the run read its inputs with --%s %s, and a report reads them the same way: leave --%s out",
                    keys[i].option, has, keys[i].option);
            return false;
        }
    }
    return true;
}

static int gather(report *r) {
    doppel_error error = {.message = "no memory"};
    double begun = seconds_now();
    doppel_status status = doppel_batch_open(args_text(r->args, "work"), &r->input, &r->batch, &error);
    r->seconds_open = seconds_now() - begun;
    if (status != DOPPEL_OK)
        return batch_end(status, &error);
    r->options = doppel_batch_get_options(r->batch);
    int code = check_keys(r->args, r->options->input) ? check_inputs(r) : EXIT_USAGE;
    if (code != EXIT_DONE)
        return code;
    progress_begin("reading");
    status = doppel_batch_decide(r->batch, &error);
    if (status == DOPPEL_OK) {
        doppel_batch_get_stats(r->batch, &r->stats);
        status = report_gather(r);
    }
    begun = seconds_now();
    if (status == DOPPEL_OK)
        status = report_read_texts(r, &error);
    r->seconds_texts = seconds_now() - begun;
    progress_end();
    return batch_end(status, &error);
}

/* ---- of a trim ---- */

/* Whether the work folder has a file of this name. */
static bool has_file(const cli_args *args, const char *name) {
    struct stat found;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", args_text(args, "work"), name);
    return !stat(path, &found);
}

/* What the run of a work folder was. Returns an exit code, with a message unless it is EXIT_DONE. */
static int recognise(const cli_args *args, bool *is_trim) {
    const char *work = args_text(args, "work");
    bool finished = has_file(args, "trim"), sketches = has_file(args, "sketches");
    *is_trim = finished || (!sketches && has_file(args, "trim-spans"));
    if (finished && sketches) {
        message(
            "%s: contains a run of trim and one of dedup or cluster: move the files trim and trim-spans to a folder of "
            "their own",
            work);
        return EXIT_USAGE;
    }
    if (*is_trim && !finished) {
        message("%s: the run was not finished: resume it first (--resume)", work);
        return EXIT_STORE;
    }
    return EXIT_DONE;
}

/* doppel_input_options.bad: notes the first file that can no longer be read. Bad records were reported by the run. */
static void note_unread(const doppel_error *what, void *user) {
    doppel_error *unread = user;
    if (!what->line && what->code != DOPPEL_OK && unread->code == DOPPEL_OK)
        *unread = *what;
}

static int open_trim(trim_report *r) {
    doppel_error error = {.message = "no memory"}, unread = {0};
    doppel_input_options input = reading_options(r->args);
    input.bad = note_unread;
    input.user = &unread;
    input.unseen = NULL;
    input.strict = input.refuse_bad = false;
    double begun = seconds_now();
    doppel_status status = doppel_trim_open(args_text(r->args, "work"), &input, &r->trim, &error);
    r->seconds_open = seconds_now() - begun;
    if (status == DOPPEL_ERROR_INPUT && unread.code != DOPPEL_OK) {
        message("%s: %s; a report reads the inputs of the run again: start it in the folder where the run was started",
                unread.file, unread.message);
        return EXIT_INPUT;
    }
    if (status == DOPPEL_OK)
        r->options = doppel_trim_get_options(r->trim);
    return batch_end(status, &error);
}

static int gather_trim(trim_report *r) {
    doppel_error error = {.message = "no memory"};
    int code = check_kept(r->args, "trim") && check_kept(r->args, "trim-spans") ? EXIT_DONE : EXIT_USAGE;
    progress_begin("reading");
    if (code == EXIT_DONE)
        code = open_trim(r);
    if (code == EXIT_DONE && !check_keys(r->args, r->options->input))
        code = EXIT_USAGE;
    if (code == EXIT_DONE) {
        double begun = seconds_now();
        doppel_status status = trim_report_read(r, &error);
        r->seconds_texts = seconds_now() - begun;
        code = r->refused ? EXIT_USAGE : batch_end(status, &error);
    }
    progress_end();
    return code;
}

/* ---- the page ---- */

/* Writes the page of one of them. */
static int write_page(const cli_args *args, report *r, trim_report *trim) {
    writer out = {0};
    html page = {.out = &out};
    int code = writer_open(&out, args_text(args, "output"), output_threads(args));
    if (code == EXIT_DONE) {
        if (trim)
            trim_report_write(trim, &page);
        else
            report_write(r, &page);
        code = batch_end(page.status, &(doppel_error){.code = page.status, .message = "no memory"});
    }
    return writer_close(&out, code);
}

static int report_batch(const cli_args *args) {
    report r = {.args = args, .input = reading_options(args), .wanted = args_number(args, "groups", USUAL_GROUPS)};
    int code = gather(&r);
    if (code == EXIT_DONE)
        code = write_page(args, &r, NULL);
    report_free(&r);
    return code;
}

static int report_trim(const cli_args *args) {
    trim_report r = {.args = args, .wanted = args_number(args, "groups", USUAL_GROUPS)};
    int code = gather_trim(&r);
    if (code == EXIT_DONE)
        code = write_page(args, NULL, &r);
    trim_report_free(&r);
    return code;
}

int cmd_report(const cli_args *args) {
    bool is_trim;
    int code = check(args);
    if (code == EXIT_DONE)
        code = recognise(args, &is_trim);
    if (code == EXIT_DONE)
        code = is_trim ? report_trim(args) : report_batch(args);
    return code;
}
