/* list.h - lists of documents (doppel_stored_list): memory that belongs to the list, and what is filled in from traces
 * and records. */
#ifndef DP_ENGINE_LIST_H
#define DP_ENGINE_LIST_H

#include "store/store.h"

/* Empties a list, whose memory is used again. */
void dp_stored_list_clear(doppel_stored_list *list);
/* Room for one more behind the last, which counts once list->count says so; NULL: no memory. */
doppel_stored *dp_stored_next(doppel_stored_list *list);
/* Memory of the list, on a multiple of 8; NULL: there is none. */
void *dp_stored_take(doppel_stored_list *list, size_t length);
/* A copy of the list's own; false: no memory. */
bool dp_stored_copy(doppel_stored_list *list, doppel_slice from, doppel_slice *to);
/* A text as it is kept, unpacked; one that cannot be is left out. False: no memory. */
bool dp_stored_unpack(doppel_stored_list *list, doppel_slice packed, uint64_t length, doppel_slice *text);

/* What a trace and a record say, but for names, counts, aliases, text and set. */
doppel_stored dp_stored_of(const dp_trace *trace, const dp_record *record);
/* Copies of its names; false: no memory. */
bool dp_stored_name(doppel_stored_list *list, const dp_record *record, doppel_stored *to);
void dp_stored_count(const dp_counts *counts, doppel_stored *to);

#endif
