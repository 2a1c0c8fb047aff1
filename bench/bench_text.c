/* bench_text.c - text to sketches, one thread, over documents in memory, each once a run and in order.
 *
 *   bench_text FILE.bin RUNS MEGABYTES WHAT...
 *
 * MEGABYTES limits the text (0: all). WHAT is a recipe; or `read` (every byte of the text is read, nothing more),
 * `copy` (memcpy to memory that was touched before), `touch` (the first write to fresh memory); or `plain`, the recipe
 * `literal` as one would write it at first: words cut byte by byte, each joined shingle hashed by murmur3, 64 counters
 * moved one by one. On ASCII its result is that of `literal`. A line for each, as bench_measure prints it; the result
 * of a recipe is made of all fingerprints and signatures, so that equal results mean equal sketches. */
#include "base/base.h"
#include "doppel.h"
#include "measure.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SHINGLE = 5 };

static uint64_t join(uint64_t sum, uint64_t next) {
    return (sum << 1 | sum >> 63) ^ next;
}

/* ---- recipes ---- */

typedef struct sketching {
    const bench_documents *documents;
    doppel_sketcher *sketcher;
} sketching;

static uint64_t sketch_all(void *user) {
    sketching *state = user;
    uint64_t sum = 0;
    for (size_t i = 0; i < state->documents->count; i++) {
        doppel_sketch sketch;
        if (doppel_sketcher_run(state->sketcher,
                                (doppel_slice){state->documents->texts[i], state->documents->lengths[i]}, &sketch))
            bench_fail("the sketcher failed", "document");
        sum = join(sum, sketch.fingerprint[0]);
        for (size_t slot = 0; slot < sketch.slots; slot++)
            sum = join(sum, sketch.signature[slot]);
    }
    return sum;
}

static void measure_recipe(const char *text, const bench_documents *documents, int runs) {
    doppel_recipe *recipe;
    doppel_error error;
    sketching state = {documents, NULL};
    if (doppel_recipe_parse(text, NULL, &recipe, &error) || doppel_sketcher_create(recipe, 0, &state.sketcher, &error))
        bench_fail(error.message, text);
    bench_measure(&(bench_case){text, sketch_all, &state, (double)documents->bytes, runs});
    doppel_sketcher_free(state.sketcher);
    doppel_recipe_free(recipe);
}

/* ---- the plain version ---- */

/* Lower-cases a text, drops what is neither letter nor digit, and notes where each word starts and ends. */
static size_t plain_words(const char *text, size_t length, char *out, uint32_t *bounds) {
    size_t count = 0, size = 0;
    bool inside = false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (isalnum(c)) {
            if (!inside)
                bounds[2 * count] = (uint32_t)size;
            inside = true;
            out[size++] = (char)tolower(c);
        } else if (isspace(c) && inside) {
            bounds[2 * count++ + 1] = (uint32_t)size;
            out[size++] = ' ';
            inside = false;
        }
    }
    if (inside)
        bounds[2 * count++ + 1] = (uint32_t)size;
    return count;
}

static uint64_t plain_fingerprint(const char *text, size_t length, char *out, uint32_t *bounds) {
    size_t words = plain_words(text, length, out, bounds);
    size_t n = words < SHINGLE ? words : SHINGLE;
    int64_t counters[64] = {0};
    for (size_t i = 0; n && i + n <= words; i++) {
        uint32_t start = bounds[2 * i], end = bounds[2 * (i + n - 1) + 1];
        uint64_t hash = dp_murmur3(out + start, end - start, 0);
        for (int bit = 0; bit < 64; bit++) {
            if (hash >> bit & 1)
                counters[bit]++;
            else
                counters[bit]--;
        }
    }
    uint64_t fingerprint = 0;
    for (int bit = 0; bit < 64; bit++)
        fingerprint |= (uint64_t)(counters[bit] > 0) << bit;
    return fingerprint;
}

typedef struct plain_state {
    const bench_documents *documents;
    char *out;
    uint32_t *bounds;
} plain_state;

static uint64_t plain_all(void *user) {
    plain_state *state = user;
    const bench_documents *documents = state->documents;
    uint64_t sum = 0;
    for (size_t i = 0; i < documents->count; i++)
        sum = join(sum, plain_fingerprint(documents->texts[i], documents->lengths[i], state->out, state->bounds));
    return sum;
}

static void measure_plain(const bench_documents *documents, int runs) {
    size_t longest = 0;
    for (size_t i = 0; i < documents->count; i++)
        longest = documents->lengths[i] > longest ? documents->lengths[i] : longest;
    plain_state state = {documents, malloc(longest + 1), malloc((longest + 2) * sizeof(uint32_t))};
    if (!state.out || !state.bounds)
        bench_fail("no memory", "plain");
    bench_measure(&(bench_case){"plain", plain_all, &state, (double)documents->bytes, runs});
    free(state.out);
    free(state.bounds);
}

/* ---- memory ---- */

static uint64_t read_all(void *user) {
    const bench_documents *documents = user;
    const uint64_t *words = (const void *)documents->data;
    uint64_t sums[8] = {0};
    for (size_t i = 0; i + 8 <= documents->size / 8; i += 8) {
        for (size_t lane = 0; lane < 8; lane++)
            sums[lane] += words[i + lane];
    }
    return sums[0] ^ sums[1] ^ sums[2] ^ sums[3] ^ sums[4] ^ sums[5] ^ sums[6] ^ sums[7];
}

typedef struct copying {
    const char *from;
    char *to;
    size_t size;
} copying;

static uint64_t copy_all(void *user) {
    copying *state = user;
    memcpy(state->to, state->from, state->size);
    return (uint64_t)state->to[state->size / 2];
}

static uint64_t touch_all(void *user) {
    copying *state = user;
    char *fresh = mmap(NULL, state->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        bench_fail("no memory", "touch");
    memset(fresh, 1, state->size);
    uint64_t result = (uint64_t)fresh[state->size / 2];
    munmap(fresh, state->size);
    return result;
}

static void measure_memory(const char *what, bench_documents *documents, int runs) {
    if (strcmp(what, "read") == 0) {
        bench_measure(&(bench_case){what, read_all, documents, (double)documents->size, runs});
        return;
    }
    copying state = {documents->data, NULL, documents->size};
    if (strcmp(what, "copy") == 0) {
        state.to = malloc(state.size);
        if (!state.to)
            bench_fail("no memory", what);
        memset(state.to, 1, state.size);
        bench_measure(&(bench_case){what, copy_all, &state, (double)state.size, runs});
        free(state.to);
    } else {
        bench_measure(&(bench_case){what, touch_all, &state, (double)state.size, runs});
    }
}

int main(int count, char **arguments) {
    if (count < 5)
        bench_fail("FILE.bin RUNS MEGABYTES WHAT...", "usage");
    bench_documents documents;
    bench_documents_load(&documents, arguments[1], strtoull(arguments[3], NULL, 10) * 1000000);
    int runs = atoi(arguments[2]);
    for (int i = 4; i < count; i++) {
        const char *what = arguments[i];
        if (strcmp(what, "read") == 0 || strcmp(what, "copy") == 0 || strcmp(what, "touch") == 0)
            measure_memory(what, &documents, runs);
        else if (strcmp(what, "plain") == 0)
            measure_plain(&documents, runs);
        else
            measure_recipe(what, &documents, runs);
    }
    bench_documents_free(&documents);
    return 0;
}
