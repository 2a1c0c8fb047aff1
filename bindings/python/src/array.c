/* array.c - results of calls: array_builder, which fills columns without the GIL, and the type Array that it becomes.
 *
 * An Array is a view of `length` rows, from `offset` on, of memory that is counted: by its views, and by every Arrow
 * array that was exported of it, each part of which counts for itself, since a consumer may move parts out of it.
 * Nothing in that memory is a Python object, so that the release of an exported array needs no GIL. */
#include "module.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds of values ---- */

static const struct kind {
    const char *name;   /* as `type` says it, without "[WIDTH]" */
    const char *format; /* of Arrow, without ":WIDTH" */
    size_t bytes;       /* of a value, or of a unit of `width` */
    bool has_width, has_offsets;
} kinds[] = {
    [VALUE_BOOL] = {"bool", "b", 1, false, false},
    [VALUE_INT32] = {"int32", "i", 4, false, false},
    [VALUE_UINT32] = {"uint32", "I", 4, false, false},
    [VALUE_INT64] = {"int64", "l", 8, false, false},
    [VALUE_UINT64] = {"uint64", "L", 8, false, false},
    [VALUE_DOUBLE] = {"double", "g", 8, false, false},
    [VALUE_BINARY] = {"fixed_size_binary", "w", 1, true, false},
    [VALUE_UINT32_LIST] = {"fixed_size_list<uint32>", "+w", 4, true, false},
    [VALUE_UINT64_LIST] = {"large_list<uint64>", "+L", 8, false, true},
    [VALUE_STRING] = {"large_string", "U", 1, false, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Bytes of a row; of a kind with offsets, of a value. */
static size_t row_bytes(value_kind kind, size_t width) {
    return kinds[kind].has_width ? kinds[kind].bytes * width : kinds[kind].bytes;
}

static bool has_bit(const uint8_t *bits, int64_t at) {
    return bits[at / 8] >> at % 8 & 1;
}

int64_t count_nulls(const uint8_t *valid, int64_t offset, int64_t length) {
    int64_t nulls = 0, at = offset, end = offset + length;
    for (; at < end && at % 8; at++)
        nulls += !has_bit(valid, at);
    for (; end - at >= 8; at += 8)
        nulls += 8 - __builtin_popcount(valid[at / 8]);
    for (; at < end; at++)
        nulls += !has_bit(valid, at);
    return nulls;
}

/* Packs bytes of 0 and 1 into bits, in memory of its own. */
static uint8_t *pack_bits(const uint8_t *bytes, size_t count) {
    uint8_t *bits = calloc(count / 8 + 1, 1);
    for (size_t i = 0; bits && i < count; i++)
        bits[i / 8] = (uint8_t)(bits[i / 8] | (bytes[i] ? 1u : 0u) << i % 8);
    return bits;
}

uint8_t *copy_bits(const uint8_t *bits, int64_t offset, int64_t length) {
    uint8_t *copy = calloc((size_t)length / 8 + 1, 1);
    for (int64_t i = 0; copy && i < length; i++)
        copy[i / 8] = (uint8_t)(copy[i / 8] | has_bit(bits, offset + i) << i % 8);
    return copy;
}

/* ---- building ---- */

bool builder_init(array_builder *builder, value_kind kind, size_t width, size_t length) {
    size_t each = row_bytes(kind, width), bytes;
    *builder = (array_builder){.kind = kind, .width = width, .length = length};
    if (kinds[kind].has_offsets) {
        if (length >= SIZE_MAX / sizeof *builder->offsets - 1)
            return false;
        builder->offsets = malloc((length + 1) * sizeof *builder->offsets);
        builder->values = malloc(each);
        builder->value_room = 1;
        if (builder->offsets)
            builder->offsets[0] = 0;
    } else if (!__builtin_mul_overflow(length, each, &bytes)) {
        builder->values = calloc(bytes ? bytes : 1, 1);
    }
    if (builder->values && (builder->offsets || !kinds[kind].has_offsets))
        return true;
    builder_free(builder);
    return false;
}

bool builder_make_valid(array_builder *builder) {
    if (builder->valid)
        return true;
    builder->valid = malloc(builder->length ? builder->length : 1);
    if (builder->valid)
        memset(builder->valid, 1, builder->length);
    return builder->valid;
}

/* Room for another row, of strings and lists. */
static bool grow_rows(array_builder *builder) {
    if (builder->added < builder->length)
        return true;
    size_t length = builder->length < 64 ? 128 : builder->length * 2;
    int64_t *offsets = realloc(builder->offsets, (length + 1) * sizeof *offsets);
    if (!offsets)
        return false;
    builder->offsets = offsets;
    if (builder->valid) {
        uint8_t *valid = realloc(builder->valid, length);
        if (!valid)
            return false;
        builder->valid = valid;
        memset(valid + builder->length, 1, length - builder->length);
    }
    builder->length = length;
    return true;
}

/* Adds a row of `count` values. */
static bool add_values(array_builder *builder, const void *values, size_t count, bool is_null) {
    size_t each = row_bytes(builder->kind, 0);
    if (!grow_rows(builder) || (is_null && !builder_make_valid(builder)))
        return false;
    size_t have = (size_t)builder->offsets[builder->added], need;
    if (__builtin_add_overflow(have, count, &need) || need > (size_t)INT64_MAX / each)
        return false;
    if (need > builder->value_room) {
        size_t room = need + need / 2 + 64;
        void *grown = realloc(builder->values, room * each);
        if (!grown)
            return false;
        builder->values = grown;
        builder->value_room = room;
    }
    if (count)
        memcpy((char *)builder->values + have * each, values, count * each);
    if (is_null)
        builder->valid[builder->added] = 0;
    builder->offsets[++builder->added] = (int64_t)need;
    return true;
}

bool builder_add_string(array_builder *builder, doppel_slice string) {
    return add_values(builder, string.data, string.length, !string.data);
}

bool builder_add_list(array_builder *builder, const uint64_t *values, size_t count, bool is_null) {
    return add_values(builder, values, is_null ? 0 : count, is_null);
}

void builder_free(array_builder *builder) {
    free(builder->values);
    free(builder->valid);
    free(builder->offsets);
    *builder = (array_builder){0};
}

/* ---- memory ---- */

typedef struct array_memory {
    atomic_size_t users;
    value_kind kind;
    size_t width;
    uint8_t *valid;   /* bits; NULL: none is null */
    int64_t *offsets; /* of strings and lists */
    void *values;     /* truth values are bits */
    int64_t value_count;
} array_memory;

static array_memory *memory_share(array_memory *memory) {
    atomic_fetch_add(&memory->users, 1);
    return memory;
}

static void memory_drop(array_memory *memory) {
    if (!memory || atomic_fetch_sub(&memory->users, 1) > 1)
        return;
    free(memory->valid);
    free(memory->offsets);
    free(memory->values);
    free(memory);
}

/* Makes NaN null, and null NaN, as NumPy has it; false: no memory. */
static bool match_nan_and_null(array_builder *builder) {
    double *values = builder->values;
    for (size_t i = 0; i < builder->length; i++) {
        if (builder->valid && !builder->valid[i])
            values[i] = NAN;
        if (!isnan(values[i]))
            continue;
        if (!builder_make_valid(builder))
            return false;
        builder->valid[i] = 0;
    }
    return true;
}

/* Takes over what a builder has, whose `length` is that of the rows. NULL: no memory. */
static array_memory *memory_make(array_builder *builder) {
    array_memory *memory = calloc(1, sizeof *memory);
    if (!memory || (builder->kind == VALUE_DOUBLE && !match_nan_and_null(builder)))
        goto failed;
    *memory = (array_memory){.kind = builder->kind, .width = builder->width};
    atomic_init(&memory->users, 1);
    if (builder->valid && memchr(builder->valid, 0, builder->length) &&
        !(memory->valid = pack_bits(builder->valid, builder->length)))
        goto failed;
    if (builder->kind == VALUE_BOOL) {
        if (!(memory->values = pack_bits(builder->values, builder->length)))
            goto failed;
    } else {
        memory->values = builder->values;
        builder->values = NULL;
    }
    memory->offsets = builder->offsets;
    builder->offsets = NULL;
    memory->value_count = memory->offsets ? memory->offsets[builder->length]
                                          : (int64_t)(builder->length * (builder->width ? builder->width : 1));
    return memory;
failed:
    memory_drop(memory);
    return NULL;
}

/* ---- Array ---- */

typedef struct array_object {
    PyObject_HEAD;
    array_memory *memory;
    int64_t offset, length, nulls;
} array_object;

/* A view; it takes over one use of the memory, also when it fails. */
static PyObject *view_make(array_memory *memory, int64_t offset, int64_t length) {
    array_object *view = (array_object *)PyType_GenericAlloc(doppel_module.array, 0);
    if (!view) {
        memory_drop(memory);
        return NULL;
    }
    view->memory = memory;
    view->offset = offset;
    view->length = length;
    view->nulls = memory->valid ? count_nulls(memory->valid, offset, length) : 0;
    return (PyObject *)view;
}

static PyObject *array_to_list(PyObject *self, PyObject *unused);

PyObject *builder_finish(array_builder *builder, bool as_list) {
    if (builder->offsets)
        builder->length = builder->added;
    int64_t length = (int64_t)builder->length;
    array_memory *memory = memory_make(builder);
    builder_free(builder);
    PyObject *view = memory ? view_make(memory, 0, length) : PyErr_NoMemory();
    if (!view || !as_list)
        return view;
    PyObject *list = array_to_list(view, NULL);
    Py_DECREF(view);
    return list;
}

static void array_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    memory_drop(((array_object *)self)->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *make_list(const void *values, size_t bytes, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        unsigned long long value = bytes == 4 ? ((const uint32_t *)values)[i] : ((const uint64_t *)values)[i];
        PyObject *number = PyLong_FromUnsignedLongLong(value);
        if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* The value of an entry of the memory, as Python has it. */
static PyObject *value_at(const array_memory *memory, int64_t at) {
    const void *values = memory->values;
    size_t width = memory->width;
    if (memory->valid && !has_bit(memory->valid, at))
        return Py_NewRef(Py_None);
    const int64_t *range = memory->offsets ? memory->offsets + at : NULL;
    switch (memory->kind) {
    case VALUE_BOOL: return PyBool_FromLong(has_bit(values, at));
    case VALUE_INT32: return PyLong_FromLong(((const int32_t *)values)[at]);
    case VALUE_UINT32: return PyLong_FromUnsignedLong(((const uint32_t *)values)[at]);
    case VALUE_INT64: return PyLong_FromLongLong(((const int64_t *)values)[at]);
    case VALUE_UINT64: return PyLong_FromUnsignedLongLong(((const uint64_t *)values)[at]);
    case VALUE_DOUBLE: return PyFloat_FromDouble(((const double *)values)[at]);
    case VALUE_BINARY: return PyBytes_FromStringAndSize((const char *)values + at * (int64_t)width, (Py_ssize_t)width);
    case VALUE_UINT32_LIST: return make_list((const uint32_t *)values + at * (int64_t)width, 4, width);
    case VALUE_UINT64_LIST: return make_list((const uint64_t *)values + range[0], 8, (size_t)(range[1] - range[0]));
    case VALUE_STRING:
        return PyUnicode_DecodeUTF8((const char *)values + range[0], (Py_ssize_t)(range[1] - range[0]), "replace");
    }
    return NULL;
}

static PyObject *array_to_list(PyObject *self, PyObject *unused) {
    (void)unused;
    const array_object *array = (array_object *)self;
    PyObject *list = PyList_New((Py_ssize_t)array->length);
    for (int64_t i = 0; list && i < array->length; i++) {
        PyObject *value = value_at(array->memory, array->offset + i);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static Py_ssize_t array_length(PyObject *self) {
    return (Py_ssize_t)((array_object *)self)->length;
}

static PyObject *array_item(PyObject *self, Py_ssize_t row) {
    const array_object *array = (array_object *)self;
    if (row >= 0 && row < array->length)
        return value_at(array->memory, array->offset + row);
    PyErr_Format(PyExc_IndexError, "row %zd of %zd", row, array_length(self));
    return NULL;
}

/* Copies one entry into row `row` of a builder; false: no memory. */
static bool copy_entry(const array_memory *memory, int64_t from, array_builder *builder, size_t row) {
    bool is_null = memory->valid && !has_bit(memory->valid, from);
    size_t each = row_bytes(memory->kind, memory->width);
    if (memory->offsets) {
        int64_t first = memory->offsets[from], end = memory->offsets[from + 1];
        const char *values = (const char *)memory->values + (size_t)first * each;
        return add_values(builder, values, is_null ? 0 : (size_t)(end - first), is_null);
    }
    if (memory->kind == VALUE_BOOL)
        ((uint8_t *)builder->values)[row] = has_bit(memory->values, from);
    else
        memcpy((char *)builder->values + row * each, (const char *)memory->values + (size_t)from * each, each);
    if (is_null && !builder_make_valid(builder))
        return false;
    if (is_null)
        builder->valid[row] = 0;
    return true;
}

/* Rows that are not side by side, copied. */
static PyObject *copy_rows(const array_object *array, Py_ssize_t start, Py_ssize_t step, Py_ssize_t count) {
    array_builder builder;
    bool fine = builder_init(&builder, array->memory->kind, array->memory->width, (size_t)count);
    for (Py_ssize_t i = 0; i < count && fine; i++)
        fine = copy_entry(array->memory, array->offset + start + i * step, &builder, (size_t)i);
    if (fine)
        return builder_finish(&builder, false);
    builder_free(&builder);
    return PyErr_NoMemory();
}

PyObject *take_rows(PyObject *self, const uint8_t *wanted) {
    const array_object *array = (array_object *)self;
    size_t count = 0, row = 0;
    array_builder builder;
    for (int64_t i = 0; i < array->length; i++)
        count += wanted[i] != 0;
    bool fine = builder_init(&builder, array->memory->kind, array->memory->width, count);
    for (int64_t i = 0; i < array->length && fine; i++)
        if (wanted[i])
            fine = copy_entry(array->memory, array->offset + i, &builder, row++);
    if (fine)
        return builder_finish(&builder, false);
    builder_free(&builder);
    return PyErr_NoMemory();
}

static PyObject *array_subscript(PyObject *self, PyObject *key) {
    const array_object *array = (array_object *)self;
    if (PySlice_Check(key)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(key, &start, &stop, &step) < 0)
            return NULL;
        Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)array->length, &start, &stop, step);
        if (step != 1)
            return copy_rows(array, start, step, count);
        return view_make(memory_share(array->memory), array->offset + start, count);
    }
    if (!PyIndex_Check(key))
        return raise_type("index", -1, "int or slice", key);
    Py_ssize_t row = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (row == -1 && PyErr_Occurred())
        return NULL;
    return array_item(self, row < 0 ? row + (Py_ssize_t)array->length : row);
}

/* Whether it has the same values as another sequence: 1, 0 or -1 (an exception). */
static int equals(PyObject *self, PyObject *other) {
    Py_ssize_t length = array_length(self);
    int equal = PySequence_Size(other) == length;
    for (Py_ssize_t i = 0; i < length && equal > 0; i++) {
        PyObject *mine = array_item(self, i), *its = mine ? PySequence_GetItem(other, i) : NULL;
        equal = its ? PyObject_RichCompareBool(mine, its, Py_EQ) : -1;
        Py_XDECREF(mine);
        Py_XDECREF(its);
    }
    return equal;
}

static PyObject *array_compare(PyObject *self, PyObject *other, int operation) {
    bool is_text = PyUnicode_Check(other) || PyBytes_Check(other);
    if ((operation != Py_EQ && operation != Py_NE) || is_text || !PySequence_Check(other) ||
        PySequence_Size(other) < 0) {
        PyErr_Clear();
        return Py_NewRef(Py_NotImplemented);
    }
    int equal = equals(self, other);
    return equal < 0 ? NULL : PyBool_FromLong(equal == (operation == Py_EQ));
}

static PyObject *array_type(PyObject *self, void *unused) {
    (void)unused;
    const array_memory *memory = ((array_object *)self)->memory;
    const struct kind *kind = &kinds[memory->kind];
    return kind->has_width ? PyUnicode_FromFormat("%s[%zu]", kind->name, memory->width)
                           : PyUnicode_FromString(kind->name);
}

static PyObject *array_null_count(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(((array_object *)self)->nulls);
}

static PyObject *array_repr(PyObject *self) {
    enum { SHOWN = 5 };
    const array_object *array = (array_object *)self;
    int64_t shown = array->length < SHOWN ? array->length : SHOWN;
    PyObject *type = array_type(self, NULL), *text = NULL;
    PyObject *head = type ? view_make(memory_share(array->memory), array->offset, shown) : NULL;
    PyObject *list = head ? array_to_list(head, NULL) : NULL;
    if (list && shown < array->length)
        text = PyUnicode_FromFormat("doppel.Array(%U, %zd values, the first are %R)", type, array_length(self), list);
    else if (list)
        text = PyUnicode_FromFormat("doppel.Array(%U, %R)", type, list);
    Py_XDECREF(list);
    Py_XDECREF(head);
    Py_XDECREF(type);
    return text;
}

/* The values of a kind that has no offsets side by side, truth values a byte each; null is whatever stands there. */
static PyObject *array_to_bytes(PyObject *self, PyObject *unused) {
    (void)unused;
    const array_object *array = (array_object *)self;
    const array_memory *memory = array->memory;
    size_t each = row_bytes(memory->kind, memory->width);
    if (memory->offsets) {
        PyErr_Format(PyExc_TypeError, "values of %s have no fixed size", kinds[memory->kind].name);
        return NULL;
    }
    if (memory->kind != VALUE_BOOL)
        return PyBytes_FromStringAndSize((const char *)memory->values + (size_t)array->offset * each,
                                         (Py_ssize_t)((size_t)array->length * each));
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)array->length);
    char *to = bytes ? PyBytes_AsString(bytes) : NULL;
    for (int64_t i = 0; to && i < array->length; i++)
        to[i] = has_bit(memory->values, array->offset + i);
    return bytes;
}

static PyObject *array_index(PyObject *self, PyObject *value) {
    Py_ssize_t found = PySequence_Index(self, value);
    return found < 0 ? NULL : PyLong_FromSsize_t(found);
}

static PyObject *array_count(PyObject *self, PyObject *value) {
    Py_ssize_t count = PySequence_Count(self, value);
    return count < 0 ? NULL : PyLong_FromSsize_t(count);
}

/* Pickled as array(type, values). */
static PyObject *array_reduce(PyObject *self, PyObject *unused) {
    PyObject *module = PyImport_ImportModule("doppel._doppel");
    PyObject *function = module ? PyObject_GetAttrString(module, "array") : NULL;
    PyObject *type = array_type(self, NULL), *list = array_to_list(self, unused), *result = NULL;
    if (function && type && list)
        result = Py_BuildValue("O(OO)", function, type, list);
    Py_XDECREF(module);
    Py_XDECREF(function);
    Py_XDECREF(type);
    Py_XDECREF(list);
    return result;
}

/* __array__ of NumPy: doppel/_types.py has it. */
static PyObject *array_numpy(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    PyObject *types = PyImport_ImportModule("doppel._types");
    PyObject *result = types ? PyObject_CallMethod(types, "array_to_numpy", "OOO", self, dtype, copy) : NULL;
    Py_XDECREF(types);
    return result;
}

/* ---- export ---- */

/* What an exported array has of its own, beside one use of the memory. The child of lists has one, too. Exported
 * arrays have no offset, which not every consumer heeds: buffers begin at the first row, and bits are copied where it
 * is not the first of a byte. */
typedef struct exported_array {
    array_memory *memory;
    const void *buffers[4];
    void *copies[2];    /* of validity; of truth values, or of offsets and views */
    int64_t view_bytes; /* of views: the length of the one buffer that they point into */
    struct ArrowArray child, *children[1];
} exported_array;

static void release_exported(struct ArrowArray *array) {
    exported_array *exported = array->private_data;
    if (array->n_children && array->children[0]->release)
        array->children[0]->release(array->children[0]);
    free(exported->copies[0]);
    free(exported->copies[1]);
    memory_drop(exported->memory);
    free(exported);
    array->release = NULL;
}

/* Begins an export of `length` rows of two buffers; false: no memory. */
static bool begin_export(array_memory *memory, int64_t length, struct ArrowArray *to) {
    exported_array *exported = calloc(1, sizeof *exported);
    *to = (struct ArrowArray){0};
    if (!exported)
        return false;
    exported->memory = memory_share(memory);
    *to = (struct ArrowArray){.length = length,
                              .buffers = exported->buffers,
                              .n_buffers = 2,
                              .release = release_exported,
                              .private_data = exported};
    return true;
}

/* Makes bits from `offset` on buffer `number`; false: no memory. */
static bool export_bits(const uint8_t *bits, int64_t offset, struct ArrowArray *to, int number) {
    exported_array *exported = to->private_data;
    if (offset % 8 == 0) {
        exported->buffers[number] = bits + offset / 8;
        return true;
    }
    exported->buffers[number] = exported->copies[number] = copy_bits(bits, offset, to->length);
    return exported->buffers[number];
}

/* The values of lists, from `first` on, as a child; false: no memory. */
static bool export_child(struct ArrowArray *parent, int64_t first, int64_t count) {
    exported_array *exported = parent->private_data;
    array_memory *memory = exported->memory;
    if (!begin_export(memory, count, &exported->child))
        return false;
    size_t bytes = kinds[memory->kind].bytes;
    ((exported_array *)exported->child.private_data)->buffers[1] = (const char *)memory->values + (size_t)first * bytes;
    exported->children[0] = &exported->child;
    parent->children = exported->children;
    parent->n_children = 1;
    return true;
}

static bool export_values(const array_object *array, struct ArrowArray *to) {
    const array_memory *memory = array->memory;
    exported_array *exported = to->private_data;
    int64_t width = (int64_t)memory->width;
    if (memory->offsets)
        exported->buffers[1] = memory->offsets + array->offset;
    switch (memory->kind) {
    case VALUE_BOOL: return export_bits(memory->values, array->offset, to, 1);
    case VALUE_STRING:
        to->n_buffers = 3;
        exported->buffers[2] = memory->values;
        return true;
    case VALUE_UINT64_LIST: return export_child(to, 0, memory->value_count);
    case VALUE_UINT32_LIST: to->n_buffers = 1; return export_child(to, array->offset * width, array->length * width);
    default:
        exported->buffers[1] =
            (const char *)memory->values + (size_t)array->offset * row_bytes(memory->kind, memory->width);
        return true;
    }
}

bool export_array(PyObject *self, struct ArrowArray *to) {
    const array_object *array = (array_object *)self;
    if (!begin_export(array->memory, array->length, to))
        return false;
    to->null_count = array->nulls;
    if ((!array->nulls || export_bits(array->memory->valid, array->offset, to, 0)) && export_values(array, to))
        return true;
    to->release(to);
    return false;
}

/* Offsets of 32 bits, which count from the first row on; NULL: no memory. */
static int32_t *make_offsets(const int64_t *from, int64_t count) {
    int32_t *offsets = malloc(((size_t)count + 1) * sizeof *offsets);
    for (int64_t i = 0; offsets && i <= count; i++)
        offsets[i] = (int32_t)(from[i] - from[0]);
    return offsets;
}

/* A string of a view column: its length, and the string itself or, if it is long, how it begins and where it stands. */
typedef struct string_view {
    int32_t length;
    union {
        char all[12];
        struct {
            char first[4];
            int32_t buffer, offset;
        } place;
    } is;
} string_view;

/* Views of strings that stand in one buffer, from byte from[0] of `values` on; NULL: no memory. */
static string_view *make_views(const char *values, const int64_t *from, int64_t count) {
    string_view *views = calloc((size_t)count + 1, sizeof *views);
    for (int64_t i = 0; views && i < count; i++) {
        string_view *view = &views[i];
        const char *string = values + from[i];
        view->length = (int32_t)(from[i + 1] - from[i]);
        if (view->length <= (int32_t)sizeof view->is.all) {
            memcpy(view->is.all, string, (size_t)view->length);
        } else {
            memcpy(view->is.place.first, string, sizeof view->is.place.first);
            view->is.place.offset = (int32_t)(from[i] - from[0]);
        }
    }
    return views;
}

/* The buffers of strings in a layout; false: no memory. */
static bool export_layout(const array_memory *memory, int64_t at, const char *format, struct ArrowArray *to) {
    exported_array *exported = to->private_data;
    const int64_t *offsets = memory->offsets + at;
    const char *values = memory->values;
    to->n_buffers = *format == 'v' ? 4 : 3;
    exported->buffers[2] = values + offsets[0];
    if (*format == 'U' || *format == 'Z') {
        exported->buffers[1] = offsets;
        exported->buffers[2] = values;
    } else if (*format == 'v') {
        exported->buffers[1] = exported->copies[1] = make_views(values, offsets, to->length);
        exported->buffers[3] = &exported->view_bytes;
        exported->view_bytes = offsets[to->length] - offsets[0];
    } else {
        exported->buffers[1] = exported->copies[1] = make_offsets(offsets, to->length);
    }
    return exported->buffers[1];
}

int export_strings(PyObject *self, int64_t first, int64_t count, const char *format, struct ArrowArray *to) {
    const array_object *array = (array_object *)self;
    array_memory *memory = array->memory;
    int64_t at = array->offset + first, bytes = memory->offsets[at + count] - memory->offsets[at];
    *to = (struct ArrowArray){0};
    if (bytes > INT32_MAX && *format != 'U' && *format != 'Z') {
        PyErr_Format(PyExc_ValueError, "more than 2 GiB of text in one batch of the Arrow type \"%s\"", format);
        return -1;
    }
    if (!begin_export(memory, count, to))
        return PyErr_NoMemory(), -1;
    to->null_count = memory->valid ? count_nulls(memory->valid, at, count) : 0;
    if ((!to->null_count || export_bits(memory->valid, at, to, 0)) && export_layout(memory, at, format, to))
        return 0;
    to->release(to);
    return PyErr_NoMemory(), -1;
}

bool export_schema(PyObject *self, const char *name, struct ArrowSchema *to) {
    const array_memory *memory = ((array_object *)self)->memory;
    const struct kind *kind = &kinds[memory->kind];
    bool is_list = kind->format[0] == '+';
    char format[32];
    if (kind->has_width)
        snprintf(format, sizeof format, "%s:%zu", kind->format, memory->width);
    else
        snprintf(format, sizeof format, "%s", kind->format);
    if (!schema_make(to, format, name, is_list ? 1 : 0))
        return false;
    if (!is_list || schema_make(to->children[0], memory->kind == VALUE_UINT32_LIST ? "I" : "L", "item", 0))
        return true;
    to->release(to);
    return false;
}

static PyObject *array_c_schema(PyObject *self, PyObject *unused) {
    struct ArrowSchema schema;
    (void)unused;
    return export_schema(self, "", &schema) ? capsule_of_schema(&schema) : PyErr_NoMemory();
}

static void free_array_capsule(PyObject *capsule) {
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array && array->release)
        array->release(array);
    free(array);
}

