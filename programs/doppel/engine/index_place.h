/* index_place.h - where an index is: a folder (--index DIR), or a store that several processes share (--store URL).
 *
 * The password of a store comes from its URL, from --store-password-file or from DOPPEL_REDIS_PASSWORD. It is never
 * shown: messages, logs and answers have the name of a place, which is the URL without passwords. */
#ifndef ENGINE_INDEX_PLACE_H
#define ENGINE_INDEX_PLACE_H

#include "common/args.h"
#include "doppel.h"

typedef struct index_place {
    const char *name; /* as it may be shown: the folder, or the URL without passwords */
    const char *path; /* for doppel_engine_open */
    doppel_engine_needs needs;
    char *held[2];
} index_place;

#define STORE_OPTION                                                                                                \
    {                                                                                                               \
        "store", 0, OPTION_TEXT, "URL",                                                                             \
            "instead of --index: an index in Redis that several processes share: redis://HOST:PORT/DB?prefix=NAME " \
            "(docs/ENGINE.md has all forms)"                                                                        \
    }

#define STORE_PASSWORD_OPTION                                                                                \
    {                                                                                                        \
        "store-password-file", 0, OPTION_FILE, "FILE",                                                       \
            "with --store: its password is the first line of this file (default: from the URL, or from the " \
            "environment variable DOPPEL_REDIS_PASSWORD)"                                                    \
    }

/* Finds the place by the options, of which exactly one is given. A password in the URL is erased from the command line,
 * which all users of the machine can read. False, with a message, when it is invalid. Free it in any case. */
bool place_find(index_place *place, const cli_args *args);
void place_free(index_place *place);

#endif
