/* engine.c - Engine: the documents that were seen, in memory, in a folder or in Redis.
 *
 *     _doppel.Engine(path, options)       options: a dict of what doppel/_engine.py names; None means the default
 *     check(document), add(document)      -> Verdict
 *     check_batch(documents, progress), add_batch(documents, progress)
 *                                         -> a list of Verdict; of Arrow data a dict of columns
 *     get(id), remove(id), similar(id_or_document, limit, similarity, distance)
 *     stats(), options(), expire(), compact(), backup(path), close(); verify(path), which opens nothing
 *
 * The library reads documents in place: it borrows the strings of Python and of Arrow during a call. A batch that is
 * longer than a piece is read twice: first all of it, so that an invalid document is reported before anything is added,
 * then a piece at a time, each one call of the library.
 *
 * Any number of threads may call; calls are counted, and close() waits until none is under way. In a forked process
 * calls of an Engine that the parent opened are refused, and it is never closed there: its files are the parent's. */
#include "engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A piece of a batch: this many documents, or fewer that have this many bytes. The library is as fast with it as with
 * more, and it takes much less than a second, after which signals are served and progress is reported. */
enum { PIECE = 1000 };
#define PIECE_BYTES ((size_t)8 << 20)

typedef struct engine_object {
    PyObject_HEAD;
    doppel_engine *engine;     /* NULL: closed */
    PyObject *recipe;          /* the caller's Recipe, which must outlive the engine; or NULL */
    doppel_recipe *own_recipe; /* made of the caller's text; or NULL */
    document_keys keys;
    bool connects;        /* to a server, whose answer a call may have to wait for */
    unsigned forks;       /* fork_count() when this was opened */
    long process;         /* that opened it */
    pthread_mutex_t lock; /* of what is below, and of `engine` */
    pthread_cond_t left;  /* the last call has ended */
    size_t calls;         /* under way */
    bool closing;
} engine_object;

/* ---- forks ---- */

static bool is_inherited(const engine_object *self) {
    return self->forks != fork_count();
}

/* ---- calls ---- */

/* A call of the library: what it takes and what it gives. */
typedef struct engine_call {
    long_call call;
    engine_object *self;
    doppel_engine *engine;
    doppel_status (*work)(struct engine_call *c);
    const doppel_item *items;
    size_t count;
    doppel_verdict *verdicts;
    doppel_error *errors;
    doppel_slice id;
    const char *path;
    const doppel_similar_options *similar;
    doppel_stored_list *list;
    uint64_t number;
    bool removed;
    struct engine_call *outer; /* of the same thread, in which Python code runs that made this one */
    /* For the watcher of a call that may have to wait for a server. */
    bool done;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} engine_call;

/* The long call that this thread waits for: Python code that runs meanwhile (progress, signal handlers) must not close
 * its engine, since that would wait for the call. */
static _Thread_local engine_call *under_way;

/* Counts a call in; NULL: an exception. */
static doppel_engine *enter(engine_object *self) {
    if (is_inherited(self)) {
        PyErr_Format(PyExc_RuntimeError, "this Engine was opened by another process (%ld): open it again in this one",
                     self->process);
        return NULL;
    }
    pthread_mutex_lock(&self->lock);
    doppel_engine *engine = self->closing ? NULL : self->engine;
    self->calls += engine != NULL;
    pthread_mutex_unlock(&self->lock);
    if (!engine)
        PyErr_SetString(PyExc_ValueError, "this Engine is closed");
    return engine;
}

static void leave(engine_object *self) {
    pthread_mutex_lock(&self->lock);
    if (!--self->calls)
        pthread_cond_broadcast(&self->left);
    pthread_mutex_unlock(&self->lock);
}

/* Looks every tenth of a second whether the call was asked to stop, and then ends its wait for the server: once, since
 * each doppel_engine_stop_waiting starts the time allowed for an answer again. */
static void *watch(void *argument) {
    engine_call *c = argument;
    bool stopped = false;
    pthread_mutex_lock(&c->lock);
    while (!c->done && !stopped) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&c->changed, &c->lock, &until);
        stopped = c->call.stop;
        if (stopped && !c->done)
            doppel_engine_stop_waiting(c->engine);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* The work of a long call, beside a watcher if it may have to wait for a server. */
