/* bench_redis.c - the engine over a Redis that others share: adds, checks, what an add takes there in time and memory.
 *
 *   bench_redis shared PORT COUNT [titles]   fills the Redis at 127.0.0.1:PORT with COUNT pages of 2 KB, one process,
 *                                            batches of a thousand; then adds and checks from one process and from
 *                                            four, and single adds. All the Redis had is lost. With `titles` each page
 *                                            has a title, which counts.
 *   bench_redis plain PORT COUNT             COUNT times SET of 200 bytes, then GET, pipelined: what Redis does at best
 *
 * Each line is a name, a tab and a number. */
#include "doppel.h"
#include "measure.h"
#include "pages.h"
#include "process.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 1000 };

static void check(doppel_status status, const doppel_error *error) {
    if (status != DOPPEL_OK)
        bench_fail(error->message, "engine");
}

/* ---- the engine ---- */

typedef enum kind { ADDS, CHECKS } kind;

/* Pages from `from` on; of checks, one in five is among the first `from`. */
typedef struct work {
    const char *url;
    kind kind;
    bool titles;
    uint64_t from, count;
} work;

static doppel_engine *open_engine(const work *w) {
    doppel_error error;
    doppel_engine *engine;
    const doppel_engine_options options = {.size = sizeof options,
                                           .titles = w->titles ? DOPPEL_SWITCH_ON : DOPPEL_SWITCH_OFF};
    check(doppel_engine_open(w->url, &options, &engine, &error), &error);
    return engine;
}

static uint64_t number_of(const work *w, uint64_t i) {
    return w->kind == CHECKS && i % 5 == 0 ? bench_mix(i) % w->from : w->from + i;
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
            bench_page_make(&pages[k], number_of(w, i + k), w->titles);
            items[k] = pages[k].item;
        }
        check((w->kind == ADDS ? doppel_engine_add_batch : doppel_engine_check_batch)(engine, items, count, verdicts,
                                                                                      NULL, &error),
              &error);
        for (size_t k = 0; k < count; k++)
            if (verdicts[k].is_duplicate != (w->kind == CHECKS && (i + k) % 5 == 0))
                bench_fail("a verdict that is wrong", pages[k].id);
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
    doppel_engine_close(engine);
    exit(0);
}

/* Divides the work among processes; tells how much they did a second. */
static void run(const char *name, const work *w, unsigned processes) {
    int ready[2], go[2], status;
    char byte;
    if (pipe(ready) || pipe(go))
        bench_fail("no pipe", name);
    for (unsigned i = 0; i < processes; i++) {
        work share = *w;
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
    process_tell(name, (double)(w->count / processes * processes) / (process_now() - began));
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
        bench_page_make(p, w->from + i, w->titles);
        double began = process_now();
        check(doppel_engine_add(engine, &p->item, &verdict, &error), &error);
        seconds[i] = process_now() - began;
    }
    qsort(seconds, w->count, sizeof *seconds, compare);
    process_tell("p50 of a single add", seconds[w->count / 2]);
    process_tell("p99 of a single add", seconds[w->count / 100 * 99]);
    doppel_verdict_free(&verdict);
    doppel_engine_close(engine);
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

/* Runs the work in one process, and tells what one page of it takes on a CPU. */
static void run_timed(redisContext *link, const char *name, const work *w) {
    char line[80];
    double server = server_time(link), client = client_time();
    run(name, w, 1);
    snprintf(line, sizeof line, "seconds of %s in Redis", name);
    process_tell(line, (server_time(link) - server) / (double)w->count);
    snprintf(line, sizeof line, "seconds of %s in the client", name);
    process_tell(line, (client_time() - client) / (double)w->count);
}

static void measure_shared(const char *port, uint64_t count, bool titles) {
    redisContext *link = connect_to(port);
    char url[128];
    snprintf(url, sizeof url, "redis://127.0.0.1:%s?prefix=bench&count=%llu", port, (unsigned long long)count);
    work fill = {.url = url, .titles = titles, .count = count}, adds = fill, checks = fill, single = fill;
    say(link, "FLUSHALL");
    double before = info(link, "memory", "used_memory:");
    run("adds from nothing", &fill, 1);
    process_tell("bytes", (info(link, "memory", "used_memory:") - before) / (double)count);
    checks.kind = CHECKS;
    checks.from = count;
    checks.count = adds.count = count / 10;
    run_timed(link, "checks", &checks);
    run("checks of four", &checks, 4);
    adds.from = count;
    run_timed(link, "adds", &adds);
    adds.from += adds.count;
    run("adds of four", &adds, 4);
    single.from = adds.from + adds.count;
    single.count = count < 100000 ? count / 10 : 10000;
    run_single(&single);
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
    process_tell(name, (double)count / (process_now() - began));
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
    if ((count == 4 || (count == 5 && !strcmp(arguments[4], "titles"))) && !strcmp(arguments[1], "shared"))
        measure_shared(arguments[2], process_number(arguments[3]), count == 5);
    else if (count == 4 && !strcmp(arguments[1], "plain"))
        measure_plain(arguments[2], process_number(arguments[3]));
    else
        bench_fail("shared PORT COUNT [titles], or plain PORT COUNT", "usage");
    return 0;
}
