/* feed.h - documents of inputs on their way to an engine, in batches and in input order.
 *
 * Threads read documents and pack them into bytes; the packed documents come back in input order, are gathered, and are
 * given to the engine a batch at a time, which sketches on several threads. So the verdicts, and their order, are the
 * same for every number of threads. From a pipe, a batch is what has arrived, so that no document waits for the next.
 */
#ifndef ENGINE_FEED_H
#define ENGINE_FEED_H

#include "engine/engine_command.h"

/* What becomes of a document. */
typedef enum feed_answer {
    FEED_TAKE,
    FEED_SKIP, /* it is not given to the engine */
    FEED_BAD,  /* it is left out, and the reason reported */
    FEED_END   /* the command ends with feed.code, which was reported */
} feed_answer;

typedef struct feed {
    engine_command *cli;
    bool check;  /* in place of adding */
    bool record; /* the unchanged records are wanted, too */
    const char *const *keys;
    size_t key_count;
    size_t batch; /* documents that go at once */
    /* Makes an item from a document, which is borrowed until the end of the batch. NULL: the item is the document. */
    feed_answer (*make_item)(struct feed *f, const doppel_document *from, doppel_item *item, doppel_error *why);
    /* Takes the verdict on an item that was checked or added. */
    doppel_status (*on_verdict)(struct feed *f, const doppel_item *item, const doppel_verdict *verdict);
    /* At the end of a batch; may be NULL. */
    doppel_status (*on_batch_end)(struct feed *f);
    int code; /* of FEED_END */

    /* Its own. */
    doppel_input_options input;
    doppel_input_counts counts;
    bool from_pipe;     /* some input is a pipe */
    text_buffer packed; /* documents that wait, */
    size_t waiting;     /* and how many */
    doppel_item *items; /* the batch; all of these have `batch` places */
    doppel_verdict *verdicts;
    doppel_error *errors;
    doppel_slice *extra; /* key_count each */
    size_t count;
    uint64_t bad; /* left out by `make_item` or the engine */
} feed;

/* Gives the documents of the operands to the engine. Returns an exit code. Free it in any case. */
int feed_run(feed *f);
void feed_free(feed *f);

/* ---- a document as bytes ---- */

doppel_status pack_document(const feed *f, const doppel_document *document, doppel_output *output);

/* The document at the start of packed bytes: its strings stay where they are, its extra fields go to `extra`, which has
 * key_count places. Returns how many bytes it takes. */
size_t unpack_document(const feed *f, const char *bytes, doppel_document *document, doppel_slice *extra);

/* The most extra keys of doppel_input_options. */
enum { FEED_KEYS = 32 };

#endif
