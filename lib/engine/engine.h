/* engine.h - the online line: item -> query.c (who is it?) -> find.c (who is near? how near, really?) -> lib/decide (is
 * it a copy?) -> engine.c (what follows from that) -> commit.c (until it is durable).
 *
 * What is decided goes into `known` at once, so that the next add sees it, and into the group of changes that the next
 * commit writes. Whoever adds waits for that commit; if it fails, all that was decided since the last one is taken
 * back. Checks see what the store shows: what is not durable is not there yet, what is to be removed still is.
 *
 * Locks, in the order in which they are taken: `shape` (held to read by every call; to write by what replaces the store
 * or `known` as a whole), `order` (held by whoever decides: adds, removals, expiry; never while the disk is written,
 * but with DOPPEL_DURABLE_EACH), `pool`. */
#ifndef DP_ENGINE_H
#define DP_ENGINE_H

#include "decide/decide.h"
#include "engine/leaving.h"
#include "engine/list.h"
#include "engine/query.h"

#include <pthread.h>

/* ---- changes that are not durable yet: commit.c ---- */

/* A change and what it did to `known`, so that it can be taken back. */
typedef struct dp_pending {
    dp_change change;
    bool added;     /* its trace went into `known` */
    bool removed;   /* the trace of what it removes goes out of it: at once when it has expired, else once durable */
    dp_trace trace; /* of change.number, or, of a removal, what it removes */
    char *bytes;    /* what all of it points to */
    uint64_t at;    /* the number that it has, or stands behind: in a group they never fall */
} dp_pending;

/* What one commit writes. Whoever waits for it holds it. */
typedef struct dp_group {
    dp_pending *pending;
    size_t count, room, bytes;
    size_t holders;
    bool done;
    doppel_status status;
    doppel_error error;
} dp_group;

/* ---- threads' own things ---- */

typedef struct dp_worker {
    dp_asker *asker;
    dp_view *view;
    doppel_matches near;
    dp_title_matches titles;
    dp_title_hits title_hits;
    dp_numbers keyed, banded;
    dp_sift_scratch sift;
    uint64_t *set; /* a copy of a set that is compared, aligned */
    size_t set_room;
    dp_buffer packed;          /* a text */
    dp_buffer bytes[DP_PARTS]; /* parts that are being made */
    struct dp_worker *next;    /* in the pool */
} dp_worker;

/* ---- counters: stats.c ---- */

typedef struct dp_tally {
    _Atomic uint64_t bucket[DOPPEL_BUCKETS];
    _Atomic uint64_t count, sum;
} dp_tally;

typedef struct dp_engine_counters {
    _Atomic uint64_t checks, adds, removes, expired, damaged, commits, failed_commits;
    _Atomic uint64_t verdicts_by[DP_REASONS];
    _Atomic uint64_t reads[DP_PARTS]; /* parts of documents that were looked at; for tests */
    dp_tally check_time, add_time, commit_time, candidates, distances;
} dp_engine_counters;

/* Fewer than this are read as fast as they are sifted, and need no memory. */
enum { DP_CROWD_LEAST = 64 };

struct doppel_engine {
    doppel_engine_options options; /* as they are in use */
    dp_buffer settings;            /* what the folder keeps of them, with a NUL */
    char *path;                    /* NULL: in memory */
    char *fields_text, *fields_copy, *field_names[16];
    char preset[64];
    doppel_recipe *own_recipe; /* NULL: the caller's */
    dp_asking asking;
    dp_rules rules;

    dp_store *store; /* with `known`; or else `shared` (over.h) */
    dp_known *known;
    dp_names names; /* of the store that `known` was read from; changes with it */
    size_t crowd;   /* more documents than this that share a band with a query are sifted (parity.h) */
    dp_shared *shared;
    bool is_shared; /* it is one, or will be */
    pthread_rwlock_t shape;

