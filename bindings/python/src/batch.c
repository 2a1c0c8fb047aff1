/* batch.c - Batch: documents in, pairs or decisions out (doppel_batch of libdoppel), from data in memory or from files;
 * overlap; decide.
 *
 * doppel/_batch.py makes a Batch of its options, reads, decides or finds pairs, and makes tables of what this gives:
 * Arrays by document, or by pair. documents.h says what documents are. */
#include "documents.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Outputs: the documents that stay, and lines on those that go. */
enum { RECORDS, REMOVED, OUTPUTS };

typedef struct batch_object {
    documents base;
    doppel_batch *batch;
    doppel_input_counts counts;
    uint8_t *mask; /* once finished: by row of the data that is not known, whether it stays */
} batch_object;

/* ---- making one ---- */

static doppel_batch_options batch_options(batch_object *self, const doppel_recipe *recipe) {
    PyObject *o = self->base.options;
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
                                  .only_contained = share_option(o, "only_contained"),
                                  .keep_copies = count_option(o, "keep_copies"),
                                  .count_by = text_option(o, "count_by"),
                                  .tmp = text_option(o, "tmp"),
                                  .memory = count_option(o, "memory"),
                                  .input = &self->base.input,
                                  .progress = on_stage,
                                  .user = self,
                                  .keep_sketches = flag_option(o, "keep_sketches"),
                                  .keys_for_sets = flag_option(o, "keys_for_sets")};
}

/* Batch(options, tables) */
static PyObject *batch_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    const doppel_recipe *recipe = NULL;
    doppel_error error = {0};
    (void)keywords;
    batch_object *self = (batch_object *)documents_new(type, args, &recipe);
    if (!self)
        return NULL;
    const doppel_batch_options options = batch_options(self, recipe);
    if (!PyErr_Occurred()) {
        doppel_status status = doppel_batch_create(&options, &self->batch, &error);
        if (status == DOPPEL_OK)
            return (PyObject *)self;
        raise_error(status, &error, NULL);
    }
    Py_DECREF(self);
    return NULL;
}

static void batch_dealloc(PyObject *object) {
    batch_object *self = (batch_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    doppel_batch *batch = self->batch;
    Py_BEGIN_ALLOW_THREADS;
    doppel_batch_free(batch);
    Py_END_ALLOW_THREADS;
    free(self->mask);
    documents_free(&self->base);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
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
    doppel_status status = doppel_batch_read(r->self->batch, r->paths, r->count, r->known, &r->self->counts, &r->error);
    name_unread(status, &r->self->base.notes, &r->error);
    return status;
}

static bool run_reading(reading *r) {
    return notes_reset(&r->self->base.notes) && run_documents(&r->self->base, do_read, r, &r->error);
}

/* read_data(data, known, argument, needed): takes data in memory, and reads it. Gives whether it is a list. */
static PyObject *batch_read_data(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    int known;
    char path[32];
    const char *paths[] = {path};
    snprintf(path, sizeof path, "table:%zu", self->base.data_count);
    const document_data *data = take_document_data(&self->base, args, &known);
    reading r = {.self = self, .paths = paths, .count = 1, .known = known};
    self->base.expected = data ? count_documents(data) : 0;
    if (!data || !run_reading(&r))
        return NULL;
    if (self->base.notes.first_bad.code != DOPPEL_OK)
        return raise_bad(&self->base);
    return PyBool_FromLong(data->input->is_list);
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
    return good ? left_out(&self->base.notes) : NULL;
}

/* ---- sketches as bytes ---- */

/* Entries one after the other, and where each ends. */
typedef struct sketch_list {
    batch_object *self;
    line_buffer bytes;
    uint64_t *end;
    size_t count, room;
    doppel_error error;
} sketch_list;

/* doppel_batch_get_sketches */
static doppel_status take_sketch(doppel_slice entry, void *user) {
    sketch_list *list = user;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 1024;
        uint64_t *end = realloc(list->end, room * sizeof *end);
        if (!end)
            return DOPPEL_ERROR_MEMORY;
        list->end = end;
        list->room = room;
    }
    if (!line_reserve(&list->bytes, entry.length))
        return DOPPEL_ERROR_MEMORY;
    memcpy(list->bytes.bytes + list->bytes.used, entry.data, entry.length);
    list->bytes.used += entry.length;
    list->end[list->count++] = list->bytes.used;
    return DOPPEL_OK;
}

