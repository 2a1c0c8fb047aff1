/* cmd_dedup.c - doppel dedup: the documents without their copies, and a list of what was removed.
 *
 * The inputs are read twice: once to decide, once to write. The output and the list of removed documents are complete
 * or absent. Tables (Parquet) are written by the embedding program (common/embed.h), rows unchanged. */
#include "batch/batch_command.h"
#include "commands.h"
#include "common/embed.h"
#include "common/message.h"
#include "common/progress.h"
#include "shared/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cli_option dedup_options[] = {
    {"output", 'o', OPTION_TABLE, "OUT",
     "where the kept documents go: JSONL; .csv and .tsv take such inputs, whose rows stay as they are; .parquet takes "
     "Parquet; .gz and .zst are compressed; - is stdout"},
    OUTPUT_DIR_OPTION,
    {"removed", 0, OPTION_OUTPUT, "FILE", "write a line for each removed document: its id, its original's, and why"},
    {"against", 0, OPTION_FILES, "FILE",
     "also remove documents that this file or folder has; its documents are not written. It may be an index folder "
     "(see doppel "
     "add), a --work folder or a file of --save-sketches"},
    AGAINST_BATCH_OPTIONS,
    {"annotate", 0, OPTION_FLAG, NULL,
     "write all documents, with group, isDuplicate, originalId and groupSize added to each, replacing fields of these "
     "names"},
    {"count-by", 0, OPTION_TEXT, "FIELD",
     "with --annotate: add groupCounts to each document that is not a copy, how many of its group have each value of "
     "FIELD"},
    {"annotate-prefix", 0, OPTION_TEXT, "TEXT", "with --annotate: what stands ahead of the names of the added fields"},
    {"keep-copies", 0, OPTION_COUNT, "N", "keep up to N documents of each group, in the order of --keep (default 1)"},
    {"dry-run", 0, OPTION_FLAG, NULL, "decide, and say what would be removed, but write nothing"},
    KEEP_OPTIONS,
    WORK_OPTIONS,
    SAVE_OPTION,
    BATCH_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* What --annotate adds. */
enum { ADDED_GROUP, ADDED_COPY, ADDED_ORIGINAL, ADDED_SIZE, ADDED_COUNTS, ADDED };
static const char *const added_names[ADDED] = {"group", "isDuplicate", "originalId", "groupSize", "groupCounts"};

typedef struct dedup_job {
    batch_command b;
    writer out, removed;
    bool writes_removed;
    uint64_t replaced; /* records that already had a field that --annotate adds */
    char *names[ADDED];
    void *tables;     /* the writer of tables; NULL: the output is no table */
    uint64_t written; /* rows of tables */
    doppel_error error;
} dedup_job;

/* ---- lines out ---- */

static doppel_status write_removed(dedup_job *job, const doppel_near *near) {
    text_buffer *line = &job->b.line;
    text_put(line, "{");
    batch_put_id(&job->b, "id", near->b);
    batch_put_id(&job->b, "originalId", near->a);
    text_member_string(line, "reason", doppel_slice_of(doppel_reason_name(near->reason)));
    text_member_share(line, "similarity", near->similarity);
    text_member_distance(line, "distance", near->distance);
    text_put(line, near->verified ? "}\n" : ",\"verified\":false}\n");
    return batch_write_line(&job->b, &job->removed);
}

/* The names of what is added; false: no memory. */
static bool make_names(dedup_job *job) {
    const char *prefix = args_text(job->b.args, "annotate-prefix");
    for (size_t i = 0; i < ADDED; i++)
        if (asprintf(&job->names[i], "%s%s", prefix ? prefix : "", added_names[i]) < 0) {
            job->names[i] = NULL;
            message("no memory");
            return false;
        }
    return true;
}

/* The record up to the end of its members, without those that are replaced. */
static void put_members(dedup_job *job, doppel_slice record) {
    bool had = false;
    text_buffer *line = &job->b.line;
    size_t names = job->b.options.count_by ? ADDED : ADDED_COUNTS;
    if (text_reserve(line, record.length))
        line->length +=
            doppel_record_strip(record, (const char *const *)job->names, names, line->data + line->length, &had);
    job->replaced += had;
}

/* How many documents of the group have each value; copies have none, as their original has it. */
static void put_counts(dedup_job *job, const doppel_near *near) {
    text_buffer *line = &job->b.line;
    doppel_slice value;
    uint64_t count;
    if (near->a != near->b) {
        text_member_string(line, job->names[ADDED_COUNTS], doppel_slice_of(NULL));
        return;
    }
    text_member(line, job->names[ADDED_COUNTS]);
    text_put(line, "{");
    for (size_t i = 0; doppel_batch_group_value(job->b.batch, near->b, i, &value, &count); i++) {
        text_put(line, i ? "," : "");
        text_string(line, value);
        text_format(line, ":%llu", (unsigned long long)count);
    }
    text_put(line, "}");
}

