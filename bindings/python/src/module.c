/* module.c - the extension module doppel._doppel: its exceptions, values that several files make, and the module
 * itself, to which every other file adds its functions and types. There is one module a process: its state is global,
 * and subinterpreters are not supported. */
#include "module.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

module_state doppel_module;

/* ---- errors ---- */

/* Of all but DOPPEL_ERROR_INTERRUPTED and DOPPEL_ERROR_MEMORY. */
static PyObject *exception_of(doppel_status status) {
    switch (status) {
    case DOPPEL_ERROR_USAGE: return PyExc_ValueError;
    case DOPPEL_ERROR_INPUT: return doppel_module.input_error;
    case DOPPEL_ERROR_STORE: return doppel_module.store_error;
    case DOPPEL_ERROR_IO: return PyExc_OSError;
    case DOPPEL_ERROR_AWAY: return doppel_module.away_error;
    default: return doppel_module.error;
    }
}

/* "ARGUMENT: FILE:LINE: MESSAGE", of which bytes that are no UTF-8 (parts of paths) are replaced. */
static PyObject *error_message(doppel_status status, const doppel_error *error, const char *argument) {
    char text[1024], place[sizeof error->file + 32] = "";
    const char *message = error && error->message[0] ? error->message : doppel_status_name(status);
    if (error && error->file[0] && error->line)
        snprintf(place, sizeof place, "%s:%llu: ", error->file, (unsigned long long)error->line);
    else if (error && error->file[0])
        snprintf(place, sizeof place, "%s: ", error->file);
    snprintf(text, sizeof text, "%s%s%s%s", argument ? argument : "", argument ? ": " : "", place,
             message ? message : "unknown error");
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *raise_error(doppel_status status, const doppel_error *error, const char *argument) {
    if (PyErr_Occurred())
        return NULL;
    if (status == DOPPEL_ERROR_MEMORY)
        return PyErr_NoMemory();
    if (status == DOPPEL_ERROR_INTERRUPTED) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
        return NULL;
    }
    PyObject *message = error_message(status, error, argument);
    if (message)
        PyErr_SetObject(exception_of(status), message);
    Py_XDECREF(message);
    return NULL;
}

void *raise_type(const char *argument, Py_ssize_t row, const char *expected, PyObject *object) {
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    if (name && row >= 0)
        PyErr_Format(PyExc_TypeError, "%s[%zd]: expected %s, not %U", argument, row, expected, name);
    else if (name)
        PyErr_Format(PyExc_TypeError, "%s: expected %s, not %U", argument, expected, name);
    Py_XDECREF(name);
    return NULL;
}

static PyObject *make_exception(PyObject *module, const char *name, const char *doc, PyObject *bases) {
    char full[64];
    snprintf(full, sizeof full, "doppel.%s", name);
    PyObject *made = bases ? PyErr_NewExceptionWithDoc(full, doc, bases, NULL) : NULL;
    Py_XDECREF(bases);
    if (made && PyModule_AddObjectRef(module, name, made) < 0)
        Py_CLEAR(made);
    return made;
}

static int init_errors(PyObject *module) {
    module_state *state = &doppel_module;
    state->error =
        make_exception(module, "Error", "An error of doppel. Invalid arguments raise ValueError or TypeError.",
                       PyTuple_Pack(1, PyExc_Exception));
    if (!state->error)
        return -1;
    state->input_error = make_exception(module, "InputError", "Data that cannot be read as what it says it is.",
                                        PyTuple_Pack(2, state->error, PyExc_ValueError));
    state->store_error = make_exception(module, "StoreError", "An index that cannot be read or written.",
                                        PyTuple_Pack(2, state->error, PyExc_OSError));
    if (!state->input_error || !state->store_error)
        return -1;
    state->away_error = make_exception(module, "AwayError", "The server of an index does not answer: try again later.",
                                       PyTuple_Pack(2, state->store_error, PyExc_ConnectionError));
    return state->away_error ? 0 : -1;
}