/* A capsule of the array; NULL: an exception. */
static PyObject *capsule_of_array(PyObject *self) {
    struct ArrowArray *array = malloc(sizeof *array);
    if (!array || !export_array(self, array)) {
        free(array);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(array, "arrow_array", free_array_capsule);
    if (!capsule) {
        array->release(array);
        free(array);
    }
    return capsule;
}

/* The requested type is ignored, as the protocol allows: the consumer converts. */
static PyObject *array_c_array(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"requested_schema", NULL};
    PyObject *requested = Py_None, *pair = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:__arrow_c_array__", names, &requested))
        return NULL;
    PyObject *schema = array_c_schema(self, NULL);
    PyObject *array = schema ? capsule_of_array(self) : NULL;
    if (array)
        pair = PyTuple_Pack(2, schema, array);
    Py_XDECREF(schema);
    Py_XDECREF(array);
    return pair;
}

/* ---- array(type, values): of Python values ---- */

/* Turns an OverflowError into a ValueError that names the row. */
static PyObject *out_of_range(const char *argument, Py_ssize_t row, const char *type) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%s[%zd]: out of the range of %s", argument, row, type);
    }
    return NULL;
}

/* An integer of a kind, as its bits; -1: an exception. */
static int take_integer(value_kind kind, PyObject *value, const char *argument, Py_ssize_t row, uint64_t *to) {
    bool is_signed = kind == VALUE_INT32 || kind == VALUE_INT64;
    PyObject *number = PyIndex_Check(value) ? PyNumber_Index(value) : NULL;
    if (!number)
        return PyErr_Occurred() ? -1 : (raise_type(argument, row, "int", value), -1);
    *to = is_signed ? (uint64_t)PyLong_AsLongLong(number) : PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if ((kind == VALUE_INT32 && (int64_t)*to != (int32_t)*to) || (kind == VALUE_UINT32 && *to > UINT32_MAX)) {
        if (!PyErr_Occurred())
            PyErr_SetNone(PyExc_OverflowError);
    }
    return PyErr_Occurred() ? (out_of_range(argument, row, kinds[kind].name), -1) : 0;
}

