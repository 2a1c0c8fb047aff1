/* place_url.c - the passwords of a URL: taken out, and put in. */
#include "place.h"

#include <stdlib.h>
#include <string.h>

/* SCHEME://[USER[:PASSWORD]@]REST[?NAME=VALUE&...], as places in the text. */
typedef struct url_parts {
    size_t user;        /* where it begins, behind :// */
    size_t colon;       /* of the password, or `at` */
    size_t at;          /* or `user`: there is none */
    size_t query, size; /* from the question mark on */
} url_parts;

/* Somebody may have forgotten to escape a password: the query begins at the first ?NAME=, and what stands before the
 * last @ ahead of it is the user's. */
static url_parts find_parts(const char *url) {
    const char *scheme = strstr(url, "://");
    url_parts p = {.size = strlen(url)};
    p.query = p.size;
    for (const char *mark = strchr(url, '?'); mark && p.query == p.size; mark = strchr(mark + 1, '?')) {
        size_t name = strspn(mark + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (name && mark[1 + name] == '=')
            p.query = (size_t)(mark - url);
    }
    p.user = scheme && (size_t)(scheme - url) + 3 <= p.query ? (size_t)(scheme - url) + 3 : 0;
    const char *at = memrchr(url + p.user, '@', p.query - p.user);
    p.at = at ? (size_t)(at - url) : p.user;
    const char *colon = memchr(url + p.user, ':', p.at - p.user);
    p.colon = colon ? (size_t)(colon - url) : p.at;
    return p;
}

static bool is_secret(const char *parameter, size_t length) {
    static const char word[] = "password=";
    return memmem(parameter, length, word, sizeof word - 1);
}

/* Copies the parameters but for passwords; gives where it ends. */
static char *copy_query(char *to, const char *query) {
    char before = '?';
    while (*query) {
        size_t length = strcspn(query + 1, "&");
        if (!is_secret(query + 1, length)) {
            *to++ = before;
            memcpy(to, query + 1, length);
            to += length;
            before = '&';
        }
        query += 1 + length;
    }
    return to;
}

char *url_without_passwords(const char *url) {
    url_parts p = find_parts(url);
    char *copy = malloc(p.size + 1), *end = copy;
    if (!copy)
        return NULL;
    end = (char *)memcpy(end, url, p.colon) + p.colon;
    size_t rest = p.colon == p.user && p.at > p.user ? p.at + 1 : p.at; /* no user: no @ */
    end = (char *)memcpy(end, url + rest, p.query - rest) + (p.query - rest);
    *copy_query(end, url + p.query) = 0;
    return copy;
}

bool url_has_password(const char *url) {
    url_parts p = find_parts(url);
    return p.colon < p.at;
}

char *url_with_password(const char *url, const char *password) {
    static const char digits[] = "0123456789ABCDEF",
                      plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    url_parts p = find_parts(url);
    char *made = malloc(p.size + 3 * strlen(password) + 3), *to = made;
    if (!made)
        return NULL;
    to = (char *)memcpy(to, url, p.at) + p.at;
    *to++ = ':';
    for (; *password; password++) {
        unsigned char c = (unsigned char)*password;
        if (strchr(plain, c)) {
            *to++ = (char)c;
        } else {
            *to++ = '%';
            *to++ = digits[c >> 4];
            *to++ = digits[c & 15];
        }
    }
    *to++ = '@';
    strcpy(to, url + (p.at > p.user ? p.at + 1 : p.at));
    return made;
}
