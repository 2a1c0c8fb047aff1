/* stored_json.h - verdicts and documents that an index remembers, as JSON: what the commands and the server print. */
#ifndef COMMON_STORED_JSON_H
#define COMMON_STORED_JSON_H

#include "common/text.h"

/* A verdict, led by its document's id if `with_id`. */
void text_verdict(text_buffer *out, const doppel_verdict *verdict, bool with_id);

/* Everything that is remembered of a document, as one object. `bits`: those of its fingerprint. */
void text_stored(text_buffer *out, const doppel_stored *stored, int bits);

/* The same document as one of a list of similar ones. */
void text_similar(text_buffer *out, const doppel_stored *stored);

/* Members of a copy: why it is one, the reason and the evidence as in a verdict. */
void text_evidence(text_buffer *out, const doppel_stored *stored);

#endif
