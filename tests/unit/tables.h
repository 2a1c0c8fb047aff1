/* tables.h - tables of tests: rows that are written down in C, given to doppel_input_run as Arrow arrays.
 *
 * Each column of a part has one of four layouts: strings with 32-bit or 64-bit offsets, views, a dictionary. All arrays
 * are slices, with other entries before their first, and a row without any field is null as a struct. What is given is
 * counted until it is released, and overwritten then: a document that is used too late is seen. */
#ifndef TESTS_TABLES_H
#define TESTS_TABLES_H

#include "support.h"

#include "doppel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* NULL: null. */
typedef struct table_row {
    const char *id, *url, *title, *text, *html, *date;
} table_row;

enum { ROW_FIELDS = 6 };
static const char *const row_fields[ROW_FIELDS] = {"id", "url", "title", "text", "html", "date"};

/* What a table has, and what is wrong with it. */
typedef struct test_table {
    const char *path;
    const table_row *rows;
    size_t count;
    size_t part_rows, batch_rows; /* 0: all in one */
    size_t empty_parts;           /* before the others */
    bool empty_batches;           /* before each of the others */
    bool large;                   /* it says that its parts are large */
    bool in_memory;
    const char *without;    /* the name of a column that it does not have; "*": it has none */
    const char *unreadable; /* the name of a column that is no text */
    size_t break_at;        /* its stream breaks off ahead of the batch with this row, from 1; 0: it does not */
    int64_t promised;       /* so many rows more than there are, or fewer, are promised of its last part */
    doppel_status open_status, read_status; /* what these calls give, for the parts from break_at on */
    const char *why;                        /* it is wrong */
    atomic_size_t opened;
} test_table;

typedef struct test_tables {
    doppel_tables calls;
    test_table *table;
    size_t count;
    const char *const *listed; /* what the URL mem://all/ stands for, NULL at the end */
    doppel_status list_status;
    atomic_size_t live; /* tables, streams, schemas and arrays that are not released */
    pthread_mutex_t lock;
    struct made_batch *kept; /* what stays in memory */
} test_tables;

/* ---- an array ---- */

/* Entries ahead of the first row: of the columns' own offset, and of the struct's. */
enum { COLUMN_OFFSET = 2, STRUCT_OFFSET = 1, AHEAD = COLUMN_OFFSET + STRUCT_OFFSET };

typedef struct made_batch {
    struct made_batch *next; /* that is kept */
    test_tables *owner;
    size_t size;
    bool stays;
    struct ArrowArray column[ROW_FIELDS], words[ROW_FIELDS], *columns[ROW_FIELDS];
    const void *buffers[ROW_FIELDS][4], *word_buffers[ROW_FIELDS][3], *own[1];
    _Alignas(16) char memory[];
} made_batch;

typedef enum made_layout { LAYOUT_32, LAYOUT_64, LAYOUT_VIEW, LAYOUT_DICTIONARY, LAYOUTS } made_layout;

typedef struct made_entries {
    made_layout layout;
    int field;
    const table_row *rows;
    size_t count; /* with those ahead */
} made_entries;

static inline const char *field_of(const table_row *row, int field) {
    const char *const fields[ROW_FIELDS] = {row->id, row->url, row->title, row->text, row->html, row->date};
    return fields[field];
}

static inline bool is_null_row(const table_row *row) {
    return !row->id && !row->url && !row->title && !row->text && !row->html && !row->date;
}

/* The text of an entry; NULL: it is null. In a row that is null as a struct there is something all the same. */
static inline const char *entry_text(const made_entries *e, size_t entry) {
    if (entry < AHEAD)
        return entry % 2 ? NULL : "ahead of the first row";
    const table_row *row = &e->rows[entry - AHEAD];
    return is_null_row(row) ? "in a null row" : field_of(row, e->field);
}

static inline size_t entries_bytes(const made_entries *e) {
    size_t bytes = 64 + (e->count + 2) * (16 + 8 + 1);
    for (size_t i = 0; i < e->count; i++)
        bytes += entry_text(e, i) ? strlen(entry_text(e, i)) : 0;
    return bytes;
}

static inline void *take_bytes(char **at, size_t size) {
    char *taken = *at;
    *at += (size + 7) / 8 * 8;
    return taken;
}

static inline const uint8_t *put_validity(const made_entries *e, char **at) {
    uint8_t *bits = take_bytes(at, e->count / 8 + 1);
    for (size_t i = 0; i < e->count; i++)
        bits[i / 8] |= (uint8_t)((entry_text(e, i) != NULL) << i % 8);
    return bits;
}

