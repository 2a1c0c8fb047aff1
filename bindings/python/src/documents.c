/* documents.c - the documents of a call (documents.h): options, what goes wrong while they are read, data in memory and
 * its ids, outputs. */
#include "documents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

PyObject *option(PyObject *options, const char *name) {
    PyObject *value = PyDict_GetItemString(options, name);
    return value == Py_None ? NULL : value;
}

const char *text_option(PyObject *options, const char *name) {
    PyObject *value = option(options, name);
    return value ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
}

double share_option(PyObject *options, const char *name) {
    PyObject *value = option(options, name);
    return value ? PyFloat_AsDouble(value) : 0;
}

uint64_t count_option(PyObject *options, const char *name) {
    PyObject *value = option(options, name);
    return value ? PyLong_AsUnsignedLongLong(value) : 0;
}

int int_option(PyObject *options, const char *name) {
    PyObject *value = option(options, name);
    return value ? (int)PyLong_AsLong(value) : 0;
}

bool flag_option(PyObject *options, const char *name) {
    PyObject *value = option(options, name);
    return value && PyObject_IsTrue(value) == 1;
}

/* ---- callbacks, from threads of libdoppel ---- */

void set_progress(documents *self, uint64_t done, uint64_t total) {
    atomic_store_explicit(&self->call.total, total, memory_order_relaxed);
    atomic_store_explicit(&self->call.done, done < total ? done : total, memory_order_relaxed);
}

/* Bytes of files; documents of data in memory. */
static void on_progress(uint64_t bytes, uint64_t total, uint64_t count, void *user) {
    documents *self = ((const reading_notes *)user)->of;
    if (self->tables)
        set_progress(self, bytes, total);
    else
        set_progress(self, count, self->expected);
}

void on_stage(const char *stage, uint64_t done, uint64_t total, void *user) {
    (void)stage;
    set_progress(user, done, total);
}

static int compare_rows(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The number of the data in memory that an error is about; MOST_DATA: it is about a file. */
static size_t number_of_data(const documents *self, const doppel_error *what) {
    if (self->tables || strncmp(what->file, "table:", 6) != 0)
        return MOST_DATA;
    size_t number = (size_t)strtoul(what->file + 6, NULL, 10);
    return number < self->data_count ? number : MOST_DATA;
}

/* Whether it is about a row that is null, and to be passed over. */
static bool is_skipped(const documents *self, const doppel_error *what) {
    size_t number = number_of_data(self, what);
    const document_data *data = number < MOST_DATA ? self->data[number] : NULL;
    uint64_t row = what->line - 1;
    return data && data->rows && what->line &&
           !bsearch(&row, data->rows, (size_t)data->documents, sizeof row, compare_rows);
}

/* doppel_input_options.bad */
static void on_bad(const doppel_error *what, void *user) {
    reading_notes *notes = user;
    bool first = notes->first_bad.code == DOPPEL_OK || (notes->first_bad.line && !what->line);
    if (what->code != DOPPEL_OK && first && !is_skipped(notes->of, what))
        notes->first_bad = *what;
}

/* doppel_input_options.unseen */
static void on_unseen(const char *key, void *user) {
    const reading_notes *notes = user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *name = PyUnicode_DecodeUTF8(key, (Py_ssize_t)strlen(key), "replace");
    if (!name || PyList_Append(notes->unseen, name) < 0)
        PyErr_Clear();
    Py_XDECREF(name);
    PyGILState_Release(gil);
}

bool notes_init(reading_notes *notes, documents *of) {
    *notes = (reading_notes){.of = of, .unseen = PyList_New(0)};
    return notes->unseen;
}

bool notes_reset(reading_notes *notes) {
    notes->first_bad = (doppel_error){0};
    return PyList_SetSlice(notes->unseen, 0, PyList_Size(notes->unseen), NULL) == 0;
}

/* ---- making and freeing ---- */

static void set_input(documents *self) {
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
                                         .user = &self->notes,
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

documents *documents_new(PyTypeObject *type, PyObject *args, const doppel_recipe **recipe) {
    PyObject *options, *tables;
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &options, &tables))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    documents *self = (documents *)allocate(type, 0);
    if (!self)
        return NULL;
    self->tables = tables == Py_None ? NULL : Py_NewRef(tables);
    self->options = PyDict_Copy(options);
    PyObject *given = self->options ? option(self->options, "recipe") : NULL;
    if (self->options && notes_init(&self->notes, self) && (!given || get_recipe(given, recipe, &self->own) == 0)) {
        self->recipe = given;
        Py_XINCREF(given);
        set_input(self);
        if (!PyErr_Occurred())
            return self;
    }
    Py_DECREF(self);
    return NULL;
}

