/* arrow.c - tables: columns of Arrow arrays as texts (doppel_column_init, doppel_column_get), and documents of their
 * rows (dp_table_open, dp_table_next on the reading side, dp_format_table on any thread).
 *
 * Strings are not copied. Row r of a column is entry offset + r of its buffers; in structs their own offsets are
 * added. With a dictionary, the entry is an index into it, and the dictionary has an offset of its own. An index that
 * is out of bounds is null, so that a malformed one reads nothing outside.
 *
 * The reader of a table divides it into parts. A part is a unit of work, which one thread reads whole; a large part is
 * read on the reading side, each batch a unit, so that several threads can work on it. */
#include "input/reader.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- types ---- */

typedef enum value_kind {
    NOTHING, /* all null */
    STRING32,
    STRING64,
    VIEW,
    TRUTH,
    INT8,
    UINT8,
    INT16,
    UINT16,
    INT32,
    UINT32,
    INT64,
    UINT64,
    FLOAT32,
    FLOAT64,
    DAYS,
    MILLISECONDS, /* a date */
    TIMESTAMP
} value_kind;

/* Formats as a schema names them, and the buffers that an array of each has at least. */
static const struct {
    const char *format;
    value_kind kind;
    int buffers;
    bool binary;
} types[] = {
    {"u", STRING32, 3, false}, {"U", STRING64, 3, false}, {"vu", VIEW, 3, false},   {"z", STRING32, 3, true},
    {"Z", STRING64, 3, true},  {"vz", VIEW, 3, true},     {"n", NOTHING, 0, false}, {"b", TRUTH, 2, false},
    {"c", INT8, 2, false},     {"C", UINT8, 2, false},    {"s", INT16, 2, false},   {"S", UINT16, 2, false},
    {"i", INT32, 2, false},    {"I", UINT32, 2, false},   {"l", INT64, 2, false},   {"L", UINT64, 2, false},
    {"f", FLOAT32, 2, false},  {"g", FLOAT64, 2, false},  {"tdD", DAYS, 2, false},  {"tdm", MILLISECONDS, 2, false}};
enum { TYPES = sizeof types / sizeof *types };

/* Units of timestamps in a second, by the letter of the format: "tss:", "tsm:", "tsu:", "tsn:". */
static int64_t units_of(char letter) {
    switch (letter) {
    case 's': return 1;
    case 'm': return 1000;
    case 'u': return 1000000;
    case 'n': return 1000000000;
    default: return 0;
    }
}

/* Sets the kind of values of a format; false: they cannot be read as text. */
static bool set_kind(doppel_column *column, const char *format, int *buffers) {
    for (size_t i = 0; i < TYPES; i++)
        if (!strcmp(format, types[i].format)) {
            column->kind = (int)types[i].kind;
            column->binary = types[i].binary;
            *buffers = types[i].buffers;
            return true;
        }
    if (strncmp(format, "ts", 2) != 0 || !format[2] || format[3] != ':' || !units_of(format[2]))
        return false;
    column->kind = TIMESTAMP;
    column->unit = format[2];
    column->zoned = format[4];
    *buffers = 2;
    return true;
}

/* Whether an array has what its kind needs: `rows` entries from its offset on. */
static bool is_whole(const struct ArrowArray *array, int buffers, int64_t rows) {
    if (array->length < rows || array->offset < 0 || array->offset > INT64_MAX - array->length ||
        array->n_buffers < buffers || (array->n_buffers > 0 && !array->buffers))
        return false;
    for (int i = 1; i < buffers; i++)
        if (rows && !array->buffers[i] && !(buffers == 3 && i == 2))
            return false;
    return true;
}

/* ---- a column ---- */

/* Finds a child by its name, from number *child on. */
static bool find_child(const struct ArrowSchema *schema, doppel_slice name, int64_t *child) {
    for (; *child < schema->n_children; ++*child) {
        const char *own = schema->children[*child]->name;
        if (own && strlen(own) == name.length && !memcmp(own, name.data, name.length))
            return true;
    }
    return false;
}

static doppel_status malformed(doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_INPUT, "is a malformed Arrow array");
}

