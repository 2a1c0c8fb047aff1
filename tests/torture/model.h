/* model.h - the inside of the model, for model.c and compare.c. */
#ifndef TORTURE_MODEL_H
#define TORTURE_MODEL_H

#include "torture.h"

enum { MOST_OUTCOMES = 8 };

typedef enum presence { ABSENT, PRESENT, MAYBE } presence;

/* What a document may be. */
typedef struct tt_outcome {
    presence presence;
    bool pending; /* not acknowledged */
    bool copy;    /* of `original`; while it is pending that is not known */
    uint64_t original;
    tt_plant plant;
} tt_outcome;

typedef struct tt_entry {
    bool used;
    bool clique;
    bool changed; /* was removed or replaced: its copies need not be there */
    bool seen;
    uint64_t id;
    size_t count;
    tt_outcome outcome[MOST_OUTCOMES]; /* the last is the newest */
} tt_entry;

struct tt_model {
    tt_entry *entries;
    size_t room, count;
    uint64_t present;
};

tt_entry *model_find(const tt_model *model, uint64_t id);

#endif
