/* batch.c - Batch: documents in, pairs or decisions out (doppel_batch of libdoppel), from data in memory or from files;
 * overlap; decide.
 *
 * doppel/_batch.py makes a Batch of its options, reads, decides or finds pairs, and makes tables of what this gives:
 * Arrays by document, or by pair. Documents are known by their positions; make_ids names them by the id column of the
 * caller's data, or by their rows. Rows whose text is null are no documents: `rows` leads from positions to rows.
 *
 * A Batch is made, used and finished by one call of Python. Its methods refuse to work while one of them runs, and
 * after finish(). */
#include "module.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DATA = 2 };

/* Rows between two looks at signals, where rows are looked at with the GIL held. */
enum { SIGNALS_EVERY = 1 << 16 };

/* Data in memory, and which of its rows are documents. */
typedef struct batch_data {
    held_data *held;
    const data_input *input;
    uint64_t *rows; /* by document; NULL: all are */
    uint64_t documents;
} batch_data;

typedef struct batch_object {
    PyObject_HEAD doppel_batch *batch;
    long_call call;     /* of the method that runs */
    PyObject *recipe;   /* holds the recipe */
    doppel_recipe *own; /* made of a text */
    PyObject *options;  /* a dict, whose strings are borrowed */
    batch_data *data[MOST_DATA];
    const data_input *inputs[MOST_DATA]; /* the same, for the tables */
    size_t data_count, known_count;      /* known ones come first */
    uint64_t expected;                   /* documents that are being read, of data in memory */
    memory_tables memory;
    python_tables python;
    PyObject *tables; /* what opens files; NULL: none */
    doppel_input_options input;
    doppel_input_counts counts;
    doppel_error
        first_bad;    /* of the last reading: the first file that was left out; if there is none, the first record */
    PyObject *unseen; /* a list of the keys that were asked for and that no record has */
    doppel_writer *records; /* outputs that are open; NULL: none is */
    doppel_writer *removed;
    bool busy;
    uint8_t *mask; /* once finished: by row of the data that is not known, whether it stays */
} batch_object;

/* ---- options ---- */

static PyObject *option(PyObject *options, const char *name) {
    PyObject *value = PyDict_GetItemString(options, name);
    return value == Py_None ? NULL : value;
}

static const char *text_option(PyObject *options, const char *name) {
    PyObject *value = option(options, name);
    return value ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
}

static double share_option(PyObject *options, const char *name) {
    PyObject *value = option(options, name);
    return value ? PyFloat_AsDouble(value) : 0;
}

/* doppel/_batch.py has checked the range of numbers. */
static uint64_t count_option(PyObject *options, const char *name) {
    PyObject *value = option(options, name);
    return value ? PyLong_AsUnsignedLongLong(value) : 0;
}

static int int_option(PyObject *options, const char *name) {
    PyObject *value = option(options, name);
    return value ? (int)PyLong_AsLong(value) : 0;
}

static bool flag_option(PyObject *options, const char *name) {
    PyObject *value = option(options, name);
    return value && PyObject_IsTrue(value) == 1;
}

/* ---- callbacks, from threads of libdoppel ---- */

static void set_progress(batch_object *self, uint64_t done, uint64_t total) {
    atomic_store_explicit(&self->call.total, total, memory_order_relaxed);
    atomic_store_explicit(&self->call.done, done < total ? done : total, memory_order_relaxed);
}

/* Bytes of files; documents of data in memory. */
static void on_progress(uint64_t bytes, uint64_t total, uint64_t documents, void *user) {
    batch_object *self = user;
    if (self->tables)
        set_progress(self, bytes, total);
    else
        set_progress(self, documents, self->expected);
}

static void on_stage(const char *stage, uint64_t done, uint64_t total, void *user) {
    (void)stage;
    set_progress(user, done, total);
}

static int compare_rows(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The number of the data in memory that an error is about; MOST_DATA: it is about a file. */
static size_t number_of_data(const batch_object *self, const doppel_error *what) {
    if (self->tables || strncmp(what->file, "table:", 6) != 0)
        return MOST_DATA;
    size_t number = (size_t)strtoul(what->file + 6, NULL, 10);
    return number < self->data_count ? number : MOST_DATA;
}

/* Whether it is about a row that is null, and to be passed over. */
static bool is_skipped(const batch_object *self, const doppel_error *what) {
    size_t number = number_of_data(self, what);
    const batch_data *data = number < MOST_DATA ? self->data[number] : NULL;
    uint64_t row = what->line - 1;
    return data && data->rows && what->line &&
           !bsearch(&row, data->rows, (size_t)data->documents, sizeof row, compare_rows);
}

/* doppel_input_options.bad */
static void on_bad(const doppel_error *what, void *user) {
    batch_object *self = user;
    bool first = self->first_bad.code == DOPPEL_OK || (self->first_bad.line && !what->line);
    if (what->code != DOPPEL_OK && first && !is_skipped(self, what))
        self->first_bad = *what;
}

/* doppel_input_options.unseen */
static void on_unseen(const char *key, void *user) {
    const batch_object *self = user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *name = PyUnicode_DecodeUTF8(key, (Py_ssize_t)strlen(key), "replace");
    if (!name || PyList_Append(self->unseen, name) < 0)
        PyErr_Clear();
    Py_XDECREF(name);
    PyGILState_Release(gil);
}

/* ---- making one ---- */

static void set_input(batch_object *self) {
    PyObject *o = self->options;
    self->input = (doppel_input_options){.size = sizeof self->input,
                                         .threads = int_option(o, "threads"),
                                         .max_record = self->tables ? (size_t)count_option(o, "max_record") : SIZE_MAX,
                                         .strict = flag_option(o, "strict"),
                                         .id_key = text_option(o, "id_key"),
                                         .url_key = text_option(o, "url_key"),
                                         .title_key = text_option(o, "title_key"),
                                         .text_key = text_option(o, "text_key"),
                                         .html_key = text_option(o, "html_key"),
                                         .bad = on_bad,
                                         .unseen = self->tables ? on_unseen : NULL,
                                         .progress = on_progress,
                                         .user = self,
                                         .stop = &self->call.stop,
                                         .no_made_ids = !self->tables,
                                         .refuse_bad = self->tables && !flag_option(o, "allow_bad")};
    if (self->tables) {
        python_tables_init(&self->python, self->tables);
        self->input.tables = &self->python.tables;
    } else {
        memory_tables_init(&self->memory, self->inputs, self->input.text_key ? self->input.text_key : "text");
        self->input.tables = &self->memory.tables;
    }
}

static doppel_batch_options batch_options(batch_object *self, const doppel_recipe *recipe) {
    PyObject *o = self->options;
    return (doppel_batch_options){.size = sizeof(doppel_batch_options),
                                  .recipe = recipe,
                                  .method = (doppel_method)int_option(o, "method"),
                                  .similarity = share_option(o, "similarity"),
                                  .distance = int_option(o, "distance"),
                                  .distance_zero = flag_option(o, "distance_zero"),
                                  .bands = int_option(o, "bands"),
                                  .rows = int_option(o, "rows"),
                                  .min_words = count_option(o, "min_words"),
                                  .boilerplate = share_option(o, "boilerplate"),
                                  .by = (unsigned)int_option(o, "by"),
                                  .keep = text_option(o, "keep"),
                                  .link_any = flag_option(o, "link_any"),
                                  .within = text_option(o, "within"),
                                  .across = text_option(o, "across"),
                                  .content = (doppel_content)int_option(o, "content"),
                                  .url_without = (unsigned)int_option(o, "url_without"),
                                  .limit = count_option(o, "limit"),
                                  .tmp = text_option(o, "tmp"),
                                  .memory = count_option(o, "memory"),
                                  .input = &self->input,
                                  .progress = on_stage,
                                  .user = self};
}

static int create_batch(batch_object *self) {
    const doppel_recipe *recipe = NULL;
    doppel_error error = {0};
    PyObject *given = option(self->options, "recipe");
    if (given && get_recipe(given, &recipe, &self->own) < 0)
        return -1;
    self->recipe = given;
    Py_XINCREF(given);
    set_input(self);
    const doppel_batch_options options = batch_options(self, recipe);
    if (PyErr_Occurred())
        return -1;
    doppel_status status = doppel_batch_create(&options, &self->batch, &error);
    if (status == DOPPEL_OK)
        return 0;
    raise_error(status, &error, NULL);
    return -1;
}

/* Batch(options, tables): options is a dict, tables opens files or is None. */
static PyObject *batch_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *options, *tables;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &options, &tables))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    batch_object *self = (batch_object *)allocate(type, 0);
    if (!self)
        return NULL;
    self->options = PyDict_Copy(options);
    self->unseen = PyList_New(0);
    self->tables = tables == Py_None ? NULL : tables;
    Py_XINCREF(self->tables);
    if (self->options && self->unseen && create_batch(self) == 0)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void free_batch_data(batch_data *data) {
    if (!data)
        return;
    drop_data(data->held);
    free(data->rows);
    free(data);
}