/* The values, which are in the array itself or in its dictionary. */
static doppel_status set_values(doppel_column *column, const struct ArrowSchema *schema, int64_t rows,
                                doppel_error *error) {
    const struct ArrowArray *array = column->array;
    int buffers;
    column->values = array;
    column->index = NOTHING;
    if (schema->dictionary) {
        if (!set_kind(column, schema->format, &buffers) || column->kind < INT8 || column->kind > UINT64 ||
            !array->dictionary || !is_whole(array, buffers, rows))
            return malformed(error);
        column->index = column->kind;
        column->values = array->dictionary;
        schema = schema->dictionary;
        rows = array->dictionary->length;
    }
    if (schema->dictionary || !set_kind(column, schema->format, &buffers))
        return dp_fail(error, DOPPEL_ERROR_INPUT, "is of the Arrow type \"%s\", which is not text", schema->format);
    return rows < 0 || !is_whole(column->values, buffers, rows) ? malformed(error) : DOPPEL_OK;
}

/* Finds the child that a path leads to in a struct, which it may lead through, as keys.c does in objects: one with the
 * whole path as its name, else the one whose name ends at the first dot. *rest: what is left of the path. */
static bool find_step(const struct ArrowSchema *schema, doppel_slice path, int64_t *child, doppel_slice *rest) {
    const char *dot = memchr(path.data, '.', path.length), *end = path.data + path.length;
    *rest = (doppel_slice){NULL, 0};
    *child = 0;
    if (strcmp(schema->format, "+s") != 0)
        return false;
    if (find_child(schema, path, child))
        return true;
    *child = 0;
    if (!dot || dot == path.data || dot + 1 == end)
        return false;
    *rest = (doppel_slice){dot + 1, (size_t)(end - dot - 1)};
    return find_child(schema, (doppel_slice){path.data, (size_t)(dot - path.data)}, child);
}

/* Moves column->array and the schema to where a path leads; `rows` are the entries that must be there. */
static doppel_status follow(doppel_column *column, const struct ArrowSchema **schema, doppel_slice path, int64_t *rows,
                            bool *found, doppel_error *error) {
    int64_t child;
    *found = false;
    for (doppel_slice rest; path.data && find_step(*schema, path, &child, &rest); path = rest) {
        const struct ArrowArray *array = column->array;
        const struct ArrowSchema *parent = *schema;
        if (column->depth == DOPPEL_COLUMN_DEPTH)
            return dp_fail(error, DOPPEL_ERROR_INPUT, "is in more than %d structs", DOPPEL_COLUMN_DEPTH - 1);
        if (!is_whole(array, 0, *rows) || child >= array->n_children || !array->children || !array->children[child] ||
            __builtin_add_overflow(*rows, array->offset, rows))
            return malformed(error);
        column->parents[column->depth++] = array;
        column->array = array->children[child];
        *schema = (*schema)->children[child];
        *found = !rest.data;
        int64_t other = child + 1;
        if (find_child(parent, doppel_slice_of((*schema)->name), &other))
            return dp_fail(error, DOPPEL_ERROR_INPUT, "is there twice");
    }
    return DOPPEL_OK;
}

doppel_status doppel_column_init(doppel_column *column, const struct ArrowSchema *schema,
                                 const struct ArrowArray *array, const char *name, bool *found, doppel_error *error) {
    int64_t rows = array->length;
    bool there = true;
    *column = (doppel_column){.array = array};
    if (found)
        *found = true;
    if (rows < 0 || !is_whole(array, 0, rows))
        return malformed(error);
    if (name)
        DP_TRY(follow(column, &schema, doppel_slice_of(name), &rows, &there, error));
    if (found)
        *found = there;
    if (!there)
        return found ? DOPPEL_OK : dp_fail(error, DOPPEL_ERROR_INPUT, "does not exist");
    return set_values(column, schema, rows, error);
}

static bool has_bit(const void *bits, int64_t at) {
    return ((const uint8_t *)bits)[at / 8] >> at % 8 & 1;
}

static bool is_null(const struct ArrowArray *array, int64_t at) {
    return array->null_count && array->n_buffers > 0 && array->buffers[0] && !has_bit(array->buffers[0], at);
}

/* ---- a value ---- */

#define NUMBER(type) (((const type *)buffer)[at])

