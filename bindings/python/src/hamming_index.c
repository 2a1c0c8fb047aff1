/* hamming_index.c - HammingIndex: every fingerprint within k bits (doppel/_index.py documents it, and has the
 * defaults).
 *
 * Any number of Python threads may use an index. libdoppel lets one thread change it while others read: `writer` is
 * held by the thread that changes it, and taken without the GIL, so that waiting for it does not stop other threads.
 * After close new calls are refused; the index is freed by the last call that is still under way.
 *
 * After fork() the child has the index's memory but neither its threads nor a sound state of its locks: there all calls
 * are refused, and the memory is left alone until the process ends. */
#include "sketches.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct index_object {
    PyObject_HEAD;
    doppel_index *index; /* NULL: not open */
    int bits, distance;
    unsigned forks; /* fork_count() when it was made */
    long process;
    pthread_mutex_t writer;
    pthread_mutex_t lock; /* of what follows, and of `index`; held for moments */
    size_t users;
    _Atomic bool opened, closed; /* ever */
} index_object;

/* ---- who uses it ---- */

/* Begins a use; -1: an exception. */
static int enter(index_object *self) {
    if (self->forks != fork_count()) {
        PyErr_Format(PyExc_RuntimeError,
                     "this HammingIndex was opened by another process (%ld): open it again in this one", self->process);
        return -1;
    }
    pthread_mutex_lock(&self->lock);
    bool open = self->opened && !self->closed;
    self->users += open;
    pthread_mutex_unlock(&self->lock);
    if (!open)
        PyErr_SetString(PyExc_ValueError, "this HammingIndex is closed");
    return open ? 0 : -1;
}

/* Freeing may wait for a thread of the index. */
static void free_index(doppel_index *index) {
    if (!index)
        return;
    Py_BEGIN_ALLOW_THREADS;
    doppel_index_free(index);
    Py_END_ALLOW_THREADS;
}

/* The index, if it is closed and not in use. The lock is held. */
static doppel_index *take_unused(index_object *self) {
    doppel_index *unused = self->closed && !self->users ? self->index : NULL;
    if (unused)
        self->index = NULL;
    return unused;
}

static void leave(index_object *self) {
    pthread_mutex_lock(&self->lock);
    self->users--;
    doppel_index *unused = take_unused(self);
    pthread_mutex_unlock(&self->lock);
    free_index(unused);
}

/* None, or the exception of a call that failed. */
static PyObject *none_or_error(doppel_status status, const doppel_error *error) {
    return status == DOPPEL_OK ? none() : raise_error(status, error, NULL);
}

/* ---- arguments ---- */

/* A number of 64 bits: an owner, a time. */
static int take_number(PyObject *object, const char *argument, uint64_t *number) {
    PyObject *whole = PyIndex_Check(object) ? PyNumber_Index(object) : raise_type(argument, -1, "int", object);
    if (!whole)
        return -1;
    *number = PyLong_AsUnsignedLongLong(whole);
    Py_DECREF(whole);
    if (*number != UINT64_MAX || !PyErr_Occurred())
        return 0;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s: expected an int from 0 to 2**64 - 1, not %R", argument, object);
    return -1;
}

/* Whether a fingerprint has no bits beyond the width. */
static bool fits(const uint64_t *value, bool wide, int bits) {
    if (bits > 64)
        return true;
    return (!wide || !value[1]) && (bits == 64 || !(value[0] >> bits));
}

static int take_own(const index_object *self, PyObject *object, uint64_t value[2]) {
    bool wide;
    if (take_fingerprint(object, "fingerprint", value, &wide) < 0)
        return -1;
    if (fits(value, wide, self->bits))
        return 0;
    PyErr_Format(PyExc_ValueError, "fingerprint: %R has more than the %d bits of this HammingIndex", object,
                 self->bits);
    return -1;
}

/* Numbers in a list get the width of the index; a column must have it already. */
static int check_width(const index_object *self, fingerprints *f) {
    if (f->scalar) {
        PyErr_SetString(PyExc_TypeError, "fingerprints: expected a list or a column of them, not one");
        return -1;
    }
    bool wide = self->bits > 64, differs = f->count && f->wide != wide;
    if (!differs)
        return 0;
    if (wide && !f->is_arrow)
        return widen_fingerprints(f);
    PyErr_Format(PyExc_ValueError, "fingerprints: expected %d bits each, as this HammingIndex has, not %d", self->bits,
                 f->wide ? 128 : 64);
    return -1;
}

