/* trim.c - Trim: what documents repeat of each other (doppel_trim of libdoppel), in data in memory or in files.
 *
 * doppel/_trim.py makes a Trim of its options. Data in memory: hold_data, find_data, then mask, texts, kept_stream and
 * stats, which finish() leaves. Files: open_outputs, find_paths, write, stats, finish_outputs. documents.h says what
 * documents are.
 *
 * Of data in memory the texts that are left are collected as one Array, by row; where nothing was cut, the caller's own
 * bytes. kept_stream gives the caller's data with that in place of its column, in the layout that this has. */
#include "documents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Outputs: the documents, and lines on their spans and on those that are dropped. */
enum { RECORDS, SPANS, DROPPED, OUTPUTS };

typedef struct trim_object {
    documents base;
    doppel_trim_options options;
    doppel_input_options known_input; /* of files: those of `against` */
    reading_notes known_notes;
    doppel_trim *trim;
    doppel_trim_stats stats;
    PyObject *texts; /* of data in memory: an Array, by row */
    uint8_t *mask;   /* by row, whether it stays */
    held_data *cut;  /* the data with these texts, once it was asked for */
} trim_object;

/* ---- making one ---- */

static doppel_trim_options trim_options(trim_object *self, const doppel_recipe *recipe) {
    PyObject *o = self->base.options;
    return (doppel_trim_options){.size = sizeof(doppel_trim_options),
                                 .recipe = recipe,
                                 .unit = (doppel_unit)int_option(o, "unit"),
                                 .run = count_option(o, "run"),
                                 .words = count_option(o, "words"),
                                 .min_words = count_option(o, "min_words"),
                                 .keep = text_option(o, "keep"),
                                 .min_count = count_option(o, "min_count"),
                                 .cut_first = flag_option(o, "cut_first"),
                                 .within = text_option(o, "within"),
                                 .across = text_option(o, "across"),
                                 .drop_below = count_option(o, "drop_below"),
                                 .drop_share = share_option(o, "drop_share"),
                                 .drop = flag_option(o, "drop"),
                                 .content = (doppel_content)int_option(o, "content"),
                                 .memory = count_option(o, "memory"),
                                 .tmp = text_option(o, "tmp"),
                                 .input = &self->base.input,
                                 .progress = on_stage,
                                 .user = self};
}

/* Trim(options, tables) */
static PyObject *trim_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    const doppel_recipe *recipe = NULL;
    (void)keywords;
    trim_object *self = (trim_object *)documents_new(type, args, &recipe);
    if (!self)
        return NULL;
    self->options = trim_options(self, recipe);
    if (!PyErr_Occurred() && notes_init(&self->known_notes, &self->base)) {
        self->known_input = self->base.input;
        self->known_input.user = &self->known_notes;
        return (PyObject *)self;
    }
    Py_DECREF(self);
    return NULL;
}

static void free_trim(trim_object *self) {
    doppel_trim *trim = self->trim;
    self->trim = NULL;
    Py_BEGIN_ALLOW_THREADS;
    doppel_trim_free(trim);
    Py_END_ALLOW_THREADS;
}