/* A list of integers, *count of them for a kind with a width; gives them in new memory, and their number. NULL: an
 * exception. */
static void *take_integers(value_kind kind, PyObject *list, const char *argument, Py_ssize_t row, size_t *count) {
    bool narrow = kind == VALUE_UINT32_LIST;
    Py_ssize_t length = PySequence_Check(list) ? PySequence_Size(list) : -1;
    if (length < 0) {
        PyErr_Clear();
        return raise_type(argument, row, "a list of int", list);
    }
    if (narrow && (size_t)length != *count)
        return PyErr_Format(PyExc_ValueError, "%s[%zd]: expected a list of length %zu, not %zd", argument, row, *count,
                            length);
    *count = (size_t)length;
    uint64_t *numbers = malloc(((size_t)length + 1) * sizeof *numbers);
    for (Py_ssize_t i = 0; numbers && i < length; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        uint64_t number = 0;
        if (!item || take_integer(narrow ? VALUE_UINT32 : VALUE_UINT64, item, argument, row, &number) < 0) {
            free(numbers);
            Py_XDECREF(item);
            return NULL;
        }
        Py_DECREF(item);
        if (narrow)
            ((uint32_t *)(void *)numbers)[i] = (uint32_t)number;
        else
            numbers[i] = number;
    }
    return numbers ? (void *)numbers : (void *)PyErr_NoMemory();
}

