/* verify.c - verify(...): pairs of texts, or of sets, to how similar they are. Sets are lists of uint64 in ascending
 * order, as sketch(...) makes them, and are read where they stand. */
#include "sketches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A column of sets in one batch: lists of uint64, of which row r is entry `at` + r (and the array's own offset). */
typedef enum list_kind { LIST32, LIST64, VIEW32, VIEW64, FIXED } list_kind;
typedef struct set_column {
    const struct ArrowArray *parent, *array; /* the struct, or NULL; the lists */
    int64_t at;
    list_kind kind;
    int64_t width; /* of FIXED */
} set_column;

typedef struct number_set {
    const uint64_t *numbers;
    size_t count;
} number_set;

/* One side of the pairs: texts, or sets. */
typedef struct pair_side {
    text_column texts;
    set_column *sets; /* by batch; NULL: texts */
} pair_side;

typedef struct verify_job {
    row_job job;
    const doppel_recipe *recipe;
    pair_side side[2];
    array_builder column[4]; /* similarity, the two containments, distance */
} verify_job;

/* Whether a schema is one of lists of uint64, and of which kind. */
static bool is_set_schema(const struct ArrowSchema *schema, set_column *column) {
    static const char *const formats[] = {"+l", "+L", "+vl", "+vL"};
    if (schema->dictionary || schema->n_children != 1 || strcmp(schema->children[0]->format, "L") != 0)
        return false;
    for (int kind = LIST32; kind <= VIEW64; kind++)
        if (!strcmp(schema->format, formats[kind])) {
            column->kind = (list_kind)kind;
            return true;
        }
    column->kind = FIXED;
    column->width = strncmp(schema->format, "+w:", 3) ? -1 : strtoll(schema->format + 3, NULL, 10);
    return column->width >= 0;
}

/* The column of one batch; false: views without sizes, which take_data does not check. */
static bool open_set_batch(const data_input *data, size_t batch, int64_t child, set_column *column) {
    const struct ArrowArray *array = &data->batches[batch].array;
    column->array = array;
    if (data->is_struct) {
        column->parent = array;
        column->at = array->offset;
        column->array = array->children[child];
    }
    bool is_view = column->kind == VIEW32 || column->kind == VIEW64;
    return !is_view || column->array->buffers[2];
}

/* -1: an exception. */
static int open_side(pair_side *side, const data_input *data, const char *name, const char *argument) {
    int64_t child = 0;
    set_column kind = {0};
    const struct ArrowSchema *schema = find_schema(data, name, &child);
    if (!schema || !is_set_schema(schema, &kind))
        return open_texts(&side->texts, data, name, argument);
    side->texts = (text_column){.data = data, .argument = argument};
    side->sets = calloc(data->batch_count + 1, sizeof *side->sets);
    if (!side->sets) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < data->batch_count; i++) {
        side->sets[i] = kind;
        if (!open_set_batch(data, i, child, &side->sets[i])) {
            PyErr_Format(doppel_module.input_error, "%s: malformed Arrow data: an array without sizes", argument);
            return -1;
        }
    }
    return 0;
}

static void close_side(pair_side *side) {
    close_texts(&side->texts);
    free(side->sets);
}

/* Where the numbers of entry `at` stand among all numbers. */
static void get_extent(const set_column *column, int64_t at, int64_t *start, int64_t *count) {
    const void *const *buffers = column->array->buffers;
    switch (column->kind) {
    case LIST32:
        *start = ((const int32_t *)buffers[1])[at];
        *count = ((const int32_t *)buffers[1])[at + 1] - *start;
        break;
    case LIST64:
        *start = ((const int64_t *)buffers[1])[at];
        *count = ((const int64_t *)buffers[1])[at + 1] - *start;
        break;
    case VIEW32:
        *start = ((const int32_t *)buffers[1])[at];
        *count = ((const int32_t *)buffers[2])[at];
        break;
    case VIEW64:
        *start = ((const int64_t *)buffers[1])[at];
        *count = ((const int64_t *)buffers[2])[at];
        break;
    default:
        *start = at * column->width;
        *count = column->width;
        break;
    }
}

