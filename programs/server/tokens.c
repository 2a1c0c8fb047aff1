/* tokens.c - who may do what: a file of bearer tokens. */
#include "server/tokens.h"

#include "common/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

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
    static const char *const names[] = {"", "read", "write", "admin"};
    for (int i = RIGHT_READ; i <= RIGHT_ADMIN; i++)
        if (!strcmp(name, names[i]))
            return (right_kind)i;
    return RIGHT_NONE;
}

/* Reads a line; false with what is wrong with it. */
static bool read_line(char *line, token *into, bool *empty, const char **wrong) {
    char *state, *name = strtok_r(line, " \t\r\n", &state);
    *empty = !name || *name == '#';
    if (*empty)
        return true;
    char *right = strtok_r(NULL, " \t\r\n", &state), *secret = strtok_r(NULL, " \t\r\n", &state);
    *into = (token){.right = right ? right_of(right) : RIGHT_NONE};
    *wrong = !secret || strtok_r(NULL, " \t\r\n", &state) ? "a line is: NAME RIGHT TOKEN"
             : !into->right                               ? "the right is read, write or admin"
             : strlen(name) >= TOKEN_NAME                 ? "a name has at most 31 bytes"
             : strlen(secret) < TOKEN_LEAST               ? "a token has at least 16 bytes"
             : strlen(secret) > TOKEN_MOST                ? "a token has at most 128 bytes"
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
        message("%s: there is no token in it; a line is: NAME RIGHT TOKEN", path);
    return *count > 0;
}

static FILE *open_private(const char *path) {
    struct stat is;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &is)) {
        message("%s: cannot read: %s", path, strerror(errno));
    } else if (is.st_mode & (S_IROTH | S_IWOTH)) {
        message("%s: everybody on this machine may read the tokens; chmod 600 it", path);
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
