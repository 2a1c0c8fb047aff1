/* cmd_export.c - doppel export: an index as JSONL, with everything doppel import needs to recreate it. */
#include "commands.h"
#include "common/message.h"
#include "common/stored_json.h"
#include "engine/engine_command.h"
#include "engine/export_format.h"
#include "engine/index_settings.h"
#include "shared/outputs.h"

#include <endian.h>

const cli_option export_options[] = {
    INDEX_OPTION,
    OUTPUT_OPTION,
    SUMMARY_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct export_job {
    engine_command cli;
    writer out;
    text_buffer line; /* the current line */
    int bits;
    uint64_t documents, copies, damaged;
    doppel_status status;
} export_job;

/* ---- lines ---- */

/* Writes the current line and begins the next. */
static doppel_status end_line(export_job *job) {
    text_put(&job->line, "}\n");
    doppel_status status =
        job->line.failed ? DOPPEL_ERROR_MEMORY : writer_add(&job->out, job->line.data, job->line.length);
    job->line.length = 0;
    return status;
}

static doppel_status write_head(export_job *job) {
    text_format(&job->line, "{\"doppel\":\"%s\",\"version\":%s,", EXPORT_KIND, EXPORT_VERSION);
    text_settings(&job->line, doppel_engine_get_options(job->cli.engine), "");
    text_member_string(&job->line, "text", doppel_slice_of(""));
    return end_line(job);
}

/* 16 digits each, the most significant first. */
static void put_set(text_buffer *line, const doppel_stored *stored) {
    text_member(line, "set");
    text_put(line, "\"");
    for (size_t i = 0; i < stored->set_count; i++) {
        uint64_t big_endian = htobe64(stored->set[i]);
        text_hex(line, (const uint8_t *)&big_endian, sizeof big_endian);
    }
    text_put(line, "\"");
}

static void put_sketches(text_buffer *line, const doppel_stored *stored, int bits) {
    text_member_fingerprint(line, "fingerprint", stored->fingerprint, bits);
    text_member_digest(line, "digest", stored->digest);
    text_member_count(line, "words", stored->words);
    if (stored->set)
        put_set(line, stored);
    if (stored->sample.data) {
        text_member(line, "sample");
        text_put(line, "\"");
        text_hex(line, (const uint8_t *)stored->sample.data, stored->sample.length);
        text_put(line, "\"");
    }
}

static void put_counts(text_buffer *line, const char *name, const uint64_t by[DOPPEL_REASONS]) {
    text_format(line, ",\"%s\":[%llu,%llu,%llu]", name, (unsigned long long)by[DOPPEL_REASON_URL],
                (unsigned long long)by[DOPPEL_REASON_CONTENT], (unsigned long long)by[DOPPEL_REASON_TITLE]);
}

static void put_duplicates(text_buffer *line, const doppel_stored *stored) {
    if (!stored->duplicates)
        return;
    put_counts(line, "duplicatesBy", stored->duplicates_by);
    put_counts(line, "copiesBy", stored->copies_by);
    text_member_count(line, "lastDuplicate", stored->last_duplicate);
}

/* A member that is left out where there is no value. */
static void put_optional(text_buffer *line, const char *name, doppel_slice value) {
    if (value.data)
        text_member_string(line, name, value);
}

static doppel_status write_document(export_job *job, const doppel_stored *stored) {
    text_buffer *line = &job->line;
    text_put(line, "{");
    text_member_string(line, "id", stored->id);
    put_optional(line, "url", stored->url);
    put_optional(line, "canonicalUrl", stored->canonical);
    put_optional(line, "title", stored->title);
    text_member_string(line, "text", stored->text.data ? stored->text : doppel_slice_of(""));
    if (stored->fields.data) {
        text_member(line, "fields");
        text_add(line, stored->fields.data, stored->fields.length);
    }
    put_sketches(line, stored, job->bits);
    text_member_count(line, "added", stored->added);
    text_member_count(line, "expires", stored->expires);
    put_duplicates(line, stored);
    put_optional(line, "originalId", stored->original_id);
    if (stored->original_id.data)
        text_evidence(line, stored, true);
    put_optional(line, "origin", stored->origin);
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

/* Documents that could not be read (`lost`), or only in part. */
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

static int print_summary(const export_job *job, int code) {
    if (code != EXIT_DONE || !args_flag(job->cli.args, "json"))
        return code;
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "index", doppel_slice_of(job->cli.path));
    text_member_count(&out, "documents", job->documents);
    text_member_count(&out, "copies", job->copies);
    text_member_count(&out, "damaged", job->damaged);
    text_put(&out, "}\n");
    return finish_text(&out, code);
}

static int check_usage(const cli_args *args) {
    const char *output = args_text(args, "output");
    return check_json(args) && check_output("output", output, args_text(args, "index")) ? EXIT_DONE : EXIT_USAGE;
}

int cmd_export(const cli_args *args) {
    export_job job = {.status = DOPPEL_OK};
    int code = check_usage(args);
    if (code != EXIT_DONE)
        return code;
    code = engine_open(&job.cli, args, ENGINE_READ);
    if (code == EXIT_DONE)
        code = writer_open(&job.out, args_text(args, "output"), output_threads(args));
    if (code == EXIT_DONE) {
        job.bits = doppel_recipe_bits(doppel_engine_get_options(job.cli.engine)->recipe);
        code = export_all(&job);
    }
    code = print_summary(&job, writer_close(&job.out, code));
    if (job.damaged) {
        message("%s: %llu damaged record%s: left out, or written without the parts that cannot be read", job.cli.path,
                (unsigned long long)job.damaged, job.damaged == 1 ? "" : "s");
        job.cli.damage_reported = true;
    }
    text_free(&job.line);
    code = code == EXIT_DONE && job.damaged ? EXIT_STORE : code;
    return engine_close(&job.cli, code);
}
