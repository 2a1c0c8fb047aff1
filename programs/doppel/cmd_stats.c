/* cmd_stats.c - doppel stats: what an index holds and costs, as one JSON object. */
#include "commands.h"
#include "common/clock.h"
#include "common/message.h"
#include "common/stored_json.h"
#include "engine/engine_command.h"
#include "engine/index_settings.h"

const cli_option stats_options[] = {
    INDEX_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* The quantile of a histogram, rounded up to a power of two. */
static uint64_t quantile(const doppel_histogram *h, double share) {
    uint64_t seen = 0;
    for (int i = 0; i < DOPPEL_BUCKETS; i++) {
        seen += h->bucket[i];
        if ((double)seen >= share * (double)h->count)
            return (uint64_t)1 << i;
    }
    return (uint64_t)1 << DOPPEL_BUCKETS;
}

static void put_histogram(text_buffer *out, const char *name, const doppel_histogram *h) {
    text_member(out, name);
    text_put(out, "{");
    text_member_count(out, "count", h->count);
    if (h->count) {
        text_member_share(out, "mean", (double)h->sum / (double)h->count);
        text_member_count(out, "p50Below", quantile(h, 0.5));
        text_member_count(out, "p99Below", quantile(h, 0.99));
    }
    text_put(out, "}");
}

/* A member on a line of its own. */
static void put_line(text_buffer *out, const char *name) {
    text_format(out, ",\n  \"%s\": ", name);
}

static void put_count(text_buffer *out, const char *name, uint64_t count) {
    put_line(out, name);
    text_format(out, "%llu", (unsigned long long)count);
}

static void put_date(text_buffer *out, const char *name, uint64_t seconds) {
    char date[DATE_ROOM];
    put_line(out, name);
    text_string(out, doppel_slice_of(seconds ? format_date(seconds, date) : NULL));
}

static void put_contents(text_buffer *out, const doppel_engine_stats *s) {
    put_count(out, "documents", s->documents);
    put_count(out, "copies", s->copies);
    put_count(out, "titles", s->titles);
    put_line(out, "duplicates");
    text_by_reason(out, s->duplicates_by, false);
    put_date(out, "oldest", s->oldest);
    put_date(out, "newest", s->newest);
    put_count(out, "lastNumber", s->last);
    put_count(out, "diskBytes", s->disk_bytes);
    put_count(out, "freeBytes", s->free_bytes);
    put_count(out, "memoryBytes", s->memory_bytes);
    put_line(out, "memory");
    text_put(out, "{");
    text_member_count(out, "keys", s->keys_bytes);
    text_member_count(out, "near", s->near_bytes);
    text_member_count(out, "titles", s->title_bytes);
    text_put(out, "}");
    put_line(out, "plan");
    text_string(out, doppel_slice_of(s->plan));
}

/* Counted by this command since it opened the index; a long-running process reports its own counts. */
static void put_since_opened(text_buffer *out, const doppel_engine_stats *s) {
    put_line(out, "sinceOpened");
    text_put(out, "{");
    text_member_share(out, "openSeconds", s->open_seconds);
    text_engine_counters(out, s);
    text_member(out, "verdicts");
    text_by_reason(out, s->verdicts_by, true);
    put_histogram(out, "checkMicroseconds", &s->check_time);
    put_histogram(out, "addMicroseconds", &s->add_time);
    put_histogram(out, "commitMicroseconds", &s->commit_time);
    put_histogram(out, "candidates", &s->candidates);
    text_put(out, "}");
}

int cmd_stats(const cli_args *args) {
    engine_command e;
    doppel_engine_stats stats;
    int code = engine_open(&e, args, ENGINE_READ);
    if (code == EXIT_DONE) {
        doppel_engine_get_stats(e.engine, &stats);
        text_buffer out = {0};
        text_put(&out, "{\n  \"index\": ");
        text_string(&out, doppel_slice_of(e.path));
        put_contents(&out, &stats);
        put_line(&out, "options");
        text_put(&out, "{");
        text_settings(&out, doppel_engine_get_options(e.engine), "\n    ");
        text_put(&out, "}");
        put_since_opened(&out, &stats);
        text_put(&out, "\n}\n");
        code = finish_text(&out, code);
    }
    return engine_close(&e, code);
}