static int put_list(array_builder *builder, PyObject *value, const char *argument, Py_ssize_t row) {
    size_t count = builder->width, each = row_bytes(builder->kind, builder->width);
    void *numbers = take_integers(builder->kind, value, argument, row, &count);
    bool fine = numbers;
    if (fine && builder->kind == VALUE_UINT32_LIST)
        memcpy((char *)builder->values + (size_t)row * each, numbers, each);
    else if (fine && !(fine = builder_add_list(builder, numbers, count, false)))
        PyErr_NoMemory();
    free(numbers);
    return fine ? 0 : -1;
}

static int put_number(array_builder *builder, PyObject *value, const char *argument, Py_ssize_t row) {
    uint64_t number = 0;
    if (builder->kind == VALUE_DOUBLE) {
        double decimal = PyFloat_AsDouble(value);
        if (decimal == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return raise_type(argument, row, "float", value), -1;
        }
        ((double *)builder->values)[row] = decimal;
        return 0;
    }
    if (take_integer(builder->kind, value, argument, row, &number) < 0)
        return -1;
    if (row_bytes(builder->kind, 0) == 4)
        ((uint32_t *)builder->values)[row] = (uint32_t)number;
    else
        ((uint64_t *)builder->values)[row] = number;
    return 0;
}

