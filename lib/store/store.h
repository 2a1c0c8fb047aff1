/* store.h - what is stored for documents, by number: in memory (memory.c) or in a folder (lmdb*.c).
 *
 * A store keeps, it never computes. Everything has an increasing number, assigned by the writer: documents, copies that
 * are linked or stored, texts of copies that are not, and removals, so that a reader that reads everything after the
 * last number it knows is up to date. A document has up to four parts: a trace (all that must be in memory to find it),
 * a record (its names and fields), a set (its feature hashes) and its text. docs/FORMAT.md has the bytes of each.
 *
 * One thread at a time writes; any number read, each through a view of its own, and none waits for another. */
#ifndef DP_STORE_H
#define DP_STORE_H

#include "decide/decide.h"

/* ---- parts ---- */

typedef enum dp_part { DP_PART_TRACE, DP_PART_RECORD, DP_PART_SET, DP_PART_TEXT } dp_part;
enum { DP_PARTS = 4 };

typedef enum dp_trace_kind {
    DP_TRACE_DOCUMENT = 1,
    DP_TRACE_COPY,
    DP_TRACE_REMOVAL,
    DP_TRACE_COPY_REMOVAL,
    DP_TRACE_TEXT /* the words of a copy that was not kept: its digest, and no record */
} dp_trace_kind;

/* How ids and canonical URLs are hashed, in traces and in memory: by SipHash-2-4 with the secret of the store, so that
 * nobody can construct colliding names. A folder of format 1 has no secret: XXH3. */
typedef struct dp_names {
    bool keyed;
    uint64_t secret[2];
} dp_names;

/* A random secret. Errors: DOPPEL_ERROR_IO. */
doppel_status dp_names_create(dp_names *names, doppel_error *error);
/* The hash of a name, never 0. */
uint64_t dp_name_hash(const dp_names *names, doppel_slice name);

/* What must be kept in memory. */
typedef struct dp_trace {
    uint64_t number;
    dp_trace_kind kind;
    uint64_t of;      /* a copy or a text: the number of its original; a removal: the number that is gone */
    uint64_t expires; /* seconds since 1970; 0: never */
    uint64_t added;
    uint64_t id_hash;   /* dp_name_hash of the id */
    uint64_t url_hash;  /* dp_name_hash of the canonical URL; 0: it has none */
    uint8_t digest[32]; /* all 0: no words */
    uint64_t fingerprint[2];
    bool content;         /* it has enough words to be near others */
    bool own_words;       /* a copy: its words are not its original's, and it is found by them */
    const uint32_t *keys; /* of bands; may be unaligned in a decoded trace: copy before use */
    size_t key_count;
    doppel_slice title; /* normalised; empty: it does not count */
} dp_trace;

static inline bool dp_trace_is_removal(const dp_trace *trace) {
    return trace->kind == DP_TRACE_REMOVAL || trace->kind == DP_TRACE_COPY_REMOVAL;
}

/* Whether it has a record: a document or a copy. */
static inline bool dp_trace_is_kept(const dp_trace *trace) {
    return trace->kind == DP_TRACE_DOCUMENT || trace->kind == DP_TRACE_COPY;
}

/* Whether a digest is one: a text without words has none, all 0. */
static inline bool dp_has_digest(const uint8_t digest[32]) {
    static const uint8_t none[32];
    return memcmp(digest, none, sizeof none) != 0;
}

/* The names and fields of a document. */
typedef struct dp_record {
    doppel_slice id, url, canonical, title, fields; /* url and title as given; fields: a JSON object; data NULL: none */
    doppel_slice original_id;                       /* of a copy */
    doppel_slice origin;                            /* as in doppel_item; data NULL: not given */
    uint64_t words, set_count, text_length;         /* text_length: before compression */
    bool sampled;                                   /* its set is a sample: set_count is that of the whole */
    uint8_t reason;                                 /* a doppel_reason of decide.h, of a copy; 0: an original */
    doppel_evidence evidence;                       /* of a copy */
} dp_record;