/* Offsets (of either width) and data, of the entries and, for a dictionary, of one ahead of them. */
static inline void put_strings(const made_entries *e, size_t ahead, const void **buffers, char **at) {
    size_t count = e->count + ahead, width = e->layout == LAYOUT_64 ? 8 : 4;
    char *offsets = take_bytes(at, (count + 1) * width), *data = *at;
    int64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        const char *text = i < ahead ? NULL : entry_text(e, i - ahead);
        memcpy(offsets + i * width, &end, width);
        if (text)
            memcpy(data + end, text, strlen(text));
        end += text ? (int64_t)strlen(text) : 0;
    }
    memcpy(offsets + count * width, &end, width);
    take_bytes(at, (size_t)end);
    buffers[1] = offsets;
    buffers[2] = data;
}

static inline void put_views(const made_entries *e, const void **buffers, char **at) {
    char *views = take_bytes(at, e->count * 16), *data;
    int64_t *size = take_bytes(at, sizeof *size);
    data = *at;
    for (size_t i = 0; i < e->count; i++) {
        const char *text = entry_text(e, i) ? entry_text(e, i) : "";
        const int32_t length = (int32_t)strlen(text), place[] = {0, (int32_t)*size};
        memcpy(views + i * 16, &length, sizeof length);
        memcpy(views + i * 16 + 4, text, length < 12 ? (size_t)length : 12);
        if (length <= 12)
            continue;
        memcpy(views + i * 16 + 8, place, sizeof place);
        memcpy(data + *size, text, (size_t)length);
        *size += length;
    }
    take_bytes(at, (size_t)*size);
    buffers[1] = views;
    buffers[2] = data;
    buffers[3] = size;
}

static inline void put_indexes(const made_entries *e, made_batch *batch, int column, char **at) {
    const void **words = batch->word_buffers[column];
    int32_t *indexes = take_bytes(at, e->count * sizeof *indexes);
    for (size_t i = 0; i < e->count; i++)
        indexes[i] = (int32_t)i;
    batch->buffers[column][1] = indexes;
    put_strings(e, 1, words, at);
    batch->words[column] =
        (struct ArrowArray){.length = (int64_t)e->count, .offset = 1, .n_buffers = 3, .buffers = words};
    batch->column[column].dictionary = &batch->words[column];
}

static inline void put_column(const made_entries *e, made_batch *batch, int column, char **at) {
    const void **buffers = batch->buffers[column];
    batch->column[column] = (struct ArrowArray){.length = (int64_t)e->count - COLUMN_OFFSET,
                                                .offset = COLUMN_OFFSET,
                                                .null_count = -1,
                                                .n_buffers = e->layout == LAYOUT_VIEW         ? 4
                                                             : e->layout == LAYOUT_DICTIONARY ? 2
                                                                                              : 3,
                                                .buffers = buffers};
    batch->columns[column] = &batch->column[column];
    buffers[0] = put_validity(e, at);
    if (e->layout == LAYOUT_VIEW)
        put_views(e, buffers, at);
    else if (e->layout == LAYOUT_DICTIONARY)
        put_indexes(e, batch, column, at);
    else
        put_strings(e, 0, buffers, at);
}

static inline void release_made(struct ArrowArray *array) {
    made_batch *batch = array->private_data;
    batch->owner->live--;
    array->release = NULL;
    if (batch->stays)
        return;
    memset(batch->memory, 0xDD, batch->size);
    free(batch);
}

static inline void keep_made(made_batch *batch) {
    pthread_mutex_lock(&batch->owner->lock);
    batch->next = batch->owner->kept;
    batch->owner->kept = batch;
    pthread_mutex_unlock(&batch->owner->lock);
}

/* ---- a table that is open ---- */

typedef struct open_table {
    test_tables *owner;
    test_table *table;
    int fields[ROW_FIELDS], field_count; /* that are wanted, and there */
    uint64_t *rows, *bytes;
    uint64_t numbers[];
} open_table;

static inline made_layout layout_of(uint64_t part, int column) {
    return (made_layout)((part + (uint64_t)column) % LAYOUTS);
}