static void batch_dealloc(PyObject *object) {
    batch_object *self = (batch_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    doppel_batch *batch = self->batch;
    doppel_writer *records = self->records, *removed = self->removed;
    Py_BEGIN_ALLOW_THREADS;
    doppel_batch_free(batch);
    doppel_writer_finish(records, false, NULL);
    doppel_writer_finish(removed, false, NULL);
    Py_END_ALLOW_THREADS;
    for (size_t i = 0; i < self->data_count; i++)
        free_batch_data(self->data[i]);
    free(self->mask);
    doppel_recipe_free(self->own);
    Py_XDECREF(self->recipe);
    Py_XDECREF(self->options);
    Py_XDECREF(self->unseen);
    Py_XDECREF(self->tables);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* ---- one long call after the other ---- */

/* Whether it can be used now; false: an exception. */
static bool is_usable(const batch_object *self) {
    if (!self->busy && self->batch)
        return true;
    PyErr_SetString(PyExc_RuntimeError,
                    self->busy ? "this batch is in use by another thread" : "this batch is finished");
    return false;
}

/* The same, and whether it has data in memory. */
static bool has_data(const batch_object *self) {
    if (!is_usable(self))
        return false;
    if (!self->data_count)
        PyErr_SetString(PyExc_RuntimeError, "this batch has no data");
    return self->data_count;
}

/* Messages name the options of the command: "--max-record" becomes "max_record". */
static void name_arguments(char *message) {
    char *to = message;
    for (const char *from = message; *from;) {
        bool option = !strncmp(from, "--", 2) && from[2] >= 'a' && from[2] <= 'z';
        from += option ? 2 : 0;
        for (; option && ((*from >= 'a' && *from <= 'z') || *from == '-'); from++)
            *to++ = *from == '-' ? '_' : *from;
        if (!option)
            *to++ = *from++;
    }
    *to = 0;
}

/* Runs the work without the GIL; false: an exception. */
static bool run(batch_object *self, doppel_status (*work)(void *argument), void *argument, doppel_error *error) {
    if (!is_usable(self))
        return false;
    self->busy = true;
    self->call.stop = 0;
    atomic_store(&self->call.done, 0);
    atomic_store(&self->call.total, 0);
    self->call.progress = option(self->options, "progress");
    doppel_status status = run_long_call(&self->call, work, argument);
    self->busy = false;
    if (status != DOPPEL_OK) {
        name_arguments(error->message);
        raise_error(status, error, NULL);
    }
    return status == DOPPEL_OK;
}

/* ---- reading ---- */

typedef struct reading {
    batch_object *self;
    const char **paths;
    size_t count;
    bool known;
    doppel_error error;
} reading;

static doppel_status do_read(void *argument) {
    reading *r = argument;
    const doppel_error *bad = &r->self->first_bad;
    doppel_status status = doppel_batch_read(r->self->batch, r->paths, r->count, r->known, &r->self->counts, &r->error);
    /* That not all could be read is said better by what could not. */
    if (status == DOPPEL_ERROR_INPUT && !r->error.file[0] && bad->code != DOPPEL_OK && !bad->line)
        r->error = *bad;
    return status;
}

static bool run_reading(reading *r) {
    r->self->first_bad = (doppel_error){0};
    if (PyList_SetSlice(r->self->unseen, 0, PyList_Size(r->self->unseen), NULL) < 0)
        return false;
    return run(r->self, do_read, r, &r->error);
}

/* ---- columns of data in memory ---- */

/* What the columns with texts and pages are called, and the data. */
typedef struct text_columns {
    const char *text, *html, *argument;
} text_columns;

/* The column of a table by its name; NULL: there is none. */
static const struct ArrowSchema *find_column(const data_input *data, const char *name) {
    int64_t child;
    return data->is_struct ? find_schema(data, name, &child) : NULL;
}

/* Whether a column must be there, as doppel/_batch.py says it. */
enum { OPTIONAL, REQUIRED, OR_PAGES };

/* Raises that a column cannot be read as text, if it cannot. */
static int check_readable(const data_input *data, const char *option, const char *name) {
    for (size_t i = 0; i < data->batch_count; i++) {
        doppel_column column;
        doppel_error error = {0};
        bool found;
        if (doppel_column_init(&column, &data->schema, &data->batches[i].array, name, &found, &error) == DOPPEL_OK)
            continue;
        PyErr_Format(PyExc_TypeError, "%s: the column \"%s\" %s%s", option, name, error.message,
                     strcmp(option, "id") ? "" : "; id=None numbers the rows");
        return -1;
    }
    return 0;
}

/* Checks the columns that options name, (option, name, whether it must be there) each: those that are there must be
 * readable as text. -1: an exception. */
static int check_needed(const data_input *data, PyObject *needed, const char *html) {
    for (Py_ssize_t i = 0; i < PyList_Size(needed); i++) {
        const char *option, *name;
        int required;
        if (!PyArg_ParseTuple(PyList_GetItem(needed, i), "ssi", &option, &name, &required))
            return -1;
        bool there = find_column(data, name);
        if (there && check_readable(data, option, name) < 0)
            return -1;
        if (!there && (required == REQUIRED || (required == OR_PAGES && !find_column(data, html))))
            return raise_no_column(data, option, name);
    }
    return 0;
}

static uint64_t count_documents(const batch_data *data) {
    return data->rows ? data->documents : data->input->rows;
}

/* Lists the rows of one batch whose text (or page) is not null. */
static int list_batch_rows(batch_data *data, size_t number, const text_columns *names, bool skip) {
    const data_batch *batch = &data->input->batches[number];
    char room[DOPPEL_COLUMN_ROOM];
    doppel_column texts, pages;
    bool has_text, has_html;
    if (data_column(data->input, number, names->text, names->argument, &has_text, &texts) < 0 ||
        data_column(data->input, number, names->html, names->argument, &has_html, &pages) < 0)
        return -1;
    has_html = has_html && data->input->is_struct;
    if (!has_text && !has_html)
        return raise_no_column(data->input, names->argument, names->text);
    for (uint64_t row = 0; row < (uint64_t)batch->array.length; row++) {
        bool there = (has_text && doppel_column_get(&texts, row, room).data) ||
                     (has_html && doppel_column_get(&pages, row, room).data);
        if (!there && !skip) {
            PyErr_Format(PyExc_ValueError, "%s: row %llu is null; missing=\"skip\" passes over nulls", names->argument,
                         (unsigned long long)(batch->first + row));
            return -1;
        }
        if (there)
            data->rows[data->documents++] = batch->first + row;
        if (row % SIGNALS_EVERY == SIGNALS_EVERY - 1 && PyErr_CheckSignals() < 0)
            return -1;
    }
    return 0;
}

/* Lists the rows whose text (or page) is not null, unless all are; -1: an exception. Without `skip` a null is an
 * error. */
static int list_rows(batch_data *data, const text_columns *names, bool skip) {
    const data_input *input = data->input;
    if (input->is_struct && !find_column(input, names->text) && !find_column(input, names->html))
        return raise_no_column(input, names->argument, names->text);
    data->rows = malloc(((size_t)input->rows + 1) * sizeof *data->rows);
    if (!data->rows) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < input->batch_count; i++)
        if (list_batch_rows(data, i, names, skip) < 0)
            return -1;
    if (data->documents == input->rows) {
        free(data->rows);
        data->rows = NULL;
    }
    return 0;
}

/* Takes data of the caller, which is held from now on; NULL: an exception. `args` are those of read_data. */
static batch_data *take_batch_data(batch_object *self, PyObject *args, text_columns *names, int *known) {
    PyObject *given, *needed;
    data_input taken = {0};
    if (!PyArg_ParseTuple(args, "OpsO!", &given, known, &names->argument, &PyList_Type, &needed) || !is_usable(self))
        return NULL;
    names->text = self->input.text_key ? self->input.text_key : "text";
    names->html = self->input.html_key ? self->input.html_key : "html";
    batch_data *data = calloc(1, sizeof *data);
    if (!data || self->data_count == MOST_DATA)
        return free(data), PyErr_NoMemory(), NULL;
    if (take_data(given, names->argument, &taken) < 0)
        return free(data), NULL;
    data->held = hold_data(&taken);
    if (!data->held) {
        free_data(&taken);
        return free(data), PyErr_NoMemory(), NULL;
    }
    data->input = held_input(data->held);
    if (list_rows(data, names, flag_option(self->options, "skip_missing")) < 0 ||
        check_needed(data->input, needed, names->html) < 0)
        return free_batch_data(data), NULL;
    self->data[self->data_count] = data;
    self->inputs[self->data_count++] = data->input;
    self->known_count += *known ? 1 : 0;
    return data;
}

/* hold_data(data, known, argument, needed): holds it, for overlap. Gives whether it is a list. */
static PyObject *batch_hold_data(PyObject *object, PyObject *args) {
    text_columns names;
    int known;
    const batch_data *data = take_batch_data((batch_object *)object, args, &names, &known);
    return data ? PyBool_FromLong(data->input->is_list) : NULL;
}

/* Raises what was bad with data in memory: nothing of it is left out. */
static PyObject *raise_bad(const batch_object *self) {
    doppel_error bad = self->first_bad;
    const char *argument = number_of_data(self, &bad) < self->known_count ? "against" : "data";
    name_arguments(bad.message);
    if (bad.line)
        return PyErr_Format(doppel_module.input_error, "%s: row %llu: %s", argument, (unsigned long long)(bad.line - 1),
                            bad.message);
    return PyErr_Format(doppel_module.input_error, "%s: %s", argument, bad.message);
}

/* read_data(data, known, argument, needed): the same, and reads it. `needed` are the columns that options name, as
 * check_needed takes them. */
static PyObject *batch_read_data(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    text_columns names;
    int known;
    char path[32];
    const char *paths[] = {path};
    snprintf(path, sizeof path, "table:%zu", self->data_count);
    const batch_data *data = take_batch_data(self, args, &names, &known);
    reading r = {.self = self, .paths = paths, .count = 1, .known = known};
    self->expected = data ? count_documents(data) : 0;
    if (!data || !run_reading(&r))
        return NULL;
    if (self->first_bad.code != DOPPEL_OK)
        return raise_bad(self);
    return PyBool_FromLong(data->input->is_list);
}

/* The bytes of paths, in `held`; NULL: an exception. */
static const char **take_paths(PyObject *given, PyObject *held) {
    Py_ssize_t count = PyList_Size(given);
    const char **paths = calloc((size_t)count + 1, sizeof *paths);
    bool good = paths;
    if (!paths)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && good; i++) {
        PyObject *bytes = PyUnicode_EncodeFSDefault(PyList_GetItem(given, i));
        char *path = NULL;
        good = bytes && PyList_Append(held, bytes) == 0 && PyBytes_AsStringAndSize(bytes, &path, NULL) == 0;
        paths[i] = path;
        Py_XDECREF(bytes);
    }
    if (!good) {
        free(paths);
        return NULL;
    }
    return paths;
}

