/* idempotency.c - Idempotency-Key: an add that is sent again gets the answer of the first time. */
#include "server/idempotency.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { ROWS = IDEMPOTENCY_KEYS };

static uint64_t seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

bool idempotency_open(idempotency *i) {
    *i = (idempotency){0};
    pthread_mutex_init(&i->lock, NULL);
    if (getrandom(&i->secret, sizeof i->secret, 0) != sizeof i->secret)
        i->secret = (uint64_t)(uintptr_t)i;
    i->entries = calloc(IDEMPOTENCY_KEYS, sizeof *i->entries);
    i->rows = calloc(ROWS, sizeof *i->rows);
    return i->entries && i->rows;
}

void idempotency_close(idempotency *i) {
    for (size_t k = 0; k < i->used && i->entries; k++)
        free(i->entries[k].answer);
    free(i->entries);
    free(i->rows);
    pthread_mutex_destroy(&i->lock);
    *i = (idempotency){0};
}

static void hash_twice(const idempotency *i, const char *bytes, size_t length, uint64_t out[2]) {
    for (uint64_t k = 0; k < 2; k++) {
        uint64_t hash = 0;
        doppel_hash("xxh3", bytes, length, i->secret + k, &hash);
        out[k] = (out[k] << 7 | out[k] >> 57) ^ hash;
    }
}

void idempotency_make(const idempotency *i, const char *const parts[3], doppel_slice body, idempotency_key *key) {
    *key = (idempotency_key){0};
    for (int k = 0; k < 3; k++)
        hash_twice(i, parts[k], strlen(parts[k]), key->name);
    hash_twice(i, body.data, body.length, key->body);
}

static uint32_t *row_of(idempotency *i, const idempotency_key *key) {
    return &i->rows[key->name[0] % ROWS];
}

static idempotency_entry *find(idempotency *i, const idempotency_key *key) {
    for (uint32_t at = *row_of(i, key); at; at = i->entries[at - 1].next)
        if (!memcmp(i->entries[at - 1].key.name, key->name, sizeof key->name))
            return &i->entries[at - 1];
    return NULL;
}

/* Takes an entry out of its row. */
static void forget(idempotency *i, idempotency_entry *entry) {
    uint32_t *at = row_of(i, &entry->key), number = (uint32_t)(entry - i->entries) + 1;
    while (*at && *at != number)
        at = &i->entries[*at - 1].next;
    if (*at)
        *at = entry->next;
    free(entry->answer);
    *entry = (idempotency_entry){0};
}

/* The place of the oldest entry, which is forgotten. */
static void begin_new(idempotency *i, const idempotency_key *key) {
    idempotency_entry *entry = &i->entries[i->place];
    if (i->used == IDEMPOTENCY_KEYS)
        forget(i, entry);
    else
        i->used++;
    uint32_t *row = row_of(i, key);
    *entry = (idempotency_entry){.key = *key, .when = seconds(), .next = *row};
    *row = (uint32_t)i->place + 1;
    i->place = (i->place + 1) % IDEMPOTENCY_KEYS;
}

idempotency_result idempotency_begin(idempotency *i, const idempotency_key *key, int *status, text *answer) {
    idempotency_result result = KEY_NEW;
    pthread_mutex_lock(&i->lock);
    idempotency_entry *entry = find(i, key);
    if (entry && entry->status && seconds() - entry->when > IDEMPOTENCY_HOURS * 3600) {
        forget(i, entry);
        entry = NULL;
    }
    if (!entry) {
        begin_new(i, key);
    } else if (memcmp(entry->key.body, key->body, sizeof key->body) != 0) {
        result = KEY_OTHER_BODY;
    } else if (!entry->status) {
        result = KEY_UNDER_WAY;
    } else {
        *status = entry->status;
        text_add(answer, entry->answer, entry->length);
        result = answer->failed ? KEY_NO_MEMORY : KEY_ANSWERED;
    }
    pthread_mutex_unlock(&i->lock);
    return result;
}

void idempotency_end(idempotency *i, const idempotency_key *key, int status, const text *answer) {
    pthread_mutex_lock(&i->lock);
    idempotency_entry *entry = find(i, key);
    if (entry && !entry->status) {
        char *copy = status ? malloc(answer->length + 1) : NULL;
        if (copy) {
            memcpy(copy, answer->data, answer->length);
            entry->answer = copy;
            entry->length = answer->length;
            entry->status = status;
        } else {
            forget(i, entry);
        }
    }
    pthread_mutex_unlock(&i->lock);
}
