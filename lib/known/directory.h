/* directory.h - what a process has in memory of the documents of its store: who has this key, this fingerprint, these
 * bands, this title, and which numbers are alive.
 *
 * keys.c: a number by a hash of its id, URL or digest, and by the keys of its bands: 7 bytes a key and some air; what
 * it gives may be wrong (hashes and numbers are cut), never incomplete: the caller compares with what is stored.
 * directory.c: when each number ends, in pages that go when all of theirs are gone; and, of documents whose bands very
 * many share, which of them cannot be near, without reading what is stored. Fingerprints are in a doppel_index, titles
 * in a dp_titles_index.
 *
 * One thread at a time changes it (add, remove, load); any number read at any time and wait at most for one step of the
 * change, never for all of it. */
#ifndef DP_DIRECTORY_H
#define DP_DIRECTORY_H

#include "hamming/hamming.h"
#include "known/known.h"
#include "sketch/sketch.h"
#include "title/title.h"

typedef struct dp_directory dp_directory;

typedef struct dp_directory_options {
    int bits, distance;
    bool by_similarity; /* keys of bands are kept in place of fingerprints */
    bool titles;
    double title_similarity;
    uint64_t count, memory; /* as in doppel_engine_options */
    int threads;
} dp_directory_options;

doppel_status dp_directory_create(const dp_directory_options *options, dp_directory **directory, doppel_error *error);
void dp_directory_free(dp_directory *directory);

/* Takes in a trace: a document (all its evidence), a copy (id and URL, and its words if they are its own) or a text
 * (its words only); one that is there stays. A removal is
 * passed over: it needs the trace of what is gone, for dp_directory_remove. On an error nothing has changed:
 * DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_STORE for a number above DP_DIRECTORY_NUMBERS, DOPPEL_ERROR_USAGE for number 0, a
 * fingerprint wider than it should be or too many bands. */
#define DP_DIRECTORY_NUMBERS (((uint64_t)1 << 40) - 1)
doppel_status dp_directory_add(dp_directory *directory, const dp_trace *trace);
/* Takes a number out again. It must be given as it was added. Nothing happens when it is not there. On an error
 * (DOPPEL_ERROR_MEMORY) it is still there. A title of over 500 bytes may stay when memory is wanting; it does not
 * count, as its number is not alive: so a number that was refused or taken out must not become another document's. */
doppel_status dp_directory_remove(dp_directory *directory, const dp_trace *trace);

/* Many traces at once, on several threads, for opening: begin; add from any number of threads (traces are copied as
 * needed); end, which builds what is built at once, and ends the load whatever it gives. Nobody reads meanwhile, and no
 * number is given twice. What has expired is taken too: dp_directory_expired gives it, to be removed. On an error of
 * add or end, all that is left to do is dp_directory_load_end and dp_directory_free. */
typedef struct dp_directory_load dp_directory_load;
doppel_status dp_directory_load_begin(dp_directory *directory, dp_directory_load **load);
doppel_status dp_directory_load_add(dp_directory_load *load, const dp_trace *trace);
doppel_status dp_directory_load_end(dp_directory_load *load);

/* ---- reading ---- */

/* A digest as a key. */
static inline uint64_t dp_digest_hash(const uint8_t digest[32]) {
    return dp_load64(digest);
}

/* Whoever may have this key, ascending; *numbers is emptied first. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_directory_find_key(dp_directory *directory, dp_key key, uint64_t hash, dp_numbers *numbers);
/* Whoever may share a band, each once, ascending. */
doppel_status dp_directory_find_bands(dp_directory *directory, const uint32_t *keys, size_t count, dp_numbers *numbers);
/* What sifting works with; memory that is used again. Zero is none. */
typedef struct dp_sift_scratch {
    uint64_t *bits;
    size_t room;
} dp_sift_scratch;
/* Features, and how similar others have to be. */
typedef struct dp_sift {
    dp_features features;
    double least;
    dp_sift_scratch *scratch;
} dp_sift;
/* Drops numbers whose sets are known to be less similar than that, from what they left with dp_directory_keep_parity;
 * whoever left nothing stays, and all do when there is no memory. With by_similarity. */
void dp_directory_sift(dp_directory *directory, const dp_sift *sift, dp_numbers *numbers);
/* Keeps what tells later that the set of a number is too different (directory.c), if the number is there. Any thread
 * may call it. Without memory nothing is kept. */
void dp_directory_keep_parity(dp_directory *directory, uint64_t number, const dp_features *features);
/* Whoever is within the distance, as doppel_index_find gives them: owners are numbers. Not with by_similarity. */
doppel_status dp_directory_find_near(dp_directory *directory, const uint64_t *fingerprint, int distance,
                                     doppel_matches *matches, doppel_error *error);

/* Whether a number is known and has not expired. */
bool dp_directory_alive(dp_directory *directory, uint64_t number, uint64_t now);

/* ---- titles ---- */

typedef struct dp_title_search {
    doppel_slice title;         /* normalised */
    uint64_t now, below;        /* owners that are not alive, or have a number of `below` or more, do not count */
    uint64_t except[2];         /* neither do these; 0: none */
    const dp_hashmap *removing; /* nor these; NULL: none */
    double share; /* titles that more than this share of the documents have had, and more than 8, do not count */
    bool best;    /* the first hit is enough */
    const dp_title_ahead *ahead; /* of this title; NULL: none */
} dp_title_search;

/* All owners of titles at or above the threshold, the most similar first, then by number; or only the first of them.
 * `matches` is memory to use again. */
doppel_status dp_directory_find_titles(dp_directory *directory, const dp_title_search *search,
                                       dp_title_matches *matches, dp_title_hits *hits);
/* Looks up a title, normalised, before it is searched for: the search gives the same with it as without. Who changes
 * titles meanwhile waits for some microseconds at most. Without memory nothing is looked up. */
void dp_directory_look_ahead(dp_directory *directory, doppel_slice title, dp_title_matches *matches,
                             dp_title_ahead *ahead);
/* A document with this title came, but was not added (it was a duplicate by its title). */
doppel_status dp_directory_title_seen(dp_directory *directory, doppel_slice title, uint64_t times);
/* They do not count any more: as many, or all that were. */
doppel_status dp_directory_title_forgotten(dp_directory *directory, doppel_slice title, uint64_t times);

/* ---- numbers ---- */

/* Numbers that have expired by `now`: up to `room`, ascending; gives how many. A scan of 4 bytes a document, of those
 * 65,536 numbers alone among which one has. */
size_t dp_directory_expired(dp_directory *directory, uint64_t now, uint64_t *numbers, size_t room);

typedef struct dp_directory_stats {
    uint64_t documents, copies, titles;
    uint64_t keys_bytes, near_bytes, title_bytes;
    uint64_t parity_bytes; /* of near_bytes */
    char plan[64];         /* the layout of the fingerprints; empty with by_similarity */
} dp_directory_stats;
void dp_directory_get_stats(dp_directory *directory, dp_directory_stats *stats);

#endif
