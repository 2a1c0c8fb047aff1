/* torture_threads.c - 64 threads add the same documents, each in an order of its own.
 *
 * The documents are planted as disjoint cliques: members of one are similar by 0.9 and more and within three bits of
 * each other, members of two have nothing in common. Of each clique exactly one is unique, whichever came first, and
 * every other verdict names it; also of adds that come in batches, and of those that come again. In memory and in a
 * folder, near by distance and by similarity. 2,000 documents; 100,000 at full size. */
#include "torture.h"

#include <inttypes.h>
#include <pthread.h>

enum { THREADS = 64, SET = 100, LARGEST = 8, BATCH = 50 };

typedef struct tt_planted {
    char id[24];
    uint32_t clique;
    uint8_t digest[32];
    uint64_t fingerprint;
    uint64_t set[SET];
} tt_planted;

typedef struct tt_torture {
    tt_planted *documents;
    size_t count, cliques;
    _Atomic uint32_t *unique; /* of each clique, the document that is: its number from 1 */
    _Atomic uint32_t *named;  /* and the one that others are called copies of */
    doppel_engine *engine;
    _Atomic uint64_t verdicts;
} tt_torture;

typedef struct tt_adder {
    tt_torture *torture;
    uint64_t number;
} tt_adder;

/* ---- planting ---- */

static uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t state = a * 0x9E3779B97F4A7C15u + b;
    return next_random(&state);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Member m differs from the first in one bit and in one of its hundred features: a similarity of 0.96 and two bits. */
static void plant_member(tt_planted *to, size_t number, uint32_t clique, uint32_t member) {
    snprintf(to->id, sizeof to->id, "d%zu", number);
    to->clique = clique;
    to->fingerprint = mixed(clique, 1) ^ (member ? UINT64_C(1) << (member * 7 + clique) % 64 : 0);
    for (uint32_t i = 0; i < SET; i++)
        to->set[i] = mixed(clique, 100 + i + (i + 1 == member ? 1000 : 0));
    qsort(to->set, SET, sizeof *to->set, by_value);
    for (size_t i = 0; i < sizeof to->digest; i += 8)
        memcpy(to->digest + i, &(uint64_t){mixed(number, 50 + i)}, 8);
}

static void plant_all(tt_torture *torture, size_t count) {
    uint64_t state = 5;
    torture->documents = calloc(count, sizeof *torture->documents);
    torture->unique = calloc(count, sizeof *torture->unique);
    torture->named = calloc(count, sizeof *torture->named);
    if (!torture->documents || !torture->unique || !torture->named)
        wrong("no memory");
    while (torture->count < count) {
        uint64_t members = 1 + below(&state, LARGEST);
        for (uint32_t i = 0; i < members && torture->count < count; i++, torture->count++)
            plant_member(&torture->documents[torture->count], torture->count, (uint32_t)torture->cliques, i);
        torture->cliques++;
    }
}

static doppel_item item_of(const tt_planted *planted) {
    return (doppel_item){.size = sizeof(doppel_item),
                         .document = {.id.data = planted->id, .id.length = strlen(planted->id)},
                         .fingerprint = &planted->fingerprint,
                         .digest = planted->digest,
                         .set = planted->set,
                         .set_count = SET,
                         .words = SET};
}

/* ---- adding ---- */

/* The first says who it is, all others must say the same. */
static void agree(_Atomic uint32_t *who, uint32_t number, const char *what) {
    uint32_t was = 0;
    if (!atomic_compare_exchange_strong(who, &was, number + 1) && was != number + 1)
        wrong("d%" PRIu32 " is %s of its clique, and so is d%" PRIu32, number, what, was - 1);
}

static void judge(tt_torture *torture, const tt_planted *planted, const doppel_verdict *verdict) {
    char name[24] = "";
    if (!verdict->is_duplicate)
        memcpy(name, planted->id, sizeof name);
    else if (verdict->original_id.length < sizeof name)
        memcpy(name, verdict->original_id.data, verdict->original_id.length);
    uint32_t number = (uint32_t)strtoul(name + 1, NULL, 10);
    torture->verdicts++;
    if (number >= torture->count || torture->documents[number].clique != planted->clique)
        wrong("%s is called a copy of %s, of another clique", planted->id, name);
    if (verdict->is_duplicate)
        agree(&torture->named[planted->clique], number, "the original");
    else
        agree(&torture->unique[planted->clique], number, "unique");
}

