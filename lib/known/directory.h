/* directory.h - what a process keeps in memory about the documents of its store: which have this key, this fingerprint,
 * these bands, this title, and which numbers are alive.
 *
 * keys.c: a number by a hash of its id, URL or digest, and by the keys of its bands: 7 bytes per key and some spare
 * space; its results may be wrong (hashes and numbers are truncated), never incomplete: the caller compares with what
 * is stored. directory.c: when each number expires, in pages that are freed when empty; and, for documents whose bands
 * very many share, which of them cannot be near, without reading what is stored. Fingerprints are in a doppel_index,
 * titles in a dp_titles_index.
 *
 * One thread at a time changes it (add, remove, load); any number may read at any time and wait at most for one step of
 * a change, never for all of it. */
#ifndef DP_DIRECTORY_H
#define DP_DIRECTORY_H

#include "hamming/hamming.h"
#include "known/known.h"
#include "sketch/sketch.h"
#include "title/title.h"

typedef struct dp_directory dp_directory;

typedef struct dp_directory_options {
    int bits, distance;
    bool by_similarity; /* keys of bands are kept instead of fingerprints */
    bool titles;
    double title_similarity;
    uint64_t count, memory; /* as in doppel_engine_options */
    int threads;
    bool read_only; /* nothing is purged */
} dp_directory_options;

doppel_status dp_directory_create(const dp_directory_options *options, dp_directory **directory, doppel_error *error);
void dp_directory_free(dp_directory *directory);

/* Adds a trace: a document (all its evidence), a copy (id and URL, and its words if they are its own) or a text (its
 * words only); an existing one stays. A removal is ignored: it needs the trace of what was removed, for
 * dp_directory_remove. On an error nothing has changed: DOPPEL_ERROR_MEMORY, DOPPEL_ERROR_STORE for a number above
 * DP_DIRECTORY_NUMBERS, DOPPEL_ERROR_USAGE for number 0, a fingerprint wider than it should be or too many bands. */
#define DP_DIRECTORY_NUMBERS (((uint64_t)1 << 40) - 1)
doppel_status dp_directory_add(dp_directory *directory, const dp_trace *trace);
/* Takes a number out again. It must be given as it was added. Does nothing if it is absent. On an error
 * (DOPPEL_ERROR_MEMORY) it is still present. A title of over 500 bytes may stay when out of memory; it does not count,
 * as its number is not alive: so a refused or removed number must not be given to another document. */
doppel_status dp_directory_remove(dp_directory *directory, const dp_trace *trace);

/* Many traces at once, on several threads, for opening: begin; add from any number of threads (traces are copied as
 * needed); end, which builds the tables, and ends the load whatever it returns. No thread may read in the meantime, and
 * no number is added twice. Expired ones are added too: dp_directory_expired returns them, to be removed; and so are
 * copies and texts without their original, as expired, unless read_only. After an
 * error of add or end, call only dp_directory_load_end and dp_directory_free. */
typedef struct dp_directory_load dp_directory_load;
doppel_status dp_directory_load_begin(dp_directory *directory, dp_directory_load **load);
doppel_status dp_directory_load_add(dp_directory_load *load, const dp_trace *trace);
doppel_status dp_directory_load_end(dp_directory_load *load);

/* ---- reading ---- */

/* A digest as a key. */
static inline uint64_t dp_digest_hash(const uint8_t digest[32]) {
    return dp_load64(digest);
}

/* The numbers that may have this key, ascending; *numbers is emptied first. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_directory_find_key(dp_directory *directory, dp_key key, uint64_t hash, dp_numbers *numbers);
/* The numbers that may share a band, each once, ascending. */
doppel_status dp_directory_find_bands(dp_directory *directory, const uint32_t *keys, size_t count, dp_numbers *numbers);
/* Scratch memory for sifting, reused. Zero is none. */
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
/* Drops numbers whose sets are known to be less similar than that, by the parity that dp_directory_keep_parity kept;
 * numbers without one stay, and all stay when out of memory. With by_similarity. */
void dp_directory_sift(dp_directory *directory, const dp_sift *sift, dp_numbers *numbers);
/* Keeps the parity of a number's set (directory.c), which later shows that it is too different, if the number is
 * present. Any thread may call it. Without memory nothing is kept. */
void dp_directory_keep_parity(dp_directory *directory, uint64_t number, const dp_features *features);
/* All within the distance, as doppel_index_find gives them: owners are numbers. Not with by_similarity. */
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
    double share;  /* titles that more than this share of the documents have had, and more than 8, do not count */
    uint64_t seen; /* duplicates that were ever found by their titles */
    uint64_t (*times)(void *user, uint64_t owner); /* those of an owner; NULL: as dp_directory_title_seen says */
    void *user;
    bool best;                   /* only the first hit is wanted */
    const dp_title_ahead *ahead; /* of this title; NULL: none */
} dp_title_search;

/* All owners of titles at or above the threshold, the most similar first, then by number; or only the first of them.
 * `matches` is reused memory. */
doppel_status dp_directory_find_titles(dp_directory *directory, const dp_title_search *search,
                                       dp_title_matches *matches, dp_title_hits *hits);
/* Looks up a normalised title before it is searched for: the search gives the same result with it as without. A thread
 * that changes titles at the same time waits at most some microseconds. Without memory nothing is looked up. */
void dp_directory_look_ahead(dp_directory *directory, doppel_slice title, dp_title_matches *matches,
                             dp_title_ahead *ahead);
/* Duplicates of a document were found by its title: they count like documents with that title, until it is removed. */
doppel_status dp_directory_title_seen(dp_directory *directory, uint64_t number, uint64_t times);
/* Undoes that many, or all there were. */
void dp_directory_title_unseen(dp_directory *directory, uint64_t number, uint64_t times);

/* ---- numbers ---- */

/* Numbers that have expired by `now`: up to `room`, ascending; returns how many. Scans 4 bytes per document, only in
 * pages of 65,536 numbers with an expired one. */
size_t dp_directory_expired(dp_directory *directory, uint64_t now, uint64_t *numbers, size_t room);

typedef struct dp_directory_stats {
    uint64_t documents, copies, titles;
    uint64_t keys_bytes, near_bytes, title_bytes;
    uint64_t parity_bytes; /* of near_bytes */
    char plan[64];         /* the layout of the fingerprints; empty with by_similarity */
} dp_directory_stats;
void dp_directory_get_stats(dp_directory *directory, dp_directory_stats *stats);

#endif
