/* bench_engine.c - the engine that remembers: durable adds, checks, memory a document, opening.
 *
 *   bench_engine given NEAR COUNT FOLDER     documents with an id, a URL and sketches of their own; NEAR is distance,
 *                                            similarity (sets of 50 feature hashes) or titles (that, and titles of 40
 *                                            to 100 letters)
 *   bench_engine text COUNT FOLDER TEXTS.bin checks of texts of 5 KB (cut from a set of bench/corpus) among COUNT
 *                                            documents, compared with the cost of fingerprint, digest and look-up alone
 *
 * The folder must not exist; it is not removed. Each line is a name, a tab and a number. */
#include "doppel.h"
#include "given.h"
#include "measure.h"
#include "process.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 1000, TEXT = 5000 };

static void check(doppel_status status, const doppel_error *error) {
    if (status != DOPPEL_OK)
        bench_fail(error->message, "engine");
}

/* ---- documents with sketches of their own ---- */

/* Bytes of memory that are this process's own: what is mapped from files is not. */
static uint64_t own_memory(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];
    unsigned long long kibibytes = 0;
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "RssAnon: %llu", &kibibytes);
    if (file)
        fclose(file);
    return kibibytes * 1024;
}

/* ---- checks ---- */

typedef struct checks {
    doppel_engine *engine;
    uint64_t known; /* documents there are */
    size_t count;
    given_parts of;
    double *seconds; /* of each; NULL: not wanted */
    uint64_t duplicates;
} checks;

/* One in five was seen. */
static void run_checks(checks *c, const given_document *made) {
    doppel_verdict verdict = {0};
    doppel_error error;
    for (size_t i = 0; i < c->count; i++) {
        double began = c->seconds ? process_now() : 0;
        check(doppel_engine_check(c->engine, &made[i].item, &verdict, &error), &error);
        if (c->seconds)
            c->seconds[i] = process_now() - began;
        c->duplicates += verdict.is_duplicate;
    }
    doppel_verdict_free(&verdict);
}

static given_document *make_checks(const checks *c) {
    given_document *made = calloc(c->count, sizeof *made);
    if (!made)
        bench_fail("no memory", "checks");
    for (size_t i = 0; i < c->count; i++) {
        uint64_t random = given_mix(i + (1ULL << 50));
        given_make(&made[i], i % 5 ? (1ULL << 40) + random % (1ULL << 38) : random % c->known, c->of);
    }
    return made;
}

typedef struct adding {
    doppel_engine *engine;
    uint64_t next;
    given_parts of;
    atomic_bool stop;
} adding;

static void *add_meanwhile(void *user) {
    adding *a = user;
    while (!atomic_load(&a->stop)) {
        given_add(a->engine, a->next, a->next + BATCH, a->of);
        a->next += BATCH;
    }
    return NULL;
}

