/* service.h - the service without its sockets: everything between a request's head and its answer.
 *
 *     service_open       indexes, tokens, limits, workers
 *     request_create     a request by its head: route, rights, parameters
 *     request_receive    a piece of its body, decompressed; lines are processed as they arrive
 *     request_run        its work, on any thread
 *     request_free       counts and logs it, and frees it
 *     service_close
 *
 * server.c calls these from libmicrohttpd; the fuzz target and the unit tests without it. */
#ifndef SERVER_SERVICE_H
#define SERVER_SERVICE_H

#include "common/clock.h"
#include "common/text.h"
#include "server/bodies.h"
#include "server/clients.h"
#include "server/indexes.h"
#include "server/routes.h"
#include "server/runs.h"
#include "server/spool.h"

#include <stdatomic.h>
#include <stdio.h>

/* ---- what is counted, for GET /metrics ---- */

/* Upper bounds of the latency histogram, 100 microseconds to 100 seconds, three a power of ten. */
enum { LATENCY_BUCKETS = 19, METRIC_ROUTES = 48, METRIC_STATUSES = 24 };

typedef struct metrics {
    uint64_t started; /* microseconds */
    /* By route (the last: none matched) and by status. */
    atomic_uint_fast64_t requests[METRIC_ROUTES][METRIC_STATUSES];
    atomic_uint_fast64_t latency[METRIC_ROUTES][LATENCY_BUCKETS + 1];
    atomic_uint_fast64_t latency_sum[METRIC_ROUTES];
    atomic_uint_fast64_t received, sent; /* bytes of bodies */
    atomic_uint_fast64_t under_way, connections, connected, lines;
} metrics;

/* ---- threads that work on requests ----
 *
 * Threads that serve connections never wait for a large document, a commit or a backup. Requests wait in one queue,
 * linked by `next`; each thread takes one, or all of them. */

typedef struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct request *first, *last;
    bool stop;
    pthread_t *threads;
    int count;
    size_t most; /* requests that are taken at once */
    /* Works on requests, all of one index if there are several, and resumes them. */
    void (*work)(struct request **list, size_t count);
} workers;

enum { WORKERS_MOST = 256 };

void workers_add(workers *w, struct request *request);

/* ---- the service ---- */

typedef struct service_options {
    served_index first;  /* the default index */
    const char *indexes; /* the folder of the others; NULL: there are none */
    const char *backups; /* NULL: no backups by the API */
    const char *tokens;  /* NULL: every client has all rights */
    const char *access_log;
    const char *tmp;
    const char *origins;   /* the server's addresses behind a proxy, separated by commas; NULL: none */
    bool tls;              /* it serves TLS by itself */
    bool local_only;       /* the Host header must name this machine */
    uint64_t max_body;     /* bytes, decompressed; of a batch: of a line */
    uint64_t max_buffered; /* bytes of bodies that are held at a time */
    uint64_t max_ratio;    /* decompressed / compressed size of a body; 0: any */
    uint64_t max_answer;   /* bytes of the answer of a batch, 0: any; lines in progress may exceed it */
    uint64_t max_spooled;  /* bytes of all such answers at a time, likewise */
    uint64_t max_run;      /* bytes of the file of a run, decompressed */
    uint64_t max_runs;     /* that are held at a time */
    uint64_t run_ttl;      /* seconds until a run is deleted */
    uint64_t run_idle;     /* seconds without a request after which a run may be deleted to make room */
    uint64_t rate;         /* requests per second and client; 0: any */
    int threads;
} service_options;

/* The thread that updates the histories of all indexes at the end of every minute. */
typedef struct history_thread {
    pthread_mutex_t lock;
    pthread_cond_t end;
    bool running, stop;
    pthread_t thread;
} history_thread;

typedef struct service {
    service_options options;
    indexes indexes;
    history_thread histories;
    tokens tokens;
    limits limits;
    idempotency idempotency;
    metrics metrics;
    /* Files of runs are made one at a time, for as long as minutes: by a thread of their own, so that workers do not
     * wait for it. */
    workers workers, adders, makers;
    runs runs;
    atomic_uint_fast64_t buffered; /* bytes of bodies, as received and as parsed, that requests hold */
    atomic_uint_fast64_t spooled;  /* bytes of answers of batches that are held */
    FILE *access_log;
    pthread_mutex_t log_lock;
    atomic_bool draining;    /* it is about to stop */
    atomic_uint handed_over; /* requests that workers have */
    /* Resumes a request whose work a worker has done; NULL: nothing waits for it. */
    void (*wake)(struct request *request);
} service;

