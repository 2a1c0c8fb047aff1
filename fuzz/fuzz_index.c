/* fuzz_index.c - the Hamming index from two sides, by the first byte.
 *
 * Bit 0 clear: the rest is a file (bit 1 set: every checksum is made right, so that the checks after them are reached).
 * An index that opens can be validated, searched, walked and changed; calls succeed or return an error. Where validate
 * finds nothing wrong, every entry is found.
 *
 * Bit 0 set: the rest are operations, done on an index and on a plain array; the answers are the same. */
#include "fuzz.h"

#include "../tests/unit/seal.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void one_of(doppel_status status, doppel_status other) {
    CHECK(!status || status == other);
}

/* ---- files ---- */

/* Entries of a forged file may name one list many times: at most this many are read. */
#define MOST 20000

enum { FIRST = 6 };

typedef struct walk {
    doppel_match first[FIRST];
    uint64_t count;
} walk;

static bool come_by(const doppel_match *entry, void *user) {
    walk *w = user;
    if (w->count < FIRST)
        w->first[w->count] = *entry;
    return ++w->count < MOST;
}

static void search(const doppel_index *index, const walk *w, int bits, bool valid) {
    doppel_matches near = {0};
    doppel_error error;
    bool contains;
    for (uint64_t i = 0; i < w->count && i < FIRST; i++) {
        const doppel_match *entry = &w->first[i];
        doppel_status status = doppel_index_contains(index, entry->fingerprint, entry->owner, &contains);
        one_of(status, valid ? DOPPEL_OK : DOPPEL_ERROR_STORE);
        CHECK(!valid || contains);
        for (int distance = 0; distance <= bits; distance = distance * 5 + 1) {
            doppel_find_options options = {.size = sizeof options, .limit = 100};
            status = doppel_index_find(index, entry->fingerprint, distance, &options, &near, &error);
            CHECK(!status || (!valid && status == DOPPEL_ERROR_STORE && error.message[0]));
            CHECK(!valid || (near.count && near.match[0].distance == 0));
        }
    }
    doppel_matches_free(&near);
}

static void change(doppel_index *index, const walk *w) {
    doppel_error error;
    const uint64_t zero[2] = {0, 0};
    one_of(doppel_index_add(index, zero, 1, 5), DOPPEL_ERROR_STORE);
    for (uint64_t i = 0; i < w->count && i < FIRST; i++) {
        one_of(doppel_index_remove(index, w->first[i].fingerprint, w->first[i].owner, NULL), DOPPEL_ERROR_STORE);
        /* A forged file can have bits beyond the width, but they cannot be added. */
        doppel_status status = doppel_index_add(index, w->first[i].fingerprint, i, i % 3);
        CHECK(status == DOPPEL_ERROR_USAGE || !status || status == DOPPEL_ERROR_STORE);
    }
    one_of(doppel_index_expire(index, 1, NULL), DOPPEL_ERROR_STORE);
    one_of(doppel_index_add_batch(index, zero, NULL, NULL, 1), DOPPEL_ERROR_STORE);
    one_of(doppel_index_compact(index, &error), DOPPEL_ERROR_STORE);
    one_of(doppel_index_validate(index, &error), DOPPEL_ERROR_STORE);
}

