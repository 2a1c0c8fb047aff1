/* redis_reading.h - what is read of a shared memory: by name or number (redis_read.c), by fingerprint (redis_near.c).
 */
#ifndef DP_REDIS_READING_H
#define DP_REDIS_READING_H

#include "store/redis_memory.h"

/* What is asked for; each call uses some of it. */
typedef struct dp_redis_reading {
    dp_shared *shared;
    uint64_t now;
    doppel_slice id, canonical;
    const uint64_t *numbers;
    size_t number_count;
    const uint64_t *fingerprint;
    int distance;
    size_t limit;
    uint64_t from;
    dp_redis_memory memory;
    doppel_error *error;
} dp_redis_reading;

typedef void (*dp_redis_put_reading)(dp_redis_writer *w, const dp_redis_reading *r);

/* Calls a function, again where another memory was made meanwhile. The reply is a list. */
doppel_status dp_redis_read(dp_redis_reading *r, const char *function, dp_redis_put_reading put, redisReply **reply);
/* The documents of a list, from `first` on; the reply is theirs then. */
doppel_status dp_redis_read_items(dp_redis_reading *r, redisReply *reply, size_t first, dp_shared_documents *documents);
/* Bytes that nobody of us wrote: DOPPEL_ERROR_STORE. */
doppel_status dp_redis_read_damaged(const dp_redis_reading *r);
int dp_redis_compare_numbers(const void *a, const void *b); /* for qsort, of uint64_t */

#endif