/* Bytes of a trace and a record, added to a buffer; false: out of memory. */
bool dp_trace_encode(const dp_trace *trace, dp_buffer *to);
bool dp_record_encode(const dp_record *record, dp_buffer *to);
/* Decodes: slices point into `bytes`. False for anything that encode does not produce: any bytes may be given. */
bool dp_trace_decode(doppel_slice bytes, dp_trace *trace);
bool dp_record_decode(doppel_slice bytes, dp_record *record);

/* ---- stores ---- */

typedef struct dp_store_options {
    bool read_only, must_exist;
    bool group_readable;  /* the folder's group may read it, whatever the umask */
    uint64_t map;         /* bytes of address space to begin with; 0: 64 GiB */
    const char *settings; /* kept with a new store, a text of lines "name=value" */
    /* Called with what the operator has to know, though the store opens. May be NULL. */
    void (*warn)(const char *message, void *user);
    void *user;
} dp_store_options;

/* One change. Several kinds may be in one: a new version of a document is `number` with its parts and `remove`. */
typedef struct dp_change {
    uint64_t number;             /* the number of what is added, above all others; 0: nothing is added */
    doppel_slice part[DP_PARTS]; /* its parts; data NULL: it has none */
    uint64_t link;               /* the added one is a copy of this number; 0: it is not */
    uint64_t remove;             /* remove all parts, links and counts of this number; 0: none */
    uint64_t count;              /* count a duplicate at this number; 0: none */
    uint64_t count_at;           /* when, seconds since 1970 */
    uint8_t count_reason;        /* a doppel_reason, not DOPPEL_REASON_NONE */
    uint64_t count_times;        /* how many; 0: one */
} dp_change;

/* The time a store uses, and its state: lib/known/local_clock.c. */
typedef struct dp_clock {
    uint64_t time;    /* seconds since 1970 */
    uint64_t boot;    /* of the machine, in which it was read; 0: not known */
    uint64_t uptime;  /* seconds, of that boot, by then */
    uint64_t doubted; /* the system clock then, if it is not believed yet; 0: it is */
    uint64_t seen;    /* for how many seconds it has been seen */
} dp_clock;

/* Duplicates that were counted. */
typedef struct dp_counts {
    uint64_t by[DP_COUNTERS]; /* dp_reason_counter: URL, content, title */
    uint64_t last;            /* when the last came */
} dp_counts;

/* The state of a store; in a view, of its snapshot. */
typedef struct dp_store_info {
    uint64_t last;       /* the last number that was written */
    dp_clock clock;      /* as it was last written */
    uint64_t generation; /* how often it was compacted: numbers a reader has seen may be gone without a removal */
    dp_counts total;     /* of all that was ever counted */
    uint64_t entries[DP_PARTS];
    uint64_t disk_bytes, free_bytes, memory_bytes;
} dp_store_info;

/* What a reader follows. */
typedef struct dp_moment {
    uint64_t last, generation; /* as in dp_store_info */
    dp_clock clock;
    dp_names names;           /* of the traces; other ones come with another generation only */
    uint64_t commit;          /* another one with every write; 0: not known */
    uint64_t traces, records; /* how many the store says there are */
    uint64_t titles;          /* duplicates that were ever found by their titles */
} dp_moment;

/* Each value of a part with a number of at least `from` and at most `to`, ascending; `damaged` (of `user`, may be NULL)
 * gets those whose checksum is wrong, and 0 for numbers that are not known: neighbours on a damaged page, in the range
 * or near it. Without it these are an error. A status of `value` other than DOPPEL_OK ends it. */
typedef struct dp_each {
    dp_part part;
    uint64_t from, to;
    doppel_status (*value)(uint64_t number, doppel_slice bytes, void *user);
    void (*damaged)(uint64_t number, void *user);
    void *user;
} dp_each;

typedef doppel_status dp_count_visit(uint64_t number, const dp_counts *counts, void *user);
typedef bool dp_trace_filter(const dp_trace *trace, void *user);

typedef struct dp_store {
    const struct dp_store_kind *kind;
} dp_store;

