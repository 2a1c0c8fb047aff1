/* module.h - what the files of the extension module doppel._doppel share. The Python side (doppel/__init__.py) has the
 * public names, their defaults and their documentation; this side has the types, the loops and the calls of libdoppel.
 *
 *     module.c             the module: exceptions, values, forks, and its making
 *     calls.c              long calls: the GIL released, Ctrl-C and progress served meanwhile
 *     arrow.c              Arrow in and out: data of the caller as batches, streams of batches
 *     array.c              results: Array, and what fills it
 *     rows.c               rows of the caller's data on several threads; columns of texts (sketches.h)
 *     sketches.c           sketch (fingerprint, signature, digest), compare, bands_plan
 *     verify.c             verify: how similar the two sides of each pair are
 *     fingerprints.c       fingerprints of the caller; hamming
 *     recipe.c             Recipe
 *     hamming_index.c      HammingIndex
 *     documents.c          the documents of a call: options, data in memory, ids, outputs (documents.h)
 *     batch.c              Batch: pairs, cluster, dedup; overlap; decide
 *     trim.c               Trim: what documents repeat of each other
 *     tables.c             doppel_tables over Python objects (Parquet), and over batches in memory
 *     engine.c             Engine (engine.h)
 *     engine_documents.c   its documents
 *     engine_values.c      its verdicts and figures, as Python values
 *     engine_options.c     its options
 *     command.c            the doppel command
 *
 * Only the limited API is used, as of Python 3.10, so that one build serves every later version; without it (on
 * free-threaded Python) the same sources build against the version at hand. */
#ifndef DOPPEL_MODULE_H
#define DOPPEL_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <doppel.h>
#include <stdatomic.h>

/* ---- module.c ---- */

/* What the module holds for its lifetime: there is one module a process. */
typedef struct module_state {
    PyObject *error, *input_error, *store_error, *away_error; /* exceptions, module.c */
    PyObject *verdict, *evidence, *match, *stored;            /* named tuples of doppel/_types.py */
    PyTypeObject *array, *recipe, *index, *batch, *trim;      /* types */
    PyTypeObject *engine;
} module_state;
extern module_state doppel_module;

/* Raises what a failed call says, and gives NULL: ValueError for usage, InputError, StoreError, AwayError, OSError,
 * MemoryError; KeyboardInterrupt for an interruption. A Python exception that is set already stays. Where the error has
 * a file and a line, the message begins with "FILE:LINE: "; `argument` (NULL: none) begins it with "ARGUMENT: ". */
PyObject *raise_error(doppel_status status, const doppel_error *error, const char *argument);

/* Raises TypeError "ARGUMENT[ROW]: expected EXPECTED, not TYPE OF OBJECT" (without "[ROW]" when row is -1), and gives
 * NULL. */
void *raise_type(const char *argument, Py_ssize_t row, const char *expected, PyObject *object);

/* Values for Python, each a new reference; NULL: an exception. */
PyObject *none(void);
PyObject *number_or_none(double number);                         /* NaN: None */
PyObject *fingerprint_object(const uint64_t value[2], int bits); /* an int, or 16 bytes for more than 64 bits */

/* The number of forks between the process that loaded the module and this one: what was opened when it was another
 * belongs to another process. */
unsigned fork_count(void);

/* Adds the functions (a list that ends in zeros) or a type of one file to the module; -1: an exception. */
int add_functions(PyObject *module, PyMethodDef *functions);
PyTypeObject *add_type(PyObject *module, PyType_Spec *spec);

/* Each file's part of the making of the module; -1: an exception. */
int init_arrow(PyObject *module);
int init_array(PyObject *module);
int init_sketches(PyObject *module);
int init_recipe(PyObject *module);
int init_index(PyObject *module);
int init_batch(PyObject *module);
int init_trim(PyObject *module);
int init_engine(PyObject *module);
int init_command(PyObject *module);

/* ---- calls.c ---- */

/* A long call. `stop` is for options of libdoppel that take one; `done` and `total` are set by the threads that do the
 * work, now and then, and reported to the caller's `progress` by the thread that waits. */
typedef struct long_call {
    volatile int stop;
    _Atomic uint64_t done, total;
    PyObject *progress; /* called as progress(done, total); NULL or None: none */
    doppel_error error; /* for the call to fill */
} long_call;

/* Runs work(argument) on a thread of its own, without the GIL, while this thread waits, serves signals (so that Ctrl-C
 * sets `stop`) and calls `progress` every tenth of a second. The work may take the GIL by PyGILState_Ensure. Gives its
 * status; when a signal handler or `progress` raised, DOPPEL_ERROR_INTERRUPTED with that exception set. Where no thread
 * can be started, the work runs on this one. */
doppel_status run_long_call(long_call *call, doppel_status (*work)(void *argument), void *argument);

