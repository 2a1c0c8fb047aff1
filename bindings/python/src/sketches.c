/* sketches.c - texts to sketches, and measures on two texts:
 *
 *     sketch(...)     a column of texts -> fingerprints, signatures, digests, band keys, sets, each an array
 *     compare(...)    two texts -> every measure, and the passages they share
 *     bands_plan(...) a similarity -> bands and rows
 *
 * Each thread has a sketcher of its own, and writes to the places of its rows in arrays that were made before. Only
 * sets have no place before their lengths are known: a thread keeps those of its block, and appends them when all
 * blocks before it are appended. */
#include "sketches.h"

#include <stdlib.h>
#include <string.h>

/* ---- sketch ---- */

enum { DIGEST, FINGERPRINT, SIGNATURE, BANDS, WORDS, SET, COLUMNS };
static const char *const column_names[COLUMNS] = {"digest", "fingerprint", "signature", "bands", "words", "set"};

/* The sets of one block of rows, until they are appended. */
typedef struct set_block {
    uint64_t *values;
    size_t *sizes; /* by row; SIZE_MAX: null */
    size_t rows;
} set_block;

typedef struct sketch_job {
    row_job job;
    text_column texts;
    const doppel_recipe *recipe;
    int bits, bands, band_rows;
    size_t slots;
    unsigned long long min_words;
    bool skip; /* nulls become null; else they are refused */
    bool wanted[COLUMNS];
    array_builder column[COLUMNS];
    set_block *blocks;
    uint64_t appended; /* blocks of sets */
} sketch_job;

static doppel_status begin_sketching(row_job *job, void **state) {
    const sketch_job *s = (const sketch_job *)job;
    unsigned wants = s->wanted[DIGEST] ? DOPPEL_WANT_DIGEST : 0;
    if (s->wanted[SET] || s->wanted[BANDS])
        wants |= DOPPEL_WANT_SET;
    doppel_sketcher *sketcher = NULL;
    doppel_status status = doppel_sketcher_create(s->recipe, wants, &sketcher, NULL);
    *state = sketcher;
    return status;
}

static void end_sketching(row_job *job, void *state) {
    (void)job;
    doppel_sketcher_free(state);
}

/* The place of a row in a column of values of `bytes` bytes. */
static void *place_of(const sketch_job *s, int column, uint64_t row, size_t bytes) {
    return (char *)s->column[column].values + row * bytes;
}

static void set_null(sketch_job *s, int column, uint64_t row, size_t bytes) {
    memset(place_of(s, column, row, bytes), 0, bytes);
    s->column[column].valid[row] = 0;
}

static size_t value_bytes(const sketch_job *s, int column) {
    switch (column) {
    case DIGEST: return 32;
    case FINGERPRINT: return s->bits > 64 ? 16 : 8;
    case SIGNATURE: return s->slots * sizeof(uint32_t);
    case BANDS: return (size_t)s->bands * sizeof(uint32_t);
    default: return sizeof(uint64_t);
    }
}

static void set_all_null(sketch_job *s, uint64_t row) {
    for (int column = 0; column < SET; column++)
        if (s->wanted[column])
            set_null(s, column, row, value_bytes(s, column));
}

/* The value of a column that every text has, or that is null without words. */
static void write_value(sketch_job *s, int column, uint64_t row, const void *value) {
    if (!s->wanted[column])
        return;
    size_t bytes = value_bytes(s, column);
    if (value)
        memcpy(place_of(s, column, row, bytes), value, bytes);
    else
        set_null(s, column, row, bytes);
}

static doppel_status write_bands(sketch_job *s, uint64_t row, const doppel_sketch *sketch) {
    size_t bytes = value_bytes(s, BANDS);
    if (!s->wanted[BANDS])
        return DOPPEL_OK;
    if (sketch->words < s->min_words || !sketch->set_count) {
        set_null(s, BANDS, row, bytes);
        return DOPPEL_OK;
    }
    return doppel_bands_keys(sketch->set, sketch->set_count, s->bands, s->band_rows, place_of(s, BANDS, row, bytes));
}

