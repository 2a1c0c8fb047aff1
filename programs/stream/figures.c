/* figures.c - what the worker has done. */
#include "stream/figures.h"

#include "common/metrics.h"

static const double bounds[TIME_BUCKETS - 1] = {1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 0.1, 0.2,
                                                0.5,  1,    2,    5,     10,    20,    50,  100};

void times_add(times *t, uint64_t microseconds) {
    size_t i = 0;
    while (i < TIME_BUCKETS - 1 && (double)microseconds * 1e-6 > bounds[i])
        i++;
    atomic_fetch_add_explicit(&t->bucket[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->sum, microseconds, memory_order_relaxed);
}

void times_write(text_buffer *out, const times *t, const char *name, const char *help) {
    uint64_t so_far = 0;
    metrics_head(out, name, "histogram", help);
    for (size_t i = 0; i < TIME_BUCKETS; i++) {
        so_far += atomic_load(&t->bucket[i]);
        text_format(out, "doppel_%s_bucket{le=\"", name);
        if (i < TIME_BUCKETS - 1)
            text_number(out, bounds[i]);
        else
            text_put(out, "+Inf");
        text_format(out, "\"} %llu\n", (unsigned long long)so_far);
    }
    text_format(out, "doppel_%s_sum ", name);
    text_number(out, (double)atomic_load(&t->sum) * 1e-6);
    text_format(out, "\ndoppel_%s_count %llu\n", name, (unsigned long long)so_far);
}

double times_share(const times *t, double share) {
    uint64_t all = 0, so_far = 0;
    for (size_t i = 0; i < TIME_BUCKETS; i++)
        all += atomic_load(&t->bucket[i]);
    for (size_t i = 0; all && i < TIME_BUCKETS - 1; i++) {
        so_far += atomic_load(&t->bucket[i]);
        if ((double)so_far >= share * (double)all)
            return bounds[i];
    }
    return all ? 1000 : 0;
}

uint64_t figures_records(const figures *f) {
    uint64_t all = 0;
    for (int i = 0; i < COUNTED; i++)
        all += atomic_load(&f->records[i]);
    return all;
}

uint64_t figures_duplicates(const figures *f) {
    return atomic_load(&f->records[COUNT_BY_URL]) + atomic_load(&f->records[COUNT_BY_CONTENT]) +
           atomic_load(&f->records[COUNT_BY_TITLE]);
}
