/* cmd_overlap.c - doppel overlap: documents that contain much of another, with the passages they share.
 *
 * For programs a JSON line each, in input order; for people the pairs that share the most, ranked, in lines or on a
 * page with their passages side by side. For that, only the pairs that are shown are kept in memory. */
#include "batch/search_command.h"
#include "commands.h"
#include "common/message.h"
#include "report/pairs.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_option overlap_options[] = {
    {"containment", 'c', OPTION_TEXT, "C",
     "pairs where one document has at least this share of the other's shingles (if neither this nor --words is given: "
     "0.2, or 30 words)"},
    {"words", 'w', OPTION_COUNT, "N",
     "pairs that share a run of at least N words; none is missed. With --containment, either is enough"},
    {"against", 0, OPTION_FILES, "FILE",
     "only pairs of a document of INPUT, a, and one of this file or folder, b: e.g. evaluation texts"},
    AGAINST_OPTIONS,
    {"html", 0, OPTION_OUTPUT, "FILE",
     "also write an HTML page with the pairs ranked and their passages side by side; it needs no script and no "
     "network"},
    {"top", 0, OPTION_COUNT, "N", "show the first N pairs of the ranking and of the page (default 50)"},
    {"print", 0, OPTION_TEXT, "FORM",
     "text: lines to read, the pairs that share the most first; jsonl (default: text on a terminal, else jsonl)"},
    {"sample", 0, OPTION_COUNT, "P",
     "for --containment: find candidates by one shingle in P (default 4): of pairs that share s shingles, (1 - 1/P)^s "
     "are missed"},
    SEARCH_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct overlap_job {
    search_command search;
    bool ranking; /* lines for people */
    bool silent;  /* stdout has the page: no lines */
    writer html;  /* with --html */
    struct ranked_pair *best;
    size_t count, room;
} overlap_job;

/* ---- a line for programs ---- */

static void put_passage(text_buffer *line, const doppel_passage *passage, doppel_slice begins) {
    text_format(line, "{\"a\":[%llu,%llu],\"b\":[%llu,%llu]", (unsigned long long)passage->a_start,
                (unsigned long long)passage->a_end, (unsigned long long)passage->b_start,
                (unsigned long long)passage->b_end);
    text_member_count(line, "words", passage->words);
    text_member_string(line, "text", begins);
    text_put(line, "}");
}

static doppel_status write_line(search_command *f, const doppel_overlap *pair) {
    text_buffer *line = &f->line;
    text_put(line, "{");
    text_member_string(line, "a", pair->a_id);
    text_member_string(line, "b", pair->b_id);
    text_member_share(line, "containmentAB", pair->containment_ab);
    text_member_share(line, "containmentBA", pair->containment_ba);
    text_member(line, "passages");
    text_put(line, "[");
    for (size_t i = 0; i < pair->passage_count; i++) {
        text_put(line, i ? "," : "");
        put_passage(line, &pair->passages[i], pair->begins[i]);
    }
    text_put(line, "]}\n");
    return search_write_line(f);
}

/* ---- the best pairs, for people ---- */

enum { USUAL_TOP = 50, MOST_TOP = 10000 };

typedef struct ranked_pair {
    shared_pair pair; /* points into `bytes` and `passages` */
    text_buffer bytes;
    doppel_passage *passages;
} ranked_pair;

static void free_ranked(ranked_pair *ranked) {
    text_free(&ranked->bytes);
    free(ranked->passages);
}

/* What pairs are ranked by: the larger of their two shares, then how many words they share. */
static bool is_better(const shared_pair *a, const shared_pair *b) {
    double of_a = fmax(pair_share(a, 0), pair_share(a, 1)), of_b = fmax(pair_share(b, 0), pair_share(b, 1));
    return of_a != of_b ? of_a > of_b : a->words > b->words;
}

