/* verdicts.c - doppel add and doppel check: documents in, one verdict per line out. */
#include "engine/verdicts.h"

#include "common/message.h"
#include "common/stored_json.h"
#include "engine/feed.h"
#include "shared/choices.h"
#include "shared/outputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More is no faster, and takes memory. */
#define MOST_BATCH 1000000

typedef struct verdict_job {
    feed feed; /* must be first: the callbacks of the feed get it */
    engine_command cli;
    writer out;
    text_buffer line;                       /* a verdict as JSON */
    uint64_t documents, by[DOPPEL_REASONS]; /* by: duplicates by reason */
    uint64_t known, known_unique, replaced;
    uint64_t named; /* documents that got the id of --id */
    bool unheard;   /* the reader of stdout has gone away */
    bool sentences; /* for people, in place of JSON */
} verdict_job;

size_t batch_option(const cli_args *args) {
    uint64_t batch = args_number(args, "batch", 1000);
    if (batch && batch <= MOST_BATCH)
        return (size_t)batch;
    message("--batch takes a number from 1 to %d", MOST_BATCH);
    return 0;
}

/* feed.make_item: --id is the id of the document, which must be the only one. */
static feed_answer name_item(feed *f, const doppel_document *from, doppel_item *item, doppel_error *why) {
    verdict_job *job = (verdict_job *)f;
    const char *id = args_text(f->cli->args, "id");
    (void)from, (void)why;
    if (job->named++) {
        message("--id names a single document, but there are more");
        f->code = EXIT_USAGE;
        return FEED_END;
    }
    item->document.id.data = id;
    item->document.id.length = strlen(id);
    return FEED_TAKE;
}

/* ---- lines ---- */

/* Documents are added whether the verdicts are read or not. */
static doppel_status go_on(verdict_job *job, doppel_status written) {
    if (written != DOPPEL_ERROR_INTERRUPTED || job->feed.check || !output_closed())
        return written;
    if (!job->unheard)
        message("the reader of the verdicts has gone away; the documents are added all the same");
    job->unheard = true;
    return DOPPEL_OK;
}

static void count_verdict(verdict_job *job, const doppel_verdict *verdict) {
    job->documents++;
    job->known += verdict->known;
    job->known_unique += verdict->known && !verdict->is_duplicate;
    job->replaced += verdict->replaced;
    if (verdict->is_duplicate)
        job->by[verdict->reason]++;
}

/* What the verdict rests on, in words: "similar to a.txt: similarity 0.843". */
static void put_sentence(text_buffer *line, const doppel_verdict *verdict, bool check) {
    const doppel_evidence *e = &verdict->evidence;
    text_safe(line, verdict->id.data, verdict->id.length);
    text_put(line, ": ");
    if (!verdict->is_duplicate) {
        text_put(line, verdict->known      ? "already there"
                       : verdict->replaced ? "new text, replaced"
                       : check             ? "not seen before"
                                           : "new");
        return;
    }
    text_put(line, verdict->reason == DOPPEL_REASON_URL     ? "the same URL as "
                   : verdict->reason == DOPPEL_REASON_TITLE ? "a title similar to that of "
                   : e->same_digest                         ? "the same words as "
                                                            : "similar to ");
    text_safe(line, verdict->original_id.data, verdict->original_id.length);
    if (verdict->reason == DOPPEL_REASON_TITLE)
        text_format(line, ": similarity of the titles %.3f", e->title_similarity);
    if (verdict->reason == DOPPEL_REASON_TITLE && !isnan(e->similarity))
        text_format(line, ", of the contents %.3f", e->similarity);
    if (verdict->reason != DOPPEL_REASON_CONTENT || e->same_digest)
        return;
    if (!isnan(e->similarity))
        text_format(line, ": similarity %.3f%s", e->similarity, e->verified ? "" : ", estimated");
    else if (e->distance >= 0)
        text_format(line, ": fingerprints differ in %d bit%s", e->distance, e->distance == 1 ? "" : "s");
}

static doppel_status write_line(feed *f, const doppel_item *item, const doppel_verdict *verdict) {
    verdict_job *job = (verdict_job *)f;
    (void)item;
    count_verdict(job, verdict);
    if (job->unheard)
        return DOPPEL_OK;
    job->line.length = 0;
    if (job->sentences)
        put_sentence(&job->line, verdict, f->check);
    else
        text_verdict(&job->line, verdict, true);
    text_put(&job->line, "\n");
    return job->line.failed ? DOPPEL_ERROR_MEMORY : go_on(job, writer_add(&job->out, job->line.data, job->line.length));
}

