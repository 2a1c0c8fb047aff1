/* df.c - document-frequency tables: in how many documents each feature occurs.
 *
 * Made by a builder: doppel_df_builder_create, _add a document's features, _save; or by merging tables. Counts live in
 * a hash table. When it would outgrow its memory, it is written out as a table file of its own; saving merges those
 * files with what is left in memory. A table is mapped from its file: doppel_df_open, _get, _close. The hashes are well
 * mixed, so that a feature is found by interpolation in two or three steps; a table crafted to prevent that is searched
 * by bisection. */
#include "sketch/df.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

bool dp_df_checksum(const uint8_t *file, size_t size, uint64_t *checksum) {
    static const uint8_t zero[8];
    size_t at = offsetof(dp_df_header, checksum);
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return false;
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, file, at);
    XXH3_64bits_update(state, zero, sizeof zero);
    XXH3_64bits_update(state, file + at + 8, size - at - 8);
    *checksum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return true;
}

/* ---- opening ---- */

static doppel_status map_file(const char *path, doppel_df *df, doppel_error *error) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status)) {
        int reason = errno;
        if (file >= 0)
            close(file);
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be opened: %s", strerror(reason));
    }
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size < sizeof(dp_df_header)) {
        close(file);
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                          "is not a document-frequency table: make one with `doppel df`");
    }
    df->size = (size_t)status.st_size;
    void *map = mmap(NULL, df->size, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED)
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be mapped: %s", strerror(errno));
    df->map = map;
    return DOPPEL_OK;
}

/* The size the header implies, or 0 if it is impossible. */
static uint64_t expected_size(const dp_df_header *header) {
    if (header->features > (UINT64_MAX >> 5))
        return 0;
    return sizeof *header + dp_df_padded(header->recipe_length) + header->features * 8 +
           dp_df_padded(header->features * 4);
}

static doppel_status check_header(doppel_df *df, const char *path, doppel_error *error) {
    const dp_df_header *header = (const void *)df->map;
    if (memcmp(header->magic, DP_DF_MAGIC, sizeof header->magic))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                          "is not a document-frequency table: make one with `doppel df`");
    if (header->version != DP_DF_VERSION)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "has version %" PRIu32 ", this library reads version %d",
                          header->version, DP_DF_VERSION);
    if (expected_size(header) != df->size)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is cut short or too long: %zu bytes, not %" PRIu64,
                          df->size, expected_size(header));
    uint64_t checksum;
    if (!dp_df_checksum(df->map, df->size, &checksum))
        return dp_no_memory(error);
    if (checksum != header->checksum)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "was altered: its checksum is wrong");
    df->header = header;
    df->hashes = (const void *)(df->map + sizeof *header + dp_df_padded(header->recipe_length));
    df->counts = (const void *)(df->hashes + header->features);
    for (uint64_t i = 1; i < header->features; i++)
        if (df->hashes[i - 1] >= df->hashes[i])
            return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is not in order at feature %" PRIu64, i + 1);
    return DOPPEL_OK;
}

doppel_status doppel_df_open(const char *path, doppel_df **out, doppel_error *error) {
    *out = NULL;
    doppel_df *df = calloc(1, sizeof *df);
    if (!df)
        return dp_no_memory(error);
    doppel_status status = map_file(path, df, error);
    DP_THEN(status, check_header(df, path, error));
    if (!status) {
        memcpy(df->unicode, df->header->unicode, sizeof df->header->unicode);
        snprintf(df->digest, sizeof df->digest, "%016" PRIx64, df->header->checksum);
        df->recipe = strndup((const char *)df->map + sizeof *df->header, df->header->recipe_length);
        status = df->recipe ? DOPPEL_OK : dp_no_memory(error);
    }
    if (status) {
        doppel_df_close(df);
        return status;
    }
    *out = df;
    return DOPPEL_OK;
}

void doppel_df_close(doppel_df *df) {
    if (!df)
        return;
    if (df->map)
        munmap((void *)(uintptr_t)df->map, df->size);
    free(df->recipe);
    free(df);
}

/* ---- looking up ---- */

__extension__ typedef unsigned __int128 wide;

/* Interpolation steps before falling back to bisection. */
#define GUESSES 8