/* Adds a set to those of a block; room is made by doubling. */
static doppel_status keep_set(set_block *block, const doppel_sketch *sketch, size_t *filled, size_t *room) {
    size_t count = sketch ? sketch->set_count : 0;
    if (count > *room - *filled) {
        size_t wanted = (*filled + count) * 2;
        uint64_t *grown = realloc(block->values, wanted * sizeof *grown);
        if (!grown)
            return DOPPEL_ERROR_MEMORY;
        block->values = grown;
        *room = wanted;
    }
    if (count)
        memcpy(block->values + *filled, sketch->set, count * sizeof *sketch->set);
    block->sizes[block->rows++] = sketch ? count : SIZE_MAX;
    *filled += count;
    return DOPPEL_OK;
}

static void free_block(set_block *block) {
    free(block->values);
    free(block->sizes);
    *block = (set_block){0};
}

static doppel_status append_block(sketch_job *s, set_block *block) {
    const uint64_t *next = block->values;
    bool added = true;
    for (size_t i = 0; i < block->rows && added; i++) {
        bool is_null = block->sizes[i] == SIZE_MAX;
        size_t count = is_null ? 0 : block->sizes[i];
        added = builder_add_list(&s->column[SET], next, count, is_null);
        next += count;
    }
    free_block(block);
    return added ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* A block is done: appends it, and those after it that have waited for it. */
static doppel_status append_sets(sketch_job *s, uint64_t number, const set_block *block) {
    doppel_status status = DOPPEL_OK;
    uint64_t count = (s->job.count + s->job.block - 1) / s->job.block;
    pthread_mutex_lock(&s->job.lock);
    s->blocks[number] = *block;
    while (status == DOPPEL_OK && s->appended < count && s->blocks[s->appended].sizes)
        status = append_block(s, &s->blocks[s->appended++]);
    pthread_mutex_unlock(&s->job.lock);
    return status;
}

static doppel_status sketch_row(sketch_job *s, doppel_sketcher *sketcher, uint64_t row, doppel_slice text,
                                doppel_sketch *sketch) {
    doppel_status status = sketch_text(&s->job, sketcher, text, sketch);
    if (status == DOPPEL_OK) {
        write_value(s, DIGEST, row, sketch->words ? sketch->digest : NULL);
        write_value(s, FINGERPRINT, row, sketch->fingerprint);
        write_value(s, SIGNATURE, row, sketch->signature);
        write_value(s, WORDS, row, &sketch->words);
        status = write_bands(s, row, sketch);
    }
    if (status != DOPPEL_OK && status != DOPPEL_ERROR_INTERRUPTED)
        fail_row(&s->job, row, status, "%s: row %llu: %s", s->texts.argument, (unsigned long long)row,
                 doppel_status_name(status));
    return status;
}

/* One row; *sketch becomes NULL for a null. */
static doppel_status do_row(sketch_job *s, doppel_sketcher *sketcher, uint64_t row, size_t batch,
                            doppel_sketch **sketch) {
    doppel_slice text = get_text(&s->texts, batch, row);
    if (!text.data) {
        *sketch = NULL;
        if (!s->skip)
            return fail_row(&s->job, row, DOPPEL_ERROR_USAGE,
                            "%s: row %llu is null; missing=\"skip\" passes over nulls", s->texts.argument,
                            (unsigned long long)row);
        set_all_null(s, row);
        return DOPPEL_OK;
    }
    return sketch_row(s, sketcher, row, text, *sketch);
}

static doppel_status sketch_rows(row_job *job, void *state, uint64_t first, uint64_t last) {
    sketch_job *s = (sketch_job *)job;
    set_block block = {0};
    size_t filled = 0, room = 0, batch = find_batch(s->texts.data, first);
    if (s->wanted[SET] && !(block.sizes = malloc((size_t)(last - first) * sizeof *block.sizes)))
        return fail_row(job, first, DOPPEL_ERROR_MEMORY, "no memory");
    doppel_status status = DOPPEL_OK;
    for (uint64_t row = first; row < last && status == DOPPEL_OK; row++) {
        doppel_sketch made, *sketch = &made;
        if (job->call.stop)
            status = DOPPEL_ERROR_INTERRUPTED;
        advance(s->texts.data, row, &batch);
        if (status == DOPPEL_OK)
            status = do_row(s, state, row, batch, &sketch);
        if (status == DOPPEL_OK && s->wanted[SET] && keep_set(&block, sketch, &filled, &room) != DOPPEL_OK)
            status = fail_row(job, row, DOPPEL_ERROR_MEMORY, "no memory");
    }
    if (status != DOPPEL_OK || !s->wanted[SET]) {
        free_block(&block);
        return status;
    }
    status = append_sets(s, first / job->block, &block);
    return status == DOPPEL_OK ? status : fail_row(job, first, status, "no memory");
}

/* Room for the results. When nulls are skipped every column can have nulls; the columns that texts without words have
 * no value in always can. */
static bool make_column(sketch_job *s, int column) {
    static const value_kind kinds[COLUMNS] = {VALUE_BINARY,      VALUE_UINT64, VALUE_UINT32_LIST,
                                              VALUE_UINT32_LIST, VALUE_UINT64, VALUE_UINT64_LIST};
    size_t bytes = value_bytes(s, column);
    value_kind kind = column == FINGERPRINT && s->bits > 64 ? VALUE_BINARY : kinds[column];
    size_t width = kind == VALUE_BINARY ? bytes : kind == VALUE_UINT32_LIST ? bytes / sizeof(uint32_t) : 0;
    if (!builder_init(&s->column[column], kind, width, (size_t)s->job.count))
        return false;
    bool has_nulls = s->skip || column == DIGEST || column == SIGNATURE || column == BANDS;
    return column == SET || !has_nulls || builder_make_valid(&s->column[column]);
}

static bool make_columns(sketch_job *s) {
    for (int column = 0; column < COLUMNS; column++)
        if (s->wanted[column] && !make_column(s, column))
            return false;
    if (!s->wanted[SET])
        return true;
    s->blocks = calloc((size_t)(s->job.count / s->job.block) + 1, sizeof *s->blocks);
    return s->blocks;
}

static void free_columns(sketch_job *s) {
    for (uint64_t i = 0; s->blocks && i <= s->job.count / s->job.block; i++)
        free_block(&s->blocks[i]);
    free(s->blocks);
    for (int column = 0; column < COLUMNS; column++)
        if (s->wanted[column])
            builder_free(&s->column[column]);
}

/* The number of a column's name; -1: an exception. */
static int find_column(PyObject *name) {
    for (int column = 0; column < COLUMNS; column++)
        if (PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, column_names[column]))
            return column;
    PyErr_Format(PyExc_ValueError,
                 "columns: no column %R; the columns are digest, fingerprint, signature, bands, words, set", name);
    return -1;
}

