/* limits.h - how many requests a second a client may send.
 *
 * A bucket a client: it holds as many requests as are allowed in a second, each takes one, and time fills it again. The
 * table has a fixed size; a client whose place is taken by others begins anew, so memory never grows. */
#ifndef SERVER_LIMITS_H
#define SERVER_LIMITS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { LIMIT_ROWS = 1024, LIMIT_WAYS = 8 };

typedef struct limit_bucket {
    uint64_t client; /* a hash of its address; 0: free */
    uint64_t when;   /* microseconds */
    double left;
} limit_bucket;

typedef struct limits {
    double rate; /* requests a second; 0: any */
    uint64_t secret;
    limit_bucket *buckets;
    pthread_mutex_t lock;
} limits;

/* False: no memory. */
bool limits_open(limits *l, double rate);
void limits_close(limits *l);

/* Whether a client may go on; else *retry_after is how many seconds it should wait. */
bool limits_allow(limits *l, const char *client, uint64_t now, unsigned *retry_after);

#endif
