/* feed.h - documents of inputs on their way to an engine, in batches and in input order.
 *
 * Threads read documents and pack them into bytes; the packed documents come back in input order and are gathered into
 * batches. Batches are given to the engine side by side, by threads of the feed: checks in any order, adds such that
 * they are decided in input order (doppel_engine_add_in_turn). Verdicts are reported in input order. So the verdicts,
 * and their order, are the same for every number of threads. From a pipe, a batch is what has arrived, so that no
 * document waits for the next: then, and where the order of all that happens matters (with --strict or --log, or when
 * the owner makes the items), batches run one after the other, each sketched on several threads.
 */
#ifndef ENGINE_FEED_H
#define ENGINE_FEED_H

#include "engine/engine_command.h"

#include <pthread.h>

/* What becomes of a document. */
typedef enum feed_answer {
    FEED_TAKE,
    FEED_SKIP, /* it is not given to the engine */
    FEED_BAD,  /* it is left out, and the reason reported */
    FEED_END   /* the command ends with feed.code, which was reported */
} feed_answer;

typedef enum batch_state { BATCH_FILLING, BATCH_READY, BATCH_RUNNING, BATCH_DONE } batch_state;

typedef struct feed_batch {
    batch_state state;
    text_buffer packed; /* its documents, */
    size_t documents;   /* and how many */
    doppel_item *items; /* those of them that go to the engine; all of these have feed.batch places */
    doppel_verdict *verdicts;
    doppel_error *errors;
    doppel_slice *extra; /* key_count each */
    size_t count;
    doppel_status given; /* the result of the engine's call */
    doppel_error error;
} feed_batch;

/* A record that could not be read, and how many batches come before it. */
typedef struct noted_bad {
    uint64_t batches;
    doppel_error what;
} noted_bad;

typedef struct feed {
    engine_command *cli;
    bool check;         /* instead of adding */
    bool record;        /* the unchanged records are wanted, too */
    bool text_optional; /* as in doppel_input_options */
    bool addresses;     /* the operands are URLs, each a document that has nothing else */
    const char *const *keys;
    size_t key_count;
    size_t batch; /* documents that go at once */
    /* Makes an item from a document, which is borrowed until the end of the batch; f->place is its place there. NULL:
     * the item is the document. */
    feed_answer (*make_item)(struct feed *f, const doppel_document *from, doppel_item *item, doppel_error *why);
    /* Takes the verdict on an item that was checked or added. */
    doppel_status (*on_verdict)(struct feed *f, const doppel_item *item, const doppel_verdict *verdict);
    /* At the end of a batch; may be NULL. */
    doppel_status (*on_batch_end)(struct feed *f);
    size_t place;
    int code; /* of FEED_END */

    /* Private. */
    doppel_input_options input;
    doppel_input_counts counts;
    bool from_pipe;      /* some input is a pipe */
    size_t most_waiting; /* bytes of documents that do not wait for more */
    uint64_t bad;        /* left out by `make_item` or the engine */
    /* Records that could not be read, while batches before them are not reported yet: they are reported in input order.
     */
    void (*on_bad)(const doppel_error *what, void *user); /* reports one; `user` is the cli_args */
    noted_bad *noted;
    size_t noted_count, noted_room;
    feed_batch *batches; /* batch number i is at i modulo batch_count */
    size_t batch_count;
    uint64_t filled, reported; /* batches handed over; batches whose verdicts were reported */
    pthread_t *threads;        /* that run batches */
    size_t thread_count;       /* 0: they are run as they are filled */
    pthread_mutex_t lock;      /* of the rest, and of the states of batches */
    pthread_cond_t changed;    /* some of it has changed */
    uint64_t taken, decided;   /* batches that a thread has taken; that were decided */
    bool stopped;              /* no further batch is taken */
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