static void trim_dealloc(PyObject *object) {
    trim_object *self = (trim_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    free_trim(self);
    drop_data(self->cut);
    Py_XDECREF(self->texts);
    Py_XDECREF(self->known_notes.unseen);
    free(self->mask);
    documents_free(&self->base);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* ---- finding ---- */

typedef struct finding {
    trim_object *self;
    const char *const *paths;
    size_t count;
    doppel_error error;
} finding;

static doppel_status do_find(void *argument) {
    finding *f = argument;
    doppel_status status = doppel_trim_find(f->paths, f->count, &f->self->options, &f->self->trim, &f->error);
    name_unread(status, &f->self->known_notes, &f->error);
    name_unread(status, &f->self->base.notes, &f->error);
    return status;
}

static bool run_finding(finding *f) {
    trim_object *self = f->self;
    if (!is_usable(&self->base))
        return false;
    if (self->trim)
        return PyErr_Format(PyExc_RuntimeError, "this was found already");
    return run_documents(&self->base, do_find, f, &f->error);
}

/* find_paths(paths, against): gives what was left out of both (left_out), those of `against` first. */
static PyObject *trim_find_paths(PyObject *object, PyObject *args) {
    trim_object *self = (trim_object *)object;
    PyObject *given, *against;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &given, &PyList_Type, &against))
        return NULL;
    PyObject *held = PyList_New(0), *known = NULL, *own = NULL;
    const char **paths = held ? take_paths(given, held) : NULL, **others = paths ? take_paths(against, held) : NULL;
    finding f = {.self = self, .paths = paths, .count = (size_t)PyList_Size(given)};
    self->options.against = others;
    self->options.against_count = (size_t)PyList_Size(against);
    self->options.against_input = &self->known_input;
    if (others && run_finding(&f)) {
        known = left_out(&self->known_notes);
        own = known ? left_out(&self->base.notes) : NULL;
    }
    self->options.against = NULL;
    free(paths);
    free(others);
    Py_XDECREF(held);
    PyObject *result = own ? PyTuple_Pack(2, known, own) : NULL;
    Py_XDECREF(known);
    Py_XDECREF(own);
    return result;
}

/* ---- data in memory ---- */

/* The column with texts: that of the data, if it has one (else it has pages alone), and how the texts that are left are
 * laid out. */
typedef struct text_column_place {
    const struct ArrowSchema *schema; /* NULL: there is none */
    int64_t child;
    const char *format;
} text_column_place;

static const char *text_name(const trim_object *self) {
    return self->base.input.text_key ? self->base.input.text_key : "text";
}

static const data_input *own_data(const trim_object *self) {
    return self->base.data[self->base.data_count - 1]->input;
}

/* A dictionary becomes plain strings: what is left of a text need not be in it. -1: an exception. */
static int find_texts(const trim_object *self, text_column_place *to) {
    static const char *const formats[] = {"u", "U", "vu", "z", "Z", "vz"};
    const data_input *data = own_data(self);
    *to = (text_column_place){.child = data->schema.n_children, .format = "U"};
    to->schema = find_schema(data, text_name(self), &to->child);
    if (to->schema && data->is_struct && to->schema != data->schema.children[to->child]) {
        PyErr_Format(PyExc_ValueError,
                     "text: \"%s\" is in a struct, where tables cannot be cut: make it a column of its own",
                     text_name(self));
        return -1;
    }
    const struct ArrowSchema *values = to->schema && to->schema->dictionary ? to->schema->dictionary : to->schema;
    if (!values || !strcmp(values->format, "n"))
        return 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(values->format, formats[i])) {
            to->format = formats[i];
            return 0;
        }
    PyErr_Format(PyExc_TypeError, "text: the column \"%s\" is of the Arrow type \"%s\": only strings can be cut",
                 text_name(self), values->format);
    return -1;
}

/* What a span is: the position of its document, its bytes and words, and those of its original. */
enum { POSITION, START, END, WORDS, ORIGINAL, ORIGINAL_START, SPAN_NUMBERS };
/* What a document that was dropped, or has nothing left, is: its original is that of its first span. */
enum { DROPPED_POSITION, DROPPED_WORDS, DROPPED_WORDS_CUT, DROPPED_ORIGINAL, DROPPED_NUMBERS };

/* Rows of numbers, `width` each. */
typedef struct number_rows {
    uint64_t *numbers;
    size_t width, count, room;
} number_rows;

/* A new row; NULL: no memory. */
static uint64_t *add_numbers(number_rows *rows) {
    if (rows->count == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 256;
        uint64_t *numbers = realloc(rows->numbers, room * rows->width * sizeof *numbers);
        if (!numbers)
            return NULL;
        rows->numbers = numbers;
        rows->room = room;
    }
    return rows->numbers + rows->width * rows->count++;
}

/* One number of each row, side by side; NULL: no memory. */
static uint64_t *take_numbers(const number_rows *rows, size_t number) {
    uint64_t *numbers = malloc((rows->count + 1) * sizeof *numbers);
    for (size_t i = 0; numbers && i < rows->count; i++)
        numbers[i] = rows->numbers[rows->width * i + number];
    return numbers;
}

