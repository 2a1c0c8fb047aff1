/* place.c - where an index is, by the command line. */
#include "place.h"

#include "common/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool is_store_url(const char *text) {
    doppel_engine_needs needs;
    return doppel_engine_get_needs(text, &needs, NULL) == DOPPEL_OK && needs.connects;
}

/* ---- what makes no sense ---- */

static bool check_url(const char *url) {
    if (is_store_url(url))
        return true;
    if (!strncmp(url, "rediss", 6) && strstr(url, "://"))
        message("--store: doppel speaks no TLS to Redis itself; let a local proxy do it, such as stunnel, and give "
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
        message("--index DIR or --store URL: an index is at one place");
    else if (!index && !store)
        message("%s needs the folder of an index%s: doppel %s %s", name,
                strstr(operands, "--store") ? ", or a store" : "", name, operands);
    else if (!store && args_text(args, "store-password-file"))
        message("--store-password-file goes with --store URL");
    else
        return true;
    return false;
}

bool place_is_readable(const char *against) {
    if (!against || !is_store_url(against))
        return true;
    message("--against takes files, folders and index folders; make a folder of a shared store: doppel export --store "
            "URL | doppel import --index DIR -");
    return false;
}

/* ---- the password ---- */

/* What is wrong with a file of a password; NULL: nothing. */
static const char *refuse_file(FILE *file) {
    struct stat is;
    if (!file || fstat(fileno(file), &is))
        return strerror(errno);
    bool open_to_all = S_ISREG(is.st_mode) && is.st_mode & (S_IROTH | S_IWOTH);
    return open_to_all ? "everybody on this machine may read the password; chmod 600 it" : NULL;
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

/* The URL with the password of the file; NULL, with a message: that cannot be. */
static char *add_password(const char *url, const char *path) {
    if (url_has_password(url)) {
        message("--store-password-file: the URL of --store has a password already");
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

/* Puts the name in the place of the URL, in the memory that others can look at. */
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
