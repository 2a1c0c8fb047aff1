/* join_runs.h - what the tests of joins share: sources of every kind, options, pairs kept. */
#ifndef TESTS_JOIN_RUNS_H
#define TESTS_JOIN_RUNS_H

#include "fingerprints.h"

#include <unistd.h>

enum { FROM_ARRAY, FROM_FILE, FROM_CALLBACK, SOURCES };

typedef struct join_run {
    int distance, threads, source;
    bool all;
    uint64_t memory, secret;
} join_run;

/* What a callback has still to give. */
typedef struct rest {
    const fingerprints *set;
    size_t at;
} rest;

static inline doppel_status read_some(void *user, uint64_t *to, size_t room, size_t *count) {
    rest *r = user;
    size_t left = r->set->count - r->at, most = 1 + r->at % 700;
    *count = room < left ? room : left;
    if (*count > most)
        *count = most;
    if (*count)
        memcpy(to, print_at(r->set, r->at), *count * r->set->words * sizeof *to);
    r->at += *count;
    return DOPPEL_OK;
}

static char file_path[60];

static inline void write_file(const fingerprints *set) {
    FILE *file = fopen(file_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(set->values, set->words * sizeof *set->values, set->count, file), set->count);
    assert_int_equal(fclose(file), 0);
}

static inline doppel_source source_of(const fingerprints *set, int kind, rest *left) {
    doppel_source source = {.size = sizeof source};
    *left = (rest){set, 0};
    if (kind == FROM_FILE) {
        write_file(set);
        source.path = file_path;
    } else if (kind == FROM_CALLBACK) {
        source.read = read_some;
        source.user = left;
    } else {
        source.array = set->values;
        source.count = set->count;
    }
    return source;
}

static inline doppel_status keep_pairs(const doppel_pair *pairs, size_t count, void *user) {
    for (size_t i = 0; i < count; i++)
        add_pair(user, pairs[i].a, pairs[i].b, pairs[i].distance);
    return DOPPEL_OK;
}

static inline doppel_join_options options_of(const join_run *run, int bits, pair_list *found) {
    return (doppel_join_options){.size = sizeof(doppel_join_options),
                                 .bits = bits,
                                 .threads = run->threads,
                                 .memory = run->memory,
                                 .all = run->all,
                                 .pairs = keep_pairs,
                                 .user = found,
                                 .secret = run->secret ? run->secret : 1};
}

static inline int make_path(void **state) {
    (void)state;
    strcpy(file_path, "/tmp/doppel-test-join-XXXXXX");
    int file = mkstemp(file_path);
    return file < 0 || close(file);
}

static inline int remove_path(void **state) {
    (void)state;
    return unlink(file_path);
}

#endif
