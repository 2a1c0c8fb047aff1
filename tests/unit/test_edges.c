/* test_edges.c - which documents are kept, given all near pairs: against a plain loop over each with each, on random
 * graphs; chains; edges in any order and given twice; edges that are refused. */
#include "support.h"

#include "doppel.h"

#include <math.h>

enum { MOST = 60 };

/* ---- the plain loop ---- */

/* Similarities of each with each, 0 where there is no edge; NaN is one that is not known. */
typedef struct graph {
    uint32_t count;
    float near[MOST][MOST];
} graph;

static bool is_better(float a, float b) {
    return a > b || (isnan(b) && !isnan(a));
}

static void decide_plainly(const graph *g, uint32_t *original, float *similarity) {
    for (uint32_t d = 0; d < g->count; d++) {
        original[d] = d;
        similarity[d] = NAN;
        for (uint32_t earlier = 0; earlier < d; earlier++) {
            float s = g->near[earlier][d];
            if (s == 0 || original[earlier] != earlier)
                continue;
            if (original[d] == d || is_better(s, similarity[d])) {
                original[d] = earlier;
                similarity[d] = s;
            }
        }
    }
}

/* The smallest number reaches everything that it is connected with, in as many rounds as there are documents. */
static void link_plainly(const graph *g, uint32_t *original, float *similarity) {
    for (uint32_t d = 0; d < g->count; d++)
        original[d] = d;
    for (uint32_t round = 0; round < g->count; round++)
        for (uint32_t a = 0; a < g->count; a++)
            for (uint32_t b = 0; b < g->count; b++)
                if (g->near[a][b] != 0 && original[b] > original[a])
                    original[b] = original[a];
    for (uint32_t d = 0; d < g->count; d++) {
        similarity[d] = NAN;
        for (uint32_t other = 0; other < g->count && original[d] != d; other++)
            if (g->near[d][other] != 0 && is_better(g->near[d][other], similarity[d]))
                similarity[d] = g->near[d][other];
    }
}

/* ---- graphs ---- */

/* An edge with one of a few similarities, so that many are equal. */
static void add_edge(graph *g, uint64_t *random, uint32_t a, uint32_t b) {
    static const float some[] = {0.8f, 0.85f, 0.9f, 1.0f, NAN};
    g->near[a][b] = g->near[b][a] = some[random_below(random, 5)];
}

static graph random_graph(uint64_t *random) {
    graph g = {.count = (uint32_t)random_below(random, MOST + 1)};
    size_t edges = g.count > 1 ? random_below(random, g.count * 2) : 0;
    for (size_t i = 0; i < edges; i++) {
        uint32_t a = (uint32_t)random_below(random, g.count), b = (uint32_t)random_below(random, g.count);
        if (a != b)
            add_edge(&g, random, a, b);
    }
    return g;
}

/* The edges of a graph, either end first, some of them twice, in any order. */
static size_t list_edges(const graph *g, uint64_t *random, doppel_edge *edges) {
    size_t count = 0;
    for (uint32_t a = 0; a < g->count; a++)
        for (uint32_t b = 0; b < a; b++)
            for (size_t times = g->near[a][b] != 0 ? 1 + random_below(random, 2) : 0; times; times--) {
                bool turned = random_below(random, 2);
                edges[count++] = (doppel_edge){turned ? a : b, turned ? b : a, g->near[a][b]};
            }
    for (size_t i = count; i > 1; i--) {
        size_t other = random_below(random, i);
        doppel_edge last = edges[i - 1];
        edges[i - 1] = edges[other];
        edges[other] = last;
    }
    return count;
}

static void expect_same(const graph *g, uint64_t *random, bool link_any) {
    static doppel_edge edges[MOST * MOST];
    uint32_t want[MOST], got[MOST], alone[MOST];
    float want_similarity[MOST], similarity[MOST];
    doppel_error error;
    (link_any ? link_plainly : decide_plainly)(g, want, want_similarity);
    size_t count = list_edges(g, random, edges);
    assert_int_equal(doppel_decide_edges(edges, count, g->count, link_any, got, similarity, &error), DOPPEL_OK);
    assert_int_equal(doppel_decide_edges(edges, count, g->count, link_any, alone, NULL, NULL), DOPPEL_OK);
    for (uint32_t d = 0; d < g->count; d++) {
        assert_int_equal(got[d], want[d]);
        assert_int_equal(alone[d], want[d]);
        assert_true(isnan(want_similarity[d]) ? isnan(similarity[d]) : similarity[d] == want_similarity[d]);
    }
}

static void random_graphs_are_decided_as_by_a_plain_loop(void **state) {
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 3000 / SMALLER; i++) {
        graph g = random_graph(&random);
        expect_same(&g, &random, false);
        expect_same(&g, &random, true);
    }
}

/* ---- cases ---- */