static void try_file(const uint8_t *data, size_t size) {
    char path[40];
    int file = memfd_create("index", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    CHECK(file >= 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    doppel_index *index;
    doppel_error error;
    doppel_status status = doppel_index_open(path, &index, &error);
    if (status) {
        CHECK(status == DOPPEL_ERROR_STORE && error.message[0] && !index);
    } else {
        doppel_index_stats stats;
        doppel_index_get_stats(index, &stats);
        walk w = {.count = 0};
        doppel_status walked = doppel_index_each(index, come_by, &w);
        bool valid = !doppel_index_validate(index, &error);
        CHECK(valid ? !walked || w.count >= MOST : error.message[0]);
        CHECK(!valid || w.count == stats.entries || w.count >= MOST);
        search(index, &w, stats.bits, valid);
        change(index, &w);
    }
    doppel_index_free(index);
    close(file);
}

/* ---- operations ---- */

enum { ROOM = 512, LONGEST = 600 };

typedef struct plain {
    doppel_match entry[ROOM];
    size_t count;
} plain;

typedef struct script {
    const uint8_t *at, *end;
    int bits;
} script;

static unsigned next_byte(script *s) {
    return s->at < s->end ? *s->at++ : 0;
}

/* Numbers that differ in few bits: two bits of four places. */
static doppel_match next_entry(script *s) {
    unsigned a = next_byte(s), b = next_byte(s);
    doppel_match entry = {.owner = b >> 4 & 3, .expires = b >> 6};
    unsigned bits[4] = {a & 15, a >> 4, b & 15, 63};
    for (int i = 0; i < 4; i++) {
        unsigned place = bits[i] * 37 % (unsigned)s->bits;
        entry.fingerprint[place / 64] |= (uint64_t)1 << place % 64;
    }
    return entry;
}

static int apart(const doppel_match *a, const doppel_match *b) {
    return __builtin_popcountll(a->fingerprint[0] ^ b->fingerprint[0]) +
           __builtin_popcountll(a->fingerprint[1] ^ b->fingerprint[1]);
}

static doppel_match *plain_find(plain *p, const doppel_match *entry) {
    for (size_t i = 0; i < p->count; i++)
        if (p->entry[i].owner == entry->owner && !apart(&p->entry[i], entry))
            return &p->entry[i];
    return NULL;
}

static void insert(doppel_index *index, plain *p, const doppel_match *entry) {
    doppel_match *there = plain_find(p, entry);
    if (!there && p->count == ROOM)
        return;
    CHECK(!doppel_index_add(index, entry->fingerprint, entry->owner, entry->expires));
    if (!there)
        there = &p->entry[p->count++];
    *there = *entry;
}

static void take_out(doppel_index *index, plain *p, const doppel_match *entry) {
    doppel_match *there = plain_find(p, entry);
    bool removed, contains;
    CHECK(!doppel_index_contains(index, entry->fingerprint, entry->owner, &contains) && contains == (there != NULL));
    CHECK(!doppel_index_remove(index, entry->fingerprint, entry->owner, &removed) && removed == (there != NULL));
    if (there)
        *there = p->entry[--p->count];
}

static void find(const doppel_index *index, plain *p, const doppel_match *query, int distance) {
    doppel_matches near = {0};
    size_t want = 0;
    CHECK(!doppel_index_find(index, query->fingerprint, distance, NULL, &near, NULL));
    for (size_t i = 0; i < p->count; i++)
        want += apart(&p->entry[i], query) <= distance;
    CHECK(near.count == want);
    for (size_t i = 0; i < near.count; i++) {
        const doppel_match *match = &near.match[i], *there = plain_find(p, match);
        CHECK(there && there->expires == match->expires && match->distance == apart(match, query));
        CHECK(match->distance <= distance && (!i || near.match[i - 1].distance <= match->distance));
    }
    doppel_matches_free(&near);
}

static void purge(doppel_index *index, plain *p, uint64_t now) {
    uint64_t purged, want = 0;
    CHECK(!doppel_index_expire(index, now, &purged));
    for (size_t i = 0; i < p->count;)
        if (p->entry[i].expires && p->entry[i].expires <= now) {
            p->entry[i] = p->entry[--p->count];
            want++;
        } else {
            i++;
        }
    CHECK(purged == want);
}

static doppel_index *reopen(doppel_index *index) {
    /* In memory, where there is such a folder: saving syncs. */
    static const char *const folders[] = {"/tmp", "/dev/shm"};
    char path[60];
    doppel_error error;
    snprintf(path, sizeof path, "%s/doppel-fuzz.%ld.index", folders[!access(folders[1], W_OK)], (long)getpid());
    CHECK(!doppel_index_save(index, path, &error));
    doppel_index_free(index);
    CHECK(!doppel_index_open(path, &index, &error));
    CHECK(!doppel_index_validate(index, &error));
    unlink(path);
    return index;
}

static void run_script(script *s) {
    static const int widths[] = {64, 128, 16, 40, 5, 64, 128, 63};
    static const char *const layouts[] = {NULL, "5x7", "2x3", "3x6", "1x2", "4x8", "6c2x9", "scan"};
    unsigned shape = next_byte(s) % 8;
    s->bits = widths[shape];
    doppel_index_options options = {
        .size = sizeof options, .bits = s->bits, .distance = 2, .layout = layouts[shape], .secret = 1 + next_byte(s)};
    doppel_index *index;
    doppel_error error;
    CHECK(!doppel_index_create(&options, &index, &error));
    static plain p;
    p.count = 0;
    for (int saves = 0, merges = 0; s->at < s->end;) {
        unsigned what = next_byte(s);
        doppel_match entry = next_entry(s);
        switch (what % 16) {
        case 0: take_out(index, &p, &entry); break;
        case 1: find(index, &p, &entry, (int)(what >> 4) % (s->bits + 1)); break;
        case 2: purge(index, &p, what >> 6); break;
        case 3: CHECK(merges++ >= 4 || !doppel_index_compact(index, &error)); break;
        case 4: index = saves++ < 4 ? reopen(index) : index; break;
        case 5: CHECK(!doppel_index_validate(index, &error)); break;
        default: insert(index, &p, &entry); break;
        }
    }
    doppel_match zero = {.owner = 0};
    find(index, &p, &zero, s->bits);
    doppel_index_free(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size)
        return 0;
    if (data[0] & 1) {
        run_script(&(script){data + 1, data + (size < LONGEST ? size : LONGEST), 0});
        return 0;
    }
    uint8_t *copy = malloc(size);
    CHECK(copy);
    memcpy(copy, data + 1, size - 1);
    if (data[0] & 2)
        seal(copy, size - 1);
    try_file(copy, size - 1);
    free(copy);
    return 0;
}