/* Copies what is shown of a pair; `texts` may be NULL. False: no memory. */
static bool copy_pair(ranked_pair *to, const shared_pair *pair, const doppel_slice *texts) {
    *to = (ranked_pair){.pair = *pair, .passages = malloc((pair->count + 1) * sizeof *to->passages)};
    if (!to->passages)
        return false;
    if (pair->count)
        memcpy(to->passages, pair->passages, pair->count * sizeof *to->passages);
    to->pair.passages = to->passages;
    doppel_slice part[5] = {
        {pair->side[0].id, pair->side[0].id_length}, {pair->side[1].id, pair->side[1].id_length}, pair->quote};
    for (size_t i = 0; texts && i < 2; i++) {
        shared_side *side = &to->pair.side[i];
        part[3 + i] = texts[i];
        if ((side->cut = texts[i].length > MOST_TEXT))
            part[3 + i].length = MOST_TEXT;
        side->length = part[3 + i].length;
    }
    for (size_t i = 0; i < 5; i++)
        text_add(&to->bytes, part[i].data, part[i].length);
    const char *at = to->bytes.data;
    if (to->bytes.failed)
        return false;
    to->pair.side[0].id = at, at += part[0].length;
    to->pair.side[1].id = at, at += part[1].length;
    to->pair.quote.data = at, at += part[2].length;
    to->pair.side[0].text = at, at += part[3].length;
    to->pair.side[1].text = at;
    return true;
}

/* Takes a pair among the best, if it is one of them; of equal pairs the earlier one comes first. */
static doppel_status rank_pair(overlap_job *job, const doppel_overlap *found) {
    shared_pair pair = {.side = {{.id = found->a_id.data, .id_length = found->a_id.length, .words = found->words_a},
                                 {.id = found->b_id.data, .id_length = found->b_id.length, .words = found->words_b}},
                        .passages = found->passages,
                        .count = found->passage_count};
    size_t longest = pair_sum(&pair), place = job->count;
    doppel_slice texts[2];
    ranked_pair ranked;
    if (pair.count) {
        const doppel_passage *passage = &found->passages[longest];
        pair.quote = found->begins[longest];
        pair.quote_cut = pair.quote.length < passage->a_end - passage->a_start;
    }
    while (place && is_better(&pair, &job->best[place - 1].pair))
        place--;
    if (place == job->room)
        return DOPPEL_OK;
    if (job->html.bytes) {
        doppel_status status = doppel_overlap_get_texts(found, &texts[0], &texts[1], NULL);
        if (status != DOPPEL_OK)
            return status;
    }
    if (!copy_pair(&ranked, &pair, job->html.bytes ? texts : NULL)) {
        free_ranked(&ranked);
        return DOPPEL_ERROR_MEMORY;
    }
    if (job->count == job->room)
        free_ranked(&job->best[--job->count]);
    memmove(&job->best[place + 1], &job->best[place], (job->count - place) * sizeof *job->best);
    job->best[place] = ranked;
    job->count++;
    return DOPPEL_OK;
}

/* doppel_overlap_options.pair */
static doppel_status take_pair(const doppel_overlap *pair, void *user) {
    overlap_job *job = user;
    doppel_status status = DOPPEL_OK;
    if (job->ranking || job->html.bytes)
        status = rank_pair(job, pair);
    return status == DOPPEL_OK && !job->ranking && !job->silent ? write_line(&job->search, pair) : status;
}

/* "3 pairs of 12 documents share text" */
static void put_found(text_buffer *out, const doppel_overlap_counts *counts) {
    uint64_t documents = counts->input.documents + counts->against.documents;
    text_format(out, "%llu pair%s of %llu document%s share%s text", (unsigned long long)counts->pairs,
                counts->pairs == 1 ? "" : "s", (unsigned long long)documents, documents == 1 ? "" : "s",
                counts->pairs == 1 ? "s" : "");
}

#define FEW "There are fewer than two documents to compare."

/* "No two of 12 documents share that much; ..." */
static void put_none(text_buffer *out, const doppel_overlap_counts *counts) {
    uint64_t documents = counts->input.documents + counts->against.documents;
    if (documents < 2)
        text_put(out, FEW);
    else
        text_format(out, "No two of %llu documents share that much; a smaller --words N or --containment C finds more.",
                    (unsigned long long)documents);
}

/* The same on stderr, where lines or a page are written. */
static void tell_none(const doppel_overlap_counts *counts) {
    text_buffer out = {0};
    put_none(&out, counts);
    if (!out.failed)
        message_summary("%c%.*s", tolower((unsigned char)*out.data), (int)out.length - 1, out.data + 1);
    text_free(&out);
}