/* Prints a message and returns an exit code when it cannot. Close it in any case. */
int service_open(service *s, const service_options *options);
void service_close(service *s);
/* Reports on stderr what is wrong with an index; clients do not see it. */
void service_complain(doppel_status status, const doppel_error *error);
/* Reloads the tokens and reopens the log; one that cannot be read is left unchanged. */
void service_reload(service *s);

/* The head of a request, as received. */
typedef struct request_head {
    const char *method;
    const char *target; /* path and query, still percent-encoded */
    const char *client; /* its address */
    const char *(*header)(void *user, const char *name);
    void *user;
} request_head;

struct batch;
struct upload;

typedef struct request {
    struct service *service;
    const route_info *route; /* NULL: none */
    index_entry *index;      /* held; NULL: not of an index */
    char *id;                /* from the path, decoded */
    size_t id_length;
    doppel_slice index_name; /* in the path */
    const char *given[MAX_PARAMETERS];
    char *target; /* what ids and parameters point into */
    char client[64];
    char token[TOKEN_NAME]; /* the name of its token */
    right_kind right;
    bool wrong_token; /* it has an unknown token */
    /* What is received. */
    uint64_t began;     /* microseconds */
    uint64_t received;  /* bytes, compressed or not */
    char sent_type[40]; /* Content-Type of a file; it may be cut */
    body body;
    text_buffer content; /* JSON, decompressed */
    size_t buffered;     /* bytes of its body that are counted in service.buffered */
    json json;
    struct batch *batch;   /* of lines */
    struct upload *upload; /* of a file */
    doppel_item item;      /* the document */
    bool adds;             /* it is to be added: the handler has prepared it */
    bool waits;            /* it waits for the end of the run of its upload */
    doppel_slice *extra;   /* of the item */
    doppel_verdict verdict;
    char *key_name; /* Idempotency-Key */
    idempotency_key key;
    bool has_key; /* it is begun, and to be ended */
    /* What is sent. */
    bool done, failed; /* there is an answer; it is a problem */
    bool close;        /* the connection cannot continue after the answer */
    bool drop;         /* it is closed without waiting for the answer */
    int status;
    const char *type;
    text_buffer answer;
    spool *spool; /* in place of `answer` */
    char allow[64], location[160];
    text_buffer disposition; /* Content-Disposition; empty: none */
    unsigned retry_after;
    const struct console_file *file; /* in place of both */
    /* Used by the threads that process it. */
    struct request *next;
    void (*work)(struct request *request);
    void *connection;
    size_t sent;
} request;

enum {
    QUICK_BODY = 1 << 16,   /* larger bodies are a worker's */
    DISCARD_MOST = 64 << 20 /* bytes of a body that is not needed */
};

/* NULL: no memory. Check `done` afterwards: then the body is not needed. */
request *request_create(service *s, const request_head *head);
/* True: a worker has to run request->work before more can be received. */
bool request_receive(request *r, const char *bytes, size_t length);
/* Sets how many bytes of its body a request holds; false: all requests together would hold more than --max-buffered,
 * and nothing has changed. Holding fewer always succeeds. */
bool request_set_buffered(request *r, size_t bytes);
/* Answers with a problem if decompressing the body failed; `what`: "body" or "file", for the message. */
void request_body_result(request *r, body_result result, const char *what);
/* The body is complete. Returns how to continue; DISPATCH_HERE: call request_run now. */
dispatch_kind request_received(request *r);
/* Processes the request in this thread, adds included. Afterwards it is `done`, unless it `waits`. */
void request_run(request *r);
/* Hands it to a worker, to the adders, or to the run that it waits for; then `wake` is called. */
void request_hand_over(request *r, dispatch_kind how);
void request_free(request *r);
/* What workers and adders do with requests. */
void work_on(request **list, size_t count);
void work_on_adds(request **list, size_t count);

/* The Content-Type that is recommended for a body. */
const char *body_type(const route_info *route);

/* The value of a parameter, or its default. */
double request_number(const request *r, const char *name);
const char *request_choice(const request *r, const char *name);

/* Reads the body as JSON of the route's shape; false: a problem is the answer. */
bool request_json(request *r);

/* An answer that is in r->answer. */
void request_answer(request *r, int status);

/* ---- the target of a request: path and query, percent-encoded ---- */

/* Decodes percent-encoding in place, and + as a space in a query; returns the length, or SIZE_MAX when an escape is
 * broken. */
size_t target_decode(char *bytes, size_t length, bool query);

/* The next NAME=VALUE of a query, decoded in place, each with a NUL at its end; false at the end. *broken: an escape is
 * invalid. */
