/* engine.c - Engine: the documents that were seen, in memory, in a folder or in Redis.
 *
 *     _doppel.Engine(path, options)       options: a dict of what doppel/_engine.py names; None means the default
 *     check(document), add(document)      -> Verdict
 *     check_batch(documents, progress), add_batch(documents, progress)
 *                                         -> a list of Verdict; of Arrow data a dict of columns
 *     get(id), remove(id), similar(id_or_document, limit, similarity, distance)
 *     stats(), options(), expire(), compact(), backup(path), close(); verify(path), which opens nothing
 *
 * Documents are read where they are: strings of Python and of Arrow are lent to the library for the time of a call. A
 * batch is read twice when it is longer than a piece: first all of it, so that a wrong document is reported before
 * anything is added, then a piece at a time, each one call of the library.
 *
 * Any number of threads may call; each call is counted, and close() waits until none is under way. An Engine that was
 * inherited by a forked process is refused there and never closed: what it has open is the parent's. */
#include "module.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A piece of a batch: this many documents, or fewer that have this many bytes. The library is as fast with it as with
 * more, and it takes much less than a second, after which Ctrl-C is served and progress told. */
enum { PIECE = 1000 };
#define PIECE_BYTES ((size_t)8 << 20)

/* The members of a document, in the order in which they are read; the engine's fields follow. */
enum { KEY_ID, KEY_URL, KEY_TITLE, KEY_TEXT, KEY_HTML, KEY_TTL, KEYS };
enum { MOST_FIELDS = 16, MOST_KEYS = KEYS + MOST_FIELDS };
static const char *const key_names[KEYS] = {"id", "url", "title", "text", "html", "ttl"};

typedef struct engine_object {
    PyObject_HEAD doppel_engine *engine; /* NULL: closed */
    PyObject *recipe;                    /* the caller's Recipe, which must outlive the engine; or NULL */
    doppel_recipe *own_recipe;           /* made of the caller's text; or NULL */
    PyObject *keys[MOST_KEYS];           /* names of members, as str */
    size_t key_count;
    bool connects;  /* to a server, whose answer a call may have to wait for */
    unsigned forks; /* of the process that opened it, and that process */
    long process;
    pthread_mutex_t lock;
    pthread_cond_t left; /* a call has ended */
    size_t calls;        /* under way */
    bool closing;
} engine_object;

/* ---- forks ---- */

/* How often the process, and those it comes from, were forked. */
static _Atomic unsigned forks;

static void count_fork(void) {
    atomic_fetch_add(&forks, 1);
}

static bool is_inherited(const engine_object *self) {
    return self->forks != atomic_load_explicit(&forks, memory_order_relaxed);
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
    bool removed, done;
    /* The watcher of a call that may have to wait for a server. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct engine_call *outer; /* of the same thread, which serves signals and progress meanwhile */
} engine_call;

/* The long call that this thread waits for: Python code that runs meanwhile must not wait for it to end. */
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

/* Looks every tenth of a second whether the call is to end, and lets it fail if the server does not answer. */
static void *watch(void *argument) {
    engine_call *c = argument;
    pthread_mutex_lock(&c->lock);
    while (!c->done) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&c->changed, &c->lock, &until);
        if (c->call.stop && !c->done)
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

/* ---- durations ---- */

static const char ttl_forms[] = "a time such as \"30d\", \"12h\", \"90m\" or 3600 (seconds), a timedelta, or \"never\"";

static bool ttl_of_number(double seconds, uint64_t *ttl) {
    if (!(seconds > 0 && seconds <= UINT32_MAX))
        return false;
    *ttl = (uint64_t)ceil(seconds);
    return true;
}

/* "30d", "12h", "90m", "45s", "2w", "45" or "never". */
static bool ttl_of_text(doppel_slice text, uint64_t *ttl) {
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
    char digits[40], *end;
    double unit = 1;
    if (text.length == 5 && !memcmp(text.data, "never", 5)) {
        *ttl = DOPPEL_NEVER;
        return true;
    }
    if (!text.length || text.length >= sizeof digits || !strchr("0123456789.", text.data[0]))
        return false;
    memcpy(digits, text.data, text.length);
    digits[text.length] = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (digits[text.length - 1] == units[i].unit) {
            unit = units[i].seconds;
            digits[text.length - 1] = 0;
        }
    double number = PyOS_string_to_double(digits, &end, NULL);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return !*end && ttl_of_number(number * unit, ttl);
}

/* Of a value of Python. 1: done; 0: it is none; -1: an exception. */
static int ttl_of_object(PyObject *value, uint64_t *ttl) {
    if (PyUnicode_Check(value)) {
        doppel_slice text;
        Py_ssize_t length;
        text.data = PyUnicode_AsUTF8AndSize(value, &length);
        if (!text.data)
            return -1;
        text.length = (size_t)length;
        return ttl_of_text(text, ttl);
    }
    PyObject *number = NULL;
    if (PyObject_HasAttrString(value, "total_seconds"))
        number = PyObject_CallMethod(value, "total_seconds", NULL);
    else if (!PyBool_Check(value) && (PyFloat_Check(value) || PyIndex_Check(value)))
        number = PyNumber_Float(value);
    else
        return 0;
    if (!number)
        return -1;
    double seconds = PyFloat_AsDouble(number);
    Py_DECREF(number);
    if (seconds == -1 && PyErr_Occurred())
        return -1;
    return ttl_of_number(seconds, ttl);
}

/* ---- documents ---- */

/* Where a document comes from, for messages: "document", or "documents[3]" of a batch. */
typedef struct document_place {
    const char *name;
    Py_ssize_t number; /* -1: it is the only one */
} document_place;

static const document_place the_document = {"document", -1};

/* Documents on their way to the library: items, what they borrow from, and how much that is. */
typedef struct item_list {
    doppel_item *items;
    doppel_slice *extra; /* the fields of each: key_count - KEYS of them */
    PyObject **held;     /* at most MOST_KEYS a document */
    char *rooms; /* of Arrow data: where values that are no strings are written, MOST_KEYS a document; or NULL */
    size_t count, held_count, bytes;
} item_list;

/* What one document alone needs. */
typedef struct one_item {
    doppel_item item;
    doppel_slice extra[MOST_FIELDS];
    PyObject *held[MOST_KEYS];
} one_item;

static item_list list_of_one(one_item *one) {
    return (item_list){.items = &one->item, .extra = one->extra, .held = one->held};
}

static void release_items(item_list *list) {
    for (size_t i = 0; i < list->held_count; i++)
        Py_DECREF(list->held[i]);
    list->held_count = list->count = list->bytes = 0;
}

