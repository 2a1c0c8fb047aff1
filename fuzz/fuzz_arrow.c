/* fuzz_arrow.c - the bytes describe an Arrow array, alone or as columns of a struct: whatever they say, no column is
 * read outside its buffers, nulls are null, and doppel_input_run gets through a table of it.
 *
 * The C data interface carries no sizes of buffers: each buffer here has room for offset + length entries and not a
 * byte more, and the end of a string is never beyond its data. Everything else may be malformed: lengths, offsets and
 * numbers of buffers that do not fit together, offsets of strings that go backwards, indexes of dictionaries, views. */
#include "fuzz.h"

#include "doppel.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- the input, byte by byte; zeros after its end ---- */

static const uint8_t *input;
static size_t left;

static uint8_t next_byte(void) {
    if (!left)
        return 0;
    left--;
    return *input++;
}

static int64_t next_number(int bytes) {
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number = number << 8 | next_byte();
    return (int64_t)number;
}

static void next_bytes(void *to, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = next_byte();
}

/* ---- memory that goes with the input ---- */

enum { MOST_MEMORY = 256 };
static void *memory[MOST_MEMORY];
static size_t memory_count;

/* Exactly `size` bytes, filled from the input, so that the sanitizer sees reads beyond them. */
static void *take(size_t size) {
    CHECK(memory_count < MOST_MEMORY);
    void *taken = memory[memory_count++] = malloc(size ? size : 1);
    CHECK(taken);
    next_bytes(taken, size);
    return taken;
}

static void *take_zeros(size_t size) {
    CHECK(memory_count < MOST_MEMORY);
    void *taken = memory[memory_count++] = calloc(1, size ? size : 1);
    CHECK(taken);
    return taken;
}

/* ---- types ---- */

static const struct {
    const char *format;
    int width; /* bytes of an entry; 0: a bit; -1: none */
} types[] = {{"u", 4},    {"z", 4},    {"U", 8},    {"Z", 8},    {"vu", 16}, {"vz", 16}, {"n", -1},
             {"b", 0},    {"c", 1},    {"C", 1},    {"s", 2},    {"S", 2},   {"i", 4},   {"I", 4},
             {"l", 8},    {"L", 8},    {"f", 4},    {"g", 8},    {"tdD", 4}, {"tdm", 8}, {"tss:", 8},
             {"tsm:", 8}, {"tsu:", 8}, {"tsn:", 8}, {"tss:Z", 8}};
enum { TYPES = sizeof types / sizeof *types };

static bool is_string(const char *format) {
    return strlen(format) == 1 && strchr("uzUZ", *format);
}

static bool is_view(const char *format) {
    return !strcmp(format, "vu") || !strcmp(format, "vz");
}

/* A format of the list, or a few bytes of the input. */
static const char *next_format(void) {
    size_t type = next_byte();
    if (type < 8 * TYPES)
        return types[type % TYPES].format;
    char *format = take_zeros(6);
    next_bytes(format, type % 6);
    return format;
}

static int width_of(const char *format) {
    for (size_t i = 0; i < TYPES; i++)
        if (!strcmp(format, types[i].format))
            return types[i].width;
    return !strncmp(format, "ts", 2) ? 8 : -1;
}

/* ---- buffers ---- */

/* Offsets of strings, none of them beyond the data, in any order; some below zero. */
static void put_offsets(char *offsets, size_t count, int width, int64_t size) {
    for (size_t i = 0; i < count; i++) {
        int64_t at = (int8_t)next_byte();
        at = at > size ? size : at;
        if (at == -128)
            at = width == 4 ? INT32_MIN : INT64_MIN;
        if (width == 4)
            ((int32_t *)offsets)[i] = (int32_t)at;
        else
            ((int64_t *)offsets)[i] = at;
    }
}

static void put_strings(struct ArrowArray *array, size_t entries, int width) {
    int64_t size = next_byte() % 64;
    char *offsets = take_zeros((entries + 1) * (size_t)width);
    put_offsets(offsets, entries + 1, width, size);
    array->buffers[1] = offsets;
    array->buffers[2] = size ? take((size_t)size) : NULL;
    array->n_buffers = 3;
}

/* Views of any bytes, into up to three buffers. */
static void put_views(struct ArrowArray *array, size_t entries) {
    int64_t count = next_byte() % 4, *sizes = take_zeros((size_t)count * sizeof *sizes);
    array->buffers[1] = take(entries * 16);
    for (int64_t i = 0; i < count; i++) {
        sizes[i] = next_byte() % 64;
        array->buffers[2 + i] = sizes[i] ? take((size_t)sizes[i]) : NULL;
    }
    array->buffers[2 + count] = next_byte() == 255 ? NULL : sizes;
    array->n_buffers = 3 + count;
}

