/* command.c - the doppel command inside the module: the C command's own main, with Parquet read and written by a Python
 * object (doppel/_parquet.py). */
#include "module.h"

#include "common/embed.h"

#include <signal.h>
#include <stdlib.h>

/* What the command got, for as long as it runs. */
typedef struct command_state {
    python_tables read;
    PyObject *object;
} command_state;

/* A writer of Python's, and what it is to write. */
typedef struct command_writer {
    PyObject *object;
    bool annotate;
    row_columns columns; /* of dedup */
    const volatile int *stop;
    trimmed_rows *trimmed; /* NULL: nothing was trimmed yet */
} command_writer;

/* A path, or None. */
static PyObject *path_or_none(const char *path) {
    if (path)
        return PyUnicode_DecodeFSDefault(path);
    Py_RETURN_NONE;
}

static PyObject *make_writer(const command_state *state, const table_output *output) {
    PyObject *inputs = PyList_New(0);
    for (size_t i = 0; inputs && i < output->input_count; i++) {
        PyObject *path = PyUnicode_DecodeFSDefault(output->inputs[i]);
        if (!path || PyList_Append(inputs, path) < 0)
            Py_CLEAR(inputs);
        Py_XDECREF(path);
    }
    PyObject *file = inputs ? path_or_none(output->output) : NULL, *folder = file ? path_or_none(output->folder) : NULL;
    PyObject *made = folder ? PyObject_CallMethod(state->object, "create", "OOOKiziz", file, folder, inputs,
                                                  (unsigned long long)output->memory, output->threads, output->text,
                                                  output->text && output->annotate, output->prefix)
                            : NULL;
    Py_XDECREF(file);
    Py_XDECREF(folder);
    Py_XDECREF(inputs);
    return made;
}

static doppel_status create_writer(const table_output *output, void **writer, void *user, doppel_error *error) {
    command_writer *made = calloc(1, sizeof *made);
    doppel_status status = DOPPEL_OK;
    if (!made)
        return DOPPEL_ERROR_MEMORY;
    PyGILState_STATE gil = PyGILState_Ensure();
    made->object = make_writer(user, output);
    made->annotate = output->annotate;
    made->columns = !output->annotate ? ROWS_KEPT : output->counts ? ROWS_COUNTED : ROWS_ANNOTATED;
    made->stop = output->stop;
    if (made->object) {
        *writer = made;
    } else {
        status = python_status(error);
        free(made);
    }
    PyGILState_Release(gil);
    return status;
}

static doppel_status write_with(void *writer, const doppel_batch *batch, const doppel_batch_rows *rows, void *user,
                                doppel_error *error) {
    const command_writer *w = writer;
    (void)user;
    return write_rows(w->object, batch, rows, w->columns, w->stop, error);
}

static doppel_status trim_with(void *writer, const doppel_trimmed *document, void *user, doppel_error *error) {
    command_writer *w = writer;
    (void)user;
    if (!w->trimmed && !(w->trimmed = trimmed_rows_create(w->object, w->annotate, w->stop)))
        return DOPPEL_ERROR_MEMORY;
    return trimmed_rows_add(w->trimmed, document, error);
}

static doppel_status finish_writer(void *writer, bool ok, void *user, doppel_error *error) {
    command_writer *w = writer;
    doppel_status status = DOPPEL_OK, ended = DOPPEL_OK;
    (void)user;
    if (!w)
        return DOPPEL_OK;
    if (ok && w->trimmed)
        ended = trimmed_rows_end(w->trimmed, error);
    trimmed_rows_free(w->trimmed);
    ok = ok && ended == DOPPEL_OK;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *done = PyObject_CallMethod(w->object, "finish", "O", ok ? Py_True : Py_False);
    if (!done)
        status = python_status(ended == DOPPEL_OK ? error : NULL);
    Py_XDECREF(done);
    Py_DECREF(w->object);
    PyGILState_Release(gil);
    free(w);
    return ended == DOPPEL_OK ? status : ended;
}

/* The arguments as C has them; NULL: an exception. */
static char **take_arguments(PyObject *list, Py_ssize_t *count) {
    *count = PyList_Size(list);
    char **arguments = *count < 0 ? NULL : calloc((size_t)*count + 1, sizeof *arguments);
    if (!arguments && *count >= 0)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; arguments && i < *count; i++) {
        if (PyBytes_AsStringAndSize(PyList_GetItem(list, i), &arguments[i], NULL) < 0) {
            free(arguments);
            return NULL;
        }
    }
    return arguments;
}

/* The signals that the command handles in its own way: Python gets them back. */
static const int handled[] = {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ};
enum { HANDLED = sizeof handled / sizeof *handled };

/* Runs the command, without the GIL. */
static int run_main(int count, char **arguments) {
    struct sigaction before[HANDLED];
    for (size_t i = 0; i < HANDLED; i++)
        sigaction(handled[i], NULL, &before[i]);
    int code = doppel_main(count, arguments);
    for (size_t i = 0; i < HANDLED; i++)
        sigaction(handled[i], &before[i], NULL);
    return code;
}

/* command(arguments, tables): runs the command with a list of bytes, the name of the program first; gives its exit
 * code. */
static PyObject *run_command(PyObject *module, PyObject *args) {
    PyObject *list;
    command_state state = {.object = NULL};
    Py_ssize_t count;
    int code;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &list, &state.object))
        return NULL;
    char **arguments = take_arguments(list, &count);
    if (!arguments)
        return NULL;
    python_tables_init(&state.read, state.object);
    const embedded_tables tables = {&state.read.tables, create_writer, write_with, trim_with, finish_writer, &state};
    embed_tables(&tables);
    Py_BEGIN_ALLOW_THREADS;
    code = run_main((int)count, arguments);
    Py_END_ALLOW_THREADS;
    embed_tables(NULL);
    free(arguments);
    return PyLong_FromLong(code);
}

static PyMethodDef command_functions[] = {
    {"command", run_command, METH_VARARGS, "command(arguments, tables)"},
    {NULL, NULL, 0, NULL},
};

int init_command(PyObject *module) {
    return add_functions(module, command_functions);
}
