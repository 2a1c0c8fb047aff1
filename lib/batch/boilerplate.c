/* boilerplate.c - features that many documents share because they share a frame: menus, licences, signatures.
 *
 * A feature counts once a group: the documents that stay when nothing is left out stand for their groups, so that a
 * page with a thousand copies is not taken for a frame. Features that more than a share of them have (and more than
 * LEAST, so that small sets keep theirs) are left out of every set, and bands are made anew. */
#include "batch/batch.h"
#include "sketch/sketch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LEAST 8

/* ---- counting ---- */

static doppel_status count_features(doppel_batch *batch, doppel_df_builder *builder, uint64_t *groups,
                                    doppel_error *error) {
    uint64_t *set = NULL;
    size_t room = 0;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < batch->row_count && status == DOPPEL_OK; i++) {
        uint32_t d = batch->rows[i];
        const dp_doc *doc = &batch->docs[d];
        if (batch->original[d] != d)
            continue;
        if (!dp_reserve(&set, &room, doc->set_count, sizeof *set))
            status = dp_no_memory(error);
        if (status == DOPPEL_OK)
            status = dp_spill_read(&batch->journal, doc->set_at, set, doc->set_count * sizeof *set, error);
        if (status == DOPPEL_OK)
            status = doppel_df_builder_add(builder, set, doc->set_count, error);
        ++*groups;
        if (dp_stopped(batch->input.stop))
            status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        dp_batch_tell(batch, "boilerplate", i, batch->row_count);
    }
    free(set);
    return status;
}

/* Writes the table of frequent features to a file, maps it, and removes its name. */
static doppel_status open_table(doppel_batch *batch, doppel_df_builder *builder, uint64_t groups, doppel_error *error) {
    const char *tmp = batch->options.tmp ? batch->options.tmp : getenv("TMPDIR");
    char path[4096];
    double share = batch->options.boilerplate * (double)groups;
    uint64_t most = share > LEAST ? (uint64_t)share : LEAST;
    snprintf(path, sizeof path, "%s/doppel-%ld-%p.df", tmp ? tmp : "/tmp", (long)getpid(), (void *)batch);
    doppel_status status =
        doppel_df_builder_save(builder, path, most < UINT32_MAX ? (uint32_t)most + 1 : UINT32_MAX, error);
    if (status == DOPPEL_OK)
        status = doppel_df_open(path, &batch->frequent, error);
    unlink(path);
    if (status == DOPPEL_OK)
        batch->stats.frequent = doppel_df_features(batch->frequent);
    return status;
}

size_t dp_boilerplate_drop(const doppel_batch *batch, uint64_t *set, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; batch->frequent && i < count; i++)
        if (!doppel_df_get(batch->frequent, set[i]))
            set[kept++] = set[i];
    return batch->frequent ? kept : count;
}

/* ---- bands anew ---- */

typedef struct banding {
    doppel_batch *batch;
    const uint32_t *rows;
    size_t from, count; /* rows of the block at hand */
    uint32_t *keys;
    atomic_size_t next;
    _Atomic int status;
} banding;

static doppel_status band_row(banding *b, size_t i, uint64_t **set, size_t *room) {
    doppel_batch *batch = b->batch;
    uint32_t d = b->rows[b->from + i];
    const dp_doc *doc = &batch->docs[d];
    if (!dp_reserve(set, room, doc->set_count, sizeof **set))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = dp_spill_read(&batch->journal, doc->set_at, *set, doc->set_count * sizeof **set, NULL);
    size_t left = dp_boilerplate_drop(batch, *set, doc->set_count);
    batch->left[d] = (uint32_t)left;
    if (status == DOPPEL_OK && left)
        status =
            dp_bands_keys(*set, left, batch->stats.bands, batch->stats.rows, b->keys + i * (size_t)batch->stats.bands);
    return status;
}

static void run(void *user, size_t thread) {
    enum { SOME = 64 };
    banding *b = user;
    uint64_t *set = NULL;
    size_t room = 0, from;
    doppel_status status = DOPPEL_OK;
    (void)thread;
    while (status == DOPPEL_OK && (from = atomic_fetch_add(&b->next, SOME)) < b->count)
        for (size_t i = from; i < from + SOME && i < b->count && status == DOPPEL_OK; i++)
            status = band_row(b, i, &set, &room);
    if (status != DOPPEL_OK)
        atomic_store(&b->status, (int)status);
    free(set);
}

static doppel_status band_block(banding *b, doppel_error *error) {
    doppel_batch *batch = b->batch;
    atomic_store(&b->next, 0);
    dp_run_threads(batch->threads, run, b);
    doppel_status status = (doppel_status)atomic_load(&b->status);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "%s", doppel_status_name(status));
    for (size_t i = 0; i < b->count && status == DOPPEL_OK; i++)
        if (batch->left[b->rows[b->from + i]])
            status = dp_bands_add(batch, b->rows[b->from + i], b->keys + i * (size_t)batch->stats.bands, error);
    dp_batch_tell(batch, "bands", b->from, batch->row_count);
    return status;
}

/* Makes the rows and their keys again, of what is left of the sets. */
static doppel_status band_again(doppel_batch *batch, doppel_error *error) {
    uint32_t *rows = batch->rows;
    size_t count = batch->row_count;
    banding b = {.batch = batch, .rows = rows};
    b.keys = malloc((size_t)DP_BAND_BLOCK * (size_t)batch->stats.bands * sizeof *b.keys);
    batch->left = calloc(batch->count + 1, sizeof *batch->left);
    batch->rows = NULL;
    batch->row_count = batch->row_room = 0;
    dp_spill_close(&batch->keys);
    doppel_status status = b.keys && batch->left ? DOPPEL_OK : dp_no_memory(error);
    if (status == DOPPEL_OK)
        status = dp_spill_open(&batch->keys, NULL, NULL, batch->options.tmp, error);
    for (; b.from < count && status == DOPPEL_OK; b.from += DP_BAND_BLOCK) {
        b.count = count - b.from < DP_BAND_BLOCK ? count - b.from : DP_BAND_BLOCK;
        status = band_block(&b, error);
    }
    free(b.keys);
    free(rows);
    return status == DOPPEL_OK ? dp_bands_flush(batch, error) : status;
}

doppel_status dp_boilerplate_leave_out(doppel_batch *batch, doppel_error *error) {
    doppel_df_builder *builder = NULL;
    const doppel_recipe *recipe = batch->options.recipe ? batch->options.recipe : dp_recipe_default();
    uint64_t groups = 0;
    doppel_status status = doppel_df_builder_create(recipe, (size_t)1 << 28, batch->options.tmp, &builder, error);
    if (status == DOPPEL_OK)
        status = count_features(batch, builder, &groups, error);
    if (status == DOPPEL_OK)
        status = open_table(batch, builder, groups, error);
    doppel_df_builder_free(builder);
    return status == DOPPEL_OK ? band_again(batch, error) : status;
}