static void a_copy_of_a_copy_stays_unless_chains_are_one_group(void **state) {
    (void)state;
    doppel_edge edges[] = {{1, 2, 0.9f}, {0, 1, 0.8f}, {2, 3, 0.95f}};
    uint32_t original[4];
    float similarity[4];
    assert_int_equal(doppel_decide_edges(edges, 3, 4, false, original, similarity, NULL), DOPPEL_OK);
    assert_memory_equal(original, ((uint32_t[]){0, 0, 2, 2}), sizeof original);
    assert_true(isnan(similarity[0]) && similarity[1] == 0.8f && isnan(similarity[2]) && similarity[3] == 0.95f);
    assert_int_equal(doppel_decide_edges(edges, 3, 4, true, original, similarity, NULL), DOPPEL_OK);
    assert_memory_equal(original, ((uint32_t[]){0, 0, 0, 0}), sizeof original);
    assert_true(isnan(similarity[0]) && similarity[1] == 0.9f && similarity[2] == 0.95f && similarity[3] == 0.95f);
}

static void of_several_originals_the_most_similar_counts_then_the_first(void **state) {
    (void)state;
    doppel_edge edges[] = {{4, 1, 0.9f}, {4, 3, 0.9f}, {4, 0, 0.8f}, {2, 4, NAN}};
    uint32_t original[5];
    assert_int_equal(doppel_decide_edges(edges, 4, 5, false, original, NULL, NULL), DOPPEL_OK);
    assert_int_equal(original[4], 1);
}

static void an_edge_of_several_similarities_has_the_greatest(void **state) {
    (void)state;
    static const float some[] = {0.8f, NAN, 0.9f};
    for (int i = 0; i < 6; i++)
        for (int link_any = 0; link_any < 2; link_any++) {
            doppel_edge edges[3];
            uint32_t original[2];
            float similarity[2];
            for (int k = 0; k < 3; k++)
                edges[k] = (doppel_edge){(uint32_t)k % 2, 1 - (uint32_t)k % 2, some[(i < 3 ? i + k : i + 3 - k) % 3]};
            assert_int_equal(doppel_decide_edges(edges, 3, 2, link_any, original, similarity, NULL), DOPPEL_OK);
            assert_int_equal(original[1], 0);
            assert_true(similarity[1] == 0.9f);
        }
}

static void without_edges_all_stay(void **state) {
    (void)state;
    uint32_t original[3];
    float similarity[3];
    for (int link_any = 0; link_any < 2; link_any++) {
        assert_int_equal(doppel_decide_edges(NULL, 0, 3, link_any, original, similarity, NULL), DOPPEL_OK);
        assert_memory_equal(original, ((uint32_t[]){0, 1, 2}), sizeof original);
        assert_true(isnan(similarity[0]) && isnan(similarity[2]));
        assert_int_equal(doppel_decide_edges(NULL, 0, 0, link_any, NULL, NULL, NULL), DOPPEL_OK);
    }
}

static void a_long_chain_is_one_group(void **state) {
    (void)state;
    enum { LONG = 200000 };
    doppel_edge *edges = malloc(LONG * sizeof *edges);
    uint32_t *original = malloc(LONG * sizeof *original);
    for (uint32_t i = 0; i + 1 < LONG; i++)
        edges[i] = (doppel_edge){LONG - 1 - i, LONG - 2 - i, 0.9f};
    assert_int_equal(doppel_decide_edges(edges, LONG - 1, LONG, true, original, NULL, NULL), DOPPEL_OK);
    for (uint32_t i = 0; i < LONG; i++)
        assert_int_equal(original[i], 0);
    assert_int_equal(doppel_decide_edges(edges, LONG - 1, LONG, false, original, NULL, NULL), DOPPEL_OK);
    for (uint32_t i = 0; i < LONG; i++)
        assert_int_equal(original[i], i / 2 * 2);
    free(edges);
    free(original);
}

static void edges_that_lead_nowhere_are_refused(void **state) {
    (void)state;
    uint32_t original[3];
    doppel_error error;
    doppel_edge far[] = {{0, 1, 1}, {3, 1, 1}}, farther[] = {{2, UINT32_MAX, 1}}, self[] = {{0, 1, 1}, {2, 2, 1}};
    assert_int_equal(doppel_decide_edges(far, 2, 3, false, original, NULL, &error), DOPPEL_ERROR_USAGE);
    assert_string_equal(error.message, "edge 1: there is no document 3 among 3");
    assert_int_equal(doppel_decide_edges(farther, 1, 3, true, original, NULL, &error), DOPPEL_ERROR_USAGE);
    assert_string_equal(error.message, "edge 0: there is no document 4294967295 among 3");
    assert_int_equal(doppel_decide_edges(self, 2, 3, false, original, NULL, &error), DOPPEL_ERROR_USAGE);
    assert_string_equal(error.message, "edge 1: document 2 cannot be near itself");
    assert_int_equal(doppel_decide_edges(self, 1, 0, false, NULL, NULL, NULL), DOPPEL_ERROR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_are_decided_as_by_a_plain_loop),
        cmocka_unit_test(a_copy_of_a_copy_stays_unless_chains_are_one_group),
        cmocka_unit_test(of_several_originals_the_most_similar_counts_then_the_first),
        cmocka_unit_test(an_edge_of_several_similarities_has_the_greatest),
        cmocka_unit_test(without_edges_all_stay),
        cmocka_unit_test(a_long_chain_is_one_group),
        cmocka_unit_test(edges_that_lead_nowhere_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
