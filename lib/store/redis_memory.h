/* redis_memory.h - a shared memory in Redis, from this side: what it is like (redis_shared.c), its plan (redis_plan.c),
 * requests as arguments (redis_request.c), documents as bytes (redis_codec.c). The functions that run inside Redis are
 * lib/store/redis/; docs/FORMAT.md has the keys and bytes that both agree on. */
#ifndef DP_REDIS_MEMORY_H
#define DP_REDIS_MEMORY_H

#include "index/index.h"
#include "store/redis_link.h"
#include "store/store.h"

#include <pthread.h>

/* The text of the functions and their name; made by the build. */
extern const char dp_redis_library[];
extern const char dp_redis_library_name[];

/* ---- the plan: redis_plan.c ---- */

enum { DP_REDIS_TABLES = 32 };

/* Tables of fingerprints: their keys share no bit, and the sum of (radius + 1) is above the distance, so that whoever
 * is within it has a key within the radius in one of them. */
typedef struct dp_redis_plan {
    char name[32];
    int bits, distance, tables;
    struct {
        int from, width, radius; /* bits from the top; so many are the key */
    } table[DP_REDIS_TABLES];
    int name_bits;  /* of the number of a bucket of names */
    int title_bits; /* of the number of a bucket of segments of titles; 0: titles are no evidence */
    double title_similarity;
} dp_redis_plan;

/* The cheapest for so many documents; 0: a million. */
void dp_redis_plan_make(uint64_t count, const dp_rules *rules, dp_redis_plan *plan);
/* As bytes, for the functions, and back; false: nobody would have planned this. */
enum { DP_REDIS_GEOMETRY = 15 + 3 * DP_REDIS_TABLES };
size_t dp_redis_plan_encode(const dp_redis_plan *plan, uint8_t bytes[DP_REDIS_GEOMETRY]);
bool dp_redis_plan_decode(doppel_slice bytes, int bits, dp_redis_plan *plan);
/* Bytes of a fingerprint, of a key of a table, of the number of a bucket of names. */
size_t dp_redis_plan_width(const dp_redis_plan *plan);
size_t dp_redis_plan_key_bytes(const dp_redis_plan *plan);
size_t dp_redis_plan_name_bytes(const dp_redis_plan *plan);
/* How many keys are looked at besides those where a document itself stands. */
size_t dp_redis_plan_probes(const dp_redis_plan *plan);

/* ---- memory that goes all at once: redis_arena.c ---- */

typedef struct dp_arena {
    struct dp_arena_block *block;
} dp_arena;
/* On a multiple of 16; NULL: there is none. */
void *dp_arena_take(dp_arena *arena, size_t length);
void dp_arena_free(dp_arena *arena);

/* ---- a memory ---- */

/* What is the same for all who use it, as long as it lives. */
typedef struct dp_redis_memory {
    uint8_t epoch[8]; /* its name: chosen by chance when it was made */
    uint8_t seed[8];  /* nobody else knows which names share a bucket */
    dp_order order;
    dp_redis_plan plan;
} dp_redis_memory;

struct dp_shared {
    dp_redis_url url;
    dp_redis_pool *pool;
    dp_shared_options options;
    char *settings;
    char *meta; /* the meta key */
    size_t meta_length;
    pthread_mutex_t mutex;
    dp_redis_memory memory; /* under the mutex */
    uint64_t latest;        /* when the last of what is known to be there expires, seconds; under the mutex */
};

/* A copy of what the memory is like now. */
dp_redis_memory dp_shared_memory(dp_shared *shared);
/* Somebody else's memory is there, or none: finds out, and makes it anew where it may. */
doppel_status dp_shared_renew(dp_shared *shared, doppel_error *error);
/* Notes that something was added, or that all is gone. */
void dp_shared_note_added(dp_shared *shared, uint64_t expires_in);
void dp_shared_note_emptied(dp_shared *shared);
/* An error of a function as an error. */
doppel_status dp_shared_fail(const dp_shared *shared, const redisReply *reply, doppel_error *error);
bool dp_shared_is_another(const redisReply *reply);

/* ---- commands: redis_request.c ---- */

/* Arguments that are being put together; failed: there was no memory. */
enum { DP_REDIS_ARGUMENTS = 32 };
typedef struct dp_redis_writer {
    dp_arena *arena;
    const dp_redis_memory *memory;
    dp_redis_command command;
    bool failed;
} dp_redis_writer;

/* Begins a call of a function of the library. */
void dp_redis_begin(dp_redis_writer *w, const dp_shared *shared, const char *function, bool reads);
void dp_redis_put(dp_redis_writer *w, const void *bytes, size_t length); /* borrowed */
void dp_redis_put_number(dp_redis_writer *w, uint64_t number);           /* in digits */
/* Where a name is looked up: kind 'n', ids and URLs, or 'g', digests. An empty name has no place. */
void dp_redis_put_place(dp_redis_writer *w, char kind, doppel_slice name);
/* A fingerprint in the secret order, and the keys it has in the tables; or those that are near. */
void dp_redis_put_fingerprint(dp_redis_writer *w, const uint64_t fingerprint[2]);
void dp_redis_put_homes(dp_redis_writer *w, const uint64_t fingerprint[2]);
void dp_redis_put_probes(dp_redis_writer *w, const uint64_t fingerprint[2]);
void dp_redis_put_homes_and_probes(dp_redis_writer *w, const uint64_t fingerprint[2]);

/* redis_titles.c: the place of a normalised title, those of its segments, and those that similar ones may have; three
 * arguments, empty where titles are no evidence. */
void dp_redis_put_title(dp_redis_writer *w, doppel_slice title);

/* A request; `link` gives it its number. */
void dp_redis_put_request(dp_redis_writer *w, const dp_shared *shared, const dp_shared_request *request,
                          dp_redis_link *link);

/* ---- documents: redis_codec.c ---- */

/* What the functions do not look at. */
bool dp_redis_rest_encode(const dp_shared_request *request, dp_buffer *to);

typedef struct dp_redis_document {
    dp_trace trace; /* of a copy, too, with its title */
    dp_record record;
    dp_counts counts;
    bool has_text, has_evidence;
} dp_redis_document;
/* Slices point into the bytes, or into the arena. DOPPEL_ERROR_STORE: nobody of us wrote this. */
doppel_status dp_redis_document_decode(const dp_redis_memory *memory, uint64_t number, doppel_slice bytes,
                                       dp_arena *arena, dp_redis_document *document);
/* What is measured on a document and its original. */
doppel_status dp_redis_measure(const dp_redis_document *document, const dp_redis_document *original, dp_reason reason,
                               doppel_evidence *evidence);

/* Flags of documents. */
enum dp_redis_flag {
    DP_REDIS_CONTENT = 1,
    DP_REDIS_DIGEST = 2,
    DP_REDIS_SAME_ID = 4,
    DP_REDIS_NO_URL = 8,
    DP_REDIS_REPLACED = 16,
    DP_REDIS_TEXT = 32,
    DP_REDIS_EVIDENCE = 64
};

#endif
