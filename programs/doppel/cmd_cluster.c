/* cmd_cluster.c - doppel cluster: which documents are copies of which, and which one of them is kept. */
#include "batch/batch_command.h"
#include "commands.h"
#include "common/message.h"
#include "common/progress.h"
#include "shared/choices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_option cluster_options[] = {
    {"top", 0, OPTION_COUNT, "N", "show the N largest groups only, largest first"},
    KEEP_OPTIONS,
    WORK_OPTIONS,
    SAVE_OPTION,
    OUTPUT_OPTION,
    PRINT_OPTION,
    BATCH_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct cluster_job {
    batch_command b;
    writer out;
    bool words; /* in words, not JSON */
} cluster_job;

/* "a.txt: kept", "b.txt: a copy of a.txt: similarity 0.843" */
static void put_words(batch_command *b, const doppel_near *near) {
    text_buffer *line = &b->line;
    doppel_slice id = batch_get_id(b, near->b);
    text_safe(line, id.data, id.length);
    text_put(line, near->a == near->b ? ": kept" : ": a copy of ");
    if (near->a != near->b) {
        id = batch_get_id(b, near->a);
        text_safe(line, id.data, id.length);
        if (!isnan(near->similarity) && near->reason == DOPPEL_REASON_TITLE)
            text_format(line, ": titles %.3f alike", near->similarity);
        else if (near->reason == DOPPEL_REASON_URL)
            text_put(line, ": the same URL");
        else if (!isnan(near->similarity))
            text_format(line, ": similarity %.3f", near->similarity);
        else if (near->distance >= 0)
            text_format(line, ": fingerprints differ in %d bit%s", near->distance, near->distance == 1 ? "" : "s");
        else
            text_format(line, ", by %s", doppel_reason_name(near->reason));
    }
    text_put(line, "\n");
}

static doppel_status write_document(cluster_job *job, uint64_t position) {
    text_buffer *line = &job->b.line;
    doppel_near near;
    doppel_batch_get(job->b.batch, position, &near);
    bool kept = near.a == near.b;
    if (job->words) {
        put_words(&job->b, &near);
        return batch_write_line(&job->b, &job->out);
    }
    text_put(line, "{");
    batch_put_id(&job->b, "id", position);
    batch_put_id(&job->b, "group", near.a);
    text_member_bool(line, "kept", kept);
    text_member_string(line, "reason", doppel_slice_of(kept ? NULL : doppel_reason_name(near.reason)));
    text_member_share(line, "similarity", near.similarity);
    text_put(line, "}\n");
    return batch_write_line(&job->b, &job->out);
}

/* ---- the largest groups ---- */

/* A document, sorted by the size of its group, the group, and its position. */
typedef struct cluster_member {
    uint64_t size, group, position;
} cluster_member;

static int compare_members(const void *x, const void *y) {
    const cluster_member *a = x, *b = y;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    bool a_leads = a->position == a->group, b_leads = b->position == b->group;
    if (a_leads != b_leads)
        return a_leads ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

/* Every document that is in a group of more than one, in order; NULL: no memory. */
static cluster_member *list_members(const doppel_batch *batch, size_t *count) {
    size_t documents = (size_t)doppel_batch_count(batch);
    uint64_t *size = calloc(documents + 1, sizeof *size);
    cluster_member *all = malloc((documents + 1) * sizeof *all);
    doppel_near near;
    *count = 0;
    for (size_t i = 0; size && all && i < documents; i++) {
        doppel_batch_get(batch, i, &near);
        size[near.a]++;
    }
    for (size_t i = 0; size && all && i < documents; i++) {
        doppel_batch_get(batch, i, &near);
        if (size[near.a] > 1)
            all[(*count)++] = (cluster_member){size[near.a], near.a, i};
    }
    if (!size) {
        free(all);
        all = NULL;
    }
    free(size);
    if (all)
        qsort(all, *count, sizeof *all, compare_members);
    return all;
}

static doppel_status write_top(cluster_job *job, uint64_t groups) {
    size_t count;
    cluster_member *all = list_members(job->b.batch, &count);
    doppel_status status = all ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        if ((!i || all[i].group != all[i - 1].group) && groups-- == 0)
            break;
        status = write_document(job, all[i].position);
    }
    free(all);
    return status;
}

/* ---- the command ---- */

static doppel_status write_all(cluster_job *job) {
    doppel_status status = DOPPEL_OK;
    for (uint64_t i = 0; i < doppel_batch_count(job->b.batch) && status == DOPPEL_OK; i++)
        status = stop_asked ? DOPPEL_ERROR_INTERRUPTED : write_document(job, i);
    return status;
}

static int write_groups(cluster_job *job) {
    doppel_error error = {0};
    uint64_t top = args_number(job->b.args, "top", 0);
    doppel_status status = top ? write_top(job, top) : write_all(job);
    if (status != DOPPEL_OK)
        snprintf(error.message, sizeof error.message, "%s", doppel_status_name(status));
    return batch_end(status, &error);
}

static int print_summary(cluster_job *job, int code) {
    text_buffer out = {0};
    doppel_batch_stats stats;
    doppel_batch_get_stats(job->b.batch, &stats);
    batch_summary(&job->b, &out);
    text_member_count(&out, "kept", stats.kept);
    text_member_count(&out, "groups", stats.groups);
    text_put(&out, "}\n");
    return finish_text(&out, code);
}

int cmd_cluster(const cli_args *args) {
    cluster_job job = {.out = {0}};
    bool usable = false;
    unsigned words = is_stdout(args_text(args, "output")) && isatty(STDOUT_FILENO);
    int code = choose_one(args, "print", &words) && args_positive(args, "top") ? batch_open(&job.b, args) : EXIT_USAGE;
    job.words = words;
    if (code == EXIT_DONE) {
        batch_print_plan(&job.b);
        code = batch_read_all(&job.b, &usable);
    }
    if (usable) {
        int written = writer_open(&job.out, args_text(args, "output"), output_threads(args));
        if (written == EXIT_DONE)
            written = batch_decide(&job.b);
        if (written == EXIT_DONE)
            written = write_groups(&job);
        written = writer_close(&job.out, written);
        code = written ? written : code;
        if (!written && args_flag(args, "json"))
            code = print_summary(&job, code);
    }
    batch_close(&job.b);
    return code;
}
