/* documents.h - the documents of a call on many of them: what Batch (batch.c) and Trim (trim.c) share.
 *
 * The objects of both begin with a `documents`. It has the caller's options, the data in memory (or what opens files),
 * what was left out while it was read, and the outputs. Documents are known by their positions, in the order of
 * reading, known ones first; make_ids names them by the id column of the caller's data, or by their rows. Rows whose
 * text is null are no documents: `rows` leads from positions to rows.
 *
 * Such an object is made, used and finished by one call of Python. Its methods refuse to work while one of them runs,
 * and after it was finished. */
#ifndef DOPPEL_DOCUMENTS_H
#define DOPPEL_DOCUMENTS_H

#include "module.h"

/* Data with known documents (`against`), and the caller's own. */
enum { MOST_DATA = 2, MOST_OUTPUTS = 3 };

/* Rows between two looks at signals, where rows are looked at with the GIL held. */
enum { SIGNALS_EVERY = 1 << 16 };

/* Data in memory, and which of its rows are documents. */
typedef struct document_data {
    held_data *held;
    const data_input *input;
    uint64_t *rows; /* by document; NULL: all are */
    uint64_t documents;
} document_data;

/* What was left out of one reading: the `user` of its doppel_input_options. */
typedef struct reading_notes {
    struct documents *of;
    doppel_error first_bad; /* the first file that was left out; if there is none, the first record */
    PyObject *unseen;       /* a list of the keys that were asked for and that no record has */
} reading_notes;

typedef struct documents {
    PyObject_HEAD;
    long_call call;     /* of the method that runs */
    PyObject *options;  /* a dict, whose strings are borrowed */
    PyObject *recipe;   /* holds the recipe */
    doppel_recipe *own; /* made of a text */
    document_data *data[MOST_DATA];
    const data_input *inputs[MOST_DATA]; /* the same, for the tables */
    size_t data_count, known_count;      /* known ones come first */
    uint64_t expected;                   /* documents that are being read, of data in memory */
    memory_tables memory;
    python_tables python;
    PyObject *tables; /* what opens files; NULL: none */
    doppel_input_options input;
    reading_notes notes;                  /* of `input` */
    doppel_writer *outputs[MOST_OUTPUTS]; /* that are open; NULL: not open */
    bool busy, finished;
} documents;

/* ---- options ---- */

/* Values of the dict, of which doppel/_options.py has checked the range; those that are not there, or None, are NULL or
 * 0. Strings are borrowed from it. */
PyObject *option(PyObject *options, const char *name);
const char *text_option(PyObject *options, const char *name);
double share_option(PyObject *options, const char *name);
uint64_t count_option(PyObject *options, const char *name);
int int_option(PyObject *options, const char *name);
bool flag_option(PyObject *options, const char *name);

/* ---- making, running, freeing ---- */

/* Allocates an object whose type begins with a `documents`. `args` are (options, tables): a dict, and what opens files
 * or None. *recipe is that of the options, or NULL. NULL: an exception. */
documents *documents_new(PyTypeObject *type, PyObject *args, const doppel_recipe **recipe);
/* Frees all but the object itself; outputs that are open are removed. */
void documents_free(documents *self);

/* What reading notes of files and records, for `input` and its like. */
bool notes_init(reading_notes *notes, documents *of);
bool notes_reset(reading_notes *notes); /* false: an exception */

/* Whether it can be used now; and whether it has data in memory. False: an exception. */
bool is_usable(const documents *self);
bool has_data(const documents *self);

/* Runs the work without the GIL; false: an exception. */
bool run_documents(documents *self, doppel_status (*work)(void *argument), void *argument, doppel_error *error);

/* How far a call is. on_stage is the `progress` of options of libdoppel, whose `user` is the documents. */
void set_progress(documents *self, uint64_t done, uint64_t total);
void on_stage(const char *stage, uint64_t done, uint64_t total, void *user);

/* The caller's progress may refer to what holds this object: it goes before results do. False: an exception. */
bool finish_documents(documents *self);

/* ---- data in memory ---- */

/* Takes data of the caller, which is held from now on; NULL: an exception. `args` are (data, known, argument, needed):
 * `argument` is what messages call it, `needed` the columns that options name, (option, name, whether it must be there)
 * each. */
const document_data *take_document_data(documents *self, PyObject *args, int *known);
uint64_t count_documents(const document_data *data);
uint64_t row_of(const document_data *data, uint64_t number);

/* Raises what was bad with data in memory, of which nothing is left out. */
PyObject *raise_bad(const documents *self);

/* An Array of the ids of some documents, by the column `name` or, if that is NULL, by rows. NULL: an exception. */
PyObject *make_ids(const documents *self, const char *name, const uint64_t *positions, size_t count);

/* ---- files ---- */

/* The bytes of paths, in `held`, a list; NULL: an exception. */
const char **take_paths(PyObject *given, PyObject *held);

/* What could not be read: the first file or record that was left out, as (file, line, message), or None; and the list
 * of keys that no record has. */
PyObject *left_out(const reading_notes *notes);

/* That not all could be read is said better by what could not. */
void name_unread(doppel_status status, const reading_notes *notes, doppel_error *error);

/* Opens the outputs, a path or None each, which appear under their names with finish_outputs(True). False: an
 * exception. */
bool open_outputs(documents *self, PyObject *const *paths, size_t count);

/* Memory for a line that is being written. */
typedef struct line_buffer {
    char *bytes;
    size_t used, room;
} line_buffer;

/* Room for `more` bytes after those that are used; false: no memory. */
bool line_reserve(line_buffer *line, size_t more);
/* Adds `,"NAME":` (the first member with a brace) and a string; false: no memory. */
bool line_add_string(line_buffer *line, const char *name, doppel_slice value);

/* ---- results ---- */

/* Puts a value (whose reference is taken over) into a dict; false: an exception. */
bool put(PyObject *dict, const char *name, PyObject *value);

/* An Array of a C array of the builder's kind. */
PyObject *array_of(value_kind kind, const void *values, size_t count, size_t size);

/* ---- methods of both types ---- */

PyObject *documents_hold_data(PyObject *object, PyObject *args);
PyObject *documents_check_ids(PyObject *object, PyObject *args);
PyObject *documents_is_table(PyObject *object, PyObject *unused);
PyObject *documents_format_of(PyObject *object, PyObject *path);
PyObject *documents_finish_outputs(PyObject *object, PyObject *args); /* Batch has its own around it */

#define DOCUMENTS_METHODS                                                                         \
    {"hold_data", documents_hold_data, METH_VARARGS, "hold_data(data, known, argument, needed)"}, \
        {"check_ids", documents_check_ids, METH_VARARGS, "check_ids(name)"},                      \
        {"is_table", documents_is_table, METH_NOARGS, "is_table()"}, {                            \
        "format_of", documents_format_of, METH_O, "format_of(path)"                               \
    }

#endif
