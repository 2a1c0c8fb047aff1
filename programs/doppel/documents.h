/* documents.h - the documents of a command as fingerprints: what pairs and cluster start from.
 *
 * A document with fewer than `min_words` words is known by its digest alone: it is a twin of those with the same words,
 * and is not joined. One without words is neither. Positions count all documents, in input order. A document takes 16
 * bytes and its id; 24 more if some are not joined, and 40 more if it is known by its digest. */
#ifndef DOCUMENTS_H
#define DOCUMENTS_H

#include "commands.h"
#include "ids.h"
#include "joining.h"

#define NO_TWIN UINT64_MAX

/* A document that is known by its digest. */
typedef struct twin {
    uint8_t digest[16]; /* half of SHA-256 */
    uint64_t position;
    uint64_t next; /* the twin with the same words that comes next, or NO_TWIN */
    bool copy;     /* there is one before it */
} twin;

typedef struct collection {
    sketch_job sketch; /* first: begin_sketching takes it for its job */
    loaded_recipe loaded;
    const cli_args *args;
    bool collapse; /* joined documents are known by their digests too, and copies are not joined */
    uint64_t min_words;
    int distance;
    doppel_input_counts counts;
    doppel_join_counts joined_counts;

    id_list ids;            /* of all documents, as JSON strings */
    uint64_t *fingerprints; /* of the joined ones */
    size_t joined, fingerprint_room;
    uint64_t *places; /* positions of the joined ones; NULL: all documents are joined */
    size_t place_room;
    twin *twins; /* in order of position */
    size_t twin_count, twin_room;
} collection;

/* The options that commands on documents share. */
#define DOCUMENT_OPTIONS                                                                                            \
    {"method", 'm', OPTION_TEXT, "METHOD",                                                                          \
     "how near documents are found: simhash (the default, and the only one yet)"},                                  \
        {"distance", 'd', OPTION_COUNT, "K", "near: fingerprints differ in at most K bits (default 3)"},            \
        {"min-words", 0, OPTION_COUNT, "N",                                                                         \
         "documents with fewer words are near only if their words are the same (default 5)"},                       \
        RECIPE_OPTIONS,                                                                                             \
        {"bits", 'b', OPTION_COUNT, "N", "the width of the fingerprint, 1 to 64 or 128, whatever the recipe says"}, \
        {"df", 0, OPTION_FILE, "TABLE", "the table for weight=tfidf, made by doppel df"}, JOIN_OPTIONS, {           \
        "json", 0, OPTION_FLAG, NULL, "with --output: print a summary as one JSON object"                           \
    }

/* Reads all documents. Gives an exit code; *usable tells whether there is something to go on with. Free it in any case.
 */
int collect(collection *c, const cli_args *args, bool collapse, bool *usable);
void free_collection(collection *c);

/* Joins the documents: `options` has what is the command's own (all, pairs, user). Gives an exit code. */
int join_documents(collection *c, doppel_join_options *options);

/* The position of a joined document. */
static inline uint64_t place_of(const collection *c, uint64_t joined) {
    return c->places ? c->places[joined] : joined;
}

/* The members of a summary that both commands have, with the brace that opens it. */
void print_collection(const collection *c);

#endif