/* What doppel_trim_write gives, of data in memory. */
typedef struct collecting {
    trim_object *self;
    const data_input *data;
    doppel_column *columns; /* with the caller's texts, by batch; NULL: there is none */
    size_t batch;           /* of the next row */
    array_builder texts;
    number_rows spans, dropped;
    array_builder reasons; /* by document that was dropped */
    doppel_error error;
} collecting;

/* The text of the caller; data NULL: there is none. */
static doppel_slice own_text(collecting *c, uint64_t row, char *room) {
    const data_batch *batches = c->data->batches;
    while (row - batches[c->batch].first >= (uint64_t)batches[c->batch].array.length)
        c->batch++;
    if (!c->columns)
        return (doppel_slice){NULL, 0};
    return doppel_column_get(&c->columns[c->batch], row - batches[c->batch].first, room);
}

/* Rows that are no documents have no text. */
static bool skip_rows(collecting *c, uint64_t row) {
    bool fine = true;
    while (c->texts.added < row && fine)
        fine = builder_add_string(&c->texts, (doppel_slice){NULL, 0});
    return fine;
}

static bool collect_spans(collecting *c, const doppel_trimmed *d) {
    for (size_t i = 0; i < d->span_count; i++) {
        const doppel_span *span = &d->spans[i];
        const uint64_t numbers[SPAN_NUMBERS] = {d->position, span->start,    span->end,
                                                span->words, span->original, span->original_start};
        uint64_t *to = add_numbers(&c->spans);
        if (!to)
            return false;
        memcpy(to, numbers, sizeof numbers);
    }
    return true;
}

/* Why a document is listed among the dropped ones; NULL: it is not. */
static const char *reason_of(const doppel_trimmed *d) {
    return d->emptied ? "empty" : doppel_dropped_name(d->dropped);
}

static bool collect_dropped(collecting *c, const doppel_trimmed *d) {
    if (!reason_of(d))
        return true;
    uint64_t *to = add_numbers(&c->dropped);
    if (!to)
        return false;
    to[DROPPED_POSITION] = d->position;
    to[DROPPED_WORDS] = d->words;
    to[DROPPED_WORDS_CUT] = d->words_cut;
    to[DROPPED_ORIGINAL] = d->spans[0].original; /* it lost words, so it has spans */
    return builder_add_string(&c->reasons, doppel_slice_of(reason_of(d)));
}