static int choose_columns(sketch_job *s, PyObject *names) {
    Py_ssize_t count = PyTuple_Size(names);
    for (Py_ssize_t i = 0; i < count; i++) {
        int column = find_column(PyTuple_GetItem(names, i));
        if (column < 0)
            return -1;
        s->wanted[column] = true;
    }
    return count < 0 ? -1 : 0;
}

/* Slots of the signatures that a recipe makes, as its canonical text says; 0: it makes none. */
static size_t recipe_slots(const doppel_recipe *recipe) {
    const char *part = recipe ? strstr(doppel_recipe_text(recipe), ":minhash=") : NULL;
    return part ? strtoul(part + strlen(":minhash="), NULL, 10) : 0;
}

/* The columns by their names, in the order in which they were asked for. */
static PyObject *finish_columns(sketch_job *s, PyObject *names, bool as_list) {
    PyObject *columns = PyDict_New();
    for (Py_ssize_t i = 0; columns && i < PyTuple_Size(names); i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int column = find_column(name);
        if (!s->wanted[column])
            continue; /* asked for twice */
        s->wanted[column] = false;
        PyObject *made = builder_finish(&s->column[column], as_list);
        if (!made || PyDict_SetItem(columns, name, made) < 0)
            Py_CLEAR(columns);
        Py_XDECREF(made);
    }
    return columns;
}

