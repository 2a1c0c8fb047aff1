/* cmd_stats.c - doppel stats: what an index holds and costs, as one JSON object. */
#include "commands.h"
#include "common/message.h"
#include "engine/engine_command.h"
#include "engine/index_settings.h"
#include "engine/stored_json.h"

#include <string.h>

const cli_option stats_options[] = {
    INDEX_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

static void print_count(const char *before, uint64_t count) {
    printf("%s%llu", before, (unsigned long long)count);
}

/* What at most this share of what was counted exceeds, as a power of two. */
static uint64_t quantile(const doppel_histogram *h, double share) {
    uint64_t seen = 0;
    for (int i = 0; i < DOPPEL_BUCKETS; i++) {
        seen += h->bucket[i];
        if ((double)seen >= share * (double)h->count)
            return (uint64_t)1 << i;
    }
    return (uint64_t)1 << DOPPEL_BUCKETS;
}

static void print_histogram(const char *before, const doppel_histogram *h) {
    printf("%s{\"count\":%llu", before, (unsigned long long)h->count);
    if (h->count) {
        printf(",\"mean\":%.6g", (double)h->sum / (double)h->count);
        print_count(",\"p50Below\":", quantile(h, 0.5));
        print_count(",\"p99Below\":", quantile(h, 0.99));
    }
    putchar('}');
}

static void print_what_is_there(const doppel_engine_stats *s) {
    print_count(",\n  \"documents\": ", s->documents);
    print_count(",\n  \"copies\": ", s->copies);
    print_count(",\n  \"titles\": ", s->titles);
    print_count(",\n  \"duplicates\": {\"url\":", s->duplicates_by[0]);
    print_count(",\"content\":", s->duplicates_by[1]);
    print_count(",\"title\":", s->duplicates_by[2]);
    print_time(stdout, "},\n  \"oldest\": ", s->oldest);
    print_time(stdout, ",\n  \"newest\": ", s->newest);
    print_count(",\n  \"lastNumber\": ", s->last);
    print_count(",\n  \"diskBytes\": ", s->disk_bytes);
    print_count(",\n  \"freeBytes\": ", s->free_bytes);
    print_count(",\n  \"memoryBytes\": ", s->memory_bytes);
    print_count(",\n  \"memory\": {\"keys\":", s->keys_bytes);
    print_count(",\"near\":", s->near_bytes);
    print_count(",\"titles\":", s->title_bytes);
    printf("},\n  \"plan\": ");
    print_json(stdout, s->plan, strlen(s->plan));
}

/* Of this command, which opens the index and asks: what a long-running process counts is its own to tell. */
static void print_since_opened(const doppel_engine_stats *s) {
    printf(",\n  \"sinceOpened\": {\"openSeconds\":%.6g", s->open_seconds);
    print_count(",\"checks\":", s->checks);
    print_count(",\"adds\":", s->adds);
    print_count(",\"removes\":", s->removes);
    print_count(",\"expired\":", s->expired);
    print_count(",\"damaged\":", s->damaged);
    print_count(",\"commits\":", s->commits);
    print_count(",\"failedCommits\":", s->failed_commits);
    print_count(",\"verdicts\":{\"unique\":", s->verdicts_by[0]);
    print_count(",\"url\":", s->verdicts_by[1]);
    print_count(",\"content\":", s->verdicts_by[2]);
    print_count(",\"title\":", s->verdicts_by[3]);
    print_histogram("},\"checkMicroseconds\":", &s->check_time);
    print_histogram(",\"addMicroseconds\":", &s->add_time);
    print_histogram(",\"commitMicroseconds\":", &s->commit_time);
    print_histogram(",\"candidates\":", &s->candidates);
    printf("}");
}

int cmd_stats(const cli_args *args) {
    engine_command e;
    doppel_engine_stats stats;
    int code = engine_open(&e, args, ENGINE_READ);
    if (code == EXIT_DONE) {
        doppel_engine_get_stats(e.engine, &stats);
        printf("{\n  \"index\": ");
        print_json(stdout, e.path, strlen(e.path));
        print_what_is_there(&stats);
        printf(",\n  \"options\": {");
        print_settings(stdout, doppel_engine_get_options(e.engine), "\n    ");
        printf("}");
        print_since_opened(&stats);
        printf("\n}\n");
        code = finish_stdout(code);
    }
    return engine_close(&e, code);
}