bool target_next(char **query, char **name, char **value, bool *broken);

/* ---- who may send it (origins.c) ---- */

/* Whether every origin of a list (NULL: none) is well-formed; else *wrong is the first that is not. */
bool origins_allowed(const char *list, doppel_slice *wrong);
/* Whether the Host of a request is a name of this server, and its Origin, if a page sent it, an address of this
 * server; else a problem is the answer. */
bool origin_allowed(request *r, const request_head *head);

/* ---- problems (problems.c) ---- */

typedef struct problem {
    problem_kind kind;
    char pointer[192];       /* empty: none */
    uint64_t line, position; /* of a batch, and in bytes; from 1, 0: none */
    char detail[640];
} problem;

/* Answers a request with a problem, in place of any earlier answer. */
void request_fail(request *r, const problem *p);
/* The same by kind and detail. `pointer` (NULL: none) says where in the body. */
void request_problem(request *r, problem_kind kind, const char *pointer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* 503: the store of the request's index does not answer, or refuses writes. */
void request_away(request *r);
/* 503: the index is damaged or cannot be opened. */
void request_unavailable(request *r);
/* The same for an error of the library. */
void request_error(request *r, doppel_status status, const doppel_error *error);
/* The same for maintenance, which not every kind of index supports: 501 then, with the engine's message. */
void request_refused(request *r, doppel_status status, const doppel_error *error);

void problem_write(text_buffer *out, const problem *p);
/* Messages of the library name options of the command: replaces them by parameters of the API, or removes them. */
void problem_words(char *message, size_t room);
/* `index` (NULL: none) is the index of the request. */
void problem_of_error(problem *p, const index_entry *index, doppel_status status, const doppel_error *error);

/* ---- shapes (shape_check.c) ---- */

/* Whether an object has a shape; the fields that an index keeps (NULL: none) are allowed where the shape says so. */
bool shape_check(const shape_info *shape, const json *j, const json_value *object, const index_entry *index,
                 problem *p);

/* ---- documents (documents.c) ---- */

/* Whether a document has a URL, a title, a text or a page. */
bool item_has_content(const json *j, const json_value *object);
/* Makes an item of a checked object. *extra is allocated, or NULL. */
bool item_make(const json *j, const json_value *object, const index_entry *index, doppel_item *item,
               doppel_slice **extra);

/* ---- answers that several handlers give (documents.c) ---- */

/* {"NAME":[...]} of documents that were found; ranked: as similar ones. */
void answer_list(request *r, const char *name, const doppel_stored_list *list, bool ranked);

/* ---- handlers ---- */

void handle_check(request *r);
void handle_add(request *r);
void handle_get(request *r);
void handle_list(request *r);
void handle_copies(request *r);
void handle_remove(request *r);
void handle_similar(request *r);
void handle_similar_to(request *r);
void handle_batch(request *r);
void handle_dedupe(request *r);
void handle_compare(request *r);
void handle_groups(request *r);
void handle_stats(request *r);
void handle_history(request *r);
void handle_list_indexes(request *r);
void handle_show_index(request *r);
void handle_create_index(request *r);
void handle_drop_index(request *r);
void handle_backup(request *r);
void handle_expire(request *r);
void handle_compact(request *r);
void handle_create_run(request *r);
void handle_list_runs(request *r);
void handle_show_run(request *r);
/* Answers at once; before, runs_wait makes the request wait for a new version. */
void handle_run_events(request *r);
void handle_run_examples(request *r);
void handle_run_pair(request *r);
void handle_run_groups(request *r);
void handle_run_document(request *r);
void handle_repeat_run(request *r);
void handle_run_kept(request *r);
void handle_run_removed(request *r);
void handle_delete_run(request *r);
void handle_session(request *r);
void handle_metrics(request *r);
void handle_health(request *r);
void handle_ready(request *r);
void handle_openapi(request *r);
void handle_console(request *r);

/* ---- adds (documents.c) ---- */

/* Adds the documents of requests of one index, all in one commit. */
void add_together(request **list, size_t count);

/* ---- batches (batch.c) ---- */

bool batch_begin(request *r);
/* Buffers a piece of the body. True: there is enough for a worker to run request->work. */
bool batch_receive(request *r, const char *bytes, size_t length);
void batch_free(struct batch *b);

/* ---- the access log and the metrics (service.c) ---- */

void access_log_write(service *s, const request *r, uint64_t microseconds);

/* Counts a request that has ended. */
void metrics_count(metrics *m, const route_info *route, int status, uint64_t microseconds);

#endif
