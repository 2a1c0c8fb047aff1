/* tokens.h - who may do what: a file of bearer tokens.
 *
 * A line is NAME RIGHT TOKEN, the right one of read, write and admin, each with those before it; # begins a comment.
 * Looking a token up takes the same time whatever was given, and compares it with every one there is. */
#ifndef SERVER_TOKENS_H
#define SERVER_TOKENS_H

#include "server/routes.h"

#include <pthread.h>

enum {
    TOKEN_NAME = 32,
    TOKEN_LEAST = 16, /* bytes; fewer could be guessed */
    TOKEN_MOST = 128
};

typedef struct token {
    char name[TOKEN_NAME];
    right_kind right;
    unsigned char secret[TOKEN_MOST]; /* zeros behind it */
} token;

typedef struct tokens {
    token *list;
    size_t count;
    bool required;
    pthread_rwlock_t lock;
} tokens;

void tokens_init(tokens *t);
void tokens_free(tokens *t);

/* Reads a file, in place of what was there. Complains and gives false when it makes no sense; then nothing changes. */
bool tokens_load(tokens *t, const char *path);

/* The right of an Authorization header (NULL: none), and the name of its token. RIGHT_NONE: it has no token, or
 * (*wrong) one that is not known. When none are required, everybody has every right. */
right_kind tokens_find(tokens *t, const char *authorization, char name[TOKEN_NAME], bool *wrong);

#endif
