/* tables.c - who gives tables to doppel_input_run: batches in memory (memory_tables), or a Python object that opens
 * Parquet (python_tables), which writes it, too (write_rows, trimmed_rows).
 *
 * Calls come from threads of libdoppel. Those on batches in memory touch no Python object; those on Python objects take
 * the GIL, and make an error of what an exception says. */
#include "module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- batches in memory ---- */

/* Rows of a part at most: some megabytes, so that threads share the work, and locks cost nothing. */
enum { PART_ROWS = 1024 };

/* A table that is open: its parts are slices of its batches. Its schema is that of the data, but that columns which
 * cannot be read as text, and that no path leads into, have no names: an option that names one is refused before
 * (batch.c). */
typedef struct open_data {
    const data_input *data;
    const char *name; /* of its column, if it has only one */
    uint64_t *rows, *bytes;
    size_t *batch; /* by part */
    uint64_t *from;
    struct ArrowSchema schema, *columns, **pointers;
} open_data;

static void free_open(open_data *open) {
    free(open->rows);
    free(open->bytes);
    free(open->batch);
    free(open->from);
    free(open->columns);
    free(open->pointers);
    free(open);
}

static bool claims_data(const char *path, void *user) {
    (void)user;
    return !strncmp(path, "table:", 6);
}

static size_t count_parts(const data_input *data) {
    size_t parts = 0;
    for (size_t i = 0; i < data->batch_count; i++)
        parts += ((size_t)data->batches[i].array.length + PART_ROWS - 1) / PART_ROWS;
    return parts;
}

static void cut_parts(open_data *open) {
    const data_input *data = open->data;
    size_t part = 0;
    for (size_t i = 0; i < data->batch_count; i++)
        for (uint64_t row = 0, rows = (uint64_t)data->batches[i].array.length; row < rows; row += PART_ROWS, part++) {
            open->batch[part] = i;
            open->from[part] = row;
            open->rows[part] = rows - row < PART_ROWS ? rows - row : PART_ROWS;
        }
}

static doppel_status no_memory(doppel_error *error) {
    if (error) {
        error->code = DOPPEL_ERROR_MEMORY;
        snprintf(error->message, sizeof error->message, "no memory");
    }
    return DOPPEL_ERROR_MEMORY;
}

/* Whether a column can be read as text. */
static bool is_readable(const data_input *data, const char *name) {
    doppel_column column;
    bool found;
    return !data->batch_count ||
           doppel_column_init(&column, &data->schema, &data->batches[0].array, name, &found, NULL) == DOPPEL_OK;
}

/* Whether one of the names that are wanted is a path into a column. */
static bool is_led_into(const char *name, const char *const *wanted, size_t count) {
    size_t length = strlen(name);
    for (size_t i = 0; i < count; i++)
        if (!strncmp(wanted[i], name, length) && wanted[i][length] == '.')
            return true;
    return false;
}

/* Makes the schema. False: no memory. */
static bool make_schema(open_data *open, const char *const *wanted, size_t count) {
    const struct ArrowSchema *from = &open->data->schema;
    size_t columns = open->data->is_struct ? (size_t)from->n_children : 1;
    open->columns = calloc(columns + 1, sizeof *open->columns);
    open->pointers = calloc(columns + 1, sizeof(struct ArrowSchema *));
    if (!open->columns || !open->pointers)
        return false;
    for (size_t i = 0; i < columns; i++) {
        struct ArrowSchema *column = &open->columns[i];
        *column = open->data->is_struct ? *from->children[i] : *from;
        if (!open->data->is_struct)
            column->name = open->name;
        else if (column->name && !is_readable(open->data, column->name) && !is_led_into(column->name, wanted, count))
            column->name = NULL;
        open->pointers[i] = column;
    }
    open->schema = (struct ArrowSchema){.format = "+s", .n_children = (int64_t)columns, .children = open->pointers};
    return true;
}

