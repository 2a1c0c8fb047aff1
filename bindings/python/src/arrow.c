/* arrow.c - Arrow in and out, by the Arrow C data interface and its PyCapsules: data of the caller as batches
 * (take_data, data_column), and streams of batches for others (stream_of_columns, stream_of_held, stream_of_rows).
 *
 * Nothing is copied but strings of Python. What comes in is moved out of its capsule, checked as far as it can be
 * without reading its values, and held until free_data. What goes out shares it: each exported array, and each child
 * of one, which a consumer may move out, holds the data (held_data). Release callbacks touch no Python object: they run
 * on any thread, without the GIL. */
#include "module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Nested types of foreign data may be this deep. */
enum { MOST_DEPTH = 64 };

/* ---- schemas ---- */

typedef struct made_schema {
    char *format, *name, *metadata;
    struct ArrowSchema *children, **pointers;
    struct ArrowSchema *dictionary;
} made_schema;

static void release_schema(struct ArrowSchema *schema) {
    made_schema *made = schema->private_data;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (made->children[i].release)
            made->children[i].release(&made->children[i]);
    if (made->dictionary && made->dictionary->release)
        made->dictionary->release(made->dictionary);
    free(made->dictionary);
    free(made->children);
    free(made->pointers);
    free(made->format);
    free(made->name);
    free(made->metadata);
    free(made);
    schema->release = NULL;
}

bool schema_make(struct ArrowSchema *to, const char *format, const char *name, size_t children) {
    made_schema *made = calloc(1, sizeof *made);
    *to = (struct ArrowSchema){0};
    if (!made)
        return false;
    *to = (struct ArrowSchema){.flags = ARROW_FLAG_NULLABLE, .release = release_schema, .private_data = made};
    made->format = strdup(format);
    made->name = strdup(name ? name : "");
    made->children = calloc(children ? children : 1, sizeof *made->children);
    made->pointers = calloc(children ? children : 1, sizeof(struct ArrowSchema *));
    if (!made->format || !made->name || !made->children || !made->pointers) {
        release_schema(to);
        return false;
    }
    for (size_t i = 0; i < children; i++)
        made->pointers[i] = &made->children[i];
    to->format = made->format;
    to->name = made->name;
    to->n_children = (int64_t)children;
    to->children = made->pointers;
    return true;
}

/* Metadata is a count, and for each pair the length and bytes of its key and of its value. */
static size_t metadata_bytes(const char *metadata) {
    int32_t count, length;
    size_t at = sizeof count;
    memcpy(&count, metadata, sizeof count);
    for (int64_t i = 0; i < 2 * (int64_t)count; i++) {
        memcpy(&length, metadata + at, sizeof length);
        at += sizeof length + (length > 0 ? (size_t)length : 0);
    }
    return at;
}

static bool copy_metadata(const char *metadata, made_schema *made) {
    size_t bytes = metadata_bytes(metadata);
    made->metadata = malloc(bytes);
    if (made->metadata)
        memcpy(made->metadata, metadata, bytes);
    return made->metadata;
}

bool schema_copy(const struct ArrowSchema *from, struct ArrowSchema *to) {
    if (!schema_make(to, from->format, from->name, (size_t)from->n_children))
        return false;
    made_schema *made = to->private_data;
    bool fine = !from->metadata || copy_metadata(from->metadata, made);
    to->flags = from->flags;
    to->metadata = made->metadata;
    for (int64_t i = 0; i < from->n_children && fine; i++)
        fine = schema_copy(from->children[i], to->children[i]);
    if (fine && from->dictionary) {
        made->dictionary = calloc(1, sizeof *made->dictionary);
        fine = made->dictionary && schema_copy(from->dictionary, made->dictionary);
        to->dictionary = made->dictionary;
    }
    if (!fine)
        release_schema(to);
    return fine;
}

static void free_schema_capsule(PyObject *capsule) {
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema && schema->release)
        schema->release(schema);
    free(schema);
}

PyObject *capsule_of_schema(struct ArrowSchema *schema) {
    struct ArrowSchema *moved = malloc(sizeof *moved);
    PyObject *capsule = NULL;
    if (moved) {
        *moved = *schema;
        capsule = PyCapsule_New(moved, "arrow_schema", free_schema_capsule);
    }
    if (!capsule) {
        schema->release(schema);
        free(moved);
    }
    return capsule || PyErr_Occurred() ? capsule : PyErr_NoMemory();
}

/* ---- checks of foreign data ---- */

/* By the beginning of a format, the longest first: how many buffers and children an array of it has. -1: any number. */
static const struct layout {
    const char *format;
    int buffers, children;
    bool has_values; /* buffer 1 must be there when there are rows */
} layouts[] = {
    {"+ud:", 2, -1, true}, {"+us:", 1, -1, false}, {"+vl", 3, 1, true}, {"+vL", 3, 1, true},  {"+s", 1, -1, false},
    {"+l", 2, 1, true},    {"+L", 2, 1, true},     {"+m", 2, 1, true},  {"+w:", 1, 1, false}, {"+r", 0, 2, false},
    {"vu", -1, 0, true},   {"vz", -1, 0, true},    {"n", 0, 0, false},  {"u", 3, 0, true},    {"z", 3, 0, true},
    {"U", 3, 0, true},     {"Z", 3, 0, true},      {"w:", 2, 0, false}, {"", 2, 0, true},
};

static const struct layout *layout_of(const char *format) {
    const struct layout *layout = layouts;
    while (strncmp(format, layout->format, strlen(layout->format)) != 0)
        layout++;
    return layout;
}

