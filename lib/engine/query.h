/* query.h - an item as the engine asks about it: who it says it is, and its sketches.
 *
 * A worker is what one thread needs for that, and for looking the answer up; the engine keeps a pool of them. */
#ifndef DP_QUERY_H
#define DP_QUERY_H

#include "engine/known.h"

/* What sketching goes by. */
typedef struct dp_asking {
    const doppel_recipe *recipe;
    bool by_similarity;
    int bands, rows; /* by similarity */
    size_t sample;   /* of the set, so many hashes are kept; 0: all */
    uint64_t min_words;
    bool titles, keep_text;
    doppel_content content;
    unsigned url_without;
    char **fields; /* names */
    size_t field_count;
    const dp_names *names; /* how ids and URLs are hashed */
} dp_asking;

/* Everything is borrowed: from the item, or from the worker until its next query. */
typedef struct dp_query {
    doppel_slice id; /* as given, or derived: the canonical URL, else 16 hex digits of the digest; empty: none */
    bool id_given;
    doppel_slice url, canonical; /* canonical: of the page's own canonical link, or of where a redirect leads, if any */
    doppel_slice title;          /* as given, or of the page */
    doppel_slice title_key;      /* normalised; empty: it does not count */
    doppel_slice fields;         /* a JSON object of the item's fields; data NULL: it has none */
    doppel_slice text;           /* with keep_text, what the fingerprint is of; empty when sketches were given */
    uint64_t text_length;        /* of it, once the engine has packed it; 0: it is not kept */
    uint64_t id_hash, url_hash;  /* dp_name_hash; url_hash 0: no URL */
    bool has_digest;
    uint8_t digest[32];
    uint64_t fingerprint[2];
    uint64_t words;
    bool content;        /* words enough to be near others */
    const uint64_t *set; /* when content and by_similarity */
    size_t set_count;
    const uint32_t *keys; /* of bands; `bands` of them, when content and by_similarity */
    size_t key_count;
    doppel_slice sample;          /* of the set, where samples are kept; data NULL: there is none */
    uint64_t ttl;                 /* as the item says */
    const doppel_stored *restore; /* the item's */
    doppel_slice origin;          /* data NULL: not said */
} dp_query;

typedef struct dp_asker dp_asker;
doppel_status dp_asker_create(const dp_asking *asking, dp_asker **asker, doppel_error *error);
void dp_asker_free(dp_asker *asker);

/* Errors: DOPPEL_ERROR_INPUT (an id, URL, title or field of over DP_NAME_LIMIT bytes, an origin of over
 * DP_ORIGIN_LIMIT; a page that cannot be read; a text with a word too long), with the file and line of the document,
 * DOPPEL_ERROR_USAGE (sketches that do not fit the recipe), DOPPEL_ERROR_MEMORY. */
enum { DP_NAME_LIMIT = 65536, DP_ORIGIN_LIMIT = 1024 };
doppel_status dp_ask(dp_asker *asker, const doppel_item *item, dp_query *query, doppel_error *error);

/* A new query that outlives its asker: all that it points to is in one block. free() it. NULL: no memory. */
dp_query *dp_query_copy(const dp_query *query);

#endif
