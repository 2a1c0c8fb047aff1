/* cmd_report.c - doppel report: one page about a finished run.
 *
 * The sketches of the run are opened and decided again, with the same result; the inputs are read again for the texts
 * that are shown. */
#include "batch/batch_command.h"
#include "commands.h"
#include "common/clock.h"
#include "common/message.h"
#include "common/progress.h"
#include "report/report.h"
#include "shared/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { USUAL_GROUPS = 20, MOST_GROUPS = 500 };

const cli_option report_options[] = {
    {"work", 0, OPTION_FILE, "DIR", "the folder of the run, made by doppel dedup --work or doppel cluster --work"},
    {"output", 'o', OPTION_OUTPUT, "FILE", "where the page goes; - is stdout"},
    {"groups", 0, OPTION_COUNT, "N", "show the N largest groups (default 20, at most 500)"},
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

/* The inputs of the run must exist; they, and its work folder, must not be overwritten. */
static int check_inputs(const report *r) {
    const char *output = args_text(r->args, "output");
    doppel_batch_reading reading;
    char kept[4096];
    snprintf(kept, sizeof kept, "%s/sketches", args_text(r->args, "work"));
    if (!check_output("output", output, kept))
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
static bool check_keys(const report *r) {
    const doppel_input_options *run = r->options->input;
    const struct {
        const char *option, *usual, *key;
    } keys[] = {{"id-key", "id", run->id_key},
                {"url-key", "url", run->url_key},
                {"title-key", "title", run->title_key},
                {"text-key", "text", run->text_key},
                {"html-key", "html", run->html_key}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *given = args_text(r->args, keys[i].option), *has = keys[i].key ? keys[i].key : keys[i].usual;
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
    int code = check_keys(r) ? check_inputs(r) : EXIT_USAGE;
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

static int write_page(report *r) {
    writer out = {0};
    html page = {.out = &out};
    int code = writer_open(&out, args_text(r->args, "output"), output_threads(r->args));
    if (code == EXIT_DONE) {
        report_write(r, &page);
        code = batch_end(page.status, &(doppel_error){.code = page.status, .message = "no memory"});
    }
    return writer_close(&out, code);
}

int cmd_report(const cli_args *args) {
    report r = {.args = args, .input = reading_options(args), .wanted = args_number(args, "groups", USUAL_GROUPS)};
    int code = check(args);
    if (code == EXIT_DONE)
        code = gather(&r);
    if (code == EXIT_DONE)
        code = write_page(&r);
    report_free(&r);
    return code;
}
