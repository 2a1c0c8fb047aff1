/* cmd_dedup.c - doppel dedup: the documents without their copies, those that were removed, and a list of them.
 *
 * The inputs are read twice: once to decide, once to write. Each output is complete or absent. Tables (Parquet) are
 * written by the embedding program (common/embed.h), rows unchanged. */
#include "batch/batch_command.h"
#include "commands.h"
#include "common/embed.h"
#include "common/message.h"
#include "common/progress.h"
#include "shared/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const cli_option dedup_options[] = {
    {"output", 'o', OPTION_TABLE, "OUT",
     "write the kept documents to this file, as JSONL (even if its name ends in .json); .csv and .tsv: unchanged rows "
     "of CSV and TSV inputs; .parquet: rows of Parquet inputs; .gz and .zst are compressed; - is stdout"},
    {"output-dir", 0, OPTION_FILE, "DIR",
     "instead of --output: write one file for each input, with the same name, below this folder; a name that ends in "
     ".bz2 or .xz gets .zst instead; formats other than JSONL, CSV, TSV and lines become JSONL, in NAME.jsonl (a JSON "
     "array too: x.json.jsonl)"},
    {"removed", 0, OPTION_LINES, "FILE",
     "write a line for each removed document: its id, the id of its original, and the reason; makes --output optional"},
    {"removed-documents", 0, OPTION_OUTPUT, "FILE",
     "write the removed documents themselves, in the format of the kept ones; makes --output optional"},
    {"against", 0, OPTION_FILES, "FILE",
     "also remove copies of documents of this file or folder, which are not written themselves. It may be an index "
     "folder (see doppel add), a --work folder or a file of --save-sketches. Whole documents are compared; for test "
     "questions inside documents, use doppel trim --unit passage --against FILE --drop"},
    AGAINST_BATCH_OPTIONS,
    {"annotate", 0, OPTION_FLAG, NULL,
     "write all documents, with group, isDuplicate, originalId, kept and groupSize added to each, replacing fields of "
     "these names; kept is false for those that would be removed. CSV and TSV rows get columns if OUT has such a name"},
    {"annotate-kept", 0, OPTION_FLAG, NULL,
     "with --annotate: leave out the documents that would be removed; what is kept has the size of its group, for "
     "upsampling"},
    {"count-by", 0, OPTION_TEXT, "FIELD",
     "with --annotate: add groupCounts to each document that is not a copy: how many documents of its group have each "
     "value of FIELD"},
    {"annotate-prefix", 0, OPTION_TEXT, "TEXT", "with --annotate: a prefix for the names of the added fields"},
    {"keep-copies", 0, OPTION_COUNT, "N", "keep up to N documents of each group, in the order of --keep (default 1)"},
    {"dry-run", 0, OPTION_FLAG, NULL,
     "report how much would be removed, but write no documents; --removed is still written"},
    KEEP_OPTIONS,
    WORK_OPTIONS,
    SAVE_OPTION,
    BATCH_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* What --annotate adds. */
enum { ADDED_GROUP, ADDED_COPY, ADDED_ORIGINAL, ADDED_KEPT, ADDED_SIZE, ADDED_COUNTS, ADDED };
static const char *const added_names[ADDED] = {"group", "isDuplicate", "originalId",
                                               "kept",  "groupSize",   "groupCounts"};

typedef struct dedup_job {
    batch_command b;
    const char *output, *folder; /* of the kept documents; at most one is given */
    const char *list, *removed;  /* files: a line for each removed document; the removed documents themselves */
    writer out, listed, removed_out;
    char delimiter;    /* of annotated rows; 0: before their header */
    uint64_t replaced; /* records that already had a field that --annotate adds */
    bool kept_only;    /* --annotate-kept */
    char *names[ADDED];
    void *tables;     /* the writer of tables; NULL: the output is not a table */
    uint64_t written; /* rows of tables */
    doppel_error error;
} dedup_job;

/* ---- lines out ---- */

static doppel_status list_document(dedup_job *job, const doppel_near *near) {
    text_buffer *line = &job->b.line;
    text_put(line, "{");
    batch_put_id(&job->b, "id", near->b);
    batch_put_id(&job->b, "originalId", near->a);
    text_member_string(line, "reason", doppel_slice_of(doppel_reason_name(near->reason)));
    text_member_share(line, "similarity", near->similarity);
    text_member_distance(line, "distance", near->distance);
    text_put(line, near->verified ? "}\n" : ",\"verified\":false}\n");
    return batch_write_line(&job->b, &job->listed);
}

