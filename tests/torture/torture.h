/* torture.h - what the programs of this folder share: invented documents (plants.c), threads that add and remove them
 * (load.c), what may be there after a crash (model.c), and small helpers (helpers.c).
 *
 * A program prints what it did and ends with 0, or prints what went wrong and ends with 1. Everything goes through
 * doppel.h. */
#ifndef TORTURE_H
#define TORTURE_H

#include "doppel.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- helpers ---- */

/* Whether this is a run of `make test-full`. */
bool full_suite(void);

/* Prints what went wrong and ends the process. */
__attribute__((format(printf, 1, 2), noreturn)) void wrong(const char *what, ...);

/* Ends the process unless a call went well. */
void must(doppel_status status, const doppel_error *error, const char *what);

/* SplitMix64: one state gives one sequence. */
uint64_t next_random(uint64_t *state);
/* A number below `limit`. */
uint64_t below(uint64_t *state, uint64_t limit);

/* A new folder for temporary files, `quick`: where nothing waits for a disk, if there is such a place; and a folder
 * with all that is in it gone (nothing when it is not there). */
void scratch_create(char *path, size_t room, bool quick);
void tree_remove(const char *path);
/* path/name, in one of eight buffers that take turns (each thread has its own). */
const char *beside(const char *path, const char *name);

double seconds_now(void);

/* Waits for a child; gives its exit code, or 256 and the number of the signal that ended it. */
int child_end(int child);

/* ---- engines ---- */

typedef struct tt_setup {
    const char *folder;
    bool by_similarity; /* and with titles; else by distance */
    doppel_on_duplicate on_duplicate;
    doppel_durability durability;
    bool read_only;
    uint64_t now; /* what the engine's clock says, seconds since 1970 */
} tt_setup;

/* Opens an engine that keeps texts; every engine of a process has the clock of the last one. */
doppel_status setup_try(const tt_setup *setup, doppel_engine **engine, doppel_error *error);
/* The same, and ends the process when that fails. */
doppel_engine *setup_open(const tt_setup *setup);

/* ---- invented documents ---- */

/* What a document consists of. The same `text` gives the same words, but for the one that `change` names: two of
 * different `change` have a similarity of at least 0.88, of different `text` share nothing. */
typedef struct tt_plant {
    uint64_t id, text;
    uint32_t change; /* 0: none */
    uint32_t ttl;    /* seconds; 0: for ever */
    uint64_t at;     /* when it is added, seconds since 1970 */
} tt_plant;

enum { PLANT_WORDS = 160 };

typedef struct plant_room {
    char id[32], url[96], title[160], text[PLANT_WORDS * 9];
    doppel_slice fields[2]; /* source, date */
} plant_room;

/* The item of a plant; it points into `room`. */
doppel_item plant_item(const tt_plant *plant, plant_room *room);
/* The number in an id that plant_item made; false: it made no such id. */
bool plant_number(doppel_slice id, uint64_t *number);
/* What of a stored document is not as in the plant, in a buffer of the thread; NULL: it is this plant, whole. */
const char *plant_differs(const tt_plant *plant, const doppel_stored *stored);

/* A plant by an engine; they end the process when that fails. plant_add gives whether it is called a copy. */
bool plant_add(doppel_engine *engine, const tt_plant *plant);
void plant_remove(doppel_engine *engine, const tt_plant *plant);
void plant_get(doppel_engine *engine, const tt_plant *plant, doppel_stored_list *list);

/* ---- steps: what was offered to an engine, and what it said ---- */

typedef enum step_kind { STEP_ADD, STEP_REMOVE, STEP_BACKUP, STEP_READY } step_kind;
typedef enum step_phase { STEP_OFFERED, STEP_DONE, STEP_REFUSED } step_phase;

typedef struct tt_step {
    step_kind kind;
    step_phase phase;
    tt_plant plant;    /* a backup: id is its number */
    bool clique;       /* an add: of those with this text at most one is an original */
    bool duplicate;    /* done: the verdict, */
    bool kept;         /* whether the duplicate is remembered, */
    uint64_t original; /* and whose it is */
} tt_step;

/* ---- load: threads that add and remove ---- */

typedef struct tt_load {
    doppel_engine *engine;
    uint64_t seed, round; /* ids are of the round */
    int threads;
    uint64_t steps;      /* a thread; 0: for ever */
    uint64_t now;        /* what the engine's clock says */
    bool by_similarity;  /* texts with a changed word are duplicates */
    bool keeps_copies;   /* on_duplicate is link or store */
    bool lossy;          /* what is acknowledged need not be on the disk */
    bool tolerant;       /* calls may fail: they are reported as refused */
    const char *backups; /* a folder for them; NULL: none are made, and nothing is compacted */
    void (*report)(const tt_step *step, void *user);
    void *user;
} tt_load;

/* Runs it to its end. */
void load_run(const tt_load *load);

/* ---- model: what may be there ---- */

typedef struct tt_model tt_model;

tt_model *model_create(void);
void model_free(tt_model *model);

/* Takes in a step. With `lossy` what was acknowledged since the last settling may be gone. */
void model_step(tt_model *model, const tt_step *step, bool lossy);

/* The state as of a moment, for a backup that is begun then. */
tt_model *model_copy(const tt_model *model);

/* Ends the process unless what an engine has is what may be there. What is there is from then on what must be there. */
typedef struct model_check {
    doppel_engine *engine;
    uint64_t now;     /* what has expired by then need not be there, and may not match */
    uint64_t samples; /* so many documents are asked for one by one, */
    uint64_t seed;    /* drawn by this */
} model_check;
void model_compare(tt_model *model, const model_check *check);
/* How many documents are there, since the last comparison. */
uint64_t model_count(const tt_model *model);

/* Ends the process unless a whole folder is right. */
void folder_verify(const char *folder);

#endif