/* Whether texts are strings, which stay where they are; numbers are written out. */
static bool has_strings(const open_data *open) {
    static const char *const formats[] = {"u", "U", "vu", "z", "Z", "vz"};
    for (int64_t i = 0; i < open->schema.n_children; i++) {
        const struct ArrowSchema *column = open->schema.children[i];
        const char *format = column->dictionary ? column->dictionary->format : column->format;
        bool is_string = false;
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
            is_string = is_string || !strcmp(format, formats[f]);
        if (column->name && !strcmp(column->name, open->name))
            return is_string;
    }
    return true;
}

static doppel_status open_data_table(const char *path, const char *const *columns, size_t column_count,
                                     doppel_table *table, void *user, doppel_error *error) {
    const memory_tables *memory = user;
    size_t number = (size_t)strtoul(path + 6, NULL, 10), parts;
    open_data *open = calloc(1, sizeof *open);
    if (!open)
        return no_memory(error);
    open->data = memory->data[number];
    open->name = memory->text;
    parts = count_parts(open->data);
    open->rows = calloc(parts + 1, sizeof *open->rows);
    open->bytes = calloc(parts + 1, sizeof *open->bytes);
    open->batch = calloc(parts + 1, sizeof *open->batch);
    open->from = calloc(parts + 1, sizeof *open->from);
    if (!open->rows || !open->bytes || !open->batch || !open->from || !make_schema(open, columns, column_count)) {
        free_open(open);
        return no_memory(error);
    }
    cut_parts(open);
    table->handle = open;
    table->parts = parts;
    table->rows = open->rows;
    table->bytes = open->bytes;
    table->in_memory = has_strings(open);
    return DOPPEL_OK;
}

static void close_data_table(doppel_table *table, void *user) {
    (void)user;
    free_open(table->handle);
}

/* A stream of one batch, which borrows from the data: nothing is freed with it. Data of one column is given as a table
 * of one column, made here. */
typedef struct part_stream {
    const open_data *open;
    size_t part;
    bool done;
    struct ArrowArray *arrays[1];
    const void *buffers[1];
} part_stream;

static void release_nothing(struct ArrowSchema *schema) {
    schema->release = NULL;
}

static void release_slice(struct ArrowArray *array) {
    array->release = NULL;
}

static int part_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    const part_stream *part = stream->private_data;
    *out = part->open->schema;
    out->release = release_nothing;
    return 0;
}

static int part_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    part_stream *part = stream->private_data;
    const open_data *open = part->open;
    *out = (struct ArrowArray){0};
    if (part->done)
        return 0;
    const data_batch *batch = &open->data->batches[open->batch[part->part]];
    *out = batch->array;
    if (!open->data->is_struct) {
        part->arrays[0] = (struct ArrowArray *)&batch->array;
        *out = (struct ArrowArray){.n_buffers = 1, .buffers = part->buffers, .n_children = 1, .children = part->arrays};
    }
    out->offset += (int64_t)open->from[part->part];
    out->length = (int64_t)open->rows[part->part];
    /* Which of the nulls are in the slice is not known. */
    out->null_count = out->null_count ? -1 : 0;
    out->release = release_slice;
    part->done = true;
    return 0;
}

static const char *part_error(struct ArrowArrayStream *stream) {
    (void)stream;
    return NULL;
}

static void part_release(struct ArrowArrayStream *stream) {
    free(stream->private_data);
    stream->release = NULL;
}

static doppel_status read_data_part(const doppel_table *table, uint64_t part, struct ArrowArrayStream *stream,
                                    void *user, doppel_error *error) {
    part_stream *made = malloc(sizeof *made);
    (void)user;
    if (!made)
        return no_memory(error);
    *made = (part_stream){.open = table->handle, .part = (size_t)part};
    *stream = (struct ArrowArrayStream){part_schema, part_next, part_error, part_release, made};
    return DOPPEL_OK;
}

void memory_tables_init(memory_tables *memory, const data_input *const *data, const char *text) {
    memory->data = data;
    memory->text = text;
    memory->tables = (doppel_tables){.size = sizeof memory->tables,
                                     .user = memory,
                                     .claims = claims_data,
                                     .open = open_data_table,
                                     .read = read_data_part,
                                     .close = close_data_table};
}

