/* redis_request.c - requests as the arguments of functions inside Redis. Numbers stand with their highest byte first.
 */
#include "store/redis_memory.h"

#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>

/* Times and numbers have 5 bytes there; the highest stands for a time that never comes. */
#define MOST (((uint64_t)1 << 40) - 1)

/* ---- arguments ---- */

static void *take(dp_redis_writer *w, size_t length) {
    void *bytes = dp_arena_take(w->arena, length);
    w->failed = w->failed || !bytes;
    return bytes;
}

void dp_redis_put(dp_redis_writer *w, const void *bytes, size_t length) {
    dp_redis_command *c = &w->command;
    if (w->failed)
        return;
    c->argv[c->argc] = length ? bytes : "";
    c->lengths[c->argc++] = length;
}

static void put_slice(dp_redis_writer *w, doppel_slice slice) {
    dp_redis_put(w, slice.data, slice.data ? slice.length : 0);
}

void dp_redis_put_number(dp_redis_writer *w, uint64_t number) {
    char *digits = take(w, 24);
    if (digits)
        dp_redis_put(w, digits, (size_t)snprintf(digits, 24, "%" PRIu64, number));
}

void dp_redis_begin(dp_redis_writer *w, const dp_shared *shared, const char *function, bool reads) {
    w->command = (dp_redis_command){.argv = take(w, DP_REDIS_ARGUMENTS * sizeof(char *)),
                                    .lengths = take(w, DP_REDIS_ARGUMENTS * sizeof(size_t))};
    char *name = take(w, 64);
    if (w->failed)
        return;
    int length = snprintf(name, 64, "%s_%s", dp_redis_library_name, function);
    dp_redis_put(w, reads ? "FCALL_RO" : "FCALL", reads ? 8 : 5);
    dp_redis_put(w, name, (size_t)length);
    dp_redis_put(w, "1", 1);
    dp_redis_put(w, shared->meta, shared->meta_length);
}

static uint8_t *write_number(uint8_t *to, uint64_t number, size_t bytes) {
    for (size_t i = bytes; i-- > 0; number >>= 8)
        to[i] = (uint8_t)number;
    return to + bytes;
}

void dp_redis_put_place(dp_redis_writer *w, char kind, doppel_slice name) {
    const dp_redis_memory *m = w->memory;
    uint8_t hash[SHA_DIGEST_LENGTH], *text = NULL, *place = take(w, 16);
    if (!name.length) {
        dp_redis_put(w, NULL, 0);
        return;
    }
    text = take(w, sizeof m->seed + 1 + name.length);
    if (w->failed)
        return;
    memcpy(text, m->seed, sizeof m->seed);
    text[sizeof m->seed] = (uint8_t)kind;
    memcpy(text + sizeof m->seed + 1, name.data, name.length);
    SHA1(text, sizeof m->seed + 1 + name.length, hash);
    uint64_t bucket = __builtin_bswap64(dp_load64(hash)) >> (64 - m->plan.name_bits);
    uint8_t *end = write_number(place, bucket, dp_redis_plan_name_bytes(&m->plan));
    memcpy(end, hash + 4, 4);
    dp_redis_put(w, place, (size_t)(end - place) + 4);
}

/* ---- fingerprints ---- */

static dp_bits ordered(const dp_redis_memory *memory, const uint64_t fingerprint[2]) {
    return dp_order_apply(&memory->order, dp_bits_load(fingerprint, memory->plan.bits));
}

void dp_redis_put_fingerprint(dp_redis_writer *w, const uint64_t fingerprint[2]) {
    size_t width = dp_redis_plan_width(&w->memory->plan);
    uint8_t *bytes = take(w, width);
    dp_bits value = ordered(w->memory, fingerprint);
    for (size_t i = width; bytes && i-- > 0; value >>= 8)
        bytes[i] = (uint8_t)value;
    dp_redis_put(w, bytes, width);
}

/* Keys of tables, one after the other: the table's number, then the key. */
typedef struct key_list {
    uint8_t *at;
    size_t bytes; /* of a key */
    int table, width;
} key_list;