static doppel_status write_ranking(overlap_job *job, const doppel_overlap_counts *counts) {
    text_buffer *out = &job->search.line;
    int columns = terminal_columns(stdout);
    if (!counts->pairs) {
        put_none(out, counts);
        text_put(out, "\n");
        return search_write_line(&job->search);
    }
    put_found(out, counts);
    text_put(out, ". How much of each, in words, is in shared passages:\n\n");
    for (size_t i = 0; i < job->count; i++) {
        pair_lines(out, &job->best[i].pair, i + 1, columns > 0 ? (size_t)columns : 80);
        text_put(out, "\n");
    }
    if (counts->pairs > job->count)
        text_format(out, "%llu more pair%s; --top N shows more.\n", (unsigned long long)(counts->pairs - job->count),
                    counts->pairs - job->count == 1 ? "" : "s");
    if (!job->html.bytes)
        text_put(out, "Side by side: add --html page.html, or run doppel compare on two of them.\n");
    return search_write_line(&job->search);
}

/* Takes the folder that all names have in common off them. Returns its length, with its slash. */
static size_t shorten_names(overlap_job *job, const char *name) {
    size_t folder = job->best[0].pair.side[0].id_length;
    for (size_t i = 0; i < job->count; i++)
        folder = pair_same_folder(&job->best[i].pair, name, folder);
    for (size_t i = 0; i < job->count; i++)
        pair_shorten_names(&job->best[i].pair, folder);
    return folder;
}

/* "in.jsonl and 2 more, compared with eval.jsonl, 2026-11-18" */
static void write_corpus(const overlap_job *job, html *page, const char *const *against, size_t against_count) {
    const cli_args *args = job->search.args;
    html_corpus(page, args->operands[0], args->operand_count);
    if (against_count) {
        html_put(page, ", compared with ");
        html_id(page, against[0], strlen(against[0]), LONG_ID);
        if (against_count > 1)
            html_format(page, " and %zu more", against_count - 1);
    }
}

/* The result: how many pairs there are, and what the first of them shares; then what is shown of them. */
static void write_result(overlap_job *job, html *page, const doppel_overlap_counts *counts) {
    const char *name = job->count ? job->best[0].pair.side[0].id : "";
    size_t folder = job->count ? shorten_names(job, name) : 0;
    uint64_t documents = counts->input.documents + counts->against.documents;
    if (documents < 2) {
        html_put(page, FEW);
        return;
    }
    if (!job->count) {
        html_put(page, "No two of ");
        html_count(page, documents, "document", "documents");
        html_put(page, " share that much text.</p><p class=\"soft\">A smaller <code>--words N</code> or "
                       "<code>--containment C</code> finds more.");
        return;
    }
    html_count(page, counts->pairs, "pair", "pairs");
    html_put(page, " among ");
    html_count(page, documents, "document", "documents");
    html_put(page, counts->pairs > 1 ? " share text. Most of all, " : " shares text: ");
    pair_page_sentence(page, &job->best[0].pair);
    html_put(page, "</p><p class=\"soft\">Shared passages are <mark>shaded</mark>.");
    if (counts->pairs > job->count) {
        html_format(page, " %s ", job->count == 1 ? "This page has the pair that shares most;" : "This page has the");
        if (job->count > 1) {
            html_number(page, job->count);
            html_put(page, " pairs that share most;");
        }
        html_put(page, " <code>--top N</code> shows more.");
    }
    if (folder) {
        html_put(page, " All documents are in <bdi>");
        html_text(page, name, folder);
        html_put(page, "</bdi>.");
    }
}

static doppel_status write_page(overlap_job *job, const doppel_overlap_counts *counts, const char *const *against,
                                size_t against_count) {
    html page = {.out = &job->html};
    pair_page_begin(&page);
    write_corpus(job, &page, against, against_count);
    html_result(&page);
    write_result(job, &page, counts);
    html_contents(&page, NULL, 0);
    if (job->count)
        html_put(&page,
                 job->count > 1 ? "<h2>Pairs, those that share the most first</h2>" : "<h2>Shared passages</h2>");
    for (size_t i = 0; i < job->count; i++)
        pair_page_pair(&page, &job->best[i].pair, i + 1);
    pair_page_end(&page, true);
    return page.status;
}

/* ---- the command ---- */