uint64_t doppel_df_get(const doppel_df *df, uint64_t hash) {
    const uint64_t *hashes = df->hashes;
    uint64_t low = 0, high = df->header->features;
    for (int step = 0; low < high; step++) {
        uint64_t first = hashes[low], last = hashes[high - 1];
        if (hash < first || hash > last)
            return 0;
        uint64_t at = low + (high - low) / 2;
        if (step < GUESSES && last > first)
            at = low + (uint64_t)((wide)(hash - first) * (high - 1 - low) / (last - first));
        if (hashes[at] == hash)
            return df->counts[at];
        if (hashes[at] < hash)
            low = at + 1;
        else
            high = at;
    }
    return 0;
}

int64_t dp_df_weight(const doppel_df *df, uint64_t hash) {
    double ratio = (double)df->header->documents / ((double)doppel_df_get(df, hash) + 1);
    return ratio > 1 ? llrint(log(ratio) * 65536) : 0;
}

double doppel_df_idf(const doppel_df *df, uint64_t hash) {
    return (double)dp_df_weight(df, hash) / 65536;
}

uint64_t doppel_df_documents(const doppel_df *df) {
    return df->header->documents;
}

uint64_t doppel_df_features(const doppel_df *df) {
    return df->header->features;
}

const char *doppel_df_recipe(const doppel_df *df) {
    return df->recipe;
}

const char *dp_df_unicode(const doppel_df *df) {
    return df->unicode;
}

const char *doppel_df_digest(const doppel_df *df) {
    return df->digest;
}

/* ---- writing: the merge of sorted runs.
 *
 * The runs are merged twice, for the hashes and for the counts, as these are separate in the file; then the file is
 * mapped for its checksum. It is written beside its path, synced and renamed, so that a table is complete or absent. */

/* A sorted list of features and counts: what the writer merges. */
typedef struct df_run {
    const uint64_t *hashes;
    const uint32_t *counts;
    uint64_t features;
    uint64_t at; /* the writer's place in it */
} df_run;

/* What goes into a table. */
typedef struct df_content {
    df_run *runs;
    size_t run_count;
    const char *recipe;
    uint64_t documents;
    uint32_t min_df;
} df_content;

/* The runs that are not at their end, as a heap by their current hash: the smallest is first. */
typedef struct heap {
    df_run **runs;
    size_t count;
} heap;

static uint64_t head(const df_run *run) {
    return run->hashes[run->at];
}

/* Moves the run at `at` down to its place. */
static void sink(const heap *h, size_t at) {
    df_run *run = h->runs[at];
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
static void open_heap(heap *h, const df_content *content) {
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
        df_run *run = h->runs[0];
        sum += run->counts[run->at++];
        if (run->at == run->features)
            h->runs[0] = h->runs[--h->count];
        if (h->count)
            sink(h, 0);
    }
    *df = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
    return true;
}