static doppel_status work_watched(void *argument) {
    engine_call *c = argument;
    pthread_t watcher;
    c->done = false;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    bool watched = c->self && c->self->connects && !pthread_create(&watcher, NULL, watch, c);
    doppel_status status = c->work(c);
    pthread_mutex_lock(&c->lock);
    c->done = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (watched)
        pthread_join(watcher, NULL);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    return status;
}

/* Carries out a call that may take long: signals and progress are served. */
static doppel_status perform_long(engine_call *c) {
    c->outer = under_way;
    under_way = c;
    doppel_status status = run_long_call(&c->call, work_watched, c);
    under_way = c->outer;
    return status;
}

/* Carries out a call that is short, unless a server has to answer. */
static doppel_status perform(engine_call *c) {
    if (c->self->connects)
        return perform_long(c);
    PyThreadState *state = PyEval_SaveThread();
    doppel_status status = c->work(c);
    PyEval_RestoreThread(state);
    return status;
}

/* ---- check and add ---- */

static const value_place the_document = {"document", -1};

static doppel_status work_check(engine_call *c) {
    return doppel_engine_check(c->engine, c->items, c->verdicts, &c->call.error);
}

static doppel_status work_add(engine_call *c) {
    return doppel_engine_add(c->engine, c->items, c->verdicts, &c->call.error);
}

static PyObject *run_one(engine_object *self, PyObject *document, doppel_status (*work)(engine_call *c)) {
    one_item one;
    item_list list = list_of_one(&one);
    doppel_verdict verdict = {0};
    PyObject *made = NULL;
    engine_call c = {.self = self, .work = work, .items = &one.item, .verdicts = &verdict};
    if (!read_document(&self->keys, &list, the_document, document) && (c.engine = enter(self))) {
        doppel_status status = perform(&c);
        leave(self);
        made = status == DOPPEL_OK ? make_verdict(&verdict) : raise_error(status, &c.call.error, "document");
    }
    doppel_verdict_free(&verdict);
    release_items(&list);
    return made;
}

static PyObject *engine_check(PyObject *self, PyObject *document) {
    return run_one((engine_object *)self, document, work_check);
}

static PyObject *engine_add(PyObject *self, PyObject *document) {
    return run_one((engine_object *)self, document, work_add);
}

/* ---- batches ---- */

/* A batch call: its documents, the piece at hand, and the verdicts so far. */
typedef struct batch_call {
    engine_call c;
    document_source source;
    item_list piece;
    size_t room;    /* of a piece, in documents */
    PyObject *list; /* of verdicts; NULL for Arrow data: */
    verdict_table table;
    size_t done, failed; /* documents that were decided, and those that could not be */
    size_t first_failed;
    doppel_error why; /* of that one */
} batch_call;

/* Counts the documents of a piece that is done, for progress. */
static doppel_status count_done(engine_call *c, doppel_status status) {
    if (status == DOPPEL_OK)
        c->call.done += c->count;
    return status;
}

static doppel_status work_check_batch(engine_call *c) {
    return count_done(c,
                      doppel_engine_check_batch(c->engine, c->items, c->count, c->verdicts, c->errors, &c->call.error));
}

static doppel_status work_add_batch(engine_call *c) {
    return count_done(c,
                      doppel_engine_add_batch(c->engine, c->items, c->count, c->verdicts, c->errors, &c->call.error));
}

/* Memory for a piece, and for the verdicts on all documents; -1: an exception. */
static int make_room(batch_call *b) {
    size_t all = b->source.count, room = all < PIECE ? all + 1 : PIECE, fields = b->source.keys->count - KEYS;
    b->room = room;
    b->piece.items = malloc(room * sizeof *b->piece.items);
    b->piece.extra = malloc((fields * room + 1) * sizeof *b->piece.extra);
    b->c.verdicts = calloc(room, sizeof *b->c.verdicts);
    b->c.errors = calloc(room, sizeof *b->c.errors);
    bool good = b->piece.items && b->piece.extra && b->c.verdicts && b->c.errors;
    if (b->source.tuple) {
        b->piece.held = malloc(room * MOST_KEYS * sizeof *b->piece.held);
        b->list = PyList_New((Py_ssize_t)all);
        good = good && b->piece.held && b->list;
    } else {
        b->piece.rooms = malloc(room * ITEM_ROOM);
        good = good && b->piece.rooms && verdict_table_init(&b->table, all);
    }
    if (!good)
        PyErr_NoMemory();
    return good ? 0 : -1;
}