static int compare_seconds(const void *a, const void *b) {
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void measure_checks(doppel_engine *engine, uint64_t known, given_parts of) {
    checks c = {.engine = engine, .known = known, .count = 300000, .of = of};
    given_document *made = make_checks(&c);
    run_checks(&c, made);
    c.duplicates = 0;
    double began = process_now();
    run_checks(&c, made);
    process_print("checks", (double)c.count / (process_now() - began));
    process_print("duplicates", (double)c.duplicates / (double)c.count);
    adding a = {.engine = engine, .next = known, .of = of};
    pthread_t thread;
    if (!(c.seconds = calloc(c.count, sizeof *c.seconds)) || pthread_create(&thread, NULL, add_meanwhile, &a))
        bench_fail("no memory", "checks");
    began = process_now();
    run_checks(&c, made);
    double took = process_now() - began;
    atomic_store(&a.stop, true);
    pthread_join(thread, NULL);
    qsort(c.seconds, c.count, sizeof *c.seconds, compare_seconds);
    process_print("checks while adding", (double)c.count / took);
    process_print("adds meanwhile", (double)(a.next - known) / took);
    process_print("p50 while adding", c.seconds[c.count / 2]);
    process_print("p99 while adding", c.seconds[c.count / 100 * 99]);
    free(c.seconds);
    free(made);
}

/* Of all threads of this process. */
static double cpu_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* Two threads adding batches of a thousand. */
typedef struct share {
    doppel_engine *engine;
    uint64_t from, to;
    given_parts of;
} share;

static void *add_share(void *user) {
    share *s = user;
    given_add(s->engine, s->from, s->to, s->of);
    return NULL;
}

static void measure_adds(doppel_engine *engine, uint64_t count, given_parts of) {
    share half = {engine, count / 2, count, of};
    pthread_t thread;
    double began = process_now(), used = cpu_seconds();
    if (pthread_create(&thread, NULL, add_share, &half))
        bench_fail("no thread", "adds");
    given_add(engine, 0, count / 2, of);
    pthread_join(thread, NULL);
    process_print("adds", (double)count / (process_now() - began));
    process_print("CPU microseconds of an add", (cpu_seconds() - used) / (double)count * 1e6);
}

static void print_memory(doppel_engine *engine, uint64_t count, uint64_t before) {
    doppel_engine_stats stats;
    doppel_engine_get_stats(engine, &stats);
    process_print("bytes as counted", (double)stats.memory_bytes / (double)count);
    process_print("bytes of keys", (double)stats.keys_bytes / (double)count);
    process_print("bytes of near", (double)stats.near_bytes / (double)count);
    process_print("bytes", (double)(own_memory() - before) / (double)count);
    process_print("disk bytes", (double)stats.disk_bytes / (double)count);
}

static void measure_given(given_parts of, uint64_t count, const char *folder) {
    uint64_t before = own_memory();
    doppel_engine *engine = given_open(folder, of);
    measure_adds(engine, count, of);
    doppel_engine_stats stats;
    doppel_engine_get_stats(engine, &stats);
    process_print("seconds of a commit", (double)stats.commit_time.sum / 1e6 / (double)stats.commits);
    doppel_engine_close(engine);
    malloc_trim(0); /* what the first engine has given back is not the second one's */
    double began = process_now();
    engine = given_open(folder, of);
    process_print("seconds to open", process_now() - began);
    print_memory(engine, count, before);
    measure_checks(engine, count, of);
    doppel_engine_close(engine);
}

/* ---- texts ---- */

typedef struct texts {
    char **text;
    size_t count;
} texts;

/* Texts of 5 KB, cut from longer ones put together. */
static texts cut_texts(const char *path) {
    bench_documents documents;
    texts t = {0};
    bench_documents_load(&documents, path, 200000000);
    t.text = calloc(documents.bytes / TEXT + 1, sizeof *t.text);
    char *text = malloc(TEXT + 1);
    size_t filled = 0;
    for (size_t i = 0; i < documents.count && t.text && text; i++)
        for (size_t at = 0; at < documents.lengths[i] && text;) {
            size_t some = documents.lengths[i] - at < TEXT - filled ? documents.lengths[i] - at : TEXT - filled;
            memcpy(text + filled, documents.texts[i] + at, some);
            at += some;
            if ((filled += some) == TEXT) {
                t.text[t.count++] = text;
                text = malloc(TEXT + 1);
                filled = 0;
            }
        }
    free(text);
    bench_documents_free(&documents);
    if (!t.count)
        bench_fail("too small", path);
    return t;
}

/* What the parts cost alone: fingerprint, digest, and a look-up with both given. */
static double alone(doppel_engine *engine, const texts *t) {
    doppel_recipe *recipe;
    doppel_sketcher *plain, *digested;
    doppel_sketch sketch;
    doppel_verdict verdict = {0};
    doppel_error error;
    check(doppel_recipe_parse("page", NULL, &recipe, &error), &error);
    check(doppel_sketcher_create(recipe, DOPPEL_WANT_DIGEST, &digested, &error), &error);
    check(doppel_sketcher_create(recipe, 0, &plain, &error), &error);
    given_document *made = calloc(t->count, sizeof *made);
    for (size_t i = 0; i < t->count && made; i++)
        given_make(&made[i], (1ULL << 40) + given_mix(i) % (1ULL << 38), (given_parts){0});
    double began = process_now();
    for (size_t i = 0; i < t->count; i++)
        doppel_sketcher_run(digested, (doppel_slice){t->text[i], TEXT}, &sketch);
    double sketching = process_now() - began;
    began = process_now();
    for (size_t i = 0; i < t->count && made; i++)
        check(doppel_engine_check(engine, &made[i].item, &verdict, &error), &error);
    double looking = process_now() - began;
    process_print("sketch microseconds", sketching / (double)t->count * 1e6);
    process_print("look-up microseconds", looking / (double)t->count * 1e6);
    doppel_verdict_free(&verdict);
    doppel_sketcher_free(plain);
    doppel_sketcher_free(digested);
    doppel_recipe_free(recipe);
    free(made);
    return sketching + looking;
}

static void measure_text(uint64_t count, const char *folder, const char *path) {
    doppel_engine *engine = given_open(folder, (given_parts){0});
    texts t = cut_texts(path);
    doppel_verdict verdict = {0};
    doppel_error error;
    given_add(engine, 0, count, (given_parts){0});
    double apart = alone(engine, &t), best = 0;
    for (int run = 0; run < 3; run++) {
        double began = process_now();
        for (size_t i = 0; i < t.count; i++) {
            char url[64];
            doppel_item item = {.size = sizeof item};
            item.document.text.data = t.text[i];
            item.document.text.length = TEXT;
            item.document.url.data = url;
            item.document.url.length = (size_t)snprintf(url, sizeof url, "https://new.example/%zu.html", i);
            check(doppel_engine_check(engine, &item, &verdict, &error), &error);
        }
        double took = process_now() - began;
        best = !run || took < best ? took : best;
    }
    process_print("text checks", (double)t.count / best);
    process_print("share of the parts' speed", apart / best);
    doppel_verdict_free(&verdict);
    doppel_engine_close(engine);
}

int main(int count, char **arguments) {
    if (count == 5 && !strcmp(arguments[1], "given"))
        measure_given(given_named(arguments[2]), process_number(arguments[3]), arguments[4]);
    else if (count == 5 && !strcmp(arguments[1], "text"))
        measure_text(process_number(arguments[2]), arguments[3], arguments[4]);
    else
        bench_fail("given NEAR COUNT FOLDER, or text COUNT FOLDER TEXTS.bin", "usage");
    return 0;
}