/* What could not be read: the first file or record that was left out, as (file, line, message), or None; and the list
 * of keys that no record has. */
static PyObject *left_out(const batch_object *self) {
    doppel_error bad = self->first_bad;
    PyObject *unseen = PyList_GetSlice(self->unseen, 0, PyList_Size(self->unseen));
    PyObject *file = unseen ? PyUnicode_DecodeFSDefault(bad.file) : NULL, *result = NULL;
    name_arguments(bad.message);
    PyObject *message = file ? PyUnicode_DecodeUTF8(bad.message, (Py_ssize_t)strlen(bad.message), "replace") : NULL;
    if (message && bad.code == DOPPEL_OK)
        result = Py_BuildValue("(OO)", Py_None, unseen);
    else if (message)
        result = Py_BuildValue("((OKO)O)", file, (unsigned long long)bad.line, message, unseen);
    Py_XDECREF(unseen);
    Py_XDECREF(file);
    Py_XDECREF(message);
    return result;
}

/* read_paths(paths, known): gives what left_out says. */
static PyObject *batch_read_paths(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    PyObject *given;
    int known;
    if (!PyArg_ParseTuple(args, "O!p", &PyList_Type, &given, &known))
        return NULL;
    PyObject *held = PyList_New(0);
    const char **paths = held ? take_paths(given, held) : NULL;
    reading r = {.self = self, .paths = paths, .count = (size_t)PyList_Size(given), .known = known};
    bool good = paths && run_reading(&r);
    free(paths);
    Py_XDECREF(held);
    return good ? left_out(self) : NULL;
}

/* ---- positions and ids ---- */

/* The data that a document is of, and its number there. */
static const batch_data *data_of(const batch_object *self, uint64_t position, uint64_t *number) {
    for (size_t i = 0; i < self->data_count; i++) {
        uint64_t documents = count_documents(self->data[i]);
        if (position < documents) {
            *number = position;
            return self->data[i];
        }
        position -= documents;
    }
    return NULL;
}

static uint64_t row_of(const batch_data *data, uint64_t number) {
    return data->rows ? data->rows[number] : number;
}