/* Raises `type` with a message that is led by the place, and by the name of a member (NULL: none). Steals `what`. */
static int refuse(PyObject *type, document_place place, PyObject *key, PyObject *what) {
    PyObject *at = place.number >= 0 ? PyUnicode_FromFormat("%s[%zd]", place.name, place.number)
                                     : PyUnicode_FromString(place.name);
    if (at && what && key)
        PyErr_Format(type, "%U[\"%U\"]: %U", at, key, what);
    else if (at && what)
        PyErr_Format(type, "%U: %U", at, what);
    Py_XDECREF(at);
    Py_XDECREF(what);
    return -1;
}

static int refuse_type(document_place place, PyObject *key, const char *expected, PyObject *value) {
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__name__");
    if (!name)
        return -1;
    refuse(PyExc_TypeError, place, key, PyUnicode_FromFormat("expected %s, not %U", expected, name));
    Py_DECREF(name);
    return -1;
}

/* A str that UTF-8 cannot hold: says where. */
static int refuse_surrogate(document_place place, PyObject *key) {
    PyObject *type, *value, *traceback;
    Py_ssize_t start = 0;
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        return -1;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && PyUnicodeEncodeError_GetStart(value, &start))
        PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return refuse(PyExc_ValueError, place, key,
                  PyUnicode_FromFormat("a lone surrogate at position %zd, which is no character", start));
}

static int refuse_ttl(document_place place, PyObject *key, PyObject *value) {
    if (PyErr_Occurred())
        return -1;
    return refuse(PyExc_ValueError, place, key, PyUnicode_FromFormat("expected %s; not %R", ttl_forms, value));
}

static int refuse_empty(document_place place) {
    return refuse(PyExc_ValueError, place, NULL, PyUnicode_FromString("has none of url, title, text and html"));
}

/* The bytes of a str, or of bytes that are UTF-8; -1: an exception. The value is held elsewhere. */
static int slice_of_object(document_place place, PyObject *key, PyObject *value, doppel_slice *slice) {
    Py_ssize_t length;
    if (PyUnicode_Check(value)) {
        slice->data = PyUnicode_AsUTF8AndSize(value, &length);
        slice->length = (size_t)length;
        return slice->data ? 0 : refuse_surrogate(place, key);
    }
    if (!PyBytes_Check(value))
        return refuse_type(place, key, "str", value);
    slice->data = PyBytes_AsString(value);
    slice->length = (size_t)PyBytes_Size(value);
    PyObject *text = PyUnicode_DecodeUTF8(slice->data, (Py_ssize_t)slice->length, NULL);
    if (!text) {
        PyErr_Clear();
        return refuse(PyExc_ValueError, place, key, PyUnicode_FromString("bytes that are not UTF-8"));
    }
    Py_DECREF(text);
    return 0;
}

/* The same for what may be a whole number: an id. Gives the object that the slice borrows from, in place of `value`. */
static int slice_of_id(document_place place, PyObject *key, PyObject **value, doppel_slice *slice) {
    if (PyUnicode_Check(*value) || PyBytes_Check(*value))
        return slice_of_object(place, key, *value, slice);
    if (PyBool_Check(*value) || !PyIndex_Check(*value))
        return refuse_type(place, key, "str or int", *value);
    PyObject *number = PyNumber_Index(*value), *text = number ? PyObject_Str(number) : NULL;
    Py_XDECREF(number);
    if (!text)
        return -1;
    Py_DECREF(*value);
    *value = text;
    return slice_of_object(place, key, text, slice);
}

static PyObject *call_of_module(const char *name, const char *function, PyObject *argument) {
    PyObject *module = PyImport_ImportModule(name);
    PyObject *made = module ? PyObject_CallMethod(module, function, "O", argument) : NULL;
    Py_XDECREF(module);
    return made;
}

/* A kept field as text, as JSON has it: numbers, truth values, lists and dicts; dates as ISO 8601. A new reference;
 * None: it counts as missing; NULL: an exception. */
static PyObject *text_of_field(PyObject *value) {
    if (PyUnicode_Check(value) || PyBytes_Check(value)) {
        Py_INCREF(value);
        return value;
    }
    if (PyObject_HasAttrString(value, "isoformat"))
        return PyObject_CallMethod(value, "isoformat", NULL);
    if (PyFloat_Check(value) && isnan(PyFloat_AsDouble(value)))
        Py_RETURN_NONE;
    if (!PyBool_Check(value) && !PyFloat_Check(value) && PyIndex_Check(value)) {
        PyObject *number = PyNumber_Index(value), *text = number ? PyObject_Str(number) : NULL;
        Py_XDECREF(number);
        return text;
    }
    return call_of_module("json", "dumps", value);
}

static int slice_of_field(document_place place, PyObject *key, PyObject **value, doppel_slice *slice) {
    PyObject *text = text_of_field(*value);
    if (!text && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        return refuse_type(place, key, "str or a number", *value);
    }
    if (!text)
        return -1;
    Py_DECREF(*value);
    *value = text;
    *slice = (doppel_slice){NULL, 0};
    return text == Py_None ? 0 : slice_of_object(place, key, text, slice);
}

/* Puts one member of a document into its item. */
static int set_member(item_list *list, document_place place, PyObject *key, int number) {
    doppel_item *item = &list->items[list->count];
    doppel_document *d = &item->document;
    PyObject **value = &list->held[list->held_count - 1];
    switch (number) {
    case KEY_ID: return slice_of_id(place, key, value, &d->id);
    case KEY_URL: return slice_of_object(place, key, *value, &d->url);
    case KEY_TITLE: return slice_of_object(place, key, *value, &d->title);
    case KEY_TEXT: return slice_of_object(place, key, *value, &d->text);
    case KEY_TTL: return ttl_of_object(*value, &item->ttl) == 1 ? 0 : refuse_ttl(place, key, *value);
    case KEY_HTML:
        if (PyBytes_Check(*value)) { /* in the charset that the page itself names */
            d->html = (doppel_slice){PyBytes_AsString(*value), (size_t)PyBytes_Size(*value)};
            return 0;
        }
        d->charset = "utf-8";
        return slice_of_object(place, key, *value, &d->html);
    default: return slice_of_field(place, key, value, (doppel_slice *)&d->extra[number - KEYS]);
    }
}

/* Begins the next item of a list. */
static doppel_item *begin_item(const engine_object *self, item_list *list) {
    size_t fields = self->key_count - KEYS;
    doppel_item *item = &list->items[list->count];
    *item = (doppel_item){.size = sizeof *item};
    item->document.id.data = item->document.text.data = "";
    if (fields) {
        doppel_slice *extra = list->extra + list->count * fields;
        memset(extra, 0, fields * sizeof *extra);
        item->document.extra = extra;
    }
    return item;
}

static void end_item(item_list *list) {
    const doppel_document *d = &list->items[list->count++].document;
    list->bytes += d->text.length + d->html.length;
}