/* Many fingerprints, none of them null unless `nulls`. */
static int take_many(const index_object *self, PyObject *object, bool nulls, fingerprints *f) {
    if (take_fingerprints(object, "fingerprints", f) < 0 || check_width(self, f) < 0)
        return -1;
    size_t words = f->wide ? 2 : 1;
    for (size_t i = 0; i < f->count; i++) {
        bool is_value = !f->valid || f->valid[i];
        if (is_value ? fits(f->values + i * words, f->wide, self->bits) : nulls)
            continue;
        if (is_value)
            PyErr_Format(PyExc_ValueError, "fingerprints: row %zu has more than the %d bits of this HammingIndex", i,
                         self->bits);
        else
            PyErr_Format(PyExc_ValueError, "fingerprints: row %zu is null", i);
        return -1;
    }
    return 0;
}

/* Numbers beside `count` fingerprints. None: none are given; one number stands for all of them. */
static int take_beside(PyObject *object, const char *argument, size_t count, fingerprints *f) {
    if (object == Py_None)
        return 0;
    if (take_fingerprints(object, argument, f) < 0)
        return -1;
    if (f->wide || f->valid) {
        PyErr_Format(PyExc_ValueError, "%s: expected numbers of 64 bits, and no nulls", argument);
        return -1;
    }
    if (f->scalar) {
        uint64_t *all = malloc((count + 1) * sizeof *all);
        for (size_t i = 0; all && i < count; i++)
            all[i] = f->values[0];
        free(f->values);
        f->values = all;
        f->count = count;
        if (!all) {
            PyErr_NoMemory();
            return -1;
        }
    }
    if (f->count == count)
        return 0;
    PyErr_Format(PyExc_ValueError, "fingerprints has %zu rows, %s has %zu", count, argument, f->count);
    return -1;
}

/* ---- changing it ---- */

static PyObject *py_add(PyObject *object, PyObject *arguments) {
    index_object *self = (index_object *)object;
    PyObject *fingerprint, *owner, *expires;
    uint64_t value[2], number, time;
    doppel_status status;
    if (!PyArg_ParseTuple(arguments, "OOO:add", &fingerprint, &owner, &expires) ||
        take_number(owner, "owner", &number) < 0 || take_number(expires, "expires", &time) < 0 || enter(self) < 0)
        return NULL;
    if (take_own(self, fingerprint, value) < 0) {
        leave(self);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&self->writer);
    status = doppel_index_add(self->index, value, number, time);
    pthread_mutex_unlock(&self->writer);
    Py_END_ALLOW_THREADS;
    leave(self);
    return none_or_error(status, NULL);
}

static PyObject *add_many(index_object *self, const fingerprints *f, const uint64_t *owners, const uint64_t *expires) {
    doppel_status status;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&self->writer);
    status = doppel_index_add_batch(self->index, f->values, owners, expires, f->count);
    pthread_mutex_unlock(&self->writer);
    Py_END_ALLOW_THREADS;
    return none_or_error(status, NULL);
}

static PyObject *py_add_batch(PyObject *object, PyObject *arguments) {
    index_object *self = (index_object *)object;
    PyObject *given[3], *result = NULL;
    fingerprints f = {0}, owners = {0}, expires = {0};
    if (!PyArg_ParseTuple(arguments, "OOO:add_batch", &given[0], &given[1], &given[2]) || enter(self) < 0)
        return NULL;
    if (take_many(self, given[0], false, &f) == 0 && take_beside(given[1], "owners", f.count, &owners) == 0 &&
        take_beside(given[2], "expires", f.count, &expires) == 0)
        result = f.count ? add_many(self, &f, owners.values, expires.values) : none();
    leave(self);
    free_fingerprints(&f);
    free_fingerprints(&owners);
    free_fingerprints(&expires);
    return result;
}

static PyObject *py_remove(PyObject *object, PyObject *arguments) {
    index_object *self = (index_object *)object;
    PyObject *fingerprint, *owner;
    uint64_t value[2], number;
    bool removed = false;
    doppel_status status;
    if (!PyArg_ParseTuple(arguments, "OO:remove", &fingerprint, &owner) || take_number(owner, "owner", &number) < 0 ||
        enter(self) < 0)
        return NULL;
    if (take_own(self, fingerprint, value) < 0) {
        leave(self);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&self->writer);
    status = doppel_index_remove(self->index, value, number, &removed);
    pthread_mutex_unlock(&self->writer);
    Py_END_ALLOW_THREADS;
    leave(self);
    return status == DOPPEL_OK ? PyBool_FromLong(removed) : raise_error(status, NULL, NULL);
}