/* An integer of any width; uint64_t is given as its bits. */
static int64_t get_integer(value_kind kind, const void *buffer, int64_t at) {
    switch (kind) {
    case INT8: return NUMBER(int8_t);
    case UINT8: return NUMBER(uint8_t);
    case INT16: return NUMBER(int16_t);
    case UINT16: return NUMBER(uint16_t);
    case UINT32: return NUMBER(uint32_t);
    case INT32:
    case DAYS: return NUMBER(int32_t);
    default: return NUMBER(int64_t);
    }
}

static doppel_slice get_view(const struct ArrowArray *array, int64_t at) {
    enum { INLINE = 12 };
    const char *view = (const char *)array->buffers[1] + at * 16;
    /* After the validity and the views come the buffers of data, and one with their sizes. */
    int64_t number = array->n_buffers - 3;
    const int64_t *sizes = array->buffers[2 + number];
    int32_t length, place[2];
    memcpy(&length, view, sizeof length);
    if (length <= INLINE)
        return (doppel_slice){view + 4, length > 0 ? (size_t)length : 0};
    memcpy(place, view + 8, sizeof place);
    if (place[0] < 0 || place[0] >= number || place[1] < 0 || !sizes || sizes[place[0]] < (int64_t)place[1] + length)
        return (doppel_slice){NULL, 0};
    return (doppel_slice){(const char *)array->buffers[2 + place[0]] + place[1], (size_t)length};
}

static doppel_slice get_string(const doppel_column *column, int64_t at) {
    const void *buffer = column->values->buffers[1], *data = column->values->buffers[2];
    if (column->kind == VIEW)
        return get_view(column->values, at);
    int64_t from = column->kind == STRING32 ? NUMBER(int32_t) : NUMBER(int64_t);
    at++;
    int64_t to = column->kind == STRING32 ? NUMBER(int32_t) : NUMBER(int64_t);
    if (from < 0 || to < from || (to > from && !data))
        return (doppel_slice){NULL, 0};
    return (doppel_slice){data ? (const char *)data + from : "", (size_t)(to - from)};
}

/* A moment, `units` of which are a second, as ISO 8601. */
static int print_moment(int64_t moment, int64_t units, bool zoned, char *room) {
    int64_t second = moment / units, part = moment % units;
    struct tm when;
    if (part < 0) {
        second--;
        part += units;
    }
    time_t seconds = (time_t)second;
    if (!gmtime_r(&seconds, &when))
        return snprintf(room, DOPPEL_COLUMN_ROOM, "%lld", (long long)moment);
    int length = snprintf(room, DOPPEL_COLUMN_ROOM, "%04lld-%02d-%02dT%02d:%02d:%02d", 1900LL + when.tm_year,
                          when.tm_mon + 1, when.tm_mday, when.tm_hour, when.tm_min, when.tm_sec),
        digits = 0;
    for (int64_t unit = units; unit > 1; unit /= 10)
        digits++;
    if (part)
        length += snprintf(room + length, DOPPEL_COLUMN_ROOM - (size_t)length, ".%0*lld", digits, (long long)part);
    if (zoned)
        length += snprintf(room + length, DOPPEL_COLUMN_ROOM - (size_t)length, "Z");
    return length;
}

/* The day of a moment. */
static int print_day(int64_t moment, int64_t units, char *room) {
    int length = print_moment(moment, units, false, room);
    const char *hour = memchr(room, 'T', (size_t)length);
    return hour ? (int)(hour - room) : length;
}

/* Makes the locale's decimal point, which may be several bytes, a point; gives by how many bytes the number got
 * shorter.
 */
static int set_point(char *number) {
    char *point = number + strspn(number, "+-0123456789einfa");
    size_t size = strcspn(point, "0123456789");
    if (!*point)
        return 0;
    *point = '.';
    memmove(point + 1, point + size, strlen(point + size) + 1);
    return (int)size - 1;
}

/* With the fewest digits, from 14 (6 for a float) on, that read back as the same number. */
static int print_float(double value, bool single, char *room) {
    int length = 0, most = single ? 9 : 17;
    for (int digits = most - 3; digits <= most; digits++) {
        length = snprintf(room, DOPPEL_COLUMN_ROOM, "%.*g", digits, value);
        if (single ? strtof(room, NULL) == (float)value : strtod(room, NULL) == value)
            break;
    }
    return length - set_point(room);
}

