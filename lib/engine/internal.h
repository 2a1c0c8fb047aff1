/* internal.h - what the files of the engine share.
 *
 * The online line: item -> query.c (its names and sketches) -> find.c (which document is near, and how near) ->
 * lib/decide (is it a copy?) -> add.c (what follows). Storage and durability: lib/known. Every call takes a worker of
 * the pool, makes a query from its item and searches through the worker's look. */
#ifndef DP_ENGINE_INTERNAL_H
#define DP_ENGINE_INTERNAL_H

#include "engine/query.h"

#include <pthread.h>

/* ---- what one thread works with ---- */

typedef struct dp_worker {
    doppel_engine *engine;
    dp_query_maker *maker;
    dp_look *look;
    doppel_matches near;
    dp_title_hits title_hits;
    dp_numbers keyed, banded;
    uint64_t *set; /* a copy of a set that is compared, aligned */
    size_t set_room;
    dp_buffer packed;          /* a text */
    dp_buffer bytes[DP_PARTS]; /* parts that are being made */
    struct dp_worker *next;    /* in the pool */
} dp_worker;

/* ---- counters ---- */

typedef struct dp_engine_counters {
    _Atomic uint64_t checks, adds, removes;
    _Atomic uint64_t verdicts_by[DOPPEL_REASONS];
    dp_tally check_time, add_time, candidates, distances;
    dp_known_counters known;
} dp_engine_counters;

/* Fewer than this are read as fast as they are filtered, without using memory. */
enum { DP_FILTER_ABOVE = 64 };

struct doppel_engine {
    doppel_engine_options options; /* as they are in use */
    dp_buffer settings;            /* the part stored with the index, with a NUL */
    char *fields_text, *fields_copy, *field_names[16];
    char preset[64];
    doppel_recipe *own_recipe;          /* NULL: the caller's */
    const doppel_engine_options *given; /* while it is opened, */
    const char *path;                   /* the same */
    bool given_differs;                 /* from the settings of the existing index; the same */
    dp_query_settings sketching;
    dp_rules rules;

    dp_known *known;
    size_t filter_above; /* if more documents than this share a band with a query they are filtered (kind->sift) */

    pthread_mutex_t pool_lock;
    dp_worker *pool;
    _Atomic size_t batches; /* calls of many.c that are making queries */

    dp_engine_counters counters;
    double open_seconds;
};

/* ---- open.c ---- */

/* A worker of the pool, and back. */
doppel_status dp_worker_take(doppel_engine *engine, dp_worker **worker, doppel_error *error);
void dp_worker_give(dp_worker *worker);
/* The same with a look that has begun; one for reading or listing ends with it. */
doppel_status dp_worker_begin(doppel_engine *engine, dp_purpose purpose, dp_worker **worker, doppel_error *error);
void dp_worker_end(dp_worker *worker);

/* ---- check: engine.c ---- */

/* An item's query, with its text packed if it is to be kept. */
doppel_status dp_engine_ask(dp_worker *worker, const doppel_item *item, dp_query *query, doppel_error *error);

/* What is counted for a verdict, once it is final. */
typedef struct dp_outcome {
    doppel_reason reason;
    uint64_t candidates;
    int distance;
} dp_outcome;

void dp_engine_count(doppel_engine *engine, const dp_outcome *outcome);

/* A query that is checked or added. */
typedef struct dp_add {
    doppel_verdict *verdict; /* what the caller gets; of an add, once it is durable */
    doppel_status status;
    dp_outcome outcome;
    doppel_error *error; /* gets the reason of a failure; NULL: not wanted */
} dp_add;

/* Checks several queries, fetched together: each has a status, and *error is that of the first failure, or of all. */
doppel_status dp_engine_answer_all(dp_worker *worker, const dp_query *const *queries, dp_add *answers, size_t count,
                                   doppel_error *error);

/* ---- find.c: the worker's look has begun ---- */

/* An original, as it was found. */
typedef struct dp_original {
    doppel_reason reason;
    dp_candidate best;
    bool by_copy;                     /* the words are those of a copy of it found by its URL or title */
    bool has_url;                     /* it has the query's URL itself */
    uint64_t expires;                 /* when it does; 0: never */
    doppel_slice original_id, origin; /* its id and where it comes from; the look's */
    uint64_t candidates;
} dp_original;

