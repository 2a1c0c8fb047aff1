/* query.h - from an item to a query (dp_query of known.h): its names and its sketches.
 *
 * A maker is what one thread needs for that: dp_query_maker_create, dp_query_make for each item,
 * dp_query_maker_free. */
#ifndef DP_QUERY_H
#define DP_QUERY_H

#include "known/known.h"
#include "sketch/sketch.h"

/* How queries are made. */
typedef struct dp_query_settings {
    const doppel_recipe *recipe;
    bool by_similarity;
    int bands, rows; /* by similarity */
    size_t sample;   /* hashes of the set that are kept; 0: all */
    uint64_t min_words;
    bool titles, keep_text;
    doppel_content content;
    unsigned url_without;
    char **fields; /* names */
    size_t field_count;
} dp_query_settings;

typedef struct dp_query_maker dp_query_maker;
doppel_status dp_query_maker_create(const dp_query_settings *sketching, dp_query_maker **maker, doppel_error *error);
void dp_query_maker_free(dp_query_maker *maker);

/* Errors: DOPPEL_ERROR_INPUT (an id, URL, title or field of over DP_NAME_LIMIT bytes, an origin of over
 * DP_ORIGIN_LIMIT; a page that cannot be read; a text with a word too long), with the file and line of the document,
 * DOPPEL_ERROR_USAGE (sketches that do not fit the recipe), DOPPEL_ERROR_MEMORY. */
enum { DP_NAME_LIMIT = 65536, DP_ORIGIN_LIMIT = 1024 };
doppel_status dp_query_make(dp_query_maker *maker, const doppel_item *item, dp_query *query, doppel_error *error);

/* Fills in a query from a sketch: words, digest, fingerprint; by similarity, where query->content is set, the set, the
 * keys of its bands and its sample. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_query_take_sketch(dp_query_maker *maker, const doppel_sketch *sketch, dp_query *query,
                                   doppel_error *error);

/* A new query that outlives its maker: all that it points to is in one block. free() it. NULL: out of memory. */
dp_query *dp_query_copy(const dp_query *query);

#endif
