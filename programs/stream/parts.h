/* parts.h - parts of a batch, each a transaction, and the engine asked about them. */
#ifndef STREAM_PARTS_H
#define STREAM_PARTS_H

#include "stream/ids.h"
#include "stream/state.h"

/* Records from..to of a batch. */
typedef struct part {
    size_t from, to;
    bool adds;    /* it has a page */
    bool unnamed; /* it has a page whose id the engine makes */
    id_set ids;   /* of its pages */
} part;

/* ---- parts.c ---- */

/* Finds where the part that begins at p->from ends, and carries out the tombstones at its start. */
outcome find_part(stream *s, const batch *b, part *p);

/* ---- asking.c: all of these ask again while the index does not answer ---- */

/* Adds the pages of records from..to; what the engine would not have becomes a bad record. */
outcome add_pages(stream *s, batch *b, size_t from, size_t to);

/* Removes the document that the key of a tombstone names. */
outcome forget(stream *s, const rd_kafka_message_t *m);

/* *there: whether there is a document with this id that is not of this origin (data NULL: of any). */
outcome is_there(stream *s, doppel_slice id, doppel_slice origin, bool *there);

/* *same: whether the document that is called like this page has the same words. */
outcome has_same_words(stream *s, const doppel_item *page, bool *same);

#endif