/* doppel_trim_write */
static doppel_status collect(const doppel_trimmed *d, void *user) {
    collecting *c = user;
    char room[DOPPEL_COLUMN_ROOM];
    uint64_t row = d->line - 1;
    if (row >= c->data->rows)
        return DOPPEL_ERROR_INPUT;
    doppel_slice own = own_text(c, row, room), text = d->cut_count || !own.data ? d->text : own;
    if (!text.data)
        text.data = "";
    c->self->mask[row] = d->dropped == DOPPEL_DROPPED_NOT;
    bool fine =
        skip_rows(c, row) && builder_add_string(&c->texts, text) && collect_spans(c, d) && collect_dropped(c, d);
    return fine ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status do_collect(void *argument) {
    collecting *c = argument;
    doppel_trim *trim = c->self->trim;
    doppel_status status = doppel_trim_write(trim, DOPPEL_TRIM_TEXTS | DOPPEL_TRIM_SPANS, collect, c, &c->error);
    doppel_trim_get_stats(trim, &c->self->stats);
    if (status == DOPPEL_OK)
        set_progress(&c->self->base, c->self->base.expected, c->self->base.expected);
    return status == DOPPEL_OK && !skip_rows(c, c->data->rows) ? DOPPEL_ERROR_MEMORY : status;
}

static void end_collecting(collecting *c) {
    free(c->columns);
    free(c->spans.numbers);
    free(c->dropped.numbers);
    builder_free(&c->texts);
    builder_free(&c->reasons);
}

/* -1: an exception. */
static int begin_collecting(collecting *c, const text_column_place *texts) {
    trim_object *self = c->self;
    c->data = own_data(self);
    c->spans.width = SPAN_NUMBERS;
    c->dropped.width = DROPPED_NUMBERS;
    self->mask = malloc((size_t)c->data->rows + 1);
    if (texts->schema)
        c->columns = calloc(c->data->batch_count + 1, sizeof *c->columns);
    if (!self->mask || (texts->schema && !c->columns) ||
        !builder_init(&c->texts, VALUE_STRING, 0, (size_t)c->data->rows) ||
        !builder_init(&c->reasons, VALUE_STRING, 0, 0))
        return PyErr_NoMemory(), -1;
    memset(self->mask, 1, (size_t)c->data->rows);
    for (size_t i = 0; i < c->data->batch_count && texts->schema; i++)
        if (data_column(c->data, i, text_name(self), "data", NULL, &c->columns[i]) < 0)
            return -1;
    return 0;
}

static PyObject *number_column(const number_rows *rows, size_t number) {
    uint64_t *numbers = take_numbers(rows, number);
    PyObject *array = numbers ? array_of(VALUE_UINT64, numbers, rows->count, sizeof *numbers) : PyErr_NoMemory();
    free(numbers);
    return array;
}

static PyObject *id_column(const trim_object *self, const char *name, const number_rows *rows, size_t number) {
    uint64_t *positions = take_numbers(rows, number);
    PyObject *array = positions ? make_ids(&self->base, name, positions, rows->count) : PyErr_NoMemory();
    free(positions);
    return array;
}

/* A dict of two dicts of Arrays: by span, and by document that was dropped or has nothing left. */
static PyObject *found_columns(collecting *c, const char *name) {
    PyObject *spans = PyDict_New(), *dropped = PyDict_New(), *result = NULL;
    if (spans && dropped && put(spans, "id", id_column(c->self, name, &c->spans, POSITION)) &&
        put(spans, "start", number_column(&c->spans, START)) && put(spans, "end", number_column(&c->spans, END)) &&
        put(spans, "words", number_column(&c->spans, WORDS)) &&
        put(spans, "originalId", id_column(c->self, name, &c->spans, ORIGINAL)) &&
        put(spans, "originalStart", number_column(&c->spans, ORIGINAL_START)) &&
        put(dropped, "id", id_column(c->self, name, &c->dropped, DROPPED_POSITION)) &&
        put(dropped, "reason", builder_finish(&c->reasons, false)) &&
        put(dropped, "words", number_column(&c->dropped, DROPPED_WORDS)) &&
        put(dropped, "wordsCut", number_column(&c->dropped, DROPPED_WORDS_CUT)) &&
        put(dropped, "originalId", id_column(c->self, name, &c->dropped, DROPPED_ORIGINAL)))
        result = Py_BuildValue("{s:O,s:O}", "spans", spans, "dropped", dropped);
    Py_XDECREF(spans);
    Py_XDECREF(dropped);
    return result;
}

/* find_data(id name or None): finds what is to be cut, and cuts it. */
static PyObject *trim_find_data(PyObject *object, PyObject *args) {
    static const char *const paths[] = {"table:0", "table:1"};
    trim_object *self = (trim_object *)object;
    documents *base = &self->base;
    collecting c = {.self = self};
    text_column_place texts;
    const char *name;
    if (!PyArg_ParseTuple(args, "z", &name) || !has_data(base) || find_texts(self, &texts) < 0)
        return NULL;
    finding f = {.self = self, .paths = paths + base->known_count, .count = 1};
    self->options.against = paths;
    self->options.against_count = base->known_count;
    for (size_t i = base->expected = 0; i < base->data_count; i++)
        base->expected += count_documents(base->data[i]);
    if (!run_finding(&f))
        return NULL;
    if (base->notes.first_bad.code != DOPPEL_OK)
        return raise_bad(base);
    PyObject *result = NULL;
    if (begin_collecting(&c, &texts) == 0 && run_documents(base, do_collect, &c, &c.error)) {
        self->texts = builder_finish(&c.texts, false);
        result = self->texts ? found_columns(&c, name) : NULL;
    }
    end_collecting(&c);
    return result;
}

/* Whether find_data is done; false: an exception. */
static bool is_found(const trim_object *self) {
    if (!self->texts)
        PyErr_SetString(PyExc_RuntimeError, "nothing was found yet");
    return self->texts;
}

/* mask(): an Array of bool, by row. */
static PyObject *trim_mask(PyObject *object, PyObject *unused) {
    const trim_object *self = (const trim_object *)object;
    (void)unused;
    return is_found(self) ? array_of(VALUE_BOOL, self->mask, (size_t)own_data(self)->rows, 1) : NULL;
}

/* texts(): an Array of what is left of the texts, by row that stays. */
static PyObject *trim_texts(PyObject *object, PyObject *unused) {
    const trim_object *self = (const trim_object *)object;
    (void)unused;
    if (!is_found(self))
        return NULL;
    return memchr(self->mask, 0, (size_t)own_data(self)->rows) ? take_rows(self->texts, self->mask)
                                                               : Py_NewRef(self->texts);
}

/* finish(): frees all but the data, and what was found of it. */
static PyObject *trim_finish(PyObject *object, PyObject *unused) {
    trim_object *self = (trim_object *)object;
    (void)unused;
    if (!is_found(self) || !finish_documents(&self->base))
        return NULL;
    free_trim(self);
    Py_RETURN_NONE;
}

/* The schema of the column with the texts that are left; false: no memory. */
static bool make_schema(const trim_object *self, const text_column_place *texts, struct ArrowSchema *to) {
    bool same = texts->schema && !texts->schema->dictionary && !strcmp(texts->schema->format, texts->format);
    if (same)
        return schema_copy(texts->schema, to);
    return schema_make(to, texts->format, own_data(self)->is_struct ? text_name(self) : "", 0);
}

/* Makes the data with the texts that are left; NULL: an exception. */
static held_data *make_cut(const trim_object *self) {
    const data_input *data = own_data(self);
    struct ArrowSchema schema;
    text_column_place texts;
    if (find_texts(self, &texts) < 0)
        return NULL;
    struct ArrowArray *arrays = calloc(data->batch_count + 1, sizeof *arrays);
    if (!arrays || !make_schema(self, &texts, &schema))
        return free(arrays), PyErr_NoMemory(), NULL;
    int result = 0;
    for (size_t i = 0; i < data->batch_count && result == 0; i++) {
        const data_batch *batch = &data->batches[i];
        result = export_strings(self->texts, (int64_t)batch->first, batch->array.length, texts.format, &arrays[i]);
    }
    held_data *made = NULL;
    if (result == 0)
        made = hold_with_column(self->base.data[self->base.data_count - 1]->held, texts.child, &schema, arrays);
    else
        schema.release(&schema);
    for (size_t i = 0; i < data->batch_count && result < 0; i++)
        if (arrays[i].release)
            arrays[i].release(&arrays[i]);
    free(arrays);
    return made;
}

/* kept_stream(): the rows that stay, their texts cut, as a capsule of a stream that shares the memory of both. */
static PyObject *trim_kept_stream(PyObject *object, PyObject *unused) {
    trim_object *self = (trim_object *)object;
    (void)unused;
    if (!is_found(self))
        return NULL;
    if (!self->cut)
        self->cut = make_cut(self);
    return self->cut ? stream_of_held(self->cut, self->mask) : NULL;
}

/* ---- files out ---- */

/* open_outputs(records, spans, dropped): opens the files that `write` fills; None: there is none. They appear under
 * their names with finish_outputs(True). */
static PyObject *trim_open_outputs(PyObject *object, PyObject *args) {
    trim_object *self = (trim_object *)object;
    PyObject *paths[OUTPUTS];
    if (!PyArg_ParseTuple(args, "OOO", &paths[RECORDS], &paths[SPANS], &paths[DROPPED]) || !is_usable(&self->base) ||
        !open_outputs(&self->base, paths, OUTPUTS))
        return NULL;
    Py_RETURN_NONE;
}

typedef struct file_writing {
    trim_object *self;
    bool annotate;
    trimmed_rows *rows; /* NULL: no tables are written */
    line_buffer line;
    doppel_error error, failure; /* of libdoppel; of an output */
} file_writing;

static doppel_status write_line(file_writing *w, int output) {
    const doppel_slice line = {w->line.bytes, w->line.used};
    return doppel_writer_write(w->self->base.outputs[output], line, &w->failure);
}

/* Lines are those of the command. */
static doppel_status write_span(file_writing *w, const doppel_trimmed *d, const doppel_span *span) {
    enum { NUMBERS_ROOM = 128 };
    line_buffer *line = &w->line;
    line->used = 0;
    if (!line_add_string(line, "id", d->id) || !line_reserve(line, NUMBERS_ROOM))
        return DOPPEL_ERROR_MEMORY;
    line->used += (size_t)snprintf(line->bytes + line->used, NUMBERS_ROOM,
                                   ",\"start\":%llu,\"end\":%llu,\"words\":%llu", (unsigned long long)span->start,
                                   (unsigned long long)span->end, (unsigned long long)span->words);
    if (!line_add_string(line, "originalId", span->original_id) || !line_reserve(line, NUMBERS_ROOM))
        return DOPPEL_ERROR_MEMORY;
    line->used += (size_t)snprintf(line->bytes + line->used, NUMBERS_ROOM, ",\"originalStart\":%llu}\n",
                                   (unsigned long long)span->original_start);
    return write_line(w, SPANS);
}

static doppel_status write_dropped(file_writing *w, const doppel_trimmed *d) {
    enum { NUMBERS_ROOM = 96 };
    line_buffer *line = &w->line;
    line->used = 0;
    if (!line_add_string(line, "id", d->id) || !line_add_string(line, "reason", doppel_slice_of(reason_of(d))) ||
        !line_reserve(line, NUMBERS_ROOM))
        return DOPPEL_ERROR_MEMORY;
    line->used += (size_t)snprintf(line->bytes + line->used, NUMBERS_ROOM, ",\"words\":%llu,\"wordsCut\":%llu",
                                   (unsigned long long)d->words, (unsigned long long)d->words_cut);
    if (!line_add_string(line, "originalId", d->spans[0].original_id) || !line_reserve(line, NUMBERS_ROOM))
        return DOPPEL_ERROR_MEMORY;
    line->used += (size_t)snprintf(line->bytes + line->used, NUMBERS_ROOM, "}\n");
    return write_line(w, DROPPED);
}

static doppel_status write_record(file_writing *w, const doppel_trimmed *d) {
    doppel_writer *records = w->self->base.outputs[RECORDS];
    doppel_status status = doppel_writer_write(records, d->record, &w->failure);
    return status == DOPPEL_OK ? doppel_writer_write(records, doppel_slice_of("\n"), &w->failure) : status;
}

/* doppel_trim_write */
static doppel_status write_document(const doppel_trimmed *d, void *user) {
    file_writing *w = user;
    doppel_writer *const *outputs = w->self->base.outputs;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; outputs[SPANS] && i < d->span_count && status == DOPPEL_OK; i++)
        status = write_span(w, d, &d->spans[i]);
    if (status == DOPPEL_OK && outputs[DROPPED] && reason_of(d))
        status = write_dropped(w, d);
    if (status == DOPPEL_OK && outputs[RECORDS] && (w->annotate || d->dropped == DOPPEL_DROPPED_NOT))
        status = write_record(w, d);
    if (status == DOPPEL_OK && w->rows)
        status = trimmed_rows_add(w->rows, d, &w->failure);
    return status;
}