/* What is wrong with a schema; NULL: nothing. */
static const char *fault_of_schema(const struct ArrowSchema *schema, int depth) {
    if (!schema || !schema->format || !schema->release)
        return "a schema without a format";
    if (depth > MOST_DEPTH)
        return "types that are nested too deeply";
    const struct layout *layout = layout_of(schema->format);
    if (schema->n_children < 0 || (layout->children >= 0 && schema->n_children != layout->children) ||
        (schema->n_children && !schema->children))
        return "a type with a wrong number of children";
    const char *fault = schema->dictionary ? fault_of_schema(schema->dictionary, depth + 1) : NULL;
    for (int64_t i = 0; i < schema->n_children && !fault; i++)
        fault = fault_of_schema(schema->children[i], depth + 1);
    return fault;
}

static const char *fault_of_buffers(const struct layout *layout, const struct ArrowArray *array) {
    if (layout->buffers >= 0 ? array->n_buffers != layout->buffers : array->n_buffers < 3) {
        bool old_null = layout->buffers == 0 && array->n_buffers == 1; /* some give a null type an empty bitmap */
        if (!old_null)
            return "an array with a wrong number of buffers";
    }
    if (array->n_buffers && !array->buffers)
        return "an array without buffers";
    if (layout->has_values && array->length && !array->buffers[1])
        return "an array without values";
    return NULL;
}

/* Rows that a child must have for the rows of its parent, as far as the type says so; -1: not possible. */
static int64_t least_child_rows(const char *format, int64_t rows) {
    int64_t least = 0;
    if (!strncmp(format, "+w:", 3))
        return __builtin_mul_overflow(rows, strtoll(format + 3, NULL, 10), &least) ? -1 : least;
    return !strcmp(format, "+s") || !strncmp(format, "+us:", 4) ? rows : 0;
}

static const char *fault_of_array(const struct ArrowSchema *schema, const struct ArrowArray *array) {
    int64_t rows;
    if (!array || !array->release)
        return "an array that was released";
    if (array->length < 0 || array->offset < 0 || array->null_count < -1 ||
        __builtin_add_overflow(array->length, array->offset, &rows))
        return "an array with a negative length or offset";
    const char *fault = fault_of_buffers(layout_of(schema->format), array);
    if (fault)
        return fault;
    if (array->n_children != schema->n_children || (array->n_children && !array->children))
        return "an array with other children than its type has";
    if (!array->dictionary != !schema->dictionary)
        return "an array with a dictionary, or without one, unlike its type";
    if (array->dictionary)
        fault = fault_of_array(schema->dictionary, array->dictionary);
    int64_t least = least_child_rows(schema->format, rows);
    for (int64_t i = 0; i < array->n_children && !fault; i++) {
        fault = fault_of_array(schema->children[i], array->children[i]);
        if (!fault && (least < 0 || array->children[i]->length < least))
            fault = "an array whose children have too few rows";
    }
    return fault;
}

static int malformed(const char *argument, const char *fault) {
    PyErr_Format(doppel_module.input_error, "%s: malformed Arrow data: %s", argument, fault);
    return -1;
}

/* ---- taking Arrow data ---- */

/* An exception, put aside while foreign callbacks run, which may be Python code. */
typedef struct put_aside {
    PyObject *type, *value, *trace;
} put_aside;

static put_aside put_exception_aside(void) {
    put_aside aside;
    PyErr_Fetch(&aside.type, &aside.value, &aside.trace);
    return aside;
}

static void put_exception_back(put_aside aside) {
    PyErr_Restore(aside.type, aside.value, aside.trace);
}

/* Without the GIL, or with no exception set. */
static void release_data(data_input *data) {
    for (size_t i = 0; i < data->batch_count; i++)
        data->batches[i].array.release(&data->batches[i].array);
    if (data->schema.release)
        data->schema.release(&data->schema);
    free(data->batches);
    *data = (data_input){0};
}

void free_data(data_input *data) {
    put_aside aside = put_exception_aside();
    release_data(data);
    put_exception_back(aside);
}

static int set_schema(data_input *data, const char *argument) {
    const char *fault = fault_of_schema(&data->schema, 0);
    if (fault)
        return malformed(argument, fault);
    data->is_struct = !strcmp(data->schema.format, "+s");
    return 0;
}

/* Takes over a batch, also when it fails; one without rows is released. */
static int add_batch(data_input *data, struct ArrowArray *array, const char *argument) {
    const char *fault = fault_of_array(&data->schema, array);
    if (!fault && array->length && data->batch_count == data->batch_room) {
        size_t room = data->batch_room ? data->batch_room * 2 : 4;
        data_batch *grown = realloc(data->batches, room * sizeof *grown);
        if (grown) {
            data->batches = grown;
            data->batch_room = room;
        }
    }
    bool fine = !fault && (!array->length || data->batch_count < data->batch_room);
    if (fine && array->length) {
        data->batches[data->batch_count++] = (data_batch){*array, data->rows};
        data->rows += (uint64_t)array->length;
    } else if (array->release) {
        array->release(array);
    }
    return fine ? 0 : fault ? malformed(argument, fault) : (PyErr_NoMemory(), -1);
}

/* The pointer in a capsule; NULL: an exception that says what was expected. */
static void *open_capsule(PyObject *capsule, const char *name, const char *argument) {
    if (PyCapsule_IsValid(capsule, name))
        return PyCapsule_GetPointer(capsule, name);
    PyErr_Format(PyExc_TypeError, "%s: expected a PyCapsule \"%s\"", argument, name);
    return NULL;
}

static int taken_already(const char *argument) {
    PyErr_Format(doppel_module.input_error, "%s: the Arrow data was read already", argument);
    return -1;
}