/* Verdicts are printed as soon as the documents are on disk. */
static doppel_status flush_lines(feed *f) {
    verdict_job *job = (verdict_job *)f;
    return go_on(job, writer_flush(&job->out));
}

/* ---- the end ---- */

static uint64_t all_duplicates(const verdict_job *job) {
    return job->by[DOPPEL_REASON_URL] + job->by[DOPPEL_REASON_CONTENT] + job->by[DOPPEL_REASON_TITLE];
}

/* With --output: in a sentence on stderr, and with --json on stdout. */
static int tell_summary(const verdict_job *job, int code) {
    const cli_args *args = job->cli.args;
    const char *output = args_text(args, "output");
    unsigned long long documents = job->documents, duplicates = all_duplicates(job);
    if (is_stdout(output))
        return code;
    char known[48] = "";
    if (job->known_unique)
        snprintf(known, sizeof known, "%llu already there, ", (unsigned long long)job->known_unique);
    message_summary("%llu document%s: %llu new, %s%llu duplicate%s (%llu by URL, %llu by content, %llu by title)",
                    documents, documents == 1 ? "" : "s", documents - duplicates - job->known_unique, known, duplicates,
                    duplicates == 1 ? "" : "s", (unsigned long long)job->by[DOPPEL_REASON_URL],
                    (unsigned long long)job->by[DOPPEL_REASON_CONTENT],
                    (unsigned long long)job->by[DOPPEL_REASON_TITLE]);
    if (!args_flag(args, "json"))
        return code;
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "index", doppel_slice_of(job->cli.path));
    text_counts(&out, &job->feed.counts);
    text_member_count(&out, "unique", documents - duplicates);
    text_member_count(&out, "duplicates", duplicates);
    text_member_count(&out, "byUrl", job->by[DOPPEL_REASON_URL]);
    text_member_count(&out, "byContent", job->by[DOPPEL_REASON_CONTENT]);
    text_member_count(&out, "byTitle", job->by[DOPPEL_REASON_TITLE]);
    text_member_count(&out, "known", job->known);
    text_member_count(&out, "replaced", job->replaced);
    text_put(&out, "}\n");
    return finish_text(&out, code);
}

/* ---- the run ---- */

static int check_usage(const cli_args *args, bool *sentences) {
    unsigned text = is_stdout(args_text(args, "output")) && isatty(STDOUT_FILENO);
    if (!choose_one(args, "print", &text))
        return EXIT_USAGE;
    *sentences = text;
    return check_json(args) && check_outputs(args) && batch_option(args) ? EXIT_DONE : EXIT_USAGE;
}

static int run(verdict_job *job) {
    name_list fields;
    if (!split_names(&fields, doppel_engine_get_options(job->cli.engine)->fields)) {
        message("no memory");
        return EXIT_STORE;
    }
    job->feed.keys = fields.names;
    job->feed.key_count = fields.count;
    int code = feed_run(&job->feed);
    free(fields.text);
    return code;
}

int write_verdicts(const cli_args *args, bool check, uint64_t *duplicates) {
    verdict_job job = {.feed = {.check = check, .on_verdict = write_line, .on_batch_end = flush_lines}};
    *duplicates = 0;
    int code = check_usage(args, &job.sentences);
    if (code != EXIT_DONE)
        return code;
    job.feed.cli = &job.cli;
    job.feed.make_item = args_text(args, "id") ? name_item : NULL;
    job.feed.batch = batch_option(args);
    code = engine_open(&job.cli, args, check ? ENGINE_READ : ENGINE_MAKE);
    if (code == EXIT_DONE &&
        (code = writer_open(&job.out, args_text(args, "output"), output_threads(args))) == EXIT_DONE) {
        code = run(&job);
        /* Verdicts that were written stay written, however it ended; without any, a file stays as it was. */
        int written = writer_close(&job.out, reading_failed() && !job.documents ? code : EXIT_DONE);
        code = code ? code : written;
        code = tell_summary(&job, code);
    } else {
        writer_close(&job.out, code);
    }
    *duplicates = all_duplicates(&job);
    feed_free(&job.feed);
    text_free(&job.line);
    return engine_close(&job.cli, code);
}