    pthread_mutex_t order; /* of all down to `closing` */
    pthread_cond_t settled;
    uint64_t next;      /* number */
    dp_group *current;  /* takes changes */
    dp_group *writing;  /* is being written; NULL: none is */
    dp_leaving leaving; /* what both remove */
    uint64_t followed_generation;
    _Atomic uint64_t followed; /* a reader process: the last number it has taken in */
    uint64_t loads;            /* how often all was read; changes under `shape` only */
    uint64_t expired_at;
    uint64_t loaded_by;   /* a reader process: what had expired by then was left out */
    doppel_status failed; /* DOPPEL_DURABLE_NONE: what a commit in the background ended with */
    doppel_error failed_error;
    uint64_t taken_back; /* how often a commit failed and what was pending went again */
    bool closing;
    pthread_t background;
    bool has_background;

    _Atomic uint64_t removals; /* how often documents went out of `known`, counted before they go */

    /* clock.c. Under its lock, what the engine goes by, and what of it was last read from the store; then what follows
     * from `reading`: the time, the later and the earlier of that and what is doubted. */
    pthread_mutex_t clock_lock;
    dp_clock clock, stored_clock;
    bool clock_told, clock_news; /* a jump was logged; something about it is not written yet */
    _Atomic uint64_t reading, now, latest, purge;

    pthread_mutex_t pool_lock;
    dp_worker *pool;

    dp_engine_counters counters;
    double open_seconds;
    _Atomic uint64_t newest; /* when the last document was added */
};

/* ---- settings: options.c ---- */

/* Fills engine->options, asking and rules from what was given and, of a store that is there, from what it keeps. */
doppel_status dp_engine_set_up(doppel_engine *engine, const doppel_engine_options *given, doppel_error *error);
/* The same against the settings of the store: refuses what does not fit. */
doppel_status dp_engine_agree(doppel_engine *engine, const doppel_engine_options *given, const char *text,
                              doppel_error *error);

/* ---- clock.c ---- */

/* What a clock said, and when by the machine's own reckoning; boot 0: that is not known. */
typedef struct dp_clock_reading {
    uint64_t time, boot, uptime;
} dp_clock_reading;

typedef enum dp_clock_event {
    DP_CLOCK_FOLLOWED, /* the reading is believed */
    DP_CLOCK_DOUBTED,  /* it is not, or not yet */
    DP_CLOCK_RETURNED, /* it is believed, and the one before was not */
    DP_CLOCK_SETTLED   /* it was doubted for `settle` seconds, and counts from now on */
} dp_clock_event;

dp_clock_event dp_clock_step(dp_clock *clock, const dp_clock_reading *read, uint64_t settle);

/* The time, by which documents match; the time that the life of a new one is counted from; and the time by which they
 * are purged. All are the same unless the system's clock is doubted. */
uint64_t dp_engine_now(doppel_engine *engine);
uint64_t dp_engine_latest(doppel_engine *engine);
uint64_t dp_engine_purge_time(doppel_engine *engine);
/* What the store has, when that is new; and what it is to get (*news: even if nothing else is written). */
void dp_engine_set_clock(doppel_engine *engine, const dp_clock *stored);
dp_clock dp_engine_get_clock(doppel_engine *engine, bool *news);

/* ---- open.c ---- */

/* Reads all traces of the store into a new `known`. */
doppel_status dp_engine_load(doppel_engine *engine, doppel_error *error);
/* A worker of the pool, and back. NULL: no memory, or the store has no view left; *error says so. */
dp_worker *dp_worker_take(doppel_engine *engine, doppel_error *error);
void dp_worker_give(doppel_engine *engine, dp_worker *worker);

/* Every call is between these two: a reader process takes in what is new, `shape` is held to read, *worker is one of
 * the pool. */