static int stream_failed(struct ArrowArrayStream *stream, int code, const char *argument) {
    const char *said = stream->get_last_error ? stream->get_last_error(stream) : NULL;
    doppel_error error = {0};
    if (PyErr_Occurred())
        return -1;
    snprintf(error.message, sizeof error.message, "%s", said && *said ? said : strerror(code));
    raise_error(code == ENOMEM && !said ? DOPPEL_ERROR_MEMORY : DOPPEL_ERROR_INPUT, &error, argument);
    return -1;
}

/* Reads a stream to its end, without the GIL: its producer may need it, in this thread or in others. */
static int read_stream(struct ArrowArrayStream *stream, const char *argument, data_input *data) {
    int code, result;
    Py_BEGIN_ALLOW_THREADS;
    code = stream->get_schema(stream, &data->schema);
    Py_END_ALLOW_THREADS;
    if (code)
        data->schema.release = NULL;
    result = code ? stream_failed(stream, code, argument) : set_schema(data, argument);
    while (result == 0) {
        struct ArrowArray array = {0};
        Py_BEGIN_ALLOW_THREADS;
        code = stream->get_next(stream, &array);
        Py_END_ALLOW_THREADS;
        if (code)
            return stream_failed(stream, code, argument);
        if (!array.release)
            break;
        result = add_batch(data, &array, argument);
        if (result == 0)
            result = PyErr_CheckSignals();
    }
    return result;
}

static int take_stream(PyObject *capsule, const char *argument, data_input *data) {
    struct ArrowArrayStream *from = open_capsule(capsule, "arrow_array_stream", argument);
    if (!from)
        return -1;
    if (!from->release)
        return taken_already(argument);
    struct ArrowArrayStream stream = *from;
    from->release = NULL;
    int result = read_stream(&stream, argument, data);
    put_aside aside = put_exception_aside();
    stream.release(&stream);
    put_exception_back(aside);
    return result;
}

static int take_array(PyObject *pair, const char *argument, data_input *data) {
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
        return raise_type(argument, -1, "two PyCapsules from __arrow_c_array__", pair), -1;
    struct ArrowSchema *schema = open_capsule(PyTuple_GetItem(pair, 0), "arrow_schema", argument);
    struct ArrowArray *from = schema ? open_capsule(PyTuple_GetItem(pair, 1), "arrow_array", argument) : NULL;
    if (!from)
        return -1;
    if (!schema->release || !from->release)
        return taken_already(argument);
    struct ArrowArray array = *from;
    data->schema = *schema;
    schema->release = NULL;
    from->release = NULL;
    if (set_schema(data, argument) == 0)
        return add_batch(data, &array, argument);
    put_aside aside = put_exception_aside();
    array.release(&array);
    put_exception_back(aside);
    return -1;
}

/* ---- taking lists ---- */

/* Where bytes are not UTF-8; `length` when they are. */
static size_t find_no_utf8(const uint8_t *bytes, size_t length) {
    static const struct {
        uint8_t from, to, least, most, more; /* of the first byte; of the second; how many follow the first */
    } forms[] = {{0x00, 0x7F, 0, 0, 0},       {0xC2, 0xDF, 0x80, 0xBF, 1}, {0xE0, 0xE0, 0xA0, 0xBF, 2},
                 {0xE1, 0xEC, 0x80, 0xBF, 2}, {0xED, 0xED, 0x80, 0x9F, 2}, {0xEE, 0xEF, 0x80, 0xBF, 2},
                 {0xF0, 0xF0, 0x90, 0xBF, 3}, {0xF1, 0xF3, 0x80, 0xBF, 3}, {0xF4, 0xF4, 0x80, 0x8F, 3}};
    enum { FORMS = sizeof forms / sizeof *forms };
    for (size_t at = 0; at < length;) {
        uint64_t eight;
        if (length - at >= sizeof eight && (memcpy(&eight, bytes + at, sizeof eight), true) &&
            !(eight & 0x8080808080808080u)) {
            at += sizeof eight;
            continue;
        }
        size_t form = 0;
        while (form < FORMS && !(bytes[at] >= forms[form].from && bytes[at] <= forms[form].to))
            form++;
        if (form == FORMS || length - at <= forms[form].more)
            return at;
        if (forms[form].more && (bytes[at + 1] < forms[form].least || bytes[at + 1] > forms[form].most))
            return at;
        for (size_t i = 2; i <= forms[form].more; i++)
            if ((bytes[at + i] & 0xC0) != 0x80)
                return at;
        at += 1u + forms[form].more;
    }
    return length;
}

/* None, NaN, and the NA and NaT of pandas. */
static bool is_missing(PyObject *item) {
    if (item == Py_None || (PyFloat_Check(item) && PyFloat_AsDouble(item) != PyFloat_AsDouble(item)))
        return true;
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(item), "__name__");
    bool missing = name && (PyUnicode_CompareWithASCIIString(name, "NAType") == 0 ||
                            PyUnicode_CompareWithASCIIString(name, "NaTType") == 0);
    Py_XDECREF(name);
    PyErr_Clear();
    return missing;
}

static int no_utf8(const char *argument, Py_ssize_t row, const char *what, Py_ssize_t at) {
    PyErr_Format(doppel_module.input_error, "%s[%zd]: not valid UTF-8: %s at position %zd", argument, row, what, at);
    return -1;
}

