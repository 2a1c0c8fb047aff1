/* indexes.h - the indexes of a server, by name: the default one, and those below the folder of the others.
 *
 * Names are checked before they reach the file system: [a-z0-9_-], at most 64 characters. Index NAME is the folder
 * NAME, and NAME.json beside it has its settings, as they were sent. */
#ifndef SERVER_INDEXES_H
#define SERVER_INDEXES_H

#include "common/store_watch.h"
#include "common/text.h"
#include "server/history.h"
#include "server/json.h"
#include "server/serve.h"

#include <pthread.h>

enum { INDEX_NAME = 64, INDEX_MOST = 1000 };

typedef struct index_entry {
    char name[INDEX_NAME + 1];
    doppel_engine *engine;
    doppel_engine_needs needs;
    store_watch watch;
    doppel_recipe *recipe; /* its own, if it was created with one through the API */
    doppel_engine_options options;
    char *settings;   /* what the options' strings point into */
    name_list fields; /* of documents, that it keeps */
    int bits;
    history *history;
    char *history_folder; /* that has the file of the history; NULL: it ends with the process */
    bool history_failed;  /* it could not be written, which was reported */
    size_t users;
    bool dropped;
    bool unavailable; /* it cannot be opened: it has no engine, and requests for it get 503 */
} index_entry;

typedef struct indexes {
    const char *folder; /* of the others; NULL: there are none */
    index_entry **list; /* the first is the default one */
    size_t count;
    pthread_mutex_t lock;    /* of the list and of the counts of users */
    pthread_mutex_t changes; /* held while an index is created or dropped */
    pthread_cond_t idle;     /* an index that was dropped is not in use any more */
} indexes;

/* Opens the default index and all others. Reports each that cannot be opened, and returns an exit code when none
 * can. */
int indexes_open(indexes *all, const served_index *first, const char *folder);
void indexes_close(indexes *all);

/* The index of a name (data NULL: the default one), to be released with indexes_release; NULL: there is none. */
index_entry *indexes_acquire(indexes *all, doppel_slice name);
void indexes_release(indexes *all, index_entry *entry);

/* The n-th index, to be released with indexes_release; NULL: there are fewer. */
index_entry *indexes_at(indexes *all, size_t n);

/* Whether the store of an index does not answer now. */
bool index_is_away(index_entry *entry);
/* Whether one of them needs connections, so that requests wait for it. */
bool indexes_connect(indexes *all);
/* The server is stopping: requests that wait for a store that does not answer fail within about a second. */
void indexes_stop_waiting(indexes *all);
/* The statistics of an index, without waiting for it: they may be some seconds old. */
void index_stats(index_entry *entry, doppel_engine_stats *stats);
/* Brings the history of an index up to date; `write`: and its file, if that is due. */
void index_history_update(index_entry *entry, bool write);

typedef enum index_result {
    INDEX_FINE,
    INDEX_NO_NAME,
    INDEX_DEFAULT,
    INDEX_EXISTS,
    INDEX_FULL, /* there are INDEX_MOST */
    INDEX_ABSENT,
    INDEX_OFF,
    INDEX_BUSY,
    INDEX_FAILED
} index_result;

/* Creates an index with the settings of a JSON object. INDEX_FAILED: *status and *error say why. */
index_result indexes_create(indexes *all, doppel_slice name, doppel_slice settings, doppel_status *status,
                            doppel_error *error);

/* Removes an index, with its folder, once it is not in use. */
index_result indexes_drop(indexes *all, doppel_slice name, doppel_status *status, doppel_error *error);

bool index_name_allowed(doppel_slice name);

/* Takes the options of an index from a checked JSON object; they point into the entry. False, with an error. */
bool index_settings(index_entry *entry, doppel_slice json, doppel_error *error);

#endif