static doppel_status do_get_sketches(void *argument) {
    sketch_list *list = argument;
    return doppel_batch_get_sketches(list->self->batch, take_sketch, list, &list->error);
}

/* sketches(): the entries of all documents, as bytes, and an Array with the end of each. */
static PyObject *batch_sketches(PyObject *object, PyObject *unused) {
    sketch_list list = {.self = (batch_object *)object};
    PyObject *result = NULL;
    (void)unused;
    if (run_documents(&list.self->base, do_get_sketches, &list, &list.error)) {
        PyObject *bytes = PyBytes_FromStringAndSize(list.bytes.bytes, (Py_ssize_t)list.bytes.used);
        PyObject *ends = bytes ? array_of(VALUE_UINT64, list.end, list.count, sizeof *list.end) : NULL;
        result = ends ? PyTuple_Pack(2, bytes, ends) : NULL;
        Py_XDECREF(bytes);
        Py_XDECREF(ends);
    }
    free(list.bytes.bytes);
    free(list.end);
    return result;
}

typedef struct sketch_adding {
    batch_object *self;
    doppel_slice entries;
    bool known;
    doppel_error error;
} sketch_adding;

static doppel_status do_add_sketches(void *argument) {
    sketch_adding *a = argument;
    return doppel_batch_add_sketches(a->self->batch, a->entries, a->known, &a->error);
}

/* add_sketches(bytes, known): documents, by their entries. */
static PyObject *batch_add_sketches(PyObject *object, PyObject *args) {
    PyObject *bytes;
    int known;
    if (!PyArg_ParseTuple(args, "Sp", &bytes, &known))
        return NULL;
    sketch_adding a = {.self = (batch_object *)object,
                       .entries = {PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes)},
                       .known = known};
    if (!run_documents(&a.self->base, do_add_sketches, &a, &a.error))
        return NULL;
    Py_RETURN_NONE;
}