static int add_bytes(array_builder *builder, PyObject *bytes, const char *argument, Py_ssize_t row) {
    doppel_slice text = {PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes)};
    size_t bad = find_no_utf8((const uint8_t *)text.data, text.length);
    if (bad < text.length)
        return no_utf8(argument, row, "bytes", (Py_ssize_t)bad);
    return builder_add_string(builder, text) ? 0 : (PyErr_NoMemory(), -1);
}

/* By way of bytes: PyUnicode_AsUTF8AndSize would keep its UTF-8 in the str as long as that lives. */
static int add_str(array_builder *builder, PyObject *item, const char *argument, Py_ssize_t row) {
    PyObject *bytes = PyUnicode_AsUTF8String(item);
    if (!bytes) {
        Py_ssize_t at = 0;
        PyObject *type, *error, *trace;
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
            return -1;
        PyErr_Fetch(&type, &error, &trace);
        PyErr_NormalizeException(&type, &error, &trace);
        PyUnicodeEncodeError_GetStart(error, &at);
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
        return no_utf8(argument, row, "a lone surrogate", at);
    }
    doppel_slice text = {PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes)};
    bool fine = builder_add_string(builder, text);
    Py_DECREF(bytes);
    return fine ? 0 : (PyErr_NoMemory(), -1);
}

int builder_add_item(array_builder *builder, PyObject *item, const char *argument, Py_ssize_t row) {
    if (PyUnicode_Check(item))
        return add_str(builder, item, argument, row);
    if (PyBytes_Check(item))
        return add_bytes(builder, item, argument, row);
    if (!is_missing(item))
        return raise_type(argument, row, "str", item), -1;
    return builder_add_string(builder, (doppel_slice){NULL, 0}) ? 0 : (PyErr_NoMemory(), -1);
}

/* Adds every item; -1: an exception, perhaps one of the iterator. */
static int add_items(array_builder *builder, PyObject *iterator, const char *argument) {
    enum { SIGNALS_EVERY = 1 << 16 };
    PyObject *item;
    int result = 0;
    for (Py_ssize_t row = 0; result == 0 && (item = PyIter_Next(iterator)); row++) {
        result = builder_add_item(builder, item, argument, row);
        Py_DECREF(item);
        if (result == 0 && row % SIGNALS_EVERY == SIGNALS_EVERY - 1)
            result = PyErr_CheckSignals();
    }
    return PyErr_Occurred() ? -1 : result;
}

/* A list, tuple or iterable becomes one column. */
static int take_items(PyObject *object, const char *argument, data_input *data) {
    array_builder builder;
    bool is_one = PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object) || PyDict_Check(object);
    PyObject *iterator = is_one ? NULL : PyObject_GetIter(object);
    if (!iterator) {
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
        return raise_type(argument, -1, "a list of str or Arrow data", object), -1;
    }
    int result = builder_init(&builder, VALUE_STRING, 0, 0) ? 0 : (PyErr_NoMemory(), -1);
    if (result == 0)
        result = add_items(&builder, iterator, argument);
    Py_DECREF(iterator);
    PyObject *column = result == 0 ? builder_finish(&builder, false) : (builder_free(&builder), NULL);
    struct ArrowArray array;
    if (!column)
        return -1;
    bool fine = export_schema(column, "", &data->schema) && export_array(column, &array);
    Py_DECREF(column);
    data->is_list = true;
    return fine ? add_batch(data, &array, argument) : (PyErr_NoMemory(), -1);
}

/* The result of a method without arguments. *has: whether there is such a method; NULL: there is none, or it raised. */
static PyObject *call_if_there(PyObject *object, const char *name, bool *has) {
    PyObject *method = PyObject_GetAttrString(object, name);
    *has = method || !PyErr_ExceptionMatches(PyExc_AttributeError);
    if (!*has)
        PyErr_Clear();
    PyObject *result = method ? PyObject_CallNoArgs(method) : NULL;
    Py_XDECREF(method);
    return result;
}

/* doppel/_inputs.py makes Arrow data of rows that are dicts, and marks it, so that results are lists. */
static bool was_list(PyObject *object) {
    PyObject *mark = PyObject_GetAttrString(object, "_doppel_is_list");
    bool marked = mark == Py_True;
    Py_XDECREF(mark);
    PyErr_Clear();
    return marked;
}

static int take_arrow(PyObject *object, const char *argument, data_input *data, bool *is_arrow) {
    PyObject *given = call_if_there(object, "__arrow_c_stream__", is_arrow);
    bool is_stream = *is_arrow;
    if (!is_stream)
        given = call_if_there(object, "__arrow_c_array__", is_arrow);
    if (!given)
        return -1;
    int result = is_stream ? take_stream(given, argument, data) : take_array(given, argument, data);
    Py_DECREF(given);
    data->is_list = result == 0 && was_list(object);
    return result;
}

int take_data(PyObject *object, const char *argument, data_input *data) {
    bool is_arrow;
    *data = (data_input){0};
    int result = take_arrow(object, argument, data, &is_arrow);
    if (!is_arrow)
        result = take_items(object, argument, data);
    if (result < 0)
        free_data(data);
    return result;
}

/* ---- columns of the data ---- */

/* "id, text": the names of the columns; NULL: an exception. */
static PyObject *column_names(const struct ArrowSchema *schema) {
    PyObject *names = PyList_New(0), *comma = PyUnicode_FromString(", "), *joined = NULL;
    bool fine = names && comma;
    for (int64_t i = 0; i < schema->n_children && fine; i++) {
        const char *text = schema->children[i]->name ? schema->children[i]->name : "";
        PyObject *name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
        fine = name && PyList_Append(names, name) == 0;
        Py_XDECREF(name);
    }
    if (fine)
        joined = PyUnicode_Join(comma, names);
    Py_XDECREF(names);
    Py_XDECREF(comma);
    return joined;
}