static PyObject *py_expire(PyObject *object, PyObject *now) {
    index_object *self = (index_object *)object;
    uint64_t time, expired = 0;
    doppel_status status;
    if (take_number(now, "now", &time) < 0 || enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&self->writer);
    status = doppel_index_expire(self->index, time, &expired);
    pthread_mutex_unlock(&self->writer);
    Py_END_ALLOW_THREADS;
    leave(self);
    return status == DOPPEL_OK ? PyLong_FromUnsignedLongLong(expired) : raise_error(status, NULL, NULL);
}

/* Both are kept from changing meanwhile; in the order of their addresses, so that two merges never wait for each
 * other. */
static doppel_status merge(index_object *self, index_object *from, doppel_error *error) {
    index_object *first = self < from ? self : from, *second = self < from ? from : self;
    pthread_mutex_lock(&first->writer);
    pthread_mutex_lock(&second->writer);
    doppel_status status = doppel_index_merge(self->index, from->index, error);
    pthread_mutex_unlock(&second->writer);
    pthread_mutex_unlock(&first->writer);
    return status;
}

static PyObject *py_merge(PyObject *object, PyObject *other) {
    index_object *self = (index_object *)object, *from = (index_object *)other;
    doppel_error error = {0};
    doppel_status status;
    if (!PyObject_TypeCheck(other, doppel_module.index))
        return raise_type("other", -1, "HammingIndex", other);
    if (self == from)
        return PyErr_Format(PyExc_ValueError, "other: is this HammingIndex itself");
    if (enter(self) < 0)
        return NULL;
    if (enter(from) < 0) {
        leave(self);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = merge(self, from, &error);
    Py_END_ALLOW_THREADS;
    leave(from);
    leave(self);
    return none_or_error(status, &error);
}

/* A call that is done while nothing changes the index. */
typedef doppel_status quiet_call(doppel_index *index, doppel_error *error);

static PyObject *call_quietly(PyObject *object, quiet_call *call) {
    index_object *self = (index_object *)object;
    doppel_error error = {0};
    doppel_status status;
    if (enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&self->writer);
    status = call(self->index, &error);
    pthread_mutex_unlock(&self->writer);
    Py_END_ALLOW_THREADS;
    leave(self);
    return none_or_error(status, &error);
}

static PyObject *py_compact(PyObject *object, PyObject *unused) {
    (void)unused;
    return call_quietly(object, doppel_index_compact);
}

static doppel_status validate(doppel_index *index, doppel_error *error) {
    return doppel_index_validate(index, error);
}

static PyObject *py_validate(PyObject *object, PyObject *unused) {
    (void)unused;
    return call_quietly(object, validate);
}

/* ---- asking it ---- */

static PyObject *match_list(const index_object *self, const doppel_matches *matches) {
    PyObject *list = PyList_New((Py_ssize_t)matches->count);
    for (size_t i = 0; list && i < matches->count; i++) {
        const doppel_match *m = &matches->match[i];
        PyObject *item =
            PyObject_CallFunction(doppel_module.match, "KiNK", (unsigned long long)m->owner, m->distance,
                                  fingerprint_object(m->fingerprint, self->bits), (unsigned long long)m->expires);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *py_find(PyObject *object, PyObject *arguments) {
    index_object *self = (index_object *)object;
    PyObject *fingerprint, *limit, *now, *result = NULL;
    int distance;
    uint64_t value[2];
    doppel_find_options options = {.size = sizeof options};
    doppel_matches matches = {0};
    doppel_error error = {0};
    doppel_status status;
    if (!PyArg_ParseTuple(arguments, "OiOO:find", &fingerprint, &distance, &limit, &now) ||
        take_number(limit, "limit", &options.limit) < 0 || take_number(now, "now", &options.now) < 0 || enter(self) < 0)
        return NULL;
    if (take_own(self, fingerprint, value) == 0) {
        Py_BEGIN_ALLOW_THREADS;
        status = doppel_index_find(self->index, value, distance, &options, &matches, &error);
        Py_END_ALLOW_THREADS;
        result = status == DOPPEL_OK ? match_list(self, &matches) : raise_error(status, &error, NULL);
    }
    leave(self);
    doppel_matches_free(&matches);
    return result;
}

/* What the queries of one block have found. */
typedef struct found_block {
    uint64_t *queries, *owners;
    int32_t *distances;
    size_t count, room;
} found_block;

typedef struct find_job {
    row_job job;
    const doppel_index *index;
    fingerprints queries;
    int distance;
    doppel_find_options options;
    found_block *blocks;
} find_job;

static bool grow_block(found_block *block, size_t count) {
    if (count <= block->room)
        return true;
    size_t room = count * 2;
    uint64_t *queries = realloc(block->queries, room * sizeof *queries);
    block->queries = queries ? queries : block->queries;
    uint64_t *owners = realloc(block->owners, room * sizeof *owners);
    block->owners = owners ? owners : block->owners;
    int32_t *distances = realloc(block->distances, room * sizeof *distances);
    block->distances = distances ? distances : block->distances;
    if (!queries || !owners || !distances)
        return false;
    block->room = room;
    return true;
}

static bool keep_matches(found_block *block, uint64_t query, const doppel_matches *matches) {
    if (!grow_block(block, block->count + matches->count))
        return false;
    for (size_t i = 0; i < matches->count; i++, block->count++) {
        block->queries[block->count] = query;
        block->owners[block->count] = matches->match[i].owner;
        block->distances[block->count] = matches->match[i].distance;
    }
    return true;
}

static doppel_status find_rows(row_job *job, void *state, uint64_t first, uint64_t last) {
    find_job *f = (find_job *)job;
    (void)state;
    found_block *block = &f->blocks[first / job->block];
    doppel_matches matches = {0};
    doppel_error error = {0};
    doppel_status status = DOPPEL_OK;
    for (uint64_t row = first; row < last && status == DOPPEL_OK; row++) {
        if (job->call.stop)
            status = DOPPEL_ERROR_INTERRUPTED;
        else if (!f->queries.valid || f->queries.valid[row])
            status = doppel_index_find(f->index, f->queries.values + row * (f->queries.wide ? 2 : 1), f->distance,
                                       &f->options, &matches, &error);
        else
            continue; /* null is near nothing */
        if (status == DOPPEL_OK && !keep_matches(block, row, &matches))
            status = DOPPEL_ERROR_MEMORY;
        if (status != DOPPEL_OK && status != DOPPEL_ERROR_INTERRUPTED)
            fail_row(job, row, status, "%s", error.message[0] ? error.message : doppel_status_name(status));
    }
    doppel_matches_free(&matches);
    return status;
}

static size_t block_count(const find_job *f) {
    return (size_t)(f->job.count / f->job.block) + 1;
}

/* Puts the blocks one after the other. */
static bool join_blocks(const find_job *f, array_builder columns[3]) {
    size_t total = 0, at = 0;
    for (size_t i = 0; i < block_count(f); i++)
        total += f->blocks[i].count;
    if (!builder_init(&columns[0], VALUE_UINT64, 0, total) || !builder_init(&columns[1], VALUE_UINT64, 0, total) ||
        !builder_init(&columns[2], VALUE_INT32, 0, total))
        return false;
    for (size_t i = 0; i < block_count(f); i++) {
        const found_block *block = &f->blocks[i];
        if (!block->count)
            continue;
        memcpy((uint64_t *)columns[0].values + at, block->queries, block->count * sizeof *block->queries);
        memcpy((uint64_t *)columns[1].values + at, block->owners, block->count * sizeof *block->owners);
        memcpy((int32_t *)columns[2].values + at, block->distances, block->count * sizeof *block->distances);
        at += block->count;
    }
    return true;
}

/* The columns, by their names. */
static PyObject *finish_find(const find_job *f) {
    static const char *const names[] = {"query", "owner", "distance"};
    array_builder columns[3] = {0};
    PyObject *result = join_blocks(f, columns) ? PyDict_New() : PyErr_NoMemory();
    for (int i = 0; result && i < 3; i++) {
        PyObject *made = builder_finish(&columns[i], false);
        columns[i] = (array_builder){0};
        if (!made || PyDict_SetItemString(result, names[i], made) < 0)
            Py_CLEAR(result);
        Py_XDECREF(made);
    }
    for (int i = 0; i < 3; i++)
        builder_free(&columns[i]);
    return result;
}

static void free_blocks(find_job *f) {
    for (size_t i = 0; f->blocks && i < block_count(f); i++) {
        free(f->blocks[i].queries);
        free(f->blocks[i].owners);
        free(f->blocks[i].distances);
    }
    free(f->blocks);
}

/* Few queries within the planned distance take a millisecond at most. */
static PyObject *run_find(index_object *self, find_job *f) {
    f->index = self->index;
    f->job.count = f->queries.count;
    f->job.run = find_rows;
    f->job.small = f->queries.count <= 64 && f->distance <= self->distance;
    plan_blocks(&f->job);
    f->blocks = calloc(block_count(f), sizeof *f->blocks);
    if (!f->blocks)
        return PyErr_NoMemory();
    PyObject *result = run_rows(&f->job) < 0 ? NULL : finish_find(f);
    free_blocks(f);
    return result;
}

static PyObject *py_find_batch(PyObject *object, PyObject *arguments) {
    index_object *self = (index_object *)object;
    PyObject *queries, *limit, *now, *result = NULL;
    find_job f = {.options = {.size = sizeof f.options}};
    if (!PyArg_ParseTuple(arguments, "OiOOiO:find_batch", &queries, &f.distance, &limit, &now, &f.job.threads,
                          &f.job.progress) ||
        take_number(limit, "limit", &f.options.limit) < 0 || take_number(now, "now", &f.options.now) < 0 ||
        enter(self) < 0)
        return NULL;
    if (take_many(self, queries, true, &f.queries) == 0)
        result = run_find(self, &f);
    leave(self);
    free_fingerprints(&f.queries);
    return result;
}

/* 1 or 0; -1: an exception. */
static int contains(index_object *self, PyObject *fingerprint, PyObject *owner) {
    uint64_t value[2], number;
    bool found = false;
    doppel_status status = DOPPEL_OK;
    if (take_number(owner, "owner", &number) < 0 || enter(self) < 0)
        return -1;
    int taken = take_own(self, fingerprint, value);
    if (taken == 0) {
        Py_BEGIN_ALLOW_THREADS;
        status = doppel_index_contains(self->index, value, number, &found);
        Py_END_ALLOW_THREADS;
    }
    leave(self);
    if (status != DOPPEL_OK)
        raise_error(status, NULL, NULL);
    return taken < 0 || status != DOPPEL_OK ? -1 : found;
}

static PyObject *py_contains(PyObject *object, PyObject *arguments) {
    PyObject *fingerprint, *owner;
    if (!PyArg_ParseTuple(arguments, "OO:contains", &fingerprint, &owner))
        return NULL;
    int found = contains((index_object *)object, fingerprint, owner);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

static int index_contains(PyObject *object, PyObject *item) {
    if (!PyTuple_Check(item) || PyTuple_Size(item) != 2) {
        PyErr_SetString(PyExc_TypeError, "expected (fingerprint, owner)");
        return -1;
    }
    return contains((index_object *)object, PyTuple_GetItem(item, 0), PyTuple_GetItem(item, 1));
}

static int get_stats(index_object *self, doppel_index_stats *stats) {
    if (enter(self) < 0)
        return -1;
    doppel_index_get_stats(self->index, stats);
    leave(self);
    return 0;
}

static Py_ssize_t index_length(PyObject *object) {
    doppel_index_stats stats;
    return get_stats((index_object *)object, &stats) < 0 ? -1 : (Py_ssize_t)stats.entries;
}

static PyObject *py_stats(PyObject *object, PyObject *unused) {
    (void)unused;
    doppel_index_stats s;
    if (get_stats((index_object *)object, &s) < 0)
        return NULL;
    return Py_BuildValue("{sKsKsKsisisiss}", "entries", (unsigned long long)s.entries, "fingerprints",
                         (unsigned long long)s.fingerprints, "bytes", (unsigned long long)s.bytes, "runs", s.runs,
                         "bits", s.bits, "distance", s.distance, "layout", s.layout);
}

/* ---- files ---- */

static PyObject *py_save(PyObject *object, PyObject *given) {
    index_object *self = (index_object *)object;
    PyObject *path = NULL;
    doppel_error error = {0};
    doppel_status status;
    if (!PyUnicode_FSConverter(given, &path))
        return NULL;
    const char *name = PyBytes_AsString(path);
    if (enter(self) < 0) {
        Py_DECREF(path);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = doppel_index_save(self->index, name, &error);
    Py_END_ALLOW_THREADS;
    leave(self);
    Py_DECREF(path);
    return none_or_error(status, &error);
}

/* Takes over an index that was made or opened; -1: this one is open already. */
static int adopt(index_object *self, doppel_index *index) {
    doppel_index_stats stats;
    doppel_index_get_stats(index, &stats);
    pthread_mutex_lock(&self->lock);
    bool open = self->opened;
    if (!open) {
        self->opened = true;
        self->index = index;
        self->bits = stats.bits;
        self->distance = stats.distance;
    }
    pthread_mutex_unlock(&self->lock);
    if (!open)
        return 0;
    free_index(index);
    PyErr_SetString(PyExc_ValueError, "this HammingIndex was opened before");
    return -1;
}

static PyObject *py_open(PyObject *object, PyObject *given) {
    PyObject *path = NULL;
    doppel_index *index = NULL;
    doppel_error error = {0};
    doppel_status status;
    if (!PyUnicode_FSConverter(given, &path))
        return NULL;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = doppel_index_open(name, &index, &error);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (status != DOPPEL_OK)
        return raise_error(status, &error, NULL);
    return adopt((index_object *)object, index) < 0 ? NULL : none();
}

static PyObject *py_create(PyObject *object, PyObject *arguments) {
    doppel_index_options options = {.size = sizeof options};
    PyObject *count, *memory;
    doppel_index *index = NULL;
    doppel_error error = {0};
    if (!PyArg_ParseTuple(arguments, "iiOO:create", &options.bits, &options.distance, &count, &memory) ||
        take_number(count, "count", &options.count) < 0 || take_number(memory, "memory", &options.memory) < 0)
        return NULL;
    doppel_status status = doppel_index_create(&options, &index, &error);
    if (status != DOPPEL_OK)
        return raise_error(status, &error, NULL);
    return adopt((index_object *)object, index) < 0 ? NULL : none();
}

/* ---- the type ---- */

static PyObject *py_close(PyObject *object, PyObject *unused) {
    (void)unused;
    index_object *self = (index_object *)object;
    if (self->forks != fork_count())
        return none();
    pthread_mutex_lock(&self->lock);
    self->closed = true;
    doppel_index *index = take_unused(self);
    pthread_mutex_unlock(&self->lock);
    free_index(index);
    return none();
}

static PyObject *index_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    (void)arguments, (void)names;
    index_object *self = (index_object *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->forks = fork_count();
    self->process = (long)getpid();
    pthread_mutex_init(&self->writer, NULL);
    pthread_mutex_init(&self->lock, NULL);
    return (PyObject *)self;
}

static void index_dealloc(PyObject *object) {
    index_object *self = (index_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->forks == fork_count()) {
        free_index(self->index);
        pthread_mutex_destroy(&self->writer);
        pthread_mutex_destroy(&self->lock);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *get_bits(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromLong(((index_object *)object)->bits);
}

static PyObject *get_distance(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromLong(((index_object *)object)->distance);
}

static PyObject *get_closed(PyObject *object, void *unused) {
    (void)unused;
    index_object *self = (index_object *)object;
    return PyBool_FromLong(self->closed || !self->opened);
}

static PyMethodDef methods[] = {{"_create", py_create, METH_VARARGS, NULL},
                                {"_open", py_open, METH_O, NULL},
                                {"_add", py_add, METH_VARARGS, NULL},
                                {"_add_batch", py_add_batch, METH_VARARGS, NULL},
                                {"_remove", py_remove, METH_VARARGS, NULL},
                                {"_expire", py_expire, METH_O, NULL},
                                {"_merge", py_merge, METH_O, NULL},
                                {"_compact", py_compact, METH_NOARGS, NULL},
                                {"_validate", py_validate, METH_NOARGS, NULL},
                                {"_find", py_find, METH_VARARGS, NULL},
                                {"_find_batch", py_find_batch, METH_VARARGS, NULL},
                                {"_contains", py_contains, METH_VARARGS, NULL},
                                {"_stats", py_stats, METH_NOARGS, NULL},
                                {"_save", py_save, METH_O, NULL},
                                {"_close", py_close, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static PyGetSetDef members[] = {{"bits", get_bits, NULL, "The width of its fingerprints.", NULL},
                                {"distance", get_distance, NULL, "The distance it was planned for.", NULL},
                                {"closed", get_closed, NULL, "Whether it was closed.", NULL},
                                {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {{Py_tp_doc, "What doppel.HammingIndex is made of."},
                              {Py_tp_new, index_new},
                              {Py_tp_dealloc, index_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, members},
                              {Py_sq_contains, index_contains},
                              {Py_sq_length, index_length},
                              {0, NULL}};

static PyType_Spec spec = {"doppel._doppel.HammingIndex", sizeof(index_object), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

int init_index(PyObject *module) {
    doppel_module.index = add_type(module, &spec);
    return doppel_module.index ? 0 : -1;
}
