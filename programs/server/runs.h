/* runs.h - files that are deduplicated for the caller: POST /v1/runs and the routes about one run.
 *
 * A file is streamed into a folder of its own, below that of temporary files, and analysed while it arrives, by a
 * thread of its own: first its beginning, then four times as much, and so on to the whole. What was found is read by
 * any number of requests. A run is deleted when it is asked for, when its upload breaks off, and after --run-ttl
 * seconds.
 *
 *     upload_begin, upload_receive, handle_create_run    the file
 *     run_analyse (run_analysis.c)                       what is in it, or in its beginning
 *     handle_show_run, handle_run_events, ...            what was found */
#ifndef SERVER_RUNS_H
#define SERVER_RUNS_H

#include "common/text.h"
#include "doppel.h"

#include <pthread.h>
#include <stdatomic.h>

struct request;
struct service;

/* ---- what was found (run_analysis.c) ---- */

enum {
    RUN_STEPS = 101,       /* thresholds are counted in hundredths, 0 to 100 */
    RUN_EXAMPLES = 3,      /* pairs that are kept of each step */
    RUN_GROUPS = 24,       /* the largest groups that are shown */
    RUN_MEMBERS = 6,       /* copies of each */
    RUN_TEXT = 16 << 10,   /* bytes of a text that are kept */
    RUN_TITLE = 200,       /* bytes of a title, or of the beginning of a text */
    RUN_EDGES = 4 << 20,   /* pairs that are kept, 12 bytes each */
    RUN_MEMORY = 256 << 20 /* bytes for finding them */
};

/* A document that is shown. */
typedef struct run_document {
    uint32_t position;
    doppel_slice id, title, text; /* allocated; title: or the beginning of the text */
    bool cut;                     /* the text is longer */
} run_document;

typedef struct run_group {
    uint32_t kept, size; /* size: with the kept one */
    uint32_t member[RUN_MEMBERS];
    float similarity[RUN_MEMBERS];
    int members;
} run_group;

typedef struct run_result {
    uint64_t documents, bad;
    bool whole;                  /* of all documents of the file; else of its beginning */
    uint64_t removed, identical; /* at the run's similarity; identical: of them, those with a similarity of 1 */
    uint64_t groups;
    int from;                       /* the least step that is known */
    uint64_t removed_at[RUN_STEPS]; /* documents that are removed at each step */
    run_group largest[RUN_GROUPS];
    int largest_count;
    doppel_edge example[RUN_STEPS][RUN_EXAMPLES];
    int examples[RUN_STEPS];
    run_document *shown; /* by position */
    size_t shown_count;
} run_result;

typedef struct run_input {
    const char *path, *tmp;
    double similarity;
    const char *text_key, *id_key; /* NULL: the defaults */
    int threads;
    uint64_t limit; /* documents that are read; 0: all */
    const volatile int *stop;
} run_input;

/* Reads documents, finds pairs, and counts what each threshold would remove. Free the result in any case. */
doppel_status run_analyse(const run_input *input, run_result *result, doppel_error *error);
void run_result_free(run_result *result);
const run_document *run_result_document(const run_result *result, uint32_t position);

/* ---- runs ---- */

enum { RUN_ID_LEAST = 16, RUN_ID = 64 };

typedef enum run_state { RUN_RECEIVING, RUN_ANALYSING, RUN_DONE, RUN_FAILED } run_state;

typedef struct file_run {
    struct file_run *next;
    struct runs *all;
    char id[RUN_ID + 1];
    char *name;              /* of the file, as the client calls it */
    char *folder, *path;     /* of the file, as it is stored */
    char *text_key, *id_key; /* NULL: the defaults */
    double similarity;
    uint64_t began;   /* seconds since 1970 */
    uint64_t touched; /* microseconds */
    int file;         /* what is written to; -1: none */
    pthread_t thread;
    volatile int stop; /* the thread is to end */
    /* What follows is guarded by the lock of all. */
    run_state state;
    bool received_all, thread_ended, dropped;
    uint64_t version, received, told; /* told: bytes, by the current version */
    int users;
    run_result *result; /* NULL: nothing was found yet */
    char why[512];      /* of RUN_FAILED */
    struct request *waiting;
} file_run;

typedef struct runs {
    struct service *service;
    pthread_mutex_t lock;
    pthread_mutex_t analysing; /* one analysis at a time: it uses all CPUs itself */
    pthread_cond_t change;
    file_run *first;
    size_t count;
    char *folder;               /* of all of them; NULL: none was made yet */
    int locked;                 /* its lock file */
    unsigned long long folders; /* made in it so far: not by id, as one of the same id may still be in use */
    bool keeper_runs, stop;
    pthread_t keeper;
} runs;

void runs_open(runs *all, struct service *s);
/* Once nobody uses them. */
void runs_close(runs *all);

/* Waits until a run has news, and answers then: see handle_run_events. */
void runs_wait(struct request *r);

/* ---- the file ---- */

bool upload_begin(struct request *r);
/* Buffers a piece of the body. True: there is enough for a worker to run request->work. */
bool upload_receive(struct request *r, const char *bytes, size_t length);
/* The upload has ended, or broken off. */
void upload_free(struct request *r);

#endif
