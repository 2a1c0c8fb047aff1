/* known.h - what is remembered about documents, and which of them may match a query: in this process, over memory or a
 * folder (local.c), or in a Redis that several processes share (redis.c).
 *
 * A look is one thread's access to it; a thread keeps one and uses it again. It is used like this:
 *     begin
 *     fetch                       what some queries will ask for, all at once
 *     find_...                    numbers that may match the query: some may not, no match is missing
 *     alive, read, counts, links  what is stored for a number
 *     queue                       changes, which the same look sees from then on
 *     commit                      keeps them, if what was found still holds; else the caller decides again
 *     end                         waits until they are durable
 * Adding documents, one or many, is
 *     begin(ADD)
 *     while queries are left: fetch(those left, &ready); do decide each of `ready` while commit says that it does not
 *     stand
 *     end
 * What is known decides nothing: lib/engine asks, lib/decide decides.
 *
 * dp_known_kind is the table of calls that a kind fills; callers go through it (look->kind->find_name(look, ...)) and
 * do not ask which kind it is. known.c has what is the same for all. */
#ifndef DP_KNOWN_H
#define DP_KNOWN_H

#include "decide/decide.h"
#include "store/store.h"
#include "title/title.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct dp_known dp_known;

/* ---- what is asked about ---- */

/* An item as a query: its names and its sketches. Everything is borrowed: from the item, or from the worker until its
 * next query. For a removal only the id is set. */
typedef struct dp_query {
    doppel_slice id; /* as given, or derived: the canonical URL, else 16 hex digits of the digest; empty: none */
    bool id_given;
    doppel_slice url, canonical; /* canonical: of the page's own canonical link, or of a redirect's target, if any */
    doppel_slice title;          /* as given, or of the page */
    doppel_slice title_key;      /* normalised; empty: it does not count */
    doppel_slice fields;         /* a JSON object of the item's fields; data NULL: it has none */
    doppel_slice text;           /* with keep_text, what the fingerprint is of; empty when sketches were given */
    uint64_t text_length;        /* its length before the engine packed it; 0: it is not kept */
    bool has_digest;
    uint8_t digest[32];
    uint64_t fingerprint[2];
    uint64_t words;
    bool content;        /* it has enough words to be near others */
    const uint64_t *set; /* when content and by_similarity */
    size_t set_count;
    const uint32_t *keys; /* of bands; `bands` of them, when content and by_similarity */
    size_t key_count;
    doppel_slice sample;                      /* of the set, where samples are kept; data NULL: there is none */
    uint64_t ttl;                             /* as the item says */
    const doppel_stored *restore;             /* the item's: it is restored, and nothing is decided, */
    bool merge;                               /* unless this is set: originals are decided like new ones */
    const struct dp_title_ahead *title_ahead; /* of its title, by kind->look_ahead; NULL: nothing was looked up */
    doppel_slice origin;                      /* data NULL: not said */
} dp_query;

/* Numbers that were found; memory that is used again. Zero is empty. */
typedef struct dp_numbers {
    uint64_t *number;
    size_t count, room;
} dp_numbers;
void dp_numbers_free(dp_numbers *numbers);
/* Sorts numbers and removes repeats. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_numbers_arrange(dp_numbers *numbers);

/* Names that documents are found by. A digest is a name of 32 bytes. */
typedef enum dp_key { DP_KEY_ID, DP_KEY_URL, DP_KEY_DIGEST } dp_key;

typedef struct dp_title_query {
    doppel_slice title; /* normalised */
    double share;       /* titles that more than this share of the documents have had, and more than 8, do not count */
    bool best;          /* only the first hit is needed */
    const struct dp_title_ahead *ahead; /* what look_ahead found of it; NULL: nothing */
} dp_title_query;

/* The result of looking up a title ahead of its turn. Zero is nothing. */
enum { DP_AHEAD_SHARDS = 4 };
typedef struct dp_title_ahead {
    dp_titles_ahead shard[DP_AHEAD_SHARDS]; /* the title's own shard, then others in the order they are searched */
} dp_title_ahead;
void dp_title_ahead_free(dp_title_ahead *ahead);