static int print_value(const doppel_column *column, int64_t at, char *room) {
    enum { SECONDS_A_DAY = 24 * 60 * 60 };
    const void *buffer = column->values->buffers[1];
    value_kind kind = (value_kind)column->kind;
    switch (kind) {
    case TRUTH: return snprintf(room, DOPPEL_COLUMN_ROOM, "%s", has_bit(buffer, at) ? "true" : "false");
    case UINT64: return snprintf(room, DOPPEL_COLUMN_ROOM, "%llu", (unsigned long long)NUMBER(uint64_t));
    case FLOAT32: return print_float((double)NUMBER(float), true, room);
    case FLOAT64: return print_float(NUMBER(double), false, room);
    case DAYS: return print_day(get_integer(kind, buffer, at) * SECONDS_A_DAY, 1, room);
    case MILLISECONDS: return print_day(get_integer(kind, buffer, at), 1000, room);
    case TIMESTAMP: return print_moment(NUMBER(int64_t), units_of((char)column->unit), column->zoned, room);
    default: return snprintf(room, DOPPEL_COLUMN_ROOM, "%lld", (long long)get_integer(kind, buffer, at));
    }
}

doppel_slice doppel_column_get(const doppel_column *column, uint64_t row, char *room) {
    const doppel_slice null = {NULL, 0};
    const struct ArrowArray *array = column->array, *values = column->values;
    int64_t at = (int64_t)row;
    for (int i = 0; i < column->depth; i++) {
        at += column->parents[i]->offset;
        if (is_null(column->parents[i], at))
            return null;
    }
    at += array->offset;
    if (is_null(array, at))
        return null;
    if (column->index != NOTHING) {
        int64_t entry = get_integer((value_kind)column->index, array->buffers[1], at);
        if (entry < 0 || entry >= values->length || is_null(values, entry + values->offset))
            return null;
        at = entry + values->offset;
    }
    if (column->kind == NOTHING)
        return null;
    if (column->kind <= VIEW)
        return get_string(column, at);
    int length = print_value(column, at, room);
    return (doppel_slice){room, (size_t)length};
}

/* ---- a table that is open ---- */

struct dp_table {
    const doppel_tables *tables;
    doppel_table table;
    uint64_t rows;       /* of all its parts */
    uint64_t file_bytes; /* 0: not known */
    atomic_size_t users;
};

static void release_table(dp_table *table) {
    if (!table || atomic_fetch_sub(&table->users, 1) > 1)
        return;
    table->tables->close(&table->table, table->tables->user);
    free(table);
}

/* The names of the columns that are wanted: the keys, the names of their parts, the structs that paths lead into. */
typedef struct wanted_columns {
    const char *names[DP_FIELDS + DP_EXTRA + DP_NAMES];
    size_t count;
    dp_buffer text; /* the names */
} wanted_columns;

/* False: no memory. */
static bool wanted_columns_init(wanted_columns *wanted, const doppel_input_options *options) {
    dp_reader reader = {.options = options};
    bool fine = dp_fields_init(&reader);
    *wanted = (wanted_columns){.count = reader.field_count};
    for (size_t i = 0; i < wanted->count && fine; i++)
        fine = dp_buffer_add(&wanted->text, reader.fields[i].key, reader.fields[i].key_length) &&
               dp_buffer_add(&wanted->text, "", 1);
    for (size_t i = 0, at = 0; i < wanted->count && fine; i++, at += strlen(wanted->text.data + at) + 1)
        wanted->names[i] = wanted->text.data + at;
    if (!fine)
        dp_buffer_free(&wanted->text);
    return fine;
}

/* The reader of tables has failed: that ends the table (unit->failure) or, without memory and when interrupted, the
 * run.
 */
static void reader_failed(dp_unit *unit, doppel_status status, const doppel_error *error) {
    if (status == DOPPEL_ERROR_MEMORY)
        dp_unit_no_memory(unit);
    else if (status == DOPPEL_ERROR_INTERRUPTED)
        unit->status = dp_fail(&unit->error, status, "interrupted");
    else
        snprintf(unit->failure, sizeof unit->failure, "%.150s",
                 error->message[0] ? error->message : doppel_status_name(status));
}

