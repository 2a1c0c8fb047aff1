/* boilerplate.c - features that many documents share because they share a frame: menus, licences, signatures.
 *
 * A feature counts once a group: the documents that stay when nothing is left out stand for their groups, so that a
 * page with a thousand copies is not taken for a frame. Features that more than a share of them have (and more than
 * LEAST, so that small sets keep theirs) are left out of every set, and bands are made anew. */
#include "batch/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LEAST 8

/* The memory of the builder of the table. */
#define BUILDER_MEMORY ((size_t)1 << 28)

/* ---- counting ---- */

static doppel_status count_features(doppel_batch *batch, doppel_df_builder *builder, uint64_t *groups,
                                    doppel_error *error) {
    const dp_key_rows *rows = &batch->rows;
    dp_set_buffer set = {0};
    dp_set_maker *maker = dp_set_maker_create(batch);
    doppel_status status = maker ? DOPPEL_OK : dp_no_memory(error);
    for (size_t i = 0; i < rows->count && status == DOPPEL_OK; i++) {
        uint32_t d = rows->document[i];
        if (batch->decisions.original[d] != d)
            continue;
        status = dp_sets_status(&batch->sets, dp_set_make(maker, d, &set), error);
        DP_THEN(status, doppel_df_builder_add(builder, set.hash, set.count, error));
        ++*groups;
        if (dp_stopped(batch->settings.input.stop))
            status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        dp_tell_progress(&batch->settings, "boilerplate", i, rows->count);
    }
    free(set.hash);
    dp_set_maker_free(maker);
    return status;
}

/* Writes the table of frequent features to a file, maps it, and removes its name. */
static doppel_status open_table(doppel_batch *batch, doppel_df_builder *builder, uint64_t groups, doppel_error *error) {
    const doppel_batch_options *o = &batch->settings.options;
    const char *tmp = o->tmp ? o->tmp : getenv("TMPDIR");
    char path[4096];
    double share = o->boilerplate * (double)groups;
    uint64_t most = share > LEAST ? (uint64_t)share : LEAST;
    snprintf(path, sizeof path, "%s/doppel-%ld-%p.df", tmp ? tmp : "/tmp", (long)getpid(), (void *)batch);
    doppel_status status =
        doppel_df_builder_save(builder, path, most < UINT32_MAX ? (uint32_t)most + 1 : UINT32_MAX, error);
    DP_THEN(status, doppel_df_open(path, &batch->boilerplate.frequent, error));
    unlink(path);
    if (status == DOPPEL_OK)
        batch->stats.frequent = doppel_df_features(batch->boilerplate.frequent);
    return status;
}

/* ---- bands anew ---- */

typedef struct rebanding {
    doppel_batch *batch;
    const uint32_t *document; /* the rows as they were */
    size_t from, count;       /* of the block at hand */
    uint32_t *keys;
    atomic_size_t next;
    _Atomic int status;
} rebanding;

static doppel_status band_row(rebanding *r, size_t i, dp_set_maker *maker, dp_set_buffer *set) {
    const dp_batch_settings *s = &r->batch->settings;
    uint32_t d = r->document[r->from + i];
    DP_TRY(dp_set_make(maker, d, set));
    r->batch->boilerplate.left[d] = (uint32_t)set->count;
    return set->count ? dp_bands_keys(set->hash, set->count, s->bands, s->rows, r->keys + i * (size_t)s->bands)
                      : DOPPEL_OK;
}

static void band_rows(void *user, size_t thread) {
    enum { SOME = 64 };
    rebanding *r = user;
    dp_set_buffer set = {0};
    dp_set_maker *maker = dp_set_maker_create(r->batch);
    size_t from;
    doppel_status status = maker ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    (void)thread;
    while (status == DOPPEL_OK && (from = atomic_fetch_add(&r->next, SOME)) < r->count)
        for (size_t i = from; i < from + SOME && i < r->count && status == DOPPEL_OK; i++)
            status = band_row(r, i, maker, &set);
    if (status != DOPPEL_OK)
        atomic_store(&r->status, (int)status);
    dp_set_maker_free(maker);
    free(set.hash);
}

static doppel_status band_block(rebanding *r, doppel_error *error) {
    doppel_batch *batch = r->batch;
    int bands = batch->settings.bands;
    atomic_store(&r->next, 0);
    dp_run_threads(batch->settings.threads, band_rows, r);
    doppel_status status = (doppel_status)atomic_load(&r->status);
    if (status != DOPPEL_OK) {
        dp_fail(error, status, "%s", doppel_status_name(status));
        return dp_sets_status(&batch->sets, status, error);
    }
    for (size_t i = 0; i < r->count; i++) {
        uint32_t d = r->document[r->from + i];
        if (batch->boilerplate.left[d])
            DP_TRY(dp_key_rows_add(&batch->rows, d, r->keys + i * (size_t)bands, bands, error));
    }
    dp_tell_progress(&batch->settings, "bands", r->from, batch->rows.count);
    return DOPPEL_OK;
}

/* Makes the rows and their keys again, of what is left of the sets. */
static doppel_status band_again(doppel_batch *batch, doppel_error *error) {
    dp_key_rows *rows = &batch->rows;
    uint32_t *document = rows->document;
    size_t count = rows->count, bands = (size_t)batch->settings.bands;
    rebanding r = {.batch = batch, .document = document, .keys = malloc(DP_ROW_BLOCK * bands * sizeof *r.keys)};
    batch->boilerplate.left = calloc(batch->documents.count + 1, sizeof *batch->boilerplate.left);
    rows->document = NULL;
    rows->count = rows->room = 0;
    dp_append_file_close(&rows->keys);
    doppel_status status = r.keys && batch->boilerplate.left ? DOPPEL_OK : dp_no_memory(error);
    DP_THEN(status, dp_append_file_open(&rows->keys, NULL, NULL, batch->settings.options.tmp, error));
    for (; r.from < count && status == DOPPEL_OK; r.from += DP_ROW_BLOCK) {
        r.count = count - r.from < DP_ROW_BLOCK ? count - r.from : DP_ROW_BLOCK;
        status = band_block(&r, error);
    }
    free(r.keys);
    free(document);
    DP_THEN(status, dp_key_rows_flush(rows, batch->settings.bands, error));
    return status;
}

doppel_status dp_boilerplate_find(doppel_batch *batch, doppel_error *error) {
    doppel_df_builder *builder = NULL;
    const dp_batch_settings *s = &batch->settings;
    uint64_t groups = 0;
    doppel_status status = doppel_df_builder_create(s->recipe, BUILDER_MEMORY, s->options.tmp, &builder, error);
    DP_THEN(status, count_features(batch, builder, &groups, error));
    DP_THEN(status, open_table(batch, builder, groups, error));
    doppel_df_builder_free(builder);
    DP_THEN(status, band_again(batch, error));
    return status;
}
