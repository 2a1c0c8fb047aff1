/* df_write.c - writes a document-frequency table as the merge of sorted runs.
 *
 * The runs are merged twice, for the hashes and for the counts, as these stand apart in the file; then the file is
 * mapped for its checksum. It is written beside its place, synced and renamed, so that a table is whole or absent. */
#include "sketch/df.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- merging ---- */

/* The runs that are not at their end, as a heap by the hash each stands at: the smallest is first. */
typedef struct heap {
    dp_df_run **runs;
    size_t count;
} heap;

static uint64_t head(const dp_df_run *run) {
    return run->hashes[run->at];
}

/* Moves the run at `at` down to its place. */
static void sink(const heap *h, size_t at) {
    dp_df_run *run = h->runs[at];
    for (size_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && head(h->runs[child + 1]) < head(h->runs[child]))
            child++;
        if (head(run) <= head(h->runs[child]))
            break;
        h->runs[at] = h->runs[child];
    }
    h->runs[at] = run;
}

/* All runs from their start; `h` has room for them. */
static void open_heap(heap *h, const dp_df_content *content) {
    h->count = 0;
    for (size_t i = 0; i < content->run_count; i++) {
        content->runs[i].at = 0;
        if (content->runs[i].features)
            h->runs[h->count++] = &content->runs[i];
    }
    for (size_t i = h->count / 2; i--;)
        sink(h, i);
}

/* The next feature of all runs and its count over them; false at the end. */
static bool next_feature(heap *h, uint64_t *hash, uint32_t *df) {
    if (!h->count)
        return false;
    uint64_t sum = 0;
    *hash = head(h->runs[0]);
    while (h->count && head(h->runs[0]) == *hash) {
        dp_df_run *run = h->runs[0];
        sum += run->counts[run->at++];
        if (run->at == run->features)
            h->runs[0] = h->runs[--h->count];
        if (h->count)
            sink(h, 0);
    }
    *df = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
    return true;
}

/* Writes the hashes (or the counts) of all features that are frequent enough; gives how many. */
static uint64_t write_column(FILE *file, const dp_df_content *content, heap *h, bool counts) {
    uint64_t hash = 0, features = 0;
    uint32_t df;
    open_heap(h, content);
    while (next_feature(h, &hash, &df)) {
        if (df < content->min_df)
            continue;
        features++;
        if (counts)
            fwrite(&df, sizeof df, 1, file);
        else
            fwrite(&hash, sizeof hash, 1, file);
    }
    return features;
}

static void write_padding(FILE *file, uint64_t length) {
    for (uint64_t i = length; i % 8; i++)
        fputc(0, file);
}

static bool write_content(FILE *file, const dp_df_content *content, heap *h) {
    dp_df_header header = {.magic = DP_DF_MAGIC,
                           .version = DP_DF_VERSION,
                           .recipe_length = (uint32_t)strlen(content->recipe),
                           .documents = content->documents};
    snprintf(header.unicode, sizeof header.unicode, "%s", doppel_unicode_version());
    fwrite(&header, sizeof header, 1, file);
    fwrite(content->recipe, 1, header.recipe_length, file);
    write_padding(file, header.recipe_length);
    header.features = write_column(file, content, h, false);
    write_column(file, content, h, true);
    write_padding(file, header.features * 4);
    if (fseeko(file, 0, SEEK_SET))
        return false;
    fwrite(&header, sizeof header, 1, file);
    return !fflush(file) && !ferror(file);
}

/* ---- the file ---- */

static bool write_checksum(int file) {
    off_t size = lseek(file, 0, SEEK_END);
    if (size < (off_t)sizeof(dp_df_header))
        return false;
    uint8_t *map = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
        return false;
    dp_df_header *header = (void *)map;
    bool done = dp_df_checksum(map, (size_t)size, &header->checksum);
    munmap(map, (size_t)size);
    if (!done)
        errno = ENOMEM;
    return done;
}

/* Writes all of the file; gives what went wrong, or 0. */
static int write_file(int number, const dp_df_content *content, heap *h) {
    errno = 0;
    int stream = dup(number);
    FILE *file = stream < 0 ? NULL : fdopen(stream, "w+");
    bool done = file && write_content(file, content, h) && write_checksum(number);
    int reason = done ? 0 : errno ? errno : EIO;
    if (stream >= 0 && !file)
        close(stream);
    if (file && fclose(file) && done)
        reason = errno ? errno : EIO;
    return reason;
}

doppel_status dp_df_write(const char *path, const dp_df_content *content, doppel_error *error) {
    heap h = {malloc((content->run_count + 1) * sizeof(dp_df_run *)), 0};
    if (!h.runs)
        return dp_no_memory(error);
    dp_newfile file;
    doppel_status status = dp_newfile_create(&file, path, error);
    if (!status)
        status = dp_newfile_finish(&file, write_file(file.number, content, &h), error);
    free(h.runs);
    return status;
}

/* ---- merging tables ---- */

static doppel_status open_all(const char *const *paths, size_t count, doppel_df **tables, doppel_error *error) {
    for (size_t i = 0; i < count; i++) {
        doppel_status status = doppel_df_open(paths[i], &tables[i], error);
        if (status)
            return status;
        if (strcmp(tables[i]->recipe, tables[0]->recipe))
            return dp_fail_at(error, DOPPEL_ERROR_USAGE, paths[i], 0, "counts %s, but %s counts %s", tables[i]->recipe,
                              paths[0], tables[0]->recipe);
    }
    return DOPPEL_OK;
}

doppel_status doppel_df_merge(const char *const *paths, size_t count, const char *path, doppel_error *error) {
    if (!count)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "no tables to merge");
    doppel_df **tables = calloc(count, sizeof(doppel_df *));
    dp_df_run *runs = calloc(count, sizeof *runs);
    doppel_status status = tables && runs ? open_all(paths, count, tables, error) : dp_no_memory(error);
    if (!status) {
        dp_df_content content = {runs, count, tables[0]->recipe, 0, 0};
        for (size_t i = 0; i < count; i++) {
            runs[i] = (dp_df_run){tables[i]->hashes, tables[i]->counts, tables[i]->header->features, 0};
            content.documents += tables[i]->header->documents;
        }
        status = dp_df_write(path, &content, error);
    }
    for (size_t i = 0; tables && i < count; i++)
        doppel_df_close(tables[i]);
    free(tables);
    free(runs);
    return status;
}
