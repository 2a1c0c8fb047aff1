/* run_files.c - the files that are made of a run, as `doppel dedup` writes them: the kept documents (rows of CSV and
 * TSV as they are in the file, other documents as a record per line), and the list of removed ones. */
#include "server/runs.h"
#include "server/service.h"

#include <stdlib.h>
#include <string.h>

/* A file that is made of a run that is done, at a threshold. */
typedef struct output_file {
    request *request;
    file_run *run;
    double similarity;
    text_buffer line, id, record;
    text_buffer path, name; /* of the run's file, as JSON strings */
    doppel_error error;
} output_file;

static doppel_slice without_quotes(const text_buffer *string) {
    return (doppel_slice){string->data + 1, string->length - 2};
}

/* Writes a record, in which ids that were made of the file's path on the server are made of its name. */
static doppel_status put_record(output_file *o, doppel_slice record) {
    spool *to = o->request->spool;
    doppel_slice shown = run_replace_path(record, without_quotes(&o->path), without_quotes(&o->name), &o->record);
    if (o->record.failed)
        return DOPPEL_ERROR_MEMORY;
    spool_write(to, shown.data, shown.length);
    spool_write(to, "\n", 1);
    return to->failed ? DOPPEL_ERROR_IO : DOPPEL_OK;
}

static doppel_slice id_of(output_file *o, const doppel_batch *batch, uint64_t position) {
    size_t length = doppel_batch_id(batch, position, o->id.data, o->id.room);
    if (length > o->id.room && text_reserve(&o->id, length))
        doppel_batch_id(batch, position, o->id.data, o->id.room);
    return (doppel_slice){o->id.data ? o->id.data : "", o->id.failed ? 0 : length};
}

/* A line of --removed. */
static doppel_status write_removed(output_file *o, const doppel_batch *batch, const doppel_near *near) {
    text_buffer *line = &o->line;
    text_put(line, "{");
    text_member_string(line, "id", id_of(o, batch, near->b));
    text_member_string(line, "originalId", id_of(o, batch, near->a));
    text_member_string(line, "reason", doppel_slice_of(doppel_reason_name(near->reason)));
    text_member_share(line, "similarity", near->similarity);
    text_member_distance(line, "distance", near->distance);
    text_put(line, near->verified ? "}" : ",\"verified\":false}");
    if (line->failed || o->id.failed)
        return DOPPEL_ERROR_MEMORY;
    doppel_slice made = {line->data, line->length};
    line->length = 0;
    return put_record(o, made);
}

static doppel_status make_removed(output_file *o, const doppel_batch *batch) {
    uint64_t count = doppel_batch_count(batch);
    doppel_status status = DOPPEL_OK;
    for (uint64_t i = 0; i < count && status == DOPPEL_OK; i++) {
        doppel_near near;
        doppel_batch_get(batch, i, &near);
        if (near.a != near.b)
            status = write_removed(o, batch, &near);
    }
    return status;
}

static doppel_status take_kept(doppel_slice record, const doppel_near *near, void *user) {
    return near->a == near->b ? put_record(user, record) : DOPPEL_OK;
}

/* doppel_batch_write_rows: the header (`near` is NULL), or a row. */
static doppel_status take_row(doppel_slice row, const doppel_near *near, void *user) {
    spool *to = ((output_file *)user)->request->spool;
    if (near && near->a != near->b)
        return DOPPEL_OK;
    spool_write(to, row.data, row.length);
    spool_write(to, "\n", 1);
    return to->failed ? DOPPEL_ERROR_IO : DOPPEL_OK;
}

static doppel_status make_kept(output_file *o, doppel_batch *batch) {
    return o->run->rows ? doppel_batch_write_rows(batch, take_row, o, &o->error)
                        : doppel_batch_write(batch, take_kept, o, &o->error);
}