int raise_no_column(const data_input *data, const char *option, const char *name) {
    PyObject *names = column_names(&data->schema);
    bool any = names && PyUnicode_GetLength(names);
    if (names)
        PyErr_Format(PyExc_KeyError, "%s%sno column \"%s\"; %s%U", option ? option : "", option ? ": " : "", name,
                     any ? "the columns are " : "there are no columns", names);
    Py_XDECREF(names);
    return -1;
}

/* Bytes of a binary column must be UTF-8, like those of a list. */
static int check_binary(const doppel_column *column, const data_batch *batch, const char *argument) {
    char room[DOPPEL_COLUMN_ROOM];
    for (uint64_t row = 0; row < (uint64_t)batch->array.length; row++) {
        doppel_slice text = doppel_column_get(column, row, room);
        size_t bad = find_no_utf8((const uint8_t *)text.data, text.length);
        if (bad < text.length)
            return no_utf8(argument, (Py_ssize_t)(batch->first + row), "bytes", (Py_ssize_t)bad);
    }
    return 0;
}

int data_column(const data_input *data, size_t batch, const char *name, const char *argument, bool *found,
                doppel_column *column) {
    const struct ArrowArray *array = &data->batches[batch].array;
    doppel_error error;
    bool there = true;
    doppel_status status =
        doppel_column_init(column, &data->schema, array, data->is_struct ? name : NULL, &there, &error);
    if (found)
        *found = there;
    if (status == DOPPEL_OK && !there)
        return found ? 0 : raise_no_column(data, NULL, name);
    if (status == DOPPEL_OK)
        return column->binary ? check_binary(column, &data->batches[batch], argument) : 0;
    if (data->is_struct)
        PyErr_Format(PyExc_TypeError, "%s: the column \"%s\" %s", argument, name, error.message);
    else
        PyErr_Format(PyExc_TypeError, "%s: the column %s", argument, error.message);
    return -1;
}

static const struct ArrowSchema *find_child(const struct ArrowSchema *schema, const char *name, size_t length,
                                            int64_t *child) {
    for (*child = 0; *child < schema->n_children; ++*child) {
        const char *own = schema->children[*child]->name;
        if (own && strlen(own) == length && !memcmp(own, name, length))
            return schema->children[*child];
    }
    return NULL;
}

const struct ArrowSchema *find_schema(const data_input *data, const char *name, int64_t *child) {
    const struct ArrowSchema *schema = &data->schema, *found = NULL;
    if (!data->is_struct)
        return schema;
    for (int64_t *at = child, below; !strcmp(schema->format, "+s"); at = &below) {
        const char *dot = strchr(name, '.');
        found = find_child(schema, name, strlen(name), at);
        if (found || !dot || dot == name || !dot[1])
            return found;
        schema = find_child(schema, name, (size_t)(dot - name), at);
        if (!schema)
            return NULL;
        name = dot + 1;
    }
    return NULL;
}

static int add_texts(const data_input *data, const char *name, const char *argument, PyObject *list) {
    char room[DOPPEL_COLUMN_ROOM];
    doppel_column column;
    int64_t child;
    if (!find_schema(data, name, &child))
        return raise_no_column(data, NULL, name);
    for (size_t batch = 0; batch < data->batch_count; batch++) {
        if (data_column(data, batch, name, argument, NULL, &column) < 0)
            return -1;
        for (uint64_t row = 0; row < (uint64_t)data->batches[batch].array.length; row++) {
            doppel_slice text = doppel_column_get(&column, row, room);
            PyObject *item =
                text.data ? PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.length, "replace") : Py_NewRef(Py_None);
            int result = item ? PyList_Append(list, item) : -1;
            Py_XDECREF(item);
            if (result < 0)
                return -1;
        }
    }
    return 0;
}

static PyObject *texts(PyObject *module, PyObject *args) {
    PyObject *object;
    const char *name = "text", *argument = "texts";
    data_input data;
    (void)module;
    if (!PyArg_ParseTuple(args, "O|ss:texts", &object, &name, &argument) || take_data(object, argument, &data) < 0)
        return NULL;
    PyObject *list = PyList_New(0);
    if (list && add_texts(&data, name, argument, list) < 0)
        Py_CLEAR(list);
    free_data(&data);
    return list;
}

/* ---- data with several holders ---- */

struct held_data {
    atomic_size_t holders;
    data_input data;
};

held_data *hold_data(data_input *data) {
    held_data *held = malloc(sizeof *held);
    if (held) {
        atomic_init(&held->holders, 1);
        held->data = *data;
        *data = (data_input){0};
    }
    return held;
}

const data_input *held_input(const held_data *held) {
    return &held->data;
}

static held_data *hold_again(held_data *held) {
    atomic_fetch_add(&held->holders, 1);
    return held;
}

void drop_data(held_data *held) {
    if (!held || atomic_fetch_sub(&held->holders, 1) > 1)
        return;
    release_data(&held->data);
    free(held);
}

/* What a shared array has of its own. */
typedef struct shared_array {
    held_data *held;
    struct ArrowArray *children, **pointers;
    struct ArrowArray dictionary;
    uint8_t *bits; /* of a list of fixed size that was narrowed: its validity */
    const void *buffers[1];
} shared_array;

static void release_shared(struct ArrowArray *array) {
    shared_array *shared = array->private_data;
    for (int64_t i = 0; shared->children && i < array->n_children; i++)
        if (shared->children[i].release)
            shared->children[i].release(&shared->children[i]);
    if (shared->dictionary.release)
        shared->dictionary.release(&shared->dictionary);
    free(shared->children);
    free(shared->pointers);
    free(shared->bits);
    drop_data(shared->held);
    free(shared);
    array->release = NULL;
}