#if !defined Py_LIMITED_API && PY_VERSION_HEX >= 0x030D0000
static int get_member(PyObject *dict, PyObject *key, PyObject **value) {
    return PyDict_GetItemRef(dict, key, value) < 0 ? -1 : 0;
}
#else
/* A new reference to a member, or NULL if there is none; -1: an exception. */
static int get_member(PyObject *dict, PyObject *key, PyObject **value) {
    *value = PyDict_GetItemWithError(dict, key);
    Py_XINCREF(*value);
    return !*value && PyErr_Occurred() ? -1 : 0;
}
#endif

static int read_dict(const engine_object *self, item_list *list, document_place place, PyObject *dict) {
    begin_item(self, list);
    unsigned there = 0;
    for (size_t i = 0; i < self->key_count; i++) {
        PyObject *value;
        if (get_member(dict, self->keys[i], &value))
            return -1;
        if (!value)
            continue;
        list->held[list->held_count++] = value;
        if (value == Py_None)
            continue;
        if (set_member(list, place, self->keys[i], (int)i))
            return -1;
        there |= 1U << i;
    }
    if (!(there & (1U << KEY_URL | 1U << KEY_TITLE | 1U << KEY_TEXT | 1U << KEY_HTML)))
        return refuse_empty(place);
    end_item(list);
    return 0;
}

static int read_text(const engine_object *self, item_list *list, document_place place, PyObject *text) {
    doppel_item *item = begin_item(self, list);
    Py_INCREF(text);
    list->held[list->held_count++] = text;
    if (slice_of_object(place, NULL, text, &item->document.text))
        return -1;
    end_item(list);
    return 0;
}

/* Adds a document of Python to a list: a str, or a mapping; -1: an exception. */
static int read_document(const engine_object *self, item_list *list, document_place place, PyObject *document) {
    if (PyUnicode_Check(document) || PyBytes_Check(document))
        return read_text(self, list, place, document);
    if (PyDict_Check(document))
        return read_dict(self, list, place, document);
    if (!PyObject_HasAttrString(document, "keys"))
        return refuse_type(place, NULL, "str or a mapping", document);
    PyObject *dict = PyDict_New();
    int code = dict && !PyDict_Update(dict, document) ? read_dict(self, list, place, dict) : -1;
    Py_XDECREF(dict);
    return code;
}

/* ---- verdicts and stored documents as named tuples ---- */

static newfunc new_tuple;     /* tuple.__new__ */
static PyObject *no_evidence; /* of every document that is new */
static PyObject *reason_names[DOPPEL_REASONS];

static PyObject *none(void) {
    Py_INCREF(Py_None);
    return Py_None;
}

/* A named tuple of values, whose references it takes; NULL among them is an exception that was raised. */
static PyObject *make_tuple(PyObject *type, PyObject **values, Py_ssize_t count) {
    PyObject *fields = PyTuple_New(count), *arguments = PyTuple_New(1), *made = NULL;
    bool whole = fields && arguments;
    for (Py_ssize_t i = 0; i < count; i++) {
        whole = whole && values[i];
        if (fields && values[i])
            PyTuple_SetItem(fields, i, values[i]);
        else
            Py_XDECREF(values[i]);
    }
    if (whole) {
        PyTuple_SetItem(arguments, 0, fields);
        fields = NULL;
        made = new_tuple((PyTypeObject *)type, arguments, NULL);
    }
    Py_XDECREF(fields);
    Py_XDECREF(arguments);
    return made;
}

static PyObject *string_or_none(doppel_slice slice) {
    return slice.data ? PyUnicode_DecodeUTF8(slice.data, (Py_ssize_t)slice.length, "replace") : none();
}

static PyObject *number_or_none(double number) {
    return isnan(number) ? none() : PyFloat_FromDouble(number);
}

static PyObject *distance_or_none(int64_t distance) {
    return distance < 0 ? none() : PyLong_FromLongLong(distance);
}

static PyObject *reason_or_none(doppel_reason reason) {
    PyObject *name = (unsigned)reason < DOPPEL_REASONS ? reason_names[reason] : NULL;
    Py_XINCREF(name);
    return name ? name : none();
}

static bool says_nothing(const doppel_evidence *e) {
    return e->distance < 0 && isnan(e->similarity) && isnan(e->containment) && isnan(e->title_similarity) &&
           !e->same_url && !e->same_digest && !e->verified;
}

static PyObject *make_evidence(const doppel_evidence *e) {
    if (no_evidence && says_nothing(e)) {
        Py_INCREF(no_evidence);
        return no_evidence;
    }
    PyObject *values[] = {distance_or_none(e->distance),  number_or_none(e->similarity),
                          number_or_none(e->containment), number_or_none(e->title_similarity),
                          PyBool_FromLong(e->same_url),   PyBool_FromLong(e->same_digest),
                          PyBool_FromLong(e->verified)};
    return make_tuple(doppel_module.evidence, values, sizeof values / sizeof *values);
}

static PyObject *make_verdict(const doppel_verdict *v) {
    PyObject *values[] = {
        string_or_none(v->id),     PyBool_FromLong(v->is_duplicate), PyFloat_FromDouble(v->confidence),
        reason_or_none(v->reason), string_or_none(v->original_id),   make_evidence(&v->evidence)};
    return make_tuple(doppel_module.verdict, values, sizeof values / sizeof *values);
}

static PyObject *make_fields(doppel_slice fields) {
    if (!fields.data)
        return PyDict_New();
    PyObject *text = string_or_none(fields), *made = text ? call_of_module("json", "loads", text) : NULL;
    Py_XDECREF(text);
    return made;
}

static PyObject *make_aliases(const doppel_stored *s) {
    PyObject *made = PyList_New((Py_ssize_t)s->alias_count);
    for (size_t i = 0; made && i < s->alias_count; i++) {
        PyObject *alias = string_or_none(s->aliases[i]);
        if (!alias || PyList_SetItem(made, (Py_ssize_t)i, alias))
            Py_CLEAR(made);
    }
    return made;
}

static PyObject *count_or_none(uint64_t count) {
    return count ? PyLong_FromUnsignedLongLong(count) : none();
}

static PyObject *make_fingerprint(const uint64_t fingerprint[2], int bits) {
    return bits > 64 ? PyBytes_FromStringAndSize((const char *)fingerprint, 16)
                     : PyLong_FromUnsignedLongLong(fingerprint[0]);
}

static PyObject *make_digest(const uint8_t digest[32]) {
    static const uint8_t zero[32];
    return memcmp(digest, zero, sizeof zero) ? PyBytes_FromStringAndSize((const char *)digest, 32) : none();
}

static PyObject *make_counts(const uint64_t by[DOPPEL_REASONS]) {
    return Py_BuildValue("{sKsKsK}", "url", (unsigned long long)by[DOPPEL_REASON_URL], "content",
                         (unsigned long long)by[DOPPEL_REASON_CONTENT], "title",
                         (unsigned long long)by[DOPPEL_REASON_TITLE]);
}