/* ---- values ---- */

PyObject *none(void) {
    return Py_NewRef(Py_None);
}

PyObject *number_or_none(double number) {
    return isnan(number) ? none() : PyFloat_FromDouble(number);
}

PyObject *fingerprint_object(const uint64_t value[2], int bits) {
    if (bits <= 64)
        return PyLong_FromUnsignedLongLong(value[0]);
    return PyBytes_FromStringAndSize((const char *)value, 2 * sizeof *value);
}

/* ---- forks ---- */

static _Atomic unsigned forks;

static void count_fork(void) {
    atomic_fetch_add(&forks, 1);
}

unsigned fork_count(void) {
    return atomic_load(&forks);
}

static int init_forks(PyObject *module) {
    (void)module;
    return pthread_atfork(NULL, NULL, count_fork) ? (PyErr_NoMemory(), -1) : 0;
}

/* ---- making the module ---- */

int add_functions(PyObject *module, PyMethodDef *functions) {
    return PyModule_AddFunctions(module, functions);
}

PyTypeObject *add_type(PyObject *module, PyType_Spec *spec) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

/* The named tuples that calls fill. doppel/_types.py does not import this module until it is used. */
static int init_tuples(void) {
    const struct {
        const char *name;
        PyObject **to;
    } wanted[] = {{"Verdict", &doppel_module.verdict},
                  {"Evidence", &doppel_module.evidence},
                  {"Match", &doppel_module.match},
                  {"Stored", &doppel_module.stored}};
    PyObject *types = PyImport_ImportModule("doppel._types");
    int result = types ? 0 : -1;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && result == 0; i++)
        result = (*wanted[i].to = PyObject_GetAttrString(types, wanted[i].name)) ? 0 : -1;
    Py_XDECREF(types);
    return result;
}

static int add_constants(PyObject *module) {
    if (PyModule_AddStringConstant(module, "version", doppel_version()) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "unicode_version", doppel_unicode_version());
}

static PyObject *cpu_level(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyUnicode_FromString(doppel_cpu_level());
}

/* The presets of near documents, a dict each. */
static PyObject *pipelines(PyObject *module, PyObject *unused) {
    size_t count;
    const doppel_pipeline *all = doppel_pipelines(&count);
    PyObject *list = PyList_New(0);
    (void)module, (void)unused;
    for (size_t i = 0; i < count && list; i++) {
        const doppel_pipeline *p = &all[i];
        PyObject *each = Py_BuildValue("{s:s,s:s,s:d,s:i,s:i}", "name", p->name, "recipe", p->recipe, "similarity",
                                       p->similarity, "bands", p->bands, "rows", p->rows);
        if (!each || PyList_Append(list, each) < 0)
            Py_CLEAR(list);
        Py_XDECREF(each);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"pipelines", pipelines, METH_NOARGS, "What a preset of near documents stands for, a dict each."},
    {"cpu_level", cpu_level, METH_NOARGS, "The instruction set in use: portable, avx2, avx512 or neon."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "doppel._doppel",
                                        "The extension module of doppel; use the package doppel.",
                                        -1,
                                        functions,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__doppel(void);
PyMODINIT_FUNC PyInit__doppel(void) {
    static int (*const parts[])(PyObject * module) = {init_errors, init_forks,    add_constants, init_arrow,
                                                      init_recipe, init_sketches, init_index,    init_batch,
                                                      init_trim,   init_engine,   init_command};
    PyObject *module = PyModule_Create(&definition);
    int result = module ? init_tuples() : -1;
#ifdef Py_GIL_DISABLED
    if (result == 0)
        result = PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    for (size_t i = 0; i < sizeof parts / sizeof *parts && result == 0; i++)
        result = parts[i](module);
    if (result < 0)
        Py_CLEAR(module);
    return module;
}
