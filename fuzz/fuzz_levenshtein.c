/* fuzz_levenshtein.c - edit distances of two texts against the plain table. The first byte says where the input is cut
 * in two, the second the largest distance that matters. */
#include "fuzz.h"

#include "verify/verify.h"

#include <stdlib.h>

/* Texts are cut to this, so that the plain table is small. */
#define MOST 700

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t plain_distance(dp_points a, dp_points b, size_t substitution) {
    static size_t row[MOST + 1];
    for (size_t j = 0; j <= b.count; j++)
        row[j] = j;
    for (size_t i = 0; i < a.count; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b.count; j++) {
            size_t best = diagonal + (a.data[i] == b.data[j] ? 0 : substitution);
            diagonal = row[j + 1];
            row[j + 1] = smaller(best, smaller(row[j], diagonal) + 1);
        }
    }
    return row[b.count];
}

typedef struct pair {
    const char *a, *b;
    size_t a_length, b_length;
} pair;

static void check_distances(const pair *p, size_t max, size_t levenshtein, size_t indel) {
    size_t got;
    CHECK(!doppel_levenshtein((doppel_slice){p->a, p->a_length}, (doppel_slice){p->b, p->b_length}, max, &got));
    CHECK(got == (levenshtein > max ? max + 1 : levenshtein));
    CHECK(!doppel_indel((doppel_slice){p->a, p->a_length}, (doppel_slice){p->b, p->b_length}, max, &got));
    CHECK(got == (indel > max ? max + 1 : indel));
}

static bool note(size_t number, double similarity, void *user) {
    CHECK(number == 0);
    *(double *)user = similarity;
    return true;
}

static void check_similarity(const pair *p, double min, double similarity) {
    double got, found = -1, want = similarity >= min ? similarity : 0;
    CHECK(!doppel_edit_similarity((doppel_slice){p->a, p->a_length}, (doppel_slice){p->b, p->b_length}, min, &got) &&
          got == want);
    doppel_titles *titles;
    CHECK(!doppel_titles_create(&titles) && !doppel_titles_add(titles, (doppel_slice){p->a, p->a_length}));
    CHECK(!doppel_titles_find(titles, (doppel_slice){p->b, p->b_length}, min, note, &found));
    CHECK(found == (similarity >= min ? similarity : -1));
    doppel_titles_free(titles);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint32_t a_points[MOST], b_points[MOST];
    if (size < 2)
        return 0;
    size_t length = size - 2, cut = length * data[0] / 255, max = data[1];
    pair p = {(const char *)data + 2, (const char *)data + 2 + cut, smaller(cut, MOST), smaller(length - cut, MOST)};
    dp_points a = {a_points, dp_points_decode(p.a, p.a_length, a_points)};
    dp_points b = {b_points, dp_points_decode(p.b, p.b_length, b_points)};
    size_t levenshtein = plain_distance(a, b, 1), indel = plain_distance(a, b, 2);
    check_distances(&p, SIZE_MAX, levenshtein, indel);
    check_distances(&p, max, levenshtein, indel);
    size_t longer = a.count > b.count ? a.count : b.count;
    double similarity = longer ? 1 - (double)levenshtein / (double)longer : 1;
    check_similarity(&p, (double)max / 255, similarity);
    check_similarity(&p, similarity, similarity);
    return 0;
}