doppel_status dp_engine_enter(doppel_engine *engine, dp_worker **worker, doppel_error *error);
void dp_engine_leave(doppel_engine *engine, dp_worker *worker);
/* An item's query, with its text packed if it is to be kept. */
doppel_status dp_engine_ask(doppel_engine *engine, dp_worker *worker, const doppel_item *item, dp_query *query,
                            doppel_error *error);
/* Checks a query against what is durable. */
doppel_status dp_engine_answer(doppel_engine *engine, dp_worker *worker, const dp_query *query, doppel_verdict *verdict,
                               doppel_error *error);

/* follow.c: a reader process takes in what its writer has written since, unless another thread is at it; reads
 * everything anew after a compaction, or when much has expired. `shape` and `order` are held by nobody of this
 * thread. */
doppel_status dp_engine_follow(doppel_engine *engine, doppel_error *error);

/* ---- find.c ---- */

/* What may be found. */
typedef struct dp_look {
    uint64_t below;     /* numbers from here on do not count */
    uint64_t except[2]; /* nor do these; 0: none */
    uint64_t now;
    bool deciding;     /* `order` is held: what is pending counts too */
    bool salvage;      /* what is damaged counts as gone, whatever the engine was opened for */
    uint64_t removals; /* the engine's, when it began */
} dp_look;

/* An original, as it was found. */
typedef struct dp_finding {
    dp_reason reason;
    dp_candidate best;
    bool by_copy;                     /* the words are those of a copy of it that came by its URL or title */
    doppel_slice original_id, origin; /* its id and where it comes from; the worker's, until its view ends */
    uint64_t candidates;
} dp_finding;

/* follow.c: what the worker's view shows and is not known yet is taken in, so that both are of one moment: *moment, of
 * a view that may have begun anew, and has ended on an error. `shape` is held, `order` is not. */
doppel_status dp_engine_catch_up(doppel_engine *engine, dp_worker *worker, dp_moment *moment, dp_look *look,
                                 doppel_error *error);

/* Begins a look at what is durable or, where nobody waits for that (DOPPEL_DURABLE_NONE), at all that was acknowledged:
 * then `order` is held until dp_look_end. */
doppel_status dp_look_begin(doppel_engine *engine, dp_worker *worker, dp_look *look, doppel_error *error);
void dp_look_end(doppel_engine *engine, dp_worker *worker, const dp_look *look);
/* Whether documents went while it lasted: a new version may have been too new for it, and the old one gone. */
bool dp_look_again(const doppel_engine *engine, const dp_look *look);
/* Whether a number is known, has not expired and is not about to be removed. */
bool dp_look_alive(const doppel_engine *engine, const dp_look *look, uint64_t number);

/* The worker's view must have begun, after `order` was taken if it is held. */
doppel_status dp_find(doppel_engine *engine, dp_worker *worker, const dp_query *query, const dp_look *look,
                      dp_finding *finding, doppel_error *error);

/* The same for a check, with on_same_url as in an add; look->except may grow. */
doppel_status dp_find_refreshed(doppel_engine *engine, dp_worker *worker, const dp_query *query, dp_look *look,
                                dp_finding *finding, doppel_error *error);

/* Who has this id, document or copy; 0: nobody. */
doppel_status dp_find_id(doppel_engine *engine, dp_worker *worker, doppel_slice id, const dp_look *look,
                         uint64_t *number, doppel_error *error);
/* The same by canonical URL. */
doppel_status dp_find_url(doppel_engine *engine, dp_worker *worker, doppel_slice url, const dp_look *look,
                          uint64_t *number, doppel_error *error);

/* Whether a document, or a copy that came by its URL or title, has the query's words: *number is the document's, or
 * that of the copy's original; 0: none has. A document goes before a copy. */
doppel_status dp_find_words(doppel_engine *engine, dp_worker *worker, const dp_query *query, const dp_look *look,
                            uint64_t *number, doppel_error *error);

/* Counts what is damaged, and logs it: DOPPEL_OK where that is passed over (options.salvage), else DOPPEL_ERROR_STORE.
 */