typedef struct dp_title_hit {
    uint64_t number;
    double similarity;
} dp_title_hit;

/* Memory that is used again; free(hit) at the end. Zero is empty. */
typedef struct dp_title_hits {
    dp_title_hit *hit;
    size_t count, room;
    uint64_t candidates; /* titles that were compared */
} dp_title_hits;

/* What similarity is computed on: a set of distinct hashes, or the values of a sample (lib/verify/bottom.c) at its own
 * scale and at the next coarser one, since two samples are compared at the coarser of their scales. */
typedef struct dp_features {
    const uint64_t *set;
    size_t count;
    const uint64_t *coarser; /* NULL: it is a whole set */
    size_t coarser_count;
    int scale; /* of a sample; 0 of whole sets */
} dp_features;

/* ---- opening ---- */

/* A histogram: bucket i counts values from 2^(i-1) up to 2^i - 1. */
typedef struct dp_tally {
    _Atomic uint64_t bucket[DOPPEL_BUCKETS];
    _Atomic uint64_t count, sum;
} dp_tally;
void dp_tally_add(dp_tally *tally, uint64_t value);

/* What was done, counted for the owner. */
typedef struct dp_known_counters {
    _Atomic uint64_t expired, damaged, commits, failed_commits;
    _Atomic uint64_t reads[DP_PARTS]; /* parts of documents that were read; for tests */
    dp_tally commit_time;             /* microseconds */
} dp_known_counters;

typedef struct dp_known_options {
    bool read_only, must_exist, group_readable;
    bool salvage; /* treat damaged data as absent; else it fails the call that meets it */
    uint64_t map; /* as in doppel_engine_options, like the next ones */
    uint64_t count, memory;
    int threads;
    doppel_durability durability;
    uint64_t clock_settle;
    const char *settings; /* stored with a new one: lines "name=value" */
    dp_rules rules;       /* of a new one, or what `agree` makes of them */
    /* The clock, in seconds since 1970. NULL: that of the system or, of a shared one, that of the server. */
    uint64_t (*now)(void *now_user);
    void *now_user;
    /* Called while opening with the settings of the existing or new one: refuses them, or fills in the rules they make,
     * which apply from then on. If `instead` is not NULL, nothing was ever added, and the opener may set it to other
     * settings, which are stored; they are the opener's. NULL: `rules` applies. */
    doppel_status (*agree)(const char *settings, const char **instead, dp_rules *rules, void *user,
                           doppel_error *error);
    /* Receives what the operator has to know, from any thread: an event such as COMMIT_ERROR, and a line. May be
     * NULL. */
    void (*log)(doppel_log_level level, const char *event, const char *line, void *user);
    void *user;
    dp_known_counters *counters; /* the owner's, for as long as it is open */
} dp_known_options;

/* What is open. A kind's own struct begins with it. */
struct dp_known {
    const struct dp_known_kind *kind;
    dp_known_options options; /* settings: NULL once it is open */
    char *name;               /* its path or URL, without a password, or "memory" */
};

/* Opens a path: NULL: a new one in memory; a Redis URL; else a folder, which is created if missing. Options are copied;
 * what they point to, except `settings`, is borrowed until close. */
doppel_status dp_known_open(const char *path, const dp_known_options *options, dp_known **known, doppel_error *error);
/* Makes everything durable. No look may be open. */
void dp_known_close(dp_known *known);
/* Whether what a path names is shared by several processes that write. */
bool dp_known_is_shared_path(const char *path);
/* See doppel_engine_verify and doppel_store_prepare. */
doppel_status dp_known_verify(const char *path, void (*finding)(const char *what, void *user), void *user,
                              doppel_verified *verified, doppel_error *error);
