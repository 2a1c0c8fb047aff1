/* cmd_overlap.c - doppel overlap: documents that contain much of another, with the passages they share. */
#include "batch/search_command.h"
#include "commands.h"

#include "common/message.h"
#include "engine/index_place.h"

#include <stdlib.h>

const cli_option overlap_options[] = {
    {"containment", 'c', OPTION_TEXT, "C",
     "pairs of which one has at least this share of the other's shingles (default 0.5, without --words)"},
    {"words", 'w', OPTION_COUNT, "N",
     "pairs that share a run of at least N words; none is missed. With --containment: one or the other"},
    {"against", 0, OPTION_FILES, "FILE",
     "only pairs of a document of INPUT, a, and one of this file or folder, b: e.g. evaluation texts"},
    AGAINST_OPTIONS,
    {"sample", 0, OPTION_COUNT, "P",
     "for --containment: look pairs up by one shingle of P (default 4): of pairs that share s shingles, (1 - 1/P)^s "
     "are missed"},
    SEARCH_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

static void print_passage(FILE *line, const doppel_passage *passage, doppel_slice begins) {
    fprintf(line, "{\"a\":[%llu,%llu],\"b\":[%llu,%llu],\"words\":%llu,\"text\":", (unsigned long long)passage->a_start,
            (unsigned long long)passage->a_end, (unsigned long long)passage->b_start,
            (unsigned long long)passage->b_end, (unsigned long long)passage->words);
    print_json(line, begins.data, begins.length);
    fputc('}', line);
}

/* doppel_overlap_options.pair */
static doppel_status write_pair(const doppel_overlap *pair, void *user) {
    search_command *f = user;
    fputs("{\"a\":", f->line);
    print_json(f->line, pair->a_id.data, pair->a_id.length);
    fputs(",\"b\":", f->line);
    print_json(f->line, pair->b_id.data, pair->b_id.length);
    fprintf(f->line, ",\"containmentAB\":%.6g,\"containmentBA\":%.6g,\"passages\":[", pair->containment_ab,
            pair->containment_ba);
    for (size_t i = 0; i < pair->passage_count; i++) {
        if (i)
            fputc(',', f->line);
        print_passage(f->line, &pair->passages[i], pair->begins[i]);
    }
    fputs("]}\n", f->line);
    return search_write_line(f);
}

static void print_summary(const search_command *f, const doppel_overlap_counts *counts) {
    printf("{\"recipe\":\"%s\"", doppel_recipe_text(f->loaded.recipe));
    print_counts(stdout, &counts->input);
    printf(",\"against\":%llu,\"copies\":%llu,\"samples\":%llu,\"frequent\":%llu,\"candidates\":%llu,\"pairs\":%llu,"
           "\"spilledBytes\":%llu}\n",
           (unsigned long long)counts->against.documents, (unsigned long long)counts->copies,
           (unsigned long long)counts->samples, (unsigned long long)counts->frequent,
           (unsigned long long)counts->candidates, (unsigned long long)counts->pairs,
           (unsigned long long)counts->spilled_bytes);
}

/* What was read on both sides, for the messages. */
static doppel_input_counts add_counts(const doppel_input_counts *a, const doppel_input_counts *b) {
    return (doppel_input_counts){a->documents + b->documents, a->bytes + b->bytes, a->bad + b->bad,
                                 a->repaired + b->repaired, a->unopened + b->unopened};
}

static int find(search_command *f, const char *const *against, size_t against_count) {
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
                                      .pair = write_pair,
                                      .user = f};
    doppel_overlap_counts counts = {0};
    doppel_error error = {0};
    bool whole;
    if (!args_share(args, "containment", &options.containment) || !check_against(args))
        return EXIT_USAGE;
    for (size_t i = 0; i < against_count; i++)
        if (!against_is_readable(against[i]))
            return EXIT_USAGE;
    doppel_status status = doppel_overlap_find(args->operands, args->operand_count, &options, &counts, &error);
    doppel_input_counts read = add_counts(&counts.input, &counts.against);
    int code = search_end(f, status, &error, &read, &whole);
    if (!whole || !args_flag(args, "json"))
        return code;
    print_summary(f, &counts);
    return finish_stdout(code);
}

int cmd_overlap(const cli_args *args) {
    search_command f;
    size_t count;
    const char **against = args_all(args, "against", &count);
    int code = search_open(&f, args);
    if (code == EXIT_DONE && !against)
        message("no memory");
    if (code == EXIT_DONE)
        code = against ? find(&f, against, count) : EXIT_STORE;
    search_close(&f);
    free(against);
    return code;
}