/* Makes the names of the added fields; false: no memory. */
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

static size_t added_count(const dedup_job *job) {
    return job->b.options.count_by ? ADDED : ADDED_COUNTS;
}

/* The record up to the end of its members, without those that are replaced. */
static void put_members(dedup_job *job, doppel_slice record) {
    bool had = false;
    text_buffer *line = &job->b.line;
    size_t names = added_count(job);
    if (text_reserve(line, record.length))
        line->length +=
            doppel_record_strip(record, (const char *const *)job->names, names, line->data + line->length, &had);
    job->replaced += had;
}

/* How many documents of the group of one have each value, as a JSON object. */
static void text_group_counts(const dedup_job *job, uint64_t document, text_buffer *to) {
    doppel_slice value;
    uint64_t count;
    text_put(to, "{");
    for (size_t i = 0; doppel_batch_group_value(job->b.batch, document, i, &value, &count); i++) {
        text_put(to, i ? "," : "");
        text_string(to, value);
        text_format(to, ":%llu", (unsigned long long)count);
    }
    text_put(to, "}");
}

/* The counts of a group; copies have none, as their original has them. */
static void put_counts(dedup_job *job, const doppel_near *near) {
    text_buffer *line = &job->b.line;
    text_member(line, job->names[ADDED_COUNTS]);
    if (near->a != near->b)
        text_put(line, "null");
    else
        text_group_counts(job, near->b, line);
}

/* The record with more members before its last brace, replacing its own of those names. */
static doppel_status write_annotated(dedup_job *job, doppel_slice record, const doppel_near *near) {
    text_buffer *line = &job->b.line;
    bool copy = near->a != near->b;
    put_members(job, record);
    batch_put_id(&job->b, job->names[ADDED_GROUP], near->a);
    text_member_bool(line, job->names[ADDED_COPY], copy);
    if (!copy)
        text_member_string(line, job->names[ADDED_ORIGINAL], doppel_slice_of(NULL));
    else
        batch_put_id(&job->b, job->names[ADDED_ORIGINAL], near->a);
    text_member_bool(line, job->names[ADDED_KEPT], doppel_batch_stays(job->b.batch, near->b));
    text_member_count(line, job->names[ADDED_SIZE], doppel_batch_group_size(job->b.batch, near->b));
    if (job->b.options.count_by)
        put_counts(job, near);
    text_put(line, "}\n");
    return batch_write_line(&job->b, &job->out);
}

/* Whether a document is written with --annotate. */
static bool is_written(const dedup_job *job, const doppel_near *near) {
    return !job->kept_only || doppel_batch_stays(job->b.batch, near->b);
}

/* doppel_batch_write */
static doppel_status take_document(doppel_slice record, const doppel_near *near, void *user) {
    return is_written(user, near) ? write_annotated(user, record, near) : DOPPEL_OK;
}

/* ---- rows with cells added ---- */

/* The delimiter of rows, as reading has it: a tab in TSV, else that of the header. */
static char delimiter_of(const dedup_job *job, doppel_slice header) {
    const char *format = doppel_batch_row_format(job->b.batch);
    return format && !strcasecmp(format, "TSV") ? '\t' : doppel_csv_delimiter(header);
}

/* Whether a cell of the header is this name; added names have no quotes. */
static bool is_cell(const char *cell, size_t length, const char *name) {
    static const char around[] = " \t\r\"";
    for (; length && strchr(around, *cell); cell++)
        length--;
    while (length && strchr(around, cell[length - 1]))
        length--;
    return length == strlen(name) && !memcmp(cell, name, length);
}

/* Prints a message and returns false when the header already has a column that is to be added. */
static bool check_header(const dedup_job *job, doppel_slice header) {
    char delimiter = delimiter_of(job, header);
    bool quoted = false;
    if (header.length > 3 && !memcmp(header.data, "\xEF\xBB\xBF", 3))
        header = (doppel_slice){header.data + 3, header.length - 3};
    for (size_t i = 0, start = 0; i <= header.length; i++) {
        bool ends = i == header.length || (header.data[i] == delimiter && !quoted);
        quoted = i < header.length && quoted != (header.data[i] == '"');
        for (size_t name = 0; ends && name < added_count(job); name++)
            if (is_cell(header.data + start, i - start, job->names[name])) {
                message("the input already has a column %s, which --annotate would add; --annotate-prefix TEXT changes "
                        "the names of the added columns",
                        job->names[name]);
                return false;
            }
        start = ends ? i + 1 : start;
    }
    return true;
}

