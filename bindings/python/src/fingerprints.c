/* fingerprints.c - fingerprints as a caller gives them (take_fingerprints), and hamming(...): differing bits.
 *
 * In whatever form they come, they are copied to one array, of 8 or 16 bytes each. */
#include "sketches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse_fingerprint(PyObject *object, const char *argument) {
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s: expected an int from 0 to 2**64 - 1, or 16 bytes, not %R", argument, object);
    return -1;
}

/* An int of more than 64 bits. */
static int take_wide_number(PyObject *number, const char *argument, uint64_t value[2]) {
    PyObject *half = PyLong_FromLong(64), *high = half ? PyNumber_Rshift(number, half) : NULL;
    value[0] = PyLong_AsUnsignedLongLongMask(number);
    value[1] = high ? PyLong_AsUnsignedLongLong(high) : 0;
    Py_XDECREF(half);
    Py_XDECREF(high);
    return PyErr_Occurred() ? refuse_fingerprint(number, argument) : 0;
}

static int take_number(PyObject *object, const char *argument, uint64_t value[2], bool *wide) {
    PyObject *number = PyNumber_Index(object);
    int status = 0;
    if (!number) {
        PyErr_Clear();
        raise_type(argument, -1, "int or 16 bytes", object);
        return -1;
    }
    value[0] = PyLong_AsUnsignedLongLong(number);
    value[1] = 0;
    *wide = value[0] == UINT64_MAX && PyErr_Occurred();
    if (*wide) {
        PyErr_Clear();
        status = take_wide_number(number, argument, value);
    }
    Py_DECREF(number);
    return status;
}

int take_fingerprint(PyObject *object, const char *argument, uint64_t value[2], bool *wide) {
    char *bytes;
    Py_ssize_t length;
    if (!PyBytes_Check(object))
        return take_number(object, argument, value, wide);
    if (PyBytes_AsStringAndSize(object, &bytes, &length) < 0)
        return -1;
    if (length != 16)
        return refuse_fingerprint(object, argument);
    memcpy(value, bytes, 16);
    *wide = true;
    return 0;
}

void free_fingerprints(fingerprints *f) {
    free(f->values);
    free(f->valid);
    *f = (fingerprints){0};
}

int widen_fingerprints(fingerprints *f) {
    uint64_t *wide = f->wide ? NULL : malloc((f->count + 1) * 2 * sizeof *wide);
    if (f->wide)
        return 0;
    if (!wide) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < f->count; i++) {
        wide[2 * i] = f->values[i];
        wide[2 * i + 1] = 0;
    }
    free(f->values);
    f->values = wide;
    f->wide = true;
    return 0;
}

/* Room for `count` fingerprints of either width, which are valid; -1: an exception. */
static int make_room(fingerprints *f, size_t count, bool has_nulls) {
    f->values = malloc((count + 1) * (f->wide ? 2 : 1) * sizeof *f->values);
    f->valid = has_nulls ? malloc(count + 1) : NULL;
    if (f->values && (f->valid || !has_nulls)) {
        if (has_nulls)
            memset(f->valid, 1, count + 1);
        f->count = count;
        return 0;
    }
    PyErr_NoMemory();
    return -1;
}

/* Appends an item of an iterable; while that is read, all have two halves. */
static int add_item(fingerprints *f, PyObject *item, const char *argument, bool *any_wide, size_t *room) {
    bool wide = false;
    char name[64];
    if (f->count == *room) {
        size_t more = *room ? *room * 2 : 64;
        uint64_t *values = realloc(f->values, more * 2 * sizeof *values);
        f->values = values ? values : f->values;
        uint8_t *valid = values ? realloc(f->valid, more) : NULL;
        f->valid = valid ? valid : f->valid;
        if (!valid) {
            PyErr_NoMemory();
            return -1;
        }
        *room = more;
    }
    uint64_t *value = f->values + 2 * f->count;
    f->valid[f->count] = item != Py_None;
    value[0] = value[1] = 0;
    snprintf(name, sizeof name, "%s[%zu]", argument, f->count);
    if (item != Py_None && take_fingerprint(item, name, value, &wide) < 0)
        return -1;
    *any_wide |= wide;
    f->count++;
    return 0;
}

/* Drops the validity where there is no null. */
static void forget_valid(fingerprints *f) {
    if (!f->valid || memchr(f->valid, 0, f->count))
        return;
    free(f->valid);
    f->valid = NULL;
}

/* All were read as wide ones: drops the high halves if none is. */
static void narrow(fingerprints *f, bool any_wide) {
    f->wide = any_wide;
    for (size_t i = 0; i < f->count && !any_wide; i++)
        f->values[i] = f->values[2 * i];
}