bool dp_table_open(dp_table_cursor *cursor, const doppel_input_options *options, const char *path, uint64_t file_bytes,
                   dp_unit *unit) {
    wanted_columns wanted;
    doppel_error error = {0};
    dp_table *table = calloc(1, sizeof *table);
    if (!table || !wanted_columns_init(&wanted, options)) {
        free(table);
        return dp_unit_no_memory(unit);
    }
    table->tables = options->tables;
    table->table.size = sizeof table->table;
    table->file_bytes = file_bytes;
    atomic_init(&table->users, 1);
    doppel_status status =
        options->tables->open(path, wanted.names, wanted.count, &table->table, options->tables->user, &error);
    dp_buffer_free(&wanted.text);
    if (status != DOPPEL_OK) {
        reader_failed(unit, status, &error);
        free(table);
        return false;
    }
    for (uint64_t part = 0; part < table->table.parts; part++)
        table->rows += table->table.rows[part];
    *cursor = (dp_table_cursor){.table = table};
    return true;
}

/* ---- parts and batches ---- */

/* A part of more bytes is read on the reading side, batch by batch. */
#define LARGE_PART ((uint64_t)64 << 20)

static void release_stream(struct ArrowArrayStream *stream) {
    if (stream->release)
        stream->release(stream);
    stream->release = NULL;
}

/* Says why a stream failed. */
static void stream_failed(struct ArrowArrayStream *stream, int code, char *failure, size_t room) {
    const char *why = stream->get_last_error ? stream->get_last_error(stream) : NULL;
    snprintf(failure, room, "cannot be read: %.130s", why && *why ? why : strerror(code));
}

/* Opens the stream of a part; false: the unit says why not. */
static bool open_part(const dp_table *table, uint64_t part, struct ArrowArrayStream *stream, dp_unit *unit) {
    doppel_error error = {0};
    stream->release = NULL;
    doppel_status status = table->tables->read(&table->table, part, stream, table->tables->user, &error);
    if (status != DOPPEL_OK)
        reader_failed(unit, status, &error);
    return status == DOPPEL_OK;
}

/* Releases a batch, but not its table. */
static void release_batch(dp_table_batch *batch) {
    if (batch->array.release)
        batch->array.release(&batch->array);
    if (batch->schema.release)
        batch->schema.release(&batch->schema);
    batch->array.release = NULL;
    batch->schema.release = NULL;
}

/* The next batch of a stream and its schema; false at the end, or when it fails (unit->failure). */
static bool next_batch(struct ArrowArrayStream *stream, dp_unit *unit) {
    dp_table_batch *batch = &unit->table;
    int code = stream->get_schema(stream, &batch->schema);
    if (!code)
        code = stream->get_next(stream, &batch->array);
    if (!code && batch->array.release)
        return true;
    if (code)
        stream_failed(stream, code, unit->failure, sizeof unit->failure);
    release_batch(batch);
    return false;
}

void dp_table_batch_free(dp_table_batch *batch) {
    release_batch(batch);
    release_table(batch->table);
    *batch = (dp_table_batch){0};
}

void dp_table_cursor_free(dp_table_cursor *cursor) {
    release_stream(&cursor->stream);
    release_table(cursor->table);
    *cursor = (dp_table_cursor){0};
}

/* The share of the file that some rows are, for progress. */
static uint64_t share_of(const dp_table *table, uint64_t rows) {
    return table->rows ? (uint64_t)((double)table->file_bytes * (double)rows / (double)table->rows) : 0;
}

static void wrong_rows(dp_unit *unit) {
    snprintf(unit->failure, sizeof unit->failure, "a part does not have the number of rows that the table states");
}