/* Adds a cell after a delimiter, in quotes if it needs them. */
static void put_cell(dedup_job *job, doppel_slice cell) {
    text_buffer *line = &job->b.line;
    bool quoted = false;
    for (size_t i = 0; i < cell.length && !quoted; i++)
        quoted = cell.data[i] == job->delimiter || strchr("\"\r\n", cell.data[i]);
    text_add(line, &job->delimiter, 1);
    text_put(line, quoted ? "\"" : "");
    for (size_t i = 0; i < cell.length; i++) {
        if (cell.data[i] == '"')
            text_put(line, "\"");
        text_add(line, cell.data + i, 1);
    }
    text_put(line, quoted ? "\"" : "");
}

static void put_cells(dedup_job *job, const doppel_near *near) {
    bool copy = near->a != near->b;
    char size[32];
    doppel_slice none = {"", 0};
    snprintf(size, sizeof size, "%llu", (unsigned long long)doppel_batch_group_size(job->b.batch, near->b));
    put_cell(job, batch_get_id(&job->b, near->a));
    put_cell(job, doppel_slice_of(copy ? "true" : "false"));
    put_cell(job, copy ? batch_get_id(&job->b, near->a) : none);
    put_cell(job, doppel_slice_of(doppel_batch_stays(job->b.batch, near->b) ? "true" : "false"));
    put_cell(job, doppel_slice_of(size));
    if (job->b.options.count_by) {
        text_buffer counts = {0};
        if (!copy)
            text_group_counts(job, near->b, &counts);
        put_cell(job, copy ? none : (doppel_slice){counts.data, counts.length});
        job->b.line.failed = job->b.line.failed || counts.failed;
        text_free(&counts);
    }
}

/* doppel_batch_write_rows: the header, or a row. The \r of a line end stays at the end. */
static doppel_status take_row(doppel_slice row, const doppel_near *near, void *user) {
    dedup_job *job = user;
    bool ends = row.length && row.data[row.length - 1] == '\r';
    if (!near) {
        job->delimiter = delimiter_of(job, row);
        failure_reported = !check_header(job, row);
        if (failure_reported)
            return DOPPEL_ERROR_USAGE;
    } else if (!is_written(job, near)) {
        return DOPPEL_OK;
    }
    text_add(&job->b.line, row.data, row.length - ends);
    if (near)
        put_cells(job, near);
    for (size_t i = 0; !near && i < added_count(job); i++)
        put_cell(job, doppel_slice_of(job->names[i]));
    text_put(&job->b.line, ends ? "\r\n" : "\n");
    return batch_write_line(&job->b, &job->out);
}

static doppel_status list_removed(dedup_job *job) {
    doppel_batch_stats s;
    doppel_status status = DOPPEL_OK;
    doppel_batch_get_stats(job->b.batch, &s);
    for (uint64_t i = s.known; i < s.documents && status == DOPPEL_OK; i++) {
        doppel_near near;
        doppel_batch_get(job->b.batch, i, &near);
        if (!doppel_batch_stays(job->b.batch, i))
            status = list_document(job, &near);
    }
    return status;
}

/* ---- the command ---- */

/* All documents, annotated; or the kept ones. */
static doppel_status write_documents(dedup_job *job, doppel_error *error) {
    doppel_batch *batch = job->b.batch;
    if (job->folder)
        return doppel_batch_write_files(batch, error);
    if (!job->output)
        return DOPPEL_OK;
    if (args_flag(job->b.args, "annotate")) {
        doppel_status counted = doppel_batch_count_groups(batch, error);
        if (counted != DOPPEL_OK)
            return counted;
        return writes_rows(job->b.args) ? doppel_batch_write_rows(batch, take_row, job, error)
                                        : doppel_batch_write(batch, take_document, job, error);
    }
    return writer_result(doppel_batch_write_kept(batch, job->out.file, error));
}