/* What is wrong with the numbers of a set; NULL: nothing. */
static const char *set_fault(const struct ArrowArray *numbers, int64_t start, int64_t count) {
    if (start < 0 || count < 0 || start > numbers->length || count > numbers->length - start)
        return "is malformed";
    if (!count)
        return NULL;
    const uint64_t *values = (const uint64_t *)numbers->buffers[1] + numbers->offset + start;
    for (int64_t i = 0; numbers->null_count && i < count; i++)
        if (is_null(numbers, numbers->offset + start + i))
            return "has a null in its set";
    for (int64_t i = 1; i < count; i++)
        if (values[i - 1] >= values[i])
            return "is no set: the numbers of a set are distinct and ascending";
    return NULL;
}

static doppel_status get_set(verify_job *v, const pair_side *side, uint64_t row, size_t batch, number_set *set) {
    const set_column *column = &side->sets[batch];
    int64_t start = 0, count = 0, in_batch = (int64_t)(row - side->texts.data->batches[batch].first);
    int64_t at = column->at + in_batch + column->array->offset;
    const struct ArrowArray *numbers = column->array->children[0];
    const char *fault = "is null";
    if (!(column->parent && is_null(column->parent, column->parent->offset + in_batch)) &&
        !is_null(column->array, at)) {
        get_extent(column, at, &start, &count);
        fault = set_fault(numbers, start, count);
    }
    if (fault)
        return fail_row(&v->job, row, DOPPEL_ERROR_USAGE, "%s: row %llu %s", side->texts.argument,
                        (unsigned long long)row, fault);
    *set = (number_set){count ? (const uint64_t *)numbers->buffers[1] + numbers->offset + start : NULL, (size_t)count};
    return DOPPEL_OK;
}

/* A thread's sketchers of both sides, and their last sketches: often one side is the same as in the pair before. */
typedef struct verifier {
    doppel_sketcher *sketcher[2];
    doppel_sketch sketch[2];
    doppel_slice text[2]; /* data NULL: none yet */
} verifier;

static void end_verifying(row_job *job, void *state) {
    (void)job;
    verifier *made = state;
    for (int i = 0; made && i < 2; i++)
        doppel_sketcher_free(made->sketcher[i]);
    free(made);
}

static doppel_status begin_verifying(row_job *job, void **state) {
    const verify_job *v = (const verify_job *)job;
    verifier *made = calloc(1, sizeof *made);
    doppel_status status = made ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    *state = made;
    for (int i = 0; i < 2 && status == DOPPEL_OK; i++)
        status = doppel_sketcher_create(v->recipe, DOPPEL_WANT_SET, &made->sketcher[i], NULL);
    return status;
}

/* The sketch of one side's text. */
static doppel_status sketch_side(verify_job *v, verifier *with, int i, uint64_t row, size_t batch) {
    const text_column *texts = &v->side[i].texts;
    doppel_slice text = get_text(texts, batch, row), *last = &with->text[i];
    if (!text.data)
        return fail_row(&v->job, row, DOPPEL_ERROR_USAGE, "%s: row %llu is null", texts->argument,
                        (unsigned long long)row);
    if (last->data && last->length == text.length && !memcmp(last->data, text.data, text.length))
        return DOPPEL_OK;
    last->data = NULL;
    doppel_status status = sketch_text(&v->job, with->sketcher[i], text, &with->sketch[i]);
    if (status == DOPPEL_OK)
        *last = text;
    else if (status != DOPPEL_ERROR_INTERRUPTED)
        fail_row(&v->job, row, status, "%s: row %llu: %s", texts->argument, (unsigned long long)row,
                 doppel_status_name(status));
    return status;
}

/* The set of one side. */
static doppel_status get_side(verify_job *v, verifier *with, int i, uint64_t row, number_set *set) {
    const pair_side *side = &v->side[i];
    size_t batch = find_batch(side->texts.data, row);
    if (side->sets)
        return get_set(v, side, row, batch, set);
    doppel_status status = sketch_side(v, with, i, row, batch);
    if (status == DOPPEL_OK)
        *set = (number_set){with->sketch[i].set, with->sketch[i].set_count};
    return status;
}

static void measure(verify_job *v, const verifier *with, uint64_t row, const number_set set[2]) {
    double *similarity = v->column[0].values, *ab = v->column[1].values, *ba = v->column[2].values;
    int32_t *distance = v->column[3].values;
    similarity[row] = doppel_jaccard(set[0].numbers, set[0].count, set[1].numbers, set[1].count);
    ab[row] = set[0].count ? doppel_containment(set[0].numbers, set[0].count, set[1].numbers, set[1].count) : NAN;
    ba[row] = set[1].count ? doppel_containment(set[1].numbers, set[1].count, set[0].numbers, set[0].count) : NAN;
    bool known = !v->side[0].sets && !v->side[1].sets && set[0].count && set[1].count;
    distance[row] = known ? doppel_distance128(with->sketch[0].fingerprint, with->sketch[1].fingerprint) : 0;
    v->column[3].valid[row] = known;
}

