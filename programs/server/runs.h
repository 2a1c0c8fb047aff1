/* runs.h - files that are deduplicated for a client: POST /v1/runs and the routes about one run.
 *
 * A file is streamed into a folder of its own, below that of temporary files, and analysed while it arrives, by a
 * thread of its own: first its beginning, then four times as much, and so on to the whole. Several files come as a tar
 * archive, and are analysed once they are all there, in the order of `doppel dedup`. Any number of requests read the
 * result. A run is deleted on request, when its upload breaks off, after --run-ttl seconds, and, where another one
 * needs its place, once it is finished and has not been requested for --run-idle seconds.
 *
 *     run_folders.c     the folder of all runs, and folders that killed servers left
 *     runs.c            the list of runs; the thread that analyses a run; the thread that deletes runs
 *     run_upload.c      the file, as it arrives
 *     run_archive.c     several files, as they arrive in an archive
 *     run_unread.c      the files and records that could not be read
 *     run_analysis.c    the documents of the file, or of its beginning: pairs, groups, what each threshold removes
 *     run_documents.c   the ids, titles and texts of the documents that are shown
 *     run_fields.c      the fields that the records of the file have
 *     run_handlers.c    the requests about runs
 *     run_files.c       the files that are made of a run: its kept or removed documents
 *
 * What runs hold is bounded: a file by --max-run, their number by --max-runs (and the same number of deleted ones whose
 * threads have not ended yet), the files made of them by --max-spooled.
 * One analysis at a time uses RUN_MEMORY, which is enough for about 2.9 million documents (more are refused), and
 * temporary files of at most about the size of the file and 300 bytes a document. */
#ifndef SERVER_RUNS_H
#define SERVER_RUNS_H

#include "common/text.h"
#include "doppel.h"

#include <pthread.h>
#include <stdatomic.h>

struct request;
struct service;

/* ---- what could not be read (run_unread.c) ---- */

enum {
    RUN_UNREAD = 100,     /* files and records that are listed */
    RUN_UNREAD_NAME = 255 /* bytes of their names */
};

typedef struct run_unread {
    char *file, *why;      /* file: as in ids */
    uint64_t line;         /* 0: none */
    bool command_may_read; /* `doppel dedup` may be able to read it */
} run_unread;

/* Starts as all zero. */
typedef struct run_unread_list {
    run_unread *item;
    size_t count;
    uint64_t all; /* that were added, listed or not */
    bool failed;  /* there was no memory for one */
} run_unread_list;

/* Adds a copy. */
void run_unread_add(run_unread_list *list, const run_unread *item);
/* The same for what the library reports (doppel_input_options.bad); `name` replaces `path`. */
void run_unread_take(run_unread_list *list, const doppel_error *what, const char *path, const char *name);
void run_unread_free(run_unread_list *list);
/* Writes the elements of a JSON array. */
void run_unread_write(text_buffer *out, const run_unread_list *list);

/* ---- the result of an analysis (run_analysis.c) ---- */

enum {
    RUN_STEPS = 101,        /* thresholds are counted in hundredths, 0 to 100 */
    RUN_EXAMPLES = 3,       /* pairs that are kept of each step */
    RUN_GROUPS = 24,        /* the largest groups, which are known of each step */
    RUN_MEMBERS = 6,        /* copies of each */
    RUN_GROUPS_MOST = 1000, /* groups that one answer lists */
    RUN_COPIES_MOST = 100,  /* copies of each */
    RUN_TEXT = 16 << 10,    /* bytes of a text that are kept */
    RUN_TITLE = 200,        /* bytes of a title, or of the beginning of a text */
    RUN_ID_SHOWN = 1024,    /* bytes of a document's id */
    RUN_EDGES = 4 << 20,    /* pairs that are found at most, 12 bytes each */
    RUN_MEMORY = 256 << 20  /* bytes for finding them */
};

typedef struct run_group {
    uint32_t kept, size; /* size: with the kept one */
    uint32_t member[RUN_MEMBERS];
    float similarity[RUN_MEMBERS];
    int members;
} run_group;

/* What a threshold removes. */
typedef struct run_step {
    uint64_t removed, identical; /* identical: of them, those with a similarity of 1 */
    uint64_t groups;
    run_group largest[RUN_GROUPS];
    int largest_count;
} run_step;

