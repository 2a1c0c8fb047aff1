/* engine.h - what the files of Engine share: engine.c (the type, its calls), engine_documents.c (documents of the
 * caller), engine_values.c (what is given back), engine_options.c. */
#ifndef DOPPEL_PYTHON_ENGINE_H
#define DOPPEL_PYTHON_ENGINE_H

#include "module.h"

/* ---- engine_documents.c: messages ---- */

/* What a message is about: "document", "documents[3]", "ttl". */
typedef struct value_place {
    const char *name;
    Py_ssize_t number; /* -1: there is only one */
} value_place;

/* Each raises an exception and gives -1. The message is led by the place and, in brackets, the name of a member (NULL:
 * none). The reference to `what` is taken; NULL: an exception is raised already. */
int refuse_value(PyObject *type, value_place place, PyObject *key, PyObject *what);
int refuse_type(value_place place, PyObject *key, const char *expected, PyObject *value);
int refuse_ttl(value_place place, PyObject *key, PyObject *value);

/* ---- engine_documents.c: values ---- */

/* The UTF-8 of a str, or of bytes that are UTF-8. It is borrowed from the object that takes the place of *value. -1: an
 * exception. */
int slice_of_object(value_place place, PyObject *key, PyObject **value, doppel_slice *slice);

/* The same for an id, which may be an int, too. */
int slice_of_id(value_place place, PyObject *key, PyObject **value, doppel_slice *slice);

/* Seconds, of an int, a float, a timedelta or a str. 1: done; 0: it is none of them; -1: an exception. */
int ttl_of_object(PyObject *value, uint64_t *ttl);

/* ---- engine_documents.c: documents ---- */

/* The members of a document, in the order in which they are read; the fields that the engine keeps follow. */
enum { KEY_ID, KEY_URL, KEY_TITLE, KEY_TEXT, KEY_HTML, KEY_TTL, KEYS };
enum { MOST_FIELDS = 16, MOST_KEYS = KEYS + MOST_FIELDS };

/* The names of the members, as str. */
typedef struct document_keys {
    PyObject *key[MOST_KEYS];
    size_t count;
} document_keys;

/* `fields`: names separated by commas. -1: an exception. Must be freed in either case. */
int document_keys_init(document_keys *keys, const char *fields);
void document_keys_free(document_keys *keys);

/* Documents on their way to the library: items, and what they borrow from. The arrays are the caller's. */
typedef struct item_list {
    doppel_item *items;
    doppel_slice *extra; /* the fields of each: keys->count - KEYS of them */
    PyObject **held;     /* at most MOST_KEYS a document */
    char *rooms;         /* of Arrow data, where values that are no strings are written: ITEM_ROOM a document */
    size_t count, held_count;
    size_t bytes; /* of texts and pages */
} item_list;
enum { ITEM_ROOM = MOST_KEYS * DOPPEL_COLUMN_ROOM };

/* The list of one document: its arrays. */
typedef struct one_item {
    doppel_item item;
    doppel_slice extra[MOST_FIELDS];
    PyObject *held[MOST_KEYS];
} one_item;
item_list list_of_one(one_item *one);

/* Empties a list, and releases what it held. */
void release_items(item_list *list);

/* Adds a document, a str or a mapping, to a list; -1: an exception. */
int read_document(const document_keys *keys, item_list *list, value_place place, PyObject *document);

/* The documents of a batch, one after the other: those of any iterable, or the rows of Arrow data. Zero is empty. */
typedef struct document_source {
    const document_keys *keys;
    PyObject *tuple; /* or NULL: */
    data_input data;
    size_t batch; /* of the data: its columns are those below */
    uint64_t row; /* in it, of the next document */
    doppel_column columns[MOST_KEYS];
    bool found[MOST_KEYS];
    size_t count, next; /* documents in all, and the number of the next one */
} document_source;

/* Takes all documents; -1: an exception. Must be closed in either case. */
int source_open(document_source *source, const document_keys *keys, PyObject *documents);
void source_close(document_source *source);

/* Adds the next document to a list; or begins again with the first. -1: an exception. */
int source_read(document_source *source, item_list *list);
int source_rewind(document_source *source);

/* ---- engine_values.c ---- */

/* What its functions need; -1: an exception. */
int init_engine_values(void);

PyObject *string_or_none(doppel_slice slice); /* data NULL: None */
PyObject *make_verdict(const doppel_verdict *verdict);
PyObject *make_stats(const doppel_engine_stats *stats);

/* `bits` of its fingerprint. `similar`: it was found by its similarity. */
PyObject *make_stored(const doppel_stored *stored, int bits, bool similar);

/* Verdicts in columns. Zero is empty. */
enum { VERDICT_COLUMNS = 12 };
typedef struct verdict_table {
    array_builder column[VERDICT_COLUMNS];
} verdict_table;

/* False: no memory. Rows are put in their order; NULL: there is no verdict, and the row is null. */
bool verdict_table_init(verdict_table *table, size_t rows);
bool verdict_table_put(verdict_table *table, size_t row, const doppel_verdict *verdict);
PyObject *verdict_table_finish(verdict_table *table); /* a dict of Array by name; NULL: an exception */
void verdict_table_free(verdict_table *table);

/* ---- engine_options.c ---- */

/* Reads options from a dict, in which None stands for the default; texts are borrowed from it. The recipe is not read.
 * -1: an exception. */
int read_engine_options(PyObject *dict, doppel_engine_options *options);

/* The options in use as a dict, by the same names, and the recipe. */
PyObject *make_engine_options(const doppel_engine_options *options);

#endif