static void add_key(key_list *list, uint64_t key) {
    *list->at++ = (uint8_t)list->table;
    list->at = write_number(list->at, key, list->bytes);
}

/* Adds all keys that differ from this one in 1 to `radius` of the bits below `below`. */
static void add_flipped(key_list *list, uint64_t key, int below, int radius) {
    for (int bit = 0; radius > 0 && bit < below; bit++) {
        uint64_t flipped = key ^ (uint64_t)1 << bit;
        add_key(list, flipped);
        add_flipped(list, flipped, bit, radius - 1);
    }
}

static uint64_t key_of(const dp_redis_plan *plan, int table, dp_bits value) {
    int shift = (int)dp_redis_plan_width(plan) * 8 - plan->table[table].from - plan->table[table].width;
    return (uint64_t)(value >> shift) & (((uint64_t)1 << plan->table[table].width) - 1);
}

static void put_keys(dp_redis_writer *w, const uint64_t fingerprint[2], bool homes, bool probes) {
    const dp_redis_plan *plan = &w->memory->plan;
    size_t bytes = dp_redis_plan_key_bytes(plan);
    size_t count = (homes ? (size_t)plan->tables : 0) + (probes ? dp_redis_plan_probes(plan) : 0);
    uint8_t *start = take(w, count * (bytes + 1));
    key_list list = {.at = start, .bytes = bytes};
    dp_bits value = ordered(w->memory, fingerprint);
    for (int pass = 0; pass < 2 && start; pass++) {
        for (int t = 0; t < plan->tables; t++) {
            list.table = t;
            if (pass == 0 && homes)
                add_key(&list, key_of(plan, t, value));
            if (pass == 1 && probes)
                add_flipped(&list, key_of(plan, t, value), plan->table[t].width, plan->table[t].radius);
        }
    }
    dp_redis_put(w, start, count * (bytes + 1));
}

void dp_redis_put_homes(dp_redis_writer *w, const uint64_t fingerprint[2]) {
    put_keys(w, fingerprint, true, false);
}

void dp_redis_put_probes(dp_redis_writer *w, const uint64_t fingerprint[2]) {
    put_keys(w, fingerprint, false, true);
}

void dp_redis_put_homes_and_probes(dp_redis_writer *w, const uint64_t fingerprint[2]) {
    put_keys(w, fingerprint, true, true);
}

/* ---- requests ---- */

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static bool has_digest(const dp_trace *trace) {
    static const uint8_t none[32];
    return memcmp(trace->digest, none, sizeof none) != 0;
}

static bool is_same(doppel_slice a, doppel_slice b) {
    return a.length == b.length && a.length && !memcmp(a.data, b.data, a.length);
}

static unsigned document_flags(const dp_shared_request *r) {
    bool evidence = r->op == DP_SHARED_RESTORE && r->record.reason;
    return (r->trace.content ? DP_REDIS_CONTENT : 0U) | (has_digest(&r->trace) ? DP_REDIS_DIGEST : 0U) |
           (is_same(r->record.id, r->record.canonical) ? DP_REDIS_SAME_ID : 0U) | (evidence ? DP_REDIS_EVIDENCE : 0U);
}

/* What has a fixed size: 5_find.lua reads it. */
static void put_head(dp_redis_writer *w, const dp_shared_request *r, const uint8_t token[8]) {
    uint8_t *start = take(w, 64), *at = start;
    uint64_t share;
    if (!start)
        return;
    memcpy(&share, &r->title_share, sizeof share);
    *at++ = (uint8_t)r->op;
    *at++ = (uint8_t)(r->id_given | r->refresh << 1 | (r->record.origin.data != NULL) << 2);
    *at++ = (uint8_t)r->on_duplicate;
    *at++ = r->op == DP_SHARED_RESTORE ? r->record.reason : 0;
    *at++ = (uint8_t)document_flags(r);
    at = write_number(at, least(r->now, MOST), 5);
    at = write_number(at, r->ttl < MOST / 2 ? r->ttl : MOST, 5);
    at = write_number(at, least(r->trace.added, MOST), 5);
    at = write_number(at, least(r->trace.expires, MOST), 5);
    at = write_number(at, share, 8);
    memcpy(at, token, 8);
    dp_redis_put(w, start, (size_t)(at - start) + 8);
}

