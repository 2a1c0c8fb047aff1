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
     "pages match if their shingles have a Jaccard similarity of at least T, estimated from 64 slots (default 0.8)"},
    {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},
    SEARCH_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* doppel_mirrors_options.mirror */
static doppel_status write_mirror(const doppel_mirror *mirror, void *user) {
    search_command *f = user;
    text_buffer *line = &f->line;
    text_put(line, "{");
    text_member_string(line, "a", doppel_slice_of(mirror->a));
    text_member_string(line, "b", doppel_slice_of(mirror->b));
    text_member_count(line, "sharedPaths", mirror->shared);
    text_member_count(line, "matchingPaths", mirror->matching);
    text_member_share(line, "score", mirror->score);
    if (args_text(f->args, "page"))
        text_member_string(line, "page", doppel_slice_of(mirror->page));
    text_put(line, "}\n");
    return search_write_line(f);
}

static int print_summary(const search_command *f, const doppel_mirrors_counts *counts, int code) {
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "recipe", doppel_slice_of(doppel_recipe_text(f->loaded.recipe)));
    text_counts(&out, &counts->input);
    text_member_count(&out, "pages", counts->pages);
    text_member_count(&out, "frequent", counts->frequent);
    text_member_count(&out, "candidates", counts->candidates);
    text_member_count(&out, "mirrors", counts->mirrors);
    text_member_count(&out, "spilledBytes", counts->spilled_bytes);
    text_put(&out, "}\n");
    return finish_text(&out, code);
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
    else if (whole && !counts.mirrors)
        message_summary(
            "no mirrors among %llu page%s; a smaller --min-paths N, --min-score S or --similarity T finds more",
            (unsigned long long)counts.pages, counts.pages == 1 ? "" : "s");
    return whole && args_flag(args, "json") ? print_summary(f, &counts, code) : code;
}

int cmd_mirrors(const cli_args *args) {
    search_command f;
    int code = search_open(&f, args);
    if (code == EXIT_DONE)
        code = find(&f);
    search_close(&f);
    return code;
}