/* Makes *to the same array as `from`, of which it shares the buffers; false: no memory. */
static bool share_array(const struct ArrowArray *from, held_data *held, struct ArrowArray *to) {
    size_t children = (size_t)from->n_children;
    shared_array *shared = calloc(1, sizeof *shared);
    *to = (struct ArrowArray){0};
    if (!shared)
        return false;
    *to = *from;
    to->release = release_shared;
    to->private_data = shared;
    shared->held = hold_again(held);
    if (children) {
        shared->children = calloc(children, sizeof *shared->children);
        shared->pointers = calloc(children, sizeof(struct ArrowArray *));
        to->children = shared->pointers;
    }
    bool fine = !children || (shared->children && shared->pointers);
    for (size_t i = 0; i < children && fine; i++) {
        shared->pointers[i] = &shared->children[i];
        fine = share_array(from->children[i], held, &shared->children[i]);
    }
    if (fine && from->dictionary) {
        fine = share_array(from->dictionary, held, &shared->dictionary);
        to->dictionary = &shared->dictionary;
    }
    if (!fine)
        release_shared(to);
    return fine;
}

static bool narrow(struct ArrowArray *array, const struct ArrowSchema *schema, int64_t start, int64_t count);

/* Lists of a fixed size that were narrowed lose their offset, since not every consumer heeds it (polars does not, where
 * there are nulls): their child is narrowed, and their validity is copied. */
static bool move_offset(struct ArrowArray *array, const struct ArrowSchema *schema) {
    shared_array *shared = array->private_data;
    int64_t width = strtoll(schema->format + 3, NULL, 10), count = array->length;
    if (array->null_count && array->buffers[0]) {
        if (!(shared->bits = copy_bits(array->buffers[0], array->offset, count)))
            return false;
        shared->buffers[0] = shared->bits;
    }
    array->buffers = shared->buffers;
    bool fine = narrow(array->children[0], schema->children[0], array->offset * width, count * width);
    array->offset = 0;
    return fine;
}

/* Narrows a shared array to some of its rows; false: no memory. Null counts are exact: not every consumer takes -1. */
static bool narrow(struct ArrowArray *array, const struct ArrowSchema *schema, int64_t start, int64_t count) {
    const char *format = schema->format;
    bool has_bits = array->n_buffers > 0 && array->null_count && strncmp(format, "+u", 2) != 0;
    array->offset += start;
    array->length = count;
    if (*format == 'n')
        array->null_count = count;
    else if (has_bits)
        array->null_count = array->buffers[0] ? count_nulls(array->buffers[0], array->offset, count) : 0;
    return strncmp(format, "+w:", 3) != 0 || move_offset(array, schema);
}

/* Some rows of a batch; false: no memory. Of a table the columns are narrowed, since many take no table that has an
 * offset. */
static bool share_rows(held_data *held, size_t batch, int64_t start, int64_t count, struct ArrowArray *to) {
    const data_input *data = &held->data;
    const struct ArrowArray *from = &data->batches[batch].array;
    bool fine = share_array(from, held, to);
    if (!fine)
        return false;
    shared_array *shared = to->private_data;
    int64_t first = from->offset + start;
    if (!data->is_struct) {
        fine = narrow(to, &data->schema, start, count);
    } else {
        bool has_bits = from->null_count && from->buffers[0];
        to->null_count = has_bits ? count_nulls(from->buffers[0], first, count) : 0;
        if (to->null_count)
            fine = (shared->buffers[0] = shared->bits = copy_bits(from->buffers[0], first, count));
        for (int64_t i = 0; i < to->n_children && fine; i++)
            fine = narrow(to->children[i], data->schema.children[i], first, count);
        to->offset = 0;
        to->length = count;
        to->buffers = shared->buffers;
    }
    if (!fine)
        to->release(to);
    return fine;
}

/* ---- another column ---- */

/* The schema of a table with another column, which is taken over; false: no memory, and it is not. */
static bool schema_with(const struct ArrowSchema *from, int64_t child, struct ArrowSchema *column,
                        struct ArrowSchema *to) {
    size_t columns = (size_t)from->n_children + (child >= from->n_children);
    if (!schema_make(to, from->format, from->name, columns))
        return false;
    made_schema *made = to->private_data;
    bool fine = !from->metadata || copy_metadata(from->metadata, made);
    to->flags = from->flags;
    to->metadata = made->metadata;
    for (int64_t i = 0; i < from->n_children && fine; i++)
        fine = i == child || schema_copy(from->children[i], to->children[i]);
    if (!fine) {
        to->release(to);
        return false;
    }
    *to->children[child < from->n_children ? child : from->n_children] = *column;
    column->release = NULL;
    return true;
}

/* Puts a column into a shared table, which takes it over; false: no memory, and it does not. */
static bool put_column(struct ArrowArray *table, int64_t child, struct ArrowArray *column) {
    shared_array *shared = table->private_data;
    int64_t columns = table->n_children;
    if (child < columns) {
        shared->children[child].release(&shared->children[child]);
    } else {
        struct ArrowArray *children = realloc(shared->children, ((size_t)columns + 1) * sizeof *children);
        struct ArrowArray **pointers = malloc(((size_t)columns + 1) * sizeof(struct ArrowArray *));
        shared->children = children ? children : shared->children;
        if (pointers) {
            free(shared->pointers);
            table->children = shared->pointers = pointers;
            for (int64_t i = 0; i < columns + (children != NULL); i++)
                pointers[i] = &shared->children[i];
        }
        if (!children || !pointers)
            return false;
        child = columns;
        table->n_children = columns + 1;
    }
    shared->children[child] = *column;
    column->release = NULL;
    return true;
}

