/* found.h - documents of a batch that an index folder has: against_find.c asks the index while documents are sketched,
 * found.c keeps what it said.
 *
 * Such a document is out of the batch: nothing is compared with it. Its original is not of the batch either; originals
 * are numbered in the order in which they come up, and stand behind all documents of the batch. */
#ifndef DP_BATCH_FOUND_H
#define DP_BATCH_FOUND_H

#include "decide/decide.h"

/* What an index said of a document. */
typedef struct dp_found {
    uint32_t id_length; /* of the original; 0: the index does not have the document */
    uint32_t original;  /* its number; without meaning in the journal */
    float similarity;   /* negative: not known */
    int16_t distance;   /* -1: not known */
    uint8_t kind;       /* why, as files number it: dp_found_kind */
    uint8_t verified;   /* false: the index keeps no features, and the words are not the same */
} dp_found;

/* ---- what was found: found.c ---- */

/* Files tell the same words from near content, which have one reason. */
enum { DP_FOUND_KINDS = 5 };
uint8_t dp_found_kind(dp_reason reason, bool same_digest);
/* And back, for a kind below DP_FOUND_KINDS. */
dp_reason dp_found_reason(uint8_t kind);

typedef struct dp_found_document {
    uint32_t document;
    dp_found found;
} dp_found_document;

typedef struct dp_found_original {
    uint64_t hash[2]; /* of its id */
    uint64_t id_at;   /* in the journal */
    uint32_t id_length;
} dp_found_original;

typedef struct dp_finds {
    dp_found_document *document; /* ascending */
    size_t count, room;
    dp_found_original *original;
    size_t original_count, original_room;
    uint32_t *table; /* numbers + 1 of originals by hash; 0: free */
    size_t table_room;
    uint64_t key[2]; /* of the hashes, by chance: nobody can choose ids that meet */
} dp_finds;

void dp_finds_free(dp_finds *finds);
/* Notes a document, which comes after all before it; `id` is that of its original, as it stands at `id_at` in the
 * journal. False: no memory. */
bool dp_finds_add(dp_finds *finds, const dp_found_document *document, doppel_slice id, uint64_t id_at);
/* What was found of a document; NULL: nothing. */
const dp_found *dp_finds_get(const dp_finds *finds, uint32_t document);

/* ---- asking: against.c, against_find.c ---- */

/* Index folders that are open. */
typedef struct dp_against dp_against;

/* What of a document is asked for; slices may be empty, `sketch` is NULL where content does not count. */
typedef struct dp_asked {
    doppel_slice url;   /* canonical */
    doppel_slice title; /* normalised */
    const doppel_sketch *sketch;
} dp_asked;

/* Whether a path is an index folder. */
bool dp_is_index(const char *path);

/* Opens the index folders among the known paths of all readings so far, those that are not open yet. Errors:
 * DOPPEL_ERROR_USAGE and DOPPEL_ERROR_STORE with a message that says what of the index does not go with the batch. */
doppel_status dp_against_open(doppel_batch *batch, doppel_error *error);
void dp_against_close(dp_against *against);

/* Looks for a document in all folders; from any thread. found->id_length is 0 when none has it, else
 * verdict->original_id is the original's id. What went wrong is kept for dp_against_end. */
doppel_status dp_against_find(const doppel_batch *batch, const dp_asked *asked, doppel_verdict *verdict,
                              dp_found *found);

/* After reading, which ended with `status`: says what the indexes complained about, and if it was one of them that made
 * it fail, why. */
void dp_against_end(const doppel_batch *batch, doppel_status status, doppel_error *error);

#endif