/* What one thread reads at a time. From begin to end, in one thread, a view shows one snapshot, and its results are
 * borrowed until end. A thread is inside one view at a time. */
typedef struct dp_view {
    dp_store *store;
} dp_view;

/* A kind of store: memory.c, lmdb.c. Its own structs begin with a dp_store and a dp_view. Callers use the dp_ calls
 * below, which pass on to it. */
typedef struct dp_store_kind {
    const char *name;
    bool (*takes)(const char *path); /* the first kind of the list in store.c that takes a path opens it */
    doppel_status (*open)(const char *path, const dp_store_options *options, dp_store **store, doppel_error *error);
    void (*close)(dp_store *store);
    const char *(*settings)(const dp_store *store); /* that it was made with; borrowed */
    /* Replaces them, durably. For a store that never had a number, while nothing else is done with it: what is stored
     * is of the settings. */
    doppel_status (*set_settings)(dp_store *store, const char *settings, const dp_clock *clock, doppel_error *error);
    /* Makes all changes durable, or, on an error, none. `clock` is kept with them. Grows the map automatically. After a
     * failed commit it waits until no view is between begin and end: the writing thread must not be inside its own
     * view. Errors: DOPPEL_ERROR_IO (no space, read-only, ...: the message says what to do), DOPPEL_ERROR_MEMORY,
     * DOPPEL_ERROR_STORE. */
    doppel_status (*write)(dp_store *store, const dp_change *changes, size_t count, const dp_clock *clock,
                           doppel_error *error);
    doppel_status (*view_create)(dp_store *store, dp_view **view, doppel_error *error);
    void (*view_free)(dp_view *view);
    /* A reader process that finds the store compacted by its writer moves on to the new one in begin: the generation
     * shows it. */
    doppel_status (*view_begin)(dp_view *view, doppel_error *error);
    void (*view_end)(dp_view *view);
    void (*view_moment)(dp_view *view, dp_moment *moment); /* cheap */
    void (*view_info)(dp_view *view, dp_store_info *info); /* may walk a list of what is free */
    /* A part of a number, at any alignment; data NULL: there is none. Errors: DOPPEL_ERROR_STORE when its
     * checksum is wrong (the message names the number and the part). */
    doppel_status (*view_get)(dp_view *view, dp_part part, uint64_t number, doppel_slice *bytes, doppel_error *error);
    /* The count at a number (zeros: none), and the numbers that are linked to it, ascending: up to `room` are written,
     * *found is how many there are. */
    doppel_status (*view_counts)(dp_view *view, uint64_t number, dp_counts *counts, doppel_error *error);
    doppel_status (*view_links)(dp_view *view, uint64_t number, uint64_t *links, size_t room, size_t *found,
                                doppel_error *error);
    doppel_status (*view_each)(dp_view *view, const dp_each *each, doppel_error *error);
    /* Each number that has a count. Damaged ones are an error, reported after all others. */
    doppel_status (*view_each_count)(dp_view *view, dp_count_visit *visit, void *user, doppel_error *error);
    /* Rewrites the store without removals and without what `keep` (given each trace) says no to, and continues with
     * that. Views and writes continue during it: a view that has begun ends with what it began with, and a write may
     * wait for the last few hundred numbers. `keep` is called once for each number, by this thread, which must not be
     * inside a view, nor write. A second compaction waits for the first. A folder of format 1 is converted to the
     * current format: it gets a secret, and its traces the matching hashes. On an error the folder is unchanged; in
     * memory some of what was to be removed may be gone. */
    doppel_status (*compact)(dp_store *store, dp_trace_filter *keep, void *user, doppel_error *error);
    /* A copy as of now, in a new folder, while views and writes continue. */
    doppel_status (*backup)(dp_store *store, const char *path, doppel_error *error);
} dp_store_kind;

extern const dp_store_kind dp_store_memory, dp_store_lmdb;

/* Opens the store of a folder, which is created if missing, or a new one in memory (path NULL). Errors:
 * DOPPEL_ERROR_STORE: another process writes to it (named), a newer version, truncated, not a store;
 * DOPPEL_ERROR_IO. */
