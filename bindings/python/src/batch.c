/* batch.c - Batch: documents in, pairs or decisions out (doppel_batch of libdoppel), from data in memory or from files;
 * overlap; decide.
 *
 * doppel/_batch.py makes a Batch of its options, reads, decides or finds pairs, and makes tables of what this gives:
 * Arrays by document, or by pair. Documents are known by their positions; Batch.ids names them by the id column of the
 * caller's data, or by their rows. Rows whose text is null are no documents: `rows` leads from positions to rows. */
#include "module.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DATA = 2, MOST_KEYS = 5 };

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
    memory_tables memory;
    python_tables python;
    PyObject *tables; /* what opens files; NULL: none */
    doppel_input_options input;
    doppel_input_counts counts;
    doppel_error first_bad; /* of the last reading: the first record or file that was left out */
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

static void on_progress(uint64_t bytes, uint64_t total, uint64_t documents, void *user) {
    batch_object *self = user;
    (void)documents;
    atomic_store_explicit(&self->call.total, total, memory_order_relaxed);
    atomic_store_explicit(&self->call.done, bytes, memory_order_relaxed);
}

static void on_stage(const char *stage, uint64_t done, uint64_t total, void *user) {
    (void)stage;
    on_progress(done, total, 0, user);
}

static int compare_rows(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Whether a row of the data that is being read is null, and to be passed over. */
static bool is_skipped(const batch_object *self, uint64_t line) {
    const batch_data *data = self->data_count ? self->data[self->data_count - 1] : NULL;
    uint64_t row = line - 1;
    return data && data->rows && line && !bsearch(&row, data->rows, (size_t)data->documents, sizeof row, compare_rows);
}

static void on_bad(const doppel_error *what, void *user) {
    batch_object *self = user;
    if (what->code != DOPPEL_OK && self->first_bad.code == DOPPEL_OK && !is_skipped(self, what->line))
        self->first_bad = *what;
}

/* ---- making one ---- */

static void set_input(batch_object *self) {
    PyObject *o = self->options;
    self->input = (doppel_input_options){.size = sizeof self->input,
                                         .threads = int_option(o, "threads"),
                                         .max_record = (size_t)count_option(o, "max_record"),
                                         .strict = flag_option(o, "strict"),
                                         .id_key = text_option(o, "id_key"),
                                         .url_key = text_option(o, "url_key"),
                                         .title_key = text_option(o, "title_key"),
                                         .text_key = text_option(o, "text_key"),
                                         .html_key = text_option(o, "html_key"),
                                         .bad = on_bad,
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
    self->tables = tables == Py_None ? NULL : tables;
    Py_XINCREF(self->tables);
    if (self->options && create_batch(self) == 0)
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
    Py_BEGIN_ALLOW_THREADS doppel_batch_free(batch);
    Py_END_ALLOW_THREADS for (size_t i = 0; i < self->data_count; i++) free_batch_data(self->data[i]);
    free(self->mask);
    doppel_recipe_free(self->own);
    Py_XDECREF(self->recipe);
    Py_XDECREF(self->options);
    Py_XDECREF(self->tables);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* ---- one long call after the other ---- */

/* Runs the work without the GIL; false: an exception. */
static bool run(batch_object *self, doppel_status (*work)(void *argument), void *argument, doppel_error *error) {
    if (self->busy || !self->batch) {
        PyErr_SetString(PyExc_RuntimeError,
                        self->busy ? "this batch is in use by another thread" : "this batch is finished");
        return false;
    }
    self->busy = true;
    self->call.stop = 0;
    atomic_store(&self->call.done, 0);
    atomic_store(&self->call.total, 0);
    self->call.progress = option(self->options, "progress");
    doppel_status status = run_long_call(&self->call, work, argument);
    self->busy = false;
    if (status != DOPPEL_OK)
        raise_error(status, error, NULL);
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
    return doppel_batch_read(r->self->batch, r->paths, r->count, r->known, &r->self->counts, &r->error);
}

static bool run_reading(reading *r) {
    r->self->first_bad = (doppel_error){0};
    return run(r->self, do_read, r, &r->error);
}

/* Lists the rows whose text (and page) is not null, unless all are; -1: an exception. With `missing` the first null is
 * an error. */
static int list_rows(batch_data *data, const char *text, const char *html, bool skip, const char *argument) {
    size_t nulls = 0;
    char room[DOPPEL_COLUMN_ROOM];
    data->rows = malloc(((size_t)data->input->rows + 1) * sizeof *data->rows);
    if (!data->rows) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < data->input->batch_count; i++) {
        const data_batch *batch = &data->input->batches[i];
        doppel_column texts, pages;
        bool has_text, has_html;
        if (data_column(data->input, i, text, argument, &has_text, &texts) < 0 ||
            data_column(data->input, i, html, argument, &has_html, &pages) < 0)
            return -1;
        has_html = has_html && data->input->is_struct;
        if (!has_text && !has_html)
            return data_column(data->input, i, text, argument, NULL, &texts);
        for (uint64_t row = 0; row < (uint64_t)batch->array.length; row++) {
            bool there = (has_text && doppel_column_get(&texts, row, room).data) ||
                         (has_html && doppel_column_get(&pages, row, room).data);
            if (!there && !nulls++ && !skip) {
                PyErr_Format(PyExc_ValueError, "%s: row %llu is null; missing=\"skip\" passes over nulls", argument,
                             (unsigned long long)(batch->first + row));
                return -1;
            }
            if (there)
                data->rows[data->documents++] = batch->first + row;
        }
    }
    if (!nulls) {
        free(data->rows);
        data->rows = NULL;
    }
    return 0;
}

/* Takes data of the caller, which is held from now on; NULL: an exception. */
static batch_data *take_batch_data(batch_object *self, PyObject *given, bool known, const char *argument) {
    const char *text = self->input.text_key ? self->input.text_key : "text",
               *html = self->input.html_key ? self->input.html_key : "html";
    data_input taken = {0};
    batch_data *data = calloc(1, sizeof *data);
    if (!data || self->data_count == MOST_DATA)
        return free(data), PyErr_NoMemory(), NULL;
    if (take_data(given, argument, &taken) < 0)
        return free(data), NULL;
    data->held = hold_data(&taken);
    if (!data->held) {
        free_data(&taken);
        return free(data), PyErr_NoMemory(), NULL;
    }
    data->input = held_input(data->held);
    if (list_rows(data, text, html, flag_option(self->options, "skip_missing"), argument) < 0)
        return free_batch_data(data), NULL;
    self->data[self->data_count] = data;
    self->inputs[self->data_count++] = data->input;
    self->known_count += known;
    return data;
}

/* hold_data(data, known, argument): holds it, for overlap. Gives whether it is a list. */
static PyObject *batch_hold_data(PyObject *object, PyObject *args) {
    PyObject *given;
    int known;
    const char *argument;
    if (!PyArg_ParseTuple(args, "Ops", &given, &known, &argument))
        return NULL;
    const batch_data *data = take_batch_data((batch_object *)object, given, known, argument);
    return data ? PyBool_FromLong(data->input->is_list) : NULL;
}

/* Raises what was bad with data in memory: nothing of it is left out. */
static PyObject *raise_bad(const doppel_error *bad, const char *argument) {
    if (bad->line)
        return PyErr_Format(doppel_module.input_error, "%s: row %llu: %s", argument,
                            (unsigned long long)(bad->line - 1), bad->message);
    return PyErr_Format(doppel_module.input_error, "%s: %s", argument, bad->message);
}

/* read_data(data, known, argument): the same, and reads it. */
static PyObject *batch_read_data(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    PyObject *given;
    int known;
    const char *argument;
    char path[32];
    const char *paths[] = {path};
    if (!PyArg_ParseTuple(args, "Ops", &given, &known, &argument))
        return NULL;
    snprintf(path, sizeof path, "table:%zu", self->data_count);
    const batch_data *data = take_batch_data(self, given, known, argument);
    reading r = {.self = self, .paths = paths, .count = 1, .known = known};
    if (!data || !run_reading(&r))
        return NULL;
    if (self->first_bad.code != DOPPEL_OK)
        return raise_bad(&self->first_bad, argument);
    return PyBool_FromLong(data->input->is_list);
}

/* read_paths(paths, known): gives the first record or file that was left out, as (file, line, message), or None. */
static PyObject *batch_read_paths(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    PyObject *given;
    int known;
    if (!PyArg_ParseTuple(args, "O!p", &PyList_Type, &given, &known))
        return NULL;
    size_t count = (size_t)PyList_Size(given);
    const char **paths = calloc(count + 1, sizeof *paths);
    if (!paths)
        return PyErr_NoMemory();
    bool good = true;
    for (size_t i = 0; i < count && good; i++)
        good = (paths[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(given, (Py_ssize_t)i), NULL)) != NULL;
    reading r = {.self = self, .paths = paths, .count = count, .known = known};
    good = good && run_reading(&r);
    free(paths);
    if (!good)
        return NULL;
    const doppel_error *bad = &self->first_bad;
    if (bad->code == DOPPEL_OK)
        Py_RETURN_NONE;
    return Py_BuildValue("(sKs)", bad->file, (unsigned long long)bad->line, bad->message);
}

/* ---- positions and ids ---- */

/* The data that a document is of, and its number there. */
static const batch_data *data_of(const batch_object *self, uint64_t position, uint64_t *number) {
    for (size_t i = 0; i < self->data_count; i++) {
        uint64_t documents = self->data[i]->rows ? self->data[i]->documents : self->data[i]->input->rows;
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

/* Looks each id of one data up in a table of those before it; -1: an exception. */
static int check_data_ids(const id_reader *reader, size_t data) {
    const batch_data *d = reader->self->data[data];
    size_t places = 16;
    while (places < 2 * d->input->rows + 2)
        places *= 2;
    uint64_t *table = calloc(places, sizeof *table);
    if (!table) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint64_t row = 0; row < d->input->rows; row++) {
        char room[DOPPEL_COLUMN_ROOM], other_room[DOPPEL_COLUMN_ROOM];
        doppel_slice id = id_of_row(reader, data, row, room);
        if (!id.data)
            continue;
        size_t at = (size_t)hash_of(id) & (places - 1);
        for (; table[at]; at = (at + 1) & (places - 1)) {
            doppel_slice other = id_of_row(reader, data, table[at] - 1, other_room);
            if (other.length != id.length || memcmp(other.data, id.data, id.length) != 0)
                continue;
            PyErr_Format(PyExc_ValueError, "id: row %llu repeats the id of row %llu (%.100s); id=None numbers the rows",
                         (unsigned long long)row, (unsigned long long)(table[at] - 1),
                         id.length < 100 ? (memcpy(other_room, id.data, id.length < 40 ? id.length : 40),
                                            other_room[id.length < 40 ? id.length : 40] = 0, other_room)
                                         : "...");
            free(table);
            return -1;
        }
        table[at] = row + 1;
    }
    free(table);
    return 0;
}

/* check_ids(name): refuses ids that repeat within the data, or within the known data. */
static PyObject *batch_check_ids(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    const char *name;
    id_reader reader;
    int result = 0;
    if (!PyArg_ParseTuple(args, "s", &name))
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
    if (!PyArg_ParseTuple(args, "zp", &name, &copies))
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
    const batch_data *data = self->data[self->data_count - 1];
    array_builder mask = {0};
    uint8_t *made = make_mask(self);
    (void)unused;
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

/* finish(): frees all but the data and which rows of it stay, for kept_stream. */
static PyObject *batch_finish(PyObject *object, PyObject *unused) {
    batch_object *self = (batch_object *)object;
    (void)unused;
    if (self->mask)
        Py_RETURN_NONE;
    self->mask = make_mask(self);
    if (!self->mask)
        return PyErr_NoMemory();
    doppel_batch *batch = self->batch;
    self->batch = NULL;
    Py_BEGIN_ALLOW_THREADS doppel_batch_free(batch);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

/* kept_stream(): the rows that stay, as a capsule of a stream that shares the caller's memory. */
static PyObject *batch_kept_stream(PyObject *object, PyObject *unused) {
    const batch_object *self = (const batch_object *)object;
    (void)unused;
    if (!self->mask)
        return PyErr_Format(PyExc_RuntimeError, "the batch is not finished");
    return stream_of_held(self->data[self->data_count - 1]->held, self->mask);
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

/* id_of(position): of a document of files. */
static PyObject *id_of(const batch_object *self, uint64_t position) {
    char small[256], *id = small;
    size_t length = doppel_batch_id(self->batch, position, small, sizeof small);
    if (length > sizeof small) {
        if (!(id = malloc(length)))
            return PyErr_NoMemory();
        doppel_batch_id(self->batch, position, id, length);
    }
    PyObject *made = PyUnicode_DecodeUTF8(id, (Py_ssize_t)length, "replace");
    if (id != small)
        free(id);
    return made;
}

/* A float, or None for NaN; an int, or None for -1. */
static PyObject *number_or_none(double value, bool whole) {
    if (whole ? value < 0 : isnan(value))
        Py_RETURN_NONE;
    return whole ? PyLong_FromLong((long)value) : PyFloat_FromDouble(value);
}

/* removed(call): calls call(id, originalId, reason, similarity, distance, verified) for each document that goes. */
static PyObject *batch_removed(PyObject *object, PyObject *call) {
    const batch_object *self = (const batch_object *)object;
    doppel_batch_stats s;
    doppel_batch_get_stats(self->batch, &s);
    for (uint64_t d = s.known; d < s.documents; d++) {
        doppel_near near;
        doppel_batch_get(self->batch, d, &near);
        if (near.a == near.b)
            continue;
        PyObject *id = id_of(self, near.b), *original = id_of(self, near.a);
        PyObject *done =
            id && original
                ? PyObject_CallFunction(call, "OOsNNO", id, original, doppel_reason_name(near.reason),
                                        number_or_none(near.similarity, false), number_or_none(near.distance, true),
                                        near.verified ? Py_True : Py_False)
                : NULL;
        Py_XDECREF(id);
        Py_XDECREF(original);
        if (!done)
            return NULL;
        Py_DECREF(done);
    }
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
    const char *path;
    doppel_error error;
} record_writing;

static doppel_status do_write_records(void *argument) {
    record_writing *w = argument;
    doppel_writer *writer = NULL;
    doppel_status status = doppel_writer_open(&writer, w->path, 0, &w->error);
    if (status == DOPPEL_OK)
        status = doppel_batch_write_kept(w->self->batch, writer, &w->error);
    doppel_status finished = doppel_writer_finish(writer, status == DOPPEL_OK, &w->error);
    return status == DOPPEL_OK ? finished : status;
}

/* write_records(path): the documents that stay, as JSONL. */
static PyObject *batch_write_records(PyObject *object, PyObject *args) {
    record_writing w = {.self = (batch_object *)object};
    if (!PyArg_ParseTuple(args, "s", &w.path))
        return NULL;
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
    return doppel_overlap_find(paths + known, 1, &o->options, NULL, &o->error);
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
    if (!PyArg_ParseTuple(args, "z", &name))
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
    if (good && !PyErr_Occurred() && run(self, do_overlap, &found, &found.error))
        result = overlap_columns(&found, name);
    for (size_t i = 0; i < 5; i++)
        builder_free(&found.place[i]);
    free(found.positions);
    free(found.shares);
    return result;
}

/* ---- decide: edges to originals ---- */

static int take_edges(const data_input *data, const char *const names[3], doppel_edge *edges, uint64_t *most) {
    char room[DOPPEL_COLUMN_ROOM];
    for (size_t i = 0, at = 0; i < data->batch_count; i++) {
        doppel_column column[3];
        for (size_t c = 0; c < 3; c++)
            if (data_column(data, i, names[c], "edges", NULL, &column[c]) < 0)
                return -1;
        for (uint64_t row = 0; row < (uint64_t)data->batches[i].array.length; row++, at++) {
            uint64_t end[2];
            for (size_t c = 0; c < 2; c++) {
                doppel_slice number = doppel_column_get(&column[c], row, room);
                char *stop = room;
                end[c] = number.data == room ? strtoull(room, &stop, 10) : UINT64_MAX;
                if (stop == room || *stop || end[c] >= UINT32_MAX) {
                    PyErr_Format(PyExc_ValueError, "edges: row %llu: \"%s\" is no position of a document",
                                 (unsigned long long)(data->batches[i].first + row), names[c]);
                    return -1;
                }
                *most = end[c] >= *most ? end[c] + 1 : *most;
            }
            doppel_slice share = doppel_column_get(&column[2], row, room);
            edges[at] = (doppel_edge){(uint32_t)end[0], (uint32_t)end[1], share.data == room ? strtof(room, NULL) : 0};
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
    {"read_data", batch_read_data, METH_VARARGS, "read_data(data, known, argument)"},
    {"hold_data", batch_hold_data, METH_VARARGS, "hold_data(data, known, argument)"},
    {"read_paths", batch_read_paths, METH_VARARGS, "read_paths(paths, known)"},
    {"check_ids", batch_check_ids, METH_VARARGS, "check_ids(name)"},
    {"decide", batch_decide, METH_NOARGS, "decide()"},
    {"columns", batch_columns, METH_VARARGS, "columns(id, only_copies)"},
    {"mask", batch_mask, METH_NOARGS, "mask()"},
    {"finish", batch_finish, METH_NOARGS, "finish()"},
    {"kept_stream", batch_kept_stream, METH_NOARGS, "kept_stream()"},
    {"pairs", batch_pairs, METH_VARARGS, "pairs(id, collapse)"},
    {"stats", batch_stats, METH_NOARGS, "stats()"},
    {"removed", batch_removed, METH_O, "removed(call)"},
    {"write", batch_write, METH_VARARGS, "write(writer, annotate)"},
    {"write_records", batch_write_records, METH_VARARGS, "write_records(path)"},
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