/* ---- a Python object ---- */

/* What an exception is for libdoppel. */
static doppel_status status_of_exception(void) {
    const struct {
        PyObject *type;
        doppel_status status;
    } kinds[] = {{PyExc_MemoryError, DOPPEL_ERROR_MEMORY},        {PyExc_KeyboardInterrupt, DOPPEL_ERROR_INTERRUPTED},
                 {doppel_module.input_error, DOPPEL_ERROR_INPUT}, {doppel_module.store_error, DOPPEL_ERROR_STORE},
                 {PyExc_ValueError, DOPPEL_ERROR_USAGE},          {PyExc_OSError, DOPPEL_ERROR_IO}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (PyErr_ExceptionMatches(kinds[i].type))
            return kinds[i].status;
    return DOPPEL_ERROR_INPUT;
}

/* Makes an error of the exception that is set, which is cleared. An interruption stays one. */
static doppel_status take_exception(doppel_error *error) {
    PyObject *type, *value, *trace;
    doppel_status status = status_of_exception();
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *message = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (error) {
        error->code = status;
        snprintf(error->message, sizeof error->message, "%s", message && *message ? message : "failed in Python");
        for (char *p = error->message; *p; p++)
            *p = *p == '\n' ? ' ' : *p;
    }
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    return status;
}

/* Calls a method with a path, and another argument unless it is NULL. Paths need not be UTF-8. */
static PyObject *call_with_path(PyObject *object, const char *method, const char *path, PyObject *other) {
    PyObject *name = PyUnicode_DecodeFSDefault(path);
    PyObject *result = !name   ? NULL
                       : other ? PyObject_CallMethod(object, method, "OO", name, other)
                               : PyObject_CallMethod(object, method, "O", name);
    Py_XDECREF(name);
    return result;
}

static bool python_claims(const char *path, void *user) {
    const python_tables *python = user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *answer = call_with_path(python->object, "claims", path, NULL);
    bool claimed = answer && PyObject_IsTrue(answer) == 1;
    if (!answer)
        PyErr_Clear();
    Py_XDECREF(answer);
    PyGILState_Release(gil);
    return claimed;
}

static doppel_status give_listed(PyObject *paths, doppel_status (*found)(const char *path, void *to), void *to,
                                 doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (Py_ssize_t i = 0, count = PyList_Size(paths); i < count && status == DOPPEL_OK; i++) {
        PyObject *path = PyUnicode_EncodeFSDefault(PyList_GetItem(paths, i));
        status = path ? found(PyBytes_AsString(path), to) : take_exception(error);
        Py_XDECREF(path);
    }
    return status;
}

static doppel_status python_list(const char *path, doppel_status (*found)(const char *path, void *to), void *to,
                                 void *user, doppel_error *error) {
    const python_tables *python = user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *paths = call_with_path(python->object, "list", path, NULL);
    doppel_status status = paths ? give_listed(paths, found, to, error) : take_exception(error);
    Py_XDECREF(paths);
    PyGILState_Release(gil);
    return status;
}

/* A table that Python has opened. */
typedef struct open_object {
    PyObject *object;
    uint64_t *rows, *bytes;
    char *columns;
    bool in_memory;
} open_object;

static void free_object(open_object *open) {
    Py_XDECREF(open->object);
    free(open->rows);
    free(open->bytes);
    free(open->columns);
    free(open);
}

/* A list of whole numbers; NULL: an exception. */
static uint64_t *take_numbers(PyObject *object, const char *name, Py_ssize_t *count) {
    PyObject *list = PyObject_GetAttrString(object, name);
    *count = list ? PyList_Size(list) : -1;
    uint64_t *numbers = *count < 0 ? NULL : malloc(((size_t)*count + 1) * sizeof *numbers);
    for (Py_ssize_t i = 0; numbers && i < *count; i++)
        numbers[i] = PyLong_AsUnsignedLongLongMask(PyList_GetItem(list, i));
    Py_XDECREF(list);
    return numbers;
}

static PyObject *list_of_names(const char *const *names, size_t count) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* Opens a table with the GIL held; false: an exception. */
static bool open_with_gil(const python_tables *python, const char *path, PyObject *names, open_object *open,
                          Py_ssize_t *parts) {
    Py_ssize_t sized = 0;
    open->object = names ? call_with_path(python->object, "open", path, names) : NULL;
    if (!open->object)
        return false;
    open->rows = take_numbers(open->object, "rows", parts);
    open->bytes = open->rows ? take_numbers(open->object, "bytes", &sized) : NULL;
    PyObject *columns = open->bytes ? PyObject_GetAttrString(open->object, "columns") : NULL;
    const char *text = columns ? PyUnicode_AsUTF8AndSize(columns, NULL) : NULL;
    open->columns = text ? strdup(text) : NULL;
    Py_XDECREF(columns);
    PyObject *in_memory = open->columns ? PyObject_GetAttrString(open->object, "in_memory") : NULL;
    open->in_memory = in_memory && PyObject_IsTrue(in_memory) == 1;
    Py_XDECREF(in_memory);
    if (open->columns && *parts == sized)
        return true;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "a table without parts");
    return false;
}