static int put_bytes(array_builder *builder, PyObject *value, const char *argument, Py_ssize_t row) {
    if (!PyBytes_Check(value))
        return raise_type(argument, row, "bytes", value), -1;
    if ((size_t)PyBytes_Size(value) != builder->width) {
        PyErr_Format(PyExc_ValueError, "%s[%zd]: expected bytes of length %zu, not %zd", argument, row, builder->width,
                     PyBytes_Size(value));
        return -1;
    }
    memcpy((char *)builder->values + (size_t)row * builder->width, PyBytes_AsString(value), builder->width);
    return 0;
}

static int put_null(array_builder *builder, Py_ssize_t row) {
    bool fine = builder->offsets ? add_values(builder, NULL, 0, true) : builder_make_valid(builder);
    if (!fine)
        return PyErr_NoMemory(), -1;
    if (!builder->offsets)
        builder->valid[row] = 0;
    return 0;
}

/* Puts one value into a row; -1: an exception. */
static int put_value(array_builder *builder, PyObject *value, const char *argument, Py_ssize_t row) {
    if (builder->kind == VALUE_STRING)
        return builder_add_item(builder, value, argument, row);
    if (value == Py_None)
        return put_null(builder, row);
    switch (builder->kind) {
    case VALUE_BOOL:
        if (!PyBool_Check(value))
            return raise_type(argument, row, "bool", value), -1;
        ((uint8_t *)builder->values)[row] = value == Py_True;
        return 0;
    case VALUE_BINARY: return put_bytes(builder, value, argument, row);
    case VALUE_UINT32_LIST:
    case VALUE_UINT64_LIST: return put_list(builder, value, argument, row);
    default: return put_number(builder, value, argument, row);
    }
}