/* The next batch of the large part that is open; false when it has no more. */
static bool next_of_large(dp_table_cursor *cursor, dp_unit *unit) {
    dp_table_batch *batch = &unit->table;
    bool given = next_batch(&cursor->stream, unit);
    uint64_t due = cursor->part_end - cursor->row;
    if (given && (uint64_t)batch->array.length <= due) {
        batch->first_row = cursor->row;
        cursor->row += (uint64_t)batch->array.length;
        unit->raw_bytes = share_of(cursor->table, (uint64_t)batch->array.length);
        return true;
    }
    if (!unit->failure[0] && (given || due))
        wrong_rows(unit);
    release_stream(&cursor->stream);
    if (unit->failure[0])
        cursor->part = cursor->table->table.parts;
    return unit->failure[0];
}

bool dp_table_next(dp_table_cursor *cursor, dp_unit *unit) {
    dp_table_batch *batch = &unit->table;
    const doppel_table *t = &cursor->table->table;
    unit->kind = DP_UNIT_TABLE;
    atomic_fetch_add(&cursor->table->users, 1);
    batch->table = cursor->table;
    for (bool empty = !cursor->begun && !t->parts;; empty = false) {
        cursor->begun = true;
        if (empty || (cursor->stream.release && next_of_large(cursor, unit)))
            return true;
        if (cursor->part >= t->parts)
            return false;
        uint64_t part = cursor->part++, rows = t->rows[part];
        batch->part = part;
        batch->first_row = cursor->row = cursor->part_end;
        cursor->part_end += rows;
        if (!rows || !t->bytes || t->bytes[part] <= LARGE_PART) {
            batch->whole_part = true;
            unit->raw_bytes = share_of(cursor->table, rows);
            return true;
        }
        if (!open_part(cursor->table, part, &cursor->stream, unit)) {
            cursor->part = t->parts;
            return true;
        }
    }
}

/* ---- documents ---- */

/* The columns of a batch; those that are not there have no array. A field has a column, or several that are joined. */
typedef struct row_columns {
    doppel_column column[DP_FIELDS + DP_EXTRA], part[DP_PARTS];
    bool joined[DP_FIELDS + DP_EXTRA]; /* of its parts */
    bool any_joined;
    doppel_slice value[DP_FIELDS + DP_EXTRA]; /* joined, of the current row */
    char room[DP_FIELDS + DP_EXTRA][DOPPEL_COLUMN_ROOM], part_room[DP_PARTS][DOPPEL_COLUMN_ROOM];
} row_columns;

/* The column of a field, by a path. A struct is no URL and no title, as an object of JSON is none. */
static doppel_status init_column(const dp_table_batch *batch, size_t field, doppel_slice path, doppel_column *column,
                                 doppel_error *error) {
    const struct ArrowSchema *schema = &batch->schema;
    int64_t rows = batch->array.length;
    bool found;
    *column = (doppel_column){.array = &batch->array};
    if (rows < 0 || !is_whole(&batch->array, 0, rows))
        return malformed(error);
    DP_TRY(follow(column, &schema, path, &rows, &found, error));
    bool no_value = (field == DP_FIELD_URL || field == DP_FIELD_TITLE) && !strcmp(schema->format, "+s");
    if (found && !no_value)
        return set_values(column, schema, rows, error);
    column->array = NULL;
    return DOPPEL_OK;
}

/* A column by the name of a field or of a part of it. */
static bool find_column(dp_reader *reader, dp_unit *unit, size_t field, const dp_json_field *name,
                        doppel_column *column) {
    doppel_error error = {0};
    doppel_slice path = {name->key, name->key_length};
    if (init_column(&unit->table, field, path, column, &error) == DOPPEL_OK)
        return true;
    dp_reader_bad_file(reader, unit, unit->names.data, "the column \"%.*s\" %s", (int)path.length, path.data,
                       error.message);
    return false;
}

/* The columns of the parts of a field, if it has no column by itself: one is the field's, several are joined. */
static bool find_parts(dp_reader *reader, dp_unit *unit, size_t first, size_t end, row_columns *columns) {
    size_t field = reader->parts[first].field, found = 0, last = 0;
    bool whole = columns->column[field].array;
    for (size_t i = first; i < end; i++) {
        columns->part[i].array = NULL;
        if (!whole && !find_column(reader, unit, field, &reader->fields[reader->parts[i].name], &columns->part[i]))
            return false;
        if (columns->part[i].array) {
            last = i;
            found++;
        }
        if (whole || columns->part[i].array)
            reader->parts_seen |= (uint64_t)1 << i;
    }
    if (found == 1)
        columns->column[field] = columns->part[last];
    columns->joined[field] = found > 1;
    columns->any_joined = columns->any_joined || found > 1;
    return true;
}