typedef struct run_result {
    uint64_t documents, bad;
    uint64_t empty; /* documents without words */
    run_unread_list unread;
    bool whole;   /* of all documents of the file; else of its beginning */
    bool cut;     /* the file, as far as it was there, could not be read to its end */
    run_step own; /* at the run's similarity */
    int from;     /* the lowest step that is known; RUN_STEPS: none */
    run_step step[RUN_STEPS];
    doppel_edge example[RUN_STEPS][RUN_EXAMPLES];
    int examples[RUN_STEPS];
    int kept;  /* a file of documents, without a name (run_documents.c); -1: none */
    int pairs; /* a file of pairs, and of the run's own decisions (run_analysis.c); -1: none */
    uint64_t pair_count;
    unsigned users; /* guarded by the lock of all runs: the run, and requests that read it without the lock */
} run_result;

/* Values of run_input.stop. */
enum { RUN_GO_ON, RUN_STOP, RUN_TOO_SLOW };

typedef struct run_input {
    const char *const *inputs; /* that are read, as by doppel_input_run */
    size_t input_count;
    bool several; /* they come from an archive: one that cannot be opened or read to its end is left out */
    const char *path, *tmp;
    const char *name; /* ids that are made have it in place of `path` */
    double similarity;
    const char *text_key, *id_key; /* NULL: the defaults */
    int threads;
    uint64_t limit;     /* documents that are read; 0: all */
    int from;           /* a step below which there are too many pairs, as is known of the beginning of the file */
    volatile int *stop; /* the caller sets it to RUN_STOP to end the analysis */
    /* Tests lower what bounds the search for pairs; 0: see run_analysis.c. */
    uint64_t most_pairs, most_microseconds;
} run_input;

/* Reads documents, finds pairs, and counts what each threshold would remove. Free the result in any case. */
doppel_status run_analyse(const run_input *input, run_result *result, doppel_error *error);
void run_result_free(run_result *result);

/* What is decided at a threshold: the document that each one is a copy of, or itself, and the similarity to it. */
typedef struct run_decisions {
    uint32_t count;
    uint32_t *original;
    float *similarity;
} run_decisions;

/* Decides at a step from result->from on, or (RUN_STEPS) as at the run's own similarity. It takes up to 50 MB, and 28
 * bytes a document, while it works. False: no memory, or the file cannot be read. */
bool run_decide(const run_result *result, int step, run_decisions *to);
void run_decisions_free(run_decisions *d);

#define RUN_ALL_GROUPS UINT64_MAX
#define RUN_NO_DOCUMENT UINT64_MAX

typedef struct run_group_query {
    uint64_t only;  /* the kept document of the group that is wanted; or RUN_ALL_GROUPS */
    uint64_t after; /* groups that are left out at the beginning */
    size_t limit, copies;
} run_group_query;

typedef struct run_listed_group {
    uint32_t kept, size;   /* size: with the kept one */
    size_t first, members; /* in `member` of the list */
} run_listed_group;

typedef struct run_member {
    uint32_t position;
    float similarity;
} run_member;

typedef struct run_group_list {
    run_listed_group *group; /* the largest first; of the same size, in the order of their kept documents */
    size_t count;
    uint64_t all; /* groups of these decisions */
    run_member *member;
} run_group_list;

/* False: no memory. */
bool run_list_groups(const run_decisions *d, const run_group_query *query, run_group_list *list);
void run_group_list_free(run_group_list *list);

/* ---- the documents of a result (run_documents.c) ---- */

typedef struct run_document {
    doppel_slice id, title, text; /* title: or how the text begins */
    bool cut;                     /* the text is longer */
    char *bytes;                  /* what they are in */
} run_document;

/* Keeps a row of every document, and a record of those that are wanted. */
doppel_status run_documents_write(const run_input *input, run_result *result, const uint8_t *wanted,
                                  doppel_error *error);
/* Reads the record of a document; false: it has none, it cannot be read, or there is no memory. */
bool run_document_read(const run_result *result, uint32_t position, bool with_text, run_document *to);
void run_document_free(run_document *d);
/* The document with an id: if several have it, the first one that is removed, or else the first. RUN_NO_DOCUMENT: there
 * is none. */
