/* verify.h - the two sides of dp_store_verify: a child that walks a folder (verify_walk.c,
 * verify_values.c) and its parent (verify.c).
 */
#ifndef DP_STORE_VERIFY_H
#define DP_STORE_VERIFY_H

#include "store/lmdb.h"

/* Memory of both: what the child has found so far, and where it is. */
typedef struct dp_verify_place {
    doppel_verified found;
    int db;          /* a database; -1: before all of them */
    uint64_t number; /* in it; 0: its beginning */
} dp_verify_place;

/* "records", ... */
const char *dp_verify_db_name(int db);

/* Walks the file of a folder and writes findings to `pipe`, a line each. In the child. */
void dp_verify_walk(const char *folder, int pipe, dp_verify_place *place);

/* ---- in the child ---- */

/* Of each database so many findings are told, of the rest how many they are. */
enum { DP_VERIFY_FINDINGS = 100 };

typedef struct dp_walk {
    int pipe;
    dp_verify_place *place;
    dp_env env;
    MDB_txn *txn;
    dp_snapshot now;
    uint64_t *used; /* a bit for each page that something leads to */
    dp_state state;
    uint64_t told; /* findings in this database */
    uint64_t *bad; /* numbers that are lost or not whole */
    size_t bad_count, bad_room;
} dp_walk;

/* A finding, a sentence. */
void dp_verify_say(dp_walk *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A number that is lost or not whole. */
void dp_verify_mark(dp_walk *w, uint64_t number);

/* verify_values.c: one value of a part, of the links, of the counts. */
void dp_verify_part(dp_walk *w, int part, uint64_t number, const MDB_val *value);
void dp_verify_link(dp_walk *w, uint64_t number, uint64_t copy);
void dp_verify_count(dp_walk *w, uint64_t number, const MDB_val *value);
/* The trace of a number; false: none that can be read. */
bool dp_verify_trace(const dp_walk *w, uint64_t number, dp_trace *trace);

#endif