static bool has_column(const row_columns *columns, size_t field) {
    return columns->column[field].array || columns->joined[field];
}

static bool init_columns(dp_reader *reader, dp_unit *unit, const char *file, row_columns *columns) {
    const doppel_table *table = &unit->table.table->table;
    size_t fields = DP_FIELDS + reader->options->extra_count;
    columns->any_joined = false;
    for (size_t i = 0; i < fields; i++) {
        columns->joined[i] = false;
        if (!find_column(reader, unit, i, &reader->fields[i], &columns->column[i]))
            return false;
    }
    for (size_t i = 0, end; i < reader->part_count; i = end) {
        end = dp_parts_end(reader, i);
        if (!find_parts(reader, unit, i, end, columns))
            return false;
    }
    for (size_t i = 0; i < fields; i++)
        reader->seen |= has_column(columns, i) ? (uint64_t)1 << i : 0;
    if (has_column(columns, DP_FIELD_TEXT) || has_column(columns, DP_FIELD_HTML))
        return true;
    dp_reader_bad_file(reader, unit, file, "has no column \"%s\" or \"%s\": name the one with the text%s%s",
                       reader->fields[DP_FIELD_TEXT].key, reader->fields[DP_FIELD_HTML].key,
                       table->columns ? "; its columns are " : "", table->columns ? table->columns : "");
    return false;
}

/* Joins the values of a field's parts, with a line end between each two; null is nothing. There is room. */
static doppel_slice join_values(const doppel_slice *values, size_t count, dp_buffer *joined) {
    const char *start = joined->data + joined->size;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (!values[i].data)
            continue;
        if (any)
            dp_buffer_add(joined, "\n", 1);
        dp_buffer_add(joined, values[i].data, values[i].length);
        any = true;
    }
    return (doppel_slice){any ? start : NULL, (size_t)(joined->data + joined->size - start)};
}

/* Makes the values of a row that are joined; false when there is no memory. */
static bool join_columns(dp_reader *reader, row_columns *columns, uint64_t row) {
    doppel_slice values[DP_PARTS];
    size_t room = 1;
    for (size_t i = 0; i < reader->part_count; i++) {
        const doppel_column *part = &columns->part[i];
        bool wanted = columns->joined[reader->parts[i].field] && part->array;
        values[i] = wanted ? doppel_column_get(part, row, columns->part_room[i]) : (doppel_slice){NULL, 0};
        room += values[i].length + 1;
    }
    reader->joined.size = 0;
    if (!dp_reserve(&reader->joined.data, &reader->joined.capacity, room, 1)) /* it must not move once it is used */
        return false;
    for (size_t i = 0, end; i < reader->part_count; i = end) {
        end = dp_parts_end(reader, i);
        columns->value[reader->parts[i].field] = join_values(&values[i], end - i, &reader->joined);
    }
    return true;
}

static doppel_slice get_field(row_columns *columns, size_t field, uint64_t row) {
    const doppel_column *column = &columns->column[field];
    if (columns->joined[field])
        return columns->value[field];
    return column->array ? doppel_column_get(column, row, columns->room[field]) : (doppel_slice){NULL, 0};
}

/* Notes that a row is no document. */
static void leave_out(dp_unit *unit, uint64_t line) {
    uint64_t row = line - 1;
    if (!dp_buffer_add(&unit->left_out, &row, sizeof row))
        dp_unit_no_memory(unit);
}

/* A text in a file may be any bytes: what is not UTF-8 becomes U+FFFD, as in records of JSONL. */
static bool repair_text(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_slice *text) {
    dp_buffer *repaired = &reader->spare[0];
    if (!text->data || unit->table.table->table.in_memory || dp_json_is_utf8(text->data, text->length))
        return true;
    repaired->size = 0;
    if (!dp_utf8_repair(text->data, text->length, repaired))
        return dp_unit_no_memory(unit);
    dp_reader_repaired(unit, at, "invalid UTF-8 became U+FFFD");
    *text = (doppel_slice){repaired->data, repaired->size};
    return true;
}