/* Calls `progress`, if there is one and the total is known. False: it raised. run_long_call does this itself. */
bool report_progress(long_call *call);

/* ---- arrow.c: data of the caller ---- */

/* One batch of rows. */
typedef struct data_batch {
    struct ArrowArray array;
    uint64_t first; /* the number of its first row among all rows of the data */
} data_batch;

/* What a caller gave: anything with the Arrow PyCapsule interface, read to its end, or a list, tuple or iterable of str
 * (bytes of UTF-8 are taken, too), which becomes one column. Holds all of it until it is freed; needs the GIL for
 * that. */
typedef struct data_input {
    struct ArrowSchema schema;
    data_batch *batches;
    size_t batch_count, batch_room;
    uint64_t rows;
    bool is_struct; /* a table with named columns; else one column */
    bool is_list;   /* it was no Arrow: results are lists, too */
} data_input;

/* Takes the data; -1: an exception, which names `argument` and the row. Strings in lists that are no UTF-8 (lone
 * surrogates) and items of other types are refused: TypeError "texts[3]: expected str, not float". None in a list is
 * null, as in Arrow. */
int take_data(PyObject *object, const char *argument, data_input *data);
void free_data(data_input *data);

/* The column `name` of one batch (of data that is one column: that column, whatever the name); -1: an exception:
 * KeyError 'no column "body"; the columns are id, text', TypeError for a type that is not text. *found (NULL: it must
 * be there): whether it is there. */
int data_column(const data_input *data, size_t batch, const char *name, const char *argument, bool *found,
                doppel_column *column);

/* The schema of a column by its name, or by a path as of doppel_column_init, and the number of the column that it is,
 * or is in; of data that is one column, its own. NULL: there is none. */
const struct ArrowSchema *find_schema(const data_input *data, const char *name, int64_t *child);

/* The batch that has a row (rows.c). */
size_t find_batch(const data_input *data, uint64_t row);

/* Raises that KeyError, whose message begins with `option` (NULL: none), and gives -1. */
int raise_no_column(const data_input *data, const char *option, const char *name);

/* ---- array.c: results ---- */

/* The result of a call: an immutable Arrow array with the sequence protocol (len, index, slice, iteration, ==),
 * __arrow_c_array__, __arrow_c_schema__ and to_list(). */

/* An array that is being filled. `values` has room for `length` values, which stand side by side: for booleans a byte
 * each; strings are added one after the other. */
typedef enum value_kind {
    VALUE_BOOL,        /* uint8_t, 0 or 1 */
    VALUE_INT32,       /* int32_t */
    VALUE_UINT32,      /* uint32_t */
    VALUE_INT64,       /* int64_t */
    VALUE_UINT64,      /* uint64_t */
    VALUE_DOUBLE,      /* double; NaN becomes null */
    VALUE_BINARY,      /* fixed-size binary of `width` bytes */
    VALUE_UINT32_LIST, /* fixed-size lists of `width` uint32_t */
    VALUE_UINT64_LIST, /* lists of uint64_t of any length (large_list): add_list */
    VALUE_STRING       /* large_utf8: add_string */
} value_kind;

typedef struct array_builder {
    value_kind kind;
    size_t width, length; /* rows there is room for */
    void *values;         /* of the caller to fill, but for strings and lists */
    uint8_t *valid;   /* a byte a row, 1 at first: the caller sets 0 for null. NULL until there is one: make_valid */
    int64_t *offsets; /* of strings and lists */
    size_t added, value_room;
} array_builder;

/* False: no memory (no exception is set). Both work without the GIL. */
bool builder_init(array_builder *builder, value_kind kind, size_t width, size_t length);
bool builder_make_valid(array_builder *builder);
bool builder_add_string(array_builder *builder, doppel_slice string); /* data NULL: null */
bool builder_add_list(array_builder *builder, const uint64_t *values, size_t count, bool is_null);
void builder_free(array_builder *builder);

/* Makes an Array of it (or, with `as_list`, a list), and frees it; NULL: an exception. */
PyObject *builder_finish(array_builder *builder, bool as_list);

/* Adds an item of a list to an array of strings: str, bytes of UTF-8, or None, NaN and pandas.NA, which are null. -1:
 * an exception, which names `argument` and the row. */
int builder_add_item(array_builder *builder, PyObject *item, const char *argument, Py_ssize_t row);

/* An Array as Arrow structures, which share its memory and outlive it; false: no memory. */
bool export_array(PyObject *array, struct ArrowArray *to);
bool export_schema(PyObject *array, const char *name, struct ArrowSchema *to);

/* The rows of an Array that are wanted, a byte each, copied to another; NULL: an exception. */
PyObject *take_rows(PyObject *array, const uint8_t *wanted);

/* Some rows of an Array of strings in any layout of strings or bytes (u, U, vu, z, Z, vz), which share their bytes; -1:
 * an exception, for all but U and Z also when there are more than 2 GiB of them. */