static void free_batch(batch_call *b) {
    release_items(&b->piece);
    for (size_t i = 0; i < b->room && b->c.verdicts; i++)
        doppel_verdict_free(&b->c.verdicts[i]);
    verdict_table_free(&b->table);
    free(b->piece.items);
    free(b->piece.extra);
    free(b->piece.held);
    free(b->piece.rooms);
    free(b->c.verdicts);
    free(b->c.errors);
    Py_XDECREF(b->list);
    source_close(&b->source);
}

/* Reads documents until a piece is full, or there are no more. */
static int read_piece(batch_call *b) {
    release_items(&b->piece);
    while (b->source.next < b->source.count && b->piece.count < PIECE && b->piece.bytes < PIECE_BYTES)
        if (source_read(&b->source, &b->piece))
            return -1;
    return 0;
}

/* Reads the first piece. If there is more than that, all documents are read before, once, so that a bad one is found
 * before anything is added. */
static int read_first(batch_call *b) {
    if (read_piece(b))
        return -1;
    if (b->source.next == b->source.count)
        return 0;
    while (b->source.next < b->source.count) {
        release_items(&b->piece);
        if (source_read(&b->source, &b->piece) || (b->source.next % PIECE == 0 && PyErr_CheckSignals()))
            return -1;
    }
    return source_rewind(&b->source) ? -1 : read_piece(b);
}

/* Keeps the verdict on one document (NULL: there is none); -1: an exception. */
static int put_verdict(batch_call *b, size_t number, const doppel_verdict *verdict) {
    if (b->list) {
        PyObject *made = verdict ? make_verdict(verdict) : none();
        return made ? PyList_SetItem(b->list, (Py_ssize_t)number, made) : -1;
    }
    if (verdict_table_put(&b->table, number, verdict))
        return 0;
    PyErr_NoMemory();
    return -1;
}

/* Keeps what came of a piece. */
static int take_verdicts(batch_call *b) {
    for (size_t i = 0; i < b->piece.count; i++, b->done++) {
        const doppel_error *why = &b->c.errors[i];
        if (why->code != DOPPEL_OK && !b->failed++) {
            b->why = *why;
            b->first_failed = b->done;
        }
        if (put_verdict(b, b->done, why->code == DOPPEL_OK ? &b->c.verdicts[i] : NULL))
            return -1;
    }
    return 0;
}

/* Raises what ended the call at the piece at hand. */
static int fail_piece(batch_call *b, doppel_status status) {
    char where[80];
    doppel_error *why = &b->c.call.error;
    size_t used = strlen(why->message);
    if (b->c.work == work_add_batch && b->done)
        snprintf(why->message + used, sizeof why->message - used, " (%zu of %zu documents were added before)",
                 b->done - b->failed, b->source.count);
    snprintf(where, sizeof where, "documents[%zu:%zu]", b->done, b->done + b->piece.count);
    raise_error(status, why, where);
    return -1;
}

static int run_pieces(batch_call *b) {
    b->c.call.total = b->source.count;
    while (b->piece.count) {
        b->c.items = b->piece.items;
        b->c.count = b->piece.count;
        doppel_status status = perform_long(&b->c);
        if (status != DOPPEL_OK)
            return fail_piece(b, status);
        if (take_verdicts(b) || PyErr_CheckSignals() || read_piece(b))
            return -1;
    }
    return 0;
}

/* Raises what was wrong with the first document that was refused; the exception has the verdicts on the others. */
static void raise_refused(batch_call *b, PyObject *verdicts) {
    char where[64];
    size_t used = strlen(b->why.message);
    PyObject *type, *value, *traceback;
    snprintf(b->why.message + used, sizeof b->why.message - used, " (%zu of %zu documents were %s)",
             b->done - b->failed, b->done, b->c.work == work_add_batch ? "added" : "checked");
    snprintf(where, sizeof where, "documents[%zu]", b->first_failed);
    raise_error(b->why.code, &b->why, where);
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && PyObject_SetAttrString(value, "verdicts", verdicts))
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

/* Gives the verdicts, a list or a dict of columns; NULL: an exception. */
static PyObject *end_batch(batch_call *b) {
    PyObject *made = b->list ? b->list : verdict_table_finish(&b->table);
    b->list = NULL;
    if (made && b->failed) {
        raise_refused(b, made);
        Py_CLEAR(made);
    }
    return made;
}

