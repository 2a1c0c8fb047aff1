/* planted.c - random fingerprints with near-copies among them, by position. */
#include "planted.h"

#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    COPY_EVERY = 100,
    QUERY_EVERY = 10,
    GROUPED_EVERY = 20,
    GROUPS = 3000,
    CHUNK = 1 << 16, /* fingerprints a write */
};
enum { SET_SEED = 1, QUERY_SEED = 2, GROUP_SEED = 3 };

/* A well mixed number for each (seed, position): the finaliser of MurmurHash3, on a sequence of odd steps. */
static uint64_t mixed(uint64_t seed, uint64_t position) {
    uint64_t x = (position + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1b54a32d192ed03u;
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* Flips 0 to 3 bits, as the random number says; two of them may be the same one. */
static uint64_t nudged(uint64_t value, uint64_t random) {
    for (unsigned flips = random & 3; flips; flips--) {
        random >>= 8;
        value ^= (uint64_t)1 << (random & 63);
    }
    return value;
}

static uint64_t original(uint64_t below, uint64_t random) {
    uint64_t position = random % below;
    return position % COPY_EVERY == COPY_EVERY - 1 ? position - 1 : position;
}

uint64_t planted_at(uint64_t position) {
    uint64_t random = mixed(SET_SEED, position);
    if (position % COPY_EVERY != COPY_EVERY - 1)
        return random;
    return nudged(mixed(SET_SEED, original(position, random >> 32)), random);
}

uint64_t planted_query(uint64_t number, uint64_t count) {
    uint64_t random = mixed(QUERY_SEED, number);
    return number % QUERY_EVERY || !count ? random : nudged(planted_at((random >> 32) % count), random);
}

static uint64_t grouped_at(uint64_t position, planted_kind kind) {
    if (position % GROUPED_EVERY)
        return planted_at(position);
    uint64_t random = mixed(GROUP_SEED, position), middle = mixed(GROUP_SEED, ~((random >> 32) % GROUPS));
    return kind == PLANTED_NEAR ? nudged(middle, random) : middle;
}

planted_kind planted_kind_named(const char *name) {
    static const char *const names[] = {"few", "same", "near"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) == 0)
            return (planted_kind)i;
    }
    bench_fail("no such kind of set: few, same, near", name);
}

void planted_fill(uint64_t *to, uint64_t first, size_t count, planted_kind kind) {
    for (size_t i = 0; i < count; i++)
        to[i] = kind == PLANTED_FEW ? planted_at(first + i) : grouped_at(first + i, kind);
}

uint64_t *planted_array(uint64_t count, planted_kind kind) {
    uint64_t *array = malloc(count * sizeof *array);
    if (!array)
        bench_fail("no memory", "fingerprints");
    planted_fill(array, 0, count, kind);
    return array;
}

/* A raw file of the set (`of` 0) or of queries against the first `of` entries of it. */
static void write_raw(const char *path, uint64_t count, uint64_t of) {
    static uint64_t chunk[CHUNK];
    struct stat there;
    if (stat(path, &there) == 0 && (uint64_t)there.st_size == count * sizeof *chunk)
        return;
    FILE *file = fopen(path, "wb");
    if (!file)
        bench_fail("cannot be written", path);
    for (uint64_t done = 0; done < count;) {
        size_t now = count - done < CHUNK ? (size_t)(count - done) : CHUNK;
        for (size_t i = 0; i < now; i++)
            chunk[i] = of ? planted_query(done + i, of) : planted_at(done + i);
        if (fwrite(chunk, sizeof *chunk, now, file) != now)
            bench_fail("cannot be written", path);
        done += now;
    }
    if (fclose(file) != 0)
        bench_fail("cannot be written", path);
}

void planted_write(const char *path, uint64_t count) {
    write_raw(path, count, 0);
}

void planted_write_queries(const char *path, uint64_t queries, uint64_t count) {
    write_raw(path, queries, count);
}
