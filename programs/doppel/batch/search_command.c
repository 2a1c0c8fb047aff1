/* search_command.c - what overlap and mirrors share. */
#include "batch/search_command.h"

#include "common/message.h"
#include "common/progress.h"
#include "shared/outputs.h"

#include <stdlib.h>
#include <string.h>

int search_open(search_command *f, const cli_args *args) {
    *f = (search_command){.args = args,
                          .input = reading_options(args),
                          .memory = args_number(args, "memory", 0),
                          .tmp = args_text(args, "tmp")};
    if (!check_json(args) || !content_option(args, &f->content) || !check_outputs(args))
        return EXIT_USAGE;
    int code = load_recipe(args, args_text(args, "recipe"), &f->loaded);
    if (code == EXIT_DONE)
        code = writer_open(&f->out, args_text(args, "output"), output_threads(args));
    if (code != EXIT_DONE)
        return code;
    progress_begin("reading");
    return EXIT_DONE;
}

void search_close(search_command *f) {
    if (f->out.bytes)
        writer_close(&f->out, EXIT_USAGE);
    text_free(&f->line);
    free_recipe(&f->loaded);
}

doppel_status search_write_line(search_command *f) {
    return writer_add_text(&f->out, &f->line);
}

int search_end(search_command *f, doppel_status status, const doppel_error *error, const doppel_input_counts *counts,
               bool *whole) {
    int code = reading_ended(status, &f->input, error, counts);
    bool done = status == DOPPEL_OK && !nothing_read(f->args, counts);
    int written = writer_close(&f->out, done || output_closed() ? EXIT_DONE : code);
    *whole = done && written == EXIT_DONE;
    return written ? written : code;
}