static doppel_status python_open(const char *path, const char *const *columns, size_t column_count, doppel_table *table,
                                 void *user, doppel_error *error) {
    open_object *open = calloc(1, sizeof *open);
    Py_ssize_t parts = 0;
    doppel_status status = DOPPEL_OK;
    if (!open)
        return no_memory(error);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *names = list_of_names(columns, column_count);
    if (open_with_gil(user, path, names, open, &parts)) {
        table->handle = open;
        table->parts = (uint64_t)parts;
        table->rows = open->rows;
        table->bytes = open->bytes;
        table->columns = open->columns;
        table->in_memory = open->in_memory;
    } else {
        status = take_exception(error);
        free_object(open);
    }
    Py_XDECREF(names);
    PyGILState_Release(gil);
    return status;
}

static doppel_status python_read(const doppel_table *table, uint64_t part, struct ArrowArrayStream *stream, void *user,
                                 doppel_error *error) {
    const open_object *open = table->handle;
    doppel_status status = DOPPEL_OK;
    (void)user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *reader = PyObject_CallMethod(open->object, "read", "K", (unsigned long long)part);
    PyObject *capsule = reader ? PyObject_CallMethod(reader, "__arrow_c_stream__", NULL) : NULL;
    struct ArrowArrayStream *given = capsule ? PyCapsule_GetPointer(capsule, "arrow_array_stream") : NULL;
    if (given) {
        *stream = *given;
        given->release = NULL;
    } else {
        status = take_exception(error);
    }
    Py_XDECREF(capsule);
    Py_XDECREF(reader);
    PyGILState_Release(gil);
    return status;
}

static void python_close(doppel_table *table, void *user) {
    open_object *open = table->handle;
    (void)user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *closed = PyObject_CallMethod(open->object, "close", NULL);
    if (!closed)
        PyErr_Clear();
    Py_XDECREF(closed);
    free_object(open);
    PyGILState_Release(gil);
}

void python_tables_init(python_tables *python, PyObject *object) {
    python->object = object;
    python->tables = (doppel_tables){.size = sizeof python->tables,
                                     .user = python,
                                     .claims = python_claims,
                                     .list = python_list,
                                     .open = python_open,
                                     .read = python_read,
                                     .close = python_close};
}

/* ---- tables out ---- */

/* The columns of rows: whether they stay, or what --annotate adds. */
enum { STAYS, GROUP, COPY, ORIGINAL, SIZE, COUNTS, VALUES, COLUMNS };

/* How many of them there are. */
static const size_t used[] = {[ROWS_KEPT] = GROUP, [ROWS_ANNOTATED] = COUNTS, [ROWS_COUNTED] = COLUMNS};