/* settings(): what shapes sketches, as text. */
static PyObject *batch_settings(PyObject *object, PyObject *unused) {
    const batch_object *self = (const batch_object *)object;
    (void)unused;
    if (!is_usable(&self->base))
        return NULL;
    size_t length = doppel_batch_settings(self->batch, NULL, 0);
    char *text = length ? malloc(length) : NULL;
    if (!text)
        return PyErr_NoMemory();
    doppel_batch_settings(self->batch, text, length);
    PyObject *result = PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
    free(text);
    return result;
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
    if (!run_documents(&d.self->base, do_decide, &d, &d.error))
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

/* The positions of documents that are not known: all, or those that go. NULL: no memory. */
static uint64_t *list_positions(const batch_object *self, bool copies, size_t *count) {
    doppel_batch_stats stats;
    doppel_batch_get_stats(self->batch, &stats);
    uint64_t *positions = malloc((size_t)(stats.documents - stats.known + 1) * sizeof *positions);
    *count = 0;
    for (uint64_t d = stats.known; positions && d < stats.documents; d++) {
        if (!copies || !doppel_batch_stays(self->batch, d))
            positions[(*count)++] = d;
    }
    return positions;
}

/* The result of columns(): ids of the documents and of their originals, and what was decided. */
static PyObject *make_columns(const batch_object *self, const char *name, const uint64_t *positions, size_t count,
                              decision_columns *c) {
    PyObject *result = PyDict_New();
    if (result && put(result, "id", make_ids(&self->base, name, positions, count)) &&
        put(result, "originalId", make_ids(&self->base, name, c->original.values, count)) &&
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
    if (!PyArg_ParseTuple(args, "zp", &name, &copies) || !is_usable(&self->base))
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

/* originals(): by document that is not known, in order: the position of its original, or its own if it stays. */
static PyObject *batch_originals(PyObject *object, PyObject *unused) {
    const batch_object *self = (const batch_object *)object;
    doppel_batch_stats stats;
    (void)unused;
    if (!is_usable(&self->base))
        return NULL;
    doppel_batch_get_stats(self->batch, &stats);
    size_t count = (size_t)(stats.documents - stats.known);
    uint64_t *positions = malloc((count + 1) * sizeof *positions);
    decision_columns columns = {0};
    PyObject *result = NULL;
    for (size_t i = 0; positions && i < count; i++)
        positions[i] = stats.known + i;
    if (positions && fill_decisions(self, &columns, positions, count)) {
        result = PyDict_New();
        if (result && !(put(result, "original", builder_finish(&columns.original, false)) &&
                        put(result, "reason", builder_finish(&columns.reason, false)) &&
                        put(result, "similarity", builder_finish(&columns.similarity, false)) &&
                        put(result, "distance", builder_finish(&columns.distance, false))))
            Py_CLEAR(result);
    } else {
        PyErr_NoMemory();
    }
    free_decisions(&columns);
    free(positions);
    return result;
}

/* By row of the data that is not known, whether it stays; what is no document stays. NULL: no memory. */
static uint8_t *make_mask(const batch_object *self) {
    const document_data *data = self->base.data[self->base.data_count - 1];
    doppel_batch_stats stats;
    doppel_batch_get_stats(self->batch, &stats);
    uint8_t *mask = malloc((size_t)data->input->rows + 1);
    if (!mask)
        return NULL;
    memset(mask, 1, (size_t)data->input->rows);
    for (uint64_t d = stats.known; d < stats.documents; d++)
        mask[row_of(data, d - stats.known)] = doppel_batch_stays(self->batch, d);
    return mask;
}

/* mask(): an Array of bool, by row. */
static PyObject *batch_mask(PyObject *object, PyObject *unused) {
    const batch_object *self = (const batch_object *)object;
    (void)unused;
    if (!has_data(&self->base))
        return NULL;
    const document_data *data = self->base.data[self->base.data_count - 1];
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

/* finish(): frees all but the data and which rows of it stay, for kept_stream. */
static PyObject *batch_finish(PyObject *object, PyObject *unused) {
    batch_object *self = (batch_object *)object;
    (void)unused;
    if (!has_data(&self->base))
        return NULL;
    self->mask = make_mask(self);
    if (!self->mask)
        return PyErr_NoMemory();
    if (!finish_documents(&self->base))
        return NULL;
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
    return stream_of_held(self->base.data[self->base.data_count - 1]->held, self->mask);
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

/* One side of the pairs: ids or, of a batch that has sketches and no data, positions. */
static PyObject *pair_ids(const pair_finding *f, const char *name, const uint64_t *positions) {
    const documents *base = &f->self->base;
    return base->data_count ? make_ids(base, name, positions, f->count)
                            : array_of(VALUE_UINT64, positions, f->count, sizeof *positions);
}

/* pairs(id name or None, collapse): a dict of Arrays, by pair. */
static PyObject *batch_pairs(PyObject *object, PyObject *args) {
    pair_finding f = {.self = (batch_object *)object};
    const char *name;
    int collapse;
    if (!PyArg_ParseTuple(args, "zp", &name, &collapse))
        return NULL;
    f.collapse = collapse;
    PyObject *result = run_documents(&f.self->base, do_pairs, &f, &f.error) ? PyDict_New() : NULL;
    if (result && !(put(result, "a", pair_ids(&f, name, f.a)) && put(result, "b", pair_ids(&f, name, f.b)) &&
                    put(result, "distance", distances_of(&f)) &&
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
    if (!is_usable(&self->base))
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

/* open_outputs(records, removed): opens the files that write_records and write_removed fill; None: there is none. They
 * appear under their names with finish_outputs(True). */
static PyObject *batch_open_outputs(PyObject *object, PyObject *args) {
    batch_object *self = (batch_object *)object;
    PyObject *paths[OUTPUTS];
    if (!PyArg_ParseTuple(args, "OO", &paths[RECORDS], &paths[REMOVED]) || !is_usable(&self->base) ||
        !open_outputs(&self->base, paths, OUTPUTS))
        return NULL;
    doppel_batch_set_output(self->batch, self->base.outputs[RECORDS]);
    Py_RETURN_NONE;
}

static PyObject *batch_finish_outputs(PyObject *object, PyObject *args) {
    const batch_object *self = (const batch_object *)object;
    if (!is_usable(&self->base))
        return NULL;
    doppel_batch_set_output(self->batch, NULL);
    return documents_finish_outputs(object, args);
}

/* Lines of JSON that are being written. */
typedef struct removed_writing {
    batch_object *self;
    line_buffer line, id;
    doppel_error error;
} removed_writing;

/* Adds a member with the id of a document to the line; false: no memory. */
static bool add_id_member(removed_writing *w, const char *name, uint64_t position) {
    size_t length = doppel_batch_id(w->self->batch, position, w->id.bytes, w->id.room);
    if (!line_reserve(&w->id, length + 1))
        return false;
    length = doppel_batch_id(w->self->batch, position, w->id.bytes, w->id.room);
    return line_add_string(&w->line, name, (doppel_slice){w->id.bytes, length});
}

/* One line, as the command writes it. */
static doppel_status write_removed_line(removed_writing *w, const doppel_near *near) {
    enum { REST_ROOM = 160 };
    char similarity[32] = "null", distance[16] = "null";
    line_buffer *line = &w->line;
    line->used = 0;
    if (!add_id_member(w, "id", near->b) || !add_id_member(w, "originalId", near->a) || !line_reserve(line, REST_ROOM))
        return DOPPEL_ERROR_MEMORY;
    if (!isnan(near->similarity))
        snprintf(similarity, sizeof similarity, "%.6g", near->similarity);
    char *comma = strchr(similarity, ','); /* the locale's decimal point may be one */
    if (comma)
        *comma = '.';
    if (near->distance >= 0)
        snprintf(distance, sizeof distance, "%d", near->distance);
    line->used += (size_t)snprintf(
        line->bytes + line->used, REST_ROOM, ",\"reason\":\"%s\",\"similarity\":%s,\"distance\":%s%s}\n",
        doppel_reason_name(near->reason), similarity, distance, near->verified ? "" : ",\"verified\":false");
    return doppel_writer_write(w->self->base.outputs[REMOVED], (doppel_slice){line->bytes, line->used}, &w->error);
}

static doppel_status do_write_removed(void *argument) {
    removed_writing *w = argument;
    doppel_batch_stats s;
    doppel_status status = DOPPEL_OK;
    doppel_batch_get_stats(w->self->batch, &s);
    for (uint64_t d = s.known; d < s.documents && status == DOPPEL_OK; d++) {
        doppel_near near;
        doppel_batch_get(w->self->batch, d, &near);
        if (!doppel_batch_stays(w->self->batch, d))
            status = w->self->base.call.stop ? DOPPEL_ERROR_INTERRUPTED : write_removed_line(w, &near);
    }
    return status;
}

/* write_removed(): a line for each document that goes. */
static PyObject *batch_write_removed(PyObject *object, PyObject *unused) {
    removed_writing w = {.self = (batch_object *)object};
    (void)unused;
    bool good = !w.self->base.outputs[REMOVED] || run_documents(&w.self->base, do_write_removed, &w, &w.error);
    free(w.line.bytes);
    free(w.id.bytes);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

typedef struct file_writing {
    batch_object *self;
    PyObject *writer;
    row_columns columns;
    doppel_error error, failure;
} file_writing;

static doppel_status write_one(const doppel_batch_rows *rows, void *user) {
    file_writing *w = user;
    atomic_fetch_add(&w->self->base.call.done, rows->count);
    return write_rows(w->writer, w->self->batch, rows, w->columns, &w->self->base.call.stop, &w->failure);
}

static doppel_status do_write(void *argument) {
    file_writing *w = argument;
    atomic_store(&w->self->base.call.total, doppel_batch_count(w->self->batch));
    doppel_status status = w->columns != ROWS_KEPT ? doppel_batch_count_groups(w->self->batch, &w->error) : DOPPEL_OK;
    if (status == DOPPEL_OK)
        status = doppel_batch_each_table(w->self->batch, write_one, w, &w->error);
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
    bool counted = option(w.self->base.options, "count_by");
    w.columns = !annotate ? ROWS_KEPT : counted ? ROWS_COUNTED : ROWS_ANNOTATED;
    if (!run_documents(&w.self->base, do_write, &w, &w.error))
        return NULL;
    Py_RETURN_NONE;
}

typedef struct record_writing {
    batch_object *self;
    doppel_error error;
} record_writing;

static doppel_status do_write_records(void *argument) {
    record_writing *w = argument;
    return doppel_batch_write_kept(w->self->batch, w->self->base.outputs[RECORDS], &w->error);
}

/* write_records(): the documents that stay, as JSONL. */
static PyObject *batch_write_records(PyObject *object, PyObject *unused) {
    record_writing w = {.self = (batch_object *)object};
    (void)unused;
    if (!w.self->base.outputs[RECORDS])
        return PyErr_Format(PyExc_RuntimeError, "no output is open");
    if (!run_documents(&w.self->base, do_write_records, &w, &w.error))
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
    size_t known = o->self->base.known_count;
    o->options.against = paths;
    o->options.against_count = known;
    doppel_status status = doppel_overlap_find(paths + known, 1, &o->options, NULL, &o->error);
    if (status == DOPPEL_OK)
        set_progress(&o->self->base, o->self->base.expected, o->self->base.expected);
    return status;
}

/* One of the two of each pair. */
static PyObject *overlap_ids(const overlapping *o, const char *name, size_t side) {
    uint64_t *positions = malloc((o->count + 1) * sizeof *positions);
    if (!positions)
        return PyErr_NoMemory();
    for (size_t i = 0; i < o->count; i++)
        positions[i] = o->positions[2 * i + side];
    PyObject *ids = make_ids(&o->self->base, name, positions, o->count);
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
    PyObject *o = self->base.options;
    const char *name;
    if (!PyArg_ParseTuple(args, "z", &name) || !has_data(&self->base))
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
                                             .input = &self->base.input,
                                             .pair = take_overlap,
                                             .user = &found};
    bool good = true;
    for (size_t i = 0; i < 5 && good; i++)
        good = builder_init(&found.place[i], VALUE_UINT64_LIST, 0, 0);
    if (!good)
        PyErr_NoMemory();
    PyObject *result = NULL;
    self->base.notes.first_bad = (doppel_error){0};
    self->base.expected = 0;
    for (size_t i = 0; i < self->base.data_count; i++)
        self->base.expected += count_documents(self->base.data[i]);
    if (good && !PyErr_Occurred() && run_documents(&self->base, do_overlap, &found, &found.error))
        result = self->base.notes.first_bad.code == DOPPEL_OK ? overlap_columns(&found, name) : raise_bad(&self->base);
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

/* ---- wide keys of bands ---- */

typedef struct key_making {
    const char *sets;
    const uint32_t *counts;
    size_t count;
    int bands, rows;
    uint64_t *keys;
} key_making;

static doppel_status do_wide_keys(void *argument) {
    key_making *m = argument;
    uint64_t *set = NULL;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0, at = 0; i < m->count && status == DOPPEL_OK; i++) {
        size_t bytes = m->counts[i] * sizeof *set;
        uint64_t *room = realloc(set, bytes + 1); /* what is in bytes may stand anywhere: it is copied */
        if (!room) {
            free(set);
            return DOPPEL_ERROR_MEMORY;
        }
        set = room;
        memcpy(set, m->sets + at, bytes);
        status = doppel_bands_wide_keys(set, m->counts[i], m->bands, m->rows, m->keys + i * (size_t)m->bands);
        at += bytes;
    }
    free(set);
    return status;
}

/* wide_keys(sets, counts, bands, rows): the keys of bands of sets that stand one after the other, as bytes. `counts`
 * has the number of features of each, 4 bytes a set, aligned. */
static PyObject *wide_keys(PyObject *module, PyObject *args) {
    PyObject *sets, *counts;
    key_making m = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "SSii", &sets, &counts, &m.bands, &m.rows))
        return NULL;
    m.sets = PyBytes_AsString(sets);
    m.counts = (const uint32_t *)(const void *)PyBytes_AsString(counts);
    m.count = (size_t)PyBytes_Size(counts) / sizeof *m.counts;
    uint64_t features = 0;
    for (size_t i = 0; i < m.count; i++)
        features += m.counts[i];
    if (features * sizeof(uint64_t) != (uint64_t)PyBytes_Size(sets) || m.bands < 1)
        return PyErr_Format(PyExc_ValueError, "sets: not as long as their counts say");
    m.keys = calloc(m.count * (size_t)m.bands + 1, sizeof *m.keys);
    long_call call = {0};
    doppel_status status = m.keys ? run_long_call(&call, do_wide_keys, &m) : DOPPEL_ERROR_MEMORY;
    PyObject *result =
        status == DOPPEL_OK
            ? PyBytes_FromStringAndSize((const char *)m.keys, (Py_ssize_t)(m.count * (size_t)m.bands * sizeof *m.keys))
            : raise_error(status, NULL, NULL);
    free(m.keys);
    return result;
}

/* ---- the type ---- */

static PyMethodDef batch_methods[] = {
    DOCUMENTS_METHODS,
    {"read_data", batch_read_data, METH_VARARGS, "read_data(data, known, argument, needed)"},
    {"read_paths", batch_read_paths, METH_VARARGS, "read_paths(paths, known)"},
    {"sketches", batch_sketches, METH_NOARGS, "sketches()"},
    {"add_sketches", batch_add_sketches, METH_VARARGS, "add_sketches(bytes, known)"},
    {"settings", batch_settings, METH_NOARGS, "settings()"},
    {"originals", batch_originals, METH_NOARGS, "originals()"},
    {"decide", batch_decide, METH_NOARGS, "decide()"},
    {"columns", batch_columns, METH_VARARGS, "columns(id, only_copies)"},
    {"mask", batch_mask, METH_NOARGS, "mask()"},
    {"finish", batch_finish, METH_NOARGS, "finish()"},
    {"kept_stream", batch_kept_stream, METH_NOARGS, "kept_stream()"},
    {"pairs", batch_pairs, METH_VARARGS, "pairs(id, collapse)"},
    {"stats", batch_stats, METH_NOARGS, "stats()"},
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
    {"wide_keys", wide_keys, METH_VARARGS, "wide_keys(sets, counts, bands, rows)"},
    {"decide_edges", decide_edges, METH_VARARGS, "decide_edges(edges, a, b, similarity, count, link_any)"},
    {NULL, NULL, 0, NULL},
};

int init_batch(PyObject *module) {
    doppel_module.batch = add_type(module, &batch_spec);
    return doppel_module.batch ? add_functions(module, batch_functions) : -1;
}
