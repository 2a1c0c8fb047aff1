/* against.h - between against.c, which opens index folders, and against_find.c, which asks them. */
#ifndef DP_BATCH_AGAINST_H
#define DP_BATCH_AGAINST_H

#include "batch/batch.h"
#include "engine/engine.h"

typedef struct dp_index_folder {
    char *path;
    doppel_engine *engine;
} dp_index_folder;

struct dp_against {
    dp_index_folder *folder;
    size_t count, room;
    pthread_mutex_t lock; /* of what follows */
    doppel_error failed;  /* what ended a search */
    char complaint[512];  /* the first line of the log since one was told; empty: none */
};

#endif
