/* cmd_export.c - doppel export: an index as JSONL, with all that doppel import needs to make it again. */
#include "commands.h"
#include "common/message.h"
#include "engine/engine_command.h"
#include "engine/export_format.h"
#include "engine/index_settings.h"
#include "engine/stored_json.h"
#include "shared/outputs.h"

#include <stdlib.h>
#include <string.h>

const cli_option export_options[] = {
    INDEX_OPTION,
    {"output", 'o', OPTION_OUTPUT, "FILE", "write to this file, which is whole or absent, in place of stdout"},
    {"json", 0, OPTION_FLAG, NULL, "with --output: print a summary as one JSON object"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct export_job {
    engine_command cli;
    writer out;
    FILE *line; /* the line at hand, in memory: */
    char *bytes;
    size_t length;
    int bits;
    uint64_t documents, copies, damaged;
    doppel_status status;
} export_job;

/* ---- lines ---- */

/* Writes the line at hand and begins the next. */
static doppel_status end_line(export_job *job) {
    fputc('\n', job->line);
    if (fflush(job->line) || ferror(job->line))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = writer_add(&job->out, job->bytes, job->length);
    rewind(job->line);
    return status;
}

static doppel_status write_head(export_job *job) {
    fprintf(job->line, "{\"doppel\":\"%s\",\"version\":%s,", EXPORT_KIND, EXPORT_VERSION);
    print_settings(job->line, doppel_engine_get_options(job->cli.engine), "");
    fprintf(job->line, ",\"text\":\"\"}");
    return end_line(job);
}

/* 16 digits each, the most significant first. */
static void print_set(FILE *file, const doppel_stored *stored) {
    static const char digits[] = "0123456789abcdef";
    fputs(",\"set\":\"", file);
    for (size_t i = 0; i < stored->set_count; i++) {
        char text[16];
        for (int k = 0; k < 16; k++)
            text[k] = digits[stored->set[i] >> (60 - 4 * k) & 15];
        fwrite(text, 1, sizeof text, file);
    }
    fputc('"', file);
}

static void print_sketches(const export_job *job, const doppel_stored *stored) {
    print_fingerprint(job->line, ",\"fingerprint\":", stored->fingerprint, job->bits);
    print_digest(job->line, ",\"digest\":", stored->digest);
    fprintf(job->line, ",\"words\":%llu", (unsigned long long)stored->words);
    if (stored->set)
        print_set(job->line, stored);
    if (stored->sample.data) {
        fputs(",\"sample\":\"", job->line);
        for (size_t i = 0; i < stored->sample.length; i++)
            fprintf(job->line, "%02x", (uint8_t)stored->sample.data[i]);
        fputc('"', job->line);
    }
}

static doppel_status write_document(export_job *job, const doppel_stored *stored) {
    print_slice(job->line, "{\"id\":", stored->id);
    if (stored->url.data)
        print_slice(job->line, ",\"url\":", stored->url);
    if (stored->canonical.data)
        print_slice(job->line, ",\"canonicalUrl\":", stored->canonical);
    if (stored->title.data)
        print_slice(job->line, ",\"title\":", stored->title);
    print_slice(job->line, ",\"text\":", stored->text.data ? stored->text : (doppel_slice){"", 0});
    if (stored->fields.data) {
        fputs(",\"fields\":", job->line);
        fwrite(stored->fields.data, 1, stored->fields.length, job->line);
    }
    print_sketches(job, stored);
    fprintf(job->line, ",\"added\":%llu,\"expires\":%llu", (unsigned long long)stored->added,
            (unsigned long long)stored->expires);
    if (stored->duplicates)
        fprintf(job->line, ",\"duplicatesBy\":[%llu,%llu,%llu],\"lastDuplicate\":%llu",
                (unsigned long long)stored->duplicates_by[0], (unsigned long long)stored->duplicates_by[1],
                (unsigned long long)stored->duplicates_by[2], (unsigned long long)stored->last_duplicate);
    if (stored->original_id.data) {
        print_slice(job->line, ",\"originalId\":", stored->original_id);
        print_evidence(job->line, stored);
        if (stored->original_gone)
            fputs(",\"originalGone\":true", job->line);
    }
    if (stored->origin.data)
        print_slice(job->line, ",\"origin\":", stored->origin);
    fputc('}', job->line);
    return end_line(job);
}

/* For doppel_engine_each. */
static bool export_one(const doppel_stored *stored, void *user) {
    export_job *job = user;
    if (stop_asked)
        job->status = DOPPEL_ERROR_INTERRUPTED;
    else
        job->status = write_document(job, stored);
    job->documents += !stored->original_id.data;
    job->copies += stored->original_id.data != NULL;
    return job->status == DOPPEL_OK;
}

/* ---- the run ---- */

/* Documents of which nothing could be read (`lost`), or not all. */
static uint64_t count_damaged(const export_job *job, uint64_t lost) {
    doppel_engine_stats stats;
    doppel_engine_get_stats(job->cli.engine, &stats);
    return lost > stats.damaged ? lost : stats.damaged;
}

static int export_all(export_job *job) {
    doppel_error error = {0};
    uint64_t damaged = 0;
    doppel_status status = write_head(job);
    if (status == DOPPEL_OK)
        status = doppel_engine_each(job->cli.engine, export_one, job, &damaged, &error);
    status = job->status != DOPPEL_OK ? job->status : status;
    job->damaged = count_damaged(job, damaged);
    if (status == DOPPEL_ERROR_MEMORY && !error.message[0])
        snprintf(error.message, sizeof error.message, "no memory");
    if (output_closed())
        return EXIT_DONE;
    return engine_ended(status, &error);
}

static int tell_summary(const export_job *job, int code) {
    if (code != EXIT_DONE || !args_flag(job->cli.args, "json"))
        return code;
    printf("{\"index\":");
    print_json(stdout, job->cli.path, strlen(job->cli.path));
    printf(",\"documents\":%llu,\"copies\":%llu,\"damaged\":%llu}\n", (unsigned long long)job->documents,
           (unsigned long long)job->copies, (unsigned long long)job->damaged);
    return finish_stdout(code);
}

static int check_usage(const cli_args *args) {
    const char *output = args_text(args, "output");
    if (args_flag(args, "json") && is_stdout(output)) {
        message("--json prints a summary, and goes with --output FILE");
        return EXIT_USAGE;
    }
    if (!check_output("output", output, args_text(args, "index")) || (output && !check_jsonl_name(output)))
        return EXIT_USAGE;
    return EXIT_DONE;
}

int cmd_export(const cli_args *args) {
    export_job job = {.status = DOPPEL_OK};
    int code = check_usage(args);
    if (code != EXIT_DONE)
        return code;
    code = engine_open(&job.cli, args, ENGINE_READ);
    if (code == EXIT_DONE && !(job.line = open_memstream(&job.bytes, &job.length))) {
        message("no memory");
        code = EXIT_STORE;
    }
    if (code == EXIT_DONE)
        code = writer_open(&job.out, args_text(args, "output"));
    if (code == EXIT_DONE) {
        job.bits = doppel_recipe_bits(doppel_engine_get_options(job.cli.engine)->recipe);
        code = export_all(&job);
    }
    code = tell_summary(&job, writer_close(&job.out, code));
    if (job.damaged) {
        message("%s: %llu damaged record%s: left out, or written without what cannot be read", job.cli.path,
                (unsigned long long)job.damaged, job.damaged == 1 ? "" : "s");
        job.cli.damage_told = true;
    }
    if (job.line)
        fclose(job.line);
    free(job.bytes);
    code = code == EXIT_DONE && job.damaged ? EXIT_STORE : code;
    return engine_close(&job.cli, code);
}
