/* idempotency.h - Idempotency-Key: an add that is sent again gets the answer of the first time.
 *
 * The last so many keys are remembered, with what was sent under each (a hash of it) and what was answered, whoever
 * sent them: a key belongs to a token and an index. */
#ifndef SERVER_IDEMPOTENCY_H
#define SERVER_IDEMPOTENCY_H

#include "common/text.h"

#include <pthread.h>

enum {
    IDEMPOTENCY_KEYS = 1 << 14, /* each with an answer of a few hundred bytes */
    IDEMPOTENCY_HOURS = 24,
    IDEMPOTENCY_LONGEST = 255
};

typedef struct idempotency_key {
    uint64_t name[2], body[2]; /* hashes */
} idempotency_key;

typedef struct idempotency_entry {
    idempotency_key key;
    int status; /* 0: under way */
    uint64_t when;
    char *answer;
    size_t length;
    uint32_t next; /* of its row, counted from 1 */
} idempotency_entry;

typedef struct idempotency {
    idempotency_entry *entries; /* a ring */
    uint32_t *rows;
    size_t used, place;
    uint64_t secret;
    pthread_mutex_t lock;
} idempotency;

typedef enum idempotency_result {
    KEY_NEW,
    KEY_ANSWERED,
    KEY_UNDER_WAY,
    KEY_OTHER_BODY,
    KEY_NO_MEMORY
} idempotency_result;

/* False: no memory. */
bool idempotency_open(idempotency *i);
void idempotency_close(idempotency *i);

/* The key of a request: its parts (key, token, index) and its body. */
void idempotency_make(const idempotency *i, const char *const parts[3], doppel_slice body, idempotency_key *key);

/* Begins with a key, or gives what was answered under it. KEY_NEW: end it. */
idempotency_result idempotency_begin(idempotency *i, const idempotency_key *key, int *status, text *answer);

/* Remembers the answer; status 0: there is none, and the key is free again. */
void idempotency_end(idempotency *i, const idempotency_key *key, int status, const text *answer);

#endif