/* The document that represents its group: of a copy its original while that is there, else the document itself. */
static doppel_slice group_of(const doppel_stored *s) {
    return s->original_id.data && !s->original_gone ? s->original_id : s->id;
}

/* `similar`: it was found by its similarity, which was measured. */
static PyObject *make_stored(const doppel_stored *s, int bits, bool similar) {
    bool copy = s->original_id.data;
    PyObject *values[] = {string_or_none(s->id),
                          PyLong_FromUnsignedLongLong(s->number),
                          string_or_none(s->url),
                          string_or_none(s->canonical),
                          string_or_none(s->title),
                          make_fields(s->fields),
                          string_or_none(group_of(s)),
                          string_or_none(s->original_id),
                          copy ? reason_or_none(s->reason) : none(),
                          copy ? make_evidence(&s->evidence) : none(),
                          PyLong_FromUnsignedLongLong(s->added),
                          count_or_none(s->expires),
                          PyLong_FromUnsignedLongLong(s->words),
                          make_fingerprint(s->fingerprint, bits),
                          make_digest(s->digest),
                          count_or_none(s->set_count),
                          PyLong_FromUnsignedLongLong(s->duplicates),
                          make_counts(s->duplicates_by),
                          count_or_none(s->last_duplicate),
                          make_aliases(s),
                          string_or_none(s->text),
                          similar ? number_or_none(s->similarity) : none(),
                          similar ? distance_or_none(s->distance) : none(),
                          similar ? number_or_none(s->containment) : none()};
    return make_tuple(doppel_module.stored, values, sizeof values / sizeof *values);
}