doppel_status dp_engine_damage(doppel_engine *engine, uint64_t documents, const doppel_error *why, doppel_error *error);

/* A part of a number, from what is pending or from the view; data NULL: it is gone. */
doppel_status dp_read_part(doppel_engine *engine, dp_worker *worker, const dp_look *look, dp_part part, uint64_t number,
                           doppel_slice *bytes, doppel_error *error);
/* The same, decoded. False in *found: it is gone, or damaged and passed over. */
doppel_status dp_read_trace(doppel_engine *engine, dp_worker *worker, const dp_look *look, uint64_t number,
                            dp_trace *trace, bool *found, doppel_error *error);
doppel_status dp_read_record(doppel_engine *engine, dp_worker *worker, const dp_look *look, uint64_t number,
                             dp_record *record, bool *found, doppel_error *error);
/* Its set, aligned, in the worker's memory: until the next call. NULL: none is kept. */
doppel_status dp_read_set(doppel_engine *engine, dp_worker *worker, const dp_look *look, uint64_t number,
                          const uint64_t **set, size_t *count, doppel_error *error);

/* Its sample, where samples are kept; data NULL: none is. */
doppel_status dp_read_sample(doppel_engine *engine, dp_worker *worker, const dp_look *look, uint64_t number,
                             doppel_slice *sample, doppel_error *error);

/* ---- commit.c: `order` is held for all of these ---- */

/* Takes the bytes of all that a change points to, gives the change to the next commit and does to `known` what the
 * flags say. On an error nothing has changed. */
doppel_status dp_commit_queue(doppel_engine *engine, const dp_pending *pending, doppel_error *error);
/* Where the queue ends, and back to there: takes what came after it out again. `order` is held from one to the other.
 */
size_t dp_commit_mark(const doppel_engine *engine);
void dp_commit_back(doppel_engine *engine, size_t mark);
/* Of what is pending, the one with this number; NULL: it is not there. */
const dp_pending *dp_commit_find(const doppel_engine *engine, uint64_t number);
/* leaving.c: whether a change removes what is found until it is durable; what a group removes goes; and the set of
 * what is pending anew. */
bool dp_is_leaving(const dp_pending *pending);
void dp_leaving_go(doppel_engine *engine, const dp_group *group);
void dp_leaving_again(doppel_engine *engine);
/* Where nobody waits for the disk, writes what was acknowledged: for calls that read the store alone. No lock is
 * held. */
doppel_status dp_engine_flush(doppel_engine *engine, doppel_error *error);
/* Waits until all that is pending now is durable. `order` is let go meanwhile. */
doppel_status dp_commit_wait(doppel_engine *engine, doppel_error *error);
/* Writes what is pending without letting `order` go. */
doppel_status dp_commit_now(doppel_engine *engine, doppel_error *error);
/* Writes what is pending, unless a commit is under way. */
void dp_commit_write(doppel_engine *engine);
/* At the end, without `order`: all that is pending becomes durable. */
void dp_commit_stop(doppel_engine *engine);

/* background.c: the thread that writes for DOPPEL_DURABLE_NONE; nothing happens where there is none. */
doppel_status dp_background_start(doppel_engine *engine, doppel_error *error);
void dp_background_stop(doppel_engine *engine);

#define DP_NO_NAME "the document has no id, no URL and no words: nothing to remember it by"
/* Refuses to change what was opened to be read. */
doppel_status dp_engine_may_write(const doppel_engine *engine, doppel_error *error);
/* Adds a query: decides, and with DOPPEL_DURABLE_EACH writes. `order` is held. */
doppel_status dp_engine_add_query(doppel_engine *engine, dp_worker *worker, const dp_query *query,
                                  doppel_verdict *verdict, doppel_error *error);
/* add.c: looks up, decides and queues what follows; *verdict is what the caller gets once it is durable. On an error
 * nothing has changed. */
