/* bench_redis.c - the engine over a Redis that others share: adds, checks, what an add takes there in time and memory.
 *
 *   bench_redis shared PORT COUNT [MODE [PROCESSES]]
 *       fills the Redis at 127.0.0.1:PORT with COUNT pages of 2 KB, one process, batches of a thousand; then adds and
 *       checks from one process and from some (4), and single adds. Deletes everything in the Redis.
 *   bench_redis cliques PORT COUNT [MODE [PROCESSES]]
 *       some processes (8) add COUNT pages that are cliques of ten copies with a word changed, each in an order of its
 *       own, so that they conflict: how fast, and how often something was decided again. One of each clique must be
 * unique. bench_redis plain PORT COUNT COUNT times SET of 200 bytes, then GET, pipelined: what Redis does at best
 *
 * MODE is distance (the default), similarity (preset general without titles), crawl, titles (distance, each page has a
 * title, which counts) or general (similarity and titles). Each line is a name, a tab and a number. */
#include "engine/internal.h"
#include "known/redis.h"

#include "measure.h"
#include "pages.h"
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 1000 };

static void check(doppel_status status, const doppel_error *error) {
    if (status != DOPPEL_OK)
        bench_fail(error->message, "engine");
}

/* ---- the engine ---- */

typedef struct mode {
    const char *name;
    doppel_engine_options options;
    bool titles; /* pages have them */
} mode;

static const mode modes[] = {
    {"distance", {.near = DOPPEL_NEAR_DISTANCE, .titles = DOPPEL_SWITCH_OFF}, false},
    {"similarity", {.preset = "general", .titles = DOPPEL_SWITCH_OFF}, false},
    {"crawl", {.preset = "crawl"}, false},
    {"titles", {.near = DOPPEL_NEAR_DISTANCE, .titles = DOPPEL_SWITCH_ON}, true},
    {"general", {.preset = "general"}, true},
};

static const mode *find_mode(const char *name) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(modes[i].name, name))
            return &modes[i];
    bench_fail("unknown mode: distance, similarity, crawl, titles, general", name);
}

typedef enum kind { ADDS, CHECKS, CLIQUES } kind;

/* Pages from `from` on; of checks, one in five is among the first `from`. */
typedef struct work {
    const char *url;
    kind kind;
    const mode *mode;
    uint64_t from, count;
    unsigned process, processes;
} work;

/* What all processes did; in memory that they share. */
typedef struct done {
    _Atomic uint64_t uniques, retries, turns;
} done;
static done *all;

static doppel_engine *open_engine(const work *w) {
    doppel_error error;
    doppel_engine *engine;
    doppel_engine_options options = w->mode->options;
    options.size = sizeof options;
    check(doppel_engine_open(w->url, &options, &engine, &error), &error);
    return engine;
}

/* Adds what this process has done to what all did. */
static void close_engine(doppel_engine *engine) {
    const dp_redis *redis = (const dp_redis *)engine->known;
    atomic_fetch_add(&all->retries, atomic_load(&redis->retries));
    atomic_fetch_add(&all->turns, atomic_load(&redis->turns));
    doppel_engine_close(engine);
}

static uint64_t number_of(const work *w, uint64_t i) {
    return w->kind == CHECKS && i % 5 == 0 ? bench_mix(i) % w->from : w->from + i;
}

enum { CLIQUE = 10 };

/* A copy of page `number`, whose word at a place of its own is another. */
static void change_word(bench_page *p, uint64_t number) {
    doppel_document *d = &p->item.document;
    size_t at = (size_t)(bench_mix(number) % (d->text.length / 2));
    while (p->text[at] != ' ')
        at++;
    for (at++; at < d->text.length && p->text[at] != ' '; at++)
        p->text[at] = (char)('a' + bench_mix(number + at) % 26);
}

