/* stored_json.h - verdicts, comparisons, and what an index remembers and counts, as JSON: what the commands and the
 * server print. */
#ifndef COMMON_STORED_JSON_H
#define COMMON_STORED_JSON_H

#include "common/text.h"

/* A verdict, led by its document's id if `with_id`. */
void text_verdict(text_buffer *out, const doppel_verdict *verdict, bool with_id);

/* Everything that is remembered of a document, as one object. `bits`: those of its fingerprint. */
void text_stored(text_buffer *out, const doppel_stored *stored, int bits);

/* The same document as one of a list of similar ones; one without a number is in no index, and has no counts. */
void text_similar(text_buffer *out, const doppel_stored *stored);

/* Members of a copy: why it is one, the reason and the evidence as in a verdict. */
void text_evidence(text_buffer *out, const doppel_stored *stored, bool exact);

/* Counts by doppel_reason, as one object; with `unique` that of DOPPEL_REASON_NONE leads. */
void text_by_reason(text_buffer *out, const uint64_t by[DOPPEL_REASONS], bool unique);

/* Members of the statistics of an engine: how often it did what since it was opened. */
void text_engine_counters(text_buffer *out, const doppel_engine_stats *stats);

/* Members of a comparison: what was found of one side, and how near the two are. */
void text_compared_side(text_buffer *out, const doppel_comparison *comparison, bool is_b);
void text_measures(text_buffer *out, const doppel_comparison *comparison);

#endif