/* Something that an array must not have. */
static void spoil(struct ArrowArray *array) {
    switch (next_byte()) {
    case 248: array->length = -1 - next_byte(); break;
    case 249: array->offset = INT64_MIN + next_byte(); break;
    case 250: array->n_buffers = next_byte() % 3; break;
    case 251: array->buffers = NULL; break;
    case 252: array->buffers[1] = NULL; break;
    case 253: array->null_count = next_number(8); break;
    default: break;
    }
}

static struct ArrowArray *make_array(const char *format) {
    enum { MOST_BUFFERS = 6 };
    struct ArrowArray *array = take_zeros(sizeof *array);
    size_t offset = next_byte() % 20, length = next_byte() % 40, entries = offset + length;
    int width = width_of(format);
    array->buffers = take_zeros(MOST_BUFFERS * sizeof *array->buffers);
    array->offset = (int64_t)offset;
    array->length = (int64_t)length;
    array->null_count = (int8_t)next_byte();
    array->n_buffers = 2;
    array->buffers[0] = next_byte() % 2 ? take((entries + 7) / 8) : NULL;
    if (is_string(format))
        put_strings(array, entries, width);
    else if (is_view(format))
        put_views(array, entries);
    else if (width >= 0)
        array->buffers[1] = take(width ? entries * (size_t)width : (entries + 7) / 8);
    spoil(array);
    return array;
}

/* ---- a column, maybe with a dictionary, and a struct of some ---- */

typedef struct made {
    struct ArrowSchema *schema;
    struct ArrowArray *array;
} made;

static made make_column(const char *name) {
    made m = {take_zeros(sizeof(struct ArrowSchema)), NULL};
    m.schema->format = next_format();
    m.schema->name = name;
    m.array = make_array(m.schema->format);
    if (next_byte() % 3)
        return m;
    m.schema->dictionary = take_zeros(sizeof *m.schema->dictionary);
    m.schema->dictionary->format = next_format();
    m.array->dictionary = next_byte() == 255 ? NULL : make_array(m.schema->dictionary->format);
    return m;
}

enum { COLUMNS = 3 };
static const char *const names[COLUMNS] = {"text", "id", "title"};

/* Rows from an offset on, which the columns may be too short for: then they are refused. */
static made make_struct(void) {
    made m = {take_zeros(sizeof(struct ArrowSchema)), take_zeros(sizeof(struct ArrowArray))};
    size_t offset = next_byte() % 10, length = next_byte() % 40, columns = next_byte() % (COLUMNS + 1);
    m.schema->format = next_byte() == 255 ? "+l" : "+s";
    m.schema->n_children = (int64_t)columns;
    m.schema->children = take_zeros(COLUMNS * sizeof *m.schema->children);
    *m.array = (struct ArrowArray){.offset = (int64_t)offset,
                                   .length = (int64_t)length,
                                   .null_count = (int8_t)next_byte(),
                                   .n_buffers = 1,
                                   .n_children = (int64_t)columns,
                                   .buffers = take_zeros(2 * sizeof *m.array->buffers),
                                   .children = take_zeros(COLUMNS * sizeof *m.array->children)};
    m.array->buffers[0] = next_byte() % 2 ? take((offset + length + 7) / 8) : NULL;
    for (size_t i = 0; i < columns; i++) {
        made column = make_column(next_byte() == 255 ? NULL : names[i]);
        m.schema->children[i] = column.schema;
        m.array->children[i] = column.array;
    }
    switch (next_byte()) {
    case 252: m.array->n_children--; break;
    case 253: m.array->children[0] = NULL; break;
    case 250: m.array->buffers = NULL; break;
    case 251: m.array->n_buffers = 0; break;
    case 254: m.array->offset = next_byte() % 2 ? INT64_MIN + next_byte() : INT64_MAX - next_byte(); break;
    case 255: m.array->length = INT64_MAX - next_byte(); break;
    default: break;
    }
    return m;
}

/* ---- what is read ---- */

static bool has_null(const struct ArrowArray *array, int64_t at) {
    const uint8_t *bits = array->null_count && array->n_buffers > 0 ? array->buffers[0] : NULL;
    return bits && !(bits[at / 8] >> at % 8 & 1);
}

