/* journal.h - between journal.c, which begins a journal and reads it back, and journal_file.c, which saves one and
 * takes that of another batch. */
#ifndef DP_BATCH_JOURNAL_H
#define DP_BATCH_JOURNAL_H

#include "batch/batch.h"

#define DP_JOURNAL_MAGIC "DOPPELSK"
#define DP_JOURNAL_VERSION 2

typedef struct dp_journal_header {
    char magic[8];
    uint32_t version, text_length;
    uint64_t shaping; /* bytes of the text that shape sketches */
    uint64_t check;   /* XXH3 of the text */
} dp_journal_header;

/* A journal that is read back: check, then run. */
typedef struct dp_replay {
    doppel_batch *batch;
    const dp_spill *file;
    uint64_t at, end; /* of the entries that are left */
    dp_buffer bytes;
    /* What to do with a whole entry. */
    doppel_status (*take)(doppel_batch *batch, const char *entry, size_t length, uint64_t at);
} dp_replay;

/* Whether the journal was made with options like those of the batch: `all`, or those that shape sketches. Sets `at`. */
doppel_status dp_replay_check(dp_replay *replay, const char *path, bool all, doppel_error *error);
/* Takes entries up to the first that is not whole and sound: `at` is where that stands. */
doppel_status dp_replay_run(dp_replay *replay);

#endif
