/* bench_titles.c - Levenshtein on titles at a cut-off of 90 %, one thread. What is counted are the comparisons of
 * titles whose lengths alone do not rule a match out.
 *
 *   bench_titles TITLES.txt NEAR.txt RUNS QUERIES
 *
 * A line for each, as bench_measure prints it (the result is the number of matches):
 *   scan    QUERIES of the titles against all of them, with doppel_titles_find
 *   middle  the same among the titles of 76 to 84 characters, every two of which pass by length
 *   near    each block of NEAR.txt: its first line against all of it, many close to the cut-off
 *   pairs   title after title with doppel_levenshtein, without preparation */
#include "doppel.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 100 };
static const double cut_off = 0.9;

typedef struct titles {
    char **texts;
    size_t *lengths;
    size_t count;
} titles;

static bool length_passes(size_t a, size_t b) {
    size_t longer = a > b ? a : b, shorter = a > b ? b : a;
    return (double)shorter >= cut_off * (double)longer;
}

/* Lines of a file with lengths in [least, most]. */
static void load(titles *to, const char *path, size_t least, size_t most) {
    FILE *file = fopen(path, "r");
    if (!file)
        bench_fail("cannot be opened; bench/titles makes it", path);
    char *line = NULL;
    size_t capacity = 0, room = 0;
    for (ssize_t got; (got = getline(&line, &capacity, file)) > 1;) {
        size_t length = (size_t)got - 1;
        if (length < least || length > most)
            continue;
        if (to->count == room) {
            room = room ? 2 * room : 1024;
            to->texts = realloc(to->texts, room * sizeof *to->texts);
            to->lengths = realloc(to->lengths, room * sizeof *to->lengths);
        }
        if (!to->texts || !to->lengths)
            bench_fail("no memory", path);
        to->texts[to->count] = strndup(line, length);
        to->lengths[to->count++] = length;
    }
    free(line);
    fclose(file);
}

static void unload(titles *what) {
    for (size_t i = 0; i < what->count; i++)
        free(what->texts[i]);
    free(what->texts);
    free(what->lengths);
}

static doppel_titles *prepare(const titles *from, size_t first, size_t count) {
    doppel_titles *to;
    if (doppel_titles_create(&to))
        bench_fail("no memory", "titles");
    for (size_t i = first; i < first + count; i++) {
        if (doppel_titles_add(to, (doppel_slice){from->texts[i], from->lengths[i]}))
            bench_fail("no memory", "titles");
    }
    return to;
}

static bool count_match(size_t number, double similarity, void *user) {
    (void)number, (void)similarity;
    ++*(uint64_t *)user;
    return true;
}

/* ---- many against many ---- */

typedef struct scanning {
    const titles *all;
    doppel_titles **prepared; /* one for each block */
    size_t block;             /* titles a block: its first `queries` are compared with all of it */
    size_t queries;
} scanning;

static uint64_t scan_all(void *user) {
    scanning *state = user;
    uint64_t matches = 0;
    for (size_t first = 0; first + state->block <= state->all->count; first += state->block) {
        for (size_t i = first; i < first + state->queries; i++)
            doppel_titles_find(state->prepared[first / state->block],
                               (doppel_slice){state->all->texts[i], state->all->lengths[i]}, cut_off, count_match,
                               &matches);
    }
    return matches;
}

static double passing_pairs(const scanning *state) {
    double pairs = 0;
    for (size_t first = 0; first + state->block <= state->all->count; first += state->block) {
        for (size_t i = first; i < first + state->queries; i++) {
            for (size_t j = first; j < first + state->block; j++)
                pairs += length_passes(state->all->lengths[i], state->all->lengths[j]);
        }
    }
    return pairs;
}

static void measure_scan(const char *name, scanning state, int runs) {
    size_t blocks = state.all->count / state.block;
    state.prepared = calloc(blocks + 1, sizeof(doppel_titles *));
    if (!state.prepared)
        bench_fail("no memory", name);
    for (size_t i = 0; i < blocks; i++)
        state.prepared[i] = prepare(state.all, i * state.block, state.block);
    bench_measure(&(bench_case){name, scan_all, &state, passing_pairs(&state), runs});
    for (size_t i = 0; i < blocks; i++)
        doppel_titles_free(state.prepared[i]);
    free(state.prepared);
}

/* ---- one by one ---- */

static uint64_t compare_pairs(void *user) {
    const titles *all = user;
    uint64_t matches = 0;
    for (size_t i = 0; i + 1 < all->count; i++) {
        size_t longer = all->lengths[i] > all->lengths[i + 1] ? all->lengths[i] : all->lengths[i + 1];
        size_t most = longer / 10, distance = 0;
        if (!length_passes(all->lengths[i], all->lengths[i + 1]))
            continue;
        if (doppel_levenshtein((doppel_slice){all->texts[i], all->lengths[i]},
                               (doppel_slice){all->texts[i + 1], all->lengths[i + 1]}, most, &distance))
            bench_fail("no memory", "pairs");
        matches += distance <= most;
    }
    return matches;
}

static void measure_pairs(titles *all, int runs) {
    double pairs = 0;
    for (size_t i = 0; i + 1 < all->count; i++)
        pairs += length_passes(all->lengths[i], all->lengths[i + 1]);
    bench_measure(&(bench_case){"pairs", compare_pairs, all, pairs, runs});
}

int main(int count, char **arguments) {
    if (count != 5)
        bench_fail("TITLES.txt NEAR.txt RUNS QUERIES", "usage");
    titles all = {0}, middle = {0}, near = {0};
    load(&all, arguments[1], 60, 100);
    load(&middle, arguments[1], 76, 84);
    load(&near, arguments[2], 1, 200);
    int runs = atoi(arguments[3]);
    size_t queries = strtoull(arguments[4], NULL, 10);
    if (!queries || queries > middle.count)
        bench_fail("more than there are titles, or none", arguments[4]);
    measure_scan("scan", (scanning){&all, NULL, all.count, queries}, runs);
    measure_scan("middle", (scanning){&middle, NULL, middle.count, queries}, runs);
    measure_scan("near", (scanning){&near, NULL, BLOCK, 1}, runs);
    measure_pairs(&all, runs);
    unload(&all);
    unload(&middle);
    unload(&near);
    return 0;
}
