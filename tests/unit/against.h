/* against.h - what tests of batches against an index share: index folders made of files. */
#ifndef TESTS_AGAINST_H
#define TESTS_AGAINST_H

#include "doppel.h"
#include "support.h"

typedef struct adding {
    doppel_engine *engine;
    doppel_verdict verdict;
    /* What the engine said; may be NULL. */
    void (*verdict_of)(const doppel_verdict *verdict, void *user);
    void *user;
} adding;

static inline doppel_status begin_adding(void *user, void **state) {
    *state = user;
    return DOPPEL_OK;
}

static inline doppel_status add_document(void *state, const doppel_document *document, doppel_output *output) {
    adding *a = state;
    const doppel_item item = {.size = sizeof item, .document = *document};
    doppel_error error = {0};
    (void)output;
    doppel_status status = doppel_engine_add(a->engine, &item, &a->verdict, &error);
    if (status != DOPPEL_OK)
        fail_msg("%s", error.message);
    if (a->verdict_of)
        a->verdict_of(&a->verdict, a->user);
    return status;
}

/* Adds the documents of a file one by one, in order, to an index folder (NULL: in memory). */
static inline void add_one_by_one(const char *folder, doppel_engine_options options, const char *file, adding *a) {
    const doppel_input_options input = {.size = sizeof input, .threads = 1};
    const doppel_work work = {.user = a, .begin = begin_adding, .document = add_document};
    doppel_error error = {0};
    options.size = sizeof options;
    options.durability = DOPPEL_DURABLE_NONE;
    if (doppel_engine_open(folder, &options, &a->engine, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    if (doppel_input_run(&file, 1, &input, &work, NULL, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    doppel_engine_close(a->engine);
    doppel_verdict_free(&a->verdict);
}

static inline void make_index(const char *folder, doppel_engine_options options, const char *file) {
    adding a = {0};
    add_one_by_one(folder, options, file, &a);
}

#endif