int export_strings(PyObject *array, int64_t first, int64_t count, const char *format, struct ArrowArray *to);

/* ---- arrow.c: Arrow out ---- */

/* A schema whose children are still to be made, each in its place; or a copy of another, whole. False: no memory. */
bool schema_make(struct ArrowSchema *to, const char *format, const char *name, size_t children);
bool schema_copy(const struct ArrowSchema *from, struct ArrowSchema *to);

/* A capsule "arrow_schema", which takes the schema over, also when it fails; NULL: an exception. */
PyObject *capsule_of_schema(struct ArrowSchema *schema);

/* The zeros among `length` bits, from bit `offset` on. */
int64_t count_nulls(const uint8_t *valid, int64_t offset, int64_t length);

/* Those bits in memory of their own, from bit 0 on; NULL: no memory. */
uint8_t *copy_bits(const uint8_t *bits, int64_t offset, int64_t length);

/* A stream of one batch with these Arrays as its columns, for __arrow_c_stream__ of Table: a capsule. `columns` is a
 * dict of name -> Array; all have the same length. */
PyObject *stream_of_columns(PyObject *columns);

/* Data with a count of its holders: the last one to drop it frees it, on any thread. hold_data moves `data` into it,
 * and counts one holder; NULL: no memory, and `data` is as it was. */
typedef struct held_data held_data;
held_data *hold_data(data_input *data);
const data_input *held_input(const held_data *held);
void drop_data(held_data *held);

/* The same data with another column in place of column `child`, or after all columns if there is none of that number;
 * data that is one column becomes the other. The rest is shared. The column has an array for each batch; it is taken
 * over, also when this fails. NULL: an exception. */
held_data *hold_with_column(held_data *held, int64_t child, struct ArrowSchema *schema, struct ArrowArray *arrays);

/* The rows of some data that are wanted, as a stream of batches that share the caller's memory, a batch for each run of
 * rows; `wanted` is a byte a row (NULL: all), and copied. The stream and its batches are holders of the data. */
PyObject *stream_of_held(held_data *held, const uint8_t *wanted);

/* The same, of data without other holders. It is taken over, also when this fails: `data` is empty then. */
PyObject *stream_of_rows(data_input *data, const uint8_t *wanted);

/* ---- tables.c ---- */

/* Batches in memory as the tables of doppel_input_run: the path of data[i] is "table:i". Data of one column is a table
 * whose column is called `text`. */
typedef struct memory_tables {
    doppel_tables tables;
    const data_input *const *data;
    const char *text;
} memory_tables;
void memory_tables_init(memory_tables *memory, const data_input *const *data, const char *text);

/* A Python object with methods claims(path), list(path), open(path, columns) and so on (doppel/_parquet.py) as
 * tables; borrowed. */
typedef struct python_tables {
    doppel_tables tables;
    PyObject *object;
} python_tables;
void python_tables_init(python_tables *python, PyObject *object);

/* Writes the rows of one input through a writer of doppel/_parquet.py, as the batch has decided: those that stay, or
 * all with what was decided, for which doppel_batch_count_groups comes first. From any thread, without the GIL. */
typedef enum row_columns {
    ROWS_KEPT,
    ROWS_ANNOTATED,
    ROWS_COUNTED /* with count_by: with groupCounts, too */
} row_columns;
doppel_status write_rows(PyObject *writer, const doppel_batch *batch, const doppel_batch_rows *rows,
                         row_columns columns, const volatile int *stop, doppel_error *error);

/* Documents of doppel_trim_write that are written to tables as they come, in order, through a writer of
 * doppel/_parquet.py: with their texts cut (DOPPEL_TRIM_TEXTS), or with `annotate` all of them, with their spans
 * (DOPPEL_TRIM_SPANS, DOPPEL_TRIM_ORIGINALS). Rows that do not come are left out. From any thread, one at a time,
 * without the GIL. */
typedef struct trimmed_rows trimmed_rows;
trimmed_rows *trimmed_rows_create(PyObject *writer, bool annotate, const volatile int *stop); /* NULL: no memory */
doppel_status trimmed_rows_add(trimmed_rows *rows, const doppel_trimmed *document, doppel_error *error);
doppel_status trimmed_rows_end(trimmed_rows *rows, doppel_error *error); /* there are no more */
void trimmed_rows_free(trimmed_rows *rows);                              /* may be NULL */

/* Makes an error of the Python exception that is set, which is cleared; with the GIL. */
doppel_status python_status(doppel_error *error);

/* ---- recipe.c ---- */

/* The recipe of a Recipe or of a str such as "page" (None: NULL, the default). *made is set when it was made of a str,
 * and then is the caller's to free. -1: an exception. */
int get_recipe(PyObject *object, const doppel_recipe **recipe, doppel_recipe **made);

#endif