/* Adds a batch of `held` with another column, which is taken over; -1: an exception. */
static int add_with_column(held_data *held, size_t batch, int64_t child, struct ArrowArray *column, data_input *to) {
    struct ArrowArray array = *column;
    if (held->data.is_struct) {
        if (!share_rows(held, batch, 0, held->data.batches[batch].array.length, &array))
            return PyErr_NoMemory(), -1;
        if (!put_column(&array, child, column)) {
            array.release(&array);
            return PyErr_NoMemory(), -1;
        }
    }
    column->release = NULL;
    return add_batch(to, &array, "text");
}

held_data *hold_with_column(held_data *held, int64_t child, struct ArrowSchema *schema, struct ArrowArray *arrays) {
    const data_input *from = &held->data;
    data_input made = {.is_struct = from->is_struct, .is_list = from->is_list};
    held_data *result = NULL;
    int added = 0;
    if (!from->is_struct) {
        made.schema = *schema;
        schema->release = NULL;
    } else if (!schema_with(&from->schema, child, schema, &made.schema)) {
        added = (PyErr_NoMemory(), -1);
    }
    for (size_t i = 0; i < from->batch_count && added == 0; i++)
        added = add_with_column(held, i, child, &arrays[i], &made);
    if (added == 0 && !(result = hold_data(&made)))
        PyErr_NoMemory();
    if (schema->release)
        schema->release(schema);
    for (size_t i = 0; i < from->batch_count; i++)
        if (arrays[i].release)
            arrays[i].release(&arrays[i]);
    free_data(&made);
    return result;
}

/* ---- streams ---- */

typedef struct row_stream {
    held_data *held;
    uint8_t *wanted; /* a byte a row; NULL: all are */
    size_t batch;    /* the next row: its batch, and its place there */
    int64_t row;
} row_stream;

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *to) {
    const row_stream *rows = stream->private_data;
    return schema_copy(&rows->held->data.schema, to) ? 0 : ENOMEM;
}

/* Finds the next run of wanted rows in a batch, from rows->row on; gives its length, and its first row in rows->row. */
static int64_t next_run(row_stream *rows, const data_batch *batch) {
    int64_t length = batch->array.length, end;
    const uint8_t *wanted = rows->wanted ? rows->wanted + batch->first : NULL;
    while (wanted && rows->row < length && !wanted[rows->row])
        rows->row++;
    for (end = rows->row; end < length && (!wanted || wanted[end]);)
        end = wanted ? end + 1 : length;
    return end - rows->row;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *to) {
    row_stream *rows = stream->private_data;
    const data_input *data = &rows->held->data;
    *to = (struct ArrowArray){0};
    while (rows->batch < data->batch_count) {
        int64_t count = next_run(rows, &data->batches[rows->batch]);
        if (count) {
            if (!share_rows(rows->held, rows->batch, rows->row, count, to))
                return ENOMEM;
            rows->row += count;
            return 0;
        }
        rows->batch++;
        rows->row = 0;
    }
    return 0;
}

/* Only memory can fail. */
static const char *stream_error(struct ArrowArrayStream *stream) {
    (void)stream;
    return "no memory";
}

static void release_stream(struct ArrowArrayStream *stream) {
    row_stream *rows = stream->private_data;
    drop_data(rows->held);
    free(rows->wanted);
    free(rows);
    stream->release = NULL;
}

static void free_stream_capsule(PyObject *capsule) {
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    put_aside aside = put_exception_aside();
    if (stream && stream->release)
        stream->release(stream);
    put_exception_back(aside);
    free(stream);
}

PyObject *stream_of_held(held_data *held, const uint8_t *wanted) {
    row_stream *rows = calloc(1, sizeof *rows);
    struct ArrowArrayStream *stream = malloc(sizeof *stream);
    uint8_t *copy = wanted ? malloc(held->data.rows + 1) : NULL;
    if (!rows || !stream || (wanted && !copy)) {
        free(rows);
        free(stream);
        free(copy);
        return PyErr_NoMemory();
    }
    if (wanted)
        memcpy(copy, wanted, held->data.rows);
    *rows = (row_stream){.held = hold_again(held), .wanted = copy};
    *stream = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, release_stream, rows};
    PyObject *capsule = PyCapsule_New(stream, "arrow_array_stream", free_stream_capsule);
    if (!capsule) {
        release_stream(stream);
        free(stream);
    }
    return capsule;
}

PyObject *stream_of_rows(data_input *data, const uint8_t *wanted) {
    held_data *held = hold_data(data);
    if (!held) {
        free_data(data);
        return PyErr_NoMemory();
    }
    PyObject *capsule = stream_of_held(held, wanted);
    drop_data(held);
    return capsule;
}

/* rows(data, wanted): the stream of the wanted rows, a byte each. */
static PyObject *rows(PyObject *module, PyObject *args) {
    PyObject *object;
    const char *wanted;
    Py_ssize_t length;
    data_input data;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy#:rows", &object, &wanted, &length) || take_data(object, "data", &data) < 0)
        return NULL;
    if (data.rows == (uint64_t)length)
        return stream_of_rows(&data, (const uint8_t *)wanted);
    PyErr_Format(PyExc_ValueError, "wanted: %zd values for %llu rows", length, (unsigned long long)data.rows);
    free_data(&data);
    return NULL;
}

/* ---- columns as a table ---- */

