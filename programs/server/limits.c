/* limits.c - how many requests a second a client may send. */
#include "server/limits.h"

#include "doppel.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

bool limits_open(limits *l, double rate) {
    *l = (limits){.rate = rate};
    pthread_mutex_init(&l->lock, NULL);
    if (getrandom(&l->secret, sizeof l->secret, 0) != sizeof l->secret)
        l->secret = (uint64_t)(uintptr_t)l;
    if (rate > 0)
        l->buckets = calloc((size_t)LIMIT_ROWS * LIMIT_WAYS, sizeof *l->buckets);
    return rate <= 0 || l->buckets;
}

void limits_close(limits *l) {
    free(l->buckets);
    pthread_mutex_destroy(&l->lock);
    *l = (limits){0};
}

/* The bucket of a client, or the one of its row that was not used for the longest time, filled. */
static limit_bucket *find(limits *l, uint64_t client, uint64_t now) {
    limit_bucket *row = &l->buckets[client % LIMIT_ROWS * LIMIT_WAYS], *oldest = row;
    for (int i = 0; i < LIMIT_WAYS; i++) {
        if (row[i].client == client)
            return &row[i];
        if (row[i].when < oldest->when)
            oldest = &row[i];
    }
    *oldest = (limit_bucket){client, now, l->rate};
    return oldest;
}

bool limits_allow(limits *l, const char *client, uint64_t now, unsigned *retry_after) {
    uint64_t hash = 0;
    if (l->rate <= 0)
        return true;
    if (doppel_hash("xxh3", client, strlen(client), l->secret, &hash) != DOPPEL_OK || !hash)
        hash = 1;
    pthread_mutex_lock(&l->lock);
    limit_bucket *bucket = find(l, hash, now);
    double most = l->rate > 1 ? l->rate : 1;
    bucket->left += now > bucket->when ? (double)(now - bucket->when) * 1e-6 * l->rate : 0;
    bucket->left = bucket->left > most ? most : bucket->left;
    bucket->when = now;
    bool allowed = bucket->left >= 1;
    if (allowed)
        bucket->left -= 1;
    *retry_after = allowed ? 0 : 1 + (unsigned)((1 - bucket->left) / l->rate);
    pthread_mutex_unlock(&l->lock);
    return allowed;
}