/* The record with more members before its last brace, replacing its own of those names. */
static doppel_status write_annotated(dedup_job *job, doppel_slice record, const doppel_near *near) {
    text_buffer *line = &job->b.line;
    bool kept = near->a == near->b;
    put_members(job, record);
    batch_put_id(&job->b, job->names[ADDED_GROUP], near->a);
    text_member_bool(line, job->names[ADDED_COPY], !kept);
    if (kept)
        text_member_string(line, job->names[ADDED_ORIGINAL], doppel_slice_of(NULL));
    else
        batch_put_id(&job->b, job->names[ADDED_ORIGINAL], near->a);
    text_member_count(line, job->names[ADDED_SIZE], doppel_batch_group_size(job->b.batch, near->b));
    if (job->b.options.count_by)
        put_counts(job, near);
    text_put(line, "}\n");
    return batch_write_line(&job->b, &job->out);
}

/* doppel_batch_write */
static doppel_status take_document(doppel_slice record, const doppel_near *near, void *user) {
    return write_annotated(user, record, near);
}

static doppel_status write_all_removed(dedup_job *job) {
    doppel_batch_stats s;
    doppel_status status = DOPPEL_OK;
    doppel_batch_get_stats(job->b.batch, &s);
    for (uint64_t i = s.known; i < s.documents && status == DOPPEL_OK; i++) {
        doppel_near near;
        doppel_batch_get(job->b.batch, i, &near);
        if (!doppel_batch_stays(job->b.batch, i))
            status = write_removed(job, &near);
    }
    return status;
}

/* ---- the command ---- */

/* All documents, annotated; or those that stay. */
static doppel_status write_documents(dedup_job *job, doppel_error *error) {
    doppel_batch *batch = job->b.batch;
    if (args_text(job->b.args, "output-dir"))
        return doppel_batch_write_files(batch, error);
    if (args_flag(job->b.args, "annotate")) {
        doppel_status counted = doppel_batch_count_groups(batch, error);
        return counted == DOPPEL_OK ? doppel_batch_write(batch, take_document, job, error) : counted;
    }
    return writer_result(doppel_batch_write_kept(batch, job->out.file, error));
}

static int write_outputs(dedup_job *job) {
    doppel_error error = {0};
    progress_begin("writing");
    doppel_status status = job->writes_removed ? write_all_removed(job) : DOPPEL_OK;
    if (status == DOPPEL_OK)
        status = write_documents(job, &error);
    progress_end();
    int code = batch_end(status, &error);
    batch_tell_resume(job->b.args, code);
    return code;
}

/* Opens the outputs, so that a disk gets ready for them, decides, and writes. */
static int decide_and_write(dedup_job *job) {
    const cli_args *args = job->b.args;
    const char *out = args_text(args, "output"), *removed = args_text(args, "removed");
    bool annotates = args_flag(args, "annotate");
    job->writes_removed = removed;
    int threads = output_threads(args), code = EXIT_DONE;
    if (out)
        code = annotates ? writer_open(&job->out, out, threads) : writer_open_pieces(&job->out, out, threads);
    if (removed && code == EXIT_DONE)
        code = writer_open(&job->removed, removed, threads);
    if (!annotates && out)
        doppel_batch_set_output(job->b.batch, job->out.file);
    if (code == EXIT_DONE)
        code = batch_decide(&job->b);
    if (code == EXIT_DONE)
        code = write_outputs(job);
    if (removed)
        code = writer_close(&job->removed, code);
    return out ? writer_close(&job->out, code) : code;
}

/* ---- as tables ---- */

/* doppel_batch_each_table */
static doppel_status write_table(const doppel_batch_rows *rows, void *user) {
    dedup_job *job = user;
    const embedded_tables *tables = get_tables();
    doppel_status status = tables->write(job->tables, job->b.batch, rows, tables->user, &job->error);
    job->written += rows->count;
    progress_part(job->written, doppel_batch_count(job->b.batch), NULL);
    return status;
}

static doppel_status write_tables(dedup_job *job, doppel_error *error) {
    doppel_status status = doppel_batch_each_table(job->b.batch, write_table, job, error);
    if (status != DOPPEL_OK && job->error.code != DOPPEL_OK)
        *error = job->error;
    return status;
}