/* The rows of an array; NULL: no memory. */
static inline made_batch *make_batch(const open_table *open, uint64_t part, const table_row *rows, size_t count) {
    size_t size = count / 8 + 16;
    for (int i = 0; i < open->field_count; i++)
        size += entries_bytes(&(made_entries){layout_of(part, i), open->fields[i], rows, count + AHEAD});
    made_batch *batch = calloc(1, sizeof *batch + size);
    if (!batch)
        return NULL;
    char *at = batch->memory;
    uint8_t *valid = take_bytes(&at, (count + STRUCT_OFFSET) / 8 + 1);
    batch->owner = open->owner;
    batch->stays = open->table->in_memory;
    batch->size = size;
    batch->own[0] = valid;
    for (size_t i = 0; i < count; i++)
        valid[(i + STRUCT_OFFSET) / 8] |= (uint8_t)(!is_null_row(&rows[i]) << (i + STRUCT_OFFSET) % 8);
    for (int i = 0; i < open->field_count; i++)
        put_column(&(made_entries){layout_of(part, i), open->fields[i], rows, count + AHEAD}, batch, i, &at);
    assert_true(at <= batch->memory + size);
    if (batch->stays)
        keep_made(batch);
    return batch;
}

typedef struct made_schema {
    test_tables *owner;
    struct ArrowSchema column[ROW_FIELDS], *columns[ROW_FIELDS], words;
} made_schema;

static inline void release_schema(struct ArrowSchema *schema) {
    made_schema *made = schema->private_data;
    made->owner->live--;
    schema->release = NULL;
    memset(made, 0xDD, sizeof *made);
    free(made);
}

/* ---- a stream ---- */

typedef struct made_stream {
    const open_table *open;
    uint64_t part;
    size_t next, end; /* rows */
    bool gap;         /* the batch without rows was given */
} made_stream;

static inline int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    static const char *const formats[] = {"u", "U", "vu", "i"};
    const made_stream *s = stream->private_data;
    const open_table *open = s->open;
    made_schema *made = calloc(1, sizeof *made);
    if (!made)
        return ENOMEM;
    made->owner = open->owner;
    made->words = (struct ArrowSchema){.format = "u"};
    for (int i = 0; i < open->field_count; i++) {
        const char *name = row_fields[open->fields[i]];
        bool no_text = open->table->unreadable && !strcmp(open->table->unreadable, name);
        made_layout layout = layout_of(s->part, i);
        made->column[i] =
            (struct ArrowSchema){.format = no_text ? "+l" : formats[layout],
                                 .name = name,
                                 .dictionary = layout == LAYOUT_DICTIONARY && !no_text ? &made->words : NULL};
        made->columns[i] = &made->column[i];
    }
    *out = (struct ArrowSchema){.format = "+s",
                                .n_children = open->field_count,
                                .children = made->columns,
                                .release = release_schema,
                                .private_data = made};
    open->owner->live++;
    return 0;
}

static inline int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    made_stream *s = stream->private_data;
    const test_table *t = s->open->table;
    size_t left = s->end - s->next, count = t->batch_rows && t->batch_rows < left ? t->batch_rows : left;
    bool gap = t->empty_batches && !s->gap;
    *out = (struct ArrowArray){0};
    if (!left && !gap)
        return 0;
    if (t->break_at && t->read_status == DOPPEL_OK && t->break_at <= s->next + count && t->break_at > s->next)
        return EIO;
    s->gap = gap;
    count = gap ? 0 : count;
    made_batch *batch = make_batch(s->open, s->part, &t->rows[s->next], count);
    if (!batch)
        return ENOMEM;
    s->next += count;
    *out = (struct ArrowArray){.length = (int64_t)count,
                               .offset = STRUCT_OFFSET,
                               .null_count = -1,
                               .n_buffers = 1,
                               .buffers = batch->own,
                               .n_children = s->open->field_count,
                               .children = batch->columns,
                               .release = release_made,
                               .private_data = batch};
    s->open->owner->live++;
    return 0;
}

static inline const char *stream_error(struct ArrowArrayStream *stream) {
    return ((const made_stream *)stream->private_data)->open->table->why;
}

static inline void stream_release(struct ArrowArrayStream *stream) {
    made_stream *s = stream->private_data;
    s->open->owner->live--;
    stream->release = NULL;
    free(s);
}

/* ---- the calls ---- */

static inline doppel_status fail_with(doppel_error *error, doppel_status status, const char *why) {
    if (error) {
        error->code = status;
        snprintf(error->message, sizeof error->message, "%s", why ? why : "");
    }
    return status;
}

static inline bool tables_claim(const char *path, void *user) {
    size_t length = strlen(path);
    (void)user;
    return length >= 6 && !strcmp(path + length - 6, ".table");
}