typedef struct row_writer {
    const doppel_batch *batch;
    row_columns columns;
    array_builder column[COLUMNS]; /* COUNTS: a list by row; VALUES: what they are of, one after the other */
    char *id;
    size_t id_room;
    uint64_t *counts; /* memory for one list */
    size_t count_room;
} row_writer;

static void free_row_writer(row_writer *w) {
    for (size_t i = 0; i < COLUMNS; i++)
        builder_free(&w->column[i]);
    free(w->id);
    free(w->counts);
}

static bool get_id(row_writer *w, uint64_t position, doppel_slice *id) {
    size_t length = doppel_batch_id(w->batch, position, w->id, w->id_room);
    if (length > w->id_room) {
        char *more = realloc(w->id, length);
        if (!more)
            return false;
        w->id = more;
        w->id_room = length;
        length = doppel_batch_id(w->batch, position, w->id, w->id_room);
    }
    *id = (doppel_slice){w->id ? w->id : "", length};
    return true;
}

/* How many documents of the group have each value; copies have null, as their original has it. */
static bool add_counts(row_writer *w, uint64_t position, bool is_null) {
    doppel_slice value;
    uint64_t count;
    size_t number = 0;
    for (; !is_null && doppel_batch_group_value(w->batch, position, number, &value, &count); number++) {
        if (number == w->count_room) {
            size_t room = 2 * number + 16;
            uint64_t *more = realloc(w->counts, room * sizeof *more);
            if (!more)
                return false;
            w->counts = more;
            w->count_room = room;
        }
        w->counts[number] = count;
        if (!builder_add_string(&w->column[VALUES], value))
            return false;
    }
    return builder_add_list(&w->column[COUNTS], w->counts, number, is_null);
}

/* Adds what --annotate says of a row; rows that are no documents are left out by a null in STAYS. */
static bool annotate_row(row_writer *w, size_t row, uint64_t position) {
    doppel_near near = {.a = 0, .b = 0};
    doppel_slice id = {NULL, 0};
    bool left_out = position == DOPPEL_NO_POSITION;
    if (!left_out)
        doppel_batch_get(w->batch, position, &near);
    bool original = near.a == near.b;
    w->column[STAYS].valid[row] = !left_out;
    ((uint8_t *)w->column[COPY].values)[row] = !original;
    ((int64_t *)w->column[SIZE].values)[row] = left_out ? 0 : (int64_t)doppel_batch_group_size(w->batch, position);
    if (!left_out && !get_id(w, near.a, &id))
        return false;
    return builder_add_string(&w->column[GROUP], id) &&
           builder_add_string(&w->column[ORIGINAL], original ? (doppel_slice){NULL, 0} : id) &&
           (w->columns < ROWS_COUNTED || add_counts(w, position, left_out || !original));
}

static bool fill_rows(row_writer *w, const doppel_batch_rows *rows) {
    static const value_kind kinds[COLUMNS] = {
        [STAYS] = VALUE_BOOL, [GROUP] = VALUE_STRING,       [COPY] = VALUE_BOOL,    [ORIGINAL] = VALUE_STRING,
        [SIZE] = VALUE_INT64, [COUNTS] = VALUE_UINT64_LIST, [VALUES] = VALUE_STRING};
    size_t count = (size_t)rows->count;
    for (size_t i = 0; i < used[w->columns]; i++)
        if (!builder_init(&w->column[i], kinds[i], 0, i == VALUES ? 0 : count))
            return false;
    if (w->columns != ROWS_KEPT && !builder_make_valid(&w->column[STAYS]))
        return false;
    for (size_t row = 0; row < count; row++) {
        uint64_t position = rows->positions[row];
        ((uint8_t *)w->column[STAYS].values)[row] =
            position != DOPPEL_NO_POSITION && doppel_batch_stays(w->batch, position);
        if (w->columns != ROWS_KEPT && !annotate_row(w, row, position))
            return false;
    }
    return true;
}

