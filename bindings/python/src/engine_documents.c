/* engine_documents.c - documents of the caller as items of the library: a str, a mapping, a row of Arrow data.
 *
 * Nothing is copied. What an item borrows from is held until the list is released: str objects by a reference each, so
 * that another thread may change the caller's dict meanwhile; rows by the data they are in. Values that are no strings
 * are written out as the command does for JSONL. Messages name the document and the member: documents[3]["text"]. */
#include "engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

int refuse_value(PyObject *type, value_place place, PyObject *key, PyObject *what) {
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

int refuse_type(value_place place, PyObject *key, const char *expected, PyObject *value) {
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__name__");
    if (!name)
        return -1;
    refuse_value(PyExc_TypeError, place, key, PyUnicode_FromFormat("expected %s, not %U", expected, name));
    Py_DECREF(name);
    return -1;
}

/* Text that is not UTF-8, by the exception that says where. */
static int refuse_utf8(value_place place, PyObject *key, const char *what) {
    PyObject *type, *value, *traceback;
    Py_ssize_t start = 0;
    if (!PyErr_ExceptionMatches(PyExc_UnicodeError))
        return -1;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *at = value ? PyObject_GetAttrString(value, "start") : NULL;
    start = at ? PyLong_AsSsize_t(at) : 0;
    PyErr_Clear();
    Py_XDECREF(at);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return refuse_value(doppel_module.input_error, place, key,
                        PyUnicode_FromFormat("not valid UTF-8: %s at position %zd", what, start));
}

static const char ttl_forms[] = "a time such as \"30d\", \"12h\", \"90m\" or 3600 (seconds), a timedelta, or \"never\"";

int refuse_ttl(value_place place, PyObject *key, PyObject *value) {
    if (PyErr_Occurred())
        return -1;
    return refuse_value(PyExc_ValueError, place, key, PyUnicode_FromFormat("expected %s; not %R", ttl_forms, value));
}

static int refuse_empty(value_place place) {
    return refuse_value(PyExc_ValueError, place, NULL, PyUnicode_FromString("has none of url, title, text and html"));
}

/* ---- durations ---- */

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

int ttl_of_object(PyObject *value, uint64_t *ttl) {
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
    if (!number && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        return 0;
    }
    if (!number)
        return -1;
    double seconds = PyFloat_AsDouble(number);
    Py_DECREF(number);
    if (seconds == -1 && PyErr_Occurred())
        return -1;
    return ttl_of_number(seconds, ttl);
}

/* ---- values ---- */

/* The digits of what can be a whole number. */
static PyObject *text_of_integer(PyObject *value) {
    PyObject *number = PyNumber_Index(value), *text = number ? PyObject_Str(number) : NULL;
    Py_XDECREF(number);
    return text;
}

/* A str by way of bytes: PyUnicode_AsUTF8AndSize would keep its UTF-8 in the str as long as that lives. */
int slice_of_object(value_place place, PyObject *key, PyObject **value, doppel_slice *slice) {
    bool is_text = PyUnicode_Check(*value);
    if (!is_text && !PyBytes_Check(*value))
        return refuse_type(place, key, "str", *value);
    PyObject *other = is_text ? PyUnicode_AsUTF8String(*value)
                              : PyUnicode_DecodeUTF8(PyBytes_AsString(*value), PyBytes_Size(*value), NULL);
    if (!other)
        return refuse_utf8(place, key, is_text ? "a lone surrogate" : "a byte");
    Py_DECREF(is_text ? *value : other);
    *value = is_text ? other : *value;
    *slice = (doppel_slice){PyBytes_AsString(*value), (size_t)PyBytes_Size(*value)};
    return 0;
}

int slice_of_id(value_place place, PyObject *key, PyObject **value, doppel_slice *slice) {
    if (PyUnicode_Check(*value) || PyBytes_Check(*value))
        return slice_of_object(place, key, value, slice);
    if (PyBool_Check(*value) || !PyIndex_Check(*value))
        return refuse_type(place, key, "str or int", *value);
    PyObject *text = text_of_integer(*value);
    if (!text)
        return -1;
    Py_DECREF(*value);
    *value = text;
    return slice_of_object(place, key, value, slice);
}

/* A list, a dict or a truth value as JSON. */
static PyObject *json_of_object(PyObject *value) {
    PyObject *json = PyImport_ImportModule("json"), *dumps = json ? PyObject_GetAttrString(json, "dumps") : NULL;
    PyObject *arguments = PyTuple_Pack(1, value), *keywords = Py_BuildValue("{sO}", "ensure_ascii", Py_False);
    PyObject *made = dumps && arguments && keywords ? PyObject_Call(dumps, arguments, keywords) : NULL;
    Py_XDECREF(keywords);
    Py_XDECREF(arguments);
    Py_XDECREF(dumps);
    Py_XDECREF(json);
    return made;
}

/* A kept field as text: numbers, truth values, lists and dicts as JSON has them, dates as ISO 8601. A new reference;
 * None: it counts as missing; NULL: an exception. */
static PyObject *text_of_field(PyObject *value) {
    if (PyUnicode_Check(value) || PyBytes_Check(value)) {
        Py_INCREF(value);
        return value;
    }
    if (PyFloat_Check(value))
        return isnan(PyFloat_AsDouble(value)) ? none() : json_of_object(value);
    if (PyBool_Check(value))
        return json_of_object(value);
    if (PyIndex_Check(value))
        return text_of_integer(value);
    if (PyObject_HasAttrString(value, "isoformat"))
        return PyObject_CallMethod(value, "isoformat", NULL);
    return PyObject_HasAttrString(value, "__float__") ? PyObject_Str(value) : json_of_object(value);
}

static int slice_of_field(value_place place, PyObject *key, PyObject **value, doppel_slice *slice) {
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
    return text == Py_None ? 0 : slice_of_object(place, key, value, slice);
}

/* ---- documents ---- */

static const char *const key_names[KEYS] = {"id", "url", "title", "text", "html", "ttl"};

int document_keys_init(document_keys *keys, const char *fields) {
    char *names = strdup(fields), *rest = names;
    bool good = names;
    for (size_t i = 0; i < KEYS && good; i++)
        good = (keys->key[keys->count++] = PyUnicode_InternFromString(key_names[i]));
    for (char *name; good && keys->count < MOST_KEYS && (name = strsep(&rest, ","));)
        if (*name)
            good = (keys->key[keys->count++] = PyUnicode_InternFromString(name));
    free(names);
    if (!good && !PyErr_Occurred())
        PyErr_NoMemory();
    return good ? 0 : -1;
}

void document_keys_free(document_keys *keys) {
    for (size_t i = 0; i < keys->count; i++)
        Py_XDECREF(keys->key[i]);
    keys->count = 0;
}

item_list list_of_one(one_item *one) {
    return (item_list){.items = &one->item, .extra = one->extra, .held = one->held};
}

void release_items(item_list *list) {
    for (size_t i = 0; i < list->held_count; i++)
        Py_DECREF(list->held[i]);
    list->held_count = list->count = list->bytes = 0;
}

/* Puts one member of a document into its item. */
static int set_member(item_list *list, value_place place, PyObject *key, int number) {
    doppel_item *item = &list->items[list->count];
    doppel_document *d = &item->document;
    PyObject **value = &list->held[list->held_count - 1];
    switch (number) {
    case KEY_ID: return slice_of_id(place, key, value, &d->id);
    case KEY_URL: return slice_of_object(place, key, value, &d->url);
    case KEY_TITLE: return slice_of_object(place, key, value, &d->title);
    case KEY_TEXT: return slice_of_object(place, key, value, &d->text);
    case KEY_TTL: return ttl_of_object(*value, &item->ttl) == 1 ? 0 : refuse_ttl(place, key, *value);
    case KEY_HTML:
        if (PyBytes_Check(*value)) { /* in the charset that the page itself names */
            d->html = (doppel_slice){PyBytes_AsString(*value), (size_t)PyBytes_Size(*value)};
            return 0;
        }
        d->charset = "utf-8";
        return slice_of_object(place, key, value, &d->html);
    default: return slice_of_field(place, key, value, (doppel_slice *)&d->extra[number - KEYS]);
    }
}

/* Begins the next item of a list. */
static doppel_item *begin_item(const document_keys *keys, item_list *list) {
    size_t fields = keys->count - KEYS;
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

static int read_dict(const document_keys *keys, item_list *list, value_place place, PyObject *dict) {
    begin_item(keys, list);
    unsigned there = 0;
    for (size_t i = 0; i < keys->count; i++) {
        PyObject *value;
        if (get_member(dict, keys->key[i], &value))
            return -1;
        if (!value)
            continue;
        list->held[list->held_count++] = value;
        if (value == Py_None)
            continue;
        if (set_member(list, place, keys->key[i], (int)i))
            return -1;
        there |= 1U << i;
    }
    if (!(there & (1U << KEY_URL | 1U << KEY_TITLE | 1U << KEY_TEXT | 1U << KEY_HTML)))
        return refuse_empty(place);
    end_item(list);
    return 0;
}

static int read_text(const document_keys *keys, item_list *list, value_place place, PyObject *text) {
    doppel_item *item = begin_item(keys, list);
    Py_INCREF(text);
    list->held[list->held_count++] = text;
    if (slice_of_object(place, NULL, &list->held[list->held_count - 1], &item->document.text))
        return -1;
    end_item(list);
    return 0;
}

int read_document(const document_keys *keys, item_list *list, value_place place, PyObject *document) {
    if (PyUnicode_Check(document) || PyBytes_Check(document))
        return read_text(keys, list, place, document);
    if (PyDict_Check(document))
        return read_dict(keys, list, place, document);
    if (!PyObject_HasAttrString(document, "keys"))
        return refuse_type(place, NULL, "str or a mapping", document);
    PyObject *dict = PyDict_New();
    int code = dict && !PyDict_Update(dict, document) ? read_dict(keys, list, place, dict) : -1;
    Py_XDECREF(dict);
    return code;
}

/* ---- the documents of a batch ---- */

/* Finds a column of the batch at hand, if there is one; -1: an exception. */
static int find_column(document_source *s, size_t i) {
    const char *name = PyUnicode_AsUTF8AndSize(s->keys->key[i], NULL);
    if (!name)
        return -1;
    /* Bytes of pages may be in any charset. */
    if (i == KEY_HTML && doppel_column_init(&s->columns[i], &s->data.schema, &s->data.batches[s->batch].array, name,
                                            &s->found[i], NULL) == DOPPEL_OK)
        return 0;
    return data_column(&s->data, s->batch, name, "documents", &s->found[i], &s->columns[i]);
}

/* Finds the columns of the batch at hand; -1: an exception. */
static int open_columns(document_source *s) {
    bool any = false;
    for (size_t i = 0; i < s->keys->count; i++) {
        s->found[i] = false;
        if (!s->data.is_struct && i != KEY_TEXT)
            continue;
        if (find_column(s, i))
            return -1;
        any = any || (s->found[i] && i >= KEY_URL && i <= KEY_HTML);
    }
    /* None: the message about the usual one says which there are. */
    return any ? 0 : data_column(&s->data, s->batch, "text", "documents", NULL, &s->columns[KEY_TEXT]);
}

int source_rewind(document_source *s) {
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
    const value_place place = {"documents", (Py_ssize_t)s->next};
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
        int code = text ? refuse_ttl(place, s->keys->key[KEY_TTL], text) : -1;
        Py_XDECREF(text);
        return code;
    default: ((doppel_slice *)d->extra)[key - KEYS] = value; return 0;
    }
}

/* Adds the next row to a list. */
static int read_row(document_source *s, item_list *list) {
    if (next_batch(s))
        return -1;
    doppel_item *item = begin_item(s->keys, list);
    char *room = list->rooms + list->count * ITEM_ROOM;
    bool says_something = false;
    for (size_t i = 0; i < s->keys->count; i++) {
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
        return refuse_empty((value_place){"documents", (Py_ssize_t)s->next});
    end_item(list);
    s->row++;
    return 0;
}

int source_read(document_source *s, item_list *list) {
    int code;
    if (s->tuple) {
        const value_place place = {"documents", (Py_ssize_t)s->next};
        code = read_document(s->keys, list, place, PyTuple_GetItem(s->tuple, place.number));
    } else {
        code = read_row(s, list);
    }
    s->next += !code;
    return code;
}

static bool is_arrow(PyObject *object) {
    return PyObject_HasAttrString(object, "__arrow_c_stream__") || PyObject_HasAttrString(object, "__arrow_c_array__");
}

int source_open(document_source *s, const document_keys *keys, PyObject *documents) {
    s->keys = keys;
    if (is_arrow(documents)) {
        if (take_data(documents, "documents", &s->data))
            return -1;
        s->count = (size_t)s->data.rows;
        return source_rewind(s);
    }
    bool listed = PyObject_HasAttrString(documents, "__iter__") && !PyUnicode_Check(documents) &&
                  !PyBytes_Check(documents) && !PyDict_Check(documents);
    if (!listed)
        return refuse_type((value_place){"documents", -1}, NULL, "a list of documents, or Arrow data", documents);
    s->tuple = PySequence_Tuple(documents);
    s->count = s->tuple ? (size_t)PyTuple_Size(s->tuple) : 0;
    return s->tuple ? 0 : -1;
}

void source_close(document_source *s) {
    if (!s->tuple)
        free_data(&s->data);
    Py_XDECREF(s->tuple);
}