/* Reads a type as `type` of Array says it; "string" is one, too. -1: an exception. */
static int parse_type(const char *type, value_kind *kind, size_t *width) {
    size_t length = strcspn(type, "[");
    *width = 0;
    if (!strcmp(type, "string")) {
        *kind = VALUE_STRING;
        return 0;
    }
    for (int i = 0; i < KINDS; i++) {
        char *end = NULL;
        if (strlen(kinds[i].name) != length || strncmp(type, kinds[i].name, length) != 0)
            continue;
        *kind = (value_kind)i;
        if (kinds[i].has_width)
            *width = strtoul(type + length + (type[length] == '['), &end, 10);
        if (kinds[i].has_width ? *width > 0 && *width <= INT32_MAX && !strcmp(end, "]") : !type[length])
            return 0;
    }
    PyErr_Format(PyExc_ValueError, "type: unknown type \"%s\"", type);
    return -1;
}

static PyObject *make_array(PyObject *module, PyObject *args) {
    const char *type, *argument = "values";
    PyObject *values;
    value_kind kind;
    size_t width;
    array_builder builder;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO|s:array", &type, &values, &argument) || parse_type(type, &kind, &width) < 0)
        return NULL;
    PyObject *list = PySequence_List(values);
    if (!list)
        return NULL;
    Py_ssize_t length = PyList_Size(list);
    int result = builder_init(&builder, kind, width, (size_t)length) ? 0 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; i < length && result == 0; i++)
        result = put_value(&builder, PyList_GetItem(list, i), argument, i);
    Py_DECREF(list);
    if (result == 0)
        return builder_finish(&builder, false);
    builder_free(&builder);
    return NULL;
}