/* The arguments of sketch that are not in the job. */
typedef struct sketch_call {
    PyObject *data, *recipe, *names;
    const char *argument, *text;
    int lists;
} sketch_call;

static PyObject *run_sketch(sketch_job *s, const sketch_call *call) {
    size_t bytes = count_bytes(&s->texts);
    s->job.count = s->texts.data->rows;
    s->job.small = bytes < SMALL_BYTES;
    s->job.keep_gil = bytes < TINY_BYTES;
    s->job.begin = begin_sketching;
    s->job.run = sketch_rows;
    s->job.end = end_sketching;
    s->bits = s->recipe ? doppel_recipe_bits(s->recipe) : 64;
    s->slots = recipe_slots(s->recipe);
    plan_blocks(&s->job);
    if (!make_columns(s))
        return PyErr_NoMemory();
    if (run_rows(&s->job) < 0)
        return NULL;
    return finish_columns(s, call->names, call->lists && s->texts.data->is_list);
}

PyDoc_STRVAR(sketch_doc, "sketch(data, argument, text, recipe, columns, bands, rows, min_words, skip, lists, threads, "
                         "progress)\n--\n\nThe wanted columns of sketches, a dict.");
static PyObject *py_sketch(PyObject *module, PyObject *arguments) {
    (void)module;
    sketch_job s = {0};
    sketch_call call = {0};
    int skip;
    if (!PyArg_ParseTuple(arguments, "OssOO!iiKppiO:sketch", &call.data, &call.argument, &call.text, &call.recipe,
                          &PyTuple_Type, &call.names, &s.bands, &s.band_rows, &s.min_words, &skip, &call.lists,
                          &s.job.threads, &s.job.progress))
        return NULL;
    s.skip = skip != 0;
    data_input data = {0};
    doppel_recipe *made = NULL;
    PyObject *result = NULL;
    if (choose_columns(&s, call.names) == 0 && get_recipe(call.recipe, &s.recipe, &made) == 0 &&
        take_data(call.data, call.argument, &data) == 0) {
        if (open_texts(&s.texts, &data, call.text, call.argument) == 0)
            result = run_sketch(&s, &call);
        close_texts(&s.texts);
        free_data(&data);
    }
    free_columns(&s);
    doppel_recipe_free(made);
    return result;
}

/* ---- compare ---- */

typedef struct compare_work {
    const doppel_recipe *recipe;
    doppel_slice text[2];
    Py_ssize_t min_words; /* of passages; 0: none are wanted */
    doppel_comparison found;
    doppel_passages passages;
} compare_work;

static doppel_status run_compare(void *given) {
    compare_work *work = given;
    doppel_status status = doppel_compare(work->recipe, work->text[0], work->text[1], &work->found);
    if (status != DOPPEL_OK || !work->min_words)
        return status;
    return doppel_passages_find(work->recipe, work->text[0], work->text[1], (size_t)work->min_words, &work->passages);
}

static PyObject *count_or_none(long long count) {
    return count < 0 ? none() : PyLong_FromLongLong(count);
}

static PyObject *digest_or_none(const uint8_t digest[32], uint64_t words) {
    return words ? PyBytes_FromStringAndSize((const char *)digest, 32) : none();
}