static int write_outputs(dedup_job *job) {
    doppel_error error = {0};
    batch_begin_step(&job->b, STEP_WRITE);
    doppel_status status = job->list ? list_removed(job) : DOPPEL_OK;
    if (status == DOPPEL_OK)
        status = write_documents(job, &error);
    if (status == DOPPEL_OK && job->removed)
        status = writer_result(doppel_batch_write_removed(job->b.batch, job->removed_out.file, &error));
    progress_end();
    int code = batch_end(status, &error);
    batch_hint_resume(job->b.args, code);
    return code;
}

/* Opens the outputs. Returns an exit code, with a message unless it is EXIT_DONE. */
static int open_outputs(dedup_job *job) {
    bool annotates = args_flag(job->b.args, "annotate");
    int threads = output_threads(job->b.args), code = EXIT_DONE;
    if (job->output)
        code = annotates ? writer_open(&job->out, job->output, threads)
                         : writer_open_pieces(&job->out, job->output, threads);
    if (job->list && code == EXIT_DONE)
        code = writer_open(&job->listed, job->list, threads);
    if (job->removed && code == EXIT_DONE)
        code = writer_open_pieces(&job->removed_out, job->removed, threads);
    if (!annotates && job->output)
        doppel_batch_set_output(job->b.batch, job->out.file);
    return code;
}

/* Opens the outputs, so that blocks of the disk are allocated while documents are decided; decides, and writes. */
static int decide_and_write(dedup_job *job) {
    int code = open_outputs(job);
    if (code == EXIT_DONE)
        code = batch_decide(&job->b);
    if (code == EXIT_DONE)
        code = write_outputs(job);
    if (job->removed)
        code = writer_close(&job->removed_out, code);
    if (job->list)
        code = writer_close(&job->listed, code);
    return job->output ? writer_close(&job->out, code) : code;
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
    bool annotates = args_flag(job->b.args, "annotate");
    doppel_status status = annotates ? doppel_batch_count_groups(job->b.batch, error) : DOPPEL_OK;
    if (status == DOPPEL_OK)
        status = doppel_batch_each_table(job->b.batch, write_table, job, error);
    if (status != DOPPEL_OK && job->error.code != DOPPEL_OK)
        *error = job->error;
    return status;
}

/* Decides, and writes the kept rows through the writer of tables. */
static int decide_and_write_tables(dedup_job *job) {
    const cli_args *args = job->b.args;
    doppel_error error = {0};
    int code = job->list ? writer_open(&job->listed, job->list, output_threads(args)) : EXIT_DONE;
    if (code == EXIT_DONE)
        code = batch_decide(&job->b);
    if (code == EXIT_DONE && job->list)
        code = batch_end(list_removed(job), &error);
    batch_begin_step(&job->b, STEP_WRITE);
    if (code == EXIT_DONE)
        code = batch_end(write_tables(job, &error), &error);
    progress_end();
    code = batch_close_tables(&job->tables, code);
    batch_hint_resume(job->b.args, code);
    return job->list ? writer_close(&job->listed, code) : code;
}

/* What was counted of the documents of the inputs. */
typedef struct dedup_counts {
    doppel_batch_stats stats;
    uint64_t documents, removed;
    uint64_t of_against; /* of those removed, copies of documents of --against */
    uint64_t duplicates; /* those with isDuplicate, some of which may be kept */
} dedup_counts;

static dedup_counts count_documents(const dedup_job *job) {
    dedup_counts c = {.documents = 0};
    doppel_batch_stats *s = &c.stats;
    doppel_batch_get_stats(job->b.batch, s);
    c.documents = s->documents - s->known;
    c.removed = c.documents - s->kept;
    for (uint64_t i = s->known; i < s->documents; i++) {
        doppel_near near;
        doppel_batch_get(job->b.batch, i, &near);
        bool in_against = near.a < s->known || near.a >= s->documents; /* documents of an index have later positions */
        c.duplicates += near.a != near.b;
        c.of_against += in_against && !doppel_batch_stays(job->b.batch, i);
    }
    return c;
}

/* A document that contains one of --against is near it only if it is at most 1 / similarity times as long, so that
 * where the inputs are twice as long on average, hardly any can be. */
