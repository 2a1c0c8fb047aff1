/* redis.h - a memory in Redis that several processes share, from this side.
 *
 *     redis.c           opened, made, closed; what it is like
 *     redis_places.c    where documents are found: the places of names, bands, fingerprints and titles
 *     redis_look.c      what a call has fetched of it, and what is found there
 *     redis_commit.c    what it is going to change, and does, if what was read still holds
 *     redis_check.c     all of it: each document, verify, compact
 *     functions.lua     the functions that run inside Redis
 * and redis_link.h, the connection (redis_url.c, redis_link.c). docs/FORMAT.md section 14 has the keys and their
 * bytes. */
#ifndef DP_REDIS_H
#define DP_REDIS_H

#include "hamming/hamming.h"
#include "known/known.h"
#include "known/redis_link.h"
#include "sketch/sketch.h"

#include <pthread.h>

/* The text of the functions and their name; made by the build. */
extern const char dp_redis_library[];
extern const char dp_redis_library_name[];

/* ---- memory that goes all at once: redis_look.c ---- */

typedef struct dp_arena {
    struct dp_arena_block *block;
} dp_arena;
/* On a multiple of 16; NULL: there is none. */
void *dp_arena_take(dp_arena *arena, size_t length);
/* A copy of some bytes; data NULL: there is no memory. */
doppel_slice dp_arena_copy(dp_arena *arena, const void *bytes, size_t length);
void dp_arena_free(dp_arena *arena);

/* ---- places: redis_places.c ---- */

enum { DP_REDIS_TABLES = 32 };

/* How documents are spread: chosen when a memory is made, kept in its meta key as "4x16/18": tables and bits of a key,
 * or bands and rows, then the bits of the number of a bucket. The rest follows from the rules. */
typedef struct dp_redis_plan {
    char name[32];
    dp_rules rules;
    int bands, rows; /* by similarity */
    int tables;      /* by distance: their keys share no bit, and the sum of (radius + 1) is above the distance */
    struct {
        int from, width, radius; /* bits from the top; this many are the key */
    } table[DP_REDIS_TABLES];
    int bucket_bits;
} dp_redis_plan;

/* The cheapest plan for an expected number of documents; 0: a million. */
void dp_redis_plan_make(uint64_t count, const dp_rules *rules, dp_redis_plan *plan);
/* From its name; false: no plan of these rules has it. */
bool dp_redis_plan_read(const char *name, const dp_rules *rules, dp_redis_plan *plan);

/* What all users of a memory share, as long as it exists. */
typedef struct dp_redis_memory {
    uint8_t epoch[8];   /* its name: chosen at random when it was made */
    uint64_t secret[2]; /* outsiders cannot know which places share a bucket */
    dp_order order;     /* of the bits of fingerprints */
    dp_redis_plan plan;
} dp_redis_memory;

/* A place is a hash, never 0, of what is looked up. Its top bits and its class, the lowest two bits, name the bucket, a
 * Redis hash; its last bytes the field in it; the bits between them are 0. The class says what the value is made of.
 * Names that share a place by chance only cost a look at a document: what is found is compared. */
typedef enum dp_redis_class {
    DP_REDIS_NUMBERS,      /* number (5), hours (3) */
    DP_REDIS_FINGERPRINTS, /* number (5), hours (3), fingerprint in the secret order */
    DP_REDIS_SEGMENTS      /* place of a title (8), hours (3), length (2), bag (8) */
} dp_redis_class;
enum { DP_REDIS_FIELD = 3, DP_REDIS_NUMBER = 5, DP_REDIS_ENTRY = 8, DP_REDIS_SEGMENT = 21 };
/* Times in 3 bytes are hours, rounded up; what never expires has the highest. Seconds have 5 bytes. */
enum { DP_REDIS_NEVER_HOURS = 0xFFFFFF };
#define DP_REDIS_NEVER (((uint64_t)1 << 40) - 1)
/* Queries at most that are decided at once; a memory that others change has fewer (redis_commit.c). */
enum { DP_REDIS_MOST_QUERIES = 128 };

