/* routes.h - what the server answers to, as data: the one table of routes (routes.c), the shapes of bodies and answers
 * (shapes.c) and the kinds of problems (problems.c). Dispatch, validation, /openapi.json and docs/HTTP.md all come from
 * them. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include "server/json.h"

struct request;

typedef enum right_kind { RIGHT_NONE, RIGHT_READ, RIGHT_WRITE, RIGHT_ADMIN } right_kind;
extern const char *const right_names[]; /* "" for RIGHT_NONE */

/* BODY_LINES: NDJSON; BODY_FILE: any file of documents; BODY_SMALL_FILE: one that is held in memory. */
typedef enum body_kind { BODY_NONE, BODY_JSON, BODY_JSON_OPTIONAL, BODY_LINES, BODY_FILE, BODY_SMALL_FILE } body_kind;

/* Where a request is processed: in the thread that received it (a worker for large bodies), by a worker, together with
 * other adds, once a run has a new version, or by the thread that makes the files of runs. */
typedef enum dispatch_kind { DISPATCH_HERE, DISPATCH_WORKER, DISPATCH_ADD, DISPATCH_WAIT, DISPATCH_FILE } dispatch_kind;

/* ---- shapes ---- */

#define KIND(kind) (1u << (kind))
enum {
    ANY_STRING = KIND(JSON_STRING),
    ANY_NUMBER = KIND(JSON_NUMBER),
    ANY_BOOL = KIND(JSON_TRUE) | KIND(JSON_FALSE),
    ANY_OBJECT = KIND(JSON_OBJECT),
    ANY_ARRAY = KIND(JSON_ARRAY),
    OR_NULL = KIND(JSON_NULL)
};

/* The largest value of a number without other limits, 2^53 - 1: a double holds it exactly, and any number above it is
 * read as one that is above it, too. */
#define NUMBER_MOST 9007199254740991.0

typedef struct field {
    const char *name; /* NULL ends a list */
    unsigned kinds;
    bool required;
    const char *help;
    const struct shape_info *shape; /* of an object, or of the objects of an array */
    unsigned items;                 /* kinds of the elements of any other array; 0: any */
    const char *choices;            /* of a string, separated by | */
    double least, most;             /* of a number; both 0: from 0 to NUMBER_MOST */
    bool whole;                     /* a number without a fraction */
    const char *pattern;            /* of a string, for /openapi.json; it has no U+0000 then. NULL: any string */
} field;

typedef struct shape_info {
    const char *name, *help;
    const field *fields;
    bool open;         /* other fields are allowed, and passed through */
    bool kept;         /* the fields that the index keeps are allowed */
    const char *some;  /* fields of which it needs one, separated by |; NULL: it does not */
    const char *never; /* a schema that nothing of this shape fits; NULL: none */
} shape_info;

extern const shape_info shape_document, shape_record, shape_comparison, shape_results, shape_index_options,
    shape_backup_options;
extern const shape_info shape_verdict, shape_stored, shape_listed, shape_copies, shape_similar, shape_folded,
    shape_compared, shape_groups, shape_stats, shape_history, shape_index, shape_indexes, shape_backup, shape_health,
    shape_line, shape_problem, shape_removed, shape_done, shape_session, shape_run, shape_run_examples,
    shape_run_groups, shape_run_pair, shape_run_document, shape_runs, shape_records;

/* ---- problems ---- */

typedef enum problem_kind {
    PROBLEM_NOT_JSON,
    PROBLEM_WRONG_SHAPE,
    PROBLEM_BAD_DOCUMENT,
    PROBLEM_BAD_PARAMETER,
    PROBLEM_BAD_REQUEST,
    PROBLEM_BAD_ENCODING,
    PROBLEM_BAD_LINES,
    PROBLEM_NO_TOKEN,
    PROBLEM_WRONG_TOKEN,
    PROBLEM_NO_RIGHT,
    PROBLEM_CROSS_SITE,
    PROBLEM_NO_ROUTE,
    PROBLEM_NO_DOCUMENT,
    PROBLEM_NO_INDEX,
    PROBLEM_NO_RUN,
    PROBLEM_METHOD,
    PROBLEM_EXISTS,
    PROBLEM_IN_PROGRESS,
    PROBLEM_RUN_FAILED,
    PROBLEM_DEFAULT_INDEX,
    PROBLEM_TOO_LARGE,
    PROBLEM_CUT,
    PROBLEM_TYPE,
    PROBLEM_HOST,
    PROBLEM_KEY_REUSED,
    PROBLEM_RATE,
    PROBLEM_FAILED,
    PROBLEM_STORE,
    PROBLEM_AWAY,
    PROBLEM_UNAVAILABLE,
    PROBLEM_FULL,
    PROBLEM_NO_MEMORY,
    PROBLEM_OFF,
    PROBLEM_KINDS
} problem_kind;

typedef struct problem_info {
    const char *name; /* its type is urn:doppel:problem:NAME */
    int status;
    const char *title;
} problem_info;

extern const problem_info problems[PROBLEM_KINDS];

/* ---- routes ---- */

typedef struct parameter {
    const char *name; /* NULL ends a list */
    const char *help;
    const char *choices;   /* separated by |; NULL: a number or a text */
    const char *otherwise; /* NULL: none */
    double least, most;    /* of a number; of a text: how many characters it has */
    bool whole, required;
    const char *example; /* of a text; NULL: it is not a text */
    const char *pattern; /* of a text, for /openapi.json; NULL: any without U+0000 */
} parameter;

enum { MAX_PARAMETERS = 6, MAX_ANSWERS = 6 };

/* Answers of a route besides the problems that every route can have. */
typedef struct answer_info {
    int status;              /* 0 ends a list */
    const shape_info *shape; /* NULL: not JSON */
    const char *help;
    const char *types; /* of its content, separated by |; NULL: that of the route */
} answer_info;

/* A request that works, for docs/HTTP.md, where they are carried out in order, and for /openapi.json. */
typedef struct route_example {
    const char *target; /* path and query */
    const char *body;   /* NULL: none */
    const char *prints; /* the answer; ... stands for anything */
} route_example;

typedef struct route_info {
    const char *method; /* NULL ends the table */
    const char *path;   /* {id} and {name} stand for any one part */
    const char *summary, *help;
    right_kind needs;
    body_kind body;
    const shape_info *takes; /* of the body, or of each of its lines */
    bool of_index;           /* is also found below /v1/indexes/{name} */
    dispatch_kind dispatch;
    void (*handle)(struct request *request);
    const char *type;            /* of the answer; NULL: application/json */
    const char *operation, *tag; /* its name in a program, and what it is about */
    route_example example;
    bool any_query; /* what a link adds to its address (?utm_source=...) is ignored */
    parameter parameters[MAX_PARAMETERS];
    answer_info answers[MAX_ANSWERS];
} route_info;

extern const route_info routes[];
size_t route_count(void);

/* The parts of a path that a route leaves open, still percent-encoded. */
typedef struct route_match {
    const route_info *route; /* NULL: none */
    doppel_slice index;      /* data NULL: the default one */
    doppel_slice id;
    unsigned other_methods; /* none for this method, but for others: bits by method_names */
} route_match;

extern const char *const method_names[]; /* NULL ends it */

/* Finds the route of a path without its query. HEAD is answered as GET. */
route_match route_find(const char *method, doppel_slice path);

/* ---- documents made of the tables (describe.c) ---- */

struct text_buffer;
/* `all` are the indexes, whose fields a document may have; NULL: any. */
struct indexes;
void openapi_write(struct text_buffer *out, struct indexes *all);
void manual_write(struct text_buffer *out);

#endif
