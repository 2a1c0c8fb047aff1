/* shared.h - a memory that several processes share: it finds and commits by itself (Redis).
 *
 * A request goes there whole and comes back decided: what engine/find.c and engine/add.c do for a folder happens inside
 * the server, in one step, so that whoever asks at the same time gets one answer. docs/FORMAT.md has the keys and their
 * bytes, docs/ENGINE.md the rules, which are the same for all stores. Near is by distance only.
 *
 * Any number of threads may use it: each call takes a connection of its own from a pool. */
#ifndef DP_STORE_SHARED_H
#define DP_STORE_SHARED_H

#include "decide/decide.h"
#include "store/store.h"

typedef struct dp_shared dp_shared;

typedef struct dp_shared_options {
    bool read_only, must_exist;
    const char *settings; /* kept with a new one: lines "name=value", as of dp_store_options */
    dp_rules rules;       /* by distance */
    uint64_t count;       /* documents to expect, for the plan of a new one; 0: not known */
    /* Told, while it is opened, the settings of one that is there: refuses, or fills in the rules that they make, which
     * count from then on. NULL: they are as `rules` says. */
    doppel_status (*agree)(const char *settings, dp_rules *rules, void *agreeing, doppel_error *error);
    void *agreeing;
    /* Told what happens on the way: connections that come and go, a memory that was lost. From any thread. */
    void (*log)(doppel_log_level level, const char *event, const char *line, void *user);
    void *user;
} dp_shared_options;

/* Whether a path is a URL of a shared store: redis://, redis+unix://, redis+sentinel://, redis+cluster://. */
bool dp_shared_takes(const char *path);
/* Errors: DOPPEL_ERROR_USAGE (a URL that makes no sense), DOPPEL_ERROR_IO (nobody answers; the message names the
 * address without its password), DOPPEL_ERROR_STORE (not there, a newer version, a server that is too old). */
doppel_status dp_shared_open(const char *url, const dp_shared_options *options, dp_shared **shared,
                             doppel_error *error);
void dp_shared_close(dp_shared *shared);
/* See doppel_engine_stop_waiting. */
void dp_shared_stop_waiting(dp_shared *shared);
/* What a server needs before users may use it who have no right to load functions; see doppel_store_prepare. */
doppel_status dp_shared_prepare(const char *url,
                                void (*server)(const char *server, const char *library, const char *state, void *user),
                                void *user, doppel_error *error);
/* The settings it was made with, and its URL without a password; borrowed. */
const char *dp_shared_settings(const dp_shared *shared);
const char *dp_shared_name(const dp_shared *shared);

/* ---- deciding ---- */

typedef enum dp_shared_op { DP_SHARED_CHECK, DP_SHARED_ADD, DP_SHARED_RESTORE, DP_SHARED_REMOVE } dp_shared_op;

/* One document. Of `trace` count id_hash to title (no keys), of `record` all but set_count. REMOVE: record.id alone.
 * RESTORE: a copy has record.original_id, reason and evidence; added, expires and `counts` are taken as they are. */
typedef struct dp_shared_request {
    dp_shared_op op;
    bool id_given;      /* else it was derived */
    bool refresh;       /* on_same_url */
    int on_duplicate;   /* a doppel_on_duplicate */
    double title_share; /* as in doppel_engine_options */
    uint64_t now;       /* seconds since 1970; 0: the server's clock */
    uint64_t ttl;       /* seconds; DOPPEL_NEVER */
    dp_trace trace;
    dp_record record;
    doppel_slice text; /* packed, to be kept; data NULL: not */
    dp_counts counts;
} dp_shared_request;

/* What came out. Slices are borrowed until dp_shared_answers_free. */
typedef struct dp_shared_answer {
    doppel_status status; /* of this request: DOPPEL_ERROR_INPUT (restore: no original) and the like */
    dp_reason reason;
    bool known;    /* the first verdict of the id (or of the same origin) again */
    bool replaced; /* it took the place of an earlier version */
    bool found;    /* REMOVE: it was there */
    uint64_t number;
    uint64_t candidates;
    doppel_slice id;          /* of the document, as it was asked about or, known, as it is there */
    dp_trace trace;           /* of the original, when there is one */
    dp_record record;         /* the same */
    doppel_evidence evidence; /* all that was measured on the original; of what is known, when it came */
} dp_shared_answer;

typedef struct dp_shared_answers {
    dp_shared_answer *answer;
    size_t count;
    void *held;
} dp_shared_answers;
void dp_shared_answers_free(dp_shared_answers *answers);

/* Asks all, pipelined in this order. When it gives DOPPEL_OK every request has an answer, and what was added is as safe
 * as the server (and `replicas`) makes it. A connection that breaks is made again, with back-off, and what has no
 * answer yet is settled: the server knows which requests it has seen. Errors: DOPPEL_ERROR_IO when it stayed away for
 * longer than `retry` (what became of the last requests is not known; the message says so), is full, or refuses;
 * DOPPEL_ERROR_STORE; DOPPEL_ERROR_MEMORY. */
doppel_status dp_shared_ask(dp_shared *shared, const dp_shared_request *requests, size_t count,
                            dp_shared_answers *answers, doppel_error *error);

/* ---- reading ---- */

/* A document as it is kept. */
typedef struct dp_shared_document {
    dp_trace trace;
    dp_record record; /* evidence of a copy is complete while its original is there */
    doppel_slice text;
    dp_counts counts;
    const doppel_slice *aliases; /* URLs of what is linked to it, in the order of adding */
    size_t alias_count;
    bool original_gone;
    int distance; /* dp_shared_near: to what was asked */
} dp_shared_document;

typedef struct dp_shared_documents {
    dp_shared_document *document;
    size_t count;
    uint64_t damaged; /* dp_shared_each: that were left out, as they cannot be read */
    void *held;
} dp_shared_documents;
void dp_shared_documents_free(dp_shared_documents *documents);

/* The document with this id, else with this canonical URL: none or one. `now` as in a request. */
doppel_status dp_shared_get(dp_shared *shared, doppel_slice id, doppel_slice canonical, uint64_t now,
                            dp_shared_documents *documents, doppel_error *error);
/* The documents of these numbers that are there, ascending. */
doppel_status dp_shared_get_numbers(dp_shared *shared, const uint64_t *numbers, size_t count, uint64_t now,
                                    dp_shared_documents *documents, doppel_error *error);
/* Originals within a distance of a fingerprint, the nearest first, then the lowest number; `limit` of them. Beyond the
 * distance of the plan it compares all. */
doppel_status dp_shared_near(dp_shared *shared, const uint64_t fingerprint[2], int distance, size_t limit, uint64_t now,
                             dp_shared_documents *documents, doppel_error *error);
/* Up to a chunk of documents from number *from on, ascending; *from is moved on, 0: there are no more. */
doppel_status dp_shared_each(dp_shared *shared, uint64_t *from, uint64_t now, dp_shared_documents *documents,
                             doppel_error *error);

typedef struct dp_shared_info {
    uint64_t documents, copies; /* what has expired may count for 1/256 of its time more */
    uint64_t last;
    dp_counts total;
    uint64_t memory_bytes;              /* of the whole server */
    uint64_t reconnects, resent, moved; /* of this process */
    char plan[64];
} dp_shared_info;
doppel_status dp_shared_get_info(dp_shared *shared, uint64_t now, dp_shared_info *info, doppel_error *error);

#endif