static int take_iterable(PyObject *object, const char *argument, fingerprints *f) {
    PyObject *iterator = PyObject_GetIter(object), *item;
    bool any_wide = false;
    size_t room = 0;
    int status = iterator ? 0 : -1;
    while (status == 0 && (item = PyIter_Next(iterator))) {
        status = add_item(f, item, argument, &any_wide, &room);
        Py_DECREF(item);
    }
    if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        raise_type(argument, -1, "fingerprints", object);
    }
    Py_XDECREF(iterator);
    if (status < 0 || PyErr_Occurred())
        return -1;
    narrow(f, any_wide);
    forget_valid(f);
    return 0;
}

/* Whether a format of the buffer protocol is one of 64-bit integers in the order of this machine. */
static bool is_number_format(PyObject *view) {
    static const char *const formats[] = {"Q", "L", "q", "l"};
    PyObject *format = PyObject_GetAttrString(view, "format"), *size = PyObject_GetAttrString(view, "itemsize");
    PyObject *dimensions = PyObject_GetAttrString(view, "ndim");
    bool is_one = false;
    if (format && size && dimensions && PyLong_AsLong(size) == 8 && PyLong_AsLong(dimensions) == 1)
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
            is_one |= !PyUnicode_CompareWithASCIIString(format, formats[i]);
    Py_XDECREF(format);
    Py_XDECREF(size);
    Py_XDECREF(dimensions);
    PyErr_Clear();
    return is_one;
}

/* A buffer of 64-bit integers. 0: it is none, or was taken (then there are values); -1: an exception. */
static int take_buffer(PyObject *object, fingerprints *f) {
    PyObject *view = PyMemoryView_FromObject(object), *bytes = NULL;
    char *data;
    Py_ssize_t length;
    PyErr_Clear();
    if (!view || !is_number_format(view)) {
        Py_XDECREF(view);
        return 0;
    }
    bytes = PyObject_CallMethod(view, "tobytes", NULL);
    Py_DECREF(view);
    int status = bytes ? PyBytes_AsStringAndSize(bytes, &data, &length) : -1;
    if (status == 0)
        status = make_room(f, (size_t)length / sizeof *f->values, false);
    if (status == 0)
        memcpy(f->values, data, (size_t)length);
    Py_XDECREF(bytes);
    return status;
}

/* Copies one batch to the rows from `to` on. */
static void copy_batch(fingerprints *f, const struct ArrowArray *array, size_t to) {
    size_t bytes = (f->wide ? 2 : 1) * sizeof *f->values, rows = (size_t)array->length;
    memcpy((char *)f->values + to * bytes, (const char *)array->buffers[1] + (size_t)array->offset * bytes,
           rows * bytes);
    for (size_t i = 0; f->valid && i < rows; i++)
        f->valid[to + i] = !is_null(array, array->offset + (int64_t)i);
}

static int copy_arrow(const data_input *data, const char *argument, fingerprints *f) {
    bool has_nulls = false;
    for (size_t i = 0; i < data->batch_count; i++) {
        const struct ArrowArray *array = &data->batches[i].array;
        if (!array->buffers[1]) { /* take_data has checked the rest */
            PyErr_Format(doppel_module.input_error, "%s: malformed Arrow data: an array without values", argument);
            return -1;
        }
        has_nulls |= array->null_count && array->buffers[0];
    }
    if (make_room(f, (size_t)data->rows, has_nulls) < 0)
        return -1;
    for (size_t i = 0; i < data->batch_count; i++)
        copy_batch(f, &data->batches[i].array, (size_t)data->batches[i].first);
    forget_valid(f);
    return 0;
}

static int take_arrow(PyObject *object, const char *argument, fingerprints *f) {
    data_input data = {0};
    if (take_data(object, argument, &data) < 0)
        return -1;
    const char *format = data.schema.format;
    int status = -1;
    f->is_arrow = true;
    f->wide = !strcmp(format, "w:16");
    if (data.schema.dictionary || (!f->wide && strcmp(format, "L") != 0 && strcmp(format, "l") != 0))
        PyErr_Format(PyExc_TypeError,
                     "%s: expected a column of fingerprints (uint64, or fixed-size binary of 16 bytes), not of the "
                     "Arrow type \"%s\"",
                     argument, format);
    else
        status = copy_arrow(&data, argument, f);
    free_data(&data);
    return status;
}