/* Writes the hashes (or the counts) of all features that are frequent enough; returns how many. */
static uint64_t write_column(FILE *file, const df_content *content, heap *h, bool counts) {
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

static bool write_content(FILE *file, const df_content *content, heap *h) {
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

/* Writes the whole file; returns an errno, or 0. */
static int write_file(int number, const df_content *content, heap *h) {
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

static doppel_status write_table(const char *path, const df_content *content, doppel_error *error) {
    heap h = {malloc((content->run_count + 1) * sizeof(df_run *)), 0};
    if (!h.runs)
        return dp_no_memory(error);
    dp_newfile file;
    doppel_status status = dp_newfile_create(&file, path, error);
    DP_THEN(status, dp_newfile_finish(&file, write_file(file.number, content, &h), error));
    free(h.runs);
    return status;
}

static df_run run_of(const doppel_df *table) {
    return (df_run){table->hashes, table->counts, table->header->features, 0};
}

static void close_tables(doppel_df **tables, size_t count) {
    for (size_t i = 0; tables && i < count; i++)
        doppel_df_close(tables[i]);
    free(tables);
}

/* ---- merging tables ---- */

static doppel_status open_all(const char *const *paths, size_t count, doppel_df **tables, doppel_error *error) {
    for (size_t i = 0; i < count; i++) {
        DP_TRY(doppel_df_open(paths[i], &tables[i], error));
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
    df_run *runs = calloc(count, sizeof *runs);
    doppel_status status = tables && runs ? open_all(paths, count, tables, error) : dp_no_memory(error);
    if (!status) {
        df_content content = {runs, count, tables[0]->recipe, 0, 0};
        for (size_t i = 0; i < count; i++) {
            runs[i] = run_of(tables[i]);
            content.documents += tables[i]->header->documents;
        }
        status = write_table(path, &content, error);
    }
    close_tables(tables, count);
    free(runs);
    return status;
}

/* ---- building ---- */

#define DEFAULT_MEMORY ((size_t)1 << 30)

/* Features that there is room for at least, whatever the memory. */
#define LEAST_FEATURES 682

struct doppel_df_builder {
    char *recipe;
    uint64_t documents;
    dp_hashmap counts; /* by feature */
    size_t most_features;
    char *folder; /* of the files written out; created with the first one */
    char *tmp;
    char **files;
    size_t file_count, file_capacity;
};

/* The table's features in order. */
static doppel_status sort_table(doppel_df_builder *b, df_run *run, doppel_error *error) {
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
    *run = (df_run){hashes, counts, count, 0};
    return DOPPEL_OK;
}

static void free_run(df_run *run) {
    free((void *)(uintptr_t)run->hashes);
    free((void *)(uintptr_t)run->counts);
}

static doppel_status make_folder(doppel_df_builder *b, doppel_error *error) {
    dp_buffer name = {0};
    doppel_status status = DOPPEL_OK;
    if (!dp_buffer_printf(&name, "%s/doppel-df.XXXXXX", b->tmp) || !dp_buffer_add(&name, "", 1))
        status = dp_no_memory(error);
    else if (!mkdtemp(name.data))
        status = dp_fail_at(error, DOPPEL_ERROR_IO, b->tmp, 0, "a folder cannot be made there: %s", strerror(errno));
    if (status)
        dp_buffer_free(&name);
    b->folder = name.data;
    return status;
}

/* Writes the table out as a file and empties it. */
static doppel_status spill(doppel_df_builder *b, doppel_error *error) {
    dp_buffer name = {0};
    DP_TRY(b->folder ? DOPPEL_OK : make_folder(b, error));
    if (!dp_reserve(&b->files, &b->file_capacity, b->file_count + 1, sizeof *b->files) ||
        !dp_buffer_printf(&name, "%s/%zu.df", b->folder, b->file_count) || !dp_buffer_add(&name, "", 1)) {
        dp_buffer_free(&name);
        return dp_no_memory(error);
    }
    df_run run;
    doppel_status status = sort_table(b, &run, error);
    if (!status) {
        df_content content = {&run, 1, b->recipe, 0, 0};
        status = write_table(name.data, &content, error);
        free_run(&run);
    }
    if (status) {
        unlink(name.data); /* it may exist, but not durably */
        dp_buffer_free(&name);
        return status;
    }
    b->files[b->file_count++] = name.data;
    dp_hashmap_clear(&b->counts);
    return DOPPEL_OK;
}

doppel_status doppel_df_builder_create(const doppel_recipe *recipe, size_t memory, const char *tmp,
                                       doppel_df_builder **builder, doppel_error *error) {
    *builder = NULL;
    doppel_df_builder *b = calloc(1, sizeof *b);
    if (!b)
        return dp_no_memory(error);
    const char *environment = getenv("TMPDIR");
    b->tmp = strdup(tmp ? tmp : environment && *environment ? environment : "/tmp");
    b->recipe = strdup((recipe ? recipe : dp_recipe_default())->features.data);
    /* While the table doubles there are one and a half of it; sorting takes 20 bytes per feature beside one of it,
     * which has two features at most for each three places of 16 bytes, and so is less than twice of it. */
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
static doppel_status open_runs(doppel_df_builder *b, doppel_df **tables, df_run *runs, doppel_error *error) {
    for (size_t i = 0; i < b->file_count; i++) {
        DP_TRY(doppel_df_open(b->files[i], &tables[i], error));
        runs[i + 1] = run_of(tables[i]);
    }
    return sort_table(b, &runs[0], error);
}

doppel_status doppel_df_builder_save(doppel_df_builder *b, const char *path, uint32_t min_df, doppel_error *error) {
    doppel_df **tables = calloc(b->file_count + 1, sizeof(doppel_df *));
    df_run *runs = calloc(b->file_count + 1, sizeof *runs);
    doppel_status status = tables && runs ? open_runs(b, tables, runs, error) : dp_no_memory(error);
    if (!status) {
        df_content content = {runs, b->file_count + 1, b->recipe, b->documents, min_df};
        status = write_table(path, &content, error);
        free_run(&runs[0]);
    }
    close_tables(tables, b->file_count);
    free(runs);
    return status;
}