static size_t batch_of_row(const data_input *data, uint64_t row) {
    size_t low = 0, high = data->batch_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (data->batches[middle].first <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* How ids come out: as whole numbers where the column has these. */
static value_kind id_kind(const batch_object *self, const char *name, bool *there) {
    value_kind kind = VALUE_UINT64;
    *there = false;
    for (size_t i = 0; i < self->data_count; i++) {
        const struct ArrowSchema *schema = &self->data[i]->input->schema;
        for (int64_t c = 0; name && self->data[i]->input->is_struct && c < schema->n_children; c++) {
            const struct ArrowSchema *column = schema->children[c];
            if (!column->name || strcmp(column->name, name) != 0)
                continue;
            bool number = !column->dictionary && strlen(column->format) == 1;
            value_kind own = number && strchr("csil", column->format[0])   ? VALUE_INT64
                             : number && strchr("CSIL", column->format[0]) ? VALUE_UINT64
                                                                           : VALUE_STRING;
            kind = *there && own != kind ? VALUE_STRING : own;
            *there = true;
        }
    }
    return kind;
}

typedef struct id_reader {
    const batch_object *self;
    const char *name; /* NULL: rows */
    doppel_column *columns[MOST_DATA];
    bool has[MOST_DATA];
} id_reader;

static void free_id_reader(id_reader *reader) {
    for (size_t i = 0; i < MOST_DATA; i++)
        free(reader->columns[i]);
}

static int init_id_reader(id_reader *reader, const batch_object *self, const char *name) {
    *reader = (id_reader){.self = self, .name = name};
    for (size_t i = 0; name && i < self->data_count; i++) {
        const data_input *data = self->data[i]->input;
        reader->columns[i] = calloc(data->batch_count + 1, sizeof **reader->columns);
        if (!reader->columns[i]) {
            PyErr_NoMemory();
            return -1;
        }
        reader->has[i] = data->is_struct;
        for (size_t b = 0; b < data->batch_count && reader->has[i]; b++)
            if (data_column(data, b, name, "id", &reader->has[i], &reader->columns[i][b]) < 0)
                return -1;
    }
    return 0;
}

/* The id of a row; data NULL: it has none. */
static doppel_slice id_of_row(const id_reader *reader, size_t i, uint64_t row, char *room) {
    const data_input *data = reader->self->data[i]->input;
    size_t b = batch_of_row(data, row);
    if (!reader->has[i])
        return (doppel_slice){room, (size_t)snprintf(room, DOPPEL_COLUMN_ROOM, "%llu", (unsigned long long)row)};
    return doppel_column_get(&reader->columns[i][b], row - data->batches[b].first, room);
}

static bool add_id(const id_reader *reader, array_builder *to, size_t at, uint64_t position) {
    char room[DOPPEL_COLUMN_ROOM];
    uint64_t number;
    const batch_data *data = data_of(reader->self, position, &number);
    size_t i = data == reader->self->data[0] ? 0 : 1;
    if (!data)
        return false;
    uint64_t row = row_of(data, number);
    if (to->kind != VALUE_STRING && !reader->has[i]) {
        ((uint64_t *)to->values)[at] = row;
        return true;
    }
    doppel_slice id = id_of_row(reader, i, row, room);
    if (to->kind == VALUE_STRING)
        return builder_add_string(to, id);
    if (!id.data)
        return (to->valid || builder_make_valid(to)) && (to->valid[at] = 0, true);
    ((int64_t *)to->values)[at] =
        to->kind == VALUE_INT64 ? strtoll(id.data, NULL, 10) : (int64_t)strtoull(id.data, NULL, 10);
    return true;
}

/* The ids of some documents, by the column `name` or, if that is NULL, by rows. */
static PyObject *make_ids(const batch_object *self, const char *name, const uint64_t *positions, size_t count,
                          bool as_list) {
    id_reader reader;
    array_builder ids = {0};
    bool there, made = true;
    value_kind kind = id_kind(self, name, &there);
    PyObject *result = NULL;
    if (init_id_reader(&reader, self, there ? name : NULL) == 0) {
        made = builder_init(&ids, kind, 0, count);
        for (size_t i = 0; made && i < count; i++)
            made = add_id(&reader, &ids, i, positions[i]);
        result = made ? builder_finish(&ids, as_list) : PyErr_NoMemory();
    }
    builder_free(&ids);
    free_id_reader(&reader);
    return result;
}

/* ---- ids that repeat ---- */

static uint64_t hash_of(doppel_slice id) {
    uint64_t hash = 0;
    doppel_hash("xxh3", id, 0, &hash);
    return hash;
}

/* Raises that a row has the id of an earlier one. */
static int repeated(doppel_slice id, uint64_t row, uint64_t earlier) {
    enum { SHOWN = 80 };
    PyObject *text = PyUnicode_DecodeUTF8(id.data, (Py_ssize_t)(id.length < SHOWN ? id.length : SHOWN), "replace");
    if (text)
        PyErr_Format(PyExc_ValueError, "id: row %llu repeats \"%U\" of row %llu; id=None numbers the rows",
                     (unsigned long long)row, text, (unsigned long long)earlier);
    Py_XDECREF(text);
    return -1;
}

/* Adds the id of a row to the table of those before it: rows, from 1, by hash; -1: an exception. */
static int check_id(const id_reader *reader, size_t data, uint64_t row, uint64_t *table, size_t places) {
    char room[DOPPEL_COLUMN_ROOM], other_room[DOPPEL_COLUMN_ROOM];
    doppel_slice id = id_of_row(reader, data, row, room);
    if (!id.data)
        return 0;
    size_t at = (size_t)hash_of(id) & (places - 1);
    for (; table[at]; at = (at + 1) & (places - 1)) {
        doppel_slice other = id_of_row(reader, data, table[at] - 1, other_room);
        if (other.length == id.length && !memcmp(other.data, id.data, id.length))
            return repeated(id, row, table[at] - 1);
    }
    table[at] = row + 1;
    return 0;
}

/* Looks each id of one data up among those before it; -1: an exception. */
static int check_data_ids(const id_reader *reader, size_t data) {
    const batch_data *d = reader->self->data[data];
    size_t places = 16;
    int result = 0;
    while (places < 2 * d->input->rows + 2)
        places *= 2;
    uint64_t *table = calloc(places, sizeof *table);
    if (!table) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint64_t row = 0; row < d->input->rows && result == 0; row++) {
        result = check_id(reader, data, row, table, places);
        if (result == 0 && row % SIGNALS_EVERY == SIGNALS_EVERY - 1)
            result = PyErr_CheckSignals();
    }
    free(table);
    return result;
}

/* check_ids(name): refuses ids that repeat within the data, or within the known data. */
static PyObject *batch_check_ids(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    const char *name;
    id_reader reader;
    int result = 0;
    if (!PyArg_ParseTuple(args, "s", &name) || !is_usable(self))
        return NULL;
    if (init_id_reader(&reader, self, name) < 0)
        result = -1;
    for (size_t i = 0; i < self->data_count && result == 0; i++)
        if (reader.has[i])
            result = check_data_ids(&reader, i);
    free_id_reader(&reader);
    if (result < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- decisions ---- */

typedef struct deciding {
    batch_object *self;
    doppel_error error;
} deciding;

static doppel_status do_decide(void *argument) {
    deciding *d = argument;
    return doppel_batch_decide(d->self->batch, &d->error);
}

static PyObject *batch_decide(PyObject *object, PyObject *unused) {
    deciding d = {.self = (batch_object *)object};
    (void)unused;
    if (!run(d.self, do_decide, &d, &d.error))
        return NULL;
    Py_RETURN_NONE;
}

/* The columns of what was decided, by document. */
typedef struct decision_columns {
    array_builder original, kept, reason, similarity, distance;
} decision_columns;

static void free_decisions(decision_columns *c) {
    builder_free(&c->original);
    builder_free(&c->kept);
    builder_free(&c->reason);
    builder_free(&c->similarity);
    builder_free(&c->distance);
}

static bool fill_decisions(const batch_object *self, decision_columns *c, const uint64_t *positions, size_t count) {
    if (!builder_init(&c->original, VALUE_UINT64, 0, count) || !builder_init(&c->kept, VALUE_BOOL, 0, count) ||
        !builder_init(&c->reason, VALUE_STRING, 0, count) || !builder_init(&c->similarity, VALUE_DOUBLE, 0, count) ||
        !builder_init(&c->distance, VALUE_INT32, 0, count) || !builder_make_valid(&c->distance))
        return false;
    for (size_t i = 0; i < count; i++) {
        doppel_near near;
        doppel_batch_get(self->batch, positions[i], &near);
        bool kept = near.a == near.b;
        ((uint64_t *)c->original.values)[i] = near.a;
        ((uint8_t *)c->kept.values)[i] = kept;
        ((double *)c->similarity.values)[i] = near.similarity;
        ((int32_t *)c->distance.values)[i] = near.distance;
        c->distance.valid[i] = !kept && near.distance >= 0;
        if (!builder_add_string(&c->reason, doppel_slice_of(doppel_reason_name(near.reason))))
            return false;
    }
    return true;
}

/* Puts an Array (whose reference is taken over) into a dict; false: an exception. */
static bool put(PyObject *dict, const char *name, PyObject *value) {
    bool done = value && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return done;
}

/* The positions of documents that are not known: all, or those that are copies. NULL: no memory. */
static uint64_t *list_positions(const batch_object *self, bool copies, size_t *count) {
    doppel_batch_stats stats;
    doppel_batch_get_stats(self->batch, &stats);
    uint64_t *positions = malloc((size_t)(stats.documents - stats.known + 1) * sizeof *positions);
    *count = 0;
    for (uint64_t d = stats.known; positions && d < stats.documents; d++) {
        doppel_near near;
        doppel_batch_get(self->batch, d, &near);
        if (!copies || near.a != near.b)
            positions[(*count)++] = d;
    }
    return positions;
}

/* The result of columns(): ids of the documents and of their originals, and what was decided. */
static PyObject *make_columns(const batch_object *self, const char *name, const uint64_t *positions, size_t count,
                              decision_columns *c) {
    PyObject *result = PyDict_New();
    if (result && put(result, "id", make_ids(self, name, positions, count, false)) &&
        put(result, "originalId", make_ids(self, name, c->original.values, count, false)) &&
        put(result, "kept", builder_finish(&c->kept, false)) &&
        put(result, "reason", builder_finish(&c->reason, false)) &&
        put(result, "similarity", builder_finish(&c->similarity, false)) &&
        put(result, "distance", builder_finish(&c->distance, false)))
        return result;
    Py_XDECREF(result);
    return NULL;
}

/* columns(id name or None, only copies): a dict of Arrays, by document. */
static PyObject *batch_columns(PyObject *object, PyObject *args) {
    const batch_object *self = (const batch_object *)object;
    const char *name;
    int copies;
    size_t count;
    if (!PyArg_ParseTuple(args, "zp", &name, &copies) || !is_usable(self))
        return NULL;
    uint64_t *positions = list_positions(self, copies, &count);
    decision_columns columns = {0};
    PyObject *result = NULL;
    if (positions && fill_decisions(self, &columns, positions, count))
        result = make_columns(self, name, positions, count, &columns);
    else
        PyErr_NoMemory();
    free_decisions(&columns);
    free(positions);
    return result;
}

/* By row of the data that is not known, whether it stays; what is no document stays. NULL: no memory. */
static uint8_t *make_mask(const batch_object *self) {
    const batch_data *data = self->data[self->data_count - 1];
    doppel_batch_stats stats;
    doppel_batch_get_stats(self->batch, &stats);
    uint8_t *mask = malloc((size_t)data->input->rows + 1);
    if (!mask)
        return NULL;
    memset(mask, 1, (size_t)data->input->rows);
    for (uint64_t d = stats.known; d < stats.documents; d++) {
        doppel_near near;
        doppel_batch_get(self->batch, d, &near);
        mask[row_of(data, d - stats.known)] = near.a == near.b;
    }
    return mask;
}

/* mask(): an Array of bool, by row. */
static PyObject *batch_mask(PyObject *object, PyObject *unused) {
    const batch_object *self = (const batch_object *)object;
    (void)unused;
    if (!has_data(self))
        return NULL;
    const batch_data *data = self->data[self->data_count - 1];
    array_builder mask = {0};
    uint8_t *made = make_mask(self);
    PyObject *result = NULL;
    if (made && builder_init(&mask, VALUE_BOOL, 0, (size_t)data->input->rows)) {
        memcpy(mask.values, made, (size_t)data->input->rows);
        result = builder_finish(&mask, false);
    } else {
        PyErr_NoMemory();
    }
    builder_free(&mask);
    free(made);
    return result;
}

/* finish(): frees all but the data and which rows of it stay, for kept_stream. The caller's progress goes, too: it may
 * refer to what holds this. */
static PyObject *batch_finish(PyObject *object, PyObject *unused) {
    batch_object *self = (batch_object *)object;
    (void)unused;
    if (!has_data(self) || PyDict_SetItemString(self->options, "progress", Py_None) < 0)
        return NULL;
    self->mask = make_mask(self);
    if (!self->mask)
        return PyErr_NoMemory();
    doppel_batch *batch = self->batch;
    self->batch = NULL;
    Py_BEGIN_ALLOW_THREADS;
    doppel_batch_free(batch);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* kept_stream(): the rows that stay, as a capsule of a stream that shares the caller's memory. */
static PyObject *batch_kept_stream(PyObject *object, PyObject *unused) {
    const batch_object *self = (const batch_object *)object;
    (void)unused;
    if (!self->mask)
        return PyErr_Format(PyExc_RuntimeError, "the batch is not finished");
    return stream_of_held(self->data[self->data_count - 1]->held, self->mask);
}

/* is_table(): whether the data has columns with names. */
static PyObject *batch_is_table(PyObject *object, PyObject *unused) {
    const batch_object *self = (const batch_object *)object;
    (void)unused;
    return PyBool_FromLong(self->data_count && self->data[self->data_count - 1]->input->is_struct);
}

/* ---- pairs ---- */

typedef struct pair_finding {
    batch_object *self;
    bool collapse;
    uint64_t *a, *b;
    double *similarity;
    int32_t *distance;
    size_t count, room;
    doppel_error error;
} pair_finding;

static bool reserve_pairs(pair_finding *f, size_t more) {
    if (f->count + more <= f->room)
        return true;
    size_t room = f->room * 2 > f->count + more ? f->room * 2 : f->count + more;
    uint64_t *a = realloc(f->a, room * sizeof *a), *b = a ? realloc(f->b, room * sizeof *b) : NULL;
    f->a = a ? a : f->a;
    f->b = b ? b : f->b;
    double *similarity = b ? realloc(f->similarity, room * sizeof *similarity) : NULL;
    f->similarity = similarity ? similarity : f->similarity;
    int32_t *distance = similarity ? realloc(f->distance, room * sizeof *distance) : NULL;
    f->distance = distance ? distance : f->distance;
    f->room = distance ? room : f->room;
    return distance;
}

/* doppel_batch_find_pairs */
static doppel_status take_pairs(const doppel_near *pairs, size_t count, void *user) {
    pair_finding *f = user;
    if (!reserve_pairs(f, count))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++, f->count++) {
        f->a[f->count] = pairs[i].a;
        f->b[f->count] = pairs[i].b;
        f->similarity[f->count] = pairs[i].similarity;
        f->distance[f->count] = pairs[i].distance;
    }
    return DOPPEL_OK;
}

static doppel_status do_pairs(void *argument) {
    pair_finding *f = argument;
    return doppel_batch_find_pairs(f->self->batch, f->collapse, take_pairs, f, &f->error);
}

/* Makes an Array of a C array of the builder's kind. */
static PyObject *array_of(value_kind kind, const void *values, size_t count, size_t size) {
    array_builder builder = {0};
    if (!builder_init(&builder, kind, 0, count))
        return PyErr_NoMemory();
    if (count)
        memcpy(builder.values, values, count * size);
    return builder_finish(&builder, false);
}

static PyObject *distances_of(const pair_finding *f) {
    array_builder builder = {0};
    if (!builder_init(&builder, VALUE_INT32, 0, f->count) || !builder_make_valid(&builder)) {
        builder_free(&builder);
        return PyErr_NoMemory();
    }
    for (size_t i = 0; i < f->count; i++) {
        ((int32_t *)builder.values)[i] = f->distance[i];
        builder.valid[i] = f->distance[i] >= 0;
    }
    return builder_finish(&builder, false);
}

/* pairs(id name or None, collapse): a dict of Arrays, by pair. */
static PyObject *batch_pairs(PyObject *object, PyObject *args) {
    pair_finding f = {.self = (batch_object *)object};
    const char *name;
    int collapse;
    if (!PyArg_ParseTuple(args, "zp", &name, &collapse))
        return NULL;
    f.collapse = collapse;
    PyObject *result = run(f.self, do_pairs, &f, &f.error) ? PyDict_New() : NULL;
    if (result &&
        !(put(result, "a", make_ids(f.self, name, f.a, f.count, false)) &&
          put(result, "b", make_ids(f.self, name, f.b, f.count, false)) && put(result, "distance", distances_of(&f)) &&
          put(result, "similarity", array_of(VALUE_DOUBLE, f.similarity, f.count, sizeof *f.similarity))))
        Py_CLEAR(result);
    free(f.a);
    free(f.b);
    free(f.similarity);
    free(f.distance);
    return result;
}

/* ---- figures, and files out ---- */

/* stats(): a dict. */
static PyObject *batch_stats(PyObject *object, PyObject *unused) {
    const batch_object *self = (const batch_object *)object;
    doppel_batch_stats s;
    (void)unused;
    if (!is_usable(self))
        return NULL;
    doppel_batch_get_stats(self->batch, &s);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:i,s:i,s:d,s:K}", "documents",
                         (unsigned long long)(s.documents - s.known), "bytes", (unsigned long long)self->counts.bytes,
                         "bad", (unsigned long long)self->counts.bad, "repaired",
                         (unsigned long long)self->counts.repaired, "unopened",
                         (unsigned long long)self->counts.unopened, "known", (unsigned long long)s.known, "empty",
                         (unsigned long long)s.empty, "fewWords", (unsigned long long)s.few_words, "copies",
                         (unsigned long long)s.copies, "sameIds", (unsigned long long)s.same_ids, "kept",
                         (unsigned long long)s.kept, "groups", (unsigned long long)s.groups, "candidates",
                         (unsigned long long)s.candidates, "verified", (unsigned long long)s.verified, "bands", s.bands,
                         "rows", s.rows, "expectedRecall", s.recall, "inIndex", (unsigned long long)s.in_index);
}

/* ---- outputs: open_outputs, write_removed, write or write_records, finish_outputs ---- */

static bool open_output(batch_object *self, PyObject *path, doppel_writer **writer) {
    PyObject *bytes = NULL;
    doppel_error error = {0};
    char *name;
    if (path == Py_None)
        return true;
    if (!PyUnicode_FSConverter(path, &bytes))
        return false;
    bool good = PyBytes_AsStringAndSize(bytes, &name, NULL) == 0;
    doppel_status status =
        good ? doppel_writer_open(writer, name, int_option(self->options, "threads"), &error) : DOPPEL_OK;
    if (status != DOPPEL_OK)
        raise_error(status, &error, NULL);
    Py_DECREF(bytes);
    return good && status == DOPPEL_OK;
}

/* format_of(path): what a file with this name would be read as, or None. */
static PyObject *batch_format_of(PyObject *object, PyObject *path) {
    PyObject *bytes = NULL;
    (void)object;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    const char *format = doppel_input_format(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    if (format)
        return PyUnicode_FromString(format);
    Py_RETURN_NONE;
}

/* open_outputs(records, removed): opens the files that write_records and write_removed fill; None: there is none. They
 * appear under their names with finish_outputs(True). */
static PyObject *batch_open_outputs(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    PyObject *records, *removed;
    if (!PyArg_ParseTuple(args, "OO", &records, &removed) || !is_usable(self))
        return NULL;
    if (self->records || self->removed)
        return PyErr_Format(PyExc_RuntimeError, "the outputs are open");
    if (!open_output(self, records, &self->records) || !open_output(self, removed, &self->removed))
        return NULL;
    doppel_batch_set_output(self->batch, self->records);
    Py_RETURN_NONE;
}

/* finish_outputs(ok): all of them take their places, or they are removed. */
static PyObject *batch_finish_outputs(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    int ok;
    if (!PyArg_ParseTuple(args, "p", &ok) || !is_usable(self))
        return NULL;
    doppel_writer *writers[] = {self->records, self->removed};
    doppel_error error = {0};
    doppel_status status = DOPPEL_OK;
    doppel_batch_set_output(self->batch, NULL);
    self->records = self->removed = NULL;
    Py_BEGIN_ALLOW_THREADS;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        doppel_status finished = doppel_writer_finish(writers[i], ok && status == DOPPEL_OK, &error);
        status = ok && status == DOPPEL_OK ? finished : status;
    }
    Py_END_ALLOW_THREADS;
    if (status != DOPPEL_OK)
        return raise_error(status, &error, NULL);
    Py_RETURN_NONE;
}

/* Lines of JSON that are being written. */
typedef struct removed_writing {
    batch_object *self;
    char *line, *id; /* memory for them */
    size_t line_room, id_room;
    doppel_error error;
} removed_writing;

static bool reserve(char **memory, size_t *room, size_t need) {
    char *grown = need > *room ? realloc(*memory, 2 * need) : *memory;
    if (!grown)
        return false;
    *room = need > *room ? 2 * need : *room;
    *memory = grown;
    return true;
}

/* Adds a member with the id of a document to the line, which has `used` bytes; 0: no memory. */
static size_t add_id_member(removed_writing *w, size_t used, const char *name, uint64_t position) {
    enum { NAME_ROOM = 32 };
    size_t length = doppel_batch_id(w->self->batch, position, w->id, w->id_room);
    if (!reserve(&w->id, &w->id_room, length + 1))
        return 0;
    length = doppel_batch_id(w->self->batch, position, w->id, w->id_room);
    size_t quoted = doppel_json_string((doppel_slice){w->id, length}, NULL, 0);
    if (!reserve(&w->line, &w->line_room, used + NAME_ROOM + quoted + 1))
        return 0;
    used += (size_t)snprintf(w->line + used, NAME_ROOM, "%c\"%s\":", used ? ',' : '{', name);
    return used + doppel_json_string((doppel_slice){w->id, length}, w->line + used, quoted + 1);
}

/* One line, as the command writes it. */
static doppel_status write_removed_line(removed_writing *w, const doppel_near *near) {
    enum { REST_ROOM = 160 };
    char similarity[32] = "null", distance[16] = "null";
    size_t used = add_id_member(w, 0, "id", near->b);
    used = used ? add_id_member(w, used, "originalId", near->a) : 0;
    if (!used || !reserve(&w->line, &w->line_room, used + REST_ROOM))
        return DOPPEL_ERROR_MEMORY;
    if (!isnan(near->similarity))
        snprintf(similarity, sizeof similarity, "%.6g", near->similarity);
    char *comma = strchr(similarity, ','); /* the locale's decimal point may be one */
    if (comma)
        *comma = '.';
    if (near->distance >= 0)
        snprintf(distance, sizeof distance, "%d", near->distance);
    used += (size_t)snprintf(w->line + used, REST_ROOM, ",\"reason\":\"%s\",\"similarity\":%s,\"distance\":%s%s}\n",
                             doppel_reason_name(near->reason), similarity, distance,
                             near->verified ? "" : ",\"verified\":false");
    return doppel_writer_write(w->self->removed, (doppel_slice){w->line, used}, &w->error);
}

static doppel_status do_write_removed(void *argument) {
    removed_writing *w = argument;
    doppel_batch_stats s;
    doppel_status status = DOPPEL_OK;
    doppel_batch_get_stats(w->self->batch, &s);
    for (uint64_t d = s.known; d < s.documents && status == DOPPEL_OK; d++) {
        doppel_near near;
        doppel_batch_get(w->self->batch, d, &near);
        if (near.a != near.b)
            status = w->self->call.stop ? DOPPEL_ERROR_INTERRUPTED : write_removed_line(w, &near);
    }
    return status;
}

/* write_removed(): a line for each document that goes. */
static PyObject *batch_write_removed(PyObject *object, PyObject *unused) {
    removed_writing w = {.self = (batch_object *)object};
    (void)unused;
    bool good = !w.self->removed || run(w.self, do_write_removed, &w, &w.error);
    free(w.line);
    free(w.id);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

typedef struct file_writing {
    batch_object *self;
    PyObject *writer;
    bool annotate;
    doppel_error error, failure;
} file_writing;

static doppel_status write_one(const doppel_batch_rows *rows, void *user) {
    file_writing *w = user;
    atomic_fetch_add(&w->self->call.done, rows->count);
    return write_rows(w->writer, w->self->batch, rows, w->annotate, &w->self->call.stop, &w->failure);
}

static doppel_status do_write(void *argument) {
    file_writing *w = argument;
    atomic_store(&w->self->call.total, doppel_batch_count(w->self->batch));
    doppel_status status = doppel_batch_each_table(w->self->batch, write_one, w, &w->error);
    if (status != DOPPEL_OK && w->failure.code != DOPPEL_OK)
        w->error = w->failure;
    return status;
}

/* write(writer, annotate): writes every input that is a table through the writer. */
static PyObject *batch_write(PyObject *object, PyObject *args) {
    file_writing w = {.self = (batch_object *)object};
    int annotate;
    if (!PyArg_ParseTuple(args, "Op", &w.writer, &annotate))
        return NULL;
    w.annotate = annotate;
    if (!run(w.self, do_write, &w, &w.error))
        return NULL;
    Py_RETURN_NONE;
}

typedef struct record_writing {
    batch_object *self;
    doppel_error error;
} record_writing;

static doppel_status do_write_records(void *argument) {
    record_writing *w = argument;
    return doppel_batch_write_kept(w->self->batch, w->self->records, &w->error);
}

/* write_records(): the documents that stay, as JSONL. */
static PyObject *batch_write_records(PyObject *object, PyObject *unused) {
    record_writing w = {.self = (batch_object *)object};
    (void)unused;
    if (!w.self->records)
        return PyErr_Format(PyExc_RuntimeError, "no output is open");
    if (!run(w.self, do_write_records, &w, &w.error))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- overlap ---- */

typedef struct overlapping {
    batch_object *self;
    doppel_overlap_options options;
    uint64_t *positions; /* a and b of each pair */
    double *shares;      /* containments of each pair */
    size_t count, room;
    array_builder place[5]; /* where passages begin and end in a and b, and their words */
    doppel_error error;
} overlapping;

static bool reserve_overlaps(overlapping *o) {
    if (o->count < o->room)
        return true;
    size_t room = o->room ? 2 * o->room : 1024;
    uint64_t *positions = realloc(o->positions, 2 * room * sizeof *positions);
    o->positions = positions ? positions : o->positions;
    double *shares = positions ? realloc(o->shares, 2 * room * sizeof *shares) : NULL;
    o->shares = shares ? shares : o->shares;
    o->room = shares ? room : o->room;
    return shares;
}

/* Adds one number of each passage as a list: which of its members, in their order. */
static bool add_places(overlapping *o, const doppel_overlap *pair, uint64_t *numbers) {
    bool added = true;
    for (size_t member = 0; member < 5 && added; member++) {
        for (size_t i = 0; i < pair->passage_count; i++) {
            const doppel_passage *p = &pair->passages[i];
            const uint64_t members[] = {p->a_start, p->a_end, p->b_start, p->b_end, p->words};
            numbers[i] = members[member];
        }
        added = builder_add_list(&o->place[member], numbers, pair->passage_count, false);
    }
    return added;
}

/* doppel_overlap_options.pair */
static doppel_status take_overlap(const doppel_overlap *pair, void *user) {
    overlapping *o = user;
    uint64_t *numbers = malloc((pair->passage_count + 1) * sizeof *numbers);
    bool taken = numbers && reserve_overlaps(o) && add_places(o, pair, numbers);
    free(numbers);
    if (!taken)
        return DOPPEL_ERROR_MEMORY;
    o->positions[2 * o->count] = pair->a;
    o->positions[2 * o->count + 1] = pair->b;
    o->shares[2 * o->count] = pair->containment_ab;
    o->shares[2 * o->count + 1] = pair->containment_ba;
    o->count++;
    return DOPPEL_OK;
}

static doppel_status do_overlap(void *argument) {
    overlapping *o = argument;
    static const char *const paths[] = {"table:0", "table:1"};
    size_t known = o->self->known_count;
    o->options.against = paths;
    o->options.against_count = known;
    doppel_status status = doppel_overlap_find(paths + known, 1, &o->options, NULL, &o->error);
    if (status == DOPPEL_OK)
        set_progress(o->self, o->self->expected, o->self->expected);
    return status;
}

/* One of the two of each pair. */
static PyObject *overlap_ids(const overlapping *o, const char *name, size_t side) {
    uint64_t *positions = malloc((o->count + 1) * sizeof *positions);
    if (!positions)
        return PyErr_NoMemory();
    for (size_t i = 0; i < o->count; i++)
        positions[i] = o->positions[2 * i + side];
    PyObject *ids = make_ids(o->self, name, positions, o->count, false);
    free(positions);
    return ids;
}

static PyObject *overlap_shares(const overlapping *o, size_t side) {
    array_builder builder = {0};
    if (!builder_init(&builder, VALUE_DOUBLE, 0, o->count))
        return PyErr_NoMemory();
    for (size_t i = 0; i < o->count; i++)
        ((double *)builder.values)[i] = o->shares[2 * i + side];
    return builder_finish(&builder, false);
}

static PyObject *overlap_columns(overlapping *o, const char *name) {
    static const char *const names[] = {"aStarts", "aEnds", "bStarts", "bEnds", "words"};
    PyObject *result = PyDict_New();
    bool good = result && put(result, "a", overlap_ids(o, name, 0)) && put(result, "b", overlap_ids(o, name, 1)) &&
                put(result, "containmentAB", overlap_shares(o, 0)) &&
                put(result, "containmentBA", overlap_shares(o, 1));
    for (size_t i = 0; i < 5 && good; i++)
        good = put(result, names[i], builder_finish(&o->place[i], false));
    if (good)
        return result;
    Py_XDECREF(result);
    return NULL;
}

/* overlap(id name or None): a dict of Arrays, by pair. */
static PyObject *batch_overlap(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    PyObject *o = self->options;
    const char *name;
    if (!PyArg_ParseTuple(args, "z", &name) || !has_data(self))
        return NULL;
    overlapping found = {.self = self};
    found.options = (doppel_overlap_options){.size = sizeof found.options,
                                             .recipe = doppel_batch_get_options(self->batch)->recipe,
                                             .containment = share_option(o, "containment"),
                                             .words = count_option(o, "words"),
                                             .sample = count_option(o, "sample"),
                                             .content = (doppel_content)int_option(o, "content"),
                                             .memory = count_option(o, "memory"),
                                             .tmp = text_option(o, "tmp"),
                                             .input = &self->input,
                                             .pair = take_overlap,
                                             .user = &found};
    bool good = true;
    for (size_t i = 0; i < 5 && good; i++)
        good = builder_init(&found.place[i], VALUE_UINT64_LIST, 0, 0);
    if (!good)
        PyErr_NoMemory();
    PyObject *result = NULL;
    self->first_bad = (doppel_error){0};
    self->expected = 0;
    for (size_t i = 0; i < self->data_count; i++)
        self->expected += count_documents(self->data[i]);
    if (good && !PyErr_Occurred() && run(self, do_overlap, &found, &found.error))
        result = self->first_bad.code == DOPPEL_OK ? overlap_columns(&found, name) : raise_bad(self);
    for (size_t i = 0; i < 5; i++)
        builder_free(&found.place[i]);
    free(found.positions);
    free(found.shares);
    return result;
}

/* ---- decide: edges to originals ---- */

static int bad_edge(const data_batch *batch, uint64_t row, const char *name, const char *what) {
    PyErr_Format(PyExc_ValueError, "edges: row %llu: \"%s\" is no %s", (unsigned long long)(batch->first + row), name,
                 what);
    return -1;
}

/* One edge; -1: an exception. Numbers are written out to `room`, texts stand elsewhere. A similarity that is not known,
 * null or NaN, is 0. */
static int take_edge(const data_batch *batch, const doppel_column column[3], uint64_t row, const char *const names[3],
                     doppel_edge *edge) {
    char room[DOPPEL_COLUMN_ROOM], *stop = room;
    uint64_t end[2];
    for (size_t c = 0; c < 2; c++) {
        doppel_slice number = doppel_column_get(&column[c], row, room);
        end[c] = number.data == room ? strtoull(room, &stop, 10) : UINT64_MAX;
        if (stop == room || *stop || end[c] >= UINT32_MAX)
            return bad_edge(batch, row, names[c], "position of a document");
    }
    doppel_slice share = doppel_column_get(&column[2], row, room);
    float similarity = share.data == room ? strtof(room, &stop) : 0;
    if (share.data && (share.data != room || stop == room || *stop || isinf(similarity)))
        return bad_edge(batch, row, names[2], "similarity");
    *edge = (doppel_edge){(uint32_t)end[0], (uint32_t)end[1], isnan(similarity) ? 0 : similarity};
    return 0;
}

/* All edges, and the number of documents that they imply; -1: an exception. */
static int take_edges(const data_input *data, const char *const names[3], doppel_edge *edges, uint64_t *most) {
    size_t at = 0;
    for (size_t i = 0; i < data->batch_count; i++) {
        const data_batch *batch = &data->batches[i];
        doppel_column column[3];
        for (size_t c = 0; c < 3; c++)
            if (data_column(data, i, names[c], "edges", NULL, &column[c]) < 0)
                return -1;
        for (uint64_t row = 0; row < (uint64_t)batch->array.length; row++, at++) {
            if (take_edge(batch, column, row, names, &edges[at]) < 0)
                return -1;
            uint64_t end = edges[at].a > edges[at].b ? edges[at].a : edges[at].b;
            *most = end >= *most ? end + 1 : *most;
            if (at % SIGNALS_EVERY == SIGNALS_EVERY - 1 && PyErr_CheckSignals() < 0)
                return -1;
        }
    }
    return 0;
}

typedef struct edge_deciding {
    doppel_edge *edges;
    size_t edge_count;
    uint32_t count;
    bool link_any;
    uint32_t *original;
    float *similarity;
    doppel_error error;
} edge_deciding;

static doppel_status do_decide_edges(void *argument) {
    edge_deciding *d = argument;
    return doppel_decide_edges(d->edges, d->edge_count, d->count, d->link_any, d->original, d->similarity, &d->error);
}

static PyObject *decision_table(const edge_deciding *d) {
    array_builder position = {0}, original = {0}, kept = {0}, similarity = {0};
    PyObject *result = PyDict_New();
    bool good = builder_init(&position, VALUE_UINT64, 0, d->count) &&
                builder_init(&original, VALUE_UINT64, 0, d->count) && builder_init(&kept, VALUE_BOOL, 0, d->count) &&
                builder_init(&similarity, VALUE_DOUBLE, 0, d->count);
    for (uint32_t i = 0; good && i < d->count; i++) {
        ((uint64_t *)position.values)[i] = i;
        ((uint64_t *)original.values)[i] = d->original[i];
        ((uint8_t *)kept.values)[i] = d->original[i] == i;
        ((double *)similarity.values)[i] = (double)d->similarity[i];
    }
    if (!good)
        PyErr_NoMemory();
    good = good && result && put(result, "position", builder_finish(&position, false)) &&
           put(result, "original", builder_finish(&original, false)) &&
           put(result, "kept", builder_finish(&kept, false)) &&
           put(result, "similarity", builder_finish(&similarity, false));
    builder_free(&position);
    builder_free(&original);
    builder_free(&kept);
    builder_free(&similarity);
    if (!good)
        Py_CLEAR(result);
    return result;
}

/* decide_edges(edges, a, b, similarity, count or None, link any): a dict of Arrays, by document. */
static PyObject *decide_edges(PyObject *module, PyObject *args) {
    PyObject *given, *count;
    const char *names[3];
    int link_any;
    uint64_t most = 0;
    data_input data = {0};
    edge_deciding d = {0};
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OsssOp", &given, &names[0], &names[1], &names[2], &count, &link_any) ||
        take_data(given, "edges", &data) < 0)
        return NULL;
    d.edge_count = (size_t)data.rows;
    d.link_any = link_any;
    d.edges = malloc((d.edge_count + 1) * sizeof *d.edges);
    int taken = d.edges ? take_edges(&data, names, d.edges, &most) : (PyErr_NoMemory(), -1);
    if (taken == 0 && count != Py_None)
        most = PyLong_AsUnsignedLongLong(count);
    if (taken == 0 && !PyErr_Occurred() && most > UINT32_MAX)
        PyErr_Format(PyExc_ValueError, "count: there can be %lu documents at most", (unsigned long)UINT32_MAX);
    free_data(&data);
    if (taken == 0 && !PyErr_Occurred()) {
        d.count = (uint32_t)most;
        d.original = malloc(((size_t)d.count + 1) * sizeof *d.original);
        d.similarity = malloc(((size_t)d.count + 1) * sizeof *d.similarity);
        long_call call = {0};
        doppel_status status =
            d.original && d.similarity ? run_long_call(&call, do_decide_edges, &d) : DOPPEL_ERROR_MEMORY;
        result = status == DOPPEL_OK ? decision_table(&d) : raise_error(status, &d.error, NULL);
    }
    free(d.edges);
    free(d.original);
    free(d.similarity);
    return result;
}

/* ---- the type ---- */

static PyMethodDef batch_methods[] = {
    {"read_data", batch_read_data, METH_VARARGS, "read_data(data, known, argument, needed)"},
    {"hold_data", batch_hold_data, METH_VARARGS, "hold_data(data, known, argument, needed)"},
    {"read_paths", batch_read_paths, METH_VARARGS, "read_paths(paths, known)"},
    {"check_ids", batch_check_ids, METH_VARARGS, "check_ids(name)"},
    {"decide", batch_decide, METH_NOARGS, "decide()"},
    {"columns", batch_columns, METH_VARARGS, "columns(id, only_copies)"},
    {"mask", batch_mask, METH_NOARGS, "mask()"},
    {"finish", batch_finish, METH_NOARGS, "finish()"},
    {"is_table", batch_is_table, METH_NOARGS, "is_table()"},
    {"kept_stream", batch_kept_stream, METH_NOARGS, "kept_stream()"},
    {"pairs", batch_pairs, METH_VARARGS, "pairs(id, collapse)"},
    {"stats", batch_stats, METH_NOARGS, "stats()"},
    {"format_of", batch_format_of, METH_O, "format_of(path)"},
    {"open_outputs", batch_open_outputs, METH_VARARGS, "open_outputs(records, removed)"},
    {"write_removed", batch_write_removed, METH_NOARGS, "write_removed()"},
    {"write", batch_write, METH_VARARGS, "write(writer, annotate)"},
    {"write_records", batch_write_records, METH_NOARGS, "write_records()"},
    {"finish_outputs", batch_finish_outputs, METH_VARARGS, "finish_outputs(ok)"},
    {"overlap", batch_overlap, METH_VARARGS, "overlap(id)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot batch_slots[] = {
    {Py_tp_new, batch_new},
    {Py_tp_dealloc, batch_dealloc},
    {Py_tp_methods, batch_methods},
    {Py_tp_doc, "Documents, and what was decided of them; doppel/_batch.py uses it."},
    {0, NULL},
};

static PyType_Spec batch_spec = {
    .name = "doppel._doppel.Batch",
    .basicsize = sizeof(batch_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = batch_slots,
};

static PyMethodDef batch_functions[] = {
    {"decide_edges", decide_edges, METH_VARARGS, "decide_edges(edges, a, b, similarity, count, link_any)"},
    {NULL, NULL, 0, NULL},
};

int init_batch(PyObject *module) {
    doppel_module.batch = add_type(module, &batch_spec);
    return doppel_module.batch ? add_functions(module, batch_functions) : -1;
}
