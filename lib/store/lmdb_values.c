/* lmdb_values.c - values that carry a checksum, and those of the database `meta`. */
#include "store/lmdb.h"

#include <xxhash.h>

static void store64(char *to, uint64_t number) {
    for (int i = 0; i < 8; i++)
        to[i] = (char)(number >> (8 * i));
}

uint64_t dp_value_checksum(uint64_t number, int seed, const void *bytes, size_t length) {
    return XXH3_64bits_withSeed(bytes, length, number * 8 + (uint64_t)seed);
}

static int put(MDB_txn *txn, MDB_dbi db, MDB_val key, uint64_t checksum, doppel_slice bytes, unsigned flags) {
    MDB_val value = {DP_CHECKSUM + bytes.length, NULL};
    int reason = mdb_put(txn, db, &key, &value, flags | MDB_RESERVE);
    if (reason)
        return reason;
    store64(value.mv_data, checksum);
    if (bytes.length)
        memcpy((char *)value.mv_data + DP_CHECKSUM, bytes.data, bytes.length);
    return 0;
}

int dp_value_put(MDB_txn *txn, MDB_dbi db, uint64_t number, int seed, doppel_slice bytes, unsigned flags) {
    return put(txn, db, dp_key(&number), dp_value_checksum(number, seed, bytes.data, bytes.length), bytes, flags);
}

bool dp_value_open(const MDB_val *value, uint64_t number, int seed, doppel_slice *bytes) {
    const char *from = value->mv_data;
    if (value->mv_size < DP_CHECKSUM)
        return false;
    *bytes = (doppel_slice){from + DP_CHECKSUM, value->mv_size - DP_CHECKSUM};
    return dp_value_checksum(number, seed, bytes->data, bytes->length) == dp_load64(from);
}

/* ---- meta ---- */

static const char *meta_name(dp_seed seed) {
    return seed == DP_SEED_SETTINGS    ? "settings"
           : seed == DP_SEED_STATE     ? "state"
           : seed == DP_SEED_SUCCESSOR ? "successor"
           : seed == DP_SEED_SECRET    ? "secret"
                                       : "clock";
}

static MDB_val meta_key(dp_seed seed) {
    const char *name = meta_name(seed);
    return (MDB_val){strlen(name), (void *)(uintptr_t)name};
}

int dp_meta_get(const dp_snapshot *snapshot, dp_seed seed, doppel_slice *bytes) {
    dp_found found;
    dp_guard guard;
    if (DP_GUARD_ENTER(guard))
        return MDB_CORRUPTED;
    int reason = dp_btree_get_text(&snapshot->pages, &snapshot->db[DP_DB_META], meta_name(seed), &found);
    if (!reason && !dp_value_open(&found.value, 0, (int)seed, bytes))
        reason = MDB_CORRUPTED;
    dp_guard_leave(&guard);
    return reason;
}

int dp_meta_put(MDB_txn *txn, const dp_env *env, dp_seed seed, doppel_slice bytes) {
    return put(txn, env->db[DP_DB_META], meta_key(seed), dp_value_checksum(0, (int)seed, bytes.data, bytes.length),
               bytes, 0);
}

/* ---- counts and the state ---- */

void dp_counts_encode(const dp_counts *counts, char bytes[DP_COUNTS_SIZE]) {
    for (int i = 0; i < DP_COUNTERS; i++)
        store64(bytes + 8 * i, counts->by[i]);
    store64(bytes + 24, counts->last);
}

bool dp_counts_decode(doppel_slice bytes, dp_counts *counts) {
    if (bytes.length != DP_COUNTS_SIZE)
        return false;
    for (int i = 0; i < DP_COUNTERS; i++)
        counts->by[i] = dp_load64(bytes.data + 8 * i);
    counts->last = dp_load64(bytes.data + 24);
    return true;
}

enum { STATE_SIZE = 16 + DP_COUNTS_SIZE, CLOCK_SIZE = 40 };

/* What is known of the time of the state; none where that was written without it. */
static void get_clock(const dp_snapshot *snapshot, dp_clock *clock) {
    doppel_slice bytes;
    if (dp_meta_get(snapshot, DP_SEED_CLOCK, &bytes) || bytes.length != CLOCK_SIZE ||
        dp_load64(bytes.data) != clock->time)
        return;
    clock->boot = dp_load64(bytes.data + 8);
    clock->uptime = dp_load64(bytes.data + 16);
    clock->doubted = dp_load64(bytes.data + 24);
    clock->seen = dp_load64(bytes.data + 32);
}

static int put_clock(MDB_txn *txn, const dp_env *env, const dp_clock *clock) {
    const uint64_t numbers[] = {clock->time, clock->boot, clock->uptime, clock->doubted, clock->seen};
    char bytes[CLOCK_SIZE];
    for (int i = 0; i < CLOCK_SIZE / 8; i++)
        store64(bytes + 8 * i, numbers[i]);
    return dp_meta_put(txn, env, DP_SEED_CLOCK, (doppel_slice){bytes, sizeof bytes});
}

int dp_state_get(const dp_snapshot *snapshot, dp_state *state) {
    doppel_slice bytes;
    int reason = dp_meta_get(snapshot, DP_SEED_STATE, &bytes);
    if (reason || bytes.length != STATE_SIZE)
        return reason ? reason : MDB_CORRUPTED;
    state->last = dp_load64(bytes.data);
    state->clock = (dp_clock){.time = dp_load64(bytes.data + 8)};
    get_clock(snapshot, &state->clock);
    dp_counts_decode((doppel_slice){bytes.data + 16, DP_COUNTS_SIZE}, &state->total);
    return 0;
}

int dp_state_put(MDB_txn *txn, const dp_env *env, const dp_state *state) {
    char bytes[STATE_SIZE];
    store64(bytes, state->last);
    store64(bytes + 8, state->clock.time);
    dp_counts_encode(&state->total, bytes + 16);
    int reason = dp_meta_put(txn, env, DP_SEED_STATE, (doppel_slice){bytes, sizeof bytes});
    return reason ? reason : put_clock(txn, env, &state->clock);
}

/* ---- the secret of names ---- */

enum { SECRET_SIZE = 16 };

int dp_names_get(const dp_snapshot *snapshot, dp_names *names) {
    doppel_slice bytes;
    *names = (dp_names){.keyed = false};
    int reason = dp_meta_get(snapshot, DP_SEED_SECRET, &bytes);
    if (reason || bytes.length != SECRET_SIZE)
        return reason ? reason : MDB_CORRUPTED;
    *names = (dp_names){.keyed = true, .secret = {dp_load64(bytes.data), dp_load64(bytes.data + 8)}};
    return 0;
}

int dp_names_put(MDB_txn *txn, const dp_env *env, const dp_names *names) {
    char bytes[SECRET_SIZE];
    store64(bytes, names->secret[0]);
    store64(bytes + 8, names->secret[1]);
    return dp_meta_put(txn, env, DP_SEED_SECRET, (doppel_slice){bytes, sizeof bytes});
}