static inline doppel_status tables_list(const char *path, doppel_status (*found)(const char *path, void *to), void *to,
                                        void *user, doppel_error *error) {
    const test_tables *tables = user;
    doppel_status status = DOPPEL_OK;
    if (strcmp(path, "mem://all/") != 0)
        return DOPPEL_OK;
    for (const char *const *name = tables->listed; *name && status == DOPPEL_OK; name++)
        status = found(*name, to);
    return tables->list_status == DOPPEL_OK ? status : fail_with(error, tables->list_status, "cannot be listed");
}

static inline bool has_column(const test_table *t, const char *name) {
    return !t->without || (strcmp(t->without, "*") != 0 && strcmp(t->without, name) != 0);
}

static inline size_t data_parts(const test_table *t) {
    size_t rows = t->part_rows ? t->part_rows : t->count;
    return rows ? (t->count + rows - 1) / rows : 0;
}

static inline void set_parts(open_table *open, size_t parts) {
    const test_table *t = open->table;
    size_t full = t->part_rows ? t->part_rows : t->count;
    for (size_t part = 0; part < parts; part++) {
        size_t first = part < t->empty_parts ? 0 : (part - t->empty_parts) * full, left = t->count - first;
        open->rows[part] = part < t->empty_parts ? 0 : left < full ? left : full;
        open->bytes[part] = t->large ? UINT64_MAX / 2 : 1000;
    }
    if (parts)
        open->rows[parts - 1] += (uint64_t)t->promised;
}

static inline doppel_status tables_open(const char *path, const char *const *columns, size_t column_count,
                                        doppel_table *table, void *user, doppel_error *error) {
    test_tables *tables = user;
    test_table *t = tables->table, *end = t + tables->count;
    while (t < end && strcmp(t->path, path) != 0)
        t++;
    if (t == end)
        return fail_with(error, DOPPEL_ERROR_IO, "there is no such table");
    t->opened++;
    if (t->open_status != DOPPEL_OK)
        return fail_with(error, t->open_status, t->why);
    size_t parts = t->empty_parts + data_parts(t);
    open_table *open = calloc(1, sizeof *open + 2 * parts * sizeof *open->numbers);
    if (!open)
        return fail_with(error, DOPPEL_ERROR_MEMORY, "no memory");
    open->owner = tables;
    open->table = t;
    open->rows = open->numbers;
    open->bytes = open->numbers + parts;
    for (size_t i = 0; i < column_count; i++)
        for (int field = 0; field < ROW_FIELDS; field++)
            if (!strcmp(columns[i], row_fields[field]) && has_column(t, row_fields[field]))
                open->fields[open->field_count++] = field;
    set_parts(open, parts);
    table->handle = open;
    table->parts = parts;
    table->rows = open->rows;
    table->bytes = open->bytes;
    table->columns = t->without ? "some, others" : NULL;
    table->in_memory = t->in_memory;
    tables->live++;
    return DOPPEL_OK;
}

static inline doppel_status tables_read(const doppel_table *table, uint64_t part, struct ArrowArrayStream *stream,
                                        void *user, doppel_error *error) {
    const open_table *open = table->handle;
    const test_table *t = open->table;
    size_t full = t->part_rows ? t->part_rows : t->count;
    size_t first = part < t->empty_parts ? 0 : (size_t)(part - t->empty_parts) * full;
    size_t rows = part < t->empty_parts ? 0 : t->count - first < full ? t->count - first : full;
    (void)user;
    if (t->read_status != DOPPEL_OK && first + rows >= t->break_at)
        return fail_with(error, t->read_status, t->why);
    made_stream *s = calloc(1, sizeof *s);
    if (!s)
        return fail_with(error, DOPPEL_ERROR_MEMORY, "no memory");
    *s = (made_stream){.open = open, .part = part, .next = first, .end = first + rows};
    *stream = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, stream_release, s};
    open->owner->live++;
    return DOPPEL_OK;
}

static inline void tables_close(doppel_table *table, void *user) {
    test_tables *tables = user;
    tables->live--;
    free(table->handle);
}

static inline void tables_begin(test_tables *tables, test_table *table, size_t count) {
    *tables = (test_tables){.table = table, .count = count};
    tables->calls = (doppel_tables){.size = sizeof tables->calls,
                                    .user = tables,
                                    .claims = tables_claim,
                                    .list = tables_list,
                                    .open = tables_open,
                                    .read = tables_read,
                                    .close = tables_close};
    pthread_mutex_init(&tables->lock, NULL);
}

/* Everything must have been released. */
static inline void tables_end(test_tables *tables) {
    assert_int_equal(tables->live, 0);
    while (tables->kept) {
        made_batch *next = tables->kept->next;
        free(tables->kept);
        tables->kept = next;
    }
    pthread_mutex_destroy(&tables->lock);
}

#endif