static doppel_status do_write(void *argument) {
    file_writing *w = argument;
    trim_object *self = w->self;
    bool spans = self->base.outputs[SPANS] || self->base.outputs[DROPPED] || (w->rows && w->annotate);
    unsigned wanted = spans ? DOPPEL_TRIM_SPANS : 0;
    if (self->base.outputs[RECORDS])
        wanted |= w->annotate ? DOPPEL_TRIM_ANNOTATE : DOPPEL_TRIM_RECORDS;
    if (w->rows)
        wanted |= w->annotate ? DOPPEL_TRIM_ORIGINALS : DOPPEL_TRIM_TEXTS;
    doppel_status status = doppel_trim_write(self->trim, wanted, write_document, w, &w->error);
    if (status == DOPPEL_OK && w->rows)
        status = trimmed_rows_end(w->rows, &w->failure);
    doppel_trim_get_stats(self->trim, &self->stats);
    if (status != DOPPEL_OK && w->failure.code != DOPPEL_OK)
        w->error = w->failure;
    return status;
}

/* write(writer or None, annotate): writes the outputs that are open, and tables through the writer. */
static PyObject *trim_write(PyObject *object, PyObject *args) {
    file_writing w = {.self = (trim_object *)object};
    PyObject *writer;
    int annotate;
    if (!PyArg_ParseTuple(args, "Op", &writer, &annotate) || !is_usable(&w.self->base))
        return NULL;
    if (!w.self->trim)
        return PyErr_Format(PyExc_RuntimeError, "nothing was found yet");
    w.annotate = annotate;
    if (writer != Py_None && !(w.rows = trimmed_rows_create(writer, annotate, &w.self->base.call.stop)))
        return PyErr_NoMemory();
    bool good = run_documents(&w.self->base, do_write, &w, &w.error);
    trimmed_rows_free(w.rows);
    free(w.line.bytes);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

/* stats(): a dict, with the names of the command's summary. */
static PyObject *trim_stats(PyObject *object, PyObject *unused) {
    const doppel_trim_stats *s = &((const trim_object *)object)->stats;
    const struct {
        const char *name;
        uint64_t value;
    } figures[] = {{"documents", s->input.documents},
                   {"bytes", s->input.bytes},
                   {"bad", s->input.bad},
                   {"repaired", s->input.repaired},
                   {"unopened", s->input.unopened},
                   {"against", s->against.documents},
                   {"shortAgainst", s->short_against},
                   {"documentsCut", s->documents_cut},
                   {"spans", s->spans},
                   {"words", s->words},
                   {"wordsCut", s->words_cut},
                   {"bytesCut", s->bytes_cut},
                   {"dropped", s->dropped},
                   {"emptied", s->emptied},
                   {"repeated", s->repeated},
                   {"values", s->values}};
    PyObject *result = PyDict_New();
    (void)unused;
    for (size_t i = 0; result && i < sizeof figures / sizeof *figures; i++)
        if (!put(result, figures[i].name, PyLong_FromUnsignedLongLong(figures[i].value)))
            Py_CLEAR(result);
    return result;
}

/* ---- the type ---- */

static PyMethodDef trim_methods[] = {
    DOCUMENTS_METHODS,
    {"find_data", trim_find_data, METH_VARARGS, "find_data(id)"},
    {"mask", trim_mask, METH_NOARGS, "mask()"},
    {"texts", trim_texts, METH_NOARGS, "texts()"},
    {"kept_stream", trim_kept_stream, METH_NOARGS, "kept_stream()"},
    {"finish", trim_finish, METH_NOARGS, "finish()"},
    {"stats", trim_stats, METH_NOARGS, "stats()"},
    {"open_outputs", trim_open_outputs, METH_VARARGS, "open_outputs(records, spans, dropped)"},
    {"find_paths", trim_find_paths, METH_VARARGS, "find_paths(paths, against)"},
    {"write", trim_write, METH_VARARGS, "write(writer, annotate)"},
    {"finish_outputs", documents_finish_outputs, METH_VARARGS, "finish_outputs(ok)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot trim_slots[] = {
    {Py_tp_new, trim_new},
    {Py_tp_dealloc, trim_dealloc},
    {Py_tp_methods, trim_methods},
    {Py_tp_doc, "Documents, and what they repeat of each other; doppel/_trim.py uses it."},
    {0, NULL},
};

static PyType_Spec trim_spec = {
    .name = "doppel._doppel.Trim",
    .basicsize = sizeof(trim_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = trim_slots,
};

int init_trim(PyObject *module) {
    doppel_module.trim = add_type(module, &trim_spec);
    return doppel_module.trim ? 0 : -1;
}