/* Adds an Array as an argument; false: an exception. */
static bool add_array(PyObject *arguments, array_builder *column) {
    PyObject *array = builder_finish(column, false);
    bool added = array && PyList_Append(arguments, array) == 0;
    Py_XDECREF(array);
    return added;
}

/* The arguments of the writer's method; NULL: an exception. */
static PyObject *make_arguments(row_writer *w, const doppel_batch_rows *rows) {
    PyObject *list = PyList_New(0), *path = list ? PyUnicode_DecodeFSDefault(rows->path) : NULL;
    bool fine = path && PyList_Append(list, path) == 0;
    for (size_t i = 0; i < used[w->columns] && fine; i++)
        fine = add_array(list, &w->column[i]);
    PyObject *arguments = fine ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(path);
    Py_XDECREF(list);
    return arguments;
}

/* Runs the generator that `write` gives, a step for some rows or a tenth of a second, until it ends or is to stop. */
static doppel_status run_steps(PyObject *steps, const volatile int *stop, doppel_error *error) {
    PyObject *step;
    while (!(stop && *stop) && (step = PyIter_Next(steps)))
        Py_DECREF(step);
    if (PyErr_Occurred())
        return take_exception(error);
    if (stop && *stop)
        return DOPPEL_ERROR_INTERRUPTED;
    return DOPPEL_OK;
}

doppel_status write_rows(PyObject *writer, const doppel_batch *batch, const doppel_batch_rows *rows,
                         row_columns columns, const volatile int *stop, doppel_error *error) {
    row_writer w = {.batch = batch, .columns = columns};
    if (!rows->positions) {
        if (error) {
            error->code = DOPPEL_ERROR_USAGE;
            snprintf(error->message, sizeof error->message,
                     "%.200s is not Parquet, and Parquet output needs Parquet inputs", rows->path);
        }
        return DOPPEL_ERROR_USAGE;
    }
    bool filled = fill_rows(&w, rows);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *arguments = filled ? make_arguments(&w, rows) : NULL;
    if (!filled)
        PyErr_NoMemory();
    PyObject *write = arguments ? PyObject_GetAttrString(writer, columns == ROWS_KEPT ? "write" : "annotate") : NULL;
    PyObject *steps = write ? PyObject_CallObject(write, arguments) : NULL;
    doppel_status status = steps ? run_steps(steps, stop, error) : take_exception(error);
    Py_XDECREF(steps);
    Py_XDECREF(write);
    Py_XDECREF(arguments);
    free_row_writer(&w);
    PyGILState_Release(gil);
    return status;
}

/* ---- documents of doppel_trim_write, as they come ---- */

/* The numbers of a span that are written with `annotate`. */
enum { START, END, WORDS, ORIGINAL_START, NUMBERS };

/* The writer's generator says up to which row it wants rows next, and gets these as a piece: arrays by row. */
struct trimmed_rows {
    PyObject *writer;
    bool annotate;
    const volatile int *stop;
    char *path;               /* of the file that is being written; NULL: none */
    PyObject *steps;          /* the generator that writes it; NULL: it has ended */
    uint64_t first, row, end; /* the first row of the piece, the next one to come, and the first one after the piece */
    bool has_rows;            /* the piece has a row that is written */
    array_builder keep;       /* whether the row is written */
    array_builder cut;        /* whether its text was cut */
    array_builder texts;      /* null in rows that are not written */
    array_builder numbers[NUMBERS],
        ids;        /* of spans: lists by row, and the ids of their originals, one after the other */
    uint64_t *list; /* memory for one such list */
    size_t list_room;
};

trimmed_rows *trimmed_rows_create(PyObject *writer, bool annotate, const volatile int *stop) {
    trimmed_rows *rows = calloc(1, sizeof *rows);
    if (rows)
        *rows = (trimmed_rows){.writer = writer, .annotate = annotate, .stop = stop};
    return rows;
}