static inline dp_redis_class dp_redis_class_of(uint64_t place) {
    return (dp_redis_class)(place & 3);
}
size_t dp_redis_entry_size(const dp_redis_plan *plan, dp_redis_class class);

/* Requested places; failed: out of memory. */
typedef struct dp_redis_places {
    uint64_t *place;
    size_t count, room;
    bool failed;
} dp_redis_places;

/* Of a name: kind 'i' for an id, 'u' for a canonical URL, 'g' for a digest, 't' for a normalised title. */
uint64_t dp_redis_name_place(const dp_redis_memory *memory, char kind, doppel_slice name);
void dp_redis_add_place(dp_redis_places *places, uint64_t place);
void dp_redis_add_bands(const dp_redis_memory *memory, const uint32_t *keys, size_t count, dp_redis_places *places);
/* The places of a fingerprint; with `near`, also those where others within the distance may be. */
void dp_redis_add_fingerprint(const dp_redis_memory *memory, const uint64_t fingerprint[2], bool near,
                              dp_redis_places *places);
dp_bits dp_redis_order(const dp_redis_memory *memory, const uint64_t fingerprint[2]);

/* A title as it is compared before it is fetched: of two titles within distance d the lengths differ by at most d, and
 * the bags in at most 2 d bits. */
typedef struct dp_redis_title {
    size_t length; /* code points, at most 65535 */
    uint64_t bag;
} dp_redis_title;
/* The segments of a title, where it is found; with `near`, those that similar ones may have. */
void dp_redis_add_segments(const dp_redis_memory *memory, doppel_slice title, bool near, dp_redis_places *places);
/* False: no memory. */
bool dp_redis_read_title(doppel_slice title, dp_redis_title *read);
bool dp_redis_title_near(const dp_redis_title *a, const dp_redis_title *b, double similarity);

/* ---- bytes: highest first ---- */

static inline uint8_t *dp_bytes_store(uint8_t *to, uint64_t number, size_t bytes) {
    for (size_t i = bytes; i-- > 0; number >>= 8)
        to[i] = (uint8_t)number;
    return to + bytes;
}
static inline uint64_t dp_bytes_load(const void *from, size_t bytes) {
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | ((const uint8_t *)from)[i];
    return number;
}

/* ---- the memory: redis.c ---- */

typedef struct dp_redis {
    dp_known known; /* first member: the engine's handle */
    dp_redis_url url;
    dp_redis_pool *pool;
    char *settings;
    char *prefix; /* of all keys, e.g. "{doppel}" */
    size_t prefix_length;
    pthread_mutex_t mutex;
    dp_redis_memory memory; /* under the mutex */
    uint64_t latest;        /* when the last document known to exist expires, seconds; under the mutex */
    _Atomic uint64_t now;   /* the latest that the caller's clock said */
    _Atomic size_t chunk;   /* queries that are decided at once: fewer where others change what they rest on */
    _Atomic int alone;      /* turns in a row in which no other process had committed (redis_commit.c) */
    _Atomic uint64_t retries, turns;
} dp_redis;

/* For the table of the kind; see known.h. */
doppel_status dp_redis_open(const char *path, const dp_known_options *options, dp_known **known, doppel_error *error);
void dp_redis_close(dp_known *known);
doppel_status dp_redis_prepare_servers(const char *url,
                                       void (*server)(const char *server, const char *library, const char *state,
                                                      void *user),
                                       void *user, doppel_error *error);
void dp_redis_get_stats(dp_known *known, doppel_engine_stats *stats);

/* A copy of what the memory is like now. */
dp_redis_memory dp_redis_get_memory(dp_redis *redis);
/* The memory was replaced or is gone: finds out which, and recreates it if allowed. */
doppel_status dp_redis_renew(dp_redis *redis, doppel_error *error);
/* An error that a command gave, or a malformed reply, as an error. */
doppel_status dp_redis_fail(const dp_redis *redis, const redisReply *reply, doppel_error *error);
/* Documents and copies that have not expired, by the fields of the meta key; with the duplicates that were counted. */
typedef struct dp_redis_totals {
    uint64_t documents, copies, last;
    dp_counts counts;
} dp_redis_totals;
void dp_redis_read_totals(const redisReply *fields, uint64_t now, dp_redis_totals *totals);