/* Decides, and writes what stays through the writer of tables. */
static int decide_and_write_tables(dedup_job *job) {
    const cli_args *args = job->b.args;
    const char *removed = args_text(args, "removed");
    doppel_error error = {0};
    int code = removed ? writer_open(&job->removed, removed, output_threads(args)) : EXIT_DONE;
    if (code == EXIT_DONE)
        code = batch_decide(&job->b);
    if (code == EXIT_DONE && removed)
        code = batch_end(write_all_removed(job), &error);
    progress_begin("writing");
    if (code == EXIT_DONE)
        code = batch_end(write_tables(job, &error), &error);
    progress_end();
    code = batch_close_tables(&job->tables, code);
    batch_tell_resume(job->b.args, code);
    return removed ? writer_close(&job->removed, code) : code;
}

static void tell(dedup_job *job) {
    doppel_batch_stats s;
    doppel_batch_get_stats(job->b.batch, &s);
    uint64_t documents = s.documents - s.known, removed = documents - s.kept;
    message_summary("%llu document%s: %llu kept, %llu removed (%.1f %%) in %llu group%s", (unsigned long long)documents,
                    documents == 1 ? "" : "s", (unsigned long long)s.kept, (unsigned long long)removed,
                    documents ? 100 * (double)removed / (double)documents : 0.0, (unsigned long long)s.groups,
                    s.groups == 1 ? "" : "s");
    if (job->replaced)
        message("%llu record%s %s, %s, %s or %s already; --annotate has replaced it", (unsigned long long)job->replaced,
                job->replaced == 1 ? " had" : "s had", job->names[ADDED_GROUP], job->names[ADDED_COPY],
                job->names[ADDED_ORIGINAL], job->names[ADDED_SIZE]);
    if (s.in_index)
        message_summary("of those removed, %llu %s in the index", (unsigned long long)s.in_index,
                        s.in_index == 1 ? "is" : "are");
}

static int print_summary(dedup_job *job, int code) {
    text_buffer out = {0};
    doppel_batch_stats s;
    doppel_batch_get_stats(job->b.batch, &s);
    batch_summary(&job->b, &out);
    text_member_count(&out, "kept", s.kept);
    text_member_count(&out, "removed", s.documents - s.known - s.kept);
    text_member_count(&out, "groups", s.groups);
    text_member_count(&out, "inIndex", s.in_index);
    text_put(&out, "}\n");
    return finish_text(&out, code);
}

/* Options that say something of --annotate need it. */
static bool check_annotate(const cli_args *args) {
    const char *prefix = args_text(args, "annotate-prefix");
    const char *alone = args_text(args, "count-by") ? "count-by" : prefix ? "annotate-prefix" : NULL;
    for (const char *p = prefix; p && *p; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ') {
            message("--annotate-prefix is part of names: it cannot have quotes, backslashes or control characters");
            return false;
        }
    if (alone && !args_flag(args, "annotate"))
        message("--%s needs --annotate", alone);
    else if (alone && writes_tables(args))
        message("--%s is for JSONL, and not for Parquet: give --output a name that ends in .jsonl", alone);
    else
        return true;
    return false;
}

/* Opens what has to know the inputs before they are read: tables, rows, or a file for each of them. */
static int plan_outputs(dedup_job *job) {
    const cli_args *args = job->b.args;
    const char *folder = args_text(args, "output-dir");
    doppel_error error = {0};
    doppel_status status = DOPPEL_OK;
    if (writes_tables(args))
        return batch_open_tables(args, NULL, &job->tables);
    for (size_t i = 0; folder && i < args->operand_count; i++)
        if (!check_output("output-dir", folder, args->operands[i]))
            return EXIT_USAGE;
    if (folder)
        status = doppel_batch_plan_files(job->b.batch, args->operands, args->operand_count, folder, &error);
    else if (writes_rows(args))
        status = doppel_batch_plan_rows(job->b.batch, args->operands, args->operand_count, &error);
    return batch_end(status, &error);
}

int cmd_dedup(const cli_args *args) {
    dedup_job job = {.replaced = 0};
    bool usable = false, dry = args_flag(args, "dry-run");
    if (!check_documents_output(args, true) || !check_annotate(args))
        return EXIT_USAGE;
    int code = batch_open(&job.b, args);
    if (code == EXIT_DONE && !make_names(&job))
        code = EXIT_STORE;
    if (code == EXIT_DONE && !dry)
        code = plan_outputs(&job);
    if (code == EXIT_DONE) {
        batch_tell_plan(&job.b);
        code = batch_read_all(&job.b, &usable);
    }
    if (usable) {
        int done = dry                   ? batch_decide(&job.b)
                   : writes_tables(args) ? decide_and_write_tables(&job)
                                         : decide_and_write(&job);
        code = done ? done : code;
        if (!done && !output_closed())
            tell(&job);
        if (!done && args_flag(args, "json"))
            code = print_summary(&job, code);
    }
    batch_close_tables(&job.tables, EXIT_INPUT);
    batch_close(&job.b);
    for (size_t i = 0; i < ADDED; i++)
        free(job.names[i]);
    return code;
}