static void free_piece(trimmed_rows *rows) {
    builder_free(&rows->keep);
    builder_free(&rows->cut);
    builder_free(&rows->texts);
    builder_free(&rows->ids);
    for (size_t i = 0; i < NUMBERS; i++)
        builder_free(&rows->numbers[i]);
}

void trimmed_rows_free(trimmed_rows *rows) {
    if (!rows)
        return;
    free_piece(rows);
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_CLEAR(rows->steps);
    PyGILState_Release(gil);
    free(rows->path);
    free(rows->list);
    free(rows);
}

/* Begins the piece that the generator asked for; false: no memory. */
static bool begin_piece(trimmed_rows *rows) {
    size_t count = (size_t)(rows->end - rows->row);
    rows->first = rows->row;
    rows->has_rows = false;
    bool fine = builder_init(&rows->keep, VALUE_BOOL, 0, count) && builder_init(&rows->cut, VALUE_BOOL, 0, count) &&
                builder_init(&rows->texts, VALUE_STRING, 0, count);
    if (!rows->annotate)
        return fine;
    for (size_t i = 0; i < NUMBERS && fine; i++)
        fine = builder_init(&rows->numbers[i], VALUE_UINT64_LIST, 0, count);
    return fine && builder_init(&rows->ids, VALUE_STRING, 0, 0);
}

/* The arguments of the generator; NULL: an exception. */
static PyObject *finish_piece(trimmed_rows *rows) {
    array_builder *parts[] = {&rows->keep,         &rows->cut,
                              &rows->texts,        &rows->numbers[START],
                              &rows->numbers[END], &rows->numbers[WORDS],
                              &rows->ids,          &rows->numbers[ORIGINAL_START]};
    Py_ssize_t count = rows->annotate ? sizeof parts / sizeof *parts : 3;
    PyObject *piece = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count && piece; i++) {
        PyObject *array = builder_finish(parts[i], false);
        if (!array || PyTuple_SetItem(piece, i, array) < 0)
            Py_CLEAR(piece);
    }
    return piece;
}

/* Sends something to the generator (a reference that is taken over; NULL: an exception), and gets what it wants next;
 * while it waits for its threads it gives None. With the GIL. */
static doppel_status send_to_steps(trimmed_rows *rows, PyObject *value, doppel_error *error) {
    PyObject *wanted = value ? PyObject_CallMethod(rows->steps, "send", "(O)", value) : NULL;
    Py_XDECREF(value);
    while (wanted == Py_None) {
        Py_DECREF(wanted);
        if (rows->stop && *rows->stop)
            return DOPPEL_ERROR_INTERRUPTED;
        wanted = PyObject_CallMethod(rows->steps, "__next__", NULL);
    }
    if (!wanted && !PyErr_ExceptionMatches(PyExc_StopIteration))
        return take_exception(error);
    if (!wanted) {
        PyErr_Clear();
        Py_CLEAR(rows->steps);
        return DOPPEL_OK;
    }
    rows->end = PyLong_AsUnsignedLongLong(wanted);
    Py_DECREF(wanted);
    return begin_piece(rows) ? DOPPEL_OK : no_memory(error);
}

/* Gives the piece to the generator. */
static doppel_status give_piece(trimmed_rows *rows, doppel_error *error) {
    PyGILState_STATE gil = PyGILState_Ensure();
    doppel_status status = send_to_steps(rows, finish_piece(rows), error);
    PyGILState_Release(gil);
    return status;
}

/* Begins to write another file. */
static doppel_status begin_rows(trimmed_rows *rows, const char *path, doppel_error *error) {
    rows->row = 0;
    rows->path = strdup(path);
    if (!rows->path)
        return no_memory(error);
    PyGILState_STATE gil = PyGILState_Ensure();
    rows->steps = call_with_path(rows->writer, "trim", path, NULL);
    doppel_status status = rows->steps ? send_to_steps(rows, Py_NewRef(Py_None), error) : take_exception(error);
    PyGILState_Release(gil);
    return status;
}