static void try_column(const made *m, const char *name) {
    doppel_column column;
    doppel_error error = {.code = DOPPEL_OK};
    bool found = false;
    doppel_status status = doppel_column_init(&column, m->schema, m->array, name, &found, &error);
    CHECK(status == DOPPEL_OK || (status == DOPPEL_ERROR_INPUT && error.code == status && error.message[0]));
    if (status != DOPPEL_OK || !found)
        return;
    unsigned sum = 0;
    for (int64_t row = 0; row < m->array->length; row++) {
        char *room = malloc(DOPPEL_COLUMN_ROOM);
        CHECK(room);
        doppel_slice value = doppel_column_get(&column, (uint64_t)row, room);
        CHECK(value.data || !value.length);
        CHECK(value.data != room || value.length < DOPPEL_COLUMN_ROOM);
        int64_t at = m->array->offset + row;
        CHECK(!value.data || !has_null(m->array, at));
        CHECK(!value.data || !name || !has_null(column.array, at + column.array->offset));
        for (size_t i = 0; i < value.length; i++)
            sum += (unsigned char)value.data[i];
        free(room);
    }
    *(volatile unsigned *)&sum; /* so that all was read */
}

/* ---- a table of one part, of one array ---- */

typedef struct table_input {
    const made *m;
    uint64_t rows, bytes;
    bool given;
} table_input;

static void release_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array) {
    array->release = NULL;
}

static int give_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    *out = *((const table_input *)stream->private_data)->m->schema;
    out->release = release_schema;
    return 0;
}

static int give_array(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    table_input *table = stream->private_data;
    *out = (struct ArrowArray){.length = 0};
    if (!table->given) {
        *out = *table->m->array;
        out->release = release_array;
    }
    table->given = true;
    return 0;
}

static const char *give_error(struct ArrowArrayStream *stream) {
    (void)stream;
    return NULL;
}

static void release_stream(struct ArrowArrayStream *stream) {
    stream->release = NULL;
}

static bool claim(const char *path, void *user) {
    (void)path, (void)user;
    return true;
}

static doppel_status open_table(const char *path, const char *const *columns, size_t column_count, doppel_table *table,
                                void *user, doppel_error *error) {
    table_input *t = user;
    (void)path, (void)columns, (void)column_count, (void)error;
    table->parts = 1;
    table->rows = &t->rows;
    table->bytes = &t->bytes;
    return DOPPEL_OK;
}

static doppel_status read_table(const doppel_table *table, uint64_t part, struct ArrowArrayStream *stream, void *user,
                                doppel_error *error) {
    (void)table, (void)part, (void)error;
    *stream = (struct ArrowArrayStream){give_schema, give_array, give_error, release_stream, user};
    return DOPPEL_OK;
}

static void close_table(doppel_table *table, void *user) {
    (void)table, (void)user;
}

static doppel_status take_document(void *state, const doppel_document *document, doppel_output *output) {
    uint64_t *documents = state;
    CHECK(document->text.data && document->line && document->line <= 40);
    CHECK(doppel_output_write(output, document->id) == DOPPEL_OK);
    CHECK(doppel_output_write(output, document->text) == DOPPEL_OK);
    CHECK(doppel_output_write(output, document->title) == DOPPEL_OK);
    ++*documents;
    return DOPPEL_OK;
}

static void try_table(const made *m, bool large) {
    table_input table = {.m = m, .rows = (uint64_t)m->array->length, .bytes = large ? UINT64_MAX : 0};
    const doppel_tables tables = {sizeof tables, &table, claim, NULL, open_table, read_table, close_table};
    const doppel_input_options options = {.size = sizeof options, .threads = 1, .max_record = 30, .tables = &tables};
    const char *path = "a.table";
    uint64_t documents = 0;
    const doppel_work work = {.user = &documents, .document = take_document};
    doppel_input_counts counts;
    doppel_error error;
    CHECK(doppel_input_run(&path, 1, &options, &work, &counts, &error) == DOPPEL_OK);
    CHECK(counts.documents == documents);
    CHECK(counts.unopened || documents + counts.bad == table.rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input = data;
    left = size;
    if (next_byte() % 4) {
        made m = make_struct();
        for (size_t i = 0; i < COLUMNS; i++)
            try_column(&m, names[i]);
        try_table(&m, next_byte() % 2);
    } else {
        made m = make_column(NULL);
        try_column(&m, NULL);
    }
    while (memory_count)
        free(memory[--memory_count]);
    return 0;
}
