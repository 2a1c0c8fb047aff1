/* similar_scan.h - doppel similar --in: the documents of inputs that are most similar to one, found by comparing all.
 */
#ifndef SIMILAR_SCAN_H
#define SIMILAR_SCAN_H

#include "common/args.h"
#include "doppel.h"

/* A document that was found; its strings are in `memory`. */
typedef struct scan_hit {
    doppel_stored stored;
    char *memory;
} scan_hit;

/* Zero is empty. */
typedef struct scan_result {
    scan_hit *hits; /* the most similar first, ties in input order */
    size_t count;
    scan_hit nearest; /* of all, if it is at least a little similar; memory NULL: there is none */
    bool documents;   /* there are documents to compare with */
} scan_result;

/* Compares the document that the operand names, by its id or URL in the files of --in or as a file, with those of --in:
 * those of at least the similarity of `options` are found, and one less similar than `wider` is not even the nearest.
 * Returns an exit code. Free the result in any case. */
int scan_inputs(const cli_args *args, const doppel_similar_options *options, const doppel_similar_options *wider,
                scan_result *result);
void scan_free(scan_result *result);

#endif