static bool set_id(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_document *document) {
    return document->id.data || dp_reader_make_id(reader, unit, at, document);
}

static void read_row(dp_reader *reader, dp_unit *unit, row_columns *columns, const dp_raw_record *at, uint64_t row) {
    if (columns->any_joined && !join_columns(reader, columns, row)) {
        dp_unit_no_memory(unit);
        return;
    }
    doppel_slice text = get_field(columns, DP_FIELD_TEXT, row), html = get_field(columns, DP_FIELD_HTML, row);
    doppel_document document = dp_reader_document(reader, unit, at);
    size_t length = text.length + html.length;
    unit->counts.bytes += length;
    if (!text.data && !html.data) {
        leave_out(unit, at->line);
        dp_reader_bad_record(reader, unit, at, "\"%s\" is null", reader->fields[DP_FIELD_TEXT].key);
        return;
    }
    if (length > reader->options->max_record) {
        leave_out(unit, at->line);
        dp_reader_too_long(reader, unit, at);
        return;
    }
    document.id = get_field(columns, DP_FIELD_ID, row);
    document.url = get_field(columns, DP_FIELD_URL, row);
    document.title = get_field(columns, DP_FIELD_TITLE, row);
    for (size_t i = 0; i < reader->options->extra_count; i++)
        reader->extra[i] = get_field(columns, DP_FIELDS + i, row);
    /* A value that was written out stands in `columns`, one that was joined in the reader. */
    document.stays = unit->table.table->table.in_memory && !columns->joined[DP_FIELD_TEXT] &&
                     columns->column[DP_FIELD_TEXT].kind <= VIEW;
    document.from_table = true;
    document.html = html;
    document.charset = html.data ? DP_CHARSET_UTF8 : NULL;
    if (!repair_text(reader, unit, at, &text) || !set_id(reader, unit, at, &document))
        return;
    if (text.data)
        document.text = text;
    dp_reader_give(reader, unit, &document);
}

static void read_rows(dp_reader *reader, dp_unit *unit, const char *file) {
    const dp_table_batch *batch = &unit->table;
    row_columns columns;
    uint64_t rows = (uint64_t)batch->array.length;
    if (!init_columns(reader, unit, file, &columns))
        return;
    reader->seen |= rows ? DP_SEEN_RECORD : 0;
    for (uint64_t row = 0; row < rows && !dp_reader_stopped(reader, unit); row++) {
        const dp_raw_record at = {.file = file, .line = batch->first_row + row + 1};
        read_row(reader, unit, &columns, &at, row);
    }
}

/* All batches of a part, by the thread that has it. */
static void read_part(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_table_batch *batch = &unit->table;
    struct ArrowArrayStream stream;
    uint64_t due = batch->table->table.rows[batch->part];
    if (!open_part(batch->table, batch->part, &stream, unit))
        return;
    while (!dp_reader_stopped(reader, unit) && next_batch(&stream, unit)) {
        uint64_t rows = (uint64_t)batch->array.length;
        if (rows > due) {
            wrong_rows(unit);
            break;
        }
        read_rows(reader, unit, file);
        due -= rows;
        batch->first_row += rows;
        release_batch(batch);
        if (unit->counts.unopened)
            break;
    }
    if (due && !unit->failure[0] && !unit->counts.unopened && !dp_reader_stopped(reader, unit))
        wrong_rows(unit);
    release_stream(&stream);
}

/* dp_format.read */
static void read_table(dp_reader *reader, dp_unit *unit, const char *file) {
    if (dp_reader_stopped(reader, unit))
        return;
    dp_unit_counts(unit)->records = true;
    dp_unit_counts(unit)->record = "row";
    if (!unit->failure[0] && unit->table.whole_part)
        read_part(reader, unit, file);
    else if (!unit->failure[0] && unit->table.array.release)
        read_rows(reader, unit, file);
    if (unit->failure[0] && !dp_reader_stopped(reader, unit))
        dp_reader_bad_file(reader, unit, file, "%s", unit->failure);
}

const dp_format dp_format_table = {.name = "table", .record = "row", .read = read_table};