/* ---- the type ---- */

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef array_methods[] = {
    {"to_list", array_to_list, METH_NOARGS, "to_list($self, /)\n--\n\nThe values as a list; null is None."},
    {"tolist", array_to_list, METH_NOARGS, "tolist($self, /)\n--\n\nThe same as to_list()."},
    {"to_bytes", array_to_bytes, METH_NOARGS,
     "to_bytes($self, /)\n--\n\nValues of a fixed size, side by side, little-endian; a byte for each bool."},
    {"index", array_index, METH_O,
     "index($self, value, /)\n--\n\nThe first row with this value; ValueError: there is none."},
    {"count", array_count, METH_O, "count($self, value, /)\n--\n\nHow many rows have this value."},
    {"__array__", METHOD(array_numpy), METH_VARARGS | METH_KEYWORDS, "The values as a NumPy array, copied."},
    {"__arrow_c_array__", METHOD(array_c_array), METH_VARARGS | METH_KEYWORDS, "Arrow PyCapsules of type and values."},
    {"__arrow_c_schema__", array_c_schema, METH_NOARGS, "The Arrow PyCapsule of the type."},
    {"__reduce__", array_reduce, METH_NOARGS, "For pickling."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef array_members[] = {
    {"type", array_type, NULL, "The Arrow type, such as \"uint64\" or \"fixed_size_binary[32]\".", NULL},
    {"null_count", array_null_count, NULL, "How many values are null.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char array_doc[] =
    "The result of a call: a column of values that is also a sequence.\n\n"
    "Any library that takes Arrow data takes it without copying: `pyarrow.array(a)`, `polars.Series(a)`;\n"
    "`numpy.asarray(a)` copies. It does not change.\n\n"
    ">>> import doppel\n"
    ">>> array = doppel.sketch(['one two three', 'four'], columns=['words'])['words']\n"
    ">>> len(array), array[0], array.to_list(), array.type\n"
    "(2, 3, [3, 1], 'uint64')\n";

static PyType_Slot array_slots[] = {
    {Py_tp_doc, (void *)array_doc},     {Py_tp_dealloc, array_dealloc}, {Py_tp_repr, array_repr},
    {Py_tp_richcompare, array_compare}, {Py_tp_iter, PySeqIter_New},    {Py_sq_length, array_length},
    {Py_sq_item, array_item},           {Py_mp_length, array_length},   {Py_mp_subscript, array_subscript},
    {Py_tp_methods, array_methods},     {Py_tp_getset, array_members},  {0, NULL},
};

static PyType_Spec array_spec = {"doppel.Array", sizeof(array_object), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 array_slots};

static PyMethodDef functions[] = {
    {"array", make_array, METH_VARARGS,
     "array(type, values, argument='values', /)\n--\n\nAn Array of Python values; None is null."},
    {NULL, NULL, 0, NULL},
};

int init_array(PyObject *module) {
    doppel_module.array = add_type(module, &array_spec);
    return doppel_module.array ? add_functions(module, functions) : -1;
}