static PyObject *run_batch(engine_object *self, PyObject *arguments, doppel_status (*work)(engine_call *c)) {
    batch_call b = {.c = {.self = self, .work = work}};
    PyObject *documents, *made = NULL;
    if (!PyArg_ParseTuple(arguments, "OO", &documents, &b.c.call.progress))
        return NULL;
    if (!source_open(&b.source, &self->keys, documents) && !make_room(&b) && !read_first(&b) &&
        (b.c.engine = enter(self))) {
        int code = run_pieces(&b);
        leave(self);
        made = code ? NULL : end_batch(&b);
    }
    free_batch(&b);
    return made;
}

static PyObject *engine_check_batch(PyObject *self, PyObject *arguments) {
    return run_batch((engine_object *)self, arguments, work_check_batch);
}

static PyObject *engine_add_batch(PyObject *self, PyObject *arguments) {
    return run_batch((engine_object *)self, arguments, work_add_batch);
}

/* ---- get, remove, similar ---- */

static doppel_status work_get(engine_call *c) {
    return doppel_engine_get(c->engine, c->id, c->list, &c->call.error);
}

static doppel_status work_remove(engine_call *c) {
    return doppel_engine_remove(c->engine, c->id, &c->removed, &c->call.error);
}

/* The id as text, held by *held. */
static int read_id(PyObject *id, PyObject **held, doppel_slice *slice) {
    static const value_place place = {"id", -1};
    Py_INCREF(id);
    *held = id;
    if (!slice_of_id(place, NULL, held, slice))
        return 0;
    Py_CLEAR(*held);
    return -1;
}

static int bits_of(doppel_engine *engine) {
    return doppel_recipe_bits(doppel_engine_get_options(engine)->recipe);
}

static PyObject *engine_get(PyObject *object, PyObject *id) {
    engine_object *self = (engine_object *)object;
    doppel_stored_list list = {0};
    PyObject *held, *made = NULL;
    engine_call c = {.self = self, .work = work_get, .list = &list};
    if (read_id(id, &held, &c.id))
        return NULL;
    if ((c.engine = enter(self))) {
        doppel_status status = perform(&c);
        int bits = bits_of(c.engine);
        leave(self);
        if (status != DOPPEL_OK)
            raise_error(status, &c.call.error, NULL);
        else
            made = list.count ? make_stored(&list.stored[0], bits, false) : none();
    }
    doppel_stored_list_free(&list);
    Py_DECREF(held);
    return made;
}

static PyObject *engine_remove(PyObject *object, PyObject *id) {
    engine_object *self = (engine_object *)object;
    PyObject *held, *made = NULL;
    engine_call c = {.self = self, .work = work_remove};
    if (read_id(id, &held, &c.id))
        return NULL;
    if ((c.engine = enter(self))) {
        doppel_status status = perform(&c);
        leave(self);
        made = status == DOPPEL_OK ? PyBool_FromLong(c.removed) : raise_error(status, &c.call.error, NULL);
    }
    Py_DECREF(held);
    return made;
}

/* A document by its content or, with `id`, one that is remembered, by its id or URL. */
static doppel_status work_similar(engine_call *c) {
    doppel_stored_list known = {0};
    doppel_item item = *c->items;
    doppel_status status = DOPPEL_OK;
    if (c->id.data) {
        status = doppel_engine_get(c->engine, c->id, &known, &c->call.error);
        if (status == DOPPEL_OK && known.count)
            item.document.id = known.stored[0].id;
        if (status == DOPPEL_OK && !known.count) {
            status = DOPPEL_ERROR_INPUT;
            snprintf(c->call.error.message, sizeof c->call.error.message, "%.*s: no document has this id or URL",
                     (int)(c->id.length < 200 ? c->id.length : 200), c->id.data);
        }
    }
    if (status == DOPPEL_OK)
        status = doppel_engine_find_similar(c->engine, &item, c->similar, c->list, &c->call.error);
    doppel_stored_list_free(&known);
    return status;
}

/* Whether a mapping names a document by its id alone. */
static bool is_id_alone(PyObject *mapping) {
    return PyMapping_Size(mapping) == 1 && PyMapping_HasKeyString(mapping, "id");
}

/* What is asked about: an id, alone or as the only member of a mapping; or a document, of which the id does not count.
 */
