/* numbers.h - what a process has in memory of numbers of documents: which of them are there and until when, which of
 * them are about to be removed, and which of them cannot be near a query (parities).
 *
 * All of it is by number, in pages or in a table; directory.c uses it, and local_commit.c the set. */
#ifndef DP_NUMBERS_H
#define DP_NUMBERS_H

#include "known/known.h"

#include <pthread.h>

/* A lock for many readers and few writers: writers go first, so that what is read all the time does not keep them
 * waiting. No thread may lock it twice. */
bool dp_lock_init(pthread_rwlock_t *lock);

/* ---- sets of numbers ---- */

/* A set with open addressing; zero is empty. No thread changes it while others use it. */
typedef struct dp_number_set {
    uint64_t *slot; /* 0: empty */
    size_t room, count;
} dp_number_set;

/* Makes room for one more; false: no memory, and nothing has changed. */
bool dp_number_set_reserve(dp_number_set *set);
/* Adds a number, for which there is room. */
void dp_number_set_add(dp_number_set *set, uint64_t number);
bool dp_number_set_has(const dp_number_set *set, uint64_t number);
void dp_number_set_clear(dp_number_set *set);
void dp_number_set_free(dp_number_set *set);

/* ---- which numbers there are, and when each of them ends: 4 bytes a number, in pages of 65,536 numbers ----
 *
 * Pages are found through a directory. One whose numbers are all gone is emptied and used again for others; a thread
 * that still reads it by its old place sees no number there, or that it is another page by now.
 *
 * Threads: any number may read at any time, and any number may reserve and set, each its own numbers, while none
 * clears. */

enum { DP_ALIVE_PAGE = 1 << 16 };

typedef struct dp_alive_page {
    _Atomic uint64_t place;     /* which page of numbers it is; UINT64_MAX: none at the moment */
    _Atomic uint32_t count;     /* numbers that are there */
    _Atomic uint32_t earliest;  /* none of them ends before */
    struct dp_alive_page *next; /* among those that wait to be used again */
    _Atomic uint32_t end[DP_ALIVE_PAGE];
} dp_alive_page;

typedef struct dp_alive_directory {
    size_t count;
    struct dp_alive_directory *before; /* smaller ones, which somebody may still look at */
    _Atomic(dp_alive_page *) page[];
} dp_alive_directory;

typedef struct dp_alive {
    pthread_mutex_t lock; /* of pages that come and go */
    _Atomic(dp_alive_directory *) directory;
    dp_alive_page *idle;
    _Atomic uint64_t pages;
} dp_alive;

bool dp_alive_init(dp_alive *alive);
void dp_alive_free(dp_alive *alive);

/* Makes sure that a number can be set; false: no memory. */
bool dp_alive_reserve(dp_alive *alive, uint64_t number);
/* A number is there from now on, until `expires` (0: for ever). It must have been reserved, and not be there. */
void dp_alive_set(dp_alive *alive, uint64_t number, uint64_t expires);
/* False: it was not there. */
bool dp_alive_clear(dp_alive *alive, uint64_t number);

/* Whether it is there, and whether it is and has not ended by `now`. */
bool dp_alive_has(dp_alive *alive, uint64_t number);
bool dp_alive_at(dp_alive *alive, uint64_t number, uint64_t now);

/* Those that have ended by `now`: up to `room` are written, ascending; gives how many. */
size_t dp_alive_ended(dp_alive *alive, uint64_t now, uint64_t *numbers, size_t room);

uint64_t dp_alive_bytes(const dp_alive *alive);

/* ---- parities: which sets are too different to be near, by a few bits of each ----
 *
 * They are for documents that share a band with very many others (the pages of one template), so that their sets need
 * not be read.
 *
 * The parity of a set is a bitmap of m bits, of which bit i is 1 when an odd number of the set's hashes fall on i. In
 * the XOR of two parities what both sets have cancels out; so it has at most as many ones as there are hashes in one of
 * the sets only. Hence A and B share at most (|A| + |B| - ones) / 2 hashes. If even that is less than the similarity
 * asks for, they are not near; else they have to be compared. Nothing that is near is dropped.
 *
 * Of samples (the k smallest hashes of each set) similarity is estimated as the share of the k smallest of both that
 * both have. It is at most the number of values the samples share, divided by the size of the smaller sample. Samples
 * are compared at the coarser of their scales; a parity is kept at a sample's own scale and at the next coarser one,
 * and samples whose scales are farther apart are never dropped here.
 *
 * m is a power of two, 2 to 4 bits a hash: at a threshold of 0.8, sets of a similarity of 0.7 are dropped 99 times in
 * 100, and of 0.5 always. Of samples, which the bound fits less tightly, it is 4 to 8 bits a value, and those of a
 * similarity of 0.5 are dropped 99 times in 100. Halves of a parity, XORed, are that of m / 2 bits: so any two can be
 * compared. Which bit a hash falls on is decided by a secret, so that nobody can choose hashes that all fall on one.
 *
 * create; add what was read; sift (drop what cannot be near); remove what is gone. Threads: any number at a time. */

typedef struct dp_parities dp_parities;

/* NULL: no memory. */
dp_parities *dp_parities_create(void);
void dp_parities_free(dp_parities *parities);

/* The features of a number, unless it is there, or `alive` says that the number is gone. False: no memory, and it is
 * not there. */
bool dp_parities_add(dp_parities *parities, uint64_t number, const dp_features *features, dp_alive *alive);
/* Of a number that `alive` does not have any more. */
void dp_parities_remove(dp_parities *parities, uint64_t number);

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
/* As dp_directory_sift. */
void dp_parities_sift(dp_parities *parities, const dp_sift *sift, dp_numbers *numbers);

uint64_t dp_parities_bytes(dp_parities *parities);

#endif