static void free_document_data(document_data *data) {
    if (!data)
        return;
    drop_data(data->held);
    free(data->rows);
    free(data);
}

void documents_free(documents *self) {
    Py_BEGIN_ALLOW_THREADS;
    for (size_t i = 0; i < MOST_OUTPUTS; i++)
        doppel_writer_finish(self->outputs[i], false, NULL);
    Py_END_ALLOW_THREADS;
    for (size_t i = 0; i < self->data_count; i++)
        free_document_data(self->data[i]);
    doppel_recipe_free(self->own);
    Py_XDECREF(self->recipe);
    Py_XDECREF(self->options);
    Py_XDECREF(self->notes.unseen);
    Py_XDECREF(self->tables);
}

/* ---- one long call after the other ---- */

bool is_usable(const documents *self) {
    if (!self->busy && !self->finished)
        return true;
    PyErr_SetString(PyExc_RuntimeError,
                    self->busy ? "this batch is in use by another thread" : "this batch is finished");
    return false;
}

bool has_data(const documents *self) {
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

bool run_documents(documents *self, doppel_status (*work)(void *argument), void *argument, doppel_error *error) {
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

bool finish_documents(documents *self) {
    if (!is_usable(self) || PyDict_SetItemString(self->options, "progress", Py_None) < 0)
        return false;
    self->finished = true;
    return true;
}

/* ---- columns of data in memory ---- */

/* What the columns with texts and pages are called, and the data. */
typedef struct text_columns {
    const char *text, *html, *argument;
} text_columns;

/* The columns of data that a key names: the one of this name or path; where there is none, those that there are of the
 * parts between its commas, which are joined. docs/FORMAT.md section 16 says so to users. */
enum { MOST_PARTS = 64 };
typedef struct key_columns {
    char *copy; /* of the key, cut at its commas */
    const char *name[MOST_PARTS];
    size_t count;
} key_columns;

/* -1: an exception. Free key->copy in any case. */
static int find_key(const data_input *data, const char *name, key_columns *key) {
    int64_t child;
    char *rest = NULL;
    *key = (key_columns){.copy = strdup(name)};
    if (!key->copy)
        return PyErr_NoMemory(), -1;
    if (!data->is_struct || find_schema(data, name, &child)) {
        key->name[key->count++] = key->copy;
        return 0;
    }
    for (char *part = strtok_r(key->copy, ",", &rest); part && key->count < MOST_PARTS;
         part = strtok_r(NULL, ",", &rest))
        if (find_schema(data, part, &child))
            key->name[key->count++] = part;
    return 0;
}

/* How many columns a key names; -1: an exception. */
static int count_columns(const data_input *data, const char *name) {
    key_columns key;
    int result = !data->is_struct ? 0 : find_key(data, name, &key) < 0 ? -1 : (int)key.count;
    if (data->is_struct)
        free(key.copy);
    return result;
}

/* Whether a column must be there, as doppel/_options.py says it. */
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

/* The same of all columns that a key names. Ids are those of one. */
static int check_key(const data_input *data, const char *option, const char *name) {
    key_columns key;
    int result = find_key(data, name, &key);
    if (result == 0 && key.count > 1 && !strcmp(option, "id")) {
        PyErr_Format(PyExc_ValueError, "id: \"%s\" names %zu columns: name one", name, key.count);
        result = -1;
    }
    for (size_t i = 0; i < key.count && result == 0; i++)
        result = check_readable(data, option, key.name[i]);
    free(key.copy);
    return result;
}

/* Checks the columns that options name, (option, name, whether it must be there) each: those that are there must be
 * readable as text. -1: an exception. */
static int check_needed(const data_input *data, PyObject *needed, const char *html) {
    int pages = count_columns(data, html);
    for (Py_ssize_t i = 0; i < PyList_Size(needed); i++) {
        const char *option, *name;
        int required;
        if (!PyArg_ParseTuple(PyList_GetItem(needed, i), "ssi", &option, &name, &required))
            return -1;
        int there = count_columns(data, name);
        if (there < 0 || pages < 0 || (there && check_key(data, option, name) < 0))
            return -1;
        if (!there && (required == REQUIRED || (required == OR_PAGES && !pages)))
            return raise_no_column(data, option, name);
    }
    return 0;
}

uint64_t count_documents(const document_data *data) {
    return data->rows ? data->documents : data->input->rows;
}

/* The columns of one batch that have texts, or pages. */
typedef struct text_parts {
    doppel_column column[2 * MOST_PARTS];
    size_t count;
} text_parts;

/* Adds the columns that a key names; -1: an exception. */
static int add_parts(const data_input *data, size_t number, const char *name, const char *argument, text_parts *to) {
    key_columns key;
    int result = find_key(data, name, &key);
    for (size_t i = 0; i < key.count && result == 0; i++)
        result = data_column(data, number, key.name[i], argument, NULL, &to->column[to->count++]);
    free(key.copy);
    return result;
}

static bool has_text(const text_parts *parts, uint64_t row) {
    char room[DOPPEL_COLUMN_ROOM];
    for (size_t i = 0; i < parts->count; i++)
        if (doppel_column_get(&parts->column[i], row, room).data)
            return true;
    return false;
}

/* Lists the rows of one batch whose text (or page) is not null. */
static int list_batch_rows(document_data *data, size_t number, const text_columns *names, bool skip) {
    const data_batch *batch = &data->input->batches[number];
    text_parts parts = {.count = 0};
    if (add_parts(data->input, number, names->text, names->argument, &parts) < 0 ||
        (data->input->is_struct && add_parts(data->input, number, names->html, names->argument, &parts) < 0))
        return -1;
    for (uint64_t row = 0; row < (uint64_t)batch->array.length; row++) {
        bool there = has_text(&parts, row);
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
static int list_rows(document_data *data, const text_columns *names, bool skip) {
    const data_input *input = data->input;
    int texts = count_columns(input, names->text), pages = count_columns(input, names->html);
    if (texts < 0 || pages < 0)
        return -1;
    if (input->is_struct && !texts && !pages)
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

const document_data *take_document_data(documents *self, PyObject *args, int *known) {
    PyObject *given, *needed;
    data_input taken = {0};
    text_columns names = {.text = self->input.text_key ? self->input.text_key : "text",
                          .html = self->input.html_key ? self->input.html_key : "html"};
    if (!PyArg_ParseTuple(args, "OpsO!", &given, known, &names.argument, &PyList_Type, &needed) || !is_usable(self))
        return NULL;
    document_data *data = calloc(1, sizeof *data);
    if (!data || self->data_count == MOST_DATA)
        return free(data), PyErr_NoMemory(), NULL;
    if (take_data(given, names.argument, &taken) < 0)
        return free(data), NULL;
    data->held = hold_data(&taken);
    if (!data->held) {
        free_data(&taken);
        return free(data), PyErr_NoMemory(), NULL;
    }
    data->input = held_input(data->held);
    if (list_rows(data, &names, flag_option(self->options, "skip_missing")) < 0 ||
        check_needed(data->input, needed, names.html) < 0)
        return free_document_data(data), NULL;
    self->data[self->data_count] = data;
    self->inputs[self->data_count++] = data->input;
    self->known_count += *known ? 1 : 0;
    return data;
}

/* hold_data(data, known, argument, needed): holds it, to be read later. Gives whether it is a list. */
PyObject *documents_hold_data(PyObject *object, PyObject *args) {
    int known;
    const document_data *data = take_document_data((documents *)object, args, &known);
    return data ? PyBool_FromLong(data->input->is_list) : NULL;
}

PyObject *raise_bad(const documents *self) {
    doppel_error bad = self->notes.first_bad;
    const char *argument = number_of_data(self, &bad) < self->known_count ? "against" : "data";
    name_arguments(bad.message);
    if (bad.line)
        return PyErr_Format(doppel_module.input_error, "%s: row %llu: %s", argument, (unsigned long long)(bad.line - 1),
                            bad.message);
    return PyErr_Format(doppel_module.input_error, "%s: %s", argument, bad.message);
}

const char **take_paths(PyObject *given, PyObject *held) {
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

PyObject *left_out(const reading_notes *notes) {
    doppel_error bad = notes->first_bad;
    PyObject *unseen = PyList_GetSlice(notes->unseen, 0, PyList_Size(notes->unseen));
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

void name_unread(doppel_status status, const reading_notes *notes, doppel_error *error) {
    const doppel_error *bad = &notes->first_bad;
    if (status == DOPPEL_ERROR_INPUT && !error->file[0] && bad->code != DOPPEL_OK && !bad->line)
        *error = *bad;
}

/* ---- positions and ids ---- */

/* The data that a document is of, and its number there. */
static const document_data *data_of(const documents *self, uint64_t position, uint64_t *number) {
    for (size_t i = 0; i < self->data_count; i++) {
        uint64_t count = count_documents(self->data[i]);
        if (position < count) {
            *number = position;
            return self->data[i];
        }
        position -= count;
    }
    return NULL;
}

uint64_t row_of(const document_data *data, uint64_t number) {
    return data->rows ? data->rows[number] : number;
}

/* How ids come out: as whole numbers where the column has these. */
static value_kind id_kind(const documents *self, const char *name, bool *there) {
    value_kind kind = VALUE_UINT64;
    *there = false;
    for (size_t i = 0; i < self->data_count; i++) {
        const data_input *data = self->data[i]->input;
        int64_t child;
        const struct ArrowSchema *column = name && data->is_struct ? find_schema(data, name, &child) : NULL;
        if (!column)
            continue;
        bool number = !column->dictionary && strlen(column->format) == 1;
        value_kind own = number && strchr("csil", column->format[0])   ? VALUE_INT64
                         : number && strchr("CSIL", column->format[0]) ? VALUE_UINT64
                                                                       : VALUE_STRING;
        kind = *there && own != kind ? VALUE_STRING : own;
        *there = true;
    }
    return kind;
}

typedef struct id_reader {
    const documents *self;
    const char *name; /* NULL: rows */
    doppel_column *columns[MOST_DATA];
    bool has[MOST_DATA];
} id_reader;

static void free_id_reader(id_reader *reader) {
    for (size_t i = 0; i < MOST_DATA; i++)
        free(reader->columns[i]);
}

static int init_id_reader(id_reader *reader, const documents *self, const char *name) {
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
    size_t b = find_batch(data, row);
    if (!reader->has[i])
        return (doppel_slice){room, (size_t)snprintf(room, DOPPEL_COLUMN_ROOM, "%llu", (unsigned long long)row)};
    return doppel_column_get(&reader->columns[i][b], row - data->batches[b].first, room);
}

static bool add_id(const id_reader *reader, array_builder *to, size_t at, uint64_t position) {
    char room[DOPPEL_COLUMN_ROOM];
    uint64_t number;
    const document_data *data = data_of(reader->self, position, &number);
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

PyObject *make_ids(const documents *self, const char *name, const uint64_t *positions, size_t count) {
    id_reader reader;
    array_builder ids = {0};
    bool there, made = true;
    value_kind kind = id_kind(self, name, &there);
    PyObject *result = NULL;
    if (init_id_reader(&reader, self, there ? name : NULL) == 0) {
        made = builder_init(&ids, kind, 0, count);
        for (size_t i = 0; made && i < count; i++)
            made = add_id(&reader, &ids, i, positions[i]);
        result = made ? builder_finish(&ids, false) : PyErr_NoMemory();
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
    const document_data *d = reader->self->data[data];
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
PyObject *documents_check_ids(PyObject *object, PyObject *args) {
    documents *self = (documents *)object;
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

/* ---- results ---- */

bool put(PyObject *dict, const char *name, PyObject *value) {
    bool done = value && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return done;
}

PyObject *array_of(value_kind kind, const void *values, size_t count, size_t size) {
    array_builder builder = {0};
    if (!builder_init(&builder, kind, 0, count))
        return PyErr_NoMemory();
    if (count)
        memcpy(builder.values, values, count * size);
    return builder_finish(&builder, false);
}

/* is_table(): whether the data has columns with names. */
PyObject *documents_is_table(PyObject *object, PyObject *unused) {
    const documents *self = (const documents *)object;
    (void)unused;
    return PyBool_FromLong(self->data_count && self->data[self->data_count - 1]->input->is_struct);
}

/* ---- outputs ---- */

static bool open_output(const documents *self, PyObject *path, doppel_writer **writer) {
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
PyObject *documents_format_of(PyObject *object, PyObject *path) {
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

bool open_outputs(documents *self, PyObject *const *paths, size_t count) {
    for (size_t i = 0; i < MOST_OUTPUTS; i++)
        if (self->outputs[i])
            return PyErr_Format(PyExc_RuntimeError, "the outputs are open");
    for (size_t i = 0; i < count; i++)
        if (!open_output(self, paths[i], &self->outputs[i]))
            return false;
    return true;
}

/* finish_outputs(ok): all of them take their places, or they are removed. */
PyObject *documents_finish_outputs(PyObject *object, PyObject *args) {
    documents *self = (documents *)object;
    doppel_error error = {0};
    doppel_status status = DOPPEL_OK;
    int ok;
    if (!PyArg_ParseTuple(args, "p", &ok) || !is_usable(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    for (size_t i = 0; i < MOST_OUTPUTS; i++) {
        doppel_status finished = doppel_writer_finish(self->outputs[i], ok && status == DOPPEL_OK, &error);
        status = ok && status == DOPPEL_OK ? finished : status;
        self->outputs[i] = NULL;
    }
    Py_END_ALLOW_THREADS;
    if (status != DOPPEL_OK)
        return raise_error(status, &error, NULL);
    Py_RETURN_NONE;
}

bool line_reserve(line_buffer *line, size_t more) {
    size_t need = line->used + more;
    char *grown = need > line->room ? realloc(line->bytes, 2 * need) : line->bytes;
    if (!grown)
        return false;
    line->room = need > line->room ? 2 * need : line->room;
    line->bytes = grown;
    return true;
}

bool line_add_string(line_buffer *line, const char *name, doppel_slice value) {
    enum { NAME_ROOM = 32 };
    size_t quoted = doppel_json_string(value, NULL, 0);
    if (!line_reserve(line, NAME_ROOM + quoted + 1))
        return false;
    line->used += (size_t)snprintf(line->bytes + line->used, NAME_ROOM, "%c\"%s\":", line->used ? ',' : '{', name);
    line->used += doppel_json_string(value, line->bytes + line->used, quoted + 1);
    return true;
}
