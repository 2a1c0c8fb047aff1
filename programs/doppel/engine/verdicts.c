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

/* Larger batches are no faster, and take more memory. */
#define MOST_BATCH 1000000

/* For a sentence about a new document, the nearest one is found by comparing all of a folder. At most this many
 * comparisons are made in a run, about a second's worth; a nearest one that is less similar than this is not named. */
#define MOST_COMPARED 100000
#define LEAST_SIMILARITY 0.5

typedef struct verdict_job {
    feed feed; /* must be first: the callbacks of the feed get it */
    engine_command cli;
    writer out;
    text_buffer line;                       /* a verdict as JSON */
    uint64_t documents, by[DOPPEL_REASONS]; /* by: duplicates by reason */
    uint64_t known, known_unique, replaced;
    uint64_t named;      /* documents that got the id of --id */
    uint64_t textless;   /* documents that have only a URL or a title */
    uint64_t bare;       /* texts that are only an address */
    bool reader_closed;  /* the reader of stdout has closed it */
    bool sentences;      /* text instead of JSON */
    uint64_t comparable; /* the documents of a folder, if sentences name the nearest of them; else 0 */
    uint64_t compared;   /* to find those nearest to new ones */
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
static doppel_status ignore_closed_reader(verdict_job *job, doppel_status written) {
    if (written != DOPPEL_ERROR_INTERRUPTED || job->feed.check || !output_closed())
        return written;
    if (!job->reader_closed)
        message("stdout was closed: no more verdicts are printed, but the documents are still added");
    job->reader_closed = true;
    return DOPPEL_OK;
}

/* Whether a text is an address, and nothing else. */
static bool is_address(doppel_slice text) {
    while (text.length && strchr(" \t\r\n", text.data[text.length - 1]))
        text.length--;
    for (size_t i = 0; i < text.length; i++)
        if (strchr(" \t\r\n", text.data[i]))
            return false;
    return text.length && memmem(text.data, text.length, "://", 3);
}

static void count_verdict(verdict_job *job, const doppel_document *document, const doppel_verdict *verdict) {
    bool content = document->text.length || document->html.data || document->alias.data;
    job->textless += !content && (document->url.length || document->title.length);
    job->bare += !document->url.length && !document->html.data && is_address(document->text);
    job->documents++;
    job->known += verdict->known;
    job->known_unique += verdict->known && !verdict->is_duplicate;
    job->replaced += verdict->replaced;
    if (verdict->is_duplicate)
        job->by[verdict->reason]++;
}

void text_copy_of(text_buffer *line, doppel_reason reason, const doppel_evidence *e, doppel_slice original) {
    text_put(line, reason == DOPPEL_REASON_URL     ? "the same URL as "
                   : reason == DOPPEL_REASON_TITLE ? "a title similar to that of "
                   : e->same_digest                ? "the same words as "
                                                   : "similar to ");
    text_safe(line, original.data, original.length);
    if (reason == DOPPEL_REASON_TITLE)
        text_format(line, ": similarity of the titles %.3f", e->title_similarity);
    if (reason == DOPPEL_REASON_TITLE && !isnan(e->similarity))
        text_format(line, ", of the contents %.3f", e->similarity);
    if (reason != DOPPEL_REASON_CONTENT || e->same_digest)
        return;
    if (!isnan(e->similarity))
        text_format(line, ": similarity %.3f%s", e->similarity, e->verified ? "" : ", estimated");
    else if (e->distance >= 0)
        text_format(line, ": fingerprints differ in %d bit%s", e->distance, e->distance == 1 ? "" : "s");
}

static bool same_slice(doppel_slice a, doppel_slice b) {
    return a.length == b.length && !memcmp(a.data, b.data, a.length);
}

/* Whether a duplicate by its URL was found by that of a copy, which differs from the original's. */
static doppel_status find_copy_url(verdict_job *job, const doppel_item *item, const doppel_verdict *verdict, bool *copy,
                                   doppel_error *error) {
    doppel_stored_list list = {0};
    *copy = false;
    if (!job->feed.check || !job->sentences || !verdict->is_duplicate || verdict->reason != DOPPEL_REASON_URL)
        return DOPPEL_OK;
    doppel_status status = doppel_engine_get(job->cli.engine, item->document.url, &list, error);
    if (status == DOPPEL_OK && list.count && list.stored[0].original_id.data)
        *copy = same_slice(list.stored[0].original_id, verdict->original_id);
    doppel_stored_list_free(&list);
    return status;
}

/* The verdict in words: "b.txt: similar to a.txt: similarity 0.843". copy_url: as find_copy_url says. */
static void put_sentence(text_buffer *line, const doppel_verdict *verdict, bool check, bool copy_url) {
    text_safe(line, verdict->id.data, verdict->id.length);
    text_put(line, ": ");
    if (copy_url) {
        text_put(line, "this URL is known, as a copy of ");
        text_safe(line, verdict->original_id.data, verdict->original_id.length);
    } else if (verdict->is_duplicate) {
        text_copy_of(line, verdict->reason, &verdict->evidence, verdict->original_id);
    } else {
        text_put(line, verdict->known      ? "already in the index"
                       : verdict->replaced ? "new text, replaced"
                       : check             ? "not seen before"
                                           : "new");
    }
}

/* Whether to look for what is nearest to an item: for one with content that is new, as long as few are compared. */
static bool wants_nearest(verdict_job *job, const doppel_item *item, const doppel_verdict *verdict) {
    if (!job->comparable || verdict->is_duplicate || (!item->document.text.length && !item->document.html.data) ||
        job->compared + job->comparable > MOST_COMPARED)
        return false;
    job->compared += job->comparable;
    return true;
}

/* Adds what is nearest to a new document, if anything is: "; the nearest is a.txt: similarity 0.758 (copies have at
 * least 0.8)". */
static doppel_status put_nearest(verdict_job *job, const doppel_item *item, doppel_error *error) {
    const doppel_similar_options options = {.size = sizeof options, .limit = 1, .similarity = LEAST_SIMILARITY};
    doppel_stored_list list = {0};
    doppel_item asked = *item;
    asked.document.id.length = 0; /* it is compared by its content */
    doppel_status status = doppel_engine_find_similar(job->cli.engine, &asked, &options, &list, error);
    if (status == DOPPEL_OK && list.count) {
        text_put(&job->line, "; the nearest is ");
        text_safe(&job->line, list.stored[0].id.data, list.stored[0].id.length);
        text_format(&job->line, ": similarity %.3f (copies have at least %g)", list.stored[0].similarity,
                    doppel_engine_get_options(job->cli.engine)->similarity);
    }
    doppel_stored_list_free(&list);
    return status;
}

static doppel_status write_line(feed *f, const doppel_item *item, const doppel_verdict *verdict) {
    verdict_job *job = (verdict_job *)f;
    doppel_error error = {0};
    bool copy_url;
    count_verdict(job, &item->document, verdict);
    if (job->reader_closed)
        return DOPPEL_OK;
    job->line.length = 0;
    doppel_status status = find_copy_url(job, item, verdict, &copy_url, &error);
    if (job->sentences)
        put_sentence(&job->line, verdict, f->check, copy_url);
    else
        text_verdict(&job->line, verdict, true);
    if (status == DOPPEL_OK && wants_nearest(job, item, verdict))
        status = put_nearest(job, item, &error);
    if (status != DOPPEL_OK) {
        message_error(&error);
        failure_reported = true;
        return status;
    }
    text_put(&job->line, "\n");
    return job->line.failed ? DOPPEL_ERROR_MEMORY
                            : ignore_closed_reader(job, writer_add(&job->out, job->line.data, job->line.length));
}

/* Verdicts are printed as soon as the documents are on disk. */
static doppel_status flush_lines(feed *f) {
    verdict_job *job = (verdict_job *)f;
    return ignore_closed_reader(job, writer_flush(&job->out));
}

/* ---- the end ---- */

static uint64_t all_duplicates(const verdict_job *job) {
    return job->by[DOPPEL_REASON_URL] + job->by[DOPPEL_REASON_CONTENT] + job->by[DOPPEL_REASON_TITLE];
}

/* Says what was not compared as may be expected. A check of addresses alone is. */
static void tell_kinds(const verdict_job *job) {
    bool asked = job->feed.check && job->textless == job->documents;
    unsigned long long textless = asked ? 0 : job->textless, bare = job->bare;
    const char *place = job->cli.place.needs.folder ? "--index" : "--store";
    if (textless)
        message_summary("%llu document%s without a text: compared by URL and title alone", textless,
                        textless == 1 ? "" : "s");
    if (bare && job->feed.check)
        message("warning: %llu text%s only an address, compared as words; to look an address up: doppel check %s %s "
                "ADDRESS",
                bare, bare == 1 ? " is" : "s are", place, job->cli.path);
    else if (bare)
        message("warning: %llu text%s only an address, added as words; a page by its address alone is the record "
                "{\"url\":\"ADDRESS\"}",
                bare, bare == 1 ? " is" : "s are");
}

/* With --output, and after the sentences of an add: in a sentence on stderr; with --json on stdout. */
static int print_summary(const verdict_job *job, int code) {
    const cli_args *args = job->cli.args;
    const char *output = args_text(args, "output");
    unsigned long long documents = job->documents, duplicates = all_duplicates(job);
    if (is_stdout(output) && (!job->sentences || job->feed.check || documents < 2))
        return code;
    char known[48] = "";
    if (job->known_unique)
        snprintf(known, sizeof known, "%llu already in the index, ", (unsigned long long)job->known_unique);
    message_summary("%llu document%s: %llu new, %s%llu duplicate%s (%llu by URL, %llu by content, %llu by title%s)",
                    documents, documents == 1 ? "" : "s", documents - duplicates - job->known_unique, known, duplicates,
                    duplicates == 1 ? "" : "s", (unsigned long long)job->by[DOPPEL_REASON_URL],
                    (unsigned long long)job->by[DOPPEL_REASON_CONTENT],
                    (unsigned long long)job->by[DOPPEL_REASON_TITLE],
                    job->by[DOPPEL_REASON_TITLE] ? ": an index made with --titles off ignores titles" : "");
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

/* Whether the operands are addresses, which doppel check looks up. Prints a message and returns false when only some
 * are. */
static bool find_addresses(const cli_args *args, bool check, bool *addresses) {
    size_t count = 0;
    const char *one = NULL;
    for (size_t i = 0; i < args->operand_count; i++)
        if (strstr(args->operands[i], "://") && access(args->operands[i], F_OK)) {
            one = args->operands[i];
            count++;
        }
    if (one && !check)
        message(
            "%s: nothing is fetched; to add a page by its address alone: echo '{\"url\":\"%s\"}' | doppel add ... -",
            one, one);
    else if (one && count < args->operand_count)
        message("check takes addresses or INPUTs, not both: %s is an address", one);
    *addresses = one && check;
    return !*addresses || count == args->operand_count;
}

/* The value of verdict_job.comparable. */
static uint64_t comparable_documents(const verdict_job *job) {
    doppel_engine_stats stats;
    if (!job->sentences || !job->feed.check || !job->cli.place.needs.folder ||
        doppel_engine_get_options(job->cli.engine)->near != DOPPEL_NEAR_SIMILARITY)
        return 0;
    doppel_engine_get_stats(job->cli.engine, &stats);
    return stats.documents;
}

static int run(verdict_job *job) {
    name_list fields;
    job->comparable = comparable_documents(job);
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
    verdict_job job = {
        .feed = {.check = check, .text_optional = true, .on_verdict = write_line, .on_batch_end = flush_lines}};
    *duplicates = 0;
    int code = check_usage(args, &job.sentences);
    if (code == EXIT_DONE && !find_addresses(args, check, &job.feed.addresses))
        code = EXIT_USAGE;
    if (code != EXIT_DONE)
        return code;
    job.feed.cli = &job.cli;
    job.feed.make_item = args_text(args, "id") ? name_item : NULL;
    job.feed.batch = batch_option(args);
    code = engine_open(&job.cli, args, check ? ENGINE_READ : ENGINE_MAKE);
    if (code == EXIT_DONE &&
        (code = writer_open(&job.out, args_text(args, "output"), output_threads(args))) == EXIT_DONE) {
        code = run(&job);
        /* Verdicts that were written are kept, however the command ends; without any, the file is left unchanged. */
        int written = writer_close(&job.out, reading_failed() && !job.documents ? code : EXIT_DONE);
        code = code ? code : written;
        tell_kinds(&job);
        code = print_summary(&job, code);
    } else {
        writer_close(&job.out, code);
    }
    *duplicates = all_duplicates(&job);
    feed_free(&job.feed);
    text_free(&job.line);
    return engine_close(&job.cli, code);
}
