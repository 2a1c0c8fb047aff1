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

#include <string.h>

const cli_option dedup_options[] = {
    {"output", 'o', OPTION_TABLE, "OUT",
     "where the kept documents go; .gz and .zst are compressed; .parquet takes Parquet inputs; - is stdout"},
    OUTPUT_DIR_OPTION,
    {"removed", 0, OPTION_OUTPUT, "FILE", "write a line for each removed document: its id, its original's, and why"},
    {"against", 0, OPTION_FILES, "FILE",
     "also remove documents that this file or folder has; its documents are not written. It may be an index folder "
     "(see doppel "
     "add), a --work folder or a file of --save-sketches"},
    AGAINST_BATCH_OPTIONS,
    {"annotate", 0, OPTION_FLAG, NULL,
     "write all documents, with group, isDuplicate and originalId added to each, replacing fields of these names"},
    {"dry-run", 0, OPTION_FLAG, NULL, "decide, and say what would be removed, but write nothing"},
    KEEP_OPTIONS,
    WORK_OPTIONS,
    SAVE_OPTION,
    BATCH_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct dedup_job {
    batch_command b;
    writer out, removed;
    bool writes_removed;
    uint64_t replaced; /* records that already had a group, isDuplicate or originalId */
    void *tables;      /* the writer of tables; NULL: the output is no table */
    uint64_t written;  /* rows of tables */
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

/* The record up to the end of its members, without those that are replaced. */
static void put_members(dedup_job *job, doppel_slice record) {
    static const char *const added[] = {"group", "isDuplicate", "originalId"};
    bool had = false;
    text_buffer *line = &job->b.line;
    if (text_reserve(line, record.length))
        line->length +=
            doppel_record_strip(record, added, sizeof added / sizeof *added, line->data + line->length, &had);
    job->replaced += had;
}

/* The record with three more members before its last brace, replacing its own of those names. */
static doppel_status write_annotated(dedup_job *job, doppel_slice record, const doppel_near *near) {
    text_buffer *line = &job->b.line;
    bool kept = near->a == near->b;
    put_members(job, record);
    batch_put_id(&job->b, "group", near->a);
    text_member_bool(line, "isDuplicate", !kept);
    if (kept)
        text_member_string(line, "originalId", doppel_slice_of(NULL));
    else
        batch_put_id(&job->b, "originalId", near->a);
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
        if (near.a != near.b)
            status = write_removed(job, &near);
    }
    return status;
}

/* ---- the command ---- */

/* All documents, annotated; or those that stay. */
static doppel_status write_documents(dedup_job *job, doppel_error *error) {
    doppel_batch *batch = job->b.batch;
    if (args_flag(job->b.args, "annotate"))
        return doppel_batch_write(batch, take_document, job, error);
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
    int threads = output_threads(args);
    int code = annotates ? writer_open(&job->out, out, threads) : writer_open_pieces(&job->out, out, threads);
    if (removed && code == EXIT_DONE)
        code = writer_open(&job->removed, removed, threads);
    if (!annotates)
        doppel_batch_set_output(job->b.batch, job->out.file);
    if (code == EXIT_DONE)
        code = batch_decide(&job->b);
    if (code == EXIT_DONE)
        code = write_outputs(job);
    if (removed)
        code = writer_close(&job->removed, code);
    return writer_close(&job->out, code);
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
    message("%llu document%s: %llu kept, %llu removed (%.1f %%) in %llu group%s", (unsigned long long)documents,
            documents == 1 ? "" : "s", (unsigned long long)s.kept, (unsigned long long)removed,
            documents ? 100 * (double)removed / (double)documents : 0.0, (unsigned long long)s.groups,
            s.groups == 1 ? "" : "s");
    if (job->replaced)
        message("%llu record%s group, isDuplicate or originalId already; --annotate has replaced it",
                (unsigned long long)job->replaced, job->replaced == 1 ? " had" : "s had");
    if (s.in_index)
        message("of those removed, %llu %s in the index", (unsigned long long)s.in_index,
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

int cmd_dedup(const cli_args *args) {
    dedup_job job = {.replaced = 0};
    bool usable = false, dry = args_flag(args, "dry-run");
    if (!check_documents_output(args))
        return EXIT_USAGE;
    int code = batch_open(&job.b, args);
    if (code == EXIT_DONE && !dry && writes_tables(args))
        code = batch_open_tables(args, NULL, &job.tables);
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
    return code;
}