/* The i-th page of a process: each has some pages of every clique, in an order of its own. */
static void make_copy(bench_page *p, const work *w, uint64_t i) {
    uint64_t cliques = w->count * w->processes / CLIQUE, step = 7919 + 2 * w->process;
    while (cliques % step == 0)
        step += 2;
    uint64_t place = i * step % cliques, copy = (i / cliques * w->processes + w->process) % CLIQUE;
    bench_page_make(p, place, w->mode->titles);
    if (copy)
        change_word(p, place * CLIQUE + copy);
    p->item.document.id.length =
        (size_t)snprintf(p->id, sizeof p->id, "copy-%u-%012llu", w->process, (unsigned long long)i);
    p->item.document.url.length = (size_t)snprintf(p->url, sizeof p->url, "https://www.copies.example/%u/%llu",
                                                   w->process, (unsigned long long)i);
}

static void make_page(bench_page *p, const work *w, uint64_t i) {
    if (w->kind == CLIQUES)
        make_copy(p, w, i);
    else
        bench_page_make(p, number_of(w, i), w->mode->titles);
}

static void run_batches(doppel_engine *engine, const work *w) {
    bench_page *pages = calloc(BATCH, sizeof *pages);
    doppel_item *items = calloc(BATCH, sizeof *items);
    doppel_verdict *verdicts = calloc(BATCH, sizeof *verdicts);
    doppel_error error;
    if (!pages || !items || !verdicts)
        bench_fail("no memory", "pages");
    for (uint64_t i = 0; i < w->count; i += BATCH) {
        size_t count = w->count - i < BATCH ? (size_t)(w->count - i) : BATCH;
        for (size_t k = 0; k < count; k++) {
            make_page(&pages[k], w, i + k);
            items[k] = pages[k].item;
        }
        check((w->kind == CHECKS ? doppel_engine_check_batch : doppel_engine_add_batch)(engine, items, count, verdicts,
                                                                                        NULL, &error),
              &error);
        for (size_t k = 0; k < count; k++) {
            atomic_fetch_add(&all->uniques, !verdicts[k].is_duplicate);
            if (w->kind != CLIQUES && verdicts[k].is_duplicate != (w->kind == CHECKS && (i + k) % 5 == 0))
                bench_fail("a verdict that is wrong", pages[k].id);
        }
    }
    for (int i = 0; i < BATCH; i++)
        doppel_verdict_free(&verdicts[i]);
    free(verdicts);
    free(items);
    free(pages);
}

/* ---- processes ---- */

/* A process of its own: says that it is ready, waits, and does its share. */
static void child(const work *w, int ready, int go) {
    char byte = 0;
    doppel_engine *engine = open_engine(w);
    if (write(ready, &byte, 1) != 1 || close(ready) || read(go, &byte, 1) != 0)
        bench_fail("no pipe", "processes");
    run_batches(engine, w);
    close_engine(engine);
    exit(0);
}

/* Divides the work among processes; prints how much they did a second. */
static void run(const char *name, const work *w, unsigned processes) {
    int ready[2], go[2], status;
    char byte;
    if (pipe(ready) || pipe(go))
        bench_fail("no pipe", name);
    for (unsigned i = 0; i < processes; i++) {
        work share = *w;
        share.process = i;
        share.processes = processes;
        share.count = w->count / processes;
        share.from = w->kind == ADDS ? w->from + i * share.count : w->from;
        pid_t pid = fork();
        if (pid < 0)
            bench_fail("no process", name);
        if (!pid) {
            close(go[1]);
            child(&share, ready[1], go[0]);
        }
    }
    close(ready[1]);
    for (unsigned i = 0; i < processes; i++)
        if (read(ready[0], &byte, 1) != 1)
            bench_fail("a process failed", name);
    double began = process_now();
    close(go[1]);
    for (unsigned i = 0; i < processes; i++)
        if (wait(&status) < 0 || status)
            bench_fail("a process failed", name);
    process_print(name, (double)(w->count / processes * processes) / (process_now() - began));
    close(go[0]);
    close(ready[0]);
}