/* ---- commands ---- */

/* An empty batch with the prefix of the keys. */
dp_redis_batch dp_redis_batch_of(const dp_redis *redis);
/* Begins the call of a function of ours, with the meta key. */
void dp_redis_call_begin(dp_redis_batch *batch, const char *function);
/* The key of a place's bucket, and its field in it. */
void dp_redis_put_bucket(dp_redis_batch *batch, uint64_t place, const dp_redis_plan *plan);
void dp_redis_put_field(dp_redis_batch *batch, uint64_t place);

/* ---- looks: redis_look.c ---- */

typedef struct dp_redis_place {
    uint64_t hash;
    doppel_slice base;  /* as it is in Redis */
    doppel_slice value; /* with what is queued */
    uint64_t goes;      /* when its bucket expires, seconds; 0: there is no bucket yet; UINT64_MAX: never */
    uint64_t needs;     /* when the last of what is queued for it expires; UINT64_MAX: never */
    bool fetched;
    bool shortened; /* something was removed from it: the rest may expire earlier */
} dp_redis_place;

typedef struct dp_redis_document {
    uint64_t number;
    doppel_slice part[DP_PARTS];
    dp_trace trace;
    bool fetched, there;
    bool damaged;           /* its bytes are not what doppel wrote; it is treated as absent */
    bool queued;            /* it is new */
    bool removed;           /* its removal is queued */
    size_t links;           /* bytes of its list of copies and texts, if it is to be removed */
    bool counted;           /* `counts` was fetched */
    dp_counts counts;       /* as they are in Redis */
    uint64_t queued_titles; /* duplicates by their title that are queued for it */
} dp_redis_document;

/* What to undo when the queue is rolled back: a place's value, or a change of a document. */
typedef struct dp_redis_undo {
    bool is_place;
    uint32_t position;
    doppel_slice value;
    bool queued, removed;
    uint64_t queued_titles;
} dp_redis_undo;

typedef struct dp_redis_pending {
    dp_pending pending;
    size_t undo; /* how many there were before it */
} dp_redis_pending;

/* What a look has of the memory. */
typedef struct dp_redis_look {
    dp_look *look; /* whose it is */
    dp_redis *redis;
    dp_redis_link *link;    /* from begin to end */
    dp_redis_memory memory; /* that everything below is of */
    bool greeted;           /* the time and the stamp were read */
    bool absent;            /* the memory does not exist, and may not be created */
    bool renewed;           /* the memory was replaced after something was decided: the decision does not stand */
    uint8_t stamp[16];      /* of the last commit by any process before everything that was fetched */
    size_t stamp_length;
    uint64_t made;                /* when the memory was, seconds */
    uint64_t next, end;           /* numbers that are reserved for this look */
    const dp_query *const *query; /* fetched for these; the caller's, until they stand */
    size_t query_count;
    dp_arena arena;
    size_t arena_bytes;
    dp_redis_place *place;
    size_t place_count, place_room;
    dp_hashmap places; /* from hashes to positions, from 1 on */
    dp_redis_document *document;
    size_t document_count, document_room;
    dp_hashmap documents; /* from numbers to positions, from 1 on */
    dp_redis_pending *pending;
    size_t pending_count, pending_room;
    dp_redis_undo *undo;
    size_t undo_count, undo_room;
    uint64_t (*fingerprint)[2]; /* that were looked for */
    size_t fingerprint_count, fingerprint_room;
    dp_redis_places asked;
    dp_numbers wanted;
    dp_redis_totals totals;
    bool has_totals;
    bool missed;          /* a document that a place led to was gone */
    int rounds;           /* how often what is being committed was decided again */
    int missed_rounds;    /* looks in a row before this one that missed one */
    bool has_turn;        /* others wait for this look's commit */
    doppel_status failed; /* the queue was lost, for this reason */
    doppel_error why;
} dp_redis_look;