static int print_summary(const search_command *f, const doppel_overlap_counts *counts, int code) {
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "recipe", doppel_slice_of(doppel_recipe_text(f->loaded.recipe)));
    text_counts(&out, &counts->input);
    text_member_count(&out, "against", counts->against.documents);
    text_member_count(&out, "copies", counts->copies);
    text_member_count(&out, "samples", counts->samples);
    text_member_count(&out, "frequent", counts->frequent);
    text_member_count(&out, "candidates", counts->candidates);
    text_member_count(&out, "pairs", counts->pairs);
    text_member_count(&out, "spilledBytes", counts->spilled_bytes);
    text_put(&out, "}\n");
    return finish_text(&out, code);
}

static int find(overlap_job *job, const char *const *against, size_t against_count) {
    search_command *f = &job->search;
    const cli_args *args = f->args;
    const doppel_input_options known = against_options(args);
    doppel_overlap_options options = {.size = sizeof options,
                                      .recipe = f->loaded.recipe,
                                      .words = args_number(args, "words", 0),
                                      .sample = args_number(args, "sample", 0),
                                      .against = against,
                                      .against_count = against_count,
                                      .content = f->content,
                                      .memory = f->memory,
                                      .tmp = f->tmp,
                                      .input = &f->input,
                                      .against_input = &known,
                                      .pair = take_pair,
                                      .user = job};
    doppel_overlap_counts counts = {0};
    doppel_error error = {0};
    bool whole;
    if (!args_share(args, "containment", &options.containment) || !check_against(args))
        return EXIT_USAGE;
    doppel_status status = doppel_overlap_find(args->operands, args->operand_count, &options, &counts, &error);
    if (status == DOPPEL_OK && job->ranking)
        status = write_ranking(job, &counts);
    if (status == DOPPEL_OK && job->html.bytes)
        status = write_page(job, &counts, against, against_count);
    if (status != DOPPEL_OK && !error.message[0])
        snprintf(error.message, sizeof error.message, "%s", doppel_status_name(status));
    doppel_input_counts read = add_counts(&counts.input, &counts.against);
    int code = search_end(f, status, &error, &read, &whole);
    if (job->html.bytes) {
        int written = writer_close(&job->html, whole ? EXIT_DONE : EXIT_STORE);
        code = code || !whole ? code : written;
    }
    if (whole && !job->ranking && !counts.pairs)
        tell_none(&counts);
    return whole && args_flag(args, "json") ? print_summary(f, &counts, code) : code;
}

/* The options on how pairs are shown. Returns an exit code, with a message unless it is EXIT_DONE. */
static int open_views(overlap_job *job) {
    const cli_args *args = job->search.args;
    const char *path = args_text(args, "html");
    bool to_stdout = is_stdout(args_text(args, "output"));
    unsigned ranking = to_stdout && isatty(STDOUT_FILENO);
    if (!choose_one(args, "print", &ranking) || !args_positive(args, "words") || !args_positive(args, "sample"))
        return EXIT_USAGE;
    job->silent = path && is_stdout(path) && to_stdout;
    job->ranking = ranking && !job->silent;
    job->room = (size_t)args_number(args, "top", USUAL_TOP);
    if (!job->room || job->room > MOST_TOP) {
        message("--top takes a number from 1 to %d", MOST_TOP);
        return EXIT_USAGE;
    }
    if (args_text(args, "top") && !job->ranking && !path) {
        message("--top is for the ranking and for --html; with JSON lines, give --print text or leave --top out");
        return EXIT_USAGE;
    }
    job->best = calloc(job->room + 1, sizeof *job->best);
    if (!job->best) {
        message("no memory");
        return EXIT_STORE;
    }
    return path ? writer_open(&job->html, path, output_threads(args)) : EXIT_DONE;
}

int cmd_overlap(const cli_args *args) {
    overlap_job job = {.count = 0};
    size_t count;
    const char **against = NULL;
    int code = search_open(&job.search, args);
    if (code == EXIT_DONE)
        code = open_views(&job);
    if (code == EXIT_DONE)
        code = against_paths(args, &against, &count);
    if (code == EXIT_DONE)
        code = find(&job, against, count);
    if (job.html.bytes)
        writer_close(&job.html, EXIT_USAGE);
    for (size_t i = 0; i < job.count; i++)
        free_ranked(&job.best[i]);
    free(job.best);
    search_close(&job.search);
    free(against);
    return code;
}
