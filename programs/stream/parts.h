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
outcome find_part(stream *s, batch *b, part *p);

/* ---- asking.c: all of these ask again while the index does not answer. A record whose place in the index is damaged
 * becomes a bad one. ---- */

/* Adds the pages of records from..to; what the engine would not have becomes a bad record. */
outcome add_pages(stream *s, batch *b, size_t from, size_t to);

/* Adds the page of one record; `tries` of it have failed. */
outcome add_alone(stream *s, batch *b, record *r, unsigned tries);

/* Removes the document that has this id, for a record. */
outcome forget(stream *s, record *r, doppel_slice id);

/* The origin of the document with this id, "" if it has none or a longer one. */
outcome get_origin(stream *s, doppel_slice id, char origin[ORIGIN_ROOM], bool *there);

/* *there: whether there is a document with this id that is not of this origin (data NULL: of any). */
outcome is_there(stream *s, doppel_slice id, doppel_slice origin, bool *there);

/* *same: whether the document that is called like this page has the same words. */
outcome has_same_words(stream *s, const doppel_item *page, bool *same);

#endif
