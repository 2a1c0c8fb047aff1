/* sketches.h - what is shared by the files that work on columns of texts and of fingerprints: sketches.c, verify.c and
 * hamming_index.c use what is in rows.c and fingerprints.c. */
#ifndef DOPPEL_SKETCHES_H
#define DOPPEL_SKETCHES_H

#include "module.h"

#include <pthread.h>

/* ---- rows.c: rows, on several threads ---- */

/* Work on rows 0 to count - 1, which threads take a block at a time, in order. A file's own struct begins with this
 * one. Everything up to `end` is for the caller to set, zero for what is not wanted; the rest is run_rows' own. */
typedef struct row_job row_job;
struct row_job {
    uint64_t count;
    int threads;        /* 0: one for each CPU of this process */
    bool small;         /* it takes a millisecond at most: the calling thread does it alone */
    bool keep_gil;      /* small, and so short that waiting for the GIL again could take longer */
    PyObject *progress; /* called with rows, as of long_call; may be NULL */
    /* A thread's own state, made and ended by the thread; may be NULL. */
    doppel_status (*begin)(row_job *job, void **state);
    /* Rows first to last - 1. What fails has said so by fail_row, or was asked to stop (DOPPEL_ERROR_INTERRUPTED). */
    doppel_status (*run)(row_job *job, void *state, uint64_t first, uint64_t last);
    void (*end)(row_job *job, void *state);

    long_call call;
    uint64_t block;
    _Atomic uint64_t next, bad_row;
    pthread_mutex_t lock;
};

/* Fills in `threads` and `block`, for a caller that needs them before run_rows, which does it otherwise. */
void plan_blocks(row_job *job);

/* Does the work, without the GIL, and serves signals and progress meanwhile; -1: an exception. */
int run_rows(row_job *job);

/* Remembers why a row failed, unless an earlier row has, and gives `status`. Blocks taken before are still worked on,
 * so that the row reported is always the first. */
__attribute__((format(printf, 4, 5))) doppel_status fail_row(row_job *job, uint64_t row, doppel_status status,
                                                             const char *format, ...);

/* ---- rows.c: texts ---- */

/* Less text than this is less than a millisecond of work (row_job.small); with less than the second the GIL is kept. */
#define SMALL_BYTES ((size_t)256 << 10)
#define TINY_BYTES ((size_t)16 << 10)

/* A column of texts: that of each batch. */
typedef struct text_column {
    const data_input *data;
    const char *argument; /* what messages call it */
    doppel_column *batch;
} text_column;

/* The data must outlive it; -1: an exception. Must be closed in either case. */
int open_texts(text_column *texts, const data_input *data, const char *name, const char *argument);
void close_texts(text_column *texts);

/* The bytes of all texts; SIZE_MAX: there are many rows, and they were not counted. */
size_t count_bytes(const text_column *texts);

/* The batch of a later row, going on from *batch. */
void advance(const data_input *data, uint64_t row, size_t *batch);

/* A text, borrowed; data NULL: it is null. It is UTF-8: data_column has checked bytes. */
doppel_slice get_text(const text_column *texts, size_t batch, uint64_t row);

/* Sketches a text, in pieces if it is long, so that it can be interrupted. */
doppel_status sketch_text(row_job *job, doppel_sketcher *sketcher, doppel_slice text, doppel_sketch *sketch);

/* ---- fingerprints.c ---- */

/* One fingerprint or many. They stand side by side, each of one number, or of two (low half first) when `wide`. */
typedef struct fingerprints {
    uint64_t *values;
    uint8_t *valid; /* a byte each; NULL: none is null */
    size_t count;
    bool wide;
    bool scalar;   /* it was one number, and no sequence of them */
    bool is_arrow; /* else a list, or something like it */
} fingerprints;

/* Takes fingerprints: an int or 16 bytes, a list or iterable of those (None: null), a buffer of 64-bit integers such as
 * a NumPy array, or a column of Arrow data: uint64, int64 (its bits) or fixed-size binary of 16 bytes. -1: an
 * exception, which names `argument` and the row. */
int take_fingerprints(PyObject *object, const char *argument, fingerprints *out);
void free_fingerprints(fingerprints *out);

/* Makes fingerprints of 64 bits ones of 128; -1: an exception. */
int widen_fingerprints(fingerprints *out);

/* One fingerprint: an int of up to 128 bits, or 16 bytes; *wide says whether it takes more than 64 bits. -1: an
 * exception. */
int take_fingerprint(PyObject *object, const char *argument, uint64_t value[2], bool *wide);

/* Validity, as Arrow stores it. */
static inline bool is_null(const struct ArrowArray *array, int64_t at) {
    if (!array->null_count || array->n_buffers < 1 || !array->buffers[0])
        return false;
    return !(((const uint8_t *)array->buffers[0])[at / 8] >> at % 8 & 1);
}

/* ---- functions of the module ---- */

PyObject *py_verify(PyObject *module, PyObject *arguments);
PyObject *py_hamming(PyObject *module, PyObject *arguments);

#endif