static void add_some(tt_torture *torture, const size_t *numbers, size_t count) {
    doppel_item items[BATCH];
    doppel_verdict verdicts[BATCH] = {0};
    doppel_error error;
    for (size_t i = 0; i < count; i++)
        items[i] = item_of(&torture->documents[numbers[i]]);
    if (count == 1)
        must(doppel_engine_add(torture->engine, items, verdicts, &error), &error, "add");
    else
        must(doppel_engine_add_batch(torture->engine, items, count, verdicts, NULL, &error), &error, "add_batch");
    for (size_t i = 0; i < count; i++) {
        judge(torture, &torture->documents[numbers[i]], &verdicts[i]);
        doppel_verdict_free(&verdicts[i]);
    }
}

static size_t common_divisor(size_t a, size_t b) {
    return b ? common_divisor(b, a % b) : a;
}

/* Every other thread adds in batches. */
static void *add_all(void *given) {
    const tt_adder *adder = given;
    tt_torture *torture = adder->torture;
    uint64_t state = adder->number;
    size_t at = below(&state, torture->count), stride = 1 + below(&state, torture->count), numbers[BATCH], held = 0;
    size_t most = adder->number % 2 ? BATCH : 1;
    while (common_divisor(stride, torture->count) != 1)
        stride++;
    for (size_t i = 0; i < torture->count; i++, at = (at + stride) % torture->count) {
        numbers[held++] = at;
        if (held < most && i + 1 < torture->count)
            continue;
        add_some(torture, numbers, held);
        held = 0;
    }
    return NULL;
}

/* ---- one engine ---- */

static void compare(const tt_torture *torture) {
    doppel_engine_stats stats;
    for (size_t i = 0; i < torture->cliques; i++) {
        if (!torture->unique[i])
            wrong("of clique %zu none is unique", i);
        if (torture->named[i] && torture->named[i] != torture->unique[i])
            wrong("of clique %zu d%" PRIu32 " is unique, but d%" PRIu32 " is named", i, torture->unique[i] - 1,
                  torture->named[i] - 1);
    }
    doppel_engine_get_stats(torture->engine, &stats);
    if (stats.documents != torture->cliques)
        wrong("there are %" PRIu64 " originals of %zu cliques", stats.documents, torture->cliques);
}

static void one_engine(tt_torture *torture, const char *folder, doppel_near_by near) {
    doppel_engine_options options = {.size = sizeof options, .near = near, .titles = DOPPEL_SWITCH_OFF};
    doppel_error error;
    pthread_t threads[THREADS];
    tt_adder adders[THREADS];
    double from = seconds_now();
    must(doppel_engine_open(folder, &options, &torture->engine, &error), &error, "open");
    memset((void *)torture->unique, 0, torture->count * sizeof *torture->unique);
    memset((void *)torture->named, 0, torture->count * sizeof *torture->named);
    for (uint64_t i = 0; i < THREADS; i++) {
        adders[i] = (tt_adder){torture, i};
        if (pthread_create(&threads[i], NULL, add_all, &adders[i]))
            wrong("no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    compare(torture);
    doppel_engine_close(torture->engine);
    if (folder)
        folder_verify(folder);
    printf("%s, near by %s: %zu cliques, one unique each; %" PRIu64 " verdicts in %.1f s\n",
           folder ? "folder" : "memory", near == DOPPEL_NEAR_DISTANCE ? "distance" : "similarity", torture->cliques,
           (uint64_t)torture->verdicts, seconds_now() - from);
    fflush(stdout);
    torture->verdicts = 0;
}

int main(int count, char **arguments) {
    tt_torture torture = {0};
    char scratch[256];
    size_t documents = full_suite() ? 100000 : 2000;
    plant_all(&torture, count > 1 ? strtoull(arguments[1], NULL, 10) : documents);
    scratch_create(scratch, sizeof scratch, false);
    one_engine(&torture, NULL, DOPPEL_NEAR_DISTANCE);
    one_engine(&torture, NULL, DOPPEL_NEAR_SIMILARITY);
    one_engine(&torture, beside(scratch, "distance"), DOPPEL_NEAR_DISTANCE);
    one_engine(&torture, beside(scratch, "similarity"), DOPPEL_NEAR_SIMILARITY);
    free(torture.documents);
    free((void *)torture.unique);
    free((void *)torture.named);
    tree_remove(scratch);
    return 0;
}
