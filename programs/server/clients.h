/* clients.h - what the server knows of its clients: tokens (who may do what), request rates, and the answers to
 * repeated adds (Idempotency-Key). */
#ifndef SERVER_CLIENTS_H
#define SERVER_CLIENTS_H

#include "common/text.h"
#include "server/routes.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- tokens ----
 *
 * A file of bearer tokens: a line is NAME RIGHT TOKEN; the right is read, write or admin, and each includes those
 * before it; # begins a comment. A lookup takes the same time for every token: it compares with all of them. */

enum {
    TOKEN_NAME = 32,
    TOKEN_LEAST = 16, /* bytes; fewer could be guessed */
    TOKEN_MOST = 128
};

typedef struct token {
    char name[TOKEN_NAME];
    right_kind right;
    unsigned char secret[TOKEN_MOST]; /* padded with zeros */
} token;

typedef struct tokens {
    token *list;
    size_t count;
    bool required;
    pthread_rwlock_t lock;
} tokens;

void tokens_init(tokens *t);
void tokens_free(tokens *t);

/* Reads a file in place of the earlier one. Prints a message and returns false when it is invalid; then nothing
 * changes. */
bool tokens_load(tokens *t, const char *path);

/* The right of an Authorization header (NULL: none), and the name of its token. RIGHT_NONE: it has no token, or
 * (*wrong) one that is not known. When none are required, every client has every right. */
right_kind tokens_find(tokens *t, const char *authorization, char name[TOKEN_NAME], bool *wrong);

/* ---- request rates ----
 *
 * A token bucket per client: it holds the number of requests allowed in a second, each request takes one, and time
 * refills it. The table has a fixed size; a client whose place was taken by others starts again with a full bucket, so
 * memory never grows. */

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

/* Whether a client may send a request now; else *retry_after is how many seconds it should wait. */
bool limits_allow(limits *l, const char *client, uint64_t now, unsigned *retry_after);

/* ---- repeated adds ----
 *
 * An add with the Idempotency-Key of an earlier one gets the first answer again. The last IDEMPOTENCY_KEYS keys are
 * remembered, with a hash of what was sent under each and with the answer; fewer where their answers have more than
 * IDEMPOTENCY_BYTES together. A key belongs to a token and an index. */

enum {
    IDEMPOTENCY_KEYS = 1 << 14,
    IDEMPOTENCY_BYTES = 64 << 20, /* an answer has a few hundred bytes, or, with ids of 64 KiB, most of a MiB */
    IDEMPOTENCY_HOURS = 24,
    IDEMPOTENCY_LONGEST = 255
};

typedef struct idempotency_key {
    uint64_t name[2], body[2]; /* hashes */
} idempotency_key;

typedef struct idempotency_entry {
    idempotency_key key;
    int status; /* 0: in progress */
    uint64_t when;
    char *answer;
    size_t length;
    uint32_t next; /* of its row, counted from 1 */
} idempotency_entry;

typedef struct idempotency {
    idempotency_entry *entries; /* a ring */
    uint32_t *rows;
    size_t used, place;
    size_t bytes;  /* of all answers */
    size_t oldest; /* where the search for the oldest answer begins */
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

/* Begins with a key, or copies the answer that it got. KEY_NEW: call idempotency_end. */
idempotency_result idempotency_begin(idempotency *i, const idempotency_key *key, int *status, text_buffer *answer);

/* Remembers the answer; status 0: there is none, and the key is free again. */
void idempotency_end(idempotency *i, const idempotency_key *key, int status, const text_buffer *answer);

#endif
