/* cmd_pairs.c - doppel pairs: the pairs of near documents, in input order. */
#include "batch/batch_command.h"
#include "commands.h"
#include "common/progress.h"
#include "shared/choices.h"

#include <math.h>
#include <unistd.h>

const cli_option pairs_options[] = {
    {"collapse", 'c', OPTION_FLAG, NULL, "pair documents that have the same words only with the first of them"},
    {"against", 0, OPTION_FILES, "FILE",
     "also pair with the documents of this file, folder, --work folder or file of sketches; these are not paired with "
     "each other"},
    AGAINST_BATCH_OPTIONS,
    OUTPUT_OPTION,
    PRINT_OPTION,
    BATCH_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct pairs_job {
    batch_command b;
    writer out;
    bool words; /* in words, not JSON */
    uint64_t pairs;
} pairs_job;

/* "a.txt and b.txt: similarity 0.843" */
static void put_words(batch_command *b, const doppel_near *pair) {
    text_buffer *line = &b->line;
    doppel_slice id = batch_get_id(b, pair->a);
    text_safe(line, id.data, id.length);
    text_put(line, " and ");
    id = batch_get_id(b, pair->b);
    text_safe(line, id.data, id.length);
    if (!isnan(pair->similarity))
        text_format(line, ": similarity %.3f\n", pair->similarity);
    else
        text_format(line, ": fingerprints differ in %d bit%s\n", pair->distance, pair->distance == 1 ? "" : "s");
}

static void put_json(batch_command *b, const doppel_near *pair) {
    text_buffer *line = &b->line;
    text_put(line, "{");
    batch_put_id(b, "a", pair->a);
    batch_put_id(b, "b", pair->b);
    text_member_distance(line, "distance", pair->distance);
    text_member_share(line, "similarity", pair->similarity);
    text_put(line, "}\n");
}

static doppel_status write_pairs(const doppel_near *pairs, size_t count, void *user) {
    pairs_job *job = user;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        (job->words ? put_words : put_json)(&job->b, &pairs[i]);
        status = batch_write_line(&job->b, &job->out);
        job->pairs++;
    }
    return status;
}

static int find_pairs(pairs_job *job) {
    doppel_error error = {0};
    batch_begin_step(&job->b, STEP_COMPARE);
    doppel_status status =
        doppel_batch_find_pairs(job->b.batch, args_flag(job->b.args, "collapse"), write_pairs, job, &error);
    progress_end();
    if (status == DOPPEL_OK)
        batch_warn_ids(&job->b);
    return batch_end(status, &error);
}

int cmd_pairs(const cli_args *args) {
    pairs_job job = {.pairs = 0};
    bool usable = false;
    unsigned words = is_stdout(args_text(args, "output")) && isatty(STDOUT_FILENO);
    int code = choose_one(args, "print", &words) ? batch_open(&job.b, args) : EXIT_USAGE;
    job.words = words;
    job.b.all_pairs = true;
    if (code == EXIT_DONE) {
        batch_print_plan(&job.b);
        code = batch_read_all(&job.b, &usable);
    }
    if (usable) {
        int written = writer_open(&job.out, args_text(args, "output"), output_threads(args));
        if (written == EXIT_DONE)
            written = find_pairs(&job);
        written = writer_close(&job.out, written);
        code = written ? written : code;
        if (!written && args_flag(args, "json")) {
            text_buffer out = {0};
            batch_summary(&job.b, &out);
            text_member_count(&out, "pairs", job.pairs);
            text_put(&out, "}\n");
            code = finish_text(&out, code);
        }
    }
    batch_close(&job.b);
    return code;
}
