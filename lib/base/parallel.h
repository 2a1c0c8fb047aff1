/* parallel.h - work on large arrays shared by threads: pieces of a range, sums, sorting. The result does not depend on
 * the number of threads. */
#ifndef DP_PARALLEL_H
#define DP_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

/* Calls work(user, from, to) for all pieces of 0 ... count - 1: `piece` numbers each, the last may have fewer. Threads
 * take piece after piece; a single piece is done by the calling thread. */
void dp_run_pieces(size_t threads, size_t count, size_t piece, void (*work)(void *user, size_t from, size_t to),
                   void *user);

/* The overhead of dp_run_pieces is small compared with a piece of this many simple steps. */
enum { DP_PIECE = 1 << 15 };

/* Prefix sums in place; returns the last. */
uint64_t dp_add_up(size_t threads, uint64_t *numbers, size_t count);

/* dp_sort64 on threads: ascending, `scratch` has space for `count`. */
void dp_sort64_on(size_t threads, uint64_t *numbers, size_t count, uint64_t *scratch);

/* Sorts distinct numbers by a comparison of two of them, as qsort_r does; none may compare equal. `scratch` has room
 * for `count`. */
typedef int (*dp_compare_numbers)(const void *a, const void *b, void *user);
void dp_sort_by(size_t threads, uint32_t *numbers, size_t count, uint32_t *scratch, dp_compare_numbers compare,
                void *user);

#endif