static doppel_status verify_rows(row_job *job, void *state, uint64_t first, uint64_t last) {
    verify_job *v = (verify_job *)job;
    doppel_status status = DOPPEL_OK;
    for (uint64_t row = first; row < last && status == DOPPEL_OK; row++) {
        number_set set[2];
        status = job->call.stop ? DOPPEL_ERROR_INTERRUPTED : get_side(v, state, 0, row, &set[0]);
        if (status == DOPPEL_OK)
            status = get_side(v, state, 1, row, &set[1]);
        if (status == DOPPEL_OK)
            measure(v, state, row, set);
    }
    return status;
}

static const char *const verify_names[] = {"similarity", "containmentAB", "containmentBA", "distance"};

/* The columns, by their names. */
static PyObject *finish_verify(verify_job *v) {
    PyObject *columns = PyDict_New();
    for (int i = 0; columns && i < 4; i++) {
        PyObject *made = builder_finish(&v->column[i], false);
        v->column[i] = (array_builder){0};
        if (!made || PyDict_SetItemString(columns, verify_names[i], made) < 0)
            Py_CLEAR(columns);
        Py_XDECREF(made);
    }
    return columns;
}

/* The bytes of all texts; a few sets take about as long as little text. */
static size_t count_side(const pair_side *side) {
    return !side->sets ? count_bytes(&side->texts) : side->texts.data->rows <= 64 ? TINY_BYTES : SIZE_MAX;
}

static PyObject *run_verify(verify_job *v) {
    size_t a = count_side(&v->side[0]), b = count_side(&v->side[1]), bytes = a > SIZE_MAX - b ? SIZE_MAX : a + b;
    v->job.count = v->side[0].texts.data->rows;
    v->job.small = bytes < SMALL_BYTES || !v->job.count;
    v->job.keep_gil = bytes < TINY_BYTES;
    v->job.begin = begin_verifying;
    v->job.run = verify_rows;
    v->job.end = end_verifying;
    for (int i = 0; i < 4; i++)
        if (!builder_init(&v->column[i], i < 3 ? VALUE_DOUBLE : VALUE_INT32, 0, (size_t)v->job.count))
            return PyErr_NoMemory();
    if (!builder_make_valid(&v->column[3]))
        return PyErr_NoMemory();
    return run_rows(&v->job) < 0 ? NULL : finish_verify(v);
}

/* Both sides are columns of one table, or data of their own with the same number of rows. */
static PyObject *verify_data(verify_job *v, const data_input *data[2], const char *names[2]) {
    PyObject *result = NULL;
    if (data[0]->rows != data[1]->rows)
        PyErr_Format(PyExc_ValueError, "%s has %llu rows, %s has %llu", names[0], (unsigned long long)data[0]->rows,
                     names[1], (unsigned long long)data[1]->rows);
    else if (open_side(&v->side[0], data[0], names[0], names[0]) == 0 &&
             open_side(&v->side[1], data[1], names[1], names[1]) == 0)
        result = run_verify(v);
    for (int i = 0; i < 4; i++)
        builder_free(&v->column[i]);
    close_side(&v->side[0]);
    close_side(&v->side[1]);
    return result;
}

PyObject *py_verify(PyObject *module, PyObject *arguments) {
    (void)module;
    verify_job v = {0};
    PyObject *object[2], *recipe;
    const char *names[2];
    if (!PyArg_ParseTuple(arguments, "OsOsOiO:verify", &object[0], &names[0], &object[1], &names[1], &recipe,
                          &v.job.threads, &v.job.progress))
        return NULL;
    data_input data[2] = {0};
    doppel_recipe *made = NULL;
    PyObject *result = NULL;
    bool one = object[1] == Py_None;
    if (get_recipe(recipe, &v.recipe, &made) == 0 && take_data(object[0], one ? "pairs" : names[0], &data[0]) == 0) {
        const data_input *sides[2] = {&data[0], one ? &data[0] : &data[1]};
        if (one || take_data(object[1], names[1], &data[1]) == 0)
            result = verify_data(&v, sides, names);
        if (!one)
            free_data(&data[1]);
        free_data(&data[0]);
    }
    doppel_recipe_free(made);
    return result;
}