/* Whether what a path names is checked while it is open, by kind->inspect, instead of dp_known_verify. */
bool dp_known_is_inspected(const char *path);
doppel_status dp_known_prepare(const char *url,
                               void (*server)(const char *server, const char *library, const char *state, void *user),
                               void *user, doppel_error *error);

/* ---- looks ---- */

typedef enum dp_purpose {
    DP_LOOK_READ,  /* check, get, similar: what is durable or, with DOPPEL_DURABLE_NONE, all that was acknowledged */
    DP_LOOK_STILL, /* the same, while nothing is removed: kind->again says no (a shared one: as DP_LOOK_READ) */
    DP_LOOK_LIST,  /* walks over all documents: what is durable, kind->flush before it */
    DP_LOOK_ADD    /* add, remove: all that was decided, and what this look queued */
} dp_purpose;

/* The caller sets except and salvage between begin and end; begin clears them. The kind sets the rest. */
typedef struct dp_look {
    dp_known *known;
    const struct dp_known_kind *kind;
    dp_purpose purpose;
    uint64_t below;     /* numbers from this one on do not count */
    uint64_t except[2]; /* nor do these; 0: none */
    uint64_t now;       /* the time documents match by: set by begin and by fetch */
    uint64_t latest;    /* the time a new document's life is counted from */
    bool deciding;      /* queued changes count, too */
    bool salvage;       /* treat damaged data as absent, whatever the options say */
    uint64_t removals;  /* for kind->again */
    void *own;          /* the kind's */
} dp_look;

/* A change, and its effect on what can be found. */
typedef struct dp_pending {
    dp_change change;
    bool added;     /* `trace` can be found from now on */
    bool removed;   /* the document with `trace` is removed: change.remove */
    dp_trace trace; /* of change.number, or, of a removal, what it removes */
} dp_pending;

/* A look of one thread; it must be freed before dp_known_close. */
doppel_status dp_look_create(dp_known *known, dp_look **look, doppel_error *error);
void dp_look_free(dp_look *look);
/* On an error the look has not begun. Results of the calls below are borrowed until commit or end. */
doppel_status dp_look_begin(dp_look *look, dp_purpose purpose, doppel_error *error);
/* A part of a number; data NULL: it is absent, or damaged and skipped. */
doppel_status dp_look_read(dp_look *look, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error);
/* The same, decoded. False in *found: it is absent, or damaged and skipped. */
doppel_status dp_look_trace(dp_look *look, uint64_t number, dp_trace *trace, bool *found, doppel_error *error);
doppel_status dp_look_record(dp_look *look, uint64_t number, dp_record *record, bool *found, doppel_error *error);
/* Counts damage and logs it: DOPPEL_OK if it is skipped (options.salvage), else
 * DOPPEL_ERROR_STORE. */
doppel_status dp_known_damage(dp_known *known, uint64_t documents, const doppel_error *why, doppel_error *error);
/* The same for a number whose `what` (trace, record, set, sample, text) is present but inconsistent: `how`. */
doppel_status dp_look_nonsense(dp_look *look, const char *what, uint64_t number, const char *how, doppel_error *error);

/* ---- a kind: local.c, redis_look.c ---- */

