/* clients.c - what the server knows of its clients: tokens, request rates, repeated adds. */
#include "server/clients.h"

#include "common/clock.h"
#include "common/message.h"
#include "doppel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>

/* ---- tokens ---- */

void tokens_init(tokens *t) {
    *t = (tokens){0};
    pthread_rwlock_init(&t->lock, NULL);
}

static void wipe(token *list, size_t count) {
    if (list)
        explicit_bzero(list, count * sizeof *list);
    free(list);
}

void tokens_free(tokens *t) {
    wipe(t->list, t->count);
    pthread_rwlock_destroy(&t->lock);
}

/* ---- the file ---- */

static right_kind right_of(const char *name) {
    for (int i = RIGHT_READ; i <= RIGHT_ADMIN; i++)
        if (!strcmp(name, right_names[i]))
            return (right_kind)i;
    return RIGHT_NONE;
}

/* Reads a line; false, with the reason in *wrong. */
static bool read_line(char *line, token *into, bool *empty, const char **wrong) {
    char *state, *name = strtok_r(line, " \t\r\n", &state);
    *empty = !name || *name == '#';
    if (*empty)
        return true;
    char *right = strtok_r(NULL, " \t\r\n", &state), *secret = strtok_r(NULL, " \t\r\n", &state);
    *into = (token){.right = right ? right_of(right) : RIGHT_NONE};
    *wrong = !secret || strtok_r(NULL, " \t\r\n", &state) ? "each line is NAME RIGHT TOKEN"
             : !into->right                               ? "the right must be read, write or admin"
             : strlen(name) >= TOKEN_NAME                 ? "a name must have at most 31 bytes"
             : strlen(secret) < TOKEN_LEAST               ? "a token must have at least 16 bytes"
             : strlen(secret) > TOKEN_MOST                ? "a token must have at most 128 bytes"
                                                          : NULL;
    if (*wrong)
        return false;
    strcpy(into->name, name);
    memcpy(into->secret, secret, strlen(secret));
    return true;
}

static bool read_all(FILE *file, const char *path, token **list, size_t *count) {
    char line[512];
    size_t number = 0;
    while (fgets(line, sizeof line, file)) {
        token *grown = realloc(*list, (*count + 1) * sizeof *grown);
        const char *wrong = NULL;
        bool empty = false;
        number++;
        if (!grown) {
            message("no memory");
            return false;
        }
        *list = grown;
        if (!read_line(line, &grown[*count], &empty, &wrong)) {
            message("%s:%zu: %s", path, number, wrong);
            return false;
        }
        *count += !empty;
    }
    explicit_bzero(line, sizeof line);
    if (!*count)
        message("%s: no token found; each line is NAME RIGHT TOKEN", path);
    return *count > 0;
}

static FILE *open_private(const char *path) {
    struct stat is;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &is)) {
        message("%s: cannot read: %s", path, strerror(errno));
    } else if (is.st_mode & (S_IROTH | S_IWOTH)) {
        message("%s: every user of this machine can read the tokens; run chmod 600 on it", path);
    } else {
        return file;
    }
    if (file)
        fclose(file);
    return NULL;
}

bool tokens_load(tokens *t, const char *path) {
    token *list = NULL;
    size_t count = 0;
    FILE *file = open_private(path);
    bool fine = file && read_all(file, path, &list, &count);
    if (file)
        fclose(file);
    if (!fine) {
        wipe(list, count);
        return false;
    }
    pthread_rwlock_wrlock(&t->lock);
    token *old = t->list;
    size_t old_count = t->count;
    t->list = list;
    t->count = count;
    t->required = true;
    pthread_rwlock_unlock(&t->lock);
    wipe(old, old_count);
    return true;
}

/* ---- looking up ---- */

static bool same_secret(const unsigned char *a, const unsigned char *b) {
    volatile unsigned char differ = 0;
    for (size_t i = 0; i < TOKEN_MOST; i++)
        differ = (unsigned char)(differ | (a[i] ^ b[i]));
    return !differ;
}