doppel_status dp_find(dp_worker *worker, const dp_query *query, dp_original *found, doppel_error *error);
/* The same for a check, with on_same_url as in an add; look->except may grow. */
doppel_status dp_find_refreshed(dp_worker *worker, const dp_query *query, dp_original *found, doppel_error *error);

/* The number of the document or copy that has this id or canonical URL; 0: none has. */
doppel_status dp_find_name(dp_worker *worker, dp_key key, doppel_slice name, uint64_t *number, doppel_error *error);
/* Whether a document, or a copy that came by its URL or title, has the query's words: *number is the document's, or
 * that of the copy's original; 0: none. A document precedes a copy. */
doppel_status dp_find_words(dp_worker *worker, const dp_query *query, uint64_t *number, doppel_error *error);

/* A number's set, aligned, in the worker's memory: until the next call. NULL: none is kept. */
doppel_status dp_read_set(dp_worker *worker, uint64_t number, const uint64_t **set, size_t *count, doppel_error *error);
/* Its sample, where samples are kept; data NULL: none is. */
doppel_status dp_read_sample(dp_worker *worker, uint64_t number, doppel_slice *sample, doppel_error *error);

/* The trace and record of a number; false in *found: it is gone. */
doppel_status dp_read_document(dp_look *look, uint64_t number, dp_trace *trace, dp_record *record, bool *found,
                               doppel_error *error);

/* Measures the similarity and containment of a query and a number by their sets, or samples. They are unchanged if
 * there is nothing to compare, or if they cannot reach `least`. */
typedef struct dp_measuring {
    const dp_query *query;
    double least;
    bool keep; /* keeps the features of the number (kind->keep_features) */
} dp_measuring;
doppel_status dp_measure(dp_worker *worker, const dp_measuring *measuring, uint64_t number, doppel_evidence *evidence,
                         doppel_error *error);

/* ---- add.c: the worker's look has begun with DP_LOOK_ADD ---- */

#define DP_NO_NAME "the document has no id, no URL and no words: nothing to remember it by"

/* Queries to be added, in order. Each has a name. */
typedef struct dp_adds {
    const dp_query **query;
    dp_add *add;
    size_t count;
    bool stop;        /* at the first that fails */
    size_t done;      /* that were decided */
    size_t first_bad; /* the first that failed, and why; SIZE_MAX: none did */
    doppel_error why;
} dp_adds;

/* Adds queries. A failure of one is its status; an error concerns all that were not decided, which have it as their
 * status, too. */
doppel_status dp_engine_add_queries(dp_worker *worker, dp_adds *adds, doppel_error *error);
/* Queues the removal of a number, and of its copies; `trace` is what it left. */
doppel_status dp_queue_removal(dp_look *look, const dp_trace *trace, doppel_error *error);

/* Refuses changes of a read-only engine. */
doppel_status dp_engine_may_write(const doppel_engine *engine, doppel_error *error);

/* ---- stored.c: the worker's look has begun ---- */

/* Empties a list, whose memory is used again. */
void dp_stored_list_clear(doppel_stored_list *list);
/* Reads everything stored for a number, copied into the list. False in *found: it is gone. With `text` the kept text is
 * unpacked, with `set` the set is read. */
typedef struct dp_wanted {
    bool text, set;
} dp_wanted;
doppel_status dp_stored_add(dp_worker *worker, uint64_t number, dp_wanted wanted, doppel_stored_list *list, bool *found,
                            doppel_error *error);
/* The number of an id, else of a URL; 0: neither is known. */
doppel_status dp_find_id_or_url(dp_worker *worker, doppel_slice name, uint64_t *number, doppel_error *error);

/* ---- log.c ---- */

bool dp_engine_logs(const doppel_engine *engine, doppel_log_level level);
void dp_log_begin(doppel_engine *engine, const char *what, const doppel_item *item);
/* Logs the last line about an item, and returns its status, with the reason in *error (may be NULL). began 0: no
 * time. */
doppel_status dp_log_end(doppel_engine *engine, const char *what, doppel_status status, const doppel_error *why,
                         const doppel_verdict *verdict, double began, doppel_error *error);
void dp_log_line(doppel_engine *engine, doppel_log_level level, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
