/* local.h - the kind of one process: a store (store.h) and a directory of it (directory.h). For local*.c.
 *
 * A decision goes into the directory at once, so that the next add sees it, and into the group of changes that the next
 * commit writes. Adds wait for that commit; if it fails, everything decided since the last one is undone. Other looks
 * see what the store shows: changes that are not durable are not visible yet.
 *
 * Locks, in the order in which they are taken: `shape` (held to read by every look; to write by what replaces the store
 * or the directory as a whole), `order` (held to decide: from fetch to commit of an add, and to expire; never while
 * writing to disk, except with DOPPEL_DURABLE_EACH), `clock_lock`. */
#ifndef DP_KNOWN_LOCAL_H
#define DP_KNOWN_LOCAL_H

#include "known/directory.h"
#include "known/known.h"

#include <pthread.h>

/* A change that is not durable yet. */
typedef struct dp_local_pending {
    dp_pending is; /* what it points to is in the memory of its group */
    uint64_t at;   /* its own number, or the number it follows: in a group they never decrease */
} dp_local_pending;

/* What one commit writes. A thread that waits for it holds a reference. */
typedef struct dp_group {
    dp_local_pending *pending;
    size_t count, room, bytes;
    struct dp_group_piece *last_piece; /* of its memory */
    size_t links;                      /* of them, copies */
    size_t holders;
    bool done;
    doppel_status status;
    doppel_error error;
} dp_group;

/* A look's own. */
typedef struct dp_local_look {
    dp_view *view;
    bool ordered;        /* it holds `order` */
    bool decided;        /* something was fetched to be decided */
    dp_group *group;     /* the last that it has to wait for; NULL: none */
    doppel_error failed; /* code: an earlier group it had to wait for failed */
    dp_title_matches titles;
    dp_sift_scratch sift;
} dp_local_look;

typedef struct dp_local {
    dp_known known;
    dp_store *store;
    dp_directory *directory;
    dp_names names; /* of the store the directory was read from; changes with it */
    pthread_rwlock_t shape;

    pthread_mutex_t order; /* protects everything down to `closing` */
    pthread_cond_t settled;
    dp_view *view;       /* for `order`, or `shape` to write */
    uint64_t next;       /* number */
    dp_group *current;   /* takes changes */
    dp_group *writing;   /* is being written; NULL: none is */
    dp_hashmap removing; /* what the two groups remove */
    uint64_t followed_generation;
    _Atomic uint64_t followed; /* a reader process: the last number it has read */
    uint64_t loads;            /* how often everything was read; changes under `shape` only */
    uint64_t expired_at;
    uint64_t loaded_by;   /* a reader process: what had expired by then was left out */
    doppel_status failed; /* DOPPEL_DURABLE_NONE: the error of a background commit */
    doppel_error failed_error;
    bool closing;
    pthread_t background;
    bool has_background;

    _Atomic uint64_t titles;   /* duplicates that were ever found by their titles */
    _Atomic uint64_t removals; /* how often documents were removed from the directory, counted before they are */
    _Atomic uint64_t newest;   /* when the last document was added */

    /* local_clock.c. Under its lock: the clock in use, and what was last read from the store; then what follows from
     * `reading`: the time, the later and the earlier of that and the doubted one. */
    pthread_mutex_t clock_lock;
    dp_clock clock, stored_clock;
    bool clock_reported, clock_news; /* a jump was logged; something about it is not written yet */
    _Atomic uint64_t reading, now, latest, purge;
} dp_local;

static inline dp_local *dp_local_of(const dp_look *look) {
    return (dp_local *)look->known;
}

/* ---- local_clock.c ---- */

/* A clock reading, and when it was made by the machine's uptime; boot 0: not known. */
typedef struct dp_clock_reading {
    uint64_t time, boot, uptime;
} dp_clock_reading;

typedef enum dp_clock_event {
    DP_CLOCK_FOLLOWED, /* the reading is believed */
    DP_CLOCK_DOUBTED,  /* it is not, or not yet */
    DP_CLOCK_RETURNED, /* it is believed, and the one before was not */
    DP_CLOCK_SETTLED   /* it was doubted for `settle` seconds, and is believed from now on */
} dp_clock_event;

dp_clock_event dp_clock_step(dp_clock *clock, const dp_clock_reading *read, uint64_t settle);

/* The time, by which documents match; the time that the life of a new one is counted from; and the time by which they
 * are purged. All are the same unless the system's clock is doubted. */
uint64_t dp_local_now(dp_local *local);
uint64_t dp_local_latest(dp_local *local);
uint64_t dp_local_purge_time(dp_local *local);
/* What the store has, when that is new; and what it is to get (*news: even if nothing else is written). */
void dp_local_set_clock(dp_local *local, const dp_clock *stored);
dp_clock dp_local_get_clock(dp_local *local, bool *news);

/* ---- local_load.c ---- */

/* Reads all traces of the store into a new directory. `shape` is held to write, or no other thread uses it yet. */
doppel_status dp_local_load(dp_local *local, doppel_error *error);
/* The current state of the store. As above, or `order` is held. */
doppel_status dp_local_moment(dp_local *local, dp_moment *moment, doppel_error *error);
/* A reader process reads what its writer has written since, unless another thread is doing so; rereads everything after
 * a compaction, or when much has expired. No lock is held. */
doppel_status dp_local_follow(dp_local *local, doppel_error *error);
/* Adds to the directory what the look's view shows and it does not have yet, so that both are of one moment: *moment,
 * of a view that may have been restarted, and has ended on an error. `shape` is held, `order` is not. */
doppel_status dp_local_catch_up(dp_look *look, dp_moment *moment, doppel_error *error);

#endif