static doppel_status make_file(output_file *o, bool kept) {
    file_run *run = o->run;
    const doppel_input_options reads = {.size = sizeof reads,
                                        .threads = o->request->service->options.threads,
                                        .text_key = run->text_key,
                                        .id_key = run->id_key,
                                        .stop = &run->stop};
    const doppel_batch_options options = {
        .size = sizeof options, .similarity = o->similarity, .tmp = run->folder, .memory = RUN_MEMORY, .input = &reads};
    const char *const *inputs = (const char *const *)run->inputs;
    doppel_batch *batch = NULL;
    pthread_mutex_lock(&run->all->analysis);
    doppel_status status = doppel_batch_create(&options, &batch, &o->error);
    if (status == DOPPEL_OK && kept && run->rows)
        status = doppel_batch_plan_rows(batch, inputs, run->input_count, &o->error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, inputs, run->input_count, false, NULL, &o->error);
    if (status == DOPPEL_OK)
        status = doppel_batch_decide(batch, &o->error);
    if (status == DOPPEL_OK)
        status = kept ? make_kept(o, batch) : make_removed(o, batch);
    doppel_batch_free(batch);
    pthread_mutex_unlock(&run->all->analysis);
    return status;
}

/* An empty spool for a file: it counts against --max-spooled. */
static spool *create_spool(request *r, const file_run *run) {
    spool *made = spool_create(run->folder);
    if (made) {
        made->total = &r->service->spooled;
        made->most = r->service->options.max_spooled;
    }
    return made;
}

static void output_free(output_file *o) {
    text_buffer *const texts[] = {&o->line, &o->id, &o->record, &o->path, &o->name};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_free(texts[i]);
}

/* ---- its name and type ---- */

static bool ends_in(const char *name, size_t length, const char *ending) {
    size_t size = strlen(ending);
    return length > size && !strncasecmp(name + length - size, ending, size);
}

/* The name of the run's file without folders, and without the endings of its compression and its format. */
static doppel_slice stem_of(const char *name) {
    static const char *const packed[] = {".gz", ".zst", ".bz2", ".xz"};
    for (const char *at = name; *at; at++)
        if (*at == '/' || *at == '\\')
            name = at + 1;
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (ends_in(name, length, packed[i])) {
            length -= strlen(packed[i]);
            break;
        }
    const char *dot = memrchr(name, '.', length);
    return (doppel_slice){name, dot && dot > name ? (size_t)(dot - name) : length};
}

static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
}

/* Names the file for browsers and `curl -OJ`: STEM-kept.csv. The second name, with other characters percent-encoded
 * (RFC 6266), is preferred by those that know it. */
static void name_file(request *r, const file_run *run, const char *what, const char *ending) {
    text_buffer *out = &r->disposition;
    doppel_slice stem = stem_of(run->name);
    text_put(out, "attachment; filename=\"");
    for (size_t i = 0; i < stem.length; i++)
        text_add(out, is_plain(stem.data[i]) ? stem.data + i : "_", 1);
    text_format(out, "-%s%s\"; filename*=UTF-8''", what, ending);
    for (size_t i = 0; i < stem.length; i++)
        text_format(out, is_plain(stem.data[i]) ? "%c" : "%%%02X", (unsigned char)stem.data[i]);
    text_format(out, "-%s%s", what, ending);
}

static void answer_made(request *r, const file_run *run, bool kept) {
    bool rows = kept && run->rows;
    const char *ending = rows ? run->rows : ".jsonl";
    request_answer(r, 200);
    r->type = !rows                     ? "application/x-ndjson"
              : !strcmp(ending, ".csv") ? "text/csv; charset=utf-8"
                                        : "text/tab-separated-values; charset=utf-8";
    name_file(r, run, kept ? "kept" : "removed", ending);
}

void run_answer_file(request *r, file_run *run, bool kept) {
    output_file o = {.request = r, .run = run};
    o.similarity = request_choice(r, "similarity") ? request_number(r, "similarity") : run->similarity;
    r->spool = create_spool(r, run);
    text_string(&o.path, doppel_slice_of(run->path));
    text_string(&o.name, doppel_slice_of(run_shown_path(run)));
    doppel_status status = r->spool && !o.path.failed && !o.name.failed ? make_file(&o, kept) : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK) {
        answer_made(r, run, kept);
    } else if (run_is_stopped(run)) {
        request_problem(r, PROBLEM_NO_RUN, NULL, "the run has been deleted");
    } else if (r->spool && r->spool->full) {
        run_no_room(r, "the server has no more space for answers (--max-spooled): try again later");
    } else if (status == DOPPEL_ERROR_IO) {
        run_no_room(r, "the disk of the server has no room for this file");
    } else {
        run_rewrite_error(&o.error, run->path, run_shown_path(run));
        request_error(r, status, &o.error);
    }
    output_free(&o);
}