right_kind tokens_find(tokens *t, const char *authorization, char name[TOKEN_NAME], bool *wrong) {
    unsigned char given[TOKEN_MOST] = {0};
    right_kind found = RIGHT_NONE;
    name[0] = 0;
    size_t length = authorization && !strncasecmp(authorization, "Bearer ", 7) ? strlen(authorization + 7) : 0;
    if (length && length <= TOKEN_MOST)
        memcpy(given, authorization + 7, length);
    pthread_rwlock_rdlock(&t->lock);
    if (!t->required)
        found = RIGHT_ADMIN;
    for (size_t i = 0; i < t->count; i++)
        if (same_secret(given, t->list[i].secret)) {
            found = t->list[i].right;
            memcpy(name, t->list[i].name, TOKEN_NAME);
        }
    pthread_rwlock_unlock(&t->lock);
    *wrong = length && found == RIGHT_NONE;
    return found;
}

/* ---- request rates ---- */

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

/* The bucket of a client, or the least recently used one of its row, filled. */
static limit_bucket *find_bucket(limits *l, uint64_t client, uint64_t now) {
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
    if (doppel_hash("xxh3", doppel_slice_of(client), l->secret, &hash) != DOPPEL_OK || !hash)
        hash = 1;
    pthread_mutex_lock(&l->lock);
    limit_bucket *bucket = find_bucket(l, hash, now);
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

/* ---- repeated adds ---- */

enum { ROWS = IDEMPOTENCY_KEYS };

static uint64_t seconds(void) {
    return now_microseconds() / 1000000;
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
        doppel_hash("xxh3", (doppel_slice){bytes, length}, i->secret + k, &hash);
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

static idempotency_entry *find_entry(idempotency *i, const idempotency_key *key) {
    for (uint32_t at = *row_of(i, key); at; at = i->entries[at - 1].next)
        if (!memcmp(i->entries[at - 1].key.name, key->name, sizeof key->name))
            return &i->entries[at - 1];
    return NULL;
}

/* Removes an entry from its row. */
static void forget(idempotency *i, idempotency_entry *entry) {
    uint32_t *at = row_of(i, &entry->key), number = (uint32_t)(entry - i->entries) + 1;
    while (*at && *at != number)
        at = &i->entries[*at - 1].next;
    if (*at)
        *at = entry->next;
    i->bytes -= entry->length;
    free(entry->answer);
    *entry = (idempotency_entry){0};
}

/* Removes the oldest entries with an answer until the answers have at most IDEMPOTENCY_BYTES. */
static void forget_answers(idempotency *i) {
    for (; i->bytes > IDEMPOTENCY_BYTES; i->oldest = (i->oldest + 1) % IDEMPOTENCY_KEYS)
        if (i->entries[i->oldest].answer)
            forget(i, &i->entries[i->oldest]);
}

/* Puts a new entry in the place of the oldest one. */
static void begin_new(idempotency *i, const idempotency_key *key) {
    idempotency_entry *entry = &i->entries[i->place];
    if (i->used == IDEMPOTENCY_KEYS)
        forget(i, entry);
    else
        i->used++;
    if (i->used == IDEMPOTENCY_KEYS && i->oldest == i->place)
        i->oldest = (i->oldest + 1) % IDEMPOTENCY_KEYS;
    uint32_t *row = row_of(i, key);
    *entry = (idempotency_entry){.key = *key, .when = seconds(), .next = *row};
    *row = (uint32_t)i->place + 1;
    i->place = (i->place + 1) % IDEMPOTENCY_KEYS;
}

idempotency_result idempotency_begin(idempotency *i, const idempotency_key *key, int *status, text_buffer *answer) {
    idempotency_result result = KEY_NEW;
    pthread_mutex_lock(&i->lock);
    idempotency_entry *entry = find_entry(i, key);
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

void idempotency_end(idempotency *i, const idempotency_key *key, int status, const text_buffer *answer) {
    pthread_mutex_lock(&i->lock);
    idempotency_entry *entry = find_entry(i, key);
    if (entry && !entry->status) {
        char *copy = status ? malloc(answer->length + 1) : NULL;
        if (copy) {
            memcpy(copy, answer->data, answer->length);
            entry->answer = copy;
            entry->length = answer->length;
            entry->status = status;
            i->bytes += entry->length;
            forget_answers(i);
        } else {
            forget(i, entry);
        }
    }
    pthread_mutex_unlock(&i->lock);
}
