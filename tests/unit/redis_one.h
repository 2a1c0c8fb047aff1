/* redis_one.h - one real Redis for all tests of a program, empty before each of them; the program starts it. */
#ifndef TESTS_REDIS_ONE_H
#define TESTS_REDIS_ONE_H

#include "redis_links.h"

static redis_server server;

static inline int stop(void **state) {
    (void)state;
    redis_remove(&server);
    return 0;
}

static inline int empty(void **state) {
    (void)state;
    redis_do(&server, "FLUSHALL");
    redis_do(&server, "CONFIG SET maxmemory 0");
    return 0;
}

/* How many were carried out. */
static inline long long counted(void) {
    return redis_number(&server, "HGET {doppel}m all");
}

#endif