uint64_t run_document_find(const run_result *result, const run_decisions *d, doppel_slice id);

/* ---- the fields of a file (run_fields.c) ---- */

enum { RUN_FIELDS = 64, RUN_FIELD_NAME = 255 };

typedef struct run_field {
    char name[RUN_FIELD_NAME + 1];
    uint64_t bytes; /* of its values that are strings */
} run_field;

/* The fields of the first records of a file, in the order in which they come. */
typedef struct run_fields {
    run_field *list; /* NULL: it has no fields, as it is neither JSON nor a table */
    size_t count;
    uint64_t records;
} run_fields;

/* Looks at the beginning of a file (NULL: there is none): JSON, or a table with a header, by its name. Free it in any
 * case. */
void run_fields_read(const char *path, run_fields *fields);
void run_fields_free(run_fields *fields);
/* The field whose values are the longest on average; NULL: none has strings of several words. */
const run_field *run_fields_longest(const run_fields *fields);

/* ---- runs (runs.c) ---- */

enum { RUN_ID_LEAST = 16, RUN_ID = 64 };

typedef enum run_state { RUN_RECEIVING, RUN_ANALYSING, RUN_DONE, RUN_FAILED } run_state;

typedef struct file_run {
    struct file_run *next;
    struct runs *all;
    char id[RUN_ID + 1];
    char *name;          /* of the file, as the client calls it */
    char *folder, *path; /* of the file, as it is stored; of several: the folder that they are in, with a slash */
    bool several;        /* it is an archive of several files */
    /* What is read: the path of the file; of several, of each file or folder at the top of the archive. Does not change
     * after received_all. */
    char **inputs;
    size_t input_count;
    char *fields_path; /* the file whose fields are shown; NULL: none has fields */
    const char *rows;  /* the ending of a table (.csv, .tsv, .tab): kept documents are rows; NULL: records */
    uint64_t began;    /* seconds since 1970 */
    uint64_t used;     /* when a request for it last began or ended; guarded by the lock of all */
    int file;          /* what is written to; -1: none */
    pthread_t thread;  /* that analyses it, or did */
    bool has_thread;
    volatile int stop; /* RUN_STOP: the thread is to end */
    /* How it is analysed: changed only while no thread analyses it, and nothing else uses it. */
    char *text_key, *id_key; /* NULL: the defaults */
    double similarity;
    /* What follows is guarded by the lock of all. */
    run_state state;
    bool received_all, thread_ended, deleted;
    uint64_t version, received;
    uint64_t received_before; /* bytes, at the current version */
    uint64_t changed;         /* when it got its version: microseconds */
    int users;                /* requests that use its file */
    run_result *result;       /* NULL: nothing was found yet */
    run_fields fields;
    run_unread_list left_out; /* files that were not stored */
    run_unread_list unread;   /* of RUN_FAILED, which has no result */
    char why[800];            /* of RUN_FAILED */
    struct request *waiting;
} file_run;

typedef struct runs {
    struct service *service;
    pthread_mutex_t lock;
    pthread_mutex_t analysis; /* held during an analysis: one at a time, as it uses all CPUs itself */
    pthread_mutex_t decision; /* held during run_decide: one at a time, because of its memory */
    pthread_cond_t change;
    file_run *first;
    size_t count;
    char *folder;               /* of all of them; NULL: none was made yet */
    int folder_lock;            /* its lock file */
    unsigned long long folders; /* made in it so far: not by id, as one of the same id may still be in use */
    bool has_maintenance, stop;
    pthread_t maintenance; /* the thread that deletes runs, and answers requests that wait */
} runs;

void runs_open(runs *all, struct service *s);
/* Call it when no request uses them. */
void runs_close(runs *all);

/* Adds a run from the parameters of its request, with one user; NULL: a problem is the answer. */
file_run *runs_add(runs *all, struct request *r);
/* The run of an id, or NULL. The lock is held by the caller. */
file_run *runs_find(runs *all, const char *id, size_t length);
/* Gives a run its next version, and wakes the requests that wait for it. The lock is held by the caller. */
void run_change(file_run *r);
/* Ends a run: it is no longer found, and is freed when no request uses it. The lock is held by the caller. */
void run_delete(file_run *r);
bool run_is_stopped(const file_run *r);
/* Starts the thread that analyses a run, once more if it has ended; false: there are no threads. */
bool run_start(file_run *r);