typedef struct dp_known_kind {
    const char *name;
    bool shared;    /* several processes write to it */
    size_t fetches; /* how many queries of checks are best fetched in one look; 1: each may have its own */

    /* ---- opening, through the calls above ---- */

    bool (*takes)(const char *path); /* the first kind of the list that takes a path opens it */
    /* *known is the start of the kind's own struct, with `kind` and `options` set by dp_known_init. */
    doppel_status (*open)(const char *path, const dp_known_options *options, dp_known **known, doppel_error *error);
    void (*close)(dp_known *known); /* frees all of it; what dp_known_init made with dp_known_clear */
    doppel_status (*prepare)(const char *url,
                             void (*server)(const char *server, const char *library, const char *state, void *user),
                             void *user, doppel_error *error); /* NULL: it has no servers */
    /* A check of everything: of what is not open, or of what is. One of them is NULL. */
    doppel_status (*verify)(const char *path, void (*finding)(const char *what, void *user), void *user,
                            doppel_verified *verified, doppel_error *error);
    doppel_status (*inspect)(dp_known *known, void (*finding)(const char *what, void *user), void *user,
                             doppel_verified *verified, doppel_error *error);

    /* ---- looks ---- */

    /* For dp_look_create, dp_look_free and dp_look_begin. Create fills in look->own; the rest is zero except `known`
     * and `kind`. Begin finds `purpose` set, `except` and `salvage` cleared. */
    doppel_status (*look_create)(dp_look *look, doppel_error *error);
    void (*look_free)(dp_look *look);
    doppel_status (*begin)(dp_look *look, doppel_error *error);
    /* With DP_LOOK_ADD waits until all that was committed is durable, as far as `durability` says. An error means that
     * some or all of what was committed through this look was undone. Without it, it gives DOPPEL_OK. */
    doppel_status (*end)(dp_look *look, doppel_error *error);
    /* Whether documents were removed during the look, so that it may have seen neither the old nor the new version of
     * one: call it before or after end. */
    bool (*again)(const dp_look *look);
    /* Prepares for the first of these queries: for *ready of them, at least one (count 0: none). With DP_LOOK_ADD it
     * comes before any other call, again after each successful commit, and numbers and names found earlier are then
     * invalid. Otherwise it is optional: without it, data is fetched on demand. */
    doppel_status (*fetch)(dp_look *look, const dp_query *const *queries, size_t count, size_t *ready,
                           doppel_error *error);

    /* ---- finding: none of these consider `below`, `except` or alive, except for titles ---- */

    /* The documents, copies and texts that may have this name, ascending; *numbers is emptied first. */
    doppel_status (*find_name)(dp_look *look, dp_key key, doppel_slice name, dp_numbers *numbers, doppel_error *error);
    /* Those that may share a band with a query: its `keys` count, each number once, ascending. With
     * rules.by_similarity. */
    doppel_status (*find_bands)(dp_look *look, const dp_query *query, dp_numbers *numbers, doppel_error *error);
    /* Those within the distance, as doppel_index_find gives them: owners are numbers. Not with rules.by_similarity. Any
     * distance is allowed. */
    doppel_status (*find_near)(dp_look *look, const uint64_t fingerprint[2], int distance, doppel_matches *matches,
                               doppel_error *error);
    /* The owners that count (below, except, alive, queued) of titles at or above rules.title_similarity, the most
     * similar first, then by number; with `best` only the first. *hits is emptied first. */
    doppel_status (*find_titles)(dp_look *look, const dp_title_query *query, dp_title_hits *hits, doppel_error *error);
    /* Looks up, before a query's turn to be decided, what is expensive and unlikely to change until then: results are
     * the same with it as without. The look has not begun, and any number of threads may call it. Without memory, or
     * while everything is being replaced, nothing is looked up. NULL: not supported. */
    void (*look_ahead)(dp_look *look, const dp_query *query, dp_title_ahead *ahead);
    /* Drops numbers whose sets are known to be less similar than `least`, by what keep_features kept of each. When out
     * of memory both do nothing. NULL, both: not supported. */
    void (*sift)(dp_look *look, const dp_features *features, double least, dp_numbers *numbers);
    void (*keep_features)(dp_look *look, uint64_t number, const dp_features *features);
    /* Whether a number exists, has not expired and is not about to be removed. */
    doppel_status (*alive)(dp_look *look, uint64_t number, bool *alive, doppel_error *error);

    /* ---- reading ---- */

    /* The hash that a trace has of an id or a canonical URL; never 0. */
    uint64_t (*hash)(const dp_look *look, doppel_slice name);
    doppel_status (*read)(dp_look *look, dp_part part, uint64_t number, doppel_slice *bytes,
                          doppel_error *error); /* for dp_look_read */
    /* The count at a number (zeros: none), and the numbers linked to it, ascending: up to `room` are written, *found is
     * their number. Durable ones only. */
    doppel_status (*counts)(dp_look *look, uint64_t number, dp_counts *counts, doppel_error *error);
    doppel_status (*links)(dp_look *look, uint64_t number, uint64_t *links, size_t room, size_t *found,
                           doppel_error *error);
    /* Each value of a part, and each number that has a count, as dp_view_each and dp_view_each_count give them; damaged
     * counts were reported, or skipped. The callback may make other calls of the look. */
    doppel_status (*each)(dp_look *look, const dp_each *each, doppel_error *error);
    doppel_status (*each_count)(dp_look *look,
                                doppel_status (*counted)(uint64_t number, const dp_counts *counts, void *user),
                                void *user, doppel_error *error);

    /* ---- changing: with DP_LOOK_ADD, after a fetch ---- */

    /* The next number: for a document, a copy, a text or a removal. They increase within a look; one that is not used,
     * or whose change was undone, is not given again. */
    doppel_status (*number)(dp_look *look, uint64_t *number, doppel_error *error);
    /* Copies everything a change points to. The copies of a document that is removed are removed with it. On an error
     * nothing has changed. */
    doppel_status (*queue)(dp_look *look, const dp_pending *pending, doppel_error *error);
    /* The end of the queue, and back to it: later changes are removed again. There must be no commit in between. */
    size_t (*mark)(const dp_look *look);
    void (*back)(dp_look *look, size_t mark);
    /* Commits what was queued since the last commit. *stands false: another process changed what it depends on. Then
     * nothing was done, the queue is empty, and the look is ready for the same queries with the current data: decide
     * all of them again. If nothing is shared it always stands. It must be called after each fetch, even if nothing was
     * queued. On an error nothing was done as far as is known, and the next call is fetch or end. */
    doppel_status (*commit)(dp_look *look, bool *stands, doppel_error *error);

    /* ---- as a whole: no look of this thread has begun ---- */

    /* With DOPPEL_DURABLE_NONE, makes durable what was acknowledged. */
    doppel_status (*flush)(dp_known *known, doppel_error *error);
    /* Removes what has expired; *expired is how many. */
    doppel_status (*expire)(dp_known *known, uint64_t *expired, doppel_error *error);
    doppel_status (*compact)(dp_known *known, doppel_error *error);
    doppel_status (*backup)(dp_known *known, const char *path, doppel_error *error);
    /* Fills in what it has: numbers of documents, copies and titles, bytes, `last`, `oldest`, `newest`, duplicates_by,
     * reconnects and the like, and `plan` if it has one. What cannot be read is 0. */
    void (*get_stats)(dp_known *known, doppel_engine_stats *stats);
    /* See doppel_engine_stop_waiting. */
    void (*stop_waiting)(dp_known *known);
} dp_known_kind;

extern const dp_known_kind dp_known_local;
extern const dp_known_kind dp_known_redis; /* in builds with Redis */

/* Whether a path is a URL of Redis: redis://, redis+unix://, redis+sentinel://, redis+cluster://. */
bool dp_known_is_redis_url(const char *path);

/* For `open` and `close` of a kind. False: no memory. */
bool dp_known_init(dp_known *known, const dp_known_kind *kind, const dp_known_options *options, const char *name);
void dp_known_clear(dp_known *known);

/* For the owner's log: a line, and the message of an error under the event "WHAT_ERROR". */
void dp_known_log(const dp_known *known, doppel_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void dp_known_log_error(const dp_known *known, const char *what, const doppel_error *error);

/* A lock for many readers and few writers: writers have priority, so that constant reading does not starve them. No
 * thread may lock it twice. False: the system refuses one. */
bool dp_lock_init(pthread_rwlock_t *lock);

/* *latest = max(*latest, time) */
static inline void dp_latest(_Atomic uint64_t *latest, uint64_t time) {
    uint64_t seen = atomic_load(latest);
    while (time > seen && !atomic_compare_exchange_weak(latest, &seen, time))
        ;
}

#endif