doppel_status dp_engine_decide(doppel_engine *engine, dp_worker *worker, const dp_query *query, doppel_verdict *verdict,
                               doppel_error *error);

/* restore.c: a query that puts something back. In place of dp_find: what it was found to be. */
doppel_status dp_restore_find(doppel_engine *engine, dp_worker *worker, const dp_query *query, const dp_look *look,
                              dp_finding *finding, doppel_error *error);
/* Queues how often it was met again; `trace` is what it leaves now. `order` is held. */
doppel_status dp_restore_counts(doppel_engine *engine, const dp_query *query, const dp_trace *trace,
                                doppel_error *error);

/* Queues the removal of a number; `trace` is what it left. `order` is held. expire: it leaves no removal behind. */
doppel_status dp_engine_forget(doppel_engine *engine, const dp_trace *trace, bool expire, doppel_error *error);

/* expire.c: removes up to `most` of what has expired; `order` is held. */
doppel_status dp_engine_expire_some(doppel_engine *engine, dp_worker *worker, size_t most, uint64_t *expired,
                                    doppel_error *error);

/* ---- lists of documents: stored.c ---- */

/* Reads all there is of a number, which is copied into the list. False in *found: it is gone. With `text` the kept text
 * is unpacked, with `set` the set is read. */
typedef struct dp_wanted {
    const dp_look *look;
    bool text, set;
} dp_wanted;
doppel_status dp_stored_add(doppel_engine *engine, dp_worker *worker, uint64_t number, const dp_wanted *wanted,
                            doppel_stored_list *list, bool *found, doppel_error *error);

/* get.c: a name as the canonical URL that it may be; the worker's. */
doppel_status dp_engine_canonical(doppel_engine *engine, dp_worker *worker, doppel_slice name, doppel_slice *url,
                                  doppel_error *error);
/* get.c: the number of an id, else of a URL; 0: neither is known. The worker's view has begun. */
doppel_status dp_engine_resolve(doppel_engine *engine, dp_worker *worker, const dp_look *look, doppel_slice name,
                                uint64_t *number, doppel_error *error);
/* similar.c: what is asked for, defaults filled in. */
typedef struct dp_similar_asked {
    bool by_distance;
    int distance;
    double above;
    uint64_t limit;
} dp_similar_asked;
doppel_status dp_similar_ask(const doppel_engine *engine, const doppel_similar_options *given, dp_similar_asked *asked,
                             doppel_error *error);
/* Whether an item is but the name of a document; and the failure when nobody has it. */
bool dp_similar_by_name(const doppel_item *item);
doppel_status dp_similar_nobody(const doppel_item *item, doppel_error *error);

/* ---- stats.c, log.c ---- */

/* *latest = max(*latest, time) */
static inline void dp_latest(_Atomic uint64_t *latest, uint64_t time) {
    uint64_t seen = atomic_load(latest);
    while (time > seen && !atomic_compare_exchange_weak(latest, &seen, time))
        ;
}

double dp_engine_clock(void); /* seconds that only grow */
void dp_tally_add(dp_tally *tally, uint64_t value);
void dp_engine_read_counters(const doppel_engine *engine, doppel_engine_stats *stats);
/* Counts a verdict. */
void dp_engine_note(doppel_engine *engine, const dp_finding *finding);

bool dp_engine_logs(const doppel_engine *engine, doppel_log_level level);
void dp_log_begin(doppel_engine *engine, const char *what, const doppel_item *item);
/* The last line about an item, and what its call gives: the status, and why in *error (may be NULL). began 0: no time.
 */
doppel_status dp_log_end(doppel_engine *engine, const char *what, doppel_status status, const doppel_error *why,
                         const doppel_verdict *verdict, double began, doppel_error *error);
void dp_log_error(doppel_engine *engine, const char *what, const doppel_error *error);
void dp_log_line(doppel_engine *engine, doppel_log_level level, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