/* Names and Arrays of a dict, checked; -1: an exception. */
static int get_columns(PyObject *columns, PyObject **names, PyObject **arrays) {
    *names = PyDict_Keys(columns);
    *arrays = *names ? PyDict_Values(columns) : NULL;
    Py_ssize_t count = *arrays ? PyList_Size(*arrays) : 0, length = 0;
    int result = *arrays ? 0 : -1;
    for (Py_ssize_t i = 0; i < count && result == 0; i++) {
        PyObject *array = PyList_GetItem(*arrays, i), *name = PyList_GetItem(*names, i);
        if (!PyUnicode_Check(name) || Py_TYPE(array) != doppel_module.array) {
            PyErr_SetString(PyExc_TypeError, "columns: expected a dict of str and Array");
            result = -1;
        } else if (i && PyObject_Size(array) != length) {
            PyErr_Format(PyExc_ValueError, "columns: %R has %zd rows, others have %zd", name, PyObject_Size(array),
                         length);
            result = -1;
        }
        length = PyObject_Size(array);
    }
    if (result < 0) {
        Py_CLEAR(*names);
        Py_CLEAR(*arrays);
    }
    return result;
}

static bool columns_schema(PyObject *names, PyObject *arrays, struct ArrowSchema *to) {
    Py_ssize_t count = PyList_Size(arrays);
    bool fine = schema_make(to, "+s", "", (size_t)count);
    if (!fine)
        return false;
    to->flags = 0;
    for (Py_ssize_t i = 0; i < count && fine; i++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyList_GetItem(names, i), NULL);
        fine = name && export_schema(PyList_GetItem(arrays, i), name, to->children[i]);
    }
    if (!fine)
        to->release(to);
    return fine;
}

/* What a struct of columns has of its own. */
typedef struct struct_array {
    const void *buffers[1];
    struct ArrowArray *children, **pointers;
} struct_array;

static void release_struct(struct ArrowArray *array) {
    struct_array *made = array->private_data;
    for (int64_t i = 0; made->children && i < array->n_children; i++)
        if (made->children[i].release)
            made->children[i].release(&made->children[i]);
    free(made->children);
    free(made->pointers);
    free(made);
    array->release = NULL;
}

static bool columns_array(PyObject *arrays, struct ArrowArray *to) {
    size_t count = (size_t)PyList_Size(arrays);
    struct_array *made = calloc(1, sizeof *made);
    if (!made)
        return false;
    made->children = calloc(count + 1, sizeof *made->children);
    made->pointers = calloc(count + 1, sizeof(struct ArrowArray *));
    *to = (struct ArrowArray){.n_buffers = 1,
                              .buffers = made->buffers,
                              .n_children = (int64_t)count,
                              .children = made->pointers,
                              .release = release_struct,
                              .private_data = made};
    bool fine = made->children && made->pointers;
    for (size_t i = 0; i < count && fine; i++) {
        made->pointers[i] = &made->children[i];
        fine = export_array(PyList_GetItem(arrays, (Py_ssize_t)i), &made->children[i]);
        to->length = fine ? made->children[i].length : 0;
    }
    if (!fine)
        release_struct(to);
    return fine;
}

/* The columns as data of one batch; -1: an exception. */
static int columns_data(PyObject *names, PyObject *arrays, data_input *data) {
    struct ArrowArray array;
    *data = (data_input){.is_struct = true};
    if (columns_schema(names, arrays, &data->schema) && columns_array(arrays, &array) &&
        add_batch(data, &array, "columns") == 0)
        return 0;
    free_data(data);
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return -1;
}

PyObject *stream_of_columns(PyObject *columns) {
    PyObject *names, *arrays;
    data_input data;
    if (get_columns(columns, &names, &arrays) < 0)
        return NULL;
    int result = columns_data(names, arrays, &data);
    Py_DECREF(names);
    Py_DECREF(arrays);
    return result == 0 ? stream_of_rows(&data, NULL) : NULL;
}

static PyObject *call_stream_of_columns(PyObject *module, PyObject *columns) {
    (void)module;
    return PyDict_Check(columns) ? stream_of_columns(columns) : raise_type("columns", -1, "dict", columns);
}

static PyObject *schema_of_columns(PyObject *module, PyObject *columns) {
    PyObject *names, *arrays;
    struct ArrowSchema schema;
    (void)module;
    if (!PyDict_Check(columns))
        return raise_type("columns", -1, "dict", columns);
    if (get_columns(columns, &names, &arrays) < 0)
        return NULL;
    bool fine = columns_schema(names, arrays, &schema);
    Py_DECREF(names);
    Py_DECREF(arrays);
    if (fine)
        return capsule_of_schema(&schema);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

static PyMethodDef functions[] = {
    {"texts", texts, METH_VARARGS,
     "texts(data, name='text', argument='texts', /)\n--\n\nThe texts of a column as a list of str, None for null."},
    {"rows", rows, METH_VARARGS,
     "rows(data, wanted, /)\n--\n\nThe rows that are wanted (bytes, one a row), as an Arrow PyCapsule stream."},
    {"stream_of_columns", call_stream_of_columns, METH_O,
     "stream_of_columns(columns, /)\n--\n\nA dict of Arrays as an Arrow PyCapsule stream."},
    {"schema_of_columns", schema_of_columns, METH_O,
     "schema_of_columns(columns, /)\n--\n\nThe Arrow PyCapsule of the type of a dict of Arrays."},
    {NULL, NULL, 0, NULL},
};

int init_arrow(PyObject *module) {
    return init_array(module) < 0 ? -1 : add_functions(module, functions);
}