static void hint_shorter(const dedup_job *job) {
    enum { TIMES_SHORTER = 2 };
    const doppel_input_counts *known = &job->b.known_counts, *read = &job->b.counts;
    bool by_content = !job->b.options.by || job->b.options.by & DOPPEL_BY_CONTENT;
    if (!by_content || !known->documents || !read->documents || !known->bytes ||
        known->bytes / known->documents > read->bytes / read->documents / TIMES_SHORTER)
        return;
    message_summary("the documents of --against are short: %llu bytes on average, those of the inputs %llu. Whole "
                    "documents are compared; doppel trim --unit passage --against FILE --drop removes inputs that "
                    "contain them",
                    (unsigned long long)(known->bytes / known->documents),
                    (unsigned long long)(read->bytes / read->documents));
}

/* "3 records already had a field group, isDuplicate, originalId, kept or groupSize, which --annotate replaced" */
static void report_replaced(const dedup_job *job) {
    text_buffer names = {0};
    size_t count = added_count(job);
    for (size_t i = 0; i < count; i++)
        text_format(&names, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", job->names[i]);
    message("%llu record%s already had a field %.*s, which --annotate replaced", (unsigned long long)job->replaced,
            job->replaced == 1 ? "" : "s", (int)names.length, names.data);
    text_free(&names);
}

/* "300 documents: 211 kept, 89 removed (29.7 %)", or "300 documents marked: 211 to keep, 89 to remove (29.7 %)" */
static void put_counts_line(const dedup_job *job, const dedup_counts *c, text_buffer *line) {
    bool marked = job->output && args_flag(job->b.args, "annotate") && !job->kept_only;
    double share = c->documents ? 100 * (double)c->removed / (double)c->documents : 0.0;
    text_format(line,
                marked ? "%llu document%s marked: %llu to keep, %llu to remove"
                       : "%llu document%s: %llu kept, %llu removed",
                (unsigned long long)c->documents, c->documents == 1 ? "" : "s", (unsigned long long)c->stats.kept,
                (unsigned long long)c->removed);
    text_format(line, " (%.1f %%) in %llu group%s", share, (unsigned long long)c->stats.groups,
                c->stats.groups == 1 ? "" : "s");
    if (c->removed && args_text(job->b.args, "against"))
        text_format(line, ": %llu cop%s of --against, %llu of each other", (unsigned long long)c->of_against,
                    c->of_against == 1 ? "y" : "ies", (unsigned long long)(c->removed - c->of_against));
    if (marked && c->duplicates != c->removed)
        text_format(line, "; isDuplicate is true of %llu", (unsigned long long)c->duplicates);
    if (c->stats.empty)
        text_format(line, "; %llu ha%s no words", (unsigned long long)c->stats.empty, c->stats.empty == 1 ? "s" : "ve");
}

static void print_result(dedup_job *job) {
    text_buffer line = {0};
    const dedup_counts counts = count_documents(job);
    put_counts_line(job, &counts, &line);
    message_summary("%.*s", line.failed ? 0 : (int)line.length, line.failed ? "" : line.data);
    text_free(&line);
    tell_jsonl(job->b.args);
    hint_shorter(job);
    if (job->replaced)
        report_replaced(job);
}

static int print_summary(dedup_job *job, int code) {
    text_buffer out = {0};
    const dedup_counts counts = count_documents(job);
    batch_summary(&job->b, &out);
    text_member_count(&out, "kept", counts.stats.kept);
    text_member_count(&out, "removed", counts.removed);
    text_member_count(&out, "removedAgainst", counts.of_against);
    text_member_count(&out, "duplicates", counts.duplicates);
    text_member_count(&out, "groups", counts.stats.groups);
    text_member_count(&out, "inIndex", counts.stats.in_index);
    text_put(&out, "}\n");
    return finish_text(&out, code);
}

/* Whether a text is the same in a JSON string. */
static bool needs_no_escapes(const char *text) {
    text_buffer json = {0};
    size_t length = strlen(text);
    text_string(&json, (doppel_slice){text, length});
    bool same = json.failed || (json.length == length + 2 && !memcmp(json.data + 1, text, length));
    text_free(&json);
    return same;
}

/* Options that modify --annotate need it. */
static bool check_annotate(const cli_args *args) {
    const char *prefix = args_text(args, "annotate-prefix");
    const char *alone = args_text(args, "count-by")        ? "count-by"
                        : prefix                           ? "annotate-prefix"
                        : args_flag(args, "annotate-kept") ? "annotate-kept"
                                                           : NULL;
    if (prefix && (*prefix == ' ' || !needs_no_escapes(prefix))) {
        message("--annotate-prefix is part of names: it cannot begin with a space, or contain quotes, backslashes, "
                "control characters or invalid UTF-8");
        return false;
    }
    if (alone && !args_flag(args, "annotate"))
        message("--%s needs --annotate", alone);
    else if (args_flag(args, "annotate-kept") && writes_tables(args))
        message("--annotate-kept does not write Parquet: leave it out, and take the rows whose column kept is true");
    else
        return true;
    return false;
}

/* Prints a message and returns false when rows would go under the name of another format: what is in folders is known
 * only now. */
static bool check_row_format(const dedup_job *job) {
    const char *out = job->output ? job->output : job->removed, *format = doppel_batch_row_format(job->b.batch);
    const char *named = !out || is_stdout(out) ? NULL : doppel_input_format(out);
    if (!named || !format || !strcmp(named, format))
        return true;
    message("%s: the documents are read as %s: choose another name, such as one that ends in %s", out, format,
            !strcmp(format, "TSV")   ? ".tsv"
            : !strcmp(format, "CSV") ? ".csv"
                                     : ".txt");
    return false;
}

/* Prints a message and returns false when another file would be written over one of --output-dir. */
static bool check_other_outputs(const dedup_job *job) {
    static const char *const others[] = {"removed", "save-sketches"};
    for (size_t i = 0; job->folder && i < sizeof others / sizeof *others; i++) {
        const char *path = args_text(job->b.args, others[i]);
        if (path && !is_stdout(path) && doppel_batch_is_output(job->b.batch, path)) {
            message("--output-dir %s writes to %s: choose another file for --%s", job->folder, path, others[i]);
            return false;
        }
    }
    return true;
}

/* Opens what has to know the inputs before they are read: tables, rows, or a file for each of them. */
static int plan_outputs(dedup_job *job) {
    const cli_args *args = job->b.args;
    doppel_error error = {0};
    doppel_status status = DOPPEL_OK;
    if (writes_tables(args))
        return batch_open_tables(args, NULL, &job->tables);
    for (size_t i = 0; job->folder && i < args->operand_count; i++)
        if (!check_output("output-dir", job->folder, args->operands[i]))
            return EXIT_USAGE;
    if (job->folder)
        status = doppel_batch_plan_files(job->b.batch, args->operands, args->operand_count, job->folder, &error);
    else if (writes_rows(args))
        status = doppel_batch_plan_rows(job->b.batch, args->operands, args->operand_count, &error);
    if (status == DOPPEL_OK && (!check_row_format(job) || !check_other_outputs(job)))
        return EXIT_USAGE;
    if (status == DOPPEL_OK && args_flag(args, "annotate") && !check_header(job, doppel_batch_row_header(job->b.batch)))
        return EXIT_USAGE;
    return batch_end(status, &error);
}

int cmd_dedup(const cli_args *args) {
    bool usable = false, dry = args_flag(args, "dry-run");
    dedup_job job = {.output = dry ? NULL : args_text(args, "output"),
                     .folder = dry ? NULL : args_text(args, "output-dir"),
                     .list = args_text(args, "removed"),
                     .removed = args_text(args, "removed-documents"),
                     .kept_only = args_flag(args, "annotate-kept")};
    if (!check_documents_output(args, true) || !check_annotate(args))
        return EXIT_USAGE;
    int code = batch_open(&job.b, args);
    if (code == EXIT_DONE && !make_names(&job))
        code = EXIT_STORE;
    if (code == EXIT_DONE && !dry)
        code = plan_outputs(&job);
    if (code == EXIT_DONE) {
        batch_print_plan(&job.b);
        code = batch_read_all(&job.b, &usable);
    }
    if (usable) {
        int done = job.tables ? decide_and_write_tables(&job) : decide_and_write(&job);
        code = done ? done : code;
        if (!done && !output_closed())
            print_result(&job);
        if (!done && args_flag(args, "json"))
            code = print_summary(&job, code);
    }
    batch_close_tables(&job.tables, EXIT_INPUT);
    batch_close(&job.b);
    for (size_t i = 0; i < ADDED; i++)
        free(job.names[i]);
    return code;
}
