/* cmd_df.c - doppel df: document-frequency tables: create, merge, describe. */
#include "commands.h"
#include "common/message.h"
#include "shared/outputs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const cli_option df_options[] = {
    {"output", 'o', OPTION_OUTPUT, "TABLE", "write the table to this file, which appears once it is complete"},
    RECIPE_OPTIONS,
    {"min-df", 0, OPTION_COUNT, "N", "leave out features found in fewer than N documents"},
    {"memory", 0, OPTION_MEMORY, "BYTES", "use about this much memory, then temporary files (default 1G)"},
    TMP_OPTION,
    {"merge", 0, OPTION_FLAG, NULL, "merge tables: add up their counts"},
    {"show", 0, OPTION_FLAG, NULL, "describe a table"},
    {"json", 0, OPTION_FLAG, NULL, "print a summary as one JSON object"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* The builder is not thread-safe, so it has a lock; sketching is most of the work. */
typedef struct df_job {
    sketch_job sketch;
    doppel_df_builder *builder;
    pthread_mutex_t lock;
    doppel_error error;
} df_job;

static doppel_status document(void *state, const doppel_document *document, doppel_output *output) {
    (void)output;
    const sketch_worker *worker = state;
    df_job *job = worker->job;
    doppel_sketch sketch;
    doppel_status status = doppel_sketcher_run(worker->sketcher, document->text, &sketch);
    if (status != DOPPEL_OK)
        return status;
    pthread_mutex_lock(&job->lock);
    status = doppel_df_builder_add(job->builder, sketch.set, sketch.set_count, &job->error);
    pthread_mutex_unlock(&job->lock);
    return status;
}

/* Describes a table: lines for people, or one JSON object. `counts` may be NULL. */
static int describe(const cli_args *args, const char *path, const doppel_input_counts *counts) {
    doppel_df *df;
    doppel_error error;
    doppel_status status = doppel_df_open(path, &df, &error);
    if (status != DOPPEL_OK) {
        message_error(&error);
        return EXIT_STORE;
    }
    unsigned long long documents = doppel_df_documents(df), features = doppel_df_features(df);
    const char *recipe = doppel_df_recipe(df);
    text_buffer out = {0};
    if (!args_flag(args, "json")) {
        printf("documents  %llu\nfeatures   %llu\nrecipe     ", documents, features);
        print_safe(stdout, recipe, strlen(recipe));
        printf("\ndigest     %s\n", doppel_df_digest(df));
    } else {
        text_put(&out, "{");
        text_member_string(&out, "table", doppel_slice_of(path));
        text_member_string(&out, "recipe", doppel_slice_of(recipe));
        text_member_string(&out, "digest", doppel_slice_of(doppel_df_digest(df)));
        text_member_count(&out, "features", features);
        if (counts)
            text_counts(&out, counts);
        else
            text_member_count(&out, "documents", documents);
        text_put(&out, "}\n");
    }
    doppel_df_close(df);
    return finish_text(&out, EXIT_DONE);
}

/* After a table was written: with --json its summary. */
static int finish(const cli_args *args, int code, const char *path, const doppel_input_counts *counts) {
    int described = args_flag(args, "json") ? describe(args, path, counts) : EXIT_DONE;
    return code ? code : described;
}

static int merge(const cli_args *args, const char *path) {
    doppel_error error;
    doppel_status status = doppel_df_merge(args->operands, args->operand_count, path, &error);
    if (status != DOPPEL_OK) {
        message_error(&error);
        return exit_code(status);
    }
    return finish(args, EXIT_DONE, path, NULL);
}

static int count(const cli_args *args, df_job *job, const char *path) {
    doppel_input_counts counts;
    doppel_work work = {.user = job, .begin = begin_sketching, .document = document, .end = end_sketching};
    uint64_t least = args_number(args, "min-df", 0);
    int code = run_inputs(args, &work, &counts);
    if (job->error.code != DOPPEL_OK)
        message_error(&job->error);
    if (reading_failed() || nothing_read(args, &counts))
        return code;
    doppel_status status =
        doppel_df_builder_save(job->builder, path, least < UINT32_MAX ? (uint32_t)least : UINT32_MAX, &job->error);
    if (status != DOPPEL_OK) {
        message_error(&job->error);
        return EXIT_STORE;
    }
    return finish(args, code, path, &counts);
}

/* A table counts the same whatever the weight, and weight=tfidf would need the table that is being created. */
static int load_counted_recipe(const cli_args *args, loaded_recipe *loaded) {
    static const char tfidf[] = "weight=tfidf";
    const char *given = args_text(args, "recipe");
    char *text = given ? strdup(given) : NULL;
    char *weight = text ? strstr(text, tfidf) : NULL;
    *loaded = (loaded_recipe){0};
    if (given && !text) {
        message("no memory");
        return EXIT_STORE;
    }
    if (weight)
        memmove(weight + strlen("weight=tf"), weight + strlen(tfidf), strlen(weight + strlen(tfidf)) + 1);
    int code = load_recipe(args, text, loaded);
    free(text);
    return code;
}

static int build(const cli_args *args, const char *path) {
    loaded_recipe loaded;
    df_job job = {.lock = PTHREAD_MUTEX_INITIALIZER};
    int code = load_counted_recipe(args, &loaded);
    if (code == EXIT_DONE) {
        job.sketch = (sketch_job){loaded.recipe, DOPPEL_WANT_SET};
        doppel_status status = doppel_df_builder_create(loaded.recipe, (size_t)args_number(args, "memory", 0),
                                                        args_text(args, "tmp"), &job.builder, &job.error);
        if (status != DOPPEL_OK) {
            message_error(&job.error);
            code = exit_code(status);
        } else {
            code = count(args, &job, path);
        }
    }
    doppel_df_builder_free(job.builder);
    free_recipe(&loaded);
    return code;
}

int cmd_df(const cli_args *args) {
    const char *path = args_text(args, "output");
    if (args_flag(args, "show")) {
        if (args->operand_count == 1 && !path && !args_flag(args, "merge"))
            return describe(args, args->operands[0], NULL);
        message("df --show takes one table and nothing else: doppel df --show TABLE");
        return EXIT_USAGE;
    }
    if (!path) {
        message("df needs an output: doppel df %s -o TABLE",
                args_flag(args, "merge") ? "--merge A.df B.df" : "INPUT...");
        return EXIT_USAGE;
    }
    if (args_flag(args, "merge") && args_text(args, "min-df")) {
        message("df --merge adds up whole tables: --min-df applies only when documents are counted");
        return EXIT_USAGE;
    }
    return args_flag(args, "merge") ? merge(args, path) : build(args, path);
}