/* Clients do not see where the server stores a file: replaces its path in a text, such as an id that was made of it, by
 * the name of the file. The result is `text` itself, or borrowed from `to`; it is empty if to->failed. */
doppel_slice run_replace_path(doppel_slice text, doppel_slice path, doppel_slice name, text_buffer *to);
/* What clients see in place of run->path: the name of the file; of several, nothing, as their paths follow. */
const char *run_shown_path(const file_run *r);
/* The same in a message, which also loses the options of the command. */
void run_rewrite_error(doppel_error *error, const char *path, const char *name);

#define RUN_RECORD ((size_t)64 << 20) /* bytes of a record, the library's default */

/* doppel_input_options.max_record for a file: what a Word document or an archived page in it unpacks to has the limits
 * of a compressed body. */
size_t run_max_record(uint64_t file_bytes, uint64_t max_ratio);

/* 503, with Retry-After: there is no room for what a request needs. */
void run_no_room(struct request *r, const char *what);

/* Makes a request wait until a run has a new version; it is answered then: see handle_run_events. */
void runs_wait(struct request *r);
/* Makes a request wait until a run that it uses has ended; a worker does its work then. */
void runs_wait_for_end(file_run *run, struct request *r);
/* A request does not need a result any longer. The lock is not held. */
void run_result_release(runs *all, run_result *result);
/* Records that a run was requested. The lock is held by the caller. */
void run_touch(file_run *r);

enum { RUN_ENDING = 16 }; /* room for the extension of a format */

/* The extension by which the library detects the format of a file, in lower case and without that of its compression;
 * "": none. Without a name (NULL), by the type of the body. */
void run_find_ending(const char *name, const char *type, char ending[RUN_ENDING]);
/* Makes a path in the folder of all runs that nothing has yet; NULL: a problem is the answer. Free it. */
char *run_folder_path(runs *all, struct request *r);

/* ---- requests (run_handlers.c) ---- */

/* Answers with a run. The lock is held by the caller. */
void run_answer(struct request *r, const file_run *shown, int status);
/* The run of a request, with the lock held; NULL: a problem is the answer, and the lock is not held. */
file_run *run_lock(struct request *r);

/* ---- files that are made of a run (run_files.c) ---- */

/* Types of their answers, separated by |. */
#define RUN_FILE_TYPES "application/x-ndjson|text/csv|text/tab-separated-values"

/* Answers with the kept or the removed documents of a run that the request uses. */
void run_answer_file(struct request *r, file_run *run, bool kept);

/* ---- folders (run_folders.c) ---- */

/* Removes the folders that killed servers left below the folder of temporary files: their lock is free. */
void run_folders_remove_old(const char *tmp);
/* Makes the folder of all runs, if there is none yet. The lock is held by the caller. */
bool run_folders_make(runs *all);
/* Removes a folder with all that is in it; links are not followed. */
void run_folder_remove(const char *path);

/* ---- the file as it arrives (run_upload.c) ---- */

bool upload_begin(struct request *r);
/* Answers an upload whose run was deleted; returns false. */
bool upload_was_deleted(struct request *r);
/* Buffers a piece of the body. True: there is enough for a worker to run request->work. */
bool upload_receive(struct request *r, const char *bytes, size_t length);
/* Lets a request wait for the end of its run, of which a file is to be made. It may be answered at once. */
void upload_wait(struct request *r);
/* The upload has ended, or broken off. */
void upload_free(struct request *r);

/* ---- several files as they arrive (run_archive.c) ---- */

typedef struct archive archive;

/* NULL: no memory. */
archive *archive_create(struct request *r, file_run *run);
void archive_free(archive *a);
/* Takes bytes of the archive; false: a problem is the answer. */
bool archive_take(archive *a, const char *bytes, size_t length);
/* The archive has arrived; false: a problem is the answer. */
bool archive_end(archive *a);

#endif
