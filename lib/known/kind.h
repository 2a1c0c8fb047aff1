/* kind.h - a kind of what is known: the calls that local.c and redis.c implement for known.h. A member has the contract
 * of the call of its name there; known.c does what is the same for all. */
#ifndef DP_KNOWN_KIND_H
#define DP_KNOWN_KIND_H

#include "known/known.h"

typedef struct dp_known_kind {
    const char *name;
    bool shared;    /* several processes write to it */
    size_t fetches; /* dp_known_fetches */

    bool (*takes)(const char *path); /* the first kind of the list that takes a path opens it */
    /* *known is the start of the kind's own struct, with `kind` and `options` set by dp_known_init. */
    doppel_status (*open)(const char *path, const dp_known_options *options, dp_known **known, doppel_error *error);
    void (*close)(dp_known *known); /* frees all of it; what dp_known_init made with dp_known_clear */
    doppel_status (*prepare)(const char *url,
                             void (*server)(const char *server, const char *library, const char *state, void *user),
                             void *user, doppel_error *error); /* NULL: it has no servers */
    /* One of them is NULL. */
    doppel_status (*verify)(const char *path, void (*finding)(const char *what, void *user), void *user,
                            doppel_verified *verified, doppel_error *error);
    doppel_status (*inspect)(dp_known *known, void (*finding)(const char *what, void *user), void *user,
                             doppel_verified *verified, doppel_error *error);

    /* Fills in look->own; the rest is zero but for `known`. */
    doppel_status (*look_create)(dp_look *look, doppel_error *error);
    void (*look_free)(dp_look *look);
    /* `purpose` is set, `except` and `salvage` are cleared. */
    doppel_status (*begin)(dp_look *look, doppel_error *error);
    doppel_status (*end)(dp_look *look, doppel_error *error);
    bool (*again)(const dp_look *look); /* NULL: never */
    doppel_status (*fetch)(dp_look *look, const dp_query *const *queries, size_t count, size_t *ready,
                           doppel_error *error);

    doppel_status (*find_name)(dp_look *look, dp_key key, doppel_slice name, dp_numbers *numbers, doppel_error *error);
    doppel_status (*find_bands)(dp_look *look, const dp_query *query, dp_numbers *numbers, doppel_error *error);
    doppel_status (*find_near)(dp_look *look, const uint64_t fingerprint[2], int distance, doppel_matches *matches,
                               doppel_error *error);
    doppel_status (*find_titles)(dp_look *look, const dp_title_query *query, dp_title_hits *hits, doppel_error *error);
    void (*sift)(dp_look *look, const dp_features *features, double least, dp_numbers *numbers); /* NULL: it cannot */
    void (*keep_features)(dp_look *look, uint64_t number, const dp_features *features);
    doppel_status (*alive)(dp_look *look, uint64_t number, bool *alive, doppel_error *error);

    uint64_t (*hash)(const dp_look *look, doppel_slice name);
    doppel_status (*read)(dp_look *look, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error);
    doppel_status (*counts)(dp_look *look, uint64_t number, dp_counts *counts, doppel_error *error);
    doppel_status (*links)(dp_look *look, uint64_t number, uint64_t *links, size_t room, size_t *found,
                           doppel_error *error);
    doppel_status (*each)(dp_look *look, const dp_each *each, doppel_error *error);
    doppel_status (*each_count)(dp_look *look,
                                doppel_status (*counted)(uint64_t number, const dp_counts *counts, void *user),
                                void *user, doppel_error *error);

    doppel_status (*number)(dp_look *look, uint64_t *number, doppel_error *error);
    doppel_status (*queue)(dp_look *look, const dp_pending *pending, doppel_error *error);
    size_t (*mark)(const dp_look *look);
    void (*back)(dp_look *look, size_t mark);
    doppel_status (*title_seen)(dp_look *look, doppel_slice title, uint64_t times, doppel_error *error);
    doppel_status (*commit)(dp_look *look, bool *stands, doppel_error *error);

    doppel_status (*flush)(dp_known *known, doppel_error *error); /* NULL: nothing to do */
    doppel_status (*expire)(dp_known *known, uint64_t *expired,
                            doppel_error *error); /* *expired is 0. NULL: by itself */
    doppel_status (*compact)(dp_known *known, doppel_error *error);
    doppel_status (*backup)(dp_known *known, const char *path, doppel_error *error);
    void (*get_stats)(dp_known *known, doppel_engine_stats *stats);
    void (*stop_waiting)(dp_known *known); /* NULL: it never waits */
} dp_known_kind;

extern const dp_known_kind dp_known_local;
extern const dp_known_kind dp_known_redis; /* in builds with Redis */

/* What every kind's own struct begins with. */
struct dp_known {
    const dp_known_kind *kind;
    dp_known_options options; /* settings: NULL once it is open */
    char *name;               /* dp_known_name */
};

/* Whether a path is a URL of Redis: redis://, redis+unix://, redis+sentinel://, redis+cluster://. */
bool dp_known_is_redis_url(const char *path);

/* For `open` and `close` of a kind. False: no memory. */
bool dp_known_init(dp_known *known, const dp_known_kind *kind, const dp_known_options *options, const char *name);
void dp_known_clear(dp_known *known);

/* For the log of the owner: a line as it is, and the message of an error under the event "WHAT_ERROR". */
void dp_known_log(const dp_known *known, doppel_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void dp_known_log_error(const dp_known *known, const char *what, const doppel_error *error);

/* *latest = max(*latest, time) */
static inline void dp_latest(_Atomic uint64_t *latest, uint64_t time) {
    uint64_t seen = atomic_load(latest);
    while (time > seen && !atomic_compare_exchange_weak(latest, &seen, time))
        ;
}

#endif