/* The number of a request, and the token that what it adds carries. */
static void put_sender(dp_redis_writer *w, dp_redis_link *link, uint8_t token[8]) {
    uint8_t *bytes = take(w, 16);
    if (!bytes)
        return;
    uint64_t number = dp_redis_link_next(link);
    memcpy(bytes, dp_redis_link_name(link), 8);
    write_number(bytes + 8, number, 8);
    w->command.again = w->command.argc;
    dp_redis_put(w, "0", 1);
    dp_redis_put(w, bytes, 8);
    dp_redis_put(w, bytes + 8, 8);
    dp_redis_put(w, w->memory->epoch, 8);
    /* Names are by chance and numbers differ: the sum is as good as a name of its own. */
    write_number(token, dp_load64(bytes) + number * 0x9E3779B97F4A7C15u, 8);
}

static void put_rest(dp_redis_writer *w, const dp_shared_request *r) {
    dp_buffer rest = {0};
    char *bytes = NULL;
    if (dp_redis_rest_encode(r, &rest) && (bytes = take(w, rest.size)))
        memcpy(bytes, rest.data, rest.size);
    w->failed = w->failed || !bytes;
    dp_redis_put(w, bytes, rest.size);
    dp_buffer_free(&rest);
}

static void put_counts(dp_redis_writer *w, const dp_shared_request *r) {
    uint8_t *start = take(w, 17), *at = start;
    bool restores = r->op == DP_SHARED_RESTORE;
    for (int i = 0; i < 3 && start; i++)
        at = write_number(at, least(r->counts.by[i], UINT32_MAX), 4);
    if (start)
        write_number(at, least(r->counts.last, MOST), 5);
    dp_redis_put(w, start, restores ? 17 : 0);
}

static void put_document(dp_redis_writer *w, const dp_shared_request *r) {
    const dp_record *record = &r->record;
    doppel_slice digest = {(const char *)r->trace.digest, has_digest(&r->trace) ? sizeof r->trace.digest : 0};
    dp_redis_put_place(w, 'n', record->id);
    dp_redis_put_place(w, 'n', record->canonical);
    dp_redis_put_place(w, 'g', digest);
    dp_redis_put_fingerprint(w, r->trace.fingerprint);
    put_slice(w, digest);
    put_slice(w, record->id);
    put_slice(w, record->canonical);
    put_rest(w, r);
    if (r->trace.content) {
        dp_redis_put_homes(w, r->trace.fingerprint);
        dp_redis_put_probes(w, r->trace.fingerprint);
    } else {
        dp_redis_put(w, NULL, 0);
        dp_redis_put(w, NULL, 0);
    }
    put_slice(w, r->text);
    put_slice(w, record->origin);
    put_slice(w, r->trace.title);
    dp_redis_put_title(w, r->trace.title);
    put_counts(w, r);
    put_slice(w, record->original_id);
    dp_redis_put_place(w, 'n', record->original_id);
    while (!w->failed && !w->command.lengths[w->command.argc - 1])
        w->command.argc--;
}

void dp_redis_put_request(dp_redis_writer *w, const dp_shared *shared, const dp_shared_request *request,
                          dp_redis_link *link) {
    uint8_t token[8] = {0};
    if (request->op == DP_SHARED_REMOVE) {
        dp_redis_begin(w, shared, "remove", false);
        put_sender(w, link, token);
        dp_redis_put_number(w, request->now);
        dp_redis_put_place(w, 'n', request->record.id);
        put_slice(w, request->record.id);
        return;
    }
    bool check = request->op == DP_SHARED_CHECK;
    dp_redis_begin(w, shared, check ? "check" : "add", check);
    put_sender(w, link, token);
    if (check)
        w->command.again = 0;
    put_head(w, request, token);
    put_document(w, request);
}