/* Adds rows that are not written, up to `row`; false: no memory. */
static bool leave_out(trimmed_rows *rows, uint64_t row) {
    bool fine = true;
    for (; rows->row < row && fine; rows->row++) {
        fine = builder_add_string(&rows->texts, (doppel_slice){NULL, 0});
        for (size_t i = 0; i < NUMBERS && rows->annotate && fine; i++)
            fine = builder_add_list(&rows->numbers[i], NULL, 0, false);
    }
    return fine;
}

doppel_status trimmed_rows_end(trimmed_rows *rows, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (rows->steps && rows->has_rows)
        status = leave_out(rows, rows->end) ? give_piece(rows, error) : no_memory(error);
    if (rows->steps && status == DOPPEL_OK) {
        free_piece(rows);
        PyGILState_STATE gil = PyGILState_Ensure();
        status = send_to_steps(rows, PyTuple_New(0), error);
        PyGILState_Release(gil);
    }
    free_piece(rows);
    free(rows->path);
    rows->path = NULL;
    return status;
}

/* Adds the spans of a document as the lists of its row; false: no memory. */
static bool add_spans(trimmed_rows *rows, const doppel_trimmed *d) {
    if (d->span_count > rows->list_room) {
        uint64_t *list = realloc(rows->list, 2 * d->span_count * sizeof *list);
        if (!list)
            return false;
        rows->list = list;
        rows->list_room = 2 * d->span_count;
    }
    bool fine = true;
    for (size_t number = 0; number < NUMBERS && fine; number++) {
        for (size_t i = 0; i < d->span_count; i++) {
            const doppel_span *span = &d->spans[i];
            const uint64_t numbers[NUMBERS] = {span->start, span->end, span->words, span->original_start};
            rows->list[i] = numbers[number];
        }
        fine = builder_add_list(&rows->numbers[number], rows->list, d->span_count, false);
    }
    for (size_t i = 0; i < d->span_count && fine; i++)
        fine = builder_add_string(&rows->ids, d->spans[i].original_id);
    return fine;
}

/* Adds the row of a document to the piece; false: no memory. */
static bool add_trimmed(trimmed_rows *rows, const doppel_trimmed *d) {
    size_t at = (size_t)(rows->row - rows->first);
    bool keep = rows->annotate || d->dropped == DOPPEL_DROPPED_NOT;
    doppel_slice text = rows->annotate ? d->original : d->text;
    if (!keep)
        text = (doppel_slice){NULL, 0};
    else if (!text.data)
        text.data = "";
    ((uint8_t *)rows->keep.values)[at] = keep;
    ((uint8_t *)rows->cut.values)[at] = !rows->annotate && d->cut_count;
    rows->has_rows = rows->has_rows || keep;
    rows->row++;
    return builder_add_string(&rows->texts, text) && (!rows->annotate || add_spans(rows, d));
}

doppel_status trimmed_rows_add(trimmed_rows *rows, const doppel_trimmed *document, doppel_error *error) {
    uint64_t row = document->line - 1;
    doppel_status status = DOPPEL_OK;
    /* A file that is given twice begins again. */
    if (!rows->path || strcmp(rows->path, document->file) != 0 || row < rows->row) {
        status = trimmed_rows_end(rows, error);
        if (status == DOPPEL_OK)
            status = begin_rows(rows, document->file, error);
    }
    while (status == DOPPEL_OK && rows->steps && row >= rows->end)
        status = leave_out(rows, rows->end) ? give_piece(rows, error) : no_memory(error);
    if (status != DOPPEL_OK)
        return status;
    if (!rows->steps) {
        if (error) {
            error->code = DOPPEL_ERROR_INPUT;
            snprintf(error->message, sizeof error->message, "%.200s has changed since it was read: start again",
                     document->file);
        }
        return DOPPEL_ERROR_INPUT;
    }
    if (!leave_out(rows, row) || !add_trimmed(rows, document))
        return no_memory(error);
    return rows->row == rows->end ? give_piece(rows, error) : DOPPEL_OK;
}

doppel_status python_status(doppel_error *error) {
    return take_exception(error);
}
