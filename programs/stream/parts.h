/* parts.h - parts of a batch, each a transaction, and the calls of the engine for them. */
#ifndef STREAM_PARTS_H
#define STREAM_PARTS_H

#include "doppel.h"
#include "stream/worker.h"

/* The pages of a part by their ids. The pages are borrowed. */
typedef struct id_set {
    const doppel_document **slots; /* NULL: free */
    size_t room;                   /* a power of two, at least twice as many as there will be */
} id_set;

bool id_set_open(id_set *set, size_t count); /* false: out of memory */
void id_set_clear(id_set *set);
void id_set_free(id_set *set);

bool id_set_has(const id_set *set, const char *id, size_t length);

/* The page that came first with the id of this one; NULL: this is it. */
const doppel_document *id_set_add(id_set *set, const doppel_document *page);

/* Records from..to of a batch. */
typedef struct part {
    size_t from, to;
    bool adds;    /* it has a page */
    bool unnamed; /* it has a page without an id, which the engine will make */
    id_set ids;   /* of its pages */
} part;

/* ---- parts.c ---- */

/* Finds where the part that begins at p->from ends, and carries out the tombstones at its start. */
outcome find_part(stream *s, batch *b, part *p);

/* ---- engine_calls.c: all of these ask again while the index does not answer. A record whose place in the index is
 * damaged becomes a bad one. ---- */

/* Adds the pages of records from..to; what the engine refuses becomes a bad record. */
outcome add_pages(stream *s, batch *b, size_t from, size_t to);

/* Adds the page of one record; `tries` of it have failed. */
outcome add_alone(stream *s, batch *b, record *r, unsigned tries);

/* Removes the document that has this id, for a record. */
outcome forget(stream *s, record *r, doppel_slice id);

/* The origin of the document with this id, "" if it has none or a longer one. */
outcome get_origin(stream *s, doppel_slice id, char origin[ORIGIN_ROOM], bool *there);

/* *there: whether there is a document with this id that is not of this origin (data NULL: of any). */
outcome is_there(stream *s, doppel_slice id, doppel_slice origin, bool *there);

/* *same: whether the document with the id of this page has the same words. */
outcome has_same_words(stream *s, const doppel_item *page, bool *same);

#endif