static int read_asked(engine_object *self, PyObject *asked, item_list *list, doppel_slice *id) {
    bool is_mapping = PyObject_HasAttrString(asked, "keys");
    if (is_mapping && !is_id_alone(asked)) {
        int code = read_document(&self->keys, list, the_document, asked);
        list->items->document.id = (doppel_slice){"", 0};
        return code;
    }
    PyObject *value = is_mapping ? PyMapping_GetItemString(asked, "id") : asked;
    *list->items = (doppel_item){.size = sizeof *list->items, .document.text.data = ""};
    int code = value ? read_id(value, list->held, id) : -1;
    list->held_count = !code;
    if (is_mapping)
        Py_XDECREF(value);
    return code;
}

static PyObject *make_similar(const doppel_stored_list *list, int bits) {
    PyObject *made = PyList_New((Py_ssize_t)list->count);
    for (size_t i = 0; made && i < list->count; i++) {
        PyObject *stored = make_stored(&list->stored[i], bits, true);
        if (!stored || PyList_SetItem(made, (Py_ssize_t)i, stored))
            Py_CLEAR(made);
    }
    return made;
}

/* similar(id_or_document, limit, similarity, distance): distance -1 is by similarity. */
static PyObject *engine_similar(PyObject *object, PyObject *arguments) {
    engine_object *self = (engine_object *)object;
    PyObject *asked, *made = NULL;
    one_item one;
    item_list items = list_of_one(&one);
    doppel_stored_list list = {0};
    doppel_similar_options options = {.size = sizeof options};
    unsigned long long limit;
    if (!PyArg_ParseTuple(arguments, "OKdi", &asked, &limit, &options.similarity, &options.distance))
        return NULL;
    options.limit = limit;
    options.distance_zero = options.distance == 0;
    options.distance = options.distance > 0 ? options.distance : 0;
    engine_call c = {.self = self, .work = work_similar, .items = &one.item, .similar = &options, .list = &list};
    if (!read_asked(self, asked, &items, &c.id) && (c.engine = enter(self))) {
        doppel_status status = perform_long(&c);
        int bits = bits_of(c.engine);
        leave(self);
        made = status == DOPPEL_OK ? make_similar(&list, bits) : raise_error(status, &c.call.error, NULL);
    }
    doppel_stored_list_free(&list);
    release_items(&items);
    return made;
}

/* ---- the index as a whole ---- */

static doppel_status work_expire(engine_call *c) {
    return doppel_engine_expire(c->engine, &c->number, &c->call.error);
}

static doppel_status work_compact(engine_call *c) {
    return doppel_engine_compact(c->engine, &c->call.error);
}

static doppel_status work_backup(engine_call *c) {
    return doppel_engine_backup(c->engine, c->path, &c->call.error);
}

/* Counts a call in and carries it out; -1: an exception. */
static int perform_whole(engine_call *c) {
    if (!(c->engine = enter(c->self)))
        return -1;
    doppel_status status = perform_long(c);
    leave(c->self);
    if (status != DOPPEL_OK)
        raise_error(status, &c->call.error, NULL);
    return status == DOPPEL_OK ? 0 : -1;
}

static PyObject *engine_expire(PyObject *self, PyObject *unused) {
    engine_call c = {.self = (engine_object *)self, .work = work_expire};
    (void)unused;
    return perform_whole(&c) ? NULL : PyLong_FromUnsignedLongLong(c.number);
}

static PyObject *engine_compact(PyObject *self, PyObject *unused) {
    engine_call c = {.self = (engine_object *)self, .work = work_compact};
    (void)unused;
    return perform_whole(&c) ? NULL : none();
}

static PyObject *engine_backup(PyObject *self, PyObject *path) {
    engine_call c = {.self = (engine_object *)self, .work = work_backup};
    PyObject *bytes = NULL, *made = NULL;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    c.path = PyBytes_AsString(bytes);
    made = perform_whole(&c) ? NULL : none();
    Py_DECREF(bytes);
    return made;
}

typedef struct stats_call {
    engine_call c;
    doppel_engine_stats stats;
} stats_call;

static doppel_status work_stats(engine_call *c) {
    doppel_engine_get_stats(c->engine, &((stats_call *)c)->stats);
    return DOPPEL_OK;
}

static PyObject *engine_stats(PyObject *object, PyObject *unused) {
    engine_object *self = (engine_object *)object;
    stats_call s = {.c = {.self = self, .work = work_stats}};
    (void)unused;
    if (!(s.c.engine = enter(self)))
        return NULL;
    doppel_status status = perform(&s.c);
    leave(self);
    return status == DOPPEL_OK ? make_stats(&s.stats) : raise_error(status, &s.c.call.error, NULL);
}

