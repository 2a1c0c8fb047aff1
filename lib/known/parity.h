/* parity.h - which sets are too different to be near, told by a few bits of each: for documents that share a band with
 * very many others (the pages of one template), so that their sets need not be read.
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
#ifndef DP_PARITY_H
#define DP_PARITY_H

#include "known/alive.h"
#include "known/directory.h"

typedef struct dp_parities dp_parities;

/* NULL: no memory. */
dp_parities *dp_parities_create(void);
void dp_parities_free(dp_parities *parities);

/* The features of a number, unless it is there, or `alive` says that the number is gone. False: no memory, and it is
 * not there. */
bool dp_parities_add(dp_parities *parities, uint64_t number, const dp_features *features, dp_alive *alive);
/* Of a number that `alive` does not have any more. */
void dp_parities_remove(dp_parities *parities, uint64_t number);

/* As dp_directory_sift. */
void dp_parities_sift(dp_parities *parities, const dp_sift *sift, dp_numbers *numbers);

uint64_t dp_parities_bytes(dp_parities *parities);

#endif
