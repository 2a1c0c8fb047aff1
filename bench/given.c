/* given.c - documents made from numbers (given.h). */
#include "given.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1000 };

uint64_t given_mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static int compare(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

given_parts given_named(const char *near) {
    bool titles = !strcmp(near, "titles");
    return (given_parts){.sets = titles || !strcmp(near, "similarity"), .titles = titles};
}

/* A title of 6 to 12 words of 3 to 11 letters; some of the 30,000 words are much more frequent than others. */
static size_t make_title(char *title, uint64_t number) {
    uint64_t random = given_mix(number + (1ULL << 59));
    size_t words = 6 + random % 7, length = 0;
    for (size_t i = 0; i < words; i++) {
        random = given_mix(random + i);
        double share = (double)(random >> 11) / 0x1p53;
        uint64_t word = given_mix((uint64_t)(share * share * 30000) + (1ULL << 58));
        for (size_t letters = 3 + word % 9; letters; letters--, word /= 7)
            title[length++] = (char)('a' + word % 26);
        title[length++] = ' ';
    }
    return length - 1;
}

void given_make(given_document *g, uint64_t number, given_parts parts) {
    bool sets = parts.sets;
    int id = snprintf(g->id, sizeof g->id, "document-%012llu", (unsigned long long)number);
    int url = snprintf(g->url, sizeof g->url, "https://www.site-%u.example/news/%u/page-%012llu.html",
                       (unsigned)(given_mix(number) % 5000), (unsigned)(given_mix(~number) % 100),
                       (unsigned long long)number);
    g->fingerprint[0] = given_mix(number * 2 + 1);
    for (int i = 0; i < 4; i++)
        g->digest[i] = given_mix(number * 8 + (uint64_t)i + (1ULL << 60));
    for (int i = 0; sets && i < GIVEN_SET; i++)
        g->set[i] = given_mix(number * GIVEN_SET + (uint64_t)i + (1ULL << 61));
    if (sets)
        qsort(g->set, GIVEN_SET, sizeof *g->set, compare);
    g->item = (doppel_item){.size = sizeof g->item,
                            .fingerprint = g->fingerprint,
                            .digest = (const uint8_t *)g->digest,
                            .set = sets ? g->set : NULL,
                            .set_count = sets ? GIVEN_SET : 0,
                            .words = 500};
    g->item.document.id = (doppel_slice){g->id, (size_t)id};
    g->item.document.url = (doppel_slice){g->url, (size_t)url};
    if (parts.titles)
        g->item.document.title = (doppel_slice){g->title, make_title(g->title, number)};
}

doppel_engine *given_open(const char *folder, given_parts parts) {
    doppel_error error = {0};
    doppel_engine *engine = NULL;
    const doppel_engine_options options = {.size = sizeof options,
                                           .near = parts.sets ? DOPPEL_NEAR_SIMILARITY : DOPPEL_NEAR_DISTANCE,
                                           .titles = parts.titles ? DOPPEL_SWITCH_ON : DOPPEL_SWITCH_OFF,
                                           .ttl = DOPPEL_NEVER};
    if (doppel_engine_open(folder, &options, &engine, &error) != DOPPEL_OK)
        bench_fail(error.message, folder);
    return engine;
}

static void add_batch(doppel_engine *engine, const doppel_item *items, size_t count, doppel_verdict *verdicts) {
    doppel_error error = {0};
    if (doppel_engine_add_batch(engine, items, count, verdicts, NULL, &error) != DOPPEL_OK)
        bench_fail(error.message, "engine");
    for (size_t i = 0; i < count; i++)
        if (verdicts[i].is_duplicate)
            bench_fail("a duplicate where there is none", items[i].document.id.data);
}

void given_add(doppel_engine *engine, uint64_t from, uint64_t to, given_parts parts) {
    given_document *g = calloc(BATCH, sizeof *g);
    doppel_item *items = calloc(BATCH, sizeof *items);
    doppel_verdict *verdicts = calloc(BATCH, sizeof *verdicts);
    if (!g || !items || !verdicts)
        bench_fail("no memory", "engine");
    for (uint64_t number = from; number < to; number += BATCH) {
        size_t count = to - number < BATCH ? (size_t)(to - number) : BATCH;
        for (size_t i = 0; i < count; i++) {
            given_make(&g[i], number + i, parts);
            items[i] = g[i].item;
        }
        add_batch(engine, items, count, verdicts);
    }
    for (int i = 0; i < BATCH; i++)
        doppel_verdict_free(&verdicts[i]);
    free(verdicts);
    free(items);
    free(g);
}
