/* cmd_mirrors.c - doppel mirrors: hosts and prefixes whose pages at equal paths are near-identical. */
#include "batch/search_command.h"
#include "commands.h"

#include "common/message.h"

#include <string.h>

const cli_option mirrors_options[] = {
    {"page", 'p', OPTION_TEXT, "URL",
     "only mirrors of this page: a has it, and \"page\" is the same page in b, or null where b does not have it"},
    {"min-paths", 0, OPTION_COUNT, "N", "mirrors share at least N paths (default 3)"},
    {"min-score", 0, OPTION_TEXT, "S", "at least this share of the shared paths matches (default 0.5)"},
    {"similarity", 's', OPTION_TEXT, "T",
     "pages match whose shingles have a Jaccard similarity of at least T, estimated from 64 slots (default 0.8)"},
    {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},
    SEARCH_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* doppel_mirrors_options.mirror */
static doppel_status write_mirror(const doppel_mirror *mirror, void *user) {
    search_command *f = user;
    fputs("{\"a\":", f->line);
    print_json(f->line, mirror->a, strlen(mirror->a));
    fputs(",\"b\":", f->line);
    print_json(f->line, mirror->b, strlen(mirror->b));
    fprintf(f->line, ",\"sharedPaths\":%llu,\"matchingPaths\":%llu,\"score\":%.6g", (unsigned long long)mirror->shared,
            (unsigned long long)mirror->matching, mirror->score);
    if (args_text(f->args, "page")) {
        fputs(",\"page\":", f->line);
        if (mirror->page)
            print_json(f->line, mirror->page, strlen(mirror->page));
        else
            fputs("null", f->line);
    }
    fputs("}\n", f->line);
    return search_write_line(f);
}

static void print_summary(const search_command *f, const doppel_mirrors_counts *counts) {
    printf("{\"recipe\":\"%s\"", doppel_recipe_text(f->loaded.recipe));
    print_counts(stdout, &counts->input);
    printf(",\"pages\":%llu,\"frequent\":%llu,\"candidates\":%llu,\"mirrors\":%llu,\"spilledBytes\":%llu}\n",
           (unsigned long long)counts->pages, (unsigned long long)counts->frequent,
           (unsigned long long)counts->candidates, (unsigned long long)counts->mirrors,
           (unsigned long long)counts->spilled_bytes);
}

static int find(search_command *f) {
    const cli_args *args = f->args;
    doppel_mirrors_options options = {.size = sizeof options,
                                      .recipe = f->loaded.recipe,
                                      .min_paths = args_number(args, "min-paths", 0),
                                      .page = args_text(args, "page"),
                                      .content = f->content,
                                      .memory = f->memory,
                                      .tmp = f->tmp,
                                      .input = &f->input,
                                      .mirror = write_mirror,
                                      .user = f};
    doppel_mirrors_counts counts = {0};
    doppel_error error = {0};
    bool whole;
    if (!args_share(args, "min-score", &options.min_score) || !args_share(args, "similarity", &options.similarity))
        return EXIT_USAGE;
    doppel_status status = doppel_mirrors_find(args->operands, args->operand_count, &options, &counts, &error);
    int code = search_end(f, status, &error, &counts.input, &whole);
    if (whole && !counts.pages && counts.input.documents)
        message("none of the documents has both words and an http URL");
    if (!whole || !args_flag(args, "json"))
        return code;
    print_summary(f, &counts);
    return finish_stdout(code);
}

int cmd_mirrors(const cli_args *args) {
    search_command f;
    int code = search_open(&f, args);
    if (code == EXIT_DONE)
        code = find(&f);
    search_close(&f);
    return code;
}