/* ---- check and add ---- */

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
    if (!read_document(self, &list, the_document, document) && (c.engine = enter(self))) {
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

/* ---- batches: where documents come from ---- */

/* The documents of a batch, one after the other: those of a tuple, or the rows of Arrow data. */
typedef struct document_source {
    const engine_object *self;
    PyObject *tuple; /* or NULL: */
    data_input data;
    size_t batch; /* of the data; its columns are those below */
    uint64_t row; /* in it, of the next document */
    doppel_column columns[MOST_KEYS];
    bool found[MOST_KEYS];
    size_t count, next; /* documents in all, and the number of the next one */
} document_source;

/* Finds the columns of a batch of the data; -1: an exception. */
static int open_columns(document_source *s) {
    bool any = false;
    for (size_t i = 0; i < s->self->key_count; i++) {
        s->found[i] = false;
        if (!s->data.is_struct && i != KEY_TEXT)
            continue;
        const char *name = PyUnicode_AsUTF8AndSize(s->self->keys[i], NULL);
        if (!name || data_column(&s->data, s->batch, name, "documents", &s->found[i], &s->columns[i]))
            return -1;
        any = any || (s->found[i] && i >= KEY_URL && i <= KEY_HTML);
    }
    /* Which there are, the message for the usual one says. */
    return any ? 0 : data_column(&s->data, s->batch, "text", "documents", NULL, &s->columns[KEY_TEXT]);
}

static int rewind_source(document_source *s) {
    s->batch = s->next = 0;
    s->row = 0;
    return !s->tuple && s->data.batch_count ? open_columns(s) : 0;
}

/* Moves on to the batch that has the next row. */
static int next_batch(document_source *s) {
    while (s->batch < s->data.batch_count && s->row >= (uint64_t)s->data.batches[s->batch].array.length) {
        s->batch++;
        s->row = 0;
        if (s->batch < s->data.batch_count && open_columns(s))
            return -1;
    }
    return 0;
}

/* Puts one value of a row into its item. */
static int set_value(document_source *s, doppel_item *item, size_t key, doppel_slice value) {
    doppel_document *d = &item->document;
    const document_place place = {"documents", (Py_ssize_t)s->next};
    switch (key) {
    case KEY_ID: d->id = value; return 0;
    case KEY_URL: d->url = value; return 0;
    case KEY_TITLE: d->title = value; return 0;
    case KEY_TEXT: d->text = value; return 0;
    case KEY_HTML:
        d->html = value;
        d->charset = s->columns[key].binary ? NULL : "utf-8";
        return 0;
    case KEY_TTL:
        if (ttl_of_text(value, &item->ttl))
            return 0;
        PyObject *text = string_or_none(value);
        int code = text ? refuse_ttl(place, s->self->keys[KEY_TTL], text) : -1;
        Py_XDECREF(text);
        return code;
    default: ((doppel_slice *)d->extra)[key - KEYS] = value; return 0;
    }
}

/* Adds the next row to a list. */
static int read_row(document_source *s, item_list *list) {
    if (next_batch(s))
        return -1;
    doppel_item *item = begin_item(s->self, list);
    char *room = list->rooms + list->count * MOST_KEYS * DOPPEL_COLUMN_ROOM;
    bool says_something = false;
    for (size_t i = 0; i < s->self->key_count; i++) {
        doppel_slice value = {NULL, 0};
        if (s->found[i])
            value = doppel_column_get(&s->columns[i], s->row, room + i * DOPPEL_COLUMN_ROOM);
        if (!value.data)
            continue;
        says_something = says_something || (i >= KEY_URL && i <= KEY_HTML);
        if (set_value(s, item, i, value))
            return -1;
    }
    if (!says_something)
        return refuse_empty((document_place){"documents", (Py_ssize_t)s->next});
    end_item(list);
    s->row++;
    return 0;
}

/* Adds the next document to a list; -1: an exception. */
static int read_next(document_source *s, item_list *list) {
    int code;
    if (s->tuple) {
        const document_place place = {"documents", (Py_ssize_t)s->next};
        code = read_document(s->self, list, place, PyTuple_GetItem(s->tuple, place.number));
    } else {
        code = read_row(s, list);
    }
    s->next += !code;
    return code;
}

static bool is_arrow(PyObject *object) {
    return PyObject_HasAttrString(object, "__arrow_c_stream__") || PyObject_HasAttrString(object, "__arrow_c_array__");
}

/* Takes the documents of a batch call, all of them. */
static int open_source(document_source *s, PyObject *documents) {
    if (is_arrow(documents)) {
        if (take_data(documents, "documents", &s->data))
            return -1;
        s->count = (size_t)s->data.rows;
        return rewind_source(s);
    }
    if (PyUnicode_Check(documents) || PyBytes_Check(documents) || PyDict_Check(documents))
        return refuse_type((document_place){"documents", -1}, NULL, "a list of documents, or Arrow data", documents);
    s->tuple = PySequence_Tuple(documents);
    if (!s->tuple && PyErr_ExceptionMatches(PyExc_TypeError) && !PyObject_HasAttrString(documents, "__iter__")) {
        PyErr_Clear();
        refuse_type((document_place){"documents", -1}, NULL, "a list of documents, or Arrow data", documents);
    }
    s->count = s->tuple ? (size_t)PyTuple_Size(s->tuple) : 0;
    return s->tuple ? 0 : -1;
}

static void close_source(document_source *s) {
    if (!s->tuple)
        free_data(&s->data);
    Py_XDECREF(s->tuple);
}

/* ---- batches: what comes of them ---- */

/* The columns that verdicts on Arrow data become. */
enum {
    COLUMN_ID,
    COLUMN_IS_DUPLICATE,
    COLUMN_CONFIDENCE,
    COLUMN_REASON,
    COLUMN_ORIGINAL_ID,
    COLUMN_DISTANCE,
    COLUMN_SIMILARITY,
    COLUMN_CONTAINMENT,
    COLUMN_TITLE_SIMILARITY,
    COLUMN_SAME_URL,
    COLUMN_SAME_DIGEST,
    COLUMN_VERIFIED,
    COLUMNS
};

static const struct {
    const char *name;
    value_kind kind;
} verdict_columns[COLUMNS] = {
    {"id", VALUE_STRING},         {"isDuplicate", VALUE_BOOL},   {"confidence", VALUE_DOUBLE},
    {"reason", VALUE_STRING},     {"originalId", VALUE_STRING},  {"distance", VALUE_INT32},
    {"similarity", VALUE_DOUBLE}, {"containment", VALUE_DOUBLE}, {"titleSimilarity", VALUE_DOUBLE},
    {"sameUrl", VALUE_BOOL},      {"sameDigest", VALUE_BOOL},    {"verified", VALUE_BOOL},
};

/* A batch call: its documents, the piece at hand, and the verdicts so far. */
typedef struct batch {
    document_source source;
    item_list piece;
    engine_call c;
    PyObject *list; /* the verdicts; or, of Arrow data: */
    array_builder builders[COLUMNS];
    size_t done, failed; /* documents that were decided, and those that could not be */
    size_t first_failed;
    doppel_error why; /* of that */
} batch;

static bool set_null(array_builder *builder, size_t row) {
    if (!builder->valid && !builder_make_valid(builder))
        return false;
    builder->valid[row] = 0;
    return true;
}

static void put_evidence(array_builder *to, size_t row, const doppel_evidence *e) {
    ((int32_t *)to[COLUMN_DISTANCE].values)[row] = e->distance;
    ((double *)to[COLUMN_SIMILARITY].values)[row] = e->similarity;
    ((double *)to[COLUMN_CONTAINMENT].values)[row] = e->containment;
    ((double *)to[COLUMN_TITLE_SIMILARITY].values)[row] = e->title_similarity;
    ((uint8_t *)to[COLUMN_SAME_URL].values)[row] = e->same_url;
    ((uint8_t *)to[COLUMN_SAME_DIGEST].values)[row] = e->same_digest;
    ((uint8_t *)to[COLUMN_VERIFIED].values)[row] = e->verified;
}

/* Puts a verdict (NULL: there is none) into the columns; false: no memory. */
static bool put_row(array_builder *to, size_t row, const doppel_verdict *v) {
    static const doppel_verdict empty = {
        .confidence = NAN,
        .evidence = {.distance = -1, .similarity = NAN, .containment = NAN, .title_similarity = NAN}};
    bool good = true;
    if (!v)
        for (int i = 0; i < COLUMNS && good; i++)
            good = verdict_columns[i].kind != VALUE_BOOL || set_null(&to[i], row);
    v = v ? v : &empty;
    ((uint8_t *)to[COLUMN_IS_DUPLICATE].values)[row] = v->is_duplicate;
    ((double *)to[COLUMN_CONFIDENCE].values)[row] = v->confidence;
    put_evidence(to, row, &v->evidence);
    return good && builder_add_string(&to[COLUMN_ID], v->id) &&
           builder_add_string(&to[COLUMN_REASON], doppel_slice_of(doppel_reason_name(v->reason))) &&
           builder_add_string(&to[COLUMN_ORIGINAL_ID], v->original_id) &&
           (v->evidence.distance >= 0 || set_null(&to[COLUMN_DISTANCE], row));
}

/* Keeps the verdict on one document (NULL: there is none); -1: an exception. */
static int put_verdict(batch *b, size_t number, const doppel_verdict *v) {
    if (!b->list) {
        if (put_row(b->builders, number, v))
            return 0;
        PyErr_NoMemory();
        return -1;
    }
    PyObject *made = v ? make_verdict(v) : none();
    return made ? PyList_SetItem(b->list, (Py_ssize_t)number, made) : -1;
}

/* Keeps what came of a piece. */
static int take_verdicts(batch *b) {
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

/* The verdicts as they are returned: a list, or a dict of columns. */
static PyObject *finish_verdicts(batch *b) {
    PyObject *made = b->list;
    b->list = NULL;
    if (made || !(made = PyDict_New()))
        return made;
    for (int i = 0; i < COLUMNS; i++) {
        PyObject *column = builder_finish(&b->builders[i], false);
        if (made && (!column || PyDict_SetItemString(made, verdict_columns[i].name, column)))
            Py_CLEAR(made);
        Py_XDECREF(column);
    }
    return made;
}

/* ---- batches: the calls ---- */

/* What was done is told as soon as the call ends. */
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
static int make_room(batch *b) {
    size_t all = b->source.count, room = all < PIECE ? all + 1 : PIECE, fields = b->source.self->key_count - KEYS;
    b->piece.items = malloc(room * sizeof *b->piece.items);
    b->piece.extra = malloc((fields * room + 1) * sizeof *b->piece.extra);
    b->c.verdicts = calloc(room, sizeof *b->c.verdicts);
    b->c.errors = calloc(room, sizeof *b->c.errors);
    bool good = b->piece.items && b->piece.extra && b->c.verdicts && b->c.errors;
    if (b->source.tuple) {
        b->list = PyList_New((Py_ssize_t)all);
        good = (b->piece.held = malloc(room * MOST_KEYS * sizeof *b->piece.held)) && good;
        if (!b->list)
            return -1;
    } else {
        good = (b->piece.rooms = malloc(room * MOST_KEYS * DOPPEL_COLUMN_ROOM)) && good;
        for (int i = 0; i < COLUMNS; i++)
            good = good && builder_init(&b->builders[i], verdict_columns[i].kind, 0, all);
    }
    if (!good)
        PyErr_NoMemory();
    return good ? 0 : -1;
}

static void free_batch(batch *b) {
    size_t room = b->source.count < PIECE ? b->source.count + 1 : PIECE;
    release_items(&b->piece);
    for (size_t i = 0; i < room && b->c.verdicts; i++)
        doppel_verdict_free(&b->c.verdicts[i]);
    for (int i = 0; i < COLUMNS; i++)
        builder_free(&b->builders[i]);
    free(b->piece.items);
    free(b->piece.extra);
    free(b->piece.held);
    free(b->piece.rooms);
    free(b->c.verdicts);
    free(b->c.errors);
    Py_XDECREF(b->list);
    close_source(&b->source);
}

/* Reads documents until a piece is full, or there are no more. */
static int read_piece(batch *b) {
    release_items(&b->piece);
    while (b->source.next < b->source.count && b->piece.count < PIECE && b->piece.bytes < PIECE_BYTES)
        if (read_next(&b->source, &b->piece))
            return -1;
    return 0;
}

/* Reads all documents once, where they are more than a piece, so that a bad one is found before anything is added. */
static int read_ahead(batch *b) {
    if (read_piece(b) || b->source.next == b->source.count)
        return b->source.next == b->source.count && !PyErr_Occurred() ? 0 : -1;
    while (b->source.next < b->source.count) {
        release_items(&b->piece);
        if (read_next(&b->source, &b->piece) || (b->source.next % PIECE == 0 && PyErr_CheckSignals()))
            return -1;
    }
    return rewind_source(&b->source) ? -1 : read_piece(b);
}

/* Raises what ended the call: the piece at hand was not added, those before it were. */
static int fail_piece(batch *b, doppel_status status) {
    char where[80];
    doppel_error *why = &b->c.call.error;
    size_t used = strlen(why->message), left = sizeof why->message - used;
    if (b->c.work == work_add_batch && b->done && left > 1)
        snprintf(why->message + used, left, " (%zu of %zu documents were added before)", b->done - b->failed,
                 b->source.count);
    snprintf(where, sizeof where, "documents[%zu:%zu]", b->done, b->done + b->piece.count);
    raise_error(status, why, where);
    return -1;
}

static int run_pieces(batch *b) {
    b->c.call.total = b->source.count;
    while (b->piece.count) {
        b->c.items = b->piece.items;
        b->c.count = b->piece.count;
        doppel_status status = perform_long(&b->c);
        if (status != DOPPEL_OK)
            return fail_piece(b, status);
        if (take_verdicts(b))
            return -1;
        if (read_piece(b))
            return -1;
    }
    return 0;
}

/* Gives the verdicts or, where documents were refused, raises what was wrong with the first of them; the exception has
 * the verdicts on the others. */
static PyObject *end_batch(batch *b) {
    char where[64];
    size_t used = strlen(b->why.message), left = sizeof b->why.message - used;
    PyObject *made = finish_verdicts(b), *type, *value, *traceback;
    if (!made || !b->failed)
        return made;
    snprintf(b->why.message + used, left, " (%zu of %zu documents were %s)", b->done - b->failed, b->done,
             b->c.work == work_add_batch ? "added" : "checked");
    snprintf(where, sizeof where, "documents[%zu]", b->first_failed);
    raise_error(b->why.code, &b->why, where);
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && PyObject_SetAttrString(value, "verdicts", made))
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    Py_DECREF(made);
    return NULL;
}

static PyObject *run_batch(engine_object *self, PyObject *arguments, doppel_status (*work)(engine_call *c)) {
    batch b = {.source.self = self, .c = {.self = self, .work = work}};
    PyObject *documents, *progress = Py_None, *made = NULL;
    if (!PyArg_ParseTuple(arguments, "O|O", &documents, &progress) || open_source(&b.source, documents))
        return NULL;
    b.c.call.progress = progress;
    if (!make_room(&b) && !read_ahead(&b) && (b.c.engine = enter(self))) {
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
    static const document_place place = {"id", -1};
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

/* What is asked about: an id, alone or as the only member of a mapping, or a document, whose id then does not count. */
static int read_asked(engine_object *self, PyObject *asked, item_list *list, doppel_slice *id) {
    doppel_document *d = &begin_item(self, list)->document;
    PyObject *value = asked;
    Py_INCREF(value);
    if (PyDict_Check(asked) && PyDict_Size(asked) == 1) {
        Py_DECREF(value);
        if (get_member(asked, self->keys[KEY_ID], &value))
            return -1;
    } else if (PyObject_HasAttrString(asked, "keys")) {
        Py_CLEAR(value);
    }
    if (value)
        return read_id(value, &list->held[0], id) ? (Py_DECREF(value), -1)
                                                  : (Py_DECREF(value), list->held_count = 1, 0);
    if (read_document(self, list, the_document, asked))
        return -1;
    d->id = (doppel_slice){"", 0};
    return 0;
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

/* ---- figures ---- */

/* The quantile of a histogram, rounded up to a power of two. */
static unsigned long long quantile(const doppel_histogram *h, double share) {
    uint64_t seen = 0;
    for (int i = 0; i < DOPPEL_BUCKETS; i++) {
        seen += h->bucket[i];
        if ((double)seen >= share * (double)h->count)
            return 1ULL << i;
    }
    return 1ULL << DOPPEL_BUCKETS;
}

static PyObject *make_histogram(const doppel_histogram *h) {
    if (!h->count)
        return Py_BuildValue("{sK}", "count", 0ULL);
    return Py_BuildValue("{sKsdsKsK}", "count", (unsigned long long)h->count, "mean", (double)h->sum / (double)h->count,
                         "p50Below", quantile(h, 0.5), "p99Below", quantile(h, 0.99));
}

typedef unsigned long long count_number; /* as Py_BuildValue takes it for K */

/* What is counted since the engine was opened. */
static PyObject *make_since_opened(const doppel_engine_stats *s) {
    PyObject *verdicts = make_counts(s->verdicts_by), *unique = PyLong_FromUnsignedLongLong(s->verdicts_by[0]);
    int failed = !verdicts || !unique || PyDict_SetItemString(verdicts, "unique", unique);
    Py_XDECREF(unique);
    if (failed) {
        Py_XDECREF(verdicts);
        return NULL;
    }
    return Py_BuildValue("{sd sK sK sK sK sK sK sK sN sN sN sN sN}", "openSeconds", s->open_seconds, "checks",
                         (count_number)s->checks, "adds", (count_number)s->adds, "removes", (count_number)s->removes,
                         "expired", (count_number)s->expired, "damaged", (count_number)s->damaged, "commits",
                         (count_number)s->commits, "failedCommits", (count_number)s->failed_commits, "verdicts",
                         verdicts, "checkMicroseconds", make_histogram(&s->check_time), "addMicroseconds",
                         make_histogram(&s->add_time), "commitMicroseconds", make_histogram(&s->commit_time),
                         "candidates", make_histogram(&s->candidates));
}

static PyObject *make_stats(const doppel_engine_stats *s) {
    PyObject *memory = Py_BuildValue("{sK sK sK}", "keys", (count_number)s->keys_bytes, "near",
                                     (count_number)s->near_bytes, "titles", (count_number)s->title_bytes);
    return Py_BuildValue(
        "{sK sK sK sN sN sN sK sK sK sK sN ss sN}", "documents", (count_number)s->documents, "copies",
        (count_number)s->copies, "titles", (count_number)s->titles, "duplicates", make_counts(s->duplicates_by),
        "oldest", count_or_none(s->oldest), "newest", count_or_none(s->newest), "lastNumber", (count_number)s->last,
        "diskBytes", (count_number)s->disk_bytes, "freeBytes", (count_number)s->free_bytes, "memoryBytes",
        (count_number)s->memory_bytes, "memory", memory, "plan", s->plan, "sinceOpened", make_since_opened(s));
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

/* ---- options ---- */

typedef struct option_choice {
    const char *name; /* NULL ends them */
    unsigned value;
} option_choice;

static const option_choice preset_choices[] = {{"general", 0}, {"crawl", 0}, {"article", 0}, {NULL, 0}};
static const option_choice near_choices[] = {
    {"similarity", DOPPEL_NEAR_SIMILARITY}, {"distance", DOPPEL_NEAR_DISTANCE}, {NULL, 0}};
static const option_choice content_choices[] = {{"main", DOPPEL_CONTENT_MAIN}, {"all", DOPPEL_CONTENT_ALL}, {NULL, 0}};
static const option_choice duplicate_choices[] = {
    {"skip", DOPPEL_DUPLICATE_SKIP}, {"link", DOPPEL_DUPLICATE_LINK}, {"store", DOPPEL_DUPLICATE_STORE}, {NULL, 0}};
static const option_choice same_url_choices[] = {
    {"duplicate", DOPPEL_SAME_URL_DUPLICATE}, {"refresh", DOPPEL_SAME_URL_REFRESH}, {NULL, 0}};
static const option_choice durability_choices[] = {
    {"none", DOPPEL_DURABLE_NONE}, {"batch", DOPPEL_DURABLE_BATCH}, {"each", DOPPEL_DURABLE_EACH}, {NULL, 0}};

typedef enum option_kind {
    OPTION_CHOICE, /* of names, for an enum */
    OPTION_PRESET, /* of names, as it is */
    OPTION_SWITCH, /* bool, for doppel_switch */
    OPTION_FLAG,   /* bool */
    OPTION_SHARE,  /* above 0 and up to 1 */
    OPTION_COUNT,  /* uint64_t */
    OPTION_INT,
    OPTION_TEXT,
    OPTION_TTL
} option_kind;

#define AT(member) offsetof(doppel_engine_options, member)
static const struct engine_option {
    const char *name;
    option_kind kind;
    size_t offset;
    const option_choice *choices;
} engine_options[] = {
    {"preset", OPTION_PRESET, AT(preset), preset_choices},
    {"near", OPTION_CHOICE, AT(near), near_choices},
    {"similarity", OPTION_SHARE, AT(similarity), NULL},
    {"distance", OPTION_INT, AT(distance), NULL},
    {"min_words", OPTION_COUNT, AT(min_words), NULL},
    {"titles", OPTION_SWITCH, AT(titles), NULL},
    {"title_similarity", OPTION_SHARE, AT(title_similarity), NULL},
    {"title_veto", OPTION_SWITCH, AT(title_veto), NULL},
    {"keep_text", OPTION_SWITCH, AT(keep_text), NULL},
    {"content", OPTION_CHOICE, AT(content), content_choices},
    {"fields", OPTION_TEXT, AT(fields), NULL},
    {"on_duplicate", OPTION_CHOICE, AT(on_duplicate), duplicate_choices},
    {"on_same_url", OPTION_CHOICE, AT(on_same_url), same_url_choices},
    {"ttl", OPTION_TTL, AT(ttl), NULL},
    {"durability", OPTION_CHOICE, AT(durability), durability_choices},
    {"read_only", OPTION_FLAG, AT(read_only), NULL},
    {"must_exist", OPTION_FLAG, AT(must_exist), NULL},
    {"threads", OPTION_INT, AT(threads), NULL},
    {"count", OPTION_COUNT, AT(count), NULL},
    {"memory", OPTION_COUNT, AT(memory), NULL},
};

static int refuse_choice(document_place place, const option_choice *choices, PyObject *value) {
    PyObject *names = PyUnicode_FromFormat("\"%s\"", choices->name);
    for (const option_choice *c = choices + 1; names && c->name; c++) {
        PyObject *longer = PyUnicode_FromFormat("%U%s\"%s\"", names, c[1].name ? ", " : " or ", c->name);
        Py_DECREF(names);
        names = longer;
    }
    PyObject *what = names ? PyUnicode_FromFormat("expected %U, not %R", names, value) : NULL;
    Py_XDECREF(names);
    return refuse(PyExc_ValueError, place, NULL, what);
}

static int set_choice(document_place place, const struct engine_option *option, void *at, PyObject *value) {
    if (!PyUnicode_Check(value))
        return refuse_type(place, NULL, "str", value);
    for (const option_choice *c = option->choices; c->name; c++)
        if (!PyUnicode_CompareWithASCIIString(value, c->name)) {
            if (option->kind == OPTION_PRESET)
                *(const char **)at = c->name;
            else
                *(unsigned *)at = c->value;
            return 0;
        }
    return refuse_choice(place, option->choices, value);
}

static int set_share(document_place place, double *at, PyObject *value) {
    if (PyBool_Check(value) || !(PyFloat_Check(value) || PyObject_HasAttrString(value, "__float__")))
        return refuse_type(place, NULL, "a number", value);
    *at = PyFloat_AsDouble(value);
    if (PyErr_Occurred())
        return -1;
    if (*at > 0 && *at <= 1)
        return 0;
    return refuse(PyExc_ValueError, place, NULL,
                  PyUnicode_FromFormat("expected a number above 0 and up to 1, such as 0.8; not %R", value));
}

/* A whole number of at least 0. */
static int set_number(document_place place, uint64_t most, PyObject *value, uint64_t *number) {
    if (PyBool_Check(value) || !PyIndex_Check(value))
        return refuse_type(place, NULL, "int", value);
    PyObject *whole = PyNumber_Index(value);
    if (!whole)
        return -1;
    *number = PyLong_AsUnsignedLongLong(whole);
    Py_DECREF(whole);
    if (!PyErr_Occurred() && *number <= most)
        return 0;
    PyErr_Clear();
    return refuse(PyExc_ValueError, place, NULL,
                  PyUnicode_FromFormat("expected a number from 0 to %llu, not %R", (unsigned long long)most, value));
}

static int set_text(document_place place, const char **at, PyObject *value) {
    doppel_slice text;
    if (!PyUnicode_Check(value))
        return refuse_type(place, NULL, "str", value);
    if (slice_of_object(place, NULL, value, &text))
        return -1;
    if (strlen(text.data) != text.length)
        return refuse(PyExc_ValueError, place, NULL, PyUnicode_FromString("a NUL character"));
    *at = text.data;
    return 0;
}

static int set_option(doppel_engine_options *options, const struct engine_option *option, PyObject *value) {
    void *at = (char *)options + option->offset;
    const document_place place = {option->name, -1};
    uint64_t number = 0;
    switch (option->kind) {
    case OPTION_CHOICE:
    case OPTION_PRESET: return set_choice(place, option, at, value);
    case OPTION_SHARE: return set_share(place, at, value);
    case OPTION_COUNT: return set_number(place, UINT64_MAX, value, at);
    case OPTION_TEXT: return set_text(place, at, value);
    case OPTION_TTL: return ttl_of_object(value, at) == 1 ? 0 : refuse_ttl(place, NULL, value);
    case OPTION_INT:
        if (set_number(place, INT32_MAX, value, &number))
            return -1;
        *(int *)at = (int)number;
        return 0;
    default: break;
    }
    if (!PyBool_Check(value))
        return refuse_type(place, NULL, "bool", value);
    if (option->kind == OPTION_FLAG)
        *(bool *)at = value == Py_True;
    else
        *(doppel_switch *)at = value == Py_True ? DOPPEL_SWITCH_ON : DOPPEL_SWITCH_OFF;
    return 0;
}

/* Fills in options from a dict, in which None stands for the default; texts are borrowed from it. */
static int read_options(PyObject *dict, doppel_engine_options *options) {
    for (size_t i = 0; i < sizeof engine_options / sizeof *engine_options; i++) {
        PyObject *value = PyDict_GetItemString(dict, engine_options[i].name);
        if (!value || value == Py_None)
            continue;
        if (set_option(options, &engine_options[i], value))
            return -1;
        /* Where 0 is a value, and not the default. */
        if (!strcmp(engine_options[i].name, "distance"))
            options->distance_zero = !options->distance;
        if (!strcmp(engine_options[i].name, "min_words") && !options->min_words)
            options->min_words = 1;
    }
    return 0;
}

static PyObject *make_option(const struct engine_option *option, const doppel_engine_options *options) {
    const void *at = (const char *)options + option->offset;
    uint64_t ttl;
    switch (option->kind) {
    case OPTION_CHOICE:
        for (const option_choice *c = option->choices; c->name; c++)
            if (c->value == *(const unsigned *)at)
                return PyUnicode_FromString(c->name);
        return none();
    case OPTION_PRESET:
    case OPTION_TEXT: return string_or_none(doppel_slice_of(*(const char *const *)at));
    case OPTION_SWITCH: return PyBool_FromLong(*(const doppel_switch *)at == DOPPEL_SWITCH_ON);
    case OPTION_FLAG: return PyBool_FromLong(*(const bool *)at);
    case OPTION_SHARE: return PyFloat_FromDouble(*(const double *)at);
    case OPTION_INT: return PyLong_FromLong(*(const int *)at);
    case OPTION_TTL:
        ttl = *(const uint64_t *)at;
        return ttl == DOPPEL_NEVER ? PyUnicode_FromString("never") : PyLong_FromUnsignedLongLong(ttl);
    default: return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
    }
}

static int put_option(PyObject *dict, const char *name, PyObject *value) {
    int code = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return code;
}

/* The options in use, by the names that Engine takes them by. */
static PyObject *engine_get_options(PyObject *object, PyObject *unused) {
    engine_object *self = (engine_object *)object;
    doppel_engine *engine = enter(self);
    (void)unused;
    if (!engine)
        return NULL;
    const doppel_engine_options *options = doppel_engine_get_options(engine);
    PyObject *made = PyDict_New();
    for (size_t i = 0; made && i < sizeof engine_options / sizeof *engine_options; i++)
        if (put_option(made, engine_options[i].name, make_option(&engine_options[i], options)))
            Py_CLEAR(made);
    if (made && put_option(made, "recipe", PyUnicode_FromString(doppel_recipe_text(options->recipe))))
        Py_CLEAR(made);
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

/* The names of members: those of every document, then the fields that the engine keeps. */
static int name_keys(engine_object *self) {
    char *names = strdup(doppel_engine_get_options(self->engine)->fields), *rest = names;
    bool good = names;
    for (size_t i = 0; i < KEYS && good; i++)
        good = (self->keys[self->key_count++] = PyUnicode_InternFromString(key_names[i]));
    for (char *name; good && self->key_count < MOST_KEYS && (name = strsep(&rest, ","));)
        if (*name)
            good = (self->keys[self->key_count++] = PyUnicode_InternFromString(name));
    free(names);
    if (!good && !PyErr_Occurred())
        PyErr_NoMemory();
    return good ? 0 : -1;
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
        return name_keys(self);
    }
    doppel_error *why = &o.c.call.error;
    doppel_engine_close(o.c.engine); /* it was opened, and the wait for that interrupted */
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
        self->forks = atomic_load(&forks);
        self->process = (long)getpid();
        if (read_options(dict, &options) || hold_recipe(self, dict, &options) ||
            open_engine(self, bytes ? PyBytes_AsString(bytes) : NULL, &options))
            Py_CLEAR(self);
    }
    Py_XDECREF(bytes);
    return (PyObject *)self;
}

/* Closes it once no call is under way. An engine that another process opened is left alone. */
static void close_engine(engine_object *self) {
    if (is_inherited(self) || !self->engine)
        return;
    PyThreadState *state = PyEval_SaveThread();
    pthread_mutex_lock(&self->lock);
    self->closing = true;
    if (self->engine && self->calls)
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
    for (size_t i = 0; i < self->key_count; i++)
        Py_XDECREF(self->keys[i]);
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
    (void)unused;
    return PyBool_FromLong(!((engine_object *)object)->engine || ((engine_object *)object)->closing);
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
    return Py_BuildValue("{sK sK sK sK sK sN}", "documents", (count_number)r->documents, "copies",
                         (count_number)r->copies, "removed", (count_number)r->removed, "damaged",
                         (count_number)r->damaged, "bytes", (count_number)r->bytes, "findings", findings);
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
    for (int i = 1; i < DOPPEL_REASONS; i++)
        if (!(reason_names[i] = PyUnicode_InternFromString(doppel_reason_name((doppel_reason)i))))
            return -1;
    new_tuple = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    if (pthread_atfork(NULL, NULL, count_fork)) {
        PyErr_NoMemory();
        return -1;
    }
    no_evidence = PyObject_CallNoArgs(doppel_module.evidence);
    doppel_module.engine = no_evidence ? add_type(module, &engine_spec) : NULL;
    return doppel_module.engine ? add_functions(module, engine_functions) : -1;
}