static PyObject *engine_get_options(PyObject *object, PyObject *unused) {
    engine_object *self = (engine_object *)object;
    doppel_engine *engine = enter(self);
    (void)unused;
    if (!engine)
        return NULL;
    PyObject *made = make_engine_options(doppel_engine_get_options(engine));
    leave(self);
    return made;
}

/* ---- opening and closing ---- */

typedef struct open_call {
    engine_call c;
    const doppel_engine_options *options;
} open_call;

static doppel_status work_open(engine_call *c) {
    return doppel_engine_open(c->path, ((open_call *)c)->options, &c->engine, &c->call.error);
}

/* Opens the engine; -1: an exception. A message about a folder that does not name it is led by it. */
static int open_engine(engine_object *self, const char *path, const doppel_engine_options *options) {
    open_call o = {.c = {.self = NULL, .work = work_open, .path = path}, .options = options};
    doppel_engine_needs needs = {0};
    doppel_status status = DOPPEL_OK;
    if (path)
        status = doppel_engine_get_needs(path, &needs, &o.c.call.error);
    self->connects = needs.connects;
    if (status == DOPPEL_OK)
        status = perform_long(&o.c);
    if (status == DOPPEL_OK) {
        self->engine = o.c.engine;
        return document_keys_init(&self->keys, doppel_engine_get_options(self->engine)->fields);
    }
    doppel_error *why = &o.c.call.error;
    doppel_engine_close(o.c.engine); /* not NULL: it was opened, but the call was interrupted */
    if (needs.folder && !why->file[0] && !strstr(why->message, path))
        snprintf(why->file, sizeof why->file, "%s", path);
    raise_error(status, why, NULL);
    return -1;
}

/* Takes the recipe of the options, and holds it. */
static int hold_recipe(engine_object *self, PyObject *dict, doppel_engine_options *options) {
    PyObject *recipe = PyDict_GetItemString(dict, "recipe");
    if (!recipe || recipe == Py_None)
        return 0;
    if (get_recipe(recipe, &options->recipe, &self->own_recipe))
        return -1;
    Py_INCREF(recipe);
    self->recipe = recipe;
    return 0;
}

static PyObject *engine_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *path, *dict, *bytes = NULL;
    doppel_engine_options options = {.size = sizeof options};
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "OO!", &path, &PyDict_Type, &dict))
        return NULL;
    if (path != Py_None && !PyUnicode_FSConverter(path, &bytes))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    engine_object *self = (engine_object *)allocate(type, 0);
    if (self) {
        pthread_mutex_init(&self->lock, NULL);
        pthread_cond_init(&self->left, NULL);
        self->forks = fork_count();
        self->process = (long)getpid();
        if (read_engine_options(dict, &options) || hold_recipe(self, dict, &options) ||
            open_engine(self, bytes ? PyBytes_AsString(bytes) : NULL, &options))
            Py_CLEAR(self);
    }
    Py_XDECREF(bytes);
    return (PyObject *)self;
}

/* Closes it once no call is under way. An engine that another process opened is left alone. */
static void close_engine(engine_object *self) {
    if (is_inherited(self))
        return;
    PyThreadState *state = PyEval_SaveThread();
    pthread_mutex_lock(&self->lock);
    self->closing = true;
    if (self->calls)
        doppel_engine_stop_waiting(self->engine);
    while (self->calls)
        pthread_cond_wait(&self->left, &self->lock);
    doppel_engine *engine = self->engine;
    self->engine = NULL;
    pthread_mutex_unlock(&self->lock);
    doppel_engine_close(engine);
    PyEval_RestoreThread(state);
}

static PyObject *engine_close(PyObject *object, PyObject *unused) {
    engine_object *self = (engine_object *)object;
    (void)unused;
    for (const engine_call *c = under_way; c; c = c->outer)
        if (c->self == self)
            return PyErr_Format(PyExc_RuntimeError, "close() during another call of this Engine by the same thread");
    close_engine(self);
    return none();
}

