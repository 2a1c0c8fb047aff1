/* df_build.c - counts in how many documents each feature occurs: create, add a document's features, save.
 *
 * Counts live in a hash table. When it would outgrow its memory, it is written out as a table file of its own; saving
 * merges those files with what is left in memory. */
#include "sketch/df.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_MEMORY ((size_t)1 << 30)

/* Features that there is room for at least, whatever the memory. */
#define LEAST_FEATURES 682

struct doppel_df_builder {
    char *recipe;
    uint64_t documents;
    dp_hashmap counts; /* by feature */
    size_t most_features;
    char *folder; /* of the files written out; made when the first one is */
    char *tmp;
    char **files;
    size_t file_count, file_capacity;
};

/* ---- runs ---- */

/* The table's features in order. */
static doppel_status sort_table(doppel_df_builder *b, dp_df_run *run, doppel_error *error) {
    uint64_t *hashes = malloc((b->counts.count + 1) * sizeof *hashes),
             *scratch = malloc((b->counts.count + 1) * sizeof *scratch);
    uint32_t *counts = malloc((b->counts.count + 1) * sizeof *counts);
    if (!hashes || !scratch || !counts) {
        free(hashes);
        free(scratch);
        free(counts);
        return dp_no_memory(error);
    }
    size_t count = 0;
    for (size_t i = 0; i < b->counts.room; i++)
        if (b->counts.places[i].value)
            hashes[count++] = b->counts.places[i].key;
    dp_sort64(hashes, count, scratch);
    for (size_t i = 0; i < count; i++)
        counts[i] = (uint32_t)dp_hashmap_find(&b->counts, hashes[i]);
    free(scratch);
    *run = (dp_df_run){hashes, counts, count, 0};
    return DOPPEL_OK;
}

static void free_run(dp_df_run *run) {
    free((void *)(uintptr_t)run->hashes);
    free((void *)(uintptr_t)run->counts);
}

static doppel_status make_folder(doppel_df_builder *b, doppel_error *error) {
    dp_buffer name = {0};
    doppel_status status = DOPPEL_OK;
    if (!dp_buffer_printf(&name, "%s/doppel-df.XXXXXX", b->tmp) || !dp_buffer_add(&name, "", 1))
        status = dp_no_memory(error);
    else if (!mkdtemp(name.data))
        status = dp_fail_at(error, DOPPEL_ERROR_IO, b->tmp, 0, "no folder can be made there: %s", strerror(errno));
    if (status)
        dp_buffer_free(&name);
    b->folder = name.data;
    return status;
}

/* Writes the table out as a file and empties it. */
static doppel_status spill(doppel_df_builder *b, doppel_error *error) {
    dp_buffer name = {0};
    doppel_status status = b->folder ? DOPPEL_OK : make_folder(b, error);
    if (status)
        return status;
    if (!dp_reserve(&b->files, &b->file_capacity, b->file_count + 1, sizeof *b->files) ||
        !dp_buffer_printf(&name, "%s/%zu.df", b->folder, b->file_count) || !dp_buffer_add(&name, "", 1)) {
        dp_buffer_free(&name);
        return dp_no_memory(error);
    }
    dp_df_run run;
    status = sort_table(b, &run, error);
    if (!status) {
        dp_df_content content = {&run, 1, b->recipe, 0, 0};
        status = dp_df_write(name.data, &content, error);
        free_run(&run);
    }
    if (status) {
        unlink(name.data); /* it may be there, though not safely */
        dp_buffer_free(&name);
        return status;
    }
    b->files[b->file_count++] = name.data;
    dp_hashmap_clear(&b->counts);
    return DOPPEL_OK;
}

/* ---- the public calls ---- */

doppel_status doppel_df_builder_create(const doppel_recipe *recipe, size_t memory, const char *tmp,
                                       doppel_df_builder **builder, doppel_error *error) {
    *builder = NULL;
    doppel_df_builder *b = calloc(1, sizeof *b);
    if (!b)
        return dp_no_memory(error);
    const char *environment = getenv("TMPDIR");
    b->tmp = strdup(tmp ? tmp : environment && *environment ? environment : "/tmp");
    b->recipe = strdup((recipe ? recipe : dp_recipe_default())->features.data);
    /* While the table doubles there are one and a half of it; sorting takes 20 bytes a feature beside one of it, which
     * has two features at most for each three places of 16 bytes, and so is less than twice of it. */
    size_t bytes = (memory ? memory : DEFAULT_MEMORY) / 2;
    for (b->most_features = LEAST_FEATURES; dp_hashmap_bytes(2 * b->most_features) <= bytes;)
        b->most_features *= 2;
    if (!b->tmp || !b->recipe || !dp_hashmap_reserve(&b->counts, LEAST_FEATURES)) {
        doppel_df_builder_free(b);
        return dp_no_memory(error);
    }
    *builder = b;
    return DOPPEL_OK;
}

void doppel_df_builder_free(doppel_df_builder *b) {
    if (!b)
        return;
    for (size_t i = 0; i < b->file_count; i++) {
        unlink(b->files[i]);
        free(b->files[i]);
    }
    if (b->folder)
        rmdir(b->folder);
    free(b->files);
    free(b->folder);
    free(b->tmp);
    free(b->recipe);
    dp_hashmap_free(&b->counts);
    free(b);
}

doppel_status doppel_df_builder_add(doppel_df_builder *b, const uint64_t *set, size_t count, doppel_error *error) {
    b->documents++;
    for (size_t i = 0; i < count; i++) {
        if (b->counts.count >= b->most_features)
            DP_TRY(spill(b, error));
        uint64_t *documents = dp_hashmap_add(&b->counts, set[i]);
        if (!documents)
            return dp_no_memory(error);
        *documents += *documents < UINT32_MAX;
    }
    return DOPPEL_OK;
}

/* The files written out, and what is in memory. */
static doppel_status open_runs(doppel_df_builder *b, doppel_df **tables, dp_df_run *runs, doppel_error *error) {
    for (size_t i = 0; i < b->file_count; i++) {
        doppel_status status = doppel_df_open(b->files[i], &tables[i], error);
        if (status)
            return status;
        runs[i + 1] = (dp_df_run){tables[i]->hashes, tables[i]->counts, tables[i]->header->features, 0};
    }
    return sort_table(b, &runs[0], error);
}

doppel_status doppel_df_builder_save(doppel_df_builder *b, const char *path, uint32_t min_df, doppel_error *error) {
    doppel_df **tables = calloc(b->file_count + 1, sizeof(doppel_df *));
    dp_df_run *runs = calloc(b->file_count + 1, sizeof *runs);
    doppel_status status = tables && runs ? open_runs(b, tables, runs, error) : dp_no_memory(error);
    if (!status) {
        dp_df_content content = {runs, b->file_count + 1, b->recipe, b->documents, min_df};
        status = dp_df_write(path, &content, error);
        free_run(&runs[0]);
    }
    for (size_t i = 0; tables && i < b->file_count; i++)
        doppel_df_close(tables[i]);
    free(tables);
    free(runs);
    return status;
}
