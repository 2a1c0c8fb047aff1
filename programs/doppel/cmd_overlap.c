/* cmd_overlap.c - doppel overlap: documents that contain much of another, with the passages they share. */
#include "batch/search_command.h"
#include "commands.h"

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

static void put_passage(text_buffer *line, const doppel_passage *passage, doppel_slice begins) {
    text_format(line, "{\"a\":[%llu,%llu],\"b\":[%llu,%llu]", (unsigned long long)passage->a_start,
                (unsigned long long)passage->a_end, (unsigned long long)passage->b_start,
                (unsigned long long)passage->b_end);
    text_member_count(line, "words", passage->words);
    text_member_string(line, "text", begins);
    text_put(line, "}");
}

/* doppel_overlap_options.pair */
static doppel_status write_pair(const doppel_overlap *pair, void *user) {
    search_command *f = user;
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
    doppel_status status = doppel_overlap_find(args->operands, args->operand_count, &options, &counts, &error);
    doppel_input_counts read = add_counts(&counts.input, &counts.against);
    int code = search_end(f, status, &error, &read, &whole);
    return whole && args_flag(args, "json") ? print_summary(f, &counts, code) : code;
}

int cmd_overlap(const cli_args *args) {
    search_command f;
    size_t count;
    const char **against = NULL;
    int code = search_open(&f, args);
    if (code == EXIT_DONE)
        code = against_paths(args, &against, &count);
    if (code == EXIT_DONE)
        code = find(&f, against, count);
    search_close(&f);
    free(against);
    return code;
}
