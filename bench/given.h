/* given.h - documents with an id, a URL and sketches of their own, made from a number: nothing has to be read or
 * sketched, so that what is measured is the engine alone. */
#ifndef BENCH_GIVEN_H
#define BENCH_GIVEN_H

#include "doppel.h"

enum { GIVEN_SET = 50 };

/* What documents have besides id, URL, fingerprint and digest. */
typedef struct given_parts {
    bool sets, titles;
} given_parts;

typedef struct given_document {
    char id[24], url[80], title[160];
    uint64_t fingerprint[2], digest[4], set[GIVEN_SET];
    doppel_item item; /* points to all of it */
} given_document;

/* A number that looks random, and follows from x. */
uint64_t given_mix(uint64_t x);

/* By the name of an argument: distance, similarity (with sets), titles (with both). */
given_parts given_named(const char *near);

/* Document `number`; those of different numbers have nothing in common, but for words of their titles. */
void given_make(given_document *document, uint64_t number, given_parts parts);

/* An engine of such documents, which never expire. */
doppel_engine *given_open(const char *folder, given_parts parts);

/* Adds documents `from` to `to`, a thousand at a time; ends the program when one is refused or found to be known. */
void given_add(doppel_engine *engine, uint64_t from, uint64_t to, given_parts parts);

#endif
