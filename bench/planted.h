/* planted.h - the fingerprints of the benchmarks of the index and the joins: random ones, of which one in a hundred is
 * a near-copy (0 to 3 bits flipped) of an earlier one. Each is worked out from its position alone, so that any program,
 * any part of a set and any peer's file gets the same ones.
 *
 * planted_at, planted_query, planted_group -> planted_fill (an array), planted_write (a raw file). */
#ifndef BENCH_PLANTED_H
#define BENCH_PLANTED_H

#include <stddef.h>
#include <stdint.h>

/* The fingerprint at a position of the set. */
uint64_t planted_at(uint64_t position);

/* A query against the first `count` of the set: one in ten is a near-copy of an entry, the others are random. */
uint64_t planted_query(uint64_t number, uint64_t count);

/* What a set is like. */
typedef enum planted_kind {
    PLANTED_FEW,  /* as planted_at gives them */
    PLANTED_SAME, /* and one in twenty in one of 3000 groups of identical ones */
    PLANTED_NEAR  /* and one in twenty in one of 3000 groups, 0 to 3 bits from the middle of the group */
} planted_kind;
planted_kind planted_kind_named(const char *name); /* few, same, near; ends the program for another */

/* `count` fingerprints from position `first` on. */
void planted_fill(uint64_t *to, uint64_t first, size_t count, planted_kind kind);

/* The first `count` as a new array; free() it. Ends the program when there is no memory. */
uint64_t *planted_array(uint64_t count, planted_kind kind);

/* Writes the first `count`, or `count` queries against them, as a raw little-endian file, unless one of that size is
 * there. Ends the program when it cannot. */
void planted_write(const char *path, uint64_t count);
void planted_write_queries(const char *path, uint64_t queries, uint64_t count);

#endif