static void engine_dealloc(PyObject *object) {
    engine_object *self = (engine_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    bool inherited = is_inherited(self);
    close_engine(self);
    document_keys_free(&self->keys);
    if (!inherited) {
        Py_XDECREF(self->recipe);
        doppel_recipe_free(self->own_recipe);
        pthread_cond_destroy(&self->left);
        pthread_mutex_destroy(&self->lock);
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *engine_is_closed(PyObject *object, void *unused) {
    engine_object *self = (engine_object *)object;
    (void)unused;
    if (is_inherited(self))
        return PyBool_FromLong(0);
    pthread_mutex_lock(&self->lock);
    bool closing = self->closing;
    pthread_mutex_unlock(&self->lock);
    return PyBool_FromLong(closing);
}

/* ---- verify ---- */

/* The findings about an index, each a line. */
typedef struct verify_call {
    engine_call c;
    doppel_verified verified;
    char *findings;
    size_t length, count;
    bool no_memory;
} verify_call;

static void note_finding(const char *what, void *user) {
    verify_call *v = user;
    size_t length = strlen(what) + 1;
    char *more = realloc(v->findings, v->length + length);
    v->no_memory = v->no_memory || !more;
    if (!more)
        return;
    memcpy(more + v->length, what, length);
    v->findings = more;
    v->length += length;
    v->count++;
}

static doppel_status work_verify(engine_call *c) {
    verify_call *v = (verify_call *)c;
    return doppel_engine_verify(c->path, note_finding, v, &v->verified, &c->call.error);
}

static PyObject *make_verified(const verify_call *v) {
    PyObject *findings = PyList_New(0);
    for (const char *p = v->findings; findings && p && p < v->findings + v->length; p += strlen(p) + 1) {
        PyObject *text = string_or_none(doppel_slice_of(p));
        if (!text || PyList_Append(findings, text))
            Py_CLEAR(findings);
        Py_XDECREF(text);
    }
    if (!findings)
        return NULL;
    const doppel_verified *r = &v->verified;
    return Py_BuildValue("{sK sK sK sK sK sN}", "documents", (unsigned long long)r->documents, "copies",
                         (unsigned long long)r->copies, "removed", (unsigned long long)r->removed, "damaged",
                         (unsigned long long)r->damaged, "bytes", (unsigned long long)r->bytes, "findings", findings);
}

/* Gives what was found, a dict, whether that is good or bad; raises only what prevented the look. */
static PyObject *engine_verify(PyObject *unused, PyObject *path) {
    verify_call v = {.c = {.work = work_verify}};
    PyObject *bytes = NULL, *made;
    (void)unused;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    v.c.path = PyBytes_AsString(bytes);
    doppel_status status = perform_long(&v.c);
    if (v.no_memory)
        made = PyErr_NoMemory();
    else if (status != DOPPEL_OK && !(status == DOPPEL_ERROR_STORE && v.count))
        made = raise_error(status, &v.c.call.error, NULL);
    else
        made = make_verified(&v);
    free(v.findings);
    Py_DECREF(bytes);
    return made;
}

/* ---- the type ---- */

static PyMethodDef engine_methods[] = {
    {"check", engine_check, METH_O, NULL},
    {"add", engine_add, METH_O, NULL},
    {"check_batch", engine_check_batch, METH_VARARGS, NULL},
    {"add_batch", engine_add_batch, METH_VARARGS, NULL},
    {"get", engine_get, METH_O, NULL},
    {"remove", engine_remove, METH_O, NULL},
    {"similar", engine_similar, METH_VARARGS, NULL},
    {"stats", engine_stats, METH_NOARGS, NULL},
    {"options", engine_get_options, METH_NOARGS, NULL},
    {"expire", engine_expire, METH_NOARGS, NULL},
    {"compact", engine_compact, METH_NOARGS, NULL},
    {"backup", engine_backup, METH_O, NULL},
    {"close", engine_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef engine_members[] = {
    {"closed", engine_is_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot engine_slots[] = {
    {Py_tp_new, engine_new},
    {Py_tp_dealloc, engine_dealloc},
    {Py_tp_methods, engine_methods},
    {Py_tp_getset, engine_members},
    {0, NULL},
};

static PyType_Spec engine_spec = {
    .name = "doppel._doppel.Engine",
    .basicsize = sizeof(engine_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = engine_slots,
};

static PyMethodDef engine_functions[] = {
    {"engine_verify", engine_verify, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int init_engine(PyObject *module) {
    if (init_engine_values())
        return -1;
    doppel_module.engine = add_type(module, &engine_spec);
    return doppel_module.engine ? add_functions(module, engine_functions) : -1;
}
