/* torture_masses.c - very many documents with the same title, the same URL, the same words, the same id or no words
 * take as long each as few do: the candidates that are looked at for one of ten times as many are not more, nor does
 * the time of the processor go up by far more than ten. 10,000 against 100,000; at full size a million against ten
 * millions for those with the same title, URL or no words. */
#include "torture.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 1000 };

typedef struct tt_mass {
    const char *name;
    bool title, url, words, id;       /* which are the same */
    bool no_words;                    /* there are none */
    doppel_on_duplicate on_duplicate; /* 0: skip */
    doppel_on_same_url on_same_url;
    bool huge; /* ten millions */
} tt_mass;

static const tt_mass masses[] = {
    {.name = "one title", .title = true, .huge = true},
    {.name = "one URL", .url = true, .huge = true},
    {.name = "one URL, refreshed", .url = true, .on_same_url = DOPPEL_SAME_URL_REFRESH},
    {.name = "one URL, linked", .url = true, .on_duplicate = DOPPEL_DUPLICATE_LINK},
    {.name = "no words", .no_words = true, .huge = true},
    {.name = "no words, one title", .no_words = true, .title = true, .huge = true},
    {.name = "the same words", .words = true},
    {.name = "the same words, linked", .words = true, .on_duplicate = DOPPEL_DUPLICATE_LINK},
    {.name = "the same words, stored", .words = true, .on_duplicate = DOPPEL_DUPLICATE_STORE},
    {.name = "one id", .id = true},
    {.name = "all the same", .title = true, .url = true, .words = true, .id = true},
};

typedef struct tt_one {
    char id[32], url[64], title[64];
    uint64_t fingerprint;
    uint8_t digest[32];
} tt_one;

static doppel_item item_of(const tt_mass *mass, uint64_t number, tt_one *one) {
    uint64_t id = mass->id ? 1 : number, words = mass->words ? 1 : number;
    doppel_item item = {.size = sizeof item,
                        .document = {.id.data = one->id, .url.data = one->url, .title.data = one->title}};
    item.document.id.length = (size_t)snprintf(one->id, sizeof one->id, "id-%" PRIu64, id);
    item.document.url.length =
        (size_t)snprintf(one->url, sizeof one->url, "http://a.example/%" PRIu64, mass->url ? 1 : number);
    if (mass->title)
        item.document.title.length = (size_t)snprintf(one->title, sizeof one->title, "a title of all documents");
    if (mass->no_words)
        return item;
    one->fingerprint = next_random(&words);
    for (size_t i = 0; i < sizeof one->digest; i += 8)
        memcpy(one->digest + i, &(uint64_t){next_random(&words)}, 8);
    item.fingerprint = &one->fingerprint;
    item.digest = one->digest;
    item.words = 100;
    return item;
}

/* Adds so many; gives the candidates of all. */
static uint64_t add_mass(const tt_mass *mass, uint64_t count) {
    static tt_one ones[BATCH];
    static doppel_item items[BATCH];
    static doppel_verdict verdicts[BATCH];
    doppel_engine_options options = {.size = sizeof options,
                                     .near = DOPPEL_NEAR_DISTANCE,
                                     .titles = DOPPEL_SWITCH_ON,
                                     .on_duplicate = mass->on_duplicate,
                                     .on_same_url = mass->on_same_url};
    doppel_engine *engine;
    doppel_engine_stats stats;
    doppel_error error;
    must(doppel_engine_open(NULL, &options, &engine, &error), &error, "open");
    for (uint64_t done = 0; done < count; done += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++)
            items[i] = item_of(mass, done + i + 2, &ones[i]);
        must(doppel_engine_add_batch(engine, items, BATCH, verdicts, NULL, &error), &error, "add_batch");
    }
    doppel_engine_get_stats(engine, &stats);
    doppel_engine_close(engine);
    return stats.candidates.sum;
}

/* A tenfold mass takes ten times as long, a hundred times where each is compared with all. */
static void one_mass(const tt_mass *mass) {
    uint64_t few = full_suite() && mass->huge ? 1000000 : 10000, many = 10 * few;
    alarm(full_suite() ? 1800 : 120);
    clock_t began = clock();
    double some = (double)add_mass(mass, few) / (double)few;
    clock_t between = clock();
    double more = (double)add_mass(mass, many) / (double)many;
    double short_time = (double)(between - began) / CLOCKS_PER_SEC;
    double long_time = (double)(clock() - between) / CLOCKS_PER_SEC;
    printf("%-22s of %" PRIu64 ": %5.2f candidates each, %.2f s; of %" PRIu64 ": %5.2f, %.2f s\n", mass->name, few,
           some, short_time, many, more, long_time);
    fflush(stdout);
    if (more > 2 * some + 10)
        wrong("%s: candidates grow with the number of documents", mass->name);
    if (long_time > 2 && long_time > 40 * short_time)
        wrong("%s: time grows with the square of the number of documents", mass->name);
    alarm(0);
}

int main(int count, char **arguments) {
    for (size_t i = 0; i < sizeof masses / sizeof *masses; i++)
        if (count < 2 || !strcmp(arguments[1], masses[i].name))
            one_mass(&masses[i]);
    return 0;
}