static inline bool dp_redis_is_string(const redisReply *reply) {
    return reply->type == REDIS_REPLY_STRING;
}

static inline dp_redis_look *dp_redis_look_of(const dp_look *look) {
    return look->own;
}

/* A batch of a look. Send: *changed: the memory was replaced; data of the old one is dropped. */
dp_redis_batch dp_redis_look_batch(const dp_redis_look *l);
doppel_status dp_redis_look_send(dp_redis_look *l, dp_redis_batch *batch, bool *changed, doppel_error *error);
/* Fetches the places that `add` names, once more if the memory is another one. They are in l->asked then. */
/* Fetches those of l->asked not fetched yet. */
doppel_status dp_redis_fetch_places(dp_redis_look *l, bool *changed, doppel_error *error);
/* Fetches the documents of these numbers that are not yet. DOPPEL_ERROR_STORE if one of them is damaged; prefetched
 * ones are not checked. */
doppel_status dp_redis_prefetch_documents(dp_redis_look *l, const uint64_t *numbers, size_t count, doppel_error *error);
doppel_status dp_redis_fetch_documents(dp_redis_look *l, const uint64_t *numbers, size_t count, doppel_error *error);
/* A place that was fetched; and a document, which is fetched if it has to be. */
dp_redis_place *dp_redis_find_place(dp_redis_look *l, uint64_t hash);
doppel_status dp_redis_find_document(dp_redis_look *l, uint64_t number, dp_redis_document **document,
                                     doppel_error *error);
/* One that was fetched or queued; NULL: it was not. */
dp_redis_document *dp_redis_known_document(dp_redis_look *l, uint64_t number);
/* A new document. NULL: out of memory. */
dp_redis_document *dp_redis_add_document(dp_redis_look *l, uint64_t number);
/* The bytes of a document begin with the format and these flags. */
enum { DP_REDIS_FORMAT = 2, DP_REDIS_ID_IS_URL = 1, DP_REDIS_SAME_URL = 2 };
/* The parts of a document, whose number is set, from its bytes; false: they are not what doppel wrote, or there is no
 * memory. */
bool dp_redis_document_read(doppel_slice bytes, dp_arena *arena, dp_redis_document *document);
/* Forgets all that was fetched. Nothing is queued. */
void dp_redis_look_reset(dp_redis_look *l);

/* Fetches what l->query will ask for. */
doppel_status dp_redis_fetch_queries(dp_redis_look *l, doppel_error *error);
/* The copies and texts of a document, ascending, with their documents; *listed: the bytes of its list of them. */
doppel_status dp_redis_fetch_links(dp_redis_look *l, uint64_t number, dp_numbers *numbers, size_t *listed,
                                   doppel_error *error);

/* ---- changes: redis_commit.c ---- */

doppel_status dp_redis_number(dp_look *look, uint64_t *number, doppel_error *error);
doppel_status dp_redis_queue(dp_look *look, const dp_pending *pending, doppel_error *error);
size_t dp_redis_mark(const dp_look *look);
void dp_redis_back(dp_look *look, size_t mark);
doppel_status dp_redis_commit(dp_look *look, bool *stands, doppel_error *error);
/* Others do not commit until the turn ends, or for a second. The look has greeted the memory. */
doppel_status dp_redis_take_turn(dp_redis_look *l, doppel_error *error);
void dp_redis_leave_turn(dp_redis_look *l);
/* The places where a document, copy or text is found. */
void dp_redis_trace_places(const dp_redis_memory *memory, const dp_redis_document *document, dp_redis_places *places);

/* ---- all of it: redis_check.c ---- */

doppel_status dp_redis_each(dp_look *look, const dp_each *each, doppel_error *error);
doppel_status dp_redis_each_count(dp_look *look,
                                  doppel_status (*counted)(uint64_t number, const dp_counts *counts, void *user),
                                  void *user, doppel_error *error);
doppel_status dp_redis_inspect(dp_known *known, void (*finding)(const char *what, void *user), void *user,
                               doppel_verified *verified, doppel_error *error);
doppel_status dp_redis_compact(dp_known *known, doppel_error *error);

#endif