static int take_scalar(PyObject *object, const char *argument, fingerprints *f) {
    uint64_t value[2];
    bool wide;
    if (take_fingerprint(object, argument, value, &wide) < 0)
        return -1;
    f->wide = wide;
    if (make_room(f, 1, false) < 0)
        return -1;
    f->scalar = true;
    memcpy(f->values, value, (wide ? 2 : 1) * sizeof *value);
    return 0;
}

static bool has_attribute(PyObject *object, const char *name) {
    PyObject *found = PyObject_GetAttrString(object, name);
    PyErr_Clear();
    Py_XDECREF(found);
    return found;
}

static int take_any(PyObject *object, const char *argument, fingerprints *f) {
    if (PyLong_Check(object) || PyBytes_Check(object))
        return take_scalar(object, argument, f);
    if (PyUnicode_Check(object) || PyByteArray_Check(object)) {
        raise_type(argument, -1, "fingerprints", object);
        return -1;
    }
    if (PyList_Check(object) || PyTuple_Check(object))
        return take_iterable(object, argument, f);
    if (has_attribute(object, "__arrow_c_array__") || has_attribute(object, "__arrow_c_stream__"))
        return take_arrow(object, argument, f);
    if (take_buffer(object, f) < 0)
        return -1;
    if (f->values)
        return 0;
    /* A NumPy array has __index__, too; what has it and cannot be iterated over is one number. */
    PyObject *iterator = PyObject_GetIter(object);
    PyErr_Clear();
    Py_XDECREF(iterator);
    return iterator || !PyIndex_Check(object) ? take_iterable(object, argument, f) : take_scalar(object, argument, f);
}

int take_fingerprints(PyObject *object, const char *argument, fingerprints *out) {
    *out = (fingerprints){0};
    if (take_any(object, argument, out) == 0)
        return 0;
    free_fingerprints(out);
    return -1;
}

/* ---- hamming ---- */

/* Both must have the same width: a number or a list of them takes on that of the other. */
static int match_widths(fingerprints f[2]) {
    for (int i = 0; i < 2; i++) {
        if (f[i].wide || !f[1 - i].wide)
            continue;
        if (f[i].is_arrow) {
            PyErr_Format(PyExc_ValueError, "%s has fingerprints of 64 bits, %s of 128", i ? "b" : "a", i ? "a" : "b");
            return -1;
        }
        return widen_fingerprints(&f[i]);
    }
    return 0;
}

static void fill_distances(const fingerprints f[2], array_builder *builder) {
    int32_t *distances = builder->values;
    size_t words = f[0].wide ? 2 : 1, step[2] = {f[0].scalar ? 0 : 1, f[1].scalar ? 0 : 1};
    for (size_t i = 0; i < builder->length; i++) {
        size_t at[2] = {i * step[0], i * step[1]};
        const uint64_t *a = f[0].values + at[0] * words, *b = f[1].values + at[1] * words;
        distances[i] = words == 2 ? doppel_distance128(a, b) : doppel_distance(*a, *b);
        if ((f[0].valid && !f[0].valid[at[0]]) || (f[1].valid && !f[1].valid[at[1]]))
            builder->valid[i] = 0;
    }
}

static PyObject *hamming_arrays(const fingerprints f[2]) {
    size_t count = f[0].scalar ? f[1].count : f[0].count;
    array_builder builder = {0};
    if (!f[0].scalar && !f[1].scalar && f[0].count != f[1].count)
        return PyErr_Format(PyExc_ValueError, "a has %zu fingerprints, b has %zu", f[0].count, f[1].count);
    if (!builder_init(&builder, VALUE_INT32, 0, count) ||
        ((f[0].valid || f[1].valid) && !builder_make_valid(&builder))) {
        builder_free(&builder);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS;
    fill_distances(f, &builder);
    Py_END_ALLOW_THREADS;
    return builder_finish(&builder, !f[0].is_arrow && !f[1].is_arrow);
}

PyObject *py_hamming(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *a, *b, *result = NULL;
    fingerprints f[2] = {0};
    if (!PyArg_ParseTuple(arguments, "OO:hamming", &a, &b))
        return NULL;
    if (take_fingerprints(a, "a", &f[0]) == 0 && take_fingerprints(b, "b", &f[1]) == 0 && match_widths(f) == 0) {
        if (!f[0].scalar || !f[1].scalar)
            result = hamming_arrays(f);
        else
            result = PyLong_FromLong(f[0].wide ? doppel_distance128(f[0].values, f[1].values)
                                               : doppel_distance(f[0].values[0], f[1].values[0]));
    }
    free_fingerprints(&f[0]);
    free_fingerprints(&f[1]);
    return result;
}