static int compare(const void *a, const void *b) {
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* One add after the other. */
static void run_single(const work *w) {
    doppel_engine *engine = open_engine(w);
    doppel_verdict verdict = {0};
    doppel_error error;
    bench_page *p = calloc(1, sizeof *p);
    double *seconds = calloc(w->count, sizeof *seconds);
    if (!p || !seconds)
        bench_fail("no memory", "single adds");
    for (uint64_t i = 0; i < w->count; i++) {
        bench_page_make(p, w->from + i, w->mode->titles);
        double began = process_now();
        check(doppel_engine_add(engine, &p->item, &verdict, &error), &error);
        seconds[i] = process_now() - began;
    }
    qsort(seconds, w->count, sizeof *seconds, compare);
    process_print("p50 of a single add", seconds[w->count / 2]);
    process_print("p99 of a single add", seconds[w->count / 100 * 99]);
    doppel_verdict_free(&verdict);
    close_engine(engine);
    free(seconds);
    free(p);
}

/* ---- Redis itself ---- */

static redisContext *connect_to(const char *port) {
    redisContext *link = redisConnect("127.0.0.1", atoi(port));
    if (!link || link->err)
        bench_fail(link ? link->errstr : "no memory", port);
    return link;
}

static void say(redisContext *link, const char *command) {
    redisReply *reply = redisCommand(link, command);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        bench_fail(reply ? reply->str : link->errstr, command);
    freeReplyObject(reply);
}

/* A number that INFO has after `name`. */
static double info(redisContext *link, const char *section, const char *name) {
    redisReply *reply = redisCommand(link, "INFO %s", section);
    const char *at = reply && reply->type == REDIS_REPLY_STRING ? strstr(reply->str, name) : NULL;
    if (!at)
        bench_fail("INFO does not have it", name);
    double value = strtod(at + strlen(name), NULL);
    freeReplyObject(reply);
    return value;
}

/* Seconds that the server and the children of this process were on a CPU. */
static double server_time(redisContext *link) {
    return info(link, "cpu", "used_cpu_user:") + info(link, "cpu", "used_cpu_sys:");
}

static double client_time(void) {
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Runs the work in one process, and prints the CPU time of one page. */
static void run_timed(redisContext *link, const char *name, const work *w) {
    char line[80];
    double server = server_time(link), client = client_time();
    run(name, w, 1);
    snprintf(line, sizeof line, "seconds of %s in Redis", name);
    process_print(line, (server_time(link) - server) / (double)w->count);
    snprintf(line, sizeof line, "seconds of %s in the client", name);
    process_print(line, (client_time() - client) / (double)w->count);
}

/* Retries since the last time, of this many adds. */
static void print_retries(const char *name, uint64_t adds) {
    process_print(name, (double)atomic_exchange(&all->retries, 0) / (double)adds);
}

/* Bytes of the shingle hashes of a page; 0: they are not kept, or are a sample. */
static double set_bytes(const work *w) {
    doppel_engine *engine = open_engine(w);
    doppel_stored_list list = {0};
    doppel_error error;
    bench_page *p = calloc(1, sizeof *p);
    if (!p)
        bench_fail("no memory", "pages");
    bench_page_make(p, 0, false);
    check(doppel_engine_get(engine, doppel_slice_of(p->id), &list, &error), &error);
    double bytes = list.count && list.stored[0].set ? 8.0 * (double)list.stored[0].set_count : 0;
    doppel_stored_list_free(&list);
    doppel_engine_close(engine);
    free(p);
    return bytes;
}

static void measure_shared(const char *port, uint64_t count, const mode *in, unsigned processes) {
    redisContext *link = connect_to(port);
    char url[128];
    snprintf(url, sizeof url, "redis://127.0.0.1:%s?prefix=bench&count=%llu", port, (unsigned long long)count);
    work fill = {.url = url, .mode = in, .count = count}, adds = fill, checks = fill, single = fill;
    say(link, "FLUSHALL");
    double before = info(link, "memory", "used_memory:");
    run("adds from nothing", &fill, 1);
    double bytes = (info(link, "memory", "used_memory:") - before) / (double)count;
    process_print("bytes", bytes);
    process_print("bytes without sets", bytes - set_bytes(&fill));
    checks.kind = CHECKS;
    checks.from = count;
    checks.count = adds.count = count / 10;
    run_timed(link, "checks", &checks);
    run("checks of some", &checks, processes);
    adds.from = count;
    run_timed(link, "adds", &adds);
    adds.from += adds.count;
    print_retries("retries", count + adds.count);
    run("adds of some", &adds, processes);
    print_retries("retries of some", adds.count);
    single.from = adds.from + adds.count;
    single.count = count < 100000 ? count / 10 : 10000;
    run_single(&single);
    redisFree(link);
}

static void measure_cliques(const char *port, uint64_t count, const mode *in, unsigned processes) {
    redisContext *link = connect_to(port);
    char url[128];
    uint64_t each = count / processes / CLIQUE * CLIQUE;
    snprintf(url, sizeof url, "redis://127.0.0.1:%s?prefix=bench&count=%llu", port, (unsigned long long)count);
    work w = {.url = url, .kind = CLIQUES, .mode = in, .count = each * processes};
    say(link, "FLUSHALL");
    run("adds of cliques", &w, processes);
    process_print("turns of cliques", (double)atomic_load(&all->turns));
    print_retries("retries of cliques", w.count);
    if (in->options.near != DOPPEL_NEAR_DISTANCE && atomic_load(&all->uniques) != w.count / CLIQUE)
        bench_fail("not one unique page of each clique", in->name);
    redisFree(link);
}

static void take(redisContext *link) {
    redisReply *reply;
    if (redisGetReply(link, (void **)&reply) != REDIS_OK || reply->type == REDIS_REPLY_ERROR)
        bench_fail(link->errstr, "plain");
    freeReplyObject(reply);
}

static void run_plain(redisContext *link, const char *name, const char *format, uint64_t count) {
    static const char value[200] = "value";
    double began = process_now();
    for (uint64_t from = 0; from < count; from += BATCH) {
        for (uint64_t i = from; i < from + BATCH; i++)
            redisAppendCommand(link, format, (unsigned long long)i, value, sizeof value);
        for (int i = 0; i < BATCH; i++)
            take(link);
    }
    process_print(name, (double)count / (process_now() - began));
}

static void measure_plain(const char *port, uint64_t count) {
    redisContext *link = connect_to(port);
    say(link, "FLUSHALL");
    run_plain(link, "sets", "SET key-%012llu %b", count / BATCH * BATCH);
    run_plain(link, "gets", "GET key-%012llu", count / BATCH * BATCH);
    say(link, "FLUSHALL");
    redisFree(link);
}

int main(int count, char **arguments) {
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        bench_fail("no memory", "shared");
    bool shared = count >= 4 && count <= 6 && !strcmp(arguments[1], "shared");
    bool cliques = count >= 4 && count <= 6 && !strcmp(arguments[1], "cliques");
    const mode *in = find_mode(count > 4 ? arguments[4] : "distance");
    unsigned processes = count > 5 ? (unsigned)process_number(arguments[5]) : cliques ? 8 : 4;
    if ((shared || cliques) && processes)
        (shared ? measure_shared : measure_cliques)(arguments[2], process_number(arguments[3]), in, processes);
    else if (count == 4 && !strcmp(arguments[1], "plain"))
        measure_plain(arguments[2], process_number(arguments[3]));
    else
        bench_fail("shared or cliques PORT COUNT [MODE [PROCESSES]], or plain PORT COUNT", "usage");
    return 0;
}