doppel_status dp_store_open(const char *path, const dp_store_options *options, dp_store **store, doppel_error *error);

static inline void dp_store_close(dp_store *store) {
    if (store)
        store->kind->close(store);
}

static inline const char *dp_store_settings(const dp_store *store) {
    return store->kind->settings(store);
}

static inline doppel_status dp_store_set_settings(dp_store *store, const char *settings, const dp_clock *clock,
                                                  doppel_error *error) {
    return store->kind->set_settings(store, settings, clock, error);
}

static inline doppel_status dp_store_write(dp_store *store, const dp_change *changes, size_t count,
                                           const dp_clock *clock, doppel_error *error) {
    return store->kind->write(store, changes, count, clock, error);
}

static inline doppel_status dp_store_compact(dp_store *store, dp_trace_filter *keep, void *user, doppel_error *error) {
    return store->kind->compact(store, keep, user, error);
}

static inline doppel_status dp_store_backup(dp_store *store, const char *path, doppel_error *error) {
    return store->kind->backup(store, path, error);
}

/* Walks all of a folder in a child process: doppel_engine_verify (doppel.h) is this. */
doppel_status dp_store_check(const char *path, void (*finding)(const char *what, void *user), void *user,
                             doppel_verified *verified, doppel_error *error);

/* The error of a folder, or of its file, that is damaged: how, and what to do. DOPPEL_ERROR_STORE. */
doppel_status dp_damaged(const char *path, doppel_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- views ---- */

static inline doppel_status dp_view_create(dp_store *store, dp_view **view, doppel_error *error) {
    *view = NULL;
    return store->kind->view_create(store, view, error);
}

static inline void dp_view_free(dp_view *view) {
    if (view)
        view->store->kind->view_free(view);
}

static inline doppel_status dp_view_begin(dp_view *view, doppel_error *error) {
    return view->store->kind->view_begin(view, error);
}

static inline void dp_view_end(dp_view *view) {
    view->store->kind->view_end(view);
}

static inline void dp_view_moment(dp_view *view, dp_moment *moment) {
    view->store->kind->view_moment(view, moment);
}

static inline void dp_view_info(dp_view *view, dp_store_info *info) {
    *info = (dp_store_info){0};
    view->store->kind->view_info(view, info);
}

static inline doppel_status dp_view_get(dp_view *view, dp_part part, uint64_t number, doppel_slice *bytes,
                                        doppel_error *error) {
    *bytes = (doppel_slice){0};
    return view->store->kind->view_get(view, part, number, bytes, error);
}

static inline doppel_status dp_view_counts(dp_view *view, uint64_t number, dp_counts *counts, doppel_error *error) {
    *counts = (dp_counts){0};
    return view->store->kind->view_counts(view, number, counts, error);
}

static inline doppel_status dp_view_links(dp_view *view, uint64_t number, uint64_t *links, size_t room, size_t *found,
                                          doppel_error *error) {
    *found = 0;
    return view->store->kind->view_links(view, number, links, room, found, error);
}

static inline doppel_status dp_view_each(dp_view *view, const dp_each *each, doppel_error *error) {
    return view->store->kind->view_each(view, each, error);
}

static inline doppel_status dp_view_each_count(dp_view *view, dp_count_visit *visit, void *user, doppel_error *error) {
    return view->store->kind->view_each_count(view, visit, user, error);
}

/* ---- for kinds ---- */

/* Whether the changes can be made to a store whose last number is `last`: numbers grow, parts are not too long, reasons
 * are 1 to 3. Gives the last number after them. */
doppel_status dp_changes_check(const dp_change *changes, size_t count, uint64_t *last, doppel_error *error);

/* Counts one duplicate. */
void dp_counts_add(dp_counts *counts, const dp_change *change);

/* "trace", "record", "set", "text" */
const char *dp_part_name(dp_part part);

/* The most bytes of a part: LMDB's own limit, less the checksum. */
#define DP_PART_LIMIT ((uint64_t)UINT32_MAX - 4096)

#endif
