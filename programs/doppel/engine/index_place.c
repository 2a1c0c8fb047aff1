/* index_place.c - where an index is, by the command line; the passwords of a URL, removed and inserted. */
#include "engine/index_place.h"

#include "common/message.h"
#include "shared/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- passwords in a URL ---- */

/* SCHEME://[USER[:PASSWORD]@]REST[?NAME=VALUE&...], as places in the text. */
typedef struct url_parts {
    size_t user;        /* where it begins, after :// */
    size_t colon;       /* of the password, or `at` */
    size_t at;          /* or `user`: there is none */
    size_t query, size; /* from the question mark on */
} url_parts;

/* A password may not have been escaped: the query begins at the first ?NAME=, and everything up to the last @ before it
 * belongs to the user. */
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

/* Copies the parameters except passwords; returns where it ends. */
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

/* A copy of a URL without the passwords in it, never longer; NULL: no memory. From what is not quite a URL, everything
 * that could be one is removed. */
static char *url_without_passwords(const char *url) {
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

static bool url_has_password(const char *url) {
    url_parts p = find_parts(url);
    return p.colon < p.at;
}

/* A copy of a URL that has no password with this one; NULL: no memory. */
static char *url_with_password(const char *url, const char *password) {
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

/* ---- invalid options ---- */

static bool check_url(const char *url) {
    if (is_store_url(url))
        return true;
    if (!strncmp(url, "rediss", 6) && strstr(url, "://"))
        message("--store: doppel does not speak TLS to Redis; use a local proxy such as stunnel, and give "
                "redis://127.0.0.1:PORT (docs/ENGINE.md has an example)");
    else if (strstr(url, "://"))
        message("--store takes a URL of Redis: redis://HOST[:PORT][/DB], redis+unix://PATH, "
                "redis+sentinel://HOST[:PORT],.../SERVICE or redis+cluster://HOST[:PORT],...");
    else
        message("--store takes a URL such as redis://127.0.0.1:6379/0; a folder is given with --index DIR");
    return false;
}

static bool check_folder(const char *path) {
    if (!is_store_url(path) && !(strstr(path, "://") && !strncmp(path, "redis", 5)))
        return true;
    message("--index takes a folder; the URL of a shared store is given with --store URL");
    return false;
}

/* Which of the two is given. */
static bool check_one(const cli_args *args, const char *index, const char *store) {
    const char *name = args->command->name, *operands = args->command->arguments;
    if (index && store)
        message("give --index DIR or --store URL, not both");
    else if (!index && !store)
        message("%s needs the folder of an index%s: doppel %s %s", name,
                strstr(operands, "--store") ? ", or a store" : "", name, operands);
    else if (!store && args_text(args, "store-password-file"))
        message("--store-password-file needs --store URL");
    else
        return true;
    return false;
}

/* ---- the password ---- */

/* What is wrong with a password file; NULL: nothing. */
static const char *refuse_file(FILE *file) {
    struct stat is;
    if (!file || fstat(fileno(file), &is))
        return strerror(errno);
    bool open_to_all = S_ISREG(is.st_mode) && is.st_mode & (S_IROTH | S_IWOTH);
    return open_to_all ? "every user of this machine can read the password; run chmod 600 on it" : NULL;
}

/* The first line of a file. NULL, with a message, when there is none. */
static char *read_password(const char *path) {
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    const char *wrong = refuse_file(file);
    ssize_t length = wrong ? -1 : getline(&line, &room, file);
    if (length > 0)
        length = (ssize_t)strcspn(line, "\r\n");
    if (!wrong && ferror(file))
        wrong = strerror(errno);
    else if (!wrong && length <= 0)
        wrong = "there is no password in its first line";
    if (file)
        fclose(file);
    if (!wrong) {
        line[length] = 0;
        return line;
    }
    message("%s: %s", path, wrong);
    free(line);
    return NULL;
}

/* The URL with the password of the file; NULL, with a message, when it cannot be made. */
static char *add_password(const char *url, const char *path) {
    if (url_has_password(url)) {
        message("--store-password-file: the URL of --store already has a password");
        return NULL;
    }
    char *password = read_password(path), *made = password ? url_with_password(url, password) : NULL;
    if (password && !made)
        message("no memory");
    if (password)
        explicit_bzero(password, strlen(password));
    free(password);
    return made;
}

/* ---- finding it ---- */

/* Overwrites the URL with the name, in the memory that other users can see. */
static void wipe(const char *url, const char *name) {
    char *there = (char *)(uintptr_t)url;
    size_t all = strlen(url), kept = strlen(name);
    memcpy(there, name, kept);
    explicit_bzero(there + kept, all - kept);
}

static bool find_store(index_place *place, const char *url, const char *password) {
    if (!check_url(url))
        return false;
    place->held[0] = url_without_passwords(url);
    place->held[1] = password ? add_password(url, password) : strdup(url);
    if (!password && (!place->held[0] || !place->held[1]))
        message("no memory");
    place->name = place->held[0];
    place->path = place->held[1];
    if (place->name)
        wipe(url, place->name);
    return place->name && place->path;
}

bool place_find(index_place *place, const cli_args *args) {
    const char *index = args_text(args, "index"), *store = args_text(args, "store");
    index = index && *index ? index : NULL;
    store = store && *store ? store : NULL;
    *place = (index_place){.name = index, .path = index};
    if (!check_one(args, index, store) ||
        !(store ? find_store(place, store, args_text(args, "store-password-file")) : check_folder(index)))
        return false;
    return doppel_engine_get_needs(place->path, &place->needs, NULL) == DOPPEL_OK; /* it is not empty */
}

void place_free(index_place *place) {
    if (place->held[1])
        explicit_bzero(place->held[1], strlen(place->held[1]));
    free(place->held[0]);
    free(place->held[1]);
    *place = (index_place){0};
}