/* (a_start, a_end, b_start, b_end, words) each. */
static PyObject *passage_list(const doppel_passages *passages) {
    PyObject *list = PyList_New((Py_ssize_t)passages->count);
    for (size_t i = 0; list && i < passages->count; i++) {
        const doppel_passage *p = &passages->passage[i];
        PyObject *item =
            Py_BuildValue("(KKKKK)", (unsigned long long)p->a_start, (unsigned long long)p->a_end,
                          (unsigned long long)p->b_start, (unsigned long long)p->b_end, (unsigned long long)p->words);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* The fields of a Comparison, in their order. */
static PyObject *comparison_tuple(const compare_work *work) {
    const doppel_comparison *c = &work->found;
    return Py_BuildValue(
        "(NNiNKKKKKNNNNNNNNNNNNNN)", fingerprint_object(c->fingerprint_a, c->bits),
        fingerprint_object(c->fingerprint_b, c->bits), c->bits, count_or_none(c->distance),
        (unsigned long long)c->words_a, (unsigned long long)c->words_b, (unsigned long long)c->shingles_a,
        (unsigned long long)c->shingles_b, (unsigned long long)c->shingles_shared, number_or_none(c->similarity),
        number_or_none(c->containment_ab), number_or_none(c->containment_ba), number_or_none(c->signature_similarity),
        number_or_none(c->cosine), number_or_none(c->angle), number_or_none(c->euclidean),
        count_or_none(c->edit_distance), count_or_none(c->indel_distance), number_or_none(c->edit_similarity),
        PyBool_FromLong(c->same_digest), digest_or_none(c->digest_a, c->words_a),
        digest_or_none(c->digest_b, c->words_b), passage_list(&work->passages));
}

/* The UTF-8 of a str, which holds it; -1: an exception. */
static int get_string(PyObject *object, const char *argument, doppel_slice *string) {
    Py_ssize_t length;
    if (!PyUnicode_Check(object)) {
        raise_type(argument, -1, "str", object);
        return -1;
    }
    string->data = PyUnicode_AsUTF8AndSize(object, &length);
    string->length = string->data ? (size_t)length : 0;
    return string->data ? 0 : -1;
}

PyDoc_STRVAR(compare_doc, "compare(a, b, recipe, passages)\n--\n\nThe fields of a Comparison.");
static PyObject *py_compare(PyObject *module, PyObject *arguments) {
    (void)module;
    compare_work work = {0};
    PyObject *a, *b, *recipe, *result = NULL;
    doppel_recipe *made = NULL;
    if (!PyArg_ParseTuple(arguments, "OOOn:compare", &a, &b, &recipe, &work.min_words))
        return NULL;
    if (get_string(a, "a", &work.text[0]) < 0 || get_string(b, "b", &work.text[1]) < 0 ||
        get_recipe(recipe, &work.recipe, &made) < 0)
        return NULL;
    long_call call = {0};
    bool tiny = work.text[0].length + work.text[1].length < TINY_BYTES;
    doppel_status status = tiny ? run_compare(&work) : run_long_call(&call, run_compare, &work);
    if (status == DOPPEL_OK)
        result = comparison_tuple(&work);
    else
        raise_error(status, &call.error, NULL);
    doppel_passages_free(&work.passages);
    doppel_recipe_free(made);
    return result;
}

/* ---- bands ---- */

PyDoc_STRVAR(bands_plan_doc, "bands_plan(similarity, bands, rows)\n--\n\n(bands, rows, share of pairs they find)");
static PyObject *py_bands_plan(PyObject *module, PyObject *arguments) {
    (void)module;
    double similarity;
    int bands, rows;
    if (!PyArg_ParseTuple(arguments, "dii:bands_plan", &similarity, &bands, &rows))
        return NULL;
    double share = doppel_bands_plan(similarity, &bands, &rows);
    return Py_BuildValue("(iid)", bands, rows, share);
}

static PyMethodDef functions[] = {{"sketch", py_sketch, METH_VARARGS, sketch_doc},
                                  {"verify", py_verify, METH_VARARGS, "Similarity of pairs."},
                                  {"compare", py_compare, METH_VARARGS, compare_doc},
                                  {"hamming", py_hamming, METH_VARARGS, "Differing bits."},
                                  {"bands_plan", py_bands_plan, METH_VARARGS, bands_plan_doc},
                                  {NULL, NULL, 0, NULL}};

int init_sketches(PyObject *module) {
    return add_functions(module, functions);
}
